"""Clients that generators make of the served contract compile, and read what we serve.

Sections: what every client reads - Python - TypeScript.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lab.environments import environments, node_with, python_with
from lab.services import ROOT, Service, daemon, fetch
from lab.tools import program

pytestmark = pytest.mark.slow

CALLS = ROOT / "tests" / "lab" / "generated_clients"
PYTHON_REQUIREMENTS = ("openapi-python-client~=0.29.0", "ruff~=0.17.0")
# TypeScript 7 is a program of its own, which openapi-typescript cannot call.
NODE_REQUIREMENTS = (
    "openapi-typescript@7",
    "openapi-fetch@0.17",
    "typescript@5",
    "@types/node@20",
)

# ---- What every client reads ----


def run(*command: str | Path, directory: Path) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def save_contract(service: Service, directory: Path) -> None:
    (directory / "openapi.json").write_bytes(
        fetch(service, "/.well-known/openapi.json").body
    )


def served(service: Service) -> dict[str, Any]:
    """What `calls` must print of the sample."""
    reviews = json.loads(fetch(service, "/reviews.json").body)["reviews"]
    insights = json.loads(fetch(service, "/insights.json").body)
    return {
        "found": 2,
        "reviews": len(reviews),
        "since": sum(review["date"] >= "2026-11-01" for review in reviews),
        "aspects": len(insights["aspects"]),
        "items": 50,
        "verified": reviews[0]["verified"],
        "page": 200,
        "refused": 400,
        "reason": "One parameter is wrong. See issues.",
        "missing": 404,
    }


# ---- Python ----


def test_a_python_client_of_the_contract_compiles_and_reads_reviews(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    home = environments(request) / "openapi-python-client"
    python = python_with(home, *PYTHON_REQUIREMENTS)
    shutil.copy(CALLS / "calls.py", tmp_path)

    with daemon() as service:
        save_contract(service, tmp_path)
        generate = ("-m", "openapi_python_client", "generate", "--meta", "none")
        options = ("--path", "openapi.json")
        said = run(python, *generate, *options, directory=tmp_path)
        mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable")
        run(*mypy, python, "calls.py", directory=tmp_path)
        printed = run(python, "calls.py", service.base_url, directory=tmp_path)
        expected = served(service)

    assert "Unable to" not in said
    assert json.loads(printed) == expected


# ---- TypeScript ----


def test_a_typescript_client_of_the_contract_compiles_and_reads_reviews(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    home = node_with(environments(request) / "typescript", *NODE_REQUIREMENTS)
    node = program("node")
    modules = home / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    shutil.copy(home / "package.json", tmp_path)
    shutil.copy(CALLS / "calls.ts", tmp_path)

    with daemon() as service:
        save_contract(service, tmp_path)
        generator = modules / "openapi-typescript" / "bin" / "cli.js"
        run(node, generator, "openapi.json", "-o", "api.d.ts", directory=tmp_path)
        compiler = modules / "typescript" / "bin" / "tsc"
        options = ("--strict", "--target", "es2022", "--module", "nodenext")
        run(node, compiler, *options, "calls.ts", directory=tmp_path)
        printed = run(node, "calls.js", service.base_url, directory=tmp_path)
        expected = served(service)

    assert json.loads(printed) == expected
