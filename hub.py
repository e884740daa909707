"""A WebSub hub (W3C Recommendation of 2018-01-23, "REC" below) for topics that this process publishes itself.

A subscriber sends a form by POST. The hub verifies the request with a challenge to the callback. From then on
it delivers the full content of the topic after each change. There is no delivery queue: a subscription is a
row with the digest of the content that the callback has, and is due while the topic has another digest.
Therefore a crash loses nothing, several changes during a slow delivery become one, and content is repeated
only when the hub does not know whether it arrived.

A *stranger* is a callback that has not confirmed a subscription yet. Anybody can send a request for one.

This module must not know how the content of a topic is made (topics arrive as values), nor the HTTP server
that carries its answers. A callback's URL may be a secret: the log names only its host.

Everything above *State in memory* is pure, and nothing above *Hub* has a clock: time is an argument.
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
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TypeAlias
from urllib.parse import quote, urlencode

from reviewslib.links import topic_link_header
from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse, CheckNetwork
from reviewslib.websub.store import DueRow, Store, StoreFault, Transaction
from reviewslib.websub.values import (
    REQUEST_MODES,
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
OWN_FAULT_SECONDS = 60.0  # the delay after a fault of this machine, unless the first retry delay is shorter
OUTAGE_NETWORKS = (
    3  # silent ones, without a response from any other, mean an outage of our own
)
OUTAGE_SECONDS = (
    600.0  # how long a network counts as silent after an attempt without a response
)
QUOTA_SHARE = 10  # a network and a domain may each have a tenth of the subscriptions

# how long a request without an answer is retried
STRANGER_SECONDS = 120.0
SUBSCRIBER_SECONDS = 3600.0
MAX_RENEWALS = 50  # per minute, subscriber and mode
MAX_STRANGER_CONNECTIONS = 50  # per minute and network, for requests of strangers

POLL_SECONDS = 1.0  # how often the hub polls the store for retries, and a worker retries a busy store

log = logging.getLogger(__name__)


# ---- Transitions: how events change the rows of a subscriber -----------------------------------------------
#
# An accepted request replaces an earlier one of its mode and changes nothing else until it is verified (REC
# 5.1). It leaves a request of the other mode in place, since anybody may have sent either.

Transition: TypeAlias = tuple[
    Rows, str
]  # the new rows, and what happened, for the log; "" if nothing did
Decide: TypeAlias = Callable[
    [Transaction, Rows], Transition
]  # from the rows of a subscriber


def apply_verification(
    rows: Rows,
    request: Row,
    response: CallbackResponse,
    sent_at: float,
    delays: Sequence[float],
) -> Transition:
    """The rows after a verification that did not confirm `request`, or after a notice was sent.

    A request without an answer is tried again after `delays[0]`, that of a stranger after half of it. A fault
    of this machine does not count as a failure of a confirmed subscriber.
    """
    if not has(rows, request):
        return rows, ""  # a newer request has replaced it
    others = without(rows, request.mode)
    is_notice = request.mode == "denied"
    is_excused = response.own_fault and not request.is_of_stranger
    failures = request.failures if is_excused else request.failures + 1
    if (
        response.status is None
        and failures < MAX_FAILURES
        and (is_excused or not is_notice)
    ):
        delay_seconds = delays[0]
        lifetime_seconds = SUBSCRIBER_SECONDS
        if request.is_of_stranger:
            delay_seconds = delays[0] / 2
            lifetime_seconds = STRANGER_SECONDS
        expires_at = min(request.expires_at, sent_at + lifetime_seconds)
        retried = request._replace(
            failures=failures, due_at=sent_at + delay_seconds, expires_at=expires_at
        )
        return {**others, request.mode: retried}, ""
    if is_notice:
        return others, "denied notice"
    return (
        others,
        f"{request.mode} not confirmed{', no challenge' if response.is_success else ''}",
    )


def apply_confirmation(
    rows: Rows, request: Row, network: str, sent_at: float, quota: str
) -> Transition:
    """The rows after a callback in a network confirmed `request`, also if a newer one has replaced it.

    A new subscription is denied if a quota is exhausted, which `quota` names.
    A lease begins when the verification was sent (REC 5.3). A renewal keeps the digest, so that no content is
    repeated and no change is skipped. It also keeps failures, backoff and turn, so that a bad callback cannot
    improve its position.
    """
    if request.mode not in rows:
        return rows, ""  # the operator has removed it
    newer = {
        mode: row
        for mode, row in rows.items()
        if mode in REQUEST_MODES and row.id > request.id
    }
    if request.mode == "unsubscribe":
        return newer, "unsubscribe confirmed"
    # These requests are no longer those of a stranger.
    newer = {mode: row._replace(network=network) for mode, row in newer.items()}
    subscription = rows.get("active")
    if not subscription:
        subscription = request._replace(
            id=0, mode="active", since=sent_at, due_at=sent_at, failures=0
        )
        if quota:
            notice = denial(subscription, f"there are too many {quota}", sent_at)
            return {
                **newer,
                "denied": notice,
            }, f"subscribe confirmed and denied, too many {quota}"
    agreed = {
        name: getattr(request, name)
        for name in ("callback", "topic_url", "secret", "lease_seconds")
    }
    expires_at = sent_at + request.lease_seconds
    renewed = subscription._replace(**agreed, network=network, expires_at=expires_at)
    return {**newer, "active": renewed}, "subscribe confirmed"


def apply_delivery(
    rows: Rows,
    sent: Row,
    response: CallbackResponse,
    now: float,
    delays: Sequence[float],
) -> Transition:
    """The rows after an attempt to deliver the content whose digest `sent` has (REC 7).

    The delay of the next attempt is `delays[n]` after n failures in a row, `delays[0]` after a fault of this
    machine. A later change of the content does not shorten it.
    """
    if not has(rows, sent):
        return rows, ""  # the subscription ended during the delivery
    current = rows["active"]
    others = without(rows, "active")
    attempted = current._replace(tried_at=now, outcome=response.outcome)
    if response.own_fault:
        return {
            **others,
            "active": attempted._replace(due_at=now + delays[0]),
        }, "delivery postponed"
    content = f"content {sent.digest[:12]}"
    if response.is_success:
        delivered = attempted._replace(digest=sent.digest, failures=0, due_at=now)
        return {**others, "active": delivered}, f"{content} delivered"
    if response.status == 410:
        return others, f"{content} refused, removed"
    failures = current.failures + 1
    line = f"delivery failed, {failures} of {MAX_FAILURES}"
    if failures < MAX_FAILURES:
        delay_seconds = max(
            delays[failures], retry_after_seconds(response.retry_after, now)
        )
        return {
            **others,
            "active": attempted._replace(failures=failures, due_at=now + delay_seconds),
        }, line
    # REC 7 keeps the subscription until its lease ends, but REC 5.2 permits denying it at any time. No notice
    # is needed if a request to subscribe waits: its verification reaches the callback.
    reason = f"{MAX_FAILURES} deliveries in a row failed; subscribe again to resume"
    remaining = without(others, "unsubscribe") or {
        "denied": denial(current, reason, now)
    }
    return remaining, f"{line}, removed"


def has(rows: Rows, row: Row) -> bool:
    """Whether the row, or a later version of it, is among the rows: not replaced and not deleted."""
    return row.mode in rows and rows[row.mode].id == row.id


def without(rows: Rows, mode: str) -> Rows:
    return {other: row for other, row in rows.items() if other != mode}


def exhausted_quota(
    total: int, of_domain: int, of_network: int, max_subscriptions: int
) -> str:
    """The name of the quota that one more subscription would exceed; empty if there is none."""
    if total >= max_subscriptions:
        return "subscriptions"
    share = max(1, max_subscriptions // QUOTA_SHARE)
    if of_domain >= share:
        return "subscriptions of this domain"
    return "subscriptions of this address" if of_network >= share else ""


def retry_after_seconds(value: str, now: float) -> float:
    """The delay that Retry-After asks for (RFC 9110 section 10.2.3: seconds or a date); 0 if malformed."""
    with suppress(ValueError, OverflowError):
        in_seconds = value.isascii() and value.isdecimal()
        seconds = (
            float(value)
            if in_seconds
            else parsedate_to_datetime(value).timestamp() - now
        )
        return min(seconds, MAX_RETRY_AFTER_SECONDS)
    return 0.0


# ---- Exchanges: what is sent to callbacks ------------------------------------------------------------------


def verification(
    request: Row, challenge: str, timeout_seconds: float
) -> CallbackRequest:
    """The GET that verifies a request (REC 5.3), or that tells of a denial or a removal (REC 5.2)."""
    parameters = {"hub.mode": request.mode, "hub.topic": request.topic_url}
    if request.mode == "denied":
        parameters |= {"hub.reason": request.outcome}
    else:
        parameters |= {
            "hub.challenge": challenge,
            "hub.lease_seconds": str(request.lease_seconds),
        }
    # REC 5.1.1: the callback's own query stays exactly as it is.
    callback = request.callback
    separator = "" if callback.endswith(("?", "&")) else "&" if "?" in callback else "?"
    url = callback + separator + urlencode(parameters, quote_via=quote)
    # One byte more than the challenge, so that an answer that only begins with it is recognized.
    return CallbackRequest("GET", url, {}, None, timeout_seconds, len(challenge) + 1)


def notification(
    subscription: Row, topic: Topic, settings: HubSettings
) -> CallbackRequest:
    """The POST that delivers the content (REC 7), with a signature if the subscriber gave a secret."""
    headers = {
        "Content-Type": topic.content_type,
        "Link": topic_link_header(settings.base_url, topic.path),
    }
    if subscription.secret is not None:
        headers["X-Hub-Signature"] = (
            "sha256=" + hmac.digest(subscription.secret, topic.body, "sha256").hex()
        )
    return CallbackRequest(
        "POST", subscription.callback, headers, topic.body, settings.timeout, 0
    )


# ---- State in memory: lost at a restart --------------------------------------------------------------------

# Each lane has its own workers, so that neither strangers nor failing callbacks delay working subscribers or
# each other. The values are shares of `--hub-workers`.
LANES = {
    "renewal": 1,
    "notice": 1 / 8,
    "newcomer": 3 / 8,
    "retry": 1 / 4,
    "delivery": 1,
}
MAX_WORKERS_OF_NETWORK = 4


class Schedule:
    """The due rows by lane, and the running exchanges. Thread-safe."""

    def __init__(self, workers: int):
        self._sizes = {
            lane: max(1, int(share * workers)) for lane, share in LANES.items()
        }
        self._workers_of_network = max(1, min(MAX_WORKERS_OF_NETWORK, workers // 4))
        self._due: dict[str, list[DueRow]] = {lane: [] for lane in LANES}
        self.running: dict[str, DueRow] = {}  # by the subscriber's key
        self._lock = threading.Lock()

    def refill(self, rows: Sequence[DueRow]) -> list[str]:
        """Replace the due rows, given in the order of turns. Returns a lane for each worker to start."""
        by_lane = {lane: [due for due in rows if due.lane == lane] for lane in LANES}
        with self._lock:
            self._due = by_lane
            running = Counter(due.lane for due in self.running.values())
        return [
            lane
            for lane in LANES
            for _ in by_lane[lane][: self._sizes[lane] - running[lane]]
        ]

    def take(self, lane: str) -> DueRow | None:
        """Begin the lane's first exchange whose domain, network and subscriber are below their limits.

        None if there is none, or if the lane has no free worker.
        """
        with self._lock:
            running = [due for due in self.running.values() if due.lane == lane]
            if len(running) == self._sizes[lane]:
                return None
            counts = Counter(key for due in running for key in due.limit_keys)
            busy = {key for key, count in counts.items() if count >= self._limit(lane)}
            for index, due in enumerate(self._due[lane]):
                if due.key not in self.running and busy.isdisjoint(due.limit_keys):
                    self.running[due.key] = due
                    return self._due[lane].pop(index)
        return None

    def _limit(self, lane: str) -> int:
        """How many workers of a lane may serve one domain, or one network, at a time."""
        return max(1, min(self._workers_of_network, self._sizes[lane] // 2))

    def assign_network(self, due: DueRow, network: str) -> bool:
        """Record the network of a running exchange; False if this network has too many workers now."""
        with self._lock:
            self.running[due.key] = due._replace(network=network)
            running = [(other.lane, other.network) for other in self.running.values()]
            return running.count((due.lane, network)) <= self._limit(due.lane)

    def finish(self, due: DueRow) -> None:
        """End a running exchange."""
        with self._lock:
            self.running.pop(due.key, None)


class Rate:
    """Counts the events of the last minute of a monotonic clock by key. Thread-safe."""

    def __init__(self) -> None:
        self._events: deque[tuple[float, Hashable]] = deque()
        self._counts: Counter[Hashable] = Counter()
        self._lock = threading.RLock()

    def add(self, key: Hashable, now: float, limit: float = math.inf) -> bool:
        """Count an event unless the key has reached the limit."""
        with self._lock:
            if is_below := self.count(key, now) < limit:
                self._events.append((now, key))
                self._counts[key] += 1
            return is_below

    def remove(self, key: Hashable) -> None:
        """Take back the key's last event."""
        with self._lock:
            if event := next(
                (event for event in reversed(self._events) if event[1] == key), None
            ):
                self._events.remove(event)
                self._subtract(key)

    def count(self, key: Hashable, now: float) -> int:
        with self._lock:
            while self._events and self._events[0][0] <= now - 60:
                self._subtract(self._events.popleft()[1])
            return self._counts[key]

    def _subtract(self, key: Hashable) -> None:
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]


# ---- Hub: the interface for the service, and the threads ---------------------------------------------------


class Postponed(Exception):
    """The exchange was not made, since its network has no room; it is due again after this delay."""

    def __init__(self, seconds: float):
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
        self.schedule = Schedule(settings.workers)
        self._settings = settings
        self._send = send
        self._clock = clock
        self._running_time = running_time
        self._jitter = jitter
        self._store = Store(settings.state_dir)
        self._own_fault_seconds = min(OWN_FAULT_SECONDS, settings.retry_delays[0])
        longest_retry_seconds = max(settings.retry_delays) * (1 + RETRY_JITTER)
        self._longest_delay_seconds = max(
            MAX_RETRY_AFTER_SECONDS, longest_retry_seconds
        )
        self._counts: dict[str, int] = {}
        self._topics: Mapping[str, Topic] = {}
        self._digests: Mapping[str, str] = {}  # of the topics
        self._rate = Rate()
        # When networks were tried, since the last sign of life. No lock: each access is one operation.
        self._silent: dict[str, float] = {}
        self._stopping = threading.Event()
        self._wake = threading.Event()  # for the scheduler: something may be due
        self._scheduler = threading.Thread(
            target=self._run, name="hub-scheduler", daemon=True
        )
        self._workers: list[threading.Thread] = []

    def publish(self, topics: Mapping[str, Topic]) -> None:
        """Set the current topics, by path. Returns at once; deliveries follow in other threads.

        Subscriptions to a topic that is missing here are kept, and wait until it is published again.
        """
        self._topics = dict(topics)
        self._digests = {path: topic.digest for path, topic in topics.items()}
        self._wake.set()

    def start(self) -> None:
        """Begin to verify and deliver, in daemon threads: what must survive them is in the store."""
        self._store.keep_open()
        self._scheduler.start()

    def stop(self, timeout_seconds: float) -> None:
        """Start no more exchanges, wait for the running ones within the timeout, and close the store.

        An exchange that takes longer is repeated after the next start, since its result is not stored.
        """
        deadline = time.monotonic() + timeout_seconds
        self._stopping.set()
        self._wake.set()
        if self._scheduler.is_alive():
            self._scheduler.join(timeout_seconds)  # it starts the workers
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        self._store.close()

    def answer(self, content_type: str | None, body: bytes) -> HubAnswer:
        """Answer the POST of a subscriber (REC 5.1.2). Waits for the disk, but never for the network."""
        now = self._clock()
        try:
            request = read_subscription_request(
                content_type, body, self._settings, self._topics, now
            )
            # Only accepted requests must survive a power cut: the hub repeats everything else.
            with self._store.transaction(durable=True) as transaction:
                is_new = self._accept(request, transaction, now)
        except RequestRefused as refused:
            return refused.answer
        except StoreFault:
            return RequestRefused(
                503, "requests cannot be stored at present", 60
            ).answer
        if is_new:
            log_event(request, f"{request.mode} requested")
            self._wake.set()
        return HubAnswer(202, "accepted; the callback will now be asked to confirm")

    def counts(self) -> dict[str, int]:
        """How many subscriptions were active, failing and behind, and requests pending, at the last poll."""
        return {} if self.trouble() else self._counts

    def trouble(self) -> str | None:
        """Why nothing can be stored at present; None if the store works."""
        return self._store.trouble

    def _accept(self, request: Row, transaction: Transaction, now: float) -> bool:
        """Store a request unless an equal one waits. Returns whether it was stored. Raises RequestRefused."""
        rows = transaction.rows_of(request, now)
        running_time = self._running_time()
        active = rows.get("active")
        waiting = rows.get(request.mode)
        if active:
            request = request._replace(
                network=active.network, digest=active.digest, took=active.took
            )
        elif request.mode == "unsubscribe":
            raise RequestRefused(
                404, "hub.callback has no active subscription to hub.topic"
            )
        is_waiting = waiting and waiting.to_verify == request.to_verify
        if is_waiting and request.key not in self.schedule.running:
            return False
        attempts_key = request.domain, request.is_of_stranger
        request = request._replace(turn=self._rate.count(attempts_key, running_time))
        if active:
            if not self._rate.add(
                f"{request.mode} {request.key}", running_time, MAX_RENEWALS
            ):
                raise too_many("requests of this subscriber", 429, 60)
        else:
            usage = transaction.usage(request.domain, None, now)
            if quota := exhausted_quota(*usage, self._settings.max_subscriptions):
                raise too_many(quota, 503 if quota == "subscriptions" else 429, 3600)
            if not transaction.make_room(request):
                raise too_many("unverified requests", 503, 60)
        transaction.move_back(request)
        transaction.save(rows, {**rows, request.mode: request})
        return True

    def _run(self) -> None:
        """The scheduler's thread."""
        upkeep_at = -math.inf
        while not self._stopping.is_set():
            self._wake.clear()
            began_at = time.monotonic()
            try:
                with suppress(StoreFault):  # the store has logged it
                    if began_at - upkeep_at >= POLL_SECONDS:
                        upkeep_at = began_at
                        self.upkeep()
                    self._start_workers(self.read_due())
            except Exception:
                log.exception("the hub's scheduler met an unexpected error and goes on")
            spent_seconds = time.monotonic() - began_at
            self._stopping.wait(
                min(POLL_SECONDS, 9 * spent_seconds)
            )  # so that reading takes a tenth at most
            self._wake.wait(POLL_SECONDS)

    def upkeep(self) -> None:
        """The work of every second: check the store, delete what has expired, count. Raises StoreFault."""
        self._store.keep_open()
        with self._store.transaction() as transaction:
            expired = transaction.expire(self._clock())
            self._counts = transaction.counts(self._digests)
        for row in expired:
            is_lease = row.mode == "active"
            log_event(
                row,
                "lease ended"
                if is_lease
                else f"{row.mode} not confirmed: no answer in time",
            )

    def read_due(self) -> list[str]:
        """Read the due rows into the schedule. Returns a lane for each worker to start. Raises StoreFault."""
        with self._store.transaction() as transaction:
            now = self._clock()
            due_rows = transaction.due(
                self._digests, now, now + self._longest_delay_seconds
            )
        return self.schedule.refill(due_rows)

    def _start_workers(self, lanes: Sequence[str]) -> None:
        self._workers = [worker for worker in self._workers if worker.is_alive()]
        for lane in lanes:
            worker = threading.Thread(
                target=self._work, args=(lane,), name="hub-worker", daemon=True
            )
            worker.start()
            self._workers.append(worker)

    def _work(self, lane: str) -> None:
        """A worker's thread, which ends when its lane has nothing to do."""
        while not self._stopping.is_set() and (due := self.schedule.take(lane)):
            self.perform(due)

    def perform(self, due: DueRow) -> None:
        """Make an exchange that the schedule began, if it is still due, and store the result."""
        try:
            with suppress(
                StoreFault
            ):  # raised only if nothing was sent, so the row stays due
                self._perform(due)
        finally:
            self.schedule.finish(due)

    def _perform(self, due: DueRow) -> None:
        now = self._clock()
        with self._store.transaction() as transaction:
            row = transaction.row(due)
            if (
                not row
                or row.expires_at <= now
                or now < row.due_at <= now + self._longest_delay_seconds
            ):
                return
            topic = self._topics.get(row.path)
            if row.mode == "active":
                if not topic or topic.digest == row.digest:
                    return
                transaction.forget_content(row)  # until the result is stored
        try:
            if row.mode != "active":
                self._verify(due, row)
            elif topic:
                self._deliver(due, row, topic)
        except Postponed as postponed:
            with self._store.transaction() as transaction:
                transaction.postpone(due, self._clock() + postponed.seconds, row.digest)
        except Exception:  # a bug, perhaps after the sending
            log.exception("hub %s %s: unexpected error", row.path, row.host)
            failed = CallbackResponse(None, "unexpected error", own_fault=True)
            apply = apply_delivery if row.mode == "active" else apply_verification
            delays = [self._own_fault_seconds]
            self._record(
                row, failed, now, lambda _, rows: apply(rows, row, failed, now, delays)
            )

    def _verify(self, due: DueRow, request: Row) -> None:
        challenge = secrets.token_urlsafe(32)
        sent_at = self._clock()
        self._rate.add((request.domain, request.is_of_stranger), self._running_time())
        response = self._exchange(
            due, verification(request, challenge, self._settings.timeout / 2)
        )
        is_confirmed = response.is_success and response.body == challenge.encode(
            "ascii"
        )  # REC 5.3.1

        def decide(transaction: Transaction, rows: Rows) -> Transition:
            if not is_confirmed:
                return apply_verification(
                    rows, request, response, sent_at, [self._own_fault_seconds]
                )
            usage = transaction.usage(request.domain, response.network, sent_at)
            quota = exhausted_quota(*usage, self._settings.max_subscriptions)
            _, turn, _ = (
                usage  # subscriptions of a domain take turns with those of others
            )
            return apply_confirmation(
                rows, request._replace(turn=turn), response.network, sent_at, quota
            )

        rows = self._record(request, response, sent_at, decide)
        if is_confirmed and request.is_of_stranger and "active" in rows:
            self._rate.remove(response.network)

    def _deliver(self, due: DueRow, subscription: Row, topic: Topic) -> None:
        sent_at = self._clock()
        sent = subscription._replace(digest=topic.digest)
        response = self._exchange(
            due, notification(subscription, topic, self._settings)
        )
        now = self._clock()
        growth = 1 + RETRY_JITTER * self._jitter()
        retry_delays = (seconds * growth for seconds in self._settings.retry_delays)
        delays = [self._own_fault_seconds, *retry_delays]
        self._record(
            sent,
            response,
            sent_at,
            lambda _, rows: apply_delivery(rows, sent, response, now, delays),
        )

    def _exchange(self, due: DueRow, request: CallbackRequest) -> CallbackResponse:
        """The callback's answer. Raises Postponed if nothing was sent."""
        began_at = self._running_time()
        if due.network is not None:
            self._silent[due.network] = began_at
        response = self._send(request, lambda network: self._admit(due, network))
        now = self._running_time()
        if response.is_sign_of_life:
            self._silent.clear()
        recent = [
            moment
            for moment in list(self._silent.values())
            if moment > now - OUTAGE_SECONDS
        ]
        is_own_fault = response.own_fault or (
            not response.is_sign_of_life and len(recent) >= OUTAGE_NETWORKS
        )
        return replace(response, own_fault=is_own_fault, seconds=now - began_at)

    def _admit(self, due: DueRow, network: str) -> None:
        """Count a connection that an exchange is about to make. Raises Postponed if there are too many."""
        if not self.schedule.assign_network(due, network):
            raise Postponed(1.0)
        running_time = self._running_time()
        limit = MAX_STRANGER_CONNECTIONS
        if due.lane == "newcomer" and not self._rate.add(network, running_time, limit):
            raise Postponed(20.0)

    def _record(
        self, row: Row, response: CallbackResponse, sent_at: float, decide: Decide
    ) -> Rows:
        """Store the new rows and return them. A lease that was active at `sent_at` counts as active.

        While the store cannot be written, the worker tries again every second. If the hub stops meanwhile,
        the exchange is repeated after the next start.
        """
        while True:
            try:
                with self._store.transaction() as transaction:
                    before = transaction.rows_of(row, sent_at)
                    rows, line = decide(transaction, before)
                    if "active" in rows:
                        rows = {
                            **rows,
                            "active": rows["active"]._replace(took=response.seconds),
                        }
                    transaction.save(before, rows)
                break
            except StoreFault:
                if self._stopping.wait(POLL_SECONDS):
                    return {}
        if line:
            is_removed = row.mode == "active" and "active" not in rows
            log_event(
                row,
                f"{line}: {response.outcome}",
                logging.WARNING if is_removed else logging.INFO,
            )
        return rows


def too_many(subject: str, status: int, retry_after_seconds: int) -> RequestRefused:
    return RequestRefused(
        status, f"there are too many {subject}; try again later", retry_after_seconds
    )


def log_event(row: Row, line: str, level: int = logging.INFO) -> None:
    log.log(level, "hub %s %s: %s", row.path, row.host, line)
