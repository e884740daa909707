"""What imports remember of reviews, locations and settings, and the file of it.

The file holds no texts and no names; digests stand for them. This module is pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reviewslib.dataset.reading import IMPORT_STATE_FILE
from reviewslib.dataset.strict_json import NotJson, decode, encode
from reviewslib.faults import BadData, Fault
from reviewslib.importer.options import TableSettings, nonempty

STATE_FILE = IMPORT_STATE_FILE
DRAFT_FILE = "import-state.draft.json"


# There are as many entries as reviews; slots save a third of their memory.
@dataclass(slots=True)
class Entry:
    """What imports remember of a review; dates are as of `dates.read_date`."""

    source: str = ""
    native: dict[str, str] = field(default_factory=dict)  # ids by format and location
    location: str = ""  # at Google
    seen: str = ""  # time of the newest export that had it
    gone: str = ""  # newest time at which Google said that it does not exist
    created: str = ""
    updated: str = ""
    replied: str = ""
    author: str = ""  # digest of the whole name
    row: str = ""  # if only tables have had it: digest of source, author and day
    text: str = ""  # digest of a row's text as last imported
    written: str = ""  # digest of the review as the import wrote it

    @property
    def is_denied(self) -> bool:
        """Whether Google has said since it was last seen that it does not exist."""
        return self.gone > self.seen

    @property
    def scope(self) -> str:
        """Whose complete exports show whether the review still exists."""
        return self.location or self.source


@dataclass
class State:
    """What imports remember; settings that the owner has not given are empty."""

    # The newest T of all exports so far. It is first in the file, since the service
    # reads no more.
    newest_export: str = ""
    settings: dict[str, str | bool] = field(default_factory=dict)  # values of flags
    chosen: list[str] = field(default_factory=list)  # locations
    # Titles of the locations that the owner has decided about.
    locations: dict[str, str] = field(default_factory=dict)
    # By normalized header.
    headers: dict[str, TableSettings] = field(default_factory=dict)
    # Times of the newest complete exports, by scope.
    covered: dict[str, str] = field(default_factory=dict)
    suppressed: int = 0  # number of lines of suppressed.txt
    # Digests of members of `business` as written after Google's profile.
    profile: dict[str, str] = field(default_factory=dict)
    # Of reviews.json as last written; empty if the state is lost.
    reviews_digest: str = ""
    said: list[str] = field(default_factory=list)  # digests of lines to say once
    # By id. Those of removed reviews are kept, since a review may return.
    reviews: dict[str, Entry] = field(default_factory=dict)

    def lasting(self) -> tuple[object, ...]:
        """What is worth writing by itself: all but the moments that each run moves."""
        entries = {
            id: (tuple(entry.native.items()), entry.location, entry.is_denied)
            for id, entry in self.reviews.items()
        }
        return (
            dict(self.settings),
            list(self.chosen),
            dict(self.locations),
            dict(self.headers),
            dict(self.profile),
            list(self.said),
            self.suppressed,
            entries,
        )


def read_state(
    content: bytes | None, draft: bytes | None, reviews_digest: str
) -> State:
    """The state that belongs to a reviews.json with this digest. Raises BadData.

    A draft becomes the state file after reviews.json is replaced. After a kill in
    between, the draft counts.
    """
    drafted = _decoded(DRAFT_FILE, draft)
    if drafted and drafted.reviews_digest == reviews_digest:
        return drafted
    return _decoded(STATE_FILE, content) or State()


def _decoded(file: str, content: bytes | None) -> State | None:
    """The state in a file, None without the file. Raises BadData."""
    if content is None:
        return None
    try:
        members = decode(content)
        reviews = members.pop("reviews", {})
        headers = members.pop("headers", {})
        return State(
            **members,
            reviews={id: Entry(**entry) for id, entry in reviews.items()},
            headers={key: TableSettings(**value) for key, value in headers.items()},
        )
    except (NotJson, TypeError, AttributeError):
        reason = "not a state of this version; delete the file, and it is made anew"
        raise BadData([Fault(file, (), reason)]) from None


def encoded_state(state: State) -> bytes:
    """The content of the state file."""
    members = nonempty(state)
    for name in ("reviews", "headers"):
        if name in members:
            entries = members[name]
            members[name] = {key: nonempty(entries[key]) for key in sorted(entries)}
    return encode(members) + b"\n"
