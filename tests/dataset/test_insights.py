"""Counted insights follow their definitions, and nothing that the owner wrote is lost.

Sections: plain definition, for reviews whose text is "Hana" or absent - the sample -
document - mentions, examples and phrases - what the owner writes - annotations.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import small_files as small
from lab.counted_reviews import (
    VOCABULARY,
    annotated,
    praise,
    rated,
    texted,
    verified,
)
from lab.small_files import Object

from reviewslib.dataset import editorial_rules, insights, mentions, vocabulary
from reviewslib.dataset.insights import (
    COUNTED,
    COUNTED_KEYS,
    FROM_NAMES,
    compute_insights,
)
from reviewslib.dataset.mentions import value_digest
from reviewslib.dataset.vocabulary import ENTITY_KINDS

SENTIMENTS = ["positive", "neutral", "negative"]


def technician(reviews: list[Any], **members: Any) -> Object:
    """The entry of a person with these members, counted in `reviews`."""
    entry = {"id": "hana", "label": "Hana I."} | members
    editorial = {"entities": {"technicians": [entry]}}
    (person,) = compute_insights(reviews, editorial)["entities"]["technicians"]
    return person


def price(reviews: list[Any], *lists: Object) -> Object:
    """The entry of the aspect `price` after the model said these lists of `reviews`."""
    document = compute_insights(reviews, VOCABULARY, annotated(reviews, *lists))
    entry, _ = document["aspects"]
    return entry


# ---- Plain definition, for reviews whose text is "Hana" or absent ----


def mean(figures: Sequence[float]) -> float | None:
    if not figures:
        return None
    # Never -0.0.
    return round(sum(figures) / len(figures), 2) + 0.0


def percent(part: int, total: int) -> float | None:
    return round(100 * part / total, 1) if total else None


def of_stars(stars: float) -> str:
    if stars >= 4:
        return "positive"
    if stars <= 2:
        return "negative"
    return "neutral"


def items(said: Object, kind: str) -> list[Any]:
    """The list of a review by hand, else the one by the model and by aliases."""
    if said["by_hand"].get(kind) is not None:
        return said["by_hand"][kind]
    found = said["by_model"].get(kind) or []
    if kind != "technicians":
        return found
    if "hana" in found or said["text"] == "Hana":
        return ["Hana I."]
    return []


def score(said: Object) -> float:
    by_hand = said["by_hand"].get("score")
    if by_hand is not None:
        return float(by_hand)
    return float(said["rating"] - 3) / 2


def judgement(said: Object, aspect: str) -> str:
    """How a review judges an aspect, empty if it does not mention it."""
    listed = items(said, "aspects")
    sentiments = {item["sentiment"] for item in listed if item["id"] == aspect}
    if not sentiments:
        return ""
    different = sentiments - {"neutral"}
    return different.pop() if len(different) == 1 else "neutral"


def aspect_figures(all_said: list[Object], aspect: str) -> Object:
    judgements = [judgement(said, aspect) for said in all_said]
    positive, neutral, negative = map(judgements.count, SENTIMENTS)
    number = positive + neutral + negative
    return {
        "mention_count": number,
        "positive_count": positive,
        "neutral_count": neutral,
        "negative_count": negative,
        "positive_pct": percent(positive, number),
        "score": mean([1] * positive + [0] * neutral + [-1] * negative),
    }


def figures(all_said: list[Object], kind: str, name: str) -> Object:
    mentioning = [said for said in all_said if name in items(said, kind)]
    found: Object = {
        "mention_count": len(mentioning),
        "score": mean([*map(score, mentioning)]),
    }
    if kind != "topics":
        found["average_rating"] = mean([said["rating"] for said in mentioning])
    return found


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


def counted_from(all_said: list[Object]) -> Object:
    """The insights of reviews of which this was said."""
    return compute_insights(*arguments_of(all_said))


def arguments_of(all_said: list[Object]) -> tuple[list[Any], Object, Object]:
    """Reviews of which this was said, with an editorial file and annotations."""
    reviews = rated(*(said["rating"] for said in all_said))
    per_review = {}
    for review, said in zip(reviews, all_said, strict=True):
        review["text"] = said["text"]
        per_review[review["id"]] = said["by_hand"]
    annotations = annotated(reviews, *(said["by_model"] for said in all_said))
    return reviews, VOCABULARY | {"per_review": per_review}, annotations


anything_said = given(all_said=st.lists(SAID, min_size=1, max_size=12))


@anything_said
def test_figures_of_aspects_equal_their_plain_definition(
    all_said: list[Object],
) -> None:
    document = counted_from(all_said)

    for aspect in document["aspects"]:
        assert aspect_figures(all_said, aspect["id"]).items() <= aspect.items()


@anything_said
def test_figures_of_topics_equal_their_plain_definition(all_said: list[Object]) -> None:
    (desk,) = counted_from(all_said)["topics"]

    assert figures(all_said, "topics", "desk").items() <= desk.items()
    counted = {"mention_count", "score", "example_review_ids"}
    assert desk.keys() == {"id", "label", *counted}


@anything_said
def test_figures_of_people_equal_their_plain_definition(all_said: list[Object]) -> None:
    (hana,) = counted_from(all_said)["entities"]["technicians"]

    assert figures(all_said, "technicians", "Hana I.").items() <= hana.items()


@anything_said
def test_the_overall_sentiment_equals_its_plain_definition(
    all_said: list[Object],
) -> None:
    stars = [of_stars(said["rating"]) for said in all_said]
    shares = {
        f"{name}_pct": percent(stars.count(name), len(stars)) for name in SENTIMENTS
    }

    overall = counted_from(all_said)["overall_sentiment"]

    assert overall == {"score": mean([*map(score, all_said)]), **shares}


@anything_said
def test_counted_insights_are_valid_and_have_no_aliases(all_said: list[Object]) -> None:
    document = counted_from(all_said)

    small.file_validator("InsightsFile").validate(document)
    assert "aliases" not in json.dumps(document)


@anything_said
def test_counting_changes_none_of_its_arguments(all_said: list[Object]) -> None:
    arguments = arguments_of(all_said)
    before = json.dumps(arguments)

    compute_insights(*arguments)

    assert json.dumps(arguments) == before


# ---- The sample ----

SAMPLE = verified(
    *json.loads((small.ROOT / "data" / "reviews.json").read_bytes())["reviews"]
)
WRITTEN: Object = json.loads((small.ROOT / "data" / "insights.json").read_bytes())
OWN = {key: value for key, value in WRITTEN.items() if key not in COUNTED_KEYS}


def test_no_name_of_the_sample_is_that_of_two_entries() -> None:
    assert not list(editorial_rules.name_violations(OWN))


def test_what_the_sample_quotes_and_names_is_in_its_reviews() -> None:
    assert not list(editorial_rules.stale_references(SAMPLE, OWN))


def test_nothing_of_the_sample_is_left_out() -> None:
    assert not list(mentions.left_out(SAMPLE, OWN, {}))


def test_nothing_of_the_sample_is_still_to_be_read() -> None:
    assert not mentions.unread_reviews(SAMPLE, OWN, {})


def test_counting_the_sample_with_its_own_figures_changes_nothing() -> None:
    stamps = {key: WRITTEN[key] for key in ("version", "generated_at")}

    document = compute_insights(SAMPLE, OWN) | stamps

    assert document == WRITTEN | {"model": COUNTED + FROM_NAMES}


def bare(entries: list[Object]) -> list[Object]:
    """Entries in another order, without figures and samples."""
    return [{"id": entry["id"], "label": entry["label"]} for entry in reversed(entries)]


def figures_of_entries(document: Object) -> list[Object]:
    """All entries of insights in their order, without samples and summaries."""
    chosen = {"top_phrases", "example_review_ids", "summary"}
    found = list[Object]()
    for _, entry in vocabulary.entries_in(document):
        found.append({key: entry[key] for key in entry.keys() - chosen})
    return found


def test_the_sample_counted_from_its_own_annotations_has_its_own_figures() -> None:
    entities = WRITTEN["entities"].items()
    editorial = OWN | {
        "aspects": bare(WRITTEN["aspects"]),
        "topics": bare(WRITTEN["topics"]),
        "entities": {kind: bare(entries) for kind, entries in entities},
    }

    document = compute_insights(SAMPLE, editorial)

    assert figures_of_entries(document) == figures_of_entries(WRITTEN)


# ---- Document ----


THEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW = datetime(2026, 2, 1, tzinfo=UTC)
COUNTED_SAMPLE = compute_insights(SAMPLE)
FIRST_VERSION = insights.refresh_insights({}, COUNTED_SAMPLE, THEN)


def test_the_first_version_is_stamped_and_sealed() -> None:
    stamped = {
        "version": 1,
        "generated_at": "2026-01-02T03:04:05Z",
        **COUNTED_SAMPLE,
    }

    assert stamped | {"counted_digest": value_digest(stamped)} == FIRST_VERSION


def test_the_same_insights_are_the_same_version() -> None:
    refreshed = insights.refresh_insights(FIRST_VERSION, COUNTED_SAMPLE, NOW)

    assert refreshed == FIRST_VERSION


def test_other_insights_are_the_next_version() -> None:
    later = compute_insights(SAMPLE[1:], {"own": 1})

    second = insights.refresh_insights(FIRST_VERSION, later, NOW)

    assert second["version"] == 2
    assert second["generated_at"] == "2026-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("changes", "is_edited"),
    [
        pytest.param({}, False, id="as it was written"),
        pytest.param({"summary": "Best"}, True, id="with a summary"),
        pytest.param({"counted_digest": None}, True, id="without its digest"),
    ],
)
def test_an_edit_of_counted_insights_is_detected(
    changes: Object, is_edited: bool
) -> None:
    stored = json.loads(json.dumps(FIRST_VERSION)) | changes

    assert insights.is_edited(stored) is is_edited


@pytest.mark.parametrize(
    ("document", "is_counted"),
    [
        pytest.param(FIRST_VERSION, True, id="counted"),
        pytest.param(WRITTEN, False, id="by a person"),
        pytest.param({"model": None}, False, id="by nobody"),
    ],
)
def test_counted_insights_are_told_from_those_of_a_person(
    document: Object, is_counted: bool
) -> None:
    assert insights.is_counted(document) is is_counted


def test_means_use_exact_sums_and_are_never_minus_zero() -> None:
    scores = {"999": 0.1, "998": 0.2, "997": -0.304}
    by_hand = {"per_review": {id: {"score": score} for id, score in scores.items()}}

    document = compute_insights(rated(5, 5, 1), by_hand)

    assert json.dumps(document["overall_sentiment"]["score"]) == "0.0"


@pytest.mark.parametrize(
    ("stars", "score"),
    [pytest.param(4.6, 0.8, id="4.6"), pytest.param(4.125, 0.56, id="4.125")],
)
def test_a_score_of_stars_has_two_decimals(stars: float, score: float) -> None:
    document = compute_insights(rated(stars))

    assert document["per_review"]["999"]["score"] == score


def of_three_days() -> list[Any]:
    stars = {"0002-02-28T23:59:59-08:00": 5, "0001-12-31": 3.5, "0001-12-02": 2}
    reviews = [small.review(day, date=day, rating=stars[day]) for day in stars]
    return verified(*reviews)


def test_the_range_of_dates_is_of_days_as_they_are_written() -> None:
    document = compute_insights(of_three_days())

    assert document["date_range"] == {"earliest": "0001-12-02", "latest": "0002-02-28"}


def test_every_month_between_the_first_and_the_last_is_there() -> None:
    document = compute_insights(of_three_days())

    assert document["temporal"]["monthly"] == [
        {"month": "0001-12", "review_count": 2, "average_rating": 2.75, "score": -0.12},
        {"month": "0002-01", "review_count": 0, "average_rating": None, "score": None},
        {"month": "0002-02", "review_count": 1, "average_rating": 5, "score": 1},
    ]


TRENDS = [
    pytest.param([5] * 10, [4] * 10, "improving", id="better"),
    pytest.param([4] * 10, [5] * 10, "declining", id="worse"),
    pytest.param([5] * 9, [4] * 10, None, id="too few of late"),
    pytest.param([5] * 10, [4] * 9, None, id="too few before"),
    pytest.param([5, 1] * 20, [4, 1] * 20, "stable", id="within noise"),
    pytest.param(
        [5] * 8 + [3] * 2, [5] * 4 + [3] * 6, "stable", id="1.9 standard errors"
    ),
    pytest.param(
        [5] * 8 + [3] * 2, [5] * 3 + [3] * 7, "improving", id="2.5 standard errors"
    ),
    # Which are not exact in binary.
    pytest.param([4.2] * 10, [4] * 10, "improving", id="a fifth of a star more"),
    pytest.param([4] * 10, [4.2] * 10, "declining", id="a fifth of a star less"),
    pytest.param([4.1] * 10, [4] * 10, "stable", id="a tenth of a star"),
]


def of_two_years(late: list[float], early: list[float]) -> list[Any]:
    """Reviews of the two years that end with the newest month."""
    late_days = ["2026-10-31", *["2025-11-01"] * (len(late) - 1)]
    early_days = [["2025-10-31", "2024-11-01"][n % 2] for n in range(len(early))]
    dated = zip([*late, *early], [*late_days, *early_days], strict=True)
    reviews = list[Object]()
    for n, (stars, day) in enumerate(dated):
        reviews.append(small.review(f"{n}", rating=stars, date=day))
    return verified(*reviews)


@pytest.mark.parametrize(("late", "early", "trend"), TRENDS)
def test_the_trend_needs_enough_reviews_a_change_and_no_noise(
    late: list[float], early: list[float], trend: str | None
) -> None:
    document = compute_insights(of_two_years(late, early))

    assert document["temporal"]["trend"] == trend


# ---- Mentions, examples and phrases ----


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("MS\nISHIKAWA came", 1, id="any case and blanks"),
        pytest.param("Tobi, Tobi", 1, id="once in a review"),
        pytest.param("Ms Ishikawa Tobi", 1, id="two aliases"),
        pytest.param("Tobias", 0, id="a part of a word"),
        pytest.param("Hana I.", 0, id="a label that is no alias"),
        pytest.param(None, 0, id="no words"),
    ],
)
def test_a_review_with_an_alias_counts_once(text: str | None, count: int) -> None:
    person = technician(texted(text), aliases=["Tobi", "ms Ishikawa"])

    assert person["mention_count"] == count


def test_a_name_in_a_reply_is_no_mention() -> None:
    (review,) = texted("Fine.")
    review["owner_reply"] = {"text": "Tobi thanks you", "date": None}

    assert technician([review], aliases=["Tobi"])["mention_count"] == 0


LONG = "Hana " + "x" * 35
SHORT = LONG[:-1]
# Stars and texts, long (L) or short (S), and the positions of the examples.
EXAMPLES = [
    pytest.param("5L 5L 5L 5L 5L 5L", "0123", id="the newest"),
    pytest.param("5S 5L 5L 5L 5L 5L", "1234", id="no short ones"),
    pytest.param("5L 5L 5L 5L 5L 2S 1L", "0125", id="the newest negative one"),
    pytest.param("2L 5L 5L 5L 5L 5L 1L", "0123", id="a negative one among them"),
    pytest.param("5L 1S", "01", id="few"),
]


@pytest.mark.parametrize(("mentions", "chosen"), EXAMPLES)
def test_examples_are_the_newest_long_reviews_and_a_negative_one(
    mentions: str, chosen: str
) -> None:
    texts = {"L": LONG, "S": SHORT}
    pairs = mentions.split()
    reviews = rated(*(int(stars) for stars, _ in pairs))
    for review, (_, length) in zip(reviews, pairs, strict=True):
        review["text"] = texts[length]

    examples = technician(reviews, aliases=["Hana"])["example_review_ids"]

    assert examples == [reviews[int(position)]["id"] for position in chosen]


# Judgements with phrases, newest first, and the phrases chosen.
PHRASES = [
    pytest.param("+a +b +c +d +e", "abcd", id="the newest"),
    pytest.param("+a +b +c +d +e +e", "eabc", id="the most frequent first"),
    pytest.param("+a +b +c +d -e", "abce", id="the minority has a voice"),
    pytest.param("-a -b -c -d +e", "abce", id="a minority of praise"),
    pytest.param("-a +b +c", "bca", id="the majority first"),
    pytest.param("0a +b", "ba", id="praise before neutral"),
    pytest.param("0a -b -c", "bca", id="criticism before neutral"),
    pytest.param("+a +A +b", "ab", id="in another case, as the newest writes it"),
    pytest.param("+a -b", "ab", id="one of each"),
    pytest.param("+a +b -c -d", "abcd", id="two of each"),
]


@pytest.mark.parametrize(("mentions", "phrases"), PHRASES)
def test_phrases_are_the_most_frequent_and_one_of_the_minority(
    mentions: str, phrases: str
) -> None:
    sentiments = {"+": "positive", "0": "neutral", "-": "negative"}
    lists = list[Object]()
    for sign, phrase in mentions.split():
        lists.append({"aspects": [praise("price", sentiments[sign], phrase)]})
    reviews = texted(*["abcdeA"] * len(lists))

    entry = price(reviews, *lists)

    assert entry["top_phrases"] == list(phrases)


# ---- What the owner writes ----

FIGURES = ["mention_count", "average_rating", "score", "positive_pct"]
FIGURES += [f"{sentiment}_count" for sentiment in SENTIMENTS]
HANA_COUNTED = {"mention_count": 1, "average_rating": 5, "score": 1}
KEPT = [
    pytest.param(
        {"mention_count": 9, "score": -0.5},
        {"mention_count": 9, "score": -0.5},
        id="two figures",
    ),
    pytest.param(
        {"aliases": None, "mention_count": 9}, {"mention_count": 9}, id="one figure"
    ),
    *[
        pytest.param({"aliases": ["Hana"], figure: 0.5}, {figure: 0.5}, id=figure)
        for figure in FIGURES
    ],
]


@pytest.mark.parametrize(("written", "kept"), KEPT)
def test_an_entry_with_a_figure_of_the_owner_is_published_as_it_is(
    written: Object, kept: Object
) -> None:
    person = technician(rated(5, text=LONG), **written)

    assert person == {"id": "hana", "label": "Hana I.", **kept}


COMPLETED = [
    pytest.param({"score": None}, {"example_review_ids": ["999"]}, id="null is none"),
    pytest.param(
        {"example_review_ids": []}, {"example_review_ids": []}, id="no examples"
    ),
    pytest.param(
        {"example_review_ids": None}, {"example_review_ids": ["999"]}, id="any examples"
    ),
    pytest.param(
        {"top_phrases": ["y"], "own": 1},
        {"example_review_ids": ["999"], "top_phrases": ["y"], "own": 1},
        id="other keys",
    ),
]


@pytest.mark.parametrize(("written", "shown"), COMPLETED)
def test_an_entry_without_figures_is_counted_and_keeps_what_it_has(
    written: Object, shown: Object
) -> None:
    person = technician(rated(5, text=LONG), aliases=["Hana"], **written)

    assert person == {"id": "hana", "label": "Hana I.", **HANA_COUNTED, **shown}


OWNED: Object = {
    "summary": "",
    "topics": [{"id": "t", "label": "T"}],
    "own": {"a": [1]},
    "pull_quote": None,
}


def test_the_keys_that_are_counted_are_those_of_the_document() -> None:
    stamps = {"version", "generated_at", "counted_digest"}
    of_nobody = compute_insights([]).keys() - {"entities", "per_review"}

    assert {*COUNTED_KEYS} == stamps | of_nobody


def test_what_a_person_wrote_is_kept() -> None:
    document = compute_insights(rated(5), OWNED)

    assert OWNED.items() <= document.items()


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(dict.fromkeys(COUNTED_KEYS, "by hand"), id="what is counted"),
        pytest.param(
            {"proposed_summary": "x", "proposed_entities": VOCABULARY["entities"]},
            id="what is proposed",
        ),
    ],
)
def test_what_a_person_wrote_is_ignored_where_something_else_counts(
    ignored: Object,
) -> None:
    document = compute_insights(rated(5), OWNED | ignored)

    assert document == compute_insights(rated(5), OWNED)


def test_entities_that_are_null_are_none() -> None:
    document = compute_insights(rated(5), {"entities": None})

    assert document == compute_insights(rated(5))


def test_lists_by_hand_stand_beside_those_that_are_empty() -> None:
    lists = {"own": None, "aspects": [{"id": "x", "sentiment": "neutral"}]}
    by_hand = {"per_review": {"999": lists, "gone": {"score": 1}}}

    document = compute_insights(rated(5), by_hand)

    empty = {kind: [] for kind in ENTITY_KINDS}
    assert document["per_review"] == {"999": {"score": 1} | empty | lists}


# ---- Annotations ----


WITH_SERVICE = VOCABULARY | {"entities": {"services": [{"id": "s", "label": "S"}]}}
FAILED = {"failed": "no answer"}


def counts(*arguments: Any) -> list[Any]:
    """How often two aspects, a topic and a service of WITH_SERVICE are mentioned."""
    document = compute_insights(rated(5, 1, text="Hana"), *arguments)
    listed = [
        *document["aspects"],
        *document["topics"],
        *document["entities"]["services"],
    ]
    return [entry.get("mention_count") for entry in listed]


def read(*lists: Object, keys: Any = None) -> Object:
    """Annotations of the reviews of `counts`."""
    return annotated(rated(5, 1, text="Hana"), *lists, keys=keys)


def test_what_nobody_looked_for_has_no_figures() -> None:
    assert counts(WITH_SERVICE) == [None] * 4


def test_what_a_model_did_not_manage_to_read_has_no_figures() -> None:
    assert counts(WITH_SERVICE, read(FAILED, FAILED)) == [None] * 4


PARTLY_READ = read(
    {"aspects": [praise()]}, FAILED, keys=["aspects/price", "topics/desk"]
)


def test_what_a_model_looked_for_has_figures() -> None:
    assert counts(WITH_SERVICE, PARTLY_READ) == [1, None, 0, None]


def test_a_kind_that_the_owner_lists_for_a_review_has_figures() -> None:
    by_hand = {"999": {"aspects": []}, "gone": {"services": ["s"]}}
    editorial = WITH_SERVICE | {"per_review": by_hand}

    assert counts(editorial, PARTLY_READ) == [0, 0, 0, None]


REVIEWS = rated(5, 4, text="Cheap")
ANNOTATIONS = annotated(
    REVIEWS, *[{"aspects": [praise()], "technicians": ["hana"], "score": -1}] * 2
)
EDITED = [REVIEWS[0] | {"text": "Cheap!"}, REVIEWS[1]]


def test_an_annotation_counts_while_its_review_has_the_text_read() -> None:
    document = compute_insights(EDITED, VOCABULARY, ANNOTATIONS)

    per_review = document["per_review"]
    assert [entry.get("mention_count") for entry in document["aspects"]] == [1, 0]
    assert per_review["999"]["technicians"] == []
    assert per_review["998"]["technicians"] == ["Hana I."]


def test_only_a_person_may_change_the_score_of_a_review() -> None:
    document = compute_insights(EDITED, VOCABULARY, ANNOTATIONS)

    assert document["per_review"]["998"]["score"] == 0.5


def test_insights_name_the_models_that_read() -> None:
    document = compute_insights(EDITED, VOCABULARY, ANNOTATIONS)

    assert document["model"] == f"{COUNTED}{FROM_NAMES}; reviews read by m"
    assert insights.language_models(document) == "m"


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            compute_insights(REVIEWS, VOCABULARY, annotated(REVIEWS, FAILED, FAILED)),
            id="it failed",
        ),
        pytest.param({"model": "; reviews read by m"}, id="a person says so"),
        pytest.param({}, id="nothing is said"),
    ],
)
def test_no_model_is_named_where_none_has_read(document: Object) -> None:
    assert insights.language_models(document) == ""
