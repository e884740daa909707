"""A listing: what Google's list of a location has, and which stored reviews it lacks.

Google's lists sometimes lack reviews from their second page on. So what a list lacks is
not gone: only an answer about the review itself says so. This module is pure. Its
sections: the listing, what it lacks.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from reviewslib.dataset.strict_json import Object
from reviewslib.importer.google_faults import odd_answer
from reviewslib.importer.google_shapes import check_review, name_in, objects_in
from reviewslib.importer.stored import Stored
from reviewslib.importer.takeout import RESOURCE_NAME

# ---- The listing ----


@dataclass
class Listing:
    """What one or two readings of a location's list, and questions, have brought."""

    location: str
    time: str  # T, in UTC
    items: dict[str, Object] = field(default_factory=dict)  # by id
    total: int | None = None  # the largest that a page gave

    def take(self, page: Object) -> None:
        """Add a page of the list. Raises GoogleFault for another shape."""
        for item in objects_in(page, "reviews"):
            self.add(item)
        total = page.get("totalReviewCount")
        if isinstance(total, int):
            self.total = max(total, self.total or 0)

    def add(self, item: Object) -> str:
        """Add a review; its id. Raises GoogleFault for another shape."""
        id = _review_id(item, self.location)
        check_review(item)
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


def _review_id(item: Object, location: str) -> str:
    """The id of a review of this location. Raises GoogleFault."""
    name = RESOURCE_NAME.fullmatch(name_in(item))
    if name is None or name[1] != location:
        raise odd_answer("name of a review")
    return name[2]


# ---- What it lacks ----


def lacked_ids(stored: Stored, location: str, listed_ids: Container[str]) -> list[str]:
    """The API's ids of the stored reviews of a location that a listing lacks.

    Those of which nothing was heard for longest come first. A review of which Google has
    said that it does not exist is not asked for again: if it returns, a list has it. So
    the reviews that the brake holds are asked for once.
    """
    entries = stored.entries()
    waiting = list[tuple[str, str]]()
    for id in stored.reviews.keys() & entries.keys():
        entry = entries[id]
        native_id = entry.native.get(f"api {location}", "")
        if native_id and native_id not in listed_ids and not entry.is_denied:
            waiting.append((entry.seen, native_id))
    return [native_id for _, native_id in sorted(waiting)]
