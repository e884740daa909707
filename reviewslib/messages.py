"""Requests, responses and header fields: what the wings of the program hand each other.

The source is RFC 9110; Werkzeug parses the header fields. This module knows no path,
no data, no server and no wing.

Sections: messages - media types - fields of responses - fields of requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

# ---- Messages ----

Headers = tuple[tuple[str, str], ...]
# The value of a request header by its lower-case name: latin-1, stripped (RFC 9110
# section 5.5), repeated headers joined by ", "; None if absent.
GetHeader = Callable[[str], str | None]
# The views are slices of documents, which are not copied.
Body = bytes | list[memoryview]

# Of a request. The largest that anybody sends in earnest is a call of an MCP tool
# with a long query.
LARGEST_BODY_BYTES = 64 * 1024


class Request(NamedTuple):
    """A request of a client.

    Bytes of `path` that are not UTF-8 become lone surrogates, which no id and no
    path of the service contains.
    """

    method: str
    path: str  # decoded
    query_string: str  # as sent, a character for each byte
    header: GetHeader
    body: bytes = b""
    http_version: str = "1.1"


def utf8_text(latin: str) -> str:
    """Decode the UTF-8 bytes that are the characters of `latin`.

    Invalid bytes become lone surrogates.
    """
    return latin.encode("latin-1").decode("utf-8", "surrogateescape")


class Response(NamedTuple):
    """A response to a client."""

    status: int
    headers: Headers
    body: Body


def size_of(body: Body) -> int:
    """The length of a body in bytes."""
    if isinstance(body, bytes):
        return len(body)
    return sum(map(len, body))


def joined(body: Body) -> bytes:
    """A body as bytes."""
    if isinstance(body, bytes):
        return body
    return b"".join(body)


# ---- Media types ----

JSON_TYPE = "application/json"
HTML_TYPE = "text/html; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
MARKDOWN_TYPE = "text/markdown; charset=utf-8"
ATOM_TYPE = "application/atom+xml"
CARD_TYPE = "application/mcp-server-card+json"
XML_TYPE = "application/xml"
ICON_TYPE = "image/svg+xml"

# ---- Fields of responses ----

# Values of `Vary`.
VARY_BY_CODING = "Accept-Encoding"
VARY_BY_TYPE = "Accept, Accept-Encoding"

CACHEABLE = ("Cache-Control", "public, max-age=60")
# 404 and 405 are cacheable by default (RFC 9110 section 15.1).
NO_STORE = ("Cache-Control", "no-store")

# What pages of other origins may read (Fetch standard).
EXPOSED_HEADERS = "ETag, Last-Modified, Link, Retry-After"
CORS: Headers = (
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Expose-Headers", EXPOSED_HEADERS),
)


def preflight(methods: str) -> Headers:
    """The allowed methods, for programs and browsers' preflights (Fetch standard)."""
    return (
        ("Allow", methods),
        ("Access-Control-Allow-Methods", methods),
        # Libraries add fields of their own (Cache-Control, X-Requested-With,
        # traceparent). `*` means all but Authorization, which we ignore.
        ("Access-Control-Allow-Headers", "*, Authorization"),
        ("Access-Control-Max-Age", "86400"),
    )


def uncacheable(
    status: int, content_type: str, body: bytes, headers: Headers = ()
) -> Response:
    """A response that no cache keeps, and that pages of any origin may read."""
    own = (("Content-Type", content_type), NO_STORE)
    return Response(status, (*own, *CORS, *headers), body)


# ---- Fields of requests ----

# What is parsed of a field: browsers send some 150 characters of `Accept`, and
# Werkzeug's choice of the best match is quadratic (340 ms for 16 KB).
LONGEST_FIELD = 1000
# Of each parsed field as many different values are kept: a handful of browsers and
# programs send nearly all requests, each with the same values.
KEPT_FIELDS = 256


def cut_field(value: str | None) -> str:
    """A field value, cut so that it costs little to parse and to keep; "" if absent."""
    return (value or "")[:LONGEST_FIELD]


@lru_cache(maxsize=KEPT_FIELDS)
def _accepted_types(accept: str) -> MIMEAccept:
    ranges = parse_accept_header(accept)
    return MIMEAccept(
        [(media_range.partition(";")[0], weight) for media_range, weight in ranges]
    )


def accepted_types(accept: str | None) -> MIMEAccept:
    """The media ranges of `Accept` with their weights (section 12.5.1).

    Parameters are dropped: no representation of ours differs by one.
    """
    return _accepted_types(cut_field(accept))


@lru_cache(maxsize=KEPT_FIELDS)
def _accepts_gzip(accept_encoding: str) -> bool:
    codings = parse_accept_header(accept_encoding)
    return codings.best_match(("gzip", "identity")) == "gzip"


def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether a client accepts gzip with no less weight than the identity (12.5.3)."""
    return _accepts_gzip(cut_field(accept_encoding))


def prefers_json(accept: str | None) -> bool:
    """Whether a client prefers JSON to HTML; with equal weights it gets HTML."""
    best = accepted_types(accept).best_match(("text/html", JSON_TYPE))
    return best == JSON_TYPE


def prefers_html(accept: str | None) -> bool:
    """Whether a client prefers HTML to JSON; with equal weights it gets JSON."""
    best = accepted_types(accept).best_match((JSON_TYPE, "text/html"))
    return best == "text/html"


def prefers_markdown(accept: str | None) -> bool:
    """Whether a client names Markdown in `Accept`, with no less weight than HTML."""
    accepted = accepted_types(accept)
    named = (media_range.lower() for media_range in accepted.values())
    weight = accepted["text/markdown"]
    if "text/markdown" not in named or weight <= 0:
        return False
    return weight >= accepted["text/html"]
