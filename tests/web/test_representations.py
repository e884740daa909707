"""Representations: which coding and type is sent, and when 304 is enough.

That servers pass these headers on is in `test_http.py`.

Sections: bodies - codings and types - conditional requests.
"""

import gzip
import hashlib
import tracemalloc

import pytest

from reviewslib import messages
from reviewslib.messages import (
    LONGEST_FIELD,
    Response,
    joined,
    prefers_html,
    prefers_json,
    prefers_markdown,
    size_of,
)
from reviewslib.web import representations
from reviewslib.web.representations import Content, represent

BODY = b"Reviews, " * 500
DIGEST = hashlib.sha256(BODY).hexdigest()
# RFC 9110 section 5.6.7
RFC_DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
RFC_SECONDS = 784_111_777
POLICY = ("Policy", "p")
CONTENT = Content(BODY, "a/b", policy=(POLICY,))
IN_BOTH_CODINGS = represent(CONTENT, RFC_SECONDS)


def asked(**headers: str) -> Response:
    """The response to a request with these header fields."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return representations.negotiated(IN_BOTH_CODINGS, fields.get)


# ---- Bodies ----


@pytest.mark.parametrize(
    ("size", "level"),
    [
        pytest.param(1024, 4, id="just large enough"),
        pytest.param(300_000, 6, id="large"),
    ],
)
def test_a_body_from_1_kb_is_packed_whole(size: int, level: int) -> None:
    body = (BODY * (size // len(BODY) + 1))[:size]

    packed = represent(Content(body, "a/b"), 1, level).gzip

    assert packed
    assert packed.body == gzip.compress(body, level, mtime=0)


@pytest.mark.parametrize(
    ("size", "level"),
    [
        pytest.param(1023, 6, id="fits into a packet anyway"),
        pytest.param(1024, None, id="not asked for"),
    ],
)
def test_other_bodies_are_not_packed(size: int, level: int | None) -> None:
    assert represent(Content(bytes(size), "a/b"), 1, level).gzip is None


def test_a_packed_body_has_no_time_so_the_same_data_are_the_same_bytes() -> None:
    packed = represent(CONTENT, 1).gzip

    assert packed
    # MTIME (RFC 1952, section 2.3.1): not known.
    assert joined(packed.body)[4:8] == bytes(4)


@pytest.mark.parametrize(
    ("size", "is_packed"),
    [
        pytest.param(2**20, True, id="a megabyte"),
        pytest.param(2**20 + 1, False, id="more"),
    ],
)
def test_a_computed_body_of_more_than_a_megabyte_is_not_packed(
    size: int, is_packed: bool
) -> None:
    content = Content(bytes(size), "a/b")

    representation = representations.represent_computed(content, 1, for_gzip=True)

    assert (representation.gzip is not None) is is_packed


def test_a_computed_body_is_not_packed_for_who_does_not_want_it() -> None:
    representation = representations.represent_computed(CONTENT, 1, for_gzip=False)

    assert representation.gzip is None


# Packed, it is different at each of the levels.
VARIED = "".join(f"{number} of {number**3} " for number in range(5000)).encode()


def test_a_fixed_body_is_packed_once_and_well() -> None:
    packed = represent(Content(VARIED, "a/b"), 1).gzip

    assert packed
    assert packed.body == gzip.compress(VARIED, 6, mtime=0)


def test_a_computed_body_is_packed_quickly() -> None:
    content = Content(VARIED, "a/b")

    packed = representations.represent_computed(content, 1, for_gzip=True).gzip

    assert packed
    assert packed.body == gzip.compress(VARIED, 4, mtime=0)


@pytest.mark.parametrize(
    "tags", [pytest.param('"other"', id="200"), pytest.param("*", id="304")]
)
def test_caches_and_pages_of_other_origins_learn_the_same_with_and_without_a_body(
    tags: str,
) -> None:
    content = CONTENT._replace(vary="Accept", link="<a>; rel=b")
    representation = represent(content, RFC_SECONDS)

    response = representations.negotiated(representation, {"if-none-match": tags}.get)

    headers = dict(response.headers)
    assert headers["Last-Modified"] == RFC_DATE
    assert headers["Cache-Control"] == "public, max-age=60"
    assert headers["Vary"] == "Accept"
    assert headers["Link"] == "<a>; rel=b"
    assert headers["Access-Control-Allow-Origin"] == "*"


def test_without_a_link_there_is_no_link_field() -> None:
    assert "Link" not in dict(asked().headers)


PIECES = [memoryview(BODY[:10]), memoryview(b""), memoryview(BODY[10:])]


def test_a_body_in_pieces_is_as_long_as_its_pieces() -> None:
    assert size_of(PIECES) == len(BODY)
    assert joined(PIECES) == BODY


def test_a_body_in_pieces_is_represented_as_the_bytes_that_it_is_made_of() -> None:
    in_pieces = represent(CONTENT._replace(body=PIECES), RFC_SECONDS)

    identity = IN_BOTH_CODINGS.identity._replace(body=PIECES)
    assert in_pieces == IN_BOTH_CODINGS._replace(identity=identity)


@pytest.mark.parametrize("coding", ["", "gzip"])
@pytest.mark.parametrize(
    ("tags", "status", "has_policy"),
    [
        pytest.param('"other"', 200, True, id="with the body"),
        pytest.param("*", 304, False, id="without a body"),
    ],
)
def test_a_policy_is_sent_with_the_body_only(
    coding: str, tags: str, status: int, has_policy: bool
) -> None:
    response = asked(accept_encoding=coding, if_none_match=tags)

    assert response.status == status
    assert (POLICY in response.headers) is has_policy


# ---- Codings and types: RFC 9110 section 12 ----


@pytest.mark.parametrize(
    ("media_type", "weight"),
    [
        pytest.param("text/html", 0.5, id="named, with a parameter"),
        pytest.param("text/plain", 0.2, id="of a range"),
        pytest.param("x/y", 0, id="weight out of range"),
        pytest.param("x/z", 0, id="refused"),
        pytest.param("image/png", 0, id="not named"),
    ],
)
def test_a_media_range_has_its_weight_and_no_parameters(
    media_type: str, weight: float
) -> None:
    accept = "text/html; level=1;q=0.5, text/*;q=0.2, x/y;q=2, x/z;q=0"

    assert messages.accepted_types(accept)[media_type] == weight


@pytest.mark.parametrize(
    ("length", "weight"),
    [
        pytest.param(LONGEST_FIELD, 1, id="just short enough"),
        pytest.param(LONGEST_FIELD + 1, 0, id="cut"),
    ],
)
def test_a_long_field_is_cut(length: int, weight: float) -> None:
    accept = "a/b," + "c/def".rjust(length - len("a/b,"))

    assert messages.accepted_types(accept)["c/def"] == weight


@pytest.mark.parametrize(
    "field",
    [
        "gzip;q=0.5",
        "*",
        "identity;q=0.5, gzip",
        "gzip;q=0.5, identity;q=0.5",
    ],
)
def test_gzip_is_sent_if_it_is_accepted_and_plain_bytes_weigh_no_more(
    field: str,
) -> None:
    assert messages.accepts_gzip(field)


@pytest.mark.parametrize(
    "field",
    ["", "br", "identity, gzip;q=0.5", "*;q=0", "gzip;q=0", "gzip;q=0, *"],
)
def test_plain_bytes_are_sent_otherwise(field: str) -> None:
    assert not messages.accepts_gzip(field)


@pytest.mark.parametrize(
    ("field", "is_preferred"),
    [
        pytest.param("application/json;q=0.5, */*;q=0.5", True, id="named"),
        pytest.param("Application/JSON; a=b", True, id="alone"),
        pytest.param("text/html;q=0.5, */*", True, id="HTML less"),
        pytest.param("text/html, application/json", False, id="HTML as much"),
        pytest.param("text/html, application/json;q=0.9", False, id="HTML more"),
        pytest.param("*/*", False, id="anything"),
        pytest.param("application/json;q=0", False, id="refused"),
        pytest.param("", False, id="nothing said"),
    ],
)
def test_json_is_sent_to_who_prefers_it_to_html(field: str, is_preferred: bool) -> None:
    assert prefers_json(field) is is_preferred


@pytest.mark.parametrize(
    ("field", "is_preferred"),
    [
        pytest.param("text/html, application/json;q=0.9", True, id="JSON less"),
        pytest.param("text/*", True, id="range"),
        pytest.param("text/html, application/json", False, id="JSON as much"),
        pytest.param("*/*", False, id="anything"),
        pytest.param("image/png", False, id="something else"),
        pytest.param("", False, id="nothing said"),
    ],
)
def test_an_error_is_a_page_for_who_prefers_html_to_json(
    field: str, is_preferred: bool
) -> None:
    assert prefers_html(field) is is_preferred


@pytest.mark.parametrize(
    ("field", "is_preferred"),
    [
        pytest.param("text/markdown;q=0.1", True, id="named alone"),
        pytest.param("text/markdown, text/html", True, id="HTML as much"),
        pytest.param("text/markdown;q=0.9, text/html", False, id="HTML more"),
        pytest.param("text/markdown;q=0", False, id="refused"),
        pytest.param("*/*", False, id="not named"),
        pytest.param("", False, id="nothing said"),
    ],
)
def test_markdown_is_sent_to_who_names_it_and_wants_html_no_more(
    field: str, is_preferred: bool
) -> None:
    assert prefers_markdown(field) is is_preferred


# ---- Conditional requests: RFC 9110 section 13 ----


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(f'"{DIGEST}"', id="one tag"),
        pytest.param(f'W/"{DIGEST}"', id="weak"),
        pytest.param(f'"other", "{DIGEST}"', id="in a list"),
        pytest.param(f'"a","b" , W/"{DIGEST}","c"', id="in an untidy list"),
        pytest.param("*", id="any"),
    ],
)
def test_a_client_that_has_the_tag_gets_304(value: str) -> None:
    assert asked(if_none_match=value).status == 304


@pytest.mark.parametrize("value", ['"other"', 'W/"other"', "nonsense", '"', ",", '"*"'])
def test_a_client_with_another_tag_gets_the_content(value: str) -> None:
    assert asked(if_none_match=value).status == 200


@pytest.mark.parametrize("coding", ["", "gzip"])
@pytest.mark.parametrize("tag", [f'"{DIGEST}"', f'"{DIGEST}-gzip"'])
def test_the_tag_of_either_coding_matches_and_is_repeated(
    tag: str, coding: str
) -> None:
    response = asked(if_none_match=tag, accept_encoding=coding)

    assert response.status == 304
    assert dict(response.headers)["ETag"] == tag


@pytest.mark.parametrize(
    "date",
    [
        pytest.param(RFC_DATE, id="now"),
        pytest.param("Sunday, 06-Nov-94 08:49:37 GMT", id="form of RFC 850"),
        pytest.param("Sun Nov  6 08:49:37 1994", id="form of asctime"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", id="later"),
    ],
)
def test_a_client_with_content_of_this_date_or_later_gets_304(date: str) -> None:
    assert asked(if_modified_since=date).status == 304


@pytest.mark.parametrize(
    "date",
    [
        pytest.param("Sun, 06 Nov 1994 08:49:36 GMT", id="a second earlier"),
        pytest.param("Sat, 99 Nov 1994 08:49:37 GMT", id="no such day"),
        pytest.param("yesterday", id="word"),
        pytest.param("0", id="number"),
        pytest.param("", id="empty"),
        pytest.param("1 Jan 2026 0:0 +99999999999999", id="zone of 14 digits"),
        pytest.param(f"1 Jan 2026 0:0 +{'9' * 16_000}", id="zone of 16,000 digits"),
        pytest.param(f"1 Jan {'9' * 20} 0:0", id="year of 20 digits"),
    ],
)
def test_an_earlier_date_is_too_old_and_a_bad_one_is_ignored(date: str) -> None:
    assert asked(if_modified_since=date).status == 200


def test_a_date_beside_a_tag_is_ignored() -> None:
    assert asked(if_none_match='"other"', if_modified_since=RFC_DATE).status == 200


def long_field(number: int) -> str:
    """A field of 8 KB, unlike all others, with some 800 entity tags or media ranges."""
    return ", ".join(f'"{number}/{part}"' for part in range(800))


@pytest.mark.parametrize(
    ("name", "most_bytes"),
    [
        pytest.param("if_none_match", 2_000_000, id="tags"),
        pytest.param("accept_encoding", 2_000_000, id="codings"),
    ],
)
def test_three_hundred_long_fields_leave_little_in_memory(
    name: str, most_bytes: int
) -> None:
    fields = [long_field(number) for number in range(300)]
    tracemalloc.start()

    for field in fields:
        asked(**{name: field})

    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < most_bytes
