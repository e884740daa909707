"""How the hub delivers, in memory, with a settable clock.

Delivery - Faults of our own - Leases, topics and trouble
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hub_lab import JSON_FEED, OUTAGE, SILENCE, Answer, Bench, echo, form, signed, status, topics

import hub
from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse
from reviewslib.websub.store import STORE_FILE_NAME, remove_subscriptions
from reviewslib.websub.values import HubAnswer, selector

DAY = 86400.0
DIGEST_OF_TWO, DIGEST_OF_THREE = (topics(text)["/feed.xml"].digest[:12] for text in ("two", "three"))


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Bench]:
    """A hub without a subscriber."""
    made = Bench(tmp_path / "new" / "state")
    yield made
    made.hub.stop(1)


@pytest.fixture
def bench(empty: Bench) -> Bench:
    """A hub with one subscriber."""
    empty.subscribe()
    return empty


# ---- Delivery ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["s", "pass word", "é" * 99 + "x", "\x00"])
def test_a_secret_signs_the_body_until_a_renewal_drops_it(empty: Bench, secret: str) -> None:
    empty.subscribe(secret=secret)
    empty.change("zwölf 🙂")
    empty.subscribe()
    empty.change("three")
    assert empty.signatures == [signed(secret, "zwölf 🙂"), None]


def test_a_renewal_extends_the_lease_and_repeats_no_content(bench: Bench) -> None:
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


@pytest.mark.parametrize("meanwhile", ["undone", "removed", "ended"])
def test_an_exchange_that_is_no_longer_due_is_not_made(
    bench: Bench, caplog: pytest.LogCaptureFixture, meanwhile: str
) -> None:
    bench.publish("two")
    due = bench.begun()
    match meanwhile:
        case "undone":
            bench.publish("one")
        case "removed":
            remove_subscriptions(bench.settings.state_dir, selector("s.example"), clock=bench.clock)
        case "ended":
            bench.clock.now += bench.settings.lease_seconds
    bench.hub.perform(due)
    assert (bench.contents, caplog.messages) == ([], [])


def test_the_newest_of_several_changes_follows_a_slow_delivery(bench: Bench) -> None:
    def accept_late(_: CallbackRequest) -> CallbackResponse:
        bench.on_post = status(204)
        for text in ("three", "four"):
            bench.publish(text)
        return CallbackResponse(204, "HTTP 204")

    bench.change(answer=accept_late)
    assert bench.contents == ["two", "four"]


class Killed(BaseException):
    """The process ends here."""


def kill(_: CallbackRequest) -> CallbackResponse:
    raise Killed


@pytest.mark.parametrize("answer", [SILENCE, OUTAGE, status(500), kill])
def test_content_is_sent_again_after_an_unknown_outcome(bench: Bench, answer: Answer) -> None:
    bench.on_post = answer  # which may have come too late, or was lost
    with suppress(Killed):
        bench.change("two")
    bench.on_post, bench.topics = status(204), topics("one")
    bench.restart()
    for seconds in (100, 5000):
        bench.wait(seconds)
        assert bench.contents == ["two", "one"]


@pytest.mark.parametrize("code", [None, 302, 304, 400, 404, 500])
def test_three_failures_in_a_row_remove_and_one_notice_is_sent(bench: Bench, code: int | None) -> None:
    bench.jitter = 0.5
    bench.change(answer=status(code))
    for seconds, failures in ((0, 1), (65, 1), (1, 2)):
        bench.wait(seconds)
        assert bench.states() == [("active", failures)]
    bench.restart()
    bench.change("three")  # new content does not shorten the wait
    bench.wait(3959)
    assert bench.states() == [("active", 2)]
    bench.on_get = status(code)  # the answer to a notice does not matter
    bench.wait(1)
    assert bench.states() == []
    bench.wait(DAY)
    assert bench.contents == ["two", "two", "three"]
    (notice,) = bench.gets[1:]
    reason = "3 deliveries in a row failed; subscribe again to resume"
    told = {"hub.mode": "denied", "hub.topic": "https://reviews.example/feed.xml", "hub.reason": reason}
    assert notice == told
    assert "&hub.reason=3%20deliveries%20in%20a%20row" in bench.sent[-1].url
    bench.on_get = echo
    bench.subscribe()
    bench.change("four")
    assert bench.states() == [("active", 1)]


@pytest.mark.parametrize(("mode", "told"), [("subscribe", "subscribe"), ("unsubscribe", "denied")])
def test_only_a_waiting_request_to_subscribe_replaces_the_notice(bench: Bench, mode: str, told: str) -> None:
    def ask_meanwhile(_: CallbackRequest) -> CallbackResponse:
        bench.post(form(mode))
        bench.on_post = status(204)
        return CallbackResponse(500, "HTTP 500")

    bench.change(answer=status(500))
    bench.wait(5000)
    bench.on_post = ask_meanwhile
    bench.wait(5000)
    assert [asked["hub.mode"] for asked in bench.gets] == ["subscribe", told]
    assert bench.states() == [("active", 0)] * (mode == "subscribe")
    assert len(bench.contents) == 3 + (mode == "subscribe"), "what it missed is still due"


def test_a_new_subscription_cancels_the_notice_of_the_removal(bench: Bench) -> None:
    bench.on_post, bench.on_get = status(500), OUTAGE
    bench.change()
    bench.wait(5000)
    bench.wait(5000)
    assert bench.states() == [("denied", 0)]
    bench.on_get = echo
    bench.post(form())
    bench.wait(60)
    assert bench.states() == [("active", 0)]
    assert bench.gets[-1]["hub.mode"] == "subscribe"


@pytest.mark.parametrize(("value", "seconds"), [("600", 600), ("1", 60)])
def test_retry_after_only_delays_the_next_attempt(bench: Bench, value: str, seconds: int) -> None:
    bench.change(answer=status(503, retry_after=value))
    bench.wait(seconds - 1)
    assert len(bench.contents) == 1
    bench.wait(60 * 0.2 + 1)
    assert len(bench.contents) == 2


def test_410_removes_at_once_without_a_notice(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.change(answer=status(410))
    line = f"hub /feed.xml s.example: content {DIGEST_OF_TWO} refused, removed: HTTP 410"
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [("WARNING", line)]
    assert bench.states() == []


def test_a_failing_callback_cannot_renew_itself_to_the_front(bench: Bench) -> None:
    bench.change(answer=status(500))
    bench.subscribe()
    bench.work()
    assert (bench.states(), bench.contents) == ([("active", 1)], ["two"])
    for _ in range(2):
        bench.wait(5000)
        bench.subscribe()
    assert bench.contents == ["two"] * 3
    assert [asked["hub.mode"] for asked in bench.gets].count("denied") == 1


@pytest.mark.parametrize(("value", "seconds"), [
    ("120", 120), ("9" * 5000, 3600),
    ("Fri, 15 Jan 2027 08:10:00 GMT", 600), ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
    ("soon", 0), ("-5", 0), ("٣", 0), ("Mon, 99 Foo 2026", 0), (None, 0),
])  # fmt: skip
def test_retry_after_is_seconds_or_a_date_up_to_an_hour(value: str | None, seconds: float) -> None:
    assert hub.retry_after_seconds(value, 1.8e9) == seconds


# ---- Faults of our own -------------------------------------------------------------------------------------


def bug(_: CallbackRequest) -> CallbackResponse:
    raise RuntimeError("bug")


FAULTS = [(OUTAGE, "not reachable", False), (bug, "", True)]


@pytest.mark.parametrize(("fault", "outcome", "is_logged"), FAULTS)
def test_a_fault_of_our_own_is_no_failure_of_the_callback(
    bench: Bench, caplog: pytest.LogCaptureFixture, fault: Answer, outcome: str, is_logged: bool
) -> None:
    bench.on_get = fault
    bench.post(form(secret="new"))
    bench.work()
    bench.on_get = echo
    for seconds, states in ((59, [("active", 0), ("subscribe", 0)]), (1, [("active", 0)])):
        bench.wait(seconds)
        assert bench.states() == states
    bench.change(answer=fault)
    for _ in range(4):
        bench.wait(60)
    assert bench.signatures == [signed("new", "two")] * 5
    assert (bench.subscription().outcome, bench.subscription().failures) == (outcome, 0)
    assert ("an exchange of the hub failed unexpectedly" in caplog.messages) is is_logged


def test_a_request_of_a_subscriber_survives_an_outage_of_an_hour(bench: Bench) -> None:
    bench.on_get = OUTAGE
    for secret in "ab":
        bench.post(form(secret=secret))
        bench.work()
        for _ in range(60):
            assert bench.states() == [("active", 0), ("subscribe", 0)]
            bench.wait(60)
        assert bench.states() == [("active", 0)]


def subscribers(bench: Bench, count: int) -> list[str]:
    """Hosts of subscribers, each in a network of its own."""
    bench.subscribe(*(f"s{number}" for number in range(count)))
    return bench.hosts()


def test_the_silence_of_three_networks_removes_no_subscription(empty: Bench) -> None:
    hosts = subscribers(empty, 4)
    empty.change(answer=SILENCE)
    for _ in range(90):
        empty.wait(60)
    assert empty.hosts() == hosts
    empty.on_post = status(204)
    empty.wait(4320)
    assert empty.states() == [("active", 0)] * 4


@pytest.mark.parametrize("sign_of_life", [status(500), status(None, is_refused=True)])
def test_a_silent_callback_is_removed_while_others_answer(empty: Bench, sign_of_life: Answer) -> None:
    assert len(subscribers(empty, 5)) == 5
    empty.change(answer=lambda request: (sign_of_life if "s4" in request.url else SILENCE)(request))
    for _ in range(90):
        empty.clock.now += 60
        empty.running_time.now += 60
        empty.hub.upkeep()
        for due in reversed(empty.started()):
            empty.hub.perform(due)
    assert "s0.example" not in empty.hosts()


@pytest.mark.parametrize(("seconds", "failures"), [(599.9, 0), (600, 1)])
def test_silent_networks_count_for_ten_minutes(empty: Bench, seconds: float, failures: int) -> None:
    subscribers(empty, 3)
    empty.publish("two")
    empty.on_post = SILENCE
    first, second, third = empty.started()
    empty.hub.perform(first)
    empty.hub.perform(second)
    empty.running_time.now += seconds
    empty.hub.perform(third)
    assert empty.rows()[2].failures == failures


# ---- Leases, topics and trouble ----------------------------------------------------------------------------


@pytest.mark.parametrize("seconds_back", [4400, 10 * DAY])
def test_a_clock_that_is_set_back_delays_no_retry(bench: Bench, seconds_back: float) -> None:
    bench.change(answer=status(500))
    bench.on_post = status(200)
    bench.wait(-seconds_back)  # longer than any retry
    assert bench.contents == ["two", "two"]


def test_a_lease_that_ends_during_its_renewal_continues(empty: Bench) -> None:
    def agree_later(request: CallbackRequest) -> CallbackResponse:
        empty.clock.now += 2
        empty.hub.upkeep()
        return echo(request)

    empty.subscribe(lease_seconds="3600")
    empty.wait(3599)
    empty.on_post = status(500)
    empty.publish("two")
    empty.post(form())
    empty.on_get = agree_later
    empty.hub.perform(empty.begun("renewal"))
    empty.on_post = status(204)
    empty.wait(100)
    assert (empty.states(), empty.contents) == ([("active", 0)], ["two"])


def test_subscriptions_to_a_missing_topic_wait_for_it(empty: Bench) -> None:
    empty.subscribe("s", "t")
    empty.hub.publish({JSON_FEED: topics()[JSON_FEED]})
    empty.work()
    assert empty.post(form()).status == 404
    assert empty.post(form("unsubscribe", "https://t.example/")).status == 202
    empty.change()
    assert [sent.url for sent in empty.posts] == ["https://s.example/"]


def test_subscriptions_survive_a_new_base_url(bench: Bench) -> None:
    bench.restart(base_url="https://new.example/r")
    bench.change()
    assert '<https://new.example/r/feed.xml>; rel="self"' in bench.posts[0].headers["Link"]


def test_a_request_removed_during_its_verification_stays_removed(empty: Bench) -> None:
    def confirm_too_late(request: CallbackRequest) -> CallbackResponse:
        remove_subscriptions(empty.settings.state_dir, selector("s.example"))
        return echo(request)

    empty.on_get = confirm_too_late
    empty.subscribe()
    assert empty.states() == []


@pytest.mark.parametrize("has_successor", [False, True])
def test_a_late_result_touches_nothing_else(bench: Bench, has_successor: bool) -> None:
    def remove_meanwhile(_: CallbackRequest) -> CallbackResponse:
        successor = bench.subscription()
        remove_subscriptions(bench.settings.state_dir, selector("s.example"), clock=bench.clock)
        if has_successor:
            with closing(sqlite3.connect(bench.settings.state_dir / STORE_FILE_NAME)) as store, store:
                values = (*successor[:-1], successor.id + 100)
                store.execute(f"INSERT INTO hub_row VALUES ({', '.join('?' * len(values))})", values)
        return CallbackResponse(500, "HTTP 500")

    bench.on_post = remove_meanwhile
    bench.publish("two")
    bench.hub.perform(bench.begun())
    assert bench.states()[:-1] == ([("active", 0)] if has_successor else [])


def test_requests_that_cannot_be_stored_are_503(bench: Bench) -> None:
    bench.hub.stop(1)
    unavailable = HubAnswer(503, "requests cannot be stored at present", (("Retry-After", "60"),))
    assert bench.post(form()) == unavailable
    assert bench.hub.counts() == {}
    bench.hub.publish(topics("two"))


def test_nothing_is_sent_while_the_store_is_locked(bench: Bench) -> None:
    bench.publish("two")
    delivery = bench.begun()
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

    bench.change(answer=lock)
    assert (bench.contents, bench.states()) == (["two"], [("active", 0)])


def test_each_event_is_a_line_with_the_host_only(empty: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    callback = "https://s.example:8443/secret-path?key=1"
    empty.on_get = status(200)
    empty.subscribe(callback=callback, secret="hush")
    empty.on_get = echo
    empty.subscribe(callback=callback, secret="hush")
    empty.change()
    empty.change("three", answer=status(500))
    empty.on_post = OUTAGE
    empty.wait(5000)
    empty.on_post = status(500)
    for _ in range(2):
        empty.wait(5000)
    empty.subscribe(callback=callback)
    empty.post(form("unsubscribe", callback))
    empty.work()
    empty.subscribe(callback=callback, lease_seconds="3600")
    empty.wait(3600)
    lines = (
        "subscribe requested",
        "subscribe not confirmed, no challenge: HTTP 200",
        "subscribe requested",
        "subscribe confirmed: HTTP 200",
        f"content {DIGEST_OF_TWO} delivered: HTTP 204",
        "delivery failed, 1 of 3: HTTP 500",
        f"content {DIGEST_OF_THREE} postponed: not reachable",
        "delivery failed, 2 of 3: HTTP 500",
        "delivery failed, 3 of 3, removed: HTTP 500",
        "denied notice: HTTP 200",
        *("subscribe requested", "subscribe confirmed: HTTP 200"),
        *("unsubscribe requested", "unsubscribe confirmed: HTTP 200"),
        *("subscribe requested", "subscribe confirmed: HTTP 200", "lease ended"),
    )
    assert caplog.messages == [f"hub /feed.xml s.example: {line}" for line in lines]
    assert {record.name for record in caplog.records} == {"hub"}
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and "removed" in warnings[0], "`-p warning` shows the removal alone"
