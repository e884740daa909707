"""JSON is decoded as RFC 8259 defines it or refused with reasons, and encoded compactly.

Sections: the corpus - any bytes - surrogates - bounds - encoding.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.small_files import CORPUS, GOOD_FILES, compact

from reviewslib.dataset.strict_json import NotJson, decode, encode

# ---- The corpus: the start of every fault, by file ----

NO_JSON = [
    "blank",
    "byte-order-mark-alone",
    "comment",
    "empty",
    "leading-zero",
    "line-break-in-string",
    "python-literals",
    "single-quotes",
    "trailing-comma",
    "two-byte-order-marks",
    "two-documents",
    "utf-16-big-endian-unmarked",
    "utf-16-little-endian-unmarked",
    "web-page",
    "zero-bytes",
]
NO_UTF_8 = [
    "gzip",
    "latin-1",
    "latin-1-after-byte-order-mark",
    "overlong-utf-8",
    "surrogate-as-utf-8",
    "utf-16",
    "utf-32",
]
LONG_INTEGER = ["not usable: it has an integer of more than 4300 digits"]
TOO_DEEP = ["not usable: arrays or objects are nested more than 64 levels deep"]
HALF = "holds half a surrogate pair"
NO_NUMBER = "is not a number that JSON has"
REFUSED: dict[str, list[str]] = {
    **{name: ["not JSON at line "] for name in NO_JSON},
    **{name: ["not UTF-8 at byte "] for name in NO_UTF_8},
    "truncated": ["not JSON at line 2 column 14: Expecting value"],
    "cut-utf-8": ["not UTF-8 at byte 26: unexpected end of data"],
    "long-integer": LONG_INTEGER,
    "long-integer-after-long-string": LONG_INTEGER,
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


FILES = {path.stem: path for path in CORPUS}


def faults_of(data: bytes, **let_in: bool) -> list[str]:
    """Each fault of `data` as "/path reason", or "reason" for the whole document."""
    with pytest.raises(NotJson) as refusal:
        decode(data, **let_in)
    faults = []
    for path, reason in refusal.value.faults:
        pointer = "".join(f"/{step}" for step in path)
        faults.append(f"{pointer} {reason}".strip())
    return faults


def test_every_file_of_the_corpus_has_its_faults_or_its_value() -> None:
    assert FILES.keys() == REFUSED.keys() | NO_OBJECTS.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_a_broken_document_is_refused_with_every_path_and_reason(name: str) -> None:
    faults = faults_of(FILES[name].read_bytes())

    assert len(faults) == len(REFUSED[name])
    for fault, start in zip(faults, REFUSED[name], strict=True):
        assert fault.startswith(start)


@pytest.mark.parametrize("name", NO_OBJECTS)
def test_a_document_may_be_any_value(name: str) -> None:
    assert decode(FILES[name].read_bytes()) == NO_OBJECTS[name]


# ---- Any bytes ----

GOOD = compact(GOOD_FILES)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good document of which an end is missing, or a byte is another one or two."""
    start = draw(st.integers(0, len(GOOD)))
    if draw(st.booleans()):
        return GOOD[:start]
    return GOOD[:start] + draw(st.binary(max_size=2)) + GOOD[start + 1 :]


@settings(max_examples=200)
@given(st.binary(max_size=40) | damaged())
def test_any_bytes_have_faults_or_a_value_that_can_be_encoded(data: bytes) -> None:
    try:
        value = decode(data)
    except NotJson as refusal:
        assert refusal.faults
        assert all(reason for _, reason in refusal.faults)
    else:
        assert decode(encode(value)) == value


def test_a_good_document_is_decoded() -> None:
    assert decode(GOOD) == GOOD_FILES


def test_a_byte_order_mark_is_no_content() -> None:
    assert decode(b"\xef\xbb\xbf" + GOOD) == GOOD_FILES


# ---- Surrogates ----


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert decode(rb'["\ud83d\ude00"]') == ["😀"]


def test_what_looks_like_a_surrogate_behind_a_backslash_is_text() -> None:
    assert decode(rb'["\\ud800"]') == ["\\ud800"]


def test_lone_surrogates_are_decoded_on_request() -> None:
    decoded = decode(rb'{"\ud800":["\uDFFF"]}', lone_surrogates=True)

    assert decoded == {"\ud800": ["\udfff"]}


def test_lone_surrogates_hide_no_other_fault() -> None:
    faults = faults_of(rb'["\udfff",NaN]', lone_surrogates=True)

    assert f"/1 nan {NO_NUMBER}" in faults


# ---- Bounds ----

MAX_LEVELS = 64
MAX_DIGITS = 4300


def nested(opening: str, levels: int) -> bytes:
    """A number in so many arrays or objects."""
    closing = {"[": "]", '{"":': "}"}[opening]
    return (opening * levels + "1" + closing * levels).encode()


either_kind = pytest.mark.parametrize(
    "opening", [pytest.param("[", id="arrays"), pytest.param('{"":', id="objects")]
)


@either_kind
def test_64_levels_are_decoded(opening: str) -> None:
    data = nested(opening, MAX_LEVELS)

    assert encode(decode(data)) == data


@either_kind
def test_64_levels_beside_other_values_are_decoded(opening: str) -> None:
    data = b"[[],%s,1]" % nested(opening, MAX_LEVELS - 1)

    assert encode(decode(data)) == data


@pytest.mark.parametrize("lone_surrogates", [False, True])
@pytest.mark.parametrize("levels", [MAX_LEVELS + 1, 200_000])
@either_kind
def test_more_levels_are_refused(
    opening: str, levels: int, lone_surrogates: bool
) -> None:
    data = nested(opening, levels)

    assert faults_of(data, lone_surrogates=lone_surrogates) == TOO_DEEP


@either_kind
def test_more_levels_beside_other_values_are_refused(opening: str) -> None:
    data = b"[[],%s,1]" % nested(opening, MAX_LEVELS)

    assert faults_of(data) == TOO_DEEP


@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_of_4300_digits_is_decoded(sign: str) -> None:
    digits = "9" * MAX_DIGITS

    assert decode(f"[{sign}{digits}]".encode()) == [int(sign + digits)]


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_longer_integer_is_refused(sign: str) -> None:
    digits = "9" * (MAX_DIGITS + 1)

    assert faults_of(f'["", {sign}{digits}]'.encode()) == LONG_INTEGER


# ---- Encoding ----


def test_json_is_compact_utf_8() -> None:
    encoded = encode({"b": [1.5, "é"], "a": None})

    assert encoded == '{"b":[1.5,"é"],"a":null}'.encode()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_lacks_is_not_encoded(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"a": [number]})
