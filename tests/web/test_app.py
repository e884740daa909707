"""The application without a server: every request gets a defined response.

What it says over HTTP is in `test_http.py`, what it does when files change in
`test_reload.py`.

Sections: applications - any request - addresses of reviews - the list of reviews -
errors - pages for errors - health - at once or later - the hub - since.
"""

import gzip
import json
import logging
import re
import string
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote, unquote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.data_sets import SMALLEST, write_files
from lab.services import SAMPLE, Response, call
from lab.small_files import a_file, review

import reviewsd
from reviewslib import links, messages
from reviewslib.messages import Request, joined, size_of
from reviewslib.process.settings import Settings
from reviewslib.web import routes
from reviewslib.web.app import Application
from reviewslib.web.reload import Reloader

HTML = "text/html; charset=utf-8"
JSON = "application/json"

# ---- Applications ----

# No test changes it.
APP = reviewsd.application_of(Settings(data=SAMPLE))


def serving(data: Path) -> Application:
    """An application that serves other data."""
    return Application(Reloader(APP.program, data, APP.urls), APP.urls, APP.mcp)


@pytest.fixture
def application() -> Application:
    """An application that the test may change."""
    return serving(SAMPLE)


# ---- Any request ----


def assert_defined(answer: Response) -> None:
    """Headers cannot be split, a page is whole, and a refusal in JSON says why."""
    for name, value in answer.headers.items():
        assert (name + value).isprintable()
    kind = answer.headers.get("content-type")
    if kind == HTML:
        assert answer.body.decode().endswith("</html>")
    if kind == JSON and answer.status == 400:
        # MCP has errors in place of issues.
        assert json.loads(answer.body).keys() & {"issues", "error"}


NAMES = list(APP.program.contract.search_parameters)
texts = st.text(string.printable, max_size=12)
latin_texts = st.text(st.characters(max_codepoint=255), max_size=60)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Query strings of parameters that the search knows."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(NAMES), texts), max_size=6))
    return "&".join(f"{name}={value}" for name, value in pairs)


@pytest.mark.parametrize(
    "path", [links.SEARCH_PATH, links.REVIEW_LIST_PATH, links.EMBED_PATH]
)
@given(query=latin_texts | queries())
def test_any_query_string_gives_200_or_400(path: str, query: str) -> None:
    answer = call(APP, f"{path}?{query}")

    assert answer.status in (200, 400)
    assert_defined(answer)


any_method = st.sampled_from(["GET", "OPTIONS", "POST", "X"])


@given(path=latin_texts, method=any_method)
def test_any_path_and_method_give_a_defined_answer(path: str, method: str) -> None:
    answer = call(APP, quote(path.encode("latin-1")), method)

    assert answer.status in (200, 204, 404, 405)
    assert_defined(answer)


@given(day=latin_texts, method=any_method)
def test_any_day_and_method_give_a_defined_answer(day: str, method: str) -> None:
    answer = call(APP, links.SINCE_PATH + quote(day.encode("latin-1")), method)

    assert answer.status in (200, 204, 400, 405)
    assert_defined(answer)


# Parts of field values, at which parsers decide.
PIECES = [
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
    "gzip",
    "identity",
    JSON,
    "text/html",
    "text/event-stream",
    "2026-07-28",
    "2025-06-18",
    "tools/call",
    *"\"*,;=%'/@:[]<()?-+.01 \t\\",
    "9" * 5000,
]
FIELDS = [
    "accept",
    "accept_encoding",
    "content_encoding",
    "content_type",
    "host",
    "if_modified_since",
    "if_none_match",
    "mcp_method",
    "mcp_name",
    "mcp_protocol_version",
    "mcp_session_id",
    "origin",
]
PATHS = [*routes.ROUTES, "/api/reviews/since/2026-01-01", "/nothing"]


@pytest.mark.slow
@settings(max_examples=1000)
@given(
    path=st.sampled_from(PATHS),
    method=st.sampled_from(["GET", "POST"]),
    name=st.sampled_from(FIELDS),
    value=latin_texts | st.lists(st.sampled_from(PIECES)).map("".join),
)
def test_no_header_value_causes_a_server_error(
    path: str, method: str, name: str, value: str
) -> None:
    answer = call(APP, path, method, **{name: value})

    assert answer.status < 500
    assert_defined(answer)


# ---- Addresses of reviews ----

ODD_IDS = [
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
]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """An application whose reviews have odd ids."""
    data = tmp_path_factory.mktemp("odd")
    return serving(write_files(data, a_file(*map(review, ODD_IDS))))


def review_of(application: Application, id: str) -> Any:
    """The review as the document of all reviews has it."""
    return json.loads(bytes(application.snapshot.dataset.reviews_by_id[id].json))


def path_of(application: Application, id: str) -> str:
    """The path of the address that a review says it has."""
    page_url = str(review_of(application, id)["page_url"])
    return page_url.removeprefix(application.urls.base_url)


@pytest.mark.parametrize("id", ODD_IDS)
def test_the_address_of_a_review_needs_no_more_quoting(
    odd: Application, id: str
) -> None:
    path = path_of(odd, id)

    assert re.fullmatch("/reviews/[A-Za-z0-9_.~%-]+", path)


@pytest.mark.parametrize("id", ODD_IDS)
def test_the_address_of_a_review_leads_to_its_page(odd: Application, id: str) -> None:
    answer = call(odd, path_of(odd, id), accept="text/html")

    assert answer.status == 200
    assert answer.headers["content-type"] == HTML


@pytest.mark.parametrize("id", ODD_IDS)
def test_the_address_of_a_review_leads_to_its_json(odd: Application, id: str) -> None:
    answer = call(odd, path_of(odd, id), accept=JSON)

    assert answer.headers["content-type"] == JSON
    assert json.loads(answer.body) == review_of(odd, id)


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
selections = st.lists(
    st.tuples(st.sampled_from(LIST_NAMES), st.sampled_from(VALUES)), max_size=3
)
# The sample has 160 reviews; a page has 20, and a search gives 100 at most.
PAGE_NUMBERS = range(1, 10)
OFFSETS = (0, 100)


def listed_ids(query: str) -> Iterator[str]:
    """The ids of all reviews in the list."""
    for number in PAGE_NUMBERS:
        answer = call(APP, f"/reviews?{query}&page={number}")
        if answer.status == 200:
            page = answer.body.decode()
            ids = re.findall('<p><a href="[^"]*/reviews/([^"]*)"><time', page)
            yield from map(unquote, ids)


def found_ids(query: str) -> Iterator[str]:
    """The ids of all reviews that the search finds."""
    for offset in OFFSETS:
        answer = call(APP, f"{links.SEARCH_PATH}?{query}&limit=100&offset={offset}")
        for found in json.loads(answer.body).get("reviews", ()):
            yield found["id"]


@settings(max_examples=60)
@given(selections)
def test_the_list_and_the_search_find_the_same(selection: list[Any]) -> None:
    query = urlencode(selection)

    assert list(listed_ids(query)) == list(found_ids(query))


@settings(max_examples=60)
@given(selections)
def test_the_list_and_the_search_refuse_the_same(selection: list[Any]) -> None:
    query = urlencode(selection)

    listed = call(APP, f"/reviews?{query}")
    searched = call(APP, f"{links.SEARCH_PATH}?{query}")

    assert listed.status == searched.status


@pytest.mark.parametrize(
    "unknown",
    ["utm_source=x", "fbclid=y", "limit=3", "offset=-1", "%ff=1", "rating="],
)
def test_the_list_ignores_unknown_parameters(unknown: str) -> None:
    usual = call(APP, "/reviews?query=back&page=2")

    answer = call(APP, f"/reviews?{unknown}&query=back&page=2")

    assert answer == usual


def test_the_list_reads_the_parameters_that_it_knows() -> None:
    first = call(APP, "/reviews?query=back")

    second = call(APP, "/reviews?query=back&page=2")

    assert second.status == 200
    assert second.body != first.body


# ---- Errors ----


def error_of(answer: Response) -> Any:
    """The object of an error response."""
    document = json.loads(answer.body)
    assert document["type"] == "about:blank"
    assert document["title"] == HTTPStatus(answer.status).phrase
    assert document["status"] == answer.status
    return document


def issue(parameter: str | None, value: str, message: str) -> dict[str, str | None]:
    return {"parameter": parameter, "value": value, "message": message}


def test_an_unknown_review_is_named() -> None:
    answer = call(APP, "/reviews/x", accept=JSON)

    assert answer.status == 404
    assert error_of(answer)["detail"] == "No review has the id x."


def test_the_server_as_a_whole_cannot_be_read() -> None:
    answer = call(APP, "*")

    assert answer.status == 405
    assert error_of(answer)["detail"] == "GET is not allowed; allowed: OPTIONS."


def test_a_body_that_ends_early_is_an_issue() -> None:
    answer = call(APP, "/reviews", "POST", content_length="9")

    too_short = "The body is shorter than its Content-Length."
    error = error_of(answer)
    assert answer.status == 400
    assert error["detail"] == too_short
    assert error["issues"] == [issue(None, "", too_short)]


NOT_A_NUMBER = issue("limit", "\ufffd", "expected a whole number such as 5")
UNKNOWN = issue("querx", "", "unknown parameter; did you mean query?")


@pytest.mark.parametrize(
    ("query", "detail", "issues"),
    [
        pytest.param(
            "querx=", "One parameter is wrong. See issues.", [UNKNOWN], id="one"
        ),
        pytest.param(
            "limit=%ff&querx=",
            "2 parameters are wrong. See issues.",
            [NOT_A_NUMBER, UNKNOWN],
            id="two",
        ),
    ],
)
def test_every_wrong_parameter_is_an_issue(
    query: str, detail: str, issues: list[dict[str, str]]
) -> None:
    answer = call(APP, f"{links.SEARCH_PATH}?{query}")

    error = error_of(answer)
    assert answer.status == 400
    assert error["detail"] == detail
    assert error["issues"] == issues


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


class Broken(Exception):
    """A bug of the service."""


@pytest.fixture
def broken(application: Application) -> Application:
    """An application whose health cannot be told."""
    application.hub = Mock(trouble=Mock(side_effect=Broken("a secret")))
    return application


def test_an_unexpected_exception_is_answered_with_an_id(broken: Application) -> None:
    answer = call(broken, links.HEALTH_PATH)

    error = error_of(answer)
    said = f"An internal error, logged as request {error['request_id']}."
    assert answer.status == 500
    assert error["detail"] == said
    assert answer.headers["cache-control"] == "no-store"


def test_an_unexpected_exception_is_told_no_stranger(broken: Application) -> None:
    answer = call(broken, links.HEALTH_PATH)

    assert b"Broken" not in answer.body
    assert b"secret" not in answer.body


def test_an_unexpected_exception_is_logged_once_with_its_id(
    broken: Application, caplog: pytest.LogCaptureFixture
) -> None:
    answer = call(broken, links.HEALTH_PATH)

    request_id = json.loads(answer.body)["request_id"]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == f"request {request_id}: GET '/healthz' failed"
    assert "Broken: a secret" in caplog.text


# ---- Pages for errors ----

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("method", "path", "accept"),
    [
        pytest.param("GET", "/x", BROWSER, id="browser"),
        pytest.param("GET", "/x", "text/html", id="HTML"),
        pytest.param("POST", "/reviews.html", BROWSER, id="form of a browser"),
        pytest.param("GET", "/reviews/%ff", "*/*", id="no review"),
    ],
)
def test_a_404_is_a_page_for_who_prefers_html(
    method: str, path: str, accept: str
) -> None:
    answer = call(APP, path, method, accept=accept)

    assert answer.status == 404
    assert answer.headers["content-type"] == HTML
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "accept"),
    [
        pytest.param("GET", "/x", "", id="nothing said"),
        pytest.param("GET", "/x", JSON, id="JSON"),
        pytest.param("GET", "/x", "text/html;q=0", id="no HTML"),
        pytest.param("POST", "/reviews.html", "", id="form of a program"),
        pytest.param("GET", "/reviews/x", JSON, id="no review"),
    ],
)
def test_a_404_is_json_for_everybody_else(method: str, path: str, accept: str) -> None:
    answer = call(APP, path, method, accept=accept)

    assert answer.status == 404
    assert answer.headers["content-type"] == JSON
    assert "content-security-policy" not in answer.headers


@pytest.mark.parametrize("accept", [BROWSER, JSON])
@pytest.mark.parametrize("path", ["/x", "/reviews/x"])
def test_a_404_says_that_it_differs_by_type(path: str, accept: str) -> None:
    answer = call(APP, path, accept=accept)

    assert answer.headers["vary"] == "Accept, Accept-Encoding"


@pytest.mark.parametrize("accept", [BROWSER, JSON])
@pytest.mark.parametrize("path", ["/x", "/reviews/x"])
def test_no_cache_keeps_a_404(path: str, accept: str) -> None:
    answer = call(APP, path, accept=accept)

    assert answer.headers["cache-control"] == "no-store"


# ---- Health ----


def health(application: Application) -> Any:
    return json.loads(call(application, links.HEALTH_PATH).body)


def test_health_is_json_that_no_cache_keeps() -> None:
    answer = call(APP, links.HEALTH_PATH)

    assert answer.status == 200
    assert answer.headers["content-type"] == JSON
    assert answer.headers["cache-control"] == "no-store"


def test_health_describes_the_service_and_its_data(application: Application) -> None:
    application.started_at -= 100

    document = health(application)

    # Their claims follow.
    del document["last_modified"]
    del document["digests"]
    assert document == {
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
        "last_reload_error": None,
    }


def test_health_says_since_when_the_data_are_current() -> None:
    search = call(APP, links.SEARCH_PATH)

    changed = parsedate_to_datetime(search.headers["last-modified"])
    assert health(APP)["last_modified"] == f"{changed:%Y-%m-%dT%H:%M:%SZ}"


def test_health_has_the_tags_of_the_data() -> None:
    tags = {path: call(APP, path).headers["etag"] for path in links.DATA_PATHS}

    digests = health(APP)["digests"]

    assert {path: f'"{digest}"' for path, digest in digests.items()} == tags


FAILED = {"at": "now", "faults": ["x"]}


def a_hub(trouble: str | None) -> Any:
    """A hub with two subscriptions, whose store may be in trouble."""
    hub = Mock()
    hub.trouble.return_value = trouble
    hub.counts.return_value = {"active": 2}
    return hub


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

SINCE = links.SINCE_PATH + "2026-01-01"
NEWEST = f"/reviews/{APP.snapshot.dataset.reviews[0].id}"


def a_request(
    path: str, query: str = "", method: str = "GET", body: bytes = b"", **headers: str
) -> Request:
    fields = {"host": "a"}
    for name, value in headers.items():
        fields[name.replace("_", "-")] = value
    return Request(method, path, query, fields.get, body)


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
    asked = {path: a_request(path, method="POST") for path in routes.ROUTES}

    waiting = [path for path in asked if APP.waits_for_disk(asked[path])]

    assert waiting == [links.HUB_PATH]


# ---- The hub ----


def test_a_form_is_passed_to_the_hub_and_its_answer_is_a_line_of_text(
    application: Application,
) -> None:
    hub = Mock(answer=Mock(return_value=(202, "accepted", ())))
    application.hub = hub
    form = a_request(
        links.HUB_PATH, method="POST", body=b"hub.mode=x", content_type="a/b"
    )

    response = application.respond(form)

    assert response.body == b"accepted\n"
    hub.answer.assert_called_once_with("a/b", b"hub.mode=x")


def test_an_instance_without_a_hub_says_so() -> None:
    answer = call(APP, links.HUB_PATH, "POST", b"hub.mode=subscribe")

    assert answer.status == 404
    assert answer.body == b"the hub does not run on this instance\n"


# ---- Since: the reviews from a day on ----


def since(
    application: Application, day: str = "2020-01-01", coding: str = ""
) -> messages.Response:
    asked = a_request(links.SINCE_PATH + day, accept_encoding=coding)
    return application.respond(asked)


def test_since_is_sent_as_slices_of_all_reviews_without_a_copy() -> None:
    whole = APP.snapshot.dataset.reviews_json

    pieces = since(APP).body

    assert isinstance(pieces, list)
    (slice,) = [piece for piece in pieces if len(piece) > 1000]
    assert slice.obj is whole


def test_since_is_compressed_for_a_client_that_accepts_gzip() -> None:
    compressed = since(APP, coding="gzip")

    assert dict(compressed.headers)["Content-Encoding"] == "gzip"
    assert gzip.decompress(joined(compressed.body)) == joined(since(APP).body)


def test_since_of_more_than_a_megabyte_is_not_compressed(tmp_path: Path) -> None:
    reviews = [review(str(number), text="x" * 10_000) for number in range(105)]
    application = serving(write_files(tmp_path, a_file(*reviews)))

    response = since(application, coding="gzip")

    assert size_of(response.body) > 1024 * 1024
    assert "Content-Encoding" not in dict(response.headers)


def tag_of(response: messages.Response) -> str:
    return dict(response.headers)["ETag"]


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_the_tag_of_since_changes_with_the_day(coding: str) -> None:
    one = since(APP, "2026-10-01", coding)

    another = since(APP, "2026-10-02", coding)

    assert tag_of(one) != tag_of(another)


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_the_tag_of_since_changes_with_a_review(tmp_path: Path, coding: str) -> None:
    before = serving(write_files(tmp_path, a_file(review(text="good"))))
    after = serving(write_files(tmp_path, a_file(review(text="fine"))))

    assert tag_of(since(before, coding=coding)) != tag_of(since(after, coding=coding))


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_the_tag_of_since_is_that_of_the_same_reviews(
    application: Application, coding: str
) -> None:
    assert tag_of(since(application, coding=coding)) == tag_of(
        since(APP, coding=coding)
    )
