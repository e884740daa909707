"""The contract: what `openapi.json` says about parameters and files, made ready for use.

The document is written by hand and is the one source of the search parameters, of the form of the data files
and of the defaults of what a file leaves out. This module knows JSON and schemas and nothing of reviews, HTTP
or the world: it gets a parsed document and parsed files.

Sections: Faults - Contract - Form - Acceptance - Completion
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

Json = Any  # a value as json.loads returns it
JsonPath = tuple[str | int, ...]  # keys and indexes from the root; () is the whole document


# ---- Faults: what is wrong with a data file or a query, with the data that its answer needs ----


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
    """A search parameter: `kind` is "text", "date", "number" or "integer", `max_length` counts characters."""

    name: str
    kind: str
    default: int | None
    minimum: float
    maximum: float
    max_length: int


@dataclass(frozen=True, slots=True)
class Contract:
    """What the program takes from the contract."""

    document: dict[str, Json]
    search_parameters: Mapping[str, Parameter]  # by name, in its order
    reviews_file: FileForm
    insights_file: FileForm


def read_contract(document: dict[str, Json]) -> Contract:
    """The contract of a parsed openapi.json; a KeyError here is a broken installation, not bad data."""
    parameters = [_parameter(declared) for declared in search_parameters_declared(document)]
    return Contract(
        document=document,
        search_parameters={parameter.name: parameter for parameter in parameters},
        reviews_file=FileForm(document, "ReviewsFile"),
        insights_file=FileForm(document, "InsightsFile"),
    )


def search_parameters_declared(document: dict[str, Json]) -> list[dict[str, Json]]:
    """The parameter objects of the search, in the contract's order, references resolved."""
    operation = document["paths"]["/api/reviews/search"]["get"]
    declared = [resolve(document, parameter) for parameter in operation["parameters"]]
    return [parameter for parameter in declared if parameter["in"] == "query"]


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
        default=schema.get("default"),
        minimum=schema.get("minimum", -math.inf),
        maximum=schema.get("maximum", math.inf),
        max_length=schema.get("maxLength", 200),
    )


# ---- Form: what a component schema holds against a document ----


class FileForm:
    """The component schema of a data file."""

    def __init__(self, document: dict[str, Json], name: str):
        schemas = {"components": {"schemas": document["components"]["schemas"]}}
        self._validator = _prepared_validator(document)({"$ref": f"#/components/schemas/{name}"} | schemas)
        self._accepts = acceptance(document, document["components"]["schemas"][name])
        self._complete = completion(document, document["components"]["schemas"][name])

    def complaints(self, value: Json) -> Iterator[tuple[JsonPath, str]]:
        """Everything that is wrong with the form of `value`: where, and what."""
        if self._accepts(value):
            return
        for error in self._validator.iter_errors(value):
            yield tuple(error.absolute_path), _reason(error)

    def complete(self, value: Json) -> Json:
        """`value`, which has no complaints, with the defaults of the schema; see `completion`."""
        return self._complete(value) if self._complete else value


def _prepared_validator(document: dict[str, Json]) -> Callable[[dict[str, Json]], Draft202012Validator]:
    """Draft 2020-12 with a validator made once for each subschema.

    The library makes one for each value that it meets, which is three quarters of its time.
    """
    ready: dict[int, Any] = {}
    accepting: dict[int, Acceptance] = {}

    def below(validator: Any, schema: dict[str, Json]) -> Any:
        if id(schema) not in ready:
            ready[id(schema)] = validator.evolve(schema=schema)
        return ready[id(schema)]

    def properties(validator: Any, members: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
        for name, member in members.items() if isinstance(instance, dict) else ():
            if name in instance:
                yield from _below(name, below(validator, member).iter_errors(instance[name]))

    def items(validator: Any, item: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
        accepts = accepting.setdefault(id(item), acceptance(document, item))
        for index, value in enumerate(instance if isinstance(instance, list) else ()):
            if accepts(value):  # of 100,000 reviews a few are wrong: only they are worth the library's time
                continue
            yield from _below(index, below(validator, item).iter_errors(value))

    def reference(validator: Any, pointer: str, instance: Json, schema: Json) -> Iterator[ValidationError]:
        yield from below(validator, resolve(document, {"$ref": pointer})).iter_errors(instance)

    extend: Any = validators.extend  # untyped in the library
    prepared: Callable[[dict[str, Json]], Draft202012Validator] = extend(
        Draft202012Validator, {"properties": properties, "items": items, "$ref": reference}
    )
    return prepared


def _below(step: str | int, errors: Iterator[ValidationError]) -> Iterator[ValidationError]:
    for error in errors:
        error.path.appendleft(step)
        yield error


TYPE_NAMES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
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


REASONS = {
    "minimum": "is less than the minimum of {wanted}",
    "maximum": "is greater than the maximum of {wanted}",
    "minLength": "is shorter than {wanted} character(s)",
    "maxLength": "is longer than {wanted} characters",
    "enum": "is none of {wanted}",
    "const": "is not {wanted}",
}


def shown(value: Json) -> str:
    """A value as a complaint repeats it: long ones cut, nested ones named."""
    if isinstance(value, (dict, list)):
        return TYPE_NAMES["object" if isinstance(value, dict) else "array"]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:80] + "…"


# ---- Acceptance: what has nothing wrong, which is nearly everything, told ten times as fast ----

Acceptance = Callable[[Json], bool]

ANNOTATIONS = ("default", "description", "examples", "title")
TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),  # 5.0 as well, says the standard; the library will
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def acceptance(document: dict[str, Json], schema: dict[str, Json]) -> Acceptance:
    """What returns True for a value that surely fits `schema`; after False the library must decide."""
    checks = [
        _check(document, schema, keyword, wanted)
        for keyword, wanted in schema.items()
        if keyword not in ANNOTATIONS
    ]
    if len(checks) == 1:
        return checks[0]

    def accepts(value: Json) -> bool:
        for check in checks:  # noqa: SIM110 - all() would take twice as long
            if not check(value):
                return False
        return True

    return accepts


def _check(document: dict[str, Json], schema: dict[str, Json], keyword: str, wanted: Json) -> Acceptance:
    """One keyword of a schema; False for every value where the keyword is none that we know."""
    if keyword == "$ref":
        return acceptance(document, resolve(document, {"$ref": wanted}))
    if keyword == "type":
        types = {one for name in ([wanted] if isinstance(wanted, str) else wanted) for one in TYPES[name]}
        return lambda value: type(value) in types
    if keyword == "properties":
        return _check_of_members({name: acceptance(document, member) for name, member in wanted.items()})
    if keyword == "items":
        each = acceptance(document, wanted)
        return lambda value: not isinstance(value, list) or all(map(each, value))
    if keyword == "additionalProperties" and isinstance(wanted, dict) and "properties" not in schema:
        each = acceptance(document, wanted)
        return lambda value: not isinstance(value, dict) or all(map(each, value.values()))
    if keyword == "propertyNames":
        each = acceptance(document, wanted)
        return lambda value: not isinstance(value, dict) or all(map(each, value))
    if keyword == "pattern":
        search = re.compile(wanted).search
        return lambda value: not isinstance(value, str) or search(value) is not None
    return SIMPLE_CHECKS.get(keyword, lambda wanted: lambda value: False)(wanted)


def _check_of_members(members: dict[str, Acceptance]) -> Acceptance:
    def accepts(value: Json) -> bool:
        if isinstance(value, dict):
            for name, accepts_member in members.items():
                if name in value and not accepts_member(value[name]):
                    return False
        return True

    return accepts


SIMPLE_CHECKS: dict[str, Callable[[Any], Acceptance]] = {
    "enum": lambda wanted: lambda value: isinstance(value, str) and value in wanted,
    "minimum": lambda wanted: lambda value: not isinstance(value, (int, float)) or value >= wanted,
    "maximum": lambda wanted: lambda value: not isinstance(value, (int, float)) or value <= wanted,
    "minLength": lambda wanted: lambda value: not isinstance(value, str) or len(value) >= wanted,
    "maxLength": lambda wanted: lambda value: not isinstance(value, str) or len(value) <= wanted,
    "required": lambda wanted: (
        lambda value: not isinstance(value, dict) or all(name in value for name in wanted)
    ),
}


# ---- Completion: every key present, in the contract's order ----

Completion = Callable[[Json], Json]


def completion(document: dict[str, Json], schema: dict[str, Json]) -> Completion | None:
    """What gives a value of the contract's `schema` its defaults; None where the schema has none to give.

    A key with a default gets it when it is absent or null. The schema's keys come first, in its order.
    """
    schema = resolve(document, schema)
    if "properties" in schema:
        return _completion_of_object(document, schema["properties"])
    if "items" in schema:
        return _completion_of_each(completion(document, schema["items"]), list)
    if isinstance(schema.get("additionalProperties"), dict):
        return _completion_of_each(completion(document, schema["additionalProperties"]), dict)
    return None


def _completion_of_each(complete: Completion | None, container: type) -> Completion | None:
    if complete is None:
        return None
    if container is list:
        return lambda values: [complete(value) for value in values]
    return lambda values: {key: complete(value) for key, value in values.items()}


def _completion_of_object(document: dict[str, Json], members: dict[str, Json]) -> Completion | None:
    defaults = {key: schema["default"] for key, schema in members.items() if "default" in schema}
    possible = {key: completion(document, schema) for key, schema in members.items()}
    nested = {key: one for key, one in possible.items() if one is not None}
    if not defaults and not nested:
        return None

    def complete(value: dict[str, Json]) -> dict[str, Json]:
        completed = {}
        for key in members:
            part = value.get(key)
            if part is None and key in defaults:
                completed[key] = defaults[key]
            elif key in value:
                completed[key] = nested[key](part) if part is not None and key in nested else part
        return completed | {key: part for key, part in value.items() if key not in completed}

    return complete
