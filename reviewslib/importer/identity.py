"""Identity: which review a record of an export is.

An id is given once. Nothing here changes what a review says. This module is pure.

Sections: Digests and names - What a stored review tells of itself - Register
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
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
    """What tells whether two rows have the same text."""
    return digest("text", text or "")[:16]


def author_digest(author: str) -> str:
    """What stands for an author: the digest of the whole name, folded."""
    return digest("author", fold(author))


def short_name(author: str) -> str:
    """First name and initial, such as “Camille R.” for “Camille Roux”."""
    first, *others = author.split() or [""]
    return f"{first} {others[-1][0]}." if others and fold(author) not in FORMATS["shared_names"] else author


def _address(word: str) -> list[str]:
    """What stands before and after the @ of an e-mail address such as “<bob@example.com>”; else empty."""
    parts = word.strip("<>()[],;:").split("@")
    return parts if len(parts) == 2 and parts[0] and "." in parts[1][1:-1] else []


def without_address(author: str) -> str:
    """The name without an e-mail address; where that is all, what stands before its @."""
    words = author.split()
    return " ".join(word for word in words if not _address(word)) or _address(words[0])[0]


def row_key(source: str, author: str, day: str) -> str:
    """What names a row without an id."""
    return digest(source, fold(author), day)[:24]


def days_near(day: str) -> list[str]:
    """A day, and those one day apart: tools date the same review in different zones."""
    center = date.fromisoformat(day[:10])
    return [(center + timedelta(days=days)).isoformat() for days in (0, -1, 1)]


# ---- What a stored review tells of itself ----

DERIVED_ID = re.compile(r".*-([0-9a-f]{24})(?:-[0-9]+)?", re.DOTALL)


def is_own(review: Object) -> bool:
    """Whether the id of a review is the owner's own, and not one that an import gave."""
    return not review["id"].startswith(f"{fold(review.get('source') or 'unknown')}-")


def entry_of(review: Object) -> Entry:
    """What a review tells, where the state knows nothing of it."""
    source = fold(review.get("source") or "unknown")
    derived = None if is_own(review) else DERIVED_ID.fullmatch(review["id"])
    entry = Entry(source, author=author_digest(review["author"]))
    entry.created, entry.replied = map(_read, (review["date"], (review.get("owner_reply") or {}).get("date")))
    if derived:
        entry.row, entry.text = derived[1], text_digest(review.get("text"))
    else:
        entry.native = {"": review["id"].removeprefix("" if is_own(review) else f"{source}-")}
    # What was written on a day was there on that day.
    moments = [
        each if ":" in each else f"{each}T23:59:59Z" for each in (entry.created, entry.replied) if each
    ]
    entry.seen = max(moments)
    return entry


def _read(text: str | None) -> str:
    """A date of reviews.json as one of `cells.read_date`."""
    with suppress(BadRecord):
        return read_date(text or "", DateFormat())
    return (text or "")[:10]


# ---- Register: the reviews that are known, found by what exports say ----


class Register:
    """Entries by id, which grow while records are identified."""

    def __init__(self, entries: dict[str, Entry]):
        self.entries = entries
        self._by_native_id = dict[tuple[str, str], str]()  # and source
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
        """Records of Google, or of one table, with their ids; one without content only if it is known."""
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
        yield from self._identify_rows([each for each in rows if each.review], taken)

    def _new_id(self, record: Record) -> str:
        """A new id for a record with content."""
        if not record.review:
            return ""
        id = f"{record.key.source}-{record.key.native_id}"
        self.entries.setdefault(id, Entry(record.key.source, created=record.created))
        return id

    def known_id(self, record: Record) -> str:
        """The id of a record with a native id, if the review is known; else empty."""
        key, review = record.key, record.review
        if (id := self._by_native_id.get((key.source, key.native_id), "")) or not review:
            return id
        if key.format == "table":
            same = [id for id in self._by_row[_row_key(record)] if not self.entries[id].native]
            return next((id for id in same if self.entries[id].text == _text_of(record)), "")
        author = {author_digest(review["author"]), author_digest(short_name(review["author"]))}
        same = [id for id in self._by_moment[record.created] if _slot(record) not in self.entries[id].native]
        here = [id for id in same if key.location and self.entries[id].location in ("", key.location)]
        by_author = [id for id in same if self.entries[id].author in author]
        rows = [
            id
            for day in days_near(record.created)
            for id in self._by_row[row_key(key.source, review["author"], day)]
            if self.entries[id].is_row
        ]
        for ids in (here, [id for id in here if id in by_author], by_author, rows):
            if len(ids) == 1:
                return ids[0]
        return ""

    def _identify_rows(self, records: Sequence[Record], taken: set[str]) -> Iterator[tuple[Record, str]]:
        """Rows without ids, as above: those of the same text keep their ids, then the others by order."""
        groups = defaultdict[str, dict[bytes, Record]](dict)
        free = defaultdict[tuple[str, str], deque[str]](deque)  # ids by row and text
        for record in records:
            groups[_row_key(record)][encode(record.review)] = record
        for id, entry in self.entries.items() if records else ():
            if entry.row and id not in taken:
                free[entry.row, entry.text].append(id)
        left = list[tuple[str, Record]]()
        for key, by_content in sorted(groups.items()):
            waiting = list[Record]()
            for _, record in sorted(by_content.items()):
                if same := _first_free(free[key, _text_of(record)], taken):
                    yield self._row(record, same, key, taken)
                else:
                    waiting.append(record)
            others = [id for id in self._by_row[key] if id not in taken]
            for record, id in zip(waiting, others, strict=False):
                yield self._row(record, id, key, taken)
            left += [(key, record) for record in waiting[len(others) :]]
        for key, record in left:
            source, author = record.key.source, (record.review or {})["author"]
            near = [row_key(source, author, day) for day in days_near(record.created)[1:]]
            ids = (_first_free(free[each, _text_of(record)], taken) for each in near)
            id = next(filter(None, ids), "") or self._derived_id(source, key)
            yield self._row(record, id, key, taken)

    def _derived_id(self, source: str, key: str) -> str:
        """A free id for a row without one."""
        number = len(self._by_row[key]) + 1
        ids = (f"{source}-{key}-{each}" if each > 1 else f"{source}-{key}" for each in count(number))
        return next(id for id in ids if id not in self.entries)

    def _row(self, record: Record, id: str, key: str, taken: set[str]) -> tuple[Record, str]:
        taken.add(id)
        entry = self.entries.setdefault(id, Entry(record.key.source))
        entry.row, entry.text = key, _text_of(record)
        self._index(id)
        return record, id


def _first_free(ids: deque[str], taken: Collection[str]) -> str:
    """Take an id that is not taken out of a queue; empty if there is none."""
    while ids:
        if (id := ids.popleft()) not in taken:
            return id
    return ""


def _slot(record: Record) -> str:
    """Where an entry keeps the native id: Takeout and API give one each per location."""
    key = record.key
    return key.format if key.format == "table" else f"{key.format} {key.location}"


def _text_of(record: Record) -> str:
    return text_digest((record.review or {}).get("text"))


def _row_key(record: Record) -> str:
    return row_key(record.key.source, (record.review or {})["author"], record.created[:10])
