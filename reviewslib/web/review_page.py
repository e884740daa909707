"""The page of one review."""

from __future__ import annotations

from reviewslib.dataset.reviews import Review
from reviewslib.dataset.searching import neighbours
from reviewslib.web.site import Site
from reviewslib.web.templating import rendered


def review_page(site: Site, review: Review) -> bytes:
    """The page of one review, uncut, `text/html; charset=utf-8`."""
    newer, older = neighbours(site.dataset, review)
    return rendered(
        site,
        "review.html",
        review=review.decoded(),
        newer=newer and newer.decoded(),
        older=older and older.decoded(),
    )
