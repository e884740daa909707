"""The HTTP server: Granian's embedded server, and a bridge from ASGI to the application.

Everything here runs on the event loop of the main thread, but for two threads: one
computes responses, one waits for the disk. The proxy in front handles slow peers and
overload; here every bound is a constant. This module knows nothing of reviews, and
uses only documented names of Granian, so that every new release can be installed at
once.

Sections: requests - threads - the bridge - the access log - serving.
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

from reviewslib.messages import (
    LARGEST_BODY_BYTES,
    LONGEST_FIELD,
    Body,
    Headers,
    Request,
    Response,
    joined,
    size_of,
)
from reviewslib.process.listening import (
    CannotListen,
    Listener,
    tune_listener,
    wait_until_ready,
)
from reviewslib.process.service_manager import ServiceManager

# Granian's allocator reads this when it is loaded; without it, freed memory is not
# given back (jemalloc(3)).
os.environ.setdefault(
    "_RJEM_MALLOC_CONF", "background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0"
)

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

# Of a request. Browsers send 2 KB; a search for a long text is the largest.
MAX_HEAD_BYTES = 16 * 1024
# A chunk costs some 50 us; clients send kilobytes in one chunk.
MAX_BODY_CHUNKS = 1000
# Larger responses are sent in parts.
WHOLE_BYTES = 64 * 1024
# Granian holds about seven parts for a peer that reads nothing.
PART_BYTES = 40 * 1024
# Of one response, before the event loop serves other peers.
PARTS_IN_A_ROW = 16
# Requests that run or wait for one thread; the last one waits for seconds at most.
MAX_WAITING = 100
# How long a request waits before its peer is watched: watching costs 50 us, and most
# responses are made sooner.
UNWATCHED_SECONDS = 0.2
# For `before_stop`, while the port is still open; and for running requests after that.
BEFORE_STOP_SECONDS = 2
STOP_SECONDS = 2.5
# Connections that the kernel has accepted and Granian has not.
BACKLOG = 4096
SERVER_FIELD = (b"server", b"reviewsd")
# The journal splits lines of more than 48 KiB.
MAX_LOGGED_PATH_BYTES = 1024
# Different header fields of responses, of which a few dozen are frequent.
KEPT_FIELDS = 256

log = logging.getLogger("reviewsd.serving")

Action = Callable[[], None]
Scope = dict[str, Any]  # of ASGI
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class Deadlines(NamedTuple):
    """How many seconds a peer has."""

    # For a request head, and for an idle connection to begin one.
    head: float = 10
    body: float = 10
    # For a response that is sent in parts.
    response: float = 60
    # Until the kernel ends a connection whose peer acknowledges nothing.
    silence: float = 30


class Application(Protocol):
    """The application that the server calls. No method raises anything."""

    def prepared(self, request: Request) -> Response | None:
        """The response that is at hand; None if `respond` must make it."""

    def respond(self, request: Request) -> Response:
        """The response to a request; it may take its time, so it runs on a thread."""

    def waits_for_disk(self, request: Request) -> bool:
        """Whether `respond` waits for the disk, and not for the processor."""

    def refuse(
        self, request: Request, status: int, detail: str, headers: Headers = ()
    ) -> Response:
        """The response to a request that is not passed on, for the reason `detail`."""


# ---- Requests, as ASGI describes them ----


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
    check_size(announced_bytes(request))
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
        check_size(len(body))
        has_more = message["more_body"]
        if message["body"]:
            # The last message may be empty.
            chunk_count += 1
        if chunk_count > MAX_BODY_CHUNKS:
            raise Refused(400, f"The body has more than {MAX_BODY_CHUNKS} chunks.")
    return bytes(body)


def check_size(body_bytes: int) -> None:
    """Raises Refused for a body that is too large."""
    if body_bytes > LARGEST_BODY_BYTES:
        raise Refused(413, f"The body is larger than {LARGEST_BODY_BYTES} bytes.")


class Peer:
    """The client that sent a request.

    One task alone waits for the disconnect, for the whole request: Granian may tell a
    second one that a connected peer has gone.
    """

    def __init__(self, receive: Receive):
        self.receive = receive
        self._disconnect: asyncio.Task[None] | None = None

    def disconnect(self) -> asyncio.Task[None]:
        """A task that is done when the peer has gone. Call it after the body arrived."""
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


# ---- Threads: for work that would block the event loop ----


class Job(NamedTuple):
    """A response that is to be made, and the future that the request awaits."""

    make: Callable[[], Response]
    # Cancelled when the peer has gone.
    response: asyncio.Future[Response]


class WorkThread:
    """One thread with a bounded queue. `run` is called on the event loop.

    One thread, not two: beside computing threads the event loop waits for the
    interpreter, one switch interval for each of them. And no executor: its own futures,
    and a wake-up of the loop for every response, cost a tenth to a fifth of the rate of
    unseen searches.
    """

    def __init__(self, name: str):
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        # What runs or waits: the queue has no bound.
        self._count = 0
        # None where no response could be made.
        self._made: deque[tuple[Job, Response | None]] = deque()
        # Whether `_deliver` is about to run, for all that is made until then.
        self._loop_is_woken = False
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, make: Callable[[], Response], peer: Peer) -> Response:
        """The response of `make`, which is not called once the peer has gone.

        Raises Refused if too many requests run or wait; Disconnected if the peer goes,
        or `make` raises something.
        """
        if self._count >= MAX_WAITING:
            raise Refused(
                503, "Too many requests are waiting.", (("Retry-After", "5"),)
            )
        loop = asyncio.get_running_loop()
        job = Job(make, loop.create_future())
        watch = loop.call_later(UNWATCHED_SECONDS, peer.cancel_when_gone, job.response)
        self._count += 1
        self._jobs.put(job)
        try:
            return await job.response
        except asyncio.CancelledError:
            raise Disconnected from None
        finally:
            watch.cancel()
            self._count -= 1

    def _work(self) -> None:
        """The thread."""
        while True:
            # A local variable would keep the last request in memory.
            self._perform(self._jobs.get())

    def _perform(self, job: Job) -> None:
        """Make a response, if somebody waits for it. Runs on the thread."""
        if job.response.cancelled():
            return
        response = None
        try:
            response = job.make()
        except Exception:
            log.exception("a response could not be made")
        self._made.append((job, response))
        if not self._loop_is_woken:
            self._loop_is_woken = True
            job.response.get_loop().call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """Hand what was made to the requests that wait for it."""
        # Before the responses are taken: a later one wakes the loop again.
        self._loop_is_woken = False
        while self._made:
            job, response = self._made.popleft()
            if job.response.done():
                continue
            if response is None:
                job.response.cancel()
            else:
                job.response.set_result(response)


# ---- The bridge: ASGI on one side, the application on the other ----


class Bridge:
    """The ASGI application (without lifespan) that Granian calls on the event loop."""

    def __init__(self, application: Application, deadlines: Deadlines):
        self._application = application
        self._deadlines = deadlines
        self._computing = WorkThread("computing")
        self._on_disk = WorkThread("disk")

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
            # The response is not complete, so Granian closes the connection.
            return
        finally:
            peer.close()

    async def _response(self, request: Request, peer: Peer) -> Response:
        if has_body(request):
            body = await received_body(request, peer.receive, self._deadlines.body)
            request = request._replace(body=body)
        response = self._application.prepared(request)
        if response:
            return response
        thread = self._computing
        if self._application.waits_for_disk(request):
            thread = self._on_disk
        return await thread.run(partial(self._application.respond, request), peer)

    async def _send(self, response: Response, peer: Peer, send: Send) -> None:
        headers = [SERVER_FIELD, *map(encoded_field, response.headers)]
        await send(
            {
                "type": "http.response.start",
                "status": response.status,
                "headers": headers,
            }
        )
        if size_of(response.body) > WHOLE_BYTES:
            async with asyncio.timeout(self._deadlines.response):
                await send_parts(response.body, peer, send)
        else:
            await send(body_message(joined(response.body), has_more=False))


def encoded_field(field: tuple[str, str]) -> tuple[bytes, bytes]:
    """The name and the value of a header field as ASGI wants them."""
    # A Location may repeat a query of 16 KB, of which none is kept.
    if len(field[1]) > LONGEST_FIELD:
        return _encoded(field)
    return _kept_encoded(field)


def _encoded(field: tuple[str, str]) -> tuple[bytes, bytes]:
    name, value = field
    return name.encode("latin-1"), value.encode("latin-1")


_kept_encoded = lru_cache(maxsize=KEPT_FIELDS)(_encoded)


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


# ---- The access log ----

# Characters that end a line or a field, or control a terminal.
UNSAFE = re.compile(r"[^!-~]|\\")
access_log = logging.getLogger("reviewsd.access")


def with_access_log(application: AsgiApp) -> AsgiApp:
    """An ASGI application that logs every request of `application` when the request is over.

    A line has the peer's address ("-" over a Unix socket), method, path, status, sent
    bytes of the body, and milliseconds. The status is 499, as in nginx, if the peer
    left before there was a response.
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

    `ready` is called after the first response, `hangup` at every SIGHUP. `before_stop`
    is called on another thread while the port is still open; its argument is how many
    seconds the server waits for its return.
    """

    application: Application
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
    # Gives a Unix socket the mode 0660.
    umask = os.umask(0o117)
    running = loop.create_task(server.serve())
    try:
        await wait_until_ready(address, running)
    finally:
        os.umask(umask)
    tune_listener(address, service.deadlines.silence)
    service.ready()
    # In process, so that a service whose connections are all taken is full, not dead.
    ask_in_process = partial(service.application.prepared, PROBE)
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

    A second SIGTERM or SIGINT ends the process. A signal wakes the loop through a pipe;
    without the pipe, its handler could wait for the next event. The socket that
    `add_signal_handler` uses instead of a pipe loses signals when other wake-ups have
    filled it.
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
    bridge: AsgiApp = Bridge(service.application, deadlines)
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
        # Granian's records reach our handlers; without "incremental", dictConfig would
        # close our handlers.
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

    Granian's threads outlive `serve`; one that runs while the interpreter shuts down
    would abort the process.
    """
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(status)
