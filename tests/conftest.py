"""Settings and fixtures of all tests; property tests have no deadline, since machines differ in speed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from export_lab import Shop
from hub_lab import Bench, Lab, open_lab
from hypothesis import HealthCheck, settings

settings.register_profile("reviewsd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("reviewsd")


def pytest_addoption(parser: pytest.Parser) -> None:
    what = "write the files of web/test_snapshots.py"
    parser.addoption("--write-snapshots", action="store_true", help=what)


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
