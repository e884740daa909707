"""A callback is an https URL of the public internet; the operator selects hosts or domains.

Sections: callback URLs - refusals - addresses - selection by the operator.
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from pathlib import Path

import pytest

from reviewslib.websub.callback_urls import (
    is_public,
    normalized_url,
    parse_callback,
    selector,
)

# ---- Callback URLs -------------------------------------------------------------------

# Files of one URL a line.
CORPUS = Path(__file__).parent / "callback_urls"
LONGEST = "https://s.example/".ljust(2048, "a")
TOO_LONG = LONGEST + "a"


def corpus(name: str) -> list[str]:
    return (CORPUS / f"{name}.txt").read_text(encoding="utf-8").splitlines()


USABLE = [*corpus("usable"), LONGEST, "https://s.example:1024/"]
# Those of inner networks, by name or by address.
INNER = corpus("inner")
# What no line of a file can hold, and what is too long.
UNUSABLE = [*corpus("unusable"), "", TOO_LONG, f"https://{'a' * 64}.example/cb"]
UNUSABLE += ["https://s.example/cb\r\nX: y", "ht\ttps://s.example/cb"]
UNUSABLE += ["https://s.example/\x00"]


@pytest.mark.parametrize("url", USABLE)
def test_a_public_https_url_is_a_callback(url: str) -> None:
    assert parse_callback(url, allow_private=False) in url.lower()


@pytest.mark.parametrize("url", [*UNUSABLE, *INNER])
def test_anything_else_is_refused_without_asking_the_network(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has|must) "):
        parse_callback(url, allow_private=False)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://127.0.0.1:80/", id="loopback and a low port"),
        pytest.param("https://[fe80::AB]:8443/", id="link-local"),
        pytest.param("https://localhost:1/", id="a name of this machine"),
    ],
)
def test_private_addresses_and_all_ports_can_be_allowed(url: str) -> None:
    assert parse_callback(url, allow_private=True) in url.lower()


def test_urls_are_compared_without_escapes_and_case_of_the_host() -> None:
    url = "HTTPS://S.Example/%7e%2D%5A/%2f?a=HTTP://X"

    assert normalized_url(url) == "https://s.example/~-Z/%2f?a=HTTP://X"


# ---- Refusals ------------------------------------------------------------------------

BAD_CHARACTER = "is empty or has a character that no URL may have; percent-encode it"
NOT_HTTPS = "must be an https:// URL; the hub does not deliver over plain HTTP"
NO_PORT = "has a port outside 1 to 65535"
LOW_PORT = "has port 1023; allowed are 443 and 1024 to 65535"
AN_ADDRESS = "has an IP address as its host; a host name is needed"


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        pytest.param("", BAD_CHARACTER, id="empty"),
        pytest.param(TOO_LONG, "is longer than 2048 characters", id="too long"),
        pytest.param("http://localhost/", NOT_HTTPS, id="plain HTTP"),
        pytest.param("https://localhost/#", "must not have a fragment (#)", id="#"),
        pytest.param("https://u@localhost/", "must not have a user name (@)", id="@"),
        pytest.param("https:///", "has no usable host and port", id="no host"),
        pytest.param("https://localhost:0/", NO_PORT, id="port 0"),
        pytest.param("https://localhost:65536/", NO_PORT, id="port 65536"),
    ],
)
def test_a_refusal_of_any_callback_says_what_is_wrong(url: str, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        parse_callback(url, allow_private=True)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        pytest.param("https://s.example:1023/", LOW_PORT, id="a low port"),
        pytest.param("https://s.0x7f/", AN_ADDRESS, id="an address in disguise"),
        pytest.param(
            "https://a.localhost/", "has a host name that is not public", id="localhost"
        ),
    ],
)
def test_a_refusal_of_an_inner_callback_says_what_is_wrong(
    url: str, fault: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        parse_callback(url, allow_private=False)


# ---- Addresses -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "192.0.1.1",
        "2606:4700::1",
        "::ffff:8.8.8.8",
        "2001:4860::1",
    ],
)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def addresses_of(urls: list[str]) -> list[str]:
    """The hosts that are addresses, not names."""
    addresses = []
    for url in urls:
        host = url.split("/")[2].strip("[]")
        with suppress(ValueError):
            addresses.append(str(ipaddress.ip_address(host)))
    return addresses


INNER_ADDRESSES = addresses_of(INNER)


def test_the_corpus_has_many_inner_addresses() -> None:
    assert len(INNER_ADDRESSES) > 25


@pytest.mark.parametrize("address", INNER_ADDRESSES)
def test_an_address_of_a_refused_url_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


# ---- Selection by the operator -------------------------------------------------------

HOSTS = ("s.example", "a.s.example", "xs.example", "2001:db8::1")


@pytest.mark.parametrize(
    ("who", "selected"),
    [
        pytest.param("a.s.example", ["a.s.example"], id="a host"),
        pytest.param("S.example", ["s.example"], id="a host in capitals"),
        pytest.param(".s.example", ["s.example", "a.s.example"], id="a domain"),
        pytest.param(
            ".example", ["s.example", "a.s.example", "xs.example"], id="a top domain"
        ),
        pytest.param("[2001:DB8::1]", ["2001:db8::1"], id="an address"),
        pytest.param("t.example", [], id="a host that is not there"),
    ],
)
def test_a_selector_selects_a_host_or_a_domain(who: str, selected: list[str]) -> None:
    is_selected = selector(who)

    assert [host for host in HOSTS if is_selected(host)] == selected


@pytest.mark.parametrize(
    "who",
    ["", ".", "https://s.example/", "192.0.2.0/24", "a b", "*.example", "a..b", "é"],
)
def test_text_that_is_no_host_or_domain_is_refused(who: str) -> None:
    with pytest.raises(ValueError, match="neither a host"):
        selector(who)
