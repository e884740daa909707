"""Merging: records of exports become part of the stored reviews.

An id is given once and kept for ever. A field that was changed by hand stays. The same records lead to the
same reviews, whatever the order of files. This module is pure: it knows no format, no file and no clock.

Sections: State - Merge - Sorting out - Ledger - Brakes - Report
"""

from __future__ import annotations

import hashlib
import re
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

from contract import BadData, Contract, Fault, FileForm
from exports import (
    ANONYMOUS,
    FORMS,
    BadRecord,
    Exports,
    Record,
    ReviewInFile,
    Undecided,
    looks_damaged,
    read_date,
)
from query import fold
from reviews import calendar_day, review_complaints, serving_order
from strict_json import Json, encode

Entry = dict[str, Any]  # what is known of a review, with the keys of ENTRY_FORM
State = dict[str, Any]  # what is known of all, with the keys of STATE_FORM

# ---- State: what imports remember; digests stand for names and for what people wrote ----

STATE_FILE = "import-state.json"
TEXT = {"type": "string"}  # empty where nothing is known
TEXTS = {"type": "object", "additionalProperties": TEXT}
ENTRIES = {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Entry"}}
ENTRY_FORM = {
    "source": TEXT,
    "native": TEXTS,  # ids at the source, by form
    "location": TEXT,
    "join": TEXT,  # the same for a review in Takeout and in the API
    "author": TEXT,  # digest, as in suppressed.txt
    "updated": TEXT,  # UTC
    "replied": TEXT,  # UTC, of the reply
    "seen": TEXT,  # UTC, the time of the newest export that had it
    "digests": TEXTS,  # of the fields as last imported
}
STATE_FORM = {
    "zone": TEXT,
    "names": TEXT,  # "short" or "full"
    "insights": TEXT,  # digest of insights.json as last counted
    "replaced": TEXT,  # digest of the reviews.json that was to be replaced
    "complete": TEXTS,  # time of the newest complete export, by location
    "hidden": TEXTS,  # the line in suppressed.txt, by `join` and digests of ids of an erased review
    "annotated": TEXTS,  # digests of annotation and review, by id
    "reviews": ENTRIES,
    "earlier": ENTRIES,  # of `reviews`, those that the import changed, as before
}
SCHEMAS = {
    name: {"type": "object", "required": list(form), "properties": form}
    for name, form in (("State", STATE_FORM), ("Entry", ENTRY_FORM))
}


class Stored(NamedTuple):
    """What a data directory holds."""

    document: dict[str, Json]  # of reviews.json, empty without it
    reviews_digest: str
    insights: bytes | None
    state: State  # empty where it was lost
    suppressed: Collection[str]  # lines of suppressed.txt


def empty(form: Mapping[str, Json]) -> dict[str, Any]:
    """An entry, or a state, in which nothing is known."""
    return {key: "" if schema is TEXT else {} for key, schema in form.items()}


def read_state(document: Json | None, reviews_digest: str) -> State:
    """The state of a parsed file, if there is one, beside a reviews.json with this digest. Raises BadData.

    The state is written first. Where reviews.json was not replaced after it, the earlier entries hold.
    """
    if document is None:
        return empty(STATE_FORM)
    form = FileForm({"components": {"schemas": SCHEMAS}}, "State")
    if found := list(form.complaints(document)):
        hint = "; delete the file to have it made anew"
        raise BadData([Fault(STATE_FILE, path, reason + hint) for path, reason in found])
    is_ahead = document["replaced"] == reviews_digest
    state: State = document
    return state | {"reviews": state["reviews"] | state["earlier"]} if is_ahead else state


def digest(*lines: str) -> str:
    """SHA-256 of lines joined by LF, as in suppressed.txt: source and native id, or source and author."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def value_digest(value: Json) -> str:
    """What tells whether a field was changed."""
    return hashlib.sha256(encode(value)).hexdigest()[:16]


# ---- Merge ----


def merge(
    stored: Stored, exports: Exports, options: Namespace, contract: Contract
) -> tuple[dict[str, Json], State, list[str]]:
    """The stored reviews, perhaps none, with the exports merged into them; the state; the report.

    Nothing is removed of a location of which the state, perhaps lost, knows no review. Raises Undecided.
    """
    document, state = stored.document, stored.state
    located = {entry["location"] for entry in state["reviews"].values()} - {""}
    records, failed = _sound(_of_one_location(exports, located, options.location), contract)
    failed = [*exports.failed, *failed]
    _refuse_failures(failed, len(records))
    locations = {record.location for record in records}
    complete = {each: time for each, time in exports.complete.items() if each in locations and not failed}
    newest = {each: max(time, state["complete"].get(each, "")) for each, time in complete.items()}
    newest = state["complete"] | newest
    ledger = Ledger(stored, is_short=options.short_names)
    ledger.take_all(_in_order(records), newest)
    if not located and len(new := {record.location for record in exports.records} - {""}) == 1:
        ledger.assign_location(min(new))
    erased, hidden = ledger.erased(state["hidden"])
    current = {each: time for each, time in complete.items() if each in located and time == newest[each]}
    removed = ledger.missing(current) - erased
    _refuse_removals(removed, ledger, options)
    for id in removed | erased:
        ledger.reviews.pop(id, None)
    _refuse_twins(ledger)
    titles = {exports.titles[each] for each in exports.titles.keys() & locations}
    merged = {"business": _business(document, titles, options)} | document
    merged["reviews"] = ledger.listed()
    known = ((id, each) for id, each in ledger.entries.items() if each["digests"] or each["location"])
    entries = {id: entry for id, entry in known if id not in erased}
    after = state | {"zone": options.zone, "complete": newest, "hidden": hidden, "reviews": entries}
    after["names"] = "short" if options.short_names else "full"
    if merged != document:
        earlier = ((id, entry) for id, entry in state["reviews"].items() if id not in erased)
        after["earlier"] = {id: entry for id, entry in earlier if entry != entries.get(id)}
    counts = ledger.counts(removed, erased) | {"faulty, skipped": len(failed)}
    lines = [f"{what}: {number}" for what, number in counts.items() if number]
    lines += [f"skipped: {record.position}no rating" for record in ledger.unrated.values()]
    lines += [f"skipped: {fault}" for fault in failed]
    return merged, after, [*lines, *exports.warnings, *_details(records, ledger)]


def _business(document: Mapping[str, Json], titles: Collection[str], options: Namespace) -> Json:
    if "business" not in document and not options.name and len(titles) != 1:
        flag = 'Say it once: --name "Ann\'s Bakery", for example.'
        raise Undecided("The files do not say what the business is called.", flag, sorted(titles))
    return {"name": options.name or min(titles, default="")}


# ---- Sorting out: records of one location that can be served, in one order ----


def _of_one_location(exports: Exports, stored: set[str], wanted: str) -> list[Record]:
    """The records of the wanted location. Raises Undecided while several are possible."""
    titles, ids = exports.titles, defaultdict[str, set[str]](set)
    for record in exports.records:
        ids[record.location].add(record.native_id)
    found = ids.keys() - {""}
    chosen = found | (stored if found else set())
    if wanted:
        by_title = {each for each in found if fold(titles.get(each, "")) == fold(wanted)}
        chosen = {wanted} & found or by_title
    if len(chosen) > 1 or (found and not chosen):
        question = "Of which location are reviews to be imported? There are several:"
        flag = "Say which: --location with the number or the title that stands there."
        seen = [f"{each} {titles.get(each, '')!r}: {len(ids[each])} reviews" for each in found | stored]
        raise Undecided(question, flag, sorted(seen))
    return [record for record in exports.records if record.location in chosen | {""}]


def _sound(records: Iterable[Record], contract: Contract) -> tuple[list[Record], list[Fault]]:
    """The records that the daemon would serve, and what is wrong with the others."""
    sound, failed = [], []
    for record in records:
        id = f"{record.review['source']}-{record.native_id or 24 * '0'}"
        review: ReviewInFile = {"id": id, **record.review, "rating": record.review["rating"] or 1}
        document = {"business": {"name": "-"}, "reviews": [review]}
        faults = [*contract.reviews_file.complaints(document), *review_complaints(document)]
        for path, reason in faults[:1]:
            failed.append(replace(record.position, reason=f"{'/'.join(map(str, path[2:]))}: {reason}"))
        sound += [record] if not faults else []
    return sound, failed


def _in_order(records: Iterable[Record]) -> list[Record]:
    """The rows of CSV as they stand, since they have no times, then Google's reviews, oldest export first.

    Of equal ones, such as one review in two accounts, the one with the smaller resource name is the last.
    """

    def name_and_content(record: Record) -> tuple[str, bytes]:
        return record.resource_name, encode(record.review) if record.exported else b""

    by_name = sorted(records, key=name_and_content, reverse=True)
    return sorted(by_name, key=lambda each: (each.exported, each.updated))


# ---- Ledger: ids, fields, what is removed ----

DERIVED_ID = re.compile(r"(.*-[0-9a-f]{24})(?:-[0-9]+)?", re.DOTALL)
CHANGED = {"rating": "stars changed", "owner_reply": "reply changed"}  # in the report
RowKey = tuple[str, str, str, str]  # source, a derived id without its number, digests of text and stars


def short_name(author: str) -> str:
    """First name and initial, such as “Camille R.” for “Camille Roux”."""
    first, *others = author.split() or [""]
    return f"{first} {others[-1][0]}." if others and author != ANONYMOUS else author


def join_key(source: str, utc: str, author: str) -> str:
    """The same for a review in Takeout and in the API; empty without a moment."""
    return digest(source, utc, short_name(fold(author))) if utc else ""


def entry_of(review: ReviewInFile) -> Entry:
    """What a stored review tells of itself."""
    source, author = fold(review.get("source") or "unknown"), fold(review["author"])
    try:
        utc = read_date(review["date"], "UTC").utc
    except BadRecord:  # a date that the contract takes, and no export has
        utc = ""
    known = {"source": source, "join": join_key(source, utc, author), "author": digest(source, author)}
    return empty(ENTRY_FORM) | known


class Ledger:
    """The stored reviews and what is known of each, while records are merged into them."""

    def __init__(self, stored: Stored, *, is_short: bool):
        entries, self.suppressed, self.is_short = stored.state["reviews"], set(stored.suppressed), is_short
        reviews = stored.document.get("reviews", ())
        self.stored: dict[str, ReviewInFile] = {review["id"]: review for review in reviews}
        self.reviews = {id: dict(review) for id, review in self.stored.items()}
        self.entries = {id: entry_of(review) for id, review in self.stored.items() if id not in entries}
        self.entries |= deepcopy(entries)
        self.exported = dict[str, str]()  # time of the newest export that has a review, by id
        self.current = set[str]()  # ids of which a record is no older than what is stored
        self.unrated = dict[str, Record]()
        self.by_hand = set[tuple[str, str]]()  # id and field that differ from the export
        self._ids = dict[tuple[str, str], str]()  # by source and native id
        self._joined, self._derived = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for id, entry in self.entries.items():
            self._ids |= {(entry["source"], native_id): id for native_id in entry["native"].values()}
            self._joined[entry["join"]].append(id)
            if (derived := DERIVED_ID.fullmatch(id)) and not entry["native"]:
                self._derived[derived[1]].append(id)

    def take_all(self, records: Sequence[Record], newest: Mapping[str, str]) -> None:
        """Take over what records say; `newest` has the times of the newest complete exports."""
        for form in FORMS:  # Takeout's ids are given first, so that they are kept
            self._give_ids(form, [each for each in records if each.form == form and each.native_id])
        derived = self._derive_ids({_row_key(each) for each in records if not each.native_id})
        for record in records:
            native = record.review["source"], record.native_id
            id = self._ids[native] if record.native_id else derived[_row_key(record)]
            self.exported[id] = max(record.exported, self.exported.get(id, ""))
            if record.review["rating"] is None:
                self.unrated[id] = record
            # What a newer complete export does not have was deleted since.
            elif id in self.reviews or record.exported >= newest.get(record.location, ""):
                self._take(id, record)

    def _give_ids(self, form: str, records: Iterable[Record]) -> None:
        newest = {(each.review["source"], each.native_id): each for each in records}
        unknown = sorted(newest.keys() - self._ids.keys())
        joins = {key: join_key(key[0], newest[key].created, newest[key].review["author"]) for key in unknown}
        often = Counter(joins.values())
        for (source, native_id), join in joins.items():
            id, same = f"{source}-{native_id}", list[str]()
            if join and often[join] == 1 and id not in self.entries and form != "csv":
                same = [each for each in self._joined[join] if form not in self.entries[each]["native"]]
            id = same[0] if len(same) == 1 else id
            known = empty(ENTRY_FORM) | {"source": source, "join": join}
            self.entries.setdefault(id, known)["native"][form] = native_id
            self._ids[source, native_id] = id
            self._joined[join].append(id)

    def _derive_ids(self, rows: set[RowKey]) -> dict[RowKey, str]:
        """Rows of one author and day: those of the same text and stars keep their ids, then the others."""
        ids, bases = dict[RowKey, str](), defaultdict[tuple[str, str], list[RowKey]](list)
        for row in sorted(rows):
            bases[row[:2]].append(row)
        for (source, base), left in bases.items():
            free = sorted(self._derived[base], key=lambda id: (len(id), id))
            numbers = range(2, len(free) + len(left) + 1)
            numbered = [base, *(f"{base}-{number}" for number in numbers)]
            for length in (2, 1):  # text and stars, then the text alone
                for row in list(left):
                    if same := [id for id in free if self._said_by(id)[:length] == row[2:][:length]]:
                        ids[row] = same[0]
                        free.remove(same[0])
                        left.remove(row)
            # What was erased stays away: each row that is not stored as it is may be it.
            erased = [id for id in numbered if digest(source, id) in self.suppressed]
            fresh = [id for id in numbered if id not in self.entries]
            ids |= zip(left, erased[:1] * len(left) or [*free, *fresh], strict=False)
        for (source, *_), id in ids.items():
            self.entries.setdefault(id, empty(ENTRY_FORM) | {"source": source})
        return ids

    def _said_by(self, id: str) -> tuple[str, str]:
        """Digests of text and stars, as last imported."""
        review, digests = self.reviews.get(id, {}), self.entries[id]["digests"]
        text, stars = (digests.get(key, value_digest(review.get(key))) for key in ("text", "rating"))
        return text, stars

    # ---- Fields: what a record says and earlier ones did not ----

    def _take(self, id: str, record: Record) -> None:
        entry = self.entries[id]
        if id not in self.reviews:  # new, or one that was removed and returns
            self.reviews[id] = {"id": id}
            entry |= {"updated": "", "replied": "", "seen": "", "digests": {}}
        is_current = record.form == "csv" or record.updated >= entry["updated"]
        # Nothing in an export tells when a name changed or a reply was removed.
        is_news = record.form == "csv" or record.exported >= entry["seen"]
        entry["location"] = record.location or entry["location"]
        if is_current:
            self.current.add(id)
            entry["updated"] = max(entry["updated"], record.updated)
        for key, value in record.review.items():
            if key in ("source", "date"):  # as first imported
                self.reviews[id].setdefault(key, value)
            elif key == "owner_reply":
                if is_news and (value or entry["replied"] < record.exported):
                    self._take_reply(id, record, value)
            elif key == "author":
                if is_news and is_current:
                    entry["author"] = digest(entry["source"], fold(value))
                    self._set(id, key, short_name(value) if self.is_short else value)
            elif is_current:
                self._set(id, key, value)
        entry["seen"] = max(entry["seen"], record.exported)

    def _take_reply(self, id: str, record: Record, reply: Json) -> None:
        stored = self.reviews[id].get("owner_reply") or {}
        if reply and "date" not in reply:
            reply = reply | {"date": stored.get("date") if stored.get("text") == reply["text"] else None}
        self._set(id, "owner_reply", reply)
        self.entries[id]["replied"] = record.replied

    def _set(self, id: str, key: str, value: Json) -> None:
        """Set a field as an export has it, unless it was changed by hand."""
        review, digests = self.reviews[id], self.entries[id]["digests"]
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

    # ---- Removal: what a complete export no longer has, and what was erased for good ----

    def assign_location(self, location: str) -> None:
        """Take reviews of Google whose location the lost state knew for those of the only one."""
        for entry in self.entries.values():
            if entry["source"] == "google":
                entry["location"] = entry["location"] or location

    def missing(self, complete: Mapping[str, str]) -> set[str]:
        """The reviews that are older than a complete export of their location and not in it."""
        missing = set[str]()
        for id in self.reviews:
            entry = self.entries[id]
            if max(entry["updated"], self.exported.get(id, "")) < complete.get(entry["location"], ""):
                missing.add(id)
        return missing

    def erased(self, hidden: Mapping[str, str]) -> tuple[set[str], dict[str, str]]:
        """The reviews that suppressed.txt means, and what `hidden` becomes."""
        lines = {mark: line for mark, line in hidden.items() if line in self.suppressed}
        lines |= {line: line for line in self.suppressed}
        erased = set[str]()
        for _ in range(2) if lines else ():  # again, for what the first ones are under other ids
            for id, entry in self.entries.items():
                native_ids = {id, id.removeprefix(f"{entry['source']}-"), *entry["native"].values()}
                marks = sorted(digest(entry["source"], each) for each in native_ids)
                marks += [entry["join"]] if entry["join"] else []
                found = [lines[mark] for mark in (*marks, f"author {entry['author']}") if mark in lines]
                if found and id not in erased:
                    erased.add(id)
                    lines |= {mark: lines.get(mark, found[0]) for mark in marks}
        return erased, {mark: line for mark, line in sorted(lines.items()) if mark != line}

    # ---- Result: the reviews, and what to say of them ----

    def listed(self) -> list[ReviewInFile]:
        """The reviews in the order in which they are served; as they stood if none has changed."""
        if self.reviews == self.stored:
            return list(self.stored.values())
        return sorted(self.reviews.values(), key=serving_order, reverse=True)

    def counts(self, removed: set[str], erased: set[str]) -> dict[str, int]:
        """Numbers of reviews by what happens to them."""
        stored, merged = self.stored, self.reviews
        named = self.exported.keys() - self.unrated.keys() - removed - erased
        changes = Counter(
            CHANGED.get(key, f"{key} changed")
            for id in sorted(stored.keys() & merged.keys())
            for key in merged[id]
            if stored[id].get(key) != merged[id][key]
        )
        return {
            "new": len(merged.keys() - stored.keys()),
            **changes,
            "unchanged": sum(merged[id] == stored[id] for id in named & self.current & stored.keys()),
            "older than what is stored, left alone": len((named & stored.keys()) - self.current),
            "deleted since, not taken from an older export": len(named - stored.keys() - self.current),
            "removed, since a complete export no longer has them": len(removed),
            "kept away by suppressed.txt": len(erased),
            "without stars, skipped": len(self.unrated),
        }


def _row_key(record: Record) -> RowKey:
    """What tells rows without ids apart."""
    review, source = record.review, record.review["source"]
    base = f"{source}-{digest(source, fold(review['author']), calendar_day(review))[:24]}"
    return source, base, value_digest(review.get("text")), value_digest(review["rating"])


def compare_annotations(
    reviews: Iterable[Mapping[str, Json]], annotations: Mapping[str, Json], known: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """`annotated` of the state, and the ids of reviews that changed after a person annotated them."""
    annotated, changed = dict[str, str](), list[str]()
    for review in reviews:
        id = review["id"]
        if annotations.get(id):
            by_hand, said = value_digest(annotations[id]), value_digest([review["rating"], review["text"]])
            before = known.get(id, "")
            is_outdated = before.startswith(by_hand) and not before.endswith(said)
            annotated[id] = before if is_outdated else f"{by_hand} {said}"
            changed += [id] if is_outdated else []
    return annotated, changed


# ---- Brakes: what looks like a mistake stops the import ----

MOST_FAILED = 0.1  # of the records of a command
MOST_REMOVED, MOST_REMOVED_SHARE = 3, 0.1  # of the stored reviews of a location, whichever is more
MOST_TWINS = 0.2  # of the new reviews


def _refuse_failures(failed: Sequence[Fault], sound: int) -> None:
    if len(failed) > MOST_FAILED * (total := len(failed) + sound):
        question = f"{len(failed)} of {total} records are faulty, more than a tenth:"
        raise Undecided(question, "Mend the file, or export it anew.", map(str, failed))


def _refuse_removals(removed: set[str], ledger: Ledger, options: Namespace) -> None:
    locations = {ledger.entries[id]["location"] for id in removed}
    total = sum(ledger.entries[id]["location"] in locations for id in ledger.stored)
    if len(removed) > max(MOST_REMOVED, MOST_REMOVED_SHARE * total) and not options.allow_removals:
        question = f"{len(removed)} of {total} reviews are not in this export any more and would be removed:"
        raise Undecided(question, "If they are really gone, say --allow-removals.", sorted(removed))


def _refuse_twins(ledger: Ledger) -> None:
    """Raise Undecided when what is new looks like stored reviews under other ids."""
    stored, reviews, entries = ledger.stored, ledger.reviews, ledger.entries
    others = {_person_and_day(entries[id], stored[id]): id for id in stored.keys() - ledger.exported.keys()}
    new, twins = sorted(reviews.keys() - stored.keys()), []
    for id in new:
        other = others.get(_person_and_day(entries[id], reviews[id]))
        if other and not entries[id]["native"].keys() & entries[other]["native"].keys():
            twins.append(f"{id} and {other}")
    if twins and len(twins) >= MOST_TWINS * len(new):
        number = f"{len(twins)} of {len(new)} new reviews"
        question = f"{number} have author and day of a stored one with another id:"
        flag = "If they are others, give another --source; if not, import files of the same kind as before."
        raise Undecided(question, flag, twins)


def _person_and_day(entry: Entry, review: ReviewInFile) -> tuple[str, str, str]:
    return entry["source"], short_name(fold(review["author"])), calendar_day(review)


# ---- Report ----

LEAST_TELLING = 40  # characters of a text that two reviews do not share by chance


def _details(records: Iterable[Record], ledger: Ledger) -> Iterator[str]:
    texts = (f"{record.review['author']}{record.review.get('text')}" for record in records)
    if damaged := sum(map(looks_damaged, texts)):
        yield f"letters of {damaged} reviews look damaged (“BjÃ¸rn”); export them anew"
    by_hand = sorted((id, key) for id, key in ledger.by_hand if id in ledger.reviews)
    yield from (f"changed by hand and kept: {key} of {id}" for id, key in by_hand)
    alike = defaultdict[str, list[str]](list)
    for id, review in sorted(ledger.reviews.items()):
        alike[fold(review.get("text") or "")].append(id)
    for text, ids in alike.items():
        sources = {ledger.entries[id]["source"] for id in ids}
        if len(text) >= LEAST_TELLING and len(sources) > 1 and not ledger.stored.keys() >= set(ids):
            yield f"the same text at several sources: {', '.join(ids)}; --forget ID removes one for good"
    if unverified := sum(review.get("verified") is False for review in ledger.reviews.values()):
        yield f"not verified, so not served: {unverified}"
