"""Each request gets one response, what takes time has one thread, and who has left costs nothing.

No server: a request is an ASGI scope, and a peer is a function that stays or leaves.

Sections: peers - applications - responses - threads - a crowd.
"""

import asyncio
import threading
import tracemalloc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reviewslib.messages import Headers, Request, Response, joined
from reviewslib.process import asgi
from reviewslib.process.bridge import Bridge

# ---- Peers ----

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]


async def stays() -> Message:
    """A peer that waits for its response."""
    await asyncio.Event().wait()
    return {}


async def leaves() -> Message:
    return {"type": "http.disconnect"}


class SeemsToLeave:
    """A peer that stays.

    After a cancelled wait for its disconnect, Granian says that the peer has left.
    """

    def __init__(self) -> None:
        self._was_asked = False

    async def __call__(self) -> Message:
        if self._was_asked:
            return await leaves()
        self._was_asked = True
        return await stays()


# ---- Applications ----

Make = Callable[[Request], Response]


class Stub:
    """An application that answers with a function, unless it has a response.

    A refusal is its detail and headers. /store waits for the disk.
    """

    def __init__(self, make: Make, at_hand: Response | None = None):
        self._at_hand = at_hand
        self.respond = make

    def prepared(self, request: Request) -> Response | None:
        return self._at_hand

    def waits_for_disk(self, request: Request) -> bool:
        return request.path == "/store"

    def refuse(
        self, request: Request, status: int, detail: str, headers: Headers = ()
    ) -> Response:
        return Response(status, headers, detail.encode())


def bridge_to(make: Make, at_hand: Response | None = None) -> Bridge:
    return Bridge(Stub(make, at_hand), body_seconds=10, response_seconds=60)


async def sent(
    bridge: Bridge, path: str = "/", receive: Receive = stays
) -> list[Message]:
    """The messages of the response to a request of this peer."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
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


def body_of(messages: list[Message]) -> bytes | None:
    """The body of a response, or None if there was none."""
    if not messages:
        return None
    _, *parts = messages
    return b"".join(part["body"] for part in parts)


# ---- Responses ----

LARGE = Response(200, (), [memoryview(b"head"), memoryview(bytes(9_000_000))])


def large(request: Request) -> Response:
    return LARGE


@pytest.mark.parametrize(
    ("at_hand", "receive"),
    [
        pytest.param(LARGE, stays, id="at hand"),
        pytest.param(None, SeemsToLeave(), id="made while the peer was watched"),
    ],
)
def test_a_large_response_is_sent_whole(
    at_hand: Response | None, receive: Receive
) -> None:
    bridge = bridge_to(large, at_hand)

    messages = asyncio.run(sent(bridge, receive=receive))

    assert body_of(messages) == joined(LARGE.body)


def body_of_size(size: int) -> Response:
    return Response(200, (), bytes(size))


@pytest.mark.parametrize(
    ("size", "number"),
    [
        pytest.param(0, 1, id="nothing"),
        pytest.param(64 * 1024, 1, id="64 KiB"),
        pytest.param(64 * 1024 + 1, 2, id="more"),
    ],
)
def test_up_to_64_kib_are_sent_at_once(size: int, number: int) -> None:
    bridge = bridge_to(large, body_of_size(size))

    _, *parts = asyncio.run(sent(bridge))

    assert len(parts) == number


def test_a_large_response_is_sent_in_parts() -> None:
    bridge = bridge_to(large, LARGE)

    _, *parts = asyncio.run(sent(bridge))

    sizes = [len(part["body"]) for part in parts]
    assert max(sizes) <= asgi.PART_BYTES


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(Response(200, (), b"small"), id="small"),
        pytest.param(LARGE, id="large"),
    ],
)
def test_only_the_last_part_says_that_no_more_comes(response: Response) -> None:
    bridge = bridge_to(large, response)

    _, *parts, last = asyncio.run(sent(bridge))

    assert last["more_body"] is False
    assert [part for part in parts if not part["more_body"]] == []


def test_no_more_is_sent_to_a_peer_that_has_left() -> None:
    bridge = bridge_to(large, LARGE)

    messages = asyncio.run(sent(bridge, receive=leaves))

    body = body_of(messages)
    assert body is not None
    assert len(body) < 2_000_000


def test_long_fields_of_responses_are_not_kept() -> None:
    # Redirects repeat the query of a stranger.
    fields = [("Location", f"/reviews?{number}" + "a" * 8000) for number in range(300)]
    tracemalloc.start()

    for field in fields:
        asgi.encoded_field(field)

    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 1_000_000


# ---- Threads ----


def fails(request: Request) -> Response:
    if request.path == "/fault":
        raise ZeroDivisionError
    return Response(200, (), b"fine")


def test_a_fault_in_the_application_ends_its_request_and_no_thread() -> None:
    bridge = bridge_to(fails)

    async def requests() -> list[bytes | None]:
        paths = ("/fault", "/fault", "/")
        return [body_of(await sent(bridge, path)) for path in paths]

    assert asyncio.run(requests()) == [None, None, b"fine"]


def test_a_fault_in_the_application_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(sent(bridge_to(fails), "/fault"))

    assert caplog.messages == ["a response could not be made"]


def test_a_thread_keeps_nothing_of_a_request_that_is_over() -> None:
    class Body(bytearray):
        """Bytes that can be referred to weakly."""

    references: list[weakref.ref[Body]] = []

    def respond(request: Request) -> Response:
        body = Body()
        references.append(weakref.ref(body))
        return Response(200, (), [memoryview(body)])

    async def forgotten() -> None:
        await sent(bridge_to(respond))
        async with asyncio.timeout(30):
            while references[0]():
                await asyncio.sleep(0)

    asyncio.run(forgotten())


# ---- A crowd ----


# The requests that run or wait.
PLACES = 100


class Crowd:
    """A request that holds the computing thread, and as many as may wait behind it."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.bridge = bridge_to(self.respond)

    def respond(self, request: Request) -> Response:
        self.made.append(request.path)
        if request.path == "/hold":
            self.begun.set()
            self.go_on.wait(30)
        return Response(200, (), request.path.encode())

    async def gather(self, receive: Receive) -> list[asyncio.Task[Any]]:
        """Fill every place; the peers that wait do as `receive`."""
        tasks = [asyncio.create_task(sent(self.bridge, "/hold"))]
        for _ in range(PLACES - 1):
            task = asyncio.create_task(sent(self.bridge, "/waits", receive))
            tasks.append(task)
        await asyncio.to_thread(self.begun.wait, 30)
        return tasks

    async def beside(self, path: str) -> list[Message]:
        """The response to one more request, while every place is taken."""
        tasks = await self.gather(stays)
        messages = await sent(self.bridge, path)
        self.go_on.set()
        await asyncio.gather(*tasks)
        return messages


def test_the_hundredth_request_gets_its_response() -> None:
    crowd = Crowd()

    async def responses() -> list[list[Message]]:
        tasks = await crowd.gather(stays)
        crowd.go_on.set()
        return list(await asyncio.gather(*tasks))

    *_, last = asyncio.run(responses())
    assert body_of(last) == b"/waits"


def test_beyond_a_hundred_requests_the_next_is_told_to_come_again() -> None:
    crowd = Crowd()

    start, body = asyncio.run(crowd.beside("/one-more"))

    assert start["status"] == 503
    assert (b"Retry-After", b"5") in start["headers"]
    assert body["body"] == b"Too many requests are waiting."


def test_who_is_told_to_come_again_costs_no_computing() -> None:
    crowd = Crowd()

    asyncio.run(crowd.beside("/one-more"))

    assert "/one-more" not in crowd.made


def test_who_waits_for_the_disk_does_not_wait_for_the_processor() -> None:
    crowd = Crowd()

    messages = asyncio.run(crowd.beside("/store"))

    assert body_of(messages) == b"/store"


class Abandoned(Crowd):
    """Only the request that holds the thread is still waited for, and a last one."""

    async def run(self) -> list[bytes | None]:
        """The bodies of all responses, in the order of the requests."""
        tasks = await self.gather(leaves)
        hold, *left = tasks
        answers = await asyncio.gather(*left)
        self.go_on.set()
        answers = [await hold, *answers, await sent(self.bridge, "/last")]
        return [body_of(messages) for messages in answers]


def test_what_nobody_waits_for_any_more_is_never_made() -> None:
    crowd = Abandoned()

    asyncio.run(crowd.run())

    assert crowd.made == ["/hold", "/last"]


def test_who_has_left_is_sent_nothing() -> None:
    crowd = Abandoned()

    bodies = asyncio.run(crowd.run())

    first, *left, last = bodies
    assert first == b"/hold"
    assert left == [None] * (PLACES - 1)
    assert last == b"/last"


def test_no_task_stays_behind_a_request() -> None:
    async def number_of_tasks() -> int:
        await Abandoned().run()
        # A task that is cancelled ends in the next round.
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(number_of_tasks()) == 1
