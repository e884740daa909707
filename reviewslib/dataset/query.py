"""Parameters: a caller's names and values become a `Query`, arguments, or issues.

HTTP and MCP have the same parameters, which the same functions read. This module knows
no review, no file and no protocol.

Sections: queries and issues - known names - reading - values.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Any

from reviewslib.dataset.contract import Parameter
from reviewslib.dataset.strict_json import SURROGATE, Json
from reviewslib.dataset.text import loosen, name_words

# Different names in a request; each unknown one is compared with all known ones.
MAX_PARAMETERS = 50
# Characters of a wrong value that its issue repeats: the caller knows the rest.
MAX_ECHOED = 200

# ---- Queries and issues: a search, or what is wrong with it ----


@dataclass(frozen=True, slots=True)
class Query:
    """A valid search. Names and defaults are the contract's; None means no filter."""

    query: str | None = None
    rating: int | None = None
    min_rating: float | None = None
    max_rating: float | None = None
    since: str | None = None  # days, YYYY-MM-DD, inclusive
    until: str | None = None
    mentions: str | None = None
    sentiment: str | None = None
    replied: bool | None = None
    mentions_technician: str | None = None
    mentions_service: str | None = None
    source: str | None = None
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Issue:
    """An error in a request; `parameter` is None if it is not about a parameter."""

    parameter: str | None
    value: str
    message: str

    def __str__(self) -> str:
        if self.parameter is None:
            return self.message
        return f"{self.parameter}: {self.message}"


class BadQuery(ValueError):
    """A request the caller must change; `issues` are in the order of parameters."""

    def __init__(self, issues: Sequence[Issue]):
        self.issues = tuple(issues)


class BadValue(ValueError):
    """A value does not fit its parameter; the text says which values do."""


def echo(value: Json) -> str:
    """A caller's value for an error message: cut, and encodable in UTF-8."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except ValueError:
        # The interpreter does not write integers of thousands of digits.
        text = "a number of thousands of digits"
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    if len(text) <= MAX_ECHOED:
        return text
    return text[:MAX_ECHOED] + "…"


# ---- Known names: the ends of messages about unknown ones ----

# Of a suggested name: min_ratin suggests min_rating, sort does not suggest source.
MIN_SIMILARITY = 0.8
# Names in one message.
MAX_LISTED = 20
# Words of known names that a misspelt name is compared with, and words of that name: a
# comparison takes as long as both words together.
MAX_COMPARED = 200
MAX_COMPARING = 3


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about the unknown `name`: the most similar of `names`.

    All of them, if none is similar.
    """
    choices = list(names)
    similar = difflib.get_close_matches(
        name[:MAX_ECHOED].lower(), choices, n=1, cutoff=MIN_SIMILARITY
    )
    if similar:
        return f"; did you mean {similar[0]}?"
    if choices:
        return f"; the known ones are {', '.join(choices)}"
    return "; none is accepted"


def known_names(
    plural: str, value: str, names: Iterable[str], limit: int = MAX_LISTED
) -> str:
    """A list of at most `limit` `names`, for a message about the unknown name `value`.

    Those with a similar word come first. `plural` says what they name, such as
    "services".
    """
    choices = list(names)
    if not choices:
        return f"No {plural} are known"
    choices = _similar_first(value, choices)
    listed = "; ".join(map(echo, choices[:limit]))
    if len(choices) > limit:
        listed += f" and {len(choices) - limit} more"
    return f"Known {plural}: {listed}"


def _similar_first(value: str, names: Sequence[str]) -> list[str]:
    """The names that have a word like one of `value`, then the others."""
    words = {name: name_words(name) for name in names[:MAX_COMPARED]}
    different = dict.fromkeys(chain.from_iterable(map(sorted, words.values())))
    compared = list(different)[:MAX_COMPARED]
    # Long words are the most specific.
    longest = sorted(name_words(value[:MAX_ECHOED]), key=len)[-MAX_COMPARING:]
    similar = set[str]()
    for word in longest:
        similar.update(difflib.get_close_matches(word, compared))
    return sorted(names, key=lambda name: similar.isdisjoint(words.get(name, ())))


# ---- Reading: from names and values to a query or to arguments ----


Parameters = Mapping[str, Parameter]  # by name
# Decoded `name=value` pairs; bytes that were not UTF-8 are lone surrogates.
Pairs = Sequence[tuple[str, str]]
# All values that were sent of each name.
RawValues = Mapping[str, list[Json]]


def query_from_pairs(parameters: Parameters, pairs: Pairs) -> Query:
    """The query of a search. Raises BadQuery with every issue."""
    return Query(**_correct_values(parameters, _by_name(pairs)))


def query_of_page(parameters: Parameters, pairs: Pairs, size: int) -> Query:
    """The query for a page of `size` reviews; the parameter `page` counts from 1.

    Raises BadQuery with every issue.
    """
    values = _correct_values(parameters, _by_name(pairs))
    return Query(offset=(values.pop("page") - 1) * size, limit=size, **values)


def forgiving_values(parameters: Parameters, pairs: Pairs) -> dict[str, Any]:
    """The values of the parameters by name; a wrong or unknown one counts as absent."""
    known = ((name, value) for name, value in pairs if name in parameters)
    values, _ = _read(parameters, _by_name(known))
    return values


def read_arguments(
    parameters: Parameters, arguments: Mapping[str, Json]
) -> dict[str, Any]:
    """The values of the members of a JSON object by name, with defaults.

    Numbers may be JSON numbers or strings; null means absent. Raises BadQuery with
    every issue.
    """
    raw_values = {name: [value] for name, value in arguments.items()}
    return _correct_values(parameters, raw_values)


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, list[Json]]:
    """All values of each name."""
    values: dict[str, list[Json]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def _correct_values(parameters: Parameters, raw_values: RawValues) -> dict[str, Any]:
    count = len(raw_values)
    if count > MAX_PARAMETERS:
        reason = f"more than {MAX_PARAMETERS} different parameters"
        raise BadQuery([Issue(None, str(count), reason)])
    values, issues = _read(parameters, raw_values)
    if issues:
        raise BadQuery(issues)
    return values


def _read(
    parameters: Parameters, raw_values: RawValues
) -> tuple[dict[str, Any], list[Issue]]:
    """The values by name, with defaults for absent and wrong ones, and every issue."""
    values: dict[str, Any] = {
        name: parameter.default for name, parameter in parameters.items()
    }
    issues = []
    for name, raw in raw_values.items():
        try:
            value = _read_parameter(parameters, name, raw)
        except BadValue as bad:
            issues.append(Issue(echo(name), echo(raw[-1]), str(bad)))
            continue
        if value is not None:
            values[name] = value
    for name, parameter in parameters.items():
        if parameter.required and _is_absent(raw_values.get(name, [None])[0]):
            issues.append(Issue(name, "", "is required"))
    return values, issues


def _is_absent(raw: Json) -> bool:
    """Whether a value means no value: a form sends an empty one for an empty field."""
    return raw is None or raw == ""


def _read_parameter(parameters: Parameters, name: str, raw: list[Json]) -> Json:
    """The value of the parameter `name`; None if it is absent. Raises BadValue."""
    parameter = parameters.get(name)
    if parameter is None:
        raise BadValue(f"unknown parameter{nearest(name, parameters)}")
    if len(raw) > 1:
        raise BadValue(f"given {len(raw)} times, expected once")
    if _is_absent(raw[0]):
        return None
    return READERS[parameter.kind](parameter, raw[0])


# ---- Values: one reader for each kind of parameter; each raises BadValue ----

DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
WHOLE = re.compile(r"-?[0-9]+(\.0+)?")
TRUTHS = {"true": True, "false": False}
CALENDAR_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def read_day(text: str) -> str:
    """`text`, which must be a day of the calendar as YYYY-MM-DD. Raises BadValue."""
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
    text = _read_text(parameter, value)
    if not loosen(text):
        # It would match every text.
        raise BadValue("expected more than accents")
    return text


def _read_name(parameter: Parameter, value: Json) -> str:
    text = _read_text(parameter, value)
    if not name_words(text):
        raise BadValue("expected at least one word of a name")
    return text


def _read_day(parameter: Parameter, value: Json) -> str:
    return read_day(_read_text(parameter, value))


def _read_choice(parameter: Parameter, value: Json) -> str:
    text = _read_text(parameter, value)
    if text not in parameter.choices:
        raise BadValue(f"expected {' or '.join(parameter.choices)}")
    return text


def _read_truth(parameter: Parameter, value: Json) -> bool:
    if isinstance(value, str):
        value = TRUTHS.get(value.lower())
    if not isinstance(value, bool):
        raise BadValue("expected true or false")
    return value


def _read_number(parameter: Parameter, value: Json) -> float:
    return _number(parameter, value, DECIMAL, "a number such as 4 or 4.5")


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
    # A truth value is an int in Python, but no number in JSON.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadValue(f"expected {expected}")
    if value < parameter.minimum:
        minimum = _brief(parameter.minimum)
        raise BadValue(f"{_brief(value)} is below the minimum of {minimum}")
    if value > parameter.maximum:
        maximum = _brief(parameter.maximum)
        raise BadValue(f"{_brief(value)} is above the maximum of {maximum}")
    # Ratings are mostly integers, which compare faster with an integer than with a
    # float.
    if value == int(value):
        return int(value)
    return value


def _brief(number: float) -> str:
    """The number as a person writes it, such as 5 for 5.0."""
    try:
        return f"{number:.15g}"
    except OverflowError:
        # An integer that is too large for a float.
        return "the number"


# By the `kind` of a parameter.
READERS: dict[str, Callable[[Parameter, Json], Any]] = {
    "text": _read_words,
    "name": _read_name,
    "date": _read_day,
    "number": _read_number,
    "integer": _read_integer,
    "choice": _read_choice,
    "boolean": _read_truth,
}
