"""Hints: what would match, where nothing does, as values.

Search and tools send each as its sentence (`str`), pages as links. This module knows
neither reviews nor how hints are found.

Sections: ranges - names - words - entries and questions - filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reviewslib.dataset.query import echo, known_names

# ---- Ranges ----


@dataclass(frozen=True, slots=True)
class NoReviews:
    """There is nothing to find."""

    def __str__(self) -> str:
        return "There are no reviews yet."


@dataclass(frozen=True, slots=True)
class SwappedRange:
    """The value of the parameter `low` is above that of `high`."""

    low: str
    comparison: str  # "after" of days, "above" of stars
    high: str

    def __str__(self) -> str:
        return f"{self.low} is {self.comparison} {self.high}: swap the two values."


@dataclass(frozen=True, slots=True)
class OtherDays:
    """All reviews are from other days, YYYY-MM-DD."""

    oldest: str
    newest: str

    def __str__(self) -> str:
        return f"The reviews are from {self.oldest} to {self.newest}."


# ---- Names ----


@dataclass(frozen=True, slots=True)
class NothingKnown:
    """Nothing is known that the values of `parameter` could name or select."""

    parameter: str

    def __str__(self) -> str:
        return (
            f"{self.parameter} finds nothing here: nobody has said what these reviews"
            " speak of. Search with query."
        )


# Known names in a hint: those of a business with a page of insights.
MAX_KNOWN = 40


@dataclass(frozen=True, slots=True)
class UnknownName:
    """Nothing is called `value`."""

    parameter: str
    noun: str
    plural: str
    value: str
    known: Sequence[str]  # with ids where these are what callers send
    texts: int  # reviews with the value in their text

    def __str__(self) -> str:
        known = known_names(self.plural, self.value, self.known, MAX_KNOWN)
        texts = _in_texts("it", self.texts)
        return f"No {self.noun} is called “{echo(self.value)}”. {known}. {texts}."


@dataclass(frozen=True, slots=True)
class Unmentioned:
    """The value of `parameter` names something that no review is known to mention."""

    parameter: str
    label: str
    name: str  # the label, or the value if no text has the label
    texts: int  # reviews with the name in their text

    def __str__(self) -> str:
        texts = _in_texts(f"“{_shown(self.name)}”", self.texts)
        return f"No review is known to mention {_shown(self.label)}. {texts}."


def _in_texts(what: str, count: int) -> str:
    sentence = f"Reviews with {what} in their text: {count}"
    return f"{sentence} (search with query)" if count else sentence


def _shown(words: str) -> str:
    """Words of the owner on one line, cut."""
    return echo(" ".join(words.split()))


# ---- Words ----

PHRASE_ONLY = "query matches its words only as a phrase."


@dataclass(frozen=True, slots=True)
class OtherOrder:
    """Reviews have the words of `query`, but not as this phrase."""

    words: int  # that were looked for
    is_whole: bool  # whether these are all words of the query
    matched: int
    ids: Sequence[str]  # of the newest ones

    def __str__(self) -> str:
        which = "all of them" if self.is_whole else f"the first {self.words} of them"
        found = f"{self.matched} ({', '.join(self.ids)})"
        return f"{PHRASE_ONLY} Reviews with {which} in any order: {found}."


@dataclass(frozen=True, slots=True)
class SingleWords:
    """Reviews have some words of `query`, none has all."""

    matched: Mapping[str, int]  # by word

    def __str__(self) -> str:
        counts = [f"{echo(word)} {matched}" for word, matched in self.matched.items()]
        return f"{PHRASE_ONLY} Reviews with one of them: {', '.join(counts)}."


@dataclass(frozen=True, slots=True)
class WordBeginning:
    """No review has a word of `query`, but some have its beginning."""

    word: str
    beginning: str
    matched: int  # reviews with the beginning
    searched: int  # of so many that pass the other filters
    examples: Sequence[str]  # longer words with the beginning

    def __str__(self) -> str:
        none = f"None of {self.searched} reviews has “{echo(self.word)}”"
        verb = "has" if self.matched == 1 else "have"
        found = f"{self.matched} {verb} “{echo(self.beginning)}”"
        if not self.examples:
            return f"{none}; {found}."
        return f"{none}; {found}, as in {', '.join(map(echo, self.examples))}."


@dataclass(frozen=True, slots=True)
class OtherWords:
    """Nothing is known that has a word of `query`."""

    language: str | None  # of the customers

    def __str__(self) -> str:
        where = f" (their language: {self.language})" if self.language else ""
        words = f"Customers may use other words{where}"
        return f"{words}: try a synonym, or a part of a word."


# ---- Entries and questions ----


@dataclass(frozen=True, slots=True)
class FittingEntry:
    """An entry of the insights has the words of a value in its label or summary."""

    parameter: str  # whose value `mentions` replaces
    mentions: str  # the value of that filter
    label: str
    matched: int  # reviews, with the other filters

    def __str__(self) -> str:
        noun = "review" if self.matched == 1 else "reviews"
        found = f"{_shown(self.label)}: {self.matched} {noun}"
        change = f"mentions={self.mentions}"
        if self.parameter != "mentions":
            change += f" instead of {self.parameter}"
        return f"{found}, {change}."


@dataclass(frozen=True, slots=True)
class FittingQuestion:
    """A question of the insights, or its answer, has the words of a value."""

    question: str
    answer: str

    def __str__(self) -> str:
        return f"{_shown(self.question)} {_shown(self.answer)}"


# ---- Filters ----


@dataclass(frozen=True, slots=True)
class OneFilterLess:
    """How many reviews match without one of the filters, and without all."""

    matched: Mapping[str, int]  # by the parameter that is left out
    reviews: int

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {number}" for name, number in self.matched.items())
        return (
            f"Reviews that match if one filter is left out: {counts};"
            f" without any filter: {self.reviews}."
        )


Hint = (
    NoReviews
    | SwappedRange
    | OtherDays
    | NothingKnown
    | UnknownName
    | Unmentioned
    | OtherOrder
    | SingleWords
    | WordBeginning
    | OtherWords
    | FittingEntry
    | FittingQuestion
    | OneFilterLess
)
