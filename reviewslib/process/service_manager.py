"""State notifications to systemd, by the protocol of sd_notify(3). This module knows no server."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable

log = logging.getLogger("reviewsd")


class ServiceManager:
    """Sends the state of the service to systemd, if systemd has started the service. Thread-safe."""

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        self._address = (
            "\0" + address[1:] if address.startswith("@") else address
        )  # abstract (unix(7))
        self._lock = threading.Lock()
        self._is_stopping = False

    def notify(self, *assignments: str) -> None:
        """Send assignments such as "READY=1"; nothing is sent after "STOPPING=1"."""
        with self._lock:
            if not self._address or self._is_stopping:
                return
            self._is_stopping = "STOPPING=1" in assignments
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                    manager.sendto("\n".join(assignments).encode(), self._address)
            except OSError as error:
                log.warning("the service manager cannot be notified: %s", error)

    async def feed_watchdog(
        self,
        ask: Callable[[], object],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Notify the watchdog twice in every interval, each time after `ask` has returned.

        `ask` needs no connection: a service whose connections are all in use is busy, but does not hang.
        """
        interval_seconds = int(os.environ.get("WATCHDOG_USEC") or 0) / 1_000_000
        while interval_seconds:
            ask()
            self.notify("WATCHDOG=1")
            await sleep(interval_seconds / 2)
