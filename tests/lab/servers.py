"""Servers that the soak and the bench start, watch, stop and kill.

They use only command lines, HTTP, signals and /proc.
"""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from lab.services import ROOT, fetch, free_port

HOST = "127.0.0.1"
ENVIRONMENT = {"PATH": f"{os.environ['PATH']}:/usr/sbin"}  # nginx is in /usr/sbin
SMALL_SEARCH = "/api/reviews/search?limit=1"


class LabError(Exception):
    """A soak or a measurement cannot continue; the text says why."""


def wait_for(what: str, happened: Callable[[], bool]) -> None:
    """Poll until the condition holds. Raises LabError after two minutes."""
    deadline = time.monotonic() + 120
    while not happened():
        if time.monotonic() > deadline:
            raise LabError(f"no {what} within two minutes")
        time.sleep(0.002)


class Server(AbstractContextManager["Server"]):
    """A program that has answered once. Leaving its context kills it."""

    def __init__(
        self, name: str, command: list[str], port: int, scratch: Path, **variables: str
    ):
        self.name = name
        self.port = port
        self._log = scratch / f"{name}.log"
        began = time.monotonic()
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=ENVIRONMENT | variables
            )
        self.pid = self.process.pid
        try:
            wait_for(f"answer of {name}", self._answers)
        except BaseException:
            self.kill()
            raise
        self.start_seconds = time.monotonic() - began

    def _answers(self) -> bool:
        self.check()
        with suppress(OSError, http.client.HTTPException):
            return fetch(self, SMALL_SEARCH).status > 0
        return False

    def check(self) -> None:
        """Raises LabError with the end of the server's log if the server has ended."""
        if (status := self.process.poll()) is not None:
            log = self._log.read_text(errors="replace")[-1500:].strip()
            raise LabError(f"{self.name} has ended with status {status}: {log}")

    def __exit__(self, *exception: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> float:
        """Send SIGTERM; the seconds until the server ends. Raises LabError for a status other than 0."""
        began = time.monotonic()
        self.process.terminate()
        if self.process.wait(60):
            self.check()
        return time.monotonic() - began


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used, in steps of some 10 ms (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    """Resident memory of a process, or with "VmHWM" its highest value so far, in megabytes (proc(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024 / 1e6


def daemon_server(
    data: Path, state: Path, *flags: str, port: int = 0, checkout: Path = ROOT
) -> Server:
    """The daemon of a checkout, which reloads only after SIGHUP. Its state directory is below `state`."""
    port = port or free_port()
    command = [
        sys.executable,
        str(checkout / "reviewsd.py"),
        f"--port={port}",
        f"--data={data}",
    ]
    command += [
        f"--state-dir={state / f'state-{port}'}",
        "--reload-interval=86400",
        *flags,
    ]
    return Server("reviewsd", command, port, state)
