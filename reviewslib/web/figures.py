"""Figures as they are shown: counts, ratings, most mentioned entries, bars of aspects.

This module must not know templates; how a bar is drawn is a macro of `macros.html`.

Sections: counts and ratings - entries of the insights.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.vocabulary import says_something

# ---- Counts and ratings ----

# More than any file counts in earnest, and no wider than a column of figures.
LARGEST_COUNT = 10**9


def capped(count: int | None) -> int:
    """A count of at most LARGEST_COUNT; 0 for None."""
    return min(count or 0, LARGEST_COUNT)


def count_text(count: int | None, noun: str = "") -> str:
    """A count in English, with its noun if there is one: 1,204; 1 review; 2 reviews."""
    digits = f"{capped(count):,}"
    if not noun:
        return digits
    plural = "" if count == 1 else "s"
    return f"{digits} {noun}{plural}"


def format_rating(rating: float) -> str:
    """A rating with at most two decimals: 4.48, 4.5, 5."""
    return f"{round(rating, 2):g}"


# ---- Entries of the insights ----


def by_mentions(entries: Iterable[Object], limit: int) -> list[Object]:
    """At most `limit` of the entries that lists have, the most mentioned first."""
    mentioned = [entry for entry in entries if is_listed(entry)]
    mentioned.sort(key=lambda entry: capped(entry["mention_count"]), reverse=True)
    return mentioned[:limit]


def is_listed(entry: Object) -> bool:
    """Whether lists have an entry: it is mentioned, or has words and no figure."""
    return says_something(entry) and entry["mention_count"] != 0


# As many as a reader compares; their bars fill one screen of a phone.
MAX_ASPECTS = 10


class BarPart(NamedTuple):
    """A part of a bar, in reviews: `kind` is the class of its colour."""

    kind: str
    start: int
    length: int


class JudgementCounts(NamedTuple):
    """How often an aspect is judged, and in which way."""

    negative: int
    positive: int
    neutral: int

    def bar(self, axis: int) -> tuple[BarPart, ...]:
        """Criticism to the left of `axis`, praise and then neutral to the right."""
        return (
            BarPart("fault", axis - self.negative, self.negative),
            BarPart("praise", axis, self.positive),
            BarPart("neutral", axis + self.positive, self.neutral),
        )


def judgement_counts_of(aspect: Object) -> JudgementCounts:
    """The counts of an aspect; what nobody has counted is 0."""
    return JudgementCounts(
        negative=capped(aspect["negative_count"]),
        positive=capped(aspect["positive_count"]),
        neutral=capped(aspect["neutral_count"]),
    )


def aspects(entries: Iterable[Object]) -> list[Object]:
    """The most mentioned aspects with `bar`, its parts, and `width`, its scale.

    All bars have the same scale and the same axis.
    """
    shown = by_mentions(entries, MAX_ASPECTS)
    if not shown:
        return []
    counted = [judgement_counts_of(entry) for entry in shown]
    axis = max(counts.negative for counts in counted)
    longest = max(counts.positive + counts.neutral for counts in counted)
    # A scale of 0 would divide by 0 where no aspect is judged.
    width = max(1, axis + longest)
    with_bars: list[Object] = []
    for entry, counts in zip(shown, counted, strict=True):
        with_bars.append({**entry, "bar": counts.bar(axis), "width": width})
    return with_bars
