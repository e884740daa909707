"""How the hub answers requests and verifies them, in memory, with a settable clock.

Requests - Limits - Verification - Turns
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hub_lab import (
    BASE_URL,
    FEED,
    JSON_FEED,
    OUTAGE,
    SILENCE,
    Answer,
    Bench,
    echo,
    form,
    query,
    signed,
    status,
)

import hub
from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse
from reviewslib.websub.store import STORE_FILE_NAME, DueRow, remove_subscriptions
from reviewslib.websub.values import HubAnswer, selector


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "new" / "state")
    yield made
    made.hub.stop(1)


# ---- Requests ----------------------------------------------------------------------------------------------


def test_any_2xx_confirms_and_hub_topic_is_repeated_as_sent(bench: Bench) -> None:
    body = form().replace(b"feed.xml", b"%2566eed.xml")  # once decoded: %66eed.xml, that is feed.xml
    assert bench.post(body) == HubAnswer(202, "accepted; the callback will now be asked to confirm")
    assert bench.sent == []  # REC 5.1.2: the answer does not wait for the callback
    bench.on_get = echoing(299, "{}")
    bench.work()
    (asked,) = bench.gets
    assert asked["hub.topic"] == f"{BASE_URL}/%66eed.xml"
    assert bench.states() == [("active", 0)]


MISSING = "hub.callback is missing; hub.topic is missing"
PUBLISH = f"hub.mode publish is not needed: this hub notices changes of its topics by itself; {MISSING}"
ADDRESS = "hub.callback has an IP address as its host; a host name is needed"
LEASE = "hub.lease_seconds must be a positive whole number of seconds"
NOT_A_TOPIC = f"hub.topic is not a topic of this hub; its topics are {BASE_URL}{FEED}, {BASE_URL}{JSON_FEED}"
NOT_SUBSCRIBED = "hub.callback has no active subscription to hub.topic"


@pytest.mark.parametrize(("body", "code", "says"), [
    (b"", 400, f"hub.mode is missing; {MISSING}"),
    (form() + b"&hub.mode=subscribe", 400, "hub.mode is given 2 times"),
    (form(secret="a") + b"&hub.secret=b", 400, "hub.secret is given 2 times"),
    (form("Subscribe"), 400, "hub.mode must be subscribe or unsubscribe"),
    (b"hub.mode=publish&hub.url=" + BASE_URL.encode(), 400, PUBLISH),
    (form(callback="https://127.0.0.1/"), 400, ADDRESS),
    *((form(secret=text), 400, "hub.secret must have 1 to 199 bytes") for text in ("", "é" * 100)),
    *((form() + text, 400, "the form is not UTF-8") for text in (b"&x=%ff", b"&x=\xff", b"&x=%ed%a0%80")),
    *((form(lease_seconds=text), 400, LEASE) for text in ("", "0", "000", "-5", "+5", "1e3", "٣")),
    (form() + b"&x=1" * 62, 400, "the form has more than 64 fields"),
    ((form() + b"&x=").ljust(16385, b"y"), 413, "the form is larger than 16384 bytes"),
    (form(path="/FEED.XML"), 404, NOT_A_TOPIC),
    (form().replace(b"reviews.example", b"other.example"), 404, NOT_A_TOPIC),
    (form().replace(b"https%3A%2F%2Freviews.example", b""), 404, NOT_A_TOPIC),
    (form("unsubscribe"), 404, NOT_SUBSCRIBED),
    (form("unsubscribe", path="/nothing"), 404, NOT_SUBSCRIBED),
])  # fmt: skip
def test_a_bad_request_is_refused_in_one_line(bench: Bench, body: bytes, code: int, says: str) -> None:
    assert bench.post(body) == HubAnswer(code, says)
    bench.work()
    assert bench.sent == []


@pytest.mark.parametrize("content_type", [None, "application/json"])
def test_a_body_that_is_not_a_form_is_refused(bench: Bench, content_type: str | None) -> None:
    refusal = HubAnswer(415, "Content-Type must be application/x-www-form-urlencoded")
    assert bench.post(form(), content_type) == refusal


@pytest.mark.parametrize("body", [
    form() + b"&foo=bar&hub.foo=hub.bar&foo=baz",  # websub.rocks test 102
    form() + b"&x=1" * 61,
    (form() + b"&x=").ljust(16384, b"y"),
    form(secret="é" * 99 + "x"),
    form(lease_seconds="9" * 9999),
    form().replace(b"https%3A%2F%2Freviews.example", b"HTTPS%3A%2F%2FREVIEWS.example"),
    form("unsubscribe", lease_seconds="abc", secret="x" * 500),
])  # fmt: skip
def test_unusual_but_valid_requests_are_accepted(bench: Bench, body: bytes) -> None:
    bench.subscribe()
    assert bench.post(body, "Application/X-WWW-Form-Urlencoded; charset=UTF-8").status == 202


LEASES = [(None, 864000), ("1", 3600), ("7200", 7200), ("2592001", 2592000), ("9" * 30, 2592000)]


@pytest.mark.parametrize(("asked", "granted"), LEASES)
def test_a_lease_is_clamped_and_told(bench: Bench, asked: str | None, granted: int) -> None:
    bench.subscribe(**({"lease_seconds": asked} if asked else {}))
    assert bench.gets[0]["hub.lease_seconds"] == str(granted)
    assert bench.subscription().expires_at == bench.clock.now + granted


@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
def test_a_repeated_request_is_accepted_without_a_write(bench: Bench, mode: str) -> None:
    bench.subscribe()
    store = bench.settings.state_dir / STORE_FILE_NAME
    with closing(sqlite3.connect(store)) as other:
        for secret, is_new in (("a", True), ("a", False), ("b", mode == "subscribe")):
            (before,) = other.execute("PRAGMA data_version")
            assert bench.post(form(mode, secret=secret)).status == 202
            assert (other.execute("PRAGMA data_version").fetchone() != before) == is_new
    bench.work()
    assert len(bench.gets) == 2


def test_a_request_during_the_same_verification_gets_one_of_its_own(bench: Bench) -> None:
    def refuse(_: CallbackRequest) -> CallbackResponse:
        bench.on_get = echo
        bench.post(form())
        return CallbackResponse(404, "HTTP 404")

    bench.on_get = refuse
    bench.subscribe()
    assert bench.states() == [("active", 0)]


# ---- Limits ------------------------------------------------------------------------------------------------


def test_a_subscriber_may_ask_fifty_times_a_minute_in_each_mode(bench: Bench) -> None:
    bench.subscribe()
    for number in range(50):
        assert bench.post(form(secret=str(number))).status == 202
    refusal = "there are too many requests of this subscriber; try again later"
    assert bench.post(form(secret="more")) == HubAnswer(429, refusal, (("Retry-After", "60"),))
    assert bench.post(form("unsubscribe")).status == 202
    bench.subscribe(path=JSON_FEED)
    bench.wait(60)
    assert bench.post(form(secret="later")).status == 202


def test_no_request_of_a_domain_is_refused_and_its_newest_fifty_wait(bench: Bench) -> None:
    assert bench.ask(*(f"h{number}.many" for number in range(60))) == {202}
    assert bench.hosts("subscribe") == sorted(f"h{number}.many.example" for number in range(10, 60))
    assert bench.ask("h59.many", secret="new") == {202}
    assert len(bench.hosts("subscribe")) == 50


def test_a_full_table_evicts_from_the_domain_with_the_most_requests(bench: Bench) -> None:
    bench.ask(*(f"h{number}.d{number % 20}" for number in range(1000)))
    assert bench.ask(*(f"new{number}" for number in range(20))) == {202}
    assert len(bench.hosts("subscribe")) == 1000
    waiting = Counter(host.partition(".")[2] for host in bench.hosts("subscribe"))
    assert {waiting[f"d{number}.example"] for number in range(20)} == {49}


def test_a_full_table_of_single_domains_evicts_only_failed_requests(bench: Bench) -> None:
    bench.on_get = SILENCE
    bench.ask("away")
    bench.work()
    bench.ask(*(f"h{number}" for number in range(999)))
    assert bench.ask("new") == {202}
    refusal = "there are too many unverified requests; try again later"
    newer = form(callback="https://newer.example/")
    assert bench.post(newer) == HubAnswer(503, refusal, (("Retry-After", "60"),))
    assert "away.example" not in bench.hosts("subscribe")
    assert bench.ask("h5", secret="new") == {202}


def test_domains_take_turns_and_their_newest_requests_come_first(bench: Bench) -> None:
    bench.on_get = status(404)
    bench.ask("a1.a", "a2.a", "b1.b", "a3.a", "b2.b", "c1.c")
    bench.work()
    order = [sent.url.split("/")[2].split(".")[0] for sent in bench.sent]
    assert order == ["a3", "b2", "c1", "a2", "b1", "a1"]
    bench.ask("a4.a", "d1.d")
    assert [due.domain for due in bench.started()] == ["d.example", "a.example"], "a was asked three times"


def test_a_network_gets_fifty_connections_of_strangers_a_minute(bench: Bench) -> None:
    names = [f"n{number}" for number in range(100)]
    bench.networks = {f"{name}.example": "203.0.113.7" for name in names}
    bench.on_get = status(404)
    assert bench.ask(*names) == {202}
    bench.work()
    assert len(bench.sent) == 50
    assert bench.ask(names[0]) == {202}
    for seconds, sent in ((19, 50), (40, 50), (20, 100)):
        bench.wait(seconds)
        assert len(bench.sent) == sent


def test_only_the_network_that_confirmed_forgets_a_connection(bench: Bench) -> None:
    bench.networks = {f"n{number}.example": "203.0.113.7" for number in range(60)}
    bench.subscribe(*(f"n{number}" for number in range(60)))
    assert len(bench.hosts()) == 60
    bench.tried_first = ["198.51.100.9"]
    bench.ask(*(f"m{number}" for number in range(60)))
    bench.work()
    assert len(bench.hosts()) == 60 + 50


def test_requests_of_strangers_at_its_address_delay_no_subscriber(bench: Bench) -> None:
    bench.subscribe()
    bench.networks = {f"n{number}.example": "203.0.113.7" for number in range(60)}
    bench.networks["s.example"] = "203.0.113.7"  # the callback has moved
    bench.on_get = status(404)
    bench.ask(*(f"n{number}" for number in range(60)))
    bench.work()
    bench.on_get = echo
    for number in range(60):
        bench.change(str(number))
    bench.subscribe(secret="renewed")
    assert len(bench.contents) == 60
    assert bench.subscription().secret == b"renewed"


@pytest.mark.parametrize(("most", "names", "code", "words"), [
    (29, "a.s b.s c.s", 429, "subscriptions of this domain"),
    (9, "a.s b.s", 429, "subscriptions of this domain"),
    (3, "a b c d", 503, "subscriptions"),
])  # fmt: skip
def test_a_full_quota_refuses_newcomers_and_renews(
    bench: Bench, most: int, names: str, code: int, words: str
) -> None:
    bench.restart(max_subscriptions=most)
    *subscribed, refused = names.split()
    bench.subscribe(*subscribed)
    refusal = f"there are too many {words}; try again later"
    request = form(callback=f"https://{refused}.example/")
    assert bench.post(request) == HubAnswer(code, refusal, (("Retry-After", "3600"),))
    bench.subscribe(*subscribed)
    assert bench.hosts() == [f"{name}.example" for name in subscribed]


def test_a_full_quota_of_an_address_is_told_in_a_notice(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.restart(max_subscriptions=29)
    bench.networks = dict.fromkeys(("a.example", "b.example", "c.example"), "192.0.2.1")
    bench.subscribe("a", "b", "c")  # whose addresses nobody knows before they are asked
    told = [asked["hub.reason"] for asked in bench.gets if asked["hub.mode"] == "denied"]
    assert told == ["there are too many subscriptions of this address"]
    line = "subscribe confirmed and denied, too many subscriptions of this address: HTTP 200"
    assert f"hub /feed.xml c.example: {line}" in caplog.messages
    bench.subscribe("a")
    assert bench.hosts() == ["a.example", "b.example"]


# ---- Verification ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("callback", "joint"), [
    ("https://s.example", "?"),
    ("https://s.example/cb?", ""),
    ("https://s.example/cb?a=b&", ""),
    ("https://s.example/cb?a=%20b+c&hub.mode=mine&bare", "&"),
])  # fmt: skip
def test_a_callback_keeps_its_own_query_unchanged(bench: Bench, callback: str, joint: str) -> None:
    bench.subscribe(callback=callback)
    bench.change()
    asked, sent = bench.sent
    topic_url = "https%3A%2F%2Freviews.example%2Ffeed.xml"
    assert asked.url.startswith(f"{callback}{joint}hub.mode=subscribe&hub.topic={topic_url}&hub.challenge=")
    assert (sent.url, sent.read_body_bytes) == (callback, 0)
    assert (asked.timeout_seconds, sent.timeout_seconds) == (5.0, 10.0)


def test_challenges_are_random_and_safe_in_a_url(bench: Bench) -> None:
    for _ in range(5):
        bench.subscribe()
    challenges = {asked["hub.challenge"] for asked in bench.gets}
    assert len(challenges) == 5
    assert all(re.fullmatch(r"[\w-]{43}", challenge, re.ASCII) for challenge in challenges)
    assert {sent.read_body_bytes for sent in bench.sent} == {44}  # one more would be noticed


def echoing(code: int | None, body: str) -> Answer:
    """Answers with the challenge in place of {}."""

    def answer(request: CallbackRequest) -> CallbackResponse:
        challenge = query(request.url)["hub.challenge"]
        return CallbackResponse(code, "as told", body.replace("{}", challenge).encode())

    return answer


UNCONFIRMED = [(200, body) for body in ("{}\n", " {}", "{}{}", "<p>{}</p>", "")] + [(204, "")]
UNCONFIRMED += [(code, "{}") for code in (404, 500, 302)]


@pytest.mark.parametrize(("code", "body"), UNCONFIRMED)
def test_only_the_whole_challenge_with_2xx_confirms(bench: Bench, code: int, body: str) -> None:
    bench.on_get = echoing(code, body)
    bench.subscribe()
    assert bench.states() == []
    bench.on_get = echo
    bench.subscribe(secret="old")
    bench.on_get = echoing(code, body)
    for mode in ("subscribe", "unsubscribe"):
        bench.post(form(mode, secret="new"))
        bench.work()
    bench.change()
    assert bench.signatures == [signed("old", "two")]


def test_a_confirmation_of_the_older_request_still_counts(bench: Bench) -> None:
    def slow(request: CallbackRequest) -> CallbackResponse:
        bench.on_get = status(404)
        assert bench.post(form(secret="newer")).status == 202
        return echo(request)

    for seconds in (0, 60):  # of a newcomer, and of a renewal
        bench.wait(seconds)
        bench.on_get = slow
        bench.post(form(secret="mine"))
        bench.work()
        assert bench.subscription().expires_at == bench.clock.now + bench.settings.lease_seconds
    assert len(bench.gets) == 4
    bench.change()
    assert bench.signatures == [signed("mine", "two")]


def test_a_request_during_a_confirmation_is_one_of_a_subscriber(bench: Bench) -> None:
    def ask_meanwhile(request: CallbackRequest) -> CallbackResponse:
        bench.on_get = SILENCE
        bench.post(form(secret="newer"))
        return echo(request)

    bench.on_get = ask_meanwhile
    bench.subscribe()
    bench.wait(60)
    bench.hub.read_due()
    assert (bench.hub.schedule.take("newcomer"), bench.states()) == (None, [("active", 0), ("subscribe", 0)])


def test_unsubscriptions_by_strangers_replace_no_renewal(bench: Bench) -> None:
    def consider(request: CallbackRequest) -> CallbackResponse:
        bench.post(form("unsubscribe"))  # somebody asks in the name of the subscriber again and again
        return echo(request) if query(request.url)["hub.mode"] == "subscribe" else status(404)(request)

    bench.subscribe()
    bench.on_get = consider
    bench.post(form("unsubscribe"))
    bench.post(form(secret="renewed"))
    bench.work()
    bench.change()
    assert bench.signatures == [signed("renewed", "two")]


def test_spellings_of_a_callback_are_one_subscription(bench: Bench) -> None:
    bench.subscribe(callback="https://s.example/%7Eann/%2f")
    bench.subscribe(callback="https://S.EXAMPLE/~ann/%2f")
    bench.change()
    assert [sent.url for sent in bench.posts] == ["https://S.EXAMPLE/~ann/%2f"]


REFUSED = status(None, is_refused=True)


@pytest.mark.parametrize(("silence", "is_subscriber", "pause"), [
    (SILENCE, True, 60), (REFUSED, True, 60), (SILENCE, False, 30), (REFUSED, False, 30), (OUTAGE, False, 30),
])  # fmt: skip
def test_a_request_that_gets_no_http_answer_is_tried_three_times(
    bench: Bench, silence: Answer, is_subscriber: bool, pause: int
) -> None:
    if is_subscriber:
        bench.subscribe()
    before = bench.states()
    bench.on_get = silence
    bench.post(form())
    for tries, seconds in ((1, 0), (1, pause - 1), (2, 1), (2, pause - 1), (3, 1), (3, 3600)):
        bench.wait(seconds)
        assert len(bench.gets) == len(before) + tries
        assert bench.states() == (before if tries == 3 else [*before, ("subscribe", 0)])


def test_a_stranger_has_two_minutes_to_answer(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench.on_get = SILENCE
    bench.post(form())
    bench.work()
    for seconds, states in ((119, [("subscribe", 0)]), (1, [])):
        bench.clock.now += seconds
        bench.hub.upkeep()
        assert bench.states() == states
    assert caplog.messages[-1] == "hub /feed.xml s.example: subscribe not confirmed: no answer in time"


def test_a_notice_is_tried_once(bench: Bench) -> None:
    bench.subscribe()
    bench.on_get = SILENCE
    remove_subscriptions(bench.settings.state_dir, selector("s.example"), clock=bench.clock)
    bench.work()
    assert (bench.states(), bench.gets[-1]["hub.mode"]) == ([], "denied")


# ---- Turns -------------------------------------------------------------------------------------------------


def row(lane: str, domain: str, number: int = 0, network: str | None = None) -> DueRow:
    return DueRow(lane, number, f"{lane} {domain} {number}", f"{domain}.example", network)


def begun(schedule: hub.Schedule, lane: str) -> list[str]:
    """The keys of the exchanges that a lane begins until no other may begin."""
    return [one.key for one in iter(lambda: schedule.take(lane), None)]


LANES = {"renewal": (1, 16), "delivery": (1, 16), "retry": (1, 4), "newcomer": (1, 6), "notice": (1, 2)}


@pytest.mark.parametrize(("lane", "sizes"), LANES.items())
def test_a_lane_of_strangers_or_notices_is_small(lane: str, sizes: tuple[int, int]) -> None:
    rows = [row(lane, f"d{number}", number) for number in range(20)]
    for workers, size in zip((1, 16), sizes, strict=True):
        schedule = hub.Schedule(workers)
        assert schedule.refill(rows) == [lane] * size
        assert len(begun(schedule, lane)) == size


@pytest.mark.parametrize(("now", "count"), [(59.9, 50), (60, 0)])
def test_a_rate_counts_the_events_of_a_minute_up_to_a_limit(now: float, count: int) -> None:
    rate = hub.Rate()
    assert [rate.add("key", 0, limit=50) for _ in range(51)] == [True] * 50 + [False]
    assert rate.count("key", now) == count


OF_A_DOMAIN = [row("delivery", "d", number) for number in range(20)]
OF_A_NETWORK = [row("delivery", f"d{number}", number, "192.0.2.1") for number in range(20)]
OF_STRANGERS = [row("newcomer", "d", number) for number in range(20)]
QUARTER = {1: 1, 7: 1, 8: 2, 16: 4, 64: 4}  # the limit by the number of workers
HALF_OF_THREE_EIGHTHS = {1: 1, 8: 1, 16: 3, 64: 4}
LIMITS = [(OF_A_DOMAIN, QUARTER), (OF_A_NETWORK, QUARTER), (OF_STRANGERS, HALF_OF_THREE_EIGHTHS)]


@pytest.mark.parametrize(
    ("rows", "workers", "limit"),
    [(rows, workers, limit) for rows, limits in LIMITS for workers, limit in limits.items()],
)
def test_a_domain_or_network_has_four_workers_at_most(rows: list[DueRow], workers: int, limit: int) -> None:
    lane, schedule = rows[0].lane, hub.Schedule(workers)
    schedule.refill([*rows, row(lane, "other")])
    assert begun(schedule, lane) == [*(one.key for one in rows[:limit]), f"{lane} other 0"][:workers]


def test_a_subscriber_has_one_exchange_at_a_time() -> None:
    schedule = hub.Schedule(16)
    delivery, renewal = row("delivery", "s"), row("renewal", "s")._replace(key="delivery s 0")
    schedule.refill([delivery, renewal])
    assert schedule.take("delivery") == delivery
    assert schedule.take("renewal") is None
    schedule.finish(delivery)
    assert schedule.take("renewal") == renewal


def takes(bench: Bench, seconds: Callable[[str], float], then: Answer = echo) -> Answer:
    """A callback that answers after the seconds of its host."""

    def answer(request: CallbackRequest) -> CallbackResponse:
        bench.running_time.now += seconds(request.url.split("/")[2])
        return then(request)

    return answer


def test_slow_subscribers_never_stand_before_quick_ones(bench: Bench) -> None:
    names = [*(f"h{number}.slow{number % 20}" for number in range(200)), "quick"]
    bench.on_get = takes(bench, lambda host: 1.9 if "slow" in host else 0.1)
    bench.subscribe(*names)
    bench.publish("two")
    assert bench.begun("delivery").domain == "quick.example"
    bench.ask(*names, secret="new")
    bench.restart()
    assert bench.begun("renewal").domain == "quick.example"


def test_subscriptions_of_a_domain_take_turns_with_others(bench: Bench) -> None:
    bench.subscribe(*(f"h{number}.many" for number in range(20)), "other")
    bench.publish("two")
    assert {bench.begun().domain for _ in range(2)} == {"many.example", "other.example"}


@pytest.mark.parametrize(("seconds", "lane"), [(2.0, "delivery"), (2.1, "retry")])
@pytest.mark.parametrize("by", ["delivery", "renewal"])
def test_a_callback_slower_than_two_seconds_is_retried(
    bench: Bench, seconds: float, lane: str, by: str
) -> None:
    bench.subscribe()
    bench.on_get = bench.on_post = takes(bench, lambda _: seconds)
    bench.change("two") if by == "delivery" else bench.subscribe()
    bench.publish("three")
    (due,) = bench.started()
    assert due.lane == lane
    bench.on_post = status(204)
    bench.hub.perform(due)
    bench.publish("four")
    assert [one.lane for one in bench.started()] == ["delivery"]
