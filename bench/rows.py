"""The measurements: a function for each row of the table of budgets.

A row measures one round on one checkout. It yields a figure with its budget as soon as it has the figure.

Sections: Load - Rows
"""

import http.client
import json
import math
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlencode

import make_data
from contenders import BENCH, Lab

sys.path.append(str(BENCH.parent / "tests"))
from lab import attack_lab
from lab.attack_lab import (
    CALL_TEXT,
    HALF_BODY,
    HALF_HEAD,
    WHOLE_CALL,
    WHOLE_GET,
    connections,
)
from lab.hostile_requests import hostile_file, hostile_requests
from lab.page_samples import write_files
from lab.proxy_lab import JSON_TYPE, running_proxy
from lab.services import HOST, Service, fetch
from lab.subscribers import HOSTS, Subscribers
from lab.tools import own_network
from lab.watching import LabError, memory_mb, processor_seconds, wait_for

SAMPLE = 0  # in place of a number of generated reviews: the sample data
TOPIC = "/feed.xml"
SMALL_SEARCH = "/api/reviews/search?limit=1"


class Figure(NamedTuple):
    """A measured number and its budget: a lower bound, an upper bound, or none."""

    what: str
    value: float
    unit: str
    at_most: float = math.inf
    at_least: float = 0


def change(server: Service, data: Path) -> float:
    """Give the business another name and send SIGHUP. Returns the seconds until the service has reloaded."""

    def tag() -> str:
        return fetch(server, "/reviews.json", "HEAD").headers["etag"]

    before = tag()
    draft = data / "draft"
    draft.write_bytes(
        (data / "reviews.json").read_bytes().replace(b'"name": "', b'"name": "New ', 1)
    )
    draft.rename(data / "reviews.json")
    began = time.monotonic()
    server.process.send_signal(signal.SIGHUP)
    wait_for("reload", lambda: tag() != before)
    return time.monotonic() - began


# ---- Load ----

WORDS = ",".join(make_data.WORDS[:113])  # a prime number of words: wrk.lua says why


def rate(
    server: Service,
    seconds: int,
    path: str = "",
    headers: Mapping[str, str] | None = None,
    template: str = "",
    connections: int = 16,
) -> float:
    """Requests a second on kept connections; with a template for wrk.lua, every request is a new search.

    Raises LabError if a response was an error or did not come.
    """
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "-s",
        str(BENCH / "wrk.lua"),
    ]
    for name, value in (headers or {}).items():
        command += ["-H", f"{name.replace('_', '-')}: {value}"]
    command += [
        f"http://{HOST}:{server.port}{path}",
        "--",
        *([template, WORDS] if template else []),
    ]
    output = subprocess.run(command, capture_output=True, text=True).stdout
    figures = output.rpartition("figures ")[2].split()
    if figures[1:] != ["0"]:
        raise LabError(f"wrk on {server.name}: {output[-500:]}")
    return float(figures[0])


@contextmanager
def probe(server: Service, path: str = SMALL_SEARCH) -> Iterator[list[float]]:
    """Milliseconds of small GETs while the block runs, each on a new connection; infinite for a failure."""
    latencies: list[float] = []
    ended = threading.Event()

    def keep_asking() -> None:
        while not latencies or not ended.wait(0.003):
            began = time.perf_counter()
            status = 0
            with suppress(OSError, http.client.HTTPException):
                status = fetch(server, path).status
            latencies.append(
                (time.perf_counter() - began) * 1000 if status == 200 else math.inf
            )

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        yield latencies
    finally:
        ended.set()
        thread.join()


def p99(values: list[float]) -> float:
    """The smallest of the values that 99 of 100 do not exceed."""
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


# ---- Rows ----

UNSEEN_SEARCH = "/api/reviews/search?query=%s&since=%s&min_rating=%d"
UNSEEN_CALL = CALL_TEXT % '{"query":"%s","since":"%s","min_rating":%d}'


def fixed(lab: Lab) -> Iterator[Figure]:
    """A 304 and a small fixed GET: a reviews.json of 2 KB."""
    data = lab.data(3)
    files = lab.scratch
    path = "/reviews.json"
    with (
        lab.daemon(data) as ours,
        lab.peer("fastapi_app", data) as fastapi,
        lab.nginx(files) as nginx,
    ):
        (files / "reviews.json").write_bytes(fetch(ours, path).body)
        for request, status in (("304", 304), ("small fixed GET", 200)):
            rates = {}
            for server in (ours, nginx, fastapi):
                tag = fetch(server, path).headers["etag"]
                headers = {"if_none_match": tag} if status == 304 else {}
                if fetch(server, path, **headers).status != status:
                    raise LabError(f"{server.name} does not answer {status}")
                rates[server.name] = rate(server, lab.seconds, path, headers)
            yield from compared(request, rates, 0.15, 3)


def large(lab: Lab) -> Iterator[Figure]:
    """The whole data set of 500 reviews without gzip."""
    data = lab.data(500)
    with lab.daemon(data) as ours, lab.peer("fastapi_app", data) as fastapi:
        paths = ((ours, "/reviews.json"), (fastapi, "/reviews.bin"))
        rates = {server.name: rate(server, lab.seconds, path) for server, path in paths}
    yield from compared("/reviews.json of 500", rates, 1)


def search(lab: Lab) -> Iterator[Figure]:
    """A search with an unseen query."""
    return unseen(lab, "fastapi_app", "", UNSEEN_SEARCH, {})


def mcp(lab: Lab) -> Iterator[Figure]:
    """A call of search_reviews with an unseen query."""
    headers = JSON_TYPE | {"mcp_protocol_version": "2025-11-25"}
    return unseen(lab, "sdk_app", "/mcp", UNSEEN_CALL, headers)


def unseen(
    lab: Lab, peer: str, path: str, template: str, headers: dict[str, str]
) -> Iterator[Figure]:
    """Rates of a template for wrk.lua, 500 reviews. Raises LabError if the servers find different reviews."""
    data = lab.data(500)
    text = template % ("pain", "2023-02-28", 4)
    rates = {}
    answers = []
    with lab.daemon(data) as ours, lab.peer(peer, data) as other:
        for server in (ours, other):
            method, body = ("POST", text.encode()) if path else ("GET", None)
            document = json.loads(
                fetch(server, path or text, method, body, **headers).body
            )
            result = document["result"]["structuredContent"] if path else document
            answers.append([review["id"] for review in result["reviews"]])
            rates[server.name] = rate(server, lab.seconds, path, headers, template)
    if answers[0] != answers[1]:
        raise LabError(f"{peer} does not find the same reviews")
    yield from compared(path or "unseen search", rates, 3 if path else 1.5)


def compared(
    request: str, rates: dict[str, float], *budgets: float
) -> Iterator[Figure]:
    """All rates, and the ratios of the first rate to the others, with the budgets of these ratios."""
    for (name, value), budget in zip(rates.items(), (0, *budgets), strict=True):
        yield Figure(f"{request}, {name}", value, "a second")
        if budget:
            yield Figure(
                f"{request}, beside {name}",
                rates["reviewsd"] / value,
                "×",
                at_least=budget,
            )


COSTLY_QUERIES = (
    "",
    "e",
    "th",
    "qz",
    "the",
    "and the",
    "e the",
    " ",
    ". ",
    "ж",
    "the and " * 24 + "q",
)
EVERY_FILTER = {"min_rating": "1", "since": "2000-01-01", "until": "2030-01-01"}
EVERY_FILTER |= {"mentions_technician": "Dr.", "mentions_service": "massage-therapy"}


def worst(lab: Lab) -> Iterator[Figure]:
    """The slowest search that matches reviews, and the slowest whose response has hints, by medians of five.

    A search asks for one review, which is cheap to send, and is repeated: the time of the second, cached
    response is that of the way there and back, and is subtracted.
    """
    for size, budget_ms, empty_budget_ms in ((500, 1, 2), (10_000, 5, 25)):
        highest: defaultdict[bool, float] = defaultdict(
            float
        )  # milliseconds, by whether nothing matches
        with lab.daemon(lab.data(size)) as ours:
            for query in COSTLY_QUERIES:
                for offset, filters in ((0, {}), (size // 2, {}), (0, EVERY_FILTER)):
                    path = f"{SMALL_SEARCH}&{urlencode({'query': query, **filters})}"
                    unseen = [f"{path}&offset={offset + number}" for number in range(5)]
                    pairs = [(fetch(ours, one), fetch(ours, one)) for one in unseen]
                    if any(first.status != 200 for first, _ in pairs):
                        raise LabError(f"{path} is not answered")
                    is_empty = pairs[0][0].body.startswith(b'{"matched":0,')
                    milliseconds = (
                        median(first.seconds - again.seconds for first, again in pairs)
                        * 1000
                    )
                    highest[is_empty] = max(highest[is_empty], milliseconds)
        yield Figure(f"worst search, {size}", highest[False], "ms", budget_ms)
        yield Figure(
            f"worst empty search, {size}", highest[True], "ms", empty_budget_ms
        )


def start(lab: Lab) -> Iterator[Figure]:
    """The time from the start of the process to its first response."""
    with lab.daemon(lab.data(SAMPLE)) as ours:
        yield Figure("start, sample", ours.start_seconds, "s", 0.4)
    data = lab.data(10_000)
    with lab.daemon(data) as ours, lab.peer("fastapi_app", data) as fastapi:
        yield Figure("start, 10000", ours.start_seconds, "s")
        yield Figure(
            "start, 10000, beside fastapi_app",
            ours.start_seconds / fastapi.start_seconds,
            "×",
            2.7,
        )


def reload(lab: Lab) -> Iterator[Figure]:
    """The time from the signal to the new content, and the latency of GETs meanwhile."""
    for size, budget in ((500, 0.15), (10_000, 1.5)):
        data = lab.data(size)
        with lab.daemon(data) as ours, probe(ours) as latencies:
            yield Figure(
                f"reload, {size}",
                median(change(ours, data) for _ in range(3)),
                "s",
                budget,
            )
    yield Figure("GET p99 during reloads, 10000", p99(latencies), "ms", 30)
    yield Figure("longest GET during reloads, 10000", max(latencies), "ms", 100)


def memory(lab: Lab) -> Iterator[Figure]:
    """Resident memory after a second of searches."""
    for size, budget_mb in ((SAMPLE, 70), (10_000, 130)):
        with lab.daemon(lab.data(size)) as ours:
            for coding in ("identity", "gzip"):
                fetch(ours, "/reviews.json", accept_encoding=coding)
            rate(ours, 1, template=UNSEEN_SEARCH)
            time.sleep(2)
            yield Figure(
                f"resident, {size or 'sample'}", memory_mb(ours.pid), "MB", budget_mb
            )


PREPARED = "/robots.txt"


def searches(lab: Lab) -> Iterator[Figure]:
    """GETs of a prepared document while 50 connections send unseen searches, 10,000 reviews."""
    with lab.daemon(lab.data(10_000)) as ours, ThreadPoolExecutor(1) as pool:
        load = pool.submit(
            rate, ours, lab.seconds + 2, template=UNSEEN_SEARCH, connections=50
        )
        time.sleep(1)
        with probe(ours, PREPARED) as latencies:
            time.sleep(lab.seconds)
        load.result()
    yield Figure(
        "GET p50 beside 50 unseen searches, 10000", median(latencies), "ms", 10
    )
    yield Figure("GET p99 beside 50 unseen searches, 10000", p99(latencies), "ms", 40)


# Any text has these letters, so that a page marks many places.
UNSEEN_LIST = "/reviews?query=%s+e&since=%s&min_rating=%d"


def lists(lab: Lab) -> Iterator[Figure]:
    """GETs of a prepared document while 10 connections ask for list pages, 10,000 reviews."""
    with lab.daemon(lab.data(10_000)) as ours, ThreadPoolExecutor(1) as pool:
        load = pool.submit(
            rate, ours, lab.seconds + 2, template=UNSEEN_LIST, connections=10
        )
        time.sleep(1)
        with probe(ours, PREPARED) as latencies:
            time.sleep(lab.seconds)
        yield Figure("list pages, 10000", load.result(), "a second")
    beside = "beside 10 connections of list pages, 10000"
    yield Figure(f"GET p50 {beside}", median(latencies), "ms", 2)
    yield Figure(f"GET p99 {beside}", p99(latencies), "ms", 20)
    yield Figure(f"longest GET {beside}", max(latencies), "ms")


def unread(lab: Lab) -> Iterator[Figure]:
    """1,000 connections, less those for the probe, that request the largest response and read nothing."""
    with lab.daemon(lab.data(10_000)) as ours:
        fetch(ours, "/reviews.json")
        time.sleep(2)
        before = memory_mb(ours.pid)
        with (
            probe(ours, PREPARED) as latencies,
            connections(ours.port, [WHOLE_GET] * 990),
        ):
            time.sleep(10)
        most = memory_mb(ours.pid, "VmHWM")
        yield Figure(
            "highest with 990 unread answers of 10000, above rest",
            most - before,
            "MB",
            350,
        )
        yield Figure("GET p99 beside them", p99(latencies), "ms", 100)
        began = time.monotonic()
        wait_for("memory given back", lambda: memory_mb(ours.pid) < before + 60)
        yield Figure(
            "memory given back after they left", time.monotonic() - began, "s", 120
        )


def slow(lab: Lab) -> Iterator[Figure]:
    """450 connections with half of a head, and as many with half of a body."""
    sent = [HALF_HEAD, HALF_BODY] * 450
    with (
        lab.daemon(lab.data(SAMPLE)) as ours,
        connections(ours.port, sent),
        probe(ours) as latencies,
    ):
        time.sleep(4)
    yield Figure("GET p99 beside 900 slow connections", p99(latencies), "ms", 50)


# Others whom a hostile request must not keep waiting for longer.
LONGEST_WAIT_MS = 50
# Of a machine that does something else meanwhile, the least of so many waits counts.
LOOKS = 3


def hostile(lab: Lab) -> Iterator[Figure]:
    """How long any 64 KiB of a stranger keep another request waiting.

    Reviews are hostile, too. Tests count steps of the same requests; those inside of C
    are seen only here.
    """
    data = lab.scratch / "hostile"
    data.mkdir()
    write_files(data, hostile_file())
    longest_ms = 0.0
    with lab.daemon(data) as ours:
        for request in hostile_requests():
            longest_ms = max(longest_ms, wait_beside(ours, request.raw()))
    what = "longest GET beside any 64 KiB of a stranger"
    yield Figure(what, longest_ms, "ms", LONGEST_WAIT_MS)


def wait_beside(server: Service, request: bytes) -> float:
    """The milliseconds that a small GET takes beside a request."""
    waits: list[float] = []
    while not waits or (min(waits) > LONGEST_WAIT_MS and len(waits) < LOOKS):
        with socket.create_connection((HOST, server.port), timeout=60) as stranger:
            stranger.sendall(request)
            waits.append(fetch(server, PREPARED).seconds * 1000)
            if not stranger.recv(1):
                raise LabError(f"no answer to {request[:80]!r}")
    return min(waits)


def stop(lab: Lab) -> Iterator[Figure]:
    """The time from SIGTERM to the end, with all kinds of open connections."""
    sent = [HALF_HEAD, HALF_BODY, b"", WHOLE_GET, WHOLE_CALL] * 180
    with lab.daemon(lab.data(SAMPLE)) as ours, connections(ours.port, sent):
        yield Figure("stop with all these connections", ours.stop(), "s", 5)
    data = lab.data(500)
    subscribers = Subscribers(lab.scratch)
    with lab.daemon(data, *subscribers.flags) as ours:
        subscribers.subscribe(
            ours, [("hanging", number, TOPIC) for number in range(32)]
        )
        change(ours, data)
        wait_for(
            "delivery",
            lambda: subscribers.events["deliveries to hanging callbacks"] > 0,
        )
        yield Figure("stop with hanging deliveries", ours.stop(), "s", 5)


def hub(lab: Lab) -> Iterator[Figure]:
    """The delivery of a change to 500, and to 5,000 subscribers with 50 addresses."""
    data = lab.data(500)
    seconds = {}
    for count, budget_s in ((500, 15), (5000, math.inf)):
        subscribers = Subscribers(lab.scratch)
        steady = [("steady", number, TOPIC) for number in range(count)]
        with lab.daemon(data, *subscribers.flags) as ours:
            subscribers.subscribe(ours, steady)
            with probe(ours) as latencies:
                before = processor_seconds(ours.pid)
                seconds[count] = delivery_seconds(ours, data, subscribers, count)
                processor_ms = (processor_seconds(ours.pid) - before) / count * 1000
        yield Figure(f"a change to {count} subscribers", seconds[count], "s", budget_s)
        yield Figure(f"GET p99 meanwhile, {count}", p99(latencies), "ms", 50)
        yield Figure(f"processor time of each, with TLS, {count}", processor_ms, "ms")
    yield Figure("5,000 subscribers beside 500", seconds[5000] / seconds[500], "×", 14)


def delivery_seconds(
    server: Service, data: Path, subscribers: Subscribers, count: int
) -> float:
    """The seconds from a change until this many steady callbacks have it."""
    began = time.monotonic()
    change(server, data)
    content = fetch(server, TOPIC).body
    for number in range(count):
        path = f"/steady/{number}"
        wait_for("delivery", lambda path=path: subscribers.newest[path] == content)
    return time.monotonic() - began


def hub_hanging(lab: Lab) -> Iterator[Figure]:
    """The delivery of a change to 450 of 500 subscribers, while the others begin to hang."""
    data = lab.data(500)
    subscribers = Subscribers(lab.scratch)
    everybody = [("steady", number, TOPIC) for number in range(450)]
    # They are as old as the others, and come between them.
    for number in range(50):
        everybody.insert(number * 10, ("turning", number, TOPIC))
    with lab.daemon(data, *subscribers.flags) as ours:
        subscribers.subscribe(ours, everybody)
        alone = delivery_seconds(ours, data, subscribers, 450)
        wait_for("rest", lambda: subscriptions(ours)["behind"] == 0)
        beside = delivery_seconds(ours, data, subscribers, 450)
    yield Figure("a change to 450 subscribers, and 50 that take it", alone, "s")
    yield Figure("a change to 450 subscribers, and 50 that hang", beside, "s")
    yield Figure("450 beside 50 that hang, to alone", beside / alone, "×", 2)


def subscriptions(server: Service) -> dict[str, int]:
    return dict(json.loads(fetch(server, "/healthz").body)["subscriptions"])


# How soon who asks beside strangers must be asked.
SOON_SECONDS = 10.0
FORMS_A_SECOND = 10
# Before anybody else asks: the stranger has then repeated each request 60 times.
WARM_UP_SECONDS = 30.0


def hub_strangers(lab: Lab) -> Iterator[Figure]:
    """Who is asked soon while a stranger sends ten forms a second to the daemon."""
    data = lab.data(SAMPLE)
    for name, stranger in STRANGERS.items():
        subscribers = Subscribers(lab.scratch)
        with black_hole() as port, lab.daemon(data, *subscribers.flags) as ours:
            subscribers.subscribe(
                ours, [("steady", number, TOPIC) for number in range(5)]
            )
            ended = threading.Event()
            forms = partial(stranger, subscribers, ours, port)
            thread = threading.Thread(target=send_forms, args=(ours, forms, ended))
            thread.start()
            time.sleep(WARM_UP_SECONDS)
            asked_at = {}
            longest_form = 0.0
            for number in (*range(5), *range(100, 115)):
                asked_at[number] = time.monotonic()
                seconds = ask_for_an_hour_more(subscribers, ours, number)
                longest_form = max(longest_form, seconds)
                time.sleep(0.5)
            time.sleep(SOON_SECONDS)
            ended.set()
            thread.join()
        waits = {
            number: subscribers.verified_at.get((f"/steady/{number}", "7200"), math.inf)
            - moment
            for number, moment in asked_at.items()
        }
        yield Figure(
            f"the longest answer to a form beside {name}", longest_form, "s", 1
        )
        for kind, numbers in (("renewals", range(5)), ("newcomers", range(100, 115))):
            soon = [waits[one] for one in numbers if waits[one] < SOON_SECONDS]
            yield Figure(
                f"{kind} of {len(numbers)} asked within {SOON_SECONDS:.0f} s beside {name}",
                len(soon),
                "",
                at_least=len(numbers),
            )
            yield Figure(
                f"the longest of these {kind} beside {name}",
                max(soon, default=math.inf),
                "s",
            )


def ask_for_an_hour_more(
    subscribers: Subscribers, server: Service, number: int
) -> float:
    """Send the form of a steady callback. Returns the seconds until it is answered."""
    request = subscribers.request(
        "subscribe", server.port, "steady", number, TOPIC, lease_seconds="7200"
    )
    return fetch(server, **request).seconds


def send_forms(
    server: Service, form: Callable[[int], dict[str, Any]], ended: threading.Event
) -> None:
    number = 0
    while not ended.wait(1 / FORMS_A_SECOND):
        with suppress(OSError, http.client.HTTPException):
            fetch(server, **form(number))
        number += 1


def hanging_stranger(
    hosts: Callable[[int], str],
    subscribers: Subscribers,
    server: Service,
    port: int,
    number: int,
) -> dict[str, Any]:
    """A form whose callback hangs."""
    callback = f"https://{hosts(number)}:{port}/{number}"
    return subscribers.request_of(callback, "subscribe", server.port, TOPIC)


def repeating_stranger(
    subscribers: Subscribers, server: Service, port: int, number: int
) -> dict[str, Any]:
    """A form with the callback of a subscriber, and a secret of the stranger's."""
    return subscribers.request(
        "subscribe",
        server.port,
        "steady",
        number % 5,
        TOPIC,
        secret=f"a stranger's {number}",
    )


STRANGERS = {
    # Each has a name and an address of its own: 127.100.0.0 and following ones.
    "ever new callbacks that hang": partial(
        hanging_stranger, lambda number: f"127.100.{number // 250}.{number % 250 + 1}"
    ),
    "callbacks that hang at the addresses of the others": partial(
        hanging_stranger, lambda number: f"127.0.0.{number % HOSTS + 1}"
    ),
    "repetitions of the requests of subscribers": repeating_stranger,
}


@contextmanager
def black_hole() -> Iterator[int]:
    """A port at every address of this machine, where connections are accepted and nothing else."""
    with socket.create_server(("", 0), backlog=1024) as server:
        yield server.getsockname()[1]


requests = partial(partial, attack_lab.requests)
UNSEEN_PAGE = "/reviews?query=#"
ONE = [attack_lab.ATTACKER]
WIDE = attack_lab.WIDE_ATTACKER
ATTACKS = {
    "256 slow readers": partial(attack_lab.slow_readers, sources=256 * ONE),
    "256 slow bodies": partial(attack_lab.slow_bodies, sources=256 * ONE),
    "new query strings": requests(
        path="/reviews.json?#", sources=4 * ONE, pause_seconds=0
    ),
    "unseen pages": requests(path=UNSEEN_PAGE),
    "tool calls": requests(path="/mcp", body=attack_lab.SMALL_CALL),
    "a /48": requests(path=UNSEEN_PAGE, sources=WIDE),
}


def attacks(lab: Lab) -> Iterator[Figure]:
    """The effect of one client's attack on others, through the shipped nginx. Needs root for a network."""
    data = lab.data(2000)
    seconds = 2 * lab.seconds
    for number, (name, attack) in enumerate(ATTACKS.items()):
        directory = lab.scratch / str(number)
        directory.mkdir()
        proxy_of = partial(running_proxy, directory, "nginx", checkout=lab.checkout)
        with (
            own_network(*WIDE),
            lab.daemon(data) as ours,
            proxy_of([ours.port]) as proxy,
        ):
            alone = attack_lab.others(proxy, seconds)
            with attack_lab.in_another_process(attack(proxy)):
                beside = attack_lab.others(proxy, seconds)
        what = f"of others through nginx beside {name}"
        yield Figure(
            f"refused {what}", sum(status != 200 for status, _ in beside), "", 0
        )
        for measure, of in (("median", median), ("p99", p99)):
            value, usual = (
                of([ms for _, ms in answers]) for answers in (beside, alone)
            )
            yield Figure(f"{measure} {what}", value, "ms")
            yield Figure(f"{measure} {what}, to alone", value / usual, "×", 4)


ROWS = (
    fixed,
    large,
    search,
    mcp,
    worst,
    start,
    reload,
    memory,
    searches,
    lists,
    unread,
    slow,
    hostile,
    stop,
    hub,
    hub_hanging,
    hub_strangers,
    attacks,
)
