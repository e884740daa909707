"""The proxy files in `deploy/` work as documented: nginx and Caddy in front of two instances.

Only names, ports, paths and certificates of the shipped files are replaced.
"""

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import count, permutations
from typing import Any, NamedTuple

import pytest
from lab.attack_lab import ATTACKER, requests
from lab.proxy_lab import JSON_TYPE, PROXIES, Instance, Proxy, running_proxy
from lab.services import ROOT, SAMPLE, Address, Response, fetch
from lab.tools import program

from reviewslib import links

pytestmark = pytest.mark.slow

FORM_TYPE = "application/x-www-form-urlencoded"
PING = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
CLIENTS = [f"127.0.4.{number}" for number in range(1, 17)]
PAUSE_SECONDS = 0.13  # between two requests of a client, so that it stays below the limit of its address
SILENT = b"the service does not answer\n"
OFFSETS = count()
FIRST_ID = json.loads((SAMPLE / "reviews.json").read_bytes())["reviews"][0]["id"]


class Site(NamedTuple):
    """Both proxies, and behind them the instance with the hub and the one without."""

    nginx: Proxy
    caddy: Proxy
    instances: tuple[Instance, Instance]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Instance() as first, Instance("--no-hub") as second, ExitStack() as stack:
        first.start()
        second.start()
        ports = [first.port, second.port]
        running = [
            running_proxy(tmp_path_factory.mktemp(name), name, ports)
            for name in PROXIES
        ]
        yield Site(*map(stack.enter_context, running), (first, second))


@pytest.fixture
def nginx(site: Site) -> Proxy:
    return site.nginx


@pytest.fixture(params=PROXIES)
def proxy(site: Site, request: pytest.FixtureRequest) -> Proxy:
    return getattr(site, request.param)


# ---- nginx ----


def test_reads_come_from_the_cache_and_are_revalidated_by_tag(nginx: Proxy) -> None:
    nginx.ask("/reviews.json")
    status, headers, body = nginx.ask("/reviews.json")
    assert (status, headers["x-cache"]) == (200, "HIT")
    assert json.loads(body)["reviews"]
    assert nginx.ask("/reviews.json", if_none_match=headers["etag"])[0] == 304


def test_a_refused_client_is_told_when_to_retry_and_may_use_other_paths(
    nginx: Proxy,
) -> None:
    with (
        requests(nginx, "/reviews", pause_seconds=0),
        closing(nginx.client(ATTACKER)) as own,
    ):
        while (answer := own.ask("/reviews"))[0] == 200:
            pass
        assert (answer[0], answer[1]["retry-after"]) == (429, "5")
        assert answer[2] == b"too many requests from your address\n"
        assert own.ask("/mcp", PING, **JSON_TYPE)[0] == 200


@pytest.mark.parametrize("path", links.CARD_PATHS)
def test_a_card_is_cached_as_a_document_whatever_its_query(
    nginx: Proxy, path: str
) -> None:
    nginx.ask(f"{path}?one")

    status, headers, _ = nginx.ask(f"{path}?another")

    assert (status, headers["x-cache"]) == (200, "HIT")


@pytest.mark.parametrize("path", links.CARD_PATHS)
def test_a_card_is_served_through_a_proxy(proxy: Proxy, path: str) -> None:
    status, _, body = proxy.ask(path)

    assert status == 200
    assert json.loads(body)


def test_two_searches_are_cached_apart(nginx: Proxy) -> None:
    paths = [f"{links.SEARCH_PATH}?limit=1&query={word}" for word in ("back", "zzz")]
    found, nothing = ([nginx.ask(path) for _ in range(2)] for path in paths)
    assert (found[1][1]["x-cache"], nothing[1][1]["x-cache"]) == ("HIT", "HIT")
    assert "back" in json.loads(found[1][2])["reviews"][0]["text"].lower()
    assert json.loads(nothing[1][2])["matched"] == 0


def test_a_page_is_cached_for_each_accept(nginx: Proxy) -> None:
    types = ("text/html", "application/json", "text/markdown")
    responses = [nginx.ask("/", accept=type)[1] for _ in range(2) for type in types]
    assert [headers["content-type"].partition(";")[0] for headers in responses] == [
        *types,
        *types,
    ]
    assert {headers["x-cache"] for headers in responses[3:]} == {"HIT"}


@pytest.mark.parametrize(
    ("wanted", "coding"),
    [
        ("gzip", "gzip"),
        ("br, GZIP;q=0.5", "gzip"),
        ("deflate,gzip", "gzip"),
        ("x-gzip", None),
        ("gzip;q=0", None),
        ("gzip; q=0.00, br", None),
        ("gzip;q=0.001", "gzip"),
        ("", None),
        ("*", None),
    ],
)
def test_gzip_is_sent_to_clients_that_accept_it(
    nginx: Proxy, wanted: str, coding: str | None
) -> None:
    """The first request decides what the cache holds, so every case requests another path."""
    path = f"{links.SEARCH_PATH}?limit=9&query=a&offset={next(OFFSETS)}"
    answers = [
        nginx.ask(path, accept_encoding=field) for field in (wanted, "gzip", "identity")
    ]
    assert [answer[1].get("content-encoding") for answer in answers] == [
        coding,
        "gzip",
        None,
    ]


# What a client may do with a header field to have two values of it (RFC 9112 section 5.2
# has the folded form, RFC 9110 section 5.3 the others).
FORMS = {
    "once": "{name}: {first}, {second}",
    "twice": "{name}: {first}\r\n{name}: {second}",
    "in two cases": "{name}: {first}\r\n{upper}: {second}",
    "folded": "{name}: {first},\r\n {second}",
    "empty and once more": "{name}:\r\n{name}: {second}",
}
KEYED_FIELDS = {
    "accept": ("text/html", "text/markdown", "application/json"),
    "accept-encoding": ("gzip", "identity", "br"),
}


def kind_of(answer: tuple[int, Mapping[str, str], bytes]) -> tuple[int, str, str]:
    """What tells the representations of a URL apart: status, media type, coding."""
    status, headers, _ = answer
    return status, headers["content-type"], headers.get("content-encoding", "")


def kind_from_service(site: Site, path: str, name: str, value: str) -> Any:
    """The representation that the service itself sends to this client."""
    answer = fetch_from(site.instances[0].port, path, **{name: value})
    return kind_of((answer.status, answer.headers, answer.body))


def fetch_from(port: int, path: str, **headers: str) -> Response:
    return fetch(Address(port), path, **headers)


def send_raw(proxy: Proxy, path: str, fields: str, source: str) -> None:
    """A request whose header fields are these bytes; its response is read."""
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n\r\n"
    with closing(proxy.connected(source)) as connection:
        connection.sendall(head.encode("latin-1"))
        while connection.recv(65536):
            pass


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KEYED_FIELDS)
@pytest.mark.parametrize("path", ["/", f"/reviews/{FIRST_ID}"])
def test_two_values_of_a_field_change_nothing_for_other_clients(
    site: Site, path: str, name: str, form: str
) -> None:
    number = next(OFFSETS)
    source = f"127.0.5.{number % 250 + 1}"
    for first, second in permutations(KEYED_FIELDS[name], 2):
        # given
        target = f"{path}?{number}-{first}-{second}"
        fields = FORMS[form].format(
            name=name, upper=name.upper(), first=first, second=second
        )

        # when
        send_raw(site.nginx, target, fields, source)

        # then
        for value in (first, second):
            got = site.nginx.ask(target, **{name: value})
            assert kind_of(got) == kind_from_service(site, target, name, value)


def test_each_field_of_a_cache_key_is_passed_on_as_the_key_has_it() -> None:
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    keys = " ".join(re.findall("proxy_cache_key (.*);", text))
    passed_on = set(re.findall(r"proxy_set_header \S+ (\$\w+);", text))

    of_the_line = {"$uri", "$request_uri"}
    assert set(re.findall(r"\$\w+", keys)) - of_the_line <= passed_on


@pytest.mark.parametrize("length", [1_000, 3_000, 4_000, 8_000, 12_000, 15_000])
@pytest.mark.parametrize(
    "start",
    [
        pytest.param("/reviews?query=", id="list"),
        pytest.param(f"{links.SEARCH_PATH}?query=", id="search"),
        pytest.param("/reviews/?query=", id="redirect, which repeats it"),
        pytest.param("/nothing/", id="path"),
    ],
)
def test_a_query_passes_in_every_length_that_the_service_takes(
    site: Site, start: str, length: int
) -> None:
    path = start + "a" * length
    source = f"127.0.6.{next(OFFSETS) % 250 + 1}"

    status, _, _ = site.nginx.ask(path, source=source)

    assert status == fetch_from(site.instances[0].port, path).status


@pytest.mark.parametrize("end", ["%0A", "%0D%0A", "%0AX-Injected:%20a"])
@pytest.mark.parametrize("path", ["/reviews.json", "/feed.xml", "/mcp"])
def test_a_line_end_behind_a_path_makes_another_path(
    nginx: Proxy, path: str, end: str
) -> None:
    status, _, body = nginx.ask(path + end, source="127.0.0.7")

    assert status == 404
    assert b"There is nothing at" in body


# ---- Both ----


@pytest.mark.parametrize("size", [64_500, 65_536, 65_537, 1_000_000])
def test_the_proxy_refuses_bodies_of_more_than_64_kib(proxy: Proxy, size: int) -> None:
    status, _, body = proxy.ask("/mcp", PING.ljust(size), **JSON_TYPE)
    assert (status, b"result" in body, b"Too Large" in body) == (
        (413, False, True) if size > 65_536 else (200, True, False)
    )


def test_hub_requests_reach_the_instance_with_the_hub(proxy: Proxy) -> None:
    form = b"hub.mode=subscribe&hub.topic=nothing&hub.callback=http%3A%2F%2Fa.example"
    for _ in range(4):
        status, _, body = proxy.ask(links.HUB_PATH, form, content_type=FORM_TYPE)
        assert status == 400
        assert b"hub.callback must be an https:// URL" in body


@pytest.mark.parametrize(("source", "status"), [("127.0.0.1", 200), ("127.0.0.5", 403)])
def test_the_health_path_is_served_to_this_machine(
    proxy: Proxy, source: str, status: int
) -> None:
    answered, _, body = proxy.ask(links.HEALTH_PATH, source=source)
    assert (answered, b'"status"' in body) == (status, status == 200)


def test_restarts_in_turns_lose_nothing(site: Site, proxy: Proxy) -> None:
    with ExitStack() as clients:

        def statuses(source: str, path: str, body: bytes | None = None) -> Counter[int]:
            return clients.enter_context(
                requests(proxy, path, body, [source], PAUSE_SECONDS)
            )

        calls = statuses(CLIENTS[0], "/mcp", PING)
        searches = [
            statuses(client, f"{links.SEARCH_PATH}?query={client}+#")
            for client in CLIENTS[1:]
        ]
        for instance in site.instances:
            instance.stop()
            instance.start()
    assert [set(counts) for counts in searches] == [{200}] * len(searches)
    may_be_lost = {502} if proxy is site.caddy else set()  # POSTs, before Caddy 2.11.4
    assert set(calls) - may_be_lost == {200}


def test_caddy_reads_the_name_for_buffering_from_its_environment() -> None:
    file = ROOT / "deploy" / "Caddyfile"
    variable = re.search(
        'Environment="(.*)=(request_buffers .*)"', file.read_text(encoding="utf-8")
    )
    assert variable
    command = [program("caddy"), "adapt", "--config", str(file)]
    environment = os.environ | {variable[1]: variable[2]}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (
        done.returncode == 0
        or "unrecognized subdirective request_buffers" in done.stderr
    )


def test_without_an_instance_only_cached_documents_are_served(site: Site) -> None:
    kept = site.nginx.ask("/reviews.json")[2]
    for instance in site.instances:
        instance.stop()
    try:
        assert site.nginx.ask("/reviews.json")[2] == kept
        for proxy, path, expected in (
            (site.nginx, "/api/reviews/search?query=never+asked", (503, SILENT)),
            (site.nginx, links.HUB_PATH, (503, SILENT)),
            (site.caddy, links.HEALTH_PATH, (502, b"502 Bad Gateway")),
        ):
            status, headers, body = proxy.ask(path)
            assert (status, body, headers["retry-after"]) == (*expected, "5")
    finally:
        for instance in site.instances:
            instance.start()
