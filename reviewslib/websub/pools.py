"""A pool of threads that work on jobs in an order.

This module must not know what a job is about: it sees an id, and whether it is slow.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

log = logging.getLogger(__name__)


class Job(Protocol):
    """What a pool works on. Two jobs with one id are never worked on at once."""

    @property
    def id(self) -> int: ...

    @property
    def is_slow(self) -> bool: ...


J = TypeVar("J", bound=Job)


class Pool(Generic[J]):
    """Threads, at most `size`, that begin the first job that may begin. Thread-safe.

    A slow job may begin only while fewer than half of the threads are busy, so that
    slow jobs never hold all of them. A thread ends when no job may begin.
    """

    def __init__(self, name: str, size: int, perform: Callable[[J], None]):
        self._name = name
        self._size = size
        self._perform = perform
        self._waiting: deque[J] = deque()
        self._running: set[int] = set()  # ids
        self._threads: set[threading.Thread] = set()
        self._is_stopped = False
        self._lock = threading.Lock()

    def offer(self, jobs: Iterable[J]) -> None:
        """Replace the waiting jobs, given in their order; start threads for them."""
        with self._lock:
            self._waiting = deque(jobs)
        while (job := self._begin()) is not None:
            self._start(job)

    def is_running(self, id: int) -> bool:
        with self._lock:
            return id in self._running

    def stop(self) -> None:
        """Begin no more jobs."""
        with self._lock:
            self._is_stopped = True

    def join(self, deadline: float) -> None:
        """Wait for the running jobs, until the deadline (time.monotonic())."""
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _start(self, job: J) -> None:
        # A daemon: what must survive the process is not in a thread.
        thread = threading.Thread(
            target=self._work, args=(job,), name=self._name, daemon=True
        )
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            # The machine has no more threads. The job waits until it is offered again.
            self._threads.discard(thread)
            self._end(job)
            raise

    def _work(self, job: J) -> None:
        """The life of a thread, which has begun a job."""
        current: J | None = job
        while current is not None:
            try:
                self._perform(current)
            except Exception:
                log.exception("%s: unexpected error", self._name)
            self._end(current)
            current = self._begin()
        self._threads.discard(threading.current_thread())

    def _begin(self) -> J | None:
        """Take the first waiting job that is not running; None if none may begin."""
        with self._lock:
            if self._is_stopped or len(self._running) >= self._size:
                return None
            while self._waiting:
                job = self._waiting[0]
                # Slow jobs are the last of the order.
                if job.is_slow and len(self._running) * 2 >= self._size:
                    return None
                self._waiting.popleft()
                if job.id not in self._running:
                    self._running.add(job.id)
                    return job
        return None

    def _end(self, job: J) -> None:
        with self._lock:
            self._running.discard(job.id)
