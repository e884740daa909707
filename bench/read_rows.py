"""Rows about reads: how many a second, the slowest, and how long others wait for them.

Sections: rates - the slowest - beside load.
"""

import json
import socket
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from urllib.parse import urlencode

import make_data
from contenders import Lab
from lab.attack_lab import CALL_TEXT
from lab.data_sets import write_files
from lab.hostile_requests import hostile_file, hostile_requests
from lab.proxy_lab import JSON_TYPE
from lab.services import HOST, Service, fetch
from lab.watching import LabError
from measures import PREPARED, SMALL_SEARCH, SUBJECT_KEYS, Figure, p99, probe, rate

# ---- Rates ----

UNSEEN_SEARCH = "/api/reviews/search?query=%s&since=%s&min_rating=%d"
UNSEEN_CALL = CALL_TEXT % '{"query":"%s","since":"%s","min_rating":%d,"limit":10}'
# Any text has the second word, so that a page marks many places.
UNSEEN_LIST = "/reviews?query=%s+e&since=%s&min_rating=%d"
BY_SUBJECT = "/api/reviews/search?mentions=%s&since=%s&min_rating=%d"
BY_PERSON = "/api/reviews/search?mentions_technician=%s&since=%s&min_rating=%d"


def fixed(lab: Lab) -> Iterator[Figure]:
    """Answers that are ready: a 304, and a reviews.json of 2 KB."""
    data = lab.data(3)
    files = lab.scratch
    path = "/reviews.json"
    with (
        lab.daemon(data) as ours,
        lab.nginx(files) as nginx,
        lab.peer("fastapi_app", data) as fastapi,
    ):
        (files / "reviews.json").write_bytes(fetch(ours, path).body)
        for what, status in (("304 to a known tag", 304), ("GET of 2 KB", 200)):
            rates = {}
            for server in (ours, nginx, fastapi):
                headers = {}
                if status == 304:
                    headers["if_none_match"] = fetch(server, path).headers["etag"]
                if fetch(server, path, **headers).status != status:
                    raise LabError(f"{server.name} does not answer {status}")
                rates[server.name] = rate(server, lab.seconds, path, headers=headers)
            yield from compared(what, rates, {"nginx": 0.3, "fastapi_app": 5})


def large(lab: Lab) -> Iterator[Figure]:
    """The whole data set of 500 reviews without gzip."""
    data = lab.data(500)
    with lab.daemon(data) as ours, lab.peer("fastapi_app", data) as fastapi:
        rates = {
            ours.name: rate(ours, lab.seconds, "/reviews.json"),
            fastapi.name: rate(fastapi, lab.seconds, "/reviews.bin"),
        }
    yield from compared("/reviews.json of 500 reviews", rates, {"fastapi_app": 1.4})


def search(lab: Lab) -> Iterator[Figure]:
    """Searches that nobody has sent before, 500 reviews."""
    data = lab.data(500)
    path = UNSEEN_SEARCH % EQUAL_ARGUMENTS
    rates = {}
    found = []
    with lab.daemon(data) as ours, lab.peer("fastapi_app", data) as fastapi:
        for server in (ours, fastapi):
            found.append(_ids(json.loads(fetch(server, path).body)))
            rates[server.name] = rate(server, lab.seconds, template=UNSEEN_SEARCH)
    _check_equal(found)
    yield from compared("unseen search of 500 reviews", rates, {"fastapi_app": 4})


def mcp(lab: Lab) -> Iterator[Figure]:
    """The same searches as calls of a tool, beside the official SDK."""
    data = lab.data(500)
    headers = JSON_TYPE | {"mcp_protocol_version": "2025-11-25"}
    body = (UNSEEN_CALL % EQUAL_ARGUMENTS).encode()
    rates = {}
    found = []
    with lab.daemon(data) as ours, lab.peer("sdk_app", data) as sdk:
        for server in (ours, sdk):
            answer = json.loads(fetch(server, "/mcp", "POST", body, **headers).body)
            found.append(_ids(answer["result"]["structuredContent"]))
            rates[server.name] = rate(
                server, lab.seconds, "/mcp", headers=headers, template=UNSEEN_CALL
            )
    _check_equal(found)
    yield from compared("unseen call of search_reviews", rates, {"sdk_app": 2.5})


# With these both servers must find the same reviews: else they do different work.
EQUAL_ARGUMENTS = ("pain", "2023-02-28", 4)


def _ids(result: dict[str, list[dict[str, str]]]) -> list[str]:
    return [review["id"] for review in result["reviews"]]


def _check_equal(found: list[list[str]]) -> None:
    if found[0] != found[1]:
        raise LabError("the servers do not find the same reviews")


def compared(
    what: str, rates: dict[str, float], least: dict[str, float]
) -> Iterator[Figure]:
    """All rates, and the daemon's as multiples of others', which must be `least`."""
    for name, value in rates.items():
        yield Figure(f"{what}, {name}", value, "a second")
    for name, ratio in least.items():
        multiple = rates["reviewsd"] / rates[name]
        yield Figure(f"{what}, reviewsd to {name}", multiple, "×", at_least=ratio)


def mentions(lab: Lab) -> Iterator[Figure]:
    """Unseen searches by subject and by person: both are answered from an index."""
    with lab.daemon(lab.data(10_000)) as ours:
        by_person = rate(
            ours, lab.seconds, template=BY_PERSON, words=make_data.people()
        )
        yield Figure("unseen search by person, 10,000 reviews", by_person, "a second")
        # Last: a checkout before the filter answers 400.
        keys = [f"technicians/{id}" for id in make_data.people()]
        by_key = rate(ours, lab.seconds, template=BY_SUBJECT, words=keys)
        of_all = rate(ours, lab.seconds, template=BY_SUBJECT, words=SUBJECT_KEYS)
    what = "unseen search by mentions"
    yield Figure(f"{what} of these people, 10,000 reviews", by_key, "a second")
    ratio = by_key / by_person
    yield Figure(f"{what} of people, to one by person", ratio, "×", at_least=0.9)
    # Other subjects have more reviews, whose figures are counted.
    yield Figure(f"{what} of any subject, 10,000 reviews", of_all, "a second")


# ---- The slowest ----

# What few and many texts have, at their start and in their middle: short and long
# words, parts of two words, what stands at every end of a word or sentence, no letter
# of English, and words that begin again and again before they differ.
COSTLY_QUERIES = ("", "e", "th", "qz", "the", "and the", "e the", " ", ". ", "ж")
COSTLY_QUERIES += ("the and " * 24 + "q",)
EVERY_FILTER = {
    "min_rating": "1",
    "since": "2000-01-01",
    "until": "2030-01-01",
    "mentions_technician": "Dr.",
    "mentions_service": "massage-therapy",
}
REPETITIONS = 5


def worst(lab: Lab) -> Iterator[Figure]:
    """The slowest search that finds reviews, and the slowest that finds none.

    The latter has hints, for which several other searches are made.
    """
    for size, budget_ms, empty_budget_ms in ((500, 1, 2), (10_000, 5, 25)):
        slowest: defaultdict[bool, float] = defaultdict(float)
        with lab.daemon(lab.data(size)) as ours:
            for query in COSTLY_QUERIES:
                for offset, filters in ((0, {}), (size // 2, {}), (0, EVERY_FILTER)):
                    path = f"{SMALL_SEARCH}&{urlencode({'query': query, **filters})}"
                    is_empty, milliseconds = _search_time(ours, path, offset)
                    slowest[is_empty] = max(slowest[is_empty], milliseconds)
        of_size = f"of {size:,} reviews"
        finding = f"slowest search that finds reviews, {of_size}"
        yield Figure(finding, slowest[False], "ms", budget_ms)
        empty = f"slowest search that finds nothing, {of_size}"
        yield Figure(empty, slowest[True], "ms", empty_budget_ms)


def _search_time(server: Service, path: str, offset: int) -> tuple[bool, float]:
    """Whether a search finds nothing, and the milliseconds of computing it.

    It asks for one review, which is cheap to send, and each search is sent twice: the
    time of the second, cached answer is that of the way there and back.
    """
    differences = []
    for number in range(REPETITIONS):
        # Another offset is another search for the cache, and the same work.
        unseen = f"{path}&offset={offset + number}"
        first = fetch(server, unseen)
        again = fetch(server, unseen)
        if first.status != 200:
            raise LabError(f"{unseen} is not answered")
        differences.append(first.seconds - again.seconds)
    is_empty = first.body.startswith(b'{"matched":0,')
    return is_empty, median(differences) * 1000


# ---- Beside load ----

# The load has begun, and the caches are full.
BEFORE_PROBE_SECONDS = 1


def searches(lab: Lab) -> Iterator[Figure]:
    """How long a GET waits beside 50 connections with unseen searches."""
    beside = "beside 50 connections of unseen searches, 10,000 reviews"
    yield from _beside(lab, UNSEEN_SEARCH, 50, "unseen search", beside)


def lists(lab: Lab) -> Iterator[Figure]:
    """How long a GET waits beside 10 connections with unseen list pages."""
    beside = "beside 10 connections of list pages, 10,000 reviews"
    yield from _beside(lab, UNSEEN_LIST, 10, "unseen list page", beside)


def _beside(
    lab: Lab, template: str, connections: int, what: str, beside: str
) -> Iterator[Figure]:
    with lab.daemon(lab.data(10_000)) as ours, ThreadPoolExecutor(1) as pool:
        # It lasts longer than the probe at both ends.
        load = pool.submit(
            rate,
            ours,
            lab.seconds + 2 * BEFORE_PROBE_SECONDS,
            template=template,
            connections=connections,
        )
        time.sleep(BEFORE_PROBE_SECONDS)
        with probe(ours, PREPARED) as latencies:
            time.sleep(lab.seconds)
        yield Figure(f"{what}, 10,000 reviews", load.result(), "a second")
    yield Figure(f"GET p50 {beside}", median(latencies), "ms", 2)
    yield Figure(f"GET p99 {beside}", p99(latencies), "ms", 20)
    yield Figure(f"longest GET {beside}", max(latencies), "ms")


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
            longest_ms = max(longest_ms, _wait_beside(ours, request.raw()))
    what = "longest GET beside any 64 KiB of a stranger"
    yield Figure(what, longest_ms, "ms", LONGEST_WAIT_MS)


def _wait_beside(server: Service, request: bytes) -> float:
    """The milliseconds that a small GET takes beside a request."""
    waits: list[float] = []
    while not waits or (min(waits) > LONGEST_WAIT_MS and len(waits) < LOOKS):
        with socket.create_connection((HOST, server.port), timeout=60) as stranger:
            stranger.sendall(request)
            waits.append(fetch(server, PREPARED).seconds * 1000)
            if not stranger.recv(1):
                raise LabError(f"no answer to {request[:80]!r}")
    return min(waits)
