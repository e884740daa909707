"""Subscribers of the hub: HTTPS callbacks that agree to whatever the hub asks.

How a callback takes deliveries is the first part of its path: "steady" at once, "slow"
after a while, "flaky" with refusals, never two in a row, "dead" never, "hanging"
without an answer, "turning" at once at first, and then without an answer.
"""

import asyncio
import random
import re
import ssl
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import trustme

from lab.services import HOST, Service, fetch, free_port
from lab.watching import wait_for

# Each connection takes a port of an address for a minute.
HOSTS = 50
# Requests at once; the hub lets 1,000 wait.
BATCH = 500
WAIT_SECONDS = {"slow": 0.3, "hanging": 86_400}


class Subscribers:
    """Callbacks that answer, in a thread of their own, until the program ends.

    Their addresses begin alike. The hub needs `flags` to reach them. `newest` holds the
    last content taken, b"" before the first, of every path that was verified.
    """

    def __init__(self, scratch: Path, network: str = "127.0.0."):
        self._hosts = [f"{network}{number}" for number in range(1, 1 + HOSTS)]
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority = trustme.CA()
        authority.issue_cert(*self._hosts).configure_cert(self._tls)
        authority.cert_pem.write_to_path(str(scratch / "subscribers.pem"))
        self.flags = (
            "--hub-allow-private",
            "--hub-ca-file",
            str(scratch / "subscribers.pem"),
        )
        self.newest: dict[str, bytes] = {}
        # By path and lease, the moments (time.monotonic()) of the last verifications.
        self.verified_at: dict[tuple[str, str], float] = {}
        self.events: Counter[str] = Counter()
        self._refused: set[str] = (
            set()
        )  # paths of flaky callbacks that take the next delivery
        self._port = free_port()
        self._listening = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._listening.wait()

    def request(
        self, mode: str, port: int, kind: str, number: int, topic: str, **more: str
    ) -> dict[str, Any]:
        """The arguments of `services.fetch` for a request of the callback /kind/number.

        `topic` is a path.
        """
        callback = f"https://{self._hosts[number % HOSTS]}:{self._port}/{kind}/{number}"
        return self.request_of(callback, mode, port, topic, **more)

    def request_of(
        self, callback: str, mode: str, port: int, topic: str, **more: str
    ) -> dict[str, Any]:
        """The same of any callback."""
        fields = {
            "hub.mode": mode,
            "hub.topic": f"http://{HOST}:{port}{topic}",
            "hub.callback": callback,
        }
        fields |= {f"hub.{name}": value for name, value in more.items()}
        body = urlencode(fields).encode()
        content_type = "application/x-www-form-urlencoded"
        return {
            "path": "/api/websub/hub",
            "method": "POST",
            "body": body,
            "content_type": content_type,
        }

    def subscribe(self, server: Service, wanted: list[tuple[str, int, str]]) -> None:
        """Have callbacks accepted and verified, each a kind, a number and a topic."""
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            for each in batch:
                request = self.request("subscribe", server.port, *each)
                wait_for(
                    "acceptance",
                    lambda request=request: fetch(server, **request).status == 202,
                )
            paths = {f"/{kind}/{number}" for kind, number, _ in batch}
            wait_for("verification", lambda paths=paths: paths <= self.newest.keys())

    async def _serve(self) -> None:
        # A killed hub breaks its connections.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        where = {"host": self._hosts, "port": self._port, "backlog": 1024}
        server = await asyncio.start_server(self._exchange, **where, ssl=self._tls)
        self._listening.set()
        await server.serve_forever()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = re.search(r"(?i)content-length: *([0-9]+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            url = urlsplit(head.split(maxsplit=2)[1])
            if head.startswith("GET"):
                query = parse_qs(url.query)
                # as the hub wants to read it
                status = 200
                content = query.get("hub.challenge", [""])[0]
                self.newest.setdefault(url.path, b"")
                lease = query.get("hub.lease_seconds", [""])[0]
                self.verified_at[url.path, lease] = time.monotonic()
                self.events[
                    "denials" if query["hub.mode"] == ["denied"] else "verifications"
                ] += 1
            else:
                status = await self._take(url.path, body)
                content = ""
            head = f"HTTP/1.1 {status} -\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            writer.write((head + content).encode())
            writer.close()
            await writer.wait_closed()

    async def _take(self, path: str, body: bytes) -> int:
        """The status for a delivery."""
        kind = path.split("/")[1]
        self.events[f"deliveries to {kind} callbacks"] += 1
        is_turned = kind == "turning" and self.newest[path]
        wait_kind = "hanging" if is_turned else kind
        await asyncio.sleep(WAIT_SECONDS.get(wait_kind, 0))
        if kind == "dead" or (
            kind == "flaky" and path not in self._refused and random.random() < 0.4
        ):
            self._refused.add(path)
            return 500
        self._refused.discard(path)
        self.newest[path] = body
        return 204
