"""Exports of reviews: the content of a file, a folder or an archive becomes records.

This module has what all formats share, and the formats of Google; `csv_reviews.py` has CSV. Nothing is
guessed: if a file leaves something open, the owner is asked. This module is pure: it opens no file, reads no
clock and does not know which reviews are stored.

Sections: Questions - Records - Other files - Google - Complete pages
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from reviewslib.dataset.contract import BadData, Contract, Fault, quoted
from reviewslib.dataset.reviews import LARGEST_REVIEW_BYTES, review_violations
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode, encode
from reviewslib.files import Member
from reviewslib.importer import cells
from reviewslib.importer.cells import FORMATS, BadRecord, DateFormat, clean, one_line, utc_text
from reviewslib.importer.options import Options, TableSettings

# ---- Questions: what only the owner can decide ----


class NeedsDecision(ValueError):
    """A question that the owner must answer before anything is imported.

    `flags` answer it, with YOUR in place of the owner's words. `file` is the file in question, if it is one.
    """

    def __init__(self, lines: Sequence[str], *flags: tuple[str, str], file: str = ""):
        super().__init__(*lines)
        self.flags, self.file = flags, file

    def lines(self) -> list[str]:
        """The question, for a terminal."""
        return [*self.args]


MAX_LISTED = 50  # lines of a question


def listed(items: Iterable[object]) -> list[str]:
    """The items as indented lines, at most MAX_LISTED; then the number of the others."""
    lines = [f"  {item}" for item in items]
    rest = len(lines) - MAX_LISTED
    return [*lines[:MAX_LISTED], f"  and {rest} more"] if rest > 0 else lines


# ---- Records: the reviews of an export, and errors in records ----

ReviewInFile = dict[str, Json]  # as in reviews.json; an absent key leaves the stored value unchanged
ANONYMOUS = "A Google user"  # Google's own words
ADDED_BYTES = 4 * 1024  # room for what the daemon adds: a page URL of any id, absent keys, mentioned names
MAX_FAILED_SHARE, MIN_FAILED = 0.1, 3  # an import stops above this share, if at least so many records failed


class Key(NamedTuple):
    """What identifies a review in an export."""

    format: str  # "takeout", "api" or "table"
    source: str
    native_id: str = ""  # empty if the export has none
    location: str = ""  # at Google
    resource_name: str = ""  # at Google

    @property
    def scope(self) -> str:
        """The location, else the source, of which an export may have every review."""
        return self.location or self.source


@dataclass(frozen=True, slots=True)
class Record:
    """A review as an export has it; dates are those of `cells.read_date`, empty if the export has none."""

    position: Fault  # without a reason
    key: Key
    time: str = ""  # of the export, in UTC
    review: ReviewInFile | None = None  # None if the review exists, but cannot be imported
    created: str = ""
    updated: str = ""
    replied: str = ""


@dataclass
class Export:
    """The reviews of a file, a folder or an archive, and remarks about it."""

    file: str
    records: list[Record] = field(default_factory=list)
    failed: list[Fault] = field(default_factory=list)  # of records that cannot be imported
    has_unknown: bool = False  # whether a record failed that may belong to any review
    without_stars: list[str] = field(default_factory=list)  # authors
    notes: list[str] = field(default_factory=list)
    covers: dict[str, str] = field(default_factory=dict)  # its time, by scopes of which it is complete
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    total: int | None = None  # number of reviews on all pages of the API
    header: str = ""  # of a table
    settings: TableSettings = TableSettings()  # of tables with this header

    def fail(self, position: Fault, reason: str, key: Key | None, time: str) -> None:
        """Note a record that cannot be imported; with a native id, its review still counts as existing."""
        self.failed.append(replace(position, reason=reason))
        if key and key.native_id:
            self.records.append(Record(position, key, time))
        else:
            self.has_unknown = True

    def check(self, contract: Contract) -> None:
        """Turn records that the daemon would not serve into faults. Raises NeedsDecision for many faults."""
        records, self.records = self.records, []
        for record in records:
            if reason := record.review and _fault_of(record, record.review, contract):
                self.fail(record.position, reason, record.key, record.time)
            else:
                self.records.append(record)
        reviews = [record.review for record in self.records if record.review]
        failed, total = len(self.failed), len(reviews) + len(self.failed)
        if failed > MAX_FAILED_SHARE * total and (failed >= MIN_FAILED or not reviews):
            line = f"{self.file}: {failed} of {total} records are faulty, more than a tenth:"
            raise NeedsDecision([line, *listed(self.failed), "Correct the file, or export it anew."])
        texts = (f"{review['author']}{review.get('text')}" for review in reviews)
        if damaged := sum(map(cells.looks_damaged, texts)):
            fault = f"letters look damaged (“BjÃ¸rn”) in {damaged} reviews"
            self.notes.append(f"{self.file}: {fault}; export them anew")
        if self.has_unknown and self.covers:
            self.notes.append(f"{self.file} removes nothing, since a faulty record may belong to any review")
            self.covers = {}


def _fault_of(record: Record, review: ReviewInFile, contract: Contract) -> str:
    """Why the daemon would not serve a review; empty if it would."""
    id = f"{record.key.source}-{record.key.native_id or 24 * '0'}"
    required = {"id": id, "date": record.created[:10], "source": record.key.source}
    document = {"business": {"name": "-"}, "reviews": [required | review]}
    for path, reason in (*contract.reviews_file.violations(document), *review_violations(document)):
        return f"{'/'.join(map(str, path[2:]))}: {reason}"
    size, limit = len(encode(review)), LARGEST_REVIEW_BYTES - ADDED_BYTES
    return f"{size:,} bytes, more than the {limit:,} that a review can have" if size > limit else ""


def refused(file: str, reason: str) -> BadData:
    """An error that concerns a whole file."""
    return BadData([Fault(file, (), reason)])


# ---- Other files: what they are, and what to import instead ----

TAKEOUT = "at takeout.google.com choose “Google Business Profile” and give the ZIP as it is"
SPREADSHEET = "a spreadsheet; save it as “CSV UTF-8” and import that"
KINDS_BY_FIRST_BYTES: dict[bytes | tuple[bytes, ...], str] = {
    b"\x1f\x8b": "a .tgz archive; unpack it with tar xzf and give the folder, or export as .zip",
    b"\xd0\xcf\x11\xe0": SPREADSHEET,
    (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF"): "a photograph",
    b"%PDF": "a PDF; import what it was made from",
    b"<": "a web page; at takeout.google.com choose JSON for the reviews, and give the ZIP as it is",
}
KINDS_BY_MEMBER = {  # of folders and archives without reviews; the first pattern that matches a member counts
    r"xl/workbook\.xml|content\.xml": SPREADSHEET,
    r"word/document\.xml": "a text document; save its table as “CSV UTF-8” and import that",
    r"Index/.*\.iwa": "a document of Numbers or Pages; export it as CSV and import that",
    r".*\.(?:zip|tgz)": "a ZIP of ZIPs; unpack it and give the ZIPs that are inside",
    r"(?:.*/)?reviews[^/]*\.html?": "reviews as HTML; at takeout.google.com choose JSON for them",
    r"(?:.*/)?location-[^/]+/.*": "",  # a part that has no reviews
    r"Takeout/.*": f"a Takeout without reviews of a business; {TAKEOUT}",
    r".*\.(?:jpe?g|png|gif|heic|webp|mp4)": "photographs without reviews",
    r".*": f"it has no reviews of a business; {TAKEOUT}",
}
KINDS_BY_KEY = {  # of JSON without reviews of a business
    b'"features"': f"reviews that you wrote yourself, in Maps; for those of your business, {TAKEOUT}",
    b'"authorAttribution"': f"from Google's Places API, whose terms forbid keeping reviews; {TAKEOUT}",
    b'"author_name"': f"from Google's Places API, whose terms forbid keeping reviews; {TAKEOUT}",
    b'"time_created"': "from Yelp's API, whose terms forbid keeping reviews; import a CSV of your own",
    b"": f"JSON, but not a known export; {TAKEOUT}",
}


def kind_by_members(names: Sequence[str]) -> str:
    """What a folder or an archive without reviews is; empty for a part of a Takeout."""
    for pattern, kind in KINDS_BY_MEMBER.items():
        if any(re.fullmatch(pattern, name, re.IGNORECASE | re.DOTALL) for name in names):
            return kind
    return f"it is empty; {TAKEOUT}"


# ---- Google: Takeout of a Business Profile, and pages of the Business Profile API v4 ----

RESOURCE_NAME = re.compile(r"(?:accounts/[^/]+/)?locations/([^/]+)/reviews/([^/]+)")
LOCATION_FOLDER = re.compile(r"(?:.*/)?location-([^/]+)(?:/.*)?", re.DOTALL)
GOOGLE_KEYS = {"createTime", "starRating"}  # of a review
PAGE_KEYS = {"reviews", "averageRating", "totalReviewCount", "nextPageToken"}
WANTED = re.compile(r"(?:.*/)?(?:reviews[^/]*|data)\.json", re.IGNORECASE | re.DOTALL)  # files to read
FIRST_PAGE = "reviews.json"  # of a location; the names of the other pages have a token
STAMP = re.compile(r"takeout-([0-9]{8}T[0-9]{6}Z)")


def stamp_of(path: Path) -> str:
    """The time in the name of a Takeout, or of the folder that it was unpacked to; empty without one."""
    for match in filter(None, map(STAMP.search, reversed(path.parts))):
        with suppress(ValueError):
            return utc_text(datetime.strptime(match[1], "%Y%m%dT%H%M%SZ"))
    return ""


def read_google(members: Iterable[Member], path: Path, options: Options) -> Export:
    """The reviews in the JSON files of a folder, an archive or a single file. Raises BadData."""
    export, names, skipped = Export(str(path)), list[str](), list[Fault]()
    locations = defaultdict[str, set[str]](set)  # by folder
    titles, first_pages = dict[str, str](), set[str]()  # by folder; folders that have a first page
    for member in members:
        names.append(str(member.path))
        if member.data is None:
            continue
        document, folder = _decoded(member, member.data), str(member.path.parent)
        name = member.path.name.lower()
        if (items := _items(document)) is not None:
            locations[folder] |= _read_items(items, member, export, options) or _location_of(folder)
            if name == FIRST_PAGE:
                first_pages.add(folder)
            export.total = document.get("totalReviewCount", export.total)
        elif name == "data.json" and isinstance(document, dict):
            titles[folder] = one_line(str(document.get("title") or ""))
        else:  # such as the reviews that the owner wrote, in the same archive
            kind = next(kind for key, kind in KINDS_BY_KEY.items() if key in member.data)
            skipped.append(Fault(member.file, (), kind))
    export.notes += [f"skipped: {fault}" for fault in skipped]
    if not locations:
        if kind := kind_by_members(names):
            raise BadData(skipped or [Fault(str(path), (), kind)])
        export.notes.append(f"{path}: a part of a Takeout without reviews; other parts may have some")
    for folder, title in titles.items():
        export.titles |= dict.fromkeys(locations[folder] | _location_of(folder), title)
    covered = set[str]().union(*(locations[folder] for folder in first_pages))
    _set_time_of_takeout(export, covered, stamp_of(path), options)
    return export


def _decoded(member: Member, data: bytes) -> Json:
    try:
        return decode(data, lone_surrogates=True)
    except NotJson as error:
        raise BadData([Fault(member.file, path, reason) for path, reason in error.faults]) from None


def _location_of(folder: str) -> set[str]:
    """The location to which a folder of a Takeout belongs, if any."""
    match = LOCATION_FOLDER.fullmatch(folder)
    return {match[1]} if match else set()


def _items(document: Json) -> list[Json] | None:
    """The reviews in a file of Google's, [] for a page without any; None for another document."""
    match document:
        case {"reviews": [*items]} if any(GOOGLE_KEYS & {*item} for item in items if isinstance(item, dict)):
            return items
        case {**members} if members.keys() <= PAGE_KEYS and not members.get("reviews"):
            return []
    return None


def _read_items(items: Sequence[Json], member: Member, export: Export, options: Options) -> set[str]:
    """Add the reviews of a file to `export`; returns the locations of those from Takeout. Raises BadData."""
    time, locations = utc_text(datetime.fromtimestamp(member.changed, UTC)), set[str]()
    for index, item in enumerate(items):
        position, key = Fault(member.file, ("reviews", index), ""), None
        try:
            if not isinstance(item, dict):
                raise BadRecord(f"it is {quoted(item)} and not an object")
            key = google_key(item)
            record = google_record(item, position, key, time, options)
        except BadRecord as fault:
            export.fail(position, str(fault), key, time)
        else:
            export.records.append(record)
            if not record.review:
                export.without_stars.append(_author(item))
        if key and key.format == "takeout":
            locations.add(key.location)
        elif key and time > options.latest:
            raise in_future(member.file, time)
    return locations


def in_future(file: str, time: str) -> BadData:
    """The error of an export from the future, which would count as newer than all later exports."""
    return refused(file, f"it is dated {time}, in the future; correct its date or the clock")


def google_key(item: Object) -> Key:
    """The key of a review of Takeout, or of the API if it has a `reviewId`. Raises BadRecord."""
    name, review_id = _text(item, "name"), _text(item, "reviewId")
    if not (resource := RESOURCE_NAME.fullmatch(name)):
        raise BadRecord("it has no name of the form accounts/…/locations/…/reviews/…")
    location, id_in_name = resource.groups()
    return Key("api" if review_id else "takeout", "google", review_id or id_in_name, location, name)


def google_record(item: Object, position: Fault, key: Key, time: str, options: Options) -> Record:
    """A review of Takeout or of the API; without content if it has no stars. Raises BadRecord."""
    reply, dates = _member(item, "reviewReply", dict), DateFormat(options.latest_day, is_utc=True)
    created, updated, replied = (
        cells.read_date(_text(holder, name), dates)
        for holder, name in ((item, "createTime"), (item, "updateTime"), (reply, "updateTime"))
    )
    if ":" not in created:
        raise BadRecord(f"createTime is {quoted(item.get('createTime'))} and not a moment")
    text, reply_text = (cells.original(_text(holder, "comment")) for holder in (item, reply))
    rating = FORMATS["stars"].get(_text(item, "starRating").lower())
    review: ReviewInFile = {
        "author": _author(item),
        "rating": rating,
        "text": text if text and text != reply_text else None,
        "owner_reply": {"text": reply_text} if reply_text else None,
    }
    if options.avatars:
        review["author_avatar_url"] = _text(_member(item, "reviewer", dict), "profilePhotoUrl") or None
    content = review if rating else None
    return Record(position, key, time, content, created, max(created, updated), replied if reply_text else "")


def _author(item: Object) -> str:
    reviewer = _member(item, "reviewer", dict)
    name = "" if reviewer.get("isAnonymous") is True else one_line(_text(reviewer, "displayName"))
    return name or ANONYMOUS


def _text(holder: Object, key: str) -> str:
    """A member that must be text, empty if it is absent or null. Raises BadRecord."""
    return clean(_member(holder, key, str))


def _member(holder: Object, key: str, kind: type) -> Any:
    value = holder.get(key)
    if not isinstance(value, (kind, type(None))):
        raise BadRecord(f"{key} is {quoted(value)} and not {'text' if kind is str else 'an object'}")
    return value or kind()


def _set_time_of_takeout(export: Export, covered: set[str], stamp: str, options: Options) -> None:
    """Give records of Takeout the time of the export, which covers these locations. Raises BadData."""
    if stamp > options.latest:
        raise in_future(export.file, stamp)
    takeout = [record for record in export.records if record.key.format == "takeout"]
    time = stamp or max((max(record.updated, record.replied) for record in takeout), default="")
    export.records = [
        replace(record, time=time) if record.key.format == "takeout" else record for record in export.records
    ]
    if stamp or options.complete:
        export.covers = dict.fromkeys(covered, time)


# ---- Complete pages: those of the API in a command with --complete ----


def complete_pages(exports: Sequence[Export]) -> None:
    """Mark the API pages of a command as complete, unless their total says that reviews are missing."""
    pages = defaultdict[str, list[Record]](list)
    for record in (record for export in exports for record in export.records):
        if record.key.format == "api":
            pages[record.key.location].append(record)
    totals = [export.total for export in exports if isinstance(export.total, int)]
    for location, records in pages.items():
        number = len({record.key.native_id for record in records})
        time = min(record.time for record in records)
        if (total := max(totals, default=number)) != number:
            reason = f"they have {number} of {total} reviews"
            exports[0].notes.append(f"the pages of location {location} remove nothing: {reason}")
        elif not any(export.has_unknown for export in exports):
            exports[0].covers[location] = max(time, exports[0].covers.get(location, ""))
