"""The MCP endpoint: computes the response to an HTTP request for `/mcp`, without side effects.

This module knows JSON-RPC 2.0 and the Model Context Protocol. It knows no single tool, no data, no server, no
other route, no file, no thread and no clock; a test calls `McpEndpoint.handle` without a socket.

The endpoint serves two eras of the protocol. *Initialize era*: a client begins with a handshake (revisions
2025-03-26, 2025-06-18, 2025-11-25). *Stateless era*: every request claims its revision in `params._meta`, and
its headers repeat revision, method and tool (revision 2026-07-28). Responses are not streamed, and requests
leave no state behind.

Pages of the specification are cited as [R28 page]: R28 is revision 2026-07-28 of
https://modelcontextprotocol.io/specification; R03, R06 and R11 are the three older ones.

Sections: Protocol - Responses - Header fields - Messages - Methods - Stateless requests - Endpoint
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

from reviewslib.dataset.query import echo, nearest
from reviewslib.dataset.reviews import ReviewList
from reviewslib.dataset.strict_json import Json, NotJson, decode
from reviewslib.mcp_tools import TOOLS, Toolbox
from reviewslib.messages import (
    JSON_TYPE,
    NO_STORE,
    GetHeader,
    Headers,
    Response,
    accepted_types,
    joined,
)

# ---- Protocol: names and numbers of the specification ----

STATELESS_VERSIONS = ("2026-07-28",)
INITIALIZE_VERSIONS = (
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
)  # newest first; batches are not served
SERVED_VERSIONS = STATELESS_VERSIONS + INITIALIZE_VERSIONS

VERSION_CLAIM = (
    "io.modelcontextprotocol/protocolVersion"  # keys of `_meta` [R28 basic/index]
)
CAPABILITIES_CLAIM = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

VERSION_HEADER = "mcp-protocol-version"
SESSION_ID_BYTES = 32  # of randomness [R11 basic/transports]
# By method: the parameter that `Mcp-Name` repeats [R28 basic/transports/streamable-http].
NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

PARSE_ERROR = -32700  # JSON-RPC 2.0 section 5.1
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020  # [R28 basic/index]
UNSUPPORTED_VERSION = -32022
CAPABILITIES: dict[str, Json] = {"tools": {}}


# ---- Responses: results and errors in JSON-RPC and in HTTP ----


@dataclass(eq=False)
class RpcError(Exception):
    """A JSON-RPC error response, with the `status` and `headers` of its HTTP response."""

    message: str
    code: int = INVALID_REQUEST  # also for errors of HTTP, which the status identifies
    data: Json = None
    status: HTTPStatus = HTTPStatus.BAD_REQUEST
    headers: Headers = ()


EVENT_TYPE = "text/event-stream"
ACCEPTED = Response(
    HTTPStatus.ACCEPTED, (NO_STORE,), b""
)  # for notifications; a body breaks some clients


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
    # nginx must not buffer the event [R28 basic/transports/streamable-http].
    headers = dict(response.headers) | {
        "Content-Type": EVENT_TYPE,
        "X-Accel-Buffering": "no",
    }
    body = b"event: message\ndata: %s\n\n" % joined(response.body)
    return Response(response.status, tuple(headers.items()), body)


def rpc_error_response(error: RpcError, request_id: Json) -> Response:
    return json_response(failure(request_id, error), error.headers, error.status)


def success(request_id: str | int, result: Mapping[str, Json]) -> bytes:
    """A JSON-RPC response, encoded.

    The `structuredContent` of a tool is encoded already; `content` repeats it for text-only clients.
    """
    members = dict(result)
    structured: bytes | ReviewList | None = members.pop("structuredContent", None)
    response = encoded({"jsonrpc": "2.0", "id": request_id, "result": members})
    if structured is None:
        return response
    document = (
        structured.encoded() if isinstance(structured, ReviewList) else structured
    )
    # Compact JSON has no control characters, so these are the only ones that a JSON string must escape.
    text = document.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    content = b',"content":[{"type":"text","text":"%s"}],"structuredContent":%s}}' % (
        text,
        document,
    )
    return response[: -len("}}")] + content


def failure(request_id: Json, error: RpcError) -> bytes:
    """A JSON-RPC error response, encoded; the id is null if it could not be read (section 5)."""
    data = {} if error.data is None else {"data": error.data}
    detail = {"code": error.code, "message": error.message} | data
    return encoded({"jsonrpc": "2.0", "id": request_id, "error": detail})


def encoded(response: dict[str, Json]) -> bytes:
    """Compact JSON in UTF-8; a lone surrogate, as a client's id may hold, is escaped."""
    return json.dumps(response, ensure_ascii=False, separators=(",", ":")).encode(
        errors="backslashreplace"
    )


# ---- Header fields: origins, Content-Type and Accept ----

ALLOWED_METHODS = "POST, OPTIONS"
SESSION_HEADERS = "Mcp-Session-Id, MCP-Protocol-Version"
EXPOSED_HEADERS = f"{SESSION_HEADERS}, Retry-After"
SENT_HEADERS = f"Content-Type, Accept, Authorization, Last-Event-ID, {SESSION_HEADERS}, Mcp-Method, Mcp-Name"
PREFLIGHT = (
    ("Allow", ALLOWED_METHODS),
    ("Access-Control-Allow-Methods", ALLOWED_METHODS),
    ("Access-Control-Allow-Headers", SENT_HEADERS),
    ("Access-Control-Max-Age", "86400"),
)
VARY = ("Vary", "Origin")
LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def canonical_origin(text: str) -> str:
    """An http or https origin as browsers write it (RFC 6454 section 6.2); any other one is unchanged."""
    port = DEFAULT_PORTS.get(text.lower().partition("://")[0])
    return text.lower().removesuffix(port) if port else text


# A browser sends the page's origin with every POST, which reveals DNS rebinding [R11 basic/transports]. A
# check of `Host` would find no further attack, and would refuse clients behind a proxy that changes it.
def cors_headers(origin: str | None, own: str, allowed: Collection[str]) -> Headers:
    """Headers that let a page of `origin` read the response; empty if the page may not call.

    `origin` is None for a program that is not a web page. A page may call if its origin is `own`, this
    machine, or in `allowed`, which has canonical origins; `*` allows all pages.
    """
    if "*" in allowed:
        origin = "*"
    elif origin is None:
        origin = own
    elif canonical_origin(origin) not in (
        own,
        *allowed,
    ) and not LOOPBACK_ORIGIN.fullmatch(origin.lower()):
        return ()
    return (
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Expose-Headers", EXPOSED_HEADERS),
        VARY,
    )


def check_content(get_header: GetHeader) -> None:
    """Raises RpcError (415) unless the headers declare the body to be plain JSON."""
    if (get_header("content-type") or "").partition(";")[
        0
    ].strip().lower() != JSON_TYPE:
        raise RpcError(
            f"send Content-Type: {JSON_TYPE}", status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        )
    coding = get_header("content-encoding")
    if coding is not None and coding.strip().lower() != "identity":
        raise RpcError(
            "send the body without a Content-Encoding",
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )


@lru_cache(maxsize=256)
def wants_events(accept: str) -> bool:
    """Whether the client accepts events but no JSON. Raises RpcError (406) if it accepts neither.

    Clients must list both [all revisions]; proxies and older clients list only one type, `*/*` or nothing.
    """
    accepted = accepted_types(accept)
    if not accepted or accepted[JSON_TYPE] > 0:
        return False
    if accepted[EVENT_TYPE] > 0:
        return True
    raise RpcError(
        f"accept {JSON_TYPE} or {EVENT_TYPE}", status=HTTPStatus.NOT_ACCEPTABLE
    )


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
    if (
        "method" not in document
        and "id" in document
        and ("result" in document or "error" in document)
    ):
        return RpcMessage(None, {}, {}, document["id"])
    method = document.get("method")
    params = document.get("params")
    if not isinstance(method, str):
        raise RpcError("method: expected a string")
    if not isinstance(params, dict) and params is not None:
        raise RpcError("params: expected an object", INVALID_PARAMS)
    return RpcMessage(method, params or {}, meta_of(document), document.get("id"))


def id_of(document: Json) -> str | int | None:
    """The id for a response to `document`; None if it has no valid one."""
    request_id = document.get("id") if isinstance(document, dict) else None
    return (
        request_id
        if isinstance(request_id, (str, int)) and not isinstance(request_id, bool)
        else None
    )


def meta_of(document: Json) -> dict[str, Json]:
    """`params._meta`; empty if it or `params` is not an object."""
    params = document.get("params") if isinstance(document, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


# ---- Methods of both eras ----

Result = dict[str, Json]
Method = Callable[[Toolbox, Mapping[str, Json]], Result]


def discover(toolbox: Toolbox, params: Mapping[str, Json]) -> Result:
    about = {"capabilities": CAPABILITIES, "instructions": toolbox.instructions}
    return {"supportedVersions": SERVED_VERSIONS} | about


def list_tools(toolbox: Toolbox, params: Mapping[str, Json]) -> Result:
    if params.get("cursor") is not None:
        raise RpcError(
            "cursor: unknown; all tools are on the first page", INVALID_PARAMS
        )
    return {"tools": toolbox.declarations}


def call_tool(toolbox: Toolbox, params: Mapping[str, Json]) -> Result:
    name = params.get("name")
    arguments = params.get("arguments")
    if not isinstance(name, str):
        raise RpcError("name: expected the name of a tool", INVALID_PARAMS)
    if name not in TOOLS:
        names = [declaration["name"] for declaration in toolbox.declarations]
        raise RpcError(
            f"unknown tool {echo(name)}{nearest(name, names)}", INVALID_PARAMS
        )
    if not isinstance(arguments, dict) and arguments is not None:
        raise RpcError("arguments: expected an object", INVALID_PARAMS)
    return toolbox.call(name, arguments or {})


TOOL_METHODS = {"tools/list": list_tools, "tools/call": call_tool}
# The endpoint adds `initialize`, which needs the version and the URL of the service.
INITIALIZE_METHODS: dict[str, Method] = TOOL_METHODS | {
    "ping": lambda toolbox, params: {}
}
STATELESS_METHODS = TOOL_METHODS | {"server/discover": discover}
# Members of results by method [R28 server/utilities/caching].
CACHING = {
    name: {"ttlMs": 60000, "cacheScope": "public"}
    for name in ("server/discover", "tools/list")
}


def result_of(
    methods: Mapping[str, Method], toolbox: Toolbox, message: RpcMessage
) -> Result:
    """The result of a request. Raises RpcError, also for an unknown method."""
    if (method := methods.get(str(message.method))) is None:
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
    is_handshake = isinstance(document, dict) and document.get("method") == "initialize"
    return not is_handshake and get_header(VERSION_HEADER) not in (
        None,
        *INITIALIZE_VERSIONS,
    )


def check_claims(message: RpcMessage, get_header: GetHeader) -> None:
    """Raises RpcError unless the request claims a served revision and the header repeats it."""
    version = get_header(VERSION_HEADER)
    claim = message.meta.get(VERSION_CLAIM, version)
    is_request = message.id is not None  # a notification needs no claim in `_meta`
    if is_request and VERSION_CLAIM in message.meta:
        if not isinstance(claim, str):
            raise RpcError(f"_meta: {VERSION_CLAIM} must be a string", INVALID_PARAMS)
        if not isinstance(message.meta.get(CAPABILITIES_CLAIM), dict):
            raise RpcError(
                f"_meta: {CAPABILITIES_CLAIM} must be an object", INVALID_PARAMS
            )
        _check_mirrored("MCP-Protocol-Version", version, claim)
    if claim not in STATELESS_VERSIONS:
        reason = "needs initialize" if claim in INITIALIZE_VERSIONS else "is not served"
        data = {"supported": SERVED_VERSIONS, "requested": echo(claim)}
        raise RpcError(
            f"protocol version {echo(claim)} {reason}", UNSUPPORTED_VERSION, data
        )
    if is_request and VERSION_CLAIM not in message.meta:
        raise RpcError(f"_meta: {VERSION_CLAIM} is missing", INVALID_PARAMS)


def check_headers(message: RpcMessage, get_header: GetHeader) -> None:
    """Raises RpcError unless `Mcp-Method` and `Mcp-Name` repeat the values of the body."""
    method = str(message.method)
    _check_mirrored("Mcp-Method", get_header("mcp-method"), method)
    name = (
        message.params.get(NAME_PARAMETERS[method])
        if method in NAME_PARAMETERS
        else None
    )
    if isinstance(name, str):  # the method refuses anything else
        _check_mirrored("Mcp-Name", _decoded(get_header("mcp-name")), name)


def _check_mirrored(header: str, value: str | None, expected: str) -> None:
    if value is None:
        raise RpcError(f"{header}: the header is missing", HEADER_MISMATCH)
    if value != expected:
        raise RpcError(
            f"{header}: {echo(value)} differs from the body's {echo(expected)}",
            HEADER_MISMATCH,
        )


ENCODED_VALUE = re.compile(
    r"=\?base64\?(.*)\?="
)  # [R28 basic/transports/streamable-http]


def _decoded(value: str | None) -> str | None:
    """A header value, decoded if it is in base64 form."""
    if value is None or not (match := ENCODED_VALUE.fullmatch(value)):
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode()
    except ValueError:
        raise RpcError("Mcp-Name: not UTF-8 in base64", HEADER_MISMATCH) from None


# ---- Endpoint ----


class McpEndpoint:
    """The endpoint of a service. It keeps no state between requests."""

    def __init__(self, base_url: str, allowed_origins: Collection[str], version: str):
        """`allowed_origins` are serialized origins, or `*` for all pages; `version` is the program's."""
        self._program = {"version": version, "websiteUrl": base_url}
        address = urlsplit(base_url)
        self._own_origin = canonical_origin(f"{address.scheme}://{address.netloc}")
        self._allowed_origins = {canonical_origin(origin) for origin in allowed_origins}
        self._initialize_methods = INITIALIZE_METHODS | {"initialize": self._initialize}

    def handle(
        self, method: str, get_header: GetHeader, body: bytes, toolbox: Toolbox
    ) -> Response:
        """The response to any request; the caller bounds the size of `body`."""
        cors = cors_headers(
            get_header("origin"), self._own_origin, self._allowed_origins
        )
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
        """The response to a request that never reaches `handle`, such as one with too large a body."""
        code = (
            INVALID_REQUEST
            if status < HTTPStatus.INTERNAL_SERVER_ERROR
            else INTERNAL_ERROR
        )
        cors = cors_headers(
            get_header("origin"), self._own_origin, self._allowed_origins
        )
        return rpc_error_response(
            RpcError(message, code, status=status, headers=cors), None
        )

    def _respond(
        self, method: str, get_header: GetHeader, body: bytes, toolbox: Toolbox
    ) -> Response:
        if method == "POST":
            return self._post(get_header, body, toolbox)
        if method == "OPTIONS":
            return Response(HTTPStatus.NO_CONTENT, PREFLIGHT, b"")
        reason = "this is an MCP endpoint: POST a JSON-RPC message to it"
        raise RpcError(
            reason,
            status=HTTPStatus.METHOD_NOT_ALLOWED,
            headers=(("Allow", ALLOWED_METHODS),),
        )

    def _post(self, get_header: GetHeader, body: bytes, toolbox: Toolbox) -> Response:
        check_content(get_header)
        as_events = wants_events(get_header("accept") or "")
        try:
            document = decode(body, lone_surrogates=True)
        except NotJson as error:
            _, reason = error.faults[0]  # only the first; there may be thousands
            raise RpcError(f"Parse error: {reason}", PARSE_ERROR) from None
        respond = (
            self._stateless
            if is_stateless(document, get_header)
            else self._initialize_era
        )
        try:
            response = respond(read_message(document), get_header, toolbox)
        except RpcError as error:
            response = rpc_error_response(error, id_of(document))
        return event_response(response) if as_events else response

    def _stateless(
        self, message: RpcMessage, get_header: GetHeader, toolbox: Toolbox
    ) -> Response:
        if message.method is None:
            raise RpcError("expected a request, not a response")
        check_claims(message, get_header)
        if message.id is None:
            return ACCEPTED
        check_headers(message, get_header)
        result = result_of(STATELESS_METHODS, toolbox, message)
        head = {
            "resultType": "complete",
            "_meta": {SERVER_INFO: self._server_info(toolbox)},
        }
        return json_response(
            success(message.id, head | result | CACHING.get(message.method, {}))
        )

    def _initialize_era(
        self, message: RpcMessage, get_header: GetHeader, toolbox: Toolbox
    ) -> Response:
        if message.method is None or message.id is None:
            return ACCEPTED
        try:
            result = result_of(self._initialize_methods, toolbox, message)
        except RpcError as error:
            error.status = (
                HTTPStatus.OK
            )  # clients of this era treat other statuses as a broken connection
            raise
        # No state is kept for a session: session ids in requests are ignored, and any instance may respond.
        session = (("Mcp-Session-Id", secrets.token_urlsafe(SESSION_ID_BYTES)),)
        return json_response(
            success(message.id, result),
            session if message.method == "initialize" else (),
        )

    def _initialize(self, toolbox: Toolbox, params: Mapping[str, Json]) -> Result:
        """Accept the requested version if it has a handshake, else offer the newest [R11 basic/lifecycle]."""
        requested = params.get("protocolVersion")
        if not isinstance(requested, str):
            raise RpcError(
                "protocolVersion: expected a string such as 2025-11-25", INVALID_PARAMS
            )
        for name in ("capabilities", "clientInfo"):
            if not isinstance(params.get(name, {}), dict):
                raise RpcError(f"{name}: expected an object", INVALID_PARAMS)
        version = (
            requested if requested in INITIALIZE_VERSIONS else INITIALIZE_VERSIONS[0]
        )
        about = {
            "serverInfo": self._server_info(toolbox),
            "instructions": toolbox.instructions,
        }
        return {"protocolVersion": version, "capabilities": CAPABILITIES} | about

    def _server_info(self, toolbox: Toolbox) -> Result:
        return {"name": "reviewsd", "title": toolbox.title} | self._program
