"""Compiled templates are kept, and used again only for what they were made of.

Sections: what is kept - what is compiled anew - the program.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jinja2 import DictLoader, Environment
from lab.services import ROOT, environment

from reviewslib.web import program_files
from reviewslib.web.catalogue import Catalogue, english_form
from reviewslib.web.compiled_templates import CompiledTemplates
from reviewslib.web.language import ENGLISH, Language

MAKERS = b"this program"
SOURCE = "Hello, {{ name }}!"
ITALIAN = Language("it", Catalogue({"Hello": ["Salve"]}, english_form))


@pytest.fixture(autouse=True)
def _interpreter_that_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run under an interpreter that was told to write nothing."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


class Site(Environment):
    """A template `page`, and how often it was compiled."""

    def __init__(
        self,
        directory: Path,
        makers: bytes = MAKERS,
        source: str = SOURCE,
        language: Language = ENGLISH,
    ):
        super().__init__(
            loader=DictLoader({"page": source}),
            bytecode_cache=CompiledTemplates(directory, makers),
        )
        self.globals["language"] = language
        self.compilations = 0

    def compile(self, *source: Any, **options: Any) -> Any:
        self.compilations += 1
        return super().compile(*source, **options)

    def page(self) -> str:
        return self.get_template("page").render(name="World")


def kept_files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


# ---- What is kept --------------------------------------------------------------------


def test_a_template_is_compiled_once(tmp_path: Path) -> None:
    Site(tmp_path).page()
    again = Site(tmp_path)

    shown = again.page()

    assert shown == "Hello, World!"
    assert again.compilations == 0


def test_languages_keep_their_own(tmp_path: Path) -> None:
    Site(tmp_path, language=ITALIAN).page()
    Site(tmp_path).page()
    italian = Site(tmp_path, language=ITALIAN)

    italian.page()

    assert italian.compilations == 0


def test_files_lie_where_those_of_modules_would(tmp_path: Path) -> None:
    Site(tmp_path).page()

    (kept,) = kept_files(tmp_path)

    assert kept.parent == tmp_path / "__pycache__"
    assert kept.suffix == ".pyc"


def test_an_interpreter_that_keeps_no_modules_keeps_no_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    Site(tmp_path).page()

    assert kept_files(tmp_path) == []


def test_where_nothing_can_be_written_a_template_is_compiled(tmp_path: Path) -> None:
    # Even root cannot make a folder of a file.
    (tmp_path / "__pycache__").write_text("")

    shown = Site(tmp_path).page()

    assert shown == "Hello, World!"


# ---- What is compiled anew -----------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"source": "Bye, {{ name }}!"}, id="another template"),
        pytest.param({"makers": b"a newer program"}, id="another program"),
        pytest.param({"language": ITALIAN}, id="another language"),
        pytest.param(
            {"language": Language("en", ITALIAN.catalogue)}, id="other translations"
        ),
    ],
)
def test_what_was_made_of_something_else_is_compiled_anew(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    Site(tmp_path).page()
    site = Site(tmp_path, **other)

    site.page()

    assert site.compilations == 1


def cut(content: bytes) -> bytes:
    return content[:-1]


def with_a_wrong_bit(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def without_all(content: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [cut, with_a_wrong_bit, without_all])
def test_a_damaged_file_is_written_anew(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    # given
    Site(tmp_path).page()
    (kept,) = kept_files(tmp_path)
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    # when
    shown = Site(tmp_path).page()
    # then
    assert shown == "Hello, World!"
    assert kept.read_bytes() == whole


# ---- The program ---------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The program and its sample, without compiled files."""
    copy = tmp_path / "clone"
    compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "reviewslib", copy / "reviewslib", ignore=compiled)
    shutil.copytree(ROOT / "data", copy / "data")
    for door in ("reviewsd.py", "hub.py", "mcp_rpc.py"):
        shutil.copy(ROOT / door, copy)
    return copy


def home_page_of(clone: Path) -> str:
    """The home page as a new process makes it."""
    command = [sys.executable, str(clone / "reviewsd.py"), "--sample", "--get", "/"]
    variables = environment()
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    finished = subprocess.run(
        command, capture_output=True, text=True, check=True, env=variables, cwd=clone
    )
    return finished.stdout


def folder_of_kept(clone: Path) -> Path:
    return clone / "reviewslib" / "web" / "templates" / "__pycache__"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        pytest.param(
            "templates/page.html", "<section id", "<section new id", id="page"
        ),
        pytest.param("templates/base.html", "</body>", "new</body>", id="base"),
        pytest.param(
            "language.py",
            "escape(translation)",
            'escape("new" + translation)',
            id="code",
        ),
    ],
)
def test_a_change_of_the_program_shows_at_the_next_start(
    clone: Path, file: str, before: str, after: str
) -> None:
    # given
    unchanged = home_page_of(clone)
    path = clone / "reviewslib" / "web" / file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(before, after), encoding="utf-8")
    # when
    changed = home_page_of(clone)
    # then
    assert changed != unchanged
    shutil.rmtree(folder_of_kept(clone))
    assert changed == home_page_of(clone)


@pytest.mark.slow
def test_a_start_keeps_what_it_compiled(clone: Path) -> None:
    compiling = home_page_of(clone)

    keeping = home_page_of(clone)

    assert kept_files(folder_of_kept(clone))
    assert keeping == compiling


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the program's files that counts as imported."""
    copy = tmp_path / "reviewslib"
    compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(program_files.PACKAGE, copy, ignore=compiled)
    monkeypatch.setattr(program_files, "IMPORTED_AT", 4e9)
    return copy


def kept_icon(package: Path) -> bytes:
    """What is kept of the icon after it was used."""
    program_files.load_program_files(package).templates.get_template("favicon.svg")
    (kept,) = kept_files(package / "web" / "templates" / "__pycache__")
    return kept.read_bytes()


@pytest.mark.parametrize("library", ["jinja2", "markupsafe"])
def test_another_version_of_a_library_compiles_anew(
    package: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    # given
    before = kept_icon(package)
    versions = {"jinja2": "3.1", "markupsafe": "3.0"}
    monkeypatch.setattr(program_files, "version", versions.__getitem__)
    installed = kept_icon(package)
    # when
    versions[library] += ".99"
    newer = kept_icon(package)
    # then
    assert len({before, installed, newer}) == 3


def test_another_interpreter_compiles_anew(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = kept_icon(package)

    monkeypatch.setattr(program_files, "MAGIC_NUMBER", b"newer")

    assert kept_icon(package) != before


def test_the_same_program_keeps_the_same(package: Path) -> None:
    assert kept_icon(package) == kept_icon(package)


def test_a_program_that_changed_after_its_import_keeps_nothing(tmp_path: Path) -> None:
    # The modules that run are older than this copy.
    copy = tmp_path / "reviewslib"
    shutil.copytree(program_files.PACKAGE, copy)

    templates = program_files.load_program_files(copy).templates

    assert templates.bytecode_cache is None
