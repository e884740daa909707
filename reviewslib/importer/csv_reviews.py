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
from dataclasses import replace
from typing import Any

from reviewslib.dataset.contract import Fault, shown
from reviewslib.dataset.strict_json import encode
from reviewslib.dataset.text import fold
from reviewslib.importer.cells import (
    TABLES,
    BadRecord,
    DateForm,
    UnknownScale,
    allowed_orders,
    clean,
    one_line,
    read_date,
    read_stars,
)
from reviewslib.importer.exports import (
    Exports,
    Question,
    Record,
    ReviewInFile,
    Said,
    Undecided,
    question,
    refused,
)

TEMPLATE, REQUIRED = tuple(TABLES["template"]), TABLES["required"]
FIELDS = (*TEMPLATE, *TABLES["only_by_map"])
PLAIN_TEMPLATE = {name.replace("_", " ") for name in TEMPLATE}
DATES = ("date", "reply_date")
SPOILT_ID = re.compile(r"[0-9]+(?:[.,][0-9]+)?E\+[0-9]+|#{3,}", re.IGNORECASE)
EXCELS_LINE = re.compile(r'\s*"?sep=([,;\t|])"?[ \r]*\n', re.IGNORECASE)


def read_csv(data: bytes, file: str, exports: Exports) -> None:
    """Add the rows of a CSV file, whose order does not matter. Raises BadData and Undecided."""
    (_, names), *rows = _rows(_csv_text(data, file, exports), file)
    if sum(map(bool, names)) < len(REQUIRED):
        raise refused(file, f"no export that is known, and no table; it begins with {shown(names[0])}")
    header = Header([one_line(name) for name in names], file, exports)
    cells = [_cells(row, header.columns) if len(row) == len(names) else {} for _, row in rows]
    forms = {key: header.date_form(key, [cell.get(key, "") for cell in cells]) for key in DATES}
    first = len(exports.records)
    for (line, row), cell in zip(rows, cells, strict=True):
        position = Fault(f"{file} line {line}", (), "")
        if SPOILT_ID.fullmatch(cell.get("id", "")):
            reason = f"a spreadsheet has spoilt the id {shown(cell['id'])}; export it anew"
            raise refused(position.file, reason)
        try:
            if not cell:
                raise BadRecord(f"the row has {len(row)} cells and the header {len(names)}")
            exports.records.append(csv_record(cell, position, forms, header.said))
        except BadRecord as fault:
            exports.fail(position, str(fault))
        except UnknownScale as rating:
            header.asked["scale"] = question("scale", file=file, rating=shown(str(rating)))
    records = exports.records[first:]
    if not all(each.review["source"] for each in records):
        header.asked["source"] = question("source", file=file)
    if header.asked:
        raise Undecided(*header.asked.values())
    exports.doubled += len(records) - len({each.native_id or encode(each.review) for each in records})
    exports.records[first:] = sorted(records, key=lambda record: encode(record.review))
    if any(not cell.get("source") for cell in cells):
        exports.used.add("source")


# ---- Header: which column is which ----


def plain(name: str) -> str:
    """The name of a column without regard to case, and with one blank for each run of other signs."""
    return " ".join(re.findall(r"[^\W_]+", fold(name)))


class Header:
    """A header, what is said of files with it, now, earlier or by the tables, and what is still open."""

    def __init__(self, names: Sequence[str], file: str, exports: Exports):
        """Raises Undecided if nobody has said which column is which."""
        self.names, self.plain, self.file, self.exports = names, list(map(plain, names)), file, exports
        self.asked, self.key = dict[str, Question](), ",".join(self.plain)
        is_template = {*self.plain} - {""} <= PLAIN_TEMPLATE
        of_template: dict[str, Any] = {"map": {each: each for each in TEMPLATE if plain(each) in self.plain}}
        known = of_template if is_template else self._of_a_known_tool()
        earlier = exports.options.headers.get(self.key, Said()).given()
        given = exports.options.csv.given()
        if (known or "map" in earlier) and None in map(self._index, given.get("map", {}).values()):
            del given["map"]  # it is for another file
        is_template = is_template and "map" not in earlier | given
        self.said, self._earlier = Said(**(known | earlier | given)), earlier.keys() - given.keys()
        places = {name: self._index(column) for name, column in self.said.map.items()}
        self.columns = {name: index for name, index in places.items() if index is not None}
        faults = {
            "there is not just one": [
                column for name, column in self.said.map.items() if name not in self.columns
            ],
            "there is none for": [name for name in REQUIRED if name not in places],
        }
        if told := [f"{fault} {', '.join(map(shown, each))}" for fault, each in faults.items() if each]:
            raise Undecided(*self._questions(told[0]))
        exports.used |= given.keys() - {"source"}
        exports.said[self.key] = Said(**({**earlier, **given} | ({"source": ""} if is_template else {})))
        if self._earlier:
            said = sorted((name.replace("_", " "), getattr(self.said, name)) for name in self._earlier)
            remembered = ", ".join(f"{name} {_told(value)}" for name, value in said)
            exports.remembered.append(f"{file}: {remembered}")

    def _index(self, column: str) -> int | None:
        for names, name in ((self.names, column), (self.plain, plain(column))):
            if names.count(name) == 1:
                return names.index(name)
        return None

    def _of_a_known_tool(self) -> dict[str, Any]:
        """What the tables say of the tool whose header it is; empty if none or several fit."""
        found = []
        for known in TABLES["header_sets"].values():
            columns = {
                name: next(filter(self.plain.__contains__, names), None)
                for name, names in known["map"].items()
            }
            there = {name: column for name, column in columns.items() if column}
            if there.keys() >= {*REQUIRED, "text", "verified"} & columns.keys():
                found.append((len(there), {**known, "map": there}))
        most = max((number for number, _ in found), default=0)
        best = [known for number, known in found if number == most]
        return best[0] if len(best) == 1 else {}

    def _questions(self, fault: str) -> Iterator[Question]:
        """What is to be said of these files, with the map that is most likely right."""
        likely = dict[str, str]()
        for field, names in TABLES["likely_headers"].items():
            free = [name for name in self.names if name and name not in likely.values()]
            same = [each for name in names for each in free if plain(each) == name]
            near = [each for name in names for each in free if name in plain(each).split()]
            if same or near:
                likely[field] = (same or near)[0]
            elif field in REQUIRED:
                likely[field] = "YOUR-COLUMN"
        pairs = [f"{field}={column}" for field, column in likely.items()]
        joined = pairs if "," in "".join(pairs) else [",".join(pairs)]
        flags = [("--map", each) for each in joined]
        told = {"columns": ", ".join(map(shown, filter(None, self.names))), "fields": ", ".join(FIELDS)}
        yield question("columns", (), flags, file=self.file, fault=fault, **told)
        if "source" not in likely and not self.said.source:
            yield question("source", file=self.file)

    def date_form(self, key: str, texts: Sequence[str]) -> DateForm:
        """How a column of dates is written; asks where its dates leave it open or are not as before."""
        said, (allowed, dates) = self.said.date_order, allowed_orders(texts)
        order = said or min(allowed, default="dmy")
        if dates and said and "date_order" in self._earlier and said not in allowed:
            asked = question("other date order", dates[:5], file=self.file, order=said)
            self.asked["date order"] = asked
        elif dates and not said and len(allowed) != 1:
            self.asked["date order"] = question("date order", dates[:5], file=self.file)
        elif dates and not said:
            self.exports.said[self.key] = replace(self.exports.said[self.key], date_order=order)
        is_utc = key in self.columns and "utc" in self.plain[self.columns[key]].split()
        return self.exports.options.dates(order=order, is_utc=is_utc)


# ---- Rows ----


def _cells(row: Sequence[str], columns: Mapping[str, int]) -> dict[str, str]:
    """The cells by field; one that says nothing is empty, a guard against formulas is gone."""
    cells = {}
    for name, index in columns.items():
        cell = clean(row[index]) if name in ("text", "reply") else one_line(row[index])
        cells[name] = "" if cell.lower() in TABLES["empty_cells"] else re.sub(r"^'(?=[=+@-])", "", cell)
    return cells


def csv_record(
    cells: Mapping[str, str], position: Fault, forms: Mapping[str, DateForm], said: Said
) -> Record:
    """A row; an empty `reply` says nothing. Raises BadRecord and UnknownScale."""
    date, replied = (read_date(cells.get(key, ""), forms[key]) for key in DATES)
    verified, truths = cells.get("verified", "").lower(), TABLES["truths"]
    for value, reason in (
        (cells["author"], "no author"),
        (date.text, "no date"),
        (not verified or verified in truths, f"verified is {shown(verified)}; known are {', '.join(truths)}"),
    ):
        if not value:
            raise BadRecord(reason)
    rating, source = (
        read_stars(cells["rating"], int(said.scale or 0)),
        fold(cells.get("source") or said.source),
    )
    review: ReviewInFile = {"author": cells["author"], "rating": rating, "date": date.text, "source": source}
    review |= {key: cells[key] or None for key in ("text", "source_url") if key in cells}
    if (title := cells.get("title", "")) and not (review.get("text") or "").startswith(title):
        review["text"] = "\n\n".join(filter(None, (title, review.get("text"))))
    if reply := cells.get("reply"):
        when = {"date": replied.text or None} if "reply_date" in cells else {}
        review["owner_reply"] = {"text": reply} | when
        if review.get("text") == reply:
            review["text"] = None
    if verified:
        review["verified"] = truths[verified]
    clocks = [key for key, each in (("date", date), ("owner_reply", replied)) if each.is_clock]
    ids = cells.get("id", ""), review, date.utc
    return Record(position, "csv", *ids, replied=replied.utc, clocks=clocks)


def _told(value: str | Mapping[str, str]) -> str:
    return value if isinstance(value, str) else ",".join(f"{field}={name}" for field, name in value.items())


# ---- Encoding and rows ----

# What letters of other encodings are in cp1252: signs in words, capitals behind small letters, “š” for “ö”.
IMPROBABLE = re.compile(
    r"\ufffd|[šž]|[a-zß-ÿ][À-ÖØ-ÞŠŽŒŸ]|[A-Z][ŠŽŒŸ][a-zß-ÿ]|[À-ÖØ-öø-ÿ]{4}"
    r"|[^\W\d_](?:[€‚ƒ„†‡ˆ‰‹›•˜™¡¢£¤¥¦§¨©¬®¯±´µ¶¸¿×÷]|[°²³·¹º»¼½¾][^\W\d_])"
)
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
    if said := EXCELS_LINE.match(text):
        text = "\n" + text[said.end() :]
    head = text.lstrip("\n\r").partition("\n")[0]
    delimiter = said[1] if said else max(",;\t", key=head.count)
    lines = list(io.StringIO(text, newline=""))
    csv.field_size_limit(len(text) + 1)  # so that a quote that swallows the file is told as such
    reader = csv.reader(lines, delimiter=delimiter)
    rows, first_line = [], 1
    try:
        for row in reader:
            if reader.line_num > first_line:
                _refuse_swallowed(row, lines[first_line - 1 : reader.line_num], delimiter, file, first_line)
            rows += [(first_line, row)] if any(map(str.strip, row)) else []
            first_line = reader.line_num + 1
    except csv.Error as error:
        raise refused(file, f"not CSV at line {reader.line_num}: {error}") from None
    if not rows:
        raise refused(file, "it is empty")
    return rows


def _refuse_swallowed(row: Sequence[str], lines: Sequence[str], delimiter: str, file: str, line: int) -> None:
    """Raise BadData if a quote that is not closed makes one row, which begins at `line`, of these lines."""
    breaks = [len(re.findall(r"\r\n?|\n", cell)) for cell in row]
    longest = breaks.index(max(breaks))
    try:
        is_closed = bool(list(csv.reader(lines, delimiter=delimiter, strict=True)))
    except csv.Error:
        is_closed = False
    if not is_closed or breaks[longest] > MOST_BREAKS:
        before = sum(breaks[:longest])
        others = len(lines) - before - 1
        number = f"{others} more line{'s' if others > 1 else ''}"
        reason = f'a quote opens here and takes {number} into one cell; close it, or write "" for a quote'
        raise refused(f"{file} line {line + before}", reason)
