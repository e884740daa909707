"""State notifications to systemd, by the protocol of sd_notify(3).

This module must not know a server.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable

log = logging.getLogger("reviewsd")


class ServiceManager:
    """Sends the state of the service to systemd, if systemd has started the service.

    Thread-safe.
    """

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        if address.startswith("@"):
            # An abstract address (unix(7)).
            address = "\0" + address[1:]
        self._address = address
        self._lock = threading.Lock()
        self._is_stopping = False

    def notify(self, *assignments: str) -> None:
        """Send assignments such as "READY=1"; nothing is sent after "STOPPING=1"."""
        # A reload that ends while the service stops must not say READY.
        with self._lock:
            if self._is_stopping or not self._address:
                return
            self._is_stopping = "STOPPING=1" in assignments
            self._send("\n".join(assignments))

    def _send(self, message: str) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.sendto(message.encode(), self._address)
        except OSError as error:
            log.warning("the service manager cannot be notified: %s", error)

    async def feed_watchdog(
        self,
        ask: Callable[[], object],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Notify the watchdog twice in every interval, each time after `ask` returned.

        `ask` needs no connection: a service whose connections are all in use is busy,
        but does not hang.
        """
        interval_us = int(os.environ.get("WATCHDOG_USEC") or 0)
        # Without a watchdog, the variable is absent.
        while interval_us:
            ask()
            self.notify("WATCHDOG=1")
            await sleep(interval_us / 2 / 1_000_000)
