"""A WebSub hub (W3C Recommendation of 2018-01-23, "REC" below) for topics that this process publishes itself.

A subscriber asks by a form POST, the hub verifies the request with a challenge to the callback, and from
then on delivers every new content of the topic, whole. There is no queue: a subscription remembers the digest
of the content that was last delivered, and is due while the topic's digest is another one. Therefore a crash
loses nothing, several changes during a slow delivery become one, and content is only delivered twice when
the answer came too late or the hub ended before it had stored the result.

This module must not know the content of a topic or how it is made (topics arrive as values), nor the HTTP
server that carries its answers. A callback's URL may be a secret: the log names its host only.

Everything above *Hub* is pure: it has no socket, file, thread or clock; time is an argument.
All moments (`now`, `..._at`) are seconds since the epoch, all durations seconds.

Sections, in order: Transitions - Exchanges - Scheduling - Hub
"""

from __future__ import annotations

import hmac
import logging
import math
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import chain, product
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from reviewslib.links import topic_link_header
from reviewslib.websub.callbacks import CallbackClient, CallbackRequest, CallbackResponse
from reviewslib.websub.store import Excluded, Store, StoreFault, Transaction
from reviewslib.websub.values import (
    FAILURES_THAT_REMOVE,
    MAX_UNVERIFIED,
    UNVERIFIED_SECONDS,
    HubAnswer,
    HubSettings,
    PendingRequest,
    RateLimit,
    RequestRefused,
    Row,
    Subscription,
    SubscriptionState,
    Topic,
    admit,
    denial,
    exhausted_quota,
    read_subscription_request,
)

RETRY_JITTER = 0.2  # a retry is up to this share later, so that failures with one cause spread out
MAX_RETRY_AFTER_SECONDS = 3600.0
OWN_FAULT_SECONDS = 60.0  # until what this machine could not send is tried again
MAX_OWN_FAULT_SECONDS = 3600.0  # until a subscriber's request that it could not verify is dropped
MAX_ATTEMPTS = 3  # to verify a request that nobody answers
ATTEMPTS_SECONDS = 120.0  # since the first of them
MAX_CACHED_NETWORKS = 20_000
SLOW_SECONDS = 2.0  # a subscriber whose last exchange took longer is demoted to the lane of retries
DEMOTED = 1.0  # its `next_attempt_at`, which is due at any time

# An expired subscription is ignored at once, but its row is kept for a day of running time: a clock that
# jumps and is put right has ended nothing.
EXPIRED_ROW_SECONDS = 86400.0

POLL_SECONDS = 1.0  # how often the scheduler looks for retries, and a worker tries a busy store again

log = logging.getLogger(__name__)


# ---- Transitions: what may happen to a subscription, and what follows --------------------------------------
#
# An accepted request replaces an earlier one of its mode and changes nothing else until it is verified (REC
# 5.1). Requests of both modes wait side by side, since a stranger may send either.
# The end of a lease is no event: the store does not return a subscription whose lease has ended.


class Transition(NamedTuple):
    """The new state, and a line for the log if something happened."""

    state: SubscriptionState
    line: str = ""
    level: int = logging.INFO


def after_verification(
    state: SubscriptionState,
    request: PendingRequest,
    response: CallbackResponse,
    confirmed: bool,
    sent_at: float,
    full: str,
) -> Transition:
    """The state after the verification, or the notice, of `request`; `full` is the exhausted quota, or "".

    A lease begins when the verification was sent (REC 5.3). A renewal keeps the delivered digest, so that no
    content is repeated and no change is skipped. It keeps failures and backoff, too, or a callback that fails
    could shorten its backoff by renewing.
    """
    waiting = [one.id for one in state.requests if one.mode == request.mode]
    # A newer request that replaced this one gets a challenge of its own, but what is confirmed counts.
    if not waiting or (request.id not in waiting and not confirmed):
        return Transition(state)
    others = replace(state, requests=tuple(one for one in state.requests if one.id != request.id))
    if request.mode == "denied":
        return Transition(others, f"denied notice: {response.outcome}")
    if not confirmed:
        reason = f"{response.outcome} without the challenge" if response.is_success else response.outcome
        return Transition(others, f"{request.mode} not confirmed: {reason}")
    line = f"{request.mode} confirmed: {response.outcome}"
    newer = tuple(one for one in others.requests if (one.id or 0) > (request.id or 0))
    if request.mode == "unsubscribe":
        return Transition(SubscriptionState(None, newer), line)
    who = replace(request.subscriber, network=response.network)
    if state.subscription is None and full:
        notice = denial(who, f"there are too many {full}", sent_at)
        return Transition(SubscriptionState(None, (notice, *newer)), f"{line}, denied: too many {full}")
    secret, expires_at = request.secret, sent_at + request.lease_seconds
    old = state.subscription or Subscription(None, who, secret, sent_at, expires_at, request.base_digest)
    renewed = replace(old, subscriber=who, secret=secret, expires_at=expires_at)
    return Transition(SubscriptionState(renewed, newer), line)


def after_delivery(
    state: SubscriptionState,
    subscription: Subscription,
    digest: str,
    response: CallbackResponse,
    now: float,
    retry_delays: Sequence[float],
    jitter: float,
) -> Transition:
    """The state after an attempt to deliver the content with this digest (REC 7). The jitter is 0 to 1.

    A later change of the content does not shorten a backoff.
    """
    old = state.subscription
    if old is None or old.id != subscription.id:
        return Transition(state)  # the subscription ended meanwhile
    tried = replace(old, last_attempt_at=now, last_outcome=response.outcome)
    content = f"content {digest[:12]}"
    if response.own_fault:
        new = replace(tried, next_attempt_at=now + own_fault_seconds(retry_delays))
        return Transition(replace(state, subscription=new), f"{content} postponed: {response.outcome}")
    if response.is_success:
        new = replace(tried, delivered_digest=digest, failures=0, next_attempt_at=0.0)
        return Transition(replace(state, subscription=new), f"{content} delivered: {response.outcome}")
    if response.status == 410:
        removed = replace(state, subscription=None)
        return Transition(removed, f"{content} gone, removed: {response.outcome}", logging.WARNING)

    failures = old.failures + 1
    line = f"delivery failed, {failures} of {FAILURES_THAT_REMOVE}"
    if failures == FAILURES_THAT_REMOVE:
        # REC 7 keeps it until the lease ends, but REC 5.2 permits to deny it at any time with a notice. A
        # pending request to subscribe needs no notice, since its verification follows.
        anew = tuple(one for one in state.requests if one.mode == "subscribe")
        reason = f"{FAILURES_THAT_REMOVE} deliveries in a row failed; subscribe again to resume"
        left = anew or (denial(old.subscriber, reason, now),)
        removed = SubscriptionState(None, left)
        return Transition(removed, f"{line}, removed: {response.outcome}", logging.WARNING)
    delay_seconds = retry_delays[old.failures] * (1 + RETRY_JITTER * jitter)
    wait_seconds = max(delay_seconds, retry_after_seconds(response, now))
    new = replace(tried, failures=failures, next_attempt_at=now + wait_seconds)
    return Transition(replace(state, subscription=new), f"{line}: {response.outcome}")


def demoted_if_slow(state: SubscriptionState, seconds: float) -> SubscriptionState:
    """The state after an exchange of so many seconds; one that waits for a retry is in that lane already."""
    old = state.subscription
    if old is None or old.next_attempt_at > DEMOTED:
        return state
    next_attempt_at = DEMOTED if seconds > SLOW_SECONDS else 0.0
    return replace(state, subscription=replace(old, next_attempt_at=next_attempt_at))


class Backoff(NamedTuple):
    """Until when a subscriber is sent no request, or no content; in running time."""

    row_id: int | None
    attempts: int  # of a request that nobody answers
    first_at: float  # of these attempts
    until: float

    def is_exhausted(self, request: PendingRequest, now: float, own_fault: bool) -> bool:
        """Whether the request is dropped without an answer.

        An outage of this machine is waited out for subscribers, not for strangers.
        """
        if self.row_id != request.id or not self.attempts:
            return False
        waited_seconds = now - self.first_at
        if request.subscriber.network is not None and own_fault:
            return waited_seconds >= MAX_OWN_FAULT_SECONDS
        is_late = self.attempts >= MAX_ATTEMPTS or waited_seconds >= ATTEMPTS_SECONDS
        return is_late or request.mode == "denied"


def own_fault_seconds(retry_delays: Sequence[float]) -> float:
    """The delay after a fault of this machine: a minute, or less where retries are quicker."""
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


def verification(request: PendingRequest, challenge: str, timeout_seconds: float) -> CallbackRequest:
    """The GET that verifies a request (REC 5.3), or that tells of a removal (REC 5.2)."""
    parameters = {"hub.mode": request.mode, "hub.topic": request.subscriber.topic_url}
    if request.mode == "denied":
        parameters["hub.reason"] = request.reason
    else:
        parameters["hub.challenge"] = challenge
        parameters["hub.lease_seconds"] = str(request.lease_seconds)
    # REC 5.1.1: the callback's own query stays exactly as it is.
    callback = request.subscriber.callback
    joint = "?" if "?" not in callback else "" if callback.endswith(("?", "&")) else "&"
    url = callback + joint + urlencode(parameters, quote_via=quote)
    # One byte more than the challenge, so that an answer that only begins with it is recognized.
    confirmed_in = request.subscriber.network
    return CallbackRequest("GET", url, {}, None, timeout_seconds, len(challenge) + 1, confirmed_in)


def notification(subscription: Subscription, topic: Topic, settings: HubSettings) -> CallbackRequest:
    """The POST that delivers the content (REC 7), with a signature if the subscriber gave a secret."""
    headers = {"Content-Type": topic.content_type, "Link": topic_link_header(settings.base_url, topic.path)}
    if subscription.secret is not None:
        headers["X-Hub-Signature"] = "sha256=" + hmac.digest(subscription.secret, topic.body, "sha256").hex()
    who = subscription.subscriber
    return CallbackRequest("POST", who.callback, headers, topic.body, settings.timeout, 0, who.network)


# ---- Scheduling: what to do next ---------------------------------------------------------------------------

# Priority lanes, the most urgent first, with the share of the workers that each may use. Only first attempts
# to deliver may use all, and at least an eighth of eight or more is always left to them: neither requests of
# strangers nor callbacks that fail delay a working subscriber, or each other.
LANES = {"renewal": 1 / 8, "verification": 3 / 8, "delivery": 1, "retry": 1 / 4, "notice": 1 / 8}
MAX_WORKERS_PER_KEY = 4


class Exchange(NamedTuple):
    """The exchange that is due for a row."""

    row: Row
    lane: str
    limit_key: str  # what its worker is counted under: a network, or the domain of an unresolved host


def has_free_worker(running: Sequence[Exchange], lane: str, workers: int) -> bool:
    """Whether a lane may have one more of the workers."""
    in_lane = sum(one.lane == lane for one in running)
    return len(running) < workers and in_lane < max(1, int(LANES[lane] * workers))


def max_workers_per_key(workers: int) -> int:
    return max(1, min(MAX_WORKERS_PER_KEY, workers // 4))


def keys_at_limit(running: Iterable[Exchange], limit: int) -> set[str]:
    """The limit keys with at least `limit` workers."""
    counts = Counter(one.limit_key for one in running)
    return {key for key, count in counts.items() if count >= limit}


def first_startable(found: Iterable[Exchange], running: Sequence[Exchange], limit: int) -> Exchange | None:
    """The first exchange whose limit key has fewer workers than `limit`, and whose subscriber has none."""
    keys, subscribers = keys_at_limit(running, limit), {one.row.subscriber.key for one in running}
    startable = (one for one in found if one.limit_key not in keys)
    return next((one for one in startable if one.row.subscriber.key not in subscribers), None)


# ---- Hub: the interface for the service, and the threads ---------------------------------------------------


Decide: TypeAlias = Callable[[Transaction, SubscriptionState], Transition]  # what follows from a response


class NetworkLimitReached(Exception):
    """This network is at its worker or verification limit; retry later."""


class Hub:
    """The hub of a process. Any thread may call `publish`, `answer`, `counts` and `trouble` at any time."""

    def __init__(
        self,
        settings: HubSettings,
        *,
        clock: Callable[[], float] = time.time,
        running_time: Callable[[], float] = time.monotonic,
        send: Callable[..., CallbackResponse] | None = None,
    ):
        """`send` replaces that of `CallbackClient`. Touches no store. Raises OSError for a bad `ca_file`."""
        self._settings = settings
        self._clock = clock
        self._running_time = running_time
        self._send = send or callback_client(settings).send
        self._store = Store(settings.state_dir)
        self._counts: dict[str, int] = {}
        self._topics: Mapping[str, Topic] = {}
        self._networks: dict[str, str] = {}  # cache by host, of the address that was tried last
        self._network_rate, self._domain_rate = RateLimit(), RateLimit()  # the latter of strangers alone
        self._backoffs: dict[tuple[str, bool], Backoff] = {}  # by a subscriber's key, and whether of requests
        self._expired_since: dict[int, float] = {}  # running time when first seen, by the subscription's id
        self._thread_error_at = -math.inf  # when this was logged last, in running time
        self._stopping = threading.Event()
        self._wake = threading.Event()  # for the scheduler: something may be due, or a worker has ended
        self._scheduler = threading.Thread(target=self._schedule, name="hub-scheduler", daemon=True)
        self._running: dict[threading.Thread, Exchange] = {}  # each worker with its exchange
        self._running_lock = threading.Lock()  # protects _running

    def publish(self, topics: Mapping[str, Topic]) -> None:
        """Set the current topics, by path. Returns at once; deliveries follow in other threads.

        The subscriptions to a topic that is missing here are kept, and wait until it is published again.
        """
        self._topics = dict(topics)
        self._wake.set()

    def start(self) -> None:
        """Begin to verify and deliver, in daemon threads: all that must survive them is in the store.

        A store that cannot be opened is tried again every second.
        """
        self.open_store()
        self._scheduler.start()

    def open_store(self) -> None:
        """Try to open the store, in a directory that is made when it is missing."""
        with suppress(OSError):  # opening the store tells why
            self._settings.state_dir.mkdir(parents=True, exist_ok=True)
        self._store.keep_open()

    def stop(self, timeout_seconds: float) -> None:
        """Start no more exchanges, wait for the running ones within the timeout, and close the store.

        The result of an exchange that takes longer is not stored: it is repeated after the next start.
        """
        deadline = time.monotonic() + timeout_seconds
        self._stopping.set()
        self._wake.set()
        if self._scheduler.is_alive():
            self._scheduler.join(timeout_seconds)
        with self._running_lock:
            workers = list(self._running)
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        self._store.close()

    def answer(self, content_type: str | None, body: bytes) -> HubAnswer:
        """Answer the POST of a subscriber (REC 5.1.2). Waits for the disk, but never for the network."""
        now = self._clock()
        try:
            request = read_subscription_request(content_type, body, self._settings, self._topics, now)
            # Only an accepted request must survive a power cut: everything else would be repeated.
            with self._store.writing(durable=True) as rows:
                state = rows.state(request.subscriber, now)
                if old := state.subscription:  # exempt from limits; the lease may end meanwhile
                    who = replace(request.subscriber, network=old.subscriber.network)
                    request = replace(request, subscriber=who, base_digest=old.delivered_digest)
                else:
                    self._admit(request, rows, now)
                others = (one for one in state.requests if one.mode != request.mode)
                rows.save(state, replace(state, requests=(*others, request)))
        except RequestRefused as refused:
            return refused.answer
        except StoreFault:
            return RequestRefused(503, "requests cannot be stored at present", 60).answer
        log_event(request, f"{request.mode} requested")
        self._wake.set()
        return HubAnswer(202, "accepted; the callback will now be asked to confirm")

    def counts(self) -> dict[str, int]:
        """How many subscriptions are active, failing and behind, and requests pending; {} without a store.

        As of the scheduler's last poll, so that no request waits for the disk.
        """
        return {} if self.trouble() else self._counts

    def trouble(self) -> str | None:
        """Why nothing can be stored at present, None when it can."""
        return self._store.trouble

    def _digests(self) -> dict[str, str]:
        """The digest of each topic, by its path."""
        return {path: topic.digest for path, topic in self._topics.items()}

    def _admit(self, request: PendingRequest, rows: Transaction, now: float) -> None:
        """Raise RequestRefused when this request of a stranger reaches a limit."""
        who, running_time = request.subscriber, self._running_time()
        network = self._networks.get(who.host)
        usage = rows.usage(replace(who, network=network), now)
        backoffs = self._backoffs.copy().values()  # of which requests alone have attempts
        unanswered = [each.row_id for each in backoffs if each.attempts and running_time < each.until]
        if usage.is_full and rows.evict(who.domain, unanswered):
            usage = usage._replace(pending=usage.pending - 1)
        of_domain = self._domain_rate.count(who.domain, running_time)
        of_network = self._network_rate.count(network or "", running_time)
        admit(request.mode, usage, of_domain, of_network, self._settings.max_subscriptions)

    # The scheduler's thread.

    def _schedule(self) -> None:
        upkeep = [self._store.keep_open, self.prune, self.delete_expired, self.refresh_counts]
        upkeep_at = -math.inf
        while not self._stopping.is_set():
            began, steps = time.monotonic(), [self._start_due]
            if began - upkeep_at >= POLL_SECONDS:
                steps, upkeep_at = upkeep + steps, began
            try:
                for step in steps:
                    with suppress(StoreFault):  # which the store logs
                        step()
            except Exception:
                log.exception("the hub's scheduler met an unexpected error and goes on")
            # Events may be frequent: at most half of the time is spent on this.
            self._stopping.wait(time.monotonic() - began)
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()

    def _start_due(self) -> None:
        # The lock keeps a worker from ending between the two steps: its row is either running or up to date.
        with self._running_lock:
            for exchange in self.due(list(self._running.values())):
                worker = threading.Thread(target=self._work, args=(exchange,), name="hub-worker", daemon=True)
                try:
                    worker.start()
                except RuntimeError as error:
                    if self._running_time() - self._thread_error_at >= OWN_FAULT_SECONDS:
                        self._thread_error_at = self._running_time()
                        log.error("the hub can start no thread, and tries again each second: %s", error)
                    return
                self._running[worker] = exchange

    def due(self, running: Iterable[Exchange] = ()) -> Iterator[Exchange]:
        """The exchanges to start beside those that run, in the order of their turns. Raises StoreFault.

        In a lane, requests not yet tried in vain come first, and of these the limit keys without a worker.
        """
        running, workers = list(running), self._settings.workers
        now, backoffs = self._running_time(), self._backoffs.copy()
        waiting = {who for who, each in backoffs.items() if now < each.until}
        tried = waiting.union(who for who, each in backoffs.items() if each.attempts)
        recent = self._domain_rate.active_keys(now)
        with self._store.reading() as rows:
            for lane in LANES:
                skipped = (tried, waiting) if lane == "verification" else (waiting,)
                for subscribers, limit in product(skipped, (1, max_workers_per_key(workers))):
                    others = recent if lane == "verification" and limit == 1 else set()
                    while has_free_worker(running, lane, workers):
                        found = self._found(rows, lane, keys_at_limit(running, limit) | others, subscribers)
                        if (exchange := first_startable(found, running, limit)) is None:
                            break
                        running.append(exchange)
                        yield exchange

    def _found(
        self, rows: Transaction, lane: str, limit_keys: set[str], subscribers: set[tuple[str, bool]]
    ) -> Iterator[Exchange]:
        """The due exchanges of a lane but those of these limit keys and subscribers, read one by one."""
        now, longest_delay = self._clock(), max(self._settings.retry_delays) * (1 + RETRY_JITTER)
        set_back = now + max(longest_delay, MAX_RETRY_AFTER_SECONDS)  # nothing backs off for longer
        no_content, no_request = (
            Excluded(limit_keys, {key for key, is_request in subscribers if is_request == kind})
            for kind in (False, True)
        )
        requests = partial(rows.requests, no_request)
        behind = partial(rows.behind, no_content, self._digests(), now)
        found: dict[str, list[Iterator[Row]]] = {
            "renewal": [requests("of subscribers")],
            "verification": [requests("of strangers")],
            "delivery": [behind(-1.0, 0.0)],
            "retry": [requests("of slow subscribers"), behind(0.0, now), behind(set_back, math.inf)],
            "notice": [requests("notices")],
        }
        for row in chain(*found[lane]):
            who = row.subscriber
            yield Exchange(row, lane, self._networks.get(who.host) or who.network or who.domain)

    def refresh_counts(self) -> None:
        """Count anew. Raises StoreFault."""
        with self._store.reading() as rows:
            self._counts = rows.counts(self._digests(), self._clock())

    def delete_expired(self) -> None:
        """Delete subscriptions that expired long ago, or whose room is needed. Raises StoreFault."""
        now = self._running_time()
        with self._store.reading() as rows:
            expired, excess = rows.expired(self._clock()), rows.rows() - self._settings.max_subscriptions
        self._expired_since = {row_id: self._expired_since.get(row_id, now) for row_id in expired}
        old = [row_id for row_id, at in self._expired_since.items() if now - at >= EXPIRED_ROW_SECONDS]
        for row_id in {*expired[: max(0, excess)], *old}:
            with self._store.writing() as rows:
                found = rows.subscriptions("WHERE id = ? AND expires_at <= ?", row_id, self._clock())
                if row := next(found, None):
                    rows.save(SubscriptionState(row), SubscriptionState())
                    log_event(row, "lease ended")

    def prune(self) -> None:
        """Drop backoffs and counts that are over, so that the memory that they take is bounded."""
        now = self._running_time()
        for who, backoff in self._backoffs.copy().items():
            if now > backoff.until + MAX_OWN_FAULT_SECONDS:
                self._backoffs.pop(who, None)
        self._network_rate.active_keys(now)

    # The workers' threads, one for each exchange.

    def _work(self, exchange: Exchange) -> None:
        try:
            self.perform(exchange)
        except Exception:
            log.exception("a job of the hub failed unexpectedly")
            # Until then the row counts as running: it would be due again at once.
            self._stopping.wait(own_fault_seconds(self._settings.retry_delays))
        finally:
            with self._running_lock:
                del self._running[threading.current_thread()]
            self._wake.set()

    def perform(self, exchange: Exchange) -> None:
        """Make an exchange that is due, and store the result."""
        row = exchange.row
        with suppress(NetworkLimitReached):
            if isinstance(row, PendingRequest):
                self._verify(exchange, row)
            elif (topic := self._topics.get(row.subscriber.path)) and topic.digest != row.delivered_digest:
                self._deliver(exchange, row, topic)

    def _verify(self, exchange: Exchange, request: PendingRequest) -> None:
        who, challenge, sent_at = request.subscriber, secrets.token_urlsafe(32), self._clock()
        is_stranger, backoff = who.network is None, self._backoffs.get((who.key, True))
        if is_stranger and backoff and backoff.is_exhausted(request, self._running_time(), own_fault=False):
            response = CallbackResponse(None, "no answer in time")  # and no worker for another attempt
        else:
            if is_stranger:
                self._domain_rate.add(who.domain, self._running_time())
            response = self._exchange(exchange, verification(request, challenge, self._settings.timeout / 2))
            if response.is_silence:
                seconds = own_fault_seconds(self._settings.retry_delays)
                backoff = self._back_off(request, seconds / 2 if is_stranger else seconds, is_attempt=True)
                if not backoff.is_exhausted(request, self._running_time(), response.own_fault):
                    self._record(request, sent_at, response, lambda _, state: Transition(state))
                    return
        confirmed = response.is_success and response.body == challenge.encode("ascii")  # REC 5.3.1
        if confirmed and response.network != who.network:
            self._network_rate.take_back(response.network)
        if is_stranger:
            self._backoffs.pop((who.key, True), None)
            if confirmed:
                self._domain_rate.take_back(who.domain)
        elif not confirmed and request.mode != "denied":
            # Renewals are exempt from limits; failed ones are throttled instead.
            self._back_off(request, UNVERIFIED_SECONDS / MAX_UNVERIFIED)

        def decide(rows: Transaction, state: SubscriptionState) -> Transition:
            full = ""
            if confirmed:  # all else would count for nothing, while the store is locked
                usage = rows.usage(replace(who, network=response.network), sent_at)
                full = exhausted_quota(usage, self._settings.max_subscriptions)
            return after_verification(state, request, response, confirmed, sent_at, full)

        self._record(request, sent_at, response, decide)

    def _back_off(self, row: Row, seconds: float, is_attempt: bool = False) -> Backoff:
        """Send this subscriber no request, or no content, for so long."""
        now, who = self._running_time(), row.subscriber
        key = who.key, isinstance(row, PendingRequest)
        before = self._backoffs.get(key)
        if before is None or before.row_id != row.id or not before.attempts:
            before = Backoff(row.id, 0, now, now)
        until = now + seconds
        if who.network is None:  # a stranger's request is dropped in time even if it gets no worker
            until = min(until, before.first_at + ATTEMPTS_SECONDS)
        self._backoffs[key] = before._replace(attempts=before.attempts + is_attempt, until=until)
        return self._backoffs[key]

    def _deliver(self, exchange: Exchange, subscription: Subscription, topic: Topic) -> None:
        sent_at = self._clock()
        response = self._exchange(exchange, notification(subscription, topic, self._settings))
        if response.is_success and response.network != subscription.subscriber.network:
            self._network_rate.take_back(response.network)
        jitter = random.random()  # noqa: S311 - it spreads load and guards nothing
        now, delays = self._clock(), self._settings.retry_delays

        def decide(_: Transaction, state: SubscriptionState) -> Transition:
            return after_delivery(state, subscription, topic.digest, response, now, delays, jitter)

        self._record(subscription, sent_at, response, decide)

    def _exchange(self, exchange: Exchange, request: CallbackRequest) -> CallbackResponse:
        """What the callback answers. Raises NetworkLimitReached."""
        began = self._running_time()
        try:
            response = self._send(request, lambda network: self._check_network(exchange, network))
        except NetworkLimitReached:
            raise
        except Exception:
            log.exception("an exchange with a callback failed unexpectedly")
            return CallbackResponse(None, "error in the hub", is_silence=True, own_fault=True)
        return replace(response, seconds=self._running_time() - began)

    def _check_network(self, exchange: Exchange, network: str) -> None:
        """Count an exchange under the network of its callback, now known. Raises NetworkLimitReached."""
        who, now = exchange.row.subscriber, self._running_time()
        if len(self._networks) >= MAX_CACHED_NETWORKS:
            self._networks = {}
        self._networks[who.host] = network
        with self._running_lock:
            if threading.current_thread() in self._running:
                self._running[threading.current_thread()] = exchange._replace(limit_key=network)
            workers = sum(one.limit_key == network for one in self._running.values())
        if workers > max_workers_per_key(self._settings.workers):
            raise NetworkLimitReached
        if network != who.network:  # where it has confirmed nothing, it may be sent to somebody else
            if self._network_rate.count(network, now) >= MAX_UNVERIFIED:
                self._back_off(exchange.row, UNVERIFIED_SECONDS)
                raise NetworkLimitReached
            self._network_rate.add(network, now)

    def _record(self, row: Row, sent_at: float, response: CallbackResponse, decide: Decide) -> None:
        """Store the new state. A lease that ended after the exchange was `sent_at` counts as active.

        While the store cannot be written, the worker waits and nothing is repeated. If the hub stops
        meanwhile, nothing is stored and the exchange is repeated after the next start.
        """
        while True:
            try:
                with self._store.writing() as rows:
                    before = rows.state(row.subscriber, sent_at)
                    after, line, level = decide(rows, before)
                    rows.save(before, demoted_if_slow(after, response.seconds))
                break
            except StoreFault:
                if self._stopping.wait(POLL_SECONDS):
                    return
        if line:
            log_event(row, line, level)


def callback_client(settings: HubSettings) -> CallbackClient:
    """The HTTPS client for these settings. Logs those that are for tests only. Raises OSError."""
    if settings.allow_private:
        log.warning("hub: PRIVATE ADDRESSES AND ALL PORTS ARE ALLOWED FOR CALLBACKS; for labs only")
    if settings.ca_file is not None:
        log.warning("hub: certificates in %s are trusted for callbacks; for labs only", settings.ca_file)
    own_host = urlsplit(settings.base_url).hostname or ""
    return CallbackClient(
        settings.user_agent, settings.ca_file, allow_private=settings.allow_private, own_host=own_host
    )


def log_event(row: Row, line: str, level: int = logging.INFO) -> None:
    log.log(level, "hub %s %s: %s", row.subscriber.path, row.subscriber.host, line)
