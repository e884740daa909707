"""Reviews in a CSV file: its encoding, its rows, which column is which, and what each row says.

A header is the template's, one of a known tool (`exports.json`), or one that the owner has explained once.
This module is pure. It knows no export of Google's and no stored review.

Sections: Tables - Headers - Rows - Encoding and quotes
"""

from __future__ import annotations

import csv
import html
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from reviewslib.dataset.contract import Fault, quoted
from reviewslib.dataset.text import fold
from reviewslib.importer import cells
from reviewslib.importer.cells import TABLES, BadRecord, DateFormat, clean, one_line
from reviewslib.importer.exports import (
    Export,
    Key,
    NeedsDecision,
    Question,
    Record,
    ReviewInFile,
    in_future,
    listed,
    refused,
)
from reviewslib.importer.options import NO_COLUMN, REQUIRED, TEMPLATE, TO_ANSWER, Options, TableSettings

# ---- Tables ----

DATES = ("date", "reply_date")
DAMAGED_ID = re.compile(r"[0-9]+(?:[.,][0-9]+)?E\+[0-9]+|#{3,}", re.IGNORECASE)
SEPARATOR_LINE = re.compile(r'\s*"?sep=([,;\t|])"?[ \r]*\n', re.IGNORECASE)  # Excel's


def read_csv(data: bytes, file: str, time: str, options: Options) -> Export:
    """The rows of a CSV file of this T, whose order does not matter. Raises BadData and NeedsDecision."""
    export = Export(file)
    if time > options.latest:
        raise in_future(file, time)
    (_, names), *rows = _rows(_csv_text(data, export), file)
    if sum(map(bool, names)) < len(REQUIRED):
        raise refused(file, f"no export that is known, and no table; it begins with {quoted(names[0])}")
    header = Header([one_line(name) for name in names], [row for _, row in rows], file, options)
    fields = [header.fields(row) if len(row) == len(names) else {} for _, row in rows]
    formats = {name: header.date_format(name, [each.get(name, "") for each in fields]) for name in DATES}
    sources = {header.settings.source} if not rows else set[str]()
    for (line, row), values in zip(rows, fields, strict=True):
        position, key = Fault(f"{file} line {line}", (), ""), None
        if DAMAGED_ID.fullmatch(values.get("id", "")):
            reason = f"a spreadsheet has damaged the id {quoted(values['id'])}; export it anew"
            raise refused(position.file, reason)
        try:
            if not values:
                raise BadRecord(f"the row has {len(row)} cells and the header {len(names)}")
            source = fold(values.get("source") or header.settings.source)
            sources.add(source)
            key = Key("table", source, values.get("id", ""))
            record = table_record(values, position, key, time, formats, header.settings)
        except BadRecord as fault:
            export.fail(position, str(fault), key, time)
        except cells.UnknownScale as rating:
            header.ask_scale(str(rating))
        else:
            export.records.append(record)
            export.without_stars += [] if record.review else [values["author"]]
    if "" in sources:
        header.ask_source()
    if header.questions:
        raise NeedsDecision(*header.questions.values())
    export.header, export.settings = header.key, header.to_remember(sources)
    export.covers = dict.fromkeys(sources & {*export.settings.complete}, time)
    if unused := header.unused_columns():
        export.notes.append(f"{file}: columns that are not used: {', '.join(unused)}")
    return export


# ---- Headers: which column is which ----


def normalized(name: str) -> str:
    """The name of a column without regard to case, and with one blank for each run of other signs."""
    return " ".join(re.findall(r"[^\W_]+", fold(name)))


NORMALIZED_TEMPLATE = {normalized(name): name for name in TEMPLATE}


class Header:
    """A header, the settings of tables with it, and the questions that are open.

    A setting is given by a flag, else by an earlier command, else by the tables of known tools.
    """

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[str]], file: str, options: Options):
        """Raises NeedsDecision if it is not known which column is which."""
        self.names, self.normalized = names, list(map(normalized, names))
        self.file, self.options, self.questions = file, options, dict[str, Question]()
        self.key = ",".join(self.normalized)
        self.saved = options.headers.get(self.key, TableSettings()).given()
        self.given, template = options.table.given(), self._template()
        known = template or self._known_tool()
        if (known or "map" in self.saved) and None in map(self._index, self.given.get("map", {}).values()):
            del self.given["map"]  # it is for another file
        is_explained = "map" in self.given | self.saved
        self.is_template = bool(template) and not is_explained
        self.settings = TableSettings(**(known | self.saved | self.given))
        self.order = self.settings.date_order
        self.columns = self._columns(rows, () if known and not is_explained else TO_ANSWER)

    def _index(self, column: str) -> int | None:
        """The index of a column, -1 of none at all; None if no column, or more than one, has the name."""
        if column == NO_COLUMN:
            return -1
        for names, name in ((self.names, column), (self.normalized, normalized(column))):
            if names.count(name) == 1:
                return names.index(name)
        return None

    def _template(self) -> dict[str, Any]:
        """The settings of the template, if all columns are its own; else empty."""
        named = [name for name in self.normalized if name]
        fields = [NORMALIZED_TEMPLATE.get(name, "") for name in named]
        is_template = {*REQUIRED} <= {*fields} and "" not in fields
        return {"map": dict(zip(fields, named, strict=True))} if is_template else {}

    def _known_tool(self) -> dict[str, Any]:
        """The settings of the tool whose header it is; empty if none fits."""
        fitting = list[dict[str, Any]]()
        for tool in TABLES["header_sets"].values():
            columns = {
                field: next(name for name in names if name in self.normalized)
                for field, names in tool["map"].items()
                if not {*names}.isdisjoint(self.normalized)
            }
            if columns.keys() >= {*REQUIRED, "text", "status"} & tool["map"].keys():
                settings = {key: value for key, value in tool.items() if key != "evidence"}
                fitting.append({**settings, "map": columns, "fields": len(tool["map"])})
        best = max(fitting, key=lambda tool: (len(tool["map"]), -tool["fields"]), default={})
        return {key: value for key, value in best.items() if key != "fields"}

    def _columns(self, rows: Sequence[Sequence[str]], to_answer: Sequence[str]) -> dict[str, int]:
        """The index of each field's column. Raises NeedsDecision."""
        columns = {field: self._index(column) for field, column in self.settings.map.items()}
        answered = columns.keys() | ({"source"} if self.settings.source else set())
        open_fields = [field for field in to_answer if field not in answered]
        open_fields += [field for field in REQUIRED if columns.get(field) == -1]
        unclear = [self.settings.map[field] for field, index in columns.items() if index is None]
        if not open_fields and not unclear:
            return {field: index for field, index in columns.items() if index is not None and index >= 0}
        fault = "the header is unknown"
        if unclear:
            fault = f"not exactly one column is called {', '.join(map(quoted, unclear))}"
        elif columns:
            fault = f"--map does not name a column for {', '.join(open_fields)}"
        values = [
            next((one_line(row[n]) for row in rows if n < len(row) and row[n].strip()), "")
            for n in range(len(self.names))
        ]
        seen = [
            f"{quoted(name)}, such as {quoted(value)}" for name, value in zip(self.names, values, strict=True)
        ]
        lines = f"{self.file}: {fault}. Its columns are:", *listed(seen)
        advice = f"Name the column for each field with --map, or {NO_COLUMN} if there is none. {SAID_ONCE}"
        flag = "--map", ",".join(f"{field}=YOUR" for field in TO_ANSWER)
        raise NeedsDecision(Question([*lines, advice], [flag], self.file))

    def fields(self, row: Sequence[str]) -> dict[str, str]:
        """The cells of a row by field; one that says nothing is empty, a guard against formulas is gone."""
        fields = {}
        for field, index in self.columns.items():
            cell = plain_text(row[index]) if self.settings.is_html and field in TEXTS else row[index]
            cell = clean(cell) if field in TEXTS else one_line(cell)
            is_empty = cell.lower() in TABLES["empty_cells"]
            fields[field] = "" if is_empty else re.sub(r"^'(?=[=+@-])", "", cell)
        return fields

    def date_format(self, key: str, texts: Sequence[str]) -> DateFormat:
        """How a column of dates is written; asks where its dates leave it open or are not as before."""
        allowed, dates = cells.allowed_orders(texts)
        if dates and self.order and "date_order" not in self.given and self.order not in allowed:
            line = (
                f"{self.file}: these dates are not {self.order}, as those of earlier tables with this header:"
            )
            self._ask("date order", [line, *listed(dates[:5])], ORDER_ADVICE, ("--date-order", "YOUR"))
        elif dates and not self.order and len(allowed) != 1:
            line = f"{self.file}: is the day or the month first in these dates?"
            self._ask("date order", [line, *listed(dates[:5])], ORDER_ADVICE, ("--date-order", "YOUR"))
        elif dates and not self.order:
            (self.order,) = allowed
        is_utc = key in self.columns and "utc" in self.normalized[self.columns[key]].split()
        return DateFormat(self.options.latest_day, self.order or min(allowed, default="dmy"), is_utc)

    def ask_scale(self, rating: str) -> None:
        """Note that the best rating has to be said."""
        line = f"{self.file}: the scale of the rating {quoted(rating)} is not known."
        advice = "Say the best rating: 5 (higher ratings are then faulty), 10 or 100."
        self._ask("scale", [line], advice, ("--scale", "YOUR"))

    def ask_source(self) -> None:
        """Note that the source has to be said."""
        line = f"{self.file}: nothing says where its reviews were published."
        self._ask("source", [line], "Say where, as facebook or yelp.", ("--source", "YOUR"))

    def _ask(self, subject: str, lines: Sequence[str], advice: str, flag: tuple[str, str]) -> None:
        self.questions[subject] = Question([*lines, f"{advice} {SAID_ONCE}"], [flag], self.file)

    def to_remember(self, sources: set[str]) -> TableSettings:
        """What a later table with this header need not say; `sources` are those of this table."""
        said = TableSettings(**(self.saved | self.given))
        complete = {*said.complete, *(sources if self.options.complete else ())}
        source = "" if self.is_template else said.source
        order = said.date_order or ("" if self.settings.date_order else self.order)
        return replace(said, source=source, date_order=order, complete=sorted(complete))

    def unused_columns(self) -> list[str]:
        """The columns that are not used, for the first table with this header."""
        used, is_new = self.columns.values(), self.key not in self.options.headers
        return [quoted(name) for n, name in enumerate(self.names) if is_new and name and n not in used]


SAID_ONCE = "The answer is kept for tables with this header."
ORDER_ADVICE = "Say which, dmy or mdy."


# ---- Rows ----

TEXTS = ("text", "reply", "title")


def plain_text(markup: str) -> str:
    """HTML as text; the time grows as the length does."""
    return html.unescape(re.sub(r"<[^<>]*>", "", re.sub(r"(?i)<br ?/?>|</p>", "\n", markup)))


def table_record(
    fields: Mapping[str, str],
    position: Fault,
    key: Key,
    time: str,
    formats: Mapping[str, DateFormat],
    settings: TableSettings,
) -> Record:
    """A row; one without stars has no content. Raises BadRecord and UnknownScale."""
    created, replied = (cells.read_date(fields.get(name, ""), formats[name]) for name in DATES)
    for value, reason in ((fields["author"], "no author"), (created, "no date")):
        if not value:
            raise BadRecord(reason)
    review: ReviewInFile = {
        "author": fields["author"],
        "rating": cells.read_stars(fields["rating"], int(settings.scale or 0)),
    }
    review |= {name: fields[name] or None for name in ("text", "source_url") if name in fields}
    if (title := fields.get("title")) and not (review.get("text") or "").startswith(title):
        review["text"] = "\n\n".join(filter(None, (title, review.get("text"))))
    if "reply" in fields:
        reply = fields["reply"] if is_published(fields.get("reply_status", "yes")) else ""
        review["owner_reply"] = {"text": reply} if reply else None
        if reply and review.get("text") == reply:
            review["text"] = None
    if "status" in fields:
        review["verified"] = None if is_published(fields["status"]) else False
    return Record(position, key, time, review if review["rating"] else None, created, replied=replied)


def is_published(status: str) -> bool:
    """Whether a tool says that it shows what has this status."""
    return status.lower() in TABLES["published"]


# ---- Encoding and quotes ----

# What letters of other encodings are in cp1252: signs in words, capitals behind small letters, “š” for “ö”.
IMPROBABLE = re.compile("|".join(TABLES["improbable_in_cp1252"]))
MOST_IMPROBABLE = 0.05  # of the characters beyond ASCII


def _csv_text(data: bytes, export: Export) -> str:
    """The text of a file in UTF-16 with a byte order mark, UTF-8, or what can be cp1252. Raises BadData."""
    try:
        return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeError:
        text = data.decode("cp1252", "replace")
    improbable = [found.start() for found in IMPROBABLE.finditer(text)]
    if len(improbable) > MOST_IMPROBABLE * sum(not character.isascii() for character in text):
        seen = one_line(text[max(0, improbable[0] - 10) : improbable[0] + 10])
        reason = f"not UTF-8, and its letters look damaged (“{seen}”); save it as “CSV UTF-8”"
        raise refused(export.file, reason)
    advice = "if letters are wrong, save it as CSV UTF-8"
    export.notes.append(f"{export.file}: not UTF-8; read as cp1252; {advice}")
    return text


def _rows(text: str, file: str) -> list[tuple[int, list[str]]]:
    """Each row in which anything stands, with the number of its first line. Raises BadData."""
    if declared := SEPARATOR_LINE.match(text):
        text = "\n" + text[declared.end() :]
    lines = list(io.StringIO(text, newline=""))
    delimiter = declared[1] if declared else max(",;\t", key=next(filter(str.strip, lines), "").count)
    csv.field_size_limit(len(text) + 1)  # so that a quote that swallows the file is told as such
    reader = csv.reader(lines, delimiter=delimiter)
    rows, first_line = list[tuple[int, list[str]]](), 1
    for row in reader:
        if reader.line_num > first_line:
            width = len(rows[0][1]) if rows else len(row)
            _refuse_open_quote(
                row, width, lines[first_line - 1 : reader.line_num], delimiter, file, first_line
            )
        rows += [(first_line, row)] if any(map(str.strip, row)) else []
        first_line = reader.line_num + 1
    if not rows:
        raise refused(file, "it is empty")
    return rows


def _refuse_open_quote(
    row: Sequence[str], width: int, lines: Sequence[str], delimiter: str, file: str, line: int
) -> None:
    """Raise BadData if a quote that is not closed makes one row, which begins at `line`, of these lines."""
    with suppress(csv.Error):
        list(csv.reader(lines, delimiter=delimiter, strict=True))
        if len(row) == width:
            return
    breaks = [len(re.findall(r"\r\n?|\n", cell)) for cell in row]
    before = sum(breaks[: breaks.index(max(breaks))])
    others = len(lines) - before - 1
    number = f"{others} more line{'s' if others > 1 else ''}"
    reason = f'a quote opens here and takes {number} into one cell; close it, or write "" for a quote'
    raise refused(f"{file} line {line + before}", reason)
