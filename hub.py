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
import random
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, urlencode

from callbacks import CallbackClient, CallbackRequest, CallbackResponse
from hub_store import Store, StoreFault
from hub_values import (
    FAILURES_THAT_REMOVE,
    MAX_UNVERIFIED_PER_NETWORK,
    HubAnswer,
    HubSettings,
    PendingRequest,
    RequestRefused,
    Row,
    Subscription,
    SubscriptionState,
    Topic,
    admit,
    read_subscription_request,
)
from links import topic_link_header

MAX_NOTICES = 1000  # that wait; when more callbacks are removed at once, the others are not told
UNCONFIRMED_SECONDS = 60.0
MAX_NETWORKS = 20_000  # that are remembered, each for one host

RETRY_JITTER = 0.2  # a retry is up to this share later, so that failures with one cause spread out
MAX_RETRY_AFTER_SECONDS = 3600.0
OWN_FAULT_SECONDS = 60.0  # until what this machine could not send is tried again
MAX_OWN_FAULT_SECONDS = 3600.0  # until a request that it could not verify is dropped

# A subscription whose lease has ended is ignored at once, but its row is kept for a day of running time: a
# clock that jumps and is put right has ended nothing.
ENDED_ROW_SECONDS = 86400.0

TICK_SECONDS = 1.0  # how often the scheduler looks for retries, and a worker tries a busy store again

log = logging.getLogger(__name__)


# ---- Transitions: what may happen to a subscription, and what follows --------------------------------------
#
# An accepted request replaces an earlier pending one and changes nothing else until it is verified (REC 5.1).
# The end of a lease is no event: the store does not return a subscription whose lease has ended.

Transition: TypeAlias = tuple[SubscriptionState, str]  # the new state, and a line for the log if it changed


def verification_ended(
    state: SubscriptionState,
    request: PendingRequest,
    response: CallbackResponse,
    confirmed: bool,
    sent_at: float,
) -> Transition:
    """The state after the verification, or the notice of removal, that `request` stands for.

    A lease begins when the verification was sent (REC 5.3). A renewal keeps the delivered digest, so that no
    content is repeated and no change is skipped. It keeps failures and waiting time, too, or a callback that
    fails could renew itself to the front.
    """
    if state.pending is None or state.pending.id != request.id:
        return state, ""  # replaced by a newer request, which gets its own challenge
    if request.mode == "denied":
        return replace(state, pending=None), f"denied notice: {response.outcome}"
    if not confirmed:
        reason = f"{response.outcome} without the challenge" if response.is_success else response.outcome
        return replace(state, pending=None), f"{request.mode} not confirmed: {reason}"
    line = f"{request.mode} confirmed: {response.outcome}"
    if request.mode == "unsubscribe":
        return SubscriptionState(), line
    who, secret, expires_at = request.subscriber, request.secret, sent_at + request.lease_seconds
    old = state.subscription or Subscription(None, who, secret, sent_at, expires_at, request.base_digest)
    return SubscriptionState(replace(old, subscriber=who, secret=secret, expires_at=expires_at)), line


def delivery_ended(
    state: SubscriptionState,
    subscription: Subscription,
    digest: str,
    response: CallbackResponse,
    now: float,
    retry_delays: Sequence[float],
    jitter: float,
) -> Transition:
    """The state after an attempt to deliver the content with this digest (REC 7). The jitter is 0 to 1.

    A later change of the content shortens no delay.
    """
    old = state.subscription
    if old is None or old.id != subscription.id:
        return state, ""  # the subscription ended meanwhile
    tried = replace(old, last_attempt_at=now, last_outcome=response.outcome)
    content = f"content {digest[:12]}"
    if response.own_fault:
        new = replace(tried, next_attempt_at=now + own_fault_seconds(retry_delays))
        return replace(state, subscription=new), f"{content} postponed: {response.outcome}"
    if response.is_success:
        new = replace(tried, delivered_digest=digest, failures=0, next_attempt_at=0.0)
        return replace(state, subscription=new), f"{content} delivered: {response.outcome}"
    if response.status == 410:
        return replace(state, subscription=None), f"{content} gone: {response.outcome}"

    failures = old.failures + 1
    line = f"delivery failed, {failures} of {FAILURES_THAT_REMOVE}"
    if failures == FAILURES_THAT_REMOVE:
        # REC 7 keeps it until the lease ends, but REC 5.2 permits to deny it at any time with a notice. A
        # pending request to subscribe needs no notice, since its verification follows.
        asks_anew = state.pending is not None and state.pending.mode == "subscribe"
        notice = PendingRequest(None, old.subscriber, "denied", None, 0, "", now)
        pending = state.pending if asks_anew else notice
        return SubscriptionState(None, pending), f"{line}, removed: {response.outcome}"
    delay_seconds = retry_delays[old.failures] * (1 + RETRY_JITTER * jitter)
    wait_seconds = max(delay_seconds, asked_wait_seconds(response, now))
    new = replace(tried, failures=failures, next_attempt_at=now + wait_seconds)
    return replace(state, subscription=new), f"{line}: {response.outcome}"


def own_fault_seconds(retry_delays: Sequence[float]) -> float:
    """The delay after a fault of this machine: a minute, or less where retries are quicker."""
    return min(OWN_FAULT_SECONDS, retry_delays[0])


def asked_wait_seconds(response: CallbackResponse, now: float) -> float:
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
        failed = f"{FAILURES_THAT_REMOVE} deliveries in a row failed"
        parameters["hub.reason"] = f"{failed}; subscribe again to resume"
    else:
        parameters["hub.challenge"] = challenge
    if request.mode == "subscribe":
        parameters["hub.lease_seconds"] = str(request.lease_seconds)
    # REC 5.1.1: the callback's own query stays exactly as it is.
    callback = request.subscriber.callback
    joint = "?" if "?" not in callback else "" if callback.endswith(("?", "&")) else "&"
    url = callback + joint + urlencode(parameters, quote_via=quote, safe="")
    # One byte more than the challenge, so that an answer that only begins with it is recognized.
    return CallbackRequest("GET", url, {}, None, timeout_seconds, len(challenge) + 1)


def notification(subscription: Subscription, topic: Topic, settings: HubSettings) -> CallbackRequest:
    """The POST that delivers the content (REC 7), with a signature if the subscriber gave a secret."""
    headers = {"Content-Type": topic.content_type, "Link": topic_link_header(settings.base_url, topic.path)}
    if subscription.secret is not None:
        headers["X-Hub-Signature"] = "sha256=" + hmac.digest(subscription.secret, topic.body, "sha256").hex()
    return CallbackRequest("POST", subscription.subscriber.callback, headers, topic.body, settings.timeout, 0)


# ---- Scheduling: what to do next ---------------------------------------------------------------------------

# Lanes in order of urgency, with the share of the workers that each may use. Only first attempts to deliver
# may use all workers, and at least an eighth of eight or more is always left to them: neither requests of
# strangers nor callbacks that fail delay a working subscriber, or each other.
LANES = {"renewal": 1 / 8, "verification": 3 / 8, "delivery": 1, "retry": 1 / 4, "notice": 1 / 8}
MAX_WORKERS_PER_PLACE = 4


class Exchange(NamedTuple):
    """The exchange that is due for a row."""

    row: Row
    lane: str
    place: str  # whose share of the workers it takes: a network, or the domain of an unresolved host


def lane_of(row: Row, renewals: Collection[tuple[str, str]]) -> str:
    """The lane of the exchange that is due for a row; `renewals` are the keys of `Transaction.renewals`."""
    if isinstance(row, Subscription):
        return "retry" if row.next_attempt_at else "delivery"
    if row.mode == "denied":
        return "notice"
    return "renewal" if row.subscriber.key in renewals else "verification"


def is_due(subscription: Subscription, now: float, retry_delays: Sequence[float]) -> bool:
    """Whether the delay before the next attempt is over, or was computed before the clock was set back."""
    longest_wait_seconds = max(max(retry_delays) * (1 + RETRY_JITTER), MAX_RETRY_AFTER_SECONDS)
    return not now < subscription.next_attempt_at <= now + longest_wait_seconds


def in_turn(due: Iterable[Exchange], running: Collection[Exchange]) -> list[Exchange]:
    """By lane, then by how many of the same place run or come before: many callbacks do not delay others."""
    taken = Counter((exchange.lane, exchange.place) for exchange in running)

    def turn(exchange: Exchange) -> tuple[int, int]:
        taken[exchange.lane, exchange.place] += 1
        return list(LANES).index(exchange.lane), taken[exchange.lane, exchange.place]

    return sorted(due, key=turn)


def workers_per_place(workers: int) -> int:
    """How many of the workers may be busy with one place."""
    return max(1, min(MAX_WORKERS_PER_PLACE, workers // 4))


def startable(due: Iterable[Exchange], running: Collection[Exchange], workers: int) -> Iterator[Exchange]:
    """The due exchanges, in their order, for which there is a worker: one a subscriber, few a place."""
    max_per_lane = {lane: max(1, int(share * workers)) for lane, share in LANES.items()}
    keys = {exchange.row.subscriber.key for exchange in running}
    places = Counter(exchange.place for exchange in running)
    lanes = Counter(exchange.lane for exchange in running)
    for exchange in due:
        row, lane, place = exchange
        has_room = places[place] < workers_per_place(workers) and lanes[lane] < max_per_lane[lane]
        if has_room and row.subscriber.key not in keys and lanes.total() < workers:
            keys.add(row.subscriber.key)
            places[place] += 1
            lanes[lane] += 1
            yield exchange


class Wait(NamedTuple):
    """How long no request of a subscriber is verified, in running time."""

    since: float  # when the request with this id began to wait
    until: float
    request_id: int | None


# ---- Hub: the interface for the service, and the threads ---------------------------------------------------


class TurnedAway(Exception):
    """The network of a callback has all the workers, or all the unconfirmed requests, that it may have."""


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
        self._networks: dict[str, str] = {}  # by host, of the address that was tried last
        self._unconfirmed: deque[tuple[str, float]] = deque(maxlen=10_000)  # the networks, in running time
        self._waits: dict[tuple[str, str], Wait] = {}  # by the key of the subscriber
        self._ended_at: dict[int, float] = {}  # when first seen, in running time, by the subscription's id
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
            # Only an accepted request must survive a power cut: all else is found out again.
            with self._store.writing(durable=True) as rows:
                state = rows.state(request.subscriber, now)
                if state.subscription:  # no limit concerns it; its lease may end before the verification
                    request = replace(request, base_digest=state.subscription.delivered_digest)
                else:
                    network, hosts = self._neighbourhood(request.subscriber.host)
                    taken = rows.occupancy(request.subscriber, hosts, now)
                    admit(
                        request.mode, taken, self._unconfirmed_of(network), self._settings.max_subscriptions
                    )
                rows.save(state, replace(state, pending=request))
        except RequestRefused as refused:
            return refused.answer
        except StoreFault:
            return RequestRefused(503, "requests cannot be stored at present", 60).answer
        log_event(request, f"{request.mode} requested")
        self._wake.set()
        return HubAnswer(202, "accepted; the callback will now be asked to confirm")

    def counts(self) -> dict[str, int]:
        """How many subscriptions are active, failing and behind, and requests pending; {} without a store.

        As of the scheduler's last look, so that nobody waits for the disk.
        """
        return {} if self.trouble() else self._counts

    def trouble(self) -> str | None:
        """Why nothing can be stored at present, None when it can."""
        return self._store.trouble

    def _digests(self) -> dict[str, str]:
        return {path: topic.digest for path, topic in self._topics.items()}

    def _neighbourhood(self, host: str) -> tuple[str, list[str]]:
        """The network of `host`, and all hosts that are known to be in it. An unknown host is alone."""
        networks = self._networks.copy()
        network = networks.setdefault(host, host)
        return network, [name for name, known in networks.items() if known == network]

    def _unconfirmed_of(self, network: str) -> int:
        """How many verifications it has not confirmed lately."""
        start = self._running_time() - UNCONFIRMED_SECONDS
        return sum(each == network and at > start for each, at in self._unconfirmed.copy())

    # The scheduler's thread.

    def _schedule(self) -> None:
        while not self._stopping.is_set():
            looked_at = time.monotonic()
            try:
                self._store.keep_open()
                for step in (self.delete_ended, self.refresh_counts, self._start_due):
                    with suppress(StoreFault):  # which the store logs
                        step()
            except Exception:
                log.exception("the hub's scheduler met an unexpected error and goes on")
            # Events may be frequent, and thousands of rows due: at most half of the time is spent on this.
            self._stopping.wait(time.monotonic() - looked_at)
            self._wake.wait(TICK_SECONDS)
            self._wake.clear()

    def _start_due(self) -> None:
        # The lock keeps a worker from ending between the two steps: its row is either running or up to date.
        with self._running_lock:
            for exchange in startable(self.due(), list(self._running.values()), self._settings.workers):
                worker = threading.Thread(target=self._work, args=(exchange,), name="hub-worker", daemon=True)
                worker.start()
                self._running[worker] = exchange

    def due(self) -> list[Exchange]:
        """The exchanges that are due, in the order of their turns. Raises StoreFault."""
        now, delays, running_time = self._clock(), self._settings.retry_delays, self._running_time()
        with self._store.reading() as rows:
            requests, renewals = rows.pending(), rows.renewals(now)
            behind = [row for row in rows.behind(self._digests(), now) if is_due(row, now, delays)]
        waits = self._waits.copy()
        waiting = {key for key, wait in waits.items() if running_time < wait.until}
        for key in waits.keys() - waiting - {request.subscriber.key for request in requests}:
            del self._waits[key]

        def exchange(row: Row) -> Exchange:
            # One wildcard record answers for all names of a domain: unresolved, they share one place.
            domain = ".".join(row.subscriber.host.rsplit(".", 2)[-2:])
            return Exchange(row, lane_of(row, renewals), self._networks.get(row.subscriber.host, domain))

        due: list[Row] = [*(row for row in requests if row.subscriber.key not in waiting), *behind]
        return in_turn(map(exchange, due), list(self._running.values()))

    def refresh_counts(self) -> None:
        """Count anew. Raises StoreFault."""
        with self._store.reading() as rows:
            self._counts = rows.counts(self._digests(), self._clock())

    def delete_ended(self) -> None:
        """Delete subscriptions that ended long ago, or whose place is needed. Raises StoreFault."""
        now = self._running_time()
        with self._store.reading() as rows:
            ended, excess = rows.ended(self._clock()), rows.rows() - self._settings.max_subscriptions
        self._ended_at = {row_id: self._ended_at.get(row_id, now) for row_id in ended}
        old = [row_id for row_id, at in self._ended_at.items() if now - at >= ENDED_ROW_SECONDS]
        for row_id in {*ended[: max(0, excess)], *old}:
            with self._store.writing() as rows:
                for row in rows.subscriptions("WHERE id = ? AND expires_at <= ?", row_id, self._clock()):
                    rows.save(SubscriptionState(row), SubscriptionState())
                    log_event(row, "lease ended")

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
        with suppress(TurnedAway):
            if isinstance(row, PendingRequest):
                self._verify(exchange, row)
            elif (topic := self._topics.get(row.subscriber.path)) and topic.digest != row.delivered_digest:
                self._deliver(exchange, row, topic)

    def _verify(self, exchange: Exchange, request: PendingRequest) -> None:
        challenge, sent_at = secrets.token_urlsafe(32), self._clock()
        response = self._exchange(exchange, verification(request, challenge, self._settings.timeout / 2))
        delay_seconds = own_fault_seconds(self._settings.retry_delays)
        if response.own_fault and self._wait(request, delay_seconds) < MAX_OWN_FAULT_SECONDS:
            return
        confirmed = response.is_success and response.body == challenge.encode("ascii")  # REC 5.3.1
        if not confirmed and request.mode != "denied":
            host = request.subscriber.host
            self._unconfirmed.append((self._networks.get(host, host), self._running_time()))
        if not confirmed and exchange.lane == "renewal":  # no limit refuses renewals, so they take their time
            self._wait(request, UNCONFIRMED_SECONDS / MAX_UNVERIFIED_PER_NETWORK)
        self._record(
            request, sent_at, lambda state: verification_ended(state, request, response, confirmed, sent_at)
        )

    def _wait(self, request: Row, seconds: float) -> float:
        """Verify no request of this subscriber for so long. Returns how long this one has waited already."""
        now, key = self._running_time(), request.subscriber.key
        before = self._waits.get(key)
        since = before.since if before and before.request_id == request.id else now
        self._waits[key] = Wait(since, now + seconds, request.id)
        return now - since

    def _deliver(self, exchange: Exchange, subscription: Subscription, topic: Topic) -> None:
        sent_at = self._clock()
        response = self._exchange(exchange, notification(subscription, topic, self._settings))
        jitter = random.random()  # noqa: S311 - it spreads load and guards nothing
        now, delays = self._clock(), self._settings.retry_delays
        self._record(
            subscription,
            sent_at,
            lambda state: delivery_ended(state, subscription, topic.digest, response, now, delays, jitter),
        )

    def _exchange(self, exchange: Exchange, request: CallbackRequest) -> CallbackResponse:
        """What the callback answers. Raises TurnedAway."""
        try:
            return self._send(request, lambda network: self._enter(exchange, network))
        except TurnedAway:
            raise
        except Exception:
            log.exception("an exchange with a callback failed unexpectedly")
            return CallbackResponse(None, "error in the hub", own_fault=True)

    def _enter(self, exchange: Exchange, network: str) -> None:
        """Take a place in the network of a callback, which is now known. Raises TurnedAway."""
        host = exchange.row.subscriber.host
        if len(self._networks) >= MAX_NETWORKS:
            self._networks = {}
        self._networks[host] = network
        with self._running_lock:
            if threading.current_thread() in self._running:
                self._running[threading.current_thread()] = exchange._replace(place=network)
            places = Counter(each.place for each in self._running.values())
        if places[network] > workers_per_place(self._settings.workers):
            raise TurnedAway
        if exchange.lane == "verification" and self._unconfirmed_of(network) >= MAX_UNVERIFIED_PER_NETWORK:
            self._wait(exchange.row, UNCONFIRMED_SECONDS)
            raise TurnedAway

    def _record(
        self, row: Row, sent_at: float, transition: Callable[[SubscriptionState], Transition]
    ) -> None:
        """Store the new state. A lease that ended after the exchange was `sent_at` counts as active.

        While the store cannot be written, the worker waits and nothing is repeated. If the hub stops
        meanwhile, nothing is stored and the exchange is repeated after the next start.
        """
        while True:
            try:
                with self._store.writing() as rows:
                    before = rows.state(row.subscriber, sent_at)
                    then, line = transition(before)
                    if then.pending and then.pending.mode == "denied" and rows.notices() >= MAX_NOTICES:
                        then = replace(then, pending=None)
                    rows.save(before, then)
                break
            except StoreFault:
                if self._stopping.wait(TICK_SECONDS):
                    return
        if line:
            log_event(row, line)


def callback_client(settings: HubSettings) -> CallbackClient:
    """The HTTPS client for these settings. Logs those that are for tests only. Raises OSError."""
    if settings.allow_private:
        log.warning("hub: PRIVATE ADDRESSES AND ALL PORTS ARE ALLOWED FOR CALLBACKS; for labs only")
    if settings.ca_file is not None:
        log.warning("hub: certificates in %s are trusted for callbacks; for labs only", settings.ca_file)
    return CallbackClient(settings.user_agent, settings.ca_file, allow_private=settings.allow_private)


def log_event(row: Row, line: str) -> None:
    log.info("hub %s %s: %s", row.subscriber.path, row.subscriber.host, line)
