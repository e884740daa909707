"""Files are opened without following symlinks, read in one state, and replaced atomically."""

import errno
import io
import os
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import BinaryIO

import pytest

from reviewslib import files
from reviewslib.files import in_archive, in_folder, locked, opened, write

MAX_BYTES = 64 * 2**20
IRREGULAR = "it is not a regular file"
TOO_LARGE = "it is larger than 64 MiB"
BUSY = "another import is under way"
WANTED = re.compile(r"(.*/)?a\.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 5 bytes, with a symlink `link` beside it."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    return tmp_path / "file"


@contextmanager
def refused(reason: str, path: object, number: int | None = None) -> Iterator[None]:
    """Holds that what is done inside fails for this reason, in an error that names this file."""
    with pytest.raises(OSError) as caught:
        yield
    assert (caught.value.errno, caught.value.strerror, caught.value.filename) == (
        number,
        reason,
        str(path),
    )


# ---- One file ----


OTHERS: list[Callable[[Path], object]] = [
    *(os.mkfifo, Path.mkdir, lambda path: path.symlink_to(__file__)),
    lambda path: os.mknod(path, stat.S_IFSOCK),
]


@pytest.mark.parametrize("put", OTHERS)
def test_only_a_regular_file_is_opened(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    put(tmp_path / "a")
    with refused(IRREGULAR, tmp_path / "a"), opened(tmp_path / "a"):
        pass


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="/a'"), opened(tmp_path / "a"):
        pass


def test_a_file_of_at_most_64_mib_is_read(path: Path) -> None:
    os.truncate(path, MAX_BYTES)
    with opened(path) as file:
        assert len(files.read_whole(file, path)) == MAX_BYTES
        os.truncate(path, MAX_BYTES + 1)
        with refused(TOO_LARGE, path):
            files.read_whole(file, path)


class ChangingFile(io.FileIO):
    """A file that another program changes while it is read."""

    def read(self, size: int | None = -1) -> bytes:
        os.utime(self.name, (1, 1))
        return super().read(size)


def test_a_change_of_a_file_while_it_is_read_is_noticed(path: Path) -> None:
    with ChangingFile(path) as file, refused("it changes while it is read", path):
        files.read_whole(file, path)


@pytest.mark.parametrize("changes", [1, 4, 5])
def test_a_file_that_changes_while_it_is_read_is_read_at_most_five_times(
    path: Path, changes: int
) -> None:
    slept = list[float]()

    def read(file: BinaryIO, path: Path) -> bytes:
        if len(slept) < changes:
            raise files.ChangesWhileRead(path)
        return files.read_whole(file, path)

    if changes < 5:
        assert files.read_unchanging(path, slept.append, read)[0] == b"12345"
    else:
        with refused("it changes while it is read", path):
            files.read_unchanging(path, slept.append, read)
    assert slept == [0.05] * changes


@pytest.mark.parametrize("newest", ["file", "link", "folder"])
def test_the_last_change_is_that_of_the_file_or_of_a_symlink_to_it(
    path: Path, newest: str
) -> None:
    (path.parent / "folder").symlink_to(path.parent)
    for name in ("file", "link", "folder"):
        seconds = 5e9 if name == newest else 1  # as of an old copy
        os.utime(path.parent / name, (seconds, seconds), follow_symlinks=False)
    os.utime(path.parent, (6e9, 6e9))  # as of a new file beside it
    assert files.read_unchanging(path.parent / "folder" / "link") == (b"12345", 5e9)
    assert files.last_change(path) == (
        5e9 if newest == "file" else path.stat().st_ctime
    )


# ---- Folders and archives ----


def test_a_folder_is_read_in_order_and_its_symlinks_are_noted(tmp_path: Path) -> None:
    names = [
        "a.json",
        "b/0",
        "b/a.json",
        "b/c",
        *(f"{name}/a.json" for name in "dfhjlnpr"),
    ]
    symlinks = []
    for name in (*names[::2], *names[-1::-2]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "b" / "folder").symlink_to(tmp_path)
    (tmp_path / "d" / "link").symlink_to("../a.json")
    for name, member in zip(names, in_folder(tmp_path, WANTED, symlinks), strict=True):
        path = tmp_path / name
        is_wanted = WANTED.fullmatch(name)
        content = (path.stat().st_mtime, name.encode()) if is_wanted else (0, None)
        assert member == (PurePosixPath(name), str(path), *content)
    assert symlinks == [tmp_path / "b" / "folder", tmp_path / "d" / "link"]


def archive(path: Path, *contents: bytes) -> Path:
    with zipfile.ZipFile(path, "w", compresslevel=1) as new:
        for number, content in enumerate(contents):
            new.writestr(
                f"{number}/a.json",
                content,
                zipfile.ZIP_DEFLATED if len(content) > 9 else None,
            )
        new.writestr("c.json", b"")
    return path


def test_an_archive_is_read_with_the_content_of_matching_members(
    tmp_path: Path,
) -> None:
    path = archive(tmp_path / "a.zip", b"12345")
    found = [("0/a.json", b"12345"), ("c.json", None)]
    with opened(path) as file:
        assert list(in_archive(file, path, WANTED)) == [
            (PurePosixPath(name), f"{path}:{name}", path.stat().st_mtime, content)
            for name, content in found
        ]


@pytest.mark.parametrize(
    ("start", "is_archive"), [(b"PK\3\4", True), (b"PK\5\6", True), (b"{}", False)]
)
def test_an_archive_is_told_by_its_first_bytes(
    path: Path, start: bytes, is_archive: bool
) -> None:
    path.write_bytes(start + b"12345")
    with opened(path) as file:
        assert files.is_archive(file) is is_archive


def test_a_member_of_an_archive_has_at_most_64_mib(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", bytes(MAX_BYTES), bytes(MAX_BYTES + 1))
    with opened(path) as file:
        members = in_archive(file, path, WANTED)
        assert len(next(members).data or b"") == MAX_BYTES
        with refused(TOO_LARGE, f"{path}:1/a.json"):
            next(members)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "File is not a zip file": lambda content: bytes(60),
    "Bad magic number for file header": lambda content: bytes(30) + content[30:],
    "EOFError": lambda content: content.replace(
        struct.pack("<LL", 5, 5), struct.pack("<LL", 999, 999)
    ),
}


@pytest.mark.parametrize("reason", DAMAGES)
def test_a_damaged_archive_is_reported(tmp_path: Path, reason: str) -> None:
    path = archive(tmp_path / "a.zip", b"12345")
    path.write_bytes(DAMAGES[reason](path.read_bytes()))
    told = f"a damaged or encrypted archive ({reason}); download it again"
    with opened(path) as file, refused(told, path):
        list(in_archive(file, path, WANTED))


# ---- Writing ----


def test_a_file_with_the_same_content_is_left_alone(path: Path) -> None:
    before = files.stamp(path.stat())
    write(path, b"12345")
    assert files.stamp(path.stat()) == before


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    umask = os.umask(0o027)
    write(path, b"one")
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_writing_replaces_the_file_that_a_symlink_leads_to(path: Path) -> None:
    path.chmod(0o604)
    planted = path.with_name("planted")
    planted.write_bytes(b"mine")
    path.with_name(".file.draft").symlink_to(planted)
    with path.open("rb") as reader:
        write(path.with_name("link"), b"two")
        assert reader.read() == b"12345", "who has opened the file reads it to its end"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o604)
    assert (planted.read_bytes(), sorted(os.listdir(path.parent))) == (
        b"mine",
        ["file", "link", "planted"],
    )


def test_a_file_that_cannot_be_replaced_stays_as_it_was(path: Path) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with refused("full", path, errno.ENOSPC):
        write(path, b"newer", full)
    assert (path.read_bytes(), sorted(os.listdir(path.parent))) == (
        b"12345",
        ["file", "link"],
    )


def test_a_file_is_synced_whole_and_then_its_directory(path: Path) -> None:
    synced = list[object]()
    is_open = len(os.listdir("/proc/self/fd"))

    def record(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(
            sorted(os.listdir(descriptor))
            if is_directory
            else os.fstat(descriptor).st_size
        )

    write(path, b"newer content", record)
    assert (synced, len(os.listdir("/proc/self/fd"))) == (
        [13, ["file", "link"]],
        is_open,
    )


@pytest.mark.parametrize("name", [".", "a/new"])
def test_a_directory_has_one_writer_and_goes_if_it_was_made_in_vain(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    with locked(path, is_dry=False), refused(BUSY, path), locked(path, is_dry=True):
        pass
    assert path.exists() is (name == ".")


def test_a_new_directory_stays_if_it_gets_a_file(tmp_path: Path) -> None:
    new = tmp_path / "a" / "new"
    with locked(new, is_dry=True):
        assert not new.exists()
    with locked(new, is_dry=False):
        (new / "file").touch()
    with locked(new, is_dry=False):
        assert new.exists()


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_directory_that_was_moved_before_the_lock_is_refused(
    tmp_path: Path, is_made_anew: bool
) -> None:
    directory = tmp_path / "a"
    refusals = list[str]()

    def wait_and_lock() -> None:
        with (
            pytest.raises(OSError) as caught,
            locked(directory, is_dry=False, waits=True),
        ):
            pass
        refusals.append(str(caught.value.strerror))

    waiting = Thread(target=wait_and_lock)
    with locked(directory, is_dry=False):
        waiting.start()
        while [path.resolve() for path in Path("/proc/self/fd").iterdir()].count(
            directory
        ) < 2:
            pass  # until the thread has opened the directory
        directory.rename(tmp_path / "b")
        if is_made_anew:
            directory.mkdir()
    waiting.join()
    assert refusals == [BUSY]
