"""The contract: the parameters of `openapi.json`, and the schemas of data files in `files.json`.

Both are written by hand. `openapi.json` is served, and is the only source of the search parameters.
`files.json` is the only source of the schemas and defaults of the data files. This module knows JSON and
schemas. It knows no review and no HTTP, and opens only these two files; callers read the data files.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from reviewslib.dataset.strict_json import Json, JsonPath, decode

Schema = dict[str, Any]  # JSON Schema 2020-12; none of ours is `true` or `false`
Violations = Iterator[tuple[JsonPath, str]]  # the place of a violation, and the reason


# ---- Faults: what is wrong with a data file ----


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in a data file: the file, the path in it, and the reason."""

    file: str
    path: JsonPath
    reason: str

    def __str__(self) -> str:
        pointer = "".join(
            "/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path
        )
        line = (
            f"{self.file} {pointer}: {self.reason}"
            if pointer
            else f"{self.file}: {self.reason}"
        )
        return printable(line)


def printable(line: str) -> str:
    """`line` with line ends, control characters and half surrogate pairs escaped."""
    return "".join(
        char if char.isprintable() else f"\\u{ord(char):04x}" for char in line
    )


class BadData(ValueError):
    """The data files cannot be served; `faults` has the reasons, in the order of the documents."""

    def __init__(self, faults: Sequence[Fault]):
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, limit: int = 50) -> list[str]:
        """One line for each fault, at most `limit`, then one line with the number of the others."""
        rest = len(self.faults) - limit
        shown = [str(fault) for fault in self.faults[:limit]]
        return (
            [*shown, f"and {rest} more fault{'s' if rest > 1 else ''}"]
            if rest > 0
            else shown
        )


# ---- Contract: the parts of it that the program uses ----


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request; `kind` is "text", "name" (of a person), "date", "number" or "integer"."""

    name: str
    kind: str
    description: str
    default: int | str | None = None
    minimum: float = -math.inf
    maximum: float = math.inf
    required: bool = False


@dataclass(frozen=True, slots=True)
class Contract:
    """The contract, and the parts of it that the program uses."""

    document: dict[str, Json]  # of openapi.json
    schemas: dict[str, Json]  # of served data in `components`, of files in `$defs`
    search_parameters: Mapping[str, Parameter]  # by name, in the order of the document
    list_parameters: Mapping[str, Parameter]  # of the page `/reviews`, in the same form
    embed_parameters: Mapping[str, Parameter]  # of the frame `/embed`, in the same form
    reviews_file: FileSchema
    insights_file: FileSchema
    editorial_file: FileSchema
    annotations_file: FileSchema


FILE_SCHEMAS = ("ReviewsFile", "InsightsFile", "EditorialFile", "AnnotationsFile")


def shipped_contract() -> Contract:
    """The contract of this program."""
    package = resources.files("reviewslib")
    return read_contract(
        *(
            decode((package / name).read_bytes())
            for name in ("openapi.json", "files.json")
        )
    )


def read_contract(document: dict[str, Json], files: dict[str, Json]) -> Contract:
    """The contract of parsed openapi.json and files.json. Raises KeyError if the installation is broken."""
    search, listed = (
        _query_parameters(document, path)
        for path in ("/api/reviews/search", "/reviews")
    )
    # References in files.json to openapi.json begin with this `$id`; one document resolves both kinds.
    schemas = {
        "$id": "openapi.json",
        "components": document["components"],
        "$defs": files["$defs"],
    }
    file_schemas = [FileSchema(schemas, name) for name in FILE_SCHEMAS]
    embed = _query_parameters(document, "/embed")
    return Contract(document, schemas, search, listed, embed, *file_schemas)


def _query_parameters(document: dict[str, Json], path: str) -> dict[str, Parameter]:
    declared = [
        resolve(document, item) for item in document["paths"][path]["get"]["parameters"]
    ]
    return {
        item["name"]: _parameter(item) for item in declared if item["in"] == "query"
    }


def resolve(document: dict[str, Json], value: dict[str, Json]) -> dict[str, Json]:
    """`value`, or the part of `document` that its `$ref` points to.

    The part before the `#` is ignored. No key in our pointers has a slash or tilde, so none is unescaped.
    """
    if "$ref" not in value:
        return value
    target: Json = document
    for step in value["$ref"].partition("#/")[2].split("/"):
        target = target[step]
    return resolve(document, target)


LIMITS = (
    "default",
    "minimum",
    "maximum",
)  # keywords that are fields of `Parameter`, too


def _parameter(declared: dict[str, Json]) -> Parameter:
    schema = declared["schema"]
    text_kind = "name" if "pattern" in schema else "text"  # only names have a pattern
    kind = (
        schema.get("format", text_kind)
        if schema["type"] == "string"
        else schema["type"]
    )
    limits = {keyword: schema[keyword] for keyword in LIMITS if keyword in schema}
    return Parameter(declared["name"], kind, declared["description"], **limits)


# ---- File schemas: how a document violates a schema, and defaults for what it leaves out ----


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
            checker.checks(name)(
                lambda value, holds=holds: not isinstance(value, str) or holds(value)
            )
        errors = Draft202012Validator(self._schema, format_checker=checker).iter_errors(
            value
        )
        # A string that violates the pattern and the format of a schema has the same reason twice.
        yield from dict.fromkeys(
            (tuple(error.absolute_path), _reason(error)) for error in errors
        )

    def complete(self, value: Json) -> Json:
        """A copy of `value`, which has no violations, with the defaults of the schema.

        A key that is absent or null gets its default, if it has one. The keys of the schema come first, in
        its order; a null without a default stays among the others. Parts that the schema does not describe
        are shared with `value`.
        """
        return self._complete(value) if self._complete else value

    def blank(self, key: str) -> dict[str, Json]:
        """The object `key` for an owner to fill in: each of its keys is null or another such object."""
        return (
            _blank(
                self._schemas, resolve(self._schemas, self._schema)["properties"][key]
            )
            or {}
        )


def _blank(schemas: dict[str, Json], schema: Schema) -> dict[str, Json] | None:
    members = resolve(schemas, schema).get("properties")
    return members and {key: _blank(schemas, member) for key, member in members.items()}


def completion(
    document: dict[str, Json], schema: Schema
) -> Callable[[Json], Json] | None:
    """The function that completes valid values of `schema`; None if no part of them has a default."""
    schema = resolve(document, schema)
    members = [
        (key, part, completion(document, part))
        for key, part in schema.get("properties", {}).items()
    ]
    others = [
        schema[keyword]
        for keyword in ("items", "additionalProperties")
        if keyword in schema
    ]
    complete_other = completion(document, others[0]) if others else None
    if not members and complete_other is None:
        return None

    def complete(value: Json) -> Json:
        if isinstance(value, list):
            return list(map(complete_other, value)) if complete_other else value
        named = {}
        for key, part, complete_member in members:
            if (member := value.get(key)) is not None:
                named[key] = complete_member(member) if complete_member else member
            elif "default" in part:
                named[key] = part["default"]
        rest = (
            {key: complete_other(value[key]) for key in value}
            if complete_other
            else value
        )
        return named | rest | named

    return complete


# By JSON Schema type: its name in messages, and the Python types whose values are always of that type.
TYPES: dict[str, tuple[str, set[type]]] = {
    "array": ("an array", {list}),
    "boolean": ("true or false", {bool}),
    "integer": ("a whole number", {int}),  # 5.0 is one, too; jsonschema accepts it
    "null": ("null", {type(None)}),
    "number": ("a number", {int, float}),
    "object": ("an object", {dict}),
    "string": ("a string", {str}),
}

REASONS = {
    "type": "{value} is not {expected}",
    "pattern": "{value} is not {error.schema[title]}",
    "minimum": "{value} is less than the minimum of {expected}",
    "maximum": "{value} is greater than the maximum of {expected}",
    "minLength": "{value} is shorter than {expected} character(s)",
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
    return [value] if isinstance(value, str) else value


def quoted(value: Json) -> str:
    """A value for a message: a long one is cut, and only the type of an array or object is named."""
    if isinstance(value, (dict, list)):
        return TYPES["object" if isinstance(value, dict) else "array"][0]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:80] + "…"


# ---- Formats: what the pattern of a string cannot check ----

WEB_URL = re.compile(
    r"https?://[^\s/?#\x00-\x1f\x7f-\x9f]+([/?#][^\s\x00-\x1f\x7f-\x9f]*)?",
    re.IGNORECASE,
)


def is_web_url(text: str) -> bool:
    """Whether `text` is an absolute http or https URL with a host."""
    with suppress(
        ValueError
    ):  # brackets without an IPv6 address, a host that normalization (NFKC) changes
        return bool(WEB_URL.fullmatch(text) and urlsplit(text).hostname)
    return False


def begins_with_a_day(text: str) -> bool:
    """Whether the first ten characters of `text` are a day that exists; a pattern checks their form."""
    with suppress(ValueError):
        return bool(date.fromisoformat(text[:10]))
    return False


FORMATS: dict[str, Callable[[str], bool]] = {
    "timestamp": begins_with_a_day,
    "web-url": is_web_url,
}


# ---- Acceptance: a fast check of valid values (of 10,000 reviews: 0.08 s, jsonschema 1.9 s) ----

Check = Callable[[Any], Any]  # its result is true if the value is valid
ANNOTATIONS = {"default", "description", "examples", "title"}


def acceptance(document: dict[str, Json], schema: Schema) -> Check:
    """A fast check: True means that a value is valid for `schema`, False that jsonschema must decide.

    The check of a schema with a keyword that is not in CHECKS is always False. Here `additionalProperties`
    applies to the properties that `properties` names, too.
    """
    keywords = schema.keys() - ANNOTATIONS - {"type"}
    if not keywords <= CHECKS.keys():
        return lambda value: False
    checks = [
        (CHECKS[keyword][0], CHECKS[keyword][1](document, schema[keyword]))
        for keyword in keywords
    ]
    allowed = set[type]().union(
        *(TYPES[name][1] for name in _type_names(schema.get("type", list(TYPES))))
    )
    checks_of = {
        kind: [check for kinds, check in checks if kind in kinds] for kind in allowed
    }

    def accepts(value: Json) -> bool:
        for check in checks_of.get(type(value), NEVER):
            if not check(value):
                return False
        return True

    return accepts


NEVER: list[Check] = [
    lambda value: False
]  # for values of types that a schema does not allow


def _properties(document: dict[str, Json], schemas: dict[str, Schema]) -> Check:
    checks = {name: acceptance(document, schema) for name, schema in schemas.items()}
    return lambda value: all(
        check(value[name]) for name, check in checks.items() if name in value
    )


def _every(document: dict[str, Json], schema: Schema) -> Check:
    accepts = acceptance(document, schema)
    return lambda value: all(map(accepts, value))


def _every_value(document: dict[str, Json], schema: Schema) -> Check:
    accepts = acceptance(document, schema)
    return lambda value: all(map(accepts, value.values()))


ALL_TYPES = set[type]().union(*(types for _, types in TYPES.values()))
# By keyword: the types of the values that it applies to; a function that makes the check.
CHECKS: dict[str, tuple[set[type], Callable[[dict[str, Json], Any], Check]]] = {
    "$ref": (
        ALL_TYPES,
        lambda document, ref: acceptance(document, resolve(document, {"$ref": ref})),
    ),
    "enum": (
        ALL_TYPES,
        lambda _, allowed: (
            lambda value: isinstance(value, str | None) and value in allowed
        ),
    ),
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
