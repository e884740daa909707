"""What a model reads before it calls a tool is valid for every client, short, and true of these data.

Sections: The list - Schemas - Texts - What is listed for which data
"""

import json
from collections.abc import Iterator

import pytest
from jsonschema import Draft202012Validator
from lab.mcp_sample import (
    ABOUT_INSIGHTS,
    BUSINESS,
    CALLS,
    CONTRACT,
    DECLARED,
    NAMING,
    Object,
    descriptions,
    structured,
    text_of_failure,
    toolbox_with,
)
from lab.small_files import a_file, review

from reviewslib.dataset.contract import resolve
from reviewslib.mcp_tools import TOOLS

every_tool = pytest.mark.parametrize(
    "tool", DECLARED, ids=[tool["name"] for tool in DECLARED]
)

# ---- The list ----


def test_the_sample_has_all_tools_in_the_order_of_the_table() -> None:
    assert [tool["name"] for tool in DECLARED] == list(TOOLS)


def test_every_tool_has_a_call_in_these_tests() -> None:
    assert CALLS.keys() == TOOLS.keys()


LARGEST_LIST_CHARACTERS = 20_900


def test_the_list_of_tools_is_short_enough_for_the_start_of_every_conversation() -> (
    None
):
    listed = json.dumps(DECLARED, ensure_ascii=False, separators=(",", ":"))

    assert len(listed) <= LARGEST_LIST_CHARACTERS


# ---- Schemas ----


def parts_of(schema: Object) -> Iterator[Object]:
    """A schema and all schemas in it."""
    yield schema
    for part in schema.get("properties", {}).values():
        yield from parts_of(part)
    if "items" in schema:
        yield from parts_of(schema["items"])


@every_tool
@pytest.mark.parametrize("key", ["inputSchema", "outputSchema"])
def test_a_schema_is_one_of_json_schema(tool: Object, key: str) -> None:
    Draft202012Validator.check_schema(tool[key])


@every_tool
def test_a_tool_takes_its_own_parameters_alone_and_requires_a_name(
    tool: Object,
) -> None:
    takes = dict(tool["inputSchema"])

    properties = takes.pop("properties")
    # Draft 4 of JSON Schema, which some providers check, has no empty list (5.4.3).
    required = takes.pop("required", None)

    assert takes == {"type": "object", "additionalProperties": False}
    names = [name for key, name in NAMING.items() if key == tool["name"]]
    assert required == (names or None)
    assert set(names) <= properties.keys()


N8N_EXTRAS = {"action", "chatInput", "sessionId", "tool", "toolCallId"}


@every_tool
def test_no_parameter_has_a_name_that_n8n_adds_to_every_call(tool: Object) -> None:
    assert not tool["inputSchema"]["properties"].keys() & N8N_EXTRAS


PARAMETER_KEYWORDS = {
    "type",
    "enum",
    "description",
    "format",
    "minimum",
    "maximum",
    "default",
}
PARAMETERS = [
    pytest.param(schema, id=f"{tool['name']} {name}")
    for tool in DECLARED
    for name, schema in tool["inputSchema"]["properties"].items()
]


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_a_parameter_is_declared_in_keywords_that_every_client_knows(
    parameter: Object,
) -> None:
    assert parameter.keys() <= PARAMETER_KEYWORDS
    assert parameter["type"] in ("string", "number", "integer", "boolean")


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_a_parameter_says_what_it_is_for(parameter: Object) -> None:
    assert len(parameter["description"]) > 10


# Members of results that need not be there.
OPTIONAL = {"hints", "people", "meant", "monthly", "quarterly", "proposed"}


@every_tool
def test_a_result_is_an_object_of_which_all_but_the_optional_members_are_required(
    tool: Object,
) -> None:
    returns = tool["outputSchema"]

    assert returns["type"] == "object"
    assert set(returns["required"]) == returns["properties"].keys() - OPTIONAL


@every_tool
def test_a_result_is_declared_in_keywords_that_every_client_knows(
    tool: Object,
) -> None:
    known = {"type", "properties", "required", "items", "enum"}
    for part in parts_of(tool["outputSchema"]):
        assert part.keys() <= known
        assert ("items" in part) == ("array" in part["type"])
        assert ("properties" in part) == ("object" in part["type"])


def parameter_of_contract(item: Object) -> tuple[str, Object]:
    """The name and the schema that a tool has for a query parameter."""
    schema = dict(item["schema"])
    for keyword in ("examples", "pattern"):
        schema.pop(keyword, None)
    return item["name"], {"description": item["description"], **schema}


def test_search_takes_the_parameters_of_the_contract_in_their_order() -> None:
    # given
    document = CONTRACT.document
    declared = document["paths"]["/api/reviews/search"]["get"]["parameters"]
    items = [resolve(document, item) for item in declared]
    query = [item for item in items if item["in"] == "query"]
    expected = dict(map(parameter_of_contract, query))
    # A model reads fewer reviews at once than a program.
    expected["limit"]["default"] = 15
    # when
    (search,) = [tool for tool in DECLARED if tool["name"] == "search_reviews"]
    # then
    assert list(search["inputSchema"]["properties"].items()) == list(expected.items())


def test_the_output_schema_of_the_trend_lists_its_values() -> None:
    (trend,) = [tool for tool in DECLARED if tool["name"] == "get_sentiment_trend"]

    assert trend["outputSchema"]["properties"]["trend"] == {
        "type": ["string", "null"],
        "enum": ["improving", "stable", "declining", None],
    }


# ---- Texts ----


@every_tool
def test_a_tool_says_that_it_only_reads(tool: Object) -> None:
    assert tool["annotations"] == {
        "title": tool["title"],
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


@every_tool
def test_a_description_names_the_business(tool: Object) -> None:
    assert BUSINESS in tool["description"]


@pytest.mark.parametrize(
    ("policy", "sources", "called"),
    [
        pytest.param(None, [], "The customer reviews of B,", id="nothing known"),
        pytest.param(
            None,
            ["aol", "yelp", "yelp"],
            "The customer reviews of B, published on Yelp and aol,",
            id="sources",
        ),
        pytest.param("!", [], "The verified customer reviews of B,", id="a policy"),
    ],
)
def test_instructions_say_verified_only_with_a_policy_and_name_sources(
    policy: str | None, sources: list[str], called: str
) -> None:
    reviews = [
        review(str(number), source=source) for number, source in enumerate(sources)
    ]
    business = {"name": "B", "review_policy": policy}

    toolbox = toolbox_with(a_file(*reviews, business=business))

    assert toolbox.instructions.startswith(f"{called} and what they say together.")


@pytest.mark.parametrize(
    ("policy", "called"),
    [
        pytest.param(None, "Find customer reviews of B by", id="no policy"),
        pytest.param("!", "Find verified customer reviews of B by", id="a policy"),
    ],
)
def test_the_search_says_verified_only_with_a_policy(
    policy: str | None, called: str
) -> None:
    business = {"name": "B", "review_policy": policy}

    toolbox = toolbox_with(a_file(business=business))

    assert descriptions(toolbox)["search_reviews"].startswith(called)


@pytest.mark.parametrize(
    ("sources", "listed"),
    [
        pytest.param([], "`source` (none yet).", id="none"),
        pytest.param(["aol", "yelp", "yelp"], "`source` (yelp, aol).", id="two"),
    ],
)
def test_the_search_lists_the_sources_as_its_filter_takes_them(
    sources: list[str], listed: str
) -> None:
    reviews = [
        review(str(number), source=source) for number, source in enumerate(sources)
    ]

    toolbox = toolbox_with(a_file(*reviews))

    assert listed in descriptions(toolbox)["search_reviews"]


def test_the_title_names_the_business() -> None:
    assert toolbox_with(a_file(business={"name": "B"})).title == "Reviews of B"


ONE_TOPIC = {
    "topics": [{"id": "a", "label": "Price\nlist"}],
    "per_review": {"a": {"topics": ["a"]}},
}


@pytest.mark.parametrize(
    ("insights", "begin"),
    [
        pytest.param(None, "have no list of subjects: search with `query`", id="none"),
        pytest.param(ONE_TOPIC, "`mentions`, such as Price list.", id="a topic"),
    ],
)
def test_instructions_and_search_say_what_to_ask_first_with_these_data(
    insights: Object | None, begin: str
) -> None:
    toolbox = toolbox_with(a_file(review("a")), insights)

    assert begin in toolbox.instructions
    assert begin in descriptions(toolbox)["search_reviews"]


def test_descriptions_name_three_examples() -> None:
    aspects = [{"id": id, "label": id.upper(), "mention_count": 1} for id in "abcd"]
    toolbox = toolbox_with(a_file(review()), {"aspects": aspects})

    described = descriptions(toolbox)["get_aspect_sentiment"]

    assert ", such as A or B or C: how many" in described


@pytest.mark.parametrize(
    ("file", "is_named"),
    [
        pytest.param(a_file(review()), True, id="a review"),
        pytest.param(a_file(), False, id="no review"),
    ],
)
def test_instructions_name_the_summary_where_there_is_one(
    file: Object, is_named: bool
) -> None:
    assert ("get_insights_summary" in toolbox_with(file).instructions) is is_named


# ---- What is listed for which data ----

ONE_REVIEW = {"business": {"name": "New {here}"}, "reviews": [review()]}
NO_REVIEW = ONE_REVIEW | {"reviews": []}
SUMMARY_TOOL = "get_insights_summary"
of_every_kind = pytest.mark.parametrize(("kind", "tool"), ABOUT_INSIGHTS.items())


@pytest.mark.parametrize(
    ("file", "insights", "listed"),
    [
        pytest.param(NO_REVIEW, None, set(), id="nothing"),
        pytest.param(NO_REVIEW, {"summary": "Good"}, {SUMMARY_TOOL}, id="a summary"),
        pytest.param(
            ONE_REVIEW, None, {SUMMARY_TOOL, "get_sentiment_trend"}, id="a review"
        ),
    ],
)
def test_tools_without_data_are_not_listed(
    file: Object, insights: Object | None, listed: set[str]
) -> None:
    # given
    of_insights = {*ABOUT_INSIGHTS.values(), SUMMARY_TOOL}
    expected = [name for name in TOOLS if name in listed or name not in of_insights]
    # when
    found = list(descriptions(toolbox_with(file, insights)))
    # then
    assert found == expected


@of_every_kind
def test_a_tool_without_data_says_why_and_which_have_some(kind: str, tool: str) -> None:
    noun = {"faq": "questions", "monthly": "months"}.get(kind, kind)
    toolbox = toolbox_with(NO_REVIEW)
    others = ", ".join(descriptions(toolbox))

    told = text_of_failure(tool, {}, toolbox)

    assert told == f"{tool} has no data: the insights have no {noun}. Call {others}."


def insights_with(kind: str) -> Object:
    """Insights with one entry, which has what every kind needs."""
    entry = {
        "id": "x",
        "label": "Some\n{thing}",
        "mention_count": 0,
        "question": "q?",
        "answer": "a",
        "month": "2025-01",
    }
    return {kind: [entry], "entities": {kind: [entry]}, "temporal": {kind: [entry]}}


@of_every_kind
def test_a_tool_is_listed_as_soon_as_it_has_data(kind: str, tool: str) -> None:
    described = descriptions(toolbox_with(ONE_REVIEW, insights_with(kind)))

    assert set(ABOUT_INSIGHTS.values()) & described.keys() == {tool}


@pytest.mark.parametrize("kind", ["aspects", "technicians", "services"])
def test_a_label_in_a_description_stands_on_one_line_with_its_braces(kind: str) -> None:
    described = descriptions(toolbox_with(ONE_REVIEW, insights_with(kind)))

    assert ", such as Some {thing}" in described[ABOUT_INSIGHTS[kind]]


@of_every_kind
def test_a_business_whose_name_has_braces_is_named_in_every_description(
    kind: str, tool: str
) -> None:
    described = descriptions(toolbox_with(ONE_REVIEW, insights_with(kind)))

    assert all("New {here}" in text for text in described.values())


UNCOUNTED = {"id": "x", "label": "Treatment"}


@pytest.mark.parametrize("kind", ["aspects", "topics", "technicians", "services"])
def test_what_nobody_has_counted_is_in_no_tool(kind: str) -> None:
    insights = {kind: [UNCOUNTED], "entities": {kind: [UNCOUNTED]}}
    toolbox = toolbox_with(ONE_REVIEW, insights | {"summary": "Good"})

    summary = structured(SUMMARY_TOOL, toolbox=toolbox)

    assert summary[kind] == []
    assert "Treatment" not in json.dumps(toolbox.declarations)
    assert ABOUT_INSIGHTS[kind] not in descriptions(toolbox)


def test_what_nobody_has_counted_is_in_the_tools_if_the_owner_has_words_for_it() -> (
    None
):
    topic = UNCOUNTED | {"summary": "Words of the owner."}
    toolbox = toolbox_with(ONE_REVIEW, {"topics": [topic]})

    (found,) = structured("get_topics", toolbox=toolbox)["topics"]

    assert found["summary"] == "Words of the owner."
    assert found["mention_count"] is None
