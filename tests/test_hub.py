"""The hub: in memory with a clock to turn, then with its threads and real HTTPS callbacks on 127.0.0.1.

Requests - Verification - Delivery - Leases, topics and trouble - Scheduling - Threads
"""

from __future__ import annotations

import hmac
import logging
import random
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hub_lab import (
    BASE_URL,
    FEED,
    FORM,
    JSON_FEED,
    PATIENCE_SECONDS,
    Answer,
    Bench,
    Clock,
    Lab,
    agree,
    agree_late,
    apart,
    echo,
    form,
    hang,
    open_lab,
    post,
    query,
    running,
    settings,
    settled,
    status,
    topics,
)

import hub
from reviewslib.websub import store, values
from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse
from reviewslib.websub.store import (
    Listing,
    Store,
    StoreFault,
    Transaction,
    list_subscriptions,
    remove_subscriptions,
)
from reviewslib.websub.values import HubAnswer, Row, Subscriber, Subscription, selector

DAY = 86400.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "new" / "state")
    yield made
    made.hub.stop(1)


# ---- Requests ----------------------------------------------------------------------------------------------


def test_a_good_request_is_accepted_and_verified_with_its_topic_as_sent_by_any_2xx(bench: Bench) -> None:
    body = form().replace(b"feed.xml", b"%2566eed.xml")  # once decoded: %66eed.xml, that is feed.xml
    assert bench.post(body) == HubAnswer(202, "accepted; the callback will now be asked to confirm")
    assert bench.sent == []  # REC 5.1.2: the answer does not wait for the callback
    bench.on_get = echoing(299, "{}")
    bench.work()
    (asked,) = bench.gets
    assert asked["hub.topic"] == f"{BASE_URL}/%66eed.xml"
    assert bench.states() == [("active", 0)]


MISSING = "hub.callback is missing; hub.topic is missing"
NOT_A_TOPIC = f"hub.topic is not a topic of this hub; its topics are {BASE_URL}{FEED}, {BASE_URL}{JSON_FEED}"


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"", 400, f"hub.mode is missing; {MISSING}"),
        (form() + b"&hub.mode=subscribe", 400, "hub.mode is given 2 times"),
        (form(secret="a") + b"&hub.secret=b", 400, "hub.secret is given 2 times"),
        (form("Subscribe"), 400, "hub.mode must be subscribe or unsubscribe"),
        (
            b"hub.mode=publish&hub.url=" + BASE_URL.encode(),
            400,
            f"hub.mode publish is not needed: this hub sees by itself when its topics change; {MISSING}",
        ),
        (
            form(callback="https://127.0.0.1/"),
            400,
            "hub.callback has an address for a host; a name is needed",
        ),
        *((form(secret=text), 400, "hub.secret must have 1 to 199 bytes") for text in ("", "é" * 100)),
        *((form() + text, 400, "the form is not UTF-8") for text in (b"&x=%ff", b"&x=\xff", b"&x=%ed%a0%80")),
        *(
            (form(lease_seconds=text), 400, "hub.lease_seconds must be a positive whole number of seconds")
            for text in ("", "0", "000", "-5", "+5", "1e3", "٣")
        ),
        (form() + b"&x=1" * 62, 400, "the form has more than 64 fields"),
        ((form() + b"&x=").ljust(16385, b"y"), 413, "the form is larger than 16384 bytes"),
        (form(path="/FEED.XML"), 404, NOT_A_TOPIC),
        (form().replace(b"reviews.example", b"other.example"), 404, NOT_A_TOPIC),
        (form().replace(b"https%3A%2F%2Freviews.example", b""), 404, NOT_A_TOPIC),
        (form("unsubscribe"), 404, "hub.callback has no active subscription to hub.topic"),
        (form("unsubscribe", path="/nothing"), 404, "hub.callback has no active subscription to hub.topic"),
    ],
)
def test_a_bad_request_is_refused_with_one_line_that_says_why(
    bench: Bench, body: bytes, code: int, says: str
) -> None:
    assert bench.post(body) == HubAnswer(code, says)
    bench.work()
    assert bench.sent == []


@pytest.mark.parametrize("content_type", [None, "application/json"])
def test_anything_but_a_form_is_refused(bench: Bench, content_type: str | None) -> None:
    assert bench.post(form(), content_type) == HubAnswer(415, f"Content-Type must be {FORM}")


@pytest.mark.parametrize(
    "body",
    [
        form() + b"&foo=bar&hub.foo=hub.bar&foo=baz",  # websub.rocks test 102
        form() + b"&x=1" * 61,
        (form() + b"&x=").ljust(16384, b"y"),
        form(secret="é" * 99 + "x"),
        form(lease_seconds="9" * 9999),
        form().replace(b"https%3A%2F%2Freviews.example", b"HTTPS%3A%2F%2FREVIEWS.example"),
        form("unsubscribe", lease_seconds="abc", secret="x" * 500),
    ],
)
def test_what_the_recommendation_lets_pass_passes(bench: Bench, body: bytes) -> None:
    bench.subscribe()
    assert bench.post(body, "Application/X-WWW-Form-Urlencoded; charset=UTF-8").status == 202


@pytest.mark.parametrize(
    ("asked", "granted"),
    [(None, 864000), ("1", 3600), ("7200", 7200), ("2592001", 2592000), ("9" * 30, 2592000)],
)
def test_a_lease_is_clamped_and_told(bench: Bench, asked: str | None, granted: int) -> None:
    bench.subscribe(**({"lease_seconds": asked} if asked else {}))
    assert bench.gets[0]["hub.lease_seconds"] == str(granted)
    now = bench.clock.now
    (line,) = list_subscriptions(bench.settings.state_dir, clock=bench.clock)
    assert line == Listing("active", "s.example", "s.example", FEED, now, now + granted, 0, None, "")


def test_requests_that_wait_are_limited_in_all_and_by_host(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "MAX_PENDING", 3)
    monkeypatch.setattr(values, "MAX_UNVERIFIED", 2)
    answers = [bench.post(form(callback=f"https://S.example:{8000 + n}/")) for n in range(3)]
    answers += [bench.post(form(callback=f"https://t{n}.example/")) for n in range(3)]
    # The third of all takes the place of the second of a host.
    assert [one.status for one in answers] == [202, 202, 429, 202, 202, 503]
    assert answers[2].headers == answers[5].headers == (("Retry-After", "60"),)
    assert bench.post(form(callback="https://s.example:8000/")).status == 202  # it replaces its own request
    bench.work()
    assert bench.post(form(callback="https://t1.example/")).status == 202


@pytest.mark.parametrize(("seconds", "taken"), [(29, "abc"), (30, "ab")])  # when it is asked again
def test_who_was_asked_in_vain_makes_room_for_who_was_not_asked_yet(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, seconds: float, taken: str
) -> None:
    monkeypatch.setattr(values, "MAX_PENDING", 3)
    bench.on_get = status(None, is_silence=True)
    bench.post(form(callback="https://away.example/"))
    bench.work()
    bench.clock.now += seconds
    bench.running_time.now += seconds
    for name in "abcd":
        status_code = bench.post(form(callback=f"https://{name}.example/")).status
        assert status_code == (202 if name in taken else 503)
    bench.on_get = echo
    bench.wait(60)
    listed = list_subscriptions(bench.settings.state_dir, clock=bench.clock)
    assert {line.host for line in listed} - {"away.example"} == {f"{name}.example" for name in taken}


def test_no_limit_keeps_a_confirmed_subscriber_from_renewing_or_leaving(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.subscribe()
    bench.subscribe(callback="https://s.example/leaves")
    monkeypatch.setattr(values, "MAX_PENDING", 2)
    monkeypatch.setattr(values, "MAX_UNVERIFIED", 1)
    for name in "st":
        assert bench.post(form(callback=f"https://{name}.example/stranger")).status == 202
    assert bench.post(form(callback="https://u.example/stranger")).status == 503
    assert bench.post(form()).status == 202
    assert bench.post(form("unsubscribe", "https://s.example/leaves")).status == 202
    assert [exchange.lane for exchange in bench.hub.due()] == ["renewal"] * 2 + ["verification"] * 2


def test_a_stranger_cannot_make_the_hub_hammer_a_host(bench: Bench) -> None:
    bench.on_get = status(404)
    for number in range(60):
        assert bench.post(form()).status == (202 if number < 50 else 429)
        bench.work()
    assert len(bench.sent) == 50
    bench.wait(59)
    assert bench.post(form()).status == 429
    bench.wait(1)
    assert bench.post(form()).status == 202


@pytest.mark.parametrize("code", [404, 200])  # a website that answers anything has confirmed nothing
def test_a_stranger_with_many_names_cannot_make_the_hub_hammer_an_address(bench: Bench, code: int) -> None:
    names = [f"n{number}.example" for number in range(100)]
    bench.networks = dict.fromkeys(names, "203.0.113.7")
    bench.on_get = status(code)
    for name in names:
        assert bench.post(form(callback=f"https://{name}/")).status == 202  # nobody knows the address yet
    for _ in range(3):
        bench.work()
    assert len(bench.sent) == 50
    assert bench.post(form(callback=f"https://{names[0]}/")).status == 429
    bench.wait(60)
    bench.work()
    assert len(bench.sent) == 100


def test_a_victim_that_is_named_first_is_tried_fifty_times_a_minute_although_others_confirm(
    bench: Bench,
) -> None:
    bench.tried_first = ["203.0.113.7"]
    for number in range(60):
        bench.post(form(callback=f"https://n{number}.example/"))
    bench.work()
    assert (len(bench.sent), bench.states().count(("active", 0))) == (50, 50)


def test_an_address_that_accepts_deliveries_has_confirmed_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MAX_CACHED_NETWORKS", 1)  # of which the cache holds no more
    bench.subscribe()
    bench.networks = {"s.example": "203.0.113.7"}  # the callback has moved
    for number in range(60):
        bench.change(str(number))
    assert len(bench.contents) == 60


def test_callbacks_that_move_to_an_address_that_refuses_do_not_hammer_it(bench: Bench) -> None:
    names = [f"n{number}.example" for number in range(60)]
    for name in names:
        bench.subscribe(callback=f"https://{name}/")
    bench.networks = dict.fromkeys(names, "203.0.113.7")
    bench.on_post = status(404)
    bench.change()
    assert len(bench.posts) == 50


def test_a_stranger_cannot_make_the_hub_hammer_a_subscriber(bench: Bench) -> None:
    bench.subscribe()
    bench.on_get = status(404)
    for _ in range(5):
        assert bench.post(form("unsubscribe")).status == 202
        bench.work()
    assert len(bench.gets) == 2
    bench.wait(1.2)
    assert len(bench.gets) == 3


def test_an_address_with_a_tenth_of_all_is_denied_more_and_may_renew_it(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.settings = settings(bench.settings.state_dir, max_subscriptions=29)
    bench.restart()
    bench.networks = {f"{name}.example": "192.0.2.1" for name in "abc"}
    for name in "abc":  # whose address nobody knows yet
        bench.subscribe(callback=f"https://{name}.example/")
    assert [asked["hub.mode"] for asked in bench.gets] == ["subscribe"] * 3 + ["denied"]
    too_many = "too many subscriptions of this address"
    assert bench.gets[-1]["hub.reason"] == f"there are {too_many}"
    assert f"hub /feed.xml c.example: subscribe confirmed: HTTP 200, denied: {too_many}" in caplog.messages
    refusal = bench.post(form(callback="https://c.example/"))
    assert refusal.text == f"there are {too_many}; try again later"
    bench.subscribe(callback="https://a.example/")
    assert bench.states() == [("active", 0)] * 2


# ---- Verification ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("callback", "joint"),
    [
        ("https://s.example", "?"),
        ("https://s.example/cb?", ""),
        ("https://s.example/cb?a=b&", ""),
        ("https://s.example/cb?a=%20b+c&hub.mode=mine&bare", "&"),
    ],
)
def test_a_callback_keeps_its_own_query_to_the_letter(bench: Bench, callback: str, joint: str) -> None:
    bench.subscribe(callback=callback)
    bench.change()
    asked, sent = bench.sent
    topic_url = "https%3A%2F%2Freviews.example%2Ffeed.xml"
    assert asked.url.startswith(f"{callback}{joint}hub.mode=subscribe&hub.topic={topic_url}&hub.challenge=")
    assert (sent.url, sent.read_body_bytes) == (callback, 0)
    assert (asked.timeout_seconds, sent.timeout_seconds) == (5.0, 10.0)
    bench.subscribe(callback=callback)
    # A renewal and a delivery can prove an outage, a stranger's request cannot.
    assert [one.confirmed_network for one in bench.sent] == [None, "s.example", "s.example"]


def test_challenges_are_random_and_plain(bench: Bench) -> None:
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


@pytest.mark.parametrize(
    ("code", "body"),
    [(200, body) for body in ("{}\n", " {}", "{}{}", "<p>{}</p>", "")]
    + [(204, "")]
    + [(code, "{}") for code in (404, 500, 302, None)],  # None: a refused connection, or another protocol
)
def test_anything_but_the_whole_challenge_with_2xx_leaves_things_as_they_were(
    bench: Bench, code: int | None, body: str
) -> None:
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
    assert [signature(sent) for sent in bench.posts] == [signed("old", "two")]


def test_a_request_is_verified_once_and_the_newest_of_a_subscriber_counts(bench: Bench) -> None:
    for secret in ("first", "second", "third"):
        assert bench.post(form(secret=secret)).status == 202
    bench.work()
    assert len(bench.gets) == 1
    bench.change()
    assert [signature(sent) for sent in bench.posts] == [signed("third", "two")]


def test_what_is_confirmed_counts_although_a_newer_request_waits_which_is_asked_by_itself(
    bench: Bench,
) -> None:
    def slow(request: CallbackRequest) -> CallbackResponse:
        bench.on_get = status(404)
        assert bench.post(form(secret="newer")).status == 202
        return echo(request)

    for seconds in (0, 60):  # of a newcomer, and of a renewal
        bench.wait(seconds)
        bench.on_get = slow
        bench.post(form(secret="mine"))
        bench.work()
        bench.wait(2)
        (line,) = list_subscriptions(bench.settings.state_dir, clock=bench.clock)
        assert line.expires_at == bench.clock.now - 2 + bench.settings.lease_seconds
    assert len(bench.gets) == 4
    bench.change()
    assert [signature(sent) for sent in bench.posts] == [signed("mine", "two")]


def test_a_refusal_of_an_older_request_leaves_the_newer_one(bench: Bench) -> None:
    def refuse(_: CallbackRequest) -> CallbackResponse:
        bench.on_get = echo
        bench.post(form())
        return CallbackResponse(404, "HTTP 404")

    bench.on_get = refuse
    bench.subscribe()
    assert bench.states() == [("active", 0)]


def test_unsubscriptions_by_strangers_do_not_replace_a_renewal(bench: Bench) -> None:
    def consider(request: CallbackRequest) -> CallbackResponse:
        bench.post(form("unsubscribe"))  # somebody asks in the name of the subscriber again and again
        return echo(request) if query(request.url)["hub.mode"] == "subscribe" else status(404)(request)

    bench.subscribe()
    bench.on_get = consider
    bench.post(form("unsubscribe"))
    bench.post(form(secret="renewed"))
    for _ in range(2):
        bench.wait(2)
    bench.change()
    assert [signature(sent) for sent in bench.posts] == [signed("renewed", "two")]


def test_spellings_of_one_callback_are_one_subscription_and_the_latest_is_used(bench: Bench) -> None:
    bench.subscribe(callback="https://s.example/%7Eann/%2f")
    bench.subscribe(callback="https://S.EXAMPLE/~ann/%2f")
    bench.change()
    assert [sent.url for sent in bench.posts] == ["https://S.EXAMPLE/~ann/%2f"]


# ---- Delivery ----------------------------------------------------------------------------------------------


def signature(sent: CallbackRequest) -> str | None:
    return sent.headers.get("X-Hub-Signature")


def signed(secret: str, text: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()


@pytest.mark.parametrize("secret", ["s", "pass word", "é" * 99 + "x", "\x00"])
def test_a_secret_signs_the_bytes_that_are_sent_until_a_renewal_drops_it(bench: Bench, secret: str) -> None:
    bench.subscribe(secret=secret)
    bench.change("zwölf 🙂")
    bench.subscribe()
    bench.change("three")
    assert [signature(sent) for sent in bench.posts] == [signed(secret, "zwölf 🙂"), None]


def test_nothing_is_sent_while_the_content_is_the_same_and_a_renewal_only_extends_the_lease(
    bench: Bench,
) -> None:
    bench.subscribe()
    bench.change()
    (before,) = list_subscriptions(bench.settings.state_dir, clock=bench.clock)
    assert (before.last_attempt_at, before.last_outcome) == (bench.clock.now, "HTTP 204")
    for _ in range(2):
        bench.wait(60)
        bench.subscribe()
        bench.restart()
        bench.change()
    (renewed,) = list_subscriptions(bench.settings.state_dir, clock=bench.clock)
    assert renewed == before._replace(expires_at=bench.clock.now + bench.settings.lease_seconds)
    assert bench.contents == ["two"]


def test_a_change_that_is_taken_back_in_time_is_not_delivered(bench: Bench) -> None:
    bench.subscribe()
    bench.publish("two")
    (due,) = bench.hub.due()
    bench.publish("one")
    bench.hub.perform(due)
    assert bench.contents == []


def test_of_several_changes_during_a_slow_delivery_the_newest_is_next(bench: Bench) -> None:
    def accept_late(_: CallbackRequest) -> CallbackResponse:
        bench.on_post = status(204)
        for text in ("three", "four"):
            bench.publish(text)
        return CallbackResponse(204, "HTTP 204")

    bench.subscribe()
    bench.on_post = accept_late
    bench.change()
    assert bench.contents == ["two", "four"]


@pytest.mark.parametrize("code", [None, 302, 304, 400, 404, 500])
def test_three_failures_in_a_row_remove_and_are_told_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, code: int | None
) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.5)  # half of the jitter
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
    bench.on_get = status(code, is_silence=code is None)  # the answer to a notice does not matter
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
def test_only_a_request_to_subscribe_that_waits_already_replaces_the_notice(
    bench: Bench, mode: str, told: str
) -> None:
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


def test_who_has_subscribed_anew_is_not_told_of_the_removal_before(bench: Bench) -> None:
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


def test_notices_that_wait_do_not_grow_without_bound(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_NOTICES", 2)
    for number in range(4):
        bench.subscribe(callback=f"https://s{number}.example/")
    bench.on_post = status(500)
    bench.on_get = OUTAGE
    bench.change()
    for _ in range(2):
        bench.wait(5000)
    assert bench.states() == [("denied", 0)] * 2


@pytest.mark.parametrize(("value", "seconds"), [("600", 600), ("1", 60)])
def test_retry_after_puts_the_next_attempt_off_and_never_forward(
    bench: Bench, value: str, seconds: int
) -> None:
    bench.subscribe()
    bench.on_post = status(503, retry_after=value)
    bench.change()
    bench.wait(seconds - 1)
    assert len(bench.contents) == 1
    bench.wait(60 * 0.2 + 1)
    assert len(bench.contents) == 2


def bug(_: CallbackRequest) -> CallbackResponse:
    raise RuntimeError("bug")


SILENCE = status(None, is_silence=True)
OUTAGE = status(None, is_silence=True, own_fault=True)


@pytest.mark.parametrize("fault", [OUTAGE, bug])
def test_a_fault_of_our_own_is_no_failure_of_the_callback(
    bench: Bench, caplog: pytest.LogCaptureFixture, fault: Answer
) -> None:
    bench.subscribe()
    bench.on_get = fault
    bench.post(form(secret="new"))
    bench.work()
    assert (bench.states(), len(bench.gets)) == ([("active", 0), ("subscribe", 0)], 2)
    bench.on_get = echo
    bench.wait(59)
    assert len(bench.gets) == 2
    bench.wait(1)
    assert bench.states() == [("active", 0)]
    bench.on_post = fault
    bench.change()
    for _ in range(4):
        bench.wait(60)
    assert len(bench.contents) == 5
    assert {signature(sent) for sent in bench.posts} == {signed("new", "two")}
    (line,) = list_subscriptions(bench.settings.state_dir, clock=bench.clock)
    told = "an exchange with a callback failed unexpectedly" in caplog.messages
    assert (line.failures, line.last_outcome, told) == (
        (0, "error in the hub", True) if fault is bug else (0, "not reachable", False)
    )


def test_a_request_of_a_subscriber_waits_out_an_outage_of_an_hour(bench: Bench) -> None:
    bench.subscribe()
    bench.on_get = OUTAGE
    bench.post(form())
    bench.work()
    for _ in range(59):
        bench.wait(60)
    bench.clock.now -= 100 * DAY  # it is the running time that counts
    bench.work()
    assert bench.states() == [("active", 0), ("subscribe", 0)]
    bench.wait(60)
    assert bench.states() == [("active", 0)]


def test_a_request_that_replaces_another_has_an_hour_of_its_own(bench: Bench) -> None:
    bench.subscribe()
    bench.on_get = OUTAGE
    for _ in range(2):
        bench.post(form())
        for _ in range(59):
            bench.wait(60)
    assert bench.states() == [("active", 0), ("subscribe", 0)]
    for _ in range(2):
        bench.wait(60)
    assert bench.states() == [("active", 0)]


@pytest.mark.parametrize(
    ("silence", "is_renewal", "pause"), [(SILENCE, False, 30), (OUTAGE, False, 30), (SILENCE, True, 60)]
)
def test_a_request_that_nobody_answers_is_tried_three_times_in_two_minutes(
    bench: Bench, silence: Answer, is_renewal: bool, pause: int
) -> None:
    if is_renewal:
        bench.subscribe()
    before = bench.states()
    bench.on_get = silence
    bench.post(form())
    for tries, seconds in ((1, 0), (1, pause - 1), (2, 1), (2, pause - 1), (3, 1), (3, 3600)):
        bench.wait(seconds)
        assert len(bench.gets) == len(before) + tries
        assert bench.states() == (before if tries == 3 else [*before, ("subscribe", 0)])


def test_a_newcomer_that_gets_no_second_turn_is_dropped_two_minutes_after_the_first(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.networks = dict.fromkeys(["s.example", "t.example"], "203.0.113.7")
    bench.on_get = SILENCE
    bench.post(form())
    bench.work()
    for number in range(50):
        bench.post(form(callback=f"https://t.example/{number}"))  # they take all tries of their network
    bench.on_get = status(404)
    bench.work()
    assert len(bench.gets) == 50
    bench.on_get = echo
    bench.wait(30)
    assert bench.states() == [("subscribe", 0)] * 2  # turned away
    bench.clock.now += 89
    bench.running_time.now += 89
    assert bench.states() == [("subscribe", 0)] * 2
    sent = len(bench.sent)
    bench.wait(1)
    assert [line.host for line in list_subscriptions(bench.settings.state_dir)] == ["t.example"]
    told = ["subscribe requested", "subscribe not confirmed: no answer in time"]
    assert [line for line in caplog.messages if " s.ex" in line] == [
        f"hub /feed.xml s.example: {each}" for each in told
    ]
    assert len(bench.sent) == sent + 1


def test_who_was_not_tried_yet_comes_before_who_was(bench: Bench) -> None:
    bench.on_get = SILENCE
    for name in "ab":
        bench.post(form(callback=f"https://{name}.example/"))
    for seconds in (0, 30, 61):  # so that their domains were not tried lately
        bench.work()
        bench.clock.now += seconds
        bench.running_time.now += seconds
    bench.post(form(callback="https://c.example/"))
    assert [one.limit_key for one in bench.hub.due()] == ["c.example", "a.example", "b.example"]


def test_a_domain_that_was_not_tried_lately_comes_before_one_that_was(bench: Bench) -> None:
    bench.on_get = status(404)
    bench.subscribe(callback="https://a.example/1")
    for name in "ab":
        bench.post(form(callback=f"https://{name}.example/2"))
    assert [one.limit_key for one in bench.hub.due()] == ["b.example", "a.example"]


def test_names_that_led_to_one_network_take_turns_with_other_networks(bench: Bench) -> None:
    bench.networks = dict.fromkeys(["a.example", "b.example"], "203.0.113.7")
    bench.on_get = status(404)
    for _ in range(2):
        for name in "abc":
            bench.post(form(callback=f"https://{name}.example/"))
        keys = [one.limit_key for one in bench.hub.due()]
        bench.work()
        bench.wait(60)
    assert keys == ["203.0.113.7", "c.example", "203.0.113.7"]


def test_a_callback_that_fails_cannot_renew_itself_to_the_front(bench: Bench) -> None:
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


# ---- Leases, topics and trouble ----------------------------------------------------------------------------


def test_a_lease_counts_from_the_verification_and_its_end_ends_everything(bench: Bench) -> None:
    bench.post(form(lease_seconds="3600"))
    bench.wait(1000)
    bench.wait(3599)
    bench.change()
    bench.on_post = status(500)
    bench.change("three")
    assert bench.contents == ["two", "three"]
    bench.wait(1)
    bench.wait(3600)  # the back-off has ended, too
    assert bench.contents == ["two", "three"]
    assert bench.hub.counts()["active"] == 0
    assert bench.post(form("unsubscribe")).status == 404
    bench.subscribe()  # starts from the content of now
    assert bench.contents == ["two", "three"]


def test_a_clock_that_is_set_back_does_not_hold_up_a_retry(bench: Bench) -> None:
    bench.subscribe()
    bench.on_post = status(500)
    bench.change()
    bench.on_post = status(200)
    bench.wait(-4400)  # longer than any retry
    assert bench.contents == ["two", "two"]


def test_no_jump_of_the_clock_ends_what_a_jump_back_would_bring_to_life(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.subscribe()
    bench.clock.now += 1000 * DAY
    for _ in range(3):
        bench.running_time.now += DAY / 4
        bench.hub.delete_expired()
    bench.change()
    assert bench.contents == []
    bench.wait(-1000 * DAY)
    assert bench.contents == ["two"]
    bench.hub.delete_expired()
    bench.clock.now += 1000 * DAY
    for running_seconds in (0, DAY - 1):  # since the lease has ended again
        bench.running_time.now += running_seconds
        bench.hub.delete_expired()
        assert len(bench.states()) == 1
    bench.running_time.now += 1
    bench.hub.delete_expired()
    assert bench.states() == []
    assert caplog.messages[-1] == "hub /feed.xml s.example: lease ended"


@pytest.mark.parametrize("seconds_before", [0, 12 * DAY])
def test_a_renewal_in_time_misses_nothing_although_the_lease_ends_meanwhile(
    bench: Bench, seconds_before: float
) -> None:
    def agree_later(request: CallbackRequest) -> CallbackResponse:
        bench.clock.now += 12 * DAY
        return echo(request)

    bench.subscribe()
    bench.on_post = status(500)
    bench.change()
    bench.on_post = status(204)
    bench.post(form())
    bench.on_get = agree_later
    bench.wait(seconds_before)
    bench.wait(100 - 12 * DAY)
    assert (bench.states(), bench.contents) == ([("active", 0)], ["two", "two"])


def test_a_delivery_counts_although_the_lease_ends_meanwhile(bench: Bench) -> None:
    def accept_later(_: CallbackRequest) -> CallbackResponse:
        bench.clock.now += 12 * DAY
        return CallbackResponse(204, "HTTP 204")

    bench.subscribe()
    bench.on_post = accept_later
    bench.change()
    bench.wait(-12 * DAY)
    assert (bench.states(), bench.contents) == ([("active", 0)], ["two"])


def test_an_ended_subscription_goes_when_its_place_is_needed(bench: Bench) -> None:
    bench.settings = settings(bench.settings.state_dir, max_subscriptions=2)
    bench.restart()
    for number, lease in enumerate(("7200", "3600")):
        bench.subscribe(callback=f"https://s{number}.example/", lease_seconds=lease)
    bench.wait(7200)
    bench.hub.delete_expired()
    assert len(bench.states()) == 2
    bench.subscribe(callback="https://s2.example/")
    bench.hub.delete_expired()
    listed = list_subscriptions(bench.settings.state_dir, clock=bench.clock)
    assert [line.host for line in listed] == ["s0.example", "s2.example"]  # the later end


def test_a_topic_that_is_gone_rests_until_it_is_back_and_can_be_left(bench: Bench) -> None:
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


def test_a_request_that_the_operator_removes_while_its_callback_confirms_stays_removed(bench: Bench) -> None:
    def confirm_too_late(request: CallbackRequest) -> CallbackResponse:
        remove_subscriptions(bench.settings.state_dir, selector("s.example"))
        return echo(request)

    bench.on_get = confirm_too_late
    bench.subscribe()
    assert bench.states() == []


@pytest.mark.parametrize("then", ["is removed", "has a successor"])
def test_a_late_result_touches_nothing_else(bench: Bench, then: str) -> None:
    def leave_meanwhile(_: CallbackRequest) -> CallbackResponse:
        bench.on_post = status(200)
        bench.post(form("unsubscribe"))
        (request,) = (exchange for exchange in bench.hub.due() if exchange.lane == "renewal")
        bench.hub.perform(request)
        if then == "has a successor":
            bench.post(form())
            bench.hub.perform(bench.hub.due()[0])
        return CallbackResponse(500, "HTTP 500")

    bench.subscribe()
    bench.on_post = leave_meanwhile
    bench.change()
    assert bench.states() == ([] if then == "is removed" else [("active", 0)])


def test_a_hub_that_has_published_and_counted_nothing_or_has_no_place_for_a_store_answers(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    for state_dir, published, code in ((tmp_path, {}, 404), (tmp_path / "file" / "state", topics(), 503)):
        made = hub.Hub(settings(state_dir))
        made.open_store()
        if published:
            made.publish(published)
        assert (made.answer(FORM, form()).status, made.counts()) == (code, {})
        made.stop(1)


def test_requests_that_cannot_be_stored_are_503(bench: Bench) -> None:
    bench.subscribe()
    bench.hub.stop(1)
    unavailable = HubAnswer(503, "requests cannot be stored at present", (("Retry-After", "60"),))
    assert bench.post(form()) == unavailable
    with pytest.raises(StoreFault):
        bench.hub.refresh_counts()
    assert bench.hub.counts() == {}
    bench.hub.publish(topics("two"))


def test_what_is_accepted_and_what_the_operator_removes_waits_for_the_disk_and_nothing_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*arguments: Any) -> sqlite3.Connection:
        connection = connect_really(*arguments)
        connection.set_trace_callback(statements.append)
        return connection

    connect_really, statements = store.connect, list[str]()
    monkeypatch.setattr(store, "connect", connect)
    remove = partial(remove_subscriptions, bench.settings.state_dir, selector("s.example"))
    for do, mode in (
        (partial(bench.post, form()), "FULL"),
        (bench.work, "NORMAL"),
        (bench.change, "NORMAL"),
        (remove, "FULL"),
    ):
        statements.clear()
        do()
        assert {one for one in statements if "synchronous" in one} == {f"PRAGMA synchronous = {mode}"}


def test_counting_for_others_does_not_touch_the_store(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise AssertionError("the store was asked")

    bench.subscribe()
    monkeypatch.setattr(Store, "reading", fail)
    assert bench.hub.counts() == {"active": 1, "pending": 0, "failing": 0, "behind": 0}
    assert bench.hub.trouble() is None


def test_a_result_that_cannot_be_recorded_is_recorded_later_and_not_sent_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [StoreFault("full")] * 2
    save = Transaction.save

    def save_later(*arguments: object) -> None:
        if faults:
            raise faults.pop()
        save(*arguments)

    bench.subscribe()
    monkeypatch.setattr(hub, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(Transaction, "save", save_later)
    bench.change()
    assert (faults, bench.contents) == ([], ["two"])


def test_the_log_has_a_line_an_event_with_the_host_only(
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


def test_410_removes_at_once_without_a_notice_and_is_a_warning(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.subscribe()
    bench.on_post = status(410)
    bench.change()
    line = f"hub /feed.xml s.example: content {topics('two')[FEED].digest[:12]} gone, removed: HTTP 410"
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [("WARNING", line)]
    assert bench.states() == []


def test_what_is_for_labs_only_is_said_loudly_and_the_client_knows_the_own_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Mock()
    monkeypatch.setattr(hub, "CallbackClient", client)
    for said in ({}, {"allow_private": True, "ca_file": tmp_path}):
        assert caplog.records == []
        hub.Hub(settings(tmp_path, **said))
    given = {"allow_private": True, "own_host": "reviews.example"}
    client.assert_called_with(settings(tmp_path).user_agent, tmp_path, **given)
    assert caplog.messages == [
        "hub: PRIVATE ADDRESSES AND ALL PORTS ARE ALLOWED FOR CALLBACKS; for labs only",
        f"hub: certificates in {tmp_path} are trusted for callbacks; for labs only",
    ]


# ---- Scheduling --------------------------------------------------------------------------------------------


def exchange(lane: str, key: str, number: int = 0) -> hub.Exchange:
    """One that is due for a row of its own."""
    url = f"https://{key}/{number}"
    who = Subscriber(FEED, url, url, key, key, key, BASE_URL + FEED)
    return hub.Exchange(Subscription(number, who, None, 0.0, 0.0, ""), lane, key)


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


def test_a_fault_of_our_own_delays_a_minute_or_less_where_retries_are_quicker() -> None:
    assert [hub.own_fault_seconds((seconds, 3600.0)) for seconds in (5.0, 90.0)] == [5.0, 60.0]


@pytest.mark.parametrize(("workers", "limit"), [(1, 1), (7, 1), (8, 2), (16, 4), (64, 4)])
def test_one_network_has_a_quarter_of_the_workers_and_four_at_most(workers: int, limit: int) -> None:
    assert hub.max_workers_per_key(workers) == limit


def taken(
    due: list[hub.Exchange], running: Sequence[hub.Exchange] = (), workers: int = 16
) -> list[hub.Exchange]:
    """What a hub with so many workers starts, lane by lane as it does."""
    busy = list(running)
    for lane, limit in product(hub.LANES, (1, hub.max_workers_per_key(workers))):
        found = [one for one in due if one.lane == lane]
        while hub.has_free_worker(busy, lane, workers) and (one := hub.first_startable(found, busy, limit)):
            busy.append(one)
    return busy[len(running) :]


def test_due_exchanges_go_by_lane_and_one_of_each_key_before_the_second_of_any() -> None:
    many = [exchange("delivery", "many", n) for n in range(3)]
    due = [exchange("notice", "n"), exchange("retry", "r"), *many, exchange("delivery", "one")]
    due += [exchange("verification", "v"), exchange("renewal", "w")]
    order = [f"{one.limit_key}{one.row.id}" for one in taken(due)]
    assert order == ["w0", "v0", "many0", "one0", "many1", "many2", "r0", "n0"]


def test_a_key_with_a_worker_gets_the_next_after_those_without() -> None:
    """Or a network would get each worker that it gives back at once again."""
    many = [exchange("delivery", "many", n) for n in range(4)]
    started = taken([*many[2:], exchange("delivery", "one")], many[:2], workers=16)
    assert [one.limit_key for one in started] == ["one", "many", "many"]


def test_a_key_gets_four_workers_of_sixteen() -> None:
    due = [exchange("delivery", "slow", n) for n in range(40)] + [exchange("delivery", "quick")]
    started = taken(due)
    assert Counter(one.limit_key for one in started) == {"slow": 4, "quick": 1}
    assert taken(due, started) == []


def test_a_subscriber_has_one_exchange_at_a_time() -> None:
    delivery, verification = exchange("delivery", "s"), exchange("verification", "s")
    assert taken([verification], [delivery]) == []
    assert taken([verification, delivery]) == [verification]


def test_strangers_and_the_dead_leave_workers_to_the_living_and_to_each_other() -> None:
    lanes = ("renewal", "verification", "retry", "notice")
    dead = [exchange(lane, f"{lane}{n}") for n in range(20) for lane in lanes]
    living = [exchange("delivery", f"d{n}") for n in range(20)]
    assert len(taken(living)) == 16
    for workers, share in ((16, 2), (8, 1)):
        started = Counter(one.lane for one in taken(dead, workers=workers))
        expected = {"renewal": share, "verification": 3 * share, "retry": 2 * share, "notice": share}
        assert started == expected


@pytest.mark.parametrize("workers", [1, 2, 3, 16])
def test_every_exchange_gets_its_turn_with_any_number_of_workers(workers: int) -> None:
    left = [exchange(lane, f"h{n % 3}", n) for n, lane in enumerate(list(hub.LANES) * 5)]
    while left:
        started = taken(left, workers=workers)
        assert 0 < len(started) <= workers
        left = [one for one in left if one not in started]


def test_who_was_slow_or_waited_for_a_retry_is_in_the_lane_of_retries_until_it_is_quick(bench: Bench) -> None:
    def after(seconds: float, then: Answer = echo) -> Answer:
        def answer(request: CallbackRequest) -> CallbackResponse:
            bench.running_time.now += seconds
            return then(request)

        return answer

    def lanes(text: str, *requests: str) -> list[str]:
        for mode in requests:
            bench.post(form(mode))
        bench.publish(text)
        found = [one.lane for one in bench.hub.due()]
        bench.work()
        return found

    bench.subscribe()
    assert lanes("two") == ["delivery"]
    bench.on_post = after(2.0)
    assert lanes("two again") == ["delivery"]
    bench.on_get = after(2.1)
    assert lanes("two again", "subscribe") == ["renewal"]
    bench.on_get = echo
    assert lanes("three") == ["retry"]
    bench.on_post = after(2.1)
    assert lanes("four") == ["delivery"]
    bench.on_get, bench.on_post = status(404), status(204)
    assert lanes("four", "unsubscribe") == ["retry"]
    bench.wait(2)
    bench.on_post = after(2.1)
    assert lanes("five") == ["delivery"]
    bench.restart()
    bench.on_post = OUTAGE
    assert lanes("six") == ["retry"]
    bench.wait(60)
    bench.on_post = status(204)
    assert lanes("six", "subscribe") == ["retry"]
    bench.wait(60)
    assert lanes("seven", "subscribe") == ["renewal"]
    bench.on_get = after(2.1, SILENCE)
    bench.wait(60)
    assert lanes("seven", "subscribe") == ["renewal"]
    assert lanes("eight") == ["retry"]


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


def test_callbacks_of_a_wildcard_domain_that_confirm_and_hang_delay_nobody(lab: Lab, tmp_path: Path) -> None:
    def resolve(host: str) -> list[str]:
        return ["127.0.0.66"] if "wild" in host else apart(host)

    with running(lab, tmp_path, resolve=resolve, timeout=30.0) as subject:
        for number in range(150):
            lab.on("POST", f"/hang/{number}", hang)
            url = lab.url(f"/hang/{number}", f"wild{number}.lab.example")
            lab.wait(lambda url=url: subject.answer(FORM, form(callback=url)).status == 202)
        post(subject, form(callback=lab.url("/honest", "h.d1.example")))
        lab.wait(settled(subject, active=151, pending=0))
    with running(lab, tmp_path, "two", resolve, timeout=30.0):  # which has resolved no name yet
        lab.wait(lambda: lab.posts("/honest"))
        lab.wait(lambda: len(lab.posts()) == 1 + hub.MAX_WORKERS_PER_KEY)
        lab.released.set()


def test_names_that_turn_out_to_be_of_one_network_have_its_workers_together(lab: Lab, tmp_path: Path) -> None:
    def resolve(host: str) -> list[str]:
        return apart(host) if host.startswith("honest") else ["127.0.0.66"]

    with running(lab, tmp_path, resolve=resolve, timeout=60.0) as subject:
        for number in range(10):
            lab.on("GET", f"/{number}", hang)
            post(subject, form(callback=lab.url(f"/{number}", f"h.d{number}.example")))
        post(subject, form(callback=lab.url("/", "honest.d10.example")))
        lab.wait(settled(subject, active=1))
        lab.wait(lambda: len(lab.arrivals) == 1 + hub.MAX_WORKERS_PER_KEY)
        lab.released.set()


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
        assert hub_threads() == {"hub-scheduler", "hub-worker"}
        stopping = threading.Thread(target=subject.stop, args=(PATIENCE_SECONDS,))
        stopping.start()
        lab.wait(lambda: hub_threads() == {"hub-worker"})
        lab.released.set()
        stopping.join()
    lab.wait(lambda: not hub_threads())
    with running(lab, tmp_path, "two") as subject:
        post(subject, form(callback=lab.url("/other")))
        lab.wait(settled(subject, active=2, pending=0, behind=0))
    assert len(lab.posts()) == 1


def test_stop_does_not_wait_longer_than_it_is_told(lab: Lab, tmp_path: Path) -> None:
    lab.on("GET", "/cb", hang, agree)
    with running(lab, tmp_path, timeout=60.0) as subject:
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(lab.gets)
        subject.stop(0)
        assert not lab.released.is_set()  # the callback hangs still
        lab.released.set()
    with running(lab, tmp_path) as subject:
        lab.wait(settled(subject, active=1, pending=0))


def test_stop_begins_nothing_new(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "POLL_SECONDS", 600.0)
    clock, sent = Clock(), list[CallbackRequest]()

    def send(request: CallbackRequest, _: object) -> CallbackResponse:
        sent.append(request)
        return echo(request) if request.method == "GET" else CallbackResponse(500, "HTTP 500")

    subject = hub.Hub(settings(tmp_path), clock=clock, send=send)
    subject.publish(topics())
    subject.start()
    post(subject, form())
    lab.wait(settled(subject, active=1))
    subject.publish(topics("two"))
    lab.wait(settled(subject, failing=1))
    clock.now += DAY  # the next attempt is due, but nobody has looked
    subject.stop(10)
    assert (len(sent), hub_threads()) == (2, set())


def test_the_scheduler_survives_whatever_happens(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(exchange: hub.Exchange) -> None:
        failed.append(exchange.row)
        subject.publish(topics("two"))  # so that the hub looks at once for what is due
        raise MemoryError

    failed: list[Row] = []
    with running(lab, tmp_path, retry_delays=(1.0, 1.0)) as subject:
        with monkeypatch.context() as patch:
            broken = Mock(side_effect=StoreFault("broken"))
            patch.setattr(Store, "reading", broken)
            lab.wait(lambda: broken.call_count > 2)
            assert "unexpected" not in caplog.text
            patch.setattr(subject, "due", lambda: 1 / 0)
            subject.publish(topics())
            lab.wait(lambda: "the hub's scheduler met an unexpected error and goes on" in caplog.messages)
        for path in ("/cb", "/other"):
            post(subject, form(callback=lab.url(path)))
        lab.wait(settled(subject, active=2))
        with monkeypatch.context() as patch:
            patch.setattr(subject, "perform", fail)
            subject.publish(topics("two"))
            lab.wait(lambda: caplog.messages.count("a job of the hub failed unexpectedly") > 1)
            assert len(failed) == 2  # none was due again at once
        lab.wait(settled(subject, behind=0))
