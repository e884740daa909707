"""The proxy files in `deploy/` work as documented: nginx and Caddy in front of two instances.

Only names, ports, paths and certificates of the shipped files are replaced.
"""

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest
from attack_lab import ATTACKER, requests
from proxy_lab import COMMANDS, JSON_TYPE, SERVER_DOCS, Site, exchange, running_site
from services import ROOT
from tools import program

from reviewslib import links

pytestmark = pytest.mark.slow

SHIPPED = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
FORM_TYPE = "application/x-www-form-urlencoded"
CLIENT = {"name": "test", "version": "1"}
PARAMETERS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMETERS}
PING = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
CLIENTS = 16
PAUSE_SECONDS = 0.13  # between two requests of a client, which keeps the limit of its address
CADDY_REPEATS_POSTS = (2, 11, 4)
OFFSETS = count()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site"), "nginx") as running:
        yield running


def test_reads_come_from_the_cache_and_are_revalidated_by_tag(site: Site) -> None:
    site.ask("/reviews.json")
    status, headers, body = site.ask("/reviews.json")
    assert (status, headers["x-cache"]) == (200, "HIT")
    assert json.loads(body)["reviews"]
    assert site.ask("/reviews.json", if_none_match=headers["etag"])[0] == 304


def test_a_session_of_one_instance_is_good_at_the_other(site: Site) -> None:
    session = site.ask("/mcp", json.dumps(INITIALIZE).encode(), **JSON_TYPE)[1]["mcp-session-id"]
    for _ in range(4):  # in turns
        status, _, body = site.ask("/mcp", PING, mcp_session_id=session, **JSON_TYPE)
        assert (status, json.loads(body)) == (200, {"jsonrpc": "2.0", "id": 2, "result": {}})


def test_hub_requests_reach_the_one_hub(site: Site) -> None:
    form = b"hub.mode=subscribe&hub.topic=nothing&hub.callback=http%3A%2F%2Fa.example"
    for _ in range(4):
        status, headers, body = site.ask("/api/websub/hub", form, content_type=FORM_TYPE)
        assert (status, headers["content-type"]) == (400, "text/plain; charset=utf-8")
        assert b"hub.callback must be an https:// URL" in body


def test_the_health_path_is_served_to_this_machine_alone(site: Site) -> None:
    assert json.loads(site.ask("/healthz")[2])["status"] == "ok"
    assert re.search(r"location = /healthz \{\s+allow 127\.0\.0\.1;\s+allow ::1;\s+deny all;", SHIPPED)


def test_requests_to_mcp_and_to_the_hub_have_limits_of_their_own(site: Site) -> None:
    """An address that has used up the one is told when to come back, and may still use the other."""
    attack = requests(site, "/mcp", PING, clients=130, pause_seconds=0)
    with attack, closing(site.connection(ATTACKER)) as own:
        while (answer := exchange(own, "/mcp", PING, **JSON_TYPE))[0] == 200:
            pass
        assert (answer[0], answer[1]["retry-after"]) == (429, "5")
        assert exchange(own, links.HUB_PATH, b"hub.mode=none", content_type=FORM_TYPE)[0] == 400


def test_two_searches_have_answers_of_their_own(site: Site) -> None:
    paths = [f"{links.SEARCH_PATH}?limit=1&query={word}" for word in ("back", "zzz")]
    bodies = [[site.ask(path) for _ in range(2)] for path in paths]
    assert [answers[1][1]["x-cache"] for answers in bodies] == ["HIT", "HIT"]
    (first, again), (nothing, nothing_again) = [[json.loads(body) for _, _, body in each] for each in bodies]
    assert first == again and "back" in first["reviews"][0]["text"].lower()
    assert nothing == nothing_again and nothing["matched"] == 0


def test_a_page_is_cached_for_each_accept(site: Site) -> None:
    types = ("text/html", "application/json", "text/markdown")
    answers = [site.ask("/", accept=each)[1] for _ in range(2) for each in types]
    assert [each["content-type"].partition(";")[0] for each in answers] == [*types, *types]
    assert {each["x-cache"] for each in answers[3:]} == {"HIT"}


@pytest.mark.parametrize(
    ("wanted", "coding"),
    [("gzip", "gzip"), ("br, GZIP;q=0.5", "gzip"), ("deflate,gzip", "gzip"), ("x-gzip", None),
     ("gzip;q=0", None), ("gzip; q=0.00, br", None), ("gzip;q=0.001", "gzip"), ("", None), ("*", None)],
)  # fmt: skip
def test_a_coding_is_sent_to_those_who_take_it(site: Site, wanted: str, coding: str | None) -> None:
    """The first request decides what the cache holds, so each case asks for another path."""
    path = f"{links.SEARCH_PATH}?limit=9&query=a&offset={next(OFFSETS)}"
    answers = [site.ask(path, accept_encoding=each) for each in (wanted, "gzip", "identity")]
    assert [answer[1].get("content-encoding") for answer in answers] == [coding, "gzip", None]


def test_the_table_of_rates_is_that_of_nginx() -> None:
    rates = dict(re.findall(r"zone=reviewsd_(\w+):10m rate=(\d+)r/s;", SHIPPED))
    bursts = re.findall(r"limit_req zone=reviewsd_(\w+) burst=(\d+) delay=(\d+);", SHIPPED)
    shares = {name: (int(delay), int(rates[name]), int(burst) - int(delay)) for name, burst, delay in bursts}
    table = re.findall(r"(?m)^\| .* \| (\d+) \| (\d+) \| (\d+) \| twice as many \|$", SERVER_DOCS)
    assert [tuple(map(int, row)) for row in table] == list(shares.values())[::2]
    for name in list(shares)[::2]:
        assert shares[f"{name}_site"] == tuple(2 * number for number in shares[name])


@pytest.mark.parametrize("proxy", COMMANDS)
def test_a_body_may_have_64_kib(proxy: str, tmp_path: Path) -> None:
    statuses = {64_500: 200, 65_536: 200, 65_537: 413, 1_000_000: 413}
    with running_site(tmp_path, proxy) as site:
        assert {size: site.ask("/mcp", PING.ljust(size), **JSON_TYPE)[0] for size in statuses} == statuses


@pytest.mark.parametrize("proxy", COMMANDS)
def test_restarts_in_turns_lose_nothing(proxy: str, tmp_path: Path) -> None:
    with running_site(tmp_path, proxy) as site:
        with ExitStack() as clients:

            def statuses(path: str, number: int, body: bytes | None = None) -> Counter[int]:
                """Those of a client with an address of its own that keeps within its limit."""
                client = requests(site, path, body, [f"127.0.0.{10 + number}"], 1, PAUSE_SECONDS)
                return clients.enter_context(client)

            calls = statuses("/mcp", 0, PING)
            searches = [statuses(f"{links.SEARCH_PATH}?query={n}+#", n) for n in range(1, CLIENTS)]
            for instance in (site.first, site.second, site.first, site.second):
                instance.stop()
                instance.start()
        assert [set(each) for each in searches] == [{200}] * len(searches)
        assert set(calls) - ({502} if loses_posts(proxy) else set()) == {200}


def test_caddy_takes_the_name_for_buffering_from_its_environment() -> None:
    file = ROOT / "deploy" / "Caddyfile"
    variable = re.search('Environment="(.*)=(request_buffers .*)"', file.read_text(encoding="utf-8"))
    assert variable
    command, environment = [program("caddy"), "adapt", "--config", str(file)], {variable[1]: variable[2]}
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 or "unrecognized subdirective request_buffers" in done.stderr


def loses_posts(proxy: str) -> bool:
    """Whether this proxy cannot repeat a POST whose connection was refused, as the Caddyfile says."""
    if proxy != "caddy":
        return False
    done = subprocess.run([program(proxy), "version"], capture_output=True, text=True, check=True, timeout=60)
    return tuple(map(int, re.findall(r"[0-9]+", done.stdout)[:3])) < CADDY_REPEATS_POSTS


STOPPED = [("nginx", "/api/websub/hub", 503), ("caddy", "/healthz", 502)]


@pytest.mark.parametrize(("proxy", "path", "status"), STOPPED)
def test_a_stopped_instance_asks_for_a_retry(proxy: str, path: str, status: int, tmp_path: Path) -> None:
    with running_site(tmp_path, proxy) as site:
        site.first.stop()
        refused = site.ask(path)
        assert (refused[0], refused[1]["retry-after"]) == (status, "5")


def test_cached_content_is_served_while_no_instance_runs(site: Site) -> None:
    kept = site.ask("/reviews.json")[2]
    site.first.stop()
    site.second.stop()
    assert site.ask("/reviews.json")[2] == kept
    status, headers, _ = site.ask("/api/reviews/search?query=never+asked")
    assert (status, headers["retry-after"]) == (503, "5")
    site.first.start()
    site.second.start()
