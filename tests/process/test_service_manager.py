"""Notifications to systemd are sent in order, end with STOPPING, and never fail the service."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reviewslib.process.service_manager import ServiceManager

Received = Callable[[], list[bytes]]


@pytest.fixture(params=["path", "abstract"])
def received(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Received]:
    """The messages that have arrived at the socket of systemd, which NOTIFY_SOCKET names."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}"
    monkeypatch.setenv("NOTIFY_SOCKET", name)

    def messages() -> Iterator[bytes]:
        with suppress(BlockingIOError):
            while True:
                yield systemd.recv(100)

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(name.replace("@", "\0"))
        systemd.setblocking(False)
        yield lambda: list(messages())


def test_a_state_is_one_datagram_and_none_follows_stopping(received: Received) -> None:
    manager = ServiceManager()
    for assignments in (
        ("READY=1", "STATUS=x"),
        ("STOPPING=1",),
        ("READY=1",),
        ("RELOADING=1",),
    ):
        manager.notify(*assignments)
    assert received() == [b"READY=1\nSTATUS=x", b"STOPPING=1"]


@pytest.mark.parametrize(("interval", "rounds"), [("", 0), ("200000", 2)])
def test_the_watchdog_is_fed_twice_in_an_interval_after_an_answer(
    received: Received, monkeypatch: pytest.MonkeyPatch, interval: str, rounds: int
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", interval)
    events: list[object] = []

    async def sleep(seconds: float) -> None:
        events.extend([received(), seconds])
        if events.count("asked") == 2:
            raise InterruptedError

    with suppress(InterruptedError):
        asyncio.run(
            ServiceManager().feed_watchdog(lambda: events.append("asked"), sleep)
        )
    assert events == ["asked", [b"WATCHDOG=1"], 0.1] * rounds


@pytest.mark.parametrize(
    ("name", "logged"), [("", []), ("gone", ["[Errno 2] No such file or directory"])]
)
def test_only_a_lost_socket_is_logged(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    logged: list[str],
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    ServiceManager().notify("READY=1")
    assert caplog.messages == [
        f"the service manager cannot be notified: {reason}" for reason in logged
    ]
