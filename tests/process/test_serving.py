"""The server against the open internet: malformed, slow, huge and many, on the daemon as its users start it.

Raw requests - Bodies - Crowds - Large responses and worker threads - Log - Starting and stopping -
Service manager - Granian
"""

import ast
import asyncio
import contextlib
import http.client
import itertools
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
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import tools
from page_samples import write_files
from services import (
    ROOT,
    SAMPLE,
    STOP_SECONDS,
    Address,
    daemon,
    daemon_command,
    fetch,
    listening_port,
    started,
)
from small_files import a_file, review

from reviewslib.process import logs, serving
from reviewslib.web.representations import Response

CROWD = 2000
Process = subprocess.Popen[str]


@pytest.fixture(scope="module")
def service() -> Iterator[Address]:
    with daemon() as address:
        yield address


IMPATIENT = """
import reviewsd, sys
from reviewslib.process import serving
serving.BODY_SECONDS = 1
serving.LISTENER_OPTIONS += (("IPPROTO_TCP", "TCP_USER_TIMEOUT", 1000),)
sys.exit(reviewsd.main())
"""


@pytest.fixture(scope="module")
def impatient() -> Iterator[Address]:
    """The daemon with shorter timeouts for its peers."""
    assert (serving.BODY_SECONDS, serving.STALLED_SECONDS) == (10, 30), "what they are for its users"
    command = [sys.executable, "-c", IMPATIENT, "--port", "0", "--no-hub", "--data", str(SAMPLE)]
    with started(command, PYTHONPATH=str(ROOT)) as address:
        yield address


@contextmanager
def running(*arguments: str, limits: str = "", **environ: str) -> Iterator[tuple[Address, Process]]:
    """The daemon on a free port, to be ended by the test; `limits` is shell code that goes before it."""
    command = ["sh", "-c", f'{limits}exec "$@"', "sh", *daemon_command("--port", "0", *arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | environ)
    try:
        yield Address(listening_port(process), process.pid, ""), process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def notified(directory: Path) -> Iterator[socket.socket]:
    """The service manager's end of the socket `notify` in a directory."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(directory / "notify"))
        manager.settimeout(STOP_SECONDS)
        yield manager


SERVE = """
port = serving.claim_port("127.0.0.1", 0)
number = port.getsockname()[1]
ready, hangup = lambda: print(number, flush=True), lambda: None
asyncio.run(serving.serve(served, port, 1000, ready, hangup, before_stop))
serving.exit_at_once(0)
"""


IMPORTS = """
import asyncio, threading
from reviewslib.process import serving
from reviewslib.web.representations import Deferred, Response
"""


@contextmanager
def stub_service(definitions: str) -> Iterator[tuple[Address, Any]]:
    """A process that serves `served`, an ASGI application, as defined there together with `before_stop`."""
    command = [sys.executable, "-c", IMPORTS + definitions + SERVE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout
            yield Address(int(process.stdout.readline()), process.pid, ""), process
        finally:
            process.kill()


def connect(service: Address) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=30)


REST_OF_HEAD = b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
WHOLE_GET = b"GET /reviews.json" + REST_OF_HEAD


def ask_without_reading(service: Address, request: bytes = WHOLE_GET) -> socket.socket:
    """A connection that has asked for all reviews, or something else, and has little room for them."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", service.port))
    connection.sendall(request)
    return connection


def exchange(service: Address, request: bytes) -> bytes:
    """Everything that comes back until the service closes or says no more for a moment."""
    with connect(service) as connection:
        connection.sendall(request)
        answer = connection.recv(65536)
        connection.settimeout(0.3)
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except TimeoutError:
            pass
        return answer


def write_reviews(directory: Path, count: int, text: str) -> None:
    write_files(directory, a_file(*(review(str(number), text=text) for number in range(count))))


def resident_kilobytes(service: Address) -> int:
    status = Path(f"/proc/{service.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


# ---- Raw requests: RFC 9112 ----


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET /reviews.json HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n", 400),
        (b"GET /reviews.json HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 400),
        (b"GET /rev\x00iews.json HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /api/reviews/search?query=\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 1000 + b"\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
        (b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 40\r\n"
         b"Content-Length: 40\r\n\r\n" b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 200),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\nhello", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nhello", 400),
        (b"GET http://elsewhere.example/reviews.json HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        (b"GET /reviews.json HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", 200),
        (b"GET /reviews.json HTTP/1.1\r\nHost: a\r\nIf-None-Match: \xff\xfe\r\n\r\n", 200),
    ],
)  # fmt: skip
def test_a_raw_request_gets_a_defined_answer(service: Address, request_head: bytes, status: int) -> None:
    answer = exchange(service, request_head)
    assert answer.split(b" ", 2)[1] == str(status).encode()
    assert b"Traceback" not in answer


def test_http_2_is_not_spoken(service: Address) -> None:
    assert exchange(service, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == b""


def test_two_lengths_end_the_connection_after_one_answer(service: Address) -> None:
    smuggled = b"0\r\n\r\nGET /reviews.json HTTP/1.1\r\nHost: a\r\n\r\n"
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert exchange(service, head + smuggled).count(b"HTTP/1.1 ") == 1


def test_pipelined_requests_are_answered_in_order(service: Address) -> None:
    paths = [b"/nothing", b"/reviews.json", b"/api/reviews/since/x", b"/nothing"]
    requests = b"".join(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path for path in paths[:-1])
    requests += b"GET %s%s" % (paths[-1], REST_OF_HEAD)
    statuses = re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", exchange(service, requests))
    assert statuses == [b"404", b"200", b"400", b"404"]


# ---- Bodies ----


def test_a_body_above_the_limit_is_413(service: Address) -> None:
    assert fetch(service, "/mcp", "POST", b"x" * serving.LARGEST_BODY_BYTES).status == 415, "its type is"
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert exchange(service, head + chunk * 5).split(b" ", 2)[1] == b"413"


@pytest.mark.parametrize(
    ("begun", "status"),
    [("POST /mcp", 413), ("GET /reviews.json", 413), ("OPTIONS /reviews.json", 413), ("GET /mcp", 405),
     ("POST /api/websub/hub", 413), ("POST /reviews.json", 405), ("PUT /nothing", 404)],
)  # fmt: skip
@pytest.mark.parametrize("fields", ["", "Expect: 100-continue\r\n"])
@pytest.mark.parametrize("length", ["1000000000000", "65537", "9" * 18])
def test_a_body_that_announces_too_much_is_refused_at_once_and_never_read(
    service: Address, begun: str, status: int, fields: str, length: str
) -> None:
    head = f"{begun} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n"
    with connect(service) as connection:
        connection.settimeout(serving.BODY_SECONDS / 2)
        connection.sendall(head.encode())
        answer = connection.makefile("rb").read()
    assert answer.split(b" ", 2)[1] == str(status).encode()
    assert b"100 Continue" not in answer


def test_a_body_in_thousands_of_pieces_is_400_and_the_end_of_the_connection(service: Address) -> None:
    head = b"POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    head += b"Content-Type: application/json\r\n\r\n"
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    few, many = serving.MAX_BODY_CHUNKS - 100, serving.MAX_BODY_CHUNKS + 100
    for blanks, status in ((few, b"200"), (many, b"400")):
        pieces = b"1\r\n \r\n" * (blanks - len(body)) + b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        answer = exchange(service, head + pieces + b"0\r\n\r\n")
        assert answer.split(b" ", 2)[1] == status
        assert (b"connection: close" in answer.lower()) == (status == b"400")


def test_a_name_with_an_underscore_is_no_other_name(service: Address) -> None:
    tag = fetch(service, "/reviews.json").headers["etag"].encode()
    for field in (b"If_None_Match: " + tag, b"Accept_Encoding: gzip"):
        answer = exchange(service, b"GET /reviews.json HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n" % field)
        assert answer.split(b" ", 2)[1] == b"200"
        assert b"content-encoding" not in answer.partition(b"\r\n\r\n")[0]


@pytest.mark.parametrize("path", [b"/", b"/api/reviews/search"])
def test_chunks_that_are_none_are_a_mistake_of_the_peer_with_its_issue(service: Address, path: bytes) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" % path
    for body in (b"zz\r\n", b"2\r\nabcdef\r\n"):
        answer = exchange(service, head + body)
        assert answer.split(b" ", 2)[1] == b"400"
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["issues"][0]["parameter"] is None


def test_a_late_body_is_408_and_ends_the_connection(impatient: Address) -> None:
    with ExitStack() as crowd:
        late = [crowd.enter_context(connect(impatient)) for _ in range(4)]
        for number, connection in enumerate(late):
            framing = b"Content-Length: 100" if number % 2 else b"Transfer-Encoding: chunked"
            begun = b"9\r\nonly this\r\n" if number < 2 else b""
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\n" + framing + b"\r\n\r\n" + begun)
        for connection in late:
            answer = connection.makefile("rb").read()
            assert answer.split(b" ", 2)[1] == b"408"
            assert b'"status":408' in answer


def test_a_body_of_300_megabytes_costs_no_memory(service: Address) -> None:
    fetch(service, "/reviews.json")
    before = resident_kilobytes(service)
    sent = 0
    for framing in (b"Content-Length: 314572800", b"Transfer-Encoding: chunked"):
        with connect(service) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\n" + framing + b"\r\n\r\n")
            try:
                for _ in range(4800):
                    connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                    sent += 65536
            except OSError:
                pass  # the service has closed, as it should
    assert sent < 300 * 1024 * 1024
    assert resident_kilobytes(service) - before < 20_000
    assert fetch(service, "/reviews.json").status == 200


def test_requests_with_bodies_leave_nothing_behind(service: Address) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)

    def post(count: int, **framing: str) -> None:
        for _ in range(count):
            connection.request("POST", "/mcp", b"3\r\n{}x\r\n0\r\n\r\n" if framing else b"{}x", framing)
            assert connection.getresponse().read()

    chunked = {"Transfer-Encoding": "chunked"}
    post(500)
    post(500, **chunked)
    before = resident_kilobytes(service)
    post(3000)
    post(3000, **chunked)
    connection.close()
    assert resident_kilobytes(service) - before < 3000


# ---- Crowds ----

HALF_HEAD = b"GET /reviews.json HT"
HALF_BODY = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"


def allow_descriptors() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(5 * CROWD, hard), hard))


def test_gets_are_answered_while_thousands_dawdle() -> None:
    """2,000 half-open heads, 2,000 half-sent bodies and 2,000 idle connections at once."""
    allow_descriptors()
    with daemon() as service, ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, b""):
            for _ in range(CROWD):
                crowd.enter_context(connect(service)).sendall(beginning)
        assert fetch(service, "/reviews.json").status == 200


def test_peers_that_do_not_read_hold_little_and_not_for_long(impatient: Address) -> None:
    readers = 500
    allow_descriptors()
    with ExitStack() as crowd:
        size = len(fetch(impatient, "/reviews.json").body)
        before = resident_kilobytes(impatient)
        hung_up = select.poll()
        for _ in range(readers):
            hung_up.register(crowd.enter_context(ask_without_reading(impatient)), 0)
        assert fetch(impatient, "/reviews.json").status == 200
        assert (resident_kilobytes(impatient) - before) * 1024 < 3 * readers * size
        descriptors = Path(f"/proc/{impatient.pid}/fd")
        deadline = time.monotonic() + serving.STALLED_SECONDS  # the usual timeout would be too late
        while len(list(descriptors.iterdir())) >= 100 and time.monotonic() < deadline:
            hung_up.poll(500)
        assert len(list(descriptors.iterdir())) < 100


def test_a_slow_reader_still_gets_everything(service: Address) -> None:
    whole = fetch(service, "/reviews.json").body
    with ask_without_reading(service) as connection:
        received = b""
        while chunk := connection.recv(512):
            received += chunk
    assert received.partition(b"\r\n\r\n")[2] == whole


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("memory_bytes", "resident_bytes", "data_bytes", "descriptors", "connections"),
    [
        (512 * 2**20, 45 * MEGABYTE, MEGABYTE // 5, 20_000, 5125),  # the sample
        (512 * 2**20, 110 * MEGABYTE, 9 * MEGABYTE, 20_000, 3669),  # 10,000 reviews
        (2**30, 45 * MEGABYTE, MEGABYTE // 5, 65_472, 10_807),
        (2**40, 45 * MEGABYTE, MEGABYTE // 5, 65_472, 65_472),
        (2**20, 45 * MEGABYTE, MEGABYTE // 5, 20_000, 16),
    ],
)
def test_connections_are_bounded_by_memory_and_by_descriptors(
    memory_bytes: int, resident_bytes: int, data_bytes: int, descriptors: int, connections: int
) -> None:
    limits = serving.limits_of(memory_bytes, resident_bytes, data_bytes, descriptors)
    assert limits.connections == connections
    assert limits.unshared_bytes == min(64 * 2**20, memory_bytes // 64)


@pytest.mark.parametrize(
    ("membership", "files", "limit"),
    [
        ("0::/a/b\n", {"a/memory.max": "700\n", "a/b/memory.max": "max\n"}, 700),
        ("0::/a/b\n", {"a/memory.max": "700\n", "a/b/memory.max": "600\n"}, 600),
        ("0::/\n", {"memory.max": "500\n"}, 500),  # in a container
        ("4:cpu:/x\n3:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "800\n"}, 800),
        ("3:memory:/gone\n", {"memory/memory.limit_in_bytes": "400\n"}, 400),
        ("3:memory:/a\n", {"memory/a/memory.limit_in_bytes": f"{2**70}\n"}, None),
    ],
)
def test_the_limit_of_memory_is_the_least_of_the_control_groups_or_that_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, membership: str, files: dict[str, str], limit: int | None
) -> None:
    for name, text in {"membership": membership, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(serving, "CONTROL_GROUPS", tmp_path / "membership")
    monkeypatch.setattr(serving, "GROUP_ROOT", tmp_path)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert serving.memory_limit_bytes() == limit or (limit is None and machine)


def test_fewer_connections_than_wished_are_told() -> None:
    command = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", *daemon_command("--port", "0", "--no-hub")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        lines = list(itertools.takewhile(lambda line: "listens on" not in line, process.stderr))
        process.terminate()
    assert lines[-1].endswith("INFO the limit of open files allows 64 connections\n")


@pytest.mark.parametrize("limit", ["-n 80", "-S -n 40"])
def test_a_few_descriptors_are_enough_to_serve(limit: str) -> None:
    with running(limits=f"ulimit {limit}; ") as (service, process):
        assert fetch(service, "/reviews.json").status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0


def test_out_of_descriptors_neither_ends_the_service_nor_floods_the_log() -> None:
    with running(limits="ulimit -n 128; ") as (service, process):
        with ExitStack() as crowd:
            for _ in range(400):
                crowd.enter_context(connect(service))
        assert fetch(service, "/reviews.json").status == 200
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 0
    assert len(log.splitlines()) < 10


@pytest.mark.parametrize("limit", [12, 79])
def test_too_few_descriptors_are_one_line_and_status_1(tmp_path: Path, limit: int) -> None:
    flags = ("--port", "0", "--state-dir", str(tmp_path / "state"))
    command = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *daemon_command(*flags)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == f"the limit of {limit} open files is too low: at least 80 are needed\n"
    assert not (tmp_path / "state").exists()


# ---- Large responses and worker threads ----

PARAMS = '{"name":"search_reviews","arguments":{"limit":100}}'
SEARCH = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":' + PARAMS + "}"
BATCH = "[" + ",".join(SEARCH % number for number in range(10)) + "]"
WHOLE_BATCH = (
    "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2025-03-26\r\n"
    f"Accept: application/json, text/event-stream\r\nContent-Length: {len(BATCH)}\r\n\r\n{BATCH}"
).encode()


@contextmanager
def in_a_small_group(path: str, least_bytes: int, data: Path = SAMPLE) -> Iterator[Address]:
    """The daemon with 512 MiB of memory, which has to come back. The answer at `path` has so many bytes."""
    tools.needs("a control group")
    allow_descriptors()
    with tools.memory_group(512 * 1024**2) as group:
        flags, into_group = ("--data", str(data), "--no-hub"), f"echo $$ > {group}/cgroup.procs; "
        with running(*flags, limits=into_group) as (service, process):
            assert len(fetch(service, path).body) > least_bytes
            before = resident_kilobytes(service)
            yield service
            deadline = time.monotonic() + 120
            while resident_kilobytes(service) > before + 60_000:
                assert time.monotonic() < deadline, "its memory does not come back"
                time.sleep(0.1)
            assert fetch(service, "/robots.txt").status == 200
            assert process.poll() is None


def test_a_crowd_that_reads_nothing_is_survived_in_a_small_control_group(tmp_path: Path) -> None:
    """1,800 connections on 2 MB of reviews, 2,700 whose 1 KB asks for 1 MiB each."""
    write_reviews(tmp_path, 1000, "x" * 1900)
    with in_a_small_group("/reviews.json", 2_000_000, tmp_path) as service, ExitStack() as crowd:
        wanted = [WHOLE_GET, WHOLE_BATCH, WHOLE_BATCH, WHOLE_GET, WHOLE_BATCH] * 900
        peers = [crowd.enter_context(ask_without_reading(service, each)) for each in wanted]
        assert fetch(service, "/robots.txt").status == 200
        statuses = Counter(peer.recv(12)[9:] for peer in peers)
        assert statuses.keys() == {b"200", b"503"}, statuses
        assert fetch(service, "/robots.txt").status == 200


def test_answers_that_granian_holds_are_bounded_by_the_number_of_connections() -> None:
    """7,000 connections that ask for just less than what is sent in parts, and read nothing."""
    path = "/api/reviews/search?limit=90"
    request = f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    with in_a_small_group(path, 60_000) as service, ExitStack() as crowd:
        assert len(fetch(service, path).body) <= serving.LARGE_BYTES
        answered = select.poll()
        for _ in range(7000):
            answered.register(crowd.enter_context(ask_without_reading(service, request)), select.POLLIN)
        deadline = time.monotonic() + serving.STALLED_SECONDS
        while len(answered.poll(0)) < 5000 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(answered.poll(0)) >= 5000


class Stub:
    """An application that says how large its body is to be, and whether it is shared, or may be replaced."""

    def respond(self, environ: dict[str, Any]) -> Response:
        _, shared, size = environ["PATH_INFO"].split("/")
        instead = Response(203, (), b"x" * 100_000, True) if shared == "either" else None
        return Response(200, (), b"x" * int(size), shared == "shared", instead)

    def refuse(self, environ: Any, status: int, detail: str, headers: Any = ()) -> Response:
        return Response(status, headers, detail.encode())


def statuses_of_unread(*paths: str, unshared_bytes: int = 2**26) -> list[int]:
    """The statuses of requests whose peers take the head and nothing of the body, one after the other."""

    async def ask_all() -> list[int]:
        bridge, statuses = serving.Bridge(Stub(), frozenset(), unshared_bytes), []

        async def take_head(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            else:
                await asyncio.Event().wait()

        requests = []
        for path in paths:
            scope = {"method": "GET", "raw_path": path.encode(), "query_string": b"", "headers": ()}
            requests.append(asyncio.ensure_future(bridge(scope | {"http_version": "1.1"}, stays, take_head)))
            await asyncio.sleep(0)
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        return statuses

    return asyncio.run(ask_all())


def test_memory_that_only_responses_hold_is_bounded() -> None:
    paths = ("/own/100000", "/shared/900000", "/own/100001", "/own/100000", "/own/65537", "/own/65536")
    assert statuses_of_unread(*paths, unshared_bytes=200_000) == [200, 200, 503, 200, 503, 200]


def test_what_takes_no_memory_is_sent_instead_of_what_does() -> None:
    paths = ("/own/200000", "/either/100000", "/own/100000")
    assert statuses_of_unread(*paths, unshared_bytes=200_000) == [200, 203, 503]


@pytest.mark.parametrize(
    ("body_bytes", "large_responses", "part_bytes"),
    [(65537, 1, 8192), (300_000, 1, 37_500), (9_000_000, 16, 65536), (9_000_000, 17, 8192)],
)
def test_parts_are_large_while_few_responses_are_and_always_leave_some_to_wait_for(
    body_bytes: int, large_responses: int, part_bytes: int
) -> None:
    assert serving.size_of_parts(body_bytes, large_responses) == part_bytes
    assert body_bytes > 6 * part_bytes, "Granian takes up to six for a peer that reads nothing"


async def stays() -> dict[str, Any]:
    """A peer that waits for its response."""
    await asyncio.Event().wait()
    return {}


async def leaves() -> dict[str, Any]:
    return {"type": "http.disconnect"}


def test_a_worker_thread_refuses_what_its_queue_does_not_hold_and_drops_what_nobody_waits_for() -> None:
    begun: list[str] = []
    go_on = threading.Event()

    async def crowd() -> None:
        worker = serving.WorkerThread("test", 2)
        running = asyncio.ensure_future(worker.run(lambda: begun.append("first") or go_on.wait(30), stays))
        await asyncio.sleep(0)
        with pytest.raises(serving.Disconnected):
            await worker.run(lambda: begun.append("abandoned"), leaves)
        waiting = asyncio.ensure_future(worker.run(lambda: begun.append("second"), stays))
        await asyncio.sleep(0)
        with pytest.raises(serving.Refused) as caught:
            await worker.run(lambda: begun.append("too many"), stays)
        assert caught.value.status == 503
        go_on.set()
        assert await running
        await waiting

    asyncio.run(crowd())
    assert begun == ["first", "second"]


ABANDONED = """
asked, made, gone = [], [], threading.Semaphore(0)

class Stub:
    def respond(self, environ):
        path = environ["PATH_INFO"]
        if path in ("/", "/made"):  # the first is asked by the server itself
            return Response(200, (), f"{len(asked)} asked; made: {made}".encode())
        asked.append(path)
        return Deferred(lambda: self.make(path))

    def make(self, path):
        made.append(path)
        if path == "/first":  # the thread is held until the requests behind it have ended
            made.append([gone.acquire(timeout=30) for _ in range(8)].count(True))
        return Response(200, (), b"")

bridge, before_stop = serving.Bridge(Stub(), frozenset(), 2**26), lambda seconds: None

async def served(scope, receive, send):
    await bridge(scope, receive, send)
    if scope["path"] == "/abandoned":
        gone.release()
"""


def test_what_is_abandoned_while_it_waits_is_never_made() -> None:
    def said() -> bytes:
        return fetch(service, "/made").body

    with stub_service(ABANDONED) as (service, _), ExitStack() as crowd:
        first = crowd.enter_context(connect(service))
        first.sendall(b"GET /first" + REST_OF_HEAD)
        while said() != b"1 asked; made: ['/first']":
            pass
        with ExitStack() as abandoned:
            for _ in range(8):
                abandoned.enter_context(ask_without_reading(service, b"GET /abandoned" + REST_OF_HEAD))
            while not said().startswith(b"9 asked"):
                pass
        assert first.recv(15) == b"HTTP/1.1 200 OK"
        assert fetch(service, "/last").status == 200
        assert said() == b"10 asked; made: ['/first', 8, '/last']"


def test_a_response_to_a_peer_that_has_gone_is_not_sent_to_its_end() -> None:
    parts = []

    async def take(message: dict[str, Any]) -> None:
        parts.append(message)

    scope = {"method": "GET", "raw_path": b"/shared/9000000", "query_string": b"", "headers": ()}
    asyncio.run(serving.Bridge(Stub(), frozenset(), 2**26)(scope | {"http_version": "1.1"}, leaves, take))
    assert sum(len(part.get("body", b"")) for part in parts) < 2_000_000


def test_unread_responses_beyond_the_bound_are_503_and_others_are_answered(tmp_path: Path) -> None:
    write_reviews(tmp_path, 1000, "x" * 900)
    readers = serving.MAX_LARGE_RESPONSES + 50
    allow_descriptors()
    with daemon(data=tmp_path) as service, ExitStack() as crowd:
        before = resident_kilobytes(service)
        connections = [crowd.enter_context(ask_without_reading(service)) for _ in range(readers)]
        assert fetch(service, "/robots.txt").status == 200
        refused = fetch(service, "/reviews.json")
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        assert b"Too many large responses" in refused.body
        statuses = Counter(connection.recv(12)[9:] for connection in connections)
        assert statuses == {b"200": serving.MAX_LARGE_RESPONSES, b"503": 50}
        assert resident_kilobytes(service) - before < 200_000


# ---- Log ----


def access_lines(log: str) -> list[str]:
    """The lines of requests, without time, level and milliseconds."""
    found = re.finditer(r"(?m)^[0-9-]+ [0-9:,]+ INFO (\S+ \S+ \S+ [0-9]{3} [0-9]+) [0-9]+\.[0-9]$", log)
    return [line[1] for line in found]


def test_a_log_that_nobody_reads_stops_neither_answers_nor_the_end() -> None:
    with running("--access-log") as (service, process):
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
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0


def test_the_access_log_has_a_line_a_request_that_nothing_in_it_can_forge() -> None:
    environ = {"WATCHDOG_USEC": "20000", "REVIEWSD_LOG_LEVEL": "info"}
    with running("--access-log", **environ) as (service, process):
        body = fetch(service, "/robots.txt?secret=1").body
        fetch(service, "/", "HEAD")
        for raw in (b"/caf\xc3\xa9\\x0a%0a\xc2\x85\xe2\x80\xa8", b"/" + b"y" * 2000):
            exchange(service, b"GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % raw)
        with connect(service) as abandoned:
            abandoned.sendall(HALF_BODY)
            assert fetch(service, "/nothing").status == 404  # the half body has surely been begun by now
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=STOP_SECONDS)
    first, second, third, fourth, *rest = access_lines(log)
    assert first == f"127.0.0.1 GET /robots.txt 200 {len(body)}"
    assert second == "127.0.0.1 HEAD / 200 0"
    assert third.startswith(r"127.0.0.1 GET /caf\xc3\xa9\x5cx0a%0a\xc2\x85\xe2\x80\xa8 404 ")
    assert fourth.startswith(f"127.0.0.1 GET /{'y' * (serving.MAX_LOGGED_PATH_BYTES - 1)} 404 ")
    nothing, half = sorted(rest)  # and none of the watchdog
    assert nothing.startswith("127.0.0.1 GET /nothing 404 ")
    assert half == "127.0.0.1 POST / 499 0"


# ---- Starting and stopping ----


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "\udcff", "nowhere.invalid", "[::1]"])
def test_a_host_that_cannot_be_listened_on_is_one_line(host: str) -> None:
    with pytest.raises(serving.CannotListen) as caught:
        serving.claim_port(host, 0)
    assert str(caught.value).startswith(f"cannot listen on {host} port 0: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_one"),
    [("0.0.0.0", True), ("0", True), ("0x0", True), ("", True), ("::", True), ("0::0", True),
     ("::ffff:0.0.0.0", True), ("127.0.0.1", False), ("::1", False), ("localhost", False), ("a..b", False)],
)  # fmt: skip
def test_a_wildcard_is_known_however_it_is_written(host: str, is_one: bool) -> None:
    assert serving.is_wildcard(host) is is_one


def test_a_unix_socket_serves_and_a_stale_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "reviewsd.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    command = daemon_command("--uds", str(path), "--base-url", "http://reviews.example", "--access-log")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        while "listens on" not in (line := process.stderr.readline()):
            assert line, "the daemon ended"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"GET /reviews.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert connection.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=STOP_SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert not path.exists()
    (line,) = access_lines(log)
    assert line.startswith("- GET /reviews.json 200 ")


@pytest.mark.parametrize(
    ("name", "reason"),
    [(name, "Address already in use") for name in ("file", "used", "datagrams", "busy")]
    + [("no/where", "No such file or directory"), ("x" * 100, "AF_UNIX path too long")],
)
def test_a_path_that_cannot_be_bound_is_left_alone_and_told_in_one_line(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    with ExitStack() as opened:
        for used in ("used", "busy", "datagrams"):
            kind = socket.SOCK_DGRAM if used == "datagrams" else socket.SOCK_STREAM
            listener = opened.enter_context(socket.socket(socket.AF_UNIX, kind))
            listener.bind(str(tmp_path / used))
            if kind == socket.SOCK_STREAM:
                listener.listen(0)
        in_the_queue = opened.enter_context(socket.socket(socket.AF_UNIX))  # which is then full
        in_the_queue.connect(str(tmp_path / "busy"))
        before = sorted(tmp_path.iterdir())
        with pytest.raises(serving.CannotListen) as caught:
            serving.remove_stale_socket(tmp_path / name)
        assert sorted(tmp_path.iterdir()) == before
    assert str(caught.value) == f"cannot listen on {tmp_path / name}: {reason}"


def test_an_address_in_use_is_one_line_and_status_1(service: Address) -> None:
    command = daemon_command("--port", str(service.port))
    taken = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert taken.returncode == 1
    assert taken.stderr == f"cannot listen on 127.0.0.1 port {service.port}: Address already in use\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_status_0_and_no_traceback(number: signal.Signals) -> None:
    with running() as (service, process), connect(service) as idle:
        idle.sendall(b"GET /reviews.json HTTP/1.1\r\nHost: a\r\n\r\n")
        idle.recv(100)
        process.send_signal(number)
        _, rest = process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 0
    assert "Traceback" not in rest
    assert "panic" not in rest


def test_nobody_who_hangs_delays_the_end() -> None:
    pipelined = b"GET /reviews.json HTTP/1.1\r\nHost: a\r\n\r\n" * 50
    with running() as (service, process), ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, pipelined):
            crowd.enter_context(connect(service)).sendall(beginning)
        assert fetch(service, "/healthz").status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(serving.STOP_SECONDS + STOP_SECONDS) == 0


def test_a_reload_that_runs_does_not_delay_the_end(tmp_path: Path) -> None:
    write_reviews(tmp_path, 10_000, "word " * 50)
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
    flags = ("--data", str(tmp_path), "--no-hub")
    with notified(tmp_path) as manager, running(*flags, **environ) as (_, process):
        process.send_signal(signal.SIGHUP)
        while not manager.recv(4096).startswith(b"RELOADING=1"):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(serving.STOP_SECONDS + STOP_SECONDS) == 0


def test_a_running_request_is_finished_before_the_end() -> None:
    with running() as (service, process):
        with connect(service) as connection:
            connection.sendall(HALF_BODY)
            assert fetch(service, "/healthz").status == 200  # the head has surely been read by now
            process.send_signal(signal.SIGTERM)
            connection.sendall(b"12345678")
            assert connection.makefile("rb").readline() == b"HTTP/1.1 405 Method Not Allowed\r\n"
        assert process.wait(STOP_SECONDS) == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
    with notified(tmp_path) as manager, running(**environ) as (service, process), connect(service) as busy:
        busy.sendall(HALF_BODY)
        assert fetch(service, "/healthz").status == 200
        process.send_signal(signal.SIGTERM)
        while manager.recv(4096) != b"STOPPING=1":
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(serving.STOP_SECONDS / 2) == -signal.SIGTERM


LEAVE = """
import os
from reviewslib.process import logs, serving
logs.start_log().flush = lambda: os.write(1, b"flushed\\n")
serving.exit_at_once(0)
"""


def test_all_that_the_end_waits_for_is_waited_for_once_and_takes_5_seconds() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVE], capture_output=True, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"flushed\n")
    assert serving.BEFORE_STOP_SECONDS + serving.STOP_SECONDS + logs.FLUSH_SECONDS < 5


STOPPING = """
asked = threading.Event()

class Stub:
    def respond(self, environ):
        if environ["PATH_INFO"] == "/asked-while-it-stops":
            asked.set()
        return Response(200, (("Content-Length", "0"),), b"")

served = serving.Bridge(Stub(), frozenset(), 2**26)

def before_stop(seconds):
    print("stopping", asked.wait(30), flush=True)
"""


def test_the_port_stays_open_while_what_goes_before_the_end_takes_its_time() -> None:
    with stub_service(STOPPING) as (service, process):
        process.send_signal(signal.SIGTERM)
        assert fetch(service, "/asked-while-it-stops").status == 200
        assert process.stdout.readline() == "stopping True\n"
        assert process.wait(STOP_SECONDS) == 0


SIGNALLED = """
import signal

class Stub:
    def respond(self, environ):
        if environ["PATH_INFO"] == "/stop":
            threading.Timer(1, take_the_signal).start()  # when the loop has nothing to do any more
        return Response(200, (("Content-Length", "0"),), b"")

served = serving.Bridge(Stub(), frozenset(), 2**26)

def before_stop(seconds):
    print("stopping", flush=True)

def take_the_signal():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
"""


def test_a_signal_that_another_thread_takes_ends_an_idle_service() -> None:
    with stub_service(SIGNALLED) as (service, process):
        assert fetch(service, "/stop").status == 200
        assert process.wait(STOP_SECONDS) == 0
        assert process.stdout.read() == "stopping\n"


# ---- Service manager ----


def test_the_service_manager_hears_of_every_state_and_the_watchdog_is_kept(tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    flags = ("--data", str(data), "--reload-interval", "3600")  # so that the signal alone reloads
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
    with notified(tmp_path) as manager, running(*flags, **environ) as (_, process):

        def heard(beginning: bytes) -> bytes:
            while not (message := manager.recv(4096)).startswith(beginning):
                assert message == b"WATCHDOG=1", message
            return message

        assert heard(b"READY=1") == (
            b"READY=1\nSTATUS=Serving 160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out"
        )
        assert manager.recv(4096) == manager.recv(4096) == b"WATCHDOG=1"
        (data / "reviews.json").write_text("[]")
        process.send_signal(signal.SIGHUP)
        heard(b"RELOADING=1\nMONOTONIC_USEC=")
        assert heard(b"READY=1") == b"READY=1\nSTATUS=Stale: reviews.json: an array is not an object"
        process.send_signal(signal.SIGTERM)
        assert heard(b"STOPPING=1") == b"STOPPING=1"
        assert process.wait(STOP_SECONDS) == 0


# ---- Granian: what this service relies on, so that a new release fails here and says where ----

SOURCE = ast.parse(Path(serving.__file__).read_text(encoding="utf-8"))


def test_only_documented_names_of_granian_are_used() -> None:
    modules = [node for node in ast.walk(SOURCE) if isinstance(node, ast.ImportFrom) and node.module]
    of_granian = [node for node in modules if node.module.split(".")[0] == "granian"]  # type: ignore[union-attr]
    names = {alias.name for node in of_granian for alias in node.names}
    assert names == {"HTTPModes", "Interfaces", "HTTP1Settings", "LogLevels", "Server"}
    attributes = {
        node.attr
        for node in ast.walk(SOURCE)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "server"
    }
    assert attributes == {"serve", "stop"}
