"""The WSGI application (PEP 3333): routes, their handlers, and the response to a request.

A response is made of one snapshot, which is immutable; a reload replaces the snapshot by
one assignment. The hub is the only other state that requests share. This module must not
know a socket, signal, flag, file, thread or server; hub and MCP are passed in.

Sections: requests - calls - handlers - refusals - routes - responses - the application.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache, partial
from http import HTTPStatus
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl

from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.wsgi import get_input_stream

from reviewslib import links
from reviewslib.dataset.moments import text_of_seconds
from reviewslib.dataset.query import (
    BadQuery,
    echo,
    forgiving_values,
    query_from_pairs,
    query_of_page,
)
from reviewslib.dataset.reviews import NEWEST_REVIEWS
from reviewslib.dataset.searching import in_any_order, search, since
from reviewslib.dataset.strict_json import Json, encode
from reviewslib.mcp_tools import Toolbox
from reviewslib.messages import (
    ATOM_TYPE,
    CACHEABLE,
    CORS,
    HTML_TYPE,
    JSON_TYPE,
    KEPT_VALUES,
    LARGEST_BODY_BYTES,
    LONGEST_FIELD,
    VARY_BY_TYPE,
    GetHeader,
    Headers,
    Request,
    Response,
    accepts_gzip,
    joined,
    prefers_html,
    prefers_json,
    prefers_markdown,
    size_of,
    uncacheable,
)
from reviewslib.release import VERSION
from reviewslib.web.embed import frame
from reviewslib.web.errors import (
    HttpError,
    bad_host,
    bad_parameters,
    json_error,
    method_not_allowed,
    text_line,
)
from reviewslib.web.feeds import search_feed
from reviewslib.web.list_page import (
    PAGE_SIZE,
    beyond_page,
    filter_values,
    invalid_list_page,
    last_page,
    list_page,
)
from reviewslib.web.newest_export import newest_export
from reviewslib.web.reload import Reloader
from reviewslib.web.representations import Content, negotiated, represent_computed
from reviewslib.web.review_page import decoded, review_page
from reviewslib.web.snapshot import (
    DIRECTORY,
    MARKDOWN,
    CacheKey,
    ProgramFiles,
    Snapshot,
)

log = logging.getLogger("reviewsd")


# ---- Requests ----

# RFC 3986 sections 3.2.2 and 3.2.3, but not empty, and without commas: a comma means a
# repeated header.
REG_NAME = r"(?:[\w.~!$&'()*+;=-]|%[0-9A-F]{2})+"
IP_LITERAL = r"\[(?:(?P<ipv6>[0-9A-F:.]+)|V[0-9A-F]+\.[\w.~!$&'()*+;=:-]+)\]"
HOST = re.compile(f"(?:{REG_NAME}|{IP_LITERAL})(?::[0-9]*)?", re.ASCII | re.IGNORECASE)


@lru_cache(maxsize=KEPT_VALUES)
def is_host(text: str) -> bool:
    """Whether a short text is a valid value of `Host` (RFC 9110 section 7.2)."""
    match = HOST.fullmatch(text)
    if match is None:
        return False
    if not match["ipv6"]:
        return True
    try:
        IPv6Address(match["ipv6"])
    except ValueError:
        return False
    return True


def check_host(request: Request) -> None:
    """Raise HttpError 400 for a bad `Host`, or none in HTTP/1.1 (RFC 9112 section 3.2)."""
    # An ASGI server may pass an absent Host as an empty one.
    host = request.header("host") or ""
    if not host and request.http_version != "1.1":
        return
    # No name of a host is longer than 255 characters (RFC 1035 section 2.3.4), and the
    # cache of `is_host` must not keep long ones.
    if len(host) <= LONGEST_FIELD and is_host(host):
        return
    raise bad_host(host)


def request_of(environ: dict[str, Any]) -> Request:
    """The request in a WSGI environ (PEP 3333), without its body.

    The strings of an environ have a character for each byte.
    """
    return Request(
        method=environ["REQUEST_METHOD"],
        path=utf8_text(environ.get("PATH_INFO", "")),
        query_string=environ.get("QUERY_STRING", ""),
        header=partial(_header_of, environ),
        http_version=environ["SERVER_PROTOCOL"].removeprefix("HTTP/"),
    )


def _header_of(environ: dict[str, Any], name: str) -> str | None:
    key = name.upper().replace("-", "_")
    if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        key = f"HTTP_{key}"
    value: str | None = environ.get(key)
    return value


def utf8_text(latin: str) -> str:
    """Decode the UTF-8 bytes that are the characters of `latin`.

    Invalid bytes become lone surrogates.
    """
    return latin.encode("latin-1").decode("utf-8", "surrogateescape")


def query_pairs(request: Request) -> list[tuple[str, str]]:
    """The decoded names and values of the query string, in its order."""
    return parse_qsl(
        utf8_text(request.query_string),
        keep_blank_values=True,
        errors="surrogateescape",
    )


# ---- Calls: a request, and what it is answered from ----


class Call(NamedTuple):
    """A request, the application that it reached, and the snapshot of that moment."""

    application: Application
    snapshot: Snapshot
    request: Request

    @property
    def program(self) -> ProgramFiles:
        """The files of the program."""
        return self.application.program

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


# ---- Handlers: from a call to a response, or to a content that is yet to be coded ----


def fixed_response(call: Call) -> Response:
    """A representation that was made when the snapshot was loaded."""
    request = call.request
    return negotiated(call.snapshot.fixed[request.path], request.header)


def card_response(call: Call) -> Response:
    """The same; without a name of the host, the answer to an unknown path."""
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
    dataset = call.snapshot.dataset
    query = query_from_pairs(parameters, query_pairs(call.request))
    found = search(dataset, replace(query, limit=NEWEST_REVIEWS))
    body = search_feed(
        dataset,
        call.snapshot.site.urls,
        filters=filter_values(query),
        reviews=[decoded(review) for review in found.reviews],
        updated_when_empty=datetime.fromtimestamp(call.snapshot.last_modified, UTC),
        language=call.snapshot.site.language,
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
    """The review whose id ends the path: a page, or JSON for a client that prefers it."""
    id = call.request.path.removeprefix(links.REVIEW_PATH)
    review = call.snapshot.dataset.reviews_by_id.get(id)
    is_json = prefers_json(call.accept)
    if review is None and is_json:
        raise HttpError(404, f"No review has the id {echo(id)}.", VARIES_BY_TYPE)
    if review is None:
        body = call.snapshot.error_pages.unknown_review
        return call.error_page(404, body, VARIES_BY_TYPE)
    if is_json:
        return Content([review.json], JSON_TYPE, vary=VARY_BY_TYPE)
    page = call.page(review_page(call.snapshot.site, review))
    return page._replace(vary=VARY_BY_TYPE)


def embed_content(call: Call) -> Content:
    """The frame for the owner's website; invalid parameters count as absent."""
    parameters = call.program.contract.embed_parameters
    values = forgiving_values(parameters, query_pairs(call.request))
    body = frame(call.snapshot.site, **values)
    return Content(body, HTML_TYPE, policy=call.program.policies[links.EMBED_PATH])


def health_response(call: Call) -> Response:
    """The state of the service, for monitoring; not part of the contract."""
    application = call.application
    hub = application.hub
    insights = call.snapshot.dataset.insights
    fixed = call.snapshot.fixed
    health = {
        "status": application.state(),
        "version": VERSION,
        "uptime_seconds": round(time.monotonic() - application.started_at),
        "reviews": _health_of_reviews(call.snapshot),
        "insights": {key: insights[key] for key in ("review_count", "generated_at")},
        "hub": HUB_ELSEWHERE,
        "subscriptions": None,
        "newest_export": newest_export(application.reloader.directory),
        "last_modified": text_of_seconds(call.snapshot.last_modified),
        "digests": {path: fixed[path].digest for path in links.DATA_PATHS},
        "last_reload_error": application.reloader.error,
    }
    if hub:
        health["hub"] = hub.trouble() or "here"
        health["subscriptions"] = hub.counts()
    return uncacheable(200, JSON_TYPE, encode(health))


def _health_of_reviews(snapshot: Snapshot) -> dict[str, Json]:
    dataset = snapshot.dataset
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


def mcp_response(call: Call) -> Response:
    """The response of the MCP endpoint, which checks methods and origins itself."""
    request = call.request
    return call.application.mcp.handle(
        request.method, request.header, request.body, call.snapshot.toolbox
    )


def hub_response(call: Call) -> Response:
    """The hub's response to a subscriber. Waits for the disk."""
    hub = call.application.hub
    if hub is None:
        raise HttpError(404, HUB_ELSEWHERE)
    answer = hub.answer(call.request.header("content-type"), call.request.body)
    return text_line(*answer)


def server_response(call: Call) -> Response:
    """The methods of the service as a whole, for `OPTIONS *` (RFC 9110 section 9.3.7)."""
    if call.request.method != "OPTIONS":
        raise method_not_allowed(call.request.method, "OPTIONS")
    return options_response(SERVER_METHODS)


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
    refusal = call.application.mcp.refusal(status, error.detail, call.request.header)
    return refusal._replace(headers=refusal.headers + error.headers)


def hub_refusal(call: Call, error: HttpError) -> Response:
    """An error as a line of plain text, like the hub's own (WebSub section 5.1.2)."""
    return text_line(error.status, error.detail, error.headers)


# ---- Routes: where a handler runs, and by what its contents are cached ----

READ_METHODS = ("GET", "HEAD", "OPTIONS")
SERVER_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
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


prepared = partial(Route, runs=Runs.AT_ONCE)
computed = partial(Route, runs=Runs.COMPUTING)
stored = partial(Route, runs=Runs.ON_DISK)


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
    links.HOME_PATH: prepared(home_response),
    **dict.fromkeys(links.FIXED_PATHS, prepared(fixed_response)),
    **dict.fromkeys(links.CARD_PATHS, prepared(card_response)),
    links.SEARCH_PATH: computed(search_content, variant=by_query),
    links.SEARCH_FEED_PATH: computed(search_feed_content, variant=by_query),
    links.SINCE_PATH + "{date}": computed(since_content, variant=by_path),
    links.REVIEW_LIST_PATH: computed(list_content, variant=by_query),
    links.REVIEW_PATH: prepared(slash_response),
    links.REVIEW_PATH + "{id}": computed(review_content, variant=by_type),
    links.EMBED_PATH: computed(embed_content, variant=by_query, refuse=embed_refusal),
    # A frame with a wrong address shows a frame, not JSON, on the owner's website.
    links.EMBED_PATH + "/{rest}": prepared(unknown_path_response, refuse=embed_refusal),
    links.HEALTH_PATH: prepared(health_response),
    links.MCP_PATH: MCP_ROUTE,
    # Some clients add the slash.
    links.MCP_PATH + "/": MCP_ROUTE,
    links.HUB_PATH: stored(
        hub_response, methods=("POST", "OPTIONS"), refuse=hub_refusal
    ),
    "*": prepared(server_response, methods=ANY_METHOD),
    "{path}": prepared(unknown_path_response, methods=ANY_METHOD),
}
PREFIXES = [
    (path.partition("{")[0], route) for path, route in ROUTES.items() if "{" in path
]


def route_of(path: str) -> Route:
    """The route of a path."""
    if path in ROUTES:
        return ROUTES[path]
    return next(route for prefix, route in PREFIXES if path.startswith(prefix))


# ---- Responses: the two steps of the application ----


def response_at_hand(call: Call, route: Route) -> Response | None:
    """The response, unless the handler must run and takes its time. Raises HttpError."""
    request = call.request
    check_host(request)
    if route.methods and request.method not in route.methods:
        raise method_not_allowed(request.method, ", ".join(route.methods))
    if route.methods and request.method == "OPTIONS":
        return options_response(route.methods)
    if route.runs is Runs.AT_ONCE:
        return made_response(call, route)
    if route.variant is None:
        return None
    cached = call.snapshot.cache.get(cache_key(call, route.variant))
    if cached is None:
        return None
    return negotiated(cached, request.header)


def made_response(call: Call, route: Route) -> Response:
    """The response of the handler, whose content is kept. Raises what that raises."""
    content = route.handler(call)
    if isinstance(content, Response):
        return content
    is_gzip = accepts_gzip(call.request.header("accept-encoding"))
    modified = call.snapshot.last_modified
    representation = represent_computed(content, modified, is_gzip)
    if route.variant:
        call.snapshot.cache.add(cache_key(call, route.variant), representation)
    return negotiated(representation, call.request.header)


def cache_key(call: Call, variant: Variant) -> CacheKey:
    """Under which the content for a call is cached."""
    return CacheKey(
        path=call.request.path,
        variant=variant(call),
        is_gzip=accepts_gzip(call.request.header("accept-encoding")),
    )


def options_response(methods: Iterable[str]) -> Response:
    """The allowed methods, for programs and for preflights of browsers (Fetch standard)."""
    allowed = ", ".join(methods)
    preflight = (
        ("Access-Control-Allow-Methods", allowed),
        # Libraries add fields of their own (Cache-Control, X-Requested-With,
        # traceparent). `*` means all but Authorization, which we ignore.
        ("Access-Control-Allow-Headers", "*, Authorization"),
        ("Access-Control-Max-Age", "86400"),
    )
    return Response(204, (*CORS, ("Allow", allowed), *preflight), b"")


NO_SNIFFING = ("X-Content-Type-Options", "nosniff")


def complete(request: Request, response: Response) -> Response:
    """Add the common headers; drop the body for HEAD."""
    status, headers, body = response
    headers = (*headers, NO_SNIFFING)
    # These have no length (RFC 9110 section 8.6).
    if status not in (204, 304):
        headers = (*headers, ("Content-Length", str(size_of(body))))
    if request.method == "HEAD":
        body = b""
    return Response(status, headers, body)


def http_error_of(error: Exception, request: Request) -> HttpError:
    """What a client is told of an exception; an unexpected one is logged with an id."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, BadQuery):
        return bad_parameters(error)
    request_id = secrets.token_hex(8)
    message = "request %s: %s %r failed"
    log.error(message, request_id, request.method, request.path, exc_info=error)
    return HttpError(
        status=500,
        detail=f"An internal error, logged as request {request_id}.",
        members={"request_id": request_id},
    )


# ---- The application: thread-safe ----

HUB_ELSEWHERE = "the hub does not run on this instance"


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


# What a step gives: the second one always has a response.
Result = TypeVar("Result", bound=Response | None)


class Application:
    """The WSGI application, and what a server asks that runs handlers on threads.

    Its methods raise nothing.
    """

    def __init__(self, reloader: Reloader, urls: links.ServiceUrls, mcp: McpEndpoint):
        self.reloader = reloader
        self.program = reloader.program
        self.urls = urls
        self.mcp = mcp
        self.hub: HubEndpoint | None = None
        self.started_at = time.monotonic()

    @property
    def snapshot(self) -> Snapshot:
        """The current snapshot; a response is made of one."""
        return self.reloader.snapshot

    def state(self) -> str:
        """The state for monitors: stale data weigh more than a hub without a store."""
        if self.reloader.error:
            return "stale"
        if self.hub and self.hub.trouble():
            return "degraded"
        return "ok"

    def prepared(self, request: Request) -> Response | None:
        """The response that is at hand; None if `respond` must make it, on a thread."""
        return self._answered(request, response_at_hand)

    def respond(self, request: Request) -> Response:
        """The response to a request; may take its time."""
        # A request that waited may find what another one has made meanwhile.
        response = self.prepared(request)
        if response is None:
            return self._answered(request, made_response)
        return response

    def waits_for_disk(self, request: Request) -> bool:
        """Whether `respond` waits for the disk, and not for the processor."""
        return route_of(request.path).runs is Runs.ON_DISK

    def refuse(
        self, request: Request, status: int, detail: str, headers: Headers = ()
    ) -> Response:
        """The response to a request that the server refuses before `respond`."""
        call = Call(self, self.snapshot, request)
        error = HttpError(status, detail, headers)
        return complete(request, route_of(request.path).refuse(call, error))

    def _answered(
        self, request: Request, step: Callable[[Call, Route], Result]
    ) -> Result | Response:
        """What a step gives, or the error response for its exception."""
        call = Call(self, self.snapshot, request)
        route = route_of(request.path)
        try:
            response = step(call, route)
        except Exception as error:
            refusal = route.refuse(call, http_error_of(error, request))
            return complete(request, refusal)
        if response is None:
            return response
        return complete(request, response)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a WSGI server."""
        response = self._response_to(request_of(environ), environ)
        phrase = HTTPStatus(response.status).phrase
        start_response(f"{response.status} {phrase}", list(response.headers))
        return [joined(response.body)]

    def _response_to(self, request: Request, environ: dict[str, Any]) -> Response:
        """The response to a request whose body is still to be read."""
        try:
            stream = get_input_stream(environ, max_content_length=LARGEST_BODY_BYTES)
            body = stream.read()
        except RequestEntityTooLarge:
            detail = f"The body is larger than {LARGEST_BODY_BYTES} bytes."
            return self.refuse(request, 413, detail)
        except ClientDisconnected:
            detail = "The body is shorter than its Content-Length."
            return self.refuse(request, 400, detail)
        return self.respond(request._replace(body=body))
