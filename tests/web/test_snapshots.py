"""Pages, feeds and texts of the data sets equal the reviewed files in `snapshots/`.

Style sheets are omitted, since they are files already. Documents of one line are stored
in several.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from lab.data_sets import DATA_SETS, write_files
from lab.services import call

import reviewsd
from reviewslib.process.settings import Settings
from reviewslib.web.app import Application

STORED = Path(__file__).with_name("snapshots")
PATHS = {
    "home.html": "/",
    "list.html": "/reviews",
    "page-3.html": "/reviews?min_rating=4&page=3",
    "beyond.html": "/reviews?page=99",
    "filtered.html": "/reviews?query=back+WAIT&min_rating=2&since=2024-01-01",
    "unmatched.html": "/reviews?query=zzz&rating=1&mentions_service=massage-therapy",
    "elsewhere.html": "/reviews?source=nowhere&rating=4",
    "half-stars.html": "/reviews?rating=4",
    "wrong.html": "/reviews?rating=7&until=2026-02-30&query=back",
    "review.html": "/reviews/01M55S8P26N8BVHRJK3HYFPSX4",
    "only-review.html": "/reviews/only%2F1",
    "first-review.html": "/reviews/g01",
    "no-review.html": "/reviews/nothing",
    "missing.html": "/nothing",
    "embed.html": "/embed",
    "embed-service.html": "/embed?limit=1&theme=auto&mentions_service=massage-therapy",
    "badge.svg": "/badge.svg",
    "feed.json": "/api/feed.json",
    "feed.xml": "/feed.xml",
    "llms.txt": "/llms.txt",
    "sitemap.xml": "/sitemap.xml",
    "robots.txt": "/robots.txt",
    "icon.svg": "/favicon.ico",
}
STATUSES = {
    "wrong.html": 400,
    "beyond.html": 404,
    "no-review.html": 404,
    "missing.html": 404,
}
ELSEWHERE = (
    "half-stars.html",
    "only-review.html",
    "first-review.html",
    "feed.json",
    "sitemap.xml",
    "robots.txt",
)
# By data set: the documents that show what no document of another data set shows.
FILES = {
    "sample": " ".join(file for file in PATHS if file not in ELSEWHERE),
    "bare": "home.html list.html embed.html feed.json feed.xml llms.txt",
    "one": "home.html list.html half-stars.html only-review.html embed.html badge.svg feed.json feed.xml"
    " sitemap.xml",
    "none": "home.html list.html missing.html embed.html badge.svg feed.json llms.txt sitemap.xml robots.txt",
    "many": "home.html",
    "german": "home.html list.html wrong.html first-review.html missing.html embed.html badge.svg feed.xml llms.txt",
    "hebrew": "home.html list.html embed.html badge.svg",
    "japanese": "home.html badge.svg",
}
CASES = list[tuple[str, str]]()
for owner, documents in FILES.items():
    CASES += [(owner, document) for document in documents.split()]


@pytest.fixture(scope="module")
def application_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Application]:
    """The application that serves the data set of a name."""

    @cache
    def made(name: str) -> Application:
        data = write_files(tmp_path_factory.mktemp(name), *DATA_SETS[name]())
        return reviewsd.application_of(
            Settings(data=data, base_url="https://reviews.example")
        )

    return made


def readable(file: str, document: str) -> str:
    """The document as it is stored: in lines, without style sheets."""
    if file.endswith(".json"):
        return json.dumps(json.loads(document), ensure_ascii=False, indent=1) + "\n"
    if file.endswith(".xml"):
        return document.replace("><", ">\n<") + "\n"
    return re.sub("<style>.*?</style>", "<style>…</style>", document, flags=re.DOTALL)


@pytest.mark.parametrize(("name", "file"), CASES)
def test_a_document_is_the_one_that_was_reviewed(
    assert_reviewed: Callable[[Path, str], None],
    application_of: Callable[[str], Application],
    name: str,
    file: str,
) -> None:
    answer = call(application_of(name), PATHS[file], accept="text/html")
    status = STATUSES.get(file, 200)
    assert (answer.status, "no-store" in answer.headers["cache-control"]) == (
        status,
        status != 200,
    )
    assert_reviewed(STORED / name / file, readable(file, answer.body.decode()))


def test_every_stored_document_is_compared() -> None:
    assert {path.relative_to(STORED).parts for path in STORED.rglob("*.*")} == set(
        CASES
    )


# In English and in German, which say "verified" and "verifiziert".
@pytest.mark.parametrize("name", ["sample", "bare", "one", "none", "many", "german"])
def test_reviews_are_called_verified_only_with_a_review_policy(name: str) -> None:
    has_policy = name in ("sample", "one", "german")
    for path in [*(STORED / name).glob("*.html"), *(STORED / name).glob("llms.txt")]:
        assert ("verif" in path.read_text(encoding="utf-8").lower()) is has_policy, path
