"""Crowds of strangers over real sockets: what they ask keeps no newcomer waiting, and an outage is proven."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hub_lab import FORM, Lab, apart, form, open_lab, post, running, settled

from reviewslib.websub import values
from reviewslib.websub.store import list_subscriptions


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with open_lab(tmp_path, address="") as made:
        yield made


def fails(host: str) -> list[str]:
    """A name server that answers SERVFAIL for names of this domain."""
    if host.endswith(".fails.example"):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    return apart(host)


@contextmanager
def black_hole() -> Iterator[int]:
    """A port at every address of this machine where connections are neither accepted nor refused."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("", 0), backlog=0))
        port = server.getsockname()[1]
        for _ in range(8):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port


def test_a_domain_without_a_name_server_does_not_close_the_hub_to_newcomers(lab: Lab, tmp_path: Path) -> None:
    with running(lab, tmp_path, resolve=fails) as subject:
        asked = [form(callback=lab.url("/", f"h{number}.fails.example")) for number in range(1000)]
        codes = [subject.answer(FORM, each).status for each in asked]
        assert 0 < codes.count(202) <= 50
        assert codes.count(429) == 1000 - codes.count(202)
        post(subject, form(callback=lab.url("/honest")))
        lab.wait(lambda: [line.host for line in list_subscriptions(tmp_path) if line.state == "active"])


def test_hundreds_of_black_holes_delay_no_newcomer(lab: Lab, tmp_path: Path) -> None:
    with black_hole() as port, running(lab, tmp_path, timeout=1.0) as subject:
        for number in range(300):
            post(subject, form(callback=f"https://h{number}.black{number % 20}.example:{port}/"))
        post(subject, form(callback=lab.url("/honest")))
        lab.wait(lambda: lab.arrivals)
        subject.refresh_counts()
        assert subject.counts()["pending"] > 250


def test_black_holes_of_25_domains_leave_room_for_newcomers(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "MAX_PENDING", 200)
    with black_hole() as port, running(lab, tmp_path, timeout=1.0) as subject:
        for number in range(200):
            post(subject, form(callback=f"https://h{number}.black{number % 25}.example:{port}/"))
        for number in range(10):
            post(subject, form(callback=lab.url("/honest", f"h.d{number}.example")))
        lab.wait(settled(subject, active=10))
        assert subject.counts()["pending"] > 150


def test_three_subscribers_in_different_networks_prove_an_outage(lab: Lab, tmp_path: Path) -> None:
    callbacks = [lab.url("/cb", f"h.d{number}.example") for number in range(3)]
    with running(lab, tmp_path) as subject:
        for callback in callbacks:
            post(subject, form(callback=callback))
        lab.wait(settled(subject, active=3))

    meet = threading.Barrier(3)

    def resolve(host: str) -> list[str]:
        meet.wait(20)
        raise socket.gaierror(socket.EAI_AGAIN, "")

    with running(lab, tmp_path, "two", resolve=resolve):
        lab.wait(
            lambda: all(line.last_outcome == "name not resolved" for line in list_subscriptions(tmp_path))
        )
    assert [line.failures for line in list_subscriptions(tmp_path)] == [0] * 3
