"""Load on one server: single requests with their times, and wrk.

Sections: Single requests - Questions - wrk
"""

from __future__ import annotations

import http.client
import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
ANSWER_SECONDS = 120  # the longest wait for one answer
SAMPLE_SECONDS = 180  # and for what many answers are to tell
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
WRK_SCRIPT = Path(__file__).resolve().parent / "wrk.lua"


class BenchError(Exception):
    """The bench cannot go on; the text says why."""


# ---- Single requests ----


@dataclass(frozen=True, slots=True)
class Request:
    """What to send; a POST when there is a body."""

    path: str
    headers: Mapping[str, str]
    body: str = ""

    def asking(self, question: tuple[str, str, int]) -> Request:
        """This one with a word, a day and a rating in the places of %s, %s and %d."""
        if self.body:
            return Request(self.path, self.headers, self.body % question)
        return Request(self.path % question, self.headers)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, and the time from sending the request to having read it all."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    seconds: float


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int):
        self._connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        """The answer to one GET. Raises OSError or http.client.HTTPException."""
        return self._exchange("GET", path, headers or {}, None)

    def send(self, request: Request) -> Reply:
        """The answer to a GET, or to a POST when there is a body. Raises as `get` does."""
        if not request.body:
            return self._exchange("GET", request.path, request.headers, None)
        body = request.body.encode()
        headers = {**request.headers, "Content-Length": str(len(body))}
        return self._exchange("POST", request.path, headers, body)

    def _exchange(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        started = time.perf_counter()
        # Said here, so that http.client does not ask for "identity" on its own.
        self._connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            self._connection.putheader(name, value)
        self._connection.endheaders(body)
        response = self._connection.getresponse()
        body = response.read()
        return Reply(response.status, response.headers, body, time.perf_counter() - started)


SAMPLE_PAUSE_SECONDS = 0.002  # between two GETs, so that asking takes no core of its own


def sample(client: Client, request: Request, finished: Callable[[Reply], bool]) -> list[float]:
    """The seconds of each answer, asked for one after the other until `finished` says so of one.

    Raises BenchError after an error answer and when that takes too long.
    """
    deadline = time.monotonic() + SAMPLE_SECONDS
    latencies = []
    while time.monotonic() < deadline:
        reply = client.send(request)
        if reply.status != 200:
            raise BenchError(f"the service answers {reply.status} to {request.path}")
        latencies.append(reply.seconds)
        if finished(reply):
            return latencies
        time.sleep(SAMPLE_PAUSE_SECONDS)
    raise BenchError(f"what was waited for did not happen within {SAMPLE_SECONDS} seconds")


def percentile(values: Sequence[float], percent: float) -> float:
    """The least value that `percent` of all do not exceed."""
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]


# ---- Questions: searches that nobody asked before ----

RATINGS = 5  # as wrk.lua has it


class Questions:
    """The words and days that wrk.lua makes searches of, and how many of these were asked."""

    def __init__(self, directory: Path, words: Sequence[str], days: Sequence[str]):
        self._words = directory / "words.txt"
        self._days = directory / "days.txt"
        self._words.write_text("\n".join(words))
        self._days.write_text("\n".join(days))
        self._count = prod((len(words), len(days), RATINGS))
        self._asked = 0

    def arguments(self) -> list[str]:
        """What wrk.lua needs to ask from here on."""
        return [str(self._asked), str(self._words), str(self._days)]

    def advance(self, most_asked: int, connections: int) -> None:
        """Leave out what a run has asked. Raises BenchError when questions would come back."""
        self._asked += most_asked + connections + 1  # one in flight on each, and one to try the script
        if self._asked > self._count * 0.9:
            raise BenchError(f"nearly all of the {self._count} searches have been asked: shorten the rounds")


# ---- wrk ----


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one run of wrk. The percentiles mean nothing when `requests` is 0."""

    requests: int
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    wrk_share: float  # processor time as a share of one core
    server_share: float
    others_share: float  # of everything else on the machine; interrupts are nobody's


def run_wrk(
    wrk: str,
    url: str,
    request: Request,
    connections: int,
    seconds: int,
    server_seconds: Callable[[], float],
    questions: Questions | None = None,
) -> Run:
    """One run with one thread; `server_seconds` tells the server's processor time so far.

    `url` is the server's address. With `questions` the request has places for them. Raises BenchError when an
    answer was an error or did not come.
    """
    command = [wrk, "-t1", f"-c{connections}", f"-d{seconds}s", f"--timeout={ANSWER_SECONDS}s"]
    for name, value in request.headers.items():
        command += ["-H", f"{name}: {value}"]
    command += ["-s", str(WRK_SCRIPT), url + request.path, "--"]
    command += ["POST", request.body] if request.body else ["GET", request.path]
    if questions:
        command += questions.arguments()
    before = (_children_seconds(), server_seconds(), _machine_seconds())
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + ANSWER_SECONDS)
    after = (_children_seconds(), server_seconds(), _machine_seconds())
    by_wrk, by_server, by_all = (end - start for start, end in zip(before, after, strict=True))
    line = next((line for line in done.stdout.splitlines() if line.startswith("figures ")), None)
    if line is None:
        raise BenchError(f"wrk failed on {url}: {done.stderr or done.stdout}")
    figures = {name: float(value) for name, value in (pair.split("=") for pair in line.split()[1:])}
    if figures["refused"] or figures["broken"]:
        raise BenchError(
            f"wrk on {url}: {figures['refused']:.0f} error answers, {figures['broken']:.0f} lost"
        )
    return Run(
        requests=int(figures["requests"]),
        requests_per_second=figures["requests"] / figures["seconds"],
        p50_ms=figures["p50_ms"],
        p99_ms=figures["p99_ms"],
        p999_ms=figures["p999_ms"],
        wrk_share=by_wrk / figures["seconds"],
        server_share=by_server / figures["seconds"],
        others_share=max(0, by_all - by_wrk - by_server) / figures["seconds"],
    )


def _children_seconds() -> float:
    """Processor time of all children that have ended: between two calls, of wrk alone."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _machine_seconds() -> float:
    """Processor time of all processes, and what other machines took from ours (proc(5), /proc/stat)."""
    user, nice, system, _idle, _wait, _irq, _softirq, steal = (
        int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + steal) / CLOCK_TICKS
