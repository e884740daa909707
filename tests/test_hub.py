"""How the hub answers, verifies and delivers, in memory, with a settable clock.

They stand beside `test_hub_machine.py`, whose model knows no texts, limits, turns, moments and bugs.

Stories - Requests - Limits - Verification - Turns - Delivery - Faults of our own - Topics and trouble
"""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

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

import hub
from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse
from reviewslib.websub.store import STORE_FILE_NAME, DueRow, remove_subscriptions
from reviewslib.websub.values import HubAnswer, Row, selector

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
    (
        "subscribe",
        status(200),
        [*ASKED, "subscribe not confirmed, no challenge: HTTP 200"],
    ),
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
    ("subscribe", SILENCE, ASKED),
    (120, SILENCE, ["subscribe not confirmed: no answer in time"]),
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
OUTAGE_OF_AN_HOUR: list[Step] = [
    ("subscribe", echo, CONFIRMED),
    ("subscribe", OUTAGE, ASKED),
    *[(60, OUTAGE, ["GET subscribe"])] * 59,
    (59, OUTAGE, []),
    (1, OUTAGE, ["subscribe not confirmed: no answer in time"]),
]
DELIVERED = ["content two delivered: HTTP 200"]
Fault = tuple[
    Answer, str, list[str]
]  # a callback without a status, the outcome, what is logged besides
SILENT: Fault = (SILENCE, "not reachable", [])
OUT: Fault = (OUTAGE, "not reachable", [])
BUG: Fault = (bug, "unexpected error", ["unexpected error"])
NONSENSE: Fault = (nonsense, "unexpected error", ["unexpected error"])


def tried_three_times(
    answer: Answer, outcome: str, error: list[str], pause: int = 30
) -> list[Step]:
    asked = ["GET subscribe", *error]
    return [
        ("subscribe", answer, ["subscribe requested", *asked]),
        (pause - 1, answer, []),
        (1, answer, asked),
        (pause - 1, answer, []),
        (1, answer, [*asked, f"subscribe not confirmed: {outcome}"]),
        (3600, answer, []),
    ]


def own_fault(answer: Answer, outcome: str, error: list[str]) -> list[Step]:
    postponed = [*error, f"delivery postponed: {outcome}"]
    return [
        ("subscribe", echo, CONFIRMED),
        ("subscribe", answer, [*ASKED, *error]),
        (59, echo, []),
        (1, echo, CONFIRMED[1:]),
        ("two", answer, postponed),
        *[(60, answer, postponed)] * 3,
        (59, echo, []),
        (1, echo, DELIVERED),
    ]


def retry_after(value: str, seconds: int) -> list[Step]:
    return [
        ("subscribe", echo, CONFIRMED),
        ("two", status(503, retry_after=value), ["delivery failed, 1 of 3: HTTP 503"]),
        (seconds - 1, echo, []),
        (1, echo, DELIVERED),
    ]


@pytest.mark.parametrize(
    "story",
    [
        LIFE,
        BACKOFF,
        OUTAGE_OF_AN_HOUR,
        *(
            [*BACKOFF[:2], (-seconds, echo, DELIVERED)] for seconds in (4400, 864000)
        ),  # the clock is set back
        *(tried_three_times(*fault) for fault in (SILENT, OUT, BUG, NONSENSE)),
        tried_three_times(REFUSED, "not reachable", []),
        BACKOFF[:1] + tried_three_times(*SILENT, pause=60),
        *(own_fault(*fault) for fault in (OUT, BUG, NONSENSE)),
        retry_after("120", 120),
        retry_after("9" * 5000, 3600),
        retry_after("Fri, 15 Jan 2027 08:10:00 GMT", 600),
        retry_after("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        *(
            retry_after(malformed, 66)
            for malformed in ("soon", "-5", "٣", "Mon, 99 Foo 2026", "1", "")
        ),
    ],
)
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
def test_a_repeated_request_is_accepted_without_a_write(
    served: Bench, mode: str
) -> None:
    with closing(sqlite3.connect(store_path(served))) as other:
        for secret, is_new in (("a", True), ("a", False), ("b", mode == "subscribe")):
            (before,) = other.execute("PRAGMA data_version")
            assert served.post(form(mode, secret=secret)).status == 202
            assert (other.execute("PRAGMA data_version").fetchone() != before) == is_new


# ---- Limits ------------------------------------------------------------------------------------------------


def too_many(words: str, code: int, seconds: int) -> HubAnswer:
    return HubAnswer(
        code,
        f"there are too many {words}; try again later",
        (("Retry-After", str(seconds)),),
    )


def test_a_subscriber_may_ask_fifty_times_a_minute_in_each_mode(served: Bench) -> None:
    assert {served.post(form(secret=str(number))).status for number in range(50)} == {
        202
    }
    assert served.post(form(secret="more")) == too_many(
        "requests of this subscriber", 429, 60
    )
    assert served.post(form("unsubscribe")).status == 202
    served.subscribe(path=JSON_FEED)
    served.wait(60)
    assert served.post(form(secret="later")).status == 202


def test_no_request_of_a_domain_is_refused_and_its_newest_fifty_wait(
    bench: Bench,
) -> None:
    assert bench.ask(
        *(f"h{number}.many" for number in range(60)), "h59.many", secret="s"
    ) == {202}
    assert bench.hosts("subscribe") == sorted(
        f"h{number}.many.example" for number in range(10, 60)
    )


def test_a_request_for_which_there_is_no_room_is_refused(bench: Bench) -> None:
    bench.ask("first")
    (first,) = bench.rows("subscribe")
    insert(
        bench,
        *(first._replace(id=n, domain="", callback_key=f"{n}") for n in range(2, 1001)),
    )
    assert bench.post(form(callback="https://newer.example/")) == too_many(
        "unverified requests", 503, 60
    )
    assert bench.ask("first", secret="new") == {202}


def test_domains_take_turns_and_their_newest_requests_come_first(bench: Bench) -> None:
    bench.on_get = status(404)
    bench.ask("a1.a", "a2.a", "b1.b", "a3.a", "b2.b", "c1.c")
    bench.work()
    order = [sent.url.split("/")[2].split(".")[0] for sent in bench.sent]
    assert order == ["a3", "b2", "c1", "a2", "b1", "a1"]
    bench.ask("a4.a", "d1.d")
    assert [due.domain for due in bench.started()] == ["d.example", "a.example"], (
        "a was asked three times"
    )


def at_one_address(bench: Bench, count: int) -> list[str]:
    """Names of strangers, which all have one address."""
    names = [f"n{number}" for number in range(count)]
    bench.networks |= {f"{name}.example": "203.0.113.7" for name in names}
    return names


def test_a_network_gets_fifty_connections_of_strangers_a_minute(bench: Bench) -> None:
    bench.on_get = status(404)
    assert bench.ask(*at_one_address(bench, 100)) == {202}
    for seconds, sent in ((0, 50), (19, 50), (1, 50), (19, 50), (21, 100)):
        bench.wait(seconds)
        assert len(bench.sent) == sent


def test_only_the_network_that_confirmed_forgets_a_connection(bench: Bench) -> None:
    bench.subscribe(*at_one_address(bench, 60))
    bench.tried_first = ["198.51.100.9"]
    bench.ask(*(f"m{number}" for number in range(60)))
    bench.work()
    assert len(bench.hosts()) == 60 + 50


def test_neither_a_refused_request_nor_a_renewal_frees_a_connection(
    bench: Bench,
) -> None:
    bench.restart(max_subscriptions=29)
    bench.ask(*at_one_address(bench, 60))
    bench.work()
    bench.subscribe(bench.hosts()[0].partition(".")[0])
    bench.wait(20)
    modes = [asked["hub.mode"] for asked in bench.gets]
    assert modes.count("subscribe") == 50 + 2 + 1, (
        "two were accepted, and one of them renewed"
    )


def test_requests_of_strangers_at_its_address_delay_no_subscriber(
    served: Bench,
) -> None:
    served.networks["s.example"] = "203.0.113.7"  # the callback has moved
    served.on_get = status(404)
    served.ask(*at_one_address(served, 60))
    served.work()
    served.on_get = echo
    for number in range(60):
        served.change(str(number))
    served.subscribe(secret="renewed")
    assert (len(served.contents), served.subscription().secret) == (60, b"renewed")


@pytest.mark.parametrize(
    ("most", "names", "code", "words"),
    [
        (29, "a.s b.s c.s", 429, "subscriptions of this domain"),
        (9, "a.s b.s", 429, "subscriptions of this domain"),
        (3, "a b c d", 503, "subscriptions"),
    ],
)
def test_a_full_quota_refuses_newcomers_and_renews(
    bench: Bench, most: int, names: str, code: int, words: str
) -> None:
    bench.restart(max_subscriptions=most)
    *subscribed, refused = names.split()
    bench.subscribe(*subscribed)
    assert bench.post(form(callback=f"https://{refused}.example/")) == too_many(
        words, code, 3600
    )
    bench.subscribe(*subscribed)
    assert bench.hosts() == [f"{name}.example" for name in subscribed]


def test_a_full_quota_of_an_address_is_told_in_a_notice(bench: Bench) -> None:
    bench.restart(max_subscriptions=29)
    bench.subscribe(
        *at_one_address(bench, 3)
    )  # whose address nobody knows before they are asked
    told = [
        asked["hub.reason"] for asked in bench.gets if asked["hub.mode"] == "denied"
    ]
    assert told == ["there are too many subscriptions of this address"]
    bench.subscribe("n0")
    assert bench.hosts() == ["n0.example", "n1.example"]


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
    if is_renewal:
        bench.subscribe()
    bench.on_get = meanwhile(lambda: ask_again(bench, SILENCE, secret="newer"), echo)
    bench.subscribe(secret="mine")
    assert bench.subscription().secret == b"mine"
    bench.wait(60)
    bench.hub.read_due()
    assert bench.hub.schedule.take("newcomer") is None, (
        "the newer request is one of a subscriber"
    )
    assert bench.states() == [("active", 0), ("subscribe", 0)]


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


# ---- Turns -------------------------------------------------------------------------------------------------


def row(lane: str, domain: str, number: int = 0, network: str | None = None) -> DueRow:
    return DueRow(
        lane, number, f"{lane} {domain} {number}", f"{domain}.example", network
    )


def begun(schedule: hub.Schedule, lane: str) -> list[str]:
    """The keys of the exchanges that a lane begins until no other may begin."""
    return [one.key for one in iter(lambda: schedule.take(lane), None)]


SIZES = {"renewal": 16, "delivery": 16, "retry": 4, "newcomer": 6, "notice": 2}


@pytest.mark.parametrize(
    ("workers", "sizes"), [(16, SIZES), (1, dict.fromkeys(SIZES, 1))]
)
def test_each_lane_has_workers_of_its_own(workers: int, sizes: dict[str, int]) -> None:
    schedule = hub.Schedule(workers)
    rows = [row(lane, f"d{number}", number) for lane in SIZES for number in range(20)]
    assert Counter(schedule.refill(rows)) == sizes
    assert {lane: len(begun(schedule, lane)) for lane in SIZES} == sizes
    assert schedule.refill(rows) == [], "all workers are busy"


LIMITS = {"delivery": {7: 1, 8: 2, 16: 4, 64: 4}, "newcomer": {8: 1, 16: 3, 64: 4}}


@pytest.mark.parametrize(
    ("lane", "workers"),
    [(lane, workers) for lane in LIMITS for workers in LIMITS[lane]],
)
@pytest.mark.parametrize("network", [None, "192.0.2.1"])
def test_a_domain_or_network_has_four_workers_at_most(
    lane: str, workers: int, network: str | None
) -> None:
    rows = [
        row(lane, f"d{number}" if network else "d", number, network)
        for number in range(20)
    ]
    schedule = hub.Schedule(workers)
    schedule.refill([*rows, row(lane, "other")])
    first = [one.key for one in rows[: LIMITS[lane][workers]]]
    assert begun(schedule, lane) == [*first, f"{lane} other 0"]


def test_a_subscriber_has_one_exchange_at_a_time() -> None:
    schedule = hub.Schedule(16)
    delivery = row("delivery", "s")
    renewal = row("renewal", "s")._replace(key="delivery s 0")
    schedule.refill([delivery, renewal])
    assert (schedule.take("delivery"), schedule.take("renewal")) == (delivery, None)
    schedule.finish(delivery)
    assert schedule.take("renewal") == renewal


@pytest.mark.parametrize(("now", "count"), [(59.9, 51), (60, 1), (90, 0)])
def test_a_rate_counts_the_events_of_a_minute_up_to_a_limit(
    now: float, count: int
) -> None:
    rate = hub.Rate()
    assert [rate.add("key", 0, limit=50) for _ in range(51)] == [True] * 50 + [False]
    for key in ("other", "other", "key"):
        rate.add(key, 30)
    rate.remove("other")
    assert (rate.count("key", now), rate.count("other", now)) == (count, int(now < 90))


def test_subscriptions_of_a_domain_take_turns_with_others(bench: Bench) -> None:
    bench.subscribe(*(f"h{number}.many" for number in range(20)), "other")
    bench.publish("two")
    assert {bench.begun().domain for _ in range(2)} == {"many.example", "other.example"}


@pytest.mark.parametrize("by", ["POST", "GET"])
def test_the_rows_of_a_subscriber_have_the_seconds_of_its_last_exchange(
    served: Bench, by: str
) -> None:
    def answer(request: CallbackRequest) -> CallbackResponse:
        served.running_time.now += 2.5 if request.method == by else 0.5
        return echo(request)

    served.on_get = served.on_post = answer
    served.change() if by == "POST" else served.subscribe()
    served.post(form(secret="new"))
    assert [
        row.took for mode in ("active", "subscribe") for row in served.rows(mode)
    ] == [2.5, 2.5]


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


@pytest.mark.parametrize(
    "event", [lambda bench: bench.publish("one"), remove, end_the_lease]
)
def test_an_exchange_that_is_no_longer_due_is_not_made(
    served: Bench, caplog: pytest.LogCaptureFixture, event: Callable[[Bench], None]
) -> None:
    served.publish("two")
    due = served.begun()
    event(served)
    served.hub.perform(due)
    assert (served.contents, caplog.messages) == ([], [])


def test_the_newest_of_several_changes_follows_a_slow_delivery(served: Bench) -> None:
    def change_twice() -> None:
        served.on_post = status(204)
        served.publish("three")
        served.publish("four")

    served.change(answer=meanwhile(change_twice, status(204)))
    assert served.contents == ["two", "four"]


@pytest.mark.parametrize(
    ("mode", "told"), [("subscribe", "subscribe"), ("unsubscribe", "denied")]
)
def test_only_a_waiting_request_to_subscribe_replaces_the_notice(
    served: Bench, mode: str, told: str
) -> None:
    def ask() -> None:
        served.on_post = status(204)
        served.post(form(mode))

    served.change(answer=status(500))
    served.wait(5000)
    served.on_post = meanwhile(ask, status(500))
    served.wait(5000)
    assert [asked["hub.mode"] for asked in served.gets] == ["subscribe", told]
    assert len(served.contents) == 3 + (mode == "subscribe"), (
        "what it missed is still due"
    )


@pytest.mark.parametrize("has_successor", [False, True])
def test_a_late_result_touches_nothing_else(served: Bench, has_successor: bool) -> None:
    def replace_it() -> None:
        successor = served.subscription()._replace(id=100)
        remove(served)
        insert(served, *[successor] * has_successor)

    served.on_post = meanwhile(replace_it, status(500))
    served.publish("two")
    served.hub.perform(served.begun())
    assert served.states()[:-1] == [("active", 0)] * has_successor


# ---- Faults of our own -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "is_removed"), [(SILENCE, False), (status(500), True), (REFUSED, True)]
)
def test_silent_callbacks_are_removed_only_while_others_answer(
    bench: Bench, answer: Answer, is_removed: bool
) -> None:
    bench.subscribe(*(f"s{number}" for number in range(5)))
    bench.change(
        answer=lambda request: (answer if "s4" in request.url else SILENCE)(request)
    )
    for _ in range(90):
        bench.clock.now += 60
        bench.running_time.now += 60
        for due in reversed(bench.started()):
            bench.hub.perform(due)
    assert ("s0.example" not in bench.hosts()) == is_removed


@pytest.mark.parametrize(("seconds", "failures"), [(599.9, 0), (600, 1)])
def test_silent_networks_count_for_ten_minutes(
    bench: Bench, seconds: float, failures: int
) -> None:
    bench.subscribe("s0", "s1", "s2")
    bench.publish("two")
    bench.on_post = SILENCE
    first, second, third = bench.started()
    bench.hub.perform(first)
    bench.hub.perform(second)
    bench.running_time.now += seconds
    bench.hub.perform(third)
    assert bench.rows()[2].failures == failures


# ---- Leases, topics and trouble ----------------------------------------------------------------------------


def test_a_lease_that_ends_during_its_renewal_continues(bench: Bench) -> None:
    def end() -> None:
        bench.clock.now += 2
        bench.hub.upkeep()

    bench.subscribe(lease_seconds="3600")
    bench.wait(3599)
    bench.publish("two")
    bench.on_get = meanwhile(end, echo)
    bench.post(form())
    bench.hub.perform(bench.begun("renewal"))
    bench.work()
    assert (bench.states(), bench.contents) == ([("active", 0)], ["two"])


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
    delivery = served.begun()
    with closing(sqlite3.connect(store_path(served))) as other:
        other.execute("BEGIN EXCLUSIVE")
        served.hub.perform(delivery)
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
