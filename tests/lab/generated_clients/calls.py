"""Calls the Python client that openapi-python-client has generated from the contract.

The client is a package beside this file. Its types are checked under `--strict`, this
file's with them. The argument is the base URL of a service; printed is one JSON object.
"""

import datetime
import json
import sys

from customer_reviews_client import Client
from customer_reviews_client.api.data import (
    get_insights,
    get_reviews,
    get_reviews_since,
    search_reviews,
)
from customer_reviews_client.api.feeds import get_json_feed
from customer_reviews_client.api.pages import get_review
from customer_reviews_client.models import (
    Error,
    InsightsDocument,
    JsonFeed,
    ReviewsDocument,
    SearchResult,
    SinceResult,
)

client = Client(base_url=sys.argv[1])

found = search_reviews.sync(client=client, limit=2)
assert isinstance(found, SearchResult)
everything = get_reviews.sync(client=client)
assert isinstance(everything, ReviewsDocument)
since = get_reviews_since.sync(client=client, date=datetime.date(2026, 11, 1))
assert isinstance(since, SinceResult)
insights = get_insights.sync(client=client)
assert isinstance(insights, InsightsDocument)
feed = get_json_feed.sync(client=client)
assert isinstance(feed, JsonFeed)
refused = search_reviews.sync_detailed(client=client, rating=9)
assert isinstance(refused.parsed, Error)
missing = get_review.sync_detailed("none", client=client)

first = everything.reviews[0]
verified: bool | None = first.verified
print(
    json.dumps(
        {
            "found": found.returned,
            "reviews": len(everything.reviews),
            "since": since.returned,
            "aspects": len(insights.aspects),
            "items": len(feed.items),
            "verified": verified,
            "page": get_review.sync_detailed(first.id, client=client).status_code,
            "refused": refused.status_code,
            "reason": refused.parsed.detail,
            "missing": missing.status_code,
        }
    )
)
