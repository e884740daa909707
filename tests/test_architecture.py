"""Imports follow the table in CONTRIBUTING.md and form no circle."""

import ast
import re
from pathlib import Path

import pytest
from lab.services import ROOT

ENTRY_MODULES = ("reviewsd", "hub", "mcp_rpc")
# A line of the table: the part, and after two blanks or more the parts that it imports.
LINE = re.compile(r"(\w+) {2,}(-|\w+(?:, \w+)*)(?: {2,}|$)")


def allowed_imports() -> dict[str, set[str]]:
    """The parts that a part may import, by part: a subpackage, or a module."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.findall(r"```\n(.*?)```", text, re.DOTALL)[0].splitlines()
    lines = [line for line in map(LINE.match, table[1:]) if line]
    return {line[1]: set(re.findall(r"\w+", line[2])) for line in lines}


ALLOWED = allowed_imports()
MODULES = [
    *(ROOT / "reviewslib").rglob("*.py"),
    *(ROOT / f"{name}.py" for name in ENTRY_MODULES),
]


def name_of(path: Path) -> str:
    """The name of a module, without `reviewslib`: `subpackage.module`, or `hub`."""
    inside = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(inside[1:] if inside[0] == "reviewslib" else inside)


def imported(path: Path) -> set[str]:
    """The modules of this project that a module imports, with the names of `name_of`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {
                node.module,
                *(f"{node.module}.{alias.name}" for alias in node.names),
            }
    return {name.removeprefix("reviewslib.") for name in names} & {
        name_of(module) for module in MODULES
    }


def part_of(name: str) -> str:
    return name.partition(".")[0]


def test_every_part_has_a_line_in_the_table() -> None:
    parts = {part_of(name_of(path)) for path in MODULES}

    assert ALLOWED.keys() == parts - {"__init__"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_what_its_line_of_the_table_allows(path: Path) -> None:
    part = part_of(name_of(path))
    allowed = ALLOWED.get(part, set())

    others = {part_of(module) for module in imported(path)} - {part}

    assert others <= allowed or allowed == {"everything"}


@pytest.mark.parametrize("part", ["links", "files", "messages", "release"])
def test_what_wings_share_stands_on_the_ground(part: str) -> None:
    assert ALLOWED[part] == set()


def test_the_server_knows_no_page() -> None:
    assert ALLOWED["process"] == {"messages"}


def test_no_part_of_the_package_imports_an_entry_module() -> None:
    for part in ALLOWED.keys() - set(ENTRY_MODULES):
        assert not ALLOWED[part] & set(ENTRY_MODULES)


def test_imports_form_no_circle() -> None:
    waiting = {name_of(path): imported(path) for path in MODULES}
    is_going_on = True
    while is_going_on:
        done = {name for name, needed in waiting.items() if not needed & waiting.keys()}
        waiting = {name: needed for name, needed in waiting.items() if name not in done}
        is_going_on = bool(done)

    assert waiting == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
