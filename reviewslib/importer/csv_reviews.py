"""Reviews in a CSV file: its encoding, its rows, which column is which, and what each row says.

A header is the template's, one of a known tool (`exports.json`), or one that the owner has explained once.
This module is pure. It knows no export of Google's and no stored review.
"""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from reviewslib.dataset.contract import Fault, quoted
from reviewslib.dataset.strict_json import encode
from reviewslib.dataset.text import fold
from reviewslib.importer import cells
from reviewslib.importer.cells import TABLES, BadRecord, DateFormat, clean, one_line
from reviewslib.importer.exports import (
    Exports,
    NeedsDecision,
    Question,
    Record,
    ReviewInFile,
    question,
    refused,
)
from reviewslib.importer.options import FIELDS, CsvSettings

TEMPLATE, REQUIRED = tuple(TABLES["template"]), TABLES["required"]
NORMALIZED_TEMPLATE = {name.replace("_", " ") for name in TEMPLATE}
DATES = ("date", "reply_date")
DAMAGED_ID = re.compile(r"[0-9]+(?:[.,][0-9]+)?E\+[0-9]+|#{3,}", re.IGNORECASE)
SEPARATOR_LINE = re.compile(r'\s*"?sep=([,;\t|])"?[ \r]*\n', re.IGNORECASE)  # Excel's


def read_csv(data: bytes, file: str, exports: Exports) -> None:
    """Add the rows of a CSV file, whose order does not matter. Raises BadData and NeedsDecision."""
    (_, names), *rows = _rows(_csv_text(data, file, exports), file)
    if sum(map(bool, names)) < len(REQUIRED):
        raise refused(file, f"no export that is known, and no table; it begins with {quoted(names[0])}")
    header = Header([one_line(name) for name in names], file, exports)
    fields = [_fields(row, header.columns) if len(row) == len(names) else {} for _, row in rows]
    formats = {key: header.date_format(key, [each.get(key, "") for each in fields]) for key in DATES}
    records = []
    for (line, row), values in zip(rows, fields, strict=True):
        position = Fault(f"{file} line {line}", (), "")
        if DAMAGED_ID.fullmatch(values.get("id", "")):
            reason = f"a spreadsheet has spoilt the id {quoted(values['id'])}; export it anew"
            raise refused(position.file, reason)
        try:
            if not values:
                raise BadRecord(f"the row has {len(row)} cells and the header {len(names)}")
            records.append(csv_record(values, position, formats, header.settings))
        except BadRecord as fault:
            exports.fail(position, str(fault))
        except cells.UnknownScale as rating:
            header.questions["scale"] = question("scale", file=file, rating=quoted(str(rating)))
    exports.doubled += len(records) - len({each.native_id or encode(each.review) for each in records})
    exports.records += sorted(records, key=lambda record: encode(record.review))
    if any(not each.get("source") for each in fields):
        exports.effective_flags.add("source")
    if not all(each.review["source"] for each in records):
        header.questions["source"] = question("source", file=file)
    if header.questions:
        raise NeedsDecision(*header.questions.values())


# ---- Header: which column is which ----


def normalized(name: str) -> str:
    """The name of a column without regard to case, and with one blank for each run of other signs."""
    return " ".join(re.findall(r"[^\W_]+", fold(name)))


class Header:
    """A header, the settings of files with it, and the questions that are open.

    A setting is given by a flag, else by an earlier command, else by the tables.
    """

    def __init__(self, names: Sequence[str], file: str, exports: Exports):
        """Raises NeedsDecision if it is not known which column is which."""
        self.names, self.normalized = names, list(map(normalized, names))
        self.file, self.exports = file, exports
        self.questions, self.key = dict[str, Question](), ",".join(self.normalized)
        is_template = {*self.normalized} - {""} <= NORMALIZED_TEMPLATE
        template = {"map": {each: each for each in TEMPLATE if normalized(each) in self.normalized}}
        known = template if is_template else self._known_tool()
        saved = exports.options.saved_csv.get(self.key, CsvSettings()).given()
        given = exports.options.csv.given()
        if (known or "map" in saved) and None in map(self._index, given.get("map", {}).values()):
            del given["map"]  # it is for another file
        is_template = is_template and "map" not in saved | given
        self.settings, self._from_memory = CsvSettings(**(known | saved | given)), saved.keys() - given.keys()
        indexes = {field: self._index(column) for field, column in self.settings.map.items()}
        self.columns = {field: index for field, index in indexes.items() if index is not None}
        unclear = [self.settings.map[field] for field in indexes if field not in self.columns]
        if unclear or not indexes.keys() >= {*REQUIRED}:
            missing = [name for name in REQUIRED if name not in indexes]
            fault = "there is not just one" if unclear else "there is none for"
            raise NeedsDecision(*self._questions(f"{fault} {', '.join(map(quoted, unclear or missing))}"))
        exports.effective_flags |= given.keys() - {"source"}
        no_source = {"source": ""} if is_template else {}
        exports.csv_settings[self.key] = CsvSettings(**(saved | given | no_source))
        if self._from_memory:
            remembered = ", ".join(_format_setting(name, saved[name]) for name in sorted(self._from_memory))
            exports.from_memory.append(f"{file}: {remembered}")

    def _index(self, column: str) -> int | None:
        for names, name in ((self.names, column), (self.normalized, normalized(column))):
            if names.count(name) == 1:
                return names.index(name)
        return None

    def _known_tool(self) -> dict[str, Any]:
        """The settings of the tool whose header it is; empty if none or several fit."""
        fitting = []
        for tool in TABLES["header_sets"].values():
            found = {
                field: next(name for name in names if name in self.normalized)
                for field, names in tool["map"].items()
                if not {*names}.isdisjoint(self.normalized)
            }
            if found.keys() >= {*REQUIRED, "text", "verified"} & tool["map"].keys():
                fitting.append({**tool, "map": found})
        most = max((len(tool["map"]) for tool in fitting), default=0)
        best = [tool for tool in fitting if len(tool["map"]) == most]
        return best[0] if len(best) == 1 else {}

    def _questions(self, fault: str) -> Iterator[Question]:
        """What is open of these files, with the map that is most likely right."""
        likely = dict[str, str]()
        for field, names in TABLES["likely_headers"].items():
            free = [name for name in self.names if name and name not in likely.values()]
            same = [each for name in names for each in free if normalized(each) == name]
            near = [each for name in names for each in free if name in normalized(each).split()]
            if same or near:
                likely[field] = (same or near)[0]
            elif field in REQUIRED:
                likely[field] = "YOUR-COLUMN"
        pairs = [f"{field}={column}" for field, column in likely.items()]
        flags = [("--map", each) for each in (pairs if "," in "".join(pairs) else [",".join(pairs)])]
        seen = {"columns": ", ".join(map(quoted, filter(None, self.names))), "fields": ", ".join(FIELDS)}
        yield question("columns", (), flags, file=self.file, fault=fault, **seen)
        if "source" not in likely and not self.settings.source:
            yield question("source", file=self.file)

    def date_format(self, key: str, texts: Sequence[str]) -> DateFormat:
        """How a column of dates is written; asks where its dates leave it open or are not as before."""
        known, (allowed, dates) = self.settings.date_order, cells.allowed_orders(texts)
        order = known or min(allowed, default="dmy")
        if dates and known and "date_order" in self._from_memory and known not in allowed:
            asked = question("other date order", dates[:5], file=self.file, order=known)
            self.questions["date order"] = asked
        elif dates and not known and len(allowed) != 1:
            self.questions["date order"] = question("date order", dates[:5], file=self.file)
        elif dates and not known:
            settings = self.exports.csv_settings
            settings[self.key] = replace(settings[self.key], date_order=order)
        is_utc = key in self.columns and "utc" in self.normalized[self.columns[key]].split()
        return self.exports.options.date_format(order=order, is_utc=is_utc)


def _format_setting(name: str, value: str | Mapping[str, str]) -> str:
    """A setting with its name, and the pairs of a map as a flag has them."""
    text = value if isinstance(value, str) else ",".join(f"{each}={value[each]}" for each in sorted(value))
    return f"{name.replace('_', ' ')} {text}"


# ---- Rows ----


def _fields(row: Sequence[str], columns: Mapping[str, int]) -> dict[str, str]:
    """The cells of a row by field; one that says nothing is empty, a guard against formulas is gone."""
    found = {}
    for field, index in columns.items():
        cell = clean(row[index]) if field in ("text", "reply") else one_line(row[index])
        found[field] = "" if cell.lower() in TABLES["empty_cells"] else re.sub(r"^'(?=[=+@-])", "", cell)
    return found


def csv_record(
    fields: Mapping[str, str], position: Fault, formats: Mapping[str, DateFormat], settings: CsvSettings
) -> Record:
    """A row; an empty `reply` says nothing. Raises BadRecord and UnknownScale."""
    date, replied = (cells.read_date(fields.get(key, ""), formats[key]) for key in DATES)
    verified, truths = fields.get("verified", "").lower(), TABLES["truths"]
    for value, reason in (
        (fields["author"], "no author"),
        (date.text, "no date"),
        (
            not verified or verified in truths,
            f"verified is {quoted(verified)}; known are {', '.join(truths)}",
        ),
    ):
        if not value:
            raise BadRecord(reason)
    review: ReviewInFile = {
        "author": fields["author"],
        "rating": cells.read_stars(fields["rating"], int(settings.scale or 0)),
        "date": date.text,
        "source": fold(fields.get("source") or settings.source),
    }
    review |= {key: fields[key] or None for key in ("text", "source_url") if key in fields}
    if (title := fields.get("title")) and not (review.get("text") or "").startswith(title):
        review["text"] = "\n\n".join(filter(None, (title, review.get("text"))))
    if reply := fields.get("reply"):
        when = {"date": replied.text or None} if "reply_date" in fields else {}
        review["owner_reply"] = {"text": reply} | when
        if review.get("text") == reply:
            review["text"] = None
    if verified:
        review["verified"] = truths[verified]
    naive = [key for key, each in (("date", date), ("owner_reply", replied)) if each.is_naive]
    id = fields.get("id", "")
    return Record(position, "csv", id, review, date.utc, replied=replied.utc, naive=naive)


# ---- Encoding and rows ----

# What letters of other encodings are in cp1252: signs in words, capitals behind small letters, “š” for “ö”.
IMPROBABLE = re.compile("|".join(TABLES["improbable_in_cp1252"]))
MOST_IMPROBABLE = 0.05  # of the characters beyond ASCII
MOST_BREAKS = 50  # of lines in a cell


def _csv_text(data: bytes, file: str, exports: Exports) -> str:
    """The text of a file in UTF-16 with a byte order mark, UTF-8, or what can be cp1252. Raises BadData."""
    try:
        return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeError:
        text = data.decode("cp1252", "replace")
    improbable = [found.start() for found in IMPROBABLE.finditer(text)]
    if len(improbable) > MOST_IMPROBABLE * sum(not character.isascii() for character in text):
        seen = one_line(text[max(0, improbable[0] - 10) : improbable[0] + 10])
        raise refused(file, f"not UTF-8, and its letters look damaged (“{seen}”); save it as “CSV UTF-8”")
    exports.warnings.append(f"{file}: not UTF-8; read as cp1252. If letters are wrong, save it as CSV UTF-8")
    return text


def _rows(text: str, file: str) -> list[tuple[int, list[str]]]:
    """Each row in which anything stands, with the number of its first line. Raises BadData."""
    if declared := SEPARATOR_LINE.match(text):
        text = "\n" + text[declared.end() :]
    lines = list(io.StringIO(text, newline=""))
    delimiter = declared[1] if declared else max(",;\t", key=next(filter(str.strip, lines), "").count)
    csv.field_size_limit(len(text) + 1)  # so that a quote that swallows the file is told as such
    reader = csv.reader(lines, delimiter=delimiter)
    rows, first_line = [], 1
    for row in reader:
        if reader.line_num > first_line:
            _refuse_open_quote(row, lines[first_line - 1 : reader.line_num], delimiter, file, first_line)
        rows += [(first_line, row)] if any(map(str.strip, row)) else []
        first_line = reader.line_num + 1
    if not rows:
        raise refused(file, "it is empty")
    return rows


def _refuse_open_quote(
    row: Sequence[str], lines: Sequence[str], delimiter: str, file: str, line: int
) -> None:
    """Raise BadData if a quote that is not closed makes one row, which begins at `line`, of these lines."""
    breaks = [len(re.findall(r"\r\n?|\n", cell)) for cell in row]
    with suppress(csv.Error):
        list(csv.reader(lines, delimiter=delimiter, strict=True))
        if max(breaks) <= MOST_BREAKS:
            return
    before = sum(breaks[: breaks.index(max(breaks))])
    others = len(lines) - before - 1
    number = f"{others} more line{'s' if others > 1 else ''}"
    reason = f'a quote opens here and takes {number} into one cell; close it, or write "" for a quote'
    raise refused(f"{file} line {line + before}", reason)
