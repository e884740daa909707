"""The page of one review, and the page of a 404 response."""

from __future__ import annotations

from reviewslib.dataset.reviews import Review
from reviewslib.dataset.searching import neighbours
from reviewslib.dataset.strict_json import Object, decode
from reviewslib.web.site import Site
from reviewslib.web.templating import rendered


def review_page(site: Site, review: Review) -> bytes:
    """The page of one review, uncut, `text/html; charset=utf-8`."""
    newer, older = neighbours(site.dataset, review)
    return rendered(
        site,
        "review.html",
        review=decoded(review),
        newer=newer and decoded(newer),
        older=older and decoded(older),
    )


def decoded(review: Review) -> Object:
    """A review as an object for templates."""
    entry: Object = decode(bytes(review.json))
    return entry


def not_found_page(site: Site, is_review: bool) -> bytes:
    """The page of a 404 response, about a review or about any other path.

    The format is `text/html; charset=utf-8`.
    """
    return rendered(site, "not_found.html", is_review=is_review, last=0)
