"""The soak: everything at once for ten minutes, then a look at what is left of the service.

    python bench/soak.py                ten minutes; puts its figures into bench/RESULTS.md
    python bench/soak.py --seconds 30   a short one, as CI runs it; writes nothing

Readers, searchers, an MCP client and subscribers work without a pause while data files are replaced (by good
ones and by bad ones) and the daemon is killed and started again. Some subscribers fail now and then, one
always. Afterwards nothing unexpected may have been answered, memory and descriptors may not have grown, and
every living subscriber must have the newest content. The exit status is 1 when something is wrong.

Uses the Python that runs it for the daemon, the openssl program, and the standard library.

Sections: Figures - Subscribers - Service - Load - Disturbances - Verdict - Report
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import quantiles
from urllib.parse import parse_qs, urlencode, urlsplit

from sections import SOAK, put

PROJECT = Path(__file__).resolve().parent.parent
TOPICS = ("/feed.xml", "/api/feed.json", "/reviews.json")
FORM = "application/x-www-form-urlencoded"
PATIENCE_SECONDS = 60
CALM_SHARE = 0.3  # of the time, twice: without kills
MOST_GROWTH_BYTES = 16_000_000
MOST_GROWTH_DESCRIPTORS = 8

# ---- Figures ----


@dataclass
class Figures:
    """What happened. Every thread adds to it."""

    answers: Counter[str] = field(default_factory=Counter)  # by kind of request
    events: Counter[str] = field(default_factory=Counter)
    get_seconds: list[float] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, kind: str, seconds: float) -> None:
        """One expected answer."""
        with self.lock:
            self.answers[kind] += 1
            if kind != "subscription":
                self.get_seconds.append(seconds)

    def happened(self, event: str) -> None:
        """One disturbance or delivery."""
        with self.lock:
            self.events[event] += 1

    def wrong(self, what: str) -> None:
        """Something that should not be."""
        with self.lock:
            self.unexpected.append(what)


# ---- Subscribers: HTTPS on this machine, under an authority of our own ----

LIVING = {f"/{kind}-{number}": kind for kind in ("steady", "slow", "flaky") for number in range(6)}
DEAD = "/dead"
SLOW_SECONDS = 0.3
MOST_REFUSALS = 2  # in a row; the third would remove the subscription


class Subscribers(ThreadingHTTPServer):
    """All callbacks. `newest` is the last body that each path took."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, figures: Figures):
        super().__init__(("127.0.0.1", 0), Callback)
        self.figures = figures
        self.newest: dict[str, bytes] = {}
        self.refused: Counter[str] = Counter()  # deliveries of the living hub refused in a row, by path

    def hub_died(self) -> None:
        """Take the next hub's first delivery: what this one was told last, it may not have written down."""
        self.refused = Counter(dict.fromkeys(LIVING, MOST_REFUSALS))

    def handle_error(self, request: object, client_address: object) -> None:
        """A hub that was killed leaves its connections broken."""


class Callback(BaseHTTPRequestHandler):
    """One request of the hub."""

    server: Subscribers

    def setup(self) -> None:
        """Shake hands here and not while accepting, where it would hold up the others."""
        self.refused = self.server.refused  # now: when a dead hub's delivery is looked at, another may live
        self.request.do_handshake()
        super().setup()

    def do_GET(self) -> None:
        """Agree to everything."""
        query = parse_qs(urlsplit(self.path).query)
        if query["hub.mode"] == ["denied"]:
            self.server.figures.happened("removed after three failures")
        self._answer(200, query.get("hub.challenge", [""])[0].encode())

    def do_POST(self) -> None:
        """Take a delivery as the path's kind does."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = LIVING.get(self.path, "")
        if kind == "slow":
            time.sleep(SLOW_SECONDS)
        flaky = kind == "flaky" and self.refused[self.path] < MOST_REFUSALS
        fails = self.path == DEAD or (flaky and random.random() < 0.4)
        self.refused[self.path] = self.refused[self.path] + 1 if fails else 0
        self.server.figures.happened("deliveries refused" if fails else "deliveries taken")
        if not fails:
            self.server.newest[self.path] = body
        self._answer(500 if fails else 204)

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""


@contextmanager
def subscribers(figures: Figures, scratch: Path) -> Iterator[Subscribers]:
    """The callbacks, answering; their certificate, signed by itself, is `scratch/ca.pem`."""
    certificate, key = scratch / "ca.pem", scratch / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = Subscribers(figures)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


# ---- Service: the daemon, which may be killed ----


def lasting_port() -> int:
    """A free port that no outgoing connection takes while the daemon is down (ip(7), ip_local_port_range)."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", random.randint(10_000, 32_000)))
            port: int = probe.getsockname()[1]
            return port


class Service:
    """The daemon on a fixed port. `generation` counts its starts; requests that meet a kill are forgiven."""

    def __init__(self, scratch: Path, callbacks: Subscribers):
        self._callbacks = callbacks
        self._data = scratch / "data"
        shutil.copytree(PROJECT / "data", self._data)
        self.port = lasting_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.generation = 0
        self.up = threading.Event()
        self._command = [sys.executable, str(PROJECT / "reviewsd.py"), "--port", str(self.port)]
        self._command += ["--data", str(self._data), "--state-dir", str(scratch / "state")]
        self._command += ["--hub-allow-private", "--hub-ca-file", str(scratch / "ca.pem")]
        self._command += ["--reload-interval", "0.2", "--hub-retry-delays", "0.5,1", "--hub-timeout", "5"]
        self._log = (scratch / "log").open("a+b")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(self._command, stderr=self._log)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/healthz")[0] == 200:
                    self.up.set()
                    return process
            time.sleep(0.02)
        raise SystemExit(f"the daemon does not start:\n{self.log_end()}")

    def check_alive(self) -> None:
        """Raise SystemExit, with the end of the log, if it has ended by itself."""
        if (status := self._process.poll()) is not None:
            raise SystemExit(f"the daemon has ended with status {status}:\n{self.log_end()}")

    def log_end(self) -> str:
        """Its last words."""
        self._log.seek(0)
        return b"".join(self._log.readlines()[-40:]).decode(errors="replace")

    def kill(self) -> None:
        """End it as a power cut would, and start it again."""
        self.generation += 1
        self.up.clear()
        self._process.kill()
        self._process.wait()
        self._callbacks.hub_died()
        self._process = self._start()

    def hang_up(self) -> None:
        """Ask it to reload."""
        self._process.send_signal(signal.SIGHUP)

    def stop(self) -> int:
        """End it politely; its exit status."""
        self._process.terminate()
        try:
            return self._process.wait(PATIENCE_SECONDS)
        finally:
            self._process.kill()
            self._log.close()

    def replace(self, content: bytes) -> None:
        """Put a new reviews.json in the place of the old one, whole."""
        draft = self._data / "draft"
        draft.write_bytes(content)
        draft.rename(self._data / "reviews.json")

    def reviews(self) -> dict[str, list[dict[str, object]]]:
        """The sample, to make new files of."""
        document: dict[str, list[dict[str, object]]] = json.loads(
            (PROJECT / "data" / "reviews.json").read_bytes()
        )
        return document

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def health(self) -> dict[str, object]:
        """What /healthz says."""
        health: dict[str, object] = json.loads(self.ask("GET", "/healthz")[1])
        return health

    def resident_bytes(self) -> int:
        """Memory in use."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def descriptors(self) -> int:
        """Open files and sockets."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))


# ---- Load: what callers do, with the status that each must get ----

WORDS = ("back", "pain", "neck", "great", "massage", "wait", "the", "Tobias", "zzz", "é", "")


@dataclass(frozen=True)
class Call:
    """One request and the statuses that are right."""

    kind: str
    method: str
    path: str
    right: tuple[int, ...] = (200,)
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


def read() -> Call:
    """A dataset or a feed, sometimes conditional, sometimes compressed."""
    headers = random.choice(({}, {"Accept-Encoding": "gzip"}, {"If-None-Match": "*"}))
    right = (304,) if "If-None-Match" in headers else (200,)
    return Call("read", "GET", random.choice((*TOPICS, "/insights.json", "/")), right, headers=headers)


def search() -> Call:
    """A search of many kinds; one in five is wrong."""
    query = {
        "query": random.choice(WORDS),
        "min_rating": random.randint(1, 5),
        "limit": random.randint(1, 100),
    }
    if random.random() < 0.2:
        return Call("refused search", "GET", f"/api/reviews/search?{urlencode(query)}&rating=9&x=y", (400,))
    return Call("search", "GET", f"/api/reviews/search?{urlencode(query)}")


def since() -> Call:
    """A listing by date."""
    day = f"202{random.randint(2, 6)}-{random.randint(1, 12):02}-01"
    return Call("since", "GET", f"/api/reviews/since/{day}")


def stray() -> Call:
    """Something that there is not."""
    return Call("stray", random.choice(("GET", "PUT", "DELETE")), f"/{random.random()}", (404,))


def tool_call() -> Call:
    """An MCP tool, of either era."""
    tool, arguments = random.choice(
        (
            ("search_reviews", {"query": random.choice(WORDS), "limit": 5}),
            ("get_business", {}),
            ("get_faq", {"query": "park"}),
            ("get_technician", {"name": "nobody"}),
        )
    )
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return Call("tool call", "POST", "/mcp", body=json.dumps(message).encode(), headers=headers)


def subscription(callback: str, topic: str, mode: str = "subscribe") -> Call:
    """A request to the hub; `topic` is a URL."""
    fields = {"hub.mode": mode, "hub.topic": topic, "hub.callback": callback}
    return Call(
        "subscription",
        "POST",
        "/api/websub/hub",
        # 404: there is nothing to unsubscribe from; 429: this host has asked too much within a minute.
        (202, 404, 429) if mode == "unsubscribe" else (202, 429),
        urlencode(fields).encode(),
        {"Content-Type": FORM},
    )


CALLS = (read, read, search, search, since, stray, tool_call)


def call_until(
    stopped: threading.Event, service: Service, figures: Figures, make: Callable[[], Call]
) -> None:
    """Ask again and again. What a kill of the daemon breaks is asked again and counts for nothing."""
    while not stopped.is_set():
        service.up.wait(PATIENCE_SECONDS)
        generation, call, began = service.generation, make(), time.perf_counter()
        try:
            status, _ = service.ask(call.method, call.path, call.body, call.headers)
        except (OSError, http.client.HTTPException) as error:
            if generation == service.generation:
                figures.wrong(f"{call.kind} {call.path}: {error!r}")
            continue
        if status in call.right:
            figures.answered(call.kind, time.perf_counter() - began)
        elif generation == service.generation:
            figures.wrong(f"{call.kind} {call.path}: {status}")


# ---- Disturbances: what the operator and fate do ----


def good_file(service: Service, figures: Figures) -> None:
    """Another text in one review: new bytes of the same length, about."""
    document = service.reviews()
    document["reviews"][0]["text"] = f"Changed for the {random.getrandbits(64):016x}th time."
    service.replace(json.dumps(document).encode())
    figures.happened("good files")


def bad_file(service: Service, figures: Figures) -> None:
    """A broken file, until the daemon says so; then a good one."""
    service.replace(random.choice((b"", b"{", b'{"reviews": [{"rating": 9}]}', b"\xff\xfe")))
    figures.happened("bad files")
    wait_until(service, lambda: service.health()["status"] == "stale", figures, "a bad file was not noticed")
    good_file(service, figures)
    wait_until(service, lambda: service.health()["status"] == "ok", figures, "a good file was not noticed")


def hangup(service: Service, figures: Figures) -> None:
    """SIGHUP."""
    service.hang_up()
    figures.happened("SIGHUPs")


def kill(service: Service, figures: Figures) -> None:
    """SIGKILL, in the middle of whatever is going on."""
    good_file(service, figures)
    time.sleep(random.random() / 2)
    service.kill()
    figures.happened("SIGKILLs")


def wait_until(service: Service, true: Callable[[], bool], figures: Figures, otherwise: str) -> None:
    """Look again and again; note `otherwise` when it never comes true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        service.check_alive()
        if time.monotonic() > deadline:
            figures.wrong(otherwise)
            return
        time.sleep(0.05)


def disturb(
    service: Service, figures: Figures, seconds: float, kinds: tuple[Callable[..., None], ...]
) -> None:
    """One disturbance after another."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        service.check_alive()
        random.choice(kinds)(service, figures)
        time.sleep(random.random())


# ---- Verdict ----


@dataclass(frozen=True)
class Verdict:
    """What is left: memory and descriptors without load, before and after the last part."""

    resident_bytes: tuple[int, int]
    descriptors: tuple[int, int]
    exit_status: int


def soak(seconds: float, figures: Figures, scratch: Path) -> Verdict:
    """The whole course: first with kills, then twice without, so that growth can show."""
    with ExitStack() as stack:
        callbacks = stack.enter_context(subscribers(figures, scratch))
        service = Service(scratch, callbacks)
        stack.callback(service.stop)
        base = f"https://localhost:{callbacks.server_address[1]}"
        topic_of = {path: TOPICS[number % len(TOPICS)] for number, path in enumerate([*LIVING, DEAD])}
        for path, topic in topic_of.items():
            status, text = service.ask(*request_parts(subscription(base + path, service.url + topic)))
            if status != 202:
                figures.wrong(f"{path} may not subscribe: {text!r}")
        wait_until(service, lambda: active(service) == len(topic_of), figures, "not everyone was verified")

        def churn() -> Call:
            mode = random.choice(("subscribe", "unsubscribe"))
            return subscription(f"{base}/passing", service.url + TOPICS[0], mode)

        calm = (good_file, good_file, bad_file, hangup)
        with loaded(service, figures, churn):
            disturb(service, figures, seconds * (1 - 2 * CALM_SHARE), (*calm, kill))
            disturb(service, figures, seconds * CALM_SHARE, calm)  # until it has the memory that it needs
        rest(service, figures)
        before = service.resident_bytes(), service.descriptors()
        with loaded(service, figures, churn):
            disturb(service, figures, seconds * CALM_SHARE, calm)
        good_file(service, figures)
        rest(service, figures)
        after = service.resident_bytes(), service.descriptors()
        for path in LIVING:
            if callbacks.newest.get(path) != service.ask("GET", topic_of[path])[1]:
                figures.wrong(f"{path} has not the newest content of {topic_of[path]}")
        exit_status = service.stop()
    return Verdict((before[0], after[0]), (before[1], after[1]), exit_status)


def request_parts(call: Call) -> tuple[str, str, bytes | None, dict[str, str]]:
    """What `Service.ask` takes."""
    return call.method, call.path, call.body, call.headers


def active(service: Service) -> int:
    """Subscriptions that are verified."""
    counts = service.health()["subscriptions"]
    return int(counts["active"]) if isinstance(counts, dict) else 0


@contextmanager
def loaded(service: Service, figures: Figures, churn: Callable[[], Call]) -> Iterator[None]:
    """All callers at work inside the block."""
    stopped = threading.Event()

    def churn_slowly() -> Call:
        stopped.wait(1.5)  # more often, and the hub would rightly refuse
        return churn()

    makers: list[Callable[[], Call]] = [*CALLS, churn_slowly]
    threads = [
        threading.Thread(target=call_until, args=(stopped, service, figures, make), daemon=True)
        for make in makers
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)


def rest(service: Service, figures: Figures) -> None:
    """Until the daemon serves the newest file and every subscriber has it."""
    service.hang_up()
    time.sleep(1)

    def settled() -> bool:
        counts = service.health()["subscriptions"]
        return isinstance(counts, dict) and counts["behind"] == counts["pending"] == 0

    wait_until(service, settled, figures, "deliveries do not come to an end")


def faults(figures: Figures, verdict: Verdict) -> list[str]:
    """Everything that is wrong, in words."""
    found = list(figures.unexpected)
    grown = verdict.resident_bytes[1] - verdict.resident_bytes[0]
    if grown > MOST_GROWTH_BYTES:
        found.append(f"memory has grown by {grown / 1e6:.1f} MB")
    if verdict.descriptors[1] - verdict.descriptors[0] > MOST_GROWTH_DESCRIPTORS:
        found.append("descriptors: {} have become {}".format(*verdict.descriptors))
    if verdict.exit_status != 0:
        found.append(f"exit status {verdict.exit_status} after SIGTERM")
    if not figures.events["removed after three failures"]:
        found.append("the dead subscriber was never removed")
    return found


# ---- Report ----


def report(seconds: float, figures: Figures, verdict: Verdict) -> str:
    """The section of RESULTS.md."""
    cuts = quantiles(figures.get_seconds, n=100)
    requests = ", ".join(f"{count:,} x {kind}" for kind, count in figures.answers.most_common())
    events = ", ".join(f"{count:,} {event}" for event, count in figures.events.most_common())
    found = faults(figures, verdict)
    lines = [
        f"{SOAK}\n",
        f"Written by `python bench/soak.py` on {date.today().isoformat()}: {seconds:.0f} seconds,",
        f"{1 - 2 * CALM_SHARE:.0%} of them with SIGKILLs. Callers, subscribers and daemon share the",
        "machine, and callers ask as fast as they can, each request on a connection of its own: the",
        "latencies are those of a crowded machine.\n",
        f"- Answered as expected: {requests}.",
        f"- Meanwhile: {events}.",
        f"- Latency of reads and calls: {1000 * cuts[49]:.1f} ms at p50, {1000 * cuts[98]:.1f} ms at p99,"
        f" {1000 * max(figures.get_seconds):.0f} ms at most.",
        "- Memory without load: {:.1f} MB, and {:.1f} MB after the last part.".format(
            *(each / 1e6 for each in verdict.resident_bytes)
        ),
        "- Descriptors without load: {}, and {} after the last part.".format(*verdict.descriptors),
        f"- Every one of the {len(LIVING)} living subscribers has the newest content."
        if not any("newest" in fault for fault in found)
        else "- Not every living subscriber has the newest content.",
        f"- Unexpected: {'; '.join(found[:20]) or 'nothing'}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description="Try to wear reviewsd out.")
    parser.add_argument("--seconds", type=float, default=600, help="how long; default %(default)s")
    seconds = parser.parse_args().seconds
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="reviewsd-soak-") as scratch:
        verdict = soak(seconds, figures, Path(scratch))
    section = report(seconds, figures, verdict)
    print(section)
    if seconds >= 600:
        put(section)
    return 1 if faults(figures, verdict) else 0


if __name__ == "__main__":
    sys.exit(main())
