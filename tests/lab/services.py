"""Services for tests: the daemon as users start it, and its application in this process.

Context managers yield the address of a running service and leave nothing behind.
"""

import http.client
import io
import itertools
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote_to_bytes

from reviewslib.web.app import Application

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "data"
STOP_SECONDS = 30
Process = subprocess.Popen[str]
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# Below the ports of outgoing connections (ip(7)).
_PORTS = itertools.count(10_000 + WORKER * 2_000 + os.getpid() % 1_000)
_TAKEN: list[socket.socket] = []


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service listens, the process that serves there, and the base URL that it was told."""

    port: int
    pid: int
    base_url: str


@dataclass(frozen=True, slots=True)
class Response:
    """A response. Header names are lower-case; values of repeated headers are joined by commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float = 0  # from sending the request to having read the response


def free_port() -> int:
    """A port for a program that binds it later, which no outgoing connection and no other run takes.

    A socket keeps the port until this process ends. It does not listen, so servers, which set SO_REUSEADDR,
    can bind the port as well (socket(7)).
    """
    while True:
        port = next(_PORTS)
        taken = socket.socket()
        try:
            taken.bind(("127.0.0.1", port))
        except OSError:
            taken.close()
        else:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _TAKEN.append(taken)
            return port


def fetch(
    address: Address,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    **headers: str,
) -> Response:
    """One request on a connection of its own; `if_none_match` becomes If-None-Match."""
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=60)
    try:
        fields = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.connect()
        began = time.perf_counter()
        connection.request(method, path, body, fields)
        answer = connection.getresponse()
        joined = {
            name.lower(): ", ".join(answer.headers.get_all(name, []))
            for name in answer.headers
        }
        return Response(
            answer.status, joined, answer.read(), time.perf_counter() - began
        )
    finally:
        connection.close()


def daemon_command(*arguments: str) -> list[str]:
    """The command line of the daemon under this interpreter."""
    return [sys.executable, str(ROOT / "reviewsd.py"), *arguments]


def environment(**variables: str) -> dict[str, str]:
    """Our environment with these variables, and without settings of the daemon."""
    return {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("REVIEWSD_")
    } | variables


def run_daemon(
    *arguments: str, line: Sequence[str] = (), cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the daemon, or the command `line`, with `arguments` until it ends."""
    command = [*(line or daemon_command()), *arguments]
    environ = environment(**variables)
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environ, cwd=cwd
    )


@contextmanager
def daemon(
    *arguments: str,
    data: Path = SAMPLE,
    base_url: str = "",
    port: int = 0,
    state: Path | None = None,
) -> Iterator[Address]:
    """`python reviewsd.py`, by default on a free port and with a state directory of its own.

    Stopped with SIGTERM, which must end it with status 0.
    """
    named = ["--base-url", base_url] if base_url else []
    with TemporaryDirectory() as temporary:
        where = [
            "--port",
            str(port),
            "--data",
            str(data),
            "--state-dir",
            str(state or temporary),
        ]
        with started(daemon_command(*where, *named, *arguments), base_url) as address:
            yield address


@contextmanager
def started(
    command: list[str], base_url: str = "", **variables: str
) -> Iterator[Address]:
    """A server that logs where it listens. Stopped with SIGTERM, which must end it with status 0."""
    with running(command, base_url, **variables) as (address, process):
        log = threading.Thread(
            target=process.stderr.read if process.stderr else list, daemon=True
        )
        log.start()  # a full pipe would stop the daemon
        yield address
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0
        log.join()


def running_daemon(
    *arguments: str, **variables: str
) -> AbstractContextManager[tuple[Address, Process]]:
    """The daemon without a hub on a free port. The test stops it."""
    return running(daemon_command("--port", "0", "--no-hub", *arguments), **variables)


@contextmanager
def running(
    command: list[str], base_url: str = "", **variables: str
) -> Iterator[tuple[Address, Process]]:
    """A server that logs where it listens; the rest of its log is not read. Killed at the end.

    Fails with the log if it does not listen. The port of a Unix socket is 0.
    """
    with subprocess.Popen(
        command, stderr=PIPE, text=True, env=environment(**variables)
    ) as process:
        assert process.stderr
        try:
            match = None
            log = ""
            while not match and (line := process.stderr.readline()):
                match = re.search(
                    r"listens on (?:http://127\.0\.0\.1:([0-9]+)|/)", line
                )
                log = log + line
            assert match, f"the server did not start:\n{log}"
            port = int(match[1] or 0)
            yield (
                Address(port, process.pid, base_url or f"http://127.0.0.1:{port}"),
                process,
            )
        finally:
            process.kill()


def call(
    application: Application,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    **headers: str,
) -> Response:
    """One request to a WSGI application in this process, with the arguments of `fetch`."""
    path, _, query = path.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "QUERY_STRING": query,
        "HTTP_HOST": "a",
    }
    environ |= {
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    environ |= {
        "wsgi.input": io.BytesIO(body or b""),
        "CONTENT_LENGTH": str(len(body or b"")),
    }
    for name, text in headers.items():
        key = name.upper()
        environ[key if key.startswith("CONTENT_") else f"HTTP_{key}"] = text
    started: list[Any] = []
    content = b"".join(application(environ, lambda *head: started.extend(head)))
    return Response(
        int(started[0][:3]),
        {name.lower(): value for name, value in started[1]},
        content,
    )
