"""The server withstands requests that are malformed, slow, huge or many. Most tests start the real daemon.

Raw requests - Bodies - Crowds - Large responses and worker threads - Log - Starting and stopping -
Service manager - Granian
"""

import ast
import asyncio
import contextlib
import http.client
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from page_samples import write_files
from servers import memory_mb, wait_for
from services import (
    ROOT,
    SAMPLE,
    STOP_SECONDS,
    Address,
    Process,
    daemon,
    daemon_command,
    fetch,
    run_daemon,
    running,
    started,
)
from small_files import a_file, review

from reviewslib.process import logs, serving
from reviewslib.web.representations import LARGEST_BODY_BYTES, Request, Response


@pytest.fixture(scope="module")
def service() -> Iterator[Address]:
    with daemon() as address:
        yield address


IMPATIENT = """
import os
import reviewsd
from reviewslib.process import logs, serving, settings
logs.start_log()
chosen, _ = settings.read_settings({"port": "0", "no_hub": "on", "log_level": "info"}, os.environ)
reviewsd.logging.getLogger().setLevel("INFO")
reviewsd.run(chosen, serving.Deadlines(body=1, response=2, silence=1))
"""


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """The daemon with short deadlines and two megabytes of reviews."""
    assert serving.Deadlines() == (10, 10, 60, 30), "what they are for its users"
    data = tmp_path_factory.mktemp("impatient")
    write_reviews(data, 1000, "x" * 1900)
    command = [sys.executable, "-c", IMPATIENT]
    with started(command, PYTHONPATH=str(ROOT), REVIEWSD_DATA=str(data)) as address:
        yield address


def running_daemon(*arguments: str, **variables: str) -> AbstractContextManager[tuple[Address, Process]]:
    """The daemon on a free port, which the test stops."""
    return running(daemon_command("--port", "0", *arguments), **variables)


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


def told(manager: socket.socket) -> bytes:
    """The next notification of the service manager that is not one of the watchdog."""
    while (message := manager.recv(4096)) == b"WATCHDOG=1":
        pass
    return message


def stopped(process: Process) -> int:
    """The exit status after SIGTERM."""
    process.terminate()
    return process.wait(STOP_SECONDS)


def stub_service(application: str) -> AbstractContextManager[tuple[Address, Process]]:
    """The program `stub_service.py` with one of its applications."""
    command = [sys.executable, str(ROOT / "tests" / "stub_service.py"), application]
    return running(command, PYTHONPATH=str(ROOT))


def connect(service: Address) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=30)


def head(line: str, *fields: str) -> bytes:
    """A request head with these fields and a Host; the version and line ends are added."""
    return "\r\n".join((f"{line} HTTP/1.1", "Host: a", *fields, "", "")).encode("latin-1")


def closing_get(path: str) -> bytes:
    return head(f"GET {path}", "Connection: close")


CHUNKED, JSON = "Transfer-Encoding: chunked", "Content-Type: application/json"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def ask_without_reading(service: Address, path: str = "/reviews.json") -> socket.socket:
    """A connection with a small receive buffer that has sent a request, by default for all reviews."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", service.port))
    connection.sendall(closing_get(path))
    return connection


def exchange(service: Address, request: bytes) -> bytes:
    """The bytes that come back until the service closes the connection or sends nothing for 0.3 seconds."""
    with connect(service) as connection:
        connection.sendall(request)
        answer = connection.recv(65536)
        connection.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while chunk := connection.recv(65536):
                answer += chunk
        return answer


def whole_answer(service: Address, request: bytes) -> bytes:
    """The bytes until the service closes the connection, which is before the deadline of a body."""
    with connect(service) as connection:
        connection.settimeout(serving.Deadlines().body / 2)
        connection.sendall(request)
        return connection.makefile("rb").read()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def write_reviews(directory: Path, count: int, text: str) -> None:
    write_files(directory, a_file(*(review(str(number), text=text) for number in range(count))))


# ---- Raw requests: RFC 9112 ----


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (head("GET /reviews.json", "Bad Header: x"), 400),
        (head("GET /reviews.json", "X: a\0b"), 400),
        (head("GET /rev\0iews.json"), 400),
        (head("GET /api/reviews/search?query=\xff\xfe"), 400),
        (head("GET /" + "a" * 20_000), 431),
        (head("GET /", "X: " + "a" * 20_000), 431),
        (head("GET /", *["X: y"] * 1000), 431),
        (head("POST /", "Content-Length: 5", "Content-Length: 6") + b"hello", 400),
        (head("POST /mcp", JSON, "Content-Length: 40", "Content-Length: 40") + PING, 200),
        (head("POST /", "Content-Length: -5") + b"hello", 400),
        (head("POST /", "Content-Length: 99999999999999999999999") + b"hello", 400),
        (head("POST /", "Transfer-Encoding: gzip") + b"hello", 400),
        (head("GET http://elsewhere.example/reviews.json"), 200),
        (head("GET /reviews.json", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
              "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="), 200),
        (head("GET /reviews.json", "If-None-Match: \xff\xfe"), 200),
    ],
)  # fmt: skip
def test_a_raw_request_gets_a_defined_answer(service: Address, request_bytes: bytes, expected: int) -> None:
    answer = exchange(service, request_bytes)
    assert status(answer) == expected
    assert b"Traceback" not in answer


def test_the_server_does_not_speak_http_2(service: Address) -> None:
    assert exchange(service, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == b""


def test_a_request_with_two_lengths_ends_its_connection(service: Address) -> None:
    smuggling = head("POST /", "Content-Length: 3", CHUNKED) + b"0\r\n\r\n" + head("GET /reviews.json")
    assert exchange(service, smuggling).count(b"HTTP/1.1 ") == 1


def test_pipelined_requests_are_answered_in_order(service: Address) -> None:
    first = [head(f"GET {path}") for path in ("/nothing", "/reviews.json", "/api/reviews/since/x")]
    answers = exchange(service, b"".join([*first, closing_get("/nothing")]))
    assert re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", answers) == [b"404", b"200", b"400", b"404"]


# ---- Bodies ----


def test_a_body_may_have_64_kib(service: Address) -> None:
    assert fetch(service, "/mcp", "POST", b"x" * LARGEST_BODY_BYTES).status == 415, "its type is refused"


@pytest.mark.parametrize("begun", ["POST /mcp", "GET /reviews.json", "OPTIONS /feed.xml", "GET /mcp",
                                   "POST /api/websub/hub", "PUT /nothing"])  # fmt: skip
@pytest.mark.parametrize("fields", [[], ["Expect: 100-continue"]])
@pytest.mark.parametrize("length", ["1000000000000", "65537", "9" * 18])
def test_a_body_that_announces_too_much_is_413_at_once_and_never_read(
    service: Address, begun: str, fields: list[str], length: str
) -> None:
    answer = whole_answer(service, head(begun, *fields, f"Content-Length: {length}"))
    assert status(answer) == 413
    assert b"100 Continue" not in answer


def test_a_body_that_grows_too_large_is_413_before_its_end(service: Address) -> None:
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    assert status(whole_answer(service, head("POST /", CHUNKED) + chunk * 5)) == 413


@pytest.mark.parametrize(("chunks", "expected"), [(1000, 200), (1001, 400), (4000, 400)])
def test_a_body_of_more_than_1000_chunks_is_400_and_ends_the_connection(
    service: Address, chunks: int, expected: int
) -> None:
    body = b"".join(b"1\r\n%c\r\n" % byte for byte in PING.rjust(chunks)) + b"0\r\n\r\n"
    answer = exchange(service, head("POST /mcp", CHUNKED, JSON) + body)
    assert status(answer) == expected
    assert (b"connection: close" in answer.lower()) == (expected == 400)


def test_a_header_name_with_an_underscore_is_ignored(service: Address) -> None:
    tag = fetch(service, "/reviews.json").headers["etag"]
    for field in (f"If_None_Match: {tag}", "Accept_Encoding: gzip"):
        answer = exchange(service, head("GET /reviews.json", field))
        assert status(answer) == 200
        assert b"content-encoding" not in answer.partition(b"\r\n\r\n")[0]


@pytest.mark.parametrize("path", ["/", "/api/reviews/search"])
@pytest.mark.parametrize("body", [b"zz\r\n", b"2\r\nabcdef\r\n"])
def test_malformed_chunks_are_400_with_an_issue(service: Address, path: str, body: bytes) -> None:
    answer = exchange(service, head(f"POST {path}", CHUNKED) + body)
    assert status(answer) == 400
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["issues"][0]["parameter"] is None


@pytest.mark.slow
@pytest.mark.parametrize("framing", ["Content-Length: 100", CHUNKED])
def test_a_late_body_is_408_and_ends_the_connection(impatient: Address, framing: str) -> None:
    with connect(impatient) as begun, connect(impatient) as not_begun:
        begun.sendall(head("POST /", framing) + b"9\r\nonly this\r\n")
        not_begun.sendall(head("POST /", framing))
        for connection in (begun, not_begun):
            answer = connection.makefile("rb").read()
            assert status(answer) == 408
            assert b'"status":408' in answer


@pytest.mark.slow
def test_requests_with_bodies_leave_nothing_behind(service: Address) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)

    def post(count: int) -> None:
        for body, fields in ((b"{}x", {}), (b"3\r\n{}x\r\n0\r\n\r\n", {"Transfer-Encoding": "chunked"})):
            for _ in range(count):
                connection.request("POST", "/mcp", body, fields)
                assert connection.getresponse().read()

    post(500)
    before = memory_mb(service.pid)
    post(3000)
    connection.close()
    assert memory_mb(service.pid) - before < 3


# ---- Crowds ----

HALF_HEAD = b"GET /reviews.json HT"
HALF_BODY = head("POST /", "Content-Length: 9") + b"x"


def allow_descriptors() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4000, hard), hard))


def test_gets_are_answered_beside_hundreds_of_slow_connections() -> None:
    """330 half-open heads, as many half-sent bodies and idle connections at once."""
    allow_descriptors()
    with daemon() as service, ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, b""):
            for _ in range(330):
                crowd.enter_context(connect(service)).sendall(beginning)
        assert fetch(service, "/reviews.json").status == 200


@pytest.mark.slow
def test_connections_beyond_the_maximum_wait_for_one_to_end() -> None:
    with daemon("--max-connections", "5") as service, ExitStack() as crowd:
        first, *_ = [crowd.enter_context(connect(service)) for _ in range(5)]
        with connect(service) as waiting:
            waiting.sendall(closing_get("/robots.txt"))
            waiting.settimeout(0.5)
            with pytest.raises(TimeoutError):
                waiting.recv(1)
            first.close()
            waiting.settimeout(30)
            assert waiting.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.slow
def test_peers_that_read_nothing_hold_little_memory_and_are_cut(impatient: Address) -> None:
    readers = 300
    allow_descriptors()
    with ExitStack() as crowd:
        fetch(impatient, "/reviews.json")
        before = memory_mb(impatient.pid)
        hung_up = select.poll()
        for _ in range(readers):
            hung_up.register(crowd.enter_context(ask_without_reading(impatient)), 0)
        assert fetch(impatient, "/robots.txt").status == 200
        assert memory_mb(impatient.pid) - before < readers * 0.4
        descriptors = Path(f"/proc/{impatient.pid}/fd")
        deadline = time.monotonic() + serving.Deadlines().silence  # a timeout of TCP itself would take longer
        while len(list(descriptors.iterdir())) >= 100 and time.monotonic() < deadline:
            hung_up.poll(500)
        assert len(list(descriptors.iterdir())) < 100


@pytest.mark.slow
def test_a_reader_too_slow_for_a_large_response_is_cut(impatient: Address) -> None:
    with ask_without_reading(impatient) as connection:
        received = 0
        while chunk := connection.recv(65536):
            received += len(chunk)
            time.sleep(0.1)
    assert received < len(fetch(impatient, "/reviews.json").body)


def test_a_slow_reader_gets_the_whole_response(service: Address) -> None:
    whole = fetch(service, "/reviews.json").body
    with ask_without_reading(service) as connection:
        received = b""
        while chunk := connection.recv(512):
            received += chunk
    assert received.partition(b"\r\n\r\n")[2] == whole


# ---- Large responses and worker threads ----


async def stays() -> dict[str, Any]:
    """A peer that waits for its response."""
    await asyncio.Event().wait()
    return {}


async def leaves() -> dict[str, Any]:
    return {"type": "http.disconnect"}


class Large:
    """An application whose body has nine megabytes."""

    def respond(self, request: Request) -> Response:
        return Response(200, (), [memoryview(b"head"), memoryview(b"x" * 9_000_000)])


def parts_sent(application: Any, receive: Any) -> list[bytes]:
    """The parts of the body of its response to a request of this peer."""
    parts: list[bytes] = []

    async def take(message: dict[str, Any]) -> None:
        parts.append(message.get("body", b""))

    scope = {"method": "GET", "raw_path": b"/", "query_string": b"", "headers": (), "http_version": "1.1"}
    bridge = serving.Bridge(application, frozenset(), serving.Deadlines())
    asyncio.run(bridge(scope, receive, take))
    return parts


@pytest.mark.parametrize(
    ("receive", "least", "most"), [(stays, 9_000_004, 9_000_004), (leaves, 0, 2_000_000)]
)
def test_a_large_response_is_sent_in_parts_and_not_to_a_peer_that_has_gone(
    receive: Any, least: int, most: int
) -> None:
    parts = parts_sent(Large(), receive)
    assert max(map(len, parts)) <= serving.PART_BYTES
    assert least <= sum(map(len, parts)) <= most


def test_a_large_response_of_a_worker_thread_is_sent_whole() -> None:
    calls = []

    async def receive() -> dict[str, Any]:
        """As Granian may: the peer seems to have gone when an earlier wait was cancelled."""
        calls.append(1)
        return await (stays() if len(calls) == 1 else leaves())

    class Slow(Large):
        def respond(self, request: Request) -> Any:
            return lambda: Large.respond(self, request)

    assert sum(map(len, parts_sent(Slow(), receive))) == 9_000_004


def test_a_fault_of_a_job_ends_its_request_and_no_worker_thread(caplog: pytest.LogCaptureFixture) -> None:
    response = Response(200, (), b"")

    async def faults() -> Response:
        workers = serving.WorkerThreads(1)
        for _ in range(3):
            with pytest.raises(serving.Disconnected):
                await workers.run(lambda: 1 / 0, serving.Peer(stays))  # type: ignore[arg-type, return-value]
        return await workers.run(lambda: response, serving.Peer(stays))

    assert asyncio.run(faults()) == response
    logged = [record.getMessage() for record in caplog.records if record.name == "reviewsd.serving"]
    assert logged == ["a response could not be made"] * 3


def test_a_job_that_outlives_its_event_loop_ends_no_worker_thread() -> None:
    workers, go_on = serving.WorkerThreads(1), threading.Event()

    async def begin_job() -> None:
        begun = threading.Event()
        job = workers.run(lambda: begun.set() or go_on.wait(30), serving.Peer(stays))  # type: ignore[arg-type, return-value]
        waiting = asyncio.ensure_future(job)
        await asyncio.sleep(0)
        assert begun.wait(30)
        assert not waiting.done()

    asyncio.run(begin_job())
    go_on.set()
    asyncio.run(begin_job())


def test_worker_threads_keep_nothing_of_a_request_that_is_over() -> None:
    class Body(bytearray):
        pass

    async def forgotten() -> None:
        workers, body = serving.WorkerThreads(1), Body()
        await workers.run(lambda body=body: Response(200, (), [memoryview(body)]), serving.Peer(stays))  # type: ignore[misc]
        reference = weakref.ref(body)
        del body
        async with asyncio.timeout(30):
            while reference():
                await asyncio.sleep(0)

    asyncio.run(forgotten())


def wait_for_state(service: Address, state: str) -> None:
    """Wait until the application has this state: the paths that it has made, and how many peers have left."""
    wait_for(state, lambda: fetch(service, "/state").body == state.encode())


@pytest.mark.slow
def test_prepared_responses_and_the_hub_wait_for_no_worker() -> None:
    with stub_service("Busy") as (service, process), ExitStack() as crowd:
        for path in ("/hold", "/hold", "/third"):
            crowd.enter_context(ask_without_reading(service, path))
        wait_for_state(service, "['/hold', '/hold'] 0")
        assert fetch(service, "/store").body == b"/store"
        wait_for_state(service, "['/hold', '/hold', '/store'] 0")
        assert stopped(process) == 0, "whatever hangs"


def test_a_hundred_requests_wait_and_abandoned_ones_are_never_made() -> None:
    with stub_service("Busy") as (service, _), ExitStack() as crowd:
        holding = [crowd.enter_context(ask_without_reading(service, "/hold")) for _ in range(2)]
        wait_for_state(service, "['/hold', '/hold'] 0")
        waiting = serving.MAX_JOBS - len(holding)
        with ExitStack() as abandoned:
            for _ in range(waiting):
                abandoned.enter_context(ask_without_reading(service, "/abandoned"))
            refused = fetch(service, "/one-more")
            assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        wait_for_state(service, f"['/hold', '/hold'] {waiting}")
        fetch(service, "/go-on")
        assert [connection.recv(15) for connection in holding] == [b"HTTP/1.1 200 OK"] * 2
        assert fetch(service, "/last").status == 200
        wait_for_state(service, f"['/hold', '/hold', '/last'] {waiting}")


# ---- Log ----


def access_lines(log: str) -> list[str]:
    """The lines of requests, without time, level and milliseconds."""
    found = re.finditer(r"(?m)^[0-9-]+ [0-9:,]+ INFO (\S+ \S+ \S+ [0-9]{3} [0-9]+) [0-9]+\.[0-9]$", log)
    return [line[1] for line in found]


@pytest.mark.slow
def test_a_log_that_nobody_reads_blocks_neither_responses_nor_the_stop() -> None:
    with running_daemon("--access-log") as (service, process):
        assert process.stderr
        pipe = os.open(f"/proc/self/fd/{process.stderr.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(pipe, b"x" * 4096)
        os.close(pipe)
        process.send_signal(signal.SIGHUP)  # a reload logs a line
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        for _ in range(5000):
            connection.request("GET", "/robots.txt?" + "x" * 1000)
            assert connection.getresponse().read()
        connection.close()
        assert stopped(process) == 0


def test_the_access_log_has_one_line_per_request_whatever_its_path() -> None:
    with running_daemon("--access-log") as (service, process):
        body = fetch(service, "/robots.txt?secret=1").body
        fetch(service, "/", "HEAD")
        for path in ("/caf\xc3\xa9\\x0a%0a\xc2\x85\xe2\x80\xa8", "/" + "y" * 2000):
            exchange(service, closing_get(path))
        with connect(service) as abandoned:
            abandoned.sendall(HALF_BODY)
            assert fetch(service, "/nothing").status == 404  # the half body has surely been begun by now
        process.terminate()
        _, log = process.communicate(timeout=STOP_SECONDS)
    lines = [line.removeprefix("127.0.0.1 ") for line in access_lines(log)]
    assert lines[:2] == [f"GET /robots.txt 200 {len(body)}", "HEAD / 200 0"]
    assert lines[2].startswith(r"GET /caf\xc3\xa9\x5cx0a%0a\xc2\x85\xe2\x80\xa8 404 ")
    assert lines[3].startswith(f"GET /{'y' * (serving.MAX_LOGGED_PATH_BYTES - 1)} 404 ")
    nothing, half = sorted(lines[4:])
    assert nothing.startswith("GET /nothing 404 ")
    assert half == "POST / 499 0"


# ---- Starting and stopping ----


def test_a_unix_socket_serves_and_a_stale_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "reviewsd.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    flags = ("--uds", str(path), "--base-url", "http://reviews.example", "--access-log")
    with running_daemon(*flags) as (_, process):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(closing_get("/reviews.json"))
            assert connection.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
        process.terminate()
        _, log = process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 0
    assert not path.exists()
    (line,) = access_lines(log)
    assert line.startswith("- GET /reviews.json 200 ")


def test_an_address_in_use_is_told_in_one_line_with_status_1(service: Address) -> None:
    taken = run_daemon("--port", str(service.port))
    assert taken.returncode == 1
    assert taken.stderr == f"cannot listen on 127.0.0.1 port {service.port}: Address already in use\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_daemon_with_status_0_and_no_traceback(number: signal.Signals) -> None:
    with running_daemon() as (service, process), connect(service) as idle:
        idle.sendall(head("GET /reviews.json"))
        idle.recv(100)
        process.send_signal(number)
        _, rest = process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in rest
    assert "panic" not in rest


@pytest.mark.slow
def test_hanging_peers_do_not_delay_the_stop() -> None:
    with running_daemon() as (service, process), ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, head("GET /reviews.json") * 50):
            crowd.enter_context(connect(service)).sendall(beginning)
        assert fetch(service, "/healthz").status == 200
        assert stopped(process) == 0


@pytest.mark.slow
def test_a_running_reload_does_not_delay_the_stop(tmp_path: Path) -> None:
    write_reviews(tmp_path, 10_000, "word " * 50)
    with managed(tmp_path, "--data", str(tmp_path), "--no-hub") as (manager, _, process):
        assert told(manager).startswith(b"READY=1")
        process.send_signal(signal.SIGHUP)
        assert told(manager).startswith(b"RELOADING=1")
        assert stopped(process) == 0


def test_a_running_request_is_finished_before_the_stop() -> None:
    with running_daemon() as (service, process):
        with connect(service) as connection:
            connection.sendall(HALF_BODY)
            assert fetch(service, "/healthz").status == 200  # the head has surely been read by now
            process.terminate()
            connection.sendall(b"12345678")
            assert connection.makefile("rb").readline() == b"HTTP/1.1 405 Method Not Allowed\r\n"
        assert process.wait(STOP_SECONDS) == 0


def test_a_second_signal_ends_the_daemon_at_once(tmp_path: Path) -> None:
    with managed(tmp_path) as (manager, service, process), connect(service) as busy:
        busy.sendall(HALF_BODY)
        assert fetch(service, "/healthz").status == 200
        process.terminate()
        assert told(manager).startswith(b"READY=1")
        assert told(manager) == b"STOPPING=1"
        process.terminate()
        assert process.wait(serving.STOP_SECONDS / 2) == -signal.SIGTERM


LEAVE = """
import os
from reviewslib.process import logs, serving
logs.start_log().flush = lambda: os.write(1, b"flushed\\n")
serving.exit_at_once(0)
"""


def test_a_stop_flushes_the_log_and_takes_at_most_5_seconds() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVE], capture_output=True, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"flushed\n")
    assert serving.BEFORE_STOP_SECONDS + serving.STOP_SECONDS + logs.FLUSH_SECONDS < 5


def test_the_port_stays_open_while_before_stop_runs() -> None:
    with stub_service("Stopping") as (service, process):
        process.terminate()
        assert fetch(service, "/asked-while-it-stops").status == 200
        assert "stopping True\n" in process.communicate(timeout=STOP_SECONDS)[1]
        assert process.returncode == 0


@pytest.mark.slow
def test_a_signal_that_another_thread_takes_ends_an_idle_service() -> None:
    with stub_service("Stopping") as (service, process):
        assert fetch(service, "/stop").status == 200
        assert "stopping True\n" in process.communicate(timeout=STOP_SECONDS)[1]
        assert process.returncode == 0


# ---- Service manager ----


def test_the_service_manager_is_told_every_state_and_the_watchdog_fed(tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    flags = ("--data", str(data), "--reload-interval", "3600")  # so that only the signal causes a reload
    with managed(tmp_path, *flags, WATCHDOG_USEC="200000") as (manager, _, process):
        serving_status = "Serving 160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out"
        assert told(manager).decode() == f"READY=1\nSTATUS={serving_status}"
        assert manager.recv(4096) == manager.recv(4096) == b"WATCHDOG=1"
        (data / "reviews.json").write_text("[]")
        process.send_signal(signal.SIGHUP)
        assert told(manager).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert told(manager) == b"READY=1\nSTATUS=Stale: reviews.json: an array is not an object"
        process.terminate()
        assert told(manager) == b"STOPPING=1"
        assert process.wait(STOP_SECONDS) == 0


@pytest.mark.slow
def test_the_watchdog_is_fed_while_every_connection_is_taken(tmp_path: Path) -> None:
    flags = ("--max-connections", "5")
    with managed(tmp_path, *flags, WATCHDOG_USEC="200000") as (manager, service, _), ExitStack() as crowd:
        for _ in range(10):
            crowd.enter_context(connect(service))
        assert told(manager).startswith(b"READY=1")
        assert {manager.recv(4096) for _ in range(6)} == {b"WATCHDOG=1"}


# ---- Granian: what this service relies on, so that a new release fails here and says where ----


def test_only_documented_names_of_granian_are_used() -> None:
    nodes = list(ast.walk(ast.parse(Path(serving.__file__).read_text(encoding="utf-8"))))
    imports = [each for each in nodes if isinstance(each, ast.ImportFrom)]
    of_granian = [each for each in imports if str(each.module).split(".")[0] == "granian"]
    names = {alias.name for each in of_granian for alias in each.names}
    assert names == {"HTTPModes", "Interfaces", "HTTP1Settings", "LogLevels", "Server"}
    attributes = {ast.unparse(each) for each in nodes if isinstance(each, ast.Attribute)}
    of_the_server = {each for each in attributes if each.startswith("server.")}
    assert of_the_server == {"server.serve", "server.stop"}
