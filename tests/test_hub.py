"""How the hub answers, verifies and delivers, in memory, with a settable clock.

They stand beside `test_hub_machine.py`, whose model knows no texts, moments, turns and bugs.

Stories - Requests - Verification - Turns - Places - Delivery - Outages - Leases, topics and trouble
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
from lab.hub_lab import (
    JSON_FEED,
    OUTAGE,
    SILENCE,
    Answer,
    Bench,
    echo,
    echoing,
    form,
    query,
    signed,
    status,
)

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


# ---- Stories: events, how callbacks answer meanwhile, and what is logged or asked by GET ------------------

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


# ---- Requests ----------------------------------------------------------------------------------------------

ACCEPTED = "accepted; the callback will now be asked to confirm"
ADDRESS = "hub.callback has an IP address as its host; a host name is needed"
LEASE = "hub.lease_seconds must be a positive whole number of seconds"
TOPICS = "https://reviews.example/feed.xml", "https://reviews.example/api/feed.json"
NOT_A_TOPIC = "hub.topic is not a topic of this hub; its topics are " + ", ".join(
    TOPICS
)
NOT_SUBSCRIBED = "hub.callback has no active subscription to hub.topic"


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (
            b"",
            400,
            "hub.mode is missing; hub.callback is missing; hub.topic is missing",
        ),
        (form() + b"&hub.mode=subscribe", 400, "hub.mode is given 2 times"),
        (form(secret="a") + b"&hub.secret=b", 400, "hub.secret is given 2 times"),
        (form("publish"), 400, "hub.mode must be subscribe or unsubscribe"),
        (form(callback="https://127.0.0.1/"), 400, ADDRESS),
        *(
            (form(secret=text), 400, "hub.secret must have 1 to 199 bytes")
            for text in ("", "é" * 100)
        ),
        *(
            (form() + text, 400, "the form is not UTF-8")
            for text in (b"&x=%ff", b"&x=\xff", b"&x=%ed%a0%80")
        ),
        *(
            (form(lease_seconds=text), 400, LEASE)
            for text in ("", "0", "000", "-5", "+5", "1e3", "٣")
        ),
        (
            (form() + b"&x=").ljust(16385, b"y"),
            413,
            "the form is larger than 16384 bytes",
        ),
        (form(path="/FEED.XML"), 404, NOT_A_TOPIC),
        (form().replace(b"reviews.example", b"other.example"), 404, NOT_A_TOPIC),
        (form().replace(b"https%3A%2F%2Freviews.example", b""), 404, NOT_A_TOPIC),
        (form("unsubscribe", "https://t.example/"), 404, NOT_SUBSCRIBED),
        (form("unsubscribe", path="/nothing"), 404, NOT_SUBSCRIBED),
        (
            form() + b"&foo=bar&hub.foo=hub.bar&foo=baz",
            202,
            ACCEPTED,
        ),  # websub.rocks test 102
        ((form() + b"&x=").ljust(16384, b"y"), 202, ACCEPTED),
        (form(secret="é" * 99 + "x"), 202, ACCEPTED),
        (form(lease_seconds="9" * 9999), 202, ACCEPTED),
        (
            form().replace(
                b"https%3A%2F%2Freviews.example", b"HTTPS%3A%2F%2FREVIEWS.example"
            ),
            202,
            ACCEPTED,
        ),
        (form("unsubscribe", lease_seconds="abc", secret="x" * 500), 202, ACCEPTED),
    ],
)
def test_a_form_is_answered_in_one_line(
    served: Bench, body: bytes, code: int, says: str
) -> None:
    answer = served.post(body, "Application/X-WWW-Form-Urlencoded; charset=UTF-8")
    assert (answer, len(served.sent)) == (HubAnswer(code, says), 1), (
        "it does not wait for the callback"
    )
    served.work()
    assert len(served.gets) == (2 if code == 202 else 1)


@pytest.mark.parametrize("content_type", [None, "application/json"])
def test_a_body_that_is_not_a_form_is_refused(
    bench: Bench, content_type: str | None
) -> None:
    refusal = HubAnswer(415, "Content-Type must be application/x-www-form-urlencoded")
    assert bench.post(form(), content_type) == refusal


LEASES = [
    (None, 864000),
    ("1", 3600),
    ("7200", 7200),
    ("2592001", 2592000),
    ("9" * 30, 2592000),
]


@pytest.mark.parametrize(("asked", "granted"), LEASES)
def test_a_lease_is_clamped_and_told(
    bench: Bench, asked: str | None, granted: int
) -> None:
    bench.subscribe(**({"lease_seconds": asked} if asked else {}))
    assert bench.gets[0]["hub.lease_seconds"] == str(granted)
    assert bench.subscription().expires_at == bench.clock.now + granted


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
def test_callback_and_topic_are_used_as_they_were_sent(
    bench: Bench, callback: str, joint: str
) -> None:
    bench.post(form(callback=callback).replace(b"feed.xml", b"%2566eed.xml"))
    bench.work()
    bench.change()
    asked, sent = bench.sent
    topic_url = "https%3A%2F%2Freviews.example%2F%2566eed.xml"
    assert asked.url.startswith(
        f"{callback}{joint}hub.mode=subscribe&hub.topic={topic_url}&hub.challenge="
    )
    assert (sent.url, sent.read_body_bytes) == (callback, 0)
    assert (asked.timeout_seconds, sent.timeout_seconds) == (5.0, 10.0)


def test_challenges_are_random_and_safe_in_a_url(bench: Bench) -> None:
    for _ in range(5):
        bench.subscribe()
    challenges = {asked["hub.challenge"] for asked in bench.gets}
    assert len(challenges) == 5
    assert all(
        re.fullmatch(r"[\w-]{43}", challenge, re.ASCII) for challenge in challenges
    )
    assert {sent.read_body_bytes for sent in bench.sent} == {
        44
    }  # one more would be noticed


@pytest.mark.parametrize(
    ("code", "body"),
    [
        *((200, body) for body in ("{}\n", " {}", "{}{}", "<p>{}</p>", "")),
        (204, ""),
        *((code, "{}") for code in (404, 500, 302)),
    ],
)
def test_only_the_whole_challenge_with_2xx_confirms(
    bench: Bench, code: int, body: str
) -> None:
    for secret, answer in (("never", echoing(code, body)), ("old", echoing(299, "{}"))):
        bench.on_get = answer
        bench.subscribe(secret=secret)
        assert [row.secret for row in bench.rows()] == [b"old"] * (secret == "old")
    bench.on_get = echoing(code, body)
    bench.subscribe(mode="unsubscribe")
    bench.subscribe(secret="new")
    assert (bench.states(), bench.subscription().secret) == ([("active", 0)], b"old")


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
    bench.on_get = meanwhile(lambda: ask_again(bench, echo), status(404))
    bench.subscribe()
    assert bench.states() == [("active", 0)]


def test_a_request_removed_during_its_verification_stays_removed(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.on_get = meanwhile(lambda: remove(bench), echo)
    bench.subscribe()
    assert bench.states() == caplog.messages == []


# ---- Turns -----------------------------------------------------------------------------


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


# ---- Places ----------------------------------------------------------------------------


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


# ---- Delivery ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["s", "é" * 99 + "x", "\x00"])
def test_a_secret_signs_the_body_until_a_renewal_drops_it(
    bench: Bench, secret: str
) -> None:
    bench.subscribe(secret=secret)
    bench.change("zwölf 🙂")
    bench.subscribe()
    bench.change("three")
    signatures = [sent.headers.get("X-Hub-Signature") for sent in bench.posts]
    assert signatures == [signed(secret, "zwölf 🙂"), None]


def test_a_renewal_changes_only_the_end_of_the_lease(served: Bench) -> None:
    served.change(answer=status(500))
    before = served.subscription()
    assert (before.tried_at, before.outcome, before.failures) == (
        served.clock.now,
        "HTTP 500",
        1,
    )
    served.clock.now += 30
    served.subscribe()
    lease_ends_at = served.clock.now + served.settings.lease_seconds
    assert served.subscription() == before._replace(expires_at=lease_ends_at)
    assert served.contents == ["two"], "a bad callback cannot renew itself to the front"


def end_the_lease(bench: Bench) -> None:
    bench.clock.now += bench.settings.lease_seconds


NO_LONGER_DUE = [
    pytest.param(lambda bench: bench.publish("one"), id="the content is as before"),
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

    served.change(answer=meanwhile(change_twice, status(204)))
    assert served.contents == ["two", "four"]


@pytest.mark.parametrize("has_successor", [False, True])
def test_a_late_result_touches_nothing_else(served: Bench, has_successor: bool) -> None:
    def replace_it() -> None:
        successor = served.subscription()._replace(id=100)
        remove(served)
        insert(served, *[successor] * has_successor)

    served.on_post = meanwhile(replace_it, status(500))
    served.publish("two")
    (due,) = served.due()
    served.perform(due)
    assert served.states()[:-1] == [("active", 0)] * has_successor


# ---- Outages ---------------------------------------------------------------------------


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


# ---- Leases, topics and trouble ----------------------------------------------------------------------------


def test_a_lease_that_ends_during_its_renewal_continues(bench: Bench) -> None:
    def end() -> None:
        bench.clock.now += 2
        bench.hub.scheduler.keep_up()

    bench.subscribe(lease_seconds="3600")
    bench.wait(3599)
    bench.publish("two")
    bench.on_get = meanwhile(end, echo)
    bench.post(form())
    renewal, _ = bench.due()
    bench.perform(renewal)
    bench.work()
    assert bench.states() == [("active", 0)]
    assert bench.contents == ["two"]


def test_subscriptions_to_a_missing_topic_wait_for_it(bench: Bench) -> None:
    bench.subscribe("s", "t")
    bench.hub.publish({JSON_FEED: bench.topics[JSON_FEED]})
    bench.work()
    assert bench.post(form()).status == 404
    assert bench.post(form("unsubscribe", "https://t.example/")).status == 202
    bench.change()
    assert [sent.url for sent in bench.posts] == ["https://s.example/"]


def test_requests_that_cannot_be_stored_are_503(bench: Bench) -> None:
    bench.hub.stop(1)
    unavailable = HubAnswer(
        503, "requests cannot be stored at present", (("Retry-After", "60"),)
    )
    assert (bench.post(form()), bench.hub.counts()) == (unavailable, {})


def test_nothing_is_sent_while_the_store_is_locked(served: Bench) -> None:
    served.publish("two")
    (delivery,) = served.due()
    with closing(sqlite3.connect(store_path(served))) as other:
        other.execute("BEGIN EXCLUSIVE")
        served.perform(delivery)
        assert served.contents == []
    served.work()
    assert served.contents == ["two"]


@pytest.mark.slow
def test_a_result_waits_for_a_locked_store_without_a_repetition(served: Bench) -> None:
    def lock() -> None:
        other = sqlite3.connect(store_path(served), check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        threading.Timer(0.6, other.close).start()

    served.change(answer=meanwhile(lock, status(204)))
    assert (served.contents, served.states()) == (["two"], [("active", 0)])
