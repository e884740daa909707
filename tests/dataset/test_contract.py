"""The contract is a valid and complete document, and the program uses its values.

Sections: the document - the shape - parameters - faults - form - completion.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from types import NoneType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from lab import small_files as small
from lab.data_sets import sample_dataset
from lab.services import SAMPLE
from lab.small_files import CONTRACT, DOCUMENT, Object
from openapi_spec_validator import validate

from reviewslib import links
from reviewslib.dataset import contract
from reviewslib.dataset.contract import FileSchema, Parameter, resolve
from reviewslib.dataset.filters import FILTERS
from reviewslib.dataset.query import Query, query_from_pairs
from reviewslib.dataset.reviews import NEWEST_REVIEWS
from reviewslib.dataset.searching import MAX_MEANT, search
from reviewslib.dataset.strict_json import members
from reviewslib.dataset.subjects import MAX_PEOPLE
from reviewslib.faults import BadData, Fault
from reviewslib.web import list_page, routes
from reviewslib.websub.callback_urls import MAX_CALLBACK_CHARACTERS
from reviewslib.websub.forms import MAX_SECRET_BYTES
from reviewslib.websub.rows import NOTICE, REQUEST_MODES

SCHEMAS: Object = DOCUMENT["components"]["schemas"]
FILE_SCHEMAS: Object = small.FILE_SCHEMAS["$defs"]

# ---- The document ----


def parts(value: Any) -> Iterator[Object]:
    """Every object of a document except those in examples."""
    if isinstance(value, dict):
        yield value
    for key, member in members(value):
        if key != "examples":
            yield from parts(member)


def references(document: Object) -> set[str]:
    return {part["$ref"] for part in parts(document) if "$ref" in part}


def test_the_contract_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    validate(DOCUMENT)


def test_the_program_ships_the_contract_that_is_served() -> None:
    assert contract.shipped_contract().document == DOCUMENT


def test_the_schemas_of_files_are_valid() -> None:
    Draft202012Validator.check_schema(small.FILE_SCHEMAS)


def components() -> set[str]:
    """References to all components."""
    found = set[str]()
    for kind, named in DOCUMENT["components"].items():
        found |= {f"#/components/{kind}/{name}" for name in named}
    return found


DEFINITIONS = {f"#/$defs/{name}" for name in FILE_SCHEMAS}
OF_WHOLE_FILES = {
    "#/$defs/ReviewsFile",
    "#/$defs/EditorialFile",
    "#/$defs/AnnotationsFile",
}


def references_of_files() -> set[str]:
    found = references(small.FILE_SCHEMAS)
    return {reference.removeprefix("openapi.json") for reference in found}


def test_the_contract_needs_no_other_file_and_uses_all_components() -> None:
    assert references(DOCUMENT) == components()


def test_the_schemas_of_files_need_those_of_the_contract_alone() -> None:
    assert references_of_files() <= components() | DEFINITIONS


def test_every_schema_of_files_is_used_or_that_of_a_whole_file() -> None:
    assert DEFINITIONS - references_of_files() == OF_WHOLE_FILES


@pytest.mark.parametrize("name", sorted(FILE_SCHEMAS.keys() & SCHEMAS.keys()))
def test_every_field_of_a_data_file_is_served(name: str) -> None:
    added = {"page_url"} if name == "Review" else set()
    assert set(FILE_SCHEMAS[name]["properties"]) | added == set(
        SCHEMAS[name]["properties"]
    )


def media_types_with_examples() -> list[Object]:
    described = [part for part in parts(DOCUMENT) if "schema" in part]
    return [part for part in described if "examples" in part]


def test_every_example_is_valid() -> None:
    media_types = media_types_with_examples()

    assert len(media_types) >= 8
    for media in media_types:
        (example,) = media["examples"].values()
        schema = media["schema"] | {"components": DOCUMENT["components"]}
        Draft202012Validator(schema).validate(example["value"])


@pytest.mark.parametrize("name", sorted(SCHEMAS.keys() | FILE_SCHEMAS.keys()))
def test_every_schema_is_described_by_a_sentence(name: str) -> None:
    for schemas in (SCHEMAS, FILE_SCHEMAS):
        if name in schemas:
            assert schemas[name]["description"].endswith(".")


# Routes that callers of the contract have no use for.
UNDOCUMENTED_ROUTES = {
    # For monitoring on the machine itself.
    links.HEALTH_PATH,
    # Crawlers and browsers ask for these by themselves.
    links.SITEMAP_PATH,
    links.ROBOTS_PATH,
    links.ICON_PATH,
    # Assistants look for them where their own specifications say.
    *links.CARD_PATHS,
    # Other spellings of addresses that the contract has.
    links.REVIEW_PATH,
    links.MCP_PATH + "/",
    # The server as a whole, and what is nowhere.
    "*",
    "{path}",
    links.EMBED_PATH + "/{rest}",
}


def test_the_paths_of_the_contract_are_the_routes_of_the_service() -> None:
    assert set(DOCUMENT["paths"]) == set(routes.ROUTES) - UNDOCUMENTED_ROUTES


# ---- The shape: what generators of clients understand ----


def schemas_of(part: Any) -> Iterator[Object]:
    """Every schema of the contract, those inside others included."""
    if not isinstance(part, (dict, list)):
        return
    for key, member in members(part):
        if key in ("schema", "items", "additionalProperties", "propertyNames"):
            yield member
        elif key in ("schemas", "properties"):
            yield from member.values()
        elif key in ("anyOf", "oneOf", "allOf"):
            yield from member
        if key not in ("example", "examples"):
            yield from schemas_of(member)


ALL_SCHEMAS = list(schemas_of(DOCUMENT))


def test_the_schemas_of_the_contract_are_found() -> None:
    assert SCHEMAS["Review"] in ALL_SCHEMAS
    assert SCHEMAS["Review"]["properties"]["verified"] in ALL_SCHEMAS
    assert SCHEMAS["HubRequest"]["properties"]["hub.secret"] in ALL_SCHEMAS


@pytest.mark.parametrize("schema", ALL_SCHEMAS, ids=json.dumps)
def test_generators_of_clients_understand_a_schema(schema: Object) -> None:
    """Each rule is a client that could not be compiled, or that lost a type."""
    if "$ref" in schema:
        assert schema.keys() <= {"$ref", "description"}
        return
    assert schema.keys() & {"type", "anyOf"}
    assert not schema.keys() & {"oneOf", "allOf", "if", "then", "else", "not"}
    values = [*schema.get("enum", []), schema.get("const")]
    assert all(isinstance(value, (str, NoneType)) for value in values)


def operations() -> Iterator[tuple[str, Object]]:
    """The operations of the service and, for subscribers, of their callbacks."""
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            yield path, operation
            for callback in operation.get("callbacks", {}).values():
                for callback_methods in callback.values():
                    yield from ((path, each) for each in callback_methods.values())


OPERATIONS = [
    pytest.param(operation, id=operation["operationId"])
    for _, operation in operations()
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_status_is_a_number_or_the_default(operation: Object) -> None:
    for status in operation["responses"]:
        assert re.fullmatch("[1-5][0-9][0-9]|default", status)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_parameter_has_an_example_that_is_valid(operation: Object) -> None:
    for parameter in operation.get("parameters", []):
        declared = resolve(DOCUMENT, parameter)
        schema = declared["schema"] | {"components": DOCUMENT["components"]}
        Draft202012Validator(schema).validate(declared["example"])


def test_every_field_of_the_form_has_an_example_that_is_valid() -> None:
    for field in SCHEMAS["HubRequest"]["properties"].values():
        (example,) = field["examples"]
        Draft202012Validator(field).validate(example)


def test_the_examples_of_the_search_find_a_review_together() -> None:
    """Tools that let people try a request fill in the examples of all parameters."""
    parameters = DOCUMENT["components"]["parameters"]
    pairs = [(name, str(parameters[name]["example"])) for name in small.PARAMETERS]

    found = search(sample_dataset(), query_from_pairs(small.PARAMETERS, pairs))

    assert len(found.reviews) == 1


@pytest.mark.parametrize(
    ("declared", "keyword", "bound"),
    [
        pytest.param(
            SCHEMAS["HubRequest"]["properties"]["hub.callback"],
            "maxLength",
            MAX_CALLBACK_CHARACTERS,
            id="a callback",
        ),
        # A character has one byte at least.
        pytest.param(
            SCHEMAS["HubRequest"]["properties"]["hub.secret"],
            "maxLength",
            MAX_SECRET_BYTES,
            id="a secret",
        ),
        pytest.param(
            SCHEMAS["JsonFeed"]["properties"]["items"],
            "maxItems",
            NEWEST_REVIEWS,
            id="a feed",
        ),
        pytest.param(
            SCHEMAS["SearchResult"]["properties"]["people"],
            "maxItems",
            MAX_PEOPLE,
            id="the people of a search",
        ),
        pytest.param(
            SCHEMAS["SearchResult"]["properties"]["meant"],
            "maxItems",
            MAX_MEANT,
            id="what a search means",
        ),
    ],
)
def test_a_bound_is_that_of_the_program(
    declared: Object, keyword: str, bound: int
) -> None:
    assert declared[keyword] == bound


def test_a_subscriber_reads_of_all_messages_to_its_callback() -> None:
    callbacks = DOCUMENT["paths"][links.HUB_PATH]["post"]["callbacks"]
    (operations,) = callbacks["verification"].values()
    (mode,) = [
        parameter
        for parameter in operations["get"]["parameters"]
        if parameter["name"] == "hub.mode"
    ]

    assert mode["schema"]["enum"] == [*REQUEST_MODES, NOTICE]


@pytest.mark.parametrize("status", [400, 503, 599])
def test_an_error_of_any_status_is_as_declared(status: int) -> None:
    error = {"type": "about:blank", "title": "x", "status": status, "detail": "x"}

    assert Draft202012Validator(SCHEMAS["Error"]).is_valid(error)


# ---- Parameters ----


def test_the_parameters_are_the_fields_of_a_query_with_its_defaults() -> None:
    declared = {name: parameter.default for name, parameter in small.PARAMETERS.items()}
    assert list(declared.items()) == list(asdict(Query()).items())
    assert set(declared) == {*FILTERS, "limit", "offset"}
    operation = DOCUMENT["paths"]["/api/reviews/search"]["get"]
    declarations = [
        resolve(DOCUMENT, parameter) for parameter in operation["parameters"]
    ]
    assert all(
        parameter["allowEmptyValue"]
        for parameter in declarations
        if parameter["in"] == "query"
    )


def test_the_list_takes_the_filters_of_the_search_and_a_page() -> None:
    filters = {
        name: small.PARAMETERS[name]
        for name in small.PARAMETERS
        if name not in list_page.PAGING
    }
    page = Parameter(
        "page", "integer", CONTRACT.list_parameters["page"].description, 1, 1, 1_000_000
    )
    assert CONTRACT.list_parameters == filters | {"page": page}
    assert CONTRACT.embed_parameters["limit"].maximum == 10


# ---- Faults ----


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        pytest.param(
            Fault("a.json", (), "is bad"), "a.json: is bad", id="the whole file"
        ),
        pytest.param(
            Fault("a.json", ("x", 17, "a/b~c", ""), "is bad"),
            "a.json /x/17/a~1b~0c/: is bad",
            id="a path with slash and tilde",
        ),
        pytest.param(
            Fault("a", ("\n\x1b[2J\ud800",), "\r é\u2028"),
            "a /\\u000a\\u001b[2J\\ud800: \\u000d é\\u2028",
            id="what would move the cursor",
        ),
    ],
)
def test_a_fault_is_one_line_of_file_pointer_and_reason(
    fault: Fault, line: str
) -> None:
    assert str(fault) == line


def test_a_value_is_shown_short_and_on_one_line() -> None:
    values = {
        "an array": [1],
        "an object": {"a": 1},
        "null": None,
        "true": True,
        '"é\\n"': "é\n",
    }
    values |= {f'"{"x" * 78}"': "x" * 78, f'"{"x" * 79}…': "x" * 79}
    assert [contract.quoted(value) for value in values.values()] == list(values)


@pytest.mark.parametrize(
    ("count", "rest"),
    [
        pytest.param(50, [], id="no more"),
        pytest.param(51, ["and 1 more fault"], id="one more"),
        pytest.param(52, ["and 2 more faults"], id="two more"),
    ],
)
def test_fifty_lines_are_shown_and_the_rest_is_counted(
    count: int, rest: list[str]
) -> None:
    lines = [f"a.json /{n}: is bad" for n in range(50)]
    assert str(
        BadData([Fault("a.json", (n,), "is bad") for n in range(count)])
    ) == "\n".join(lines + rest)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://a", id="a host alone"),
        pytest.param("http://a.example/b?c=d#e", id="a path"),
        pytest.param("https://a.example?c=d", id="a query without a path"),
        pytest.param("HTTPS://Reviews.Example/Reviews", id="capitals"),
        pytest.param("https://a.example:8080/", id="a port"),
        pytest.param("https://user@a.example/", id="a user"),
        pytest.param("https://[::1]/", id="an IPv6 address"),
        pytest.param("https://bäcker.example/ä", id="other letters"),
    ],
)
def test_an_address_on_the_web_is_a_web_url(url: str) -> None:
    assert contract.is_web_url(url)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("https://", id="no host"),
        pytest.param("https:///path", id="a path alone"),
        pytest.param("http://@", id="an empty user"),
        pytest.param("https://:80/", id="a port alone"),
        pytest.param("https://[a]/", id="brackets without an IPv6 address"),
        pytest.param("https://a.example\N{ACCOUNT OF}b/", id="a host that has a path"),
        pytest.param("ftp://a.example/", id="another scheme"),
        pytest.param("//a.example/", id="no scheme"),
        pytest.param("https://a.example/b c", id="a space"),
        pytest.param("https://a.example/\n", id="a line break"),
        pytest.param("https://a.example/\x7f", id="a control character"),
        pytest.param(" https://a.example/", id="a space before it"),
    ],
)
def test_another_text_is_no_web_url(text: str) -> None:
    assert not contract.is_web_url(text)


# ---- Form: a file has a fault exactly if the schema library finds one ----

FILES = st.sampled_from([("ReviewsFile", "reviews"), ("InsightsFile", "insights")])


@pytest.mark.slow
@settings(max_examples=300)
@given(small.mutations(), FILES)
def test_a_document_has_violations_exactly_if_the_library_finds_it_invalid(
    files: Object, which: tuple[str, str]
) -> None:
    name, file = which
    document = files.get(file)

    violations = list(FileSchema(CONTRACT.schemas, name).violations(document))

    assert (violations == []) == small.file_validator(name).is_valid(document)


@given(small.mutations(), FILES)
def test_a_violation_of_any_document_is_one_printable_line(
    files: Object, which: tuple[str, str]
) -> None:
    name, file = which
    violations = FileSchema(CONTRACT.schemas, name).violations(files.get(file))

    for path, reason in violations:
        assert small.is_one_printable_line(str(Fault(name, path, reason)))


LOAD = """
import pathlib, sys
from reviewslib import links
from reviewslib.dataset import contract, reviews
reviews.load(
    contract.shipped_contract(),
    pathlib.Path("reviews.json").read_bytes(),
    pathlib.Path("insights.json").read_bytes(),
    links.ServiceUrls(),
)
print("jsonschema" in sys.modules)
"""


def test_valid_files_need_no_schema_library() -> None:
    """Its import takes a tenth of a second, a quarter of the start of the daemon."""
    command = [sys.executable, "-c", LOAD]

    done = subprocess.run(command, cwd=SAMPLE, capture_output=True, text=True)

    assert done.stdout == "False\n", done.stderr


# ---- Completion ----


def test_completion_keeps_values_and_unknown_keys_and_replaces_nulls() -> None:
    given = {
        "own": {"a": [{"b": None}]},
        "temporal": {"own": None, "trend": "improving"},
        "aspects": [{"id": "a", "label": "A"}],
        "per_review": {"a": {"technicians": None, "services": ["s"], "score": 0.5}},
        "version": None,
    }
    before = json.dumps(given)
    completed = CONTRACT.insights_file.complete(given)
    assert (completed["version"], completed["aspects"][0]["top_phrases"]) == (1, [])
    assert list(completed["temporal"].items()) == [
        ("monthly", []),
        ("trend", "improving"),
        ("answered_pct", None),
        ("unanswered_count", None),
        ("lately", None),
        ("own", None),
    ]
    lists = {
        key: []
        for key in ("aspects", "technicians", "services", "problems", "service_areas")
    }
    assert completed["per_review"] == {"a": lists | {"services": ["s"], "score": 0.5}}
    assert list(completed.items())[-1] == ("own", {"a": [{"b": None}]})
    assert json.dumps(given) == before


@pytest.mark.parametrize(
    "unfinished", [{}, {"entities": None}, {"entities": {"services": None}}]
)
def test_a_key_without_a_default_stays_as_it_is(unfinished: Object) -> None:
    assert CONTRACT.editorial_file.complete(unfinished) == unfinished


def test_a_blank_business_has_every_key_and_says_nothing() -> None:
    blank = CONTRACT.reviews_file.blank("business")
    assert blank.keys() == SCHEMAS["Business"]["properties"].keys()
    assert (blank["name"], blank["geo"]) == (
        None,
        {"latitude": None, "longitude": None},
    )
