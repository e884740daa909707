"""Comparison of text: folding, loosening, words of a name, and mentions of an alias.

Strangers send these texts, so the time of every function grows no faster than that of
sorting the text. This module knows no review.

Sections: folding - loosening - words - aliases.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, groupby

# ---- Folding: for ids, digests and aliases ----

# iPhones type the first apostrophe; Turkish has i with and without a dot; casefolding
# turns ŉ into ʼn.
EQUIVALENTS = {"’": "'", "‘": "'", "ʼ": "'", "´": "'", "İ": "i", "ı": "i", "ŉ": "'n"}


def fold(text: str) -> str:
    """`text` to compare in any case, with any apostrophe, accents in any encoding."""
    if text.isascii():
        return text.lower()
    text = composed(text)
    for character, equivalent in EQUIVALENTS.items():
        text = text.replace(character, equivalent)
    return unicodedata.normalize("NFC", text.casefold())


def composed(text: str) -> str:
    """`text` in canonical composition (NFC)."""
    # What is in neither form may have marks out of order, and `normalize` sorts those
    # in quadratic time.
    if not any(unicodedata.is_normalized(form, text) for form in ("NFC", "NFD")):
        text = canonically_ordered(text)
    return unicodedata.normalize("NFC", text)


def canonically_ordered(text: str) -> str:
    """`text` in canonical decomposition (NFD)."""
    parts = "".join(unicodedata.normalize("NFD", character) for character in text)
    runs = groupby(parts, key=lambda part: unicodedata.combining(part) > 0)
    ordered = (sorted(run, key=unicodedata.combining) for _, run in runs)
    return "".join(chain.from_iterable(ordered))


# ---- Loosening: for what callers type ----

ALPHABETS = map(
    chr, (*range(0x41, 0x2B0), *range(0x370, 0x400), *range(0x1E00, 0x2000))
)
LETTERS = "".join(
    char
    for char in ALPHABETS
    if unicodedata.name(char, "").startswith(("LATIN", "GREEK"))
)
# NFD does not give the base of a letter with a stroke, since in Unicode a stroke is not
# a mark. ё is the only Cyrillic letter here: it is often written without its mark,
# while й and и are different letters.
LISTED_LETTERS = dict(zip("ŁØĐłøđЁё", "LODlodЕе", strict=True))


def _unmarked_letters() -> dict[str, str]:
    """By letter with a mark: the letter without."""
    letters = dict(LISTED_LETTERS)
    for letter in LETTERS:
        base = unicodedata.normalize("NFD", letter)[0]
        if base != letter:
            letters[letter] = LISTED_LETTERS.get(base, base)
    return letters


UNMARKED = _unmarked_letters()
MARK = "\u0300-\u036f"
# A letter of UNMARKED with its marks; or marks after another letter of LETTERS, or at
# the start of the text.
MARKED = re.compile(rf"[{''.join(UNMARKED)}{MARK}](?<![^{LETTERS}][{MARK}])[{MARK}]*")


# Full-width and half-width forms: one character is typed in both widths (UAX 11). Other
# compatibility forms stay: their meaning differs, as in 2 and ².
OTHER_WIDTH = re.compile("[\uff01-\uffef]+")
# Vowel points and cantillation of Hebrew, without the maqaf, which joins words; vowel
# points of Arabic. Ordinary text has none, and nobody types them.
POINTS = "\u0591-\u05bd\u05bf-\u05c7\u064b-\u0652"
POINT = re.compile(f"[{POINTS}]")
LIGATURES = {"œ": "oe", "æ": "ae"}


def loosen(text: str) -> str:
    """`fold` of `text` without the differences that callers often omit.

    Those are the marks on Latin and Greek letters and on ё, the points of Hebrew and
    Arabic, the width of letters, and whether two letters are joined. Text that consists
    of marks becomes empty.
    """
    if text.isascii():
        return text.lower()
    of_one_width = OTHER_WIDTH.sub(_of_usual_width, text)
    unpointed = POINT.sub("", composed(of_one_width))
    # Without a point between them, a letter and its mark may compose.
    loose = fold(MARKED.sub(_unmarked, composed(unpointed)))
    for ligature, letters in LIGATURES.items():
        loose = loose.replace(ligature, letters)
    return loose


def _of_usual_width(run: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", run[0])


def _unmarked(marked: re.Match[str]) -> str:
    return UNMARKED.get(marked[0][0], "")


# Of a search there are a handful of values, which its hints compare again.
KEPT_VALUES = 16
loose_value = lru_cache(maxsize=KEPT_VALUES)(loosen)

# ---- Words ----

# Of a query whose words may stand anywhere in a text: each is one pass over the texts.
MAX_WORDS = 8


def loose_words(text: str) -> list[str]:
    """The first MAX_WORDS different words of the loosened `text`."""
    return list(dict.fromkeys(loosen(text).split()))[:MAX_WORDS]


WORD = re.compile(r"\w+")


def words_in(loose_text: str) -> list[str]:
    """The words of a loosened or folded text: letters, digits and underscores."""
    return WORD.findall(loose_text)


def _first_words(value: str) -> list[str]:
    """The first MAX_WORDS different words of a caller's value, loosened."""
    return list(dict.fromkeys(words_in(loose_value(value))))[:MAX_WORDS]


first_words = lru_cache(maxsize=KEPT_VALUES)(_first_words)


def sorted_words(loose_texts: Iterable[str]) -> list[str]:
    """The different words of many loosened texts."""
    # Texts repeat most of their words, and splitting is faster than the pattern.
    parts = set[str]()
    for text in loose_texts:
        parts.update(text.split())
    words = set[str]()
    for part in parts:
        words.update(words_in(part))
    return sorted(words)


def beginning_with(words: Sequence[str], beginning: str) -> Sequence[str]:
    """Those of the sorted `words` that begin with `beginning`."""
    first = bisect_left(words, beginning)
    end = bisect_left(
        words, True, lo=first, key=lambda word: not word.startswith(beginning)
    )
    return words[first:end]


def longest_beginning(words: Sequence[str], word: str) -> str:
    """The longest beginning of `word` with which one of the sorted `words` begins."""
    at = bisect_left(words, word)
    neighbours = words[max(at - 1, 0) : at + 1]
    common = [_common_beginning(word, other) for other in neighbours]
    return max(common, key=len, default="")


def _common_beginning(first: str, second: str) -> str:
    length = 0
    for letter, other in zip(first, second, strict=False):
        if letter != other:
            break
        length += 1
    return first[:length]


# Letters that two words begin with before their endings may differ: "die" is not "das".
SHORTEST_BEGINNING = 4
# Letters of an ending: "Termine" finds Termin, "parking" finds "parked".
LONGEST_ENDING = 3


def alike(word: str, words: Sequence[str]) -> set[str]:
    """Those of the sorted `words` that are `word`, but for their ending."""
    # Words that differ in their ending begin with at least these letters.
    beginning = word[: max(SHORTEST_BEGINNING, len(word) - LONGEST_ENDING)]
    return {
        other
        for other in beginning_with(words, beginning)
        if other == word or _differ_in_ending(word, other)
    }


# The longest words of a text of a caller: long words are the most specific.
MAX_LONG_WORDS = 4


def long_words(loose_text: str) -> list[str]:
    """The longest different words, without short ones, which most texts have."""
    words = [word for word in words_in(loose_text) if len(word) >= SHORTEST_BEGINNING]
    return sorted(dict.fromkeys(words), key=len)[-MAX_LONG_WORDS:]


def _differ_in_ending(first: str, second: str) -> bool:
    shorter = min(len(first), len(second))
    longer = max(len(first), len(second))
    beginning = max(SHORTEST_BEGINNING, longer - LONGEST_ENDING)
    return shorter >= beginning and first[:beginning] == second[:beginning]


# The marks of voiced kana: combining, and half as wide as a letter.
VOICED = "\u3099\u309a\uff9e\uff9f"
# A character with the marks that follow it.
MARKED_CHARACTER = re.compile(f"(?s).[{MARK}{POINTS}{VOICED}]*")

# Spaces, dots, commas, hyphens.
NAME_SEPARATORS = re.compile(r"[\s.,\u2010-\u2013-]+")


def name_words(name: str) -> frozenset[str]:
    """The loosened words of a person's name; hyphens, dots, commas end words, too."""
    return frozenset(filter(None, NAME_SEPARATORS.split(loosen(name))))


name_value_words = lru_cache(maxsize=KEPT_VALUES)(name_words)

# ---- Aliases ----

# The `folded_words` of an alias, and the pattern that finds them as whole words.
Alias = tuple[str, re.Pattern[str]]
# From this character on, scripts have no spaces between words (Chinese, Japanese).
UNSPACED = "\u2e80"


def folded_words(text: str) -> str:
    """The folded `text`, with one space between words."""
    return " ".join(fold(text).split())


def alias_of(alias: str) -> Alias:
    """The Alias that finds `alias` in the `folded_words` of a text."""
    words = folded_words(alias)
    pattern = re.escape(words)
    if max(words) < UNSPACED:
        pattern = rf"(?<!\w){pattern}(?!\w)"
    return words, re.compile(pattern)
