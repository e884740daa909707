"""Reading: the files, folders and archives of a command become exports.

This module opens files, and tells an export from another file by its content. It knows
no rule of merging.

Sections: the exports of a command - files that are still being written - one export.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from reviewslib import files
from reviewslib.dataset.contract import Contract
from reviewslib.dataset.moments import text_of_seconds
from reviewslib.faults import BadData
from reviewslib.importer.csv_reviews import read_csv
from reviewslib.importer.exports import Export, complete_pages
from reviewslib.importer.options import Options
from reviewslib.importer.questions import (
    NeedsDecision,
    NoExport,
    no_export,
    refused,
)
from reviewslib.importer.takeout import WANTED, kind_of_first_bytes, read_google

# ---- The exports of a command ----


@dataclass
class Found:
    """What the files of a command are."""

    exports: list[Export] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # no exports, or not explained
    refused: list[str] = field(default_factory=list)  # damaged, too large or hostile

    def lines(self) -> list[str]:
        """What is not imported, for the report."""
        return [
            *(f"skipped: {line}" for line in self.skipped),
            *(f"refused: {line}" for line in self.refused),
        ]


@dataclass(frozen=True)
class Settling:
    """How long a file of the drop folder has to be at rest, and the clock for it."""

    # Copies write every second; a pause of a slow network is longer, but rare.
    quiet_seconds: float = 5
    # The path unit starts the next run when the file has arrived.
    patience_seconds: float = 60
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def read_exports(options: Options, contract: Contract, settling: Settling) -> Found:
    """The exports of a command. Raises BadData and NeedsDecision.

    In a drop folder only for want of any export: what is faulty there is named, and the
    others are imported.
    """
    found = Found()
    if options.drop:
        for path in _at_rest(_in_drop_folder(options.drop), settling, found):
            _read_from_drop_folder(path, options, contract, found)
        if not found.exports and (found.skipped or found.refused):
            raise NeedsDecision([*found.lines(), "There is nothing to import."])
    for path in options.files:
        found.exports.append(_read_export(path, options, contract))
    if options.complete:
        complete_pages(found.exports)
    return found


def _read_from_drop_folder(
    path: Path, options: Options, contract: Contract, found: Found
) -> None:
    try:
        found.exports.append(_read_export(path, options, contract))
    except NoExport as other:
        found.skipped.append(_first_line(other))
    except BadData as fault:
        found.refused.append(_first_line(fault))
    except NeedsDecision as question:
        if question.flag:
            advice = "import it once by hand"
            found.skipped.append(f"{_first_line(question)}; {advice}")
        else:
            found.refused.append(_first_line(question))


def _first_line(fault: BadData | NeedsDecision) -> str:
    return fault.lines()[0].rstrip(".:")


def _in_drop_folder(folder: Path) -> list[Path]:
    """Raises BadData."""
    with reading(folder):
        return [path for path in sorted(folder.iterdir()) if path.name[0] != "."]


# ---- Files that are still being written ----

# Browsers name a download so until it is whole.
UNFINISHED = (".part", ".partial", ".crdownload", ".download", ".tmp")


def _at_rest(paths: Sequence[Path], settling: Settling, found: Found) -> list[Path]:
    """The paths that are not being written; waits for those that are.

    Half a table is a table, too: it would publish cut words, and its next reviews as
    removed ones.
    """
    whole = list[Path]()
    for path in paths:
        if path.suffix.lower() in UNFINISHED:
            found.skipped.append(f"{path}: its download is not finished")
        else:
            whole.append(path)
    deadline = settling.now() + settling.patience_seconds
    while True:
        now = settling.now()
        moving = [path for path in whole if _rest_seconds(path, now, settling) > 0]
        if not moving or now >= deadline:
            break
        rest = max(_rest_seconds(path, now, settling) for path in moving)
        settling.sleep(min(rest, deadline - now))
    for path in moving:
        reason = "it is still being written; the next run imports it"
        found.skipped.append(f"{path}: {reason}")
    return [path for path in whole if path not in moving]


def _rest_seconds(path: Path, now: float, settling: Settling) -> float:
    """For how many more seconds a file or folder has to be at rest."""
    newest = max(_changes(path), default=0)
    if newest > now:
        # A clock that was ahead would hold the file for ever.
        return 0
    return newest + settling.quiet_seconds - now


def _changes(path: Path) -> Iterator[float]:
    """When a file, or a folder and all in it, were written or moved."""
    paths: Iterable[str] = [str(path)]
    if path.is_dir() and not path.is_symlink():
        paths = _all_in(path)
    for each in paths:
        with suppress(OSError):
            status = os.lstat(each)
            yield max(status.st_mtime, status.st_ctime)


def _all_in(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        yield parent
        for name in names:
            yield os.path.join(parent, name)


# ---- One export ----

SYMLINK = "a symlink; give the file itself"


def _read_export(path: Path, options: Options, contract: Contract) -> Export:
    """The export in a file or a folder. Raises BadData and NeedsDecision."""
    with reading(path):
        if path.is_symlink():
            raise no_export(str(path), SYMLINK)
        if path.is_dir():
            return _read_folder(path, options, contract)
        with files.opened(path) as file:
            if files.is_archive(file):
                members = files.in_archive(file, path, WANTED)
                return read_google(members, path, options, contract)
            changed = os.fstat(file.fileno()).st_mtime
            data = files.read_whole(file, path)
        return _read_file(path, data, changed, options, contract)


def _read_folder(path: Path, options: Options, contract: Contract) -> Export:
    symlinks = list[Path]()
    members = files.in_folder(path, WANTED, symlinks)
    export = read_google(members, path, options, contract)
    export.notes += [f"skipped: {symlink}: {SYMLINK}" for symlink in symlinks]
    return export


def _read_file(
    path: Path, data: bytes, changed: float, options: Options, contract: Contract
) -> Export:
    """The export in a file that is no archive, told by how it begins."""
    content = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if content.startswith((b"{", b"[")):
        member = files.Member(PurePosixPath(path), str(path), changed, data)
        return read_google([member], path, options, contract)
    kind = kind_of_first_bytes(content)
    if kind:
        raise no_export(str(path), kind)
    return read_csv(data, str(path), text_of_seconds(changed), options, contract)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an error of reading `path`, or a file in it, into BadData."""
    try:
        yield
    except OSError as error:
        file = str(error.filename or path)
        raise refused(file, f"cannot be read: {error.strerror}") from None
    except MemoryError:
        reason = "it takes more memory than this machine allows an import"
        raise refused(str(path), reason) from None
