"""Recognition: finds the stored review of a record. A review keeps its first id. This module is pure."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import cache
from itertools import count

from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.text import fold
from reviewslib.importer.cells import FORMATS, BadRecord, DateFormat, read_date
from reviewslib.importer.exports import Record
from reviewslib.importer.state import Entry

# ---- Digests and names ----


def digest(*lines: str) -> str:
    """SHA-256 of lines joined by LF, as in suppressed.txt."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def text_digest(review: Object | None) -> str:
    """The digest by which the texts of rows are compared."""
    return digest("text", (review or {}).get("text") or "")[:16]


def author_digest(author: str) -> str:
    """The digest of an author's whole name, folded."""
    return digest("author", fold(author))


def is_shared(author: str) -> bool:
    """Whether many customers have this name, such as “A Google user”."""
    return fold(author) in FORMATS["shared_names"]


def short_name(author: str) -> str:
    """First name and initial, such as “Camille R.” for “Camille Roux”."""
    first, *others = author.split() or [""]
    return f"{first} {others[-1][0]}." if others and not is_shared(author) else author


ADDRESS = re.compile(r"[<(\[]*([^@]+)@[^@.][^@]*\.[^@]+")


def without_address(author: str) -> str:
    """The name without an e-mail address; if there is no other word, the part of the address before the @."""
    words = author.split()
    others = [word for word in words if not ADDRESS.fullmatch(word)]
    return " ".join(others) or ADDRESS.sub(r"\1", words[0])


NEAR = (-1, 1)  # days: tools date a review in different zones


def shifted(day: str, days: int) -> str:
    """The day that is `days` days after `day`, which is a day or a moment."""
    return (date.fromisoformat(day[:10]) + timedelta(days=days)).isoformat()


# ---- Entries of stored reviews, if the state has none ----

DERIVED_ID = re.compile(r"([0-9a-f]{24})(?:-[0-9]+)?")


def _source_of(review: Object) -> str:
    return fold(review.get("source") or "unknown")


def is_own(review: Object) -> bool:
    """Whether the owner, not an import, gave the review its id."""
    return not review["id"].startswith(f"{_source_of(review)}-")


def entry_of(review: Object) -> Entry:
    """An entry made from a review."""
    source = _source_of(review)
    native_id = review["id"].removeprefix(f"{source}-")
    entry = Entry(source, author=author_digest(review["author"]))
    entry.created, entry.replied = map(
        _read, (review["date"], (review.get("owner_reply") or {}).get("date"))
    )
    if derived := DERIVED_ID.fullmatch(native_id):
        entry.row = derived[1]
        entry.text = text_digest(review)
    else:
        entry.native = {"": native_id}
    dates = filter(None, (entry.created, entry.replied))
    entry.seen = max(date if ":" in date else f"{date}T23:59:59Z" for date in dates)
    return entry


def entries_of(
    reviews: Mapping[str, Object], entries: Mapping[str, Entry]
) -> dict[str, Entry]:
    """The entries, completed by those of stored reviews that have none: reviews of the owner's own."""
    return {
        **entries,
        **{id: entry_of(reviews[id]) for id in reviews.keys() - entries.keys()},
    }


def _read(text: str | None) -> str:
    """A date of reviews.json as `cells.read_date` writes it."""
    with suppress(BadRecord):
        return read_date(text or "", DateFormat())
    return (text or "")[:10]


# ---- Keys: by which a review is recognized ----

Key = tuple[str, ...]  # a kind of key, and what identifies the review


def exact_keys(entry: Entry) -> list[Key]:
    """The keys that no other review has: its ids and its moment, or its row and text if it has no id."""
    keys: list[Key] = [
        ("id", entry.source, native_id) for native_id in entry.native.values()
    ]
    if entry.source == "google" and entry.created.endswith("Z"):
        keys.append(("moment", entry.location, entry.created))
        keys.append(("moment and author", entry.created, entry.author))
    if entry.row and not entry.native:
        keys.append(("row", entry.row, entry.text))
    return keys


def _keys(entry: Entry) -> list[Key]:
    """All keys by which a record finds an entry."""
    keys: list[Key] = (
        [("row", entry.row), ("row", entry.row, entry.text)] if entry.row else []
    )
    return [*exact_keys(entry), *keys]


def _row_key(record: Record, days: int = 0) -> str:
    """The key of a row, as if it were dated `days` days later."""
    author = fold((record.review or {})["author"])
    return digest(record.source, author, shifted(record.created, days))[:24]


def _moment_keys(record: Record) -> list[Key]:
    """The same author anywhere, then the same location, at the moment of a record of Google's own exports."""
    if record.format == "table":
        return []
    author = author_digest((record.review or {})["author"])
    created = record.created
    of_location: list[Key] = [
        ("moment", location, created) for location in (record.location, "")
    ]
    return [("moment and author", created, author), *of_location]


# By step: the keys by which a record without a known id finds a review that no other record has taken.
MATCHING_STEPS: Sequence[Callable[[Record], list[Key]]] = (
    _moment_keys,
    lambda record: [("row", _row_key(record), text_digest(record.review))],
    lambda record: [("row", _row_key(record))],
    lambda record: [
        ("row", _row_key(record, days), text_digest(record.review)) for days in NEAR
    ],
)


class Register:
    """Finds the entries of records by their keys, and adds entries of new reviews."""

    def __init__(self, entries: dict[str, Entry]):
        self.entries = entries
        self._ids = defaultdict[Key, dict[str, None]](
            dict
        )  # of the entries that have or had a key, in order
        for id in sorted(entries):
            self._index(id)

    def _index(self, id: str) -> None:
        for key in _keys(self.entries[id]):
            self._ids[key][id] = None

    def identify(self, records: Iterable[Record]) -> Iterator[tuple[Record, str]]:
        """One record of Google's, or those of a table, with ids; new ones without content are left out."""
        waiting = list[Record]()
        taken = set[str]()
        queue = cache(lambda key: iter([*self._ids.get(key, ())]))
        for record in records:
            if id := self._known_id(record):
                taken.add(id)
                yield self._assign(id, record)
            elif record.review:
                waiting.append(record)
        waiting.sort(
            key=lambda record: bool(record.native_id)
        )  # a row without an id can take any review
        for keys_of in MATCHING_STEPS:
            unmatched = list[Record]()
            for record in waiting:
                ids = (
                    (key, id)
                    for key in keys_of(record)
                    for id in queue(key)
                    if id not in taken
                )
                if id := next(
                    (id for key, id in ids if self._is_free(id, key, record)), ""
                ):
                    taken.add(id)
                    yield self._assign(id, record)
                else:
                    unmatched.append(record)
            waiting = unmatched
        for record in waiting:
            yield self._assign(self._known_id(record) or self._new_id(record), record)

    def _known_id(self, record: Record) -> str:
        """The id of the review with the native id of a record, empty if none is known."""
        return next(
            iter(self._ids.get(("id", record.source, record.native_id), ())), ""
        )

    def _is_free(self, id: str, key: Key, record: Record) -> bool:
        """Whether an entry still has a key, and no id of the kind that the record has."""
        entry = self.entries[id]
        return key in _keys(entry) and not (
            record.native_id and _slot(record) in entry.native
        )

    def _new_id(self, record: Record) -> str:
        """An id for a new review; for a row without a native id, the first id that is free."""
        if record.native_id:
            return f"{record.source}-{record.native_id}"
        row = _row_key(record)
        numbers = count(len(self._ids["row", row]) + 1)
        ids = (
            f"{record.source}-{row}" + (f"-{number}" if number > 1 else "")
            for number in numbers
        )
        return next(id for id in ids if id not in self.entries)

    def _assign(self, id: str, record: Record) -> tuple[Record, str]:
        entry = self.entries.setdefault(
            id, Entry(record.source, created=record.created)
        )
        entry.location = entry.location or record.location
        if record.native_id:
            entry.native.setdefault(_slot(record), record.native_id)
        if record.format == "table" and record.review:
            entry.row = _row_key(record)
            entry.text = text_digest(record.review)
        self._index(id)
        return record, id


def _slot(record: Record) -> str:
    """The key of a native id in an entry: Takeout and the API each give a review an id per location."""
    return f"{record.format} {record.location}".rstrip()
