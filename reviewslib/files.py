"""Files: whole reads, times of change, folders and archives, locks, replacement.

This module knows no data format and no directory of the service. Its errors are
OSErrors that name the file.

Sections: one file - folders and archives - writing.
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

# ---- One file: its content, and the time of its last change ----

# 100,000 reviews as long as those of the sample: the largest business there is.
LARGEST_FILE_BYTES = 64 * 1024 * 1024
# A program that writes a file in place is done within a quarter of a second, or it
# is not going to be done soon.
READ_ATTEMPTS = 5
SETTLE_SECONDS = 0.05
# What open(2) answers to a directory, to a symlink under O_NOFOLLOW, to a socket.
OTHER_KINDS = (errno.EISDIR, errno.ELOOP, errno.ENXIO)


class ChangesWhileRead(OSError):
    """The file changed while it was read."""

    def __init__(self, path: Path):
        super().__init__(None, "it changes while it is read", str(path))


@contextmanager
def opened(path: Path, *, follow: bool = False) -> Iterator[BinaryIO]:
    """Opens a regular file; a symlink only with `follow`."""
    # Without O_NONBLOCK, opening a FIFO waits for somebody who writes to it.
    flags = os.O_RDONLY | os.O_NONBLOCK
    if not follow:
        flags |= os.O_NOFOLLOW

    def open_with_flags(name: str, _: int) -> int:
        return os.open(name, flags)

    irregular = OSError(None, "it is not a regular file", str(path))
    try:
        file = open(path, "rb", opener=open_with_flags)  # noqa: SIM115
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
    """The content of a file and its `last_change`.

    Follows symlinks; tries again while the file changes. Raises ChangesWhileRead.
    """
    for _ in range(READ_ATTEMPTS):
        with opened(path, follow=True) as file, suppress(ChangesWhileRead):
            return read(file, path), last_change(path)
        sleep(SETTLE_SECONDS)
    raise ChangesWhileRead(path)


def content_of(path: Path) -> bytes | None:
    """The content of a file, None without the file."""
    return read_unchanging(path)[0] if path.exists() else None


def last_change(path: Path) -> float:
    """The time at which `path` got its present content, in seconds since the epoch."""
    statuses = [path.stat()]
    for place in (path, *path.absolute().parents):
        # A symlink in the path may have been replaced, so that it leads elsewhere.
        if place.is_symlink():
            statuses.append(place.lstat())
    # A copy may keep an old modification time, but has a new change time (inode(7)).
    return max(max(status.st_mtime, status.st_ctime) for status in statuses)


Stamp = tuple[int, int, int, int]


def stamp(status: os.stat_result) -> Stamp:
    """A value that changes when a file is written or replaced, or its mode changes."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


# ---- Folders and archives ----


class Member(NamedTuple):
    """A file of a folder or an archive."""

    path: PurePosixPath  # in the folder or archive
    file: str  # the name for messages
    # Seconds since the epoch. In an archive that of the archive, since members have
    # none with a zone; 0 in a folder if the member was not read.
    changed: float
    data: bytes | None  # None if the path does not match `wanted`


def in_folder(
    folder: Path, wanted: re.Pattern[str], symlinks: list[Path]
) -> Iterator[Member]:
    """All files of a folder, in order.

    Those whose path in it matches `wanted` have their content. Symlinks are not
    followed, but added to `symlinks`.
    """
    for parent, folders, names in os.walk(folder):
        # os.walk goes on in this order.
        folders.sort()
        paths = [Path(parent, name) for name in (*folders, *sorted(names))]
        symlinks += filter(Path.is_symlink, paths)
        for path in paths[len(folders) :]:
            if not path.is_symlink():
                yield _in_folder(folder, path, wanted)


def _in_folder(folder: Path, path: Path, wanted: re.Pattern[str]) -> Member:
    relative = PurePosixPath(path.relative_to(folder))
    if not wanted.fullmatch(str(relative)):
        return Member(path=relative, file=str(path), changed=0, data=None)
    with opened(path) as file:
        content = read_whole(file, path)
        changed = os.fstat(file.fileno()).st_mtime
    return Member(path=relative, file=str(path), changed=changed, data=content)


# What one archive may cost. A Takeout of a business with photographs has some hundred
# members, and its reviews fit into one file of the largest size.
MAX_MEMBERS = 20_000
# Characters. Those of Takeouts have some hundred; Linux opens paths of 4,095 bytes.
MAX_MEMBER_NAME = 1_000
MAX_UNPACKED_BYTES = 2 * LARGEST_FILE_BYTES
# Google deflates. Others take a hundred times the time for a byte of the archive.
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The first bytes of an archive with members, and of one without
# (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.7 and 4.3.16).
ZIP_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")


def is_archive(file: BinaryIO) -> bool:
    """Whether an open file is a ZIP archive."""
    return os.pread(file.fileno(), 4, 0) in ZIP_SIGNATURES


def in_archive(file: BinaryIO, path: Path, wanted: re.Pattern[str]) -> Iterator[Member]:
    """All files of an open ZIP archive; those whose path matches `wanted` have content.

    Raises OSError for an archive that cannot be read, and for a member that is too
    large.
    """
    try:
        archive = zipfile.ZipFile(file)
        changed = os.fstat(file.fileno()).st_mtime
        _check_members(archive.infolist(), path)
        yield from _members(archive, path, changed, wanted)
    except Exception as error:
        # zipfile and its decoders raise a dozen exceptions for damaged archives; only
        # our own errors name a file.
        if getattr(error, "filename", None):
            raise
        cause = str(error) or type(error).__name__
        reason = f"a damaged or encrypted archive ({cause}); download it again"
        raise OSError(None, reason, str(path)) from None


def _members(
    archive: zipfile.ZipFile, path: Path, changed: float, wanted: re.Pattern[str]
) -> Iterator[Member]:
    """The members of an archive that was last written at `changed`.

    Raises OSError, and whatever the decoders raise.
    """
    unpacked = 0
    for info in archive.infolist():
        name = f"{path}:{info.filename}"
        data = None
        if wanted.fullmatch(info.filename):
            data = _member_content(archive, info, name)
            unpacked += len(data)
        if unpacked > MAX_UNPACKED_BYTES:
            limit = f"{MAX_UNPACKED_BYTES // 2**20} MiB"
            raise OSError(None, f"more than {limit} in all members", str(path))
        yield Member(PurePosixPath(info.filename), name, changed, data)


def _check_members(infos: list[zipfile.ZipInfo], path: Path) -> None:
    """Raises OSError for an archive that is not of the kind that Google makes."""
    if len(infos) > MAX_MEMBERS:
        raise OSError(None, f"more than {MAX_MEMBERS:,} members", str(path))
    for info in infos:
        if len(info.filename) > MAX_MEMBER_NAME:
            reason = f"a member's name has more than {MAX_MEMBER_NAME:,} characters"
            raise OSError(None, reason, str(path))
        if info.compress_type not in COMPRESSIONS:
            reason = "its compression is not that of ordinary archives; pack it anew"
            raise OSError(None, reason, str(path))


def _member_content(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str
) -> bytes:
    """The content of a member; what its header says of its size may be a lie."""
    with archive.open(info) as member:
        content = member.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise too_large(name)
    return content


# ---- Writing ----


@contextmanager
def locked(directory: Path, *, is_dry: bool, waits: bool = False) -> Iterator[None]:
    """Lock a directory against other writers.

    If another process holds the lock, wait for it with `waits`, else raise OSError. A
    missing directory is created, and removed again if it stays empty; with `is_dry` it
    is not created.
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
    kind = fcntl.LOCK_EX
    if not waits:
        kind |= fcntl.LOCK_NB
    # BlockingIOError: another import, or the annotator, holds the lock. While we waited
    # for it, it may have removed the directory, and a third may have made it anew.
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, kind)
        if os.path.samestat(os.fstat(descriptor), directory.stat()):
            return
    reason = "another command is writing to it; try again in a moment"
    raise OSError(None, reason, str(directory))


def sync_to_disk(descriptor: int) -> None:
    """Returns when what was written to the descriptor survives a power cut."""
    os.fsync(descriptor)


def not_awaited(descriptor: int) -> None:
    """For files that are made again if a power cut damages them: nothing is awaited."""


def size_fault(content: bytes) -> str:
    """Why no command could read this content again; empty if each could."""
    if len(content) <= LARGEST_FILE_BYTES:
        return ""
    size = f"it would have {len(content) / 2**20:.0f} MiB"
    limit = f"the {LARGEST_FILE_BYTES // 2**20} MiB that can be read again"
    return f"{size}, more than {limit}"


def check_size(path: Path, content: bytes) -> None:
    """Raises OSError for content that no command could read again."""
    fault = size_fault(content)
    if fault:
        raise OSError(None, f"{fault}; nothing was written", str(path))


def draft_of(path: Path) -> Path:
    """Where `write` begins a file; a killed process leaves it there."""
    return path.with_name(f".{path.name}.draft")


def write(
    path: Path, content: bytes, sync: Callable[[int], None] = sync_to_disk
) -> None:
    """Replaces a file atomically, unless it has this content already."""
    # Unlike Path.resolve, this accepts symlinks that lead in a circle.
    path = Path(os.path.realpath(path))
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    try:
        _write_draft(draft, path, content, sync)
        rename(draft, path, sync)
    except OSError as error:
        # The error of a full disk names no file.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        # After `rename` there is no draft.
        with suppress(OSError):
            draft.unlink()


def _write_draft(
    draft: Path, path: Path, content: bytes, sync: Callable[[int], None]
) -> None:
    """Writes what will replace a file, with the rights that the file has."""
    # A killed process may have left a draft, and somebody may have planted a symlink.
    draft.unlink(missing_ok=True)
    with open(draft, "xb") as file:
        if path.exists():
            os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        file.write(content)
        file.flush()
        sync(file.fileno())


def rename(
    path: Path, target: Path, sync: Callable[[int], None] = sync_to_disk
) -> None:
    """Renames a file to `target`, which is in the same directory and may exist."""
    target = Path(os.path.realpath(target))
    os.replace(path, target)
    # The new name is in the directory, which is written separately (fsync(2)).
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        sync(directory)
    finally:
        os.close(directory)
