"""Attacks of one client through the proxy, and their effect on other clients; `bench/` uses it, too.

An attack is a context manager that runs while its block runs. All addresses are loopback addresses.

Sections: Networks - Connections - Attacks - Others
"""

import ctypes
import json
import multiprocessing
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from http.client import HTTPException, HTTPSConnection
from itertools import count, cycle
from pathlib import Path
from typing import TypeVar

from proxy_lab import JSON_TYPE, Proxy, exchange

Result = TypeVar("Result")
ATTACKER = "127.0.0.3"
OTHERS = [f"127.0.1.{number}" for number in range(1, 26)]
WIDE_ATTACKER = [f"2001:db8:1:{number:x}::1" for number in range(2_000)]
"""Addresses of one /48, each in a /64 of its own."""
WIDE_OTHERS = [f"2001:db8:{number:x}::1" for number in range(2, 27)]
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


# ---- Networks ----

CLONE_NEWNET = 0x40000000  # unshare(2)


def in_own_network(work: Callable[[], Result]) -> Result:
    """Call `work` in a thread that has a network of its own, where every address of 2001:db8::/32 is local.

    Threads and processes that it starts are in that network, too. Raises OSError.
    """

    def enter_and_work() -> Result:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "no network namespace")
        for command in ("ip link set lo up", "ip -6 route add local 2001:db8::/32 dev lo"):
            subprocess.run(command.split(), check=True)
        Path("/proc/sys/net/ipv6/ip_nonlocal_bind").write_text("1")
        return work()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(enter_and_work).result()


# ---- Connections ----


def connected(proxy: Proxy, source: str = ATTACKER) -> ssl.SSLSocket:
    """A TLS connection from this address, with a small window, so that the kernel reads little ahead."""
    plain = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(30)
    plain.bind((source, 0))
    plain.connect(("::1" if ":" in source else "127.0.0.1", proxy.port))
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
            one.bind((f"127.0.1.{1 + number // 1000}", 0))  # one address alone would run out of ports
            one.connect(("127.0.0.1", port))
            with suppress(ConnectionError):  # a server may refuse at once
                one.sendall(content)
            time.sleep(0.0005)
        yield


# ---- Attacks ----


@contextmanager
def slow_bodies(proxy: Proxy, number: int) -> Iterator[None]:
    """POST requests that send one byte of a thousand."""
    with ExitStack() as held:
        for _ in range(number):
            held.enter_context(connected(proxy)).sendall(
                b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{"
            )
        yield


@contextmanager
def slow_readers(
    proxy: Proxy, number: int, sources: Sequence[str] = (ATTACKER,), field: str = "X: y"
) -> Iterator[Counter[int]]:
    """Requests of a large response, of which only the status is read; counts the statuses."""
    statuses: Counter[int] = Counter()
    with ExitStack() as held:
        for _, source in zip(range(number), cycle(sources), strict=False):
            connection = held.enter_context(connected(proxy, source))
            connection.sendall(f"GET /reviews.json HTTP/1.1\r\nHost: localhost\r\n{field}\r\n\r\n".encode())
            statuses[int(connection.recv(12).split()[1])] += 1
        yield statuses


def status_of(connection: HTTPSConnection, path: str, body: bytes | None) -> int:
    """The status of one request, 0 without an answer."""
    with suppress(OSError, HTTPException):
        return exchange(connection, path, body, **(JSON_TYPE if body else {}))[0]
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
    """Requests without end, by many clients at once; counts the statuses, 0 for no answer.

    `#` in the path is another number each time. Of several sources, each request is from the next one.
    """
    statuses: Counter[int] = Counter()
    ended, numbers, addresses = threading.Event(), count(), cycle(sources)

    def ask_on() -> None:
        while not ended.is_set():
            with closing(proxy.connection(next(addresses))) as connection:
                stays = True
                while stays:
                    target = path.replace("#", str(next(numbers)))
                    status = status_of(connection, target, body)
                    statuses[status] += 1
                    stays = not ended.wait(pause_seconds) and status > 0 and len(sources) == 1

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


def others(proxy: Proxy, seconds: float = 0, sources: Sequence[str] = OTHERS) -> list[tuple[int, float]]:
    """Status and milliseconds of requests one by one, for so long and at least three of each source.

    Each source keeps its connection. A request that gets no answer has status 0.
    """
    paths = ("/", "/badge.svg", "/mcp", "/reviews?page=2", "/api/reviews/search?limit=1&query=of+others+#")
    answers: list[tuple[int, float]] = []
    with ExitStack() as held:
        clients = [held.enter_context(closing(proxy.connection(source))) for source in sources]
        for client in clients:
            with suppress(OSError):
                client.connect()
        ended = time.monotonic() + seconds
        while time.monotonic() < ended or len(answers) < 3 * len(clients):
            turn = len(answers)
            path = paths[turn % len(paths)].replace("#", str(time.monotonic_ns()))
            client, body = clients[turn // len(paths) % len(clients)], NEWEST_CALL if path == "/mcp" else None
            began = time.perf_counter()
            status = status_of(client, path, body)
            answers.append((status, (time.perf_counter() - began) * 1000))
            time.sleep(0.005)
    return answers
