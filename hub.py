"""A WebSub hub (W3C Recommendation of 2018-01-23, "REC" below) for topics that this process publishes itself.

A subscriber sends a form by POST. The hub verifies the request with a challenge to the callback. From then on
it delivers the full content of the topic after each change. There is no delivery queue: a subscription is a
row with the digest of the content that the callback has, and is due while the topic has another digest.
Therefore a crash loses nothing, several changes during a slow delivery become one, and content is repeated
only when the hub does not know whether it arrived.

A *stranger* is a callback that has not confirmed a subscription yet. Anybody can send a request for one.

This module must not know how the content of a topic is made (topics arrive as values), nor the HTTP server
that carries its answers. A callback's URL may be a secret: the log names only its host.

Everything above *Hub* is pure: it has no socket, file, thread or clock; time is an argument.
All moments (`now`, `..._at`) are seconds since the epoch, all durations seconds.

Sections, in order: Transitions - Exchanges - State in memory - Hub
"""

from __future__ import annotations

import hmac
import logging
import math
import random
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import quote, urlencode

from reviewslib.links import topic_link_header
from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse, CheckNetwork
from reviewslib.websub.store import DueRow, Store, StoreFault, Transaction, Usage
from reviewslib.websub.values import (
    HubAnswer,
    HubSettings,
    RequestRefused,
    Row,
    Rows,
    Topic,
    denial,
    read_subscription_request,
)

MAX_FAILURES = 3  # in a row; failed deliveries then remove a subscription, failed verifications a request
RETRY_JITTER = 0.2  # a delay grows by up to this share, so that callbacks that failed together spread out
MAX_RETRY_AFTER_SECONDS = 3600.0
OWN_FAULT_SECONDS = 60.0  # the delay after a fault of this machine
QUOTA_SHARE = 10  # a network and a domain may each have a tenth of the subscriptions

STRANGER_SECONDS, SUBSCRIBER_SECONDS = 120.0, 3600.0  # how long a request without an answer is retried
MAX_RENEWALS = 50  # per minute, subscriber and mode
MAX_STRANGER_CONNECTIONS = 50  # per minute and network, for requests of strangers
MAX_COUNTED = max(MAX_RENEWALS, MAX_STRANGER_CONNECTIONS)  # events of a key in a minute
NO_WORKER_SECONDS = 1.0  # the delay of an exchange whose network has no free worker
RATE_LIMITED_SECONDS = 20.0  # the delay of an exchange whose network has used up its connections

POLL_SECONDS = 1.0  # how often the hub polls the store for retries, and a worker retries a busy store
POLL_SHARE = 0.1  # the largest share of the scheduler's time that reading the due rows may take

log = logging.getLogger(__name__)


# ---- Transitions: how events change the rows of a subscriber -----------------------------------------------
#
# An accepted request replaces an earlier one of its mode and changes nothing else until it is verified (REC
# 5.1). It leaves a request of the other mode in place, since anybody may have sent either.


class Transition(NamedTuple):
    """The new rows of a subscriber, and a line for the log; the line is empty if nothing happened."""

    rows: Rows
    line: str = ""
    level: int = logging.INFO


def apply_verification(
    rows: Rows,
    request: Row,
    response: CallbackResponse,
    is_confirmed: bool,
    sent_at: float,
    usage: Usage,
    max_subscriptions: int,
) -> Transition:
    """The rows after the last attempt to verify `request`, or to send it if it is a notice.

    A lease begins when the verification was sent (REC 5.3). A renewal keeps the digest, so that no content is
    repeated and no change is skipped. It also keeps failures, backoff and turn, so that a bad callback cannot
    improve its position.
    """
    subscription = rows.get("active")
    if subscription:
        subscription = subscription._replace(took=response.seconds)
        rows = {**rows, "active": subscription}
    waiting = rows.get(request.mode)
    # A newer request may have replaced this one. A confirmation of the older request still counts.
    if not waiting or (waiting.id != request.id and not is_confirmed):
        return Transition(rows)
    if request.mode == "denied":
        return Transition(without(rows, "denied"), f"denied notice: {response.outcome}")
    if not is_confirmed:
        reason = f"{response.outcome} without the challenge" if response.is_success else response.outcome
        return Transition(without(rows, request.mode), f"{request.mode} not confirmed: {reason}")

    line = f"{request.mode} confirmed: {response.outcome}"
    newer = {mode: row for mode, row in rows.items() if row.is_request and (row.id or 0) > (request.id or 0)}
    if request.mode == "unsubscribe":
        return Transition(newer, line)
    # The callback has confirmed: its newer requests are no longer those of a stranger.
    newer = {mode: row.at_network(response.network) for mode, row in newer.items()}
    request = request.at_network(response.network)
    if not subscription:
        if quota := exhausted_quota(usage, max_subscriptions):
            notice = denial(request.subscriber, f"there are too many {quota}", sent_at)
            return Transition({**newer, "denied": notice}, f"{line}, denied: too many {quota}")
        subscription = request._replace(id=None, mode="active", since=sent_at, due_at=sent_at, failures=0)
        subscription = subscription._replace(turn=usage.of_domain, took=response.seconds)
    renewed = subscription._replace(
        subscriber=request.subscriber,
        secret=request.secret,
        lease_seconds=request.lease_seconds,
        expires_at=sent_at + request.lease_seconds,
    )
    return Transition({"active": renewed, **newer}, line)


def next_attempt(
    request: Row, is_own_fault: bool, sent_at: float, retry_delays: Sequence[float]
) -> Row | None:
    """The request with the time of its next attempt, after an attempt without an answer; None after the last.

    A fault of this machine does not count as a failure of a confirmed subscriber.
    """
    is_excused, delay_seconds = is_own_fault and not request.is_of_stranger, own_fault_seconds(retry_delays)
    failures = request.failures if is_excused else request.failures + 1
    if failures == MAX_FAILURES or (request.mode == "denied" and not is_excused):
        return None
    lifetime_seconds = SUBSCRIBER_SECONDS
    if request.is_of_stranger:
        lifetime_seconds, delay_seconds = STRANGER_SECONDS, delay_seconds / 2
    expires_at = min(request.expires_at, sent_at + lifetime_seconds)
    return request._replace(failures=failures, due_at=sent_at + delay_seconds, expires_at=expires_at)


def apply_delivery(
    rows: Rows,
    subscription: Row,
    digest: str,
    response: CallbackResponse,
    now: float,
    retry_delays: Sequence[float],
    jitter: float,
) -> Transition:
    """The rows after an attempt to deliver the content with this digest (REC 7). The jitter is 0 to 1.

    A later change of the content does not shorten a backoff.
    """
    current = rows.get("active")
    if current is None or current.id != subscription.id:
        return Transition(rows)  # the subscription ended during the delivery
    attempted = current._replace(tried_at=now, outcome=response.outcome, took=response.seconds)
    content = f"content {digest[:12]}"
    if response.own_fault:
        postponed = attempted._replace(due_at=now + own_fault_seconds(retry_delays))
        return Transition({**rows, "active": postponed}, f"{content} postponed: {response.outcome}")
    if response.is_success:
        delivered = attempted._replace(digest=digest, failures=0, due_at=now)
        return Transition({**rows, "active": delivered}, f"{content} delivered: {response.outcome}")
    if response.status == 410:
        line = f"{content} refused, removed: {response.outcome}"
        return Transition(without(rows, "active"), line, logging.WARNING)

    failures = current.failures + 1
    line = f"delivery failed, {failures} of {MAX_FAILURES}"
    if failures == MAX_FAILURES:
        # REC 7 keeps the subscription until its lease ends, but REC 5.2 permits denying it at any time. No
        # notice is needed if a request to subscribe waits: its verification reaches the callback.
        reason = f"{MAX_FAILURES} deliveries in a row failed; subscribe again to resume"
        waiting = {mode: row for mode, row in rows.items() if mode == "subscribe"}
        remaining = waiting or {"denied": denial(current.subscriber, reason, now)}
        return Transition(remaining, f"{line}, removed: {response.outcome}", logging.WARNING)
    delay_seconds = retry_delays[current.failures] * (1 + RETRY_JITTER * jitter)
    due_at = now + max(delay_seconds, retry_after_seconds(response, now))
    failed = attempted._replace(failures=failures, due_at=due_at)
    return Transition({**rows, "active": failed}, f"{line}: {response.outcome}")


def without(rows: Rows, mode: str) -> Rows:
    return {other: row for other, row in rows.items() if other != mode}


def updated(rows: Rows, row: Row) -> Rows:
    """The rows with `row` in place of its earlier version; unchanged if that was replaced or deleted."""
    current = rows.get(row.mode)
    return {**rows, row.mode: row} if current and current.id == row.id else rows


def exhausted_quota(usage: Usage, max_subscriptions: int) -> str:
    """The name of the quota that one more subscription would exceed; empty if there is none."""
    share = max(1, max_subscriptions // QUOTA_SHARE)
    quotas = {
        "subscriptions": (usage.total, max_subscriptions),
        "subscriptions of this domain": (usage.of_domain, share),
        "subscriptions of this address": (usage.of_network, share),
    }
    return next((words for words, (count, limit) in quotas.items() if count >= limit), "")


def own_fault_seconds(retry_delays: Sequence[float]) -> float:
    """The delay after a fault of this machine: a minute, or the first retry delay if that is shorter."""
    return min(OWN_FAULT_SECONDS, retry_delays[0])


def retry_after_seconds(response: CallbackResponse, now: float) -> float:
    """The delay that Retry-After asks for (RFC 9110 section 10.2.3: seconds or a date); 0 if malformed."""
    value = response.retry_after
    if value is None or response.status not in (429, 503):
        return 0.0
    try:
        in_seconds = value.isascii() and value.isdecimal()
        seconds = float(value) if in_seconds else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return 0.0
    return min(seconds, MAX_RETRY_AFTER_SECONDS)


# ---- Exchanges: what is sent to callbacks ------------------------------------------------------------------


def verification(request: Row, challenge: str, timeout_seconds: float) -> CallbackRequest:
    """The GET that verifies a request (REC 5.3), or that announces a removal (REC 5.2)."""
    parameters = {"hub.mode": request.mode, "hub.topic": request.subscriber.topic_url}
    if request.mode == "denied":
        parameters["hub.reason"] = request.outcome
    else:
        parameters["hub.challenge"] = challenge
        parameters["hub.lease_seconds"] = str(request.lease_seconds)
    # REC 5.1.1: the callback's own query stays exactly as it is.
    callback = request.subscriber.callback
    separator = "?" if "?" not in callback else "" if callback.endswith(("?", "&")) else "&"
    url = callback + separator + urlencode(parameters, quote_via=quote)
    # One byte more than the challenge, so that an answer that only begins with it is recognized.
    return CallbackRequest("GET", url, {}, None, timeout_seconds, len(challenge) + 1)


def notification(subscription: Row, topic: Topic, settings: HubSettings) -> CallbackRequest:
    """The POST that delivers the content (REC 7), with a signature if the subscriber gave a secret."""
    headers = {"Content-Type": topic.content_type, "Link": topic_link_header(settings.base_url, topic.path)}
    if subscription.secret is not None:
        headers["X-Hub-Signature"] = "sha256=" + hmac.digest(subscription.secret, topic.body, "sha256").hex()
    return CallbackRequest("POST", subscription.subscriber.callback, headers, topic.body, settings.timeout, 0)


# ---- State in memory: lost at a restart --------------------------------------------------------------------

# Each lane has its own workers, so that neither strangers nor failing callbacks delay working subscribers or
# each other. The values are shares of `--hub-workers`.
LANES = {"renewal": 1, "notice": 1 / 8, "newcomer": 3 / 8, "retry": 1, "delivery": 1}
MAX_WORKERS_OF_NETWORK = 4


def lane_workers(lane: str, workers: int) -> int:
    return max(1, int(LANES[lane] * workers))


def max_workers(lane: str, workers: int) -> int:
    """How many workers of a lane may serve one domain, or one network, at a time."""
    return max(1, min(MAX_WORKERS_OF_NETWORK, workers // 4, lane_workers(lane, workers) // 2))


class Schedule:
    """The due rows by lane, and the running exchanges. Not thread-safe."""

    def __init__(self, workers: int):
        self._limits = {lane: max_workers(lane, workers) for lane in LANES}
        self._due: dict[str, list[DueRow]] = {lane: [] for lane in LANES}
        self._running: dict[str, DueRow] = {}  # by the subscriber's key

    def refill(self, rows: Iterable[DueRow]) -> dict[str, int]:
        """Replace the due rows, given in the order of turns. Returns their number by lane."""
        self._due = {lane: [] for lane in LANES}
        for due in rows:
            self._due[due.lane].append(due)
        return {lane: len(due_rows) for lane, due_rows in self._due.items()}

    def take(self, lane: str) -> DueRow | None:
        """Begin the lane's first exchange whose domain, network and subscriber are below their limits."""
        counts = Counter(key for due in self._running.values() if due.lane == lane for key in due.limit_keys)
        busy = {key for key, count in counts.items() if count >= self._limits[lane]}
        for index, due in enumerate(self._due[lane]):
            if due.key not in self._running and busy.isdisjoint(due.limit_keys):
                self._running[due.key] = due
                return self._due[lane].pop(index)
        return None

    def assign_network(self, due: DueRow, network: str) -> bool:
        """Record the network of a running exchange; False if this network has too many workers now."""
        self._running[due.key] = due._replace(network=network)
        running = [(other.lane, other.network) for other in self._running.values()]
        return running.count((due.lane, network)) <= self._limits[due.lane]

    def is_running(self, key: str) -> bool:
        """Whether an exchange with this subscriber runs."""
        return key in self._running

    def finish(self, due: DueRow) -> None:
        """End a running exchange."""
        self._running.pop(due.key, None)


class Rate:
    """Counts the events of the last minute by key, up to MAX_COUNTED. Not thread-safe.

    All moments are those of one monotonic clock.
    """

    def __init__(self) -> None:
        self._moments: dict[str, deque[float]] = {}

    def add(self, key: str, now: float) -> None:
        self._moments.setdefault(key, deque(maxlen=MAX_COUNTED)).append(now)

    def take_back(self, key: str) -> None:
        """Remove the last event."""
        if moments := self._moments.get(key):
            moments.pop()

    def count(self, key: str, now: float) -> int:
        moments = self._moments.get(key, deque())
        while moments and moments[0] <= now - 60:
            moments.popleft()
        return len(moments)

    def prune(self, now: float) -> None:
        """Drop the keys without events."""
        self._moments = {key: moments for key, moments in self._moments.items() if self.count(key, now)}


class OutageDetector:
    """Tells an outage of our own network from dead callbacks. Not thread-safe.

    It is an outage if confirmed subscribers in several networks were tried, and no callback has given a sign
    of life since. All moments are those of one monotonic clock.
    """

    MIN_NETWORKS = 3
    WINDOW_SECONDS = 600.0

    def __init__(self) -> None:
        self._tried_at: dict[str, float] = {}  # by network, since the last sign of life
        self._alive_at = -math.inf

    def record_attempt(self, network: str, now: float) -> None:
        self._tried_at[network] = now

    def record_sign_of_life(self, now: float) -> None:
        self._tried_at, self._alive_at = {}, now

    def is_outage(self, began_at: float, now: float) -> bool:
        """Whether our own network caused the failure of an exchange that began at `began_at`."""
        network_count = sum(tried_at > now - self.WINDOW_SECONDS for tried_at in self._tried_at.values())
        return network_count >= self.MIN_NETWORKS and self._alive_at < began_at


# ---- Hub: the interface for the service, and the threads ---------------------------------------------------


class Postponed(Exception):
    """The exchange was not made, since its network has no room; it is due again after this delay."""

    def __init__(self, seconds: float):
        super().__init__()
        self.seconds = seconds


class Hub:
    """The hub of a process. `publish`, `answer`, `counts` and `trouble` are thread-safe."""

    def __init__(
        self,
        settings: HubSettings,
        send: Callable[[CallbackRequest, CheckNetwork], CallbackResponse],
        *,
        clock: Callable[[], float] = time.time,
        running_time: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ):
        """`send` is the method of a `CallbackClient`. Does not open the store."""
        self._settings = settings
        self._clock = clock
        self._running_time = running_time
        self._jitter = jitter
        self._send = send
        self._store = Store(settings.state_dir)
        self._counts: dict[str, int] = {}
        self._topics: Mapping[str, Topic] = {}
        self._lock = threading.Lock()  # protects the three attributes on the next line
        self._schedule, self._rate, self._outages = Schedule(settings.workers), Rate(), OutageDetector()
        self._work_added = {lane: threading.Condition(self._lock) for lane in LANES}
        self._stopping = threading.Event()
        self._wake = threading.Event()  # for the scheduler: something may be due
        self._threads = [threading.Thread(target=self._run, name="hub-scheduler", daemon=True)] + [
            threading.Thread(target=self._work, args=(lane,), name="hub-worker", daemon=True)
            for lane in LANES
            for _ in range(lane_workers(lane, settings.workers))
        ]

    def publish(self, topics: Mapping[str, Topic]) -> None:
        """Set the current topics, by path. Returns at once; deliveries follow in other threads.

        Subscriptions to a topic that is missing here are kept, and wait until it is published again.
        """
        self._topics = dict(topics)
        self._wake.set()

    def start(self) -> None:
        """Begin to verify and deliver, in daemon threads: everything that must survive them is in the store.

        If the store cannot be opened, the hub tries again every second.
        """
        self._store.keep_open()
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Start no more exchanges, wait for the running ones within the timeout, and close the store.

        An exchange that takes longer is repeated after the next start, since its result is not stored.
        """
        deadline = time.monotonic() + timeout_seconds
        self._stopping.set()
        self._wake.set()
        with self._lock:
            for work_added in self._work_added.values():
                work_added.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        self._store.close()

    def answer(self, content_type: str | None, body: bytes) -> HubAnswer:
        """Answer the POST of a subscriber (REC 5.1.2). Waits for the disk, but never for the network."""
        now = self._clock()
        try:
            request = read_subscription_request(content_type, body, self._settings, self._topics, now)
            # Only accepted requests must survive a power cut: the hub repeats everything else.
            with self._store.transaction(durable=True) as transaction:
                is_new = self._accept(request, transaction, now)
        except RequestRefused as refused:
            return refused.answer
        except StoreFault:
            return RequestRefused(503, "requests cannot be stored at present", 60).answer
        if is_new:
            log_event(request, f"{request.mode} requested")
            self._wake.set()
        return HubAnswer(202, "accepted; the callback will now be asked to confirm")

    def counts(self) -> dict[str, int]:
        """How many subscriptions are active, failing and behind, and requests pending; {} without a store.

        As of the scheduler's last poll, so that no request waits for the disk.
        """
        return {} if self.trouble() else self._counts

    def trouble(self) -> str | None:
        """Why nothing can be stored at present; None if the store works."""
        return self._store.trouble

    def _accept(self, request: Row, transaction: Transaction, now: float) -> bool:
        """Store a request unless an equal one waits. Returns whether it did. Raises RequestRefused."""
        rows, running_time = transaction.rows_of(request.subscriber, now), self._running_time()
        subscription, waiting, key = rows.get("active"), rows.get(request.mode), request.subscriber.key
        if subscription:
            request = request.at_network(subscription.subscriber.network)
            request = request._replace(digest=subscription.digest, took=subscription.took)
        elif request.mode == "unsubscribe":
            raise RequestRefused(404, "hub.callback has no active subscription to hub.topic")
        with self._lock:
            if waiting and waiting.to_verify == request.to_verify and not self._schedule.is_running(key):
                return False
            request = request._replace(turn=self._rate.count(attempts_key(request), running_time))
            if subscription:
                if self._rate.count(f"{request.mode} {key}", running_time) >= MAX_RENEWALS:
                    raise too_many("requests of this subscriber", 429, 60)
                self._rate.add(f"{request.mode} {key}", running_time)
        if not subscription:
            usage = transaction.usage(request.subscriber, now)
            if quota := exhausted_quota(usage, self._settings.max_subscriptions):
                raise too_many(quota, 503 if quota == "subscriptions" else 429, 3600)
            if not transaction.make_room(request):
                raise too_many("unverified requests", 503, 60)
        transaction.move_back(request)
        transaction.save(rows, {**rows, request.mode: request})
        return True

    # The scheduler's thread.

    def _run(self) -> None:
        upkeep_at = -math.inf
        while not self._stopping.is_set():
            self._wake.clear()
            began_at = time.monotonic()
            try:
                with suppress(StoreFault):  # the store has logged it
                    if began_at - upkeep_at >= POLL_SECONDS:
                        upkeep_at = began_at
                        self.upkeep()
                    self.read_due()
            except Exception:
                log.exception("the hub's scheduler met an unexpected error and goes on")
            spent_seconds = time.monotonic() - began_at
            self._stopping.wait(min(POLL_SECONDS, spent_seconds * (1 / POLL_SHARE - 1)))
            self._wake.wait(POLL_SECONDS)

    def upkeep(self) -> None:
        """The work of every second: check the store, delete what has expired, count. Raises StoreFault."""
        self._store.keep_open()
        with self._lock:
            self._rate.prune(self._running_time())
        with self._store.transaction() as transaction:
            expired = transaction.expire(self._clock())
            self._counts = transaction.counts(self._digests())
        for row in expired:
            is_lease = row.mode == "active"
            log_event(row, "lease ended" if is_lease else f"{row.mode} not confirmed: no answer in time")

    def read_due(self) -> None:
        """Read the due rows into the schedule. Raises StoreFault."""
        with self._store.transaction() as transaction:
            now = self._clock()
            due_rows = transaction.due(self._digests(), now, now + self._longest_delay_seconds())
        with self._lock:
            for lane, count in self._schedule.refill(due_rows).items():
                self._work_added[lane].notify(count)

    def _digests(self) -> dict[str, str]:
        """The digest of each topic, by its path."""
        return {path: topic.digest for path, topic in self._topics.items()}

    def _longest_delay_seconds(self) -> float:
        return max(MAX_RETRY_AFTER_SECONDS, max(self._settings.retry_delays) * (1 + RETRY_JITTER))

    # The workers' threads.

    def _work(self, lane: str) -> None:
        while not self._stopping.is_set():
            if due := self.take(lane, wait=True):
                self.perform(due)

    def take(self, lane: str, *, wait: bool = False) -> DueRow | None:
        """Begin the next exchange of a lane, to be made by `perform`; None if there is none."""
        with self._lock:
            due = self._schedule.take(lane)
            if not due and wait and not self._stopping.is_set():
                self._work_added[lane].wait()
        return due

    def perform(self, due: DueRow) -> None:
        """Make an exchange, if it is still due, and store the result."""
        try:
            with suppress(StoreFault):  # raised only before the exchange, so the row stays due
                self._perform(due)
        except Exception:
            log.exception("a worker of the hub met an unexpected error and goes on")
            # The row counts as running during this pause: otherwise it would be due again at once.
            self._stopping.wait(own_fault_seconds(self._settings.retry_delays))
        finally:
            with self._lock:
                self._schedule.finish(due)

    def _perform(self, due: DueRow) -> None:
        now = self._clock()
        with self._store.transaction() as transaction:
            row = transaction.row(due)
            if not row or row.expires_at <= now or now < row.due_at <= now + self._longest_delay_seconds():
                return
            topic = self._topics.get(row.subscriber.path)
            if row.mode == "active":
                if not topic or topic.digest == row.digest:
                    return
                transaction.claim(row)
        if row.mode != "active":
            self._verify(due, row)
        elif topic:
            self._deliver(due, row, topic)

    def _verify(self, due: DueRow, request: Row) -> None:
        challenge, sent_at = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            self._rate.add(attempts_key(request), self._running_time())
        response = self._exchange(due, request, verification(request, challenge, self._settings.timeout / 2))
        if not response:
            return
        is_confirmed = response.is_success and response.body == challenge.encode("ascii")  # REC 5.3.1
        retry = None
        if response.status is None:
            retry = next_attempt(request, response.own_fault, sent_at, self._settings.retry_delays)

        def decide(transaction: Transaction, rows: Rows) -> Transition:
            if retry:
                return Transition(updated(rows, retry))
            usage = transaction.usage(request.subscriber._replace(network=response.network), sent_at)
            limit = self._settings.max_subscriptions
            return apply_verification(rows, request, response, is_confirmed, sent_at, usage, limit)

        rows = self._record(request, sent_at, decide)
        if rows and "active" in rows and is_confirmed and request.is_of_stranger:
            with self._lock:
                self._rate.take_back(response.network)
        self._wake.set()

    def _deliver(self, due: DueRow, subscription: Row, topic: Topic) -> None:
        sent_at = self._clock()
        response = self._exchange(due, subscription, notification(subscription, topic, self._settings))
        if not response:
            return
        now, delays, jitter = self._clock(), self._settings.retry_delays, self._jitter()

        def decide(_: Transaction, rows: Rows) -> Transition:
            return apply_delivery(rows, subscription, topic.digest, response, now, delays, jitter)

        self._record(subscription, sent_at, decide)
        if not response.is_success or self._topics.get(topic.path) is not topic:
            self._wake.set()

    def _exchange(self, due: DueRow, row: Row, request: CallbackRequest) -> CallbackResponse | None:
        """The callback's answer; None if the exchange was not made, and is due again after a delay."""
        began_at = self._running_time()
        if due.network is not None:
            with self._lock:
                self._outages.record_attempt(due.network, began_at)
        try:
            response = self._send(request, lambda network: self._admit(due, network))
        except Postponed as postponed:
            # `row` was read before the claim, so it restores the digest.
            postponed_row = row._replace(due_at=self._clock() + postponed.seconds)
            self._record(row, self._clock(), lambda _, rows: Transition(updated(rows, postponed_row)))
            return None
        except Exception:
            log.exception("an exchange with a callback failed unexpectedly")
            response = CallbackResponse(None, "error in the hub", own_fault=True)
        now = self._running_time()
        with self._lock:
            if response.is_sign_of_life:
                self._outages.record_sign_of_life(now)
            elif self._outages.is_outage(began_at, now):
                response = replace(response, own_fault=True)
        return replace(response, seconds=now - began_at)

    def _admit(self, due: DueRow, network: str) -> None:
        """Count a connection that an exchange is about to make. Raises Postponed."""
        now = self._running_time()
        with self._lock:
            if not self._schedule.assign_network(due, network):
                raise Postponed(NO_WORKER_SECONDS)
            if due.lane == "newcomer":
                if self._rate.count(network, now) >= MAX_STRANGER_CONNECTIONS:
                    raise Postponed(RATE_LIMITED_SECONDS)
                self._rate.add(network, now)

    def _record(
        self, row: Row, sent_at: float, decide: Callable[[Transaction, Rows], Transition]
    ) -> Rows | None:
        """Store the new rows and return them. A lease that was active at `sent_at` counts as active.

        While the store cannot be written, the worker tries again every second. If the hub stops meanwhile,
        the exchange is repeated after the next start; the result is None.
        """
        while True:
            try:
                with self._store.transaction() as transaction:
                    before = transaction.rows_of(row.subscriber, sent_at)
                    rows, line, level = decide(transaction, before)
                    transaction.save(before, rows)
                break
            except StoreFault:
                if self._stopping.wait(POLL_SECONDS):
                    return None
        if line:
            log_event(row, line, level)
        return rows


def too_many(subject: str, status: int, retry_after_seconds: int) -> RequestRefused:
    return RequestRefused(status, f"there are too many {subject}; try again later", retry_after_seconds)


def attempts_key(request: Row) -> str:
    """The key under which attempts are counted: a domain's strangers and its subscribers count separately."""
    return f"{'stranger' if request.is_of_stranger else 'subscriber'} {request.subscriber.domain}"


def log_event(row: Row, line: str, level: int = logging.INFO) -> None:
    log.log(level, "hub %s %s: %s", row.subscriber.path, row.subscriber.host, line)
