"""The files of the program that shape its responses: contract, templates, catalogues.

This module reads files of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment

from reviewslib.dataset.contract import Contract, shipped_contract
from reviewslib.files import last_change
from reviewslib.messages import (
    Headers,
)
from reviewslib.web.language import Languages, read_languages
from reviewslib.web.policies import policies_by_path
from reviewslib.web.templating import load_templates

# Contains all of them.
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
    files = [file for file in package.rglob("*") if file.is_file()]
    templates = load_templates(package / "web" / "templates")
    # The interpreter writes its compiled files whenever it likes.
    changes = [last_change(file) for file in files if file.suffix != ".pyc"]
    return ProgramFiles(
        contract=shipped_contract(),
        templates=templates,
        languages=read_languages(package / "web" / "languages"),
        policies=policies_by_path(templates),
        changed=max(changes),
    )
