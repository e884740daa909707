"""A WebSub hub (W3C Recommendation of 2018-01-23, "REC" below) for topics that this process publishes itself.

A subscriber asks by a form POST, the hub verifies the request with a challenge to the callback, and from
then on delivers every new content of the topic, whole. There is no queue: a subscription is a row with the
digest of the content that the callback has, and is due while the topic's digest is another one. Therefore a
crash loses nothing, several changes during a slow delivery become one, and content is only delivered twice
when it is unknown whether it came.

This module must not know the content of a topic or how it is made (topics arrive as values), nor the HTTP
server that carries its answers. A callback's URL may be a secret: the log names its host only.

Everything above *Hub* is pure: it has no socket, file, thread or clock; time is an argument.
All moments (`now`, `..._at`) are seconds since the epoch, all durations seconds.

Sections, in order: Transitions - Exchanges - Memory - Hub
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
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from reviewslib.links import topic_link_header
from reviewslib.websub.callbacks import CallbackClient, CallbackRequest, CallbackResponse
from reviewslib.websub.store import DueRow, Store, StoreFault, Transaction
from reviewslib.websub.values import (
    HubAnswer,
    HubSettings,
    PendingRequest,
    RequestRefused,
    Row,
    Subscription,
    SubscriptionState,
    Topic,
    denial,
    read_subscription_request,
)

MAX_FAILURES = 3  # in a row: of deliveries they remove a subscription, of verifications a request
RETRY_JITTER = 0.2  # a retry is up to this share later, so that failures with one cause spread out
MAX_RETRY_AFTER_SECONDS = 3600.0
OWN_FAULT_SECONDS = 60.0  # until what this machine could not send is tried again
QUOTA_SHARE = 10  # a network and a domain may each have one of so many subscriptions

STRANGER_SECONDS, SUBSCRIBER_SECONDS = 120.0, 3600.0  # until a request that nobody answers is dropped
MAX_RENEWALS = 50  # of a subscriber, in a minute and of each mode
MAX_TRIES = 50  # of strangers' requests at a network, in a minute
BUSY_SECONDS, HAMMERED_SECONDS = 1.0, 20.0  # until the next try where no worker is free, or no try is left

POLL_SECONDS = 1.0  # how often the hub looks for retries, and a worker tries a busy store again
LOOKING_SHARE = 0.1  # of the time may be spent on looking for what is due

log = logging.getLogger(__name__)


# ---- Transitions: what may happen to a subscription, and what follows --------------------------------------
#
# An accepted request replaces an earlier one of its mode and changes nothing else until it is verified (REC
# 5.1). Requests of both modes wait side by side, since a stranger may send either.


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
    usage: Sequence[int],
    max_subscriptions: int,
) -> Transition:
    """The state after the verification, or the notice, of `request`, which was answered or is given up.

    A lease begins when the verification was sent (REC 5.3). A renewal keeps what the callback has, so that no
    content is repeated and no change is skipped. It keeps failures, backoff and turn, too, or a bad callback
    could buy a better place by renewing.
    """
    old = state.subscription and state.subscription._replace(took=response.seconds)
    state = state._replace(subscription=old)
    waiting = [one.id for one in state.requests if one.mode == request.mode]
    # A newer request that replaced this one gets a challenge of its own, but what is confirmed counts.
    if not waiting or (request.id not in waiting and not confirmed):
        return Transition(state)
    if not confirmed:
        left = state._replace(requests=tuple(one for one in state.requests if one.id != request.id))
        reason = f"{response.outcome} without the challenge" if response.is_success else response.outcome
        is_notice = request.mode == "denied"
        line = (
            f"denied notice: {response.outcome}" if is_notice else f"{request.mode} not confirmed: {reason}"
        )
        return Transition(left, line)

    line, who = f"{request.mode} confirmed: {response.outcome}", request.subscriber
    newer = tuple(one for one in state.requests if (one.id or 0) > (request.id or 0))
    if request.mode == "unsubscribe":
        return Transition(SubscriptionState(None, newer), line)
    who = who._replace(network=response.network)
    if not old and (full := exhausted_quota(usage, max_subscriptions)):
        notice = denial(who, f"there are too many {full}", sent_at)
        return Transition(SubscriptionState(None, (notice, *newer)), f"{line}, denied: too many {full}")
    began = Subscription(
        None, who, None, request.digest, usage[1], sent_at, 0.0, sent_at, 0, response.seconds
    )
    expires_at = sent_at + request.lease_seconds
    renewed = (old or began)._replace(subscriber=who, secret=request.secret, expires_at=expires_at)
    # Requests that came meanwhile are no stranger's any more.
    newer = tuple(one._replace(subscriber=one.subscriber._replace(network=who.network)) for one in newer)
    return Transition(SubscriptionState(renewed, newer), line)


def next_try(
    request: PendingRequest, own_fault: bool, sent_at: float, retry_delays: Sequence[float]
) -> PendingRequest | None:
    """The request as it waits for the next try after one that was not answered; None after the last.

    An outage of this machine is waited out for subscribers, not for strangers.
    """
    is_excused, pause_seconds = own_fault and not request.is_of_stranger, own_fault_seconds(retry_delays)
    failures = request.failures + (not is_excused)
    if failures == MAX_FAILURES or (request.mode == "denied" and not is_excused):
        return None
    longest_seconds = STRANGER_SECONDS if request.is_of_stranger else SUBSCRIBER_SECONDS
    expires_at = min(request.expires_at, sent_at + longest_seconds)
    due_at = sent_at + (pause_seconds / 2 if request.is_of_stranger else pause_seconds)
    return request._replace(failures=failures, due_at=due_at, expires_at=expires_at)


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
    tried = old._replace(tried_at=now, outcome=response.outcome, took=response.seconds)
    content = f"content {digest[:12]}"
    if response.own_fault:
        new = tried._replace(due_at=now + own_fault_seconds(retry_delays))
        return Transition(state._replace(subscription=new), f"{content} postponed: {response.outcome}")
    if response.is_success:
        new = tried._replace(digest=digest, failures=0, due_at=now)
        return Transition(state._replace(subscription=new), f"{content} delivered: {response.outcome}")
    if response.status == 410:
        removed = state._replace(subscription=None)
        return Transition(removed, f"{content} gone, removed: {response.outcome}", logging.WARNING)

    failures = old.failures + 1
    line = f"delivery failed, {failures} of {MAX_FAILURES}"
    if failures == MAX_FAILURES:
        # REC 7 keeps it until the lease ends, but REC 5.2 permits to deny it at any time with a notice. A
        # pending request to subscribe needs no notice, since its verification follows.
        anew = tuple(one for one in state.requests if one.mode == "subscribe")
        reason = f"{MAX_FAILURES} deliveries in a row failed; subscribe again to resume"
        removed = SubscriptionState(None, anew or (denial(old.subscriber, reason, now),))
        return Transition(removed, f"{line}, removed: {response.outcome}", logging.WARNING)
    delay_seconds = retry_delays[old.failures] * (1 + RETRY_JITTER * jitter)
    wait_seconds = max(delay_seconds, retry_after_seconds(response, now))
    new = tried._replace(failures=failures, due_at=now + wait_seconds)
    return Transition(state._replace(subscription=new), f"{line}: {response.outcome}")


def exhausted_quota(usage: Sequence[int], max_subscriptions: int) -> str:
    """Of which subscriptions there are too many for one more; "" when there is room."""
    whose, share = ("", " of this domain", " of this address"), max(1, max_subscriptions // QUOTA_SHARE)
    limits = zip(whose, usage, (max_subscriptions, share, share), strict=True)
    return next((f"subscriptions{words}" for words, rows, limit in limits if rows >= limit), "")


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
    return CallbackRequest("GET", url, {}, None, timeout_seconds, len(challenge) + 1)


def notification(subscription: Subscription, topic: Topic, settings: HubSettings) -> CallbackRequest:
    """The POST that delivers the content (REC 7), with a signature if the subscriber gave a secret."""
    headers = {"Content-Type": topic.content_type, "Link": topic_link_header(settings.base_url, topic.path)}
    if subscription.secret is not None:
        headers["X-Hub-Signature"] = "sha256=" + hmac.digest(subscription.secret, topic.body, "sha256").hex()
    return CallbackRequest("POST", subscription.subscriber.callback, headers, topic.body, settings.timeout, 0)


# ---- Memory: what needs no row -----------------------------------------------------------------------------

# Each lane has workers of its own, this share of `--hub-workers`, so that no lane waits for another: neither
# strangers nor callbacks that fail delay a working subscriber, or each other.
LANES = {"renewal": 1, "notice": 1 / 8, "newcomer": 3 / 8, "retry": 1, "delivery": 1}
MAX_WORKERS_OF_NETWORK = 4


def lane_workers(lane: str, workers: int) -> int:
    return max(1, int(LANES[lane] * workers))


def max_workers(lane: str, workers: int) -> int:
    """How many workers of a lane a domain, and a network, may each have."""
    return max(1, min(MAX_WORKERS_OF_NETWORK, workers // 4, lane_workers(lane, workers) // 2))


class Schedule:
    """The rows that are due, by lane, and the exchanges that run. One thread at a time."""

    def __init__(self, workers: int):
        self._limits = {lane: max_workers(lane, workers) for lane in LANES}
        self._due: dict[str, list[DueRow]] = {lane: [] for lane in LANES}
        self.running: dict[str, DueRow] = {}  # by the subscriber's key, each with its present network

    def refill(self, due: Iterable[DueRow]) -> dict[str, int]:
        """Replace what is due, given in the order of turns. Returns how much it is, by lane."""
        self._due = {lane: [] for lane in LANES}
        for row in due:
            self._due[row.lane].append(row)
        return {lane: len(rows) for lane, rows in self._due.items()}

    def take(self, lane: str) -> DueRow | None:
        """Begin the first exchange of a lane whose domain, network and subscriber have a worker to spare."""
        limit, running = self._limits[lane], [one for one in self.running.values() if one.lane == lane]
        domains, networks = (
            Counter(one.domain for one in running),
            Counter(one.network for one in running if one.network),
        )
        busy = {key for counted in (domains, networks) for key, count in counted.items() if count >= limit}
        for place, row in enumerate(self._due[lane]):
            if not (row.domain in busy or row.network in busy or row.key in self.running):
                self.running[row.key] = self._due[lane].pop(place)
                return row
        return None

    def connect(self, exchange: DueRow, network: str) -> bool:
        """Note the network, now known, to which an exchange connects. Whether it has a worker to spare."""
        self.running[exchange.key] = exchange._replace(network=network)
        same = (one for one in self.running.values() if (one.lane, one.network) == (exchange.lane, network))
        return len(list(same)) <= self._limits[exchange.lane]


class Rate:
    """How often something happened within the last minute, by key, up to 50. One thread at a time.

    All times are those of one monotonic clock.
    """

    def __init__(self) -> None:
        self._at: dict[str, deque[float]] = {}

    def add(self, key: str, now: float) -> None:
        self._at.setdefault(key, deque(maxlen=50)).append(now)

    def take_back(self, key: str) -> None:
        """Take back the last time."""
        if moments := self._at.get(key):
            moments.pop()

    def count(self, key: str, now: float) -> int:
        moments = self._at.get(key, deque())
        while moments and moments[0] <= now - 60:
            moments.popleft()
        return len(moments)

    def prune(self, now: float) -> None:
        """Forget the keys without a count."""
        self._at = {key: moments for key, moments in self._at.items() if self.count(key, now)}


class Silence:
    """The networks of subscribers that were tried since anybody gave a sign of life. One thread at a time.

    All times are those of one monotonic clock.
    """

    NETWORKS = 3  # at least, whose silence is an outage of our own
    SECONDS = 600.0  # in which they were tried

    def __init__(self) -> None:
        self._tried_at: dict[str, float] = {}
        self._broken_at = -math.inf

    def tried(self, network: str, now: float) -> None:
        self._tried_at[network] = now

    def broken(self, now: float) -> None:
        self._tried_at, self._broken_at = {}, now

    def is_outage(self, began_at: float, now: float) -> bool:
        """Whether an exchange that has begun then and got no sign of life failed for a fault of our own."""
        lately = sum(at > now - self.SECONDS for at in self._tried_at.values())
        return lately >= self.NETWORKS and self._broken_at < began_at


# ---- Hub: the interface for the service, and the threads ---------------------------------------------------


class Postponed(Exception):
    """The exchange was not made, since its network has enough; it is due again in so many seconds."""

    def __init__(self, seconds: float):
        super().__init__()
        self.seconds = seconds


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
        self._lock = threading.Lock()  # protects the next three
        self._schedule, self._rate, self._silence = Schedule(settings.workers), Rate(), Silence()
        self._stopping = threading.Event()
        self._wake = threading.Event()  # for the scheduler: something may be due
        self._work_came = {lane: threading.Condition(self._lock) for lane in LANES}
        self._threads = [threading.Thread(target=self._run, name="hub-scheduler", daemon=True)]
        for lane in LANES:
            for _ in range(lane_workers(lane, settings.workers)):
                worker = threading.Thread(target=self._work, args=(lane,), name="hub-worker", daemon=True)
                self._threads.append(worker)

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
        for thread in self._threads:
            thread.start()

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
        with self._lock:
            for came in self._work_came.values():
                came.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        self._store.close()

    def answer(self, content_type: str | None, body: bytes) -> HubAnswer:
        """Answer the POST of a subscriber (REC 5.1.2). Waits for the disk, but never for the network."""
        now = self._clock()
        try:
            request = read_subscription_request(content_type, body, self._settings, self._topics, now)
            # Only an accepted request must survive a power cut: everything else would be repeated.
            with self._store.transaction(durable=True) as rows:
                is_new = self._accept(request, rows, now)
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
        """Why nothing can be stored at present, None when it can."""
        return self._store.trouble

    def _accept(self, request: PendingRequest, rows: Transaction, now: float) -> bool:
        """Store a request unless the same one waits; whether it did. Raises RequestRefused."""
        state, running_time = rows.state(request.subscriber, now), self._running_time()
        if old := state.subscription:
            who = request.subscriber._replace(network=old.subscriber.network)
            request = request._replace(subscriber=who, digest=old.digest)
        elif request.mode == "unsubscribe":
            raise RequestRefused(404, "hub.callback has no active subscription to hub.topic")
        pair = f"{request.mode} {request.subscriber.key}"
        with self._lock:
            is_asked = request.subscriber.key in self._schedule.running
            if not is_asked and any(says_the_same(one, request) for one in state.requests):
                return False
            request = request._replace(turn=self._rate.count(tries_of(request), running_time))
            if old and self._rate.count(pair, running_time) >= MAX_RENEWALS:
                raise too_many("requests of this subscriber", 429, 60)
            if old:
                self._rate.add(pair, running_time)
        if not old:
            full = exhausted_quota(rows.usage(request.subscriber, now), self._settings.max_subscriptions)
            if full:
                raise too_many(full, 503 if full == "subscriptions" else 429, 3600)
            if not rows.make_room(request):
                raise too_many("unverified requests", 503, 60)
        rows.move_back(request)
        others = (one for one in state.requests if one.mode != request.mode)
        rows.save(state, state._replace(requests=(*others, request)))
        return True

    # The scheduler's thread.

    def _run(self) -> None:
        upkeep_at = -math.inf
        while not self._stopping.is_set():
            self._wake.clear()
            began = time.monotonic()
            try:
                with suppress(StoreFault):  # which the store logs
                    if began - upkeep_at >= POLL_SECONDS:
                        upkeep_at = began
                        self.upkeep()
                    self.look()
            except Exception:
                log.exception("the hub's scheduler met an unexpected error and goes on")
            spent_seconds = time.monotonic() - began
            self._stopping.wait(min(POLL_SECONDS, spent_seconds * (1 / LOOKING_SHARE - 1)))
            self._wake.wait(POLL_SECONDS)

    def upkeep(self) -> None:
        """What is to do once a second: prove the store, drop what has expired, count. Raises StoreFault."""
        self._store.keep_open()
        with self._lock:
            self._rate.prune(self._running_time())
        with self._store.transaction() as rows:
            expired = rows.expire(self._clock())
            self._counts = rows.counts(self._digests(), self._clock())
        for row in expired:
            log_event(
                row,
                f"{row.mode} not confirmed: no answer in time"
                if isinstance(row, PendingRequest)
                else "lease ended",
            )

    def look(self) -> None:
        """Read what is due. Raises StoreFault."""
        with self._store.transaction() as rows:
            due = rows.due(self._digests(), self._clock(), self._clock() + self._longest_delay_seconds())
        with self._lock:
            for lane, count in self._schedule.refill(due).items():
                self._work_came[lane].notify(count)

    def _digests(self) -> dict[str, str]:
        """The digest of each topic, by its path."""
        return {path: topic.digest for path, topic in self._topics.items()}

    def _longest_delay_seconds(self) -> float:
        return max(MAX_RETRY_AFTER_SECONDS, max(self._settings.retry_delays) * (1 + RETRY_JITTER))

    # The workers' threads.

    def _work(self, lane: str) -> None:
        while not self._stopping.is_set():
            if exchange := self.take(lane, wait=True):
                self.perform(exchange)

    def take(self, lane: str, *, wait: bool = False) -> DueRow | None:
        """Begin the next exchange of a lane, to be made by `perform`; None if there is none."""
        with self._lock:
            exchange = self._schedule.take(lane)
            if not exchange and wait and not self._stopping.is_set():
                self._work_came[lane].wait()
        return exchange

    def perform(self, exchange: DueRow) -> None:
        """Make an exchange, if it is still due, and store the result."""
        try:
            with suppress(StoreFault):  # before the exchange: the row stays due
                if claimed := self._claim(exchange):
                    row, topic = claimed
                    if isinstance(row, PendingRequest):
                        self._verify(exchange, row)
                    elif topic:
                        self._deliver(exchange, row, topic)
        except Exception:
            log.exception("a job of the hub failed unexpectedly")
            # Until then the row counts as running: it would be due again at once.
            self._stopping.wait(own_fault_seconds(self._settings.retry_delays))
        finally:
            with self._lock:
                self._schedule.running.pop(exchange.key, None)

    def _claim(self, exchange: DueRow) -> tuple[Row, Topic | None] | None:
        """The row as it is now, and its topic; None if nothing is due any more. Raises StoreFault."""
        now = self._clock()
        with self._store.transaction() as rows:
            row = rows.row(exchange)
            if not row or row.expires_at <= now or now < row.due_at <= now + self._longest_delay_seconds():
                return None
            topic = self._topics.get(row.subscriber.path)
            if isinstance(row, Subscription):
                if not topic or topic.digest == row.digest:
                    return None
                rows.claim(row)
            return row, topic

    def _verify(self, exchange: DueRow, request: PendingRequest) -> None:
        challenge, sent_at = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            self._rate.add(tries_of(request), self._running_time())
        asked = verification(request, challenge, self._settings.timeout / 2)
        if not (response := self._exchange(exchange, request, asked)):
            return
        confirmed = response.is_success and response.body == challenge.encode("ascii")  # REC 5.3.1
        delays, most, later = self._settings.retry_delays, self._settings.max_subscriptions, None
        if response.status is None:
            later = next_try(request, response.own_fault, sent_at, delays)

        def decide(rows: Transaction, state: SubscriptionState) -> Transition:
            if later:
                return Transition(state.updated(later))
            usage = rows.usage(request.subscriber._replace(network=response.network), sent_at)
            return after_verification(state, request, response, confirmed, sent_at, usage, most)

        after = self._record(request, sent_at, decide)
        if after and after.subscription and confirmed and request.is_of_stranger:
            with self._lock:
                self._rate.take_back(response.network)
        self._wake.set()

    def _deliver(self, exchange: DueRow, subscription: Subscription, topic: Topic) -> None:
        sent_at = self._clock()
        sent = notification(subscription, topic, self._settings)
        if not (response := self._exchange(exchange, subscription, sent)):
            return
        jitter = random.random()  # noqa: S311 - it spreads load and guards nothing
        now, delays = self._clock(), self._settings.retry_delays

        def decide(_: Transaction, state: SubscriptionState) -> Transition:
            return after_delivery(state, subscription, topic.digest, response, now, delays, jitter)

        self._record(subscription, sent_at, decide)
        if not response.is_success or self._topics.get(topic.path) is not topic:
            self._wake.set()

    def _exchange(self, exchange: DueRow, row: Row, request: CallbackRequest) -> CallbackResponse | None:
        """What the callback answers; None if the exchange was not made, and is due later."""
        began = self._running_time()
        if exchange.network is not None:
            with self._lock:
                self._silence.tried(exchange.network, began)
        try:
            response = self._send(request, lambda network: self._connect(exchange, network))
        except Postponed as postponed:
            later = row._replace(due_at=self._clock() + postponed.seconds)  # the callback has what it had
            self._record(row, self._clock(), lambda _, state: Transition(state.updated(later)))
            return None
        except Exception:
            log.exception("an exchange with a callback failed unexpectedly")
            response = CallbackResponse(None, "error in the hub", own_fault=True)
        now = self._running_time()
        with self._lock:
            if response.is_sign_of_life:
                self._silence.broken(now)
            elif self._silence.is_outage(began, now):
                response = replace(response, own_fault=True)
        return replace(response, seconds=now - began)

    def _connect(self, exchange: DueRow, network: str) -> None:
        """Count a connection that an exchange is about to make. Raises Postponed."""
        now = self._running_time()
        with self._lock:
            if not self._schedule.connect(exchange, network):
                raise Postponed(BUSY_SECONDS)
            if exchange.lane == "newcomer":
                if self._rate.count(network, now) >= MAX_TRIES:
                    raise Postponed(HAMMERED_SECONDS)
                self._rate.add(network, now)

    def _record(
        self, row: Row, sent_at: float, decide: Callable[[Transaction, SubscriptionState], Transition]
    ) -> SubscriptionState | None:
        """Store the new state, and return it. A lease that ended after the exchange was `sent_at` is active.

        While the store cannot be written, the worker waits and nothing is repeated. If the hub stops
        meanwhile, nothing is stored and the exchange is repeated after the next start: None.
        """
        while True:
            try:
                with self._store.transaction() as rows:
                    before = rows.state(row.subscriber, sent_at)
                    after, line, level = decide(rows, before)
                    rows.save(before, after)
                break
            except StoreFault:
                if self._stopping.wait(POLL_SECONDS):
                    return None
        if line:
            log_event(row, line, level)
        return after


def says_the_same(waiting: PendingRequest, request: PendingRequest) -> bool:
    """Whether a request asks for nothing else than one that waits."""
    asked = itemgetter(1, 2, 3, 9, 10)  # who, secret, digest, mode and lease
    return bool(asked(waiting) == asked(request))


def too_many(what: str, status: int, retry_after_seconds: int) -> RequestRefused:
    return RequestRefused(status, f"there are too many {what}; try again later", retry_after_seconds)


def tries_of(request: PendingRequest) -> str:
    """The key under which tries of requests are counted: strangers and subscribers of a domain apart."""
    return f"{'stranger' if request.is_of_stranger else 'subscriber'} {request.subscriber.domain}"


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
