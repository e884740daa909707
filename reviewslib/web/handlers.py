"""Handlers: from a request to its response, or to a content that is yet to be coded.

A response is made of one snapshot, which is immutable; a reload replaces the snapshot
by one assignment. The hub is the only other state that requests share. Which path leads
to which handler is in `routes`. This module must not know a socket, flag, thread or
server; hub and MCP are passed in.

Sections: the instance - calls - what is made at load - data - pages - health - MCP and
the hub - the service as a whole - refusals.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple, NoReturn, Protocol
from urllib.parse import parse_qsl

from reviewslib import links
from reviewslib.dataset.moments import text_of_seconds
from reviewslib.dataset.query import (
    BadQuery,
    echo,
    forgiving_values,
    query_from_pairs,
    query_of_page,
)
from reviewslib.dataset.reviews import NEWEST_REVIEWS, Dataset
from reviewslib.dataset.searching import in_any_order, search, since
from reviewslib.dataset.strict_json import Json, encode
from reviewslib.mcp_tools import Toolbox
from reviewslib.messages import (
    ATOM_TYPE,
    CACHEABLE,
    CORS,
    HTML_TYPE,
    JSON_TYPE,
    VARY_BY_TYPE,
    GetHeader,
    Headers,
    Request,
    Response,
    prefers_html,
    prefers_json,
    prefers_markdown,
    preflight,
    uncacheable,
    utf8_text,
)
from reviewslib.release import VERSION
from reviewslib.web.embed import frame
from reviewslib.web.errors import (
    HttpError,
    json_error,
    method_not_allowed,
    text_line,
)
from reviewslib.web.feeds import search_feed
from reviewslib.web.fixed_contents import DIRECTORY, MARKDOWN
from reviewslib.web.list_page import (
    PAGE_SIZE,
    beyond_page,
    filter_values,
    invalid_list_page,
    last_page,
    list_page,
)
from reviewslib.web.newest_export import newest_export
from reviewslib.web.program_files import ProgramFiles
from reviewslib.web.reload import Reloader
from reviewslib.web.representations import Content, negotiated
from reviewslib.web.review_page import review_page
from reviewslib.web.snapshot import Snapshot

# ---- The instance: what requests share ----


class HubEndpoint(Protocol):
    """The part of a hub that requests use. Thread-safe."""

    def answer(self, content_type: str | None, body: bytes) -> tuple[int, str, Headers]:
        """The response to a POST: status, a line of text and more headers.

        Waits for the disk.
        """

    def trouble(self) -> str | None:
        """The reason why subscriptions are not stored; None if they are."""

    def counts(self) -> dict[str, int]:
        """The numbers of subscriptions and requests by state."""


class McpEndpoint(Protocol):
    """The part of MCP that requests use. Thread-safe."""

    def handle(
        self, method: str, get_header: GetHeader, body: bytes, toolbox: Toolbox
    ) -> Response:
        """The response to a request."""

    def refusal(
        self, status: HTTPStatus, message: str, get_header: GetHeader
    ) -> Response:
        """The response to a request that is refused before `handle`."""


class Instance(Protocol):
    """The parts of a running service that handlers need. Thread-safe."""

    program: ProgramFiles
    reloader: Reloader
    mcp: McpEndpoint
    # None where another instance runs it.
    hub: HubEndpoint | None
    # By the monotonic clock.
    started_at: float

    def state(self) -> str:
        """The state for monitors, in a word."""


# ---- Calls: a request, and what it is answered from ----


class Call(NamedTuple):
    """A request, the instance that it reached, and the snapshot of that moment."""

    instance: Instance
    snapshot: Snapshot
    request: Request

    @property
    def program(self) -> ProgramFiles:
        """The files of the program."""
        return self.instance.program

    @property
    def accept(self) -> str | None:
        """The media types that the client accepts."""
        return self.request.header("accept")

    def page(self, body: bytes) -> Content:
        """The content of an HTML page."""
        return Content(body, HTML_TYPE, policy=self.program.policies[links.HOME_PATH])

    def error_page(self, status: int, body: bytes, headers: Headers = ()) -> Response:
        """An HTML page that says what went wrong."""
        policy = self.program.policies[links.HOME_PATH]
        return uncacheable(status, HTML_TYPE, body, (*headers, *policy))


def query_pairs(request: Request) -> list[tuple[str, str]]:
    """The decoded names and values of the query string, in its order."""
    return parse_qsl(
        utf8_text(request.query_string),
        keep_blank_values=True,
        errors="surrogateescape",
    )


# ---- What is made at load ----


def fixed_response(call: Call) -> Response:
    """A representation that was made when the snapshot was loaded."""
    request = call.request
    return negotiated(call.snapshot.fixed[request.path], request.header)


def card_response(call: Call) -> Response:
    """A card or the host's catalogue; an unknown path where the host has no name."""
    if call.request.path in call.snapshot.fixed:
        return fixed_response(call)
    return unknown_path_response(call)


def home_response(call: Call) -> Response:
    """The home page; for a client that prefers it, the same as JSON or as Markdown."""
    key = links.HOME_PATH
    if prefers_json(call.accept):
        key = DIRECTORY
    elif prefers_markdown(call.accept):
        key = MARKDOWN
    return negotiated(call.snapshot.fixed[key], call.request.header)


# ---- Data ----


def search_content(call: Call) -> Content:
    """The reviews that match the query string. Raises BadQuery."""
    parameters = call.program.contract.search_parameters
    query = query_from_pairs(parameters, query_pairs(call.request))
    return Content(search(call.snapshot.dataset, query).encoded(), JSON_TYPE)


# Every search has a feed; a search engine that found some would ask for ever more.
NOT_INDEXED: Headers = (("X-Robots-Tag", "noindex"),)


def search_feed_content(call: Call) -> Content:
    """The newest reviews that match the query string, as a feed. Raises BadQuery."""
    parameters = call.program.contract.feed_parameters
    query = query_from_pairs(parameters, query_pairs(call.request))
    body = search_feed(
        call.snapshot.site,
        filters=filter_values(query),
        found=search(call.snapshot.dataset, replace(query, limit=NEWEST_REVIEWS)),
        updated_when_empty=datetime.fromtimestamp(call.snapshot.last_modified, UTC),
    )
    return Content(body, ATOM_TYPE, policy=NOT_INDEXED)


def since_content(call: Call) -> Content:
    """The reviews since the day that ends the path. Raises BadQuery.

    They are slices of the document of all reviews: nothing is copied.
    """
    dataset = call.snapshot.dataset
    day = call.request.path.removeprefix(links.SINCE_PATH)
    pieces = since(dataset, day)
    return Content(
        body=[memoryview(piece) for piece in pieces],
        content_type=JSON_TYPE,
        # The reviews of a day are a prefix of all reviews, and the head has the day and
        # their number, so that the bytes themselves need not be hashed.
        digest=hashlib.sha256(dataset.reviews_digest + pieces.head).hexdigest(),
    )


# ---- Pages ----


def list_content(call: Call) -> Content | Response:
    """A page of the list of reviews, or its error page.

    Parameters that the list does not know are ignored: visitors bring `utm_source`.
    """
    site = call.snapshot.site
    parameters = call.program.contract.list_parameters
    pairs = [pair for pair in query_pairs(call.request) if pair[0] in parameters]
    try:
        query = query_of_page(parameters, pairs, PAGE_SIZE)
    except BadQuery as bad:
        return call.error_page(400, invalid_list_page(site, pairs, bad))
    result = in_any_order(site.dataset, query)
    if query.offset and not result.reviews:
        return call.error_page(404, beyond_page(site, query, last_page(result)))
    return call.page(list_page(site, query, result))


def slash_response(call: Call) -> Response:
    """A redirect from `/reviews/` to `/reviews`."""
    location = call.snapshot.site.paths.review_list
    if call.request.query_string:
        location = f"{location}?{call.request.query_string}"
    return Response(308, (CACHEABLE, *CORS, ("Location", location)), b"")


VARIES_BY_TYPE: Headers = (("Vary", VARY_BY_TYPE),)


def review_content(call: Call) -> Content | Response:
    """The review whose id ends the path: a page, or JSON for clients that prefer it."""
    id = call.request.path.removeprefix(links.REVIEW_PATH)
    review = call.snapshot.dataset.reviews_by_id.get(id)
    if review is None:
        return unknown_review_response(call, id)
    if prefers_json(call.accept):
        return Content([review.json], JSON_TYPE, vary=VARY_BY_TYPE)
    page = call.page(review_page(call.snapshot.site, review))
    return page._replace(vary=VARY_BY_TYPE)


def unknown_review_response(call: Call, id: str) -> Response:
    """The 404 page. Raises HttpError 404 for a client that prefers JSON."""
    if prefers_json(call.accept):
        raise HttpError(404, f"No review has the id {echo(id)}.", VARIES_BY_TYPE)
    body = call.snapshot.error_pages.unknown_review
    return call.error_page(404, body, VARIES_BY_TYPE)


def embed_content(call: Call) -> Content:
    """The frame for the owner's website; invalid parameters count as absent."""
    parameters = call.program.contract.embed_parameters
    values = forgiving_values(parameters, query_pairs(call.request))
    body = frame(call.snapshot.site, **values)
    return Content(body, HTML_TYPE, policy=call.program.policies[links.EMBED_PATH])


def no_frame_response(call: Call) -> NoReturn:
    """Raises HttpError 404, also for browsers, which show no page inside a frame."""
    raise HttpError(404, f"There is no frame at {echo(call.request.path)}.")


# ---- Health ----


def health_response(call: Call) -> Response:
    """The state of the service, for monitoring; not part of the contract."""
    instance = call.instance
    health = {
        "status": instance.state(),
        "version": VERSION,
        "uptime_seconds": round(time.monotonic() - instance.started_at),
        **_health_of_data(call.snapshot.dataset),
        **_health_of_hub(instance.hub),
        "newest_export": newest_export(instance.reloader.directory),
        "last_modified": text_of_seconds(call.snapshot.last_modified),
        "digests": _digests_of_data(call.snapshot),
        "last_reload_error": instance.reloader.error,
    }
    return uncacheable(200, JSON_TYPE, encode(health))


def _health_of_data(dataset: Dataset) -> dict[str, Any]:
    insights = dataset.insights
    return {
        "reviews": _health_of_reviews(dataset),
        "insights": {key: insights[key] for key in ("review_count", "generated_at")},
    }


def _digests_of_data(snapshot: Snapshot) -> dict[str, str]:
    return {path: snapshot.fixed[path].digest for path in links.DATA_PATHS}


def _health_of_reviews(dataset: Dataset) -> dict[str, Json]:
    health: dict[str, Json] = {
        "count": len(dataset.reviews),
        "unverified_left_out": dataset.unverified_count,
        "earliest": None,
        "latest": None,
    }
    if dataset.reviews:
        # Newest first.
        health["earliest"] = dataset.reviews[-1].day
        health["latest"] = dataset.reviews[0].day
    return health


HUB_ELSEWHERE = "the hub does not run on this instance"


def _health_of_hub(hub: HubEndpoint | None) -> dict[str, Any]:
    if hub is None:
        return {"hub": HUB_ELSEWHERE, "subscriptions": None}
    return {"hub": hub.trouble() or "here", "subscriptions": hub.counts()}


# ---- MCP and the hub ----


def mcp_response(call: Call) -> Response:
    """The response of the MCP endpoint, which checks methods and origins itself."""
    request = call.request
    return call.instance.mcp.handle(
        request.method, request.header, request.body, call.snapshot.toolbox
    )


def hub_response(call: Call) -> Response:
    """The hub's response to a subscriber. Waits for the disk."""
    hub = call.instance.hub
    if hub is None:
        raise HttpError(404, HUB_ELSEWHERE)
    answer = hub.answer(call.request.header("content-type"), call.request.body)
    return text_line(*answer)


# ---- The service as a whole ----

SERVER_METHODS = ("GET", "HEAD", "POST", "OPTIONS")


def server_response(call: Call) -> Response:
    """The methods of the whole service, for `OPTIONS *` (RFC 9110 section 9.3.7)."""
    if call.request.method != "OPTIONS":
        raise method_not_allowed(call.request.method, "OPTIONS")
    return options_response(SERVER_METHODS)


def options_response(methods: Iterable[str]) -> Response:
    """The answer to OPTIONS: pages of all origins may use these methods."""
    return Response(204, (*CORS, *preflight(", ".join(methods))), b"")


def unknown_path_response(call: Call) -> Response:
    """The 404 page for a client that prefers HTML. Raises HttpError 404 for others."""
    if prefers_html(call.accept):
        body = call.snapshot.error_pages.unknown_path
        return call.error_page(404, body, VARIES_BY_TYPE)
    path = echo(call.request.path)
    detail = f"There is nothing at {path}. {links.CONTRACT_PATH} lists the endpoints."
    raise HttpError(404, detail, VARIES_BY_TYPE)


# ---- Refusals: how the errors of a route look ----


def json_refusal(call: Call, error: HttpError) -> Response:
    """The format of every route that has none of its own."""
    return json_error(error)


def embed_refusal(call: Call, error: HttpError) -> Response:
    """The frame that visitors of the owner's website see after an error."""
    policy = call.program.policies[links.EMBED_PATH]
    body = call.snapshot.error_pages.refused_frame
    return uncacheable(error.status, HTML_TYPE, body, (*policy, *error.headers))


def mcp_refusal(call: Call, error: HttpError) -> Response:
    """The JSON-RPC error for a request that does not reach the endpoint."""
    status = HTTPStatus(error.status)
    refusal = call.instance.mcp.refusal(status, error.detail, call.request.header)
    return refusal._replace(headers=refusal.headers + error.headers)


def hub_refusal(call: Call, error: HttpError) -> Response:
    """An error as a line of plain text, like the hub's own (WebSub section 5.1.2)."""
    return text_line(error.status, error.detail, error.headers)
