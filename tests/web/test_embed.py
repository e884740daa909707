"""The badge and the frame show the data whatever the query string is, and any website may embed them.

`test_snapshots.py` shows what they contain, `test_browser.py` how they look on another website, and
`test_pages.py` that no text becomes markup.

Sections: badge - frame - responses.
"""

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from lab.data_sets import URLS, dataset_of, sample_dataset
from lab.page_samples import TEMPLATES
from lab.services import SAMPLE, call
from lab.small_files import CONTRACT, a_file, review, served

import reviewsd
from reviewslib.dataset.query import forgiving_values
from reviewslib.dataset.reviews import Dataset
from reviewslib.messages import Request
from reviewslib.process.settings import Settings
from reviewslib.web import embed, pictures, policies
from reviewslib.web.site import site_of

DATASET = sample_dataset()
SVG = "{http://www.w3.org/2000/svg}"

# ---- Badge ----


def badge(rating: Any, count: Any) -> bytes:
    figures = {"rating_value": rating, "review_count": count}
    dataset = dataset_of(a_file(aggregate_rating=figures))
    return pictures.badge(site_of(TEMPLATES, dataset, URLS))


@pytest.mark.parametrize(
    ("rating", "count", "words", "shown", "width", "left"),
    [
        pytest.param(
            5, 1, "5 · 1 review", "5 · 1 review", "77", "155", id="one review"
        ),
        pytest.param(
            1.25,
            10**12,
            "1.25 · 1,000,000,000 reviews",
            "1.25 · (1,000,000,000)",
            "141",
            "123",
            id="too wide with its noun",
        ),
        pytest.param(
            4.5,
            1204,
            "4.5 · 1,204 reviews",
            "4.5 · 1,204 reviews",
            "124",
            "132",
            id="half stars",
        ),
        pytest.param(
            None, None, "No reviews yet", "No reviews yet", "98", "145", id="no reviews"
        ),
    ],
)
def test_the_badge_says_the_rating_in_stars_and_words_that_fit(
    rating: Any, count: Any, words: str, shown: str, width: str, left: str
) -> None:
    image = ET.fromstring(badge(rating, count))

    text = image.find(f".//{SVG}text")
    assert text.text == shown
    assert text.get("textLength") == width
    assert text.get("x") == left
    assert image.find(f".//{SVG}title").text == words
    stars = image.find(f"./{SVG}svg/{SVG}svg")
    assert stars.get("width") == f"{24 * (rating or 0):g}"


def test_the_badge_is_small_and_needs_nothing_else() -> None:
    picture = badge(4.42, 1204)

    assert len(picture) < 2048
    assert not re.search(rb"<style|<script|@media|url\(|href=\"[^#]", picture)


# ---- Frame ----


def frame(dataset: Dataset = DATASET, **asked: str) -> str:
    """The document of the frame for a query string of these values."""
    values = forgiving_values(CONTRACT.embed_parameters, list(asked.items()))
    return embed.frame(site_of(TEMPLATES, dataset, URLS), **values).decode()


def shown_ids(document: str) -> list[str]:
    return re.findall(r'<p class="when"><a href="/reviews/([^"]*)"><time', document)


NEWEST = [one["id"] for one in served(DATASET)]
LIMITS = [("", 3), ("1", 1), ("10", 10), ("0", 3), ("11", 3), ("x", 3), ("\udcff", 3)]


@pytest.mark.parametrize(("limit", "count"), LIMITS)
def test_the_frame_has_as_many_of_the_newest_reviews_as_limit_says(
    limit: str, count: int
) -> None:
    assert shown_ids(frame(limit=limit)) == NEWEST[:count]


def test_a_person_and_a_service_filter_the_frame_together() -> None:
    found = [
        one["id"]
        for one in served(DATASET)
        if "massage-therapy" in one["mentioned_services"]
        and "Dr. Tobias Okafor" in one["mentioned_technicians"]
    ]
    assert (
        shown_ids(
            frame(mentions_service="massage-therapy", mentions_technician="okafor")
        )
        == found[:3]
    )


THREE_DOCTORS = "Dr. Tobias Okafor, Dr. Marisol Vega-Lindqvist, Dr. Anneke Brandt"
UNLABELLED = dataset_of(a_file(review(mentioned_services=["x"])))


@pytest.mark.parametrize(
    ("dataset", "person", "service", "named"),
    [
        (DATASET, "okafor", "massage-therapy", "Dr. Tobias Okafor, Massage therapy"),
        (DATASET, "dr", "massage-therapy", THREE_DOCTORS),
        (UNLABELLED, "", "X", "x"),
        (DATASET, "", "none", ""),
        (DATASET, ",", "", ""),
    ],
    ids=["both", "at most three", "without a label", "unknown", "no name"],
)
def test_the_frame_names_its_subjects(
    dataset: Dataset, person: str, service: str, named: str
) -> None:
    document = frame(dataset, mentions_technician=person, mentions_service=service)
    subjects = re.findall("Reviews mentioning (.*), newest first", document)
    assert re.sub("</?bdi>", "", "".join(subjects)) == named
    assert named or shown_ids(document) == NEWEST[:3]


SCHEMES = {"light": "light", "dark": "dark", "auto": "light dark"}


@pytest.mark.parametrize("theme", [*SCHEMES, "Dark"])
def test_a_theme_is_one_of_three_and_a_wrong_one_counts_as_absent(theme: str) -> None:
    shown = theme if theme in SCHEMES else "light"
    head = (
        f'<html lang="en" class="{shown}">',
        f'<meta name="color-scheme" content="{SCHEMES[shown]}">',
    )
    assert all(element in frame(theme=theme) for element in head)


@pytest.mark.parametrize(("length", "is_cut"), [(280, False), (281, True)])
def test_a_long_review_is_cut_and_leads_to_the_whole_one(
    length: int, is_cut: bool
) -> None:
    document = frame(dataset_of(a_file(review(text="x" * length))))
    assert ("Read the whole review" in document) is is_cut
    assert ("x" * length in document) is not is_cut


# ---- Responses ----

APP = reviewsd.application_of(Settings(data=SAMPLE))
POLICY = {(name.lower(), value) for name, value in policies.frame_headers(TEMPLATES)}


def test_any_website_may_show_the_badge() -> None:
    assert (
        call(APP, "/badge.svg").headers["cross-origin-resource-policy"]
        == "cross-origin"
    )


@pytest.mark.parametrize(
    ("line", "fields", "status"),
    [
        ("GET /embed?limit=x&limit=y&%ff=%ff", {}, 200),
        ("HEAD /embed", {}, 200),
        ("GET /embed/x", {}, 404),
        ("GET /embed/x", {"accept": "text/html"}, 404),
        (f"GET /embed?mentions_service={'x' * 3000}", {}, 200),
        ("POST /embed", {}, 405),
        ("GET /embed", {"host": "a/b"}, 400),
    ],
)
def test_every_response_of_the_frame_has_its_policy(
    line: str, fields: dict[str, str], status: int
) -> None:
    method, _, path = line.partition(" ")
    response = call(APP, path, method, **fields)
    assert response.status == status
    assert response.headers.items() >= POLICY
    assert status == 200 or b"cannot be shown at the moment" in response.body


def test_a_refusal_of_a_busy_server_is_a_frame_that_says_when_to_retry() -> None:
    request = Request("GET", "/embed", "", {"host": "a"}.get)
    response = APP.refuse(request, 503, "Too many.", (("Retry-After", "1"),))
    assert response.status == 503
    headers = {(name.lower(), value) for name, value in response.headers}
    assert headers >= POLICY | {("cache-control", "no-store"), ("retry-after", "1")}
