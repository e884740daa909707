"""Which plots are drawn of the results, by the name of their file."""

from __future__ import annotations

from statistics import median

from deliveries import Delivery
from growth import Growth
from measure import Results
from peers import OURS
from plots import Line, Panel, picture

GROWTH_FILE, HUB_FILE = "growth.svg", "growth-hub.svg"
FEWEST = 2  # points that make a line


def charts(results: Results) -> dict[str, str]:
    """The SVG documents of all that was measured often enough to be drawn."""
    drawn = {}
    if len(results.growth) >= FEWEST:
        drawn[GROWTH_FILE] = growth_chart(results.growth)
    if len(results.deliveries) >= FEWEST:
        drawn[HUB_FILE] = hub_chart(results.deliveries)
    return drawn


def growth_chart(rows: list[Growth]) -> str:
    """What a search, a start and the memory cost with more and more reviews."""
    usual = [(row.size, 1000 * median(row.search_seconds)) for row in rows]
    slowest = [(row.size, 1000 * median(row.slowest.seconds[OURS])) for row in rows]
    starts = [(row.size, median(row.start_seconds)) for row in rows]
    memory = [(row.size, row.resident_bytes / 1e6) for row in rows]
    searches = [Line("median of unseen searches", usual), Line("the worst search", slowest)]
    return picture(
        "Milliseconds a search, seconds to the first answer and megabytes of memory by number of reviews",
        [
            Panel("Time per search", "reviews", "milliseconds", searches),
            Panel("Start to first answer", "reviews", "seconds", [Line("", starts)]),
            Panel("Resident memory", "reviews", "megabytes", [Line("", memory)]),
        ],
    )


def hub_chart(rows: list[Delivery]) -> str:
    """How long a change takes to reach more and more subscribers."""
    seconds = [(row.subscribers, median(row.seconds)) for row in rows]
    rates = [(row.subscribers, row.subscribers / median(row.seconds)) for row in rows]
    return picture(
        "Seconds until the last subscriber has a change, and deliveries a second, by number of subscribers",
        [
            Panel("Change to last subscriber", "subscribers", "seconds", [Line("", seconds)]),
            Panel("Deliveries", "subscribers", "a second", [Line("", rates)]),
        ],
    )
