"""What imports remember of reviews, locations and settings, and the file in which they keep it.

The file holds no texts and no names; digests stand for them. This module is pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reviewslib.dataset.contract import BadData, Fault
from reviewslib.dataset.strict_json import NotJson, decode, encode
from reviewslib.importer.options import TableSettings, nonempty

STATE_FILE = "import-state.json"
DRAFT_FILE = "import-state.draft.json"


@dataclass(slots=True)  # to save memory: there are as many as reviews
class Entry:
    """What imports remember of a review; dates are as `cells.read_date` returns them."""

    source: str = ""
    native: dict[str, str] = field(default_factory=dict)  # ids by format and location
    location: str = ""  # at Google
    seen: str = ""  # time of the newest export that had it
    created: str = ""
    updated: str = ""
    replied: str = ""
    author: str = ""  # digest of the whole name
    row: str = ""  # if only tables have had it: digest of source, author and day
    text: str = ""  # digest of a row's text as last imported


@dataclass
class State:
    """What imports remember; settings that the owner has not given are empty."""

    settings: dict[str, str | bool] = field(default_factory=dict)  # values of flags
    chosen: list[str] = field(default_factory=list)  # locations
    locations: dict[str, str] = field(
        default_factory=dict
    )  # titles of those that the owner decided about
    headers: dict[str, TableSettings] = field(
        default_factory=dict
    )  # by normalized header
    covered: dict[str, str] = field(
        default_factory=dict
    )  # times of the newest complete exports, by scope
    suppressed: int = 0  # number of lines of suppressed.txt
    reviews_digest: str = (
        ""  # of reviews.json as last written; empty if the state is lost
    )
    reviews: dict[str, Entry] = field(
        default_factory=dict
    )  # by id; those of removed reviews are kept


def read_state(
    content: bytes | None, draft: bytes | None, reviews_digest: str
) -> State:
    """The state that belongs to a reviews.json with this digest. Raises BadData.

    A draft becomes the state file after reviews.json is replaced. After a kill in between, the draft counts.
    """
    for file, data in ((DRAFT_FILE, draft), (STATE_FILE, content)):
        try:
            document = decode(data or b"{}")
            reviews = {
                id: Entry(**entry) for id, entry in document.pop("reviews", {}).items()
            }
            headers = {
                key: TableSettings(**value)
                for key, value in document.pop("headers", {}).items()
            }
            state = State(**document, reviews=reviews, headers=headers)
        except (NotJson, TypeError, AttributeError):
            reason = "not a state of this version; delete the file, and it is made anew"
            raise BadData([Fault(file, (), reason)]) from None
        if data is not None and (
            file == STATE_FILE or state.reviews_digest == reviews_digest
        ):
            return state
    return State()


def encoded_state(state: State) -> bytes:
    """The content of the state file."""
    members = nonempty(state)
    for name in members.keys() & {"reviews", "headers"}:
        members[name] = {
            key: nonempty(members[name][key]) for key in sorted(members[name])
        }
    return encode(members) + b"\n"
