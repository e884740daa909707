"""Subscribers of the hub, a process of its own: HTTPS callbacks that agree to everything and count.

Each line on standard input is a name and a number. As soon as so many paths have seen what the name stands
for, the answer is one line: the moment (time.monotonic, the same in all processes) when the last of them did.
A name is the SHA-256 of a content, or "verified" for the hub's question whether a subscription is meant.

Run by deliveries.py as `python subscribers.py CERTIFICATE KEY PORT ADDRESS...`.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections import defaultdict
from contextlib import suppress
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

VERIFIED = "verified"
WAITING_CONNECTIONS = 1024


class Census:
    """Which paths have seen what."""

    def __init__(self) -> None:
        self._seen: defaultdict[str, dict[str, float]] = defaultdict(dict)  # by name: path and moment
        self._awaited: tuple[str, int] | None = None

    def expect(self, line: str) -> None:
        """Take one line of standard input."""
        name, count = line.split()
        self._awaited = (name, int(count))
        self._tell()

    def note(self, name: str, path: str) -> None:
        """A path has seen what the name stands for."""
        self._seen[name].setdefault(path, time.monotonic())
        self._tell()

    def _tell(self) -> None:
        if self._awaited and len(self._seen[self._awaited[0]]) >= self._awaited[1]:
            print(max(self._seen[self._awaited[0]].values()), flush=True)
            self._awaited = None


async def exchange(census: Census, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the one request of a connection."""
    with suppress(OSError, asyncio.IncompleteReadError):
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = first.split()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        census.note(sha256(body).hexdigest() if method == "POST" else VERIFIED, parts.path)
        challenge = parse_qs(parts.query).get("hub.challenge", [""])[0]
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(challenge)}\r\nConnection: close\r\n\r\n"
        writer.write((head + challenge).encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()


async def main() -> None:
    """Serve until standard input ends."""
    certificate, key, port, *addresses = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    census = Census()
    server = await asyncio.start_server(
        lambda reader, writer: exchange(census, reader, writer),
        addresses,
        int(port),
        ssl=context,
        backlog=WAITING_CONNECTIONS,
    )
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    async with server:
        print("ready", flush=True)
        while line := await commands.readline():
            census.expect(line.decode())


if __name__ == "__main__":
    asyncio.run(main())
