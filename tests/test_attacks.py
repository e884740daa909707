"""Behind the shipped proxies one client cannot stop the service: its share is limited, others are served.

These tests count requests and connections; `bench/run.py attacks` measures the latency for other clients.
"""

from collections.abc import Iterator
from contextlib import closing, nullcontext
from itertools import cycle, islice
from pathlib import Path

import pytest
from lab.attack_lab import (
    ATTACKER,
    IPV6_CLIENTS,
    OTHER_48,
    OTHERS,
    SAME_64,
    SMALL_CALL,
    WHOLE_GET,
    WIDE_ATTACKER,
    connections_held,
    others,
    request,
    simultaneous,
    slow_bodies,
    slow_readers,
)
from lab.page_samples import write_files
from lab.proxy_lab import RATE_LIMITS, Proxy, running_proxy
from lab.services import Service, daemon
from lab.small_files import a_file, review
from lab.tools import can_change_network, needs, own_network
from lab.watching import wait_for

pytestmark = pytest.mark.slow

PATIENT = dict.fromkeys(
    ("send_timeout", "client_header_timeout", "client_body_timeout"), "60s"
)
"""Timeouts of nginx instead of the shipped 10 s, since on a busy machine the clients of a test are slower."""
LARGEST_BYTES = 5_000_000  # more than the sockets between service and client can buffer
# requests at the same time
MAX_PER_CLIENT = 100
MAX_PER_48 = 300
IDLE = 2 * 32 + 1  # more idle connections than a proxy keeps to the service
CODINGS = ("gzip", "identity", "deflate, GZIP;q=0.5", "gzip;q=0")
DOCUMENTS = (
    "/reviews.json",
    "/insights.json",
    "/feed.xml",
    "/api/feed.json",
    "/.well-known/openapi.json",
)
DOCUMENTS += ("/llms.txt", "/sitemap.xml", "/robots.txt", "/favicon.ico", "/badge.svg")
SEARCH = "/api/reviews/search?query="
SINCE = "/api/reviews/since/9999-12-31"
HUB = "/api/websub/hub"
DOCUMENT_LIMITS, PAGE_LIMITS, MCP_LIMITS, HUB_LIMITS = (
    (burst, rate) for burst, rate, _ in RATE_LIMITS
)
RATES = {
    "/badge.svg": DOCUMENT_LIMITS,
    SEARCH: PAGE_LIMITS,
    SINCE: PAGE_LIMITS,
    "/mcp": MCP_LIMITS,
    HUB: HUB_LIMITS,
}
"""By path: the burst, and the requests a second, that nginx gives a client; a /48 has twice as many."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    reviews = [
        review(id=str(number), text="so good " * 400)
        for number in range(LARGEST_BYTES // 3200)
    ]
    data = write_files(tmp_path_factory.mktemp("large"), a_file(*reviews))
    network = own_network(*IPV6_CLIENTS) if can_change_network() else nullcontext()
    with network, daemon("--no-hub", data=data) as running:
        yield running


@pytest.fixture
def nginx(service: Service, tmp_path: Path) -> Iterator[Proxy]:
    with running_proxy(tmp_path, "nginx", [service.port], **PATIENT) as proxy:
        yield proxy


def serves_others(proxy: Proxy) -> bool:
    return {status for status, _ in others(proxy)} == {200}


@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_a_slow_body_holds_no_connection_of_the_service(
    service: Service, name: str, tmp_path: Path
) -> None:
    with (
        running_proxy(tmp_path, name, [service.port]) as proxy,
        slow_bodies(proxy, 90 * [ATTACKER]),
    ):
        assert serves_others(proxy)
        assert connections_held(service.port) <= IDLE


def test_nginx_limits_the_slow_readers_of_one_client(
    nginx: Proxy, service: Service
) -> None:
    with slow_readers(nginx, (MAX_PER_CLIENT + 10) * [ATTACKER]) as (accepted, _):
        assert accepted == MAX_PER_CLIENT
        assert serves_others(nginx)
        assert connections_held(service.port) <= IDLE


def test_nginx_limits_the_slow_readers_of_a_48_of_ipv6(nginx: Proxy) -> None:
    needs("a network of its own")
    with slow_readers(nginx, islice(cycle(WIDE_ATTACKER), MAX_PER_48 + 10)) as (
        accepted,
        _,
    ):
        assert accepted == MAX_PER_48
        assert serves_others(nginx)
        assert nginx.ask(SEARCH, source=OTHER_48)[0] == 200


@pytest.mark.parametrize("path", RATES)
@pytest.mark.parametrize(
    ("sources", "times"), [([ATTACKER], 1), (WIDE_ATTACKER, 2)], ids=["client", "48"]
)
def test_nginx_limits_the_rate_of_a_client_and_of_a_48(
    nginx: Proxy, path: str, sources: list[str], times: int
) -> None:
    if sources == WIDE_ATTACKER:
        needs("a network of its own")
    burst, rate = (times * number for number in RATES[path])
    sent = request(path, SMALL_CALL if path in ("/mcp", HUB) else None)
    with simultaneous(nginx, sent, islice(cycle(sources), burst + rate)) as (
        accepted,
        seconds,
    ):
        assert burst < accepted <= burst + 1 + rate * seconds
        assert serves_others(nginx)


@pytest.mark.parametrize(
    ("other", "is_same"), [(SAME_64, True), (WIDE_ATTACKER[1], False)]
)
def test_a_client_of_ipv6_is_a_64(nginx: Proxy, other: str, is_same: bool) -> None:
    needs("a network of its own")
    burst, rate = RATES[SEARCH]
    sources = 2 * burst * [WIDE_ATTACKER[0]] + 30 * [other]
    with simultaneous(nginx, request(SEARCH), sources) as (accepted, seconds):
        assert (
            accepted <= burst + 1 + rate * seconds if is_same else accepted > burst + 30
        )


def test_clients_of_ipv4_have_no_common_limit(nginx: Proxy) -> None:
    with simultaneous(nginx, request(SEARCH), 5 * OTHERS) as (accepted, _):
        assert accepted == 5 * len(OTHERS)


def test_caddy_ends_slow_readers_and_serves_others_meanwhile(
    service: Service, tmp_path: Path
) -> None:
    with (
        running_proxy(tmp_path, "caddy", [service.port], write="4s") as proxy,
        simultaneous(proxy, WHOLE_GET, 2 * IDLE * [ATTACKER]),
    ):
        wait_for("readers", lambda: connections_held(service.port) > IDLE)
        assert serves_others(proxy)
        wait_for("end of the readers", lambda: connections_held(service.port) <= IDLE)


def cached_bytes(proxy: Proxy) -> list[int]:
    """The sizes of the files in the cache of nginx."""
    return [
        file.stat().st_size
        for file in (proxy.directory / "cache").rglob("*")
        if file.is_file()
    ]


def test_the_cache_holds_a_document_once_for_each_coding(nginx: Proxy) -> None:
    for path, source in zip(2 * DOCUMENTS, OTHERS, strict=False):
        with closing(nginx.client(source)) as client:
            for coding in CODINGS:
                assert client.ask(f"{path}?{source}", accept_encoding=coding)[0] == 200
    assert len(cached_bytes(nginx)) == 2 * len(DOCUMENTS)


def test_new_query_strings_on_a_document_write_it_once(nginx: Proxy) -> None:
    assert {nginx.ask(f"/reviews.json?{number}")[0] for number in range(9)} == {200}
    assert sum(size > LARGEST_BYTES for size in cached_bytes(nginx)) == 1


def test_large_responses_for_ever_new_urls_are_not_cached(nginx: Proxy) -> None:
    assert len(nginx.ask("/api/reviews/since/2000-01-01")[2]) > LARGEST_BYTES
    assert not cached_bytes(nginx)
