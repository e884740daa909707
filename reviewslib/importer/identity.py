"""Identity: which stored review a record of an export is. A review keeps its first id. This module is pure.

Sections: Digests and names - Entries of stored reviews - Register
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
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
    """Whether a review has an id of the owner's, and not of an import."""
    return not review["id"].startswith(f"{fold(review.get('source') or 'unknown')}-")


def entry_of(review: Object) -> Entry:
    """An entry made from a review."""
    source = fold(review.get("source") or "unknown")
    derived = None if is_own(review) else DERIVED_ID.fullmatch(review["id"])
    entry = Entry(source, author=author_digest(review["author"]))
    entry.created, entry.replied = map(_read, (review["date"], (review.get("owner_reply") or {}).get("date")))
    if derived:
        entry.row, entry.text = derived[1], text_digest(review.get("text"))
    else:
        entry.native = {"": review["id"].removeprefix("" if is_own(review) else f"{source}-")}
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
        self._by_moment = defaultdict[str, dict[str, None]](dict)  # of Google; ids in order
        self._by_row = defaultdict[str, dict[str, None]](dict)  # likewise
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
        """Records of Google, or of one table, with their ids; unknown ones without content are left out."""
        rows, taken = list[Record](), set[str]()
        for record in records:
            if not record.key.native_id:
                rows.append(record)
            elif id := self.known_id(record) or self._new_id(record):
                self.entries[id].native.setdefault(_slot(record), record.key.native_id)
                if record.key.format == "table" and record.review:
                    self.entries[id].row, self.entries[id].text = _row_key(record), _text_of(record)
                self._index(id)
                taken.add(id)
                yield record, id
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
        key, review = record.key, record.review
        if (id := self._by_native_id.get((key.source, key.native_id), "")) or not review:
            return id
        if key.format == "table":
            rows = [id for id in self._by_row[_row_key(record)] if not self.entries[id].native]
            return next((id for id in rows if self.entries[id].text == _text_of(record)), "")
        author = {author_digest(review["author"]), author_digest(short_name(review["author"]))}
        same = [id for id in self._by_moment[record.created] if _slot(record) not in self.entries[id].native]
        here = [id for id in same if self.entries[id].location in ("", key.location)]
        by_author = [id for id in same if self.entries[id].author in author]
        near = (id for row in _row_keys(record) for id in self._by_row[row])
        rows = [id for id in near if self.entries[id].is_row]
        for ids in (here, [id for id in here if id in by_author], by_author, rows):
            if len(ids) == 1:
                return ids[0]
        return ""

    def _identify_rows(self, records: Sequence[Record], taken: set[str]) -> Iterator[tuple[Record, str]]:
        """Rows without ids, as above: by day and text, else by day and order, else by text one day apart."""
        rows = {(_row_key(record), encode(record.review)): record for record in records}
        waiting = [(key, rows[key, content]) for key, content in sorted(rows)]
        queues = defaultdict[tuple[str, ...], deque[str]](deque)  # ids by row and text, and by row
        for id in sorted(self.entries) if rows else ():
            row, text = self.entries[id].row, self.entries[id].text
            if row and id not in taken:
                queues[row, text].append(id)
                queues[row,].append(id)
        for step in range(3):
            others = list[tuple[str, Record]]()
            for key, record in waiting:
                names = _queues_of(key, record, step)
                ids = (id for name in names for id in _emptied(queues[name]) if id not in taken)
                if id := next(ids, ""):
                    yield self._row(key, record, id, taken)
                else:
                    others.append((key, record))
            waiting = others
        for key, record in waiting:
            yield self._row(key, record, self._derived_id(record.key.source, key), taken)

    def _derived_id(self, source: str, key: str) -> str:
        """A free id for a row without one."""
        numbers = count(len(self._by_row[key]) + 1)
        ids = (f"{source}-{key}-{number}" if number > 1 else f"{source}-{key}" for number in numbers)
        return next(id for id in ids if id not in self.entries)

    def _row(self, key: str, record: Record, id: str, taken: set[str]) -> tuple[Record, str]:
        taken.add(id)
        entry = self.entries.setdefault(id, Entry(record.key.source))
        entry.row, entry.text = key, _text_of(record)
        self._index(id)
        return record, id


def _emptied(queue: deque[str]) -> Iterator[str]:
    while queue:
        yield queue.popleft()


def _queues_of(key: str, record: Record, step: int) -> list[tuple[str, ...]]:
    """The names of the queues of ids that a row is compared with in a step."""
    if step == 1:
        return [(key,)]
    keys = [key] if step == 0 else _row_keys(record)[1:]
    return [(key, _text_of(record)) for key in keys]


def _slot(record: Record) -> str:
    """Where an entry keeps the native id: Takeout and API give different ids per location."""
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
