"""An application on the open internet: the listening socket, Granian, and the bridge between the two.

This module knows nothing of reviews: it gets an application, which takes what a WSGI environment says of a
request and returns a reply at once, and what to answer when a request never reaches it. Everything that
touches Granian is here, in `Bridge` and `serve`.

Granian's event loop (Rust, its own thread) speaks HTTP with any number of slow peers at once. Its one Python
thread answers each request as soon as it is complete; bodies are collected before, within a deadline and a
size that WSGI alone could not give them. Only paths whose answers may wait for a disk are answered elsewhere:
on the asyncio loop of the main thread, where they keep nobody waiting. So two threads call the application.

Sections: Listening - Requests - Bodies - Bridge - Service manager - Signals - Serving
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NoReturn

from granian._granian import CallbackScheduler, RSGIWorker, SocketHolder, WorkerSignal
from granian.http import HTTP1Settings

HEAD_SECONDS = 10  # for a request head, and for an idle connection to begin one
BODY_SECONDS = 10
STOP_SECONDS = 10  # for running requests, once told to stop
STALLED_SECONDS = 30  # the kernel ends a connection whose peer has taken nothing for so long
LARGEST_HEAD = 16 * 1024  # bytes
LARGEST_BODY = 64 * 1024  # bytes
SEND_BUFFER_BYTES = 256 * 1024  # of the kernel, for each connection
WAITING_CONNECTIONS = 4096  # that the kernel has accepted and we have not
SPARE_DESCRIPTORS = 64  # for files, logs and the interpreter
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("reviewsd.serving")

Environ = dict[str, Any]
Reply = tuple[int, Iterable[tuple[str, str]], bytes]  # status, headers, body
# WSGI's way back, through a callback and an iterator, would only have to be undone.
Application = Callable[[Environ], Reply]
# What to answer where the application gets no request, given a status and a sentence with the reason.
Refuse = Callable[[Environ, int, str], Reply]


# ---- Listening: bound here and not by Granian, which would share a port in use without a word ----


class CannotListen(OSError):
    """The address cannot be listened on; the text is one line for the operator."""


def listen(host: str, port: int, uds: Path | None) -> socket.socket:
    """A listening socket at `uds` when given, else at `host` and `port`. Raises CannotListen."""
    try:
        listener = _unix_listener(uds) if uds else _tcp_listener(host, port)
        listener.listen(WAITING_CONNECTIONS)
    except OSError as error:
        place = str(uds) if uds else f"{host} port {port}"
        raise CannotListen(f"cannot listen on {place}: {error.strerror or error}") from None
    return listener


def _tcp_listener(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit these: a peer that reads slowly or not at all holds little, and not for long.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_SECONDS * 1000)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind(address)
    return listener


def _unix_listener(path: Path) -> socket.socket:
    """Bound to `path`, after removing a socket there that nobody listens on; anything else makes it fail."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) != 0:
                path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    return listener


# ---- Requests: from Granian's scope to what a WSGI environment (PEP 3333) says of a request ----

SERVER = ("Server", "reviewsd")
UNPREFIXED = ("content-type", "content-length")
NO_BODY = io.BytesIO()  # can be shared: there is nothing in it to be read


@lru_cache(maxsize=256)  # few names come again and again
def header_key(name: str) -> str:
    """The key of a header in a WSGI environment."""
    key = name.upper().replace("-", "_")
    return key if name in UNPREFIXED else "HTTP_" + key


def environ_of(scope: Any) -> Environ:
    """What a WSGI environment says of a request; a header given twice is joined by commas (RFC 9110, 5.3)."""
    environ: Environ = {
        "REQUEST_METHOD": scope.method,
        "PATH_INFO": _wsgi_text(scope.path),
        "QUERY_STRING": _wsgi_text(scope.query_string),
        "SERVER_PROTOCOL": "HTTP/1.1" if scope.http_version == "1.1" else "HTTP/1.0",
        "wsgi.input": NO_BODY,
    }
    for name, value in scope.headers.items():  # asked for once: Granian copies all headers each time
        key = header_key(name)
        environ[key] = f"{environ[key]}, {value}" if key in environ else value
    return environ


def _wsgi_text(text: str) -> str:
    return text if text.isascii() else text.encode().decode("latin-1")


# ---- Bodies: within a deadline and a size ----


class BodyRefused(Exception):
    """A body that is not read to its end; carries what `Refuse` needs."""

    def __init__(self, status: int, detail: str):
        super().__init__(detail)
        self.status = status
        self.detail = detail


def has_body(environ: Environ) -> bool:
    """Whether a body may follow the head (RFC 9112 section 6.3)."""
    return "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ


def declared_bytes(environ: Environ) -> int | None:
    """The length that the head gives to the body; None for one in chunks, whatever else the head says."""
    return None if "HTTP_TRANSFER_ENCODING" in environ else int(environ["CONTENT_LENGTH"])


def is_whole(declared: int | None, received: int, ended: bool) -> bool:
    """Whether so many bytes are all of the body; else more must be waited for.

    Raises BodyRefused: 413 when it is too large, 400 when it ended before it should.
    """
    if max(received, declared or 0) > LARGEST_BODY:
        raise BodyRefused(413, f"The body is larger than {LARGEST_BODY} bytes.")
    if declared is None:
        return ended
    if ended and received < declared:
        raise BodyRefused(400, f"The body ended before its {declared} bytes had come.")
    return received >= declared


# ---- Bridge: how Granian gives us a request ----


class Direct:
    """Stands where Granian expects an event loop, and calls back at once.

    Granian calls back on its Python thread. By way of the asyncio loop, each chunk of a body would wake
    another thread, which costs more than most answers do.
    """

    def call_soon_threadsafe(self, callback: Callable[[Any], None], future: Any, context: Any = None) -> None:
        """What Granian does when something that was waited for has come."""
        callback(future)

    call_soon = call_soon_threadsafe


@dataclass(slots=True)
class Coming:
    """A request whose body is coming."""

    environ: Environ
    protocol: Any
    parts: Any  # of the body, one after the other; the last is empty
    declared: int | None  # bytes
    deadline: float  # by the monotonic clock
    body: bytearray = field(default_factory=bytearray)
    waited_for: Any = None  # Granian's future for the next part of it
    refused: bool = False  # since it was late

    def let_go(self) -> None:
        """Wait no more: Granian sends no answer while somebody waits for the body. Any thread."""
        waited_for, self.waited_for = self.waited_for, None
        if waited_for is not None:
            waited_for.remove_done_callback(None)
            waited_for.cancel()


class Bridge:
    """Between Granian and the application. `loop` runs on the main thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        app: Application,
        refuse: Refuse,
        waiting_paths: frozenset[str],
    ):
        self._loop = loop
        self._app = app
        self._refuse = refuse
        self._waiting_paths = waiting_paths
        # Requests whose bodies are coming, the earliest deadline first, by protocol. Whoever takes one out
        # answers it: Granian's thread when the body is complete, `refuse_late` when it is not.
        self._coming: dict[Any, Coming] = {}

    def scheduler(self) -> Any:
        """What Granian calls for each request, in the form that it wants."""
        make: Any = CallbackScheduler  # Granian's stubs leave out its arguments and its attribute
        scheduler = make(self._loop, None, None, None, None)
        scheduler._schedule_fn = self.take
        return scheduler

    def take(self, watcher: Any) -> None:
        """Answer a request now, or when its body is there. Granian's thread."""
        environ, protocol = environ_of(watcher.scope), watcher.proto
        if not has_body(environ):
            self._answer(environ, protocol)
            return
        deadline = time.monotonic() + BODY_SECONDS
        coming = Coming(environ, protocol, aiter(protocol), declared_bytes(environ), deadline)
        self._coming[protocol] = coming
        self._go_on(coming, ended=False)

    def _go_on(self, coming: Coming, ended: bool) -> None:
        """Answer when the body is there, or cannot be taken; else wait for more of it."""
        try:
            if not is_whole(coming.declared, len(coming.body), ended):
                self._wait(coming)
            elif self._coming.pop(coming.protocol, None):
                self._complete(coming.environ, coming.protocol, coming.body)
        except BodyRefused as refused:
            if self._coming.pop(coming.protocol, None):
                self._send_refusal(coming.environ, coming.protocol, refused)

    def _wait(self, coming: Coming) -> None:
        # Called, and not awaited: a coroutine costs more than what it would make plainer here.
        coming.waited_for = anext(coming.parts)
        coming.waited_for.add_done_callback(partial(self._arrived, coming))
        if coming.refused:  # by the main thread, a moment ago
            coming.let_go()

    def _arrived(self, coming: Coming, part: Any) -> None:
        """Take what was waited for, which is empty at the end."""
        # Granian's future keeps what it calls back, and is no concern of the garbage collector: as long as we
        # keep the future in turn, neither would ever go.
        coming.waited_for = None
        chunk = part.result()
        coming.body += chunk
        self._go_on(coming, ended=not chunk)

    def _complete(self, environ: Environ, protocol: Any, body: bytearray) -> None:
        environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        if environ["PATH_INFO"] in self._waiting_paths:
            self._loop.call_soon_threadsafe(self._answer, environ, protocol)
        else:
            self._answer(environ, protocol)

    async def refuse_late(self) -> None:
        """Refuse each body that is late, until cancelled. The main thread."""
        while True:
            await asyncio.sleep(1)
            self._refuse_those_before(time.monotonic())

    def _refuse_those_before(self, now: float) -> None:
        # In a function that returns: a variable that kept the last of them would keep its connection open.
        for coming in list(self._coming.values()):
            if coming.deadline > now:
                return
            if self._coming.pop(coming.protocol, None):
                coming.refused = True
                coming.let_go()
                late = BodyRefused(408, f"The body did not arrive within {BODY_SECONDS} seconds.")
                self._send_refusal(coming.environ, coming.protocol, late)

    def _answer(self, environ: Environ, protocol: Any) -> None:
        try:
            self._send(protocol, self._app(environ))
        except Exception:  # Granian would lose it, and with it the connection
            log.exception("the server failed to answer %(REQUEST_METHOD)s %(PATH_INFO)r", environ)
            self._send(protocol, self._refuse(environ, 500, "This is our fault."))

    def _send_refusal(self, environ: Environ, protocol: Any, refused: BodyRefused) -> None:
        reply = self._refuse(environ, refused.status, refused.detail)
        self._send(protocol, reply, ("Connection", "close"))

    def _send(self, protocol: Any, reply: Reply, *extra: tuple[str, str]) -> None:
        status, headers, body = reply
        protocol.response_bytes(status, [*headers, SERVER, *extra], body)


# ---- Service manager: what systemd wants to know (sd_notify(3)) ----


def notify(*assignments: str) -> None:
    """Tell the service manager, for example "READY=1"; nothing happens where there is none. Any thread."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket (unix(7))
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto("\n".join(assignments).encode(), address)
    except OSError as error:
        log.warning("the service manager cannot be told: %s", error)


async def keep_watchdog(address: Any) -> None:
    """Tell the watchdog, twice in its interval, that requests are answered; only after one was."""
    interval_seconds = int(os.environ.get("WATCHDOG_USEC") or 0) / 1_000_000
    while interval_seconds:
        try:
            async with asyncio.timeout(interval_seconds / 2):
                await answered(address)
            notify("WATCHDOG=1")
        except (OSError, TimeoutError) as error:
            log.error("the service does not answer itself: %s", error or "too late")
        await asyncio.sleep(interval_seconds / 2)


async def answered(address: Any) -> None:
    """One request to ourselves; returns when a status line is back, raises OSError without one."""
    if isinstance(address, str):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        reader, writer = await asyncio.open_connection(*_reachable(address))
    try:
        writer.write(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        if not (await reader.readline()).startswith(b"HTTP/1.1 "):
            raise ConnectionResetError("no status line")
    finally:
        writer.close()


def _reachable(address: tuple[Any, ...]) -> tuple[str, int]:
    """Where to reach a listener that may be bound to every address."""
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
    return loopback.get(address[0], address[0]), address[1]


# ---- Signals ----


def watch_signals(
    loop: asyncio.AbstractEventLoop, handlers: Mapping[signal.Signals, Callable[[], None]]
) -> None:
    """Call a handler on `loop` for each signal that arrives. Main thread.

    The loop's own way shares one pipe between signals and all that other threads hand over; a crowd fills it,
    and a signal that finds it full is lost. The pipe made here, open to the end, carries signals alone.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def heard() -> None:
        for number in os.read(reader, 64):
            if number in handlers:
                handlers[signal.Signals(number)]()

    loop.add_reader(reader, heard)
    for number in handlers:
        signal.signal(number, lambda number, frame: None)  # without one the number is not written


# ---- Serving ----


def most_connections() -> int:
    """As many as there are descriptors to spare: one more, and accepting would fail in a busy loop."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted) - SPARE_DESCRIPTORS


async def serve(
    app: Application,
    listener: socket.socket,
    refuse: Refuse,
    waiting_paths: frozenset[str],
    ready: Callable[[], None],
    hangup: Callable[[], None],
) -> float:
    """Serve on `listener`, which is taken over, until SIGTERM or SIGINT; then finish running requests.

    Answers at `waiting_paths` may wait for a disk. Returns what is left of STOP_SECONDS in the end, for
    whatever else has to stop.

    Runs on the main thread, and calls there `ready` once it serves and `hangup` at each SIGHUP. The worker is
    Granian's own; its embedded `Server` class would only wrap it.
    """
    logging.getLogger("_granian").setLevel(logging.ERROR)
    loop = asyncio.get_running_loop()
    stop_asked, stopped = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        stop_asked.set()

    watch_signals(loop, dict.fromkeys(STOP_SIGNALS, stop) | {signal.SIGHUP: hangup})
    worker_signal: Any = WorkerSignal()
    worker_signal.add_cb(lambda: loop.call_soon_threadsafe(stopped.set))
    make_holder: Any = SocketHolder  # Granian's stubs leave these constructors out
    make_worker: Any = RSGIWorker
    address = listener.getsockname()
    uds = Path(address) if listener.family == socket.AF_UNIX else None
    worker = make_worker(
        1,
        (None, make_holder(listener.detach(), uds is not None, WAITING_CONNECTIONS)),
        None,
        backpressure=most_connections(),
        http_mode="1",
        http1_opts=HTTP1Settings(header_read_timeout=HEAD_SECONDS * 1000, max_buffer_size=LARGEST_HEAD),
    )
    begin = worker.serve_async_uds if uds else worker.serve_async
    bridge = Bridge(loop, app, refuse, waiting_paths)
    begin(bridge.scheduler(), Direct(), worker_signal)
    watchdog = loop.create_task(keep_watchdog(address))
    deadlines = loop.create_task(bridge.refuse_late())
    ready()
    await stop_asked.wait()
    deadline = loop.time() + STOP_SECONDS
    notify("STOPPING=1")
    watchdog.cancel()
    worker_signal.set()
    if uds:
        uds.unlink(missing_ok=True)
    try:
        await asyncio.wait_for(stopped.wait(), STOP_SECONDS)
    except TimeoutError:
        log.warning("connections still open after %d seconds are cut", STOP_SECONDS)
    deadlines.cancel()
    return max(0.0, deadline - loop.time())


def leave(status: int) -> NoReturn:
    """End the process after `serve`, at once.

    Granian's threads end in their own time; one that meets an interpreter half torn down aborts it.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
