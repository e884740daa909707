"""Files are opened without following symlinks, read in one state, and replaced at once.

Sections: One file - Folders and archives - Writing - The lock of a directory
"""

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
BUSY = "another command is writing to it; try again in a moment"
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
    assert caught.value.strerror == reason
    assert caught.value.filename == str(path)
    assert caught.value.errno == number


# ---- One file ----


def put_symlink(path: Path) -> None:
    path.symlink_to(__file__)


def put_socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, put_symlink, put_socket])
def test_only_a_regular_file_is_opened(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    path = tmp_path / "a"
    put(path)

    with refused(IRREGULAR, path), opened(path):
        pass


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="/a'"), opened(tmp_path / "a"):
        pass


def test_a_file_of_64_mib_is_read(path: Path) -> None:
    os.truncate(path, MAX_BYTES)

    with opened(path) as file:
        content = files.read_whole(file, path)

    assert len(content) == MAX_BYTES


def test_a_larger_file_is_refused(path: Path) -> None:
    os.truncate(path, MAX_BYTES + 1)

    with opened(path) as file, refused(TOO_LARGE, path):
        files.read_whole(file, path)


class ChangingFile(io.FileIO):
    """A file that another program changes while it is read."""

    def read(self, size: int | None = -1) -> bytes:
        os.utime(self.name, (1, 1))
        return super().read(size)


def test_a_change_of_a_file_while_it_is_read_is_noticed(path: Path) -> None:
    with ChangingFile(path) as file, refused("it changes while it is read", path):
        files.read_whole(file, path)


class Writer:
    """Another program, which changes a file during the first reads of it."""

    def __init__(self, changes: int):
        self.changes = changes
        self.pauses = list[float]()

    def read(self, file: BinaryIO, path: Path) -> bytes:
        if len(self.pauses) < self.changes:
            raise files.ChangesWhileRead(path)
        return files.read_whole(file, path)


@pytest.mark.parametrize("changes", [1, 4])
def test_a_file_that_changes_while_it_is_read_is_read_again(
    path: Path, changes: int
) -> None:
    writer = Writer(changes)

    content, _ = files.read_unchanging(path, writer.pauses.append, writer.read)

    assert content == b"12345"
    assert writer.pauses == [0.05] * changes


def test_a_file_that_goes_on_changing_is_given_up_after_five_reads(path: Path) -> None:
    writer = Writer(changes=99)

    with refused("it changes while it is read", path):
        files.read_unchanging(path, writer.pauses.append, writer.read)

    assert writer.pauses == [0.05] * 5


# The year 1970, as of an old copy, and two years to come.
LONG_AGO = 1
LATER = 5e9
LAST = 6e9


@pytest.mark.parametrize("newest", ["file", "link", "folder"])
def test_the_last_change_is_that_of_the_file_or_of_a_symlink_to_it(
    path: Path, newest: str
) -> None:
    directory = path.parent
    (directory / "folder").symlink_to(directory)
    for name in ("file", "link", "folder"):
        os.utime(directory / name, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    os.utime(directory / newest, (LATER, LATER), follow_symlinks=False)
    # As of a new file beside it.
    os.utime(directory, (LAST, LAST))

    read = files.read_unchanging(directory / "folder" / "link")

    assert read == (b"12345", LATER)


def test_an_old_copy_changed_when_it_was_made(path: Path) -> None:
    os.utime(path, (LONG_AGO, LONG_AGO))

    assert files.last_change(path) == path.stat().st_ctime


# ---- Folders and archives ----


# In the order in which they are read, which is not that in which they are made.
NAMES = ["a.json", "b/0", "b/a.json", "b/c", *(f"{x}/a.json" for x in "dfhjlnpr")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that contain their names, and two symlinks."""
    for name in (*NAMES[::2], *NAMES[-1::-2]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "b" / "folder").symlink_to(tmp_path)
    (tmp_path / "d" / "link").symlink_to("../a.json")
    return tmp_path


def test_a_folder_is_read_in_order(folder: Path) -> None:
    members = list(in_folder(folder, WANTED, []))

    assert [member.path for member in members] == list(map(PurePosixPath, NAMES))
    assert [member.file for member in members] == [f"{folder}/{it}" for it in NAMES]


def test_wanted_files_of_a_folder_have_content_and_time(folder: Path) -> None:
    for member in in_folder(folder, WANTED, []):
        name = str(member.path)
        if WANTED.fullmatch(name):
            assert member.data == name.encode()
            assert member.changed == (folder / name).stat().st_mtime
        else:
            assert member.data is None
            assert member.changed == 0


def test_symlinks_of_a_folder_are_noted(folder: Path) -> None:
    symlinks = list[Path]()

    list(in_folder(folder, WANTED, symlinks))

    assert symlinks == [folder / "b" / "folder", folder / "d" / "link"]


def archive(path: Path, *contents: bytes) -> Path:
    """An archive of wanted files with these contents, and one that is not wanted."""
    with zipfile.ZipFile(path, "w", compresslevel=1) as new:
        for number, content in enumerate(contents):
            # A short member is stored as it is, so that a test can damage it.
            kind = zipfile.ZIP_DEFLATED if len(content) > 9 else None
            new.writestr(f"{number}/a.json", content, kind)
        new.writestr("c.json", b"")
    return path


def test_an_archive_is_read_with_the_content_of_matching_members(
    tmp_path: Path,
) -> None:
    path = archive(tmp_path / "a.zip", b"12345")

    with opened(path) as file:
        wanted, other = in_archive(file, path, WANTED)

    changed = path.stat().st_mtime
    assert wanted == (
        PurePosixPath("0/a.json"),
        f"{path}:0/a.json",
        changed,
        b"12345",
    )
    assert other == (PurePosixPath("c.json"), f"{path}:c.json", changed, None)


@pytest.mark.parametrize(
    ("start", "is_archive"),
    [
        pytest.param(b"PK\3\4", True, id="with members"),
        pytest.param(b"PK\5\6", True, id="empty"),
        pytest.param(b"{}", False, id="JSON"),
    ],
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


def no_archive(content: bytes) -> bytes:
    return bytes(60)


def no_first_header(content: bytes) -> bytes:
    return bytes(30) + content[30:]


def wrong_sizes(content: bytes) -> bytes:
    sizes = struct.pack("<LL", 5, 5)
    return content.replace(sizes, struct.pack("<LL", 999, 999))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        pytest.param(no_archive, "File is not a zip file", id="no archive"),
        pytest.param(
            no_first_header, "Bad magic number for file header", id="no first header"
        ),
    ],
)
def test_a_damaged_archive_is_reported(
    tmp_path: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    path = archive(tmp_path / "a.zip", b"12345")
    path.write_bytes(damage(path.read_bytes()))

    told = f"a damaged or encrypted archive ({reason}); download it again"
    with opened(path) as file, refused(told, path):
        list(in_archive(file, path, WANTED))


def test_an_archive_with_wrong_sizes_is_reported_whatever_zipfile_calls_it(
    tmp_path: Path,
) -> None:
    path = archive(tmp_path / "a.zip", b"12345")
    path.write_bytes(wrong_sizes(path.read_bytes()))

    with opened(path) as file, pytest.raises(OSError) as caught:
        list(in_archive(file, path, WANTED))

    # An EOFError without a text, with the patches of Debian 12 another error.
    told = caught.value.strerror
    assert re.fullmatch(
        r"a damaged or encrypted archive \(.+\); download it again", told
    )


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


def names_in(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_writing_replaces_the_file_that_a_symlink_leads_to(path: Path) -> None:
    write(path.with_name("link"), b"two")

    assert path.read_bytes() == b"two"
    assert names_in(path.parent) == ["file", "link"]


def test_a_replaced_file_keeps_its_mode(path: Path) -> None:
    path.chmod(0o604)

    write(path, b"two")

    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_who_has_opened_a_file_reads_it_to_its_end(path: Path) -> None:
    with path.open("rb") as reader:
        write(path, b"two")

        assert reader.read() == b"12345"


def test_a_planted_symlink_leads_no_writing_elsewhere(path: Path) -> None:
    planted = path.with_name("planted")
    planted.write_bytes(b"mine")
    path.with_name(".file.draft").symlink_to(planted)

    write(path, b"two")

    assert planted.read_bytes() == b"mine"
    assert names_in(path.parent) == ["file", "link", "planted"]


def test_a_file_that_cannot_be_replaced_stays_as_it_was(path: Path) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with refused("full", path, errno.ENOSPC):
        write(path, b"newer", full)

    assert path.read_bytes() == b"12345"
    assert names_in(path.parent) == ["file", "link"]


def test_a_file_is_synced_whole_and_then_its_directory(path: Path) -> None:
    synced = list[object]()

    def record(descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            synced.append(sorted(os.listdir(descriptor)))
        else:
            synced.append(status.st_size)

    write(path, b"newer content", record)

    assert synced == [len(b"newer content"), ["file", "link"]]


def test_writing_leaves_no_file_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))

    write(path, b"newer content")

    assert len(os.listdir("/proc/self/fd")) == before


# ---- The lock of a directory ----


@pytest.mark.parametrize("is_dry", [False, True])
def test_a_directory_has_one_writer(tmp_path: Path, is_dry: bool) -> None:
    first = locked(tmp_path, is_dry=False)
    second = locked(tmp_path, is_dry=is_dry)

    with first, refused(BUSY, tmp_path), second:
        pass


def test_a_directory_that_was_there_stays(tmp_path: Path) -> None:
    with locked(tmp_path, is_dry=False):
        pass

    assert tmp_path.exists()


def test_a_directory_that_was_made_in_vain_goes(tmp_path: Path) -> None:
    with locked(tmp_path / "a" / "new", is_dry=False):
        pass

    assert not (tmp_path / "a" / "new").exists()


def test_a_dry_run_makes_no_directory(tmp_path: Path) -> None:
    with locked(tmp_path / "new", is_dry=True):
        assert not (tmp_path / "new").exists()


def test_a_new_directory_stays_if_it_gets_a_file(tmp_path: Path) -> None:
    with locked(tmp_path / "new", is_dry=False):
        (tmp_path / "new" / "file").touch()

    assert (tmp_path / "new" / "file").exists()


def times_opened(directory: Path) -> int:
    """How often this process has opened a directory."""
    opened = [path.resolve() for path in Path("/proc/self/fd").iterdir()]
    return opened.count(directory)


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
        while times_opened(directory) < 2:
            pass  # until the thread has opened the directory
        directory.rename(tmp_path / "b")
        if is_made_anew:
            directory.mkdir()
    waiting.join()

    assert refusals == [BUSY]
