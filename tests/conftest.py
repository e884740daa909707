"""Settings and fixtures of all tests.

Property tests have no deadline, since machines differ in speed.
"""

import difflib
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from lab.callback_lab import Lab, open_lab
from lab.export_lab import Shop
from lab.hub_lab import Bench, WatchedConnection

settings.register_profile(
    "reviewsd", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("reviewsd")


def pytest_addoption(parser: pytest.Parser) -> None:
    what = (
        "write the reviewed files with which tests compare; the diff is to be reviewed"
    )
    parser.addoption("--write-snapshots", action="store_true", help=what)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that have slow tests, so that none of them ends last.

    A file runs in one process; of those without, the order is that of their names.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def assert_reviewed(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a reviewed file, which --write-snapshots writes."""

    def check(path: Path, made: str) -> None:
        if request.config.getoption("--write-snapshots"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made, encoding="utf-8")
        stored = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = difflib.unified_diff(
            stored.splitlines(), made.splitlines(), "reviewed", "made", lineterm=""
        )
        assert made == stored, "\n".join(
            [*lines, "With --write-snapshots this becomes the file to review."]
        )

    return check


@pytest.fixture
def shop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shop:
    return Shop(tmp_path, capsys.readouterr)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with open_lab(tmp_path) as made:
        yield made


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "new" / "state")
    yield made
    made.hub.stop(1)


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each commit of a store that is opened from now on has waited for."""
    monkeypatch.setattr(WatchedConnection, "commits", [])
    connect = partial(sqlite3.connect, factory=WatchedConnection)
    monkeypatch.setattr(sqlite3, "connect", connect)
    return WatchedConnection.commits
