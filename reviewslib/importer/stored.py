"""What a data directory holds when an import begins. This module is pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reviewslib.dataset.reading import REVIEWS_FILE
from reviewslib.dataset.strict_json import Json
from reviewslib.importer import recognition
from reviewslib.importer.exports import ReviewInFile
from reviewslib.importer.state import Entry, State


class Stored(NamedTuple):
    """The content of a data directory."""

    document: dict[str, Json]  # of reviews.json, empty without it
    reviews_digest: str
    insights: bytes | None
    state: State
    suppressed: Sequence[str]  # lines of suppressed.txt
    redactions: Sequence[str]  # lines of redacted.txt

    @property
    def reviews(self) -> dict[str, ReviewInFile]:
        """The reviews by id."""
        return {review["id"]: review for review in self.document.get("reviews", ())}

    @property
    def business(self) -> dict[str, Json]:
        """What the owner says of the business, empty without a file."""
        business: dict[str, Json] = self.document.get("business", {})
        return business

    @property
    def edited_copy(self) -> str:
        """The name for a copy of a reviews.json that somebody has edited."""
        return f"{REVIEWS_FILE}.edited-{self.reviews_digest[:8]}"

    def entries(self) -> dict[str, Entry]:
        """The entries of the state by id; new ones from reviews.json if it is lost."""
        if self.state.reviews_digest:
            return self.state.reviews
        made = dict[str, Entry]()
        for id, review in self.reviews.items():
            if not recognition.is_own(review):
                made[id] = recognition.entry_of(review)
        return made or self.state.reviews
