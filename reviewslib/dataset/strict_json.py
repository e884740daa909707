"""JSON as RFC 8259 defines it, in UTF-8: decodes bytes to values and encodes values to bytes.

Python's `json` accepts values that JSON or UTF-8 cannot represent: NaN, infinite numbers, lone surrogates.
This module refuses them, and nesting that would exhaust the stack. It knows no file and no schema.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

Json = Any  # a value as json.loads returns it
Object = Mapping[str, Json]  # read only
JsonPath = tuple[
    str | int, ...
]  # keys and indexes from the root; () is the whole document

MAX_NESTED = (
    64  # levels of arrays and objects; many more would exhaust the stack of the encoder
)
TOO_DEEP = (
    f"not usable: arrays or objects are nested more than {MAX_NESTED} levels deep"
)
SURROGATE = re.compile("[\ud800-\udfff]")  # UTF-8 cannot encode a lone one


class NotJson(ValueError):
    """The bytes are not usable JSON. `faults` has pairs of path and reason, in document order."""

    def __init__(self, *faults: tuple[JsonPath, str]):
        self.faults = faults


def decode(data: bytes, *, lone_surrogates: bool = False) -> Json:
    """The value of `data`, which is UTF-8 with or without a byte order mark. Raises NotJson.

    The value can be encoded again, unless `lone_surrogates` allows strings to have lone surrogates.
    """
    not_finite = []

    def read_number(token: str) -> float:
        if not math.isfinite(number := float(token)):
            not_finite.append(number)
        return number

    try:
        text = data.decode().removeprefix("\ufeff")
        document = json.loads(text, parse_constant=read_number, parse_float=read_number)
    except UnicodeDecodeError as error:
        raise NotJson(
            ((), f"not UTF-8 at byte {error.start}: {error.reason}")
        ) from None
    except json.JSONDecodeError as error:
        raise NotJson(
            ((), f"not JSON at line {error.lineno} column {error.colno}: {error.msg}")
        ) from None
    except RecursionError:
        raise NotJson(((), TOO_DEEP)) from None
    except ValueError:  # int() refuses more than 4300 digits
        raise NotJson(
            ((), "not usable: it has an integer of more than 4300 digits")
        ) from None
    if _is_too_deep(document):
        raise NotJson(((), TOO_DEEP))
    has_surrogates = b"\\ud" in data.lower()  # escaped; they may form pairs
    if not_finite or (has_surrogates and not lone_surrogates):
        faults: list[tuple[JsonPath, str]] = []
        _find_unwritable(document, (), faults)
        if faults:
            raise NotJson(*faults)
    return document


def members(value: Json) -> Iterable[tuple[str | int, Json]]:
    """The keys and values of an object, or the indexes and values of an array; empty for any other value."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _is_too_deep(document: Json) -> bool:
    layer = [document]
    depth = 0
    while layer and depth < MAX_NESTED:
        layer = [member for value in layer for _, member in members(value)]
        depth = depth + 1
    return any(isinstance(value, (dict, list)) for value in layer)


def _find_unwritable(
    document: Json, path: JsonPath, faults: list[tuple[JsonPath, str]]
) -> None:
    """Adds to `faults` every number and string in `document` that JSON in UTF-8 cannot represent."""
    for step, member in members(document):
        if isinstance(step, str) and SURROGATE.search(step):
            faults.append((path, "holds half a surrogate pair"))
        _find_unwritable(member, (*path, step), faults)
    if isinstance(document, float) and not math.isfinite(document):
        faults.append((path, f"{document} is not a number that JSON has"))
    if isinstance(document, str) and SURROGATE.search(document):
        faults.append((path, "holds half a surrogate pair"))


ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encode(value: Json) -> bytes:
    """Compact JSON in UTF-8. Keys keep their order."""
    return ENCODER.encode(value).encode()
