"""The proxy files in `deploy/` work as documented: nginx and Caddy before two instances.

Only names, ports, paths and certificates of the shipped files are replaced.

Sections: the site - nginx: its cache - nginx: keys of the cache - nginx: its limits -
nginx: paths - both proxies - restarts - Caddy - without an instance.
"""

import json
import os
import re
import socket
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count, permutations
from pathlib import Path

import pytest
from lab.attack_lab import ATTACKER, requests
from lab.proxy_lab import JSON_TYPE, PROXIES, Answer, Instance, Proxy, running_proxy
from lab.services import ROOT, SAMPLE, Address, Response, fetch
from lab.tools import program
from lab.watching import wait_for

from reviewslib import links

pytestmark = pytest.mark.slow

FORM_TYPE = "application/x-www-form-urlencoded"
PING = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
FIRST_ID = json.loads((SAMPLE / "reviews.json").read_bytes())["reviews"][0]["id"]
NUMBERS = count()


def new_client() -> str:
    """An address that has asked little so far."""
    return f"127.0.5.{next(NUMBERS) % 250 + 1}"


# ---- The site ----


@dataclass(frozen=True)
class Site:
    """Both proxies, and behind them the instance with the hub and the one without."""

    nginx: Proxy
    caddy: Proxy
    instances: tuple[Instance, Instance]

    def without_proxy(self, path: str, **headers: str) -> Response:
        """What the instance with the hub answers by itself."""
        return fetch(Address(self.instances[0].port), path, **headers)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Instance() as first, Instance("--no-hub") as second, ExitStack() as running:
        first.start()
        second.start()
        proxies = {}
        for name in PROXIES:
            directory = tmp_path_factory.mktemp(name)
            proxy = running_proxy(directory, name, [first.port, second.port])
            proxies[name] = running.enter_context(proxy)
        yield Site(
            nginx=proxies["nginx"],
            caddy=proxies["caddy"],
            instances=(first, second),
        )


@pytest.fixture
def nginx(site: Site) -> Proxy:
    return site.nginx


@pytest.fixture(params=PROXIES)
def proxy(site: Site, request: pytest.FixtureRequest) -> Proxy:
    return getattr(site, request.param)


# ---- nginx: its cache ----


def test_a_read_comes_from_the_cache_once_it_was_asked(nginx: Proxy) -> None:
    nginx.ask("/reviews.json")

    status, headers, body = nginx.ask("/reviews.json")

    assert status == 200
    assert headers["x-cache"] == "HIT"
    assert json.loads(body)["reviews"]


def test_what_comes_from_the_cache_is_revalidated_by_its_tag(nginx: Proxy) -> None:
    _, headers, _ = nginx.ask("/reviews.json")

    status, _, _ = nginx.ask("/reviews.json", if_none_match=headers["etag"])

    assert status == 304


@pytest.mark.parametrize("path", links.CARD_PATHS)
def test_a_card_is_cached_as_a_document_whatever_its_query(
    nginx: Proxy, path: str
) -> None:
    nginx.ask(f"{path}?one")

    status, headers, _ = nginx.ask(f"{path}?another")

    assert status == 200
    assert headers["x-cache"] == "HIT"


def test_two_searches_are_cached_apart(nginx: Proxy) -> None:
    for word in ("back", "zzz"):
        nginx.ask(f"{links.SEARCH_PATH}?limit=1&query={word}")

    _, found_headers, found = nginx.ask(f"{links.SEARCH_PATH}?limit=1&query=back")
    _, empty_headers, empty = nginx.ask(f"{links.SEARCH_PATH}?limit=1&query=zzz")

    assert found_headers["x-cache"] == "HIT"
    assert "back" in json.loads(found)["reviews"][0]["text"].lower()
    assert empty_headers["x-cache"] == "HIT"
    assert json.loads(empty)["matched"] == 0


TYPES = ["text/html", "application/json", "text/markdown"]


@pytest.mark.parametrize("type", TYPES)
def test_a_page_is_cached_for_each_accept(nginx: Proxy, type: str) -> None:
    for each in TYPES:
        nginx.ask("/", accept=each)

    _, headers, _ = nginx.ask("/", accept=type)

    assert headers["x-cache"] == "HIT"
    assert headers["content-type"].partition(";")[0] == type


@pytest.mark.parametrize(
    ("wanted", "coding"),
    [
        pytest.param("gzip", "gzip", id="gzip"),
        pytest.param("br, GZIP;q=0.5", "gzip", id="in a list"),
        pytest.param("deflate,gzip", "gzip", id="without a blank"),
        pytest.param("gzip;q=0.001", "gzip", id="hardly"),
        pytest.param("x-gzip", None, id="another name"),
        pytest.param("gzip;q=0", None, id="not at all"),
        pytest.param("gzip; q=0.00, br", None, id="not at all, in a list"),
        pytest.param("", None, id="nothing"),
        pytest.param("*", None, id="anything"),
    ],
)
def test_gzip_is_sent_to_clients_that_accept_it(
    nginx: Proxy, wanted: str, coding: str | None
) -> None:
    # The first request for a path decides what the cache holds.
    path = f"{links.SEARCH_PATH}?limit=9&query=a&offset={next(NUMBERS)}"

    codings = []
    for accepted in (wanted, "gzip", "identity"):
        _, headers, _ = nginx.ask(path, accept_encoding=accepted)
        codings.append(headers.get("content-encoding"))

    assert codings == [coding, "gzip", None]


# Instead of the minute that the service says.
FRESH_FOR_A_SECOND = {
    "proxy_ignore_headers": "Vary Cache-Control; proxy_cache_valid 1s"
}


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[tuple[Proxy, Instance]]:
    """nginx, which has cached a document that is no longer fresh, and the instance."""
    with Instance() as instance:
        instance.start()
        with running_proxy(
            tmp_path, "nginx", [instance.port], **FRESH_FOR_A_SECOND
        ) as proxy:
            proxy.ask(links.REVIEWS_PATH)
            yield proxy, instance


def first_that_is_not_fresh(proxy: Proxy) -> Answer:
    """The first answer whose content nginx knows to be old."""
    answers = [proxy.ask(links.REVIEWS_PATH)]

    def is_old() -> bool:
        answers.append(proxy.ask(links.REVIEWS_PATH))
        return answers[-1][1]["x-cache"] != "HIT"

    wait_for("old content", is_old)
    return answers[-1]


def test_nobody_waits_while_old_content_is_renewed(
    forgetful: tuple[Proxy, Instance],
) -> None:
    proxy, _ = forgetful

    status, headers, _ = first_that_is_not_fresh(proxy)

    assert status == 200
    assert headers["x-cache"] == "STALE"


def test_old_content_is_served_while_the_service_does_not_answer(
    forgetful: tuple[Proxy, Instance],
) -> None:
    proxy, instance = forgetful
    instance.stop()
    first_that_is_not_fresh(proxy)

    # By then nginx has asked in vain.
    status, headers, body = proxy.ask(links.REVIEWS_PATH)

    assert status == 200
    assert headers["x-cache"] in ("STALE", "UPDATING")
    assert json.loads(body)["reviews"]


# ---- nginx: keys of the cache ----

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


Kind = tuple[int, str, str]


def kind_of(status: int, headers: Mapping[str, str]) -> Kind:
    """What tells the representations of a URL apart: status, media type, coding."""
    return status, headers["content-type"], headers.get("content-encoding", "")


def kind_from_nginx(site: Site, path: str, name: str, value: str) -> Kind:
    """The representation that a client behind the proxy gets."""
    status, headers, _ = site.nginx.ask(path, **{name: value})
    return kind_of(status, headers)


def kind_from_service(site: Site, path: str, name: str, value: str) -> Kind:
    """The representation that the service itself sends to this client."""
    answer = site.without_proxy(path, **{name: value})
    return kind_of(answer.status, answer.headers)


def send_raw(proxy: Proxy, path: str, fields: str, source: str) -> None:
    """A request whose header fields are these bytes; its response is read."""
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", fields]
    head = "\r\n".join([*lines, "", ""])
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
    number = next(NUMBERS)
    source = new_client()
    for first, second in permutations(KEYED_FIELDS[name], 2):
        target = f"{path}?{number}-{first}-{second}"
        upper = name.upper()
        fields = FORMS[form].format(name=name, upper=upper, first=first, second=second)

        send_raw(site.nginx, target, fields, source)

        for value in (first, second):
            got = kind_from_nginx(site, target, name, value)
            assert got == kind_from_service(site, target, name, value)


def test_each_field_of_a_cache_key_is_passed_on_as_the_key_has_it() -> None:
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    keys = " ".join(re.findall("proxy_cache_key (.*);", text))
    passed_on = set(re.findall(r"proxy_set_header \S+ (\$\w+);", text))

    of_the_line = {"$uri", "$request_uri"}
    assert set(re.findall(r"\$\w+", keys)) - of_the_line <= passed_on


# ---- nginx: its limits ----


def refused_answer(nginx: Proxy) -> Answer:
    """The first answer to a client that has asked for too many pages."""
    with closing(nginx.client(ATTACKER)) as client:
        answer = client.ask("/reviews")
        while answer[0] == 200:
            answer = client.ask("/reviews")
    return answer


def test_a_refused_client_is_told_when_to_retry(nginx: Proxy) -> None:
    with requests(nginx, "/reviews", pause_seconds=0):
        status, headers, body = refused_answer(nginx)

    assert status == 429
    assert headers["retry-after"] == "5"
    assert body == b"too many requests from your address\n"


def test_a_refused_client_may_use_other_paths(nginx: Proxy) -> None:
    with requests(nginx, "/reviews", pause_seconds=0):
        refused_answer(nginx)

        status, _, _ = nginx.ask("/mcp", PING, source=ATTACKER, **JSON_TYPE)

    assert status == 200


# ---- nginx: paths ----


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

    status, _, _ = site.nginx.ask(path, source=new_client())

    assert status == site.without_proxy(path).status


@pytest.mark.parametrize("end", ["%0A", "%0D%0A", "%0AX-Injected:%20a"])
@pytest.mark.parametrize("path", ["/reviews.json", "/feed.xml", "/mcp"])
def test_a_line_end_behind_a_path_makes_another_path(
    nginx: Proxy, path: str, end: str
) -> None:
    status, _, body = nginx.ask(path + end, source="127.0.0.7")

    assert status == 404
    assert b"There is nothing at" in body


# ---- Both proxies ----


@pytest.mark.parametrize("path", links.CARD_PATHS)
def test_a_card_is_served_through_a_proxy(proxy: Proxy, path: str) -> None:
    status, _, body = proxy.ask(path)

    assert status == 200
    assert json.loads(body)


# Of a body.
LARGEST = 64 * 1024


@pytest.mark.parametrize(
    "size",
    [pytest.param(64_500, id="large"), pytest.param(LARGEST, id="largest")],
)
def test_a_body_of_64_kib_reaches_the_service(proxy: Proxy, size: int) -> None:
    status, _, body = proxy.ask("/mcp", PING.ljust(size), **JSON_TYPE)

    assert status == 200
    assert json.loads(body)["result"] == {}


@pytest.mark.parametrize(
    "size",
    [pytest.param(LARGEST + 1, id="too large"), pytest.param(10**6, id="huge")],
)
def test_the_proxy_refuses_a_larger_body_by_itself(proxy: Proxy, size: int) -> None:
    status, _, body = proxy.ask("/mcp", PING.ljust(size), **JSON_TYPE)

    assert status == 413
    # The service's own answer would be JSON-RPC.
    assert b"Too Large" in body


def test_hub_requests_reach_the_instance_with_the_hub(proxy: Proxy) -> None:
    form = b"hub.mode=subscribe&hub.topic=nothing&hub.callback=http%3A%2F%2Fa.example"
    # More than there are instances to take turns.
    for _ in range(4):
        status, _, body = proxy.ask(links.HUB_PATH, form, content_type=FORM_TYPE)

        assert status == 400
        assert b"hub.callback must be an https:// URL" in body


def test_the_health_path_is_served_to_this_machine(proxy: Proxy) -> None:
    status, _, body = proxy.ask(links.HEALTH_PATH, source="127.0.0.1")

    assert status == 200
    assert json.loads(body)["status"] == "ok"


def test_the_health_path_is_hidden_from_others(proxy: Proxy) -> None:
    status, _, body = proxy.ask(links.HEALTH_PATH, source="127.0.0.5")

    assert status == 403
    assert b'"status"' not in body


def test_browsers_are_offered_http_1_1_alone(proxy: Proxy) -> None:
    # Caddy 2.6 never ends an HTTP/2 stream whose client is slow.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])

    with (
        socket.create_connection(("127.0.0.1", proxy.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        chosen = connection.selected_alpn_protocol()

    assert chosen == "http/1.1"


# ---- Restarts ----

SEARCHERS = [f"127.0.4.{number}" for number in range(2, 17)]
CALLER = "127.0.4.1"
# Between two requests of a client, which stays below the limit of its address.
PAUSE_SECONDS = 0.13


@dataclass(frozen=True)
class Restarted:
    """How often each status came while the instances were restarted in turns."""

    calls: Counter[int]
    searches: list[Counter[int]]


def restarted(site: Site, proxy: Proxy) -> Restarted:
    """Restarts both instances, the second when the first is back, under load."""
    with ExitStack() as clients:
        calls = requests(proxy, "/mcp", PING, [CALLER], PAUSE_SECONDS)
        counted = Restarted(clients.enter_context(calls), [])
        for client in SEARCHERS:
            # `#` becomes a new number, so that no cache has the answer.
            path = f"{links.SEARCH_PATH}?query={client}+#"
            searches = requests(proxy, path, None, [client], PAUSE_SECONDS)
            counted.searches.append(clients.enter_context(searches))
        for instance in site.instances:
            instance.stop()
            instance.start()
    return counted


# Before Caddy 2.11.4 a POST may be lost.
MAY_BE_LOST = {"nginx": set[int](), "caddy": {502}}


@pytest.mark.parametrize("name", PROXIES)
def test_restarts_in_turns_lose_nothing(site: Site, name: str) -> None:
    counted = restarted(site, getattr(site, name))

    assert set(counted.calls) - MAY_BE_LOST[name] == {200}
    for statuses in counted.searches:
        assert set(statuses) == {200}


# ---- Caddy ----


def test_caddy_reads_the_name_for_buffering_from_its_environment() -> None:
    file = ROOT / "deploy" / "Caddyfile"
    said = re.search('Environment="(.*)=(request_buffers .*)"', file.read_text())
    assert said
    command = [program("caddy"), "adapt", "--config", str(file)]
    environment = os.environ | {said[1]: said[2]}

    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60
    )

    if done.returncode != 0:
        # Caddy before 2.7, which has read the name that its environment gives.
        assert "unrecognized subdirective request_buffers" in done.stderr


# ---- Without an instance ----


@pytest.fixture
def abandoned(site: Site) -> Iterator[bytes]:
    """The proxies without the instances; yields a document that nginx has cached."""
    _, _, kept = site.nginx.ask("/reviews.json")
    for instance in site.instances:
        instance.stop()
    yield kept
    for instance in site.instances:
        instance.start()


def test_without_an_instance_a_cached_document_is_served(
    nginx: Proxy, abandoned: bytes
) -> None:
    _, _, body = nginx.ask("/reviews.json")

    assert body == abandoned


@pytest.mark.usefixtures("abandoned")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"{links.SEARCH_PATH}?query=never+asked", id="search"),
        pytest.param(links.HUB_PATH, id="hub"),
    ],
)
def test_without_an_instance_nginx_says_so(nginx: Proxy, path: str) -> None:
    status, headers, body = nginx.ask(path)

    assert status == 503
    assert headers["retry-after"] == "5"
    assert body == b"the service does not answer\n"


@pytest.mark.usefixtures("abandoned")
def test_without_an_instance_caddy_says_so(site: Site) -> None:
    status, headers, body = site.caddy.ask(links.HEALTH_PATH)

    assert status == 502
    assert headers["retry-after"] == "5"
    assert body == b"502 Bad Gateway"
