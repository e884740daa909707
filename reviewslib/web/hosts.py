"""The `Host` of a request: which values are valid (RFC 9110 section 7.2).

Nothing is made of it: every URL of the service comes from its base URL.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address

from reviewslib.messages import KEPT_FIELDS, LONGEST_FIELD, Request
from reviewslib.web.errors import bad_host

# RFC 3986 sections 3.2.2 and 3.2.3, but not empty, and without commas: a comma means a
# repeated header.
REG_NAME = r"(?:[\w.~!$&'()*+;=-]|%[0-9A-F]{2})+"
IP_LITERAL = r"\[(?:(?P<ipv6>[0-9A-F:.]+)|V[0-9A-F]+\.[\w.~!$&'()*+;=:-]+)\]"
HOST_FIELD = re.compile(
    f"(?:{REG_NAME}|{IP_LITERAL})(?::[0-9]*)?", re.ASCII | re.IGNORECASE
)


@lru_cache(maxsize=KEPT_FIELDS)
def is_host(text: str) -> bool:
    """Whether a short text is a valid value of `Host`."""
    match = HOST_FIELD.fullmatch(text)
    if match is None:
        return False
    if not match["ipv6"]:
        return True
    try:
        IPv6Address(match["ipv6"])
    except ValueError:
        return False
    return True


def check_host(request: Request) -> None:
    """Raise HttpError 400 for a bad `Host`, or none in HTTP/1.1.

    See RFC 9112 section 3.2.
    """
    # An ASGI server may pass an absent Host as an empty one.
    host = request.header("host") or ""
    if not host and request.http_version != "1.1":
        return
    # No name of a host is longer than 255 characters (RFC 1035 section 2.3.4), and the
    # cache of `is_host` must not keep long ones.
    if len(host) <= LONGEST_FIELD and is_host(host):
        return
    raise bad_host(host)
