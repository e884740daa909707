"""What a data directory holds, and what imports remember of it.

Digests stand for names and for what people wrote. This module is pure; of exports it knows the form alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from reviewslib.dataset.contract import BadData, Fault
from reviewslib.dataset.insights import value_digest
from reviewslib.dataset.reviews import calendar_day
from reviewslib.dataset.strict_json import Json
from reviewslib.dataset.text import fold
from reviewslib.importer.cells import rezoned, utc_of
from reviewslib.importer.exports import ANONYMOUS, HEAD_FILES, Export, ReviewInFile
from reviewslib.importer.options import CsvSettings

# ---- State ----

STATE_FILE = "import-state.json"


@dataclass(slots=True)  # there are as many as reviews
class Entry:
    """What is known of a review."""

    source: str = ""
    native: dict[str, str] = field(default_factory=dict)  # ids by format, after a move also by location
    location: str = ""
    match_key: str = ""  # as `match_key` gives it
    author: str = ""  # digest, as in suppressed.txt
    updated: str = ""  # UTC
    replied: str = ""  # UTC, of the reply
    seen: str = ""  # UTC, the time of the newest export that had it
    digests: dict[str, str] = field(default_factory=dict)  # of the fields as last imported
    naive: list[str] = field(default_factory=list)  # keys whose moments were written without a zone
    row: str = ""  # key of a row without an id, if the day has changed since the id was made

    def copy(self) -> Entry:
        """A copy that can be changed."""
        return replace(self, native={**self.native}, digests={**self.digests})

    @staticmethod
    def of(review: ReviewInFile) -> Entry:
        """What a stored review tells of itself."""
        source, author = fold(review.get("source") or "unknown"), fold(review["author"])
        key = match_key(source, utc_of(review["date"]), author)
        return Entry(source, match_key=key, author=digest(source, author), naive=_possibly_naive(source))


@dataclass
class State:
    """What is known of all; what a file does not have is empty."""

    zone: str = ""
    zones: list[str] = field(default_factory=list)  # wrong ones, in which dates were written before
    names: str = ""  # "short" or "full"
    avatars: str = ""  # "yes" or empty
    locations: list[str] = field(default_factory=list)  # those that --location named
    headers: dict[str, CsvSettings] = field(default_factory=dict)  # by `csv_reviews.Header.key`
    insights: str = ""  # digest of insights.json as last counted
    replaced: str = ""  # digest of the reviews.json that was to be replaced
    complete: dict[str, str] = field(default_factory=dict)  # time of the newest complete export by location
    multipart: dict[str, str] = field(default_factory=dict)  # an export in several parts by location
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    # Other digests of a suppressed review (of its ids in other formats, its match key), and its line.
    suppressed_aliases: dict[str, str] = field(default_factory=dict)
    annotated: dict[str, str] = field(default_factory=dict)  # digests of annotation and review by id
    exports: dict[str, Export] = field(default_factory=dict)  # of which other parts may come
    reviews: dict[str, Entry] = field(default_factory=dict)
    earlier: dict[str, Entry] = field(default_factory=dict)  # what the last change replaced in `reviews`


class Stored(NamedTuple):
    """What a data directory holds."""

    document: dict[str, Json]  # of reviews.json, empty without it
    reviews_digest: str
    insights: bytes | None
    state: State  # empty where it was lost
    suppressed: Collection[str]  # lines of suppressed.txt

    @property
    def reviews(self) -> dict[str, ReviewInFile]:
        """By id."""
        return {review["id"]: review for review in self.document.get("reviews", ())}

    def entry(self, review: ReviewInFile) -> Entry:
        """What is known of a stored review, at least what it tells of itself."""
        return self.state.reviews.get(review["id"]) or Entry.of(review)

    def in_zone(self, zone: str) -> Stored:
        """The same with all dates in another zone: naive times keep the time of the day, days stay."""
        reviews, entries = list[ReviewInFile](), dict(self.state.reviews)
        for old in self.reviews.values():
            entry = self.entry(old).copy()
            review = old | {"date": rezoned(old["date"], zone, is_naive="date" in entry.naive)}
            if (reply := old.get("owner_reply")) and reply.get("date"):
                is_naive = "owner_reply" in entry.naive
                new_reply = reply | {"date": rezoned(reply["date"], zone, is_naive=is_naive)}
                review["owner_reply"] = new_reply
                if entry.digests.get("owner_reply") == _reply_digest(reply):
                    entry.digests["owner_reply"] = _reply_digest(new_reply)
                if is_naive:
                    entry.replied = utc_of(new_reply["date"])
            if "date" in entry.naive and entry.match_key:
                entry.match_key = match_key(entry.source, utc_of(review["date"]), review["author"])
            if not entry.native and calendar_day(old) != calendar_day(review):
                entry.row = row_digest(entry.author, calendar_day(review))
            entries[review["id"]] = entry
            reviews.append(review)
        zones = sorted({*self.state.zones, self.state.zone} - {zone, ""})
        state = replace(self.state, zones=zones, reviews=entries)
        return self._replace(document=self.document | {"reviews": reviews}, state=state)


# ---- The state file ----

CLASSES: dict[str, type[Any]] = {each.__name__: each for each in (Entry, Export, CsvSettings, State)}
# Keys that earlier versions wrote, as they are called now.
RENAMED = {"hidden": "suppressed_aliases", "parted": "multipart", "join": "match_key", "clocks": "naive"}


def _parsed(annotation: str, value: Json, *path: str) -> Any:
    """What a field with this annotation holds, of JSON; unknown keys are left out. Raises BadData."""
    inner, kind = re.sub(r"^\w+\[str, ", "", annotation)[:-1], CLASSES.get(annotation)
    is_right = isinstance(value, {"str": str, "list[str]": list}.get(annotation, dict))
    if not is_right or (annotation == "list[str]" and not all(isinstance(each, str) for each in value)):
        raise BadData([Fault(STATE_FILE, path, "unexpected; delete the file to have it made anew")])
    if kind:
        value = {RENAMED.get(name, name): member for name, member in value.items()}
        known = {each.name: str(each.type) for each in fields(kind) if each.name in value}
        return kind(**{name: _parsed(inner, value[name], *path, name) for name, inner in known.items()})
    is_dict = inner != annotation[:-1]
    return {key: _parsed(inner, value[key], *path, key) for key in value} if is_dict else value


def read_state(document: Json | None, reviews_digest: str) -> State:
    """The state of a parsed file, if there is one, beside a reviews.json with this digest. Raises BadData.

    The state is written first. Where reviews.json was not replaced after it, the earlier entries hold.
    """
    state: State = _parsed("State", document) if document is not None else State()
    if document and "exports" not in document:  # made before parts were known: each may be a part alone
        locations = {"": [*HEAD_FILES, *state.complete]}
        state.exports, state.complete = {"": Export({"001": ""}, state.complete, locations)}, {}
    if document and "headers" not in document:  # made before zones could be put right
        for entry in state.reviews.values():
            entry.naive = _possibly_naive(entry.source)
    if state.replaced == reviews_digest:
        state.reviews |= state.earlier
    return state


# ---- Keys: what tells a review from others ----


def digest(*lines: str) -> str:
    """SHA-256 of lines joined by LF, as in suppressed.txt: source and native id, or source and author."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def short_name(author: str) -> str:
    """First name and initial, such as “Camille R.” for “Camille Roux”."""
    first, *others = author.split() or [""]
    return f"{first} {others[-1][0]}." if others and author != ANONYMOUS else author


def match_key(source: str, utc: str, author: str) -> str:
    """The same for a review in Takeout and in the API; empty without a moment."""
    return digest(source, utc, short_name(fold(author))) if utc else ""


def row_digest(author: str, day: str) -> str:
    """The key of a row without an id; `author` as in `Entry`."""
    return digest(author, day)[:24]


def _possibly_naive(source: str) -> list[str]:
    """The keys whose moments may have had no zone, where nothing says it: those of tables."""
    return [] if source == "google" else ["date", "owner_reply"]


def _reply_digest(reply: ReviewInFile) -> str:
    return value_digest({key: reply.get(key) for key in ("text", "date")})
