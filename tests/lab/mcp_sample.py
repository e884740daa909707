"""The toolbox of the sample, and a call of each tool that finds something."""

import json
from typing import Any

from lab.data_sets import dataset_of, sample_dataset
from lab.services import SAMPLE
from lab.small_files import CONTRACT
from reviewslib.mcp_tools import Toolbox, toolbox_of

Object = dict[str, Any]

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


def toolbox_with(file: Object, insights: Object | None = None) -> Toolbox:
    """The tools with the data of other files."""
    return toolbox_of(CONTRACT, dataset_of(file, insights))
