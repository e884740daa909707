"""Reviews in a CSV file: its encoding, its rows, the meaning of its columns, and the record of each row.

A header is that of the template, of a known tool (`formats.json`), or one that the owner has explained once.
This module is pure. It knows no export of Google's and no stored review.
"""

from __future__ import annotations

import csv
import html
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

from reviewslib.dataset.contract import Contract, Fault, quoted
from reviewslib.dataset.text import fold
from reviewslib.importer import cells
from reviewslib.importer.cells import FORMATS, BadRecord, DateFormat, clean, one_line
from reviewslib.importer.exports import Export, Record, ReviewInFile
from reviewslib.importer.options import TEMPLATE, Options, TableSettings, nonempty
from reviewslib.importer.questions import NeedsDecision, listed, refused

REQUIRED = ("author", "rating", "date")
TO_ANSWER = (
    *REQUIRED,
    "text",
    "source",
    "reply",
    "status",
)  # fields that a --map must mention


def read_csv(
    data: bytes, file: str, time: str, options: Options, contract: Contract
) -> Export:
    """The reviews in a CSV file; `time` is that of the export. Raises BadData and NeedsDecision."""
    export = Export(file, options, contract)
    (_, names), *rows = _rows(_csv_text(data, export), file)
    if sum(map(bool, names)) < len(REQUIRED):
        raise refused(
            file,
            f"not a known export, and not a table; it begins with {quoted(names[0])}",
        )
    header = Header(
        [one_line(name) for name in names], [row for _, row in rows], file, options
    )
    fields_of_rows = [
        header.fields(row) if len(row) == len(names) else {} for _, row in rows
    ]
    formats = header.date_formats(fields_of_rows)
    sources = set[str]() if rows else {header.settings.source}
    for (line, row), fields in zip(rows, fields_of_rows, strict=True):
        source = fold(fields.get("source") or header.settings.source)
        sources |= {source} if fields else set()
        record = Record(
            Fault(f"{file} line {line}", (), ""),
            time,
            "table",
            source,
            fields.get("id", ""),
        )
        fault = (
            ""
            if fields
            else f"the row has {len(row)} cells and the header {len(names)}"
        )
        export.add(record, partial(_read_row, record, fields, fault, formats, header))
    if "" in sources:
        fault = "it does not say where its reviews were published."
        raise header.question(
            "--source YOUR", fault, "Name the source, such as facebook."
        )
    export.header = header.key
    export.settings = header.to_remember(sources)
    export.covers = dict.fromkeys(sources & {*export.settings.complete}, time)
    if header.unused and header.key not in options.headers:
        export.notes.append(
            f"{file}: columns that are not used: {', '.join(header.unused)}"
        )
    return export.finish()


# ---- Headers: the meaning of columns ----

NO_COLUMN = "-"
DATES = ("date", "reply_date")


def normalized(name: str) -> str:
    """The name of a column in lower case, with single spaces in place of signs unless it has only signs."""
    return " ".join(re.findall(r"[^\W_]+", fold(name))) or name


COLUMNS_OF_TEMPLATE = {normalized(name): name for name in TEMPLATE}


def default_settings(columns: Collection[str]) -> dict[str, Any]:
    """The settings of the template or of the first known tool that fits these normalized columns, if any."""
    of_template = {COLUMNS_OF_TEMPLATE.get(name, ""): name for name in columns if name}
    if {*REQUIRED} <= of_template.keys() and "" not in of_template:
        return {"map": of_template}
    for tool in FORMATS["header_sets"].values():
        present = {
            field: [name for name in names if name in columns]
            for field, names in tool["map"].items()
        }
        found = {field: names[0] for field, names in present.items() if names}
        if found.keys() >= {*REQUIRED, "title", "text", "status"} & present.keys():
            return {key: value for key, value in tool.items() if key != "evidence"} | {
                "map": found
            }
    return {}


class Header:
    """A header, and the settings of tables with this header.

    A setting comes from a flag, else from an earlier command, else from the template or a known tool.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        file: str,
        options: Options,
    ):
        """Raises NeedsDecision unless the meaning of the columns is clear."""
        self.names = names
        self.normalized = list(map(normalized, names))
        self.file = file
        self.options = options
        self.key = ",".join(self.normalized)
        remembered = options.headers.get(self.key, TableSettings())
        self.answers = nonempty(remembered) | nonempty(options.table)
        default = {} if "map" in self.answers else default_settings(self.normalized)
        self.settings = TableSettings(**(default | self.answers))
        self.order = self.settings.date_order
        self.columns = self._columns(rows, is_explained=bool(default))
        unused = {*range(len(names))} - {*self.columns.values()}
        self.unused = [quoted(names[index]) for index in sorted(unused) if names[index]]

    def question(self, flag: str, *lines: str) -> NeedsDecision:
        """A question about tables with this header, which the flag answers."""
        first, *others = lines
        remembered = "The answer is remembered for tables with this header. Give this table alone."
        return NeedsDecision([f"{self.file}: {first}", *others, remembered], flag)

    def _columns(
        self, rows: Sequence[Sequence[str]], *, is_explained: bool
    ) -> dict[str, int]:
        """The index of each field's column. Raises NeedsDecision."""
        columns = self.settings.map
        answered = columns.keys() | ({"source"} if self.settings.source else set())
        missing = [
            field for field in TO_ANSWER if field not in answered and not is_explained
        ]
        missing += [field for field in REQUIRED if columns.get(field) == NO_COLUMN]
        named = {field: name for field, name in columns.items() if name != NO_COLUMN}
        unclear = [
            quoted(name)
            for name in named.values()
            if self.normalized.count(normalized(name)) != 1
        ]
        if not missing and not unclear:
            return {
                field: self.normalized.index(normalized(name))
                for field, name in named.items()
            }
        fault = (
            f"--map does not name a column for {', '.join(missing)}"
            if columns
            else "the header is unknown"
        )
        if unclear:
            fault = f"not exactly one column is called {', '.join(unclear)}; --map applies to all tables"
        examples = [
            f"{quoted(name)}, such as {quoted(next(filter(None, map(one_line, values)), ''))}"
            for name, *values in zip_longest(self.names, *rows, fillvalue="")
        ]
        advice = f"Name the column for each field with --map, or {NO_COLUMN} if there is none."
        flag = f"--map {','.join(f'{field}=YOUR' for field in TO_ANSWER)}"
        raise self.question(
            flag, f"{fault}.", "Its columns are:", *listed(examples), advice
        )

    def fields(self, row: Sequence[str]) -> dict[str, str]:
        """The cells of a row by field; “NaN” and the like become empty, a ' before a formula is removed."""
        fields = {}
        for field, index in self.columns.items():
            cell = row[index]
            if self.settings.is_html:
                cell = html.unescape(
                    re.sub(r"<[^<>]*>", "", re.sub(r"(?i)<br ?/?>|</p>", "\n", cell))
                )
            cell = clean(cell) if field in TEXTS else one_line(cell)
            is_empty = cell.lower() in FORMATS["empty_cells"]
            fields[field] = "" if is_empty else re.sub(r"^'(?=[=+@-])", "", cell)
        return fields

    def date_formats(
        self, fields_of_rows: Sequence[Mapping[str, str]]
    ) -> dict[str, DateFormat]:
        """The formats of the columns with dates, which have one order of day and month.

        Raises NeedsDecision if the dates leave the order open, or contradict an earlier answer.
        """
        dates = [
            fields[field]
            for field in DATES
            for fields in fields_of_rows
            if field in fields
        ]
        allowed, unclear = cells.allowed_orders(dates)
        if not self.order and len(allowed) == 1:
            (self.order,) = allowed
        elif (
            unclear and self.order not in allowed and not self.options.table.date_order
        ):
            lines = [
                "is the day or the month first in these dates?",
                *listed(unclear[:5]),
            ]
            raise self.question("--date-order YOUR", *lines, "Answer dmy or mdy.")
        utc = {
            field
            for field, n in self.columns.items()
            if "utc" in self.normalized[n].split()
        }
        order = self.order or "dmy"
        return {
            field: DateFormat(self.options.latest, order, field in utc)
            for field in DATES
        }

    def to_remember(self, sources: set[str]) -> TableSettings:
        """The settings for later tables with this header; `sources` are those of this table."""
        answers = TableSettings(**self.answers)
        complete = {*answers.complete, *(sources if self.options.complete else ())}
        is_template = {*self.normalized} <= {"", *COLUMNS_OF_TEMPLATE}
        source = "" if is_template else answers.source
        return replace(
            answers, source=source, date_order=self.order, complete=sorted(complete)
        )


# ---- Rows ----

TEXTS = ("text", "reply", "title")  # fields whose line breaks are kept
PUBLISHED = {*FORMATS["published"]}  # statuses of reviews and replies that a tool shows
DAMAGED_ID = re.compile(r"[0-9]+(?:[.,][0-9]+)?E\+[0-9]+|#{3,}", re.IGNORECASE)


def _read_row(
    record: Record,
    fields: Mapping[str, str],
    fault: str,
    formats: Mapping[str, DateFormat],
    header: Header,
) -> str:
    """Fill in dates and content, none without stars; returns the author. Raises BadRecord, NeedsDecision."""
    if DAMAGED_ID.fullmatch(id := record.native_id):
        record.native_id = ""  # it may be any review
        fault = f"a spreadsheet has damaged the id {quoted(id)}; export it anew"
    if fault:
        raise BadRecord(fault)
    record.created, record.replied = (
        cells.read_date(fields.get(name, ""), formats[name]) for name in DATES
    )
    for value, reason in ((fields["author"], "no author"), (record.created, "no date")):
        if not value:
            raise BadRecord(reason)
    try:
        rating = cells.read_stars(fields["rating"], int(header.settings.scale or 0))
    except cells.UnknownScale as value:
        fault = f"the scale of the rating {quoted(str(value))} is not known."
        advice = "Give the best rating: 5 (higher ratings are then faulty), 10 or 100."
        raise header.question("--scale YOUR", fault, advice) from None
    review: ReviewInFile = {"author": fields["author"], "rating": rating}
    review |= {
        name: fields[name] or None for name in ("text", "source_url") if name in fields
    }
    if (title := fields.get("title")) and not (review.get("text") or "").startswith(
        title
    ):
        review["text"] = "\n\n".join(filter(None, (title, review.get("text"))))
    if "reply" in fields:
        is_published = fields.get("reply_status", "yes").lower() in PUBLISHED
        reply = fields["reply"] if is_published else ""
        review["owner_reply"] = {"text": reply} if reply else None
        if review.get("text") == reply:  # some tools repeat the reply as the text
            review["text"] = None
    if "status" in fields:
        review["verified"] = fields["status"].lower() in PUBLISHED
    record.review = review if rating else None
    return fields["author"]


# ---- Encoding and quotes ----

# Signs within words, or capitals after small letters: they show that text is not cp1252 but was read so.
IMPROBABLE = re.compile("|".join(FORMATS["improbable_in_cp1252"]))
MAX_IMPROBABLE_SHARE = 0.05  # of the characters beyond ASCII


def _csv_text(data: bytes, export: Export) -> str:
    """The text of a file in UTF-8, UTF-16 with a byte order mark, or probably cp1252. Raises BadData."""
    try:
        return data.decode(
            "utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
        )
    except UnicodeError:
        text = data.decode("cp1252", "replace")
    improbable = [match.start() for match in IMPROBABLE.finditer(text)]
    if len(improbable) > MAX_IMPROBABLE_SHARE * sum(
        not character.isascii() for character in text
    ):
        excerpt = one_line(text[max(0, improbable[0] - 10) : improbable[0] + 10])
        reason = f"not UTF-8, and its letters look damaged (“{excerpt}”); save it as “CSV UTF-8”"
        raise refused(export.file, reason)
    advice = "if letters are wrong, save it as “CSV UTF-8”"
    export.notes.append(f"{export.file}: not UTF-8; read as cp1252; {advice}")
    return text


def _rows(text: str, file: str) -> list[tuple[int, list[str]]]:
    """The rows that are not empty, with the numbers of their first lines. Raises BadData."""
    lines = list(io.StringIO(text, newline=""))
    delimiter = max(",;\t", key=next(filter(str.strip, lines), "").count)
    csv.field_size_limit(len(text))  # an unclosed quote makes a cell of any length
    reader = csv.reader(lines, delimiter=delimiter)
    rows = list[tuple[int, list[str]]]()
    first_line = 1
    for row in reader:
        width = len(rows[0][1]) if rows else len(row)
        row_lines = lines[first_line - 1 : reader.line_num]
        if len(row_lines) > 1 and not _is_row(row_lines, delimiter, width):
            reason = f"a quote in this row takes the {len(row_lines) - 1} line(s) below into its cell"
            raise refused(
                f"{file} line {first_line}",
                f'{reason}; close it, or write "" for a quote',
            )
        rows += [(first_line, row)] if any(map(str.strip, row)) else []
        first_line = reader.line_num + 1
    if not rows:
        raise refused(file, "it is empty")
    return rows


def _is_row(lines: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether a strict parser reads the lines as one row of this many cells."""
    with suppress(csv.Error):
        return [
            len(row) for row in csv.reader(lines, delimiter=delimiter, strict=True)
        ] == [width]
    return False
