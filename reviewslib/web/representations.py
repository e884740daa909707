"""Representations: what one URL answers at one time, in each coding, and conditional requests for it.

RFC 9110 is the source: sections 8.8 (validators), 12 (negotiation) and 13 (conditional requests). Everything
here is a function of bytes and header values; this module knows no path, no data and no server.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from werkzeug.http import http_date, parse_date

# ---- Representations and responses ----

Headers = tuple[tuple[str, str], ...]
# The value of a request's header by its lower-case name: latin-1, without blanks around it (RFC 9110 section
# 5.5), repeated ones joined by ", "; None without.
Header = Callable[[str], str | None]
Environ = dict[str, Any]  # of WSGI (PEP 3333)

JSON_TYPE = "application/json"
HTML_TYPE = "text/html; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
MARKDOWN_TYPE = "text/markdown; charset=utf-8"
ATOM_TYPE = "application/atom+xml"
XML_TYPE = "application/xml"
ICON_TYPE = "image/svg+xml"
LARGEST_BODY_BYTES = 64 * 1024  # of a request
LARGEST_INLINE_BYTES = 256 * 1024  # a larger computed body would block the event loop
COMPRESSED_FROM_BYTES = 1024  # a smaller body takes one packet, compressed or not
FIXED_GZIP_LEVEL = 6  # at load
COMPUTED_GZIP_LEVEL = 4  # while a client waits: 0.6 of the time for 100 reviews, 1 to 4% larger
BY_CODING, BY_TYPE_TOO = "Accept-Encoding", "Accept, Accept-Encoding"  # what answers vary by
CACHEABLE = ("Cache-Control", "public, max-age=60")
EXPOSED_HEADERS = "ETag, Last-Modified, Link, Retry-After"  # to web pages of other origins
CORS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", EXPOSED_HEADERS))


@dataclass(frozen=True, slots=True)
class SharedSlice:
    """A body made of bytes that exist anyway: `head`, a part of a shared document, `tail`.

    It has a length and slices like `bytes`; only a slice is copied.
    """

    head: bytes
    part: memoryview
    tail: bytes

    def __len__(self) -> int:
        return len(self.head) + len(self.part) + len(self.tail)

    def __getitem__(self, wanted: slice) -> bytes:
        start, stop, _ = wanted.indices(len(self))
        pieces, offset = [], 0
        for piece in (self.head, self.part, self.tail):
            pieces.append(piece[max(0, start - offset) : max(0, stop - offset)])
            offset += len(piece)
        return b"".join(pieces)


Body = bytes | SharedSlice


class Response(NamedTuple):
    """What goes back to a client.

    A body that is not `shared` takes memory for this response alone. Where there is too little memory for it,
    `instead` is sent, if there is one.
    """

    status: int
    headers: Headers
    body: Body
    shared: bool = False
    instead: Response | None = None


class Deferred(NamedTuple):
    """A callable that the server runs on a worker thread, because it would block the event loop.

    `make` raises nothing. `instead` is sent at once while the worker is busy; without it the request waits.
    """

    make: Callable[[], Response]
    instead: Response | None = None


Answer = Response | Deferred


def resolved(answer: Answer) -> Response:
    """The response of an answer, made on this thread."""
    return answer.make() if isinstance(answer, Deferred) else answer


def finished_response(response: Response, finish: Callable[[Response], Response]) -> Response:
    """`response` with `finish` applied to it, and to what may be sent instead."""
    if not response.instead:
        return finish(response)
    return finish(response)._replace(instead=finish(response.instead))


def finished(answer: Answer, finish: Callable[[Response], Response]) -> Answer:
    """`answer` with `finish` applied to each response that may be sent for it."""
    if isinstance(answer, Response):
        return finished_response(answer, finish)
    instead = finish(answer.instead) if answer.instead else None
    return Deferred(lambda: finished_response(answer.make(), finish), instead)


class Coding(NamedTuple):
    """One content coding of a representation."""

    body: Body
    etag: str  # as the header has it, with quotes
    headers: Headers  # of answers that carry the body


class Representation(NamedTuple):
    """What one URL answers at one time. `gzip` is None where it is not worth it."""

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
    vary: str = BY_CODING,
    policy: Headers = (),
    digest: str = "",
) -> Representation:
    """The representation of `body`, plain only if `gzip_level` is None; `policy` goes with the body.

    Its entity tags depend on nothing but the bytes, or on a `digest` that does. The gzip tag is derived from
    the digest of the identity, so that a new zlib does not change it.
    """
    digest = digest or hashlib.sha256(body[:]).hexdigest()
    caching = (("Last-Modified", http_date(last_modified)), CACHEABLE, ("Vary", vary))
    headers = (*caching, ("Link", link), *CORS) if link else (*caching, *CORS)
    identity = Coding(body, f'"{digest}"', (("Content-Type", content_type), *policy))
    plain = Representation(content_type, digest, last_modified, headers, identity, None)
    return plain if gzip_level is None else with_gzip(plain, gzip_level)


def with_gzip(plain: Representation, level: int) -> Representation:
    """A representation and its gzip coding, unless that is not worth it."""
    body, (content_type, *policy) = plain.identity.body, plain.identity.headers
    if len(body) < COMPRESSED_FROM_BYTES:
        return plain
    headers = (content_type, ("Content-Encoding", "gzip"), *policy)
    packed = Coding(gzip.compress(body[:], level, mtime=0), f'"{plain.digest}-gzip"', headers)
    return plain._replace(gzip=packed)


# ---- Requests: which coding is sent, and whether the client holds it ----

MOST_WEIGHED = 1000  # characters of a field; browsers send some 150
WEIGHT = re.compile(r"[01](\.[0-9]*)?")  # section 12.4.2, with any number of digits


def weights(field: str) -> Mapping[str, float]:
    """The weights of the members of `Accept` or `Accept-Encoding` by name (sections 12.4.2 and 12.5).

    Names are in lower case and without parameters. Of equal names the highest weight counts; a member with a
    malformed weight is left out. A longer field is read up to the last comma in its first MOST_WEIGHED
    characters.
    """
    if len(field) > MOST_WEIGHED:
        field = field[:MOST_WEIGHED].rpartition(",")[0]
    found: dict[str, float] = {}
    for member in field.split(","):
        name, *parameters = (part.strip().lower() for part in member.split(";"))
        weight = next((each[2:].strip() for each in parameters if each.startswith("q=")), "1")
        if name and WEIGHT.fullmatch(weight):
            found[name] = max(found.get(name, 0), min(float(weight), 1))
    return found


def media_weight(accepted: Mapping[str, float], media_type: str) -> float:
    """The weight of a media type, or of the range that it is in (section 12.5.1)."""
    ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
    return next((accepted[each] for each in ranges if each in accepted), 0)


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: str) -> bool:
    """Whether gzip is acceptable, and preferred no less than the plain bytes (section 12.5.3)."""
    accepted = weights(accept_encoding)
    gzip_weight = accepted.get("gzip", accepted.get("*", 0))
    return gzip_weight > 0 and gzip_weight >= accepted.get("identity", 0)


def prefers_json(accept: str) -> bool:
    """Whether a client prefers JSON to the page, which needs JSON named in `Accept`."""
    return _prefers("application/json", "text/html", accept)


def prefers_html(accept: str) -> bool:
    """Whether a client prefers a page to JSON, which needs HTML named in `Accept`."""
    return _prefers("text/html", "application/json", accept)


@lru_cache(maxsize=256)
def _prefers(wanted: str, other: str, accept: str) -> bool:
    accepted = weights(accept)
    weight = accepted.get(wanted, 0)
    return weight > accepted.get(other, 0) and weight >= accepted.get("*/*", 0)


@lru_cache(maxsize=256)
def prefers_markdown(accept: str) -> bool:
    """Whether a client names Markdown in `Accept` and likes it no less than the page."""
    accepted = weights(accept)
    markdown = accepted.get("text/markdown", 0)
    return markdown > 0 and markdown >= media_weight(accepted, "text/html")


DAY, MONTH = "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)", "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
TIME = "[0-9]{2}:[0-9]{2}:[0-9]{2}"
HTTP_DATE = re.compile(  # section 5.6.7: the preferred form, that of RFC 850, that of asctime
    f"{DAY}, [0-9]{{2}} {MONTH} [0-9]{{4}} {TIME} GMT"
    f"|[MTWFS][a-z]{{5,8}}, [0-9]{{2}}-{MONTH}-[0-9]{{2}} {TIME} GMT"
    f"|{DAY} {MONTH} [0-9 ][0-9] {TIME} [0-9]{{4}}"
)


def date_seconds(value: str | None) -> float | None:
    """A date in seconds since the epoch; None for an invalid one, which is ignored (section 13.1.3)."""
    date = parse_date(value) if value and HTTP_DATE.fullmatch(value) else None
    return date.timestamp() if date else None


def negotiated(representation: Representation, header: Header, shared: bool = False) -> Response:
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
