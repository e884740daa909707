"""The three commands of an installed wheel work in any directory, beside foreign modules of any name."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab.services import ROOT, SAMPLE

pytestmark = pytest.mark.slow

FOREIGN = ("app", "contract", "files", "links", "page", "query", "serving", "settings")
SOURCES = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "reviewsd.py",
    "hub.py",
    "mcp_rpc.py",
    "reviewslib",
    "data",
    "setup.py",
)
WHERE = "import reviewsd, reviewslib; print(reviewsd.__file__, reviewslib.__file__)"
CHANGED = "from reviewslib.web.program_files import load_program_files; print(load_program_files().changed)"
COMMANDS = {
    ("bin/reviewsd", "--check", "--data", str(SAMPLE)): "",
    ("bin/reviewsd", "--check", "--sample"): "160 reviews of ",
    ("bin/reviewsd", "--get", "/", "--data", str(SAMPLE)): "<!doctype html>",
    ("bin/reviewsd-import", "--template"): "id,author,",
    ("bin/reviewsd-insights", "--help"): "usage: ",
}
"""What each command of the installation prints first."""


def put_foreign_files(directory: Path) -> None:
    """Write modules that end the program that imports them, and foreign templates."""
    for name in FOREIGN:
        (directory / f"{name}.py").write_text(
            "raise SystemExit(f'{__file__} was imported')"
        )
    (directory / "templates").mkdir(exist_ok=True)
    (directory / "templates" / "page.html").write_text("{{ nonsense")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install --target` makes of a wheel of this checkout, beside foreign files."""
    base = tmp_path_factory.mktemp("installation")
    source = base / "source"
    target = base / "site"
    source.mkdir()
    for name in SOURCES:  # a build leaves files in its source
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--retries",
        "1",
        "--no-deps",
        "--no-compile",
    ]
    done = subprocess.run(
        [*pip, "--target", target, source], capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        pytest.skip(
            f"cannot build a wheel: {(done.stderr.splitlines() or ['pip said nothing'])[-1]}"
        )
    installed = {
        path.name for path in target.iterdir() if path.suffix != ".dist-info"
    } - {"bin"}
    assert installed == {"reviewsd.py", "hub.py", "mcp_rpc.py", "reviewslib"}
    put_foreign_files(target)
    return target


def output(site: Path, directory: Path, *arguments: str) -> str:
    """What Python prints that runs a program of the installation in a directory of foreign files."""
    put_foreign_files(directory)
    environment = os.environ | {"PYTHONPATH": str(site), "PYTHONSAFEPATH": ""}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, cwd=directory, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_the_program_is_installed(site: Path) -> None:
    program = ROOT / "reviewslib"
    files = [path for path in program.rglob("*") if path.is_file()]
    ours = [path for path in files if path.suffix != ".pyc"]

    missing = [
        str(path) for path in ours if not (site / path.relative_to(ROOT)).is_file()
    ]

    assert missing == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_command_works_beside_foreign_modules(
    site: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    program, *arguments = command
    assert output(site, tmp_path, str(site / program), *arguments).startswith(
        COMMANDS[command]
    )


def test_an_installation_imports_itself(site: Path, tmp_path: Path) -> None:
    assert all(
        path.startswith(str(site))
        for path in output(site, tmp_path, "-c", WHERE).split()
    )


def test_a_clone_serves_from_a_directory_of_foreign_modules(
    site: Path, tmp_path: Path
) -> None:
    assert output(
        site, tmp_path, str(ROOT / "reviewsd.py"), "--check", "--data", str(SAMPLE)
    )


def test_only_files_of_our_own_date_the_program(site: Path, tmp_path: Path) -> None:
    before = output(site, tmp_path, "-c", CHANGED)
    put_foreign_files(site)
    assert output(site, tmp_path, "-c", CHANGED) == before
