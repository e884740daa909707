"""Load on one server: wrk, small GETs beside something else, and connections that nobody reads from."""

import http.client
import math
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

import make_data
from servers import BENCH, HOST, SMALL_SEARCH, BenchError, Server, ask, program

CONNECTIONS = 16
WORDS = ",".join([word for word in make_data.WORDS if word.isascii()][:113])  # a prime: wrk.lua says why
FIRST_QUESTION = 200_000  # more than the run that does not count can ask
PROBE_PAUSE_SECONDS = 0.003


class Rate(NamedTuple):
    """What a run of wrk found."""

    request: str
    server: str
    per_second: float
    p50_ms: float
    p99_ms: float

    @property
    def what(self) -> str:
        """Its name in the results."""
        return f"{self.request}, {self.server}"


def rate(
    request: str, server: Server, seconds: int, path: str, headers: Mapping[str, str], unseen: str = ""
) -> Rate:
    """Requests on keep-alive connections, after a second that does not count; `request` names them.

    With `unseen`, a template of a path or of a body that is posted to `path`, each is another search. Raises
    BenchError when an answer was an error or did not come.
    """
    command = [program("wrk"), "-t1", f"-c{CONNECTIONS}", "-s", str(BENCH / "wrk.lua")]
    for header in headers.items():
        command += ["-H", ": ".join(header)]
    for duration, question in ((1, 0), (seconds, FIRST_QUESTION)):
        run = [*command, f"-d{duration}s", f"http://{HOST}:{server.port}{path}", "--"]
        if unseen:
            run += ["POST" if unseen.startswith("{") else "GET", unseen, str(question), WORDS]
        output = subprocess.run(run, capture_output=True, text=True, timeout=seconds + 60).stdout
        figures = output.rpartition("figures ")[2].split()
        if len(figures) != 4 or figures[3] != "0":
            raise BenchError(f"wrk on {server.name}, {request}: {output[-500:]}")
    return Rate(request, server.name, *map(float, figures[:3]))


@contextmanager
def probe(server: Server) -> Iterator[list[float]]:
    """Milliseconds of small GETs while the block runs, each on a new connection; infinite for a failure."""
    latencies: list[float] = []
    ended = threading.Event()

    def keep_asking() -> None:
        while not latencies or not ended.wait(PROBE_PAUSE_SECONDS):
            began, status = time.perf_counter(), 0
            with suppress(OSError, http.client.HTTPException):
                status = ask(server.port, SMALL_SEARCH).status
            latencies.append((time.perf_counter() - began) * 1000 if status == 200 else math.inf)

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        yield latencies
    finally:
        ended.set()
        thread.join()


def p99(values: list[float]) -> float:
    """The least value that 99 of 100 do not exceed."""
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


@contextmanager
def connections(server: Server, sent: Iterable[bytes], pause_seconds: float = 0.001) -> Iterator[None]:
    """One connection for each element of `sent`, which is all that it sends; none is ever read from."""
    with ExitStack() as stack:
        for number, content in enumerate(sent):
            one = stack.enter_context(socket.socket())
            one.settimeout(10)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.bind((f"127.0.1.{1 + number // 1000}", 0))  # one address alone would run out of ports
            one.connect((HOST, server.port))
            with suppress(ConnectionError):  # a server may refuse at once
                one.sendall(content)
            time.sleep(pause_seconds)
        yield
