"""The HTTP server: Granian's embedded server, and a bridge from ASGI to the application.

This module knows nothing of reviews. The application takes a Request and returns a Response, or a function
that makes the Response on a worker thread. Everything else runs on the event loop of the main thread. The
proxy in front handles slow peers and overload; here every bound is a constant. The module uses only
documented names of Granian, so that every new release can be installed at once.

Sections: Requests - Worker threads - Bridge - Access log - Serving
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from queue import SimpleQueue
from typing import Any, NamedTuple, NoReturn, Protocol
from urllib.parse import unquote_to_bytes

from reviewslib.process.listening import (
    CannotListen,
    Listener,
    tune_listener,
    wait_until_ready,
)
from reviewslib.process.service_manager import ServiceManager
from reviewslib.web import representations
from reviewslib.web.representations import (
    LARGEST_BODY_BYTES,
    Answer,
    Headers,
    Request,
    Response,
)

# Granian's allocator reads this when it is loaded; without it, freed memory is not given back (jemalloc(3)).
os.environ.setdefault(
    "_RJEM_MALLOC_CONF", "background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0"
)

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_CHUNKS = 1000  # a chunk costs some 50 us; clients send kilobytes in one chunk
WHOLE_BYTES = 64 * 1024  # larger responses are sent in parts
PART_BYTES = 40 * 1024  # Granian holds about seven parts for a peer that reads nothing
PARTS_IN_A_ROW = 16  # of one response, before the event loop serves other peers
WORKER_THREADS = 2
STORE_THREADS = 1
MAX_JOBS = 100  # running and waiting jobs of one group of threads
UNWATCHED_SECONDS = (
    0.2  # the longest time before a job's peer is watched; watching a peer costs 50 us
)
BEFORE_STOP_SECONDS = 2  # for `before_stop`, while the port is still open
STOP_SECONDS = 2.5  # for running requests after that
BACKLOG = 4096  # connections that the kernel has accepted and Granian has not
SERVER_FIELD = (b"server", b"reviewsd")
MAX_LOGGED_PATH_BYTES = 1024  # the journal splits lines of more than 48 KiB

log = logging.getLogger("reviewsd.serving")

Action = Callable[[], None]
Scope = dict[str, Any]  # of ASGI
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class Deadlines(NamedTuple):
    """How many seconds a peer has."""

    head: float = 10  # for a request head, and for an idle connection to begin one
    body: float = 10
    response: float = 60  # for a response that is sent in parts
    silence: float = (
        30  # until the kernel ends a connection whose peer acknowledges nothing
    )


class Application(Protocol):
    """The application that the server calls."""

    def respond(self, request: Request) -> Answer:
        """The answer to a request. Neither this nor a function that it returns raises anything."""

    def refuse(
        self, request: Request, status: int, detail: str, headers: Headers = ()
    ) -> Response:
        """The response to a request that is not passed to `respond`, for the reason `detail`."""


# ---- Requests, as ASGI describes them ----


@dataclass(eq=False)
class Refused(Exception):
    """A request that is not passed to the application; its fields are arguments of `Application.refuse`."""

    status: int
    detail: str
    headers: Headers = (("Connection", "close"),)


class Disconnected(Exception):
    """The peer has closed the connection."""


def request_of(scope: Scope) -> Request:
    """A request without its body; a header given twice is joined by commas (RFC 9110 section 5.3)."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1")
        value = raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    path = unquote_to_bytes(scope["raw_path"]).decode("utf-8", "surrogateescape")
    query_string = scope["query_string"].decode("latin-1")
    return Request(
        scope["method"],
        path,
        query_string,
        headers.get,
        http_version=scope["http_version"],
    )


class Peer:
    """The client that sent a request.

    Only one task waits for the disconnect: Granian may tell a second task that a connected peer has gone.
    """

    def __init__(self, receive: Receive):
        self.receive = receive
        self._disconnect: asyncio.Task[None] | None = None

    def disconnect(self) -> asyncio.Task[None]:
        """A task that is done when the peer has closed the connection. Call it after the body has arrived."""
        self._disconnect = self._disconnect or asyncio.ensure_future(self._wait())
        return self._disconnect

    async def _wait(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    def cancel_at_disconnect(self, future: asyncio.Future[Any]) -> None:
        """Cancel `future` when the peer closes the connection; later calls change nothing."""
        if not self._disconnect:
            self.disconnect().add_done_callback(lambda _: future.cancel())

    def close(self) -> None:
        """Stop waiting for the disconnect."""
        if self._disconnect:
            self._disconnect.cancel()


async def received_body(request: Request, receive: Receive, seconds: float) -> bytes:
    """The body; nothing is read if it is announced as too large. Raises Refused and Disconnected."""
    # Granian accepts a repeated field if its values are equal.
    announced = (request.header("content-length") or "").rpartition(",")[2].strip()
    body = bytearray()
    size = int(announced[:18] or 0)
    has_more = True
    chunk_count = 0
    try:
        async with asyncio.timeout(seconds):
            while (
                has_more
                and size <= LARGEST_BODY_BYTES
                and chunk_count <= MAX_BODY_CHUNKS
            ):
                message = await receive()
                if message["type"] == "http.disconnect" and request.header(
                    "transfer-encoding"
                ):
                    raise Refused(
                        400, "The body is incomplete or its framing is wrong."
                    )
                if message["type"] == "http.disconnect":
                    raise Disconnected
                body += message["body"]
                size = max(size, len(body))
                has_more = message["more_body"]
                if message["body"]:  # the last message may be empty
                    chunk_count += 1
    except TimeoutError:
        raise Refused(
            408, f"The body did not arrive within {seconds:g} seconds."
        ) from None
    if size > LARGEST_BODY_BYTES:
        raise Refused(413, f"The body is larger than {LARGEST_BODY_BYTES} bytes.")
    if chunk_count > MAX_BODY_CHUNKS:
        raise Refused(400, f"The body has more than {MAX_BODY_CHUNKS} chunks.")
    return bytes(body)


# ---- Worker threads: for work that would block the event loop ----


class WorkerThreads:
    """Threads with one bounded queue. `run` is called on the event loop."""

    def __init__(self, count: int):
        self._jobs: dict[asyncio.Future[Response], Peer] = {}  # that run or wait
        self._watch: asyncio.TimerHandle | None = (
            None  # one timer for all jobs is cheaper than one for each
        )
        self._queue: SimpleQueue[
            tuple[Callable[[], Response], asyncio.Future[Response]]
        ] = SimpleQueue()
        self._results: deque[tuple[asyncio.Future[Response], Response | None]] = deque()
        self._loop_is_woken = (
            False  # so that the event loop is woken once for several results
        )
        for _ in range(count):
            threading.Thread(target=self._work, name="worker", daemon=True).start()

    async def run(self, make: Callable[[], Response], peer: Peer) -> Response:
        """The response of `make`, which is not called if the peer disconnects while the request waits.

        Raises Refused if too many jobs run or wait, and Disconnected if the peer disconnects or `make` fails.
        """
        if len(self._jobs) >= MAX_JOBS:
            raise Refused(
                503, "Too many requests are waiting.", (("Retry-After", "5"),)
            )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Response] = loop.create_future()
        self._jobs[future] = peer
        self._queue.put((make, future))
        self._watch = self._watch or loop.call_later(
            UNWATCHED_SECONDS, self._watch_peers, loop
        )
        try:
            return await future
        except asyncio.CancelledError:
            raise Disconnected from None
        finally:
            del self._jobs[future]

    def _watch_peers(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel every job whose peer disconnects. Runs again after a while, as long as there are jobs."""
        for future, peer in self._jobs.items():
            peer.cancel_at_disconnect(future)
        self._watch = (
            loop.call_later(UNWATCHED_SECONDS, self._watch_peers, loop)
            if self._jobs
            else None
        )

    def _work(self) -> None:
        while True:
            self._make(
                *self._queue.get()
            )  # a local variable would keep the last request in memory

    def _make(
        self, make: Callable[[], Response], future: asyncio.Future[Response]
    ) -> None:
        """Make a response if the request still waits for it. Runs on a worker thread."""
        response = None
        try:
            if not future.cancelled():
                response = make()
        except Exception:
            log.exception("a response could not be made")
        self._results.append((future, response))
        if not self._loop_is_woken:
            self._loop_is_woken = True
            future.get_loop().call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """Hand all responses to the requests that wait for them; cancel those whose response failed."""
        self._loop_is_woken = False  # set before the results are taken: a later result wakes the loop again
        while self._results:
            future, response = self._results.popleft()
            if response is None:
                future.cancel()
            elif not future.cancelled():
                future.set_result(response)


# ---- Bridge: ASGI on one side, the application on the other ----


class Bridge:
    """The ASGI application (without lifespan) that Granian calls on the event loop."""

    def __init__(
        self,
        application: Application,
        store_paths: frozenset[str],
        deadlines: Deadlines,
    ):
        """Responses for `store_paths` wait for the disk; they are made on a thread of their own."""
        self._application = application
        self._store_paths = store_paths
        self._deadlines = deadlines
        self._store_thread = WorkerThreads(STORE_THREADS)
        self._worker_threads = WorkerThreads(WORKER_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = request_of(scope)
        peer = Peer(receive)
        try:
            response = await self._response(request, peer)
            await self._send(response, peer, send)
        except Refused as refused:
            response = self._application.refuse(
                request, refused.status, refused.detail, refused.headers
            )
            await self._send(response, peer, send)
        except (Disconnected, TimeoutError):
            return  # before the response is complete, so Granian closes the connection
        finally:
            peer.close()

    async def _response(self, request: Request, peer: Peer) -> Response:
        if request.header("content-length") or request.header(
            "transfer-encoding"
        ):  # RFC 9112 section 6.3
            body = await received_body(request, peer.receive, self._deadlines.body)
            request = request._replace(body=body)
        answer = self._application.respond(request)
        if isinstance(answer, Response):
            return answer
        waits_for_disk = request.path in self._store_paths
        return await (
            self._store_thread if waits_for_disk else self._worker_threads
        ).run(answer, peer)

    async def _send(self, response: Response, peer: Peer, send: Send) -> None:
        headers = [SERVER_FIELD, *map(encoded_field, response.headers)]
        await send(
            {
                "type": "http.response.start",
                "status": response.status,
                "headers": headers,
            }
        )
        if representations.size_of(response.body) > WHOLE_BYTES:
            async with asyncio.timeout(self._deadlines.response):
                await send_parts(response.body, peer, send)
        else:
            whole = representations.joined(response.body)
            await send(
                {"type": "http.response.body", "body": whole, "more_body": False}
            )


@lru_cache(maxsize=256)
def encoded_field(field: tuple[str, str]) -> tuple[bytes, bytes]:
    """The name and the value of a header field as ASGI wants them."""
    name, value = field
    return name.encode("latin-1"), value.encode("latin-1")


async def send_parts(body: representations.Body, peer: Peer, send: Send) -> None:
    """Send a large body in parts.

    Raises Disconnected when the peer has gone; Granian would accept all parts and make other peers wait.
    """
    unsent_bytes = representations.size_of(body)
    for number, part in enumerate(parts_of(body), 1):
        unsent_bytes -= len(part)
        await send(
            {"type": "http.response.body", "body": part, "more_body": unsent_bytes > 0}
        )
        if number % PARTS_IN_A_ROW == 0:
            await asyncio.sleep(0)
            if peer.disconnect().done():
                raise Disconnected


def parts_of(body: representations.Body) -> Iterator[bytes]:
    """The body in copies of at most PART_BYTES."""
    for piece in (body,) if isinstance(body, bytes) else body:
        for start in range(0, len(piece), PART_BYTES):
            yield bytes(piece[start : start + PART_BYTES])


# ---- Access log ----

UNSAFE = re.compile(
    r"[^!-~]|\\"
)  # characters that end a line or a field, or control a terminal
access_log = logging.getLogger("reviewsd.access")


def with_access_log(application: AsgiApp) -> AsgiApp:
    """An ASGI application that logs every request of `application` when the request is over.

    A line has the peer's address ("-" over a Unix socket), method, path, status, sent bytes of the body, and
    milliseconds. The status is 499, as in nginx, if the peer left before there was a response.
    """

    async def logging_application(scope: Scope, receive: Receive, send: Send) -> None:
        began_at = time.perf_counter()
        status = 499
        sent_bytes = 0

        async def counting_send(message: dict[str, Any]) -> None:
            nonlocal status, sent_bytes
            status = message.get("status", status)
            await send(message)
            sent_bytes += len(message.get("body", b""))

        try:
            await application(scope, receive, counting_send)
        finally:
            milliseconds = (time.perf_counter() - began_at) * 1000
            path = scope["raw_path"][:MAX_LOGGED_PATH_BYTES].decode("latin-1")
            path = UNSAFE.sub(lambda match: f"\\x{ord(match[0]):02x}", path)
            line = (
                scope["client"][0] or "-",
                scope["method"],
                path,
                status,
                sent_bytes,
                milliseconds,
            )
            access_log.info("%s %s %s %d %d %.1f", *line)

    access_log.setLevel(logging.INFO)
    return logging_application


# ---- Serving ----

PROBE = Request("HEAD", "/", "", {"host": "localhost"}.get)


class Service(NamedTuple):
    """The application, the listener, and the callbacks of the server.

    `ready` is called after the first response, `hangup` at every SIGHUP. `before_stop` is called on another
    thread while the port is still open; its argument is how many seconds the server waits for its return.
    """

    application: Application
    store_paths: frozenset[str]  # of requests that wait for the disk
    listener: Listener
    max_connections: int
    access_log: bool
    manager: ServiceManager
    ready: Action
    hangup: Action
    before_stop: Callable[[float], None]
    deadlines: Deadlines = Deadlines()


async def serve(service: Service) -> None:
    """Serve until SIGTERM or SIGINT; then finish requests. Only for the main thread.

    Raises CannotListen when the server ends by itself.
    """
    loop = asyncio.get_running_loop()
    stop_asked = asyncio.Event()
    handle_signals(loop, stop_asked.set, service.hangup)
    server, address = embedded_server(service)
    umask = os.umask(0o117)  # gives a Unix socket the mode 0660
    running = loop.create_task(server.serve())
    try:
        await wait_until_ready(address, running)
    finally:
        os.umask(umask)
    tune_listener(address, service.deadlines.silence)
    service.ready()
    ask_in_process = partial(service.application.respond, PROBE)
    watchdog = loop.create_task(service.manager.feed_watchdog(ask_in_process))
    await asyncio.wait(
        (loop.create_task(stop_asked.wait()), running),
        return_when=asyncio.FIRST_COMPLETED,
    )
    watchdog.cancel()
    if running.done():
        raise CannotListen("the server ended unexpectedly")
    service.manager.notify("STOPPING=1")
    ending = loop.run_in_executor(None, service.before_stop, BEFORE_STOP_SECONDS)
    await asyncio.wait((ending,), timeout=BEFORE_STOP_SECONDS)
    server.stop()  # type: ignore[no-untyped-call]
    await asyncio.wait((running,), timeout=STOP_SECONDS)
    if not running.done():
        log.warning(
            "connections that are still open after %g seconds are closed", STOP_SECONDS
        )


def handle_signals(
    loop: asyncio.AbstractEventLoop, stop: Action, hangup: Action
) -> None:
    """Have `loop` call `hangup` at SIGHUP, and `stop` at SIGTERM or SIGINT.

    A second SIGTERM or SIGINT ends the process. A signal wakes the loop through a pipe; without the pipe, its
    handler could wait for the next event. The socket that `add_signal_handler` uses instead of a pipe loses
    signals when other wake-ups have filled it.
    """
    stop_signals = (signal.SIGTERM, signal.SIGINT)

    def stop_once(*_: Any) -> None:
        for number in stop_signals:
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop)

    woken, waking = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    loop.add_reader(woken, os.read, woken, 4096)
    for number in stop_signals:
        signal.signal(number, stop_once)
    signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(hangup))


def embedded_server(service: Service) -> tuple[Server, Any]:
    """Granian's server, and the address at which it will listen."""
    listener = service.listener
    deadlines = service.deadlines
    bridge: AsgiApp = Bridge(service.application, service.store_paths, deadlines)
    address: Any = str(listener)
    where: dict[str, Any] = {"uds": listener}
    if isinstance(listener, socket.socket):
        address = listener.getsockname()
        where = {"address": address[0], "port": address[1]}
        listener.close()
    head_ms = round(deadlines.head * 1000)
    server = Server(
        with_access_log(bridge) if service.access_log else bridge,
        **where,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=service.max_connections,
        http1_settings=HTTP1Settings(
            header_read_timeout=head_ms, max_buffer_size=MAX_HEAD_BYTES
        ),
        log_level=LogLevels.error,
        # Granian's records reach our handlers; without "incremental", dictConfig would close our handlers.
        log_dictconfig={
            "incremental": True,
            "formatters": {},
            "handlers": {},
            "loggers": {},
        },
    )
    return server, address


def exit_at_once(status: int) -> NoReturn:
    """End the process after `serve`, at once.

    Granian's threads outlive `serve`; one that runs while the interpreter shuts down would abort the process.
    """
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(status)
