"""Notifications to systemd are sent in order, end with STOPPING, and never fail the service."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from reviewslib.process.service_manager import ServiceManager


@pytest.fixture(params=["path", "abstract"])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    """The socket of systemd, which NOTIFY_SOCKET names."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}"
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(name.replace("@", "\0"))
        end.settimeout(30)
        yield end


def test_each_state_is_one_datagram_and_none_follows_stopping(manager: socket.socket) -> None:
    told = ServiceManager()
    for assignments in (("READY=1", "STATUS=x"), ("STOPPING=1",), ("READY=1",), ("RELOADING=1",)):
        told.notify(*assignments)
    assert manager.recv(100) == b"READY=1\nSTATUS=x"
    assert manager.recv(100) == b"STOPPING=1"
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(100)


def test_without_systemd_nothing_happens_and_a_lost_socket_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    ServiceManager().notify("READY=1")
    assert not caplog.messages
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    ServiceManager().notify("READY=1")
    assert caplog.messages == ["the service manager cannot be notified: [Errno 2] No such file or directory"]
