"""Programs in the documents work when they are copied."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from page_samples import sample_dataset, write_files
from services import ROOT, Address, daemon, fetch
from small_files import a_file, review

from reviewslib.links import service_urls
from reviewslib.web import snapshot
from reviewslib.web.pages import html_page

DOCUMENTS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
PLACE = "https://reviews.example.com"  # where the documents expect a service


def blocks(document: str, kind: str) -> list[str]:
    """The blocks of one kind of text in a document."""
    return re.findall(rf"```{kind}\n(.*?)```", DOCUMENTS[document], re.DOTALL)


def run(document: str, service: Address, directory: Path) -> str:
    """The output of the only program in a document, run against a service."""
    (program,) = blocks(document, "python")
    here = re.sub(f"{PLACE}|http://127.0.0.1:8080", f"http://127.0.0.1:{service.port}", program)
    command = [sys.executable, "-c", here]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_mirror_has_every_edit_and_deletion_and_downloads_it_once(tmp_path: Path) -> None:
    mirror, data = tmp_path / "mirror", tmp_path / "data"
    mirror.mkdir()
    data.mkdir()
    for version in ([review("a", text="old"), review("b")], [review("a", text="new")]):
        write_files(data, a_file(*version))
        with daemon(data=data, base_url="https://r.example", state=tmp_path / "state") as service:
            run("api.md", service, mirror)
            assert (mirror / "reviews.json").read_bytes() == fetch(service, "/reviews.json").body
            changed = (mirror / "reviews.json").stat().st_mtime_ns
            run("api.md", service, mirror)
            assert (mirror / "reviews.json").stat().st_mtime_ns == changed


@pytest.mark.slow
def test_the_program_for_websites_prints_three_reviews_as_html(tmp_path: Path) -> None:
    texts = ['<script>1</script> & "x" \'', "{rating}", None]
    reviews = [review(f"{9 - at}", text=text, author=f"<b>{at}") for at, text in enumerate(texts)]
    data = write_files(tmp_path, a_file(*reviews, review("0")))
    with daemon(data=data) as service:
        page = ElementTree.fromstring(f"<page>{run('your-website.md', service, tmp_path)}</page>")
    assert [element.tag for element in page.iter()] == ["page", *["blockquote", "p", "footer", "a"] * 3]
    shown = "".join(page.itertext())
    assert all(text in shown for text in texts if text)
    assert shown.count("5 of 5 stars, <b>") == shown.count("2025-06-01") == 3


def test_the_document_and_the_home_page_have_the_same_html_for_websites() -> None:
    page = html_page(snapshot.load_program_files().templates, sample_dataset(), service_urls(PLACE)).decode()
    shown = re.findall("<pre><code>(&lt;(?:a|iframe) .*?)</code></pre>", page, re.DOTALL)
    assert [line.strip() for line in blocks("your-website.md", "html")] == list(map(unescape, shown))
