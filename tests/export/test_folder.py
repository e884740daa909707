"""The folder of an export: what is written, kept, removed and refused.

Sections: sites - a first export - later exports - refusals - kills.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from reviewslib import files
from reviewslib.export import folder
from reviewslib.export.crawl import CannotExport, SiteFiles
from reviewslib.export.folder import LIST_NAME, ExportReport, write_site

# ---- Sites ----


def site(**contents: str) -> SiteFiles:
    """A site with a folder for each keyword, which holds one page."""
    made = SiteFiles()
    made.add("index.html", b"home")
    for name, text in contents.items():
        made.add(f"reviews/{name}/index.html", text.encode())
    return made


def names_in(directory: Path) -> set[str]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)) for path in found}


def moments_in(directory: Path) -> dict[str, int]:
    """When each file was written."""
    return {name: (directory / name).stat().st_mtime_ns for name in names_in(directory)}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A folder that does not exist yet."""
    return tmp_path / "site"


# ---- A first export ----


def test_a_first_export_writes_everything(directory: Path) -> None:
    report = write_site(directory, site(a="1", b="2"))

    assert report == ExportReport(files=3, size_bytes=6, written=3, removed=0)
    assert names_in(directory) == {
        LIST_NAME,
        "index.html",
        "reviews/a/index.html",
        "reviews/b/index.html",
    }


def test_a_repository_and_what_hosts_ask_for_may_be_there(directory: Path) -> None:
    (directory / ".git").mkdir(parents=True)
    for name in ("CNAME", "README.md", "LICENSE"):
        (directory / name).write_text("own")

    write_site(directory, site())

    assert (directory / "CNAME").read_text() == "own"


# ---- Later exports ----


def test_an_unchanged_site_writes_nothing(directory: Path) -> None:
    write_site(directory, site(a="1"))
    before = moments_in(directory)

    report = write_site(directory, site(a="1"))

    assert report.written == 0
    assert moments_in(directory) == before


def test_only_a_changed_page_is_written(directory: Path) -> None:
    write_site(directory, site(a="1", b="2"))
    before = moments_in(directory)

    report = write_site(directory, site(a="1", b="other"))
    after = moments_in(directory)

    assert report.written == 1
    assert (directory / "reviews/b/index.html").read_text() == "other"
    assert after["reviews/a/index.html"] == before["reviews/a/index.html"]


def test_the_page_of_an_erased_review_goes_with_its_folder(directory: Path) -> None:
    write_site(directory, site(a="1", b="2"))

    report = write_site(directory, site(a="1"))

    assert report.removed == 1
    assert not (directory / "reviews/b").exists()
    assert (directory / "reviews/a").exists()


def test_files_of_the_owner_stay(directory: Path) -> None:
    write_site(directory, site(a="1"))
    (directory / "CNAME").write_text("shop.example")
    (directory / "reviews/a/own.txt").write_text("own")

    write_site(directory, site())

    assert names_in(directory) == {
        LIST_NAME,
        "index.html",
        "CNAME",
        "reviews/a/own.txt",
    }


# ---- Refusals ----


def test_a_folder_of_another_program_is_refused(directory: Path) -> None:
    directory.mkdir()
    (directory / "reviews.json").write_text("{}")

    with pytest.raises(CannotExport, match=r"holds reviews\.json, which no export"):
        write_site(directory, site())

    assert names_in(directory) == {"reviews.json"}


def test_a_file_in_the_place_of_a_page_is_refused(directory: Path) -> None:
    write_site(directory, site())
    (directory / "reviews/a").mkdir(parents=True)
    (directory / "reviews/a/index.html").write_text("own")

    with pytest.raises(CannotExport, match="no file of an earlier export"):
        write_site(directory, site(a="1"))

    assert (directory / "reviews/a/index.html").read_text() == "own"


@pytest.mark.parametrize(
    "link",
    [
        pytest.param("reviews", id="a folder"),
        pytest.param("index.html", id="a page"),
    ],
)
def test_a_symlink_leads_nowhere(directory: Path, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write_site(directory, SiteFiles())
    (directory / link).symlink_to(outside)

    with pytest.raises(CannotExport, match="symlink"):
        write_site(directory, site(a="1"))

    assert names_in(outside) == set()


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "reviews/../../x"])
def test_a_list_cannot_name_files_elsewhere(directory: Path, name: str) -> None:
    write_site(directory, site())
    (directory.parent / "outside.txt").write_text("own")
    (directory / LIST_NAME).write_text(f"index.html\n{name}\n")

    with pytest.raises(CannotExport, match="not below"):
        write_site(directory, site())

    assert (directory.parent / "outside.txt").exists()


# ---- Kills ----


class Killed(BaseException):
    """Stands for the end of the process."""


BEFORE = {"a": "1", "b": "2", "c": "3"}
AFTER = {"a": "1", "b": "other", "d": "4"}
# The list, two changed pages, the list again.
WRITES = 4


@dataclass
class KilledWriter:
    """Writes files like `files.write`, until it is killed at a file."""

    survived: int
    is_after_rename: bool

    def write(self, path: Path, content: bytes, sync: object) -> None:
        if self.survived == 0 and not self.is_after_rename:
            draft = files.draft_of(path)
            draft.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(content[:1])
            raise Killed
        files.write(path, content, files.not_awaited)
        if self.survived == 0:
            raise Killed
        self.survived -= 1


def contents_of(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in names_in(directory)}


@pytest.mark.parametrize("survived", range(WRITES))
@pytest.mark.parametrize(
    "is_after_rename",
    [
        pytest.param(False, id="before the rename"),
        pytest.param(True, id="after the rename"),
    ],
)
def test_after_a_kill_the_next_run_puts_it_right(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    survived: int,
    is_after_rename: bool,
) -> None:
    write_site(directory, site(**BEFORE))
    killed = KilledWriter(survived, is_after_rename)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(folder, "write", killed.write)
        write_site(directory, site(**AFTER))

    write_site(directory, site(**AFTER))

    fresh = directory.with_name("fresh")
    write_site(fresh, site(**AFTER))
    assert contents_of(directory) == contents_of(fresh)
