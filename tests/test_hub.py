"""The hub in memory with a clock to turn, then with its threads and real HTTPS callbacks on 127.0.0.1.

Requests - Limits - Verification - Delivery - Faults of our own - Leases, topics and trouble - Turns - Threads
"""

from __future__ import annotations

import hmac
import logging
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hub_lab import (
    BASE_URL,
    FEED,
    FORM,
    JSON_FEED,
    PATIENCE_SECONDS,
    Answer,
    Bench,
    Lab,
    agree_late,
    echo,
    form,
    hang,
    open_lab,
    post,
    query,
    running,
    settings,
    settled,
    started,
    status,
    topics,
)

import hub
from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse
from reviewslib.websub.store import STORE_FILE_NAME, DueRow, Store, remove_subscriptions
from reviewslib.websub.values import HubAnswer, selector

DAY = 86400.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "new" / "state")
    yield made
    made.hub.stop(1)


SILENCE = status(None)
OUTAGE = status(None, own_fault=True)


def signature(sent: CallbackRequest) -> str | None:
    return sent.headers.get("X-Hub-Signature")


def signed(secret: str, text: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()


# ---- Requests ----------------------------------------------------------------------------------------------


def test_any_2xx_verifies_a_request_whose_topic_is_repeated_as_sent(bench: Bench) -> None:
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
def test_unusual_but_valid_requests_are_accepted(bench: Bench, body: bytes) -> None:
    bench.subscribe()
    assert bench.post(body, "Application/X-WWW-Form-Urlencoded; charset=UTF-8").status == 202


@pytest.mark.parametrize(
    ("asked", "granted"),
    [(None, 864000), ("1", 3600), ("7200", 7200), ("2592001", 2592000), ("9" * 30, 2592000)],
)
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


def asked_hosts(bench: Bench) -> list[str]:
    """The hosts of strangers, in the order in which they would be asked."""
    bench.hub.look()
    return [one.domain for one in iter(lambda: bench.hub.take("newcomer"), None)]


def test_no_request_of_a_domain_is_refused_and_its_newest_fifty_wait(bench: Bench) -> None:
    for number in range(60):
        assert bench.post(form(callback=f"https://h{number}.many.example/")).status == 202
    assert bench.hosts("subscribe") == sorted(f"h{number}.many.example" for number in range(10, 60))
    assert bench.post(form(callback="https://h59.many.example/", secret="new")).status == 202
    assert len(bench.hosts("subscribe")) == 50


def test_a_full_table_evicts_from_the_domain_with_the_most_requests(bench: Bench) -> None:
    for number in range(1000):
        bench.post(form(callback=f"https://h{number}.d{number % 20}.example/"))
    for number in range(20):
        assert bench.post(form(callback=f"https://new{number}.example/")).status == 202
    assert len(bench.hosts("subscribe")) == 1000
    waiting = Counter(host.partition(".")[2] for host in bench.hosts("subscribe"))
    assert {waiting[f"d{number}.example"] for number in range(20)} == {49}


def test_a_full_table_of_single_domains_evicts_only_failed_requests(bench: Bench) -> None:
    bench.on_get = SILENCE
    bench.post(form(callback="https://away.example/"))
    bench.work()
    for number in range(999):
        bench.post(form(callback=f"https://h{number}.example/"))
    answers = [bench.post(form(callback=f"https://new{number}.example/")) for number in range(2)]
    assert answers[0].status == 202
    refusal = "there are too many unverified requests; try again later"
    assert answers[1] == HubAnswer(503, refusal, (("Retry-After", "60"),))
    assert "away.example" not in bench.hosts("subscribe")
    assert bench.post(form(callback="https://h5.example/", secret="new")).status == 202


def test_domains_take_turns_and_their_newest_requests_come_first(bench: Bench) -> None:
    bench.on_get = status(404)
    for name in ("a1.a", "a2.a", "b1.b", "a3.a", "b2.b", "c1.c"):
        bench.post(form(callback=f"https://{name}.example/"))
    bench.work()
    order = [sent.url.split("/")[2].split(".")[0] for sent in bench.sent]
    assert order == ["a3", "b2", "c1", "a2", "b1", "a1"]
    for name in ("a4.a", "d1.d"):
        bench.post(form(callback=f"https://{name}.example/"))
    assert asked_hosts(bench) == ["d.example", "a.example"]  # which was asked three times in this minute


def test_a_network_gets_fifty_connections_of_strangers_a_minute(bench: Bench) -> None:
    names = [f"n{number}.example" for number in range(100)]
    bench.networks = dict.fromkeys(names, "203.0.113.7")
    bench.on_get = status(404)
    for name in names:
        assert bench.post(form(callback=f"https://{name}/")).status == 202
    bench.work()
    assert len(bench.sent) == 50
    assert bench.post(form(callback=f"https://{names[0]}/")).status == 202
    bench.wait(19)
    bench.wait(40)
    assert len(bench.sent) == 50
    bench.wait(20)
    assert len(bench.sent) == 100


def test_only_the_network_that_confirmed_forgets_a_connection(
    bench: Bench,
) -> None:
    bench.networks = {f"n{number}.example": "203.0.113.7" for number in range(60)}
    for name in bench.networks:
        bench.subscribe(callback=f"https://{name}/")
    assert len(bench.hosts()) == 60
    bench.tried_first = ["198.51.100.9"]
    for number in range(60):
        bench.post(form(callback=f"https://m{number}.example/"))
    bench.work()
    assert len(bench.hosts()) == 60 + 50


def test_requests_of_strangers_at_its_address_delay_no_subscriber(bench: Bench) -> None:
    bench.subscribe()
    bench.networks = {"s.example": "203.0.113.7"}  # the callback has moved
    bench.networks |= {f"n{number}.example": "203.0.113.7" for number in range(60)}
    bench.on_get = status(404)
    for number in range(60):
        bench.post(form(callback=f"https://n{number}.example/"))
    bench.work()
    bench.on_get = echo
    for number in range(60):
        bench.change(str(number))
    bench.subscribe(secret="renewed")
    assert len(bench.contents) == 60
    assert bench.subscription().secret == b"renewed"


def test_strangers_at_its_address_take_no_worker_of_a_subscriber(bench: Bench) -> None:
    names = [f"n{number}.example" for number in range(6)]
    bench.networks = dict.fromkeys(["s.example", *names], "203.0.113.7")
    bench.subscribe()
    meanwhile: list[int] = []

    def hang_while_content_is_delivered(request: CallbackRequest) -> CallbackResponse:
        if not meanwhile:  # the first of the strangers, all of whom have begun
            bench.publish("two")
            bench.hub.look()
            meanwhile.append(len(bench.posts))
            delivery = bench.hub.take("delivery")
            assert delivery
            bench.hub.perform(delivery)
            meanwhile.append(len(bench.posts))
        return CallbackResponse(404, "HTTP 404")

    bench.on_get = hang_while_content_is_delivered
    for name in names:
        bench.post(form(callback=f"https://{name}/"))
    bench.work()
    assert meanwhile == [0, 1]


@pytest.mark.parametrize("whose", ["domain", "address"])
def test_a_domain_or_address_may_have_and_renew_a_tenth_of_all(
    bench: Bench, caplog: pytest.LogCaptureFixture, whose: str
) -> None:
    caplog.set_level(logging.INFO)
    bench.settings = settings(bench.settings.state_dir, max_subscriptions=29)
    bench.restart()
    names = [f"{name}.example" if whose == "address" else f"{name}.s.example" for name in "abc"]
    bench.networks = dict.fromkeys(names, "192.0.2.1") if whose == "address" else {}
    answers = []
    for name in names:
        answers.append(bench.post(form(callback=f"https://{name}/")))
        bench.work()
    told = [asked["hub.reason"] for asked in bench.gets if asked["hub.mode"] == "denied"]
    too_many = f"there are too many subscriptions of this {whose}"
    if whose == "address":  # which nobody knows until it is asked
        assert told == [too_many]
        assert (
            f"hub /feed.xml c.example: subscribe confirmed: HTTP 200, denied: {too_many[10:]}" in caplog.text
        )
    else:
        assert answers[2] == HubAnswer(429, f"{too_many}; try again later", (("Retry-After", "3600"),))
    bench.subscribe(callback=f"https://{names[0]}/")
    assert bench.hosts() == names[:2]


def test_the_total_of_subscriptions_is_bounded(bench: Bench) -> None:
    bench.settings = settings(bench.settings.state_dir, max_subscriptions=3)
    bench.restart()
    for name in "abc":
        bench.subscribe(callback=f"https://{name}.example/")
    refusal = "there are too many subscriptions; try again later"
    refused = bench.post(form(callback="https://d.example/"))
    assert refused == HubAnswer(503, refusal, (("Retry-After", "3600"),))


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
    + [(code, "{}") for code in (404, 500, 302)],
)
def test_only_the_whole_challenge_with_2xx_changes_anything(
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


def test_a_confirmation_of_the_older_request_still_counts(
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
        assert bench.subscription().expires_at == bench.clock.now + bench.settings.lease_seconds
    assert len(bench.gets) == 4
    bench.change()
    assert [signature(sent) for sent in bench.posts] == [signed("mine", "two")]


def test_a_request_during_a_confirmation_is_one_of_a_subscriber(bench: Bench) -> None:
    def ask_meanwhile(request: CallbackRequest) -> CallbackResponse:
        bench.on_get = SILENCE
        bench.post(form(secret="newer"))
        return echo(request)

    bench.on_get = ask_meanwhile
    bench.subscribe()
    bench.wait(60)
    bench.hub.look()
    assert (bench.hub.take("newcomer"), bench.states()) == (None, [("active", 0), ("subscribe", 0)])


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
    assert [signature(sent) for sent in bench.posts] == [signed("renewed", "two")]


def test_spellings_of_a_callback_are_one_subscription(bench: Bench) -> None:
    bench.subscribe(callback="https://s.example/%7Eann/%2f")
    bench.subscribe(callback="https://S.EXAMPLE/~ann/%2f")
    bench.change()
    assert [sent.url for sent in bench.posts] == ["https://S.EXAMPLE/~ann/%2f"]


@pytest.mark.parametrize(("is_subscriber", "pause"), [(False, 30), (True, 60)])
@pytest.mark.parametrize("silence", [SILENCE, status(None, is_refused=True)])
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


def test_a_stranger_is_dropped_two_minutes_after_its_first_attempt(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.on_get = SILENCE
    bench.post(form())
    bench.work()
    bench.clock.now += 119
    bench.hub.upkeep()
    assert bench.states() == [("subscribe", 0)]
    bench.clock.now += 1
    bench.hub.upkeep()
    assert bench.states() == []
    assert caplog.messages[-1] == "hub /feed.xml s.example: subscribe not confirmed: no answer in time"


def test_a_notice_is_tried_once(bench: Bench) -> None:
    bench.subscribe()
    bench.on_get = SILENCE
    remove_subscriptions(bench.settings.state_dir, selector("s.example"), clock=bench.clock)
    bench.work()
    assert (bench.states(), bench.gets[-1]["hub.mode"]) == ([], "denied")


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
    line = f"hub /feed.xml s.example: content {topics('two')[FEED].digest[:12]} gone, removed: HTTP 410"
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


# ---- Turns -------------------------------------------------------------------------------------------------


def row(lane: str, domain: str, number: int = 0, network: str | None = None) -> DueRow:
    return DueRow(lane, number, f"{lane} {domain} {number}", f"{domain}.example", network)


def begun(schedule: hub.Schedule, lane: str) -> list[str]:
    """The keys of what a lane begins until nothing is left that may."""
    return [one.key for one in iter(lambda: schedule.take(lane), None)]


@pytest.mark.parametrize(("workers", "limit"), [(1, 1), (7, 1), (8, 2), (16, 4), (64, 4)])
def test_a_domain_or_network_has_at_most_four_workers_of_a_lane(workers: int, limit: int) -> None:
    for rows in (
        [row("delivery", "slow", number) for number in range(20)],
        [row("delivery", f"d{number}", number, "192.0.2.1") for number in range(20)],
    ):
        schedule = hub.Schedule(workers)
        schedule.refill([*rows, row("delivery", "quick")])
        assert begun(schedule, "delivery") == [*(one.key for one in rows[:limit]), "delivery quick 0"]


@pytest.mark.parametrize(("workers", "expected"), [(1, 1), (8, 1), (16, 3), (64, 4)])
def test_strangers_of_a_domain_have_at_most_half_of_their_lane(workers: int, expected: int) -> None:
    schedule = hub.Schedule(workers)
    schedule.refill(row("newcomer", "d", number) for number in range(20))
    assert len(begun(schedule, "newcomer")) == expected


def test_several_names_of_one_network_share_its_workers() -> None:
    schedule = hub.Schedule(16)
    schedule.refill(row("newcomer", f"d{number}", number) for number in range(5))
    taken = [schedule.take("newcomer") for _ in range(5)]
    assert [schedule.assign_network(one, "192.0.2.1") for one in taken if one] == [True] * 3 + [False] * 2


def test_a_subscriber_has_one_exchange_at_a_time() -> None:
    schedule = hub.Schedule(16)
    delivery, renewal = row("delivery", "s"), row("renewal", "s")._replace(key="delivery s 0")
    schedule.refill([delivery, renewal])
    assert schedule.take("delivery") == delivery
    assert schedule.take("renewal") is None
    schedule.finish(delivery)
    assert schedule.take("renewal") == renewal


def takes(bench: Bench, seconds: Callable[[str], float], then: Answer = echo) -> Answer:
    """A callback that answers after so many seconds, by its host."""

    def answer(request: CallbackRequest) -> CallbackResponse:
        bench.running_time.now += seconds(request.url.split("/")[2])
        return then(request)

    return answer


def test_slow_subscribers_never_stand_before_quick_ones(bench: Bench) -> None:
    slow_hosts = [f"h{number}.slow{number % 20}.example" for number in range(200)]
    bench.on_get = takes(bench, lambda host: 1.9 if "slow" in host else 0.1)
    for host in [*slow_hosts, "quick.example"]:
        bench.subscribe(callback=f"https://{host}/")
    bench.publish("two")
    bench.hub.look()
    first = bench.hub.take("delivery")
    assert first and first.domain == "quick.example"
    for host in [*slow_hosts, "quick.example"]:
        bench.post(form(callback=f"https://{host}/", secret="new"))
    bench.restart()
    bench.hub.look()
    first = bench.hub.take("renewal")
    assert first and first.domain == "quick.example"


def test_subscriptions_of_a_domain_take_turns_with_others(bench: Bench) -> None:
    for number in range(20):
        bench.subscribe(callback=f"https://h{number}.many.example/")
    bench.subscribe(callback="https://other.example/")
    bench.publish("two")
    bench.hub.look()
    first = [bench.hub.take("delivery") for _ in range(2)]
    assert {one.domain for one in first if one} == {"many.example", "other.example"}


@pytest.mark.parametrize(("seconds", "lane"), [(2.0, "delivery"), (2.1, "retry")])
@pytest.mark.parametrize("by", ["delivery", "renewal"])
def test_a_callback_slower_than_two_seconds_moves_to_retries(
    bench: Bench, seconds: float, lane: str, by: str
) -> None:
    bench.subscribe()
    bench.on_get = bench.on_post = takes(bench, lambda _: seconds)
    if by == "delivery":
        bench.change("two")
    else:
        bench.subscribe()
    bench.publish("three")
    (due,) = started(bench.hub)
    assert due.lane == lane
    bench.on_post = status(204)
    bench.hub.perform(due)
    bench.publish("four")
    assert [one.lane for one in started(bench.hub)] == ["delivery"]


def test_a_failed_delivery_moves_to_retries(bench: Bench) -> None:
    bench.subscribe()
    bench.on_post = status(500)
    bench.change()
    bench.clock.now += 100
    assert [one.lane for one in started(bench.hub)] == ["retry"]


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
