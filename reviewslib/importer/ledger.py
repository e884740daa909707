"""The ledger: the stored reviews and their entries, while records are merged into them.

The import owns the fields that exports have; all other keys of a review are the
owner's. A complete export has every review of a scope, which is a location at Google or
a source of tables. **A review is there as long as an export of time T or later has had
it**: the newest T that had it is at least the newest T that spoke for its scope, and
the newest T at which Google said that it does not exist. All three are maxima, so the
order of files, repetitions and parts do not matter.

This module is pure: it knows no format, no file and no clock.

Sections, in the order of an import: take - publish - erase - remove - what the report
asks about - seal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from reviewslib.dataset.figures import calendar_day
from reviewslib.dataset.mentions import value_digest
from reviewslib.importer import recognition
from reviewslib.importer.dates import in_zone
from reviewslib.importer.erasure import redacted, suppressed_ids
from reviewslib.importer.exports import Export, Record, ReviewInFile
from reviewslib.importer.locations import Locations, is_googles_own
from reviewslib.importer.names import short_name, without_address
from reviewslib.importer.options import Options
from reviewslib.importer.state import Entry
from reviewslib.importer.stored import Stored

# The brake. A few reviews vanish every week; many at once are rather an export that
# lacks something, and what is removed cannot be brought back.
FEW_REMOVED = 3
MAX_REMOVED_SHARE = 0.1

# A table that lacks no more than this of its source is probably whole.
MAX_LACKING_SHARE = 0.1

# Of a review that an older export has, and a newer complete one has not.
NOT_TAKEN = "not in a newer complete export, so not taken from an older one"

# The fields that follow the moment at which the customer changed the review; all other
# fields follow the time of the export.
FIELDS_OF_TEXT = {"rating", "text", "source_url", "verified"}

# A line of the report has room for so many names.
FEW_NAMED = 3


def described(review: ReviewInFile) -> str:
    """A review as the report names it."""
    return f"{review['author']}, {calendar_day(review)} ({review['id']})"


def named(names: Sequence[str], options: Options) -> str:
    """The first few names in one line, or all of them with --verbose."""
    rest = len(names) - FEW_NAMED
    if options.verbose or rest <= 0:
        return "; ".join(names)
    return "; ".join([*names[:FEW_NAMED], f"and {rest} more"])


class Ledger:
    """Takes fields from records, keeps erased reviews away, removes what is gone."""

    def __init__(
        self,
        stored: Stored,
        locations: Locations,
        options: Options,
        *,
        may_remove: bool = True,
    ):
        """`may_remove` is false if a file was refused: it may have what others lack."""
        self.stored = stored
        self.locations = locations
        self.options = options
        self.before = stored.reviews
        self.reviews = {id: dict(review) for id, review in self.before.items()}
        self.entries = stored.entries()
        self.covered = dict(stored.state.covered)  # newest T that spoke, by scope
        self.left_out = Counter[str]()  # records, by reason
        self.removed = defaultdict[str, list[str]](list)  # reviews, by reason
        self.erased = dict[str, str]()  # stored reviews as they are named, by id
        self.held = list[str]()  # lines about removals that the brake holds
        self.may_remove = may_remove
        self.edited = self._edited_by_hand()
        if len(locations.chosen) == 1:
            self._locate_entries(min(locations.chosen))

    def _edited_by_hand(self) -> set[str]:
        """The ids of the stored reviews that are not as an import wrote them."""
        edited = set[str]()
        for id, review in self.before.items():
            entry = self.entries.get(id)
            if entry and entry.written:
                if entry.written != value_digest(review):
                    edited.add(id)
        return edited

    def _locate_entries(self, location: str) -> None:
        """Reviews of Google without a location, from a lost state, are of this one."""
        for entry in self.entries.values():
            if entry.source == "google" and not entry.location:
                entry.location = location

    # ---- Take: the fields of records ----

    def take(self, exports: Sequence[Export]) -> None:
        """Take the fields of all records that are not left out."""
        reasons = self._scopes_left_out(exports)
        register = recognition.Register(self.entries)
        for records in _in_order(exports):
            taken = self._without_left_out(records, reasons)
            for record, id in register.identify(taken):
                self._update(id, record)
        for export in exports:
            self._let_speak(export.covers, reasons.keys())
            self._take_denials(export.gone, register)

    def _without_left_out(
        self, records: Iterable[Record], reasons: Mapping[str, str]
    ) -> list[Record]:
        """The records whose scope is not left out; the others are counted."""
        taken = list[Record]()
        for record in records:
            reason = reasons.get(record.scope)
            if reason:
                self.left_out[reason] += 1
            else:
                taken.append(record)
        return taken

    def _scopes_left_out(self, exports: Sequence[Export]) -> dict[str, str]:
        """The reason by scope: locations that are not chosen, and Google's in tables.

        A table has other ids and days for a review of Google than Google's own exports.
        """
        chosen = self.locations.chosen
        reasons = dict[str, str]()
        for export in exports:
            if export.header:
                continue
            for location in sorted({record.location for record in export.records}):
                if location not in chosen:
                    title = self.locations.titles[location]
                    place = f"location {location} {title!r}"
                    reasons[location] = f"left out, of {place}, not chosen"
        if chosen or any(map(is_googles_own, self.entries.values())):
            reasons["google"] = "rows of google in tables, left out"
        return reasons

    def _let_speak(self, covers: Mapping[str, str], left_out: Iterable[str]) -> None:
        """Remember the newest T at which a complete export spoke for each scope."""
        for scope, time in covers.items():
            if scope not in left_out:
                self.covered[scope] = max(time, self.covered.get(scope, ""))

    def _take_denials(
        self, gone: Mapping[str, str], register: recognition.Register
    ) -> None:
        """Remember when Google said of a review, by its native id, that it is gone."""
        for native_id, time in gone.items():
            id = register.id_of("google", native_id)
            if id:
                entry = self.entries[id]
                entry.gone = max(entry.gone, time)

    def _update(self, id: str, record: Record) -> None:
        """Take those fields of a record that are no older than the stored ones."""
        entry = self.entries[id]
        seen = entry.seen
        entry.seen = max(seen, record.time)
        fields = record.review
        if fields is None:
            return
        is_new = self._is_first(id, record)
        review = self.reviews[id]
        if is_new or record.time >= seen:
            _take_fields_of_export(review, entry, record, fields)
        if is_new or (record.updated, record.time) >= (entry.updated, seen):
            _take_fields_of_text(review, entry, record, fields)

    def _is_first(self, id: str, record: Record) -> bool:
        """Whether all fields of the record count, however old it is.

        That is so for a new review, and for one that only tables have had before
        Google's own export.
        """
        entry = self.entries[id]
        was_of_tables = bool(entry.row) and record.format != "table"
        if was_of_tables:
            entry.row = ""
            entry.text = ""
        is_new = id not in self.reviews
        if is_new:
            keys = ("id", "author", "rating", "date", "text", "source")
            blank: ReviewInFile = dict.fromkeys(keys)
            self.reviews[id] = blank | {"id": id, "source": entry.source}
        return is_new or was_of_tables

    # ---- Publish: as the owner wants dates, names and pictures ----

    def publish(self) -> None:
        """Write dates in the zone of the business, and names and pictures as wanted.

        Dates are made anew from the moments of the exports, so that a zone that is
        given later puts all of them right.
        """
        # UTC needs no file of time zones, which a small machine may lack.
        zone = ZoneInfo(self.options.zone) if self.options.zone else UTC
        for id in self.reviews.keys() & self.entries.keys():
            review = self.reviews[id]
            _write_dates(review, self.entries[id], zone)
            if self.options.short_names:
                review["author"] = short_name(review["author"])
            if not self.options.avatars:
                review.pop("author_avatar_url", None)

    # ---- Erase: what the owner has forgotten ----

    def erase(self) -> Sequence[str]:
        """Drop the reviews and words to keep away; the lines for suppressed.txt."""
        entries = recognition.entries_of(self.reviews, self.entries)
        self.reviews |= redacted(self.reviews, entries, self.stored.redactions)
        ids, lines = suppressed_ids(self.reviews, entries, self.stored.suppressed)
        for id in sorted(ids):
            if id in self.before:
                self.erased[id] = described(self.reviews[id])
            self.reviews.pop(id, None)
            self.entries.pop(id, None)
        return lines

    # ---- Remove: what newer complete exports lack ----

    def remove(self) -> None:
        """Remove what newer complete exports lack, and locations no longer chosen."""
        ids_by_scope = defaultdict[str, list[str]](list)
        for id in sorted(self.reviews.keys() & self.entries.keys()):
            ids_by_scope[self.entries[id].scope].append(id)
        for scope, ids in sorted(ids_by_scope.items()):
            # Every review of a scope has one location, or none.
            location = self.entries[ids[0]].location
            if location in {"", *self.locations.chosen}:
                self._remove_what_is_gone(scope, ids)
            else:
                title = self.locations.titles[scope]
                reason = f"location {scope} {title!r} is not chosen"
                self._remove(ids, len(ids), reason, reason)

    def _remove_what_is_gone(self, scope: str, ids: Sequence[str]) -> None:
        covered = self._newest_word_on(scope)
        gone = [id for id in ids if not is_present(self.entries[id], covered)]
        place = self.locations.titles[scope] or scope
        denied = max((self.entries[id].gone for id in gone), default="")
        export = f"the export of {covered[:10]}"
        if denied > covered:
            export = f"Google, as asked on {denied[:10]},"
        self._remove(
            gone,
            len(ids),
            reason_to_stay=f"{export} does not have them ({place})",
            reason_to_go=f"{export} no longer has them",
        )

    def _newest_word_on(self, scope: str) -> str:
        """The newest T at which a complete export spoke for a scope, empty if none.

        After a loss of the state the scope of a review may be "google": any chosen
        location may have it, so all of them must have spoken.
        """
        places = {scope}
        if scope == "google" and self.locations.chosen:
            places = self.locations.chosen
        return min(self.covered.get(place, "") for place in places)

    def _remove(
        self,
        ids: Sequence[str],
        number: int,
        reason_to_stay: str,
        reason_to_go: str,
    ) -> None:
        """Remove some of the `number` reviews of a scope, unless the brake holds."""
        stored = [id for id in ids if id in self.before]
        new = set(ids).difference(stored)
        for id in new:
            del self.reviews[id]
            self.left_out[NOT_TAKEN] += 1
        if self._go_unasked(len(stored), number - len(new)):
            for id in stored:
                self.removed[reason_to_go].append(described(self.reviews.pop(id)))
            return
        names = named([described(self.reviews[id]) for id in stored], self.options)
        self.held.append(
            f"{len(stored)} of {number - len(new)} reviews stay, "
            f"although {reason_to_stay}: {names}"
        )
        if self.may_remove:
            advice = "To remove them, run the import again with --allow-removals."
        else:
            advice = "Nothing is removed, since a file was refused."
        self.held.append(f"  {advice}")

    def _go_unasked(self, removed: int, number: int) -> bool:
        """Whether so many of a number of reviews go without being asked about."""
        if removed == 0:
            return True
        if not self.may_remove:
            return False
        if self.options.allow_removals:
            return True
        if removed == number:
            return False
        return removed <= FEW_REMOVED or removed <= MAX_REMOVED_SHARE * number

    # ---- What the report asks about ----

    def lacked_by(self, export: Export, source: str) -> list[str]:
        """The stored reviews that a table lacks which has nearly all of its source.

        The ids; empty for a table that lacks many, and so is rather a part.
        """
        stored = [
            id
            for id in sorted(self.before.keys() & self.reviews.keys())
            if id in self.entries and self.entries[id].scope == source
        ]
        time = max((record.time for record in export.records), default="")
        lacking = [id for id in stored if self.entries[id].seen < time]
        if len(lacking) > MAX_LACKING_SHARE * len(stored):
            return []
        return lacking

    def changed(self) -> list[str]:
        """The ids of the stored reviews that are not as before, or gone."""
        before = self.before
        return [id for id in before if before[id] != self.reviews.get(id)]

    # ---- Seal: what is written is remembered ----

    def seal(self) -> None:
        """Remember each review as it is written, to know later what was edited."""
        for id in self.reviews.keys() & self.entries.keys():
            self.entries[id].written = value_digest(self.reviews[id])


def _in_order(exports: Sequence[Export]) -> list[list[Record]]:
    """The records that are identified together, the oldest export first.

    Google's own come one by one and before tables, whose rows are told apart only
    beside each other. A native id tells equals apart, so that the order of files does
    not matter.
    """
    google = list[Record]()
    tables = list[list[Record]]()
    for export in exports:
        if not export.header:
            google += export.records
        elif export.records:
            tables.append(export.records)
    google.sort(key=lambda record: (record.time, record.updated, record.native_id))
    tables.sort(key=lambda records: records[0].time)
    return [[record] for record in google] + tables


def _take_fields_of_export(
    review: ReviewInFile, entry: Entry, record: Record, fields: ReviewInFile
) -> None:
    entry.location = record.location or entry.location
    entry.created = record.created
    entry.author = recognition.author_digest(fields["author"])
    if "owner_reply" in fields:
        entry.replied = record.replied
    for key in fields.keys() - FIELDS_OF_TEXT:
        review[key] = fields[key]
    review["author"] = without_address(fields["author"])


def _take_fields_of_text(
    review: ReviewInFile, entry: Entry, record: Record, fields: ReviewInFile
) -> None:
    entry.updated = record.updated
    for key in fields.keys() & FIELDS_OF_TEXT:
        review[key] = fields[key]


def _write_dates(review: ReviewInFile, entry: Entry, zone: tzinfo) -> None:
    review["date"] = in_zone(entry.created, zone)
    if entry.updated:
        review["updated"] = in_zone(entry.updated, zone)
    else:
        # No table says it. After a loss of the state, what was known stays.
        review.setdefault("updated", None)
    reply = review.get("owner_reply")
    if reply:
        date = in_zone(entry.replied, zone) or None
        review["owner_reply"] = {"text": reply["text"], "date": date}


def is_present(entry: Entry, covered: str) -> bool:
    """Whether a review is there, if `covered` is the newest T that spoke for it."""
    return entry.seen >= covered and not entry.is_denied
