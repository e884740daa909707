"""The service reloads changed data files; callers see the old data until the new data are complete.

Polls - Faults - Absent files - The thread - The daemon
"""

import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from servers import wait_for
from services import SAMPLE, Address, daemon, fetch
from small_files import a_file, review
from werkzeug.test import Client

import reviewsd
from hub import Hub
from reviewslib.dataset.contract import BadData, Fault
from reviewslib.process.settings import Settings
from reviewslib.web.app import Application
from reviewslib.web.reload import Reloader, utc_text
from reviewslib.web.snapshot import ProgramFiles


def replace(directory: Path, content: Any, name: str = "reviews.json") -> None:
    """Replace a file atomically, as a careful operator does; with review "a" for the content "a"."""
    new = directory / "new"
    content = a_file(review(content)) if isinstance(content, str) and content.isalnum() else content
    new.write_text(content if isinstance(content, str) else json.dumps(content))
    new.replace(directory / name)


APP = reviewsd.application_of(Settings(data=SAMPLE))


@pytest.fixture
def reloader(tmp_path: Path) -> Reloader:
    """Serves review "a"; notes its notifications and pauses."""
    replace(tmp_path, "a")
    reloader = Reloader(APP.program, tmp_path, APP.urls)
    reloader.notify, reloader.sleep = Mock(), Mock()
    return reloader


def served(reloader: Reloader) -> list[str]:
    """The ids that are served."""
    return list(reloader.snapshot.dataset.reviews_by_id)


def calling(called: Callable[[], object]) -> ProgramFiles:
    """The program, which calls a function of the test while a snapshot is built."""
    return APP.program._replace(policies=Mock(get=lambda path, default: called() and default))


# ---- Polls: no thread, no clock ----


def test_unchanged_files_are_loaded_only_after_a_hangup(reloader: Reloader) -> None:
    before = reloader.snapshot
    assert (reloader.poll(), reloader.snapshot is before) == (False, True)
    assert (reloader.poll(forced=True), reloader.snapshot is before) == (True, False)
    assert reloader.snapshot.fixed == before.fixed


@pytest.mark.parametrize(("forced", "served_after", "pauses"), [(False, ["a"], 4), (True, ["c"], 0)])
def test_only_a_hangup_does_not_wait_for_a_writer(
    reloader: Reloader, forced: bool, served_after: list[str], pauses: int
) -> None:
    drafts: list[Any] = ['{"business": {"na', "b", "a"]
    reloader.sleep = Mock(side_effect=lambda seconds: drafts and replace(reloader.directory, drafts.pop(0)))
    replace(reloader.directory, "c")
    reloader.poll(forced)
    assert (reloader.error, served(reloader)) == (None, served_after)
    assert [pause.args for pause in reloader.sleep.call_args_list] == [(0.05,)] * pauses


CHANGED = "/reviews.json, /insights.json, /api/feed.json, /feed.xml, /, /llms.txt, /sitemap.xml, /badge.svg"
FOREIGN = ["names 1 review(s) that are not served: 100 %s",
           "seems to belong to other reviews: most ids in it are not served"]  # fmt: skip


@pytest.mark.parametrize(
    ("reviews", "insights", "logged"),
    [
        ("a", None, ["reloaded 1 review of Larkspur; changed: nothing"]),
        (a_file(review(), review("b")), None, [f"reloaded 2 reviews of Larkspur; changed: {CHANGED}"]),
        (a_file(review(verified=False)), {"per_review": {"100 %s": {}}},
         [*(f"insights.json {warning}" for warning in FOREIGN),
          f"reloaded 0 reviews of Larkspur, 1 unverified left out; changed: {CHANGED}"]),
    ],
)  # fmt: skip
def test_a_reload_logs_warnings_and_what_changed(
    reloader: Reloader, caplog: pytest.LogCaptureFixture, reviews: Any, insights: Any, logged: list[str]
) -> None:
    caplog.set_level("INFO", "reviewsd")
    reloader.publish = published = Mock()
    replace(reloader.directory, reviews)
    if insights:
        replace(reloader.directory, insights, "insights.json")
    reloader.poll()
    assert caplog.messages == logged
    published.assert_called_once_with(reloader.snapshot)


def test_the_garbage_collector_rests_during_a_load(reloader: Reloader) -> None:
    collects: list[bool] = []
    reloader.program = calling(lambda: collects.append(gc.isenabled()))
    reloader.poll(forced=True)
    assert (set(collects), gc.isenabled()) == ({False}, True)


def test_nothing_keeps_the_previous_data_alive(tmp_path: Path) -> None:
    replace(tmp_path, "a")
    reloader = Reloader(APP.program, tmp_path, APP.urls)
    application = Application(reloader, APP.urls, APP.mcp)
    hub_settings = reviewsd.hub_settings(Settings(state_dir=tmp_path / "state"), "https://r.example")
    application.hub = hub = Hub(hub_settings, Mock())
    reloader.publish = partial(reviewsd.publish, hub)
    reloader.publish(reloader.snapshot)
    hub.start()
    client, params = Client(application), {"protocolVersion": "2025-03-26"}
    calls = [{"name": "search_reviews"}, {"name": "get_service", "arguments": {"service": "x"}}]
    messages = [{"method": "tools/call", "params": call} for call in calls]
    for message in (*messages, {"method": "initialize", "params": params}, {"method": "tools/list"}):
        assert client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, **message}).status_code == 200
    for path in ("/reviews.json", "/api/reviews/search?rating=5", "/api/reviews/search?rating=x"):
        client.get(path)
    dataset, feed = reloader.snapshot.dataset, reloader.snapshot.fixed["/feed.xml"].identity.body
    for content in ("{", "b"):
        replace(tmp_path, content)
        reloader.poll()
    references = sys.getrefcount(dataset), sys.getrefcount(feed)
    hub.stop(2)
    assert served(reloader) == ["b"]
    assert max(references) <= 2, "a name here and an argument there"


# ---- Faults ----


def test_bad_data_are_told_until_good_data_come(reloader: Reloader, caplog: pytest.LogCaptureFixture) -> None:
    replace(reloader.directory, '{"business": {"name": "X"}, "reviews": [{}')
    assert [reloader.poll() for _ in range(2)] == [True, False]
    assert (fault := reloader.error) and served(reloader) == ["a"]
    assert fault["faults"][0].startswith("reviews.json: not JSON at line 1 column ")
    assert abs(datetime.fromisoformat(fault["at"]).timestamp() - time.time()) < 60
    reloader.poll(forced=True)
    assert (reloader.error is fault, caplog.messages) == (False, [f"not reloaded: {fault['faults'][0]}"] * 2)
    replace(reloader.directory, "c")
    reloader.poll()
    assert (reloader.error, served(reloader)) == (None, ["c"])
    reloader.notify.assert_called_with("READY=1", "STATUS=Serving 1 review of Larkspur")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "fault"),
    [(OSError("x"), "internal error: OSError"), (MemoryError(), "too little memory"),
     (BadData([Fault("reviews.json", (), "x")]), "reviews.json: x")],
)  # fmt: skip
def test_a_failure_is_logged_once_and_a_passing_one_is_tried_again(
    reloader: Reloader, caplog: pytest.LogCaptureFixture, error: Exception, fault: str
) -> None:
    before, began, is_passing = reloader.snapshot, time.monotonic_ns() // 1000, "json" not in fault
    reloader.program = calling(Mock(side_effect=error))
    assert [reloader.poll(forced) for forced in (True, False, False)] == [True, is_passing, is_passing]
    assert (reloader.snapshot is before, (reloader.error or {})["faults"]) == (True, [fault])
    (message,) = caplog.messages
    assert (message.splitlines()[0], "Traceback" in message) == (
        f"not reloaded: {fault}",
        "internal" in fault,
    )
    (reloading, microseconds), *rest = (call.args for call in reloader.notify.call_args_list)  # type: ignore[attr-defined]
    assert (reloading, set(rest)) == ("RELOADING=1", {("READY=1", f"STATUS=Stale: {fault}")})
    assert began <= int(microseconds.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    reloader.program = APP.program
    assert (reloader.poll(), reloader.error is None) == (is_passing, is_passing)


def test_another_fault_of_the_same_files_is_logged(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    reloader.program = calling(Mock(side_effect=[MemoryError(), KeyError()]))
    for forced in (True, False):
        reloader.poll(forced)
    assert ["memory" in message for message in caplog.messages] == [True, False]


def test_a_change_that_cures_nothing_is_logged_again(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    for content in ("[]", "[ ]"):
        replace(reloader.directory, content)
        reloader.poll()
    assert caplog.messages == ["not reloaded: reviews.json: an array is not an object"] * 2


# ---- Absent files: 3 polls are waited for a program that removes a file to replace it ----


@pytest.mark.parametrize(("polls", "is_stale"), [([False] * 3, False), ([False] * 4, True), ([True], True)])
def test_reviews_that_stay_absent_make_the_service_stale(
    reloader: Reloader, polls: list[bool], is_stale: bool
) -> None:
    for content in ("b", "c"):  # earlier absences do not count
        (reloader.directory / "reviews.json").unlink()
        tried = [reloader.poll(forced) for forced in polls]
        assert any(tried) is is_stale
        assert ("there is no such file" in str(reloader.error)) is is_stale
        assert not is_stale or reloader.poll(), "it is tried again"
        replace(reloader.directory, content)
        reloader.poll()
        assert (reloader.error, served(reloader)) == (None, [content])


def test_short_absences_do_not_add_up(reloader: Reloader) -> None:
    away = reloader.directory.with_name("away")
    for _ in range(4):
        reloader.directory.rename(away)
        reloader.poll()
        away.rename(reloader.directory)
        reloader.poll()
    assert reloader.error is None


def test_removed_insights_are_counted_from_the_reviews(reloader: Reloader) -> None:
    counts = []
    replace(reloader.directory, {"review_count": 7}, "insights.json")
    for _ in range(5):
        reloader.poll()
        counts.append(reloader.snapshot.dataset.insights["review_count"])
        (reloader.directory / "insights.json").unlink(missing_ok=True)
    assert counts == [7, 7, 7, 7, 1]


# ---- The thread ----


def test_a_hangup_forces_one_reload(reloader: Reloader) -> None:
    reloader.publish = Mock(side_effect=lambda snapshot: replace(reloader.directory, "b"))
    reloader.sleep = Mock(side_effect=SystemExit)  # before the reload of "b", which nobody forces
    reloader.wake()
    with pytest.raises(SystemExit):
        reloader.run(0.01)
    assert reloader.publish.call_count == 1


def test_polls_go_on_whatever_one_of_them_raises(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    reloader.directory = directory = MagicMock()
    directory.__truediv__.side_effect = [KeyError("unexpected"), SystemExit]
    reloader.wake()
    with pytest.raises(SystemExit):
        reloader.run(0.01)
    assert caplog.messages == ["the data files could not be polled"]


def test_moments_are_formatted_in_utc_in_any_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        told = utc_text(86399.9)
    time.tzset()
    assert told == "1970-01-01T23:59:59Z"


# ---- The daemon: its thread ----


@pytest.mark.slow
def test_no_request_fails_and_no_answer_mixes_two_states(tmp_path: Path) -> None:
    """Each state of the data has one id: an answer may hold only one."""
    replace(tmp_path, "s0")
    failures, over = list[Any](), threading.Event()

    def load(service: Address, path: str) -> None:
        while not over.is_set():
            answer = fetch(service, path)
            ids = {review["id"] for review in json.loads(answer.body)["reviews"]}
            if answer.status != 200 or len(ids) != 1:
                failures.append((path, answer))

    with daemon("--reload-interval", "0.05", data=tmp_path) as service:
        paths = ("/reviews.json", "/api/reviews/search", "/api/reviews/since/2020-01-01")
        readers = [threading.Thread(target=load, args=(service, path)) for path in paths]
        for reader in readers:
            reader.start()
        for state in ("s1", "s2", "s3"):
            replace(tmp_path, state)
            wait_for("reload", lambda: state.encode() in fetch(service, "/reviews.json").body)  # noqa: B023
        over.set()
        for reader in readers:
            reader.join()
    assert failures == []
