"""What rows have in common: figures, load, latencies beside load, and a change of data.

Sections: figures - load - latencies - changes.
"""

import http.client
import math
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import make_data
from contenders import BENCH
from lab.services import HOST, Service, fetch
from lab.watching import LabError, wait_for

# ---- Figures ----


class Figure(NamedTuple):
    """A measured number and its budget: a lower bound, an upper bound, or none."""

    what: str
    value: float
    unit: str
    at_most: float = math.inf
    at_least: float = 0


def p99(values: list[float]) -> float:
    """The smallest of the values that 99 of 100 do not exceed."""
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


# ---- Load ----

# Both numbers are primes that divide neither the other nor days and ratings of wrk.lua,
# so that all combinations come before one is repeated.
SEARCH_WORDS = make_data.WORDS[:113]
SUBJECT_KEYS = make_data.subject_keys()[:47]
# As many as a browser or a proxy with some visitors keeps.
KEPT_CONNECTIONS = 16


def rate(
    server: Service,
    seconds: int,
    path: str = "",
    *,
    headers: Mapping[str, str] | None = None,
    template: str = "",
    words: list[str] = SEARCH_WORDS,
    connections: int = KEPT_CONNECTIONS,
) -> float:
    """Requests a second on kept connections, of one path or of a template.

    With a template for wrk.lua every request is a new one. Raises LabError if an answer
    was an error or did not come.
    """
    # One thread: the daemon needs the other processor.
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    command += ["-s", str(BENCH / "wrk.lua")]
    for name, value in (headers or {}).items():
        command += ["-H", f"{name.replace('_', '-')}: {value}"]
    command += [f"http://{HOST}:{server.port}{path}", "--"]
    if template:
        command += [template, ",".join(words)]
    output = subprocess.run(command, capture_output=True, text=True).stdout
    figures = output.rpartition("figures ")[2].split()
    if figures[1:] != ["0"]:
        raise LabError(f"wrk on {server.name}: {output[-500:]}")
    return float(figures[0])


# ---- Latencies ----

# A document that is ready: whoever waits for it waits for somebody else's request.
PREPARED = "/robots.txt"
# One that is computed, from the newest review alone.
SMALL_SEARCH = "/api/reviews/search?limit=1"
# Some 300 requests a second: enough for a p99 of two seconds, and little load.
PROBE_PAUSE_SECONDS = 0.003


@contextmanager
def probe(server: Service, path: str = SMALL_SEARCH) -> Iterator[list[float]]:
    """Milliseconds of GETs while the block runs, each on a new connection.

    They are infinite for a failure.
    """
    latencies: list[float] = []
    ended = threading.Event()

    def keep_asking() -> None:
        while not latencies or not ended.wait(PROBE_PAUSE_SECONDS):
            latencies.append(_milliseconds(server, path))

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        yield latencies
    finally:
        ended.set()
        thread.join()


def _milliseconds(server: Service, path: str) -> float:
    began = time.perf_counter()
    with suppress(OSError, http.client.HTTPException):
        if fetch(server, path).status == 200:
            return (time.perf_counter() - began) * 1000
    return math.inf


# ---- Changes ----


def change(server: Service, data: Path) -> float:
    """Rename the business and send SIGHUP; the seconds until the name is served."""

    def tag() -> str:
        return fetch(server, "/reviews.json", "HEAD").headers["etag"]

    before = tag()
    draft = data / "draft"
    content = (data / "reviews.json").read_bytes()
    draft.write_bytes(content.replace(b'"name": "', b'"name": "New ', 1))
    draft.rename(data / "reviews.json")
    began = time.monotonic()
    server.process.send_signal(signal.SIGHUP)
    wait_for("reload", lambda: tag() != before)
    return time.monotonic() - began
