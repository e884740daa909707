"""The access log: one line for each request, when the request is over.

A line has the peer's address ("-" over a Unix socket), method, path, status, sent bytes
of the body, and milliseconds. This module must not know an application or a server.
"""

from __future__ import annotations

import logging
import re
import time

from reviewslib.process.asgi import AsgiApp, Message, Receive, Scope, Send

# As nginx logs it: the peer left before there was a response.
LEFT = 499
# Longer than nearly all paths of ours; the journal splits lines of more than 48 KiB.
MAX_LOGGED_PATH_BYTES = 1024
# Characters that end a line or a field, or control a terminal.
UNSAFE = re.compile(r"[^!-~]|\\")

log = logging.getLogger("reviewsd.access")


class AccessLog:
    """An ASGI application that logs every request of another one."""

    def __init__(self, application: AsgiApp):
        self._application = application
        # An operator who wants lines of requests wants them at any --log-level.
        log.setLevel(logging.INFO)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent = SentResponse(send)
        try:
            await self._application(scope, receive, sent.send)
        finally:
            log.info("%s %s", _request_text(scope), sent.text())


class SentResponse:
    """Notes what is sent for one request."""

    def __init__(self, send: Send):
        self._send = send
        self._began_at = time.perf_counter()
        self._status = LEFT
        self._sent_bytes = 0

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        self._status = message.get("status", self._status)
        await self._send(message)
        self._sent_bytes += len(message.get("body", b""))

    def text(self) -> str:
        """The part of the line about the response."""
        milliseconds = (time.perf_counter() - self._began_at) * 1000
        return f"{self._status} {self._sent_bytes} {milliseconds:.1f}"


def _request_text(scope: Scope) -> str:
    """The part of the line about the request."""
    address = scope["client"][0] or "-"
    path = scope["raw_path"][:MAX_LOGGED_PATH_BYTES].decode("latin-1")
    return f"{address} {scope['method']} {UNSAFE.sub(_escaped, path)}"


def _escaped(match: re.Match[str]) -> str:
    return f"\\x{ord(match[0]):02x}"
