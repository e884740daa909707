"""The MCP endpoint answers as the revisions of the specification require; the tests need no socket.

They call `McpEndpoint.handle` with bytes and headers.

Sections: Asking - Initialize era - Session ids - Stateless requests - Messages - HTTP - Origins - Anything
"""

import base64
import json
import re
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_sample import BUSINESS, CALLS, DECLARED, TOOLBOX, Object

from mcp_rpc import McpEndpoint
from reviewslib.mcp_tools import TOOLS, Toolbox
from reviewslib.web.representations import Response

HANDSHAKE_VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
ALL_VERSIONS = [STATELESS, *HANDSHAKE_VERSIONS[::-1]]
BASE_URL = "https://reviews.example"


# ---- Asking ----


def endpoint(*origins: str) -> McpEndpoint:
    return McpEndpoint(BASE_URL, origins, "1.0.0")


ENDPOINT = endpoint()


def send(
    body: bytes | Any,
    *,
    method: str = "POST",
    to: McpEndpoint = ENDPOINT,
    toolbox: Toolbox = TOOLBOX,
    **headers: str | None,
) -> Response:
    """The response to `body`, which is encoded unless it is bytes; names of `headers` have `_` for `-`."""
    usual = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    sent_headers = usual | {name.replace("_", "-"): value for name, value in headers.items()}
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return to.handle(method, sent_headers.get, sent, toolbox)


def request(method: str, params: Any = None, id: Any = 1) -> Object:
    return {"jsonrpc": "2.0", "id": id, "method": method} | ({} if params is None else {"params": params})


def call(tool: str, arguments: Any = None, id: Any = 1) -> Object:
    return request("tools/call", {"name": tool, "arguments": arguments}, id)


def notification(method: str) -> Object:
    return {"jsonrpc": "2.0", "method": method}


ANSWERED = {"jsonrpc": "2.0", "id": 7, "result": {}}


def claims(version: Any = STATELESS) -> Object:
    prefix = "io.modelcontextprotocol"
    return {f"{prefix}/protocolVersion": version, f"{prefix}/clientCapabilities": {}}


def send_stateless(method: str, params: Object | None = None, **changes: str | None) -> Response:
    """Send a correct stateless request, with `changes` of headers; None leaves a header out."""
    params = {"_meta": claims()} | (params or {})
    mirrored = {"mcp_protocol_version": STATELESS, "mcp_method": method, "mcp_name": params.get("name")}
    return send(request(method, params), **(mirrored | changes))


def answer(response: Response) -> Any:
    return json.loads(response.body)


def result(response: Response) -> Object:
    assert response.status == HTTPStatus.OK
    whole: Object = answer(response)
    outcome: Object = whole.pop("result")
    assert (whole.keys(), whole["jsonrpc"]) == ({"jsonrpc", "id"}, "2.0")
    return outcome


def error(response: Response) -> tuple[int, int]:
    """The HTTP status and the JSON-RPC code; a refusal never begins a session."""
    assert header(response, "Mcp-Session-Id") is None
    return response.status, answer(response)["error"]["code"]


def header(response: Response, name: str) -> str | None:
    return dict(response.headers).get(name)


def handshake(version: str = "2025-06-18", **headers: str | None) -> Response:
    return send(request("initialize", {"protocolVersion": version, "capabilities": {}}), **headers)


# ---- Initialize era ----


@pytest.mark.parametrize("header_version", [None, STATELESS, "2025-11-25", "nonsense"])
@pytest.mark.parametrize("version", [*ALL_VERSIONS, "2024-11-05", "2099-01-01", "", "\ud800"])
def test_a_handshake_agrees_to_a_served_version_else_to_the_newest(
    version: str, header_version: str | None
) -> None:
    agreed = version if version in HANDSHAKE_VERSIONS else "2025-11-25"
    assert result(handshake(version, mcp_protocol_version=header_version))["protocolVersion"] == agreed


SERVER = {"name": "reviewsd", "title": f"Reviews of {BUSINESS}", "version": "1.0.0", "websiteUrl": BASE_URL}


def test_the_handshake_offers_tools_and_nothing_else() -> None:
    offered = {"capabilities": {"tools": {}}, "serverInfo": SERVER, "instructions": TOOLBOX.instructions}
    assert result(handshake()) == {"protocolVersion": "2025-06-18"} | offered
    assert BUSINESS in TOOLBOX.instructions


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_requests_are_served_before_the_client_says_that_it_is_initialized(version: str) -> None:
    response = send(request("tools/list", {"cursor": None}), mcp_protocol_version=version)
    assert result(response) == {"tools": DECLARED}
    assert len(response.body) < 24_000, "a model reads the whole list"
    assert result(send(request("ping"), mcp_protocol_version=version)) == {}


@pytest.mark.parametrize(("tool", "arguments"), [*CALLS.items(), ("search_reviews", {"limit": 100})])
def test_a_call_is_answered_by_its_tool_twice(tool: str, arguments: Object) -> None:
    structured = TOOLBOX.call(tool, arguments)["structuredContent"]
    text = (structured if isinstance(structured, bytes) else structured.encoded()).decode()
    content = [{"type": "text", "text": text}]  # for clients that do not read the structured content
    expected = {"content": content, "isError": False, "structuredContent": json.loads(text)}
    assert result(send(call(tool, arguments))) == expected


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}])
def test_arguments_may_be_absent(arguments: Object) -> None:
    body = request("tools/call", {"name": "get_business"} | arguments)
    assert send(body) == send(call("get_business", {}))


@pytest.mark.parametrize(
    "body",
    [
        *map(notification, ["notifications/initialized", "notifications/cancelled", "tools/call", "x"]),
        ANSWERED,
        {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}},
    ],
)
def test_notifications_and_posted_responses_are_accepted_without_a_body(body: Any) -> None:
    for accept in ("application/json", "text/event-stream"):
        response = send(body, accept=accept)
        assert (response.status, response.body, header(response, "Content-Type")) == (202, b"", None)


# ---- Session ids ----


def test_every_handshake_makes_a_new_id_that_is_visible_and_safe_in_a_url() -> None:
    responses = [handshake(version, mcp_session_id="stale") for version in HANDSHAKE_VERSIONS * 7]
    ids = {str(header(response, "Mcp-Session-Id")) for response in responses}
    assert len(ids) == 21
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", id) for id in ids)


@pytest.mark.parametrize("id", ["", "é.é.é", "a, b", "x" * 5000])
def test_any_session_id_is_ignored(id: str) -> None:
    assert send(request("ping"), mcp_session_id=id) == send(request("ping"))


# ---- Stateless requests ----


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
def test_stateless_results_are_complete_and_equal_those_of_the_other_era(method: str) -> None:
    params = {"name": "get_business"} if method == "tools/call" else {}
    response = send_stateless(method, params, mcp_session_id="nonsense")
    assert header(response, "Mcp-Session-Id") is None
    about = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": SERVER}}
    caching = {} if method == "tools/call" else {"ttlMs": 60000, "cacheScope": "public"}
    newest_first = {"supportedVersions": ALL_VERSIONS, "capabilities": {"tools": {}}}
    discovered = newest_first | {"instructions": TOOLBOX.instructions}
    of_the_other = discovered if method == "server/discover" else result(send(request(method, params)))
    assert result(response) == about | caching | of_the_other


@pytest.mark.parametrize("version", ["2099-01-01", "2024-11-05", "2025-11-25", ""])
@pytest.mark.parametrize("body", [request("tools/list"), notification("x")])
def test_an_unserved_version_is_refused_with_the_served_ones(version: str, body: Object) -> None:
    how = "needs initialize" if version == "2025-11-25" else "is not served"
    claiming = body | {"params": {"_meta": claims(version)}}
    response = send(claiming, mcp_protocol_version=version, mcp_method="tools/list")
    assert error(response) == (400, -32022)
    assert answer(response)["error"]["data"] == {"supported": ALL_VERSIONS, "requested": version}
    assert answer(response)["error"]["message"] == f"protocol version {version} {how}"


def test_an_unserved_version_in_the_header_alone_is_refused_too() -> None:
    assert error(send(request("tools/list"), mcp_protocol_version="2099-01-01")) == (400, -32022)


CALL = {"name": "get_business", "arguments": {}}
VERSION_CLAIM, CAPABILITIES_CLAIM = claims()
NOT_BASE64 = ("base64????", "base64?é", "base64?/w==", "base64?Z2V0X2J1!c2luZXNz")
Headers = dict[str, str | None]
WRONG_CLAIMS: list[tuple[Object, str]] = [
    ({VERSION_CLAIM: STATELESS}, f"_meta: {CAPABILITIES_CLAIM} must be an object"),
    (claims() | {CAPABILITIES_CLAIM: []}, f"_meta: {CAPABILITIES_CLAIM} must be an object"),
    ({CAPABILITIES_CLAIM: {}}, f"_meta: {VERSION_CLAIM} is missing"),
    *[(claims(it), f"_meta: {VERSION_CLAIM} must be a string") for it in (None, 20260728, [], {}, True)],
]
WRONG_HEADERS: list[tuple[Headers, str]] = [
    ({"mcp_protocol_version": None}, "MCP-Protocol-Version: the header is missing"),
    ({"mcp_protocol_version": "a"}, f"MCP-Protocol-Version: a differs from the body's {STATELESS}"),
    ({"mcp_method": None}, "Mcp-Method: the header is missing"),
    ({"mcp_method": "Tools/Call"}, "Mcp-Method: Tools/Call differs from the body's tools/call"),
    ({"mcp_name": None}, "Mcp-Name: the header is missing"),
    ({"mcp_name": "=?BASE64?eA==?="}, "Mcp-Name: =?BASE64?eA==?= differs from the body's get_business"),
    *[({"mcp_name": f"=?{encoded}?="}, "Mcp-Name: not UTF-8 in base64") for encoded in NOT_BASE64],
]
REFUSED_STATELESS: list[tuple[tuple[int, int], str, Object, Headers, str]] = [
    *[((404, -32601), it, {}, {}, f"Method not found: {it}") for it in ("initialize", "ping", "prompts/get")],
    *[((400, -32602), "tools/list", {"_meta": wrong}, {}, message) for wrong, message in WRONG_CLAIMS],
    ((400, -32602), "tools/call", {}, {}, "name: expected the name of a tool"),
    *[((400, -32020), "tools/call", CALL, wrong, message) for wrong, message in WRONG_HEADERS],
]


@pytest.mark.parametrize(("refusal", "method", "params", "headers", "message"), REFUSED_STATELESS)
def test_a_stateless_request_with_wrong_claims_or_headers_is_refused(
    refusal: tuple[int, int], method: str, params: Object, headers: Headers, message: str
) -> None:
    response = send_stateless(method, params, **headers)
    assert error(response) == refusal
    assert (answer(response)["id"], answer(response)["error"]["message"]) == (1, message)


@pytest.mark.parametrize(
    ("body", "message"),
    [(request("x"), f"_meta: {VERSION_CLAIM} is missing"), (ANSWERED, "expected a request, not a response")],
)
def test_the_header_alone_makes_a_message_stateless(body: Object, message: str) -> None:
    assert answer(send(body, mcp_protocol_version=STATELESS))["error"]["message"] == message


def test_a_notification_needs_no_header_and_a_list_no_name() -> None:
    assert send(notification("x") | {"params": {"_meta": claims()}}).status == 202
    assert send(notification("x"), mcp_protocol_version=STATELESS).status == 202
    assert send_stateless("tools/list", {"": "no name"}).status == 200


@pytest.mark.parametrize(
    ("name", "code"),
    [("get_topics", None), ("Größe", -32602), ("=?base64??=", -32602), ("\ud800", -32020)],
)
def test_any_name_can_be_sent_in_base64(name: str, code: int | None) -> None:
    encoded = base64.b64encode(name.encode("utf-8", "surrogatepass")).decode()
    response = send_stateless("tools/call", {"name": name}, mcp_name=f"=?base64?{encoded}?=")
    if code:
        assert error(response) == (400, code)
    else:
        assert result(response)["isError"] is False


# ---- Messages ----


@pytest.mark.parametrize(
    "body",
    [
        *[b"", b"{", b"\xff\xfe", b"[" * 65536, b"[%s]" % b",".join([b"NaN"] * 10000)],
        '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le"),
        b'{"jsonrpc":"2.0","id":' + b"1" * 4301 + b',"method":"ping"}',
    ],
)
def test_a_body_that_is_not_json_in_utf_8_is_a_parse_error(body: bytes) -> None:
    response = send(body)
    assert error(response) == (400, -32700)
    assert answer(response)["id"] is None
    assert answer(response)["error"]["message"].startswith("Parse error: ")
    assert len(response.body) < 300


HELLO = {"protocolVersion": "2025-06-18"}
KNOWN_TOOLS = f"; the known ones are {', '.join(TOOLS)}"
REFUSED: list[tuple[int, int, str, list[Any]]] = [
    (400, -32600, 'expected one JSON-RPC message: an object with "jsonrpc": "2.0"',
     [None, 5, {}, [], [request("ping")], {"id": 1, "method": "ping"}, request("ping") | {"jsonrpc": "1.0"}]),
    (400, -32600, "id: expected a string or an integer",
     [request("ping", id=id) for id in (None, True, False, 1.0, [], {})]),
    (400, -32600, "method: expected a string",
     [{"jsonrpc": "2.0", "id": 1}, {"jsonrpc": "2.0", "id": 1, "method": 5, "result": {}},
      {"jsonrpc": "2.0", "result": {}}]),
    (400, -32602, "params: expected an object", [request("ping", params) for params in (5, [], False)]),
    (200, -32601, "Method not found: server/discover", [request("server/discover")]),
    (200, -32601, "Method not found: ", [request("")]),
    (200, -32602, "cursor: unknown; all tools are on the first page",
     [request("tools/list", {"cursor": cursor}) for cursor in ("", "2", 5)]),
    (200, -32602, "name: expected the name of a tool",
     [request("tools/call", params) for params in ({}, {"name": 5})]),
    (200, -32602, "unknown tool get_reviews; did you mean get_review?", [call("get_reviews")]),
    (200, -32602, f"unknown tool �{KNOWN_TOOLS}", [call("\ud800")]),
    (200, -32602, f"unknown tool {'x' * 200}…{KNOWN_TOOLS}", [call("x" * 1000)]),
    (200, -32602, "arguments: expected an object", [call("get_business", it) for it in (5, [], False)]),
    (200, -32602, "protocolVersion: expected a string such as 2025-11-25",
     [request("initialize", params) for params in (None, {"protocolVersion": 1})]),
    (200, -32602, "clientInfo: expected an object", [request("initialize", HELLO | {"clientInfo": "me"})]),
    (200, -32602, "capabilities: expected an object", [request("initialize", HELLO | {"capabilities": []})]),
]  # fmt: skip


@pytest.mark.parametrize(("status", "code", "message", "bodies"), REFUSED)
def test_an_invalid_message_is_400_and_an_impossible_request_200(
    status: int, code: int, message: str, bodies: list[Any]
) -> None:
    for body in bodies:
        response = send(body)
        assert error(response) == (status, code)
        id = body.get("id") if isinstance(body, dict) else None
        fault = {"code": code, "message": message}
        assert answer(response) == {"jsonrpc": "2.0", "id": id if type(id) is int else None, "error": fault}


def test_an_answer_is_compact_json_in_utf_8() -> None:
    response = send(request("ping", id="é\ud800"))
    assert response.body == '{"jsonrpc":"2.0","id":"é\\ud800","result":{}}'.encode()


@given(id=st.integers() | st.text(st.characters()) | st.sampled_from(["\ud800", "\\\udfff", 10**4000]))
def test_ids_come_back_exactly(id: int | str) -> None:
    for body in (request("ping", id=id), request("nonsense", id=id), call("get_business", id=id)):
        assert answer(send(body))["id"] == id
    stateless = request("tools/list", {"_meta": claims()}, id=id)
    for method in ("tools/list", "nonsense"):
        response = send(stateless, mcp_protocol_version=STATELESS, mcp_method=method)
        assert answer(response)["id"] == id


# ---- HTTP ----


NO_POST = "this is an MCP endpoint: POST a JSON-RPC message to it"
NO_TYPE = "send Content-Type: application/json"
NO_CODING = "send the body without a Content-Encoding"
NO_ACCEPT = "accept application/json or text/event-stream"
REFUSED_BY_HTTP: list[tuple[int, str, list[dict[str, Any]]]] = [
    (405, NO_POST, [{"method": it} for it in ("GET", "DELETE", "HEAD", "PUT", "PATCH", "NONSENSE")]),
    (415, NO_TYPE, [{"content_type": it} for it in (None, "", "text/plain", "application/json-patch+json")]),
    (415, NO_CODING, [{"content_encoding": it} for it in ("", "gzip")]),
    (406, NO_ACCEPT, [{"accept": it} for it in ("text/html", "application/json;q=0", "*/*;q=0")]),
]


@pytest.mark.parametrize(("status", "message", "requests"), REFUSED_BY_HTTP)
def test_a_request_against_the_rules_of_http_is_refused(
    status: int, message: str, requests: list[dict[str, Any]]
) -> None:
    for headers in requests:
        response = send(request("ping"), **headers)
        assert error(response) == (status, -32600)
        assert answer(response)["error"]["message"] == message
        assert header(response, "Allow") == ("POST, OPTIONS" if status == 405 else None)


JSON, EVENTS = "application/json", "text/event-stream"


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        *[(accept, JSON) for accept in (None, "", " , ", "*/*", "application/*", "application/json")],
        ("application/json;q=0.1, text/event-stream", JSON),
        *[(accept, EVENTS) for accept in ("text/event-stream", "text/*;q=0.5", "application/json;q=0, */*")],
    ],
)
def test_json_is_preferred_and_events_are_for_those_who_take_nothing_else(
    accept: str | None, content_type: str
) -> None:
    plain_json = {"content_type": "Application/JSON; charset=utf-8", "content_encoding": "Identity"}
    response = send(request("ping"), accept=accept, **plain_json)
    assert (response.status, header(response, "Content-Type")) == (200, content_type)


def test_an_event_is_one_message_with_the_same_json() -> None:
    body = call("search_reviews", {"limit": 100})
    response = send(body, accept=EVENTS)
    assert response.body == b"event: message\ndata: %s\n\n" % send(body).body
    assert response.body.count(b"\n") == 3
    assert header(response, "X-Accel-Buffering") == "no"
    assert header(handshake(accept=EVENTS), "Mcp-Session-Id")
    refused = send(b"{", accept=EVENTS)  # the status is not 200, so the response is JSON
    assert (refused.status, header(refused, "Content-Type")) == (400, JSON)


# ---- Origins ----

OURS = BASE_URL
ADMITTED = [
    *[OURS, "https://reviews.example:443", "HTTPS://Reviews.Example"],
    *["http://localhost", "http://localhost:6274", "https://127.0.0.1:9103", "http://[::1]:3000"],
    *["https://app.example", "vscode-webview://panel"],
]
STRANGERS = [
    *["null", "", "*", "https://evil.example", "http://reviews.example", "https://reviews.example:8443"],
    *["https://reviews.example.evil.example", "https://evil.example/https://reviews.example"],
    *["http://127.0.0.1:9103.evil.example", "http://127.0.0.1.evil.example", "http://127.0.0.2"],
    *["http://localhost.evil.example", "http://localhost@evil.example", "http://evil.example#localhost"],
    *["http://localhost:6274/", "http://localhost\n", "http://localhost:٣", "chrome-extension://localhost"],
    *["http://localhost, https://evil.example", "http://localhost:", "http://localhost:123456"],
]
METHODS = ["POST", "GET", "DELETE", "OPTIONS", "HEAD"]
LISTING = endpoint("https://app.example:443", "vscode-webview://panel")


def cors(response: Response) -> list[str | None]:
    """The values of the headers that say which pages may read the response, and which headers."""
    return [header(response, f"Access-Control-{name}") for name in ("Allow-Origin", "Expose-Headers")]


@pytest.mark.parametrize("origin", ADMITTED)
def test_known_pages_may_call_and_read_every_answer(origin: str) -> None:
    for method in METHODS:
        response = send(request("ping"), method=method, to=LISTING, origin=origin)
        assert response.status != 403
        assert cors(response) == [origin, "Mcp-Session-Id, MCP-Protocol-Version, Retry-After"]
        assert header(response, "Vary") == "Origin"


@pytest.mark.parametrize("origin", STRANGERS)
def test_other_pages_may_do_nothing_and_read_nothing(origin: str) -> None:
    for method in METHODS:
        response = send(request("ping"), method=method, to=LISTING, origin=origin)
        assert error(response) == (403, -32600)
        assert answer(response)["error"]["message"] == "this Origin may not call"
        assert (cors(response), header(response, "Vary")) == ([None, None], "Origin")


@pytest.mark.parametrize("origin", [*ADMITTED, *STRANGERS])
def test_with_a_star_every_page_may_call(origin: str) -> None:
    response = send(request("ping"), to=endpoint("*"), origin=origin)
    assert (result(response), cors(response)[0]) == ({}, "*")


def test_a_preflight_lets_clients_of_both_eras_send_their_headers() -> None:
    response = send(b"", method="OPTIONS", origin=OURS, access_control_request_method="POST")
    assert (response.status, response.body) == (204, b"")
    assert dict(response.headers) == {
        "Allow": "POST, OPTIONS",
        "Access-Control-Allow-Methods": "POST, OPTIONS",
        "Access-Control-Allow-Headers": "Content-Type, Accept, Authorization, Last-Event-ID, Mcp-Session-Id, "
        "MCP-Protocol-Version, Mcp-Method, Mcp-Name",
        "Access-Control-Max-Age": "86400",
        "Access-Control-Allow-Origin": OURS,
        "Access-Control-Expose-Headers": "Mcp-Session-Id, MCP-Protocol-Version, Retry-After",
        "Vary": "Origin",
    }


@pytest.mark.parametrize(("status", "code"), [(413, -32600), (400, -32600), (500, -32603)])
def test_errors_outside_the_endpoint_have_the_same_form(status: int, code: int) -> None:
    response = LISTING.refusal(HTTPStatus(status), "no", {"origin": OURS}.get)
    assert error(response) == (status, code)
    assert header(response, "Access-Control-Allow-Origin") == OURS
    assert header(LISTING.refusal(HTTPStatus(status), "no", {"origin": "null"}.get), "Vary") is None


# ---- Anything ----

TEXTS = st.text(st.characters(), max_size=20)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda values: st.lists(values, max_size=4) | st.dictionaries(TEXTS, values, max_size=4),
    max_leaves=10,
)
ARGUMENT_NAMES = sorted({name for tool in DECLARED for name in tool["inputSchema"]["properties"]})
USUAL: dict[str, list[Any]] = {  # by the name of a header or of a member of a message
    "accept": ["*/*", EVENTS],
    "content-type": [JSON],
    "content-encoding": ["identity"],
    "origin": ["null", OURS],
    "mcp-protocol-version": ALL_VERSIONS,
    "mcp-method": ["tools/call", "tools/list"],
    "mcp-name": list(TOOLS),
    "jsonrpc": ["2.0"],
    "method": ["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/x"],
    "name": list(TOOLS),
    "protocolVersion": ALL_VERSIONS,
    VERSION_CLAIM: ALL_VERSIONS,
    CAPABILITIES_CLAIM: [{}],
}


def members(other: st.SearchStrategy[Any], names: list[str], **more: st.SearchStrategy[Any]) -> Any:
    """Objects with these members; a member may be absent, or its value may be usual or `other`."""
    usual = {name: st.sampled_from(USUAL[name]) for name in names}
    optional = {name: one | other for name, one in (usual | more).items()}
    return st.fixed_dictionaries({}, optional=optional)


ARGUMENTS = st.dictionaries(st.sampled_from(ARGUMENT_NAMES), JSON_VALUES, max_size=4)
META = members(JSON_VALUES, [VERSION_CLAIM, CAPABILITIES_CLAIM])
PARAMS = members(JSON_VALUES, ["name", "protocolVersion"], arguments=ARGUMENTS, _meta=META, cursor=TEXTS)
MESSAGES = members(JSON_VALUES, ["jsonrpc", "method"], id=st.integers(), params=PARAMS, result=JSON_VALUES)
LATIN_1 = st.text(st.characters(max_codepoint=255), max_size=20)
HEADERS = members(LATIN_1, [name for name in USUAL if "-" in name or name in ("accept", "origin")])
DOCUMENTS = MESSAGES | st.lists(MESSAGES, max_size=12) | JSON_VALUES


@pytest.mark.slow
@settings(max_examples=400)
@given(DOCUMENTS | st.binary(max_size=200), HEADERS, st.just("POST") | st.sampled_from(METHODS) | LATIN_1)
def test_any_request_gets_a_well_formed_response(sent: Any, headers: Object, method: str) -> None:
    response = send(sent, method=method, **headers)
    assert response.status in {200, 202, 204, 400, 403, 404, 405, 406, 415}
    assert bool(response.body) == (response.status not in (202, 204))
    names = {name.lower() for name, _ in response.headers}
    assert response.status == 204 or ("Cache-Control", "no-store") in response.headers
    assert not names & {"connection", "keep-alive", "transfer-encoding", "content-length"}
    asked = sent if isinstance(sent, list) else [sent]
    ids = [None, *(one.get("id") for one in asked if isinstance(one, dict))]
    answers = json.loads(response.body.removeprefix(b"event: message\ndata: ") or b"[]")
    for one in answers if isinstance(answers, list) else [answers]:
        assert one.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        assert one["jsonrpc"] == "2.0"
        assert one["id"] in ids and not isinstance(one["id"], (bool, float))
        if "error" in one:
            assert isinstance(one["error"]["code"], int) and isinstance(one["error"]["message"], str)
