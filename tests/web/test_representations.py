"""Representations: which coding and type is sent, and when 304 is enough.

That servers pass these headers on is in `test_http.py`.

Bodies - Codings and types - Conditional requests
"""

import gzip
import hashlib
from itertools import product
from typing import Any

import pytest

from reviewslib.web import representations
from reviewslib.web.representations import Response, prefers_html, prefers_json, prefers_markdown, represent

BODY = b"Reviews, " * 500
DIGEST = hashlib.sha256(BODY).hexdigest()
RFC_DATE, RFC_SECONDS = "Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777  # RFC 9110 section 5.6.7


def asked(representation: representations.Representation, **headers: str) -> Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return representations.negotiated(representation, fields.get)


# ---- Bodies ----


@pytest.mark.parametrize("level", [representations.COMPUTED_GZIP_LEVEL, representations.FIXED_GZIP_LEVEL])
@pytest.mark.parametrize("size", [1024, 1025, 300_000])
def test_a_body_of_any_size_is_packed_whole_and_without_a_time(size: int, level: int) -> None:
    body = (BODY * (size // len(BODY) + 1))[:size]
    coding = represent(body, "a/b", 1, level).gzip
    assert coding
    assert coding.body == gzip.compress(body, level, mtime=0)
    assert coding.body[4:8] == bytes(4), "MTIME (RFC 1952, section 2.3.1) is not known"


def test_content_that_gzip_does_not_shrink_is_sent_plain() -> None:
    assert represent(BODY[:1023], "a/b", 1).gzip is None
    assert represent(BODY, "a/b", 1, gzip_level=None).gzip is None
    assert represent(BODY, "a/b", 1) == represent(BODY, "a/b", 1, gzip_level=6)


def test_a_policy_is_sent_with_the_body_only() -> None:
    policy = ("Policy", "p")
    both = represent(BODY, "a/b", RFC_SECONDS, policy=(policy,))
    sent = [
        asked(both, accept_encoding=coding, if_none_match=tags) for coding in ("", "gzip") for tags in "x*"
    ]
    assert [(answer.status, policy in answer.headers) for answer in sent] == [(200, True), (304, False)] * 2


def test_a_body_in_pieces_is_represented_as_the_bytes_that_it_is_made_of() -> None:
    pieces = [memoryview(BODY[:10]), memoryview(b""), memoryview(BODY[10:])]
    assert (representations.size_of(pieces), representations.joined(pieces)) == (len(BODY), BODY)
    whole, in_pieces = represent(BODY, "a/b", 1), represent(pieces, "a/b", 1)
    assert in_pieces == whole._replace(identity=whole.identity._replace(body=pieces))


# ---- Codings and types: RFC 9110 section 12 ----


def test_a_media_range_has_no_parameters_and_a_long_field_is_cut() -> None:
    accepted = representations.accepted_types("text/html; level=1;q=0.5, text/*;q=0.2, x/y;q=2, x/z;q=0")
    kinds = ("text/html", "text/plain", "x/y", "x/z", "image/png")
    assert [accepted[kind] for kind in kinds] == [0.5, 0.2, 0, 0, 0]
    for blanks, weight in ((991, 1), (992, 0)):
        assert representations.accepted_types(f"a/b,{' ' * blanks}c/def")["c/def"] == weight


@pytest.mark.parametrize(
    ("field", "is_taken"),
    [(field, True) for field in ("gzip;q=0.5", "*", "identity;q=0.5, gzip", "gzip;q=0.5, identity;q=0.5")]
    + [(field, False) for field in ("", "br", "identity, gzip;q=0.5", "*;q=0", "gzip;q=0", "gzip;q=0, *")],
)
def test_gzip_is_sent_if_it_is_accepted_and_plain_bytes_weigh_no_more(field: str, is_taken: bool) -> None:
    assert representations.accepts_gzip(field) is is_taken


@pytest.mark.parametrize(
    ("field", "preferred"),
    [(field, []) for field in ("", "*/*", "application/json;q=0", "text/html, application/json")]
    + [(field, []) for field in ("text/markdown;q=0", "text", "image/png")]
    + [(field, [prefers_json]) for field in ("application/json;q=0.5, */*;q=0.5", "Application/JSON; a=b")]
    + [(field, [prefers_json]) for field in ("text/html;q=0.5, */*", "application/*")]
    + [(field, [prefers_html]) for field in ("text/html, application/json;q=0.9", "text/html;q=0.1, x/y")]
    + [(field, [prefers_html]) for field in ("text/*", "text/markdown;q=0.9, text/*")]
    + [("text/markdown;q=0.1", [prefers_markdown]), ("text/markdown;q=0.9, text/html", [prefers_html])]
    + [("text/markdown, text/html", [prefers_html, prefers_markdown])],
)
def test_the_type_with_more_weight_is_preferred_and_markdown_if_named(
    field: str, preferred: list[Any]
) -> None:
    preferences = (prefers_json, prefers_html, prefers_markdown)
    assert [prefers for prefers in preferences if prefers(field)] == preferred


# ---- Conditional requests: RFC 9110 section 13 ----

OLD_FORMS = ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994")
ABSURD_DATES = ["1 Jan 2026 0:0 +99999999999999", f"1 Jan 2026 0:0 +{'9' * 16_000}", f"1 Jan {'9' * 20} 0:0"]
ABSURD_DATES += ["0", "Sat, 99 Nov 1994 08:49:37 GMT"]


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("if_none_match", value, 304) for value in ("{}", "W/{}", '"other", {}', '"a","b" , W/{},"c"', "*")]
    + [("if_none_match", odd, 200) for odd in ('"other"', 'W/"other"', "nonsense", '"', ",", '"*"')]
    + [("if_modified_since", day, 304) for day in (RFC_DATE, *OLD_FORMS, "Fri, 31 Dec 9999 23:59:59 GMT")]
    + [("if_modified_since", day, 200) for day in ("Sun, 06 Nov 1994 08:49:36 GMT", "yesterday", "")]
    + [("if_modified_since", day, 200) for day in ABSURD_DATES],
)
def test_a_list_of_tags_or_a_date_matches_or_is_ignored(header: str, value: str, status: int) -> None:
    representation = represent(BODY, "a/b", RFC_SECONDS)
    assert asked(representation, **{header: value.format(f'"{DIGEST}"')}).status == status


def test_the_tag_of_either_coding_is_repeated_and_a_date_beside_it_ignored() -> None:
    both = represent(BODY, "a/b", RFC_SECONDS)
    for tag, coding in product((f'"{DIGEST}"', f'"{DIGEST}-gzip"'), ("", "gzip")):
        answer = asked(both, if_none_match=tag, accept_encoding=coding)
        assert (answer.status, answer.headers[0]) == (304, ("ETag", tag))
    assert asked(both, if_none_match='"other"', if_modified_since=RFC_DATE).status == 200
