"""An application on the open internet: Granian's embedded server, and a bridge from ASGI to the application.

This module knows nothing of reviews. The application takes a WSGI environment and returns a Response, or a
Deferred one, which would block the event loop and is made on a worker thread. Requests that wait for the disk
have a worker thread, too; both queues are bounded. Everything else runs on the event loop of the main thread.
Of Granian only documented names are used, so that any release of it can be taken on the day it appears.

Sections: Addresses - Limits - Linux - Requests - Worker threads - Bridge - Access log - Service manager -
Serving
"""

from __future__ import annotations

import asyncio
import errno
import io
import ipaddress
import logging
import os
import re
import resource
import secrets
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from reviewslib.web.representations import (
    LARGEST_BODY_BYTES,
    Answer,
    Body,
    Deferred,
    Environ,
    Headers,
    Response,
    finished,
)

# Granian's allocator reads this when it is loaded; without it, freed memory is not given back (jemalloc(3)).
os.environ.setdefault("_RJEM_MALLOC_CONF", "background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0")

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

HEAD_TIMEOUT_SECONDS = 10  # for a request head, and for an idle connection to begin one
BODY_SECONDS = 10
PART_SECONDS = 30  # for a peer to take one part of a large response
RESPONSE_SECONDS = 300  # for all of it
STALLED_SECONDS = 30  # until the kernel ends a connection whose peer acknowledges nothing
START_SECONDS = 10
BEFORE_STOP_SECONDS = 2  # for what ends while the port is still open
STOP_SECONDS = 2.5  # for running requests after that

MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_CHUNKS = 4000  # each costs some 50 us; clients send kilobytes in one
LARGE_BYTES = 64 * 1024  # larger responses are sent in parts and counted
MAX_LARGE_RESPONSES = 1000
FEW_LARGE_RESPONSES = 16  # up to which parts are large
SMALL_PART_BYTES, LARGE_PART_BYTES = 8 * 1024, 64 * 1024
PARTS_OF_A_BODY = 8  # Granian takes up to six parts that the peer has not; the last must wait, to be counted
BURST_BYTES = 512 * 1024  # of a body that are sent before the event loop serves others
MAX_UNSHARED_BYTES = 64 * 1024 * 1024  # of large bodies that no snapshot holds
MAX_STORE_JOBS = 100  # that wait for the disk
MAX_WORKER_JOBS = 9  # one that runs and eight that wait
BACKLOG = 4096  # connections that the kernel has accepted and Granian has not
MAX_LOGGED_PATH_BYTES = 1024  # the journal splits a line of 48 KiB
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("reviewsd.serving")

Action = Callable[[], None]
Listener = socket.socket | Path  # a bound port, or the path of a Unix socket
Scope = dict[str, Any]  # of ASGI
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
T = TypeVar("T")


class Application(Protocol):
    """What is served."""

    def respond(self, environ: Environ) -> Answer:
        """The answer to a request, a refusal if its head announces too large a body. Raises nothing."""

    def refuse(self, environ: Environ, status: int, detail: str, headers: Headers = ()) -> Response:
        """The response to a request that is not handed over, for the reason `detail`."""


# ---- Addresses: bound here first, since Granian would silently share a port in use ----


class CannotListen(OSError):
    """The address cannot be listened on; the text is one line for the operator."""


def is_wildcard(host: str) -> bool:
    """Whether `host` stands for every address of the machine: 0.0.0.0, ::, 0, or nothing."""
    try:
        found = socket.getaddrinfo(host or None, 0, flags=socket.AI_NUMERICHOST | socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return False
    return ipaddress.ip_address(str(found[0][4][0]).removeprefix("::ffff:")).is_unspecified


def claim_port(host: str, port: int) -> socket.socket:
    """A bound socket, which keeps others off the port until `serve` closes it. Raises CannotListen."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        claim = socket.socket(family, kind, protocol)
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        claim.bind(address)
    except (OSError, UnicodeError) as error:  # a name with an empty or a long label is a UnicodeError
        reason = getattr(error, "strerror", None) or error
        raise CannotListen(f"cannot listen on {host} port {port}: {reason}") from None
    return claim


def remove_stale_socket(path: Path) -> None:
    """Remove a stream socket at `path` that nobody listens on. Raises CannotListen if it cannot be bound."""
    with socket.socket(socket.AF_UNIX) as probe, socket.socket(socket.AF_UNIX) as claim:
        probe.setblocking(False)
        with suppress(OSError):  # nothing there, no stream socket, or one whose queue is full
            if path.is_socket() and probe.connect_ex(str(path)) == errno.ECONNREFUSED:
                path.unlink()
        try:
            claim.bind(str(path))
            path.unlink()
        except OSError as error:
            raise CannotListen(f"cannot listen on {path}: {error.strerror or error}") from None


# ---- Limits: how many connections descriptors and memory allow ----

SPARE_DESCRIPTORS = 64  # for files, logs and the interpreter
MAX_FILES = 65536  # to be open at once
MIN_FILES = SPARE_DESCRIPTORS + 16  # or nobody can be served
CONNECTION_BYTES = 93_000  # measured with 64 KiB that a peer does not take: 84,400 of ours, 8,200 of TCP
RELOAD_FACTOR = 8  # bytes that a reload takes for a moment for each byte of data, measured
LARGE_PARTS_BYTES = FEW_LARGE_RESPONSES * 5 * LARGE_PART_BYTES  # that Granian holds beside all that


class Limits(NamedTuple):
    """How much is served at once."""

    connections: int
    unshared_bytes: int  # of large bodies that no snapshot holds


def descriptor_limit() -> int:
    """As many connections as there are descriptors to spare: one more, and accepting fails in a busy loop.

    Sets the limit of open files accordingly. Raises CannotListen when it is too low to serve anybody.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):  # macOS has a lower limit that it does not tell
        limit = soft
    if limit < MIN_FILES:
        raise CannotListen(f"the limit of {limit} open files is too low: at least {MIN_FILES} are needed")
    return limit - SPARE_DESCRIPTORS


def limits_of(memory_bytes: int, resident_bytes: int, data_bytes: int, descriptors: int) -> Limits:
    """What fits into `memory_bytes` beside this process and a reload of `data_bytes`."""
    unshared_bytes = min(MAX_UNSHARED_BYTES, memory_bytes // 64)
    taken_bytes = resident_bytes + RELOAD_FACTOR * data_bytes + unshared_bytes + LARGE_PARTS_BYTES
    in_memory = max(MIN_FILES - SPARE_DESCRIPTORS, (memory_bytes - taken_bytes) // CONNECTION_BYTES)
    return Limits(min(descriptors, in_memory), unshared_bytes)


# ---- Linux: what other systems do not have, and do without ----

LISTENER_OPTIONS = (  # that accepted connections inherit (socket(7), tcp(7))
    ("SOL_SOCKET", "SO_SNDBUF", 64 * 1024),
    ("SOL_SOCKET", "SO_RCVBUF", 16 * 1024),
    ("IPPROTO_TCP", "TCP_NOTSENT_LOWAT", 4096),  # a peer that reads nothing holds 8 KB of the send buffer
    ("IPPROTO_TCP", "TCP_USER_TIMEOUT", STALLED_SECONDS * 1000),
)
DESCRIPTORS = Path("/proc/self/fd")
STATM = Path("/proc/self/statm")
CONTROL_GROUPS = Path("/proc/self/cgroup")
GROUP_ROOT = Path("/sys/fs/cgroup")


def tune_listener(address: Any) -> None:
    """Bound what a peer that does not read, or that sends more than is read, costs.

    Granian does not offer these options, so they are set on a duplicate of its listening descriptor. Files
    are left alone: a duplicate of the hub's would keep its claim on a store that it has closed.
    """
    descriptors = DESCRIPTORS.iterdir() if DESCRIPTORS.is_dir() else ()
    for descriptor in [int(path.name) for path in descriptors if path.is_socket()]:
        with suppress(OSError), socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as duplicate:
            is_listener = duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if is_listener and duplicate.getsockname() == address:
                for level, option, value in LISTENER_OPTIONS:
                    duplicate.setsockopt(getattr(socket, level), getattr(socket, option), value)


def resident_bytes() -> int:
    """The memory that this process has for itself: what it shares are files, which can be read again."""
    if not STATM.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes on macOS
    _, resident_pages, shared_pages, *_ = map(int, STATM.read_text().split())
    return (resident_pages - shared_pages) * resource.getpagesize()


def memory_limit_bytes() -> int:
    """What the machine has, or less where a control group allows less; version 1 or 2 (cgroups(7))."""
    found = [os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()]
    for line in CONTROL_GROUPS.read_text().splitlines() if CONTROL_GROUPS.exists() else ():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            group, name = GROUP_ROOT / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
        elif not controllers:
            group, name = GROUP_ROOT / path.lstrip("/"), "memory.max"
        else:
            continue
        for directory in (group, *group.parents):
            with suppress(OSError, ValueError):  # no such file, no limit
                found.append(int((directory / name).read_text()))
    return min(found)


# ---- Requests: from an ASGI scope to a WSGI environment (PEP 3333) ----

SERVER_HEADER = (b"server", b"reviewsd")
CLOSE = (("Connection", "close"),)
TRY_AGAIN = (("Retry-After", "5"),)


@dataclass(eq=False)
class Refused(Exception):
    """A request that the application does not get; carries the arguments of `Application.refuse`."""

    status: int
    detail: str
    headers: Headers = ()


class Disconnected(Exception):
    """The peer has closed the connection."""


def environ_of(scope: Scope) -> Environ:
    """The WSGI environment of a request; a header given twice is joined by commas (RFC 9110 section 5.3).

    A name with an underscore is left out: in WSGI it could not be told from one with a hyphen.
    """
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "wsgi.input": io.BytesIO(),
    }
    for name, raw in scope["headers"]:
        if b"_" in name:
            continue
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if name in (b"content-type", b"content-length") else f"HTTP_{key}"
        value = raw.decode("latin-1")
        environ[key] = f"{environ[key]}, {value}" if key in environ else value
    return environ


def exceeds_body_limit(environ: Environ) -> bool:
    """Whether the head announces a larger body than is read."""
    length = environ.get("CONTENT_LENGTH", "").rpartition(",")[2].strip()  # equal ones may be repeated
    return length.isdecimal() and (len(length) > 18 or int(length) > LARGEST_BODY_BYTES)


async def add_body(environ: Environ, receive: Receive) -> None:
    """Collect the body of a request that has one. Raises Refused and Disconnected."""
    body, more, chunks = bytearray(), True, 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more and len(body) <= LARGEST_BODY_BYTES and chunks <= MAX_BODY_CHUNKS:
                message = await receive()
                if message["type"] == "http.disconnect" and "HTTP_TRANSFER_ENCODING" in environ:
                    raise Refused(400, "The body is incomplete or its framing is wrong.", CLOSE)
                if message["type"] == "http.disconnect":
                    raise Disconnected
                body += message["body"]
                more, chunks = message["more_body"], chunks + 1
    except TimeoutError:
        raise Refused(408, f"The body did not arrive within {BODY_SECONDS} seconds.", CLOSE) from None
    if len(body) > LARGEST_BODY_BYTES:
        raise Refused(413, f"The body is larger than {LARGEST_BODY_BYTES} bytes.", CLOSE)
    if more:
        raise Refused(400, f"The body has more than {MAX_BODY_CHUNKS} pieces.", CLOSE)
    environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}


# ---- Worker threads: for what would block the event loop ----


class WorkerThread:
    """One thread with a bounded queue. Its methods are called on the event loop."""

    def __init__(self, name: str, max_jobs: int):
        self._executor = ThreadPoolExecutor(1, name)
        self._max_jobs = max_jobs
        self._jobs = 0

    def is_idle(self) -> bool:
        """Whether a job would run at once."""
        return self._jobs == 0

    async def run(self, job: Callable[[], T], receive: Receive) -> T:
        """What `job` returns; a queued job is cancelled when the peer disconnects.

        Raises Refused when too many jobs wait, and Disconnected.
        """
        if self._jobs >= self._max_jobs:
            raise Refused(503, "Too many requests of this kind are waiting.", TRY_AGAIN)
        self._jobs += 1
        queued = self._executor.submit(job)
        running = asyncio.wrap_future(queued)
        disconnect = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await asyncio.wait((running, disconnect), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            raise Disconnected
        finally:
            self._jobs -= 1
            queued.cancel()  # at once, unlike `running`, which would pass it on later
            disconnect.cancel()


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the peer has closed the connection; the body has been received before."""
    while (await receive())["type"] != "http.disconnect":
        pass


# ---- Bridge: ASGI on one side, the application on the other ----


class Bridge:
    """The ASGI application (without lifespan) that Granian calls on the event loop."""

    def __init__(self, application: Application, store_paths: frozenset[str], max_unshared_bytes: int):
        """Requests to `store_paths` wait for the disk and are answered on a worker thread.

        `max_unshared_bytes` bounds the large bodies that no snapshot holds, while they are being sent.
        """
        self._application = application
        self._store_paths = store_paths
        self._max_unshared_bytes = max_unshared_bytes
        self._store_thread = WorkerThread("store", MAX_STORE_JOBS)
        self._worker_thread = WorkerThread("slow", MAX_WORKER_JOBS)
        self._large_responses = 0  # that are being sent
        self._unshared_bytes = 0  # of their bodies that are not shared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        environ = environ_of(scope)
        # Where this returns before the response is complete, Granian ends the connection.
        with suppress(Disconnected, TimeoutError):
            try:
                await self._send(await self._response(environ, receive), receive, send)
            except Refused as refused:
                refusal = self._application.refuse(environ, refused.status, refused.detail, refused.headers)
                await self._send(refusal, receive, send)

    async def _response(self, environ: Environ, receive: Receive) -> Response:
        respond = partial(self._application.respond, environ)
        has_body = "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ  # RFC 9112 section 6.3
        if has_body and exceeds_body_limit(environ):
            answer = finished(respond(), lambda refusal: refusal._replace(headers=refusal.headers + CLOSE))
        else:
            if has_body:
                await add_body(environ, receive)
            waits_for_disk = environ["PATH_INFO"] in self._store_paths
            answer = await self._store_thread.run(respond, receive) if waits_for_disk else respond()
        if not isinstance(answer, Deferred):
            return answer
        if answer.instead and not self._worker_thread.is_idle():
            return answer.instead
        return await self._worker_thread.run(answer.make, receive)

    async def _send(self, response: Response, receive: Receive, send: Send) -> None:
        unshared_bytes = 0 if response.shared or len(response.body) <= LARGE_BYTES else len(response.body)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        headers.append(SERVER_HEADER)
        head = {"type": "http.response.start", "status": response.status, "headers": headers}
        if len(response.body) <= LARGE_BYTES:
            await send(head)  # Granian holds the body until the peer has taken it
            return await send({"type": "http.response.body", "body": response.body[:], "more_body": False})
        is_full = self._unshared_bytes + unshared_bytes > self._max_unshared_bytes
        if is_full and response.instead:
            return await self._send(response.instead, receive, send)
        if is_full or self._large_responses >= MAX_LARGE_RESPONSES:
            raise Refused(503, "Too many large responses are being sent.", TRY_AGAIN)
        self._large_responses += 1
        self._unshared_bytes += unshared_bytes
        try:
            part_bytes = size_of_parts(len(response.body), self._large_responses)
            await send(head)
            await send_in_parts(response.body, part_bytes, receive, send)
        finally:
            self._large_responses -= 1
            self._unshared_bytes -= unshared_bytes


def size_of_parts(body_bytes: int, large_responses: int) -> int:
    """The bytes of each part of a large body: many small parts bound the memory, few large ones are fast."""
    if large_responses > FEW_LARGE_RESPONSES:
        return SMALL_PART_BYTES
    return max(SMALL_PART_BYTES, min(body_bytes // PARTS_OF_A_BODY, LARGE_PART_BYTES))


async def send_in_parts(body: Body, part_bytes: int, receive: Receive, send: Send) -> None:
    """Send a body in parts, of which Granian holds a few.

    Raises TimeoutError for a peer that stalls, and Disconnected for one that has gone: Granian takes every
    part for it at once, so that others would have to wait for all of them.
    """
    loop = asyncio.get_running_loop()
    began_at = burst_began_at = loop.time()
    disconnect: asyncio.Future[None] | None = None
    try:
        async with asyncio.timeout(PART_SECONDS) as deadline:
            for start in range(0, len(body), part_bytes):
                end = start + part_bytes
                part = {"body": body[start:end], "more_body": end < len(body)}
                await send({"type": "http.response.body", **part})
                if start // BURST_BYTES == end // BURST_BYTES and loop.time() < burst_began_at + 1:
                    continue
                disconnect = disconnect or asyncio.ensure_future(wait_for_disconnect(receive))
                await asyncio.sleep(0)
                if disconnect.done():
                    raise Disconnected
                burst_began_at = loop.time()
                deadline.reschedule(min(burst_began_at + PART_SECONDS, began_at + RESPONSE_SECONDS))
    finally:
        if disconnect:
            disconnect.cancel()


# ---- Access log ----

UNSAFE = re.compile(r"[^!-~]|\\")  # in a log: ends of lines and fields, escape sequences of terminals
PROBE_QUERY = secrets.token_hex().encode()  # by which the access log knows our own requests
access_log = logging.getLogger("reviewsd.access")


class AccessLog:
    """An ASGI application around another: logs each request of others when it is over.

    A line has the peer's address ("-" over a Unix socket), method, path, status, bytes of the body that the
    connection took, and milliseconds. A peer that left before there was a response gets 499, as in nginx.
    """

    def __init__(self, application: AsgiApp):
        self._application = application
        access_log.setLevel(logging.INFO)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["query_string"] == PROBE_QUERY:
            return await self._application(scope, receive, send)
        began_at, status, sent_bytes = time.perf_counter(), 499, 0

        async def counting_send(message: dict[str, Any]) -> None:
            nonlocal status, sent_bytes
            status = message.get("status", status)
            await send(message)
            sent_bytes += len(message.get("body", b""))

        try:
            await self._application(scope, receive, counting_send)
        finally:
            milliseconds = (time.perf_counter() - began_at) * 1000
            path = scope["raw_path"][:MAX_LOGGED_PATH_BYTES].decode("latin-1")
            path = UNSAFE.sub(lambda found: f"\\x{ord(found[0]):02x}", path)
            line = (scope["client"][0] or "-", scope["method"], path, status, sent_bytes, milliseconds)
            access_log.info("%s %s %s %d %d %.1f", *line)


# ---- Service manager: what systemd wants to know (sd_notify(3)) ----


def notify(*assignments: str) -> None:
    """Tell the service manager, for example "READY=1"; nothing happens where there is none. Any thread."""
    if not (address := os.environ.get("NOTIFY_SOCKET", "")):
        return
    if address.startswith("@"):  # an abstract socket (unix(7))
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto("\n".join(assignments).encode(), address)
    except OSError as error:
        log.warning("the service manager cannot be told: %s", error)


async def feed_watchdog(address: Any) -> None:
    """Notify the watchdog twice in its interval, each time after an answered request."""
    interval_seconds = int(os.environ.get("WATCHDOG_USEC") or 0) / 1_000_000
    while interval_seconds:
        try:
            async with asyncio.timeout(interval_seconds / 2):
                await probe(address)
            notify("WATCHDOG=1")
        except (OSError, TimeoutError) as error:
            log.error("the service does not answer itself: %s", error or "too late")
        await asyncio.sleep(interval_seconds / 2)


async def probe(address: Any) -> None:
    """Send one request to ourselves and wait for its status line. Raises OSError without one."""
    if isinstance(address, str):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
        reader, writer = await asyncio.open_connection(loopback.get(address[0], address[0]), address[1])
    with closing(writer):
        writer.write(b"HEAD /?" + PROBE_QUERY + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        if not (await reader.readline()).startswith(b"HTTP/1.1 "):
            raise ConnectionResetError("no status line")


# ---- Serving ----


async def serve(
    bridge: AsgiApp,
    listener: Listener,
    connections: int,
    ready: Action,
    hangup: Action,
    before_stop: Callable[[float], None],
) -> None:
    """Serve so many connections at once at `listener` until SIGTERM or SIGINT; then finish requests.

    Calls `ready` after one answered request, `hangup` at each SIGHUP, and `before_stop` on another thread
    while the port is still open, with the seconds for which it is waited for. Main thread. Raises
    CannotListen when the server ends unasked.
    """
    loop, stop_asked = asyncio.get_running_loop(), asyncio.Event()
    handle_signals(loop, stop_asked.set, hangup)
    server, address = embedded_server(bridge, listener, connections)
    umask = os.umask(0o117)  # of a Unix socket
    running = loop.create_task(server.serve())
    try:
        await wait_until_ready(address, running)
    finally:
        os.umask(umask)
    tune_listener(address)
    ready()
    watchdog = loop.create_task(feed_watchdog(address))
    await asyncio.wait((loop.create_task(stop_asked.wait()), running), return_when=asyncio.FIRST_COMPLETED)
    watchdog.cancel()
    if running.done():
        raise CannotListen("the server ended unexpectedly")
    notify("STOPPING=1")
    ending = loop.run_in_executor(None, before_stop, BEFORE_STOP_SECONDS)
    await asyncio.wait((ending,), timeout=BEFORE_STOP_SECONDS)
    server.stop()  # type: ignore[no-untyped-call]
    await asyncio.wait((running,), timeout=STOP_SECONDS)
    if not running.done():
        log.warning("connections still open after %g seconds are cut", STOP_SECONDS)


def handle_signals(loop: asyncio.AbstractEventLoop, stop: Action, hangup: Action) -> None:
    """Have `loop` call `hangup` at SIGHUP, and `stop` at SIGTERM or SIGINT; a second one ends the process.

    Each signal wakes the loop, or its handler could wait for the next event. The loop's own socket for that
    (`add_signal_handler`) loses signals when a crowd has filled it.
    """

    def stop_once(*_: Any) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop)

    woken, waking = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    loop.add_reader(woken, os.read, woken, 4096)
    for number in STOP_SIGNALS:
        signal.signal(number, stop_once)
    signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(hangup))


def embedded_server(bridge: AsgiApp, listener: Listener, connections: int) -> tuple[Server, Any]:
    """Granian's server for `listener`, and the address at which it will listen."""
    address: Any = str(listener)
    where: dict[str, Any] = {"uds": listener}
    if isinstance(listener, socket.socket):
        address = listener.getsockname()
        where = {"address": address[0], "port": address[1]}
        listener.close()
    heads = HTTP1Settings(header_read_timeout=HEAD_TIMEOUT_SECONDS * 1000, max_buffer_size=MAX_HEAD_BYTES)
    server = Server(
        bridge,
        **where,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=connections,
        http1_settings=heads,
        log_level=LogLevels.error,
        # Our handlers get them; without "incremental", dictConfig would forget those at the end.
        log_dictconfig={"incremental": True, "formatters": {}, "handlers": {}, "loggers": {}},
    )
    return server, address


async def wait_until_ready(address: Any, running: asyncio.Task[None]) -> None:
    """Return after the first answered request. Raises CannotListen when there is none."""
    deadline = asyncio.get_running_loop().time() + START_SECONDS
    while not running.done() and asyncio.get_running_loop().time() < deadline:
        with suppress(OSError):
            return await probe(address)
        await asyncio.sleep(0.01)
    reason = str(running.exception()) if running.done() else "no request is answered"
    raise CannotListen(f"cannot listen on {address}: {reason.splitlines()[0]}")  # a backtrace may follow


def exit_at_once(status: int) -> NoReturn:
    """End the process after `serve`, at once.

    Granian's threads end in their own time; one that meets an interpreter half torn down aborts it.
    """
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(status)
