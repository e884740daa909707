"""Attacks of one client through the proxy, and their effect on other clients.

An attack is a context manager that lasts as long as its block. All clients are on this
machine. Those with addresses of IPv6 need a network of their own (`tools.own_network`).

Sections: clients, and what they send - connections - attacks - others.
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
# Addresses of one /48, each in a /64 of its own.
WIDE_ATTACKER = [f"2001:db8:1:{number:x}::1" for number in range(100)]
SAME_64 = "2001:db8:1:0:ffff::9"
OTHER_48 = "2001:db8:2::1"
IPV6_CLIENTS = [*WIDE_ATTACKER, SAME_64, OTHER_48]
# Between two measured requests of others.
PAUSE_SECONDS = 0.005

CALL_TEXT = (
    '{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    '"params":{"name":"search_reviews","arguments":%s}}'
)
SMALL_CALL = (CALL_TEXT % '{"limit":1}').encode()
LARGE_CALL = (CALL_TEXT % '{"limit":100}').encode()


def request(path: str, body: bytes | None = None) -> bytes:
    """The bytes of a request; a POST if it has a body."""
    lines = [f"GET {path} HTTP/1.1", "Host: localhost"]
    if body is not None:
        lines[0] = f"POST {path} HTTP/1.1"
        lines.append(f"Content-Type: {JSON_TYPE['content_type']}")
        lines.append(f"Accept: {JSON_TYPE['accept']}")
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join([*lines, "", ""])
    return head.encode() + (body or b"")


WHOLE_GET = request("/reviews.json")
WHOLE_CALL = request("/mcp", LARGE_CALL)
HALF_HEAD = WHOLE_GET[:-2]
HALF_BODY = WHOLE_CALL.removesuffix(LARGE_CALL)


# ---- Connections ----


def connections_held(port: int) -> int:
    """The established connections of a daemon on this port (proc_net_tcp(5))."""
    _, *lines = Path("/proc/net/tcp").read_text().splitlines()
    held = 0
    for line in lines:
        _, local_address, _, state, *_ = line.split()
        is_ours = local_address.endswith(f":{port:04X}")
        is_established = state == "01"
        held += is_ours and is_established
    return held


@contextmanager
def connections(port: int, sent: Iterable[bytes]) -> Iterator[None]:
    """A connection for each element of `sent`, which it sends; it reads nothing."""
    with ExitStack() as stack:
        for number, content in enumerate(sent):
            one = stack.enter_context(socket.socket())
            one.settimeout(10)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            # A single address would run out of ports.
            one.bind((f"127.0.1.{1 + number // 1000}", 0))
            one.connect(("127.0.0.1", port))
            # A server may refuse at once.
            with suppress(ConnectionError):
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
        # nginx answers this request after it has judged the rates of all earlier ones.
        proxy.ask("/healthz")
        seconds = time.monotonic() - began
        refused = [one for one in opened if is_refused(one, patience_seconds)]
        yield len(opened) - len(refused), seconds


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
    headers = JSON_TYPE if body else {}
    with suppress(OSError, HTTPException):
        status, _, _ = client.ask(path, body, **headers)
        return status
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
                    # The next request opens it again.
                    client.close()
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


# What others ask; `#` becomes a new number.
OTHERS_PATHS = (
    "/",
    "/badge.svg",
    "/mcp",
    "/reviews?page=2",
    "/api/reviews/search?limit=1&query=of+others+#",
)


def others(proxy: Proxy, seconds: float = 0) -> list[tuple[int, float]]:
    """Status and milliseconds of requests of OTHERS, one after the other.

    For `seconds`, and at least 25 of them.

    A client keeps its connection. A request without a response has status 0.
    """
    answers: list[tuple[int, float]] = []
    with ExitStack() as held:
        clients = [connected_client(proxy, source, held) for source in OTHERS]
        ended = time.monotonic() + seconds
        while time.monotonic() < ended or len(answers) < len(clients):
            path = OTHERS_PATHS[len(answers) % len(OTHERS_PATHS)]
            # Each client asks for all paths before the next one asks.
            client = clients[len(answers) // len(OTHERS_PATHS) % len(clients)]
            answers.append(measured(client, path))
            if seconds:
                time.sleep(PAUSE_SECONDS)
    return answers


def connected_client(proxy: Proxy, source: str, held: ExitStack) -> Client:
    """A client whose connection is open already, if the proxy accepts one."""
    client = held.enter_context(closing(proxy.client(source)))
    with suppress(OSError):
        client.connect()
    return client


def measured(client: Client, path: str) -> tuple[int, float]:
    """Status and milliseconds of a request."""
    body = SMALL_CALL if path == "/mcp" else None
    path = path.replace("#", str(time.monotonic_ns()))
    began = time.perf_counter()
    status = status_of(client, path, body)
    return status, (time.perf_counter() - began) * 1000
