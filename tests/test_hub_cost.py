"""What the hub costs: rows that it reads, how often it counts and looks, and threads that it cannot have."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hub_lab import (
    FEED,
    Bench,
    Lab,
    form,
    open_lab,
    post,
    running,
    settled,
)

import hub
from reviewslib.websub.store import Store, Transaction
from reviewslib.websub.values import Subscriber, Subscription, SubscriptionState


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with open_lab(tmp_path, address="") as made:
        yield made


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
