"""The bridge: one response to a request, one thread for what takes time.

No server: a request is an ASGI scope, and a peer is a function that stays or leaves.

Sections: responses and peers - threads.
"""

import asyncio
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from reviewslib.messages import Response
from reviewslib.process import asgi, work_thread
from reviewslib.process.bridge import Bridge

# ---- Responses and peers ----

Receive = Callable[[], Any]


async def stays() -> dict[str, Any]:
    """A peer that waits for its response."""
    await asyncio.Event().wait()
    return {}


async def leaves() -> dict[str, Any]:
    return {"type": "http.disconnect"}


def seems_to_leave() -> Receive:
    """A peer that stays. After a cancelled wait for its disconnect, Granian says that the peer has left."""
    waits = iter((stays,))
    return lambda: next(waits, leaves)()


def bridge_to(
    make: Callable[[Any], Response], prepared: Response | None = None
) -> Bridge:
    """A bridge to an application that answers with `make`, unless it has a response.

    A refusal is its detail and headers. /store waits for the disk.
    """
    refuse = Mock(
        side_effect=lambda request, status, detail, headers: Response(
            status, headers, detail.encode()
        )
    )
    application: Any = Mock(
        prepared=Mock(return_value=prepared),
        respond=make,
        refuse=refuse,
        waits_for_disk=lambda request: request.path == "/store",
    )
    return Bridge(application, body_seconds=10, response_seconds=60)


async def sent(
    bridge: Bridge, path: str = "/", receive: Receive = stays
) -> list[dict[str, Any]]:
    """The messages of the response to a request of this peer."""
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    scope = {
        "method": "GET",
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": (),
        "http_version": "1",
    }
    await bridge(scope, receive, send)
    return messages


def body_of(messages: list[dict[str, Any]]) -> bytes | None:
    """The body of a response, or None if there was none."""
    return b"".join(message["body"] for message in messages[1:]) if messages else None


LARGE = Response(200, (), [memoryview(b"head"), memoryview(bytes(9_000_000))])


@pytest.mark.parametrize(
    ("prepared", "receive", "least", "most"),
    [
        pytest.param(LARGE, stays, 9_000_004, 9_000_004, id="peer stays"),
        pytest.param(LARGE, leaves, 0, 2_000_000, id="peer leaves"),
        pytest.param(None, seems_to_leave(), 9_000_004, 9_000_004, id="seems to leave"),
    ],
)
def test_a_large_response_is_sent_in_parts_until_the_peer_leaves(
    prepared: Response | None, receive: Receive, least: int, most: int
) -> None:
    bridge = bridge_to(lambda _: LARGE, prepared)

    _, *parts = asyncio.run(sent(bridge, "/", receive))

    sizes = [len(part["body"]) for part in parts]
    assert max(sizes) <= asgi.PART_BYTES
    assert least <= sum(sizes) <= most


# ---- Threads ----


def test_a_fault_in_the_application_ends_its_request_and_no_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes = iter([ZeroDivisionError, ZeroDivisionError, b"fine"])

    def respond(_: Any) -> Response:
        outcome = next(outcomes)
        if isinstance(outcome, bytes):
            return Response(200, (), outcome)
        raise outcome

    bridge = bridge_to(respond)

    async def three_requests() -> list[bytes | None]:
        return [body_of(await sent(bridge)) for _ in range(3)]

    assert asyncio.run(three_requests()) == [None, None, b"fine"]
    assert caplog.messages == ["a response could not be made"] * 2


def test_a_thread_keeps_nothing_of_a_request_that_is_over() -> None:
    class Body(bytearray):
        pass

    references: list[weakref.ref[Body]] = []

    def respond(_: Any) -> Response:
        references.append(weakref.ref(body := Body()))
        return Response(200, (), [memoryview(body)])

    async def forgotten() -> None:
        await sent(bridge_to(respond))
        async with asyncio.timeout(30):
            while references[0]():
                await asyncio.sleep(0)

    asyncio.run(forgotten())


class Crowd:
    """A request that holds the computing thread, and as many as may wait behind it."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.bridge = bridge_to(self.respond)

    def respond(self, request: Any) -> Response:
        self.made.append(request.path)
        if request.path == "/hold":
            self.begun.set()
            self.go_on.wait(30)
        return Response(200, (), request.path.encode())

    async def gather(self, receive: Receive) -> list[asyncio.Task[Any]]:
        """Fill every place; the peers that wait do as `receive`."""
        tasks = [asyncio.create_task(sent(self.bridge, "/hold"))]
        for _ in range(work_thread.MAX_WAITING - 1):
            task = asyncio.create_task(sent(self.bridge, "/waits", receive))
            tasks.append(task)
        await asyncio.to_thread(self.begun.wait, 30)
        return tasks


def test_beyond_a_hundred_requests_the_next_is_told_to_come_again() -> None:
    crowd = Crowd()

    async def one_more() -> list[dict[str, Any]]:
        tasks = await crowd.gather(stays)
        messages = await sent(crowd.bridge, "/one-more")
        crowd.go_on.set()
        await asyncio.gather(*tasks)
        return messages

    start, body = asyncio.run(one_more())
    assert start["status"] == 503
    assert (b"Retry-After", b"5") in start["headers"]
    assert body["body"] == b"Too many requests are waiting."
    assert "/one-more" not in crowd.made


def test_who_waits_for_the_disk_does_not_wait_for_the_processor() -> None:
    crowd = Crowd()

    async def store() -> bytes | None:
        tasks = await crowd.gather(stays)
        messages = await sent(crowd.bridge, "/store")
        crowd.go_on.set()
        await asyncio.gather(*tasks)
        return body_of(messages)

    assert asyncio.run(store()) == b"/store"


def test_what_nobody_waits_for_any_more_is_never_made() -> None:
    crowd = Crowd()

    async def left() -> None:
        hold, *abandoned = await crowd.gather(leaves)
        assert await asyncio.gather(*abandoned) == [[]] * len(abandoned)
        crowd.go_on.set()
        assert body_of(await hold) == b"/hold"
        assert body_of(await sent(crowd.bridge, "/last")) == b"/last"
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(left())
    assert crowd.made == ["/hold", "/last"]


def test_long_fields_of_responses_are_not_kept() -> None:
    # given: redirects that repeat the query of a stranger
    fields = [("Location", f"/reviews?{number}" + "a" * 8000) for number in range(300)]
    tracemalloc.start()

    # when
    for field in fields:
        asgi.encoded_field(field)

    # then
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 1_000_000
