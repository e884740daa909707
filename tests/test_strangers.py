"""Whatever 64 KiB a stranger sends, and whatever customers wrote, no request takes long.

Every field of a request is filled with every hostile shape, and the processor time of the whole process is
limited. No other test asserts a time like this: only the time shows whether the work grows faster than the
length of a request.

Sections: Reviews - Shapes - Fields - Claims
"""

import json
import socket
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import quote

import pytest
from lab.page_samples import write_files
from lab.servers import processor_seconds
from lab.services import Address, daemon
from lab.small_files import a_file, review

from reviewslib import links
from reviewslib.mcp_tools import TOOLS

pytestmark = pytest.mark.slow

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MAX_SECONDS = (
    0.5  # the slowest request takes 0.1 s; with quadratic code it would take seconds
)
HEAD_BYTES = 15 * 1024
FORM_BYTES = 16 * 1024
BODY_BYTES = 64 * 1024 - 512

# ---- Reviews: what customers wrote, twenty reviews for a text ----

LONGEST_TEXT = 4096  # characters of the longest review that Google accepts
REPEATED = [
    *"a жİ\u0344\u1112\u202e",
    "\u1112\u1161\u11ab",
    "e\u0301",
    "a\u0301\u0327",
    "<>&'\"",
    "ab",
]
TEXTS = [unit * (LONGEST_TEXT // len(unit)) for unit in REPEATED]
TEXTS += ["ж" * 4000 + "ß", "a" * 2400, "a" * 1249 + "b" + "a" * 1250]
NAMES = ["A" * 200, "a. " * 60, "\u0344" * 100, ".," * 100]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    hostile = [
        review(
            id=f"{number}-{copy}",
            text=text,
            mentioned_technicians=NAMES,
            mentioned_services=NAMES,
        )
        for number, text in enumerate(TEXTS)
        for copy in range(20)
    ]
    with daemon(
        data=write_files(tmp_path_factory.mktemp("hostile"), a_file(*hostile))
    ) as address:
        yield address


# ---- Shapes: what is repeated until a field is full ----

UNITS = list(" ,;=&%/.-:[90\"\\\t+*'<aéßİж😀\u0344\u0301\u1112\ufb03")
UNITS += ["a ", "a,", "a;", ";q=", "a;q=0.1,", "a=b&", "[:", "1.", '",', 'W/"']
UNITS += [
    "=?",
    "=?base64?",
    "Mon, ",
    "%41",
    "e\u0301",
    "a\u0327\u0301",
    "\u1112\u1161\u11ab",
]


def shapes(size: int) -> Iterator[str]:
    """Texts of at most `size` bytes."""
    for unit in UNITS:
        yield cut(unit * size, size)
        yield (
            cut("a/" + unit * size, HEAD_BYTES - 1) + "a"
        )  # with such ends, parsers of fields strip nothing
    yield "9" * (size - 1) + "x"
    yield "a" * 600 + "b" + "a" * 600  # a search word among equal letters
    for name in ("p", "mentions_technicia"):
        yield cut("".join(f"{name}{number}=x&" for number in range(size)), size)
    yield cut(
        "".join(chr(0x300 + number % 0x50) for number in range(size)), size
    )  # in no order


def cut(text: str, size: int) -> str:
    """The beginning of a text, of at most so many bytes."""
    return text.encode()[:size].decode(errors="ignore")


# ---- Fields: functions that make a request with a text in one of its fields ----


def whole_request(
    method: str, path: str, fields: dict[str, str], body: bytes = b""
) -> bytes:
    framing = {"Host": "a", "Connection": "close", "Content-Length": str(len(body))}
    lines = [
        f"{method} {path} HTTP/1.1",
        *map(": ".join, (framing | fields).items()),
        "",
        "",
    ]
    assert len(body) <= 64 * 1024
    return "\r\n".join(lines).encode() + body


def mcp_post(body: bytes, **fields: str) -> bytes:
    return whole_request("POST", links.MCP_PATH, {"Content-Type": JSON} | fields, body)


def in_path(path: str, text: str) -> bytes:
    return whole_request("GET", path + quote(text, safe="&=")[:HEAD_BYTES], {})


def in_header(name: str, text: str) -> bytes:
    return whole_request("GET", "/", {name: cut(text, HEAD_BYTES)})


def in_header_of_mcp(name: str, text: str) -> bytes:
    usual = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
    body = json.dumps(USUAL | tool_call("x", {})).encode()
    return mcp_post(body, **(usual | {name: cut(text, HEAD_BYTES)}))


def in_form(name: str, text: str) -> bytes:
    fields = {
        "hub.mode": "subscribe",
        "hub.topic": "http://a/feed.xml",
        "hub.callback": "https://a.example/",
    }
    form = "&".join(
        f"{key}={quote(value, safe='&=')}"
        for key, value in (fields | {name: text}).items()
    )
    return whole_request(
        "POST", links.HUB_PATH, {"Content-Type": FORM}, form.encode()[:FORM_BYTES]
    )


def in_message(members_of: Callable[[str], dict[str, object]], text: str) -> bytes:
    members = USUAL | members_of(
        cut(text, BODY_BYTES // 2)
    )  # in JSON some characters take two bytes
    return mcp_post(json.dumps(members, ensure_ascii=False).encode())


def tool_call(tool: str, arguments: object) -> dict[str, object]:
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


USUAL: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PARAMETERS = ["query", "rating", "min_rating", "since", "source", "offset"]
NAMED = ["mentions_technician", "mentions_service"]
PATHS = [
    "/",
    links.SINCE_PATH,
    links.REVIEW_PATH,
    f"{links.REVIEW_LIST_PATH}?",
    f"{links.SEARCH_PATH}?",
]
PATHS += [f"{links.SEARCH_PATH}?{name}=" for name in PARAMETERS + NAMED]
PATHS += [f"{links.REVIEW_LIST_PATH}?{name}=" for name in [*PARAMETERS, *NAMED, "page"]]
PATHS += [f"{links.EMBED_PATH}?{name}=" for name in ["limit", "theme", *NAMED]]
HEADERS = [
    "Host",
    "Accept",
    "Accept-Encoding",
    "If-None-Match",
    "If-Modified-Since",
    "User-Agent",
]
HEADERS_OF_MCP = [
    "Origin",
    "Accept",
    "Content-Type",
    "Content-Encoding",
    "MCP-Protocol-Version",
]
HEADERS_OF_MCP += ["Mcp-Session-Id", "Mcp-Method", "Mcp-Name"]
FORM_FIELDS = [
    "hub.mode",
    "hub.topic",
    "hub.callback",
    "hub.secret",
    "hub.lease_seconds",
    "other",
]
ARGUMENTS = [
    (tool.name, parameter.name)
    for tool in TOOLS.values()
    for parameter in tool.parameters
]
ARGUMENTS += [("search_reviews", name) for name in PARAMETERS + NAMED]
MEMBERS: dict[str, Callable[[str], dict[str, object]]] = {
    **{
        name: lambda text, name=name: {name: text}
        for name in ("id", "method", "jsonrpc", "other")
    },
    **{
        " ".join(names): lambda text, names=names: tool_call(names[0], {names[1]: text})
        for names in ARGUMENTS
    },
    "names of arguments": lambda text: tool_call(
        "search_reviews", dict.fromkeys(text.split("&"), 1)
    ),
}
FIELDS: dict[str, Callable[[str], bytes]] = {
    **{f"GET {path}": partial(in_path, path) for path in PATHS},
    **{name: partial(in_header, name) for name in HEADERS},
    **{f"{name} of MCP": partial(in_header_of_mcp, name) for name in HEADERS_OF_MCP},
    **{name: partial(in_form, name) for name in FORM_FIELDS},
    **{
        f"in a message: {name}": partial(in_message, members_of)
        for name, members_of in MEMBERS.items()
    },
    "body of MCP": lambda text: mcp_post(text.encode()),
}

DOCUMENTS = {
    "a long integer before a string": b'{"a":' + b"1" * 4301 + b' "' + b'\\"' * 30_000,
    "deep arrays": b"[" * BODY_BYTES,
    "deep objects": b'{"a":' * (BODY_BYTES // 5),
    "infinite numbers, deep": b"[" * 60 + b",".join([b"1e999"] * 10_000) + b"]" * 60,
    "half surrogate pairs, deep": b"[" * 60
    + b",".join([b'"\\ud800"'] * 6_000)
    + b"]" * 60,
    "integers of 4,300 digits": b"[" + b",".join([b"9" * 4300] * 15) + b"]",
    "digits after the point": b"[0." + b"1" * 65_000 + b"]",
    "an exponent": b"[1e" + b"9" * 65_000 + b"]",
    "empty arrays": b"[" + b",".join([b"[]"] * 21_000) + b"]",
    "keys": b"{" + b",".join(b'"%d":1' % number for number in range(6_000)) + b"}",
    "escapes": b'{"jsonrpc":"2.0","id":"' + b"\\u0344" * 10_000 + b'","method":"ping"}',
    "a batch": b"["
    + b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * 1500)
    + b"]",
}


# ---- Claims ----


def seconds_of(service: Address, request: bytes) -> float:
    """The processor time of the service for one request with any response, in steps of 0.01 s."""
    before = processor_seconds(service.pid)
    with socket.create_connection(
        ("127.0.0.1", service.port), timeout=60
    ) as connection:
        connection.sendall(request)
        assert connection.recv(65536).startswith(b"HTTP/1.1 ")
        while connection.recv(65536):
            pass
    return processor_seconds(service.pid) - before


@pytest.mark.parametrize("field", FIELDS)
def test_no_shape_of_a_field_takes_long(service: Address, field: str) -> None:
    for text in shapes(BODY_BYTES):
        seconds = seconds_of(service, FIELDS[field](text))
        assert seconds < MAX_SECONDS, (text[:20], len(text))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_json_takes_long(service: Address, document: str) -> None:
    assert seconds_of(service, mcp_post(DOCUMENTS[document])) < MAX_SECONDS
