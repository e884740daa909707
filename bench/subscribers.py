"""Subscribers of the hub: HTTPS callbacks on this machine that agree to whatever the hub asks.

How a callback takes deliveries is the first part of its path: "steady" at once, "slow" after a while, "flaky"
after up to two refusals in a row, "dead" never, "hanging" without an answer.
"""

import asyncio
import random
import re
import ssl
import subprocess
import threading
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from servers import HOST, ask, free_port, program, wait_for

HOSTS = tuple(f"127.0.0.{number}" for number in range(1, 51))  # the hub bounds what it does for one host
WAITS = {"slow": 0.3, "hanging": 86_400}  # seconds, by kind
MOST_REFUSALS = 2  # in a row; the hub removes a subscription at the third
REFUSED_SHARE = 0.4  # of the deliveries that a flaky callback may refuse


class Subscribers:
    """Callbacks that answer, in a thread of their own, while the context is open.

    The hub needs `flags` to reach them. `newest` holds the last content taken, b"" before the first, of every
    path that was verified.
    """

    def __init__(self, scratch: Path):
        self._certificate, self._key = scratch / "subscribers.pem", scratch / "subscribers.key"
        self.flags = ("--hub-allow-private", "--hub-ca-file", str(self._certificate))
        self.newest: dict[str, bytes] = {}
        self.events: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()  # by path, in a row, of the living hub
        self._port, self._listening = free_port(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        names = ",".join(f"IP:{host}" for host in HOSTS)
        command = [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        command += ["-nodes", "-days", "2", "-subj", "/CN=bench", "-addext", f"subjectAltName={names}"]
        command += ["-out", str(self._certificate), "-keyout", str(self._key)]
        subprocess.run(command, check=True, capture_output=True)
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def request(
        self, port: int, kind: str, number: int, topic: str, mode: str = "subscribe"
    ) -> dict[str, Any]:
        """The arguments of `servers.ask` for a request of the callback /kind/number; `topic` is a path."""
        callback = f"https://{HOSTS[number % len(HOSTS)]}:{self._port}/{kind}/{number}"
        fields = {"hub.mode": mode, "hub.topic": f"http://{HOST}:{port}{topic}", "hub.callback": callback}
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return {"port": port, "path": "/api/websub/hub", "body": urlencode(fields).encode(), "headers": form}

    def subscribe(self, port: int, wanted: list[tuple[str, int, str]]) -> None:
        """Have callbacks accepted and verified, each a kind, a number and a topic. Raises BenchError."""
        for each in wanted:
            wait_for("acceptance", partial(self._accepted, self.request(port, *each)))
        wait_for("verification", lambda: len(self.newest) == len(wanted))

    def _accepted(self, request: dict[str, Any]) -> bool:
        return ask(**request).status == 202  # not while the hub has enough to verify

    def hub_died(self) -> None:
        """Have flaky callbacks take the next hub's first delivery.

        The dead hub may have stored refusals and not the delivery that was taken after them: one more would
        rightly be the third. What it has sent and nobody has looked at yet counts on its own Counter.
        """
        self._refusals = Counter(dict.fromkeys(self.newest, MOST_REFUSALS))

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(lambda loop, context: None)  # a killed hub breaks its connections
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate, self._key)
        server = await self._loop.create_server(self._accept, HOSTS, self._port, ssl=context, backlog=1024)
        self._listening.set()
        async with server:
            await self._ended.wait()

    def _accept(self) -> asyncio.StreamReaderProtocol:
        refusals = self._refusals  # of the hub that is about to shake hands, and therefore alive

        async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"(?i)content-length: *([0-9]+)", head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                url = urlsplit(head.split(maxsplit=2)[1])
                if head.startswith("GET"):
                    status, content = 200, self._agree(url.path, parse_qs(url.query))
                else:
                    status, content = await self._take(url.path, body, refusals), b""
                first = f"HTTP/1.1 {status} -\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
                writer.write(first.encode() + content)
                writer.close()
                await writer.wait_closed()

        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), exchange)

    def _agree(self, path: str, query: dict[str, list[str]]) -> bytes:
        """What the hub wants to read."""
        self.newest.setdefault(path, b"")
        self.events["denials" if query["hub.mode"] == ["denied"] else "verifications"] += 1
        return query.get("hub.challenge", [""])[0].encode()

    async def _take(self, path: str, body: bytes, refusals: Counter[str]) -> int:
        """The status for a delivery."""
        kind = path.split("/")[1]
        self.events[f"deliveries to {kind} callbacks"] += 1
        await asyncio.sleep(WAITS.get(kind, 0))
        refuses = kind == "flaky" and refusals[path] < MOST_REFUSALS and random.random() < REFUSED_SHARE
        if kind == "dead" or refuses:
            refusals[path] += 1
            return 500
        refusals[path] = 0
        self.newest[path] = body
        return 204
