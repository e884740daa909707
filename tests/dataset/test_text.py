"""Texts are compared as a reader compares them, and hostile text does not take longer.

Sections: folding - names - words and their beginnings - aliases.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lab import plain_definition as plain

from reviewslib.dataset.text import (
    alias_of,
    alike,
    beginning_with,
    fold,
    folded_words,
    long_words,
    longest_beginning,
    loosen,
    name_words,
    sorted_words,
)

# ---- Folding ----

REORDERED = (
    "aeß\u0390\u1fb3한\u1100\u1161\u0301\u0302\u0316\u0344\u0345\u0f71\u0f73\u0f81"
)
# Letters in other scripts and widths, with the points and marks that follow them.
POINTED = "\u05d0\u05bc\u05be\u05c3\u05e9\u05c1\ufb2a\u0627\u064b\u0653\u0622"
OTHER_WIDTHS = "Ａｂ２\uff76\uff9e\u30ab\u3099\uffa1"
TYPED = "iıİ’‘ʼ´'ŉŁøđ\u01feаеЁёйє5œŒæÆǽ\u304c" + POINTED + OTHER_WIDTHS + REORDERED
texts = st.text(max_size=12) | st.text(TYPED, min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=400)
@given(texts)
@example("\u01f0")  # casefold takes it apart; NFC puts it together again
@example("\u1fb3\u0301")
def test_folding_equals_its_plain_definition_for_any_length(text: str) -> None:
    assert [fold(text), fold(text * 300)] == [
        plain.folded(text),
        plain.folded(text * 300),
    ]
    assert [loosen(text), loosen(text * 300)] == [
        plain.loosen(text),
        plain.loosen(text * 300),
    ]


@pytest.mark.parametrize(
    ("base", "folded", "loose"),
    [
        pytest.param("A", "á", "a", id="after a letter"),
        pytest.param("5", "5", "5", id="after a digit"),
    ],
)
def test_any_number_of_combining_characters_is_folded(
    base: str, folded: str, loose: str
) -> None:
    """`normalize` alone would sort these for minutes."""
    acute = "\u0301" * 200_000
    grave_below = "\u0316" * 200_000
    overlay = "\u0338" * 200_000
    marks = overlay + grave_below + acute
    composed = folded + (marks[:-1] if base == "A" else marks)
    assert fold(base + acute + grave_below + overlay) == composed
    assert loosen(base + acute + grave_below + overlay) == (
        loose if base == "A" else composed
    )


@pytest.mark.parametrize(
    ("typed", "written", "is_equal"),
    [
        pytest.param("doner", "Döner", True, id="German"),
        pytest.param(
            "Lodz, Orsted, Dang, O", "Łódź, Ørsted, Đặng, Ǿ", True, id="strokes"
        ),
        pytest.param("αθηνα ωδη елка", "Αθήνα ᾠδή Ёлка", True, id="Greek, and ё"),
        pytest.param("Istanbul isi", "İstanbul ısı", True, id="Turkish i"),
        pytest.param("don't 'n 'a 'b 'c", "don’t ŉ ‘a ʼb ´c", True, id="apostrophes"),
        pytest.param("x", "x\u0302\u0316", True, id="two marks"),
        pytest.param("", "\u0301\u0316", True, id="marks alone"),
        pytest.param("a", "\u0301a", True, id="a mark at the start"),
        pytest.param("и", "й", False, id="й"),
        pytest.param("е", "є", False, id="є"),
        pytest.param("か", "が", False, id="voiced kana"),
        pytest.param("5", "5\u0301", False, id="a marked digit"),
        pytest.param("a", "æ", False, id="æ"),
    ],
)
def test_marks_are_left_out_where_they_make_no_other_letter(
    typed: str, written: str, is_equal: bool
) -> None:
    assert (loosen(typed) == loosen(written)) is is_equal


ALIKE = [
    pytest.param("cœur", "coeur", id="joined o and e"),
    pytest.param("Œuvre", "oeuvre", id="in capitals"),
    pytest.param("smørrebrød på Ærø", "smorrebrod pa aero", id="joined a and e"),
    pytest.param("ＷｉＦｉ", "wifi", id="full width"),
    pytest.param("ｶﾆ", "カニ", id="half-width kana"),
    pytest.param("ｶﾞﾗｽ", "ガラス", id="half-width kana with a mark"),
    pytest.param("שָׁלוֹם", "שלום", id="pointed Hebrew"),
    pytest.param("مُحَمَّد", "محمد", id="pointed Arabic"),
]


@pytest.mark.parametrize(("written", "typed"), ALIKE)
def test_what_is_typed_without_its_signs_is_alike(written: str, typed: str) -> None:
    assert loosen(written) == loosen(typed)


DIFFERENT = [
    pytest.param("גוריון־בן", "גוריוןבן", id="the maqaf joins words"),
    pytest.param("カス", "ガス", id="voiced kana"),
    pytest.param("m²", "m2", id="a raised number"),
    pytest.param("Müller", "Mueller", id="ue for ü"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_reads_otherwise_is_different(one: str, other: str) -> None:
    assert loosen(one) != loosen(other)


# ---- Names ----


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(
            "Dr. Tobias Okafor,José", "dr tobias okafor jose", id="dots and commas"
        ),
        pytest.param(
            "Zoë O’Neill-X\u2010Lind\u2011Berg\u2013Y",
            "zoe o'neill x lind berg y",
            id="hyphens",
        ),
        pytest.param(" .,- ", "", id="no words"),
        pytest.param("\u0301", "", id="a mark alone"),
    ],
)
def test_dots_commas_and_hyphens_end_the_words_of_a_name(name: str, words: str) -> None:
    assert name_words(name) == set(words.split()) == set(plain.words(name))


# ---- Words and their beginnings ----

# Of few letters, so that many words begin alike.
loose = st.text("ab", min_size=1, max_size=10)
sorted_lists = st.lists(loose, max_size=12).map(lambda words: sorted(set(words)))


@given(sorted_lists, loose)
def test_words_with_a_beginning_stand_together(words: list[str], start: str) -> None:
    assert beginning_with(words, start) == [it for it in words if it.startswith(start)]


@given(sorted_lists, loose)
def test_the_longest_beginning_is_that_of_any_word(words: list[str], word: str) -> None:
    beginnings = [word[:length] for length in range(len(word) + 1)]
    known = [it for it in beginnings if beginning_with(words, it)]

    assert longest_beginning(words, word) == (known[-1] if known else "")


@given(sorted_lists, loose)
def test_words_are_alike_but_for_an_ending(words: list[str], word: str) -> None:
    expected = {other for other in words if plain.are_alike(word, other)}

    assert alike(word, words) == expected


@pytest.mark.parametrize(
    ("word", "other", "are_alike"),
    [
        pytest.param("abcdefgh", "abcdefghijk", True, id="three letters more"),
        pytest.param("abcdefgh", "abcdefghijkl", False, id="four letters more"),
        pytest.param("abcdefgh", "abcdeixyzw", False, id="another stem"),
        pytest.param("abcd", "abce", False, id="the fourth letter"),
        pytest.param("abcde", "abcdf", True, id="the last letter"),
    ],
)
def test_an_ending_has_three_letters(word: str, other: str, are_alike: bool) -> None:
    assert (alike(word, [other]) == {other}) is are_alike
    assert (alike(other, [word]) == {word}) is are_alike


def test_words_of_texts_are_letters_digits_and_underscores() -> None:
    words = sorted_words(["it's a_1 (well-being)", "well, it"])

    assert words == ["a_1", "being", "it", "s", "well"]


LONG = [
    pytest.param("who is good with it", ["good", "with"], id="four letters"),
    pytest.param("good good", ["good"], id="once"),
    pytest.param(
        "aaaa bbbbb cccccc ddddddd eeeeeeee",
        ["bbbbb", "cccccc", "ddddddd", "eeeeeeee"],
        id="the longest four",
    ),
    pytest.param("a-b?", [], id="none"),
]


@pytest.mark.parametrize(("text", "words"), LONG)
def test_long_words_tell_texts_apart(text: str, words: list[str]) -> None:
    assert long_words(text) == words


# ---- Aliases ----


@pytest.mark.parametrize(
    ("texts", "alias", "expected"),
    [
        pytest.param("HANA is a treasure|Ask for Hana.", "hana", True, id="any case"),
        pytest.param("Johanna and Hanako|hana_2", "Hana", False, id="a part of a word"),
        pytest.param("Dr.\n  Okafor", "Dr. Okafor", True, id="any white space"),
        pytest.param("dr okafor", "Dr. Okafor", False, id="a dot less"),
        pytest.param(
            "Zoe\u0308 helped", "Zo\u00eb", True, id="composed and decomposed"
        ),
        pytest.param("Das war schon gut", "Schön", False, id="another letter"),
        pytest.param("O’Neill helped", "O'Neill", True, id="another apostrophe"),
        pytest.param("C++ (rehab)", "C++", True, id="signs"),
        pytest.param("a.c", "a+c", False, id="no pattern"),
        pytest.param("石川さんに感謝", "石川", True, id="Japanese has no spaces"),
        pytest.param("박한나님 감사합니다", "한나", True, id="Korean endings"),
        pytest.param("このAランチは最高", "Aランチ", True, id="Latin within Japanese"),
        pytest.param("Хана помогла", "Хана", True, id="Cyrillic"),
        pytest.param("Ханами", "Хана", False, id="a part of a Cyrillic word"),
        pytest.param("Hana I.", "  Hana   I. ", True, id="blanks around an alias"),
        pytest.param("x \u2e80x", "\u2e80", True, id="the first script without spaces"),
        pytest.param("x \u2e7fx", "\u2e7f", False, id="the last script with spaces"),
    ],
)
def test_a_mention_is_an_alias_as_whole_words_in_any_case(
    texts: str, alias: str, expected: bool
) -> None:
    words, whole = alias_of(alias)
    for text in map(folded_words, texts.split("|")):
        assert bool(words in text and whole.search(text)) is expected
