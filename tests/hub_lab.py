"""What the hub's tests share: a clock to turn, topics, forms, callbacks in memory and real HTTPS ones."""

from __future__ import annotations

import hashlib
import socket
import socketserver
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import trustme

import hub
from callbacks import CallbackRequest, CallbackResponse
from hub_store import list_subscriptions

BASE_URL = "https://reviews.example"
FEED, JSON_FEED = "/feed.xml", "/api/feed.json"
FORM = "application/x-www-form-urlencoded"
PATIENCE_SECONDS = 30.0  # how long a test waits for what has to come; if all is well, much less


# ---- A hub, its topics and its subscribers in memory -------------------------------------------------------


class Clock:
    """Seconds since the epoch, when the test says so."""

    now = 1_800_000_000.0

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
    """The daemon's defaults, with changes."""
    defaults = {
        "base_url": BASE_URL,
        "user_agent": "lab/1.0",
        "lease_seconds": 864_000,
        "lease_min": 3600,
        "lease_max": 2_592_000,
        "retry_delays": (60.0, 3600.0),
        "timeout": 10.0,
        "workers": 16,
        "max_subscriptions": 10_000,
        "ca_file": None,
        "allow_private": False,
    }
    return hub.HubSettings(state_dir=state_dir, **defaults | changes)


def form(
    mode: str = "subscribe", callback: str = "https://s.example/cb", path: str = FEED, **more: str
) -> bytes:
    """A request; `secret` and `lease_seconds` get their prefix."""
    fields = {"hub.mode": mode, "hub.callback": callback, "hub.topic": BASE_URL + path}
    return urlencode(fields | {f"hub.{name}": value for name, value in more.items()}).encode()


def query(url: str) -> dict[str, str]:
    """The last value of each parameter."""
    parameters = parse_qs(urlsplit(url).query, keep_blank_values=True)
    return {name: values[-1] for name, values in parameters.items()}


Answer = Callable[[CallbackRequest], CallbackResponse]


def echo(request: CallbackRequest) -> CallbackResponse:
    """A callback that agrees to everything."""
    return CallbackResponse(200, "HTTP 200", query(request.url).get("hub.challenge", "").encode())


def status(code: int | None, **more: Any) -> Answer:
    """A callback that always answers the same, or with None never."""
    return lambda _: CallbackResponse(code, f"HTTP {code}" if code else "not reachable", **more)


class Callbacks:
    """Stands for the network: remembers what was sent, answers as told by method."""

    def __init__(self) -> None:
        self.sent: list[CallbackRequest] = []
        self.on_get: Answer = echo
        self.on_post: Answer = status(204)

    def __call__(self, request: CallbackRequest) -> CallbackResponse:
        self.sent.append(request)
        return self.on_get(request) if request.method == "GET" else self.on_post(request)

    @property
    def gets(self) -> list[dict[str, str]]:
        return [query(request.url) for request in self.sent if request.method == "GET"]

    @property
    def posts(self) -> list[CallbackRequest]:
        return [request for request in self.sent if request.method == "POST"]

    @property
    def contents(self) -> list[str]:
        return [(request.body or b"").decode() for request in self.posts]


def work(subject: hub.Hub) -> None:
    """Do all that is due now and what follows at once from it, without a thread."""
    for _ in range(10):
        for row in hub.startable(subject.due(), [], 1000):
            subject.perform(row)


class Bench:
    """A hub over one state directory, with a clock and callbacks in memory; it can be started anew."""

    def __init__(self, state_dir: Path, **changes: object):
        self.settings = settings(state_dir, **changes)
        self.clock = Clock()
        self.callbacks = Callbacks()
        self.topics = topics()
        self.hub = self.open()

    def open(self) -> hub.Hub:
        opened = hub.Hub(self.settings, clock=self.clock, send=self.callbacks)
        opened.publish(self.topics)
        return opened

    def restart(self) -> None:
        self.hub.stop(1)
        self.hub = self.open()

    def post(self, body: bytes, content_type: str | None = FORM) -> hub.HubAnswer:
        return self.hub.answer(content_type, body)

    def subscribe(self, **fields: str) -> None:
        """A subscription, verified."""
        assert self.post(form(**fields)).status == 202
        self.work()

    def change(self, text: str = "two", **more: str) -> None:
        """New content, delivered as far as the callbacks let it."""
        self.publish(text, **more)
        self.work()

    def publish(self, text: str = "two", **more: str) -> None:
        self.topics = topics(text, **more)
        self.hub.publish(self.topics)

    def work(self) -> None:
        work(self.hub)

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.work()

    @property
    def contents(self) -> list[str]:
        return self.callbacks.contents

    def states(self) -> list[tuple[str, int]]:
        listed = list_subscriptions(self.settings.state_dir, clock=self.clock)
        return [(line.state, line.failures) for line in listed]


# ---- Real HTTPS callbacks ----------------------------------------------------------------------------------


class Exchange(BaseHTTPRequestHandler):
    """One request to a callback, answered by the behaviour that the lab has for its method and path."""

    server: LabServer

    def setup(self) -> None:
        self.request.do_handshake()  # here and not in accept(), where it would hold up the others
        super().setup()

    def do_POST(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        lab = self.server.lab
        lab.arrive(Arrival(self.command, self.path, dict(self.headers.items()), body))(self)

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


def agree(exchange: Exchange) -> None:
    exchange.answer(200, query(exchange.path).get("hub.challenge", "").encode())


def hang(exchange: Exchange) -> None:
    exchange.server.lab.released.wait(PATIENCE_SECONDS)


def answer(code: int, body: bytes = b"", **headers: str) -> Behaviour:
    return lambda exchange: exchange.answer(code, body, **headers)


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


@dataclass
class Lab:
    """Subscribers on 127.0.0.1, behind certificates of a throw-away authority."""

    ca: trustme.CA
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


def here(_: str) -> list[str]:
    """A resolver for which every host is on this machine."""
    return ["127.0.0.1"]


@contextmanager
def open_lab(directory: Path) -> Iterator[Lab]:
    """A lab whose authority's certificate is a file in the directory."""
    lab = Lab(trustme.CA(), directory / "ca.pem")
    lab.ca.cert_pem.write_to_path(str(lab.ca_file))
    with serving(lab.ca, lab) as lab.port:
        yield lab


@contextmanager
def serving(ca: trustme.CA, lab: Lab) -> Iterator[int]:
    """An HTTPS server for the lab on a free port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("*.lab.example", "localhost", "127.0.0.1").configure_cert(context)
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
