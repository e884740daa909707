"""The error pages that depend on no request: they are made when data are loaded.

Those that name a wrong value, or a page of the list, are in `list_page`.
"""

from __future__ import annotations

from typing import NamedTuple

from reviewslib.web.embed import refused_frame
from reviewslib.web.site import Site
from reviewslib.web.templating import rendered


class ErrorPages(NamedTuple):
    """The error pages of a site, `text/html; charset=utf-8`."""

    unknown_path: bytes
    unknown_review: bytes
    refused_frame: bytes


def error_pages_of(site: Site) -> ErrorPages:
    """The error pages of a site."""
    return ErrorPages(
        unknown_path=not_found_page(site, is_review=False),
        unknown_review=not_found_page(site, is_review=True),
        refused_frame=refused_frame(site),
    )


def not_found_page(site: Site, is_review: bool) -> bytes:
    """The page of a 404 response, about a review or about any other path."""
    return rendered(site, "not_found.html", is_review=is_review, last=0)
