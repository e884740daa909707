"""A snapshot dates content, and keeps the date of content that did not change.

Sections: dates - content that changes.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from reviewslib.dataset.moments import text_of_seconds
from reviewslib.links import service_urls
from reviewslib.messages import joined
from reviewslib.web import program_files, snapshot
from reviewslib.web.data_files import DataFiles
from reviewslib.web.snapshot import Snapshot

NOW = 1_800_000_000.0
MINIMAL = {"business": {"name": "X"}, "reviews": []}
ONE = MINIMAL | {
    "reviews": [{"id": "a", "author": "Ann", "rating": 5, "date": "2026-01-01"}]
}
EMPTY: dict[str, Any] = {}
URLS = service_urls("http://reviews.example")
PROGRAM = program_files.load_program_files()._replace(changed=0)


# ---- Dates ----


def built(
    document: Any,
    reviews_changed: float,
    previous: Snapshot | None = None,
    insights: Any = EMPTY,
    insights_changed: float = 0,
    program_changed: float = 0,
) -> Snapshot:
    """The snapshot of these files, changed then; insights may be None."""
    insights_file = None
    if insights is not None:
        insights_file = json.dumps(insights).encode()
    content = DataFiles(
        reviews=json.dumps(document).encode(),
        reviews_changed=reviews_changed,
        insights=insights_file,
        insights_changed=insights_changed,
    )
    program = PROGRAM._replace(changed=program_changed)
    return snapshot.build_snapshot(program, content, URLS, previous, NOW)


def dates(state: Snapshot) -> dict[str, int]:
    """Last-Modified by path; of computed content, by the name of the search."""
    found = {path: fixed.last_modified for path, fixed in state.fixed.items()}
    return found | {"search": state.last_modified}


FROM_BOTH = [
    "search",
    "/",
    "markdown",
    "/llms.txt",
    "/reviews.json",
    "/api/feed.json",
    "/feed.xml",
    "/.well-known/ard.json",
]
FROM_REVIEWS = [
    "/.well-known/openapi.json",
    "/sitemap.xml",
    "/badge.svg",
    "/mcp/server-card",
]
FROM_INSIGHTS = "/insights.json"
FROM_NEITHER = ["directory", "/robots.txt", "/favicon.ico"]


@pytest.mark.parametrize(
    ("reviews", "insights", "program"),
    [
        pytest.param(30, 20, 0, id="reviews are newest"),
        pytest.param(20, 30, 10, id="insights are newest"),
        pytest.param(10, 20, 30, id="the program is newest"),
    ],
)
def test_content_has_the_date_of_the_newest_file_behind_it(
    reviews: int, insights: int, program: int
) -> None:
    state = built(ONE, reviews, insights_changed=insights, program_changed=program)

    assert dates(state) == {
        **dict.fromkeys(FROM_BOTH, 30),
        **dict.fromkeys(FROM_REVIEWS, max(reviews, program)),
        FROM_INSIGHTS: max(insights, program),
        **dict.fromkeys(FROM_NEITHER, program),
    }


@pytest.mark.parametrize(
    ("reviews", "removal"),
    [
        pytest.param(30, 20, id="reviews are newer"),
        pytest.param(20, 30, id="removal is newer"),
    ],
)
def test_counted_insights_are_as_new_as_the_reviews_or_the_removal(
    reviews: int, removal: int
) -> None:
    state = built(ONE, reviews, insights=None, insights_changed=removal)

    assert dates(state)[FROM_INSIGHTS] == 30


def test_counted_insights_change_with_the_reviews() -> None:
    before = built(ONE, 30, insights=None)

    after = built(MINIMAL, 50, before, insights=None)

    assert dates(after)[FROM_INSIGHTS] == 50


@pytest.mark.parametrize(
    ("changed", "date"),
    [
        pytest.param(1000.9, 1000, id="a part of a second"),
        pytest.param(NOW + 5000, NOW, id="in the future"),
    ],
)
def test_a_date_is_in_whole_seconds_and_never_in_the_future(
    changed: float, date: float
) -> None:
    state = built(ONE, changed)

    assert dates(state)["/reviews.json"] == date


# ---- Content that changes ----


def test_unchanged_content_keeps_its_tag_and_date() -> None:
    before = built(ONE, 1000)

    after = built(ONE, 2000, before)

    assert after.fixed == before.fixed
    assert after.last_modified == before.last_modified


@pytest.mark.parametrize("path", ["/insights.json", "/.well-known/openapi.json"])
def test_content_that_does_not_have_what_changed_keeps_its_tag_and_date(
    path: str,
) -> None:
    before = built(ONE, 1000)

    after = built(MINIMAL, 2000, before, insights_changed=2000)

    assert after.fixed[path] == before.fixed[path]


@pytest.mark.parametrize("path", ["search", "/reviews.json"])
def test_content_that_was_put_back_is_later_than_the_content_between(
    path: str,
) -> None:
    first = built(ONE, 1000)
    second = built(MINIMAL, 2000, first)

    third = built(ONE, 1000, second)

    assert dates(second)[path] == 2000
    assert dates(third)[path] == 2001


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock is nine hours ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_an_empty_feed_was_updated_when_the_data_were_in_any_zone() -> None:
    feed = built(MINIMAL, 1000).fixed["/feed.xml"].identity.body

    assert b"<updated>1970-01-01T00:16:40Z</updated>" in joined(feed)


@pytest.mark.usefixtures("in_tokyo")
def test_a_moment_is_told_in_utc_in_any_zone() -> None:
    assert text_of_seconds(1000) == "1970-01-01T00:16:40Z"
