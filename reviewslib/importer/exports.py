"""Exports of reviews: the contents of files become records.

A format is told by content; the name of an archive tells only of which export it is a part. Nothing is
guessed: what a file leaves open ends in `Undecided`, which names the flag that settles it. This module is
pure: it opens no file but its own tables (`exports.json`), reads no clock and does not know which reviews are
stored.

Sections: Records - Text - Dates - Stars - Google - Pages - CSV - Formats
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import resources
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from reviewslib.dataset.contract import BadData, Fault, shown
from reviewslib.dataset.strict_json import SURROGATE, Json, NotJson, Object, decode, encode
from reviewslib.dataset.text import canonically_ordered, fold
from reviewslib.files import Member

# Of words and forms, and reasons to refuse.
TABLES = decode((resources.files(__package__) / "exports.json").read_bytes())

# ---- Records: the reviews of an export, and what keeps others from being imported ----

ReviewInFile = dict[str, Json]  # as in reviews.json; of what has no key nothing is known


@dataclass(frozen=True, slots=True)
class Options:
    """What the owner said of the files; empty where nothing was said."""

    zone: str = ""  # of the business
    source: str = ""  # of a CSV
    map: Mapping[str, str] = field(default_factory=dict)  # headers of a CSV by field
    date_order: str | None = None  # "dmy" or "mdy"
    scale: int | None = None  # the best rating of a CSV
    avatars: bool = False
    latest_day: str = "9999-12-31"  # that a review can be of
    name: str = ""  # of the business
    location: Sequence[str] = ()  # numbers or titles
    short_names: bool = False
    allow_removals: bool = False


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
    export: str = ""  # its key in `Exports.known`
    exported: str = ""  # the newest moment that the export has of the location


@dataclass
class Export:
    """What is known of an export of Google's. What has a part number comes in one command or in several."""

    parts: dict[str, str] = field(default_factory=dict)  # digest of the content by part number
    times: dict[str, str] = field(default_factory=dict)  # newest moment by location
    folders: dict[str, list[str]] = field(default_factory=dict)  # locations, and which of WHOLE are there
    ids: list[str] = field(default_factory=list)  # of reviews, as merged

    def is_first_alone(self) -> bool:
        """Whether only part 001 has come, which may be all."""
        return len(self.parts) == 1 and _position(*self.parts) in FIRST_PARTS

    def has_gap(self) -> bool:
        """Whether a part below another one has not come."""
        positions = {_position(number) for number in self.parts}
        before = {(group, number - 1) for group, number in positions if number > 1}
        before |= {(group - 1, 1) for group, _ in positions if group > 1}
        return not before <= positions

    def note_whole(self, locations: Iterable[str]) -> None:
        """Note that every page of these locations is here."""
        self.folders[""] = sorted({*WHOLE, *locations})

    def whole_times(self) -> dict[str, str]:
        """The newest moments of the locations of which every page is here, if part 001 alone is all."""
        whole = [inside for inside in self.folders.values() if {*inside} >= WHOLE and not self.has_gap()]
        return {each: self.times.get(each, "") for inside in whole for each in inside if each not in WHOLE}


WHOLE = {"data.json", "reviews.json"}  # what a folder has of which no page is missing at its head


def latest(*times: Mapping[str, str]) -> dict[str, str]:
    """The latest of the moments of each location."""
    found = dict[str, str]()
    for location, time in (pair for each in times for pair in each.items()):
        found[location] = max(time, found.get(location, ""))
    return found


@dataclass
class Exports:
    """What all files of a command say."""

    options: Options
    records: list[Record] = field(default_factory=list)
    failed: list[Fault] = field(default_factory=list)  # records that cannot be imported
    spoilt: set[str] = field(default_factory=set)  # exports in which one of these is
    links: list[Path] = field(default_factory=list)  # which nothing follows
    warnings: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    parted: dict[str, str] = field(default_factory=dict)  # exports whose later parts have it, by location
    with_reviews: set[str] = field(default_factory=set)  # exports that are Google's
    foreign: dict[str, list[Fault]] = field(default_factory=dict)  # what else is in exports
    titles_by_folder: dict[tuple[str, str], str] = field(default_factory=dict)  # and by export
    known: dict[str, Export] = field(default_factory=dict)
    pages: dict[str, list[Object]] = field(default_factory=dict)  # of the API, without their reviews

    def fail(self, record: Fault, reason: str, export: str = "") -> None:
        """Note a record that cannot be imported."""
        self.failed.append(replace(record, reason=reason))
        self.spoilt.add(export)


class BadRecord(ValueError):
    """A record cannot be imported; the text says why."""


MOST_SHOWN = 50  # of what a question names


class Undecided(ValueError):
    """Nothing is imported before the owner decides: a question of the tables, with its values."""

    def __init__(self, question: str, seen: Iterable[str] = (), **values: object):
        asked, flag = (text.format_map(values) for text in TABLES["questions"][question])
        named = [f"  {each}" for each in seen]
        rest = [f"  and {len(named) - MOST_SHOWN} more"] if len(named) > MOST_SHOWN else []
        super().__init__(asked, *named[:MOST_SHOWN], *rest, flag)

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
EARLIEST_DAY = "1990"  # no review is older


class Date(NamedTuple):
    """`text` is as served; `utc` is YYYY-MM-DDTHH:MM:SSZ, empty for a day."""

    text: str = ""
    utc: str = ""


def read_date(text: str, options: Options, order: str = "dmy", is_utc: bool = False) -> Date:
    """The day or the moment that `text` names, in any known form; empty for no text.

    A moment without a zone of its own is one of the business, or of UTC. Raises BadRecord, and Undecided for
    a moment without the zone of the business.
    """
    if not text:
        return Date()
    moment, zone = _moment(text, order), options.zone
    day = moment.date().isoformat()
    if not EARLIEST_DAY < day <= options.latest_day:
        reason = "in the future" if day > EARLIEST_DAY else f"older than {EARLIEST_DAY}"
        raise BadRecord(f"{shown(text)} is {reason}")
    if ":" not in text and not UNIX_TIME.fullmatch(text):
        return Date(day)
    if not zone:
        raise Undecided("zone", moment=shown(text))
    moment = moment.replace(microsecond=0, tzinfo=moment.tzinfo or (UTC if is_utc else ZoneInfo(zone)))
    utc = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Date(moment.astimezone(ZoneInfo(zone)).isoformat(), utc)


def utc_of(date: str) -> str:
    """The moment of a stored date in UTC; empty for a day, and for a form that no export has."""
    with suppress(BadRecord):
        return read_date(date, Options(zone="UTC")).utc
    return ""


def _moment(text: str, order: str) -> datetime:
    if UNIX_TIME.fullmatch(text):
        return datetime.fromtimestamp(int(text[:10]), UTC)
    with suppress(ValueError):
        return datetime.fromisoformat(re.sub(" UTC$", "Z", text))
    for day, hour in product((TABLES["days_by_order"][order], *TABLES["days"]), TABLES["hours"]):
        with suppress(ValueError):
            return datetime.strptime(text, day + hour)
    raise BadRecord(f"{shown(text)} is not a date of a known form, or not in the calendar")


def order_of(texts: Iterable[str], name: str) -> str:
    """Whether the day or the month comes first in a column of dates, "dmy" or "mdy". Raises Undecided."""
    slashed = {text: (int(found[1]), int(found[2])) for text in texts if (found := SLASHES.match(text))}
    day_first = all(second <= 12 for _, second in slashed.values())
    month_first = all(first <= 12 for first, _ in slashed.values())
    if day_first == month_first and any(first != second for first, second in slashed.values()):
        raise Undecided("date order", list(slashed)[:5], column=name)
    return "dmy" if day_first else "mdy"


# ---- Stars: of five ----

NUMBER = re.compile(r"([0-9]{1,3}(?:[.,][0-9]{1,9})?) *(%|/ *(?:5|10|100)|stars?)?", re.IGNORECASE)
DRAWN = re.compile("(★{1,5})(☆*)")


def read_stars(text: str, scale: int | None) -> float | None:
    """The stars that `text` stands for, in halves on a larger scale; None where nobody gave any.

    Raises BadRecord, and Undecided while the scale is not known.
    """
    most, word = scale or 5, TABLES["stars"].get(text.lower())
    if word:
        return int(word)
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
        raise Undecided("scale", rating=shown(text))
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
GOOGLE_KEYS = {"createTime", "starRating"}  # of a review
PAGE_KEYS = {"reviews", "averageRating", "totalReviewCount", "nextPageToken"}
# What is read of a folder, by its path inside; of an archive also what shows that it is a spreadsheet.
IN_FOLDER = re.compile(r"(?:.*/)?(?:reviews[^/]*|data)\.json", re.IGNORECASE | re.DOTALL)
IN_ARCHIVE = re.compile(rf"{IN_FOLDER.pattern}|xl/workbook\.xml|content\.xml", IN_FOLDER.flags)
ARCHIVE_NAME = re.compile(
    r"(takeout-[0-9]{8}T[0-9]{6}Z)(?:-((?:[0-9]+-)?[0-9]{1,3})(?![0-9]))?.*|(.+)-([0-9]{3})", re.DOTALL
)


FIRST_PARTS = {(0, 1), (1, 1)}


def _position(number: str) -> tuple[int, int]:
    """The two numbers of a part, of which the first one may be missing."""
    group, _, part = number.rpartition("-")
    return int(group or 0), int(part)


def part_of(name: str) -> tuple[str, str]:
    """The export of which an archive or a folder of this name is a part, and the number of the part.

    The number is empty where there is none. Google writes takeout-<timestamp>Z-001, or -1-001 and -2-001.
    """
    found = ARCHIVE_NAME.fullmatch(name := clean(name))
    return (found[1] or found[3], found[2] or found[4] or "") if found else (name, "")


def read_google(members: Iterable[Member], key: str, number: str, exports: Exports) -> None:
    """Add the reviews in the JSON files of a part of the export `key`. Raises BadData and Undecided."""
    export, faults, content = exports.known.setdefault(key, Export()), list[Fault](), hashlib.sha256()
    first = len(exports.records)
    for path, file, data in members:
        if path.suffix == ".xml":
            raise refused(file, TABLES["spreadsheet"])
        document, name, folder = _json(data, file), path.name.lower(), clean(str(path.parent))
        content.update(hashlib.sha256(f"{folder}/{clean(name)}\n".encode() + data).digest())
        inside = set(export.folders.get(folder, ()))
        if (items := _google_items(document)) is not None:
            found = _google_records(items, file, key, exports)
            if "totalReviewCount" in document or any(each.form == "api" for each in found):
                found = _of_page(document, found, exports)
            exports.records += found
            inside |= {each.location for each in found} - {""} | {name} & WHOLE
            exports.with_reviews.add(key)
        elif name == "data.json" and isinstance(document, dict):
            if title := one_line(str(document.get("title") or "")):
                exports.titles_by_folder[key, folder] = title
            inside.add(name)
        else:  # such as the reviews that the owner wrote, in the same archive
            reasons = TABLES["refused_by_key"]
            reason = next(reasons[sign] for sign in reasons if sign.encode() in data)
            faults.append(Fault(file, (), reason.format_map(TABLES)))
        export.folders[folder] = sorted(inside)
    exports.foreign[key] = faults or [Fault(key, (), TABLES["refused_without_reviews"].format_map(TABLES))]
    if number:
        export.parts[number] = content.hexdigest()[:16]
    if number and _position(number) not in FIRST_PARTS:
        exports.parted |= {each.location: key for each in exports.records[first:] if each.location}


def _json(data: bytes, file: str) -> Json:
    try:
        return decode(data, lone_surrogates=True)
    except NotJson as error:
        raise BadData([Fault(file, path, reason) for path, reason in error.faults]) from None


def _google_items(document: Json) -> list[Json] | None:
    """The reviews of a file from Google, none on an empty page; None if it is something else."""
    match document:
        case {"reviews": [*items]} if any(
            isinstance(each, dict) and GOOGLE_KEYS & each.keys() for each in items
        ):
            return items
        case {**members} if members.keys() <= PAGE_KEYS and not members.get("reviews"):
            return []
    return None


def _google_records(items: Sequence[Json], file: str, key: str, exports: Exports) -> list[Record]:
    """The reviews of a file; those that cannot be imported are noted. Raises Undecided."""
    records = []
    for index, item in enumerate(items):
        position = Fault(file, ("reviews", index), "")
        try:
            if not isinstance(item, dict):
                raise BadRecord(f"it is {shown(item)} and not an object")
            records.append(google_record(item, position, key, exports.options))
        except BadRecord as fault:
            exports.fail(position, str(fault), key)
    return records


def google_record(item: Mapping[str, Json], position: Fault, export: str, options: Options) -> Record:
    """A review of Takeout, or of the API if it has a `reviewId`. Raises BadRecord and Undecided."""
    resource_name, native_id = _text(item, "name"), _text(item, "reviewId")
    resource = RESOURCE_NAME.fullmatch(resource_name)
    if not (native_id or resource):
        raise BadRecord("it has no name of the form accounts/…/locations/…/reviews/…")
    reviewer, reply = _member(item, "reviewer", dict), _member(item, "reviewReply", dict)
    author = "" if reviewer.get("isAnonymous") is True else one_line(_text(reviewer, "displayName"))
    created, updated, replied = (
        read_date(_text(holder, key), options, is_utc=True)
        for holder, key in ((item, "createTime"), (item, "updateTime"), (reply, "updateTime"))
    )
    if not created.utc:
        raise BadRecord(f"createTime is {shown(item.get('createTime'))} and not a moment")
    text, answer = original(_text(item, "comment")), original(_text(reply, "comment"))
    review: ReviewInFile = {
        "author": author or ANONYMOUS,
        "rating": TABLES["stars"].get(_text(item, "starRating").lower()),
        "date": created.text,
        "text": text if text and text != answer else None,
        "source": "google",
        "owner_reply": {"text": answer, "date": replied.text or None} if answer else None,
    }
    if options.avatars:
        review["author_avatar_url"] = _text(reviewer, "profilePhotoUrl") or None
    location, id_in_name = resource.groups() if resource else ("", "")
    form, newest = "api" if native_id else "takeout", max(created.utc, updated.utc)
    ids = native_id or id_in_name, review, created.utc, newest, replied.utc, resource_name, location, export
    return Record(position, form, *ids)


def _text(holder: Mapping[str, Json], key: str) -> str:
    """A member that is text, empty where it is absent or null. Raises BadRecord."""
    return clean(_member(holder, key, str))


def _member(holder: Mapping[str, Json], key: str, kind: type) -> Any:
    value = holder.get(key)
    if not isinstance(value, (kind, type(None))):
        raise BadRecord(f"{key} is {shown(value)} and not {'text' if kind is str else 'an object'}")
    return value or kind()


# ---- Pages of the API: those with the same totals are one export ----


def _of_page(document: Mapping[str, Json], found: Sequence[Record], exports: Exports) -> list[Record]:
    """The records of a page as those of the export that it is a part of."""
    total, average = document.get("totalReviewCount"), document.get("averageRating")
    totals = "" if total is average is None else f" with {shown(total)} reviews of {shown(average)} stars"
    key = f"pages of the API{totals}"
    exports.pages.setdefault(key, []).append({name: document[name] for name in document if name != "reviews"})
    exports.known.setdefault(key, Export())
    return [replace(each, export=key) for each in found]


def close(exports: Exports) -> None:
    """Note what all files say together: newest moments, titles, which pages of the API are complete.

    Raises BadData for an export of which no part has reviews.
    """
    if faults := [exports.foreign[key] for key in exports.foreign if key not in exports.with_reviews]:
        raise BadData([fault for each in faults for fault in each])
    texts = (f"{each.review['author']}{each.review.get('text')}" for each in exports.records)
    if damaged := sum(map(looks_damaged, texts)):
        exports.warnings.append(f"letters of {damaged} reviews look damaged (“BjÃ¸rn”); export them anew")
    records = defaultdict[str, list[Record]](list)
    for record in exports.records:
        records[record.export].append(record)
    for key, export in exports.known.items():
        export.times = latest(*({each.location: max(each.updated, each.replied)} for each in records[key]))
    for (key, folder), title in exports.titles_by_folder.items():
        exports.titles |= dict.fromkeys(set(exports.known[key].folders[folder]) - WHOLE, title)
    for key, pages in exports.pages.items():
        if lack := _lack(pages, records[key]):
            exports.warnings.append(f"{key} remove nothing: {lack}")
        else:
            exports.known[key].note_whole({records[key][0].location})


def _lack(pages: Sequence[Object], records: Sequence[Record]) -> str:
    """Why these pages are not all of one location; empty if they are."""
    total, average = pages[0].get("totalReviewCount"), pages[0].get("averageRating")
    if not isinstance(total, int) or not isinstance(average, (int, float)) or not 0 <= average <= 5:
        return "they do not say how many reviews there are, and their average"
    if (lasts := sum(not page.get("nextPageToken") for page in pages)) != 1:
        return f"{lasts} of {len(pages)} have no nextPageToken, and just one should"
    locations = {each.location for each in records}
    if len(locations) != 1 or "" in locations:
        return "they do not name one location"
    stars = {each.native_id: each.review["rating"] for each in records}
    if len(stars) != total:
        return f"they have {len(stars)} reviews"
    rated = [each for each in stars.values() if each]
    mean, decimals = math.fsum(rated) / max(1, len(rated)), len(str(float(average)).partition(".")[2])
    if abs(mean - average) > 0.5 * 10 ** -min(decimals, 3) + 1e-9:  # the precision of Google's figure varies
        return f"their mean is {mean:.3f}"
    return ""


# ---- CSV: the header of the template, or one that --map explains ----

TEMPLATE = tuple(TABLES["template"])
DateForms = Mapping[str, tuple[str, bool]]  # by field, whether the day is first, and whether it is in UTC
FIELDS = (*TEMPLATE, *TABLES["only_by_map"])
SPOILT_ID = re.compile(r"[0-9]+(?:[.,][0-9]+)?E\+[0-9]+|#{3,}", re.IGNORECASE)
# What letters of other encodings are in cp1252: signs in words, capitals behind small letters, “š” for “ö”.
IMPROBABLE = re.compile(
    r"\ufffd|[šž]|[a-zß-ÿ][À-ÖØ-ÞŠŽŒŸ]|[A-Z][ŠŽŒŸ][a-zß-ÿ]|[À-ÖØ-öø-ÿ]{4}"
    r"|[^\W\d_](?:[€‚ƒ„†‡ˆ‰‹›•˜™¡¢£¤¥¦§¨©¬®¯±´µ¶¸¿×÷]|[°²³·¹º»¼½¾][^\W\d_])"
)
MOST_IMPROBABLE = 0.05  # of the characters beyond ASCII
MOST_BREAKS = 50  # of lines in a cell


def read_csv(data: bytes, file: str, exports: Exports) -> None:
    """Add the rows of a CSV file, whose order does not matter. Raises BadData and Undecided."""
    options, ((_, header), *rows) = exports.options, _rows(_csv_text(data, file, exports), file)
    header = [one_line(name) for name in header]
    columns = _columns(header, file, options)
    cells = [_cells(row, columns) if len(row) == len(header) else {} for _, row in rows]
    dates = {}
    for key in ("date", "reply_date"):
        order = options.date_order or order_of((cell.get(key, "") for cell in cells), f"{file}, column {key}")
        dates[key] = order, key in columns and "utc" in header[columns[key]].lower()
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
            records.append(csv_record(cell, position, dates, options))
        except BadRecord as fault:
            exports.fail(position, str(fault))
    exports.records += sorted(records, key=lambda record: encode(record.review))


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
    head = text.lstrip("\n\r").partition("\n")[0]
    delimiter, lines = max(",;\t", key=head.count), list(io.StringIO(text, newline=""))
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


def _columns(header: Sequence[str], file: str, options: Options) -> dict[str, int]:
    """The index of the column of each field. Raises Undecided unless each is named just once."""
    wanted = options.map or {name: name for name in header if name}
    known, counts = FIELDS if options.map else TEMPLATE, Counter(header)
    faults = {
        "columns that are not of the template": [name for name in wanted if name not in known],
        "no columns named": [name for name in wanted.values() if not counts[name]],
        "several columns named": [name for name in wanted.values() if counts[name] > 1],
        "no columns for": [name for name in TABLES["required"] if name not in wanted],
    }
    for fault, names in faults.items():
        if names:
            told, fields = ", ".join(map(shown, names)), ", ".join(FIELDS)
            seen = [shown(name) for name in header if name]
            raise Undecided("columns", seen, file=file, fault=fault, names=told, fields=fields)
    return {name: header.index(column) for name, column in wanted.items()}


def _cells(row: Sequence[str], columns: Mapping[str, int]) -> dict[str, str]:
    """The cells by field; one that says nothing is empty, a guard against formulas is gone."""
    cells = {}
    for name, index in columns.items():
        cell = clean(row[index]) if name in ("text", "reply") else one_line(row[index])
        cells[name] = "" if cell.lower() in TABLES["empty_cells"] else re.sub(r"^'(?=[=+@-])", "", cell)
    return cells


def csv_record(cells: Mapping[str, str], position: Fault, dates: DateForms, options: Options) -> Record:
    """A row; an empty `reply` says nothing. Raises BadRecord and Undecided."""
    date, replied = (read_date(cells.get(key, ""), options, *form) for key, form in dates.items())
    verified, source = cells.get("verified", "").lower(), fold(cells.get("source") or options.source)
    truths: dict[str, bool] = TABLES["truths"]
    for value, reason in (
        (cells["author"], "no author"),
        (date.text, "no date"),
        (not verified or verified in truths, f"verified is {shown(verified)}; known are {', '.join(truths)}"),
    ):
        if not value:
            raise BadRecord(reason)
    if not source:
        raise Undecided("source", file=position.file)
    rating = read_stars(cells["rating"], options.scale)
    review: ReviewInFile = {"author": cells["author"], "rating": rating, "date": date.text, "source": source}
    review |= {key: cells[key] or None for key in ("text", "source_url") if key in cells}
    if reply := cells.get("reply"):
        when = {"date": replied.text or None} if "reply_date" in cells else {}
        review["owner_reply"] = {"text": reply} | when
        if review.get("text") == reply:
            review["text"] = None
    if verified:
        review["verified"] = truths[verified]
    if "recommended" in cells["rating"].lower():
        review["recommended"] = cells["rating"].lower() == "recommended"
    return Record(position, "csv", cells.get("id", ""), review, date.utc, replied=replied.utc)


# ---- Formats: told by content ----


def read_single(data: bytes, file: str, exports: Exports) -> None:
    """Add the reviews of a single file. Raises BadData and Undecided."""
    for first, reason in TABLES["refused_by_first_bytes"].items():
        if data.startswith(bytes.fromhex(first)):
            raise refused(file, reason.format_map(TABLES))
    if data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        read_google([Member(PurePosixPath(), file, data)], file, "", exports)
    else:
        read_csv(data, file, exports)
