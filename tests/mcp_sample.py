"""The sample data as MCP's tools have it, and a call of each tool that finds something there."""

import json
from pathlib import Path
from typing import Any

import reviews
from contract import read_contract
from mcp_tools import Toolbox, toolbox_of

Object = dict[str, Any]

DATA = Path(__file__).resolve().parent.parent / "data"
CONTRACT = read_contract(json.loads((DATA / "openapi.json").read_bytes()))
REVIEWS_FILE = (DATA / "reviews.json").read_bytes()
INSIGHTS_FILE = (DATA / "insights.json").read_bytes()

DATASET = reviews.load(CONTRACT, REVIEWS_FILE, INSIGHTS_FILE)
TOOLBOX = toolbox_of(CONTRACT, DATASET)
DECLARED = list(TOOLBOX.declarations)
BUSINESS = DATASET.business["name"]
REVIEWS: list[Object] = json.loads(DATASET.reviews_json)["reviews"]
INSIGHTS: Object = json.loads(INSIGHTS_FILE)

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


def toolbox_with(file: Object, insights: Object | None = None) -> Toolbox:
    """The tools with the data of other files."""
    insights_file = None if insights is None else json.dumps(insights).encode()
    return toolbox_of(CONTRACT, reviews.load(CONTRACT, json.dumps(file).encode(), insights_file))
