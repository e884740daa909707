"""The one way to start a service, and to ask it: as a process, or in this process.

Sections: Ports - Services - The daemon - Requests.
"""

import http.client
import io
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from lab.watching import LabError, wait_for
from reviewslib.web.app import Application

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "data"
HOST = "127.0.0.1"
STOP_SECONDS = 30

# ---- Ports ----

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# Below the ports of outgoing connections (ip(7)).
_PORTS = itertools.count(10_000 + WORKER * 2_000 + os.getpid() % 1_000)
# Open as long as this process lives.
_TAKEN: list[socket.socket] = []


def free_port() -> int:
    """A port for a program that binds it later.

    No outgoing connection and no other run takes it: a socket keeps it until this
    process ends. It does not listen, so servers, which set SO_REUSEADDR, can bind the
    port as well (socket(7)).
    """
    while True:
        port = next(_PORTS)
        taken = socket.socket()
        try:
            taken.bind((HOST, port))
        except OSError:
            taken.close()
        else:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _TAKEN.append(taken)
            return port


# ---- Services ----

LISTENS = re.compile(r"listens on (?:http://127\.0\.0\.1:([0-9]+)|/)")
# What one read returns at most; no log of a test is as long.
MAX_LOG_BYTES = 100_000_000


class Service(AbstractContextManager["Service"]):
    """A server program that is ready. Leaving its context kills it.

    A program that is told its port is ready when it answers a request. Any other is
    ready when it logs where it listens; the port of a Unix socket is 0. Raises LabError
    with the log if the program ends before.
    """

    def __init__(
        self,
        command: Sequence[str],
        port: int = 0,
        base_url: str = "",
        name: str = "the server",
        **variables: str,
    ):
        self.name = name
        self.port = port
        # Closed by `__exit__`, as the process ends there.
        self._log = TemporaryFile()  # noqa: SIM115
        began = time.monotonic()
        self.process = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, env=environment(**variables)
        )
        self.pid = self.process.pid
        try:
            wait_for("first answer", self._answers if port else self._listens)
        except BaseException:
            self.__exit__()
            raise
        self.start_seconds = time.monotonic() - began
        self.base_url = base_url or f"http://{HOST}:{self.port}"

    def __exit__(self, *exception: object) -> None:
        self.kill()
        self._log.close()

    def _answers(self) -> bool:
        self.check()
        with suppress(OSError, http.client.HTTPException):
            return fetch(self, "/robots.txt").status > 0
        return False

    def _listens(self) -> bool:
        self.check()
        said = LISTENS.search(self.log())
        if said:
            self.port = int(said[1] or 0)
        return said is not None

    def log(self) -> str:
        """All that the program has written."""
        written = os.pread(self._log.fileno(), MAX_LOG_BYTES, 0)
        return written.decode(errors="replace")

    def check(self) -> None:
        """Raises LabError with the end of the log if the program has ended."""
        status = self.process.poll()
        if status is not None:
            end = self.log()[-1500:].strip()
            raise LabError(f"{self.name} has ended with status {status}: {end}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> float:
        """Send a signal; the seconds until the program has ended, with status 0."""
        began = time.monotonic()
        self.process.send_signal(number)
        if self.process.wait(STOP_SECONDS) != 0:
            self.check()
        return time.monotonic() - began

    def kill(self) -> None:
        """Kill the program with SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextmanager
def started(
    command: Sequence[str], port: int = 0, base_url: str = "", **variables: str
) -> Iterator[Service]:
    """A server that is stopped with SIGTERM, which must end it with status 0."""
    with Service(command, port, base_url, **variables) as service:
        yield service
        service.stop()


# ---- The daemon ----


def daemon_command(*arguments: str, checkout: Path = ROOT) -> list[str]:
    """The command line of the daemon of a checkout under this interpreter."""
    return [sys.executable, str(checkout / "reviewsd.py"), *arguments]


def environment(**variables: str) -> dict[str, str]:
    """Our environment with these variables, and without settings of the daemon."""
    ours = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("REVIEWSD_")
    }
    return ours | variables


def run_daemon(
    *arguments: str, line: Sequence[str] = (), cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the daemon, or the command `line`, with `arguments` until it ends."""
    return subprocess.run(
        [*(line or daemon_command()), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(**variables),
        cwd=cwd,
    )


@contextmanager
def daemon(
    *arguments: str,
    data: Path = SAMPLE,
    base_url: str = "",
    port: int = 0,
    state: Path | None = None,
) -> Iterator[Service]:
    """The daemon, by default on a free port and with a state directory of its own.

    Stopped with SIGTERM, which must end it with status 0.
    """
    with TemporaryDirectory() as temporary:
        flags = [f"--port={port}", f"--data={data}"]
        flags.append(f"--state-dir={state or temporary}")
        if base_url:
            flags.append(f"--base-url={base_url}")
        with started(daemon_command(*flags, *arguments), port, base_url) as service:
            yield service


def running_daemon(*arguments: str, **variables: str) -> Service:
    """The daemon without a hub on a free port. The test stops it."""
    return Service(daemon_command("--port", "0", "--no-hub", *arguments), **variables)


# ---- Requests ----


class Listening(Protocol):
    """What can be asked: anything that has a port on this machine."""

    port: int


@dataclass(frozen=True, slots=True)
class Address:
    """A port on which somebody else's program listens."""

    port: int


@dataclass(frozen=True, slots=True)
class Response:
    """A response.

    Header names are lower-case; values of repeated headers are joined by commas.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    # From sending the request to having read the response.
    seconds: float = 0


def fetch(
    service: Listening,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    **headers: str,
) -> Response:
    """One request on a connection of its own; `if_none_match` becomes If-None-Match."""
    connection = http.client.HTTPConnection(HOST, service.port, timeout=60)
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    try:
        connection.connect()
        began = time.perf_counter()
        connection.request(method, path, body, fields)
        answer = connection.getresponse()
        content = answer.read()
        seconds = time.perf_counter() - began
    finally:
        connection.close()
    joined = {
        name.lower(): ", ".join(answer.headers.get_all(name, []))
        for name in answer.headers
    }
    return Response(answer.status, joined, content, seconds)


def call(
    application: Application,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    **headers: str,
) -> Response:
    """One request to a WSGI application in this process; arguments as of `fetch`."""
    environ = environ_of(path, method, body or b"", headers)
    started: list[Any] = []
    answer = b"".join(application(environ, lambda *head: started.extend(head)))
    status, fields = started
    received = {name.lower(): value for name, value in fields}
    return Response(int(status[:3]), received, answer)


def environ_of(
    path: str, method: str, body: bytes, headers: Mapping[str, str]
) -> dict[str, Any]:
    """A request as servers hand it to a WSGI application (PEP 3333)."""
    path, _, query = path.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        # The bytes of the path, one character each.
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "a",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    for name, text in headers.items():
        key = name.upper()
        if not key.startswith("CONTENT_"):
            key = f"HTTP_{key}"
        environ[key] = text
    return environ
