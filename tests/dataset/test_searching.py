"""A search finds exactly the reviews that pass, as the design says.

Expected answers stand in small tables, or come from the plain definition.

Sections: examples - order - words in any order - the plain definition - since.
"""

import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import plain_definition as plain
from lab.four_reviews import FOUR
from lab.small_files import (
    PARAMETERS,
    Object,
    a_file,
    compact,
    loaded,
    review,
    served,
)
from lab.varied_files import DAYS, VALUES, questions, varied_files

from reviewslib.dataset import searching
from reviewslib.dataset.query import BadQuery, Issue, Query, query_from_pairs
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.text import loose_value


def answer_of(dataset: Dataset, parameters: dict[str, str]) -> Object:
    """The result of a search."""
    query = query_from_pairs(PARAMETERS, list(parameters.items()))
    answer: Object = json.loads(searching.search(dataset, query).encoded())
    return answer


# ---- Examples: over four reviews -----------------------------------------------------

ALL = ["eve", "bob", "ana", "cy"]
NONE: list[str] = []


def finds(ids: list[str], name: str, *values: str) -> list[object]:
    """Cases: a parameter, one of the values that mean the same, the ids of the matches."""
    return [pytest.param(name, value, ids, id=f"{name}={value!a}") for value in values]


OKAFOR_NAMES = ["Okafor", "tobias okafor", "Dr Okafor", "Okafor, Tobias, Dr.", "t1"]
MASSAGE_NAMES = ["MASSAGE", "massage & GRÖSSE", "massage & grosse"]
NO_SUBJECTS = ["t2", "nobody at all", "mas", "!", "okafor brandt"]


@pytest.mark.parametrize(
    ("name", "value", "ids"),
    [
        *finds(ALL, "query", ""),
        *finds(["ana"], "query", "strasse", "STRAẞE", "cafe\u0301", "CAFÉ", "e z"),
        *finds(["cy"], "query", "οδυσσευς", "izmir"),
        *finds(["ana"], "mentions_technician", *OKAFOR_NAMES, "T1"),
        *finds(["eve", "ana"], "mentions_technician", "Dr.", "dr"),
        *finds(NONE, "mentions_technician", "Brandt Wes", "Okaf", "Nobody"),
        *finds(["bob"], "mentions_service", *MASSAGE_NAMES),
        *finds(["ana"], "mentions", "t1", "technicians/T1", "Dr Tobias"),
        *finds(["ana"], "mentions", "tobias okafor"),
        *finds(["bob"], "mentions", "services/massage", "MASSAGE & GROSSE", "massages"),
        *finds(["eve", "ana"], "mentions", "dr"),
        *finds(["eve"], "mentions", "WES P., LMT", "technicians/Wes P., LMT", "wes"),
        *finds(["ana"], "mentions", "gone", "services/gone"),
        *finds(NONE, "mentions", *NO_SUBJECTS),
        *finds(NONE, "sentiment", "negative"),
        *finds(NONE, "replied", "true"),
        *finds(ALL, "replied", "false"),
        *finds(["eve", "ana"], "source", "YELP", "Yelp"),
        *finds(NONE, "source", "yel", "other"),
    ],
)
def test_a_search_finds_exactly_the_reviews_that_pass_newest_first(
    name: str, value: str, ids: list[str]
) -> None:
    answer = answer_of(FOUR, {name: value})

    assert [review["id"] for review in answer["reviews"]] == ids


def test_a_value_is_folded_once_for_a_search_and_its_hints() -> None:
    value = "x\u0301" * 100
    loose_value.cache_clear()

    named_thrice = Query(
        value, rating=5, min_rating=1, mentions_service=value, source=value
    )
    searching.search(FOUR, named_thrice)

    assert loose_value.cache_info().misses == 1


# ---- Order ---------------------------------------------------------------------------

# By id, from the newest on.
NEWEST_FIRST = {
    "a": "2025-03-01T23:30:00-08:00",
    "c": "2025-03-01T09:00:00Z",
    "e": "2025-03-01",
    "b": "2025-03-01",
    "d": "2025-02-28T23:59:59+14:00",
}


@pytest.fixture
def ordered() -> Dataset:
    reviews = [review(id, date=NEWEST_FIRST[id]) for id in sorted(NEWEST_FIRST)]
    return loaded(a_file(*reviews))


def test_reviews_are_sorted_by_date_as_written_then_by_id(ordered: Dataset) -> None:
    assert [review.id for review in ordered.reviews] == list(NEWEST_FIRST)


@pytest.mark.parametrize(
    ("id", "newer", "older"),
    [
        pytest.param("a", None, "c", id="the newest"),
        pytest.param("c", "a", "e", id="of another day"),
        pytest.param("b", "e", "d", id="of one day"),
        pytest.param("d", "b", None, id="the oldest"),
    ],
)
def test_a_review_has_a_newer_and_an_older_neighbour(
    ordered: Dataset, id: str, newer: str | None, older: str | None
) -> None:
    neighbours = searching.neighbours(ordered, ordered.reviews_by_id[id])

    assert [each and each.id for each in neighbours] == [newer, older]


# ---- Words in any order --------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        pytest.param("b", ["b", "a"], id="one word"),
        pytest.param("c BO", ["a"], id="in another order, case and accent"),
        pytest.param("c x", [], id="one that no text has"),
        pytest.param("  ", ["c", "b", "a"], id="no word"),
        pytest.param("i h g f e d c b x", ["a"], id="the ninth does not count"),
        pytest.param("c c c c c c c c x", [], id="the second counts"),
    ],
)
def test_the_first_eight_words_are_found_in_any_order(
    words: str, ids: list[str]
) -> None:
    reviews = [review("a", text="Bö c d e f g h i"), review("b", text="b"), review("c")]
    dataset = loaded(a_file(*reviews))

    found = searching.in_any_order(dataset, Query(words))

    assert [review.id for review in found.reviews] == ids


# ---- The plain definition ------------------------------------------------------------

FILES = [varied_files(seed) for seed in range(100)]
DATASETS = [loaded(*files) for files in FILES]
PLACES = st.integers(0, len(FILES) - 1)


def test_every_parameter_is_asked_for() -> None:
    assert set(VALUES) == set(PARAMETERS)


@pytest.mark.slow
@settings(max_examples=800)
@given(PLACES, questions())
def test_a_search_returns_every_review_that_passes_every_filter(
    place: int, asked: dict[str, str]
) -> None:
    dataset = DATASETS[place]
    _, insights = FILES[place]
    expected = plain.search(served(dataset), insights, asked)

    answer = answer_of(dataset, asked)

    # Hints have a definition of their own: their counts are those of searches.
    has_hints = answer.pop("hints", None) is not None
    assert has_hints == (expected["matched"] == 0)
    assert compact(answer) == compact(expected)


@given(PLACES)
def test_the_served_reviews_are_those_of_the_plain_definition(place: int) -> None:
    dataset = DATASETS[place]
    file, insights = FILES[place]
    expected = plain.served_reviews(file["reviews"], insights)

    assert served(dataset) == expected
    assert [json.loads(bytes(review.json)) for review in dataset.reviews] == expected
    assert dataset.unverified_count == len(file["reviews"]) - len(expected)


@given(PLACES)
def test_a_review_is_found_by_its_id(place: int) -> None:
    dataset = DATASETS[place]

    assert dataset.reviews_by_id == {review.id: review for review in dataset.reviews}


@given(PLACES)
def test_what_was_said_of_single_reviews_is_not_kept(place: int) -> None:
    assert "per_review" not in DATASETS[place].insights


@given(PLACES)
def test_documents_are_compact(place: int) -> None:
    dataset = DATASETS[place]

    for document in (dataset.reviews_json, dataset.insights_json):
        assert compact(json.loads(document)) == document


# ---- Since ---------------------------------------------------------------------------


@given(PLACES, DAYS | st.dates().map(date.isoformat))
def test_since_holds_what_the_plain_definition_says(place: int, day: str) -> None:
    dataset = DATASETS[place]

    found = searching.since(dataset, day)

    assert found.encoded() == compact(plain.since(served(dataset), day))


@pytest.mark.parametrize(
    ("day", "issue"),
    [
        pytest.param(
            "\ud800",
            Issue("date", "\ufffd", "expected a date written YYYY-MM-DD"),
            id="no text",
        ),
        pytest.param(
            "2025-02-29",
            Issue("date", "2025-02-29", "expected a day that exists"),
            id="no such day",
        ),
    ],
)
def test_since_refuses_a_value_that_is_no_day(day: str, issue: Issue) -> None:
    with pytest.raises(BadQuery) as refusal:
        searching.since(FOUR, day)

    assert refusal.value.issues == (issue,)
