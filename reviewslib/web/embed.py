"""The frame for the owner's website: the rating and the newest reviews.

Words and markup are in `embed.html`. This module must not know requests: their
parameters arrive as values. The frame runs no script and loads nothing from another
host.
"""

from __future__ import annotations

from reviewslib.dataset.filters import services_named, technicians_named
from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset, service_labels
from reviewslib.dataset.searching import search
from reviewslib.web.list_page import filter_values, list_url
from reviewslib.web.site import Site
from reviewslib.web.templating import rendered

# Characters of a review on another website.
MAX_EXCERPT = 280
# People and services that are named above the reviews: a name such as "dr" finds many.
MAX_SUBJECTS = 3


def frame(
    site: Site,
    limit: int,
    theme: str,
    mentions_service: str | None,
    mentions_technician: str | None,
) -> bytes:
    """The newest reviews that mention the service and the person.

    The format is `text/html; charset=utf-8`.

    If no review mentions both, the frame has the newest of all reviews: an empty frame
    on the owner's website would say less.
    """
    query = Query(
        limit=limit,
        mentions_technician=mentions_technician,
        mentions_service=mentions_service,
    )
    matches = search(site.dataset, query)
    if not matches.reviews:
        query = Query(limit=limit)
        matches = search(site.dataset, query)
    return rendered(
        site,
        "embed.html",
        MAX_EXCERPT=MAX_EXCERPT,
        theme=theme,
        reviews=[review.decoded() for review in matches.reviews],
        matched=matches.frame["matched"],
        subjects=_subjects(site.dataset, query)[:MAX_SUBJECTS],
        matching_url=list_url(site.paths, filter_values(query)),
    )


def _subjects(dataset: Dataset, query: Query) -> list[str]:
    """The names of the people and services in the filters of `query`."""
    subjects = []
    if query.mentions_technician:
        subjects += technicians_named(dataset, query.mentions_technician)
    labels = service_labels(dataset)
    for service in sorted(services_named(dataset, query.mentions_service or "")):
        subjects.append(labels.get(service, service))
    return subjects


def refused_frame(site: Site) -> bytes:
    """The frame of an error response, `text/html; charset=utf-8`."""
    return rendered(site, "embed_refused.html")
