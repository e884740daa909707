"""The thread that looks for due rows and offers them to the pools.

It also does the work of every second: to keep the store open, to delete what has
expired, to count.

This module must not know what an exchange is, nor how rows are ordered or stored.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from reviewslib.websub.journal import log_event
from reviewslib.websub.order import DueRow, in_order
from reviewslib.websub.pools import Pool
from reviewslib.websub.rows import HubSettings, Published, Row
from reviewslib.websub.store import Store, StoreFault

# How long a retry, or a store that has come back, may wait to be noticed.
POLL_SECONDS = 1.0
# Reading takes a tenth of the time at most: the thread then sleeps nine times as long.
REST_FACTOR = 9

log = logging.getLogger(__name__)


class Scheduler:
    """Offers verifications (and notices) to one pool, and deliveries to another."""

    def __init__(
        self,
        settings: HubSettings,
        store: Store,
        published: Published,
        *,
        verifications: Pool[DueRow],
        deliveries: Pool[DueRow],
        on_expired: Callable[[Row], None],
        clock: Callable[[], float],
    ):
        self.counts: dict[str, int] = {}
        self._settings = settings
        self._store = store
        self._published = published
        self._verifications = verifications
        self._deliveries = deliveries
        self._on_expired = on_expired
        self._clock = clock
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="hub-scheduler", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Say that something may be due. Returns at once, in any thread."""
        self._wake.set()

    def stop(self, timeout_seconds: float) -> None:
        """Offer nothing more."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def keep_up(self) -> None:
        """The work of every second. Raises StoreFault."""
        self._store.keep_open()
        with self._store.transaction() as transaction:
            expired = transaction.expire(self._clock())
            self.counts = transaction.counts(self._published.digests())
        for row in expired:
            self._on_expired(row)
            log_event(row, expiry_line(row))

    def offer_due(self) -> None:
        """Offer what is due to the pools. Raises StoreFault."""
        now = self._clock()
        latest = now + self._settings.longest_delay_seconds
        with self._store.transaction() as transaction:
            due = transaction.due(self._published.digests(), now, latest)
        ordered = in_order(due)
        self._verifications.offer(row for row in ordered if not row.is_subscription)
        self._deliveries.offer(row for row in ordered if row.is_subscription)

    def _run(self) -> None:
        kept_up_at = -math.inf
        while not self._stopping.is_set():
            self._wake.clear()
            began_at = time.monotonic()
            is_time = began_at - kept_up_at >= POLL_SECONDS
            if is_time:
                kept_up_at = began_at
            self._look(keep_up=is_time)
            spent_seconds = time.monotonic() - began_at
            self._stopping.wait(min(POLL_SECONDS, REST_FACTOR * spent_seconds))
            self._wake.wait(POLL_SECONDS)

    def _look(self, *, keep_up: bool) -> None:
        """One round, which nothing may end: without this thread the hub is dead."""
        try:
            # The store has logged its faults.
            with suppress(StoreFault):
                if keep_up:
                    self.keep_up()
                self.offer_due()
        except Exception:
            log.exception("the hub's scheduler met an unexpected error and goes on")


def expiry_line(row: Row) -> str:
    if row.is_subscription:
        return "lease ended"
    return f"{row.mode} not confirmed: no answer in time"
