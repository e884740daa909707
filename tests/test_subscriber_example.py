"""The example of a subscriber does what its document says, and believes no stranger.

Sections: the running program - with the real daemon - with a hub that is busy or away.
"""

import os
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode
from urllib.request import Request, urlopen

import pytest
from lab.callback_lab import Exchange, Lab, answer
from lab.hub_daemon import active, add_review, ask, health, running
from lab.hub_values import JSON_FEED
from lab.services import ROOT, SAMPLE, Service, free_port

from reviewslib.websub.store import STORE_FILE_NAME

pytestmark = pytest.mark.slow

ACCEPTED = "accepted; the callback will now be asked to confirm"

# ---- The running program -------------------------------------------------------------


@dataclass
class Example:
    """The program, and the callback that it was told; it adds a part that nobody knows."""

    process: subprocess.Popen[str]
    callback: str

    def lines(self, count: int) -> list[str]:
        """The next lines that it prints."""
        assert self.process.stdout
        return [self.process.stdout.readline().strip() for _ in range(count)]


@contextmanager
def example(
    lab: Lab, directory: Path, topic: str, wait_seconds: str = "60.0"
) -> Iterator[Example]:
    """The program with another pause between two requests."""
    certificate = str(directory / "subscriber.pem")
    issued = lab.ca.issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(certificate)
    text = (ROOT / "examples" / "subscriber.py").read_text(encoding="utf-8")
    program = directory / "subscriber.py"
    changed = text.replace("WAIT_SECONDS = 60.0", f"WAIT_SECONDS = {wait_seconds}")
    program.write_text(changed, encoding="utf-8")
    callback = f"https://localhost:{free_port()}/websub"
    command = [sys.executable, str(program), topic, callback, certificate]
    trust = os.environ | {"SSL_CERT_FILE": str(lab.ca_file)}
    with subprocess.Popen(
        command, env=trust, stdout=PIPE, stderr=STDOUT, text=True
    ) as process:
        try:
            yield Example(process, callback)
        finally:
            process.kill()


def status_of(lab: Lab, request: str | Request) -> int:
    """The status of the answer to a request, or to a GET of a URL."""
    trusting = ssl.create_default_context(cafile=lab.ca_file)
    try:
        with urlopen(request, context=trusting) as response:
            return int(response.status)
    except HTTPError as refusal:
        refusal.close()
        return refusal.code


def question(callback: str, topic: str) -> str:
    """The URL with which a hub asks whether a subscription is wanted."""
    asked = {"hub.mode": "subscribe", "hub.topic": topic, "hub.challenge": "c"}
    asked["hub.lease_seconds"] = "9"
    return f"{callback}?{urlencode(asked)}"


# ---- With the real daemon ------------------------------------------------------------


@dataclass
class Subscribed:
    """A subscribed example, its daemon, and the address that only these two know."""

    service: Service
    example: Example
    own_callback: str
    data: Path
    state: Path


@pytest.fixture
def subscribed(lab: Lab, tmp_path: Path) -> Iterator[Subscribed]:
    data = Path(shutil.copytree(SAMPLE, tmp_path / "data"))
    state = tmp_path / "state"
    with running(lab, data, state) as service:
        topic = service.base_url + JSON_FEED
        with example(lab, tmp_path, topic) as program:
            # The answer to its request, and the hub's question.
            assert sorted(program.lines(2)) == [f"202 {ACCEPTED}", "subscribe"]
            lab.wait(lambda: active(state) == 1)
            with closing(sqlite3.connect(state / STORE_FILE_NAME)) as store:
                ((own,),) = store.execute(
                    "SELECT callback FROM hub_row WHERE mode = 'active'"
                )
            yield Subscribed(service, program, own, data, state)


def test_it_prints_what_is_new_or_changed(subscribed: Subscribed) -> None:
    add_review(subscribed.data, "new", "good")

    assert subscribed.example.lines(1) == ["new or changed: new good"]


def test_its_address_cannot_be_guessed(subscribed: Subscribed) -> None:
    told = subscribed.example.callback
    unguessable = subscribed.own_callback.removeprefix(f"{told}/")

    assert unguessable != subscribed.own_callback
    assert len(unguessable) > 39


def test_it_refuses_content_that_its_secret_has_not_signed(
    lab: Lab, subscribed: Subscribed
) -> None:
    signature = {"X-Hub-Signature": "sha256=" + "0" * 64}

    status = status_of(lab, Request(subscribed.own_callback, b"{}", signature))

    assert status == 403


def test_it_ends_subscriptions_of_earlier_runs(
    lab: Lab, subscribed: Subscribed
) -> None:
    earlier = f"{subscribed.example.callback}/path-of-an-earlier-run"

    assert status_of(lab, Request(earlier, data=b"{}")) == 410


def test_it_confirms_nothing_that_it_has_not_asked_for(
    lab: Lab, subscribed: Subscribed
) -> None:
    topic = subscribed.service.base_url + JSON_FEED

    status = status_of(lab, question(subscribed.own_callback, topic))

    assert status == 404


def test_a_stranger_cannot_replace_its_secret(lab: Lab, subscribed: Subscribed) -> None:
    # given a stranger who knows its address
    service = subscribed.service
    asked = ask(service, subscribed.own_callback, JSON_FEED, secret="a stranger's")
    assert asked.status == 202
    lab.wait(lambda: health(service)["subscriptions"]["pending"] == 0)

    # when there is new content
    add_review(subscribed.data, "new", "better")

    # then it is signed as before, and believed
    assert subscribed.example.lines(1) == ["new or changed: new better"]


def test_it_ends_its_subscription_with_itself(lab: Lab, subscribed: Subscribed) -> None:
    process = subscribed.example.process

    process.send_signal(signal.SIGINT)

    assert sorted(subscribed.example.lines(2)) == [f"202 {ACCEPTED}", "unsubscribe"]
    assert process.wait(60) == 0
    lab.wait(lambda: active(subscribed.state) == 0)


# ---- With a hub that is busy or away -------------------------------------------------


@pytest.fixture
def topic(lab: Lab) -> str:
    """A topic of the lab, whose hub is at /hub of the lab, too."""
    place = lab.url("", "localhost")
    link = f'<{place}/hub>; rel="hub", <{place}/>; rel="self"'
    lab.on("GET", "/", answer(200, b'{"items": []}', Link=link))
    return f"{place}/"


NOT_A_TOPIC = answer(404, b"not a topic")


def silent(_: Exchange) -> None:
    """A hub that ends the connection without an answer."""


def test_it_comes_again_whatever_a_busy_hub_says_until_it_is_told_no(
    lab: Lab, tmp_path: Path, topic: str
) -> None:
    # given a hub that is busy, away, forgetful and broken, one after the other
    lab.on(
        "POST",
        "/hub",
        answer(429, b"later", Retry_After="1"),
        answer(503, b"later", Retry_After="soon"),
        silent,
        answer(202, b"accepted"),
        answer(502, b"later", Retry_After=""),
        NOT_A_TOPIC,
    )

    # when the example runs to its end
    with example(lab, tmp_path, topic, wait_seconds="0.2") as program:
        said = program.lines(7)
        status = program.process.wait(60)

    # then it says what it was told, and gives up when there is no such topic
    reached_nothing = said.pop(2)
    assert reached_nothing.startswith("the hub cannot be reached: ")
    assert said == [
        "429 later",
        "503 later",
        "202 accepted",
        "the hub has sent no verification in time",
        "502 later",
        "404 not a topic",
    ]
    assert status == 1


def test_it_waits_as_long_as_the_hub_says(lab: Lab, tmp_path: Path, topic: str) -> None:
    lab.on("POST", "/hub", answer(429, b"later", Retry_After="1"), NOT_A_TOPIC)

    with example(lab, tmp_path, topic, wait_seconds="0.0") as program:
        program.process.wait(60)

    first, second = lab.posts("/hub")
    assert second.moment - first.moment >= 1


def test_while_it_waits_for_an_answer_it_confirms_its_own_question_alone(
    lab: Lab, tmp_path: Path, topic: str
) -> None:
    # given a hub that asks at another address, and about another topic, before it answers
    refused: list[int] = []

    def ask_wrongly(exchange: Exchange) -> None:
        form = dict(parse_qsl(lab.arrivals[-1].body.decode()))
        own = form["hub.callback"]
        elsewhere = own.rpartition("/")[0]
        refused.append(status_of(lab, question(elsewhere, form["hub.topic"])))
        refused.append(status_of(lab, question(own, "another topic")))
        exchange.answer(202, b"accepted")

    lab.on("POST", "/hub", ask_wrongly, NOT_A_TOPIC)

    # when the example subscribes
    with example(lab, tmp_path, topic, wait_seconds="0.2") as program:
        program.process.wait(60)

    # then neither question is confirmed
    assert refused == [404, 404]
