"""What the figures must be: the budgets of the design, and the goals beyond them.

Sections: Figures - The table
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from load import percentile
from mcp_calls import HANDSHAKE, STATELESS
from measure import Results
from peers import FASTAPI, NGINX, OURS, SDK
from plan import SMALL_SIZE
from starts import SAMPLE

TYPICAL, LARGE = 500, 100_000  # reviews
MANY_SUBSCRIBERS = 500

# ---- Figures: how to find one in the results; an empty list was not measured ----

Figure = Callable[[Results], list[float]]


def times(key: str, rival: str, connections: int, size: int = TYPICAL) -> Figure:
    """Our requests a second as a multiple of a rival's, round by round."""

    def figure(results: Results) -> list[float]:
        rows = (
            row
            for row in results.throughput
            if (row.key, row.connections, row.size) == (key, connections, size)
        )
        return next((row.ratios(rival) for row in rows), [])

    return figure


def worst_search_ms(results: Results) -> list[float]:
    """All times of the bad query with the highest median."""
    times_by_query = [sorted(row.seconds[OURS]) for row in results.worst if row.size == LARGE]
    slowest = max(times_by_query, key=lambda seconds: seconds[len(seconds) // 2], default=[])
    return [seconds * 1000 for seconds in slowest]


def start_seconds(results: Results) -> list[float]:
    """From spawning the process to the first answer, with the sample."""
    return next((row.seconds for row in results.starts if (row.label, row.server) == (SAMPLE, OURS)), [])


def memory_mb(results: Results) -> list[float]:
    """Resident with the sample, after some load."""
    rows = (row for row in results.starts if (row.label, row.server) == (SAMPLE, OURS))
    return [memory.resident_bytes / 1e6 for row in rows for memory in row.loaded]


def memory_per_file(results: Results) -> list[float]:
    """Resident with 100,000 reviews, after some load, as a multiple of both data files."""
    rows = [row for row in results.starts if (row.reviews, row.server) == (LARGE, OURS)]
    return [memory.resident_bytes / row.file_bytes for row in rows for memory in row.loaded]


def reload_p99_ms(results: Results) -> list[float]:
    """The slowest GETs during each reload of 100,000 reviews, but for one in a hundred."""
    rounds = [latencies for row in results.reloads if row.size == LARGE for latencies in row.latencies]
    return [percentile(latencies, 99) * 1000 for latencies in rounds]


def delivery_seconds(results: Results) -> list[float]:
    """Until the last of 500 subscribers has each change."""
    return next((row.seconds for row in results.deliveries if row.subscribers == MANY_SUBSCRIBERS), [])


def delivery_p99_ms(results: Results) -> list[float]:
    """The slowest GETs while 500 subscribers are served, but for one in a hundred."""
    rows = [row for row in results.deliveries if row.subscribers == MANY_SUBSCRIBERS]
    return [percentile(latencies, 99) * 1000 for row in rows for latencies in row.latencies]


# ---- The table ----


@dataclass(frozen=True, slots=True)
class Budget:
    """A bound on the median of a figure: a lower one when `at_least`, else an upper one."""

    what: str
    figure: Figure
    unit: str
    budget: float | None
    goal: float | None
    at_least: bool = True


AT_MOST = False
BUDGETS = (
    Budget("304, 16 connections, to nginx", times("304", NGINX, 16), "×", 0.35, 0.4),
    Budget("304, 128 connections, to nginx", times("304", NGINX, 128), "×", None, 0.5),
    Budget("304, 16 connections, to FastAPI", times("304", FASTAPI, 16), "×", 5, 6),
    Budget(
        "small fixed GET, 16 connections, to nginx", times("small", NGINX, 16, SMALL_SIZE), "×", 0.35, None
    ),
    Budget(
        "small fixed GET, 16 connections, to FastAPI", times("small", FASTAPI, 16, SMALL_SIZE), "×", 5, None
    ),
    Budget("unseen search, 16 connections, to FastAPI", times("search-unseen", FASTAPI, 16), "×", 5, 8),
    Budget("/reviews.json gzip, 16 connections, to nginx", times("reviews-gzip", NGINX, 16), "×", None, 0.5),
    Budget(
        "/reviews.json gzip, 16 connections, to FastAPI", times("reviews-gzip", FASTAPI, 16), "×", None, 100
    ),
    *(
        Budget(
            f"unseen tools/call, {era.version}, 16 connections, to the SDK",
            times(f"mcp-unseen-{era.version}", SDK, 16),
            "×",
            8,
            15,
        )
        for era in (STATELESS, HANDSHAKE)
    ),
    Budget("worst search, 100,000 reviews", worst_search_ms, "ms", 60, 10, AT_MOST),
    Budget("GET p99 during a reload, 100,000 reviews", reload_p99_ms, "ms", 50, None, AT_MOST),
    Budget("a change to 500 subscribers", delivery_seconds, "s", 15, None, AT_MOST),
    Budget("GET p99 during a change to 500 subscribers", delivery_p99_ms, "ms", 50, None, AT_MOST),
    Budget("start to first answer, sample", start_seconds, "s", 0.6, 0.4, AT_MOST),
    Budget("resident memory, sample", memory_mb, "MB", 80, None, AT_MOST),
    Budget("resident memory, 100,000 reviews, to both files", memory_per_file, "×", None, 4, AT_MOST),
)
