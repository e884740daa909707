"""The HTTPS client against real callbacks on 127.0.0.1.

What callbacks may answer - Whose fault a failure is - Where the client goes
"""

from __future__ import annotations

import errno
import re
import resource
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest
from lab.callback_lab import (
    Behaviour,
    Exchange,
    Lab,
    answer,
    hang,
    here,
    left_alone,
    open_lab,
)
from lab.services import ROOT, free_port
from lab.tools import NAMESPACE, limited, needs

from reviewslib.websub import callbacks
from reviewslib.websub.callback_messages import CallbackRequest, CallbackResponse
from reviewslib.websub.callbacks import CallbackClient, Resolve


def client(lab: Lab, resolve: Resolve = here, **more: Any) -> CallbackClient:
    """A client that trusts the lab; `more` are its other parameters."""
    usual: dict[str, Any] = {"allow_private": True, "is_online": lambda: True}
    return CallbackClient("lab/1.0", lab.ca_file, resolve=resolve, **usual | more)


def post(
    url: str, body: bytes = b"content", timeout_seconds: float = 5.0
) -> CallbackRequest:
    return CallbackRequest(
        "POST", url, {"Content-Type": "text/plain"}, body, timeout_seconds, 0
    )


def failing(error: Exception) -> Mock:
    """A stand-in that raises an error."""
    return Mock(side_effect=error)


# ---- What callbacks may answer -----------------------------------------------------------------------------


def raw(data: bytes) -> Behaviour:
    return lambda exchange: exchange.wfile.write(data) and None


def endless(pause_seconds: float, start: bytes, more: bytes) -> Behaviour:
    """Endless bytes: each in time, but too slow together, or too many."""

    def behave(exchange: Exchange) -> None:
        exchange.wfile.write(start)
        while not exchange.server.released.wait(pause_seconds):
            exchange.wfile.write(more)

    return behave


drip = partial(endless, 0.1)
pour = partial(endless, 0)
OK = b"HTTP/1.1 200 OK\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LATE = "no complete answer in time"
NOT_HTTP = "answer is not HTTP"
TOO_LARGE = "answer is larger than 65536 bytes"
TOO_MUCH = f"{TOO_LARGE}|{NOT_HTTP}"  # whichever bound is met first


def head(size: int) -> bytes:
    """The head of an answer, of so many bytes."""
    return OK + b"A: ".ljust(size - len(OK) - 4, b"b") + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        (hang, LATE),
        (drip(b"", b"H"), LATE),
        (drip(OK, b"A: b\r\n"), LATE),
        (drip(b"", CONTINUE), LATE),
        (pour(OK + b"A: ", b"b" * 1000), TOO_MUCH),
        (pour(b"", CONTINUE), TOO_MUCH),
        (pour(OK, b"A: b\r\n"), TOO_MUCH),
        (pour(b"", b"\0" * 1000), TOO_MUCH),
        (raw(head(65537)), TOO_LARGE),
        (raw(b""), "connection closed or reset"),
        (Exchange.reset, "connection closed or reset"),
        (raw(b"SSH-2.0-OpenSSH_9.9\r\n"), NOT_HTTP),
        (raw(b"HTTP/1.1 abc\r\n\r\n"), NOT_HTTP),
        (answer(300), "HTTP 300"),
        (answer(429), "HTTP 429"),
    ],
)
def test_a_bad_answer_is_a_failure_of_the_callback_in_time(
    lab: Lab, behave: Behaviour, outcome: str
) -> None:
    lab.on("POST", "/cb", behave)
    response = client(lab).send(
        post(lab.url("/cb"), timeout_seconds=0.4 if outcome == LATE else 5.0)
    )
    assert (response.is_success, response.own_fault) == (False, False)
    assert re.fullmatch(outcome, response.outcome)


ENDLESS = OK + b"Content-Length: 99999999\r\n\r\n"


@pytest.mark.parametrize(
    "behave",
    [
        pour(ENDLESS, b"body" * 1000),
        drip(ENDLESS, b"body"),
        raw(OK + b"Transfer-Encoding: chunked\r\n\r\n"),
        raw(head(65536)),
    ],
)
def test_a_delivery_is_done_at_the_end_of_the_head(lab: Lab, behave: Behaviour) -> None:
    lab.on("POST", "/cb", behave)
    response = client(lab).send(post(lab.url("/cb")))
    assert response == CallbackResponse(200, "HTTP 200")


@pytest.mark.parametrize(
    ("behave", "outcome", "body"),
    [
        (answer(200, b"x" * 44), "HTTP 200", b"x" * 44),
        (answer(201, b"x" * 5000), "HTTP 201", b"x" * 44),
        (answer(300, b"x"), "HTTP 300", b""),
        (raw(OK + b"\r\nxx"), "HTTP 200", b"xx"),
        (raw(b"HTTP/1.0 200 OK\r\n\r\nx"), "HTTP 200", b"x"),
        (raw(CONTINUE + OK + b"\r\nx"), "HTTP 200", b"x"),
        (
            raw(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nxx\r\n0\r\n\r\n"),
            "HTTP 200",
            b"xx",
        ),
        (raw(OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b"), "HTTP 200", b"\x1f\x8b"),
        (
            raw(OK + b"Content-Length: 9999999999999\r\n\r\n" + b"x" * 43),
            "HTTP 200",
            b"x" * 43,
        ),
        (raw(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nx"), NOT_HTTP, b""),
        (
            raw(OK + b"Transfer-Encoding: chunked\r\n\r\n-1" + b"f" * 20),
            "answer cannot be read",
            b"",
        ),
        (pour(OK + b"\r\n", b"x" * 1000), "HTTP 200", b"x" * 44),
        (
            pour(OK + b"Content-Length: 64000000\r\n\r\n", b"x" * 1000),
            "HTTP 200",
            b"x" * 44,
        ),
        (drip(OK + b"\r\n", b"x"), LATE, b""),
    ],
)
def test_only_the_wanted_bytes_are_read(
    lab: Lab, behave: Behaviour, outcome: str, body: bytes
) -> None:
    lab.on("GET", "/cb", behave)
    timeout_seconds = 0.4 if outcome == LATE else 5.0
    response = client(lab).send(
        CallbackRequest("GET", lab.url("/cb"), {}, None, timeout_seconds, 44)
    )
    assert (response.outcome, response.body) == (outcome, body)


@pytest.mark.parametrize("reads", [True, False])
def test_a_slow_reader_or_handshake_ends_in_time(lab: Lab, reads: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    lab.ca.issue_cert("s.lab.example").configure_cert(context)

    def read_slowly() -> None:
        with (
            context.wrap_socket(server.accept()[0], server_side=True) as accepted,
            suppress(OSError),
        ):
            while accepted.recv(10_000):
                lab.released.wait(0.05)

    with socket.create_server(("127.0.0.1", 0)) as server:
        if reads:
            threading.Thread(target=read_slowly).start()
        request = post(
            f"https://s.lab.example:{server.getsockname()[1]}/", b"x" * 20_000_000, 0.6
        )
        assert client(lab).send(request) == CallbackResponse(None, LATE)
        lab.released.set()


def test_a_port_that_speaks_no_tls_is_a_failure(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connected = socket.create_connection(server.getsockname())
        with server.accept()[0] as peer:
            peer.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
            subject = client(lab, connect=lambda *_: connected)
            assert subject.send(post(lab.url("/cb"))) == CallbackResponse(
                None, "TLS failed"
            )


def test_a_name_that_nobody_resolves_ends_in_time(lab: Lab) -> None:
    request = post(lab.url("/cb"), timeout_seconds=0.5)
    assert client(lab, lambda _: [str(lab.released.wait(30))]).send(
        request
    ) == CallbackResponse(None, LATE)
    assert [
        thread.daemon
        for thread in threading.enumerate()
        if thread.name == "hub-resolver"
    ] == [True]


no_such_name = failing(socket.gaierror(-2, "Name or service not known"))


@pytest.mark.parametrize(
    "resolve", [no_such_name, lambda _: [], lambda _: ("a" * 64).encode("idna")]
)
def test_an_invalid_host_name_is_a_failure(lab: Lab, resolve: Resolve) -> None:
    assert client(lab, resolve).send(post(lab.url("/cb"))) == CallbackResponse(
        None, "name not resolved"
    )


# ---- Whose fault a failure is ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "is_online", "is_own"),
    [
        *(
            (code, False, True)
            for code in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT)
        ),
        *(
            (code, True, False)
            for code in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT)
        ),
        *(
            (code, True, True)
            for code in (
                errno.ENETDOWN,
                errno.EADDRNOTAVAIL,
                errno.EMFILE,
                errno.ENOMEM,
            )
        ),
    ],
)
def test_a_lack_of_resources_or_of_a_route_is_our_own_fault(
    lab: Lab, code: int, is_online: bool, is_own: bool
) -> None:
    subject = client(
        lab, connect=failing(OSError(code, "")), is_online=lambda: is_online
    )
    response = subject.send(post(lab.url("/")))
    assert (response.own_fault, response.is_sign_of_life) == (is_own, False)


def test_running_out_of_descriptors_is_our_own_fault() -> (
    None
):  # without a lab, which polls a descriptor
    subject = CallbackClient("lab/1.0", None, allow_private=True, resolve=no_such_name)
    with limited(
        resource.RLIMIT_NOFILE
    ):  # resolvers without a descriptor say that there is no such name
        response = subject.send(post("https://s.example/"))
    assert (response.own_fault, response.outcome) == (True, "not reachable")


def test_running_out_of_threads_is_our_own_fault(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        threading.Thread, "start", failing(RuntimeError())
    )  # the kernel lets root have all
    assert client(lab).send(post(lab.url("/cb"))).own_fault


@pytest.mark.parametrize(
    ("second", "has_one"), [("127.0.0.1", True), ("255.255.255.255", False)]
)
def test_a_default_route_is_one_of_either_family(second: str, has_one: bool) -> None:
    probe_addresses = [(socket.AF_INET, "255.255.255.255"), (socket.AF_INET, second)]
    assert callbacks.has_default_route(probe_addresses) == has_one


IN_A_NAMESPACE = """
from reviewslib.websub.callback_messages import CallbackRequest
from reviewslib.websub.callbacks import CallbackClient
client = CallbackClient("lab/1.0", None, allow_private=False)
for url in ("https://1.1.1.1/", "https://[2606:4700::1]/"):
    print(client.send(CallbackRequest("GET", url, {}, None, 5, 0)).own_fault)
"""


def test_a_machine_without_a_network_blames_nobody() -> None:
    needs("a network namespace")
    command = [*NAMESPACE, sys.executable, "-c", IN_A_NAMESPACE]
    assert (
        subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
        == "True\nTrue\n"
    )


@pytest.mark.parametrize(
    "own_host", ["reviews.example", "well.example", "unknown.example"]
)
def test_a_name_server_that_fails_for_the_own_host_is_our_fault(
    lab: Lab, own_host: str
) -> None:
    broken = failing(
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    )
    resolvers = {"well.example": here, "unknown.example": no_such_name}
    subject = client(
        lab, lambda host: resolvers.get(host, broken)(host), own_host=own_host
    )
    assert subject.send(post(lab.url("/"))).own_fault == (own_host == "reviews.example")


def test_any_status_and_a_refused_connection_are_signs_of_life(lab: Lab) -> None:
    lab.on("POST", "/cb", answer(500))
    assert client(lab).send(post(lab.url("/cb"))).is_sign_of_life
    refused = client(lab).send(post(f"https://s.lab.example:{free_port()}/"))
    assert refused == CallbackResponse(None, "connection refused", is_refused=True)
    assert refused.is_sign_of_life


# ---- Where the client goes ---------------------------------------------------------------------------------

V4 = [f"192.0.2.{n}" for n in range(1, 250)]
V6 = [f"2001:db8:{n:x}::1" for n in range(1, 250)]


@pytest.mark.parametrize(
    ("addresses", "tried"),
    [
        (V4, V4[:4]),
        (V6, V6[:4]),
        ([*V6, *V4], [*V6[:2], *V4[:2]]),
        ([V4[0], *V6], [V4[0], *V6[:2]]),
        ([V4[0], V6[0], V4[1], V4[2]], [V4[0], V6[0], V4[1]]),
        ([V4[0]] * 9 + [V4[1]], V4[:2]),
    ],
)
def test_an_exchange_tries_four_addresses_two_of_each_family(
    lab: Lab, addresses: list[str], tried: list[str]
) -> None:
    connect = failing(ConnectionRefusedError())
    assert (
        client(lab, lambda _: addresses, connect=connect)
        .send(post("https://s.example/"))
        .is_refused
    )
    assert [each.args[0] for each in connect.mock_calls] == [
        (address, 443) for address in tried
    ]


def test_a_refusal_at_the_first_of_two_addresses_is_an_answer(lab: Lab) -> None:
    connect = Mock(
        side_effect=[ConnectionRefusedError(), OSError(errno.ENETUNREACH, "")]
    )
    subject = client(
        lab,
        lambda _: ["127.0.0.1", "127.0.0.2"],
        connect=connect,
        is_online=lambda: False,
    )
    response = subject.send(post(lab.url("/"), timeout_seconds=60.0))
    assert response == CallbackResponse(None, "connection refused", is_refused=True)
    shares = [round(each.args[1]) for each in connect.mock_calls]
    assert shares == [30, 60], "an address gets its share of the time that is left"


def test_a_second_address_is_tried_after_a_silent_first_one(lab: Lab) -> None:
    response = client(lab, lambda _: ["::1", "127.0.0.1"]).send(post(lab.url("/cb")))
    assert response.status == 200


INNER = [
    "127.0.0.1",
    "::1",
    "::ffff:127.0.0.1",
    "8.8.8.8 127.0.0.1",
    "2606:4700::1 10.0.0.1",
    "fe80::1%1",
]


@pytest.mark.parametrize("addresses", INNER)
def test_a_name_with_an_inner_address_is_never_contacted(
    lab: Lab, addresses: str
) -> None:
    with left_alone() as port:
        subject = client(lab, lambda _: addresses.split(), allow_private=False)
        response = subject.send(post(f"https://s.lab.example:{port}/cb"))
    assert response.outcome.endswith(" is not a public address")


def test_every_exchange_resolves_the_name_once_and_checks_it_anew(lab: Lab) -> None:
    rebind = Mock(side_effect=[["8.8.8.8"], ["127.0.0.1"]])
    connect = failing(
        ConnectionRefusedError()
    )  # a test must not go to a public address
    subject = client(lab, rebind, allow_private=False, connect=connect)
    outcomes = [
        subject.send(post("https://s.lab.example:8443/cb")).outcome for _ in range(2)
    ]
    assert outcomes == ["connection refused", "127.0.0.1 is not a public address"]
    assert rebind.mock_calls == [call("s.lab.example")] * 2
    assert [each.args[0] for each in connect.mock_calls] == [("8.8.8.8", 8443)]


def test_nothing_is_sent_without_https(lab: Lab) -> None:
    assert client(lab).send(post("http://s.example/")) == CallbackResponse(
        None, "not an https URL"
    )


def test_a_certificate_must_match_the_name_and_a_known_authority(
    lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "unknown").mkdir()
    with open_lab(tmp_path / "unknown") as unknown:
        urls = lab.url("/", "s.other.example"), unknown.url("/")
        outcomes = [client(lab).send(post(url)) for url in urls]
    assert (
        outcomes == [CallbackResponse(None, "certificate not valid for this host")] * 2
    )
    assert lab.arrivals == unknown.arrivals == []


TARGETS = {
    "": "/",
    "?": "/?",
    "?a=b": "/?a=b",
    "//a%20b//?": "//a%20b//?",
    "/?&": "/?&",
}


@pytest.mark.parametrize(("suffix", "target"), TARGETS.items())
def test_the_path_and_query_of_a_callback_are_sent_unchanged(
    lab: Lab, suffix: str, target: str
) -> None:
    assert client(lab).send(post(lab.url(suffix))).is_success
    assert [arrival.target for arrival in lab.arrivals] == [target]


def test_there_is_no_proxy_no_redirect_and_no_cookie(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.on(
        "POST",
        "/cb",
        answer(302, Location=lab.url("/elsewhere"), Set_Cookie="a=b", Retry_After="9"),
    )
    same = client(lab)
    with left_alone() as port:
        for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        responses = [same.send(post(lab.url("/cb"))) for _ in range(2)]
    assert responses == [CallbackResponse(302, "HTTP 302", b"", "9")] * 2
    assert [arrival.path for arrival in lab.arrivals] == ["/cb", "/cb"]
    assert lab.arrivals[1].headers == {
        "Host": f"s.lab.example:{lab.port}",
        "User-Agent": "lab/1.0",
        "Connection": "close",
        "Accept-Encoding": "identity",
        "Content-Type": "text/plain",
        "Content-Length": "7",
    }
