"""Imports follow the table in CONTRIBUTING.md and form no circle; a name means one thing.

Sections: the table - what modules import - the edge - claims - the lab of the tests.
"""

import ast
import re
from pathlib import Path

import pytest
from lab.services import ROOT

DOORS = ("reviewsd", "hub", "mcp_rpc")

# ---- The table -----------------------------------------------------------------------

# A line: the part, and after two blanks or more the parts that it imports.
LINE = re.compile(r"(\w+) {2,}(-|\w+(?:, \w+)*)(?: {2,}|$)")


def allowed_imports() -> dict[str, set[str]]:
    """The parts that a part may import, by part: a subpackage, or a module."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.findall(r"```\n(.*?)```", text, re.DOTALL)[0]
    allowed = {}
    for text_line in table.splitlines()[1:]:
        line = LINE.match(text_line)
        if line:
            allowed[line[1]] = set(re.findall(r"\w+", line[2]))
    return allowed


ALLOWED = allowed_imports()

# ---- What modules import -------------------------------------------------------------

MODULES = [
    *(ROOT / "reviewslib").rglob("*.py"),
    *(ROOT / f"{name}.py" for name in DOORS),
]


def name_of(path: Path) -> str:
    """The name of a module, without `reviewslib`: `subpackage.module`, or `hub`."""
    inside = path.relative_to(ROOT).with_suffix("").parts
    if inside[0] == "reviewslib":
        return ".".join(inside[1:])
    return inside[0]


NAMES = {name_of(path) for path in MODULES}


def part_of(name: str) -> str:
    return name.partition(".")[0]


def modules_named_in(path: Path) -> set[str]:
    """Everything that the imports of a file may name: modules, and names in them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported(path: Path) -> set[str]:
    """The modules of this project that a module imports, with the names of `name_of`."""
    return {name.removeprefix("reviewslib.") for name in modules_named_in(path)} & NAMES


# ---- The edge ------------------------------------------------------------------------

# What only modules at the edge need. Others import `os` for values alone.
OF_THE_EDGE = {
    *("asyncio", "fcntl", "http.server", "resource", "signal", "socket", "sqlite3"),
    *("ssl", "subprocess", "threading", "time", "urllib.request"),
}


def edge_modules() -> set[str]:
    """The names of modules that CONTRIBUTING.md gives files, sockets, threads or clock."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (paragraph,) = re.findall(r"^Files of the operator.*?\n\n", text, re.DOTALL | re.M)
    named = set()
    for word in re.findall("`([^`]+)`", paragraph):
        wing, _, rest = word.removesuffix(".py").rpartition("/")
        for module in rest.strip("{}").split(","):
            named.add(f"{wing}.{module}".strip("."))
    return named


# ---- Claims --------------------------------------------------------------------------


def test_every_part_has_a_line_in_the_table() -> None:
    parts = {part_of(name) for name in NAMES}

    assert ALLOWED.keys() == parts - {"__init__"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_what_its_line_of_the_table_allows(path: Path) -> None:
    part = part_of(name_of(path))
    allowed = ALLOWED.get(part, set())

    others = {part_of(module) for module in imported(path)} - {part}

    if allowed != {"everything"}:
        assert others <= allowed


def test_files_threads_and_clock_are_where_contributing_says() -> None:
    named = edge_modules()
    at_the_edge = {
        name_of(path) for path in MODULES if modules_named_in(path) & OF_THE_EDGE
    }

    others = {name for name in at_the_edge if part_of(name) != "process"}
    assert others - named == set()
    assert "process.settings" not in at_the_edge


def test_contributing_names_no_module_that_is_gone() -> None:
    words_of_the_sentence = {"process", "settings", "healthz"}

    assert edge_modules() - words_of_the_sentence - NAMES == set()


@pytest.mark.parametrize("part", ["links", "files", "faults", "messages", "release"])
def test_what_wings_share_stands_on_the_ground(part: str) -> None:
    assert ALLOWED[part] == set()


def test_the_server_knows_no_page() -> None:
    assert ALLOWED["process"] == {"messages"}


@pytest.mark.parametrize("part", sorted(ALLOWED.keys() - set(DOORS)))
def test_no_part_of_the_package_imports_a_door(part: str) -> None:
    assert ALLOWED[part] & set(DOORS) == set()


@pytest.mark.parametrize("part", ["importer", "annotator"])
def test_the_daemon_carries_no_command_that_writes_data(part: str) -> None:
    # given
    paths = {name_of(path): path for path in MODULES}
    reached = set[str]()
    waiting = ["reviewsd"]
    # when
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += imported(paths[name])
    # then
    assert part not in {part_of(name) for name in reached}


def test_imports_form_no_circle() -> None:
    waiting = {name_of(path): imported(path) for path in MODULES}
    # What imports nothing that waits is done, until nothing is left but circles.
    is_going_on = True
    while is_going_on:
        done = {name for name, needed in waiting.items() if not needed & waiting.keys()}
        for name in done:
            del waiting[name]
        is_going_on = bool(done)

    assert waiting == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def names_defined_in(path: Path) -> set[str]:
    """The classes and constants of a module, without those for itself alone."""
    names = set()
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            names |= {ast.unparse(target) for target in statement.targets}
        elif isinstance(statement, ast.AnnAssign):
            names.add(ast.unparse(statement.target))
    return {name for name in names if name[0].isupper()}


def test_a_class_or_a_constant_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for name in names_defined_in(path):
            places.setdefault(name, []).append(name_of(path))

    shared = {name: found for name, found in places.items() if len(found) > 1}

    assert shared == {}


# Of a section; those of a class stand farther in, and count where there are no others.
HEADING = r"(?m)^{indent}# ---- (.*?)(?: -+)?$"
SECTIONED = [
    pytest.param(path, id=name_of(path))
    for path in MODULES
    if "\nSections: " in path.read_text(encoding="utf-8")
]


def headings_of(text: str) -> list[str]:
    found = re.findall(HEADING.format(indent=""), text)
    if not found:
        found = re.findall(HEADING.format(indent="    "), text)
    return [heading.lower() for heading in found]


@pytest.mark.parametrize("path", SECTIONED)
def test_the_sections_that_a_module_names_are_those_that_it_has(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    _, _, listed = " ".join(docstring.lower().split()).rpartition("sections: ")

    headings = headings_of(text)

    # A heading may explain the section behind a colon.
    names = [heading.partition(": ")[0] for heading in headings]
    assert listed == " - ".join(names) + "."


# ---- The lab of the tests ------------------------------------------------------------

LAB = ROOT / "tests" / "lab"
ROOMS = {path.stem for path in LAB.glob("*.py")} - {"__init__"}


def rooms_in_the_readme() -> list[str]:
    """The modules that the README of the lab names, in its order."""
    text = (LAB / "README.md").read_text(encoding="utf-8")
    return [name for name in re.findall(r"`(\w+)`", text) if name in ROOMS]


def test_the_readme_of_the_lab_names_each_room_once() -> None:
    assert sorted(rooms_in_the_readme()) == sorted(ROOMS)


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_of_the_lab_imports_what_the_readme_has_above_it(room: str) -> None:
    order = rooms_in_the_readme()
    named = modules_named_in(LAB / f"{room}.py")

    needed = {name.removeprefix("lab.") for name in named} & ROOMS

    assert needed <= set(order[: order.index(room)])
