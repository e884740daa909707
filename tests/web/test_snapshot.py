"""A snapshot reads consistent files, keeps the date of unchanged content, and caches within a bound.

Files - Last-Modified - Cache
"""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from reviewslib import files
from reviewslib.dataset.contract import BadData
from reviewslib.dataset.moments import text_of_seconds
from reviewslib.links import service_urls
from reviewslib.messages import Body
from reviewslib.web import snapshot
from reviewslib.web.representations import Content, represent
from reviewslib.web.snapshot import CacheKey, Files, RepresentationCache, Snapshot

NOW = 1_800_000_000.0
MINIMAL = {"business": {"name": "X"}, "reviews": []}
ONE = MINIMAL | {
    "reviews": [{"id": "a", "author": "Ann", "rating": 5, "date": "2026-01-01"}]
}
URLS = service_urls("http://reviews.example")
PROGRAM = snapshot.load_program_files()._replace(changed=0)


# ---- Files ----


def test_without_insights_the_directory_says_since_when(tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.json"
    reviews.write_text(json.dumps(ONE))

    assert snapshot.read_files(tmp_path) == Files(
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

    assert snapshot.read_files(tmp_path) == Files(
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


# ---- Last-Modified ----


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program's files."""
    return Path(
        shutil.copytree(
            snapshot.PACKAGE, tmp_path_factory.mktemp("program") / "reviewslib"
        )
    )


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("openapi.json", True),
        ("web/templates/page.css", True),
        ("web/feeds.py", True),
        ("web/templates", False),
        ("web/feeds.pyc", False),
    ],
)
def test_each_file_of_the_program_dates_the_program(
    package: Path, name: str, counts: bool
) -> None:
    path = package / name
    if not path.exists():
        path.touch()
    os.utime(path, (4e9, 4e9))

    changed = snapshot.load_program_files(package).changed

    os.utime(path, (0, 0))
    assert (changed == 4e9) is counts


def built(
    document: Any, changed: float, previous: Snapshot | None = None, **members: Any
) -> Snapshot:
    """The snapshot of reviews changed then; `insights` are {}, changed at 0, and None is no file."""
    insights_changed, content = members.get("insights", (0, {}))
    insights_file = None if content is None else json.dumps(content).encode()
    content_of_files = Files(
        json.dumps(document).encode(), changed, insights_file, insights_changed
    )
    program = PROGRAM._replace(changed=members.get("program", 0))
    return snapshot.build_snapshot(program, content_of_files, URLS, previous, NOW)


def dates(state: Snapshot) -> dict[str, int]:
    computed = {"search": state.last_modified}
    return computed | {path: fixed.last_modified for path, fixed in state.fixed.items()}


def dates_of(path: str, *states: Snapshot) -> list[int]:
    return [dates(state)[path] for state in states]


FROM_BOTH = (
    "search",
    "/",
    "markdown",
    "/llms.txt",
    "/reviews.json",
    "/api/feed.json",
    "/feed.xml",
    "/.well-known/ard.json",
)
FROM_REVIEWS = (
    "/.well-known/openapi.json",
    "/sitemap.xml",
    "/badge.svg",
    "/mcp/server-card",
)
FROM_INSIGHTS = "/insights.json"
FROM_NEITHER = ("directory", "/robots.txt", "/favicon.ico")


@pytest.mark.parametrize(
    ("reviews", "insights", "program"), [(30, 20, 0), (20, 30, 10), (10, 20, 30)]
)
def test_content_has_the_date_of_the_newest_file_behind_it(
    reviews: int, insights: int, program: int
) -> None:
    assert dates(built(ONE, reviews, insights=(insights, {}), program=program)) == {
        **dict.fromkeys(FROM_BOTH, 30),
        **dict.fromkeys(FROM_REVIEWS, max(reviews, program)),
        FROM_INSIGHTS: max(insights, program),
        **dict.fromkeys(FROM_NEITHER, program),
    }


@pytest.mark.parametrize(("reviews", "removed"), [(30, 20), (20, 30)])
def test_counted_insights_are_as_new_as_the_reviews_or_the_removal(
    reviews: int, removed: int
) -> None:
    first = built(ONE, reviews, insights=(removed, None))
    assert first.fixed[FROM_INSIGHTS].last_modified == 30
    later = built(MINIMAL, 50, first, insights=(removed, None))
    assert later.fixed[FROM_INSIGHTS].last_modified == 50


@pytest.mark.parametrize(("changed", "date"), [(1000.9, 1000), (NOW + 5000, NOW)])
def test_a_date_is_in_whole_seconds_and_never_in_the_future(
    changed: float, date: float
) -> None:
    assert dates(built(ONE, changed))["/reviews.json"] == date


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

    after = built(MINIMAL, 2000, before, insights=(2000, {}))

    assert after.fixed[path] == before.fixed[path]


def test_content_that_was_put_back_is_later_than_the_content_between() -> None:
    first = built(ONE, 1000)
    second = built(MINIMAL, 2000, first)
    third = built(ONE, 1000, second)

    assert dates_of("search", first, second, third) == [1000, 2000, 2001]
    assert dates_of("/reviews.json", first, second, third) == [1000, 2000, 2001]


def test_an_empty_feed_was_updated_when_the_data_were_in_any_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    feed = built(MINIMAL, 1000).fixed["/feed.xml"].identity.body
    told = text_of_seconds(1000)
    monkeypatch.undo()
    time.tzset()
    assert told == "1970-01-01T00:16:40Z"
    assert f"<updated>{told}</updated>" in feed.decode()


# ---- Cache ----

OVERHEAD_BYTES = RepresentationCache.ENTRY_BYTES + len("q=0")


def key_of(number: int) -> CacheKey:
    return CacheKey("/", f"q={number}", is_gzip=False)


def kept_after_each(cache: RepresentationCache, body: Body) -> list[list[int]]:
    """Which of four contents are kept after each of them was added."""
    representation = represent(Content(body, "a/b"), 1, gzip_level=None)
    kept = []
    for added in range(4):
        cache.add(key_of(added), representation)
        kept.append([number for number in range(4) if cache.get(key_of(number))])
    return kept


@pytest.mark.parametrize(
    ("max_bytes", "kept"),
    [
        pytest.param(2 * (OVERHEAD_BYTES + 1000), [[0], [0, 1], [2], [2, 3]], id="two"),
        pytest.param(OVERHEAD_BYTES + 1000, [[0], [1], [2], [3]], id="one"),
        pytest.param(OVERHEAD_BYTES + 999, [[], [], [], []], id="none"),
    ],
)
def test_cached_bodies_stay_within_the_bound(
    max_bytes: int, kept: list[list[int]]
) -> None:
    cache = RepresentationCache(max_bytes)

    assert kept_after_each(cache, bytes(1000)) == kept


def test_slices_of_the_data_take_no_room_in_the_cache() -> None:
    cache = RepresentationCache(4 * OVERHEAD_BYTES)

    kept = kept_after_each(cache, [memoryview(bytes(1000))])

    assert kept[-1] == [0, 1, 2, 3]
