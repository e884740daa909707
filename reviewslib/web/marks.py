"""Texts of reviews as HTML in which the words of a search are marked.

Whatever the text and the words are, the time is bounded: only the part of a text that
is shown is looked through, and the marks of a text are counted. This module must not
know pages.

Sections: excerpts - occurrences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup

from reviewslib.dataset.text import MARKED_CHARACTER, loosen
from reviewslib.web.shown_text import FORBIDDEN, MAX_TEXT, paragraphs, shortened

# Marks of a text. More of them help no reader, and a page of twenty texts of single
# letters had 10,000 of them.
MAX_MARKS = 20
# Characters of a word: finding one takes its length times that of the text.
MAX_MARKED = 100
# What is shown before the first mark if the beginning of a text is cut: some context.
BEFORE_FIRST_MARK = MAX_TEXT // 4

# ---- Excerpts ----


def marked(text: str, loose_text: str, words: Sequence[str]) -> Markup:
    """At most MAX_TEXT characters of a text as HTML, with `words` in `mark` elements.

    `loose_text` is the loosened text; `words` come from `loose_words`. A longer text is
    cut at its end. If that hides the first occurrence of a word, its beginning is cut,
    too.
    """
    whole = paragraphs(text, None)
    sought = [word for word in words if len(word) <= MAX_MARKED]
    start = _start(whole, loose_text, sought)
    shown = FORBIDDEN.sub("", shortened(whole[start:], MAX_TEXT))
    pieces = []
    if start:
        pieces.append("…")
    at = 0
    for span in occurrences(shown, sought):
        pieces.append(shown[at : span.start])
        pieces.append(Markup("<mark>{}</mark>").format(shown[span.start : span.end]))
        at = span.end
    pieces.append(shown[at:])
    return Markup("").join(pieces)


def _start(text: str, loose_text: str, words: Sequence[str]) -> int:
    """Where the shown part begins: at 0 unless that hides the first occurrence."""
    if len(text) <= MAX_TEXT:
        return 0
    first = _first(loose_text, words)
    if first is None:
        return 0
    # Loosened texts are seldom longer or shorter; then the place is near enough.
    ratio = len(text) / len(loose_text)
    if first.end * ratio < MAX_TEXT:
        return 0
    begin = round(first.start * ratio)
    start = max(0, begin - BEFORE_FIRST_MARK)
    # At a word, if there is a space before the occurrence.
    return max(start, text.find(" ", start, begin) + 1)


# ---- Occurrences ----


class Span(NamedTuple):
    """A part of a text."""

    start: int
    end: int


def occurrences(text: str, words: Sequence[str]) -> list[Span]:
    """Where `text` loosely equals one of `words`, which are loosened, in order.

    Only the first MAX_MARKS occurrences are there. Those that touch or overlap are
    joined.
    """
    loosened = _loosened(text)
    joined: list[Span] = []
    for found in _first_occurrences(loosened.text, words):
        span = Span(loosened.starts[found.start], loosened.ends[found.end - 1])
        if joined and span.start <= joined[-1].end:
            before = joined.pop()
            span = Span(before.start, max(before.end, span.end))
        joined.append(span)
    return joined


def _first(text: str, words: Sequence[str]) -> Span | None:
    """The first occurrence of any of the words."""
    found = _first_occurrences(text, words, limit=1)
    return found[0] if found else None


def _first_occurrences(
    text: str, words: Sequence[str], limit: int = MAX_MARKS
) -> list[Span]:
    """The first `limit` occurrences of the words, in order; they may overlap."""
    next_of = {}
    for word in words:
        at = text.find(word)
        if at >= 0:
            next_of[word] = at
    found: list[Span] = []
    while next_of and len(found) < limit:
        word = min(next_of, key=next_of.__getitem__)
        start = next_of.pop(word)
        found.append(Span(start, start + len(word)))
        following = text.find(word, start + 1)
        if following >= 0:
            next_of[word] = following
    return found


class Loosened(NamedTuple):
    """A text, loosened by the character, and where each of its characters is from."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


# Texts have few different characters.
loose_character = lru_cache(maxsize=4096)(loosen)


def _loosened(text: str) -> Loosened:
    """The loosened text with its places in `text`."""
    size = len(text)
    if text.isascii():
        return Loosened(text.lower(), range(size), range(1, size + 1))
    starts: list[int] = []
    ends: list[int] = []
    letters: list[str] = []
    at = 0
    # A character with the marks after it, as `loosen` takes them together.
    for character in MARKED_CHARACTER.findall(text):
        end = at + len(character)
        for letter in loose_character(character):
            letters.append(letter)
            starts.append(at)
            ends.append(end)
        at = end
    return Loosened("".join(letters), starts, ends)
