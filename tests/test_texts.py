"""`texts.py` finds a needle in exactly the texts that hold it, whichever way it takes.

Sets are compared with lists, needles with a look at every text.

Sets - Words - Needles - Build
"""

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import texts
from texts import Block, Texts

# ---- Sets: integers that count in bits, against lists ----

members_of_100 = st.sets(st.integers(0, 99))


@given(members_of_100)
def test_members_is_a_set_of_positions(positions: set[int]) -> None:
    bits = texts.members(positions, 100)
    assert [position for position in range(200) if bits >> position & 1] == sorted(positions)
    assert texts.members(sorted(positions) * 2, 100) == bits


@given(members_of_100, st.integers(0, 120))
def test_positions_are_the_members_behind_the_first(positions: set[int], offset: int) -> None:
    bits = texts.members(positions, 100)
    assert list(texts.positions(bits, offset)) == sorted(positions)[offset:]


@given(st.text(alphabet="01", max_size=64), st.integers(0, 70))
def test_skipping_ones_leaves_the_rest_of_them(digits: str, ones: int) -> None:
    places_of_ones = [position for position, digit in enumerate(digits) if digit == "1"]
    rest = range(texts._skip(digits, ones), len(digits))
    assert [position for position in rest if digits[position] == "1"] == places_of_ones[ones:]


@given(st.integers(0, 100))
def test_the_first_are_so_many_from_the_beginning(count: int) -> None:
    assert list(texts.positions(texts.first(count))) == list(range(count))


@given(members_of_100, members_of_100)
def test_union_and_count_are_those_of_sets(some: set[int], others: set[int]) -> None:
    both = texts.union([texts.members(some, 100), texts.members(others, 100)])
    assert both == texts.members(some | others, 100)
    assert both.bit_count() == len(some | others)


@given(st.lists(st.sets(st.integers(0, 19)), max_size=40))
def test_a_column_of_rows_is_the_set_of_the_rows_that_have_it(rows: list[set[int]]) -> None:
    columns = texts.transposed((texts.members(row, 20) for row in rows), 20)
    holders = [[place for place, row in enumerate(rows) if column in row] for column in range(20)]
    assert [list(texts.positions(column)) for column in columns] == holders


# ---- Words: with the white space around them ----

# Every kind of white space, blanks at both ends, empty texts; letters of one, two and four octets.
LETTERS_AND_WHITE = (
    "aaabbé\U0001f600  \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000\u200b"
)
short_texts = st.text(LETTERS_AND_WHITE, max_size=12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a b", ["a ", " b"]),
        ("a b c", ["a ", " b ", " c"]),
        (" a\n", [" ", " a\n", "\n"]),
        ("a  b", ["a ", "  ", " b"]),
        ("a\xa0b", ["a\xa0", "\xa0b"]),
        ("a\u200bb", ["a\u200bb"]),
    ],
)
def test_a_word_has_the_white_space_on_both_sides(text: str, words: list[str]) -> None:
    assert list(texts.words_in(text)) == words


def test_every_white_space_that_python_knows_ends_a_word() -> None:
    white = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
    assert [word.strip() for word in texts.words_in("a".join(white))] == ["", *"a" * (len(white) - 1), ""]


@given(short_texts, st.data())
def test_what_has_no_white_space_inside_stands_in_a_word(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    part = text[start : start + data.draw(st.integers(1, 6))]
    if part and not any(character.isspace() for character in part[1:-1]):
        assert any(part in word for word in texts.words_in(text))


@pytest.mark.parametrize(
    ("text", "seams"),
    [
        ("", []),
        ("word", []),
        ("and the", ["nd th"]),
        (" a", ["\0\0 a"]),
        ("a b\tcdef", ["\0a b\t", " b\tcd"]),
        ("s a ", ["\0s a ", " a "]),
    ],
)
def test_a_seam_is_white_space_with_the_characters_beside_it(text: str, seams: list[str]) -> None:
    assert list(texts.seams_in(text, 3)) == seams


def test_a_seam_has_pieces_down_to_a_character_on_each_side() -> None:
    assert texts.pieces("nd th", 2) == {"nd th", "nd t", "d th", "d t"}
    assert texts.pieces("\0a\nb", 2) == {"a\nb"}
    assert texts.pieces("\0\0 th", 2) == texts.pieces("nd ", 2) == set()


def test_pieces_have_four_characters_beside_the_white_space_or_fewer() -> None:
    assert texts.pieces_in("and the") == {"d t", "d th", "d the", "nd t", "nd th", "and t"}
    assert {piece for piece in texts.pieces_in("and the", 6) if len(piece) == 7} == {"and the"}


@given(st.text("ab \n\0", max_size=10))
def test_pieces_are_parts_of_the_text_and_of_every_text_that_holds_it(text: str) -> None:
    assert all(piece in text for piece in texts.pieces_in(text))
    assert texts.pieces_in(text) <= texts.pieces_in(f"b {text}\na")


@given(st.lists(st.text("ab \n\0", max_size=8), min_size=1, max_size=20), st.text("ab \n\0", max_size=6))
def test_no_text_that_holds_a_phrase_is_missing_from_those_of_its_pieces(
    given_texts: list[str], phrase: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "MANY_TEXTS", 0)
        seams = texts.build_seams(block_of(given_texts))
    among = seams.holding(phrase, texts.first(len(given_texts)))
    assert all(among >> place & 1 for place in plain(given_texts, phrase))


@given(st.lists(st.text("ab \n\0", max_size=8), min_size=1, max_size=20))
def test_a_frequent_piece_has_exactly_the_texts_that_hold_it(given_texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"MANY_TEXTS": 0, "FREQUENT_PIECE_SHARE": 0, "SHORTEST_PIECE_SHARE": 0}.items():
            patch.setattr(texts, name, value)
        seams = texts.build_seams(block_of(given_texts))
    for piece, holders in seams.frequent.items():
        assert list(texts.positions(holders)) == plain(given_texts, piece)


# ---- Needles: found where they stand, compared with a look at every text ----


def block_of(given_texts: Sequence[str]) -> Block:
    block = Block()
    for text in given_texts:
        block.append(text)
    return block


def plain(given_texts: Sequence[str], needle: str) -> list[int]:
    return [place for place, text in enumerate(given_texts) if needle in text]


def found(built: Texts, needle: str, among: int = -1) -> list[int]:
    everything = texts.first(len(built.vocabulary.block))
    return list(texts.positions(texts.holding(built, needle, among & everything)))


WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "every word has a set": {"FREQUENT_SHARE": 0},
    "no word has a set": {"FREQUENT_SHARE": 1},
    "some words have sets": {"FREQUENT_SHARE": 0.3},
    "every piece has a set": {"FREQUENT_PIECE_SHARE": 0, "SHORTEST_PIECE_SHARE": 0, "OWN_SETS": 1000},
    "no piece has a set": {"FREQUENT_PIECE_SHARE": 1, "SHORTEST_PIECE_SHARE": 1},
    "some pieces have sets": {"FREQUENT_PIECE_SHARE": 0.4, "SHORTEST_PIECE_SHARE": 0.2, "MOST_LONGER": 2},
    "a piece has a set": {
        "FREQUENT_PIECE_SHARE": 0,
        "SHORTEST_PIECE_SHARE": 0,
        "OWN_SETS": 1,
        "MOST_LONGER": 1,
    },
    "there is one shared set": {"SHARED_SETS": 0, "FREQUENT_PIECE_SHARE": 0.4},
    "the sample is small": {"SAMPLE": 2, "FREQUENT_PIECE_SHARE": 0.4, "SHORTEST_PIECE_SHARE": 0.2},
    "no seam is remembered": {"REMEMBERED_PARTS": 1},
    "every gram is costly": {"COSTLY_SHARE": 0, "LEAST_COSTLY": 0},
    "some grams are": {"COSTLY_SHARE": 5, "LEAST_COSTLY": 0},
    "three grams may be": {"COSTLY_SHARE": 0, "LEAST_COSTLY": 0, "MOST_COSTLY": 3},
    "texts are looked at": {"LOOKS_PER_WORD": 1000},
    "texts are united": {"LOOKS_PER_WORD": 0},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("many", [True, False])
def test_a_needle_is_found_in_exactly_the_texts_that_hold_it(way: str, many: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "MANY_TEXTS", 0 if many else 1000)
        for name, value in WAYS[way].items():
            patch.setattr(texts, name, value)

        @settings(max_examples=60)
        @given(st.lists(short_texts, min_size=1, max_size=9), st.data())
        def claim(given_texts: list[str], data: st.DataObject) -> None:
            built = texts.build_texts(block_of(given_texts))
            source = data.draw(st.sampled_from(given_texts))
            start = data.draw(st.integers(0, len(source)))
            needle = source[start : start + data.draw(st.integers(1, 6))] or data.draw(short_texts) or "a"
            assert found(built, needle) == plain(given_texts, needle)

        claim()


@given(st.lists(short_texts, min_size=1, max_size=9), short_texts.filter(bool), st.integers(0, 511))
def test_only_the_texts_asked_about_are_found(given_texts: list[str], needle: str, among: int) -> None:
    built = texts.build_texts(block_of(given_texts))
    asked = [place for place in plain(given_texts, needle) if among >> place & 1]
    assert found(built, needle, among) == asked


@pytest.mark.parametrize(
    "needle",
    ["a bb", "aa b", "a b", "aa bb", "a bb ", " aa bb", "a\nb", "b aa b", "b  a", " a ", "  ", "b ", " a"],
)
@pytest.mark.parametrize("many", [0, 1000])
def test_a_phrase_is_found_whatever_stands_beside_it(
    needle: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "MANY_TEXTS", many)
    given_texts = [
        "a bb",
        "ca bb",
        "aa b",
        "aa bc",
        "aa bb aa b",
        " aa bb ",
        "a\nbb",
        "b  aa bb",
        "a",
        "b",
        "aabb",
    ]
    assert found(texts.build_texts(block_of(given_texts)), needle) == plain(given_texts, needle)


def test_three_thousand_texts_are_found_by_words_and_seams_of_every_frequency() -> None:
    given_texts = [
        f"common word{place % 7} and only{place} é{place % 90}\nthe end\N{GRINNING FACE}{'s' * (place % 3)} "
        for place in range(3000)
    ]
    built = texts.build_texts(block_of(given_texts))
    assert 0 < len(built.vocabulary.frequent) < len(built.vocabulary.words)
    assert {"nly", "onl", " on"} <= set(built.vocabulary.by_costly_gram), "of words that are many and rare"
    assert {"d onl", "n w", "and onl"} <= set(built.seams.frequent)
    assert "89\nth" not in built.seams.frequent, "it stands in one of 90"
    needles = ["common", "word3", "only29", "only2999", "é1", "é", "y2", "n word", "3 and only1", "nothing"]
    needles += [
        "d only12",
        "\nthe e",
        "9\nth",
        "end\N{GRINNING FACE}",
        "s ",
        "ss ",
        " only",
        "and the",
        "d only",
        "é8",
    ]
    for needle in needles:
        assert found(built, needle) == plain(given_texts, needle), needle


def test_a_needle_is_remembered_and_found_again() -> None:
    built = texts.build_texts(block_of(["an apple", "a pear"]))
    assert found(built, "app") == found(built, "app") == [0]
    assert built.in_a_word.cache_info().hits == 1  # type: ignore[attr-defined]


# ---- Build ----


def test_nothing_is_found_in_no_texts() -> None:
    built = texts.build_texts(Block())
    assert [found(built, needle) for needle in ("a", "a b", " ", "longer")] == [[]] * 4


def test_texts_come_out_of_the_block_as_they_went_in() -> None:
    given_texts = ["", "a", "é", "\N{GRINNING FACE} x", ""]
    block = block_of(given_texts)
    assert list(block) == given_texts
    assert (len(block), block[3]) == (5, given_texts[3])


def test_the_same_texts_are_built_alike() -> None:
    given_texts = [f"some words and {place}" for place in range(50)]
    assert texts.build_texts(block_of(given_texts)) == texts.build_texts(block_of(given_texts))


def test_long_words_that_share_much_take_no_more_sets_than_allowed() -> None:
    shared = "".join(map(chr, range(ord("a"), ord("a") + 2000)))
    built = texts.build_texts(block_of([f"{shared}{place}" for place in range(600)]))
    assert len(built.vocabulary.by_costly_gram) == texts.MOST_COSTLY
    for needle in (shared[:9], shared[7:40], "9", shared[-2:] + "59"):
        assert found(built, needle) == plain([f"{shared}{place}" for place in range(600)], needle)
