"""Files of a drop folder are waited for, left out or refused; the others are imported.

Sections: files that are still being written - files that are refused - what one file
may cost.
"""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from lab.damaged_files import imported
from lab.export_lab import ZONE, Shop, item, page, stamped

from reviewslib.dataset.contract import shipped_contract
from reviewslib.importer.options import Options
from reviewslib.importer.reading import Settling, read_exports
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_SUCCESS

GOOD = "author,rating,date,source\nAnn,5,2024-01-01,fb\n"


class Clock:
    """A clock that moves when somebody sleeps; `happens` is then called with the time."""

    def __init__(self, now: float, happens: Callable[[float], object] = float):
        self.now = now
        self.happens = happens

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.happens(self.now)

    def settling(self) -> Settling:
        return Settling(now=lambda: self.now, sleep=self.sleep)


# ---- Files that are still being written ----


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A table that was written a second ago."""
    path = tmp_path / "drop" / "a.csv"
    path.parent.mkdir()
    path.write_text(GOOD)
    return path


def found(path: Path, clock: Clock) -> tuple[int, list[str]]:
    """The number of exports, and what was skipped, of a drop folder."""
    options = Options(drop=path.parent, zone="UTC")
    result = read_exports(options, shipped_contract(), clock.settling())
    return len(result.exports), result.skipped


def test_a_file_of_the_last_five_seconds_is_waited_for(fresh: Path) -> None:
    clock = Clock(fresh.stat().st_ctime + 1)

    exports, skipped = found(fresh, clock)

    assert exports == 1
    assert skipped == []
    assert clock.now == pytest.approx(fresh.stat().st_ctime + 5)


def test_a_file_at_rest_is_not_waited_for(fresh: Path) -> None:
    clock = Clock(fresh.stat().st_ctime + 6)

    found(fresh, clock)

    assert clock.now == fresh.stat().st_ctime + 6


@pytest.fixture
def written(fresh: Path) -> Clock:
    """A clock at whose every step somebody writes a file; another lies beside it."""
    fresh.with_name("b.csv").write_text(GOOD)

    def write(now: float) -> None:
        os.utime(fresh, (now, now))

    return Clock(fresh.stat().st_ctime + 1, happens=write)


def test_a_file_that_is_written_for_a_minute_is_left_and_named(
    fresh: Path, written: Clock
) -> None:
    start = written.now

    _, skipped = found(fresh, written)

    assert skipped == [f"{fresh}: it is still being written; the next run imports it"]
    assert written.now == start + 60


def test_beside_a_file_that_is_being_written_the_others_are_read(
    fresh: Path, written: Clock
) -> None:
    exports, _ = found(fresh, written)

    assert exports == 1


def test_a_download_that_is_not_finished_is_named(shop: Shop) -> None:
    shop.file("drop/a.csv", GOOD)
    part = shop.file("drop/takeout.zip.crdownload", b"PK\x03\x04")

    told = shop.told("--drop", shop.root / "drop", "--name=B")

    assert f"skipped: {part}: its download is not finished\n" in told


# ---- Files that are refused ----


@pytest.fixture
def stored(shop: Shop) -> Shop:
    """A shop with a Takeout, and a newer one, which lacks a review, in its drop folder."""
    shop.take(shop.takeout(9, range(20)))
    (shop.root / "drop").mkdir()
    shop.takeout(12, range(1, 20), name=f"drop/{stamped(12)}")
    return shop


BAD_FILES = [
    pytest.param("a.zip", b"PK\x03\x04 cut", "damaged", id="a cut archive"),
    pytest.param("a.json", b'{"reviews": [{"na', "not JSON", id="a cut page"),
    pytest.param(
        "a.csv", GOOD.encode() + b'Bo,5,2024-01-01,"f', "quote", id="a cut table"
    ),
    pytest.param("a.csv", GOOD.replace("5", "x").encode(), "faulty", id="faulty rows"),
    pytest.param("a.csv", b"", "it is empty", id="an empty table"),
    pytest.param(
        "a.csv", GOOD.encode() + b"," * 20_000, "separators", id="a line of commas"
    ),
    pytest.param("a.csv", GOOD.encode() + b"Bo,5", "seems to be cut", id="a cut row"),
]


@pytest.mark.parametrize(("name", "content", "reason"), BAD_FILES)
def test_a_bad_file_is_named_and_the_exit_status_says_so(
    stored: Shop, name: str, content: bytes, reason: str
) -> None:
    path = stored.file(f"drop/{name}", content)

    status = stored.run("--drop", path.parent)

    lines = stored.output().out.splitlines()
    (refused,) = [line for line in lines if line.startswith("refused: ")]
    assert status == EXIT_BAD_DATA
    assert str(path) in refused
    assert reason in refused


def test_beside_a_bad_file_nothing_is_removed(stored: Shop) -> None:
    bad = stored.file("drop/a.zip", b"PK\x03\x04 cut")

    stored.run("--drop", bad.parent)

    assert len(stored.reviews) == 20


def test_once_the_bad_file_is_gone_what_is_gone_is_removed(stored: Shop) -> None:
    bad = stored.file("drop/a.zip", b"PK\x03\x04 cut")
    stored.run("--drop", bad.parent)
    bad.unlink()

    assert stored.run("--drop", bad.parent) == EXIT_SUCCESS

    assert len(stored.reviews) == 19


def test_beside_a_bad_file_the_others_are_imported(stored: Shop) -> None:
    bad = stored.file("drop/a.zip", b"PK\x03\x04 cut")
    stored.file("drop/b.csv", GOOD)

    stored.run("--drop", bad.parent)

    assert len(stored.reviews) == 21


# ---- What one file may cost ----


def test_members_are_bounded_together(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reviewslib.files.MAX_UNPACKED_BYTES", 1_000)
    pages = {f"location-{n}/reviews.json": page([item(n)]) for n in range(9)}

    told = shop.refused(shop.zip(stamped(9), pages), "--name", "B")

    assert "in all members" in told


def test_an_archive_of_a_slow_compression_is_refused(shop: Shop) -> None:
    path = shop.root / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("location-1/reviews.json", page([item(1)]))

    assert "its compression is not that of" in shop.refused(path, "--name", "B")


def test_a_page_of_too_many_arrays_is_refused_before_it_is_decoded(shop: Shop) -> None:
    path = shop.file("a.json", b'{"reviews":[' + b"[" * 1_000_001)

    assert "objects and arrays" in shop.refused(path, "--name", "B")


def test_a_name_is_bounded(shop: Shop) -> None:
    path = shop.csv(["(" * 55_000, "5", "2024-01-01", "x"])

    told = shop.refused(path, "--name=B", "--source=fb")

    assert "the name has more than 200 characters" in told


def test_what_cannot_be_read_again_is_not_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.take(shop.takeout(9, range(3)))
    monkeypatch.setattr("reviewslib.files.LARGEST_FILE_BYTES", 3_000)

    told = shop.refused(shop.takeout(12, range(9)))

    assert "can be read again; import fewer files" in told


def test_a_state_that_cannot_be_read_again_is_not_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given an export of which an import remembers more than it publishes
    export = shop.takeout(9, range(9))
    shop.take(export)
    sizes = {name: len(content) for name, content in shop.files().items()}
    assert sizes["import-state.json"] > sizes["reviews.json"]

    # when it is imported, and so much cannot be read again
    shop.lose("import-state.json", "reviews.json")
    monkeypatch.setattr("reviewslib.files.LARGEST_FILE_BYTES", sizes["reviews.json"])
    told = shop.refused(export, "--zone", ZONE)

    # then nothing is written
    assert told.startswith("import-state.json: ")


def test_memory_that_runs_out_refuses_the_file(
    stored: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = stored.file("drop/a.csv", GOOD)

    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("reviewslib.importer.reading.read_csv", exhausted)

    status = stored.run("--drop", bad.parent)

    assert status == EXIT_BAD_DATA
    assert "it takes more memory than" in stored.output().out


@pytest.mark.slow
def test_no_damaged_file_ends_in_a_traceback(tmp_path: Path) -> None:
    outcomes = [imported(seed, tmp_path) for seed in range(300)]

    assert [outcome for outcome in outcomes if outcome.fault] == []
