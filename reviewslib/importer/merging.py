"""Merging: records of exports become part of the stored reviews.

The import owns the fields that exports have; all other keys of a review are the owner's. A complete export
has every review of a scope, which is a location at Google or a source of tables. A review stays as long as
the newest complete export of its scope, or any export since, has had it. This module is pure: it knows no
format, no file and no clock.

Sections: Merge - Locations - Ledger - Report
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import NamedTuple
from zoneinfo import ZoneInfo

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.reviews import REVIEWS_FILE, calendar_day, serving_order
from reviewslib.dataset.strict_json import Json
from reviewslib.importer import recognition
from reviewslib.importer.cells import in_zone
from reviewslib.importer.erasure import Redaction, redacted, suppressed_ids
from reviewslib.importer.exports import Export, NeedsDecision, Record, ReviewInFile, listed
from reviewslib.importer.options import Options
from reviewslib.importer.state import Entry, State

# ---- Merge ----


class Stored(NamedTuple):
    """The content of a data directory."""

    document: dict[str, Json]  # of reviews.json, empty without it
    reviews_digest: str
    insights: bytes | None
    state: State
    suppressed: Sequence[str]  # lines of suppressed.txt
    redactions: Sequence[Redaction]

    @property
    def reviews(self) -> dict[str, ReviewInFile]:
        """The reviews by id."""
        return {review["id"]: review for review in self.document.get("reviews", ())}

    @property
    def is_lost(self) -> bool:
        """Whether the state file is absent."""
        return not self.state.reviews_digest

    @property
    def edited_copy(self) -> str:
        """The name of the copy of a reviews.json that has changed since the last import; else empty."""
        is_edited = self.state.reviews_digest not in ("", self.reviews_digest)
        return f"{REVIEWS_FILE}.edited-{self.reviews_digest[:8]}" if is_edited else ""


class Merged(NamedTuple):
    """The result of an import."""

    document: dict[str, Json]  # of reviews.json
    state: State
    suppressed: Sequence[str]  # lines of suppressed.txt
    overwritten: list[str]  # ids of reviews whose changes by hand may be lost
    report: list[str]


def merge(stored: Stored, exports: Sequence[Export], options: Options, contract: Contract) -> Merged:
    """The stored reviews, perhaps none, with the exports merged into them. Raises NeedsDecision."""
    entries = entries_of(stored)
    locations = choose_locations(stored, entries, exports, options)
    name = _name_of_business(stored, locations, options)
    ledger = Ledger(stored, entries, locations, options)
    ledger.take(exports)
    ledger.publish()
    suppressed = ledger.suppress()
    ledger.reviews |= redacted(ledger.reviews, entries, stored.redactions)
    ledger.remove()
    business = contract.reviews_file.blank("business") | {"name": name}
    document = {"business": business} | stored.document | {"reviews": ledger.listed()}
    changed = [id for id, review in ledger.before.items() if review != ledger.reviews.get(id)]
    overwritten = changed if stored.edited_copy else []
    headers = {export.header: export.settings for export in exports if export.header}
    state = replace(
        stored.state,
        zone=options.zone,
        short_names=bool(options.short_names),
        avatars=bool(options.avatars),
        chosen=sorted(locations.chosen),
        locations=locations.titles,
        headers=stored.state.headers | headers,
        covered=ledger.covered,
        suppressed=len(suppressed),
        reviews=entries,
    )
    report = [*_counts(ledger), *_remarks(ledger, exports, overwritten)]
    return Merged(document, state, suppressed, overwritten, report)


def entries_of(stored: Stored) -> dict[str, Entry]:
    """A copy of the entries of the state by id; if the state is lost, entries made from reviews.json."""
    if not stored.is_lost:
        return {id: replace(entry, native={**entry.native}) for id, entry in stored.state.reviews.items()}
    reviews = stored.reviews.items()
    return {id: recognition.entry_of(review) for id, review in reviews if not recognition.is_own(review)}


def _name_of_business(stored: Stored, locations: Locations, options: Options) -> str:
    """The name for a new reviews.json, empty if there is a file. Raises NeedsDecision."""
    if stored.document:
        return ""
    titles = {locations.titles[location] for location in locations.chosen} - {""}
    if options.name or len(titles) == 1:
        return options.name or min(titles)
    lines = ["The files do not name the business:", *listed(sorted(titles)), "Give its name once."]
    raise NeedsDecision(lines, ("--name", "YOUR BUSINESS"))


# ---- Locations: each may be a business of its own ----


class Locations(NamedTuple):
    """Which locations at Google are imported."""

    chosen: set[str]
    others: Mapping[str, str]  # by location not chosen: its reviews in the exports, in words
    titles: dict[str, str]  # by location, of all that the owner has decided about


def choose_locations(
    stored: Stored, entries: Mapping[str, Entry], exports: Sequence[Export], options: Options
) -> Locations:
    """The locations to import. Raises NeedsDecision if only the owner can tell."""
    state, records = stored.state, [record for export in exports for record in export.records]
    exported = Counter(record.location for record in records if record.location)
    titles = defaultdict(str, state.locations)
    titles |= {location: title for export in exports for location, title in export.titles.items() if title}
    current = {*state.chosen}
    if stored.is_lost and any(entry.source == "google" for entry in entries.values()):
        register = recognition.Register(dict(entries))
        current = {record.location for record in records if record.location and register.known_id(record)}
    elif not current and len(exported) == 1:
        current = {*exported}
    decided, chosen = {*state.locations, *current}, {*options.location} or current
    is_open = not options.location and bool(exported.keys() - decided or (exported and not chosen))
    if is_open and not options.drop:
        known = sorted(exported.keys() | decided)
        counts = (f"{place} {titles[place]!r}: {exported[place]} reviews here" for place in known)
        question = "Which locations are to be imported? Each may be a business of its own:"
        advice = "Give the numbers of those to publish with --location. The choice is kept."
        raise NeedsDecision([question, *listed(counts), advice], ("--location", "YOUR"))
    others = {
        location: f"{exported[location]} reviews of location {location} {titles[location]!r}"
        for location in sorted(exported.keys() - chosen)
    }
    decided |= chosen if is_open else chosen | exported.keys()
    return Locations(chosen, others, {location: titles[location] for location in sorted(decided)})


# ---- Ledger: the stored reviews and their entries, while records are merged into them ----

FEW_REMOVED, MAX_REMOVED_SHARE = 3, 0.1  # of the reviews of a scope


def scope_of(review: Record | Entry) -> str:
    """The scope whose complete exports show whether the review still exists."""
    return review.location or review.source


class Ledger:
    """Takes fields from records, keeps erased reviews away, and removes what complete exports lack."""

    def __init__(self, stored: Stored, entries: dict[str, Entry], locations: Locations, options: Options):
        self.stored, self.entries, self.locations, self.options = stored, entries, locations, options
        self.before = stored.reviews
        self.reviews = {id: dict(review) for id, review in self.before.items()}
        self.covered = dict(stored.state.covered)
        self.exported = set[str]()  # ids of the reviews that the exports have
        self.left_out = Counter[str]()  # records, by reason
        self.removed, self.erased = list[ReviewInFile](), list[ReviewInFile]()
        self.notes = list[str]()
        for entry in entries.values() if len(locations.chosen) == 1 else ():
            if entry.source == "google":
                entry.location = entry.location or min(locations.chosen)

    # Fields

    def take(self, exports: Sequence[Export]) -> None:
        """Take the fields of all records, the oldest export first, and Google's own before tables.

        Other locations are left out, and rows with reviews on Google once there are exports by Google.
        """
        is_google = any(entry.source == "google" and not entry.row for entry in self.entries.values())
        excluded = {*self.locations.others, *(["google"] if self.locations.chosen or is_google else [])}
        google = [record for export in exports if not export.header for record in export.records]
        # A native id tells equals apart, so that the order of files does not matter.
        google.sort(key=lambda record: (record.time, record.updated, record.native_id))
        tables = [export.records for export in exports if export.header and export.records]
        register = recognition.Register(self.entries)
        for records in (google, *sorted(tables, key=lambda records: records[0].time)):
            accepted = [record for record in records if scope_of(record) not in excluded]
            if records is not google:
                self.left_out["rows of google in tables, left out"] += len(records) - len(accepted)
            for record, id in register.identify(accepted):
                self._update(id, record)
        for scope, time in (claim for export in exports for claim in export.covers.items()):
            if scope not in excluded:
                self.covered[scope] = max(time, self.covered.get(scope, ""))

    def _update(self, id: str, record: Record) -> None:
        """Take those fields of a record that are no older than the stored ones."""
        entry, seen, fields = self.entries[id], self.entries[id].seen, record.review
        entry.seen = max(seen, record.time)
        if not fields:
            return
        self.exported.add(id)
        is_new = id not in self.reviews
        if is_new:
            self.reviews[id] = dict.fromkeys(("id", "author", "rating", "date", "text", "source"))
            self.reviews[id] |= {"id": id, "source": entry.source}
        elif entry.row and record.format != "table":  # Google's own export replaces the row of a table
            is_new, entry.row, entry.text = True, "", ""
        review, of_text = self.reviews[id], {"rating", "text", "source_url", "verified"}
        if is_new or record.time >= seen:
            entry.location = record.location or entry.location
            entry.created, entry.author = record.created, recognition.author_digest(fields["author"])
            if "owner_reply" in fields:
                entry.replied = record.replied
            review |= {key: fields[key] for key in fields if key not in of_text}
            review["author"] = recognition.without_address(fields["author"])
        if is_new or (record.updated, record.time) >= (entry.updated, seen):
            entry.updated = record.updated
            review |= {key: fields[key] for key in fields if key in of_text}

    def publish(self) -> None:
        """Write dates in the zone of the business, and names and pictures as the owner wants them."""
        zone = ZoneInfo(self.options.zone) if self.options.zone else UTC  # needs no file of time zones
        for id in self.reviews.keys() & self.entries.keys():
            entry, review = self.entries[id], self.reviews[id]
            review["date"] = in_zone(entry.created, zone)
            if reply := review.get("owner_reply"):
                review["owner_reply"] = {"text": reply["text"], "date": in_zone(entry.replied, zone) or None}
            if self.options.short_names:
                review["author"] = recognition.short_name(review["author"])
            if self.options.avatars is False:
                review.pop("author_avatar_url", None)

    # Removal

    def suppress(self) -> Sequence[str]:
        """Drop the reviews that suppressed.txt keeps away; returns the lines for that file."""
        ids, lines = suppressed_ids(self.reviews, self.entries, self.stored.suppressed)
        for id in sorted(ids):
            review, _ = self.reviews.pop(id, {}), self.entries.pop(id, None)
            self.erased += [review] if id in self.before else []
        return lines

    def remove(self) -> None:
        """Remove what newer complete exports lack, and locations that are no longer chosen."""
        ids_of = defaultdict[str, list[str]](list)  # by scope
        for id in sorted(self.reviews.keys() & self.entries.keys()):
            ids_of[scope_of(self.entries[id])].append(id)
        for scope, ids in sorted(ids_of.items()):
            title, covered = self.locations.titles.get(scope, ""), self._covered_at(scope)
            gone = [id for id in ids if self.entries[id].seen < covered]
            reason = f"the export of {covered[:10]} does not have them ({title or scope})"
            if self.entries[ids[0]].location not in {"", *self.locations.chosen}:
                gone, reason = ids, f"location {scope} {title!r} is not chosen"
            self._remove(gone, len(ids), reason)

    def _covered_at(self, scope: str) -> str:
        """The time at which an export last had every review of a scope, empty if none had.

        The scope of a review that lost its location with the state is "google": any location may have it.
        """
        locations = self.locations.chosen if scope == "google" else set[str]()
        return min(self.covered.get(part, "") for part in locations or {scope})

    def _remove(self, ids: Sequence[str], number: int, reason: str) -> None:
        """Remove `ids`, which are some of a `number` of reviews.

        Too many stored reviews stay until the owner allows it, or until an export has them again.
        """
        stored = [id for id in ids if id in self.before]
        for id in {*ids}.difference(stored):
            del self.reviews[id]
            self.left_out["not in a newer complete export, so not taken from an older one"] += 1
            number -= 1
        is_many = len(stored) > FEW_REMOVED and len(stored) > MAX_REMOVED_SHARE * number
        if (is_many or 0 < len(stored) == number) and not self.options.allow_removals:
            names = self.named(described(self.reviews[id] for id in stored))
            self.notes.append(f"{len(stored)} of {number} reviews stay, although {reason}: {names}")
            self.notes.append("  To remove them, run the import again with --allow-removals.")
        else:
            self.removed += [self.reviews.pop(id) for id in stored]

    # Results

    def listed(self) -> list[ReviewInFile]:
        """The reviews in serving order."""
        return sorted(self.reviews.values(), key=serving_order, reverse=True)

    def named(self, names: Sequence[str]) -> str:
        """The first few names in one line, or all of them with --verbose."""
        rest = 0 if self.options.verbose else len(names) - FEW_NAMED
        return "; ".join([*names[:FEW_NAMED], f"and {rest} more"] if rest > 0 else names)


# ---- Report: counts, then remarks that the owner may want to check ----

CHANGED = {"rating": "stars changed", "owner_reply": "reply changed"}
FIRST_WORDS, FEW_NAMED = 8, 3


def described(reviews: Iterable[ReviewInFile]) -> list[str]:
    """Reviews as the report names them: author, date, first words, id."""
    lines = []
    for review in reviews:
        words = (review.get("text") or f"{review['rating']} stars without words").split()
        start = " ".join(words[:FIRST_WORDS]) + (" …" if len(words) > FIRST_WORDS else "")
        lines.append(f"{review['author']}, {calendar_day(review)}, “{start}” ({review['id']})")
    return lines


def _counts(ledger: Ledger) -> Iterator[str]:
    """The numbers of reviews that are new, changed, unchanged, left out or not served."""
    before, merged = ledger.before, ledger.reviews
    both = [(before[id], merged[id]) for id in before.keys() & merged.keys() if before[id] != merged[id]]
    changes = Counter(
        CHANGED.get(key, f"{key} changed")
        for old, new in both
        for key in old.keys() | new.keys()
        if old.get(key) != new.get(key)
    )
    hidden = [review for review in merged.values() if review.get("verified") is False]
    counts = {
        "new": len(merged.keys() - before.keys()),
        **dict(sorted(changes.items())),
        "unchanged": sum(merged.get(id) == before.get(id) for id in ledger.exported & merged.keys()),
        **ledger.left_out,
        "not verified or not published, so not served": len(hidden),
    }
    yield from (f"{what}: {number}" for what, number in counts.items() if number)


def _remarks(ledger: Ledger, exports: Sequence[Export], overwritten: Sequence[str]) -> Iterator[str]:
    """Remarks that the owner may want to check."""
    stored, options = ledger.stored, ledger.options
    subjects = {
        "removed, since newer complete exports lack them or their location is not chosen": described(
            ledger.removed
        ),
        "kept away by suppressed.txt": described(ledger.erased),
        "without stars, not imported": [name for export in exports for name in export.without_stars],
        "faulty, not imported": [str(fault) for export in exports for fault in export.failed],
    }
    for subject, names in subjects.items():
        if names:
            yield f"{subject}: {len(names)}: {ledger.named(names)}"
    if (lost := stored.state.suppressed - len(stored.suppressed)) > 0:
        yield f"suppressed.txt has lost {lost} lines since the last import: erased reviews may return"
    yield from (f"not imported: {reviews}, not chosen" for reviews in ledger.locations.others.values())
    yield from ledger.notes
    yield from (note for export in exports for note in export.notes)
    if not options.zone and any("T" in review["date"] for review in ledger.reviews.values()):
        yield "times are in UTC; give the time zone of the business once, as --zone Europe/Berlin"
    if overwritten:
        shown = ledger.named(described(ledger.before[id] for id in overwritten))
        number = len(overwritten)
        yield f"{REVIEWS_FILE} was edited; exports have overwritten fields of {number} reviews: {shown}"
        file = options.data / stored.edited_copy
        yield f"  The edited file is kept as {file}. To change reviews for good, use --redact and --forget."
