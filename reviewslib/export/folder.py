"""The folder of an export: what an earlier one wrote is known, all else untouched.

A list in the folder names the files of the export. It is written before them with the
names of the old and the new ones, and at the end with the new ones alone, so that after
a kill the next run knows what it may replace and remove. This module must not know what
the files say.

Sections: the list - what may be written - writing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from reviewslib.export.crawl import CannotExport, SiteFiles
from reviewslib.files import draft_of, not_awaited, read_unchanging, write

# ---- The list ----

LIST_NAME = ".reviewsd-export"
# What a new folder may hold: a repository, and what hosts ask an owner to add.
ALLOWED_AT_FIRST = {".git", "CNAME", "README.md", "LICENSE"}


def listed_names(directory: Path) -> set[str] | None:
    """The names of an earlier export's files; None in a folder that had none yet."""
    path = directory / LIST_NAME
    if not path.exists():
        return None
    content, _ = read_unchanging(path)
    return set(content.decode("utf-8", "replace").splitlines())


def write_list(directory: Path, names: Iterable[str]) -> None:
    """Replace the list."""
    lines = [f"{name}\n" for name in sorted(names)]
    write(directory / LIST_NAME, "".join(lines).encode(), not_awaited)


# ---- What may be written ----


def check_new(directory: Path) -> None:
    """Raise CannotExport if a folder has no list but something of another program."""
    if not directory.exists():
        return
    for path in sorted(directory.iterdir()):
        if path.name not in ALLOWED_AT_FIRST:
            raise CannotExport(
                f"{directory} holds {path.name}, which no export wrote: name an empty "
                "folder; it may hold .git, CNAME, README.md and LICENSE"
            )


def place_of(directory: Path, name: str) -> Path:
    """The path of a file. Raises CannotExport if it leads out of the folder.

    A symlink in the folder may do that, or a list that somebody has changed.
    """
    path = directory / name
    root = os.path.realpath(directory)
    if os.path.realpath(path) != os.path.normpath(os.path.join(root, name)):
        raise CannotExport(f"{path} is a symlink, or not below {directory}")
    if not os.path.realpath(path).startswith(root + os.sep):
        raise CannotExport(f"{path} is not below {directory}")
    return path


def check_foreign(directory: Path, names: Iterable[str]) -> None:
    """Raise CannotExport if another program's file is where one is to be written."""
    for name in sorted(names):
        if place_of(directory, name).exists():
            raise CannotExport(
                f"{directory / name} is no file of an earlier export, and a page needs "
                "its place: rename or remove it"
            )


# ---- Writing ----


class ExportReport(NamedTuple):
    """What an export did."""

    files: int
    size_bytes: int
    written: int
    removed: int


def write_site(directory: Path, site: SiteFiles) -> ExportReport:
    """Make the folder hold these files. Raises CannotExport and OSError.

    After a power cut the next run compares contents, and writes again.
    """
    names = site.names()
    before = _names_before(directory)
    gone = before - names
    _check_places(directory, new=names - before, gone=gone)
    changed = [name for name in sorted(names) if not _is_same(directory, name, site)]
    directory.mkdir(parents=True, exist_ok=True)
    write_list(directory, names | gone)
    for name in changed:
        write(place_of(directory, name), site.content(name), not_awaited)
    for name in sorted(gone):
        _remove(directory, name)
    _remove_drafts(directory, names)
    write_list(directory, names)
    return ExportReport(len(names), site.size_bytes, len(changed), len(gone))


def _names_before(directory: Path) -> set[str]:
    """The files of an earlier export. Raises CannotExport."""
    names = listed_names(directory)
    if names is None:
        check_new(directory)
        return set()
    return names


def _check_places(directory: Path, new: set[str], gone: set[str]) -> None:
    """Raise CannotExport before anything is written or removed outside the export."""
    for name in gone:
        place_of(directory, name)
    check_foreign(directory, new)


def _is_same(directory: Path, name: str, site: SiteFiles) -> bool:
    path = place_of(directory, name)
    return path.is_file() and path.read_bytes() == site.content(name)


def _remove(directory: Path, name: str) -> None:
    """Remove a file, and the folders that are then empty."""
    path = place_of(directory, name)
    draft_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    for folder in path.relative_to(directory).parents:
        # It holds other files, or is the folder of the export.
        with suppress(OSError):
            if folder.name:
                (directory / folder).rmdir()


def _remove_drafts(directory: Path, names: Iterable[str]) -> None:
    """Remove what a killed run left beside these files."""
    for name in names:
        draft_of(directory / name).unlink(missing_ok=True)
