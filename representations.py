"""Representations: what one URL answers at one time, in each coding, and conditional requests for it.

RFC 9110 is the source: sections 8.8 (validators), 12 (negotiation) and 13 (conditional requests). Everything
here is a function of bytes and header values; this module knows no path, no data and no server.

Sections: Representations and responses - Requests
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from werkzeug.http import http_date, parse_accept_header, parse_date

# ---- Representations and responses ----

Headers = tuple[tuple[str, str], ...]
Environ = dict[str, Any]  # of WSGI (PEP 3333)

JSON_TYPE = "application/json"
HTML_TYPE = "text/html; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
ATOM_TYPE = "application/atom+xml"
XML_TYPE = "application/xml"
ICON_TYPE = "image/svg+xml"
LARGEST_BODY_BYTES = 64 * 1024  # of a request
COMPRESSED_FROM_BYTES = 1024  # a smaller body takes one packet, compressed or not
FIXED_GZIP_LEVEL = 6  # at load
COMPUTED_GZIP_LEVEL = 4  # while a client waits: 0.6 of the time for 100 reviews, 1 to 4% larger
BY_CODING, BY_TYPE_TOO = "Accept-Encoding", "Accept, Accept-Encoding"  # what answers vary by
CACHEABLE = ("Cache-Control", "public, max-age=60")
CORS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "ETag, Last-Modified, Link"))


class Response(NamedTuple):
    """What goes back to a client; a body that is not `shared` exists for this response alone."""

    status: int
    headers: Headers
    body: bytes
    shared: bool = False


class Coding(NamedTuple):
    """One content coding of a representation."""

    body: bytes
    etag: str  # as the header has it, with quotes
    headers: Headers  # of answers that carry the body


class Representation(NamedTuple):
    """What one URL answers at one time. `gzip` is None where it is not worth it."""

    content_type: str
    digest: str  # hex SHA-256 of the identity body
    last_modified: int  # seconds since the epoch
    headers: Headers  # of every answer, 304 included
    identity: Coding
    gzip: Coding | None


def represent(
    body: bytes,
    content_type: str,
    last_modified: int,
    gzip_level: int | None = FIXED_GZIP_LEVEL,
    link: str = "",
    vary: str = BY_CODING,
    policy: Headers = (),
) -> Representation:
    """The representation of `body`, plain only if `gzip_level` is None; `policy` goes with the body.

    Its entity tags depend on nothing but the bytes. The gzip tag is derived from the identity's digest, so
    that a new zlib does not change it.
    """
    digest = hashlib.sha256(body).hexdigest()
    caching = (("Last-Modified", http_date(last_modified)), CACHEABLE, ("Vary", vary))
    headers = (*caching, ("Link", link), *CORS) if link else (*caching, *CORS)
    kind = ("Content-Type", content_type)
    identity = Coding(body, f'"{digest}"', (kind, *policy))
    packed = None
    if gzip_level is not None and len(body) >= COMPRESSED_FROM_BYTES:
        own_headers = (kind, ("Content-Encoding", "gzip"), *policy)
        packed = Coding(gzip.compress(body, gzip_level, mtime=0), f'"{digest}-gzip"', own_headers)
    return Representation(content_type, digest, last_modified, headers, identity, packed)


# ---- Requests: which coding is sent, and whether the client holds it ----


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: str) -> bool:
    """Whether gzip is acceptable, and preferred no less than the plain bytes (section 12.5.3)."""
    accepted = parse_accept_header(accept_encoding)
    gzip_quality = accepted.quality("gzip")
    plain_quality = max((quality for name, quality in accepted if name == "identity"), default=0)
    return gzip_quality > 0 and gzip_quality >= plain_quality


def prefers_json(accept: str) -> bool:
    """Whether a client prefers JSON to the page, which needs JSON named in `Accept`."""
    quality = {name.partition(";")[0].lower(): q for name, q in reversed(parse_accept_header(accept))}
    json, html = quality.get("application/json", 0), quality.get("text/html", 0)
    return json > html and json >= quality.get("*/*", 0)


def date_seconds(value: str | None) -> float | None:
    """A date in seconds since the epoch; None for an invalid one, which is ignored (section 13.1.3)."""
    with suppress(OverflowError):  # of a year or a zone that no calendar has
        if date := parse_date(value):
            return date.timestamp()
    return None


def negotiated(
    representation: Representation, header: Callable[[str], str | None], shared: bool = False
) -> Response:
    """The representation, or 304 when the client holds it in either coding.

    `header` returns the value of a request header by its lower-case name, None without one.
    """
    chosen = representation.identity
    if representation.gzip and accepts_gzip(header("accept-encoding") or ""):
        chosen = representation.gzip
    held: Coding | None = None
    if tags := header("if-none-match"):  # wins over If-Modified-Since (section 13.2.2)
        codings = filter(None, (chosen, representation.identity, representation.gzip))
        # No entity tag holds a quote, so one is in a list when its characters are (section 8.8.3).
        held = next((coding for coding in codings if tags == "*" or coding.etag in tags), None)
    elif (since := date_seconds(header("if-modified-since"))) is not None:
        held = chosen if representation.last_modified <= since else None
    if held:
        return Response(304, (("ETag", held.etag), *representation.headers), b"")
    headers = (*chosen.headers, ("ETag", chosen.etag), *representation.headers)
    return Response(200, headers, chosen.body, shared)
