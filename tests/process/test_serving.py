"""The server withstands requests that are malformed, slow, huge or many. Most tests start the real daemon.

Sections: Requests - Bodies - Crowds - The bridge - Worker threads - Logs - Stops - Granian
"""

import ast
import asyncio
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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from lab.page_samples import SAMPLE, write_files
from lab.servers import memory_mb
from lab.services import (
    ROOT,
    STOP_SECONDS,
    Address,
    Process,
    daemon,
    fetch,
    running,
    running_daemon,
    started,
)
from lab.small_files import a_file, review

from reviewslib.messages import LARGEST_BODY_BYTES, Response
from reviewslib.process import (
    access_log,
    asgi,
    logs,
    serving,
    work_thread,
)
from reviewslib.process.bridge import Bridge


@pytest.fixture(scope="module")
def service() -> Iterator[Address]:
    with daemon() as address:
        yield address


IMPATIENT = """
import os
import reviewsd
from reviewslib.process import serving, settings
chosen, _ = settings.read_settings({"port": "0", "no_hub": "on"}, os.environ)
reviewsd.logging.basicConfig(level="INFO")
reviewsd.run(chosen, serving.Deadlines(body=1, response=2, silence=1))
"""


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """The daemon with short deadlines and two megabytes of reviews."""
    reviews = [review(str(number), text="x" * 1900) for number in range(1000)]
    data = write_files(tmp_path_factory.mktemp("impatient"), a_file(*reviews))
    with started(
        [sys.executable, "-c", IMPATIENT], PYTHONPATH=str(ROOT), REVIEWSD_DATA=str(data)
    ) as address:
        yield address


@pytest.fixture
def stub() -> Iterator[tuple[Address, Process]]:
    """The program `stub_service.py`."""
    with running(
        [sys.executable, str(ROOT / "tests" / "lab" / "stub_service.py")],
        PYTHONPATH=str(ROOT),
    ) as started:
        yield started


@contextmanager
def managed(
    directory: Path, *arguments: str, **environ: str
) -> Iterator[tuple[Callable[[], bytes], Address, Process]]:
    """The daemon, and a function that returns its next notification to the service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name := str(directory / "notify"))
        manager.settimeout(STOP_SECONDS)
        with running_daemon(*arguments, **environ, NOTIFY_SOCKET=name) as (
            service,
            process,
        ):
            yield lambda: manager.recv(4096), service, process


def connect(
    service: Address, request: bytes = b"", receive_buffer: int | None = None
) -> socket.socket:
    """A connection that has sent `request`."""
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(STOP_SECONDS)
    connection.connect(("127.0.0.1", service.port))
    connection.sendall(request)
    return connection


def keep_alive(line: str, *fields: str) -> bytes:
    """A request head with these fields and a Host; the version and line ends are added."""
    return "\r\n".join((f"{line} HTTP/1.1", "Host: a", *fields, "", "")).encode(
        "latin-1"
    )


def head(line: str, *fields: str) -> bytes:
    """The head of the last request on its connection."""
    return keep_alive(line, "Connection: close", *fields)


CHUNKED = "Transfer-Encoding: chunked"
JSON = "Content-Type: application/json"
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


def log_until_end(process: Process, number: signal.Signals = signal.SIGTERM) -> str:
    """What a service logs from this signal until it ends with status 0; SIGCONT does nothing."""
    process.send_signal(number)
    log = process.communicate(timeout=STOP_SECONDS)[1]
    assert (process.returncode, re.findall("Traceback|panic", log)) == (0, [])
    return log


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
        (
            head("POST /mcp", JSON, "Content-Length: 40", "Content-Length: 40") + PING,
            [200],
        ),
        (head("POST /", "Content-Length: -5") + b"hello", [400]),
        (head("POST /", "Content-Length: 99999999999999999999999") + b"hello", [400]),
        (head("POST /", "Transfer-Encoding: gzip") + b"hello", [400]),
        (head("GET http://elsewhere.example/reviews.json"), [200]),
        (
            head(
                "GET /",
                "Upgrade: websocket",
                "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: AAAA",
            ),
            [200],
        ),
        (head("GET /", "If-None-Match: \xff\xfe"), [200]),
        (head("GET /", "If_None_Match: *"), [200]),
        (
            b"".join(map(keep_alive, ("GET /x", "GET /", "PUT /"))) + head("GET /x"),
            [404, 200, 405, 404],
        ),
        (
            keep_alive("POST /", "Content-Length: 3", CHUNKED)
            + b"0\r\n\r\n"
            + head("GET /"),
            [405],
        ),
    ],
)
def test_raw_requests_get_defined_answers(
    service: Address, request_bytes: bytes, expected: list[int]
) -> None:
    answers = exchange(service, request_bytes)
    assert (statuses(answers), b"Traceback" in answers) == (expected, False)


# ---- Bodies ----


@pytest.mark.parametrize(
    "line", ["POST /mcp", "GET /reviews.json", "POST /api/websub/hub", "PUT /x"]
)
@pytest.mark.parametrize("fields", [[], ["Expect: 100-continue"]])
@pytest.mark.parametrize("length", ["65537", "9" * 18])
def test_a_body_that_announces_too_much_is_413_and_never_read(
    service: Address, line: str, fields: list[str], length: str
) -> None:
    answer = exchange(service, head(line, *fields, f"Content-Length: {length}"))
    assert (statuses(answer), b"100 Continue" in answer) == ([413], False)


def chunks(data: bytes, size: int) -> bytes:
    """The data in chunks of this size, without the last one, which is empty (RFC 9112 section 7.1)."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


LAST_CHUNK = b"0\r\n\r\n"
TOO_MANY = b"The body has more than 1000 chunks."


@pytest.mark.parametrize(
    ("line", "body", "status", "words"),
    [
        (
            "POST /mcp",
            chunks(bytes(LARGEST_BODY_BYTES), 8192) + LAST_CHUNK,
            400,
            b"-32700",
        ),
        (
            "POST /",
            chunks(bytes(LARGEST_BODY_BYTES + 1), 8192),
            413,
            b"The body is larger than 65536 bytes.",
        ),
        ("POST /mcp", chunks(PING.rjust(1000), 1) + LAST_CHUNK, 200, b'"result"'),
        ("POST /", chunks(bytes(4000), 1), 400, TOO_MANY),
        ("POST /", chunks(bytes(1001), 1) + LAST_CHUNK, 400, TOO_MANY),
        *[
            (
                "POST /",
                body,
                400,
                b'{"parameter":null,"value":"","message":"The body is incomplete',
            )
            for body in (b"zz\r\n", b"2\r\nabcdef\r\n")
        ],
    ],
)
def test_a_chunked_body_is_bounded_and_well_formed(
    service: Address, line: str, body: bytes, status: int, words: bytes
) -> None:
    answer = exchange(service, head(line, CHUNKED, JSON) + body)
    assert (statuses(answer), words in answer) == ([status], True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framing", "begun"), [("Content-Length: 100", b"x"), (CHUNKED, b"9\r\nx")]
)
def test_a_late_body_is_408_and_ends_the_connection(
    impatient: Address, framing: str, begun: bytes
) -> None:
    with connect(impatient, keep_alive("POST /", framing) + begun) as connection:
        answer = connection.makefile("rb").read()
    assert (
        statuses(answer),
        b"The body did not arrive within 1 seconds." in answer,
    ) == ([408], True)


# ---- Crowds ----


def allow_descriptors() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4000, hard), hard))


@pytest.mark.slow
def test_a_full_service_lets_others_wait_and_feeds_the_watchdog(tmp_path: Path) -> None:
    flags = ("--max-connections", "5")
    with (
        managed(tmp_path, *flags, WATCHDOG_USEC="100000") as (notified, service, _),
        ExitStack() as crowd,
    ):
        first, *_ = [crowd.enter_context(connect(service)) for _ in range(5)]
        waiting = crowd.enter_context(connect(service, head("GET /robots.txt")))
        while not notified().startswith(b"READY=1"):
            pass
        assert {notified() for _ in range(6)} == {b"WATCHDOG=1"}
        assert select.select([waiting], [], [], 0) == ([], [], [])
        first.close()
        assert waiting.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.slow
def test_peers_that_read_nothing_hold_little_memory_and_are_cut(
    impatient: Address,
) -> None:
    allow_descriptors()
    readers = 300
    descriptors = Path(f"/proc/{impatient.pid}/fd")
    fetch(impatient, "/reviews.json")
    before = memory_mb(impatient.pid)
    hung_up = select.poll()
    with ExitStack() as crowd:
        for _ in range(readers):
            hung_up.register(
                crowd.enter_context(
                    connect(impatient, head("GET /reviews.json"), 4096)
                ),
                0,
            )
        assert fetch(impatient, "/robots.txt").status == 200
        assert memory_mb(impatient.pid) - before < readers * 0.4
        deadline = (
            time.monotonic() + serving.Deadlines().silence
        )  # TCP's own timeout would be longer
        while len(list(descriptors.iterdir())) >= 100:
            assert time.monotonic() < deadline
            hung_up.poll(500)


@pytest.mark.slow
@pytest.mark.parametrize(("pause_seconds", "is_whole"), [(0.1, False), (0, True)])
def test_only_a_reader_too_slow_for_a_large_response_is_cut(
    impatient: Address, pause_seconds: float, is_whole: bool
) -> None:
    whole = fetch(impatient, "/reviews.json").body
    received = b""
    began = time.monotonic()
    with connect(impatient, head("GET /reviews.json"), 4096) as connection:
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


def bridge_to(
    make: Callable[[Any], Response], prepared: Response | None = None
) -> Bridge:
    """A bridge to an application that answers with `make`, unless it has a response.

    A refusal is its detail and headers. /store waits for the disk.
    """
    refuse = Mock(
        side_effect=lambda request, status, detail, headers: Response(
            status, headers, detail.encode()
        )
    )
    application: Any = Mock(
        prepared=Mock(return_value=prepared),
        respond=make,
        refuse=refuse,
        waits_for_disk=lambda request: request.path == "/store",
    )
    return Bridge(application, body_seconds=10, response_seconds=60)


async def sent(
    bridge: Bridge, path: str = "/", receive: Receive = stays
) -> list[dict[str, Any]]:
    """The messages of the response to a request of this peer."""
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    scope = {
        "method": "GET",
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": (),
        "http_version": "1",
    }
    await bridge(scope, receive, send)
    return messages


def body_of(messages: list[dict[str, Any]]) -> bytes | None:
    """The body of a response, or None if there was none."""
    return b"".join(message["body"] for message in messages[1:]) if messages else None


LARGE = Response(200, (), [memoryview(b"head"), memoryview(bytes(9_000_000))])


@pytest.mark.parametrize(
    ("prepared", "receive", "least", "most"),
    [
        pytest.param(LARGE, stays, 9_000_004, 9_000_004, id="peer stays"),
        pytest.param(LARGE, leaves, 0, 2_000_000, id="peer leaves"),
        pytest.param(None, seems_to_leave(), 9_000_004, 9_000_004, id="seems to leave"),
    ],
)
def test_a_large_response_is_sent_in_parts_until_the_peer_leaves(
    prepared: Response | None, receive: Receive, least: int, most: int
) -> None:
    bridge = bridge_to(lambda _: LARGE, prepared)

    _, *parts = asyncio.run(sent(bridge, "/", receive))

    sizes = [len(part["body"]) for part in parts]
    assert max(sizes) <= asgi.PART_BYTES
    assert least <= sum(sizes) <= most


# ---- Threads ----


def test_a_fault_in_the_application_ends_its_request_and_no_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes = iter([ZeroDivisionError, ZeroDivisionError, b"fine"])

    def respond(_: Any) -> Response:
        outcome = next(outcomes)
        if isinstance(outcome, bytes):
            return Response(200, (), outcome)
        raise outcome

    bridge = bridge_to(respond)

    async def three_requests() -> list[bytes | None]:
        return [body_of(await sent(bridge)) for _ in range(3)]

    assert asyncio.run(three_requests()) == [None, None, b"fine"]
    assert caplog.messages == ["a response could not be made"] * 2


def test_a_thread_keeps_nothing_of_a_request_that_is_over() -> None:
    class Body(bytearray):
        pass

    references: list[weakref.ref[Body]] = []

    def respond(_: Any) -> Response:
        references.append(weakref.ref(body := Body()))
        return Response(200, (), [memoryview(body)])

    async def forgotten() -> None:
        await sent(bridge_to(respond))
        async with asyncio.timeout(30):
            while references[0]():
                await asyncio.sleep(0)

    asyncio.run(forgotten())


class Crowd:
    """A request that holds the computing thread, and as many as may wait behind it."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.bridge = bridge_to(self.respond)

    def respond(self, request: Any) -> Response:
        self.made.append(request.path)
        if request.path == "/hold":
            self.begun.set()
            self.go_on.wait(30)
        return Response(200, (), request.path.encode())

    async def gather(self, receive: Receive) -> list[asyncio.Task[Any]]:
        """Fill every place; the peers that wait do as `receive`."""
        tasks = [asyncio.create_task(sent(self.bridge, "/hold"))]
        for _ in range(work_thread.MAX_WAITING - 1):
            task = asyncio.create_task(sent(self.bridge, "/waits", receive))
            tasks.append(task)
        await asyncio.to_thread(self.begun.wait, 30)
        return tasks


def test_beyond_a_hundred_requests_the_next_is_told_to_come_again() -> None:
    crowd = Crowd()

    async def one_more() -> list[dict[str, Any]]:
        tasks = await crowd.gather(stays)
        messages = await sent(crowd.bridge, "/one-more")
        crowd.go_on.set()
        await asyncio.gather(*tasks)
        return messages

    start, body = asyncio.run(one_more())
    assert start["status"] == 503
    assert (b"Retry-After", b"5") in start["headers"]
    assert body["body"] == b"Too many requests are waiting."
    assert "/one-more" not in crowd.made


def test_who_waits_for_the_disk_does_not_wait_for_the_processor() -> None:
    crowd = Crowd()

    async def store() -> bytes | None:
        tasks = await crowd.gather(stays)
        messages = await sent(crowd.bridge, "/store")
        crowd.go_on.set()
        await asyncio.gather(*tasks)
        return body_of(messages)

    assert asyncio.run(store()) == b"/store"


def test_what_nobody_waits_for_any_more_is_never_made() -> None:
    crowd = Crowd()

    async def left() -> None:
        hold, *abandoned = await crowd.gather(leaves)
        assert await asyncio.gather(*abandoned) == [[]] * len(abandoned)
        crowd.go_on.set()
        assert body_of(await hold) == b"/hold"
        assert body_of(await sent(crowd.bridge, "/last")) == b"/last"
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(left())
    assert crowd.made == ["/hold", "/last"]


# ---- Logs ----


def access_lines(log: str) -> list[str]:
    """The lines of requests, without time, level and milliseconds."""
    return re.findall(
        r"(?m)^[0-9-]+ [0-9:,]+ INFO (\S+ \S+ \S+ [0-9]{3} [0-9]+) [0-9]+\.[0-9]$", log
    )


def test_the_access_log_has_one_line_per_request_whatever_its_path() -> None:
    with running_daemon("--access-log") as (service, process):
        body = fetch(service, "/robots.txt?secret=1").body
        fetch(service, "/", "HEAD")
        for path in ("/caf\xc3\xa9\\x0a%0a\xc2\x85\xe2\x80\xa8", "/" + "y" * 2000):
            exchange(service, head(f"GET {path}"))
        with connect(service, HALF_BODY):
            assert (
                fetch(service, "/nothing").status == 404
            )  # by now the service waits for the other half
        log = log_until_end(process, signal.SIGINT)
    assert log.endswith(" INFO stopped\n"), "the log is flushed"
    lines = [line.removeprefix("127.0.0.1 ") for line in access_lines(log)]
    assert lines[:2] == [f"GET /robots.txt 200 {len(body)}", "HEAD / 200 0"]
    assert lines[2].startswith(r"GET /caf\xc3\xa9\x5cx0a%0a\xc2\x85\xe2\x80\xa8 404 ")
    assert lines[3].startswith(
        f"GET /{'y' * (access_log.MAX_LOGGED_PATH_BYTES - 1)} 404 "
    )
    nothing, half = sorted(lines[4:])
    assert (nothing[:17], half) == ("GET /nothing 404 ", "POST / 499 0")


def test_a_peer_that_leaves_before_its_response_is_noticed(
    stub: tuple[Address, Process],
) -> None:
    service, process = stub
    with connect(service, head("GET /hold")):
        fetch(service, "/")  # by now the service has read the request
    assert process.stderr
    assert any("GET /hold 499 0" in line for line in process.stderr), (
        "the job goes on for 30 seconds"
    )


def test_a_unix_socket_serves_in_place_of_a_stale_one(tmp_path: Path) -> None:
    path = tmp_path / "reviewsd.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    flags = ("--uds", str(path), "--base-url", "http://reviews.example", "--access-log")
    with (
        running_daemon(*flags) as (_, process),
        socket.socket(socket.AF_UNIX) as connection,
    ):
        assert path.stat().st_mode & 0o777 == 0o660
        connection.connect(str(path))
        connection.sendall(head("GET /reviews.json"))
        assert connection.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
        (line,) = access_lines(log_until_end(process))
    assert line.startswith("- GET /reviews.json 200 ")
    assert not path.exists()


# ---- Stops ----


@pytest.mark.slow
def test_a_hanging_crowd_delays_neither_others_nor_the_stop() -> None:
    allow_descriptors()
    with running_daemon() as (service, process), ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, keep_alive("GET /reviews.json") * 50):
            for _ in range(300):
                crowd.enter_context(connect(service, beginning))
        assert fetch(service, "/reviews.json").status == 200
        began = time.monotonic()
        assert "are closed" in log_until_end(process)
        assert time.monotonic() - began < 5 - logs.FLUSH_SECONDS


def test_a_running_request_is_finished_before_the_stop() -> None:
    with (
        running_daemon() as (service, process),
        connect(service, HALF_BODY) as connection,
    ):
        assert (
            fetch(service, "/healthz").status == 200
        )  # by now the service has read the head
        process.terminate()
        connection.sendall(b"12345678")
        assert (
            connection.makefile("rb").readline()
            == b"HTTP/1.1 405 Method Not Allowed\r\n"
        )
        assert process.wait(STOP_SECONDS) == 0


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (signal.SIGTERM, "/go-on"),
        (signal.SIGINT, "/go-on"),
        (signal.SIGCONT, "/signal"),
    ],
)
def test_the_port_stays_open_while_before_stop_runs_after_any_signal(
    stub: tuple[Address, Process], number: signal.Signals, path: str
) -> None:
    service, process = stub
    process.send_signal(number)
    assert fetch(service, path).status == 200
    assert "stopping True\n" in log_until_end(process, signal.SIGCONT)


@pytest.mark.slow
def test_a_hanging_job_delays_no_stop(stub: tuple[Address, Process]) -> None:
    service, process = stub
    with connect(service, head("GET /hold")):
        fetch(service, "/")  # by now the service has read the request
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0


def test_the_service_manager_is_told_every_state(tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    flags = (
        "--data",
        str(data),
        "--reload-interval",
        "3600",
    )  # so that only the signal causes a reload
    with (
        managed(tmp_path, *flags) as (notified, service, process),
        connect(service, HALF_BODY),
    ):
        serving_status = (
            "Serving 160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out"
        )
        assert notified().decode() == f"READY=1\nSTATUS={serving_status}"
        (data / "reviews.json").write_text("[]")
        process.send_signal(signal.SIGHUP)
        assert notified().startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert (
            notified()
            == b"READY=1\nSTATUS=Stale: reviews.json: an array is not an object"
        )
        process.terminate()
        assert notified() == b"STOPPING=1"
        process.terminate()
        assert process.wait(serving.STOP_SECONDS / 2) == -signal.SIGTERM, (
            "a second signal ends it at once"
        )


# ---- Granian: only its documented names, which new releases keep ----


def test_only_documented_names_of_granian_are_used() -> None:
    source = Path(serving.__file__).read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    imports = [
        node
        for node in nodes
        if isinstance(node, ast.ImportFrom) and "granian" in str(node.module)
    ]
    names = {alias.name for node in imports for alias in node.names}
    assert names == {"HTTPModes", "Interfaces", "HTTP1Settings", "LogLevels", "Server"}
    assert set(re.findall(r"\bserver\.\w+\(", source)) == {
        "server.serve(",
        "server.stop(",
    }
