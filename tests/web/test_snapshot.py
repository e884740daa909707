"""A snapshot: files as they were at one moment, content that keeps its date, a bounded memory of answers.

Files - Last-Modified - Computed answers
"""

import json
import os
import stat
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reviewslib import files
from reviewslib.dataset.contract import BadData
from reviewslib.links import links_below
from reviewslib.web import snapshot
from reviewslib.web.representations import represent
from reviewslib.web.snapshot import Computed, Files, Snapshot

NOW = 1_800_000_000.0
MINIMAL = {"business": {"name": "X"}, "reviews": []}
ONE = MINIMAL | {"reviews": [{"id": "a", "author": "Ann", "rating": 5, "date": "2026-01-01"}]}
PROGRAM = snapshot.load_program()._replace(changed=0)


# ---- Files ----


def write(directory: Path) -> Path:
    (directory / "reviews.json").write_text(json.dumps(ONE))
    return directory


def faults(directory: Path) -> list[str]:
    with pytest.raises(BadData) as caught:
        snapshot.read_files(directory)
    return caught.value.lines()


def test_a_file_that_is_absent_is_a_fault_but_insights_may_be_absent(tmp_path: Path) -> None:
    assert faults(tmp_path) == [f"reviews.json: there is no such file in {tmp_path}; --data names it"]
    found = snapshot.read_files(write(tmp_path))
    assert (found.insights, found.insights_changed) == (None, files.last_change(tmp_path))


@pytest.mark.parametrize("kind", ["directory", "device", stat.S_IFIFO, stat.S_IFSOCK])
@pytest.mark.parametrize("name", ["reviews.json", "insights.json"])
def test_what_is_no_regular_file_is_a_fault_and_is_not_waited_for(
    tmp_path: Path, name: str, kind: Any
) -> None:
    path = write(tmp_path) / name
    path.unlink(missing_ok=True)
    match kind:
        case "directory":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            os.mknod(path, kind | 0o600)
    assert faults(tmp_path) == [f"{name}: cannot be read: it is not a regular file"]


def test_a_pipe_put_in_the_place_of_a_file_that_is_being_read_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path) / "reviews.json"

    def put_a_pipe_there(mode: int) -> bool:
        path.unlink()
        os.mkfifo(path)
        monkeypatch.undo()
        return True

    monkeypatch.setattr(stat, "S_ISREG", put_a_pipe_there)
    assert faults(tmp_path) == ["reviews.json: cannot be read: it is not a regular file"]


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reviews.json"
    path.write_bytes(b"old")
    stamp = files.stamp
    pauses: list[float] = []

    def stamp_while_somebody_writes(status: os.stat_result) -> files.Stamp:
        if not pauses:
            path.write_bytes(b"newer")
        return stamp(status)

    monkeypatch.setattr(files, "stamp", stamp_while_somebody_writes)
    monkeypatch.setattr(files.time, "sleep", pauses.append)
    assert files.read_unchanging(path)[0] == b"newer"
    assert pauses == [files.SETTLE_SECONDS]


def test_a_file_that_is_too_large_is_a_fault_and_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "reviews.json").open("wb") as file:
        file.truncate(files.LARGEST_FILE_BYTES)  # a hole takes no room
    assert len(snapshot.read_files(tmp_path).reviews) == files.LARGEST_FILE_BYTES
    with (tmp_path / "reviews.json").open("ab") as file:
        file.truncate(1_500_000_000_000)
    assert faults(tmp_path) == ["reviews.json: cannot be read: it is larger than 64 MiB"]


def test_a_file_that_never_rests_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = iter(range(100))
    monkeypatch.setattr(files, "stamp", lambda status: next(stamps))
    monkeypatch.setattr(files.time, "sleep", lambda seconds: None)
    assert faults(write(tmp_path)) == ["reviews.json: cannot be read: it changes while it is read"]


# ---- Last-Modified ----

LONG_AGO, FAR_AHEAD = 1_000_000_000, 4_000_000_000


def test_a_copy_with_an_old_time_is_as_new_as_the_copy(tmp_path: Path) -> None:
    before = int(time.time())
    os.utime(write(tmp_path) / "reviews.json", (LONG_AGO, LONG_AGO))
    assert snapshot.read_files(tmp_path).reviews_changed >= before


@pytest.mark.parametrize("switched", ["current", "current/reviews.json"])
def test_a_file_behind_a_link_is_as_new_as_the_link(tmp_path: Path, switched: str) -> None:
    release, current = tmp_path / "release", tmp_path / "current"
    release.mkdir()
    write(tmp_path)
    (release / "reviews.json").symlink_to(tmp_path / "reviews.json")
    current.symlink_to(release)
    os.utime(tmp_path / switched, (FAR_AHEAD, FAR_AHEAD), follow_symlinks=False)
    assert snapshot.read_files(current).reviews_changed == FAR_AHEAD


@pytest.mark.parametrize("name", ["openapi.json", "page.css", "feeds.py"])
def test_each_file_of_the_program_dates_the_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "last_change", lambda path: 2 if path.name == name else 1)
    assert snapshot.load_program().changed == 2


def built(
    document: Any,
    changed: float,
    previous: Snapshot | None = None,
    now: float = NOW,
    insights: Any = None,
    program: float = 0,
) -> Snapshot:
    """The snapshot of reviews changed then, and insights at 0 or as the first member says; None: no file."""
    insights_changed, content = insights or (0, {})
    insights_file = None if content is None else json.dumps(content).encode()
    content_of_files = Files(json.dumps(document).encode(), changed, insights_file, insights_changed)
    urls = links_below("http://reviews.example")
    return snapshot.build_snapshot(PROGRAM._replace(changed=program), content_of_files, urls, previous, now)


def dates(state: Snapshot) -> dict[str, int]:
    computed = {"search": state.last_modified}
    return computed | {path: each.last_modified for path, each in state.fixed.items()}


FROM_BOTH = ("search", "/", "markdown", "/llms.txt", "/reviews.json", "/api/feed.json", "/feed.xml")
FROM_REVIEWS, FROM_INSIGHTS = ("/.well-known/openapi.json", "/sitemap.xml", "/badge.svg"), "/insights.json"
FROM_NEITHER = ("directory", "/robots.txt", "/favicon.ico")


@pytest.mark.parametrize(("reviews", "insights", "program"), [(30, 20, 10), (20, 30, 10), (10, 20, 30)])
def test_content_is_as_old_as_what_it_is_made_of(reviews: int, insights: int, program: int) -> None:
    assert dates(built(ONE, reviews, insights=(insights, {}), program=program)) == {
        **dict.fromkeys(FROM_BOTH, 30),
        **dict.fromkeys(FROM_REVIEWS, max(reviews, program)),
        FROM_INSIGHTS: max(insights, program),
        **dict.fromkeys(FROM_NEITHER, program),
    }


@pytest.mark.parametrize(("reviews", "removed"), [(30, 20), (20, 30)])
def test_insights_that_are_counted_are_as_new_as_the_reviews_and_as_the_removal_of_the_file(
    reviews: int, removed: int
) -> None:
    first = built(ONE, reviews, insights=(removed, None))
    assert first.fixed[FROM_INSIGHTS].last_modified == 30
    later = built(MINIMAL, 50, first, insights=(removed, None))
    assert later.fixed[FROM_INSIGHTS].last_modified == 50


def test_whole_seconds_count_and_none_of_them_in_the_future() -> None:
    assert built(ONE, 1000.9).fixed["/reviews.json"].last_modified == 1000
    assert built(ONE, NOW + 5000).fixed["/reviews.json"].last_modified == NOW


def test_what_did_not_change_keeps_its_tag_and_its_date() -> None:
    before = built(ONE, 1000)
    after = built(ONE, 2000, before)
    assert after.fixed == before.fixed
    assert after.last_modified == before.last_modified
    other = built(MINIMAL, 2000, before, insights=(2000, {}))
    for path in ("/insights.json", "/.well-known/openapi.json"):
        assert other.fixed[path] == before.fixed[path]


def test_content_that_was_put_back_is_later_than_the_content_between() -> None:
    first = built(ONE, 1000)
    second = built(MINIMAL, 2000, first)
    third = built(ONE, 1000, second)
    dates = [state.fixed["/reviews.json"].last_modified for state in (first, second, third)]
    assert dates == [1000, 2000, 2001]
    assert [state.last_modified for state in (first, second, third)] == dates
    assert third.fixed["/reviews.json"].digest == first.fixed["/reviews.json"].digest


def test_an_empty_feed_was_updated_when_the_data_were() -> None:
    feed = built(MINIMAL, 1000).fixed["/feed.xml"].identity.body
    assert f"<updated>{datetime.fromtimestamp(1000, UTC):%Y-%m-%dT%H:%M:%SZ}</updated>".encode() in feed


# ---- Computed answers ----


def computed(size: int) -> Any:
    return represent(b"x" * size, "a/b", 1, gzip_level=None)


def test_an_answer_is_kept_under_its_path_query_and_coding() -> None:
    kept = Computed()
    kept.keep(("/a", "q", True), computed(10))
    assert kept.get(("/a", "q", True)) == computed(10)
    assert kept.get(("/a", "q", False)) is None


def test_answers_never_take_more_room_than_they_may() -> None:
    kept = Computed(most_bytes=30_000)
    kept.keep(("/", "", False), computed(30_001))
    assert kept.get(("/", "", False)) is None
    keys = [("/api/reviews/search", f"limit={number}", False) for number in range(50)]
    for key in keys:
        kept.keep(key, computed(3000))
        assert kept.get(key)
        assert sum(kept.get(each) is not None for each in keys) * 3000 <= 30_000
