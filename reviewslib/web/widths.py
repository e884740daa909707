"""How wide text is in common fonts, and how many lines it takes where nobody set it.

Widths are in em, the size of the font. They are those of wide fonts: who asks needs
room for any visitor's. This module must not know what the text is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

# By character; what is not listed is about as wide as a digit.
NARROW = dict.fromkeys("ijl.,:;'|! \u2019", 0.28)
SLENDER = dict.fromkeys("ftrI()[]/-·", 0.36)
BROAD = dict.fromkeys("mwMW%@…—", 0.85)
LISTED = NARROW | SLENDER | BROAD
DIGIT = 0.56
CAPITAL = 0.68
# In East Asian fonts a character fills a square; so do most emoji.
SQUARE = 1.0
SQUARE_KINDS = ("W", "F")


def text_width(text: str) -> float:
    """The width of a line, in em."""
    return sum(map(_character_width, text))


@lru_cache(maxsize=4096)
def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0
    if character in LISTED:
        return LISTED[character]
    if unicodedata.east_asian_width(character) in SQUARE_KINDS:
        return SQUARE
    return CAPITAL if character.isupper() else DIGIT


# For each line that is written: the widths of its words. Words of scripts without
# spaces end after every character.
Words = Sequence[Sequence[float]]


def words_of(text: str) -> Words:
    """The widths of the words of a text."""
    return [list(map(text_width, _words(line))) for line in text.split("\n")]


def _words(line: str) -> list[str]:
    words = []
    for word in line.split():
        if any(unicodedata.east_asian_width(one) in SQUARE_KINDS for one in word):
            words += list(word)
        else:
            words.append(word)
    return words


def line_count(words: Words, room: float) -> int:
    """The number of lines of a text in a column of so many em."""
    return sum(_lines_of(line, room) for line in words)


def _lines_of(line: Sequence[float], room: float) -> int:
    """The lines that one written line takes; words move to the next line whole."""
    lines = 1
    used = 0.0
    for width in line:
        if used and used + width > room:
            lines += 1
            used = 0.0
        # A word that is wider than the column is broken.
        broken, rest = divmod(width, room)
        lines += int(broken)
        used += rest
        # Between squares stands no space.
        if width != SQUARE:
            used += NARROW[" "]
    return lines
