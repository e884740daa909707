"""The WSGI application (PEP 3333): routes, handlers and error responses.

A request takes the current snapshot once and is answered from that immutable object; a reload replaces the
snapshot by one assignment. The hub is the only other state that requests share. This module knows no socket,
signal, flag, file or server; hub and MCP are passed in. A handler returns a prepared or cached response, or a
function that makes the response on a worker thread.

Sections: Requests and responses - Handlers - Routes - Application
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from http import HTTPStatus
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.wsgi import get_input_stream

from reviewslib import links
from reviewslib.dataset.query import (
    BadQuery,
    Issue,
    echo,
    forgiving_values,
    query_from_pairs,
    query_of_page,
)
from reviewslib.dataset.reviews import in_any_order, search, since
from reviewslib.dataset.strict_json import encode
from reviewslib.mcp_tools import Toolbox
from reviewslib.web import representations
from reviewslib.web.embed import frame, refused_frame
from reviewslib.web.list_page import (
    PAGE_SIZE,
    BeyondLastPage,
    beyond_page,
    invalid_list_page,
    last_page,
    list_page,
)
from reviewslib.web.reload import Reloader, utc_text
from reviewslib.web.representations import (
    Answer,
    Body,
    GetHeader,
    Headers,
    Request,
    Response,
    negotiated,
)
from reviewslib.web.review_page import not_found_page, review_page
from reviewslib.web.snapshot import DIRECTORY, MARKDOWN, Snapshot

VERSION = "1.0.0"

log = logging.getLogger("reviewsd")


# ---- Requests and responses ----

# RFC 3986 sections 3.2.2 and 3.2.3, but not empty, and without commas: a comma means a repeated header.
REG_NAME = r"(?:[\w.~!$&'()*+;=-]|%[0-9A-F]{2})+"
IP_LITERAL = r"\[(?:(?P<ipv6>[0-9A-F:.]+)|V[0-9A-F]+\.[\w.~!$&'()*+;=:-]+)\]"
HOST = re.compile(f"(?:{REG_NAME}|{IP_LITERAL})(?::[0-9]*)?", re.ASCII | re.IGNORECASE)


@lru_cache(maxsize=256)
def is_host(text: str) -> bool:
    """Whether `text` is a valid value of `Host` (RFC 9110 section 7.2)."""
    match = HOST.fullmatch(text)
    if match and match["ipv6"]:
        try:
            IPv6Address(match["ipv6"])
        except ValueError:
            return False
    return match is not None


def request_of(environ: dict[str, Any]) -> Request:
    """The request in a WSGI environ (PEP 3333), whose strings have a character for each byte; has no body."""

    def header(name: str) -> str | None:
        key = name.upper().replace("-", "_")
        is_unprefixed = key in ("CONTENT_TYPE", "CONTENT_LENGTH")
        value: str | None = environ.get(key if is_unprefixed else f"HTTP_{key}")
        return value

    path = utf8_text(environ.get("PATH_INFO", ""))
    http_version = environ["SERVER_PROTOCOL"].removeprefix("HTTP/")
    query_string = environ.get("QUERY_STRING", "")
    return Request(
        environ["REQUEST_METHOD"], path, query_string, header, http_version=http_version
    )


def utf8_text(latin: str) -> str:
    """Decode the UTF-8 bytes that are the characters of `latin`; invalid bytes become lone surrogates."""
    return latin.encode("latin-1").decode("utf-8", "surrogateescape")


def query_pairs(request: Request) -> list[tuple[str, str]]:
    """The decoded names and values of the query string."""
    return parse_qsl(
        utf8_text(request.query_string),
        keep_blank_values=True,
        errors="surrogateescape",
    )


@dataclass(eq=False)
class HttpError(Exception):
    """An error response; `error_response` makes it an object with member names of RFC 9457."""

    status: int
    detail: str
    headers: Headers = ()
    members: dict[str, Any] = field(default_factory=dict)  # more members of the object


def error_response(
    application: Application, request: Request, error: HttpError
) -> Response:
    """The error response of routes without an error format of their own."""
    title = HTTPStatus(error.status).phrase
    members = error.members
    if error.status == 400 and not members:  # the contract requires issues
        members = {"issues": [asdict(Issue(None, "", error.detail))]}
    document = {
        "type": "about:blank",
        "title": title,
        "status": error.status,
        "detail": error.detail,
    }
    body = encode(document | members)
    return uncacheable_response(
        error.status, representations.JSON_TYPE, body, error.headers
    )


def uncacheable_response(
    status: int, content_type: str, body: bytes, headers: Headers = ()
) -> Response:
    """A response that is not cacheable."""
    own = (("Content-Type", content_type), ("Cache-Control", "no-store"))
    return Response(status, (*own, *representations.CORS, *headers), body)


# ---- Handlers: functions of the application, its current snapshot and the request ----


class ContentHeaders(NamedTuple):
    """Header values of a computed representation; `policy` is sent only with a body."""

    content_type: str
    policy: Headers = ()
    vary: str = representations.VARY_BY_CODING


class Content(NamedTuple):
    """A computed body; an empty `digest` stands for the SHA-256 of the body."""

    body: Body
    digest: str = ""


JSON_HEADERS = ContentHeaders(representations.JSON_TYPE)


def static_response(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """A representation that was made when the snapshot was loaded."""
    return negotiated(snapshot.fixed[request.path], request.header)


def home_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The home page; if the client prefers it, the directory in JSON or the page in Markdown."""
    accept = request.header("accept") or ""
    key = links.HOME_PATH
    if representations.prefers_json(accept):
        key = DIRECTORY
    elif representations.prefers_markdown(accept):
        key = MARKDOWN
    return negotiated(snapshot.fixed[key], request.header)


def computed_answer(
    snapshot: Snapshot,
    request: Request,
    variant: str,
    make: Callable[[], Content],
    headers: ContentHeaders = JSON_HEADERS,
) -> Answer:
    """The cached response for the path and `variant`, or a function that makes and caches it."""
    accepts_gzip = representations.accepts_gzip(request.header("accept-encoding") or "")
    key = (request.path, variant, accepts_gzip)
    if cached := snapshot.cache.get(key):
        return negotiated(cached, request.header)

    def represent() -> representations.Representation:
        body, digest = make()
        is_compressed = (
            accepts_gzip
            and representations.size_of(body) <= representations.COMPRESSED_TO_BYTES
        )
        level = representations.COMPUTED_GZIP_LEVEL if is_compressed else None
        content_type, policy, vary = headers
        return representations.represent(
            body,
            content_type,
            snapshot.last_modified,
            level,
            vary=vary,
            policy=policy,
            digest=digest,
        )

    return lambda: negotiated(
        snapshot.cache.get_or_make(key, represent), request.header
    )


def search_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The reviews that match the query string."""
    parameters = application.program.contract.search_parameters

    def make() -> Content:
        query = query_from_pairs(parameters, query_pairs(request))
        return Content(search(snapshot.dataset, query).encoded())

    return computed_answer(snapshot, request, request.query_string, make)


def since_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The reviews since a day, as slices of the document of all reviews: nothing is copied."""

    def make() -> Content:
        pieces = since(snapshot.dataset, request.path.removeprefix(links.SINCE_PATH))
        digest = hashlib.sha256(
            snapshot.dataset.reviews_digest + pieces.head
        ).hexdigest()
        return Content([memoryview(piece) for piece in pieces], digest)

    return computed_answer(snapshot, request, "", make)


def list_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """A page of the list of reviews, or its error page; unknown parameters are ignored."""
    dataset = snapshot.dataset
    parameters = application.program.contract.list_parameters
    headers = page_content_headers(application)

    def list_pairs() -> list[tuple[str, str]]:
        return [
            (name, value) for name, value in query_pairs(request) if name in parameters
        ]

    def make() -> Content:
        query = query_of_page(parameters, list_pairs(), PAGE_SIZE)
        result = in_any_order(dataset, query)
        if query.offset and not result.reviews:
            raise BeyondLastPage(query, last_page(result))
        return Content(list_page(snapshot.site, query, result))

    def page_or_error() -> Response:
        try:
            return representations.resolved(answer)
        except BadQuery as bad:
            body = invalid_list_page(snapshot.site, list_pairs(), bad)
            return uncacheable_response(
                400, representations.HTML_TYPE, body, headers.policy
            )
        except BeyondLastPage as beyond:
            body = beyond_page(snapshot.site, beyond)
            return uncacheable_response(
                404, representations.HTML_TYPE, body, headers.policy
            )

    answer = computed_answer(snapshot, request, request.query_string, make, headers)
    return answer if isinstance(answer, Response) else page_or_error


def review_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """A review by its id, the rest of the path: a page, or JSON for a client that prefers it."""
    dataset = snapshot.dataset
    is_json = representations.prefers_json(request.header("accept") or "")
    id = request.path.removeprefix(links.REVIEW_PATH)
    vary = representations.VARY_BY_TYPE
    if (review := dataset.reviews_by_id.get(id)) is None and is_json:
        raise HttpError(404, f"No review has the id {echo(id)}.", (("Vary", vary),))
    if review is None:
        return partial(not_found_response, application, snapshot, is_review=True)

    def make() -> Content:
        page = [review.json] if is_json else review_page(snapshot.site, review)
        return Content(page)

    headers = (JSON_HEADERS if is_json else page_content_headers(application))._replace(
        vary=vary
    )
    return computed_answer(snapshot, request, "json" if is_json else "", make, headers)


def not_found_response(
    application: Application, snapshot: Snapshot, is_review: bool
) -> Response:
    """The 404 page, for a review or for any other path."""
    headers = (
        ("Vary", representations.VARY_BY_TYPE),
        *application.program.policies[links.HOME_PATH],
    )
    body = not_found_page(snapshot.site, is_review)
    return uncacheable_response(404, representations.HTML_TYPE, body, headers)


def embed_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The frame for the owner's website; invalid parameters count as absent."""

    def make() -> Content:
        values = forgiving_values(
            application.program.contract.embed_parameters, query_pairs(request)
        )
        return Content(frame(snapshot.site, **values))

    headers = ContentHeaders(
        representations.HTML_TYPE, application.program.policies[links.EMBED_PATH]
    )
    return computed_answer(snapshot, request, request.query_string, make, headers)


def embed_refusal(
    application: Application, request: Request, error: HttpError
) -> Response:
    """The frame that visitors of the owner's website see after an error."""
    body = refused_frame(application.snapshot.site)
    headers = (*application.program.policies[links.EMBED_PATH], *error.headers)
    return uncacheable_response(error.status, representations.HTML_TYPE, body, headers)


def page_content_headers(application: Application) -> ContentHeaders:
    """The content headers of an HTML page."""
    return ContentHeaders(
        representations.HTML_TYPE, application.program.policies[links.HOME_PATH]
    )


def health_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The state of the service, for monitoring; not part of the contract."""
    dataset = snapshot.dataset
    hub = application.hub
    health = {
        "status": "stale"
        if application.reloader.error
        else "degraded"
        if hub and hub.trouble()
        else "ok",
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
    return uncacheable_response(200, representations.JSON_TYPE, encode(health))


def mcp_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The response of the MCP endpoint, which checks methods and origins itself."""
    return lambda: application.mcp.handle(
        request.method, request.header, request.body, snapshot.toolbox
    )


def mcp_refusal(
    application: Application, request: Request, error: HttpError
) -> Response:
    """The JSON-RPC error for a request that does not reach the endpoint."""
    response = application.mcp.refusal(
        HTTPStatus(error.status), error.detail, request.header
    )
    return response._replace(headers=response.headers + error.headers)


def hub_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The hub's response to a subscriber, as a function that waits for the disk."""
    if (hub := application.hub) is None:
        raise HttpError(404, HUB_ELSEWHERE)
    return lambda: text_response(
        *hub.answer(request.header("content-type"), request.body)
    )


def hub_refusal(
    application: Application, request: Request, error: HttpError
) -> Response:
    """An error as a line of plain text, like the hub's own errors (WebSub section 5.1.2)."""
    return text_response(error.status, error.detail, error.headers)


def text_response(status: int, text: str, headers: Headers) -> Response:
    """A line of plain text."""
    return uncacheable_response(
        status, representations.TEXT_TYPE, f"{text}\n".encode(), headers
    )


def slash_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """A redirect from `/reviews/` to `/reviews`."""
    query = f"?{request.query_string}" if request.query_string else ""
    location = ("Location", application.urls.review_list + query)
    return Response(
        308, (representations.CACHEABLE, *representations.CORS, location), b""
    )


def server_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The response to `OPTIONS *` (RFC 9110 section 9.3.7). Raises HttpError 405 for other methods."""
    if request.method == "OPTIONS":
        return options_response(", ".join(SERVER_METHODS))
    raise not_allowed(request, "OPTIONS")


def unknown_path_answer(
    application: Application, snapshot: Snapshot, request: Request
) -> Answer:
    """The 404 page for a client that prefers HTML. Raises HttpError 404 for others."""
    if representations.prefers_html(request.header("accept") or ""):
        return partial(not_found_response, application, snapshot, is_review=False)
    detail = f"There is nothing at {echo(request.path)}. {links.CONTRACT_PATH} lists the endpoints."
    raise HttpError(404, detail, (("Vary", representations.VARY_BY_TYPE),))


# ---- Routes ----

READ_METHODS = ("GET", "HEAD", "OPTIONS")
SERVER_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
ALL_METHODS = ()  # the handler checks the method


@dataclass(frozen=True, slots=True)
class Route:
    """The methods and the handler of a path; `refuse` formats errors that handler or server raise."""

    methods: tuple[str, ...]
    handler: Callable[[Application, Snapshot, Request], Answer]
    refuse: Callable[[Application, Request, HttpError], Response] = error_response


ROUTES: dict[str, Route] = {
    links.HOME_PATH: Route(READ_METHODS, home_answer),
    **{path: Route(READ_METHODS, static_response) for path in links.FIXED_PATHS},
    links.SEARCH_PATH: Route(READ_METHODS, search_answer),
    links.SINCE_PATH: Route(READ_METHODS, since_answer),
    links.REVIEW_LIST_PATH: Route(READ_METHODS, list_answer),
    links.REVIEW_PATH: Route(READ_METHODS, slash_answer),
    links.EMBED_PATH: Route(READ_METHODS, embed_answer, embed_refusal),
    "*": Route(ALL_METHODS, server_answer),
    links.HEALTH_PATH: Route(READ_METHODS, health_answer),
    links.MCP_PATH: Route(ALL_METHODS, mcp_answer, mcp_refusal),
    links.MCP_PATH + "/": Route(
        ALL_METHODS, mcp_answer, mcp_refusal
    ),  # some clients add the slash
    links.HUB_PATH: Route(("POST", "OPTIONS"), hub_answer, hub_refusal),
}
PREFIX_ROUTES = {  # by the prefix of their paths
    links.SINCE_PATH: ROUTES[links.SINCE_PATH],
    links.REVIEW_PATH: Route(READ_METHODS, review_answer),
    links.EMBED_PATH + "/": Route(READ_METHODS, unknown_path_answer, embed_refusal),
}
NOT_FOUND = Route(ALL_METHODS, unknown_path_answer)
STORE_PATHS = frozenset({links.HUB_PATH})  # their responses wait for the disk


def route_of(path: str) -> Route:
    """The route of a path."""
    by_prefix = (
        route for prefix, route in PREFIX_ROUTES.items() if path.startswith(prefix)
    )
    return ROUTES.get(path) or next(by_prefix, NOT_FOUND)


def routed_answer(application: Application, request: Request, route: Route) -> Answer:
    """The answer of the handler. Raises HttpError: 400 for a bad `Host`, 404 or 405."""
    check_host(request)
    if route.methods and request.method not in route.methods:
        raise not_allowed(request, ", ".join(route.methods))
    if route.methods and request.method == "OPTIONS":
        return options_response(", ".join(route.methods))
    return route.handler(application, application.snapshot, request)


def not_allowed(request: Request, allow: str) -> HttpError:
    """The error for a method that is not one of `allow`."""
    return HttpError(
        405,
        f"{echo(request.method)} is not allowed; allowed: {allow}.",
        (("Allow", allow),),
    )


def bad_query_error(bad: BadQuery) -> HttpError:
    """The error for wrong parameters."""
    subject = (
        "One parameter is"
        if len(bad.issues) == 1
        else f"{len(bad.issues)} parameters are"
    )
    issues = [asdict(issue) for issue in bad.issues]
    return HttpError(400, f"{subject} wrong. See issues.", members={"issues": issues})


def check_host(request: Request) -> None:
    """Raises HttpError 400 for a bad `Host`, or if it is missing in HTTP/1.1 (RFC 9112 section 3.2)."""
    host = (
        request.header("host") or ""
    )  # an ASGI server may pass an absent Host as an empty one
    if is_host(host) or (not host and request.http_version != "1.1"):
        return
    detail = (
        "The Host header is repeated or not a host."
        if host
        else "The request has no Host header."
    )
    raise HttpError(
        400, detail, members={"issues": [asdict(Issue(None, echo(host), detail))]}
    )


def options_response(allow: str) -> Response:
    """The allowed methods, for programs (Allow) and for browsers (preflight of the Fetch standard)."""
    fields = (
        "Access-Control-Allow-Headers",
        "If-None-Match, If-Modified-Since, Authorization, Content-Type",
    )
    preflight = (
        ("Access-Control-Allow-Methods", allow),
        fields,
        ("Access-Control-Max-Age", "86400"),
    )
    return Response(204, (*representations.CORS, ("Allow", allow), *preflight), b"")


NO_SNIFFING = ("X-Content-Type-Options", "nosniff")


def complete(request: Request, response: Response) -> Response:
    """Add the common headers; drop the body for HEAD. 204 and 304 have no length (RFC 9110 section 8.6)."""
    status, headers, body = response
    headers = (*headers, NO_SNIFFING)
    if status not in (204, 304):
        headers = (*headers, ("Content-Length", str(representations.size_of(body))))
    return Response(status, headers, b"" if request.method == "HEAD" else body)


# ---- Application: thread-safe ----

HUB_ELSEWHERE = "the hub does not run on this instance"


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


class Application:
    """The WSGI application."""

    def __init__(self, reloader: Reloader, urls: links.ServiceUrls, mcp: McpEndpoint):
        self.reloader = reloader
        self.program = reloader.program
        self.urls = urls
        self.mcp = mcp
        self.hub: HubEndpoint | None = None
        self.started_at = time.monotonic()

    @property
    def snapshot(self) -> Snapshot:
        """The current snapshot; a request takes it once."""
        return self.reloader.snapshot

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a WSGI server."""
        request = request_of(environ)
        max_bytes = representations.LARGEST_BODY_BYTES
        try:
            body = get_input_stream(environ, max_content_length=max_bytes).read()
            response = representations.resolved(
                self.respond(request._replace(body=body))
            )
        except RequestEntityTooLarge:
            response = self.refuse(
                request, 413, f"The body is larger than {max_bytes} bytes."
            )
        except ClientDisconnected:
            response = self.refuse(
                request, 400, "The body is shorter than its Content-Length."
            )
        start_response(
            f"{response.status} {HTTPStatus(response.status).phrase}",
            list(response.headers),
        )
        return [representations.joined(response.body)]

    def respond(self, request: Request) -> Answer:
        """The answer to a request. Raises nothing."""
        route = route_of(request.path)
        answer = self._guarded(
            request, route, lambda: routed_answer(self, request, route)
        )
        if isinstance(answer, Response):
            return complete(request, answer)
        make = partial(self._guarded, request, route, answer)
        return lambda: complete(request, representations.resolved(make()))

    def refuse(
        self, request: Request, status: int, detail: str, headers: Headers = ()
    ) -> Response:
        """The response to a request that the server refuses before `respond`."""
        error = HttpError(status, detail, headers)
        return complete(request, route_of(request.path).refuse(self, request, error))

    def _guarded(
        self, request: Request, route: Route, make: Callable[[], Answer]
    ) -> Answer:
        """The answer of `make`, or the error response for its exception."""
        try:
            return make()
        except BadQuery as bad:
            return route.refuse(self, request, bad_query_error(bad))
        except HttpError as error:
            return route.refuse(self, request, error)
        except Exception:
            request_id = secrets.token_hex(8)
            log.exception(
                "request %s: %s %r failed", request_id, request.method, request.path
            )
            detail = f"An internal error, logged as request {request_id}."
            return route.refuse(
                self,
                request,
                HttpError(500, detail, members={"request_id": request_id}),
            )
