"""The proxy files in `deploy/` do what they say: nginx with the shipped file in front of two instances.

Only addresses, ports and paths of the shipped file are replaced.
"""

import json
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http.client import HTTPSConnection

import pytest
import trustme
from services import ROOT, daemon
from tools import program

SHIPPED = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
FORM_TYPE = "application/x-www-form-urlencoded"
PUBLIC_URL = "https://reviews.example.com"
CLIENT = {"name": "test", "version": "1"}
PARAMETERS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMETERS}


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@dataclass
class Site:
    """nginx, and behind it the instance with the hub and the one without."""

    port: int
    first: ExitStack  # closing it stops the instance
    second: ExitStack
    context: ssl.SSLContext

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, lower-case headers and body of one request over TLS."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(HTTPSConnection("localhost", self.port, timeout=30, context=self.context)) as connection:
            connection.request("GET" if body is None else "POST", path, body, named)
            answer = connection.getresponse()
            fields = {key.lower(): value for key, value in answer.headers.items()}
            return answer.status, fields, answer.read()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    nginx, directory = program("nginx"), tmp_path_factory.mktemp("site")
    authority, context = trustme.CA(), ssl.create_default_context()
    authority.configure_trust(context)
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(directory / "fullchain.pem")
    certificate.private_key_pem.write_to_path(directory / "privkey.pem")
    session_key = directory / "session-key"
    session_key.write_bytes(bytes(range(32)))
    secure, plain, *behind = free_ports(4)
    shared = ["--session-key-file", str(session_key), "--mcp-require-session"]
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(daemon(*shared, base_url=PUBLIC_URL, port=behind[0]))
        second.enter_context(daemon(*shared, "--no-hub", base_url=PUBLIC_URL, port=behind[1]))
        replaced = {
            "127.0.0.1:8080": f"127.0.0.1:{behind[0]}",
            "127.0.0.1:8081": f"127.0.0.1:{behind[1]}",
            "/var/cache/nginx-reviewsd": f"{directory}/cache",
            "listen 80;": f"listen 127.0.0.1:{plain};",
            "    listen [::]:80;\n": "",
            "listen 443 ssl": f"listen 127.0.0.1:{secure} ssl",
            "    listen [::]:443 ssl http2;\n": "",
            "/etc/letsencrypt/live/reviews.example.com": str(directory),
        }
        text = SHIPPED
        for shipped, ours in replaced.items():
            assert shipped in text
            text = text.replace(shipped, ours)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {directory}/{kind};" for kind in kinds)
        # A worker of root's nginx would else be a user who may not enter the directory.
        user = "user root;" if os.geteuid() == 0 else ""
        (directory / "nginx.conf").write_text(
            f"{user} daemon off; pid {directory}/pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off; {temporary} {text} }}\n"
        )
        command = [nginx, "-p", str(directory), "-c", str(directory / "nginx.conf")]
        subprocess.run([*command, "-t"], check=True, capture_output=True, timeout=60)
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log)
        try:
            wait_for(secure)
            yield Site(secure, first, second, context)
        finally:
            process.terminate()
            process.wait(30)


def wait_for(port: int) -> None:
    """Until somebody listens."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("nginx does not listen")


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


def test_absolute_urls_are_the_public_ones(site: Site) -> None:
    _, headers, body = site.ask("/feed.xml")
    assert f"<{PUBLIC_URL}/api/websub/hub>" in headers["link"]
    assert b"127.0.0.1" not in body


def test_a_session_of_one_instance_is_good_at_the_other(site: Site) -> None:
    json_type = {"content_type": "application/json", "accept": "application/json, text/event-stream"}
    _, headers, _ = site.ask("/mcp", json.dumps(INITIALIZE).encode(), **json_type)
    ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
    for _ in range(4):  # in turns
        status, _, body = site.ask("/mcp", ping, mcp_session_id=headers["mcp-session-id"], **json_type)
        assert (status, json.loads(body)) == (200, {"jsonrpc": "2.0", "id": 2, "result": {}})
    assert site.ask("/mcp", ping, **json_type)[0] == 400


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


def test_reads_go_on_while_instances_restart(site: Site) -> None:
    """First without one instance, for what is in no cache; then without any, for what is."""
    kept = site.ask("/reviews.json")[2]
    site.first.close()
    for day in range(1, 9):
        assert site.ask(f"/api/reviews/since/2026-01-0{day}")[0] == 200
    site.second.close()
    assert site.ask("/reviews.json")[2] == kept
    assert site.ask("/api/reviews/search?query=never+asked")[0] == 502


def test_the_caddy_file_is_valid() -> None:
    command = [program("caddy"), "validate", "--adapter", "caddyfile", "--config", "deploy/Caddyfile"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
