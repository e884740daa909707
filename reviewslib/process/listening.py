"""Operating-system resources of connections: the address, file descriptors and socket options.

This module knows no server. It sends a request to the service, whose response shows that it is ready.
Errors are CannotListen with a one-line message.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import resource
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

START_SECONDS = 10  # until the first response
SPARE_DESCRIPTORS = 64  # for files, callbacks, logs and the interpreter
SEND_BUFFER_BYTES = 64 * 1024  # of a connection; Linux would hold a megabyte by default

Listener = socket.socket | Path  # a bound port, or the path of a Unix socket


class CannotListen(OSError):
    """The service cannot listen on its address; the text is a line for the operator."""


def is_wildcard(host: str) -> bool:
    """Whether `host` means all addresses of the machine: 0.0.0.0, ::, 0 or an empty string."""
    try:
        addresses = socket.getaddrinfo(
            host or None, 0, flags=socket.AI_NUMERICHOST | socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        return False
    return ipaddress.ip_address(
        str(addresses[0][4][0]).removeprefix("::ffff:")
    ).is_unspecified


def claim_port(host: str, port: int) -> socket.socket:
    """A bound socket, which reserves the port until `serve` closes it. Raises CannotListen."""
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = addresses[0]
        claim = socket.socket(family, kind, protocol)
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        claim.bind(address)
    except (
        OSError,
        UnicodeError,
    ) as error:  # UnicodeError: a label of the name is empty or too long
        reason = getattr(error, "strerror", None) or error
        raise CannotListen(f"cannot listen on {host} port {port}: {reason}") from None
    return claim


def claim_path(path: Path) -> Path:
    """`path`, if a Unix socket can be bound to it. Removes a stale stream socket. Raises CannotListen."""
    with socket.socket(socket.AF_UNIX) as probe, socket.socket(socket.AF_UNIX) as claim:
        probe.setblocking(False)
        with suppress(OSError):  # for example, the path is too long; `bind` reports it
            if path.is_socket() and probe.connect_ex(str(path)) == errno.ECONNREFUSED:
                path.unlink()
        try:
            claim.bind(str(path))
            path.unlink()
        except OSError as error:
            raise CannotListen(
                f"cannot listen on {path}: {error.strerror or error}"
            ) from None
    return path


def allow_connections(count: int) -> None:
    """Raise the limit of open files to what `count` connections need. Raises CannotListen.

    With too few descriptors, accepting connections would fail in a busy loop.
    """
    needed = count + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        except (OSError, ValueError):
            reason = (
                f"{count} connections need {needed} open files, and the limit is {hard}"
            )
            raise CannotListen(
                f"{reason}; raise it, or lower --max-connections"
            ) from None


def tune_listener(address: Any, silence_seconds: float) -> None:
    """Bound the cost of a peer that reads nothing, on Linux, by options of the listener (socket(7), tcp(7)).

    Connections inherit the options. Granian cannot set them, so they are set on a duplicate of its socket.
    Only sockets are duplicated: closing a duplicate of the hub's store would release the lock of the store.
    """
    for entry in Path("/proc/self/fd").iterdir() if sys.platform == "linux" else ():
        if entry.is_socket():
            with (
                suppress(OSError),
                socket.socket(fileno=os.dup(int(entry.name))) as duplicate,
            ):
                if duplicate.getsockname() == address:
                    timeout_ms = round(silence_seconds * 1000)
                    duplicate.setsockopt(
                        socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES
                    )
                    duplicate.setsockopt(
                        socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms
                    )


async def wait_until_ready(
    address: Any, running: asyncio.Task[None], seconds: float = START_SECONDS
) -> None:
    """Wait for the first response of the server whose task is `running`. Raises CannotListen without one."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not running.done():
                with suppress(OSError):
                    return await ask(address)
                await asyncio.sleep(0.01)
    reason = str(running.exception()) if running.done() else "no request is answered"
    raise CannotListen(
        f"cannot listen on {address}: {reason.splitlines()[0]}"
    )  # a backtrace may follow


async def ask(address: Any) -> None:
    """Send a request to the service and wait for the status line. Raises OSError if none comes."""
    if isinstance(address, str):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        reader, writer = await asyncio.open_connection(
            *address[:2]
        )  # a wildcard means the loopback address
    with closing(writer):
        writer.write(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        if not (await reader.readline()).startswith(b"HTTP/1.1 "):
            raise ConnectionResetError("no status line")
