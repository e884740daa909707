"""Behind the shipped proxies one client cannot stop the service: its share is limited, others are served.

Here everything is counted; `bench/run.py attacks` measures what others notice.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import attack_lab
import pytest
from page_samples import write_files
from proxy_lab import Proxy, running_proxy
from servers import wait_for
from services import Address, daemon
from small_files import a_file, review
from tools import needs

pytestmark = pytest.mark.slow

PATIENT = dict.fromkeys(("send_timeout", "client_header_timeout"), "60s")
"""Timeouts of nginx, instead of the shipped 10 s: on a busy machine, clients of the tests are slower."""
LARGEST_BYTES = 5_000_000  # more than the sockets on the way of an answer take
MAX_PER_CLIENT, MAX_PER_48 = 100, 300  # requests at the same time
IDLE = 2 * 32 + 1  # connections that two workers of nginx keep to the service, and one in use
CODINGS = ("gzip", "identity", "gzip, br", "GZIP", "gzip;q=0", "br", "deflate, gzip;q=0.5", "x")
DOCUMENTS = ("/reviews.json", "/insights.json", "/feed.xml", "/api/feed.json", "/.well-known/openapi.json")
DOCUMENTS += ("/llms.txt", "/sitemap.xml", "/robots.txt", "/favicon.ico", "/badge.svg")


@pytest.fixture(scope="module")
def large_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reviews = [review(id=str(number), text="so good " * 400) for number in range(LARGEST_BYTES // 3200)]
    return write_files(tmp_path_factory.mktemp("large"), a_file(*reviews))


@pytest.fixture(scope="module")
def service(large_data: Path) -> Iterator[Address]:
    with daemon("--no-hub", data=large_data) as running:
        yield running


@pytest.fixture
def nginx(service: Address, tmp_path: Path) -> Iterator[Proxy]:
    with running_proxy(tmp_path, "nginx", [service.port], **PATIENT) as proxy:
        yield proxy


def statuses_of_others(proxy: Proxy, sources: list[str] = attack_lab.OTHERS) -> set[int]:
    return {status for status, _ in attack_lab.others(proxy, sources=sources)}


@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_a_slow_body_holds_no_connection_of_the_service(service: Address, name: str, tmp_path: Path) -> None:
    with running_proxy(tmp_path, name, [service.port]) as proxy, attack_lab.slow_bodies(proxy, 200):
        assert statuses_of_others(proxy) == {200}
        assert attack_lab.connections_held(service.port) <= IDLE


def test_nginx_limits_the_slow_readers_of_one_client(nginx: Proxy, service: Address) -> None:
    with attack_lab.slow_readers(nginx, 256) as statuses:
        assert statuses == {200: MAX_PER_CLIENT, 429: 256 - MAX_PER_CLIENT}
        assert statuses_of_others(nginx) == {200}
        assert attack_lab.connections_held(service.port) <= IDLE


def test_clients_of_ipv4_have_no_common_limit(nginx: Proxy) -> None:
    with attack_lab.slow_readers(nginx, MAX_PER_48 + 20, attack_lab.OTHERS) as statuses:
        assert statuses == {200: MAX_PER_48 + 20}


@pytest.mark.parametrize(
    ("clients", "is_one"),
    [(("2001:db8:a:a0a::a", "2001:db8:a:a0a:ffff::9"), True), (("2001:db8:1:3::1", "2001:db8:1:4::1"), False),
     (("192.0.2.1", "192.0.2.1"), True), (("192.0.2.1", "192.0.2.2"), False)],
)  # fmt: skip
def test_a_client_is_an_address_of_ipv4_or_a_64_of_ipv6(
    nginx: Proxy, clients: tuple[str, str], is_one: bool
) -> None:
    field = f"X-Test-Client: {clients[0]}"
    with attack_lab.slow_readers(nginx, MAX_PER_CLIENT, ["127.0.0.1"], field):
        assert nginx.ask("/badge.svg", x_test_client=clients[1])[0] == (429 if is_one else 200)


def test_caddy_ends_slow_readers_and_serves_others_meanwhile(service: Address, tmp_path: Path) -> None:
    with (
        running_proxy(tmp_path, "caddy", [service.port], write="2s") as proxy,
        attack_lab.slow_readers(proxy, 100) as statuses,
    ):
        assert statuses == {200: 100}
        assert statuses_of_others(proxy) == {200}
        deadline = time.monotonic() + 30
        while attack_lab.connections_held(service.port) > IDLE and time.monotonic() < deadline:
            time.sleep(0.1)
        assert attack_lab.connections_held(service.port) <= IDLE


def test_caddy_speaks_no_http_2_whose_streams_it_would_not_end(service: Address, tmp_path: Path) -> None:
    with running_proxy(tmp_path, "caddy", [service.port]) as proxy:
        proxy.context.set_alpn_protocols(["h2", "http/1.1"])
        with attack_lab.connected(proxy) as connection:
            assert connection.selected_alpn_protocol() == "http/1.1"


def cached_bytes(proxy: Proxy) -> list[int]:
    """The sizes of the files in the cache of nginx."""
    return [file.stat().st_size for file in (proxy.directory / "cache").rglob("*") if file.is_file()]


def test_the_cache_holds_a_document_once_for_each_coding(nginx: Proxy) -> None:
    for number in range(4):
        for path in DOCUMENTS:
            for coding in CODINGS:
                assert nginx.ask(f"{path}?{number}", accept_encoding=coding)[0] in (200, 404)
    assert len(cached_bytes(nginx)) <= 2 * len(DOCUMENTS)


def test_new_query_strings_on_a_document_write_it_once(nginx: Proxy) -> None:
    with attack_lab.requests(nginx, "/reviews.json?#", clients=4, pause_seconds=0) as statuses:
        assert statuses_of_others(nginx) == {200}
        wait_for("ten answers", lambda: statuses[200] > 10)
    assert sum(size > LARGEST_BYTES for size in cached_bytes(nginx)) == 1


def test_large_responses_for_ever_new_addresses_are_not_cached(nginx: Proxy) -> None:
    assert len(nginx.ask("/api/reviews/since/2000-01-01")[2]) > LARGEST_BYTES
    assert not cached_bytes(nginx)


@pytest.mark.parametrize(
    ("path", "body", "at_once", "a_second"),
    [("/reviews?query=#", None, 10, 10), ("/api/reviews/since/9999-12-31?#", None, 10, 10),
     ("/mcp", attack_lab.NEWEST_CALL, 20, 20)],
)  # fmt: skip
def test_one_client_has_few_pages_and_calls_made(
    nginx: Proxy, path: str, body: bytes | None, at_once: int, a_second: int
) -> None:
    began = time.monotonic()
    with attack_lab.requests(nginx, path, body, clients=130, pause_seconds=0.1) as statuses:
        assert statuses_of_others(nginx) == {200}
    assert statuses[429] > 0
    assert 0 < statuses[200] <= at_once + a_second * (time.monotonic() - began) + 1


Attack = Callable[[Proxy], AbstractContextManager[Counter[int]]]


def attack_of_a_48(data: Path, directory: Path, attack: Attack) -> tuple[Counter[int], float]:
    """Statuses and seconds of an attack, beside which others of other /48s were answered."""
    with (
        daemon("--no-hub", data=data) as service,
        running_proxy(directory, "nginx", [service.port], "[::1]", **PATIENT) as proxy,
    ):
        began = time.monotonic()
        with attack(proxy) as statuses:
            assert statuses_of_others(proxy, attack_lab.WIDE_OTHERS) == {200}
        return statuses, time.monotonic() - began


def many_requests(path: str, body: bytes | None = None) -> Attack:
    attack = partial(attack_lab.requests, sources=attack_lab.WIDE_ATTACKER, clients=100, pause_seconds=0)
    return partial(attack, path=path, body=body)


@pytest.mark.parametrize(("attack", "at_once", "a_second"), [
    (many_requests("/reviews?query=#"), 20, 20),
    (many_requests("/mcp", attack_lab.NEWEST_CALL), 40, 40),
    (partial(attack_lab.slow_readers, number=360, sources=attack_lab.WIDE_ATTACKER[:4]), MAX_PER_48, 0),
])  # fmt: skip
def test_a_48_of_ipv6_has_limits_of_its_own(
    large_data: Path, tmp_path: Path, attack: Attack, at_once: int, a_second: int
) -> None:
    needs("a network of a thread")
    statuses, seconds = attack_lab.in_own_network(partial(attack_of_a_48, large_data, tmp_path, attack))
    assert 0 < statuses[200] <= at_once + a_second * seconds + (1 if a_second else 0)
