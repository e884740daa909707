"""Settings and fixtures of all tests; property tests have no deadline, since machines differ in speed.

In CI a skip fails, unless its reason is a right that `tools.RIGHTS` lists.
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from export_lab import Shop
from hub_lab import Bench, Lab, open_lab
from hypothesis import HealthCheck, settings
from tools import IN_CI, RIGHTS

settings.register_profile("reviewsd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("reviewsd")

EXCUSES = {f"Skipped: {right.reason}" for right in RIGHTS.values()}


def judged(report: Any) -> Any:
    """The report of a test or a collected file; an unlisted skip, `xfail` included, becomes a failure."""
    if IN_CI and report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected to fail"
        if reason not in EXCUSES:
            report.outcome, report.longrepr = "failed", f"{reason}; this is not on the list of tests/tools.py"
            vars(report).pop("wasxfail", None)  # otherwise pytest reports an expected failure
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-snapshots", action="store_true", help="write the files of web/test_snapshots.py"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    return judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    return judged((yield))


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
