"""Comparison of text: folding, words in a text, words of a name, and mentions of an alias.

The time of every function grows no faster than that of sorting the text. This module knows no review.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

# iPhones type the first apostrophe; Turkish has i with and without a dot; casefolding turns ŉ into ʼn.
EQUIVALENTS = {"’": "'", "‘": "'", "ʼ": "'", "´": "'", "İ": "i", "ı": "i", "ŉ": "'n"}


def fold(text: str) -> str:
    """`text` for comparison in any case, with any apostrophe and with accents in any encoding."""
    if text.isascii():
        return text.lower()
    text = composed(text)
    for character, equivalent in EQUIVALENTS.items():
        text = text.replace(character, equivalent)
    return unicodedata.normalize("NFC", text.casefold())


def composed(text: str) -> str:
    """`text` in canonical composition (NFC)."""
    if not (
        unicodedata.is_normalized("NFC", text) or unicodedata.is_normalized("NFD", text)
    ):
        text = canonically_ordered(
            text
        )  # because `normalize` sorts combining characters in quadratic time
    return unicodedata.normalize("NFC", text)


def canonically_ordered(text: str) -> str:
    """`text` in canonical decomposition (NFD)."""
    parts = "".join(unicodedata.normalize("NFD", character) for character in text)
    runs = groupby(parts, key=lambda part: unicodedata.combining(part) > 0)
    return "".join(
        part for _, run in runs for part in sorted(run, key=unicodedata.combining)
    )


ALPHABETS = map(
    chr, (*range(0x41, 0x2B0), *range(0x370, 0x400), *range(0x1E00, 0x2000))
)
LETTERS = "".join(
    char
    for char in ALPHABETS
    if unicodedata.name(char, "").startswith(("LATIN", "GREEK"))
)
# NFD does not give the base of a letter with a stroke, since in Unicode a stroke is not a mark. ё is the only
# Cyrillic letter here: it is often written without its mark, while й and и are different letters.
LISTED_LETTERS = dict(zip("ŁØĐłøđЁё", "LODlodЕе", strict=True))
UNMARKED = LISTED_LETTERS | {
    letter: LISTED_LETTERS.get(base, base)
    for letter in LETTERS
    if (base := unicodedata.normalize("NFD", letter)[0]) != letter
}
MARK = "\u0300-\u036f"
# A letter of UNMARKED with its marks; or marks after another letter of LETTERS, or at the start of the text.
MARKED = re.compile(rf"[{''.join(UNMARKED)}{MARK}](?<![^{LETTERS}][{MARK}])[{MARK}]*")


def loosen(text: str) -> str:
    """`fold` of `text` without the marks on Latin and Greek letters and ё, which callers often omit.

    Text that consists of marks becomes empty.
    """
    if text.isascii():
        return text.lower()
    return fold(
        MARKED.sub(lambda marked: UNMARKED.get(marked[0][0], ""), composed(text))
    )


loose_value = lru_cache(maxsize=16)(
    loosen
)  # for the values of a search, which its hints compare again
MAX_WORDS = 8  # of a query whose words may stand anywhere in a text


def loose_words(text: str) -> list[str]:
    """The first MAX_WORDS different words of the loosened `text`."""
    return list(dict.fromkeys(loosen(text).split()))[:MAX_WORDS]


# A character with the marks that follow it.
MARKED_CHARACTER = re.compile(f"(?s).[{MARK}]*")

NAME_SEPARATORS = re.compile(r"[\s.,\u2010-\u2013-]+")  # spaces, dots, commas, hyphens


def name_words(name: str) -> frozenset[str]:
    """The loosened words of a person's name; hyphens, dots and commas end words, too."""
    return frozenset(filter(None, NAME_SEPARATORS.split(loosen(name))))


name_value_words = lru_cache(maxsize=16)(
    name_words
)  # for the names in a search, as `loose_value`

# The `folded_words` of an alias, and the pattern that finds them as whole words.
Alias = tuple[str, re.Pattern[str]]
UNSPACED = "\u2e80"  # from this character on, scripts have no spaces between words (Chinese, Japanese)


def folded_words(text: str) -> str:
    """The folded `text`, with one space between words."""
    return " ".join(fold(text).split())


def alias_of(alias: str) -> Alias:
    """The Alias that finds `alias` in the `folded_words` of a text."""
    words = folded_words(alias)
    unspaced = max(words) >= UNSPACED
    return words, re.compile(
        re.escape(words) if unspaced else rf"(?<!\w){re.escape(words)}(?!\w)"
    )
