"""Imports from Google over TLS: certificates, a proxy, redirects, lists without an end.

Sections: certificates and proxies - answers that lead elsewhere, or nowhere.
"""

import json
import socket
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import trustme
from lab.export_lab import ZONE
from lab.google_lab import FakeGoogle, GoogleShop, Proxy

from reviewslib.importer import command, google_http
from reviewslib.importer.google_client import Connection
from reviewslib.importer.google_faults import GoogleFault
from reviewslib.importer.google_http import Endpoints
from reviewslib.terminal import EXIT_FAILURE, EXIT_SUCCESS

HOSTS = (
    "oauth2.googleapis.com",
    "mybusinessaccountmanagement.googleapis.com",
    "mybusinessbusinessinformation.googleapis.com",
    "mybusiness.googleapis.com",
)
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


@pytest.fixture
def environment(monkeypatch) -> pytest.MonkeyPatch:
    """The environment, without any word about proxies and certificates."""
    for name in (*PROXIES, *map(str.upper, PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificates(authority, tmp_path) -> Path:
    """The file with the certificate of the authority."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.fixture
def google(authority) -> Iterator[FakeGoogle]:
    with FakeGoogle(authority.issue_cert("127.0.0.1", *HOSTS)) as fake:
        fake.has([1, 2])
        yield fake


@pytest.fixture
def shop(tmp_path, capsys, google) -> GoogleShop:
    return GoogleShop(tmp_path, capsys.readouterr, google)


@pytest.fixture
def plain(tmp_path, capsys) -> Iterator[GoogleShop]:
    """A shop whose Google needs no certificate."""
    with FakeGoogle() as fake:
        fake.has([1, 2])
        yield GoogleShop(tmp_path, capsys.readouterr, fake)


# ---- Certificates and proxies ----


def test_the_certificates_of_ssl_cert_file_are_trusted(shop, environment, certificates):
    # given
    environment.setenv("SSL_CERT_FILE", str(certificates))
    # when
    shop.ask()
    # then
    assert shop.numbers() == {1, 2}


def test_no_other_certificate_is_trusted(shop, environment):
    # when
    status, errors = shop.failed()
    # then
    assert status == EXIT_FAILURE
    assert "certificate verify failed" in errors


def test_through_the_proxy_google_s_four_hosts_alone_are_asked(
    shop, google, environment, certificates
):
    # given
    environment.setenv("SSL_CERT_FILE", str(certificates))
    shop.endpoints = Endpoints()
    key = json.loads(google.key) | {"token_uri": shop.endpoints.token}
    shop.key.write_text(json.dumps(key))
    # when
    with Proxy(google.port) as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        shop.ask()
    # then
    assert shop.numbers() == {1, 2}
    assert proxy.hosts == {f"{host}:443" for host in HOSTS}


@pytest.mark.parametrize(
    "proxy",
    [
        pytest.param("http://ann:hidden@127.0.0.1:9", id="not there"),
        pytest.param("http:/ann:hidden@x", id="no address"),
        pytest.param("http://ann:hidden@127.0.0.1:port", id="no port"),
        pytest.param("http://ann:hidden@exa mple", id="no host"),
    ],
)
def test_a_proxy_that_does_not_serve_is_named_as_the_way_on(
    shop, google, environment, certificates, proxy
):
    # given
    environment.setenv("SSL_CERT_FILE", str(certificates))
    environment.setenv("HTTPS_PROXY", proxy)
    # when
    status, errors = shop.failed()
    # then
    assert status == EXIT_FAILURE
    assert "HTTPS_PROXY" in errors
    assert "hidden" not in errors
    assert google.requests == []


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_is_told_how_far_a_long_list_is(
    shop, google, environment, certificates, is_terminal
):
    # given
    google.has(range(1, 121))
    environment.setenv("SSL_CERT_FILE", str(certificates))
    key = json.loads(google.key) | {"token_uri": Endpoints().token}
    shop.key.write_text(json.dumps(key))
    words = ["--google", str(shop.key), "--data", str(shop.data), "--zone", ZONE]
    environment.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    # when
    with Proxy(google.port) as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        status = command.main(words)
    # then
    said = shop.output().err.splitlines()
    numbers = ["50", "100", "120"] if is_terminal else []
    assert status == EXIT_SUCCESS
    assert said == [f"Bó's Bakarí: {number} reviews" for number in numbers]


# ---- Answers that lead elsewhere, or nowhere ----


def test_a_redirect_is_not_followed(plain):
    # given
    google = plain.google
    google.answers["/accounts"] = lambda: (302, b"")
    # when
    plain.failed()
    # then
    assert not [request for request in google.requests if "elsewhere" in request]


def test_a_google_that_says_nothing_is_not_waited_for_without_end(monkeypatch):
    # given
    monkeypatch.setattr(google_http, "TIMEOUT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        # when
        with pytest.raises(GoogleFault) as fault:
            google_http.exchange(url, {})
    # then
    assert "Google cannot be reached (TimeoutError)" in str(fault.value)


def test_a_google_that_refuses_is_told_in_the_words_of_the_system():
    # given
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    # when
    with pytest.raises(GoogleFault) as fault:
        google_http.exchange(url, {})
    # then
    assert "Google cannot be reached (Connection refused)" in str(fault.value)


def test_a_list_has_at_most_10_000_pages():
    assert Connection().max_pages == 10_000


def test_a_list_of_more_pages_is_read_no_further(plain):
    # given
    google = plain.google
    tokens = count()
    google.answers["/reviews"] = lambda: (200, {"nextPageToken": f"t{next(tokens)}"})
    plain.max_pages = 5
    # when
    status, errors = plain.failed("--name", "Bó")
    # then
    assert status == EXIT_FAILURE
    assert "its pages have no end" in errors
    assert next(tokens) == 5


def test_a_list_of_just_so_many_pages_is_read(plain):
    # given
    plain.google.has(range(1, 251))
    plain.max_pages = 5
    # when
    plain.ask()
    # then
    assert plain.numbers() == set(range(1, 251))


def test_a_second_reading_in_another_order_has_what_the_first_lacks(plain):
    # given
    google = plain.google
    google.has(range(1, 81))
    google.hidden = {"AbFvOq0001", "AbFvOq0002"}
    google.hidden_in = ("updateTime desc",)
    # when
    plain.ask()
    # then
    assert plain.numbers() == set(range(1, 81))
