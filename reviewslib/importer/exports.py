"""Exports of reviews: the content of a file, a folder or an archive becomes records.

This module has what all formats share, and the formats of Google; `csv_reviews.py` has CSV. Nothing is
guessed: if a file leaves something open, the owner is asked. This module is pure: it opens no file, reads no
clock and does not know which reviews are stored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from reviewslib.dataset.contract import BadData, Contract, Fault, quoted
from reviewslib.dataset.reviews import LARGEST_REVIEW_BYTES
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode, encode
from reviewslib.files import Member
from reviewslib.importer import cells
from reviewslib.importer.cells import (
    FORMATS,
    BadRecord,
    DateFormat,
    clean,
    one_line,
    utc_text,
)
from reviewslib.importer.options import Options, TableSettings

# ---- Questions: what only the owner can decide ----


class NeedsDecision(ValueError):
    """A question to the owner; `flag`, if any, answers it, with YOUR in place of the owner's words."""

    def __init__(self, lines: Sequence[str], flag: str = ""):
        super().__init__(*lines)
        self.flag = flag

    def lines(self) -> list[str]:
        """The question, for a terminal."""
        advice = "Run the command again with this flag, and replace YOUR with your own words:"
        return [*self.args, *([advice, f"  {self.flag}"] if self.flag else [])]


MAX_LISTED = 50  # lines of a question


def listed(items: Iterable[object]) -> list[str]:
    """The items as indented lines, at most MAX_LISTED; then the number of the others."""
    lines = [f"  {item}" for item in items]
    rest = len(lines) - MAX_LISTED
    return [*lines[:MAX_LISTED], f"  and {rest} more"] if rest > 0 else lines


# ---- Records: the reviews of an export, and errors in records ----

ReviewInFile = dict[
    str, Json
]  # as in reviews.json; an absent key leaves the stored value unchanged
ADDED_BYTES = (
    4 * 1024
)  # room for what the daemon adds: a page URL of any id, absent keys, mentioned names
# an import stops above this share, if this many or all records failed
MAX_FAILED_SHARE = 0.1
MIN_FAILED = 3


@dataclass(slots=True)
class Record:
    """A review as an export has it; dates are as `cells.read_date` returns them, empty if absent."""

    position: Fault  # without a reason
    time: str  # of the export, in UTC
    format: str  # "takeout", "api" or "table"
    source: str
    native_id: str = ""  # empty if the export has none
    location: str = ""  # at Google
    review: ReviewInFile | None = (
        None  # None if the review exists, but cannot be imported
    )
    created: str = ""
    updated: str = ""
    replied: str = ""


@dataclass
class Export:
    """The reviews of a file, a folder or an archive, and remarks about it."""

    file: str
    options: Options
    contract: Contract
    records: list[Record] = field(default_factory=list)
    failed: list[Fault] = field(
        default_factory=list
    )  # of records that cannot be imported
    has_unknown: bool = False  # whether a record failed that may belong to any review
    without_stars: list[str] = field(default_factory=list)  # authors
    notes: list[str] = field(default_factory=list)
    covers: dict[str, str] = field(
        default_factory=dict
    )  # its time, by scope of which it has every review
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    totals: dict[str, int] = field(
        default_factory=dict
    )  # of all pages of the API, by location
    header: str = ""  # of a table
    settings: TableSettings = TableSettings()  # of tables with this header

    def add(self, record: Record, read: Callable[[], str]) -> None:
        """Add a record that `read` fills in; `read` returns the author, and raises BadRecord.

        A review counts as existing even if its record has no stars, or is faulty but has a native id.
        """
        try:
            author = read()
            if record.review:
                self._check(record, record.review)
            else:
                self.without_stars.append(author)
        except BadRecord as fault:
            self.failed.append(replace(record.position, reason=str(fault)))
            self.has_unknown |= not record.native_id
            record.review = None
        if record.native_id or record.review:
            self.records.append(record)

    def _check(self, record: Record, review: ReviewInFile) -> None:
        """Raises BadRecord for a review that the daemon would not serve."""
        id = f"{record.source}-{record.native_id or 24 * '0'}"
        required = {"id": id, "date": record.created[:10], "source": record.source}
        document = {"business": {"name": "-"}, "reviews": [required | review]}
        for path, reason in self.contract.reviews_file.violations(document):
            raise BadRecord(f"{'/'.join(map(str, path[2:]))}: {reason}")
        size = len(encode(review))
        limit = LARGEST_REVIEW_BYTES - ADDED_BYTES
        if size > limit:
            raise BadRecord(
                f"{size:,} bytes, more than the {limit:,} that a review can have"
            )

    def finish(self) -> Export:
        """The export, once all records are added. Raises NeedsDecision for many faults, and BadData."""
        times = [*self.covers.values(), *(record.time for record in self.records)]
        if (time := max(times, default="")) > self.options.latest:
            # It would count as newer than all later exports.
            raise refused(
                self.file,
                f"it is dated {time}, in the future; correct its date or the clock",
            )
        reviews = [record.review for record in self.records if record.review]
        failed = len(self.failed)
        total = len(reviews) + len(self.failed)
        if failed > MAX_FAILED_SHARE * total and (failed >= MIN_FAILED or not reviews):
            line = f"{self.file}: {failed} of {total} records are faulty, more than a tenth:"
            raise NeedsDecision(
                [line, *listed(self.failed), "Correct the file, or export it anew."]
            )
        texts = (f"{review['author']}{review.get('text')}" for review in reviews)
        if damaged := sum(map(cells.looks_damaged, texts)):
            fault = f"letters look damaged (“BjÃ¸rn”) in {damaged} reviews"
            self.notes.append(f"{self.file}: {fault}; export them anew")
        if self.has_unknown and self.covers:
            self.notes.append(
                f"{self.file} removes nothing, since a faulty record may belong to any review"
            )
            self.covers = {}
        return self


def refused(file: str, reason: str) -> BadData:
    """An error that concerns a whole file."""
    return BadData([Fault(file, (), reason)])


def kind_of(part: str, is_there: Callable[[str], bool]) -> str:
    """What kind of file something is that is no export, told by the first mark that it has; else empty.

    The marks are in `formats.json`; `part` is "first_bytes", "members" (patterns of paths) or "json_keys".
    """
    kinds = (
        (mark, kind)
        for mark, kind in FORMATS["other_files"][part].items()
        if is_there(mark)
    )
    return next((str(kind).format(**FORMATS["advice"]) for _, kind in kinds), "")


# ---- Google: Takeout of a Business Profile, and pages of the Business Profile API v4 ----

ANONYMOUS = "A Google user"  # Google's own words
RESOURCE_NAME = re.compile(r"(?:accounts/[^/]+/)?locations/([^/]+)/reviews/([^/]+)")
LOCATION_FOLDER = re.compile(r"(?:.*[/:])?location-([^/]+)/[^/]*", re.DOTALL)
GOOGLE_KEYS = {"createTime", "starRating"}  # of a review
PAGE_KEYS = {"reviews", "averageRating", "totalReviewCount", "nextPageToken"}
WANTED = re.compile(
    r"(?:.*/)?(?:reviews[^/]*|data)\.json", re.IGNORECASE | re.DOTALL
)  # files to read
FIRST_PAGE = "reviews.json"  # of a location; the names of the other pages have a token
STAMP = re.compile(r"takeout-([0-9]{8}T[0-9]{6}Z)")


def stamp_of(path: Path) -> str:
    """The time in the name of a Takeout, or of the folder that it was unpacked to; empty without one."""
    for match in filter(None, map(STAMP.search, reversed(path.parts))):
        with suppress(ValueError):
            return utc_text(datetime.strptime(f"{match[1]}+0000", "%Y%m%dT%H%M%SZ%z"))
    return ""


def read_google(
    members: Iterable[Member], path: Path, options: Options, contract: Contract
) -> Export:
    """The reviews in the JSON files of a folder, an archive or a single file. Raises BadData."""
    export = Export(str(path), options, contract)
    names = list[str]()
    skipped = list[Fault]()
    is_export = False
    covered = set[str]()
    for member in members:
        names.append(str(member.path))
        if member.data is None:
            continue
        try:
            document = decode(member.data, lone_surrogates=True)
        except NotJson as error:
            raise BadData(
                [Fault(member.file, path, reason) for path, reason in error.faults]
            ) from None
        name = member.path.name.lower()
        match = LOCATION_FOLDER.fullmatch(member.file)
        locations = {match[1]} if match else set[str]()
        if (items := _items(document)) is not None:
            is_export = True
            records = [_record_of(item, n, member) for n, item in enumerate(items)]
            for record, item in zip(records, items, strict=True):
                export.add(record, partial(_read_review, record, item, options))
            locations = {
                record.location for record in records if record.location
            } or locations
            if isinstance(total := document.get("totalReviewCount"), int):
                export.totals |= dict.fromkeys(locations, total)
            covered |= locations if name == FIRST_PAGE else set()
        elif name == "data.json" and isinstance(document, dict):
            export.titles |= dict.fromkeys(
                locations, one_line(str(document.get("title") or ""))
            )
        else:  # such as the reviews that the owner wrote, in the same archive
            text = member.data.decode(errors="replace")
            skipped.append(
                Fault(member.file, (), kind_of("json_keys", text.__contains__))
            )
    export.notes += [f"skipped: {fault}" for fault in skipped]
    if not is_export:
        names = names or [""]
        kind = kind_of(
            "members",
            lambda pattern: any(re.fullmatch(pattern, name) for name in names),
        )
        if kind:
            raise BadData(skipped or [Fault(str(path), (), kind)])
        export.notes.append(
            f"{path}: a part of a Takeout without reviews; other parts may have some"
        )
    takeout = [record for record in export.records if record.format == "takeout"]
    stamp = stamp_of(path)
    time = stamp or max(
        (max(record.updated, record.replied) for record in takeout), default=""
    )
    for record in takeout:
        record.time = time
    if stamp or options.complete:
        export.covers = dict.fromkeys(covered, time)
    return export.finish()


def _items(document: Json) -> list[Json] | None:
    """The reviews in a file of Google's, [] for a page without any; None for another document."""
    match document:
        case {"reviews": [*items]} if any(
            GOOGLE_KEYS & {*item} for item in items if isinstance(item, dict)
        ):
            return items
        case {**members} if members.keys() <= PAGE_KEYS and not members.get("reviews"):
            return []
    return None


def _record_of(item: Json, index: int, member: Member) -> Record:
    """A record of Takeout or of the API without content; only reviews of the API have a `reviewId`."""
    time = utc_text(datetime.fromtimestamp(member.changed, UTC))
    record = Record(
        Fault(member.file, ("reviews", index), ""), time, "takeout", "google"
    )
    if isinstance(item, dict) and (
        name := RESOURCE_NAME.fullmatch(str(item.get("name")))
    ):
        record.location, record.native_id = name.groups()
        record.format = "api" if item.get("reviewId") else "takeout"
    return record


def _read_review(record: Record, item: Json, options: Options) -> str:
    """Fill in dates and content, none without stars; returns the author. Raises BadRecord."""
    if not isinstance(item, dict):
        raise BadRecord(f"it is {quoted(item)} and not an object")
    if not record.native_id:
        raise BadRecord("it has no name of the form accounts/…/locations/…/reviews/…")
    reply = _member(item, "reviewReply", dict)
    dates = DateFormat(options.latest, is_utc=True)
    record.created = cells.read_date(_text(item, "createTime"), dates)
    if ":" not in record.created:
        raise BadRecord(
            f"createTime is {quoted(item.get('createTime'))} and not a moment"
        )
    record.updated = max(
        record.created, cells.read_date(_text(item, "updateTime"), dates)
    )
    text, reply_text = (
        cells.original(_text(holder, "comment")) for holder in (item, reply)
    )
    record.replied = (
        cells.read_date(_text(reply, "updateTime"), dates) if reply_text else ""
    )
    reviewer = _member(item, "reviewer", dict)
    name = (
        ""
        if reviewer.get("isAnonymous") is True
        else one_line(_text(reviewer, "displayName"))
    )
    if rating := FORMATS["stars"].get(_text(item, "starRating").lower()):
        record.review = {
            "author": name or ANONYMOUS,
            "rating": rating,
            "text": text if text and text != reply_text else None,
            "owner_reply": {"text": reply_text} if reply_text else None,
        }
        if options.avatars:
            record.review["author_avatar_url"] = (
                _text(reviewer, "profilePhotoUrl") or None
            )
    return name or ANONYMOUS


def _text(holder: Object, key: str) -> str:
    """A member that must be text, empty if it is absent or null. Raises BadRecord."""
    return clean(_member(holder, key, str))


def _member(holder: Object, key: str, kind: type) -> Any:
    value = holder.get(key)
    if not isinstance(value, (kind, type(None))):
        raise BadRecord(
            f"{key} is {quoted(value)} and not {'text' if kind is str else 'an object'}"
        )
    return value or kind()


def complete_pages(exports: Sequence[Export]) -> None:
    """Let all API pages of a command cover their locations, unless they lack reviews of the stated total."""
    pages = defaultdict[str, list[Record]](list)  # by location
    for record in (
        record
        for export in exports
        for record in export.records
        if record.format == "api"
    ):
        pages[record.location].append(record)
    for location, records in pages.items():
        number = len({record.native_id for record in records})
        total = max(export.totals.get(location, number) for export in exports)
        reason = f"they have {number} of {total} reviews" if total > number else ""
        if any(export.has_unknown for export in exports):
            reason = "a faulty record may belong to any review"
        if reason:
            exports[0].notes.append(
                f"the pages of location {location} remove nothing: {reason}"
            )
        else:
            time = min(record.time for record in records)
            exports[0].covers[location] = max(time, exports[0].covers.get(location, ""))
