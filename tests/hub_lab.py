"""What the hub's tests share: a clock to turn, topics, forms, callbacks of ours and real HTTPS ones."""

from __future__ import annotations

import hashlib
import socket
import socketserver
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import trustme

import hub

BASE_URL = "https://reviews.example"
FEED, JSON_FEED = "/feed.xml", "/api/feed.json"
FORM = "application/x-www-form-urlencoded"
PATIENCE_SECONDS = 30.0  # how long a test waits for what has to come; if all is well, much less


class Clock:
    """Seconds since the epoch, when the test says so."""

    def __init__(self, now: float = 1_800_000_000.0):
        self.now = now

    def __call__(self) -> float:
        return self.now


def topic(path: str, text: str, content_type: str = "application/atom+xml") -> hub.Topic:
    body = text.encode()
    return hub.Topic(path, content_type, body, hashlib.sha256(body).hexdigest())


def topics(text: str = "one", **more: str) -> dict[str, hub.Topic]:
    """Both topics; `feed` and `json` tell their contents apart."""
    return {
        FEED: topic(FEED, more.get("feed", text)),
        JSON_FEED: topic(JSON_FEED, more.get("json", text), "application/json"),
    }


def settings(state_dir: Path, **changes: Any) -> hub.HubSettings:
    return hub.HubSettings(base_url=BASE_URL, state_dir=state_dir, user_agent="lab/1.0", **changes)


def form(
    mode: str = "subscribe", callback: str = "https://s.example/cb", path: str = FEED, **more: str
) -> bytes:
    """A request; `secret` and `lease_seconds` get their prefix."""
    fields = {"hub.mode": mode, "hub.callback": callback, "hub.topic": BASE_URL + path}
    return urlencode(fields | {f"hub.{name}": value for name, value in more.items()}).encode()


def query(url: str) -> dict[str, str]:
    return {
        name: values[-1] for name, values in parse_qs(urlsplit(url).query, keep_blank_values=True).items()
    }


def echo(message: hub.Message) -> hub.Reply:
    """A callback that agrees to everything."""
    return hub.Reply(200, "HTTP 200", query(message.url).get("hub.challenge", "").encode())


def status(code: int, **more: Any) -> Callable[[hub.Message], hub.Reply]:
    """A callback that always answers the same."""
    return lambda _: hub.Reply(code, f"HTTP {code}", **more)


class Callbacks:
    """Stands for the network: remembers what was sent, answers as told by method."""

    def __init__(self) -> None:
        self.sent: list[hub.Message] = []
        self.on_get: Callable[[hub.Message], hub.Reply] = echo
        self.on_post: Callable[[hub.Message], hub.Reply] = status(204)

    def __call__(self, message: hub.Message) -> hub.Reply:
        self.sent.append(message)
        return self.on_get(message) if message.method == "GET" else self.on_post(message)

    @property
    def gets(self) -> list[dict[str, str]]:
        return [query(message.url) for message in self.sent if message.method == "GET"]

    @property
    def posts(self) -> list[hub.Message]:
        return [message for message in self.sent if message.method == "POST"]

    @property
    def contents(self) -> list[str]:
        return [(message.body or b"").decode() for message in self.posts]


def work(subject: hub.Hub) -> None:
    """Do all that is due now and what follows at once from it, without a thread."""
    for _ in range(10):
        for job in hub.in_turn(subject._worker.jobs(subject._topics)):
            subject._worker.perform(job, subject._topics)


# ---- Real HTTPS callbacks ----------------------------------------------------------------------------------


class Exchange(BaseHTTPRequestHandler):
    """One request to a callback, answered by the behaviour that the lab has for its method and path."""

    server: LabServer
    body: bytes = b""

    def setup(self) -> None:
        self.request.do_handshake()  # here and not in accept(), where it would hold up the others
        super().setup()

    def do_POST(self) -> None:
        self.close_connection = True
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        lab = self.server.lab
        behave = lab.arrive(Arrival(self.command, self.path, dict(self.headers.items()), self.body))
        behave(self)

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
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.request._real_close()

    def log_message(self, *_: Any) -> None:
        pass


Behaviour = Callable[[Exchange], None]


@dataclass(frozen=True)
class Arrival:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


class LabServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    lab: Lab

    def handle_error(self, *_: Any) -> None:
        pass  # callbacks that are cut off are what many tests are about


def agree(exchange: Exchange) -> None:
    exchange.answer(200, query(exchange.path).get("hub.challenge", "").encode())


def answer(code: int, body: bytes = b"", **headers: str) -> Behaviour:
    return lambda exchange: exchange.answer(code, body, **headers)


@dataclass
class Lab:
    """Subscribers on 127.0.0.1, behind certificates of a throw-away authority."""

    ca_file: Path
    port: int = 0
    arrivals: list[Arrival] = field(default_factory=list)
    behaviours: dict[tuple[str, str], list[Behaviour]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)
    released: threading.Event = field(default_factory=threading.Event)  # lets go of what hangs

    def url(self, path: str, host: str = "s.lab.example") -> str:
        return f"https://{host}:{self.port}{path}"

    def on(self, method: str, path: str, *behaviours: Behaviour) -> None:
        """What to do, request by request; the last stays."""
        self.behaviours[method, path] = list(behaviours)

    def arrive(self, arrival: Arrival) -> Behaviour:
        with self.changed:
            self.arrivals.append(arrival)
            self.changed.notify_all()
            left = self.behaviours.get((arrival.method, arrival.path), [agree])
            return left.pop(0) if len(left) > 1 else left[0]

    def posts(self, path: str | None = None) -> list[Arrival]:
        return [a for a in self.arrivals if a.method == "POST" and path in (None, a.path)]

    def gets(self, path: str | None = None) -> list[dict[str, str]]:
        return [query(a.target) for a in self.arrivals if a.method == "GET" and path in (None, a.path)]

    def wait(self, happened: Callable[[], object]) -> None:
        """Until it has happened; look whenever a request comes, and now and then besides."""
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        with self.changed:
            while not happened():
                assert time.monotonic() < give_up_at, "it never happened"
                self.changed.wait(0.05)


def here(_: str, port: int) -> Sequence[hub.AddressInfo]:
    """A resolver for which every name is on this machine."""
    return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]


@contextmanager
def serving(ca: trustme.CA, lab: Lab, *names: str) -> Iterator[int]:
    """An HTTPS server for these names on a free port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names).configure_cert(context)
    server = LabServer(("127.0.0.1", 0), Exchange)
    server.lab = lab
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="lab")
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        lab.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def listening() -> Iterator[tuple[int, list[Any]]]:
    """A plain port, and the list of those who have connected to it."""
    visitors: list[Any] = []

    class Note(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            visitors.append(self.client_address)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Note) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_address[1], visitors
        server.shutdown()
        thread.join()
