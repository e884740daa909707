"""The MCP endpoint answers as the revisions of the specification require; the tests need no socket.

They call `McpEndpoint.handle` with bytes and headers.

Sections: Asking - Initialize era - Stateless era - Refusals - Forms of an answer - Origins - Anything
"""

import base64
import json
import re
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.mcp_sample import BUSINESS, CALLS, DECLARED, TOOLBOX, Object
from lab.small_files import any_json, any_text, mutations

from mcp_rpc import McpEndpoint, success
from reviewslib.dataset.strict_json import encode
from reviewslib.mcp_tools import TOOLS
from reviewslib.messages import Response

HANDSHAKE_VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
ALL_VERSIONS = [STATELESS, *HANDSHAKE_VERSIONS[::-1]]
BASE_URL = "https://reviews.example"
JSON = "application/json"
EVENTS = "text/event-stream"

# ---- Asking: a message, and the arguments of `send` for one ----


def endpoint(*origins: str) -> McpEndpoint:
    return McpEndpoint(BASE_URL, origins, "1.0.0")


ENDPOINT = endpoint()


def request(method: str, params: Any = None, id: Any = 1) -> Object:
    return {"jsonrpc": "2.0", "id": id, "method": method} | (
        {} if params is None else {"params": params}
    )


def call(tool: str, arguments: Any = None, id: Any = 1) -> Object:
    return request("tools/call", {"name": tool, "arguments": arguments}, id)


def notification(method: str) -> Object:
    return {"jsonrpc": "2.0", "method": method}


PING = request("ping")
ANSWERED = {"jsonrpc": "2.0", "id": 7, "result": {}}


def claims(version: Any = STATELESS) -> Object:
    prefix = "io.modelcontextprotocol"
    return {f"{prefix}/protocolVersion": version, f"{prefix}/clientCapabilities": {}}


VERSION_CLAIM, CAPABILITIES_CLAIM = claims()


def stateless(
    method: str, params: Object | None = None, **changes: str | None
) -> Object:
    """A correct stateless request, with `changes` of headers; None leaves a header out."""
    params = {"_meta": claims()} | (params or {})
    mirrored = {
        "mcp_protocol_version": STATELESS,
        "mcp_method": method,
        "mcp_name": params.get("name"),
    }
    return {"body": request(method, params)} | mirrored | changes


def send(
    body: Any = PING,
    *,
    method: str = "POST",
    to: McpEndpoint = ENDPOINT,
    **headers: str | None,
) -> Response:
    """The response to `body`, which is encoded unless it is bytes; names of `headers` have `_` for `-`."""
    usual = {"content-type": JSON, "accept": f"{JSON}, {EVENTS}"}
    sent_headers = usual | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return to.handle(method, sent_headers.get, sent, TOOLBOX)


def handshake(version: str = "2025-06-18", **headers: str | None) -> Response:
    return send(
        request("initialize", {"protocolVersion": version, "capabilities": {}}),
        **headers,
    )


def result(response: Response, id: Any = 1) -> Object:
    whole: Object = json.loads(response.body)
    assert (response.status, whole) == (
        200,
        {"jsonrpc": "2.0", "id": id, "result": whole.get("result")},
    )
    outcome: Object = whole["result"]
    return outcome


def header(response: Response, name: str) -> str | None:
    return dict(response.headers).get(name)


# ---- Initialize era ----


@pytest.mark.parametrize("header_version", [None, STATELESS, "2025-11-25", "nonsense"])
@pytest.mark.parametrize(
    "version", [*ALL_VERSIONS, "2024-11-05", "2099-01-01", "", "\ud800"]
)
def test_a_handshake_agrees_to_a_served_version_else_to_the_newest(
    version: str, header_version: str | None
) -> None:
    agreed = version if version in HANDSHAKE_VERSIONS else "2025-11-25"
    assert (
        result(handshake(version, mcp_protocol_version=header_version))[
            "protocolVersion"
        ]
        == agreed
    )


SERVER = {
    "name": "reviewsd",
    "title": f"Reviews of {BUSINESS}",
    "version": "1.0.0",
    "websiteUrl": BASE_URL,
}
OFFERED = {
    "capabilities": {"tools": {}},
    "serverInfo": SERVER,
    "instructions": TOOLBOX.instructions,
}


def test_the_handshake_offers_tools_and_nothing_else() -> None:
    assert result(handshake()) == {"protocolVersion": "2025-06-18"} | OFFERED


def test_every_handshake_makes_a_new_id_that_is_visible_and_safe_in_a_url() -> None:
    responses = [
        handshake(version, mcp_session_id="stale") for version in HANDSHAKE_VERSIONS * 7
    ]
    ids = {str(header(response, "Mcp-Session-Id")) for response in responses}
    assert len(ids) == 21
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", id) for id in ids)


@pytest.mark.parametrize("version", [None, *HANDSHAKE_VERSIONS])
@pytest.mark.parametrize(
    ("body", "expected"),
    [(request("tools/list", {"cursor": None}), {"tools": DECLARED}), (PING, {})],
)
def test_a_request_needs_no_handshake(
    body: Object, expected: Object, version: str | None
) -> None:
    response = send(body, mcp_protocol_version=version, mcp_session_id="é, x")
    assert result(response) == expected
    assert header(response, "Mcp-Session-Id") is None
    assert len(response.body) < 24_000, "a model reads the whole list"


@pytest.mark.parametrize(
    ("tool", "arguments"), [*CALLS.items(), ("search_reviews", None)]
)
def test_a_call_is_answered_by_its_tool_twice(
    tool: str, arguments: Object | None
) -> None:
    structured = TOOLBOX.call(tool, arguments or {})["structuredContent"]
    whole = structured if isinstance(structured, bytes) else structured.encoded()

    called = result(send(call(tool, arguments)))

    (block,) = called["content"]
    assert called["structuredContent"] == json.loads(whole)
    assert json.loads(block["text"]) == brief(json.loads(whole))


def brief(value: Any) -> Any:
    """What models read of a result: nothing that is empty, no address of a picture."""
    if isinstance(value, list):
        return [brief(item) for item in value]
    if not isinstance(value, dict):
        return value
    unread = ("author_avatar_url", "source_url")
    return {
        key: brief(member)
        for key, member in value.items()
        if member not in (None, []) and key not in unread
    }


FAILED = {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}}


@pytest.mark.parametrize(
    "body", [*map(notification, ["notifications/initialized", "x"]), ANSWERED, FAILED]
)
def test_notifications_and_posted_responses_are_accepted_without_a_body(
    body: Any,
) -> None:
    for accept in (JSON, EVENTS):
        response = send(body, accept=accept)
        assert (response.status, response.body, header(response, "Content-Type")) == (
            202,
            b"",
            None,
        )


# ---- Stateless era ----


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
def test_stateless_results_are_complete_and_equal_those_of_the_other_era(
    method: str,
) -> None:
    params = {"name": "get_business"} if method == "tools/call" else {}
    response = send(**stateless(method, params, mcp_session_id="nonsense"))
    assert header(response, "Mcp-Session-Id") is None
    about = {
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": SERVER},
    }
    caching = {} if method == "tools/call" else {"ttlMs": 60000, "cacheScope": "public"}
    discovered = OFFERED | {"supportedVersions": ALL_VERSIONS}  # newest first
    del discovered["serverInfo"]
    of_the_other = (
        discovered
        if method == "server/discover"
        else result(send(request(method, params)))
    )
    assert result(response) == about | caching | of_the_other


@pytest.mark.parametrize("version", ["2099-01-01", "2024-11-05", "2025-11-25", ""])
@pytest.mark.parametrize("body", [request("tools/list"), notification("x")])
def test_an_unserved_version_is_refused_with_the_served_ones(
    version: str, body: Object
) -> None:
    how = "needs initialize" if version == "2025-11-25" else "is not served"
    claiming = body | {"params": {"_meta": claims(version)}}
    response = send(claiming, mcp_protocol_version=version, mcp_method="tools/list")
    assert response.status == 400
    assert json.loads(response.body)["error"] == {
        "code": -32022,
        "message": f"protocol version {version} {how}",
        "data": {"supported": ALL_VERSIONS, "requested": version},
    }


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"body": notification("x") | {"params": {"_meta": claims()}}}, 202),
        ({"body": notification("x"), "mcp_protocol_version": STATELESS}, 202),
        (stateless("tools/list", {"": "no name"}), 200),
    ],
)
def test_a_notification_needs_no_header_and_a_list_no_name(
    sent: Object, status: int
) -> None:
    assert send(**sent).status == status


def in_base64(name: str) -> Object:
    encoded = base64.b64encode(name.encode("utf-8", "surrogatepass")).decode()
    return stateless("tools/call", {"name": name}, mcp_name=f"=?base64?{encoded}?=")


def test_a_name_can_be_sent_in_base64() -> None:
    assert result(send(**in_base64("get_topics")))["isError"] is False


# ---- Refusals ----


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
    prefix = (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: '
    )
    assert (response.status, response.body[: len(prefix)]) == (400, prefix)
    assert len(response.body) < 300


def posted(*bodies: Any) -> list[Object]:
    return [{"body": body} for body in bodies]


HELLO = {"protocolVersion": "2025-06-18"}
KNOWN_TOOLS = f"; the known ones are {', '.join(TOOLS)}"
NO_CAPABILITIES = f"_meta: {CAPABILITIES_CLAIM} must be"
VERSION_IS_MISSING = f"_meta: {VERSION_CLAIM} is"
CALLING = ("tools/call", {"name": "get_business", "arguments": {}})
NOT_BASE64 = ("base64????", "base64?é", "base64?/w==", "base64?Z2V0X2J1!c2luZXNz")
NO_POST = "this is an MCP endpoint: POST a JSON-RPC message to it"
REFUSED: list[tuple[int, int, str, list[Object]]] = [
    # HTTP: nothing is read, so the id is null
    (
        405,
        -32600,
        NO_POST,
        [
            {"method": it}
            for it in ("GET", "DELETE", "HEAD", "PUT", "PATCH", "NONSENSE")
        ],
    ),
    (
        415,
        -32600,
        "send Content-Type: application/json",
        [
            {"content_type": it}
            for it in (None, "", "text/plain", "application/json-patch+json")
        ],
    ),
    (
        415,
        -32600,
        "send the body without a Content-Encoding",
        [{"content_encoding": it} for it in ("", "x")],
    ),
    (
        406,
        -32600,
        "accept application/json or text/event-stream",
        [{"accept": it} for it in ("text/html", "application/json;q=0", "*/*;q=0")],
    ),
    # Messages
    (
        400,
        -32600,
        'expected one JSON-RPC message: an object with "jsonrpc": "2.0"',
        posted(
            None,
            5,
            {},
            [],
            [PING],
            {"id": 1, "method": "ping"},
            PING | {"jsonrpc": "1.0"},
        ),
    ),
    (
        400,
        -32600,
        "id: expected a string or an integer",
        posted(*(request("ping", id=id) for id in (None, True, False, 1.0, [], {}))),
    ),
    (
        400,
        -32600,
        "method: expected a string",
        posted(
            {"jsonrpc": "2.0", "id": 1},
            ANSWERED | {"method": 5},
            {"jsonrpc": "2.0", "result": {}},
        ),
    ),
    (
        400,
        -32602,
        "params: expected an object",
        posted(*(request("ping", it) for it in (5, [], False))),
    ),
    # Requests of the initialize era, whose clients take any other status for a broken connection
    (
        200,
        -32601,
        "Method not found: server/discover",
        posted(request("server/discover")),
    ),
    (200, -32601, "Method not found: ", posted(request(""))),
    (
        200,
        -32602,
        "cursor: unknown; all tools are on the first page",
        posted(*(request("tools/list", {"cursor": it}) for it in ("", "2", 5))),
    ),
    (
        200,
        -32602,
        "name: expected the name of a tool",
        posted(*(request("tools/call", it) for it in ({}, {"name": 5}))),
    ),
    (
        200,
        -32602,
        "unknown tool get_reviews; did you mean get_review?",
        posted(call("get_reviews")),
    ),
    (200, -32602, f"unknown tool �{KNOWN_TOOLS}", posted(call("\ud800"))),
    (200, -32602, f"unknown tool {'x' * 200}…{KNOWN_TOOLS}", posted(call("x" * 1000))),
    (
        200,
        -32602,
        "arguments: expected an object",
        posted(*(call("get_business", it) for it in (5, [], False))),
    ),
    (
        200,
        -32602,
        "protocolVersion: expected a string such as 2025-11-25",
        posted(*(request("initialize", it) for it in (None, {"protocolVersion": 1}))),
    ),
    *[
        (
            200,
            -32602,
            f"{name}: expected an object",
            posted(request("initialize", HELLO | {name: []})),
        )
        for name in ("clientInfo", "capabilities")
    ],
    # Stateless requests
    *[
        (404, -32601, f"Method not found: {it}", [stateless(it)])
        for it in ("initialize", "ping")
    ],
    (
        400,
        -32602,
        f"{NO_CAPABILITIES} an object",
        [
            stateless("tools/list", {"_meta": {VERSION_CLAIM: STATELESS} | it})
            for it in ({}, {CAPABILITIES_CLAIM: []})
        ],
    ),
    (
        400,
        -32602,
        f"{VERSION_IS_MISSING} missing",
        [
            stateless("tools/list", {"_meta": {CAPABILITIES_CLAIM: {}}}),
            {"body": request("x"), "mcp_protocol_version": STATELESS},
        ],
    ),
    (
        400,
        -32602,
        f"_meta: {VERSION_CLAIM} must be a string",
        [
            stateless("tools/list", {"_meta": claims(it)})
            for it in (None, 20260728, [], {}, True)
        ],
    ),
    (
        400,
        -32600,
        "expected a request, not a response",
        [{"body": ANSWERED, "mcp_protocol_version": STATELESS}],
    ),
    (400, -32602, "name: expected the name of a tool", [stateless("tools/call")]),
    *[
        (
            400,
            -32020,
            f"{name}: the header is missing",
            [stateless(*CALLING, **{key: None})],
        )
        for name, key in (
            ("MCP-Protocol-Version", "mcp_protocol_version"),
            ("Mcp-Method", "mcp_method"),
            ("Mcp-Name", "mcp_name"),
        )
    ],
    (
        400,
        -32020,
        f"MCP-Protocol-Version: a differs from the body's {STATELESS}",
        [stateless(*CALLING, mcp_protocol_version="a")],
    ),
    (
        400,
        -32020,
        "Mcp-Method: Tools/Call differs from the body's tools/call",
        [stateless(*CALLING, mcp_method="Tools/Call")],
    ),
    (
        400,
        -32020,
        "Mcp-Name: =?BASE64?eA==?= differs from the body's get_business",
        [stateless(*CALLING, mcp_name="=?BASE64?eA==?=")],
    ),
    (
        400,
        -32020,
        "Mcp-Name: not UTF-8 in base64",
        [
            in_base64("\ud800"),
            *(stateless(*CALLING, mcp_name=f"=?{it}?=") for it in NOT_BASE64),
        ],
    ),
    *[
        (400, -32602, f"unknown tool {it}{KNOWN_TOOLS}", [in_base64(it)])
        for it in ("Größe", "=?base64??=")
    ],
]


@pytest.mark.parametrize(("status", "code", "message", "requests"), REFUSED)
def test_a_wrong_request_is_refused_with_status_code_and_reason(
    status: int, code: int, message: str, requests: list[Object]
) -> None:
    for sent in requests:
        response = send(**sent)
        body = sent.get("body")
        id = body.get("id") if isinstance(body, dict) else None
        fault = {"code": code, "message": message}
        whole = {
            "jsonrpc": "2.0",
            "id": id if type(id) is int else None,
            "error": fault,
        }
        assert (response.status, json.loads(response.body)) == (status, whole), sent
        assert header(response, "Mcp-Session-Id") is None
        assert header(response, "Allow") == ("POST, OPTIONS" if status == 405 else None)


@pytest.mark.parametrize(
    ("status", "code"), [(413, -32600), (400, -32600), (500, -32603)]
)
def test_errors_outside_the_endpoint_have_the_same_form(status: int, code: int) -> None:
    response = ENDPOINT.refusal(HTTPStatus(status), "no", {"origin": BASE_URL}.get)
    assert (response.status, json.loads(response.body)["error"]["code"]) == (
        status,
        code,
    )
    assert header(response, "Access-Control-Allow-Origin") == BASE_URL
    assert (
        header(
            ENDPOINT.refusal(HTTPStatus(status), "no", {"origin": "null"}.get), "Vary"
        )
        is None
    )


# ---- Forms of an answer ----


def test_an_answer_is_compact_json_in_utf_8() -> None:
    response = send(request("ping", id="é\ud800"))
    assert response.body == '{"jsonrpc":"2.0","id":"é\\ud800","result":{}}'.encode()


@given(id=st.integers() | any_text | st.sampled_from(["\ud800", "\\\udfff", 10**4000]))
def test_ids_come_back_exactly(id: int | str) -> None:
    listing = request("tools/list", {"_meta": claims()}, id)
    headers = [
        {"mcp_protocol_version": STATELESS, "mcp_method": it}
        for it in ("tools/list", "nonsense")
    ]
    for sent in (
        *posted(PING | {"id": id}, call("x", id=id)),
        *({"body": listing} | it for it in headers),
    ):
        assert json.loads(send(**sent).body)["id"] == id


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        *[
            (accept, JSON)
            for accept in (None, "", " , ", "*/*", "application/*", "application/json")
        ],
        ("application/json;q=0.1, text/event-stream", JSON),
        *[
            (accept, EVENTS)
            for accept in (
                "text/event-stream",
                "text/*;q=0.5",
                "application/json;q=0, */*",
            )
        ],
    ],
)
def test_json_is_preferred_and_events_are_for_those_who_take_nothing_else(
    accept: str | None, content_type: str
) -> None:
    plain_json = {
        "content_type": "Application/JSON; charset=utf-8",
        "content_encoding": "Identity",
    }
    response = send(accept=accept, **plain_json)
    assert (response.status, header(response, "Content-Type")) == (200, content_type)


def test_an_event_is_one_message_with_the_same_json() -> None:
    body = call("search_reviews", {"limit": 100})
    response = send(body, accept=EVENTS)
    assert response.body == b"event: message\ndata: %s\n\n" % send(body).body
    assert response.body.count(b"\n") == 3
    assert header(response, "X-Accel-Buffering") == "no"
    assert header(handshake(accept=EVENTS), "Mcp-Session-Id")
    assert header(send({}, accept=EVENTS), "Content-Type") == JSON, (
        "a refusal is no event"
    )


BRIEF = [
    pytest.param({"a": None, "b": []}, {}, id="null and an empty list"),
    pytest.param({"a": 0, "b": False, "c": "", "d": {}}, ..., id="other empty values"),
    pytest.param(
        {"source_url": "https://x", "author_avatar_url": "https://y", "page_url": "z"},
        {"page_url": "z"},
        id="addresses that no model opens",
    ),
    pytest.param(
        {"reviews": [{"text": None, "rating": 4, "tags": []}, [None]]},
        {"reviews": [{"rating": 4}, [None]]},
        id="in lists",
    ),
    pytest.param(
        {"a": {"b": {"c": None, "d": 'é\\"\u2028'}}},
        {"a": {"b": {"d": 'é\\"\u2028'}}},
        id="deep",
    ),
]


@pytest.mark.parametrize(("structured", "said"), BRIEF)
def test_the_text_of_a_result_leaves_out_what_says_nothing(
    structured: Object, said: Any
) -> None:
    result = {"isError": False, "structuredContent": encode(structured)}

    answer = json.loads(success(1, result))["result"]

    (content,) = answer["content"]
    assert json.loads(content["text"]) == (structured if said is ... else said)
    assert answer["structuredContent"] == structured


# ---- Origins ----

ADMITTED = [
    *[BASE_URL, "https://reviews.example:443", "HTTPS://Reviews.Example"],
    *[
        "http://localhost",
        "http://localhost:6274",
        "https://127.0.0.1:9103",
        "http://[::1]:3000",
    ],
    *["https://app.example", "vscode-webview://panel"],
]
STRANGERS = [
    *[
        "null",
        "",
        "*",
        "https://evil.example",
        "http://reviews.example",
        "https://reviews.example:8443",
    ],
    *[
        "https://reviews.example.evil.example",
        "https://evil.example/https://reviews.example",
    ],
    *[
        "http://127.0.0.1:9103.evil.example",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.2",
    ],
    *[
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example#localhost",
    ],
    *[
        "http://localhost:6274/",
        "http://localhost\n",
        "http://localhost:٣",
        "chrome-extension://localhost",
    ],
    *[
        "http://localhost, https://evil.example",
        "http://localhost:",
        "http://localhost:123456",
    ],
]
ALLOWING = endpoint("https://app.example:443", "vscode-webview://panel")
EXPOSED = "Mcp-Session-Id, MCP-Protocol-Version, Retry-After"
REFUSAL = {"code": -32600, "message": "this Origin may not call"}


def cors(response: Response) -> list[str | None]:
    """The values of the headers that say which pages may read the response, and which headers."""
    names = ("Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Vary")
    return [header(response, name) for name in names]


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS", "HEAD"])
def test_only_known_pages_may_call_and_they_may_read_every_answer(method: str) -> None:
    for origin in ADMITTED:
        response = send(method=method, to=ALLOWING, origin=origin)
        assert (response.status != 403, cors(response)) == (
            True,
            [origin, EXPOSED, "Origin"],
        )
    for origin in STRANGERS:
        response = send(method=method, to=ALLOWING, origin=origin)
        assert (response.status, json.loads(response.body)["error"]) == (
            403,
            REFUSAL,
        ), origin
        assert cors(response) == [None, None, "Origin"]


@pytest.mark.parametrize("origin", [*ADMITTED, *STRANGERS])
def test_with_a_star_every_page_may_call(origin: str) -> None:
    response = send(to=endpoint("*"), origin=origin)
    assert (result(response), cors(response)[0]) == ({}, "*")


def test_a_preflight_lets_pages_send_whatever_their_libraries_add() -> None:
    response = send(b"", method="OPTIONS", origin=BASE_URL)

    assert (response.status, response.body) == (204, b"")
    assert cors(response) == [BASE_URL, EXPOSED, "Origin"]
    assert dict(response.headers[:4]) == {
        "Allow": "POST, OPTIONS",
        "Access-Control-Allow-Methods": "POST, OPTIONS",
        "Access-Control-Allow-Headers": "*, Authorization",
        "Access-Control-Max-Age": "86400",
    }


# ---- Anything ----

SENT = [
    request("initialize", HELLO | {"capabilities": {}}),
    *(call(*asked) for asked in CALLS.items()),
]
SENT += [PING, ANSWERED, stateless("tools/list")["body"], stateless(*CALLING)["body"]]
LATIN_1 = st.text(st.characters(max_codepoint=255), max_size=20)
USUAL = {
    "accept": ["*/*", EVENTS],
    "content_type": [JSON],
    "origin": ADMITTED,
    "mcp_name": list(TOOLS),
}
USUAL |= {
    "mcp_protocol_version": ALL_VERSIONS,
    "mcp_method": ["tools/call", "tools/list"],
}
HEADERS = {name: st.sampled_from(values) | LATIN_1 for name, values in USUAL.items()}


@pytest.mark.slow
@settings(max_examples=400)
@given(
    st.sampled_from(SENT).flatmap(mutations) | any_json | st.binary(max_size=200),
    st.fixed_dictionaries({}, optional=HEADERS),
    st.just("POST") | st.sampled_from(["GET", "OPTIONS"]),
)
def test_any_request_gets_a_well_formed_response(
    sent: Any, headers: Object, method: str
) -> None:
    response = send(sent, method=method, **headers)
    assert response.status in {200, 202, 204, 400, 403, 404, 405, 406, 415}
    assert bool(response.body) == (response.status not in (202, 204))
    assert response.status == 204 or ("Cache-Control", "no-store") in response.headers
    if response.body:
        answer = json.loads(response.body.removeprefix(b"event: message\ndata: "))
        assert answer.keys() in (
            {"jsonrpc", "id", "result"},
            {"jsonrpc", "id", "error"},
        )
        ids = (None, sent.get("id")) if isinstance(sent, dict) else (None,)
        assert answer["id"] in ids and not isinstance(answer["id"], (bool, float))


# ---- Lists that some clients ask for though they are not declared ----


@pytest.mark.parametrize(
    ("method", "member"),
    [
        pytest.param("prompts/list", "prompts", id="prompts"),
        pytest.param("resources/list", "resources", id="resources"),
        pytest.param("resources/templates/list", "resourceTemplates", id="templates"),
    ],
)
def test_in_the_initialize_era_undeclared_lists_are_empty(
    method: str, member: str
) -> None:
    assert result(send(request(method))) == {member: []}


def test_a_handshake_declares_tools_and_nothing_else() -> None:
    assert result(handshake())["capabilities"] == {"tools": {}}


def test_in_the_stateless_era_there_are_no_such_lists() -> None:
    assert send(**stateless("prompts/list")).status == 404
