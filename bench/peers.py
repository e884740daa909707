"""Services to compare the daemon with: one in FastAPI, one with the official MCP SDK.

    REVIEWS_DATA=data uvicorn peers:fastapi_app     (or peers:sdk_app)

To be fair, these services fold texts and parse dates at load, decide about a 304 before
any other work, and validate no responses with a model. The SDK's server sends JSON
instead of event streams and has no sessions.
"""

import hashlib
import json
import os
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Response
from fastapi.middleware.gzip import GZipMiddleware
from mcp.server.mcpserver import MCPServer

DOCUMENT: dict[str, Any] = json.loads(
    Path(os.environ["REVIEWS_DATA"], "reviews.json").read_bytes()
)
REVIEWS = DOCUMENT["reviews"]
REVIEWS.sort(key=lambda review: (review["date"], review["id"]), reverse=True)
# A review, its day, its text for comparisons.
ENTRIES = [
    (review, date.fromisoformat(review["date"]), (review["text"] or "").casefold())
    for review in REVIEWS
]
ENCODED = json.dumps(DOCUMENT, ensure_ascii=False, separators=(",", ":")).encode()
HEADERS = {
    "ETag": f'"{hashlib.sha256(repr(REVIEWS).encode()).hexdigest()}"',
    "Cache-Control": "max-age=60",
}


async def conditional(
    response: Response, if_none_match: Annotated[str, Header()] = ""
) -> None:
    """Answer 304 to a client that holds the current data; else send the tag."""
    if HEADERS["ETag"] in if_none_match:
        raise HTTPException(304, headers=HEADERS)
    response.headers.update(HEADERS)


fastapi_app = FastAPI(dependencies=[Depends(conditional)])
fastapi_app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=6)
sdk = MCPServer("reviews")


@fastapi_app.get("/reviews.json")
async def reviews_document() -> dict[str, Any]:
    """The business and all its reviews."""
    return DOCUMENT


@fastapi_app.get("/reviews.bin")
async def encoded_document() -> Response:
    """The same document, encoded once."""
    return Response(ENCODED, media_type="application/json")


@fastapi_app.get("/api/reviews/search")
@sdk.tool()
async def search_reviews(
    query: str = "", min_rating: float = 1, since: date = date.min, limit: int = 20
) -> dict[str, Any]:
    """The newest reviews that pass every filter, their number and that of all."""
    needle = query.casefold()
    hits = [
        review
        for review, day, text in ENTRIES
        if review["rating"] >= min_rating and day >= since and needle in text
    ]
    return {
        "matched": len(hits),
        "returned": len(hits[:limit]),
        "reviews": hits[:limit],
    }


sdk_app = sdk.streamable_http_app(json_response=True, stateless_http=True)
