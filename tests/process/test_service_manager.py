"""Notifications to systemd are sent in order, end with STOPPING, and never fail the service."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reviewslib.process.service_manager import ServiceManager


@pytest.fixture(params=["path", "abstract"])
def systemd(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    """The socket of systemd, which NOTIFY_SOCKET names."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}"
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(name.replace("@", "\0"))
        end.setblocking(False)
        yield end


def received(systemd: socket.socket) -> list[bytes]:
    messages = []
    with suppress(BlockingIOError):
        while True:
            messages.append(systemd.recv(100))
    return messages


def test_a_state_is_one_datagram_and_none_follows_stopping(systemd: socket.socket) -> None:
    manager = ServiceManager()
    for assignments in (("READY=1", "STATUS=x"), ("STOPPING=1",), ("READY=1",), ("RELOADING=1",)):
        manager.notify(*assignments)
    assert received(systemd) == [b"READY=1\nSTATUS=x", b"STOPPING=1"]


class Awake(Exception):
    """Ends a sleep, and with it the feeding."""


@pytest.mark.parametrize(
    ("interval", "expected"),
    [("", []), ("200000", ["asked", [b"WATCHDOG=1"], 0.1, "asked", [b"WATCHDOG=1"], 0.1])],
)
def test_the_watchdog_is_fed_twice_in_an_interval_after_an_answer(
    systemd: socket.socket, monkeypatch: pytest.MonkeyPatch, interval: str, expected: list[object]
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", interval)
    events: list[object] = []

    async def sleep(seconds: float) -> None:
        events.extend([received(systemd), seconds])
        if events.count("asked") == 2:
            raise Awake

    with suppress(Awake):
        asyncio.run(ServiceManager().feed_watchdog(lambda: events.append("asked"), sleep))
    assert events == expected


def test_a_lost_socket_is_logged_and_an_absent_one_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    for name in ("", str(tmp_path / "gone")):
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        ServiceManager().notify("READY=1")
    assert caplog.messages == ["the service manager cannot be notified: [Errno 2] No such file or directory"]
