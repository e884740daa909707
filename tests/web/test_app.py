"""The application without a server: every request gets a defined response; slow responses are made later.

What it says over HTTP is in `test_http.py`, what it does when files change in `test_reload.py`.

Any request - The list of reviews - Errors - Health - At once or later
"""

import gzip
import json
import logging
import re
import string
from dataclasses import replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote, unquote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.page_samples import SMALLEST, write_files
from lab.services import SAMPLE, Response, call
from lab.small_files import a_file, review

import reviewsd
from reviewslib import links, messages
from reviewslib.messages import Request, joined, size_of
from reviewslib.process.settings import Settings
from reviewslib.web import app
from reviewslib.web.app import Application
from reviewslib.web.reload import Reloader
from reviewslib.web.snapshot import RepresentationCache

APP = reviewsd.application_of(Settings(data=SAMPLE))
HTML = "text/html; charset=utf-8"
JSON = "application/json"
VARY = "Accept, Accept-Encoding"


def serving(data: Path) -> Application:
    """An application that serves other data."""
    return Application(Reloader(APP.program, data, APP.urls), APP.urls, APP.mcp)


@pytest.fixture
def application() -> Application:
    """An application that the test may change."""
    return serving(SAMPLE)


# ---- Any request ----


def assert_defined(answer: Response, *allowed: int) -> None:
    assert answer.status in allowed
    assert "".join(map("".join, answer.headers.items())).isprintable(), (
        "a header could be split"
    )
    if answer.status == 400 and answer.headers["content-type"] == JSON:
        assert {"issues", "error"} & json.loads(answer.body).keys()
    if answer.headers.get("content-type") == HTML:
        assert answer.body.decode().endswith("</html>")


latin = st.text(st.characters(max_codepoint=255), max_size=60)
names = st.sampled_from(list(APP.program.contract.search_parameters))
pairs = st.lists(st.tuples(names, st.text(string.printable, max_size=12)), max_size=6)
queries = latin | pairs.map(lambda pairs: "&".join(map("=".join, pairs)))


@pytest.mark.parametrize(
    "path", [links.SEARCH_PATH, links.REVIEW_LIST_PATH, links.EMBED_PATH]
)
@given(query=queries)
def test_any_query_string_gives_200_or_400(path: str, query: str) -> None:
    assert_defined(call(APP, f"{path}?{query}"), 200, 400)


@given(path=latin, method=st.sampled_from(["GET", "OPTIONS", "POST", "X"]))
def test_any_path_and_method_give_a_defined_answer(path: str, method: str) -> None:
    for prefix, allowed in (
        ("", (200, 204, 404, 405)),
        (links.SINCE_PATH, (200, 204, 400, 405)),
    ):
        assert_defined(
            call(APP, prefix + quote(path.encode("latin-1")), method), *allowed
        )


ODD_IDS = [
    *(
        "a/b",
        "/",
        "?#",
        "%2F",
        "a b+c",
        "é\u0301",
        "\U0001f600",
        "...",
        "../x",
        "\ufffd",
        "&<>\"'",
        "x" * 200,
    )
]


@pytest.mark.parametrize("kind", [HTML, JSON])
def test_the_url_of_a_review_leads_to_it_whatever_its_id(
    tmp_path: Path, kind: str
) -> None:
    application = serving(write_files(tmp_path, a_file(*map(review, ODD_IDS))))
    for served in json.loads(application.snapshot.dataset.reviews_json)["reviews"]:
        path = served["page_url"].removeprefix("http://127.0.0.1:8080")
        assert re.fullmatch("/reviews/[A-Za-z0-9_.~%-]+", path)
        answer = call(application, path, accept=kind)
        assert (answer.status, answer.headers["content-type"]) == (200, kind)
        assert kind == HTML or json.loads(answer.body) == served


PIECES = [
    *(
        "W/",
        "q=",
        "q=0.",
        "9e9",
        "nan",
        "a*0*=utf-8''",
        "charset=",
        "[::1]",
        "v1.",
        "http://",
        "=?base64?",
    ),
    *(
        "gzip",
        "identity",
        JSON,
        "text/html",
        "text/event-stream",
        "2026-07-28",
        "2025-06-18",
        "tools/call",
    ),
    *("\"*,;=%'/@:[]<()?-+.01 \t\\"),
    "9" * 5000,
]
HEADERS = [
    *(
        "accept",
        "accept_encoding",
        "content_encoding",
        "content_type",
        "host",
        "if_modified_since",
        "origin",
    ),
    *(
        "if_none_match",
        "mcp_method",
        "mcp_name",
        "mcp_protocol_version",
        "mcp_session_id",
    ),
]
PATHS = [*app.ROUTES, "/api/reviews/since/2026-01-01", "/nothing"]


@pytest.mark.slow
@settings(max_examples=1000)
@given(
    path=st.sampled_from(PATHS),
    method=st.sampled_from(["GET", "POST"]),
    name=st.sampled_from(HEADERS),
    value=latin | st.lists(st.sampled_from(PIECES)).map("".join),
)
def test_no_header_value_causes_a_server_error(
    path: str, method: str, name: str, value: str
) -> None:
    assert_defined(call(APP, path, method, **{name: value}), *range(200, 500))


# ---- The list of reviews for people: what the search finds, a page at a time ----

LIST_NAMES = [name for name in APP.program.contract.list_parameters if name != "page"]
VALUES = [
    "",
    "back",
    "é",
    "Okafor",
    "massage-therapy",
    "Massage Therapy",
    "4",
    "4.5",
    "5",
    "7",
    "2025-06-01",
    "2026-01-01",
    "GOOGLE",
    "yelp",
]


def listed_ids(query: str) -> tuple[int, list[str]]:
    """The status of the first page of a list, and the ids of all reviews in the list."""
    answers = [
        call(APP, f"/reviews?{query}&page={number}") for number in range(1, 10)
    ]  # 160 reviews at most
    documents = [answer.body.decode() for answer in answers if answer.status == 200]
    ids = re.findall('<p><a href="[^"]*/reviews/([^"]*)"><time', "".join(documents))
    return answers[0].status, list(map(unquote, ids))


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(LIST_NAMES), st.sampled_from(VALUES)), max_size=3
    )
)
def test_the_list_and_the_search_find_the_same(pairs: list[tuple[str, str]]) -> None:
    query = urlencode(pairs)
    parts = [
        call(APP, f"/api/reviews/search?{query}&limit=100&offset={offset}")
        for offset in (0, 100)
    ]
    found = [
        review["id"]
        for part in parts
        for review in json.loads(part.body).get("reviews", ())
    ]
    assert listed_ids(query) == (parts[0].status, found)


def test_the_list_ignores_unknown_parameters() -> None:
    answer = call(
        APP,
        "/reviews?utm_source=x&page=2&fbclid=y&query=back&limit=3&offset=-1&%ff=1&rating=",
    )
    assert answer == call(APP, "/reviews?query=back&page=2")
    assert answer != call(APP, "/reviews?query=back")
    assert b"utm_source" not in answer.body


# ---- Errors ----

WRONG = "One parameter is wrong. See issues."
TOO_SHORT = "The body is shorter than its Content-Length."
NOT_A_NUMBER = "expected a whole number such as 5"
UNKNOWN = "unknown parameter; did you mean query?"


@pytest.mark.parametrize(
    ("line", "fields", "status", "detail", "issues"),
    [
        ("GET /reviews/x", {"accept": JSON}, 404, "No review has the id x.", []),
        ("GET *", {}, 405, "GET is not allowed; allowed: OPTIONS.", []),
        (
            "POST /reviews",
            {"content_length": "9"},
            400,
            TOO_SHORT,
            [(None, "", TOO_SHORT)],
        ),
        ("GET /api/reviews/search?querx=", {}, 400, WRONG, [("querx", "", UNKNOWN)]),
        (
            "GET /api/reviews/search?limit=%ff&querx=",
            {},
            400,
            "2 parameters are wrong. See issues.",
            [("limit", "\ufffd", NOT_A_NUMBER), ("querx", "", UNKNOWN)],
        ),
    ],
)
def test_an_error_is_an_object_that_says_what_is_wrong(
    line: str,
    fields: dict[str, str],
    status: int,
    detail: str,
    issues: list[tuple[str | None, str, str]],
) -> None:
    method, _, target = line.partition(" ")
    answer = call(APP, target, method, **fields)
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if issues:
        document["issues"] = [
            dict(zip(("parameter", "value", "message"), issue, strict=True))
            for issue in issues
        ]
    assert (answer.status, json.loads(answer.body)) == (status, document)
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == (
        JSON,
        "no-store",
    )


def test_an_instance_without_a_hub_says_so() -> None:
    answer = call(APP, links.HUB_PATH, "POST", b"hub.mode=subscribe")

    assert answer.status == 404
    assert answer.body == b"the hub does not run on this instance\n"


def test_the_methods_of_the_server_as_a_whole_can_be_asked() -> None:
    answer = call(APP, "*", "OPTIONS")

    assert answer.status == 204
    assert answer.headers["allow"] == "GET, HEAD, POST, OPTIONS"


@pytest.mark.parametrize(
    ("length", "status"),
    [pytest.param(1000, 200, id="long"), pytest.param(1001, 400, id="too long")],
)
def test_a_host_is_no_longer_than_is_kept(length: int, status: int) -> None:
    answer = call(APP, "/robots.txt", host="a" * length)

    assert answer.status == status


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("line", "accept", "is_page"),
    [("GET /x", accept, True) for accept in (BROWSER, "text/html")]
    + [("GET /x", accept, False) for accept in ("", JSON, "text/html;q=0")]
    + [("POST /reviews.html", BROWSER, True), ("POST /reviews.html", "", False)]
    + [("GET /reviews/\xff", "*/*", True), ("GET /reviews/x", JSON, False)],
)
def test_a_404_is_a_page_for_clients_that_prefer_html(
    line: str, accept: str, is_page: bool
) -> None:
    method, _, path = line.partition(" ")
    answer = call(APP, quote(path, encoding="latin-1"), method, accept=accept)
    assert (answer.status, answer.headers["content-type"]) == (
        404,
        HTML if is_page else JSON,
    )
    assert (answer.headers["cache-control"], answer.headers["vary"]) == (
        "no-store",
        VARY,
    )
    assert ("content-security-policy" in answer.headers) is is_page


def test_an_unexpected_exception_is_logged_once_with_an_id(
    application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    application.reloader.snapshot = application.snapshot._replace(site=None)  # type: ignore[arg-type]
    answer = call(application, "/api/reviews/search")
    assert (answer.status, answer.headers["cache-control"]) == (500, "no-store")
    assert b"AttributeError" not in answer.body
    request_id = json.loads(answer.body)["request_id"]
    assert (
        json.loads(answer.body)["detail"]
        == f"An internal error, logged as request {request_id}."
    )
    logged = [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.ERROR
    ]
    assert logged == [f"request {request_id}: GET '/api/reviews/search' failed"]


# ---- Health ----


def health(application: Application) -> Any:
    answer = call(application, "/healthz")
    assert (answer.status, answer.headers["content-type"]) == (200, JSON)
    assert answer.headers["cache-control"] == "no-store"
    return json.loads(answer.body)


def test_health_describes_the_data_that_are_served(application: Application) -> None:
    application.started_at -= 100
    tags = {path: call(application, path).headers["etag"] for path in links.DATA_PATHS}
    changed = parsedate_to_datetime(
        call(application, links.SEARCH_PATH).headers["last-modified"]
    )
    assert health(application) == {
        "status": "ok",
        "version": "1.0.0",
        "uptime_seconds": 100,
        "reviews": {
            "count": 160,
            "unverified_left_out": 4,
            "earliest": "2022-11-09",
            "latest": "2026-11-15",
        },
        "insights": {"review_count": 160, "generated_at": "2026-11-16T09:30:00-08:00"},
        "hub": "the hub does not run on this instance",
        "subscriptions": None,
        "newest_export": None,
        "last_modified": f"{changed:%Y-%m-%dT%H:%M:%SZ}",
        "digests": {path: tag.strip('"') for path, tag in tags.items()},
        "last_reload_error": None,
    }


FAILED = {"at": "now", "faults": ["x"]}


def a_hub(trouble: str | None) -> Any:
    """A hub with two subscriptions, whose store may be in trouble."""
    return Mock(
        trouble=Mock(return_value=trouble), counts=Mock(return_value={"active": 2})
    )


@pytest.mark.parametrize(
    ("trouble", "error", "status"),
    [
        pytest.param(None, None, "ok", id="well"),
        pytest.param("the disk is full", None, "degraded", id="no store"),
        pytest.param(None, FAILED, "stale", id="old data"),
        pytest.param("the disk is full", FAILED, "stale", id="both"),
    ],
)
def test_health_says_the_worst_in_a_word(
    application: Application, trouble: str | None, error: Any, status: str
) -> None:
    application.hub = a_hub(trouble)
    application.reloader.error = error

    assert health(application)["status"] == status


def test_health_reports_the_faults_of_the_last_reload(application: Application) -> None:
    application.reloader.error = FAILED

    assert health(application)["last_reload_error"] == FAILED


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        pytest.param(None, "here", id="well"),
        pytest.param("the disk is full", "the disk is full", id="no store"),
    ],
)
def test_health_reports_the_hub_and_its_subscriptions(
    application: Application, trouble: str | None, said: str
) -> None:
    application.hub = a_hub(trouble)

    document = health(application)

    assert document["hub"] == said
    assert document["subscriptions"] == {"active": 2}


def test_health_of_no_reviews_has_no_dates(tmp_path: Path) -> None:
    application = serving(write_files(tmp_path, SMALLEST))

    assert health(application)["reviews"] == {
        "count": 0,
        "unverified_left_out": 0,
        "earliest": None,
        "latest": None,
    }


# ---- At once or later: what is prepared or cached, and what takes time ----


def a_request(
    path: str, query: str = "", method: str = "GET", body: bytes = b"", **headers: str
) -> Request:
    fields = {"host": "a"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return Request(method, path, query, fields.get, body)


SINCE = links.SINCE_PATH + "2026-01-01"
NEWEST = f"/reviews/{APP.snapshot.dataset.reviews[0].id}"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param(a_request("/feed.xml"), 200, id="fixed document"),
        pytest.param(a_request("/"), 200, id="home page"),
        pytest.param(a_request("/healthz"), 200, id="health"),
        pytest.param(a_request("/reviews/"), 308, id="redirect"),
        pytest.param(a_request("*", method="OPTIONS"), 204, id="server"),
        pytest.param(a_request("/reviews", method="PUT"), 405, id="wrong method"),
        pytest.param(a_request("/reviews", method="OPTIONS"), 204, id="preflight"),
        pytest.param(a_request("/reviews", host=""), 400, id="no host"),
        pytest.param(a_request("/nothing"), 404, id="unknown path"),
        pytest.param(a_request("/nothing", accept=HTML), 404, id="its page"),
        pytest.param(a_request("/embed/x"), 404, id="wrong frame"),
    ],
)
def test_what_is_prepared_is_answered_at_once(asked: Request, status: int) -> None:
    response = APP.prepared(asked)

    assert response
    assert response.status == status


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param(a_request(links.SEARCH_PATH), 200, id="search"),
        pytest.param(a_request(links.SEARCH_PATH, "x=1"), 400, id="bad search"),
        pytest.param(a_request(SINCE), 200, id="since"),
        pytest.param(a_request("/reviews"), 200, id="list"),
        pytest.param(a_request(NEWEST), 200, id="review"),
        pytest.param(a_request("/embed"), 200, id="frame"),
        pytest.param(a_request("/reviews/x"), 404, id="unknown review"),
        pytest.param(a_request("/mcp", method="POST", body=b"{"), 415, id="mcp"),
        pytest.param(a_request(links.HUB_PATH, method="POST"), 404, id="hub"),
    ],
)
def test_what_takes_time_is_left_to_a_thread(
    application: Application, asked: Request, status: int
) -> None:
    assert application.prepared(asked) is None
    assert application.respond(asked).status == status


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(
    "path", [links.SEARCH_PATH, "/reviews", "/embed", SINCE, NEWEST]
)
def test_a_computed_response_is_at_hand_from_then_on(
    application: Application, path: str, coding: str
) -> None:
    asked = a_request(path, "limit=3", accept_encoding=coding)

    response = application.respond(asked)

    assert application.prepared(asked) == response


@pytest.mark.parametrize(
    ("path", "is_the_same"),
    [
        pytest.param(links.SEARCH_PATH, False, id="search"),
        pytest.param("/reviews", False, id="list"),
        pytest.param("/embed", False, id="frame"),
        pytest.param(SINCE, True, id="since"),
        pytest.param(NEWEST, True, id="review"),
    ],
)
def test_another_query_string_is_another_content_where_it_is_read(
    application: Application, path: str, is_the_same: bool
) -> None:
    application.respond(a_request(path, "limit=3"))

    at_hand = application.prepared(a_request(path, "limit=4"))

    assert (at_hand is not None) is is_the_same


def test_only_the_hub_waits_for_the_disk() -> None:
    waiting = [
        path
        for path in app.ROUTES
        if APP.waits_for_disk(a_request(path, method="POST"))
    ]

    assert waiting == [links.HUB_PATH]


def test_a_form_is_passed_to_the_hub_and_its_answer_is_a_line_of_text(
    application: Application,
) -> None:
    hub = application.hub = Mock(answer=Mock(return_value=(202, "accepted", ())))
    form = a_request(links.HUB_PATH, "", "POST", b"hub.mode=x", content_type="a/b")

    response = application.respond(form)

    assert response.body == b"accepted\n"
    hub.answer.assert_called_once_with("a/b", b"hub.mode=x")


def since(
    application: Application, coding: str = "", day: str = "2020-01-01"
) -> messages.Response:
    return application.respond(
        a_request(links.SINCE_PATH + day, accept_encoding=coding)
    )


def test_since_is_sent_as_slices_of_all_reviews_without_a_copy() -> None:
    whole = APP.snapshot.dataset.reviews_json

    pieces = since(APP).body

    assert isinstance(pieces, list)
    assert [piece.obj is whole for piece in pieces if len(piece) > 1000] == [True]


def test_since_is_compressed_for_a_client_that_accepts_gzip() -> None:
    compressed = since(APP, "gzip")

    assert dict(compressed.headers)["Content-Encoding"] == "gzip"
    assert gzip.decompress(joined(compressed.body)) == joined(since(APP).body)


def test_since_of_more_than_a_megabyte_is_not_compressed(tmp_path: Path) -> None:
    reviews = [review(str(number), text="x" * 10_000) for number in range(105)]
    application = serving(write_files(tmp_path, a_file(*reviews)))

    response = since(application, "gzip")

    assert size_of(response.body) > 1024 * 1024
    assert "Content-Encoding" not in dict(response.headers)


def with_other_reviews(application: Application) -> Application:
    """An application whose reviews have another digest."""
    snapshot = application.snapshot
    dataset = replace(snapshot.dataset, reviews_digest=b"another")
    other = serving(SAMPLE)
    other.reloader.snapshot = snapshot._replace(
        site=replace(snapshot.site, dataset=dataset), cache=RepresentationCache()
    )
    return other


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_the_tag_of_since_changes_with_reviews_and_day(
    application: Application, coding: str
) -> None:
    other = with_other_reviews(application)

    responses = [
        since(application, coding, "2026-10-01"),
        since(application, coding, "2026-10-02"),
        since(other, coding, "2026-10-01"),
        since(other, coding, "2026-10-02"),
    ]

    tags = {dict(response.headers)["ETag"] for response in responses}
    assert len(tags) == 4
