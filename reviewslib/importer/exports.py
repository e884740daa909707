"""Exports: what every format of reviews becomes before it is merged.

A file, a folder or an archive is an Export; each review in it is a Record. This module
knows no format (`takeout.py`, `csv_reviews.py`) and not which reviews are stored. It is
pure.

Sections: records - exports - pages of the API, which are complete only together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.reviews import LARGEST_REVIEW_BYTES
from reviewslib.dataset.strict_json import Json, encode
from reviewslib.faults import Fault
from reviewslib.importer.options import Options, TableSettings
from reviewslib.importer.questions import NeedsDecision, listed, refused
from reviewslib.importer.texts import BadRecord, looks_damaged, unknown_marker

# ---- Records: the reviews of an export ----

# As in reviews.json. An absent key leaves the stored value unchanged.
ReviewInFile = dict[str, Json]

# What the daemon adds to a review when it serves it: a page URL of any id, the keys
# that are absent, and the names that the review mentions.
ADDED_BYTES = 4 * 1024


@dataclass(slots=True)
class Record:
    """A review as an export has it.

    Dates are as `dates.read_date` returns them, empty if the export has none.
    """

    position: Fault  # without a reason
    time: str  # T of the export, in UTC
    format: str  # "takeout", "api" or "table"
    source: str
    native_id: str = ""  # empty if the export has none
    location: str = ""  # at Google
    review: ReviewInFile | None = None  # None if it exists, but cannot be imported
    created: str = ""
    updated: str = ""
    replied: str = ""

    @property
    def scope(self) -> str:
        """Whose complete exports show whether the review still exists."""
        return self.location or self.source


# ---- Exports ----

# A few faulty rows are left out and named. Beyond that the whole file is suspect, as
# when a column has moved: then nothing of it is imported.
MAX_FAILED_SHARE = 0.1
MIN_FAILED = 3


@dataclass
class Export:
    """The reviews of a file, a folder or an archive, and remarks about it."""

    file: str
    options: Options
    contract: Contract
    records: list[Record] = field(default_factory=list)
    failed: list[Fault] = field(default_factory=list)  # records that are faulty
    has_unknown: bool = False  # whether a faulty record may belong to any review
    without_stars: list[str] = field(default_factory=list)  # authors
    advice: dict[str, None] = field(default_factory=dict)  # on faulty records
    counts: Counter[str] = field(default_factory=Counter)  # of rows, by what was done
    notes: list[str] = field(default_factory=list)  # said once
    urgent_notes: list[str] = field(default_factory=list)  # said until it is settled
    covers: dict[str, str] = field(default_factory=dict)  # T by scope, if complete
    # T by id of the API, of reviews that Google says do not exist.
    gone: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    pages: list[Record] = field(default_factory=list)  # those in pages of the API
    totals: dict[str, int] = field(default_factory=dict)  # of such pages, by location
    header: str = ""  # of a table
    sources: set[str] = field(default_factory=set)  # of a table
    settings: TableSettings = TableSettings()  # of tables with this header

    def add(self, record: Record, read: Callable[[], str]) -> None:
        """Add a record that `read` fills in; `read` returns the author.

        `read` raises BadRecord. A review counts as existing even if its record has no
        stars, or is faulty but has a native id.
        """
        try:
            author = read()
            if record.review:
                self._check(record, record.review)
            else:
                self.without_stars.append(author)
        except BadRecord as fault:
            self.failed.append(replace(record.position, reason=str(fault)))
            if fault.advice:
                self.advice[fault.advice] = None
            self.has_unknown |= not record.native_id
            record.review = None
        if record.native_id or record.review:
            self.records.append(record)

    def _check(self, record: Record, review: ReviewInFile) -> None:
        """Raises BadRecord for a review that the daemon would not serve."""
        some_id = record.native_id or 24 * "0"
        required = {
            "id": f"{record.source}-{some_id}",
            "date": record.created[:10],
            "source": record.source,
        }
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
        """The export, once all records are added.

        Raises BadData for an export of the future, and NeedsDecision for many faults.
        """
        self._check_time()
        self._check_number_of_faults()
        self._look_for_damaged_letters()
        self._look_for_unknown_markers()
        if self.has_unknown and self.covers:
            self.urgent_notes.append(
                f"{self.file} removes nothing, "
                "since a faulty record may belong to any review"
            )
            self.covers = {}
        return self

    def _check_time(self) -> None:
        """Raises BadData: an export of the future would be newer than any later one."""
        times = [*self.covers.values(), *(record.time for record in self.records)]
        time = max(times, default="")
        if time > self.options.latest:
            reason = f"it is dated {time}, in the future; correct its date or the clock"
            raise refused(self.file, reason)

    def _check_number_of_faults(self) -> None:
        """Raises NeedsDecision."""
        failed = len(self.failed)
        good = sum(1 for record in self.records if record.review)
        total = good + failed
        is_many = failed > MAX_FAILED_SHARE * total
        if is_many and (failed >= MIN_FAILED or not good):
            raise NeedsDecision(
                [
                    f"{self.file}: {failed} of {total} records are faulty, "
                    "more than a tenth:",
                    *listed(self.failed),
                    *(self.advice or ["Correct the file, or export it anew."]),
                ]
            )

    def _look_for_damaged_letters(self) -> None:
        reviews = [record.review for record in self.records if record.review]
        texts = [f"{review['author']}{review.get('text')}" for review in reviews]
        damaged = sum(map(looks_damaged, texts))
        if damaged:
            fault = f"letters look damaged (“BjÃ¸rn”) in {damaged} reviews"
            self.urgent_notes.append(f"{self.file}: {fault}; export them anew")

    def _look_for_unknown_markers(self) -> None:
        """Name what may be a machine's words: only the owner can tell."""
        markers = Counter[str]()
        for record in self.records:
            if record.review and record.source == "google":
                reply = record.review.get("owner_reply") or {}
                for text in (record.review.get("text"), reply.get("text")):
                    markers[unknown_marker(text or "")] += 1
        del markers[""]
        if markers:
            shown = ", ".join(f"“{marker}” ({n})" for marker, n in markers.items())
            self.urgent_notes.append(
                f"{self.file}: texts may have a translation by Google, which is "
                f"published as it is: {shown}"
            )


# ---- Pages of the API, which are complete only together ----


def complete_pages(exports: Sequence[Export]) -> None:
    """Let all pages of a command cover their locations, unless they lack reviews.

    A page does not say whether it is the last one; their `totalReviewCount` does.
    """
    pages = defaultdict[str, list[Record]](list)
    for export in exports:
        for record in export.pages:
            pages[record.location].append(record)
    for location, records in pages.items():
        reason = _incompleteness(location, records, exports)
        if reason:
            exports[0].urgent_notes.append(
                f"the pages of location {location} remove nothing: {reason}"
            )
            continue
        # A review may have been removed while the pages were saved one by one.
        time = min(record.time for record in records)
        before = exports[0].covers.get(location, "")
        exports[0].covers[location] = max(time, before)


def _incompleteness(
    location: str, records: Iterable[Record], exports: Sequence[Export]
) -> str:
    """Why pages may lack reviews of their location, empty if they are complete."""
    if any(export.has_unknown for export in exports):
        return "a faulty record may belong to any review"
    number = len({record.native_id for record in records})
    total = max(export.totals.get(location, number) for export in exports)
    if total > number:
        return f"they have {number} of {total} reviews"
    return ""
