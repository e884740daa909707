"""Attacks of one client through the proxy, and their effect on other clients; `bench/` uses this module, too.

An attack is a context manager that lasts as long as its block. All clients are on this machine; behind nginx,
the field X-Test-Client of a request is the address of its client.

Sections: Clients - Connections - Attacks - Others
"""

import json
import multiprocessing
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from http.client import HTTPException, HTTPSConnection
from itertools import count, cycle, islice
from pathlib import Path

from proxy_lab import JSON_TYPE, Proxy, exchange

# ---- Clients, and what they send ----

ATTACKER = "192.0.2.1"
OTHERS = [f"198.51.100.{number}" for number in range(1, 26)]
WIDE_ATTACKER = [f"2001:db8:1:{number:x}::1" for number in range(2_000)]
"""Addresses of one /48, each in a /64 of its own."""
PAUSE_SECONDS = 0.005  # between two measured requests of others
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
NEWEST_CALL = json.dumps(CALL | {"params": {"name": "search_reviews", "arguments": {"limit": 1}}}).encode()

CALL_TEXT = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_reviews","arguments":%s}}'
HALF_HEAD = b"GET /reviews.json HTTP/1.1\r\nHost: localhost\r\n"
WHOLE_GET = HALF_HEAD + b"\r\n"
LARGE_CALL = (CALL_TEXT % '{"limit":100}').encode()
HALF_BODY = (
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, "
    b"text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(LARGE_CALL)
)
WHOLE_CALL = HALF_BODY + LARGE_CALL


# ---- Connections ----


def connected(proxy: Proxy) -> ssl.SSLSocket:
    """A TLS connection with a small window, so that the kernel reads little ahead."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(30)
    plain.connect(("127.0.0.1", proxy.port))
    return proxy.context.wrap_socket(plain, server_hostname="localhost")


def connections_held(port: int) -> int:
    """The established connections of a daemon on this port (proc_net_tcp(5))."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


@contextmanager
def connections(port: int, sent: Iterable[bytes]) -> Iterator[None]:
    """One connection for each element of `sent`; it sends that element and reads nothing."""
    with ExitStack() as stack:
        for number, content in enumerate(sent):
            one = stack.enter_context(socket.socket())
            one.settimeout(10)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.bind((f"127.0.1.{1 + number // 1000}", 0))  # a single address would run out of ports
            one.connect(("127.0.0.1", port))
            with suppress(ConnectionError):  # a server may refuse at once
                one.sendall(content)
            time.sleep(0.0005)
        yield


# ---- Attacks ----


def request(path: str, source: str, body: bytes | None = None) -> bytes:
    """A request of the client with the address `source`; a POST if it has a body."""
    fields = {"Host": "localhost", "X-Test-Client": source}
    if body is not None:
        fields |= {"Content-Type": "application/json", "Accept": JSON_TYPE["accept"]}
        fields["Content-Length"] = str(len(body))
    method = "GET" if body is None else "POST"
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "\r\n"]).encode() + (body or b"")


def is_refused(connection: ssl.SSLSocket, patience_seconds: float) -> bool:
    """Whether the first response is a 429; False if no response comes within this time."""
    connection.settimeout(patience_seconds)
    with suppress(OSError):
        return connection.recv(12).endswith(b" 429")
    return False


@contextmanager
def simultaneous(
    proxy: Proxy, sent: Sequence[bytes], patience_seconds: float = 0
) -> Iterator[tuple[int, float]]:
    """Send requests at the same time; of their responses only the status is read.

    Yields how many of the requests nginx accepted, and how many seconds this took.
    """
    with ExitStack() as held:
        opened = [held.enter_context(connected(proxy)) for _ in sent]
        began = time.monotonic()
        for connection, content in zip(opened, sent, strict=True):
            connection.sendall(content)
        proxy.ask("/healthz")  # nginx answers this request after it has judged the rates of all earlier ones
        seconds = time.monotonic() - began
        yield len(sent) - sum(is_refused(connection, patience_seconds) for connection in opened), seconds


def slow_bodies(proxy: Proxy, number: int) -> AbstractContextManager[tuple[int, float]]:
    """POST requests that send only the first byte of a body of a thousand bytes."""
    return simultaneous(proxy, number * [request("/mcp", ATTACKER, bytes(1000))[:-999]])


def slow_readers(
    proxy: Proxy, number: int, sources: Sequence[str] = (ATTACKER,)
) -> AbstractContextManager[tuple[int, float]]:
    """Requests by `sources` in turn for a large response, which they do not read."""
    sent = [request("/reviews.json", source) for source in islice(cycle(sources), number)]
    return simultaneous(proxy, sent, 30)


def status_of(connection: HTTPSConnection, path: str, body: bytes | None, source: str) -> int:
    """The status of one request of this client, 0 without an answer."""
    with suppress(OSError, HTTPException):
        return exchange(connection, path, body, x_test_client=source, **(JSON_TYPE if body else {}))[0]
    return 0


@contextmanager
def requests(
    proxy: Proxy,
    path: str,
    body: bytes | None = None,
    sources: Sequence[str] = (ATTACKER,),
    clients: int = 50,
    pause_seconds: float = 0.3,
) -> Iterator[Counter[int]]:
    """Requests without end on `clients` connections, by `sources` in turn.

    Yields the numbers of responses by status, 0 for no response. `#` in the path becomes a new number.
    """
    statuses: Counter[int] = Counter()
    ended, numbers, addresses = threading.Event(), count(), cycle(sources)

    def ask_on() -> None:
        with closing(proxy.connection()) as connection:
            while not ended.is_set():
                target = path.replace("#", str(next(numbers)))
                status = status_of(connection, target, body, next(addresses))
                statuses[status] += 1
                if not status:
                    connection.close()  # the next request opens it again
                ended.wait(pause_seconds)

    threads = [threading.Thread(target=ask_on) for _ in range(clients)]
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
    """An attack in a process of its own, so that it does not delay the threads of this process."""
    fork = multiprocessing.get_context("fork")
    begun, ended = fork.Event(), fork.Event()

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
    """Status and milliseconds of consecutive requests of OTHERS, for `seconds`, and at least three of each.

    A client keeps its connection. A request without a response has status 0.
    """
    paths = ("/", "/badge.svg", "/mcp", "/reviews?page=2", "/api/reviews/search?limit=1&query=of+others+#")
    answers: list[tuple[int, float]] = []
    with ExitStack() as held:
        clients = [held.enter_context(closing(proxy.connection())) for _ in OTHERS]
        for client in clients:
            with suppress(OSError):
                client.connect()
        ended = time.monotonic() + seconds
        while time.monotonic() < ended or len(answers) < 3 * len(clients):
            path = paths[len(answers) % len(paths)].replace("#", str(time.monotonic_ns()))
            number = len(answers) // len(paths) % len(clients)
            body = NEWEST_CALL if path == "/mcp" else None
            began = time.perf_counter()
            status = status_of(clients[number], path, body, OTHERS[number])
            answers.append((status, (time.perf_counter() - began) * 1000))
            time.sleep(PAUSE_SECONDS if seconds else 0)
    return answers
