"""Imports follow the table in CONTRIBUTING.md and form no cycle."""

import ast
import re
from pathlib import Path

import pytest
from lab.services import ROOT

ENTRY_MODULES = ("reviewsd", "hub", "mcp_rpc")
ROW = r"(?m)^  \| `(?:reviewslib/)?(\w+)(?:\.py|/)` \| .* \| (.*) \|$"
TABLE = re.findall(ROW, (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
ALLOWED = {
    part: set(re.findall(r"`(.*?)`", imports.replace("/", ".")))
    for part, imports in TABLE
}
"""By part (a subpackage, a module of `reviewslib`, or an entry module): the parts that it may import."""
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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_run_one_way(path: Path) -> None:
    name = name_of(path)
    part = name.partition(".")[0]
    allowed = ALLOWED.get(part, set()) | {part}
    for module in imported(path) if part != "reviewsd" else ():
        assert {module, module.partition(".")[0]} & allowed, f"{name} imports {module}"


def test_imports_have_no_cycle() -> None:
    waiting = {name_of(path): imported(path) for path in MODULES}
    while done := {
        name for name, needed in waiting.items() if not needed & waiting.keys()
    }:
        waiting = {name: needed for name, needed in waiting.items() if name not in done}
    assert not waiting


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
