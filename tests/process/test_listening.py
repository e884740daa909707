"""Addresses and descriptors are claimed before the service starts.

A failure names its cause in one line.

Sections: addresses - paths - descriptors - the listener of a server - the first response.
"""

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from lab.services import HOST, daemon_command, fetch, run_daemon, started

from reviewslib.process import listening
from reviewslib.process.listening import CannotListen

IN_USE = "Address already in use"

# ---- Addresses ----


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "0", "0x0", "", "::", "0::0", "::ffff:0.0.0.0"]
)
def test_a_wildcard_is_recognized_in_every_notation(host: str) -> None:
    assert listening.is_wildcard(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "a..b", "\udcff"])
def test_one_address_is_no_wildcard(host: str) -> None:
    assert not listening.is_wildcard(host)


def complaint_of(host: str) -> str:
    """Why a port of a host cannot be claimed."""
    with pytest.raises(CannotListen) as caught:
        listening.claim_port(host, 0)
    return str(caught.value)


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "\udcff", "[::1]"])
def test_a_host_that_cannot_be_listened_on_is_one_line(host: str) -> None:
    complaint = complaint_of(host)

    assert complaint.startswith(f"cannot listen on {host} port 0: ")
    assert len(complaint.splitlines()) == 1


def test_a_port_in_use_is_told_in_one_line_with_status_1() -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]

        taken = run_daemon("--port", str(port), "--no-hub")

    assert taken.returncode == 1
    assert taken.stderr == f"cannot listen on 127.0.0.1 port {port}: {IN_USE}\n"


def test_a_port_is_claimed_while_earlier_connections_end() -> None:
    with socket.create_server((HOST, 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address):
            # The end that closes first waits in TIME_WAIT (tcp(7)).
            connection, _ = server.accept()
            connection.close()

    listening.claim_port(*address).close()


# ---- Paths ----


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Path]:
    """A directory whose files are in the way of a socket."""
    with ExitStack() as opened:

        def unix(kind: socket.SocketKind) -> socket.socket:
            return opened.enter_context(socket.socket(socket.AF_UNIX, kind))

        (tmp_path / "file").touch()
        unix(socket.SOCK_DGRAM).bind(str(tmp_path / "datagrams"))
        for name in ("used", "busy"):
            listener = unix(socket.SOCK_STREAM)
            listener.bind(str(tmp_path / name))
            listener.listen(0)
        # Fills the queue of the listener.
        unix(socket.SOCK_STREAM).connect(str(tmp_path / "busy"))
        yield tmp_path


UNUSABLE_PATHS = [
    pytest.param("file", IN_USE, id="a file"),
    pytest.param("used", IN_USE, id="a server"),
    pytest.param("busy", IN_USE, id="a server with a full queue"),
    pytest.param("datagrams", IN_USE, id="a socket of datagrams"),
    pytest.param("no/where", "No such file or directory", id="no directory"),
    pytest.param("x" * 100, "AF_UNIX path too long", id="a long path"),
]


@pytest.mark.parametrize(("name", "reason"), UNUSABLE_PATHS)
def test_a_path_that_cannot_be_bound_is_named_with_the_reason(
    taken: Path, name: str, reason: str
) -> None:
    path = taken / name

    with pytest.raises(CannotListen) as caught:
        listening.claim_path(path)

    assert str(caught.value) == f"cannot listen on {path}: {reason}"


@pytest.mark.parametrize(("name", "reason"), UNUSABLE_PATHS)
def test_a_path_that_cannot_be_bound_is_left_alone(
    taken: Path, name: str, reason: str
) -> None:
    before = sorted(taken.iterdir())

    with suppress(CannotListen):
        listening.claim_path(taken / name)

    assert sorted(taken.iterdir()) == before


# ---- Descriptors ----


def limited(limit: str, *flags: str) -> list[str]:
    """The command line of the daemon under a limit of the shell."""
    command = daemon_command("--port", "0", "--no-hub", *flags)
    return ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *command]


def test_the_limit_of_open_files_is_raised_to_what_connections_need() -> None:
    command = limited("-S -n 40", "--max-connections", "300")
    with started(command) as service, ExitStack() as crowd:
        for _ in range(250):
            crowd.enter_context(socket.create_connection((HOST, service.port)))

        answer = fetch(service, "/robots.txt")

    assert answer.status == 200


def test_too_few_descriptors_are_one_line_and_status_1() -> None:
    done = run_daemon(line=limited("-n 1063"))

    needed = "1000 connections need 1064 open files, and the limit is 1063"
    remedy = "raise it, or lower --max-connections"
    assert done.returncode == 1
    assert done.stderr == f"{needed}; {remedy}\n"


# ---- The listener of a server ----

TUNED = [
    (socket.SOL_SOCKET, socket.SO_SNDBUF),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
]


def options_of(listener: socket.socket) -> list[int]:
    return [listener.getsockopt(*option) for option in TUNED]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as server:
        yield server


def test_the_listener_of_the_address_is_tuned(listener: socket.socket) -> None:
    listening.tune_listener(listener.getsockname(), 1.5)

    # Linux doubles the value (socket(7)); the timeout is in milliseconds (tcp(7)).
    assert options_of(listener) == [2 * listening.SEND_BUFFER_BYTES, 1500]


def test_another_listener_is_not_tuned(listener: socket.socket) -> None:
    with socket.create_server((HOST, 0)) as other:
        before = options_of(other)

        listening.tune_listener(listener.getsockname(), 1.5)

        assert options_of(other) == before


# ---- The first response of a server ----


def outcome_of_waiting(address: Any, server: Coroutine[Any, Any, Any]) -> str:
    """The word "ready", or the reason why a server is not within 0.1 seconds."""

    async def wait() -> None:
        running = asyncio.ensure_future(server)
        await asyncio.sleep(0)
        await listening.wait_until_ready(address, running, seconds=0.1)

    try:
        asyncio.run(wait())
    except CannotListen as error:
        return str(error).removeprefix(f"cannot listen on {address}: ")
    return "ready"


@contextmanager
def answering(host: str, answer: bytes) -> Iterator[Any]:
    """A server that gives everybody this answer; yields its address."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

    with socket.create_server((host, 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()
        # Wakes `accept`.
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        pytest.param("127.0.0.1", b"HTTP/1.1 503 Busy\r\n", id="busy"),
        pytest.param("0.0.0.0", b"HTTP/1.1 200 OK\r\n", id="at every address"),
    ],
)
def test_a_server_is_ready_when_it_sends_a_status_line(
    host: str, answer: bytes
) -> None:
    with answering(host, answer) as address:
        outcome = outcome_of_waiting(address, asyncio.Event().wait())

    assert outcome == "ready"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"SSH-2.0\r\n", id="another protocol"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_server_is_not_ready_that_sends_no_status_line(answer: bytes) -> None:
    with answering(HOST, answer) as address:
        outcome = outcome_of_waiting(address, asyncio.Event().wait())

    assert outcome == "no request is answered"


def test_a_server_that_ends_is_told_in_one_line(listener: socket.socket) -> None:
    async def fail() -> None:
        raise OSError("its first line\nits second line")

    outcome = outcome_of_waiting(listener.getsockname(), fail())

    assert outcome == "its first line"
