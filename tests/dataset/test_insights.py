"""Counted insights follow their definitions, and nothing that the owner wrote is lost.

Plain definition - The sample - Document - Mentions, examples and phrases - What the owner writes -
Annotations - Validation
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import small_files as small
from lab.small_files import CONTRACT, Object

from reviewslib.dataset import editorial_rules, insights, mentions, vocabulary
from reviewslib.dataset.insights import (
    COUNTED,
    COUNTED_KEYS,
    FROM_NAMES,
    compute_insights,
)
from reviewslib.dataset.mentions import value_digest
from reviewslib.dataset.reviews import served_reviews
from reviewslib.dataset.vocabulary import ENTITY_KINDS

SENTIMENTS = ["positive", "neutral", "negative"]
VOCABULARY: Object = {
    "aspects": [{"id": "price", "label": "Price"}, {"id": "wait", "label": "Waiting"}],
    "topics": [{"id": "desk", "label": "Desk"}],
    "entities": {
        "technicians": [{"id": "hana", "label": "Hana I.", "aliases": ["Hana"]}]
    },
}


def verified(*reviews: Object) -> list[Any]:
    """Reviews as they are served."""
    return served_reviews(
        CONTRACT.reviews_file.complete(small.a_file(*reviews))["reviews"], {}
    )


def rated(*ratings: float, **members: Any) -> list[Any]:
    """Reviews of so many stars, newest first, with the ids 999, 998 and so on."""
    return verified(
        *(
            small.review(f"{999 - n}", rating=stars, **members)
            for n, stars in enumerate(ratings)
        )
    )


def texted(*texts: str | None, stars: float = 5) -> list[Any]:
    """Reviews with these texts, as `rated`."""
    return [
        review | {"text": text}
        for review, text in zip(rated(*[stars] * len(texts)), texts, strict=True)
    ]


def technician(reviews: list[Any], **members: Any) -> Object:
    """The entry of a person with these members, counted in `reviews`."""
    editorial = {
        "entities": {"technicians": [{"id": "hana", "label": "Hana I."} | members]}
    }
    (person,) = compute_insights(reviews, editorial)["entities"]["technicians"]
    return person


def price(reviews: list[Any], *lists: Object) -> Object:
    """The entry of the aspect `price` after the model said these lists of `reviews`."""
    entry, _ = compute_insights(reviews, VOCABULARY, annotated(reviews, *lists))[
        "aspects"
    ]
    return entry


def praise(
    aspect: str = "price", sentiment: str = "positive", phrase: str | None = None
) -> Object:
    return {"id": aspect, "sentiment": sentiment, "phrase": phrase}


def annotated(reviews: list[Any], *lists: Object, keys: Any = None) -> Object:
    """An AnnotationsFile in which the model m read these reviews, with these lists."""
    annotations = {
        review["id"]: {
            "text_digest": mentions.text_digest(review),
            "vocabulary": "v",
            "model": "m",
        }
        | members
        for review, members in zip(reviews, lists, strict=True)
    }
    asked = vocabulary.entry_keys(VOCABULARY) if keys is None else keys
    return {"vocabularies": {"v": asked}, "reviews": annotations}


# ---- Plain definition, for reviews whose text is "Hana" or absent ----


def mean(figures: Sequence[float]) -> float | None:
    return round(sum(figures) / len(figures), 2) + 0.0 if figures else None


def percent(part: int, total: int) -> float | None:
    return round(100 * part / total, 1) if total else None


def of_stars(stars: float) -> str:
    return "positive" if stars >= 4 else "negative" if stars <= 2 else "neutral"


def items(said: Object, kind: str) -> list[Any]:
    """The list of a review by hand, else the one by the model and by aliases."""
    if said["by_hand"].get(kind) is not None:
        return said["by_hand"][kind]
    found = said["by_model"].get(kind) or []
    if kind == "technicians":
        return ["Hana I."] if "hana" in found or said["text"] == "Hana" else []
    return found


def score(said: Object) -> float:
    by_hand = said["by_hand"].get("score")
    return (said["rating"] - 3) / 2 if by_hand is None else by_hand


def aspect_figures(all_said: list[Object], id: str) -> Object:
    sentiments = []
    for said in all_said:
        mentions = {
            item["sentiment"] for item in items(said, "aspects") if item["id"] == id
        }
        different = mentions - {"neutral"}
        sentiments += (
            [different.pop() if len(different) == 1 else "neutral"] if mentions else []
        )
    positive, neutral, negative = map(sentiments.count, SENTIMENTS)
    counts = {
        "positive_count": positive,
        "neutral_count": neutral,
        "negative_count": negative,
    }
    average = mean([1] * positive + [0] * neutral + [-1] * negative)
    shares = {"positive_pct": percent(positive, len(sentiments)), "score": average}
    return {"mention_count": len(sentiments)} | counts | shares


def figures(all_said: list[Object], kind: str, name: str) -> Object:
    mentions = [said for said in all_said if name in items(said, kind)]
    rating = (
        {"average_rating": mean([said["rating"] for said in mentions])}
        if kind != "topics"
        else {}
    )
    return {
        "mention_count": len(mentions),
        "score": mean([*map(score, mentions)]),
    } | rating


ASPECTS = st.builds(
    praise, st.sampled_from(["price", "wait", "?"]), st.sampled_from(SENTIMENTS)
)


def lists(technicians: list[str], **more: Any) -> Any:
    kinds = {
        "aspects": ASPECTS,
        "topics": st.sampled_from(["desk", "?"]),
        "technicians": st.sampled_from(technicians),
    }
    optional = {
        kind: st.none() | st.lists(item, max_size=3) for kind, item in kinds.items()
    }
    return st.fixed_dictionaries({}, optional=optional | more)


SAID = st.fixed_dictionaries(
    {
        "rating": st.sampled_from([1, 2, 2.5, 3, 3.5, 4, 5]),
        "text": st.sampled_from(["Hana", None]),
        "by_hand": lists(["Hana I.", "?"], score=st.sampled_from([None, 0, 0.25, -1])),
        "by_model": lists(["hana", "?"]),
    }
)


@given(all_said=st.lists(SAID, min_size=1, max_size=12))
def test_figures_of_annotations_equal_their_plain_definition(
    all_said: list[Object],
) -> None:
    reviews = rated(*(said["rating"] for said in all_said))
    per_review = {}
    for review, said in zip(reviews, all_said, strict=True):
        review["text"] = said["text"]
        per_review[review["id"]] = said["by_hand"]
    annotations = annotated(reviews, *(said["by_model"] for said in all_said))
    arguments = reviews, VOCABULARY | {"per_review": per_review}, annotations
    before = json.dumps(arguments)
    document = compute_insights(*arguments)
    assert json.dumps(arguments) == before and "aliases" not in json.dumps(document)
    for aspect in document["aspects"]:
        assert aspect_figures(all_said, aspect["id"]).items() <= aspect.items()
    (desk,), (hana,) = document["topics"], document["entities"]["technicians"]
    assert desk.keys() == {
        "id",
        "label",
        "mention_count",
        "score",
        "example_review_ids",
    }
    assert figures(all_said, "topics", "desk").items() <= desk.items()
    assert figures(all_said, "technicians", "Hana I.").items() <= hana.items()
    stars = [of_stars(said["rating"]) for said in all_said]
    shares = {
        f"{name}_pct": percent(stars.count(name), len(stars)) for name in SENTIMENTS
    }
    assert (
        document["overall_sentiment"]
        == {"score": mean([*map(score, all_said)])} | shares
    )
    small.file_validator("InsightsFile").validate(document)


# ---- The sample ----

SAMPLE = verified(
    *json.loads((small.ROOT / "data" / "reviews.json").read_bytes())["reviews"]
)
WRITTEN: Object = json.loads((small.ROOT / "data" / "insights.json").read_bytes())
OWN = {key: value for key, value in WRITTEN.items() if key not in COUNTED_KEYS}


def test_the_sample_has_no_stale_reference_and_nothing_to_read() -> None:
    assert not [
        *editorial_rules.name_violations(OWN),
        *editorial_rules.stale_references(SAMPLE, OWN),
    ]
    assert not [
        *mentions.left_out(SAMPLE, OWN, {}),
        *mentions.unread_reviews(SAMPLE, OWN, {}),
    ]


def test_counting_the_sample_with_its_own_figures_changes_nothing() -> None:
    stamps = {key: WRITTEN[key] for key in ("version", "generated_at")}
    assert compute_insights(SAMPLE, OWN) | stamps == WRITTEN | {
        "model": COUNTED + FROM_NAMES
    }


def test_the_sample_counted_from_its_own_annotations_has_its_own_figures() -> None:
    def bare(entries: list[Object]) -> list[Object]:
        return [
            {"id": entry["id"], "label": entry["label"]} for entry in reversed(entries)
        ]

    def counted(document: Object) -> list[Any]:
        entries = [
            document["aspects"],
            document["topics"],
            *map(document["entities"].get, ENTITY_KINDS),
        ]
        chosen = {"top_phrases", "example_review_ids", "summary"}
        return [
            [{key: entry[key] for key in entry.keys() - chosen} for entry in kind]
            for kind in entries
        ]

    editorial = OWN | {kind: bare(WRITTEN[kind]) for kind in ("aspects", "topics")}
    editorial["entities"] = {
        kind: bare(entries) for kind, entries in WRITTEN["entities"].items()
    }
    assert counted(compute_insights(SAMPLE, editorial)) == counted(WRITTEN)


# ---- Document ----


def test_the_version_grows_with_every_change_and_an_edit_is_detected() -> None:
    then = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    now = datetime(2026, 2, 1, tzinfo=UTC)
    counted = compute_insights(SAMPLE)
    later = compute_insights(SAMPLE[1:], {"own": 1})
    first = insights.refresh_insights({}, counted, then)
    stamped = {"version": 1, "generated_at": "2026-01-02T03:04:05Z"} | counted
    assert first == stamped | {"counted_digest": value_digest(stamped)}
    assert insights.refresh_insights(first, counted, now) == first
    second = json.loads(json.dumps(insights.refresh_insights(first, later, now)))
    assert (second["version"], second["generated_at"]) == (2, "2026-02-01T00:00:00Z")
    assert insights.is_counted(second) and not insights.is_edited(second)
    assert insights.is_edited(second | {"summary": "Best"}) and insights.is_edited(
        stamped
    )
    assert not insights.is_counted(WRITTEN) and not insights.is_counted({"model": None})


def test_means_use_exact_sums_and_are_never_minus_zero() -> None:
    by_hand = {
        "per_review": {
            "999": {"score": 0.1},
            "998": {"score": 0.2},
            "997": {"score": -0.304},
        }
    }
    score = compute_insights(rated(5, 5, 1), by_hand)["overall_sentiment"]["score"]
    assert json.dumps(score) == "0.0"
    scores = compute_insights(rated(4.6, 4.125))["per_review"]
    assert (scores["999"]["score"], scores["998"]["score"]) == (0.8, 0.56)


def test_every_month_between_the_first_and_the_last_is_there() -> None:
    dates = {"0002-02-28T23:59:59-08:00": 5, "0001-12-31": 3.5, "0001-12-02": 2}
    document = compute_insights(
        verified(*(small.review(d, date=d, rating=dates[d]) for d in dates))
    )
    assert document["date_range"] == {"earliest": "0001-12-02", "latest": "0002-02-28"}
    assert document["temporal"]["monthly"] == [
        {"month": "0001-12", "review_count": 2, "average_rating": 2.75, "score": -0.12},
        {"month": "0002-01", "review_count": 0, "average_rating": None, "score": None},
        {"month": "0002-02", "review_count": 1, "average_rating": 5, "score": 1},
    ]


TRENDS = [
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
]


@pytest.mark.parametrize(("late", "early", "trend"), TRENDS)
def test_the_trend_needs_enough_reviews_a_change_and_no_noise(
    late: list[float], early: list[float], trend: str | None
) -> None:
    days = [
        "2026-10-31",
        *["2025-11-01"] * (len(late) - 1),
        *["2025-10-31", "2024-11-01"] * len(early),
    ]
    dated = zip(
        [*late, *early], days, strict=False
    )  # two years that end with the newest month
    reviews = [
        small.review(f"{n}", rating=stars, date=day)
        for n, (stars, day) in enumerate(dated)
    ]
    assert compute_insights(verified(*reviews))["temporal"]["trend"] == trend


# ---- Mentions, examples and phrases ----


def test_only_aliases_count_once_per_review_and_not_in_replies() -> None:
    reviews = texted("MS\nISHIKAWA, Tobi", "Hana I.", "Tobias", None)
    replied = [
        review | {"owner_reply": {"text": "Tobi thanks you"}} for review in reviews
    ]
    assert technician(replied, aliases=["Tobi", "ms Ishikawa"])["mention_count"] == 1


LONG = "Hana " + "x" * 35
SHORT = LONG[:-1]
EXAMPLES = [  # stars and texts: L and S
    ("5L 5L 5L 5L 5L 5L", "0123"),
    ("5S 5L 5L 5L 5L 5L", "1234"),
    ("5L 5L 5L 5L 5L 2S 1L", "0125"),  # the newest negative, however short
    ("2L 5L 5L 5L 5L 5L 1L", "0123"),
    ("5L 1S", "01"),
]


@pytest.mark.parametrize(("mentions", "chosen"), EXAMPLES)
def test_examples_are_the_newest_long_reviews_and_a_negative_one(
    mentions: str, chosen: str
) -> None:
    pairs = mentions.split()
    reviews = texted(*(LONG if text == "L" else SHORT for _, text in pairs))
    reviews = [
        review | {"rating": int(stars)}
        for review, (stars, _) in zip(reviews, pairs, strict=True)
    ]
    examples = technician(reviews, aliases=["Hana"])["example_review_ids"]
    assert examples == [reviews[int(position)]["id"] for position in chosen]


PHRASES = [
    ("+a +b +c +d +e", "abcd"),  # the newest
    ("+a +b +c +d +e +e", "eabc"),  # the most frequent first
    ("+a +b +c +d -e", "abce"),  # the minority has a voice
    ("-a -b -c -d +e", "abce"),
    ("-a +b +c", "bca"),
    ("0a +b", "ba"),
    ("0a -b -c", "bca"),
    ("+a +A +b", "ab"),  # the same in another case, as the newest writes it
    ("+a -b", "ab"),
    ("+a +b -c -d", "abcd"),
]


@pytest.mark.parametrize(("mentions", "phrases"), PHRASES)
def test_phrases_are_the_most_frequent_and_one_of_the_minority(
    mentions: str, phrases: str
) -> None:
    sentiments = {"+": "positive", "0": "neutral", "-": "negative"}
    lists = [
        {"aspects": [praise("price", sentiments[sign], phrase)]}
        for sign, phrase in mentions.split()
    ]
    assert price(texted(*["abcdeA"] * len(lists)), *lists)["top_phrases"] == list(
        phrases
    )


# ---- What the owner writes ----

FIGURES = ["mention_count", "average_rating", "score", "positive_pct"]
FIGURES += [f"{sentiment}_count" for sentiment in SENTIMENTS]
KEPT = [
    (
        {"mention_count": 9, "score": -0.5},
        {"mention_count": 9, "score": -0.5},
    ),  # no aliases: untouched
    ({"aliases": None, "mention_count": 9}, {"mention_count": 9}),
    *[({"aliases": ["Hana"], figure: 0.5}, {figure: 0.5}) for figure in FIGURES],
    (
        {"aliases": ["Hana"], "score": None},
        {"mention_count": 1, "average_rating": 5, "score": 1},
    ),
    ({"aliases": ["Hana"], "example_review_ids": []}, {"example_review_ids": []}),
    (
        {"aliases": ["Hana"], "example_review_ids": None},
        {"example_review_ids": ["999"]},
    ),
    (
        {"aliases": ["Hana"], "top_phrases": ["y"], "own": 1},
        {"top_phrases": ["y"], "own": 1},
    ),
]


@pytest.mark.parametrize(("written", "kept"), KEPT)
def test_an_entry_is_counted_unless_it_has_figures_of_its_own(
    written: Object, kept: Object
) -> None:
    person = technician(rated(5, text=LONG), **written)
    assert kept.items() <= person.items() and "aliases" not in person
    assert person.keys() == {"id", "label", *kept} or not any(
        written.get(figure) for figure in FIGURES
    )


def test_what_a_person_wrote_is_kept_but_for_what_is_counted() -> None:
    of_reviews = {
        "999": {"own": None, "aspects": [{"id": "x", "sentiment": "neutral"}]},
        "gone": {"score": 1},
    }
    by_hand = {
        "summary": "",
        "topics": [{"id": "t", "label": "T"}],
        "own": {"a": [1]},
        "pull_quote": None,
    }
    proposed = {"proposed_summary": "x", "proposed_entities": VOCABULARY["entities"]}
    wrong = dict.fromkeys(COUNTED_KEYS, "by hand")
    assert wrong.keys() == {
        "version",
        "generated_at",
        "counted_digest",
        *compute_insights([]),
    } - {*("entities", "per_review")}
    document = compute_insights(
        rated(5), by_hand | wrong | proposed | {"per_review": of_reviews}
    )
    said = {"score": 1} | {kind: [] for kind in ENTITY_KINDS} | of_reviews["999"]
    assert document == compute_insights(rated(5), {"entities": None}) | by_hand | {
        "per_review": {"999": said}
    }


# ---- Annotations ----


def test_an_entry_without_aliases_has_figures_once_somebody_looked_for_it() -> None:
    reviews = rated(5, 1, text="Hana")
    failed = {"failed": "no answer"}
    editorial = VOCABULARY | {"entities": {"services": [{"id": "s", "label": "S"}]}}

    def counts(*arguments: Any) -> list[Any]:
        document = compute_insights(reviews, *arguments)
        lists = [
            document["aspects"],
            document["topics"],
            document["entities"]["services"],
        ]
        return [entry.get("mention_count") for entries in lists for entry in entries]

    assert (
        counts(editorial)
        == counts(editorial, annotated(reviews, failed, failed))
        == [None] * 4
    )
    annotations = annotated(
        reviews, {"aspects": [praise()]}, failed, keys=["aspects/price", "topics/desk"]
    )
    assert counts(editorial, annotations) == [1, None, 0, None]
    by_hand = {"per_review": {"999": {"aspects": []}, "gone": {"services": ["s"]}}}
    assert counts(editorial | by_hand, annotations) == [0, 0, 0, None]


KEYS = vocabulary.entry_keys(VOCABULARY)
REVIEWS = rated(5, 4, text="Cheap")
ANNOTATIONS = annotated(
    REVIEWS, *[{"aspects": [praise()], "technicians": ["hana"], "score": -1}] * 2
)
ANNOTATIONS["vocabularies"]["w"] = ["aspects/wait"]
ANNOTATIONS["reviews"]["gone"] = ANNOTATIONS["reviews"]["999"] | {"vocabulary": "w"}
CURRENT = ANNOTATIONS["reviews"]["998"]
EDITED = [REVIEWS[0] | {"text": "Cheap!"}, REVIEWS[1]]


def test_an_annotation_counts_while_its_review_has_the_text_read() -> None:
    document = compute_insights(EDITED, VOCABULARY, ANNOTATIONS)
    assert [entry.get("mention_count") for entry in document["aspects"]] == [1, 0]
    assert [lists["technicians"] for lists in document["per_review"].values()] == [
        [],
        ["Hana I."],
    ]
    assert document["per_review"]["998"]["score"] == 0.5, "only a person may change it"
    assert (
        document["model"] == f"{COUNTED}{FROM_NAMES}; reviews read by m"
        and insights.language_models(document) == "m"
    )
    failed = compute_insights(
        REVIEWS, VOCABULARY, annotated(REVIEWS, *[{"failed": "no answer"}] * 2)
    )
    assert insights.language_models(failed) == insights.language_models({}) == ""


@pytest.mark.parametrize(("reviews", "ids"), [(EDITED, ["998"]), ([], [])])
def test_outdated_annotations_leave_nothing_behind(
    reviews: list[Any], ids: list[str]
) -> None:
    document = mentions.current_annotations(reviews, ANNOTATIONS)
    assert document == {
        "vocabularies": {"v": KEYS} if ids else {},
        "reviews": dict.fromkeys(ids, CURRENT),
    }


@pytest.mark.parametrize(
    ("said", "keeps"), [({"failed": "cut off"}, True), ({"topics": ["desk"]}, False)]
)
def test_a_failed_annotation_keeps_the_earlier_lists_of_the_same_text(
    said: Object, keeps: bool
) -> None:
    lists = dict.fromkeys(["998", "999"], said)
    document = mentions.extended_annotations(ANNOTATIONS, EDITED, lists, KEYS, "n")
    new = document["reviews"]["998"]
    source = {
        "text_digest": CURRENT["text_digest"],
        "vocabulary": value_digest(KEYS),
        "model": "n",
    }
    assert new == (CURRENT if keeps else {}) | source | said
    assert document["reviews"].keys() == ANNOTATIONS["reviews"].keys()
    assert "aspects" not in document["reviews"]["999"], "its text has changed"
    assert document["vocabularies"] == ANNOTATIONS["vocabularies"] | {
        value_digest(KEYS): KEYS
    }
    assert mentions.unread_reviews(EDITED, VOCABULARY, document) == []


BY_HAND: Object = {"aspects": [], "topics": []}
UNREAD = [
    (True, "Cheap", {}),
    (False, "Cheap", {"lists": {}}),
    (True, "New", {"lists": {}}),
    (False, "Cheap", {"lists": {}, "keys": [*KEYS, "topics/removed"]}),
    (True, "Cheap", {"lists": {}, "keys": KEYS[1:]}),  # an entry is new
    (False, "Cheap", {"lists": {"failed": "cut off"}}),
    (True, "Cheap", {"lists": {"failed": "cut off"}, "again": True}),
    (False, "Cheap", {"lists": {}, "again": True}),
    (False, " ", {}),
    (False, None, {}),
    (False, "Cheap", {"by_hand": BY_HAND | {"technicians": []}}),
    (True, "Cheap", {"by_hand": BY_HAND | {"services": []}}),
]


@pytest.mark.parametrize(("is_unread", "text", "case"), UNREAD)
def test_a_review_with_words_is_unread_until_it_was_read_with_every_entry(
    is_unread: bool, text: str | None, case: Object
) -> None:
    reviews = rated(5, text=text)
    editorial = VOCABULARY | {"per_review": {"999": case.get("by_hand")}}
    then = rated(5, text="Cheap")
    annotations = (
        annotated(then, case["lists"], keys=case.get("keys")) if "lists" in case else {}
    )
    unread = mentions.unread_reviews(
        reviews, editorial, annotations, again=case.get("again", False)
    )
    assert unread == (reviews if is_unread else [])


def test_unknown_names_and_phrases_are_left_out_and_named_once() -> None:
    reviews = rated(5, 4, text="Cheap, and fast")
    lists = {
        "aspects": [praise(phrase="Cheap"), praise(phrase="cheap"), praise("?")],
        "topics": ["?"],
    }
    annotations = annotated(reviews, lists, lists)
    editorial = VOCABULARY | {"per_review": {"999": {"technicians": ["Bo"]}}}
    document = compute_insights(reviews, editorial, annotations)
    assert document["aspects"][0]["top_phrases"] == ["Cheap"]
    assert [lists.get("topics") for lists in document["per_review"].values()] == [
        [],
        [],
    ]
    assert document["per_review"]["998"]["aspects"] == [
        praise(phrase="Cheap"),
        {"id": "price", "sentiment": "positive"},
    ]
    assert list(mentions.left_out(reviews, editorial, annotations)) == [
        'aspects: "?" has no entry and is not counted, in 2 review(s)',
        'technicians: "Bo" has no entry and is not counted, in 1 review(s)',
        'topics: "?" has no entry and is not counted, in 2 review(s)',
        'phrases that are not in their review: 2, such as "cheap"',
    ]
    assert (
        list(mentions.left_out(reviews, VOCABULARY, annotated(reviews, {}, {}))) == []
    )


# ---- Validation ----

FIRST = "entities/technicians/0"
SECOND = "entities/technicians/1"
PEOPLE = [{"id": "a", "label": "A"}, {"id": "b", "label": "B", "aliases": ["Hana"]}]
TWO = {"entities": {"technicians": PEOPLE}}
TAKEN = f" already belongs to /{FIRST}"
MISPLACED = f"aliases belong to entries of {', '.join(ENTITY_KINDS)} only"
FAULTS = [
    (f"{FIRST}/aliases", ["x", " HANA\n"], f"{SECOND}/aliases/0", f'"Hana"{TAKEN}'),
    (f"{FIRST}/id", "b", f"{SECOND}/id", f'"b"{TAKEN}'),
    (f"{FIRST}/label", "B", f"{SECOND}/label", f'"B"{TAKEN}'),
    ("aspects", [{"aliases": ["x"]}], "aspects/0/aliases", MISPLACED),
    ("entities/products", [{"aliases": []}], "entities/products/0/aliases", MISPLACED),
    (f"{FIRST}/own", {"aliases": ["x"]}, f"{FIRST}/own/aliases", MISPLACED),
    ("aliases", None, "aliases", MISPLACED),
]


@pytest.mark.parametrize(("path", "value", "fault_path", "reason"), FAULTS)
def test_a_name_of_two_entries_and_a_misplaced_alias_are_faults(
    path: str, value: Any, fault_path: str, reason: str
) -> None:
    editorial = small.changed(TWO, small.steps(path), value)
    assert list(editorial_rules.name_violations(editorial)) == [
        (tuple(small.steps(fault_path)), reason)
    ]


def test_a_name_may_be_of_two_kinds_and_be_listed_twice() -> None:
    entries = [{"id": "a", "label": "A", "aliases": ["x", "X"]}]
    both = {
        "entities": {
            "services": entries,
            "problems": [*entries, {"id": "b", "label": "A"}],
        }
    }
    assert (
        list(editorial_rules.name_violations(both))
        == list(editorial_rules.name_violations(TWO))
        == []
    )


@given(value=small.any_json)
def test_any_json_document_can_be_validated(value: Any) -> None:
    for path in ("entities", "entities/technicians", f"{FIRST}/aliases", f"{FIRST}/id"):
        list(
            editorial_rules.name_violations(
                small.changed(TWO, small.steps(path), value)
            )
        )
    list(editorial_rules.name_violations(value))


NO_REVIEW = 'no review with the id "y" is served'
NO_TEXT = '"bad" is in no review'
STALE = [
    (
        f"{FIRST}/example_review_ids",
        ["999", "y"],
        f"{FIRST}/example_review_ids/1",
        NO_REVIEW,
    ),
    (f"{FIRST}/top_phrases", ["very good", "bad"], f"{FIRST}/top_phrases/1", NO_TEXT),
    ("pull_quote", "bad", "pull_quote", NO_TEXT),
    ("proposed_pull_quote", "bad", "proposed_pull_quote", NO_TEXT),
    ("faq", [{"question": "?", "review_ids": ["y"]}], "faq/0/review_ids/0", NO_REVIEW),
    ("per_review", {"999": {}, "y": {"score": 1}}, "per_review/y", NO_REVIEW),
    ("summary_review_ids", ["999", "y"], "summary_review_ids/1", NO_REVIEW),
    (
        "proposed_summary_review_ids",
        ["999", "y"],
        "proposed_summary_review_ids/1",
        NO_REVIEW,
    ),
    ("pull_quote", "\u201cVery good\u201d", None, ""),
    ("own", {"review_ids": [[1], None]}, None, ""),
    ("entities", None, None, ""),
]


@pytest.mark.parametrize(("path", "value", "stale_path", "reason"), STALE)
def test_unknown_ids_and_phrases_of_no_review_are_reported(
    path: str, value: Any, stale_path: str | None, reason: str
) -> None:
    reviews = rated(5, text="A \u201cnew\u201d door,\nvery  GOOD")
    stale = list(
        editorial_rules.stale_references(
            reviews, small.changed(TWO, small.steps(path), value)
        )
    )
    assert stale == ([(tuple(small.steps(stale_path)), reason)] if stale_path else [])
