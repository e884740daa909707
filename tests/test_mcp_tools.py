"""The declarations of tools are valid for every client, and the results of tools match the declarations.

Other files test how arguments are read (test_query.py), and searches and hints (test_searching.py).

Sections: Asking - Declarations - Arguments - Answers - Whatever loads
"""

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from lab import plain_definition
from lab.mcp_sample import (
    BUSINESS,
    CALLS,
    CONTRACT,
    DECLARED,
    INSIGHTS,
    REVIEWS,
    SAMPLE_FILE,
    TOOLBOX,
    Object,
    toolbox_with,
)
from lab.small_files import a_file, mutations, review

from reviewslib.dataset.contract import resolve
from reviewslib.faults import BadData
from reviewslib.mcp_tools import TOOLS, Toolbox

N8N_EXTRAS = ("action", "chatInput", "sessionId", "tool", "toolCallId")
NAMING = {  # the tools that need the name of an entry, and the parameter for the name
    "get_review": "id",
    "get_aspect_sentiment": "aspect",
    "get_technician": "name",
    "get_service": "service",
}
every_tool = pytest.mark.parametrize(
    "tool", DECLARED, ids=[tool["name"] for tool in DECLARED]
)
OUTPUTS = {tool["name"]: tool["outputSchema"] for tool in DECLARED}
PEOPLE = INSIGHTS["entities"]["technicians"]
SERVICES = INSIGHTS["entities"]["services"]


# ---- Asking ----


def structured(
    tool: str, arguments: Object | None = None, toolbox: Toolbox = TOOLBOX
) -> Object:
    """The structured content of a call that succeeds."""
    called = toolbox.call(tool, arguments or {})
    assert called == {
        "isError": False,
        "structuredContent": called["structuredContent"],
    }
    encoded = called["structuredContent"]
    content: Object = json.loads(
        encoded if isinstance(encoded, bytes) else encoded.encoded()
    )
    return content


def text_of_failure(tool: str, arguments: Object, toolbox: Toolbox = TOOLBOX) -> str:
    """The text that a failed call returns to the model."""
    called = toolbox.call(tool, arguments)
    text: str = called["content"][0]["text"]
    assert called == {"content": [{"type": "text", "text": text}], "isError": True}
    return text


def descriptions(toolbox: Toolbox) -> dict[str, str]:
    """The descriptions of the listed tools, by name and in order."""
    return {tool["name"]: tool["description"] for tool in toolbox.declarations}


# ---- Declarations ----


def test_the_sample_has_all_tools_in_the_order_of_the_table() -> None:
    assert ([tool["name"] for tool in DECLARED], sorted(TOOLS)) == (
        list(TOOLS),
        sorted(CALLS),
    )


def parts_of(schema: Object) -> Iterator[Object]:
    """A schema and all schemas in it."""
    yield schema
    for part in (
        *schema.get("properties", {}).values(),
        *([schema["items"]] if "items" in schema else ()),
    ):
        yield from parts_of(part)


@every_tool
def test_a_tool_is_declared_in_keywords_that_every_client_knows(tool: Object) -> None:
    hints = {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert tool["annotations"] == {"title": tool["title"]} | hints
    assert BUSINESS in tool["description"]
    takes = tool["inputSchema"]
    returns = tool["outputSchema"]
    name = NAMING.get(tool["name"])
    Draft202012Validator.check_schema(takes)
    Draft202012Validator.check_schema(returns)
    closed = {
        "type": "object",
        "properties": takes["properties"],
        "additionalProperties": False,
    }
    assert takes == closed | ({"required": [name]} if name else {})
    assert not takes["properties"].keys() & set(N8N_EXTRAS)
    for argument in takes["properties"].values():
        assert argument.keys() <= {
            "type",
            "enum",
            "description",
            "format",
            "minimum",
            "maximum",
            "default",
        }
        assert argument["type"] in ("string", "number", "integer", "boolean")
        assert len(argument["description"]) > 10
    assert (returns["type"], set(returns["required"])) == (
        "object",
        returns["properties"].keys() - OPTIONAL,
    )
    for part in parts_of(returns):
        assert part.keys() <= {"type", "properties", "required", "items", "enum"}
        assert ("items" in part, "properties" in part) == (
            "array" in part["type"],
            "object" in part["type"],
        )


def test_search_takes_the_parameters_of_the_contract_in_their_order() -> None:
    document = CONTRACT.document
    declared = document["paths"]["/api/reviews/search"]["get"]["parameters"]
    expected = {
        parameter["name"]: {"description": parameter["description"]}
        | {
            key: value
            for key, value in parameter["schema"].items()
            if key not in ("examples", "pattern")
        }
        for parameter in (resolve(document, item) for item in declared)
        if parameter["in"] == "query"
    }
    # A model reads fewer reviews at once than a program.
    expected["limit"]["default"] = 15
    (search,) = [tool for tool in DECLARED if tool["name"] == "search_reviews"]
    assert list(search["inputSchema"]["properties"].items()) == list(expected.items())


def test_the_output_schema_of_the_trend_lists_its_values() -> None:
    values = {
        "type": ["string", "null"],
        "enum": ["improving", "stable", "declining", None],
    }
    assert OUTPUTS["get_sentiment_trend"]["properties"]["trend"] == values


@pytest.mark.parametrize(
    ("policy", "sources", "called", "published", "listed"),
    [
        (None, [], "customer reviews of B", "", "none yet"),
        (
            "!",
            ["aol", "yelp", "yelp"],
            "verified customer reviews of B",
            " on Yelp and aol",
            "yelp, aol",
        ),
    ],
)
def test_descriptions_say_verified_only_with_a_policy_and_name_sources(
    policy: str | None, sources: list[str], called: str, published: str, listed: str
) -> None:
    few = [review(str(number), source=source) for number, source in enumerate(sources)]
    toolbox = toolbox_with(
        a_file(*few, business={"name": "B", "review_policy": policy})
    )
    assert toolbox.title == "Reviews of B"
    where = f", published{published}" if published else ""
    assert toolbox.instructions.startswith(
        f"The {called}{where}, and what they say together. get_business"
    )
    search = descriptions(toolbox)["search_reviews"]
    assert search.startswith(f"Find {called} by what they speak of")
    assert f"`source` ({listed})." in search


# ---- Arguments ----


def listing(entries: list[Object]) -> str:
    return "; ".join(f"{entry['id']} ({entry['label']})" for entry in entries)


NAMES = "; ".join(person["label"] for person in PEOPLE)
NO_ID = "id: no review has this id; search_reviews and get_recent_reviews return ids"
NOT_LISTED = "{0}: no {0} has this id, label or words. Known {0}s: {1}"
WRONG: list[tuple[str, Object, str]] = [
    (
        "search_reviews",
        {"rating": 7, "min_ratin": 4},
        "rating: 7 is above the maximum of 5\nmin_ratin: unknown parameter; did you mean min_rating?",
    ),
    ("get_recent_reviews", {"limit": 51}, "limit: 51 is above the maximum of 50"),
    ("get_recent_reviews", {"limit": 0}, "limit: 0 is below the minimum of 1"),
    *[(tool, {}, f"{name}: is required") for tool, name in NAMING.items()],
    ("get_review", {"id": "x"}, NO_ID),
    ("get_business", {"\ud800": 1}, "�: unknown parameter; none is accepted"),
    (
        "get_aspect_sentiment",
        {"aspect": "x"},
        NOT_LISTED.format("aspect", listing(INSIGHTS["aspects"])),
    ),
    ("get_service", {"service": "x"}, NOT_LISTED.format("service", listing(SERVICES))),
    (
        "get_technician",
        {"name": "nobody"},
        f"name: no person has this name or id. Known people: {NAMES}",
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "lines"), WRONG)
def test_the_fault_of_a_wrong_argument_says_what_would_be_right(
    tool: str, arguments: Object, lines: str
) -> None:
    text = f"{tool} was not run. Correct this and call it again:\n{lines}"
    assert text_of_failure(tool, arguments) == text


@pytest.mark.parametrize(("tool", "parameter"), NAMING.items())
def test_a_name_of_any_length_is_unknown_and_not_repeated(
    tool: str, parameter: str
) -> None:
    fills_the_largest_body = "5" + "\u0301\u0316" * 15_000

    told = text_of_failure(tool, {parameter: fills_the_largest_body})

    assert f"\n{parameter}: no " in told
    assert len(told) < 1100


# ---- Answers ----

# Members of results that need not be there.
OPTIONAL = {"hints", "people", "meant", "monthly", "quarterly", "proposed"}
# Members that only the contract describes, since models read the declarations whole.
UNDECLARED = {
    *("average_rating", "distribution", "search"),
    *("answered_pct", "unanswered_count", "lately", "worded_count", "read_count"),
}
# Of the calls of the sample: they find something, and none has `mentions`.
ABSENT = {
    # No model proposed the entries of the sample.
    "get_aspect_sentiment": {"proposed"},
    "get_service": {"proposed"},
    "search_reviews": {"hints", "meant"},
    "get_faq": {"hints"},
    "get_sentiment_trend": {"monthly"},
}


@every_tool
def test_an_answer_fits_its_schema_and_ignores_arguments_of_n8n(tool: Object) -> None:
    name = tool["name"]
    arguments = CALLS[tool["name"]]
    content = structured(name, arguments)
    Draft202012Validator(tool["outputSchema"]).validate(content)
    declared = tool["outputSchema"]["properties"].keys()
    assert declared - content.keys() == ABSENT.get(name, set())
    assert content.keys() - declared <= UNDECLARED
    assert structured(name, arguments | dict.fromkeys(N8N_EXTRAS, "?")) == content


def brief(entries: list[Object]) -> list[Object]:
    return [
        {key: entry[key] for key in ("id", "label", "mention_count", "score")}
        for entry in entries
    ]


def newest(count: int) -> Object:
    return plain_definition.search(REVIEWS, INSIGHTS, {"limit": str(count)})


def searched(kind: str, entries: list[Object]) -> list[Object]:
    """Entries with the filter that finds their reviews."""
    return [{**it, "search": {"mentions": f"{kind}/{it['id']}"}} for it in entries]


def people(name: str) -> Object:
    fitting = [
        person for person in PEOPLE if plain_definition.has_words(person["label"], name)
    ]
    return {"matched": len(fitting), "technicians": searched("technicians", fitting)}


def questions(text: str) -> Object:
    """Questions with the text; if there is none, those with a word like it."""
    faq = INSIGHTS["faq"]
    wanted = plain_definition.loosen(text)
    found = [one for one in faq if any(wanted in part for part in parts_of_entry(one))]
    if not found:
        found = [one for one in faq if has_word(one, wanted)]
    if not found:
        asked = [one["question"] for one in faq]
        return {"matched": 0, "faq": [], "hints": asked}
    return {"matched": len(found), "faq": found}


def parts_of_entry(entry: Object) -> list[str]:
    return [plain_definition.loosen(entry[key]) for key in ("question", "answer")]


def has_word(entry: Object, wanted: str) -> bool:
    words = plain_definition.label_words(" ".join(parts_of_entry(entry)))
    return any(plain_definition.are_alike(wanted, word) for word in words)


OVERALL = (
    "summary",
    "pull_quote",
    "generated_at",
    "review_count",
    "worded_count",
    "read_count",
    "date_range",
    "overall_sentiment",
)
LISTED = INSIGHTS["entities"] | {
    "aspects": INSIGHTS["aspects"],
    "topics": INSIGHTS["topics"],
}
SUMMARY = {key: INSIGHTS[key] for key in OVERALL} | {
    "trend": INSIGHTS["temporal"]["trend"]
}
RATED = {
    "business": TOOLBOX.dataset.business,
    "aggregate_rating": TOOLBOX.dataset.aggregate_rating,
    **{
        key: INSIGHTS["temporal"][key]
        for key in ("answered_pct", "unanswered_count", "lately")
    },
}
BY_COUNT = Counter(review["source"] for review in REVIEWS).most_common()
FIRST = REVIEWS[0]
ASKED = {
    "min_rating": "4.5",
    "query": "BACK",
    "since": "2025-01-01",
    "offset": "3",
    "limit": "50",
}
ANSWERS: list[tuple[str, Object, Object]] = [
    ("search_reviews", ASKED, plain_definition.search(REVIEWS, INSIGHTS, ASKED)),
    ("get_business", {}, RATED | {"sources": [name for name, _ in BY_COUNT]}),
    ("get_topics", {}, {"topics": searched("topics", INSIGHTS["topics"])}),
    ("get_sentiment_trend", {"by": "month"}, INSIGHTS["temporal"]),
    *[
        ("get_topics", {"topic": topic["id"]}, {"topics": searched("topics", [topic])})
        for topic in INSIGHTS["topics"]
    ],
    (
        "get_insights_summary",
        {},
        SUMMARY | {kind: brief(entries) for kind, entries in LISTED.items()},
    ),
    *[
        ("get_recent_reviews", *case)
        for case in (({}, newest(10)), ({"limit": "1"}, newest(1)))
    ],
    *[
        ("get_review", {"id": name}, FIRST)
        for name in (FIRST["id"], f"{FIRST['page_url']}?x=y#top")
    ],
    *[
        ("get_technician", {"name": name}, people(name))
        for name in ("okafor", "Dr.", "tobias okafor")
    ],
    *[
        ("get_technician", {"name": entry["id"]}, people(entry["label"]))
        for entry in PEOPLE
    ],
    *[
        ("get_aspect_sentiment", {"aspect": it["id"].upper()}, it)
        for it in searched("aspects", INSIGHTS["aspects"])
    ],
    *[
        ("get_aspect_sentiment", {"aspect": it["label"]}, it)
        for it in searched("aspects", INSIGHTS["aspects"])
    ],
    *[
        ("get_service", {"service": it["id"].upper()}, it)
        for it in searched("services", SERVICES)
    ],
    *[
        ("get_faq", {"query": text}, questions(text or ""))
        for text in ("WAIT", "parking", "zzz", "", None)
    ],
]


@pytest.mark.parametrize(("tool", "arguments", "answer"), ANSWERS)
def test_a_tool_answers_with_what_the_data_say(
    tool: str, arguments: Object, answer: Object
) -> None:
    assert structured(tool, arguments) == answer


SEVERAL = {
    "aspects": [
        {"id": "wait", "label": "Waiting time", "mention_count": 1},
        {"id": "room", "label": "Waiting room", "mention_count": 1},
    ]
}


def test_words_that_fit_one_entry_find_it() -> None:
    toolbox = toolbox_with(a_file(review()), SEVERAL)

    found = structured("get_aspect_sentiment", {"aspect": "rooms"}, toolbox=toolbox)

    assert found["id"] == "room"


def test_words_that_fit_several_entries_list_those() -> None:
    toolbox = toolbox_with(a_file(review()), SEVERAL)

    result = toolbox.call("get_aspect_sentiment", {"aspect": "wait"})
    several = toolbox.call("get_aspect_sentiment", {"aspect": "waits"})

    assert result["isError"] is False
    assert several["content"][0]["text"].endswith(
        "aspect: several fit: choose one."
        " Known aspects: wait (Waiting time); room (Waiting room)"
    )


def test_each_search_of_an_entry_finds_as_many_reviews_as_it_counts() -> None:
    topics = structured("get_topics")["topics"]

    found = [structured("search_reviews", topic["search"]) for topic in topics]

    counts = [topic["mention_count"] for topic in topics]
    assert [result["matched"] for result in found] == counts


HALF_READ = {"read_count": 60, "worded_count": 142}
WHOLLY_READ = {"read_count": 142, "worded_count": 142}
OF_WHAT_WAS_READ = pytest.mark.parametrize(
    "tool",
    [
        "get_insights_summary",
        "get_aspect_sentiment",
        "get_technician",
        "get_service",
        "get_topics",
    ],
)


@OF_WHAT_WAS_READ
def test_figures_of_what_was_read_say_how_much_was_read(tool: str) -> None:
    toolbox = toolbox_with(SAMPLE_FILE, INSIGHTS | HALF_READ)

    found = structured(tool, CALLS[tool], toolbox)

    assert {key: found[key] for key in HALF_READ} == HALF_READ


def test_where_all_is_read_only_the_summary_says_how_much() -> None:
    toolbox = toolbox_with(SAMPLE_FILE, INSIGHTS | WHOLLY_READ)

    saying = [
        tool
        for tool, arguments in CALLS.items()
        if "read_count" in structured(tool, arguments, toolbox)
    ]

    assert saying == ["get_insights_summary"]


LARGEST_LIST = 20_900


def test_the_list_of_tools_is_short_enough_for_the_start_of_every_conversation() -> (
    None
):
    listed = json.dumps(DECLARED, ensure_ascii=False, separators=(",", ":"))

    assert len(listed) <= LARGEST_LIST


def asked(query: str, *faq: Object) -> list[str]:
    """The questions of `faq` that the tool finds for a caller's words."""
    entries = [{"answer": "-", "review_ids": [], **entry} for entry in faq]
    toolbox = toolbox_with(a_file(review()), {"faq": entries})
    found = structured("get_faq", {"query": query}, toolbox)
    return [entry["question"] for entry in found["faq"]]


def test_questions_with_most_of_the_words_come_first() -> None:
    faq = [
        {"question": "Time?"},
        {"question": "Loud?"},
        {"question": "How long?", "answer": "The waiting times vary."},
        {"question": "Waits?"},
    ]

    assert asked("time of the wait", *faq) == ["How long?", "Time?", "Waits?"]


def test_a_word_that_many_questions_have_counts_less_than_one_that_few_have() -> None:
    faq = [
        {"question": "Are people kind?"},
        {"question": "Do people wait?"},
        {"question": "Is there parking?"},
    ]

    assert asked("parking for people", *faq)[0] == "Is there parking?"


def test_a_long_question_finds_three_at_most() -> None:
    words = ("price", "parking", "children", "pregnancy")
    faq = [{"question": f"What about {word}?"} for word in words]

    assert len(asked(f"please tell me about {', '.join(words)}", *faq)) == 3


def test_a_review_with_an_odd_id_is_found_by_id_and_by_page_url() -> None:
    toolbox = toolbox_with(a_file(review("a b/c?é#%41~/reviews/x")))
    (served,) = structured("get_recent_reviews", toolbox=toolbox)["reviews"]
    for name in (served["id"], served["page_url"]):
        assert structured("get_review", {"id": name}, toolbox) == served


def test_two_years_are_told_by_months_and_more_by_quarters() -> None:
    months = [
        {"month": f"{2023 + n // 12}-{n % 12 + 1:02}", "review_count": 1}
        for n in range(25)
    ]
    short = toolbox_with(a_file(), {"temporal": {"monthly": months[:24]}})
    long = toolbox_with(a_file(), {"temporal": {"monthly": months}})

    told = structured("get_sentiment_trend", toolbox=short)
    by_quarters = structured("get_sentiment_trend", toolbox=long)
    on_request = structured("get_sentiment_trend", {"by": "month"}, long)

    assert len(told["monthly"]) == 24
    assert [one["quarter"] for one in by_quarters["quarterly"]][-2:] == [
        "2024-Q4",
        "2025-Q1",
    ]
    assert len(on_request["monthly"]) == 25


def test_the_quarters_of_the_sample_have_all_its_reviews() -> None:
    quarters = structured("get_sentiment_trend")["quarterly"]

    counts = [quarter["review_count"] for quarter in quarters]
    stars = sum(one["review_count"] * (one["average_rating"] or 0) for one in quarters)
    assert sum(counts) == len(REVIEWS)
    assert stars / len(REVIEWS) == pytest.approx(
        TOOLBOX.dataset.aggregate_rating["rating_value"], abs=0.01
    )


def test_words_of_topics_find_all_that_fit() -> None:
    topics = [
        {"id": "a", "label": "Prices", "mention_count": 2},
        {"id": "b", "label": "A fair price", "mention_count": 1},
    ]
    toolbox = toolbox_with(a_file(review()), {"topics": topics})

    found = structured("get_topics", {"topic": "pricing"}, toolbox)["topics"]

    assert [topic["id"] for topic in found] == ["a", "b"]


def test_an_unknown_topic_lists_the_known_ones() -> None:
    told = text_of_failure("get_topics", {"topic": "zzz"})

    assert "no topic has this id, label or words. Known topics: " in told
    assert "parking-and-access (Parking and access)" in told


@pytest.mark.parametrize(
    ("insights", "begin"),
    [
        pytest.param(None, "have no list of subjects: search with `query`", id="none"),
        pytest.param(
            {
                "topics": [{"id": "a", "label": "Price\nlist"}],
                "per_review": {"a": {"topics": ["a"]}},
            },
            "`mentions`, such as Price list.",
            id="a topic",
        ),
    ],
)
def test_descriptions_say_what_to_ask_first_with_these_data(
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
    ("file", "is_named"), [(a_file(review()), True), (a_file(), False)]
)
def test_instructions_name_the_summary_where_there_is_one(
    file: Object, is_named: bool
) -> None:
    assert ("get_insights_summary" in toolbox_with(file).instructions) is is_named


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
of_every_kind = pytest.mark.parametrize(("kind", "tool"), ABOUT_INSIGHTS.items())


NOTHING = FEW | {"reviews": []}
SUMMARY_TOOL = "get_insights_summary"


@pytest.mark.parametrize(
    ("file", "insights", "listed"),
    [
        (NOTHING, None, []),
        (NOTHING, {"summary": "Good"}, [SUMMARY_TOOL]),
        (FEW, None, [SUMMARY_TOOL, "get_sentiment_trend"]),
    ],
)
def test_tools_without_data_are_not_listed(
    file: Object, insights: Object | None, listed: list[str]
) -> None:
    absent = {*ABOUT_INSIGHTS.values(), SUMMARY_TOOL} - set(listed)
    listed_tools = list(descriptions(toolbox_with(file, insights)))
    assert listed_tools == [name for name in TOOLS if name not in absent]


@of_every_kind
def test_a_tool_without_data_says_why_and_which_have_some(kind: str, tool: str) -> None:
    noun = {"faq": "questions", "monthly": "months"}.get(kind, kind)
    toolbox = toolbox_with(NOTHING)
    reason = f"{tool} has no data: the insights have no {noun}. Call {', '.join(descriptions(toolbox))}."
    assert text_of_failure(tool, {}, toolbox) == reason


@of_every_kind
def test_a_tool_is_listed_with_examples_as_soon_as_it_has_data(
    kind: str, tool: str
) -> None:
    entry = {
        "id": "x",
        "label": "Some\n{thing}",
        "mention_count": 0,
        "question": "q?",
        "answer": "a",
        "month": "2025-01",
    }
    insights = {kind: [entry], "entities": {kind: [entry]}, "temporal": {kind: [entry]}}
    described = descriptions(toolbox_with(FEW, insights))
    assert set(ABOUT_INSIGHTS.values()) & described.keys() == {tool}
    assert all("New {here}" in text for text in described.values())
    names_examples = kind in ("aspects", "technicians", "services")
    assert (", such as Some {thing}" in described[tool]) is names_examples


UNCOUNTED = {"id": "x", "label": "Treatment"}


@pytest.mark.parametrize("kind", ["aspects", "topics", "technicians", "services"])
def test_what_nobody_has_counted_is_in_no_tool(kind: str) -> None:
    insights = {kind: [UNCOUNTED], "entities": {kind: [UNCOUNTED]}}
    toolbox = toolbox_with(FEW, insights | {"summary": "Good"})

    summary = structured(SUMMARY_TOOL, toolbox=toolbox)

    assert summary[kind] == []
    assert "Treatment" not in json.dumps(toolbox.declarations)
    assert ABOUT_INSIGHTS[kind] not in descriptions(toolbox)


def test_what_nobody_has_counted_is_in_the_tools_if_the_owner_has_words_for_it() -> (
    None
):
    topic = UNCOUNTED | {"summary": "Words of the owner."}
    toolbox = toolbox_with(FEW, {"topics": [topic]})

    (found,) = structured("get_topics", toolbox=toolbox)["topics"]

    assert found["summary"] == "Words of the owner."
    assert found["mention_count"] is None


@settings(max_examples=100)
@given(mutations())
def test_every_answer_about_any_data_fits_the_declared_schema(files: Object) -> None:
    try:
        toolbox = toolbox_with(files.get("reviews"), files.get("insights"))
    except BadData:
        return
    insights = toolbox.dataset.insights | toolbox.dataset.insights["entities"]
    labels = {f"get_{kind}": insights[f"{kind}s"] for kind in ("service", "technician")}
    names = {
        tool: [entry["label"] for entry in entries] for tool, entries in labels.items()
    }
    names["get_review"] = list(toolbox.dataset.reviews_by_id)
    names["get_aspect_sentiment"] = [entry["id"] for entry in insights["aspects"]]
    for tool in (declared["name"] for declared in toolbox.declarations):
        named = [
            {NAMING.get(tool): name}
            for name in names.get(tool, ())
            if plain_definition.words(name)
        ]
        for arguments in named if tool in NAMING else [{}]:
            Draft202012Validator(OUTPUTS[tool]).validate(
                structured(tool, arguments, toolbox)
            )
