"""What a stranger may send, up to 64 KiB, and reviews that are dear to search.

Every field of a request is filled with every shape. Tests count the steps that such a
request takes; `bench/` measures how long it keeps others waiting.

Sections: reviews - shapes - requests - fields - documents.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from lab.small_files import a_file, review
from reviewslib import links
from reviewslib.mcp_tools import TOOLS

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
# Heads above 16 KiB are refused by the server.
HEAD_BYTES = 15 * 1024
FORM_BYTES = 16 * 1024
# A body has 64 KiB at most; the rest is for the JSON around a text.
BODY_BYTES = 64 * 1024 - 512

# ---- Reviews: what customers wrote, twenty reviews for a text ----

# Characters of the longest review that Google accepts.
LONGEST_TEXT = 4096
REPEATED = [
    "a",
    " ",
    "ж",
    "İ",
    "\u0344",
    "\u1112",
    "\u202e",
    "\u1112\u1161\u11ab",
    "e\u0301",
    "a\u0301\u0327",
    "<>&'\"",
    "ab",
]
# Searched words that nearly occur.
NEAR_MISSES = ["ж" * 4000 + "ß", "a" * 2400, "a" * 1249 + "b" + "a" * 1250]
NAMES = ["A" * 200, "a. " * 60, "\u0344" * 100, ".," * 100]
COPIES = 20


def hostile_file() -> Any:
    """A reviews file of some 300 reviews."""
    texts = [unit * (LONGEST_TEXT // len(unit)) for unit in REPEATED]
    texts += NEAR_MISSES
    reviews = []
    for number, text in enumerate(texts):
        for copy in range(COPIES):
            made = review(
                id=f"{number}-{copy}",
                text=text,
                mentioned_technicians=NAMES,
                mentioned_services=NAMES,
            )
            reviews.append(made)
    return a_file(*reviews)


# ---- Shapes: what is repeated until a field is full ----

UNITS = list(" ,;=&%/.-:[90\"\\\t+*'<aéßİж😀\u0344\u0301\u1112\ufb03")
UNITS += ["a ", "a,", "a;", ";q=", "a;q=0.1,", "a=b&", "[:", "1.", '",', 'W/"']
UNITS += ["=?", "=?base64?", "Mon, ", "%41"]
UNITS += ["e\u0301", "a\u0327\u0301", "\u1112\u1161\u11ab"]


def shapes(size: int = BODY_BYTES) -> Iterator[str]:
    """Texts of at most `size` bytes."""
    for unit in UNITS:
        yield cut(unit * size, size)
        # Parsers of fields strip nothing from such ends.
        yield cut("a/" + unit * size, HEAD_BYTES - 1) + "a"
    yield "9" * (size - 1) + "x"
    # A searched word among equal letters.
    yield "a" * 600 + "b" + "a" * 600
    for name in ("p", "mentions_technicia"):
        yield cut("".join(f"{name}{number}=x&" for number in range(size)), size)
    # Marks in no order.
    marks = [chr(0x300 + number % 0x50) for number in range(size)]
    yield cut("".join(marks), size)


def cut(text: str, size: int) -> str:
    """The beginning of a text, of at most so many bytes."""
    return text.encode()[:size].decode(errors="ignore")


# ---- Requests ----


@dataclass(frozen=True, slots=True)
class HostileRequest:
    """A request; texts of its fields are sent as UTF-8."""

    method: str
    path: str
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def raw(self) -> bytes:
        """The bytes of the only request on a connection."""
        framing = {
            "Host": "a",
            "Connection": "close",
            "Content-Length": str(len(self.body)),
        }
        lines = [f"{self.method} {self.path} HTTP/1.1"]
        for name, text in (framing | self.fields).items():
            lines.append(f"{name}: {text}")
        head = "\r\n".join([*lines, "", ""])
        return head.encode() + self.body

    def arguments(self) -> dict[str, Any]:
        """The arguments of `services.call`, which takes a character for each byte."""
        fields = {
            name.lower().replace("-", "_"): text.encode().decode("latin-1")
            for name, text in self.fields.items()
        }
        named = {"path": self.path, "method": self.method, "body": self.body}
        return fields | named


def mcp_post(body: bytes, **fields: str) -> HostileRequest:
    typed = {"Content-Type": JSON} | fields
    return HostileRequest("POST", links.MCP_PATH, typed, body)


# ---- Fields: by name a function from a text to a request that has it in the field ----

HostileField = Callable[[str], HostileRequest]
USUAL: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def tool_call(tool: str, arguments: object) -> dict[str, object]:
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def in_path(path: str, text: str) -> HostileRequest:
    return HostileRequest("GET", path + quote(text, safe="&=")[:HEAD_BYTES])


def in_header(name: str, text: str) -> HostileRequest:
    return HostileRequest("GET", "/", {name: cut(text, HEAD_BYTES)})


def in_header_of_mcp(name: str, text: str) -> HostileRequest:
    usual = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
    fields = usual | {name: cut(text, HEAD_BYTES)}
    body = json.dumps(USUAL | tool_call("x", {})).encode()
    return mcp_post(body, **fields)


USUAL_FORM = {
    "hub.mode": "subscribe",
    "hub.topic": "http://a/feed.xml",
    "hub.callback": "https://a.example/",
}


def in_form(name: str, text: str) -> HostileRequest:
    pairs = []
    for key, value in (USUAL_FORM | {name: text}).items():
        pairs.append(f"{key}={quote(value, safe='&=')}")
    body = "&".join(pairs).encode()[:FORM_BYTES]
    return HostileRequest("POST", links.HUB_PATH, {"Content-Type": FORM}, body)


def in_message(members: Mapping[str, object]) -> HostileRequest:
    return mcp_post(json.dumps(USUAL | members, ensure_ascii=False).encode())


def in_member(name: str, text: str) -> HostileRequest:
    return in_message({name: fitting(text)})


def in_argument(tool: str, argument: str, text: str) -> HostileRequest:
    return in_message(tool_call(tool, {argument: fitting(text)}))


def in_names_of_arguments(text: str) -> HostileRequest:
    names = fitting(text).split("&")
    return in_message(tool_call("search_reviews", dict.fromkeys(names, 1)))


def in_body_of_mcp(text: str) -> HostileRequest:
    return mcp_post(text.encode())


def fitting(text: str) -> str:
    """A text cut to fit into a message: in JSON some characters take two bytes."""
    return cut(text, BODY_BYTES // 2)


PARAMETERS = ["query", "rating", "min_rating", "since", "source", "offset"]
MENTIONS = ["mentions_technician", "mentions_service"]
SEARCHED = [*PARAMETERS, *MENTIONS]
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
    "Mcp-Session-Id",
    "Mcp-Method",
    "Mcp-Name",
]
FORM_FIELDS = [*USUAL_FORM, "hub.secret", "hub.lease_seconds", "other"]
MEMBERS = ["id", "method", "jsonrpc", "other"]


def paths() -> Iterator[str]:
    """Beginnings of paths that a text may follow."""
    yield "/"
    yield links.SINCE_PATH
    yield links.REVIEW_PATH
    yield f"{links.REVIEW_LIST_PATH}?"
    yield f"{links.SEARCH_PATH}?"
    for name in SEARCHED:
        yield f"{links.SEARCH_PATH}?{name}="
    for name in [*SEARCHED, "page"]:
        yield f"{links.REVIEW_LIST_PATH}?{name}="
    for name in ["limit", "theme", *MENTIONS]:
        yield f"{links.EMBED_PATH}?{name}="


def arguments() -> Iterator[tuple[str, str]]:
    """Every argument of every tool."""
    for tool in TOOLS.values():
        for parameter in tool.parameters:
            yield tool.name, parameter.name
    for name in SEARCHED:
        yield "search_reviews", name


def _fields() -> Iterator[tuple[str, HostileField]]:
    for path in paths():
        yield f"GET {path}", partial(in_path, path)
    for name in HEADERS:
        yield name, partial(in_header, name)
    for name in HEADERS_OF_MCP:
        yield f"{name} of MCP", partial(in_header_of_mcp, name)
    for name in FORM_FIELDS:
        yield name, partial(in_form, name)
    for name in MEMBERS:
        yield f"member {name}", partial(in_member, name)
    for tool, argument in arguments():
        yield f"{tool} {argument}", partial(in_argument, tool, argument)
    yield "names of arguments", in_names_of_arguments
    yield "body of MCP", in_body_of_mcp


FIELDS: dict[str, HostileField] = dict(_fields())

# ---- Documents: bodies of MCP that are dear to decode ----

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def nested(depth: int, inner: bytes) -> bytes:
    """A JSON value in so many arrays."""
    return b"[" * depth + inner + b"]" * depth


def array(item: bytes, number: int) -> bytes:
    """The same JSON values, without the brackets."""
    return b",".join([item] * number)


def members(number: int) -> bytes:
    """A JSON object of so many keys."""
    pairs = [b'"%d":1' % key for key in range(number)]
    return b"{" + b",".join(pairs) + b"}"


DOCUMENTS = {
    "a long integer before a string": b'{"a":' + b"1" * 4301 + b' "' + b'\\"' * 30_000,
    "deep arrays": b"[" * BODY_BYTES,
    "deep objects": b'{"a":' * (BODY_BYTES // 5),
    "infinite numbers, deep": nested(60, array(b"1e999", 10_000)),
    "half surrogate pairs, deep": nested(60, array(b'"\\ud800"', 6_000)),
    "integers of 4,300 digits": nested(1, array(b"9" * 4300, 15)),
    "digits after the point": nested(1, b"0." + b"1" * 65_000),
    "an exponent": nested(1, b"1e" + b"9" * 65_000),
    "empty arrays": nested(1, array(b"[]", 21_000)),
    "keys": members(6_000),
    "escapes": b'{"jsonrpc":"2.0","id":"' + b"\\u0344" * 10_000 + b'","method":"ping"}',
    "a batch": nested(1, array(PING, 1500)),
}


def hostile_requests() -> Iterator[HostileRequest]:
    """Every shape in every field, and every document."""
    for in_field in FIELDS.values():
        yield from map(in_field, shapes())
    yield from map(mcp_post, DOCUMENTS.values())
