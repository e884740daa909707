"""The hub in the real daemon: over HTTP, with reloads, restarts, SIGKILL and a failing disk.

Changes and interruptions - Kills and a full disk - The example - The operator
"""

import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode
from urllib.request import Request, urlopen

import pytest
from lab.callback_lab import Exchange, Lab, agree, answer, hang
from lab.hub_values import FORM
from lab.services import (
    ROOT,
    SAMPLE,
    Response,
    Service,
    daemon_command,
    fetch,
    free_port,
    run_daemon,
    started,
)
from lab.tools import needs, on_a_small_disk

import reviewsd
from reviewslib.process.settings import BadSetting, Settings
from reviewslib.websub.store import STORE_FILE_NAME, StoreFault, list_rows

pytestmark = pytest.mark.slow

HUB = "/api/websub/hub"
ACCEPTED = "accepted; the callback will now be asked to confirm"
TOPICS = ("/feed.xml", "/api/feed.json", "/reviews.json")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "data"))


@contextmanager
def running(lab: Lab, data: Path, state: Path, port: int = 0) -> Iterator[Service]:
    """A daemon whose hub may call the lab, and which polls its files often."""
    flags = [*flags_of(lab, data, state), f"--port={port}"]
    with started(daemon_command(*flags), port) as service:
        yield service


def flags_of(lab: Lab, data: Path, state: Path) -> list[str]:
    trust = ["--hub-allow-private", f"--hub-ca-file={lab.ca_file}"]
    return [*trust, "--reload-interval=0.05", f"--data={data}", f"--state-dir={state}"]


def ask(
    service: Service, callback: str, path: str = "/feed.xml", **more: str
) -> Response:
    """Send a request to the hub; `secret` and other fields get the prefix `hub.`."""
    fields = {
        "mode": "subscribe",
        "callback": callback,
        "topic": service.base_url + path,
    } | more
    body = urlencode({f"hub.{name}": value for name, value in fields.items()}).encode()
    return fetch(service, HUB, "POST", body, content_type=FORM)


def subscribe(
    lab: Lab, service: Service, state: Path, path: str = "/feed.xml", **more: str
) -> None:
    """Subscribe, and wait until it is stored."""
    before = active(state)
    assert ask(service, lab.url("/cb", "localhost"), path, **more).status == 202
    lab.wait(lambda: active(state) == before + 1)


def active(state: Path) -> int:
    """The subscriptions in the store, which the daemon counts once a second."""
    return [row.mode for row in list_rows(state)].count("active")


def health(service: Service) -> dict[str, Any]:
    return dict(json.loads(fetch(service, "/healthz").body))


def add_review(data: Path, name: str, text: str = "") -> None:
    """Replace reviews.json as an operator would: write a new file, rename it over the old one."""
    document = json.loads((data / "reviews.json").read_text(encoding="utf-8"))
    added = {
        "id": name,
        "author": "Ann",
        "rating": 5,
        "date": "2026-11-20",
        "text": text or None,
    }
    document["reviews"] = [
        review for review in document["reviews"] if review["id"] != name
    ] + [added]
    (data / "new").write_text(json.dumps(document), encoding="utf-8")
    (data / "new").rename(data / "reviews.json")


# ---- Changes and interruptions ----


def test_a_subscriber_gets_what_a_reader_gets(
    lab: Lab, data: Path, tmp_path: Path
) -> None:
    with running(lab, data, tmp_path / "state") as service:
        for path in TOPICS:
            subscribe(lab, service, tmp_path / "state", path)
        add_review(data, "added-meanwhile")
        lab.wait(lambda: len(lab.posts()) == len(TOPICS))
        read = [fetch(service, path) for path in TOPICS]
    got = {
        post.body: (post.headers["Content-Type"], post.headers["Link"])
        for post in lab.posts()
    }
    assert got == {
        page.body: (page.headers["content-type"], page.headers["link"]) for page in read
    }
    assert all(b"added-meanwhile" in body for body in got)


@contextmanager
def killed(lab: Lab, data: Path, state: Path, port: int = 0) -> Iterator[Service]:
    """A daemon that ends by SIGKILL."""
    flags = [*flags_of(lab, data, state), f"--port={port}"]
    with Service(daemon_command(*flags), port) as service:
        yield service


def test_a_killed_service_continues_after_its_restart(
    lab: Lab, data: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    lab.on("GET", "/cb", hang, agree)
    lab.on("POST", "/cb", hang, agree)
    with killed(lab, data, state) as service:  # while the callback is being asked
        assert ask(service, lab.url("/cb", "localhost")).status == 202
        lab.wait(lambda: len(lab.gets()) == 1)
    with killed(lab, data, state, service.port) as service:  # in mid-delivery
        lab.wait(lambda: active(state) == 1)
        add_review(data, "after-the-kill")
        lab.wait(lambda: len(lab.posts()) == 1)
    with running(lab, data, state, port=service.port) as service:
        lab.wait(lambda: len(lab.posts()) == 2)
        at_rest = {"active": 1, "pending": 0, "failing": 0, "behind": 0}
        lab.wait(lambda: health(service)["subscriptions"] == at_rest)
    assert [b"after-the-kill" in post.body for post in lab.posts()] == [True, True]
    assert len(lab.gets()) == 2


# ---- Kills and a full disk -------------------------------------------------------------


def hub_process(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lab.hub_process", *arguments]


def run_hub_process(command: list[str]) -> int:
    """The status of a process of a hub with its callbacks."""
    path = f"{ROOT / 'tests'}:{ROOT}"
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(command, env=environment, stderr=PIPE).returncode


def contents_at_rest(diary: Path) -> list[tuple[str, str]]:
    """For each time that the hub was at rest: the topic's content, and what the callback had."""
    pairs = []
    # What it has read before it subscribed.
    has = "one"
    for line in diary.read_text().splitlines():
        if line.startswith("got "):
            has = line.removeprefix("got ")
        if line.startswith("at rest with "):
            pairs.append((line.removeprefix("at rest with "), has))
    return pairs


def test_a_kill_at_any_instruction_that_matters_loses_nothing(tmp_path: Path) -> None:
    kills = 0
    for kill_at in itertools.count(1):
        # given a hub that is killed before or after a change, a commit or an exchange
        directory = tmp_path / str(kill_at)
        directory.mkdir()
        state = str(directory / "state")
        status = run_hub_process(hub_process("live", state, str(kill_at)))
        if status != -signal.SIGKILL:
            break
        kills += 1

        # when it starts again, with the content that was the first
        assert run_hub_process(hub_process("live", state, "0")) == 0

        # then what it has accepted is confirmed, and the callback has what there is
        pairs = contents_at_rest(directory / "diary")
        assert len(pairs) >= 3
        assert all(current == had for current, had in pairs), kill_at
    assert status == 0
    assert kills > 15


def test_a_full_disk_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    needs("a file system of its own")

    # given a hub whose disk fills in the middle of a delivery
    state = tmp_path / "state"
    state.mkdir()

    # when it is full for seconds, and the content is then what it was at first
    command = on_a_small_disk(state, hub_process("fill", str(state)))
    assert run_hub_process(command) == 0

    # then forms are refused meanwhile, and each content was sent once
    assert (tmp_path / "diary").read_text().splitlines() == [
        "accepted subscribe",
        "asked subscribe",
        "got two",
        "full 503",
        "in trouble True",
        "got one",
        "at rest with one",
    ]


# ---- The example ----

Example = subprocess.Popen[str]


@contextmanager
def example(
    lab: Lab, directory: Path, topic: str, wait: str = "60.0"
) -> Iterator[tuple[Example, str]]:
    """The running example and its callback; `wait` replaces its pause in seconds."""
    certificate = directory / "subscriber.pem"
    program = directory / "subscriber.py"
    lab.ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        str(certificate)
    )
    text = (ROOT / "examples" / "subscriber.py").read_text(encoding="utf-8")
    program.write_text(
        text.replace("WAIT_SECONDS = 60.0", f"WAIT_SECONDS = {wait}"), encoding="utf-8"
    )
    callback = f"https://localhost:{free_port()}/websub"
    command = [sys.executable, str(program), topic, callback, str(certificate)]
    trust = os.environ | {"SSL_CERT_FILE": str(lab.ca_file)}
    with subprocess.Popen(
        command, env=trust, stdout=PIPE, stderr=STDOUT, text=True
    ) as child:
        try:
            yield child, callback
        finally:
            child.kill()


def lines_of(child: Example, count: int) -> list[str]:
    assert child.stdout
    return [child.stdout.readline().strip() for _ in range(count)]


def answered(request: str | Request, trusting: ssl.SSLContext) -> int:
    """The status of the answer to a request, or to a GET of a URL."""
    try:
        with urlopen(request, context=trusting) as response:
            return int(response.status)
    except HTTPError as refusal:
        refusal.close()
        return refusal.code


def test_the_example_prints_changes_and_confirms_its_own(
    lab: Lab, data: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    with running(lab, data, state) as service:
        topic = service.base_url + "/api/feed.json"
        with example(lab, tmp_path, topic) as (child, callback):
            assert sorted(lines_of(child, 2)) == [f"202 {ACCEPTED}", "subscribe"]
            add_review(data, "new", "good")
            assert lines_of(child, 1) == ["new or changed: new good"]
            trusting = ssl.create_default_context(cafile=lab.ca_file)
            forged = Request(callback, b"{}", {"X-Hub-Signature": "sha256=" + "0" * 64})
            with closing(sqlite3.connect(state / STORE_FILE_NAME)) as store:
                ((own,),) = store.execute(
                    "SELECT callback FROM hub_row WHERE mode = 'active'"
                )
            asked = {"hub.mode": "subscribe", "hub.topic": topic, "hub.challenge": "c"}
            asked["hub.lease_seconds"] = "9"
            assert answered(forged, trusting) == 403
            assert answered(f"{own}?{urlencode(asked)}", trusting) == 404
            assert own.startswith(f"{callback}/")
            assert len(own) > len(callback) + 40
            assert (
                ask(service, own, "/api/feed.json", secret="a stranger's").status == 202
            )
            lab.wait(lambda: health(service)["subscriptions"]["pending"] == 0)
            add_review(data, "new", "better")
            assert lines_of(child, 1) == ["new or changed: new better"]
            child.send_signal(signal.SIGINT)
            assert sorted(lines_of(child, 2)) == [f"202 {ACCEPTED}", "unsubscribe"]
            assert child.wait(60) == 0
            lab.wait(lambda: active(state) == 0)


def test_the_example_waits_for_a_hub_that_is_busy_or_away(
    lab: Lab, tmp_path: Path
) -> None:
    def ask_wrongly(exchange: Exchange) -> None:
        """Questions at another address, and about another topic."""
        form = dict(parse_qsl(lab.arrivals[-1].body.decode()))
        own = form["hub.callback"]
        topic = form["hub.topic"]
        for url, about in ((own.rpartition("/")[0], topic), (own, "another")):
            asked = {"hub.mode": "subscribe", "hub.topic": about, "hub.challenge": "c"}
            refused.append(answered(f"{url}?{urlencode(asked)}", trusting))
        exchange.answer(202, b"accepted")

    refused: list[int] = []
    place = lab.url("", "localhost")
    trusting = ssl.create_default_context(cafile=lab.ca_file)
    link = f'<{place}/hub>; rel="hub", <{place}/>; rel="self"'
    lab.on("GET", "/", answer(200, b'{"items": []}', Link=link))
    busy = [
        answer(429, b"later", Retry_After="1"),
        answer(503, b"later", Retry_After="soon"),
    ]
    last = [answer(502, b"later", Retry_After=""), answer(404, b"not a topic")]
    lab.on("POST", "/hub", *busy, lambda _: None, ask_wrongly, *last)
    with example(lab, tmp_path, f"{place}/", "0.2") as (child, _):
        said = lines_of(child, 7)
        assert child.wait(60) == 1
    first, second, *_ = lab.posts("/hub")
    assert second.moment - first.moment >= 1  # as Retry-After says
    assert refused == [404, 404]
    assert said.pop(2).startswith("the hub cannot be reached: ")
    no_verification = "the hub has sent no verification in time"
    assert said == [
        "429 later",
        "503 later",
        "202 accepted",
        no_verification,
        "502 later",
        "404 not a topic",
    ]


# ---- The operator ----


def test_the_operator_lists_and_removes_hosts_and_never_sees_callbacks(
    lab: Lab, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    settings = Settings(state_dir=state)
    with pytest.raises(
        StoreFault, match=re.escape(f"{state}/websub.sqlite3: there is no store")
    ):
        reviewsd.subscriptions(settings)
    with pytest.raises(StoreFault, match=f"^{state}"):
        reviewsd.unsubscribe(settings, "localhost")
    assert not state.exists()
    with running(lab, data, state) as service:
        subscribe(lab, service, state, secret="do-not-tell")
        assert reviewsd.subscriptions(settings) == 0
        shown = capfd.readouterr().out
        assert re.fullmatch(r"active      localhost /feed.xml since 20[^/]+\n", shown)
        assert not [hidden for hidden in ("do-not-tell", "cb") if hidden in shown]
        assert reviewsd.unsubscribe(settings, "192.0.2.1") == 1
        with pytest.raises(
            BadSetting,
            match=r"^--unsubscribe 'https://localhost/' is neither a host nor",
        ):
            reviewsd.unsubscribe(settings, "https://localhost/")
        assert (
            run_daemon(
                "--unsubscribe", "localhost", "--state-dir", str(state)
            ).returncode
            == 0
        )
        assert capfd.readouterr().out == "no subscription of 192.0.2.1\n"
        lab.wait(lambda: lab.gets()[-1]["hub.mode"] == "denied")
        assert lab.gets()[-1]["hub.reason"] == "removed by the operator of the hub"
        lab.wait(lambda: active(state) == 0)
        subscribe(lab, service, state)  # it may come again
