"""Finding hints: what would match, after a search without matches.

Each hint counts reviews by the filters of the search itself. This module writes no
sentence and knows nothing of HTTP, MCP or pages.

Sections: all hints - ranges - names - words - entries and questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple

from reviewslib.dataset.filters import (
    FILTERS,
    Reviews,
    filters_of,
    matching,
    meant_by,
    services_named,
    sources_named,
    technicians_named,
    with_all,
)
from reviewslib.dataset.hints import (
    FittingEntry,
    FittingQuestion,
    Hint,
    NoReviews,
    NothingKnown,
    OneFilterLess,
    OtherDays,
    OtherOrder,
    OtherWords,
    SingleWords,
    SwappedRange,
    UnknownName,
    Unmentioned,
    WordBeginning,
)
from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.subjects import Ids, Subject
from reviewslib.dataset.text import (
    SHORTEST_BEGINNING,
    beginning_with,
    long_words,
    longest_beginning,
    loose_value,
    loose_words,
    loosen,
    words_in,
)
from reviewslib.dataset.vocabulary import LISTED_KINDS

# Of a value. Names and questions are shorter; each comparison grows with the length.
MAX_COMPARED_CHARACTERS = 500

# ---- All hints ----


def hints(dataset: Dataset, query: Query) -> list[Hint]:
    """What would match; nothing matches `query`."""
    if not dataset.reviews:
        return [NoReviews()]
    matches = {
        name: matching(dataset, query, without=name) for name in filters_of(query)
    }
    # Without candidates the other filters are at fault, not the words.
    candidates = matches.get("query", ())
    counted = _counted_words(query.query or "", candidates)
    sought = _words_of_unknown_names(dataset, query)
    sought["query"] = _telling_words(counted, candidates)
    found: list[Hint] = [*_empty_ranges(dataset, query), *_names(dataset, query)]
    found += _words(dataset, query.query or "", candidates, counted)
    found += _entries(dataset, query, sought, matches)
    found += _questions(dataset, sought)
    if candidates and not found:
        found.append(OtherWords(dataset.business.get("language")))
    counts = {name: len(reviews) for name, reviews in matches.items()}
    return [*found, OneFilterLess(counts, len(dataset.reviews))]


# ---- Ranges ----

# Parameters that bound the same from below and above, and how the lower one is wrong.
RANGES = (("since", "after", "until"), ("min_rating", "above", "max_rating"))


def _empty_ranges(dataset: Dataset, query: Query) -> Iterator[Hint]:
    for low, comparison, high in RANGES:
        least = getattr(query, low)
        most = getattr(query, high)
        if least is not None and most is not None and least > most:
            yield SwappedRange(low, comparison, high)
    newest = dataset.reviews[0].day
    oldest = dataset.reviews[-1].day
    if (query.since or "") > newest or (query.until or newest) < oldest:
        yield OtherDays(oldest, newest)


# ---- Names ----


class NamedKind(NamedTuple):
    """A parameter that takes a name of something known."""

    parameter: str
    noun: str
    plural: str
    labels: Callable[[Dataset, str], Sequence[str]]  # of what a value means
    known: Callable[[Dataset], Sequence[str]]


def _labels_meant(dataset: Dataset, value: str) -> list[str]:
    return [subject.label for subject in meant_by(dataset, value)]


def _services_meant(dataset: Dataset, value: str) -> list[str]:
    ids = services_named(dataset, value)
    services = dataset.subjects.of_kind("services")
    return [service.label for service in services if service.id in ids]


def _known_subjects(dataset: Dataset) -> list[str]:
    known = []
    for kind in LISTED_KINDS:
        known += [_called(it.key, it) for it in _offered(dataset, kind)]
    return known


def _known_people(dataset: Dataset) -> list[str]:
    return [person.label for person in _offered(dataset, "technicians")]


def _known_services(dataset: Dataset) -> list[str]:
    known = []
    for service in _offered(dataset, "services"):
        has_label = service.label != service.id
        known.append(_called(service.id, service) if has_label else service.id)
    return known


def _offered(dataset: Dataset, kind: str) -> list[Subject]:
    return [it for it in dataset.subjects.of_kind(kind) if it.is_offered]


def _called(name: str, subject: Subject) -> str:
    return f"{name} ({subject.label})"


NAMED_KINDS = (
    NamedKind(
        parameter="mentions",
        noun="subject",
        plural="subjects",
        labels=_labels_meant,
        known=_known_subjects,
    ),
    NamedKind(
        parameter="mentions_technician",
        noun="person",
        plural="people",
        labels=technicians_named,
        known=_known_people,
    ),
    NamedKind(
        parameter="mentions_service",
        noun="service",
        plural="services",
        labels=_services_meant,
        known=_known_services,
    ),
    NamedKind(
        parameter="source",
        noun="source",
        plural="sources",
        labels=sources_named,
        known=lambda dataset: dataset.sources,
    ),
)


def _names(dataset: Dataset, query: Query) -> Iterator[Hint]:
    subjects = dataset.subjects
    if query.mentions and not subjects.by_key:
        yield NothingKnown("mentions")
        return
    if query.sentiment and not any(subjects.judged.values()):
        yield NothingKnown("sentiment")
    for kind, value in _named(query):
        labels = kind.labels(dataset, value)
        if not labels:
            yield _unknown_name(dataset, kind, value)
        elif not FILTERS[kind.parameter](dataset, dataset.reviews, query):
            yield _unmentioned(dataset, kind, value, labels[0])


def _named(query: Query) -> Iterator[tuple[NamedKind, str]]:
    """The names in a query."""
    for kind in NAMED_KINDS:
        value = getattr(query, kind.parameter)
        if value:
            yield kind, value


def _unknown_name(dataset: Dataset, kind: NamedKind, value: str) -> UnknownName:
    compared = value[:MAX_COMPARED_CHARACTERS]
    return UnknownName(
        parameter=kind.parameter,
        noun=kind.noun,
        plural=kind.plural,
        value=compared,
        known=kind.known(dataset),
        texts=_texts_with(dataset, loose_value(compared)),
    )


def _unmentioned(
    dataset: Dataset, kind: NamedKind, value: str, label: str
) -> Unmentioned:
    """Where no text has the whole label, its texts are those with the value."""
    name = label
    texts = _texts_with(dataset, loosen(label))
    if not texts:
        name = value[:MAX_COMPARED_CHARACTERS]
        texts = _texts_with(dataset, loose_value(name))
    return Unmentioned(kind.parameter, label=label, name=name, texts=texts)


def _texts_with(dataset: Dataset, loose_name: str) -> int:
    return len(with_all(dataset.reviews, [loose_name]))


# ---- Words ----

# Ids of reviews in a hint: enough to look at, few enough to read.
MAX_IDS = 5
# Of a query, the longest ones: counting a word searches all texts.
MAX_COUNTED_WORDS = 4
# Words of texts with the beginning of a word: as many as show what it means there.
MAX_WORDS_WITH_BEGINNING = 3

# The reviews with a word.
Counted = Mapping[str, Reviews]


def _counted_words(text: str, candidates: Reviews) -> Counted:
    """The longest words of `text`; `candidates` pass all other filters."""
    if not candidates:
        return {}
    words = loose_words(text[:MAX_COMPARED_CHARACTERS])
    longest = sorted(words, key=len)[-MAX_COUNTED_WORDS:]
    return {word: with_all(candidates, [word]) for word in longest}


def _words(
    dataset: Dataset, text: str, candidates: Reviews, counted: Counted
) -> Iterator[Hint]:
    """What the texts of `candidates` have of the words of `text`."""
    words = loose_words(text[:MAX_COMPARED_CHARACTERS])
    # The rarest word leaves the fewest texts to search for the others.
    rarest = min(counted.values(), key=len, default=())
    matches = with_all(rarest, words)
    if matches:
        yield OtherOrder(
            words=len(words),
            is_whole=set(loose_value(text).split()) == set(words),
            matched=len(matches),
            ids=[review.id for review in matches[:MAX_IDS]],
        )
        return
    if any(counted.values()):
        yield SingleWords({word: len(reviews) for word, reviews in counted.items()})
    for word, reviews in counted.items():
        if not reviews:
            yield from _beginning(dataset, word, candidates)


def _beginning(
    dataset: Dataset, word: str, candidates: Reviews
) -> Iterator[WordBeginning]:
    """The longest beginning of a word of the query with which words of texts begin."""
    known = dataset.hint_index.text_words
    longest = max(words_in(word), key=len, default="")
    beginning = longest_beginning(known, longest)
    if len(beginning) < SHORTEST_BEGINNING or beginning == word:
        return
    matches = with_all(candidates, [beginning])
    if not matches:
        return
    longer = [other for other in beginning_with(known, beginning) if other != beginning]
    yield WordBeginning(
        word=word,
        beginning=beginning,
        matched=len(matches),
        searched=len(candidates),
        examples=nsmallest(MAX_WORDS_WITH_BEGINNING, longer, key=len),
    )


# ---- Entries and questions ----

# Of hints: as many as a reader compares.
MAX_HINTED_ENTRIES = 4
MAX_HINTED_QUESTIONS = 2
# A word that more than one in so many texts has tells nothing apart.
COMMON = 4

# The words to look for, by the parameter that has them.
Sought = dict[str, Sequence[str]]


def _telling_words(counted: Counted, candidates: Reviews) -> list[str]:
    """The words of the query that few texts have."""
    telling = list[str]()
    for word, reviews in counted.items():
        if len(reviews) * COMMON <= len(candidates):
            telling += long_words(word)
    return telling


def _words_of_unknown_names(dataset: Dataset, query: Query) -> Sought:
    sought: Sought = {}
    for kind, value in _named(query):
        # No entry tells where reviews were published.
        if kind.parameter != "source" and not kind.labels(dataset, value):
            name = loose_value(value[:MAX_COMPARED_CHARACTERS])
            sought[kind.parameter] = long_words(name)
    return sought


def _entries(
    dataset: Dataset, query: Query, sought: Sought, matches: Mapping[str, Reviews]
) -> Iterator[FittingEntry]:
    """Entries with the words; `matches` pass all filters but the one with the words.

    They are of one parameter: where two values are unknown, nothing passes.
    """
    for parameter, words in sought.items():
        # A search takes one value of `mentions`.
        if query.mentions and parameter != "mentions":
            continue
        candidates = matches.get(parameter, ())
        fitting = dataset.hint_index.entries.with_words(words)
        for entry in fitting[:MAX_HINTED_ENTRIES]:
            ids = dataset.subjects.ids_of(entry, query.sentiment)
            matched = _count_among(dataset, candidates, ids)
            if matched:
                yield FittingEntry(parameter, entry.key, entry.label, matched)


def _count_among(dataset: Dataset, candidates: Reviews, ids: Ids) -> int:
    """How many of `candidates` have one of `ids`."""
    if len(candidates) == len(dataset.reviews):
        return len(ids)
    return sum(review.id in ids for review in candidates)


def _questions(dataset: Dataset, sought: Sought) -> list[FittingQuestion]:
    questions: list[FittingQuestion] = []
    for words in sought.values():
        for entry in dataset.hint_index.questions.with_words(words):
            question = FittingQuestion(entry["question"], entry["answer"])
            if question not in questions:
                questions.append(question)
    return questions[:MAX_HINTED_QUESTIONS]
