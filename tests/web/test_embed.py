"""The badge and the frame show the data whatever the query string is, and any website may embed them.

What they look like is in `test_snapshots.py`, in a page of another origin in `test_browser.py`; that no text
becomes markup, in `test_pages.py`.

Badge - Frame - Answers
"""

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from page_samples import ROOT, sample_dataset
from services import SAMPLE
from small_files import CONTRACT, a_file, loaded, review
from werkzeug.test import Client

import reviewsd
from reviewslib.dataset.query import forgiving_values
from reviewslib.links import service_urls
from reviewslib.process.settings import Settings
from reviewslib.web import embed, pages
from reviewslib.web.representations import Request, resolved

TEMPLATES = pages.load_templates(ROOT / "reviewslib" / "web" / "templates")
URLS = service_urls("https://reviews.example")
DATASET = sample_dataset()
REVIEWS = json.loads(DATASET.reviews_json)["reviews"]
SVG = "{http://www.w3.org/2000/svg}"


# ---- Badge ----


def picture_of(dataset: Any) -> ET.Element:
    """The badge as a reader of XML finds it."""
    picture = embed.badge(TEMPLATES, dataset)
    assert len(picture) < 2048
    assert not re.search(rb"<style|<script|@media|url\(|href=\"[^#]", picture)
    return ET.fromstring(picture)


@pytest.mark.parametrize(
    ("rating", "count", "words", "width"),
    [(4.42, 160, "4.42 · 160 reviews", "115"), (5, 1, "5 · 1 review", "73"),
     (3.5, 12345, "3.5 · 12,345 reviews", "122"), (1, 10**12, "1 · 1,000,000,000 reviews", "122"),
     (4.5, 1204, "4.5 · 1,204 reviews", "119"), (None, None, "No reviews yet", "95")],
)  # fmt: skip
def test_the_badge_says_the_rating_in_stars_and_words_that_fit(
    rating: Any, count: Any, words: str, width: str
) -> None:
    rated = {"aggregate_rating": {"rating_value": rating, "review_count": count}}
    picture = picture_of(loaded(a_file(**rated)))
    (text,), (title,) = picture.findall(f".//{SVG}text"), picture.findall(f".//{SVG}title")
    assert (text.text, title.text, text.get("textLength")) == (words, words, width)
    assert (picture.get("width"), picture.get("height"), picture.get("role")) == ("252", "36", "img")
    (filled,) = picture.findall(f"./{SVG}svg/{SVG}svg")
    assert filled.get("width") == f"{24 * (rating or 0):g}"


# ---- Frame ----


def frame(dataset: Any = DATASET, **asked: str) -> str:
    """The frame that a query string of these values gets."""
    wanted = forgiving_values(CONTRACT.embed_parameters, list(asked.items()))
    return embed.frame(TEMPLATES, dataset, URLS, **wanted).decode()


def shown_ids(document: str) -> list[str]:
    return re.findall(rf'<p class="when"><a href="{URLS.review}([^"]*)"><time', document)


def newest_ids(count: int, **mentions: str) -> list[str]:
    """The ids of the newest reviews that mention these names."""
    listed = [each for each in REVIEWS if all(name in each[kind] for kind, name in mentions.items())]
    return [each["id"] for each in listed][:count]


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
    document = frame(loaded(a_file(review(mentioned_services=["x"]))), mentions_service="X")
    assert "mentioning <bdi>x</bdi>, newest" in document


@pytest.mark.parametrize(
    "query", [{"mentions_service": "none"}, {"mentions_technician": ","}, {"min_rating": "5"}]
)
def test_an_unknown_subject_and_a_rating_do_not_filter_the_frame(query: dict[str, str]) -> None:
    assert frame(**query) == frame()


@pytest.mark.parametrize("theme", ["light", "dark", "auto", "", "Dark", "x"])
def test_a_theme_is_one_of_three_and_a_wrong_one_counts_as_absent(theme: str) -> None:
    schemes = {"light": "light", "dark": "dark", "auto": "light dark"}
    expected = theme if theme in schemes else "light"
    head = f'<html lang="en" class="{expected}">', f'<meta name="color-scheme" content="{schemes[expected]}">'
    assert all(each in frame(theme=theme) for each in head)
    parameters = CONTRACT.document["paths"]["/embed"]["get"]["parameters"]
    assert [*schemes] in [each.get("schema", {}).get("enum") for each in parameters]


def test_a_long_review_is_cut_and_leads_to_the_whole_one() -> None:
    for length, is_cut in ((280, False), (281, True)):
        document = frame(loaded(a_file(review(text="x" * length))))
        assert ("Read the whole review" in document) is is_cut
        assert ("x" * length in document) is not is_cut


# ---- Answers ----

APP = reviewsd.application_of(Settings(data=SAMPLE))


def ask(path: str, query: str = "", method: str = "GET", **headers: str) -> tuple[int, Any, bytes]:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    response = Client(APP).open(path, method=method, query_string=query, headers=fields)
    return response.status_code, dict(response.headers), response.data


@pytest.mark.parametrize("path", ["/embed", "/badge.svg"])
def test_badge_and_frame_are_cacheable_conditional_and_embeddable(path: str) -> None:
    status, headers, _ = ask(path, "utm_source=x", ACCEPT_ENCODING="gzip")
    kind = "image/svg+xml" if path == "/badge.svg" else "text/html; charset=utf-8"
    assert (status, headers["Content-Type"], headers["Content-Encoding"]) == (200, kind, "gzip")
    assert headers["Cache-Control"] == "public, max-age=60"
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert ask(path, IF_NONE_MATCH=headers["ETag"], ACCEPT_ENCODING="gzip")[0] == 304
    assert ask(path, IF_MODIFIED_SINCE=headers["Last-Modified"])[0] == 304
    assert ask(path, method="HEAD")[2] == b""


(STYLE,) = re.findall("<style>(.*?)</style>", frame(), re.DOTALL)
DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{DIGEST}'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *;"
    " require-trusted-types-for 'script'",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


@pytest.mark.parametrize(
    ("asked", "status"),
    [({"path": "/embed"}, 200), ({"path": "/embed", "query": "limit=x&limit=y&%ff=%ff"}, 200),
     ({"path": "/embed", "method": "HEAD"}, 200), ({"path": "/embed", "method": "POST"}, 405),
     ({"path": "/embed", "HOST": "a/b"}, 400), ({"path": "/embed/x"}, 404), ({"path": "/embed/"}, 404),
     ({"path": "/embed", "query": "mentions_service=" + "x" * 3000}, 200)],
)  # fmt: skip
def test_every_answer_of_the_frame_has_its_own_policy(asked: dict[str, str], status: int) -> None:
    found, headers, body = ask(**asked)
    assert found == status
    assert headers.items() >= POLICY.items()
    assert status == 200 or b"cannot be shown at the moment" in body


def test_an_error_of_the_server_is_a_frame_with_its_policy(caplog: pytest.LogCaptureFixture) -> None:
    request = Request("GET", "/embed", "", {"host": "a"}.get)
    application = reviewsd.application_of(Settings(data=SAMPLE))
    application.reloader.snapshot = application.snapshot._replace(dataset=None)  # type: ignore[arg-type]
    fault = resolved(application.respond(request))
    busy = application.refuse(request, 503, "Too many.", (("Retry-After", "1"),))
    for response, status, more in ((fault, 500, {}), (busy, 503, {"Retry-After": "1"})):
        assert response.status == status
        assert dict(response.headers).items() >= (POLICY | {"Cache-Control": "no-store"} | more).items()
    assert len(caplog.records) == 1
