"""Settings and fixtures of all tests; property tests have no deadline, since machines differ in speed.

In CI a skip fails the run, unless its reason is a right that `tools.RIGHTS` lists.
"""

from collections.abc import Iterator
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


def pytest_addoption(parser: pytest.Parser) -> None:
    what = "write the files of web/test_snapshots.py"
    parser.addoption("--write-snapshots", action="store_true", help=what)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI an unlisted skip, `xfail` included, fails the run."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")  # none in a worker of xdist
    stats = reporter.stats if IN_CI and reporter else {}
    for report in [*stats.get("skipped", ()), *stats.get("xfailed", ())]:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple | list) else "expected to fail"
        if reason not in EXCUSES:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            reporter.write_line(f"NOT ALLOWED {report.nodeid}: {reason}; not on the list of tests/tools.py")


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
