"""A snapshot: files as they were at one moment, content that keeps its date, a bounded memory of answers.

Files - Last-Modified - Computed answers
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import snapshot
from contract import BadData
from links import links_below
from representations import represent
from snapshot import Computed, Snapshot

NOW = 1_800_000_000.0
MINIMAL = {"business": {"name": "X"}, "reviews": []}
ONE = MINIMAL | {"reviews": [{"id": "a", "author": "Ann", "rating": 5, "date": "2026-01-01"}]}
PROGRAM = snapshot.load_program()


# ---- Files ----


def write(directory: Path) -> Path:
    (directory / "reviews.json").write_text(json.dumps(ONE))
    return directory


def faults(directory: Path) -> list[str]:
    with pytest.raises(BadData) as caught:
        snapshot.read_files(directory)
    return caught.value.lines()


def test_a_file_that_is_absent_or_a_directory_is_a_fault_but_insights_may_be_absent(tmp_path: Path) -> None:
    assert faults(tmp_path) == [f"reviews.json: there is no such file in {tmp_path}; --data names it"]
    assert list(snapshot.read_files(write(tmp_path))) == ["reviews.json"]
    (tmp_path / "insights.json").mkdir()
    assert faults(tmp_path) == ["insights.json: cannot be read: Is a directory"]


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reviews.json"
    path.write_bytes(b"old")
    stamp = snapshot.stamp
    pauses: list[float] = []

    def stamp_while_somebody_writes(status: os.stat_result) -> tuple[int, int, int]:
        if not pauses:
            path.write_bytes(b"newer")
        return stamp(status)

    monkeypatch.setattr(snapshot, "stamp", stamp_while_somebody_writes)
    monkeypatch.setattr(snapshot.time, "sleep", pauses.append)
    assert snapshot.read_unchanging(path)[0] == b"newer"
    assert pauses == [snapshot.SETTLE_SECONDS]


def test_a_file_that_never_rests_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = iter(range(100))
    monkeypatch.setattr(snapshot, "stamp", lambda status: next(stamps))
    monkeypatch.setattr(snapshot.time, "sleep", lambda seconds: None)
    assert faults(write(tmp_path)) == ["reviews.json: cannot be read: it changes while it is read"]


# ---- Last-Modified ----


def built(document: Any, modified: float, previous: Snapshot | None = None, now: float = NOW) -> Snapshot:
    files = {"reviews.json": (json.dumps(document).encode(), modified)}
    return snapshot.build_snapshot(PROGRAM, files, links_below("http://reviews.example"), previous, now)


def test_content_is_as_old_as_its_file_and_never_from_the_future() -> None:
    assert built(ONE, 1000.9).fixed["/reviews.json"].last_modified == 1000
    assert built(ONE, NOW + 5000).fixed["/reviews.json"].last_modified == NOW


def test_what_did_not_change_keeps_its_tag_and_its_date() -> None:
    before = built(ONE, 1000)
    after = built(ONE, 2000, before)
    assert after.fixed == before.fixed
    assert after.last_modified == before.last_modified
    other = built(MINIMAL, 2000, before)
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
