"""What the MCP endpoint refuses, with which status, code and reason.

Sections: bodies - HTTP - messages - requests of the initialize era - unserved versions -
stateless requests - mirrored fields - what a refusal repeats - errors outside the
endpoint.
"""

import base64
import json
from http import HTTPStatus
from typing import Any

import pytest
from lab.mcp_requests import (
    ANSWERED,
    BASE_URL,
    CAPABILITIES_CLAIM,
    ENDPOINT,
    NEWEST_FIRST,
    PING,
    STATELESS,
    VERSION_CLAIM,
    call,
    claims,
    header,
    notification,
    request,
    send,
    stateless,
)
from lab.mcp_sample import Object, descriptions, toolbox_with
from lab.small_files import a_file, review

from reviewslib.mcp_tools import TOOLS
from reviewslib.messages import Response

# Codes of JSON-RPC 2.0 (section 5.1) and of MCP.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022


def check_refusal(
    response: Response, status: int, code: int, message: str, id: Any = None
) -> None:
    """The response is this error and nothing else."""
    error = {"code": code, "message": message}
    assert json.loads(response.body) == {"jsonrpc": "2.0", "id": id, "error": error}
    assert response.status == status
    assert header(response, "Mcp-Session-Id") is None
    has_allow = header(response, "Allow") is not None
    assert has_allow == (status == 405)


# ---- Bodies --------------------------------------------------------------------------

IN_UTF_16 = '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le")
LONG_NUMBER = b'{"jsonrpc":"2.0","id":' + b"1" * 4301 + b',"method":"ping"}'


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="an object without an end"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
        pytest.param(b"[" * 65536, id="65,536 brackets"),
        pytest.param(b"[" + b"NaN," * 10000 + b"NaN]", id="NaN"),
        pytest.param(IN_UTF_16, id="UTF-16"),
        pytest.param(LONG_NUMBER, id="a number of 4,301 digits"),
    ],
)
def test_a_body_that_is_not_json_in_utf_8_is_a_parse_error(body: bytes) -> None:
    response = send(body)

    error = json.loads(response.body)["error"]
    assert response.status == 400
    assert error["code"] == PARSE_ERROR
    assert error["message"].startswith("Parse error: ")
    assert len(response.body) < 300


# ---- HTTP: nothing is read, so the id is null ----------------------------------------


@pytest.mark.parametrize(
    "method", ["GET", "DELETE", "HEAD", "PUT", "PATCH", "NONSENSE"]
)
def test_another_method_is_told_what_the_endpoint_is(method: str) -> None:
    response = send(method=method)

    message = "this is an MCP endpoint: POST a JSON-RPC message to it"
    check_refusal(response, 405, INVALID_REQUEST, message)
    assert header(response, "Allow") == "POST, OPTIONS"


@pytest.mark.parametrize(
    "content_type", [None, "", "text/plain", "application/json-patch+json"]
)
def test_another_media_type_is_refused(content_type: str | None) -> None:
    response = send(content_type=content_type)

    message = "send Content-Type: application/json"
    check_refusal(response, 415, INVALID_REQUEST, message)


@pytest.mark.parametrize("coding", ["", "x"])
def test_a_coded_body_is_refused(coding: str) -> None:
    response = send(content_encoding=coding)

    message = "send the body without a Content-Encoding"
    check_refusal(response, 415, INVALID_REQUEST, message)


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "*/*;q=0"])
def test_who_takes_neither_form_is_refused(accept: str) -> None:
    response = send(accept=accept)

    message = "accept application/json or text/event-stream"
    check_refusal(response, 406, INVALID_REQUEST, message)


# ---- Messages ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(None, id="null"),
        pytest.param(5, id="a number"),
        pytest.param([], id="an empty batch"),
        pytest.param([PING], id="a batch"),
        pytest.param({}, id="an empty object"),
    ],
)
def test_what_is_no_object_of_json_rpc_is_refused(body: Any) -> None:
    response = send(body)

    message = 'expected one JSON-RPC message: an object with "jsonrpc": "2.0"'
    check_refusal(response, 400, INVALID_REQUEST, message)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"id": 1, "method": "ping"}, id="without a version"),
        pytest.param(PING | {"jsonrpc": "1.0"}, id="version 1.0"),
    ],
)
def test_another_version_of_json_rpc_is_refused(body: Object) -> None:
    response = send(body)

    message = 'expected one JSON-RPC message: an object with "jsonrpc": "2.0"'
    check_refusal(response, 400, INVALID_REQUEST, message, id=1)


@pytest.mark.parametrize("id", [None, True, False, 1.0, [], {}], ids=json.dumps)
def test_an_id_is_a_string_or_an_integer(id: Any) -> None:
    response = send(request("ping", id=id))

    message = "id: expected a string or an integer"
    check_refusal(response, 400, INVALID_REQUEST, message)


@pytest.mark.parametrize(
    ("body", "id"),
    [
        pytest.param({"jsonrpc": "2.0", "id": 1}, 1, id="no method"),
        pytest.param(ANSWERED | {"method": 5}, 7, id="a number"),
        pytest.param({"jsonrpc": "2.0", "result": {}}, None, id="a result of nothing"),
    ],
)
def test_a_method_is_a_string(body: Object, id: int | None) -> None:
    response = send(body)

    message = "method: expected a string"
    check_refusal(response, 400, INVALID_REQUEST, message, id)


@pytest.mark.parametrize("params", [5, [], False], ids=json.dumps)
def test_params_are_an_object(params: Any) -> None:
    response = send(request("ping", params))

    check_refusal(response, 400, INVALID_PARAMS, "params: expected an object", id=1)


# ---- Requests of the initialize era: status 200 --------------------------------------
# Their clients take any other status for a broken connection.

KNOWN_TOOLS = f"; the known ones are {', '.join(TOOLS)}"


@pytest.mark.parametrize("method", ["server/discover", ""])
def test_an_unknown_method_is_not_found(method: str) -> None:
    response = send(request(method))

    message = f"Method not found: {method}"
    check_refusal(response, 200, METHOD_NOT_FOUND, message, id=1)


@pytest.mark.parametrize("cursor", ["", "2", 5])
def test_there_is_no_second_page_of_tools(cursor: Any) -> None:
    response = send(request("tools/list", {"cursor": cursor}))

    message = "cursor: unknown; all tools are on the first page"
    check_refusal(response, 200, INVALID_PARAMS, message, id=1)


@pytest.mark.parametrize(
    "params",
    [pytest.param({}, id="no name"), pytest.param({"name": 5}, id="a number")],
)
def test_a_call_names_a_tool(params: Object) -> None:
    response = send(request("tools/call", params))

    message = "name: expected the name of a tool"
    check_refusal(response, 200, INVALID_PARAMS, message, id=1)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param(
            "get_reviews", "get_reviews; did you mean get_review?", id="similar"
        ),
        pytest.param("\ud800", f"\ufffd{KNOWN_TOOLS}", id="no text"),
        pytest.param("x" * 1000, f"{'x' * 200}…{KNOWN_TOOLS}", id="long"),
    ],
)
def test_an_unknown_tool_is_named_with_those_that_are_known(
    name: str, reason: str
) -> None:
    response = send(call(name))

    check_refusal(response, 200, INVALID_PARAMS, f"unknown tool {reason}", id=1)


def test_a_tool_that_is_not_listed_is_not_offered_either() -> None:
    nothing_said = toolbox_with(a_file(review()))
    fields = {"content-type": "application/json"}

    response = ENDPOINT.handle(
        "POST", fields.get, json.dumps(call("zzz")).encode(), nothing_said
    )

    listed = ", ".join(descriptions(nothing_said))
    message = f"unknown tool zzz; the known ones are {listed}"
    check_refusal(response, 200, INVALID_PARAMS, message, id=1)


@pytest.mark.parametrize("arguments", [5, [], False], ids=json.dumps)
def test_arguments_are_an_object(arguments: Any) -> None:
    response = send(call("get_business", arguments))

    message = "arguments: expected an object"
    check_refusal(response, 200, INVALID_PARAMS, message, id=1)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param(None, id="no params"),
        pytest.param({"protocolVersion": 1}, id="a number"),
    ],
)
def test_a_handshake_names_a_version(params: Any) -> None:
    response = send(request("initialize", params))

    message = "protocolVersion: expected a string such as 2025-11-25"
    check_refusal(response, 200, INVALID_PARAMS, message, id=1)


@pytest.mark.parametrize("member", ["clientInfo", "capabilities"])
def test_what_a_handshake_says_of_its_client_are_objects(member: str) -> None:
    params = {"protocolVersion": "2025-06-18", member: []}

    response = send(request("initialize", params))

    message = f"{member}: expected an object"
    check_refusal(response, 200, INVALID_PARAMS, message, id=1)


# ---- Unserved versions ---------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(request("tools/list"), id="request"),
        pytest.param(notification("x"), id="notification"),
    ],
)
@pytest.mark.parametrize(
    ("version", "reason"),
    [
        pytest.param("2099-01-01", "is not served", id="later than all"),
        pytest.param("2024-11-05", "is not served", id="earlier than all"),
        pytest.param("", "is not served", id="none"),
        pytest.param("2025-11-25", "needs initialize", id="of the other era"),
    ],
)
def test_an_unserved_version_is_refused_with_the_served_ones(
    version: str, reason: str, body: Object
) -> None:
    claiming = body | {"params": {"_meta": claims(version)}}

    response = send(claiming, mcp_protocol_version=version, mcp_method="tools/list")

    assert response.status == 400
    assert json.loads(response.body)["error"] == {
        "code": UNSUPPORTED_VERSION,
        "message": f"protocol version {version} {reason}",
        "data": {"supported": NEWEST_FIRST, "requested": version},
    }


# ---- Stateless requests --------------------------------------------------------------

CAPABILITIES_MISSING = f"_meta: {CAPABILITIES_CLAIM} must be an object"
VERSION_MISSING = f"_meta: {VERSION_CLAIM} is missing"
VERSION_NO_TEXT = f"_meta: {VERSION_CLAIM} must be a string"


@pytest.mark.parametrize("method", ["initialize", "ping"])
def test_there_is_nothing_of_the_other_era(method: str) -> None:
    response = send(**stateless(method))

    message = f"Method not found: {method}"
    check_refusal(response, 404, METHOD_NOT_FOUND, message, id=1)


@pytest.mark.parametrize(
    ("claimed", "message"),
    [
        pytest.param(
            {VERSION_CLAIM: STATELESS}, CAPABILITIES_MISSING, id="no capabilities"
        ),
        pytest.param(
            {VERSION_CLAIM: STATELESS, CAPABILITIES_CLAIM: []},
            CAPABILITIES_MISSING,
            id="a list of capabilities",
        ),
        pytest.param({CAPABILITIES_CLAIM: {}}, VERSION_MISSING, id="no version"),
        pytest.param(claims(None), VERSION_NO_TEXT, id="null"),
        pytest.param(claims(20260728), VERSION_NO_TEXT, id="a number"),
        pytest.param(claims([]), VERSION_NO_TEXT, id="a list"),
        pytest.param(claims({}), VERSION_NO_TEXT, id="an object"),
        pytest.param(claims(True), VERSION_NO_TEXT, id="true"),
    ],
)
def test_a_request_claims_a_version_and_capabilities(
    claimed: Object, message: str
) -> None:
    response = send(**stateless("tools/list", {"_meta": claimed}))

    check_refusal(response, 400, INVALID_PARAMS, message, id=1)


def test_a_request_that_claims_nothing_is_refused() -> None:
    response = send(request("x"), mcp_protocol_version=STATELESS)

    check_refusal(response, 400, INVALID_PARAMS, VERSION_MISSING, id=1)


def test_a_response_is_refused() -> None:
    response = send(ANSWERED, mcp_protocol_version=STATELESS)

    message = "expected a request, not a response"
    check_refusal(response, 400, INVALID_REQUEST, message, id=7)


def test_a_stateless_call_names_a_tool() -> None:
    response = send(**stateless("tools/call"))

    message = "name: expected the name of a tool"
    check_refusal(response, 400, INVALID_PARAMS, message, id=1)


# ---- Mirrored fields: they say the same as the body ----------------------------------

GET_BUSINESS = {"name": "get_business", "arguments": {}}
MISSING = "the header is missing"
NOT_BASE64 = "Mcp-Name: not UTF-8 in base64"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        pytest.param(
            "mcp_protocol_version",
            None,
            f"MCP-Protocol-Version: {MISSING}",
            id="no version",
        ),
        pytest.param("mcp_method", None, f"Mcp-Method: {MISSING}", id="no method"),
        pytest.param("mcp_name", None, f"Mcp-Name: {MISSING}", id="no name"),
        pytest.param(
            "mcp_protocol_version",
            "a",
            f"MCP-Protocol-Version: a differs from the body's {STATELESS}",
            id="another version",
        ),
        pytest.param(
            "mcp_method",
            "Tools/Call",
            "Mcp-Method: Tools/Call differs from the body's tools/call",
            id="in other letters",
        ),
        pytest.param(
            "mcp_name",
            "=?BASE64?eA==?=",
            "Mcp-Name: =?BASE64?eA==?= differs from the body's get_business",
            id="no mark of base64",
        ),
        pytest.param("mcp_name", "=?base64?????=", NOT_BASE64, id="no base64"),
        pytest.param("mcp_name", "=?base64?é?=", NOT_BASE64, id="a letter"),
        pytest.param("mcp_name", "=?base64?/w==?=", NOT_BASE64, id="no UTF-8"),
        pytest.param(
            "mcp_name", "=?base64?Z2V0X2J1!c2luZXNz?=", NOT_BASE64, id="a mark inside"
        ),
    ],
)
def test_a_mirrored_field_must_say_what_the_body_says(
    field: str, value: str | None, message: str
) -> None:
    response = send(**stateless("tools/call", GET_BUSINESS, **{field: value}))

    check_refusal(response, 400, HEADER_MISMATCH, message, id=1)


def in_base64(name: str) -> Object:
    """A call whose name is mirrored in base64."""
    encoded = base64.b64encode(name.encode("utf-8", "surrogatepass")).decode()
    return stateless("tools/call", {"name": name}, mcp_name=f"=?base64?{encoded}?=")


def test_a_surrogate_in_base64_is_not_utf_8() -> None:
    response = send(**in_base64("\ud800"))

    check_refusal(response, 400, HEADER_MISMATCH, NOT_BASE64, id=1)


@pytest.mark.parametrize("name", ["Größe", "=?base64??="])
def test_a_name_in_base64_that_no_tool_has_is_unknown(name: str) -> None:
    response = send(**in_base64(name))

    message = f"unknown tool {name}{KNOWN_TOOLS}"
    check_refusal(response, 400, INVALID_PARAMS, message, id=1)


# ---- What a refusal repeats ----------------------------------------------------------

LONG = "x" * 10_000
# As much as the whole of a message of ours, and of a value in it.
MAX_REFUSAL_BYTES = 1000


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param(stateless("tools/list", mcp_method=LONG), id="a header field"),
        pytest.param(stateless("tools/call", {"name": LONG}), id="a name of no tool"),
        pytest.param(stateless(LONG), id="a method"),
        pytest.param({"body": request(LONG)}, id="a method of the initialize era"),
        pytest.param(
            stateless("tools/list", {"_meta": claims(LONG)}, mcp_protocol_version=LONG),
            id="a version",
        ),
    ],
)
def test_of_what_is_too_long_a_refusal_repeats_the_beginning(refused: Object) -> None:
    response = send(**refused)

    assert "error" in json.loads(response.body)
    assert len(response.body) < MAX_REFUSAL_BYTES


# ---- Errors outside the endpoint -----------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(413, INVALID_REQUEST, id="too large"),
        pytest.param(400, INVALID_REQUEST, id="a bad request"),
        pytest.param(500, INTERNAL_ERROR, id="a fault of ours"),
    ],
)
def test_errors_outside_the_endpoint_have_the_same_form(status: int, code: int) -> None:
    response = ENDPOINT.refusal(HTTPStatus(status), "no", {"origin": BASE_URL}.get)

    check_refusal(response, status, code, "no")
    assert header(response, "Access-Control-Allow-Origin") == BASE_URL


def test_an_error_outside_the_endpoint_opens_nothing_to_a_stranger() -> None:
    stranger = {"origin": "null"}

    response = ENDPOINT.refusal(HTTPStatus(500), "no", stranger.get)

    assert header(response, "Access-Control-Allow-Origin") is None
    assert header(response, "Vary") is None
