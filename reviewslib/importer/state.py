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
from reviewslib.importer.exports import ANONYMOUS, Export, ReviewInFile, Said

# ---- State ----

STATE_FILE = "import-state.json"


@dataclass(slots=True)  # there are as many as reviews
class Entry:
    """What is known of a review."""

    source: str = ""
    native: dict[str, str] = field(default_factory=dict)  # ids at the source by form, once moved by location
    location: str = ""
    join: str = ""  # the same for a review in Takeout and in the API
    author: str = ""  # digest, as in suppressed.txt
    updated: str = ""  # UTC
    replied: str = ""  # UTC, of the reply
    seen: str = ""  # UTC, the time of the newest export that had it
    digests: dict[str, str] = field(default_factory=dict)  # of the fields as last imported
    clocks: list[str] = field(default_factory=list)  # keys whose moments were written without a zone
    row: str = ""  # what rows without ids find it by, if its day is not the one of its id


@dataclass
class State:
    """What is known of all; what a file does not have is empty."""

    zone: str = ""
    zones: list[str] = field(default_factory=list)  # wrong ones, in which dates were written before
    names: str = ""  # "short" or "full"
    avatars: str = ""  # "yes" or empty
    locations: list[str] = field(default_factory=list)  # those that --location named
    headers: dict[str, Said] = field(default_factory=dict)  # of CSV files, as `csv_reviews.Header.key`
    insights: str = ""  # digest of insights.json as last counted
    replaced: str = ""  # digest of the reviews.json that was to be replaced
    complete: dict[str, str] = field(default_factory=dict)  # time of the newest complete export by location
    parted: dict[str, str] = field(default_factory=dict)  # an export in several parts by location
    titles: dict[str, str] = field(default_factory=dict)  # of locations
    hidden: dict[str, str] = field(default_factory=dict)  # line of suppressed.txt by marks of what it erased
    annotated: dict[str, str] = field(default_factory=dict)  # digests of annotation and review by id
    exports: dict[str, Export] = field(default_factory=dict)  # of which other parts may come
    reviews: dict[str, Entry] = field(default_factory=dict)
    earlier: dict[str, Entry] = field(default_factory=dict)  # of those, the ones last changed, as before


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


KINDS: dict[str, type[Any]] = {
    "Entry": Entry,
    "Export": Export,
    "Said": Said,
    "State": State,
}  # by annotation


def _made(annotation: str, value: Json, *path: str) -> Any:
    """What a field with this annotation holds, of JSON; unknown keys are left out. Raises BadData."""
    inner, kind = re.sub(r"^\w+\[str, ", "", annotation)[:-1], KINDS.get(annotation)
    is_right = isinstance(value, {"str": str, "list[str]": list}.get(annotation, dict))
    if not is_right or (annotation == "list[str]" and not all(isinstance(each, str) for each in value)):
        raise BadData([Fault(STATE_FILE, path, "unexpected; delete the file to have it made anew")])
    if kind:
        known = {each.name: str(each.type) for each in fields(kind) if each.name in value}
        return kind(**{name: _made(inner, value[name], *path, name) for name, inner in known.items()})
    return {key: _made(inner, value[key], *path, key) for key in value} if inner != annotation[:-1] else value


def read_state(document: Json | None, reviews_digest: str) -> State:
    """The state of a parsed file, if there is one, beside a reviews.json with this digest. Raises BadData.

    The state is written first. Where reviews.json was not replaced after it, the earlier entries hold.
    """
    state: State = _made("State", document) if document is not None else State()
    if document and "exports" not in document:  # made before parts were known: each may be a part alone
        state.exports, state.complete = {"": Export({"001": ""}, state.complete)}, {}
        state.exports[""].note_whole(state.exports[""].times)
    if document and "headers" not in document:  # made before zones could be put right
        for entry in state.reviews.values():
            entry.clocks = clocks_unknown(entry.source)
    if state.replaced == reviews_digest:
        state.reviews |= state.earlier
    return state


def digest(*lines: str) -> str:
    """SHA-256 of lines joined by LF, as in suppressed.txt: source and native id, or source and author."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


# ---- Entries: what tells a review from others ----


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
    join = join_key(source, utc_of(review["date"]), author)
    return Entry(source, join=join, author=digest(source, author), clocks=clocks_unknown(source))


def clocks_unknown(source: str) -> list[str]:
    """The keys whose moments had no zone, where nothing says it: those of tables."""
    return [] if source == "google" else ["date", "owner_reply"]


def row_digest(author: str, day: str) -> str:
    """What finds a review whose day is not the one of its id; `author` as in `Entry`."""
    return digest(author, day)[:24]


# ---- Zones: a wrong one is put right ----


def rewritten(stored: Stored, zone: str) -> Stored:
    """The stored reviews with their dates in another zone, and what the state knows of them.

    Clock times stay what they are; other moments stay the moments that they are; days stay days.
    """
    reviews, entries = list[ReviewInFile](), dict(stored.state.reviews)
    for review in stored.reviews.values():
        entry = entries.get(review["id"]) or entry_of(review)
        reply, day = review.get("owner_reply"), calendar_day(review)
        review = review | {"date": rezoned(review["date"], zone, is_clock="date" in entry.clocks)}
        if reply and reply.get("date"):
            known = value_digest({key: reply.get(key) for key in ("text", "date")})
            is_clock = "owner_reply" in entry.clocks
            review["owner_reply"] = reply = reply | {"date": rezoned(reply["date"], zone, is_clock=is_clock)}
            if entry.digests.get("owner_reply") == known:
                imported = value_digest({key: reply[key] for key in ("text", "date")})
                entry = replace(entry, digests=entry.digests | {"owner_reply": imported})
            if is_clock:
                entry = replace(entry, replied=utc_of(reply["date"]))
        if "date" in entry.clocks and entry.join:
            entry = replace(entry, join=join_key(entry.source, utc_of(review["date"]), review["author"]))
        if not entry.native and day != calendar_day(review):
            entry = replace(entry, row=row_digest(entry.author, calendar_day(review)))
        entries[review["id"]] = entry
        reviews.append(review)
    state = stored.state
    zones = sorted({*state.zones, state.zone} - {zone, ""})
    state = replace(state, zone=zone, zones=zones, reviews=entries)
    return stored._replace(document=stored.document | {"reviews": reviews}, state=state)
