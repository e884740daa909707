"""Parameters: a caller's names and values become a `Query` or the arguments of a tool, or a list of issues.

HTTP and MCP have the same parameters, which the same functions read. This module knows no review, no file
and no protocol.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from reviewslib.dataset.contract import Parameter
from reviewslib.dataset.strict_json import SURROGATE, Json
from reviewslib.dataset.text import loosen, name_words

MAX_PARAMETERS = (
    50  # different names in a request; each unknown one is compared with the known ones
)
MAX_ECHOED = 200  # characters of a wrong value that its issue repeats
MIN_SIMILARITY = 0.8  # of a suggested name: min_ratin suggests min_rating, sort does not suggest source
MAX_LISTED = 20  # names in one message
MAX_COMPARED = 200  # words of known names that a misspelt name is compared with


# ---- Query: a search, or what is wrong with it ----


@dataclass(frozen=True, slots=True)
class Query:
    """A valid search. Names and defaults are those of the contract; None means no filter."""

    query: str | None = None
    rating: int | None = None
    min_rating: float | None = None
    max_rating: float | None = None
    since: str | None = None  # days, YYYY-MM-DD, inclusive
    until: str | None = None
    mentions_technician: str | None = None
    mentions_service: str | None = None
    source: str | None = None
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Issue:
    """An error in a request; `parameter` is None if the error is not about a parameter."""

    parameter: str | None
    value: str
    message: str

    def __str__(self) -> str:
        return (
            self.message
            if self.parameter is None
            else f"{self.parameter}: {self.message}"
        )


class BadQuery(ValueError):
    """A request that the caller must change; `issues` have the order of its parameters."""

    def __init__(self, issues: Sequence[Issue]):
        self.issues = tuple(issues)


class BadValue(ValueError):
    """A value does not fit its parameter; the text says which values do."""


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about the unknown `name`: the most similar one of `names`, or all of them."""
    choices = list(names)
    similar = difflib.get_close_matches(
        name[:MAX_ECHOED].lower(), choices, 1, MIN_SIMILARITY
    )
    listed = (
        f"the known ones are {', '.join(choices)}" if choices else "none is accepted"
    )
    return f"; did you mean {similar[0]}?" if similar else f"; {listed}"


def known_names(plural: str, value: str, names: Iterable[str]) -> str:
    """A list of `names`, for a message about the unknown name `value`; those with a similar word come first.

    `plural` says what they name, such as "services".
    """
    choices = list(names)
    words = {name: name_words(name) for name in choices[:MAX_COMPARED]}
    compared = list(
        dict.fromkeys(word for name in words for word in sorted(words[name]))
    )[:MAX_COMPARED]
    longest = sorted(name_words(value[:MAX_ECHOED]), key=len)[
        -3:
    ]  # long words are the most specific
    similar = {
        match for word in longest for match in difflib.get_close_matches(word, compared)
    }
    choices.sort(key=lambda name: similar.isdisjoint(words.get(name, ())))
    rest = f" and {len(choices) - MAX_LISTED} more" if len(choices) > MAX_LISTED else ""
    listed = "; ".join(map(echo, choices[:MAX_LISTED])) + rest
    return f"Known {plural}: {listed}" if choices else f"No {plural} are known"


def echo(value: Json) -> str:
    """A caller's value for an error message: cut, and encodable in UTF-8."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except ValueError:  # the interpreter does not write integers of thousands of digits
        text = "a number of thousands of digits"
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= MAX_ECHOED else text[:MAX_ECHOED] + "…"


# ---- Reading: from names and values to a query or to arguments ----


Parameters = Mapping[str, Parameter]  # by name
Pairs = Sequence[
    tuple[str, str]
]  # decoded `name=value` pairs; bytes that were not UTF-8 are lone surrogates


def query_from_pairs(parameters: Parameters, pairs: Pairs) -> Query:
    """The query of a search. Raises BadQuery with every issue."""
    return Query(**_correct_values(parameters, _by_name(pairs)))


def query_of_page(parameters: Parameters, pairs: Pairs, size: int) -> Query:
    """The query for one page of `size` reviews; the parameter `page` is its number, from 1.

    Raises BadQuery with every issue.
    """
    values = _correct_values(parameters, _by_name(pairs))
    return Query(offset=(values.pop("page") - 1) * size, limit=size, **values)


def forgiving_values(parameters: Parameters, pairs: Pairs) -> dict[str, Any]:
    """The values of the parameters by name; a wrong value counts as absent."""
    return _read(
        parameters,
        _by_name((name, value) for name, value in pairs if name in parameters),
    )[0]


def read_arguments(
    parameters: Parameters, arguments: Mapping[str, Json]
) -> dict[str, Any]:
    """The values of the members of a JSON object by name, with defaults for absent ones.

    Numbers may be JSON numbers or strings; null means absent. Raises BadQuery with every issue.
    """
    return _correct_values(
        parameters, {name: [value] for name, value in arguments.items()}
    )


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, list[Json]]:
    """All values of each name."""
    values: dict[str, list[Json]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def _correct_values(
    parameters: Parameters, raw_values: Mapping[str, list[Json]]
) -> dict[str, Any]:
    if (count := len(raw_values)) > MAX_PARAMETERS:
        raise BadQuery(
            [
                Issue(
                    None, str(count), f"more than {MAX_PARAMETERS} different parameters"
                )
            ]
        )
    values, issues = _read(parameters, raw_values)
    if issues:
        raise BadQuery(issues)
    return values


def _read(
    parameters: Parameters, raw_values: Mapping[str, list[Json]]
) -> tuple[dict[str, Any], list[Issue]]:
    """The values by name, with defaults for absent and wrong ones, and every issue."""
    values: dict[str, Any] = {
        name: parameter.default for name, parameter in parameters.items()
    }
    issues = []
    for name, raw in raw_values.items():
        try:
            if (value := _read_parameter(parameters, name, raw)) is not None:
                values[name] = value
        except BadValue as bad:
            issues.append(Issue(echo(name), echo(raw[-1]), str(bad)))
    for name, parameter in parameters.items():
        if parameter.required and raw_values.get(name, [None])[0] in (None, ""):
            issues.append(Issue(name, "", "is required"))
    return values, issues


def _read_parameter(parameters: Parameters, name: str, raw: list[Json]) -> Json:
    """The value of the parameter `name`, None if it is absent; `raw` has all values that were sent."""
    if (parameter := parameters.get(name)) is None:
        raise BadValue(f"unknown parameter{nearest(name, parameters)}")
    if len(raw) > 1:
        raise BadValue(f"given {len(raw)} times, expected once")
    if raw[0] in (None, ""):
        return None
    return READERS[parameter.kind](parameter, raw[0])


# ---- Values: one reader for each kind of parameter; each raises BadValue ----

DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
WHOLE = re.compile(r"-?[0-9]+(\.0+)?")
CALENDAR_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def read_day(text: str) -> str:
    """`text`, which must be a day of the calendar, written YYYY-MM-DD. Raises BadValue."""
    if not CALENDAR_DAY.fullmatch(text):
        raise BadValue("expected a date written YYYY-MM-DD")
    try:
        date.fromisoformat(text)
    except ValueError:
        raise BadValue("expected a day that exists") from None
    return text


def _read_text(parameter: Parameter, value: Json) -> str:
    if not isinstance(value, str):
        raise BadValue("expected text")
    if SURROGATE.search(value):
        raise BadValue("is not valid UTF-8")
    return value


def _read_words(parameter: Parameter, value: Json) -> str:
    if not loosen(text := _read_text(parameter, value)):
        raise BadValue(
            "expected more than accents"
        )  # an empty value would match every text
    return text


def _read_name(parameter: Parameter, value: Json) -> str:
    if not name_words(text := _read_text(parameter, value)):
        raise BadValue("expected at least one word of a name")
    return text


def _read_integer(parameter: Parameter, value: Json) -> int:
    expected = "a whole number such as 5"
    number = _number(parameter, value, WHOLE, expected)
    if not isinstance(number, int):
        raise BadValue(f"expected {expected}")
    return number


def _number(
    parameter: Parameter, value: Json, grammar: re.Pattern[str], expected: str
) -> float:
    """A JSON number, or the number in a string of `grammar`; an int if it is whole."""
    if isinstance(value, str) and grammar.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadValue(f"expected {expected}")
    if value < parameter.minimum:
        raise BadValue(
            f"{_brief(value)} is below the minimum of {_brief(parameter.minimum)}"
        )
    if value > parameter.maximum:
        raise BadValue(
            f"{_brief(value)} is above the maximum of {_brief(parameter.maximum)}"
        )
    if math.isnan(value):
        raise BadValue("expected a number")
    # Ratings are mostly integers, which compare faster with an integer than with a float.
    return int(value) if value == int(value) else value


def _brief(number: float) -> str:
    """The number as a person writes it, such as 5 for 5.0."""
    try:
        return f"{number:.15g}"
    except OverflowError:  # an integer that is too large for a float
        return "the number"


READERS: dict[str, Callable[[Parameter, Json], Any]] = {
    "text": _read_words,
    "name": _read_name,
    "date": lambda parameter, value: read_day(_read_text(parameter, value)),
    "number": lambda parameter, value: _number(
        parameter, value, DECIMAL, "a number such as 4 or 4.5"
    ),
    "integer": _read_integer,
}
