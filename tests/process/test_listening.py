"""Addresses and descriptors are claimed before the service starts, and a failure names its cause."""

import asyncio
import socket
import threading
from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from lab.services import daemon_command, fetch, run_daemon, started

from reviewslib.process import listening
from reviewslib.process.listening import CannotListen

IN_USE = "Address already in use"
NO_ANSWER = "no request is answered"


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        (host, True)
        for host in ("0.0.0.0", "0", "0x0", "", "::", "0::0", "::ffff:0.0.0.0")
    ]
    + [(host, False) for host in ("127.0.0.1", "::1", "localhost", "a..b", "\udcff")],
)
def test_a_wildcard_is_recognized_in_every_notation(host: str, is_one: bool) -> None:
    assert listening.is_wildcard(host) is is_one


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "\udcff", "[::1]"])
def test_a_host_that_cannot_be_listened_on_is_one_line(host: str) -> None:
    with pytest.raises(CannotListen) as caught:
        listening.claim_port(host, 0)
    beginning, reason = str(caught.value)[:-1].split(" port 0: ")
    assert (beginning, "\n" in reason) == (f"cannot listen on {host}", False)


def test_a_port_in_use_is_told_in_one_line_with_status_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = run_daemon("--port", str(port), "--no-hub")
    line = f"cannot listen on 127.0.0.1 port {port}: {IN_USE}\n"
    assert (taken.returncode, taken.stderr) == (1, line)


def test_a_port_is_claimed_while_earlier_connections_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[
                0
            ].close()  # the end that closes first waits in TIME_WAIT (tcp(7))
    listening.claim_port("127.0.0.1", port).close()


@pytest.mark.parametrize(
    ("name", "reason"),
    [(name, IN_USE) for name in ("file", "used", "datagrams", "busy")]
    + [("no/where", "No such file or directory"), ("x" * 100, "AF_UNIX path too long")],
)
def test_a_path_that_cannot_be_bound_is_left_alone(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    with ExitStack() as opened:

        def unix(kind: socket.SocketKind) -> socket.socket:
            return opened.enter_context(socket.socket(socket.AF_UNIX, kind))

        unix(socket.SOCK_DGRAM).bind(str(tmp_path / "datagrams"))
        for used in ("used", "busy"):
            listener = unix(socket.SOCK_STREAM)
            listener.bind(str(tmp_path / used))
            listener.listen(0)
        unix(socket.SOCK_STREAM).connect(str(tmp_path / "busy"))  # its queue is full
        before = sorted(tmp_path.iterdir())
        with pytest.raises(CannotListen) as caught:
            listening.claim_path(tmp_path / name)
        assert sorted(tmp_path.iterdir()) == before
    assert str(caught.value) == f"cannot listen on {tmp_path / name}: {reason}"


# ---- Descriptors ----


def limited(limit: str, *flags: str) -> list[str]:
    command = daemon_command("--port", "0", "--no-hub", *flags)
    return ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *command]


def test_the_limit_of_open_files_is_raised_to_what_connections_need() -> None:
    with (
        started(limited("-S -n 40", "--max-connections", "300")) as service,
        ExitStack() as crowd,
    ):
        for _ in range(250):
            crowd.enter_context(socket.create_connection(("127.0.0.1", service.port)))
        assert fetch(service, "/robots.txt").status == 200


def test_too_few_descriptors_are_one_line_and_status_1() -> None:
    done = run_daemon(line=limited("-n 1063"))
    needed = "1000 connections need 1064 open files, and the limit is 1063"
    assert (done.returncode, done.stderr) == (
        1,
        f"{needed}; raise it, or lower --max-connections\n",
    )


# ---- The listener of a server, and the wait for its first response ----


def test_only_the_listener_of_the_address_is_tuned() -> None:
    options = [
        (socket.SOL_SOCKET, socket.SO_SNDBUF),
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
    ]
    with (
        socket.create_server(("127.0.0.1", 0)) as tuned,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        before = [other.getsockopt(*option) for option in options]
        listening.tune_listener(tuned.getsockname(), 1.5)
        doubled = 2 * listening.SEND_BUFFER_BYTES  # Linux doubles the value (socket(7))
        assert [tuned.getsockopt(*option) for option in options] == [doubled, 1500]
        assert [other.getsockopt(*option) for option in options] == before


def waited_for(address: Any, server: Coroutine[Any, Any, Any]) -> str | None:
    """The reason why a server is not ready within 0.1 seconds, or None when it is."""

    async def wait() -> None:
        running = asyncio.ensure_future(server)
        await asyncio.sleep(0)
        await listening.wait_until_ready(address, running, seconds=0.1)

    try:
        return asyncio.run(wait())
    except CannotListen as error:
        return str(error).removeprefix(f"cannot listen on {address}: ")


@pytest.mark.parametrize(
    ("host", "answer", "outcome"),
    [
        ("127.0.0.1", b"HTTP/1.1 503 Busy\r\n", None),
        ("0.0.0.0", b"HTTP/1.1 200 OK\r\n", None),
        ("127.0.0.1", b"SSH-2.0\r\n", NO_ANSWER),
        ("127.0.0.1", b"", NO_ANSWER),
    ],
)
def test_a_server_is_ready_when_it_sends_a_status_line(
    host: str, answer: bytes, outcome: str | None
) -> None:
    def serve() -> None:
        with suppress(OSError):
            while connection := server.accept()[0]:
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

    with socket.create_server((host, 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        assert waited_for(server.getsockname(), asyncio.Event().wait()) == outcome
        server.shutdown(socket.SHUT_RDWR)  # wakes `accept`
        thread.join()


def test_a_server_that_ends_is_told_in_one_line() -> None:
    async def fail() -> None:
        raise OSError("its first line\nits second line")

    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert waited_for(silent.getsockname(), fail()) == "its first line"
