"""For the tests of the hub: a settable clock, topics, forms, callbacks in memory and real HTTPS callbacks."""

from __future__ import annotations

import hashlib
import hmac
import resource
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
import trustme

import hub
import reviewsd
from reviewslib.process.settings import Settings
from reviewslib.websub.callback_messages import CallbackRequest, CallbackResponse
from reviewslib.websub.callbacks import CallbackClient, Resolve
from reviewslib.websub.forms import HubAnswer
from reviewslib.websub.order import DueRow
from reviewslib.websub.pools import Pool
from reviewslib.websub.rows import HubSettings, Row, Topic
from reviewslib.websub.store import StoreFault, list_rows

BASE_URL = "https://reviews.example"
FEED = "/feed.xml"
JSON_FEED = "/api/feed.json"
FORM = "application/x-www-form-urlencoded"
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
PATIENCE_SECONDS = (
    30.0  # how long a test waits for what has to come; if all is well, much less
)


# ---- A hub, its topics and its subscribers in memory -------------------------------------------------------


class Clock:
    """A clock that the test sets, in seconds since the epoch."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def topics(text: str = "one", **more: str) -> dict[str, Topic]:
    """Both topics; `feed` and `json` are in their contents."""
    made = {}
    for path, name, subtype in (
        (FEED, "feed", "atom+xml"),
        (JSON_FEED, "json", "json"),
    ):
        body = more.get(name, text).encode()
        made[path] = Topic(
            path, f"application/{subtype}", body, hashlib.sha256(body).hexdigest()
        )
    return made


def settings(state_dir: Path, **changes: Any) -> HubSettings:
    """The daemon's defaults, with changes."""
    return replace(
        reviewsd.hub_settings(Settings(state_dir=state_dir), BASE_URL), **changes
    )


def form(
    mode: str = "subscribe",
    callback: str = "https://s.example/cb",
    path: str = FEED,
    **more: str,
) -> bytes:
    """The form of a request; `secret` and `lease_seconds` get the prefix `hub.`."""
    fields = {"hub.mode": mode, "hub.callback": callback, "hub.topic": BASE_URL + path}
    return urlencode(
        fields | {f"hub.{name}": value for name, value in more.items()}
    ).encode()


def query(url: str) -> dict[str, str]:
    """The last value of each parameter."""
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))


Answer = Callable[[CallbackRequest], CallbackResponse]


def echoing(code: int, body: str) -> Answer:
    """A callback that always answers with this status and body, the challenge in place of {}."""

    def answer(request: CallbackRequest) -> CallbackResponse:
        challenge = query(request.url).get("hub.challenge", "")
        return CallbackResponse(
            code, f"HTTP {code}", body.replace("{}", challenge).encode()
        )

    return answer


echo = echoing(200, "{}")  # confirms every request and accepts every delivery


def status(code: int | None, **more: Any) -> Answer:
    """A callback that always answers with this status, or never if it is None."""
    return lambda _: CallbackResponse(
        code, f"HTTP {code}" if code else "not reachable", **more
    )


SILENCE = status(None)
OUTAGE = status(None, own_fault=True)


def signed(secret: str, text: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()


class HandPool(Pool[DueRow]):
    """A pool without threads: the test begins what the hub offers, when it likes."""

    def __init__(self, name: str, size: int, perform: Callable[[DueRow], None]):
        super().__init__(name, size, perform)
        self.offered: list[DueRow] = []
        self.begun: set[int] = set()

    def offer(self, jobs: Iterable[DueRow]) -> None:
        self.offered = list(jobs)

    def is_running(self, id: int) -> bool:
        return id in self.begun


class Bench:
    """A hub with a state directory, a settable clock and callbacks in memory; it can be restarted."""

    def __init__(self, state_dir: Path):
        self.settings = settings(state_dir)
        self.clock = Clock()
        self.running_time = Clock()
        # All that went to the callbacks, which answer as told here.
        self.sent: list[CallbackRequest] = []
        self.jitter = 1.0
        self.on_get: Answer = echo
        self.on_post: Answer = status(204)
        self.topics = topics()
        self.start()

    def start(self) -> None:
        self.hub = hub.Hub(
            self.settings,
            self.send,
            clock=self.clock,
            running_time=self.running_time,
            jitter=lambda: self.jitter,
            pool=HandPool,
        )
        self.hub.publish(self.topics)
        self.hub.scheduler.keep_up()

    def restart(self, **changes: object) -> None:
        """A new hub over the same store, perhaps with other settings."""
        self.hub.stop(1)
        self.settings = replace(self.settings, **changes)
        self.start()

    def send(self, request: CallbackRequest) -> CallbackResponse:
        self.sent.append(request)
        answer = self.on_get if request.method == "GET" else self.on_post
        return answer(request)

    def post(self, body: bytes, content_type: str | None = FORM) -> HubAnswer:
        return self.hub.answer(content_type, body)

    def subscribe(self, *names: str, **fields: str) -> None:
        """Subscriptions, each verified: of hosts below .example if they are named, otherwise of s.example."""
        for name in names or ("s",):
            callback = f"https://{name}.example/" if names else "https://s.example/cb"
            body = form(**{"callback": callback, **fields})
            assert self.post(body).status == 202
            self.work()

    def ask(self, *names: str, **fields: str) -> set[int]:
        """Requests of hosts below .example; the statuses of the answers."""
        return {
            self.post(form(callback=f"https://{name}.example/", **fields)).status
            for name in names
        }

    def change(self, text: str = "two", answer: Answer | None = None) -> None:
        """New content, delivered as far as the callbacks let it, perhaps with another answer from now on."""
        self.on_post = answer or self.on_post
        self.publish(text)
        self.work()

    def publish(self, text: str, **more: str) -> None:
        self.topics = topics(text, **more)
        self.hub.publish(self.topics)

    def due(self) -> list[DueRow]:
        """What is due, in its order: verifications, then deliveries."""
        self.hub.scheduler.offer_due()
        pools = self.hub.verifications, self.hub.deliveries
        return [due for pool in pools for due in offered(pool)]

    def perform(self, due: DueRow) -> None:
        """Make an exchange, as a thread of a pool does."""
        with self.begun(due):
            self.hub.exchanges.perform(due)

    @contextmanager
    def begun(self, due: DueRow) -> Iterator[None]:
        """An exchange that a thread has begun, and not ended."""
        running = self.hub.verifications
        assert isinstance(running, HandPool)
        running.begun.add(due.id)
        try:
            yield
        finally:
            running.begun.discard(due.id)

    def work(self) -> None:
        """Do all that is due now and what follows at once from it, without a thread."""
        for _ in range(1000):
            due = self.due()
            if not due:
                break
            for one in due:
                self.perform(one)
        self.hub.scheduler.keep_up()

    def wait(self, seconds: float) -> None:
        """Let time pass. The clock may be set back, and then only the clock."""
        self.clock.now += seconds
        self.running_time.now += max(0.0, seconds)
        self.work()

    @property
    def gets(self) -> list[dict[str, str]]:
        return [query(request.url) for request in self.sent if request.method == "GET"]

    @property
    def posts(self) -> list[CallbackRequest]:
        return [request for request in self.sent if request.method == "POST"]

    @property
    def contents(self) -> list[str]:
        return [(request.body or b"").decode() for request in self.posts]

    def rows(self, mode: str = "active") -> list[Row]:
        """The subscriptions, or the requests of a mode."""
        return [row for row in self.all_rows() if row.mode == mode]

    def all_rows(self) -> list[Row]:
        return list_rows(self.settings.state_dir)

    def states(self) -> list[tuple[str, int]]:
        """The mode of each row, and the failures of each subscription."""
        rows = list_rows(self.settings.state_dir)
        return [(row.mode, row.failures if row.mode == "active" else 0) for row in rows]

    def hosts(self, mode: str = "active") -> list[str]:
        return [row.host for row in self.rows(mode)]

    def subscription(self) -> Row:
        """The only one."""
        (row,) = self.rows()
        return row


def offered(pool: Pool[DueRow]) -> list[DueRow]:
    assert isinstance(pool, HandPool)
    return pool.offered


# ---- Real HTTPS callbacks ----------------------------------------------------------------------------------


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
    """One request to a callback, answered by the behaviour that the lab has for its method and path."""

    server: Lab

    def setup(self) -> None:
        self.request.do_handshake()  # here and not in accept(), where it would hold up the others
        super().setup()

    def do_POST(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = self.requestline.split(" ")[1]  # to the letter
        self.server.arrive(
            Arrival(self.command, target, dict(self.headers.items()), body)
        )(self)

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
        self.request.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.rfile.close()
        self.request.close()

    def log_message(self, *_: Any) -> None:
        pass


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
        self.released = threading.Event()  # lets go of what hangs
        self.ca = trustme.CA()
        self.ca_file = ca_file
        self.ca.cert_pem.write_to_path(str(ca_file))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert("*.lab.example", "localhost", "127.0.0.1").configure_cert(
            context
        )
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    def handle_error(self, *_: Any) -> None:
        pass  # callbacks that are cut off are what many tests are about

    def url(self, path: str, host: str = "s.lab.example") -> str:
        return f"https://{host}:{self.port}{path}"

    def on(self, method: str, path: str, *behaviours: Behaviour) -> None:
        """Set the behaviours of the next requests; the last one is used for all later requests."""
        self.behaviours[method, path] = list(behaviours)

    def arrive(self, arrival: Arrival) -> Behaviour:
        with self.changed:
            self.arrivals.append(arrival)
            self.changed.notify_all()
            left = self.behaviours.get((arrival.method, arrival.path), [agree])
            return left.pop(0) if len(left) > 1 else left[0]

    def posts(self, path: str | None = None) -> list[Arrival]:
        return [
            a for a in self.arrivals if a.method == "POST" and path in (None, a.path)
        ]

    def gets(self) -> list[dict[str, str]]:
        return [query(a.target) for a in self.arrivals if a.method == "GET"]

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


@contextmanager
def limited(limit: int) -> Iterator[None]:
    """This process gets no more of a resource of the module `resource`."""
    soft, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(limit, (soft, hard))


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
    """Requests of these callbacks, all of which are accepted, at a second attempt if the store is busy."""
    for callback in callbacks:
        body = form(callback=callback, **fields)
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while (
            answer := subject.answer(FORM, body)
        ).status == 503 and time.monotonic() < give_up_at:
            pass
        assert answer.status == 202, answer


def settled(subject: hub.Hub, **counts: int) -> Callable[[], bool]:
    def holds() -> bool:
        with suppress(StoreFault):  # a busy store is counted at the next attempt
            subject.scheduler.keep_up()
        return counts.items() <= subject.counts().items()

    return holds
