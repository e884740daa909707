"""Words of a search are marked, in bounded time, and never become markup.

Sections: excerpts - occurrences - bounds.
"""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reviewslib.dataset.text import loose_words, loosen
from reviewslib.web.marks import MAX_MARKS, marked, occurrences

# ---- Excerpts ----


def excerpt(text: str, query: str) -> str:
    """The text as a list shows it that was searched for `query`."""
    return marked(text, loosen(text), loose_words(query))


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        pytest.param("a <b> c", "", "a &lt;b&gt; c", id="no words"),
        pytest.param("None", "", "None", id="a word of Python"),
        pytest.param("aa", "b", "aa", id="no occurrence"),
        pytest.param("a\0b\r\nc", "", "ab\nc", id="what HTML forbids"),
        pytest.param(
            " a<b\r\n& a<b",
            "<B",
            "a<mark>&lt;b</mark>\n&amp; a<mark>&lt;b</mark>",
            id="markup",
        ),
        pytest.param(
            "do\u0308ner (it’s)",
            "doner IT'S",
            "<mark>do\u0308ner</mark> (<mark>it’s</mark>)",
            id="marks and apostrophes",
        ),
        pytest.param(
            "x" * 101, "x" * 100, f"<mark>{'x' * 101}</mark>", id="the longest word"
        ),
        pytest.param("x" * 101, "x" * 101, "x" * 101, id="a longer word"),
    ],
)
def test_words_are_marked_and_markup_is_text(text: str, query: str, shown: str) -> None:
    assert excerpt(text, query) == shown


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        pytest.param(
            "find me " + "x" * 2000,
            "find",
            f"<mark>find</mark> me {'x' * 991}…",
            id="a word at the beginning",
        ),
        pytest.param(
            "y" * 995 + "find" + "z" * 9,
            "find",
            f"{'y' * 995}<mark>find</mark>…",
            id="the last word that is not cut",
        ),
        pytest.param(
            "y" * 996 + "find",
            "find",
            f"{'y' * 996}<mark>find</mark>",
            id="no cut",
        ),
        pytest.param(
            "y" * 997 + "find",
            "find",
            f"…{'y' * 250}<mark>find</mark>",
            id="the beginning is cut",
        ),
        pytest.param(
            "go " + "y" * 995 + "gogo",
            "go",
            f"<mark>go</mark> {'y' * 995}g…",
            id="half a word is none",
        ),
        pytest.param(
            "a " + "y" * 2000 + " find a",
            "find a",
            f"<mark>a</mark> {'y' * 997}…",
            id="the first of two words",
        ),
        pytest.param(
            "y" * 2000 + " z find me",
            "find",
            "…z <mark>find</mark> me",
            id="a cut at a space",
        ),
    ],
)
def test_a_long_text_is_cut_around_the_first_word(
    text: str, query: str, shown: str
) -> None:
    assert excerpt(text, query) == shown


def test_a_word_is_found_in_a_text_that_loosening_makes_longer() -> None:
    text = "ß" * 2000 + " find me " + "ß" * 500

    assert "<mark>find</mark> me" in excerpt(text, "find")


# ---- Occurrences ----


def plainly_covered(text: str, words: list[str]) -> set[int]:
    """The places of the shortest parts that loosely equal a word."""
    covered: set[int] = set()
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            is_whole = not MARKS & {text[start], text[end : end + 1]}
            if is_whole and loosen(text[start:end]) in words:
                covered.update(range(start, end))
    return covered


# A diaeresis, a Hebrew and an Arabic point, and the mark of half-width kana.
MARKS = {"\u0308", "\u05b8", "\u064e", "\uff9e"}
LETTERS = [*"aAoöİi שمｶカ", "a\u0308", "o\u0308", "ש\u05b8", "م\u064e", "ｶ\uff9e"]
any_text = st.lists(st.sampled_from(LETTERS), max_size=12).map("".join)
any_words = st.text("aoieשمカガ ", min_size=1, max_size=5)


@given(any_text, any_words)
@example("o\u0308 döo\u0308 d", "oo d")
@example("ao", "a")
def test_occurrences_are_the_parts_that_loosely_equal_a_word(
    text: str, query: str
) -> None:
    words = loose_words(query)

    spans = occurrences(text, words)

    covered: set[int] = set()
    for start, end in spans:
        covered.update(range(start, end))
    assert covered == plainly_covered(text, words)


@given(any_text, any_words)
def test_occurrences_are_in_order_and_do_not_touch(text: str, query: str) -> None:
    spans = occurrences(text, loose_words(query))

    assert all(former.end < latter.start for former, latter in pairwise(spans))


@pytest.mark.parametrize(
    ("text", "query", "places"),
    [
        pytest.param("aß Straße", "s", [(1, 2), (3, 4), (7, 8)], id="ß is ss"),
        pytest.param("cœur", "e", [(1, 2)], id="œ is oe"),
        pytest.param("un cœur d’or", "coeur", [(3, 7)], id="a word around it"),
        pytest.param(
            "a ｶﾞﾗｽ b", "ガ", [(2, 4)], id="two half-width signs are one letter"
        ),
        pytest.param("הִנֵּה שָׁלוֹם", "שלום", [(7, 14)], id="points belong to letters"),
    ],
)
def test_an_occurrence_is_of_whole_letters_as_written(
    text: str, query: str, places: list[tuple[int, int]]
) -> None:
    assert occurrences(text, loose_words(query)) == places


# ---- Bounds ----


@pytest.mark.parametrize(
    "text", ["a b " * 300, "é a " * 300, "ab" * 600], ids=["ascii", "letters", "runs"]
)
def test_a_text_has_at_most_twenty_marks(text: str) -> None:
    shown = excerpt(text, "a")

    assert shown.count("<mark>") == MAX_MARKS == 20


def test_the_first_occurrences_are_marked() -> None:
    shown = excerpt("a b " * 30, "a")

    assert shown.startswith("<mark>a</mark> b " * 20 + "a b ")
