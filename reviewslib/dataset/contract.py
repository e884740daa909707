"""The contract: parameters of `openapi.json`, schemas of data files in `files.json`.

Both are written by hand. `openapi.json` is served, and is the only source of the search
parameters. `files.json` is the only source of the schemas and defaults of the data
files. This module knows JSON and schemas. It knows no review and no HTTP, and opens
only these two files; callers read the data files.

Sections: contract - file schemas - completion - reasons - formats -
acceptance.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from reviewslib.dataset.strict_json import Json, decode
from reviewslib.faults import JsonPath

Schema = dict[str, Any]  # JSON Schema 2020-12; none of ours is `true` or `false`
Violations = Iterator[tuple[JsonPath, str]]  # the place of a violation, and the reason


# ---- Contract: the parts of it that the program uses ----


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request.

    `kind` is "text", "name" (of a person), "choice", "date", "number", "integer" or
    "boolean".
    """

    name: str
    kind: str
    description: str
    default: int | str | None = None
    minimum: float = -math.inf
    maximum: float = math.inf
    required: bool = False
    choices: tuple[str, ...] = ()  # of the kind "choice"


@dataclass(frozen=True, slots=True)
class Contract:
    """The contract, and the parts of it that the program uses."""

    document: dict[str, Json]  # of openapi.json
    schemas: dict[str, Json]  # of served data in `components`, of files in `$defs`
    search_parameters: Mapping[str, Parameter]  # by name, in the order of the document
    # In the same form: of a search's feed, of the page `/reviews`, of the frame.
    feed_parameters: Mapping[str, Parameter]
    list_parameters: Mapping[str, Parameter]
    embed_parameters: Mapping[str, Parameter]
    reviews_file: FileSchema
    insights_file: FileSchema
    editorial_file: FileSchema
    annotations_file: FileSchema


def shipped_contract() -> Contract:
    """The contract of this program."""
    package = resources.files("reviewslib")
    document = decode((package / "openapi.json").read_bytes())
    files = decode((package / "files.json").read_bytes())
    return read_contract(document, files)


def read_contract(document: dict[str, Json], files: dict[str, Json]) -> Contract:
    """The contract of parsed openapi.json and files.json.

    Raises KeyError if the installation is broken.
    """
    # References in files.json to openapi.json begin with this `$id`, so one document
    # resolves both kinds.
    schemas = {
        "$id": "openapi.json",
        "components": document["components"],
        "$defs": files["$defs"],
    }
    return Contract(
        document=document,
        schemas=schemas,
        search_parameters=_query_parameters(document, "/api/reviews/search"),
        feed_parameters=_query_parameters(document, "/api/reviews/search.xml"),
        list_parameters=_query_parameters(document, "/reviews"),
        embed_parameters=_query_parameters(document, "/embed"),
        reviews_file=FileSchema(schemas, "ReviewsFile"),
        insights_file=FileSchema(schemas, "InsightsFile"),
        editorial_file=FileSchema(schemas, "EditorialFile"),
        annotations_file=FileSchema(schemas, "AnnotationsFile"),
    )


def _query_parameters(document: dict[str, Json], path: str) -> dict[str, Parameter]:
    parameters = {}
    for item in document["paths"][path]["get"]["parameters"]:
        declared = resolve(document, item)
        if declared["in"] == "query":
            parameters[declared["name"]] = _parameter(declared)
    return parameters


def resolve(document: dict[str, Json], value: dict[str, Json]) -> dict[str, Json]:
    """`value`, or the part of `document` that its `$ref` points to.

    The part before the `#` is ignored. No key in our pointers has a slash or tilde, so
    none is unescaped.
    """
    if "$ref" not in value:
        return value
    target: Json = document
    for step in value["$ref"].partition("#/")[2].split("/"):
        target = target[step]
    return resolve(document, target)


# Keywords that are fields of `Parameter`, too.
LIMITS = ("default", "minimum", "maximum")


def _parameter(declared: dict[str, Json]) -> Parameter:
    schema = declared["schema"]
    limits = {keyword: schema[keyword] for keyword in LIMITS if keyword in schema}
    return Parameter(
        name=declared["name"],
        kind=_kind_of(schema),
        description=declared["description"],
        choices=tuple(schema.get("enum", ())),
        **limits,
    )


def _kind_of(schema: Schema) -> str:
    """The `kind` of a parameter with this schema."""
    if schema["type"] != "string":
        return str(schema["type"])
    if "enum" in schema:
        return "choice"
    # Only names have a pattern.
    if "pattern" in schema:
        return "name"
    return str(schema.get("format", "text"))


# ---- File schemas: how a document violates one, and what it leaves out ----


class FileSchema:
    """The schema `name` of a data file; `schemas` as in Contract."""

    def __init__(self, schemas: dict[str, Json], name: str):
        self._schemas = schemas
        self._schema = schemas | {"$ref": f"#/$defs/{name}"}
        self._accepts = acceptance(schemas, schemas["$defs"][name])
        self._complete = completion(schemas, schemas["$defs"][name])

    def violations(self, value: Json) -> Violations:
        """How `value` violates the schema."""
        if self._accepts(value):
            return
        # The import takes a tenth of a second, and valid files do not need it.
        from jsonschema import Draft202012Validator, FormatChecker

        checker = FormatChecker(())
        for name, holds in FORMATS.items():
            checker.checks(name)(partial(_is_no_text_or, holds))
        validator = Draft202012Validator(self._schema, format_checker=checker)
        violations = (
            (tuple(error.absolute_path), _reason(error))
            for error in validator.iter_errors(value)
        )
        # A string that violates both the pattern and the format of a schema has the
        # same reason twice.
        yield from dict.fromkeys(violations)

    def complete(self, value: Json) -> Json:
        """A copy of `value`, which has no violations, with the defaults of the schema.

        A key that is absent or null gets its default, if it has one. The keys of the
        schema come first, in its order; a null without a default stays among the
        others. Parts that the schema does not describe are shared with `value`.
        """
        if self._complete is None:
            return value
        return self._complete(value)

    def blank(self, key: str) -> dict[str, Json]:
        """The object `key` for an owner to fill in.

        Each of its keys is null or another such object.
        """
        schema = resolve(self._schemas, self._schema)["properties"][key]
        return _blank(self._schemas, schema) or {}


def _is_no_text_or(holds: Callable[[str], bool], value: Json) -> bool:
    """A format says something of strings only."""
    return not isinstance(value, str) or holds(value)


def _blank(schemas: dict[str, Json], schema: Schema) -> dict[str, Json] | None:
    members = resolve(schemas, schema).get("properties")
    if not members:
        return None
    return {key: _blank(schemas, member) for key, member in members.items()}


# ---- Completion: defaults for what a document leaves out ----

Completion = Callable[[Json], Json]


def completion(document: dict[str, Json], schema: Schema) -> Completion | None:
    """The function that completes valid values of `schema`.

    None if no part of them has a default.
    """
    schema = resolve(document, schema)
    members = [
        _Member(key, part, completion(document, part))
        for key, part in schema.get("properties", {}).items()
    ]
    # What a list has for each item, an object has for each key that has no name.
    other = schema.get("items", schema.get("additionalProperties"))
    complete_other = None if other is None else completion(document, other)
    if not members and complete_other is None:
        return None

    def complete(value: Json) -> Json:
        if isinstance(value, list):
            return list(map(complete_other, value)) if complete_other else value
        named = _named_members(members, value)
        rest = value
        if complete_other:
            rest = {key: complete_other(member) for key, member in value.items()}
        # The keys of the schema come first and win.
        return named | rest | named

    return complete


class _Member(NamedTuple):
    """A key that a schema names, its schema, and how its value is completed."""

    key: str
    part: Schema
    complete: Completion | None


def _named_members(
    members: Iterable[_Member], value: Mapping[str, Json]
) -> dict[str, Json]:
    """The completed values of the keys that a schema names."""
    named = {}
    for key, part, complete in members:
        member = value.get(key)
        if member is not None:
            named[key] = complete(member) if complete else member
        elif "default" in part:
            named[key] = part["default"]
    return named


# ---- Reasons: what messages say of a violation ----

# By JSON Schema type: its name in messages, and the Python types whose values are
# always of that type.
TYPES: dict[str, tuple[str, set[type]]] = {
    "array": ("an array", {list}),
    "boolean": ("true or false", {bool}),
    "integer": ("a whole number", {int}),  # 5.0 is one, too; jsonschema accepts it
    "null": ("null", {type(None)}),
    "number": ("a number", {int, float}),
    "object": ("an object", {dict}),
    "string": ("a string", {str}),
}

# Characters of a value in a message: with path and reason, two lines of a terminal.
MAX_QUOTED = 80
# By the keyword that is violated.
REASONS = {
    "type": "{value} is not {expected}",
    "pattern": "{value} is not {error.schema[title]}",
    "minimum": "{value} is less than the minimum of {expected}",
    "maximum": "{value} is greater than the maximum of {expected}",
    # Of texts that must not be empty.
    "minLength": "{value} is empty",
    "maxLength": "{value} is longer than {expected} characters",
    "enum": "{value} is none of {expected}",
    "required": "{error.message}",
    "format": "{value} is not {error.schema[title]}",
}


def _reason(error: Any) -> str:
    """How a value violates a schema; `quoted` shortens the value."""
    expected: Json = error.validator_value
    if error.validator == "type":
        expected = " or ".join(TYPES[name][0] for name in _type_names(expected))
    return REASONS[error.validator].format(
        value=quoted(error.instance), expected=expected, error=error
    )


def _type_names(value: str | list[str]) -> list[str]:
    """The types that the keyword `type` allows; `value` is its value."""
    if isinstance(value, str):
        return [value]
    return value


def quoted(value: Json) -> str:
    """A value for a message: cut if long; of an array or object only the type."""
    if isinstance(value, dict):
        return TYPES["object"][0]
    if isinstance(value, list):
        return TYPES["array"][0]
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_QUOTED:
        return text
    return text[:MAX_QUOTED] + "…"


# ---- Formats: what the pattern of a string cannot check ----

WEB_URL = re.compile(
    r"https?://[^\s/?#\x00-\x1f\x7f-\x9f]+([/?#][^\s\x00-\x1f\x7f-\x9f]*)?",
    re.IGNORECASE,
)


# Nearly every URL: parsing would find nothing wrong with it, but takes three times as
# long.
ORDINARY_URL = re.compile("https?://[A-Za-z0-9][A-Za-z0-9.-]*(/[!-~]*)?")


def is_web_url(text: str) -> bool:
    """Whether `text` is an absolute http or https URL with a host."""
    if ORDINARY_URL.fullmatch(text):
        return True
    # ValueError: brackets without an IPv6 address, a host that NFKC changes.
    with suppress(ValueError):
        return bool(WEB_URL.fullmatch(text) and urlsplit(text).hostname)
    return False


def begins_with_a_day(text: str) -> bool:
    """Whether `text` begins with a day that exists; a pattern checks its form."""
    with suppress(ValueError):
        return bool(date.fromisoformat(text[:10]))
    return False


FORMATS: dict[str, Callable[[str], bool]] = {
    "timestamp": begins_with_a_day,
    "web-url": is_web_url,
}


# ---- Acceptance: a fast check of valid values ----

# Of 10,000 reviews it takes 0.08 s, jsonschema 1.9 s.

# Its result is true if the value is valid.
Check = Callable[[Any], Any]
# Keywords that say nothing of what is valid.
ANNOTATIONS = {"default", "description", "examples", "title"}


def acceptance(document: dict[str, Json], schema: Schema) -> Check:
    """A fast check of values of `schema`.

    True means that a value is valid, False that jsonschema must decide. The check of a
    schema with a keyword that is not in CHECKS is always False. Here
    `additionalProperties` applies to the properties that `properties` names, too.
    """
    if schema.keys() - ANNOTATIONS == {"$ref"}:
        return _reference(document, schema["$ref"])
    keywords = schema.keys() - ANNOTATIONS - {"type"}
    if not keywords <= CHECKS.keys():
        return _never
    checks: dict[type, list[Check]] = {}
    for name in _type_names(schema.get("type", list(TYPES))):
        checks |= {python_type: [] for python_type in TYPES[name][1]}
    for keyword in keywords:
        types, make = CHECKS[keyword]
        check = make(document, schema[keyword])
        for python_type in types & checks.keys():
            checks[python_type].append(check)

    def accepts(value: Json) -> bool:
        for check in checks.get(type(value), NEVER):
            if not check(value):
                return False
        return True

    return accepts


def _never(value: Json) -> bool:
    return False


# For values of types that a schema does not allow.
NEVER: list[Check] = [_never]


def _reference(document: dict[str, Json], reference: str) -> Check:
    return acceptance(document, resolve(document, {"$ref": reference}))


def _properties(document: dict[str, Json], schemas: dict[str, Schema]) -> Check:
    checks = {name: acceptance(document, schema) for name, schema in schemas.items()}

    def accepts(value: Mapping[str, Json]) -> bool:
        for name, check in checks.items():
            if name in value and not check(value[name]):
                return False
        return True

    return accepts


def _every(document: dict[str, Json], schema: Schema) -> Check:
    accepts = acceptance(document, schema)
    return lambda value: all(map(accepts, value))


def _every_value(document: dict[str, Json], schema: Schema) -> Check:
    accepts = acceptance(document, schema)
    return lambda value: all(map(accepts, value.values()))


def _one_of(document: dict[str, Json], allowed: Sequence[str | None]) -> Check:
    # In JSON true is not 1, which compares equal here: other types are left to
    # jsonschema.
    return lambda value: isinstance(value, str | None) and value in allowed


ALL_TYPES = set[type]().union(*(types for _, types in TYPES.values()))
# By keyword: the types of the values that it applies to; a function that makes the
# check from the document and the value of the keyword.
CHECKS: dict[str, tuple[set[type], Callable[[dict[str, Json], Any], Check]]] = {
    "$ref": (ALL_TYPES, _reference),
    "enum": (ALL_TYPES, _one_of),
    "minimum": ({int, float}, lambda _, least: lambda value: value >= least),
    "maximum": ({int, float}, lambda _, greatest: lambda value: value <= greatest),
    "minLength": ({str}, lambda _, least: lambda value: len(value) >= least),
    "maxLength": ({str}, lambda _, greatest: lambda value: len(value) <= greatest),
    "pattern": ({str}, lambda _, pattern: re.compile(pattern).search),
    "format": ({str}, lambda _, name: FORMATS[name]),
    "items": ({list}, _every),
    "required": ({dict}, lambda _, names: lambda value: value.keys() >= set(names)),
    "properties": ({dict}, _properties),
    "propertyNames": ({dict}, _every),
    "additionalProperties": ({dict}, _every_value),
}
