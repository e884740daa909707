"""Merging: records of exports become part of the stored reviews.

What exports say is published as it is; the rest of a review is the owner's. A review is there as long as an
export of that T or later has had it. This module is pure: it knows no format, no file and no clock.

Sections: Merge - Locations - Ledger - Report
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from zoneinfo import ZoneInfo

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.reviews import calendar_day, serving_order
from reviewslib.dataset.strict_json import Json
from reviewslib.dataset.text import fold
from reviewslib.importer.cells import in_zone
from reviewslib.importer.erasure import redacted, suppressed_ids, words_to_redact
from reviewslib.importer.exports import Export, NeedsDecision, Question, Record, ReviewInFile, listed
from reviewslib.importer.identity import (
    Register,
    author_digest,
    entry_of,
    is_own,
    short_name,
    without_address,
)
from reviewslib.importer.options import Options
from reviewslib.importer.state import Entry, State, Stored

# ---- Merge ----


class Merged(NamedTuple):
    """What an import leads to."""

    document: dict[str, Json]  # of reviews.json
    state: State
    suppressed: list[str]  # lines to be added to suppressed.txt
    overwritten: list[str]  # ids of reviews of which fields may have been changed by hand
    report: list[str]


def merge(stored: Stored, exports: Sequence[Export], options: Options, contract: Contract) -> Merged:
    """The stored reviews, perhaps none, with the exports merged into them. Raises NeedsDecision."""
    entries = entries_of(stored)
    locations = choose_locations(stored, entries, exports, options)
    name = _name_of_business(stored, locations, options)
    ledger = Ledger(stored, entries, locations, options)
    ledger.merge_exports(exports)
    ledger.publish()
    added = ledger.suppress(stored)
    ledger.redact(stored)
    ledger.remove(exports)
    business = contract.reviews_file.blank("business") | {"name": name}
    document = {"business": business} | stored.document | {"reviews": ledger.listed()}
    changed = [id for id, review in ledger.stored.items() if review != ledger.reviews.get(id)]
    state = ledger.next_state(exports, len({*stored.suppressed, *added}))
    report = [*_counts(ledger, exports), *_remarks(ledger, exports, stored)]
    return Merged(document, state, added, changed if stored.is_edited else [], report)


def entries_of(stored: Stored) -> dict[str, Entry]:
    """What is known of each review by its id, as a copy; what reviews.json tells if the state was lost."""
    if not stored.is_lost:
        return {id: replace(each, native={**each.native}) for id, each in stored.state.reviews.items()}
    return {id: entry_of(review) for id, review in stored.reviews.items() if not is_own(review)}


def _name_of_business(stored: Stored, locations: Locations, options: Options) -> str:
    """The name for a new reviews.json, empty where there is one. Raises NeedsDecision."""
    if stored.document:
        return ""
    titles = {title for location, title in locations.titles.items() if title and location in locations.chosen}
    if options.name or len(titles) == 1:
        return options.name or min(titles)
    lines = ["The files do not say what the business is called.", *listed(sorted(titles)), "Say it once."]
    raise NeedsDecision(Question(lines, [("--name", "YOUR BUSINESS")]))


# ---- Locations: each may be a business of its own ----


class Locations(NamedTuple):
    """Which locations at Google are imported."""

    chosen: set[str]
    titles: dict[str, str]  # of those that need not be asked about again, by number
    notes: list[str]


def choose_locations(
    stored: Stored, entries: Mapping[str, Entry], exports: Sequence[Export], options: Options
) -> Locations:
    """The locations to import. Raises NeedsDecision where only the owner knows."""
    state = stored.state
    records = [each for export in exports for each in export.records if each.key.location]
    numbers = Counter(each.key.location for each in records)
    titles = state.locations | {
        location: title for each in exports for location, title in each.titles.items() if title
    }
    found = set(numbers)
    here = Counter(entries[id].location for id in entries.keys() & stored.reviews.keys())
    current = {*state.chosen} or here.keys() - {""}
    if not current and stored.is_lost and any(entry.source == "google" for entry in entries.values()):
        register = Register(dict(entries))
        current = {each.key.location for each in records if register.known_id(each)}
    elif not current and len(found) == 1:
        current = found
    asked = {*state.locations, *current}
    meant = [
        {name} & (found | asked | ({name} if name.isdigit() else set()))
        or {each for each in titles if fold(titles[each]) == fold(name)}
        for name in options.location
    ]
    chosen = set[str]().union(*meant) or current
    is_open = not meant and bool(found - asked or (found and not chosen))
    if any(len(each) != 1 for each in meant) or (is_open and not options.drop):
        seen = (
            f"{each} {titles.get(each, '')!r}: {numbers[each]} reviews here, {here[each]} stored"
            for each in sorted(found | asked)
        )
        lines = ["Which locations are to be imported? Each may be a business of its own:", *listed(seen)]
        advice = "Name the locations to publish with --location, by number or title. The choice is kept."
        raise NeedsDecision(Question([*lines, advice], [("--location", "YOUR")]))
    notes = [
        f"not imported: {numbers[each]} reviews of location {each} {titles.get(each, '')!r}, not chosen"
        for each in sorted(found - chosen)
    ]
    answered = asked | chosen | (set() if is_open else found)
    return Locations(chosen, {each: titles.get(each, "") for each in sorted(answered)}, notes)


# ---- Ledger: the stored reviews and what is known of each, while records are merged into them ----

FEW_REMOVED, MOST_REMOVED = 3, 0.1  # of the reviews of a location or a source


class Ledger:
    """Takes fields of records, keeps erased reviews away, and removes what exports no longer have."""

    def __init__(self, stored: Stored, entries: dict[str, Entry], locations: Locations, options: Options):
        state = stored.state
        self.options, self.state, self.locations, self.entries = options, state, locations, entries
        self.stored = stored.reviews
        self.reviews = {id: dict(review) for id, review in self.stored.items()}
        self.is_short = state.short_names if options.short_names is None else options.short_names
        self.spoken, self.held = dict(state.spoken), dict(state.held)
        self.named, self.current = set[str](), set[str]()  # ids that records have; of which they are no older
        self.not_taken = Counter[str]()  # records, by reason
        self.removed, self.suppressed = dict[str, ReviewInFile](), dict[str, ReviewInFile]()
        self.notes = [*locations.notes]
        for entry in entries.values():
            if entry.source == "google" and not entry.location and len(locations.chosen) == 1:
                entry.location = min(locations.chosen)

    # Fields

    def merge_exports(self, exports: Sequence[Export]) -> None:
        """Take over what records say, oldest T first, and Google's own before tables."""
        register, chosen = Register(self.entries), self.locations.chosen
        records = [each for export in exports for each in export.records if each.key.format != "table"]
        if len(chosen) == 1:  # pages of the API need not name it
            here = min(chosen)
            records = [
                each if each.key.location else replace(each, key=each.key._replace(location=here))
                for each in records
            ]
        google = [each for each in records if each.key.location in chosen | {""}]
        # Of one review in two accounts the smaller name comes last: the order of files does not matter.
        google.sort(key=lambda each: each.key.resource_name, reverse=True)
        google.sort(key=lambda each: (each.time, each.updated))
        for record, id in register.identify(google):
            self._update(id, record)
        entries = self.entries.values()
        has_google = bool(chosen) or any(each.source == "google" and not each.is_row for each in entries)
        for export in sorted(exports, key=lambda each: max((r.time for r in each.records), default="")):
            rows = [each for each in export.records if each.key.format == "table"]
            ours = [each for each in rows if not has_google or each.key.source != "google"]
            self.not_taken["rows of google in tables, left out"] += len(rows) - len(ours)
            for record, id in register.identify(ours):
                self._update(id, record, may_clear=record.key.source in export.speaks)

    def _update(self, id: str, record: Record, *, may_clear: bool = True) -> None:
        """Take the fields of a record that are no older than what is stored."""
        entry, is_new = self.entries[id], id not in self.reviews
        if not (said := record.review):
            entry.seen = max(entry.seen, record.time)
            return
        self.named.add(id)
        if is_new:
            self.reviews[id] = dict.fromkeys(("id", "author", "rating", "date", "text", "source"))
            self.reviews[id] |= {"id": id, "source": entry.source}
        elif entry.row and record.key.format != "table":  # Google's own export replaces the row of a table
            is_new, entry.row, entry.text = True, "", ""
        review = self.reviews[id]
        if is_new or record.time >= entry.seen:
            entry.location = record.key.location or entry.location
            entry.created, entry.author = record.created, author_digest(said["author"])
            review["author"] = without_address(said["author"])
            self._take_reply(entry, review, record, may_clear=may_clear or is_new)
            if "author_avatar_url" in said:
                review["author_avatar_url"] = said["author_avatar_url"]
        if is_new or (record.updated, record.time) >= (entry.updated, entry.seen):
            self.current.add(id)
            entry.updated = record.updated
            review |= {key: said[key] for key in ("rating", "text", "source_url", "verified") if key in said}
        entry.seen = max(entry.seen, record.time)

    def _take_reply(self, entry: Entry, review: ReviewInFile, record: Record, *, may_clear: bool) -> None:
        """Take the reply of a record; that a table has none says nothing, unless it is complete."""
        said = record.review or {}
        if reply := said.get("owner_reply"):
            is_same = (review.get("owner_reply") or {}).get("text") == reply["text"]
            entry.replied = record.replied or (entry.replied if is_same else "")
            review["owner_reply"] = dict(reply)
        elif "owner_reply" in said and may_clear:
            entry.replied, review["owner_reply"] = "", None

    def publish(self) -> None:
        """Write dates in the zone of the business, and names and pictures as the owner wants them."""
        zone = ZoneInfo(self.options.zone or self.state.zone or "UTC")
        for id in self.reviews.keys() & self.entries.keys():
            entry, review = self.entries[id], self.reviews[id]
            review["date"] = in_zone(entry.created, zone)
            if reply := review.get("owner_reply"):
                review["owner_reply"] = {"text": reply["text"], "date": in_zone(entry.replied, zone) or None}
            if self.is_short:
                review["author"] = short_name(review["author"])
            if self.options.avatars is False:
                review.pop("author_avatar_url", None)
            if review.get("verified", True) is None:
                del review["verified"]

    # Erasure

    def suppress(self, stored: Stored) -> list[str]:
        """Forget the reviews that suppressed.txt means; the lines to be added to it."""
        ids, added = suppressed_ids(self.reviews, self.entries, stored.suppressed)
        for id in sorted(ids):
            self.suppressed[id] = self.reviews.pop(id, {})
            self.entries.pop(id, None)
        return added

    def redact(self, stored: Stored) -> None:
        """Replace the words that redacted.txt names."""
        for id, words in words_to_redact(stored.redactions, self.entries):
            if review := self.reviews.get(id):
                review["text"] = review.get("text") and redacted(review["text"], words)
                if reply := review.get("owner_reply"):
                    review["owner_reply"] = reply | {"text": redacted(reply["text"], words)}

    # Presence

    def remove(self, exports: Sequence[Export]) -> None:
        """Remove what the newest exports that speak no longer have, unless the brake holds it back."""
        chosen, ids = self.locations.chosen, defaultdict[str, list[str]](list)
        for id in sorted(self.reviews.keys() & self.entries.keys()):
            speaker = self.entries[id].speaker
            if self.entries[id].seen >= self.spoken.get(speaker, ""):
                ids[speaker].append(id)
            else:
                self._take_away([id])
        for speaker, times in sorted(self._speaking(exports).items()):
            if speaker in chosen or (speaker in self.sources and not (chosen and speaker == "google")):
                self._apply(speaker, ids[speaker], times)
        if chosen and chosen <= self.spoken.keys():  # reviews of Google whose location nobody knows
            self._apply("google", ids["google"], {min(self.spoken[each] for each in chosen)})
        for location in sorted(ids.keys() - chosen - self.sources) if chosen else ():
            reason = f"location {location} {self.state.locations.get(location, '')!r} is not chosen"
            self._take_unless_many(ids[location], ids[location], reason)

    @property
    def sources(self) -> set[str]:
        """Where the reviews that are known were published."""
        return {entry.source for entry in self.entries.values()}

    def _speaking(self, exports: Sequence[Export]) -> dict[str, set[str]]:
        """The T that speak for locations and sources, and those held back that are to be looked at again."""
        speaking = defaultdict[str, set[str]](set)
        for export in exports:
            for speaker, time in export.speaks.items():
                speaking[speaker].add(time)
            for record in export.records:  # another part of an export whose removals are held back
                speaker = record.key.location or record.key.source
                if record.time == self.held.get(speaker):
                    speaking[speaker].add(record.time)
        for speaker, time in self.held.items() if self.options.allow_removals else ():
            speaking[speaker].add(time)
        return speaking

    def _apply(self, speaker: str, ids: Sequence[str], times: Collection[str]) -> None:
        """Remove what no export of one of these T or later has had."""
        for time in sorted(each for each in times if each > self.spoken.get(speaker, "")):
            present = [id for id in ids if id in self.reviews]
            gone = [id for id in present if self.entries[id].seen < time]
            title = self.locations.titles.get(speaker) or speaker
            reason = f"the export of {time[:10]} does not have them ({title})"
            if self._take_unless_many(gone, present, reason):
                self.spoken[speaker] = time
                if self.held.get(speaker, "") <= time:
                    self.held.pop(speaker, None)
            else:
                self.held[speaker] = max(time, self.held.get(speaker, ""))

    def _take_unless_many(self, gone: Sequence[str], present: Sequence[str], reason: str) -> bool:
        """Remove reviews of a location or a source, unless they are many; whether they are removed."""
        is_many = len(gone) > FEW_REMOVED and len(gone) > MOST_REMOVED * len(present)
        if (is_many or 0 < len(gone) == len(present)) and not self.options.allow_removals:
            names = some([describe(self.reviews[id]) for id in gone], is_verbose=self.options.verbose)
            self.notes.append(f"{len(gone)} of {len(present)} reviews stay, although {reason}: {names}")
            self.notes.append("  If they are really gone, run the import again with --allow-removals.")
            return False
        self._take_away(gone)
        return True

    def _take_away(self, ids: Iterable[str]) -> None:
        for id in ids:
            review = self.reviews.pop(id)
            if id in self.stored:
                self.removed[id] = review
            else:
                self.not_taken["not in a newer complete export, so not taken from an older one"] += 1

    # Results

    def listed(self) -> list[ReviewInFile]:
        """The reviews in the order in which they are served; as they stood if none has changed."""
        if self.reviews == self.stored:
            return list(self.stored.values())
        return sorted(self.reviews.values(), key=serving_order, reverse=True)

    def next_state(self, exports: Sequence[Export], suppressed: int) -> State:
        """The state after this import, with so many lines in suppressed.txt."""
        options, state = self.options, self.state
        return replace(
            state,
            zone=options.zone or state.zone,
            short_names=self.is_short,
            avatars=state.avatars if options.avatars is None else options.avatars,
            chosen=sorted(self.locations.chosen),
            locations=self.locations.titles,
            headers=state.headers | {each.header: each.settings for each in exports if each.header},
            spoken=self.spoken,
            held=self.held,
            suppressed=suppressed,
            reviews=self.entries,
        )


# ---- Report: counts, then a line for each thing that the owner may want to look at ----

CHANGED = {"rating": "stars changed", "owner_reply": "reply changed"}
SHORTEST_SHARED_TEXT = 40  # characters that two reviews do not share by chance
FIRST_WORDS, FEW_NAMED = 8, 3


def describe(review: ReviewInFile) -> str:
    """A review as the report names it: author, date, first words, id."""
    words = (review.get("text") or f"{review['rating']} stars without words").split()
    start = " ".join(words[:FIRST_WORDS]) + (" …" if len(words) > FIRST_WORDS else "")
    return f"{review['author']}, {calendar_day(review)}, “{start}” ({review['id']})"


def some(names: Sequence[str], *, is_verbose: bool) -> str:
    """A few of the names in one line, or all of them."""
    named = [*names]
    shown = named if is_verbose else named[:FEW_NAMED]
    return "; ".join(shown) + (f"; and {len(named) - len(shown)} more" if shown != named else "")


def _counts(ledger: Ledger, exports: Sequence[Export]) -> Iterator[str]:
    """Numbers of reviews by what happens to them."""
    stored, merged = ledger.stored, ledger.reviews
    named = ledger.named & merged.keys() & stored.keys()
    changes = Counter(
        CHANGED.get(key, f"{key} changed")
        for id in sorted(stored.keys() & merged.keys())
        for key in merged[id].keys() | stored[id].keys()
        if stored[id].get(key) != merged[id].get(key)
    )
    counts = {
        "new": len(merged.keys() - stored.keys()),
        **changes,
        "unchanged": sum(merged[id] == stored[id] for id in named & ledger.current),
        "older than what is stored, left alone": len(named - ledger.current),
        **ledger.not_taken,
        "the same as another row of its table": sum(each.doubled for each in exports),
        "not verified or not published, so not served": sum(
            review.get("verified") is False for review in merged.values()
        ),
    }
    yield from (f"{what}: {number}" for what, number in counts.items() if number)


def _remarks(ledger: Ledger, exports: Sequence[Export], stored: Stored) -> Iterator[str]:
    """What the owner may want to look at."""
    erased = [review for id, review in ledger.suppressed.items() if id in ledger.stored]
    named = {
        "removed, since a newer complete export does not have them": map(describe, ledger.removed.values()),
        "kept away by suppressed.txt": map(describe, erased),
        "without stars, not imported": (each for export in exports for each in export.without_stars),
        "faulty, not imported": (str(fault) for export in exports for fault in export.failed),
    }
    for what, those in named.items():
        if names := list(those):
            yield f"{what}: {len(names)}: {some(names, is_verbose=ledger.options.verbose)}"
    if others := len(ledger.suppressed) - len(erased):
        yield f"kept away by suppressed.txt, not stored: {others}"
    if len(stored.suppressed) < stored.state.suppressed:
        gone = stored.state.suppressed - len(stored.suppressed)
        yield f"suppressed.txt has lost {gone} lines since the last import: what they kept away may return"
    yield from ledger.notes
    yield from (note for export in exports for note in export.notes)
    authors = {record.review["author"] for export in exports for record in export.records if record.review}
    if addresses := sorted(author for author in authors if author != without_address(author)):
        yield f"authors with an e-mail address, of which only the name is taken: {len(addresses)}"
    by_text = defaultdict[str, list[str]](list)
    for id, review in sorted(ledger.reviews.items()):
        if len(text := review.get("text") or "") >= SHORTEST_SHARED_TEXT:
            by_text[fold(text)].append(id)
    for ids in by_text.values():
        if len(ids) > 1 and not ledger.stored.keys() >= {*ids}:
            yield f"the same text in several reviews: {', '.join(ids)}; --forget ID removes one for good"
