"""Subjects: what reviews speak of, and which reviews speak of each.

The entries of the insights are the subjects, and the people and services that reviews
mention besides. The index is made once, at load. This module knows neither queries nor
lists of reviews: it must answer filters, hints, pages and tools alike.

Sections: the index - making the index - names that callers type.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reviewslib.dataset.strict_json import Json, Object
from reviewslib.dataset.text import alike, first_words, loose_value, loosen, words_in
from reviewslib.dataset.vocabulary import (
    NAME_KEYS,
    SENTIMENTS,
    entries_in,
    entries_of_kind,
    is_proposed,
    says_something,
)

Ids = frozenset[str]  # of reviews

# ---- The index ----


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that reviews speak of."""

    kind: str  # one of KINDS
    id: str
    label: str
    names: frozenset[str]  # the loosened id and label
    words: frozenset[str]  # the loosened words of the label
    review_ids: Ids
    judged: Mapping[str, Ids]  # by sentiment; empty for other kinds than aspects
    # Whether texts for models may name it: somebody knows of it, and no model proposed
    # its label, which may be the words of a customer.
    is_offered: bool
    # The figure of the insights where `review_ids` are only its examples.
    example_of: int | None = None

    @property
    def key(self) -> str:
        """What callers and links name it by, such as `aspects/wait_time`."""
        return f"{self.kind}/{self.id}"

    def said(self) -> dict[str, Json]:
        """What a result says of it; `mentions` is the value of the filter."""
        said = {
            "mentions": self.key,
            "label": self.label,
            "count": len(self.review_ids),
        }
        if self.example_of is not None:
            said["examples_of"] = self.example_of
        return said


@dataclass(frozen=True, slots=True)
class Subjects:
    """All subjects of a dataset."""

    # Kinds and entries in the order of the insights; then what only reviews name.
    by_key: Mapping[str, Subject]
    people: Mapping[str, Subject]  # by the name in reviews
    judged: Mapping[str, Ids]  # by sentiment: the reviews with any aspect judged so
    words: Sequence[str]  # of all labels, sorted

    def of_kind(self, kind: str) -> list[Subject]:
        """The subjects of a kind."""
        return [subject for subject in self.by_key.values() if subject.kind == kind]

    def ids_of(self, subject: Subject, sentiment: str | None) -> Ids:
        """The reviews that speak of a subject; with `sentiment`, that judge it so.

        What is no aspect is not judged: then any aspect counts.
        """
        if sentiment is None:
            return subject.review_ids
        if subject.judged:
            return subject.judged[sentiment]
        return subject.review_ids & self.judged[sentiment]


# People whom most reviews mention: enough to answer "who is good with …".
MAX_PEOPLE = 5


def most_mentioned(subjects: Subjects, names: Iterable[str]) -> list[dict[str, Json]]:
    """The people who have most of `names`, one for each mention, with their counts."""
    counts = Counter(names)
    # A name that is the id of somebody else leads to nobody.
    for name in counts.keys() - subjects.people.keys():
        del counts[name]
    return [
        {"mentions": subjects.people[name].key, "label": name, "count": count}
        for name, count in counts.most_common(MAX_PEOPLE)
    ]


# ---- Making the index ----

# Of a kind: the ids of reviews by the name in `per_review`.
ByName = Mapping[str, Collection[str]]
# By the id of an aspect and a sentiment: the ids of reviews.
Judgements = Mapping[tuple[str, str], set[str]]


def subjects_of(insights: Object, reviews: Sequence[Object]) -> Subjects:
    """The subjects of an InsightsFile and of reviews in served form."""
    ids = [review["id"] for review in reviews]
    # Each is found once: of many reviews, that takes as long as reading it.
    annotations = [insights["per_review"].get(id, NOTHING) for id in ids]
    judgements = _judgements(ids, annotations)
    mentions = _mentions(ids, annotations, reviews)
    mentions["aspects"] = _by_aspect(judgements)
    by_key = _by_key(insights, mentions, frozenset(ids), judgements)
    subjects = by_key.values()
    return Subjects(
        by_key=by_key,
        people={it.label: it for it in subjects if it.kind == "technicians"},
        judged=_judged_anyhow(judgements),
        words=sorted(frozenset().union(*(subject.words for subject in subjects))),
    )


def _by_key(
    insights: Object,
    mentions: Mapping[str, ByName],
    served: Ids,
    judgements: Judgements,
) -> dict[str, Subject]:
    """The subjects; of two with one key the first, which the insights list."""
    by_key: dict[str, Subject] = {}
    for kind, entry in [*entries_in(insights), *_unlisted(insights, mentions)]:
        subject = _subject(kind, entry, mentions[kind], served, judgements)
        by_key.setdefault(subject.key, subject)
    return by_key


# Kinds that a review itself lists, in served form from its annotation if it does not.
MENTIONED_KEYS = {
    "technicians": "mentioned_technicians",
    "services": "mentioned_services",
}


def _unlisted(
    insights: Object, mentions: Mapping[str, ByName]
) -> Iterator[tuple[str, Object]]:
    """Entries for people and services that reviews mention and insights do not list.

    Their name is their id. Of other kinds an id without an entry has no label to show.
    """
    for kind in MENTIONED_KEYS:
        listed = {entry[NAME_KEYS[kind]] for entry in entries_of_kind(insights, kind)}
        for name in mentions[kind]:
            if name not in listed:
                yield kind, {"id": name, "label": name, "example_review_ids": ()}


# Kinds that only an annotation lists, by id. Aspects are listed with a judgement.
ANNOTATED_KINDS = ("problems", "service_areas", "topics")
NOTHING: Object = {}


def _mentions(
    ids: Sequence[str], annotations: Sequence[Object], reviews: Sequence[Object]
) -> dict[str, ByName]:
    """By kind, but for aspects: what reviews speak of."""
    mentions = {}
    for kind, key in MENTIONED_KEYS.items():
        mentions[kind] = _by_name(ids, (review[key] for review in reviews))
    for kind in ANNOTATED_KINDS:
        lists = (annotation.get(kind) for annotation in annotations)
        mentions[kind] = _by_name(ids, lists)
    return mentions


def _by_name(ids: Iterable[str], lists: Iterable[Iterable[str] | None]) -> ByName:
    """The ids by name; `lists` has the names of each id."""
    by_name = defaultdict[str, list[str]](list)
    for id, names in zip(ids, lists, strict=True):
        for name in names or ():
            by_name[name].append(id)
    return by_name


def _judgements(ids: Iterable[str], annotations: Iterable[Object]) -> Judgements:
    """How reviews judge aspects, each aspect once, as the figures count.

    A review that praises and criticizes an aspect is neutral about it
    (`joint_sentiment`). Sets say it for all reviews at once, three times as fast.
    """
    mentions = _sentiments(ids, annotations)
    judgements = {}
    for aspect in dict.fromkeys(aspect for aspect, _ in mentions):
        praise = set(mentions.get((aspect, "positive"), ()))
        criticism = set(mentions.get((aspect, "negative"), ()))
        neutral = set(mentions.get((aspect, "neutral"), ()))
        both = praise & criticism
        judgements[aspect, "positive"] = praise - criticism
        judgements[aspect, "negative"] = criticism - praise
        judgements[aspect, "neutral"] = both | (neutral - praise - criticism)
    return judgements


def _sentiments(
    ids: Iterable[str], annotations: Iterable[Object]
) -> Mapping[tuple[str, str], list[str]]:
    """By aspect and sentiment: the reviews that have both, among others perhaps."""
    mentions = defaultdict[tuple[str, str], list[str]](list)
    for id, annotation in zip(ids, annotations, strict=True):
        for mention in annotation.get("aspects") or ():
            mentions[mention["id"], mention["sentiment"]].append(id)
    return mentions


def _by_aspect(judgements: Judgements) -> ByName:
    by_name = defaultdict[str, set[str]](set)
    for (aspect, _), ids in judgements.items():
        by_name[aspect] |= ids
    return by_name


def _judged_anyhow(judgements: Judgements) -> dict[str, Ids]:
    judged = {sentiment: set[str]() for sentiment in SENTIMENTS}
    for (_, sentiment), ids in judgements.items():
        judged[sentiment] |= ids
    return {sentiment: frozenset(ids) for sentiment, ids in judged.items()}


def _subject(
    kind: str,
    entry: Object,
    by_name: ByName,
    served: Ids,
    judgements: Judgements,
) -> Subject:
    examples = entry["example_review_ids"]
    # Where no annotation lists a kind, examples are all that is known of its entries.
    is_example = not by_name and len(examples) > 0
    ids: Iterable[str] = by_name.get(entry[NAME_KEYS[kind]], ())
    if is_example:
        ids = served.intersection(examples)
    judged: dict[str, Ids] = {}
    if kind == "aspects":
        judged = _judged(entry["id"], judgements)
    return Subject(
        kind=kind,
        id=entry["id"],
        label=entry["label"],
        names=frozenset(map(loosen, (entry["id"], entry["label"]))),
        words=frozenset(words_in(loosen(entry["label"]))),
        review_ids=frozenset(ids),
        judged=judged,
        is_offered=not is_proposed(entry) and (bool(ids) or says_something(entry)),
        example_of=entry.get("mention_count") if is_example else None,
    )


def _judged(aspect: str, judgements: Judgements) -> dict[str, Ids]:
    """By sentiment: the reviews that judge an aspect so."""
    judged = {}
    for sentiment in SENTIMENTS:
        judged[sentiment] = frozenset(judgements.get((aspect, sentiment), ()))
    return judged


# ---- Names that callers type ----


def subjects_named(
    subjects: Iterable[Subject], value: str, words: Sequence[str]
) -> list[Subject]:
    """The subjects `value` means: a `key`; else an id or label; else words of labels.

    All words of `value` must stand in the label, in any order and with another ending;
    the first MAX_WORDS count. `words` are those of all labels, sorted.
    """
    name = loose_value(value)
    candidates = list(subjects)
    if "/" in name:
        with_key = [it for it in candidates if loosen(it.key) == name]
        if with_key:
            return with_key
    exact = [subject for subject in candidates if name in subject.names]
    if exact:
        return exact
    sought = first_words(value)
    if not sought:
        return []
    # Each word is compared with the different words once, not with each label.
    accepted = [alike(word, words) for word in sought]
    return [subject for subject in candidates if _has_each(subject, accepted)]


def _has_each(subject: Subject, accepted: Iterable[Iterable[str]]) -> bool:
    """Whether a label has one of the words of each group."""
    return not any(subject.words.isdisjoint(words) for words in accepted)
