"""Stars, 1 to 5, as tools and people write them. This module is pure."""

from __future__ import annotations

import math
import re

from reviewslib.dataset.contract import quoted
from reviewslib.dataset.text import fold
from reviewslib.importer.formats import format_data
from reviewslib.importer.texts import BadRecord

STAR_WORDS = format_data("stars")
# As folded texts have them: Turkish stars, “yıldız”, lose their dotless i.
UNITS = fold(STAR_WORDS["units"])
# On a scale of one every rating is the same; a hundred is a percentage.
LEAST_SCALE = 2
GREATEST_SCALE = 100
NUMBER = re.compile(
    rf"(?:(?:{STAR_WORDS['before']}) +)?"
    r"(?P<value>[0-9]{1,3}(?:[.,][0-9]{1,9})?)"
    rf" *(?:{UNITS})?"
    rf" *(?P<bound>%|(?:{STAR_WORDS['bounds']}) *(?P<best>[0-9]{{1,3}})(?:[.,]0)?\b)?"
    rf" *(?:{UNITS})?"
)
# Filled and hollow stars.
DRAWN = re.compile("(★{1,5})(☆*)")
# Characters. “Bewertet mit 4,5 von 5 Sternen” has thirty; what has twice as many is a
# text in the wrong column.
LONGEST_RATING = 60


class UnknownScale(ValueError):
    """A rating is above 5, and the best one is unknown; the message is the rating."""


def read_stars(text: str, scale: int) -> float | None:
    """The stars in `text`, in half stars if the scale is not 5; None for no stars.

    `scale` is the best rating, 0 if unknown. Raises BadRecord and UnknownScale.
    """
    folded = fold(text.replace("\N{VARIATION SELECTOR-16}", ""))
    word = STAR_WORDS["stars"].get(folded)
    if word:
        return int(word)
    drawn = _drawn_stars(folded)
    if drawn:
        return drawn
    number = None
    if len(text) <= LONGEST_RATING:
        number = NUMBER.fullmatch(folded or "0")
    if not number:
        raise BadRecord(f"{quoted(text)} is not a number of stars")
    return _stars_of(number, scale, text)


def _stars_of(number: re.Match[str], scale: int, text: str) -> float | None:
    """The stars of a rating that is a number. Raises BadRecord and UnknownScale."""
    best = scale or 5
    value = _value_of(number)
    if value > best or _bound_of(number) not in {0, best}:
        if scale:
            raise BadRecord(f"{quoted(text)} is not a rating of 1 to {best}")
        raise UnknownScale(text)
    value = _on_five_stars(value, best)
    if 0 < value < 1:
        raise BadRecord(f"{quoted(text)} is less than one star")
    # Whole stars are integers in JSON, and 0 means that there is no rating.
    return (int(value) if value.is_integer() else value) or None


def _value_of(number: re.Match[str]) -> float:
    """The number itself, with a point or a comma before its decimals."""
    return float(number["value"].replace(",", "."))


def highest_value(texts: list[str]) -> float:
    """The highest number among ratings, as it is written; 0 without any."""
    numbers = [NUMBER.fullmatch(fold(text[:LONGEST_RATING])) for text in texts]
    values = [_value_of(match) for match in numbers if match]
    return max(values, default=0)


def _drawn_stars(text: str) -> int:
    """The number of stars that are drawn, of five where some are hollow; else 0."""
    drawn = DRAWN.fullmatch(text.replace("⭐", "★"))
    if not drawn or (drawn[2] and len(drawn[0]) != 5):
        return 0
    return len(drawn[1])


def _bound_of(number: re.Match[str]) -> int:
    """The best rating that the text itself names, 0 if it names none."""
    if number["bound"] == "%":
        return 100
    return int(number["best"] or 0)


def _on_five_stars(value: float, best: int) -> float:
    """A value on another scale becomes half stars, and at least one star."""
    if best == 5 or value == 0:
        return value
    return max(1.0, math.floor(value * 10 / best + 0.5) / 2)
