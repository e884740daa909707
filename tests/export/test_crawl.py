"""The walk over the pages of a site of files.

Sections: samples - what is found - what a site of files says - limits.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from lab.data_sets import DATA_SETS, write_files
from lab.page_samples import ATTACKS, files_saying
from openapi_spec_validator import validate

import reviewsd
from reviewslib.export.crawl import CannotExport, collected, links_of, site_files
from reviewslib.links import file_urls, folders_of, text_of
from reviewslib.messages import Request, Response
from reviewslib.process.settings import Settings

BASE_URL = "https://shop.example/reviews-of-us"
Files = dict[str, bytes]

# ---- Samples ----


def files_of(data: Path) -> Files:
    """All files of the site of a data directory, by name."""
    urls = file_urls(BASE_URL)
    application = reviewsd.application_at(Settings(data=data), urls)
    return dict(site_files(application.respond, urls))


@pytest.fixture(scope="module")
def site_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    """The files of the data set of a name."""

    @cache
    def made(name: str) -> Files:
        directory = tmp_path_factory.mktemp(name)
        return files_of(write_files(directory, *DATA_SETS[name]()))

    return made


@pytest.fixture(scope="module")
def sample(site_of: Callable[[str], Files]) -> Files:
    return site_of("sample")


# ---- What is found ----

DOCUMENTS = """
    index.html 404.html .nojekyll reviews.json insights.json feed.xml api/feed.json
    .well-known/openapi.json llms.txt sitemap.xml robots.txt badge.svg favicon.svg
    embed/index.html reviews/index.html
"""


@pytest.mark.parametrize("name", DOCUMENTS.split())
def test_a_document_that_callers_know_is_a_file(sample: Files, name: str) -> None:
    assert name in sample


def test_every_review_has_a_page(sample: Files) -> None:
    reviews = json.loads(sample["reviews.json"])["reviews"]

    names = {f"reviews/{review['id']}/index.html" for review in reviews}

    assert names <= sample.keys()


def test_a_review_is_cited_by_the_address_of_its_file(sample: Files) -> None:
    (*_, oldest) = json.loads(sample["reviews.json"])["reviews"]

    assert oldest["page_url"] == f"{BASE_URL}/reviews/{oldest['id']}/"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("selection/rating=5/index.html", id="stars"),
        pytest.param("selection/source=google/index.html", id="a source"),
        pytest.param("selection/page=2/index.html", id="a page of all reviews"),
        pytest.param("selection/rating=5/page=2/index.html", id="a page of some"),
        pytest.param(
            "selection/since=2025-01-01/until=2025-12-31/index.html", id="a year"
        ),
        pytest.param(
            "selection/mentions_technician=Hana~20Ishikawa~2C~20LMT/index.html",
            id="a person",
        ),
    ],
)
def test_a_selection_that_a_page_links_to_is_a_folder(sample: Files, name: str) -> None:
    assert name in sample


def test_a_year_leads_to_no_other_combination_of_days(sample: Files) -> None:
    selections = {name.split("/")[1:-1][0] for name in sample if "selection/" in name}
    alone = [
        name
        for name in sample
        if re.fullmatch("selection/(since|until)=[0-9-]+/index.html", name)
    ]

    assert "since=2025-01-01" in selections
    assert alone == []


HOSTILE_IDS = [
    pytest.param("..", id="the folder above"),
    pytest.param("../../etc/passwd", id="a path"),
    pytest.param("index.html", id="the name of a page"),
    pytest.param(".git", id="a hidden folder"),
    pytest.param("a/b\\c:d*e?f", id="separators"),
    pytest.param("é\u202e~%2F", id="other characters"),
    pytest.param("=" * 200, id="many characters"),
    pytest.param("x" * 200 + "index.html", id="a name at the bound of a folder"),
]


@pytest.mark.parametrize("id", HOSTILE_IDS)
def test_any_id_becomes_folders_below_that_of_the_reviews(id: str) -> None:
    folders = folders_of(id).split("/")

    assert text_of("/".join(folders)) == id
    for folder in folders:
        assert re.fullmatch("[A-Za-z0-9_~=-]{1,200}", folder)


# The loader refuses "..".
@pytest.mark.parametrize("id", HOSTILE_IDS[1:])
def test_the_page_of_any_id_is_a_file(tmp_path: Path, id: str) -> None:
    review = {"id": id[:200], "author": "Ann", "rating": 5, "date": "2026-01-01"}
    document = {"business": {"name": "Bo"}, "reviews": [review]}

    files = files_of(write_files(tmp_path, document))

    assert f"reviews/{folders_of(id[:200])}/index.html" in files


def test_texts_of_customers_are_no_links(tmp_path: Path) -> None:
    texts = [*ATTACKS, ' href="/reviews-of-us/planted/" ', "<a href='/planted'>"]

    files = files_of(write_files(tmp_path, *files_saying(*texts)))

    assert [name for name in files if name.startswith("planted")] == []


def test_links_are_read_without_fragments_and_references() -> None:
    page = '<a href="/shop/a/#b"> <img src="/shop/c?d&amp;e"> <a href="/other/">'

    assert list(links_of(page, "/shop")) == ["/a/", "/c?d&e"]


# ---- What a site of files says ----

NEEDS_A_PROGRAM = re.compile("search|websub|hub[.]|/mcp|assistant|/since/|server-card")


@pytest.mark.parametrize(
    "name",
    [
        "index.html",
        "404.html",
        "reviews/index.html",
        "selection/rating=5/index.html",
        "embed/index.html",
        "llms.txt",
        "robots.txt",
        "feed.xml",
        "api/feed.json",
        ".well-known/openapi.json",
    ],
)
def test_nothing_that_needs_a_program_is_mentioned(sample: Files, name: str) -> None:
    text = re.sub("(?s)<style>.*?</style>", "", sample[name].decode())

    assert NEEDS_A_PROGRAM.findall(text.lower()) == []


def contract_of(files: Files) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(files[".well-known/openapi.json"])
    return document


def test_the_contract_of_files_is_valid(sample: Files) -> None:
    validate(contract_of(sample))


def test_the_contract_describes_files_alone(sample: Files) -> None:
    for path in contract_of(sample)["paths"]:
        assert path.removeprefix("/") in sample


@pytest.mark.parametrize("name", ["reviews.json", "insights.json", "api/feed.json"])
def test_data_are_as_the_contract_says(sample: Files, name: str) -> None:
    contract = contract_of(sample)
    answer = contract["paths"][f"/{name}"]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]

    document = json.loads(sample[name])

    components = {"components": contract["components"]}
    Draft202012Validator(schema | components).validate(document)


@pytest.mark.parametrize("name", ["none", "one", "bare"])
def test_small_data_sets_are_sites_too(
    site_of: Callable[[str], Files], name: str
) -> None:
    assert {"index.html", "reviews/index.html"} <= site_of(name).keys()


# ---- Limits ----


def test_a_site_that_is_too_large_is_refused_with_a_sentence() -> None:
    files = iter([("a", b"x" * 600_000), ("b", b"x" * 600_000)])

    with pytest.raises(CannotExport, match=r"more than 1 MB.*nothing was written"):
        collected(files, limit=10**6)


def test_a_fault_of_the_service_stops_the_export() -> None:
    def respond(request: Request) -> Response:
        return Response(500, (), b"")

    with pytest.raises(CannotExport, match="status 500"):
        list(site_files(respond, file_urls(BASE_URL)))
