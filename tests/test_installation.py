"""The three commands of an installed wheel work in any directory, beside foreign modules of any name."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from services import ROOT, SAMPLE

pytestmark = pytest.mark.slow

FOREIGN = ("app.py", "contract.py", "files.py", "links.py")
FOREIGN += ("page.py", "query.py", "serving.py", "settings.py")
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "reviewsd.py", "hub.py", "mcp_rpc.py", "reviewslib")


def put_foreign_files(directory: Path) -> None:
    """Write modules that end the program that imports them, and foreign templates."""
    for name in FOREIGN:
        (directory / name).write_text("raise SystemExit(f'{__file__} was imported')")
    (directory / "templates").mkdir(exist_ok=True)
    (directory / "templates" / "page.html").write_text("{{ nonsense")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install --target` makes of a wheel of this checkout, beside foreign files."""
    base = tmp_path_factory.mktemp("installation")
    source, target = base / "source", base / "site"
    source.mkdir()
    for name in SOURCES:  # a build leaves files in its source
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1", "--no-deps"]
    done = subprocess.run([*pip, "--target", target, source], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        pytest.skip(f"cannot build a wheel: {(done.stderr.splitlines() or ['pip said nothing'])[-1]}")
    put_foreign_files(target)
    return target


Run = Callable[..., str]


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """Runs a command of the installation in a directory of foreign files; its output."""
    put_foreign_files(tmp_path)

    def ran(*command: str) -> str:
        environment = os.environ | {"PYTHONPATH": str(site), "PYTHONSAFEPATH": ""}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return ran


def test_a_wheel_holds_the_three_doors_and_one_package(site: Path) -> None:
    installed = {path.name for path in site.iterdir()} - {*FOREIGN, "templates", "bin", "__pycache__"}
    ours = {name for name in installed if not name.endswith(".dist-info")}
    assert ours == {"reviewsd.py", "hub.py", "mcp_rpc.py", "reviewslib"}


def test_all_commands_work_beside_foreign_modules(run: Run, site: Path) -> None:
    assert run(sys.executable, str(site / "bin" / "reviewsd"), "--check", "--data", str(SAMPLE))
    page = run(sys.executable, str(site / "bin" / "reviewsd"), "--get", "/", "--data", str(SAMPLE))
    assert page.startswith("<!doctype html>")
    assert run(sys.executable, str(site / "bin" / "reviewsd-import"), "--template").startswith("id,author,")
    assert "--key-variable" in run(sys.executable, str(site / "bin" / "reviewsd-insights"), "--help")
    script = "import reviewsd, reviewslib; print(reviewsd.__file__, reviewslib.__file__)"
    where = run(sys.executable, "-c", script)
    assert all(path.startswith(str(site)) for path in where.split())


def test_a_clone_serves_from_a_directory_of_foreign_modules(run: Run) -> None:
    assert run(sys.executable, str(ROOT / "reviewsd.py"), "--check", "--data", str(SAMPLE))


def test_only_files_of_our_own_date_the_program(run: Run, site: Path) -> None:
    script = "from reviewslib.web.snapshot import load_program_files; print(load_program_files().changed)"
    before = run(sys.executable, "-c", script)
    put_foreign_files(site)
    assert run(sys.executable, "-c", script) == before
