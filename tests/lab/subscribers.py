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
# Of the deliveries to flaky callbacks.
REFUSED_SHARE = 0.4


class Subscribers:
    """Callbacks that answer, in a thread of their own, until the program ends.

    Their addresses begin alike. The hub needs `flags` to reach them. `newest` holds the
    last content taken, b"" before the first, of every path that was verified.
    """

    def __init__(self, scratch: Path, network: str = "127.0.0."):
        self._hosts = [f"{network}{number}" for number in range(1, 1 + HOSTS)]
        ca_file = str(scratch / "subscribers.pem")
        self._tls = _tls_context(self._hosts, ca_file)
        self.flags = ("--hub-allow-private", "--hub-ca-file", ca_file)
        self.newest: dict[str, bytes] = {}
        # By path and lease, the moments (time.monotonic()) of the last verifications.
        self.verified_at: dict[tuple[str, str], float] = {}
        self.events: Counter[str] = Counter()
        # Paths of flaky callbacks, which take the next delivery.
        self._refused: set[str] = set()
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
        return {
            "path": "/api/websub/hub",
            "method": "POST",
            "body": urlencode(fields).encode(),
            "content_type": "application/x-www-form-urlencoded",
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
            method, target, _ = head.split(maxsplit=2)
            url = urlsplit(target)
            if method == "GET":
                answer = self._agree(url.path, url.query)
            else:
                answer = await self._take(url.path, body)
            writer.write(answer)
            writer.close()
            await writer.wait_closed()

    def _agree(self, path: str, query: str) -> bytes:
        """The answer to a verification, or to a notice."""
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        self.newest.setdefault(path, b"")
        lease = asked.get("hub.lease_seconds", "")
        self.verified_at[path, lease] = time.monotonic()
        is_denial = asked["hub.mode"] == "denied"
        self.events["denials" if is_denial else "verifications"] += 1
        return _answer(200, asked.get("hub.challenge", ""))

    async def _take(self, path: str, body: bytes) -> bytes:
        """The answer to a delivery."""
        kind = path.split("/")[1]
        self.events[f"deliveries to {kind} callbacks"] += 1
        is_turned = kind == "turning" and self.newest[path]
        wait_kind = "hanging" if is_turned else kind
        await asyncio.sleep(WAIT_SECONDS.get(wait_kind, 0))
        if self._refuses(kind, path):
            self._refused.add(path)
            return _answer(500)
        self._refused.discard(path)
        self.newest[path] = body
        return _answer(204)

    def _refuses(self, kind: str, path: str) -> bool:
        if kind == "dead":
            return True
        may_refuse = kind == "flaky" and path not in self._refused
        return may_refuse and random.random() < REFUSED_SHARE


def _tls_context(hosts: list[str], ca_file: str) -> ssl.SSLContext:
    """What callbacks show: a certificate of an authority that is written to a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert(*hosts).configure_cert(context)
    authority.cert_pem.write_to_path(ca_file)
    return context


def _answer(status: int, content: str = "") -> bytes:
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "Connection: close", "", content]).encode()
