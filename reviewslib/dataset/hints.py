"""Hints: sentences that say what would match, after a search without matches.

Each hint counts reviews by the filters of the search itself. This module knows nothing
of HTTP, MCP or pages.

Sections: all hints - ranges - names - words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from reviewslib.dataset.filters import (
    Reviews,
    filters_of,
    matching,
    meant_by,
    services_named,
    sources_named,
    technicians_named,
    with_all,
)
from reviewslib.dataset.query import Query, echo, known_names
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.subjects import Subject
from reviewslib.dataset.text import loose_value, loose_words
from reviewslib.dataset.vocabulary import KINDS

# Ids of reviews in a hint: enough to look at, few enough to read.
MAX_EXAMPLES = 5
# Of a value. Names and questions are shorter; each comparison grows with the length.
MAX_COMPARED_CHARACTERS = 500
# Of a query, the longest ones: counting a word searches all texts.
MAX_COUNTED_WORDS = 4

# ---- All hints ----


def hints(dataset: Dataset, query: Query) -> list[str]:
    """Sentences that say what would match; nothing matches `query`."""
    if not dataset.reviews:
        return ["There are no reviews yet."]
    matches = {
        name: matching(dataset, query, without=name) for name in filters_of(query)
    }
    found = [*_empty_ranges(dataset, query), *_unknown_names(dataset, query)]
    # Without candidates the other filters are at fault, not the words.
    candidates = matches.get("query")
    if candidates:
        found.append(_word_hint(dataset, query.query or "", candidates))
    counts = ", ".join(f"{name} {len(reviews)}" for name, reviews in matches.items())
    found.append(
        f"Reviews that match if one filter is left out: {counts};"
        f" without any filter: {len(dataset.reviews)}."
    )
    return found


# ---- Ranges ----

# Parameters that bound the same from below and above, and how the lower one is wrong.
RANGES = (("since", "after", "until"), ("min_rating", "above", "max_rating"))


def _empty_ranges(dataset: Dataset, query: Query) -> Iterator[str]:
    for low, comparison, high in RANGES:
        least = getattr(query, low)
        most = getattr(query, high)
        if least is not None and most is not None and least > most:
            yield f"{low} is {comparison} {high}: swap the two values."
    newest = dataset.reviews[0].day
    oldest = dataset.reviews[-1].day
    if (query.since or "") > newest or (query.until or newest) < oldest:
        yield f"The reviews are from {oldest} to {newest}."


# ---- Names ----


class NamedKind(NamedTuple):
    """A parameter that takes a name of something known."""

    parameter: str
    noun: str
    plural: str
    lookup: Callable[[Dataset, str], Collection[object]]
    known: Callable[[Dataset], Iterable[str]]


def _labelled_services(dataset: Dataset) -> list[str]:
    """The ids of services with their labels."""
    labelled = []
    for service in _offered(dataset, "services"):
        has_label = service.label != service.id
        labelled.append(_labelled(service.id, service) if has_label else service.id)
    return labelled


def _people(dataset: Dataset) -> list[str]:
    return [person.label for person in _offered(dataset, "technicians")]


def _labelled_subjects(dataset: Dataset) -> list[str]:
    """What `mentions` takes, with labels."""
    return [_labelled(subject.key, subject) for subject in _offered(dataset, *KINDS)]


def _offered(dataset: Dataset, *kinds: str) -> Iterator[Subject]:
    for subject in dataset.subjects.by_key.values():
        if subject.is_offered and subject.kind in kinds:
            yield subject


def _labelled(name: str, subject: Subject) -> str:
    return f"{name} ({subject.label})"


NAMED_KINDS = (
    NamedKind(
        parameter="mentions",
        noun="subject",
        plural="subjects",
        lookup=meant_by,
        known=_labelled_subjects,
    ),
    NamedKind(
        parameter="mentions_technician",
        noun="person",
        plural="people",
        lookup=technicians_named,
        known=_people,
    ),
    NamedKind(
        parameter="mentions_service",
        noun="service",
        plural="services",
        lookup=services_named,
        known=_labelled_services,
    ),
    NamedKind(
        parameter="source",
        noun="source",
        plural="sources",
        lookup=sources_named,
        known=lambda dataset: dataset.sources,
    ),
)


def _unknown_names(dataset: Dataset, query: Query) -> Iterator[str]:
    for kind in NAMED_KINDS:
        value = getattr(query, kind.parameter) or ""
        value = value[:MAX_COMPARED_CHARACTERS]
        if value and not kind.lookup(dataset, value):
            yield _unknown_name(dataset, kind, value)


def _unknown_name(dataset: Dataset, kind: NamedKind, value: str) -> str:
    known = known_names(kind.plural, value, kind.known(dataset))
    count = len(with_all(dataset.reviews, [loose_value(value)]))
    in_texts = f"Reviews with it in their text: {count}"
    if count:
        in_texts += " (search with query)"
    return f"No {kind.noun} is called “{echo(value)}”. {known}. {in_texts}."


# ---- Words ----

PHRASE_ONLY = "query matches its words only as a phrase."


def _word_hint(dataset: Dataset, text: str, candidates: Reviews) -> str:
    """A sentence about the words of `text`; `candidates` pass all other filters."""
    words = loose_words(text[:MAX_COMPARED_CHARACTERS])
    longest = sorted(words, key=len)[-MAX_COUNTED_WORDS:]
    found = {word: with_all(candidates, [word]) for word in longest}
    # The rarest word leaves the fewest texts to search for the others.
    rarest = min(found.values(), key=len, default=())
    matches = with_all(rarest, words)
    if matches:
        ids = ", ".join(review.id for review in matches[:MAX_EXAMPLES])
        which = f"the first {len(words)} of them"
        if set(loose_value(text).split()) == set(words):
            which = "all of them"
        return (
            f"{PHRASE_ONLY} Reviews with {which} in any order: {len(matches)} ({ids})."
        )
    if any(found.values()):
        counts = (f"{echo(word)} {len(reviews)}" for word, reviews in found.items())
        return f"{PHRASE_ONLY} Reviews with one of them: {', '.join(counts)}."
    language = dataset.business.get("language")
    where = f" (their language: {language})" if language else ""
    return f"Customers may use other words{where}: try a synonym, or a part of a word."
