"""Which URLs may be callbacks, and which addresses belong to the public internet.

Everything here is pure: it resolves no name and has no socket. This module must not
know what a callback is asked or sent.

Sections: callback URLs - addresses - comparison - selection by the operator.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from http.client import HTTPS_PORT

# A path that nobody can guess has some fifty; a subscription stores the URL twice.
MAX_CALLBACK_CHARACTERS = 2048
# Below it are the well-known services of a machine: mail, shells, databases.
FIRST_UNPRIVILEGED_PORT = 1024
# A port has 16 bits.
MAX_PORT = 65535

# ---- Callback URLs ----

# RFC 3986's characters and no others. urlsplit() silently drops tabs, line ends and
# leading spaces, so the string is checked as it came, before anything parses it.
_URL_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
HTTPS_AUTHORITY = re.compile(r"https://([^/?#]*)", re.IGNORECASE)
_HOST_AND_PORT = re.compile(
    r"(\[[0-9A-Fa-f:.]+\]|[\w-]{1,63}(?:\.[\w-]{1,63})*)(?::([0-9]{1,5}))?", re.ASCII
)

# Resolvers read a host that ends in a number as an IPv4 address: 127.1, 2130706433,
# 0x7f.1, 017700000001.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def parse_callback(url: str, *, allow_private: bool) -> str:
    """The host of a callback, in lower case.

    Raises ValueError, whose text completes "hub.callback ...".
    """
    _check_syntax(url)
    https = HTTPS_AUTHORITY.match(url)
    if not https:
        raise ValueError(
            "must be an https:// URL; the hub does not deliver over plain HTTP"
        )
    if "#" in url:
        raise ValueError("must not have a fragment (#)")
    if "@" in https[1]:
        raise ValueError("must not have a user name (@)")
    authority = _HOST_AND_PORT.fullmatch(https[1])
    if not authority:
        raise ValueError("has no usable host and port")
    host = authority[1].lower()
    port = int(authority[2] or HTTPS_PORT)
    if not 0 < port <= MAX_PORT:
        raise ValueError("has a port outside 1 to 65535")
    if not allow_private:
        _check_is_public(host, port)
    return host.strip("[]")


def _check_syntax(url: str) -> None:
    if len(url) > MAX_CALLBACK_CHARACTERS:
        raise ValueError(f"is longer than {MAX_CALLBACK_CHARACTERS} characters")
    if not _URL_CHARACTERS.fullmatch(url):
        raise ValueError(
            "is empty or has a character that no URL may have; percent-encode it"
        )


def _check_is_public(host: str, port: int) -> None:
    """Refuse what can be seen without asking the network to be no public service."""
    if port < FIRST_UNPRIVILEGED_PORT and port != HTTPS_PORT:
        raise ValueError(f"has port {port}; allowed are 443 and 1024 to 65535")
    last_label = host.rpartition(".")[2]
    if host.startswith("[") or _NUMBER.fullmatch(last_label):
        raise ValueError("has an IP address as its host; a host name is needed")
    if "." not in host or host.endswith(".localhost"):
        raise ValueError("has a host name that is not public")


# ---- Addresses ----

# Networks without public hosts, which `is_public` excludes from larger ranges: relays,
# protocol assignments (Teredo is one), documentation, and 6to4, which embeds any IPv4
# address.
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


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address belongs to a host on the public internet.

    `is_global` alone lets multicast, NAT64, 6to4, IPv4-compatible and site-local
    addresses through.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return is_public(address.ipv4_mapped)
    if address.version == 6:
        is_routable = address in _UNICAST_V6
    else:
        is_special = address.is_multicast or address.is_reserved
        is_routable = address.is_global and not is_special
    return is_routable and not any(
        address in network for network in _NOT_PUBLIC_NETWORKS
    )


# ---- Comparison ----

# Escapes of letters, digits, "-", ".", "_" and "~", which RFC 3986 section 2.3 calls
# unreserved.
_UNRESERVED_ESCAPE = re.compile(
    r"%(2D|2E|5F|7E|3[0-9]|[46][1-9A-F]|[57][0-9A])", re.IGNORECASE
)
_SCHEME_AND_AUTHORITY = re.compile(r"\A[^:/?#]+://[^/?#]*")


def normalized_url(url: str) -> str:
    """The URL for comparisons: scheme and host in lower case, without needless escapes.

    Unreserved characters are decoded (REC 5.1.1).
    """
    decoded = _UNRESERVED_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), url)
    return _SCHEME_AND_AUTHORITY.sub(lambda start: start[0].lower(), decoded)


# ---- Selection by the operator ----


def selector(host_or_domain: str) -> Callable[[str], bool]:
    """A predicate for a host, or for a `.domain` and all hosts below it.

    Raises ValueError.
    """
    name = host_or_domain.lower().strip("[]")
    if not re.fullmatch(r"\.?[\w:-]+(\.[\w-]+)*", name, re.ASCII):
        raise ValueError(f"{host_or_domain!r} is neither a host nor a .domain")
    if name.startswith("."):
        return lambda host: f".{host}".endswith(name)
    return lambda host: host == name
