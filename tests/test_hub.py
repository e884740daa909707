"""The hub confirms, delivers, tries again and forgets as its document says, to the second.

In memory, with a clock that a test sets. The model of `test_hub_machine.py` knows no
texts, moments, turns and bugs.

Sections: stories - requests - verification - turns - places - delivery - outages -
leases, topics and trouble.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lab.hub_lab import OUTAGE, SILENCE, Answer, Bench, echo, echoing, status
from lab.hub_values import JSON_FEED, form, query, signed

from reviewslib.websub.callback_messages import CallbackRequest, CallbackResponse
from reviewslib.websub.callback_urls import selector
from reviewslib.websub.forms import HubAnswer
from reviewslib.websub.rows import Row
from reviewslib.websub.store import STORE_FILE_NAME, remove_subscriptions

REFUSED = status(None, is_refused=True)
TWO = hashlib.sha256(b"two").hexdigest()[:12]


def bug(_: CallbackRequest) -> CallbackResponse:
    raise RuntimeError("a bug of the client")


def nonsense(_: CallbackRequest) -> Any:
    """What the hub cannot handle, after it has sent a request."""
    return replace(SILENCE(_), status="nonsense")  # type: ignore[arg-type]


@pytest.fixture
def served(bench: Bench) -> Bench:
    """A hub with one subscriber."""
    bench.subscribe()
    return bench


def remove(bench: Bench) -> None:
    """The operator removes the subscriber."""
    remove_subscriptions(
        bench.settings.state_dir, selector("s.example"), clock=bench.clock
    )


def meanwhile(act: Callable[[], object], answer: Answer) -> Answer:
    """A callback that answers after something else has happened."""
    return lambda request: (act(), answer(request))[1]


def store_path(bench: Bench) -> Path:
    return bench.settings.state_dir / STORE_FILE_NAME


def insert(bench: Bench, *rows: Row) -> None:
    """Write rows into the store, as nobody else does."""
    with closing(sqlite3.connect(store_path(bench))) as store, store:
        store.executemany(
            f"INSERT INTO hub_row VALUES ({', '.join('?' * len(Row._fields))})", rows
        )


# ---- Stories: events, how callbacks answer meanwhile, and what is logged or asked by G

Step = tuple[
    str | int, Answer, list[str]
]  # a request of a mode, new content, or seconds that pass
ASKED = ["subscribe requested", "GET subscribe"]
CONFIRMED = [*ASKED, "subscribe confirmed: HTTP 200"]
FAILED = [f"delivery failed, {number} of 3: HTTP 500" for number in (1, 2)]
REASON = "3 deliveries in a row failed; subscribe again to resume"
REMOVED = [
    "delivery failed, 3 of 3, removed: HTTP 500",
    f"GET denied {REASON}",
    "denied notice: HTTP 500",
]
UNHEARD = [*REMOVED[:2], "denied notice: not reachable"]


def silent_to_notices(request: CallbackRequest) -> CallbackResponse:
    return (SILENCE if request.method == "GET" else status(500))(request)


LIFE: list[Step] = [
    ("subscribe", status(404), [*ASKED, "subscribe not confirmed: HTTP 404"]),
    ("subscribe", status(200), [*ASKED, "subscribe not confirmed: HTTP 200"]),
    ("subscribe", echo, CONFIRMED),
    (
        "unsubscribe",
        echo,
        ["unsubscribe requested", "GET unsubscribe", "unsubscribe confirmed: HTTP 200"],
    ),
    ("subscribe", echo, CONFIRMED),
    ("two", status(204), ["content two delivered: HTTP 204"]),
    ("three", status(500), FAILED[:1]),
    (66, OUTAGE, ["delivery postponed: not reachable"]),
    (60, status(500), FAILED[1:]),
    (3960, status(500), REMOVED),
    ("subscribe", echo, CONFIRMED),
    ("two", status(410), ["content two refused, removed: HTTP 410"]),
    ("subscribe", echo, CONFIRMED),
    (864000, echo, ["lease ended"]),
]
BACKOFF: list[Step] = [
    ("subscribe", echo, CONFIRMED),
    ("two", status(500), FAILED[:1]),
    (65, status(500), []),
    (1, status(500), FAILED[1:]),
    ("three", status(500), []),
    (3959, status(500), []),
    (1, silent_to_notices, UNHEARD),
    (86400, echo, []),
]
POSTPONED = ["GET subscribe", "subscribe postponed: not reachable"]
A_DAY_WITHOUT_NETWORK: list[Step] = [
    ("subscribe", OUTAGE, ["subscribe requested", *POSTPONED]),
    *[(3600, OUTAGE, POSTPONED)] * 23,
    (3599, OUTAGE, POSTPONED),
    (1, OUTAGE, ["subscribe not confirmed: no answer in time"]),
]
DELIVERED = ["content two delivered: HTTP 200"]


class Fault(NamedTuple):
    """A callback without a status, the outcome, and what is logged besides."""

    answer: Answer
    outcome: str
    errors: list[str]


OUT = Fault(OUTAGE, "not reachable", [])
BUG = Fault(bug, "unexpected error", ["unexpected error"])
NONSENSE = Fault(nonsense, "unexpected error", ["unexpected error"])


def tried_three_times(answer: Answer) -> list[Step]:
    """A newcomer that gives no HTTP answer is asked three times, a minute apart."""
    asked = ["GET subscribe"]
    unanswered = [f"subscribe unanswered, {n} of 3: not reachable" for n in (1, 2)]
    return [
        ("subscribe", answer, ["subscribe requested", *asked, unanswered[0]]),
        (59, answer, []),
        (1, answer, [*asked, unanswered[1]]),
        (59, answer, []),
        (1, answer, [*asked, "subscribe not confirmed: not reachable"]),
        (3600, answer, []),
    ]


def not_counted(fault: Fault) -> list[Step]:
    """What is not the callback's fault is tried each minute, as often as it takes."""
    asked = ["GET subscribe", *fault.errors, f"subscribe postponed: {fault.outcome}"]
    postponed = [*fault.errors, f"delivery postponed: {fault.outcome}"]
    return [
        ("subscribe", echo, CONFIRMED),
        ("subscribe", fault.answer, ["subscribe requested", *asked]),
        *[(60, fault.answer, asked)] * 3,
        (59, echo, []),
        (1, echo, CONFIRMED[1:]),
        ("two", fault.answer, postponed),
        *[(60, fault.answer, postponed)] * 3,
        (59, echo, []),
        (1, echo, DELIVERED),
    ]


def clock_set_back(seconds: int) -> list[Step]:
    """What was to be tried later is tried at once."""
    return [*BACKOFF[:2], (-seconds, echo, DELIVERED)]


def retry_after(value: str, seconds: int) -> list[Step]:
    return [
        ("subscribe", echo, CONFIRMED),
        ("two", status(503, retry_after=value), ["delivery failed, 1 of 3: HTTP 503"]),
        (seconds - 1, echo, []),
        (1, echo, DELIVERED),
    ]


STORIES = [
    pytest.param(LIFE, id="a life"),
    pytest.param(BACKOFF, id="three failures"),
    pytest.param(A_DAY_WITHOUT_NETWORK, id="a day without a network"),
    pytest.param(clock_set_back(4400), id="a clock set back by an hour"),
    pytest.param(clock_set_back(864_000), id="a clock set back by days"),
    pytest.param(tried_three_times(SILENCE), id="a silent newcomer"),
    pytest.param(tried_three_times(REFUSED), id="a newcomer that is down"),
    pytest.param(not_counted(OUT), id="no network"),
    pytest.param(not_counted(BUG), id="a bug of the client"),
    pytest.param(not_counted(NONSENSE), id="a bug after the sending"),
    pytest.param(retry_after("120", 120), id="a later retry is asked for"),
    pytest.param(retry_after("9" * 5000, 3600), id="a retry that never comes"),
    pytest.param(retry_after("1", 66), id="an earlier retry is asked for"),
]


@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_told_and_its_log_has_no_callback(
    bench: Bench, caplog: pytest.LogCaptureFixture, story: list[Step]
) -> None:
    def seen(request: CallbackRequest) -> CallbackResponse:
        if request.method == "GET":
            asked = query(request.url)
            logging.getLogger("hub").info(
                " ".join(["GET", asked["hub.mode"], asked.get("hub.reason", "")])
            )
        return answer(request)

    caplog.set_level(logging.INFO)
    bench.jitter = 0.5
    bench.on_get = seen
    bench.on_post = seen
    fields = {"callback": "https://s.example:8443/secret-path?key=1", "secret": "hush"}
    for event, answer, expected in story:  # noqa: B007 - `seen` uses the answer
        caplog.clear()
        if isinstance(event, int):
            bench.wait(event)
        elif event.endswith("subscribe"):
            bench.subscribe(mode=event, **fields)
        else:
            bench.change(event)
        lines = [
            line.removeprefix("hub /feed.xml s.example: ").strip()
            for line in caplog.messages
        ]
        assert lines == [
            line.replace("content two", f"content {TWO}") for line in expected
        ]
        warnings = [
            one.getMessage() for one in caplog.records if one.levelname == "WARNING"
        ]
        assert warnings == [line for line in caplog.messages if "removed" in line]


# ---- Requests ------------------------------------------------------------------------

ACCEPTED = "accepted; the callback will now be asked to confirm"
ADDRESS = "hub.callback has an IP address as its host; a host name is needed"
LEASE = "hub.lease_seconds must be a positive whole number of seconds"
TOPICS = "https://reviews.example/feed.xml", "https://reviews.example/api/feed.json"
NOT_A_TOPIC = "hub.topic is not a topic of this hub; its topics are " + ", ".join(
    TOPICS
)
NOT_SUBSCRIBED = "hub.callback has no active subscription to hub.topic"


NOT_UTF_8 = "the form is not UTF-8"
SECRET = "hub.secret must have 1 to 199 bytes"
MISSING = "hub.mode is missing; hub.callback is missing; hub.topic is missing"
LARGEST = (form() + b"&x=").ljust(16384, b"y")
TOPIC = b"https%3A%2F%2Freviews.example"
OF_A_STRANGER = form("unsubscribe", "https://t.example/")
SHOUTED = form().replace(TOPIC, b"HTTPS%3A%2F%2FREVIEWS.example")

REFUSALS = [
    pytest.param(b"", 400, MISSING, id="nothing"),
    pytest.param(
        form() + b"&hub.mode=subscribe", 400, "hub.mode is given 2 times", id="2 modes"
    ),
    pytest.param(
        form(secret="a") + b"&hub.secret=b",
        400,
        "hub.secret is given 2 times",
        id="2 secrets",
    ),
    pytest.param(
        form("publish"), 400, "hub.mode must be subscribe or unsubscribe", id="publish"
    ),
    pytest.param(form(callback="https://127.0.0.1/"), 400, ADDRESS, id="an address"),
    pytest.param(form(secret=""), 400, SECRET, id="an empty secret"),
    pytest.param(form(secret="é" * 100), 400, SECRET, id="200 bytes of secret"),
    pytest.param(form() + b"&x=%ff", 400, NOT_UTF_8, id="an escape of no UTF-8"),
    pytest.param(form() + b"&x=\xff", 400, NOT_UTF_8, id="a byte of no UTF-8"),
    pytest.param(form() + b"&x=%ed%a0%80", 400, NOT_UTF_8, id="a surrogate"),
    pytest.param(form(lease_seconds=""), 400, LEASE, id="an empty lease"),
    pytest.param(form(lease_seconds="0"), 400, LEASE, id="lease 0"),
    pytest.param(form(lease_seconds="000"), 400, LEASE, id="lease 000"),
    pytest.param(form(lease_seconds="-5"), 400, LEASE, id="lease -5"),
    pytest.param(form(lease_seconds="+5"), 400, LEASE, id="lease +5"),
    pytest.param(form(lease_seconds="1e3"), 400, LEASE, id="lease 1e3"),
    pytest.param(form(lease_seconds="٣"), 400, LEASE, id="lease of another script"),
    pytest.param(
        LARGEST + b"y", 413, "the form is larger than 16384 bytes", id="too large"
    ),
    pytest.param(form(path="/FEED.XML"), 404, NOT_A_TOPIC, id="a path in capitals"),
    pytest.param(
        form().replace(b"reviews.example", b"other.example"),
        404,
        NOT_A_TOPIC,
        id="a topic of another host",
    ),
    pytest.param(form().replace(TOPIC, b""), 404, NOT_A_TOPIC, id="a path as topic"),
    pytest.param(OF_A_STRANGER, 404, NOT_SUBSCRIBED, id="not subscribed"),
    pytest.param(
        form("unsubscribe", path="/nothing"), 404, NOT_SUBSCRIBED, id="topic is gone"
    ),
]


@pytest.mark.parametrize(("body", "code", "says"), REFUSALS)
def test_a_refusal_says_in_one_line_what_is_wrong(
    served: Bench, body: bytes, code: int, says: str
) -> None:
    # given a hub with a subscriber, when a form is wrong
    answer = served.post(body)
    served.work()

    # then it says why, and asks nobody
    assert answer == HubAnswer(code, says)
    assert len(served.gets) == 1


ACCEPTABLE = [
    pytest.param(
        # websub.rocks, test 102
        form() + b"&foo=bar&hub.foo=hub.bar&foo=baz",
        id="fields that mean nothing",
    ),
    pytest.param(LARGEST, id="the largest form"),
    pytest.param(form(secret="é" * 99 + "x"), id="the longest secret"),
    pytest.param(form(lease_seconds="9" * 9999), id="a lease beyond all bounds"),
    pytest.param(SHOUTED, id="scheme and host in capitals"),
    pytest.param(
        form("unsubscribe", lease_seconds="abc", secret="x" * 500),
        id="a lease and a secret that unsubscribing ignores",
    ),
]


@pytest.mark.parametrize("body", ACCEPTABLE)
def test_an_accepted_form_waits_for_no_callback(served: Bench, body: bytes) -> None:
    # given a hub with a subscriber, when a form is right
    answer = served.post(body, "Application/X-WWW-Form-Urlencoded; charset=UTF-8")
    asked_before_the_answer = len(served.gets) - 1
    served.work()

    # then the callback is asked after the answer
    assert answer == HubAnswer(202, ACCEPTED)
    assert asked_before_the_answer == 0
    assert len(served.gets) == 2


@pytest.mark.parametrize("content_type", [None, "application/json"])
def test_a_body_that_is_not_a_form_is_refused(
    bench: Bench, content_type: str | None
) -> None:
    refusal = HubAnswer(415, "Content-Type must be application/x-www-form-urlencoded")
    assert bench.post(form(), content_type) == refusal


LEASES = [
    pytest.param({}, 864_000, id="none"),
    pytest.param({"lease_seconds": "1"}, 3600, id="too short"),
    pytest.param({"lease_seconds": "7200"}, 7200, id="as wanted"),
    pytest.param({"lease_seconds": "2592001"}, 2_592_000, id="too long"),
    pytest.param({"lease_seconds": "9" * 30}, 2_592_000, id="far too long"),
]


@pytest.mark.parametrize(("fields", "granted"), LEASES)
def test_a_lease_is_clamped_and_told(
    bench: Bench, fields: dict[str, str], granted: int
) -> None:
    # given a request with a lease, or without one
    bench.subscribe(**fields)

    # when it is verified, then the challenge says what is granted
    assert bench.gets[0]["hub.lease_seconds"] == str(granted)
    assert bench.subscription().expires_at == bench.clock.now + granted


def test_an_accepted_form_survives_a_power_cut(
    commits: list[str], bench: Bench
) -> None:
    # given a hub, when it accepts a form
    assert bench.post(form()).status == 202

    # then it has waited for the disk
    assert commits == ["for the disk"]


@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
def test_a_repeated_request_waits_once(served: Bench, mode: str) -> None:
    # given a subscriber, and a request

    # when it is repeated, and then differs
    for secret in ("a", "a", "b"):
        assert served.post(form(mode, secret=secret)).status == 202

    # then equal ones wait once; a secret means nothing to an unsubscription
    expected = {"subscribe": [b"a", b"b"], "unsubscribe": [None]}
    assert [row.secret for row in served.rows(mode)] == expected[mode]


def test_of_more_than_a_thousand_requests_the_oldest_go(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    # given a thousand requests
    caplog.set_level(logging.INFO)
    bench.ask("first")
    (first,) = bench.rows("subscribe")
    insert(bench, *(first._replace(id=n, callback_key=f"{n}") for n in range(2, 1001)))

    # when one more is accepted
    assert bench.ask("newer") == {202}

    # then the oldest one is gone
    assert len(bench.rows("subscribe")) == 1000
    assert caplog.messages[-1] == (
        "hub /feed.xml first.example: subscribe dropped: too many wait"
    )


# ---- Verification --------------------------------------------------------------------


QUERIES = [
    pytest.param("https://s.example", "?", id="no path"),
    pytest.param("https://s.example/cb?", "", id="an empty query"),
    pytest.param("https://s.example/cb?a=b&", "", id="a query that goes on"),
    pytest.param("https://s.example/cb?a=%20b+c&hub.mode=mine&bare", "&", id="a query"),
]


@pytest.mark.parametrize(("callback", "joint"), QUERIES)
def test_callback_and_topic_are_used_as_they_were_sent(
    bench: Bench, callback: str, joint: str
) -> None:
    # given a subscriber that writes both in its own way
    body = form(callback=callback).replace(b"feed.xml", b"%2566eed.xml")
    bench.post(body)

    # when it is asked and served
    bench.work()
    bench.change()
    asked, sent = bench.sent

    # then it gets them back to the letter
    topic_url = "https%3A%2F%2Freviews.example%2F%2566eed.xml"
    assert asked.url.startswith(
        f"{callback}{joint}hub.mode=subscribe&hub.topic={topic_url}&hub.challenge="
    )
    assert sent.url == callback


def test_the_hub_may_be_written_in_capitals(bench: Bench) -> None:
    # given an operator who writes the host of the service so
    bench.restart(base_url="https://Reviews.Example")

    # when somebody subscribes with the host in small letters
    answer = bench.post(form())

    # then it is the same topic
    assert answer.status == 202


def test_a_renewal_may_write_the_callback_otherwise(bench: Bench) -> None:
    # given a subscriber, when it renews with another spelling of its callback
    bench.subscribe()
    bench.post(form(callback="https://S.example/c%62"))
    bench.work()
    bench.change()

    # then it is the same subscription, which is served as it was written last
    assert bench.hosts() == ["s.example"]
    assert [sent.url for sent in bench.posts] == ["https://S.example/c%62"]


def test_a_challenge_has_half_of_the_time_of_a_delivery(bench: Bench) -> None:
    # given a subscriber
    bench.subscribe()

    # when it is served
    bench.change()

    # then each exchange had its deadline
    assert [sent.timeout_seconds for sent in bench.sent] == [5.0, 10.0]


def test_challenges_are_random_and_safe_in_a_url(bench: Bench) -> None:
    # given five verifications
    for _ in range(5):
        bench.subscribe()

    # when their challenges are compared, then no two are equal, and none is markup
    challenges = {asked["hub.challenge"] for asked in bench.gets}
    assert len(challenges) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", one) for one in challenges)


NOT_CONFIRMED = [
    pytest.param(200, "{}\n", id="with a line end"),
    pytest.param(200, " {}", id="with a space"),
    pytest.param(200, "{}{}", id="twice"),
    pytest.param(200, "<p>{}</p>", id="in a page"),
    pytest.param(200, "", id="nothing"),
    pytest.param(204, "", id="no content"),
    pytest.param(404, "{}", id="404"),
    pytest.param(500, "{}", id="500"),
    pytest.param(302, "{}", id="302"),
]


@pytest.mark.parametrize(("code", "body"), NOT_CONFIRMED)
def test_only_the_whole_challenge_with_2xx_begins_a_subscription(
    bench: Bench, code: int, body: str
) -> None:
    # given a callback that answers something else
    bench.on_get = echoing(code, body)

    # when it is asked
    bench.subscribe()

    # then that is final
    assert bench.states() == []


@pytest.mark.parametrize(("code", "body"), NOT_CONFIRMED)
def test_a_request_that_is_not_confirmed_changes_no_subscription(
    bench: Bench, code: int, body: str
) -> None:
    # given a subscriber, whose callback then answers something else
    bench.on_get = echoing(299, "{}")
    bench.subscribe(secret="old")
    bench.on_get = echoing(code, body)

    # when others send forms with its callback
    bench.subscribe(mode="unsubscribe")
    bench.subscribe(secret="new")

    # then it is subscribed as before
    assert bench.states() == [("active", 0)]
    assert bench.subscription().secret == b"old"


def ask_again(bench: Bench, answer: Answer, **fields: str) -> None:
    """A new request, whose verification gets this answer."""
    bench.on_get = answer
    assert bench.post(form(**fields)).status == 202


@pytest.mark.parametrize("is_renewal", [False, True])
def test_a_confirmation_of_the_older_request_still_counts(
    bench: Bench, is_renewal: bool
) -> None:
    # given a callback that has asked, and a stranger that asks while it is asked
    if is_renewal:
        bench.subscribe()
    bench.on_get = meanwhile(lambda: ask_again(bench, SILENCE, secret="newer"), echo)

    # when the callback confirms what it has asked for
    bench.subscribe(secret="mine")

    # then it is subscribed, and the stranger's request waits for an answer of its own
    assert bench.subscription().secret == b"mine"
    assert bench.states() == [("active", 0), ("subscribe", 0)]


def test_a_repetition_during_a_verification_does_not_make_it_void(bench: Bench) -> None:
    # given a callback that confirms late, and a stranger that repeats its request
    bench.on_get = meanwhile(lambda: ask_again(bench, status(404)), echo)

    # when it confirms
    bench.subscribe()

    # then that counts, whatever becomes of the repetition
    assert bench.states() == [("active", 0)]


def test_a_request_during_the_same_verification_gets_one_of_its_own(
    bench: Bench,
) -> None:
    # given a callback that asks again while it is asked
    bench.on_get = meanwhile(lambda: ask_again(bench, echo), status(404))

    # when it declines the first request
    bench.subscribe()

    # then it is asked about the other one
    assert bench.states() == [("active", 0)]


def test_a_request_removed_during_its_verification_stays_removed(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    # given a request that the operator removes while the callback is asked
    bench.on_get = meanwhile(lambda: remove(bench), echo)

    # when the callback confirms it
    bench.subscribe()

    # then it stays removed
    assert bench.states() == []
    assert caplog.messages == []


# ---- Turns ---------------------------------------------------------------------------


def hosts_of(requests: list[CallbackRequest]) -> list[str]:
    return [request.url.split("/")[2].split(".")[0] for request in requests]


def test_the_newest_stranger_is_asked_first(bench: Bench) -> None:
    # given requests of strangers
    bench.on_get = status(404)
    bench.ask("a", "b", "c")

    # when they are asked
    bench.work()

    # then whoever repeats requests pushes back only earlier ones
    assert hosts_of(bench.sent) == ["c", "b", "a"]


def test_a_renewal_is_asked_before_all_newcomers(bench: Bench) -> None:
    # given a subscriber
    bench.subscribe("a")
    bench.sent.clear()

    # when it renews, and then newcomers ask
    bench.ask("a", secret="new")
    bench.ask("b", "c")
    bench.work()

    # then it is asked first
    assert hosts_of(bench.sent) == ["a", "c", "b"]


def test_the_oldest_subscription_is_served_first(bench: Bench) -> None:
    # given subscribers that have been served
    bench.subscribe("a", "b", "c")
    bench.change("two")
    bench.subscribe("a")
    bench.sent.clear()

    # when there is new content
    bench.change("three")

    # then their turn is that of their age
    assert hosts_of(bench.posts) == ["a", "b", "c"]


def taking(bench: Bench, seconds: float, answer: Answer) -> Answer:
    def take(request: CallbackRequest) -> CallbackResponse:
        bench.running_time.now += seconds
        return answer(request)

    return take


def test_who_has_not_been_served_yet_comes_after_the_proven(bench: Bench) -> None:
    # given a subscriber that has never been served, and a younger one that was quick
    bench.subscribe("a", "b")
    bench.on_post = lambda request: status(204 if "//b." in request.url else 500)(
        request
    )
    bench.change("two")
    bench.subscribe("c")
    bench.sent.clear()

    # when there is new content
    bench.publish("three")
    order = [due.id for due in bench.due() if due.is_subscription]

    # then the proven one is first
    ids = {row.host[0]: row.id for row in bench.rows()}
    assert order == [ids["b"], ids["c"]]


def test_only_deliveries_make_a_subscription_slow(bench: Bench) -> None:
    # given a subscriber whose deliveries take three seconds
    bench.subscribe()
    bench.on_post = taking(bench, 3.0, status(204))
    bench.change("two")

    # when it answers a challenge quickly
    bench.on_get = taking(bench, 0.1, echo)
    bench.subscribe(secret="new")

    # then it is as slow as before
    assert bench.subscription().took == 3.0


def test_only_verifications_make_a_request_slow(bench: Bench) -> None:
    # given a subscriber whose deliveries take three seconds
    bench.subscribe()
    bench.on_post = taking(bench, 3.0, status(204))
    bench.change("two")

    # when it asks, and gives no answer for five seconds
    bench.on_get = taking(bench, 5.0, SILENCE)
    asked_at_first = bench.ask("s", secret="new")
    (before,) = bench.rows("subscribe")
    bench.work()
    (after,) = bench.rows("subscribe")

    # then its request was quick until then
    assert asked_at_first == {202}
    assert before.took == 0.0
    assert after.took == 5.0


def test_slow_subscriptions_take_turns(bench: Bench) -> None:
    # given two slow subscribers, of which one has got the content before the other
    bench.subscribe("a", "b")
    bench.change("two", answer=taking(bench, 3.0, status(204)))
    bench.clock.now += 60
    bench.publish("three")
    served_first, waiting = bench.due()
    bench.perform(served_first)

    # when the content changes again
    bench.publish("four")

    # then it is the other's turn
    assert [due.id for due in bench.due()] == [waiting.id, served_first.id]


@pytest.mark.parametrize(
    "answer",
    [pytest.param(OUTAGE, id="no network"), pytest.param(SILENCE, id="an outage")],
)
def test_an_attempt_that_does_not_count_was_slow_all_the_same(
    bench: Bench, answer: Answer
) -> None:
    # given three subscribers that were quick
    bench.subscribe("a", "b", "c")
    bench.change("two")

    # when none is reached within five seconds, twice
    bench.change("three", answer=taking(bench, 5.0, answer))
    bench.wait(120)

    # then they are slow, and hold no more than half of the threads
    assert [row.took for row in bench.rows()] == [5.0] * 3


def test_a_fault_of_our_own_makes_nobody_quick(bench: Bench) -> None:
    # given a subscriber whose deliveries take three seconds
    bench.subscribe()
    bench.on_post = taking(bench, 3.0, status(204))
    bench.change("two")

    # when this program fails at the next delivery
    bench.change("three", answer=nonsense)

    # then the subscriber is as slow as before
    assert bench.subscription().took == 3.0


# ---- Places --------------------------------------------------------------------------


def granted_leases(bench: Bench) -> list[str]:
    return [asked["hub.lease_seconds"] for asked in bench.gets]


def test_the_younger_half_gets_the_shortest_lease_at_each_renewal(
    bench: Bench,
) -> None:
    # given four places
    bench.restart(max_subscriptions=4)

    # when three subscribe and renew
    bench.subscribe("a", "b", "c", "a", "b", "c")

    # then the third one must come again within the hour
    assert granted_leases(bench) == ["864000", "864000", "3600"] * 2
    ends = [row.expires_at - bench.clock.now for row in bench.rows()]
    assert ends == [864_000, 864_000, 3600]


def test_one_client_at_the_limit_of_the_proxy_never_holds_all_places(
    bench: Bench,
) -> None:
    # given as many places beside the shortest lease as by default: 10,000 beside an hour
    bench.restart(max_subscriptions=40, lease_min=14)

    # when a client subscribes another callback each second
    for number in range(200):
        bench.wait(1)
        bench.subscribe(f"n{number}")

    # then a newcomer finds a place
    bench.subscribe("newcomer")
    assert "newcomer.example" in bench.hosts()


def test_who_answers_keeps_the_place(bench: Bench) -> None:
    # given as many subscribers as places
    bench.restart(max_subscriptions=2)
    bench.subscribe("a", "b")

    # when another is confirmed
    bench.subscribe("c")

    # then it is told that there is no place
    assert bench.hosts() == ["a.example", "b.example"]
    assert bench.gets[-1]["hub.reason"] == "there are too many subscriptions"


def test_a_full_table_renews(bench: Bench) -> None:
    # given as many subscribers as places
    bench.restart(max_subscriptions=2)
    bench.subscribe("a", "b")

    # when they renew
    bench.subscribe("a", "b", secret="new")

    # then nobody is refused
    assert [row.secret for row in bench.rows()] == [b"new", b"new"]


def test_who_fails_in_the_younger_half_gives_up_the_place(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    # given as many subscribers as places, all of which fail
    bench.restart(max_subscriptions=2)
    bench.subscribe("a", "b")
    bench.change(answer=status(500))

    # when another is confirmed
    bench.subscribe("c")

    # then it has the place of the younger one, which is told
    assert bench.hosts() == ["a.example", "c.example"]
    assert bench.gets[-1]["hub.reason"] == (
        "deliveries failed and the place was needed; subscribe again to resume"
    )
    assert (
        "hub /feed.xml b.example: removed: it was failing, and its place was needed"
        in caplog.messages
    )


# ---- Delivery ------------------------------------------------------------------------


SECRETS = [
    pytest.param("s", id="short"),
    pytest.param("é" * 99 + "x", id="199 bytes"),
    pytest.param("\x00", id="a control character"),
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_signs_the_body_until_a_renewal_drops_it(
    bench: Bench, secret: str
) -> None:
    # given a subscriber with a secret
    bench.subscribe(secret=secret)

    # when it is served, renews without a secret, and is served again
    bench.change("zwölf 🙂")
    bench.subscribe()
    bench.change("three")

    # then only the first delivery is signed
    signatures = [sent.headers.get("X-Hub-Signature") for sent in bench.posts]
    assert signatures == [signed(secret, "zwölf 🙂"), None]


def test_a_postponed_delivery_is_remembered_for_the_operator(served: Bench) -> None:
    # given a subscriber, when it cannot be reached for a fault of our own
    served.change(answer=OUTAGE)

    # then its row says when and why, and has no failure
    subscription = served.subscription()
    assert subscription.tried_at == served.clock.now
    assert subscription.outcome == "not reachable"
    assert subscription.failures == 0


def test_a_failed_delivery_is_remembered_for_the_operator(served: Bench) -> None:
    # given a subscriber, when a delivery fails
    served.change(answer=status(500))

    # then its row says when and why
    subscription = served.subscription()
    assert subscription.tried_at == served.clock.now
    assert subscription.outcome == "HTTP 500"
    assert subscription.failures == 1


def test_a_renewal_changes_only_the_end_of_the_lease(served: Bench) -> None:
    # given a subscriber whose delivery has failed
    served.change(answer=status(500))
    before = served.subscription()

    # when it renews before the next attempt
    served.clock.now += 30
    served.subscribe()

    # then it has the longer lease, and has not come to the front
    lease_ends_at = served.clock.now + served.settings.lease_seconds
    assert served.subscription() == before._replace(expires_at=lease_ends_at)
    assert served.contents == ["two"]


def end_the_lease(bench: Bench) -> None:
    bench.clock.now += bench.settings.lease_seconds


def restore_the_content(bench: Bench) -> None:
    bench.publish("one")


NO_LONGER_DUE = [
    pytest.param(restore_the_content, id="the content is as before"),
    pytest.param(remove, id="the operator has removed it"),
    pytest.param(end_the_lease, id="the lease has ended"),
]


@pytest.mark.parametrize("event", NO_LONGER_DUE)
def test_an_exchange_that_is_no_longer_due_is_not_made(
    served: Bench, caplog: pytest.LogCaptureFixture, event: Callable[[Bench], None]
) -> None:
    # given a delivery that is due
    served.publish("two")
    (due,) = served.due()

    # when there is no reason for it any more
    event(served)
    served.perform(due)

    # then nothing is sent or said
    assert served.contents == []
    assert caplog.messages == []


def test_the_newest_of_several_changes_follows_a_slow_delivery(served: Bench) -> None:
    def change_twice() -> None:
        served.on_post = status(204)
        served.publish("three")
        served.publish("four")

    # given a subscriber, when the content changes twice during a delivery
    served.change(answer=meanwhile(change_twice, status(204)))

    # then what was newest for a moment is never sent
    assert served.contents == ["two", "four"]


@pytest.mark.parametrize("has_successor", [False, True])
def test_a_late_result_touches_nothing_else(served: Bench, has_successor: bool) -> None:
    def replace_it() -> None:
        successor = served.subscription()._replace(id=100)
        remove(served)
        insert(served, *[successor] * has_successor)

    # given a subscriber that is removed, and perhaps comes again, during a delivery
    served.on_post = meanwhile(replace_it, status(500))
    served.publish("two")
    (due,) = served.due()

    # when the delivery fails
    served.perform(due)

    # then nobody else has failed
    assert served.states()[:-1] == [("active", 0)] * has_successor


# ---- Outages -------------------------------------------------------------------------


def an_hour(bench: Bench) -> None:
    for _ in range(90):
        bench.wait(60)


def test_an_outage_of_our_side_removes_nobody(bench: Bench) -> None:
    # given three subscribers
    bench.subscribe("a", "b", "c")

    # when none of them is reached for more than an hour
    bench.change(answer=SILENCE)
    an_hour(bench)
    bench.on_post = status(204)
    an_hour(bench)

    # then they have the new content in the end
    assert len(bench.hosts()) == 3
    assert bench.hub.counts()["behind"] == 0


def test_an_outage_is_tried_less_often_the_longer_it_lasts(bench: Bench) -> None:
    # given three subscribers
    bench.subscribe("a", "b", "c")

    # when none of them is reached for some hours
    bench.change(answer=SILENCE)
    for _ in range(60 * 10):
        bench.wait(60)

    # then each attempt is after as long as the silence has lasted, an hour at most
    assert len(bench.posts) < 3 * 20


@pytest.mark.parametrize(
    "names",
    [pytest.param(["a"], id="one"), pytest.param(["a", "b"], id="two")],
)
def test_with_fewer_than_three_the_third_failure_removes(
    bench: Bench, names: list[str]
) -> None:
    # given few subscribers
    bench.subscribe(*names)

    # when none is reached for more than an hour
    bench.change(answer=SILENCE)
    an_hour(bench)

    # then they are removed, as the specification says
    assert bench.hosts() == []


ANSWERS = [
    pytest.param(status(500), id="a status"),
    pytest.param(REFUSED, id="a refused connection"),
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_silent_are_removed_while_somebody_answers(
    bench: Bench, answer: Answer
) -> None:
    # given subscribers that are silent, and one whose machine answers
    def answer_of_some(request: CallbackRequest) -> CallbackResponse:
        return (answer if "//e." in request.url else SILENCE)(request)

    bench.subscribe("a", "b", "c", "d", "e")

    # when it is so for more than an hour
    bench.change(answer=answer_of_some)
    an_hour(bench)

    # then it is not our side that is at fault
    assert bench.hosts() == []


def test_silent_strangers_excuse_nobody(bench: Bench) -> None:
    # given a subscriber, and strangers whose requests name silent callbacks
    bench.subscribe("a")
    bench.on_get = SILENCE
    bench.ask("x", "y", "z")
    bench.wait(60)

    # when the subscriber is silent for more than an hour
    bench.change(answer=SILENCE)
    an_hour(bench)

    # then it is removed, as if nobody else had been asked
    assert bench.hosts() == []


@pytest.mark.parametrize(
    "lease_seconds",
    [
        pytest.param(86_400, id="for its failures"),
        pytest.param(3600, id="when its lease ended"),
    ],
)
def test_who_is_gone_is_no_longer_silent(bench: Bench, lease_seconds: int) -> None:
    # given one subscriber, and two of another topic that fell silent and are gone
    bench.subscribe("c", path=JSON_FEED)
    bench.subscribe("a", "b", lease_seconds=str(lease_seconds))
    # Not even to its notice: any answer would end all silences.
    bench.on_get = bench.on_post = SILENCE
    bench.publish("one", feed="two")
    an_hour(bench)
    assert bench.hosts() == ["c.example"]

    # when the one that is left is silent for more than an hour
    bench.publish("two")
    an_hour(bench)

    # then one alone is no outage
    assert bench.hosts() == []


def test_a_fault_of_our_own_is_tried_again_each_minute(bench: Bench) -> None:
    # given three subscribers
    bench.subscribe("a", "b", "c")

    # when this machine lacks what it needs to reach them, for an hour
    bench.change(answer=OUTAGE)
    for _ in range(60):
        bench.wait(60)

    # then each is tried every minute, so that the end is noticed within one
    assert len(bench.posts) == 3 * 61


# ---- Leases, topics and trouble ------------------------------------------------------


def test_a_lease_that_ends_during_its_renewal_continues(bench: Bench) -> None:
    def end() -> None:
        bench.clock.now += 2
        bench.hub.scheduler.keep_up()

    # given a subscriber that asks in the last second of its lease, and new content
    bench.subscribe(lease_seconds="3600")
    bench.wait(3599)
    bench.publish("two")
    bench.on_get = meanwhile(end, echo)
    bench.post(form())

    # when it confirms after the end of the lease
    renewal, _ = bench.due()
    bench.perform(renewal)
    bench.work()

    # then it has missed nothing
    assert bench.states() == [("active", 0)]
    assert bench.contents == ["two"]


def test_subscriptions_to_a_missing_topic_wait_for_it(bench: Bench) -> None:
    # given two subscribers, when their topic is gone for a while
    bench.subscribe("s", "t")
    bench.hub.publish({JSON_FEED: bench.topics[JSON_FEED]})
    bench.work()
    subscribing = bench.post(form())
    unsubscribing = bench.post(form("unsubscribe", "https://t.example/"))
    bench.change()

    # then nobody can subscribe to it, one can leave, and the other one is served later
    assert subscribing.status == 404
    assert unsubscribing.status == 202
    assert [sent.url for sent in bench.posts] == ["https://s.example/"]


def test_requests_that_cannot_be_stored_are_503(bench: Bench) -> None:
    # given a hub whose store is closed
    bench.hub.stop(1)

    # when a form comes
    answer = bench.post(form())

    # then it is to come again
    text = "requests cannot be stored at present"
    assert answer == HubAnswer(503, text, (("Retry-After", "60"),))
    assert bench.hub.counts() == {}


def test_nothing_is_sent_while_the_store_is_locked(served: Bench) -> None:
    # given a delivery that is due
    served.publish("two")
    (delivery,) = served.due()

    # when the store is locked, and then is not
    with closing(sqlite3.connect(store_path(served))) as other:
        other.execute("BEGIN EXCLUSIVE")
        served.perform(delivery)
        sent_while_it_was_locked = list(served.contents)
    served.work()

    # then it is made afterwards
    assert sent_while_it_was_locked == []
    assert served.contents == ["two"]


@pytest.mark.slow
def test_a_result_waits_for_a_locked_store_without_a_repetition(served: Bench) -> None:
    def lock() -> None:
        other = sqlite3.connect(store_path(served), check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        threading.Timer(0.6, other.close).start()

    # given a subscriber, when the store is locked during a delivery
    served.change(answer=meanwhile(lock, status(204)))

    # then the result is stored afterwards
    assert served.contents == ["two"]
    assert served.states() == [("active", 0)]


def test_a_result_that_is_not_stored_before_the_end_is_repeated_after_it(
    served: Bench,
) -> None:
    # given a hub that stops during a delivery
    served.publish("two")
    (delivery,) = served.due()
    served.on_post = meanwhile(lambda: served.hub.stop(1), status(204))
    served.perform(delivery)

    # when it starts again
    served.on_post = status(204)
    served.start()
    served.work()

    # then the delivery is made again
    assert served.contents == ["two", "two"]


def test_a_bug_in_a_transition_is_logged_and_tried_again_a_minute_later(
    served: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    # given a delivery whose result this program cannot handle
    served.change(answer=nonsense)
    served.on_post = status(204)

    # when a minute passes
    served.wait(59)
    sent_before = list(served.contents)
    served.wait(1)

    # then it is made again
    assert "hub /feed.xml s.example: unexpected error" in caplog.messages
    assert sent_before == ["two"]
    assert served.contents == ["two", "two"]
