"""Recognition: finds the stored review of a record. A review keeps its first id.

This module is pure; it knows no format.

Sections: digests and days - entries of stored reviews, if the state has none - keys.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from itertools import count

from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.text import fold
from reviewslib.importer.dates import DateFormat, read_date
from reviewslib.importer.exports import Record
from reviewslib.importer.names import SHARED_NAMES
from reviewslib.importer.state import Entry
from reviewslib.importer.texts import BadRecord

# ---- Digests and days ----

# Hexadecimal digits, of SHA-256's 64: enough to tell one state's texts and rows apart,
# whose digests meet by chance only. Those of suppressed.txt are whole: they are tried
# against everything that may ever be imported.
TEXT_DIGITS = 16
ROW_DIGITS = 24


def digest(*lines: str) -> str:
    """SHA-256 of lines joined by LF, as in suppressed.txt."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def row_text_digest(review: Object | None) -> str:
    """The digest by which the texts of rows are compared."""
    return digest("text", (review or {}).get("text") or "")[:TEXT_DIGITS]


def author_digest(author: str) -> str:
    """The digest of an author's whole name, folded."""
    return digest("author", fold(author))


SHARED_AUTHORS = frozenset(author_digest(name) for name in SHARED_NAMES)


# In days: tools date one review in different zones, which are less than a day apart.
NEAR = (-1, 1)


def shifted(day: str, days: int) -> str:
    """The day that is `days` days after `day`, which is a day or a moment."""
    return (date.fromisoformat(day[:10]) + timedelta(days=days)).isoformat()


# ---- Entries of stored reviews, if the state has none ----

# The id of a row without one: its key, and a number from the second such row on.
DERIVED_ID = re.compile(rf"([0-9a-f]{{{ROW_DIGITS}}})(?:-[0-9]+)?")


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
    reply = review.get("owner_reply") or {}
    entry.created = _read(review["date"])
    entry.replied = _read(reply.get("date"))
    derived = DERIVED_ID.fullmatch(native_id)
    if derived:
        entry.row = derived[1]
        entry.text = row_text_digest(review)
    else:
        entry.native = {"": native_id}
    # An export had it at the end of that day at the latest.
    dates = [date for date in (entry.created, entry.replied) if date]
    entry.seen = max(date if ":" in date else f"{date}T23:59:59Z" for date in dates)
    return entry


def entries_of(
    reviews: Mapping[str, Object], entries: Mapping[str, Entry]
) -> dict[str, Entry]:
    """The entries, and made ones for reviews of the owner's own, which have none."""
    missing = reviews.keys() - entries.keys()
    return {**entries} | {id: entry_of(reviews[id]) for id in missing}


def _read(text: str | None) -> str:
    """A date of reviews.json as `dates.read_date` writes it."""
    with suppress(BadRecord):
        return read_date(text or "", DateFormat())
    return (text or "")[:10]


# ---- Keys: by which a review is recognized ----

Key = tuple[str, ...]  # a kind of key, and what identifies the review


def exact_keys(entry: Entry) -> list[Key]:
    """The keys that no other review has.

    Its ids and its moment, or its row and text if it has no id.
    """
    ids = entry.native.values()
    keys: list[Key] = [("id", entry.source, native_id) for native_id in ids]
    if entry.source == "google" and entry.created.endswith("Z"):
        keys.append(("moment", entry.location, entry.created))
        keys.append(("moment and author", entry.created, entry.author))
    if entry.row and not entry.native:
        keys.append(("row", entry.row, entry.text))
    return keys


def person_keys(entry: Entry) -> list[Key]:
    """The author, location and day of a review of Google.

    Google takes one review of a person and a place. None for a name that many share.
    """
    if not _is_of_a_person(entry):
        return []
    return [_person_key(entry.location, entry, 0)]


def near_person_keys(entry: Entry) -> list[Key]:
    """The person keys that the same review may have: its day and those beside it.

    Without a location, too, since a stored review has none after a loss of the state.
    """
    if not _is_of_a_person(entry):
        return []
    places = dict.fromkeys([entry.location, ""])
    keys = list[Key]()
    for place in places:
        keys += [_person_key(place, entry, days) for days in (0, *NEAR)]
    return keys


def _is_of_a_person(entry: Entry) -> bool:
    is_googles = entry.source == "google" and entry.created.endswith("Z")
    return is_googles and entry.author not in SHARED_AUTHORS


def _person_key(place: str, entry: Entry, days: int) -> Key:
    return ("person", place, entry.author, shifted(entry.created, days))


def _is_without_place(key: Key) -> bool:
    """Whether a key is of a person whose review may be of any location."""
    return key[:2] == ("person", "")


def _keys(entry: Entry) -> list[Key]:
    """All keys by which a record finds an entry."""
    keys = exact_keys(entry) + person_keys(entry)
    if entry.row:
        keys.append(("row", entry.row))
        keys.append(("row", entry.row, entry.text))
    return keys


def _row_key(record: Record, days: int = 0) -> str:
    """The key of a row, as if it were dated `days` days later."""
    author = fold((record.review or {})["author"])
    return digest(record.source, author, shifted(record.created, days))[:ROW_DIGITS]


def _moment_keys(record: Record) -> list[Key]:
    """The same author anywhere, then the same location, at the moment of a record.

    Takeout and the API give a review two ids; the second of its creation is the same.
    """
    if record.format == "table":
        return []
    author = author_digest((record.review or {})["author"])
    created = record.created
    return [
        ("moment and author", created, author),
        ("moment", record.location, created),
        ("moment", "", created),  # before its location was known
    ]


def _equal_row_keys(record: Record) -> list[Key]:
    """The same source, author, day and text."""
    return [("row", _row_key(record), row_text_digest(record.review))]


def _row_keys(record: Record) -> list[Key]:
    """The same source, author and day."""
    return [("row", _row_key(record))]


def _near_row_keys(record: Record) -> list[Key]:
    """The same source, author and text, on the day before or after."""
    text = row_text_digest(record.review)
    return [("row", _row_key(record, days), text) for days in NEAR]


def _person_keys(record: Record) -> list[Key]:
    """The same author and location, on the same day or one beside it.

    Nobody has verified that Takeout and the API give equal moments.
    """
    if record.format == "table":
        return []
    entry = Entry(
        source=record.source,
        location=record.location,
        created=record.created,
        author=author_digest((record.review or {})["author"]),
    )
    return near_person_keys(entry)


# The keys by which a record without a known id finds a review that no other record has
# taken, in this order: what is surer comes first, for all records of a table.
MATCHING_STEPS: Sequence[Callable[[Record], list[Key]]] = (
    _moment_keys,
    _equal_row_keys,
    _row_keys,
    _near_row_keys,
    _person_keys,
)


class _Candidates:
    """The ids by key that no record of a table has taken or passed over yet.

    Each is offered once, so that many equal rows take no longer than their number.
    """

    def __init__(self, ids: Mapping[Key, Iterable[str]], taken: set[str]):
        self.taken = taken
        self._ids = ids
        self._queues = dict[Key, Iterator[str]]()

    def of(self, key: Key) -> Iterator[str]:
        """The next ids with this key."""
        if key not in self._queues:
            self._queues[key] = iter([*self._ids.get(key, ())])
        for id in self._queues[key]:
            if id not in self.taken:
                yield id


class Register:
    """Finds the entries of records by their keys, and adds entries of new reviews."""

    def __init__(self, entries: dict[str, Entry]):
        self.entries = entries
        # By key: the ids of the entries that have or had it, in order.
        self._ids = defaultdict[Key, dict[str, None]](dict)
        for id in sorted(entries):
            self._index(id)

    def _index(self, id: str) -> None:
        for key in _keys(self.entries[id]):
            self._ids[key][id] = None

    def identify(self, records: Iterable[Record]) -> list[tuple[Record, str]]:
        """One record of Google's, or those of a table, each with the id of its review.

        New records without content are left out.
        """
        found, waiting = self._known_and_others(records)
        # A row without an id can take any review, so it chooses first.
        waiting.sort(key=lambda record: bool(record.native_id))
        candidates = _Candidates(self._ids, {id for _, id in found})
        for keys_of in MATCHING_STEPS:
            matched, waiting = self._match(waiting, keys_of, candidates)
            found += matched
        for record in waiting:
            # An earlier record of this table may have had the same native id.
            id = self._known_id(record) or self._new_id(record)
            found.append(self._assign(id, record))
        return found

    def _known_and_others(
        self, records: Iterable[Record]
    ) -> tuple[list[tuple[Record, str]], list[Record]]:
        """The records with a known native id, and the others that have content."""
        known = list[tuple[Record, str]]()
        others = list[Record]()
        for record in records:
            id = self._known_id(record)
            if id:
                known.append(self._assign(id, record))
            elif record.review:
                others.append(record)
        return known, others

    def _match(
        self,
        records: Iterable[Record],
        keys_of: Callable[[Record], list[Key]],
        candidates: _Candidates,
    ) -> tuple[list[tuple[Record, str]], list[Record]]:
        """The records that find a free review by these keys, and the others."""
        matched = list[tuple[Record, str]]()
        others = list[Record]()
        for record in records:
            id = self._matching_id(record, keys_of(record), candidates)
            if id:
                matched.append(self._assign(id, record))
            else:
                others.append(record)
        return matched, others

    def _matching_id(
        self, record: Record, keys: Iterable[Key], candidates: _Candidates
    ) -> str:
        """The id of the first free review with one of the keys, else empty."""
        for key in keys:
            for id in candidates.of(key):
                if self._is_free(id, key, record):
                    candidates.taken.add(id)
                    return id
        return ""

    def _known_id(self, record: Record) -> str:
        """The id of the review with the native id of a record, else empty."""
        return self.id_of(record.source, record.native_id)

    def id_of(self, source: str, native_id: str) -> str:
        """The id of the review with a native id, empty if none is known."""
        ids = self._ids.get(("id", source, native_id), {})
        return next(iter(ids), "")

    def _is_free(self, id: str, key: Key, record: Record) -> bool:
        """Whether an entry still has a key, and no id of the kind that the record has.

        Who reviews two locations on one day has two reviews: then nothing tells which.
        """
        if _is_without_place(key) and len(self._ids[key]) > 1:
            return False
        entry = self.entries[id]
        has_other_id = bool(record.native_id) and _slot(record) in entry.native
        return key in _keys(entry) and not has_other_id

    def _new_id(self, record: Record) -> str:
        """An id for a new review.

        For a row without a native id, it is the first derived id that is free.
        """
        if record.native_id:
            return f"{record.source}-{record.native_id}"
        row = _row_key(record)
        first = f"{record.source}-{row}"
        used = len(self._ids["row", row])
        if not used and first not in self.entries:
            return first
        for number in count(max(used + 1, 2)):
            id = f"{first}-{number}"
            if id not in self.entries:
                return id
        raise AssertionError("count never ends")

    def _assign(self, id: str, record: Record) -> tuple[Record, str]:
        entry = self.entries.setdefault(
            id, Entry(record.source, created=record.created)
        )
        entry.location = entry.location or record.location
        if record.native_id:
            entry.native.setdefault(_slot(record), record.native_id)
        if record.format == "table" and record.review:
            entry.row = _row_key(record)
            entry.text = row_text_digest(record.review)
        self._index(id)
        return record, id


def _slot(record: Record) -> str:
    """The key of a native id in an entry.

    Takeout and the API each give a review an id per location.
    """
    return f"{record.format} {record.location}".rstrip()
