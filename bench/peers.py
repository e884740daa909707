"""The servers: how each is started, watched and stopped. All listen on the loopback address only.

A server is a context manager: leaving the block ends it and whatever it started, after an error and after
Ctrl-C as well.

Sections: Server - Starting and stopping - The four
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environment import BENCH, PROJECT, Environment
from load import CLOCK_TICKS, HOST, BenchError, Client, Request
from mcp_calls import HANDSHAKE, MCP_PATH

OURS, NGINX, FASTAPI, SDK = "reviewsd", "nginx", "FastAPI", "MCP SDK"
DYNAMIC = (OURS, FASTAPI)  # compute answers to GET
START_SECONDS = 180
STOP_SECONDS = 15
IDLE_SECONDS = 120
POLL_SECONDS = 0.002

# ---- Server ----


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a server and its children, now and at its highest."""

    resident_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers."""

    name: str
    port: int
    pid: int
    start_seconds: float  # from starting the process to its first answer

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://{HOST}:{self.port}"

    def memory(self) -> Memory:
        """Its memory; pages that its processes share count once for each."""
        status = [Path(f"/proc/{pid}/status").read_text() for pid in self._pids()]
        return Memory(
            resident_bytes=sum(_kilobytes(text, "VmRSS") for text in status) * 1024,
            peak_bytes=sum(_kilobytes(text, "VmHWM") for text in status) * 1024,
        )

    def wait_until_idle(self) -> None:
        """Wait until it has finished what a load left behind, which else would cost the next server."""
        deadline = time.monotonic() + IDLE_SECONDS
        before = self.processor_seconds()
        while time.monotonic() < deadline:
            time.sleep(0.1)
            now = self.processor_seconds()
            if now - before < 0.02:
                return
            before = now
        raise BenchError(f"{self.name} is still busy {IDLE_SECONDS} seconds after its load")

    def processor_seconds(self) -> float:
        """The processor time it has used so far."""
        # Behind the name in parentheses; utime and stime are fields 14 and 15 of proc(5).
        rows = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self._pids()]
        return sum(int(row[11]) + int(row[12]) for row in rows) / CLOCK_TICKS

    def _pids(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]


def _kilobytes(status: str, name: str) -> int:
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name + ":"))


# ---- Starting and stopping ----


@contextmanager
def _running(
    name: str, command: Sequence[str], port: int, first: Request, scratch: Path, variables: dict[str, str]
) -> Iterator[Server]:
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    with (scratch / f"{name}.log").open("w+b") as log:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=scratch, env=kept | variables, start_new_session=True
        )
        try:
            if fault := _wait_for_answer(process, port, first):
                log.seek(0)
                raise BenchError(f"{name} {fault}\n{log.read()[-2000:].decode(errors='replace')}")
            yield Server(name, port, process.pid, time.perf_counter() - started)
        finally:
            end(process)


def _wait_for_answer(process: subprocess.Popen[bytes], port: int, first: Request) -> str | None:
    """Send `first` until the answer is 200; what went wrong when it never was."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return f"ended with status {process.returncode} instead of serving"
        try:
            with Client(port) as client:
                status = client.send(first).status
        except (OSError, http.client.HTTPException):
            time.sleep(POLL_SECONDS)
            continue
        return None if status == 200 else f"answers {status} to {first.path}"
    return f"did not answer within {START_SECONDS} seconds"


def end(process: subprocess.Popen[Any]) -> None:
    """End the process and, should it not listen, its whole group, which is its own."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


# ---- The four ----

SMALL_SEARCH = Request("/api/reviews/search?limit=1", {})
SMALL_CALL = Request(MCP_PATH, HANDSHAKE.headers, HANDSHAKE.call('{"limit":1}'))


def our_service(
    environment: Environment, data: Path, scratch: Path, *flags: str
) -> AbstractContextManager[Server]:
    """reviewsd as its users start it, with all its defaults unless `flags` say otherwise, and a new state."""
    port = free_port()
    program = [str(environment.service_python), str(PROJECT / "reviewsd.py")]
    places = ["--port", str(port), "--data", str(data), "--state-dir", str(scratch / f"state-{port}")]
    return _running(OURS, [*program, *places, *flags], port, SMALL_SEARCH, scratch, {})


def fastapi_service(environment: Environment, data: Path, scratch: Path) -> AbstractContextManager[Server]:
    """fastapi_service.py under one worker of uvicorn with uvloop and httptools; no log of requests."""
    port = free_port()
    command = _uvicorn(environment.fastapi_python, "fastapi_service:app", port)
    return _running(FASTAPI, command, port, SMALL_SEARCH, scratch, {"REVIEWS_DATA": str(data)})


def mcp_sdk_server(environment: Environment, data: Path, scratch: Path) -> AbstractContextManager[Server]:
    """mcp_sdk_server.py, served in the same way."""
    port = free_port()
    command = _uvicorn(environment.mcp_sdk_python, "mcp_sdk_server:app", port)
    return _running(SDK, command, port, SMALL_CALL, scratch, {"REVIEWS_DATA": str(data)})


def _uvicorn(python: Path, app: str, port: int) -> list[str]:
    command = [str(python), "-m", "uvicorn", "--app-dir", str(BENCH), app]
    options = ["--host", HOST, "--port", str(port), "--loop", "uvloop", "--http", "httptools"]
    return [*command, *options, "--no-access-log", "--log-level", "warning"]


NGINX_CONFIGURATION = """\
{user}
daemon off;
worker_processes 1;
pid {scratch}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000000;
    open_file_cache max=100;
    client_body_temp_path {scratch}/nginx-temp;
    proxy_temp_path {scratch}/nginx-temp;
    fastcgi_temp_path {scratch}/nginx-temp;
    uwsgi_temp_path {scratch}/nginx-temp;
    scgi_temp_path {scratch}/nginx-temp;
    types {{ application/json json; }}
    server {{
        listen {host}:{port};
        root {files};
        gzip_static on;
        gzip_vary on;
        add_header Cache-Control "public, max-age=60";
        add_header Access-Control-Allow-Origin "*";
    }}
}}
"""


def nginx(environment: Environment, files: Path, scratch: Path) -> AbstractContextManager[Server]:
    """One worker of nginx, which serves `files`."""
    port = free_port()
    configuration = scratch / "nginx.conf"
    # A worker of root's nginx would else be a user who may not enter the directories.
    user = "user root;" if os.geteuid() == 0 else ""
    configuration.write_text(
        NGINX_CONFIGURATION.format(user=user, scratch=scratch, host=HOST, port=port, files=files)
    )
    command = [environment.nginx, "-p", str(scratch), "-c", str(configuration)]
    return _running(NGINX, command, port, Request("/reviews.json", {}), scratch, {})


def copy_datasets(service: Server, files: Path) -> None:
    """Write what `service` answers to /reviews.json, plain and gzip, where nginx finds it."""
    files.mkdir(exist_ok=True)
    with Client(service.port) as client:
        (files / "reviews.json").write_bytes(client.get("/reviews.json").body)
        packed = client.get("/reviews.json", {"Accept-Encoding": "gzip"})
    if packed.headers["Content-Encoding"] != "gzip":
        raise BenchError(f"{service.name} does not compress /reviews.json")
    (files / "reviews.json.gz").write_bytes(packed.body)
