"""A request is one line of the access log, which no request can forge.

No server: a request is an ASGI scope.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reviewslib.process.access_log import AccessLog
from reviewslib.process.asgi import Message, Receive, Scope, Send

START = {"type": "http.response.start", "status": 200, "headers": []}


def body(part: bytes, has_more: bool = False) -> Message:
    return {"type": "http.response.body", "body": part, "more_body": has_more}


@pytest.fixture(autouse=True)
def level_is_restored() -> Iterator[None]:
    log = logging.getLogger("reviewsd.access")
    before = log.level
    yield
    log.setLevel(before)


Line = Callable[..., str]


@pytest.fixture
def line(caplog: pytest.LogCaptureFixture) -> Line:
    """The line of a request, without the milliseconds."""

    def logged(*messages: Message, **of_scope: Any) -> str:
        asyncio.run(answered(*messages, **of_scope))
        (message,) = caplog.messages
        return message.rpartition(" ")[0]

    return logged


async def answered(*messages: Message, **of_scope: Any) -> None:
    """Answer a request with these messages."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    async def pass_on(message: Message) -> None:
        pass

    async def receive() -> Message:
        return {}

    scope = {"client": ("192.0.2.1", 4711), "method": "GET", "raw_path": b"/a"}
    await AccessLog(application)(scope | of_scope, receive, pass_on)


def test_a_line_has_address_method_path_status_and_bytes(line: Line) -> None:
    assert line(START, body(b"four")) == "192.0.2.1 GET /a 200 4"


def test_the_parts_of_a_response_are_counted_together(line: Line) -> None:
    parts = [body(b"four", has_more=True), body(b"more")]

    assert line(START, *parts) == "192.0.2.1 GET /a 200 8"


def test_a_peer_that_left_before_its_response_is_told_as_nginx_does(line: Line) -> None:
    assert line() == "192.0.2.1 GET /a 499 0"


def test_a_peer_at_a_unix_socket_has_no_address(line: Line) -> None:
    assert line(START, client=("", 0)) == "- GET /a 200 0"


def test_the_query_is_not_logged(line: Line) -> None:
    assert line(START, query_string=b"secret=1") == "192.0.2.1 GET /a 200 0"


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        pytest.param(b"/caf\xc3\xa9", r"/caf\xc3\xa9", id="letter"),
        pytest.param(rb"/\x0a", r"/\x5cx0a", id="what looks escaped"),
        pytest.param(b"/%0a", "/%0a", id="percent"),
        pytest.param(b"/\xc2\x85", r"/\xc2\x85", id="next line"),
        pytest.param(b"/\xe2\x80\xa8", r"/\xe2\x80\xa8", id="line separator"),
        pytest.param(b"/\x1b[2J", r"/\x1b[2J", id="terminal"),
        pytest.param(b"/a b", r"/a\x20b", id="blank"),
    ],
)
def test_a_path_ends_no_line_and_no_field(line: Line, path: bytes, logged: str) -> None:
    assert line(START, raw_path=path) == f"192.0.2.1 GET {logged} 200 0"


def test_a_long_path_is_cut(line: Line) -> None:
    path = b"/" + b"y" * 2000

    cut = path[:1024].decode()
    assert line(START, raw_path=path) == f"192.0.2.1 GET {cut} 200 0"


def test_a_line_ends_with_the_milliseconds_since_the_request_came(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asyncio.run(answered(START))

    milliseconds = caplog.messages[0].rpartition(" ")[2]
    # A minute is more than any machine needs for nothing.
    assert 0 <= float(milliseconds) < 60_000


def test_requests_are_logged_at_any_level_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logging.getLogger("reviewsd.access").setLevel(logging.NOTSET)
    # As `--log-level warning` does.
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.WARNING)

    asyncio.run(answered(START))

    root.setLevel(before)
    assert len(caplog.messages) == 1
