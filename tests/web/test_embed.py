"""The badge and the frame show the data whatever the query string is, and any website may embed them.

`test_snapshots.py` shows what they contain, `test_browser.py` how they look on another website, and
`test_pages.py` that no text becomes markup.

Badge - Frame - Responses
"""

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from page_samples import CONTRACT, SAMPLE, TEMPLATES, URLS, dataset_of, sample_dataset
from small_files import a_file, review, served
from werkzeug.test import Client

import reviewsd
from reviewslib.dataset.query import forgiving_values
from reviewslib.dataset.reviews import Dataset
from reviewslib.process.settings import Settings
from reviewslib.web import embed
from reviewslib.web.representations import Request, resolved

DATASET = sample_dataset()
SVG = "{http://www.w3.org/2000/svg}"


# ---- Badge ----


@pytest.mark.parametrize(
    ("rating", "count", "words", "width"),
    [(4.42, 160, "4.42 · 160 reviews", "115"), (5, 1, "5 · 1 review", "73"),
     (3.5, 12345, "3.5 · 12,345 reviews", "122"), (1, 10**12, "1 · 1,000,000,000 reviews", "122"),
     (4.5, 1204, "4.5 · 1,204 reviews", "119"), (None, None, "No reviews yet", "95")],
)  # fmt: skip
def test_the_badge_says_the_rating_in_stars_and_words_that_fit(
    rating: Any, count: Any, words: str, width: str
) -> None:
    figures = {"rating_value": rating, "review_count": count}
    picture = embed.badge(TEMPLATES, dataset_of(a_file(aggregate_rating=figures)))
    assert len(picture) < 2048
    assert not re.search(rb"<style|<script|@media|url\(|href=\"[^#]", picture)
    image = ET.fromstring(picture)
    (text,), (title,) = image.findall(f".//{SVG}text"), image.findall(f".//{SVG}title")
    assert (text.text, title.text, text.get("textLength")) == (words, words, width)
    (full_stars,) = image.findall(f"./{SVG}svg/{SVG}svg")
    assert full_stars.get("width") == f"{24 * (rating or 0):g}"


# ---- Frame ----


def frame(dataset: Dataset = DATASET, **asked: str) -> str:
    """The document of the frame for a query string of these values."""
    values = forgiving_values(CONTRACT.embed_parameters, list(asked.items()))
    return embed.frame(TEMPLATES, dataset, URLS, **values).decode()


def shown_ids(document: str) -> list[str]:
    return re.findall(rf'<p class="when"><a href="{URLS.review}([^"]*)"><time', document)


def newest_ids(count: int, **mentions: str) -> list[str]:
    """The ids of the newest reviews of the sample that mention these names."""
    found = [one for one in served(DATASET) if all(name in one[kind] for kind, name in mentions.items())]
    return [one["id"] for one in found][:count]


LIMITS = [("", 3), ("1", 1), ("10", 10), ("0", 3), ("11", 3), ("x", 3), ("\udcff", 3)]


@pytest.mark.parametrize(("limit", "count"), LIMITS)
def test_the_frame_has_as_many_of_the_newest_reviews_as_limit_says(limit: str, count: int) -> None:
    assert shown_ids(frame(limit=limit)) == newest_ids(count)


def test_a_person_and_a_service_filter_the_frame_together() -> None:
    both = {"mentioned_services": "massage-therapy", "mentioned_technicians": "Dr. Tobias Okafor"}
    document = frame(mentions_service="massage-therapy", mentions_technician="okafor")
    assert shown_ids(document) == newest_ids(3, **both)
    assert "mentioning <bdi>Dr. Tobias Okafor</bdi>, <bdi>Massage therapy</bdi>, newest" in document


def test_the_frame_names_at_most_three_subjects() -> None:
    document = frame(mentions_technician="dr", mentions_service="massage-therapy")
    assert document.partition("mentioning ")[2].partition(", newest")[0].count("<bdi>") == 3


def test_a_service_without_a_label_is_named_by_its_id() -> None:
    dataset = dataset_of(a_file(review(mentioned_services=["x"])))
    assert "mentioning <bdi>x</bdi>, newest" in frame(dataset, mentions_service="X")


@pytest.mark.parametrize(
    "query", [{"mentions_service": "none"}, {"mentions_technician": ","}, {"min_rating": "5"}]
)
def test_an_unknown_subject_and_a_rating_do_not_filter_the_frame(query: dict[str, str]) -> None:
    assert frame(**query) == frame()


SCHEMES = {"light": "light", "dark": "dark", "auto": "light dark"}


@pytest.mark.parametrize("theme", [*SCHEMES, "", "Dark", "x"])
def test_a_theme_is_one_of_three_and_a_wrong_one_counts_as_absent(theme: str) -> None:
    shown = theme if theme in SCHEMES else "light"
    head = f'<html lang="en" class="{shown}">', f'<meta name="color-scheme" content="{SCHEMES[shown]}">'
    assert all(element in frame(theme=theme) for element in head)


@pytest.mark.parametrize(("length", "is_cut"), [(280, False), (281, True)])
def test_a_long_review_is_cut_and_leads_to_the_whole_one(length: int, is_cut: bool) -> None:
    document = frame(dataset_of(a_file(review(text="x" * length))))
    assert ("Read the whole review" in document) is is_cut
    assert ("x" * length in document) is not is_cut


# ---- Responses ----

APP = reviewsd.application_of(Settings(data=SAMPLE))
POLICY = dict(embed.frame_headers(TEMPLATES)).items()


def ask(path: str, query: str = "", method: str = "GET", **headers: str) -> Any:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Client(APP).open(path, method=method, query_string=query, headers=fields)


@pytest.mark.parametrize(
    ("path", "media_type"), [("/embed", "text/html; charset=utf-8"), ("/badge.svg", "image/svg+xml")]
)
def test_badge_and_frame_are_cacheable_conditional_and_embeddable(path: str, media_type: str) -> None:
    headers = ask(path, "utm_source=x", ACCEPT_ENCODING="gzip").headers
    assert (headers["Content-Type"], headers["Content-Encoding"]) == (media_type, "gzip")
    assert headers["Cache-Control"] == "public, max-age=60"
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert ask(path, IF_NONE_MATCH=headers["ETag"], ACCEPT_ENCODING="gzip").status_code == 304
    assert ask(path, IF_MODIFIED_SINCE=headers["Last-Modified"]).status_code == 304


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [("/embed", {"query": "limit=x&limit=y&%ff=%ff"}, 200), ("/embed", {"method": "HEAD"}, 200),
     ("/embed", {"query": "mentions_service=" + "x" * 3000}, 200), ("/embed/x", {}, 404),
     ("/embed", {"method": "POST"}, 405), ("/embed", {"HOST": "a/b"}, 400)],
)  # fmt: skip
def test_every_response_of_the_frame_has_its_policy(path: str, more: dict[str, str], status: int) -> None:
    response = ask(path, **more)
    assert response.status_code == status
    assert dict(response.headers).items() >= POLICY
    assert status == 200 or b"cannot be shown at the moment" in response.data


def test_an_error_of_the_server_is_a_frame_with_its_policy(caplog: pytest.LogCaptureFixture) -> None:
    application = reviewsd.application_of(Settings(data=SAMPLE))
    application.reloader.snapshot = application.snapshot._replace(dataset=None)  # type: ignore[arg-type]
    response = resolved(application.respond(Request("GET", "/embed", "", {"host": "a"}.get)))
    assert (response.status, len(caplog.records)) == (500, 1)
    assert dict(response.headers).items() >= POLICY | {("Cache-Control", "no-store")}


def test_a_refusal_of_a_busy_server_is_a_frame_that_says_when_to_retry() -> None:
    request = Request("GET", "/embed", "", {"host": "a"}.get)
    response = APP.refuse(request, 503, "Too many.", (("Retry-After", "1"),))
    assert response.status == 503
    expected = POLICY | {("Cache-Control", "no-store"), ("Retry-After", "1")}
    assert dict(response.headers).items() >= expected
