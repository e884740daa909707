"""A WebSub hub (W3C Recommendation of 2018-01-23, "REC" below) for topics that this process publishes itself.

Subscribers ask by a form POST; the hub asks their callback back (the challenge) and from then on brings it
every new content of the topic, whole. There is no queue: each subscription remembers the digest of the
content it was last sent, and is due while that differs from the topic's current one. So a crash loses
nothing, changes behind a slow callback collapse into the newest, and content that was taken is sent again
only if the answer came late, or the hub ended before it had noted it.

It must not know what a topic says or how it was made (topics arrive as values), nor which HTTP server carries
its answers. A callback URL may be a secret between hub and subscriber: logs and listings name its host only.

Everything up to and including *Scheduling* is pure: no socket, file, thread or clock; time is an argument.
All moments (`now`, `..._at`) are seconds since the epoch, all durations seconds.

Sections, in order:
    Values - Callback URLs - Requests - Transitions - Messages - Scheduling -
    Store - Callbacks - Worker - Hub
"""

from __future__ import annotations

import errno
import fcntl
import functools
import hmac
import http.client
import ipaddress
import logging
import os
import queue
import random
import re
import secrets
import socket
import sqlite3
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, cast
from urllib.parse import parse_qsl, quote, urlencode

from links import topic_link_header

STORE_FILE_NAME = "websub.sqlite3"

MAX_FORM_BYTES = 16 * 1024
MAX_FORM_FIELDS = 64
MAX_CALLBACK_CHARACTERS = 2048
MAX_SECRET_BYTES = 199  # REC 5.1: "less than 200 bytes"
MAX_PENDING = 1000
MAX_NOTICES = 1000  # more wait for a sender only when thousands were removed at once; the others go without
MAX_UNVERIFIED_PER_HOST = 50  # requests that wait, and those that the host did not confirm in the last minute
MAX_SUBSCRIPTIONS_PER_HOST = 1000
MAX_ANSWER_BYTES = 64 * 1024  # head and body of a callback's answer together

FAILURES_THAT_REMOVE = 3
RETRY_JITTER = 0.2  # a retry comes up to this share later: a common cause must not bring a common rush
MAX_RETRY_AFTER_SECONDS = 3600.0
UNCONFIRMED_WINDOW_SECONDS = 60.0

# A subscription whose lease has ended is ignored at once, but its row is deleted only after this long: a
# clock set forward by mistake and put right within a day costs nobody a subscription.
EXPIRED_ROW_SECONDS = 86400.0

TICK_SECONDS = 1.0  # how often the scheduler looks for retries that have come due
STORE_BUSY_SECONDS = 0.25  # how long a step waits for the store before it gives up
RETRY_SOON_SECONDS = 60  # Retry-After of conditions that pass
RETRY_LATER_SECONDS = 3600  # Retry-After of conditions that last

logger = logging.getLogger(__name__)


# ---- Values ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Topic:
    """One current representation, exactly as GET serves it (identity coding)."""

    path: str  # "/feed.xml"
    content_type: str
    body: bytes
    digest: str  # hex SHA-256 of body


@dataclass(frozen=True, slots=True)
class HubSettings:
    """What the operator decides. Raises ValueError when the values contradict each other."""

    base_url: str  # without a slash at the end; base_url + path is a topic's URL
    state_dir: Path
    lease_seconds: int = 864_000  # when the subscriber asks for none; REC 8.2 calls ten days a good default
    lease_min_seconds: int = 3600
    lease_max_seconds: int = 2_592_000
    retry_delays_seconds: tuple[float, ...] = (60.0, 3600.0)
    timeout_seconds: float = 10.0  # a delivery, from connecting to the end of the answer's head
    workers: int = 16
    max_subscriptions: int = 10_000
    ca_file: Path | None = None  # PEM, trusted besides the system's certificates
    allow_private: bool = False  # labs only: callbacks may have any address and any port
    user_agent: str = "reviewsd"

    def __post_init__(self) -> None:
        if not 0 < self.lease_min_seconds <= self.lease_seconds <= self.lease_max_seconds:
            raise ValueError("leases must be 0 < minimum <= default <= maximum")
        if len(self.retry_delays_seconds) != FAILURES_THAT_REMOVE - 1 or min(self.retry_delays_seconds) < 0:
            raise ValueError(f"{FAILURES_THAT_REMOVE - 1} retry delays are needed, each 0 or more")
        if self.timeout_seconds <= 0 or self.workers < 1 or self.max_subscriptions < 1:
            raise ValueError("timeout, workers and maximum of subscriptions must be positive")

    @property
    def verification_timeout_seconds(self) -> float:
        """Half a delivery's: a verification carries no content."""
        return self.timeout_seconds / 2

    @property
    def longest_wait_seconds(self) -> float:
        """No attempt is ever put off for longer than this."""
        return max(max(self.retry_delays_seconds) * (1 + RETRY_JITTER), MAX_RETRY_AFTER_SECONDS)


@dataclass(frozen=True, slots=True)
class HubAnswer:
    """The answer to a POST: `text` is one line of text/plain (REC 5.1.2), `headers` what the status needs."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


Mode: TypeAlias = Literal["subscribe", "unsubscribe", "denied"]
Key: TypeAlias = tuple[str, str]  # (path, callback_key): REC 5.1 knows a subscription by topic and callback


@dataclass(frozen=True, slots=True)
class Pending:
    """One GET that the hub owes a callback: a verification, or the notice that it was removed ("denied")."""

    path: str
    callback_key: str  # the callback in its comparable form
    callback: str  # as the subscriber sent it
    host: str
    topic_url: str  # as the subscriber sent it: REC 5.3 wants it back in hub.topic
    mode: Mode
    secret: bytes | None
    lease_seconds: int
    base_digest: str  # of the topic when the request came: what the subscriber is taken to have already
    requested_at: float
    id: int = 0  # given by the store; a later request of the same pair has a larger one

    @property
    def key(self) -> Key:
        return self.path, self.callback_key


@dataclass(frozen=True, slots=True)
class Subscription:
    """A verified callback."""

    path: str
    callback_key: str
    callback: str
    host: str
    topic_url: str
    secret: bytes | None
    created_at: float
    expires_at: float
    delivered_digest: str  # of the content the callback has
    failures: int = 0  # in a row
    next_attempt_at: float = 0.0
    last_attempt_at: float | None = None
    last_outcome: str = ""
    id: int = 0  # given by the store and never used again

    @property
    def key(self) -> Key:
        return self.path, self.callback_key


@dataclass(frozen=True, slots=True)
class Pair:
    """All that the hub remembers of one topic and one callback."""

    subscription: Subscription | None = None
    pending: Pending | None = None


class HubUnavailable(Exception):
    """The hub cannot start: its store or its certificates cannot be used."""

    def __init__(self, path: Path, reason: str):
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class StoreFault(Exception):
    """The store cannot be read or written at the moment: full, locked, read-only, closed."""


class Refused(Exception):
    """A request that is answered by 4xx or 5xx; `reason` is for the subscriber's author."""

    def __init__(self, status: HTTPStatus, reason: str, retry_after_seconds: int | None = None):
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


# ---- Callback URLs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Callback:
    """A callback URL that has passed every check that needs no network."""

    url: str  # as sent
    key: str  # as compared
    host: str  # lower case, an IPv6 address without its brackets


# RFC 3986's characters and no others. urlsplit() drops tabs, line ends and leading spaces without a word, so
# the string is checked as it came, before anything parses it.
_URL_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_HTTPS_AUTHORITY = re.compile(r"https://([^/?#]*)", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w-]{1,63}(?:\.[\w-]{1,63})*)(?::([0-9]{1,5}))?", re.ASCII)

# A host that ends in a number is an IPv4 address to resolvers: 127.1, 2130706433, 0x7f.1, 017700000001.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

# Escapes of letters, digits, "-", ".", "_" and "~", which RFC 3986 section 2.3 calls unreserved.
_UNRESERVED_ESCAPE = re.compile(r"%(2D|2E|5F|7E|3[0-9]|[46][1-9A-F]|[57][0-9A])", re.IGNORECASE)
_SCHEME_AND_AUTHORITY = re.compile(r"[^:/?#]+://[^/?#]*")

# Globally routable by the registry, but relays or protocol assignments that lead elsewhere.
_NOT_PUBLIC_V4 = tuple(map(ipaddress.IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")))
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    # IETF protocol assignments with Teredo; documentation; 6to4, which embeds any IPv4 address; documentation
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
)


def parse_callback(url: str, *, allow_private: bool) -> Callback:
    """Check a callback without the network. Raises ValueError, whose text completes "hub.callback ..."."""
    if len(url) > MAX_CALLBACK_CHARACTERS:
        raise ValueError(f"is longer than {MAX_CALLBACK_CHARACTERS} characters")
    if not _URL_CHARACTERS.fullmatch(url):
        raise ValueError("is empty or has a character that no URL may have; percent-encode it")
    if not (https := _HTTPS_AUTHORITY.match(url)):
        raise ValueError("must be an https:// URL; plain HTTP is not delivered to")
    if "#" in url:
        raise ValueError("must not have a fragment (#)")
    if "@" in https[1]:
        raise ValueError("must not hold a user name (@)")
    if not (place := _HOST_AND_PORT.fullmatch(https[1])):
        raise ValueError("has no usable host and port")
    host, port = place[1].lower(), int(place[2] or http.client.HTTPS_PORT)
    if not 0 < port < 65536:
        raise ValueError("has a port outside 1 to 65535")
    if not allow_private:
        _refuse_private(host, port)
    return Callback(url, comparable(url), host.strip("[]"))


def _refuse_private(host: str, port: int) -> None:
    """Raise ValueError for a place that cannot be a public callback, whatever the resolver would say."""
    if port != http.client.HTTPS_PORT and port < 1024:
        raise ValueError(f"has port {port}; allowed are 443 and 1024 to 65535")
    try:
        address = literal_address(host)
    except ValueError:
        raise ValueError("has a host that is neither a name nor an address written in full") from None
    if address is not None and not is_public(address):
        raise ValueError("has an address that is not public")
    if address is None and ("." not in host or host.endswith(".localhost")):
        raise ValueError("has a host that is no public name")


def literal_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a URL's host spells, None for a name. Raises ValueError if it is cut short or odd."""
    if host.startswith("["):
        return ipaddress.IPv6Address(host[1:-1])
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return ipaddress.IPv4Address(host)
    return None


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address leads to a host on the public internet and nowhere else.

    `is_global` alone lets multicast, NAT64, 6to4, IPv4-compatible and site-local addresses through.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return is_public(address.ipv4_mapped)
        return address in _UNICAST_V6 and not any(address in network for network in _NOT_PUBLIC_V6)
    return (
        address.is_global
        and not (address.is_multicast or address.is_reserved)
        and not any(address in network for network in _NOT_PUBLIC_V4)
    )


def comparable(url: str) -> str:
    """A URL to compare by: unreserved escapes decoded (REC 5.1.1), scheme and host in lower case."""
    decoded = _UNRESERVED_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), url)
    return _SCHEME_AND_AUTHORITY.sub(lambda start: start[0].lower(), decoded, count=1)


# ---- Requests ----------------------------------------------------------------------------------------------

T = TypeVar("T")
U = TypeVar("U")
Form: TypeAlias = Mapping[str, Sequence[str]]  # every value of every field, in the order given


def read_request(
    content_type: str | None, body: bytes, *, settings: HubSettings, topics: Mapping[str, Topic], now: float
) -> Pending:
    """What the form POST of a subscriber (REC 5.1) asks for. Raises Refused."""
    form = read_form(content_type, body)
    issues: list[str] = []
    mode = read_field(form, "hub.mode", read_mode, issues)
    callback = read_field(
        form, "hub.callback", functools.partial(parse_callback, allow_private=settings.allow_private), issues
    )
    topic_url = read_field(form, "hub.topic", str, issues)
    lease_seconds, secret = 0, None
    if mode == "subscribe":  # REC 5.1: a lease is ignored when unsubscribing, and a secret would mean nothing
        asked_seconds = read_optional(
            form, "hub.lease_seconds", read_lease_seconds, issues, settings.lease_seconds
        )
        lease_seconds = min(max(asked_seconds, settings.lease_min_seconds), settings.lease_max_seconds)
        secret = read_optional(form, "hub.secret", read_secret, issues, None)
    if mode is None or callback is None or topic_url is None or issues:
        raise Refused(HTTPStatus.BAD_REQUEST, "; ".join(issues))

    path = topic_path(topic_url, settings.base_url)
    topic = topics.get(path)
    if topic is None and mode == "subscribe":
        known = ", ".join(settings.base_url + path for path in topics)
        raise Refused(HTTPStatus.NOT_FOUND, f"hub.topic is not a topic of this hub; its topics are {known}")
    return Pending(
        path=path,
        callback_key=callback.key,
        callback=callback.url,
        host=callback.host,
        topic_url=topic_url,
        mode=mode,
        secret=secret,
        lease_seconds=lease_seconds,
        base_digest=topic.digest if topic else "",
        requested_at=now,
    )


def topic_path(topic_url: str, base_url: str) -> str:
    """The path of a topic below base_url, whether it (still) exists or not; empty for URLs elsewhere."""
    url, base = comparable(topic_url), comparable(base_url)
    return url.removeprefix(base) if url.startswith(base) else ""


def read_form(content_type: str | None, body: bytes) -> Form:
    """The fields of an application/x-www-form-urlencoded body in UTF-8. Raises Refused."""
    if len(body) > MAX_FORM_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the form is larger than {MAX_FORM_BYTES} bytes")
    if (content_type or "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/x-www-form-urlencoded"
        )
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS
        )
    except UnicodeError:
        raise Refused(HTTPStatus.BAD_REQUEST, "the form is not UTF-8") from None
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, f"the form has more than {MAX_FORM_FIELDS} fields") from None
    form: dict[str, list[str]] = {}
    for name, value in pairs:
        form.setdefault(name, []).append(value)
    return form


def read_field(form: Form, name: str, read: Callable[[str], T], issues: list[str]) -> T | None:
    """The value of a field that has to be there once; None and one more issue if it is not, or is wrong."""
    values = form.get(name, ())
    if len(values) != 1:
        issues.append(f"{name} is given {len(values)} times" if values else f"{name} is missing")
        return None
    try:
        return read(values[0])
    except ValueError as fault:
        issues.append(f"{name} {fault}")
        return None


def read_optional(form: Form, name: str, read: Callable[[str], T], issues: list[str], absent: U) -> T | U:
    """Like read_field, but the field may be left out; also `absent` when there is an issue."""
    value = read_field(form, name, read, issues) if name in form else None
    return absent if value is None else value


def read_mode(raw: str) -> Mode:
    match raw:
        case "subscribe" | "unsubscribe":
            return raw
        case "publish":
            raise ValueError("publish is not needed: this hub sees by itself when its topics change")
    raise ValueError("must be subscribe or unsubscribe")


def read_lease_seconds(raw: str) -> int:
    """A positive decimal integer (REC 5.1) of any length; eleven digits are more than any lease granted."""
    digits = raw.lstrip("0")
    if not (raw.isascii() and raw.isdecimal() and digits):
        raise ValueError("must be a positive whole number of seconds")
    return int(digits[:11])


def read_secret(raw: str) -> bytes:
    """The key of the signatures: the UTF-8 bytes of hub.secret."""
    secret = raw.encode("utf-8")
    if not 0 < len(secret) <= MAX_SECRET_BYTES:
        raise ValueError(f"must have 1 to {MAX_SECRET_BYTES} bytes")
    return secret


@dataclass(frozen=True, slots=True)
class Census:
    """How much waits and is stored, the pair of the request left out."""

    pending: int
    pending_of_host: int
    unconfirmed_of_host: int  # verifications that the host did not confirm within the last minute
    subscriptions: int  # with those that wait for their verification
    subscriptions_of_host: int


def admit(pair: Pair, mode: Mode, census: Census, max_subscriptions: int) -> None:
    """Raise Refused when there is nothing to unsubscribe from, or no room.

    The limits by host keep a stranger who names somebody else's host from making the hub hammer it, and keep
    one host from taking all the room.
    """
    if mode == "unsubscribe" and pair.subscription is None:
        raise Refused(HTTPStatus.NOT_FOUND, "hub.callback has no active subscription to hub.topic")
    new = pair.subscription is None
    unverified_of_host = census.pending_of_host + census.unconfirmed_of_host
    full, busy = HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS
    soon, later = RETRY_SOON_SECONDS, RETRY_LATER_SECONDS
    limits = (
        (census.pending, MAX_PENDING, full, soon, "unverified requests"),
        (unverified_of_host, MAX_UNVERIFIED_PER_HOST, busy, soon, "unverified requests of this host"),
        (census.subscriptions * new, max_subscriptions, full, later, "subscriptions"),
        (
            census.subscriptions_of_host * new,
            MAX_SUBSCRIPTIONS_PER_HOST,
            busy,
            later,
            "subscriptions of this host",
        ),
    )
    for counted, limit, status, retry_after_seconds, what in limits:
        if counted >= limit:
            raise Refused(status, f"there are too many {what}; try again later", retry_after_seconds)


# ---- Transitions: what may happen to a pair, and what it becomes -------------------------------------------


Result: TypeAlias = Literal["delivered", "failed", "postponed", "gone"]


@dataclass(frozen=True, slots=True)
class Requested:
    """A valid request came in."""

    pending: Pending


@dataclass(frozen=True, slots=True)
class Answered:
    """The GET that was owed has been made, at `sent_at`; `confirmed` if the callback echoed the challenge."""

    pending_id: int
    sent_at: float
    confirmed: bool
    outcome: str


@dataclass(frozen=True, slots=True)
class Attempted:
    """A delivery was tried. It is "postponed" when nothing was sent and the hub's own machine is to blame."""

    subscription_id: int
    at: float
    result: Result
    outcome: str
    digest: str  # of the content that was sent
    jitter: float = 0.0  # random, 0 to 1
    retry_after_seconds: float = 0.0  # as the callback wished


Event: TypeAlias = Requested | Answered | Attempted


def after(pair: Pair, event: Event, retry_delays_seconds: Sequence[float]) -> Pair:
    """What a pair becomes by an event. An event that speaks of a row that is no longer there changes nothing.

    The end of a lease is no event: whoever looks up a pair leaves out a subscription that has ended.
    """
    pending, subscription = pair.pending, pair.subscription
    match event:
        case Requested():
            # Until it is verified a request changes nothing, but it replaces an earlier one (REC 5.1).
            return replace(pair, pending=event.pending)
        case Answered():
            if pending is None or pending.id != event.pending_id:
                return pair
            if not event.confirmed:
                return replace(pair, pending=None)
            if pending.mode == "unsubscribe":
                return Pair()
            return Pair(subscribed(pending, subscription, event.sent_at))
        case Attempted():
            if subscription is None or subscription.id != event.subscription_id:
                return pair
            return after_attempt(pair, subscription, event, retry_delays_seconds)


def subscribed(request: Pending, old: Subscription | None, sent_at: float) -> Subscription:
    """What a confirmed request makes or renews; the lease runs from the verification's sending (REC 5.3).

    A renewal keeps what was delivered, so that it neither repeats the content nor skips a change.
    """
    return Subscription(
        path=request.path,
        callback_key=request.callback_key,
        callback=request.callback,
        host=request.host,
        topic_url=request.topic_url,
        secret=request.secret,
        created_at=old.created_at if old else sent_at,
        expires_at=sent_at + request.lease_seconds,
        delivered_digest=old.delivered_digest if old else request.base_digest,
        last_attempt_at=old.last_attempt_at if old else None,
        last_outcome=old.last_outcome if old else "",
        id=old.id if old else 0,
    )


def after_attempt(
    pair: Pair, old: Subscription, event: Attempted, retry_delays_seconds: Sequence[float]
) -> Pair:
    """What a pair becomes by an attempt to deliver; new content during a back-off does not shorten it."""
    tried = replace(old, last_attempt_at=event.at, last_outcome=event.outcome)
    match event.result:
        case "delivered":
            new = replace(tried, delivered_digest=event.digest, failures=0, next_attempt_at=0.0)
        case "postponed":
            new = replace(tried, next_attempt_at=event.at + retry_delays_seconds[0])
        case "failed" if old.failures + 1 < FAILURES_THAT_REMOVE:
            delay_seconds = retry_delays_seconds[old.failures] * (1 + RETRY_JITTER * event.jitter)
            wait_seconds = max(delay_seconds, min(event.retry_after_seconds, MAX_RETRY_AFTER_SECONDS))
            new = replace(tried, failures=old.failures + 1, next_attempt_at=event.at + wait_seconds)
        case "failed":
            # REC 7 would keep it to the end of the lease; REC 5.2 lets a hub deny at any time, if it says so.
            # The question whether a new request is meant says more than the notice would.
            asks_anew = pair.pending is not None and pair.pending.mode == "subscribe"
            return Pair(None, pair.pending if asks_anew else denial(old, event.at))
        case "gone":  # REC 7
            return replace(pair, subscription=None)
    return replace(pair, subscription=new)


def denial(subscription: Subscription, now: float) -> Pending:
    """The notice (REC 5.2) that a subscription was removed."""
    return Pending(
        path=subscription.path,
        callback_key=subscription.callback_key,
        callback=subscription.callback,
        host=subscription.host,
        topic_url=subscription.topic_url,
        mode="denied",
        secret=None,
        lease_seconds=0,
        base_digest="",
        requested_at=now,
    )


def is_due(next_attempt_at: float, now: float, longest_wait_seconds: float) -> bool:
    """Whether the time of an attempt has come.

    A time further ahead than any wait was computed before the clock was set back, and means nothing any more.
    """
    return not now < next_attempt_at <= now + longest_wait_seconds


def event_line(before: Pair, event: Event) -> str:
    """What happened to a pair, for the log; never a callback's URL."""
    mode = before.pending.mode if before.pending else ""
    match event:
        case Requested():
            return f"{event.pending.mode} requested"
        case Answered():
            what = "notice" if mode == "denied" else "confirmed" if event.confirmed else "not confirmed"
            return f"{mode} {what}: {event.outcome}"
        case Attempted(result="failed"):
            failures = before.subscription.failures + 1 if before.subscription else 1
            removed = ", removed" if failures == FAILURES_THAT_REMOVE else ""
            return f"delivery failed, {failures} of {FAILURES_THAT_REMOVE}{removed}: {event.outcome}"
        case Attempted():
            return f"content {event.digest[:12]} {event.result}: {event.outcome}"


# ---- Messages: what is sent to callbacks, and what an answer means -----------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One HTTP request to a callback."""

    method: Literal["GET", "POST"]
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    timeout_seconds: float  # for everything together
    answer_body_bytes: int  # how much of the answer's body matters


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: a status, or None and in `outcome` the reason."""

    status: int | None
    outcome: str  # "HTTP 200", "connection refused"; for log and operator, not for strangers
    body: bytes = b""
    retry_after: str | None = None
    own_fault: bool = False  # nothing was sent, and the hub's machine is to blame

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


# REC 5.2 and 5.3: the parameters of a GET, by what it is about.
OWED_FIELDS: Mapping[Mode, tuple[str, ...]] = {
    "subscribe": ("hub.mode", "hub.topic", "hub.challenge", "hub.lease_seconds"),
    "unsubscribe": ("hub.mode", "hub.topic", "hub.challenge"),
    "denied": ("hub.mode", "hub.topic", "hub.reason"),
}


def owed_get(pending: Pending, challenge: str, timeout_seconds: float) -> Message:
    """The verification or notice that `pending` stands for."""
    values = {
        "hub.mode": pending.mode,
        "hub.topic": pending.topic_url,
        "hub.challenge": challenge,
        "hub.lease_seconds": str(pending.lease_seconds),
        "hub.reason": f"{FAILURES_THAT_REMOVE} deliveries in a row failed; subscribe again to resume",
    }
    query = urlencode([(name, values[name]) for name in OWED_FIELDS[pending.mode]], quote_via=quote, safe="")
    # One byte more than the challenge, or an answer that goes on after it would look right.
    wanted = 0 if pending.mode == "denied" else len(challenge) + 1
    return Message("GET", with_query(pending.callback, query), {}, None, timeout_seconds, wanted)


def with_query(url: str, query: str) -> str:
    """`url` with more parameters; what it has already is kept to the letter (REC 5.1.1)."""
    if "?" not in url:
        return f"{url}?{query}"
    return f"{url}{query}" if url.endswith(("?", "&")) else f"{url}&{query}"


def notification(subscription: Subscription, topic: Topic, settings: HubSettings) -> Message:
    """Content distribution (REC 7): the very bytes that GET serves, signed if there is a secret."""
    link = topic_link_header(settings.base_url, topic.path)
    headers = {"Content-Type": topic.content_type, "Link": link}
    if subscription.secret is not None:
        headers["X-Hub-Signature"] = "sha256=" + hmac.digest(subscription.secret, topic.body, "sha256").hex()
    return Message("POST", subscription.callback, headers, topic.body, settings.timeout_seconds, 0)


def answered(pending: Pending, challenge: str, reply: Reply, sent_at: float) -> Answered:
    """What the answer to an owed GET means (REC 5.3.1): the whole challenge, with any 2xx, confirms."""
    if pending.mode == "denied" or not reply.is_success:
        return Answered(pending.id, sent_at, False, reply.outcome)
    if reply.body != challenge.encode("ascii"):
        return Answered(pending.id, sent_at, False, f"{reply.outcome} without the challenge")
    return Answered(pending.id, sent_at, True, reply.outcome)


def attempted(subscription: Subscription, topic: Topic, reply: Reply, now: float, jitter: float) -> Attempted:
    """What the answer to a notification means (REC 7): any 2xx is success, 410 an end, all else a failure."""
    result: Result = "failed"
    if reply.own_fault:
        result = "postponed"
    elif reply.is_success:
        result = "delivered"
    elif reply.status == HTTPStatus.GONE:
        result = "gone"
    asks_for_time = reply.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
    wait_seconds = retry_after_seconds(reply.retry_after, now) if asks_for_time else 0.0
    return Attempted(subscription.id, now, result, reply.outcome, topic.digest, jitter, wait_seconds)


def retry_after_seconds(value: str | None, now: float) -> float:
    """How long Retry-After (RFC 9110 section 10.2.3: seconds or a date) asks to wait; 0 if it is nonsense."""
    if value is None:
        return 0.0
    if value.isascii() and value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return 0.0


# ---- Scheduling: what to do next ---------------------------------------------------------------------------

Lane: TypeAlias = Literal["verification", "delivery", "retry", "notice"]

# In order of urgency, with the share of the workers that a lane may take. Only the first try to deliver to
# a callback that works may have all, and of four workers or more a quarter is always left to it: so neither
# strangers nor the dead hold up the living, or each other.
LANES: Mapping[Lane, float] = {"verification": 3 / 8, "delivery": 1, "retry": 1 / 4, "notice": 1 / 8}
MAX_WORKERS_PER_HOST = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One exchange with a callback that is due. Its row may change before, so whoever does it looks again."""

    lane: Lane
    row_id: int
    key: Key
    host: str


def in_turn(jobs: Iterable[Job]) -> list[Job]:
    """By lane, then one of each host at a time, so that a host with many callbacks delays nobody else's."""
    order = {lane: place for place, lane in enumerate(LANES)}
    turns: Counter[tuple[Lane, str]] = Counter()
    ranked = []
    for job in jobs:
        turns[job.lane, job.host] += 1
        ranked.append((order[job.lane], turns[job.lane, job.host], job))
    return [job for _, _, job in sorted(ranked, key=lambda rank: rank[:2])]


def startable(waiting: Iterable[Job], running: Collection[Job], workers: int) -> Iterator[Job]:
    """The waiting jobs, in their order, that may start now: never two of one pair, and few of one host."""
    per_host = max(1, min(MAX_WORKERS_PER_HOST, workers // 4))
    per_lane = {lane: max(1, int(share * workers)) for lane, share in LANES.items()}
    pairs = {job.key for job in running}
    hosts = Counter(job.host for job in running)
    lanes = Counter(job.lane for job in running)
    for job in waiting:
        if lanes.total() == workers:
            return
        if job.key not in pairs and hosts[job.host] < per_host and lanes[job.lane] < per_lane[job.lane]:
            pairs.add(job.key)
            hosts[job.host] += 1
            lanes[job.lane] += 1
            yield job


class Agenda:
    """What waits and what runs: the scheduler's memory. It may be lost, for all of it is in the store."""

    def __init__(self, workers: int):
        self._workers = workers
        self._waiting: list[Job] = []
        self._running: set[Job] = set()

    def plan(self, jobs: Iterable[Job]) -> None:
        """Replace what waits."""
        self._waiting = in_turn(job for job in jobs if job not in self._running)

    def add(self, job: Job) -> None:
        """Let one more wait, before all others."""
        self._waiting.insert(0, job)

    def finish(self, job: Job) -> None:
        self._running.discard(job)

    def start(self) -> list[Job]:
        """Take the jobs that may start now; each is running until `finish`."""
        started = list(startable(self._waiting, self._running, self._workers))
        for job in started:
            self._waiting.remove(job)
        self._running.update(started)
        return started


# ---- Store: one SQLite file --------------------------------------------------------------------------------

SCHEMA_VERSION = 1

# AUTOINCREMENT: a result that comes late must never hit a row that took over the number of a deleted one.
SCHEMA = f"""
BEGIN;
CREATE TABLE subscription (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL, callback_key TEXT NOT NULL, callback TEXT NOT NULL, host TEXT NOT NULL,
  topic_url TEXT NOT NULL, secret BLOB, created_at REAL NOT NULL, expires_at REAL NOT NULL,
  delivered_digest TEXT NOT NULL, failures INTEGER NOT NULL, next_attempt_at REAL NOT NULL,
  last_attempt_at REAL, last_outcome TEXT NOT NULL,
  UNIQUE (path, callback_key)
);
CREATE INDEX subscription_by_host ON subscription (host, expires_at);
CREATE INDEX subscription_by_end ON subscription (expires_at, failures);
CREATE TABLE pending (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL, callback_key TEXT NOT NULL, callback TEXT NOT NULL, host TEXT NOT NULL,
  topic_url TEXT NOT NULL, mode TEXT NOT NULL, secret BLOB, lease_seconds INTEGER NOT NULL,
  base_digest TEXT NOT NULL, requested_at REAL NOT NULL,
  UNIQUE (path, callback_key)
);
CREATE TABLE unconfirmed (host TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX unconfirmed_by_host ON unconfirmed (host, at);
CREATE INDEX unconfirmed_by_time ON unconfirmed (at);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

Row = TypeVar("Row", Pending, Subscription)
Digests: TypeAlias = Mapping[str, str]  # of the current contents, by path


class Rows:
    """The statements, inside a transaction. Columns have the names of the values' fields."""

    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection

    def pair(self, key: Key, now: float) -> Pair:
        """What is known of a pair; a subscription whose lease has ended is not."""
        subscription = self._connection.execute(
            "SELECT * FROM subscription WHERE path = ? AND callback_key = ? AND expires_at > ?", (*key, now)
        ).fetchone()
        pending = self._connection.execute(
            "SELECT * FROM pending WHERE path = ? AND callback_key = ?", key
        ).fetchone()
        return Pair(
            Subscription(**dict(subscription)) if subscription else None,
            Pending(**dict(pending)) if pending else None,
        )

    def save(self, before: Pair, then: Pair) -> Pair:
        """Write what has changed; the result has the numbers of the new rows."""
        return Pair(
            self._write("subscription", before.subscription, then.subscription),
            self._write("pending", before.pending, then.pending),
        )

    def _write(self, table: str, before: Row | None, then: Row | None) -> Row | None:
        if then is None and before is not None:
            self._connection.execute(f"DELETE FROM {table} WHERE id = ?", (before.id,))  # noqa: S608 - our name
        if then is None or then == before:
            return then
        values = asdict(then)
        if not then.id:
            del values["id"]
        columns, places = ", ".join(values), ", ".join(f":{column}" for column in values)
        # REPLACE also clears what else stands for the pair: an older request, or a subscription long ended.
        cursor = self._connection.execute(
            f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({places})",  # noqa: S608 - our names
            values,
        )
        return replace(then, id=cursor.lastrowid or 0)

    def census(self, request: Pending, now: float) -> Census:
        """What `admit` has to know; notices are no requests and do not count."""
        row = self._connection.execute(
            """
            WITH other AS (SELECT host, mode FROM pending
                           WHERE mode <> 'denied' AND NOT (path = :path AND callback_key = :callback_key)),
                 active AS (SELECT host FROM subscription WHERE expires_at > :now)
            SELECT (SELECT count(*) FROM other),
                   (SELECT count(*) FROM other WHERE host = :host),
                   (SELECT count(*) FROM unconfirmed WHERE host = :host AND at > :window AND at <= :now),
                   (SELECT count(*) FROM active) + (SELECT count(*) FROM other WHERE mode = 'subscribe'),
                   (SELECT count(*) FROM active WHERE host = :host)
                       + (SELECT count(*) FROM other WHERE mode = 'subscribe' AND host = :host)
            """,
            {
                "path": request.path,
                "callback_key": request.callback_key,
                "host": request.host,
                "now": now,
                "window": now - UNCONFIRMED_WINDOW_SECONDS,
            },
        ).fetchone()
        return Census(*row)

    def note_unconfirmed(self, host: str, now: float) -> None:
        self._connection.execute(
            "DELETE FROM unconfirmed WHERE at <= ? OR at > ?", (now - UNCONFIRMED_WINDOW_SECONDS, now)
        )
        self._connection.execute("INSERT INTO unconfirmed (host, at) VALUES (?, ?)", (host, now))

    def has_room_for_notice(self) -> bool:
        (notices,) = self._connection.execute("SELECT count(*) FROM pending WHERE mode = 'denied'").fetchone()
        return bool(notices < MAX_NOTICES)

    def jobs(self, digests: Digests, now: float, longest_wait_seconds: float) -> Iterator[Job]:
        """Everything that is due: each GET that is owed, each subscription without the current content.

        A topic that is no longer published makes nothing due: its subscriptions rest until it is back.
        """
        owed = self._connection.execute("SELECT id, path, callback_key, host, mode FROM pending ORDER BY id")
        for row_id, path, callback_key, host, mode in owed:
            yield Job("notice" if mode == "denied" else "verification", row_id, (path, callback_key), host)
        for path, digest in digests.items():
            behind = self._connection.execute(
                "SELECT id, callback_key, host, failures, next_attempt_at FROM subscription"
                " WHERE path = ? AND delivered_digest <> ? AND expires_at > ? ORDER BY next_attempt_at, id",
                (path, digest, now),
            )
            for row_id, callback_key, host, failures, next_attempt_at in behind:
                if is_due(next_attempt_at, now, longest_wait_seconds):
                    yield Job("retry" if failures else "delivery", row_id, (path, callback_key), host)

    def counts(self, digests: Digests, now: float) -> dict[str, int]:
        active, failing = self._connection.execute(
            "SELECT count(*), count(nullif(failures, 0)) FROM subscription WHERE expires_at > ?", (now,)
        ).fetchone()
        (pending,) = self._connection.execute(
            "SELECT count(*) FROM pending WHERE mode <> 'denied'"
        ).fetchone()
        behind = sum(
            self._connection.execute(
                "SELECT count(*) FROM subscription"
                " WHERE path = ? AND delivered_digest <> ? AND expires_at > ?",
                (path, digest, now),
            ).fetchone()[0]
            for path, digest in digests.items()
        )
        return {"active": active, "pending": pending, "failing": failing, "behind": behind}

    def ended(self, now: float, max_subscriptions: int) -> list[tuple[int, str, str]]:
        """(id, path, host) of subscriptions to delete: ended long ago, or at all when rows are too many."""
        (rows,) = self._connection.execute("SELECT count(*) FROM subscription").fetchone()
        horizon = now if rows > max_subscriptions else now - EXPIRED_ROW_SECONDS
        return self._connection.execute(
            "SELECT id, path, host FROM subscription WHERE expires_at <= ?", (horizon,)
        ).fetchall()

    def delete_subscriptions(self, ids: Iterable[int]) -> None:
        self._connection.executemany("DELETE FROM subscription WHERE id = ?", ((row_id,) for row_id in ids))


class Connection:
    """One SQLite connection for all threads, one short transaction at a time."""

    def __init__(self, database: str, begin: str = "BEGIN", *, uri: bool = False):
        """Raises sqlite3.Error."""
        self._lock = threading.Lock()
        self._begin = begin
        self._trouble: str | None = None
        self._closed = False
        self.sqlite = sqlite3.connect(
            database, timeout=STORE_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri
        )
        self.sqlite.row_factory = sqlite3.Row

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Rows]:
        """Done when the block ends; not done at all when it raises. Raises StoreFault.

        What is done outlives the process; only if it is `durable`, which waits for the disk, a power cut too.
        """
        if not self._lock.acquire(timeout=STORE_BUSY_SECONDS):
            raise StoreFault("busy")
        try:
            if self._closed:
                raise StoreFault("closed")
            self.sqlite.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self.sqlite.execute(self._begin)
            try:
                yield Rows(self.sqlite)
                self.sqlite.execute("COMMIT")
            finally:
                if self.sqlite.in_transaction:
                    self.sqlite.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._report(str(error))
            raise StoreFault(str(error)) from error
        else:
            self._report(None)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Whoever comes afterwards gets StoreFault."""
        with self._lock:
            self._closed = True
            self.sqlite.close()

    def _report(self, trouble: str | None) -> None:
        """Log when trouble begins, changes and ends: once, not for every request that meets it."""
        if trouble != self._trouble:
            self._trouble = trouble
            logger.warning("store: %s", trouble or "works again")


class Store:
    """Transactions on the file, from any thread. Reading never waits for a write to reach the disk (WAL)."""

    def __init__(self, state_dir: Path):
        """Open the store, or create it. Raises HubUnavailable if that cannot be, or another hub has it."""
        path = state_dir / STORE_FILE_NAME
        try:
            with ExitStack() as opened:
                state_dir.mkdir(parents=True, exist_ok=True)
                opened.callback(os.close, claim(state_dir))
                # It holds the subscribers' secrets; SQLite gives the files beside it the same mode.
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
                self._writer = opened.enter_context(closing(Connection(str(path), "BEGIN IMMEDIATE")))
                self._reader = opened.enter_context(closing(Connection(str(path))))
                prepare(self._writer, self._reader)
                self._opened = opened.pop_all()
        except (OSError, sqlite3.Error, StoreFault) as error:
            raise HubUnavailable(path, str(error)) from error
        #: Blocks `with store.writing() as rows` and `with store.reading() as rows`; both raise StoreFault.
        self.writing, self.reading = self._writer.transaction, self._reader.transaction

    def close(self) -> None:
        self._opened.close()


def claim(state_dir: Path) -> int:
    """A descriptor that keeps other hubs off the directory until it is closed, or the process ends anyhow.

    Two hubs on one store would send everything twice. Raises OSError.
    """
    descriptor = os.open(state_dir, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise OSError(f"another hub uses this directory ({error.strerror})") from error
    return descriptor


def prepare(writer: Connection, reader: Connection) -> None:
    """Make the tables if there are none. Raises sqlite3.Error, or StoreFault for a store that is no use."""
    writer.sqlite.execute("PRAGMA journal_mode = WAL")
    reader.sqlite.execute("PRAGMA query_only = ON")
    (version,) = writer.sqlite.execute("PRAGMA user_version").fetchone()
    if version == 0:
        writer.sqlite.executescript(SCHEMA)
    elif version != SCHEMA_VERSION:
        raise StoreFault(f"made by another version of this program (schema {version})")
    with writer.transaction():
        pass  # a read-only store fails here rather than at the first request


@dataclass(frozen=True, slots=True)
class Listing:
    """One line for the operator. Of the callback only the host: the rest of it may be a secret."""

    # "active", "failing", "ended"; or what a GET is owed for: "subscribe", "unsubscribe", "denied"
    state: str
    host: str
    path: str
    since: float
    expires_at: float | None
    failures: int
    last_attempt_at: float | None
    last_outcome: str


def list_subscriptions(state_dir: Path, *, clock: Callable[[], float] = time.time) -> list[Listing]:
    """All subscriptions, then all requests, by topic and host. Changes nothing; the daemon may run meanwhile.

    Raises HubUnavailable if there is a store that cannot be read.
    """
    path = state_dir / STORE_FILE_NAME
    if not path.exists():
        return []
    # Without a write-ahead log nobody has the store open, and reading as if somebody had would create one.
    in_use = path.with_name(f"{path.name}-wal").exists()
    database = f"{path.absolute().as_uri()}?{'mode=ro' if in_use else 'immutable=1'}"
    try:
        with closing(Connection(database, uri=True)) as connection:
            rows = connection.sqlite.execute(
                """
                SELECT 1,
                       CASE WHEN expires_at <= ? THEN 'ended' WHEN failures THEN 'failing' ELSE 'active' END,
                       host, path, created_at, expires_at, failures, last_attempt_at, last_outcome
                FROM subscription
                UNION ALL
                SELECT 2, mode, host, path, requested_at, NULL, 0, NULL, '' FROM pending
                ORDER BY 1, path, host, 5
                """,
                (clock(),),
            ).fetchall()
    except sqlite3.Error as error:
        raise HubUnavailable(path, str(error)) from error
    return [Listing(*row[1:]) for row in rows]


# ---- Callbacks: the one place that opens connections, and what it refuses ----------------------------------

AddressInfo: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]  # as socket.getaddrinfo gives it
Resolve: TypeAlias = Callable[[str, int], Sequence[AddressInfo]]

# errno of what the hub's own machine lacks: descriptors, memory. Nobody's subscription may end because of it.
OWN_FAULTS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})

# What went wrong, in words that hold nothing a stranger has written; the first class that fits.
FAULTS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (TimeoutError, "no complete answer in time"),
    (ssl.SSLCertVerificationError, "certificate not valid for this host"),
    (ssl.SSLError, "TLS failed"),
    ((socket.gaierror, UnicodeError), "name not resolved"),
    (ConnectionRefusedError, "connection refused"),
    (ConnectionError, "connection closed or reset"),
    (http.client.IncompleteRead, "answer ended early"),
    (OSError, "not reachable"),
    (http.client.HTTPException, "answer is not HTTP"),
    (ValueError, "answer cannot be read"),
)


class CallbackRefused(Exception):
    """The exchange is ended by the hub's own rules; the text says which."""


class DeadlineSocket(ssl.SSLSocket):
    """A TLS socket on which everything together must end by one moment and fit into one size.

    A socket's own timeout starts anew with every byte; a callback that drips would hold a worker for hours.
    """

    _deadline: float  # time.monotonic()
    _bytes_left: int

    def limit(self, deadline: float, answer_bytes: int) -> None:
        """To be called before anything else."""
        self._deadline, self._bytes_left = deadline, answer_bytes

    def do_handshake(self, block: bool = False) -> None:
        self.settimeout(seconds_until(self._deadline))
        super().do_handshake(block)

    def send(self, *args: Any) -> int:
        self.settimeout(seconds_until(self._deadline))
        return super().send(*args)

    def recv_into(self, *args: Any) -> int:
        self.settimeout(seconds_until(self._deadline))
        count = super().recv_into(*args)
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise CallbackRefused(f"answer is larger than {MAX_ANSWER_BYTES} bytes")
        return count


def seconds_until(deadline: float) -> float:
    """More than 0. Raises TimeoutError when the deadline, a moment of time.monotonic(), has passed."""
    if (seconds := deadline - time.monotonic()) > 0:
        return seconds
    raise TimeoutError


def system_resolve(host: str, port: int) -> Sequence[AddressInfo]:
    """The addresses of a name. Raises OSError or UnicodeError; takes as long as the resolver likes."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def resolve_in_time(resolve: Resolve, host: str, port: int, deadline: float) -> Sequence[AddressInfo]:
    """What `resolve` gives or raises. Raises TimeoutError at the deadline.

    Nothing interrupts a resolver, so it has a thread of its own, which is left behind if it is late. It ends
    when the resolver gives up (half a minute, as a rule), so there are never more than a few for each worker.
    """
    found: Future[Sequence[AddressInfo]] = Future()

    def look_up() -> None:
        try:
            found.set_result(resolve(host, port))
        except Exception as error:
            found.set_exception(error)

    try:
        threading.Thread(target=look_up, name="hub-resolver", daemon=True).start()
    except RuntimeError as error:
        raise OSError(errno.ENOMEM, "no thread for the resolver") from error
    return found.result(seconds_until(deadline))


class VettedConnection(http.client.HTTPSConnection):
    """An HTTPS connection that resolves the name once and goes to no other address than those it has checked.

    Server name, certificate check and Host header keep the name. As every exchange resolves anew, a name that
    changes its address between two of them ("rebinding") is checked anew.
    """

    def __init__(
        self, host: str, *, timeout: float, context: ssl.SSLContext, resolve: Resolve, allow_private: bool
    ):
        super().__init__(host, timeout=timeout, context=context)
        self._deadline = time.monotonic() + timeout
        self._tls_context = context
        self._resolve = resolve
        self._allow_private = allow_private

    def connect(self) -> None:
        # Without a free descriptor the resolver would report that there is no such name.
        socket.socket().close()
        addresses = resolve_in_time(self._resolve, self.host, self.port, self._deadline)
        for *_, (address, *_) in addresses:
            if not (self._allow_private or is_public(ipaddress.ip_address(address))):
                raise CallbackRefused(f"{address} is not a public address")
        plain = connect_to_one(addresses, self._deadline)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = cast(  # it is the context's sslsocket_class
                DeadlineSocket,
                self._tls_context.wrap_socket(
                    plain, server_hostname=self.host, do_handshake_on_connect=False
                ),
            )
        except BaseException:
            plain.close()
            raise
        self.sock = tls
        tls.limit(self._deadline, MAX_ANSWER_BYTES)
        tls.do_handshake()


def connect_to_one(addresses: Sequence[AddressInfo], deadline: float) -> socket.socket:
    """Connect to the first address that answers, each within its share of the time. Raises OSError."""
    fault: OSError = socket.gaierror("no address")
    for tried, (family, kind, protocol, _, address) in enumerate(addresses):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(seconds_until(deadline) / (len(addresses) - tried))
            connection.connect(address)
        except OSError as error:
            connection.close()
            fault = error
        else:
            return connection
    raise fault


class VettedHandler(urllib.request.HTTPSHandler):
    """urllib's way to make every https request over a VettedConnection."""

    def __init__(self, context: ssl.SSLContext, resolve: Resolve, *, allow_private: bool):
        super().__init__(context=context)
        self._connection: Callable[..., VettedConnection] = functools.partial(
            VettedConnection, context=context, resolve=resolve, allow_private=allow_private
        )

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connection, req)


class CallbackClient:
    """Sends messages to callbacks. Any thread."""

    def __init__(self, settings: HubSettings, resolve: Resolve = system_resolve):
        """Raises HubUnavailable if the settings' ca_file cannot be used."""
        context = ssl.create_default_context()
        context.sslsocket_class = DeadlineSocket
        if settings.ca_file is not None:
            try:
                context.load_verify_locations(settings.ca_file)
            except OSError as error:
                raise HubUnavailable(settings.ca_file, f"no certificates: {error}") from error
        # With this one handler it cannot follow redirects, use proxies, keep cookies or log in anywhere.
        self._opener = urllib.request.OpenerDirector()
        self._opener.add_handler(VettedHandler(context, resolve, allow_private=settings.allow_private))
        self._opener.addheaders = [("User-Agent", settings.user_agent)]

    def send(self, message: Message) -> Reply:
        """Make one exchange; whatever goes wrong with it is in the reply."""
        try:
            request = urllib.request.Request(  # noqa: S310 - the opener below knows no scheme but https
                message.url, data=message.body, headers=dict(message.headers), method=message.method
            )
            with closing(self._opener.open(request, timeout=message.timeout_seconds)) as response:
                return read_reply(response, message.answer_body_bytes)
        except CallbackRefused as refusal:
            return Reply(None, str(refusal))
        except (OSError, http.client.HTTPException, ValueError) as error:
            return fault_reply(error)


def read_reply(response: http.client.HTTPResponse, answer_body_bytes: int) -> Reply:
    """The part of an answer that matters: the body of a success only, and of that no more than was wanted."""
    reply = Reply(response.status, f"HTTP {response.status}", retry_after=response.headers.get("Retry-After"))
    if not (reply.is_success and answer_body_bytes):
        return reply
    body = response.read(answer_body_bytes)
    if response.length and len(body) < answer_body_bytes:  # announced, wanted and not sent
        raise http.client.IncompleteRead(body, response.length)
    return replace(reply, body=body)


def fault_reply(error: Exception) -> Reply:
    """The reply that stands for an exception."""
    cause = getattr(error, "reason", error) if isinstance(error, urllib.error.URLError) else error
    outcome = next((words for kind, words in FAULTS if isinstance(cause, kind)), "not reachable")
    own_fault = type(cause) is OSError and cause.errno in OWN_FAULTS
    return Reply(None, outcome, own_fault=own_fault)


# ---- Worker: one job from the store to the callback and back -----------------------------------------------

Send: TypeAlias = Callable[[Message], Reply]


class Worker:
    """Does jobs. It has no thread of its own: any number of threads may call it, each with another pair."""

    def __init__(
        self,
        settings: HubSettings,
        store: Store,
        send: Send,
        clock: Callable[[], float],
        stopping: threading.Event,
    ):
        self._settings = settings
        self._store = store
        self._send = send
        self._clock = clock
        self._stopping = stopping

    def jobs(self, topics: Mapping[str, Topic]) -> list[Job]:
        """Everything that is due now. Raises StoreFault."""
        with self._store.reading() as rows:
            return list(rows.jobs(digests(topics), self._clock(), self._settings.longest_wait_seconds))

    def tidy(self) -> None:
        """Delete what has ended. Raises StoreFault."""
        with self._store.reading() as rows:
            ended = rows.ended(self._clock(), self._settings.max_subscriptions)
        if not ended:
            return
        with self._store.writing() as rows:
            rows.delete_subscriptions(row_id for row_id, _, _ in ended)
        for _, path, host in ended:
            log_event(path, host, "lease ended")

    def perform(self, job: Job, topics: Mapping[str, Topic]) -> None:
        """Do a job if it is still to be done, and record the result. Raises StoreFault if it cannot look."""
        now = self._clock()
        with self._store.reading() as rows:
            pair = rows.pair(job.key, now)
        pending, subscription, topic = pair.pending, pair.subscription, topics.get(job.key[0])
        if job.lane in ("verification", "notice"):
            if pending and pending.id == job.row_id:
                self._make_owed_get(pending, now)
        elif (
            subscription and subscription.id == job.row_id and topic and self._wants(subscription, topic, now)
        ):
            self._deliver(subscription, topic)

    def _wants(self, subscription: Subscription, topic: Topic, now: float) -> bool:
        return subscription.delivered_digest != topic.digest and is_due(
            subscription.next_attempt_at, now, self._settings.longest_wait_seconds
        )

    def _make_owed_get(self, pending: Pending, now: float) -> None:
        challenge = secrets.token_urlsafe(32)
        reply = self._exchange(owed_get(pending, challenge, self._settings.verification_timeout_seconds))
        if not reply.own_fault:
            self._record(pending, answered(pending, challenge, reply, now))

    def _deliver(self, subscription: Subscription, topic: Topic) -> None:
        reply = self._exchange(notification(subscription, topic, self._settings))
        jitter = random.random()  # noqa: S311 - it spreads load and guards nothing
        self._record(subscription, attempted(subscription, topic, reply, self._clock(), jitter))

    def _exchange(self, message: Message) -> Reply:
        try:
            return self._send(message)
        except Exception:
            # Counted like any failure, or a callback that hits a bug of ours would be tried every second.
            logger.exception("an exchange with a callback failed unexpectedly")
            return Reply(None, "error in the hub")

    def _record(self, row: Pending | Subscription, event: Event) -> None:
        """Apply an event. While the store cannot be written the worker waits here, and nothing is sent again.

        If the hub stops meanwhile the event is lost, and the exchange is repeated after the next start.
        """
        while True:
            try:
                with self._store.writing() as rows:
                    now = self._clock()
                    before = rows.pair(row.key, now)
                    then = after(before, event, self._settings.retry_delays_seconds)
                    match event, then.pending:
                        case Attempted(), Pending(mode="denied") if not rows.has_room_for_notice():
                            then = replace(then, pending=None)
                    rows.save(before, then)
                    match row, event:
                        case Pending(mode="subscribe" | "unsubscribe"), Answered(confirmed=False):
                            rows.note_unconfirmed(row.host, now)
                break
            except StoreFault:
                if self._stopping.wait(TICK_SECONDS):
                    return
        if then != before:
            log_event(row.path, row.host, event_line(before, event))


def digests(topics: Mapping[str, Topic]) -> Digests:
    return {path: topic.digest for path, topic in topics.items()}


def log_event(path: str, host: str, line: str) -> None:
    """One line an event."""
    logger.info("hub %s %s: %s", path, host, line)


# ---- Hub: what the service sees, and the threads -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class News:
    """What other threads tell the scheduler."""

    kind: Literal["changed", "accepted", "finished", "stop"]
    job: Job | None = None


class Hub:
    """The hub of one process. `publish`, `answer` and `counts` may be called from any thread, at any time."""

    def __init__(
        self, settings: HubSettings, *, clock: Callable[[], float] = time.time, send: Send | None = None
    ):
        """Open or create the store. `send` replaces the HTTPS client. Raises HubUnavailable."""
        self._settings = settings
        self._clock = clock
        self._stopping = threading.Event()
        self._topics: Mapping[str, Topic] = {}
        send = send or CallbackClient(settings).send
        self._store = Store(settings.state_dir)
        self._worker = Worker(settings, self._store, send, clock, self._stopping)
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()  # to the scheduler
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()  # to the workers; None sends one home
        self._threads: list[threading.Thread] = []
        if settings.allow_private:
            logger.warning("hub: PRIVATE ADDRESSES AND ALL PORTS ARE ALLOWED FOR CALLBACKS; for labs only")
        if settings.ca_file is not None:
            logger.warning(
                "hub: certificates in %s are trusted for callbacks; for labs only", settings.ca_file
            )

    def publish(self, topics: Mapping[str, Topic]) -> None:
        """Make these the current topics, by path. Whoever has other content is due; no disk or network here.

        A topic left out rests: nobody can subscribe to it, and its subscriptions wait until it is back.
        """
        self._topics = dict(topics)
        self._news.put(News("changed"))

    def start(self) -> None:
        """Start to verify and deliver. The threads are daemons, since all that matters is in the store."""
        for number in range(self._settings.workers):
            self._threads.append(
                threading.Thread(target=self._work, name=f"hub-worker-{number}", daemon=True)
            )
        self._threads.append(threading.Thread(target=self._schedule, name="hub-scheduler", daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Take up nothing more, let running exchanges end within the timeout, close the store.

        A thread whose callback needs longer ends by its own deadline; what it learns is not recorded.
        """
        deadline = time.monotonic() + timeout_seconds
        self._stopping.set()
        self._news.put(News("stop"))
        for _ in range(self._settings.workers):
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._store.close()

    def answer(self, content_type: str | None, body: bytes) -> HubAnswer:
        """Answer the POST of a subscriber (REC 5.1.2).

        What is answered with 202 is on the disk, so this may wait for the disk, but never for the network.
        """
        try:
            request = read_request(
                content_type, body, settings=self._settings, topics=self._topics, now=self._clock()
            )
            self._accept(request)
        except Refused as refused:
            wait = refused.retry_after_seconds
            headers = () if wait is None else (("Retry-After", str(wait)),)
            return HubAnswer(refused.status, refused.reason, headers)
        return HubAnswer(HTTPStatus.ACCEPTED, "accepted; the callback will now be asked to confirm")

    def _accept(self, request: Pending) -> None:
        """Store a request. Raises Refused."""
        event = Requested(request)
        try:
            # Alone durable: whatever is written later follows again from this and from the callbacks.
            with self._store.writing(durable=True) as rows:
                before = rows.pair(request.key, request.requested_at)
                census = rows.census(request, request.requested_at)
                admit(before, request.mode, census, self._settings.max_subscriptions)
                then = rows.save(before, after(before, event, self._settings.retry_delays_seconds))
        except StoreFault as fault:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, "requests cannot be stored at present", RETRY_SOON_SECONDS
            ) from fault
        log_event(request.path, request.host, event_line(before, event))
        if then.pending:
            job = Job("verification", then.pending.id, request.key, request.host)
            self._news.put(News("accepted", job))

    def counts(self) -> dict[str, int]:
        """Active subscriptions, how many of them fail or are behind the current content, pending requests.

        Empty if the store cannot be read.
        """
        try:
            with self._store.reading() as rows:
                return rows.counts(digests(self._topics), self._clock())
        except StoreFault:
            return {}

    # The scheduler's thread: it alone knows the agenda, and hears from the others through `_news`.

    def _schedule(self) -> None:
        agenda = Agenda(self._settings.workers)
        plan_at = time.monotonic()
        while not self._stopping.is_set():
            try:
                changed = self._hear(agenda, plan_at)
                if changed or time.monotonic() >= plan_at:
                    plan_at = time.monotonic() + TICK_SECONDS
                    self._plan(agenda)
                for job in agenda.start():
                    self._jobs.put(job)
            except Exception:
                logger.exception("the hub's scheduler met an unexpected error and goes on")

    def _plan(self, agenda: Agenda) -> None:
        # The store logs its faults. What waits already can go on, and a store that only reads can be read.
        with suppress(StoreFault):
            self._worker.tidy()
        with suppress(StoreFault):
            agenda.plan(self._worker.jobs(self._topics))

    def _hear(self, agenda: Agenda, until: float) -> bool:
        """Take in all news, waiting `until` then (time.monotonic()) for the first. Whether topics changed."""
        changed = False
        with suppress(queue.Empty):
            news = self._news.get(timeout=max(0.0, until - time.monotonic()))
            while True:
                changed |= news.kind == "changed"
                if news.kind == "accepted" and news.job:
                    agenda.add(news.job)
                if news.kind == "finished" and news.job:
                    agenda.finish(news.job)
                news = self._news.get_nowait()
        return changed

    # The workers' threads.

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                with suppress(StoreFault):  # the row still says what is to be done
                    self._worker.perform(job, self._topics)
            except Exception:
                logger.exception("a job of the hub failed unexpectedly")
            self._news.put(News("finished", job))
