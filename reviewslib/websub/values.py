"""What the hub is told and what it keeps, as values: callbacks, subscriptions, requests, topics, settings.

Everything here is pure: it has no socket, file, thread or clock; time is an argument. This module must not
know how anything is stored, sent or scheduled.

All moments (`now`, `..._at`) are seconds since the epoch, all durations seconds.

Sections, in order: Callback URLs - Networks and domains - Rows - Settings, topics and answers - Requests -
Limits
"""

from __future__ import annotations

import http.client
import ipaddress
import re
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import parse_qs

FORM_TYPE = "application/x-www-form-urlencoded"
MAX_CALLBACK_CHARACTERS = 2048
MAX_FORM_BYTES = 16 * 1024
MAX_FORM_FIELDS = 64
MAX_SECRET_BYTES = 199  # REC 5.1: "less than 200 bytes"
MAX_PENDING = 1000
MAX_UNVERIFIED = 50  # of a domain: pending, and tried in UNVERIFIED_SECONDS; of a network: tried in these
UNVERIFIED_SECONDS = 60.0
QUOTA_SHARE = 10  # a host, a network and a domain may each have one of so many subscriptions
FAILURES_THAT_REMOVE = 3


# ---- Callback URLs -----------------------------------------------------------------------------------------


class Callback(NamedTuple):
    """A callback URL that has passed all checks that need no network."""

    key: str  # the normalized URL
    url: str  # as sent
    host: str  # lower case, an IPv6 address without its brackets
    domain: str


# RFC 3986's characters and no others. urlsplit() silently drops tabs, line ends and leading spaces, so the
# string is checked as it came, before anything parses it.
_URL_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
HTTPS_AUTHORITY = re.compile(r"https://([^/?#]*)", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w-]{1,63}(?:\.[\w-]{1,63})*)(?::([0-9]{1,5}))?", re.ASCII)

# Resolvers read a host that ends in a number as an IPv4 address: 127.1, 2130706433, 0x7f.1, 017700000001.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

# Escapes of letters, digits, "-", ".", "_" and "~", which RFC 3986 section 2.3 calls unreserved.
_UNRESERVED_ESCAPE = re.compile(r"%(2D|2E|5F|7E|3[0-9]|[46][1-9A-F]|[57][0-9A])", re.IGNORECASE)
_SCHEME_AND_AUTHORITY = re.compile(r"\A[^:/?#]+://[^/?#]*")

# Globally routable by the registry, but not one public host: relays, protocol assignments (Teredo is one),
# documentation, and 6to4, which embeds any IPv4 address.
_NOT_PUBLIC = "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"
_NOT_PUBLIC_NETWORKS = tuple(map(ipaddress.ip_network, _NOT_PUBLIC))
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")


def parse_callback(url: str, *, allow_private: bool) -> Callback:
    """Check a callback without the network. Raises ValueError, whose text completes "hub.callback ..."."""
    if len(url) > MAX_CALLBACK_CHARACTERS:
        raise ValueError(f"is longer than {MAX_CALLBACK_CHARACTERS} characters")
    if not _URL_CHARACTERS.fullmatch(url):
        raise ValueError("is empty or has a character that no URL may have; percent-encode it")
    if not (https := HTTPS_AUTHORITY.match(url)):
        raise ValueError("must be an https:// URL; plain HTTP is not delivered to")
    if "#" in url:
        raise ValueError("must not have a fragment (#)")
    if "@" in https[1]:
        raise ValueError("must not hold a user name (@)")
    if not (authority := _HOST_AND_PORT.fullmatch(https[1])):
        raise ValueError("has no usable host and port")
    host, port = authority[1].lower(), int(authority[2] or http.client.HTTPS_PORT)
    if not 0 < port < 65536:
        raise ValueError("has a port outside 1 to 65535")
    if not allow_private:
        _refuse_private(host, port)
    host = host.strip("[]")
    return Callback(normalized_url(url), url, host, domain_of(host))


def _refuse_private(host: str, port: int) -> None:
    """Raise ValueError for a host or port that no public callback can have, without asking a resolver."""
    if port != http.client.HTTPS_PORT and port < 1024:
        raise ValueError(f"has port {port}; allowed are 443 and 1024 to 65535")
    if host.startswith("[") or _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise ValueError("has an address for a host; a name is needed")
    if "." not in host or host.endswith(".localhost"):
        raise ValueError("has a host that is no public name")


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address belongs to a host on the public internet.

    `is_global` alone lets multicast, NAT64, 6to4, IPv4-compatible and site-local addresses through.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return is_public(address.ipv4_mapped)
    if address.version == 6:
        routable = address in _UNICAST_V6
    else:
        routable = address.is_global and not (address.is_multicast or address.is_reserved)
    return routable and not any(address in network for network in _NOT_PUBLIC_NETWORKS)


def normalized_url(url: str) -> str:
    """The URL to compare by: unreserved escapes decoded (WebSub 5.1.1), scheme and host in lower case."""
    decoded = _UNRESERVED_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), url)
    return _SCHEME_AND_AUTHORITY.sub(lambda start: start[0].lower(), decoded)


# ---- Networks and domains: what a stranger has few of ------------------------------------------------------


def network_of(address: str) -> str:
    """An IPv4 address, or the /48 network of an IPv6 address."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ipaddress.IPv6Network((int(parsed), 48), strict=False))


def domain_of(host: str) -> str:
    """The last two labels of a host, or three below suffixes like `co.uk`. An address is its own domain."""
    labels = host.split(".")
    if labels[-1].isdigit():
        return host
    has_long_suffix = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3:] if has_long_suffix else labels[-2:])


def selector(who: str) -> Callable[[Subscriber], bool]:
    """Whether a subscriber is meant by a host, a `.domain` with all below it, or a network.

    Raises ValueError for anything else.
    """
    with suppress(ValueError):
        meant = ipaddress.ip_network(who.strip("[]"), strict=False)
        return lambda subscriber: overlaps(subscriber.network, meant)
    name = who.lower()
    if not re.fullmatch(r"\.?[\w-]+(\.[\w-]+)*", name, re.ASCII):
        raise ValueError(f"{who!r} is neither a host, nor a .domain, nor a network")
    if name.startswith("."):
        return lambda subscriber: f".{subscriber.host}".endswith(name)
    return lambda subscriber: subscriber.host == name


def overlaps(network: str | None, other: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    """Whether a network, as `network_of` writes it, has an address of another; a domain has none."""
    with suppress(ValueError):
        return ipaddress.ip_network(network or "").overlaps(other)
    return False


# ---- Rows --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A callback and a topic. These two together identify a subscription (WebSub section 5.1)."""

    path: str  # of the topic: "/feed.xml"
    callback_key: str  # the normalized URL
    callback: str  # as sent
    host: str  # of the callback
    domain: str
    network: str | None  # where the callback confirmed last; None if it never did
    topic_url: str  # as sent, and as sent back in hub.topic (WebSub section 5.3)

    @property
    def key(self) -> str:
        return self.path + self.callback_key


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that waits for its verification, or ("denied") what the callback must be told.

    A later request of the same subscriber and mode replaces it and has a larger id.
    """

    id: int | None  # assigned by the store, never reused
    subscriber: Subscriber
    mode: Literal["subscribe", "unsubscribe", "denied"]
    secret: bytes | None
    lease_seconds: int
    base_digest: str  # of the topic's content at `requested_at`, which the subscriber is assumed to have
    requested_at: float
    reason: str = ""  # of a denial


@dataclass(frozen=True, slots=True)
class Subscription:
    """A verified subscriber."""

    id: int | None  # assigned by the store, never reused
    subscriber: Subscriber
    secret: bytes | None
    created_at: float
    expires_at: float
    delivered_digest: str  # of the content that the callback has
    failures: int = 0  # in a row
    next_attempt_at: float = 0.0
    last_attempt_at: float | None = None
    last_outcome: str = ""


Row: TypeAlias = PendingRequest | Subscription  # fields are in the order of the table's columns


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """All that is known of a subscriber; of each mode there is one request, and the oldest comes first."""

    subscription: Subscription | None = None
    requests: tuple[PendingRequest, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        return (*((self.subscription,) if self.subscription else ()), *self.requests)


def denial(subscriber: Subscriber, reason: str, now: float) -> PendingRequest:
    """The notice that the hub refuses or has removed a subscription (REC 5.2)."""
    return PendingRequest(None, subscriber, "denied", None, 0, "", now, reason)


# ---- Settings, topics and answers --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Topic:
    """The current representation of a topic, exactly as GET serves it (identity coding)."""

    path: str  # "/feed.xml"
    content_type: str
    body: bytes
    digest: str  # hex SHA-256 of body


@dataclass(frozen=True, slots=True)
class HubSettings:
    """What the operator chooses: positive numbers, durations in seconds."""

    base_url: str  # without a slash at the end; base_url + path is a topic's URL
    state_dir: Path
    user_agent: str
    lease_seconds: int  # the default lease
    lease_min: int
    lease_max: int
    retry_delays: tuple[float, ...]  # one fewer than FAILURES_THAT_REMOVE
    timeout: float  # of a delivery, from connecting to the end of the answer's head
    workers: int
    max_subscriptions: int
    ca_file: Path | None  # PEM, trusted for callbacks besides the system's certificates; for tests
    allow_private: bool  # callbacks may have any address and port; for tests


class HubAnswer(NamedTuple):
    """The answer to a POST: one line of text/plain (REC 5.1.2), and the headers that the status needs."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


class RequestRefused(Exception):
    """The request is answered with an error status; the reason is for the author of the subscriber."""

    def __init__(self, status: int, reason: str, retry_after_seconds: int | None = None):
        super().__init__(reason)
        wait = (("Retry-After", str(retry_after_seconds)),) if retry_after_seconds else ()
        self.answer = HubAnswer(status, reason, wait)


# ---- Requests: the form of a subscriber (REC 5.1) ----------------------------------------------------------


def read_subscription_request(
    content_type: str | None, body: bytes, settings: HubSettings, topics: Mapping[str, Topic], now: float
) -> PendingRequest:
    """What a form POST asks for. Raises RequestRefused."""
    form = read_form(content_type, body)
    parsers: dict[str, Callable[[str], Any]] = {
        "hub.mode": parse_mode,
        "hub.callback": lambda url: parse_callback(url, allow_private=settings.allow_private),
        "hub.topic": str,
    }
    values: dict[str, Any] = {"hub.lease_seconds": settings.lease_seconds, "hub.secret": None}
    if form.get("hub.mode") == ["subscribe"]:  # REC 5.1: a lease is ignored otherwise
        parsers |= {"hub.lease_seconds": parse_lease_seconds, "hub.secret": parse_secret}
    issues = []
    for name, parse in parsers.items():
        given = form.get(name, [])
        try:
            if len(given) > 1:
                raise ValueError(f"is given {len(given)} times")
            if given:
                values[name] = parse(given[0])
            elif name not in values:
                raise ValueError("is missing")
        except ValueError as fault:
            issues.append(f"{name} {fault}")
    if issues:
        raise RequestRefused(400, "; ".join(issues))

    url, base_url = normalized_url(values["hub.topic"]), normalized_url(settings.base_url)
    path = url.removeprefix(base_url) if url.startswith(base_url) else ""
    topic = topics.get(path)
    if topic is None and values["hub.mode"] == "subscribe":
        known = ", ".join(settings.base_url + path for path in topics)
        raise RequestRefused(404, f"hub.topic is not a topic of this hub; its topics are {known}")
    callback: Callback = values["hub.callback"]
    return PendingRequest(
        id=None,
        subscriber=Subscriber(path, *callback, None, values["hub.topic"]),
        mode=values["hub.mode"],
        secret=values["hub.secret"],
        lease_seconds=min(max(values["hub.lease_seconds"], settings.lease_min), settings.lease_max),
        base_digest=topic.digest if topic else "",
        requested_at=now,
    )


def read_form(content_type: str | None, body: bytes) -> dict[str, list[str]]:
    """The values of each field of a form in UTF-8. Raises RequestRefused."""
    if len(body) > MAX_FORM_BYTES:
        raise RequestRefused(413, f"the form is larger than {MAX_FORM_BYTES} bytes")
    if (content_type or "").partition(";")[0].strip().lower() != FORM_TYPE:
        raise RequestRefused(415, f"Content-Type must be {FORM_TYPE}")
    try:
        text = body.decode("utf-8")
        return parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS)
    except UnicodeError:
        raise RequestRefused(400, "the form is not UTF-8") from None
    except ValueError:
        raise RequestRefused(400, f"the form has more than {MAX_FORM_FIELDS} fields") from None


def parse_mode(raw: str) -> str:
    if raw == "publish":
        raise ValueError("publish is not needed: this hub sees by itself when its topics change")
    if raw not in ("subscribe", "unsubscribe"):
        raise ValueError("must be subscribe or unsubscribe")
    return raw


def parse_lease_seconds(raw: str) -> int:
    """A positive decimal integer (REC 5.1) of any length; eleven digits exceed every maximum."""
    digits = raw.lstrip("0")
    if not (raw.isascii() and raw.isdecimal() and digits):
        raise ValueError("must be a positive whole number of seconds")
    return int(digits[:11])


def parse_secret(raw: str) -> bytes:
    """The key of the signatures: the UTF-8 bytes of hub.secret."""
    secret = raw.encode("utf-8")
    if not 0 < len(secret) <= MAX_SECRET_BYTES:
        raise ValueError(f"must have 1 to {MAX_SECRET_BYTES} bytes")
    return secret


# ---- Limits ------------------------------------------------------------------------------------------------


class Usage(NamedTuple):
    """How many rows there are besides a subscriber's own.

    Requests of confirmed subscribers, notices of removal and ended subscriptions do not count.
    """

    pending: int
    pending_of_domain: int
    subscriptions: int
    of_host: int
    of_domain: int
    of_network: int

    @property
    def is_full(self) -> bool:
        """Whether no stranger's request finds room."""
        return self.pending >= MAX_PENDING


def exhausted_quota(taken: Usage, max_subscriptions: int) -> str:
    """Of which subscriptions there are too many for one more; "" when there is room."""
    share = max(1, max_subscriptions // QUOTA_SHARE)
    limits = {
        "subscriptions": (taken.subscriptions, max_subscriptions),
        "subscriptions of this host": (taken.of_host, share),
        "subscriptions of this domain": (taken.of_domain, share),
        "subscriptions of this address": (taken.of_network, share),
    }
    return next((what for what, (rows, limit) in limits.items() if rows >= limit), "")


def admit(mode: str, taken: Usage, of_domain: int, of_network: int, max_subscriptions: int) -> None:
    """Raise RequestRefused when a stranger has nothing to unsubscribe from, or a limit is reached.

    `of_domain` and `of_network` are what was not confirmed lately. These limits keep strangers from having
    many requests sent to somebody, and from using up the limits for all.
    """
    if mode == "unsubscribe":
        raise RequestRefused(404, "hub.callback has no active subscription to hub.topic")
    full, of_domain = exhausted_quota(taken, max_subscriptions), taken.pending_of_domain + of_domain
    refusals = [
        (taken.is_full, 503, 60, "unverified requests"),
        (of_domain >= MAX_UNVERIFIED, 429, 60, "unverified requests of this domain"),
        (of_network >= MAX_UNVERIFIED, 429, 60, "unverified requests of this address"),
        (full != "", 503 if full == "subscriptions" else 429, 3600, full),
    ]
    for is_reached, status, retry_after_seconds, what in refusals:
        if is_reached:
            raise RequestRefused(status, f"there are too many {what}; try again later", retry_after_seconds)


class RateLimit:
    """How often each network or domain was tried within UNVERIFIED_SECONDS without a confirmation.

    All times are those of one monotonic clock. Any thread.
    """

    def __init__(self) -> None:
        self._at: dict[str, deque[float]] = {}

    def add(self, key: str, now: float) -> None:
        self._at.setdefault(key, deque(maxlen=MAX_UNVERIFIED)).append(now)

    def take_back(self, key: str) -> None:
        """Take back the last try, which was confirmed."""
        with suppress(KeyError, IndexError):
            self._at[key].pop()

    def count(self, key: str, now: float) -> int:
        return sum(at > now - UNVERIFIED_SECONDS for at in self._at.get(key, deque()).copy())

    def active_keys(self, now: float) -> set[str]:
        """The networks and domains that were tried. All others are dropped."""
        for key in self._at.copy():
            if not self.count(key, now):
                self._at.pop(key, None)
        return set(self._at)
