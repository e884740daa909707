"""What a user would write instead of the daemon: a FastAPI service and a server of the official MCP SDK.

    REVIEWS_DATA=data uvicorn peers:fastapi_app     (or peers:sdk_app)

Written to be fair: only what the bench asks for; texts are folded and dates parsed at load; functions are
`async def`, since nothing in them waits; a 304 is decided before any work; answers are dictionaries that need
no check against a model: with a declared return type FastAPI has Pydantic write their JSON, which was faster
than models of our own. The SDK's server answers JSON instead of event streams and has no sessions.
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
from pydantic import Field

DOCUMENT: dict[str, Any] = json.loads(Path(os.environ["REVIEWS_DATA"], "reviews.json").read_bytes())
DOCUMENT["reviews"].sort(key=lambda review: (review["date"], review["id"]), reverse=True)
TAG = f'"{hashlib.sha256(json.dumps(DOCUMENT).encode()).hexdigest()}"'
# Each review with what filters compare besides its keys: the day and the folded text.
ENTRIES = [
    (one, date.fromisoformat(one["date"]), (one["text"] or "").casefold()) for one in DOCUMENT["reviews"]
]


async def conditional(response: Response, if_none_match: Annotated[str | None, Header()] = None) -> None:
    """Answer 304 to a client that holds the current data; else send the tag to validate with."""
    headers = {"ETag": TAG, "Cache-Control": "public, max-age=60"}
    if if_none_match and TAG in if_none_match:
        raise HTTPException(304, headers=headers)
    response.headers.update(headers)


fastapi_app = FastAPI(dependencies=[Depends(conditional)])
fastapi_app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=6)
sdk = MCPServer("reviews")


@fastapi_app.get("/reviews.json")
async def reviews_document() -> dict[str, Any]:
    """The business and all its reviews."""
    return DOCUMENT


@fastapi_app.get("/api/reviews/search")
@sdk.tool()
async def search_reviews(
    query: str = "",
    min_rating: Annotated[float, Field(ge=1, le=5)] | None = None,
    since: date | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> dict[str, Any]:
    """`{"matched", "returned", "reviews"}`: the newest verified reviews that pass every filter."""
    found = ENTRIES
    if min_rating is not None:
        found = [entry for entry in found if entry[0]["rating"] >= min_rating]
    if since is not None:
        found = [entry for entry in found if entry[1] >= since]
    if needle := query.casefold():
        found = [entry for entry in found if needle in entry[2]]
    shown = [entry[0] for entry in found[offset : offset + limit]]
    return {"matched": len(found), "returned": len(shown), "reviews": shown}


sdk_app = sdk.streamable_http_app(json_response=True, stateless_http=True)
