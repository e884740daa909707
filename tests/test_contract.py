"""The contract is a valid, complete document, and what the program takes from it is what it says.

The document - Parameters - Form - Acceptance - Completion
"""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

import reviewsd
from contract import Contract, FileForm, acceptance, read_contract, resolve
from query import Query
from reviews import FILTERS

CONTRACT: Contract = reviewsd.load_contract()[0]
DOCUMENT = CONTRACT.document


# ---- The document ----


def test_it_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    validate(DOCUMENT)


def media_types(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every media type object of the document that has a schema, with its place."""
    if isinstance(value, dict):
        for key, member in value.items():
            if key in ("example", "examples", "schemas"):  # data and fields may have members of that name
                continue
            if key == "content":
                yield from ((f"{path}/content/{name}", media) for name, media in member.items())
            yield from media_types(member, f"{path}/{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from media_types(member, f"{path}/{index}")


def examples(media: dict[str, Any]) -> list[Any]:
    named = [resolve(DOCUMENT, example)["value"] for example in media.get("examples", {}).values()]
    return named + ([media["example"]] if "example" in media else [])


MEDIA_TYPES = dict(media_types(DOCUMENT))


def test_there_are_bodies_to_look_at() -> None:
    assert len(MEDIA_TYPES) > 10


@pytest.mark.parametrize("place", MEDIA_TYPES)
def test_every_body_has_examples_and_they_validate(place: str) -> None:
    media = MEDIA_TYPES[place]
    schema = media["schema"] | {"components": DOCUMENT["components"]}
    assert examples(media)
    for example in examples(media):
        Draft202012Validator(schema).validate(example)


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_every_schema_and_every_field_is_described(name: str) -> None:
    schema = DOCUMENT["components"]["schemas"][name]
    assert schema["description"]
    shared = [part["$ref"].rsplit("/", 1)[1] for part in schema.get("allOf", []) if "$ref" in part]
    described = {
        key for base in shared for key in DOCUMENT["components"]["schemas"][base].get("properties", {})
    }
    for key, member in schema.get("properties", {}).items():
        assert member.get("description") or key in described or "$ref" in member, key


def test_every_path_of_the_contract_is_a_route_and_every_route_of_data_is_in_it() -> None:
    documented = {path.replace("{date}", "") for path in DOCUMENT["paths"]}
    outside = {reviewsd.HEALTH_PATH, reviewsd.MCP_PATH + "/"}
    assert documented == set(reviewsd.ROUTES) - outside


# ---- Parameters ----


def test_the_parameters_are_the_fields_of_a_query_in_their_order() -> None:
    declared = list(CONTRACT.search_parameters)
    assert declared == [field.name for field in fields(Query)]
    assert set(declared) == set(FILTERS) | {"query", "limit", "offset"}


def test_a_query_without_parameters_has_the_defaults_of_the_contract() -> None:
    defaults = {name: parameter.default for name, parameter in CONTRACT.search_parameters.items()}
    assert {name: getattr(Query(), name) for name in defaults} == defaults


def test_empty_values_are_allowed_for_every_parameter() -> None:
    operation = DOCUMENT["paths"]["/api/reviews/search"]["get"]
    assert all(resolve(DOCUMENT, parameter)["allowEmptyValue"] for parameter in operation["parameters"])


def test_bounds_and_kinds_come_from_the_document() -> None:
    changed = json.loads(json.dumps(DOCUMENT))
    changed["components"]["parameters"]["limit"]["schema"] |= {"maximum": 7, "default": 3}
    limit = read_contract(changed).search_parameters["limit"]
    assert (limit.kind, limit.minimum, limit.maximum, limit.default) == ("integer", 1, 7, 3)


# ---- Form: the validator made ready complains as the library does ----

WRONG_FILES: list[Any] = [
    None,
    [],
    {},
    {"business": {}, "reviews": {}},
    {"business": {"name": ""}, "reviews": [1, None, {}, {"id": "", "author": 5, "rating": "5", "date": 3}]},
    {"business": {"name": "x", "hours": [{}]}, "reviews": [{"id": "a" * 201, "owner_reply": {}}]},
    {
        "business": {"name": "x", "url": "ftp://x"},
        "reviews": [{"rating": 0, "verified": 1, "source_url": "x"}],
    },
]


@pytest.mark.parametrize("name", ["ReviewsFile", "InsightsFile"])
@pytest.mark.parametrize("document", [*WRONG_FILES, {"aspects": [{}], "per_review": {"a": {"score": 3}}}])
def test_complaints_stand_where_the_library_puts_them(name: str, document: Any) -> None:
    whole = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    expected = sorted(
        str(list(error.absolute_path)) for error in Draft202012Validator(whole).iter_errors(document)
    )
    assert sorted(str(list(path)) for path, _ in FileForm(DOCUMENT, name).complaints(document)) == expected


# ---- Acceptance ----


@pytest.mark.parametrize(
    "schema", [{"const": 5}, {"type": "integer", "format": "x"}, {"properties": {"a": {"not": {}}}}]
)
def test_what_a_keyword_unknown_to_us_speaks_of_is_left_to_the_library(schema: dict[str, Any]) -> None:
    assert not acceptance(DOCUMENT, schema)({"a": 5})
    assert not acceptance(DOCUMENT, {"items": schema})([{"a": 5}])


@pytest.mark.parametrize("value", [None, True, 1, 5.0, 6, 1.5, "", "ab", "abc", [], ["ab"], {}, {"a": "ab"}])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["integer", "null"], "minimum": 1, "maximum": 5},
        {"type": "string", "minLength": 1, "maxLength": 2, "pattern": "^a"},
        {"type": "array", "items": {"enum": ["ab", 1]}},
        {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"maxLength": 1}},
        {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
        {"minimum": 2, "enum": ["abc"]},
        {},
    ],
)
def test_what_is_accepted_has_no_complaint_of_the_library(schema: dict[str, Any], value: Any) -> None:
    assert not acceptance(DOCUMENT, schema)(value) or Draft202012Validator(schema).is_valid(value)


# ---- Completion ----


def test_an_empty_insights_file_becomes_insights_that_say_nothing() -> None:
    nothing = CONTRACT.insights_file.complete({})
    schema = {"$ref": "#/components/schemas/InsightsDocument", "components": DOCUMENT["components"]}
    Draft202012Validator(schema).validate(nothing)
    assert nothing["review_count"] == 0
    assert nothing["entities"] == {"technicians": [], "services": [], "problems": [], "service_areas": []}


def test_given_values_and_unknown_keys_stay_and_nulls_become_defaults() -> None:
    given = {
        "version": None,
        "temporal": {"trend": "improving", "own": None},
        "aspects": [{"id": "a", "label": "A"}],
    }
    completed = CONTRACT.insights_file.complete(given)
    assert completed["version"] == 1
    assert completed["temporal"] == {"monthly": [], "trend": "improving", "own": None}
    assert completed["aspects"][0]["top_phrases"] == []


def test_completion_changes_nothing_that_it_was_given() -> None:
    given = {"aspects": [{"id": "a", "label": "A"}]}
    CONTRACT.insights_file.complete(given)
    assert given == {"aspects": [{"id": "a", "label": "A"}]}
