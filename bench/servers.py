"""The servers that the bench drives: how each is started, asked, watched and stopped.

Nothing here imports the service: it is known by its command line, HTTP, signals and /proc.
"""

import http.client
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import make_data

BENCH = Path(__file__).resolve().parent
PROJECT = BENCH.parent
HOST = "127.0.0.1"
PORTS = itertools.count(10_000 + os.getpid() % 20_000)  # below those of outgoing connections (ip(7))
ENVIRONMENT = {"PATH": f"{os.environ['PATH']}:/usr/sbin"}  # nginx is in /usr/sbin
SMALL_SEARCH = "/api/reviews/search?limit=1"
MCP_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class BenchError(Exception):
    """What was to be measured cannot be measured; the text says why."""


class Answer(NamedTuple):
    """What came back, and the time from sending the request to having read it all."""

    status: int
    headers: Message
    body: bytes
    seconds: float


def ask(
    port: int, path: str, body: bytes = b"", headers: dict[str, str] | None = None, method: str = "GET"
) -> Answer:
    """The answer to one request on a connection of its own. Raises OSError or http.client.HTTPException."""
    with closing(http.client.HTTPConnection(HOST, port, timeout=60)) as connection:
        connection.connect()
        began = time.perf_counter()
        connection.request("POST" if body else method, path, body or None, headers or {})
        response = connection.getresponse()
        content = response.read()
        return Answer(response.status, response.headers, content, time.perf_counter() - began)


def wait_for(what: str, happened: Callable[[], bool]) -> None:
    """Look again and again. Raises BenchError when it does not happen within two minutes."""
    deadline = time.monotonic() + 120
    while not happened():
        if time.monotonic() > deadline:
            raise BenchError(f"no {what} within two minutes")
        time.sleep(0.002)


class Server(AbstractContextManager["Server"]):
    """A program that has answered once. Leaving its context kills it."""

    def __init__(self, name: str, command: list[str], port: int, scratch: Path, **variables: str):
        self.name, self.port, self._log = name, port, scratch / f"{name}.log"
        began = time.monotonic()
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=ENVIRONMENT | variables)
        try:
            wait_for(f"answer of {name}", self._answers)
        except BaseException:
            self.kill()
            raise
        self.start_seconds = time.monotonic() - began

    def _answers(self) -> bool:
        self.check()
        with suppress(OSError, http.client.HTTPException):
            return ask(self.port, SMALL_SEARCH).status > 0
        return False

    def check(self) -> None:
        """Raises BenchError with the end of its log when it has ended."""
        if (status := self.process.poll()) is not None:
            log = self._log.read_text(errors="replace")[-1500:].strip()
            raise BenchError(f"{self.name} has ended with status {status}: {log}")

    def __exit__(self, *exception: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> float:
        """Send SIGTERM; the seconds until it has ended. Raises BenchError when that is not with status 0."""
        began = time.monotonic()
        self.process.terminate()
        if self.process.wait(60):
            self.check()
        return time.monotonic() - began

    def processor_seconds(self) -> float:
        """The processor time that it has taken, in steps of some 10 ms (proc(5))."""
        self.check()
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, field: str = "VmRSS") -> float:
        """Resident memory, or with "VmHWM" the most of it so far, in millions of bytes (proc(5))."""
        self.check()
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(f"{field}:")[2].split()[0]) * 1024 / 1e6


PEERS_REQUIREMENTS = ("fastapi==0.165.0", "uvicorn[standard]==0.54.0", "mcp==2.3.0")
NGINX_CONFIGURATION = """
daemon off; master_process off; pid nginx.pid; error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; keepalive_requests 100000000; open_file_cache max=100;
    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
    server {{ listen {host}:{port}; root {files}; add_header Cache-Control "public, max-age=60"; }}
}}
"""


class Lab(NamedTuple):
    """A checkout with a reviewsd.py, and directories for one round."""

    checkout: Path
    scratch: Path  # of this round alone
    cache: Path  # outlives the run
    seconds: int = 2  # of a run of wrk

    def data(self, size: int) -> Path:
        """Generated data of `size` reviews, or for 0 a copy of the sample, to use and to change."""
        directory = self.scratch / f"data-{size}"
        if size:
            make_data.write(size, directory)
        else:
            shutil.copytree(PROJECT / "data", directory)
        return directory

    def daemon(self, data: Path, *flags: str, port: int = 0) -> Server:
        """The daemon, which reloads only after SIGHUP; 0 picks a port, by which state is kept."""
        port = port or next(PORTS)
        command = [sys.executable, str(self.checkout / "reviewsd.py"), f"--port={port}", f"--data={data}"]
        command += [f"--state-dir={self.scratch / f'state-{port}'}", "--reload-interval=86400", *flags]
        return Server("reviewsd", command, port, self.scratch)

    def peer(self, application: str, data: Path) -> Server:
        """An application of peers.py under one worker of uvicorn, in an environment made on first use."""
        python, port = self.cache / "venv-peers" / "bin" / "python", next(PORTS)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS_REQUIREMENTS], check=True)
        command = [str(python), "-m", "uvicorn", "--app-dir", str(BENCH), f"peers:{application}"]
        command += [f"--port={port}", "--loop=uvloop", "--http=httptools", "--no-access-log"]
        return Server(application, command, port, self.scratch, REVIEWS_DATA=str(data))

    def nginx(self, files: Path) -> Server:
        """One process of nginx, which serves the directory `files`."""
        port, path = next(PORTS), self.scratch / "nginx.conf"
        path.write_text(NGINX_CONFIGURATION.format(host=HOST, port=port, files=files))
        return Server("nginx", ["nginx", "-p", str(self.scratch), "-c", str(path)], port, self.scratch)
