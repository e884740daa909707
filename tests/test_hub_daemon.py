"""The hub inside the daemon as users start it: HTTP around it, reloads, restarts, SIGKILL, a disk that fails.

Asking - Changes - Interruptions - The operator
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
import trustme
from hub_lab import Lab, agree, answer, serving
from services import SAMPLE, Address, Response, daemon, daemon_command, fetch

HUB = "/api/websub/hub"
TEXT = "text/plain; charset=utf-8"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def lab(ca: trustme.CA, tmp_path: Path) -> Iterator[Lab]:
    ca_file = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(ca_file))
    lab = Lab(ca_file)
    with serving(ca, lab, "localhost") as lab.port:
        yield lab


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "data"))


@contextmanager
def running(lab: Lab, data: Path, state: Path, *arguments: str, port: int = 0) -> Iterator[Address]:
    """A daemon whose hub may call the lab, and which looks at its files often."""
    labs_only = ["--hub-allow-private", "--hub-ca-file", str(lab.ca_file), "--reload-interval", "0.05"]
    with daemon(*labs_only, *arguments, data=data, state=state, port=port) as service:
        yield service


def ask(service: Address, callback: str, path: str = "/feed.xml", **more: str) -> Response:
    """A request to the hub; `secret` and the like get their prefix."""
    fields = {"mode": "subscribe", "callback": callback, "topic": service.base_url + path} | more
    body = urlencode({f"hub.{name}": value for name, value in fields.items()}).encode()
    return fetch(service, HUB, "POST", body, content_type="application/x-www-form-urlencoded")


def subscribe(lab: Lab, service: Address, path: str = "/feed.xml", **more: str) -> None:
    """Subscribe, and wait until the daemon counts it."""
    before = counts(service)["active"]
    assert ask(service, lab.url("/cb", "localhost"), path, **more).status == 202
    lab.wait(lambda: counts(service)["active"] == before + 1)


def counts(service: Address) -> dict[str, int]:
    subscriptions: dict[str, int] = json.loads(fetch(service, "/healthz").body)["subscriptions"]
    return subscriptions


def add_review(data: Path, name: str) -> None:
    """Replace reviews.json as an operator would: write a new file, rename it over the old one."""
    document = json.loads((data / "reviews.json").read_text(encoding="utf-8"))
    document["reviews"].append({"id": name, "author": "Ann", "rating": 5, "date": "2026-11-20"})
    (data / "new").write_text(json.dumps(document), encoding="utf-8")
    (data / "new").rename(data / "reviews.json")


# ---- Asking ----


def test_every_refusal_is_one_line_of_plain_text(lab: Lab, data: Path, tmp_path: Path) -> None:
    with running(lab, data, tmp_path / "state") as service:
        callback = lab.url("/cb", "localhost")
        answers = [
            (ask(service, "http://a.example/cb"), 400, "hub.callback must be an https:// URL"),
            (ask(service, callback, "/insights.json"), 404, f"{service.base_url}/feed.xml"),
            (ask(service, callback, mode="publish"), 400, "hub.mode"),
            (fetch(service, HUB), 405, "GET is not among POST, OPTIONS."),
            (fetch(service, HUB, "POST", b"x" * 70_000), 413, "The body is larger than 65536 bytes."),
            (fetch(service, HUB, "POST", b"{}", content_type="application/json"), 415, "form"),
        ]
    for refusal, status, words in answers:
        assert (refusal.status, refusal.headers["content-type"]) == (status, TEXT)
        assert refusal.headers["cache-control"] == "no-store"
        assert words in refusal.body.decode()
        assert refusal.body.count(b"\n") == 1
    assert not lab.arrivals


def test_without_a_hub_reads_name_it_and_requests_go_elsewhere(tmp_path: Path) -> None:
    with daemon("--no-hub", state=tmp_path / "state") as service:
        refusal = ask(service, "https://a.example/cb")
        assert (refusal.status, refusal.body) == (404, b"the hub does not run on this instance\n")
        assert 'rel="hub"' in fetch(service, "/feed.xml").headers["link"]
        assert json.loads(fetch(service, "/healthz").body)["subscriptions"] is None
    assert not (tmp_path / "state" / "websub.sqlite3").exists()


# ---- Changes ----


def test_a_subscriber_gets_what_a_reader_gets(lab: Lab, data: Path, tmp_path: Path) -> None:
    with running(lab, data, tmp_path / "state") as service:
        for path in ("/feed.xml", "/api/feed.json", "/reviews.json"):
            lab.on("POST", "/cb", answer(204))
            subscribe(lab, service, path)
            seen = len(lab.posts())
            add_review(data, f"new-{path[1:].replace('/', '-')}")
            lab.wait(lambda seen=seen: len(lab.posts()) > seen)
            lab.wait(lambda: counts(service)["behind"] == 0)
            read = fetch(service, path)
            delivery = next(post for post in lab.posts() if post.body == read.body)
            assert delivery.headers["Content-Type"] == read.headers["content-type"]
            assert delivery.headers["Link"] == read.headers["link"]


def test_the_same_bytes_are_no_news(lab: Lab, data: Path, tmp_path: Path) -> None:
    with running(lab, data, tmp_path / "state") as service:
        subscribe(lab, service)
        before = fetch(service, "/insights.json").headers["etag"]
        insights = json.loads((data / "insights.json").read_text(encoding="utf-8"))
        (data / "insights.json").write_text(json.dumps(insights | {"model": "another"}), encoding="utf-8")
        os.utime(data / "reviews.json")
        lab.wait(lambda: fetch(service, "/insights.json").headers["etag"] != before)
        add_review(data, "news")
        lab.wait(lambda: lab.posts())
        lab.wait(lambda: counts(service)["behind"] == 0)
        assert len(lab.posts()) == 1
        assert b"news" in lab.posts()[0].body


# ---- Interruptions ----


def test_a_change_while_the_service_was_down_is_delivered(lab: Lab, data: Path, tmp_path: Path) -> None:
    with running(lab, data, tmp_path / "state") as service:
        subscribe(lab, service)
    add_review(data, "meanwhile")
    with running(lab, data, tmp_path / "state", port=service.port):
        lab.wait(lambda: lab.posts())
    assert [b"meanwhile" in post.body for post in lab.posts()] == [True]


def test_a_killed_service_goes_on_where_it_was(lab: Lab, data: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with pytest.raises(AssertionError), running(lab, data, state) as service:
        lab.on("GET", "/cb", lambda exchange: lab.released.wait(60))
        assert ask(service, lab.url("/cb", "localhost")).status == 202
        os.kill(service.pid, signal.SIGKILL)  # its status is not the 0 that `daemon` wants
    lab.on("GET", "/cb", agree)
    with running(lab, data, state, port=service.port) as again:
        lab.wait(lambda: counts(again)["active"] == 1)
        add_review(data, "after-the-kill")
        lab.wait(lambda: lab.posts())
    assert b"after-the-kill" in lab.posts()[0].body


def test_where_nothing_can_be_stored_reads_go_on(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "websub.sqlite3").mkdir()  # what no store can be made of
    with daemon(state=state) as service:
        refusal = ask(service, "https://a.example/cb")
        assert (refusal.status, refusal.headers["retry-after"]) == (503, "3600")
        assert fetch(service, "/reviews.json").status == 200
        assert json.loads(fetch(service, "/healthz").body)["hub"] == "requests cannot be stored at present"


# ---- The operator ----


def test_the_operator_sees_hosts_and_states_and_never_callbacks(lab: Lab, data: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = daemon_command("--subscriptions", "--state-dir", str(state))
    empty = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "no subscriptions\n", "")
    assert not state.exists()
    with running(lab, data, state) as service:
        subscribe(lab, service, secret="do-not-tell")
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert shown.startswith("active      localhost /feed.xml since 20")
    assert shown.count("\n") == 1
    for secret in ("/cb", "do-not-tell", hashlib.sha256(b"do-not-tell").hexdigest()):
        assert secret not in shown


def test_certificates_that_cannot_be_read_are_a_bad_setting(tmp_path: Path) -> None:
    command = daemon_command(
        "--port", "0", "--hub-ca-file", str(tmp_path / "none"), "--state-dir", str(tmp_path)
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 78
    assert done.stderr.splitlines()[-1].startswith(f"--hub-ca-file {tmp_path / 'none'}: ")


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--hub-lease-min", "9999999"], "leases must be"),
        (["--hub-retry-delays", "60"], "2 retry delays are needed"),
        (["--hub-workers", "0"], "--hub-workers: '0' is not a number: expected 1 or more"),
    ],
)
def test_settings_that_contradict_each_other_are_named(flags: list[str], reason: str) -> None:
    done = subprocess.run(daemon_command(*flags), capture_output=True, text=True, timeout=60)
    assert done.returncode == 78
    assert reason in done.stderr
