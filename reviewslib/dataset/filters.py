"""Filters: which reviews of a dataset pass a query.

A filter takes reviews, newest first, and returns those that pass, in the same order.
This module knows neither pages of results nor what to say where nothing passes.

Sections: names that callers type - filters - all filters of a query.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset, Review
from reviewslib.dataset.text import (
    loose_value,
    loosen,
    name_value_words,
)

Reviews = Sequence[Review]
Filter = Callable[[Dataset, Reviews, Any], Reviews]

# ---- Names that callers type ----


def technicians_named(dataset: Dataset, value: str) -> list[str]:
    """The names of people that have all the words of `value`, or whose id it is."""
    words_of_value = name_value_words(value)
    id = loose_value(value)
    with_id = {
        entry["label"]
        for entry in dataset.insights["entities"]["technicians"]
        if loosen(entry["id"]) == id
    }
    return [
        name
        for name, words in dataset.technicians.items()
        if words_of_value <= words or name in with_id
    ]


def services_named(dataset: Dataset, value: str) -> set[str]:
    """The ids of services whose id or label is `value`."""
    name = loose_value(value)
    ids = {id for id in dataset.services if loosen(id) == name}
    for entry in dataset.insights["entities"]["services"]:
        if loosen(entry["label"]) == name:
            ids.add(entry["id"])
    return ids


def sources_named(dataset: Dataset, value: str) -> list[str]:
    """The source that is `value`, as written in the file; empty if there is none."""
    name = loose_value(value)
    return [source for source in dataset.sources if loosen(source) == name]


# ---- Filters ----


def _since(dataset: Dataset, reviews: Reviews, day: str) -> Reviews:
    return reviews[: count_since(reviews, day)]


def _until(dataset: Dataset, reviews: Reviews, day: str) -> Reviews:
    later = bisect_left(reviews, True, key=lambda review: review.day <= day)
    return reviews[later:]


def _rated(dataset: Dataset, reviews: Reviews, stars: float) -> Reviews:
    return [review for review in reviews if review.rating == stars]


def _rated_at_least(dataset: Dataset, reviews: Reviews, stars: float) -> Reviews:
    return [review for review in reviews if review.rating >= stars]


def _rated_at_most(dataset: Dataset, reviews: Reviews, stars: float) -> Reviews:
    return [review for review in reviews if review.rating <= stars]


def _mentioning_technician(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    names = set(technicians_named(dataset, value))
    return [review for review in reviews if not names.isdisjoint(review.technicians)]


def _mentioning_service(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    ids = services_named(dataset, value)
    return [review for review in reviews if not ids.isdisjoint(review.services)]


def _published_at(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    source = loose_value(value)
    return [review for review in reviews if review.loose_source == source]


def _with_phrase(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    return with_all(reviews, [loose_value(value)])


# By parameter. The dearest comes last, when few reviews are left: it reads texts.
FILTERS: dict[str, Filter] = {
    "since": _since,
    "until": _until,
    "rating": _rated,
    "min_rating": _rated_at_least,
    "max_rating": _rated_at_most,
    "mentions_technician": _mentioning_technician,
    "mentions_service": _mentioning_service,
    "source": _published_at,
    "query": _with_phrase,
}


# ---- All filters of a query ----


def filters_of(query: Query) -> list[tuple[str, Any]]:
    """The names and values of the filters of `query`, in the order of FILTERS."""
    values = [(name, getattr(query, name)) for name in FILTERS]
    return [(name, value) for name, value in values if value is not None]


def matching(dataset: Dataset, query: Query, without: str = "") -> Reviews:
    """The reviews that pass every filter of `query`, except `without`, newest first."""
    matches: Reviews = dataset.reviews
    for name, value in filters_of(query):
        if name != without:
            matches = FILTERS[name](dataset, matches, value)
    return matches


def with_all(reviews: Reviews, parts: Iterable[str]) -> Reviews:
    """The reviews whose text contains all `parts`, which are loosened."""
    for part in parts:
        reviews = [review for review in reviews if part in review.loose_text]
    return reviews


def count_since(reviews: Reviews, day: str) -> int:
    """The number of `reviews`, which are newest first, of `day` or later."""
    return bisect_left(reviews, True, key=lambda review: review.day < day)
