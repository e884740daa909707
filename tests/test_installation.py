"""The commands of an installed wheel work in any directory, beside foreign modules.

Sections: an installation - what is installed - what works.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab.services import ROOT, SAMPLE

pytestmark = pytest.mark.slow

# What a wheel is built from.
SOURCES = ["pyproject.toml", "README.md", "LICENSE", "setup.py", "data"]
SOURCES += ["reviewsd.py", "hub.py", "mcp_rpc.py", "reviewslib"]
PIP_INSTALL = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1"]
PIP_INSTALL += ["--no-deps", "--no-compile"]
# Names that modules of ours have, or had.
FOREIGN = ("app", "contract", "files", "links", "page", "query", "serving", "settings")

# ---- An installation -----------------------------------------------------------------


def put_foreign_files(directory: Path) -> None:
    """Write modules that end the program that imports them, and foreign templates."""
    for name in FOREIGN:
        module = directory / f"{name}.py"
        module.write_text("raise SystemExit(f'{__file__} was imported')")
    templates = directory / "templates"
    templates.mkdir(exist_ok=True)
    (templates / "page.html").write_text("{{ nonsense")


def copy_of_the_source(directory: Path) -> Path:
    """A build leaves files in its source."""
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, directory / name)
    return directory


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install --target` makes of a wheel of this checkout."""
    target = tmp_path_factory.mktemp("site")
    source = copy_of_the_source(tmp_path_factory.mktemp("source"))
    command = [*PIP_INSTALL, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        reason = (done.stderr.splitlines() or ["pip said nothing"])[-1]
        pytest.skip(f"cannot build a wheel: {reason}")
    return target


@pytest.fixture(scope="module")
def crowded_site(site: Path) -> Path:
    """The same, beside foreign files."""
    put_foreign_files(site)
    return site


def output(site: Path, directory: Path, *arguments: str) -> str:
    """What a program of the installation prints in a directory of foreign files."""
    put_foreign_files(directory)
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(site), "PYTHONSAFEPATH": ""},
        cwd=directory,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- What is installed ---------------------------------------------------------------


def test_the_installation_adds_the_doors_and_one_package(site: Path) -> None:
    modules = {path.name for path in site.iterdir()} - {
        f"{name}.py" for name in FOREIGN
    }
    ours = {name for name in modules if not name.endswith(".dist-info")}

    others = {"bin", "templates"}
    assert ours - others == {"reviewsd.py", "hub.py", "mcp_rpc.py", "reviewslib"}


def test_every_file_of_the_program_is_installed(site: Path) -> None:
    files = [path for path in (ROOT / "reviewslib").rglob("*") if path.is_file()]
    ours = [path.relative_to(ROOT) for path in files if path.suffix != ".pyc"]

    missing = [str(path) for path in ours if not (site / path).is_file()]

    assert missing == []


# ---- What works ----------------------------------------------------------------------

DATA = str(SAMPLE)
WHERE = "import reviewsd, reviewslib; print(reviewsd.__file__, reviewslib.__file__)"
CHANGED = """
from reviewslib.web.program_files import load_program_files
print(load_program_files().changed)
"""


@pytest.mark.parametrize(
    ("command", "arguments", "beginning"),
    [
        pytest.param("reviewsd", ["--check", "--data", DATA], "", id="check"),
        pytest.param(
            "reviewsd", ["--check", "--sample"], "160 reviews of ", id="the sample"
        ),
        pytest.param(
            "reviewsd", ["--get", "/", "--data", DATA], "<!doctype html>", id="a page"
        ),
        pytest.param(
            "reviewsd-import", ["--template"], "id,author,", id="the template"
        ),
        pytest.param("reviewsd-insights", ["--help"], "usage: ", id="insights"),
    ],
)
def test_a_command_works_beside_foreign_modules(
    crowded_site: Path,
    tmp_path: Path,
    command: str,
    arguments: list[str],
    beginning: str,
) -> None:
    program = str(crowded_site / "bin" / command)

    printed = output(crowded_site, tmp_path, program, *arguments)

    assert printed.startswith(beginning)


def test_an_installation_imports_itself(crowded_site: Path, tmp_path: Path) -> None:
    door, package = output(crowded_site, tmp_path, "-c", WHERE).split()

    assert door.startswith(str(crowded_site))
    assert package.startswith(str(crowded_site))


def test_a_clone_serves_from_a_directory_of_foreign_modules(
    crowded_site: Path, tmp_path: Path
) -> None:
    program = str(ROOT / "reviewsd.py")

    printed = output(crowded_site, tmp_path, program, "--check", "--data", DATA)

    assert printed.startswith("160 reviews of ")


def test_only_files_of_our_own_date_the_program(
    crowded_site: Path, tmp_path: Path
) -> None:
    before = output(crowded_site, tmp_path, "-c", CHANGED)

    put_foreign_files(crowded_site)

    assert output(crowded_site, tmp_path, "-c", CHANGED) == before
