"""Attacks of one client through the proxy, and their effect on other clients.

An attack is a context manager that lasts as long as its block. All clients are on this
machine. Those with addresses of IPv6 need a network of their own (`tools.own_network`).

Sections: Clients - Connections - Attacks - Others
"""

import multiprocessing
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    suppress,
)
from http.client import HTTPException
from itertools import count
from pathlib import Path
from ssl import SSLSocket

from lab.proxy_lab import JSON_TYPE, Client, Proxy

# ---- Clients, and what they send ----

ATTACKER = "127.0.2.1"
OTHERS = [f"127.0.3.{number}" for number in range(1, 26)]
WIDE_ATTACKER = [f"2001:db8:1:{number:x}::1" for number in range(100)]
"""Addresses of one /48, each in a /64 of its own."""
SAME_64 = "2001:db8:1:0:ffff::9"
OTHER_48 = "2001:db8:2::1"
IPV6_CLIENTS = [*WIDE_ATTACKER, SAME_64, OTHER_48]
PAUSE_SECONDS = 0.005  # between two measured requests of others

CALL_TEXT = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_reviews","arguments":%s}}'
SMALL_CALL, LARGE_CALL = (
    (CALL_TEXT % arguments).encode() for arguments in ('{"limit":1}', '{"limit":100}')
)


def request(path: str, body: bytes | None = None) -> bytes:
    """The bytes of a request; a POST if it has a body."""
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body is not None:
        head += f"Content-Type: {JSON_TYPE['content_type']}\r\nAccept: {JSON_TYPE['accept']}\r\n"
        head += f"Content-Length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + (body or b"")


WHOLE_GET = request("/reviews.json")
WHOLE_CALL = request("/mcp", LARGE_CALL)
HALF_HEAD = WHOLE_GET[:-2]
HALF_BODY = WHOLE_CALL.removesuffix(LARGE_CALL)


# ---- Connections ----


def connections_held(port: int) -> int:
    """The established connections of a daemon on this port (proc_net_tcp(5))."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


@contextmanager
def connections(port: int, sent: Iterable[bytes]) -> Iterator[None]:
    """A connection for each element of `sent`, which it sends; it reads nothing."""
    with ExitStack() as stack:
        for number, content in enumerate(sent):
            one = stack.enter_context(socket.socket())
            one.settimeout(10)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.bind(
                (f"127.0.1.{1 + number // 1000}", 0)
            )  # a single address would run out of ports
            one.connect(("127.0.0.1", port))
            with suppress(ConnectionError):  # a server may refuse at once
                one.sendall(content)
            time.sleep(0.0005)
        yield


# ---- Attacks ----


def is_refused(connection: SSLSocket, patience_seconds: float) -> bool:
    """Whether the first response is a 429; False if none comes within this time."""
    connection.settimeout(patience_seconds)
    with suppress(OSError):
        return connection.recv(12).endswith(b" 429")
    return False


@contextmanager
def simultaneous(
    proxy: Proxy, content: bytes, sources: Iterable[str], patience_seconds: float = 0
) -> Iterator[tuple[int, float]]:
    """Send a request from every source at once; only the status is read.

    Yields how many of the requests nginx accepted, and how many seconds this took.
    """
    with ExitStack() as held:
        opened = [
            held.enter_context(proxy.connected(source, 4096)) for source in sources
        ]
        began = time.monotonic()
        for connection in opened:
            connection.sendall(content)
        proxy.ask(
            "/healthz"
        )  # nginx answers this request after it has judged the rates of all earlier ones
        seconds = time.monotonic() - began
        yield (
            len(opened)
            - sum(is_refused(connection, patience_seconds) for connection in opened),
            seconds,
        )


def slow_bodies(
    proxy: Proxy, sources: Iterable[str]
) -> AbstractContextManager[tuple[int, float]]:
    """POST requests that send only the first byte of a body of a thousand bytes."""
    return simultaneous(proxy, request("/mcp", bytes(1000))[:-999], sources)


def slow_readers(
    proxy: Proxy, sources: Iterable[str]
) -> AbstractContextManager[tuple[int, float]]:
    """Requests for a large response, which they do not read."""
    return simultaneous(proxy, WHOLE_GET, sources, 30)


def status_of(client: Client, path: str, body: bytes | None) -> int:
    """The status of one request, 0 without an answer."""
    with suppress(OSError, HTTPException):
        return client.ask(path, body, **(JSON_TYPE if body else {}))[0]
    return 0


@contextmanager
def requests(
    proxy: Proxy,
    path: str,
    body: bytes | None = None,
    sources: Sequence[str] = 50 * (ATTACKER,),
    pause_seconds: float = 0.3,
) -> Iterator[Counter[int]]:
    """Requests without end, on one connection from every source.

    Yields the numbers of responses by status, 0 for no response. `#` in the path
    becomes a new number.
    """
    statuses: Counter[int] = Counter()
    ended = threading.Event()
    numbers = count()

    def ask_on(source: str) -> None:
        with closing(proxy.client(source)) as client:
            while not ended.is_set():
                status = status_of(client, path.replace("#", str(next(numbers))), body)
                statuses[status] += 1
                if not status:
                    client.close()  # the next request opens it again
                ended.wait(pause_seconds)

    threads = [threading.Thread(target=ask_on, args=[source]) for source in sources]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@contextmanager
def in_another_process(attack: AbstractContextManager[object]) -> Iterator[None]:
    """An attack in a process of its own, so that it delays no thread of this one."""
    fork = multiprocessing.get_context("fork")
    begun = fork.Event()
    ended = fork.Event()

    def go_on() -> None:
        with attack:
            begun.set()
            ended.wait()

    process = fork.Process(target=go_on)
    process.start()
    begun.wait(60)
    try:
        yield
    finally:
        ended.set()
        process.join()


# ---- Others ----


def others(proxy: Proxy, seconds: float = 0) -> list[tuple[int, float]]:
    """Status and milliseconds of requests of OTHERS, one after the other.

    For `seconds`, and at least 25 of them.

    A client keeps its connection. A request without a response has status 0.
    """
    paths = (
        "/",
        "/badge.svg",
        "/mcp",
        "/reviews?page=2",
        "/api/reviews/search?limit=1&query=of+others+#",
    )
    answers: list[tuple[int, float]] = []
    with ExitStack() as held:
        clients = [
            held.enter_context(closing(proxy.client(source))) for source in OTHERS
        ]
        for client in clients:
            with suppress(OSError):
                client.connect()
        ended = time.monotonic() + seconds
        while time.monotonic() < ended or len(answers) < len(clients):
            path = paths[len(answers) % len(paths)].replace(
                "#", str(time.monotonic_ns())
            )
            client = clients[len(answers) // len(paths) % len(clients)]
            began = time.perf_counter()
            status = status_of(client, path, SMALL_CALL if path == "/mcp" else None)
            answers.append((status, (time.perf_counter() - began) * 1000))
            time.sleep(PAUSE_SECONDS if seconds else 0)
    return answers
