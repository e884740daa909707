"""Merging: records of exports become part of the stored reviews.

An id is given once and kept for ever. A field that was changed by hand stays. The same records lead to the
same reviews, whatever the order of files. This module is pure: it knows no format, no file and no clock.

Sections, in the order in which `merge` goes: Merge - Locations - Valid records - Complete exports -
Ledger - Suppression - Brakes - Report
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from reviewslib.dataset.contract import Contract, Fault, quoted
from reviewslib.dataset.insights import value_digest
from reviewslib.dataset.reviews import calendar_day, review_violations, serving_order
from reviewslib.dataset.strict_json import Json, encode
from reviewslib.dataset.text import fold
from reviewslib.importer.cells import rezoned
from reviewslib.importer.exports import Export, Exports, NeedsDecision, Record, ReviewInFile, latest, question
from reviewslib.importer.options import Options
from reviewslib.importer.state import Entry, State, Stored, digest, match_key, row_digest, short_name

# ---- Merge ----


def merge(stored: Stored, exports: Exports, contract: Contract) -> tuple[dict[str, Json], State, list[str]]:
    """The stored reviews, perhaps none, with the exports merged into them; the state; the report.

    `exports` are finished. Nothing is removed of a location of which the state knows no review.
    Raises NeedsDecision.
    """
    document, options = stored.document, exports.options
    ledger = Ledger(stored.in_zone(options.zone) if options.rewrite_dates else stored, options)
    state = ledger.state
    locations = _chosen_locations(exports, ledger)
    titles = {each: title for each, title in exports.titles.items() if each in locations}
    name = options.name or " ".join(set(titles.values()))
    is_open = not locations and exports.titles  # the question of the location comes first
    if not (document or options.name or is_open) and len(set(titles.values())) != 1:
        exports.questions.append(question("name", sorted(titles.values())))
    if exports.questions:
        raise NeedsDecision(*exports.questions)
    counted = len(exports.failed) if options.drop else 0  # of files that were refused or taken one by one
    chosen = [each for each in exports.records if each.location in locations | {""}]
    records = _valid_records(chosen, exports, contract)
    refuse_failures(exports.failed[counted:], len(records))
    complete = find_complete(state, exports, locations, ledger.known_locations)
    ledger.merge_records(_in_order(records, complete.exports), complete)
    ledger.assign_location({each.location for each in exports.records} - {""})
    ledger.suppress(state.suppressed_aliases)
    ledger.remove(complete.current)
    if not options.allow_removals:
        _refuse_removals(complete.current, ledger)
    _refuse_duplicates(ledger)
    business = contract.reviews_file.blank("business") | {"name": name}
    merged = {"business": business} | document | {"reviews": ledger.listed()}
    known = {id: entry for id, entry in ledger.entries.items() if entry.digests or entry.location}
    after = replace(
        state,
        zone=options.zone,
        names="short" if options.short_names else "full",
        avatars="yes" if options.avatars else "",
        locations=sorted(ledger.chosen) if options.location else state.locations,
        headers=state.headers | exports.csv_settings,
        complete=complete.times,
        multipart=complete.multipart,
        titles=state.titles | titles,
        suppressed_aliases=ledger.suppressed_aliases,
        exports=_remembered_exports(complete, state, exports.damaged_exports, ledger.suppressed),
        reviews={id: entry for id, entry in known.items() if id not in ledger.suppressed},
    )
    if merged != document:
        changed = {id: entry for id, entry in stored.state.reviews.items() if entry != after.reviews.get(id)}
        after.earlier = {id: entry for id, entry in changed.items() if id not in ledger.suppressed}
    return merged, after, [*_report(ledger, exports), *_details(records, ledger)]


# ---- Locations: another one is another business ----


def _chosen_locations(exports: Exports, ledger: Ledger) -> set[str]:
    """The locations to be imported; a warning names the others.

    Asks unless the directory knows them, or all were named, now or earlier.
    """
    ids, options, state = defaultdict[str, set[str]](set), exports.options, ledger.state
    for record in exports.records:
        ids[record.location].add(record.native_id)
    found, titles = ids.keys() - {""}, state.titles | exports.titles
    known = ledger.known_locations or ledger.recognised_locations(exports.records)
    by_title = defaultdict[str, set[str]](set)
    for each in found | known:
        by_title[fold(titles.get(each, ""))].add(each)
    meant = [{name} & (found | known) or by_title[fold(name)] for name in options.location]
    chosen = set[str]().union(*meant) or {*state.locations} or (options.drop and known) or found | known
    new = chosen & found - known
    is_open = any(len(each) != 1 for each in meant) or bool(found and not chosen & found and not options.drop)
    has_others = bool(known) or len(new) > 1 or ledger.is_state_lost
    is_named = chosen == {*state.locations} or (options.location and known <= chosen)
    stored = Counter(ledger.entries[id].location for id in ledger.stored)
    lines = {
        each: f"{each} {titles.get(each, '')!r}: {len(ids[each])} reviews here, {stored[each]} stored"
        for each in sorted(found | known)
    }
    if is_open or (new and has_others and not is_named):
        exports.questions.append(question("location", lines.values()))
        return set()
    others = [lines[each] for each in sorted(found - chosen) if not options.location]
    exports.warnings += [f"not imported, since --location has not named it: {each}" for each in others]
    ledger.chosen = chosen
    return chosen


# ---- Valid records: those that the daemon would serve, in one order ----


def _valid_records(records: Iterable[Record], exports: Exports, contract: Contract) -> list[Record]:
    """The records that the daemon would serve; the others are noted."""
    valid = []
    for record in records:
        id = f"{record.review['source']}-{record.native_id or 24 * '0'}"
        review: ReviewInFile = {"id": id, **record.review, "rating": record.review["rating"] or 1}
        document = {"business": {"name": "-"}, "reviews": [review]}
        faults = [*contract.reviews_file.violations(document), *review_violations(document)]
        for path, reason in faults[:1]:
            exports.fail(record.position, f"{'/'.join(map(str, path[2:]))}: {reason}", record.export)
        valid += [record] if not faults else []
    return valid


def _in_order(records: Collection[Record], exports: Mapping[str, Export]) -> list[Record]:
    """The rows of CSV as they stand, since they have no times, then Google's reviews, oldest export first.

    Ties, such as one review in two accounts, go to the smaller resource name, so that the result does not
    depend on the order of files.
    """
    rows, google = (
        [each for each in records if bool(each.export) is is_google] for is_google in (False, True)
    )
    google = [replace(each, exported=exports[each.export].times[each.location]) for each in google]
    google.sort(key=lambda each: (each.resource_name, encode(each.review)), reverse=True)
    return [*rows, *sorted(google, key=lambda each: (each.exported, each.updated))]


# ---- Complete exports: what is not in them was deleted ----

MOST_REMEMBERED = 4  # exports of which another part may come


@dataclass
class CompleteExports:
    """Which exports have every review of a location."""

    exports: dict[str, Export]  # of this command, with their parts that came before
    times: dict[str, str]  # time of the newest complete one by location
    newest: dict[str, str]  # likewise, with those of which part 001 came alone and may be all
    multipart: dict[str, str]  # as in the state
    current: dict[str, list[Export]]  # the newest ones by location, if they are of this command


def find_complete(state: State, exports: Exports, locations: set[str], known: set[str]) -> CompleteExports:
    """Which exports of these locations are complete; `known` are the locations of stored reviews.

    Part 001 alone is, unless the location has ever come in more parts; then it has to be allowed. A warning
    tells of each export that is not.
    """
    merged = {key: _with_earlier_parts(state.exports.get(key), each) for key, each in exports.known.items()}
    multipart = state.multipart | exports.multipart

    def without_multipart(times: Mapping[str, str]) -> dict[str, str]:
        return {each: time for each, time in times.items() if each not in multipart}

    before = latest(*(each.complete_times() for each in state.exports.values()))
    complete = state.complete
    newest = latest(complete, without_multipart({each: before[each] for each in known & before.keys()}))
    removing = list[tuple[Export, dict[str, str]]]()
    for key in sorted(merged.keys() - exports.damaged_exports):
        export = merged[key]
        times = {each: time for each, time in export.complete_times().items() if each in locations}
        is_sure = exports.options.allow_removals or not export.is_first_alone()
        removed_from = times if is_sure else without_multipart(times)
        removing.append((export, removed_from))
        complete, newest = latest(complete, times if is_sure else {}), latest(newest, removed_from)
        if removed_from != times:
            hint = "import its other parts, too, or say --allow-removals if there are none"
            reason = f"since others came in more parts than one; {hint}"
            exports.warnings.append(f"{key} removes nothing, {reason}")
        if export.has_gap():
            numbers = ", ".join(sorted(export.parts))
            exports.warnings.append(f"{key} removes nothing, since of its parts only {numbers} came")
    current = {
        each: ones
        for each in known & newest.keys()
        if (ones := [export for export, times in removing if times.get(each) == newest[each]])
    }
    return CompleteExports(merged, complete, newest, multipart, current)


def _with_earlier_parts(earlier: Export | None, export: Export) -> Export:
    """An export with the parts of it that came before; a part with other content is of another export."""
    if earlier is None or any(earlier.parts.get(each, new) != new for each, new in export.parts.items()):
        return export
    folders = {
        each: sorted({*earlier.folders.get(each, ()), *export.folders.get(each, ())})
        for each in earlier.folders | export.folders
    }
    return Export(earlier.parts | export.parts, latest(earlier.times, export.times), folders, earlier.ids)


def _remembered_exports(
    complete: CompleteExports, state: State, damaged: Collection[str], suppressed: Collection[str]
) -> dict[str, Export]:
    """The exports of which another part may come and tell something."""
    parts = {key: each for key, each in complete.exports.items() if each.parts and key not in damaged}
    known = state.exports | parts
    by_time = sorted(known, key=lambda key: (max(known[key].times.values(), default=""), key))
    ids = {key: [id for id in known[key].ids if id not in suppressed] for key in by_time[-MOST_REMEMBERED:]}
    return {key: replace(known[key], ids=ids[key]) for key in ids}


# ---- Ledger: ids, fields, what is removed ----

FORMATS = ("takeout", "api", "csv")  # what gives native ids; the one whose ids are preferred first
DERIVED_ID = re.compile(r"(.*-[0-9a-f]{24})(?:-[0-9]+)?", re.DOTALL)
# Of a row without an id: source, an id without its number, `Entry.row`, digests of text and stars.
RowKey = tuple[str, str, str, str, str]


def _address(word: str) -> list[str]:
    """What stands before and after the @ of an e-mail address such as “<bob@example.com>”; else empty."""
    parts = word.strip("<>()[],;:").split("@")
    return parts if len(parts) == 2 and parts[0] and "." in parts[1][1:-1] else []


def without_address(author: str) -> str:
    """The name without an e-mail address; where that is all, what stands before its @."""
    words = author.split()
    return " ".join(word for word in words if not _address(word)) or _address(words[0])[0]


class Ledger:
    """The stored reviews and what is known of each, while records are merged into them.

    It gives ids, takes fields that an export has anew, and removes what exports no longer have.
    """

    def __init__(self, stored: Stored, options: Options):
        self.state, self.stored, self.is_short = stored.state, stored.reviews, bool(options.short_names)
        self.suppressed_lines = set(stored.suppressed)
        self.chosen = set[str]()  # locations
        self.reviews = {id: dict(review) for id, review in self.stored.items()}
        entries = {id: stored.entry(review) for id, review in self.stored.items()} | self.state.reviews
        self.entries = {id: each.copy() for id, each in entries.items()}
        self.known_locations = {entry.location for entry in self.entries.values()} - {""}
        self.is_state_lost = not self.state.reviews and "google" in {each.source for each in entries.values()}
        self.exported = dict[str, str]()  # time of the newest export that has a review, by id
        self.current = set[str]()  # ids of which a record is no older than what is stored
        self.without_stars = dict[str, Record]()
        self.edited = set[tuple[str, str]]()  # id and field that were changed by hand
        self.removed, self.suppressed = dict[str, ReviewInFile](), dict[str, ReviewInFile]()
        self.suppressed_aliases = dict[str, str]()  # as in the state
        self._by_native_id = dict[tuple[str, str], str]()  # and source
        self._by_match_key = defaultdict[str, list[str]](list)
        self._by_row_key = defaultdict[str, list[str]](list)
        for id, entry in self.entries.items():
            self._by_native_id |= {(entry.source, native_id): id for native_id in entry.native.values()}
            self._by_match_key[entry.match_key].append(id)
            if (derived := DERIVED_ID.fullmatch(id)) and not entry.native:
                self._by_row_key[entry.row or derived[1]].append(id)

    def recognised_locations(self, records: Sequence[Record]) -> set[str]:
        """The locations of records that are stored, for a state that knows none."""

        def is_stored(record: Record) -> bool:
            id = f"{record.review['source']}-{record.native_id}"
            return id in self.entries or _match_key(record) in self._by_match_key

        return {each.location for each in records if is_stored(each)} - {""}

    def merge_records(self, records: Sequence[Record], complete: CompleteExports) -> None:
        """Take over what records say, and note which reviews each export has."""
        for format in FORMATS:  # Takeout's ids are given first, so that they are kept
            self._give_ids(format, [each for each in records if each.format == format and each.native_id])
        derived = self._derive_ids({_row_key(each): each for each in records if not each.native_id})
        ids = defaultdict[str, set[str]](set)
        for record in records:
            native = record.review["source"], record.native_id
            id = self._by_native_id[native] if record.native_id else derived[_row_key(record)]
            self.exported[id] = max(record.exported, self.exported.get(id, ""))
            ids[record.export].add(id)
            if record.review["rating"] is None:
                self.without_stars[id] = record
            # What a newer complete export does not have was deleted since.
            elif id in self.reviews or record.exported >= complete.newest.get(record.location, ""):
                self._update(id, record)
        for key, export in complete.exports.items():
            export.ids = sorted(ids[key].union(export.ids))
            for entry in (self.entries[id] for id in export.ids if id in self.entries):
                entry.seen = max(entry.seen, export.times.get(entry.location, ""))

    def _give_ids(self, format: str, records: Iterable[Record]) -> None:
        """Find the reviews of native ids by match key, or give them ids."""
        newest = {(each.review["source"], each.native_id): each for each in records}
        unknown = sorted(newest.keys() - self._by_native_id.keys())
        keys = {native: _match_key(newest[native]) for native in unknown}
        frequency = Counter(keys.values())
        for (source, native_id), key in keys.items():
            id, same, record = f"{source}-{native_id}", list[str](), newest[source, native_id]
            if key and frequency[key] == 1 and id not in self.entries and format != "csv":
                same = [each for each in self._by_match_key[key] if self._may_be(each, record)]
            id = same[0] if len(same) == 1 else id
            entry = self.entries.setdefault(id, Entry(source, match_key=key))
            entry.native[f"{format} {record.location}" if format in entry.native else format] = native_id
            self._by_native_id[source, native_id] = id
            self._by_match_key[key].append(id)

    def _may_be(self, id: str, record: Record) -> bool:
        """Whether a review with a record's match key has no id of its format, or has moved with its text."""
        entry = self.entries[id]
        has_moved = "" != entry.location != record.location != ""
        is_same_text = self._content_digests(id)[0] == value_digest(record.review.get("text"))
        return record.format not in entry.native or (has_moved and is_same_text)

    def _derive_ids(self, rows: Mapping[RowKey, Record]) -> dict[RowKey, str]:
        """Rows of one author and day: those of the same text and stars keep their ids, then the others."""
        ids, groups = dict[RowKey, str](), defaultdict[tuple[str, str, str], list[RowKey]](list)
        for row in sorted(rows):
            groups[row[:3]].append(row)
        for (source, base, moved), left in groups.items():
            known = {*self._by_row_key[base], *self._by_row_key[moved]}
            free = dict.fromkeys(sorted(known))
            ends = ["", *(f"-{number}" for number in range(2, len(free) + len(left) + 1))]
            numbered = [f"{base}{end}" for end in ends]
            in_wrong_zones = {_row_key(rows[row], zone)[1] for row in left for zone in self.state.zones}
            earlier = [f"{each}{end}" for each in in_wrong_zones for end in ends]
            for length in (2, 1):  # text and stars, then the text alone
                by_content = defaultdict[tuple[str, ...], deque[str]](deque)
                for id in free:
                    by_content[self._content_digests(id)[:length]].append(id)
                for row in left:
                    if same := by_content[row[3:][:length]]:
                        ids[row] = same.popleft()
                        del free[ids[row]]
                left = [row for row in left if row not in ids]
            # A suppressed review stays away: each row that is not stored as it is may be it.
            suppressed = [id for id in (*numbered, *earlier) if digest(source, id) in self.suppressed_lines]
            fresh = [id for id in numbered if id not in self.entries]
            ids |= zip(left, suppressed[:1] * len(left) or [*free, *fresh], strict=False)
        for (source, *_), id in ids.items():
            self.entries.setdefault(id, Entry(source))
        return ids

    def _content_digests(self, id: str) -> tuple[str, str]:
        """Digests of text and stars, as last imported."""
        review, digests = self.reviews.get(id, {}), self.entries[id].digests
        text, stars = (digests.get(key, value_digest(review.get(key))) for key in ("text", "rating"))
        return text, stars

    def _update(self, id: str, record: Record) -> None:
        """Take the fields of a record that are newer than what is stored."""
        entry = self.entries[id]
        if id not in self.reviews:  # new, or one that was removed and returns
            self.reviews[id] = {"id": id}
            entry.naive = [*record.naive]
            entry.updated = entry.replied = entry.seen = ""
            entry.digests = {}
        is_current = record.format == "csv" or record.updated >= entry.updated
        # Nothing in an export tells when a name changed, a reply was removed or the business moved.
        is_news = record.format == "csv" or record.exported >= entry.seen
        if is_news or not entry.location:
            entry.location = record.location or entry.location
        if is_current:
            self.current.add(id)
            entry.updated = max(entry.updated, record.updated)
        for key, value in record.review.items():
            if key in ("source", "date"):  # as first imported
                self.reviews[id].setdefault(key, value)
            elif key == "owner_reply":
                if is_news and (value or entry.replied < record.exported):
                    if value:  # of which the export may not have the date
                        known = self.reviews[id].get(key) or {}
                        date = known.get("date") if known.get("text") == value["text"] else None
                        value = value | {"date": value.get("date", date)}
                    self._set_field(id, key, value)
                    entry.replied = record.replied
                    others = [each for each in entry.naive if each != key]
                    entry.naive = [*others, *(each for each in record.naive if each == key)]
            elif key == "author":
                if is_news and is_current:
                    entry.author = digest(entry.source, fold(value))
                    name = without_address(value)
                    self._set_field(id, key, short_name(name) if self.is_short else name)
            elif is_current:
                self._set_field(id, key, value)
        entry.seen = max(entry.seen, record.exported)

    def _set_field(self, id: str, key: str, value: Json) -> None:
        """Set a field as an export has it, unless it was changed by hand."""
        review, digests = self.reviews[id], self.entries[id].digests
        stored, imported = review.get(key), digests.get(key)
        # A reply may have members that were added by hand.
        own = {part: stored.get(part) for part in ("text", "date")} if isinstance(stored, dict) else stored
        digests[key] = value_digest(value)
        self.edited.discard((id, key))
        if own == value:
            review.setdefault(key, value)
        elif imported == value_digest(own) or (own is None and imported is None):
            review[key] = stored | value if stored and isinstance(value, dict) else value
        else:
            self.edited.add((id, key))

    def assign_location(self, found: set[str]) -> None:
        """Take reviews of Google whose location the lost state knew for those of the only one found."""
        for entry in self.entries.values() if len(found) == 1 and not self.known_locations else ():
            if entry.source == "google":
                entry.location = entry.location or min(found)

    def suppress(self, aliases: Mapping[str, str]) -> None:
        """Forget the reviews that suppressed.txt means; `aliases` as in the state."""
        lines = {alias: line for alias, line in aliases.items() if line in self.suppressed_lines}
        found, suppressed = dict(lines), set[str]()
        lines |= {line: line for line in self.suppressed_lines}
        for _ in range(2) if lines else ():  # again, for what the first ones are under other ids
            for id, entry in self.entries.items():
                native_ids = {id, id.removeprefix(f"{entry.source}-"), *entry.native.values()}
                digests = sorted(digest(entry.source, each) for each in native_ids)
                digests += [entry.match_key] if entry.match_key else []
                matching = [lines[each] for each in (*digests, f"author {entry.author}") if each in lines]
                if matching and id not in suppressed:
                    suppressed.add(id)
                    lines |= {each: lines.get(each, matching[0]) for each in digests}
                    found |= {each: lines[each] for each in digests} | {line: line for line in matching}
        self.suppressed_aliases = dict(sorted(found.items()))
        self.suppressed = {id: self.reviews.pop(id, {}) for id in sorted(suppressed)}

    def remove(self, current: Mapping[str, Sequence[Export]]) -> None:
        """Remove what is older than the newest complete exports of its location, and in none of them."""
        present = {each: {id for export in exports for id in export.ids} for each, exports in current.items()}
        for id in sorted(self.reviews):
            entry = self.entries[id]
            if entry.location in current and id not in present[entry.location]:
                time = current[entry.location][0].times[entry.location]
                if max(entry.updated, self.exported.get(id, "")) < time:
                    self.removed[id] = self.reviews.pop(id)

    def listed(self) -> list[ReviewInFile]:
        """The reviews in the order in which they are served; as they stood if none has changed."""
        if self.reviews == self.stored:
            return list(self.stored.values())
        return sorted(self.reviews.values(), key=serving_order, reverse=True)


def _match_key(record: Record) -> str:
    return match_key(record.review["source"], record.created, record.review["author"])


def _row_key(record: Record, zone: str = "") -> RowKey:
    """What tells rows without ids apart; in another zone with the day that it has there."""
    review, source, day = record.review, record.review["source"], calendar_day(record.review)
    if zone:
        day = rezoned(review["date"], zone, is_naive="date" in record.naive)[:10]
    author = fold(review["author"])
    base = f"{source}-{digest(source, author, day)[:24]}"
    content = value_digest(review.get("text")), value_digest(review["rating"])
    return source, base, row_digest(digest(source, author), day), *content


# ---- Suppression: the lines of suppressed.txt by which a review or an author stays away ----


def suppression_lines(stored: Stored, id: str) -> list[str]:
    """The lines that keep away the review with this id, or of this address. Raises NeedsDecision."""
    path = id.partition("/reviews/")[2]
    forms = (id, path, re.split("[?#]", path)[0])
    for each in (*forms, *map(unquote, forms)):
        if review := stored.reviews.get(each):
            entry = stored.entry(review)
            return [digest(entry.source, native_id) for native_id in entry.native.values() or [each]]
    raise NeedsDecision(question("unknown id", id=quoted(id)))


def author_suppression_lines(stored: Stored, name: str, source: str) -> list[str]:
    """The line that keeps away all reviews of an author at a source. Raises NeedsDecision."""
    authors = defaultdict[str, set[str]](set)  # digests by source
    for review in stored.reviews.values():
        entry = stored.entry(review)
        if fold(name) == fold(review["author"]) or entry.author == digest(entry.source, fold(name)):
            authors[entry.source].add(entry.author)
    sources = {fold(source)} if source else authors.keys()
    if len(sources) != 1:
        raise NeedsDecision(question("source of author", sorted(authors), name=quoted(name)))
    (source,) = sources
    found = authors[source] or {digest(source, fold(name))}
    if len(found) > 1:
        raise NeedsDecision(question("authors alike", number=len(found), name=quoted(name)))
    return [f"author {each}" for each in found]


# ---- Brakes: what looks like a mistake stops the import ----

MOST_FAILED = 0.1  # of the records of a command
LEAST_FAILED = 3  # of these, unless nothing is left
FEW_REMOVED, MOST_REMOVED_SHARE = 3, 0.1  # of the stored reviews of the locations that an export speaks for
MOST_OF_FEW = 1 / 3  # likewise, however few they are
MOST_DUPLICATES = 0.2  # of the new reviews


def refuse_failures(failed: Sequence[Fault], valid: int) -> None:
    """Raise NeedsDecision if many records are faulty, or all."""
    total = len(failed) + valid
    if len(failed) > MOST_FAILED * total and (len(failed) >= LEAST_FAILED or not valid):
        raise NeedsDecision(question("failures", map(str, failed), failed=len(failed), total=total))


def _refuse_removals(current: Mapping[str, Sequence[Export]], ledger: Ledger) -> None:
    """Raise NeedsDecision if many reviews would be removed."""
    removed, total = ledger.removed, sum(ledger.entries[id].location in current for id in ledger.stored)
    is_many = len(removed) > FEW_REMOVED and len(removed) > MOST_REMOVED_SHARE * total
    if is_many or len(removed) > MOST_OF_FEW * total:
        is_part = any(export.is_first_alone() for exports in current.values() for export in exports)
        kind, lines = "removals by part 001" if is_part else "removals", map(describe, removed.values())
        raise NeedsDecision(question(kind, lines, removed=len(removed), total=total))


def _refuse_duplicates(ledger: Ledger) -> None:
    """Raise NeedsDecision when what is new looks like stored reviews under other ids."""
    stored, reviews, entries = ledger.stored, ledger.reviews, ledger.entries

    def person_and_day(id: str, review: ReviewInFile) -> tuple[str, str, str]:
        return entries[id].source, short_name(fold(review["author"])), calendar_day(review)

    others = {person_and_day(id, stored[id]): id for id in stored.keys() - ledger.exported.keys()}
    new = sorted(reviews.keys() - stored.keys())
    pairs = [(id, other) for id in new if (other := others.get(person_and_day(id, reviews[id])))]
    # Ids of one format are of two reviews.
    pairs = [pair for pair in pairs if entries[pair[0]].native.keys().isdisjoint(entries[pair[1]].native)]
    if pairs and len(pairs) >= MOST_DUPLICATES * len(new):
        lines = map(" and ".join, pairs)
        raise NeedsDecision(question("duplicates", lines, duplicates=len(pairs), new=len(new)))


# ---- Report ----

CHANGED = {"rating": "stars changed", "owner_reply": "reply changed"}
SHORTEST_SHARED_TEXT = 40  # characters that two reviews do not share by chance
FIRST_WORDS = 8
FEW_NAMED = 3  # authors in one line


def describe(review: ReviewInFile) -> str:
    """A review as the report names it: author, date, first words, id."""
    words = (review.get("text") or f"{review['rating']} stars without words").split()
    start = " ".join(words[:FIRST_WORDS]) + (" …" if len(words) > FIRST_WORDS else "")
    return f"{review['author']}, {calendar_day(review)}, “{start}” ({review['id']})"


def _report(ledger: Ledger, exports: Exports) -> Iterator[str]:
    """Numbers of reviews by what happens to them, and which are not imported."""
    stored, merged, removed, suppressed = ledger.stored, ledger.reviews, ledger.removed, ledger.suppressed
    named = ledger.exported.keys() - ledger.without_stars.keys() - removed.keys() - suppressed.keys()
    changes = Counter(
        CHANGED.get(key, f"{key} changed")
        for id in sorted(stored.keys() & merged.keys())
        for key in merged[id]
        if stored[id].get(key) != merged[id][key]
    )
    counts = {
        "new": len(merged.keys() - stored.keys()),
        **changes,
        "unchanged": sum(merged[id] == stored[id] for id in named & ledger.current & stored.keys()),
        "older than what is stored, left alone": len((named & stored.keys()) - ledger.current),
        "deleted since, not taken from an older export": len(named - stored.keys() - ledger.current),
        "removed, since a complete export no longer has them": len(removed),
        "kept away by suppressed.txt": len(suppressed),
        "the same as another row of its file": exports.doubled,
        "faulty, skipped": len(exports.failed),
    }
    yield from (f"{what}: {number}" for what, number in counts.items() if number)
    # The author of what was suppressed earlier is not named once more.
    for what, gone in (("removed", removed), ("kept away", suppressed)):
        yield from (f"{what}: {describe(gone[id])}" for id in gone if id in stored)
    if authors := [record.review["author"] for record in ledger.without_stars.values()]:
        few = authors if exports.options.verbose else authors[:FEW_NAMED]
        yield f"without stars, skipped: {len(authors)} ({', '.join(few)}{', …' * (few < authors)})"
    yield from (f"skipped: {each}" for each in exports.failed)
    yield from exports.skipped
    yield from exports.warnings
    unmatched = sorted(ledger.suppressed_lines.difference(ledger.suppressed_aliases.values()))
    yield from (f"this line of suppressed.txt matches nobody: {each}" for each in unmatched)


def _details(records: Collection[Record], ledger: Ledger) -> Iterator[str]:
    """What the owner may want to look at."""
    authors = (record.review["author"] for record in records)
    if addresses := sum(author != without_address(author) for author in authors):
        yield f"authors named by an e-mail address, of which what stands before the @ is taken: {addresses}"
    edited = sorted(ledger.edited)
    yield from (f"changed by hand and kept: {key} of {id}" for id, key in edited if id in ledger.reviews)
    ids_by_text = defaultdict[str, list[str]](list)
    for id, review in sorted(ledger.reviews.items()):
        ids_by_text[fold(review.get("text") or "")].append(id)
    for text, ids in ids_by_text.items():
        sources = {ledger.entries[id].source for id in ids}
        if len(text) >= SHORTEST_SHARED_TEXT and len(sources) > 1 and not ledger.stored.keys() >= set(ids):
            yield f"the same text at several sources: {', '.join(ids)}; --forget ID removes one for good"
    if unverified := sum(review.get("verified") is False for review in ledger.reviews.values()):
        yield f"not verified, so not served: {unverified}"
