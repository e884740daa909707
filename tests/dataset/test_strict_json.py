"""JSON is decoded as RFC 8259 defines it or refused with path and reason, and encoded compactly."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.small_files import CORPUS, GOOD_FILES, compact

from reviewslib.dataset.strict_json import NotJson, decode, encode

# ---- The corpus: the start of every fault, by file ----

NO_JSON = """
    blank byte-order-mark-alone comment empty leading-zero line-break-in-string python-literals single-quotes
    trailing-comma two-byte-order-marks two-documents utf-16-big-endian-unmarked utf-16-little-endian-unmarked
    web-page zero-bytes
"""
NO_UTF_8 = "gzip latin-1-after-byte-order-mark overlong-utf-8 surrogate-as-utf-8 utf-16 utf-32 latin-1"
LONG_INTEGER = ["not usable: it has an integer of more than 4300 digits"]
TOO_DEEP = ["not usable: arrays or objects are nested more than 64 levels deep"]
HALF = "holds half a surrogate pair"
NO_NUMBER = "is not a number that JSON has"
REFUSED: dict[str, list[str]] = {
    **{name: ["not JSON at line "] for name in NO_JSON.split()},
    **{name: ["not UTF-8 at byte "] for name in NO_UTF_8.split()},
    "truncated": ["not JSON at line 2 column 14: Expecting value"],
    "cut-utf-8": ["not UTF-8 at byte 26: unexpected end of data"],
    **dict.fromkeys(["long-integer", "long-integer-after-long-string"], LONG_INTEGER),
    "nested-arrays": TOO_DEEP,
    "half-a-pair-above-a-nan": [HALF, f"/\udfff/x nan {NO_NUMBER}"],
    "half-a-pair-in-a-key": [f"/business {HALF}"],
    "half-a-pair-in-a-value": [f"/business/name {HALF}", f"/reviews/0/text {HALF}"],
    "infinity": [
        f"/business/geo/latitude inf {NO_NUMBER}",
        f"/business/geo/longitude -inf {NO_NUMBER}",
    ],
    "nan": [f"/business/geo/latitude nan {NO_NUMBER}"],
    "overflowing-float": [
        f"/reviews/0/rating inf {NO_NUMBER}",
        f"/reviews/1/rating -inf {NO_NUMBER}",
    ],
}
NO_OBJECTS = {"array": [{"id": "a"}], "null": None, "number": 5, "string": "reviews"}


def faults_of(data: bytes, **let_in: bool) -> list[str]:
    """Each fault of `data` as "/path reason", or "reason" for the whole document."""
    with pytest.raises(NotJson) as refusal:
        decode(data, **let_in)
    return [
        f"{''.join(f'/{step}' for step in path)} {why}".strip()
        for path, why in refusal.value.faults
    ]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_broken_document_is_refused_with_every_path_and_reason(path: Path) -> None:
    if path.stem in NO_OBJECTS:
        assert decode(path.read_bytes()) == NO_OBJECTS[path.stem]
    else:
        for fault, start in zip(
            faults_of(path.read_bytes()), REFUSED[path.stem], strict=True
        ):
            assert fault.startswith(start)


# ---- Bytes, values and bounds ----

GOOD = compact(GOOD_FILES)
byte_changes = st.tuples(st.integers(0, 900), st.binary(max_size=2))


@settings(max_examples=200)
@given(
    st.binary(max_size=40)
    | st.integers(0, len(GOOD)).map(lambda end: GOOD[:end])
    | byte_changes.map(
        lambda change: GOOD[: change[0]] + change[1] + GOOD[change[0] + 1 :]
    )
)
def test_any_bytes_have_faults_or_a_value_that_can_be_encoded(data: bytes) -> None:
    try:
        value = decode(data)
    except NotJson as refusal:
        assert all(why for _, why in refusal.faults) and refusal.faults
    else:
        assert decode(encode(value)) == value


def test_a_byte_order_mark_is_no_content() -> None:
    assert decode(b"\xef\xbb\xbf" + GOOD) == decode(GOOD) == GOOD_FILES


def test_lone_surrogates_are_decoded_only_on_request_and_pairs_always() -> None:
    assert decode(b'{"\\ud800":["\\uDFFF"]}', lone_surrogates=True) == {
        "\ud800": ["\udfff"]
    }
    assert (
        faults_of(b'["\\udfff",NaN]', lone_surrogates=True)[-1] == f"/1 nan {NO_NUMBER}"
    )
    assert decode(rb'["\ud83d\ude00 \\ud800"]') == ["😀 \\ud800"]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"":', "}")])
def test_at_most_64_levels_of_nesting_are_decoded(opening: str, closing: str) -> None:
    def nested(levels: int) -> bytes:
        return (opening * levels + "1" + closing * levels).encode()

    assert encode(decode(nested(64))) == nested(64)
    assert decode(b"[[],%s,1]" % nested(63))
    for data in (nested(65), nested(200_000), b"[[],%s,1]" % nested(64)):
        assert faults_of(data) == faults_of(data, lone_surrogates=True) == TOO_DEEP


@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_have_at_most_4300_digits(sign: str) -> None:
    assert decode(f"[{sign}{'9' * 4300}]".encode()) == [int(sign + "9" * 4300)]
    assert faults_of(f'["", {sign}{"9" * 4301}]'.encode()) == LONG_INTEGER


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_json_is_compact_and_a_number_that_it_lacks_is_not_encoded(
    number: float,
) -> None:
    assert encode({"b": [1.5, "é"], "a": None}) == b'{"b":[1.5,"\xc3\xa9"],"a":null}'
    with pytest.raises(ValueError, match="JSON"):
        encode({"a": [number]})
