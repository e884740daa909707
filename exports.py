"""Exports of reviews: the contents of files become records.

A format is told by content, never by the name of its file. Nothing is guessed: what a file leaves open
ends in `Undecided`, which names the flag that settles it. This module is pure: it opens no file, reads no
clock and does not know which reviews are stored. `options` are the parsed flags of the command.

Sections: Records - Text - Dates - Stars - Google - CSV - Formats
"""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from argparse import Namespace
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from contract import BadData, Fault, shown
from query import canonically_ordered, fold
from strict_json import SURROGATE, Json, NotJson, decode, encode

# ---- Records: the reviews of an export, and what keeps others from being imported ----

FORMS = ("takeout", "api", "csv")  # what gives native ids; the one whose ids are preferred first
ReviewInFile = dict[str, Json]  # as in reviews.json; of what has no key nothing is known


@dataclass(frozen=True, slots=True)
class Record:
    """One review of an export; moments are UTC, YYYY-MM-DDTHH:MM:SSZ, and empty where the export has none."""

    position: Fault  # in a file, without a reason
    form: str
    native_id: str  # empty where the export has none
    review: ReviewInFile
    created: str
    updated: str = ""
    replied: str = ""
    resource_name: str = ""
    location: str = ""
    exported: str = ""  # the newest moment that the export has of the location


@dataclass
class Exports:
    """What all files of a command say."""

    records: list[Record] = field(default_factory=list)
    failed: list[Fault] = field(default_factory=list)  # records that cannot be imported
    warnings: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    complete: dict[str, str] = field(default_factory=dict)  # newest moment of whole exports, by location


class BadRecord(ValueError):
    """A record cannot be imported; the text says why."""


class Undecided(ValueError):
    """Nothing is imported before the owner decides."""

    def __init__(self, question: str, flag: str, seen: Iterable[str] = ()):
        super().__init__(question, *(f"  {each}" for each in seen), flag)

    def lines(self) -> list[str]:
        """The question, what was seen, and the flag that decides."""
        return list(self.args)


def refused(file: str, reason: str) -> BadData:
    """The fault of a whole file."""
    return BadData([Fault(file, (), reason)])


# ---- Text: what people wrote, without what exports add ----

TRANSLATED = re.compile(r"\((?:Translated by|Traduzido pelo) Google\)")
TRANSLATED_LINE = re.compile(rf"^[ \t]*{TRANSLATED.pattern}[ \t]*$", re.MULTILINE)


def clean(text: str) -> str:
    """`text` in NFC, its lines ended by LF, without control characters and half surrogate pairs."""
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).replace("\N{NO-BREAK SPACE}", " ")
    text = re.sub(r"[\x00-\x08\x0b-\x1f]", "", re.sub(r"\r\n?", "\n", text))
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", canonically_ordered(text))
    return text.strip()


def one_line(text: str) -> str:
    """`text`, clean, with single spaces between its words."""
    return " ".join(clean(text).split())


def original(text: str) -> str:
    """What was written, without Google's translation, which stands before or after it."""
    if TRANSLATED.match(text):
        return (text.partition("(Original)")[2] or text).strip()
    return TRANSLATED_LINE.split(text, maxsplit=1)[0].strip()


def looks_damaged(text: str) -> bool:
    """Whether UTF-8 was read as cp1252 on the way: "BjÃ¸rn"."""
    with suppress(UnicodeError):
        return len(text.encode("cp1252").decode()) < len(text)
    return False


# ---- Dates: a day, or a moment in the zone of the business ----

UNIX_TIME = re.compile(r"[0-9]{10}([0-9]{3})?")  # seconds or milliseconds
SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4}\b")
ORDERS = {"dmy": "%d/%m/%Y", "mdy": "%m/%d/%Y"}
DAYS = ("%d.%m.%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y")
HOURS = ("", " %H:%M:%S", " %H:%M", " %I:%M %p", " %I:%M:%S %p")
YEARS = range(1990, 2100)  # that a review can be of


class Date(NamedTuple):
    """`text` is as served; `utc` is YYYY-MM-DDTHH:MM:SSZ, empty for a day."""

    text: str = ""
    utc: str = ""


def read_date(text: str, zone: str, order: str = "dmy", *, is_utc: bool = False) -> Date:
    """The day or the moment that `text` names, in any known form.

    A moment without a zone of its own is one of `zone`, or of UTC. Raises BadRecord, and Undecided for a
    moment without `zone`.
    """
    moment = _moment(text, order)
    if moment.year not in YEARS:
        raise BadRecord(f"{shown(text)} is not in the years {YEARS.start} to {YEARS.stop - 1}")
    if ":" not in text and not UNIX_TIME.fullmatch(text):
        return Date(moment.date().isoformat())
    if not zone:
        question = f"{shown(text)} is a moment, and its day depends on where the business is."
        raise Undecided(
            question, "Say where once: --zone America/Los_Angeles, for example. It is remembered."
        )
    moment = moment.replace(microsecond=0, tzinfo=moment.tzinfo or (UTC if is_utc else ZoneInfo(zone)))
    utc = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Date(moment.astimezone(ZoneInfo(zone)).isoformat(), utc)


def _moment(text: str, order: str) -> datetime:
    if UNIX_TIME.fullmatch(text):
        return datetime.fromtimestamp(int(text[:10]), UTC)
    with suppress(ValueError):
        return datetime.fromisoformat(re.sub(" UTC$", "Z", text))
    for day, hour in product((ORDERS[order], *DAYS), HOURS):
        with suppress(ValueError):
            return datetime.strptime(text, day + hour)
    raise BadRecord(f"{shown(text)} is not a date of a known form, or not in the calendar")


def order_of(texts: Iterable[str], name: str) -> str:
    """Whether the day or the month comes first in a column of dates, "dmy" or "mdy". Raises Undecided."""
    slashed = {text: found for text in texts if (found := SLASHES.match(text))}
    day_first = all(int(found[2]) <= 12 for found in slashed.values())
    month_first = all(int(found[1]) <= 12 for found in slashed.values())
    if day_first == month_first and any(int(found[1]) != int(found[2]) for found in slashed.values()):
        question = f"{name}: is the day or the month first in these dates?"
        raise Undecided(question, "Say which: --date-order dmy or --date-order mdy.", list(slashed)[:5])
    return "dmy" if day_first else "mdy"


# ---- Stars: of five ----

WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "recommended": 5, "not recommended": 1}
NUMBER = re.compile(r"([0-9]{1,3}(?:[.,][0-9]{1,9})?) *(%|/ *(?:5|10|100)|stars?)?", re.IGNORECASE)
DRAWN = re.compile("(★{1,5})(☆*)")


def read_stars(text: str, scale: int | None) -> float | None:
    """The stars that `text` stands for, in halves on a larger scale; None where nobody gave any.

    Raises BadRecord, and Undecided while the scale is not known.
    """
    most = scale or 5
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    drawn = DRAWN.fullmatch(text.replace("\N{VARIATION SELECTOR-16}", "").replace("⭐", "★"))
    if drawn and (not drawn[2] or len(drawn[0]) == 5):
        return len(drawn[1])
    number = NUMBER.fullmatch(text or "0")
    if not number:
        raise BadRecord(f"{shown(text)} is not a rating of a known form")
    value, unit = float(number[1].replace(",", ".")), (number[2] or "").replace("%", "/100")
    if value > most or (unit.startswith("/") and int(unit[1:]) != most):
        if scale:
            raise BadRecord(f"{shown(text)} is not a rating of 1 to {most}")
        flag = "Say how many stars are the most: --scale 5 (others are then skipped), 10 or 100."
        raise Undecided(f"The scale of the rating {shown(text)} is not known.", flag)
    if value == 0:
        return None
    if most != 5:
        value = max(1.0, math.floor(value * 10 / most + 0.5) / 2)
    if value < 1:
        raise BadRecord(f"{shown(text)} is less than one star")
    return int(value) if value.is_integer() else value


# ---- Google: Takeout of a Business Profile, and pages of the Business Profile API v4 ----

RESOURCE_NAME = re.compile(r"(?:accounts/[^/]+/)?locations/([^/]+)/reviews/([^/]+)")
ANONYMOUS = "A Google user"  # Google's own words


def google_record(item: Mapping[str, Json], position: Fault, options: Namespace) -> Record:
    """A review of Takeout, or of the API if it has a `reviewId`. Raises BadRecord and Undecided."""
    resource_name, native_id = _text(item, "name"), _text(item, "reviewId")
    resource = RESOURCE_NAME.fullmatch(resource_name)
    if not (native_id or resource):
        raise BadRecord("it has no name of the form accounts/…/locations/…/reviews/…")
    reviewer, reply = _member(item, "reviewer", dict), _member(item, "reviewReply", dict)
    author = "" if reviewer.get("isAnonymous") is True else one_line(_text(reviewer, "displayName"))
    created, updated, replied = (
        read_date(text, options.zone, is_utc=True) if text else Date()
        for text in (_text(item, "createTime"), _text(item, "updateTime"), _text(reply, "updateTime"))
    )
    if not created.utc:
        raise BadRecord(f"createTime is {shown(item.get('createTime'))} and not a moment")
    text, answer = original(_text(item, "comment")), original(_text(reply, "comment"))
    review: ReviewInFile = {
        "author": author or ANONYMOUS,
        "rating": WORDS.get(_text(item, "starRating").lower()),
        "date": created.text,
        "text": text if text and text != answer else None,
        "source": "google",
        "owner_reply": {"text": answer, "date": replied.text or None} if answer else None,
    }
    if options.avatars:
        review["author_avatar_url"] = _text(reviewer, "profilePhotoUrl") or None
    form, location = "api" if native_id else "takeout", resource[1] if resource else ""
    newest = max(created.utc, updated.utc)
    native_id = native_id or (resource[2] if resource else "")
    return Record(
        position, form, native_id, review, created.utc, newest, replied.utc, resource_name, location
    )


def read_google(items: Sequence[Json], file: str, options: Namespace, exports: Exports) -> list[Record]:
    """The reviews of a file; those that cannot be imported are noted. Raises Undecided."""
    records = []
    for index, item in enumerate(items):
        position = Fault(file, ("reviews", index), "")
        try:
            if not isinstance(item, dict):
                raise BadRecord(f"it is {shown(item)} and not an object")
            records.append(google_record(item, position, options))
        except BadRecord as fault:
            exports.failed.append(replace(position, reason=str(fault)))
    return records


def _text(holder: Mapping[str, Json], key: str) -> str:
    """A member that is text, empty where it is absent or null. Raises BadRecord."""
    return clean(_member(holder, key, str))


def _member(holder: Mapping[str, Json], key: str, kind: type) -> Any:
    value = holder.get(key)
    if not isinstance(value, (kind, type(None))):
        raise BadRecord(f"{key} is {shown(value)} and not {'text' if kind is str else 'an object'}")
    return value or kind()


# ---- CSV: the header of the template, or one that --map explains ----

TEMPLATE = ("id", "author", "rating", "date", "text", "source", "source_url", "reply", "reply_date")
REQUIRED = ("author", "rating", "date")
FIELDS = (*TEMPLATE, "verified")  # the last one through --map only
NOTHING = ("", "nan", "null", "none")  # whole cells that say nothing
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
SPOILT_ID = re.compile(r"[0-9]+(?:[.,][0-9]+)?E\+[0-9]+|#{3,}", re.IGNORECASE)


def read_csv(data: bytes, file: str, options: Namespace, exports: Exports) -> None:
    """Add the rows of a CSV file, whose order does not matter. Raises BadData and Undecided."""
    (_, header), *rows = _rows(_csv_text(data, file, exports), file)
    header = [one_line(name) for name in header]
    columns = _columns(header, file, options)
    cells = [_cells(row, columns) if len(row) == len(header) else {} for _, row in rows]
    orders = {
        key: options.date_order or order_of((cell.get(key, "") for cell in cells), f"{file}, column {key}")
        for key in ("date", "reply_date")
    }
    in_utc = {key for key in orders if key in columns and "utc" in header[columns[key]].lower()}
    records = []
    for (line, row), cell in zip(rows, cells, strict=True):
        position = Fault(f"{file} line {line}", (), "")
        if SPOILT_ID.fullmatch(cell.get("id", "")):
            raise refused(
                position.file, f"a spreadsheet has spoilt the id {shown(cell['id'])}; export it anew"
            )
        try:
            if not cell:
                raise BadRecord(f"the row has {len(row)} cells and the header {len(header)}")
            records.append(csv_record(cell, position, orders, in_utc, options))
        except BadRecord as fault:
            exports.failed.append(replace(position, reason=str(fault)))
    exports.records += sorted(records, key=lambda record: encode(record.review))


def _csv_text(data: bytes, file: str, exports: Exports) -> str:
    """The text of a file in UTF-16 with a byte order mark, UTF-8 or cp1252."""
    try:
        return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeError:
        warning = "not UTF-8; read as cp1252. If letters are wrong, save it as CSV UTF-8"
        exports.warnings.append(f"{file}: {warning}")
        return data.decode("cp1252", "replace")


def _rows(text: str, file: str) -> list[tuple[int, list[str]]]:
    """Each row in which anything stands, with the number of its first line. Raises BadData."""
    head = text.lstrip("\n\r").partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
    rows, first_line = [], 1
    try:
        for row in reader:
            rows += [(first_line, row)] if any(map(str.strip, row)) else []
            first_line = reader.line_num + 1
    except csv.Error as error:
        raise refused(file, f"not CSV at line {reader.line_num}: {error}") from None
    if not rows:
        raise refused(file, "it is empty")
    return rows


def _columns(header: Sequence[str], file: str, options: Namespace) -> dict[str, int]:
    """The index of the column of each field. Raises Undecided unless each is named just once."""
    wanted: dict[str, str] = options.map or {name: name for name in header if name}
    known = FIELDS if options.map else TEMPLATE
    faults = {
        "columns that are not of the template": [name for name in wanted if name not in known],
        "no columns named": [name for name in wanted.values() if name not in header],
        "several columns named": [name for name in wanted.values() if header.count(name) > 1],
        "no columns for": [name for name in REQUIRED if name not in wanted],
    }
    for fault, names in faults.items():
        if names:
            question = f"{file}: {fault} {', '.join(map(shown, names))}. Its columns are:"
            flag = f"Name the columns with --map author=…,rating=…,date=…; fields are {', '.join(FIELDS)}."
            raise Undecided(question, flag, [shown(name) for name in header if name])
    return {name: header.index(column) for name, column in wanted.items()}


def _cells(row: Sequence[str], columns: Mapping[str, int]) -> dict[str, str]:
    """The cells by field; one that says nothing is empty, a guard against formulas is gone."""
    cells = {}
    for name, index in columns.items():
        cell = clean(row[index]) if name in ("text", "reply") else one_line(row[index])
        cells[name] = "" if cell.lower() in NOTHING else re.sub(r"^'(?=[=+@-])", "", cell)
    return cells


def csv_record(
    cells: Mapping[str, str], position: Fault, orders: Mapping[str, str], in_utc: set[str], options: Namespace
) -> Record:
    """A row; an empty `reply` says nothing. Raises BadRecord and Undecided."""
    date, replied = (
        read_date(cells[key], options.zone, order, is_utc=key in in_utc) if cells.get(key) else Date()
        for key, order in orders.items()
    )
    verified, source = cells.get("verified", "").lower(), fold(cells.get("source") or options.source)
    for value, reason in (
        (cells["author"], "no author"),
        (date.text, "no date"),
        (not verified or verified in TRUTHS, f"verified is {shown(verified)}; known are {', '.join(TRUTHS)}"),
    ):
        if not value:
            raise BadRecord(reason)
    if not source:
        question = f"{position.file}: nothing says where the review was published."
        raise Undecided(question, "Say where with --source, for example --source facebook.")
    rating = read_stars(cells["rating"], options.scale)
    review: ReviewInFile = {"author": cells["author"], "rating": rating, "date": date.text, "source": source}
    review |= {key: cells[key] or None for key in ("text", "source_url") if key in cells}
    if reply := cells.get("reply"):
        when = {"date": replied.text or None} if "reply_date" in cells else {}
        review["owner_reply"] = {"text": reply} | when
        if review.get("text") == reply:
            review["text"] = None
    if verified:
        review["verified"] = TRUTHS[verified]
    if "recommended" in cells["rating"].lower():
        review["recommended"] = cells["rating"].lower() == "recommended"
    return Record(position, "csv", cells.get("id", ""), review, date.utc, replied=replied.utc)


# ---- Formats: told by content ----

TAKEOUT = "at takeout.google.com choose “Google Business Profile” and give the ZIP as it is"
PLACES = f"from Google's Places API, whose terms forbid keeping reviews; {TAKEOUT}"
SPREADSHEET = "a spreadsheet; save it as “CSV UTF-8” and import that"
FIRST_BYTES = {
    b"\x1f\x8b": "a .tgz archive; unpack it with tar xzf and give the folder, or export as .zip",
    b"\xd0\xcf\x11\xe0": SPREADSHEET,
}
# Keys that tell a JSON document that is refused, with what to do instead.
REFUSED_KEYS = {
    b'"features"': f"reviews that you wrote yourself, in Maps; for those of your business, {TAKEOUT}",
    b'"authorAttribution"': PLACES,
    b'"author_name"': PLACES,
    b'"time_created"': "from Yelp's API, whose terms forbid keeping reviews; import a CSV of your own",
    b"": f"JSON, but not an export that is known; {TAKEOUT}",
}
GOOGLE_KEYS = {"createTime", "starRating"}
PAGE_KEYS = {"reviews", "averageRating", "totalReviewCount", "nextPageToken"}
MEMBER = re.compile(r"(?:reviews.*|data)\.json", re.IGNORECASE)  # names in a folder or an archive


class Member(NamedTuple):
    """A file of a folder or an archive: its path inside, its name for the report, its content."""

    path: PurePosixPath
    file: str
    data: bytes


def read_single(data: bytes, file: str, options: Namespace, exports: Exports) -> None:
    """Add the reviews of a single file. Raises BadData and Undecided."""
    for first, reason in FIRST_BYTES.items():
        if data.startswith(first):
            raise refused(file, reason)
    if data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        read_takeout([Member(PurePosixPath(), file, data)], file, options, exports, is_whole=False)
    else:
        read_csv(data, file, options, exports)


def read_takeout(
    members: Iterable[Member], name: str, options: Namespace, exports: Exports, *, is_whole: bool
) -> None:
    """Add the reviews in the JSON files of a folder, or of the archives that are the parts of one.

    With `is_whole` it has every review of a location whose folder has data.json and reviews.json. Raises
    BadData and Undecided.
    """
    faults, titles, newest, records = [], {}, dict[str, str](), list[Record]()
    locations = dict[tuple[PurePosixPath, bool], set[str]]()  # by folder, first page or not
    for path, file, data in members:
        document = _json(data, file)
        if (items := _google_items(document)) is not None:
            found = read_google(items, file, options, exports)
            is_first = path.name.lower() == "reviews.json"
            those = locations.setdefault((path.parent, is_first), set())
            those |= {each.location for each in found} - {""}
            records += found
        elif path.name.lower() == "data.json" and isinstance(document, dict):
            titles[path.parent] = one_line(str(document.get("title") or ""))
        else:  # such as the reviews that the owner wrote, in the same archive
            faults.append(Fault(file, (), next(REFUSED_KEYS[key] for key in REFUSED_KEYS if key in data)))
    if not locations:
        raise BadData(faults or [Fault(name, (), f"no reviews of a business in it; {TAKEOUT}")])
    for record in records:
        newest[record.location] = max(newest.get(record.location, ""), record.updated, record.replied)
    exports.records += [replace(each, exported=newest[each.location]) for each in records]
    for (folder, is_first), those in locations.items():
        exports.titles |= dict.fromkeys(those, titles[folder]) if titles.get(folder) else {}
        for each in those if is_whole and is_first and folder in titles else ():
            exports.complete[each] = max(newest[each], exports.complete.get(each, ""))


def _json(data: bytes, file: str) -> Json:
    try:
        return decode(data, lone_surrogates=True)
    except NotJson as error:
        raise BadData([Fault(file, path, reason) for path, reason in error.faults]) from None


def _google_items(document: Json) -> list[Json] | None:
    """The reviews of a file from Google, none on an empty page; None if it is something else."""
    if not isinstance(document, dict):
        return None
    items = document.get("reviews") or []
    if not items and document.keys() <= PAGE_KEYS:
        return []
    is_google = isinstance(items, list) and any(
        isinstance(item, dict) and GOOGLE_KEYS & item.keys() for item in items
    )
    return items if is_google else None
