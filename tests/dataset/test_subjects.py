"""What reviews speak of: what a value of `mentions` means, and what a result says of it.

Sections: values - results - sentiment - examples - every figure equals what its link
finds.
"""

import calendar
import json
from collections.abc import Iterator
from typing import Any

import pytest
from lab.annotated_data import EDITORIAL, annotated_insights
from lab.data_sets import DATA_SETS
from lab.small_files import Object, a_file, loaded, review

from reviewslib.dataset.filters import meant_by, technicians_named
from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.searching import search
from reviewslib.dataset.vocabulary import ENTITY_KINDS, KINDS, SENTIMENTS


def entry(id: str, label: str, **others: Any) -> Object:
    return {"id": id, "label": label, **others}


def result_of(dataset: Dataset, **filters: Any) -> Object:
    result: Object = json.loads(search(dataset, Query(**filters)).encoded())
    return result


# ---- Values ----

INSIGHTS = {
    "aspects": [entry("parking", "Rooms and parking"), entry("wait", "Waiting time")],
    "topics": [entry("parking-and-access", "Parking and access")],
    "entities": {
        "technicians": [entry("ann", "Ann"), entry("ann-lee", "Ann Lee")],
        "services": [entry("termin", "Termin vor Ort"), entry("die", "Das Gerät")],
        "problems": [entry("back", "Rückenschmerz")],
        "service_areas": [entry("park", "Park")],
    },
}
KNOWN = loaded(a_file(review()), INSIGHTS)
VALUES = [
    pytest.param("topics/parking-and-access", "topics/parking-and-access", id="key"),
    pytest.param("TOPICS/Parking-and-Access", "topics/parking-and-access", id="case"),
    pytest.param("parking", "aspects/parking", id="an id wins over words"),
    pytest.param("Park", "service_areas/park", id="a label wins over words"),
    pytest.param(
        "parked",
        "aspects/parking service_areas/park topics/parking-and-access",
        id="ending",
    ),
    pytest.param("access parking", "topics/parking-and-access", id="any order"),
    pytest.param("Termine", "services/termin", id="German plural"),
    pytest.param("ruckenschmerzen", "problems/back", id="without accents"),
    pytest.param("dir", "", id="short words must be equal"),
    pytest.param("waitresses", "", id="an ending of four letters"),
    pytest.param("parking nowhere", "", id="one word is in no label"),
    pytest.param("...", "", id="no word"),
    pytest.param("aspects/none", "", id="unknown key"),
]


@pytest.mark.parametrize(("value", "keys"), VALUES)
def test_a_value_means_keys_then_names_then_words(value: str, keys: str) -> None:
    meant = meant_by(KNOWN, value)

    assert [subject.key for subject in meant] == keys.split()


def test_words_after_the_eighth_are_not_looked_for() -> None:
    value = "waiting time " + "waiting time " * 4 + "a b"

    meant = meant_by(KNOWN, "waiting " + "time " * 9)

    assert [subject.key for subject in meant] == ["aspects/wait"]
    assert meant_by(KNOWN, value) == []


def test_the_exact_name_of_a_person_wins_over_words() -> None:
    assert technicians_named(KNOWN, "ann") == ["Ann"]
    assert technicians_named(KNOWN, "lee") == ["Ann Lee"]


# ---- Results ----

SAID = {
    "aspects": [entry("wait", "Waiting time"), entry("price", "Prices")],
    "topics": [entry("waits", "Waits")],
    "per_review": {
        "a": {
            "aspects": [
                {"id": "wait", "sentiment": "negative"},
                {"id": "price", "sentiment": "positive"},
            ],
            "technicians": ["Ann"],
        },
        "b": {
            "aspects": [
                {"id": "wait", "sentiment": "positive"},
                {"id": "wait", "sentiment": "negative"},
            ],
            "technicians": ["Ann", "Bo"],
        },
        "c": {"topics": ["waits"]},
    },
}
THREE = loaded(
    a_file(
        review("a", rating=2, owner_reply={"text": "Sorry"}),
        review("b", rating=4.5),
        review("c", rating=4),
    ),
    SAID,
)


def test_a_result_has_figures_of_all_matches_and_not_of_its_page() -> None:
    result = result_of(THREE, limit=1, min_rating=3)

    assert result["average_rating"] == 4.25
    assert result["distribution"] == {"1": 0, "2": 0, "3": 0, "4": 2, "5": 0}


def test_without_a_filter_the_figures_are_those_of_all_reviews() -> None:
    result = result_of(THREE, offset=2)

    assert list(result) == [
        "matched",
        "returned",
        "average_rating",
        "distribution",
        "reviews",
    ]
    assert result["average_rating"] == 3.5


def test_nothing_has_no_average() -> None:
    assert result_of(THREE, rating=1)["average_rating"] is None


def test_people_are_those_whom_most_matches_mention() -> None:
    people = result_of(THREE, mentions="aspects/wait")["people"]

    assert people == [
        {"mentions": "technicians/Ann", "label": "Ann", "count": 2},
        {"mentions": "technicians/Bo", "label": "Bo", "count": 1},
    ]


def test_a_name_that_is_the_id_of_somebody_else_is_nobodys() -> None:
    named = [review("a", mentioned_technicians=["ann"])]
    named.append(review("b", mentioned_technicians=["Ann Lee"]))
    people = {"technicians": [entry("ann", "Ann Lee")]}
    dataset = loaded(a_file(*named), {"entities": people})

    result = result_of(dataset, min_rating=1)

    assert [it["label"] for it in result["people"]] == ["Ann Lee"]


def test_a_filter_that_all_pass_has_people() -> None:
    result = result_of(THREE, min_rating=1)

    assert result["matched"] == 3
    assert [it["label"] for it in result["people"]] == ["Ann", "Bo"]


def test_names_that_only_reviews_have_stand_after_all_entries() -> None:
    crowd = [review(str(n), mentioned_technicians=[f"Parker {n}"]) for n in range(30)]
    parks = {"topics": [entry("park", "Parker and friends")]}
    dataset = loaded(a_file(*crowd), parks)

    meant = result_of(dataset, mentions="parkers")["meant"]

    assert meant[0]["mentions"] == "topics/park"
    assert len(meant) == 20


def test_a_result_says_what_a_value_means_with_the_reviews_of_each() -> None:
    result = result_of(THREE, mentions="waits")

    assert result["meant"] == [
        {"mentions": "topics/waits", "label": "Waits", "count": 1}
    ]


def test_several_subjects_are_any_of_them() -> None:
    result = result_of(THREE, mentions="waiting")

    assert [it["mentions"] for it in result["meant"]] == [
        "aspects/wait",
        "topics/waits",
    ]
    assert result["matched"] == 3


# ---- Sentiment ----

JUDGED = [
    pytest.param("aspects/wait", "negative", "a", id="an aspect"),
    pytest.param(
        "aspects/wait", "neutral", "b", id="praise beside criticism is neutral"
    ),
    pytest.param("aspects/wait", "positive", "", id="another aspect does not count"),
    pytest.param("topics/waits", "negative", "", id="a topic, and any aspect"),
    pytest.param("technicians/Ann", "positive", "a", id="a person, and any aspect"),
    pytest.param(None, "positive", "a", id="any aspect"),
    pytest.param("waiting", "negative", "a", id="aspects among other subjects"),
]


@pytest.mark.parametrize(("mentions", "sentiment", "ids"), JUDGED)
def test_a_sentiment_is_that_of_the_aspects_meant(
    mentions: str | None, sentiment: str, ids: str
) -> None:
    result = result_of(THREE, mentions=mentions, sentiment=sentiment)

    assert [it["id"] for it in result["reviews"]] == ids.split()


@pytest.mark.parametrize(
    ("replied", "ids"),
    [
        pytest.param(True, "a", id="answered"),
        pytest.param(False, "c b", id="not answered"),
    ],
)
def test_reviews_are_answered_or_not(replied: bool, ids: str) -> None:
    result = result_of(THREE, replied=replied)

    assert [it["id"] for it in result["reviews"]] == ids.split()


# ---- Examples: where no annotation lists a kind ----

EXAMPLES = {
    "topics": [
        entry("waits", "Waits", mention_count=17, example_review_ids=["c", "x"])
    ],
    "per_review": {"a": {"problems": ["p"]}},
}


def test_where_no_annotation_lists_a_kind_its_examples_are_found() -> None:
    dataset = loaded(a_file(review("a"), review("c")), EXAMPLES)

    result = result_of(dataset, mentions="waits")

    assert [it["id"] for it in result["reviews"]] == ["c"]
    assert result["meant"][0] == {
        "mentions": "topics/waits",
        "label": "Waits",
        "count": 1,
        "examples_of": 17,
    }


# ---- Every figure equals what its link finds ----


def annotated(limit: int) -> Dataset:
    """The sample of which a model has read the newest `limit` reviews."""
    return loaded(REVIEWS_FILE, annotated_insights(REVIEWS_FILE, EDITORIAL, limit))


(REVIEWS_FILE, INSIGHTS_FILE) = DATA_SETS["sample"]()
DATASETS = {
    "sample": loaded(REVIEWS_FILE, INSIGHTS_FILE),
    "unread": annotated(0),
    "half read": annotated(60),
    "wholly read": annotated(1000),
}


def figures_of(dataset: Dataset) -> Iterator[tuple[Object, int]]:
    """The filters and the number of each figure."""
    for kind in KINDS:
        place = dataset.insights["entities"] if kind in ENTITY_KINDS else None
        for it in (place or dataset.insights)[kind]:
            mentions = {"mentions": f"{kind}/{it['id']}"}
            yield mentions, it["mention_count"]
            for sentiment in SENTIMENTS:
                count = it.get(f"{sentiment}_count")
                yield {**mentions, "sentiment": sentiment}, count
    temporal = dataset.insights["temporal"]
    for month in temporal["monthly"]:
        first = f"{month['month']}-01"
        days = {"since": first, "until": last_day(month["month"])}
        yield days, month["review_count"]
    yield {"replied": False}, temporal["unanswered_count"]
    for period in temporal["lately"].values():
        days = {key: period[key] for key in ("since", "until")}
        yield days, period["review_count"]
    for star, count in dataset.aggregate_rating["distribution"].items():
        yield {"min_rating": int(star), "max_rating": int(star) + 0.99}, count


def last_day(month: str) -> str:
    """The last day of a month."""
    year, number = map(int, month.split("-"))
    return f"{month}-{calendar.monthrange(year, number)[1]}"


# What nobody has counted has no figure.
COUNTED = [
    pytest.param(
        dataset, filters, number, id=f"{name}: {' '.join(map(str, filters.values()))}"
    )
    for name, dataset in DATASETS.items()
    for filters, number in figures_of(dataset)
    if number is not None
]


@pytest.mark.parametrize(("dataset", "filters", "number"), COUNTED)
def test_every_figure_leads_to_as_many_reviews(
    dataset: Dataset, filters: Object, number: int
) -> None:
    assert result_of(dataset, **filters)["matched"] == number


def test_data_that_nobody_has_read_have_figures_of_names_alone() -> None:
    numbers = {
        filters["mentions"]: number
        for filters, number in figures_of(DATASETS["unread"])
        if filters.keys() == {"mentions"}
    }

    assert {key for key, number in numbers.items() if number is not None} == {
        "technicians/okafor",
        "services/massage",
    }
