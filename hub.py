"""A WebSub hub for topics that this process publishes itself.

It follows the W3C Recommendation of 2018-01-23 ("REC" below). A subscriber sends a form
by POST. The hub verifies the request with a challenge to the callback. From then on it
delivers the full content of the topic after each change. There is no delivery queue: a
subscription is a row with the digest of the content that the callback has, and is due
while the topic has another digest. Therefore a crash loses nothing, several changes
during a slow delivery become one, and content is repeated only when the hub does not
know whether it arrived.

This module puts the parts together and answers forms. It must not know how the content
of a topic is made (topics arrive as values), nor the HTTP server that carries its
answers. The parts are in `reviewslib/websub`:

    callback_urls, forms          what a subscriber may ask for
    rows                          the values that everything else is about
    transitions, order, outages   what happens to rows, who comes first, whose fault
                                  silence is; all pure
    store                         the SQLite file
    callback_messages, callbacks  what is sent, and the HTTPS client
    exchanges                     one exchange: claim, send, record
    pools, scheduler              threads
    journal                       the lines of the log about one row
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

from reviewslib.websub.exchanges import Exchanges, SendRequest
from reviewslib.websub.forms import HubAnswer, RequestRefused, read_request
from reviewslib.websub.journal import log_event
from reviewslib.websub.order import DueRow
from reviewslib.websub.pools import Pool
from reviewslib.websub.rows import HubSettings, Published, Row, Topic
from reviewslib.websub.scheduler import Scheduler
from reviewslib.websub.store import Store, StoreFault
from reviewslib.websub.transitions import with_request

# Requests and notices together. A stranger at the proxy's limit needs a quarter of an
# hour to fill them, and each is settled within minutes.
MAX_WAITING_ROWS = 1000

REQUEST_ACCEPTED = HubAnswer(202, "accepted; the callback will now be asked to confirm")
# The store tries to recover each second; an operator's backup is over within a minute.
UNSTORABLE = RequestRefused(
    503, "requests cannot be stored at present", retry_after_seconds=60
).answer


class Hub:
    """The hub of a process.

    `publish`, `answer`, `counts` and `trouble` are thread-safe.
    """

    def __init__(
        self,
        settings: HubSettings,
        send: SendRequest,
        *,
        clock: Callable[[], float] = time.time,
        running_time: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        pool: type[Pool[DueRow]] = Pool,
    ):
        """`send` is the method of a `CallbackClient`. Does not open the store."""
        self._settings = settings
        self._clock = clock
        self._store = Store(settings.state_dir)
        self._published = Published()
        self.exchanges = Exchanges(
            settings,
            self._store,
            self._published,
            send,
            clock=clock,
            running_time=running_time,
            jitter=jitter,
        )
        perform = self.exchanges.perform
        self.verifications = pool("hub-verification", settings.workers, perform)
        self.deliveries = pool("hub-delivery", settings.workers, perform)
        self.scheduler = Scheduler(
            settings,
            self._store,
            self._published,
            verifications=self.verifications,
            deliveries=self.deliveries,
            on_expired=lambda row: self.exchanges.silences.forget(row.id),
            clock=clock,
        )

    def publish(self, topics: Mapping[str, Topic]) -> None:
        """Set the current topics, by path.

        Returns at once; deliveries follow in other threads. Subscriptions to a topic
        that is missing here are kept, and wait until it is published again.
        """
        self._published.topics = dict(topics)
        self.scheduler.wake()

    def start(self) -> None:
        """Begin to verify and deliver, in daemon threads.

        What must survive them is in the store.
        """
        self._store.keep_open()
        self.scheduler.start()

    def stop(self, timeout_seconds: float) -> None:
        """Start no more exchanges, wait for the running ones, and close the store.

        An exchange that takes longer is repeated after the next start, since its result
        is not stored.
        """
        deadline = time.monotonic() + timeout_seconds
        pools = (self.verifications, self.deliveries)
        for pool in pools:
            pool.stop()
        self.exchanges.stop()
        self.scheduler.stop(timeout_seconds)
        for pool in pools:
            pool.join(deadline)
        self._store.close()

    def answer(self, content_type: str | None, body: bytes) -> HubAnswer:
        """Answer the POST of a subscriber (REC 5.1.2).

        Waits for the disk, but never for the network.
        """
        try:
            request = read_request(
                content_type,
                body,
                self._settings,
                self._published.topics,
                self._clock(),
            )
            evicted = self._store_request(request)
        except RequestRefused as refused:
            return refused.answer
        except StoreFault:
            return UNSTORABLE
        log_event(request, f"{request.mode} requested")
        for row in evicted:
            log_event(row, f"{row.mode} dropped: too many wait")
        self.scheduler.wake()
        return REQUEST_ACCEPTED

    def counts(self) -> dict[str, int]:
        """What the scheduler counted last, by kind; nothing while the store fails."""
        if self.trouble():
            return {}
        return self.scheduler.counts

    def trouble(self) -> str | None:
        """Why nothing can be stored at present; None if the store works."""
        return self._store.trouble

    def _store_request(self, request: Row) -> list[Row]:
        """Store a request, and return those that gave way.

        Raises RequestRefused and StoreFault.
        """
        # Only accepted requests must survive a power cut: all else is repeated.
        with self._store.transaction(durable=True) as transaction:
            before = transaction.rows_of(request)
            after = with_request(before, request, self.verifications.is_running)
            transaction.save(before, after)
            return transaction.remove_excess(MAX_WAITING_ROWS)
