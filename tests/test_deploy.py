"""The proxy files in `deploy/` do what they say: nginx and Caddy with them in front of two instances.

Only names, ports, paths and certificates of the shipped files are replaced.
"""

import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from itertools import count
from pathlib import Path

import pytest
import trustme
from services import ROOT, daemon
from tools import program

SHIPPED = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
SERVER_DOCS = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
FORM_TYPE = "application/x-www-form-urlencoded"
JSON_TYPE = {"content_type": "application/json", "accept": "application/json, text/event-stream"}
PUBLIC_URL = "https://reviews.example.com"
CLIENT = {"name": "test", "version": "1"}
PARAMETERS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMETERS}
PING = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
REQUESTS_PER_SECOND = 200
CLIENTS = 16
POST_EVERY = 20  # requests, so that the limit of one address is kept
OTHER_CLIENTS = "set_real_ip_from 127.0.0.1; real_ip_header X-Test-Client;"  # whose addresses tests may take
CADDY_REPEATS_POSTS = (2, 11, 4)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


class Instance:
    """A daemon behind the proxy, on the same port after each start."""

    def __init__(self, port: int, *arguments: str):
        self._port, self._arguments, self._running = port, arguments, ExitStack()

    def start(self) -> None:
        self._running.enter_context(daemon(*self._arguments, base_url=PUBLIC_URL, port=self._port))

    def stop(self) -> None:
        self._running.close()


@dataclass
class Site:
    """A proxy, and behind it the instance with the hub and the one without."""

    port: int
    first: Instance
    second: Instance
    context: ssl.SSLContext

    def connection(self) -> HTTPSConnection:
        return HTTPSConnection("localhost", self.port, timeout=30, context=self.context)

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, lower-case headers and body of one request over TLS."""
        with closing(self.connection()) as connection:
            return exchange(connection, path, body, **headers)


def exchange(
    connection: HTTPSConnection, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, lower-case headers and body of one request, a POST where there is a body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET" if body is None else "POST", path, body, named)
    answer = connection.getresponse()
    return answer.status, {key.lower(): value for key, value in answer.headers.items()}, answer.read()


def replace_all(text: str, replaced: dict[str, str]) -> str:
    """The text with our names, ports and paths; each of the shipped ones must be in it."""
    for shipped, ours in replaced.items():
        assert shipped in text
        text = text.replace(shipped, ours)
    return text


def with_second_instance(directory: Path, name: str, shipped: str) -> str:
    """The shipped file of a proxy, to which `sed` has added a second instance as docs/server.md says."""
    script = re.search(rf"(?m)^sudo sed -i -E '(.*)' /etc/\S*{name}$", SERVER_DOCS)
    assert script
    (directory / name).write_text(shipped, encoding="utf-8")
    subprocess.run(["sed", "-i", "-E", script[1], str(directory / name)], check=True, timeout=60)
    changed = (directory / name).read_text(encoding="utf-8")
    assert changed.count("127.0.0.1:8081") == 2
    return changed


def nginx_command(directory: Path, secure: int, plain: int, behind: dict[str, str]) -> list[str]:
    """nginx with the shipped file, which `behind` points to our instances."""
    nginx = program("nginx")
    changes = {
        "/var/cache/nginx-reviewsd": f"{directory}/cache",
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "    listen [::]:80;\n": "",
        "listen 443 ssl": f"listen 127.0.0.1:{secure} ssl",
        "    listen [::]:443 ssl;\n": "",
        "/etc/letsencrypt/live/reviews.example.com": str(directory),
    }
    text = replace_all(with_second_instance(directory, "reviewsd.conf", SHIPPED), behind | changes)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {directory}/{kind};" for kind in kinds)
    # A worker of root's nginx would else be a user who may not enter the directory.
    user = "user root;" if os.geteuid() == 0 else ""
    (directory / "nginx.conf").write_text(
        f"{user} daemon off; pid {directory}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {OTHER_CLIENTS} {temporary} {text} }}\n"
    )
    command = [nginx, "-p", str(directory), "-c", str(directory / "nginx.conf")]
    tested = subprocess.run([*command, "-t"], check=True, capture_output=True, text=True, timeout=60)
    assert "[warn]" not in tested.stderr
    return command


def caddy_command(directory: Path, secure: int, plain: int, behind: dict[str, str]) -> list[str]:
    """Caddy with the shipped file, likewise."""
    caddy = program("caddy")
    certificate = f"tls {directory}/fullchain.pem {directory}/privkey.pem"
    changes = {
        "{\n\tservers {": f"{{\n\tadmin off\n\thttp_port {plain}\n\tservers {{",
        "reviews.example.com {": f"https://localhost:{secure} {{\n\t{certificate}",
    }
    shipped = (ROOT / "deploy" / "Caddyfile").read_text(encoding="utf-8")
    text = with_second_instance(directory, "Caddyfile", shipped)
    (directory / "Caddyfile").write_text(replace_all(text, behind | changes))
    return [caddy, "run", "--adapter", "caddyfile", "--config", str(directory / "Caddyfile")]


PROXIES = {"nginx": nginx_command, "caddy": caddy_command}


@contextmanager
def running_site(directory: Path, proxy: str) -> Iterator[Site]:
    """The site with one of the PROXIES, its files in `directory`."""
    authority, context = trustme.CA(), ssl.create_default_context()
    authority.configure_trust(context)
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(directory / "fullchain.pem")
    certificate.private_key_pem.write_to_path(directory / "privkey.pem")
    secure, plain, *ports = free_ports(4)
    behind = {f"127.0.0.1:{8080 + each}": f"127.0.0.1:{port}" for each, port in enumerate(ports)}
    command = PROXIES[proxy](directory, secure, plain, behind)
    first, second = Instance(ports[0]), Instance(ports[1], "--no-hub")
    with ExitStack() as cleanup:
        for instance in (first, second):
            cleanup.callback(instance.stop)
            instance.start()
        log = cleanup.enter_context((directory / "log").open("wb"))
        process = subprocess.Popen(command, stderr=log, env=os.environ | {"HOME": str(directory)})
        cleanup.callback(process.wait, 30)
        cleanup.callback(process.terminate)
        wait_for(secure)
        yield Site(secure, first, second, context)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site"), "nginx") as running:
        yield running


def wait_for(port: int) -> None:
    """Until somebody listens."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("the proxy does not listen")


def new_session(site: Site) -> str:
    return site.ask("/mcp", json.dumps(INITIALIZE).encode(), **JSON_TYPE)[1]["mcp-session-id"]


@contextmanager
def load(site: Site) -> Iterator[Counter[str]]:
    """Requests from a few clients all the while; the count of answers by method and status."""
    answers: Counter[str] = Counter()
    ended, numbers, session = threading.Event(), count(), new_session(site)

    def ask_on() -> None:
        with closing(site.connection()) as connection:
            while not ended.wait(CLIENTS / REQUESTS_PER_SECOND):
                number = next(numbers)
                post = number % POST_EVERY == 0
                try:
                    if post:
                        status: object = exchange(
                            connection, "/mcp", PING, mcp_session_id=session, **JSON_TYPE
                        )[0]
                    else:
                        status = exchange(connection, f"/api/reviews/search?query=number+{number}")[0]
                except (OSError, HTTPException) as error:
                    connection.close()
                    status = repr(error)
                answers[f"{'POST' if post else 'GET'} {status}"] += 1

    clients = [threading.Thread(target=ask_on) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield answers
    finally:
        ended.set()
        for client in clients:
            client.join()


def test_reads_come_from_the_cache_and_are_revalidated_by_tag(site: Site) -> None:
    site.ask("/reviews.json")
    status, headers, body = site.ask("/reviews.json")
    assert (status, headers["x-cache"]) == (200, "HIT")
    assert json.loads(body)["reviews"]
    assert site.ask("/reviews.json", if_none_match=headers["etag"])[0] == 304


def test_the_cache_keeps_codings_apart(site: Site) -> None:
    answers = [
        site.ask("/insights.json", accept_encoding=coding)[1].get("content-encoding")
        for coding in ("gzip", "identity", "gzip", "identity")
    ]
    assert answers == ["gzip", None, "gzip", None]


def test_a_session_of_one_instance_is_good_at_the_other(site: Site) -> None:
    session = new_session(site)
    for _ in range(4):  # in turns
        status, _, body = site.ask("/mcp", PING, mcp_session_id=session, **JSON_TYPE)
        assert (status, json.loads(body)) == (200, {"jsonrpc": "2.0", "id": 2, "result": {}})


def test_hub_requests_reach_the_one_hub(site: Site) -> None:
    form = b"hub.mode=subscribe&hub.topic=nothing&hub.callback=http%3A%2F%2Fa.example"
    for _ in range(4):
        status, headers, body = site.ask("/api/websub/hub", form, content_type=FORM_TYPE)
        assert (status, headers["content-type"]) == (400, "text/plain; charset=utf-8")
        assert b"hub.callback must be an https:// URL" in body


def test_a_body_that_is_too_large_ends_at_the_proxy(site: Site) -> None:
    assert site.ask("/mcp", b" " * 70_000)[0] == 413


def test_health_is_not_for_the_world_but_for_this_machine(site: Site) -> None:
    assert json.loads(site.ask("/healthz")[2])["status"] == "ok"
    assert re.search(r"location = /healthz \{\s+allow 127\.0\.0\.1;\s+allow ::1;\s+deny all;", SHIPPED)


def test_requests_to_mcp_and_to_the_hub_have_limits_of_their_own(site: Site) -> None:
    """An address that has used up the one is told when to come back, and may still use the other."""
    with closing(site.connection()) as connection:
        for _ in range(10_000):
            status, headers, _ = exchange(connection, "/mcp", PING, **JSON_TYPE)
            if status == 429:
                break
    assert (status, headers["retry-after"]) == (429, "5")
    assert site.ask("/api/websub/hub", b"hub.mode=none", content_type=FORM_TYPE)[0] == 400


@pytest.mark.parametrize(
    ("clients", "is_one"),
    [(("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"), True), (("2001:db8:1:3::1", "2001:db8:1:4::1"), False),
     (("192.0.2.1", "192.0.2.2"), False), (("2001:db8::1", "2001:db8:0:1::1"), False)],
)  # fmt: skip
def test_limits_count_an_address_of_ipv4_and_a_64_of_ipv6(
    site: Site, clients: tuple[str, str], is_one: bool
) -> None:
    def ask(client: str) -> int:
        return exchange(connection, "/mcp", PING, **JSON_TYPE, x_test_client=client)[0]

    with closing(site.connection()) as connection:
        while ask(clients[0]) != 429:
            pass
        assert (429 in [ask(clients[1]) for _ in range(50)]) == is_one


def test_reads_have_a_generous_limit() -> None:
    assert "limit_req_zone $reviewsd_client zone=reviewsd_reads:10m rate=200r/s;" in SHIPPED
    assert re.search(r"location / \{\s+limit_req zone=reviewsd_reads burst=1000 nodelay;", SHIPPED)


@pytest.mark.parametrize("proxy", PROXIES)
def test_restarts_in_turns_lose_nothing(proxy: str, tmp_path: Path) -> None:
    with running_site(tmp_path, proxy) as site:
        with load(site) as answers:
            for instance in (site.first, site.second, site.first, site.second):
                instance.stop()
                instance.start()
        assert set(answers) - ({"POST 502"} if loses_posts(proxy) else set()) == {"GET 200", "POST 200"}


def loses_posts(proxy: str) -> bool:
    """Whether this proxy cannot repeat a POST whose connection was refused, as the Caddyfile says."""
    if proxy != "caddy":
        return False
    done = subprocess.run([program(proxy), "version"], capture_output=True, text=True, check=True, timeout=60)
    return tuple(map(int, re.findall(r"[0-9]+", done.stdout)[:3])) < CADDY_REPEATS_POSTS


@pytest.mark.parametrize(
    ("proxy", "path", "status"), [("nginx", "/api/websub/hub", 503), ("caddy", "/healthz", 502)]
)
def test_what_only_the_stopped_instance_answers_is_told_to_come_back(
    proxy: str, path: str, status: int, tmp_path: Path
) -> None:
    with running_site(tmp_path, proxy) as site:
        site.first.stop()
        refused = site.ask(path)
        assert (refused[0], refused[1]["retry-after"]) == (status, "5")


def test_what_is_cached_stays_available_while_no_instance_runs(site: Site) -> None:
    kept = site.ask("/reviews.json")[2]
    site.first.stop()
    site.second.stop()
    assert site.ask("/reviews.json")[2] == kept
    status, headers, _ = site.ask("/api/reviews/search?query=never+asked")
    assert (status, headers["retry-after"]) == (503, "5")
    site.first.start()
    site.second.start()
