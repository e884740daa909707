"""The service reloads changed data files; callers see the old data until the new ones
are complete.

Sections: polls - memory - faults - absent files - the thread - the daemon.
"""

import gc
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock, call

import pytest
from lab.services import SAMPLE, Service, daemon, fetch
from lab.services import call as ask
from lab.small_files import a_file, review
from lab.watching import wait_for

import reviewsd
from hub import Hub
from reviewslib.faults import BadData, Fault
from reviewslib.messages import Headers
from reviewslib.process.settings import Settings
from reviewslib.web import reload
from reviewslib.web.app import Application
from reviewslib.web.program_files import ProgramFiles
from reviewslib.web.reload import Reloader

APP = reviewsd.application_of(Settings(data=SAMPLE))
READY = call("READY=1", "STATUS=Serving 1 review of Larkspur")


def put(directory: Path, text: str, name: str = "reviews.json") -> None:
    """Replace a file atomically, as a careful operator does."""
    draft = directory / "draft"
    draft.write_text(text)
    draft.replace(directory / name)


def one(id: str) -> str:
    """A file with one review."""
    return json.dumps(a_file(review(id)))


@pytest.fixture
def reloader(tmp_path: Path) -> Reloader:
    """A reloader that serves review "a"; the test sees its notifications and pauses."""
    put(tmp_path, one("a"))
    reloader = Reloader(APP.program, tmp_path, APP.urls)
    reloader.notify = Mock()
    reloader.sleep = Mock()
    return reloader


def served(reloader: Reloader) -> list[str]:
    """The ids that are served."""
    return list(reloader.snapshot.dataset.reviews_by_id)


def faults_of(reloader: Reloader) -> list[str]:
    """The faults that the operator is told."""
    assert reloader.error
    faults: list[str] = reloader.error["faults"]
    return faults


class CallingPolicies(dict[str, Headers]):
    """Policies of no path; whoever reads one calls a function of the test."""

    def __init__(self, called: Callable[[], object]):
        self.called = called

    def __missing__(self, path: str) -> Headers:
        self.called()
        return ()


def calling(called: Callable[[], object]) -> ProgramFiles:
    """The program, which calls a function of the test while a snapshot is built."""
    return APP.program._replace(policies=CallingPolicies(called))


# ---- Polls: no thread, no clock ----


def test_unchanged_files_are_not_loaded_again(reloader: Reloader) -> None:
    before = reloader.snapshot

    assert not reloader.poll()
    assert reloader.snapshot is before


def test_after_a_hangup_even_unchanged_files_are_loaded(reloader: Reloader) -> None:
    before = reloader.snapshot

    assert reloader.poll(forced=True)
    assert reloader.snapshot is not before
    assert reloader.snapshot.fixed == before.fixed


def test_a_poll_waits_until_a_writer_has_finished(reloader: Reloader) -> None:
    drafts = [partial(put, reloader.directory, '{"business": {"na')]
    drafts.append(partial(put, reloader.directory, one("b")))

    def write_on(seconds: float) -> None:
        if drafts:
            drafts.pop(0)()

    reloader.sleep = Mock(side_effect=write_on)

    put(reloader.directory, one("c"))
    reloader.poll()

    assert reloader.error is None
    assert served(reloader) == ["b"]
    assert reloader.sleep.call_args_list == [call(0.05)] * 3


def test_who_sends_a_hangup_has_finished_writing(reloader: Reloader) -> None:
    put(reloader.directory, one("c"))

    reloader.poll(forced=True)

    assert served(reloader) == ["c"]
    assert reloader.sleep.call_args_list == []  # type: ignore[attr-defined]


CHANGED = (
    "/reviews.json, /insights.json, /api/feed.json, /feed.xml, /, /llms.txt, "
    "/sitemap.xml, /badge.svg"
)


@pytest.mark.parametrize(
    ("document", "logged"),
    [
        pytest.param(
            a_file(review("a")),
            "reloaded 1 review of Larkspur; changed: nothing",
            id="the same data",
        ),
        pytest.param(
            a_file(review("a"), review("b")),
            f"reloaded 2 reviews of Larkspur; changed: {CHANGED}",
            id="one more",
        ),
        pytest.param(
            a_file(review(verified=False)),
            f"reloaded 0 reviews of Larkspur, 1 unverified left out; changed: {CHANGED}",
            id="none that is served",
        ),
    ],
)
def test_a_reload_logs_what_changed(
    reloader: Reloader, caplog: pytest.LogCaptureFixture, document: Any, logged: str
) -> None:
    caplog.set_level("INFO", "reviewsd")

    put(reloader.directory, json.dumps(document))
    reloader.poll()

    assert caplog.messages == [logged]


def test_a_reload_logs_warnings_of_the_data(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    insights = json.dumps({"per_review": {"100 %s": {}}})

    put(reloader.directory, insights, "insights.json")
    reloader.poll()

    assert caplog.messages == [
        "insights.json names reviews that are not served, 1: 100 %s",
        "insights.json seems to belong to other reviews: most ids in it are not served",
    ]


def test_every_new_snapshot_is_published(reloader: Reloader) -> None:
    reloader.publish = published = Mock()

    put(reloader.directory, one("b"))
    reloader.poll()

    published.assert_called_once_with(reloader.snapshot)


# ---- Memory ----


def test_the_garbage_collector_rests_during_a_load(reloader: Reloader) -> None:
    collects: list[bool] = []
    reloader.program = calling(lambda: collects.append(gc.isenabled()))

    reloader.poll(forced=True)

    assert set(collects) == {False}
    assert gc.isenabled()


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """A test that freezes objects leaves none frozen."""
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("unfrozen")
def test_what_is_loaded_is_never_looked_at_again_by_the_collector() -> None:
    loaded = [{"a": []} for _ in range(1000)]

    reload.settle_memory()

    assert gc.get_freeze_count() > len(loaded)


@pytest.mark.usefixtures("unfrozen")
def test_a_load_leaves_the_collector_nothing_to_look_at(reloader: Reloader) -> None:
    reloader.poll(forced=True)

    looked_at = {id(value) for value in gc.get_objects()}
    assert id(reloader.snapshot.dataset.insights) not in looked_at


MESSAGES = [
    {
        "method": "initialize",
        "params": {"protocolVersion": "2025-03-26"},
    },
    {"method": "tools/list"},
    {"method": "tools/call", "params": {"name": "search_reviews"}},
    {
        "method": "tools/call",
        "params": {"name": "get_service", "arguments": {"service": "x"}},
    },
]


READS = ["/reviews.json", "/api/reviews/search", "/api/reviews/search?rating=x"]


@pytest.fixture
def used(reloader: Reloader, tmp_path: Path) -> Iterator[Application]:
    """An application with a hub, whose data were asked for in every way."""
    application = Application(reloader, APP.urls, APP.mcp)
    settings = Settings(state_dir=tmp_path / "state")
    hub = Hub(reviewsd.hub_settings(settings, "https://r.example"), Mock())
    application.hub = hub
    reloader.publish = partial(reviewsd.publish, hub)
    reloader.publish(reloader.snapshot)
    hub.start()
    for message in MESSAGES:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
        answer = ask(application, "/mcp", "POST", body, content_type="application/json")
        assert answer.status == 200
    for path in READS:
        ask(application, path)
    yield application
    hub.stop(2)


# One of the local name, one of the argument of `getrefcount`.
OWN_REFERENCES = 2


@pytest.mark.usefixtures("used")
def test_nothing_keeps_the_previous_data_alive(reloader: Reloader) -> None:
    dataset = reloader.snapshot.dataset
    feed = reloader.snapshot.fixed["/feed.xml"].identity.body

    for text in ("{", one("b")):
        put(reloader.directory, text)
        reloader.poll()

    assert served(reloader) == ["b"]
    assert sys.getrefcount(dataset) <= OWN_REFERENCES
    assert sys.getrefcount(feed) <= OWN_REFERENCES


# ---- Faults ----


def test_after_a_fault_the_old_data_stay(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    put(reloader.directory, "[]")

    reloader.poll()

    fault = "reviews.json: an array is not an object"
    assert served(reloader) == ["a"]
    assert faults_of(reloader) == [fault]
    assert caplog.messages == [f"not reloaded: {fault}"]


def test_a_fault_has_the_time_of_the_reload(reloader: Reloader) -> None:
    put(reloader.directory, "[]")

    reloader.poll()

    assert reloader.error
    moment = datetime.fromisoformat(reloader.error["at"])
    assert abs(moment.timestamp() - time.time()) < 60


def test_a_fault_is_logged_again_after_each_hangup(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    put(reloader.directory, "[]")

    reloader.poll()
    reloader.poll()
    reloader.poll(forced=True)

    assert len(caplog.messages) == 2


def test_a_change_that_cures_nothing_is_logged_again(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("[]", "[ ]"):
        put(reloader.directory, text)
        reloader.poll()

    assert len(caplog.messages) == 2


def test_good_data_end_a_fault(reloader: Reloader) -> None:
    for text in ("[]", one("c")):
        put(reloader.directory, text)
        reloader.poll()

    assert reloader.error is None
    assert served(reloader) == ["c"]
    assert reloader.notify.call_args == READY  # type: ignore[attr-defined]


BAD_DATA = BadData([Fault("reviews.json", (), "x")])
FAILURES = [
    pytest.param(OSError("x"), "internal error: OSError", True, id="internal"),
    pytest.param(MemoryError(), "too little memory", True, id="memory"),
    pytest.param(BAD_DATA, "reviews.json: x", False, id="data"),
]


@pytest.mark.parametrize(("error", "fault", "is_passing"), FAILURES)
def test_only_a_failure_that_may_pass_is_tried_again_and_it_is_logged_once(
    reloader: Reloader,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    fault: str,
    is_passing: bool,
) -> None:
    reloader.program = calling(Mock(side_effect=error))

    polls = [reloader.poll(forced=True), reloader.poll(), reloader.poll()]

    assert polls == [True, is_passing, is_passing]
    assert faults_of(reloader) == [fault]
    (message,) = caplog.messages
    assert message.startswith(f"not reloaded: {fault}")


@pytest.mark.parametrize(("error", "fault", "is_passing"), FAILURES)
def test_a_failure_that_passes_ends_by_itself(
    reloader: Reloader, error: Exception, fault: str, is_passing: bool
) -> None:
    reloader.program = calling(Mock(side_effect=error))
    reloader.poll(forced=True)
    reloader.program = APP.program

    reloader.poll()

    assert (reloader.error is None) is is_passing


def test_a_traceback_is_logged_of_an_internal_error_only(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (OSError("x"), MemoryError(), BAD_DATA):
        reloader.program = calling(Mock(side_effect=error))
        reloader.poll(forced=True)

    internal, memory, data = caplog.messages
    assert "Traceback" in internal
    assert "Traceback" not in memory + data


@pytest.mark.parametrize(("error", "fault", "is_passing"), FAILURES)
def test_the_service_manager_is_told_of_a_reload_and_how_it_ended(
    reloader: Reloader, error: Exception, fault: str, is_passing: bool
) -> None:
    reloader.program = calling(Mock(side_effect=error))
    began = time.monotonic_ns() // 1000

    reloader.poll(forced=True)

    reloading, ready = reloader.notify.call_args_list  # type: ignore[attr-defined]
    state, moment = reloading.args
    assert state == "RELOADING=1"
    assert int(moment.removeprefix("MONOTONIC_USEC=")) >= began
    assert ready == call("READY=1", f"STATUS=Stale: {fault}")


# ---- Absent files: some programs remove a file before they write it anew ----


def test_three_polls_may_miss_a_file(reloader: Reloader) -> None:
    # Earlier absences do not count.
    for id in ("b", "c"):
        (reloader.directory / "reviews.json").unlink()

        polls = [reloader.poll() for _ in range(3)]

        assert polls == [False, False, False]
        assert reloader.error is None
        put(reloader.directory, one(id))
        reloader.poll()
        assert served(reloader) == [id]


@pytest.mark.parametrize(
    "polls",
    [
        pytest.param([False, False, False, False], id="four polls"),
        pytest.param([True], id="a hangup"),
    ],
)
def test_reviews_that_stay_absent_make_the_service_stale_and_are_looked_for(
    reloader: Reloader, polls: list[bool]
) -> None:
    (reloader.directory / "reviews.json").unlink()

    for forced in polls:
        reloader.poll(forced)

    (fault,) = faults_of(reloader)
    assert "there is no such file" in fault
    assert reloader.poll()


def test_removed_insights_are_counted_from_the_reviews(reloader: Reloader) -> None:
    put(reloader.directory, json.dumps({"review_count": 7}), "insights.json")
    reloader.poll()
    (reloader.directory / "insights.json").unlink()

    counts = []
    for _ in range(4):
        reloader.poll()
        counts.append(reloader.snapshot.dataset.insights["review_count"])

    assert counts == [7, 7, 7, 1]


# ---- The thread ----


@pytest.mark.usefixtures("unfrozen")
def test_a_hangup_forces_one_reload(reloader: Reloader) -> None:
    # The files change again, which nobody forces.
    def write_more(snapshot: Any) -> None:
        put(reloader.directory, one("b"))

    reloader.publish = Mock(side_effect=write_more)
    reloader.sleep = Mock(side_effect=SystemExit)
    reloader.wake()

    with pytest.raises(SystemExit):
        reloader.run(0.01)

    assert reloader.publish.call_count == 1


@pytest.mark.usefixtures("unfrozen")
def test_polls_go_on_whatever_one_of_them_raises(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    reloader.directory = directory = MagicMock()
    directory.__truediv__.side_effect = [KeyError("unexpected"), SystemExit]
    reloader.wake()

    with pytest.raises(SystemExit):
        reloader.run(0.01)

    assert caplog.messages == ["the data files could not be polled"]


# ---- The daemon: its thread ----

PATHS = ("/reviews.json", "/api/reviews/search", "/api/reviews/since/2020-01-01")


def ids_of(service: Service, path: str) -> set[str]:
    """The ids in an answer, which must succeed."""
    answer = fetch(service, path)
    assert answer.status == 200
    return {review["id"] for review in json.loads(answer.body)["reviews"]}


@pytest.mark.slow
def test_no_request_fails_and_no_answer_mixes_two_states(tmp_path: Path) -> None:
    """Each state of the data has one id: an answer may hold only one."""
    put(tmp_path, one("s0"))
    over = threading.Event()

    def counts_of_ids(service: Service, path: str) -> set[int]:
        """The numbers of ids in the answers until the last reload."""
        counts = set()
        while not over.is_set():
            counts.add(len(ids_of(service, path)))
        return counts

    def is_served(service: Service, id: str) -> bool:
        return ids_of(service, "/reviews.json") == {id}

    with (
        daemon("--reload-interval", "0.05", data=tmp_path) as service,
        ThreadPoolExecutor() as readers,
    ):
        seen = [readers.submit(counts_of_ids, service, path) for path in PATHS]
        for id in ("s1", "s2", "s3"):
            put(tmp_path, one(id))
            wait_for("reload", partial(is_served, service, id))
        over.set()

    assert [counts.result() for counts in seen] == [{1}, {1}, {1}]
