"""JSON as RFC 8259 defines it, in UTF-8: bytes become values, and values bytes.

Python's `json` accepts values that JSON or UTF-8 cannot represent: NaN, infinite
numbers, lone surrogates. This module refuses them, and nesting that would exhaust the
stack. It knows no file and no schema.

Sections: reading - what cannot be written again - writing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from reviewslib.faults import JsonPath

Json = Any  # a value as json.loads returns it
Object = Mapping[str, Json]  # read only

# ---- Reading ----

# Levels of arrays and objects; many more would exhaust the stack of the encoder.
MAX_NESTED = 64
TOO_DEEP = (
    f"not usable: arrays or objects are nested more than {MAX_NESTED} levels deep"
)


class NotJson(ValueError):
    """The bytes are not usable JSON.

    `faults` has pairs of path and reason, in the order of the document.
    """

    def __init__(self, *faults: tuple[JsonPath, str]):
        self.faults = faults


def decode(data: bytes, *, lone_surrogates: bool = False) -> Json:
    """The value of `data`, which is UTF-8 with or without a byte order mark.

    It can be encoded again, unless `lone_surrogates` allows strings to have lone
    surrogates. Raises NotJson.
    """
    document, is_finite = _parsed(data)
    if _is_too_deep(document):
        raise NotJson(((), TOO_DEEP))
    # Escaped ones may form pairs, so this only says where to look.
    has_surrogates = b"\\ud" in data.lower()
    if not is_finite or (has_surrogates and not lone_surrogates):
        faults: list[tuple[JsonPath, str]] = []
        _find_unwritable(document, (), faults)
        if faults:
            raise NotJson(*faults)
    return document


def _parsed(data: bytes) -> tuple[Json, bool]:
    """The value, and whether all numbers in it are finite. Raises NotJson."""
    infinite = list[float]()

    def read_number(token: str) -> float:
        number = float(token)
        if not math.isfinite(number):
            infinite.append(number)
        return number

    try:
        text = data.decode().removeprefix("\ufeff")
        document = json.loads(text, parse_constant=read_number, parse_float=read_number)
    except (ValueError, RecursionError) as error:
        raise NotJson(((), _reason_of(error))) from None
    return document, not infinite


def _reason_of(error: ValueError | RecursionError) -> str:
    """Why bytes are no usable JSON."""
    match error:
        case UnicodeDecodeError():
            return f"not UTF-8 at byte {error.start}: {error.reason}"
        case json.JSONDecodeError():
            place = f"line {error.lineno} column {error.colno}"
            return f"not JSON at {place}: {error.msg}"
        case RecursionError():
            return TOO_DEEP
    # int() refuses them.
    return "not usable: it has an integer of more than 4300 digits"


# ---- What cannot be written again ----

# UTF-8 cannot encode a lone one.
SURROGATE = re.compile("[\ud800-\udfff]")


def members(value: Json) -> Iterable[tuple[str | int, Json]]:
    """The keys and values of an object, or the indexes and values of an array.

    Empty for any other value.
    """
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list):
        return enumerate(value)
    return ()


def _is_too_deep(document: Json) -> bool:
    layer = [document]
    depth = 0
    while layer and depth < MAX_NESTED:
        below = list[Json]()
        for value in layer:
            # Without `members`: of 10,000 reviews that takes three times as long.
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
        layer = below
        depth += 1
    return any(isinstance(value, (dict, list)) for value in layer)


def _find_unwritable(
    document: Json, path: JsonPath, faults: list[tuple[JsonPath, str]]
) -> None:
    """Add every number and string to `faults` that JSON in UTF-8 cannot represent."""
    for step, member in members(document):
        if isinstance(step, str) and SURROGATE.search(step):
            faults.append((path, "holds half a surrogate pair"))
        _find_unwritable(member, (*path, step), faults)
    if isinstance(document, float) and not math.isfinite(document):
        faults.append((path, f"{document} is not a number that JSON has"))
    if isinstance(document, str) and SURROGATE.search(document):
        faults.append((path, "holds half a surrogate pair"))


# ---- Writing ----

ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encode(value: Json) -> bytes:
    """Compact JSON in UTF-8. Keys keep their order."""
    return ENCODER.encode(value).encode()
