"""Representations: content codings, validators, and conditional requests.

The source is RFC 9110, sections 8.8 (validators), 12 (negotiation) and 13 (conditional
requests); Werkzeug parses the header fields. All functions take contents and header
values; this module must not know a path, the data or a server.

Sections: contents and representations - conditional requests.
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

# ---- Contents and representations ----

# A smaller body fits into one packet anyway.
COMPRESSED_FROM_BYTES = 1024
# A client waits for the compression of a computed body, and so do those behind it.
COMPRESSED_TO_BYTES = 1024 * 1024
# zlib's own; the time is that of a load.
FIXED_GZIP_LEVEL = 6
# Takes 0.6 of the time of level 6 for 100 reviews; the result is 1 to 4% larger.
COMPUTED_GZIP_LEVEL = 4


class Content(NamedTuple):
    """The content of a URL, before it is coded."""

    body: Body
    content_type: str
    # Sent with the body only, unlike `link`.
    policy: Headers = ()
    vary: str = VARY_BY_CODING
    link: str = ""
    # Hexadecimal. The entity tags depend on it alone; the default is the SHA-256 of the
    # body.
    digest: str = ""


class Coding(NamedTuple):
    """A representation in one content coding."""

    body: Body
    # The entity tag without quotes.
    tag: str
    # Of responses with the body.
    headers: Headers


class Representation(NamedTuple):
    """The content of a URL at one time, in the codings that are served."""

    content_type: str
    digest: str
    # Seconds since the epoch.
    last_modified: int
    # Of all responses, 304 included.
    headers: Headers
    identity: Coding
    # None if the body was not compressed.
    gzip: Coding | None


# A dozen contents have a date each.
@lru_cache(maxsize=16)
def field_date(seconds: int) -> str:
    """Seconds since the epoch as a value of header fields (section 5.6.7)."""
    return http_date(seconds)


def represent(
    content: Content, last_modified: int, gzip_level: int | None = FIXED_GZIP_LEVEL
) -> Representation:
    """The representation of `content`; without gzip if `gzip_level` is None."""
    digest = content.digest or hashlib.sha256(joined(content.body)).hexdigest()
    return Representation(
        content_type=content.content_type,
        digest=digest,
        last_modified=last_modified,
        headers=_common_headers(content, last_modified),
        identity=_identity(content, digest),
        gzip=_compressed(content, digest, gzip_level),
    )


def _identity(content: Content, digest: str) -> Coding:
    content_type = ("Content-Type", content.content_type)
    return Coding(
        body=content.body, tag=digest, headers=(content_type, *content.policy)
    )


def _compressed(content: Content, digest: str, level: int | None) -> Coding | None:
    """The content in gzip; None if it is small, or without a level."""
    if level is None or size_of(content.body) < COMPRESSED_FROM_BYTES:
        return None
    content_type = ("Content-Type", content.content_type)
    coding = ("Content-Encoding", "gzip")
    return Coding(
        # Without a time: the same data are the same bytes.
        body=gzip.compress(joined(content.body), level, mtime=0),
        # Derived from the digest of the plain body, so that a new zlib, whose bytes
        # differ, does not change it.
        tag=f"{digest}-gzip",
        headers=(content_type, coding, *content.policy),
    )


def _common_headers(content: Content, last_modified: int) -> Headers:
    """The headers of all responses with this content, 304 included."""
    headers = [
        ("Last-Modified", field_date(last_modified)),
        CACHEABLE,
        ("Vary", content.vary),
    ]
    if content.link:
        headers.append(("Link", content.link))
    return (*headers, *CORS)


def represent_computed(
    content: Content, last_modified: int, for_gzip: bool
) -> Representation:
    """The representation of a computed content for the one coding that is asked."""
    level = None
    if for_gzip and size_of(content.body) <= COMPRESSED_TO_BYTES:
        level = COMPUTED_GZIP_LEVEL
    return represent(content, last_modified, level)


# ---- Conditional requests ----


# The tags of a field of 1,000 characters take up to 25 KB, and a service has some
# thirty contents that are asked for again and again.
@lru_cache(maxsize=64)
def _entity_tags(if_none_match: str) -> ETags:
    return parse_etags(if_none_match)


def entity_tags(if_none_match: str | None) -> ETags:
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
        if date is None:
            return None
        return date.timestamp()
    except OverflowError:
        # An extreme year or time zone.
        return None


def cached_coding(
    representation: Representation, chosen: Coding, get_header: GetHeader
) -> Coding | None:
    """The current coding the client has; None if it does not say that it has one."""
    # Takes precedence over If-Modified-Since (section 13.2.2).
    tags = get_header("if-none-match")
    if tags:
        return _coding_with_tag(representation, chosen, entity_tags(tags))
    date = get_header("if-modified-since")
    if not date:
        return None
    seconds = date_seconds(date)
    if seconds is None or seconds < representation.last_modified:
        return None
    return chosen


def _coding_with_tag(
    representation: Representation, chosen: Coding, tags: ETags
) -> Coding | None:
    # `*` matches every coding: then the answer has the tag of the chosen one.
    for coding in (chosen, representation.identity, representation.gzip):
        if coding and tags.contains_weak(coding.tag):
            return coding
    return None


def negotiated(representation: Representation, get_header: GetHeader) -> Response:
    """A response with the representation, or 304 if the client has either coding."""
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
