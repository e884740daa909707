"""Provenance: where reviews were published, what each source is called, and what reviews may be called.

This module knows names and the description of a business; it knows no review, no page and no protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.text import fold

UNKNOWN_SOURCE = "unknown"
KNOWN_NAMES = ("Facebook", "Google", "Healthgrades", "TripAdvisor", "Trustpilot", "Yelp")
NAMES_BY_SOURCE = {fold(name): name for name in KNOWN_NAMES}
MOST_SOURCES = 8  # that are named together
LONGEST_SOURCE = 80  # characters of one of these


def source_name(source: str) -> str:
    """A source as it writes itself; one that is not known here as the file has it."""
    return NAMES_BY_SOURCE.get(fold(source), source)


def sources_of(sources: Iterable[str]) -> tuple[str, ...]:
    """The sources of reviews, each once, whatever its case, as it was written first; the most used first."""
    counts, written = Counter[str](), dict[str, str]()
    for source, count in Counter(sources).items():
        counts[written.setdefault(fold(source), source)] += count
    return tuple(source for source, _ in counts.most_common())


def shown_sources(sources: Sequence[str]) -> list[str]:
    """The sources that are named together, as the file has them; long ones are left out."""
    return [source for source in sources if len(source) <= LONGEST_SOURCE][:MOST_SOURCES]


def published_on(sources: Sequence[str]) -> str:
    """The sources in words, such as "Google, Yelp and elsewhere"; empty where none is known."""
    shown = [source_name(source) for source in shown_sources(sources) if source != UNKNOWN_SOURCE]
    if not shown:
        return ""
    *first, last = shown if len(shown) == len(sources) else [*shown, "elsewhere"]
    return f"{', '.join(first)} and {last}" if first else last


def review_policy(business: Object) -> str:
    """How the owner makes sure that reviews come from customers; empty where nothing is said of it."""
    return (business.get("review_policy") or "").strip()


def review_called(business: Object) -> str:
    """What a review may be called: verified only where the owner says how that is made sure."""
    return "verified customer review" if review_policy(business) else "customer review"
