"""Addresses and descriptors are claimed before the service starts, and a failure names its cause."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from services import daemon_command, fetch, run_daemon, started

from reviewslib.process import listening


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "\udcff", "nowhere.invalid", "[::1]"])
def test_a_host_that_cannot_be_listened_on_is_one_line(host: str) -> None:
    with pytest.raises(listening.CannotListen) as caught:
        listening.claim_port(host, 0)
    assert str(caught.value).startswith(f"cannot listen on {host} port 0: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_one"),
    [("0.0.0.0", True), ("0", True), ("0x0", True), ("", True), ("::", True), ("0::0", True),
     ("::ffff:0.0.0.0", True), ("127.0.0.1", False), ("::1", False), ("localhost", False), ("a..b", False)],
)  # fmt: skip
def test_a_wildcard_is_known_however_it_is_written(host: str, is_one: bool) -> None:
    assert listening.is_wildcard(host) is is_one


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
        with pytest.raises(listening.CannotListen) as caught:
            listening.remove_stale_socket(tmp_path / name)
        assert sorted(tmp_path.iterdir()) == before
    assert str(caught.value) == f"cannot listen on {tmp_path / name}: {reason}"


def limited(limit: str, *flags: str) -> list[str]:
    command = daemon_command("--port", "0", "--no-hub", *flags)
    return ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *command]


def test_the_limit_of_open_files_is_raised_to_what_connections_need() -> None:
    with started(limited("-S -n 40", "--max-connections", "300")) as service, ExitStack() as crowd:
        for _ in range(250):
            crowd.enter_context(socket.create_connection(("127.0.0.1", service.port)))
        assert fetch(service, "/robots.txt").status == 200


@pytest.mark.parametrize("limit", [12, 1063])
def test_too_few_descriptors_are_one_line_and_status_1(limit: int) -> None:
    done = run_daemon(line=limited(f"-n {limit}"))
    assert done.returncode == 1
    needed = f"1000 connections need 1064 open files, and the limit is {limit}"
    assert done.stderr == f"{needed}; raise it, or lower --max-connections\n"


def test_a_server_that_answers_no_request_is_one_line() -> None:
    async def wait(address: object) -> None:
        running: asyncio.Task[None] = asyncio.ensure_future(asyncio.sleep(30))
        await listening.wait_until_ready(address, running, seconds=0.1)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = silent.getsockname()
        with pytest.raises(listening.CannotListen) as caught:
            asyncio.run(wait(address))
    assert str(caught.value) == f"cannot listen on {address}: no request is answered"
