"""CSV in any western encoding becomes rows, and broken quotes are refused with their line.

Sections: encoding - rows - quotes - a file that was cut - a table that costs too much.
"""

import pytest
from lab.export_lab import table

from reviewslib.faults import BadData
from reviewslib.importer.csv_text import check_last_row, decoded_text, read_rows
from reviewslib.importer.questions import NeedsDecision


def cells(text: str) -> list[list[str]]:
    return [row.cells for row in read_rows(text, "a.csv")]


def refusal(text: str) -> str:
    """What is said of a text that is no table."""
    with pytest.raises(BadData) as refused:
        read_rows(text, "a.csv")
    return "\n".join(refused.value.lines())


# ---- Encoding ----

TEXTS = [
    pytest.param("Très bien, “çà et là” – 5 € l’été", id="French"),
    pytest.param("Größe ändert … ’s ist so", id="German"),
    pytest.param("¿Qué? ¡Años! 20 m²", id="Spanish"),
    pytest.param("Ærø Œuvre\nici", id="Danish and French"),
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", TEXTS)
def test_unicode_is_read_without_a_remark(text: str, encoding: str) -> None:
    assert decoded_text(text.encode(encoding), "a.csv") == (text, "")


AS_CP1252 = "not UTF-8; read as cp1252; if letters are wrong, save it as “CSV UTF-8”"


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_not_utf_8_is_read_as_cp1252_with_a_remark(text: str) -> None:
    assert decoded_text(text.encode("cp1252"), "a.csv") == (text, AS_CP1252)


def test_one_byte_that_cp1252_does_not_have_is_no_damage() -> None:
    text, _ = decoded_text((19 * "é " + "\x81").encode("latin-1"), "a.csv")

    assert text == 19 * "é " + "\ufffd"


OTHER_ENCODINGS = [
    pytest.param(b"a\x81", "a\ufffd", id="a byte that cp1252 lacks"),
    pytest.param(
        b"abcdefghijklm\x81nopqrstuvwxyz",
        "defghijklm\ufffdnopqrstuv",
        id="the same inside a word",
    ),
    pytest.param("author\nПривет".encode("cp1251"), "author Ïðèâåò", id="Cyrillic"),
    pytest.param(
        "author\nZoë Müller".encode("mac_roman"), "uthor Zo‘ MŸller", id="an old Mac"
    ),
]


@pytest.mark.parametrize(("content", "excerpt"), OTHER_ENCODINGS)
def test_letters_of_another_encoding_are_refused_with_an_excerpt(
    content: bytes, excerpt: str
) -> None:
    with pytest.raises(BadData) as refused:
        decoded_text(content, "a.csv")

    damage = f"not UTF-8, and its letters look damaged (“{excerpt}”)"
    assert refused.value.lines() == [f"a.csv: {damage}; save it as “CSV UTF-8”"]


# ---- Rows ----

DELIMITED = [
    pytest.param("a,b\n1;2,3\n", id="comma"),
    pytest.param("a;b\n1,2,3;4\n", id="semicolon"),
    pytest.param("a\tb\n1;2,3\t4\n", id="tab"),
    pytest.param("a,b\r1,2\r", id="line ends of an old Mac"),
    pytest.param("\r\n\r\na,b\r\n1,2\r\n", id="empty lines first"),
]


@pytest.mark.parametrize("text", DELIMITED)
def test_the_delimiter_is_that_of_the_header(text: str) -> None:
    header, row = cells(text)

    assert header == ["a", "b"]
    assert len(row) == 2


SEPARATOR_LINES = [
    pytest.param("sep=;\na;b,c\n", id="as Excel writes it"),
    pytest.param('"sep=;"\r\na;b,c\r\n', id="in quotes"),
    pytest.param("SEP=;  \na;b,c\n", id="in capitals"),
]


@pytest.mark.parametrize("text", SEPARATOR_LINES)
def test_the_first_line_of_excel_names_the_delimiter(text: str) -> None:
    assert cells(text) == [["a", "b,c"]]


def test_a_delimiter_that_no_header_shows_is_taken_from_the_first_line() -> None:
    assert cells("sep=|\na|b\n1|2\n") == [["a", "b"], ["1", "2"]]


def test_rows_keep_the_number_of_their_first_line_in_the_file() -> None:
    rows = read_rows('sep=,\n\na,b\n"1\n2",3\n\n4,5\n', "a.csv")

    assert [row.line for row in rows] == [3, 4, 7]


def test_rows_of_empty_cells_are_none() -> None:
    assert cells("a,b\n,\n , \n1,2\n") == [["a", "b"], ["1", "2"]]


def test_an_empty_file_is_refused() -> None:
    assert refusal("\n") == "a.csv: it is empty"


# ---- Quotes ----

ESCAPED = [
    pytest.param(r'"She said \"good\""', 'She said "good"', id="as PHP writes it"),
    pytest.param(r'"C:\new \"shop\""', 'C:\\new "shop"', id="beside a backslash"),
    pytest.param(r'"\""', '"', id="alone"),
    pytest.param('"So\\\nlong, \\"yes\\""', 'So\nlong, "yes"', id="a line end escaped"),
    pytest.param(r'"\\\"good\\\""', r"\"good\"", id="backslashes escaped, too"),
]


@pytest.mark.parametrize(("cell", "text"), ESCAPED)
def test_a_backslash_before_a_quote_is_read_if_the_standard_cannot_be(
    cell: str, text: str
) -> None:
    assert cells(f"a,b\n{cell},x\n")[1] == [text, "x"]


def test_a_file_of_the_standard_keeps_its_backslashes() -> None:
    assert cells('a,b\n"C:\\new ""shop""",x\n')[1] == ['C:\\new "shop"', "x"]


def test_both_ways_of_quoting_in_one_file_are_refused() -> None:
    told = refusal('a,b\n"so \\"good\\"",x\n"so ""good""" ,"\n')

    assert told.startswith("a.csv line 2: ")


QUOTE = "a quote in this row takes {} below it into its cell; "
CLOSE = 'close it, or write "" for a quote'
START = "author,rating,date,text\nAnn,5,2024-01-02,"
OPEN_QUOTES = [
    pytest.param('author,rating,"date\nAnn,5\n', 1, "1 line", id="in the header"),
    pytest.param(f'{START}"Good\nBo,4,2024-01-02,Fine\n', 2, "1 line", id="at the end"),
    pytest.param(
        f'{START}"Good\nBo,4,2024-01-02,Fine\nCy,4,2024-01-02,"Fine"\n',
        2,
        "2 lines",
        id="closed by a later quote",
    ),
    pytest.param(
        f'{START}"Good\nand far\nBo,4,2024-01-02,"Fine, so",x\n',
        2,
        "2 lines",
        id="closed within a line",
    ),
    pytest.param(
        f'{START}"Good\nBo,4,2024-01-02,Fine",x\n',
        2,
        "1 line",
        id="closed by a stray quote",
    ),
    pytest.param(
        f'{START}"Good\n' + 900 * "Bo,4,2024-01-02,Fine\n",
        2,
        "900 lines",
        id="of a long file",
    ),
]


@pytest.mark.parametrize(("text", "line", "below"), OPEN_QUOTES)
def test_a_quote_that_is_not_closed_is_refused_with_its_line(
    text: str, line: int, below: str
) -> None:
    assert refusal(text) == f"a.csv line {line}: {QUOTE.format(below)}{CLOSE}"


def test_words_after_a_closed_quote_are_refused_with_their_line() -> None:
    told = 'a.csv line 2: the quotes in this row do not match; write "" for a quote'

    assert refusal(f'{START}"Wow" said I\n') == told


def test_a_long_text_may_have_many_lines() -> None:
    text = "line\n" * 80 + 'and "so" on'

    assert cells(table("a b", [text, "x"]))[1] == [text, "x"]


# ---- A file that was cut ----


def test_a_last_line_with_too_few_cells_and_no_end_is_asked_about() -> None:
    text = "a,b,c\n1,2,3\n4,5"

    with pytest.raises(NeedsDecision) as asked:
        check_last_row(text, read_rows(text, "a.csv"), "a.csv")

    assert "a.csv line 3: the last line has too few cells" in asked.value.lines()[0]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a,b,c\n1,2,3\n4,5\n", id="a last line with an end"),
        pytest.param("a,b,c\n1,2,3\n4,5,6", id="a last line that is whole"),
    ],
)
def test_a_file_that_is_whole_is_not_asked_about(text: str) -> None:
    check_last_row(text, read_rows(text, "a.csv"), "a.csv")


# ---- A table that costs too much ----

TOO_MUCH = [
    pytest.param(
        "a,b\n1,2\n" + 10_001 * ",",
        "a.csv line 3: more than 10,000 separators in a line",
        id="separators",
    ),
    pytest.param(
        "a,b\n1,2\n" + 1_000 * "x,",
        "a.csv line 3: more than 1,000 cells in a row",
        id="cells",
    ),
    pytest.param(
        "a,b\n" + 100_000 * "1,2\n",
        "a.csv: more than 100,000 rows; divide it",
        id="rows",
    ),
    pytest.param(
        1_000_001 * "\n",
        "a.csv: more than 1,000,000 lines",
        id="lines",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("text", "fault"), TOO_MUCH)
def test_a_table_that_costs_too_much_is_refused_with_its_limit(
    text: str, fault: str
) -> None:
    assert refusal(text) == fault


def test_a_cell_that_is_too_long_is_refused_with_its_limit() -> None:
    told = refusal(f"a,b\n1,{65_537 * 'x'}\n")

    assert told.startswith("a.csv line 2: a cell has more than 65,536 characters; ")
