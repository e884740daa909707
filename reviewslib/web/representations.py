"""Representations: the answer of a URL at one time, in each coding, and conditional requests for it.

RFC 9110 is the source: sections 8.8 (validators), 12 (negotiation) and 13 (conditional requests); Werkzeug
parses the fields. Everything here is a function of bytes and header values; this module knows no path, no
data and no server.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from werkzeug.datastructures import MIMEAccept
from werkzeug.http import http_date, parse_accept_header, parse_date, parse_etags

# ---- Representations and responses ----

Headers = tuple[tuple[str, str], ...]
# The value of a request's header by its lower-case name: latin-1, without blanks around it (RFC 9110 section
# 5.5), repeated ones joined by ", "; None without.
GetHeader = Callable[[str], str | None]
Environ = dict[str, Any]  # of WSGI (PEP 3333)
Body = bytes | list[memoryview]  # a list holds slices of documents that are in memory anyway

JSON_TYPE = "application/json"
HTML_TYPE = "text/html; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
MARKDOWN_TYPE = "text/markdown; charset=utf-8"
ATOM_TYPE = "application/atom+xml"
XML_TYPE = "application/xml"
ICON_TYPE = "image/svg+xml"
LARGEST_BODY_BYTES = 64 * 1024  # of a request
COMPRESSED_FROM_BYTES = 1024  # a smaller body takes one packet, compressed or not
COMPRESSED_TO_BYTES = 1024 * 1024  # while a client waits
FIXED_GZIP_LEVEL = 6  # at load
COMPUTED_GZIP_LEVEL = 4  # while a client waits: 0.6 of the time for 100 reviews, 1 to 4% larger
VARY_BY_CODING, VARY_BY_TYPE = "Accept-Encoding", "Accept, Accept-Encoding"  # values of `Vary`
CACHEABLE = ("Cache-Control", "public, max-age=60")
EXPOSED_HEADERS = "ETag, Last-Modified, Link, Retry-After"  # to web pages of other origins
CORS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", EXPOSED_HEADERS))


class Response(NamedTuple):
    """A response to a client."""

    status: int
    headers: Headers
    body: Body


Answer = Response | Callable[[], Response]  # at once, or made on a worker thread because it takes time


def resolved(answer: Answer) -> Response:
    """The response of an answer, made on this thread."""
    return answer if isinstance(answer, Response) else answer()


def size_of(body: Body) -> int:
    """The length of a body in bytes."""
    return len(body) if isinstance(body, bytes) else sum(map(len, body))


def joined(body: Body) -> bytes:
    """A body in one piece."""
    return body if isinstance(body, bytes) else b"".join(body)


class Coding(NamedTuple):
    """One content coding of a representation."""

    body: Body
    tag: str  # the entity tag without its quotes
    headers: Headers  # of answers that carry the body


class Representation(NamedTuple):
    """The answer of one URL at one time. `gzip` is None for a body that is short or too large."""

    content_type: str
    digest: str  # hexadecimal; the SHA-256 of the identity body, unless another one was given
    last_modified: int  # seconds since the epoch
    headers: Headers  # of every answer, 304 included
    identity: Coding
    gzip: Coding | None


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
    """The representation of `body`, without gzip if `gzip_level` is None; `policy` goes with the body.

    Its entity tags depend on nothing but the bytes, or on a `digest` that does. The gzip tag is derived from
    the digest of the identity, so that a new zlib does not change it.
    """
    digest = digest or hashlib.sha256(joined(body)).hexdigest()
    caching = (("Last-Modified", http_date(last_modified)), CACHEABLE, ("Vary", vary))
    headers = (*caching, ("Link", link), *CORS) if link else (*caching, *CORS)
    content = ("Content-Type", content_type)
    identity, packed = Coding(body, digest, (content, *policy)), None
    if gzip_level is not None and size_of(body) >= COMPRESSED_FROM_BYTES:
        compressed = gzip.compress(joined(body), gzip_level, mtime=0)
        packed = Coding(compressed, f"{digest}-gzip", (content, ("Content-Encoding", "gzip"), *policy))
    return Representation(content_type, digest, last_modified, headers, identity, packed)


# ---- Requests: which coding and type is preferred, and whether the client holds the representation ----

LONGEST_FIELD = 1000  # characters that are parsed; browsers send some 150, and MIMEAccept is quadratic


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: str) -> bool:
    """Whether gzip is acceptable, and preferred no less than the plain bytes (section 12.5.3)."""
    return parse_accept_header(accept_encoding[:LONGEST_FIELD]).best_match(("gzip", "identity")) == "gzip"


@lru_cache(maxsize=256)
def accepted_types(accept: str) -> MIMEAccept:
    """The media ranges of `Accept` without their parameters, and the weight of each (section 12.5.1)."""
    ranges = parse_accept_header(accept[:LONGEST_FIELD])
    return MIMEAccept([(media_range.partition(";")[0], weight) for media_range, weight in ranges])


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
    is_named = any(media_range.lower() == "text/markdown" for media_range in accepted.values())
    weight = accepted["text/markdown"]
    return is_named and weight > 0 and weight >= accepted["text/html"]


def date_seconds(field: str) -> float | None:
    """A date in seconds since the epoch; None for an invalid one, which is ignored (section 13.1.3)."""
    try:
        date = parse_date(field[:LONGEST_FIELD])
        return date.timestamp() if date else None
    except OverflowError:  # of an absurd year or time zone
        return None


def held_coding(representation: Representation, chosen: Coding, get_header: GetHeader) -> Coding | None:
    """The coding that the client holds; None if it holds none, or asks without a condition."""
    if field := get_header("if-none-match"):  # wins over If-Modified-Since (section 13.2.2)
        tags = parse_etags(field)
        codings = (chosen, representation.identity, representation.gzip)
        return next((coding for coding in codings if coding and tags.contains_weak(coding.tag)), None)
    seconds = date_seconds(get_header("if-modified-since") or "")
    return chosen if seconds is not None and representation.last_modified <= seconds else None


def negotiated(representation: Representation, get_header: GetHeader) -> Response:
    """The representation, or 304 when the client holds it in either coding."""
    chosen = representation.identity
    if representation.gzip and accepts_gzip(get_header("accept-encoding") or ""):
        chosen = representation.gzip
    if held := held_coding(representation, chosen, get_header):
        return Response(304, (("ETag", f'"{held.tag}"'), *representation.headers), b"")
    return Response(200, (*chosen.headers, ("ETag", f'"{chosen.tag}"'), *representation.headers), chosen.body)
