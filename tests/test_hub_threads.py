"""The hub with its threads and real HTTPS callbacks, among them crowds of strangers and slow ones."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from lab.hub_lab import (
    Lab,
    agree,
    agree_late,
    ask,
    hang,
    running,
    settled,
    signed,
    topics,
)


def test_a_subscription_is_confirmed_served_and_ended(lab: Lab, tmp_path: Path) -> None:
    callback = lab.url("/cb?key=a%20b&bare")
    own = "https://reviews.example"
    with running(lab, tmp_path) as subject:
        ask(subject, callback, secret="hush", lease_seconds="7200")
        lab.wait(settled(subject, active=1, pending=0))
        subject.publish(topics("zwei 🙂"))
        lab.wait(settled(subject, behind=0))
        ask(subject, callback, mode="unsubscribe")
        lab.wait(settled(subject, active=0, pending=0))
        subject.publish(topics("three"))
        ask(subject, lab.url("/other"))
        lab.wait(settled(subject, active=1, pending=0))
    verification, notification, *_ = lab.arrivals
    asked = "/cb?key=a%20b&bare&hub.mode=subscribe&hub.topic=https%3A%2F%2Freviews.example%2Ffeed.xml&"
    assert verification.target.startswith(asked + "hub.challenge=")
    assert [asked["hub.mode"] for asked in lab.gets()] == [
        "subscribe",
        "unsubscribe",
        "subscribe",
    ]
    # Specification 4.9: of an unsubscription, too.
    assert [asked["hub.lease_seconds"] for asked in lab.gets()] == [
        "7200",
        "864000",
        "864000",
    ]
    assert [post.target for post in lab.posts()] == ["/cb?key=a%20b&bare"]
    assert notification.body == "zwei 🙂".encode()
    assert notification.headers == {  # and no other
        "Host": f"s.lab.example:{lab.port}",
        "User-Agent": "lab/1.0",
        "Connection": "close",
        "Accept-Encoding": "identity",
        "Content-Type": "application/atom+xml",
        "Content-Length": str(len(notification.body)),
        "Link": f'<{own}/api/websub/hub>; rel="hub", <{own}/feed.xml>; rel="self"',
        "X-Hub-Signature": signed("hush", "zwei 🙂"),
    }


def hub_threads() -> set[str]:
    """The hub's threads, which all end with the process."""
    return {
        one.name
        for one in threading.enumerate()
        if one.name.startswith("hub-") and one.daemon
    }


def test_stop_lets_the_running_delivery_finish_and_leaves_nothing(
    lab: Lab, tmp_path: Path
) -> None:
    lab.on("POST", "/cb", agree_late)
    with running(lab, tmp_path) as subject:
        ask(subject, lab.url("/cb"))
        lab.wait(settled(subject, active=1))
        subject.publish(topics("two"))
        lab.wait(lab.posts)
        stopping = threading.Thread(target=subject.stop, args=(30,))
        stopping.start()
        lab.wait(lambda: len(hub_threads()) == 1)
        lab.released.set()
        stopping.join()
    lab.wait(lambda: not hub_threads())
    with running(lab, tmp_path, "two") as subject:
        ask(subject, lab.url("/other"))
        lab.wait(settled(subject, active=2, pending=0, behind=0))
    assert len(lab.posts()) == 1


def test_stop_does_not_wait_longer_than_it_is_told(lab: Lab, tmp_path: Path) -> None:
    lab.on("GET", "/cb", hang, agree_late)
    with running(lab, tmp_path, timeout=60.0) as subject:
        ask(subject, lab.url("/cb"))
        lab.wait(lab.gets)
        subject.stop(0)
        assert not lab.released.is_set()  # the callback hangs still
        lab.released.set()
    with running(lab, tmp_path) as subject:
        lab.wait(settled(subject, active=1, pending=0))


def test_the_scheduler_survives_a_bug(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bugs = [RuntimeError("bug")]

    def clock() -> float:
        if bugs:
            raise bugs.pop()
        return time.time()

    with running(lab, tmp_path, clock=clock) as subject:
        lab.wait(
            lambda: (
                "the hub's scheduler met an unexpected error and goes on"
                in caplog.messages
            )
        )
        ask(subject, lab.url("/cb"))
        lab.wait(settled(subject, active=1))


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


@pytest.mark.slow
def test_hundreds_of_black_holes_leave_room_for_newcomers(
    lab: Lab, tmp_path: Path
) -> None:
    with black_hole() as port, running(lab, tmp_path, timeout=1.0) as subject:
        holes = (
            f"h{number}.black{number % 20}.example:{port}" for number in range(400)
        )
        ask(subject, *(f"https://{hole}/" for hole in holes))
        ask(
            subject,
            *(lab.url("/honest", f"h.d{number}.example") for number in range(10)),
        )
        lab.wait(settled(subject, active=10))
        assert subject.counts()["pending"] > 300


@pytest.mark.slow
@pytest.mark.parametrize("domains", [1, 20])
@pytest.mark.parametrize("addresses", [1, 200])
def test_slow_callbacks_delay_a_quick_one_by_one_exchange(
    lab: Lab, tmp_path: Path, domains: int, addresses: int
) -> None:
    def resolve(host: str) -> list[str]:
        number = int(host.split(".")[0][1:])
        place = number % (addresses if moved.is_set() else 200)
        return [f"127.0.1.{place + 1}" if number < 200 else f"127.0.2.{number - 199}"]

    def late(exchange: Any) -> None:
        exchange.server.released.wait(1.0)
        agree(exchange)

    moved = (
        threading.Event()
    )  # until then strangers would wait for each other at one address
    urls = [
        lab.url("/slow", f"h{number}.d{number % domains}.example")
        for number in range(100)
    ]
    quick, renews, fails = (
        lab.url(f"/{n}", f"h{n}.d{n % 50}.example") for n in (231, 232, 233)
    )
    with running(lab, tmp_path, resolve=resolve, retry_delays=(1.0, 1.0)) as subject:
        for some in (
            urls[:50],
            urls[50:],
            [quick, renews, fails],
        ):  # of a domain, no more than 50 may wait
            ask(subject, *some)
            lab.wait(settled(subject, pending=0))
        moved.set()
        lab.on("POST", "/slow", late)
        lab.on("GET", "/slow", late)
        lab.on("POST", "/233", lambda exchange: exchange.answer(500), agree)
        began = time.monotonic()
        ask(subject, *urls, renews, secret="renewed")
        subject.publish(topics("two"))
        lab.wait(lambda: lab.posts("/231"))
        lab.wait(
            lambda: [one.path for one in lab.arrivals].count("/232") == 3
        )  # asked twice, served once
        lab.wait(
            lambda: len(lab.posts("/233")) == 2
        )  # with the retry, after a second at least
        behind = len(urls) - len(lab.posts("/slow"))
        assert behind > 20, (
            f"the slow ones have waited for {time.monotonic() - began:.1f} s"
        )
        lab.released.set()


@pytest.mark.slow
def test_an_idle_hub_reads_its_store_once_a_second(lab: Lab, tmp_path: Path) -> None:
    looks: list[
        float
    ] = []  # upkeep and reading what is due each look at the clock once

    def clock() -> float:
        looks.append(time.monotonic())
        return time.time()

    with running(lab, tmp_path, clock=clock) as subject:
        ask(subject, lab.url("/"))
        lab.wait(lambda: lab.arrivals)
        lab.wait(lambda: looks[-1] < time.monotonic() - 0.8)
        idle_since = time.monotonic()
        before = len(looks)
        lab.wait(lambda: time.monotonic() > idle_since + 2.5)
        assert 3 <= len(looks) - before <= 6
