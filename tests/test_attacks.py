"""Behind the shipped proxies one client cannot stop the service.

Its share is limited, and others are served. These tests count requests and connections;
`bench/run.py attacks` measures the latency for other clients.

Sections: the service - shares of connections - rates - others - Caddy - the cache.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
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
from lab.data_sets import write_files
from lab.proxy_lab import RATE_LIMITS, Proxy, running_proxy
from lab.services import Service, daemon
from lab.small_files import a_file, review
from lab.tools import can_change_network, needs, own_network
from lab.watching import wait_for

pytestmark = pytest.mark.slow

# ---- The service: an answer of five megabytes, and a proxy before it ----

# More than the sockets between service and client can buffer.
LARGEST_BYTES = 5_000_000
BYTES_OF_A_REVIEW = 3200
# Instead of the shipped 10 s, since on a busy machine the clients of a test are slower.
PATIENT = {
    "send_timeout": "60s",
    "client_header_timeout": "60s",
    "client_body_timeout": "60s",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    text = "so good " * (BYTES_OF_A_REVIEW // len("so good "))
    numbers = range(LARGEST_BYTES // BYTES_OF_A_REVIEW)
    reviews = [review(id=str(number), text=text) for number in numbers]
    data = write_files(tmp_path_factory.mktemp("large"), a_file(*reviews))
    network: AbstractContextManager[None] = nullcontext()
    if can_change_network():
        network = own_network(*IPV6_CLIENTS)
    with network, daemon("--no-hub", data=data) as running:
        yield running


@pytest.fixture
def nginx(service: Service, tmp_path: Path) -> Iterator[Proxy]:
    with running_proxy(tmp_path, "nginx", [service.port], **PATIENT) as proxy:
        yield proxy


@pytest.fixture(params=["nginx", "caddy"])
def proxy(
    request: pytest.FixtureRequest, service: Service, tmp_path: Path
) -> Iterator[Proxy]:
    """Each of the proxies with the shipped file, as it is."""
    with running_proxy(tmp_path, request.param, [service.port]) as running:
        yield running


def statuses_of_others(proxy: Proxy) -> set[int]:
    """What clients get that attack nobody."""
    return {status for status, _ in others(proxy)}


# ---- Shares of connections ----

# Connections at the same time, as `deploy/nginx.conf` has them.
MAX_PER_CLIENT = 100
MAX_PER_48 = 300
# More connections than a proxy keeps idle: nginx 32, Caddy none.
IDLE = 2 * 32 + 1


def test_a_slow_body_holds_no_connection_of_the_service(
    service: Service, proxy: Proxy
) -> None:
    with slow_bodies(proxy, 90 * [ATTACKER]):
        # By then the proxy has what was sent before.
        others(proxy)
        held = connections_held(service.port)

    assert held <= IDLE


def test_a_slow_reader_holds_no_connection_of_the_service(
    service: Service, nginx: Proxy
) -> None:
    with slow_readers(nginx, MAX_PER_CLIENT * [ATTACKER]):
        others(nginx)
        held = connections_held(service.port)

    assert held <= IDLE


def test_nginx_limits_the_connections_of_a_client(nginx: Proxy) -> None:
    sources = (MAX_PER_CLIENT + 10) * [ATTACKER]

    with slow_readers(nginx, sources) as (accepted, _):
        pass

    assert accepted == MAX_PER_CLIENT


def test_nginx_limits_the_connections_of_a_48_of_ipv6(nginx: Proxy) -> None:
    needs("a network of its own")
    sources = islice(cycle(WIDE_ATTACKER), MAX_PER_48 + 10)

    with slow_readers(nginx, sources) as (accepted, _):
        status, _, _ = nginx.ask(SEARCH, source=OTHER_48)

    assert accepted == MAX_PER_48
    # Another /48 has a share of its own.
    assert status == 200


# ---- Rates ----

SEARCH = "/api/reviews/search?query="


# Of an attack at least, on a machine that takes a second for it.
REFUSED = 10


@dataclass(frozen=True)
class Limit:
    """How often nginx lets one client ask for a path."""

    path: str
    burst: int
    rate: int
    body: bytes | None = None

    def request(self) -> bytes:
        return request(self.path, self.body)

    def times(self, number: int) -> "Limit":
        """For so many clients together."""
        return replace(self, burst=number * self.burst, rate=number * self.rate)

    def too_many(self) -> int:
        """More requests than are accepted within some seconds."""
        return self.burst + self.rate + REFUSED

    def most(self, seconds: float) -> float:
        """How many requests are accepted within a time: the rate is that of a clock."""
        return self.burst + 1 + self.rate * seconds


def limit_of(path: str, row: tuple[int, ...], body: bytes | None = None) -> Limit:
    """The limit that a row of the documented table sets."""
    burst, rate, _ = row
    return Limit(path=path, burst=burst, rate=rate, body=body)


def limits() -> Iterator[Limit]:
    documents, pages, mcp, hub = RATE_LIMITS
    yield limit_of("/badge.svg", documents)
    yield limit_of(SEARCH, pages)
    yield limit_of("/api/reviews/since/9999-12-31", pages)
    yield limit_of("/mcp", mcp, SMALL_CALL)
    yield limit_of("/api/websub/hub", hub, SMALL_CALL)


LIMITS = {limit.path: limit for limit in limits()}
every_limit = pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)


@every_limit
def test_nginx_limits_the_rate_of_a_client(nginx: Proxy, limit: Limit) -> None:
    sources = limit.too_many() * [ATTACKER]

    with simultaneous(nginx, limit.request(), sources) as (accepted, seconds):
        pass

    assert limit.burst < accepted <= limit.most(seconds)


@every_limit
def test_nginx_limits_the_rate_of_a_48_to_that_of_two_clients(
    nginx: Proxy, limit: Limit
) -> None:
    needs("a network of its own")
    double = limit.times(2)
    sources = islice(cycle(WIDE_ATTACKER), double.too_many())

    with simultaneous(nginx, limit.request(), sources) as (accepted, seconds):
        pass

    assert double.burst < accepted <= double.most(seconds)


NEIGHBOURS = 30


def accepted_of_neighbours(nginx: Proxy, other: str) -> tuple[int, float]:
    """One client asks twice as often as it may, and another one thirty times."""
    limit = LIMITS[SEARCH]
    sources = 2 * limit.burst * [WIDE_ATTACKER[0]] + NEIGHBOURS * [other]
    with simultaneous(nginx, limit.request(), sources) as (accepted, seconds):
        return accepted, seconds


def test_addresses_of_a_64_are_one_client(nginx: Proxy) -> None:
    needs("a network of its own")

    accepted, seconds = accepted_of_neighbours(nginx, SAME_64)

    assert accepted <= LIMITS[SEARCH].most(seconds)


def test_another_64_is_another_client(nginx: Proxy) -> None:
    needs("a network of its own")

    accepted, _ = accepted_of_neighbours(nginx, WIDE_ATTACKER[1])

    assert accepted > LIMITS[SEARCH].burst + NEIGHBOURS


def test_clients_of_ipv4_have_no_common_limit(nginx: Proxy) -> None:
    sources = 5 * OTHERS

    with simultaneous(nginx, request(SEARCH), sources) as (accepted, _):
        pass

    assert accepted == len(sources)


# ---- Others ----


def test_others_are_served_beside_slow_bodies(proxy: Proxy) -> None:
    with slow_bodies(proxy, 90 * [ATTACKER]):
        assert statuses_of_others(proxy) == {200}


def test_others_are_served_beside_slow_readers(nginx: Proxy) -> None:
    with slow_readers(nginx, (MAX_PER_CLIENT + 10) * [ATTACKER]):
        assert statuses_of_others(nginx) == {200}


def test_others_are_served_beside_slow_readers_of_a_48(nginx: Proxy) -> None:
    needs("a network of its own")
    with slow_readers(nginx, islice(cycle(WIDE_ATTACKER), MAX_PER_48 + 10)):
        assert statuses_of_others(nginx) == {200}


@every_limit
def test_others_are_served_beside_requests_of_a_client(
    nginx: Proxy, limit: Limit
) -> None:
    sources = limit.too_many() * [ATTACKER]

    with simultaneous(nginx, limit.request(), sources):
        assert statuses_of_others(nginx) == {200}


@every_limit
def test_others_are_served_beside_requests_of_a_48(nginx: Proxy, limit: Limit) -> None:
    needs("a network of its own")
    double = limit.times(2)
    sources = islice(cycle(WIDE_ATTACKER), double.too_many())

    with simultaneous(nginx, limit.request(), sources):
        assert statuses_of_others(nginx) == {200}


# ---- Caddy: without a limit by address ----


@pytest.fixture
def hurried_caddy(service: Service, tmp_path: Path) -> Iterator[Proxy]:
    """Caddy, whose clients have four seconds to read, not a minute."""
    with running_proxy(tmp_path, "caddy", [service.port], write="4s") as running:
        yield running


def test_caddy_ends_slow_readers(service: Service, hurried_caddy: Proxy) -> None:
    with simultaneous(hurried_caddy, WHOLE_GET, 2 * IDLE * [ATTACKER]):
        wait_for("readers", lambda: connections_held(service.port) > IDLE)

        wait_for("end of the readers", lambda: connections_held(service.port) <= IDLE)


def test_caddy_serves_others_beside_slow_readers(
    service: Service, hurried_caddy: Proxy
) -> None:
    with simultaneous(hurried_caddy, WHOLE_GET, 2 * IDLE * [ATTACKER]):
        wait_for("readers", lambda: connections_held(service.port) > IDLE)

        assert statuses_of_others(hurried_caddy) == {200}


# ---- The cache of nginx ----

DOCUMENTS = [
    "/reviews.json",
    "/insights.json",
    "/feed.xml",
    "/api/feed.json",
    "/.well-known/openapi.json",
    "/llms.txt",
    "/sitemap.xml",
    "/robots.txt",
    "/favicon.ico",
    "/badge.svg",
]
# Four spellings of two codings.
CODINGS = ["gzip", "identity", "deflate, GZIP;q=0.5", "gzip;q=0"]


def cached_bytes(proxy: Proxy) -> list[int]:
    """The sizes of the files in the cache of nginx."""
    files = (proxy.directory / "cache").rglob("*")
    return [file.stat().st_size for file in files if file.is_file()]


def test_the_cache_holds_a_document_once_for_each_coding(nginx: Proxy) -> None:
    two_clients = OTHERS[:2]
    for source in two_clients:
        for path in DOCUMENTS:
            for coding in CODINGS:
                with closing(nginx.client(source)) as client:
                    client.ask(f"{path}?{source}", accept_encoding=coding)

    assert len(cached_bytes(nginx)) == 2 * len(DOCUMENTS)


def test_new_query_strings_on_a_document_write_it_once(nginx: Proxy) -> None:
    for number in range(9):
        nginx.ask(f"/reviews.json?{number}")

    large = [size for size in cached_bytes(nginx) if size > LARGEST_BYTES]
    assert len(large) == 1


def test_a_page_that_many_want_at_once_is_computed_once(tmp_path: Path) -> None:
    line = " GET /reviews "

    with (
        daemon("--no-hub", "--access-log") as service,
        running_proxy(tmp_path, "nginx", [service.port], **PATIENT) as proxy,
    ):
        with simultaneous(
            proxy, request("/reviews"), OTHERS, patience_seconds=30
        ) as held:
            accepted, _ = held
        wait_for("line of the log", lambda: line in service.log())
        computed = service.log().count(line)

    assert accepted == len(OTHERS)
    assert computed == 1


def test_large_responses_for_ever_new_urls_are_not_cached(nginx: Proxy) -> None:
    _, _, body = nginx.ask("/api/reviews/since/2000-01-01")

    assert len(body) > LARGEST_BYTES
    assert cached_bytes(nginx) == []
