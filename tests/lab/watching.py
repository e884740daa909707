"""Waiting for what must come, and what the kernel knows about a process."""

import os
import time
from collections.abc import Callable
from pathlib import Path

# Longer than anything takes on a busy machine; if all is well, much less passes.
PATIENCE_SECONDS = 120
# Short beside the milliseconds that the bench measures.
PAUSE_SECONDS = 0.002


class LabError(Exception):
    """A test, the soak or a measurement cannot continue; the text says why."""


def wait_for(what: str, happened: Callable[[], object]) -> None:
    """Poll until the condition holds. Raises LabError after two minutes."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        if time.monotonic() > give_up_at:
            raise LabError(f"no {what} within {PATIENCE_SECONDS} seconds")
        time.sleep(PAUSE_SECONDS)


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used, in steps of some 10 ms (proc(5))."""
    # The name of the program, in parentheses, may have blanks.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    """Resident memory of a process in megabytes; with "VmHWM" its highest so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    kibibytes = int(status.partition(f"{field}:")[2].split()[0])
    return kibibytes * 1024 / 1e6
