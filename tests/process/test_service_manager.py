"""Notifications to systemd are sent in order, end with STOPPING, and never fail.

The source is sd_notify(3).
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from reviewslib.process.service_manager import ServiceManager


@dataclass(frozen=True)
class Systemd:
    """The end of the socket at which systemd reads."""

    socket: socket.socket

    def told(self) -> list[str]:
        """What has arrived since the last look."""
        messages = []
        with suppress(BlockingIOError):
            while True:
                messages.append(self.socket.recv(100).decode())
        return messages


@pytest.fixture(params=["path", "abstract"])
def systemd(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Systemd]:
    """The service manager whose socket NOTIFY_SOCKET names."""
    name = f"@{tmp_path}"
    if request.param == "path":
        name = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(name.replace("@", "\0"))
        bound.setblocking(False)
        yield Systemd(bound)


def test_a_state_is_one_datagram(systemd: Systemd) -> None:
    ServiceManager().notify("READY=1", "STATUS=x")

    assert systemd.told() == ["READY=1\nSTATUS=x"]


@pytest.mark.parametrize("later", ["READY=1", "RELOADING=1", "WATCHDOG=1"])
def test_nothing_follows_stopping(systemd: Systemd, later: str) -> None:
    manager = ServiceManager()
    manager.notify("STOPPING=1")

    manager.notify(later)

    assert systemd.told() == ["STOPPING=1"]


class Enough(Exception):
    """Ends a watchdog that would be fed for ever."""


def rounds_of_watchdog(systemd: Systemd) -> list[object]:
    """What happens in two rounds, in its order: questions, notifications, seconds."""
    events: list[object] = []

    def ask() -> None:
        events.append("asked")

    async def sleep(seconds: float) -> None:
        events.extend(systemd.told())
        events.append(seconds)
        if events.count("asked") == 2:
            raise Enough

    with suppress(Enough):
        asyncio.run(ServiceManager().feed_watchdog(ask, sleep))
    return events


def test_the_watchdog_is_fed_twice_in_an_interval_after_an_answer(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "200000")

    events = rounds_of_watchdog(systemd)

    assert events == ["asked", "WATCHDOG=1", 0.1] * 2


def test_without_an_interval_there_is_no_watchdog(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "")

    assert rounds_of_watchdog(systemd) == []


def test_a_lost_socket_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "gone")

    ServiceManager().notify("READY=1")

    reason = "[Errno 2] No such file or directory"
    assert caplog.messages == [f"the service manager cannot be notified: {reason}"]


def test_without_a_service_manager_nothing_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "")

    ServiceManager().notify("READY=1")

    assert caplog.messages == []
