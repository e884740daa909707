"""Provenance: names of reviews' sources, and whether reviews may be called verified.

This module knows sources and the description of a business. It knows no review, no page
and no protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.text import fold

UNKNOWN_SOURCE = "unknown"
# What imports write for customers without a name; the first are Google's own words.
NAMELESS_AT_GOOGLE = "A Google user"
NAMELESS = "Anonymous"
# Tools write these in small letters, or as one word.
SOURCE_NAMES = (
    "Facebook",
    "Google",
    "Healthgrades",
    "TripAdvisor",
    "Trustpilot",
    "Yelp",
)
NAMES_BY_SOURCE = {fold(name): name for name in SOURCE_NAMES}
# In a list: a business has a handful, and a sentence with more is not read.
MAX_SOURCES = 8
# Characters of a source in a list; a longer one is a text in the wrong column.
LONGEST_SOURCE = 80


def source_name(source: str) -> str:
    """The name of a source in its own spelling if SOURCE_NAMES has it, else as is."""
    return NAMES_BY_SOURCE.get(fold(source), source)


def sources_of(sources: Iterable[str]) -> tuple[str, ...]:
    """The distinct sources of reviews in their first spelling, most frequent first."""
    counts = Counter[str]()
    spellings = dict[str, str]()
    for source, count in Counter(sources).items():
        counts[spellings.setdefault(fold(source), source)] += count
    return tuple(source for source, _ in counts.most_common())


def shown_sources(sources: Sequence[str]) -> list[str]:
    """The sources for a list, as in the file; long ones are left out."""
    return [source for source in sources if len(source) <= LONGEST_SOURCE][:MAX_SOURCES]


class PublishedOn(NamedTuple):
    """The websites that published reviews, by name, and whether there are others."""

    names: Sequence[str]
    has_others: bool


def publishers(sources: Sequence[str]) -> PublishedOn:
    """The websites among the sources of reviews; others are unknown or left out."""
    names = [
        source_name(source)
        for source in shown_sources(sources)
        if source != UNKNOWN_SOURCE
    ]
    return PublishedOn(names, has_others=len(names) < len(sources))


def published_on(sources: Sequence[str]) -> str:
    """The sources in words, such as "Google, Yelp and elsewhere"; empty without any."""
    published = publishers(sources)
    if not published.names:
        return ""
    words = [*published.names]
    if published.has_others:
        words.append("elsewhere")
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def review_policy(business: Object) -> str:
    """How the owner makes sure that reviews are by customers; empty if nobody says."""
    return (business.get("review_policy") or "").strip()


def is_verified(business: Object) -> bool:
    """Whether reviews may be called verified: only if the owner has a review policy."""
    return bool(review_policy(business))


def review_called(business: Object) -> str:
    """What a review is called in texts for programs, which are English."""
    return "verified customer review" if is_verified(business) else "customer review"
