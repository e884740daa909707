"""No callback holds a thread, reaches an inner address, or puts its words into the log.

The client asks real callbacks on 127.0.0.1.

Sections: bad answers - deliveries - verifications - slow and broken peers - names -
our own faults - signs of life - addresses - certificates - what is sent.
"""

from __future__ import annotations

import errno
import resource
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest
from lab.callback_lab import (
    PATIENCE_SECONDS,
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

# Enough for every answer that comes at all.
AMPLE_SECONDS = 5.0
# For answers that never come whole.
SHORT_SECONDS = 0.4
# Of an answer to a verification, the hub wants as much as its challenge is long.
WANTED_BYTES = 44


def client(lab: Lab, resolve: Resolve = here, **more: Any) -> CallbackClient:
    """A client that trusts the lab; `more` are its other parameters."""
    usual: dict[str, Any] = {"allow_private": True, "is_online": online}
    return CallbackClient("lab/1.0", lab.ca_file, resolve=resolve, **usual | more)


def online() -> bool:
    return True


def offline() -> bool:
    return False


def post(
    url: str, body: bytes = b"content", timeout_seconds: float = AMPLE_SECONDS
) -> CallbackRequest:
    """A delivery."""
    headers = {"Content-Type": "text/plain"}
    return CallbackRequest("POST", url, headers, body, timeout_seconds, 0)


def get(url: str, timeout_seconds: float = AMPLE_SECONDS) -> CallbackRequest:
    """A verification."""
    return CallbackRequest("GET", url, {}, None, timeout_seconds, WANTED_BYTES)


def failing(error: Exception) -> Mock:
    """A stand-in that raises an error."""
    return Mock(side_effect=error)


# ---- Bad answers ---------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LATE = "no complete answer in time"
CUT_OFF = "connection closed or reset"
NOT_HTTP = "answer is not HTTP"
TOO_LARGE = "answer is larger than 65536 bytes"
LARGEST_ANSWER_BYTES = 65536


def raw(data: bytes) -> Behaviour:
    """These bytes, and the end."""

    def behave(exchange: Exchange) -> None:
        exchange.wfile.write(data)

    return behave


def endless(pause_seconds: float, start: bytes, more: bytes) -> Behaviour:
    """Endless bytes: each in time, but too slow together, or too many."""

    def behave(exchange: Exchange) -> None:
        exchange.wfile.write(start)
        while not exchange.server.released.wait(pause_seconds):
            exchange.wfile.write(more)

    return behave


drip = partial(endless, 0.1)
pour = partial(endless, 0)


def head_of(size: int) -> bytes:
    """The head of an answer, of so many bytes."""
    end = b"\r\n\r\n"
    field = b"A: ".ljust(size - len(OK) - len(end), b"b")
    return OK + field + end


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(hang, id="nothing"),
        pytest.param(drip(b"", b"H"), id="a slow status line"),
        pytest.param(drip(OK, b"A: b\r\n"), id="slow fields"),
        pytest.param(drip(b"", CONTINUE), id="one interim answer after another"),
    ],
)
def test_an_answer_that_is_not_whole_in_time_is_a_failure(
    lab: Lab, behave: Behaviour
) -> None:
    lab.on("POST", "/cb", behave)

    response = client(lab).send(post(lab.url("/cb"), timeout_seconds=SHORT_SECONDS))

    assert response == CallbackResponse(None, LATE)


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(pour(OK + b"A: ", b"b" * 1000), id="an endless field"),
        pytest.param(pour(b"", CONTINUE), id="endless interim answers"),
        pytest.param(pour(OK, b"A: b\r\n"), id="endless fields"),
        pytest.param(pour(b"", b"\0" * 1000), id="endless bytes"),
    ],
)
def test_an_answer_without_end_is_a_failure(lab: Lab, behave: Behaviour) -> None:
    lab.on("POST", "/cb", behave)

    response = client(lab).send(post(lab.url("/cb")))

    # Whichever bound is met first, ours or that of Python's parser.
    bounds = [CallbackResponse(None, TOO_LARGE), CallbackResponse(None, NOT_HTTP)]
    assert response in bounds


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        pytest.param(raw(head_of(LARGEST_ANSWER_BYTES + 1)), TOO_LARGE, id="too large"),
        pytest.param(raw(b""), CUT_OFF, id="no byte"),
        pytest.param(Exchange.reset, CUT_OFF, id="a reset"),
        pytest.param(raw(b"SSH-2.0-OpenSSH_9.9\r\n"), NOT_HTTP, id="another protocol"),
        pytest.param(raw(b"HTTP/1.1 abc\r\n\r\n"), NOT_HTTP, id="no status"),
    ],
)
def test_what_is_no_answer_is_a_failure_in_our_words(
    lab: Lab, behave: Behaviour, outcome: str
) -> None:
    lab.on("POST", "/cb", behave)

    response = client(lab).send(post(lab.url("/cb")))

    assert response == CallbackResponse(None, outcome)


@pytest.mark.parametrize("status", [300, 429])
def test_a_status_of_failure_is_a_failure_of_the_callback(
    lab: Lab, status: int
) -> None:
    lab.on("POST", "/cb", answer(status))

    response = client(lab).send(post(lab.url("/cb")))

    assert response == CallbackResponse(status, f"HTTP {status}")
    assert not response.is_success


# ---- Deliveries ----------------------------------------------------------------------

LONG_BODY = OK + b"Content-Length: 99999999\r\n\r\n"


@pytest.mark.parametrize(
    "behave",
    [
        pytest.param(pour(LONG_BODY, b"body" * 1000), id="a large body"),
        pytest.param(drip(LONG_BODY, b"body"), id="a slow body"),
        pytest.param(raw(CHUNKED), id="a body that breaks off"),
        pytest.param(raw(head_of(LARGEST_ANSWER_BYTES)), id="the largest head"),
    ],
)
def test_a_delivery_is_done_at_the_end_of_the_head(lab: Lab, behave: Behaviour) -> None:
    lab.on("POST", "/cb", behave)

    response = client(lab).send(post(lab.url("/cb")))

    assert response == CallbackResponse(200, "HTTP 200")


# ---- Verifications -------------------------------------------------------------------

CHALLENGE = b"x" * WANTED_BYTES
HUGE_BODY = OK + b"Content-Length: 64000000\r\n\r\n"
CUT_SHORT = OK + b"Content-Length: 9999999999999\r\n\r\n"
GZIP = OK + b"Content-Encoding: gzip\r\n\r\n"


@pytest.mark.parametrize(
    ("behave", "body"),
    [
        pytest.param(answer(200, CHALLENGE), CHALLENGE, id="what is wanted"),
        pytest.param(answer(201, b"x" * 5000), CHALLENGE, id="more"),
        pytest.param(pour(OK + b"\r\n", b"x" * 1000), CHALLENGE, id="endless"),
        pytest.param(pour(HUGE_BODY, b"x" * 1000), CHALLENGE, id="huge"),
        pytest.param(raw(OK + b"\r\nxx"), b"xx", id="without a length"),
        pytest.param(raw(CUT_SHORT + b"x" * 43), b"x" * 43, id="less than announced"),
        pytest.param(raw(b"HTTP/1.0 200 OK\r\n\r\nx"), b"x", id="HTTP/1.0"),
        pytest.param(raw(CONTINUE + OK + b"\r\nx"), b"x", id="after an interim answer"),
        pytest.param(raw(CHUNKED + b"2\r\nxx\r\n0\r\n\r\n"), b"xx", id="in chunks"),
        pytest.param(raw(GZIP + b"\x1f\x8b"), b"\x1f\x8b", id="compressed"),
    ],
)
def test_of_an_answer_only_the_wanted_bytes_are_read(
    lab: Lab, behave: Behaviour, body: bytes
) -> None:
    lab.on("GET", "/cb", behave)

    response = client(lab).send(get(lab.url("/cb")))

    assert response.is_success
    assert response.body == body


def test_of_a_failure_no_body_is_read(lab: Lab) -> None:
    lab.on("GET", "/cb", answer(300, b"x"))

    response = client(lab).send(get(lab.url("/cb")))

    assert response == CallbackResponse(300, "HTTP 300", b"")


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        pytest.param(raw(CHUNKED + b"5\r\nx"), NOT_HTTP, id="a chunk breaks off"),
        pytest.param(
            raw(CHUNKED + b"-1" + b"f" * 20),
            "answer cannot be read",
            id="an impossible size of a chunk",
        ),
    ],
)
def test_a_broken_body_is_a_failure(lab: Lab, behave: Behaviour, outcome: str) -> None:
    lab.on("GET", "/cb", behave)

    response = client(lab).send(get(lab.url("/cb")))

    assert response == CallbackResponse(None, outcome)


def test_a_body_that_is_too_slow_is_a_failure(lab: Lab) -> None:
    lab.on("GET", "/cb", drip(OK + b"\r\n", b"x"))

    response = client(lab).send(get(lab.url("/cb"), SHORT_SECONDS))

    assert response == CallbackResponse(None, LATE)


# ---- Slow and broken peers -----------------------------------------------------------

# More than the buffers of both kernels hold.
LARGE_CONTENT = b"x" * 20_000_000


def test_a_handshake_that_nobody_answers_ends_in_time(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"https://s.lab.example:{server.getsockname()[1]}/"

        response = client(lab).send(post(url, timeout_seconds=SHORT_SECONDS))

    assert response == CallbackResponse(None, LATE)


def test_a_reader_that_is_slow_ends_in_time(lab: Lab) -> None:
    with slow_reader(lab) as url:
        response = client(lab).send(post(url, LARGE_CONTENT, timeout_seconds=0.6))

    assert response == CallbackResponse(None, LATE)


@contextmanager
def slow_reader(lab: Lab) -> Iterator[str]:
    """The URL of a callback that reads 200 KB a second."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    lab.ca.issue_cert("s.lab.example").configure_cert(context)

    def read_slowly() -> None:
        accepted, _ = server.accept()
        with suppress(OSError), context.wrap_socket(accepted, server_side=True) as tls:
            while tls.recv(10_000):
                lab.released.wait(0.05)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=read_slowly)
        thread.start()
        yield f"https://s.lab.example:{server.getsockname()[1]}/"
        lab.released.set()
        thread.join()


def test_a_port_that_speaks_no_tls_is_a_failure(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connected = socket.create_connection(server.getsockname())
        with server.accept()[0] as peer:
            peer.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")

            subject = client(lab, connect=Mock(return_value=connected))
            response = subject.send(post(lab.url("/cb")))

    assert response == CallbackResponse(None, "TLS failed")


# ---- Names ---------------------------------------------------------------------------

NO_SUCH_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
NAME_SERVER_FAILS = socket.gaierror(socket.EAI_AGAIN, "Temporary failure")


def test_a_name_that_nobody_resolves_ends_in_time(lab: Lab) -> None:
    def wait_for_long(_: str) -> list[str]:
        lab.released.wait(PATIENCE_SECONDS)
        return []

    response = client(lab, wait_for_long).send(
        post(lab.url("/cb"), timeout_seconds=SHORT_SECONDS)
    )

    assert response == CallbackResponse(None, LATE)


def test_a_resolver_that_goes_on_does_not_keep_the_process(lab: Lab) -> None:
    is_daemon: list[bool] = []

    def resolve(_: str) -> list[str]:
        is_daemon.append(threading.current_thread().daemon)
        return ["127.0.0.1"]

    client(lab, resolve).send(post(lab.url("/cb")))

    assert is_daemon == [True]


@pytest.mark.parametrize(
    "resolve",
    [
        pytest.param(failing(NO_SUCH_NAME), id="unknown"),
        pytest.param(Mock(return_value=[]), id="without an address"),
        pytest.param(
            failing(UnicodeError("label too long")), id="not a name of the DNS"
        ),
    ],
)
def test_a_name_without_an_address_is_a_failure_of_the_callback(
    lab: Lab, resolve: Resolve
) -> None:
    response = client(lab, resolve).send(post(lab.url("/cb")))

    assert response == CallbackResponse(None, "name not resolved")


def test_the_own_resolver_knows_a_name_that_is_too_long() -> None:
    with pytest.raises(UnicodeError):
        callbacks.system_resolve("a" * 64)


# ---- Our own faults: they blame no callback ------------------------------------------

NO_ROUTE = [errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT]
LACKS = [errno.ENETDOWN, errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENOMEM]


@pytest.mark.parametrize("code", NO_ROUTE, ids=errno.errorcode.get)
@pytest.mark.parametrize(
    ("is_online", "is_own"),
    [
        pytest.param(online, False, id="with a default route"),
        pytest.param(offline, True, id="without one"),
    ],
)
def test_a_lack_of_a_route_is_ours_if_we_have_none_at_all(
    lab: Lab, code: int, is_online: Any, is_own: bool
) -> None:
    subject = client(lab, connect=failing(OSError(code, "")), is_online=is_online)

    response = subject.send(post(lab.url("/")))

    assert response.own_fault == is_own
    assert not response.is_sign_of_life


@pytest.mark.parametrize("code", LACKS, ids=errno.errorcode.get)
def test_a_lack_of_resources_is_our_own_fault(lab: Lab, code: int) -> None:
    subject = client(lab, connect=failing(OSError(code, "")))

    response = subject.send(post(lab.url("/")))

    assert response.own_fault
    assert not response.is_sign_of_life


def test_running_out_of_descriptors_is_our_own_fault() -> None:
    # Without a lab, which polls a descriptor; resolvers without one say that there is
    # no such name.
    resolve = failing(NO_SUCH_NAME)
    subject = CallbackClient("lab/1.0", None, allow_private=True, resolve=resolve)

    with limited(resource.RLIMIT_NOFILE):
        response = subject.send(post("https://s.example/"))

    assert response.own_fault
    assert response.outcome == "not reachable"


def test_running_out_of_threads_is_our_own_fault(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel lets root have all threads.
    monkeypatch.setattr(threading.Thread, "start", failing(RuntimeError()))

    response = client(lab).send(post(lab.url("/cb")))

    assert response.own_fault


UNREACHABLE_V4 = (socket.AF_INET, "255.255.255.255")
REACHABLE_V4 = (socket.AF_INET, "127.0.0.1")


@pytest.mark.parametrize(
    ("addresses", "has_one"),
    [
        pytest.param([UNREACHABLE_V4, REACHABLE_V4], True, id="the second only"),
        pytest.param([UNREACHABLE_V4, UNREACHABLE_V4], False, id="neither"),
    ],
)
def test_a_default_route_is_one_of_either_family(
    addresses: list[tuple[int, str]], has_one: bool
) -> None:
    assert callbacks.has_default_route(addresses) == has_one


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
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)

    assert done.stdout == "True\nTrue\n"


@pytest.mark.parametrize(
    ("own_host", "is_own"),
    [
        pytest.param("reviews.example", True, id="fails, too"),
        pytest.param("well.example", False, id="has an address"),
        pytest.param("unknown.example", False, id="is said not to exist"),
    ],
)
def test_a_name_server_that_fails_is_our_fault_if_our_own_host(
    lab: Lab, own_host: str, is_own: bool
) -> None:
    def resolve(host: str) -> list[str]:
        if host == "well.example":
            return ["127.0.0.1"]
        if host == "unknown.example":
            raise NO_SUCH_NAME
        raise NAME_SERVER_FAILS

    subject = client(lab, resolve, own_host=own_host)
    response = subject.send(post(lab.url("/")))

    assert response.own_fault == is_own


# ---- Signs of life -------------------------------------------------------------------


def test_any_status_is_a_sign_of_life(lab: Lab) -> None:
    lab.on("POST", "/cb", answer(500))

    response = client(lab).send(post(lab.url("/cb")))

    assert response.is_sign_of_life


def test_a_refused_connection_is_a_sign_of_life(lab: Lab) -> None:
    nobody_listens = f"https://s.lab.example:{free_port()}/"

    response = client(lab).send(post(nobody_listens))

    assert response == CallbackResponse(None, "connection refused", is_refused=True)
    assert response.is_sign_of_life


# ---- Addresses -----------------------------------------------------------------------

V4 = [f"192.0.2.{number}" for number in range(1, 250)]
V6 = [f"2001:db8:{number:x}::1" for number in range(1, 250)]


@pytest.mark.parametrize(
    ("addresses", "tried"),
    [
        pytest.param(V4, V4[:4], id="four of IPv4"),
        pytest.param(V6, V6[:4], id="four of IPv6"),
        pytest.param([*V6, *V4], [*V6[:2], *V4[:2]], id="two of each"),
        pytest.param([V4[0], *V6], [V4[0], *V6[:2]], id="all of one, two of the other"),
        pytest.param(
            [V4[0], V6[0], V4[1], V4[2]], [V4[0], V6[0], V4[1]], id="in their order"
        ),
        pytest.param([V4[0]] * 9 + [V4[1]], V4[:2], id="each once"),
    ],
)
def test_an_exchange_tries_four_addresses_two_of_each_family(
    lab: Lab, addresses: list[str], tried: list[str]
) -> None:
    connect = failing(ConnectionRefusedError())
    subject = client(lab, Mock(return_value=addresses), connect=connect)

    subject.send(post("https://s.example/"))

    places = [each.args[0] for each in connect.mock_calls]
    assert places == [(address, 443) for address in tried]


TWO_ADDRESSES = ["127.0.0.1", "127.0.0.2"]


def test_a_refusal_at_the_first_of_two_addresses_is_an_answer(lab: Lab) -> None:
    no_route = OSError(errno.ENETUNREACH, "")
    connect = Mock(side_effect=[ConnectionRefusedError(), no_route])
    resolve = Mock(return_value=TWO_ADDRESSES)
    subject = client(lab, resolve, connect=connect, is_online=offline)

    response = subject.send(post(lab.url("/")))

    assert response == CallbackResponse(None, "connection refused", is_refused=True)


def test_an_address_gets_its_share_of_the_time_that_is_left(lab: Lab) -> None:
    connect = failing(ConnectionRefusedError())
    subject = client(lab, Mock(return_value=TWO_ADDRESSES), connect=connect)

    subject.send(post(lab.url("/"), timeout_seconds=60.0))

    shares_seconds = [round(each.args[1]) for each in connect.mock_calls]
    assert shares_seconds == [30, 60]


def test_a_second_address_is_tried_where_the_first_does_not_answer(lab: Lab) -> None:
    # The lab listens at IPv4 alone.
    resolve = Mock(return_value=["::1", "127.0.0.1"])

    response = client(lab, resolve).send(post(lab.url("/cb")))

    assert response.status == 200


@pytest.mark.parametrize(
    "addresses",
    [
        pytest.param(["127.0.0.1"], id="loopback"),
        pytest.param(["::1"], id="loopback of IPv6"),
        pytest.param(["::ffff:127.0.0.1"], id="mapped"),
        pytest.param(["fe80::1%1"], id="link-local"),
        pytest.param(["8.8.8.8", "127.0.0.1"], id="beside a public one"),
        pytest.param(["2606:4700::1", "10.0.0.1"], id="of the other family"),
    ],
)
def test_a_name_with_an_inner_address_is_never_contacted(
    lab: Lab, addresses: list[str]
) -> None:
    subject = client(lab, Mock(return_value=addresses), allow_private=False)

    with left_alone() as port:
        response = subject.send(post(f"https://s.lab.example:{port}/cb"))

    assert response.outcome.endswith(" is not a public address")


def test_every_exchange_resolves_the_name_once_and_checks_it_anew(lab: Lab) -> None:
    # given a name whose address changes from a public one to an inner one
    rebind = Mock(side_effect=[["8.8.8.8"], ["127.0.0.1"]])
    # A test must not go to a public address.
    connect = failing(ConnectionRefusedError())
    subject = client(lab, rebind, allow_private=False, connect=connect)

    # when there are two exchanges
    request = post("https://s.lab.example:8443/cb")
    outcomes = [subject.send(request).outcome for _ in range(2)]

    # then only the public address was contacted
    assert outcomes == ["connection refused", "127.0.0.1 is not a public address"]
    assert rebind.mock_calls == [call("s.lab.example")] * 2
    assert [each.args[0] for each in connect.mock_calls] == [("8.8.8.8", 8443)]


# ---- Certificates --------------------------------------------------------------------

NOT_VALID = CallbackResponse(None, "certificate not valid for this host")


def test_nothing_is_sent_without_https(lab: Lab) -> None:
    response = client(lab).send(post("http://s.example/"))

    assert response == CallbackResponse(None, "not an https URL")


def test_a_certificate_of_another_name_is_not_valid(lab: Lab) -> None:
    response = client(lab).send(post(lab.url("/", "s.other.example")))

    assert response == NOT_VALID
    assert lab.arrivals == []


def test_a_certificate_of_an_unknown_authority_is_not_valid(
    lab: Lab, tmp_path: Path
) -> None:
    directory = tmp_path / "unknown"
    directory.mkdir()
    with open_lab(directory) as unknown:
        response = client(lab).send(post(unknown.url("/")))

    assert response == NOT_VALID
    assert unknown.arrivals == []


# ---- What is sent --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "target"),
    [
        pytest.param("", "/", id="no path"),
        pytest.param("?", "/?", id="an empty query without a path"),
        pytest.param("?a=b", "/?a=b", id="a query without a path"),
        pytest.param("//a%20b//?", "//a%20b//?", id="slashes and escapes"),
        pytest.param("/?&", "/?&", id="a bare separator"),
    ],
)
def test_the_path_and_query_of_a_callback_are_sent_unchanged(
    lab: Lab, suffix: str, target: str
) -> None:
    client(lab).send(post(lab.url(suffix)))

    assert [arrival.target for arrival in lab.arrivals] == [target]


def test_a_request_has_these_fields_and_no_other(lab: Lab) -> None:
    client(lab).send(post(lab.url("/cb"), b"content"))

    (arrival,) = lab.arrivals
    assert arrival.headers == {
        "Host": f"s.lab.example:{lab.port}",
        "User-Agent": "lab/1.0",
        "Connection": "close",
        "Accept-Encoding": "identity",
        "Content-Type": "text/plain",
        "Content-Length": "7",
    }


def test_no_proxy_of_the_environment_is_used(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with left_alone() as port:
        for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")

        response = client(lab).send(post(lab.url("/cb")))

    assert response.is_success


def test_a_redirect_is_not_followed(lab: Lab) -> None:
    lab.on("POST", "/cb", answer(302, Location=lab.url("/elsewhere")))

    response = client(lab).send(post(lab.url("/cb")))

    assert response == CallbackResponse(302, "HTTP 302")
    assert [arrival.path for arrival in lab.arrivals] == ["/cb"]


def test_a_cookie_is_not_sent_back(lab: Lab) -> None:
    lab.on("POST", "/cb", answer(204, Set_Cookie="a=b"))
    same = client(lab)

    for _ in range(2):
        same.send(post(lab.url("/cb")))

    first, second = lab.arrivals
    assert "Cookie" not in first.headers
    assert "Cookie" not in second.headers


def test_the_callback_says_when_to_come_again(lab: Lab) -> None:
    lab.on("POST", "/cb", answer(503, Retry_After="9"))

    response = client(lab).send(post(lab.url("/cb")))

    assert response.retry_after == "9"
