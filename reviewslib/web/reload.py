"""Reload: the current snapshot, and the thread that replaces it when the files change.

After a failed load the previous snapshot stays. This module reads files and the clock;
it must not know a request or a server; a service manager and a hub are passed in as
callables.

Sections: failures - the reloader - memory - lines for the operator.
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
from pathlib import Path
from typing import Any, NamedTuple

from reviewslib.dataset.moments import text_of_seconds
from reviewslib.dataset.reviews import Dataset
from reviewslib.faults import BadData, printable
from reviewslib.files import SETTLE_SECONDS, Stamp
from reviewslib.links import ServiceUrls
from reviewslib.web.data_files import file_stamps, read_files
from reviewslib.web.figures import count_text
from reviewslib.web.program_files import ProgramFiles
from reviewslib.web.snapshot import Snapshot, build_snapshot

log = logging.getLogger("reviewsd")

# Polls before a missing file counts as removed: many programs replace a file by
# removing it and writing it anew.
ABSENT_POLLS = 3


# ---- Failures ----


class Failure(NamedTuple):
    """Why a load failed."""

    # Lines for the operator, at least one.
    faults: list[str]
    # Of a bug: its traceback.
    details: str = ""
    # Whether the same files may load another time.
    is_passing: bool = False


def failure_of(error: Exception) -> Failure:
    """The failure of a load that raised `error`."""
    if isinstance(error, BadData):
        return Failure(error.lines())
    if isinstance(error, MemoryError):
        return Failure(["too little memory"], is_passing=True)
    details = "\n" + "".join(traceback.format_exception(error))
    fault = f"internal error: {type(error).__name__}"
    return Failure([fault], details, is_passing=True)


# ---- The reloader ----


class Reloader:
    """Keeps `snapshot` current. All methods but `wake` run on one thread.

    `notify` is called with states for a service manager in the form of sd_notify(3),
    `publish` with every new snapshot. A test may replace `sleep`. `error` has the time
    and the faults of the last reload; it is None if that reload succeeded.
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
        # Of the files at the last load.
        self._stamps: dict[str, Stamp] = {}
        # Whether that load needs no other one of the same files.
        self._is_settled = False
        self.snapshot = self._load(file_stamps(directory), None)

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
        """Reload if the files changed, once they have stopped changing.

        At once if `forced`: who forces a reload has finished writing. Returns whether
        the files were read, valid or not.
        """
        stamps = file_stamps(self.directory)
        if not forced:
            if not self._is_due(stamps):
                return False
            stamps = self._settled_stamps()
        self._polls_left = ABSENT_POLLS
        is_retry = not forced and stamps == self._stamps
        self._reload(stamps, is_retry)
        return True

    def _is_due(self, stamps: dict[str, Stamp]) -> bool:
        """Whether the files changed, or have to be tried again."""
        if stamps == self._stamps and self._is_settled:
            self._polls_left = ABSENT_POLLS
            return False
        is_missing = bool(self._stamps.keys() - stamps.keys())
        if is_missing and self._polls_left:
            self._polls_left -= 1
            return False
        return True

    def _settled_stamps(self) -> dict[str, Stamp]:
        """The stamps of the files, as soon as they are the same twice."""
        before = None
        stamps = file_stamps(self.directory)
        while stamps != before:
            self.sleep(SETTLE_SECONDS)
            before = stamps
            stamps = file_stamps(self.directory)
        return stamps

    def _reload(self, stamps: dict[str, Stamp], is_retry: bool) -> None:
        """Serve the current files, or keep the snapshot.

        A retry reads the files of the last load, which failed.
        """
        if not is_retry:
            microseconds = time.monotonic_ns() // 1000
            self.notify("RELOADING=1", f"MONOTONIC_USEC={microseconds}")
        try:
            self._serve(self._load(stamps, self.snapshot))
        except Exception as error:
            self._keep(failure_of(error), is_retry)

    def _load(self, stamps: dict[str, Stamp], previous: Snapshot | None) -> Snapshot:
        """A snapshot of the files. Raises BadData.

        `stamps` were taken before the load, so that a change during the load causes
        another one.
        """
        self._stamps = stamps
        self._is_settled = False
        files = read_files(self.directory)
        self._is_settled = True
        # The garbage collector would traverse the decoded files and stop all threads.
        # Without it, the p99 of GETs during a reload of 10,000 reviews is 13 ms, not
        # 39, and the reload takes an eighth less time.
        gc.disable()
        try:
            return build_snapshot(
                self.program, files, self._urls, previous, time.time()
            )
        finally:
            # Else it would traverse them now: of 10,000 reviews for 20 to 30 ms.
            # `settle_memory` has it look once, when the new snapshot is served.
            gc.freeze()
            gc.enable()

    def _serve(self, snapshot: Snapshot) -> None:
        """Replace the snapshot, and tell everybody."""
        changed = changed_paths(self.snapshot, snapshot)
        loaded = loaded_text(snapshot.dataset)
        self.snapshot = snapshot
        self.error = None
        for warning in snapshot.dataset.warnings:
            log.warning("%s", warning)
        log.info("reloaded %s; changed: %s", loaded, ", ".join(changed) or "nothing")
        self.publish(snapshot)
        self.notify("READY=1", f"STATUS=Serving {loaded}")

    def _keep(self, failure: Failure, is_retry: bool) -> None:
        """Keep the snapshot, and tell everybody why; the same faults only once."""
        if failure.is_passing:
            self._is_settled = False
        known = self.error["faults"] if self.error else None
        if not is_retry or failure.faults != known:
            self.error = {"at": text_of_seconds(time.time()), "faults": failure.faults}
            for line in failure.faults:
                log.error("not reloaded: %s%s", line, failure.details)
        self.notify("READY=1", f"STATUS=Stale: {failure.faults[0]}")


def changed_paths(before: Snapshot, after: Snapshot) -> list[str]:
    """The paths whose fixed content changed."""
    changed = []
    for path, representation in after.fixed.items():
        # Other keys are forms of the home page.
        is_path = path.startswith("/")
        if is_path and representation.digest != before.fixed[path].digest:
            changed.append(path)
    return changed


# ---- Memory ----


def settle_memory() -> None:
    """Call after a load, before the next request if there is a choice.

    What is loaded stays, so the collector need not look at it again: each full
    collection would stop all threads for 13 to 25 ms. What was freed is returned to the
    system: with 10,000 reviews 122 MB stay resident instead of 172.
    """
    # The previous snapshot is garbage now, and frozen objects are never collected.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    # Only glibc has malloc_trim(3).
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


# ---- Lines for the operator ----


def loaded_text(dataset: Dataset) -> str:
    """One line about the loaded data."""
    count = count_text(len(dataset.reviews), "review")
    text = f"{count} of {dataset.business['name']}"
    if dataset.unverified_count:
        text += f", {dataset.unverified_count} unverified left out"
    return printable(text)
