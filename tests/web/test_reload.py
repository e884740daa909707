"""The service reloads changed data files; callers see the old data until the new data are complete.

Polls - Faults - Absent files - The thread - The daemon
"""

import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from lab.servers import wait_for
from lab.services import SAMPLE, Address, call, daemon, fetch
from lab.small_files import a_file, review

import reviewsd
from hub import Hub
from reviewslib.dataset.contract import BadData, Fault
from reviewslib.messages import Headers
from reviewslib.process.settings import Settings
from reviewslib.web.app import Application
from reviewslib.web.reload import Reloader
from reviewslib.web.snapshot import ProgramFiles

APP = reviewsd.application_of(Settings(data=SAMPLE))


def replace(directory: Path, content: Any, name: str = "reviews.json") -> None:
    """Replace a file atomically, as a careful operator does; the content "a" means a file with review "a"."""
    new = directory / "new"
    content = (
        a_file(review(content))
        if isinstance(content, str) and content.isalnum()
        else content
    )
    new.write_text(content if isinstance(content, str) else json.dumps(content))
    new.replace(directory / name)


@pytest.fixture
def reloader(tmp_path: Path) -> Reloader:
    """A reloader that serves review "a"; the test sees its notifications and pauses."""
    replace(tmp_path, "a")
    reloader = Reloader(APP.program, tmp_path, APP.urls)
    reloader.notify = Mock()
    reloader.sleep = Mock()
    return reloader


def replaced(reloader: Reloader, content: Any, forced: bool = False) -> list[str]:
    """The ids that are served after a poll of replaced reviews."""
    replace(reloader.directory, content)
    reloader.poll(forced)
    return served(reloader)


def served(reloader: Reloader) -> list[str]:
    return list(reloader.snapshot.dataset.reviews_by_id)


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


def test_unchanged_files_are_loaded_only_after_a_hangup(reloader: Reloader) -> None:
    before = reloader.snapshot
    assert (reloader.poll(), reloader.snapshot is before) == (False, True)
    assert (reloader.poll(forced=True), reloader.snapshot is before) == (True, False)
    assert reloader.snapshot.fixed == before.fixed


@pytest.mark.parametrize(
    ("forced", "served_after", "pauses"), [(False, ["a"], 4), (True, ["c"], 0)]
)
def test_only_a_hangup_does_not_wait_for_a_writer(
    reloader: Reloader, forced: bool, served_after: list[str], pauses: int
) -> None:
    drafts: list[Any] = ['{"business": {"na', "b", "a"]
    reloader.sleep = Mock(
        side_effect=lambda seconds: (
            drafts and replace(reloader.directory, drafts.pop(0))
        )
    )
    assert (replaced(reloader, "c", forced), reloader.error) == (served_after, None)
    assert [pause.args for pause in reloader.sleep.call_args_list] == [(0.05,)] * pauses


CHANGED = "/reviews.json, /insights.json, /api/feed.json, /feed.xml, /, /llms.txt, /sitemap.xml, /badge.svg"
FOREIGN = [
    "names 1 review(s) that are not served: 100 %s",
    "seems to belong to other reviews: most ids in it are not served",
]
UNVERIFIED = (
    f"reloaded 0 reviews of Larkspur, 1 unverified left out; changed: {CHANGED}"
)


@pytest.mark.parametrize(
    ("reviews", "insights", "logged"),
    [
        ("a", None, ["reloaded 1 review of Larkspur; changed: nothing"]),
        (
            a_file(review(), review("b")),
            None,
            [f"reloaded 2 reviews of Larkspur; changed: {CHANGED}"],
        ),
        (
            a_file(review(verified=False)),
            {"per_review": {"100 %s": {}}},
            [*(f"insights.json {warning}" for warning in FOREIGN), UNVERIFIED],
        ),
    ],
)
def test_a_reload_logs_warnings_and_what_changed(
    reloader: Reloader,
    caplog: pytest.LogCaptureFixture,
    reviews: Any,
    insights: Any,
    logged: list[str],
) -> None:
    caplog.set_level("INFO", "reviewsd")
    reloader.publish = published = Mock()
    if insights:
        replace(reloader.directory, insights, "insights.json")
    replaced(reloader, reviews)
    assert caplog.messages == logged
    published.assert_called_once_with(reloader.snapshot)


def test_the_garbage_collector_rests_during_a_load(reloader: Reloader) -> None:
    collects: list[bool] = []
    reloader.program = calling(lambda: collects.append(gc.isenabled()))
    reloader.poll(forced=True)
    assert (set(collects), gc.isenabled()) == ({False}, True)


TOOL_CALLS = [
    {"name": "search_reviews"},
    {"name": "get_service", "arguments": {"service": "x"}},
]
MESSAGES = [{"method": "tools/call", "params": params} for params in TOOL_CALLS]
MESSAGES += [
    {"method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
    {"method": "tools/list"},
]


def test_nothing_keeps_the_previous_data_alive(
    reloader: Reloader, tmp_path: Path
) -> None:
    application = Application(reloader, APP.urls, APP.mcp)
    hub_settings = reviewsd.hub_settings(
        Settings(state_dir=tmp_path / "state"), "https://r.example"
    )
    application.hub = hub = Hub(hub_settings, Mock())
    reloader.publish = partial(reviewsd.publish, hub)
    reloader.publish(reloader.snapshot)
    hub.start()
    for message in MESSAGES:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
        assert (
            call(
                application, "/mcp", "POST", body, content_type="application/json"
            ).status
            == 200
        )
    for path in (
        "/reviews.json",
        "/api/reviews/search?rating=5",
        "/api/reviews/search?rating=x",
    ):
        call(application, path)
    dataset = reloader.snapshot.dataset
    feed = reloader.snapshot.fixed["/feed.xml"].identity.body
    ids = [replaced(reloader, content) for content in ("{", "b")]
    references = sys.getrefcount(dataset), sys.getrefcount(feed)
    hub.stop(2)
    assert ids == [["a"], ["b"]]
    assert max(references) <= 2, "one of the local name, one of the argument"


# ---- Faults ----


def test_faults_are_shown_until_good_data_come(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    assert replaced(reloader, '{"business": {"name": "X"}, "reviews": [{}') == ["a"]
    assert (fault := reloader.error) and not reloader.poll()
    assert fault["faults"][0].startswith("reviews.json: not JSON at line 1 column ")
    assert abs(datetime.fromisoformat(fault["at"]).timestamp() - time.time()) < 60
    reloader.poll(forced=True)
    assert (reloader.error is fault, caplog.messages) == (
        False,
        [f"not reloaded: {fault['faults'][0]}"] * 2,
    )
    assert (replaced(reloader, "c"), reloader.error) == (["c"], None)
    reloader.notify.assert_called_with("READY=1", "STATUS=Serving 1 review of Larkspur")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "fault", "is_passing"),
    [
        (OSError("x"), "internal error: OSError", True),
        (MemoryError(), "too little memory", True),
        (BadData([Fault("reviews.json", (), "x")]), "reviews.json: x", False),
    ],
    ids=["internal", "memory", "data"],
)
def test_a_failure_is_logged_once_and_a_passing_one_is_tried_again(
    reloader: Reloader,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    fault: str,
    is_passing: bool,
) -> None:
    before = reloader.snapshot
    began = time.monotonic_ns() // 1000
    reloader.program = calling(Mock(side_effect=error))
    assert [reloader.poll(forced) for forced in (True, False, False)] == [
        True,
        is_passing,
        is_passing,
    ]
    assert (reloader.snapshot is before, (reloader.error or {})["faults"]) == (
        True,
        [fault],
    )
    (message,) = caplog.messages
    assert message.startswith(f"not reloaded: {fault}")
    assert ("Traceback" in message) is fault.startswith("internal")
    (reloading, microseconds), *rest = (
        call.args for call in reloader.notify.call_args_list
    )  # type: ignore[attr-defined]
    assert (reloading, set(rest)) == (
        "RELOADING=1",
        {("READY=1", f"STATUS=Stale: {fault}")},
    )
    assert (
        began
        <= int(microseconds.removeprefix("MONOTONIC_USEC="))
        <= time.monotonic_ns() // 1000
    )
    reloader.program = APP.program
    assert (reloader.poll(), reloader.error is None) == (is_passing, is_passing)


def test_a_change_that_cures_nothing_is_logged_again(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    replaced(reloader, "[]")
    replaced(reloader, "[ ]")
    assert (
        caplog.messages == ["not reloaded: reviews.json: an array is not an object"] * 2
    )


# ---- Absent files: 3 polls may miss a file, since some programs remove it before they write it anew ----


@pytest.mark.parametrize(
    ("polls", "is_stale"), [([False] * 3, False), ([False] * 4, True), ([True], True)]
)
def test_reviews_that_stay_absent_make_the_service_stale(
    reloader: Reloader, polls: list[bool], is_stale: bool
) -> None:
    for content in ("b", "c"):  # earlier absences do not count
        (reloader.directory / "reviews.json").unlink()
        assert [reloader.poll(forced) for forced in polls][-1] is is_stale
        assert ("there is no such file" in str(reloader.error)) is is_stale
        assert not is_stale or reloader.poll(), "it is tried again"
        assert (replaced(reloader, content), reloader.error) == ([content], None)


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
    reloader.publish = Mock(
        side_effect=lambda snapshot: replace(reloader.directory, "b")
    )
    reloader.sleep = Mock(
        side_effect=SystemExit
    )  # before the reload of "b", which nobody forces
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


# ---- The daemon: its thread ----


@pytest.mark.slow
def test_no_request_fails_and_no_answer_mixes_two_states(tmp_path: Path) -> None:
    """Each state of the data has one id: an answer may hold only one."""
    replace(tmp_path, "s0")
    over = threading.Event()
    paths = ("/reviews.json", "/api/reviews/search", "/api/reviews/since/2020-01-01")

    def read(service: Address, path: str) -> list[Any]:
        """The statuses and numbers of ids of all answers until the last reload."""
        seen = []
        while not over.is_set():
            answer = fetch(service, path)
            seen.append(
                (
                    answer.status,
                    len(
                        {review["id"] for review in json.loads(answer.body)["reviews"]}
                    ),
                )
            )
        return seen

    with (
        daemon("--reload-interval", "0.05", data=tmp_path) as service,
        ThreadPoolExecutor() as readers,
    ):
        seen = [readers.submit(read, service, path) for path in paths]
        for state in ("s1", "s2", "s3"):
            replace(tmp_path, state)
            wait_for(
                "reload",
                lambda state=state: (
                    state.encode() in fetch(service, "/reviews.json").body
                ),
            )
        over.set()
        assert {answer for answers in seen for answer in answers.result()} == {(200, 1)}
