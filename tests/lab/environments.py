"""Environments of other programs: a Python or a Node.js that has what a test needs.

They are made once under `$TEST_ENVIRONMENTS`, else in pytest's cache. Without a
package index a test is skipped with the reason; `.ci/run` fails for every such skip.

Sections: the place - Python - Node.js.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.tools import program

# Of one installation. A slow index takes one minute.
INSTALL_SECONDS = 300

# ---- The place ----


def environments(request: pytest.FixtureRequest) -> Path:
    """The directory of all environments."""
    cache = request.config.cache
    assert cache is not None
    return Path(os.environ.get("TEST_ENVIRONMENTS") or cache.mkdir("environments"))


def _is_made(home: Path, requirements: str) -> bool:
    stamp = home / "installed"
    return stamp.is_file() and stamp.read_text() == requirements


def _install(home: Path, command: list[str], requirements: str) -> None:
    """Run a command that installs; skips the test where it fails."""
    done = subprocess.run(
        command, cwd=home, capture_output=True, text=True, timeout=INSTALL_SECONDS
    )
    if done.returncode != 0:
        reason = (done.stderr.splitlines() or ["nothing was said"])[-1]
        pytest.skip(f"cannot install {requirements}: {reason}")
    (home / "installed").write_text(requirements)


# ---- Python ----


def python_with(home: Path, *requirements: str) -> Path:
    """The Python of a virtual environment at `home` that has these packages."""
    wanted = " ".join(requirements)
    python = home / "bin" / "python"
    if not _is_made(home, wanted):
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1"]
        _install(home, [*pip, *requirements], wanted)
    return python


# ---- Node.js ----


def node_with(home: Path, *requirements: str) -> Path:
    """A directory in which Node.js finds these packages."""
    wanted = " ".join(requirements)
    npm = program("npm")
    if not _is_made(home, wanted):
        home.mkdir(parents=True, exist_ok=True)
        package = {"private": True, "type": "module"}
        (home / "package.json").write_text(json.dumps(package))
        _install(home, [npm, "install", "--silent", *requirements], wanted)
    return home
