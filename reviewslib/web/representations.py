"""Representations: content codings, validators, negotiation and conditional requests.

The source is RFC 9110, sections 8.8 (validators), 12 (negotiation) and 13 (conditional requests); Werkzeug
parses the header fields. All functions take bytes and header values; this module knows no path, no data and
no server.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from werkzeug.datastructures import ETags, MIMEAccept
from werkzeug.http import http_date, parse_accept_header, parse_date, parse_etags

# ---- Requests, representations and responses ----

Headers = tuple[tuple[str, str], ...]
# The value of a request header by its lower-case name: latin-1, stripped (RFC 9110 section 5.5), repeated
# headers joined by ", "; None if absent.
GetHeader = Callable[[str], str | None]
Body = (
    bytes | list[memoryview]
)  # the views are slices of documents, which are not copied

JSON_TYPE = "application/json"
HTML_TYPE = "text/html; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
MARKDOWN_TYPE = "text/markdown; charset=utf-8"
ATOM_TYPE = "application/atom+xml"
XML_TYPE = "application/xml"
ICON_TYPE = "image/svg+xml"
LARGEST_BODY_BYTES = 64 * 1024  # of a request
COMPRESSED_FROM_BYTES = 1024  # a smaller body fits into one packet anyway
COMPRESSED_TO_BYTES = (
    1024 * 1024
)  # a larger computed body is not compressed, since a client waits for it
FIXED_GZIP_LEVEL = 6
COMPUTED_GZIP_LEVEL = (
    4  # takes 0.6 of the time of level 6 for 100 reviews; the result is 1 to 4% larger
)
# values of `Vary`
VARY_BY_CODING = "Accept-Encoding"
VARY_BY_TYPE = "Accept, Accept-Encoding"
CACHEABLE = ("Cache-Control", "public, max-age=60")
EXPOSED_HEADERS = (
    "ETag, Last-Modified, Link, Retry-After"  # to web pages of other origins
)
CORS = (
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Expose-Headers", EXPOSED_HEADERS),
)


class Request(NamedTuple):
    """A request of a client."""

    method: str
    path: str  # decoded; bytes that are not UTF-8 become lone surrogates, which no id or path contains
    query_string: str  # as sent, a character for each byte
    header: GetHeader
    body: bytes = b""
    http_version: str = "1.1"


class Response(NamedTuple):
    """A response to a client."""

    status: int
    headers: Headers
    body: Body


Answer = (
    Response | Callable[[], Response]
)  # a slow response is a function, to be called on a worker thread


def resolved(answer: Answer) -> Response:
    """The response of an answer; a function is called on this thread."""
    return answer if isinstance(answer, Response) else answer()


def size_of(body: Body) -> int:
    """The length of a body in bytes."""
    return len(body) if isinstance(body, bytes) else sum(map(len, body))


def joined(body: Body) -> bytes:
    """A body as bytes."""
    return body if isinstance(body, bytes) else b"".join(body)


class Coding(NamedTuple):
    """A representation in one content coding."""

    body: Body
    tag: str  # the entity tag without quotes
    headers: Headers  # of responses with the body


class Representation(NamedTuple):
    """The content of a URL at one time. `gzip` is None if the body was not compressed."""

    content_type: str
    digest: str  # hexadecimal; by default the SHA-256 of the identity body
    last_modified: int  # seconds since the epoch
    headers: Headers  # of all responses, 304 included
    identity: Coding
    gzip: Coding | None


@lru_cache(maxsize=16)
def field_date(seconds: int) -> str:
    """A time in seconds since the epoch as a value of header fields (section 5.6.7)."""
    return http_date(seconds)


def represent(
    body: Body,
    content_type: str,
    last_modified: int,
    gzip_level: int | None = FIXED_GZIP_LEVEL,
    link: str = "",
    vary: str = VARY_BY_CODING,
    policy: Headers = (),
    digest: str = "",
) -> Representation:
    """The representation of `body`, without gzip if `gzip_level` is None; `policy` is sent with the body.

    The entity tags depend only on `digest`, by default the SHA-256 of the body. The gzip tag is derived from
    the same digest, so that a new zlib does not change it.
    """
    digest = digest or hashlib.sha256(joined(body)).hexdigest()
    caching = (("Last-Modified", field_date(last_modified)), CACHEABLE, ("Vary", vary))
    headers = (*caching, ("Link", link), *CORS) if link else (*caching, *CORS)
    content = ("Content-Type", content_type)
    identity = Coding(body, digest, (content, *policy))
    compressed = None
    if gzip_level is not None and size_of(body) >= COMPRESSED_FROM_BYTES:
        data = gzip.compress(joined(body), gzip_level, mtime=0)
        compressed = Coding(
            data, f"{digest}-gzip", (content, ("Content-Encoding", "gzip"), *policy)
        )
    return Representation(
        content_type, digest, last_modified, headers, identity, compressed
    )


# ---- Negotiation and conditional requests ----

LONGEST_FIELD = 1000  # characters that are parsed, since MIMEAccept is quadratic; browsers send some 150


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client accepts gzip with no less weight than the identity (section 12.5.3)."""
    return (
        parse_accept_header(accept_encoding[:LONGEST_FIELD]).best_match(
            ("gzip", "identity")
        )
        == "gzip"
    )


@lru_cache(maxsize=256)
def accepted_types(accept: str) -> MIMEAccept:
    """The media ranges of `Accept` with their weights, without parameters (section 12.5.1)."""
    ranges = parse_accept_header(accept[:LONGEST_FIELD])
    return MIMEAccept(
        [(media_range.partition(";")[0], weight) for media_range, weight in ranges]
    )


@lru_cache(maxsize=256)
def prefers_json(accept: str) -> bool:
    """Whether a client prefers JSON to HTML; with equal weights it gets HTML."""
    return accepted_types(accept).best_match(("text/html", JSON_TYPE)) == JSON_TYPE


@lru_cache(maxsize=256)
def prefers_html(accept: str) -> bool:
    """Whether a client prefers HTML to JSON; with equal weights it gets JSON."""
    return accepted_types(accept).best_match((JSON_TYPE, "text/html")) == "text/html"


@lru_cache(maxsize=256)
def prefers_markdown(accept: str) -> bool:
    """Whether a client names Markdown in `Accept`, with no less weight than HTML."""
    accepted = accepted_types(accept)
    is_named = any(
        media_range.lower() == "text/markdown" for media_range in accepted.values()
    )
    weight = accepted["text/markdown"]
    return is_named and weight > 0 and weight >= accepted["text/html"]


@lru_cache(maxsize=256)
def entity_tags(if_none_match: str) -> ETags:
    """The entity tags of `If-None-Match` (section 13.1.2)."""
    return parse_etags(if_none_match)


def date_seconds(field: str) -> float | None:
    """A date in seconds since the epoch; None if it is invalid: such a date is ignored (section 13.1.3)."""
    try:
        date = parse_date(field[:LONGEST_FIELD])
        return date.timestamp() if date else None
    except OverflowError:  # an extreme year or time zone
        return None


def cached_coding(
    representation: Representation, chosen: Coding, get_header: GetHeader
) -> Coding | None:
    """The current coding that the client has cached; None if there is none or no condition is sent."""
    if field := get_header(
        "if-none-match"
    ):  # takes precedence over If-Modified-Since (section 13.2.2)
        tags = entity_tags(field)
        for coding in (chosen, representation.identity, representation.gzip):
            if coding and tags.contains_weak(coding.tag):
                return coding
    elif field := get_header("if-modified-since"):
        seconds = date_seconds(field)
        return (
            chosen
            if seconds is not None and representation.last_modified <= seconds
            else None
        )
    return None


def negotiated(representation: Representation, get_header: GetHeader) -> Response:
    """A response with the representation, or 304 if the client has cached it in either coding."""
    chosen = representation.identity
    if representation.gzip and accepts_gzip(get_header("accept-encoding") or ""):
        chosen = representation.gzip
    if cached := cached_coding(representation, chosen, get_header):
        return Response(
            304, (("ETag", f'"{cached.tag}"'), *representation.headers), b""
        )
    return Response(
        200,
        (*chosen.headers, ("ETag", f'"{chosen.tag}"'), *representation.headers),
        chosen.body,
    )
