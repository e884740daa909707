"""The MCP endpoint answers as the revisions of the specification require.

Refusals and origins have files of their own.

Sections: the handshake - the initialize era - the stateless era - undeclared lists -
forms of an answer - the text of a result - anything.
"""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.mcp_requests import (
    ANSWERED,
    BASE_URL,
    EVENTS,
    FAILED,
    HANDSHAKE_VERSIONS,
    JSON,
    NEWEST_FIRST,
    PING,
    STATELESS,
    call,
    claims,
    handshake,
    header,
    notification,
    request,
    result,
    send,
    stateless,
)
from lab.mcp_sample import BUSINESS, CALLS, DECLARED, TOOLBOX, Object, structured
from lab.small_files import any_json, any_text, mutations

from mcp_rpc import success
from reviewslib.dataset.strict_json import encode
from reviewslib.mcp_tools import TOOLS, Told, brief_text

# ---- The handshake -------------------------------------------------------------------

NEWEST_WITH_HANDSHAKE = "2025-11-25"
SERVER = {
    "name": "reviewsd",
    "title": f"Reviews of {BUSINESS}",
    "version": "1.0.0",
    "websiteUrl": BASE_URL,
}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
@pytest.mark.parametrize(
    "header_version", [None, STATELESS, NEWEST_WITH_HANDSHAKE, "nonsense"]
)
def test_a_handshake_agrees_to_a_served_version_whatever_the_header(
    version: str, header_version: str | None
) -> None:
    response = handshake(version, mcp_protocol_version=header_version)

    assert result(response)["protocolVersion"] == version


@pytest.mark.parametrize(
    "version", [STATELESS, "2024-11-05", "2099-01-01", "", "\ud800"]
)
@pytest.mark.parametrize(
    "header_version", [None, STATELESS, NEWEST_WITH_HANDSHAKE, "nonsense"]
)
def test_a_handshake_of_another_version_is_offered_the_newest(
    version: str, header_version: str | None
) -> None:
    response = handshake(version, mcp_protocol_version=header_version)

    assert result(response)["protocolVersion"] == NEWEST_WITH_HANDSHAKE


def test_the_handshake_offers_tools_and_nothing_else() -> None:
    assert result(handshake("2025-06-18")) == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": SERVER,
        "instructions": TOOLBOX.instructions,
    }


def session_ids(number: int) -> list[str]:
    """The ids that so many handshakes give, of a client that sends an old one."""
    responses = [handshake(mcp_session_id="stale") for _ in range(number)]
    return [str(header(response, "Mcp-Session-Id")) for response in responses]


def test_every_handshake_makes_a_new_id() -> None:
    ids = session_ids(20)

    assert len(set(ids)) == 20


def test_the_id_of_a_session_is_visible_and_safe_in_a_url() -> None:
    (id,) = session_ids(1)

    # 256 bits in base64.
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", id)


# ---- The initialize era --------------------------------------------------------------

NO_OR_ANY_VERSION = [None, *HANDSHAKE_VERSIONS]


@pytest.mark.parametrize("version", NO_OR_ANY_VERSION)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            request("tools/list", {"cursor": None}), {"tools": DECLARED}, id="list"
        ),
        pytest.param(PING, {}, id="ping"),
    ],
)
def test_a_request_needs_no_handshake(
    body: Object, expected: Object, version: str | None
) -> None:
    response = send(body, mcp_protocol_version=version, mcp_session_id="é, x")

    assert result(response) == expected
    assert header(response, "Mcp-Session-Id") is None


WITHOUT_ARGUMENTS = pytest.param("search_reviews", None, id="no arguments")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        *(pytest.param(*call, id=call[0]) for call in CALLS.items()),
        WITHOUT_ARGUMENTS,
    ],
)
def test_a_call_is_answered_by_its_tool_twice(
    tool: str, arguments: Object | None
) -> None:
    # given what the tool itself says
    whole = structured(tool, arguments)

    # when it is called
    called = result(send(call(tool, arguments)))

    # then programs get the whole, and models what they read of it
    (block,) = called["content"]
    assert called["structuredContent"] == whole
    assert json.loads(block["text"]) == brief(whole)


# No model opens the address of a picture, or of where a review was first.
UNREAD = ("author_avatar_url", "source_url")


def brief(value: Any) -> Any:
    """What models read of a result: nothing that is empty, no address of a picture."""
    if isinstance(value, list):
        return [brief(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: brief(member)
        for key, member in value.items()
        if member not in (None, []) and key not in UNREAD
    }


@pytest.mark.parametrize("accept", [JSON, EVENTS])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(notification("notifications/initialized"), id="a notification"),
        pytest.param(notification("x"), id="an unknown notification"),
        pytest.param(ANSWERED, id="a result"),
        pytest.param(FAILED, id="an error"),
    ],
)
def test_what_asks_for_nothing_is_accepted_without_a_body(
    body: Object, accept: str
) -> None:
    response = send(body, accept=accept)

    assert response.status == 202
    assert response.body == b""
    assert header(response, "Content-Type") is None


# ---- The stateless era ---------------------------------------------------------------

ABOUT = {
    "resultType": "complete",
    "_meta": {"io.modelcontextprotocol/serverInfo": SERVER},
}
CACHING = {"ttlMs": 60000, "cacheScope": "public"}


def test_discovery_says_what_the_handshake_says() -> None:
    response = send(**stateless("server/discover"))

    offered = {
        "supportedVersions": NEWEST_FIRST,
        "capabilities": {"tools": {}},
        "instructions": TOOLBOX.instructions,
    }
    assert result(response) == ABOUT | CACHING | offered


def test_a_list_is_that_of_the_other_era_and_may_be_cached() -> None:
    response = send(**stateless("tools/list"))

    assert result(response) == ABOUT | CACHING | {"tools": DECLARED}


def test_a_call_is_answered_as_in_the_other_era() -> None:
    params = {"name": "get_business"}

    response = send(**stateless("tools/call", params))

    of_the_other = result(send(request("tools/call", params)))
    assert result(response) == ABOUT | of_the_other


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_there_is_no_session(method: str) -> None:
    response = send(**stateless(method, mcp_session_id="nonsense"))

    assert response.status == 200
    assert header(response, "Mcp-Session-Id") is None


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(
            {"body": notification("x") | {"params": {"_meta": claims()}}},
            202,
            id="a notification without a header",
        ),
        pytest.param(
            {"body": notification("x"), "mcp_protocol_version": STATELESS},
            202,
            id="a notification without a claim",
        ),
        pytest.param(
            stateless("tools/list", {"": "no name"}), 200, id="a list without a name"
        ),
    ],
)
def test_a_notification_needs_no_header_and_a_list_no_name(
    sent: Object, status: int
) -> None:
    assert send(**sent).status == status


def test_a_name_can_be_sent_in_base64() -> None:
    params = {"name": "get_topics"}

    response = send(
        **stateless("tools/call", params, mcp_name="=?base64?Z2V0X3RvcGljcw==?=")
    )

    assert result(response)["isError"] is False


# ---- Lists that some clients ask for though they are not declared --------------------


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


def test_in_the_stateless_era_there_are_no_such_lists() -> None:
    assert send(**stateless("prompts/list")).status == 404


# ---- Forms of an answer --------------------------------------------------------------


def test_an_answer_is_compact_json_in_utf_8() -> None:
    response = send(request("ping", id="é\ud800"))

    assert response.body == '{"jsonrpc":"2.0","id":"é\\ud800","result":{}}'.encode()


any_id = st.integers() | any_text | st.sampled_from(["\ud800", "\\\udfff", 10**4000])


@given(any_id)
def test_the_id_of_a_result_is_that_of_the_request(id: int | str) -> None:
    assert json.loads(send(request("ping", id=id)).body)["id"] == id


@given(any_id)
def test_the_id_of_an_error_is_that_of_the_request(id: int | str) -> None:
    assert json.loads(send(call("x", id=id)).body)["id"] == id


@pytest.mark.parametrize(
    "mirrored",
    [
        pytest.param("tools/list", id="a result"),
        pytest.param("nonsense", id="a refusal"),
    ],
)
@given(id=any_id)
def test_the_id_of_a_stateless_answer_is_that_of_the_request(
    mirrored: str, id: int | str
) -> None:
    listing = request("tools/list", {"_meta": claims()}, id)

    response = send(listing, mcp_protocol_version=STATELESS, mcp_method=mirrored)

    assert json.loads(response.body)["id"] == id


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param(None, JSON, id="no field"),
        pytest.param("", JSON, id="an empty field"),
        pytest.param(" , ", JSON, id="an empty list"),
        pytest.param("*/*", JSON, id="everything"),
        pytest.param("application/*", JSON, id="every application"),
        pytest.param("application/json", JSON, id="JSON alone"),
        pytest.param(
            "application/json;q=0.1, text/event-stream", JSON, id="rather events"
        ),
        pytest.param("text/event-stream", EVENTS, id="events alone"),
        pytest.param("text/*;q=0.5", EVENTS, id="every text"),
        pytest.param("application/json;q=0, */*", EVENTS, id="everything but JSON"),
    ],
)
def test_json_is_preferred_and_events_are_for_those_who_take_nothing_else(
    accept: str | None, content_type: str
) -> None:
    response = send(accept=accept)

    assert response.status == 200
    assert header(response, "Content-Type") == content_type


def test_fields_may_say_json_in_other_words() -> None:
    response = send(
        content_type="Application/JSON; charset=utf-8", content_encoding="Identity"
    )

    assert response.status == 200


def test_an_event_is_one_message_with_the_same_json() -> None:
    body = call("search_reviews", {"limit": 100})

    event = send(body, accept=EVENTS).body

    assert event == b"event: message\ndata: %s\n\n" % send(body).body
    assert event.count(b"\n") == 3


def test_no_proxy_holds_an_event_back() -> None:
    response = send(accept=EVENTS)

    assert header(response, "X-Accel-Buffering") == "no"


def test_a_handshake_as_an_event_has_a_session_too() -> None:
    response = handshake(accept=EVENTS)

    assert header(response, "Mcp-Session-Id")


def test_a_refusal_is_no_event() -> None:
    response = send({}, accept=EVENTS)

    assert header(response, "Content-Type") == JSON


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({"body": PING}, id="a result"),
        pytest.param({"body": PING, "accept": EVENTS}, id="an event"),
        pytest.param(stateless("tools/list"), id="a list of the stateless era"),
        pytest.param({"body": notification("notifications/initialized")}, id="nothing"),
        pytest.param({"body": request("zzz")}, id="an error"),
        pytest.param({"method": "GET"}, id="a refusal"),
    ],
)
def test_no_cache_on_the_way_keeps_an_answer(sent: Object) -> None:
    assert header(send(**sent), "Cache-Control") == "no-store"


# ---- The text of a result ------------------------------------------------------------

OTHER_EMPTY_VALUES = {"a": 0, "b": False, "c": "", "d": {}}


@pytest.mark.parametrize(
    ("structured", "said"),
    [
        pytest.param({"a": None, "b": []}, {}, id="null and an empty list"),
        pytest.param(OTHER_EMPTY_VALUES, OTHER_EMPTY_VALUES, id="other empty values"),
        pytest.param(
            {"source_url": "https://x", "author_avatar_url": "https://y", "z": "z"},
            {"z": "z"},
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
    ],
)
def test_the_text_of_a_result_leaves_out_what_says_nothing(
    structured: Object, said: Object
) -> None:
    encoded = encode(structured)
    told = Told(encoded, brief_text(encoded))

    answer = json.loads(success(1, {"isError": False, "structuredContent": told}))

    (content,) = answer["result"]["content"]
    assert json.loads(content["text"]) == said
    assert answer["result"]["structuredContent"] == structured


# ---- Anything ------------------------------------------------------------------------

GET_BUSINESS = {"name": "get_business", "arguments": {}}
SENT = [
    request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}}),
    *(call(tool, arguments) for tool, arguments in CALLS.items()),
    PING,
    ANSWERED,
    stateless("tools/list")["body"],
    stateless("tools/call", GET_BUSINESS)["body"],
]
any_message = st.sampled_from(SENT).flatmap(mutations)
LATIN_1 = st.text(st.characters(max_codepoint=255), max_size=20)
USUAL_FIELDS = {
    "accept": ["*/*", EVENTS],
    "content_type": [JSON],
    "origin": [BASE_URL, "http://localhost", "https://evil.example"],
    "mcp_name": list(TOOLS),
    "mcp_protocol_version": NEWEST_FIRST,
    "mcp_method": ["tools/call", "tools/list"],
}
any_fields = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from(values) | LATIN_1 for name, values in USUAL_FIELDS.items()
    },
)
any_method = st.just("POST") | st.sampled_from(["GET", "OPTIONS"])
STATUSES = {200, 202, 204, 400, 403, 404, 405, 406, 415}
WITHOUT_BODY = {202, 204}


@pytest.mark.slow
@settings(max_examples=400)
@given(any_message | any_json | st.binary(max_size=200), any_fields, any_method)
def test_any_request_gets_a_well_formed_response(
    sent: Any, headers: Object, method: str
) -> None:
    response = send(sent, method=method, **headers)

    assert response.status in STATUSES
    assert bool(response.body) == (response.status not in WITHOUT_BODY)
    if response.status != 204:
        assert ("Cache-Control", "no-store") in response.headers
    if response.body:
        check_answer(response.body, sent)


def check_answer(body: bytes, sent: Any) -> None:
    """An answer is a result or an error, and has the id of the request or none."""
    answer = json.loads(body.removeprefix(b"event: message\ndata: "))
    forms = [{"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}]
    assert answer.keys() in forms
    assert not isinstance(answer["id"], bool | float)
    if answer["id"] is not None:
        assert answer["id"] == sent["id"]
