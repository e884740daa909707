"""Exports of reviews: the content of a file, a folder or an archive becomes records.

This module has what all formats share, and the formats of Google; `csv_reviews.py` has CSV. Nothing is
guessed: if a file leaves something open, the owner is asked. This module is pure: it opens no file, reads no
clock and does not know which reviews are stored.

Sections: Questions - Records - Other files - Google - Complete pages
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from reviewslib.dataset.contract import BadData, Contract, Fault, quoted
from reviewslib.dataset.reviews import LARGEST_REVIEW_BYTES
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode, encode
from reviewslib.files import Member
from reviewslib.importer import cells
from reviewslib.importer.cells import FORMATS, BadRecord, DateFormat, clean, one_line, utc_text
from reviewslib.importer.options import Options, TableSettings

# ---- Questions: what only the owner can decide ----


class NeedsDecision(ValueError):
    """A question that the owner must answer before anything is imported.

    `flag` answers it, with YOUR in place of the owner's words. `file` is the file that it is about, if any.
    """

    def __init__(self, lines: Sequence[str], flag: tuple[str, str] | None = None, file: str = ""):
        super().__init__(*lines)
        self.flag, self.file = flag, file

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
ADDED_BYTES = 4 * 1024  # room for what the daemon adds: a page URL of any id, absent keys, mentioned names
MAX_FAILED_SHARE, MIN_FAILED = 0.1, 3  # an import stops above this share, if this many or all records failed


@dataclass(slots=True)
class Record:
    """A review as an export has it; dates are as `cells.read_date` returns them, empty if absent."""

    position: Fault  # without a reason
    time: str  # of the export, in UTC
    format: str  # "takeout", "api" or "table"
    source: str
    native_id: str = ""  # empty if the export has none
    location: str = ""  # at Google
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
    covers: dict[str, str] = field(default_factory=dict)  # its time, by scope of which it has every review
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    totals: dict[str, int] = field(default_factory=dict)  # of all pages of the API, by location
    header: str = ""  # of a table
    settings: TableSettings = TableSettings()  # of tables with this header

    def add(self, record: Record, author: str) -> None:
        """Add a record; without stars it is not imported, but its review counts as existing."""
        self.records.append(record)
        if not record.review:
            self.without_stars.append(author)

    def fail(self, record: Record, reason: str) -> None:
        """Note a record that cannot be imported; with a native id, its review still counts as existing."""
        self.failed.append(replace(record.position, reason=reason))
        record.review = None
        if record.native_id:
            self.records.append(record)
        else:
            self.has_unknown = True

    def check(self, contract: Contract, latest: str) -> None:
        """Turn records that the daemon would not serve into faults.

        Raises NeedsDecision for many faults, and BadData if the export is later than `latest`: it would count
        as newer than all later exports.
        """
        times = [*self.covers.values(), *(record.time for record in self.records)]
        if (time := max(times, default="")) > latest:
            raise refused(self.file, f"it is dated {time}, in the future; correct its date or the clock")
        records, self.records = self.records, []
        for record in records:
            if reason := record.review and _fault_of(record, record.review, contract):
                self.fail(record, reason)
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
    id = f"{record.source}-{record.native_id or 24 * '0'}"
    required = {"id": id, "date": record.created[:10], "source": record.source}
    document = {"business": {"name": "-"}, "reviews": [required | review]}
    for path, reason in contract.reviews_file.violations(document):
        return f"{'/'.join(map(str, path[2:]))}: {reason}"
    size, limit = len(encode(review)), LARGEST_REVIEW_BYTES - ADDED_BYTES
    return f"{size:,} bytes, more than the {limit:,} that a review can have" if size > limit else ""


def refused(file: str, reason: str) -> BadData:
    """An error that concerns a whole file."""
    return BadData([Fault(file, (), reason)])


# ---- Other files: what they are, and what to import instead ----


def kind_of(part: str, is_there: Callable[[str], bool]) -> str:
    """What kind of file something is that is no export, told by the first mark that it has; else empty.

    The marks are in `formats.json`; `part` is "first_bytes", "members" (patterns of paths) or "json_keys".
    """
    kinds = ((mark, kind) for mark, kind in FORMATS["other_files"][part].items() if is_there(mark))
    return next((str(kind).format(**FORMATS["advice"]) for _, kind in kinds), "")


# ---- Google: Takeout of a Business Profile, and pages of the Business Profile API v4 ----

ANONYMOUS = "A Google user"  # Google's own words
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
            return utc_text(datetime.strptime(f"{match[1]}+0000", "%Y%m%dT%H%M%SZ%z"))
    return ""


def read_google(members: Iterable[Member], path: Path, options: Options) -> Export:
    """The reviews in the JSON files of a folder, an archive or a single file. Raises BadData."""
    export, names, skipped = Export(str(path)), list[str](), list[Fault]()
    locations = defaultdict[PurePosixPath, set[str]](set)  # by folder
    titles, covered = dict[PurePosixPath, str](), set[str]()
    for member in members:
        names.append(str(member.path))
        if member.data is None:
            continue
        document, folder, name = _decoded(member), member.path.parent, member.path.name.lower()
        if (items := _items(document)) is not None:
            records = [_add_item(export, item, index, member, options) for index, item in enumerate(items)]
            of_page = {record.location for record in records if record.location} or _location_of(folder)
            if isinstance(total := document.get("totalReviewCount"), int):
                export.totals |= dict.fromkeys(of_page, total)
            locations[folder] |= of_page
            covered |= of_page if name == FIRST_PAGE else set()
        elif name == "data.json" and isinstance(document, dict):
            titles[folder] = one_line(str(document.get("title") or ""))
        else:  # such as the reviews that the owner wrote, in the same archive
            text = member.data.decode(errors="replace")
            skipped.append(Fault(member.file, (), kind_of("json_keys", text.__contains__)))
    export.notes += [f"skipped: {fault}" for fault in skipped]
    if not locations:
        names = names or [""]
        kind = kind_of("members", lambda pattern: any(re.fullmatch(pattern, name) for name in names))
        if kind:
            raise BadData(skipped or [Fault(str(path), (), kind)])
        export.notes.append(f"{path}: a part of a Takeout without reviews; other parts may have some")
    for folder, title in titles.items():
        export.titles |= dict.fromkeys(locations[folder] | _location_of(folder), title)
    takeout = [record for record in export.records if record.format == "takeout"]
    stamp = stamp_of(path)
    time = stamp or max((max(record.updated, record.replied) for record in takeout), default="")
    for record in takeout:
        record.time = time
    if stamp or options.complete:
        export.covers = dict.fromkeys(covered, time)
    return export


def _decoded(member: Member) -> Json:
    try:
        return decode(member.data or b"", lone_surrogates=True)
    except NotJson as error:
        raise BadData([Fault(member.file, path, reason) for path, reason in error.faults]) from None


def _location_of(folder: PurePosixPath) -> set[str]:
    """The location to which a folder of a Takeout belongs, if any."""
    match = LOCATION_FOLDER.fullmatch(str(folder))
    return {match[1]} if match else set()


def _items(document: Json) -> list[Json] | None:
    """The reviews in a file of Google's, [] for a page without any; None for another document."""
    match document:
        case {"reviews": [*items]} if any(GOOGLE_KEYS & {*item} for item in items if isinstance(item, dict)):
            return items
        case {**members} if members.keys() <= PAGE_KEYS and not members.get("reviews"):
            return []
    return None


def _add_item(export: Export, item: Json, index: int, member: Member, options: Options) -> Record:
    """Add a review of Takeout or of the API to an export."""
    time = utc_text(datetime.fromtimestamp(member.changed, UTC))
    record = Record(Fault(member.file, ("reviews", index), ""), time, "takeout", "google")
    try:
        if not isinstance(item, dict):
            raise BadRecord(f"it is {quoted(item)} and not an object")
        _identify(record, item)
        _read_review(record, item, options)
        export.add(record, _author(item))
    except BadRecord as fault:
        export.fail(record, str(fault))
    return record


def _identify(record: Record, item: Object) -> None:
    """Fill in ids; only reviews of the API have a `reviewId`. Raises BadRecord."""
    if not (resource := RESOURCE_NAME.fullmatch(_text(item, "name"))):
        raise BadRecord("it has no name of the form accounts/…/locations/…/reviews/…")
    record.location, record.native_id = resource.groups()
    record.format = "api" if _text(item, "reviewId") else "takeout"


def _read_review(record: Record, item: Object, options: Options) -> None:
    """Fill in dates and content; a review without stars has no content. Raises BadRecord."""
    reply, dates = _member(item, "reviewReply", dict), DateFormat(options.latest, is_utc=True)
    record.created = cells.read_date(_text(item, "createTime"), dates)
    if ":" not in record.created:
        raise BadRecord(f"createTime is {quoted(item.get('createTime'))} and not a moment")
    record.updated = max(record.created, cells.read_date(_text(item, "updateTime"), dates))
    text, reply_text = (cells.original(_text(holder, "comment")) for holder in (item, reply))
    record.replied = cells.read_date(_text(reply, "updateTime"), dates) if reply_text else ""
    if rating := FORMATS["stars"].get(_text(item, "starRating").lower()):
        record.review = {
            "author": _author(item),
            "rating": rating,
            "text": text if text and text != reply_text else None,
            "owner_reply": {"text": reply_text} if reply_text else None,
        }
        if options.avatars:
            picture = _text(_member(item, "reviewer", dict), "profilePhotoUrl")
            record.review["author_avatar_url"] = picture or None


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


# ---- Complete pages: those of the API in a command with --complete ----


def complete_pages(exports: Sequence[Export]) -> None:
    """Let the API pages of a command cover their locations, unless they lack reviews of the stated total."""
    pages = defaultdict[str, list[Record]](list)  # by location
    for record in (record for export in exports for record in export.records if record.format == "api"):
        pages[record.location].append(record)
    for location, records in pages.items():
        number = len({record.native_id for record in records})
        total = max(export.totals.get(location, number) for export in exports)
        reason = f"they have {number} of {total} reviews" if total > number else ""
        if any(export.has_unknown for export in exports):
            reason = "a faulty record may belong to any review"
        if reason:
            exports[0].notes.append(f"the pages of location {location} remove nothing: {reason}")
        else:
            time = min(record.time for record in records)
            exports[0].covers[location] = max(time, exports[0].covers.get(location, ""))
