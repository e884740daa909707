"""ASGI: requests, bodies, peers and responses as an ASGI server hands them on.

The source is the ASGI specification, version 3.0, HTTP. Everything runs on the event
loop. This module must not know an application, a thread or a certain server, but for
what Granian does in its own way, which is said where it matters.

Sections: requests - peers - responses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

from reviewslib.messages import (
    LARGEST_BODY_BYTES,
    LONGEST_FIELD,
    Body,
    Headers,
    Request,
    size_of,
)

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

# ---- Requests ----

# A chunk costs some 50 us; clients send kilobytes in one chunk.
MAX_BODY_CHUNKS = 1000


@dataclass(eq=False)
class Refused(Exception):
    """A request that is not passed on; its fields are arguments of `refuse`."""

    status: int
    detail: str
    headers: Headers = (("Connection", "close"),)


class Disconnected(Exception):
    """The peer has closed the connection."""


def request_of(scope: Scope) -> Request:
    """A request without its body.

    A field given twice is joined by commas (RFC 9110 section 5.3).
    """
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1")
        value = raw_value.decode("latin-1")
        if name in headers:
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return Request(
        method=scope["method"],
        path=unquote_to_bytes(scope["raw_path"]).decode("utf-8", "surrogateescape"),
        query_string=scope["query_string"].decode("latin-1"),
        header=headers.get,
        http_version=scope["http_version"],
    )


def has_body(request: Request) -> bool:
    """Whether a request announces a body (RFC 9112 section 6.3)."""
    fields = ("content-length", "transfer-encoding")
    return any(request.header(field) for field in fields)


def announced_bytes(request: Request) -> int:
    """The Content-Length; 0 without one."""
    # Granian accepts a repeated field if its values are equal.
    value = (request.header("content-length") or "").rpartition(",")[2].strip()
    # 18 digits are more than any body, and parsed in no time.
    return int(value[:18] or 0)


async def received_body(request: Request, receive: Receive, seconds: float) -> bytes:
    """The body; nothing is read if it is announced as too large.

    Raises Refused and Disconnected.
    """
    check_body_size(announced_bytes(request))
    try:
        async with asyncio.timeout(seconds):
            return await whole_body(request, receive)
    except TimeoutError:
        raise Refused(
            408, f"The body did not arrive within {seconds:g} seconds."
        ) from None


async def whole_body(request: Request, receive: Receive) -> bytes:
    """The body, however long it takes. Raises Refused and Disconnected."""
    body = bytearray()
    chunk_count = 0
    has_more = True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            if request.header("transfer-encoding"):
                raise Refused(400, "The body is incomplete or its framing is wrong.")
            raise Disconnected
        body += message["body"]
        check_body_size(len(body))
        has_more = message["more_body"]
        if message["body"]:
            # The last message may be empty.
            chunk_count += 1
        if chunk_count > MAX_BODY_CHUNKS:
            raise Refused(400, f"The body has more than {MAX_BODY_CHUNKS} chunks.")
    return bytes(body)


def check_body_size(body_bytes: int) -> None:
    """Raises Refused for a body that is too large."""
    if body_bytes > LARGEST_BODY_BYTES:
        raise Refused(413, f"The body is larger than {LARGEST_BODY_BYTES} bytes.")


# ---- Peers ----


class Peer:
    """The client that sent a request.

    One task alone waits for the disconnect, for the whole request: Granian may tell a
    second one that a connected peer has gone.
    """

    def __init__(self, receive: Receive):
        self.receive = receive
        self._disconnect: asyncio.Task[None] | None = None

    def disconnect(self) -> asyncio.Task[None]:
        """A task that is done when the peer has gone. Call it once the body arrived."""
        if not self._disconnect:
            self._disconnect = asyncio.ensure_future(self._wait())
        return self._disconnect

    def cancel_when_gone(self, response: asyncio.Future[Any]) -> None:
        """Cancel `response` as soon as the peer has gone."""
        self.disconnect().add_done_callback(lambda _: response.cancel())

    async def _wait(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    def close(self) -> None:
        """Stop waiting for the disconnect."""
        if self._disconnect:
            self._disconnect.cancel()


# ---- Responses ----

SERVER_FIELD = (b"server", b"reviewsd")
# Larger responses are sent in parts; a smaller one fits into the send buffer of its
# connection.
WHOLE_BYTES = 64 * 1024
# Granian holds about seven parts for a peer that reads nothing.
PART_BYTES = 40 * 1024
# Of one response, before the event loop serves other peers.
PARTS_IN_A_ROW = 16
# Different header fields of responses, of which a few dozen are frequent.
KEPT_ENCODED_FIELDS = 256


def start_message(status: int, headers: Headers) -> Message:
    """The status and the header fields."""
    fields = [SERVER_FIELD, *map(encoded_field, headers)]
    return {"type": "http.response.start", "status": status, "headers": fields}


def encoded_field(field: tuple[str, str]) -> tuple[bytes, bytes]:
    """The name and the value of a header field as ASGI wants them."""
    # A Location may repeat a query of 16 KB, of which none is kept.
    if len(field[1]) > LONGEST_FIELD:
        return _encoded(field)
    return _kept_encoded(field)


def _encoded(field: tuple[str, str]) -> tuple[bytes, bytes]:
    name, value = field
    return name.encode("latin-1"), value.encode("latin-1")


_kept_encoded = lru_cache(maxsize=KEPT_ENCODED_FIELDS)(_encoded)


def body_message(part: bytes, has_more: bool) -> dict[str, Any]:
    """A part of a body as ASGI wants it."""
    return {"type": "http.response.body", "body": part, "more_body": has_more}


async def send_parts(body: Body, peer: Peer, send: Send) -> None:
    """Send a large body in parts.

    Raises Disconnected when the peer has gone: Granian would accept all parts and make
    other peers wait.
    """
    unsent_bytes = size_of(body)
    for number, part in enumerate(parts_of(body), 1):
        unsent_bytes -= len(part)
        await send(body_message(part, has_more=unsent_bytes > 0))
        if number % PARTS_IN_A_ROW == 0:
            await asyncio.sleep(0)
            if peer.disconnect().done():
                raise Disconnected


def parts_of(body: Body) -> Iterator[bytes]:
    """The body in copies of at most PART_BYTES."""
    pieces = [body] if isinstance(body, bytes) else body
    for piece in pieces:
        for start in range(0, len(piece), PART_BYTES):
            yield bytes(piece[start : start + PART_BYTES])
