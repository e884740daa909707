"""What is measured, and how: tables of questions, and the functions that put them to the servers.

Nothing here prints. A result keeps every single figure; medians and ratios are made where they are shown.

Sections: Plan - Throughput - Worst searches - Starts - Everything
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import make_data
from answers import Parameters, check, current_tag, search_path
from environment import PROJECT, Environment
from load import BenchError, Client, Questions, Run, run_wrk
from peers import FASTAPI, NGINX, OURS, Memory, Server, copy_datasets, fastapi_service, nginx, our_service

# ---- Plan: what the command line chooses ----

SMALL_SIZE = 3  # reviews: reviews.json is then about 2 KB
WORST, START = "worst", "start"  # the names of what is not a row of MEASUREMENTS


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure and how long."""

    environment: Environment
    cache: Path  # keeps generated data between runs
    scratch: Path  # logs and files of this run
    sizes: tuple[int, ...]
    connections: tuple[int, ...]
    rounds: int
    seconds: int  # of one round on one server, at least
    only: frozenset[str]
    say: Callable[[str], None]  # tells the person who waits


def data_directory(plan: Plan, size: int) -> Path:
    """The generated data of `size` reviews, made when this version of make_data has not made it yet."""
    version = sha256(Path(make_data.__file__).read_bytes()).hexdigest()[:12]
    directory = plan.cache / f"data-{version}" / str(size)
    if not directory.exists():
        plan.say(f"generating {size} reviews")
        unfinished = directory.with_name(f"{size}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        make_data.write(size, unfinished)
        unfinished.rename(directory)
    return directory


def file_bytes(data: Path) -> int:
    """The size of both data files."""
    return sum((data / name).stat().st_size for name in ("reviews.json", "insights.json"))


# ---- Throughput: one kind of request, many times, by wrk ----

ALL = (OURS, NGINX, FASTAPI)
DYNAMIC = (OURS, FASTAPI)
WARM_UP_SECONDS = 1
RUN_ANSWERS = 4  # on each connection, at least, unless that takes longer than
LONGEST_SECONDS = 20  # of one round on one server
MOST_BYTES_IN_FLIGHT = 256_000_000  # more copies of a large answer would measure memory
WORDS, SHORTEST_WORD = 1009, 4  # WORDS, DAYS and RATINGS must have no common divisor


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kind of request. In `path`, {day} is a day with about 20 reviews since."""

    key: str
    title: str
    path: str
    servers: tuple[str, ...]
    conditional: bool = False  # sends the current entity tag
    gzip: bool = False
    unseen: bool = False  # a different search every time; `path` is the warm-up
    small: bool = False  # of the smallest data set only


REPEATED_SEARCH = search_path({"query": "back", "min_rating": 4})
MEASUREMENTS = (
    Measurement("304", "304 Not Modified", "/reviews.json", ALL, conditional=True),
    Measurement("small", "small fixed GET", "/reviews.json", ALL, small=True),
    Measurement("reviews", "/reviews.json plain", "/reviews.json", ALL),
    Measurement("reviews-gzip", "/reviews.json gzip", "/reviews.json", ALL, gzip=True),
    Measurement("search-repeated", "repeated search", REPEATED_SEARCH, DYNAMIC),
    Measurement("search-unseen", "unseen search", REPEATED_SEARCH, DYNAMIC, unseen=True),
    Measurement("since", "since, 20 reviews", "/api/reviews/since/{day}", DYNAMIC),
)


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


@dataclass(frozen=True, slots=True)
class Target:
    """A server with the request that it gets."""

    server: Server
    path: str
    headers: dict[str, str]
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
        if connections > 1 and connections * largest > MOST_BYTES_IN_FLIGHT:
            continue
        plan.say(f"{size} reviews, {measurement.title}, {connections} connections")
        asked = questions if measurement.unseen else None
        _round(plan, targets, connections, WARM_UP_SECONDS, asked)
        rounds = [_round(plan, targets, connections, None, asked) for _ in range(plan.rounds)]
        runs = {name: [one[name] for one in rounds] for name in measurement.servers}
        yield Throughput(measurement.key, measurement.title, size, connections, runs)


def _round(
    plan: Plan, targets: Sequence[Target], connections: int, seconds: int | None, questions: Questions | None
) -> dict[str, Run]:
    """One run on each server; when `seconds` is None, long enough for a few answers on each connection."""
    runs = {}
    for target in targets:
        needed = round(RUN_ANSWERS * target.answer_seconds * connections)
        runs[target.server.name] = run_wrk(
            plan.environment.wrk,
            target.server.url + target.path,
            target.headers,
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
    path = measurement.path.format(day=day)
    conditional = {"If-None-Match": current_tag(server, path)} if measurement.conditional else {}
    coding = {"Accept-Encoding": "gzip"} if measurement.gzip else {}
    with Client(server.port) as client:
        plain = client.get(path, conditional)
        seconds = client.get(path, conditional | coding).seconds
    return Target(server, path, conditional | coding, len(plain.body), seconds)


# ---- Worst searches: the time of one request, as one client sees it ----

WORST_REPETITIONS = 15
BAD_QUERIES: dict[str, Parameters] = {
    "no filter": {},
    "one letter, in nearly every text": {"query": "e"},
    "one letter, rare": {"query": "q"},
    "two letters": {"query": "th"},
    "two letters, in no text": {"query": "qz"},
    "the most common word": {"query": "the"},
    "a common phrase": {"query": "and the"},
    "a blank": {"query": " "},
    "a phrase in no text": {"query": "the back and the neck and the hip"},
    "nearly a match, again and again": {"query": "the the the the q"},
    "a letter beyond Latin-1": {"query": "ω"},
    "200 characters": {"query": "back pain " * 20},
    "a doctor": {"mentions_technician": "Dr."},
    "all filters": {
        "query": "e",
        "min_rating": 1,
        "rating": 5,
        "since": "2022-11-17",
        "until": "2026-11-14",
        "mentions_technician": "Dr.",
        "mentions_service": "massage therapy",
    },
}


@dataclass(frozen=True, slots=True)
class Worst:
    """The seconds of one bad query, by server, one a repetition."""

    title: str
    size: int
    seconds: dict[str, list[float]]


def measure_worst(plan: Plan, size: int, servers: dict[str, Server]) -> Iterator[Worst]:
    """Every bad query, many times, the servers in turns, for 100 reviews compressed with gzip."""
    plan.say(f"{size} reviews, bad queries")
    with ExitStack() as stack:
        clients = {name: stack.enter_context(Client(servers[name].port)) for name in DYNAMIC}
        for title, parameters in (BAD_QUERIES | {"a deep offset": {"offset": size - 200}}).items():
            seconds: dict[str, list[float]] = {name: [] for name in DYNAMIC}
            for repetition in range(WORST_REPETITIONS):
                # One review further each time: as much work, and no answer that is remembered.
                offset = int(parameters.get("offset", 0)) + repetition
                path = search_path({**parameters, "limit": 100, "offset": offset})
                for name, client in clients.items():
                    reply = client.get(path, {"Accept-Encoding": "gzip"})
                    if reply.status != 200:
                        raise BenchError(f"{name} answers {reply.status} to {path}")
                    seconds[name].append(reply.seconds)
            yield Worst(title, size, seconds)


# ---- Starts: time and memory ----

SAMPLE = "sample"
MOST_LONG_STARTS = 3  # of a data set that takes seconds to load
LONG_START_REVIEWS = 50_000


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
    questions = _questions(plan)
    results = {name: Start(label, reviews, file_bytes(data), name) for name in DYNAMIC}
    for _ in range(plan.rounds if reviews < LONG_START_REVIEWS else min(plan.rounds, MOST_LONG_STARTS)):
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
    run_wrk(plan.environment.wrk, server.url, {}, 16, 1, server.processor_seconds, questions)
    server.wait_until_idle()


# ---- Everything ----


@dataclass(slots=True)
class Results:
    """All figures of a run."""

    throughput: list[Throughput] = field(default_factory=list)
    worst: list[Worst] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)


def measure(plan: Plan) -> Results:
    """Do what the plan says. Raises BenchError."""
    results = Results()
    if START in plan.only:
        results.starts += measure_starts(plan)
    for size in sorted({SMALL_SIZE, *plan.sizes}):
        wanted = [one for one in MEASUREMENTS if one.key in plan.only and one.small == (size == SMALL_SIZE)]
        worst = WORST in plan.only and size == max(plan.sizes)
        if not wanted and not worst:
            continue
        with _servers(plan, size) as servers:
            day = _check_answers(plan, size, servers)
            questions = _questions(plan)
            for measurement in wanted:
                results.throughput += measure_throughput(plan, measurement, size, servers, questions, day)
            if worst:
                results.worst += measure_worst(plan, size, servers)
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
        yield {OURS: ours, NGINX: static, FASTAPI: fastapi}


def _check_answers(plan: Plan, size: int, servers: dict[str, Server]) -> str:
    """Compare the servers' answers; a day since when there are about 20 reviews."""
    plan.say(f"{size} reviews: comparing answers")
    with Client(servers[OURS].port) as client:
        newest = json.loads(client.get(search_path({"limit": 20})).body)
    day: str = newest["reviews"][-1]["date"][:10]
    searches = list(BAD_QUERIES.values())
    searches += [{"query": word, "min_rating": 4, "since": "2024-02-29"} for word in _words()[:20]]
    check(servers[OURS], servers[NGINX], servers[FASTAPI], searches, day)
    return day


def _questions(plan: Plan) -> Questions:
    days = [(make_data.FIRST_DAY + timedelta(days=day)).isoformat() for day in range(make_data.DAYS)]
    return Questions(plan.scratch, _words(), days)


def _words() -> Sequence[str]:
    """The most frequent words that somebody would search for."""
    return [word for word in make_data.vocabulary() if len(word) >= SHORTEST_WORD][:WORDS]
