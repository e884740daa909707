"""Counted insights follow their definitions, and nothing that the owner wrote is lost.

The sample - Figures - Months and trend - Mentions - Examples - Merging - Annotations - Phrases - Judgement
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import small_files as small
from hypothesis import example, given
from hypothesis import strategies as st
from small_files import ABSENT, CONTRACT, Object

from reviewslib.dataset import insights
from reviewslib.dataset.insights import COUNTED_KEYS, ENTITY_KINDS, MODEL, compute_insights, value_digest
from reviewslib.dataset.reviews import read_file, served_reviews

INSIGHTS_FILE = small.file_validator("InsightsFile")
FIGURES = ("mention_count", "average_rating", "score")


def verified(*reviews: Object) -> list[Any]:
    """Reviews as they are served."""
    return served_reviews(CONTRACT.reviews_file.complete(small.a_file(*reviews))["reviews"], {})


def rated(*ratings: float, **members: Any) -> list[Any]:
    """Reviews of so many stars, newest first."""
    return verified(*(small.review(f"{999 - n}", rating=stars, **members) for n, stars in enumerate(ratings)))


def technician(reviews: list[Any], **members: Any) -> Object:
    """The entry of a person with these members, counted in `reviews`."""
    (person,) = compute_insights(reviews, entry(**members))["entities"]["technicians"]
    return person


def entry(kind: str = "technicians", **members: Any) -> Object:
    """An editorial document of one entry."""
    return {"entities": {kind: [{"id": "hana", "label": "Hana I."} | members]}}


# ---- The sample ----

SAMPLE = verified(*json.loads((small.ROOT / "data" / "reviews.json").read_bytes())["reviews"])
WRITTEN: Object = json.loads((small.ROOT / "data" / "insights.json").read_bytes())


def test_the_sample_counted_from_its_own_annotations_has_its_own_figures() -> None:
    def named(entries: list[Object]) -> list[Object]:
        return [{"id": entry["id"], "label": entry["label"]} for entry in reversed(entries)]

    def figures(document: Object) -> list[Any]:
        lists = [document["aspects"], document["topics"], *map(document["entities"].get, ENTITY_KINDS)]
        chosen = {"top_phrases", "example_review_ids", "summary"}
        return [
            [{key: entry[key] for key in entry.keys() - chosen} for entry in entries] for entries in lists
        ]

    editorial = {key: value for key, value in WRITTEN.items() if key not in COUNTED_KEYS}
    assert (
        list(insights.name_violations(editorial)) == list(insights.stale_references(SAMPLE, editorial)) == []
    )
    assert (
        list(insights.left_out(SAMPLE, editorial, {})) == insights.unread_reviews(SAMPLE, editorial, {}) == []
    )
    expected = {key: value for key, value in WRITTEN.items() if key not in ("version", "generated_at")}
    assert compute_insights(SAMPLE, editorial) == expected | {"model": MODEL}
    editorial |= {kind: named(WRITTEN[kind]) for kind in ("aspects", "topics")}
    editorial["entities"] = {kind: named(entries) for kind, entries in WRITTEN["entities"].items()}
    assert figures(compute_insights(SAMPLE, editorial)) == figures(WRITTEN)


# ---- Figures ----


def test_the_version_grows_with_what_is_counted_and_an_edit_shows() -> None:
    then, now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    counted, later = compute_insights(SAMPLE), compute_insights(SAMPLE[1:], {"own": 1})
    first = insights.refresh_insights({}, counted, then)
    stamped = {"version": 1, "generated_at": "2026-01-02T03:04:05Z"} | counted
    assert first == stamped | {"counted_digest": value_digest(stamped)}
    assert insights.refresh_insights(first, counted, now) == first
    second = json.loads(json.dumps(insights.refresh_insights(first, later, now)))
    assert (second["version"], second["generated_at"]) == (2, "2026-02-01T00:00:00Z")
    assert insights.is_counted(second) and not insights.is_edited(second)
    assert insights.is_edited(second | {"summary": "Best"}) and insights.is_edited(stamped)
    assert not insights.is_counted(WRITTEN) and not insights.is_counted({"model": None})


def test_reviews_alone_give_dates_shares_months_and_a_score_each() -> None:
    reviews = verified(
        small.review("a", rating=5, date="2025-03-31T23:59:59-08:00"),
        small.review("b", rating=3.5, date="2025-01-31"),
        small.review("c", rating=2, date="2025-01-02"),
        small.review("hidden", rating=1, date="2020-01-02", verified=False),
    )
    assert compute_insights(reviews) == {
        "model": "counted from star ratings and from names in the texts",
        "review_count": 3,
        "date_range": {"earliest": "2025-01-02", "latest": "2025-03-31"},
        "overall_sentiment": {"score": 0.25, "positive_pct": 33.3, "neutral_pct": 33.3, "negative_pct": 33.3},
        "entities": {kind: [] for kind in ENTITY_KINDS},
        "temporal": {
            "monthly": [
                {"month": "2025-01", "review_count": 2, "average_rating": 2.75, "score": -0.12},
                {"month": "2025-02", "review_count": 0, "average_rating": None, "score": None},
                {"month": "2025-03", "review_count": 1, "average_rating": 5, "score": 1},
            ],
            "trend": None,
        },
        "per_review": {
            id: {"score": score, "aspects": []} | {kind: [] for kind in ENTITY_KINDS}
            for id, score in [("a", 1), ("b", 0.25), ("c", -0.5)]
        },
    }


@pytest.mark.parametrize(
    ("stars", "kind"),
    [(5, "positive"), (4, "positive"), (3.9, "neutral"), (2.1, "neutral"), (2, "negative"), (1, "negative")],
)
def test_the_stars_decide_what_is_positive(stars: float, kind: str) -> None:
    shares = {f"{name}_pct": 100 * (name == kind) for name in ("positive", "neutral", "negative")}
    by_hand = {"per_review": {"999": {"score": -1}}}
    assert compute_insights(rated(stars), by_hand)["overall_sentiment"] == {"score": -1} | shares


def test_means_use_exact_sums_and_are_never_minus_zero() -> None:
    by_hand = {"per_review": {"999": {"score": 0.1}, "998": {"score": 0.2}, "997": {"score": -0.304}}}
    score = compute_insights(rated(5, 5, 1), by_hand)["overall_sentiment"]["score"]
    assert json.dumps(score) == "0.0"
    scores = compute_insights(rated(4.6, 4.125))["per_review"]
    assert (scores["999"]["score"], scores["998"]["score"]) == (0.8, 0.56)


# ---- Months and trend ----


def test_every_month_between_the_first_and_the_last_is_there_across_years() -> None:
    reviews = verified(small.review("a", date="2024-02-29"), small.review("b", date="2022-11-01"))
    months = [month["month"] for month in compute_insights(reviews)["temporal"]["monthly"]]
    assert months == [f"{n // 12}-{n % 12 + 1:02}" for n in range(2022 * 12 + 10, 2024 * 12 + 2)]
    (alone,) = compute_insights(verified(small.review(date="0001-01-01")))["temporal"]["monthly"]
    assert alone["month"] == "0001-01"


def in_two_years(late: Sequence[float], early: Sequence[float]) -> list[Any]:
    """Reviews of the year up to October 2026, the newest in that month, and of the year before."""
    dates = ["2026-10-31", *["2025-11-01"] * (len(late) - 1), *["2025-10-31", "2024-11-01"] * len(early)]
    ratings = [*late, *early]
    dated = zip(ratings, dates[: len(ratings)], strict=True)
    return verified(*(small.review(f"{n}", rating=stars, date=day) for n, (stars, day) in enumerate(dated)))


@pytest.mark.parametrize(
    ("late", "early", "trend"),
    [
        ([5] * 10, [4] * 10, "improving"),
        ([4] * 10, [5] * 10, "declining"),
        ([5] * 9, [4] * 10, None),  # too few
        ([5] * 10, [4] * 9, None),
        ([5, 1] * 20, [4, 1] * 20, "stable"),  # within noise
        ([5] * 8 + [3] * 2, [5] * 4 + [3] * 6, "stable"),  # 1.9 standard errors
        ([5] * 8 + [3] * 2, [5] * 3 + [3] * 7, "improving"),  # 2.5 standard errors
        ([4.2] * 10, [4] * 10, "improving"),  # 0.1 exactly, though not in binary
        ([4] * 10, [4.2] * 10, "declining"),
        ([4.1] * 10, [4] * 10, "stable"),
    ],
)
def test_the_trend_needs_enough_reviews_a_change_and_no_noise(
    late: list[float], early: list[float], trend: str | None
) -> None:
    reviews = in_two_years(late, early)
    assert compute_insights(reviews)["temporal"]["trend"] == trend


# ---- Mentions ----


@pytest.mark.parametrize(
    ("text", "aliases", "count"),
    [
        ("Hana I.", ["Nobody"], 0),  # the label is no alias
        ("HANA, Hana, Ms\nIshikawa", ["Hana", "ms Ishikawa"], 1),
        ("Hanako", ["Hana"], 0),
        (None, ["Hana"], 0),
    ],
)
def test_only_aliases_count_once_a_review(text: str | None, aliases: list[str], count: int) -> None:
    assert technician(rated(5, text=text), aliases=aliases)["mention_count"] == count


def test_names_in_replies_are_no_mentions() -> None:
    answered = rated(5, text="Good", owner_reply={"text": "Hana thanks you"})
    assert technician(answered, aliases=["Hana"])["mention_count"] == 0


def test_an_entry_has_figures_of_its_mentions_most_mentioned_first() -> None:
    texts = {3: "a b", 4: "b", 5: "b c d"}
    reviews = verified(*(small.review(f"{n}", rating=n, text=text) for n, text in texts.items()))
    names = [("z", "D", "d"), ("b", "B", "b"), ("a", "D", "d"), ("q", "C", "c"), ("n", "N", "n")]
    entries = [{"id": id, "label": label, "aliases": [alias]} for id, label, alias in names]
    entries.append({"id": "uncounted", "label": "A"})
    services = compute_insights(reviews, {"entities": {"services": entries}})["entities"]["services"]
    assert [(entry["id"], *(entry.get(key) for key in FIGURES)) for entry in services] == [
        *[("b", 3, 4, 0.5), ("q", 1, 5, 1), ("a", 1, 5, 1), ("z", 1, 5, 1)],
        *[("uncounted", None, None, None), ("n", 0, None, None)],
    ]


# ---- Examples ----

LONG = "Hana " + "x" * 35
SHORT = LONG[:-1]


@pytest.mark.parametrize(
    ("mentions", "chosen"),
    [
        ([(5, LONG)] * 6, "0123"),
        ([(5, SHORT), *[(5, LONG)] * 6], "1234"),
        ([(5, SHORT)], ""),
        ([*[(5, LONG)] * 5, (2, SHORT), (1, LONG)], "0125"),  # the newest negative, however short
        ([(2, LONG), *[(5, LONG)] * 5, (1, LONG)], "0123"),
        ([(5, LONG), (1, SHORT)], "01"),
    ],
)
def test_examples_are_the_newest_long_reviews_and_a_negative_one(
    mentions: list[tuple[float, str]], chosen: str
) -> None:
    reviews = rated(*(stars for stars, _ in mentions))
    for review, (_, text) in zip(reviews, mentions, strict=True):
        review["text"] = text
    examples = technician(reviews, aliases=["Hana"])["example_review_ids"]
    assert examples == [reviews[int(position)]["id"] for position in chosen]


# ---- Merging ----


@pytest.mark.parametrize(
    ("by_hand", "merged"),
    [
        ({"score": 0.4}, {"score": 0.4}),
        ({"score": 0}, {"score": 0}),
        ({"score": None}, {"score": 1}),
        ({"technicians": []}, {"technicians": []}),  # mentions nobody, whatever the words say
        ({"technicians": None}, {"technicians": ["Hana I."]}),
        ({"aspects": [{"id": "x"}]}, {"aspects": [{"id": "x"}]}),
        ({"own": None}, {"own": None}),
    ],
)
def test_what_a_person_wrote_wins_key_by_key_and_null_means_count(by_hand: Object, merged: Object) -> None:
    editorial = entry(aliases=["Hana"]) | {"per_review": {"999": by_hand, "gone": {"score": 1}}}
    computed = {kind: [] for kind in ENTITY_KINDS} | {"score": 1, "aspects": [], "technicians": ["Hana I."]}
    document = compute_insights(rated(5, text="Hana"), editorial)
    assert document["per_review"] == {"999": computed | merged}
    (person,) = document["entities"]["technicians"]
    count = len(document["per_review"]["999"]["technicians"])
    score = document["per_review"]["999"]["score"] if count else None
    assert [person[key] for key in FIGURES] == [count, 5 if count else None, score]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({"mention_count": 9, "score": -0.5}, {"mention_count": 9, "score": -0.5}),  # no aliases: untouched
        ({"aliases": None, "mention_count": 9}, {"mention_count": 9}),
        ({"aliases": ["Hana"], "mention_count": 9}, {"mention_count": 9}),
        ({"aliases": ["Hana"], "score": None}, {"mention_count": 1, "average_rating": 5, "score": 1}),
        ({"aliases": ["Hana"], "example_review_ids": ["x"]}, {"example_review_ids": ["x"]}),
        ({"aliases": ["Hana"], "example_review_ids": []}, {"example_review_ids": []}),
        ({"aliases": ["Hana"], "example_review_ids": None}, {"example_review_ids": ["999"]}),
        ({"aliases": ["Hana"], "top_phrases": ["y"], "own": 1}, {"top_phrases": ["y"], "own": 1}),
    ],
)
def test_an_entry_with_aliases_is_counted_unless_it_has_figures_of_its_own(
    written: Object, kept: Object
) -> None:
    person = technician(rated(5, text=LONG), **written)
    assert kept.items() <= person.items()
    assert "aliases" not in person
    assert person.keys() == {"id", "label", *kept} or "mention_count" not in written


def test_other_keys_are_kept_and_those_that_are_counted_are_not() -> None:
    by_hand = {"summary": "", "topics": [{"id": "t", "label": "T"}], "own": {"a": [1]}, "pull_quote": None}
    proposed = {"proposed_summary": "x", "proposed_entities": entry()["entities"]}
    wrong = dict.fromkeys(COUNTED_KEYS, "by hand")
    counted = {"version", "generated_at", "counted_digest", *compute_insights([])}
    assert wrong.keys() == counted - {"entities", "per_review"}
    document = compute_insights(rated(5), by_hand | wrong | proposed)
    assert document == compute_insights(rated(5)) | by_hand
    for nothing in ({}, {"entities": None}):
        assert compute_insights(rated(5), nothing) == compute_insights(rated(5), None)


ALIASES = st.none() | st.lists(st.sampled_from(["x", "y z", "石"]))
NAMED = {"id": st.sampled_from("abc"), "label": st.sampled_from("ABC")}
ENTRY = st.fixed_dictionaries(NAMED, optional={"aliases": ALIASES, "own": small.any_text})
ENTRIES = st.lists(ENTRY, max_size=3)
EDITORIALS = st.fixed_dictionaries(
    {"entities": st.none() | st.fixed_dictionaries({}, optional=dict.fromkeys(ENTITY_KINDS, ENTRIES))},
    optional={"per_review": st.just({"a": {"services": ["b"]}}), "summary": small.any_text},
)


@given(editorial=EDITORIALS, texts=st.lists(st.none() | st.sampled_from(["x", "Y Z", "1石"]), max_size=3))
def test_counted_insights_fit_their_schema_and_have_no_aliases(editorial: Object, texts: list[Any]) -> None:
    reviews = verified(*(small.review("abc"[n], text=text) for n, text in enumerate(texts)))
    before = json.dumps([reviews, editorial])
    document = compute_insights(reviews, editorial)
    INSIGHTS_FILE.validate(document)
    assert "aliases" not in json.dumps(document)
    assert json.dumps(compute_insights(reviews, editorial)) == json.dumps(document)
    assert json.dumps([reviews, editorial]) == before


# ---- Annotations ----

VOCABULARY: Object = {
    "aspects": [{"id": "price", "label": "Price"}, {"id": "wait", "label": "Waiting"}],
    "topics": [{"id": "desk", "label": "Desk"}],
    "entities": {"technicians": [{"id": "hana", "label": "Hana I.", "aliases": ["Hana"]}]},
}
SENTIMENTS = ["positive", "neutral", "negative"]


def praise(aspect: str = "price", sentiment: str = "positive", phrase: str | None = None) -> Object:
    return {"id": aspect, "sentiment": sentiment, "phrase": phrase}


def annotated(reviews: list[Any], *lists: Object, keys: Any = None) -> Object:
    """An AnnotationsFile in which the model m read these reviews, with these lists."""
    source = {"vocabulary": "v", "model": "m"}
    annotations = {
        review["id"]: {"text_digest": insights.text_digest(review)} | source | members
        for review, members in zip(reviews, lists, strict=True)
    }
    return {
        "vocabularies": {"v": insights.entry_keys(VOCABULARY) if keys is None else keys},
        "reviews": annotations,
    }


MENTIONS = st.builds(praise, st.sampled_from(["price", "wait", "?"]), st.sampled_from(SENTIMENTS))
NAMES = {"technicians": st.sampled_from(["hana", "?"]), "topics": st.sampled_from(["desk", "?"])}
LISTS = st.fixed_dictionaries(
    {}, optional={kind: st.none() | st.lists(each) for kind, each in ({"aspects": MENTIONS} | NAMES).items()}
)


@given(stars=st.lists(st.integers(1, 5), min_size=1, max_size=5), data=st.data())
def test_figures_of_annotations_are_their_plain_definition(stars: list[int], data: st.DataObject) -> None:
    reviews = rated(*stars, text="Hana")
    by_model, by_hand = (data.draw(st.lists(LISTS, min_size=len(stars), max_size=len(stars))) for _ in "ab")
    for lists in by_hand:  # a person writes names
        if lists.get("technicians"):
            lists["technicians"] = [{"hana": "Hana I."}.get(id, id) for id in lists["technicians"]]
    per_review = {review["id"]: lists for review, lists in zip(reviews, by_hand, strict=True)}
    editorial = VOCABULARY | {"per_review": per_review}
    document = compute_insights(reviews, editorial, annotated(reviews, *by_model))

    def mentions(number: int, kind: str) -> list[Any]:
        owned = by_hand[number].get(kind)
        return (by_model[number].get(kind) or []) if owned is None else owned

    for aspect in document["aspects"]:
        joint = []
        for number in range(len(stars)):
            same = [mention for mention in mentions(number, "aspects") if mention["id"] == aspect["id"]]
            values = {mention["sentiment"] for mention in same}
            if values:
                different = values - {"neutral"}
                joint.append(different.pop() if len(different) == 1 else "neutral")
        count, counts = len(joint), [joint.count(sentiment) for sentiment in SENTIMENTS]
        assert [aspect[f"{sentiment}_count"] for sentiment in SENTIMENTS] == counts
        assert aspect["mention_count"] == count == sum(counts)
        assert aspect["positive_pct"] == (round(100 * counts[0] / count, 1) if count else None)
        assert aspect["score"] == (round((counts[0] - counts[2]) / count, 2) if count else None)
    (desk,), (person,) = document["topics"], document["entities"]["technicians"]
    owned = [lists.get("technicians") for lists in by_hand]  # else the alias is in the text
    of_desk = [star for n, star in enumerate(stars) if "desk" in mentions(n, "topics")]
    of_person = [star for n, star in enumerate(stars) if owned[n] is None or "Hana I." in owned[n]]
    for entry, ratings in ((desk, of_desk), (person, of_person)):
        scores = [(star - 3) / 2 for star in ratings]
        assert entry["mention_count"] == len(ratings)
        assert entry["score"] == (round(sum(scores) / len(scores), 2) + 0.0 if scores else None)
    INSIGHTS_FILE.validate(document)


def test_an_entry_without_aliases_has_figures_once_somebody_looked_for_it() -> None:
    reviews = rated(5, 1, text="Hana")
    editorial = VOCABULARY | {"entities": {"services": [{"id": "s", "label": "S"}]}}

    def counts(*arguments: Any) -> list[Any]:
        document = compute_insights(reviews, *arguments)
        lists = [document["aspects"], document["topics"], document["entities"]["services"]]
        return [entry.get("mention_count") for entries in lists for entry in entries]

    assert counts(editorial) == [None, None, None, None]
    assert counts(editorial, annotated(reviews, *[{"failed": "no answer"}] * 2)) == [None] * 4
    lists = {"aspects": [praise()]}, {"failed": "no answer"}
    annotations = annotated(reviews, *lists, keys=["aspects/price", "topics/desk"])
    assert counts(editorial, annotations) == [1, None, 0, None]
    by_hand = {"per_review": {"999": {"aspects": []}, "gone": {"services": ["s"]}}}
    assert counts(editorial | by_hand, annotations) == [0, 0, 0, None]


REVIEWS = rated(5, 4, text="Cheap")
ANNOTATIONS = annotated(REVIEWS, *[{"aspects": [praise()], "technicians": ["hana"], "score": -1}] * 2)
ANNOTATIONS["vocabularies"]["w"] = ["aspects/wait"]
ANNOTATIONS["reviews"]["gone"] = ANNOTATIONS["reviews"]["999"] | {"vocabulary": "w"}
CURRENT = ANNOTATIONS["reviews"]["998"]
EDITED = [REVIEWS[0] | {"text": "Cheap!"}, REVIEWS[1]]


def test_an_annotation_counts_while_its_review_has_the_text_read() -> None:
    document = compute_insights(EDITED, VOCABULARY, ANNOTATIONS)
    assert [entry.get("mention_count") for entry in document["aspects"]] == [1, 0]
    assert [lists["technicians"] for lists in document["per_review"].values()] == [[], ["Hana I."]]
    assert document["per_review"]["998"]["score"] == 0.5, "only a person may change it"


def test_insights_name_the_model_that_read_reviews() -> None:
    document = compute_insights(REVIEWS, VOCABULARY, ANNOTATIONS)
    assert document["model"] == f"{MODEL}; reviews read by m" and insights.language_models(document) == "m"
    unread = compute_insights(REVIEWS, VOCABULARY, annotated(REVIEWS, *[{"failed": "no answer"}] * 2))
    assert insights.language_models(unread) == insights.language_models({}) == ""


@pytest.mark.parametrize(("reviews", "ids"), [(EDITED, ["998"]), ([], [])])
def test_outdated_annotations_leave_nothing_behind(reviews: list[Any], ids: list[str]) -> None:
    document = insights.current_annotations(reviews, ANNOTATIONS)
    used = {"v": insights.entry_keys(VOCABULARY)} if ids else {}
    assert document == {"vocabularies": used, "reviews": dict.fromkeys(ids, CURRENT)}


@pytest.mark.parametrize(("said", "keeps"), [({"failed": "cut off"}, True), ({"topics": ["desk"]}, False)])
def test_a_failed_annotation_keeps_the_lists_of_the_text(said: Object, keeps: bool) -> None:
    lists = dict.fromkeys(["998", "999"], said)
    document = insights.extended_annotations(ANNOTATIONS, EDITED, lists, VOCABULARY, "n")
    new = document["reviews"]["998"]
    assert new == (CURRENT if keeps else {}) | said | {
        key: new[key] for key in CURRENT.keys() - {"aspects", "technicians", "score"}
    }
    assert new["model"] == "n" and "aspects" not in document["reviews"]["999"], "its text is another"
    assert document["vocabularies"][new["vocabulary"]] == insights.entry_keys(VOCABULARY)
    assert insights.unread_reviews(EDITED, VOCABULARY, document) == []


@pytest.mark.parametrize(
    ("text", "lists", "keys", "by_hand", "is_unread"),
    [
        ("Cheap", None, None, {}, True),
        ("Cheap", {}, None, {}, False),
        ("Cheap", {}, [*insights.entry_keys(VOCABULARY), "topics/removed"], {}, False),
        ("Cheap", {}, insights.entry_keys(VOCABULARY)[1:], {}, True),  # an entry is new
        ("Cheap", {"failed": "cut off"}, None, {}, False),
        (" ", None, None, {}, False),
        (None, None, None, {}, False),
        ("Cheap", None, None, {"aspects": [], "topics": [], "technicians": []}, False),
        ("Cheap", None, None, {"aspects": [], "topics": [], "services": []}, True),
    ],
)
def test_a_review_with_words_is_unread_until_it_was_read_with_every_entry(
    text: str | None, lists: Object | None, keys: Any, by_hand: Object, is_unread: bool
) -> None:
    reviews, editorial = rated(5, text=text), VOCABULARY | {"per_review": {"999": by_hand}}
    annotations = {} if lists is None else annotated(reviews, lists, keys=keys)
    assert insights.unread_reviews(reviews, editorial, annotations) == (reviews if is_unread else [])


@pytest.mark.parametrize(("text", "again"), [("New", False), ("Cheap", True)])
def test_an_edited_review_and_again_a_failed_one_are_unread(text: str, again: bool) -> None:
    annotations = annotated(rated(5, text="Cheap"), {"failed": "cut off"})
    reviews = rated(5, text=text)
    assert insights.unread_reviews(reviews, VOCABULARY, annotations, again=again) == reviews


def test_unknown_names_and_phrases_are_left_out_and_named_once() -> None:
    reviews = rated(5, 4, text="Cheap, and fast")
    lists = {"aspects": [praise(phrase="Cheap"), praise(phrase="cheap"), praise("?")], "topics": ["?"]}
    annotations = annotated(reviews, lists, lists)
    editorial = VOCABULARY | {"per_review": {"999": {"technicians": ["Bo"]}}}
    document = compute_insights(reviews, editorial, annotations)
    assert document["aspects"][0]["top_phrases"] == ["Cheap"]
    assert [lists.get("topics") for lists in document["per_review"].values()] == [[], []]
    assert {mention["id"] for mention in document["per_review"]["998"]["aspects"]} == {"price"}
    assert list(insights.left_out(reviews, editorial, annotations)) == [
        'aspects: "?" has no entry and is not counted, in 2 review(s)',
        'technicians: "Bo" has no entry and is not counted, in 1 review(s)',
        'topics: "?" has no entry and is not counted, in 2 review(s)',
        '"cheap" is not in its review and is not shown, in 2 review(s)',
    ]
    assert list(insights.left_out(reviews, VOCABULARY, annotated(reviews, {}, {}))) == []


# ---- Phrases ----


@pytest.mark.parametrize(
    ("mentions", "phrases"),
    [
        ("+a +b +c +d +e", "abcd"),  # the newest
        ("+a +b +c +d +e +e", "eabc"),  # the most frequent first
        ("+a +b +c +d -e", "abce"),  # the minority has a voice
        ("-a -b -c -d +e", "abce"),
        ("-a +b +c", "bca"),
        ("0a +b", "ba"),
        ("0a -b -c", "bca"),
        ("+a +A +b", "ab"),  # the same in another case, as the newest writes it
        ("+a -b", "ab"),
        ("", ""),
    ],
)
def test_phrases_are_the_most_frequent_and_one_of_the_minority(mentions: str, phrases: str) -> None:
    sentiments = {"+": "positive", "0": "neutral", "-": "negative"}
    pairs = mentions.split()
    reviews = [review | {"text": "abcdeA"} for review in rated(*[5] * len(pairs))]
    lists = [{"aspects": [praise("price", sentiments[sign], phrase)]} for sign, phrase in pairs]
    (price, _) = compute_insights(reviews, VOCABULARY, annotated(reviews, *lists))["aspects"]
    assert price.get("top_phrases") == (list(phrases) if mentions else None)


def test_an_aspect_shows_a_review_that_criticizes_it_whatever_its_stars() -> None:
    reviews = rated(*[5] * 6, text=LONG)
    lists = [{"aspects": [praise(sentiment="positive" if n < 5 else "negative")]} for n in range(6)]
    (price, _) = compute_insights(reviews, VOCABULARY, annotated(reviews, *lists))["aspects"]
    assert price["example_review_ids"] == ["999", "998", "997", "994"]


# ---- Judgement ----

TWO = {
    "entities": {"technicians": [{"id": "a", "label": "A"}, {"id": "b", "label": "B", "aliases": ["Hana"]}]}
}
FIRST, SECOND = "entities/technicians/0", "entities/technicians/1"
TAKEN = f" already belongs to /{FIRST}"


@pytest.mark.parametrize(
    ("path", "value", "fault_path", "reason"),
    [
        (f"{FIRST}/aliases", ["x", " HANA\n"], f"{SECOND}/aliases/0", f'"Hana"{TAKEN}'),
        (f"{FIRST}/id", "b", f"{SECOND}/id", f'"b"{TAKEN}'),
        (f"{FIRST}/label", "B", f"{SECOND}/label", f'"B"{TAKEN}'),
        ("aspects", [{"aliases": ["x"]}], "aspects/0/aliases", None),
        ("entities/products", [{"aliases": []}], "entities/products/0/aliases", None),
        (f"{FIRST}/own", {"aliases": ["x"]}, f"{FIRST}/own/aliases", None),
        ("aliases", None, "aliases", None),
    ],
)
def test_names_of_two_entries_and_misplaced_aliases_are_faults(
    path: str, value: Any, fault_path: str, reason: str | None
) -> None:
    editorial = small.changed(TWO, small.steps(path), value)
    kinds = ", ".join(ENTITY_KINDS)
    expected = reason or f"aliases belong to entries of {kinds} only"
    assert list(insights.name_violations(editorial)) == [(tuple(small.steps(fault_path)), expected)]
    assert list(insights.name_violations(TWO)) == []


def test_a_name_may_be_of_two_kinds_and_be_listed_twice() -> None:
    entries = [{"id": "a", "label": "A", "aliases": ["x", "X"]}]
    both = {"entities": {"services": entries, "problems": [*entries, {"id": "b", "label": "A"}]}}
    assert list(insights.name_violations(both)) == []


@given(value=small.any_json)
@example(value=[5])
def test_any_json_document_can_be_validated(value: Any) -> None:
    for path in ("entities", "entities/technicians", f"{FIRST}/aliases", f"{FIRST}/id"):
        list(insights.name_violations(small.changed(TWO, small.steps(path), value)))
    list(insights.name_violations(value))


@pytest.mark.parametrize(
    ("path", "value", "reasons"),
    [
        (FIRST + "/aliases", ["Hana"], []),
        (FIRST + "/aliases", None, []),
        (FIRST + "/aliases", "Hana", ['"Hana" is not an array or null']),
        (FIRST + "/aliases", [" \n"], ['" \\n" is not text that is not blank']),
        (FIRST + "/id", ABSENT, ["'id' is a required property"]),
        (FIRST + "/label", ABSENT, ["'label' is a required property"]),
        ("per_review", {"x": {"score": 2}}, ["2 is greater than the maximum of 1"]),
    ],
)
def test_the_editorial_file_has_the_form_of_insights_with_aliases(
    path: str, value: Any, reasons: list[str]
) -> None:
    violations = CONTRACT.editorial_file.violations(small.changed(TWO, small.steps(path), value))
    assert [reason for _, reason in violations] == reasons


def test_faults_of_the_editorial_file_are_reported_together() -> None:
    def read(value: Object) -> tuple[Any, list[str]]:
        data = small.file_bytes(value)
        document, faults = read_file("e.json", data, CONTRACT.editorial_file, insights.name_violations)
        return document, [str(fault) for fault in faults]

    unfinished = TWO | {"per_review": {"x": {"score": None}}, "faq": None}
    assert read(unfinished) == (unfinished, [])
    wrong = small.changed(TWO, small.steps(f"{FIRST}/aliases"), ["hana", 5]) | {"generated_at": "2026-02-30"}
    nothing, faults = read(wrong)
    assert nothing == {}
    assert faults == [
        "e.json /entities/technicians/0/aliases/1: 5 is not a string",
        f'e.json /{SECOND}/aliases/0: "Hana"{TAKEN}',
        'e.json /generated_at: "2026-02-30" is not a day that exists, written YYYY-MM-DD, '
        "or an RFC 3339 date-time on such a day",
    ]


def test_unknown_ids_and_phrases_of_no_review_are_reported() -> None:
    reviews = rated(5, text="A \u201cnew\u201d door,\nvery  GOOD")
    editorial = entry(aliases=["x"], example_review_ids=["999", "y"], top_phrases=["very good", "bad"]) | {
        "pull_quote": "\u201cVery good\u201d",
        "faq": [{"question": "?", "answer": "!", "review_ids": ["z"]}],
        "topics": [{"id": "t", "label": "T", "example_review_ids": ["999"]}],
        "per_review": {"999": {}, "w": {"score": 1}},
        "own": {"review_ids": [[1], None]},
        "proposed_summary_review_ids": ["999", "v"],
        "proposed_pull_quote": "bad",
    }
    person = ("entities", "technicians", 0)
    assert list(insights.stale_references(reviews, editorial)) == [
        ((*person, "example_review_ids", 1), 'no review with the id "y" is served'),
        ((*person, "top_phrases", 1), '"bad" is in no review'),
        (("faq", 0, "review_ids", 0), 'no review with the id "z" is served'),
        (("per_review", "w"), 'no review with the id "w" is served'),
        (("proposed_summary_review_ids", 1), 'no review with the id "v" is served'),
        (("proposed_pull_quote",), '"bad" is in no review'),
    ]
    assert list(insights.stale_references(reviews, {"pull_quote": "none", "entities": None})) == [
        (("pull_quote",), '"none" is in no review')
    ]
