"""Identity: finds the stored review of each record. A review keeps its first id. This module is pure.

Sections: Digests and names - Entries of stored reviews - Register
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from itertools import count

from reviewslib.dataset.strict_json import Json, Object, encode
from reviewslib.dataset.text import fold
from reviewslib.importer.cells import FORMATS, BadRecord, DateFormat, read_date
from reviewslib.importer.exports import Record
from reviewslib.importer.state import Entry

# ---- Digests and names ----


def digest(*lines: str) -> str:
    """SHA-256 of lines joined by LF, as in suppressed.txt."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def text_digest(text: Json) -> str:
    """The digest by which texts of rows are compared."""
    return digest("text", text or "")[:16]


def author_digest(author: str) -> str:
    """The digest of an author's whole name, folded."""
    return digest("author", fold(author))


def short_name(author: str) -> str:
    """First name and initial, such as “Camille R.” for “Camille Roux”."""
    first, *others = author.split() or [""]
    return f"{first} {others[-1][0]}." if others and fold(author) not in FORMATS["shared_names"] else author


def _address(word: str) -> list[str]:
    """The parts of an e-mail address such as “<bob@example.com>”; empty for another word."""
    parts = word.strip("<>()[],;:").split("@")
    return parts if len(parts) == 2 and parts[0] and "." in parts[1][1:-1] else []


def without_address(author: str) -> str:
    """The name without an e-mail address; if there is no other word, the part of the address before the @."""
    words = author.split()
    return " ".join(word for word in words if not _address(word)) or _address(words[0])[0]


def row_key(source: str, author: str, day: str) -> str:
    """What identifies a row without an id."""
    return digest(source, fold(author), day)[:24]


def days_near(day: str) -> list[str]:
    """A day, the day before and the day after: tools date a review in different zones."""
    center = date.fromisoformat(day[:10])
    return [(center + timedelta(days=days)).isoformat() for days in (0, -1, 1)]


# ---- Entries of stored reviews, if the state has none ----

DERIVED_ID = re.compile(r".*-([0-9a-f]{24})(?:-[0-9]+)?", re.DOTALL)


def is_own(review: Object) -> bool:
    """Whether the owner, not an import, gave the review its id."""
    return not review["id"].startswith(f"{fold(review.get('source') or 'unknown')}-")


def entry_of(review: Object) -> Entry:
    """An entry made from a review."""
    source = fold(review.get("source") or "unknown")
    prefix = "" if is_own(review) else f"{source}-"
    derived = DERIVED_ID.fullmatch(review["id"]) if prefix else None
    entry = Entry(source, author=author_digest(review["author"]))
    entry.created, entry.replied = map(_read, (review["date"], (review.get("owner_reply") or {}).get("date")))
    if derived:
        entry.row, entry.text = derived[1], text_digest(review.get("text"))
    else:
        entry.native = {"": review["id"].removeprefix(prefix)}
    dates = filter(None, (entry.created, entry.replied))
    entry.seen = max(date if ":" in date else f"{date}T23:59:59Z" for date in dates)
    return entry


def _read(text: str | None) -> str:
    """A date of reviews.json as one of `cells.read_date`."""
    with suppress(BadRecord):
        return read_date(text or "", DateFormat())
    return (text or "")[:10]


# ---- Register: finds the entry of a record ----


class Register:
    """Entries by id, to which new ones are added while records are identified."""

    def __init__(self, entries: dict[str, Entry]):
        self.entries = entries
        self._by_native_id = dict[tuple[str, str], str]()  # by source and native id
        self._by_moment = defaultdict[str, dict[str, None]](dict)  # of Google; the keys are ids, in order
        self._by_row = defaultdict[str, dict[str, None]](dict)  # the keys are ids, in order
        for id in sorted(entries):
            self._index(id)

    def _index(self, id: str) -> None:
        entry = self.entries[id]
        self._by_native_id |= {(entry.source, native_id): id for native_id in entry.native.values()}
        if entry.source == "google" and entry.created.endswith("Z"):
            self._by_moment[entry.created][id] = None
        if entry.row:
            self._by_row[entry.row][id] = None

    def identify(self, records: Iterable[Record]) -> Iterator[tuple[Record, str]]:
        """Records of Google, or of one table, with their ids; new records without content are left out."""
        rows, taken = list[Record](), set[str]()
        for record in records:
            if not record.key.native_id:
                rows.append(record)
            elif id := self.known_id(record) or self._new_id(record):
                self.entries[id].native.setdefault(_slot(record), record.key.native_id)
                yield self._assign(id, record, taken)
        yield from self._identify_rows([record for record in rows if record.review], taken)

    def _new_id(self, record: Record) -> str:
        """A new id for a record with content; else empty."""
        if not record.review:
            return ""
        id = f"{record.key.source}-{record.key.native_id}"
        self.entries.setdefault(id, Entry(record.key.source, created=record.created))
        return id

    def known_id(self, record: Record) -> str:
        """The id of a record with a native id, empty for a new review."""
        key, review, slot = record.key, record.review, _slot(record)
        if (id := self._by_native_id.get((key.source, key.native_id), "")) or not review:
            return id
        if key.format == "table":
            rows = [id for id in self._by_row[_row_key(record)] if not self.entries[id].native]
            return next((id for id in rows if self.entries[id].text == _text_of(record)), "")
        authors = {author_digest(review["author"]), author_digest(short_name(review["author"]))}
        of_moment = [id for id in self._by_moment[record.created] if slot not in self.entries[id].native]
        of_location = [id for id in of_moment if self.entries[id].location in ("", key.location)]
        of_author = [id for id in of_moment if self.entries[id].author in authors]
        near = (id for row in _row_keys(record) for id in self._by_row[row])
        rows = [id for id in near if self.entries[id].is_row]
        for ids in (of_location, [id for id in of_location if id in of_author], of_author, rows):
            if len(ids) == 1:
                return ids[0]
        return ""

    def _identify_rows(self, records: Sequence[Record], taken: set[str]) -> Iterator[tuple[Record, str]]:
        """Rows without ids, matched by day and text, else by day and order, else by text one day apart."""
        rows = {(_row_key(record), encode(record.review)): record for record in records}
        waiting = [rows[content] for content in sorted(rows)]
        queues = defaultdict[QueueKey, deque[str]](deque)  # of ids
        for id, entry in sorted(self.entries.items()) if rows else ():
            if entry.row and id not in taken:
                queues[entry.row, entry.text].append(id)
                queues[entry.row, None].append(id)
        for queue_keys in MATCHING_STEPS:
            unmatched = list[Record]()
            for record in waiting:
                ids = (id for key in queue_keys(record) for id in _drained(queues[key]) if id not in taken)
                if id := next(ids, ""):
                    yield self._assign(id, record, taken)
                else:
                    unmatched.append(record)
            waiting = unmatched
        for record in waiting:
            yield self._assign(self._derived_id(record), record, taken)

    def _derived_id(self, record: Record) -> str:
        """A free id for a row without one."""
        source, row = record.key.source, _row_key(record)
        numbers = count(len(self._by_row[row]) + 1)
        ids = (f"{source}-{row}-{number}" if number > 1 else f"{source}-{row}" for number in numbers)
        return next(id for id in ids if id not in self.entries)

    def _assign(self, id: str, record: Record, taken: set[str]) -> tuple[Record, str]:
        taken.add(id)
        entry = self.entries.setdefault(id, Entry(record.key.source))
        if record.key.format == "table" and record.review:
            entry.row, entry.text = _row_key(record), _text_of(record)
        self._index(id)
        return record, id


QueueKey = tuple[str, str | None]  # key of a row, and digest of its text or None for any text
# By step: the keys of the queues from which a row takes an id.
MATCHING_STEPS: Sequence[Callable[[Record], list[QueueKey]]] = (
    lambda record: [(_row_key(record), _text_of(record))],
    lambda record: [(_row_key(record), None)],
    lambda record: [(row, _text_of(record)) for row in _row_keys(record)[1:]],
)


def _drained(queue: deque[str]) -> Iterator[str]:
    while queue:
        yield queue.popleft()


def _slot(record: Record) -> str:
    """The key of a native id in an entry: Takeout and the API each give a review an id per location."""
    key = record.key
    return key.format if key.format == "table" else f"{key.format} {key.location}"


def _text_of(record: Record) -> str:
    return text_digest((record.review or {}).get("text"))


def _row_keys(record: Record) -> list[str]:
    """The keys of a row on its own day, the day before and the day after."""
    author = (record.review or {})["author"]
    return [row_key(record.key.source, author, day) for day in days_near(record.created)]


def _row_key(record: Record) -> str:
    return row_key(record.key.source, (record.review or {})["author"], record.created[:10])
