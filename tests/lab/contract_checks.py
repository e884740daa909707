"""What the contract declares of responses, as checks, and its examples.

Sections: the contract - declared responses - examples.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator

from lab.services import ROOT, Response

JSON = "application/json"

# ---- The contract ----

CONTRACT: dict[str, Any] = json.loads(
    (ROOT / "reviewslib" / "openapi.json").read_text(encoding="utf-8")
)
# The operations that read, by path.
READ_OPERATIONS: dict[str, Any] = {
    path: methods["get"]
    for path, methods in CONTRACT["paths"].items()
    if "get" in methods
}


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """The validator of a schema that may refer to components of the contract."""
    return Draft202012Validator(schema | {"components": CONTRACT["components"]})


def resolved(value: Any) -> Any:
    """`value`, or the component that it refers to."""
    if "$ref" not in value:
        return value
    _, _, kind, name = value["$ref"].split("/")
    return CONTRACT["components"][kind][name]


# ---- Declared responses ----

# Fields of HTTP itself, which no contract declares.
OF_THE_SERVER = {"server", "date", "connection", "content-length", "content-type"}
# Fields that the contract says once, in its introduction, with what they may hold.
SAID_ONCE = {
    "cache-control": r"public, max-age=60|no-store",
    "vary": r"Accept-Encoding|Accept, Accept-Encoding|Origin",
    "content-encoding": r"gzip",
    "access-control-allow-origin": r"\*|http://\S+",
    "access-control-expose-headers": r"ETag, .*|Mcp-Session-Id, .*",
    "x-content-type-options": r"nosniff",
    "content-security-policy": r"default-src 'none'; .*",
    "cross-origin-opener-policy": r"same-origin",
    "cross-origin-resource-policy": r"cross-origin",
    "cross-origin-embedder-policy": r"require-corp",
    "referrer-policy": r"strict-origin-when-cross-origin",
}


def declared_response(operation: dict[str, Any], status: int) -> Any:
    """What an operation declares of the responses of a status."""
    responses = operation["responses"]
    if str(status) in responses:
        return resolved(responses[str(status)])
    return resolved(responses["default"])


def declared_headers(declared: Any) -> dict[str, Any]:
    """The headers of a declared response, by lower-case name."""
    return {
        name.lower(): resolved(header)
        for name, header in declared.get("headers", {}).items()
    }


def check_headers(declared: Any, answer: Response) -> None:
    """Every header is declared and as declared, and every required one is there."""
    headers = declared_headers(declared)
    required = {name for name, header in headers.items() if header.get("required")}
    assert required <= answer.headers.keys()
    for name in answer.headers.keys() - OF_THE_SERVER:
        value = answer.headers[name]
        if name in headers:
            validator(headers[name]["schema"]).validate(value)
        else:
            assert re.fullmatch(SAID_ONCE[name], value), name


def check_body(declared: Any, answer: Response) -> None:
    """The media type is declared, and a body of JSON follows its schema."""
    kind = answer.headers.get("content-type")
    if kind is None:
        return
    schema = declared["content"][kind]["schema"]
    is_packed = "content-encoding" in answer.headers
    if kind == JSON and answer.body and not is_packed:
        validator(schema).validate(json.loads(answer.body))


# ---- Examples ----


@dataclass(frozen=True)
class Example:
    """An example of what a GET of a path answers."""

    media_type: str
    # With what stands for the parts of the path that vary.
    path: str
    value: Any


def _examples() -> Iterator[tuple[str, Example]]:
    for template, operation in READ_OPERATIONS.items():
        content = declared_response(operation, 200)["content"]
        for media_type, body in content.items():
            for example in body.get("examples", {}).values():
                yield (
                    template,
                    Example(media_type, example["summary"], example["value"]),
                )


EXAMPLES = dict(_examples())


def local(value: Any, base_url: str) -> Any:
    """An example of the contract as a service at this URL would give it."""
    public = CONTRACT["servers"][0]["url"]
    text = json.dumps(value).replace(public, base_url)
    # The feeds' ids of entries (RFC 4151).
    public_tag = f"tag:{urlsplit(public).hostname}"
    local_tag = f"tag:{urlsplit(base_url).hostname}"
    return json.loads(text.replace(public_tag, local_tag))


def is_part(part: Any, whole: Any) -> bool:
    """Whether `whole` is `part` with more members and items.

    `…` in a text of `part` stands for any further text.
    """
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        return all(is_part_of_one(member, whole) for member in part)
    if isinstance(part, str) and isinstance(whole, str) and "…" in part:
        return is_shortened(part, whole)
    return bool(part == whole)


def is_part_of_one(part: Any, wholes: list[Any]) -> bool:
    return any(is_part(part, whole) for whole in wholes)


def is_shortened(text: str, whole: str) -> bool:
    """Whether `whole` is `text` with any text in place of each `…`."""
    pattern = ".*?".join(map(re.escape, text.split("…")))
    return re.match(pattern, whole, re.DOTALL) is not None
