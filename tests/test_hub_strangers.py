"""Crowds of strangers keep nobody waiting, slow callbacks stand behind quick ones, an outage is proven.

Newcomers - Slow callbacks - Outage - Cost
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hub_lab import (
    FORM,
    Exchange,
    Lab,
    agree,
    apart,
    form,
    hang,
    listed,
    open_lab,
    post,
    running,
    settled,
    topics,
)

from reviewslib.websub.store import Transaction, list_subscriptions
from reviewslib.websub.values import Row


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


def test_a_domain_without_a_name_server_delays_no_newcomer(lab: Lab, tmp_path: Path) -> None:
    with running(lab, tmp_path, resolve=fails) as subject:
        asked = [form(callback=lab.url("/", f"h{number}.fails.example")) for number in range(300)]
        assert {subject.answer(FORM, each).status for each in asked} == {202}
        post(subject, form(callback=lab.url("/honest")))
        lab.wait(settled(subject, active=1))


@pytest.mark.slow
@pytest.mark.parametrize("domains", [20, 25])
def test_a_thousand_black_holes_leave_room_and_turns_for_newcomers(
    lab: Lab, tmp_path: Path, domains: int
) -> None:
    with black_hole() as port, running(lab, tmp_path, timeout=1.0) as subject:
        for number in range(1000):
            post(subject, form(callback=f"https://h{number}.black{number % domains}.example:{port}/"))
        for number in range(10):
            post(subject, form(callback=lab.url("/honest", f"h.d{number}.example")))
        lab.wait(settled(subject, active=10))
        assert subject.counts()["pending"] > 900


def test_many_names_of_one_address_delay_nobody_else(lab: Lab, tmp_path: Path) -> None:
    def resolve(host: str) -> list[str]:
        return apart(host) if host.startswith("honest") else ["127.0.0.66"]

    lab.on("GET", "/hang", hang)
    with running(lab, tmp_path, resolve=resolve, timeout=60.0) as subject:
        post(subject, form(callback=lab.url("/cb", "at-the-address.d1.example")))
        lab.wait(settled(subject, active=1))
        for number in range(40):
            post(subject, form(callback=lab.url("/hang", f"h.d{number}.example")))
        lab.wait(lambda: [arrival.path for arrival in lab.arrivals].count("/hang") == 3)
        post(subject, form(callback=lab.url("/", "honest.d10.example")))
        subject.publish(topics("two"))
        post(subject, form(callback=lab.url("/cb", "at-the-address.d1.example"), secret="renewed"))
        lab.wait(settled(subject, active=2, behind=0, pending=40))
        assert [arrival.path for arrival in lab.arrivals].count("/hang") == 3
        lab.released.set()


# ---- Slow callbacks ----


def subscribe_all(lab: Lab, subject: Any, urls: list[str]) -> None:
    """Fewer at a time than the requests of a domain that wait."""
    for start in range(0, len(urls), 40):
        for url in urls[start : start + 40]:
            post(subject, form(callback=url))
        lab.wait(settled(subject, active=min(len(urls), start + 40)))


@pytest.mark.slow
@pytest.mark.parametrize("domains", [1, 20])
@pytest.mark.parametrize("addresses", [1, 200])
def test_slow_callbacks_delay_a_quick_one_by_one_exchange(
    lab: Lab, tmp_path: Path, domains: int, addresses: int
) -> None:
    def resolve(host: str) -> list[str]:
        number = int(host.split(".")[0][1:])
        return [f"127.0.1.{number % addresses + 1}" if number < 200 else f"127.0.2.{number - 199}"]

    def late(exchange: Exchange) -> None:
        exchange.server.released.wait(1.0)
        agree(exchange)

    urls = [lab.url("/slow", f"h{number}.d{number % domains}.example") for number in range(100)]
    quick, renews, fails = (lab.url(f"/{n}", f"h{n}.d{n % 50}.example") for n in (231, 232, 233))
    with running(lab, tmp_path, resolve=resolve, retry_delays=(1.0, 1.0)) as subject:
        subscribe_all(lab, subject, [*urls, quick, renews, fails])
        lab.on("POST", "/slow", late)
        lab.on("GET", "/slow", late)
        lab.on("POST", "/233", lambda exchange: exchange.answer(500), agree)
        began = time.monotonic()
        for url in urls:
            post(subject, form(callback=url, secret="renewed"))
        post(subject, form(callback=renews, secret="renewed"))
        subject.publish(topics("two"))
        arrived = [
            lambda: lab.posts("/231"),
            lambda: [arrival.path for arrival in lab.arrivals].count("/232") == 3,  # asked twice, served once
            lambda: len(lab.posts("/233")) == 2,  # with the retry, after a second at least
        ]
        for each in arrived:
            lab.wait(each)
        behind = len(urls) - len(lab.posts("/slow"))
        assert behind > 20, f"the slow ones have waited for {time.monotonic() - began:.1f} s"
        lab.released.set()


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
        lab.wait(lambda: all(row.outcome == "name not resolved" for row in subscriptions(tmp_path)))
    assert [row.failures for row in subscriptions(tmp_path)] == [0] * 3


def subscriptions(state_dir: Path) -> list[Row]:
    return [row for row in list_subscriptions(state_dir) if row.mode == "active"]


# ---- Cost ----


@pytest.mark.slow
def test_an_idle_hub_reads_its_store_once_a_second(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, looked = list[float](), list[float]()
    count, due = Transaction.counts, Transaction.due

    def counts(*arguments: Any) -> dict[str, int]:
        counted.append(time.monotonic())
        return count(*arguments)

    def look(*arguments: Any) -> Any:
        looked.append(time.monotonic())
        return due(*arguments)

    monkeypatch.setattr(Transaction, "counts", counts)
    monkeypatch.setattr(Transaction, "due", look)
    with running(lab, tmp_path) as subject:
        for number in range(40):
            post(subject, form(callback=lab.url("/", f"h{number}.d{number}.example")))
        lab.wait(lambda: len(listed(tmp_path)) == len(lab.arrivals) == 40)
        before = len(counted)
        lab.wait(lambda: len(counted) == before + 1)
        looked.clear()
        lab.wait(lambda: len(counted) == before + 3)
        assert len(looked) <= 3
    assert all(later - earlier > 0.9 for earlier, later in pairwise(counted))
