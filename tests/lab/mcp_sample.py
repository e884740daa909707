"""The toolbox of the sample, a call of each tool that finds something, and answers.

Sections: the sample - other data - answers.
"""

import json
from typing import Any

from lab.data_sets import dataset_of, sample_dataset
from lab.services import SAMPLE
from lab.small_files import CONTRACT
from reviewslib.mcp_tools import Toolbox, toolbox_of

Object = dict[str, Any]

# ---- The sample ----

DATASET = sample_dataset()
TOOLBOX = toolbox_of(CONTRACT, DATASET)
DECLARED = list(TOOLBOX.declarations)
BUSINESS = DATASET.business["name"]
REVIEWS: list[Object] = json.loads(DATASET.reviews_json)["reviews"]
SAMPLE_FILE: Object = json.loads((SAMPLE / "reviews.json").read_bytes())
INSIGHTS: Object = json.loads((SAMPLE / "insights.json").read_bytes())

CALLS: dict[str, Object] = {
    "get_aspect_sentiment": {"aspect": INSIGHTS["aspects"][0]["label"]},
    "get_business": {},
    "get_faq": {"query": "wait"},
    "get_insights_summary": {},
    "get_recent_reviews": {"limit": 3},
    "get_review": {"id": REVIEWS[0]["id"]},
    "get_sentiment_trend": {},
    "get_service": {"service": INSIGHTS["entities"]["services"][0]["id"]},
    "get_technician": {"name": INSIGHTS["entities"]["technicians"][0]["label"]},
    "get_topics": {},
    "search_reviews": {"query": "back", "min_rating": 4, "limit": 5},
}

# The tools that need the name of an entry, and their parameter for it.
NAMING = {
    "get_review": "id",
    "get_aspect_sentiment": "aspect",
    "get_technician": "name",
    "get_service": "service",
}
# Kinds of insights, and the tools that return them.
ABOUT_INSIGHTS = {
    "aspects": "get_aspect_sentiment",
    "topics": "get_topics",
    "technicians": "get_technician",
    "services": "get_service",
    "faq": "get_faq",
    "monthly": "get_sentiment_trend",
}


# ---- Other data ----


def toolbox_with(file: Object, insights: Object | None = None) -> Toolbox:
    """The tools with the data of other files."""
    return toolbox_of(CONTRACT, dataset_of(file, insights))


# ---- Answers ----


def structured(
    tool: str, arguments: Object | None = None, toolbox: Toolbox = TOOLBOX
) -> Object:
    """The structured content of a call that succeeds."""
    called = toolbox.call(tool, arguments or {})
    assert called.keys() == {"isError", "structuredContent"}
    assert called["isError"] is False
    content: Object = json.loads(called["structuredContent"].structured)
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
