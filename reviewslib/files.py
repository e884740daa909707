"""Files: consistent reads, times of change, members of folders and archives, locks, atomic replacement.

This module knows no data format and no directory of the service. Its errors are OSErrors that name the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

LARGEST_FILE_BYTES = 64 * 1024 * 1024  # 100,000 reviews as long as those of the sample
READ_ATTEMPTS = 5
SETTLE_SECONDS = (
    0.05  # the pause between two attempts to read a file that is being written
)
OTHER_KINDS = (
    errno.EISDIR,
    errno.ELOOP,
    errno.ENXIO,
)  # errors of opening a directory, a symlink, a socket
ZIP_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")  # with and without members

# ---- One file: its content, and the time of its last change ----


class ChangesWhileRead(OSError):
    """The file changed while it was read."""

    def __init__(self, path: Path):
        super().__init__(None, "it changes while it is read", str(path))


@contextmanager
def opened(path: Path, *, follow: bool = False) -> Iterator[BinaryIO]:
    """Opens a regular file; a symlink only with `follow`."""
    flags = (
        os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    )  # opening a FIFO would block
    irregular = OSError(None, "it is not a regular file", str(path))
    try:
        file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115
    except OSError as error:
        if error.errno in OTHER_KINDS:
            raise irregular from None
        raise
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise irregular
        yield file


def read_whole(file: BinaryIO, path: Path) -> bytes:
    """The content of an open file. Raises ChangesWhileRead."""
    before = os.fstat(file.fileno())
    if before.st_size > LARGEST_FILE_BYTES:
        raise too_large(str(path))
    content = file.read()
    if stamp(os.fstat(file.fileno())) != stamp(before):
        raise ChangesWhileRead(path)
    return content


def too_large(name: str) -> OSError:
    return OSError(None, f"it is larger than {LARGEST_FILE_BYTES // 2**20} MiB", name)


def read_unchanging(
    path: Path,
    sleep: Callable[[float], None] = time.sleep,
    read: Callable[[BinaryIO, Path], bytes] = read_whole,
) -> tuple[bytes, float]:
    """The content of a file and its `last_change`. Follows symlinks; retries while the file changes."""
    for _ in range(READ_ATTEMPTS):
        with opened(path, follow=True) as file, suppress(ChangesWhileRead):
            return read(file, path), last_change(path)
        sleep(SETTLE_SECONDS)
    raise ChangesWhileRead(path)


def content_of(path: Path) -> bytes | None:
    """The content of a file, None without the file."""
    return read_unchanging(path)[0] if path.exists() else None


def last_change(path: Path) -> float:
    """The time at which `path` got its present content, in seconds since the epoch.

    A copy may keep an old modification time, but has a new change time (inode(7)). The times of symlinks in
    the path count as well, since a symlink may have been replaced.
    """
    symlinks = [
        parent for parent in (path, *path.absolute().parents) if parent.is_symlink()
    ]
    statuses = [path.stat(), *(symlink.lstat() for symlink in symlinks)]
    return max(
        seconds for status in statuses for seconds in (status.st_mtime, status.st_ctime)
    )


Stamp = tuple[int, int, int, int]


def stamp(status: os.stat_result) -> Stamp:
    """A value that changes when a file is written or replaced, or its mode changes."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


# ---- Folders and archives ----


class Member(NamedTuple):
    """A file of a folder or an archive."""

    path: PurePosixPath  # in the folder or archive
    file: str  # the name for messages
    changed: float  # seconds since the epoch; that of the archive, if in one; 0 if in a folder without data
    data: bytes | None  # None if the path does not match `wanted`


def in_folder(
    folder: Path, wanted: re.Pattern[str], symlinks: list[Path]
) -> Iterator[Member]:
    """All files of a folder, in order, with the content of those whose path in it matches `wanted`.

    Symlinks are not followed, but added to `symlinks`.
    """
    for parent, folders, names in os.walk(folder):
        folders.sort()
        symlinks += filter(Path.is_symlink, (Path(parent, name) for name in folders))
        for path in (Path(parent, name) for name in sorted(names)):
            relative = PurePosixPath(path.relative_to(folder))
            if path.is_symlink():
                symlinks.append(path)
            elif wanted.fullmatch(str(relative)):
                with opened(path) as file:
                    content = read_whole(file, path)
                    changed = os.fstat(file.fileno()).st_mtime
                yield Member(relative, str(path), changed, content)
            else:
                yield Member(relative, str(path), 0, None)


def is_archive(file: BinaryIO) -> bool:
    """Whether an open file is a ZIP archive."""
    return os.pread(file.fileno(), 4, 0) in ZIP_SIGNATURES


def in_archive(file: BinaryIO, path: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    """All files of an open ZIP archive, with the content of those whose path in it matches `wanted`."""
    try:
        archive = zipfile.ZipFile(file)
        changed = os.fstat(file.fileno()).st_mtime
        for info in archive.infolist():
            name = f"{path}:{info.filename}"
            data = None
            if wanted.fullmatch(info.filename):
                with archive.open(info) as member:
                    if (
                        len(data := member.read(LARGEST_FILE_BYTES + 1))
                        > LARGEST_FILE_BYTES
                    ):
                        raise too_large(name)
            yield Member(PurePosixPath(info.filename), name, changed, data)
    except Exception as error:  # zipfile and its decoders raise a dozen exceptions for damaged archives
        if getattr(error, "filename", None):  # the error of `too_large`
            raise
        reason = f"a damaged or encrypted archive ({str(error) or type(error).__name__}); download it again"
        raise OSError(None, reason, str(path)) from None


# ---- Writing ----


@contextmanager
def locked(directory: Path, *, is_dry: bool, waits: bool = False) -> Iterator[None]:
    """Lock a directory against other writers.

    If another process holds the lock, wait for it with `waits`, else raise OSError. A missing directory is
    created, and removed again if it stays empty; with `is_dry` it is not created.
    """
    is_new = not directory.exists()
    if is_new and is_dry:
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        _lock(descriptor, directory, waits)
        try:
            yield
        finally:
            if is_new:
                with suppress(OSError):
                    directory.rmdir()
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path, waits: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(descriptor), directory.stat()):
            return
    except (BlockingIOError, FileNotFoundError):
        pass
    # The other import holds the lock, or has removed or recreated the directory.
    raise OSError(None, "another import is under way", str(directory))


def sync_to_disk(descriptor: int) -> None:
    """Returns when what was written to the descriptor survives a power cut."""
    os.fsync(descriptor)


def write(
    path: Path, content: bytes, sync: Callable[[int], None] = sync_to_disk
) -> None:
    """Replaces a file atomically, unless it has this content already."""
    path = Path(os.path.realpath(path))  # accepts symlink loops, unlike `resolve`
    is_replacement = path.exists()
    if is_replacement and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.unlink(
            missing_ok=True
        )  # a killed process left it, or it is a planted symlink
        with open(draft, "xb") as file:
            if is_replacement:
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            sync(file.fileno())
        rename(draft, path, sync)
    except OSError as error:  # the error of a full disk names no file
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):  # `rename` has moved the draft
            draft.unlink()


def rename(
    path: Path, target: Path, sync: Callable[[int], None] = sync_to_disk
) -> None:
    """Renames a file to `target`, which is in the same directory and may exist."""
    target = Path(os.path.realpath(target))
    os.replace(path, target)
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        sync(directory)
    finally:
        os.close(directory)
