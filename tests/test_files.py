"""Files are opened without following symlinks, read in one state, and replaced atomically."""

import errno
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from threading import Thread

import pytest

from reviewslib import files
from reviewslib.files import ChangesWhileRead, in_archive, in_folder, locked, opened, write

MAX_BYTES = 64 * 2**20
TOO_LARGE = "it is larger than 64 MiB"
IRREGULAR = "it is not a regular file"
WANTED = re.compile(r"(.*/)?a\.json")


@contextmanager
def refused(reason: str, path: object, kind: type[OSError] = OSError) -> Iterator[None]:
    """Holds that what is done inside fails for this reason, in an error that names this file."""
    with pytest.raises(kind) as caught:
        yield
    assert (caught.value.errno, caught.value.strerror, caught.value.filename) == (None, reason, str(path))


def test_only_a_regular_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(__file__)
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "."):
        with refused(IRREGULAR, tmp_path / name), opened(tmp_path / name):
            pass
    with pytest.raises(FileNotFoundError) as caught, opened(tmp_path / "absent"):
        pass
    assert caught.value.filename == str(tmp_path / "absent")


class Restless(type(Path())):  # type: ignore[misc]
    """A path that calls `meanwhile` before each use except the first, like another process."""

    meanwhile: Callable[[], object]
    uses = 0

    def __fspath__(self) -> str:
        self.uses += 1
        if self.uses > 1:
            self.meanwhile()
        return str(self)


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to(__file__)], ids=["pipe", "link"])
def test_a_file_that_is_replaced_while_it_is_opened_is_refused(
    tmp_path: Path, put: Callable[[str], None]
) -> None:
    path = tmp_path / "a"
    path.touch()
    restless = Restless(path)
    restless.meanwhile = lambda: path.unlink() or put(path)
    with pytest.raises(OSError, match=r"not a regular file|symbolic links") as caught, opened(restless):
        pass
    assert (caught.value.filename, restless.uses) == (str(path), 2)


def test_a_file_is_opened_in_the_open_folder_even_if_its_path_moves(tmp_path: Path) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    for directory, content in ((folder, b"here"), (other, b"elsewhere")):
        directory.mkdir()
        for name in ("a", "b"):
            (directory / name).write_bytes(content)
    members = in_folder(folder, re.compile("."), [])
    assert next(members).data == b"here"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(other)
    assert next(members).data == b"here"


def test_a_file_of_at_most_64_mib_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    with opened(path) as file:
        os.truncate(path, MAX_BYTES)
        assert len(files.read_whole(file, path)) == len(files.read_whole(file, path)) == MAX_BYTES
        os.truncate(path, MAX_BYTES + 1)
        with refused(TOO_LARGE, path):
            files.read_whole(file, path)


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path, slept = tmp_path / "a", list[float]()
    path.touch()
    os.truncate(path, MAX_BYTES)  # so that the other thread changes the file while it is read

    def keep_changing() -> None:
        while not slept:
            path.touch()

    changing = Thread(target=keep_changing)
    changing.start()
    assert len(files.read_unchanging(path, lambda seconds: slept.append(seconds) or changing.join())[0])
    assert slept == [0.05]


def test_a_file_that_goes_on_changing_is_read_five_times(tmp_path: Path) -> None:
    path, link, slept = tmp_path / "a", tmp_path / "link", list[float]()
    path.touch()
    link.symlink_to(path)
    restless = Restless(link)
    restless.meanwhile = lambda: path.write_bytes(b"x" * restless.uses)
    with refused("it changes while it is read", link, ChangesWhileRead):
        files.read_unchanging(restless, slept.append)
    assert slept == [0.05] * 5


def test_a_file_that_is_replaced_while_it_is_read_is_read_anew(tmp_path: Path) -> None:
    path, new, slept = tmp_path / "a", tmp_path / "new", list[float]()
    path.write_bytes(b"old")
    new.write_bytes(b"new")
    restless = Restless(path)
    restless.meanwhile = lambda: new.exists() and restless.uses > 2 and new.replace(path)
    assert files.read_unchanging(restless, slept.append)[0] == b"new"
    assert slept == [0.05]


def test_the_last_change_is_that_of_the_file_or_of_a_symlink_to_it(tmp_path: Path) -> None:
    folder, path, link = tmp_path / "folder", tmp_path / "folder" / "a", tmp_path / "link"
    folder.mkdir()
    path.touch()
    link.symlink_to(folder)
    os.utime(path, (1, 1))  # as of an old copy
    assert files.read_unchanging(path)[1] == path.stat().st_ctime
    for changed, seconds in ((folder, 6e9), (link, 5e9), (path, 4e9)):
        os.utime(changed, (seconds, seconds), follow_symlinks=False)
    assert (files.read_unchanging(path)[1], files.read_unchanging(link / "a")[1]) == (4e9, 5e9)


def test_a_folder_is_read_in_order_and_its_symlinks_are_noted(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    paths = ["a.json", *(f"{name}/a.json" for name in "bdfhjlnprtvxz")]
    for name in (*paths[::2], *paths[-1:0:-2], "b/other.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "b" / "link").symlink_to(tmp_path)
    (folder / "c").mkdir()
    (folder / "c" / "a.json").symlink_to("../a.json")
    symlinks: list[Path] = []
    members = list(in_folder(folder, WANTED, symlinks))
    assert [str(member.path) for member in members if member.data is None] == ["b/other.json"]
    matching = [member for member in members if member.data is not None]
    assert [str(member.path) for member in matching] == paths
    for path, file, changed, data in matching:
        assert (data, file) == (str(path).encode(), str(folder / path))
        assert changed == (folder / path).stat().st_mtime
    assert symlinks == [folder / "b" / "link", folder / "c" / "a.json"]


def write_archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}/a.json", content)
        archive.writestr("c.json", b"")
    return path


def test_an_archive_is_read_with_the_content_of_matching_members(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", b=b"12345")
    changed = path.stat().st_mtime
    with opened(path) as file:
        assert list(in_archive(file, path, WANTED)) == [
            (PurePosixPath("b/a.json"), f"{path}:b/a.json", changed, b"12345"),
            (PurePosixPath("c.json"), f"{path}:c.json", changed, None),
        ]


def test_a_member_of_an_archive_has_at_most_64_mib(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.zip", b=bytes(MAX_BYTES), d=bytes(MAX_BYTES + 1))
    with opened(path) as file:
        members = in_archive(file, path, WANTED)
        assert len(next(members).data or b"") == MAX_BYTES
        with refused(TOO_LARGE, f"{path}:d/a.json"):
            next(members)


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [(0, 60, "File is not a zip file"), (30, None, "Bad magic number for file header")],
)
def test_a_damaged_archive_is_reported(tmp_path: Path, start: int, end: int | None, reason: str) -> None:
    path = write_archive(tmp_path / "a.zip", b=b"12345")
    path.write_bytes(bytes(start) + path.read_bytes()[start:end])
    told = f"a damaged or encrypted archive ({reason}); download it again"
    with opened(path) as file, refused(told, path):
        list(in_archive(file, path, WANTED))


@pytest.mark.parametrize(
    ("content", "expected"), [(b"PK\x03\x04", True), (b"PK\x05\x06" + bytes(18), True), (b"{}", False)]
)
def test_an_archive_is_recognised_by_its_first_bytes(tmp_path: Path, content: bytes, expected: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with opened(path) as file:
        assert files.is_archive(file) is expected


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    umask = os.umask(0o027)
    write(path, b"one")
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_with_the_same_content_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    before = files.stamp(path.stat())
    write(path, b"one")
    assert files.stamp(path.stat()) == before


def test_writing_replaces_the_file_that_a_symlink_leads_to(tmp_path: Path) -> None:
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    target.write_bytes(b"one")
    target.chmod(0o604)
    link.symlink_to(target)
    with target.open("rb") as reader:
        write(link, b"two")
        assert reader.read() == b"one", "who has opened the file reads it to its end"
    assert link.is_symlink()
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"two", 0o604)


def test_a_draft_is_not_written_through_a_planted_symlink(tmp_path: Path) -> None:
    path, planted = tmp_path / "folder" / "file", tmp_path / "planted"
    path.parent.mkdir()
    planted.write_bytes(b"mine")
    path.with_name(".file.draft").symlink_to(planted)
    write(path, b"two")
    assert (path.read_bytes(), planted.read_bytes(), os.listdir(path.parent)) == (b"two", b"mine", ["file"])


def test_a_file_that_cannot_be_replaced_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sizes = tmp_path / "a", list[int]()
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        assert os.listdir(tmp_path) in ([".a.draft", "a"], ["a", ".a.draft"])
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)  # a test cannot fill the disk
    with pytest.raises(OSError, match="full") as caught:
        write(path, b"newer")
    assert (caught.value.errno, caught.value.filename, sizes) == (errno.ENOSPC, str(path), [5])
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["a"])


def test_a_renamed_file_replaces_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name, content in (("file", b"old"), ("draft", b"new")):
        (tmp_path / name).write_bytes(content)
    files.rename(tmp_path / "draft", tmp_path / "link")
    assert ((tmp_path / "file").read_bytes(), os.listdir(tmp_path).count("draft")) == (b"new", 0)


def test_a_directory_has_one_writer_at_a_time(tmp_path: Path) -> None:
    new = tmp_path / "a" / "new"
    for path in (tmp_path, new):
        others = locked(path, is_dry=True)
        with locked(path, is_dry=False), refused("another import is under way", path), others:
            pass
        assert path.exists() is (path == tmp_path)  # a new directory that stays empty is removed
    with locked(new, is_dry=True):
        assert not new.exists()
    for _ in range(2):
        with locked(new, is_dry=False):
            (new / "file").touch()
    assert new.exists()


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_directory_that_was_moved_before_the_lock_is_refused(tmp_path: Path, is_made_anew: bool) -> None:
    directory, refused = tmp_path / "a", list[str]()

    def wait_and_lock() -> None:
        with pytest.raises(OSError) as caught, locked(directory, is_dry=False, waits=True):
            raise AssertionError
        refused.append(str(caught.value.strerror))

    waiting = Thread(target=wait_and_lock)
    with locked(directory, is_dry=False):
        waiting.start()
        while [path.resolve() for path in Path("/proc/self/fd").iterdir()].count(directory) < 2:
            pass  # until the thread has opened the directory
        directory.rename(tmp_path / "b")
        if is_made_anew:
            directory.mkdir()
    waiting.join()
    assert refused == ["another import is under way"]


def test_a_directory_is_synced_after_its_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, is_open = list[bool](), len(os.listdir("/proc/self/fd"))
    # A test cannot cut the power.
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(stat.S_ISDIR(os.fstat(file).st_mode)))
    write(tmp_path / "file", b"a")
    assert (synced, len(os.listdir("/proc/self/fd"))) == ([False, True], is_open)
