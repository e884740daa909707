"""A tool answers with what the data say, in the declared form, and says how to correct a wrong call.

Other files test what models read before they call (test_mcp_declarations.py), how
arguments are read (test_query.py), and searches and hints (test_searching.py).

Sections: Wrong calls - Forms - Answers - Entries by words - How much was read - Questions - Single reviews -
Trends - Whatever loads
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from lab import plain_definition
from lab.mcp_sample import (
    CALLS,
    DECLARED,
    INSIGHTS,
    NAMING,
    REVIEWS,
    SAMPLE_FILE,
    TOOLBOX,
    Object,
    structured,
    text_of_failure,
    toolbox_with,
)
from lab.small_files import a_file, mutations, review

from reviewslib.faults import BadData
from reviewslib.mcp_tools import Toolbox

OUTPUTS = {tool["name"]: tool["outputSchema"] for tool in DECLARED}
PEOPLE = INSIGHTS["entities"]["technicians"]
SERVICES = INSIGHTS["entities"]["services"]


# ---- Wrong calls ----


def listing(entries: list[Object]) -> str:
    return "; ".join(f"{entry['id']} ({entry['label']})" for entry in entries)


NAMES = "; ".join(person["label"] for person in PEOPLE)
WRONG = [
    pytest.param(
        "search_reviews",
        {"rating": 7, "min_ratin": 4},
        "rating: 7 is above the maximum of 5\n"
        "min_ratin: unknown parameter; did you mean min_rating?",
        id="two faults",
    ),
    pytest.param(
        "get_recent_reviews",
        {"limit": 51},
        "limit: 51 is above the maximum of 50",
        id="too many",
    ),
    pytest.param(
        "get_recent_reviews",
        {"limit": 0},
        "limit: 0 is below the minimum of 1",
        id="too few",
    ),
    pytest.param(
        "get_review",
        {"id": "x"},
        "id: no review has this id; search_reviews and get_recent_reviews return ids",
        id="unknown review",
    ),
    pytest.param(
        "get_business",
        {"\ud800": 1},
        "�: unknown parameter; none is accepted",
        id="half a surrogate pair",
    ),
    pytest.param(
        "get_aspect_sentiment",
        {"aspect": "x"},
        "aspect: no aspect has this id, label or words. Known aspects: "
        + listing(INSIGHTS["aspects"]),
        id="unknown aspect",
    ),
    pytest.param(
        "get_service",
        {"service": "x"},
        "service: no service has this id, label or words. Known services: "
        + listing(SERVICES),
        id="unknown service",
    ),
    pytest.param(
        "get_technician",
        {"name": "nobody"},
        f"name: no person has this name or id. Known people: {NAMES}",
        id="unknown person",
    ),
]
WITHOUT_NAME = [
    pytest.param(
        tool, {}, f"{parameter}: is required", id=f"{tool} without {parameter}"
    )
    for tool, parameter in NAMING.items()
]


@pytest.mark.parametrize(("tool", "arguments", "lines"), WRONG + WITHOUT_NAME)
def test_the_fault_of_a_wrong_argument_says_what_would_be_right(
    tool: str, arguments: Object, lines: str
) -> None:
    told = text_of_failure(tool, arguments)

    assert told == f"{tool} was not run. Correct this and call it again:\n{lines}"


@pytest.mark.parametrize(("tool", "parameter"), NAMING.items())
def test_a_name_of_any_length_is_unknown_and_not_repeated(
    tool: str, parameter: str
) -> None:
    fills_the_largest_body = "5" + "\u0301\u0316" * 15_000

    told = text_of_failure(tool, {parameter: fills_the_largest_body})

    assert f"\n{parameter}: no " in told
    assert len(told) < 1100


# ---- Forms ----

# Members that only the contract describes, since models read the declarations whole.
UNDECLARED = {
    "average_rating",
    "distribution",
    "search",
    "answered_pct",
    "unanswered_count",
    "lately",
    "worded_count",
    "read_count",
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
every_call = pytest.mark.parametrize(("tool", "arguments"), CALLS.items(), ids=CALLS)


@every_call
def test_an_answer_fits_its_schema(tool: str, arguments: Object) -> None:
    Draft202012Validator(OUTPUTS[tool]).validate(structured(tool, arguments))


@every_call
def test_an_answer_has_what_is_declared_and_what_the_contract_describes(
    tool: str, arguments: Object
) -> None:
    declared = OUTPUTS[tool]["properties"].keys()

    members = structured(tool, arguments).keys()

    assert declared - members == ABSENT.get(tool, set())
    assert members - declared <= UNDECLARED


N8N_EXTRAS = ("action", "chatInput", "sessionId", "tool", "toolCallId")


@every_call
def test_what_n8n_adds_to_every_call_is_ignored(tool: str, arguments: Object) -> None:
    extended = arguments | dict.fromkeys(N8N_EXTRAS, "?")

    assert structured(tool, extended) == structured(tool, arguments)


# ---- Answers ----


def brief(entries: list[Object]) -> list[Object]:
    keys = ("id", "label", "mention_count", "score")
    return [dict(zip(keys, map(entry.get, keys), strict=True)) for entry in entries]


def newest(count: int) -> Object:
    return plain_definition.search(REVIEWS, INSIGHTS, {"limit": str(count)})


def searched(kind: str, entry: Object) -> Object:
    """An entry with the filter that finds its reviews."""
    return {**entry, "search": {"mentions": f"{kind}/{entry['id']}"}}


def people(name: str) -> Object:
    found = [
        searched("technicians", person)
        for person in PEOPLE
        if plain_definition.has_words(person["label"], name)
    ]
    return {"matched": len(found), "technicians": found}


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
ENTRIES = INSIGHTS["entities"] | {
    "aspects": INSIGHTS["aspects"],
    "topics": INSIGHTS["topics"],
}
SUMMARY = {
    **{key: INSIGHTS[key] for key in OVERALL},
    "trend": INSIGHTS["temporal"]["trend"],
    **{kind: brief(entries) for kind, entries in ENTRIES.items()},
}
ACTIVITY = ("answered_pct", "unanswered_count", "lately")
BY_COUNT = Counter(review["source"] for review in REVIEWS).most_common()
RATED = {
    "business": TOOLBOX.dataset.business,
    "aggregate_rating": TOOLBOX.dataset.aggregate_rating,
    "sources": [name for name, _ in BY_COUNT],
    **{key: INSIGHTS["temporal"][key] for key in ACTIVITY},
}
TOPICS = [searched("topics", topic) for topic in INSIGHTS["topics"]]
FIRST = REVIEWS[0]
FILTERED = {
    "min_rating": "4.5",
    "query": "BACK",
    "since": "2025-01-01",
    "offset": "3",
    "limit": "50",
}
ANSWERS: list[tuple[str, Object, Object]] = [
    ("search_reviews", FILTERED, plain_definition.search(REVIEWS, INSIGHTS, FILTERED)),
    ("get_business", {}, RATED),
    ("get_topics", {}, {"topics": TOPICS}),
    ("get_sentiment_trend", {"by": "month"}, INSIGHTS["temporal"]),
    ("get_insights_summary", {}, SUMMARY),
    ("get_faq", {}, {"matched": len(INSIGHTS["faq"]), "faq": INSIGHTS["faq"]}),
    ("get_recent_reviews", {}, newest(10)),
    ("get_recent_reviews", {"limit": "1"}, newest(1)),
    ("get_review", {"id": FIRST["id"]}, FIRST),
    ("get_review", {"id": f"{FIRST['page_url']}?x=y#top"}, FIRST),
    ("get_technician", {"name": "okafor"}, people("okafor")),
    ("get_technician", {"name": "Dr."}, people("Dr.")),
    ("get_technician", {"name": "tobias okafor"}, people("tobias okafor")),
]


def answers_about_entries() -> Iterator[tuple[str, Object, Object]]:
    """A question for every entry of the sample, and its answer."""
    for topic in TOPICS:
        yield "get_topics", {"topic": topic["id"]}, {"topics": [topic]}
    for person in PEOPLE:
        yield "get_technician", {"name": person["id"]}, people(person["label"])
    for aspect in INSIGHTS["aspects"]:
        answer = searched("aspects", aspect)
        yield "get_aspect_sentiment", {"aspect": aspect["id"].upper()}, answer
        yield "get_aspect_sentiment", {"aspect": aspect["label"]}, answer
    for service in SERVICES:
        answer = searched("services", service)
        yield "get_service", {"service": service["id"].upper()}, answer


def named(cases: Iterable[tuple[str, Object, Object]]) -> list[Any]:
    return [
        pytest.param(*case, id=" ".join([case[0], *case[1].values()])) for case in cases
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"), named([*ANSWERS, *answers_about_entries()])
)
def test_a_tool_answers_with_what_the_data_say(
    tool: str, arguments: Object, answer: Object
) -> None:
    assert structured(tool, arguments) == answer


def test_each_search_of_an_entry_finds_as_many_reviews_as_it_counts() -> None:
    topics = structured("get_topics")["topics"]

    found = [structured("search_reviews", topic["search"]) for topic in topics]

    counts = [topic["mention_count"] for topic in topics]
    assert [result["matched"] for result in found] == counts


# ---- Entries by words ----

WAITING = {
    "aspects": [
        {"id": "wait", "label": "Waiting time", "mention_count": 1},
        {"id": "room", "label": "Waiting room", "mention_count": 1},
    ]
}


@pytest.mark.parametrize(
    ("aspect", "id"),
    [
        pytest.param("rooms", "room", id="words that fit one"),
        pytest.param("wait", "wait", id="an id, though its word fits two"),
    ],
)
def test_words_or_an_id_find_one_entry(aspect: str, id: str) -> None:
    toolbox = toolbox_with(a_file(review()), WAITING)

    found = structured("get_aspect_sentiment", {"aspect": aspect}, toolbox)

    assert found["id"] == id


def test_words_that_fit_several_entries_list_those() -> None:
    toolbox = toolbox_with(a_file(review()), WAITING)

    told = text_of_failure("get_aspect_sentiment", {"aspect": "waits"}, toolbox)

    assert told.endswith(
        "aspect: several fit: choose one."
        " Known aspects: wait (Waiting time); room (Waiting room)"
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


def test_a_service_that_only_reviews_name_has_no_insights() -> None:
    massage = {"id": "massage", "label": "Massage", "mention_count": 1}
    file = a_file(review(mentioned_services=["sauna"]))
    toolbox = toolbox_with(file, {"entities": {"services": [massage]}})

    told = text_of_failure("get_service", {"service": "sauna"}, toolbox)

    assert told.endswith(". Known services: massage (Massage)")


# ---- How much was read ----

HALF_READ = {"read_count": 60, "worded_count": 142}
WHOLLY_READ = {"read_count": 142, "worded_count": 142}
ABOUT_WHAT_WAS_READ = [
    "get_insights_summary",
    "get_aspect_sentiment",
    "get_technician",
    "get_service",
    "get_topics",
]


@pytest.mark.parametrize("tool", ABOUT_WHAT_WAS_READ)
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


# ---- Questions ----


def asked(query: str | None, *faq: Object) -> list[str]:
    """The questions of `faq` that the tool finds for a caller's words."""
    entries = [{"answer": "-", "review_ids": [], **entry} for entry in faq]
    toolbox = toolbox_with(a_file(review()), {"faq": entries})
    found = structured("get_faq", {"query": query}, toolbox)
    assert found["matched"] == len(found["faq"])
    return [entry["question"] for entry in found["faq"]]


LOUD = {"question": "Is it loud?"}
LONG = {"question": "How long?", "answer": "The waiting times vary."}
WAITS = {"question": "Do people wait?"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param(None, [LOUD, LONG, WAITS], id="no query"),
        pytest.param("", [LOUD, LONG, WAITS], id="an empty query"),
        pytest.param("LOUD", [LOUD], id="a part of a question in any case"),
        pytest.param("times vary", [LONG], id="a part of an answer"),
        pytest.param("wait", [LONG, WAITS], id="a part of both"),
        pytest.param("waited", [LONG, WAITS], id="a word with another ending"),
        pytest.param("is it so", [], id="short words, which most texts have"),
        pytest.param("zzz", [], id="nothing"),
    ],
)
def test_questions_with_the_text_or_a_word_of_it_are_found(
    query: str | None, found: list[Object]
) -> None:
    questions = [entry["question"] for entry in found]

    assert sorted(asked(query, LOUD, LONG, WAITS)) == sorted(questions)


def test_where_no_question_matches_others_are_named() -> None:
    found = structured("get_faq", {"query": "zzz"})

    assert found["hints"] == [entry["question"] for entry in INSIGHTS["faq"]]


def test_of_many_questions_twenty_are_named() -> None:
    faq = [
        {"question": f"Question {number}?", "answer": "-", "review_ids": []}
        for number in range(100)
    ]
    toolbox = toolbox_with(a_file(review()), {"faq": faq})

    found = structured("get_faq", {"query": "zzz"}, toolbox)

    assert found["hints"] == [entry["question"] for entry in faq[:20]]


def test_questions_with_most_of_the_words_come_first() -> None:
    faq = [
        {"question": "Time?"},
        {"question": "Loud?"},
        {"question": "How long?", "answer": "The waiting times vary."},
        {"question": "Waits?"},
    ]

    assert asked("time of the wait", *faq) == ["How long?", "Time?", "Waits?"]


def test_questions_that_fit_alike_keep_their_order() -> None:
    faq = [{"question": "Is there parking?"}, {"question": "Is there music?"}]

    assert asked("music or parking", *faq) == ["Is there parking?", "Is there music?"]


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


# ---- Single reviews ----


@pytest.mark.parametrize("key", ["id", "page_url"])
def test_a_review_with_an_odd_id_is_found(key: str) -> None:
    toolbox = toolbox_with(a_file(review("a b/c?é#%41~/reviews/x")))
    (served,) = structured("get_recent_reviews", toolbox=toolbox)["reviews"]

    found = structured("get_review", {"id": served[key]}, toolbox)

    assert found == served


def test_models_are_told_a_review_in_each_list_alike() -> None:
    # given a review that models have read
    toolbox = toolbox_with(a_file(review("a"), review("b")), {})
    first = toolbox.call("get_recent_reviews", {})["structuredContent"]

    # when another list has it
    found = toolbox.call("search_reviews", {"min_rating": 1})["structuredContent"]

    # then it reads the same
    assert json.loads(found.text)["reviews"] == json.loads(first.text)["reviews"]


# ---- Trends ----


def toolbox_of_months(count: int) -> Toolbox:
    """Tools of insights whose first month is January 2023."""
    months = [
        {"month": f"{2023 + number // 12}-{number % 12 + 1:02}", "review_count": 1}
        for number in range(count)
    ]
    return toolbox_with(a_file(), {"temporal": {"monthly": months}})


def test_two_years_are_told_by_months() -> None:
    told = structured("get_sentiment_trend", toolbox=toolbox_of_months(24))

    assert len(told["monthly"]) == 24


def test_more_than_two_years_are_told_by_quarters() -> None:
    told = structured("get_sentiment_trend", toolbox=toolbox_of_months(25))

    quarters = [entry["quarter"] for entry in told["quarterly"]]
    assert quarters[-2:] == ["2024-Q4", "2025-Q1"]


def test_more_than_two_years_are_told_by_months_on_request() -> None:
    told = structured("get_sentiment_trend", {"by": "month"}, toolbox_of_months(25))

    assert len(told["monthly"]) == 25


def test_the_quarters_of_the_sample_have_all_its_reviews() -> None:
    quarters = structured("get_sentiment_trend")["quarterly"]

    assert sum(quarter["review_count"] for quarter in quarters) == len(REVIEWS)


def test_the_quarters_of_the_sample_have_all_its_stars() -> None:
    rated = [
        quarter
        for quarter in structured("get_sentiment_trend")["quarterly"]
        if quarter["review_count"]
    ]

    stars = sum(one["review_count"] * one["average_rating"] for one in rated)

    average = TOOLBOX.dataset.aggregate_rating["rating_value"]
    assert stars / len(REVIEWS) == pytest.approx(average, abs=0.01)


# ---- Whatever loads ----


def names_in(toolbox: Toolbox) -> dict[str, list[str]]:
    """The names by which each tool that needs one can be called, if they have words."""
    insights = toolbox.dataset.insights
    entities = insights["entities"]
    names = {
        "get_review": list(toolbox.dataset.reviews_by_id),
        "get_aspect_sentiment": [entry["id"] for entry in insights["aspects"]],
        "get_service": [entry["label"] for entry in entities["services"]],
        "get_technician": [entry["label"] for entry in entities["technicians"]],
    }
    return {
        tool: list(filter(plain_definition.words, known))
        for tool, known in names.items()
    }


def calls_of(toolbox: Toolbox) -> Iterator[tuple[str, Object]]:
    """A call of each listed tool for each name in its data."""
    names = names_in(toolbox)
    for declared in toolbox.declarations:
        tool = declared["name"]
        if tool not in NAMING:
            yield tool, {}
            continue
        for name in names[tool]:
            yield tool, {NAMING[tool]: name}


@settings(max_examples=100)
@given(mutations())
def test_every_answer_about_any_data_fits_the_declared_schema(files: Object) -> None:
    # given
    try:
        toolbox = toolbox_with(files.get("reviews"), files.get("insights"))
    except BadData:
        return
    for tool, arguments in calls_of(toolbox):
        # when
        answer = structured(tool, arguments, toolbox)
        # then
        Draft202012Validator(OUTPUTS[tool]).validate(answer)
