"""The WSGI application (PEP 3333): routes, their handlers, and the response to a request.

A request takes the current snapshot and is answered from that immutable object; a
reload replaces the snapshot by one assignment. The hub is the only other state that
requests share. This module knows no socket, signal, flag, file, thread or server;
hub and MCP are passed in.

Sections: requests - contents - handlers - routes - the application.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl

from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.wsgi import get_input_stream

from reviewslib import links
from reviewslib.dataset.query import (
    BadQuery,
    echo,
    forgiving_values,
    query_from_pairs,
    query_of_page,
)
from reviewslib.dataset.reviews import in_any_order, search, since
from reviewslib.dataset.strict_json import encode
from reviewslib.mcp_tools import Toolbox
from reviewslib.messages import (
    CACHEABLE,
    CORS,
    HTML_TYPE,
    JSON_TYPE,
    LARGEST_BODY_BYTES,
    VARY_BY_CODING,
    VARY_BY_TYPE,
    Body,
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
from reviewslib.web import representations, review_page
from reviewslib.web.embed import frame, refused_frame
from reviewslib.web.errors import (
    HttpError,
    bad_host,
    bad_parameters,
    json_error,
    method_not_allowed,
    text_line,
)
from reviewslib.web.list_page import (
    PAGE_SIZE,
    beyond_page,
    invalid_list_page,
    last_page,
    list_page,
)
from reviewslib.web.reload import Reloader, utc_text
from reviewslib.web.representations import Representation, negotiated, represent
from reviewslib.web.snapshot import DIRECTORY, MARKDOWN, ComputedKey, Snapshot

VERSION = "1.0.0"

log = logging.getLogger("reviewsd")


# ---- Requests ----

# RFC 3986 sections 3.2.2 and 3.2.3, but not empty, and without commas: a comma means a repeated header.
REG_NAME = r"(?:[\w.~!$&'()*+;=-]|%[0-9A-F]{2})+"
IP_LITERAL = r"\[(?:(?P<ipv6>[0-9A-F:.]+)|V[0-9A-F]+\.[\w.~!$&'()*+;=:-]+)\]"
HOST = re.compile(f"(?:{REG_NAME}|{IP_LITERAL})(?::[0-9]*)?", re.ASCII | re.IGNORECASE)


# Of as many hosts is it remembered whether they are valid: a service has a few names.
@lru_cache(maxsize=256)
def is_host(text: str) -> bool:
    """Whether `text` is a valid value of `Host` (RFC 9110 section 7.2)."""
    match = HOST.fullmatch(text)
    if not match:
        return False
    if match["ipv6"]:
        try:
            IPv6Address(match["ipv6"])
        except ValueError:
            return False
    return True


def check_host(request: Request) -> None:
    """Raises HttpError 400 for a bad `Host`.

    A missing one is bad in HTTP/1.1 (RFC 9112 section 3.2).
    """
    # An ASGI server may pass an absent Host as an empty one.
    host = request.header("host") or ""
    if not host and request.http_version != "1.1":
        return
    if not is_host(host):
        raise bad_host(host)


def request_of(environ: dict[str, Any]) -> Request:
    """The request in a WSGI environ, without its body.

    The strings of an environ have a character for each byte (PEP 3333).
    """

    def header(name: str) -> str | None:
        key = name.upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        value: str | None = environ.get(key)
        return value

    return Request(
        method=environ["REQUEST_METHOD"],
        path=utf8_text(environ.get("PATH_INFO", "")),
        query_string=environ.get("QUERY_STRING", ""),
        header=header,
        http_version=environ["SERVER_PROTOCOL"].removeprefix("HTTP/"),
    )


def utf8_text(latin: str) -> str:
    """Decode the UTF-8 bytes that are the characters of `latin`.

    Invalid bytes become lone surrogates.
    """
    return latin.encode("latin-1").decode("utf-8", "surrogateescape")


def query_pairs(request: Request) -> list[tuple[str, str]]:
    """The decoded names and values of the query string."""
    return parse_qsl(
        utf8_text(request.query_string),
        keep_blank_values=True,
        errors="surrogateescape",
    )


# ---- Contents: what a handler computes ----


class Content(NamedTuple):
    """A computed body, and what its representation needs besides."""

    body: Body
    content_type: str = JSON_TYPE
    vary: str = VARY_BY_CODING
    policy: Headers = ()  # sent only with a body
    digest: str = ""  # empty: the SHA-256 of the body


def page_content(application: Application, body: bytes) -> Content:
    """The content of an HTML page."""
    policy = application.program.policies[links.HOME_PATH]
    return Content(body, HTML_TYPE, policy=policy)


def error_page(
    application: Application, status: int, body: bytes, headers: Headers = ()
) -> Response:
    """An HTML page that says what went wrong."""
    policy = application.program.policies[links.HOME_PATH]
    return uncacheable(status, HTML_TYPE, body, (*headers, *policy))


def representation_of(
    content: Content, snapshot: Snapshot, is_gzip: bool
) -> Representation:
    """A computed content, compressed for a client that accepts gzip."""
    level = None
    is_small = size_of(content.body) <= representations.COMPRESSED_TO_BYTES
    if is_gzip and is_small:
        level = representations.COMPUTED_GZIP_LEVEL
    return represent(
        content.body,
        content.content_type,
        snapshot.last_modified,
        gzip_level=level,
        vary=content.vary,
        policy=content.policy,
        digest=content.digest,
    )


# ---- Handlers: each answers one route ----


def static_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Response:
    """A representation that was made when the snapshot was loaded."""
    return negotiated(snapshot.fixed[request.path], request.header)


def home_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Response:
    """The home page; for who prefers it the directory in JSON, or the page in Markdown."""
    accept = request.header("accept")
    key = links.HOME_PATH
    if prefers_json(accept):
        key = DIRECTORY
    elif prefers_markdown(accept):
        key = MARKDOWN
    return negotiated(snapshot.fixed[key], request.header)


def search_content(
    application: Application, snapshot: Snapshot, request: Request
) -> Content:
    """The reviews that match the query string."""
    parameters = application.program.contract.search_parameters
    query = query_from_pairs(parameters, query_pairs(request))
    return Content(search(snapshot.dataset, query).encoded())


def since_content(
    application: Application, snapshot: Snapshot, request: Request
) -> Content:
    """The reviews since a day, as slices of the document of all reviews.

    Nothing is copied, nor hashed: the digest of the served reviews and the envelope
    together say which bytes these are.
    """
    day = request.path.removeprefix(links.SINCE_PATH)
    pieces = since(snapshot.dataset, day)
    digest = hashlib.sha256(snapshot.dataset.reviews_digest + pieces.head).hexdigest()
    return Content([memoryview(piece) for piece in pieces], digest=digest)


def list_content(
    application: Application, snapshot: Snapshot, request: Request
) -> Content | Response:
    """A page of the list of reviews, or its error page.

    Parameters that the list does not know are ignored: visitors bring `utm_source`.
    """
    site = snapshot.site
    parameters = application.program.contract.list_parameters
    pairs = [pair for pair in query_pairs(request) if pair[0] in parameters]
    try:
        query = query_of_page(parameters, pairs, PAGE_SIZE)
    except BadQuery as bad:
        body = invalid_list_page(site, pairs, bad)
        return error_page(application, 400, body)
    result = in_any_order(snapshot.dataset, query)
    if query.offset and not result.reviews:
        body = beyond_page(site, query, last_page(result))
        return error_page(application, 404, body)
    return page_content(application, list_page(site, query, result))


def review_content(
    application: Application, snapshot: Snapshot, request: Request
) -> Content | Response:
    """A review by its id, the rest of the path: a page, or JSON for who prefers it."""
    id = request.path.removeprefix(links.REVIEW_PATH)
    review = snapshot.dataset.reviews_by_id.get(id)
    is_json = prefers_json(request.header("accept"))
    if review is None and is_json:
        raise HttpError(404, f"No review has the id {echo(id)}.", VARIES_BY_TYPE)
    if review is None:
        return not_found_page(application, snapshot, is_review=True)
    if is_json:
        return Content([review.json], vary=VARY_BY_TYPE)
    page = review_page.review_page(snapshot.site, review)
    return page_content(application, page)._replace(vary=VARY_BY_TYPE)


VARIES_BY_TYPE: Headers = (("Vary", VARY_BY_TYPE),)


def not_found_page(
    application: Application, snapshot: Snapshot, is_review: bool
) -> Response:
    """The 404 page, for a review or for any other path."""
    body = review_page.not_found_page(snapshot.site, is_review)
    return error_page(application, 404, body, VARIES_BY_TYPE)


def embed_content(
    application: Application, snapshot: Snapshot, request: Request
) -> Content:
    """The frame for the owner's website; invalid parameters count as absent."""
    parameters = application.program.contract.embed_parameters
    values = forgiving_values(parameters, query_pairs(request))
    body = frame(snapshot.site, **values)
    policy = application.program.policies[links.EMBED_PATH]
    return Content(body, HTML_TYPE, policy=policy)


def health_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Response:
    """The state of the service, for monitoring; not part of the contract."""
    dataset = snapshot.dataset
    hub = application.hub
    health = {
        "status": application.state(),
        "version": VERSION,
        "uptime_seconds": round(time.monotonic() - application.started_at),
        "reviews": {
            "count": len(dataset.reviews),
            "unverified_left_out": dataset.unverified_count,
            "earliest": dataset.reviews[-1].day if dataset.reviews else None,
            "latest": dataset.reviews[0].day if dataset.reviews else None,
        },
        "insights": {
            key: dataset.insights[key] for key in ("review_count", "generated_at")
        },
        "hub": (hub.trouble() or "here") if hub else HUB_ELSEWHERE,
        "subscriptions": hub.counts() if hub else None,
        "last_modified": utc_text(snapshot.last_modified),
        "digests": {path: snapshot.fixed[path].digest for path in links.DATA_PATHS},
        "last_reload_error": application.reloader.error,
    }
    return uncacheable(200, JSON_TYPE, encode(health))


def mcp_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Response:
    """The response of the MCP endpoint, which checks methods and origins itself."""
    return application.mcp.handle(
        request.method, request.header, request.body, snapshot.toolbox
    )


def hub_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Response:
    """The hub's response to a subscriber. Waits for the disk."""
    if application.hub is None:
        raise HttpError(404, HUB_ELSEWHERE)
    answer = application.hub.answer(request.header("content-type"), request.body)
    return text_line(*answer)


def slash_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Response:
    """A redirect from `/reviews/` to `/reviews`."""
    location = application.urls.review_list
    if request.query_string:
        location += f"?{request.query_string}"
    return Response(308, (CACHEABLE, *CORS, ("Location", location)), b"")


def server_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Response:
    """The response to `OPTIONS *` (RFC 9110 section 9.3.7)."""
    if request.method == "OPTIONS":
        return options_response(SERVER_METHODS)
    raise method_not_allowed(request.method, "OPTIONS")


def unknown_path_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Response:
    """The 404 page for a client that prefers HTML. Raises HttpError 404 for others."""
    if prefers_html(request.header("accept")):
        return not_found_page(application, snapshot, is_review=False)
    raise HttpError(
        status=404,
        detail=f"There is nothing at {echo(request.path)}."
        f" {links.CONTRACT_PATH} lists the endpoints.",
        headers=VARIES_BY_TYPE,
    )


def options_response(methods: tuple[str, ...]) -> Response:
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


# ---- Refusals: how the errors of a route look ----


def json_refusal(
    application: Application, request: Request, error: HttpError
) -> Response:
    """The format of every route that has none of its own."""
    return json_error(error)


def embed_refusal(
    application: Application, request: Request, error: HttpError
) -> Response:
    """The frame that visitors of the owner's website see after an error."""
    body = refused_frame(application.snapshot.site)
    policy = application.program.policies[links.EMBED_PATH]
    return uncacheable(error.status, HTML_TYPE, body, (*policy, *error.headers))


def mcp_refusal(
    application: Application, request: Request, error: HttpError
) -> Response:
    """The JSON-RPC error for a request that does not reach the endpoint."""
    status = HTTPStatus(error.status)
    response = application.mcp.refusal(status, error.detail, request.header)
    return response._replace(headers=response.headers + error.headers)


def hub_refusal(
    application: Application, request: Request, error: HttpError
) -> Response:
    """An error as a line of plain text, like the hub's own errors."""
    return text_line(error.status, error.detail, error.headers)


# ---- Routes ----

READ_METHODS = ("GET", "HEAD", "OPTIONS")
SERVER_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
# The handler checks the method.
ANY_METHOD = ()


class Runs(Enum):
    """Where a handler runs."""

    AT_ONCE = "on the event loop: all it needs is prepared"
    COMPUTING = "on the computing thread"
    ON_DISK = "on the thread that waits for the disk"


Handler = Callable[["Application", Snapshot, Request], Response | Content]
Refusal = Callable[["Application", Request, HttpError], Response]
# Tells apart the computed contents of one path; they are cached under it.
Variant = Callable[[Request], str]


class Route(NamedTuple):
    """What answers a path: the methods that it knows, its handler and where that runs."""

    methods: tuple[str, ...]
    handler: Handler
    runs: Runs = Runs.AT_ONCE
    variant: Variant | None = None  # None: nothing is cached
    refuse: Refusal = json_refusal


def by_path(request: Request) -> str:
    """The path says all."""
    return ""


def by_query(request: Request) -> str:
    """Another query string is another content."""
    return request.query_string


def by_type(request: Request) -> str:
    """JSON for who prefers it, else a page."""
    return "json" if prefers_json(request.header("accept")) else "page"


def prepared(handler: Handler) -> Route:
    """A route whose responses are at hand."""
    return Route(READ_METHODS, handler)


def computed(
    handler: Handler, variant: Variant | None, refuse: Refusal = json_refusal
) -> Route:
    """A route whose contents are computed."""
    return Route(READ_METHODS, handler, Runs.COMPUTING, variant, refuse)


MCP_ROUTE = Route(ANY_METHOD, mcp_response, Runs.COMPUTING, refuse=mcp_refusal)

# By path as the contract writes it; a name in braces stands for the rest of the path.
ROUTES: dict[str, Route] = {
    links.HOME_PATH: prepared(home_response),
    **dict.fromkeys(links.FIXED_PATHS, prepared(static_response)),
    links.SEARCH_PATH: computed(search_content, by_query),
    links.SINCE_PATH + "{date}": computed(since_content, by_path),
    links.REVIEW_LIST_PATH: computed(list_content, by_query),
    links.REVIEW_PATH: prepared(slash_response),
    links.REVIEW_PATH + "{id}": computed(review_content, by_type),
    links.EMBED_PATH: computed(embed_content, by_query, embed_refusal),
    # A frame with a wrong address shows a frame, not JSON, on the owner's website.
    links.EMBED_PATH + "/{rest}": computed(unknown_path_response, None, embed_refusal),
    links.HEALTH_PATH: prepared(health_response),
    links.MCP_PATH: MCP_ROUTE,
    # Some clients add the slash.
    links.MCP_PATH + "/": MCP_ROUTE,
    links.HUB_PATH: Route(
        ("POST", "OPTIONS"), hub_response, Runs.ON_DISK, refuse=hub_refusal
    ),
    "*": Route(ANY_METHOD, server_response),
}
PREFIXES = [
    (path.partition("{")[0], route) for path, route in ROUTES.items() if "{" in path
]
NOT_FOUND = Route(ANY_METHOD, unknown_path_response, Runs.COMPUTING)


def route_of(path: str) -> Route:
    """The route of a path."""
    route = ROUTES.get(path)
    if route:
        return route
    for prefix, route in PREFIXES:
        if path.startswith(prefix):
            return route
    return NOT_FOUND


# ---- The application: thread-safe ----

HUB_ELSEWHERE = "the hub does not run on this instance"
NO_SNIFFING = ("X-Content-Type-Options", "nosniff")


class HubEndpoint(Protocol):
    """The part of a hub that requests use. Thread-safe."""

    def answer(self, content_type: str | None, body: bytes) -> tuple[int, str, Headers]:
        """The response to a POST: status, a line of text and more headers. Waits for the disk."""

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


# What a step of the application gives: the second step always has a response.
Result = TypeVar("Result", bound=Response | None)


class Application:
    """The WSGI application, and what a server asks that runs handlers on threads."""

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

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a WSGI server."""
        request = request_of(environ)
        try:
            stream = get_input_stream(environ, max_content_length=LARGEST_BODY_BYTES)
            response = self.respond(request._replace(body=stream.read()))
        except RequestEntityTooLarge:
            detail = f"The body is larger than {LARGEST_BODY_BYTES} bytes."
            response = self.refuse(request, 413, detail)
        except ClientDisconnected:
            detail = "The body is shorter than its Content-Length."
            response = self.refuse(request, 400, detail)
        status = f"{response.status} {HTTPStatus(response.status).phrase}"
        start_response(status, list(response.headers))
        return [joined(response.body)]

    def prepared(self, request: Request) -> Response | None:
        """The response that is at hand; None if `respond` must make it, off the event loop.

        Raises nothing.
        """
        return self._answered(request, self._at_hand)

    def respond(self, request: Request) -> Response:
        """The response to a request. Raises nothing; may take its time."""
        # A request that waited may find what another one has made meanwhile.
        response = self.prepared(request)
        if response is None:
            return self._answered(request, self._made)
        return response

    def waits_for_disk(self, request: Request) -> bool:
        """Whether `respond` waits for the disk, and not for the processor."""
        return route_of(request.path).runs is Runs.ON_DISK

    def refuse(
        self, request: Request, status: int, detail: str, headers: Headers = ()
    ) -> Response:
        """The response to a request that the server refuses before `respond`."""
        return self._refused(request, HttpError(status, detail, headers))

    def _at_hand(self, route: Route, request: Request) -> Response | None:
        """Raises HttpError for a bad `Host`, a wrong method or an unknown path."""
        check_host(request)
        if route.methods and request.method not in route.methods:
            raise method_not_allowed(request.method, ", ".join(route.methods))
        if route.methods and request.method == "OPTIONS":
            return options_response(route.methods)
        if route.runs is Runs.AT_ONCE:
            return self._made(route, request)
        if route.variant:
            key = computed_key(request, route.variant)
            cached = self.snapshot.cache.get(key)
            if cached:
                return negotiated(cached, request.header)
        return None

    def _made(self, route: Route, request: Request) -> Response:
        """Raises what the handler raises."""
        snapshot = self.snapshot
        content = route.handler(self, snapshot, request)
        if isinstance(content, Response):
            return content
        is_gzip = accepts_gzip(request.header("accept-encoding"))
        representation = representation_of(content, snapshot, is_gzip)
        if route.variant:
            snapshot.cache.add(computed_key(request, route.variant), representation)
        return negotiated(representation, request.header)

    def _answered(
        self, request: Request, step: Callable[[Route, Request], Result]
    ) -> Result | Response:
        """What a step gives, or the error response for its exception."""
        try:
            response = step(route_of(request.path), request)
        except BadQuery as bad:
            return self._refused(request, bad_parameters(bad))
        except HttpError as error:
            return self._refused(request, error)
        except Exception:
            return self._refused(request, logged_error(request))
        if response is None:
            return response
        return complete(request, response)

    def _refused(self, request: Request, error: HttpError) -> Response:
        response = route_of(request.path).refuse(self, request, error)
        return complete(request, response)


def computed_key(request: Request, variant: Variant) -> ComputedKey:
    """Under which a computed representation is cached."""
    is_gzip = accepts_gzip(request.header("accept-encoding"))
    return request.path, variant(request), is_gzip


def logged_error(request: Request) -> HttpError:
    """500 for the exception that is being handled, which is logged with a request id."""
    request_id = secrets.token_hex(8)
    log.exception("request %s: %s %r failed", request_id, request.method, request.path)
    return HttpError(
        status=500,
        detail=f"An internal error, logged as request {request_id}.",
        members={"request_id": request_id},
    )


def complete(request: Request, response: Response) -> Response:
    """Add the common headers; drop the body for HEAD.

    204 and 304 have no length (RFC 9110 section 8.6).
    """
    status, headers, body = response
    headers = (*headers, NO_SNIFFING)
    if status not in (204, 304):
        headers = (*headers, ("Content-Length", str(size_of(body))))
    if request.method == "HEAD":
        body = b""
    return Response(status, headers, body)
