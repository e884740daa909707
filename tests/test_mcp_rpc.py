"""The MCP endpoint answers as the specification's revisions and `mcp.md` say, without a socket.

Everything goes through `McpEndpoint.handle`, as bytes and headers. What a search finds is compared with the
plain definition and with the search over HTTP; what a tool declares is compared with what it answers.

Asking - Handshake - Sessions - Stateless requests - Batches - Envelope - HTTP - Origins - Tools - Arguments -
Search - Answers - Anything at all
"""

import base64
import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import plain_definition
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import mcp_rpc
import reviews
from contract import read_contract
from mcp_rpc import McpEndpoint, McpSettings, Reply
from query import query_from_pairs

Object = dict[str, Any]

DATA = Path(__file__).resolve().parent.parent / "data"
CONTRACT = read_contract(json.loads((DATA / "openapi.json").read_bytes()))
SAMPLE = (DATA / "reviews.json").read_bytes()
SAMPLE_INSIGHTS = (DATA / "insights.json").read_bytes()
DATASET = reviews.load(CONTRACT, SAMPLE, SAMPLE_INSIGHTS)
INSIGHTS = json.loads(SAMPLE_INSIGHTS)
REVIEWS = json.loads(DATASET.reviews_json)["reviews"]

HANDSHAKE_VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
ALL_VERSIONS = [STATELESS, "2025-11-25", "2025-06-18", "2025-03-26"]
BASE_URL = "https://reviews.example"
KEY = bytes(range(32))


# ---- Asking ----


def endpoint(*origins: str, require_session: bool = False, key: bytes = KEY) -> McpEndpoint:
    return McpEndpoint(McpSettings(BASE_URL, frozenset(origins), require_session, key, "1.0.0"))


ENDPOINT = endpoint()
PLAIN_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def send(
    body: bytes | Any,
    headers: dict[str, str] | None = None,
    *,
    method: str = "POST",
    to: McpEndpoint = ENDPOINT,
    dataset: reviews.Dataset = DATASET,
) -> Reply:
    """The reply to `body`, encoded unless it is bytes, with usual headers and `headers`."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return to.handle(method, (PLAIN_HEADERS | (headers or {})).get, sent, CONTRACT, dataset)


def request(method: str, params: Any = None, id: Any = 1) -> Object:
    return {"jsonrpc": "2.0", "id": id, "method": method} | ({} if params is None else {"params": params})


def claims(version: Any = STATELESS) -> Object:
    return {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }


def send_stateless(
    method: str, params: Object | None = None, without: str = "", **changes: str | None
) -> Reply:
    """A proper stateless request but for `changes` of headers (None: left out; `_` for `-`) and `without`,
    a claim that is left out."""
    meta = {key: value for key, value in claims().items() if not without or without not in key}
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": method}
    if params and "name" in params:
        headers["mcp-name"] = params["name"]
    for name, value in changes.items():
        headers[name.replace("_", "-")] = value or ""
        if value is None:
            del headers[name.replace("_", "-")]
    return send(request(method, (params or {}) | {"_meta": meta}), headers)


def answer(reply: Reply) -> Any:
    return json.loads(reply.body)


def result(reply: Reply) -> Object:
    assert reply.status == HTTPStatus.OK
    outcome: Object = answer(reply)["result"]
    return outcome


def error(reply: Reply) -> tuple[int, int]:
    """The HTTP status and the JSON-RPC code."""
    return reply.status, answer(reply)["error"]["code"]


def header(reply: Reply, name: str) -> str | None:
    return dict(reply.headers).get(name)


def handshake(version: str = "2025-06-18", to: McpEndpoint = ENDPOINT) -> Reply:
    client = {"name": "test", "version": "1"}
    return send(
        request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}), to=to
    )


def session(version: str = "2025-06-18", to: McpEndpoint = ENDPOINT) -> dict[str, str]:
    """The header of a new session."""
    session_id = header(handshake(version, to), "Mcp-Session-Id")
    assert session_id
    return {"mcp-session-id": session_id}


def call(tool: str, arguments: Any = None, dataset: reviews.Dataset = DATASET) -> Object:
    return result(send(request("tools/call", {"name": tool, "arguments": arguments}), dataset=dataset))


def structured(tool: str, arguments: Any = None, dataset: reviews.Dataset = DATASET) -> Object:
    called = call(tool, arguments, dataset)
    assert called["isError"] is False, called["content"][0]["text"]
    content: Object = called["structuredContent"]
    return content


def faults(tool: str, arguments: Any) -> list[str]:
    """The lines that say what is wrong with `arguments`."""
    called = call(tool, arguments)
    assert called["isError"] is True
    assert "structuredContent" not in called
    lines: list[str] = called["content"][0]["text"].splitlines()[1:]
    return lines


# ---- Handshake ----


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_a_version_that_we_speak_is_agreed_to(version: str) -> None:
    assert result(handshake(version))["protocolVersion"] == version


@pytest.mark.parametrize("version", [STATELESS, "2024-11-05", "2099-01-01", "", "\ud800"])
def test_any_other_version_is_met_with_the_newest_that_has_a_handshake(version: str) -> None:
    assert result(handshake(version))["protocolVersion"] == "2025-11-25"


def test_the_handshake_offers_tools_and_nothing_else() -> None:
    agreed = result(handshake())
    assert agreed.keys() == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
    assert agreed["capabilities"] == {"tools": {}}
    assert agreed["serverInfo"]["name"] == "reviewsd"
    assert agreed["serverInfo"]["version"] == "1.0.0"
    assert DATASET.business["name"] in agreed["instructions"]


@pytest.mark.parametrize(
    "params",
    [None, {}, {"protocolVersion": 1}, {"protocolVersion": "2025-06-18", "clientInfo": "me"}],
)
def test_a_malformed_handshake_is_refused_without_a_session(params: Any) -> None:
    reply = send(request("initialize", params))
    assert error(reply) == (200, -32602)
    assert header(reply, "Mcp-Session-Id") is None


@pytest.mark.parametrize("version", [*ALL_VERSIONS, "2099-01-01", "nonsense"])
def test_the_version_header_of_a_handshake_is_not_looked_at(version: str) -> None:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    reply = send(request("initialize", params), {"mcp-protocol-version": version, "accept": "*/*"})
    assert result(reply)["protocolVersion"] == "2025-11-25"


def test_requests_are_served_before_the_client_says_that_it_is_initialized() -> None:
    assert result(send(request("tools/list"), session()))["tools"]


def test_ping_is_answered_with_nothing() -> None:
    assert answer(send(request("ping"), session())) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    "method", ["notifications/initialized", "notifications/cancelled", "tools/call", "x"]
)
def test_a_notification_is_accepted_without_a_body(method: str) -> None:
    reply = send({"jsonrpc": "2.0", "method": method}, session())
    assert (reply.status, reply.body, header(reply, "Content-Type")) == (202, b"", None)


@pytest.mark.parametrize("outcome", [{"result": {}}, {"error": {"code": 1, "message": "no"}}])
def test_a_posted_response_is_accepted_without_a_body(outcome: Object) -> None:
    reply = send({"jsonrpc": "2.0", "id": 7} | outcome, session())
    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize("method", ["server/discover", "prompts/list", "resources/list", "nonsense", ""])
def test_an_unknown_method_of_the_initialize_era_is_an_error_on_http_200(method: str) -> None:
    assert error(send(request(method), session())) == (200, -32601)


def test_errors_of_the_initialize_era_arrive_on_http_200() -> None:
    assert error(send(request("tools/call", {"name": "nonsense"}), session())) == (200, -32602)
    assert error(send(request("tools/list", {"cursor": "x"}), session())) == (200, -32602)


@pytest.mark.parametrize("version", ["2024-11-05", "nonsense", ""])
def test_a_version_header_that_nobody_speaks_is_refused_with_those_that_we_speak(version: str) -> None:
    reply = send(request("tools/list"), {"mcp-protocol-version": version})
    assert error(reply) == (400, -32022)
    assert answer(reply)["error"]["data"] == {"supported": ALL_VERSIONS, "requested": version}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_results_of_the_initialize_era_hold_nothing_of_the_stateless_one(version: str) -> None:
    for method, params in [("tools/list", {}), ("tools/call", {"name": "get_business"})]:
        reply = send(request(method, params), session(version) | {"mcp-protocol-version": version})
        assert not result(reply).keys() & {"resultType", "_meta", "ttlMs", "cacheScope"}


# ---- Sessions ----


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_a_session_id_is_short_visible_and_safe_in_a_url(version: str) -> None:
    session_id = session(version)["mcp-session-id"]
    assert re.fullmatch(r"[A-Za-z0-9._~-]{40,199}", session_id)


def test_every_handshake_makes_a_new_session_whatever_id_came_along() -> None:
    stale = {"mcp-session-id": "stale"}
    body = request("initialize", {"protocolVersion": "2025-06-18"})
    ids = {header(send(body, stale), "Mcp-Session-Id") for _ in range(20)}
    assert len(ids) == 20
    assert None not in ids


def test_a_session_outlives_a_restart_and_is_good_at_every_instance_with_the_key() -> None:
    assert result(send(request("ping"), session(), to=endpoint())) == {}
    assert error(send(request("ping"), session(), to=endpoint(key=bytes(32)))) == (404, -32600)


@given(at=st.integers(0, 200), character=st.sampled_from("Aa0.-_é \x00"))
def test_a_session_id_that_was_changed_anywhere_is_not_found(at: int, character: str) -> None:
    genuine = session()["mcp-session-id"]
    at %= len(genuine)
    changed = genuine[:at] + character + genuine[at + 1 :]
    reply = send(request("ping"), {"mcp-session-id": changed})
    if changed.strip(" ") == genuine:
        assert result(reply) == {}
    else:
        assert error(reply) == (404, -32600)


@pytest.mark.parametrize("session_id", ["", ".", "..", "2025-06-18", "nonsense", "é.é.é", "a, b"])
def test_a_session_id_that_is_not_ours_is_not_found(session_id: str) -> None:
    reply = send(request("ping", id="p"), {"mcp-session-id": session_id})
    assert error(reply) == (404, -32600)
    assert answer(reply)["id"] == "p"
    assert send({"jsonrpc": "2.0", "method": "x"}, {"mcp-session-id": session_id}).status == 404


def test_a_session_signed_for_a_version_that_is_not_spoken_is_not_found() -> None:
    foreign = mcp_rpc.Sessions(KEY).start("2024-11-05")
    assert error(send(request("ping"), {"mcp-session-id": foreign})) == (404, -32600)


def test_an_ended_session_is_not_found_and_others_go_on() -> None:
    one, other = session(), session()
    ended = send(b"", one, method="DELETE")
    assert (ended.status, ended.body) == (204, b"")
    assert error(send(request("ping"), one)) == (404, -32600)
    assert error(send(b"", one, method="DELETE")) == (404, -32600)
    assert result(send(request("ping"), other)) == {}


def test_only_so_many_ended_sessions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_rpc, "MOST_ENDED", 2)
    sessions = mcp_rpc.Sessions(KEY)
    ids = [sessions.start("2025-06-18") for _ in range(3)]
    for session_id in ids:
        sessions.end(session_id)
    assert [sessions.version(session_id) for session_id in ids] == ["2025-06-18", None, None]


def test_ending_needs_an_id() -> None:
    assert error(send(b"", method="DELETE")) == (400, -32600)


def test_without_an_id_requests_are_served_unless_the_operator_is_strict() -> None:
    strict = endpoint(require_session=True)
    assert result(send(request("tools/list")))["tools"]
    assert error(send(request("tools/list"), to=strict)) == (400, -32600)
    assert error(send({"jsonrpc": "2.0", "method": "notifications/initialized"}, to=strict)) == (400, -32600)
    assert result(send(request("tools/list"), session(to=strict), to=strict))["tools"]
    assert result(handshake(to=strict))


# ---- Stateless requests ----


def test_discovery_lists_every_version_newest_first() -> None:
    discovered = result(send_stateless("server/discover"))
    assert discovered["supportedVersions"] == ALL_VERSIONS
    assert discovered["capabilities"] == {"tools": {}}
    assert DATASET.business["name"] in discovered["instructions"]


@pytest.mark.parametrize(
    ("method", "params"),
    [("server/discover", {}), ("tools/list", {}), ("tools/call", {"name": "get_business"})],
)
def test_stateless_results_are_complete_and_say_who_answers(method: str, params: Object) -> None:
    outcome = result(send_stateless(method, params))
    assert outcome["resultType"] == "complete"
    assert outcome["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "reviewsd"
    caching = {key: outcome[key] for key in ("ttlMs", "cacheScope") if key in outcome}
    assert caching == ({} if method == "tools/call" else {"ttlMs": 3600000, "cacheScope": "public"})


def test_both_eras_list_and_answer_the_same() -> None:
    assert result(send_stateless("tools/list"))["tools"] == result(send(request("tools/list")))["tools"]
    arguments = {"query": "back", "rating": 7}
    stateless = send_stateless("tools/call", {"name": "search_reviews", "arguments": arguments})
    assert result(stateless)["content"] == call("search_reviews", arguments)["content"]


def test_stateless_requests_neither_need_nor_get_a_session() -> None:
    reply = send_stateless("tools/list", mcp_session_id="nonsense")
    assert result(reply)["tools"]
    assert header(reply, "Mcp-Session-Id") is None
    assert error(send(b"", session() | {"mcp-protocol-version": STATELESS}, method="DELETE")) == (405, -32600)


@pytest.mark.parametrize("method", ["initialize", "ping", "subscriptions/listen", "prompts/get", "nonsense"])
def test_an_unknown_stateless_method_is_not_found(method: str) -> None:
    reply = send_stateless(method)
    assert error(reply) == (404, -32601)
    assert header(reply, "Mcp-Session-Id") is None


@pytest.mark.parametrize("claim", ["protocolVersion", "clientCapabilities"])
def test_a_missing_claim_is_an_invalid_parameter(claim: str) -> None:
    assert error(send_stateless("tools/list", without=claim)) == (400, -32602)


@pytest.mark.parametrize("version", [None, 20260728, [], {}, True])
def test_a_claimed_version_that_is_no_string_is_an_invalid_parameter(version: Any) -> None:
    body = request("tools/list", {"_meta": claims(version)})
    assert error(send(body, {"mcp-protocol-version": STATELESS, "mcp-method": "tools/list"})) == (400, -32602)


@pytest.mark.parametrize("version", ["2099-01-01", "2025-11-25", ""])
def test_a_claimed_version_that_is_not_served_so_is_refused_with_those_that_are(version: str) -> None:
    body = request("tools/list", {"_meta": claims(version)})
    reply = send(body, {"mcp-protocol-version": version, "mcp-method": "tools/list"})
    assert error(reply) == (400, -32022)
    assert answer(reply)["error"]["data"] == {"supported": ALL_VERSIONS, "requested": version}


CALL = {"name": "get_business", "arguments": {}}


@pytest.mark.parametrize(
    "changes",
    [
        {"mcp_protocol_version": None},
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_protocol_version": "2026-07-28, 2026-07-28"},
        {"mcp_method": None},
        {"mcp_method": "tools/list"},
        {"mcp_method": "Tools/Call"},
        {"mcp_name": None},
        {"mcp_name": "get_review"},
        {"mcp_name": "GET_BUSINESS"},
        {"mcp_name": "=?base64?????="},
        {"mcp_name": "=?base64?é?="},
        {"mcp_name": "=?base64?/w==?="},
        {"mcp_name": "=?base64?Z2V0X2J1!c2luZXNz?="},
        {"mcp_name": "=?BASE64?Z2V0X2J1c2luZXNz?="},
    ],
)
def test_headers_that_do_not_repeat_the_body_are_refused(changes: dict[str, str | None]) -> None:
    reply = send_stateless("tools/call", CALL, "", **changes)
    assert error(reply) == (400, -32020)
    assert answer(reply)["id"] == 1


@pytest.mark.parametrize("name", ["get_business", " get_business\t", "=?base64?Z2V0X2J1c2luZXNz?="])
def test_a_name_may_be_padded_or_in_base64(name: str) -> None:
    assert result(send_stateless("tools/call", CALL, mcp_name=name))["isError"] is False


@given(name=st.text(min_size=1))
def test_any_name_can_be_sent_in_base64(name: str) -> None:
    encoded = base64.b64encode(name.encode("utf-8", "surrogatepass")).decode()
    reply = send_stateless("tools/call", {"name": name}, mcp_name=f"=?base64?{encoded}?=")
    if name not in mcp_rpc.TOOLS:
        code = -32020 if any("\ud800" <= character <= "\udfff" for character in name) else -32602
        assert error(reply) == (400, code)


@pytest.mark.parametrize("params", [{}, {"name": None}, {"name": 5}])
def test_a_call_without_a_name_is_an_invalid_parameter(params: Object) -> None:
    body = request("tools/call", params | {"_meta": claims()})
    assert error(send(body, {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call"})) == (400, -32602)


def test_what_only_the_body_or_only_the_header_says_makes_it_stateless() -> None:
    assert error(send(request("tools/list", {"_meta": claims()}))) == (400, -32020)
    assert error(send(request("tools/list"), {"mcp-protocol-version": STATELESS})) == (400, -32602)


def test_stateless_notifications_are_accepted_and_responses_are_not() -> None:
    modern = {"mcp-protocol-version": STATELESS}
    assert send({"jsonrpc": "2.0", "method": "notifications/cancelled"}, modern).status == 202
    claimed = {"jsonrpc": "2.0", "method": "x", "params": {"_meta": claims()}}
    assert send(claimed).status == 202
    assert error(send({"jsonrpc": "2.0", "id": 1, "result": {}}, modern)) == (400, -32600)
    assert error(send({"jsonrpc": "2.0", "method": "x"}, {"mcp-protocol-version": "2099"})) == (400, -32022)


# ---- Batches ----

BATCH = [request("ping", id="a"), {"jsonrpc": "2.0", "method": "x"}, request("nonsense", id=2), 5, {"id": 3}]


def test_a_batch_of_2025_03_26_is_answered_message_by_message() -> None:
    for headers in (session("2025-03-26"), {}, {"mcp-protocol-version": "2025-03-26"}):
        answers = answer(send(BATCH, headers))
        assert [(one["id"], one.get("error", {}).get("code")) for one in answers] == [
            ("a", None),
            (2, -32601),
            (None, -32600),
            (3, -32600),
        ]


def test_a_batch_without_a_request_is_accepted_without_a_body() -> None:
    reply = send([{"jsonrpc": "2.0", "method": "x"}, {"jsonrpc": "2.0", "id": 1, "result": {}}])
    assert (reply.status, reply.body) == (202, b"")


def test_a_handshake_cannot_hide_in_a_batch() -> None:
    reply = send([request("initialize", {"protocolVersion": "2025-03-26"})])
    assert answer(reply)[0]["error"]["code"] == -32600
    assert header(reply, "Mcp-Session-Id") is None


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_later_versions_have_no_batches(version: str) -> None:
    assert error(send(BATCH, session(version))) == (400, -32600)
    assert error(send(BATCH, {"mcp-protocol-version": version})) == (400, -32600)


def test_stateless_requests_cannot_be_batched() -> None:
    claimed = request("tools/list", {"_meta": claims()})
    assert error(send([request("ping"), claimed])) == (400, -32600)
    assert error(send([request("ping")], {"mcp-protocol-version": STATELESS})) == (400, -32600)


@pytest.mark.parametrize("batch", [[], [request("ping")] * 11])
def test_a_batch_that_is_empty_or_too_long_is_refused_as_one(batch: list[Object]) -> None:
    reply = send(batch)
    assert error(reply) == (400, -32600)
    assert answer(reply)["id"] is None


def test_a_batch_needs_a_good_session() -> None:
    assert error(send(BATCH, {"mcp-session-id": "nonsense"})) == (404, -32600)
    assert error(send(BATCH, to=endpoint(require_session=True))) == (400, -32600)


# ---- Envelope ----


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le"),
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":-Infinity}}',
        b'{"jsonrpc":"2.0","id":' + b"1" * 4301 + b',"method":"ping"}',
        b"[" * 65536,
        b'{"a":' * 10000,
    ],
)
def test_what_is_not_json_in_utf_8_is_a_parse_error(body: bytes) -> None:
    reply = send(body)
    assert error(reply) == (400, -32700)
    assert answer(reply)["id"] is None


@pytest.mark.parametrize("levels", [62, 63, 64, 65, 500, 900, 950, 990, 1000, 5000])
@pytest.mark.parametrize("brackets", ["[]", '{"a":}'])
def test_nesting_is_served_up_to_64_levels(levels: int, brackets: str) -> None:
    inner = levels - 3  # the message, its params and its arguments are levels, too
    deep = brackets[:-1] * inner + ("1" if "{" in brackets else "") + brackets[-1] * inner
    body = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_review","arguments":{"id":%s}}}'
    )
    reply = send((body % deep).encode())
    if levels <= 64:
        assert "id: expected text" in result(reply)["content"][0]["text"]
    else:
        assert error(reply) == (400, -32700)


@pytest.mark.parametrize(
    "body",
    [
        None,
        5,
        "ping",
        {},
        {"id": 1, "method": "ping"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "id": 1, "method": 5, "result": {}},
        {"jsonrpc": "2.0", "result": {}},
    ],
)
def test_what_is_no_message_is_an_invalid_request(body: Any) -> None:
    reply = send(body)
    assert error(reply) == (400, -32600)
    assert answer(reply)["id"] == (body.get("id") if isinstance(body, dict) else None)


@pytest.mark.parametrize("params", [5, "x", [], [1], True])
def test_params_are_an_object(params: Any) -> None:
    assert error(send(request("ping", params))) == (400, -32602)


@pytest.mark.parametrize("request_id", [None, True, False, 1.5, 1.0, [], {}])
def test_an_id_that_is_neither_text_nor_whole_is_an_invalid_request(request_id: Any) -> None:
    reply = send(request("ping", id=request_id))
    assert error(reply) == (400, -32600)
    assert answer(reply)["id"] is None


@given(request_id=st.integers() | st.text(st.characters()) | st.just("\ud800") | st.just(10**4000))
def test_ids_come_back_exactly(request_id: int | str) -> None:
    assert answer(send(request("ping", id=request_id)))["id"] == request_id
    assert answer(send(request("nonsense", id=request_id)))["id"] == request_id
    assert answer(send([request("ping", id=request_id)]))[0]["id"] == request_id
    stateless = request("tools/list", {"_meta": claims()}, id=request_id)
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/list"}
    assert answer(send(stateless, headers))["id"] == request_id
    assert answer(send(stateless, headers | {"mcp-method": "nonsense"}))["id"] == request_id


# ---- HTTP ----


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "TRACE", "NONSENSE"])
def test_other_http_methods_are_refused_with_those_that_are_not(method: str) -> None:
    reply = send(b"", method=method)
    assert error(reply) == (405, -32600)
    assert header(reply, "Allow") == "POST, DELETE, OPTIONS"


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=utf-8", " application/json "]
)
def test_json_may_be_declared_in_any_way(content_type: str) -> None:
    assert send(request("ping"), {"content-type": content_type}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": ""},
        {"content-type": "application/json-patch+json"},
        {"content-encoding": "gzip"},
        {"content-encoding": ""},
    ],
)
def test_a_body_of_another_type_or_coding_is_refused(headers: dict[str, str]) -> None:
    assert error(send(request("ping"), headers)) == (415, -32600)


def test_a_body_without_a_type_is_refused() -> None:
    body = json.dumps(request("ping")).encode()
    assert error(ENDPOINT.handle("POST", {}.get, body, CONTRACT, DATASET)) == (415, -32600)


ACCEPTED = [
    ("", "application/json"),
    (" , ", "application/json"),
    ("*/*", "application/json"),
    ("application/*", "application/json"),
    ("application/json", "application/json"),
    ("APPLICATION/JSON;q=0.1, text/event-stream", "application/json"),
    ("application/json;q=nonsense", "application/json"),
    ("text/event-stream", "text/event-stream"),
    ("text/*;q=0.5", "text/event-stream"),
    ("application/json;q=0, */*", "text/event-stream"),
    ("application/json; q=0.000 , text/event-stream", "text/event-stream"),
    ("text/html", None),
    ("application/json;q=0", None),
    ("*/*;q=0", None),
    ("nonsense", None),
]


@pytest.mark.parametrize(("accept", "content_type"), ACCEPTED)
def test_json_is_preferred_and_events_are_for_those_who_take_nothing_else(
    accept: str, content_type: str | None
) -> None:
    reply = send(request("ping"), {"accept": accept})
    if content_type is None:
        assert error(reply) == (406, -32600)
    else:
        assert (reply.status, header(reply, "Content-Type")) == (200, content_type)


def test_an_event_is_one_message_with_the_same_json() -> None:
    body = request("tools/call", {"name": "search_reviews", "arguments": {"limit": 100}})
    reply = send(body, {"accept": "text/event-stream"} | session())
    first, second, *rest = reply.body.split(b"\n")
    assert first == b"event: message"
    assert second == b"data: " + send(body).body
    assert rest == [b"", b""]
    assert header(reply, "X-Accel-Buffering") == "no"


def test_a_handshake_gives_its_session_to_those_who_take_only_events() -> None:
    body = request("initialize", {"protocolVersion": "2025-06-18"})
    assert header(send(body, {"accept": "text/event-stream"}), "Mcp-Session-Id")


def test_errors_of_http_are_json_even_for_those_who_take_only_events() -> None:
    reply = send(b"{", {"accept": "text/event-stream"})
    assert (reply.status, header(reply, "Content-Type")) == (400, "application/json")
    assert send({"jsonrpc": "2.0", "method": "x"}, {"accept": "text/event-stream"}).body == b""


def test_nothing_may_be_kept_by_caches() -> None:
    for reply in (send(request("ping")), send(b"{"), send(b"", method="GET"), handshake()):
        assert header(reply, "Cache-Control") == "no-store"


def test_no_reply_names_a_hop_or_a_length() -> None:
    for reply in (send(request("ping")), send(b"", method="OPTIONS"), send(b"", method="GET")):
        assert not {name.lower() for name, _ in reply.headers} & {
            "connection",
            "keep-alive",
            "transfer-encoding",
            "content-length",
        }


# ---- Origins ----

OURS = BASE_URL
ADMITTED = [
    OURS,
    "https://reviews.example:443",
    "HTTPS://Reviews.Example",
    "http://localhost",
    "http://localhost:6274",
    "https://127.0.0.1:9103",
    "http://[::1]:3000",
    "https://app.example",
    "vscode-webview://panel",
]
STRANGERS = [
    "null",
    "",
    "https://evil.example",
    "http://reviews.example",
    "https://reviews.example:8443",
    "https://reviews.example.evil.example",
    "https://evil.example/https://reviews.example",
    "http://127.0.0.1:9103.evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost.evil.example",
    "http://localhost@evil.example",
    "http://evil.example#localhost",
    "http://127.0.0.2",
    "http://localhost:6274/",
    "http://localhost\n",
    "http://localhost:٣",
    "http://localhost, https://evil.example",
    "chrome-extension://localhost",
    "*",
]
METHODS = ["POST", "GET", "DELETE", "OPTIONS", "HEAD"]
LISTING = endpoint("https://app.example", "vscode-webview://panel")


@pytest.mark.parametrize("origin", ADMITTED)
def test_known_pages_may_call_and_read_every_answer(origin: str) -> None:
    for method in METHODS:
        reply = send(request("ping"), {"origin": origin}, method=method, to=LISTING)
        assert reply.status != 403
        assert header(reply, "Access-Control-Allow-Origin") == origin
        assert header(reply, "Access-Control-Expose-Headers") == "Mcp-Session-Id, MCP-Protocol-Version"
        assert header(reply, "Vary") == "Origin"


@pytest.mark.parametrize("origin", STRANGERS)
def test_other_pages_may_do_nothing_and_read_nothing(origin: str) -> None:
    one = session()
    for method in METHODS:
        reply = send(request("ping"), {"origin": origin} | one, method=method, to=LISTING)
        assert error(reply) == (403, -32600)
        assert header(reply, "Access-Control-Allow-Origin") is None
        assert header(reply, "Vary") == "Origin"
    assert result(send(request("ping"), one, to=LISTING)) == {}


@pytest.mark.parametrize("origin", [*ADMITTED, *STRANGERS])
def test_with_a_star_every_page_may_call(origin: str) -> None:
    reply = send(request("ping"), {"origin": origin}, to=endpoint("*"))
    assert result(reply) == {}
    assert header(reply, "Access-Control-Allow-Origin") == "*"


def test_a_rebound_page_is_known_by_its_origin_whatever_host_it_asked() -> None:
    evil = {"host": "evil.example.com", "origin": "http://evil.example.com"}
    assert send(request("ping"), evil).status == 403
    assert send(request("ping"), {"host": "backend:8080"}).status == 200


@given(port=st.integers(0, 65535), tail=st.text(min_size=1))
def test_a_loopback_origin_has_any_port_and_nothing_after_it(port: int, tail: str) -> None:
    origin = f"http://127.0.0.1:{port}"
    assert send(request("ping"), {"origin": origin}).status == 200
    if not re.fullmatch(r"[0-9]{1,4}", tail):
        assert send(request("ping"), {"origin": origin + tail}).status == 403


def test_a_preflight_lets_clients_of_both_eras_send_their_headers() -> None:
    reply = send(b"", {"origin": OURS, "access-control-request-method": "POST"}, method="OPTIONS")
    assert (reply.status, reply.body) == (204, b"")
    allowed = str(header(reply, "Access-Control-Allow-Headers")).lower().split(", ")
    assert {"content-type", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"} <= set(
        allowed
    )
    assert header(reply, "Access-Control-Allow-Methods") == "POST, DELETE, OPTIONS"


@pytest.mark.parametrize(("status", "code"), [(413, -32600), (400, -32600), (500, -32603)])
def test_what_the_server_ends_is_refused_in_the_same_form(status: int, code: int) -> None:
    reply = LISTING.refusal(HTTPStatus(status), "no", {"origin": OURS}.get)
    assert error(reply) == (status, code)
    assert header(reply, "Access-Control-Allow-Origin") == OURS
    assert header(LISTING.refusal(HTTPStatus(status), "no", {"origin": "null"}.get), "Vary") is None


# ---- Tools ----

LISTED: list[Object] = result(send(request("tools/list")))["tools"]
TOOL_NAMES = [
    "get_aspect_sentiment",
    "get_business",
    "get_faq",
    "get_insights_summary",
    "get_recent_reviews",
    "get_review",
    "get_sentiment_trend",
    "get_service",
    "get_technician",
    "get_topics",
    "search_reviews",
]
PLAIN_INPUT_KEYWORDS = {"type", "description", "format", "minimum", "maximum", "maxLength", "default"}


def test_there_are_eleven_tools_in_an_order_that_stays() -> None:
    assert sorted(tool["name"] for tool in LISTED) == TOOL_NAMES
    assert result(send(request("tools/list"), to=endpoint()))["tools"] == LISTED


def test_the_tools_are_on_one_page_and_every_cursor_is_wrong() -> None:
    assert "nextCursor" not in result(send(request("tools/list", {"cursor": None})))
    for cursor in ("", "2", 5):
        assert error(send(request("tools/list", {"cursor": cursor}))) == (200, -32602)


@pytest.mark.parametrize("tool", LISTED, ids=lambda tool: tool["name"])
def test_a_tool_says_that_it_only_reads(tool: Object) -> None:
    assert tool["annotations"] == {
        "title": tool["title"],
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert "{" not in tool["description"]
    assert DATASET.business["name"] in tool["description"]


@pytest.mark.parametrize("tool", LISTED, ids=lambda tool: tool["name"])
def test_an_input_schema_is_closed_and_plain(tool: Object) -> None:
    schema = tool["inputSchema"]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema.keys() <= {"type", "properties", "required", "additionalProperties"}
    for argument in schema["properties"].values():
        assert argument.keys() <= PLAIN_INPUT_KEYWORDS
        assert isinstance(argument["type"], str)
        assert argument.get("format") in (None, "date")
        assert len(argument["description"]) > 10


def keywords(schema: Any) -> Iterator[str]:
    """Every keyword in use below `schema`; the names of properties are none."""
    yield from schema
    for part in schema.get("properties", {}).values():
        yield from keywords(part)
    yield from keywords(schema["items"]) if "items" in schema else ()


@pytest.mark.parametrize("tool", LISTED, ids=lambda tool: tool["name"])
def test_an_output_schema_is_an_object_without_references(tool: Object) -> None:
    schema = tool["outputSchema"]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert set(keywords(schema)) <= {"type", "properties", "required", "items", "enum"}


def test_the_list_of_tools_stays_small() -> None:
    assert len(send(request("tools/list")).body) < 24_000


def test_what_n8n_adds_to_a_call_is_no_argument_of_any_tool() -> None:
    for tool in LISTED:
        assert not tool["inputSchema"]["properties"].keys() & mcp_rpc.N8N_EXTRAS


def test_search_takes_the_parameters_of_the_contract_in_their_order() -> None:
    operation = CONTRACT.document["paths"]["/api/reviews/search"]["get"]
    references = [parameter["$ref"].rpartition("/")[2] for parameter in operation["parameters"]]
    declared = [CONTRACT.document["components"]["parameters"][name] for name in references]
    expected = {
        parameter["name"]: {k: v for k, v in parameter["schema"].items() if k != "examples"}
        | {"description": parameter["description"]}
        for parameter in declared
        if parameter["in"] == "query"
    }
    schema = mcp_rpc.declaration(mcp_rpc.TOOLS["search_reviews"], CONTRACT, "")["inputSchema"]
    assert schema["properties"] == expected
    assert list(schema["properties"]) == list(expected)
    assert "required" not in schema


@pytest.mark.parametrize("name", ["search_review", "", "Search_Reviews", "\ud800", "x" * 1000])
def test_an_unknown_tool_is_an_invalid_parameter(name: str) -> None:
    assert error(send(request("tools/call", {"name": name}))) == (200, -32602)


def test_an_unknown_tool_is_told_the_nearest_name() -> None:
    reply = send(request("tools/call", {"name": "search_review"}))
    assert answer(reply)["error"]["message"].endswith("did you mean search_reviews?")


@pytest.mark.parametrize("arguments", [5, "x", [], [1], True])
def test_arguments_are_an_object(arguments: Any) -> None:
    body = request("tools/call", {"name": "get_business", "arguments": arguments})
    assert error(send(body)) == (200, -32602)


def test_arguments_may_be_left_out_or_null() -> None:
    absent = result(send(request("tools/call", {"name": "get_business"})))
    assert absent == call("get_business", None) == call("get_business", {})


# ---- Arguments ----


def test_every_fault_is_named_at_once_with_what_would_be_right() -> None:
    wrong = {"rating": 7, "limit": 0, "since": "2025-02-30", "min_ratin": 4, "mentions_service": 5}
    assert faults("search_reviews", wrong) == [
        "rating: 7 is above the maximum of 5",
        "limit: 0 is below the minimum of 1",
        "since: expected a day that the calendar has",
        "min_ratin: unknown parameter; did you mean min_rating?",
        "mentions_service: expected text",
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "fault"),
    [
        ("get_recent_reviews", {"limit": 51}, "limit: 51 is above the maximum of 50"),
        ("get_recent_reviews", {"limit": 2.5}, "limit: expected a whole number such as 20"),
        ("get_recent_reviews", {"limit": True}, "limit: expected a whole number such as 20"),
        ("get_recent_reviews", {"limit": 10**400}, "limit: the number is above the maximum of 50"),
        ("get_recent_reviews", {"limit": "٣"}, "limit: expected a whole number such as 20"),
        ("get_recent_reviews", {"limit": "5\n"}, "limit: expected a whole number such as 20"),
        ("search_reviews", {"since": "20250101"}, "since: expected a date written YYYY-MM-DD"),
        ("search_reviews", {"since": "2025-W01-1"}, "since: expected a date written YYYY-MM-DD"),
        ("search_reviews", {"rating": False}, "rating: expected a number such as 4 or 4.5"),
        ("search_reviews", {"query": "\ud800"}, "query: is not valid UTF-8"),
        ("get_review", {}, "id: is required"),
        ("get_review", {"id": None}, "id: is required"),
        ("get_review", {"id": ""}, "id: is required"),
        ("get_review", {"id": 5}, "id: expected text"),
        ("get_review", {"id": "x" * 201}, "id: 201 characters are above the maximum of 200"),
        ("get_business", {"x": 1}, "x: unknown parameter; none is taken"),
        ("get_business", {"\ud800": 1}, "�: unknown parameter; none is taken"),
    ],
)
def test_a_wrong_argument_is_told_what_would_be_right(tool: str, arguments: Object, fault: str) -> None:
    assert faults(tool, arguments) == [fault]


def test_an_infinite_number_is_out_of_range() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_reviews","arguments":%s}}'
    for arguments in (b'{"limit":1e400}', b'{"rating":1e400}', b'{"offset":1e400}'):
        assert "above the maximum" in result(send(body % arguments))["content"][0]["text"]


@pytest.mark.parametrize("several", [{"id": 5, "x": 1}, {"x": 1}])
def test_unknown_and_missing_arguments_are_named_together(several: Object) -> None:
    lines = faults("get_review", several)
    assert [line.partition(":")[0] for line in lines] == (["id", "x"] if "id" in several else ["x", "id"])


def test_thousands_of_unknown_arguments_are_not_all_looked_into() -> None:
    for tool in ("search_reviews", "get_review"):
        assert len(faults(tool, {f"x{number}": 1 for number in range(5000)})) <= 60


def test_numbers_may_be_written_as_text_and_null_is_absence() -> None:
    assert structured("get_recent_reviews", {"limit": "5"}) == structured("get_recent_reviews", {"limit": 5})
    assert structured("get_recent_reviews", {"limit": 5.0})["returned"] == 5
    assert structured("get_recent_reviews", {"limit": None})["returned"] == 10
    assert structured("search_reviews", {"min_rating": "4.5", "query": None, "since": ""})["returned"] == 20


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_what_n8n_adds_is_left_out(tool: str) -> None:
    extras = {"toolCallId": "c", "sessionId": "s", "action": "sendMessage", "chatInput": "?", "tool": tool}
    arguments = EXAMPLES[tool]
    assert structured(tool, arguments | extras) == structured(tool, arguments)


# ---- Search ----

WORDS = st.sampled_from(["back", "BACK", "pain", "zzz", "e", "naïve", ""])
NUMBERS = st.sampled_from([1, 3, 4, 5, 4.5, "5", "4.0", 7, 0, "x", None, True, -1, "", 2.5])
DAYS = st.sampled_from(["2025-01-01", "2026-06-30", "2024-02-29", "2025-02-29", "x", "", None])
PEOPLE = st.sampled_from(["okafor", "Dr.", "tobias okafor", "nobody", "", None])
SERVICES = st.sampled_from(["massage-therapy", "Massage Therapy", "MASSAGE THERAPY", "nothing", None])
SEARCHES = st.fixed_dictionaries(
    {},
    optional={
        "query": WORDS,
        "rating": NUMBERS,
        "min_rating": NUMBERS,
        "since": DAYS,
        "until": DAYS,
        "mentions_technician": PEOPLE,
        "mentions_service": SERVICES,
        "limit": NUMBERS,
        "offset": NUMBERS,
        "unknown": WORDS,
    },
)


@given(asked=SEARCHES)
def test_a_search_finds_and_faults_what_the_search_over_http_does(asked: Object) -> None:
    pairs = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in asked.items()]
    try:
        pairs = [(name, value) for name, value in pairs if value != "null"]
        query = query_from_pairs(CONTRACT.search_parameters, pairs)
    except reviews.BadQuery as bad:
        assert faults("search_reviews", asked) == [f"{one.parameter}: {one.message}" for one in bad.issues]
    else:
        assert structured("search_reviews", asked) == json.loads(reviews.search(DATASET, query))


@given(asked=SEARCHES)
def test_a_search_finds_what_the_plain_definition_finds(asked: Object) -> None:
    called = call("search_reviews", asked)
    if not called["isError"]:
        plain = {name: str(value) for name, value in asked.items() if value is not None}
        assert called["structuredContent"] == plain_definition.search(REVIEWS, INSIGHTS, plain)


def test_the_next_page_begins_where_the_last_one_ended() -> None:
    pages = [structured("search_reviews", {"limit": 60, "offset": offset}) for offset in (0, 60, 120)]
    assert [review for page in pages for review in page["reviews"]] == REVIEWS
    assert {page["matched"] for page in pages} == {len(REVIEWS)}


# ---- Answers ----

EXAMPLES: dict[str, Object] = {
    "get_aspect_sentiment": {"aspect": INSIGHTS["aspects"][0]["id"]},
    "get_business": {},
    "get_faq": {},
    "get_insights_summary": {},
    "get_recent_reviews": {},
    "get_review": {"id": REVIEWS[0]["id"]},
    "get_sentiment_trend": {},
    "get_service": {"service": INSIGHTS["entities"]["services"][0]["label"]},
    "get_technician": {"name": INSIGHTS["entities"]["technicians"][0]["label"]},
    "get_topics": {},
    "search_reviews": {"limit": 100},
}


@pytest.mark.parametrize("tool", LISTED, ids=lambda tool: tool["name"])
def test_an_answer_is_the_same_json_as_text_and_as_structure_and_fits_its_schema(tool: Object) -> None:
    called = call(tool["name"], EXAMPLES[tool["name"]])
    assert called["content"] == [{"type": "text", "text": called["content"][0]["text"]}]
    assert json.loads(called["content"][0]["text"]) == called["structuredContent"]
    Draft202012Validator(tool["outputSchema"]).validate(called["structuredContent"])


def test_the_business_comes_with_its_rating() -> None:
    assert structured("get_business") == {
        "business": DATASET.business,
        "aggregate_rating": DATASET.aggregate_rating,
    }


def test_every_review_can_be_asked_for_by_its_id() -> None:
    for review in REVIEWS:
        assert structured("get_review", {"id": review["id"]}) == review


@pytest.mark.parametrize("number", [1, 10, 50])
def test_the_newest_reviews_come_newest_first(number: int) -> None:
    newest = structured("get_recent_reviews", {"limit": number})
    assert newest == {"matched": len(REVIEWS), "returned": number, "reviews": REVIEWS[:number]}


def test_the_summary_lists_what_the_other_tools_know() -> None:
    summary = structured("get_insights_summary")
    for key in ("summary", "pull_quote", "generated_at", "review_count", "date_range", "overall_sentiment"):
        assert summary[key] == INSIGHTS[key]
    assert summary["trend"] == INSIGHTS["temporal"]["trend"]
    for kind, entries in INSIGHTS["entities"].items():
        assert [entry["id"] for entry in summary[kind]] == [entry["id"] for entry in entries]
    for aspect in summary["aspects"]:
        assert structured("get_aspect_sentiment", {"aspect": aspect["id"]})["score"] == aspect["score"]


@pytest.mark.parametrize("key", ["id", "label"])
def test_aspects_and_services_are_known_by_id_and_by_label_in_any_case(key: str) -> None:
    for aspect in INSIGHTS["aspects"]:
        assert structured("get_aspect_sentiment", {"aspect": aspect[key].upper()}) == aspect
    for service in INSIGHTS["entities"]["services"]:
        assert structured("get_service", {"service": service[key].upper()}) == service


@given(name=PEOPLE.filter(bool))
def test_people_are_found_as_the_search_finds_them_and_counted(name: str) -> None:
    people = INSIGHTS["entities"]["technicians"]
    fit = [person for person in people if plain_definition.has_words(person["label"], name)]
    if fit:
        assert structured("get_technician", {"name": name}) == {"matched": len(fit), "technicians": fit}
    else:
        known = ", ".join(person["label"] for person in people)
        assert faults("get_technician", {"name": name}) == [
            f"name: the insights speak of nobody of this name; known are {known}"
        ]


def test_several_people_may_fit_a_name() -> None:
    assert structured("get_technician", {"name": "Dr."})["matched"] > 1


@pytest.mark.parametrize(
    ("tool", "argument", "entries"),
    [
        ("get_aspect_sentiment", "aspect", INSIGHTS["aspects"]),
        ("get_service", "service", INSIGHTS["entities"]["services"]),
    ],
)
def test_an_unknown_name_is_told_the_known_ones(tool: str, argument: str, entries: list[Object]) -> None:
    known = ", ".join(f"{entry['id']} ({entry['label']})" for entry in entries)
    assert faults(tool, {argument: "nonsense"}) == [
        f"{argument}: the insights know no such {argument}; known are {known}"
    ]


def test_an_unknown_review_is_told_where_ids_come_from() -> None:
    assert faults("get_review", {"id": "nonsense"}) == [
        "id: no review has this id; search_reviews and get_recent_reviews give ids"
    ]


def test_topics_and_trend_are_those_of_the_insights() -> None:
    assert structured("get_topics") == {"topics": INSIGHTS["topics"]}
    assert structured("get_sentiment_trend") == INSIGHTS["temporal"]


@pytest.mark.parametrize("query", ["WAIT", "parking", "zzz", "", None])
def test_questions_are_found_by_what_they_and_their_answers_hold(query: str | None) -> None:
    wanted = plain_definition.folded(query or "")
    found = [
        entry
        for entry in INSIGHTS["faq"]
        if wanted in plain_definition.folded(entry["question"])
        or wanted in plain_definition.folded(entry["answer"])
    ]
    assert structured("get_faq", {"query": query}) == {"matched": len(found), "faq": found}


def test_without_data_every_tool_still_answers() -> None:
    empty = reviews.load(CONTRACT, b'{"business":{"name":"New {here}"},"reviews":[]}', None)
    for tool in LISTED:
        if not tool["inputSchema"].get("required"):
            content = structured(tool["name"], {}, empty)
            Draft202012Validator(tool["outputSchema"]).validate(content)
    for tool_name, argument in [("get_service", "service"), ("get_technician", "name")]:
        called = call(tool_name, {argument: "x"}, empty)
        assert called["isError"] is True
        assert called["content"][0]["text"].endswith("; they name none")
    described = result(send(request("tools/list"), dataset=empty))["tools"][0]["description"]
    assert "New {here}" in described


def test_a_new_snapshot_is_answered_from_at_once() -> None:
    renamed = json.loads(SAMPLE)
    renamed["business"]["name"] = "Renamed"
    fresh = reviews.load(CONTRACT, json.dumps(renamed).encode(), SAMPLE_INSIGHTS)
    to = endpoint()
    body = request("tools/call", {"name": "get_business"})
    names = [
        result(send(body, to=to, dataset=dataset))["structuredContent"]["business"]["name"]
        for dataset in (DATASET, fresh, DATASET)
    ]
    assert names == [DATASET.business["name"], "Renamed", DATASET.business["name"]]


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_an_answer_is_the_same_fresh_and_remembered(tool: str) -> None:
    to = endpoint()
    body = request("tools/call", {"name": tool, "arguments": EXAMPLES[tool]})
    fresh, remembered = send(body, to=to), send(body, to=to)
    assert fresh == remembered


def test_the_answers_that_are_remembered_fit_into_their_bound() -> None:
    most = mcp_rpc.most_remembered(CONTRACT, DATASET)
    assert most > 50
    largest = max(
        len(send(request("tools/call", {"name": t, "arguments": EXAMPLES[t]})).body) for t in EXAMPLES
    )
    assert most * largest <= mcp_rpc.REMEMBERED_BYTES


TEXTS = st.text(min_size=1, max_size=30)
SCORES = st.none() | st.floats(-1, 1)
COUNTS = st.none() | st.integers(0, 10**6)
PHRASES = st.none() | st.lists(TEXTS, max_size=3)


def entries(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Object]]:
    keys = {"mention_count": COUNTS, "score": SCORES, "top_phrases": PHRASES, "unknown key": TEXTS} | more
    one = st.fixed_dictionaries({"id": TEXTS, "label": TEXTS}, optional=keys)
    return st.lists(one, max_size=3)


INSIGHTS_FILES = st.fixed_dictionaries(
    {},
    optional={
        "summary": st.none() | TEXTS,
        "generated_at": st.none() | st.just("2026-01-01"),
        "date_range": st.none() | st.just({"earliest": "2025-01-01"}),
        "overall_sentiment": st.none() | st.fixed_dictionaries({}, optional={"score": SCORES}),
        "aspects": st.none() | entries(positive_pct=st.floats(0, 100), negative_count=COUNTS),
        "entities": st.none()
        | st.fixed_dictionaries(
            {}, optional={"technicians": entries(), "services": st.none() | entries(), "problems": entries()}
        ),
        "topics": entries(summary=st.none() | TEXTS),
        "temporal": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "trend": st.sampled_from(["improving", "stable", "declining", None]),
                "monthly": st.just([{"month": "2025-01"}]),
            },
        ),
        "faq": st.lists(
            st.fixed_dictionaries({"question": TEXTS, "answer": TEXTS}, optional={"review_ids": st.none()}),
            max_size=3,
        ),
    },
)
ONE_REVIEW: st.SearchStrategy[Object] = st.fixed_dictionaries(
    {
        "id": st.text("abc\\\"'é😀", min_size=1, max_size=8),
        "author": TEXTS,
        "rating": st.sampled_from([1, 2, 4.5, 5]),
        "date": st.sampled_from(["2025-01-01", "2026-02-03T04:05:06Z"]),
    },
    optional={
        "text": st.none() | st.text(),
        "owner_reply": st.none() | st.fixed_dictionaries({"text": TEXTS}),
        "mentioned_services": st.none() | st.lists(TEXTS, max_size=2),
    },
)
SOME_REVIEWS = st.lists(ONE_REVIEW, max_size=4, unique_by=lambda review: review["id"])
REVIEWS_FILES = st.fixed_dictionaries(
    {
        "business": st.fixed_dictionaries(
            {"name": TEXTS}, optional={"description": TEXTS, "hours": st.none(), "unknown key": TEXTS}
        ),
        "reviews": SOME_REVIEWS,
    }
)


@settings(max_examples=60)
@given(file=REVIEWS_FILES, insights=INSIGHTS_FILES)
def test_whatever_loads_is_answered_in_the_declared_form(file: Object, insights: Object) -> None:
    dataset = reviews.load(CONTRACT, json.dumps(file).encode(), json.dumps(insights).encode())
    served = dataset.insights
    arguments: dict[str, list[Object]] = {tool: [{}] for tool in TOOL_NAMES}
    arguments |= {
        "get_review": [{"id": review["id"]} for review in file["reviews"]],
        "get_aspect_sentiment": [{"aspect": entry["id"]} for entry in served["aspects"]],
        "get_service": [{"service": entry["label"]} for entry in served["entities"]["services"]],
        "get_technician": [{"name": entry["label"]} for entry in served["entities"]["technicians"]],
    }
    for tool in LISTED:
        for given_arguments in arguments[tool["name"]]:
            called = call(tool["name"], given_arguments, dataset)
            assert json.loads(called["content"][0]["text"]) == called["structuredContent"]
            Draft202012Validator(tool["outputSchema"]).validate(called["structuredContent"])


# ---- Anything at all ----

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=10), values, max_size=4),
    max_leaves=10,
)
IDS = st.none() | st.integers() | st.text(st.characters(), max_size=8) | JSON_VALUES
ARGUMENT_NAMES = sorted({name for tool in LISTED for name in tool["inputSchema"]["properties"]})
ARGUMENTS = JSON_VALUES | st.dictionaries(st.sampled_from(ARGUMENT_NAMES), JSON_VALUES, max_size=4)
META = JSON_VALUES | st.fixed_dictionaries(
    {},
    optional={
        key: st.sampled_from(ALL_VERSIONS) | JSON_VALUES if "Version" in key else st.just({}) | JSON_VALUES
        for key in claims()
    },
)
PARAMS = JSON_VALUES | st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(TOOL_NAMES) | JSON_VALUES,
        "arguments": ARGUMENTS,
        "cursor": JSON_VALUES,
        "_meta": META,
        "protocolVersion": st.sampled_from(ALL_VERSIONS) | JSON_VALUES,
    },
)
METHOD_NAMES = ["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/x"]
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON_VALUES,
        "id": IDS,
        "method": st.sampled_from(METHOD_NAMES) | JSON_VALUES,
        "params": PARAMS,
        "result": JSON_VALUES,
    },
)
DOCUMENTS = MESSAGES | st.lists(MESSAGES, max_size=12) | JSON_VALUES
LATIN_1 = st.text(st.characters(max_codepoint=255), max_size=20)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(["*/*", "text/event-stream"]) | LATIN_1,
        "content-type": st.just("application/json") | LATIN_1,
        "content-encoding": LATIN_1,
        "origin": st.sampled_from(["null", BASE_URL]) | LATIN_1,
        "mcp-protocol-version": st.sampled_from(ALL_VERSIONS) | LATIN_1,
        "mcp-session-id": LATIN_1,
        "mcp-method": st.sampled_from(METHOD_NAMES) | LATIN_1,
        "mcp-name": st.sampled_from(TOOL_NAMES) | LATIN_1,
    },
)
DEFINED_STATUSES = {200, 202, 204, 400, 403, 404, 405, 406, 415}


def assert_defined(reply: Reply, document: Any) -> None:
    """The reply is one that a client of this protocol can take, and its ids are those of `document`."""
    assert reply.status in DEFINED_STATUSES
    if not reply.body:
        assert reply.status in (202, 204)
        return
    body = reply.body
    if header(reply, "Content-Type") == "text/event-stream":
        body = body.removeprefix(b"event: message\ndata: ").removesuffix(b"\n\n")
        assert b"\n" not in body
    answers = json.loads(body)
    asked = document if isinstance(answers, list) else [document]
    ids = [one.get("id") for one in asked if isinstance(one, dict)]
    for one in answers if isinstance(answers, list) else [answers]:
        assert one["jsonrpc"] == "2.0"
        assert ("result" in one) != ("error" in one)
        assert one["id"] is None or one["id"] in ids
        assert not isinstance(one["id"], (bool, float))
        if "error" in one:
            assert isinstance(one["error"]["code"], int)
            assert isinstance(one["error"]["message"], str)


@settings(max_examples=400)
@given(document=DOCUMENTS, headers=HEADERS)
def test_any_json_with_any_headers_gets_a_defined_answer(document: Any, headers: dict[str, str]) -> None:
    assert_defined(send(document, headers), document)


@given(body=st.binary(max_size=200), headers=HEADERS, method=st.sampled_from(METHODS) | LATIN_1)
def test_any_bytes_with_any_method_get_a_defined_answer(
    body: bytes, headers: dict[str, str], method: str
) -> None:
    assert_defined(send(body, headers, method=method), {})


@given(tool=st.sampled_from(LISTED), data=st.data())
def test_arguments_that_fit_the_input_schema_are_taken_but_for_days_that_never_were(
    tool: Object, data: st.DataObject
) -> None:
    def values(schema: Object) -> st.SearchStrategy[Any]:
        low, high = schema.get("minimum"), schema.get("maximum")
        return {
            "string": st.text(max_size=schema.get("maxLength", 20)),
            "number": st.floats(low, high) | st.integers(low, high),
            "integer": st.integers(low, high) | st.integers(low, high).map(float),
        }[schema["type"]]

    properties = tool["inputSchema"]["properties"]
    chosen = data.draw(
        st.fixed_dictionaries({}, optional={name: values(schema) for name, schema in properties.items()})
    )
    required = tool["inputSchema"].get("required", [])
    called = call(tool["name"], chosen)
    if called["isError"]:
        lines = called["content"][0]["text"].splitlines()[1:]
        for line in lines:
            name = line.partition(":")[0]
            missing = name in required and not chosen.get(name)
            no_day = properties[name].get("format") == "date"
            assert missing or no_day or "no review has" in line or "the insights" in line
