"""Representations: entity tags and codings; `test_http.py` asks for them over real sockets."""

import gzip

import pytest

from reviewslib.web import representations
from reviewslib.web.representations import represent

BODY = b"Reviews, " * 500


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
