"""Which callback URLs are accepted, and what the operator may select.

Callback URLs - Selection by the operator
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

CORPUS = Path(__file__).parent / "callback_urls"  # one URL a line


# ---- Callback URLs -----------------------------------------------------------------------------------------

USABLE, UNUSABLE, INNER = (
    (CORPUS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    for name in ("usable", "unusable", "inner")
)
UNUSABLE += [
    "",
    "https://s.example/cb\r\nX: y",
    "ht\ttps://s.example/cb",
    "https://s.example/\x00",
]
UNUSABLE += [
    "https://s.example/".ljust(2049, "a"),
    "https://" + "a" * 64 + ".example/cb",
]
USABLE += ["https://s.example/".ljust(2048, "a"), "https://s.example:1024/"]


@pytest.mark.parametrize("url", USABLE)
def test_a_public_https_url_is_a_callback(url: str) -> None:
    assert parse_callback(url, allow_private=False) in url.lower()


@pytest.mark.parametrize("url", UNUSABLE + INNER)
def test_anything_else_is_refused_without_asking_the_network(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has|must) "):
        parse_callback(url, allow_private=False)


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:80/", "https://[fe80::AB]:8443/", "https://localhost:1/"]
)
def test_private_addresses_and_all_ports_can_be_allowed(url: str) -> None:
    assert parse_callback(url, allow_private=True) in url.lower()


@pytest.mark.parametrize(
    ("is_lab", "url", "fault"),
    [
        (
            True,
            "",
            "is empty or has a character that no URL may have; percent-encode it",
        ),
        (True, "https://s.example/".ljust(2049, "a"), "is longer than 2048 characters"),
        (
            True,
            "http://localhost/",
            "must be an https:// URL; the hub does not deliver over plain HTTP",
        ),
        (True, "https://localhost/#", "must not have a fragment (#)"),
        (True, "https://u@localhost/", "must not have a user name (@)"),
        (True, "https:///", "has no usable host and port"),
        (True, "https://localhost:0/", "has a port outside 1 to 65535"),
        (True, "https://localhost:65536/", "has a port outside 1 to 65535"),
        (
            False,
            "https://s.example:1023/",
            "has port 1023; allowed are 443 and 1024 to 65535",
        ),
        (
            False,
            "https://s.0x7f/",
            "has an IP address as its host; a host name is needed",
        ),
        (False, "https://a.localhost/", "has a host name that is not public"),
    ],
)
def test_a_refusal_of_a_callback_says_what_is_wrong(
    is_lab: bool, url: str, fault: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        parse_callback(url, allow_private=is_lab)


def test_urls_are_compared_without_escapes_and_case_of_the_host() -> None:
    url = "HTTPS://S.Example/%7e%2D%5A/%2f?a=HTTP://X"
    assert normalized_url(url) == "https://s.example/~-Z/%2f?a=HTTP://X"


PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "192.0.1.1",
    "2606:4700::1",
    "::ffff:8.8.8.8",
    "2001:4860::1",
]


def test_public_addresses_are_public_and_those_of_refused_urls_are_not() -> None:
    assert all(is_public(ipaddress.ip_address(address)) for address in PUBLIC)
    addresses = []
    for url in INNER:
        with suppress(ValueError):  # of names
            addresses.append(ipaddress.ip_address(url.split("/")[2].strip("[]")))
    assert len(addresses) > 25
    assert [address for address in addresses if is_public(address)] == []


# ---- Selection by the operator ---------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "hosts"),
    [
        ("a.s.example", ["a.s.example"]),
        ("S.example", ["s.example"]),
        (".s.example", ["s.example", "a.s.example"]),
        (".example", ["s.example", "a.s.example", "xs.example"]),
        ("[2001:DB8::1]", ["2001:db8::1"]),
        ("t.example", []),
    ],
)
def test_a_selector_selects_a_host_or_a_domain(who: str, hosts: list[str]) -> None:
    assert (
        list(
            filter(
                selector(who), ("s.example", "a.s.example", "xs.example", "2001:db8::1")
            )
        )
        == hosts
    )


@pytest.mark.parametrize(
    "who",
    ["", ".", "https://s.example/", "192.0.2.0/24", "a b", "*.example", "a..b", "é"],
)
def test_text_that_is_no_host_or_domain_is_refused(who: str) -> None:
    with pytest.raises(ValueError, match="neither a host"):
        selector(who)
