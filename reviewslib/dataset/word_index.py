"""Word index: where hints look besides the filters, made once, at load.

The words of labels and summaries lead to entries, those of questions and answers to
questions; the words of the texts are only listed, since a search reads the texts. This
module knows no query.

Sections: an index of words - where hints look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.subjects import Subject, Subjects
from reviewslib.dataset.text import alike, loosen, sorted_words, words_in
from reviewslib.dataset.vocabulary import entries_in

Item = TypeVar("Item")

# ---- An index of words ----


@dataclass(frozen=True, slots=True)
class WordIndex(Generic[Item]):
    """Items, and which of them have a word."""

    items: Sequence[Item]
    words: Sequence[str]  # of all items, sorted
    places: Mapping[str, frozenset[int]]  # in `items`, by word

    def with_words(self, words: Iterable[str]) -> list[Item]:
        """The items that have all loosened `words`, whose endings may differ, in order.

        If none has all of them, those with the rarest word that any item has.
        """
        places = [self._places_of(word) for word in words]
        known = [found for found in places if found]
        if not known:
            return []
        chosen = frozenset.intersection(*places) or min(known, key=len)
        return [self.items[place] for place in sorted(chosen)]

    def best_fitting(self, words: Iterable[str], most: int) -> list[Item]:
        """At most `most` items that have any of the loosened `words`, the best first.

        Endings may differ. A word counts the more, the fewer items have it.
        """
        scores = defaultdict[int, float](float)
        for word in words:
            places = self._places_of(word)
            for place in places:
                scores[place] += 1 / len(places)
        # Sorted first, so that equals keep the order of the items.
        ranked = sorted(sorted(scores), key=scores.__getitem__, reverse=True)
        return [self.items[place] for place in ranked[:most]]

    def _places_of(self, word: str) -> frozenset[int]:
        return frozenset().union(*(self.places[it] for it in alike(word, self.words)))


def index_of_words(items: Sequence[Item], texts: Iterable[str]) -> WordIndex[Item]:
    """The index of `items`; each has one of `texts`, which are as written."""
    places = defaultdict[str, set[int]](set)
    for place, text in enumerate(texts):
        for word in words_in(loosen(text)):
            places[word].add(place)
    return WordIndex(
        items=items,
        words=sorted(places),
        places={word: frozenset(found) for word, found in places.items()},
    )


# ---- Where hints look ----


@dataclass(frozen=True, slots=True)
class HintIndex:
    """Where hints look besides the filters."""

    entries: WordIndex[Subject]  # those that reviews speak of, the most mentioned first
    questions: WordIndex[Object]
    text_words: Sequence[str]  # of all texts of reviews, sorted


def hint_index_of(
    subjects: Subjects, insights: Object, loose_texts: Iterable[str]
) -> HintIndex:
    """The index of an InsightsFile, its subjects and the loosened texts of reviews."""
    summaries = dict(_summaries(insights))
    entries = [
        subject
        for subject in subjects.by_key.values()
        if subject.review_ids and subject.is_offered
    ]
    entries.sort(key=lambda subject: len(subject.review_ids), reverse=True)
    described = [f"{it.label} {summaries.get(it.key, '')}" for it in entries]
    questions = insights["faq"]
    asked = [f"{entry['question']} {entry['answer']}" for entry in questions]
    return HintIndex(
        entries=index_of_words(entries, described),
        questions=index_of_words(questions, asked),
        text_words=sorted_words(loose_texts),
    )


def _summaries(insights: Object) -> Iterator[tuple[str, str]]:
    """The summaries of entries by their `Subject.key`."""
    for kind, entry in entries_in(insights):
        if entry.get("summary"):
            yield f"{kind}/{entry['id']}", entry["summary"]
