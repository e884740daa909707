"""Subjects: what reviews speak of, and which reviews speak of each.

The entries of the insights are the subjects, and the people and services that reviews
mention besides. The index is made once, at load. This module knows neither queries nor
lists of reviews: it must answer filters, hints, pages and tools alike.

Sections: the index - making it - names that callers type.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reviewslib.dataset.strict_json import Json, Object
from reviewslib.dataset.text import MAX_WORDS, loose_value, loosen
from reviewslib.dataset.vocabulary import ENTITY_KINDS, KINDS, NAME_KEYS, SENTIMENTS

Ids = frozenset[str]  # of reviews

# ---- The index ----


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that reviews speak of."""

    kind: str  # one of KINDS
    id: str
    label: str
    words: frozenset[str]  # the loosened words of the label
    review_ids: Ids
    judged: Mapping[str, Ids]  # by sentiment; empty for other kinds than aspects
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

    by_key: Mapping[str, Subject]  # kinds and entries in the order of the insights
    judged: Mapping[str, Ids]  # by sentiment: the reviews with any aspect judged so
    words: frozenset[str]  # of all labels

    def of_kind(self, kind: str) -> list[Subject]:
        """The subjects of a kind."""
        return [subject for subject in self.by_key.values() if subject.kind == kind]


# ---- Making the index ----

# Of a kind: the ids of reviews by the name in `per_review`.
ByName = Mapping[str, list[str]]
# By the id of an aspect and a sentiment: the ids of reviews.
Judgements = Mapping[tuple[str, str], set[str]]


def subjects_of(insights: Object, reviews: Sequence[Object]) -> Subjects:
    """The subjects of an InsightsFile and of reviews in served form."""
    annotations = insights["per_review"]
    served = {review["id"] for review in reviews}
    judgements = _judgements(annotations, reviews)
    mentions = _mentions(annotations, reviews)
    mentions["aspects"] = _by_aspect(judgements)
    by_key: dict[str, Subject] = {}
    for kind in KINDS:
        by_name = mentions[kind]
        for entry in [*_entries(kind, insights), *_unlisted(kind, insights, by_name)]:
            subject = _subject(kind, entry, by_name, served, judgements)
            by_key.setdefault(subject.key, subject)
    return Subjects(
        by_key=by_key,
        judged=_judged_anyhow(judgements),
        words=frozenset().union(*(subject.words for subject in by_key.values())),
    )


def _entries(kind: str, insights: Object) -> Sequence[Object]:
    place = insights["entities"] if kind in ENTITY_KINDS else insights
    entries: Sequence[Object] = place[kind]
    return entries


def _unlisted(kind: str, insights: Object, by_name: ByName) -> Iterator[Object]:
    """Entries for people and services that reviews mention and the insights do not list.

    Their name is their id. Of other kinds an id without an entry has no label to show.
    """
    if kind not in REVIEW_KEYS:
        return
    listed = {entry[NAME_KEYS[kind]] for entry in _entries(kind, insights)}
    for name in by_name:
        if name not in listed:
            yield {"id": name, "label": name, "example_review_ids": ()}


# Kinds that a review itself lists, in served form from its annotation if it does not.
REVIEW_KEYS = {
    "technicians": "mentioned_technicians",
    "services": "mentioned_services",
}


# Kinds that only an annotation lists, by id. Aspects are listed with a judgement.
ANNOTATED_KINDS = ("problems", "service_areas", "topics")
NOTHING: Object = {}


def _mentions(
    annotations: Mapping[str, Object], reviews: Iterable[Object]
) -> dict[str, ByName]:
    """By kind, but for aspects: what reviews speak of."""
    mentions: dict[str, ByName] = {kind: defaultdict(list) for kind in KINDS}
    # One pass for all kinds: of many reviews, finding an annotation takes longest.
    for review in reviews:
        id = review["id"]
        for kind, key in REVIEW_KEYS.items():
            for name in review[key]:
                mentions[kind][name].append(id)
        annotation = annotations.get(id, NOTHING)
        for kind in ANNOTATED_KINDS:
            for name in annotation.get(kind) or ():
                mentions[kind][name].append(id)
    return mentions


def _judgements(
    annotations: Mapping[str, Object], reviews: Iterable[Object]
) -> Judgements:
    """How reviews judge aspects, each aspect once, as the figures count.

    A review that praises and criticizes an aspect is neutral about it
    (`joint_sentiment`). Sets say it for all reviews at once, three times as fast.
    """
    said = defaultdict[tuple[str, str], set[str]](set)
    for review in reviews:
        id = review["id"]
        for mention in annotations.get(id, NOTHING).get("aspects") or ():
            said[mention["id"], mention["sentiment"]].add(id)
    judgements = {}
    for aspect in {aspect for aspect, _ in said}:
        praise = said[aspect, "positive"]
        criticism = said[aspect, "negative"]
        judgements[aspect, "positive"] = praise - criticism
        judgements[aspect, "negative"] = criticism - praise
        everything = praise | criticism | said[aspect, "neutral"]
        judgements[aspect, "neutral"] = everything - (praise ^ criticism)
    return judgements


def _by_aspect(judgements: Judgements) -> ByName:
    by_name = defaultdict[str, list[str]](list)
    for (aspect, _), ids in judgements.items():
        by_name[aspect].extend(ids)
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
    served: set[str],
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
        for sentiment in SENTIMENTS:
            judged[sentiment] = frozenset(judgements.get((entry["id"], sentiment), ()))
    return Subject(
        kind=kind,
        id=entry["id"],
        label=entry["label"],
        words=frozenset(label_words(entry["label"])),
        review_ids=frozenset(ids),
        judged=judged,
        example_of=entry.get("mention_count") if is_example else None,
    )


# ---- Names that callers type ----

# Letters that two words begin with before their endings may differ: "die" is not "das".
SHORTEST_BEGINNING = 4
# Letters of an ending: "Termine" finds Termin, "parking" finds "parked".
LONGEST_ENDING = 3
WORD = re.compile(r"\w+")


def label_words(text: str) -> list[str]:
    """The loosened words of a label."""
    return WORD.findall(loosen(text))


def subjects_named(
    subjects: Iterable[Subject], value: str, words: Iterable[str]
) -> list[Subject]:
    """The subjects that `value` means: a `key`; else an id or label; else words of labels.

    All words of `value` must stand in the label, in any order and with another ending;
    the first MAX_WORDS count. `words` are those of all labels.
    """
    name = loose_value(value)
    candidates = list(subjects)
    with_key = [subject for subject in candidates if loosen(subject.key) == name]
    if with_key:
        return with_key
    exact = [
        subject
        for subject in candidates
        if name in (loosen(subject.id), loosen(subject.label))
    ]
    if exact:
        return exact
    sought = list(dict.fromkeys(WORD.findall(name)))[:MAX_WORDS]
    if not sought:
        return []
    # Each word is compared with the different words once, not with each label.
    accepted = [_alike(word, words) for word in sought]
    return [
        subject
        for subject in candidates
        if not any(subject.words.isdisjoint(alike) for alike in accepted)
    ]


def _alike(word: str, words: Iterable[str]) -> set[str]:
    """Those of `words` that are `word`, but for their ending."""
    return {other for other in words if other == word or _differ_in_ending(word, other)}


def _differ_in_ending(first: str, second: str) -> bool:
    shorter = min(len(first), len(second))
    longer = max(len(first), len(second))
    beginning = max(SHORTEST_BEGINNING, longer - LONGEST_ENDING)
    return shorter >= beginning and first[:beginning] == second[:beginning]
