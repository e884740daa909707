"""The content of a data directory, and what imports remember in the state file.

The state holds no texts and no names; digests stand for them. This module is pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from reviewslib.dataset.contract import BadData, Fault
from reviewslib.dataset.reviews import REVIEWS_FILE
from reviewslib.dataset.strict_json import Json, NotJson, decode, encode
from reviewslib.importer.exports import ReviewInFile
from reviewslib.importer.options import TableSettings

STATE_FILE, DRAFT_FILE = "import-state.json", "import-state.draft.json"


@dataclass(slots=True)  # to save memory: there are as many as reviews
class Entry:
    """What imports remember of a review; dates are those of `cells.read_date`, not yet in a zone."""

    source: str = ""
    native: dict[str, str] = field(default_factory=dict)  # ids by format and location
    location: str = ""  # at Google
    seen: str = ""  # time of the newest export that had it
    created: str = ""
    updated: str = ""
    replied: str = ""
    author: str = ""  # digest of the whole name
    row: str = ""  # of a table: digest of source, author and day
    text: str = ""  # digest of a row's text as last imported

    @property
    def scope(self) -> str:
        """The location or the source whose complete exports show whether the review still exists."""
        return self.location or self.source

    @property
    def is_row(self) -> bool:
        """Whether only tables have had the review."""
        return bool(self.row) and not any(slot.startswith(("takeout", "api")) for slot in self.native)


@dataclass
class State:
    """What imports remember; settings that the owner has not given are empty."""

    zone: str = ""
    short_names: bool = False
    avatars: bool = False
    chosen: list[str] = field(default_factory=list)  # locations
    locations: dict[str, str] = field(default_factory=dict)  # titles of all that the owner decided about
    headers: dict[str, TableSettings] = field(default_factory=dict)  # by normalized header
    covered: dict[str, str] = field(default_factory=dict)  # times of the newest complete exports, by scope
    held: dict[str, str] = field(default_factory=dict)  # times of those with removals held back, by scope
    suppressed: int = 0  # number of lines of suppressed.txt
    reviews_digest: str = ""  # of reviews.json as last written
    reviews: dict[str, Entry] = field(default_factory=dict)  # by id, with those of removed reviews


class Redaction(NamedTuple):
    """A line of redacted.txt."""

    id: str
    words: str
    digests: Sequence[str]  # of the review, in case it gets another id

    @property
    def line(self) -> str:
        """The line, with tabs between its parts."""
        return "\t".join(filter(None, [self.id, self.words, " ".join(self.digests)]))


class Stored(NamedTuple):
    """The content of a data directory."""

    document: dict[str, Json]  # of reviews.json, empty without it
    reviews_digest: str
    insights: bytes | None
    state: State
    suppressed: Sequence[str]  # lines of suppressed.txt
    redactions: Sequence[Redaction]

    @property
    def reviews(self) -> dict[str, ReviewInFile]:
        """The reviews by id."""
        return {review["id"]: review for review in self.document.get("reviews", ())}

    @property
    def is_lost(self) -> bool:
        """Whether the state file is absent."""
        return not self.state.reviews_digest

    @property
    def is_edited(self) -> bool:
        """Whether reviews.json has changed since the last import."""
        return self.state.reviews_digest not in ("", self.reviews_digest)

    @property
    def edited_copy(self) -> str:
        """The name of the copy that is kept of an edited reviews.json."""
        return f"{REVIEWS_FILE}.edited-{self.reviews_digest[:8]}"


# ---- The state file ----


def read_state(content: bytes | None, draft: bytes | None, reviews_digest: str) -> State:
    """The state that belongs to a reviews.json with this digest. Raises BadData.

    A draft becomes the state file after reviews.json is replaced. After a kill in between, the draft counts.
    """
    for file, data in ((DRAFT_FILE, draft), (STATE_FILE, content)):
        try:
            document = decode(data or b"{}")
            reviews = {id: Entry(**entry) for id, entry in document.pop("reviews", {}).items()}
            headers = {key: TableSettings(**value) for key, value in document.pop("headers", {}).items()}
            state = State(**document, reviews=reviews, headers=headers)
        except (NotJson, TypeError, AttributeError):
            reason = "not a state of this version; delete the file, and it is made anew"
            raise BadData([Fault(file, (), reason)]) from None
        if data is not None and (file == STATE_FILE or state.reviews_digest == reviews_digest):
            return state
    return State()


def encoded_state(state: State) -> bytes:
    """The content of the state file."""
    members = _members(state)
    for name in members.keys() & {"reviews", "headers"}:
        members[name] = {key: _members(members[name][key]) for key in sorted(members[name])}
    return encode(members) + b"\n"


def _members(value: Any) -> dict[str, Json]:
    """The members of a dataclass that are not empty."""
    return {key.name: member for key in fields(value) if (member := getattr(value, key.name))}
