"""The server withstands requests that are malformed, slow, huge or many.

Most tests start the real daemon.

Sections: requests - bodies - crowds - logs - stops - Granian.
"""

import ast
import re
import resource
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from lab.page_samples import SAMPLE, write_files
from lab.services import (
    ROOT,
    STOP_SECONDS,
    Service,
    daemon,
    fetch,
    running_daemon,
    started,
)
from lab.small_files import a_file, review
from lab.watching import memory_mb, wait_for

from reviewslib.messages import LARGEST_BODY_BYTES
from reviewslib.process import (
    access_log,
    logs,
    serving,
)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
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
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The daemon with short deadlines and two megabytes of reviews."""
    reviews = [review(str(number), text="x" * 1900) for number in range(1000)]
    data = write_files(tmp_path_factory.mktemp("impatient"), a_file(*reviews))
    with started(
        [sys.executable, "-c", IMPATIENT], PYTHONPATH=str(ROOT), REVIEWSD_DATA=str(data)
    ) as address:
        yield address


@pytest.fixture
def stub() -> Iterator[Service]:
    """The program `stub_service.py`."""
    program = str(ROOT / "tests" / "lab" / "stub_service.py")
    with Service([sys.executable, program], PYTHONPATH=str(ROOT)) as service:
        yield service


@contextmanager
def managed(
    directory: Path, *arguments: str, **environ: str
) -> Iterator[tuple[Callable[[], bytes], Service]]:
    """The daemon, and a function that returns its next notification to the service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name := str(directory / "notify"))
        manager.settimeout(STOP_SECONDS)
        with running_daemon(*arguments, **environ, NOTIFY_SOCKET=name) as service:
            yield lambda: manager.recv(4096), service


def connect(
    service: Service, request: bytes = b"", receive_buffer: int | None = None
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
LAST_CHUNK = b"0\r\n\r\n"
JSON = "Content-Type: application/json"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
HALF_HEAD = b"GET /reviews.json HT"
HALF_BODY = head("POST /", "Content-Length: 9") + b"x"


def exchange(service: Service, request: bytes) -> bytes:
    """The bytes until the service closes the connection, in half of the time that a body may take."""
    with connect(service, request) as connection:
        connection.settimeout(serving.Deadlines().body / 2)
        return connection.makefile("rb").read()


def statuses(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] ([0-9]{3}) ", answers)]


def log_until_end(service: Service, number: signal.Signals = signal.SIGTERM) -> str:
    """What a service logs until this signal ends it; SIGCONT does nothing."""
    service.stop(number)
    # Before it listens, it asks itself.
    log = service.log().partition("listens on")[2]
    assert re.findall("Traceback|panic", log) == []
    return log


# ---- Requests: RFC 9112 ----

UPGRADE = (
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAA",
)
HELLO = b"hello"
TWO_LENGTHS = ("Content-Length: 5", "Content-Length: 6")
ONE_LENGTH_TWICE = ("Content-Length: 40", "Content-Length: 40")
HUGE_LENGTH = "Content-Length: 99999999999999999999999"
FOUR_REQUESTS = [keep_alive("GET /x"), keep_alive("GET /"), keep_alive("PUT /")]
SMUGGLED = keep_alive("POST /", "Content-Length: 3", "Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(b"GARBAGE\r\n\r\n", [400], id="garbage"),
        pytest.param(b"GET /healthz HTTP/1.0\r\n\r\n", [200], id="1.0 without host"),
        pytest.param(b"GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", [400], id="bad host"),
        pytest.param(
            b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", [400], id="no host"
        ),
        pytest.param(head("GET /", "Host: a"), [400], id="two hosts"),
        pytest.param(head("GET /", "Host: "), [400], id="a host and an empty one"),
        pytest.param(head("OPTIONS *"), [204], id="the server"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [], id="HTTP/2"),
        pytest.param(head("GET /", "Bad Header: x"), [400], id="space in a name"),
        pytest.param(head("GET /", "X: a\0b"), [400], id="NUL in a field"),
        pytest.param(head("GET /rev\0iews.json"), [400], id="NUL in the path"),
        pytest.param(
            head("GET /api/reviews/search?query=\xff\xfe"), [400], id="not UTF-8"
        ),
        pytest.param(head("GET /" + "a" * 20_000), [431], id="long path"),
        pytest.param(head("GET /", "X: " + "a" * 20_000), [431], id="long field"),
        pytest.param(head("GET /", *["X: y"] * 1000), [431], id="many fields"),
        pytest.param(head("POST /", *TWO_LENGTHS) + HELLO, [400], id="two lengths"),
        pytest.param(
            head("POST /mcp", JSON, *ONE_LENGTH_TWICE) + PING,
            [200],
            id="one length twice",
        ),
        pytest.param(
            head("POST /", "Content-Length: -5") + HELLO, [400], id="negative length"
        ),
        pytest.param(head("POST /", HUGE_LENGTH) + HELLO, [400], id="huge length"),
        pytest.param(
            head("POST /", "Transfer-Encoding: gzip") + HELLO, [400], id="other coding"
        ),
        pytest.param(
            head("GET http://elsewhere.example/reviews.json"), [200], id="absolute form"
        ),
        pytest.param(head("GET /", *UPGRADE), [200], id="WebSocket"),
        pytest.param(head("GET /", "If-None-Match: \xff\xfe"), [200], id="Latin tag"),
        pytest.param(head("GET /", "If_None_Match: *"), [200], id="underscores"),
        pytest.param(
            b"".join(FOUR_REQUESTS) + head("GET /x"),
            [404, 200, 405, 404],
            id="pipeline",
        ),
        pytest.param(SMUGGLED + LAST_CHUNK + head("GET /"), [405], id="smuggled"),
    ],
)
def test_raw_requests_get_defined_answers(
    service: Service, sent: bytes, expected: list[int]
) -> None:
    answers = exchange(service, sent)

    assert statuses(answers) == expected
    assert b"Traceback" not in answers


# ---- Bodies ----


@pytest.mark.parametrize(
    "line", ["POST /mcp", "GET /reviews.json", "POST /api/websub/hub", "PUT /x"]
)
@pytest.mark.parametrize("fields", [[], ["Expect: 100-continue"]])
@pytest.mark.parametrize("length", ["65537", "9" * 18])
def test_a_body_that_announces_too_much_is_413_and_never_read(
    service: Service, line: str, fields: list[str], length: str
) -> None:
    answer = exchange(service, head(line, *fields, f"Content-Length: {length}"))

    assert statuses(answer) == [413]
    assert b"100 Continue" not in answer


def chunks(data: bytes, size: int) -> bytes:
    """The data in chunks of this size, without the last one, which is empty (RFC 9112 section 7.1)."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


TOO_MANY = b"The body has more than 1000 chunks."


LARGEST = chunks(bytes(LARGEST_BODY_BYTES), 8192)
TOO_LARGE = chunks(bytes(LARGEST_BODY_BYTES + 1), 8192)
NOT_JSON = b"-32700"
INCOMPLETE = b'{"parameter":null,"value":"","message":"The body is incomplete'


@pytest.mark.parametrize(
    ("line", "body", "status", "words"),
    [
        pytest.param("POST /mcp", LARGEST + LAST_CHUNK, 400, NOT_JSON, id="largest"),
        pytest.param(
            "POST /",
            TOO_LARGE,
            413,
            b"The body is larger than 65536 bytes.",
            id="too large",
        ),
        pytest.param(
            "POST /mcp",
            chunks(PING.rjust(1000), 1) + LAST_CHUNK,
            200,
            b'"result"',
            id="a thousand chunks",
        ),
        pytest.param(
            "POST /", chunks(bytes(1001), 1) + LAST_CHUNK, 400, TOO_MANY, id="one more"
        ),
        pytest.param("POST /", chunks(bytes(4000), 1), 400, TOO_MANY, id="no end"),
        pytest.param("POST /", b"zz\r\n", 400, INCOMPLETE, id="no size"),
        pytest.param("POST /", b"2\r\nabcdef\r\n", 400, INCOMPLETE, id="wrong size"),
    ],
)
def test_a_chunked_body_is_bounded_and_well_formed(
    service: Service, line: str, body: bytes, status: int, words: bytes
) -> None:
    answer = exchange(service, head(line, CHUNKED, JSON) + body)

    assert statuses(answer) == [status]
    assert words in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framing", "begun"), [("Content-Length: 100", b"x"), (CHUNKED, b"9\r\nx")]
)
def test_a_late_body_is_408_and_ends_the_connection(
    impatient: Service, framing: str, begun: bytes
) -> None:
    with connect(impatient, keep_alive("POST /", framing) + begun) as connection:
        answer = connection.makefile("rb").read()

    assert statuses(answer) == [408]
    assert b"The body did not arrive within 1 seconds." in answer


# ---- Crowds ----


def allow_descriptors() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4000, hard), hard))


@pytest.mark.slow
def test_a_full_service_lets_others_wait_and_feeds_the_watchdog(tmp_path: Path) -> None:
    flags = ("--max-connections", "5")
    with (
        managed(tmp_path, *flags, WATCHDOG_USEC="100000") as (notified, service),
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
    impatient: Service,
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
    impatient: Service, pause_seconds: float, is_whole: bool
) -> None:
    whole = fetch(impatient, "/reviews.json").body
    received = b""
    began = time.monotonic()
    with connect(impatient, head("GET /reviews.json"), 4096) as connection:
        while piece := connection.recv(65536):
            received += piece
            time.sleep(pause_seconds if time.monotonic() < began + 3 else 0)
    assert (received.partition(b"\r\n\r\n")[2] == whole) is is_whole


# ---- Logs ----


def access_lines(log: str) -> list[str]:
    """The lines of requests, without time, level and milliseconds."""
    return re.findall(
        r"(?m)^[0-9-]+ [0-9:,]+ INFO (\S+ \S+ \S+ [0-9]{3} [0-9]+) [0-9]+\.[0-9]$", log
    )


def test_the_access_log_has_one_line_per_request_whatever_its_path() -> None:
    with running_daemon("--access-log") as service:
        body = fetch(service, "/robots.txt?secret=1").body
        fetch(service, "/", "HEAD")
        for path in ("/caf\xc3\xa9\\x0a%0a\xc2\x85\xe2\x80\xa8", "/" + "y" * 2000):
            exchange(service, head(f"GET {path}"))
        with connect(service, HALF_BODY):
            assert (
                fetch(service, "/nothing").status == 404
            )  # by now the service waits for the other half
        log = log_until_end(service, signal.SIGINT)
    assert log.endswith(" INFO stopped\n"), "the log is flushed"
    lines = [line.removeprefix("127.0.0.1 ") for line in access_lines(log)]
    assert lines[:2] == [f"GET /robots.txt 200 {len(body)}", "HEAD / 200 0"]
    assert lines[2].startswith(r"GET /caf\xc3\xa9\x5cx0a%0a\xc2\x85\xe2\x80\xa8 404 ")
    assert lines[3].startswith(
        f"GET /{'y' * (access_log.MAX_LOGGED_PATH_BYTES - 1)} 404 "
    )
    nothing, half = sorted(lines[4:])
    assert (nothing[:17], half) == ("GET /nothing 404 ", "POST / 499 0")


def test_a_peer_that_leaves_before_its_response_is_noticed(stub: Service) -> None:
    with connect(stub, head("GET /hold")):
        # By then the service has read the request.
        fetch(stub, "/")

    wait_for("notice", lambda: "GET /hold 499 0" in stub.log())
    # The job goes on for 30 seconds.
    stub.check()


def test_a_unix_socket_serves_in_place_of_a_stale_one(tmp_path: Path) -> None:
    path = tmp_path / "reviewsd.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    flags = ("--uds", str(path), "--base-url", "http://reviews.example", "--access-log")
    with (
        running_daemon(*flags) as service,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        assert path.stat().st_mode & 0o777 == 0o660
        connection.connect(str(path))
        connection.sendall(head("GET /reviews.json"))
        assert connection.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
        (line,) = access_lines(log_until_end(service))
    assert line.startswith("- GET /reviews.json 200 ")
    assert not path.exists()


# ---- Stops ----


@pytest.mark.slow
def test_a_hanging_crowd_delays_neither_others_nor_the_stop() -> None:
    allow_descriptors()
    with running_daemon() as service, ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, keep_alive("GET /reviews.json") * 50):
            for _ in range(300):
                crowd.enter_context(connect(service, beginning))
        assert fetch(service, "/reviews.json").status == 200
        began = time.monotonic()
        assert "are closed" in log_until_end(service)
        assert time.monotonic() - began < 5 - logs.FLUSH_SECONDS


def test_a_running_request_is_finished_before_the_stop() -> None:
    with (
        running_daemon() as service,
        connect(service, HALF_BODY) as connection,
    ):
        assert (
            fetch(service, "/healthz").status == 200
        )  # by now the service has read the head
        service.process.terminate()
        connection.sendall(b"12345678")
        assert (
            connection.makefile("rb").readline()
            == b"HTTP/1.1 405 Method Not Allowed\r\n"
        )
        assert service.process.wait(STOP_SECONDS) == 0


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (signal.SIGTERM, "/go-on"),
        (signal.SIGINT, "/go-on"),
        (signal.SIGCONT, "/signal"),
    ],
)
def test_the_port_stays_open_while_before_stop_runs_after_any_signal(
    stub: Service, number: signal.Signals, path: str
) -> None:
    stub.process.send_signal(number)
    assert fetch(stub, path).status == 200
    assert "stopping True\n" in log_until_end(stub, signal.SIGCONT)


@pytest.mark.slow
def test_a_hanging_job_delays_no_stop(stub: Service) -> None:
    with connect(stub, head("GET /hold")):
        # By then the service has read the request.
        fetch(stub, "/")
        stub.stop()


def test_the_service_manager_is_told_every_state(tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    flags = (
        "--data",
        str(data),
        "--reload-interval",
        "3600",
    )  # so that only the signal causes a reload
    with (
        managed(tmp_path, *flags) as (notified, service),
        connect(service, HALF_BODY),
    ):
        serving_status = (
            "Serving 160 reviews of Larkspur Hollow Chiropractic, 4 unverified left out"
        )
        assert notified().decode() == f"READY=1\nSTATUS={serving_status}"
        (data / "reviews.json").write_text("[]")
        service.process.send_signal(signal.SIGHUP)
        assert notified().startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert (
            notified()
            == b"READY=1\nSTATUS=Stale: reviews.json: an array is not an object"
        )
        service.process.terminate()
        assert notified() == b"STOPPING=1"
        service.process.terminate()
        assert service.process.wait(serving.STOP_SECONDS / 2) == -signal.SIGTERM, (
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
