"""Google's own reviews: Takeouts of a Business Profile, and pages of its API v4.

Both have the same review objects; `add_reviews` is the one parser of them. This module
is pure: it opens no file, reads no clock and does not know which reviews are stored.

Sections: takeouts - documents - review objects - what is no export.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from reviewslib.dataset.contract import Contract, quoted
from reviewslib.dataset.moments import text_of_seconds, utc_text
from reviewslib.dataset.provenance import NAMELESS_AT_GOOGLE
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode
from reviewslib.faults import BadData, Fault
from reviewslib.files import Member
from reviewslib.importer.dates import DateFormat, read_date
from reviewslib.importer.exports import Export, Record
from reviewslib.importer.formats import format_data
from reviewslib.importer.names import checked_name
from reviewslib.importer.options import Options
from reviewslib.importer.questions import NoExport, refused
from reviewslib.importer.stars import STAR_WORDS
from reviewslib.importer.texts import BadRecord, clean, clean_line, original

# ---- Takeouts: folders, archives, and single files ----

# The files to read. The names of pages after the first of a location have a token.
WANTED = re.compile(r"(?:.*/)?(?:reviews[^/]*|data)\.json", re.IGNORECASE | re.DOTALL)
FIRST_PAGE = "reviews.json"
TITLE_FILE = "data.json"
LOCATION_FOLDER = re.compile(r"(?:.*[/:])?location-([^/]+)/[^/]*", re.DOTALL)
STAMP = re.compile(r"takeout-([0-9]{8}T[0-9]{6}Z)")


def stamp_of(path: PurePath) -> str:
    """The time in the name of a Takeout, or of the folder that it was unpacked to.

    Empty without one.
    """
    for part in reversed(path.parts):
        match = STAMP.search(part)
        if match is None:
            continue
        with suppress(ValueError):
            return utc_text(datetime.strptime(f"{match[1]}+0000", "%Y%m%dT%H%M%SZ%z"))
    return ""


def read_google(
    members: Iterable[Member], path: Path, options: Options, contract: Contract
) -> Export:
    """The reviews in the JSON files of a folder, an archive or a single file.

    Raises BadData.
    """
    reading = _Reading(Export(str(path), options, contract))
    for member in members:
        reading.take(member)
    reading.check_that_it_is_an_export(path)
    _date_takeout(reading, stamp_of(path) or reading.stamp_of_members(path))
    return reading.export.finish()


@dataclass
class _Reading:
    """What the members of a Takeout have brought so far."""

    export: Export
    names: list[str] = field(default_factory=list)  # of all members
    skipped: list[Fault] = field(default_factory=list)
    has_reviews: bool = False
    covered: set[str] = field(default_factory=set)  # locations with their first page
    stamps: set[str] = field(default_factory=set)  # of folders in the folder or archive

    def take(self, member: Member) -> None:
        """Read a member, if it is a file to read. Raises BadData."""
        self.names.append(str(member.path))
        if member.data is None:
            return
        document = _decoded(member)
        items = review_objects(document)
        stamp = stamp_of(member.path)
        if stamp:
            self.stamps.add(stamp)
        if items is not None:
            self._take_page(member, document, items)
        elif _is_title(member, document):
            title = clean_line(str(document.get("title") or ""))
            self.export.titles |= dict.fromkeys(_location_of(member), title)
        else:
            # Such as the reviews that the owner wrote, in the same archive.
            self.skipped.append(Fault(member.file, (), _kind_of_json(member.data)))

    def stamp_of_members(self, path: Path) -> str:
        """The time in the name of the folder in `path` that a Takeout was unpacked to.

        Empty without one. Raises BadData for several: each has a time of its own.
        """
        if len(self.stamps) > 1:
            reason = "it has several Takeouts; give each one, or the folder with --drop"
            raise refused(str(path), reason)
        return "".join(self.stamps)

    def _take_page(
        self, member: Member, document: Object, items: Sequence[Json]
    ) -> None:
        self.has_reviews = True
        time = text_of_seconds(member.changed)
        records = add_reviews(self.export, items, Origin(member.file, time))
        locations = {record.location for record in records if record.location}
        if not locations:
            locations = _location_of(member)
        if BATCH_KEY in document:
            return
        self.export.pages += _existing(records)
        total = document.get("totalReviewCount")
        if isinstance(total, int):
            self.export.totals |= dict.fromkeys(locations, total)
        if member.path.name.lower() == FIRST_PAGE:
            self.covered |= locations

    def check_that_it_is_an_export(self, path: Path) -> None:
        """Raises BadData."""
        export = self.export
        export.notes += [f"skipped: {fault}" for fault in self.skipped]
        if self.has_reviews:
            return
        kind = kind_of_members(self.names)
        if kind:
            raise NoExport(self.skipped or [Fault(str(path), (), kind)])
        export.notes.append(
            f"{path}: a part of a Takeout without reviews; other parts may have some"
        )


# What a file of the largest size may become in memory: a review has six objects and
# some fifteen values, commas of its text included.
MAX_EXPORT_CONTAINERS = 1_000_000
MAX_EXPORT_VALUES = 5_000_000


def _decoded(member: Member) -> Json:
    """The content of a JSON file. Raises BadData."""
    data = member.data or b""
    if data.count(b"{") + data.count(b"[") > MAX_EXPORT_CONTAINERS:
        raise refused(
            member.file, f"more than {MAX_EXPORT_CONTAINERS:,} objects and arrays"
        )
    if data.count(b",") > MAX_EXPORT_VALUES:
        raise refused(member.file, f"more than {MAX_EXPORT_VALUES:,} values")
    try:
        # Half of an emoji, as a text cut by Google has it, must not lose the file.
        return decode(data, lone_surrogates=True)
    except NotJson as error:
        faults = [Fault(member.file, path, reason) for path, reason in error.faults]
        kind = BadData if _is_meant_as_json(member) else NoExport
        raise kind(faults) from None


def _is_meant_as_json(member: Member) -> bool:
    """Whether a file that is not JSON is a damaged export rather than another file."""
    is_named_so = member.path.suffix.lower() == ".json"
    return is_named_so or b'"reviews"' in (member.data or b"")


def _is_title(member: Member, document: Json) -> bool:
    return member.path.name.lower() == TITLE_FILE and isinstance(document, dict)


def _location_of(member: Member) -> set[str]:
    """The location that the folder of a member names, if any."""
    match = LOCATION_FOLDER.fullmatch(member.file)
    return {match[1]} if match else set()


def _existing(records: Iterable[Record]) -> list[Record]:
    """The records that pages of the API have of reviews that exist."""
    return [record for record in records if record.format == "api"]


def _date_takeout(reading: _Reading, stamp: str) -> None:
    """Give the records of a Takeout its time T, and let it speak for its locations.

    A Takeout without a stamp is as old as the newest moment in it: too old is harmless.
    """
    export = reading.export
    takeout = [record for record in export.records if record.format == "takeout"]
    moments = [max(record.updated, record.replied) for record in takeout]
    time = stamp or max(moments, default="")
    for record in takeout:
        record.time = time
    if stamp or export.options.complete:
        export.covers = dict.fromkeys(reading.covered, time)
    elif takeout and reading.covered:
        export.notes.append(
            f"{export.file}: its name does not say when it was made, so it removes no "
            "review; give Takeouts the names that Google gave them"
        )


# ---- Documents: a page of reviews, or not ----

REVIEW_KEYS = {"createTime", "starRating"}
PAGE_KEYS = {"reviews", "averageRating", "totalReviewCount", "nextPageToken"}
# Of a page of `locations:batchGetReviews`. Agencies with several locations save these;
# they may lack reviews without words, so they never speak for a location.
BATCH_KEY = "locationReviews"


def review_objects(document: Json) -> list[Json] | None:
    """The review objects of a document of Google's, [] for a page without any.

    None for another document.
    """
    if not isinstance(document, dict):
        return None
    if BATCH_KEY in document:
        return _batch_objects(document[BATCH_KEY])
    items = document.get("reviews")
    if isinstance(items, list) and any(map(_is_review_object, items)):
        return items
    if document.keys() <= PAGE_KEYS and not items:
        return []
    return None


def _batch_objects(entries: Json) -> list[Json] | None:
    if not isinstance(entries, list):
        return None
    return [
        entry.get("review") if isinstance(entry, dict) else entry for entry in entries
    ]


def _is_review_object(item: Json) -> bool:
    return isinstance(item, dict) and not REVIEW_KEYS.isdisjoint(item)


# ---- Review objects ----

# Names of API v4; those of Takeout may lack the account.
RESOURCE_NAME = re.compile(r"(?:accounts/[^/]+/)?locations/([^/]+)/reviews/([^/]+)")


class Origin(NamedTuple):
    """Where review objects come from, and the time T of their export in UTC."""

    file: str  # for messages
    time: str


def add_reviews(export: Export, items: Sequence[Json], origin: Origin) -> list[Record]:
    """Add the review objects of one page to an export; the record of each, in order.

    An object that is faulty has a record, too, and stands in `export.failed`.
    """
    records = list[Record]()
    for index, item in enumerate(items):
        record = _record_of(item, index, origin)
        export.add(record, partial(_read_review, record, item, export.options))
        records.append(record)
    return records


def _record_of(item: Json, index: int, origin: Origin) -> Record:
    """A record without content. Only reviews of the API have a `reviewId`."""
    position = Fault(origin.file, ("reviews", index), "")
    record = Record(position, origin.time, format="takeout", source="google")
    if not isinstance(item, dict):
        return record
    name = RESOURCE_NAME.fullmatch(str(item.get("name")))
    if name:
        record.location = name[1]
        record.native_id = name[2]
        record.format = "api" if item.get("reviewId") else "takeout"
    return record


# Google shows only approved replies; before 2026-04 there were no states. Of a reply
# with any other state, such as PENDING, nothing is known yet: what is stored stays.
REJECTED_REPLY = "REJECTED"
DECIDED_REPLIES = {"", "APPROVED", REJECTED_REPLY}


def _read_review(record: Record, item: Json, options: Options) -> str:
    """Fill in dates and content, none without stars; the author. Raises BadRecord."""
    _check_identity(record, item)
    reply = _reply_of(item)
    _read_moments(record, item, reply, options)
    reviewer = _member(item, "reviewer", dict)
    author = _author_of(reviewer)
    rating = STAR_WORDS["stars"].get(_text(item, "starRating").lower())
    if not rating:
        return author
    record.review = {"author": author, "rating": rating}
    record.review["text"] = _words_of(item, reply.text)
    if reply.is_decided:
        record.review["owner_reply"] = {"text": reply.text} if reply.text else None
    if options.avatars:
        record.review["author_avatar_url"] = _text(reviewer, "profilePhotoUrl") or None
    return author


def _check_identity(record: Record, item: Json) -> None:
    """Raises BadRecord for what is no review, or for one that has no id."""
    if not isinstance(item, dict):
        raise BadRecord(f"it is {quoted(item)} and not an object")
    if not record.native_id:
        raise BadRecord("it has no name of the form accounts/…/locations/…/reviews/…")


class _Reply(NamedTuple):
    """The owner's reply, without words if there is none that Google shows."""

    text: str
    updated: str  # as the export has it
    is_decided: bool  # whether the export says which reply is shown


def _reply_of(item: Object) -> _Reply:
    """Raises BadRecord."""
    reply = _member(item, "reviewReply", dict)
    state = _text(reply, "reviewReplyState")
    text = ""
    if state != REJECTED_REPLY:
        text = original(_text(reply, "comment"))
    updated = _text(reply, "updateTime") if text else ""
    return _Reply(text, updated, is_decided=state in DECIDED_REPLIES)


def _words_of(item: Object, reply: str) -> str | None:
    """The customer's words. Raises BadRecord."""
    text = original(_text(item, "comment"))
    # Some tools repeat the reply as the text of a review without words.
    return text if text and text != reply else None


def _read_moments(
    record: Record, item: Object, reply: _Reply, options: Options
) -> None:
    """Raises BadRecord."""
    dates = DateFormat(options.latest, is_utc=True)
    record.created = read_date(_text(item, "createTime"), dates)
    if ":" not in record.created:
        raise BadRecord(
            f"createTime is {quoted(item.get('createTime'))} and not a moment"
        )
    updated = read_date(_text(item, "updateTime"), dates)
    record.updated = max(record.created, updated)
    record.replied = read_date(reply.updated, dates)


def _author_of(reviewer: Object) -> str:
    """Raises BadRecord."""
    if reviewer.get("isAnonymous") is True:
        return NAMELESS_AT_GOOGLE
    name = checked_name(clean_line(_text(reviewer, "displayName")))
    return name or NAMELESS_AT_GOOGLE


def _text(holder: Object, key: str) -> str:
    """A member that must be text, empty if it is absent or null. Raises BadRecord."""
    return clean(_member(holder, key, str))


def _member(holder: Object, key: str, kind: type) -> Any:
    value = holder.get(key)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        expected = "text" if kind is str else "an object"
        raise BadRecord(f"{key} is {quoted(value)} and not {expected}")
    return value


# ---- What is no export: other files, told by the first mark that they have ----

OTHER_FILES = format_data("other_files")


def kind_of_first_bytes(content: bytes) -> str:
    """What kind of file begins with these bytes, if one that is no export."""
    return _kind_of(
        "first_bytes", lambda mark: content.startswith(mark.encode("latin-1"))
    )


def kind_of_members(names: Sequence[str]) -> str:
    """What kind of folder or archive has members of these names."""

    def has_member(pattern: str) -> bool:
        return any(re.fullmatch(pattern, name) for name in names or [""])

    return _kind_of("members", has_member)


def _kind_of_json(data: bytes) -> str:
    text = data.decode(errors="replace")
    return _kind_of("json_keys", text.__contains__)


def _kind_of(part: str, is_there: Callable[[str], bool]) -> str:
    for mark, kind in OTHER_FILES[part].items():
        if is_there(mark):
            return str(kind).format(**OTHER_FILES["advice"])
    return ""
