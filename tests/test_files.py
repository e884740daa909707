"""Files are opened without following links, read as one state, and replaced as a whole."""

import os
import re
import stat
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from reviewslib import files
from reviewslib.files import in_archive, in_folder, is_archive, locked, opened, read_whole, write


def test_what_is_no_regular_file_is_named_and_not_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(__file__)
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "absent", "."):
        with pytest.raises(OSError) as caught, opened(tmp_path / name):
            pass
        assert caught.value.filename == str(tmp_path / name) and caught.value.strerror


def test_a_file_of_an_open_folder_is_opened_there_whatever_its_path_leads_to_by_now(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"here")
    descriptor = os.open(folder, os.O_RDONLY)
    folder.rename(tmp_path / "moved")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").write_bytes(b"elsewhere")
    folder.symlink_to("other")
    with opened(folder / "a", descriptor) as file:
        assert read_whole(file, folder / "a") == b"here"
    os.close(descriptor)


def test_a_file_that_is_too_large_or_is_being_written_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    with monkeypatch.context() as patch, opened(path) as file, pytest.raises(OSError, match="larger"):
        patch.setattr(files, "LARGEST_FILE_BYTES", 4)
        read_whole(file, path)

    class Growing:
        """An open file to which somebody adds while it is read."""

        def __init__(self) -> None:
            self.file = path.open("rb")
            self.fileno, self.seek = self.file.fileno, self.file.seek

        def read(self) -> bytes:
            path.write_bytes(b"123456")
            return self.file.read()

    with pytest.raises(OSError, match="changes"):
        read_whole(growing := Growing(), path)  # type: ignore[arg-type]
    growing.file.close()


WANTED = re.compile(r"(.*/)?a\.json")


def test_what_is_wanted_of_a_folder_is_found_in_order_and_links_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    for name in ("z/a.json", "b/a.json", "a.json", "b/other.json"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "b" / "link").symlink_to(tmp_path)
    (folder / "c").mkdir()
    (folder / "c" / "a.json").symlink_to("../a.json")
    links: list[Path] = []
    found = list(in_folder(folder, WANTED, links))
    assert [str(each.path) for each in found] == ["a.json", "b/a.json", "z/a.json"]
    assert all(each.data.decode() == str(each.path) for each in found)
    assert [each.file for each in found] == [str(folder / each.path) for each in found]
    assert links == [folder / "b" / "link", folder / "c" / "a.json"]
    monkeypatch.setattr(files, "LARGEST_FILE_BYTES", 6)
    with pytest.raises(OSError, match="larger"):
        list(in_folder(folder, WANTED, links))


def test_an_archive_is_read_where_it_is_wanted_and_named_where_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("b/a.json", b"12345")
        archive.writestr("c.json", b"")
    with opened(path) as file:
        assert is_archive(file)
        (member,) = in_archive(file, path, WANTED)
        assert member == (PurePosixPath("b/a.json"), f"{path}:b/a.json", b"12345")
        monkeypatch.setattr(files, "LARGEST_FILE_BYTES", 4)
        with pytest.raises(OSError, match="larger") as caught:
            list(in_archive(file, path, WANTED))
        assert caught.value.filename == f"{path}:b/a.json"
    path.write_bytes(path.read_bytes()[:60])
    with opened(path) as file, pytest.raises(OSError, match="damaged or encrypted") as caught:
        list(in_archive(file, path, WANTED))
    assert caught.value.filename == str(path)
    path.write_bytes(b"{}")
    with opened(path) as file:
        assert not is_archive(file)


def test_a_file_is_replaced_by_a_new_one_and_a_link_in_its_place_leads_to_it(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write(link, b"one", is_dry=False)
    before = target.stat()
    write(link, b"one", is_dry=False)
    write(link, b"two", is_dry=True)
    assert target.stat().st_ino == before.st_ino
    write(link, b"two", is_dry=False)
    assert link.is_symlink() and target.read_bytes() == b"two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


def test_there_is_one_writer_at_a_time(tmp_path: Path) -> None:
    new = tmp_path / "a" / "new"
    for path in (tmp_path, new):
        others = locked(path, is_dry=True)
        with locked(path, is_dry=False), pytest.raises(OSError, match="another import"), others:
            pass
    assert not new.exists()  # since nothing came into it
    with locked(new, is_dry=True):
        assert not new.exists()
    with locked(new, is_dry=False):
        (new / "file").touch()
    assert new.exists()


def test_the_directory_is_synced_after_the_file_that_is_renamed_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[bool]()
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(stat.S_ISDIR(os.fstat(file).st_mode)))
    write(tmp_path / "file", b"a", is_dry=False)
    assert synced == [False, True]
