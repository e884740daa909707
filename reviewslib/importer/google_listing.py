"""A listing: what Google says of the reviews of a location.

Google's lists sometimes lack reviews from their second page on. So what a list lacks is
not gone: only an answer about the review itself says so. This module is pure.

Sections: the listing - what it lacks - its part of an export.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from reviewslib.dataset.strict_json import Object
from reviewslib.importer.exports import Export
from reviewslib.importer.google_faults import ODD_ANSWER, odd_answer
from reviewslib.importer.google_shapes import check_review, name_in, objects_in
from reviewslib.importer.stored import Stored
from reviewslib.importer.takeout import RESOURCE_NAME, Origin, add_reviews

# ---- The listing ----

# Google allows 300 requests a minute, and a run must end soon. The next one asks for
# the rest.
MAX_ASKED_REVIEWS = 200


@dataclass
class Listing:
    """What one or two readings of a list brought, and questions about what it lacks."""

    location: str
    time: str  # T, in UTC
    items: dict[str, Object] = field(default_factory=dict)  # by id
    total: int | None = None  # the largest that a page gave
    lacking: list[str] = field(default_factory=list)  # ids of stored reviews
    answered: set[str] = field(default_factory=set)  # of those, that are there or gone
    gone: list[str] = field(default_factory=list)  # ids

    def take_page(self, page: Object) -> None:
        """Add a page of the list. Raises GoogleFault for another shape."""
        for item in objects_in(page, "reviews"):
            self._add(item)
        total = page.get("totalReviewCount")
        if isinstance(total, int):
            self.total = max(total, self.total or 0)

    def take_answer(self, id: str, item: Object) -> None:
        """Add the review that was asked for. Raises GoogleFault for another one."""
        if self._add(item) != id:
            raise odd_answer("another review than asked for")
        self.answered.add(id)

    def take_denial(self, id: str) -> None:
        """Google says that the review does not exist."""
        self.gone.append(id)
        self.answered.add(id)

    def _add(self, item: Object) -> str:
        """Add a review; its id. Raises GoogleFault for another shape."""
        name = RESOURCE_NAME.fullmatch(name_in(item))
        if name is None or name[1] != self.location:
            raise odd_answer("name of a review")
        check_review(item)
        id = name[2]
        # Pages name the id twice. One that does not would be read as one of a Takeout.
        self.items[id] = {**item, "reviewId": id}
        return id

    @property
    def is_whole(self) -> bool:
        """Whether it has as many different reviews as the location."""
        if self.total is None:
            # A location without reviews has a page without members.
            return not self.items
        return len(self.items) >= self.total

    @property
    def questions(self) -> list[str]:
        """The ids of the reviews to ask for in this run."""
        return self.lacking[:MAX_ASKED_REVIEWS]

    @property
    def is_cut(self) -> bool:
        """Whether a run does not ask for all that it lacks."""
        return len(self.lacking) > MAX_ASKED_REVIEWS

    @property
    def open_questions(self) -> int:
        """How many reviews the next run has to ask for."""
        return len(self.lacking) - len(self.answered)


# ---- What it lacks ----


def lacked_ids(stored: Stored, location: str, listed_ids: Container[str]) -> list[str]:
    """The API's ids of the stored reviews of a location that a list lacks.

    Those of which nothing was heard for longest come first. A review of which Google
    has said that it does not exist is not asked for again: if it returns, a list has
    it. So the reviews that the brake holds are asked for once.
    """
    entries = stored.entries()
    waiting = list[tuple[str, str]]()
    for id in stored.reviews.keys() & entries.keys():
        entry = entries[id]
        native_id = entry.native.get(f"api {location}", "")
        if native_id and native_id not in listed_ids and not entry.is_denied:
            waiting.append((entry.seen, native_id))
    return [native_id for _, native_id in sorted(waiting)]


# ---- Its part of an export ----


def add_listing(export: Export, listing: Listing) -> None:
    """Add the reviews of a listing, and what it says of others.

    A whole one without an open question speaks for its location at T; any other speaks
    for nothing.
    """
    items = [*listing.items.values()]
    add_reviews(export, items, Origin("Google", listing.time))
    export.gone = dict.fromkeys(listing.gone, listing.time)
    if export.failed:
        export.advice[f"This is how Google answers; {ODD_ANSWER}"] = None
    if listing.is_whole and not listing.open_questions:
        export.covers[listing.location] = listing.time
        return
    export.urgent_notes.append(
        f"the list of location {listing.location} has {len(items)} of "
        f"{listing.total or 0} reviews; what it lacks stays as it was "
        f"({listing.open_questions} of the stored reviews are to be asked for again)"
    )
