"""What a caller wrote becomes a `Query` or the arguments of a tool, or every issue with it at once.

HTTP and MCP ask by the same parameters, read by the same functions. This module knows no review, no file and
no protocol.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from reviewslib.dataset.contract import Parameter
from reviewslib.dataset.strict_json import SURROGATE, Json
from reviewslib.dataset.text import loosely, name_words

MOST_ISSUES = 50  # that one answer lists; the others are counted
MOST_ECHOED = 200  # characters of a wrong value repeated in its issue


# ---- Query: what a caller asks for, and what is wrong with it, with the data that an answer needs ----


@dataclass(frozen=True, slots=True)
class Query:
    """A search that has passed every check; names and defaults are the contract's, None filters nothing."""

    query: str | None = None
    rating: int | None = None
    min_rating: float | None = None
    since: str | None = None  # calendar days, YYYY-MM-DD, inclusive
    until: str | None = None
    mentions_technician: str | None = None
    mentions_service: str | None = None
    source: str | None = None
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with a request; `parameter` is None when no single parameter is."""

    parameter: str | None
    value: str
    message: str

    def __str__(self) -> str:
        return self.message if self.parameter is None else f"{self.parameter}: {self.message}"


class BadQuery(ValueError):
    """The caller must change the request.

    `issues` stand in the order of the parameters given; `wrong_count` counts those that are not listed, too.
    """

    def __init__(self, issues: Sequence[Issue], wrong_count: int | None = None):
        self.issues = tuple(issues)
        self.wrong_count = len(issues) if wrong_count is None else wrong_count


class BadValue(ValueError):
    """A value does not fit its parameter; the text says what would."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known name that is nearest, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(name[:MOST_ECHOED], names)
    listed = f"known are {', '.join(names)}" if names else "none is taken"
    return f"; did you mean {near[0]}?" if near else f"; {listed}"


def echo(value: Json) -> str:
    """A caller's value as it may stand in an answer: short, and encodable whatever it was."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except ValueError:  # the interpreter does not write integers of thousands of digits
        text = "a number of thousands of digits"
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= MOST_ECHOED else text[:MOST_ECHOED] + "…"


# ---- Reading: from names and values to a query or to arguments ----


def query_from_pairs(parameters: Mapping[str, Parameter], pairs: Sequence[tuple[str, str]]) -> Query:
    """The query that decoded `name=value` pairs ask for.

    Bytes that are not UTF-8 are expected as lone surrogates (`errors="surrogateescape"`) and become issues.
    Raises BadQuery with every issue.
    """
    return Query(**_read(parameters, _by_name(pairs)))


def query_of_page(parameters: Mapping[str, Parameter], pairs: Sequence[tuple[str, str]], size: int) -> Query:
    """The query for one page of a list, `size` reviews long; a parameter `page` has its number, from 1 on.

    Raises BadQuery with every issue, as `query_from_pairs` does.
    """
    values = _read(parameters, _by_name(pairs))
    return Query(offset=(values.pop("page") - 1) * size, limit=size, **values)


def forgiving_values(parameters: Mapping[str, Parameter], pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The values of `name=value` pairs by name; what is wrong counts as absent."""
    given, values = _by_name(pairs), {}
    for name, parameter in parameters.items():
        values[name] = parameter.default
        with suppress(BadValue):
            if (value := _read_parameter(parameters, name, given.get(name, [None]))) is not None:
                values[name] = value
    return values


def _by_name(pairs: Sequence[tuple[str, str]]) -> dict[str, list[Json]]:
    given: dict[str, list[Json]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    return given


def read_arguments(parameters: Mapping[str, Parameter], arguments: Mapping[str, Json]) -> dict[str, Any]:
    """The values of a JSON object by name, those left out with their defaults.

    Numbers may be JSON numbers or strings; null is the same as absent. Raises BadQuery with every issue.
    """
    return _read(parameters, {name: [value] for name, value in arguments.items()})


def _read(known: Mapping[str, Parameter], given: Mapping[str, list[Json]]) -> dict[str, Any]:
    values: dict[str, Any] = {name: parameter.default for name, parameter in known.items()}
    issues: list[Issue] = []
    unlisted_count = 0
    for name, texts in given.items():
        if name not in known and len(issues) >= MOST_ISSUES:
            unlisted_count += 1
            continue
        try:
            if (value := _read_parameter(known, name, texts)) is not None:
                values[name] = value
        except BadValue as bad:
            issues.append(Issue(echo(name), echo(texts[-1]), str(bad)))
    for name, parameter in known.items():
        if parameter.required and given.get(name, [None])[0] in (None, ""):
            issues.append(Issue(name, "", "is required"))
    if issues:
        wrong_count = len(issues) + unlisted_count
        if unlisted_count:
            issues.append(Issue(None, "", f"{unlisted_count} more parameters are unknown"))
        raise BadQuery(issues, wrong_count)
    return values


def _read_parameter(known: Mapping[str, Parameter], name: str, texts: list[Json]) -> Json:
    if (parameter := known.get(name)) is None:
        raise BadValue(f"unknown parameter{nearest(name, known)}")
    if len(texts) > 1:
        raise BadValue(f"given {len(texts)} times, expected once")
    if texts[0] in (None, ""):
        return None
    return READERS[parameter.kind](parameter, texts[0])


# ---- Values: one reader for each kind of parameter; each raises BadValue ----

DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
WHOLE = re.compile(r"-?[0-9]+(\.0+)?")
CALENDAR_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def read_day(text: str) -> str:
    """`text` when it is a real day written YYYY-MM-DD. Raises BadValue."""
    if not CALENDAR_DAY.fullmatch(text):
        raise BadValue("expected a date written YYYY-MM-DD")
    try:
        date.fromisoformat(text)
    except ValueError:
        raise BadValue("expected a day that the calendar has") from None
    return text


def _read_text(parameter: Parameter, value: Json) -> str:
    if not isinstance(value, str):
        raise BadValue("expected text")
    if SURROGATE.search(value):
        raise BadValue("is not valid UTF-8")
    if not loosely(value):
        raise BadValue("expected more than accents")  # all texts have this
    return value


def _read_name(parameter: Parameter, value: Json) -> str:
    if not name_words(text := _read_text(parameter, value)):
        raise BadValue("expected at least one word of a name")
    return text


def _read_integer(parameter: Parameter, value: Json) -> int:
    wanted = "a whole number such as 5"
    number = _number(parameter, value, WHOLE, wanted)
    if number != int(number):
        raise BadValue(f"expected {wanted}")
    return int(number)


def _number(parameter: Parameter, value: Json, grammar: re.Pattern[str], wanted: str) -> float:
    """A JSON number or the number that a string of `grammar` stands for (infinite when it is too large)."""
    if isinstance(value, str) and grammar.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadValue(f"expected {wanted}")
    if value < parameter.minimum:
        raise BadValue(f"{_brief(value)} is below the minimum of {_brief(parameter.minimum)}")
    if value > parameter.maximum:
        raise BadValue(f"{_brief(value)} is above the maximum of {_brief(parameter.maximum)}")
    if math.isnan(value):
        raise BadValue("expected a number")
    return value


def _brief(number: float) -> str:
    """A number as a person writes it: 5 for 5.0."""
    try:
        return f"{number:.15g}"
    except OverflowError:  # an integer beyond every float
        return "the number"


READERS: dict[str, Callable[[Parameter, Json], Any]] = {
    "text": _read_text,
    "name": _read_name,
    "date": lambda parameter, value: read_day(_read_text(parameter, value)),
    "number": lambda parameter, value: _number(parameter, value, DECIMAL, "a number such as 4 or 4.5"),
    "integer": _read_integer,
}
