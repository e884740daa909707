"""The files of the program that shape its responses: contract, templates, catalogues.

This module reads files of the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib import resources
from importlib.metadata import version
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment

from reviewslib import IMPORTED_AT
from reviewslib.dataset.contract import Contract, shipped_contract
from reviewslib.files import last_change
from reviewslib.messages import Headers
from reviewslib.web.compiled_templates import CompiledTemplates
from reviewslib.web.language import Languages, read_languages
from reviewslib.web.policies import policies_by_path
from reviewslib.web.templating import load_templates

# Where they are; its modules shape responses as well.
PACKAGE = Path(str(resources.files("reviewslib")))


class ProgramFiles(NamedTuple):
    """The files of the program that shape its responses."""

    contract: Contract
    # In English.
    templates: Environment
    languages: Languages
    # Security headers by path; those of HOME_PATH apply to all pages.
    policies: Mapping[str, Headers]
    # The last change of any file, modules included, in seconds since the epoch.
    changed: float


def load_program_files(package: Path = PACKAGE) -> ProgramFiles:
    """Load the contract, and the templates and catalogues of `package`.

    The newest file of `package` dates it.
    """
    # The interpreter writes its compiled files, and we ours, whenever they like.
    files = sorted(
        file for file in package.rglob("*") if file.is_file() and file.suffix != ".pyc"
    )
    changed = max(map(last_change, files))
    directory = package / "web" / "templates"
    templates = load_templates(directory, _compiled(directory, files, changed))
    return ProgramFiles(
        contract=shipped_contract(),
        templates=templates,
        languages=read_languages(package / "web" / "languages"),
        policies=policies_by_path(templates),
        changed=changed,
    )


# A file system may date a change by the last tick of the kernel's clock.
TICK_SECONDS = 0.01


def _compiled(
    directory: Path, files: Iterable[Path], changed: float
) -> CompiledTemplates | None:
    """The compiled templates that this program may use and make.

    None if it has changed since it was imported: what runs may not be what is in its
    files.
    """
    if changed > IMPORTED_AT - TICK_SECONDS:
        return None
    return CompiledTemplates(directory, _makers(files))


def _makers(files: Iterable[Path]) -> bytes:
    """A digest of what compiles templates: interpreter, libraries, and our `files`."""
    makers = sha256(MAGIC_NUMBER)
    for library in ("jinja2", "markupsafe"):
        makers.update(version(library).encode())
    for file in files:
        makers.update(sha256(file.read_bytes()).digest())
    return makers.digest()
