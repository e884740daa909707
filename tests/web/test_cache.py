"""The cache of computed representations stays within its bound."""

from reviewslib.messages import Body
from reviewslib.web.cache import CacheKey, RepresentationCache
from reviewslib.web.representations import Content, represent

MAX_BYTES = 100_000
# Two have room; what the cache needs beside a body is small.
LARGE_BYTES = 40_000


def cache_of(number: int, body: Body, query: str = "q=") -> list[int]:
    """Which of so many contents are kept after the last one was added."""
    cache = RepresentationCache(MAX_BYTES)
    keys = [CacheKey("/", f"{query}{each}", is_gzip=False) for each in range(number)]
    representation = represent(Content(body, "a/b"), 1, gzip_level=None)
    for key in keys:
        cache.add(key, representation)
    return [each for each, key in enumerate(keys) if cache.get(key)]


def test_what_fits_into_the_bound_is_kept() -> None:
    assert cache_of(2, bytes(LARGE_BYTES)) == [0, 1]


def test_cached_bodies_stay_within_the_bound() -> None:
    kept = cache_of(100, bytes(LARGE_BYTES))

    assert len(kept) * LARGE_BYTES <= MAX_BYTES


def test_long_queries_stay_within_the_bound_too() -> None:
    kept = cache_of(100, b"", query="q=" + "a" * LARGE_BYTES)

    assert len(kept) * LARGE_BYTES <= MAX_BYTES


def test_small_bodies_stay_within_the_bound_too() -> None:
    kept = cache_of(10_000, b"")

    # Each takes some room itself.
    assert len(kept) * 100 < MAX_BYTES


def test_what_was_made_last_is_cached() -> None:
    kept = cache_of(100, bytes(LARGE_BYTES))

    assert kept[-1] == 99


def test_a_body_beyond_the_bound_is_not_cached() -> None:
    assert cache_of(1, bytes(MAX_BYTES)) == []


def test_slices_of_the_data_take_no_room_in_the_cache() -> None:
    kept = cache_of(4, [memoryview(bytes(MAX_BYTES))])

    assert kept == [0, 1, 2, 3]
