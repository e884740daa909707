"""Reload: the current snapshot, and the thread that replaces it when the data files change.

After a failed load the previous snapshot stays. This module reads files and the clock; it knows no request
and no server; a service manager and a hub are passed in as callables.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reviewslib.dataset.contract import BadData, printable
from reviewslib.dataset.reviews import Dataset
from reviewslib.files import SETTLE_SECONDS, Stamp
from reviewslib.links import ServiceUrls
from reviewslib.web.figures import count_text
from reviewslib.web.snapshot import (
    ProgramFiles,
    Snapshot,
    build_snapshot,
    file_stamps,
    read_files,
)

log = logging.getLogger("reviewsd")

ABSENT_POLLS = 3  # polls before a missing file counts as removed: many programs replace a file by removing it


class Reloader:
    """Keeps `snapshot` current. All methods but `wake` run on one thread.

    `notify` is called with states for a service manager in the form of sd_notify(3), `publish` with every new
    snapshot. A test may replace `sleep`. `error` has the time and the faults of the last reload; it is None
    if that reload succeeded.
    """

    def __init__(self, program: ProgramFiles, directory: Path, urls: ServiceUrls):
        """Load the data. Raises BadData."""
        self.program = program
        self.directory = directory
        self.error: dict[str, Any] | None = None
        self.notify: Callable[..., object] = lambda *states: None
        self.publish: Callable[[Snapshot], object] = lambda snapshot: None
        self.sleep: Callable[[float], object] = time.sleep
        self._urls = urls
        self._woken = threading.Event()
        self._polls_left = ABSENT_POLLS
        self._stamps: dict[str, Stamp] = {}  # of the files at the last load
        self._is_read = False  # whether the last load read the files; otherwise every poll tries again
        self.snapshot = self._load(file_stamps(directory), None)

    def _load(self, stamps: dict[str, Stamp], previous: Snapshot | None) -> Snapshot:
        """A snapshot of the files. Raises BadData.

        `stamps` were taken before the load, so that a change during the load causes another load.
        """
        self._stamps = stamps
        self._is_read = False
        files = read_files(self.directory)
        self._is_read = True
        # The garbage collector would traverse the decoded files and stop all threads.
        # Without it, the p99 of GETs during a reload of 10,000 reviews is 13 ms, not
        # 39, and the reload takes an eighth less time.
        gc.disable()
        try:
            return build_snapshot(
                self.program, files, self._urls, previous, time.time()
            )
        finally:
            gc.enable()

    def wake(self) -> None:
        """Reload now, even if nothing changed. Thread-safe."""
        self._woken.set()

    def run(self, poll_seconds: float) -> None:
        """Poll until the process ends."""
        while True:
            forced = self._woken.wait(poll_seconds)
            self._woken.clear()
            try:
                if self.poll(forced):
                    settle_memory()
            except Exception:
                log.exception("the data files could not be polled")

    def poll(self, forced: bool = False) -> bool:
        """Reload if the files changed, after they have stopped changing; at once if `forced`.

        A caller that forces a reload has finished writing. Returns whether the files were read, valid or not.
        """
        stamps = file_stamps(self.directory)
        before = None
        if not forced and stamps == self._stamps and self._is_read:
            self._polls_left = ABSENT_POLLS
            return False
        if not forced and self._polls_left and self._stamps.keys() - stamps.keys():
            self._polls_left -= 1
            return False
        while not forced and stamps != before:
            self.sleep(SETTLE_SECONDS)
            before = stamps
            stamps = file_stamps(self.directory)
        self._polls_left = ABSENT_POLLS
        self._reload(stamps, is_retry=not forced and stamps == self._stamps)
        return True

    def _reload(self, stamps: dict[str, Stamp], is_retry: bool) -> None:
        """Serve the current files, or keep the snapshot and log the faults.

        A retry reads the same files as the last load, which failed; the same faults are not logged again.
        """
        if not is_retry:
            self.notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        faults = []
        details = ""
        try:
            self._serve(self._load(stamps, self.snapshot))
        except BadData as bad:
            faults = bad.lines()
        except MemoryError:
            self._is_read = False
            faults = ["too little memory"]
        except Exception as error:
            self._is_read = False
            faults = [f"internal error: {type(error).__name__}"]
            details = "\n" + traceback.format_exc()
        if faults and not (is_retry and self.error and faults == self.error["faults"]):
            self.error = {"at": utc_text(time.time()), "faults": faults}
            for line in faults:
                log.error("not reloaded: %s%s", line, details)
        served = f"Serving {loaded_text(self.snapshot.dataset)}"
        self.notify(
            "READY=1", f"STATUS=Stale: {faults[0]}" if faults else f"STATUS={served}"
        )

    def _serve(self, snapshot: Snapshot) -> None:
        previous = self.snapshot.fixed
        dataset = snapshot.dataset
        paths = [path for path in snapshot.fixed if path.startswith("/")]
        changed = [
            path
            for path in paths
            if snapshot.fixed[path].digest != previous[path].digest
        ]
        self.snapshot = snapshot
        self.error = None
        for warning in dataset.warnings:
            log.warning("%s", warning)
        log.info(
            "reloaded %s; changed: %s",
            loaded_text(dataset),
            ", ".join(changed) or "nothing",
        )
        self.publish(snapshot)


def settle_memory() -> None:
    """Call after a load, before the next request if there is a choice.

    What is loaded stays, so the collector need not look at it again: each full
    collection would stop all threads for 13 to 25 ms. What was freed is returned to
    the system: with 10,000 reviews 122 MB stay resident instead of 172.
    """
    # The previous snapshot is garbage now, and frozen objects are never collected.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    # Only glibc has malloc_trim(3).
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def loaded_text(dataset: Dataset) -> str:
    """One line about the loaded data."""
    left_out = (
        f", {dataset.unverified_count} unverified left out"
        if dataset.unverified_count
        else ""
    )
    count = count_text(len(dataset.reviews), "review")
    return printable(f"{count} of {dataset.business['name']}{left_out}")


def utc_text(seconds: float) -> str:
    """Seconds since the epoch as a date-time of RFC 3339."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
