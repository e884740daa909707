"""CSV: the bytes of a file become rows of cells. This module is pure.

It knows no column and no review. A table that is too large is refused while it is read,
not after.

Sections: limits - encoding - rows - quotes.
"""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reviewslib.dataset.reviews import LARGEST_REVIEW_BYTES
from reviewslib.importer.questions import NeedsDecision, refused
from reviewslib.importer.texts import TEXT_FORMATS, clean_line
from reviewslib.terminal import number_of

# ---- Limits: what one table may cost ----

# The daemon works with as many reviews in 2 GB; the import unit has 1 GB.
MAX_ROWS = 100_000
# Empty lines are no rows, but take time.
MAX_TABLE_LINES = 1_000_000
# The widest known export has 60 columns.
MAX_CELLS = 1_000
# Of one line, before it is split: a text may have separators of its own.
MAX_SEPARATORS = 10_000
# A cell with more cannot be part of a review.
MAX_CELL_CHARACTERS = LARGEST_REVIEW_BYTES


class TableRow(NamedTuple):
    """A row that is not empty."""

    line: int  # the number of its first line
    cells: list[str]


# ---- Encoding ----

# Signs within words, or capitals after small letters: they show that text is not cp1252
# but was read so.
IMPROBABLE = re.compile("|".join(TEXT_FORMATS["improbable_in_cp1252"]))
# Of the characters beyond ASCII. Sound western text has hardly any; of Cyrillic and
# Greek read as cp1252 a sixth are such, of Polish a third, of an old Mac's letters two
# thirds.
MAX_IMPROBABLE_SHARE = 0.05
AS_CP1252 = "not UTF-8; read as cp1252; if letters are wrong, save it as “CSV UTF-8”"


def decoded_text(data: bytes, file: str) -> tuple[str, str]:
    """The text of a file, and a remark, else empty, about its encoding.

    The encoding is UTF-8, UTF-16 with a byte order mark, or probably cp1252. Raises
    BadData.
    """
    is_utf16 = data.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if is_utf16 else "utf-8-sig"), ""
    except UnicodeError:
        text = data.decode("cp1252", "replace")
    improbable = [match.start() for match in IMPROBABLE.finditer(text)]
    beyond_ascii = sum(not character.isascii() for character in text)
    if len(improbable) <= MAX_IMPROBABLE_SHARE * beyond_ascii:
        return text, AS_CP1252
    first = improbable[0]
    excerpt = clean_line(text[max(0, first - 10) : first + 10])
    reason = (
        f"not UTF-8, and its letters look damaged (“{excerpt}”); save it as “CSV UTF-8”"
    )
    raise refused(file, reason)


# ---- Rows ----

DELIMITERS = ",;\t"
# Excel reads this line as an instruction and does not show it.
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


def read_rows(text: str, file: str) -> list[TableRow]:
    """The rows of a table; the first is its header.

    A quote may be doubled, as the standard has it, or have a backslash before it, as
    PHP and databases write it; never both readings in one file. Raises BadData.
    """
    try:
        return _parsed(text, file, escape=None)
    except _BrokenQuotes as broken:
        if '\\"' not in text:
            raise refused(f"{file} line {broken.line}", broken.reason) from None
        first = broken
    try:
        return _parsed(_with_escaped_backslashes(text), file, escape="\\")
    except _BrokenQuotes:
        raise refused(f"{file} line {first.line}", first.reason) from None


def check_last_row(text: str, rows: list[TableRow], file: str) -> None:
    """Raises NeedsDecision if the file seems to be cut in its last line."""
    last = rows[-1]
    if text[-1] in "\r\n" or len(last.cells) >= len(rows[0].cells):
        return
    lines = [
        f"{file} line {last.line}: the last line has too few cells, and no end; "
        "the file seems to be cut.",
        "Copy or export it again. If it is whole, complete or delete its last line.",
    ]
    raise NeedsDecision(lines)


def _parsed(text: str, file: str, escape: str | None) -> list[TableRow]:
    """Raises BadData and _BrokenQuotes."""
    rows = list[TableRow]()
    for row, lines_below in _split(text, file, escape):
        _check_row(row, rows, lines_below, file)
        if any(map(str.strip, row.cells)):
            rows.append(row)
    if not rows:
        raise refused(file, "it is empty")
    return rows


def _split(text: str, file: str, escape: str | None) -> Iterator[tuple[TableRow, int]]:
    """Each row, and the number of lines that it has below its first one.

    Raises BadData and _BrokenQuotes.
    """
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    lines = io.StringIO(text, newline="")
    delimiter, skipped = _delimiter(lines)
    checked = _checked_lines(lines, delimiter, file)
    reader = csv.reader(checked, delimiter=delimiter, escapechar=escape, strict=True)
    while True:
        line = skipped + reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            last = skipped + reader.line_num
            raise _BrokenQuotes(line, last - line, str(error)) from None
        yield TableRow(line, cells), skipped + reader.line_num - line


def _check_row(
    row: TableRow, rows: list[TableRow], lines_below: int, file: str
) -> None:
    """Raises BadData and _BrokenQuotes."""
    if len(row.cells) > MAX_CELLS:
        reason = f"more than {MAX_CELLS:,} cells in a row"
        raise refused(f"{file} line {row.line}", reason)
    if len(rows) >= MAX_ROWS:
        raise refused(file, f"more than {MAX_ROWS:,} rows; divide it")
    # A quote that is not closed ends at the next one, and moves the cells.
    if lines_below and rows and len(row.cells) != len(rows[0].cells):
        raise _BrokenQuotes(row.line, lines_below)


def _delimiter(lines: io.StringIO) -> tuple[str, int]:
    """The delimiter, and the number of lines to skip: the stream is left after them."""
    separator = SEPARATOR_LINE.fullmatch(lines.readline(MAX_CELL_CHARACTERS))
    if separator:
        return separator[1], 1
    lines.seek(0)
    first = ""
    for line in lines:
        if line.strip():
            first = line
            break
    lines.seek(0)
    return max(DELIMITERS, key=first.count), 0


def _checked_lines(lines: Iterable[str], delimiter: str, file: str) -> Iterator[str]:
    """The lines, as long as there are not too many or too wide ones. Raises BadData."""
    for number, line in enumerate(lines, 1):
        if number > MAX_TABLE_LINES:
            raise refused(file, f"more than {MAX_TABLE_LINES:,} lines")
        if line.count(delimiter) > MAX_SEPARATORS:
            reason = f"more than {MAX_SEPARATORS:,} separators in a line"
            raise refused(f"{file} line {number}", reason)
        yield line


# ---- Quotes ----


class _BrokenQuotes(ValueError):
    """A row whose quotes do not match. It begins at `line` of the file."""

    def __init__(self, line: int, lines_below: int, error: str = ""):
        super().__init__()
        self.line = line
        if "field larger" in error:
            self.reason = (
                f"a cell has more than {MAX_CELL_CHARACTERS:,} characters; "
                'if a quote is not closed, close it, or write "" for a quote'
            )
        elif lines_below > 0:
            self.reason = (
                f"a quote in this row takes {number_of('line', lines_below)} below it "
                'into its cell; close it, or write "" for a quote'
            )
        else:
            self.reason = 'the quotes in this row do not match; write "" for a quote'


# A backslash before a quote or another one, before a line end, and any other.
BACKSLASH = re.compile(r'\\(?P<escaped>["\\])|\\(?P<line_end>\r\n|\n|\r)|\\')


def _with_escaped_backslashes(text: str) -> str:
    """`text` with two backslashes in place of those that escape nothing.

    A database writes a line end as a backslash before it.
    """

    def replacement(match: re.Match[str]) -> str:
        if match["escaped"]:
            return match[0]
        return match["line_end"] or "\\\\"

    return BACKSLASH.sub(replacement, text)
