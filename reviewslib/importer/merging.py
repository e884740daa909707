"""Merging: records of exports become part of the stored reviews.

The import owns the fields that exports have; all other keys of a review are the owner's. A complete export
has every review of a scope, which is a location at Google or a source of tables. A review stays as long as
the newest complete export of its scope, or any export since, has had it. This module is pure: it knows no
format, no file and no clock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC
from typing import NamedTuple
from zoneinfo import ZoneInfo

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.reviews import REVIEWS_FILE, calendar_day, serving_order
from reviewslib.dataset.strict_json import Json
from reviewslib.importer import recognition
from reviewslib.importer.cells import in_zone
from reviewslib.importer.erasure import redacted, suppressed_ids
from reviewslib.importer.exports import (
    Export,
    NeedsDecision,
    Record,
    ReviewInFile,
    listed,
)
from reviewslib.importer.options import Options, remembered
from reviewslib.importer.state import Entry, State


class Stored(NamedTuple):
    """The content of a data directory."""

    document: dict[str, Json]  # of reviews.json, empty without it
    reviews_digest: str
    insights: bytes | None
    state: State
    suppressed: Sequence[str]  # lines of suppressed.txt
    redactions: Sequence[str]  # lines of redacted.txt

    @property
    def reviews(self) -> dict[str, ReviewInFile]:
        """The reviews by id."""
        return {review["id"]: review for review in self.document.get("reviews", ())}

    @property
    def edited_copy(self) -> str:
        """The name of the copy of a reviews.json that has changed since the last import; else empty."""
        is_edited = self.state.reviews_digest not in ("", self.reviews_digest)
        return f"{REVIEWS_FILE}.edited-{self.reviews_digest[:8]}" if is_edited else ""

    def entries(self) -> dict[str, Entry]:
        """The entries of the state by id; if the state is lost, new ones made from reviews.json."""
        reviews = () if self.state.reviews_digest else self.reviews.items()
        made = {
            id: recognition.entry_of(review)
            for id, review in reviews
            if not recognition.is_own(review)
        }
        return made or self.state.reviews


class Merged(NamedTuple):
    """The result of an import."""

    document: dict[str, Json]  # of reviews.json
    state: State
    suppressed: Sequence[str]  # lines of suppressed.txt
    is_overwritten: bool  # whether changes by hand may be lost
    report: list[str]


def merge(
    stored: Stored, exports: Sequence[Export], options: Options, contract: Contract
) -> Merged:
    """The stored reviews, perhaps none, with the exports merged into them. Raises NeedsDecision."""
    locations = choose_locations(stored, exports, options)
    name = _name_of_business(stored, locations, options)
    ledger = Ledger(stored, locations, options)
    ledger.take(exports)
    ledger.publish()
    suppressed = ledger.erase()
    ledger.remove()
    business = contract.reviews_file.blank("business") | {"name": name}
    reviews = sorted(ledger.reviews.values(), key=serving_order, reverse=True)
    changed = [
        id for id, review in ledger.before.items() if review != ledger.reviews.get(id)
    ]
    state = replace(
        stored.state,
        settings=remembered(options),
        chosen=sorted(locations.chosen),
        locations={
            location: locations.titles[location]
            for location in sorted(locations.decided)
        },
        headers=stored.state.headers
        | {export.header: export.settings for export in exports if export.header},
        covered=ledger.covered,
        suppressed=len(suppressed),
        reviews=ledger.entries,
    )
    document = {"business": business} | stored.document | {"reviews": reviews}
    report = [*_report(ledger, exports, changed)]
    return Merged(
        document, state, suppressed, bool(stored.edited_copy and changed), report
    )


def _name_of_business(stored: Stored, locations: Locations, options: Options) -> str:
    """The name for a new reviews.json, empty if there is a file. Raises NeedsDecision."""
    if stored.document:
        return ""
    titles = {locations.titles[location] for location in locations.chosen} - {""}
    if options.name or len(titles) == 1:
        return options.name or min(titles)
    lines = [
        "The files do not name the business:",
        *listed(sorted(titles)),
        "Give its name once.",
    ]
    raise NeedsDecision(lines, "--name 'YOUR BUSINESS'")


# ---- Locations: each may be a business of its own ----


class Locations(NamedTuple):
    """Which locations at Google are imported."""

    chosen: set[str]
    decided: set[str]  # those that the owner has decided about
    titles: Mapping[str, str]  # by location


def choose_locations(
    stored: Stored, exports: Sequence[Export], options: Options
) -> Locations:
    """The locations to import. Raises NeedsDecision if only the owner can tell."""
    state = stored.state
    records = [record for export in exports for record in export.records]
    exported = Counter(record.location for record in records if record.location)
    titles = defaultdict(str, state.locations)
    titles |= {
        location: title
        for export in exports
        for location, title in export.titles.items()
        if title
    }
    current = {*state.chosen}
    entries = {} if state.chosen or not exported else deepcopy(stored.entries())
    if any(entry.source == "google" and not entry.row for entry in entries.values()):
        ids = {*entries}
        register = recognition.Register(entries)
        found = (
            pair
            for record in records
            if record.location
            for pair in register.identify([record])
        )
        current = {record.location for record, id in found if id in ids}
    elif not current and len(exported) == 1:
        current = {*exported}
    chosen = {*options.location} or current
    decided = {*state.locations, *chosen, *(exported if options.location else ())}
    if exported.keys() - decided and not options.drop:
        known = sorted(exported.keys() | decided)
        counts = (
            f"{place} {titles[place]!r}: {exported[place]} reviews here"
            for place in known
        )
        question = (
            "Which locations are to be imported? Each may be a business of its own:"
        )
        advice = (
            "Give the numbers of those to publish with --location. The choice is kept."
        )
        raise NeedsDecision([question, *listed(counts), advice], "--location YOUR")
    return Locations(chosen, decided, titles)


# ---- Ledger: the stored reviews and their entries, while records are merged into them ----

# of the reviews of a scope
FEW_REMOVED = 3
MAX_REMOVED_SHARE = 0.1


def scope_of(review: Record | Entry) -> str:
    """The scope whose complete exports show whether the review still exists."""
    return review.location or review.source


class Ledger:
    """Takes fields from records, keeps erased reviews away, and removes what complete exports lack."""

    def __init__(self, stored: Stored, locations: Locations, options: Options):
        self.stored = stored
        self.locations = locations
        self.options = options
        self.before = stored.reviews
        self.entries = stored.entries()
        self.reviews = {id: dict(review) for id, review in self.before.items()}
        self.covered = dict(stored.state.covered)
        self.left_out = Counter[str]()  # records, by reason
        self.removed = list[str]()
        self.erased = list[str]()
        self.notes = list[str]()
        for entry in self.entries.values() if len(locations.chosen) == 1 else ():
            if entry.source == "google":
                entry.location = entry.location or min(locations.chosen)

    def take(self, exports: Sequence[Export]) -> None:
        """Take the fields of all records, the oldest export first, and Google's own before tables.

        Other locations are left out, and rows with reviews on Google once there are exports by Google.
        """
        chosen = self.locations.chosen
        titles = self.locations.titles
        google = [
            record
            for export in exports
            if not export.header
            for record in export.records
        ]
        others = sorted({record.location for record in google} - chosen)
        left_out = {
            place: f"left out, of location {place} {titles[place]!r}, not chosen"
            for place in others
        }
        if chosen or any(
            entry.source == "google" and not entry.row
            for entry in self.entries.values()
        ):
            left_out["google"] = "rows of google in tables, left out"
        # A native id tells equals apart, so that the order of files does not matter.
        google.sort(key=lambda record: (record.time, record.updated, record.native_id))
        tables = [
            export.records for export in exports if export.header and export.records
        ]
        tables.sort(key=lambda records: records[0].time)
        register = recognition.Register(self.entries)
        for records in (*([record] for record in google), *tables):
            scopes = map(scope_of, records)
            self.left_out.update(
                left_out[scope] for scope in scopes if scope in left_out
            )
            for record, id in register.identify(
                r for r in records if scope_of(r) not in left_out
            ):
                self._update(id, record)
        for scope, time in (
            claim for export in exports for claim in export.covers.items()
        ):
            if scope not in left_out:
                self.covered[scope] = max(time, self.covered.get(scope, ""))

    def _update(self, id: str, record: Record) -> None:
        """Take those fields of a record that are no older than the stored ones."""
        entry = self.entries[id]
        seen = self.entries[id].seen
        fields = record.review
        entry.seen = max(seen, record.time)
        if not fields:
            return
        is_new = id not in self.reviews
        if is_new:
            self.reviews[id] = dict.fromkeys(
                ("id", "author", "rating", "date", "text", "source")
            )
            self.reviews[id] |= {"id": id, "source": entry.source}
        elif (
            entry.row and record.format != "table"
        ):  # Google's own export replaces the row of a table
            is_new = True
            entry.row = ""
            entry.text = ""
        review = self.reviews[id]
        of_text = {"rating", "text", "source_url", "verified"}
        if is_new or record.time >= seen:
            entry.location = record.location or entry.location
            entry.created = record.created
            entry.author = recognition.author_digest(fields["author"])
            if "owner_reply" in fields:
                entry.replied = record.replied
            review |= {key: fields[key] for key in fields if key not in of_text}
            review["author"] = recognition.without_address(fields["author"])
        if is_new or (record.updated, record.time) >= (entry.updated, seen):
            entry.updated = record.updated
            review |= {key: fields[key] for key in fields if key in of_text}

    def publish(self) -> None:
        """Write dates in the zone of the business, and names and pictures as the owner wants them."""
        zone = (
            ZoneInfo(self.options.zone) if self.options.zone else UTC
        )  # needs no file of time zones
        for id in self.reviews.keys() & self.entries.keys():
            entry = self.entries[id]
            review = self.reviews[id]
            review["date"] = in_zone(entry.created, zone)
            if reply := review.get("owner_reply"):
                review["owner_reply"] = {
                    "text": reply["text"],
                    "date": in_zone(entry.replied, zone) or None,
                }
            if self.options.short_names:
                review["author"] = recognition.short_name(review["author"])
            if not self.options.avatars:
                review.pop("author_avatar_url", None)

    def erase(self) -> Sequence[str]:
        """Drop the reviews and words to keep away; returns the lines for suppressed.txt."""
        entries = recognition.entries_of(self.reviews, self.entries)
        self.reviews |= redacted(self.reviews, entries, self.stored.redactions)
        ids, lines = suppressed_ids(self.reviews, entries, self.stored.suppressed)
        for id in sorted(ids):
            review = self.reviews.pop(id, {})
            _ = self.entries.pop(id, None)
            self.erased += [described(review)] if id in self.before else []
        return lines

    def remove(self) -> None:
        """Remove what newer complete exports lack, and locations that are no longer chosen."""
        ids_of = defaultdict[str, list[str]](list)  # by scope
        for id in sorted(self.reviews.keys() & self.entries.keys()):
            ids_of[scope_of(self.entries[id])].append(id)
        for scope, ids in sorted(ids_of.items()):
            # After a loss of the state, the scope of a review may be "google": any location may have it.
            places = self.locations.chosen if scope == "google" else set[str]()
            covered = min(self.covered.get(place, "") for place in places or {scope})
            title = self.locations.titles[scope]
            gone = [id for id in ids if self.entries[id].seen < covered]
            reason = (
                f"the export of {covered[:10]} does not have them ({title or scope})"
            )
            if self.entries[ids[0]].location not in {"", *self.locations.chosen}:
                gone = ids
                reason = f"location {scope} {title!r} is not chosen"
            self._remove(gone, len(ids), reason)

    def _remove(self, ids: Sequence[str], number: int, reason: str) -> None:
        """Remove some of a `number` of reviews; too many stored ones stay, unless the owner allows it."""
        stored = [id for id in ids if id in self.before]
        for id in {*ids}.difference(stored):
            del self.reviews[id]
            self.left_out[
                "not in a newer complete export, so not taken from an older one"
            ] += 1
            number -= 1
        is_many = len(stored) > FEW_REMOVED and len(stored) > MAX_REMOVED_SHARE * number
        if (is_many or 0 < len(stored) == number) and not self.options.allow_removals:
            names = self.named([described(self.reviews[id]) for id in stored])
            self.notes.append(
                f"{len(stored)} of {number} reviews stay, although {reason}: {names}"
            )
            self.notes.append(
                "  To remove them, run the import again with --allow-removals."
            )
        else:
            self.removed += [described(self.reviews.pop(id)) for id in stored]

    def named(self, names: Sequence[str]) -> str:
        """The first few names in one line, or all of them with --verbose."""
        rest = 0 if self.options.verbose else len(names) - FEW_NAMED
        return "; ".join(
            [*names[:FEW_NAMED], f"and {rest} more"] if rest > 0 else names
        )


# ---- Report: counts, then remarks that the owner may want to check ----

FEW_NAMED = 3


def described(review: ReviewInFile) -> str:
    """A review as the report names it."""
    return f"{review['author']}, {calendar_day(review)} ({review['id']})"


def _report(
    ledger: Ledger, exports: Sequence[Export], changed: Sequence[str]
) -> Iterator[str]:
    """The numbers of reviews, then remarks; `changed` are the stored reviews that are not as before."""
    stored = ledger.stored
    options = ledger.options
    reviews = ledger.reviews
    before = ledger.before.keys()
    hidden = [review for review in reviews.values() if review.get("verified") is False]
    counts = {
        "new": len(reviews.keys() - before),
        "changed": len(reviews.keys() & changed),
        "unchanged": len(before - changed),
        **ledger.left_out,
        "not verified or not published, so not served": len(hidden),
    }
    yield from (f"{what}: {number}" for what, number in counts.items() if number)
    subjects = {
        "removed, since newer complete exports lack them or their location is not chosen": ledger.removed,
        "kept away by suppressed.txt": ledger.erased,
        "without stars, not imported": [
            name for export in exports for name in export.without_stars
        ],
        "faulty, not imported": [
            str(fault) for export in exports for fault in export.failed
        ],
    }
    for subject, names in subjects.items():
        if names:
            yield f"{subject}: {len(names)}: {ledger.named(names)}"
    if (lost := stored.state.suppressed - len(stored.suppressed)) > 0:
        yield f"suppressed.txt has lost {lost} lines since the last import: erased reviews may return"
    yield from ledger.notes
    yield from (note for export in exports for note in export.notes)
    if not options.zone and any("T" in review["date"] for review in reviews.values()):
        yield "times are in UTC; give the time zone of the business once, as --zone Europe/Berlin"
    if stored.edited_copy and changed:
        shown = ledger.named([described(ledger.before[id]) for id in changed])
        yield f"{REVIEWS_FILE} was edited; exports have overwritten fields of {len(changed)} reviews: {shown}"
        file = options.data / stored.edited_copy
        yield f"  The edited file is kept as {file}. To change reviews for good, use --redact and --forget."
