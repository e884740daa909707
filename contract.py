"""The contract: what `openapi.json` says about parameters and files, made ready for use.

The document is written by hand and is the one source of the search parameters, of the form of the data files
and of the defaults of what a file leaves out. This module knows JSON and schemas; it knows no review, no HTTP
and no file system: it gets a parsed document and parsed files.

Sections: Faults - Contract - Form - Acceptance - Completion
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from strict_json import Json, JsonPath

Schema = dict[str, Any]  # JSON Schema 2020-12


# ---- Faults: what is wrong with a data file, with the data that its report needs ----


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong at one place of a data file."""

    file: str
    path: JsonPath
    reason: str

    def __str__(self) -> str:
        pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)
        line = f"{self.file} {pointer}: {self.reason}" if pointer else f"{self.file}: {self.reason}"
        # A key or a value of the file may hold line ends, control characters or half a surrogate pair.
        return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in line)


class BadData(ValueError):
    """The data files cannot be served; `faults` says why, in the order of the documents."""

    def __init__(self, faults: Sequence[Fault]):
        super().__init__(f"{len(faults)} fault(s) in the data files")
        self.faults = tuple(faults)

    def lines(self, most: int = 50) -> list[str]:
        """One line a fault, at most `most`, then one line that counts the rest."""
        rest = len(self.faults) - most
        shown = [str(fault) for fault in self.faults[:most]]
        return [*shown, f"and {rest} more fault{'s' if rest > 1 else ''}"] if rest > 0 else shown


# ---- Contract: the parts that the program obeys ----


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a caller may give: `kind` is "text", "date", "number" or "integer", `max_length` is characters."""

    name: str
    kind: str
    description: str
    default: int | None = None
    minimum: float = -math.inf
    maximum: float = math.inf
    max_length: int = 200
    required: bool = False


@dataclass(frozen=True, slots=True)
class Contract:
    """What the program takes from the contract."""

    document: dict[str, Json]
    search_parameters: Mapping[str, Parameter]  # by name, in its order
    reviews_file: FileForm
    insights_file: FileForm


def read_contract(document: dict[str, Json]) -> Contract:
    """The contract of a parsed openapi.json; a KeyError here is a broken installation, not bad data."""
    operation = document["paths"]["/api/reviews/search"]["get"]
    declared = [resolve(document, parameter) for parameter in operation["parameters"]]
    parameters = [_parameter(each) for each in declared if each["in"] == "query"]
    return Contract(
        document=document,
        search_parameters={parameter.name: parameter for parameter in parameters},
        reviews_file=FileForm(document, "ReviewsFile"),
        insights_file=FileForm(document, "InsightsFile"),
    )


def resolve(document: dict[str, Json], value: dict[str, Json]) -> dict[str, Json]:
    """`value`, or what its `$ref` into the same document points to."""
    if "$ref" not in value:
        return value
    target: Json = document
    for step in value["$ref"].removeprefix("#/").split("/"):
        target = target[step.replace("~1", "/").replace("~0", "~")]
    return resolve(document, target)


def _parameter(declared: dict[str, Json]) -> Parameter:
    schema = declared["schema"]
    kind = "text" if schema["type"] == "string" else schema["type"]
    return Parameter(
        name=declared["name"],
        kind="date" if schema.get("format") == "date" else kind,
        description=declared["description"],
        default=schema.get("default"),
        minimum=schema.get("minimum", -math.inf),
        maximum=schema.get("maximum", math.inf),
        max_length=schema.get("maxLength", 200),
    )


# ---- Form: what a component schema holds against a document ----


class FileForm:
    """The component schema `name` of a data file."""

    def __init__(self, document: dict[str, Json], name: str):
        schemas = document["components"]["schemas"]
        self._schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
        self._accepts = acceptance(document, schemas[name])
        self._complete = completion(document, schemas[name])

    def complaints(self, value: Json) -> Iterator[tuple[JsonPath, str]]:
        """Everything that is wrong with the form of `value`: where, and what."""
        if self._accepts(value):
            return
        for error in Draft202012Validator(self._schema).iter_errors(value):
            yield tuple(error.absolute_path), _reason(error)

    def complete(self, value: Json) -> Json:
        """`value`, which has no complaints, with the defaults of the schema; see `completion`."""
        return self._complete(value)


TYPE_NAMES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}

REASONS = {
    "minimum": "is less than the minimum of {wanted}",
    "maximum": "is greater than the maximum of {wanted}",
    "minLength": "is shorter than {wanted} character(s)",
    "maxLength": "is longer than {wanted} characters",
    "enum": "is none of {wanted}",
    "const": "is not {wanted}",
}


def _reason(error: ValidationError) -> str:
    """What a schema holds against a value; a long or nested value is named, not repeated."""
    wanted: Json = error.validator_value
    schema: Json = error.schema
    if error.validator == "type":
        names = [wanted] if isinstance(wanted, str) else wanted
        return f"{shown(error.instance)} is not {' or '.join(TYPE_NAMES[name] for name in names)}"
    if error.validator == "required":
        return error.message
    if error.validator == "pattern":
        return f"{shown(error.instance)} is not {schema['title']}"
    complaint = REASONS.get(str(error.validator), "does not fit {wanted}")
    return f"{shown(error.instance)} {complaint.format(wanted=wanted)}"


def shown(value: Json) -> str:
    """A value as a complaint repeats it: long ones cut, nested ones named."""
    if isinstance(value, (dict, list)):
        return TYPE_NAMES["object" if isinstance(value, dict) else "array"]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:80] + "…"


# ---- Acceptance: the answer for valid values ----

# The library needs 1.9 s for 10,000 valid reviews with their insights, these functions 0.13 s.

Acceptance = Callable[[Json], bool]

ANNOTATIONS = ("default", "description", "examples", "title")
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),  # 5.0 as well, says the standard; the library decides
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def acceptance(document: dict[str, Json], schema: Schema) -> Acceptance:
    """A function that returns True for a value that surely fits `schema`; after False the library decides.

    A keyword that is not known here accepts nothing.
    """
    checks = [
        KEYWORD_CHECKS.get(keyword, _accept_nothing)(document, schema, wanted)
        for keyword, wanted in schema.items()
        if keyword not in ANNOTATIONS
    ]
    return checks[0] if len(checks) == 1 else lambda value: all(check(value) for check in checks)


def _accept_nothing(document: dict[str, Json], schema: Schema, wanted: Json) -> Acceptance:
    return lambda value: False


def _accept_type(document: dict[str, Json], schema: Schema, wanted: Json) -> Acceptance:
    types = {one for name in ([wanted] if isinstance(wanted, str) else wanted) for one in PYTHON_TYPES[name]}
    return lambda value: type(value) in types


def _accept_members(document: dict[str, Json], schema: Schema, wanted: Json) -> Acceptance:
    accepts = {name: acceptance(document, member) for name, member in wanted.items()}
    return lambda value: (
        not isinstance(value, dict)
        or all(accepts[name](member) for name, member in value.items() if name in accepts)
    )


def _accept_other_members(document: dict[str, Json], schema: Schema, wanted: Json) -> Acceptance:
    if not isinstance(wanted, dict) or "properties" in schema:
        return _accept_nothing(document, schema, wanted)
    accepts = acceptance(document, wanted)
    return lambda value: not isinstance(value, dict) or all(map(accepts, value.values()))


def _accept_names(document: dict[str, Json], schema: Schema, wanted: Json) -> Acceptance:
    accepts = acceptance(document, wanted)
    return lambda value: not isinstance(value, dict) or all(map(accepts, value))


def _accept_items(document: dict[str, Json], schema: Schema, wanted: Json) -> Acceptance:
    accepts = acceptance(document, wanted)
    return lambda value: not isinstance(value, list) or all(map(accepts, value))


def _accept_pattern(document: dict[str, Json], schema: Schema, wanted: Json) -> Acceptance:
    search = re.compile(wanted).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _accept_where(
    types: type | tuple[type, ...], holds: Callable[[Any, Any], bool]
) -> Callable[[dict[str, Json], Schema, Json], Acceptance]:
    """The check of a keyword that concerns values of some types alone."""
    return lambda document, schema, wanted: lambda value: not isinstance(value, types) or holds(value, wanted)


KEYWORD_CHECKS: dict[str, Callable[[dict[str, Json], Schema, Any], Acceptance]] = {
    "$ref": lambda document, schema, wanted: acceptance(document, resolve(document, {"$ref": wanted})),
    "type": _accept_type,
    "properties": _accept_members,
    "additionalProperties": _accept_other_members,
    "propertyNames": _accept_names,
    "items": _accept_items,
    "pattern": _accept_pattern,
    "enum": lambda document, schema, wanted: lambda value: isinstance(value, str) and value in wanted,
    "minimum": _accept_where((int, float), lambda value, wanted: value >= wanted),
    "maximum": _accept_where((int, float), lambda value, wanted: value <= wanted),
    "minLength": _accept_where(str, lambda value, wanted: len(value) >= wanted),
    "maxLength": _accept_where(str, lambda value, wanted: len(value) <= wanted),
    "required": _accept_where(dict, lambda value, wanted: all(map(value.__contains__, wanted))),
}


# ---- Completion: every key present, in the contract's order ----

Completion = Callable[[Json], Json]


def completion(document: dict[str, Json], schema: Schema) -> Completion:
    """A function that gives a value of the contract's `schema` its defaults.

    A key with a default gets it when it is absent or null. The schema's keys come first, in its order.
    """
    schema = resolve(document, schema)
    if "properties" in schema:
        return _completed_object(document, schema["properties"])
    if "items" in schema:
        complete = completion(document, schema["items"])
        return lambda values: [complete(value) for value in values]
    if isinstance(schema.get("additionalProperties"), dict):
        complete = completion(document, schema["additionalProperties"])
        return lambda values: {key: complete(value) for key, value in values.items()}
    return lambda value: value


def _completed_object(document: dict[str, Json], members: dict[str, Schema]) -> Completion:
    defaults = {key: schema["default"] for key, schema in members.items() if "default" in schema}
    completions = {key: completion(document, schema) for key, schema in members.items()}

    def complete(value: dict[str, Json]) -> dict[str, Json]:
        completed = {}
        for key, complete_member in completions.items():
            part = value.get(key)
            if part is None and key in defaults:
                completed[key] = defaults[key]
            elif key in value:
                completed[key] = part if part is None else complete_member(part)
        return completed | {key: part for key, part in value.items() if key not in completed}

    return complete
