"""Content for the owner's website: the badge (an image of the rating) and the frame (the newest reviews).

Like `pages`, this module selects the content; words and markup are in templates. It must not know requests:
their parameters arrive as values. Neither badge nor frame runs a script or loads anything from another host.
"""

from __future__ import annotations

from jinja2 import Environment

from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import (
    Dataset,
    search,
    service_labels,
    services_named,
    technicians_named,
)
from reviewslib.web import pages
from reviewslib.web.representations import Headers
from reviewslib.web.site import Site

ANY_SITE = ("Cross-Origin-Resource-Policy", "cross-origin")
BADGE_HEADERS: Headers = (ANY_SITE,)
MAX_SUBJECTS = 3  # people and services that are named above the reviews

# ---- Badge ----

TEXT_ROOM = 122  # pixels
FONT_SIZE = 14  # pixels
# Widths of characters in common sans serifs, relative to the font size; all others are as wide as digits.
WIDTHS = {
    ".": 0.28,
    ",": 0.28,
    " ": 0.28,
    "·": 0.33,
    "i": 0.22,
    "r": 0.33,
    "v": 0.5,
    "w": 0.72,
    "s": 0.5,
}


def badge(site: Site) -> bytes:
    """The rating and the number of reviews as an image of fixed size, `image/svg+xml`."""
    figures = site.dataset.aggregate_rating
    rating = figures["rating_value"]
    words = "No reviews yet"
    if rating is not None:
        reviews = pages.count_text(figures["review_count"], "review")
        words = f"{pages.format_rating(rating)} · {reviews}"
    width = FONT_SIZE * sum(WIDTHS.get(character, 0.56) for character in words)
    shown = {
        "words": words,
        "width": round(min(width, TEXT_ROOM)),
        "rating": rating or 0,
    }
    return site.templates.get_template("badge.svg").render(shown).encode()


# ---- Frame ----


def frame(
    site: Site,
    limit: int,
    theme: str,
    mentions_service: str | None,
    mentions_technician: str | None,
) -> bytes:
    """The newest reviews that mention the service and the person, `text/html; charset=utf-8`.

    If no review mentions both, the frame has the newest of all reviews.
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
    shown = {
        "theme": theme,
        "reviews": pages.decoded(matches.reviews),
        "matched": matches.frame["matched"],
        "subjects": _subjects(site.dataset, query)[:MAX_SUBJECTS],
        "matching_url": pages.list_url(site.urls, pages.filter_values(query)),
    }
    return pages.rendered(site, "embed.html", **shown)


def _subjects(dataset: Dataset, query: Query) -> list[str]:
    """The names of the people and services in the filters of `query`."""
    labels = service_labels(dataset)
    people = (
        technicians_named(dataset, query.mentions_technician)
        if query.mentions_technician
        else []
    )
    services = services_named(dataset, query.mentions_service or "")
    return [*people, *(labels.get(service, service) for service in sorted(services))]


def refused_frame(site: Site) -> bytes:
    """The frame of an error response, `text/html; charset=utf-8`."""
    return pages.rendered(site, "embed_refused.html")


def frame_headers(templates: Environment) -> Headers:
    """The policies of the frame, which any page may embed."""
    policy = pages.content_policy(
        templates, "embed_style", form_action="'none'", frame_ancestors="*"
    )
    return policy, pages.REFERRER_POLICY, ANY_SITE
