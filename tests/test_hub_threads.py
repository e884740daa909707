"""The hub with its threads and real HTTPS callbacks, among them crowds of strangers and slow ones."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from lab.callback_lab import (
    Behaviour,
    Exchange,
    Lab,
    agree,
    agree_late,
    ask,
    hang,
    running,
    settled,
)
from lab.hub_values import query, signed, topics
from lab.watching import wait_for

from reviewslib.websub import scheduler
from reviewslib.websub.store import list_rows


def test_a_subscription_is_confirmed_served_and_ended(lab: Lab, tmp_path: Path) -> None:
    # given a subscriber
    callback = lab.url("/cb")
    with running(lab, tmp_path) as subject:
        ask(subject, callback, lease_seconds="7200")
        lab.wait(settled(subject, active=1, pending=0))

        # when there is new content, and again after it has unsubscribed
        subject.publish(topics("two"))
        lab.wait(settled(subject, behind=0))
        ask(subject, callback, mode="unsubscribe")
        lab.wait(settled(subject, active=0, pending=0))
        subject.publish(topics("three"))
        ask(subject, lab.url("/other"))
        lab.wait(settled(subject, active=1, pending=0))

    # then it got the first one
    assert [post.body for post in lab.posts("/cb")] == [b"two"]
    asked = [asked["hub.mode"] for asked in lab.gets()]
    assert asked == ["subscribe", "unsubscribe", "subscribe"]
    # Specification 4.9: the lease is told of an unsubscription, too.
    leases = [asked["hub.lease_seconds"] for asked in lab.gets()]
    assert leases == ["7200", "864000", "864000"]


def test_an_exchange_is_to_the_letter_what_was_asked_for(
    lab: Lab, tmp_path: Path
) -> None:
    # given a subscriber whose callback has a query
    callback = lab.url("/cb?key=a%20b&bare")
    with running(lab, tmp_path) as subject:
        ask(subject, callback, secret="hush")
        lab.wait(settled(subject, active=1, pending=0))

        # when it is served
        subject.publish(topics("zwei 🙂"))
        lab.wait(settled(subject, behind=0))

    # then its query is kept, and the delivery has these fields and no other
    verification, notification = lab.arrivals
    assert verification.target.startswith(
        "/cb?key=a%20b&bare&hub.mode=subscribe"
        "&hub.topic=https%3A%2F%2Freviews.example%2Ffeed.xml&hub.challenge="
    )
    assert notification.target == "/cb?key=a%20b&bare"
    own = "https://reviews.example"
    assert notification.headers == {
        "Host": f"s.lab.example:{lab.port}",
        "User-Agent": "lab/1.0",
        "Connection": "close",
        "Accept-Encoding": "identity",
        "Content-Type": "application/atom+xml",
        "Content-Length": str(len("zwei 🙂".encode())),
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


def test_no_thread_of_the_hub_keeps_a_process_that_ends(
    lab: Lab, tmp_path: Path
) -> None:
    # given a hub that has asked, and gets no answer
    lab.on("GET", "/cb", hang)
    with running(lab, tmp_path, timeout=60.0) as subject:
        ask(subject, lab.url("/cb"))

        # then all of its threads are daemons
        lab.wait(lambda: hub_threads() >= {"hub-scheduler", "hub-verification"})
        subject.stop(0)
        lab.released.set()


def test_stop_lets_the_running_delivery_finish_and_leaves_nothing(
    lab: Lab, tmp_path: Path
) -> None:
    # given a delivery that goes on
    lab.on("POST", "/cb", agree_late)
    with running(lab, tmp_path) as subject:
        ask(subject, lab.url("/cb"))
        lab.wait(settled(subject, active=1))
        subject.publish(topics("two"))
        lab.wait(lab.posts)

        # when the hub is stopped, and then the callback answers
        stopping = threading.Thread(target=subject.stop, args=(30,))
        stopping.start()
        lab.wait(lambda: hub_threads() == {"hub-delivery"})
        lab.released.set()
        stopping.join()
    lab.wait(lambda: not hub_threads())

    # then the delivery is not repeated after the next start
    with running(lab, tmp_path, "two") as subject:
        ask(subject, lab.url("/other"))
        lab.wait(settled(subject, active=2, pending=0, behind=0))
    assert len(lab.posts()) == 1


def test_stop_does_not_wait_longer_than_it_is_told(lab: Lab, tmp_path: Path) -> None:
    # given a verification that hangs
    lab.on("GET", "/cb", hang, agree_late)
    with running(lab, tmp_path, timeout=60.0) as subject:
        ask(subject, lab.url("/cb"))
        lab.wait(lab.gets)

        # when the hub is stopped at once
        subject.stop(0)
        hangs_still = not lab.released.is_set()
        lab.released.set()

    # then the callback is asked again after the next start
    assert hangs_still
    with running(lab, tmp_path) as subject:
        lab.wait(settled(subject, active=1, pending=0))


@pytest.mark.parametrize(
    "method",
    [pytest.param("GET", id="a challenge"), pytest.param("POST", id="a delivery")],
)
def test_stop_begins_nothing_more(lab: Lab, tmp_path: Path, method: str) -> None:
    def arrived() -> list[str]:
        return [one.path for one in lab.arrivals if one.method == method]

    # given a hub with one thread for each kind, and an exchange that goes on
    lab.on(method, "/first", agree_late)
    with running(lab, tmp_path, workers=1) as subject:
        ask(subject, lab.url("/first"))
        if method == "POST":
            lab.wait(settled(subject, active=1))
            ask(subject, lab.url("/second"))
            lab.wait(settled(subject, active=2))
            subject.publish(topics("two"))
        lab.wait(arrived)
        if method == "GET":
            ask(subject, lab.url("/second"))

        # when the hub is stopped, and then the exchange ends
        stopping = threading.Thread(target=subject.stop, args=(30,))
        stopping.start()
        lab.wait(lambda: "hub-scheduler" not in hub_threads())
        lab.released.set()
        stopping.join()

    # then the one that waited has not begun
    assert arrived() == ["/first"]


def test_the_scheduler_survives_a_bug(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bugs = [RuntimeError("bug")]

    def clock() -> float:
        if bugs:
            raise bugs.pop()
        return time.time()

    def is_logged() -> bool:
        line = "the hub's scheduler met an unexpected error and goes on"
        return line in caplog.messages

    # given a hub with a bug in its first round
    with running(lab, tmp_path, clock=clock) as subject:
        lab.wait(is_logged)

        # when somebody subscribes
        ask(subject, lab.url("/cb"))

        # then the hub works
        lab.wait(settled(subject, active=1))


def test_a_form_and_new_content_are_acted_on_at_once(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_subscribed() -> bool:
        return any(row.is_subscription for row in list_rows(tmp_path))

    # given a hub that looks at its store by itself once an hour
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 3600.0)
    with running(lab, tmp_path) as subject:
        # when somebody subscribes, and then there is new content
        ask(subject, lab.url("/cb"))
        lab.wait(is_subscribed)
        subject.publish(topics("two"))

        # then it is delivered without waiting for that
        lab.wait(lab.posts)


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
    # given strangers whose callbacks neither accept nor refuse a connection
    with black_hole() as port, running(lab, tmp_path, timeout=1.0) as subject:
        holes = [f"https://h{number}.example:{port}/" for number in range(400)]
        ask(subject, *holes)

        # when newcomers ask
        ask(subject, *(lab.url(f"/honest/{number}") for number in range(10)))

        # then they are verified
        lab.wait(settled(subject, active=10))


def steps_of(lab: Lab, path: str) -> list[str]:
    return [one.method for one in lab.arrivals if one.path == path]


@pytest.mark.slow
def test_what_hangs_delays_no_quick_delivery_newcomer_or_retry(
    lab: Lab, tmp_path: Path
) -> None:
    # given subscribers of whom a hundred, more than there are threads, begin to hang
    hanging = [lab.url(f"/hangs/{number}") for number in range(100)]
    with running(lab, tmp_path, retry_delays=(1.0, 1.0), timeout=60.0) as subject:
        ask(subject, *hanging, lab.url("/quick"), lab.url("/fails"))
        lab.wait(settled(subject, active=102, pending=0))
        subject.publish(topics("two"))
        lab.wait(settled(subject, behind=0))
        for number in range(100):
            lab.on("POST", f"/hangs/{number}", late)
            lab.on("GET", f"/hangs/{number}", late)
        lab.on("POST", "/fails", lambda exchange: exchange.answer(500), agree)

        # when they are slow, and everybody is asked, served and tried again
        subject.publish(topics("three"))
        lab.wait(settled(subject, behind=0))
        ask(subject, *hanging, lab.url("/quick"), secret="new")
        ask(subject, lab.url("/newcomer"))
        lab.wait(lambda: steps_of(lab, "/newcomer") == ["GET"])
        for number in range(100):
            lab.on("POST", f"/hangs/{number}", hang)
        subject.publish(topics("four"))

        # then the quick ones wait for none of the slow ones
        lab.wait(lambda: steps_of(lab, "/quick").count("POST") == 3)
        lab.wait(lambda: steps_of(lab, "/fails").count("POST") == 4)
        assert not lab.released.is_set()
        lab.released.set()


def late(exchange: Exchange) -> None:
    """An answer that is slow, but comes."""
    exchange.server.released.wait(2.2)
    agree(exchange)


@pytest.mark.slow
def test_a_stranger_who_repeats_the_requests_of_others_stops_no_renewal(
    lab: Lab, tmp_path: Path
) -> None:
    # given five subscribers, whose callbacks a stranger knows
    victims = [lab.url(f"/victim/{number}") for number in range(5)]
    with running(lab, tmp_path) as subject:
        ask(subject, *victims)
        lab.wait(settled(subject, active=5, pending=0))

        # when the stranger sends many requests with these, and they renew meanwhile
        for number in range(60):
            ask(subject, *victims, secret=f"a stranger's {number}")
            for path in range(5):
                lab.on("GET", f"/victim/{path}", refuse_all_but("7200"))
            if number == 30:
                ask(subject, *victims, lease_seconds="7200")
        lab.wait(settled(subject, pending=0))

    # then all of them are renewed
    rows = list_rows(tmp_path)
    assert [row.lease_seconds for row in rows] == [7200] * 5


def refuse_all_but(lease: str) -> Behaviour:
    """A callback that confirms what it has asked for, and nothing else."""

    def behave(exchange: Exchange) -> None:
        asked = query(exchange.path)
        if asked["hub.lease_seconds"] == lease:
            agree(exchange)
        else:
            exchange.answer(404)

    return behave


@pytest.mark.slow
def test_all_callbacks_may_have_one_host(lab: Lab, tmp_path: Path) -> None:
    # given many callbacks of one host at one address, most of which hang
    with running(lab, tmp_path, timeout=60.0) as subject:
        for number in range(40):
            lab.on("GET", f"/hangs/{number}", hang)
        ask(subject, *(lab.url(f"/hangs/{number}") for number in range(40)))

        # when others of this host ask
        ask(subject, *(lab.url(f"/{number}") for number in range(15)))

        # then nothing is counted for a host or an address
        lab.wait(settled(subject, active=15))
        assert not lab.released.is_set()
        lab.released.set()


def test_a_lease_ends_though_nobody_asks_and_nothing_changes(
    lab: Lab, tmp_path: Path
) -> None:
    # Seconds by which the clock is ahead.
    ahead = [0]

    # given a subscriber
    with running(lab, tmp_path, clock=lambda: time.time() + ahead[0]) as subject:
        ask(subject, lab.url("/cb"), lease_seconds="3600")
        lab.wait(settled(subject, active=1, pending=0))

        # when the end of its lease comes
        ahead[0] = 3601

        # then the hub notices by itself
        lab.wait(lambda: list_rows(tmp_path) == [])


def test_a_hub_that_is_woken_all_the_time_reads_for_a_tenth_of_it(
    lab: Lab, tmp_path: Path
) -> None:
    # A round looks at the clock once, or twice if it is the first of a second.
    looks: list[float] = []

    def clock() -> float:
        looks.append(time.monotonic())
        time.sleep(0.02)
        return time.time()

    def has_looked() -> bool:
        subject.scheduler.wake()
        return len(looks) >= before + 6

    # given a hub whose rounds take a fiftieth of a second, or two
    with running(lab, tmp_path, clock=clock) as subject:
        lab.wait(lambda: looks)

        # when it is always woken at once
        before = len(looks)
        wait_for("six looks", has_looked)

    # then it rests nine times as long after each round, however slow the machine is
    first, *_, last = looks[before : before + 6]
    assert last - first >= 4 * 0.02 * 9


@pytest.mark.slow
def test_an_idle_hub_looks_at_its_store_once_a_second(lab: Lab, tmp_path: Path) -> None:
    # Keeping up and reading what is due each look at the clock once.
    looks: list[float] = []

    def clock() -> float:
        looks.append(time.monotonic())
        return time.time()

    # given a hub that has nothing to do
    with running(lab, tmp_path, clock=clock) as subject:
        ask(subject, lab.url("/"))
        lab.wait(lambda: lab.arrivals)
        lab.wait(lambda: looks[-1] < time.monotonic() - 0.8)

        # when it looks three times more
        before = len(looks)
        lab.wait(lambda: len(looks) >= before + 6)

    # then there is a pause between two rounds, however slow the machine is
    first, *_, last = looks[before : before + 6]
    assert last - first >= 1.8
