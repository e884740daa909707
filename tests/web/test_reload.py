"""The service reloads changed data files; callers see the old data until the new data are complete.

Looking - Polling - Serving - Other servers
"""

import gc
import json
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from servers import wait_for
from services import Address, daemon, fetch, under_waitress
from small_files import a_file, review
from werkzeug.test import Client

import reviewsd
from hub import Hub
from reviewslib.dataset.contract import BadData
from reviewslib.process.settings import Settings
from reviewslib.web import reload
from reviewslib.web.reload import Reloader


def document(*ids: str) -> dict[str, Any]:
    return a_file(*map(review, ids))


def replace(directory: Path, content: Any, name: str = "reviews.json") -> None:
    """Replace a file atomically, as a careful operator does."""
    new = directory / "new"
    new.write_text(content if isinstance(content, str) else json.dumps(content))
    new.replace(directory / name)


# ---- Looking: no thread, no clock ----


@pytest.fixture
def told() -> list[str]:
    """The notifications that the service manager gets."""
    return []


@pytest.fixture
def reloader(tmp_path: Path, told: list[str]) -> Reloader:
    replace(tmp_path, document("a"))
    reloader = reviewsd.application_of(Settings(data=tmp_path)).reloader
    reloader.notify = lambda *states: told.extend(states)
    reloader.sleep = lambda seconds: None
    return reloader


class Policies(dict[str, Any]):
    """Security headers that call a function of the test while a snapshot is built."""

    def __init__(self, reloader: Reloader, called: Callable[[], object]):
        super().__init__(reloader.program.policies)
        self.called = called

    def get(self, path: str, default: Any = None) -> Any:
        self.called()
        return super().get(path, default)


def served(reloader: Reloader) -> list[str]:
    """The ids that are served."""
    return list(reloader.snapshot.dataset.reviews_by_id)


def test_unchanged_files_are_read_again_only_after_a_hangup(reloader: Reloader) -> None:
    before = reloader.snapshot
    reloader.poll()
    assert reloader.snapshot is before
    reloader.poll(forced=True)
    assert reloader.snapshot is not before
    assert reloader.snapshot.fixed == before.fixed


DATA = "/reviews.json, /insights.json, /api/feed.json, /feed.xml"
OTHERS = "/, /llms.txt, /sitemap.xml, /badge.svg"
UNVERIFIED = a_file(review(verified=False))


@pytest.mark.parametrize(
    ("reviews", "insights", "logged"),
    [
        (document("a"), None, ["reloaded 1 review of Larkspur; changed: nothing"]),
        (document("a", "b"), None, [f"reloaded 2 reviews of Larkspur; changed: {DATA}, {OTHERS}"]),
        (UNVERIFIED, {"per_review": {"100 %s": {}}}, [
            "insights.json names 1 review(s) that are not served: 100 %s",
            "insights.json seems to belong to other reviews: most ids in it are not served",
            f"reloaded 0 reviews of Larkspur, 1 unverified left out; changed: {DATA}, {OTHERS}",
        ]),
    ],
)  # fmt: skip
def test_a_reload_logs_its_warnings_and_the_paths_whose_content_changed(
    reloader: Reloader, caplog: pytest.LogCaptureFixture, reviews: Any, insights: Any, logged: list[str]
) -> None:
    caplog.set_level("INFO")
    replace(reloader.directory, reviews)
    if insights:
        replace(reloader.directory, insights, "insights.json")
    reloader.poll()
    assert caplog.messages == logged


def test_memory_is_returned_once_the_previous_data_are_no_longer_served(reloader: Reloader) -> None:
    served_meanwhile: list[list[str]] = []
    reloader.return_memory = lambda: served_meanwhile.append(served(reloader))
    replace(reloader.directory, document("a", "b"))
    reloader.poll()
    assert served_meanwhile == [["b", "a"]]
    replace(reloader.directory, document("a", "a"))
    reloader.poll()
    assert reloader.error
    assert len(served_meanwhile) == 2, "bad data took memory, too"
    reloader.poll()
    assert len(served_meanwhile) == 2, "files that did not change took none"


def test_the_garbage_collector_stops_no_thread_during_a_load(reloader: Reloader) -> None:
    collects: list[bool] = []
    policies = Policies(reloader, lambda: collects.append(gc.isenabled()))
    reloader.program = reloader.program._replace(policies=policies)
    reloader.poll(forced=True)
    assert set(collects) == {False}
    assert gc.isenabled(), "after the load"


def test_bad_data_are_logged_once_and_the_next_good_data_are_served(
    reloader: Reloader, caplog: pytest.LogCaptureFixture
) -> None:
    replace(reloader.directory, '{"business": {"name": "X"}, "reviews": [{}')
    reloader.poll()
    fault = reloader.error
    assert fault
    assert fault["faults"][0].startswith("reviews.json: not JSON at line 1 column ")
    assert [record.getMessage() for record in caplog.records] == [f"not reloaded: {fault['faults'][0]}"]
    assert served(reloader) == ["a"]
    reloader.poll()
    assert reloader.error is fault
    reloader.poll(forced=True)
    assert reloader.error and reloader.error is not fault and len(caplog.records) == 2
    assert abs(datetime.fromisoformat(fault["at"]).timestamp() - time.time()) < 60
    replace(reloader.directory, document("c"))
    reloader.poll()
    assert reloader.error is None
    assert served(reloader) == ["c"]


def test_moments_are_formatted_in_utc_in_any_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        told = reload.utc_text(86399.9)
    time.tzset()
    assert told == "1970-01-01T23:59:59Z"


@contextmanager
def no_descriptors(reloader: Reloader) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def raised(error: Exception, reloader: Reloader) -> Iterator[None]:
    program = reloader.program
    reloader.program = program._replace(policies=Policies(reloader, Mock(side_effect=error)))
    yield
    reloader.program = program


@pytest.mark.parametrize(
    ("trouble", "fault"),
    [
        (no_descriptors, "reviews.json: cannot be read: Too many open files"),
        (partial(raised, MemoryError()), "too little memory"),
        (partial(raised, KeyError("x")), "internal error: KeyError"),
    ],
)
def test_a_passing_failure_is_logged_once_and_every_poll_tries_again(
    reloader: Reloader, told: list[str], caplog: pytest.LogCaptureFixture, trouble: Any, fault: str
) -> None:
    before, said, began = reloader.snapshot, [], time.monotonic_ns() // 1000
    with trouble(reloader):
        for forced in (True, False, False):
            reloader.poll(forced)
            said.append(reloader.error)
    assert reloader.snapshot is before
    assert said[0] and said[0]["faults"][0] == fault
    assert said[0] is said[1] is said[2]
    assert caplog.records[0].getMessage().splitlines()[0] == f"not reloaded: {fault}"
    assert len(caplog.records) == len(said[0]["faults"])
    assert ("Traceback" in caplog.text) is ("internal" in fault)
    reloading, microseconds, *rest = told
    assert (reloading, rest) == ("RELOADING=1", ["READY=1", f"STATUS=Stale: {fault}"] * 3)
    assert began <= int(microseconds.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    reloader.poll()
    assert reloader.error is None
    assert reloader.snapshot is not before
    assert told[-2:] == ["READY=1", "STATUS=Serving 1 review of Larkspur"]


def test_after_a_change_of_its_mode_a_file_is_looked_at_again(reloader: Reloader) -> None:
    before = reloader.snapshot
    (reloader.directory / "reviews.json").chmod(0o600)
    reloader.poll()
    assert reloader.snapshot is not before


def test_nothing_keeps_the_previous_data_alive(reloader: Reloader, tmp_path: Path) -> None:
    application = reviewsd.application_of(Settings(data=reloader.directory))
    reloader = application.reloader
    hub_settings = reviewsd.hub_settings(Settings(state_dir=tmp_path / "state"), "https://r.example")
    application.hub = hub = Hub(hub_settings, reviewsd.callback_client(hub_settings).send)
    reloader.publish = partial(reviewsd.publish, hub)
    reloader.publish(reloader.snapshot)
    hub.start()
    client = Client(application)
    calls = [{"name": "search_reviews"}, {"name": "get_service", "arguments": {"service": "x"}}]
    messages = [{"method": "tools/call", "params": params} for params in calls]
    messages += [{"method": "initialize", "params": {"protocolVersion": "2025-03-26"}}]
    for message in (*messages, {"method": "tools/list"}, {"method": "unknown"}):
        assert client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, **message}).status_code == 200
    for path in ("/reviews.json", "/api/reviews/search?rating=5", "/api/reviews/search?rating=x"):
        client.get(path)
    dataset, feed = reloader.snapshot.dataset, reloader.snapshot.fixed["/feed.xml"].identity.body
    for content in (document("a", "a"), document("b")):
        replace(reloader.directory, content)
        reloader.poll()
    references = sys.getrefcount(dataset), sys.getrefcount(feed)
    hub.stop(2)
    assert served(reloader) == ["b"]
    assert max(references) <= 2, "a name here and an argument there"


def test_a_file_that_somebody_is_writing_is_waited_for(reloader: Reloader) -> None:
    to_be_written = ['{"business": {"na', document("b", "a"), document("b")]
    replace(reloader.directory, to_be_written.pop(0))

    def sleep(seconds: float) -> None:
        assert seconds == 0.05
        if to_be_written:
            replace(reloader.directory, to_be_written.pop(0))

    reloader.sleep = sleep
    reloader.poll()
    assert (reloader.error, served(reloader), to_be_written) == (None, ["b"], [])


def test_a_hangup_waits_for_nothing(reloader: Reloader) -> None:
    reloader.sleep = Mock()
    replace(reloader.directory, document("b"))
    reloader.poll(forced=True)
    assert served(reloader) == ["b"]
    reloader.sleep.assert_not_called()


@pytest.mark.parametrize("stays_away", [False, True])
def test_a_file_that_stays_absent_makes_the_service_stale(reloader: Reloader, stays_away: bool) -> None:
    reloader.poll(forced=True)
    (reloader.directory / "reviews.json").unlink()
    for _ in range(3 + stays_away):
        reloader.poll()
    assert served(reloader) == ["a"]
    assert ("there is no such file" in str(reloader.error)) is stays_away
    replace(reloader.directory, document("b"))
    reloader.poll()
    assert served(reloader) == ["b"]


def test_short_absences_of_a_file_do_not_add_up(reloader: Reloader) -> None:
    away = reloader.directory.with_name("away")
    for _ in range(4):
        reloader.directory.rename(away)
        reloader.poll()
        away.rename(reloader.directory)
        reloader.poll()
    assert reloader.error is None


def test_insights_that_stay_away_are_counted_from_the_reviews(reloader: Reloader) -> None:
    replace(reloader.directory, {"review_count": 7}, "insights.json")
    reloader.poll()
    assert reloader.snapshot.dataset.insights["review_count"] == 7
    (reloader.directory / "insights.json").unlink()
    for _ in range(3 + 1):
        reloader.poll()
    assert reloader.snapshot.dataset.insights["review_count"] == 1


# ---- Polling ----


def test_polls_go_on_whatever_one_of_them_raises(
    reloader: Reloader, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = Mock(side_effect=[OSError("no"), None, SystemExit])
    monkeypatch.setattr(reloader, "poll", poll)
    reloader.return_memory = returned = Mock()
    reloader.wake()
    with pytest.raises(SystemExit):
        reloader.run(0.01)
    assert [each.args for each in poll.call_args_list] == [(True,), (False,), (False,)], "`wake` forced it"
    assert caplog.messages == ["the data files could not be polled"]
    assert returned.call_count == 1, "for the first load"


# ---- Serving: the daemon, its thread and its signal ----


def digest_of_reviews(service: Address) -> str:
    return str(json.loads(fetch(service, "/healthz").body)["digests"]["/reviews.json"])


@pytest.mark.slow
def test_under_load_no_request_fails_and_no_answer_is_mixed(tmp_path: Path) -> None:
    """Each state of the data has one id, one insight count: an answer may hold only one state's."""
    replace(tmp_path, document("s0"))
    failures: list[Any] = []
    over = threading.Event()

    def load(service: Address, path: str) -> None:
        while not over.is_set():
            answer = fetch(service, path)
            ids = {review["id"] for review in json.loads(answer.body).get("reviews", [])}
            if answer.status != 200 or len(ids) != 1:
                failures.append((path, answer))

    with daemon("--reload-interval", "0.05", data=tmp_path) as service:
        paths = ("/reviews.json", "/api/reviews/search", "/api/reviews/since/2020-01-01")
        readers = [threading.Thread(target=load, args=(service, path)) for path in paths]
        for reader in readers:
            reader.start()
        for state in range(1, 6):
            digest = digest_of_reviews(service)
            replace(tmp_path, document(f"s{state}"))
            wait_for("reload", lambda seen=digest: digest_of_reviews(service) != seen)  # type: ignore[misc]
        over.set()
        for reader in readers:
            reader.join()
    assert failures == []


# ---- Other servers ----


def test_an_application_of_bad_data_is_refused_fault_by_fault(tmp_path: Path) -> None:
    replace(tmp_path, {"business": {}, "reviews": 1})
    with pytest.raises(BadData) as caught:
        reviewsd.create_app(Settings(data=tmp_path))
    faults = ("/business: 'name' is a required property", "/reviews: 1 is not an array")
    assert str(caught.value).splitlines() == [f"reviews.json {fault}" for fault in faults]


@pytest.mark.parametrize("no_hub", [False, True])
def test_under_another_server_a_hub_is_named_only_if_it_runs_elsewhere(no_hub: bool) -> None:
    with under_waitress(no_hub=no_hub) as service:
        for path in ("/reviews.json", "/api/feed.json", "/feed.xml", "/", "/llms.txt", "/robots.txt"):
            page, directory = (fetch(service, path, Accept=accept) for accept in ("*/*", "application/json"))
            for answer in (page, directory):
                names_hub = "websub/hub" in f"{answer.headers.get('link')} {answer.body!r}"
                assert names_hub is no_hub, path
        assert fetch(service, "/api/websub/hub", "POST").status == 404
