"""The height offered for the frame: as low as the reviews allow, enough for any three.

That the content fits is tested in a browser, in `test_browser_website.py`.
"""

import re
from typing import Any

import pytest
from lab.data_sets import DATA_SETS, URLS, dataset_of
from lab.page_samples import TEMPLATES
from lab.small_files import a_file, review

from reviewslib.dataset.reviews import Dataset
from reviewslib.web.frame_height import (
    HIGHEST_FLOOR,
    HIGHEST_SLOPE,
    NEWEST,
    min_height,
)
from reviewslib.web.site import site_of

SCREENS = range(320, 1281, 40)


def heights(dataset: Dataset) -> list[float]:
    """The heights that the style gives on all screens, in rem."""
    style = min_height(site_of(TEMPLATES, dataset, URLS))
    floor, slope = map(int, re.findall("([0-9]+)rem", style))
    return [max(floor, slope - screen / 16) for screen in SCREENS]


def saying(*texts: str, **business: Any) -> Dataset:
    """Reviews of these texts, the newest first."""
    reviews = [
        review(f"r{number}", text=text, date=f"2026-01-{28 - number:02}")
        for number, text in enumerate(texts)
    ]
    return dataset_of(a_file(*reviews, business={"name": "Larkspur"} | business))


def all_lower(these: list[float], those: list[float]) -> bool:
    return all(this <= that for this, that in zip(these, those, strict=True))


HIGHEST = [max(HIGHEST_FLOOR, HIGHEST_SLOPE - screen / 16) for screen in SCREENS]
LONG = "They listened, and told me in plain words what would help. " * 6


@pytest.mark.parametrize("name", DATA_SETS)
def test_no_height_is_above_that_of_any_three_reviews(name: str) -> None:
    assert all_lower(heights(dataset_of(*DATA_SETS[name]())), HIGHEST)


def test_a_long_policy_makes_the_frame_no_higher_than_any() -> None:
    endless = saying(LONG, LONG, LONG, review_policy="We ask every author. " * 200)

    assert heights(endless) == HIGHEST


def test_short_reviews_need_less() -> None:
    short = heights(saying("Good.", "Good.", "Good."))
    long = heights(saying(LONG, LONG, LONG))

    assert all_lower(short, long)
    assert sum(short) < 0.7 * sum(long)


def test_the_order_of_the_newest_reviews_does_not_matter() -> None:
    first = saying(LONG, "Good.", "Good.", "Good.")
    last = saying("Good.", "Good.", "Good.", LONG)

    assert heights(first) == heights(last)


def test_older_reviews_do_not_count() -> None:
    newest = ["Good."] * NEWEST

    assert heights(saying(*newest, LONG)) == heights(saying(*newest, "Good."))


def test_without_reviews_the_frame_is_low() -> None:
    assert max(heights(saying())) < 20
