"""A snapshot reads consistent files and keeps the date of unchanged content.

Sections: files - the program's files - dates - content that changes - the cache.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reviewslib import files
from reviewslib.dataset.contract import BadData
from reviewslib.dataset.moments import text_of_seconds
from reviewslib.links import service_urls
from reviewslib.messages import Body, joined
from reviewslib.web import snapshot
from reviewslib.web.representations import Content, represent
from reviewslib.web.snapshot import CacheKey, Files, RepresentationCache, Snapshot

NOW = 1_800_000_000.0
MINIMAL = {"business": {"name": "X"}, "reviews": []}
ONE = MINIMAL | {
    "reviews": [{"id": "a", "author": "Ann", "rating": 5, "date": "2026-01-01"}]
}
EMPTY: dict[str, Any] = {}
URLS = service_urls("http://reviews.example")
PROGRAM = snapshot.load_program_files()._replace(changed=0)


# ---- Files ----


def test_without_insights_the_directory_says_since_when(tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.json"
    reviews.write_text(json.dumps(ONE))

    read = snapshot.read_files(tmp_path)

    assert read == Files(
        reviews=reviews.read_bytes(),
        reviews_changed=files.last_change(reviews),
        insights=None,
        insights_changed=files.last_change(tmp_path),
    )


def test_insights_are_read_and_dated(tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.json"
    insights = tmp_path / "insights.json"
    reviews.write_text(json.dumps(ONE))
    insights.write_bytes(b"{}")

    read = snapshot.read_files(tmp_path)

    assert read == Files(
        reviews=reviews.read_bytes(),
        reviews_changed=files.last_change(reviews),
        insights=b"{}",
        insights_changed=files.last_change(insights),
    )


def test_only_files_that_exist_have_a_stamp(tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.json"
    reviews.write_text(json.dumps(ONE))

    stamps = snapshot.file_stamps(tmp_path)

    assert stamps == {"reviews.json": files.stamp(reviews.stat())}


def test_every_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "insights.json").mkdir()

    with pytest.raises(BadData) as caught:
        snapshot.read_files(tmp_path)

    assert caught.value.lines() == [
        f"reviews.json: there is no such file in {tmp_path}; see --data",
        "insights.json: cannot be read: it is not a regular file",
    ]


# ---- The program's files ----

FAR_FUTURE = 4e9


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the program's files."""
    copied = shutil.copytree(snapshot.PACKAGE, tmp_path / "reviewslib")
    return Path(copied)


def change_of_program(package: Path, name: str) -> float:
    """Since when a program is as it is, one of whose files has changed."""
    path = package / name
    if not path.exists():
        path.touch()
    os.utime(path, (FAR_FUTURE, FAR_FUTURE))
    return snapshot.load_program_files(package).changed


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("openapi.json", id="contract"),
        pytest.param("web/templates/page.css", id="style"),
        pytest.param("web/feeds.py", id="module"),
    ],
)
def test_a_file_of_the_program_dates_the_program(package: Path, name: str) -> None:
    assert change_of_program(package, name) == FAR_FUTURE


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("web/templates", id="folder"),
        pytest.param("web/feeds.pyc", id="compiled module"),
    ],
)
def test_what_a_start_may_write_does_not_date_the_program(
    package: Path, name: str
) -> None:
    assert change_of_program(package, name) != FAR_FUTURE


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
    content = Files(
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


# ---- The cache ----

MAX_BYTES = 100_000
BODY_BYTES = 1_000


def cache_of(number: int, body: Body, query: str = "q=") -> list[int]:
    """Which of so many contents are kept after the last one was added."""
    cache = RepresentationCache(MAX_BYTES)
    keys = [CacheKey("/", f"{query}{each}", is_gzip=False) for each in range(number)]
    representation = represent(Content(body, "a/b"), 1, gzip_level=None)
    for key in keys:
        cache.add(key, representation)
    return [each for each, key in enumerate(keys) if cache.get(key)]


def test_cached_bodies_stay_within_the_bound() -> None:
    kept = cache_of(1_000, bytes(BODY_BYTES))

    assert len(kept) * BODY_BYTES < MAX_BYTES


def test_small_bodies_stay_within_the_bound_too() -> None:
    kept = cache_of(10_000, b"")

    # Each takes some room itself.
    assert len(kept) * 100 < MAX_BYTES


def test_long_queries_stay_within_the_bound_too() -> None:
    kept = cache_of(1_000, b"", query="q=" + "a" * BODY_BYTES)

    assert len(kept) * BODY_BYTES < MAX_BYTES


def test_what_was_made_last_is_cached() -> None:
    kept = cache_of(1_000, bytes(BODY_BYTES))

    assert kept[-1] == 999


def test_what_fits_into_the_bound_is_kept() -> None:
    assert cache_of(10, bytes(BODY_BYTES)) == list(range(10))


def test_a_body_beyond_the_bound_is_not_cached() -> None:
    assert cache_of(1, bytes(MAX_BYTES)) == []


def test_slices_of_the_data_take_no_room_in_the_cache() -> None:
    kept = cache_of(4, [memoryview(bytes(MAX_BYTES))])

    assert kept == [0, 1, 2, 3]
