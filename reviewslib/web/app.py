"""The application: every request gets a response, at once or on a thread.

A server asks `prepared` and `respond`; any WSGI server (PEP 3333) may call it as well.
This module must not know a socket, signal, flag, file, thread or server.

Sections: WSGI - the two steps to a response - the application.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.wsgi import get_input_stream

from reviewslib import links
from reviewslib.dataset.query import BadQuery
from reviewslib.messages import (
    LARGEST_BODY_BYTES,
    Headers,
    Request,
    Response,
    accepts_gzip,
    joined,
    size_of,
    utf8_text,
)
from reviewslib.web.cache import CacheKey
from reviewslib.web.errors import HttpError, bad_parameters, method_not_allowed
from reviewslib.web.handlers import Call, HubEndpoint, McpEndpoint, options_response
from reviewslib.web.hosts import check_host
from reviewslib.web.reload import Reloader
from reviewslib.web.representations import negotiated, represent_computed
from reviewslib.web.routes import Route, Runs, Variant, route_of
from reviewslib.web.snapshot import Snapshot

log = logging.getLogger("reviewsd")


# ---- WSGI ----


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


# ---- The two steps to a response ----


def response_at_hand(call: Call, route: Route) -> Response | None:
    """The response, unless the handler must run and takes time. Raises HttpError."""
    check_host(call.request)
    if route.methods:
        check_method(call.request, route.methods)
        if call.request.method == "OPTIONS":
            return options_response(route.methods)
    if route.runs is Runs.AT_ONCE:
        return made_response(call, route)
    return cached_response(call, route)


def check_method(request: Request, methods: tuple[str, ...]) -> None:
    """Raise HttpError 405 for a method that the route does not have."""
    if request.method not in methods:
        raise method_not_allowed(request.method, ", ".join(methods))


def cached_response(call: Call, route: Route) -> Response | None:
    """The response with a content that was made before; None without one."""
    if route.variant is None:
        return None
    cached = call.snapshot.cache.get(cache_key(call, route.variant))
    if cached is None:
        return None
    return negotiated(cached, call.request.header)


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

# What a step gives: the second one always has a response.
StepResult = TypeVar("StepResult", bound=Response | None)


class Application:
    """The WSGI application, and what a server asks that runs handlers on threads.

    It is the instance that handlers see. Its methods raise nothing.
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
        self, request: Request, step: Callable[[Call, Route], StepResult]
    ) -> StepResult | Response:
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
