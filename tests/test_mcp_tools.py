"""The declarations of tools are valid for every client, and the results of tools match them.

The reading of arguments is tested with the queries.

Asking - Declarations - Arguments - Answers - Whatever loads - A journey
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import plain_definition
import pytest
from data_sets import DATA_SETS
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp_sample import (
    BUSINESS,
    CALLS,
    CONTRACT,
    DECLARED,
    INSIGHTS,
    REVIEWS,
    TOOLBOX,
    Object,
    toolbox_with,
)
from small_files import a_file, mutations, review

from reviewslib.dataset.contract import BadData
from reviewslib.dataset.text import name_words
from reviewslib.mcp_tools import TOOLS, Toolbox

N8N_EXTRAS = ("action", "chatInput", "sessionId", "tool", "toolCallId")
NAMING = {
    "get_review": "id",
    "get_aspect_sentiment": "aspect",
    "get_technician": "name",
    "get_service": "service",
}
DECLARATIONS = {tool["name"]: tool for tool in DECLARED}
every_tool = pytest.mark.parametrize("tool", DECLARED, ids=list(DECLARATIONS))


# ---- Asking ----


def structured(tool: str, arguments: Object | None = None, toolbox: Toolbox = TOOLBOX) -> Object:
    """The structured content of a call that succeeds."""
    called = toolbox.call(tool, arguments or {})
    assert called.keys() == {"isError", "structuredContent"}, called
    assert called["isError"] is False
    structured = called["structuredContent"]
    content: Object = json.loads(structured if isinstance(structured, bytes) else structured.encoded())
    return content


def faults(tool: str, arguments: Object, toolbox: Toolbox = TOOLBOX) -> list[str]:
    """The lines that say what is wrong with `arguments`."""
    called = toolbox.call(tool, arguments)
    text = called["content"][0]["text"]
    assert called == {"content": [{"type": "text", "text": text}], "isError": True}
    first, *lines = text.splitlines()
    assert first == f"{tool} was not run. Correct this and call it again:"
    return list(lines)


# ---- Declarations ----


def test_the_sample_has_all_eleven_tools_in_the_order_of_the_table() -> None:
    assert [tool["name"] for tool in DECLARED] == list(TOOLS)
    assert sorted(TOOLS) == sorted(CALLS)
    assert len(TOOLS) == 11


@every_tool
def test_a_tool_names_the_business_and_says_that_it_only_reads(tool: Object) -> None:
    assert BUSINESS in tool["description"]
    hints = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
    assert tool["annotations"] == {"title": tool["title"]} | hints


@every_tool
def test_an_input_schema_is_closed_and_has_only_plain_keywords(tool: Object) -> None:
    schema = tool["inputSchema"]
    Draft202012Validator.check_schema(schema)
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema.keys() <= {"type", "properties", "required", "additionalProperties"}
    assert not schema["properties"].keys() & set(N8N_EXTRAS)
    for argument in schema["properties"].values():
        plain = {"type", "description", "format", "minimum", "maximum", "default"}
        assert argument.keys() <= plain
        assert isinstance(argument["type"], str)
        assert argument.get("format") in (None, "date")
        assert len(argument["description"]) > 10


def parts_of(schema: Object) -> Iterator[Object]:
    """A schema and all those in it."""
    yield schema
    for part in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else ())):
        yield from parts_of(part)


@every_tool
def test_an_output_schema_has_only_plain_keywords_for_every_part(tool: Object) -> None:
    schema = tool["outputSchema"]
    Draft202012Validator.check_schema(schema)
    optional = {"search_reviews": {"hints"}, "get_recent_reviews": {"hints"}, "get_faq": {"hints"}}
    required = schema["properties"].keys() - optional.get(tool["name"], set())
    assert (schema["type"], set(schema["required"])) == ("object", required)
    for part in parts_of(schema):
        assert part.keys() <= {"type", "properties", "required", "items", "enum"}
        assert ("items" in part, "properties" in part) == ("array" in part["type"], "object" in part["type"])


def test_search_takes_the_parameters_of_the_contract_in_their_order() -> None:
    operation = CONTRACT.document["paths"]["/api/reviews/search"]["get"]
    references = [parameter["$ref"].rpartition("/")[2] for parameter in operation["parameters"]]
    parameters = [CONTRACT.document["components"]["parameters"][name] for name in references]
    hidden = ("examples", "pattern")
    expected = {
        each["name"]: {key: value for key, value in each["schema"].items() if key not in hidden}
        | {"description": each["description"]}
        for each in parameters
        if each["in"] == "query"
    }
    schema = DECLARATIONS["search_reviews"]["inputSchema"]
    assert schema["properties"] == expected
    assert list(schema["properties"]) == list(expected)
    assert "required" not in schema


def test_the_output_schema_of_the_trend_lists_its_values() -> None:
    trend = DECLARATIONS["get_sentiment_trend"]["outputSchema"]["properties"]["trend"]
    assert trend == {"type": ["string", "null"], "enum": ["improving", "stable", "declining", None]}


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


@pytest.mark.parametrize(
    ("tool", "arguments", "fault"),
    [
        ("search_reviews", {"rating": 7, "min_ratin": 4, "query": 5},
         "rating: 7 is above the maximum of 5\nmin_ratin: unknown parameter; did you mean min_rating?\n"
         "query: expected text"),
        ("get_recent_reviews", {"limit": 0}, "limit: 0 is below the minimum of 1"),
        ("get_recent_reviews", {"limit": 51}, "limit: 51 is above the maximum of 50"),
        *[(tool, {}, f"{name}: is required") for tool, name in NAMING.items()],
        ("get_review", {"id": "x"},
         "id: no review has this id; search_reviews and get_recent_reviews return ids"),
        ("get_business", {"\ud800": 1}, "�: unknown parameter; none is accepted"),
    ],
)  # fmt: skip
def test_the_fault_of_a_wrong_argument_says_what_would_be_right(
    tool: str, arguments: Object, fault: str
) -> None:
    assert faults(tool, arguments) == fault.splitlines()


LONG = "5" + "\u0301\u0316" * 15_000  # fills the largest body


@pytest.mark.parametrize("parameter", ["query", "mentions_technician", "mentions_service"])
def test_a_search_for_a_text_of_any_length_matches_nothing(parameter: str) -> None:
    assert structured("search_reviews", {parameter: LONG})["matched"] == 0
    assert structured("get_faq", {"query": LONG})["matched"] == 0


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
    return {
        "string": st.text(max_size=20),
        "number": st.floats(low, high) | st.integers(low, high),
        "integer": st.integers(low, high) | st.integers(low, high).map(float),
    }[schema["type"]]


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


@pytest.mark.parametrize(
    "asked",
    [
        {"query": "BACK", "rating": 5, "offset": 3},
        {"min_rating": "4.5", "since": "2025-01-01", "until": "2026-06-30", "limit": 100},
    ],
)
def test_a_search_finds_what_the_plain_definition_says(asked: Object) -> None:
    plain = {name: str(value) for name, value in asked.items()}
    assert structured("search_reviews", asked) == plain_definition.search(REVIEWS, INSIGHTS, plain)


def test_business_topics_and_trend_are_those_of_the_data() -> None:
    dataset = TOOLBOX.dataset
    rated = {"business": dataset.business, "aggregate_rating": dataset.aggregate_rating}
    by_count = Counter(review["source"] for review in REVIEWS).most_common()
    assert structured("get_business") == rated | {"sources": [source for source, _ in by_count]}
    assert structured("get_topics") == {"topics": INSIGHTS["topics"]}
    assert structured("get_sentiment_trend") == INSIGHTS["temporal"]


def test_get_review_takes_ids_and_page_urls() -> None:
    for expected in REVIEWS:
        for name in (expected["id"], expected["page_url"], f"{expected['page_url']}?utm_source=x#top"):
            assert structured("get_review", {"id": name}) == expected
    odd = review("a b/c?é#%41~/reviews/x")
    (served,) = structured("get_recent_reviews", toolbox=(toolbox := toolbox_with(a_file(odd))))["reviews"]
    for name in (served["id"], served["page_url"]):
        assert structured("get_review", {"id": name}, toolbox) == served


@pytest.mark.parametrize(("arguments", "number"), [({}, 10), ({"limit": "1"}, 1), ({"limit": 50.0}, 50)])
def test_recent_reviews_are_the_newest_in_order(arguments: Object, number: int) -> None:
    newest = structured("get_recent_reviews", arguments)
    assert newest == {"matched": len(REVIEWS), "returned": number, "reviews": REVIEWS[:number]}


def test_the_summary_lists_the_entries_of_the_other_tools() -> None:
    summary = structured("get_insights_summary")
    for key in ("summary", "pull_quote", "generated_at", "review_count", "date_range", "overall_sentiment"):
        assert summary[key] == INSIGHTS[key]
    assert summary["trend"] == INSIGHTS["temporal"]["trend"]
    known = INSIGHTS["entities"] | {"aspects": INSIGHTS["aspects"], "topics": INSIGHTS["topics"]}
    for kind, entries in known.items():
        keys = ("id", "label", "mention_count", "score")
        assert summary[kind] == [{key: entry[key] for key in keys} for entry in entries]


@pytest.mark.parametrize(
    ("tool", "argument", "kind", "entries"),
    [("get_aspect_sentiment", "aspect", "aspects", INSIGHTS["aspects"]),
     ("get_service", "service", "services", INSIGHTS["entities"]["services"])],
)  # fmt: skip
def test_an_id_and_a_label_in_any_case_name_an_aspect_or_a_service(
    tool: str, argument: str, kind: str, entries: list[Object]
) -> None:
    for entry in entries:
        for key in ("id", "label"):
            assert structured(tool, {argument: entry[key].upper()}) == entry
    listed = "; ".join(f"{entry['id']} ({entry['label']})" for entry in entries)
    assert faults(tool, {argument: "nonsense"}) == [
        f"{argument}: no {argument} has this id or label. Known {kind}: {listed}"
    ]


@pytest.mark.parametrize("name", ["okafor", "Dr.", "tobias okafor", "nobody"])
def test_people_are_found_by_words_of_their_names_and_counted(name: str) -> None:
    people = INSIGHTS["entities"]["technicians"]
    fit = [person for person in people if plain_definition.has_words(person["label"], name)]
    assert len(fit) > 1 or name != "Dr."
    if fit:
        assert structured("get_technician", {"name": name}) == {"matched": len(fit), "technicians": fit}
    else:
        fault = f"name: no person has this name or id. Known people: {'; '.join(p['label'] for p in people)}"
        assert faults("get_technician", {"name": name}) == [fault]


@pytest.mark.parametrize("query", ["WAIT", "parking", "zzz", "", None])
def test_questions_are_found_by_text_in_them_and_in_their_answers(query: str | None) -> None:
    wanted = plain_definition.loosen(query or "")
    texts = [(entry, entry["question"], entry["answer"]) for entry in INSIGHTS["faq"]]
    found = [entry for entry, *held in texts if any(wanted in plain_definition.loosen(t) for t in held)]
    hints = {} if found else {"hints": [entry["question"] for entry in INSIGHTS["faq"]]}
    assert structured("get_faq", {"query": query}) == {"matched": len(found), "faq": found} | hints


@pytest.mark.parametrize("kind", ["technicians", "services"])
def test_every_id_and_label_works_in_its_tool_and_in_the_search(kind: str) -> None:
    tool = f"get_{kind.removesuffix('s')}"
    for entry in INSIGHTS["entities"][kind]:
        filters = {f"mentions_{kind.removesuffix('s')}": entry["id"]}
        assert structured("search_reviews", filters)["matched"] == entry["mention_count"] > 0
        for value in (entry["id"], entry["label"]):
            found = structured(tool, {NAMING[tool]: value})
            assert entry in found.get("technicians", [found])


# ---- Whatever loads ----


FEW = {"business": {"name": "New {here}"}, "reviews": [review()]}
ABOUT_INSIGHTS = {  # what the insights hold, and the tools that tell it
    "aspects": "get_aspect_sentiment",
    "topics": "get_topics",
    "technicians": "get_technician",
    "services": "get_service",
    "faq": "get_faq",
    "monthly": "get_sentiment_trend",
}


@pytest.mark.parametrize(
    ("file", "absent"),
    [
        (FEW, {*ABOUT_INSIGHTS.values()} - {"get_sentiment_trend"}),
        (FEW | {"reviews": []}, {*ABOUT_INSIGHTS.values(), "get_insights_summary"}),
    ],
)
def test_a_tool_without_data_is_not_listed_and_says_why(file: Object, absent: set[str]) -> None:
    toolbox = toolbox_with(file)
    listed = [tool["name"] for tool in toolbox.declarations]
    assert (listed, listed[0]) == ([name for name in TOOLS if name not in absent], "get_business")
    for tool in toolbox.declarations:
        assert "New {here}" in tool["description"]
        arguments = {"id": "a"} if tool["name"] == "get_review" else {}
        if file["reviews"] or not arguments:
            Draft202012Validator(tool["outputSchema"]).validate(structured(tool["name"], arguments, toolbox))
    for name in absent:
        (content,) = toolbox.call(name, {})["content"]
        assert content["text"].startswith(f"{name} has no data: the insights have no ")
        assert content["text"].endswith(f". Call {', '.join(listed)}.")


@pytest.mark.parametrize("kind", ABOUT_INSIGHTS)
def test_a_tool_is_listed_with_examples_as_soon_as_it_has_data(kind: str) -> None:
    entry = {"id": "x", "label": "Some\n{thing}", "question": "q?", "answer": "a", "month": "2025-01"}
    insights = {kind: [entry], "entities": {kind: [entry]}, "temporal": {kind: [entry]}}
    toolbox = toolbox_with(FEW, insights)
    described = {tool["name"]: tool["description"] for tool in toolbox.declarations}
    assert set(ABOUT_INSIGHTS.values()) & described.keys() == {ABOUT_INSIGHTS[kind]}
    if kind in ("aspects", "technicians", "services"):
        assert ", such as Some {thing}" in described[ABOUT_INSIGHTS[kind]]


@settings(max_examples=100)
@given(mutations())
def test_every_answer_about_any_data_fits_the_declared_schema(files: Object) -> None:
    try:
        toolbox = toolbox_with(files.get("reviews"), files.get("insights"))
    except BadData:
        return
    entities = toolbox.dataset.insights["entities"]
    known = {
        "get_review": toolbox.dataset.reviews_by_id,
        "get_aspect_sentiment": [entry["id"] for entry in toolbox.dataset.insights["aspects"]],
        "get_service": [entry["label"] for entry in entities["services"]],
        "get_technician": [entry["label"] for entry in entities["technicians"] if name_words(entry["label"])],
    }
    for tool in toolbox.declarations:
        name = tool["name"]
        for arguments in [{NAMING[name]: value} for value in known[name] if value] if name in known else [{}]:
            content = structured(name, arguments, toolbox)
            Draft202012Validator(tool["outputSchema"]).validate(content)


# ---- A journey: questions of assistants to any business, and what an empty answer offers them ----

WORDS = ("parking", "parking Saturday", "complaint", "Brot!", " price ", "Preis Wartezeit Parken", "don’t")
SEARCHES: list[Object] = [
    *[{"query": words} for words in WORDS],
    *[{"mentions_technician": name} for name in ("Hannah", "Frau Yildiz", "Dr.")],
    *[{"mentions_service": name} for name in ("massage", "Hochzeitstorte")],
    *[{"source": name} for name in ("Google Maps", "Yelp", "TripAdvisor")],
    {"max_rating": 2, "query": "rude"},
    {"min_rating": 5, "max_rating": 1},
    {"rating": 1, "since": "2026-06-01", "source": "yelp"},
    {"since": "2026-06-01", "until": "2020-01-01"},
    {"since": "2031-01-01"},
    {"until": "1999-01-01", "query": "price"},
]
QUESTIONS: list[tuple[str, Object]] = [
    *[("search_reviews", search) for search in SEARCHES],
    ("get_aspect_sentiment", {"aspect": "price"}),
    ("get_technician", {"name": "Hannah"}),
    ("get_service", {"service": "massage"}),
    ("get_review", {"id": "latest"}),
    ("get_faq", {"query": "refund"}),
    *[(name, {}) for name in TOOLS if name not in NAMING],
]


def is_empty(value: Any) -> bool:
    """Whether a value is null, or an object or array of nothing but such values."""
    parts = value.values() if isinstance(value, dict) else value
    return value is None or (isinstance(value, (dict, list)) and all(map(is_empty, parts)))


@pytest.mark.parametrize("name", ["sample", "bare", "german"])
def test_every_empty_answer_of_a_journey_says_what_to_try_next(name: str) -> None:
    toolbox = toolbox_with(*DATA_SETS[name]())
    listed = {tool["name"] for tool in toolbox.declarations}
    ways = Counter[str]()
    for tool, arguments in QUESTIONS:
        called = toolbox.call(tool, arguments)
        if called["isError"]:
            text = called["content"][0]["text"]
            assert any(way in text for way in ("Known ", "return ids", "Call get_business")), text
            assert (tool in listed) is ("has no data" not in text)
            continue
        answer = structured(tool, arguments, toolbox)
        hints = answer.pop("hints", None)
        assert (hints is not None) == (answer.get("matched") == 0), (tool, arguments)
        assert hints or not is_empty(answer)
        if tool == "search_reviews" and hints:
            ways.update(followed(toolbox, arguments, hints))
    assert ways.keys() >= {"left out", "known"} and 0 not in ways.values(), ways


def followed(toolbox: Toolbox, arguments: Object, hints: list[str]) -> Iterator[str]:
    """The kinds of suggestions in hints; checks that each finds as many reviews as it says."""
    text = "\n".join(hints)
    offer = r"Reviews that match if one filter is left out: (.*); without any filter: \d+\."
    counts = re.fullmatch(offer, hints[-1])
    assert counts
    for name, count in (pair.split() for pair in counts[1].split(", ")):
        fewer = {key: value for key, value in arguments.items() if key != name}
        assert structured("search_reviews", fewer, toolbox)["matched"] == int(count)
        yield "left out"
    for noun, first in re.findall(r"No (\w+) is called .*?Known \w+: ([^;(]*?)(?: \(|;|\.)", text):
        parameter = {"person": "mentions_technician", "service": "mentions_service", "source": "source"}[noun]
        assert structured("search_reviews", {parameter: first}, toolbox)["matched"] > 0
        yield "known"
    for id in re.findall(r"in any order: \d+ \((\w+)", text):
        assert structured("get_review", {"id": id}, toolbox)["text"]
        yield "together"
    for word, count in re.findall(r"(\w+) (\d+)[,.]", text.partition("one of them: ")[2].partition("\n")[0]):
        assert structured("search_reviews", arguments | {"query": word}, toolbox)["matched"] == int(count)
        yield "word"
