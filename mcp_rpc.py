"""The MCP endpoint: computes the response to an HTTP request for `/mcp`.

This module knows JSON-RPC 2.0 and the Model Context Protocol. It knows no single tool,
no data, no server, no other route, no file, no thread and no clock; a test calls
`McpServer.handle` without a socket.

The endpoint serves two eras of the protocol. *Initialize era*: a client begins with a
handshake (revisions 2025-03-26, 2025-06-18, 2025-11-25). *Stateless era*: every request
claims its revision in `params._meta`, and its headers repeat revision, method and tool
(revision 2026-07-28). Responses are not streamed, and requests leave no state behind.

Pages of the specification are cited as [R28 page]: R28 is revision 2026-07-28 of
https://modelcontextprotocol.io/specification; R03, R06 and R11 are the older ones.

Sections: protocol - responses - header fields - messages - methods - stateless requests
- the endpoint.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

from reviewslib.dataset.query import echo, nearest
from reviewslib.dataset.strict_json import Json, NotJson, decode
from reviewslib.mcp_tools import TOOLS, Told, Toolbox
from reviewslib.messages import (
    JSON_TYPE,
    NO_STORE,
    GetHeader,
    Headers,
    Response,
    accepted_types,
    joined,
    preflight,
)
from reviewslib.release import (
    INITIALIZE_VERSIONS,
    SERVED_VERSIONS,
    STATELESS_VERSIONS,
)

# ---- Protocol: names and numbers of the specification ----

# Keys of `_meta` [R28 basic/index].
VERSION_CLAIM = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_CLAIM = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

VERSION_HEADER = "mcp-protocol-version"
# Of randomness: nobody may guess the id of somebody else [R11 basic/transports].
SESSION_ID_BYTES = 32
# By method: the parameter that `Mcp-Name` repeats
# [R28 basic/transports/streamable-http].
NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

# JSON-RPC 2.0 section 5.1.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# [R28 basic/index].
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
CAPABILITIES: dict[str, Json] = {"tools": {}}


# ---- Responses: results and errors in JSON-RPC and in HTTP ----


@dataclass(eq=False)
class RpcError(Exception):
    """A JSON-RPC error response; its HTTP response has `status` and `headers`."""

    message: str
    # Errors of HTTP have no code of their own: `status` tells them apart.
    code: int = INVALID_REQUEST
    data: Json = None
    status: HTTPStatus = HTTPStatus.BAD_REQUEST
    headers: Headers = ()


EVENT_TYPE = "text/event-stream"
# For notifications. A body breaks some clients.
ACCEPTED = Response(HTTPStatus.ACCEPTED, (NO_STORE,), b"")


def json_response(
    body: bytes, headers: Headers = (), status: int = HTTPStatus.OK
) -> Response:
    return Response(status, (("Content-Type", JSON_TYPE), NO_STORE, *headers), body)


def event_response(response: Response) -> Response:
    """A 200 response as a stream of one event, for clients that accept nothing else.

    Other responses are unchanged. The JSON has no line breaks.
    """
    if response.status != HTTPStatus.OK:
        return response
    headers = dict(response.headers)
    headers["Content-Type"] = EVENT_TYPE
    # nginx must not buffer the event [R28 basic/transports/streamable-http].
    headers["X-Accel-Buffering"] = "no"
    body = b"event: message\ndata: %s\n\n" % joined(response.body)
    return Response(response.status, tuple(headers.items()), body)


def rpc_error_response(error: RpcError, request_id: Json) -> Response:
    return json_response(failure(request_id, error), error.headers, error.status)


def success(request_id: str | int, result: Mapping[str, Json]) -> bytes:
    """A JSON-RPC response, encoded.

    What a tool has told is encoded already; it becomes `content`, for models, and
    `structuredContent`.
    """
    members = dict(result)
    told: Told | None = members.pop("structuredContent", None)
    response = encoded({"jsonrpc": "2.0", "id": request_id, "result": members})
    if told is None:
        return response
    # They end the result and the response.
    braces = b"}}"
    return b"".join((response.removesuffix(braces), _content(told), braces))


def _content(told: Told) -> bytes:
    """The last members of a tool's result, which say the same."""
    # Compact JSON has no control characters, so these are the only characters that a
    # JSON string must escape.
    text = told.text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    block = b'{"type":"text","text":"%s"}' % text
    return b',"content":[%s],"structuredContent":%s' % (block, told.structured)


def failure(request_id: Json, error: RpcError) -> bytes:
    """A JSON-RPC error response, encoded.

    The id is null if it could not be read (section 5).
    """
    detail: dict[str, Json] = {"code": error.code, "message": error.message}
    if error.data is not None:
        detail["data"] = error.data
    return encoded({"jsonrpc": "2.0", "id": request_id, "error": detail})


def encoded(response: dict[str, Json]) -> bytes:
    """Compact JSON in UTF-8; lone surrogates, as in a client's id, are escaped."""
    text = json.dumps(response, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


# ---- Header fields: origins, Content-Type and Accept ----

ALLOWED_METHODS = "POST, OPTIONS"
SESSION_HEADERS = "Mcp-Session-Id, MCP-Protocol-Version"
EXPOSED_MCP_HEADERS = f"{SESSION_HEADERS}, Retry-After"
VARY = ("Vary", "Origin")
LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def canonical_origin(text: str) -> str:
    """An http or https origin as browsers write it (RFC 6454 section 6.2).

    Any other one is unchanged.
    """
    scheme = text.lower().partition("://")[0]
    if scheme not in DEFAULT_PORTS:
        return text
    return text.lower().removesuffix(DEFAULT_PORTS[scheme])


def may_call(origin: str, own: str, allowed: Collection[str]) -> bool:
    """Whether a page of `origin` may call.

    It may if its origin is `own`, this machine, or one of `allowed`, which has
    canonical origins. A browser sends the page's origin with every POST, which reveals
    DNS rebinding [R11 basic/transports]. A check of `Host` would find no further
    attack, and would refuse clients behind a proxy that changes it.
    """
    if canonical_origin(origin) in (own, *allowed):
        return True
    return LOOPBACK_ORIGIN.fullmatch(origin.lower()) is not None


def cors_headers(origin: str | None, own: str, allowed: Collection[str]) -> Headers:
    """Headers that let a page of `origin` read the response; empty if it may not call.

    `origin` is None for a program that is not a web page. `*` in `allowed` allows all
    pages.
    """
    if "*" in allowed:
        origin = "*"
    elif origin is None:
        origin = own
    elif not may_call(origin, own, allowed):
        return ()
    return (
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Expose-Headers", EXPOSED_MCP_HEADERS),
        VARY,
    )


def check_content(get_header: GetHeader) -> None:
    """Raises RpcError (415) unless the headers declare the body to be plain JSON."""
    refused = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    content_type = (get_header("content-type") or "").partition(";")[0]
    if content_type.strip().lower() != JSON_TYPE:
        raise RpcError(f"send Content-Type: {JSON_TYPE}", status=refused)
    coding = get_header("content-encoding")
    if coding is not None and coding.strip().lower() != "identity":
        raise RpcError("send the body without a Content-Encoding", status=refused)


def wants_events(accept: str | None) -> bool:
    """Whether the client accepts events but no JSON.

    Clients must list both [all revisions]; proxies and older clients list only one
    type, `*/*` or nothing. Raises RpcError (406) if it accepts neither.
    """
    accepted = accepted_types(accept)
    if not accepted or accepted[JSON_TYPE] > 0:
        return False
    if accepted[EVENT_TYPE] > 0:
        return True
    refused = HTTPStatus.NOT_ACCEPTABLE
    raise RpcError(f"accept {JSON_TYPE} or {EVENT_TYPE}", status=refused)


# ---- Messages: JSON to JSON-RPC ----


class RpcMessage(NamedTuple):
    """A JSON-RPC message. A notification has no id, a response no method."""

    method: str | None
    params: dict[str, Json]
    meta: dict[str, Json]  # of the params
    id: str | int | None


def read_message(document: Json) -> RpcMessage:
    """Parse a JSON-RPC message. Raises RpcError (JSON-RPC 2.0 sections 4 and 5)."""
    if not isinstance(document, dict) or document.get("jsonrpc") != "2.0":
        raise RpcError('expected one JSON-RPC message: an object with "jsonrpc": "2.0"')
    if "id" in document and id_of(document) is None:
        raise RpcError("id: expected a string or an integer")
    if _is_response(document):
        return RpcMessage(None, {}, {}, document["id"])
    method = document.get("method")
    params = document.get("params")
    if not isinstance(method, str):
        raise RpcError("method: expected a string")
    if not isinstance(params, dict) and params is not None:
        raise RpcError("params: expected an object", INVALID_PARAMS)
    return RpcMessage(method, params or {}, meta_of(document), document.get("id"))


def _is_response(document: Mapping[str, Json]) -> bool:
    """Whether a message answers a request of ours. There are none, but clients err."""
    if "method" in document or "id" not in document:
        return False
    return "result" in document or "error" in document


def id_of(document: Json) -> str | int | None:
    """The id for a response to `document`; None if it has no valid one."""
    request_id = document.get("id") if isinstance(document, dict) else None
    # A truth value is an int in Python, but no number in JSON.
    if isinstance(request_id, bool) or not isinstance(request_id, (str, int)):
        return None
    return request_id


def meta_of(document: Json) -> dict[str, Json]:
    """`params._meta`; empty if it or `params` is not an object."""
    params = document.get("params") if isinstance(document, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict):
        return {}
    return meta


# ---- Methods: of both eras ----

RpcResult = dict[str, Json]
Method = Callable[[Toolbox, Mapping[str, Json]], RpcResult]


def discover(toolbox: Toolbox, params: Mapping[str, Json]) -> RpcResult:
    return {
        "supportedVersions": SERVED_VERSIONS,
        "capabilities": CAPABILITIES,
        "instructions": toolbox.instructions,
    }


def list_tools(toolbox: Toolbox, params: Mapping[str, Json]) -> RpcResult:
    if params.get("cursor") is not None:
        reason = "cursor: unknown; all tools are on the first page"
        raise RpcError(reason, INVALID_PARAMS)
    return {"tools": toolbox.declarations}


def call_tool(toolbox: Toolbox, params: Mapping[str, Json]) -> RpcResult:
    name = params.get("name")
    arguments = params.get("arguments")
    if not isinstance(name, str):
        raise RpcError("name: expected the name of a tool", INVALID_PARAMS)
    if name not in TOOLS:
        names = [declaration["name"] for declaration in toolbox.declarations]
        reason = f"unknown tool {echo(name)}{nearest(name, names)}"
        raise RpcError(reason, INVALID_PARAMS)
    if not isinstance(arguments, dict) and arguments is not None:
        raise RpcError("arguments: expected an object", INVALID_PARAMS)
    return toolbox.call(name, arguments or {})


def pong(toolbox: Toolbox, params: Mapping[str, Json]) -> RpcResult:
    return {}


def empty_list(member: str) -> Method:
    """A method that lists nothing, whatever page is asked for."""

    def list_nothing(toolbox: Toolbox, params: Mapping[str, Json]) -> RpcResult:
        return {member: []}

    return list_nothing


TOOL_METHODS: dict[str, Method] = {"tools/list": list_tools, "tools/call": call_tool}
# The endpoint adds `initialize`, which needs the version and the URL of the service.
# The empty lists are not declared as capabilities. Some released clients ask for them
# all the same, and drop a server that answers -32601.
INITIALIZE_METHODS: dict[str, Method] = {
    **TOOL_METHODS,
    "ping": pong,
    "prompts/list": empty_list("prompts"),
    "resources/list": empty_list("resources"),
    "resources/templates/list": empty_list("resourceTemplates"),
}
STATELESS_METHODS: dict[str, Method] = {**TOOL_METHODS, "server/discover": discover}
# Members of results by method [R28 server/utilities/caching]. A minute: that is how old
# a page may be that a cache serves.
CACHING = {
    name: {"ttlMs": 60_000, "cacheScope": "public"}
    for name in ("server/discover", "tools/list")
}


def result_of(
    methods: Mapping[str, Method], toolbox: Toolbox, message: RpcMessage
) -> RpcResult:
    """The result of a request. Raises RpcError, also for an unknown method."""
    method = methods.get(str(message.method))
    if method is None:
        reason = f"Method not found: {echo(message.method)}"
        raise RpcError(reason, METHOD_NOT_FOUND, status=HTTPStatus.NOT_FOUND)
    return method(toolbox, message.params)


# ---- Stateless requests: claims and headers ----


def is_stateless(document: Json, get_header: GetHeader) -> bool:
    """Whether a message is of the stateless era: its body says so, or else its header.

    The header of an `initialize` is ignored: clients put their newest version there.
    """
    if VERSION_CLAIM in meta_of(document):
        return True
    if isinstance(document, dict) and document.get("method") == "initialize":
        return False
    return get_header(VERSION_HEADER) not in (None, *INITIALIZE_VERSIONS)


def check_claims(message: RpcMessage, get_header: GetHeader) -> None:
    """Raises RpcError unless the request claims a served revision, as its header does.

    A notification needs no claim in `_meta`.
    """
    version = get_header(VERSION_HEADER)
    has_claim = VERSION_CLAIM in message.meta
    claim = message.meta.get(VERSION_CLAIM, version)
    is_request = message.id is not None
    if is_request and has_claim:
        claim = _checked_claim(message.meta)
        _check_mirrored("MCP-Protocol-Version", version, claim)
    if claim not in STATELESS_VERSIONS:
        reason = "is not served"
        if claim in INITIALIZE_VERSIONS:
            reason = "needs initialize"
        raise RpcError(
            f"protocol version {echo(claim)} {reason}",
            UNSUPPORTED_VERSION,
            data={"supported": SERVED_VERSIONS, "requested": echo(claim)},
        )
    if is_request and not has_claim:
        raise RpcError(f"_meta: {VERSION_CLAIM} is missing", INVALID_PARAMS)


def _checked_claim(meta: Mapping[str, Json]) -> str:
    """The claimed revision. Raises RpcError for claims of wrong types."""
    claim = meta[VERSION_CLAIM]
    if not isinstance(claim, str):
        raise RpcError(f"_meta: {VERSION_CLAIM} must be a string", INVALID_PARAMS)
    if not isinstance(meta.get(CAPABILITIES_CLAIM), dict):
        reason = f"_meta: {CAPABILITIES_CLAIM} must be an object"
        raise RpcError(reason, INVALID_PARAMS)
    return claim


def check_headers(message: RpcMessage, get_header: GetHeader) -> None:
    """Raises RpcError unless `Mcp-Method` and `Mcp-Name` repeat values of the body."""
    method = str(message.method)
    _check_mirrored("Mcp-Method", get_header("mcp-method"), method)
    if method not in NAME_PARAMETERS:
        return
    name = message.params.get(NAME_PARAMETERS[method])
    # The method itself refuses anything but a string.
    if isinstance(name, str):
        _check_mirrored("Mcp-Name", _decoded(get_header("mcp-name")), name)


def _check_mirrored(header: str, value: str | None, expected: str) -> None:
    if value is None:
        raise RpcError(f"{header}: the header is missing", HEADER_MISMATCH)
    if value != expected:
        reason = f"{header}: {echo(value)} differs from the body's {echo(expected)}"
        raise RpcError(reason, HEADER_MISMATCH)


# [R28 basic/transports/streamable-http]
ENCODED_VALUE = re.compile(r"=\?base64\?(.*)\?=")


def _decoded(value: str | None) -> str | None:
    """A header value, decoded if it is in base64 form."""
    match = ENCODED_VALUE.fullmatch(value or "")
    if match is None:
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode()
    except ValueError:
        raise RpcError("Mcp-Name: not UTF-8 in base64", HEADER_MISMATCH) from None


# ---- The endpoint ----


class McpServer:
    """The endpoint of a service. It keeps no state between requests."""

    def __init__(self, base_url: str, allowed_origins: Collection[str], version: str):
        """`version` is the program's; `allowed_origins` are serialized origins.

        `*` among them allows all pages.
        """
        self._program = {"version": version, "websiteUrl": base_url}
        address = urlsplit(base_url)
        self._own_origin = canonical_origin(f"{address.scheme}://{address.netloc}")
        self._allowed_origins = {canonical_origin(origin) for origin in allowed_origins}
        self._initialize_methods = INITIALIZE_METHODS | {"initialize": self._initialize}

    def handle(
        self, method: str, get_header: GetHeader, body: bytes, toolbox: Toolbox
    ) -> Response:
        """The response to any request; the caller bounds the size of `body`."""
        cors = self._cors(get_header)
        try:
            if not cors:
                raise RpcError(
                    "this Origin may not call",
                    status=HTTPStatus.FORBIDDEN,
                    headers=(VARY,),
                )
            response = self._respond(method, get_header, body, toolbox)
        except RpcError as error:
            response = rpc_error_response(error, None)
        return response._replace(headers=response.headers + cors)

    def refusal(
        self, status: HTTPStatus, message: str, get_header: GetHeader
    ) -> Response:
        """The response to a request that `handle` never gets.

        Its body is too large, for example, or too many requests wait.
        """
        code = INVALID_REQUEST
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            code = INTERNAL_ERROR
        error = RpcError(message, code, status=status, headers=self._cors(get_header))
        return rpc_error_response(error, None)

    def _cors(self, get_header: GetHeader) -> Headers:
        origin = get_header("origin")
        return cors_headers(origin, self._own_origin, self._allowed_origins)

    def _respond(
        self, method: str, get_header: GetHeader, body: bytes, toolbox: Toolbox
    ) -> Response:
        if method == "POST":
            return self._post(get_header, body, toolbox)
        if method == "OPTIONS":
            # Which pages may call is decided by their origin, not by their fields.
            return Response(HTTPStatus.NO_CONTENT, preflight(ALLOWED_METHODS), b"")
        raise RpcError(
            "this is an MCP endpoint: POST a JSON-RPC message to it",
            status=HTTPStatus.METHOD_NOT_ALLOWED,
            headers=(("Allow", ALLOWED_METHODS),),
        )

    def _post(self, get_header: GetHeader, body: bytes, toolbox: Toolbox) -> Response:
        check_content(get_header)
        as_events = wants_events(get_header("accept"))
        try:
            document = decode(body, lone_surrogates=True)
        except NotJson as error:
            # Only the first fault; there may be thousands.
            reason = error.faults[0][1]
            raise RpcError(f"Parse error: {reason}", PARSE_ERROR) from None
        try:
            response = self._message_response(document, get_header, toolbox)
        except RpcError as error:
            response = rpc_error_response(error, id_of(document))
        if as_events:
            return event_response(response)
        return response

    def _message_response(
        self, document: Json, get_header: GetHeader, toolbox: Toolbox
    ) -> Response:
        message = read_message(document)
        if is_stateless(document, get_header):
            return self._stateless(message, get_header, toolbox)
        return self._initialize_era(message, toolbox)

    def _stateless(
        self, message: RpcMessage, get_header: GetHeader, toolbox: Toolbox
    ) -> Response:
        if message.method is None:
            raise RpcError("expected a request, not a response")
        check_claims(message, get_header)
        if message.id is None:
            return ACCEPTED
        check_headers(message, get_header)
        result = {
            "resultType": "complete",
            "_meta": {SERVER_INFO: self._server_info(toolbox)},
            **result_of(STATELESS_METHODS, toolbox, message),
            **CACHING.get(message.method, {}),
        }
        return json_response(success(message.id, result))

    def _initialize_era(self, message: RpcMessage, toolbox: Toolbox) -> Response:
        if message.method is None or message.id is None:
            return ACCEPTED
        try:
            result = result_of(self._initialize_methods, toolbox, message)
        except RpcError as error:
            # Clients of this era take any other status for a broken connection.
            error.status = HTTPStatus.OK
            raise
        headers: Headers = ()
        if message.method == "initialize":
            # Nothing is kept under the id, and none is ever looked at: any instance may
            # answer any request.
            session_id = secrets.token_urlsafe(SESSION_ID_BYTES)
            headers = (("Mcp-Session-Id", session_id),)
        return json_response(success(message.id, result), headers)

    def _initialize(self, toolbox: Toolbox, params: Mapping[str, Json]) -> RpcResult:
        """Accept the requested version, or offer the newest that has a handshake.

        [R11 basic/lifecycle]
        """
        version = params.get("protocolVersion")
        if not isinstance(version, str):
            reason = "protocolVersion: expected a string such as 2025-11-25"
            raise RpcError(reason, INVALID_PARAMS)
        for name in ("capabilities", "clientInfo"):
            if not isinstance(params.get(name, {}), dict):
                raise RpcError(f"{name}: expected an object", INVALID_PARAMS)
        if version not in INITIALIZE_VERSIONS:
            version = INITIALIZE_VERSIONS[0]
        return {
            "protocolVersion": version,
            "capabilities": CAPABILITIES,
            "serverInfo": self._server_info(toolbox),
            "instructions": toolbox.instructions,
        }

    def _server_info(self, toolbox: Toolbox) -> RpcResult:
        return {"name": "reviewsd", "title": toolbox.title, **self._program}
