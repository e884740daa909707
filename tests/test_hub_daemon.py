"""The daemon serves its subscribers across reloads, restarts and SIGKILL, and obeys its operator.

Sections: changes - kills - the operator.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.callback_lab import Lab, agree, hang
from lab.hub_daemon import active, add_review, ask, health, killed, running, subscribe
from lab.services import SAMPLE, Service, fetch, run_daemon

import reviewsd
from reviewslib import links
from reviewslib.process.settings import BadSetting, Settings
from reviewslib.websub.store import StoreFault

pytestmark = pytest.mark.slow


AT_REST = {"active": 1, "pending": 0, "failing": 0, "behind": 0}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "data"))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


# ---- Changes -------------------------------------------------------------------------


def test_a_subscriber_gets_what_a_reader_gets(
    lab: Lab, data: Path, state: Path
) -> None:
    with running(lab, data, state) as service:
        # given a subscriber to every topic
        for path in links.TOPIC_PATHS:
            subscribe(lab, service, state, path)

        # when a review is added
        add_review(data, "added-meanwhile")
        lab.wait(lambda: len(lab.posts()) == len(links.TOPIC_PATHS))
        read = [fetch(service, path) for path in links.TOPIC_PATHS]

    # then contents, media types and links are those that a reader gets
    got = {
        post.body: (post.headers["Content-Type"], post.headers["Link"])
        for post in lab.posts()
    }
    assert got == {
        page.body: (page.headers["content-type"], page.headers["link"]) for page in read
    }
    assert [body for body in got if b"added-meanwhile" not in body] == []


# ---- Kills ---------------------------------------------------------------------------


def test_a_request_that_was_accepted_survives_a_kill(
    lab: Lab, data: Path, state: Path
) -> None:
    # given a service that is killed while the callback is being asked
    lab.on("GET", "/cb", hang, agree)
    with killed(lab, data, state) as service:
        assert ask(service, lab.url("/cb", "localhost")).status == 202
        lab.wait(lambda: len(lab.gets()) == 1)

    # when it starts again
    with running(lab, data, state, service.port) as service:
        # then the callback is asked again, and is subscribed
        lab.wait(lambda: health(service)["subscriptions"] == AT_REST)
    assert len(lab.gets()) == 2


def test_a_delivery_that_was_begun_survives_a_kill(
    lab: Lab, data: Path, state: Path
) -> None:
    # given a service that is killed in the middle of a delivery
    lab.on("POST", "/cb", hang, agree)
    with killed(lab, data, state) as service:
        subscribe(lab, service, state)
        add_review(data, "after-the-kill")
        lab.wait(lambda: len(lab.posts()) == 1)

    # when it starts again
    with running(lab, data, state, service.port) as service:
        lab.wait(lambda: len(lab.posts()) == 2)
        lab.wait(lambda: health(service)["subscriptions"] == AT_REST)

    # then the same content is sent again, and nobody is asked anything
    contents = [post.body for post in lab.posts()]
    assert [b"after-the-kill" in content for content in contents] == [True, True]
    assert len(lab.gets()) == 1


# ---- The operator --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        pytest.param(reviewsd.subscriptions, [], id="list"),
        pytest.param(reviewsd.unsubscribe, ["localhost"], id="remove"),
    ],
)
def test_without_a_store_the_operator_is_told_and_nothing_is_made(
    state: Path, command: object, arguments: list[str]
) -> None:
    reason = re.escape(f"{state}/websub.sqlite3: there is no store")
    with pytest.raises(StoreFault, match=f"^{reason}"):
        command(Settings(state_dir=state), *arguments)

    assert not state.exists()


@pytest.fixture
def subscribed(lab: Lab, data: Path, state: Path) -> Iterator[Service]:
    """A service with one subscription, which has a secret."""
    with running(lab, data, state) as service:
        subscribe(lab, service, state, secret="do-not-tell")
        yield service


@pytest.mark.usefixtures("subscribed")
def test_the_operator_lists_hosts_and_never_sees_callbacks(
    state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    reviewsd.subscriptions(Settings(state_dir=state))

    # Nothing of the path of the callback, and nothing of its secret.
    listed = capfd.readouterr().out
    assert re.fullmatch(r"active      localhost /feed.xml since 20[^/]+\n", listed)
    assert "do-not-tell" not in listed
    assert "cb" not in listed


@pytest.mark.usefixtures("subscribed")
def test_a_host_without_a_subscription_cannot_be_removed(
    state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status = reviewsd.unsubscribe(Settings(state_dir=state), "192.0.2.1")

    assert status == 1
    assert capfd.readouterr().out == "no subscription of 192.0.2.1\n"


@pytest.mark.usefixtures("subscribed")
def test_what_is_no_host_cannot_be_removed(state: Path) -> None:
    reason = "--unsubscribe 'https://localhost/' is neither a host nor"

    with pytest.raises(BadSetting, match=f"^{reason}"):
        reviewsd.unsubscribe(Settings(state_dir=state), "https://localhost/")


def unsubscribe_by_command(state: Path) -> int:
    done = run_daemon("--unsubscribe", "localhost", "--state-dir", str(state))
    return done.returncode


@pytest.mark.usefixtures("subscribed")
def test_who_is_removed_by_the_operator_is_told_why(lab: Lab, state: Path) -> None:
    status = unsubscribe_by_command(state)

    assert status == 0
    lab.wait(lambda: lab.gets()[-1]["hub.mode"] == "denied")
    assert lab.gets()[-1]["hub.reason"] == "removed by the operator of the hub"


def test_who_was_removed_by_the_operator_may_come_again(
    lab: Lab, state: Path, subscribed: Service
) -> None:
    unsubscribe_by_command(state)
    lab.wait(lambda: active(state) == 0)

    subscribe(lab, subscribed, state)

    assert active(state) == 1
