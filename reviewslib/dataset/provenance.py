"""Provenance: the names of the sources of reviews, and whether reviews may be called verified.

This module knows sources and the description of a business. It knows no review, no page and no protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.text import fold

UNKNOWN_SOURCE = "unknown"
SOURCE_NAMES = (
    "Facebook",
    "Google",
    "Healthgrades",
    "TripAdvisor",
    "Trustpilot",
    "Yelp",
)
NAMES_BY_SOURCE = {fold(name): name for name in SOURCE_NAMES}
MAX_SOURCES = 8  # in a list
LONGEST_SOURCE = 80  # characters of a source in a list


def source_name(source: str) -> str:
    """The name of a source in its own spelling if SOURCE_NAMES has it, else as in the file."""
    return NAMES_BY_SOURCE.get(fold(source), source)


def sources_of(sources: Iterable[str]) -> tuple[str, ...]:
    """The distinct sources of reviews in their first spelling, the most frequent source first."""
    counts = Counter[str]()
    spellings = dict[str, str]()
    for source, count in Counter(sources).items():
        counts[spellings.setdefault(fold(source), source)] += count
    return tuple(source for source, _ in counts.most_common())


def shown_sources(sources: Sequence[str]) -> list[str]:
    """The sources for a list, as in the file; long ones are left out."""
    return [source for source in sources if len(source) <= LONGEST_SOURCE][:MAX_SOURCES]


def published_on(sources: Sequence[str]) -> str:
    """The sources in words, such as "Google, Yelp and elsewhere"; empty if none is known."""
    shown = [
        source_name(source)
        for source in shown_sources(sources)
        if source != UNKNOWN_SOURCE
    ]
    if not shown:
        return ""
    *first, last = shown if len(shown) == len(sources) else [*shown, "elsewhere"]
    return f"{', '.join(first)} and {last}" if first else last


def review_policy(business: Object) -> str:
    """How the owner makes sure that reviews come from customers; empty if the owner does not say."""
    return (business.get("review_policy") or "").strip()


def review_called(business: Object) -> str:
    """What a review may be called: verified only if the owner has a review policy."""
    return "verified customer review" if review_policy(business) else "customer review"
