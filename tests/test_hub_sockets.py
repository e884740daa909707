"""The hub with its threads and real HTTPS callbacks on 127.0.0.1, trusted through a throw-away authority."""

from __future__ import annotations

import hmac
import http.server
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from hub_lab import (
    BASE_URL,
    FORM,
    JSON_FEED,
    Behaviour,
    Clock,
    Exchange,
    Lab,
    agree,
    answer,
    form,
    here,
    listening,
    serving,
    settings,
    topic,
    topics,
)

import hub
from links import topic_link_header

ROOT = Path(__file__).parent.parent
NAMES = ("*.lab.example", "localhost", "127.0.0.1")


@pytest.fixture(scope="session")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def ca_file(ca: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.cert_pem.write_to_path(path)
    return path


@pytest.fixture
def lab(ca: trustme.CA, ca_file: Path) -> Iterator[Lab]:
    made = Lab(ca_file)
    with serving(ca, made, *NAMES) as made.port:
        yield made


@contextmanager
def running(lab: Lab, state_dir: Path, text: str = "one", **changes: object) -> Iterator[hub.Hub]:
    """A hub at work, for which every name leads to the lab."""
    clock = changes.pop("clock", time.time)
    chosen = settings(
        state_dir, **{"ca_file": lab.ca_file, "allow_private": True, "timeout_seconds": 5.0} | changes
    )
    subject = hub.Hub(chosen, clock=clock, send=hub.CallbackClient(chosen, here).send)
    subject.publish(topics(text))
    subject.start()
    try:
        yield subject
    finally:
        subject.stop(10)


def post(subject: hub.Hub, body: bytes) -> None:
    assert subject.answer(FORM, body).status == 202


def settled(subject: hub.Hub, **counts: int) -> Callable[[], bool]:
    return lambda: counts.items() <= subject.counts().items()


# ---- The whole way -----------------------------------------------------------------------------------------


def test_life_of_a_subscription(lab: Lab, tmp_path: Path) -> None:
    callback = lab.url("/cb?key=a%20b&bare")
    with running(lab, tmp_path) as subject:
        post(subject, form(callback=callback, secret="hush", lease_seconds="7200"))
        lab.wait(settled(subject, active=1, pending=0))
        (verification,) = lab.arrivals
        assert verification.target.startswith(
            "/cb?key=a%20b&bare&hub.mode=subscribe&hub.topic=https%3A%2F%2Freviews.example%2Ffeed.xml&hub.challenge="
        )
        assert verification.target.endswith("&hub.lease_seconds=7200")

        subject.publish(topics("zwei 🙂"))
        lab.wait(settled(subject, behind=0))
        (notification,) = lab.posts()
        assert notification.target == "/cb?key=a%20b&bare"
        assert notification.body == "zwei 🙂".encode()
        signature = hmac.new(b"hush", notification.body, "sha256").hexdigest()
        wanted = {
            "Host": f"s.lab.example:{lab.port}",
            "Content-Type": "application/atom+xml",
            "Content-Length": str(len(notification.body)),
            "Link": f'<{BASE_URL}/api/websub/hub>; rel="hub", <{BASE_URL}/feed.xml>; rel="self"',
            "X-Hub-Signature": f"sha256={signature}",
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
        assert [asked["hub.mode"] for asked in lab.gets("/cb")] == ["subscribe", "unsubscribe"]
        assert len(lab.posts()) == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_system_resolver_and_addresses_work_too(lab: Lab, tmp_path: Path, host: str) -> None:
    with closing_hub(hub.Hub(settings(tmp_path, ca_file=lab.ca_file, allow_private=True))) as subject:
        subject.publish(topics())
        subject.start()
        post(subject, form(callback=lab.url("/cb", host)))
        lab.wait(settled(subject, active=1))


@contextmanager
def closing_hub(subject: hub.Hub) -> Iterator[hub.Hub]:
    try:
        yield subject
    finally:
        subject.stop(10)


def test_fail_fail_ok_and_three_failures(lab: Lab, tmp_path: Path) -> None:
    clock = Clock()
    lab.on("POST", "/mends", answer(500), Exchange.reset, answer(200))
    lab.on("POST", "/fails", answer(500), answer(404), answer(302, Location=lab.url("/elsewhere")))
    lab.on("POST", "/gone", answer(410))
    with running(lab, tmp_path, clock=clock) as subject:
        for path in ("/mends", "/fails", "/gone"):
            post(subject, form(callback=lab.url(path)))
        lab.wait(settled(subject, active=3, pending=0))
        subject.publish(topics("two"))
        lab.wait(settled(subject, active=2, failing=2))
        clock.now += 4400
        lab.wait(lambda: len(lab.posts("/fails")) == len(lab.posts("/mends")) == 2)
        lab.wait(lambda: [line.failures for line in hub.list_subscriptions(tmp_path)] == [2, 2])
        clock.now += 4400
        lab.wait(settled(subject, active=1, failing=0))
        lab.wait(lambda: len(lab.gets("/fails")) == 2)
    assert [len(lab.posts(path)) for path in ("/mends", "/fails", "/gone", "/elsewhere")] == [3, 3, 1, 0]
    assert lab.gets("/fails")[1]["hub.mode"] == "denied"
    assert len(lab.gets("/gone")) == len(lab.gets("/mends")) == 1


# ---- What callbacks may do to their requests ---------------------------------------------------------------


def send_all(exchange: Exchange, data: bytes) -> None:
    exchange.wfile.write(data)


def hang(exchange: Exchange) -> None:
    exchange.server.lab.released.wait(30)


def drip(start: bytes, drop: bytes) -> Behaviour:
    """Bytes that never end, ten a second: each in time, all together not."""

    def behave(exchange: Exchange) -> None:
        send_all(exchange, start)
        while not exchange.server.lab.released.wait(0.1):
            send_all(exchange, drop)

    return behave


def pour(start: bytes, drop: bytes) -> Behaviour:
    """Bytes that never end, as fast as they go."""

    def behave(exchange: Exchange) -> None:
        send_all(exchange, start)
        while not exchange.server.lab.released.is_set():
            send_all(exchange, drop)

    return behave


def raw(data: bytes) -> Behaviour:
    return lambda exchange: send_all(exchange, data)


OK = b"HTTP/1.1 200 OK\r\n"
TOO_MUCH = "answer is larger than 65536 bytes|answer is not HTTP"  # whichever bound is met first


def exchange_with(lab: Lab, message: hub.Message, **changes: object) -> hub.Reply:
    chosen = settings(Path("unused"), ca_file=lab.ca_file, allow_private=True, **changes)
    return hub.CallbackClient(chosen, here).send(message)


def notification(url: str, body: bytes = b"content", timeout_seconds: float = 5.0) -> hub.Message:
    return hub.Message("POST", url, {"Content-Type": "text/plain"}, body, timeout_seconds, 0)


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        (hang, "no complete answer in time"),
        (drip(b"", b"H"), "no complete answer in time"),
        (drip(OK, b"A: b\r\n"), "no complete answer in time"),
        (drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "no complete answer in time"),
        (pour(OK + b"A: ", b"b" * 1000), TOO_MUCH),
        (pour(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), TOO_MUCH),
        (pour(OK, b"A: " + b"b" * 10000 + b"\r\n"), TOO_MUCH),
        (pour(OK, b"A: b\r\n"), TOO_MUCH),
        (pour(b"", b"\0" * 1000), TOO_MUCH),
        (raw(b""), "connection closed or reset"),
        (Exchange.reset, "connection closed or reset"),
        (raw(b"SSH-2.0-OpenSSH_9.9\r\n"), "answer is not HTTP"),
        (raw(b"HTTP/1.1 abc\r\n\r\n"), "answer is not HTTP"),
        (answer(304), "HTTP 304"),
        (answer(429), "HTTP 429"),
    ],
)
def test_a_delivery_fails_in_time_whatever_the_callback_does(
    lab: Lab, behave: Behaviour, outcome: str
) -> None:
    lab.on("POST", "/cb", behave)
    started = time.monotonic()
    reply = exchange_with(lab, notification(lab.url("/cb"), timeout_seconds=0.8))
    assert not reply.is_success
    assert re.fullmatch(outcome, reply.outcome)
    assert time.monotonic() - started < 5
    assert not reply.own_fault


@pytest.mark.parametrize("endless", [pour, drip])
def test_a_delivery_is_done_at_the_end_of_the_head(lab: Lab, endless: Callable[..., Behaviour]) -> None:
    lab.on("POST", "/cb", endless(OK + b"Content-Length: 99999999\r\n\r\n", b"body" * 1000))
    assert exchange_with(lab, notification(lab.url("/cb"))).is_success


def test_a_body_that_nobody_reads_ends_in_time(lab: Lab, ca: trustme.CA) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("s.lab.example").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[ssl.SSLSocket] = []
        thread = threading.Thread(
            target=lambda: accepted.append(context.wrap_socket(server.accept()[0], server_side=True))
        )
        thread.start()
        message = notification(f"https://s.lab.example:{server.getsockname()[1]}/", b"x" * 20_000_000, 0.8)
        started = time.monotonic()
        assert exchange_with(lab, message).outcome == "no complete answer in time"
        assert time.monotonic() - started < 5
        thread.join()
        accepted[0].close()


def test_a_handshake_that_never_comes_ends_in_time(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        message = notification(f"https://s.lab.example:{server.getsockname()[1]}/", timeout_seconds=0.5)
        started = time.monotonic()
        assert exchange_with(lab, message).outcome == "no complete answer in time"
        assert time.monotonic() - started < 5


def test_a_name_that_nobody_resolves_ends_in_time(lab: Lab) -> None:
    def hanging(host: str, port: int) -> Sequence[hub.AddressInfo]:
        lab.released.wait(30)
        return here(host, port)

    client = hub.CallbackClient(settings(Path("unused"), ca_file=lab.ca_file, allow_private=True), hanging)
    started = time.monotonic()
    reply = client.send(notification(lab.url("/cb"), timeout_seconds=0.5))
    assert reply.outcome == "no complete answer in time"
    assert time.monotonic() - started < 5
    lab.released.set()
    assert lab.arrivals == []


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ([], "name not resolved"),
        (socket.gaierror(-2, "Name or service not known"), "name not resolved"),
        (UnicodeError("label too long"), "name not resolved"),
    ],
)
def test_a_name_that_is_none_is_a_failure(lab: Lab, found: list[Any] | Exception, outcome: str) -> None:
    def resolve(_: str, __: int) -> Sequence[hub.AddressInfo]:
        if isinstance(found, Exception):
            raise found
        return found

    client = hub.CallbackClient(settings(Path("unused"), ca_file=lab.ca_file), resolve)
    assert client.send(notification(lab.url("/cb"))) == hub.Reply(None, outcome)


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        (answer(200, b"x" * 5000), "HTTP 200"),
        (answer(200, b"x"), "HTTP 200"),
        (raw(OK + b"Content-Length: 100\r\n\r\nx"), "answer ended early"),
        (raw(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nx"), "answer ended early"),
    ],
)
def test_what_is_logged_of_a_wrong_answer_says_what_was_wrong(
    lab: Lab, behave: Behaviour, outcome: str
) -> None:
    lab.on("GET", "/cb", behave)
    message = hub.Message("GET", lab.url("/cb"), {}, None, 5.0, 44)
    assert exchange_with(lab, message).outcome == outcome


def test_nobody_there_is_a_failure(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert exchange_with(lab, notification(f"https://s.lab.example:{port}/")).outcome == "connection refused"


def test_a_second_address_is_tried_when_the_first_does_not_answer(lab: Lab) -> None:
    def resolve(host: str, port: int) -> list[hub.AddressInfo]:
        return [*here(host, 1), *here(host, port)]

    client = hub.CallbackClient(settings(Path("unused"), ca_file=lab.ca_file, allow_private=True), resolve)
    assert client.send(notification(lab.url("/cb"))).outcome == "HTTP 200"


def challenged(behave: Callable[[Exchange, bytes], None]) -> Behaviour:
    def with_challenge(exchange: Exchange) -> None:
        match = re.search(r"hub\.challenge=([\w-]+)", exchange.path)
        assert match
        behave(exchange, match[1].encode())

    return with_challenge


@pytest.mark.parametrize(
    "behave",
    [
        hang,
        drip(OK + b"\r\n", b"x"),
        answer(200, b"something else"),
        answer(404),
        Exchange.reset,
        challenged(lambda e, c: e.answer(404, c)),
        challenged(
            lambda e, c: e.answer(302, c, Location=e.server.lab.url("/elsewhere?" + e.path.partition("?")[2]))
        ),
        challenged(
            lambda e, c: e.answer(307, c, Location=e.server.lab.url("/elsewhere?" + e.path.partition("?")[2]))
        ),
        challenged(lambda e, c: e.answer(200, c + b"\n")),
        challenged(lambda e, c: e.answer(200, c[:-1])),
        challenged(lambda e, c: pour(OK + b"\r\n" + c, b"x" * 1000)(e)),
        challenged(lambda e, c: pour(OK + b"Content-Length: 64000000\r\n\r\n" + c, b"x" * 1000)(e)),
        challenged(lambda e, c: raw(OK + b"Content-Length: 100\r\n\r\n" + c)(e)),
        challenged(lambda e, c: raw(OK + b"Content-Length: 9999999999999\r\n\r\n" + c)(e)),
        challenged(lambda e, c: raw(OK + b"Transfer-Encoding: chunked\r\n\r\n2b\r\n" + c)(e)),
        challenged(lambda e, c: raw(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b" + c)(e)),
    ],
)
def test_a_verification_that_is_not_answered_right_makes_no_subscription(
    lab: Lab, tmp_path: Path, behave: Behaviour
) -> None:
    lab.on("GET", "/cb", behave)
    with running(lab, tmp_path, timeout_seconds=1.6) as subject:
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(settled(subject, pending=0))
        assert subject.counts()["active"] == 0
        assert len(lab.arrivals) == 1


@pytest.mark.parametrize(
    "behave",
    [
        challenged(lambda e, c: e.answer(200, c, Content_Type="application/octet-stream")),
        challenged(lambda e, c: e.answer(201, c)),
        challenged(lambda e, c: raw(OK + b"\r\n" + c)(e)),
        challenged(lambda e, c: raw(b"HTTP/1.0 200 OK\r\n\r\n" + c)(e)),
        challenged(
            lambda e, c: raw(OK + b"Transfer-Encoding: chunked\r\n\r\n2b\r\n" + c + b"\r\n0\r\n\r\n")(e)
        ),
        challenged(lambda e, c: raw(b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"\r\n" + c)(e)),
    ],
)
def test_any_form_of_answer_that_is_the_challenge_confirms(
    lab: Lab, tmp_path: Path, behave: Behaviour
) -> None:
    lab.on("GET", "/cb", behave)
    with running(lab, tmp_path) as subject:
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(settled(subject, active=1, pending=0))


# ---- Whom the hub talks to ---------------------------------------------------------------------------------


def test_a_certificate_has_to_be_for_the_name(lab: Lab) -> None:
    reply = exchange_with(lab, notification(lab.url("/cb", "s.other.example")))
    assert reply.outcome == "certificate not valid for this host"
    assert lab.arrivals == []


def test_a_certificate_of_an_unknown_authority_is_not_trusted(lab: Lab) -> None:
    with serving(trustme.CA(), lab, *NAMES) as port:
        reply = exchange_with(lab, notification(f"https://s.lab.example:{port}/cb"))
    assert reply.outcome == "certificate not valid for this host"
    assert lab.arrivals == []


def addresses(*given: str) -> hub.Resolve:
    def resolve(_: str, port: int) -> list[hub.AddressInfo]:
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in given]
        return [(f, socket.SOCK_STREAM, 6, "", (a, port)) for f, a in zip(families, given, strict=True)]

    return resolve


@pytest.mark.parametrize(
    "found",
    [
        ["127.0.0.1"],
        ["0.0.0.0"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],
        ["127.0.0.1", "8.8.8.8"],
        ["2606:4700::1", "10.0.0.1"],
        ["169.254.169.254"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["fe80::1%1"],
    ],
)
def test_a_name_with_an_inner_address_is_never_contacted(lab: Lab, found: list[str]) -> None:
    with listening() as (port, visitors):
        client = hub.CallbackClient(settings(Path("unused"), ca_file=lab.ca_file), addresses(*found))
        reply = client.send(notification(f"https://s.lab.example:{port}/cb"))
        assert reply.outcome.endswith(" is not a public address")
    assert visitors == []


def test_the_system_resolver_cannot_be_tricked_into_an_inner_address(lab: Lab) -> None:
    """Past the checks at the door, as if a row had come into the store some other way."""
    with listening() as (port, visitors):
        client = hub.CallbackClient(settings(Path("unused"), ca_file=lab.ca_file))
        for host in (
            "localhost",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0",
            "[::1]",
            "[::ffff:7f00:1]",
            "①②⑦.0.0.1",
        ):
            assert client.send(notification(f"https://{host}:{port}/cb")).status is None
    assert visitors == []


def test_a_name_is_resolved_once_an_exchange_and_anew_for_the_next(lab: Lab) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[hub.AddressInfo]:
        asked.append(host)
        return list(addresses("127.0.0.1" if len(asked) > 1 else "8.8.8.8")(host, port))

    client = hub.CallbackClient(settings(Path("unused"), ca_file=lab.ca_file), rebinding)
    with listening() as (port, visitors):
        # The first answer is public, so the hub would go there and nowhere else; loopback tests may not.
        with pytest.MonkeyPatch.context() as patch:
            went: list[object] = []
            patch.setattr(hub, "connect_to_one", lambda found, _: went.append(found[0][4]) or socket.socket())
            client.send(notification(f"https://s.lab.example:{port}/cb", timeout_seconds=1))
            assert went == [("8.8.8.8", port)]
        reply = client.send(notification(f"https://s.lab.example:{port}/cb"))
    assert reply.outcome == "127.0.0.1 is not a public address"
    assert asked == ["s.lab.example"] * 2
    assert visitors == []


def test_strangers_cannot_make_the_hub_contact_inner_places(lab: Lab, tmp_path: Path) -> None:
    with listening() as (port, visitors), running(lab, tmp_path, allow_private=False) as subject:
        hosts = [
            "127.0.0.1",
            "localhost",
            "127.1",
            "0x7f000001",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
            "2130706433",
        ]
        for host in hosts:
            assert subject.answer(FORM, form(callback=f"https://{host}:{port}/")).status == 400
        # A public name that leads to this machine is known only when it is asked for.
        post(subject, form(callback=f"https://s.lab.example:{port}/"))
        lab.wait(settled(subject, pending=0))
        assert subject.counts()["active"] == 0
    assert visitors == []


def test_the_environment_has_no_say(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as (port, visitors):
        for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        assert exchange_with(lab, notification(lab.url("/cb"))).outcome == "HTTP 200"
    assert visitors == []


def test_cookies_are_not_kept(lab: Lab) -> None:
    lab.on("POST", "/cb", answer(200, Set_Cookie="a=b"))
    client = hub.CallbackClient(settings(Path("unused"), ca_file=lab.ca_file, allow_private=True), here)
    for _ in range(2):
        client.send(notification(lab.url("/cb")))
    assert "Cookie" not in lab.arrivals[1].headers


def test_running_out_of_descriptors_is_our_own_fault(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(hub.socket, "socket", none_left)
    assert exchange_with(lab, notification(lab.url("/cb"))).own_fault


# ---- Fairness ----------------------------------------------------------------------------------------------


def test_forty_hanging_callbacks_of_one_host_delay_nobody(lab: Lab, tmp_path: Path) -> None:
    with running(lab, tmp_path, timeout_seconds=30.0) as subject:
        for number in range(40):
            lab.on("POST", f"/hang/{number}", hang)
            post(subject, form(callback=lab.url(f"/hang/{number}", "slow.lab.example")))
        for number in range(40):
            post(subject, form(callback=lab.url(f"/ok/{number}", f"h{number % 10}.lab.example")))
        lab.wait(settled(subject, active=80, pending=0))
        subject.publish(topics("two"))
        lab.wait(lambda: sum(arrival.path.startswith("/ok/") for arrival in lab.posts()) == 40)
        assert sum(arrival.path.startswith("/hang/") for arrival in lab.posts()) <= 4
        lab.released.set()


def test_deliveries_to_one_subscription_never_overlap(lab: Lab, tmp_path: Path) -> None:
    inside: list[Exchange] = []
    met: list[int] = []

    def dawdle(exchange: Exchange) -> None:
        met.append(len(inside))
        inside.append(exchange)
        lab.released.wait(0.05)
        inside.remove(exchange)  # before the answer, after which the hub may send the next
        exchange.answer(200)

    lab.on("POST", "/cb", dawdle)
    with running(lab, tmp_path) as subject:
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(settled(subject, active=1, pending=0))
        for number in range(20):
            subject.publish(topics(f"feed {number}"))
            lab.released.wait(0.02)
        lab.wait(settled(subject, behind=0))
    assert lab.posts()[-1].body == b"feed 19"
    assert len(met) > 1
    assert set(met) == {0}


def test_five_hundred_subscribers_are_served(lab: Lab, tmp_path: Path) -> None:
    body = "x" * 100_000
    with running(lab, tmp_path, timeout_seconds=20.0) as subject:
        for number in range(500):
            post(subject, form(callback=lab.url(f"/{number}", f"h{number % 50}.lab.example"), secret="hush"))
        lab.wait(settled(subject, active=500, pending=0))
        started = time.monotonic()
        subject.publish(topics(body))
        lab.wait(settled(subject, behind=0))
        assert time.monotonic() - started < 15
        assert subject.counts() == {"active": 500, "pending": 0, "failing": 0, "behind": 0}
    assert sorted(int(arrival.path[1:]) for arrival in lab.posts()) == list(range(500))
    assert {arrival.body for arrival in lab.posts()} == {body.encode()}


# ---- Start, stop and being killed --------------------------------------------------------------------------


def test_stop_lets_the_running_delivery_finish_and_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    def answer_late(exchange: Exchange) -> None:
        hang(exchange)
        agree(exchange)

    lab.on("POST", "/cb", answer_late)
    with running(lab, tmp_path) as subject:
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(settled(subject, active=1))
        subject.publish(topics("two"))
        lab.wait(lambda: lab.posts())
        threading.Timer(0.2, lab.released.set).start()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("hub-")] == []
    with running(lab, tmp_path, "two") as subject:
        post(subject, form(callback=lab.url("/other")))
        lab.wait(settled(subject, active=2, pending=0, behind=0))
    assert len(lab.posts()) == 1


def test_stop_does_not_wait_longer_than_it_is_told(lab: Lab, tmp_path: Path) -> None:
    lab.on("GET", "/cb", hang)
    with running(lab, tmp_path, timeout_seconds=60.0) as subject:
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(lambda: lab.gets())
        started = time.monotonic()
        subject.stop(0.2)
        assert time.monotonic() - started < 5
        lab.released.set()
    lab.on("GET", "/cb", agree)
    with running(lab, tmp_path) as subject:
        lab.wait(settled(subject, active=1, pending=0))


def test_the_scheduler_survives_whatever_happens(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running(lab, tmp_path) as subject:
        with monkeypatch.context() as patch:
            patch.setattr(hub.Worker, "jobs", lambda *_: 1 / 0)
            subject.publish(topics())
            lab.wait(lambda: "scheduler met an unexpected error" in caplog.text)
        post(subject, form(callback=lab.url("/cb")))
        lab.wait(settled(subject, active=1))
        with monkeypatch.context() as patch:
            patch.setattr(hub.Worker, "perform", lambda *_: 1 / 0)
            subject.publish(topics("two"))
            lab.wait(lambda: "job of the hub failed" in caplog.text)
        lab.wait(settled(subject, behind=0))


PROCESS = """
import hashlib, pathlib, sys
import hub
state_dir, ca_file, text = sys.argv[1:]
settings = hub.HubSettings(base_url="https://reviews.example", state_dir=pathlib.Path(state_dir),
                           ca_file=pathlib.Path(ca_file), allow_private=True, timeout_seconds=60)
subject = hub.Hub(settings)
digest = hashlib.sha256(text.encode()).hexdigest()
subject.publish({"/feed.xml": hub.Topic("/feed.xml", "application/atom+xml", text.encode(), digest)})
subject.start()
for line in sys.stdin:
    print(subject.answer("application/x-www-form-urlencoded", line.strip().encode()).status, flush=True)
"""


@contextmanager
def process(lab: Lab, state_dir: Path, text: str) -> Iterator[Callable[[bytes], int]]:
    """A hub in a process of its own that is killed at the end; gives a way to post to it."""
    command = [sys.executable, "-c", PROCESS, str(state_dir), str(lab.ca_file), text]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        stdin, stdout = child.stdin, child.stdout

        def post_line(body: bytes) -> int:
            stdin.write(body + b"\n")
            stdin.flush()
            return int(stdout.readline())

        try:
            yield post_line
        finally:
            child.send_signal(signal.SIGKILL)


def test_a_killed_hub_goes_on_where_it_was(lab: Lab, tmp_path: Path) -> None:
    callback = lab.url("/cb", "localhost")
    lab.on("GET", "/cb", hang, agree)
    lab.on("POST", "/cb", hang, agree)

    def rows() -> list[tuple[str, int]]:
        return [(line.state, line.failures) for line in hub.list_subscriptions(tmp_path)]

    def delivered() -> bool:
        return any(line.last_outcome == "HTTP 200" for line in hub.list_subscriptions(tmp_path))

    with process(lab, tmp_path, "one") as post_line:
        assert post_line(form(callback=callback)) == 202
        lab.wait(lambda: len(lab.gets()) == 1)
    assert rows() == [("subscribe", 0)]  # killed while the callback was being asked
    with process(lab, tmp_path, "one"):
        lab.wait(lambda: rows() == [("active", 0)])
    with process(lab, tmp_path, "two"):  # changed while down
        lab.wait(lambda: len(lab.posts()) == 1)
    assert not delivered()  # killed in mid-delivery
    with process(lab, tmp_path, "two"):
        lab.wait(delivered)
    assert [arrival.body for arrival in lab.posts()] == [b"two", b"two"]
    with process(lab, tmp_path, "two") as post_line:
        assert post_line(form(callback=lab.url("/other", "localhost"))) == 202
        lab.wait(lambda: len(rows()) == 2 and {state for state, _ in rows()} == {"active"})
    assert len(lab.posts()) == 2
    assert len(lab.gets("/cb")) == 2


# ---- The example -------------------------------------------------------------------------------------------


class Front(http.server.BaseHTTPRequestHandler):
    """The least service around a hub: GET of the topics, POST of the form."""

    hub: hub.Hub
    base_url: str
    topics: Mapping[str, hub.Topic]

    def do_GET(self) -> None:
        found = self.topics[self.path]
        self.send_response(200)
        links = topic_link_header(self.base_url, self.path)
        self.send_header("Link", links)
        self.send_header("Content-Type", found.content_type)
        self.end_headers()
        self.wfile.write(found.body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        given = self.hub.answer(self.headers["Content-Type"], body)
        self.send_response(given.status)
        self.end_headers()
        self.wfile.write(given.text.encode())

    def log_message(self, *_: object) -> None:
        pass


def feed(*items: tuple[str, str]) -> dict[str, hub.Topic]:
    listed = ", ".join(f'{{"id": "{name}", "content_text": "{text}"}}' for name, text in items)
    return {JSON_FEED: topic(JSON_FEED, f'{{"items": [{listed}]}}', "application/json")}


def test_the_example_subscriber_prints_what_changes(ca: trustme.CA, ca_file: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "subscriber.pem"
    issued = ca.issue_cert("localhost")
    certificate.write_bytes(
        issued.private_key_pem.bytes() + b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front) as server:
        base_url = f"http://127.0.0.1:{server.server_port}"
        chosen = hub.HubSettings(
            base_url=base_url, state_dir=tmp_path / "state", ca_file=ca_file, allow_private=True
        )
        Front.hub, Front.base_url, Front.topics = hub.Hub(chosen), base_url, feed(("1", "old"))
        Front.hub.publish(Front.topics)
        Front.hub.start()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, str(ROOT / "examples" / "subscriber.py"), base_url + JSON_FEED]
        command += [f"https://localhost:{port}/websub", str(certificate)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout
            lines = child.stdout
            try:
                first = {lines.readline(), lines.readline()}
                assert first == {
                    "202 accepted; the callback will now be asked to confirm\n",
                    "subscribe \n",
                }
                Front.topics = feed(("2", "new"), ("1", "old"))
                Front.hub.publish(Front.topics)
                assert lines.readline() == "new or changed: 2 new\n"
                with pytest.raises(urllib.error.HTTPError, match="403") as refusal:
                    forged(f"https://localhost:{port}/websub", ca_file)
                refusal.value.close()
                Front.topics = feed(("2", "new"), ("1", "edited"))
                Front.hub.publish(Front.topics)
                assert lines.readline() == "new or changed: 1 edited\n"
            finally:
                child.kill()
                server.shutdown()
                Front.hub.stop(5)
                thread.join()


def forged(url: str, ca_file: Path) -> None:
    request = urllib.request.Request(url, b"{}", {"X-Hub-Signature": "sha256=" + "0" * 64})
    urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ca_file)).close()
