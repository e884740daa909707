"""Files: found and opened without following a link, read whole, replaced at one stroke, one writer at a time.

This module knows no format and no directory of ours. Everything raises OSError with the name of the file.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

ZIP_SIGNS = (b"PK\x03\x04", b"PK\x05\x06")  # the latter is one without members


class Member(NamedTuple):
    """A file of a folder or an archive: its path inside, its name for people, its content."""

    path: PurePosixPath
    file: str
    data: bytes


@contextmanager
def opened(path: Path, folder: int | None = None) -> Iterator[BinaryIO]:
    """A regular file that is no link, in the open directory `folder` if one is given."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO would wait for a writer
    try:
        descriptor = os.open(path if folder is None else path.name, flags, dir_fd=folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, "it is neither a file nor a folder", str(path))
    with open(descriptor, "rb") as file:
        yield file


def read_whole(file: BinaryIO, path: Path, most_bytes: int) -> bytes:
    """The content of an open file that nobody writes meanwhile."""
    before = os.fstat(file.fileno())
    if before.st_size > most_bytes:
        raise OSError(None, f"larger than {most_bytes // 2**20} MiB", str(path))
    file.seek(0)
    content, after = file.read(), os.fstat(file.fileno())
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise OSError(None, "it changes while it is read", str(path))
    return content


def in_folder(folder: Path, wanted: re.Pattern[str], most_bytes: int, links: list[Path]) -> Iterator[Member]:
    """The files whose path inside is wanted, in order; links are not followed but noted."""
    for above, folders, names, descriptor in os.fwalk(folder):
        folders.sort()
        for path in (Path(above, name) for name in sorted([*folders, *names])):
            inside = PurePosixPath(path.relative_to(folder))
            if path.is_symlink():
                links.append(path)
            elif path.name in names and wanted.fullmatch(str(inside)):
                with opened(path, descriptor) as file:
                    content = read_whole(file, path, most_bytes)
                yield Member(inside, str(path), content)


def is_archive(file: BinaryIO) -> bool:
    """Whether an open file is a ZIP."""
    return os.pread(file.fileno(), 4, 0) in ZIP_SIGNS


def in_archive(file: BinaryIO, path: Path, wanted: re.Pattern[str], most_bytes: int) -> Iterator[Member]:
    """The files of an open ZIP whose path inside is wanted."""
    try:
        archive = zipfile.ZipFile(file)
        for info in archive.infolist():
            if wanted.fullmatch(info.filename):
                name = f"{path}:{info.filename}"
                with archive.open(info) as member:
                    if len(data := member.read(most_bytes + 1)) > most_bytes:
                        raise OSError(None, f"larger than {most_bytes // 2**20} MiB", name)
                yield Member(PurePosixPath(info.filename), name, data)
    except Exception as error:  # a damaged archive makes zipfile and its decoders raise a dozen kinds
        if getattr(error, "filename", None):  # one of ours
            raise
        reason = f"a damaged or encrypted archive ({error or type(error).__name__}); download it again"
        raise OSError(None, reason, str(path)) from None


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """One writer at a time; a directory that is not there is nobody's."""
    if not directory.exists():
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise OSError(None, "another import is under way", str(directory)) from None
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes, *, is_dry: bool) -> None:
    """Replace a file as a whole, unless it has this content, or see whether it may be."""
    path = Path(os.path.realpath(path))  # also of links that go in circles, unlike `resolve`
    if path.exists() and path.read_bytes() == content:
        return
    if is_dry:
        directory = next(each for each in path.parents if each.exists())
        if not os.access(directory, os.W_OK | os.X_OK):
            raise OSError(None, "it is not yours to change", str(directory))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft, is_there = path.with_name(f".{path.name}.draft"), path.exists()
    try:
        draft.unlink(missing_ok=True)  # left by a kill, or a link that somebody planted
        with open(draft, "xb") as file:
            if is_there:
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:  # a full disk has no name
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
