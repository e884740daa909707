"""Real HTTPS callbacks on this machine, and a running hub that calls them.

A callback does what the test has told it for its method and path.

Sections: exchanges - behaviours - callbacks - the network - a running hub.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

import hub
from lab.hub_lab import settings
from lab.hub_values import FORM, form, query, topics
from reviewslib.websub.callbacks import CallbackClient, Resolve
from reviewslib.websub.forms import HubAnswer
from reviewslib.websub.store import StoreFault

# How long a test waits for what has to come; if all is well, much less.
PATIENCE_SECONDS = 30.0

# ---- Exchanges ----


@dataclass(frozen=True)
class Arrival:
    """A request that came to a callback."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    moment: float = field(default_factory=time.monotonic)

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


class Exchange(BaseHTTPRequestHandler):
    """One request to a callback.

    It is answered by the behaviour that the lab has for its method and path.
    """

    server: Lab

    def setup(self) -> None:
        # Not in accept(), where it would hold up the others.
        self.request.do_handshake()
        super().setup()

    def do_POST(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # To the letter, as `self.path` is not.
        target = self.requestline.split(" ")[1]
        headers = dict(self.headers.items())
        behaviour = self.server.arrive(Arrival(self.command, target, headers, body))
        behaviour(self)

    do_GET = do_POST  # noqa: N815 - as BaseHTTPRequestHandler wants it

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        linger_not = struct.pack("ii", 1, 0)
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
        self.rfile.close()
        self.request.close()

    def log_message(self, *_: Any) -> None:
        pass


# ---- Behaviours ----

Behaviour = Callable[[Exchange], None]


def agree(exchange: Exchange) -> None:
    exchange.answer(200, query(exchange.path).get("hub.challenge", "").encode())


def hang(exchange: Exchange) -> None:
    exchange.server.released.wait(PATIENCE_SECONDS)


def agree_late(exchange: Exchange) -> None:
    hang(exchange)
    agree(exchange)


def answer(code: int, body: bytes = b"", **headers: str) -> Behaviour:
    return lambda exchange: exchange.answer(code, body, **headers)


# ---- Callbacks ----


class Lab(ThreadingHTTPServer):
    """Subscribers on 127.0.0.1, with a certificate of an authority for this test."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, ca_file: Path):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.port = self.server_address[1]
        self.arrivals: list[Arrival] = []
        self.behaviours: dict[tuple[str, str], list[Behaviour]] = {}
        self.changed = threading.Condition()
        # Lets go of what hangs.
        self.released = threading.Event()
        self.ca = trustme.CA()
        self.ca_file = ca_file
        self.ca.cert_pem.write_to_path(str(ca_file))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        names = ("*.lab.example", "localhost", "127.0.0.1")
        self.ca.issue_cert(*names).configure_cert(context)
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    def handle_error(self, *_: Any) -> None:
        """Callbacks that are cut off are what many tests are about."""

    def url(self, path: str, host: str = "s.lab.example") -> str:
        return f"https://{host}:{self.port}{path}"

    def on(self, method: str, path: str, *behaviours: Behaviour) -> None:
        """Set the behaviours of the next requests, the last one of all later ones."""
        self.behaviours[method, path] = list(behaviours)

    def arrive(self, arrival: Arrival) -> Behaviour:
        with self.changed:
            self.arrivals.append(arrival)
            self.changed.notify_all()
            left = self.behaviours.get((arrival.method, arrival.path), [agree])
            if len(left) > 1:
                return left.pop(0)
            return left[0]

    def posts(self, path: str | None = None) -> list[Arrival]:
        return [
            arrival
            for arrival in self.arrivals
            if arrival.method == "POST" and path in (None, arrival.path)
        ]

    def gets(self) -> list[dict[str, str]]:
        return [
            query(arrival.target)
            for arrival in self.arrivals
            if arrival.method == "GET"
        ]

    def wait(self, happened: Callable[[], object]) -> None:
        """Wait until the condition holds; check it at every request, and at intervals."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        with self.changed:
            while not happened():
                assert time.monotonic() < give_up_at, "it never happened"
                self.changed.wait(0.05)


@contextmanager
def open_lab(directory: Path) -> Iterator[Lab]:
    with Lab(directory / "ca.pem") as lab:
        thread = threading.Thread(
            target=lab.serve_forever, kwargs={"poll_interval": 0.02}, name="lab"
        )
        thread.start()
        try:
            yield lab
        finally:
            lab.released.set()
            lab.shutdown()
            thread.join()


# ---- The network ----


def here(_: str) -> list[str]:
    """A resolver for which every host is on this machine."""
    return ["127.0.0.1"]


@contextmanager
def left_alone() -> Iterator[int]:
    """A port; the test fails if anything connects to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


# ---- A running hub ----


@contextmanager
def running(
    lab: Lab,
    state_dir: Path,
    text: str = "one",
    resolve: Resolve = here,
    clock: Callable[[], float] = time.time,
    **changes: object,
) -> Iterator[hub.Hub]:
    """A running hub that by default resolves every name to the lab."""
    client = CallbackClient("lab/1.0", lab.ca_file, allow_private=True, resolve=resolve)
    subject = hub.Hub(
        settings(state_dir, allow_private=True, **changes), client.send, clock=clock
    )
    subject.publish(topics(text))
    subject.start()
    try:
        yield subject
    finally:
        subject.stop(10)


def ask(subject: hub.Hub, *callbacks: str, **fields: str) -> None:
    """Requests of these callbacks, all of which are accepted."""
    for callback in callbacks:
        answer = answer_of(subject, form(callback=callback, **fields))
        assert answer.status == 202, answer


def answer_of(subject: hub.Hub, body: bytes) -> HubAnswer:
    """The answer to a form, which is sent again while the store is busy."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = subject.answer(FORM, body)
        if answer.status != 503 or time.monotonic() > give_up_at:
            return answer


def settled(subject: hub.Hub, **counts: int) -> Callable[[], bool]:
    """Whether the hub counts so many subscriptions of a kind."""

    def holds() -> bool:
        # A busy store is counted at the next attempt.
        with suppress(StoreFault):
            subject.scheduler.keep_up()
        return counts.items() <= subject.counts().items()

    return holds
