"""The feed of a search, as a feed reader and a person see it.

Sections: readers - what it has - what it says - faults - pages that lead to it - a
reader that people use.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import feedparser
import pytest
from lab import small_files as small
from lab.services import SAMPLE, Response, Service, call, daemon
from lab.tools import program

import reviewsd
from reviewslib.dataset.filters import FILTERS
from reviewslib.process.settings import Settings
from reviewslib.web.app import Application
from reviewslib.web.feeds import filter_words
from reviewslib.web.language import ENGLISH

BASE_URL = "https://reviews.example"
FEED = "/api/reviews/search.xml"
SEARCH = "/api/reviews/search"

# ---- Readers ----


@pytest.fixture(scope="module")
def service() -> Application:
    return reviewsd.application_of(Settings(data=SAMPLE, base_url=BASE_URL))


def parsed(answer: Response) -> Any:
    """What feedparser understands; the feed must be well-formed."""
    feed = feedparser.parse(answer.body)
    assert not feed.bozo
    return feed


def page(service: Application, query: str) -> str:
    return call(service, f"/reviews?{query}", accept="text/html").body.decode()


# ---- What it has ----


@pytest.mark.parametrize(
    "query",
    [
        "",
        "max_rating=3",
        "source=google&since=2026-01-01",
        "mentions_technician=Hana&rating=5",
        "query=back",
        "query=no+such+words",
    ],
)
def test_the_feed_has_the_newest_matches_of_the_search(
    service: Application, query: str
) -> None:
    found = json.loads(call(service, f"{SEARCH}?{query}&limit=50").body)["reviews"]

    entries = parsed(call(service, f"{FEED}?{query}")).entries

    ids = [entry.id.rpartition("/")[2] for entry in entries]
    assert ids == [review["id"] for review in found]


def test_an_entry_is_the_same_in_every_feed(service: Application) -> None:
    everything = parsed(call(service, "/feed.xml")).entries

    selected = parsed(call(service, FEED)).entries

    assert selected == everything


def test_the_feed_names_no_hub(service: Application) -> None:
    links = parsed(call(service, f"{FEED}?rating=1")).feed.links

    assert {link.rel for link in links} == {"self", "alternate"}


def test_the_sitemap_has_no_feed_of_a_search(service: Application) -> None:
    assert FEED not in call(service, "/sitemap.xml").body.decode()


def test_search_engines_are_told_to_leave_it(service: Application) -> None:
    assert call(service, FEED).headers["x-robots-tag"] == "noindex"


def test_a_reader_asks_with_a_condition(service: Application) -> None:
    tag = call(service, f"{FEED}?rating=5").headers["etag"]

    again = call(service, f"{FEED}?rating=5", if_none_match=tag)

    assert again.status == 304


# ---- What it says ----


@pytest.mark.parametrize(
    ("query", "address"),
    [
        pytest.param("", FEED, id="all reviews"),
        pytest.param("rating=5", f"{FEED}?rating=5", id="a filter"),
        pytest.param(
            "source=google&max_rating=3.0&query=",
            f"{FEED}?max_rating=3&source=google",
            id="in another order, another form and with an empty value",
        ),
    ],
)
def test_a_selection_has_one_address(
    service: Application, query: str, address: str
) -> None:
    feed = parsed(call(service, f"{FEED}?{query}")).feed

    (own,) = [link.href for link in feed.links if link.rel == "self"]

    assert own == BASE_URL + address


def test_two_selections_are_two_feeds(service: Application) -> None:
    ids = {
        parsed(call(service, f"{FEED}?rating={stars}")).feed.id for stars in range(1, 6)
    }

    assert len(ids) == 5


NAME = "Reviews of Larkspur Hollow Chiropractic"
TITLES = [
    pytest.param("", NAME, id="all reviews"),
    pytest.param("max_rating=3", f"{NAME}: at most 3 stars", id="stars"),
    pytest.param("rating=1", f"{NAME}: 1 star", id="one star"),
    pytest.param("source=google", f"{NAME}: on Google", id="a source"),
    pytest.param(
        "mentions_service=massage-therapy&min_rating=4.5",
        f"{NAME}: at least 4.5 stars, about Massage therapy",
        id="a service",
    ),
    pytest.param(
        "query=%3Cb%3E", f"{NAME}: with “<b>”", id="words that look like markup"
    ),
]


@pytest.mark.parametrize(("query", "title"), TITLES)
def test_the_title_says_the_selection(
    service: Application, query: str, title: str
) -> None:
    body = call(service, f"{FEED}?{query}").body.decode()

    (told,) = re.findall("<title>(.*?)</title>", body.partition("<entry>")[0])

    assert told.replace("&lt;", "<").replace("&gt;", ">") == title


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_every_filter_has_words(name: str) -> None:
    days = dict.fromkeys(("since", "until"), "2026-01-31")
    stars = dict.fromkeys(("rating", "min_rating", "max_rating"), "5")
    values = {"replied": "false", "sentiment": "negative"} | days | stars

    assert filter_words(ENGLISH, name, values.get(name, "a value"))


# ---- Faults ----


@pytest.mark.parametrize("query", ["rating=7", "since=2026-02-30", "query=%ff", "x=1"])
def test_a_fault_is_that_of_the_search(service: Application, query: str) -> None:
    by_search = json.loads(call(service, f"{SEARCH}?{query}").body)["issues"]

    answer = call(service, f"{FEED}?{query}")

    issues = json.loads(answer.body)["issues"]
    assert answer.status == 400
    assert [issue["parameter"] for issue in issues] == [
        issue["parameter"] for issue in by_search
    ]


@pytest.mark.parametrize("parameter", ["limit", "offset"])
def test_the_feed_has_no_pages(service: Application, parameter: str) -> None:
    answer = call(service, f"{FEED}?{parameter}=1")

    (issue,) = json.loads(answer.body)["issues"]
    assert issue["message"].startswith("unknown parameter")


def test_the_feed_takes_the_filters_of_the_search() -> None:
    filters = dict(small.CONTRACT.search_parameters)
    del filters["limit"], filters["offset"]

    assert small.CONTRACT.feed_parameters == filters


@pytest.mark.parametrize("query", ["query=%00%07%1B", "query=%EF%BF%BE", "query=]]%3E"])
def test_what_xml_forbids_breaks_no_feed(service: Application, query: str) -> None:
    answer = call(service, f"{FEED}?{query}")

    assert answer.status == 200
    assert parsed(answer).entries == []


# ---- Pages that lead to it ----


@pytest.mark.parametrize(
    "query", ["rating=5", "query=back", "rating=5&page=2", "rating=1&source=nowhere"]
)
def test_a_page_of_a_selection_leads_to_its_feed(
    service: Application, query: str
) -> None:
    shown = page(service, query)

    (link,) = re.findall('<a href="([^"]*)">Follow this selection</a>', shown)

    assert f'type="application/atom+xml" title="This selection" href="{link}"' in shown
    assert parsed(call(service, link.replace("&amp;", "&"))).feed.title


@pytest.mark.parametrize("query", ["", "page=2", "query=back+pain", "rating=9"])
def test_other_pages_lead_to_no_feed_of_a_search(
    service: Application, query: str
) -> None:
    assert FEED not in page(service, query)


# ---- A reader that people use ----


@pytest.fixture
def daemon_here() -> Iterator[Service]:
    with daemon("--no-hub") as address:
        yield address


@pytest.mark.slow
def test_newsboat_reads_the_feed_of_a_search(
    tmp_path: Path, daemon_here: Service
) -> None:
    newsboat = program("newsboat")
    (tmp_path / "urls").write_text(f"{daemon_here.base_url}{FEED}?max_rating=1\n")
    files = [f"--url-file={tmp_path / 'urls'}", f"--cache-file={tmp_path / 'cache'}"]
    files.append(f"--config-file={tmp_path / 'config'}")
    (tmp_path / "config").write_text("")

    subprocess.run([newsboat, *files, "-x", "reload"], check=True, timeout=60)
    counted = subprocess.run(
        [newsboat, *files, "-x", "print-unread"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    found = json.loads(
        call(
            reviewsd.application_of(Settings(data=SAMPLE, base_url=BASE_URL)),
            f"{SEARCH}?max_rating=1",
        ).body
    )
    assert counted.stdout == f"{found['matched']} unread articles\n"
