"""Everything that is measured, in order, and its results.

Nothing here or in the modules that it calls prints. A result keeps every single figure; medians and ratios
are made where they are shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from answers import check, check_calls, search_path
from deliveries import Delivery, measure_deliveries
from growth import Growth, measure_growth
from load import Client
from peers import (
    DYNAMIC,
    FASTAPI,
    NGINX,
    OURS,
    SDK,
    Server,
    copy_datasets,
    fastapi_service,
    mcp_sdk_server,
    nginx,
    our_service,
)
from plan import SMALL_SIZE, Plan, data_directory, new_questions, search_words
from reloads import Reload, measure_reloads
from searches import BAD_QUERIES, Worst, measure_worst
from starts import Start, measure_starts
from throughput import MEASUREMENTS, Throughput, measure_throughput

# The names of what is not a row of MEASUREMENTS.
WORST, START, RELOAD, GROWTH, HUB = "worst", "start", "reload", "growth", "hub"


@dataclass(slots=True)
class Results:
    """All figures of a run."""

    throughput: list[Throughput] = field(default_factory=list)
    worst: list[Worst] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    reloads: list[Reload] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)


def measure(plan: Plan) -> Results:
    """Do what the plan says. Raises BenchError."""
    results = Results()
    if START in plan.only:
        results.starts += measure_starts(plan)
    if RELOAD in plan.only:
        results.reloads += [measure_reloads(plan, size) for size in plan.sizes]
    if GROWTH in plan.only:
        results.growth += [measure_growth(plan, size) for size in plan.growth_sizes]
    if HUB in plan.only:
        results.deliveries += measure_deliveries(plan)
    for size in sorted({SMALL_SIZE, *plan.sizes}):
        wanted = [one for one in MEASUREMENTS if one.key in plan.only and one.fits(size)]
        worst = WORST in plan.only and size == max(plan.sizes)
        if not wanted and not worst:
            continue
        with _servers(plan, size) as servers:
            day = _check_answers(plan, size, servers)
            questions = new_questions(plan)
            for measurement in wanted:
                results.throughput += measure_throughput(plan, measurement, size, servers, questions, day)
            if worst:
                results.worst += measure_worst(plan, size, {name: servers[name] for name in DYNAMIC})
    return results


@contextmanager
def _servers(plan: Plan, size: int) -> Iterator[dict[str, Server]]:
    data = data_directory(plan, size)
    plan.say(f"{size} reviews: starting the servers")
    with ExitStack() as stack:
        ours = stack.enter_context(our_service(plan.environment, data, plan.scratch))
        fastapi = stack.enter_context(fastapi_service(plan.environment, data, plan.scratch))
        files = plan.scratch / "files"
        copy_datasets(ours, files)
        static = stack.enter_context(nginx(plan.environment, files, plan.scratch))
        sdk = stack.enter_context(mcp_sdk_server(plan.environment, data, plan.scratch))
        yield {OURS: ours, NGINX: static, FASTAPI: fastapi, SDK: sdk}


def _check_answers(plan: Plan, size: int, servers: dict[str, Server]) -> str:
    """Compare the servers' answers; a day since when there are about 20 reviews."""
    plan.say(f"{size} reviews: comparing answers")
    with Client(servers[OURS].port) as client:
        newest = json.loads(client.get(search_path({"limit": 20})).body)
    day: str = newest["reviews"][-1]["date"][:10]
    searches = list(BAD_QUERIES.values())
    searches += [{"query": word, "min_rating": 4, "since": "2024-02-29"} for word in search_words()[:20]]
    check(servers[OURS], servers[NGINX], servers[FASTAPI], searches, day)
    check_calls(servers[OURS], servers[SDK], searches)
    return day
