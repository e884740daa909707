"""Units and proxy files have the reviewed values, agree with the program, and import what arrives."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from lab.proxy_lab import RATE_LIMITS
from lab.services import ROOT

import reviewsd
from reviewslib.process import serving
from reviewslib.process.settings import Settings, variable_name

UNIT = "reviewsd.service"
IMPORT = "deploy/reviewsd-import.service"
DROP_INS = [
    "deploy/settings.conf",
    "deploy/read-instance.conf",
    "deploy/unix-socket.conf",
]
SHIPPED = [ROOT / UNIT, *sorted((ROOT / "deploy").iterdir())]
WRONG_USAGE = 2  # argparse's exit status


def lines_of(name: str) -> list[str]:
    """The assignments in a file, in order, commented examples included."""
    return re.findall(
        r"(?m)^#?[A-Z][A-Za-z]+=.*$", (ROOT / name).read_text(encoding="utf-8")
    )


def value_of(name: str, directive: str) -> str:
    (value,) = [
        line.partition("=")[2]
        for line in lines_of(name)
        if line.startswith(f"{directive}=")
    ]
    return value


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_a_shipped_file_has_the_values_that_were_reviewed(
    assert_reviewed: Callable[[Path, str], None], file: Path
) -> None:
    """Only tests of minutes, of gigabytes or on other systems could show the effect of most values."""
    lines = file.read_text(encoding="utf-8").splitlines()
    comment = r"\s*(#(?![A-Z][A-Za-z]+=)|$)"  # examples of settings are compared, too
    values = "".join(f"{line}\n" for line in lines if not re.match(comment, line))
    assert_reviewed(Path(__file__).parent / "shipped" / f"{file.name}.txt", values)


def test_the_documented_rates_are_those_of_nginx() -> None:
    nginx = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    for name, (burst, rate, delayed) in zip(
        ("documents", "pages", "mcp", "hub"), RATE_LIMITS, strict=True
    ):
        for zone, times in (
            (f"zone=reviewsd_{name}", 1),
            (f"zone=reviewsd_{name}_site", 2),
        ):
            assert f"{zone}:10m rate={times * rate}r/s;" in nginx
            assert (
                f"limit_req {zone} burst={times * burst} delay={times * (burst - delayed)};"
                in nginx
            )


def test_the_unit_agrees_with_the_program() -> None:
    not_restarted = {WRONG_USAGE, reviewsd.EXIT_BAD_DATA}
    assert (
        set(map(int, value_of(UNIT, "RestartPreventExitStatus").split()))
        == not_restarted
    )
    assert (
        int(value_of(UNIT, "TimeoutStopSec"))
        > serving.BEFORE_STOP_SECONDS + serving.STOP_SECONDS
    )
    assert value_of(UNIT, "SocketBindAllow") == f"tcp:{Settings().port}"


def test_every_variable_is_a_setting() -> None:
    lines = [line for name in (UNIT, *DROP_INS) for line in lines_of(name)]
    variables = {
        line.split("=")[1]
        for line in lines
        if line.lstrip("#").startswith("Environment=")
    }
    assert variables <= {variable_name(declared.name) for declared in fields(Settings)}


@pytest.mark.parametrize("file", [*(ROOT / "docs").glob("*.md"), *SHIPPED])
def test_files_that_a_document_or_a_unit_names_exist(file: Path) -> None:
    named = re.findall(r"\b(?:deploy|docs)/[\w.-]*\w", file.read_text(encoding="utf-8"))
    assert all((ROOT / path).is_file() for path in named), named


@pytest.mark.parametrize(
    ("script", "status", "runs"),
    [("touch {drop}/b", 0, 2), ("exit 78", 78, 1)],
    ids=[
        "an export that arrives during an import is imported next",
        "a failed import ends it",
    ],
)
def test_the_import_unit_imports_until_nothing_new_arrives(
    tmp_path: Path, script: str, status: int, runs: int
) -> None:
    drop = tmp_path / "drop"
    importer = tmp_path / "importer"
    drop.mkdir()
    (drop / "a").touch()
    importer.write_text(f'#!/bin/sh\necho run "$@"\n{script.format(drop=drop)}\n')
    importer.chmod(0o755)
    quoted = (
        value_of(IMPORT, "ExecStart")
        .replace("$$", "$")
        .removeprefix("/bin/sh -c ")
        .strip("'")
    )
    shell = quoted.replace("/opt/reviewsd/bin/reviewsd-import", str(importer))
    shell = shell.replace("/srv/reviews-drop", str(drop))
    done = subprocess.run(
        ["/bin/sh", "-c", shell],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == status
    assert done.stdout.splitlines() == runs * [f"run --drop {drop} --data /srv/reviews"]
