"""`reviewsd --export`, as an owner runs it, and the site behind a plain file server.

Sections: the command - the site - erasure.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from lab.data_sets import DATA_SETS, write_files
from lab.link_checker import check_links
from lab.services import SAMPLE, daemon_command, environment, free_port, run_daemon
from lab.small_files import a_file, review
from lab.watching import wait_for

BELOW = "host/our-reviews"
# 3,000 reviews take 20 seconds on a machine that does nothing else.
EXPORT_SECONDS = 400

# ---- The command ----


def export(directory: Path, base_url: str, data: Path = SAMPLE) -> str:
    """What the command says; it must succeed."""
    where = (f"--export={directory}", f"--base-url={base_url}", f"--data={data}")
    done = subprocess.run(
        daemon_command(*where),
        capture_output=True,
        text=True,
        timeout=EXPORT_SECONDS,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three reviews: the 160 of the sample take two seconds."""
    directory = tmp_path / "data"
    directory.mkdir()
    return write_files(directory, a_file(*map(review, "abc")))


def test_the_report_has_files_bytes_and_changes(tmp_path: Path, data: Path) -> None:
    directory = tmp_path / "site"

    first = export(directory, "https://shop.example", data)
    second = export(directory, "https://shop.example", data)

    written = len([path for path in directory.rglob("*") if path.is_file()]) - 1
    assert first.startswith(f"{directory}: {written} files, ")
    assert first.endswith(f" MB; {written} written, 0 removed\n")
    assert second.endswith(" MB; 0 written, 0 removed\n")


def test_without_a_base_url_nothing_is_written(tmp_path: Path) -> None:
    done = run_daemon(f"--export={tmp_path / 'site'}", f"--data={SAMPLE}")

    assert done.returncode == 78
    assert "add for example --base-url" in done.stderr
    assert not (tmp_path / "site").exists()


def test_a_refusal_is_one_sentence(data: Path) -> None:
    done = run_daemon(
        f"--export={SAMPLE}", "--base-url=https://shop.example", f"--data={data}"
    )

    assert done.returncode == 1
    assert "which no export wrote" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# ---- The site ----


@contextmanager
def file_server(directory: Path) -> Iterator[str]:
    """Python's file server; yields its URL."""
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*command, "--directory", str(directory)], **quiet) as server:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def listens(url: str) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", urlsplit(url).port)):
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sample", "german"])
def test_below_a_path_no_link_is_broken_or_redirected(
    tmp_path: Path, name: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_files(data, *DATA_SETS[name]())
    reviews = json.loads((data / "reviews.json").read_text())["reviews"]

    with file_server(tmp_path) as url:
        base_url = f"{url}/{BELOW}"
        export(tmp_path / BELOW, base_url, data)
        wait_for("file server", lambda: listens(url))
        checked = check_links(f"{base_url}/")

    # The contract names the base URL, to which paths are appended. Nobody opens it.
    checked.broken.pop(base_url, None)
    assert checked.broken == {}
    assert len(checked.asked) > len(reviews)


# ---- Erasure ----


def test_an_erased_review_is_nowhere_after_the_next_export(
    tmp_path: Path, data: Path
) -> None:
    directory = tmp_path / "site"
    export(directory, "https://shop.example", data)
    page = directory / "reviews" / "b" / "index.html"
    assert page.exists()
    write_files(data, a_file(review("a"), review("c")))

    export(directory, "https://shop.example", data)

    assert not page.parent.exists()
    for path in directory.rglob("*.html"):
        assert "/reviews/b/" not in path.read_text()
