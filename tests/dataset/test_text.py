"""Texts are compared as a reader does, in a time that hostile text does not stretch.

Folding - Aliases
"""

import unicodedata

import plain_definition as plain
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reviewslib.dataset.text import alias_of, fold, folded_words

# ---- Folding ----


REORDERED = "aeßΐᾳ한\u1100\u1161\u0301\u0302\u0316\u0344\u0345\u0f71\u0f73\u0f81"


@settings(max_examples=200)
@given(st.text(max_size=12) | st.text(REORDERED, min_size=1, max_size=12))
@example("\u01f0")  # casefold takes it apart; NFC puts it together again
@example("\u1fb3\u0301")
def test_folding_is_nfc_casefold_nfc_of_short_and_long_texts(text: str) -> None:
    assert [fold(text), fold(text * 300)] == [plain.folded(text), plain.folded(text * 300)]
    assert fold(unicodedata.normalize("NFD", text)) == fold(text)


def test_any_number_of_combining_characters_is_folded() -> None:
    """`normalize` alone would sort these for minutes."""
    acute, grave_below, overlay = "\u0301" * 200_000, "\u0316" * 200_000, "\u0338" * 200_000
    assert fold("A" + acute + grave_below + overlay) == "á" + overlay + grave_below + acute[1:]


# ---- Aliases ----


def mentions(text: str, alias: str) -> bool:
    words, whole = alias_of(alias)
    return bool(words in folded_words(text) and whole.search(folded_words(text)))


@pytest.mark.parametrize(
    ("text", "alias", "found"),
    [
        ("HANA is a treasure", "hana", True),
        ("Ask for Hana.", "Hana", True),
        ("Johanna and Hanako", "Hana", False),
        ("hana_2", "Hana", False),
        ("Dr.\n  Okafor", "Dr. Okafor", True),
        ("dr okafor", "Dr. Okafor", False),
        ("Zoe\u0308 helped", "Zo\u00eb", True),  # composed and decomposed
        ("in der STRASSE", "Stra\u00dfe", True),
        ("C++ (rehab)", "C++", True),
        ("a.c", "a+c", False),  # no pattern
        ("石川さんに感謝", "石川", True),  # no spaces
        ("박한나님 감사합니다", "한나", True),
        ("Хана помогла", "Хана", True),
        ("Ханами", "Хана", False),
        ("Hana I.", "  Hana   I. ", True),
        ("x \u2e80x", "\u2e80", True),  # the first of the scripts without spaces
        ("x \u2e7fx", "\u2e7f", False),
    ],
)
def test_a_mention_is_an_alias_as_whole_words_in_any_case(text: str, alias: str, found: bool) -> None:
    assert mentions(text, alias) is found
