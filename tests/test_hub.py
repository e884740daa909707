"""The hub without sockets and threads: requests, transitions, messages, scheduling, store."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import sqlite3
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from hub_lab import (
    BASE_URL,
    FEED,
    FORM,
    JSON_FEED,
    Callbacks,
    Clock,
    form,
    settings,
    status,
    topic,
    topics,
    work,
)

import hub

DAY = 86400.0


class Bench:
    """A hub over one state directory, with a clock and callbacks of ours; it can be started anew."""

    def __init__(self, state_dir: Path, **changes: object):
        self.settings = settings(state_dir, **changes)
        self.clock = Clock()
        self.callbacks = Callbacks()
        self.topics = topics()
        self.hub = self.open()

    def open(self) -> hub.Hub:
        opened = hub.Hub(self.settings, clock=self.clock, send=self.callbacks)
        opened.publish(self.topics)
        return opened

    def restart(self) -> None:
        self.hub.stop(1)
        self.hub = self.open()

    def post(self, body: bytes, content_type: str | None = FORM) -> hub.HubAnswer:
        return self.hub.answer(content_type, body)

    def subscribe(self, **fields: str) -> None:
        """A subscription, verified."""
        assert self.post(form(**fields)).status == 202
        self.work()

    def change(self, text: str) -> None:
        self.topics = topics(text)
        self.hub.publish(self.topics)

    def work(self) -> None:
        work(self.hub)

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.work()

    @property
    def contents(self) -> list[str]:
        return self.callbacks.contents

    def states(self) -> list[tuple[str, int]]:
        listed = hub.list_subscriptions(self.settings.state_dir, clock=self.clock)
        return [(line.state, line.failures) for line in listed]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.hub.stop(1)


# ---- Callback URLs -----------------------------------------------------------------------------------------

USABLE = [
    "https://s.example",
    "https://s.example/",
    "https://s.example?feed=1",
    "https://s.example:443/cb",
    "https://s.example:8443/cb?a=b&hub.mode=mine&bare",
    "HTTPS://S.Example/CB",
    "https://s.example/@user/cb",
    "https://xn--bcher-kva.example/cb",
    "https://under_score.s.example/cb",
    "https://8.8.8.8/cb",
    "https://[2606:4700:4700::1111]:8443/cb",
]

UNUSABLE = [
    "",
    "http://s.example/cb",
    "ftp://s.example/cb",
    "//s.example/cb",
    "/cb",
    "https:/s.example/cb",
    "https://",
    "https:///cb",
    "https://s.example/cb#part",
    "https://s.example/" + "a" * 2048,
    "https://user@s.example/cb",
    "https://user:word@s.example/cb",
    "https://s.example:80/cb",
    "https://s.example:22/cb",
    "https://s.example:0/cb",
    "https://s.example:65536/cb",
    "https://s.example:999999999999/cb",
    "https://s.example:/cb",
    "https://s.example:+443/cb",
    "https://s.example/a b",
    " https://s.example/cb",
    "https://s.example/cb\r\nX: y",
    "ht\ttps://s.example/cb",
    "https://s.example/\x00",
    "https://s.example/ü",
    "https://bücher.example/cb",
    "https://s..example/cb",
    "https://.s.example/cb",
    "https://s.example./cb",
    "https://" + "a" * 64 + ".example/cb",
]

# Every one of these means an inner address to some resolver or parser.
INNER = [
    "https://127.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0X7F.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.0x1/",
    "https://0/",
    "https://0.0.0.0/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.64.0.1/",
    "https://192.0.0.9/",
    "https://192.88.99.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://127.0.0.1./",
    "https://[::]/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::ffff:0:127.0.0.1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:7f00:1::]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[5f00::1]/",
    "https://[fc00::1]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[::1/",
    "https://[v1.x]/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://a.localhost/",
    "https://intranet/",
    "https://①②⑦.0.0.1/",
    "https://１２７.0.0.1/",
    "https://127。0。0。1/",
    "https://%31%32%37.0.0.1/",
    "https://127.0.0.1%00.s.example/",
    "https://s.example\\@127.0.0.1/",
    "https://s.example@127.0.0.1/",
    "https://127.0.0.1\\.s.example/",
    "https://127.0.0.1:8443/",
]


@pytest.mark.parametrize("url", USABLE)
def test_a_public_https_url_is_a_callback_and_is_kept_to_the_letter(url: str) -> None:
    assert hub.parse_callback(url, allow_private=False).url == url


@pytest.mark.parametrize("url", UNUSABLE + INNER)
def test_anything_else_is_refused_without_asking_the_network(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has|must) "):
        hub.parse_callback(url, allow_private=False)


@pytest.mark.parametrize("url", ["https://127.0.0.1:80/", "https://[::1]:8443/", "https://localhost:22/"])
def test_a_lab_may_allow_private_places_and_every_port(url: str) -> None:
    assert hub.parse_callback(url, allow_private=True).url == url


@pytest.mark.parametrize("url", ["http://localhost/", "https://u@localhost/", "https://localhost:0/", ""])
def test_a_lab_still_needs_an_https_url(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has|must) "):
        hub.parse_callback(url, allow_private=True)


PUBLIC = ["1.1.1.1", "8.8.8.8", "192.0.1.1", "2606:4700::1", "2a00:1450::1", "::ffff:8.8.8.8", "2001:4860::1"]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert hub.is_public(ipaddress.ip_address(address))


def test_no_address_of_a_refused_url_is_public() -> None:
    spelled = [urlsplit(url).hostname for url in INNER if "[" not in url or ("]" in url and "v1" not in url)]
    addresses = []
    for host in spelled:
        try:
            addresses.append(ipaddress.ip_address(host or ""))
        except ValueError:
            continue
    assert len(addresses) > 25
    assert [str(address) for address in addresses if hub.is_public(address)] == []


# ---- Requests ----------------------------------------------------------------------------------------------


def test_a_good_request_is_accepted_and_verified_with_its_topic_as_sent(bench: Bench) -> None:
    body = form().replace(b"feed.xml", b"%2566eed.xml")  # once decoded: %66eed.xml, that is feed.xml
    assert bench.post(body) == hub.HubAnswer(202, "accepted; the callback will now be asked to confirm")
    assert bench.callbacks.sent == []  # REC 5.1.2: the answer does not wait for the callback
    bench.work()
    (asked,) = bench.callbacks.gets
    assert asked["hub.topic"] == f"{BASE_URL}/%66eed.xml"
    assert bench.states() == [("active", 0)]


@pytest.mark.parametrize(
    ("body", "content_type", "code", "says"),
    [
        (b"", FORM, 400, "hub.mode is missing; hub.callback is missing; hub.topic is missing"),
        (b"hub_mode=subscribe", FORM, 400, "hub.mode is missing"),
        (form() + b"&hub.mode=subscribe", FORM, 400, "hub.mode is given 2 times"),
        (form() + b"&hub.callback=https://t.example/", FORM, 400, "hub.callback is given 2 times"),
        (form().replace(b"hub.callback", b"hub.callback[]"), FORM, 400, "hub.callback is missing"),
        (form("Subscribe"), FORM, 400, "hub.mode must be subscribe or unsubscribe"),
        (b"hub.mode=publish&hub.url=" + BASE_URL.encode(), FORM, 400, "hub.mode publish is not needed"),
        (form(callback="http://s.example/cb"), FORM, 400, "hub.callback must be an https:// URL"),
        (form(callback="https://127.0.0.1/"), FORM, 400, "hub.callback has an address that is not public"),
        (form(lease_seconds="0"), FORM, 400, "hub.lease_seconds must be a positive whole number"),
        (form(lease_seconds="000"), FORM, 400, "hub.lease_seconds must be"),
        (form(lease_seconds="-5"), FORM, 400, "hub.lease_seconds must be"),
        (form(lease_seconds="+5"), FORM, 400, "hub.lease_seconds must be"),
        (form(lease_seconds="1e3"), FORM, 400, "hub.lease_seconds must be"),
        (form(lease_seconds="٣"), FORM, 400, "hub.lease_seconds must be"),
        (form(lease_seconds=""), FORM, 400, "hub.lease_seconds must be"),
        (form(secret=""), FORM, 400, "hub.secret must have 1 to 199 bytes"),
        (form(secret="x" * 200), FORM, 400, "hub.secret must have 1 to 199 bytes"),
        (form(secret="é" * 100), FORM, 400, "hub.secret must have 1 to 199 bytes"),
        (form() + b"&x=%ff", FORM, 400, "not UTF-8"),
        (form() + b"&x=\xff", FORM, 400, "not UTF-8"),
        (form() + b"&x=%ed%a0%80", FORM, 400, "not UTF-8"),
        (b"&".join([form()] + [b"x=1"] * 64), FORM, 400, "more than 64 fields"),
        (form(path="/nothing"), FORM, 404, f"its topics are {BASE_URL}{FEED}, {BASE_URL}{JSON_FEED}"),
        (form(path="/FEED.XML"), FORM, 404, "not a topic of this hub"),
        (form(path="/feed.xml?page=1"), FORM, 404, "not a topic of this hub"),
        (form().replace(b"reviews.example", b"other.example"), FORM, 404, "not a topic of this hub"),
        (form().replace(b"https%3A%2F%2Freviews.example", b""), FORM, 404, "not a topic of this hub"),
        (form("unsubscribe"), FORM, 404, "no active subscription"),
        (form("unsubscribe", path="/nothing"), FORM, 404, "no active subscription"),
        (form() + b"&x=" + b"y" * 16384, FORM, 413, "larger than 16384 bytes"),
        (form(), None, 415, "application/x-www-form-urlencoded"),
        (form(), "application/json", 415, "application/x-www-form-urlencoded"),
        (form(), "multipart/form-data", 415, "application/x-www-form-urlencoded"),
    ],
)
def test_a_bad_request_is_refused_with_one_line_that_says_why(
    bench: Bench, body: bytes, content_type: str | None, code: int, says: str
) -> None:
    answer = bench.post(body, content_type)
    assert (answer.status, answer.headers) == (code, ())
    assert says in answer.text
    assert "\n" not in answer.text
    bench.work()
    assert bench.callbacks.sent == []


@pytest.mark.parametrize(
    "body",
    [
        form() + b"&foo=bar&hub.foo=hub.bar&foo=baz",  # websub.rocks test 102
        form(secret="é" * 99),
        form(lease_seconds="9" * 30),
        form(lease_seconds="9" * 9999),
        form().replace(b"https%3A%2F%2Freviews.example", b"HTTPS%3A%2F%2FREVIEWS.example"),
    ],
)
def test_what_the_recommendation_lets_pass_passes(bench: Bench, body: bytes) -> None:
    assert bench.post(body, "Application/X-WWW-Form-Urlencoded; charset=UTF-8").status == 202


@pytest.mark.parametrize(
    ("asked", "granted"),
    [({}, 864000), ({"lease_seconds": "1"}, 3600), ({"lease_seconds": "7200"}, 7200)]
    + [({"lease_seconds": digits}, 2592000) for digits in ("2592001", "9" * 30)],
)
def test_a_lease_is_clamped_and_told(bench: Bench, asked: dict[str, str], granted: int) -> None:
    bench.subscribe(**asked)
    assert bench.callbacks.gets[0]["hub.lease_seconds"] == str(granted)
    (line,) = hub.list_subscriptions(bench.settings.state_dir, clock=bench.clock)
    assert line.expires_at == bench.clock.now + granted


def test_unsubscribing_ignores_lease_and_secret_even_when_they_are_wrong(bench: Bench) -> None:
    bench.subscribe()
    assert bench.post(form("unsubscribe", lease_seconds="abc", secret="x" * 500)).status == 202


def test_too_many_pending_requests_are_put_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MAX_PENDING", 2)
    answers = [bench.post(form(callback=f"https://s{n}.example/")) for n in range(3)]
    assert [answer.status for answer in answers] == [202, 202, 503]
    assert answers[-1].headers == (("Retry-After", "60"),)
    assert bench.post(form(callback="https://s1.example/")).status == 202  # it replaces its own request
    bench.work()
    assert bench.post(form(callback="https://s2.example/")).status == 202


def test_one_host_may_not_have_too_many_pending_requests(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MAX_UNVERIFIED_PER_HOST", 2)
    codes = [bench.post(form(callback=f"https://S.example:{8000 + n}/")).status for n in range(3)]
    assert codes == [202, 202, 429]
    assert bench.post(form(callback="https://t.example/")).status == 202


def test_a_stranger_cannot_make_the_hub_hammer_a_host(bench: Bench) -> None:
    bench.callbacks.on_get = status(404)
    codes = Counter()
    for _ in range(3 * hub.MAX_UNVERIFIED_PER_HOST):
        codes[bench.post(form(callback="https://victim.example/")).status] += 1
        bench.work()
    assert codes == {202: hub.MAX_UNVERIFIED_PER_HOST, 429: 2 * hub.MAX_UNVERIFIED_PER_HOST}
    assert len(bench.callbacks.sent) == hub.MAX_UNVERIFIED_PER_HOST
    bench.wait(hub.UNCONFIRMED_WINDOW_SECONDS)
    assert bench.post(form(callback="https://victim.example/")).status == 202


def test_subscriptions_are_limited_in_all_and_by_host_but_renewals_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MAX_SUBSCRIPTIONS_PER_HOST", 2)
    bench = Bench(tmp_path, max_subscriptions=3)
    for url in ("https://s.example/1", "https://s.example/2"):
        bench.subscribe(callback=url)
    of_host = bench.post(form(callback="https://s.example/3"))
    assert (of_host.status, of_host.headers) == (429, (("Retry-After", "3600"),))
    assert bench.post(form(callback="https://t.example/")).status == 202  # counts while it is pending
    in_all = bench.post(form(callback="https://u.example/"))
    assert (in_all.status, in_all.headers) == (503, (("Retry-After", "3600"),))
    assert bench.post(form(callback="https://s.example/1")).status == 202
    bench.hub.stop(1)


# ---- Verification ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("callback", "url"),
    [
        ("https://s.example", "https://s.example?"),
        ("https://s.example/cb?", "https://s.example/cb?"),
        ("https://s.example/cb?a=b&", "https://s.example/cb?a=b&"),
        (
            "https://s.example/cb?a=%20b+c&hub.mode=mine&bare",
            "https://s.example/cb?a=%20b+c&hub.mode=mine&bare&",
        ),
    ],
)
def test_a_callback_keeps_its_own_query_to_the_letter(bench: Bench, callback: str, url: str) -> None:
    bench.subscribe(callback=callback)
    bench.change("two")
    bench.work()
    asked, sent = bench.callbacks.sent
    assert asked.url.startswith(
        f"{url}hub.mode=subscribe&hub.topic=https%3A%2F%2Freviews.example%2Ffeed.xml&"
    )
    assert sent.url == callback


def test_challenges_are_random_and_plain(bench: Bench) -> None:
    for _ in range(5):
        bench.subscribe()
    challenges = [asked["hub.challenge"] for asked in bench.callbacks.gets]
    assert len(set(challenges)) == 5
    assert all(len(c) >= 43 and c.replace("-", "").replace("_", "").isalnum() for c in challenges)


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (200, "{}\n"),
        (200, " {}"),
        (200, "{}{}"),
        (200, "<p>{}</p>"),
        (200, ""),
        (204, ""),
        (404, "{}"),
        (500, "{}"),
        (302, "{}"),
        (None, "{}"),
    ],
)
def test_anything_but_the_whole_challenge_with_2xx_leaves_things_as_they_were(
    bench: Bench, code: int | None, body: str
) -> None:
    def almost(message: hub.Message) -> hub.Reply:
        challenge = dict(parse_qsl(message.url))["hub.challenge"]
        return hub.Reply(code, "as told", body.replace("{}", challenge).encode())

    bench.callbacks.on_get = almost
    bench.subscribe()
    assert bench.states() == []
    bench.callbacks.on_get = Callbacks().on_get
    bench.subscribe(secret="old")
    bench.callbacks.on_get = almost
    for mode in ("subscribe", "unsubscribe"):
        bench.post(form(mode, secret="new"))
        bench.work()
    bench.change("two")
    bench.work()
    (sent,) = bench.callbacks.posts
    assert sent.headers["X-Hub-Signature"] == "sha256=" + hmac.new(b"old", b"two", "sha256").hexdigest()


@pytest.mark.parametrize("code", [200, 201, 202, 299])
def test_the_challenge_confirms_with_any_2xx(bench: Bench, code: int) -> None:
    bench.callbacks.on_get = lambda message: hub.Reply(
        code, "as told", dict(parse_qsl(message.url))["hub.challenge"].encode()
    )
    bench.subscribe()
    assert bench.states() == [("active", 0)]


def test_a_request_is_verified_once_and_the_newest_of_a_pair_counts(bench: Bench) -> None:
    for secret in ("first", "second", "third"):
        assert bench.post(form(secret=secret)).status == 202
    bench.work()
    bench.work()
    assert len(bench.callbacks.gets) == 1
    bench.change("two")
    bench.work()
    (sent,) = bench.callbacks.posts
    assert sent.headers["X-Hub-Signature"].endswith(hmac.new(b"third", b"two", "sha256").hexdigest())


def test_an_answer_for_an_older_request_counts_for_nothing(bench: Bench) -> None:
    def slow(message: hub.Message) -> hub.Reply:
        bench.callbacks.on_get = Callbacks().on_get
        assert bench.post(form(secret="newer")).status == 202
        return Callbacks().on_get(message)

    bench.callbacks.on_get = slow
    bench.post(form())
    (job,) = bench.hub._worker.jobs(bench.topics)
    bench.hub._worker.perform(job, bench.topics)
    assert bench.states() == [("subscribe", 0)]
    bench.work()
    assert bench.states() == [("active", 0)]
    assert len(bench.callbacks.gets) == 2


def test_spellings_of_one_callback_are_one_subscription_and_the_latest_is_used(bench: Bench) -> None:
    bench.subscribe(callback="https://s.example/%7Eann/%2f")
    bench.subscribe(callback="https://S.EXAMPLE/~ann/%2f")
    bench.change("two")
    bench.work()
    assert [message.url for message in bench.callbacks.posts] == ["https://S.EXAMPLE/~ann/%2f"]


# ---- Delivery ----------------------------------------------------------------------------------------------


def test_a_notification_is_what_get_serves_with_both_links_and_no_signature(bench: Bench) -> None:
    bench.subscribe()
    bench.change("two")
    bench.work()
    (sent,) = bench.callbacks.posts
    assert (sent.url, sent.body) == ("https://s.example/cb", b"two")
    assert dict(sent.headers) == {
        "Content-Type": "application/atom+xml",
        "Link": f'<{BASE_URL}/api/websub/hub>; rel="hub", <{BASE_URL}/feed.xml>; rel="self"',
    }


@pytest.mark.parametrize("secret", ["s", "pass word", "é" * 99, "\x00"])
def test_a_secret_signs_the_bytes_that_are_sent(bench: Bench, secret: str) -> None:
    bench.subscribe(secret=secret)
    bench.change("zwölf 🙂")
    bench.work()
    (sent,) = bench.callbacks.posts
    expected = hmac.new(secret.encode(), "zwölf 🙂".encode(), hashlib.sha256).hexdigest()
    assert sent.headers["X-Hub-Signature"] == f"sha256={expected}"


def test_a_renewal_may_drop_the_secret(bench: Bench) -> None:
    bench.subscribe(secret="s")
    bench.subscribe()
    bench.change("two")
    bench.work()
    assert "X-Hub-Signature" not in bench.callbacks.posts[0].headers


def test_nothing_is_sent_while_the_content_is_the_same(bench: Bench) -> None:
    bench.subscribe()
    bench.subscribe()
    bench.change("one")
    bench.restart()
    bench.work()
    assert bench.contents == []
    bench.change("two")
    bench.work()
    bench.change("two")
    bench.subscribe()
    bench.restart()
    bench.work()
    assert bench.contents == ["two"]


def test_a_change_between_request_and_verification_is_delivered(bench: Bench) -> None:
    bench.post(form())
    bench.change("two")
    bench.work()
    assert bench.contents == ["two"]


def test_a_change_while_the_service_is_down_is_delivered(bench: Bench) -> None:
    bench.subscribe()
    bench.topics = topics("two")
    bench.restart()
    bench.work()
    assert bench.contents == ["two"]


def test_several_changes_collapse_into_the_newest(bench: Bench) -> None:
    bench.subscribe()
    for text in ("two", "three", "four"):
        bench.change(text)
    bench.work()
    assert bench.contents == ["four"]


def test_a_change_that_is_taken_back_is_not_delivered(bench: Bench) -> None:
    bench.subscribe()
    bench.change("two")
    bench.change("one")
    bench.work()
    assert bench.contents == []


def test_a_change_during_a_delivery_is_delivered_next(bench: Bench) -> None:
    def change_meanwhile(_: hub.Message) -> hub.Reply:
        bench.callbacks.on_post = status(200)
        bench.change("three")
        return hub.Reply(200, "HTTP 200")

    bench.subscribe()
    bench.callbacks.on_post = change_meanwhile
    bench.change("two")
    bench.work()
    assert bench.contents == ["two", "three"]


def test_topics_are_delivered_each_to_its_own_subscribers(bench: Bench) -> None:
    bench.subscribe()
    bench.subscribe(path=JSON_FEED)
    bench.topics = topics("one", json="two")
    bench.hub.publish(bench.topics)
    bench.work()
    (sent,) = bench.callbacks.posts
    assert (sent.body, sent.headers["Content-Type"]) == (b"two", "application/json")
    bench.post(form("unsubscribe", path=JSON_FEED))
    bench.change("three")
    bench.work()
    assert [m.headers["Content-Type"] for m in bench.callbacks.posts[1:]] == ["application/atom+xml"]


@pytest.mark.parametrize("code", [None, 302, 304, 400, 404, 500])
def test_three_failures_in_a_row_remove_and_are_told_once(bench: Bench, code: int | None) -> None:
    bench.subscribe()
    bench.callbacks.on_post = lambda _: hub.Reply(code, "as told")
    bench.change("two")
    bench.work()
    assert bench.states() == [("failing", 1)]
    bench.wait(59)
    assert bench.states() == [("failing", 1)]
    bench.wait(60 * 0.2 + 1)
    assert bench.states() == [("failing", 2)]
    bench.change("three")  # new content does not shorten the wait
    bench.wait(3599)
    assert bench.states() == [("failing", 2)]
    bench.wait(3600 * 0.2 + 1)
    assert bench.states() == []
    bench.wait(DAY)
    assert bench.contents == ["two", "two", "three"]
    assert bench.callbacks.gets[1:] == [
        {
            "hub.mode": "denied",
            "hub.topic": BASE_URL + FEED,
            "hub.reason": "3 deliveries in a row failed; subscribe again to resume",
        }
    ]


def test_a_success_starts_the_count_anew(bench: Bench) -> None:
    bench.subscribe()
    for text in ("two", "three"):
        bench.change(text)
        bench.callbacks.on_post = status(500)
        bench.wait(0)
        bench.wait(100)
        bench.callbacks.on_post = status(200)
        bench.wait(5000)
        assert bench.states() == [("active", 0)]
    assert bench.contents == ["two"] * 3 + ["three"] * 3


def test_a_removed_subscriber_may_subscribe_again_and_starts_afresh(bench: Bench) -> None:
    bench.subscribe()
    bench.callbacks.on_post = status(500)
    bench.change("two")
    for _ in range(3):
        bench.wait(5000)
    bench.subscribe()
    assert bench.states() == [("active", 0)]
    bench.change("three")
    bench.work()
    assert bench.states() == [("failing", 1)]


def test_a_notice_gives_way_to_a_request_that_waits_already(bench: Bench) -> None:
    def subscribe_again(_: hub.Message) -> hub.Reply:
        bench.post(form())
        return hub.Reply(500, "HTTP 500")

    bench.subscribe()
    bench.callbacks.on_post = status(500)
    bench.change("two")
    bench.wait(0)
    bench.wait(5000)
    bench.callbacks.on_post = subscribe_again
    bench.wait(5000)
    assert [asked["hub.mode"] for asked in bench.callbacks.gets] == ["subscribe", "subscribe"]
    assert bench.states() == [("active", 0)]


def test_a_notice_does_not_give_way_to_a_request_to_unsubscribe(bench: Bench) -> None:
    def unsubscribe(_: hub.Message) -> hub.Reply:
        bench.post(form("unsubscribe"))
        return hub.Reply(500, "HTTP 500")

    bench.subscribe()
    bench.callbacks.on_post = status(500)
    bench.change("two")
    bench.wait(0)
    bench.wait(5000)
    bench.callbacks.on_post = unsubscribe
    bench.wait(5000)
    assert [asked["hub.mode"] for asked in bench.callbacks.gets] == ["subscribe", "denied"]
    assert bench.states() == []


def test_notices_that_wait_do_not_grow_without_bound(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MAX_NOTICES", 2)
    for number in range(4):
        bench.subscribe(callback=f"https://s{number}.example/")
    bench.callbacks.on_post = status(500)
    bench.callbacks.on_get = lambda _: hub.Reply(None, "not reachable", own_fault=True)
    bench.change("two")
    for _ in range(3):
        bench.wait(5000)
    assert bench.states() == [("denied", 0)] * 2


@pytest.mark.parametrize(
    "reply", [hub.Reply(404, "HTTP 404"), hub.Reply(None, "refused"), hub.Reply(200, "", b"x")]
)
def test_the_answer_to_a_notice_does_not_matter(bench: Bench, reply: hub.Reply) -> None:
    bench.subscribe()
    bench.callbacks.on_post, bench.callbacks.on_get = status(500), lambda _: reply
    bench.change("two")
    for _ in range(4):
        bench.wait(5000)
    assert [asked["hub.mode"] for asked in bench.callbacks.gets] == ["subscribe", "denied"]
    assert bench.states() == []


def test_gone_removes_at_once_and_without_a_notice(bench: Bench) -> None:
    bench.subscribe()
    bench.callbacks.on_post = status(410)
    bench.change("two")
    bench.work()
    bench.wait(DAY)
    assert bench.states() == []
    assert len(bench.callbacks.sent) == 2


@pytest.mark.parametrize(
    ("code", "value", "seconds"),
    [
        (503, "600", 600),
        (429, "600", 600),
        (503, formatdate(1_800_000_000 + 600, usegmt=True), 600),
        (503, "999999999", 3600),
        (503, "9" * 5000, 3600),
        (503, "1", 60),
        (503, "soon", 60),
        (503, "-5", 60),
        (503, "Fri, 99 Nov 2026 00:00:00 GMT", 60),
        (500, "600", 60),
    ],
)
def test_retry_after_puts_the_next_attempt_off_within_bounds(
    bench: Bench, code: int, value: str, seconds: int
) -> None:
    bench.subscribe()
    bench.callbacks.on_post = status(code, retry_after=value)
    bench.change("two")
    bench.work()
    bench.wait(seconds - 1)
    assert len(bench.contents) == 1
    bench.wait(60 * 0.2 + 1)
    assert len(bench.contents) == 2


def test_a_fault_of_our_own_machine_is_no_failure_of_the_callback(bench: Bench) -> None:
    out_of_descriptors = hub.Reply(None, "not reachable", own_fault=True)
    bench.callbacks.on_get = lambda _: out_of_descriptors
    bench.subscribe()
    assert bench.states() == [("subscribe", 0)]
    bench.callbacks.on_get = Callbacks().on_get
    bench.work()
    bench.callbacks.on_post = lambda _: out_of_descriptors
    bench.change("two")
    for _ in range(5):
        bench.wait(60)
    assert len(bench.contents) == 5
    assert bench.states() == [("active", 0)]


def test_an_error_of_our_own_code_counts_as_a_failure_and_stops_nothing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def bug(_: hub.Message) -> hub.Reply:
        raise RuntimeError("bug")

    bench.subscribe()
    bench.callbacks.on_post = bug
    bench.change("two")
    bench.work()
    assert bench.states() == [("failing", 1)]
    assert "failed unexpectedly" in caplog.text


# ---- Leases and the clock ----------------------------------------------------------------------------------


def test_a_lease_counts_from_the_verification_and_its_end_ends_everything(bench: Bench) -> None:
    bench.post(form(lease_seconds="3600"))
    bench.wait(1000)
    bench.wait(3599)
    bench.change("two")
    bench.work()
    assert bench.contents == ["two"]
    bench.wait(1)
    bench.change("three")
    bench.work()
    assert bench.contents == ["two"]
    assert bench.states() == [("ended", 0)]
    assert bench.hub.counts()["active"] == 0
    assert bench.post(form("unsubscribe")).status == 404


def test_a_lease_that_ends_during_a_back_off_ends_it(bench: Bench) -> None:
    bench.subscribe(lease_seconds="3600")
    bench.callbacks.on_post = status(500)
    bench.change("two")
    bench.work()
    bench.wait(3600)
    assert bench.contents == ["two"]


def test_a_renewal_extends_the_lease(bench: Bench) -> None:
    bench.subscribe(lease_seconds="3600")
    bench.clock.now += 3000
    bench.subscribe(lease_seconds="3600")
    bench.clock.now += 3000
    bench.change("two")
    bench.work()
    assert bench.contents == ["two"]


def test_subscribing_after_the_end_starts_from_the_content_of_then(bench: Bench) -> None:
    bench.subscribe(lease_seconds="3600")
    bench.clock.now += 3600
    bench.change("two")
    bench.subscribe()
    assert bench.contents == []
    assert bench.states() == [("active", 0)]


def test_ended_rows_are_deleted_a_day_later_or_at_once_when_there_are_too_many(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_subscriptions=2)
    bench.subscribe(lease_seconds="3600")
    bench.clock.now += 3600 + DAY - 1
    bench.hub._worker.tidy()
    assert bench.states() == [("ended", 0)]
    bench.clock.now += 1
    bench.hub._worker.tidy()
    assert bench.states() == []
    for n in range(3):
        bench.subscribe(callback=f"https://s{n}.example/", lease_seconds="3600")
        bench.clock.now += 3600
    bench.hub._worker.tidy()
    assert bench.states() == []
    bench.hub.stop(1)


def test_a_clock_that_is_set_back_does_not_hold_up_a_retry(bench: Bench) -> None:
    bench.subscribe()
    bench.callbacks.on_post = status(500)
    bench.change("two")
    bench.work()
    bench.callbacks.on_post = status(200)
    bench.clock.now -= DAY
    bench.wait(0)
    assert bench.contents == ["two", "two"]
    assert bench.states() == [("active", 0)]


def test_a_clock_that_is_set_forward_and_put_right_costs_nobody_a_subscription(bench: Bench) -> None:
    bench.subscribe(lease_seconds="3600")
    bench.clock.now += DAY
    bench.hub._worker.tidy()
    bench.change("two")
    bench.work()
    assert bench.contents == []
    bench.clock.now -= DAY
    bench.work()
    assert bench.contents == ["two"]


# ---- Topics that go, come back or move ---------------------------------------------------------------------


def test_a_topic_that_is_gone_rests_until_it_is_back(bench: Bench) -> None:
    bench.subscribe()
    bench.hub.publish({JSON_FEED: topic(JSON_FEED, "one")})
    bench.work()
    assert bench.post(form()).status == 404
    assert bench.states() == [("active", 0)]
    bench.change("two")
    bench.work()
    assert bench.contents == ["two"]


def test_a_topic_that_is_gone_can_still_be_left(bench: Bench) -> None:
    bench.subscribe()
    bench.hub.publish({})
    assert bench.post(form("unsubscribe")).status == 202
    bench.work()
    assert bench.states() == []


def test_subscriptions_survive_a_new_base_url(bench: Bench) -> None:
    bench.subscribe()
    bench.settings = settings(bench.settings.state_dir)
    object.__setattr__(bench.settings, "base_url", "https://new.example/r")
    bench.restart()
    bench.change("two")
    bench.work()
    assert '<https://new.example/r/feed.xml>; rel="self"' in bench.callbacks.posts[0].headers["Link"]


# ---- Restart, and a store in trouble -----------------------------------------------------------------------


def test_an_accepted_request_survives_a_restart(bench: Bench) -> None:
    bench.post(form())
    bench.restart()
    bench.work()
    assert bench.states() == [("active", 0)]


def test_a_count_of_failures_survives_a_restart(bench: Bench) -> None:
    bench.subscribe()
    bench.callbacks.on_post = status(500)
    bench.change("two")
    for _ in range(2):
        bench.wait(5000)
    bench.restart()
    bench.wait(5000)
    assert bench.states() == []
    bench.restart()
    bench.wait(5000)
    assert bench.contents == ["two"] * 3


def test_a_late_result_does_not_touch_the_successor_of_a_deleted_row(bench: Bench) -> None:
    def replaced_meanwhile(_: hub.Message) -> hub.Reply:
        with bench.hub._store.writing() as rows:
            rows.delete_subscriptions([1])
        bench.callbacks.on_post = status(200)
        bench.subscribe()
        return hub.Reply(500, "HTTP 500")

    bench.subscribe()
    bench.callbacks.on_post = replaced_meanwhile
    bench.change("two")
    (job,) = bench.hub._worker.jobs(bench.topics)
    bench.hub._worker.perform(job, bench.topics)
    assert bench.states() == [("active", 0)]


def full(subject: hub.Hub) -> None:
    (pages,) = subject._store._writer.sqlite.execute("PRAGMA page_count").fetchone()
    subject._store._writer.sqlite.execute(f"PRAGMA max_page_count = {pages}")


def not_full(subject: hub.Hub) -> None:
    subject._store._writer.sqlite.execute("PRAGMA max_page_count = 1000000")


def test_a_full_disk_is_503_for_subscribers_and_passes(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.subscribe()
    full(bench.hub)
    codes = [bench.post(form(callback=f"https://s{n}.example/" + "x" * 2000)) for n in range(30)]
    assert codes[-1] == hub.HubAnswer(503, "requests cannot be stored at present", (("Retry-After", "60"),))
    assert caplog.text.count("disk is full") == 1
    assert bench.hub.counts()["active"] == 1
    not_full(bench.hub)
    assert bench.post(form(callback="https://t.example/" + "x" * 2000)).status == 202
    assert "store: works again" in caplog.text


def test_a_read_only_store_is_503(bench: Bench) -> None:
    bench.hub._store._writer.sqlite.execute("PRAGMA query_only = ON")
    assert bench.post(form()).status == 503


def test_a_locked_store_is_503_and_still_counts(bench: Bench) -> None:
    bench.hub._store._writer.sqlite.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(bench.settings.state_dir / hub.STORE_FILE_NAME)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert bench.post(form()).status == 503
        assert bench.hub.counts()["active"] == 0
    assert bench.post(form()).status == 202


def test_a_busy_store_is_503_soon(bench: Bench) -> None:
    with bench.hub._store.writing():
        assert bench.post(form()).status == 503
    assert bench.post(form()).status == 202


def test_after_stop_everybody_gets_an_answer(bench: Bench) -> None:
    bench.hub.stop(1)
    assert bench.post(form()).status == 503
    assert bench.hub.counts() == {}
    bench.hub.publish(topics("two"))


def test_a_result_that_cannot_be_recorded_is_recorded_later_and_not_sent_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.subscribe()
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        bench.hub._store._writer.sqlite.execute("PRAGMA query_only = OFF")
        return False

    monkeypatch.setattr(bench.hub._stopping, "wait", wait)
    bench.hub._store._writer.sqlite.execute("PRAGMA query_only = ON")
    bench.change("two")
    bench.work()
    assert waits == [hub.TICK_SECONDS]
    assert bench.contents == ["two"]


@pytest.mark.parametrize("trouble", ["not a database", "a directory", "no directory", "another version"])
def test_an_unusable_state_directory_stops_the_start(tmp_path: Path, trouble: str) -> None:
    path = tmp_path / hub.STORE_FILE_NAME
    match trouble:
        case "not a database":
            path.write_bytes(b"something else" * 100)
        case "a directory":
            path.mkdir()
        case "no directory":
            (tmp_path / "file").touch()
            path = tmp_path / "file" / hub.STORE_FILE_NAME
        case "another version":
            with closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA user_version = 99")
    with pytest.raises(hub.HubUnavailable, match=hub.STORE_FILE_NAME):
        hub.Hub(settings(path.parent))


def test_a_second_hub_on_the_same_directory_is_refused_until_the_first_stops(bench: Bench) -> None:
    with pytest.raises(hub.HubUnavailable, match="another hub uses this directory"):
        bench.open()
    bench.restart()


def test_a_certificate_file_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(hub.HubUnavailable, match=r"none\.pem"):
        hub.Hub(settings(tmp_path, ca_file=tmp_path / "none.pem"))


@pytest.mark.parametrize(
    "changes",
    [
        {"lease_seconds": 1},
        {"lease_min_seconds": 0},
        {"lease_max_seconds": 1},
        {"retry_delays_seconds": (1.0,)},
        {"retry_delays_seconds": (1.0, -1.0)},
        {"workers": 0},
        {"timeout_seconds": 0},
        {"max_subscriptions": 0},
    ],
)
def test_settings_that_contradict_themselves_are_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must|needed"):
        settings(tmp_path, **changes)


def test_the_store_is_for_its_owner_only(bench: Bench) -> None:
    bench.subscribe(secret="s")
    files = list(bench.settings.state_dir.iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


# ---- Seen by the operator ----------------------------------------------------------------------------------


def test_listing_shows_hosts_and_creates_nothing(bench: Bench, tmp_path: Path) -> None:
    assert hub.list_subscriptions(tmp_path / "elsewhere") == []
    assert not (tmp_path / "elsewhere").exists()
    bench.subscribe(callback="https://b.example/secret-path")
    bench.subscribe(callback="https://a.example/secret-path")
    bench.callbacks.on_post = status(500)
    bench.change("two")
    bench.work()
    bench.post(form(callback="https://c.example/secret-path"))
    lines = hub.list_subscriptions(bench.settings.state_dir, clock=bench.clock)
    assert [(line.state, line.host, line.failures, line.last_outcome) for line in lines] == [
        ("failing", "a.example", 1, "HTTP 500"),
        ("failing", "b.example", 1, "HTTP 500"),
        ("subscribe", "c.example", 0, ""),
    ]
    assert "secret-path" not in repr(lines)
    bench.hub.stop(1)
    before = sorted(tmp_path.iterdir())
    assert len(hub.list_subscriptions(tmp_path, clock=bench.clock)) == 3
    assert sorted(tmp_path.iterdir()) == before


def test_listing_an_unreadable_store_says_so(tmp_path: Path) -> None:
    (tmp_path / hub.STORE_FILE_NAME).write_bytes(b"something else" * 100)
    with pytest.raises(hub.HubUnavailable, match="not a database"):
        hub.list_subscriptions(tmp_path)


def test_counts_tell_active_pending_failing_and_behind(bench: Bench) -> None:
    bench.subscribe()
    bench.subscribe(path=JSON_FEED)
    bench.post(form(callback="https://t.example/"))
    assert bench.hub.counts() == {"active": 2, "pending": 1, "failing": 0, "behind": 0}
    bench.work()
    bench.callbacks.on_post = lambda m: hub.Reply(500 if m.body == b"x" else 200, "")
    bench.hub.publish(topics("y", feed="x"))
    assert bench.hub.counts() == {"active": 3, "pending": 0, "failing": 0, "behind": 3}
    bench.work()
    assert bench.hub.counts() == {"active": 3, "pending": 0, "failing": 2, "behind": 2}


def test_the_log_has_a_line_an_event_with_the_host_only(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.subscribe(callback="https://s.example:8443/secret-path?key=1", secret="hush")
    bench.callbacks.on_post = status(500)
    bench.change("two")
    for _ in range(3):
        bench.wait(5000)
    digest = topics("two")[FEED].digest[:12]
    assert [record.getMessage() for record in caplog.records] == [
        "hub /feed.xml s.example: subscribe requested",
        "hub /feed.xml s.example: subscribe confirmed: HTTP 200",
        "hub /feed.xml s.example: delivery failed, 1 of 3: HTTP 500",
        "hub /feed.xml s.example: delivery failed, 2 of 3: HTTP 500",
        "hub /feed.xml s.example: delivery failed, 3 of 3, removed: HTTP 500",
        "hub /feed.xml s.example: denied notice: HTTP 200",
    ]
    caplog.clear()
    bench.callbacks.on_post = status(200)
    bench.subscribe(lease_seconds="3600")
    bench.change("three")
    bench.work()
    bench.wait(DAY + 3600)
    bench.hub._worker.tidy()
    digest = topics("three")[FEED].digest[:12]
    assert [record.getMessage() for record in caplog.records][-2:] == [
        f"hub /feed.xml s.example: content {digest} delivered: HTTP 200",
        "hub /feed.xml s.example: lease ended",
    ]


def test_what_is_for_labs_only_is_said_loudly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Bench(tmp_path).hub.stop(1)
    assert caplog.records == []
    Bench(tmp_path, allow_private=True).hub.stop(1)
    assert "PRIVATE ADDRESSES" in caplog.text


# ---- Scheduling --------------------------------------------------------------------------------------------


def job(lane: hub.Lane, host: str, number: int = 0) -> hub.Job:
    return hub.Job(lane, number, (FEED, f"https://{host}/{number}"), host)


def test_jobs_go_by_lane_and_then_one_of_each_host_in_turn() -> None:
    many = [job("delivery", "many.example", n) for n in range(3)]
    jobs = [job("notice", "n"), job("retry", "r"), *many, job("delivery", "one"), job("verification", "v")]
    ordered = [(job.lane, job.host, job.row_id) for job in hub.in_turn(jobs)]
    assert ordered == [
        ("verification", "v", 0),
        ("delivery", "many.example", 0),
        ("delivery", "one", 0),
        ("delivery", "many.example", 1),
        ("delivery", "many.example", 2),
        ("retry", "r", 0),
        ("notice", "n", 0),
    ]


def test_a_host_gets_four_workers_of_sixteen() -> None:
    waiting = [job("delivery", "slow", n) for n in range(40)] + [job("delivery", "quick")]
    started = list(hub.startable(waiting, [], 16))
    assert Counter(job.host for job in started) == {"slow": 4, "quick": 1}
    assert list(hub.startable(waiting[4:40], started, 16)) == []


def test_a_pair_has_one_exchange_at_a_time() -> None:
    delivery, verification = job("delivery", "s"), job("verification", "s")
    assert list(hub.startable([verification], [delivery], 16)) == []
    assert list(hub.startable([verification, delivery], [], 16)) == [verification]


def test_strangers_and_the_dead_leave_workers_to_the_living_and_to_each_other() -> None:
    dead = [job(lane, f"{lane}{n}") for n in range(20) for lane in ("verification", "retry", "notice")]
    living = [job("delivery", f"d{n}") for n in range(20)]
    started = list(hub.startable(dead + living, [], 16))
    assert Counter(job.lane for job in started) == {"verification": 6, "retry": 4, "notice": 2, "delivery": 4}
    assert len(list(hub.startable(living, [], 16))) == 16


@pytest.mark.parametrize("workers", [1, 2, 3, 16])
def test_every_job_gets_its_turn_with_any_number_of_workers(workers: int) -> None:
    agenda = hub.Agenda(workers)
    jobs = [job(lane, f"h{n % 3}", n) for n, lane in enumerate(list(hub.LANES) * 5)]
    agenda.plan(jobs)
    done: list[hub.Job] = []
    while started := agenda.start():
        assert len(started) <= workers
        for one in started:
            agenda.finish(one)
        done += started
    assert sorted(done, key=lambda one: one.row_id) == jobs
