"""Crowds of strangers keep no newcomer waiting, an outage is proven, and what the hub costs is bounded.

Newcomers - Outage - Cost
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hub_lab import FEED, FORM, Bench, Lab, apart, form, open_lab, post, running, settled

import hub
from reviewslib.websub import values
from reviewslib.websub.store import Store, Transaction, list_subscriptions
from reviewslib.websub.values import Subscriber, Subscription, SubscriptionState


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


# ---- Newcomers ----


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


# ---- Outage ----


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


# ---- Cost ----


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The subscriptions and requests that have been read."""
    read: list[object] = []

    def counted(query: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def run(*arguments: Any) -> Iterator[Any]:
            for row in query(*arguments):
                read.append(row)
                yield row

        return run

    for name in ("subscriptions", "pending"):
        monkeypatch.setattr(Transaction, name, counted(getattr(Transaction, name)))
    return read


@pytest.mark.parametrize("waits", [False, True])
def test_a_look_reads_what_can_be_started_and_not_what_is_due_or_waits(
    tmp_path: Path, rows_read: list[object], waits: bool
) -> None:
    bench = Bench(tmp_path)
    bench.hub.stop(1)
    store, now = Store(tmp_path), bench.clock.now
    store.open()
    with store.writing() as rows:
        for number in range(3000):
            host = f"h{number}.example"
            url = f"https://{host}/"
            who = Subscriber(FEED, url, url, host, host, f"192.0.2.{number % 20}", "")
            row = Subscription(
                None, who, None, now, now + 9999, "old", next_attempt_at=now + 60 if waits else 0
            )
            rows.save(SubscriptionState(), SubscriptionState(row))
    store.close()
    bench.start()
    rows_read.clear()
    assert len(list(bench.hub.due())) == (0 if waits else 16)
    assert len(rows_read) <= (0 if waits else 32)
    if waits:
        bench.clock.now -= 7200  # only a clock that was set back makes these wait so long
        assert len(list(bench.hub.due())) == 4
    bench.hub.stop(1)


def test_counting_is_done_once_a_second_whatever_happens_and_so_are_looks_when_nothing_does(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, looked = list[float](), list[hub.Hub]()
    count, due = Transaction.counts, hub.Hub.due

    def remember(*arguments: Any) -> dict[str, int]:
        counted.append(time.monotonic())
        return count(*arguments)

    def look(subject: hub.Hub, *arguments: Any) -> Any:
        looked.append(subject)
        return due(subject, *arguments)

    monkeypatch.setattr(Transaction, "counts", remember)
    monkeypatch.setattr(hub.Hub, "due", look)
    with running(lab, tmp_path) as subject:
        for number in range(100):
            post(subject, form(callback=lab.url("/", f"h{number}.d{number % 50}.example")))
        lab.wait(lambda: len(lab.arrivals) == 100)
        lab.wait(lambda: "hub-worker" not in [thread.name for thread in threading.enumerate()])
        looked.clear()
        before = len(counted)
        lab.wait(lambda: len(counted) == before + 2)
        assert len(looked) <= 4
    assert all(later - earlier > 0.9 for earlier, later in pairwise(counted))


def test_a_machine_without_threads_says_so_and_goes_on_later(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start, refused = threading.Thread.start, list[str]()

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "hub-worker":
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(hub, "POLL_SECONDS", 0.01)
    with running(lab, tmp_path) as subject, monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(lambda: len(refused) > 5)
        patch.undo()
        lab.wait(settled(subject, active=1))
    told = "the hub can start no thread, and tries again each second: can't start new thread"
    assert (caplog.messages.count(told), "unexpected" in caplog.text) == (1, False)  # once a minute
