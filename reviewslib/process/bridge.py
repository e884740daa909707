"""The bridge: ASGI on one side, the application on the other.

Everything here runs on the event loop, but for two threads: one computes responses, one
waits for the disk. The proxy in front handles slow peers and overload; here every bound
is a constant. This module must not know a server or reviews.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol

from reviewslib.messages import Headers, Request, Response, joined, size_of
from reviewslib.process.asgi import (
    WHOLE_BYTES,
    Disconnected,
    Peer,
    Receive,
    Refused,
    Scope,
    Send,
    body_message,
    has_body,
    received_body,
    request_of,
    send_parts,
    start_message,
)
from reviewslib.process.work_thread import WorkThread


class ServedApplication(Protocol):
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


class Bridge:
    """The ASGI application (without lifespan) that Granian calls on the event loop."""

    def __init__(
        self,
        application: ServedApplication,
        body_seconds: float,
        response_seconds: float,
    ):
        """A body must arrive, and a large response must be read, within these times."""
        self._application = application
        self._body_seconds = body_seconds
        self._response_seconds = response_seconds
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
            body = await received_body(request, peer.receive, self._body_seconds)
            request = request._replace(body=body)
        response = self._application.prepared(request)
        if response:
            return response
        thread = self._computing
        if self._application.waits_for_disk(request):
            thread = self._on_disk
        return await thread.run(partial(self._application.respond, request), peer)

    async def _send(self, response: Response, peer: Peer, send: Send) -> None:
        await send(start_message(response.status, response.headers))
        if size_of(response.body) > WHOLE_BYTES:
            async with asyncio.timeout(self._response_seconds):
                await send_parts(response.body, peer, send)
        else:
            await send(body_message(joined(response.body), has_more=False))
