"""Operating-system resources of connections: address, file descriptors, socket options.

This module must not know a server. It sends a request to the service, whose response
shows that it is ready. Errors are CannotListen with a one-line message.

Sections: addresses - file descriptors - socket options - readiness.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

# A bound port, or the path of a Unix socket.
Listener = socket.socket | Path


class CannotListen(OSError):
    """The service cannot listen on its address; the text is a line for the operator."""


# ---- Addresses ----


def is_wildcard(host: str) -> bool:
    """Whether `host` means all addresses of the machine: 0.0.0.0, ::, 0 or nothing."""
    flags = socket.AI_NUMERICHOST | socket.AI_PASSIVE
    try:
        addresses = socket.getaddrinfo(host or None, 0, flags=flags)
    except (OSError, UnicodeError):
        return False
    address = str(addresses[0][4][0])
    # An IPv4 address may be written as one of IPv6 (RFC 4291 section 2.5.5.2).
    return ipaddress.ip_address(address.removeprefix("::ffff:")).is_unspecified


def claim_port(host: str, port: int) -> socket.socket:
    """A bound socket, which reserves the port until `serve` closes it.

    Granian shares a port that is in use without a word; this socket cannot be bound
    then. Raises CannotListen.
    """
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = addresses[0]
        claim = socket.socket(family, kind, protocol)
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        claim.bind(address)
    except UnicodeError as error:
        # A label of the name is empty or too long.
        raise _cannot_listen(f"{host} port {port}", error) from None
    except OSError as error:
        raise _cannot_listen(f"{host} port {port}", error.strerror or error) from None
    return claim


def claim_path(path: Path) -> Path:
    """`path`, if a Unix socket can be bound to it. Raises CannotListen.

    A socket that no process listens on is removed: a killed service left it.
    """
    with suppress(OSError):
        # If the path is too long, for example, `bind` says so.
        if _is_stale_socket(path):
            path.unlink()
    with socket.socket(socket.AF_UNIX) as claim:
        try:
            claim.bind(str(path))
            path.unlink()
        except OSError as error:
            raise _cannot_listen(str(path), error.strerror or error) from None
    return path


def _is_stale_socket(path: Path) -> bool:
    """Whether a stream socket stands there that refuses connections."""
    if not path.is_socket():
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        # A service whose backlog is full would let a blocking probe wait.
        probe.setblocking(False)
        return probe.connect_ex(str(path)) == errno.ECONNREFUSED


def _cannot_listen(where: str, reason: object) -> CannotListen:
    return CannotListen(f"cannot listen on {where}: {reason}")


# ---- File descriptors ----

# For files, callbacks, logs and the interpreter.
SPARE_DESCRIPTORS = 64


def allow_connections(count: int) -> None:
    """Raise the limit of open files to what `count` connections need.

    With too few descriptors, accepting connections would fail in a busy loop. Raises
    CannotListen.
    """
    needed = count + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (OSError, ValueError):
        fact = f"{count} connections need {needed} open files, and the limit is {hard}"
        remedy = "raise it, or lower --max-connections"
        raise CannotListen(f"{fact}; {remedy}") from None


# ---- Socket options: what a peer that reads nothing costs ----

# Of a connection; Linux would hold a megabyte by default.
SEND_BUFFER_BYTES = 64 * 1024


def tune_listener(address: Any, silence_seconds: float) -> None:
    """Bound the cost of a peer that reads nothing, on Linux (socket(7), tcp(7)).

    Connections inherit the options of the listener. Granian cannot set them, so they
    are set on a duplicate of its socket.
    """
    timeout_ms = round(silence_seconds * 1000)
    for listener in _duplicates_of_sockets(address):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        # The peer of a Unix socket is a proxy on this machine, and there is no such
        # option.
        if listener.family != socket.AF_UNIX:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms)


def _duplicates_of_sockets(address: Any) -> Iterator[socket.socket]:
    """Duplicates of our sockets with this address; none on systems but Linux."""
    if sys.platform != "linux":
        return
    for entry in Path("/proc/self/fd").iterdir():
        # Closing a duplicate of the hub's store would release the lock of the store.
        if not entry.is_socket():
            continue
        # A connection may have closed meanwhile.
        with suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as copy:
            if copy.getsockname() == address:
                yield copy


# ---- Readiness ----

# Until the first response: the data are loaded before.
START_SECONDS = 10
# Between two requests that nobody answers yet.
RETRY_SECONDS = 0.01


async def wait_until_ready(
    address: Any, running: asyncio.Task[None], seconds: float = START_SECONDS
) -> None:
    """Wait for the first response of the server whose task is `running`.

    Raises CannotListen without one.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            if await _is_answered(address, running):
                return
    reason = "no request is answered"
    if running.done():
        # A backtrace may follow the first line.
        reason = str(running.exception()).splitlines()[0]
    raise _cannot_listen(address, reason)


async def _is_answered(address: Any, running: asyncio.Task[None]) -> bool:
    """Whether a request is answered before the task of the server ends."""
    while not running.done():
        try:
            await ask(address)
        except OSError:
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return True
    return False


async def ask(address: Any) -> None:
    """Send a request to the service and wait for the status line.

    Raises OSError if none comes.
    """
    if isinstance(address, str):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        # An address of IPv6 has two more members. A wildcard means loopback.
        host, port, *_ = address
        reader, writer = await asyncio.open_connection(host, port)
    with closing(writer):
        writer.write(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        status_line = await reader.readline()
        if not status_line.startswith(b"HTTP/1.1 "):
            raise ConnectionResetError("no status line")
