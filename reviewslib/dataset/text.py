"""Text as a reader compares it: folded, without marks, in words, and where a name occurs in it.

The time of each function grows as sorting does, whatever the text holds. This module knows no review.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

# Characters that stand for one another: iPhones type the first apostrophe, Turkish has i with and without a
# dot, and casefolding would turn ŉ into ʼn.
EQUIVALENTS = {"’": "'", "‘": "'", "ʼ": "'", "´": "'", "İ": "i", "ı": "i", "ŉ": "'n"}


def fold(text: str) -> str:
    """`text` for comparison without regard to case, to apostrophes, or to how accents are encoded."""
    if text.isascii():
        return text.lower()
    text = composed(text)
    for character, equivalent in EQUIVALENTS.items():
        text = text.replace(character, equivalent)
    return unicodedata.normalize("NFC", text.casefold())


def composed(text: str) -> str:
    """`text` in canonical composition (NFC), in the time that sorting takes."""
    if not (unicodedata.is_normalized("NFC", text) or unicodedata.is_normalized("NFD", text)):
        text = canonically_ordered(text)  # here: `normalize` sorts combining characters in quadratic time
    return unicodedata.normalize("NFC", text)


def canonically_ordered(text: str) -> str:
    """`text` in canonical decomposition (NFD), in the time that sorting takes."""
    parts = "".join(unicodedata.normalize("NFD", character) for character in text)
    runs = groupby(parts, key=lambda part: unicodedata.combining(part) > 0)
    return "".join(part for _, run in runs for part in sorted(run, key=unicodedata.combining))


ALPHABETS = map(chr, (*range(0x41, 0x2B0), *range(0x370, 0x400), *range(0x1E00, 0x2000)))
LETTERS = "".join(char for char in ALPHABETS if unicodedata.name(char, "").startswith(("LATIN", "GREEK")))
# Letters and what they are without their marks. To Unicode a stroke is no mark. Of Cyrillic only ё is often
# written without its mark; й is another letter than и.
LISTED_LETTERS = dict(zip("ŁØĐłøđЁё", "LODlodЕе", strict=True))
UNMARKED = LISTED_LETTERS | {
    letter: LISTED_LETTERS.get(base, base)
    for letter in LETTERS
    if (base := unicodedata.normalize("NFD", letter)[0]) != letter
}
MARK = "\u0300-\u036f"
# A letter with its marks, or the marks after a letter that has none itself, or at the start of the text.
MARKED = re.compile(rf"[{''.join(UNMARKED)}{MARK}](?<![^{LETTERS}][{MARK}])[{MARK}]*")


def loosely(text: str) -> str:
    """`text` for comparison with what somebody typed: folded, Latin and Greek letters and ё without marks.

    What consists of marks becomes empty.
    """
    if text.isascii():
        return text.lower()
    return fold(MARKED.sub(lambda marked: UNMARKED.get(marked[0][0], ""), composed(text)))


NAME_SEPARATORS = re.compile(r"[\s.,\u2010-\u2013-]+")  # spaces, dots, commas, hyphens


def name_words(name: str) -> frozenset[str]:
    """The words of a person's name, compared loosely; a hyphen, a dot or a comma ends a word, too."""
    return frozenset(filter(None, NAME_SEPARATORS.split(loosely(name))))


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
