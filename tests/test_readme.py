"""The README says what the program does: its commands give the answers printed there, its tables agree.

The set-up commands are run by `.ci/run`, in a new environment; here are the others.
"""

import re
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from services import ROOT, daemon

import reviewsd
from reviewslib.dataset.contract import resolve
from reviewslib.process.settings import Settings, flag_name, setting_text, variable_name
from reviewslib.web import snapshot

README = (ROOT / "README.md").read_text(encoding="utf-8")
PLACE = "http://127.0.0.1:8080"  # where the README expects the service
CONTRACT = snapshot.load_program().contract.document


def console_examples() -> list[tuple[str, str]]:
    """Each command of a console block with what the README says it prints."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    examples = [part.partition("\n") for block in blocks for part in re.split(r"(?m)^\$ ", block) if part]
    return [(command, printed) for command, _, printed in examples]


def test_every_console_command_prints_what_the_readme_says() -> None:
    examples = console_examples()
    assert len(examples) >= 5
    with daemon(base_url=PLACE) as service:
        for command, printed in examples:
            here = command.replace(PLACE, f"http://127.0.0.1:{service.port}")
            done = subprocess.run(
                ["bash", "-c", here], capture_output=True, text=True, timeout=60, check=False
            )
            assert done.stdout.rstrip("\n") == printed.rstrip("\n"), command


def table_rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its two head lines."""
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def parameter_row(declared: dict[str, Any]) -> list[str]:
    schema = declared["schema"]
    wanted = schema.get("format") or schema["type"]
    bounds = f"{schema['minimum']} to {schema['maximum']}" if "minimum" in schema else ""
    default = f"default {schema['default']}" if "default" in schema else ""
    kind = ", ".join(part for part in (wanted, bounds, default) if part)
    return [f"`{declared['name']}`", kind, declared["description"]]


def test_the_table_of_parameters_is_the_contract() -> None:
    declared = CONTRACT["paths"]["/api/reviews/search"]["get"]["parameters"]
    parameters = [resolve(CONTRACT, each) for each in declared]
    rows = [parameter_row(each) for each in parameters if each["in"] == "query"]
    assert table_rows("Search parameters") == rows


def setting_row(declared: Any) -> list[str]:
    default = f"`{setting_text(declared.default)}`" if declared.default else ""
    flag, variable = flag_name(declared.name), variable_name(declared.name)
    return [f"`{flag}`", f"`{variable}`", default, declared.metadata["description"]]


def test_the_table_of_settings_is_the_program() -> None:
    assert table_rows("Settings") == [setting_row(declared) for declared in fields(Settings)]


def test_the_smallest_file_that_loads_does(tmp_path: Path) -> None:
    smallest = re.findall(r"```json\n(.*?)```", README, re.DOTALL)[0]
    (tmp_path / "reviews.json").write_text(smallest)
    app = reviewsd.application_of(Settings(data=tmp_path))
    assert len(app.snapshot.dataset.reviews) == 1


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_into_the_repository_lead_somewhere(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()
