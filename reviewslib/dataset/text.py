"""Text as a reader compares it: folded, in words, and where a name occurs in it.

The time of each function grows as sorting does, whatever the text holds. This module knows no review.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby


def fold(text: str) -> str:
    """`text` for comparison without regard to case or to how accents are encoded."""
    if not unicodedata.is_normalized("NFC", text):
        text = canonically_ordered(text)  # here: `normalize` sorts combining characters in quadratic time
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def canonically_ordered(text: str) -> str:
    """`text` in canonical decomposition (NFD), in the time that sorting takes."""
    parts = "".join(unicodedata.normalize("NFD", character) for character in text)
    runs = groupby(parts, key=lambda part: unicodedata.combining(part) > 0)
    return "".join(part for _, run in runs for part in sorted(run, key=unicodedata.combining))


def name_words(name: str) -> frozenset[str]:
    """The folded words of a person's name, without dots and commas at their ends."""
    return frozenset(filter(None, (word.strip(".,") for word in fold(name).split())))


# An alias, folded, and the pattern that finds it where it is not part of a longer word.
Alias = tuple[str, re.Pattern[str]]
UNSPACED = "\u2e80"  # from here on scripts write words without spaces between them (Chinese, Japanese)


def folded_words(text: str) -> str:
    """`text` folded as for the search, its words one space apart."""
    return " ".join(fold(text).split())


def alias_of(alias: str) -> Alias:
    """What finds `alias` in a text of `folded_words`."""
    words = folded_words(alias)
    unspaced = max(words) >= UNSPACED
    return words, re.compile(re.escape(words) if unspaced else rf"(?<!\w){re.escape(words)}(?!\w)")
