"""What customers and owners ask takes an assistant at most two calls.

The calls are those that a model makes of the descriptions alone, in the words of the
question; the answer must stand in the text that the model reads.

Sections: the table - asking.
"""

import json
from typing import Any

import pytest
from lab.mcp_sample import DECLARED, TOOLBOX, Object

from mcp_rpc import success

Call = tuple[str, Object]

# ---- The table: a question, the calls, and what the last text must have ----

QUESTIONS: list[Any] = [
    pytest.param(
        [("search_reviews", {"mentions": "nervous", "limit": 1})],
        ['"people":[{"mentions":"technicians/', '"matched":17'],
        id="Who is good with nervous patients?",
    ),
    pytest.param(
        [("search_reviews", {"sentiment": "negative"})],
        ['"matched":31', '"returned":15'],
        id="What do people dislike?",
    ),
    pytest.param(
        [("search_reviews", {"mentions": "parking", "since": "2026-01-01"})],
        ['"mentions":"topics/parking-and-access"', "lot"],
        id="How is the parking this year?",
    ),
    pytest.param(
        [
            ("search_reviews", {"mentions": "stationnement"}),
            ("search_reviews", {"mentions": "topics/parking-and-access"}),
        ],
        ['"label":"Parking and access"'],
        id="Est-ce qu'il y a un stationnement ?",
    ),
    pytest.param(
        [("search_reviews", {"mentions": "children"})],
        ['"label":"Care for children and teens"'],
        id="Are they good with children?",
    ),
    pytest.param(
        [("get_faq", {"query": "costs"})],
        ["What does a visit cost", "$145"],
        id="What does it cost?",
    ),
    pytest.param(
        [("get_faq", {"query": "waiting time"})],
        ["20 to 50 minutes"],
        id="How long does one wait?",
    ),
    pytest.param(
        [("search_reviews", {"replied": False})],
        ['"matched":112'],
        id="Which reviews have no answer yet?",
    ),
    pytest.param(
        [("search_reviews", {"max_rating": 2, "limit": 5})],
        ['"matched":14', '"returned":5'],
        id="What were the latest bad reviews?",
    ),
    pytest.param(
        [
            ("get_technician", {"name": "Okafor"}),
            ("get_technician", {"name": "Pritchard"}),
        ],
        ['"average_rating"', '"label":"Wes Pritchard"'],
        id="Okafor or Pritchard?",
    ),
    pytest.param(
        [("get_sentiment_trend", {})],
        ['"trend":"stable"', '"quarter":"2026-Q3"'],
        id="What has changed?",
    ),
    pytest.param(
        [("search_reviews", {"mentions": "headaches", "limit": 1})],
        ['"page_url":"https://', '"author":'],
        id="Cite somebody who came with headaches.",
    ),
]


# ---- Asking ----

# Of all texts of one question: a third of the context of a small model.
LARGEST_CHARACTERS = 16_000


def text_of(call: Call) -> str:
    """The text that a model reads of a call that succeeds."""
    tool, arguments = call
    result = json.loads(success(1, TOOLBOX.call(tool, arguments)))["result"]
    assert result["isError"] is False
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize(("calls", "parts"), QUESTIONS)
def test_a_question_is_answered_in_two_calls(
    calls: list[Call], parts: list[str]
) -> None:
    texts = [text_of(call) for call in calls]

    assert len(calls) <= 2
    assert [part for part in parts if part not in texts[-1]] == []
    assert sum(map(len, texts)) <= LARGEST_CHARACTERS


def test_an_unknown_word_leads_to_the_one_of_the_data() -> None:
    text = text_of(("search_reviews", {"mentions": "stationnement"}))

    assert "topics/parking-and-access (Parking and access)" in text


def test_there_are_twelve_questions() -> None:
    assert len(QUESTIONS) == 12


@pytest.mark.parametrize(("calls", "parts"), QUESTIONS)
def test_the_tools_of_a_question_are_listed(
    calls: list[Call], parts: list[str]
) -> None:
    listed = {declared["name"] for declared in DECLARED}

    assert {tool for tool, _ in calls} <= listed
