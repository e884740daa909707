"""Routes: which handler answers a path, where it runs, and what is cached of it.

The table is the only one: what is not in it is not served. This module must not know
what a handler does.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import NamedTuple

from reviewslib import links
from reviewslib.messages import Response, prefers_json
from reviewslib.web.errors import HttpError
from reviewslib.web.handlers import (
    Call,
    card_response,
    embed_content,
    embed_refusal,
    fixed_response,
    health_response,
    home_response,
    hub_refusal,
    hub_response,
    json_refusal,
    list_content,
    mcp_refusal,
    mcp_response,
    no_frame_response,
    review_content,
    search_content,
    search_feed_content,
    server_response,
    since_content,
    slash_response,
    unknown_path_response,
)
from reviewslib.web.representations import Content

READ_METHODS = ("GET", "HEAD", "OPTIONS")
# The handler checks the method.
ANY_METHOD = ()


class Runs(Enum):
    """Where a handler runs."""

    AT_ONCE = "on the event loop: all it needs is prepared"
    COMPUTING = "on the computing thread"
    ON_DISK = "on the thread that waits for the disk"


Handler = Callable[[Call], Response | Content]
Refusal = Callable[[Call, HttpError], Response]
# Tells apart the contents of one path.
Variant = Callable[[Call], str]


class Route(NamedTuple):
    """What answers a path: its handler, where that runs, and what is cached."""

    handler: Handler
    runs: Runs
    # None: nothing is cached.
    variant: Variant | None = None
    methods: tuple[str, ...] = READ_METHODS
    refuse: Refusal = json_refusal


at_once = partial(Route, runs=Runs.AT_ONCE)
computed = partial(Route, runs=Runs.COMPUTING)
on_disk = partial(Route, runs=Runs.ON_DISK)


def by_path(call: Call) -> str:
    """The path says all."""
    return ""


def by_query(call: Call) -> str:
    """Another query string is another content."""
    return call.request.query_string


def by_type(call: Call) -> str:
    """JSON for a client that prefers it, else a page."""
    return "json" if prefers_json(call.accept) else "page"


MCP_ROUTE = computed(mcp_response, methods=ANY_METHOD, refuse=mcp_refusal)

# By path as the contract writes it; a name in braces stands for the rest of the path.
# Exact paths go first, then the rows with braces in this order.
ROUTES: dict[str, Route] = {
    links.HOME_PATH: at_once(home_response),
    **dict.fromkeys(links.FIXED_PATHS, at_once(fixed_response)),
    **dict.fromkeys(links.CARD_PATHS, at_once(card_response)),
    links.SEARCH_PATH: computed(search_content, variant=by_query),
    links.SEARCH_FEED_PATH: computed(search_feed_content, variant=by_query),
    links.SINCE_PATH + "{date}": computed(since_content, variant=by_path),
    links.REVIEW_LIST_PATH: computed(list_content, variant=by_query),
    links.REVIEW_PATH: at_once(slash_response),
    links.REVIEW_PATH + "{id}": computed(review_content, variant=by_type),
    links.EMBED_PATH: computed(embed_content, variant=by_query, refuse=embed_refusal),
    # A frame with a wrong address shows a frame, not JSON, on the owner's website.
    links.EMBED_PATH + "/{rest}": at_once(no_frame_response, refuse=embed_refusal),
    links.HEALTH_PATH: at_once(health_response),
    links.MCP_PATH: MCP_ROUTE,
    # Some clients add the slash.
    links.MCP_PATH + "/": MCP_ROUTE,
    links.HUB_PATH: on_disk(
        hub_response, methods=("POST", "OPTIONS"), refuse=hub_refusal
    ),
    "*": at_once(server_response, methods=ANY_METHOD),
    "{path}": at_once(unknown_path_response, methods=ANY_METHOD),
}
PREFIXES = [
    (path.partition("{")[0], route) for path, route in ROUTES.items() if "{" in path
]


def route_of(path: str) -> Route:
    """The route of a path."""
    if path in ROUTES:
        return ROUTES[path]
    return next(route for prefix, route in PREFIXES if path.startswith(prefix))
