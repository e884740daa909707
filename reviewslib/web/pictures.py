"""The pictures of the service: the badge (the rating, for other websites) and the icon.

Sections: the badge - the icon.
"""

from __future__ import annotations

from typing import NamedTuple

from jinja2 import Environment

from reviewslib.web.language import Language
from reviewslib.web.site import Site
from reviewslib.web.widths import text_width

# ---- The badge ----

# Pixels.
FONT_SIZE = 14
# Pixels beside the stars: "4,42 · 1.204 Bewertungen" fits, as do the other languages.
TEXT_ROOM = 152
# How much wider words may be than their room: pressed more, they are hard to read.
MOST_PRESSED = 1.1


class BadgeWords(NamedTuple):
    """What a badge says: all of it, and as much as there is room for."""

    title: str
    shown: str


def badge(site: Site) -> bytes:
    """The rating and the number of reviews as an image of fixed size.

    The format is `image/svg+xml`.
    """
    figures = site.dataset.aggregate_rating
    rating = figures["rating_value"]
    words = badge_words(site.language, rating, figures["review_count"])
    width = round(min(pixels(words.shown), TEXT_ROOM))
    template = site.templates.get_template("badge.svg")
    return template.render(
        title=words.title,
        words=words.shown,
        width=width,
        # Stars and words stand in the middle.
        indent=(TEXT_ROOM - width) // 2,
        rating=rating or 0,
    ).encode()


def badge_words(
    language: Language, rating: float | None, count: int | None
) -> BadgeWords:
    """The words of a badge; where they are too wide, the noun is left out."""
    if rating is None:
        words = language.say("No reviews yet")
        shorter = language.counted("%(n)s review", "%(n)s reviews", 0)
        return BadgeWords(title=words, shown=words if _fit(words) else shorter)
    shown_rating = language.rating(rating)
    # TRANSLATORS: on the badge, which has little room: 4.48 · 1,204 reviews
    words = language.counted(
        "%(rating)s · %(n)s review",
        "%(rating)s · %(n)s reviews",
        count,
        rating=shown_rating,
    )
    shorter = f"{shown_rating} · ({language.number(count)})"
    return BadgeWords(title=words, shown=words if _fit(words) else shorter)


def pixels(words: str) -> float:
    """The width that a viewer with any font gives the words."""
    return FONT_SIZE * text_width(words)


def _fit(words: str) -> bool:
    """Whether words are readable in their room."""
    return pixels(words) <= TEXT_ROOM * MOST_PRESSED


# ---- The icon ----


def icon(templates: Environment) -> bytes:
    """The icon, `image/svg+xml`."""
    return templates.get_template("favicon.svg").render().encode()
