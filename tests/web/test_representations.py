"""Representations: which coding and type is sent, and when 304 is enough.

That servers pass these headers on is in `test_http.py`.
"""

import gzip
import hashlib
from itertools import product
from typing import Any

import pytest

from reviewslib import messages
from reviewslib.messages import (
    Response,
    prefers_html,
    prefers_json,
    prefers_markdown,
)
from reviewslib.web import representations
from reviewslib.web.representations import represent

BODY = b"Reviews, " * 500
DIGEST = hashlib.sha256(BODY).hexdigest()
# RFC 9110 section 5.6.7
RFC_DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
RFC_SECONDS = 784_111_777
POLICY = ("Policy", "p")
BOTH = represent(BODY, "a/b", RFC_SECONDS, policy=(POLICY,))  # in both codings


def asked(**headers: str) -> Response:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return representations.negotiated(BOTH, fields.get)


# ---- Bodies ----


@pytest.mark.parametrize(
    ("size", "level"), [(1023, 6), (1024, None), (1024, 4), (300_000, 6)]
)
def test_a_body_from_1_kb_is_packed_whole_and_without_a_time(
    size: int, level: int | None
) -> None:
    body = (BODY * (size // len(BODY) + 1))[:size]
    coding = represent(body, "a/b", 1, level).gzip
    expected = gzip.compress(body, level, mtime=0) if level and size >= 1024 else None
    assert (coding.body if coding else None) == expected
    assert not expected or expected[4:8] == bytes(4), (
        "MTIME (RFC 1952, section 2.3.1) is not known"
    )


def test_a_body_in_pieces_is_represented_as_the_bytes_that_it_is_made_of() -> None:
    pieces = [memoryview(BODY[:10]), memoryview(b""), memoryview(BODY[10:])]
    assert (messages.size_of(pieces), messages.joined(pieces)) == (
        len(BODY),
        BODY,
    )
    in_pieces = represent(pieces, "a/b", RFC_SECONDS, gzip_level=6, policy=(POLICY,))
    assert in_pieces == BOTH._replace(identity=BOTH.identity._replace(body=pieces))


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_policy_is_sent_with_the_body_only(coding: str) -> None:
    sent = [asked(accept_encoding=coding, if_none_match=tags) for tags in "x*"]
    assert [(answer.status, POLICY in answer.headers) for answer in sent] == [
        (200, True),
        (304, False),
    ]


# ---- Codings and types: RFC 9110 section 12 ----


def test_a_media_range_has_no_parameters_and_a_long_field_is_cut() -> None:
    accepted = messages.accepted_types(
        "text/html; level=1;q=0.5, text/*;q=0.2, x/y;q=2, x/z;q=0"
    )
    kinds = ("text/html", "text/plain", "x/y", "x/z", "image/png")
    assert [accepted[kind] for kind in kinds] == [0.5, 0.2, 0, 0, 0]
    for blanks, weight in ((991, 1), (992, 0)):
        assert messages.accepted_types(f"a/b,{' ' * blanks}c/def")["c/def"] == weight


@pytest.mark.parametrize(
    ("field", "is_taken"),
    [
        (field, True)
        for field in (
            "gzip;q=0.5",
            "*",
            "identity;q=0.5, gzip",
            "gzip;q=0.5, identity;q=0.5",
        )
    ]
    + [
        (field, False)
        for field in (
            "",
            "br",
            "identity, gzip;q=0.5",
            "*;q=0",
            "gzip;q=0",
            "gzip;q=0, *",
        )
    ],
)
def test_gzip_is_sent_if_it_is_accepted_and_plain_bytes_weigh_no_more(
    field: str, is_taken: bool
) -> None:
    assert messages.accepts_gzip(field) is is_taken


PREFERENCES: dict[tuple[Any, ...], list[str]] = {
    (): [
        "",
        "*/*",
        "application/json;q=0",
        "text/html, application/json",
        "text/markdown;q=0",
        "image/png",
    ],
    (prefers_json,): [
        "application/json;q=0.5, */*;q=0.5",
        "Application/JSON; a=b",
        "text/html;q=0.5, */*",
    ],
    (prefers_html,): [
        "text/html, application/json;q=0.9",
        "text/*",
        "text/markdown;q=0.9, text/html",
    ],
    (prefers_markdown,): ["text/markdown;q=0.1"],
    (prefers_html, prefers_markdown): ["text/markdown, text/html"],
}


@pytest.mark.parametrize(
    ("field", "preferred"),
    [(field, kinds) for kinds, fields in PREFERENCES.items() for field in fields],
)
def test_the_type_with_more_weight_is_preferred_and_markdown_if_named(
    field: str, preferred: Any
) -> None:
    preferences = (prefers_html, prefers_json, prefers_markdown)
    assert tuple(prefers for prefers in preferences if prefers(field)) == preferred


# ---- Conditional requests: RFC 9110 section 13 ----

OLD_FORMS = ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994")
ABSURD_DATES = [
    "1 Jan 2026 0:0 +99999999999999",
    f"1 Jan 2026 0:0 +{'9' * 16_000}",
    f"1 Jan {'9' * 20} 0:0",
]
ABSURD_DATES += ["0", "Sat, 99 Nov 1994 08:49:37 GMT", "yesterday", ""]


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("if_none_match", value, 304)
        for value in ("{}", "W/{}", '"other", {}', '"a","b" , W/{},"c"', "*")
    ]
    + [
        ("if_none_match", odd, 200)
        for odd in ('"other"', 'W/"other"', "nonsense", '"', ",", '"*"')
    ]
    + [
        ("if_modified_since", day, 304)
        for day in (RFC_DATE, *OLD_FORMS, "Fri, 31 Dec 9999 23:59:59 GMT")
    ]
    + [
        ("if_modified_since", day, 200)
        for day in ("Sun, 06 Nov 1994 08:49:36 GMT", *ABSURD_DATES)
    ],
)
def test_a_list_of_tags_or_a_date_matches_or_is_ignored(
    header: str, value: str, status: int
) -> None:
    assert asked(**{header: value.format(f'"{DIGEST}"')}).status == status


@pytest.mark.parametrize(
    ("tag", "coding"), [*product((DIGEST, f"{DIGEST}-gzip"), ("", "gzip"))]
)
def test_the_tag_of_either_coding_is_repeated(tag: str, coding: str) -> None:
    answer = asked(if_none_match=f'"{tag}"', accept_encoding=coding)
    assert (answer.status, answer.headers[0]) == (304, ("ETag", f'"{tag}"'))


def test_a_date_beside_a_tag_is_ignored() -> None:
    assert asked(if_none_match='"other"', if_modified_since=RFC_DATE).status == 200
