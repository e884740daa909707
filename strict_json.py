"""JSON as RFC 8259 defines it, in UTF-8: bytes to values and back.

What JSON or UTF-8 does not have is refused, although Python would take it: NaN and infinite numbers, lone
surrogates, nesting without an end. This module knows no file, no schema and no protocol.

Sections: Reading - Writing
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

Json = Any  # a value as json.loads returns it
JsonPath = tuple[str | int, ...]  # keys and indexes from the root; () is the whole document

MOST_NESTED = 64  # levels of arrays and objects; far below what exhausts the stack when it is written again
TOO_DEEP = f"not usable: arrays or objects are nested more than {MOST_NESTED} levels deep"
SURROGATE = re.compile("[\ud800-\udfff]")  # alone in a string it cannot be written as UTF-8


# ---- Reading ----


class NotJson(ValueError):
    """Bytes that are no usable JSON; `faults` pairs each place with its reason, in document order."""

    def __init__(self, *faults: tuple[JsonPath, str]):
        super().__init__("; ".join(reason for _, reason in faults))
        self.faults = faults


def decode(data: bytes, *, lone_surrogates: bool = False) -> Json:
    """The value in `data`, which is UTF-8 with or without a byte order mark.

    What is returned can be encoded again, but for `lone_surrogates` where these are let in. Raises NotJson.
    """
    suspicious = False

    def number(token: str) -> float:
        nonlocal suspicious
        value = float(token)
        suspicious = suspicious or not math.isfinite(value)
        return value

    try:
        text = data.decode().removeprefix("\ufeff")
        document = json.loads(text, parse_constant=number, parse_float=number)
    except UnicodeDecodeError as error:
        raise NotJson(((), f"not UTF-8 at byte {error.start}: {error.reason}")) from None
    except json.JSONDecodeError as error:
        raise NotJson(((), f"not JSON at line {error.lineno} column {error.colno}: {error.msg}")) from None
    except RecursionError:
        raise NotJson(((), TOO_DEEP)) from None
    except ValueError:  # int() refuses thousands of digits and does not say where
        raise NotJson(((), _long_integer(text))) from None
    if _is_deeper_than(document, MOST_NESTED):
        raise NotJson(((), TOO_DEEP))
    suspicious = suspicious or (not lone_surrogates and b"\\ud" in data.lower())
    if suspicious and (faults := tuple(_unwritable(document))):
        raise NotJson(*faults)
    return document


def _long_integer(text: str) -> str:
    strings_and_runs = re.finditer(r'"(?:[^"\\]|\\.)*"|[0-9]{4301}', text)
    run = next((found for found in strings_and_runs if found[0][0] != '"'), None)
    line = text.count("\n", 0, run.start()) + 1 if run else 0
    return f"not usable: an integer of more than 4300 digits on line {line}"


def _is_deeper_than(document: Json, levels: int) -> bool:
    layer = [document]
    for _ in range(levels):
        holders = [value for value in layer if isinstance(value, (dict, list))]
        layer = [
            value for holder in holders for value in (holder.values() if isinstance(holder, dict) else holder)
        ]
    return any(isinstance(value, (dict, list)) for value in layer)


def _unwritable(document: Json, path: JsonPath = ()) -> Iterator[tuple[JsonPath, str]]:
    """Every number and string below `document` that JSON in UTF-8 cannot hold."""
    if isinstance(document, dict):
        for key, value in document.items():
            if SURROGATE.search(key):
                yield path, "holds half a surrogate pair"
            yield from _unwritable(value, (*path, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from _unwritable(value, (*path, index))
    elif isinstance(document, float) and not math.isfinite(document):
        yield path, f"{document} is not a number that JSON has"
    elif isinstance(document, str) and SURROGATE.search(document):
        yield path, "holds half a surrogate pair"


# ---- Writing ----


def encode(value: Json) -> bytes:
    """Compact JSON in UTF-8, keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
