"""Filters: which reviews of a dataset pass a query.

A filter takes reviews, newest first, and returns those that pass, in the same order. It
is called only if its parameter has a value.
This module knows neither pages of results nor what to say where nothing passes.

Sections: names that callers type - filters - all filters of a query.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset, Review
from reviewslib.dataset.subjects import Ids, Subject, subjects_named
from reviewslib.dataset.text import (
    loose_value,
    loosen,
    name_value_words,
)

Reviews = Sequence[Review]
Filter = Callable[[Dataset, Reviews, Query], Reviews]

# ---- Names that callers type ----


def technicians_named(dataset: Dataset, value: str) -> list[str]:
    """Names of people whose name or id is `value`; else names with all its words."""
    exact = _with_name(dataset, "technicians", value)
    if exact:
        return [person.label for person in exact]
    words_of_value = name_value_words(value)
    return [
        name for name, words in dataset.technicians.items() if words_of_value <= words
    ]


def services_named(dataset: Dataset, value: str) -> set[str]:
    """The ids of services whose id or label is `value`."""
    return {service.id for service in _with_name(dataset, "services", value)}


def _with_name(dataset: Dataset, kind: str, value: str) -> list[Subject]:
    name = loose_value(value)
    return [
        subject for subject in dataset.subjects.of_kind(kind) if name in subject.names
    ]


def sources_named(dataset: Dataset, value: str) -> list[str]:
    """The source that is `value`, as written in the file; empty if there is none."""
    name = loose_value(value)
    return [source for source in dataset.sources if loosen(source) == name]


def meant_by(dataset: Dataset, value: str) -> list[Subject]:
    """The subjects of any kind that `value` means."""
    subjects = dataset.subjects
    return subjects_named(subjects.by_key.values(), value, subjects.words)


# ---- Filters ----


def _since(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    return reviews[: count_since(reviews, query.since or "")]


def _until(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    day = query.until or ""
    later = bisect_left(reviews, True, key=lambda review: review.day <= day)
    return reviews[later:]


def _rated(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    stars = query.rating
    return [review for review in reviews if review.rating == stars]


def _rated_at_least(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    stars = query.min_rating or 0
    return [review for review in reviews if review.rating >= stars]


def _rated_at_most(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    stars = query.max_rating or 0
    return [review for review in reviews if review.rating <= stars]


def _mentioning_technician(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    names = set(technicians_named(dataset, query.mentions_technician or ""))
    return [review for review in reviews if not names.isdisjoint(review.technicians)]


def _mentioning_service(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    ids = services_named(dataset, query.mentions_service or "")
    return [review for review in reviews if not ids.isdisjoint(review.services)]


def _mentioning(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    meant = meant_by(dataset, query.mentions or "")
    return _among(reviews, [subject.review_ids for subject in meant])


def _judging(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    """The reviews that judge an aspect of `mentions` so; any aspect if it has none."""
    sentiment = query.sentiment or ""
    aspects = list[Subject]()
    if query.mentions:
        meant = meant_by(dataset, query.mentions)
        aspects = [subject for subject in meant if subject.kind == "aspects"]
    if not aspects:
        return _among(reviews, [dataset.subjects.judged[sentiment]])
    return _among(reviews, [aspect.judged[sentiment] for aspect in aspects])


def _among(reviews: Reviews, sets: Iterable[Ids]) -> Reviews:
    """The reviews whose id is in one of the sets."""
    ids = frozenset().union(*sets)
    return [review for review in reviews if review.id in ids]


def _replied(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    wanted = query.replied
    return [review for review in reviews if review.has_reply is wanted]


def _published_at(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    source = loose_value(query.source or "")
    return [review for review in reviews if review.loose_source == source]


def _with_phrase(dataset: Dataset, reviews: Reviews, query: Query) -> Reviews:
    return with_all(reviews, [loose_value(query.query or "")])


# By parameter. The dearest comes last, when few reviews are left: it reads texts.
FILTERS: dict[str, Filter] = {
    "since": _since,
    "until": _until,
    "mentions": _mentioning,
    "sentiment": _judging,
    "replied": _replied,
    "rating": _rated,
    "min_rating": _rated_at_least,
    "max_rating": _rated_at_most,
    "mentions_technician": _mentioning_technician,
    "mentions_service": _mentioning_service,
    "source": _published_at,
    "query": _with_phrase,
}


# ---- All filters of a query ----


def filters_of(query: Query) -> list[str]:
    """The names of the filters of `query`, in the order of FILTERS."""
    return [name for name in FILTERS if getattr(query, name) is not None]


def matching(dataset: Dataset, query: Query, without: str = "") -> Reviews:
    """The reviews that pass every filter of `query`, except `without`, newest first."""
    if without:
        # `sentiment` reads `mentions`, too.
        left_out: dict[str, Any] = {without: None}
        query = replace(query, **left_out)
    matches: Reviews = dataset.reviews
    for name in filters_of(query):
        matches = FILTERS[name](dataset, matches, query)
    return matches


def with_all(reviews: Reviews, parts: Iterable[str]) -> Reviews:
    """The reviews whose text contains all `parts`, which are loosened."""
    for part in parts:
        reviews = [review for review in reviews if part in review.loose_text]
    return reviews


def count_since(reviews: Reviews, day: str) -> int:
    """The number of `reviews`, which are newest first, of `day` or later."""
    return bisect_left(reviews, True, key=lambda review: review.day < day)
