"""The values of the hub: callbacks, subscriptions, requests, topics and settings.

Everything here is pure: it has no socket, file, thread or clock; time is an argument. This module must not
know how anything is stored, sent or scheduled.

All moments (`now`, `..._at`, `since`) are seconds since the epoch, all durations seconds.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPS_PORT
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qs

REQUEST_MODES = ("subscribe", "unsubscribe")
FORM_TYPE = "application/x-www-form-urlencoded"
MAX_CALLBACK_CHARACTERS = 2048
MAX_FORM_BYTES = 16 * 1024
MAX_SECRET_BYTES = 199  # REC 5.1: "less than 200 bytes"


# ---- Callback URLs -----------------------------------------------------------------------------------------

# RFC 3986's characters and no others. urlsplit() silently drops tabs, line ends and leading spaces, so the
# string is checked as it came, before anything parses it.
_URL_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
HTTPS_AUTHORITY = re.compile(r"https://([^/?#]*)", re.IGNORECASE)
_HOST_AND_PORT = re.compile(
    r"(\[[0-9A-Fa-f:.]+\]|[\w-]{1,63}(?:\.[\w-]{1,63})*)(?::([0-9]{1,5}))?", re.ASCII
)

# Resolvers read a host that ends in a number as an IPv4 address: 127.1, 2130706433, 0x7f.1, 017700000001.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

# Escapes of letters, digits, "-", ".", "_" and "~", which RFC 3986 section 2.3 calls unreserved.
_UNRESERVED_ESCAPE = re.compile(
    r"%(2D|2E|5F|7E|3[0-9]|[46][1-9A-F]|[57][0-9A])", re.IGNORECASE
)
_SCHEME_AND_AUTHORITY = re.compile(r"\A[^:/?#]+://[^/?#]*")

# Networks without public hosts, which `is_public` excludes from larger ranges: relays, protocol assignments
# (Teredo is one), documentation, and 6to4, which embeds any IPv4 address.
_NOT_PUBLIC = (
    "192.0.0.0/24",
    "192.88.99.0/24",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
)
_NOT_PUBLIC_NETWORKS = tuple(map(ipaddress.ip_network, _NOT_PUBLIC))
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")


def parse_callback(url: str, *, allow_private: bool) -> str:
    """The host of a callback, in lower case. Raises ValueError, whose text completes "hub.callback ..."."""
    https = HTTPS_AUTHORITY.match(url)
    authority = _HOST_AND_PORT.fullmatch(https[1]) if https else None
    host, port = (
        (authority[1].lower(), int(authority[2] or HTTPS_PORT))
        if authority
        else ("", 0)
    )
    is_address = host.startswith("[") or _NUMBER.fullmatch(host.rpartition(".")[2])
    is_url = _URL_CHARACTERS.fullmatch(url)
    faults: dict[str, object] = {  # the first one that applies is reported
        f"is longer than {MAX_CALLBACK_CHARACTERS} characters": len(url)
        > MAX_CALLBACK_CHARACTERS,
        "is empty or has a character that no URL may have; percent-encode it": not is_url,
        "must be an https:// URL; the hub does not deliver over plain HTTP": not https,
        "must not have a fragment (#)": "#" in url,
        "must not have a user name (@)": https and "@" in https[1],
        "has no usable host and port": not authority,
        "has a port outside 1 to 65535": not 0 < port < 65536,
    }
    if not allow_private:
        faults |= {
            f"has port {port}; allowed are 443 and 1024 to 65535": port < 1024
            and port != HTTPS_PORT,
            "has an IP address as its host; a host name is needed": is_address,
            "has a host name that is not public": "." not in host
            or host.endswith(".localhost"),
        }
    for fault, applies in faults.items():
        if applies:
            raise ValueError(fault)
    return host.strip("[]")


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address belongs to a host on the public internet.

    `is_global` alone lets multicast, NAT64, 6to4, IPv4-compatible and site-local addresses through.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return is_public(address.ipv4_mapped)
    if address.version == 6:
        routable = address in _UNICAST_V6
    else:
        routable = address.is_global and not (
            address.is_multicast or address.is_reserved
        )
    return routable and not any(address in network for network in _NOT_PUBLIC_NETWORKS)


def normalized_url(url: str) -> str:
    """The URL for comparisons: unreserved escapes decoded (WebSub 5.1.1), scheme and host in lower case."""
    decoded = _UNRESERVED_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), url)
    return _SCHEME_AND_AUTHORITY.sub(lambda start: start[0].lower(), decoded)


# ---- Networks and domains: the keys of rate limits and quotas ----------------------------------------------

# Public suffixes of two labels below which anybody can register a name, from the section "ICANN domains" of
# publicsuffix.org's list of 2023-02-09. Names below a suffix that is missing here share the limits of one
# domain. Do not add a name that somebody can buy: its owner would get the limits of many domains.
_NAMES_BY_COUNTRY = """
ae co net org; ar com net org; au asn com id net org; bd com net org; br art blog com eco ind net org;
cn com net org; co com net nom org web; cr co; cy com net org; do com net org web; ec com net org;
eg com net org; fr asso com nom; ge com net org; gh com org; gr com net org; gt com net org;
hk com idv net org; hu co info org priv; id biz co my net or web; il co net org;
in co com firm gen ind net org; jp co gr ne or; ke co info me ne or; kr co ne or pe re; kw com net org;
lk com net org web; ma co net org; mx com net org; my com name net org; ng com net org; ni co com net org;
np com net org; nz co geek gen kiwi net org; pa com net org; pe com net org; ph com net org;
pk biz com fam net org web; pl biz com info net org; pr com net org; pt com net org; ro com org; rs co org;
sa com net org; sg com net org per; th co in net or; tn com net org; tr biz com gen info name net org web;
tw club com ebiz game idv net org; tz co me or; ua com in kiev kyiv lviv net org; ug co com ne or org;
uk co ltd me net org plc; uy com net org; ve co com net org web; vn biz com info name net org;
za co net nom org web; zw co org
"""
_SUFFIXES = {
    f"{name}.{country}"
    for country, *names in map(str.split, _NAMES_BY_COUNTRY.split(";"))
    for name in names
}


def network_of(address: str) -> str:
    """An IPv4 address, or the /48 network of an IPv6 address."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(
        parsed.ipv4_mapped or ipaddress.IPv6Network((int(parsed), 48), strict=False)
    )


def domain_of(host: str) -> str:
    """The last two labels of a host name, three below a public suffix like `co.uk`."""
    labels = host.split(".")
    return ".".join(labels[-3:] if ".".join(labels[-2:]) in _SUFFIXES else labels[-2:])


def selector(host_or_domain: str) -> Callable[[str], bool]:
    """A predicate for a host, or for a `.domain` and all hosts below. Raises ValueError."""
    name = host_or_domain.lower().strip("[]")
    if not re.fullmatch(r"\.?[\w:-]+(\.[\w-]+)*", name, re.ASCII):
        raise ValueError(f"{host_or_domain!r} is neither a host nor a .domain")
    if name.startswith("."):
        return lambda host: f".{host}".endswith(name)
    return lambda host: host == name


# ---- Rows --------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A subscription (mode "active"), a request that waits for its verification, or a denied notice.

    A callback and a topic together are a subscriber (REC 5.1), which has at most one row of each mode. A
    newer request replaces the earlier one of its mode, and has a larger id.
    """

    path: str  # of the topic: "/feed.xml"
    callback_key: str  # the normalized URL
    callback: str  # as sent
    host: str  # of the callback
    domain: str
    topic_url: str  # as sent, and as sent back in hub.topic (REC 5.3)
    mode: str  # "active", "subscribe", "unsubscribe" or "denied"
    secret: bytes | None
    lease_seconds: int
    since: float
    expires_at: float
    due_at: float  # not before this moment
    digest: str = ""  # of the content that the callback has; "" if that is unknown
    network: str | None = None  # where the callback confirmed last; None for a stranger
    turn: int = 0  # rows with smaller numbers come first
    failures: int = 0  # in a row
    took: float = 0.0  # seconds, of the subscriber's last exchange
    tried_at: float | None = None  # the last delivery
    outcome: str = ""  # of the last delivery; the reason of a denied notice
    id: int = 0  # assigned by the store, never reused; 0 before

    @property
    def key(self) -> str:
        """The subscriber."""
        return self.path + self.callback_key

    @property
    def is_of_stranger(self) -> bool:
        return self.network is None

    @property
    def to_verify(self) -> tuple[object, ...]:
        """The fields that a verification confirms. Equal requests need one verification."""
        return (
            self.callback,
            self.topic_url,
            self.network,
            self.secret,
            self.digest,
            self.lease_seconds,
        )


Rows: TypeAlias = Mapping[str, Row]  # of one subscriber, by mode

MAX_WAIT_SECONDS = (
    86400.0  # the lifetime of a request, or a notice, that could not be sent
)


def denial(row: Row, reason: str, now: float) -> Row:
    """The notice to a subscriber that the hub refuses or has removed its subscription (REC 5.2)."""
    notice = row._replace(id=0, mode="denied", secret=None, failures=0, outcome=reason)
    return notice._replace(since=now, expires_at=now + MAX_WAIT_SECONDS, due_at=now)


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
    """The operator's settings of the hub. All numbers are positive, durations are in seconds."""

    base_url: str  # without a slash at the end; base_url + path is a topic's URL
    state_dir: Path
    user_agent: str
    lease_seconds: int  # the default lease
    lease_min: int
    lease_max: int
    retry_delays: tuple[
        float, ...
    ]  # one fewer than the failures that remove a subscription
    timeout: float  # of a delivery, from connecting to the end of the answer's head
    workers: int
    max_subscriptions: int
    ca_file: (
        Path | None
    )  # PEM, trusted for callbacks besides the system's certificates; for tests
    allow_private: bool  # callbacks may have any address and port; for tests


class HubAnswer(NamedTuple):
    """The answer to a POST: one line of text/plain (REC 5.1.2), and headers such as Retry-After."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()


class RequestRefused(Exception):
    """A request that gets an error status. The author of the subscriber reads the reason."""

    def __init__(
        self, status: int, reason: str, retry_after_seconds: int | None = None
    ):
        wait = (
            (("Retry-After", str(retry_after_seconds)),) if retry_after_seconds else ()
        )
        self.answer = HubAnswer(status, reason, wait)


# ---- Requests: the form of a subscriber (REC 5.1) ----------------------------------------------------------


def read_subscription_request(
    content_type: str | None,
    body: bytes,
    settings: HubSettings,
    topics: Mapping[str, Topic],
    now: float,
) -> Row:
    """The request in a form POST. Raises RequestRefused, which names everything that is wrong."""
    form = read_form(content_type, body)
    parsers: dict[str, Callable[[str], Any]] = {
        "hub.mode": parse_mode,
        "hub.callback": lambda url: (
            url,
            parse_callback(url, allow_private=settings.allow_private),
        ),
        "hub.topic": str,
    }
    values: dict[str, Any] = {
        "hub.lease_seconds": settings.lease_seconds,
        "hub.secret": None,
    }
    if form.get("hub.mode") != [
        "unsubscribe"
    ]:  # lease and secret are ignored there (REC 5.1)
        parsers |= {
            "hub.lease_seconds": parse_lease_seconds,
            "hub.secret": parse_secret,
        }
    issues = []
    for name, parse in parsers.items():
        texts = form.get(name, [])
        try:
            if len(texts) > 1:
                raise ValueError(f"is given {len(texts)} times")
            if texts:
                values[name] = parse(texts[0])
            elif name not in values:
                raise ValueError("is missing")
        except ValueError as fault:
            issues.append(f"{name} {fault}")

    url = normalized_url(values.get("hub.topic", ""))
    base_url = normalized_url(settings.base_url)
    path = url.removeprefix(base_url) if url.startswith(base_url) else ""
    topic = topics.get(path)
    status = 400 if issues else 404
    if (
        topic is None
        and "hub.topic" in values
        and values.get("hub.mode") != "unsubscribe"
    ):
        topic_urls = ", ".join(settings.base_url + path for path in topics)
        issues.append(
            f"hub.topic is not a topic of this hub; its topics are {topic_urls}"
        )
    if issues:
        raise RequestRefused(status, "; ".join(issues))
    callback, host = values["hub.callback"]
    lease_seconds = min(
        max(values["hub.lease_seconds"], settings.lease_min), settings.lease_max
    )
    asked = values["hub.topic"], values["hub.mode"], values["hub.secret"], lease_seconds
    moments = (now, now + MAX_WAIT_SECONDS, now)
    digest = topic.digest if topic else ""
    return Row(
        path,
        normalized_url(callback),
        callback,
        host,
        domain_of(host),
        *asked,
        *moments,
        digest,
    )


def read_form(content_type: str | None, body: bytes) -> dict[str, list[str]]:
    """The values of each field of a form in UTF-8. Raises RequestRefused."""
    if len(body) > MAX_FORM_BYTES:
        raise RequestRefused(413, f"the form is larger than {MAX_FORM_BYTES} bytes")
    if (content_type or "").partition(";")[0].strip().lower() != FORM_TYPE:
        raise RequestRefused(415, f"Content-Type must be {FORM_TYPE}")
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, errors="strict")
    except UnicodeError:
        raise RequestRefused(400, "the form is not UTF-8") from None


def parse_mode(raw: str) -> str:
    if raw not in REQUEST_MODES:
        raise ValueError("must be subscribe or unsubscribe")
    return raw


def parse_lease_seconds(raw: str) -> int:
    """A positive decimal integer (REC 5.1), cut to eleven digits: no maximum has as many."""
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
