"""Exports of reviews: the contents of files become records.

This module has what all formats share, and the formats of Google; CSV is in `csv_reviews.py`. Nothing is
guessed: what a file leaves open is a question, which names the flag that answers it. This module is pure: it
opens no file, reads no clock and does not know which reviews are stored.

Sections: Questions - Records - Google - Pages - Finish
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from reviewslib.dataset.contract import BadData, Fault, quoted
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode
from reviewslib.files import Member
from reviewslib.importer.cells import TABLES, BadRecord, clean, looks_damaged, one_line, original, read_date
from reviewslib.importer.options import CsvSettings, Options

# ---- Questions: what only the owner can decide ----

MOST_SHOWN = 50  # of what a question lists


class Question(NamedTuple):
    """A question in lines, and the flags that answer it; YOUR… in them stands for words of the owner."""

    lines: Sequence[str]
    flags: Sequence[tuple[str, str]] = ()
    file: str = ""  # the only one that it is about


class NeedsDecision(ValueError):
    """Nothing is imported before the owner answers `questions`."""

    def __init__(self, *questions: Question):
        super().__init__(*questions)
        self.questions = questions

    def lines(self) -> list[str]:
        """The lines of all questions."""
        return [line for each in self.questions for line in each.lines]


def question(
    kind: str, seen: Iterable[str] = (), flags: Sequence[tuple[str, str]] = (), **values: object
) -> Question:
    """A question of the tables: what is asked, what was seen, and how to answer."""
    asked, advice, *known = TABLES["questions"][kind]
    listed = [f"  {each}" for each in seen]
    rest = [f"  and {len(listed) - MOST_SHOWN} more"] if len(listed) > MOST_SHOWN else []
    lines = asked.format_map(values), *listed[:MOST_SHOWN], *rest, advice.format_map(values)
    return Question(lines, flags or [tuple(each) for each in known], str(values.get("file", "")))


# ---- Records: the reviews of an export, and what keeps others from being imported ----

ReviewInFile = dict[str, Json]  # as in reviews.json; of what has no key nothing is known


@dataclass(frozen=True, slots=True)
class Record:
    """One review of an export; moments are UTC, YYYY-MM-DDTHH:MM:SSZ, and empty where the export has none."""

    position: Fault  # in a file, without a reason
    format: str  # "takeout", "api" or "csv"
    native_id: str  # empty where the export has none
    review: ReviewInFile
    created: str
    updated: str = ""
    replied: str = ""
    resource_name: str = ""
    location: str = ""
    export: str = ""  # its key in `Exports.known`
    exported: str = ""  # the newest moment that the export has of the location
    naive: Sequence[str] = ()  # keys of the review whose moments were written without a zone


@dataclass
class Export:
    """What is known of an export of Google's, of which parts may come in other commands."""

    parts: dict[str, str] = field(default_factory=dict)  # digest of the content by part number
    times: dict[str, str] = field(default_factory=dict)  # newest moment by location
    folders: dict[str, list[str]] = field(default_factory=dict)  # locations and HEAD_FILES in each
    ids: list[str] = field(default_factory=list)  # of reviews, as merged

    def is_first_alone(self) -> bool:
        """Whether only part 001 has come, which may be all."""
        return len(self.parts) == 1 and _position(*self.parts) == FIRST_PART

    def has_gap(self) -> bool:
        """Whether a part below another one has not come."""
        positions = {_position(number) for number in self.parts}
        before = {(group, number - 1) for group, number in positions if number > 1}
        before |= {(group - 1, 1) for group, _ in positions if group > 1}
        return not before <= positions

    def complete_times(self) -> dict[str, str]:
        """The newest moments of the locations of which every page is here, if part 001 alone is all."""
        complete = [each for each in self.folders.values() if {*each} >= HEAD_FILES and not self.has_gap()]
        return {each: self.times[each] for inside in complete for each in self.times.keys() & inside}


HEAD_FILES = {"data.json", "reviews.json"}  # a folder that has both has the first page of its location


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
    doubled: int = 0  # rows that say the same as another of their file
    questions: list[Question] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # what is in a drop folder and cannot be imported
    # Google
    known: dict[str, Export] = field(default_factory=dict)
    damaged_exports: set[str] = field(default_factory=set)  # of which a record or a part cannot be imported
    with_reviews: set[str] = field(default_factory=set)  # exports that have some
    other_files: dict[str, list[Fault]] = field(default_factory=dict)  # those without reviews, by export
    multipart: dict[str, str] = field(default_factory=dict)  # exports whose later parts have it, by location
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    titles_by_folder: dict[tuple[str, str], str] = field(default_factory=dict)  # and by export
    pages: dict[str, list[Object]] = field(default_factory=dict)  # of the API, without their reviews
    # CSV
    csv_settings: dict[str, CsvSettings] = field(default_factory=dict)  # to be remembered, by header
    from_memory: list[str] = field(default_factory=list)  # settings that an earlier command gave
    effective_flags: set[str] = field(default_factory=set)  # flags for CSV that some file needed

    def copy(self) -> Exports:
        """A copy that no reading of files changes; records, which are frozen, are shared."""
        shared = {id(self.options): self.options, id(self.records): [*self.records]}
        return deepcopy(self, dict[int, Any](shared))

    def fail(self, record: Fault, reason: str, export: str = "") -> None:
        """Note a record that cannot be imported."""
        self.failed.append(replace(record, reason=reason))
        self.damaged_exports.add(export)


def refused(file: str, reason: str) -> BadData:
    """The fault of a whole file."""
    return BadData([Fault(file, (), reason)])


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
FIRST_PART = 1, 1


def _position(number: str) -> tuple[int, int]:
    """The two numbers of a part, of which the first one is 1 where it is missing."""
    group, _, part = number.rpartition("-")
    return int(group or 1), int(part)


def part_of(name: str) -> tuple[str, str]:
    """The export of which an archive or a folder of this name is a part, and the number of the part.

    The number is empty where there is none. Google writes takeout-<timestamp>Z-001, or -1-001 and -2-001.
    """
    found = ARCHIVE_NAME.fullmatch(name := clean(name))
    return (found[1] or found[3], found[2] or found[4] or "") if found else (name, "")


def read_google(members: Iterable[Member], key: str, number: str, exports: Exports) -> None:
    """Add the reviews in the JSON files of a part of the export `key`. Raises BadData."""
    export, faults, content = exports.known.setdefault(key, Export()), list[Fault](), hashlib.sha256()
    first = len(exports.records)
    for path, file, data in members:
        if path.suffix == ".xml":
            raise refused(file, TABLES["spreadsheet"])
        try:
            document = decode(data, lone_surrogates=True)
        except NotJson as error:
            raise BadData([Fault(file, place, reason) for place, reason in error.faults]) from None
        name, folder = path.name.lower(), clean(str(path.parent))
        content.update(hashlib.sha256(f"{folder}/{clean(name)}\n".encode() + data).digest())
        inside = set(export.folders.get(folder, ()))
        if (items := _google_items(document)) is not None:
            found = _google_records(items, file, key, exports)
            if "totalReviewCount" in document or any(each.format == "api" for each in found):
                found = _of_page(document, found, exports)
            exports.records += found
            inside |= {each.location for each in found} - {""} | {name} & HEAD_FILES
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
    without_reviews = TABLES["refused_without_reviews"].format_map(TABLES)
    exports.other_files[key] = faults or [Fault(key, (), without_reviews)]
    if number:
        export.parts[number] = content.hexdigest()[:16]
    if number and _position(number) != FIRST_PART:
        exports.multipart |= {each.location: key for each in exports.records[first:]}


def _google_items(document: Json) -> list[Json] | None:
    """The reviews of a file from Google, none on an empty page; None if it is something else."""
    match document:
        case {"reviews": [*items]} if any(GOOGLE_KEYS & {*each} for each in items if isinstance(each, dict)):
            return items
        case {**members} if members.keys() <= PAGE_KEYS and not members.get("reviews"):
            return []
    return None


def _google_records(items: Sequence[Json], file: str, key: str, exports: Exports) -> list[Record]:
    """The reviews of a file; those that cannot be imported are noted."""
    records = []
    for index, item in enumerate(items):
        position = Fault(file, ("reviews", index), "")
        try:
            if not isinstance(item, dict):
                raise BadRecord(f"it is {quoted(item)} and not an object")
            records.append(google_record(item, position, key, exports.options))
        except BadRecord as fault:
            exports.fail(position, str(fault), key)
    return records


def google_record(item: Mapping[str, Json], position: Fault, export: str, options: Options) -> Record:
    """A review of Takeout, or of the API if it has a `reviewId`. Raises BadRecord."""
    resource_name, native_id = _text(item, "name"), _text(item, "reviewId")
    resource = RESOURCE_NAME.fullmatch(resource_name)
    if not (native_id or resource):
        raise BadRecord("it has no name of the form accounts/…/locations/…/reviews/…")
    reviewer, reply = _member(item, "reviewer", dict), _member(item, "reviewReply", dict)
    author = "" if reviewer.get("isAnonymous") is True else one_line(_text(reviewer, "displayName"))
    dates = options.date_format(is_utc=True)
    created, updated, replied = (
        read_date(_text(holder, key), dates)
        for holder, key in ((item, "createTime"), (item, "updateTime"), (reply, "updateTime"))
    )
    if not created.utc:
        raise BadRecord(f"createTime is {quoted(item.get('createTime'))} and not a moment")
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
    format, newest = "api" if native_id else "takeout", max(created.utc, updated.utc)
    ids = native_id or id_in_name, review, created.utc, newest, replied.utc, resource_name, location, export
    return Record(position, format, *ids)


def _text(holder: Mapping[str, Json], key: str) -> str:
    """A member that is text, empty where it is absent or null. Raises BadRecord."""
    return clean(_member(holder, key, str))


def _member(holder: Mapping[str, Json], key: str, kind: type) -> Any:
    value = holder.get(key)
    if not isinstance(value, (kind, type(None))):
        raise BadRecord(f"{key} is {quoted(value)} and not {'text' if kind is str else 'an object'}")
    return value or kind()


# ---- Pages of the API: those with the same totals are one export ----


def _of_page(document: Mapping[str, Json], found: Sequence[Record], exports: Exports) -> list[Record]:
    """The records of a page as those of the export that it is a part of."""
    total, average = document.get("totalReviewCount"), document.get("averageRating")
    totals = "" if total is average is None else f" with {quoted(total)} reviews of {quoted(average)} stars"
    key = f"pages of the API{totals}"
    exports.pages.setdefault(key, []).append({name: document[name] for name in document if name != "reviews"})
    exports.known.setdefault(key, Export())
    return [replace(each, export=key) for each in found]


# ---- Finish: what all files say together ----


def finish(exports: Exports) -> None:
    """Note what all files say together: newest moments, titles, which pages of the API are complete.

    Raises BadData for an export of which no part has reviews; in a drop folder it is skipped.
    """
    unusable = exports.other_files.keys() - exports.with_reviews
    faults = [fault for key, found in exports.other_files.items() if key in unusable for fault in found]
    if faults and not exports.options.drop:
        raise BadData(faults)
    exports.skipped += [f"skipped: {fault}" for fault in faults]
    texts = (f"{each.review['author']}{each.review.get('text')}" for each in exports.records)
    if damaged := sum(map(looks_damaged, texts)):
        exports.warnings.append(f"letters of {damaged} reviews look damaged (“BjÃ¸rn”); export them anew")
    records = defaultdict[str, list[Record]](list)
    for record in exports.records:
        records[record.export].append(record)
    for key, export in exports.known.items():
        export.times = latest(*({each.location: max(each.updated, each.replied)} for each in records[key]))
    for (key, folder), title in exports.titles_by_folder.items():
        exports.titles |= dict.fromkeys(set(exports.known[key].folders[folder]) - HEAD_FILES, title)
    for key, pages in exports.pages.items():
        if lack := _incompleteness(pages, records[key]):
            exports.warnings.append(f"{key} remove nothing: {lack}")
        else:
            exports.known[key].folders[""] = [*HEAD_FILES, records[key][0].location]


def _incompleteness(pages: Sequence[Object], records: Sequence[Record]) -> str:
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
