"""The pictures of the service: the badge (the rating, for other websites) and the icon."""

from __future__ import annotations

from jinja2 import Environment

from reviewslib.web.figures import count_text, format_rating
from reviewslib.web.site import Site

# Pixels beside the stars.
TEXT_ROOM = 122
FONT_SIZE = 14
# Widths of characters in common sans serifs, relative to the font size.
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
# All other characters of the badge are about as wide as digits.
DIGIT_WIDTH = 0.56


def badge(site: Site) -> bytes:
    """The rating and the number of reviews as an image of fixed size, `image/svg+xml`."""
    figures = site.dataset.aggregate_rating
    rating = figures["rating_value"]
    words = "No reviews yet"
    if rating is not None:
        reviews = count_text(figures["review_count"], "review")
        words = f"{format_rating(rating)} · {reviews}"
    template = site.templates.get_template("badge.svg")
    return template.render(
        words=words, width=_text_width(words), rating=rating or 0
    ).encode()


def _text_width(words: str) -> int:
    """The width in pixels that a viewer with any font gives the words."""
    widths = [WIDTHS.get(character, DIGIT_WIDTH) for character in words]
    return round(min(FONT_SIZE * sum(widths), TEXT_ROOM))


def icon(templates: Environment) -> bytes:
    """The icon, `image/svg+xml`."""
    return templates.get_template("favicon.svg").render().encode()
