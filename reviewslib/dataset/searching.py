"""Lists of reviews: the results of search and since, and the neighbours of a review.

Each review is encoded once, when it is loaded; a result joins the encoded reviews. This
module knows nothing of HTTP or MCP.

Sections: lists - search - since - neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from reviewslib.dataset.filters import (
    Reviews,
    count_since,
    filters_of,
    matching,
    meant_by,
    with_all,
)
from reviewslib.dataset.hinting import hints
from reviewslib.dataset.insights import unread
from reviewslib.dataset.query import (
    BadQuery,
    BadValue,
    Issue,
    Query,
    echo,
    read_day,
)
from reviewslib.dataset.reviews import Dataset, Review, document_of, figures_of
from reviewslib.dataset.strict_json import Json
from reviewslib.dataset.text import loose_words

# ---- Lists ----


@dataclass(frozen=True, slots=True)
class ReviewList:
    """A JSON object, not joined yet: the members of `frame`, then `reviews`."""

    frame: dict[str, Json]
    reviews: Reviews

    def encoded(self) -> bytes:
        """The JSON of the object."""
        return document_of(self.frame, [review.json for review in self.reviews])


def _page(dataset: Dataset, matches: Reviews, query: Query) -> ReviewList:
    """The `limit` reviews after the first `offset`, and figures of all `matches`.

    With a filter `people` stands among the figures, with `mentions` also `meant`. What
    is found by reading says how much of the reviews was read, while something is
    unread.
    """
    page = matches[query.offset : query.offset + query.limit]
    frame: dict[str, Json] = {"matched": len(matches), "returned": len(page)}
    # Counting takes longer than finding: what everything passes is not counted again.
    is_whole = len(matches) == len(dataset.reviews)
    frame |= dataset.figures if is_whole else figures_of(matches, dataset.subjects)
    if not filters_of(query):
        del frame["people"]
    if query.mentions:
        meant = meant_by(dataset, query.mentions)
        frame["meant"] = [subject.said() for subject in meant[:MAX_MEANT]]
    if query.mentions or query.sentiment:
        frame |= unread(dataset.insights)
    return ReviewList(frame, page)


# Subjects that a value can mean: a word that most labels have says nothing.
MAX_MEANT = 20


# ---- Search ----


def search(dataset: Dataset, query: Query) -> ReviewList:
    """`{"matched", "returned", …, "reviews"}`: `limit` reviews after `offset` others.

    Between them stand figures of all matches (`_page`). Where nothing matches, `hints`
    stands before `reviews`: sentences that say what would match.
    """
    matches = matching(dataset, query)
    page = _page(dataset, matches, query)
    if matches:
        return page
    sentences = [str(hint) for hint in hints(dataset, query)]
    return ReviewList(page.frame | {"hints": sentences}, ())


def in_any_order(dataset: Dataset, query: Query) -> ReviewList:
    """The result of `search`, but the words of `query` may stand anywhere in the text.

    Only the first of them count (`loose_words`).
    """
    return _page(dataset, matching_in_any_order(dataset, query), query)


def matching_in_any_order(dataset: Dataset, query: Query) -> Reviews:
    """All reviews of `in_any_order`."""
    candidates = matching(dataset, query, without="query")
    return with_all(candidates, loose_words(query.query or ""))


# ---- Since ----


class SinceList(NamedTuple):
    """A JSON object in three pieces; `part` is a part of `Dataset.reviews_json`."""

    head: bytes
    part: memoryview
    tail: bytes

    def encoded(self) -> bytes:
        """The JSON of the object."""
        return b"".join(self)


def since(dataset: Dataset, day: str) -> SinceList:
    """`{"since", "returned", "reviews"}`: the reviews of `day` and later, newest first.

    Raises BadQuery if `day` is no calendar day.
    """
    try:
        read_day(day)
    except BadValue as bad:
        raise BadQuery([Issue("date", echo(day), str(bad))]) from None
    newer = dataset.reviews[: count_since(dataset.reviews, day)]
    empty = document_of({"since": day, "returned": len(newer)}, ())
    tail = b"]}"
    return SinceList(empty.removesuffix(tail), _slice_of(dataset, newer), tail)


def _slice_of(dataset: Dataset, newest: Iterable[Review]) -> memoryview:
    """The JSON of the newest reviews, with commas between: the bytes that are held."""
    reviews = tuple(newest)
    if not reviews:
        return memoryview(b"")
    start = reviews[0].end - len(reviews[0].json)
    return memoryview(dataset.reviews_json)[start : reviews[-1].end]


# ---- Neighbours ----


def neighbours(dataset: Dataset, review: Review) -> tuple[Review | None, Review | None]:
    """The next newer and the next older review."""
    reviews = dataset.reviews
    order = (review.date, review.id)
    at = bisect_left(reviews, True, key=lambda other: (other.date, other.id) <= order)
    newer = reviews[at - 1] if at > 0 else None
    older = reviews[at + 1] if at + 1 < len(reviews) else None
    return newer, older
