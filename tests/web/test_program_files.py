"""The newest file of the program dates what it shapes."""

import os
import shutil
from pathlib import Path

import pytest

from reviewslib.web import program_files

FAR_FUTURE = 4e9


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the program's files."""
    copied = shutil.copytree(program_files.PACKAGE, tmp_path / "reviewslib")
    return Path(copied)


def change_of_program(package: Path, name: str) -> float:
    """Since when a program is as it is, one of whose files has changed."""
    path = package / name
    if not path.exists():
        path.touch()
    os.utime(path, (FAR_FUTURE, FAR_FUTURE))
    return program_files.load_program_files(package).changed


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("openapi.json", id="contract"),
        pytest.param("web/templates/page.css", id="style"),
        pytest.param("web/feeds.py", id="module"),
    ],
)
def test_a_file_of_the_program_dates_the_program(package: Path, name: str) -> None:
    assert change_of_program(package, name) == FAR_FUTURE


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("web/templates", id="folder"),
        pytest.param("web/feeds.pyc", id="compiled module"),
    ],
)
def test_what_a_start_may_write_does_not_date_the_program(
    package: Path, name: str
) -> None:
    assert change_of_program(package, name) != FAR_FUTURE
