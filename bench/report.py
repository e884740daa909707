"""The results as one Markdown text, readable in a terminal as it is.

Every figure comes from `Results`; what was not measured says so.

Sections: Figures in words - Tables - Report - Prose
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from textwrap import fill

from budgets import BUDGETS, Budget
from charts import GROWTH_FILE, HUB_FILE
from deliveries import HOSTS, REVIEWS, Delivery
from growth import SEARCHES, Growth
from load import SAMPLE_PAUSE_SECONDS, Run, percentile
from measure import Results
from peers import DYNAMIC, FASTAPI, NGINX, OURS, SDK
from plan import WORDS
from reloads import Reload
from searches import OTHER_WORDS, WORST_REPETITIONS
from starts import Start
from throughput import (
    LONGEST_SECONDS,
    MANY_CONNECTIONS,
    MANY_REVIEWS,
    MOST_BYTES_IN_FLIGHT,
    MOST_REPEATED,
    MOST_UNSEEN,
    Throughput,
)

RIVALS = {NGINX: "to nginx", FASTAPI: "to FastAPI", SDK: "to the SDK"}
SATURATED = 0.9  # of a core: from here on wrk may be what limits

# ---- Figures in words ----

ABSENT = "–"


def number(value: float) -> str:
    """Three digits, or all of them before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values: Sequence[float], unit: str = "") -> str:
    """The median with the least and the greatest."""
    if not values:
        return ABSENT
    return f"{number(median(values))}{unit} ({number(min(values))}..{number(max(values))})"


def rate(runs: Sequence[Run] | None) -> str:
    """Requests a second, with a star when wrk was busy."""
    if not runs:
        return ABSENT
    if any(run.requests == 0 for run in runs):
        return "none finished"
    star = "*" if median(run.wrk_share for run in runs) >= SATURATED else ""
    return number(median(run.requests_per_second for run in runs)) + star


def latency(runs: Sequence[Run] | None) -> str:
    """Milliseconds at p50, p99 and p99.9."""
    if not runs or any(run.requests == 0 for run in runs):
        return ABSENT
    columns = zip(*((run.p50_ms, run.p99_ms, run.p999_ms) for run in runs), strict=True)
    return " / ".join(number(median(column)) for column in columns)


def processor_time(runs: Sequence[Run] | None) -> str:
    """Microseconds of processor time that the server uses for one request."""
    if not runs or any(run.requests == 0 for run in runs):
        return ABSENT
    return number(median(1e6 * run.server_share / run.requests_per_second for run in runs))


# ---- Tables ----


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A Markdown table whose first `texts` columns are flush left, the others flush right."""
    lines = [tuple(heads), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    alignments = ["<" if place < texts else ">" for place in range(len(widths))]
    rule = ["-" * width if place < texts else "-" * (width - 1) + ":" for place, width in enumerate(widths)]
    aligned = [
        [f"{cell:{side}{width}}" for cell, side, width in zip(line, alignments, widths, strict=True)]
        for line in lines
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in (aligned[0], rule, *aligned[1:]))


def budget_table(results: Results) -> str:
    """What is demanded, what was measured, and whether that is enough."""
    rows = (budget_row(budget, budget.figure(results)) for budget in BUDGETS)
    return table(("what", "measured", "budget", "", "goal", ""), rows)


def budget_row(budget: Budget, values: Sequence[float]) -> list[str]:
    """One line of the table of budgets."""
    cells = [budget.what, spread(values, f" {budget.unit}") if values else "not measured"]
    for bound in (budget.budget, budget.goal):
        cells += [ABSENT, ""] if bound is None else [_bound(budget, bound), _verdict(budget, bound, values)]
    return cells


def _bound(budget: Budget, bound: float) -> str:
    return f"{'≥' if budget.at_least else '≤'} {bound:g} {budget.unit}"


def _verdict(budget: Budget, bound: float, values: Sequence[float]) -> str:
    if not values:
        return ""
    met = median(values) >= bound if budget.at_least else median(values) <= bound
    return "met" if met else "NOT MET"


def rate_table(rows: Sequence[Throughput]) -> str:
    """Requests a second, and ours as a multiple of the others'."""
    servers, rivals = _present(rows)
    heads = ("request", "connections", *servers, *(RIVALS[rival] for rival in rivals))
    return table(
        heads,
        (
            (
                row.title,
                str(row.connections),
                *(rate(row.runs.get(server)) for server in servers),
                *(spread(row.ratios(rival)) for rival in rivals),
            )
            for row in rows
        ),
    )


def latency_table(rows: Sequence[Throughput]) -> str:
    """Latencies, and what a request costs the processor."""
    servers, _ = _present(rows)
    heads = ["request", "connections"]
    heads += [f"{server}, ms" for server in servers] + [f"{server}, µs CPU" for server in servers]
    return table(
        heads,
        (
            [row.title, str(row.connections)]
            + [latency(row.runs.get(server)) for server in servers]
            + [processor_time(row.runs.get(server)) for server in servers]
            for row in rows
        ),
    )


def _present(rows: Sequence[Throughput]) -> tuple[list[str], list[str]]:
    """The servers that the rows have figures of, and which of them are rivals."""
    rivals = [rival for rival in RIVALS if any(rival in row.runs for row in rows)]
    return [OURS, *rivals], rivals


def worst_table(results: Results) -> str:
    """Bad queries, ours the slowest first."""
    heads = ["query", *(f"{server} {what}, ms" for server in DYNAMIC for what in ("median", "max"))]
    rows = sorted(results.worst, key=lambda row: median(row.seconds[OURS]), reverse=True)
    return table(
        heads,
        (
            [row.title]
            + [number(1000 * pick(row.seconds[server])) for server in DYNAMIC for pick in (median, max)]
            for row in rows
        ),
    )


START_HEADS = (
    "data",
    "reviews",
    "files, MB",
    "server",
    "first answer, s",
    "resident, MB",
    "after load",
    "highest",
    "× files",
    "bytes a review",
)


def start_table(starts: Sequence[Start]) -> str:
    """Time and memory by data set and server."""
    return table(START_HEADS, (start_row(start, _smallest(starts, start)) for start in starts))


def start_row(start: Start, smallest: Start) -> list[str]:
    """One line of the table of starts."""
    idle = median(memory.resident_bytes for memory in start.idle)
    loaded = median(memory.resident_bytes for memory in start.loaded)
    added = idle - median(memory.resident_bytes for memory in smallest.idle)
    more = start.reviews - smallest.reviews
    return [
        start.label,
        f"{start.reviews:,}",
        number(start.file_bytes / 1e6),
        start.server,
        spread(start.seconds),
        number(idle / 1e6),
        number(loaded / 1e6),
        number(max(memory.peak_bytes for memory in start.loaded) / 1e6),
        number(loaded / start.file_bytes),
        number(added / more) if more >= 1000 else ABSENT,
    ]


def _smallest(starts: Sequence[Start], like: Start) -> Start:
    return min((start for start in starts if start.server == like.server), key=lambda start: start.reviews)


def percentiles_ms(rounds: Sequence[Sequence[float]], percent: float) -> str:
    """The percentile of each round in milliseconds."""
    return spread([percentile(latencies, percent) * 1000 for latencies in rounds])


RELOAD_HEADS = (
    "reviews",
    "reload, s",
    "GET p50, ms",
    "p99",
    "max",
    "p99 without a reload",
    "memory, highest, MB",
)


def reload_table(reloads: Sequence[Reload]) -> str:
    """How long a reload takes and what GETs notice of it."""
    return table(RELOAD_HEADS, map(reload_row, reloads))


def reload_row(row: Reload) -> list[str]:
    """One line of the table of reloads."""

    return [
        f"{row.size:,}",
        spread(row.seconds),
        percentiles_ms(row.latencies, 50),
        percentiles_ms(row.latencies, 99),
        number(1000 * max(map(max, row.latencies))),
        percentiles_ms(row.quiet, 99),
        number(max(row.peak_bytes) / 1e6),
    ]


GROWTH_HEADS = (
    "reviews",
    "unseen search, ms",
    "p99",
    "the worst",
    "ms",
    "first answer, s",
    "resident, MB",
)


def growth_table(rows: Sequence[Growth]) -> str:
    """The figures of the plot."""
    return table(
        GROWTH_HEADS,
        (
            (
                f"{row.size:,}",
                number(1000 * median(row.search_seconds)),
                number(1000 * percentile(row.search_seconds, 99)),
                row.slowest.title,
                number(1000 * median(row.slowest.seconds[OURS])),
                number(median(row.start_seconds)),
                number(row.resident_bytes / 1e6),
            )
            for row in rows
        ),
    )


HUB_HEADS = ("subscribers", "all served, s", "deliveries a second", "GET p50, ms", "p99", "max")


def delivery_table(rows: Sequence[Delivery]) -> str:
    """How long changes take to all subscribers, and what GETs notice of it."""
    return table(
        HUB_HEADS,
        (
            (
                f"{row.subscribers:,}",
                spread(row.seconds),
                number(median(row.subscribers / seconds for seconds in row.seconds)),
                percentiles_ms(row.latencies, 50),
                percentiles_ms(row.latencies, 99),
                number(1000 * max(map(max, row.latencies))),
            )
            for row in rows
        ),
    )


# ---- Report ----


@dataclass(frozen=True, slots=True)
class Occasion:
    """When and how the figures came about."""

    date: str
    command: str
    rounds: int
    seconds: int
    load_before: float  # load average of the machine
    versions: Mapping[str, str]


def report(results: Results, occasion: Occasion, drawn: Collection[str]) -> str:
    """The whole text, with the pictures whose names are in `drawn`."""
    head = f"""
        Written by `{occasion.command}` on {occasion.date}; do not edit. The load average of the machine
        before the run was {occasion.load_before:.2f}: near 0 when nothing else was going on.
    """
    parts = ["# Bench results", prose(head), table(("part", "version"), occasion.versions.items(), texts=2)]
    parts += ["## Budgets", prose(ABOUT_BUDGETS), budget_table(results)]
    if results.throughput:
        parts += throughput_part(results.throughput, occasion)
    if results.worst:
        size = results.worst[0].size
        parts += [f"## Worst searches, {size:,} reviews", prose(ABOUT_WORST), worst_table(results)]
    if results.starts:
        parts += ["## Start and memory", prose(ABOUT_STARTS), start_table(results.starts)]
    if results.reloads:
        parts += ["## Reloads", prose(ABOUT_RELOADS), reload_table(results.reloads)]
    if results.growth:
        parts += ["## Growth", prose(ABOUT_GROWTH)]
        parts += image(GROWTH_FILE, "Search, start and memory by number of reviews", drawn)
        parts.append(growth_table(results.growth))
    if results.deliveries:
        parts += ["## Hub", prose(ABOUT_DELIVERIES)]
        parts += image(HUB_FILE, "Time to the last subscriber by number of subscribers", drawn)
        parts.append(delivery_table(results.deliveries))
    return "\n\n".join([*parts, "## What was compared", *map(prose, ABOUT_SERVERS)]) + "\n"


def image(name: str, description: str, drawn: Collection[str]) -> list[str]:
    """A picture, if it was drawn."""
    return [f"![{description}]({name})"] if name in drawn else []


def throughput_part(rows: Sequence[Throughput], occasion: Occasion) -> list[str]:
    """Requests a second and latencies, by size."""
    others = [run.others_share for row in rows for runs in row.runs.values() for run in runs]
    about = f"""
        Medians of {occasion.rounds} rounds of {occasion.seconds} s or more (up to {LONGEST_SECONDS} s where
        answers are slow), the servers in turns, after a round that does not count. Only one server works at
        a time. {ABOUT_RATES}
        Work that has nothing to do with the bench took {median(others):.0%} of a core in the median run and
        {max(others):.0%} in the worst: the more, the less the figures mean.
    """
    parts = ["## Requests a second, and latencies", prose(about), prose(ABOUT_LATENCIES)]
    for size in dict.fromkeys(row.size for row in rows):
        parts.append(f"### {size:,} reviews")
        for of_mcp in (False, True):
            some = [row for row in rows if row.size == size and (SDK in row.runs) == of_mcp]
            parts += [rate_table(some), latency_table(some)] if some else []
    return parts


def prose(text: str) -> str:
    """A paragraph in lines of a readable length."""
    return fill(" ".join(text.split()), width=100, break_long_words=False, break_on_hyphens=False)


# ---- Prose ----

ABOUT_BUDGETS = """
    The budgets are those of the design, the goals go beyond them. A figure is the median of its rounds,
    with the least and the greatest in parentheses; the median decides. A ratio is made within each round.
"""
ABOUT_RATES = f"""
    A star: wrk used {SATURATED:.0%} of its core or more, so that the server might have answered more.
    Left out are combinations whose answers together exceed {MOST_BYTES_IN_FLIGHT / 1e6:.0f} MB, and with
    {MANY_REVIEWS:,} reviews or more those of {MANY_CONNECTIONS} connections or more. MCP calls are measured
    with up to {MOST_UNSEEN:,} reviews, repeated ones with up to {MOST_REPEATED:,}.
"""
ABOUT_LATENCIES = """
    Latencies are milliseconds at p50 / p99 / p99.9 under full load, as wrk counts them: from sending a
    request, which on each connection waits for the answer before it; the first on a connection also waits
    for the server to accept it, which shows in FastAPI's p99 at 128 connections. The last columns are the
    server's processor time for one request, which other work on the machine disturbs least.
"""
ABOUT_WORST = f"""
    One client, one request at a time, 100 reviews an answer, gzip; {WORST_REPETITIONS} requests of each,
    every one with another offset, so that no remembered answer helps, and after {OTHER_WORDS} searches for
    other words, so that nothing is remembered of the words either.
"""
ABOUT_STARTS = """
    From spawning the process to its first answer, with files and byte code already cached by the system.
    Memory is VmRSS (highest: VmHWM) after the first answer, and after a load that fetched the whole data
    set and searched for a second. `× files` is the memory after load to the bytes of both data files,
    `bytes a review` what each review adds to the memory after the first answer.
"""
ABOUT_RELOADS = f"""
    From SIGHUP, one review being changed, to the first answer that has the change. All the while one client
    asks for the newest review on one connection, with a pause of {1000 * SAMPLE_PAUSE_SECONDS:g} ms after
    each answer.
"""
ABOUT_GROWTH = f"""
    reviewsd alone, one client, one request at a time. Unseen searches: {SEARCHES}, as above, 20 reviews an
    answer. The worst: the bad query with the highest median, 100 reviews an answer, gzip. Memory is VmRSS
    after all these searches.
"""
ABOUT_DELIVERIES = f"""
    From SIGHUP, one review of {REVIEWS} being changed, to the last subscriber having the whole new /feed.xml,
    the reload included, with the default number of workers. The subscribers are one process on this machine,
    HTTPS on {len(HOSTS)} loopback addresses; their half of each handshake is done by the same cores. All the
    while one client asks as during reloads.
"""
ABOUT_SERVERS = (
    """
    **reviewsd** runs as `python reviewsd.py --port … --data … --state-dir …`, with all its defaults, in a
    virtual environment that holds its dependencies and nothing else.
    """,
    """
    **nginx** serves the very bytes that reviewsd answers, from the disk, plain and through gzip_static,
    with one worker, sendfile, an open file cache and no access log: the limit, not a rival. Its bytes are
    compared with ours before anything is measured.
    """,
    """
    **FastAPI** is `bench/fastapi_service.py` under one uvicorn worker with uvloop and httptools, without an
    access log. It is written the way FastAPI's documentation advises for speed (Pydantic models as return
    types), folds texts and parses dates once at load, narrows a list filter by filter, answers 304 from the
    version of the data without rendering anything, and compresses with FastAPI's own middleware at level 6.
    It neither renders nor compresses answers beforehand and remembers none: most of the distance on data
    sets and repeated searches is due to that. The reviews it finds are compared with ours before anything
    is measured.
    """,
    """
    **MCP SDK** is `bench/mcp_sdk_server.py`, the official Python SDK's server with the one tool
    search_reviews, under uvicorn in the same way: JSON answers, no sessions, the fastest of its documented
    forms. A call has one search as its arguments, by a client of 2026-07-28, which needs no handshake, or of
    2025-11-25, after its handshake. The reviews that both find are compared before anything is measured.
    reviewsd remembers answers, so that a repeated call costs it a lookup; the SDK's server searches again.
    """,
    f"""
    **wrk** runs with one thread. The small fixed GET is /reviews.json of 3 reviews. An unseen search is a
    word, a first day and a least rating that were never combined before. There are {WORDS:,} words; they come
    again, as people's do, and reviewsd remembers which reviews hold them. wrk and the kernel's network code
    share the cores with the server, which costs the faster servers more, and nginx the most.
    """,
)
