"""The application: what each path answers, from one snapshot of the data.

A request takes the current snapshot once and is answered from that immutable object; a reload replaces it
by one assignment. Nothing else is shared between threads but the hub. This module knows no socket, signal,
flag, file or server: it is a WSGI application (PEP 3333), and `respond` is the same without WSGI's detour.
Hub and MCP are two protocols to it.

Sections: Requests and responses - Handlers - Routes - Application
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from http import HTTPStatus
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

from reviewslib import links
from reviewslib.dataset.query import (
    BadQuery,
    Issue,
    Query,
    echo,
    forgiving_values,
    query_from_pairs,
    query_of_page,
)
from reviewslib.dataset.reviews import ReviewList, in_any_order, search, since
from reviewslib.dataset.strict_json import encode
from reviewslib.mcp_tools import Toolbox
from reviewslib.web import embed, pages, representations
from reviewslib.web.reload import Reloader, utc_text
from reviewslib.web.representations import (
    CACHEABLE,
    LARGEST_BODY_BYTES,
    LARGEST_INLINE_BYTES,
    Answer,
    Deferred,
    Environ,
    Header,
    Headers,
    Representation,
    Response,
    SharedSlice,
    finished,
    negotiated,
    represent,
    resolved,
)
from reviewslib.web.snapshot import DIRECTORY, MARKDOWN, Snapshot

VERSION = "1.0.0"

log = logging.getLogger("reviewsd")


# ---- Requests and responses: WSGI on one side, values on the other ----

CONTENT_LENGTH = re.compile(r"[0-9]{1,18}")
# RFC 3986 sections 3.2.2 and 3.2.3, but not empty and without commas, which join repeated headers.
REG_NAME = r"(?:[\w.~!$&'()*+;=-]|%[0-9A-F]{2})+"
IP_LITERAL = r"\[(?:(?P<ipv6>[0-9A-F:.]+)|V[0-9A-F]+\.[\w.~!$&'()*+;=:-]+)\]"
HOST = re.compile(f"(?:{REG_NAME}|{IP_LITERAL})(?::[0-9]*)?", re.ASCII | re.IGNORECASE)


@lru_cache(maxsize=256)
def is_host(text: str) -> bool:
    """Whether `text` is a host with or without a port, as `Host` has it (RFC 9110 section 7.2)."""
    found = HOST.fullmatch(text)
    with suppress(ValueError):  # of IPv6Address
        return found is not None and bool(not found["ipv6"] or IPv6Address(found["ipv6"]))
    return False


class Request:
    """One request, read from a WSGI environment, whose texts are bytes decoded as latin-1 (PEP 3333)."""

    def __init__(self, environ: Environ):
        self.method: str = environ["REQUEST_METHOD"]
        # Bytes that are not UTF-8 become lone surrogates, which no id or other name holds.
        self.path = environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "surrogateescape")
        self.query_string: str = environ.get("QUERY_STRING", "")
        self.environ = environ

    def header(self, name: str) -> str | None:
        """The value of a header by its lower-case name, None when it is absent."""
        key = name.upper().replace("-", "_")
        is_unprefixed = key in ("CONTENT_TYPE", "CONTENT_LENGTH")  # in WSGI
        value: str | None = self.environ.get(key if is_unprefixed else f"HTTP_{key}")
        return value

    def query_pairs(self) -> list[tuple[str, str]]:
        """The decoded names and values of the query string."""
        text = self.query_string.encode("latin-1").decode("utf-8", "surrogateescape")
        return parse_qsl(text, keep_blank_values=True, errors="surrogateescape")

    def body(self) -> bytes:
        """The body. Raises HttpError where a server passes on what ours would refuse: 400 and 413.

        Without a length there is one only if it was sent in chunks (RFC 9112 section 6.3); a server may wait
        for ever when it is asked for another.
        """
        length = self.content_length()
        if not length and "HTTP_TRANSFER_ENCODING" in self.environ:
            length = LARGEST_BODY_BYTES + 1
        content: bytes = self.environ["wsgi.input"].read(length)
        if len(content) > LARGEST_BODY_BYTES:
            raise too_large()
        return content

    def content_length(self) -> int:
        """The bytes that the head announces. Raises HttpError: 400, and 413 for too many."""
        length = self.environ.get("CONTENT_LENGTH") or "0"
        if not CONTENT_LENGTH.fullmatch(length):
            raise HttpError(400, "The Content-Length is not a number of bytes.")
        if int(length) > LARGEST_BODY_BYTES:
            raise too_large()
        return int(length)


@dataclass(eq=False)
class HttpError(Exception):
    """A request that cannot be answered as asked; becomes the error object of RFC 9457 member names."""

    status: int
    detail: str
    headers: Headers = ()
    members: dict[str, Any] = field(default_factory=dict)  # of the error object, beside the usual


def too_large() -> HttpError:
    return HttpError(413, f"The body is larger than {LARGEST_BODY_BYTES} bytes.")


def error_response(application: Application, request: Request, error: HttpError) -> Response:
    """The default response to an error; some protocols have an error format of their own."""
    title, members = HTTPStatus(error.status).phrase, error.members
    if error.status == 400 and not members:  # the contract promises issues
        members = {"issues": [asdict(Issue(None, "", error.detail))]}
    document = {"type": "about:blank", "title": title, "status": error.status, "detail": error.detail}
    body = encode(document | members)
    return uncacheable_response(error.status, representations.JSON_TYPE, body, error.headers)


def uncacheable_response(status: int, content_type: str, body: bytes, headers: Headers = ()) -> Response:
    """A response that is not cacheable."""
    own = (("Content-Type", content_type), ("Cache-Control", "no-store"))
    return Response(status, (*own, *representations.CORS, *headers), body)


# ---- Handlers: each gets the application, its current snapshot and the request ----

LONGEST_INLINE_TEXT = 2000  # characters of a question; folding and finding more would block the event loop


class Form(NamedTuple):
    """The form of a computed representation: its media type, and headers that go with it."""

    content_type: str
    policy: Headers = ()
    vary: str = representations.BY_CODING


JSON_FORM = Form(representations.JSON_TYPE)


class Content(NamedTuple):
    """What an answer is made of: about how long it will be, and the function that makes its bytes."""

    size_bytes: int
    encoded: Callable[[], bytes]


Find = Callable[[], ReviewList | Content]


def static_response(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """A representation made at load."""
    return negotiated(snapshot.fixed[request.path], request.header, shared=True)


def home_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """The page, the directory for a client that prefers JSON, or the page in Markdown for a model."""
    accept = request.header("accept") or ""
    form = links.HOME_PATH
    if representations.prefers_json(accept):
        form = DIRECTORY
    elif representations.prefers_markdown(accept):
        form = MARKDOWN
    return negotiated(snapshot.fixed[form], request.header, shared=True)


def search_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """The reviews that a query string asks for."""
    parameters = application.program.contract.search_parameters

    def found() -> ReviewList:
        return search(snapshot.dataset, query_from_pairs(parameters, request.query_pairs()))

    return answer_to_text(
        request.query_string, lambda: cached_response(snapshot, request, request.query_string, found)
    )


def answer_to_text(text: str | bytes, make: Callable[[], Answer], is_slow: bool = False) -> Answer:
    """What `make` answers to a question, on a worker if `text`, or something else, makes it slow."""
    return Deferred(lambda: resolved(make())) if is_slow or len(text) > LONGEST_INLINE_TEXT else make()


def since_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """The reviews of a day and later: slices of the document that has all of them, which take no memory."""
    takes_gzip = representations.accepts_gzip(request.header("accept-encoding") or "")
    key = (request.path, "", takes_gzip)
    if kept := snapshot.cache.get(key):
        return since_response(kept, request)
    found = since(snapshot.dataset, request.path.removeprefix(links.SINCE_PATH))
    digest = hashlib.sha256(snapshot.dataset.reviews_digest + found.head).hexdigest()
    body, json_type = SharedSlice(*found), representations.JSON_TYPE
    plain = represent(body, json_type, snapshot.last_modified, gzip_level=None, digest=digest)

    def packed() -> Representation:
        return representations.with_gzip(plain, representations.COMPUTED_GZIP_LEVEL) if takes_gzip else plain

    def make() -> Response:
        return since_response(snapshot.cache.get_or_make(key, packed), request)

    is_quick = not takes_gzip or len(body) <= LARGEST_INLINE_BYTES
    return make() if is_quick else Deferred(make, since_response(plain, request))


def since_response(representation: Representation, request: Request) -> Response:
    """The response with a representation whose plain body takes no memory."""
    response = negotiated(representation, request.header)
    if isinstance(response.body, SharedSlice):
        return response._replace(shared=True)
    plain = negotiated(representation._replace(gzip=None), request.header, shared=True)
    return response._replace(instead=plain) if response.body else response


def cached_response(
    snapshot: Snapshot, request: Request, query: str, find: Find, form: Form = JSON_FORM
) -> Answer:
    """The representation of path and query that is kept, or a new one of what `find` returns."""
    with_gzip = representations.accepts_gzip(request.header("accept-encoding") or "")
    key = (request.path, query, with_gzip)
    if kept := snapshot.cache.get(key):
        return negotiated(kept, request.header)
    found = find()

    def new() -> Representation:
        level = representations.COMPUTED_GZIP_LEVEL if with_gzip else None
        changed, form_fields = snapshot.last_modified, form._asdict()
        return represent(found.encoded(), last_modified=changed, gzip_level=level, **form_fields)

    def make() -> Response:
        return negotiated(snapshot.cache.get_or_make(key, new), request.header)

    return make() if found.size_bytes <= LARGEST_INLINE_BYTES else Deferred(make)


def list_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """A page of the reviews for people; parameters that are not known are ignored."""
    templates, dataset, urls = application.program.templates, snapshot.dataset, application.urls
    parameters = application.program.contract.list_parameters
    given = [(name, value) for name, value in request.query_pairs() if name in parameters]

    def content(query: Query) -> Content:
        found = in_any_order(dataset, query)
        if query.offset and not found.reviews:
            raise pages.BeyondLastPage(query, pages.last_page(found))
        make = partial(pages.list_page, templates, dataset, urls, query, found)
        return Content(found.size_bytes, make)

    def listed() -> Answer:
        form = page_form(application)
        try:
            query = query_of_page(parameters, given, pages.PAGE_SIZE)
            return cached_response(snapshot, request, str(query), partial(content, query), form)
        except BadQuery as bad:
            body = pages.wrong_list_page(templates, dataset, urls, given, bad)
            return uncacheable_response(400, representations.HTML_TYPE, body, form.policy)
        except pages.BeyondLastPage as beyond:
            body = pages.beyond_page(templates, dataset, urls, beyond)
            return uncacheable_response(404, representations.HTML_TYPE, body, form.policy)

    return answer_to_text(request.query_string, listed)


def review_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """The review whose id is all that follows in the path: its page, or JSON for a client that prefers it."""
    templates, dataset, urls = application.program.templates, snapshot.dataset, application.urls
    is_json = representations.prefers_json(request.header("accept") or "")
    id, vary = request.path.removeprefix(links.REVIEW_PATH), representations.BY_TYPE_TOO
    if (review := dataset.reviews_by_id.get(id)) is None and is_json:
        raise HttpError(404, f"No review has the id {echo(id)}.", (("Vary", vary),))
    if review is None:
        return nowhere_response(application, snapshot, is_review=True)
    make = partial(pages.review_page, templates, dataset, urls, review)
    content = Content(len(review.json), partial(bytes, review.json) if is_json else make)
    form = (JSON_FORM if is_json else page_form(application))._replace(vary=vary)
    return cached_response(snapshot, request, "json" if is_json else "", lambda: content, form)


def nowhere_response(application: Application, snapshot: Snapshot, is_review: bool) -> Response:
    """The page where there is no review, or nothing at all."""
    headers = (("Vary", representations.BY_TYPE_TOO), *application.program.policies[links.HOME_PATH])
    body = pages.nowhere_page(application.program.templates, snapshot.dataset, application.urls, is_review)
    return uncacheable_response(404, representations.HTML_TYPE, body, headers)


def embed_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """The frame for the owner's website; what its address has wrong counts as absent."""
    templates, dataset, urls = application.program.templates, snapshot.dataset, application.urls
    wanted = forgiving_values(application.program.contract.embed_parameters, request.query_pairs())
    content = Content(0, partial(embed.frame, templates, dataset, urls, **wanted))  # some 10 KB
    form = Form(representations.HTML_TYPE, application.program.policies[links.EMBED_PATH])
    return answer_to_text(
        request.query_string, lambda: cached_response(snapshot, request, str(wanted), lambda: content, form)
    )


def embed_refusal(application: Application, request: Request, error: HttpError) -> Response:
    """What visitors of the owner's website read in the place of an error."""
    body = embed.refused_frame(application.program.templates, application.urls)
    headers = (*application.program.policies[links.EMBED_PATH], *error.headers)
    return uncacheable_response(error.status, representations.HTML_TYPE, body, headers)


def page_form(application: Application) -> Form:
    """The form of an HTML page."""
    return Form(representations.HTML_TYPE, application.program.policies[links.HOME_PATH])


def health_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """How the service is, for monitoring; not part of the contract."""
    dataset, hub = snapshot.dataset, application.hub
    health = {
        "status": "stale" if application.reloader.error else "degraded" if hub and hub.trouble() else "ok",
        "version": VERSION,
        "uptime_seconds": round(time.monotonic() - application.started_at),
        "reviews": {
            "count": len(dataset.reviews),
            "unverified_left_out": dataset.unverified_count,
            "earliest": dataset.reviews[-1].day if dataset.reviews else None,
            "latest": dataset.reviews[0].day if dataset.reviews else None,
        },
        "insights": {key: dataset.insights[key] for key in ("review_count", "generated_at")},
        "hub": hub.trouble() or "here" if hub else HUB_ELSEWHERE,
        "subscriptions": hub.counts() if hub else None,
        "last_modified": utc_text(snapshot.last_modified),
        "digests": {path: snapshot.fixed[path].digest for path in links.DATA_PATHS},
        "last_reload_error": application.reloader.error,
    }
    return uncacheable_response(200, representations.JSON_TYPE, encode(health))


def mcp_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """The MCP endpoint's response; it judges method, origin and everything else itself."""
    body = request.body() if request.method == "POST" else b""
    handle = partial(application.mcp.handle, request.method, request.header, body, snapshot.toolbox)
    is_batch = body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")  # after a byte order mark, too
    return answer_to_text(body, handle, is_slow=is_batch)  # a batch may cost ten searches


def mcp_refusal(application: Application, request: Request, error: HttpError) -> Response:
    """What JSON-RPC says of a request that the endpoint did not get."""
    response = application.mcp.refusal(HTTPStatus(error.status), error.detail, request.header)
    return response._replace(headers=response.headers + error.headers)


def hub_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """What the hub says to a subscriber; waits for the disk."""
    hub = application.hub
    if hub is None:
        raise HttpError(404, HUB_ELSEWHERE)
    return text_response(*hub.answer(request.header("content-type"), request.body()))


def hub_refusal(application: Application, request: Request, error: HttpError) -> Response:
    """One line of plain text, as the hub itself would say it (WebSub section 5.1.2)."""
    return text_response(error.status, error.detail, error.headers)


def text_response(status: int, text: str, headers: Headers) -> Response:
    """One line that is not cacheable."""
    return uncacheable_response(status, representations.TEXT_TYPE, f"{text}\n".encode(), headers)


def slash_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """The way to the list from its path with a slash at the end."""
    query = f"?{request.query_string}" if request.query_string else ""
    location = ("Location", application.urls.review_list + query)
    return Response(308, (CACHEABLE, *representations.CORS, location), b"")


def server_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """What may be sent to the server as a whole (RFC 9110 section 9.3.7). Raises HttpError 405."""
    if request.method == "OPTIONS":
        return options_response(", ".join(SERVER_METHODS))
    raise HttpError(405, f"{echo(request.method)} is not among OPTIONS.", (("Allow", "OPTIONS"),))


def unknown_path_answer(application: Application, snapshot: Snapshot, request: Request) -> Answer:
    """A page for a client that prefers HTML. Raises HttpError 404 for all others."""
    if representations.prefers_html(request.header("accept") or ""):
        return nowhere_response(application, snapshot, is_review=False)
    detail = f"There is nothing at {echo(request.path)}. {links.CONTRACT_PATH} lists what there is."
    raise HttpError(404, detail, (("Vary", representations.BY_TYPE_TOO),))


# ---- Routes: one table ----

READ_METHODS = ("GET", "HEAD", "OPTIONS")
SERVER_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
EVERY_METHOD = ()  # the handler judges the method itself


@dataclass(frozen=True, slots=True)
class Route:
    """How a path is answered; `refuse` words what ends a request elsewhere."""

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
    "*": Route(EVERY_METHOD, server_answer),
    links.HEALTH_PATH: Route(READ_METHODS, health_answer),
    links.MCP_PATH: Route(EVERY_METHOD, mcp_answer, mcp_refusal),
    links.MCP_PATH + "/": Route(EVERY_METHOD, mcp_answer, mcp_refusal),  # as some clients are told it
    links.HUB_PATH: Route(("POST", "OPTIONS"), hub_answer, hub_refusal),
}
OPEN_ROUTES = {  # by the beginning of their paths
    links.SINCE_PATH: ROUTES[links.SINCE_PATH],
    links.REVIEW_PATH: Route(READ_METHODS, review_answer),
    links.EMBED_PATH + "/": Route(READ_METHODS, unknown_path_answer, embed_refusal),
}
NOWHERE = Route(EVERY_METHOD, unknown_path_answer)
STORE_PATHS = frozenset({links.HUB_PATH})  # their answers wait for the disk


def route_of(path: str) -> Route:
    """The route of a path."""
    below = (route for prefix, route in OPEN_ROUTES.items() if path.startswith(prefix))
    return ROUTES.get(path) or next(below, NOWHERE)


def routed_answer(application: Application, request: Request, route: Route) -> Answer:
    """What the handler answers. Raises HttpError: 400 for a bad `Host`, 404, 405, 413; and BadQuery."""
    check_host(request)
    allow = ", ".join(route.methods)
    if route.methods and request.method not in route.methods:
        raise HttpError(405, f"{echo(request.method)} is not among {allow}.", (("Allow", allow),))
    if route.methods:
        request.content_length()
    if route.methods and request.method == "OPTIONS":
        return options_response(allow)
    return route.handler(application, application.snapshot, request)


def bad_query_error(bad: BadQuery) -> HttpError:
    """The error of a request whose parameters are wrong."""
    wrong = "One parameter is" if bad.wrong_count == 1 else f"{bad.wrong_count} parameters are"
    issues = [asdict(issue) for issue in bad.issues]
    return HttpError(400, f"{wrong} wrong. See issues.", members={"issues": issues})


def check_host(request: Request) -> None:
    """Raises HttpError 400 for a bad `Host`; HTTP/1.0 may do without one (RFC 9112 section 3.2)."""
    host = request.header("host") or ""  # empty where there is none under ASGI, too
    if is_host(host) or (not host and request.environ.get("SERVER_PROTOCOL") != "HTTP/1.1"):
        return
    wrong = "The Host header is repeated or not a host." if host else "The request has no Host header."
    raise HttpError(400, wrong, members={"issues": [asdict(Issue(None, echo(host), wrong))]})


def options_response(allow: str) -> Response:
    """What may be sent, for programs (Allow) and for browsers (the Fetch standard's preflight)."""
    fields = ("Access-Control-Allow-Headers", "If-None-Match, If-Modified-Since, Authorization, Content-Type")
    preflight = (("Access-Control-Allow-Methods", allow), fields, ("Access-Control-Max-Age", "86400"))
    return Response(204, (*representations.CORS, ("Allow", allow), *preflight), b"")


NO_SNIFFING = ("X-Content-Type-Options", "nosniff")


def complete(request: Request, response: Response) -> Response:
    """With Content-Length where there is one (RFC 9110 section 8.6), without a body for HEAD."""
    status, headers, body, shared, _ = response
    if status in (204, 304):
        headers = (*headers, NO_SNIFFING)
    else:
        headers = (*headers, NO_SNIFFING, ("Content-Length", str(len(body))))
    return Response(status, headers, b"" if request.method == "HEAD" else body, shared)


# ---- Application: any thread ----

HUB_ELSEWHERE = "the hub does not run on this instance"


class HubEndpoint(Protocol):
    """What requests need of a hub. Any thread."""

    def answer(self, content_type: str | None, body: bytes) -> tuple[int, str, Headers]:
        """Status, one line of text and more headers, in answer to a POST; waits for the disk."""

    def trouble(self) -> str | None:
        """Why subscriptions are not kept, None if they are."""

    def counts(self) -> dict[str, int]:
        """Subscriptions and requests by state."""


class McpEndpoint(Protocol):
    """What requests need of MCP. Any thread."""

    def handle(self, method: str, header: Header, body: bytes, toolbox: Toolbox) -> Answer:
        """The answer to a request."""

    def refusal(self, status: HTTPStatus, message: str, header: Header) -> Response:
        """The response to a request that was refused before it was handled."""


class Application:
    """The WSGI application."""

    def __init__(self, reloader: Reloader, urls: links.Links, mcp: McpEndpoint):
        self.reloader = reloader
        self.program = reloader.program
        self.urls = urls
        self.mcp = mcp
        self.hub: HubEndpoint | None = None
        self.started_at = time.monotonic()

    @property
    def snapshot(self) -> Snapshot:
        """What is served now; a request takes it once."""
        return self.reloader.snapshot

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """WSGI, for every server but ours."""
        response = resolved(self.respond(environ))
        start_response(f"{response.status} {HTTPStatus(response.status).phrase}", list(response.headers))
        return [response.body[:]]

    def respond(self, environ: Environ) -> Answer:
        """The answer to the request of a WSGI environment, whatever happens."""
        request = Request(environ)
        route = route_of(request.path)
        answer = self._guarded(request, route, lambda: routed_answer(self, request, route))
        if isinstance(answer, Deferred):
            answer = answer._replace(make=partial(self._guarded, request, route, answer.make))
        return finished(answer, lambda response: complete(request, response))

    def refuse(self, environ: Environ, status: int, detail: str, headers: Headers = ()) -> Response:
        """The response to a request that the server cannot hand over."""
        request, error = Request(environ), HttpError(status, detail, headers)
        return complete(request, route_of(request.path).refuse(self, request, error))

    def _guarded(self, request: Request, route: Route, make: Callable[[], Any]) -> Any:
        """What `make` returns, or the response to what it raises."""
        try:
            return make()
        except BadQuery as bad:
            return route.refuse(self, request, bad_query_error(bad))
        except HttpError as error:
            return route.refuse(self, request, error)
        except Exception:
            request_id = secrets.token_hex(8)
            log.exception("request %s: %s %r failed", request_id, request.method, request.path)
            detail = f"This is our fault. It was logged as request {request_id}."
            return route.refuse(self, request, HttpError(500, detail, members={"request_id": request_id}))
