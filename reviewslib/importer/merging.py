"""Merging: records of exports become part of the stored reviews.

An id is given once and kept for ever. A field that was changed by hand stays. The same records lead to the
same reviews, whatever the order of files. This module is pure: it knows no format, no file and no clock.

Sections, in the order in which `merge` goes: Merge - Locations - Sound records - Whole exports -
Ledger - Erasure - Brakes - Report
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from reviewslib.dataset.contract import Contract, Fault, shown
from reviewslib.dataset.insights import value_digest
from reviewslib.dataset.reviews import calendar_day, review_complaints, serving_order
from reviewslib.dataset.strict_json import Json, encode
from reviewslib.dataset.text import fold
from reviewslib.importer.cells import rezoned
from reviewslib.importer.exports import (
    Export,
    Exports,
    Options,
    Record,
    ReviewInFile,
    Said,
    Undecided,
    latest,
    question,
)
from reviewslib.importer.state import (
    Entry,
    State,
    Stored,
    digest,
    entry_of,
    join_key,
    rewritten,
    row_digest,
    short_name,
)

# ---- Merge ----


def merge(stored: Stored, exports: Exports, contract: Contract) -> tuple[dict[str, Json], State, list[str]]:
    """The stored reviews, perhaps none, with the exports merged into them; the state; the report.

    `exports` are closed. Nothing is removed of a location of which the state, perhaps lost, knows no review.
    Raises Undecided.
    """
    document, options = stored.document, exports.options
    ledger = Ledger(rewritten(stored, options.zone) if options.rewrite_dates else stored, options)
    state = ledger.state
    locations = _chosen_locations(exports, ledger)
    titles = {each: title for each, title in exports.titles.items() if each in locations}
    name = options.name or " ".join(set(titles.values()))
    is_open = not locations and exports.titles  # which one is asked for then
    if not (document or options.name or is_open) and len(set(titles.values())) != 1:
        exports.asked.append(question("name", sorted(titles.values())))
    if exports.asked:
        raise Undecided(*exports.asked)
    chosen = [each for each in exports.records if each.location in locations | {""}]
    judged = len(exports.failed) if options.drop else 0  # file by file
    records = _sound(chosen, exports, contract)
    refuse_failures(exports.failed[judged:], len(records))
    whole = judge(state, exports, locations, ledger.located)
    ledger.take_all(_in_order(records, whole.exports), whole)
    ledger.assign_location({each.location for each in exports.records} - {""})
    ledger.erase(state.hidden)
    ledger.remove(whole.current)
    if not options.allow_removals:
        _refuse_removals(whole.current, ledger)
    _refuse_twins(ledger)
    business = contract.reviews_file.blank("business") | {"name": name}
    merged = {"business": business} | document | {"reviews": ledger.listed()}
    after = _state_after(state, exports, ledger, whole)
    after.titles = state.titles | titles
    if merged != document:
        changed = {id: entry for id, entry in stored.state.reviews.items() if entry != after.reviews.get(id)}
        after.earlier = {id: entry for id, entry in changed.items() if id not in ledger.erased}
    return merged, after, [*_report(ledger, exports), *_details(records, ledger)]


def _state_after(state: State, exports: Exports, ledger: Ledger, whole: Whole) -> State:
    """The state after the import; of what was erased nothing is known."""
    known = ((id, entry) for id, entry in ledger.entries.items() if entry.digests or entry.location)
    options = exports.options
    return replace(
        state,
        zone=options.zone,
        names="short" if options.short_names else "full",
        avatars="yes" if options.avatars else "",
        locations=sorted(ledger.chosen) if options.location else state.locations,
        headers=state.headers | {header: said for header, said in exports.said.items() if said != Said()},
        complete=whole.complete,
        parted=whole.parted,
        hidden=ledger.hidden,
        exports=_remembered(whole, state, exports.spoilt, ledger.erased),
        reviews={id: entry for id, entry in known if id not in ledger.erased},
    )


# ---- Locations: another one is another business ----


def _chosen_locations(exports: Exports, ledger: Ledger) -> set[str]:
    """The locations to be imported; a warning names the others.

    Asks unless the directory knows them, or all were named, now or earlier.
    """
    ids, options, state = defaultdict[str, set[str]](set), exports.options, ledger.state
    for record in exports.records:
        ids[record.location].add(record.native_id)
    found, titles = ids.keys() - {""}, state.titles | exports.titles
    known = ledger.located or ledger.recognised(exports.records)
    by_title = defaultdict[str, set[str]](set)
    for each in found | known:
        by_title[fold(titles.get(each, ""))].add(each)
    meant = [{name} & (found | known) or by_title[fold(name)] for name in options.location]
    chosen = set[str]().union(*meant) or {*state.locations} or (options.drop and known) or found | known
    new = chosen & found - known
    is_open = any(len(each) != 1 for each in meant) or bool(found and not chosen & found and not options.drop)
    has_others = bool(known) or len(new) > 1 or ledger.is_lost
    is_named = chosen == {*state.locations} or (options.location and known <= chosen)
    stored = Counter(ledger.entries[id].location for id in ledger.stored)
    told = {
        each: f"{each} {titles.get(each, '')!r}: {len(ids[each])} reviews here, {stored[each]} stored"
        for each in sorted(found | known)
    }
    if is_open or (new and has_others and not is_named):
        exports.asked.append(question("location", told.values()))
        return set()
    others = [told[each] for each in sorted(found - chosen) if not options.location]
    exports.warnings += [f"not imported, since --location has not named it: {each}" for each in others]
    ledger.chosen = chosen
    return chosen


# ---- Sound records: those that the daemon would serve, in one order ----


def _sound(records: Iterable[Record], exports: Exports, contract: Contract) -> list[Record]:
    """The records that the daemon would serve; the others are noted."""
    sound = []
    for record in records:
        id = f"{record.review['source']}-{record.native_id or 24 * '0'}"
        review: ReviewInFile = {"id": id, **record.review, "rating": record.review["rating"] or 1}
        document = {"business": {"name": "-"}, "reviews": [review]}
        faults = [*contract.reviews_file.complaints(document), *review_complaints(document)]
        for path, reason in faults[:1]:
            exports.fail(record.position, f"{'/'.join(map(str, path[2:]))}: {reason}", record.export)
        sound += [record] if not faults else []
    return sound


def _in_order(records: Collection[Record], exports: Mapping[str, Export]) -> list[Record]:
    """The rows of CSV as they stand, since they have no times, then Google's reviews, oldest export first.

    Of equal ones, such as one review in two accounts, the one with the smaller resource name is the last.
    """
    rows = [each for each in records if not each.export]
    dated = [
        replace(each, exported=exports[each.export].times[each.location]) for each in records if each.export
    ]
    dated.sort(key=lambda each: (each.resource_name, encode(each.review)), reverse=True)
    return [*rows, *sorted(dated, key=lambda each: (each.exported, each.updated))]


# ---- Whole exports: what is not in them was deleted ----

MOST_REMEMBERED = 4  # exports of which another part may come


@dataclass
class Whole:
    """Which exports have every review of a location."""

    exports: dict[str, Export]  # of this command, joined with their parts that came before
    complete: dict[str, str]  # time of the newest whole one by location
    newest: dict[str, str]  # likewise, with those of which part 001 came alone and may be all
    parted: dict[str, str]  # as in the state
    current: dict[str, list[Export]]  # the newest ones by location, if they are of this command


def judge(state: State, exports: Exports, locations: set[str], located: set[str]) -> Whole:
    """Which exports of these locations are whole; `located` are the locations of stored reviews.

    Part 001 alone is, unless the location has ever come in more parts; then it has to be allowed. A warning
    tells of each export that is not.
    """
    joined = {key: _joined(state.exports.get(key), export) for key, export in exports.known.items()}
    parted = state.parted | {each: key for each, key in exports.parted.items() if each in locations}
    alone = [each.whole_times() for each in state.exports.values() if each.is_first_alone()]
    complete, newest = state.complete, latest(state.complete, *(_without(times, parted) for times in alone))
    denying = list[tuple[Export, dict[str, str]]]()
    for key, export in joined.items():
        if key in exports.spoilt:
            continue
        whole = {each: time for each, time in export.whole_times().items() if each in locations}
        is_sure = exports.options.allow_removals or not export.is_first_alone()
        denied = whole if is_sure else _without(whole, parted)
        denying.append((export, denied))
        complete, newest = latest(complete, whole if is_sure else {}), latest(newest, denied)
        if denied != whole:
            hint = "import its other parts, too, or say --allow-removals if there are none"
            reason = f"since others came in more parts than one; {hint}"
            exports.warnings.append(f"{key} removes nothing, {reason}")
        if export.has_gap():
            numbers = ", ".join(sorted(export.parts))
            exports.warnings.append(f"{key} removes nothing, since of its parts only {numbers} came")
    current = {
        each: ones
        for each in located & newest.keys()
        if (ones := [export for export, times in denying if times.get(each) == newest[each]])
    }
    return Whole(joined, complete, newest, parted, current)


def _without(times: Mapping[str, str], locations: Collection[str]) -> dict[str, str]:
    return {each: time for each, time in times.items() if each not in locations}


def _joined(earlier: Export | None, export: Export) -> Export:
    """An export with the parts of it that came before; a part with other content is of another export."""
    if earlier is None or any(earlier.parts.get(each, new) != new for each, new in export.parts.items()):
        return export
    folders = defaultdict[str, list[str]](list, earlier.folders)
    for each, inside in export.folders.items():
        folders[each] = sorted({*folders[each], *inside})
    return Export(
        earlier.parts | export.parts, latest(earlier.times, export.times), dict(folders), earlier.ids
    )


def _remembered(
    whole: Whole, state: State, spoilt: Collection[str], erased: Collection[str]
) -> dict[str, Export]:
    """The exports of which another part may come and tell something."""
    parts = {key: export for key, export in whole.exports.items() if export.parts and key not in spoilt}
    known = state.exports | parts
    by_time = sorted(known, key=lambda key: (max(known[key].times.values(), default=""), key))
    ids = {key: [id for id in known[key].ids if id not in erased] for key in by_time[-MOST_REMEMBERED:]}
    return {key: replace(known[key], ids=ids[key]) for key in ids}


# ---- Ledger: ids, fields, what is removed ----

FORMS = ("takeout", "api", "csv")  # what gives native ids; the one whose ids are preferred first
DERIVED_ID = re.compile(r"(.*-[0-9a-f]{24})(?:-[0-9]+)?", re.DOTALL)
CHANGED = {"rating": "stars changed", "owner_reply": "reply changed"}  # in the report
RowKey = tuple[
    str, str, str, str, str
]  # source, an id without its number, `Entry.row`, digests of text, stars


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

    It gives ids, takes fields that an export has anew, and removes what exports no longer have or is erased.
    """

    def __init__(self, stored: Stored, options: Options):
        self.state, known, self.is_short = stored.state, stored.state.reviews, options.short_names
        self.suppressed, self.chosen = set(stored.suppressed), set[str]()  # locations
        self.stored = stored.reviews
        self.reviews = {id: dict(review) for id, review in self.stored.items()}
        self.entries = {id: entry_of(review) for id, review in self.stored.items() if id not in known}
        for id, entry in known.items():
            self.entries[id] = replace(entry, native=dict(entry.native), digests=dict(entry.digests))
        self.located = {entry.location for entry in known.values()} - {""}
        self.is_lost = not known and any(entry.source == "google" for entry in self.entries.values())
        self.exported = dict[str, str]()  # time of the newest export that has a review, by id
        self.current = set[str]()  # ids of which a record is no older than what is stored
        self.unrated = dict[str, Record]()
        self.by_hand = set[tuple[str, str]]()  # id and field that differ from the export
        self.removed, self.erased = dict[str, ReviewInFile](), dict[str, ReviewInFile]()
        self.hidden = dict[str, str]()  # as in the state
        self._ids = dict[tuple[str, str], str]()  # by source and native id
        self._joined, self._derived = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for id, entry in self.entries.items():
            self._ids |= {(entry.source, native_id): id for native_id in entry.native.values()}
            self._joined[entry.join].append(id)
            if (derived := DERIVED_ID.fullmatch(id)) and not entry.native:
                self._derived[entry.row or derived[1]].append(id)

    def recognised(self, records: Iterable[Record]) -> set[str]:
        """The locations of records that are stored, for a state that knows none."""
        joins, locations = self._joined.keys() - {""}, set[str]()
        for record in records:
            source, author = record.review["source"], record.review["author"]
            is_stored = f"{source}-{record.native_id}" in self.entries
            if is_stored or join_key(source, record.created, author) in joins:
                locations.add(record.location)
        return locations - {""}

    def take_all(self, records: Sequence[Record], whole: Whole) -> None:
        """Take over what records say, and note which reviews each export has."""
        for form in FORMS:  # Takeout's ids are given first, so that they are kept
            self._give_ids(form, [each for each in records if each.form == form and each.native_id])
        rows = {_row_key(each): each for each in records if not each.native_id}
        derived = self._derive_ids(rows)
        ids = defaultdict[str, set[str]](set)
        for record in records:
            native = record.review["source"], record.native_id
            id = self._ids[native] if record.native_id else derived[_row_key(record)]
            self.exported[id] = max(record.exported, self.exported.get(id, ""))
            ids[record.export].add(id)
            if record.review["rating"] is None:
                self.unrated[id] = record
            # What a newer whole export does not have was deleted since.
            elif id in self.reviews or record.exported >= whole.newest.get(record.location, ""):
                self._take(id, record)
        for key, export in whole.exports.items():
            export.ids = sorted(ids[key].union(export.ids))
            for id in export.ids:
                entry = self.entries.get(id, Entry())
                entry.seen = max(entry.seen, export.times.get(entry.location, ""))

    def _give_ids(self, form: str, records: Iterable[Record]) -> None:
        newest = {(each.review["source"], each.native_id): each for each in records}
        unknown = sorted(newest.keys() - self._ids.keys())
        joins = {key: join_key(key[0], newest[key].created, newest[key].review["author"]) for key in unknown}
        often = Counter(joins.values())
        for (source, native_id), join in joins.items():
            id, same, record = f"{source}-{native_id}", list[str](), newest[source, native_id]
            if join and often[join] == 1 and id not in self.entries and form != "csv":
                same = [each for each in self._joined[join] if self._may_be(each, record)]
            id = same[0] if len(same) == 1 else id
            entry = self.entries.setdefault(id, Entry(source, join=join))
            entry.native[f"{form} {record.location}" if form in entry.native else form] = native_id
            self._ids[source, native_id] = id
            self._joined[join].append(id)

    def _may_be(self, id: str, record: Record) -> bool:
        """Whether a review with the author and the moment of a record has no id of its form, or has moved."""
        entry = self.entries[id]
        has_moved = "" != entry.location != record.location != ""
        is_same_text = self._said_by(id)[0] == value_digest(record.review.get("text"))
        return record.form not in entry.native or (has_moved and is_same_text)

    def _derive_ids(self, rows: Mapping[RowKey, Record]) -> dict[RowKey, str]:
        """Rows of one author and day: those of the same text and stars keep their ids, then the others."""
        ids, bases = dict[RowKey, str](), defaultdict[tuple[str, str, str], list[RowKey]](list)
        for row in sorted(rows):
            bases[row[:3]].append(row)
        for (source, base, moved), left in bases.items():
            known = {*self._derived[base], *self._derived[moved]}
            free = dict.fromkeys(sorted(known, key=lambda id: (len(id), id)))
            numbers = range(2, len(free) + len(left) + 1)
            numbered = [base, *(f"{base}-{number}" for number in numbers)]
            in_wrong_zones = {_row_key(rows[row], zone)[1] for row in left for zone in self.state.zones}
            earlier = [f"{each}{end}" for each in in_wrong_zones for end in ("", *(f"-{n}" for n in numbers))]
            for length in (2, 1):  # text and stars, then the text alone
                said = defaultdict[tuple[str, ...], deque[str]](deque)
                for id in free:
                    said[self._said_by(id)[:length]].append(id)
                for row in left:
                    if same := said[row[3:][:length]]:
                        ids[row] = same.popleft()
                        del free[ids[row]]
                left = [row for row in left if row not in ids]
            # What was erased stays away: each row that is not stored as it is may be it.
            erased = [id for id in (*numbered, *earlier) if digest(source, id) in self.suppressed]
            fresh = [id for id in numbered if id not in self.entries]
            ids |= zip(left, erased[:1] * len(left) or [*free, *fresh], strict=False)
        for (source, *_), id in ids.items():
            self.entries.setdefault(id, Entry(source))
        return ids

    def _said_by(self, id: str) -> tuple[str, str]:
        """Digests of text and stars, as last imported."""
        review, digests = self.reviews.get(id, {}), self.entries[id].digests
        text, stars = (digests.get(key, value_digest(review.get(key))) for key in ("text", "rating"))
        return text, stars

    def _take(self, id: str, record: Record) -> None:
        entry = self.entries[id]
        if id not in self.reviews:  # new, or one that was removed and returns
            self.reviews[id] = {"id": id}
            entry.clocks = [key for key in record.clocks if key == "date"]
            entry.updated = entry.replied = entry.seen = ""
            entry.digests = {}
        is_current = record.form == "csv" or record.updated >= entry.updated
        # Nothing in an export tells when a name changed, a reply was removed or the business moved.
        is_news = record.form == "csv" or record.exported >= entry.seen
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
                    self._set(id, key, value and _dated(value, self.reviews[id].get(key) or {}))
                    entry.replied = record.replied
                    others = [each for each in entry.clocks if each != key]
                    entry.clocks = [*others, *(each for each in record.clocks if each == key)]
            elif key == "author":
                if is_news and is_current:
                    entry.author = digest(entry.source, fold(value))
                    name = without_address(value)
                    self._set(id, key, short_name(name) if self.is_short else name)
            elif is_current:
                self._set(id, key, value)
        entry.seen = max(entry.seen, record.exported)

    def _set(self, id: str, key: str, value: Json) -> None:
        """Set a field as an export has it, unless it was changed by hand."""
        review, digests = self.reviews[id], self.entries[id].digests
        stored, imported = review.get(key), digests.get(key)
        # A reply may have members that were added by hand.
        own = {part: stored.get(part) for part in ("text", "date")} if isinstance(stored, dict) else stored
        digests[key] = value_digest(value)
        self.by_hand.discard((id, key))
        if own == value:
            review.setdefault(key, value)
        elif imported == value_digest(own) or (own is None and imported is None):
            review[key] = stored | value if stored and isinstance(value, dict) else value
        else:
            self.by_hand.add((id, key))

    def assign_location(self, found: set[str]) -> None:
        """Take reviews of Google whose location the lost state knew for those of the only one found."""
        for entry in self.entries.values() if len(found) == 1 and not self.located else ():
            if entry.source == "google":
                entry.location = entry.location or min(found)

    def erase(self, hidden: Mapping[str, str]) -> None:
        """Forget the reviews that suppressed.txt means; `hidden` as in the state."""
        lines = {mark: line for mark, line in hidden.items() if line in self.suppressed}
        found, erased = dict(lines), set[str]()
        lines |= {line: line for line in self.suppressed}
        for _ in range(2) if lines else ():  # again, for what the first ones are under other ids
            for id, entry in self.entries.items():
                native_ids = {id, id.removeprefix(f"{entry.source}-"), *entry.native.values()}
                marks = sorted(digest(entry.source, each) for each in native_ids)
                marks += [entry.join] if entry.join else []
                means = [lines[mark] for mark in (*marks, f"author {entry.author}") if mark in lines]
                if means and id not in erased:
                    erased.add(id)
                    lines |= {mark: lines.get(mark, means[0]) for mark in marks}
                    found |= {mark: lines[mark] for mark in marks} | {line: line for line in means}
        self.hidden = dict(sorted(found.items()))
        self.erased = {id: self.reviews.pop(id, {}) for id in sorted(erased)}

    def remove(self, current: Mapping[str, Sequence[Export]]) -> None:
        """Remove reviews older than the newest whole exports of their location that are in none of them."""
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


def _dated(reply: dict[str, Json], stored: Mapping[str, Json]) -> Json:
    """A reply of which the export may not have the date, with the stored date if it says the same."""
    known = stored.get("date") if stored.get("text") == reply["text"] else None
    return reply | {"date": reply.get("date", known)}


def _row_key(record: Record, zone: str = "") -> RowKey:
    """What tells rows without ids apart; in another zone with the day that it has there."""
    review, source = record.review, record.review["source"]
    author = digest(source, fold(review["author"]))
    day = (
        rezoned(review["date"], zone, is_clock="date" in record.clocks)[:10] if zone else calendar_day(review)
    )
    base = f"{source}-{digest(source, fold(review['author']), day)[:24]}"
    said = value_digest(review.get("text")), value_digest(review["rating"])
    return source, base, row_digest(author, day), *said


# ---- Erasure: the lines of suppressed.txt by which a review or an author stays away ----


def erasing_lines(stored: Stored, id: str) -> list[str]:
    """The lines that keep away the review with this id, or of this address. Raises Undecided."""
    path = id.partition("/reviews/")[2]
    forms = (id, path, re.split("[?#]", path)[0])
    for each in (*forms, *map(unquote, forms)):
        if review := stored.reviews.get(each):
            entry = stored.state.reviews.get(each) or entry_of(review)
            return [digest(entry.source, native_id) for native_id in entry.native.values() or [each]]
    raise Undecided(question("unknown id", id=shown(id)))


def author_lines(stored: Stored, name: str, source: str) -> list[str]:
    """The line that keeps away all reviews of an author at a source. Raises Undecided."""
    shown_so = defaultdict[str, set[str]](set)  # digests of authors by source
    for id, review in stored.reviews.items():
        entry = stored.state.reviews.get(id) or entry_of(review)
        if fold(name) == fold(review["author"]) or entry.author == digest(entry.source, fold(name)):
            shown_so[entry.source].add(entry.author)
    sources = {fold(source)} if source else shown_so.keys()
    if len(sources) != 1:
        raise Undecided(question("source of author", sorted(shown_so), name=shown(name)))
    (source,) = sources
    authors = shown_so[source] or {digest(source, fold(name))}
    if len(authors) > 1:
        raise Undecided(question("authors alike", number=len(authors), name=shown(name)))
    return [f"author {each}" for each in authors]


# ---- Brakes: what looks like a mistake stops the import ----

MOST_FAILED = 0.1  # of the records of a command
LEAST_FAILED = 3  # of these, unless nothing is left
FEW_REMOVED, MOST_REMOVED_SHARE = 3, 0.1  # of the stored reviews of the locations that an export speaks for
MOST_OF_FEW = 1 / 3  # likewise, however few they are
MOST_TWINS = 0.2  # of the new reviews


def refuse_failures(failed: Sequence[Fault], sound: int) -> None:
    """Raise Undecided if many records are faulty, or all."""
    total = len(failed) + sound
    if len(failed) > MOST_FAILED * total and (len(failed) >= LEAST_FAILED or not sound):
        raise Undecided(question("failures", map(str, failed), failed=len(failed), total=total))


def _refuse_removals(current: Mapping[str, Sequence[Export]], ledger: Ledger) -> None:
    removed, total = ledger.removed, sum(ledger.entries[id].location in current for id in ledger.stored)
    is_many = len(removed) > FEW_REMOVED and len(removed) > MOST_REMOVED_SHARE * total
    if is_many or len(removed) > MOST_OF_FEW * total:
        is_part = any(export.is_first_alone() for exports in current.values() for export in exports)
        name = "removals by part 001" if is_part else "removals"
        raise Undecided(question(name, map(told, removed.values()), removed=len(removed), total=total))


def _refuse_twins(ledger: Ledger) -> None:
    """Raise Undecided when what is new looks like stored reviews under other ids."""
    stored, reviews, entries = ledger.stored, ledger.reviews, ledger.entries

    def person_and_day(id: str, review: ReviewInFile) -> tuple[str, str, str]:
        return entries[id].source, short_name(fold(review["author"])), calendar_day(review)

    others = {person_and_day(id, stored[id]): id for id in stored.keys() - ledger.exported.keys()}
    new = sorted(reviews.keys() - stored.keys())
    pairs = [(id, other) for id in new if (other := others.get(person_and_day(id, reviews[id])))]
    twins = [pair for pair in pairs if not entries[pair[0]].native.keys() & entries[pair[1]].native.keys()]
    if twins and len(twins) >= MOST_TWINS * len(new):
        raise Undecided(question("twins", map(" and ".join, twins), twins=len(twins), new=len(new)))


# ---- Report ----

LEAST_TELLING = 40  # characters of a text that two reviews do not share by chance
FIRST_WORDS = 8
FEW_NAMED = 3  # authors in one line


def told(review: ReviewInFile) -> str:
    """A review as the report names it: author, date, first words, id."""
    words = (review.get("text") or f"{review['rating']} stars without words").split()
    said = " ".join(words[:FIRST_WORDS]) + (" …" if len(words) > FIRST_WORDS else "")
    return f"{review['author']}, {calendar_day(review)}, “{said}” ({review['id']})"


def _report(ledger: Ledger, exports: Exports) -> Iterator[str]:
    """Numbers of reviews by what happens to them, and which are not imported."""
    stored, merged, removed, erased = ledger.stored, ledger.reviews, ledger.removed, ledger.erased
    named = ledger.exported.keys() - ledger.unrated.keys() - removed.keys() - erased.keys()
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
        "kept away by suppressed.txt": len(erased),
        "the same as another row of its file": exports.doubled,
        "faulty, skipped": len(exports.failed),
    }
    yield from (f"{what}: {number}" for what, number in counts.items() if number)
    # The author of what was erased earlier is not named once more.
    for what, gone in (("removed", removed), ("kept away", erased)):
        yield from (f"{what}: {told(gone[id])}" for id in gone if id in stored)
    if unrated := [record.review["author"] for record in ledger.unrated.values()]:
        few = unrated if exports.options.verbose else unrated[:FEW_NAMED]
        yield f"without stars, skipped: {len(unrated)} ({', '.join(few)}{', …' * (few < unrated)})"
    yield from (f"skipped: {each}" for each in exports.failed)
    yield from exports.skipped
    yield from (f"skipped: {link} is a link; give the file itself" for link in exports.links)
    yield from exports.warnings
    unmet = sorted(ledger.suppressed.difference(ledger.hidden.values()))
    yield from (f"this line of suppressed.txt matches nobody: {each}" for each in unmet)


def _details(records: Collection[Record], ledger: Ledger) -> Iterator[str]:
    authors = (record.review["author"] for record in records)
    if addresses := sum(author != without_address(author) for author in authors):
        yield f"authors named by an e-mail address, of which what stands before the @ is taken: {addresses}"
    by_hand = sorted(ledger.by_hand)
    yield from (f"changed by hand and kept: {key} of {id}" for id, key in by_hand if id in ledger.reviews)
    alike = defaultdict[str, list[str]](list)
    for id, review in sorted(ledger.reviews.items()):
        alike[fold(review.get("text") or "")].append(id)
    for text, ids in alike.items():
        sources = {ledger.entries[id].source for id in ids}
        if len(text) >= LEAST_TELLING and len(sources) > 1 and not ledger.stored.keys() >= set(ids):
            yield f"the same text at several sources: {', '.join(ids)}; --forget ID removes one for good"
    if unverified := sum(review.get("verified") is False for review in ledger.reviews.values()):
        yield f"not verified, so not served: {unverified}"
