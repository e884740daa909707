"""A thread for work that would block the event loop: computing, or waiting for disk.

This module must not know what is made there.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

from reviewslib.messages import Response
from reviewslib.process.asgi import Disconnected, Peer, Refused

# Requests that run or wait for one thread; the last one waits for seconds at most.
MAX_WAITING_REQUESTS = 100
# By then those that wait are answered.
RETRY_AFTER = ("Retry-After", "5")
# How long a request waits before its peer is watched: watching costs 50 us, and most
# responses are made sooner.
UNWATCHED_SECONDS = 0.2

log = logging.getLogger("reviewsd.serving")


class ResponseJob(NamedTuple):
    """A response that is to be made, and the future that the request awaits."""

    make: Callable[[], Response]
    # Cancelled when the peer has gone.
    response: asyncio.Future[Response]


class WorkThread:
    """One thread with a bounded queue. `run` is called on the event loop.

    One thread, not two: beside computing threads the event loop waits for the
    interpreter, one switch interval for each of them. And no executor: its own futures,
    and a wake-up of the loop for every response, cost a tenth to a fifth of the rate of
    unseen searches.
    """

    def __init__(self, name: str):
        self._jobs: SimpleQueue[ResponseJob] = SimpleQueue()
        # What runs or waits: the queue has no bound.
        self._count = 0
        # None where no response could be made.
        self._made: deque[tuple[ResponseJob, Response | None]] = deque()
        # Whether `_deliver` is about to run, for all that is made until then.
        self._loop_is_woken = False
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, make: Callable[[], Response], peer: Peer) -> Response:
        """The response of `make`, which is not called once the peer has gone.

        Raises Refused if too many requests run or wait; Disconnected if the peer goes,
        or `make` raises something.
        """
        if self._count >= MAX_WAITING_REQUESTS:
            raise Refused(503, "Too many requests are waiting.", (RETRY_AFTER,))
        loop = asyncio.get_running_loop()
        job = ResponseJob(make, loop.create_future())
        watch = loop.call_later(UNWATCHED_SECONDS, peer.cancel_when_gone, job.response)
        self._count += 1
        self._jobs.put(job)
        try:
            return await job.response
        except asyncio.CancelledError:
            raise Disconnected from None
        finally:
            watch.cancel()
            self._count -= 1

    def _work(self) -> None:
        """The thread."""
        while True:
            # A local variable would keep the last request in memory.
            self._perform(self._jobs.get())

    def _perform(self, job: ResponseJob) -> None:
        """Make a response, if somebody waits for it. Runs on the thread."""
        if job.response.cancelled():
            return
        response = None
        try:
            response = job.make()
        except Exception:
            log.exception("a response could not be made")
        self._made.append((job, response))
        if not self._loop_is_woken:
            self._loop_is_woken = True
            job.response.get_loop().call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """Hand what was made to the requests that wait for it."""
        # Before the responses are taken: a later one wakes the loop again.
        self._loop_is_woken = False
        while self._made:
            job, response = self._made.popleft()
            if job.response.done():
                continue
            if response is None:
                job.response.cancel()
            else:
                job.response.set_result(response)
