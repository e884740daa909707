"""Starts: how long until the first answer, and how much memory then and later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from environment import PROJECT
from load import Client, Questions, Request, run_wrk
from peers import DYNAMIC, FASTAPI, OURS, Memory, Server, fastapi_service, our_service
from plan import SMALL_SIZE, Plan, data_directory, file_bytes, new_questions
from throughput import UNSEEN_SEARCH

SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class Start:
    """One server's starts with one data set: one figure of each list a start."""

    label: str  # of the data set
    reviews: int
    file_bytes: int
    server: str
    seconds: list[float] = field(default_factory=list)  # from spawning the process to its first answer
    idle: list[Memory] = field(default_factory=list)  # after the first answer
    loaded: list[Memory] = field(default_factory=list)  # after a second of searches and the whole data set


def measure_starts(plan: Plan) -> Iterator[Start]:
    """Starts with the sample and with every size."""
    yield from _starts_with(plan, SAMPLE, PROJECT / "data")
    for size in sorted({SMALL_SIZE, *plan.sizes}):
        yield from _starts_with(plan, f"{size:,}", data_directory(plan, size))


def _starts_with(plan: Plan, label: str, data: Path) -> Iterator[Start]:
    reviews = len(json.loads((data / "reviews.json").read_bytes())["reviews"])
    plan.say(f"starts with {label} ({reviews} reviews)")
    questions = new_questions(plan)
    results = {name: Start(label, reviews, file_bytes(data), name) for name in DYNAMIC}
    for _ in range(plan.rounds_with(reviews)):
        for name, start in ((OURS, our_service), (FASTAPI, fastapi_service)):
            with start(plan.environment, data, plan.scratch) as server:
                results[name].seconds.append(server.start_seconds)
                results[name].idle.append(server.memory())
                _exercise(plan, server, questions)
                results[name].loaded.append(server.memory())
    yield from results.values()


def _exercise(plan: Plan, server: Server, questions: Questions) -> None:
    with Client(server.port) as client:
        for headers in ({}, {"Accept-Encoding": "gzip"}):
            client.get("/reviews.json", headers)
    request = Request(UNSEEN_SEARCH, {})
    run_wrk(plan.environment.wrk, server.url, request, 16, 1, server.processor_seconds, questions)
    server.wait_until_idle()
