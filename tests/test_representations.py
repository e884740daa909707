"""Representations: entity tags, codings and what a client holds already, without a server.

`test_http.py` says the same over real sockets.
"""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

import representations
from representations import accepts_gzip, negotiated, prefers_json, represent

BODY = b"Reviews, " * 500
SAMPLE = represent(BODY, "text/plain", 1000, 6, link="<https://hub.example>; rel=hub")


def status(**headers: str) -> int:
    return negotiated(SAMPLE, {name.replace("_", "-"): text for name, text in headers.items()}.get).status


def test_entity_tags_depend_on_the_bytes_alone() -> None:
    assert (
        represent(b"x" * 2000, "a/b", 1, 6).identity.etag == represent(b"x" * 2000, "c/d", 2, 6).identity.etag
    )


@pytest.mark.parametrize("level", [representations.COMPUTED_GZIP_LEVEL, representations.FIXED_GZIP_LEVEL])
@pytest.mark.parametrize("size", [1024, 1025, 300_000])
def test_a_body_of_any_size_is_packed_whole_and_without_a_time(size: int, level: int) -> None:
    body = (BODY * (size // len(BODY) + 1))[:size]
    coding = represent(body, "a/b", 1, level).gzip
    assert coding
    assert gzip.decompress(coding.body) == body
    assert coding.body[4:8] == bytes(4), "MTIME (RFC 1952, section 2.3.1) is not known"


def test_what_a_coding_would_not_make_smaller_has_none() -> None:
    assert represent(BODY[:1023], "a/b", 1, 6).gzip is None
    assert represent(BODY, "a/b", 1, gzip_level=None).gzip is None


def test_a_tag_wins_over_a_date() -> None:
    now = "Thu, 01 Jan 2026 00:00:00 GMT"
    assert status(if_modified_since=now) == 304
    assert status(if_modified_since=now, if_none_match='"other"') == 200
    assert status(if_none_match=SAMPLE.identity.etag) == 304


def test_304_has_the_headers_that_matter_and_no_body() -> None:
    response = negotiated(SAMPLE, {"if-none-match": "*"}.get)
    assert (response.status, response.body) == (304, b"")
    assert [name for name, _ in response.headers][:5] == [
        "ETag",
        "Last-Modified",
        "Cache-Control",
        "Vary",
        "Link",
    ]


@given(st.text(st.characters(max_codepoint=255)), st.text(st.characters(max_codepoint=255)))
def test_any_header_value_gives_an_answer(accept: str, tags: str) -> None:
    headers = {"accept-encoding": accept, "if-none-match": tags}
    assert negotiated(SAMPLE, headers.get).status in (200, 304)
    assert isinstance(accepts_gzip(accept), bool)
    assert isinstance(prefers_json(accept), bool)
