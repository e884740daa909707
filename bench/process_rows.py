"""Rows about the process: start, reload, memory, stop, and peers that are slow."""

import time
from collections.abc import Iterator
from statistics import median

from contenders import SAMPLE_SIZE, Lab
from hub_rows import TOPIC
from lab.attack_lab import (
    HALF_BODY,
    HALF_HEAD,
    WHOLE_CALL,
    WHOLE_GET,
    connections,
)
from lab.services import fetch
from lab.subscribers import Subscribers
from lab.watching import memory_mb, wait_for
from measures import PREPARED, Figure, change, p99, probe, rate
from read_rows import UNSEEN_SEARCH


def start(lab: Lab) -> Iterator[Figure]:
    """The time from the start of the process to its first answer."""
    with lab.daemon(lab.data(SAMPLE_SIZE)) as ours:
        yield Figure("start to the first answer, sample", ours.start_seconds, "s", 0.4)
    data = lab.data(10_000)
    with lab.daemon(data) as ours, lab.peer("fastapi_app", data) as fastapi:
        seconds = ours.start_seconds
        ratio = seconds / fastapi.start_seconds
    what = "start to the first answer, 10,000 reviews"
    yield Figure(what, seconds, "s")
    # The peer checks nothing.
    yield Figure(f"{what}, reviewsd to fastapi_app", ratio, "×", 2.7)


def reload(lab: Lab) -> Iterator[Figure]:
    """The time from the signal to the new content, and how long GETs wait meanwhile."""
    for size, budget_s in ((500, 0.15), (10_000, 1.5)):
        data = lab.data(size)
        with lab.daemon(data) as ours, probe(ours) as latencies:
            seconds = [change(ours, data) for _ in range(3)]
        what = f"reload from the signal to the new answer, {size:,} reviews"
        yield Figure(what, median(seconds), "s", budget_s)
    yield Figure("GET p99 during reloads of 10,000 reviews", p99(latencies), "ms", 30)
    stall = "longest GET during reloads of 10,000 reviews"
    yield Figure(stall, max(latencies), "ms", 100)


# The caches are full after a second, and freed pages are given back.
REST_SECONDS = 2


def memory(lab: Lab) -> Iterator[Figure]:
    """Resident memory after a second of searches."""
    for size, name, budget_mb in (
        (SAMPLE_SIZE, "sample", 70),
        (10_000, "10,000 reviews", 130),
    ):
        with lab.daemon(lab.data(size)) as ours:
            for coding in ("identity", "gzip"):
                fetch(ours, "/reviews.json", accept_encoding=coding)
            rate(ours, 1, template=UNSEEN_SEARCH)
            time.sleep(REST_SECONDS)
            resident = memory_mb(ours.pid)
        yield Figure(f"resident memory, {name}", resident, "MB", budget_mb)


# Of 1,000 connections, so that the probe has some.
UNREAD = 990


def unread(lab: Lab) -> Iterator[Figure]:
    """Connections that request the largest answer and read nothing."""
    beside = f"{UNREAD} unread answers of 10,000 reviews"
    with lab.daemon(lab.data(10_000)) as ours:
        fetch(ours, "/reviews.json")
        time.sleep(REST_SECONDS)
        before = memory_mb(ours.pid)
        with (
            probe(ours, PREPARED) as latencies,
            connections(ours.port, [WHOLE_GET] * UNREAD),
        ):
            time.sleep(10)
        most = memory_mb(ours.pid, "VmHWM") - before
        yield Figure(f"most memory above rest, {beside}", most, "MB", 350)
        yield Figure(f"GET p99 beside {beside}", p99(latencies), "ms", 100)
        began = time.monotonic()
        wait_for("memory given back", lambda: memory_mb(ours.pid) < before + 60)
        seconds = time.monotonic() - began
    yield Figure(f"memory given back after {beside}", seconds, "s", 120)


def slow(lab: Lab) -> Iterator[Figure]:
    """450 connections with half of a head, and as many with half of a body."""
    with (
        lab.daemon(lab.data(SAMPLE_SIZE)) as ours,
        connections(ours.port, [HALF_HEAD, HALF_BODY] * 450),
        probe(ours) as latencies,
    ):
        # Within the deadlines of heads and bodies.
        time.sleep(4)
    yield Figure("GET p99 beside 900 half requests", p99(latencies), "ms", 50)


def stop(lab: Lab) -> Iterator[Figure]:
    """The time from SIGTERM to the end of the process."""
    sent = [HALF_HEAD, HALF_BODY, b"", WHOLE_GET, WHOLE_CALL] * 180
    with lab.daemon(lab.data(SAMPLE_SIZE)) as ours, connections(ours.port, sent):
        seconds = ours.stop()
    yield Figure("stop with 900 connections of all kinds", seconds, "s", 5)
    data = lab.data(500)
    subscribers = Subscribers(lab.scratch)
    hanging = [("hanging", number, TOPIC) for number in range(32)]
    with lab.daemon(data, *subscribers.flags) as ours:
        subscribers.subscribe(ours, hanging)
        change(ours, data)
        wait_for(
            "delivery",
            lambda: subscribers.events["deliveries to hanging callbacks"] > 0,
        )
        seconds = ours.stop()
    yield Figure("stop with 32 hanging deliveries", seconds, "s", 5)
