"""Representations: content codings, validators, and conditional requests.

The source is RFC 9110, sections 8.8 (validators), 12 (negotiation) and 13 (conditional
requests); Werkzeug parses the header fields. All functions take bytes and header values;
this module knows no path, no data and no server.

Sections: representations - conditional requests.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from typing import NamedTuple

from werkzeug.datastructures import ETags
from werkzeug.http import http_date, parse_date, parse_etags

from reviewslib.messages import (
    CACHEABLE,
    CORS,
    KEPT_VALUES,
    VARY_BY_CODING,
    Body,
    GetHeader,
    Headers,
    Response,
    accepts_gzip,
    cut_field,
    joined,
    size_of,
)

# ---- Representations ----

# A smaller body fits into one packet anyway.
COMPRESSED_FROM_BYTES = 1024
# A larger computed body is not compressed, since everybody waits for it.
COMPRESSED_TO_BYTES = 1024 * 1024
FIXED_GZIP_LEVEL = 6
# Takes 0.6 of the time of level 6 for 100 reviews; the result is 1 to 4 % larger.
COMPUTED_GZIP_LEVEL = 4


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


# A dozen contents have a date each.
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
    """The representation of `body`, without gzip if `gzip_level` is None.

    `policy` is sent with the body.

    The entity tags depend only on `digest`, by default the SHA-256 of the body. The
    gzip tag is derived from the same digest, so that a new zlib does not change it.
    """
    digest = digest or hashlib.sha256(joined(body)).hexdigest()
    content = ("Content-Type", content_type)
    compressed = None
    if gzip_level is not None and size_of(body) >= COMPRESSED_FROM_BYTES:
        compressed = Coding(
            body=gzip.compress(joined(body), gzip_level, mtime=0),
            tag=f"{digest}-gzip",
            headers=(content, ("Content-Encoding", "gzip"), *policy),
        )
    headers: Headers = (
        ("Last-Modified", field_date(last_modified)),
        CACHEABLE,
        ("Vary", vary),
    )
    if link:
        headers += (("Link", link),)
    return Representation(
        content_type=content_type,
        digest=digest,
        last_modified=last_modified,
        headers=headers + CORS,
        identity=Coding(body, digest, (content, *policy)),
        gzip=compressed,
    )


# ---- Conditional requests ----


@lru_cache(maxsize=KEPT_VALUES)
def _entity_tags(if_none_match: str) -> ETags:
    return parse_etags(if_none_match)


def entity_tags(if_none_match: str) -> ETags:
    """The entity tags of `If-None-Match` (section 13.1.2), as far as they are read.

    One that is cut off is no tag of ours: the client gets the content once more.
    """
    return _entity_tags(cut_field(if_none_match))


def date_seconds(field: str) -> float | None:
    """A date in seconds since the epoch.

    None if it is invalid: such a date is ignored (section 13.1.3).
    """
    try:
        date = parse_date(cut_field(field))
        return date.timestamp() if date else None
    except OverflowError:
        # An extreme year or time zone.
        return None


def cached_coding(
    representation: Representation, chosen: Coding, get_header: GetHeader
) -> Coding | None:
    """The current coding that the client has cached; None if there is none.

    If-None-Match takes precedence over If-Modified-Since (section 13.2.2).
    """
    tags_field = get_header("if-none-match")
    if tags_field:
        tags = entity_tags(tags_field)
        for coding in (chosen, representation.identity, representation.gzip):
            if coding and tags.contains_weak(coding.tag):
                return coding
        return None
    date_field = get_header("if-modified-since")
    if date_field:
        seconds = date_seconds(date_field)
        if seconds is not None and representation.last_modified <= seconds:
            return chosen
    return None


def negotiated(representation: Representation, get_header: GetHeader) -> Response:
    """A response with the representation; 304 if the client has it in either coding."""
    chosen = representation.identity
    if representation.gzip and accepts_gzip(get_header("accept-encoding")):
        chosen = representation.gzip
    cached = cached_coding(representation, chosen, get_header)
    if cached:
        tag = ("ETag", f'"{cached.tag}"')
        return Response(304, (tag, *representation.headers), b"")
    tag = ("ETag", f'"{chosen.tag}"')
    headers = (*chosen.headers, tag, *representation.headers)
    return Response(200, headers, chosen.body)
