"""How the hub delivers: in memory with a clock to turn, then with its threads and real HTTPS callbacks.

Delivery - Faults of our own - Leases, topics and trouble - Threads
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hub_lab import (
    BASE_URL,
    FEED,
    FORM,
    JSON_FEED,
    OUTAGE,
    PATIENCE_SECONDS,
    SILENCE,
    Answer,
    Bench,
    Lab,
    agree_late,
    echo,
    form,
    hang,
    open_lab,
    post,
    running,
    settings,
    settled,
    signature,
    signed,
    started,
    status,
    topics,
)

import hub
from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse
from reviewslib.websub.store import STORE_FILE_NAME, Store, remove_subscriptions
from reviewslib.websub.values import HubAnswer, selector

DAY = 86400.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "new" / "state")
    yield made
    made.hub.stop(1)


# ---- Delivery ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["s", "pass word", "é" * 99 + "x", "\x00"])
def test_a_secret_signs_the_body_until_a_renewal_drops_it(bench: Bench, secret: str) -> None:
    bench.subscribe(secret=secret)
    bench.change("zwölf 🙂")
    bench.subscribe()
    bench.change("three")
    assert [signature(sent) for sent in bench.posts] == [signed(secret, "zwölf 🙂"), None]


def test_a_renewal_extends_the_lease_and_repeats_no_content(
    bench: Bench,
) -> None:
    bench.subscribe()
    bench.change()
    before = bench.subscription()
    assert (before.tried_at, before.outcome) == (bench.clock.now, "HTTP 204")
    for _ in range(2):
        bench.wait(60)
        bench.subscribe()
        bench.restart()
        bench.change()
    assert bench.subscription() == before._replace(expires_at=bench.clock.now + bench.settings.lease_seconds)
    assert bench.contents == ["two"]


def test_a_change_that_was_undone_in_time_is_not_delivered(bench: Bench) -> None:
    bench.subscribe()
    bench.publish("two")
    (due,) = started(bench.hub)
    bench.publish("one")
    bench.hub.perform(due)
    assert bench.contents == []


def test_the_newest_of_several_changes_follows_a_slow_delivery(bench: Bench) -> None:
    def accept_late(_: CallbackRequest) -> CallbackResponse:
        bench.on_post = status(204)
        for text in ("three", "four"):
            bench.publish(text)
        return CallbackResponse(204, "HTTP 204")

    bench.subscribe()
    bench.on_post = accept_late
    bench.change()
    assert bench.contents == ["two", "four"]


@pytest.mark.parametrize("answer", [SILENCE, OUTAGE, status(500)])
def test_content_is_sent_again_after_an_unknown_outcome(bench: Bench, answer: Answer) -> None:
    bench.subscribe()
    bench.on_post = answer  # which may have come too late, or was lost
    bench.change("two")
    bench.on_post = status(204)
    bench.publish("one")
    bench.wait(100)
    assert bench.contents == ["two", "one"]
    bench.wait(5000)
    assert bench.contents == ["two", "one"]


@pytest.mark.parametrize("renews", [False, True])
def test_content_is_sent_again_after_a_kill_before_the_record(bench: Bench, renews: bool) -> None:
    class Killed(BaseException):
        pass

    def kill(_: CallbackRequest) -> CallbackResponse:
        raise Killed

    bench.subscribe()
    if renews:
        bench.post(form(secret="renewed", lease_seconds="3600"))
    bench.on_post = kill
    bench.publish("two")
    bench.hub.look()
    delivery = bench.hub.take("delivery")
    assert delivery
    with pytest.raises(Killed):
        bench.hub.perform(delivery)
    bench.on_post, bench.topics = status(204), topics("one")
    bench.restart()
    bench.work()
    assert bench.contents == ["two", "one"]


@pytest.mark.parametrize("code", [None, 302, 304, 400, 404, 500])
def test_three_failures_in_a_row_remove_and_are_told_once(bench: Bench, code: int | None) -> None:
    bench.jitter = 0.5
    bench.subscribe()
    bench.on_post = status(code)
    bench.change()
    assert bench.states() == [("failing", 1)]
    bench.wait(65)
    assert bench.states() == [("failing", 1)]
    bench.wait(1)
    assert bench.states() == [("failing", 2)]
    bench.restart()
    bench.change("three")  # new content does not shorten the wait
    bench.wait(3959)
    assert bench.states() == [("failing", 2)]
    bench.on_get = status(code)  # the answer to a notice does not matter
    bench.wait(1)
    assert bench.states() == []
    bench.wait(DAY)
    assert bench.contents == ["two", "two", "three"]
    (notice,) = bench.gets[1:]
    assert (notice["hub.mode"], notice["hub.topic"]) == ("denied", BASE_URL + FEED)
    assert notice["hub.reason"] == "3 deliveries in a row failed; subscribe again to resume"
    assert "&hub.reason=3%20deliveries%20in%20a%20row" in bench.sent[-1].url
    bench.on_get = echo
    bench.subscribe()
    bench.change("four")
    assert bench.states() == [("failing", 1)]


@pytest.mark.parametrize(("mode", "told"), [("subscribe", "subscribe"), ("unsubscribe", "denied")])
def test_only_a_waiting_request_to_subscribe_replaces_the_notice(bench: Bench, mode: str, told: str) -> None:
    def ask_meanwhile(_: CallbackRequest) -> CallbackResponse:
        bench.post(form(mode))
        bench.on_post = status(204)
        return CallbackResponse(500, "HTTP 500")

    bench.subscribe()
    bench.on_post = status(500)
    bench.change()
    bench.wait(5000)
    bench.on_post = ask_meanwhile
    bench.wait(5000)
    assert [asked["hub.mode"] for asked in bench.gets] == ["subscribe", told]
    assert bench.states() == ([("active", 0)] if mode == "subscribe" else [])
    assert len(bench.contents) == (4 if mode == "subscribe" else 3)  # what it missed is still due


def test_a_new_subscription_cancels_the_notice_of_the_removal(bench: Bench) -> None:
    bench.subscribe()
    bench.on_post, bench.on_get = status(500), OUTAGE
    bench.change()
    for _ in range(2):
        bench.wait(5000)
    assert bench.states() == [("denied", 0)]
    bench.on_get = echo
    bench.post(form())
    bench.wait(60)
    assert bench.states() == [("active", 0)]
    assert bench.gets[-1]["hub.mode"] == "subscribe"


def test_a_renewal_between_failures_leaves_the_content_unknown(bench: Bench) -> None:
    """It may have taken the content in between, for which no answer came."""
    bench.subscribe()
    bench.on_post = SILENCE
    bench.change("two")
    bench.wait(100)
    bench.on_get = OUTAGE
    bench.post(form(secret="renewed"))
    bench.wait(5000)
    bench.on_get, bench.on_post = echo, status(204)
    bench.publish("one")
    bench.wait(60)
    assert bench.contents == ["two"] * 3 + ["one"]


@pytest.mark.parametrize(("value", "seconds"), [("600", 600), ("1", 60)])
def test_retry_after_only_delays_the_next_attempt(bench: Bench, value: str, seconds: int) -> None:
    bench.subscribe()
    bench.on_post = status(503, retry_after=value)
    bench.change()
    bench.wait(seconds - 1)
    assert len(bench.contents) == 1
    bench.wait(60 * 0.2 + 1)
    assert len(bench.contents) == 2


def test_410_removes_at_once_without_a_notice_and_is_a_warning(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.subscribe()
    bench.on_post = status(410)
    bench.change()
    line = f"hub /feed.xml s.example: content {topics('two')[FEED].digest[:12]} refused, removed: HTTP 410"
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [("WARNING", line)]
    assert bench.states() == []


def test_a_failing_callback_cannot_renew_itself_to_the_front(bench: Bench) -> None:
    bench.subscribe()
    bench.on_post = status(500)
    bench.change()
    bench.subscribe()
    bench.work()
    assert (bench.states(), bench.contents) == ([("failing", 1)], ["two"])
    for _ in range(2):
        bench.wait(5000)
        bench.subscribe()
    assert bench.contents == ["two"] * 3
    assert [asked["hub.mode"] for asked in bench.gets].count("denied") == 1


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        *((503, "120", 120), (429, "120", 120), (503, "9" * 5000, 3600)),
        *((503, "Fri, 15 Jan 2027 08:10:00 GMT", 600), (503, "Fri, 31 Dec 9999 23:59:59 GMT", 3600)),
        *((503, "soon", 0), (503, "-5", 0), (503, "٣", 0), (503, "Mon, 99 Foo 2026", 0)),
        *((500, "120", 0), (200, "120", 0), (503, None, 0)),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_an_hour_at_most(
    status: int, value: str | None, seconds: float
) -> None:
    assert hub.retry_after_seconds(CallbackResponse(status, "", retry_after=value), 1.8e9) == seconds


# ---- Faults of our own -------------------------------------------------------------------------------------


def bug(_: CallbackRequest) -> CallbackResponse:
    raise RuntimeError("bug")


@pytest.mark.parametrize("fault", [OUTAGE, bug])
def test_a_fault_of_our_own_is_no_failure_of_the_callback(
    bench: Bench, caplog: pytest.LogCaptureFixture, fault: Answer
) -> None:
    bench.subscribe()
    bench.on_get = fault
    bench.post(form(secret="new"))
    bench.work()
    bench.on_get = echo
    for seconds, states in ((59, [("active", 0), ("subscribe", 0)]), (1, [("active", 0)])):
        bench.wait(seconds)
        assert bench.states() == states
    bench.on_post = fault
    bench.change()
    for _ in range(4):
        bench.wait(60)
    assert {signature(sent) for sent in bench.posts} == {signed("new", "two")}
    assert (len(bench.contents), bench.subscription().failures) == (5, 0)
    told = "an exchange with a callback failed unexpectedly" in caplog.messages
    assert (bench.subscription().outcome, told) == (
        ("error in the hub", True) if fault is bug else ("not reachable", False)
    )


def test_a_request_of_a_subscriber_survives_an_outage_of_an_hour(bench: Bench) -> None:
    bench.subscribe()
    bench.on_get = OUTAGE
    for secret in "ab":
        bench.post(form(secret=secret))
        bench.work()
        for _ in range(60):
            assert bench.states() == [("active", 0), ("subscribe", 0)]
            bench.wait(60)
        assert bench.states() == [("active", 0)]


def test_a_request_of_a_stranger_does_not_survive_an_outage(bench: Bench) -> None:
    bench.on_get = OUTAGE
    bench.post(form())
    for _ in range(10):
        bench.wait(30)
    assert (len(bench.gets), bench.states()) == (3, [])


def subscribe_in_networks(bench: Bench, count: int) -> list[str]:
    hosts = [f"s{number}.example" for number in range(count)]
    for host in hosts:
        bench.subscribe(callback=f"https://{host}/")
    return hosts


def test_the_silence_of_three_networks_removes_no_subscription(bench: Bench) -> None:
    hosts = subscribe_in_networks(bench, 4)
    bench.on_post = SILENCE
    bench.change()
    for _ in range(90):
        bench.wait(60)
    assert bench.hosts() == hosts
    bench.on_post = status(204)
    bench.wait(4320)
    assert bench.states() == [("active", 0)] * 4


@pytest.mark.parametrize("sign_of_life", [status(500), status(None, is_refused=True)])
def test_a_silent_callback_is_removed_while_others_answer(bench: Bench, sign_of_life: Answer) -> None:
    subscribe_in_networks(bench, 5)
    bench.on_post = lambda request: (sign_of_life if "s4" in request.url else SILENCE)(request)
    bench.change()
    for _ in range(90):
        bench.clock.now += 60
        bench.running_time.now += 60
        (bench.hub.look(), bench.hub.upkeep())
        for lane in hub.LANES:
            for one in reversed(list(iter(lambda lane=lane: bench.hub.take(lane), None))):
                bench.hub.perform(one)
    assert "s0.example" not in bench.hosts()


def test_two_silent_networks_are_no_outage(bench: Bench) -> None:
    subscribe_in_networks(bench, 2)
    bench.on_post = SILENCE
    bench.change()
    for _ in range(2):
        bench.wait(4320)
    assert bench.hosts() == []


@pytest.mark.parametrize(
    ("tried", "broken_at", "began_at", "now", "is_outage"),
    [
        ("abc", 0, 10, 20, True),
        ("abb", 0, 10, 20, False),
        ("abc", 0, 10, 611, False),  # too long ago
        ("abc", 15, 10, 20, False),  # a sign of life since
    ],
)
def test_an_outage_is_three_silent_networks_within_ten_minutes(
    tried: str, broken_at: float, began_at: float, now: float, is_outage: bool
) -> None:
    detector = hub.OutageDetector()
    events = [(broken_at, None), *((10, network) for network in tried)]
    for moment, network in sorted(events, key=lambda event: event[0]):
        if network:
            detector.record_attempt(network, moment)
        else:
            detector.record_sign_of_life(moment)
    assert detector.is_outage(began_at, now) == is_outage


# ---- Leases, topics and trouble ----------------------------------------------------------------------------


def test_a_lease_counts_from_the_verification(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench.post(form(lease_seconds="3600"))
    bench.wait(1000)
    bench.wait(3599)
    bench.on_post = status(500)
    bench.change()
    bench.wait(1)
    assert (bench.states(), caplog.messages[-1]) == ([], "hub /feed.xml s.example: lease ended")
    bench.wait(3600)  # the back-off has ended, too
    assert bench.contents == ["two"]
    assert bench.post(form("unsubscribe")).status == 404
    bench.subscribe()  # starts from the content of now
    assert bench.contents == ["two"]


@pytest.mark.parametrize("seconds_back", [4400, 10 * DAY])
def test_a_clock_that_is_set_back_delays_no_retry(bench: Bench, seconds_back: float) -> None:
    bench.subscribe()
    bench.on_post = status(500)
    bench.change()
    bench.on_post = status(200)
    bench.wait(-seconds_back)  # longer than any retry
    assert bench.contents == ["two", "two"]


def test_a_lease_that_ends_during_its_renewal_continues(bench: Bench) -> None:
    def agree_later(request: CallbackRequest) -> CallbackResponse:
        bench.clock.now += 2
        bench.hub.upkeep()
        return echo(request)

    bench.subscribe(lease_seconds="3600")
    bench.wait(3599)
    bench.on_post = status(500)
    bench.publish("two")
    bench.post(form())
    bench.on_get = agree_later
    bench.hub.look()
    renewal = bench.hub.take("renewal")
    assert renewal
    bench.hub.perform(renewal)
    bench.on_post = status(204)
    bench.wait(100)
    assert (bench.states(), bench.contents) == ([("active", 0)], ["two"])


def test_subscriptions_to_a_missing_topic_wait_for_it(bench: Bench) -> None:
    bench.subscribe()
    bench.subscribe(callback="https://t.example/")
    bench.hub.publish({JSON_FEED: topics()[JSON_FEED]})
    bench.work()
    assert bench.post(form()).status == 404
    assert bench.post(form("unsubscribe", "https://t.example/")).status == 202
    bench.change()
    assert [sent.url for sent in bench.posts] == ["https://s.example/cb"]


def test_subscriptions_survive_a_new_base_url(bench: Bench) -> None:
    bench.subscribe()
    bench.settings = settings(bench.settings.state_dir, base_url="https://new.example/r")
    bench.restart()
    bench.change()
    assert '<https://new.example/r/feed.xml>; rel="self"' in bench.posts[0].headers["Link"]


def test_a_request_removed_during_its_verification_stays_removed(bench: Bench) -> None:
    def confirm_too_late(request: CallbackRequest) -> CallbackResponse:
        remove_subscriptions(bench.settings.state_dir, selector("s.example"))
        return echo(request)

    bench.on_get = confirm_too_late
    bench.subscribe()
    assert bench.states() == []


@pytest.mark.parametrize("has_successor", [False, True])
def test_a_late_result_touches_nothing_else(bench: Bench, has_successor: bool) -> None:
    def remove_meanwhile(_: CallbackRequest) -> CallbackResponse:
        remove_subscriptions(bench.settings.state_dir, selector("s.example"), clock=bench.clock)
        if has_successor:
            other = Bench(bench.settings.state_dir / "other")  # of which only the row is wanted
            other.subscribe()
            rows, successor = Store(bench.settings.state_dir), other.subscription()
            other.hub.stop(1)
            assert rows.trouble
            with closing(sqlite3.connect(bench.settings.state_dir / STORE_FILE_NAME)) as store, store:
                values = (successor.id + 100, *successor.subscriber, *successor[2:])
                store.execute(f"INSERT INTO hub_row VALUES ({', '.join('?' * len(values))})", values)
        return CallbackResponse(500, "HTTP 500")

    bench.subscribe()
    bench.on_post = remove_meanwhile
    bench.publish("two")
    bench.hub.look()
    delivery = bench.hub.take("delivery")
    assert delivery
    bench.hub.perform(delivery)
    assert bench.states()[:-1] == ([("active", 0)] if has_successor else [])


def test_a_hub_without_topics_has_none_to_subscribe_to(bench: Bench) -> None:
    bench.hub.publish({})
    assert bench.post(form()).status == 404


def test_a_hub_whose_store_has_no_directory_answers_503_and_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    subject = hub.Hub(settings(tmp_path / "file" / "state"), echo)
    subject.publish(topics())
    assert (subject.answer(FORM, form()).status, subject.counts()) == (503, {})


def test_requests_that_cannot_be_stored_are_503(bench: Bench) -> None:
    bench.subscribe()
    bench.hub.stop(1)
    unavailable = HubAnswer(503, "requests cannot be stored at present", (("Retry-After", "60"),))
    assert bench.post(form()) == unavailable
    assert bench.hub.counts() == {}
    bench.hub.publish(topics("two"))


def test_nothing_is_sent_while_the_store_is_locked(bench: Bench) -> None:
    bench.subscribe()
    bench.publish("two")
    bench.hub.look()
    delivery = bench.hub.take("delivery")
    assert delivery
    with closing(sqlite3.connect(bench.settings.state_dir / STORE_FILE_NAME)) as other:
        other.execute("BEGIN EXCLUSIVE")
        bench.hub.perform(delivery)
        assert bench.contents == []
    bench.work()
    assert bench.contents == ["two"]


@pytest.mark.slow
def test_a_result_waits_for_a_locked_store_without_a_repetition(bench: Bench) -> None:
    def lock(_: CallbackRequest) -> CallbackResponse:
        other = sqlite3.connect(bench.settings.state_dir / STORE_FILE_NAME, check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        threading.Timer(0.6, other.close).start()
        return CallbackResponse(204, "HTTP 204")

    bench.subscribe()
    bench.on_post = lock
    bench.change()
    assert (bench.contents, bench.states()) == (["two"], [("active", 0)])


def test_a_replaced_store_gets_the_content_anew(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.subscribe()
    store = bench.settings.state_dir / STORE_FILE_NAME
    with closing(sqlite3.connect(store)) as copied, closing(sqlite3.connect(f"{store}.old")) as backup:
        copied.backup(backup)
    bench.change("two")
    for suffix in ("-wal", "-shm"):
        Path(f"{store}{suffix}").unlink()
    Path(f"{store}.old").rename(store)
    bench.publish("one")  # which the backup says that it has
    assert bench.post(form()).status == 503
    bench.hub.upkeep()
    bench.work()
    assert bench.contents == ["two", "one"]
    assert "the hub's store was replaced: all its subscribers get the content anew" in caplog.messages


def test_each_event_is_one_log_line_that_names_the_host_only(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    callback = "https://s.example:8443/secret-path?key=1"
    bench.on_get = status(200)
    bench.subscribe(callback=callback, secret="hush")
    bench.on_get = echo
    bench.subscribe(callback=callback, secret="hush")
    bench.change()
    bench.on_post = status(500)
    bench.change("three")
    bench.on_post = OUTAGE
    bench.wait(5000)
    bench.on_post = status(500)
    for _ in range(2):
        bench.wait(5000)
    bench.subscribe(callback=callback)
    bench.post(form("unsubscribe", callback))
    bench.work()
    assert caplog.messages == [
        f"hub /feed.xml s.example: {line}"
        for line in (
            "subscribe requested",
            "subscribe not confirmed: HTTP 200 without the challenge",
            "subscribe requested",
            "subscribe confirmed: HTTP 200",
            f"content {topics('two')[FEED].digest[:12]} delivered: HTTP 204",
            "delivery failed, 1 of 3: HTTP 500",
            f"content {topics('three')[FEED].digest[:12]} postponed: not reachable",
            "delivery failed, 2 of 3: HTTP 500",
            "delivery failed, 3 of 3, removed: HTTP 500",
            "denied notice: HTTP 200",
            *(
                f"{mode} {done}"
                for mode in ("subscribe", "unsubscribe")
                for done in ("requested", "confirmed: HTTP 200")
            ),
        )
    ]
    levels = {record.levelname: record.getMessage() for record in caplog.records}
    assert levels.keys() == {"INFO", "WARNING"}  # the removal alone, which `-p warning` shows
    assert {record.name for record in caplog.records} == {"hub"}
    assert "removed" in levels["WARNING"]


# ---- Threads -----------------------------------------------------------------------------------------------


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with open_lab(tmp_path, address="") as made:
        yield made


def test_life_of_a_subscription(lab: Lab, tmp_path: Path) -> None:
    callback = lab.url("/cb?key=a%20b&bare")
    with running(lab, tmp_path) as subject:
        post(subject, form(callback=callback, secret="hush", lease_seconds="7200"))
        lab.wait(settled(subject, active=1, pending=0))
        (verification,) = lab.arrivals
        asked = "/cb?key=a%20b&bare&hub.mode=subscribe&hub.topic=https%3A%2F%2Freviews.example%2Ffeed.xml&"
        assert verification.target.startswith(asked + "hub.challenge=")
        assert verification.target.endswith("&hub.lease_seconds=7200")

        subject.publish(topics("zwei 🙂"))
        lab.wait(settled(subject, behind=0))
        (notification,) = lab.posts()
        assert (notification.target, notification.body) == ("/cb?key=a%20b&bare", "zwei 🙂".encode())
        wanted = {
            "Host": f"s.lab.example:{lab.port}",
            "Content-Type": "application/atom+xml",
            "Content-Length": str(len(notification.body)),
            "Link": f'<{BASE_URL}/api/websub/hub>; rel="hub", <{BASE_URL}/feed.xml>; rel="self"',
            "X-Hub-Signature": signed("hush", "zwei 🙂"),
            "User-Agent": "lab/1.0",
            "Connection": "close",
        }
        assert wanted.items() <= notification.headers.items()
        assert not {"Cookie", "Authorization", "Transfer-Encoding"} & notification.headers.keys()

        post(subject, form("unsubscribe", callback=callback))
        lab.wait(settled(subject, active=0, pending=0))
        subject.publish(topics("three"))
        post(subject, form(callback=lab.url("/other")))
        lab.wait(settled(subject, active=1, pending=0))
        assert [asked["hub.mode"] for asked in lab.gets()] == ["subscribe", "unsubscribe", "subscribe"]
        # Specification 4.9: of an unsubscription, too.
        assert [asked["hub.lease_seconds"] for asked in lab.gets()] == ["7200", "864000", "864000"]
        assert len(lab.posts()) == 1


def test_a_hundred_subscribers_are_served(lab: Lab, tmp_path: Path) -> None:
    with running(lab, tmp_path, timeout=20.0) as subject:
        for number in range(100):
            post(subject, form(callback=lab.url(f"/{number}", f"h.d{number % 50}.example")))
        lab.wait(settled(subject, active=100, pending=0))
        subject.publish(topics("x" * 100_000))
        lab.wait(settled(subject, active=100, pending=0, failing=0, behind=0))
    assert sorted(int(arrival.path[1:]) for arrival in lab.posts()) == list(range(100))
    assert {arrival.body for arrival in lab.posts()} == {b"x" * 100_000}


def hub_threads() -> set[str]:
    """The hub's threads, which all end with the process."""
    return {one.name for one in threading.enumerate() if one.name.startswith("hub-") and one.daemon}


def test_stop_lets_the_running_delivery_finish_and_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    lab.on("POST", "/cb", agree_late)
    with running(lab, tmp_path) as subject:
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(settled(subject, active=1))
        subject.publish(topics("two"))
        lab.wait(lab.posts)
        stopping = threading.Thread(target=subject.stop, args=(PATIENCE_SECONDS,))
        stopping.start()
        lab.wait(lambda: len(hub_threads()) == 1)
        lab.released.set()
        stopping.join()
    lab.wait(lambda: not hub_threads())
    with running(lab, tmp_path, "two") as subject:
        post(subject, form(callback=lab.url("/other")))
        lab.wait(settled(subject, active=2, pending=0, behind=0))
    assert len(lab.posts()) == 1


def test_stop_does_not_wait_longer_than_it_is_told(lab: Lab, tmp_path: Path) -> None:
    lab.on("GET", "/cb", hang, agree_late)
    with running(lab, tmp_path, timeout=60.0) as subject:
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(lab.gets)
        subject.stop(0)
        assert not lab.released.is_set()  # the callback hangs still
        lab.released.set()
    with running(lab, tmp_path) as subject:
        lab.wait(settled(subject, active=1, pending=0))


def test_the_scheduler_survives_an_unexpected_error(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(lab, tmp_path) as subject:
        subject.publish({FEED: None})  # type: ignore[dict-item]
        lab.wait(lambda: "the hub's scheduler met an unexpected error and goes on" in caplog.messages)
        subject.publish(topics())
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(settled(subject, active=1))
