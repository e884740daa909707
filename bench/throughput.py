"""Throughput: one kind of request, many times, by wrk, on every server that answers it.

Sections: Kinds of requests - Results - Rounds
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from answers import current_tag, search_path
from load import Client, Questions, Request, Run, run_wrk
from mcp_calls import ERAS, MCP_PATH
from peers import DYNAMIC, FASTAPI, NGINX, OURS, SDK, Server
from plan import SMALL_SIZE, Plan

# ---- Kinds of requests ----

ALL = (OURS, NGINX, FASTAPI)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kind of request. In `path`, {day} is a day with about 20 reviews since.

    With a body it is a POST. With %s, %s and %d in path or body it is another search every time.
    """

    key: str
    title: str
    path: str
    servers: tuple[str, ...]
    conditional: bool = False  # sends the current entity tag
    gzip: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    small: bool = False  # of the smallest data set only
    most_reviews: int | None = None  # with more, the figure would tell of the search alone, and take long

    @property
    def unseen(self) -> bool:
        """Whether every request asks what nobody asked before."""
        return "%s" in self.path + self.body

    def fits(self, size: int) -> bool:
        """Whether it is to be measured with a data set of `size` reviews."""
        return self.small == (size == SMALL_SIZE) and size <= (self.most_reviews or size)


def _mcp(key: str, title: str, arguments: str, most_reviews: int) -> list[Measurement]:
    """A call of search_reviews by clients of each generation."""
    return [
        Measurement(
            f"{key}-{era.version}",
            f"{title}, {era.version}",
            MCP_PATH,
            (OURS, SDK),
            headers=era.headers,
            body=era.call(arguments),
            most_reviews=most_reviews,
        )
        for era in ERAS
    ]


MOST_UNSEEN, MOST_REPEATED = 10_000, 1_000  # reviews with which calls are measured
UNSEEN_SEARCH = "/api/reviews/search?query=%s&since=%s&min_rating=%d"
UNSEEN_ARGUMENTS = '{"query":"%s","since":"%s","min_rating":%d}'
REPEATED_ARGUMENTS = '{"query":"back","min_rating":4}'
REPEATED_SEARCH = search_path({"query": "back", "min_rating": 4})
MEASUREMENTS = (
    Measurement("304", "304 Not Modified", "/reviews.json", ALL, conditional=True),
    Measurement("small", "small fixed GET", "/reviews.json", ALL, small=True),
    Measurement("reviews", "/reviews.json plain", "/reviews.json", ALL),
    Measurement("reviews-gzip", "/reviews.json gzip", "/reviews.json", ALL, gzip=True),
    Measurement("search-repeated", "repeated search", REPEATED_SEARCH, DYNAMIC),
    Measurement("search-unseen", "unseen search", UNSEEN_SEARCH, DYNAMIC),
    Measurement("since", "since, 20 reviews", "/api/reviews/since/{day}", DYNAMIC),
    *_mcp("mcp-unseen", "unseen call", UNSEEN_ARGUMENTS, MOST_UNSEEN),
    *_mcp("mcp-repeated", "repeated call", REPEATED_ARGUMENTS, MOST_REPEATED),
)


# ---- Results ----


@dataclass(frozen=True, slots=True)
class Throughput:
    """The runs of one kind of request, by server, one a round."""

    key: str
    title: str
    size: int
    connections: int
    runs: dict[str, list[Run]]

    def ratios(self, rival: str) -> list[float]:
        """How many times the rival's requests a second we answer, round by round; empty without figures."""
        pairs = list(zip(self.runs[OURS], self.runs.get(rival, ()), strict=False))
        if any(theirs.requests == 0 for _, theirs in pairs):
            return []
        return [ours.requests_per_second / theirs.requests_per_second for ours, theirs in pairs]


# ---- Rounds ----

WARM_UP_SECONDS = 1
RUN_ANSWERS = 4  # on each connection, at least, unless that takes longer than
LONGEST_SECONDS = 10  # of one round on one server
FIRST_QUESTION = ("back", "2024-02-29", 4)
MOST_BYTES_IN_FLIGHT = 256_000_000  # more copies of a large answer would measure memory
MANY_CONNECTIONS, MANY_REVIEWS = 100, 50_000  # together they would only show a long queue


@dataclass(frozen=True, slots=True)
class Target:
    """A server with the request that it gets."""

    server: Server
    request: Request
    answer_bytes: int  # without compression: so much a server may have to hold
    answer_seconds: float


def measure_throughput(
    plan: Plan,
    measurement: Measurement,
    size: int,
    servers: dict[str, Server],
    questions: Questions,
    day: str,
) -> Iterator[Throughput]:
    """All connection counts of one kind of request."""
    targets = [_target(measurement, servers[name], day) for name in measurement.servers]
    largest = max(target.answer_bytes for target in targets)
    for connections in plan.connections:
        if _too_much(size, connections, largest):
            continue
        plan.say(f"{size} reviews, {measurement.title}, {connections} connections")
        asked = questions if measurement.unseen else None
        _round(plan, targets, connections, WARM_UP_SECONDS, asked)
        rounds = [_round(plan, targets, connections, None, asked) for _ in range(plan.rounds)]
        runs = {name: [one[name] for one in rounds] for name in measurement.servers}
        yield Throughput(measurement.key, measurement.title, size, connections, runs)


def _too_much(size: int, connections: int, answer_bytes: int) -> bool:
    """Whether a combination is left out."""
    if connections >= MANY_CONNECTIONS and size >= MANY_REVIEWS:
        return True
    return connections > 1 and connections * answer_bytes > MOST_BYTES_IN_FLIGHT


def _round(
    plan: Plan, targets: Sequence[Target], connections: int, seconds: int | None, questions: Questions | None
) -> dict[str, Run]:
    """One run on each server; when `seconds` is None, long enough for a few answers on each connection."""
    runs = {}
    for target in targets:
        needed = round(RUN_ANSWERS * target.answer_seconds * connections)
        runs[target.server.name] = run_wrk(
            plan.environment.wrk,
            target.server.url,
            target.request,
            connections,
            seconds or min(LONGEST_SECONDS, max(plan.seconds, needed)),
            target.server.processor_seconds,
            questions,
        )
        target.server.wait_until_idle()
    if questions:
        questions.advance(max(run.requests for run in runs.values()), connections)
    return runs


def _target(measurement: Measurement, server: Server, day: str) -> Target:
    path = measurement.path.replace("{day}", day)
    conditional = {"If-None-Match": current_tag(server, path)} if measurement.conditional else {}
    coding = {"Accept-Encoding": "gzip"} if measurement.gzip else {}
    plain = Request(path, {**measurement.headers, **conditional}, measurement.body)
    request = replace(plain, headers={**plain.headers, **coding})
    with Client(server.port) as client:
        if measurement.unseen:
            reply = client.send(request.asking(FIRST_QUESTION))
            return Target(server, request, len(reply.body), reply.seconds)
        return Target(server, request, len(client.send(plain).body), client.send(request).seconds)
