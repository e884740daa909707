"""The servers that the bench drives: how each is started, asked, watched and stopped.

Nothing here imports the service: it is known by its command line, HTTP, signals and /proc.

Sections: Server - Lab - What servers need
"""

import getpass
import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from email.message import Message
from pathlib import Path
from typing import NamedTuple, Self

import make_data

BENCH = Path(__file__).resolve().parent
PROJECT = BENCH.parent
HOST = "127.0.0.1"
SMALL_SEARCH = "/api/reviews/search?limit=1"
MCP_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
START_SECONDS, STOP_SECONDS, ANSWER_SECONDS = 120, 60, 60


class BenchError(Exception):
    """What was to be measured cannot be measured; the text says why."""


# ---- Server ----


Headers = dict[str, str] | None


class Answer(NamedTuple):
    """What came back, and the time from sending the request to having read it all."""

    status: int
    headers: Message
    body: bytes
    seconds: float


def ask(
    port: int, path: str, body: bytes | None = None, headers: Headers = None, method: str = "GET"
) -> Answer:
    """The answer to one request on a connection of its own. Raises OSError or http.client.HTTPException."""
    with closing(http.client.HTTPConnection(HOST, port, timeout=ANSWER_SECONDS)) as connection:
        connection.connect()
        began = time.perf_counter()
        connection.request("POST" if body else method, path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        return Answer(response.status, response.headers, content, time.perf_counter() - began)


class Server:
    """A program that has answered once. Leaving its context ends it; raises BenchError if it had died."""

    def __init__(self, name: str, command: list[str], port: int, scratch: Path, **variables: str):
        self.name, self.port, self._ended = name, port, False
        self._log = scratch / f"{name}.log"
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        began = time.monotonic()
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=scratch, stdout=log, stderr=log, env=kept | variables, start_new_session=True
            )
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > began + START_SECONDS:
                self.kill()
                raise self.fault("does not start")
            time.sleep(0.002)
        self.start_seconds = time.monotonic() - began

    def _answers(self) -> bool:
        try:
            return ask(self.port, SMALL_SEARCH).status > 0
        except (OSError, http.client.HTTPException):
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        died = not self._ended and self.process.poll() is not None
        self.kill()
        if died:
            raise self.fault("died")

    def fault(self, what: str) -> BenchError:
        """An error with its exit status and the end of its log."""
        log = self._log.read_text(errors="replace")[-1500:].strip()
        return BenchError(f"{self.name} {what} (status {self.process.poll()}): {log}")

    def kill(self) -> None:
        """End it and whatever it started, as a power cut would."""
        self._ended = True
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> float:
        """Send SIGTERM; the seconds until it has ended. Raises BenchError unless that is with status 0."""
        self._ended, began = True, time.monotonic()
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        if self.process.poll() != 0:
            raise self.fault("does not stop")
        return time.monotonic() - began

    def memory_mb(self, field: str = "VmRSS") -> float:
        """Resident memory, or with "VmHWM" the most of it so far, in millions of bytes (proc(5))."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        if field not in status:
            raise self.fault("died")
        return int(status.partition(f"{field}:")[2].split()[0]) * 1024 / 1e6


def wait_for(what: str, happened: Callable[[], bool], seconds: float = 120) -> None:
    """Look again and again. Raises BenchError when it does not happen in time."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            raise BenchError(f"no {what} within {seconds} seconds")
        time.sleep(0.002)


# ---- Lab ----

PEERS = {"FastAPI": "peers:fastapi_app", "MCP SDK": "peers:sdk_app"}
PEERS_REQUIREMENTS = ("fastapi==0.165.0", "uvicorn[standard]==0.54.0", "mcp==2.3.0")
NGINX_CONFIGURATION = """
user {user};
daemon off;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; keepalive_requests 100000000; open_file_cache max=100;
    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
    server {{ listen {host}:{port}; root {files}; add_header Cache-Control "public, max-age=60"; }}
}}
"""


class Lab(NamedTuple):
    """A checkout with a reviewsd.py, the Python that runs it, and directories for one round."""

    checkout: Path
    python: str
    scratch: Path  # of this round alone
    cache: Path  # outlives the run
    seconds: int = 2  # of a run of wrk

    def data(self, size: int) -> Path:
        """A copy of the generated data of `size` reviews, or for 0 of the sample, to use and to change."""
        version = zlib.crc32(Path(make_data.__file__).read_bytes())
        original = self.cache / f"data-{version:x}-{size}" if size else PROJECT / "data"
        if not original.exists():
            unfinished = Path(tempfile.mkdtemp(dir=self.cache))
            make_data.write(size, unfinished)
            unfinished.rename(original)
        return Path(shutil.copytree(original, self.scratch / f"data-{size}", dirs_exist_ok=True))

    def daemon(self, data: Path, *flags: str, port: int = 0, group: Path | None = None) -> Server:
        """The daemon, which looks at its files only after SIGHUP; 0 picks a port, by which state is kept."""
        port = port or free_port()
        command = [self.python, str(self.checkout / "reviewsd.py"), "--port", str(port), "--data", str(data)]
        command += ["--state-dir", str(self.scratch / f"state-{port}"), "--reload-interval", "86400", *flags]
        if group:
            command = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *command]
        return Server("reviewsd", command, port, self.scratch)

    def peer(self, name: str, data: Path) -> Server:
        """An application of peers.py under one worker of uvicorn with uvloop and httptools, no access log."""
        port, application = free_port(), PEERS[name]
        command = [peers_python(self.cache), "-m", "uvicorn", "--app-dir", str(BENCH), application]
        command += ["--port", str(port), "--loop", "uvloop", "--http", "httptools", "--no-access-log"]
        return Server(name, command, port, self.scratch, REVIEWS_DATA=str(data))

    def nginx(self, files: Path) -> Server:
        """One worker of nginx, which serves the directory `files`."""
        port, path = free_port(), self.scratch / "nginx.conf"
        path.write_text(NGINX_CONFIGURATION.format(user=getpass.getuser(), host=HOST, port=port, files=files))
        command = [program("nginx"), "-p", str(self.scratch), "-c", str(path)]
        return Server("nginx", command, port, self.scratch)


# ---- What servers need ----


def free_port() -> int:
    """A port that nobody listens on and that no outgoing connection takes (ip(7), ip_local_port_range)."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, random.randint(10_000, 32_000)))
            return int(probe.getsockname()[1])


@contextmanager
def control_group(limit_bytes: int) -> Iterator[Path | None]:
    """A control group with this limit of memory while the block runs; None where none can be made."""
    version_1 = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")  # leaves out the buffers of sockets
    limit = version_1 if version_1.exists() else Path("/sys/fs/cgroup/memory.max")
    group, made = limit.parent / f"reviewsd-bench-{os.getpid()}", False
    with suppress(OSError):
        group.mkdir()
        with (group / limit.name).open("r+") as file:
            file.write(str(limit_bytes))
        made = True
    try:
        yield group if made else None
    finally:
        with suppress(OSError):
            group.rmdir()


def peers_python(cache: Path) -> str:
    """The Python of an environment for peers.py, made on first use. Raises BenchError when that fails."""
    directory, wanted = cache / "venv-peers", "\n".join((sys.version, *PEERS_REQUIREMENTS))
    python, stamp = directory / "bin" / "python", directory / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        make = [sys.executable, "-m", "venv", "--clear", str(directory)]
        for command in (make, [str(python), "-m", "pip", "install", *PEERS_REQUIREMENTS]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise BenchError(f"{' '.join(command)}: {done.stderr[-1500:]}")
        stamp.write_text(wanted)
    return str(python)


def program(name: str) -> str:
    """The path of a program. Raises BenchError when it is not installed."""
    if found := shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin"):
        return found
    raise BenchError(f"{name} is not installed; on Debian: apt-get install {name}")
