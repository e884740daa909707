"""The server withstands requests that are malformed, slow, huge or many. Most tests start the real daemon.

Sections: Requests - Bodies - Crowds - The bridge - Worker threads - Logs - Stops - Granian
"""

import ast
import asyncio
import os
import re
import resource
import select
import shutil
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from page_samples import SAMPLE, write_files
from servers import memory_mb, wait_for
from services import ROOT, STOP_SECONDS, Address, Process, daemon, fetch, running, running_daemon, started
from small_files import a_file, review

from reviewslib.process import logs, serving
from reviewslib.web.representations import LARGEST_BODY_BYTES, Response


@pytest.fixture(scope="module")
def service() -> Iterator[Address]:
    with daemon() as address:
        yield address


IMPATIENT = """
import os
import reviewsd
from reviewslib.process import logs, serving, settings
logs.start_log()
chosen, _ = settings.read_settings({"port": "0", "no_hub": "on"}, os.environ)
reviewsd.logging.getLogger().setLevel("INFO")
reviewsd.run(chosen, serving.Deadlines(body=1, response=2, silence=1))
"""


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """The daemon with short deadlines and two megabytes of reviews."""
    assert serving.Deadlines() == (10, 10, 60, 30), "the deadlines of the shipped daemon"
    data = write_reviews(tmp_path_factory.mktemp("impatient"), 1000, "x" * 1900)
    command = [sys.executable, "-c", IMPATIENT]
    with started(command, PYTHONPATH=str(ROOT), REVIEWSD_DATA=str(data)) as address:
        yield address


def write_reviews(directory: Path, count: int, text: str) -> Path:
    return write_files(directory, a_file(*(review(str(number), text=text) for number in range(count))))


def log_until_end(process: Process, number: signal.Signals = signal.SIGTERM) -> str:
    """What a service logs from this signal until it ends with status 0; SIGCONT does nothing."""
    process.send_signal(number)
    log = process.communicate(timeout=STOP_SECONDS)[1]
    assert (process.returncode, re.findall("Traceback|panic", log)) == (0, [])
    return log


@contextmanager
def managed(
    directory: Path, *arguments: str, **environ: str
) -> Iterator[tuple[socket.socket, Address, Process]]:
    """The service manager's socket `notify` in this directory, and the daemon that notifies it."""
    name = str(directory / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        manager.settimeout(STOP_SECONDS)
        with running_daemon(*arguments, **environ, NOTIFY_SOCKET=name) as (service, process):
            yield manager, service, process


def notification(manager: socket.socket) -> bytes:
    """The next notification that the service manager receives, other than those for the watchdog."""
    while (message := manager.recv(4096)) == b"WATCHDOG=1":
        pass
    return message


@pytest.fixture
def stub() -> Iterator[tuple[Address, Process]]:
    """The program `stub_service.py`."""
    with running([sys.executable, str(ROOT / "tests" / "stub_service.py")], PYTHONPATH=str(ROOT)) as started:
        yield started


def connect(service: Address, request: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=STOP_SECONDS)
    connection.sendall(request)
    return connection


def keep_alive(line: str, *fields: str) -> bytes:
    """A request head with these fields and a Host; the version and line ends are added."""
    return "\r\n".join((f"{line} HTTP/1.1", "Host: a", *fields, "", "")).encode("latin-1")


def head(line: str, *fields: str) -> bytes:
    """The head of the last request on its connection."""
    return keep_alive(line, "Connection: close", *fields)


CHUNKED, JSON = "Transfer-Encoding: chunked", "Content-Type: application/json"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
HALF_HEAD = b"GET /reviews.json HT"
HALF_BODY = head("POST /", "Content-Length: 9") + b"x"


def exchange(service: Address, request: bytes) -> bytes:
    """The bytes until the service closes the connection, in half of the time that a body may take."""
    with connect(service, request) as connection:
        connection.settimeout(serving.Deadlines().body / 2)
        return connection.makefile("rb").read()


def statuses(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] ([0-9]{3}) ", answers)]


def ask_without_reading(service: Address, path: str = "/reviews.json") -> socket.socket:
    """A connection with a small receive buffer that has sent a request, by default for all reviews."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", service.port))
    connection.sendall(head(f"GET {path}"))
    return connection


# ---- Requests: RFC 9112 ----


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"GARBAGE\r\n\r\n", [400]),
        (b"GET /healthz HTTP/1.0\r\n\r\n", [200]),
        (b"GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", [400]),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", [400]),
        *[(head("GET /", f"Host: {again}"), [400]) for again in ("a", "")],
        (head("OPTIONS *"), [204]),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []),
        (head("GET /", "Bad Header: x"), [400]),
        (head("GET /", "X: a\0b"), [400]),
        (head("GET /rev\0iews.json"), [400]),
        (head("GET /api/reviews/search?query=\xff\xfe"), [400]),
        (head("GET /" + "a" * 20_000), [431]),
        (head("GET /", "X: " + "a" * 20_000), [431]),
        (head("GET /", *["X: y"] * 1000), [431]),
        (head("POST /", "Content-Length: 5", "Content-Length: 6") + b"hello", [400]),
        (head("POST /mcp", JSON, "Content-Length: 40", "Content-Length: 40") + PING, [200]),
        (head("POST /", "Content-Length: -5") + b"hello", [400]),
        (head("POST /", "Content-Length: 99999999999999999999999") + b"hello", [400]),
        (head("POST /", "Transfer-Encoding: gzip") + b"hello", [400]),
        (head("GET http://elsewhere.example/reviews.json"), [200]),
        (head("GET /", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA"), [200]),
        (head("GET /", "If-None-Match: \xff\xfe"), [200]),
        (head("GET /", "If_None_Match: *"), [200]),
        (b"".join(map(keep_alive, ("GET /x", "GET /", "PUT /"))) + head("GET /x"), [404, 200, 405, 404]),
        (keep_alive("POST /", "Content-Length: 3", CHUNKED) + b"0\r\n\r\n" + head("GET /"), [405]),
    ],
)  # fmt: skip
def test_raw_requests_get_defined_answers(
    service: Address, request_bytes: bytes, expected: list[int]
) -> None:
    answers = exchange(service, request_bytes)
    assert (statuses(answers), b"Traceback" in answers) == (expected, False)


# ---- Bodies ----


@pytest.mark.parametrize(
    "line", ["POST /mcp", "GET /reviews.json", "GET /mcp", "POST /api/websub/hub", "PUT /x"]
)
@pytest.mark.parametrize("fields", [[], ["Expect: 100-continue"]])
@pytest.mark.parametrize("length", ["1000000000000", "65537", "9" * 18])
def test_a_body_that_announces_too_much_is_413_and_never_read(
    service: Address, line: str, fields: list[str], length: str
) -> None:
    answer = exchange(service, head(line, *fields, f"Content-Length: {length}"))
    assert (statuses(answer), b"100 Continue" in answer) == ([413], False)


def chunks(data: bytes, size: int) -> bytes:
    """The data in chunks of this size, without the last one, which is empty (RFC 9112 section 7.1)."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


@pytest.mark.parametrize(
    ("line", "body", "status", "words"),
    [
        ("POST /mcp", chunks(bytes(LARGEST_BODY_BYTES), 8192) + b"0\r\n\r\n", 400, b"-32700"),
        ("POST /", chunks(bytes(LARGEST_BODY_BYTES + 1), 8192), 413, b"The body is larger than 65536 bytes."),
        ("POST /mcp", chunks(PING.rjust(1000), 1) + b"0\r\n\r\n", 200, b'"result"'),
        ("POST /", chunks(bytes(4000), 1), 400, b"The body has more than 1000 chunks."),
        ("POST /", chunks(bytes(1001), 1) + b"0\r\n\r\n", 400, b"The body has more than 1000 chunks."),
        *[(f"POST {path}", body, 400, b'{"parameter":null,"value":"","message":"The body is incomplete')
          for path in ("/", "/api/reviews/search") for body in (b"zz\r\n", b"2\r\nabcdef\r\n")],
    ],
)  # fmt: skip
def test_a_chunked_body_is_bounded_and_well_formed(
    service: Address, line: str, body: bytes, status: int, words: bytes
) -> None:
    answer = exchange(service, head(line, CHUNKED, JSON) + body)
    assert (statuses(answer), words in answer) == ([status], True)


@pytest.mark.slow
def test_a_late_body_is_408_and_ends_the_connection(impatient: Address) -> None:
    with ExitStack() as opened:
        connections = [
            opened.enter_context(connect(impatient, keep_alive("POST /", framing) + begun))
            for framing in ("Content-Length: 100", CHUNKED)
            for begun in (b"9\r\nonly this\r\n", b"")
        ]
        for connection in connections:
            answer = connection.makefile("rb").read()
            assert (statuses(answer), b'"status":408' in answer) == ([408], True)


# ---- Crowds ----


def allow_descriptors() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4000, hard), hard))


def test_gets_are_answered_beside_hundreds_of_slow_connections(service: Address) -> None:
    allow_descriptors()
    with ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, b""):
            for _ in range(330):
                crowd.enter_context(connect(service, beginning))
        assert fetch(service, "/reviews.json").status == 200


@pytest.mark.slow
def test_a_full_service_lets_others_wait_and_feeds_the_watchdog(tmp_path: Path) -> None:
    flags = ("--max-connections", "5")
    with managed(tmp_path, *flags, WATCHDOG_USEC="100000") as (manager, service, _), ExitStack() as crowd:
        first, *_ = [crowd.enter_context(connect(service)) for _ in range(5)]
        waiting = crowd.enter_context(connect(service, head("GET /robots.txt")))
        assert notification(manager).startswith(b"READY=1")
        assert {manager.recv(4096) for _ in range(6)} == {b"WATCHDOG=1"}
        assert select.select([waiting], [], [], 0) == ([], [], [])
        first.close()
        assert waiting.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.slow
def test_peers_that_read_nothing_hold_little_memory_and_are_cut(impatient: Address) -> None:
    allow_descriptors()
    readers, descriptors = 300, Path(f"/proc/{impatient.pid}/fd")
    fetch(impatient, "/reviews.json")
    before, hung_up = memory_mb(impatient.pid), select.poll()
    with ExitStack() as crowd:
        for _ in range(readers):
            hung_up.register(crowd.enter_context(ask_without_reading(impatient)), 0)
        assert fetch(impatient, "/robots.txt").status == 200
        assert memory_mb(impatient.pid) - before < readers * 0.4
        deadline = time.monotonic() + serving.Deadlines().silence  # TCP's own timeout would be longer
        while len(list(descriptors.iterdir())) >= 100:
            assert time.monotonic() < deadline
            hung_up.poll(500)


@pytest.mark.slow
@pytest.mark.parametrize(("pause_seconds", "is_whole"), [(0.1, False), (0, True)])
def test_only_a_reader_too_slow_for_a_large_response_is_cut(
    impatient: Address, pause_seconds: float, is_whole: bool
) -> None:
    whole, received, began = fetch(impatient, "/reviews.json").body, b"", time.monotonic()
    with ask_without_reading(impatient) as connection:
        while piece := connection.recv(65536):
            received += piece
            time.sleep(pause_seconds if time.monotonic() < began + 3 else 0)
    assert (received.partition(b"\r\n\r\n")[2] == whole) is is_whole


# ---- The bridge: one response to a request, and peers that stay or leave ----

Receive = Callable[[], Any]


async def stays() -> dict[str, Any]:
    """A peer that waits for its response."""
    await asyncio.Event().wait()
    return {}


async def leaves() -> dict[str, Any]:
    return {"type": "http.disconnect"}


def seems_to_leave() -> Receive:
    """A peer that stays. After a cancelled wait for its disconnect, Granian says that the peer has left."""
    waits = iter((stays,))
    return lambda: next(waits, leaves)()


def bridge_to(*answers: Any) -> serving.Bridge:
    application: Any = Mock(respond=Mock(side_effect=answers))
    return serving.Bridge(application, frozenset(), serving.Deadlines())


async def sent(bridge: serving.Bridge, receive: Receive = stays) -> list[bytes]:
    """The parts of the body of the next response, which answers a request of this peer."""
    parts: list[bytes] = []

    async def send(message: dict[str, Any]) -> None:
        parts.append(message.get("body", b""))

    scope = {"method": "GET", "raw_path": b"/", "query_string": b"", "headers": (), "http_version": "1.1"}
    await bridge(scope, receive, send)
    return parts


LARGE = Response(200, (), [memoryview(b"head"), memoryview(bytes(9_000_000))])


@pytest.mark.parametrize(
    ("answer", "receive", "least", "most"),
    [(LARGE, stays, 9_000_004, 9_000_004), (LARGE, leaves, 0, 2_000_000),
     (lambda: LARGE, seems_to_leave(), 9_000_004, 9_000_004)],
)  # fmt: skip
def test_a_large_response_is_sent_in_parts_until_the_peer_leaves(
    answer: Any, receive: Receive, least: int, most: int
) -> None:
    parts = asyncio.run(sent(bridge_to(answer), receive))
    assert max(map(len, parts)) <= serving.PART_BYTES
    assert least <= sum(map(len, parts)) <= most


# ---- Worker threads ----


def test_a_fault_of_a_job_ends_its_request_and_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    bridge = bridge_to(*[lambda: 1 / 0] * 3, lambda: Response(200, (), b"fine"))

    async def requests() -> list[list[bytes]]:
        return [await sent(bridge) for _ in range(4)]

    assert asyncio.run(requests()) == [[], [], [], [b"", b"fine"]]
    logged = [record.getMessage() for record in caplog.records if record.name == "reviewsd.serving"]
    assert logged == ["a response could not be made"] * 3


def test_a_job_that_outlives_its_event_loop_ends_no_thread() -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()
    bridge = bridge_to(*[lambda: begun.release() or go_on.wait(30)] * 4)

    async def begin_two_jobs() -> None:
        requests = [asyncio.ensure_future(sent(bridge)) for _ in range(2)]
        await asyncio.sleep(0)
        assert begun.acquire(timeout=30) and begun.acquire(timeout=30)
        assert not any(request.done() for request in requests)

    asyncio.run(begin_two_jobs())
    go_on.set()
    asyncio.run(begin_two_jobs())


def test_worker_threads_keep_nothing_of_a_request_that_is_over() -> None:
    class Body(bytearray):
        pass

    async def forgotten() -> None:
        body = Body()
        reference = weakref.ref(body)
        bridge = bridge_to(lambda body=body: Response(200, (), [memoryview(body)]))  # type: ignore[misc]
        await sent(bridge)
        del body
        async with asyncio.timeout(30):
            while reference():
                await asyncio.sleep(0)

    asyncio.run(forgotten())


def test_a_hundred_requests_wait_and_abandoned_ones_are_never_made(stub: tuple[Address, Process]) -> None:
    service, _ = stub

    def wait_for_state(made: list[str], left: int) -> None:
        state = f"{made} {left}".encode()
        wait_for(str(state), lambda: fetch(service, "/state").body == state)

    with ExitStack() as crowd:
        holding = [crowd.enter_context(ask_without_reading(service, "/hold")) for _ in range(2)]
        wait_for_state(made := ["/hold"] * 2, 0)
        waiting = serving.MAX_JOBS - len(holding)
        with ExitStack() as abandoned:
            for _ in range(waiting):
                abandoned.enter_context(ask_without_reading(service, "/abandoned"))
            refused = fetch(service, "/one-more")
            assert (refused.status, refused.headers["retry-after"]) == (503, "5")
            assert fetch(service, "/store").body == b"/store", "the store has a thread of its own"
        wait_for_state([*made, "/store"], waiting)
        fetch(service, "/go-on")
        assert [connection.recv(15) for connection in holding] == [b"HTTP/1.1 200 OK"] * 2
        assert fetch(service, "/last").status == 200
        wait_for_state([*made, "/store", "/last"], waiting)


# ---- Logs ----


def access_lines(log: str) -> list[str]:
    """The lines of requests, without time, level and milliseconds."""
    return re.findall(r"(?m)^[0-9-]+ [0-9:,]+ INFO (\S+ \S+ \S+ [0-9]{3} [0-9]+) [0-9]+\.[0-9]$", log)


def test_a_log_that_nobody_reads_blocks_neither_responses_nor_the_stop() -> None:
    with running_daemon("--access-log") as (service, process):
        assert process.stderr
        pipe = os.open(f"/proc/self/fd/{process.stderr.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
        with suppress(BlockingIOError):
            while True:
                os.write(pipe, b"x" * 4096)
        os.close(pipe)
        process.send_signal(signal.SIGHUP)  # a reload logs a line
        assert [fetch(service, "/robots.txt").status for _ in range(20)] == [200] * 20
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0


def test_the_access_log_has_one_line_per_request_whatever_its_path() -> None:
    with running_daemon("--access-log") as (service, process):
        body = fetch(service, "/robots.txt?secret=1").body
        fetch(service, "/", "HEAD")
        for path in ("/caf\xc3\xa9\\x0a%0a\xc2\x85\xe2\x80\xa8", "/" + "y" * 2000):
            exchange(service, head(f"GET {path}"))
        with connect(service, HALF_BODY):
            assert fetch(service, "/nothing").status == 404  # by now the service waits for the other half
        log = log_until_end(process, signal.SIGINT)
    assert log.endswith(" INFO stopped\n"), "the log is flushed"
    lines = [line.removeprefix("127.0.0.1 ") for line in access_lines(log)]
    assert lines[:2] == [f"GET /robots.txt 200 {len(body)}", "HEAD / 200 0"]
    assert lines[2].startswith(r"GET /caf\xc3\xa9\x5cx0a%0a\xc2\x85\xe2\x80\xa8 404 ")
    assert lines[3].startswith(f"GET /{'y' * (serving.MAX_LOGGED_PATH_BYTES - 1)} 404 ")
    nothing, half = sorted(lines[4:])
    assert (nothing[:17], half) == ("GET /nothing 404 ", "POST / 499 0")


def test_a_unix_socket_serves_in_place_of_a_stale_one(tmp_path: Path) -> None:
    path = tmp_path / "reviewsd.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    flags = ("--uds", str(path), "--base-url", "http://reviews.example", "--access-log")
    with running_daemon(*flags) as (_, process), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(head("GET /reviews.json"))
        assert connection.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
        (line,) = access_lines(log_until_end(process))
    assert line.startswith("- GET /reviews.json 200 ")
    assert not path.exists()


# ---- Stops ----


@pytest.mark.slow
def test_hanging_peers_delay_no_stop() -> None:
    with running_daemon() as (service, process), ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, keep_alive("GET /reviews.json") * 50):
            crowd.enter_context(connect(service, beginning))
        assert fetch(service, "/healthz").status == 200
        began = time.monotonic()
        assert "are closed" in log_until_end(process)
        assert time.monotonic() - began < 5 - logs.FLUSH_SECONDS


@pytest.mark.slow
def test_a_running_reload_delays_no_stop(tmp_path: Path) -> None:
    write_reviews(tmp_path, 10_000, "word " * 50)
    with managed(tmp_path, "--data", str(tmp_path)) as (manager, _, process):
        assert notification(manager).startswith(b"READY=1")
        process.send_signal(signal.SIGHUP)
        assert notification(manager).startswith(b"RELOADING=1")
        log_until_end(process)


def test_a_running_request_is_finished_before_the_stop() -> None:
    with running_daemon() as (service, process), connect(service, HALF_BODY) as connection:
        assert fetch(service, "/healthz").status == 200  # by now the service has read the head
        process.terminate()
        connection.sendall(b"12345678")
        assert connection.makefile("rb").readline() == b"HTTP/1.1 405 Method Not Allowed\r\n"
        assert process.wait(STOP_SECONDS) == 0


def test_the_port_stays_open_while_before_stop_runs(stub: tuple[Address, Process]) -> None:
    service, process = stub
    process.terminate()
    assert fetch(service, "/go-on").status == 200
    assert "stopping True\n" in log_until_end(process, signal.SIGCONT)


def test_a_signal_that_another_thread_takes_ends_an_idle_service(stub: tuple[Address, Process]) -> None:
    service, process = stub
    assert fetch(service, "/signal").status == 200
    assert "stopping True\n" in log_until_end(process, signal.SIGCONT)


@pytest.mark.slow
def test_a_hanging_job_delays_no_stop(stub: tuple[Address, Process]) -> None:
    service, process = stub
    with ask_without_reading(service, "/hold"):
        wait_for("job", lambda: fetch(service, "/state").body == b"['/hold'] 0")
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0


def test_the_service_manager_is_told_every_state(tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    flags = ("--data", str(data), "--reload-interval", "3600")  # so that only the signal causes a reload
    with managed(tmp_path, *flags) as (manager, service, process), connect(service, HALF_BODY):
        serving_status = "Serving 160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out"
        assert notification(manager).decode() == f"READY=1\nSTATUS={serving_status}"
        (data / "reviews.json").write_text("[]")
        process.send_signal(signal.SIGHUP)
        assert notification(manager).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert notification(manager) == b"READY=1\nSTATUS=Stale: reviews.json: an array is not an object"
        process.terminate()
        assert notification(manager) == b"STOPPING=1"
        process.terminate()
        assert process.wait(serving.STOP_SECONDS / 2) == -signal.SIGTERM, "a second signal ends it at once"


# ---- Granian: only its documented names, which new releases keep ----


def test_only_documented_names_of_granian_are_used() -> None:
    nodes = list(ast.walk(ast.parse(Path(serving.__file__).read_text(encoding="utf-8"))))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    of_granian = [node for node in imports if str(node.module).split(".")[0] == "granian"]
    names = {alias.name for node in of_granian for alias in node.names}
    assert names == {"HTTPModes", "Interfaces", "HTTP1Settings", "LogLevels", "Server"}
    attributes = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    of_the_server = {attribute for attribute in attributes if attribute.startswith("server.")}
    assert of_the_server == {"server.serve", "server.stop"}
