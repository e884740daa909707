"""The server withstands requests that are malformed, slow, huge or many.

Most tests start the real daemon. The times that it keeps are rows of the bench.

Sections: services - connections - requests - bodies - crowds - readers - logs - Unix
sockets - stops - the service manager - Granian.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab.data_sets import write_files
from lab.services import (
    HOST,
    ROOT,
    SAMPLE,
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
from reviewslib.process import serving

# ---- Services ----


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with daemon() as running:
        yield running


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
    variables = {"PYTHONPATH": str(ROOT), "REVIEWSD_DATA": str(data)}
    with started([sys.executable, "-c", IMPATIENT], **variables) as running:
        yield running


@pytest.fixture
def stub() -> Iterator[Service]:
    """The program `stub_service.py`."""
    program = str(ROOT / "tests" / "lab" / "stub_service.py")
    with Service([sys.executable, program], PYTHONPATH=str(ROOT)) as running:
        yield running


@dataclass(frozen=True)
class Managed:
    """A daemon, and the socket at which the service manager hears of it."""

    service: Service
    manager: socket.socket

    def told(self) -> str:
        """The next notification."""
        return self.manager.recv(4096).decode()


@contextmanager
def managed(directory: Path, *arguments: str, **environ: str) -> Iterator[Managed]:
    name = str(directory / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        manager.settimeout(STOP_SECONDS)
        with running_daemon(*arguments, **environ, NOTIFY_SOCKET=name) as service:
            yield Managed(service, manager)


# ---- Connections ----

# The kernel reads little ahead for a peer that reads nothing.
SMALL_BUFFER_BYTES = 4096


def connect(
    service: Service, request: bytes = b"", receive_buffer: int | None = None
) -> socket.socket:
    """A connection that has sent `request`."""
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(STOP_SECONDS)
    connection.connect((HOST, service.port))
    connection.sendall(request)
    return connection


def allow_descriptors() -> None:
    """Let this process have the connections of a crowd."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4000, hard), hard))


def keep_alive(line: str, *fields: str) -> bytes:
    """A request head with these fields and a Host; version and line ends are added."""
    lines = [f"{line} HTTP/1.1", "Host: a", *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1")


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
    """The bytes until the service closes the connection.

    It does so in half of the time that a body may take: it waits for nothing.
    """
    with connect(service, request) as connection:
        connection.settimeout(serving.Deadlines().body / 2)
        return connection.makefile("rb").read()


def statuses(answers: bytes) -> list[int]:
    """The statuses of responses that follow each other."""
    return [int(status) for status in STATUS_LINE.findall(answers)]


STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")


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
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param([], id="at once"),
        pytest.param(["Expect: 100-continue"], id="asking first"),
    ],
)
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
    ("framing", "begun"),
    [
        pytest.param("Content-Length: 100", b"x", id="of a length"),
        pytest.param(CHUNKED, b"9\r\nx", id="in chunks"),
    ],
)
def test_a_late_body_is_408_and_ends_the_connection(
    impatient: Service, framing: str, begun: bytes
) -> None:
    with connect(impatient, keep_alive("POST /", framing) + begun) as connection:
        answer = connection.makefile("rb").read()

    assert statuses(answer) == [408]
    assert b"The body did not arrive within 1 seconds." in answer


# ---- Crowds ----

PLACES = 5


@contextmanager
def full(directory: Path, **environ: str) -> Iterator[tuple[Managed, socket.socket]]:
    """A daemon whose places are taken, and the connection that came first."""
    with (
        managed(directory, "--max-connections", str(PLACES), **environ) as running,
        ExitStack() as crowd,
    ):
        first = crowd.enter_context(connect(running.service))
        for _ in range(PLACES - 1):
            crowd.enter_context(connect(running.service))
        yield running, first


@pytest.mark.slow
def test_who_comes_to_a_full_service_waits_for_a_place(tmp_path: Path) -> None:
    with (
        full(tmp_path) as (running, first),
        connect(running.service, head("GET /robots.txt")) as waiting,
    ):
        # A response would have come within the half second.
        answered, _, _ = select.select([waiting], [], [], 0.5)
        assert answered == []

        first.close()

        assert statuses(waiting.makefile("rb").readline()) == [200]


@pytest.mark.slow
def test_a_full_service_feeds_the_watchdog(tmp_path: Path) -> None:
    with full(tmp_path, WATCHDOG_USEC="100000") as (running, _):
        while not running.told().startswith("READY=1"):
            pass

        assert [running.told() for _ in range(6)] == ["WATCHDOG=1"] * 6


# ---- Readers ----

READERS = 300
# For each of them: two megabytes are sent in parts of 40 KiB, of which Granian holds some
# seven.
HELD_MB = 0.4


@contextmanager
def readers_of_nothing(service: Service) -> Iterator[None]:
    """Peers that ask for two megabytes and never read."""
    allow_descriptors()
    with ExitStack() as crowd:
        for _ in range(READERS):
            asked = connect(service, head("GET /reviews.json"), SMALL_BUFFER_BYTES)
            crowd.enter_context(asked)
        yield


@pytest.mark.slow
def test_others_are_served_beside_peers_that_read_nothing(impatient: Service) -> None:
    with readers_of_nothing(impatient):
        answer = fetch(impatient, "/robots.txt")

    assert answer.status == 200


@pytest.mark.slow
def test_peers_that_read_nothing_hold_little_memory(impatient: Service) -> None:
    fetch(impatient, "/reviews.json")
    before = memory_mb(impatient.pid)

    with readers_of_nothing(impatient):
        # By then the service has sent what it can.
        fetch(impatient, "/robots.txt")
        held = memory_mb(impatient.pid) - before

    assert held < READERS * HELD_MB


@pytest.mark.slow
def test_peers_that_read_nothing_are_cut(impatient: Service) -> None:
    descriptors = Path(f"/proc/{impatient.pid}/fd")

    def number_of_descriptors() -> int:
        return len(list(descriptors.iterdir()))

    with readers_of_nothing(impatient):
        # TCP by itself would wait for a quarter of an hour (tcp(7)).
        wait_for("end of readers", lambda: number_of_descriptors() < READERS // 3)


# Three seconds of pauses: the service gives two.
SLOW_READS = 30
PAUSE_SECONDS = 0.1


def read_with_pauses(service: Service, pause_seconds: float) -> bytes:
    """The body of all reviews, of which the first part is read with pauses."""
    received = b""
    reads = 0
    with connect(service, head("GET /reviews.json"), SMALL_BUFFER_BYTES) as connection:
        while piece := connection.recv(65536):
            received += piece
            reads += 1
            if reads <= SLOW_READS:
                time.sleep(pause_seconds)
    return received.partition(b"\r\n\r\n")[2]


@pytest.mark.slow
def test_a_reader_of_a_large_response_has_a_deadline(impatient: Service) -> None:
    whole = fetch(impatient, "/reviews.json").body

    received = read_with_pauses(impatient, PAUSE_SECONDS)

    assert len(received) < len(whole)


@pytest.mark.slow
def test_a_reader_with_a_small_buffer_gets_all(impatient: Service) -> None:
    whole = fetch(impatient, "/reviews.json").body

    received = read_with_pauses(impatient, 0)

    assert received == whole


# ---- Logs: what else an access log says is in `test_access_log.py` ----


def test_the_access_log_has_one_line_per_request() -> None:
    with running_daemon("--access-log") as service:
        size = len(fetch(service, "/robots.txt").body)
        fetch(service, "/", "HEAD")
        fetch(service, "/nothing")
        log = log_until_end(service)

    first, second, third = re.findall("INFO (127.0.0.1 .*)", log)
    assert first.startswith(f"127.0.0.1 GET /robots.txt 200 {size} ")
    assert second.startswith("127.0.0.1 HEAD / 200 0 ")
    assert third.startswith("127.0.0.1 GET /nothing 404 ")


def test_a_request_that_never_ends_is_logged_at_the_stop() -> None:
    with running_daemon("--access-log") as service:
        with connect(service, HALF_BODY):
            # By then the service waits for the other half.
            fetch(service, "/nothing")
        log = log_until_end(service)

    assert "127.0.0.1 POST / 499 0 " in log


def test_the_log_ends_with_the_stop() -> None:
    with running_daemon() as service:
        log = log_until_end(service, signal.SIGINT)

    assert log.endswith(" INFO stopped\n")


def test_a_peer_that_leaves_before_its_response_is_noticed(stub: Service) -> None:
    with connect(stub, head("GET /hold")):
        # By then the service has read the request.
        fetch(stub, "/")

    wait_for("notice", lambda: "GET /hold 499 0" in stub.log())
    # The job goes on for 30 seconds.
    stub.check()


# ---- Unix sockets ----


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a service that has ended has left its socket."""
    made = tmp_path / "reviewsd.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(made))
    return made


@pytest.fixture
def at_a_path(path: Path) -> Iterator[Service]:
    flags = ("--uds", str(path), "--base-url", "http://reviews.example")
    with running_daemon(*flags) as service:
        yield service


@pytest.mark.usefixtures("at_a_path")
def test_a_unix_socket_serves_in_place_of_a_stale_one(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(head("GET /reviews.json"))

        assert statuses(connection.makefile("rb").readline()) == [200]


@pytest.mark.usefixtures("at_a_path")
def test_the_group_may_use_a_unix_socket(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o660


def test_a_unix_socket_goes_with_its_service(at_a_path: Service, path: Path) -> None:
    at_a_path.stop()

    assert not path.exists()


# ---- Stops ----


@contextmanager
def hanging_crowd(service: Service) -> Iterator[None]:
    """Connections with half of a head, half of a body, and answers that nobody reads."""
    allow_descriptors()
    with ExitStack() as crowd:
        for beginning in (HALF_HEAD, HALF_BODY, keep_alive("GET /reviews.json") * 50):
            for _ in range(300):
                crowd.enter_context(connect(service, beginning))
        yield


@pytest.mark.slow
def test_others_are_served_beside_a_hanging_crowd(service: Service) -> None:
    with hanging_crowd(service):
        answer = fetch(service, "/reviews.json")

    assert answer.status == 200


@pytest.mark.slow
def test_a_hanging_crowd_is_cut_at_the_stop() -> None:
    with running_daemon() as service, hanging_crowd(service):
        log = log_until_end(service)

    assert "still open after 2.5 seconds are closed" in log


def test_a_running_request_is_finished_before_the_stop() -> None:
    with running_daemon() as service, connect(service, HALF_BODY) as connection:
        # By then the service has read the head.
        fetch(service, "/healthz")
        service.process.terminate()
        connection.sendall(b"12345678")

        assert statuses(connection.makefile("rb").readline()) == [405]
        assert service.process.wait(STOP_SECONDS) == 0


@pytest.mark.parametrize(
    ("number", "path"),
    [
        pytest.param(signal.SIGTERM, "/go-on", id="SIGTERM"),
        pytest.param(signal.SIGINT, "/go-on", id="SIGINT"),
        # The stub sends it to a thread of its own.
        pytest.param(signal.SIGCONT, "/signal", id="SIGTERM to another thread"),
    ],
)
def test_the_port_stays_open_while_before_stop_runs(
    stub: Service, number: signal.Signals, path: str
) -> None:
    stub.process.send_signal(number)

    answer = fetch(stub, path)

    assert answer.status == 200
    assert "stopping True\n" in log_until_end(stub, signal.SIGCONT)


@pytest.mark.slow
def test_a_hanging_job_delays_no_stop(stub: Service) -> None:
    with connect(stub, head("GET /hold")):
        # By then the service has read the request.
        fetch(stub, "/")

        stub.stop()

    assert stub.process.returncode == 0


# ---- The service manager ----

SERVING = "Serving 160 reviews of Larkspur Hollow Chiropractic"


def test_the_service_manager_is_told_what_is_served(tmp_path: Path) -> None:
    with managed(tmp_path) as running:
        assert running.told().startswith(f"READY=1\nSTATUS={SERVING}")


def test_the_service_manager_is_told_of_a_reload(tmp_path: Path) -> None:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    # Only the signal causes a reload.
    flags = ("--data", str(data), "--reload-interval", "3600")
    with managed(tmp_path, *flags) as running:
        running.told()
        (data / "reviews.json").write_text("[]")
        running.service.process.send_signal(signal.SIGHUP)
        begun = running.told()
        ended = running.told()

    assert begun.startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert ended == "READY=1\nSTATUS=Stale: reviews.json: an array is not an object"


def test_the_service_manager_is_told_of_the_stop(tmp_path: Path) -> None:
    with managed(tmp_path) as running:
        running.told()
        running.service.process.terminate()

        assert running.told() == "STOPPING=1"


def test_a_second_signal_ends_the_service_at_once(tmp_path: Path) -> None:
    with managed(tmp_path) as running, connect(running.service, HALF_BODY):
        # By then the service has read the head, and would wait for the body.
        fetch(running.service, "/robots.txt")
        running.told()
        running.service.process.terminate()
        running.told()

        running.service.process.terminate()

        assert running.service.process.wait(STOP_SECONDS) == -signal.SIGTERM


# ---- Granian: only its documented names, which new releases keep ----


def names_of_granian() -> Iterator[str]:
    """What the server imports of Granian."""
    source = Path(serving.__file__).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and "granian" in str(node.module):
            for alias in node.names:
                yield alias.name


def test_only_documented_names_of_granian_are_imported() -> None:
    documented = {"HTTPModes", "Interfaces", "HTTP1Settings", "LogLevels", "Server"}

    assert set(names_of_granian()) == documented


def test_only_documented_methods_of_its_server_are_called() -> None:
    source = Path(serving.__file__).read_text(encoding="utf-8")

    called = set(re.findall(r"\bserver\.\w+\(", source))

    assert called == {"server.serve(", "server.stop("}
