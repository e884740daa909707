"""Badge and frame show the data whatever the query string is, on any website.

`test_snapshots.py` shows what they contain, `test_browser_website.py` how they look on
another website, and `test_pages.py` that no text becomes markup.

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


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        pytest.param("", 3, id="absent"),
        pytest.param("1", 1, id="the least"),
        pytest.param("10", 10, id="the most"),
        pytest.param("0", 3, id="too few"),
        pytest.param("11", 3, id="too many"),
        pytest.param("x", 3, id="no number"),
        pytest.param("\udcff", 3, id="no text"),
    ],
)
def test_the_frame_has_as_many_of_the_newest_reviews_as_limit_says(
    limit: str, count: int
) -> None:
    assert shown_ids(frame(limit=limit)) == NEWEST[:count]


def test_a_person_and_a_service_filter_the_frame_together() -> None:
    found = []
    for one in served(DATASET):
        has_service = "massage-therapy" in one["mentioned_services"]
        if has_service and "Dr. Tobias Okafor" in one["mentioned_technicians"]:
            found.append(one["id"])

    document = frame(mentions_service="massage-therapy", mentions_technician="okafor")

    assert shown_ids(document) == found[:3]


def named_in(document: str) -> str:
    """The subjects that the frame names above its reviews; empty if it names none."""
    subjects = re.findall("Reviews mentioning (.*), newest first", document)
    return re.sub("</?bdi>", "", "".join(subjects))


THREE_DOCTORS = "Dr. Tobias Okafor, Dr. Marisol Vega-Lindqvist, Dr. Anneke Brandt"
BOTH = "Dr. Tobias Okafor, Massage therapy"
UNLABELLED = dataset_of(a_file(review(mentioned_services=["x"])))


@pytest.mark.parametrize(
    ("dataset", "person", "service", "named"),
    [
        pytest.param(DATASET, "okafor", "massage-therapy", BOTH, id="both"),
        pytest.param(
            DATASET, "dr", "massage-therapy", THREE_DOCTORS, id="at most three"
        ),
        pytest.param(UNLABELLED, "", "X", "x", id="without a label"),
    ],
)
def test_the_frame_names_its_subjects(
    dataset: Dataset, person: str, service: str, named: str
) -> None:
    document = frame(dataset, mentions_technician=person, mentions_service=service)

    assert named_in(document) == named


@pytest.mark.parametrize(
    ("person", "service"),
    [
        pytest.param("", "none", id="an unknown service"),
        pytest.param(",", "", id="no name"),
    ],
)
def test_a_subject_that_no_review_has_leaves_the_newest_of_all(
    person: str, service: str
) -> None:
    document = frame(mentions_technician=person, mentions_service=service)

    assert named_in(document) == ""
    assert shown_ids(document) == NEWEST[:3]


@pytest.mark.parametrize(
    ("theme", "shown", "scheme"),
    [
        pytest.param("light", "light", "light", id="light"),
        pytest.param("dark", "dark", "dark", id="dark"),
        pytest.param("auto", "auto", "light dark", id="auto"),
        pytest.param("Dark", "light", "light", id="a wrong one counts as absent"),
    ],
)
def test_a_theme_is_one_of_three(theme: str, shown: str, scheme: str) -> None:
    document = frame(theme=theme)

    assert f'<html lang="en" class="{shown}">' in document
    assert f'<meta name="color-scheme" content="{scheme}">' in document


def test_a_review_that_has_room_is_whole() -> None:
    document = frame(dataset_of(a_file(review(text="x" * 280))))

    assert "x" * 280 in document
    assert "Read the whole review" not in document


def test_a_long_review_is_cut_and_leads_to_the_whole_one() -> None:
    document = frame(dataset_of(a_file(review(text="x" * 281))))

    assert f"{'x' * 279}…" in document
    assert "Read the whole review" in document


# ---- Responses ----

APP = reviewsd.application_of(Settings(data=SAMPLE))
POLICY = {(name.lower(), value) for name, value in policies.frame_headers(TEMPLATES)}


def test_any_website_may_show_the_badge() -> None:
    headers = call(APP, "/badge.svg").headers

    assert headers["cross-origin-resource-policy"] == "cross-origin"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("GET", "/embed?limit=x&limit=y&%ff=%ff", id="odd parameters"),
        pytest.param("HEAD", "/embed", id="without its body"),
        pytest.param("GET", f"/embed?mentions_service={'x' * 3000}", id="a long value"),
    ],
)
def test_every_frame_has_its_policy(method: str, path: str) -> None:
    response = call(APP, path, method)

    assert response.status == 200
    assert response.headers.items() >= POLICY


@pytest.mark.parametrize(
    ("method", "path", "fields", "status"),
    [
        pytest.param("GET", "/embed/x", {}, 404, id="a wrong address"),
        pytest.param(
            "GET", "/embed/x", {"accept": "text/html"}, 404, id="one in a browser"
        ),
        pytest.param("POST", "/embed", {}, 405, id="a wrong method"),
        pytest.param("GET", "/embed", {"host": "a/b"}, 400, id="a wrong host"),
    ],
)
def test_an_error_of_the_frame_is_a_frame_with_its_policy(
    method: str, path: str, fields: dict[str, str], status: int
) -> None:
    response = call(APP, path, method, **fields)

    assert response.status == status
    assert response.headers.items() >= POLICY
    assert b"cannot be shown at the moment" in response.body


def test_a_refusal_of_a_busy_server_is_a_frame_that_says_when_to_retry() -> None:
    request = Request("GET", "/embed", "", {"host": "a"}.get)

    response = APP.refuse(request, 503, "Too many.", (("Retry-After", "1"),))

    assert response.status == 503
    headers = {(name.lower(), value) for name, value in response.headers}
    assert headers >= POLICY | {("cache-control", "no-store"), ("retry-after", "1")}
