"""The declarations of tools are valid for every client, and the results of tools match the declarations.

Other files test how arguments are read (test_query.py), and searches and hints (test_reviews.py).

Sections: Asking - Declarations - Arguments - Answers - Whatever loads
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import plain_definition
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp_sample import BUSINESS, CALLS, CONTRACT, DECLARED, INSIGHTS, REVIEWS, TOOLBOX, Object, toolbox_with
from small_files import a_file, mutations, review

from reviewslib.dataset.contract import BadData
from reviewslib.mcp_tools import TOOLS, Toolbox

N8N_EXTRAS = ("action", "chatInput", "sessionId", "tool", "toolCallId")
NAMING = {  # the tools that need the name of an entry, and the parameter for the name
    "get_review": "id",
    "get_aspect_sentiment": "aspect",
    "get_technician": "name",
    "get_service": "service",
}
SCHEMAS: dict[str, Object] = {tool["name"]: tool["inputSchema"] for tool in DECLARED}
every_tool = pytest.mark.parametrize("tool", DECLARED, ids=list(SCHEMAS))
PEOPLE, SERVICES = INSIGHTS["entities"]["technicians"], INSIGHTS["entities"]["services"]


# ---- Asking ----


def structured(tool: str, arguments: Object | None = None, toolbox: Toolbox = TOOLBOX) -> Object:
    """The structured content of a call that succeeds."""
    called = toolbox.call(tool, arguments or {})
    assert called == {"isError": False, "structuredContent": called["structuredContent"]}
    encoded = called["structuredContent"]
    content: Object = json.loads(encoded if isinstance(encoded, bytes) else encoded.encoded())
    return content


def text_of_failure(tool: str, arguments: Object, toolbox: Toolbox = TOOLBOX) -> str:
    """The text that a failed call returns to the model."""
    called = toolbox.call(tool, arguments)
    text: str = called["content"][0]["text"]
    assert called == {"content": [{"type": "text", "text": text}], "isError": True}
    return text


def faults(tool: str, arguments: Object) -> list[str]:
    """The lines that say what is wrong with `arguments`."""
    first, *lines = text_of_failure(tool, arguments).splitlines()
    assert first == f"{tool} was not run. Correct this and call it again:"
    return lines


# ---- Declarations ----


def test_the_sample_has_all_eleven_tools_in_the_order_of_the_table() -> None:
    assert [tool["name"] for tool in DECLARED] == list(TOOLS)
    assert sorted(TOOLS) == sorted(CALLS)
    assert len(TOOLS) == 11


@every_tool
def test_a_tool_names_the_business_and_says_that_it_only_reads(tool: Object) -> None:
    hints = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
    assert tool["annotations"] == {"title": tool["title"]} | hints
    assert BUSINESS in tool["description"]


@every_tool
def test_an_input_schema_is_closed_and_has_only_plain_keywords(tool: Object) -> None:
    schema = tool["inputSchema"]
    Draft202012Validator.check_schema(schema)
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema.keys() <= {"type", "properties", "required", "additionalProperties"}
    assert schema.get("required") == ([NAMING[tool["name"]]] if tool["name"] in NAMING else None)
    assert not schema["properties"].keys() & set(N8N_EXTRAS)
    for argument in schema["properties"].values():
        assert argument.keys() <= {"type", "description", "format", "minimum", "maximum", "default"}
        assert argument["type"] in ("string", "number", "integer")
        assert len(argument["description"]) > 10


def parts_of(schema: Object) -> Iterator[Object]:
    """A schema and all schemas in it."""
    yield schema
    for part in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else ())):
        yield from parts_of(part)


@every_tool
def test_an_output_schema_has_only_plain_keywords_for_every_part(tool: Object) -> None:
    schema = tool["outputSchema"]
    Draft202012Validator.check_schema(schema)
    assert (schema["type"], set(schema["required"])) == ("object", schema["properties"].keys() - {"hints"})
    for part in parts_of(schema):
        assert part.keys() <= {"type", "properties", "required", "items", "enum"}
        assert ("items" in part, "properties" in part) == ("array" in part["type"], "object" in part["type"])


def test_search_takes_the_parameters_of_the_contract_in_their_order() -> None:
    operation = CONTRACT.document["paths"]["/api/reviews/search"]["get"]
    references = [parameter["$ref"].rpartition("/")[2] for parameter in operation["parameters"]]
    declared = [CONTRACT.document["components"]["parameters"][name] for name in references]
    expected = {
        parameter["name"]: {
            key: value for key, value in parameter["schema"].items() if key not in ("examples", "pattern")
        }
        | {"description": parameter["description"]}
        for parameter in declared
        if parameter["in"] == "query"
    }
    assert list(SCHEMAS["search_reviews"]["properties"].items()) == list(expected.items())


def test_recent_reviews_take_a_limit_up_to_fifty() -> None:
    limit = SCHEMAS["get_recent_reviews"]["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 50, 10)


def test_the_output_schema_of_the_trend_lists_its_values() -> None:
    (trend,) = [tool for tool in DECLARED if tool["name"] == "get_sentiment_trend"]
    values = {"type": ["string", "null"], "enum": ["improving", "stable", "declining", None]}
    assert trend["outputSchema"]["properties"]["trend"] == values


@pytest.mark.parametrize(
    ("policy", "sources", "called", "listed"),
    [(None, [], "customer reviews of B", "none yet"),
     ("We ask.", ["aol", "yelp", "yelp"], "verified customer reviews of B, published on Yelp and aol",
      "yelp, aol")],
)  # fmt: skip
def test_descriptions_say_verified_only_with_a_policy_and_name_sources(
    policy: str | None, sources: list[str], called: str, listed: str
) -> None:
    few = [review(str(number), source=source) for number, source in enumerate(sources)]
    toolbox = toolbox_with(a_file(*few, business={"name": "B", "review_policy": policy}))
    assert toolbox.title == "Reviews of B"
    assert toolbox.instructions.startswith(f"The {called}, and what they say together. Begin")
    described = {tool["name"]: tool["description"] for tool in toolbox.declarations}["search_reviews"]
    assert described.startswith(f"Find {called.partition(',')[0]} by words, stars")
    assert f"`source` ({listed})." in described
    assert structured("get_business", toolbox=toolbox)["business"]["review_policy"] == policy


# ---- Arguments ----

ASPECTS = "; ".join(f"{entry['id']} ({entry['label']})" for entry in INSIGHTS["aspects"])
SERVICE_LIST = "; ".join(f"{entry['id']} ({entry['label']})" for entry in SERVICES)
NAMES = "; ".join(person["label"] for person in PEOPLE)
RATING, LIMIT = ["rating: 7 is above the maximum of 5"], ["limit: 51 is above the maximum of 50"]
NO_IDS = ["id: no review has this id; search_reviews and get_recent_reviews return ids"]
NOT_LISTED = "no {0} has this id or label. Known {0}s: {1}"
WRONG: list[tuple[str, Object, list[str]]] = [
    ("search_reviews", {"rating": 7, "min_ratin": 4},
     [*RATING, "min_ratin: unknown parameter; did you mean min_rating?"]),
    ("get_recent_reviews", {"limit": 51}, LIMIT),
    *[(tool, {}, [f"{name}: is required"]) for tool, name in NAMING.items()],
    ("get_review", {"id": "x"}, NO_IDS),
    ("get_business", {"\ud800": 1}, ["�: unknown parameter; none is accepted"]),
    ("get_aspect_sentiment", {"aspect": "x"}, [f"aspect: {NOT_LISTED.format('aspect', ASPECTS)}"]),
    ("get_service", {"service": "x"}, [f"service: {NOT_LISTED.format('service', SERVICE_LIST)}"]),
    ("get_technician", {"name": "nobody"}, [f"name: no person has this name or id. Known people: {NAMES}"]),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "lines"), WRONG)
def test_the_fault_of_a_wrong_argument_says_what_would_be_right(
    tool: str, arguments: Object, lines: list[str]
) -> None:
    assert faults(tool, arguments) == lines


LONG = "5" + "\u0301\u0316" * 15_000  # fills the largest body


@pytest.mark.parametrize(("tool", "parameter"), NAMING.items())
def test_a_name_of_any_length_is_unknown_and_not_repeated(tool: str, parameter: str) -> None:
    (fault,) = faults(tool, {parameter: LONG})
    assert re.match(f"{parameter}: no [a-z]+ has this ", fault) and len(fault) < 1000


@every_tool
def test_an_answer_fits_its_schema_and_ignores_arguments_of_n8n(tool: Object) -> None:
    name, arguments = tool["name"], CALLS[tool["name"]]
    content = structured(name, arguments)
    Draft202012Validator(tool["outputSchema"]).validate(content)
    assert content.keys() == tool["outputSchema"]["properties"].keys() - {"hints"}
    assert structured(name, arguments | dict.fromkeys(N8N_EXTRAS, "?")) == content


def values_of(schema: Object) -> st.SearchStrategy[Any]:
    """Arguments that fit an input schema's property."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if schema["type"] == "string":
        return st.text(max_size=20)
    return st.integers(low, high) | (st.floats(low, high) if schema["type"] == "number" else st.nothing())


@given(tool=st.sampled_from(DECLARED), data=st.data())
def test_arguments_that_fit_the_input_schema_are_accepted(tool: Object, data: st.DataObject) -> None:
    properties, required = tool["inputSchema"]["properties"], tool["inputSchema"].get("required", [])
    fitting = {name: values_of(schema) for name, schema in properties.items()}
    chosen = data.draw(st.fixed_dictionaries({}, optional=fitting))
    if TOOLBOX.call(tool["name"], chosen)["isError"]:
        for line in faults(tool["name"], chosen):
            name = line.partition(":")[0]
            missing = name in required and not chosen.get(name)
            no_day = properties[name].get("format") == "date"
            no_word = "at least one word of a name" in line
            assert missing or no_day or no_word or f"{name}: no " in line


# ---- Answers ----


def brief(entries: list[Object]) -> list[Object]:
    return [{key: entry[key] for key in ("id", "label", "mention_count", "score")} for entry in entries]


OVERALL = ("summary", "pull_quote", "generated_at", "review_count", "date_range", "overall_sentiment")
LISTED = INSIGHTS["entities"] | {"aspects": INSIGHTS["aspects"], "topics": INSIGHTS["topics"]}
SUMMARY = {key: INSIGHTS[key] for key in OVERALL} | {"trend": INSIGHTS["temporal"]["trend"]}
RATED = {"business": TOOLBOX.dataset.business, "aggregate_rating": TOOLBOX.dataset.aggregate_rating}
BY_COUNT = Counter(review["source"] for review in REVIEWS).most_common()
FIRST = REVIEWS[0]


def newest(count: int) -> Object:
    return {"matched": len(REVIEWS), "returned": count, "reviews": REVIEWS[:count]}


def people(name: str) -> Object:
    fitting = [person for person in PEOPLE if plain_definition.has_words(person["label"], name)]
    return {"matched": len(fitting), "technicians": fitting}


ASKED = {"min_rating": "4.5", "query": "BACK", "since": "2025-01-01", "offset": "3", "limit": "50"}
ANSWERS: list[tuple[str, Object, Object]] = [
    ("search_reviews", ASKED, plain_definition.search(REVIEWS, INSIGHTS, ASKED)),
    ("get_business", {}, RATED | {"sources": [name for name, _ in BY_COUNT]}),
    ("get_topics", {}, {"topics": INSIGHTS["topics"]}),
    ("get_sentiment_trend", {}, INSIGHTS["temporal"]),
    ("get_insights_summary", {}, SUMMARY | {kind: brief(entries) for kind, entries in LISTED.items()}),
    *[("get_recent_reviews", *case) for case in (({}, newest(10)), ({"limit": "1"}, newest(1)))],
    *[("get_review", {"id": name}, FIRST) for name in (FIRST["id"], f"{FIRST['page_url']}?x=y#top")],
    *[("get_technician", {"name": name}, people(name)) for name in ("okafor", "Dr.", "tobias okafor")],
    *[("get_aspect_sentiment", {"aspect": entry["id"].upper()}, entry) for entry in INSIGHTS["aspects"]],
    *[("get_aspect_sentiment", {"aspect": entry["label"]}, entry) for entry in INSIGHTS["aspects"]],
]


@pytest.mark.parametrize(("tool", "arguments", "answer"), ANSWERS)
def test_a_tool_answers_with_what_the_data_say(tool: str, arguments: Object, answer: Object) -> None:
    assert structured(tool, arguments) == answer


def test_a_review_with_an_odd_id_is_found_by_id_and_by_page_url() -> None:
    toolbox = toolbox_with(a_file(review("a b/c?é#%41~/reviews/x")))
    (served,) = structured("get_recent_reviews", toolbox=toolbox)["reviews"]
    for name in (served["id"], served["page_url"]):
        assert structured("get_review", {"id": name}, toolbox) == served


@pytest.mark.parametrize("query", ["WAIT", "parking", "zzz", "", None])
def test_questions_are_found_by_text_in_them_and_in_their_answers(query: str | None) -> None:
    wanted = plain_definition.loosen(query or "")
    texts = [(entry, entry["question"], entry["answer"]) for entry in INSIGHTS["faq"]]
    found = [entry for entry, *held in texts if any(wanted in plain_definition.loosen(t) for t in held)]
    hints = {} if found else {"hints": [entry["question"] for entry in INSIGHTS["faq"]]}
    assert structured("get_faq", {"query": query}) == {"matched": len(found), "faq": found} | hints


@pytest.mark.parametrize("kind", ["technician", "service"])
def test_every_id_and_label_works_in_its_tool_and_in_the_search(kind: str) -> None:
    tool = f"get_{kind}"
    for entry in INSIGHTS["entities"][f"{kind}s"]:
        matched = structured("search_reviews", {f"mentions_{kind}": entry["id"]})["matched"]
        assert matched == entry["mention_count"] > 0
        for value in (entry["id"], entry["label"].upper()):
            found = structured(tool, {NAMING[tool]: value})
            assert entry in found.get("technicians", [found])


# ---- Whatever loads ----

FEW = {"business": {"name": "New {here}"}, "reviews": [review()]}
ABOUT_INSIGHTS = {  # kinds of insights, and the tools that return them
    "aspects": "get_aspect_sentiment",
    "topics": "get_topics",
    "technicians": "get_technician",
    "services": "get_service",
    "faq": "get_faq",
    "monthly": "get_sentiment_trend",
}
NOUNS = {"faq": "questions", "monthly": "months"}


@pytest.mark.parametrize("kind", ABOUT_INSIGHTS)
def test_a_tool_without_data_is_not_listed_and_says_why(kind: str) -> None:
    toolbox, tool = toolbox_with(FEW | {"reviews": []}), ABOUT_INSIGHTS[kind]
    listed = [declared["name"] for declared in toolbox.declarations]
    assert listed == [
        name for name in TOOLS if name not in (*ABOUT_INSIGHTS.values(), "get_insights_summary")
    ]
    reason = f"{tool} has no data: the insights have no {NOUNS.get(kind, kind)}. Call {', '.join(listed)}."
    assert text_of_failure(tool, {}, toolbox) == reason


def test_reviews_alone_are_enough_for_the_summary_and_the_trend() -> None:
    absent = {*ABOUT_INSIGHTS.values()} - {"get_sentiment_trend"}
    listed = [declared["name"] for declared in toolbox_with(FEW).declarations]
    assert listed == [name for name in TOOLS if name not in absent]


@pytest.mark.parametrize("kind", ABOUT_INSIGHTS)
def test_a_tool_is_listed_with_examples_as_soon_as_it_has_data(kind: str) -> None:
    entry = {"id": "x", "label": "Some\n{thing}", "question": "q?", "answer": "a", "month": "2025-01"}
    insights = {kind: [entry], "entities": {kind: [entry]}, "temporal": {kind: [entry]}}
    toolbox = toolbox_with(FEW, insights)
    described = {tool["name"]: tool["description"] for tool in toolbox.declarations}
    assert set(ABOUT_INSIGHTS.values()) & described.keys() == {ABOUT_INSIGHTS[kind]}
    assert all("New {here}" in text for text in described.values())
    if kind in ("aspects", "technicians", "services"):
        assert ", such as Some {thing}" in described[ABOUT_INSIGHTS[kind]]


@settings(max_examples=100)
@given(mutations())
def test_every_answer_about_any_data_fits_the_declared_schema(files: Object) -> None:
    try:
        toolbox = toolbox_with(files.get("reviews"), files.get("insights"))
    except BadData:
        return
    insights = toolbox.dataset.insights
    names = {
        "get_review": list(toolbox.dataset.reviews_by_id),
        "get_aspect_sentiment": [entry["id"] for entry in insights["aspects"]],
        "get_service": [entry["label"] for entry in insights["entities"]["services"]],
        "get_technician": [entry["label"] for entry in insights["entities"]["technicians"]],
    }
    for tool in toolbox.declarations:
        values = filter(plain_definition.words, names.get(tool["name"], ()))
        named = [{NAMING[tool["name"]]: value} for value in values] if tool["name"] in NAMING else [{}]
        for arguments in named:
            content = structured(tool["name"], arguments, toolbox)
            Draft202012Validator(tool["outputSchema"]).validate(content)
