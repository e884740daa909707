"""The application without a server: every request gets a defined response; internal errors are logged.

What it says over HTTP is in `test_http.py`, what it does when files change in `test_reload.py`.
"""

import gzip
import io
import json
import logging
import re
import string
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock
from urllib.parse import unquote, unquote_to_bytes, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_samples import SMALLEST, write_files
from services import SAMPLE
from small_files import a_file, review

import reviewsd
from reviewslib import links
from reviewslib.process.settings import Settings
from reviewslib.web import app
from reviewslib.web.app import Application
from reviewslib.web.representations import HTML_TYPE, JSON_TYPE, Request, Response, joined, resolved, size_of

APP = reviewsd.application_of(Settings(data=SAMPLE))
VARY = "Accept, Accept-Encoding"


@pytest.fixture
def application() -> Application:
    """One that the test may change."""
    return reviewsd.application_of(Settings(data=SAMPLE))


def call(
    application: Application, method: str, path: str, query: str = "", body: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request as a WSGI server would pass it on; texts of one character a byte."""
    environ: dict[str, Any] = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
    environ |= {"SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "a", "wsgi.input": io.BytesIO(body)}
    environ |= {"CONTENT_LENGTH": str(len(body))} if body else {}
    environ |= {n if n.startswith("CONTENT_") else f"HTTP_{n}": value for n, value in headers.items()}
    started: list[Any] = []
    content = b"".join(application(environ, lambda status, fields: started.extend((status, fields))))
    return int(started[0][:3]), dict(started[1]), content


def assert_defined(answer: tuple[int, dict[str, str], bytes], *allowed: int) -> None:
    status, headers, body = answer
    assert status in allowed
    assert "".join(map("".join, headers.items())).isprintable(), "a header could be split"
    if status == 400:
        assert json.loads(body)["issues"]


latin = st.text(st.characters(max_codepoint=255), max_size=60)
names = st.sampled_from(list(APP.program.contract.search_parameters))
queries = latin | st.lists(st.tuples(names, st.text(string.printable, max_size=12)), max_size=6).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)


@given(query=queries, day=latin)
def test_any_query_string_or_date_segment_gives_200_or_issues(query: str, day: str) -> None:
    assert_defined(call(APP, "GET", "/api/reviews/search", query), 200, 400)
    assert_defined(call(APP, "GET", "/api/reviews/since/" + day), 200, 400)


@given(path=latin, method=st.sampled_from(["GET", "HEAD", "OPTIONS", "POST", "X"]))
def test_any_path_and_method_give_a_defined_answer(path: str, method: str) -> None:
    assert_defined(call(APP, method, path), 200, 204, 404, 405, *([400] if "since" in path else []))


ODD_IDS = ["a/b", "/", "?#", "%2F", "a b+c", "é\u0301", "\U0001f600", "...", "../x", "\ufffd", "&<>\"'"]
ODD_IDS.append("x" * 200)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.sampled_from(ODD_IDS) | st.text(min_size=1, max_size=200), unique=True))
def test_the_address_of_a_review_leads_to_it_whatever_its_id(ids: list[str]) -> None:
    ids = [id for id in ids if id not in (".", "..") and not re.search("[\x00-\x1f\x7f-\x9f]", id)]
    with TemporaryDirectory() as directory:
        data = write_files(Path(directory), a_file(*map(review, ids)))
        application = reviewsd.application_of(Settings(data=data))
    for served in json.loads(application.snapshot.dataset.reviews_json)["reviews"]:
        path = served["page_url"].removeprefix("http://127.0.0.1:8080")
        assert re.fullmatch("/reviews/[A-Za-z0-9_.~%-]+", path)
        decoded = unquote_to_bytes(path).decode("latin-1")
        for kind, accept in ((HTML_TYPE, "text/html"), (JSON_TYPE, JSON_TYPE)):
            status, headers, body = call(application, "GET", decoded, ACCEPT=accept)
            assert (status, headers["Content-Type"], headers["Vary"]) == (200, kind, VARY)
        assert json.loads(body) == served


@pytest.mark.parametrize("path", ["/reviews/nobody", "/reviews/\xff", "/reviews/01K5FFH1CJKPYMT78VAF8E32YN/"])
def test_an_unknown_review_is_404_as_a_page_or_json(path: str) -> None:
    for kind, accept in (("text/html; charset=utf-8", "*/*"), ("application/json", "application/json")):
        status, headers, body = call(APP, "GET", path, ACCEPT=accept)
        assert (status, headers["Content-Type"], headers["Cache-Control"]) == (404, kind, "no-store")
        assert headers["Vary"] == VARY
        assert b"no such review" in body or json.loads(body)["status"] == 404


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [(BROWSER, True), ("text/html", True), ("", False), (JSON_TYPE, False), ("text/html;q=0", False)],
)
def test_an_unknown_path_is_a_page_where_html_is_preferred_else_json(accept: str, is_page: bool) -> None:
    for method, path in (("GET", "/wp-login.php"), ("POST", "/reviews.html"), ("HEAD", "/<b>elsewhere")):
        status, headers, body = call(APP, method, path, ACCEPT=accept)
        kind = HTML_TYPE if is_page else JSON_TYPE
        assert (status, headers["Content-Type"], headers["Cache-Control"]) == (404, kind, "no-store")
        assert headers["Vary"] == VARY
        assert ("Content-Security-Policy" in headers) is is_page
        if method != "HEAD":
            assert b"<h1>There is no such page</h1>" in body or json.loads(body)["status"] == 404
        assert b"elsewhere" not in body


def test_a_response_without_content_has_no_content_length() -> None:
    for method, status in (("OPTIONS", 204), ("GET", 304), ("HEAD", 304)):
        answered, headers, body = call(APP, method, "/reviews.json", IF_NONE_MATCH="*")
        assert (answered, "Content-Length" in headers, body) == (status, False, b"")


HEADERS = [
    *("ACCEPT", "ACCEPT_ENCODING", "CONTENT_ENCODING", "CONTENT_LENGTH", "CONTENT_TYPE", "HOST", "ORIGIN"),
    *("IF_MODIFIED_SINCE", "IF_NONE_MATCH"),
    *("MCP_METHOD", "MCP_NAME", "MCP_PROTOCOL_VERSION", "MCP_SESSION_ID"),
]
PIECES = [
    *("\"*,;=%'/@:[]<()?-+.01 \t\\"),
    *("W/", "q=", "q=0.", "9e9", "nan", "a*0*=utf-8''", "charset=", "[::1]", "v1.", "http://", "=?base64?"),
    *("gzip", "identity", "application/json", "text/html", "text/event-stream"),
    *("2026-07-28", "2025-06-18", "tools/call", "9" * 5000),
]
values = latin | st.lists(st.sampled_from(PIECES)).map("".join)
PATHS = [*app.ROUTES, "/api/reviews/since/2026-01-01", "/nothing"]


@pytest.mark.slow
def test_no_header_value_causes_a_server_error(caplog: pytest.LogCaptureFixture) -> None:
    @settings(max_examples=1000)
    @given(path=st.sampled_from(PATHS), method=st.sampled_from(["GET", "POST"]), data=st.data())
    def check(path: str, method: str, data: st.DataObject) -> None:
        header = data.draw(st.sampled_from(HEADERS))
        value = data.draw(values)
        status, headers, _ = call(APP, method, path, **{header: value})
        assert 200 <= status < 500
        assert "".join(map("".join, headers.items())).isprintable(), "a header could be split"

    check()
    assert not caplog.records


# ---- The list of reviews for people: what the search finds, a page at a time ----

LIST_NAMES = [name for name in APP.program.contract.list_parameters if name != "page"]
VALUES = ["", "back", "é", "Okafor", "massage-therapy", "Massage Therapy", "4", "4.5", "5", "7"]
VALUES += ["2025-06-01", "2026-01-01", "GOOGLE", "yelp"]


def listed_ids(query: str) -> tuple[int, list[str]]:
    """The status of the pages of a list, and the ids of all reviews on them."""
    ids: list[str] = []
    for number in range(1, 12):
        status, _, body = call(APP, "GET", "/reviews", f"{query}&page={number}")
        if status != 200:
            break
        ids += [unquote(id) for id in re.findall('<p><a href="[^"]*/reviews/([^"]*)"><time', body.decode())]
    return (status if number == 1 else 200), ids


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LIST_NAMES), st.sampled_from(VALUES)), max_size=3))
def test_the_list_and_the_search_find_the_same_for_the_same_values(pairs: list[tuple[str, str]]) -> None:
    query, found = urlencode(pairs), []
    for offset in (0, 100):
        status, _, body = call(APP, "GET", "/api/reviews/search", f"{query}&limit=100&offset={offset}")
        found += json.loads(body).get("reviews", [])
    assert listed_ids(query) == (status, [review["id"] for review in found])


def test_unknown_parameters_of_the_list_are_ignored() -> None:
    asked = ("query=back&page=2", "utm_source=x&page=2&fbclid=y&query=back&limit=3&offset=-1&%ff=1&rating=")
    first, second = (call(APP, "GET", "/reviews", query) for query in asked)
    assert first == second
    assert b"utm_source" not in second[2]
    assert call(APP, "GET", "/reviews", "query=back") != first


@given(query=queries)
def test_any_query_string_gives_a_page(query: str) -> None:
    status, headers, body = call(APP, "GET", "/reviews", query)
    assert status in (200, 400)
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert body.decode().endswith("</html>")


def test_a_page_beyond_the_last_leads_to_the_last() -> None:
    status, headers, body = call(APP, "GET", "/reviews", "rating=4&page=9")
    assert (status, headers["Cache-Control"]) == (404, "no-store")
    assert b'/reviews?rating=4&amp;page=2#results">Page 2, the last one<' in body
    assert call(APP, "GET", "/reviews", "page=8")[0] == 200


# ---- Errors ----

NO_HOST, BAD_HOST = "The request has no Host header.", "The Host header is repeated or not a host."
WRONG = "One parameter is wrong. See issues."
NOT_A_NUMBER, UNKNOWN = "expected a whole number such as 5", "unknown parameter; did you mean query?"


@pytest.mark.parametrize(
    ("line", "fields", "status", "detail", "issue"),
    [
        ("GET /x", {}, 404, "There is nothing at /x. /.well-known/openapi.json lists the endpoints.", None),
        ("GET /reviews/x", {"ACCEPT": "application/json"}, 404, "No review has the id x.", None),
        ("PUT /feed.xml", {}, 405, "PUT is not allowed; allowed: GET, HEAD, OPTIONS.", None),
        ("GET *", {}, 405, "GET is not allowed; allowed: OPTIONS.", None),
        ("GET /", {"HOST": ""}, 400, NO_HOST, (None, "", NO_HOST)),
        ("GET /", {"HOST": "[1:2]"}, 400, BAD_HOST, (None, "[1:2]", BAD_HOST)),
        ("GET /api/reviews/search?limit=%ff", {}, 400, WRONG, ("limit", "\ufffd", NOT_A_NUMBER)),
        ("GET /api/reviews/search?querx=", {}, 400, WRONG, ("querx", "", UNKNOWN)),
    ],
)
def test_an_error_is_an_object_that_says_what_is_wrong(
    line: str, fields: dict[str, str], status: int, detail: str, issue: tuple[str | None, str, str] | None
) -> None:
    method, _, target = line.partition(" ")
    path, _, query = target.partition("?")
    answered, headers, body = call(APP, method, path, query, **fields)
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    if issue:
        document["issues"] = [dict(zip(("parameter", "value", "message"), issue, strict=True))]
    assert (answered, headers["Cache-Control"]) == (status, "no-store")
    assert json.loads(body) == document


# ---- Health ----


def health(application: Application) -> Any:
    status, headers, body = call(application, "GET", "/healthz")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert headers["Cache-Control"] == "no-store"
    return json.loads(body)


def test_health_describes_the_data_that_are_served(application: Application) -> None:
    application.started_at -= 100
    answers = {path: call(application, "GET", path)[1] for path in links.DATA_PATHS}
    changed = parsedate_to_datetime(call(application, "GET", "/api/reviews/search")[1]["Last-Modified"])
    assert health(application) == {
        "status": "ok",
        "version": "1.0.0",
        "uptime_seconds": 100,
        "reviews": {"count": 160, "unverified_left_out": 4, "earliest": "2022-11-09", "latest": "2026-11-15"},
        "insights": {"review_count": 160, "generated_at": "2026-11-16T09:30:00-08:00"},
        "hub": "the hub does not run on this instance",
        "subscriptions": None,
        "last_modified": f"{changed:%Y-%m-%dT%H:%M:%SZ}",
        "digests": {path: headers["ETag"].strip('"') for path, headers in answers.items()},
        "last_reload_error": None,
    }


FAILED = {"at": "now", "faults": ["x"]}


@pytest.mark.parametrize(
    ("trouble", "error", "status"),
    [(None, None, "ok"), ("the disk is full", None, "degraded"), ("the disk is full", FAILED, "stale")],
)
def test_health_tells_trouble_of_the_hub_and_a_failed_reload(
    application: Application, trouble: Any, error: Any, status: str
) -> None:
    application.hub = Mock(trouble=Mock(return_value=trouble), counts=Mock(return_value={"verified": 2}))
    application.reloader.error = error
    expected = {"status": status, "hub": trouble or "here", "last_reload_error": error}
    assert health(application).items() >= (expected | {"subscriptions": {"verified": 2}}).items()


def test_health_of_no_reviews_has_no_dates(tmp_path: Path) -> None:
    application = reviewsd.application_of(Settings(data=write_files(tmp_path, SMALLEST)))
    nothing = {"count": 0, "unverified_left_out": 0, "earliest": None, "latest": None}
    assert health(application)["reviews"] == nothing


# ---- Faults of our own ----


def test_an_unexpected_exception_is_logged_once_and_answered_with_its_id(
    application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    application.reloader.snapshot = application.snapshot._replace(dataset=None)  # type: ignore[arg-type]
    status, headers, body = call(application, "GET", "/api/reviews/search")
    assert (status, headers["Cache-Control"]) == (500, "no-store")
    assert b"AttributeError" not in body
    request_id = json.loads(body)["request_id"]
    assert json.loads(body)["detail"] == f"An internal error, logged as request {request_id}."
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert logged == [f"request {request_id}: GET '/api/reviews/search' failed"]


# ---- At once or later: what is prepared or cached, and what takes time ----


def a_request(path: str, query: str = "", method: str = "GET", body: bytes = b"", **headers: str) -> Request:
    fields = {"host": "a"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, query, fields.get, body)


a_post = partial(a_request, method="POST")


NEWEST = f"/reviews/{APP.snapshot.dataset.reviews[0].id}"
COMPUTED = ["/api/reviews/search", "/api/reviews/since/2026-01-01", "/reviews", NEWEST, "/embed"]


@pytest.mark.parametrize("path", [*links.FIXED_PATHS, "/", "/healthz", "/nothing", "/api/reviews"])
def test_prepared_responses_and_json_errors_are_returned_at_once(path: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "PUT"):
        assert isinstance(APP.respond(a_request(path, method=method)), Response)


@pytest.mark.parametrize("path", COMPUTED)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_computed_response_is_made_by_a_function_and_cached(
    application: Application, path: str, coding: str
) -> None:
    asked = a_request(path, "limit=3", accept_encoding=coding)
    for method in ("HEAD", "GET"):
        unseen = application.respond(asked._replace(method=method, query_string=f"limit={method}"))
        assert not isinstance(unseen, Response) or path == NEWEST, "its query does not count"
    response = resolved(application.respond(asked))
    assert response.status == 200
    assert application.respond(asked) == response, "at once"


@pytest.mark.parametrize("request_body", [b"", b"{", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
def test_mcp_responses_and_404_pages_are_made_by_a_function(request_body: bytes) -> None:
    asked = a_post("/mcp", body=request_body, content_type="application/json")
    pages = a_request("/nothing", accept="text/html"), a_request("/reviews/x")
    for one in (asked, a_request("/mcp"), *pages):
        assert not isinstance(answer := APP.respond(one), Response)
        assert resolved(answer).status in (200, 400, 404, 405)


def test_a_hub_response_is_made_by_a_function_and_its_path_listed(application: Application) -> None:
    assert isinstance(application.respond(a_post(links.HUB_PATH)), Response), "there is no hub"
    hub = application.hub = Mock(answer=Mock(return_value=(202, "accepted", ())))
    answer = application.respond(a_post(links.HUB_PATH, body=b"hub.mode=x", content_type="a/b"))
    assert not isinstance(answer, Response)
    hub.answer.assert_not_called()
    assert resolved(answer).body == b"accepted\n"
    assert hub.answer.call_args_list[0].args == ("a/b", b"hub.mode=x")
    assert {links.HUB_PATH} == app.STORE_PATHS


def test_a_too_large_body_from_another_server_is_413() -> None:
    status, _, body = call(APP, "POST", "/mcp", body=b" " * 65_537, CONTENT_TYPE="application/json")
    assert status == 413
    assert json.loads(body)["error"]["message"] == "The body is larger than 65536 bytes."


def since(application: Application, coding: str = "", day: str = "2020-01-01") -> Response:
    return resolved(application.respond(a_request(links.SINCE_PATH + day, accept_encoding=coding)))


def test_since_responses_are_pieces_and_packed_up_to_a_megabyte(tmp_path: Path) -> None:
    plain, packed = since(APP), since(APP, "gzip")
    assert isinstance(plain.body, list)
    whole = [APP.snapshot.dataset.reviews_json]
    assert [piece.obj for piece in plain.body if len(piece) > 1000] == whole, "which takes no memory"
    assert gzip.decompress(joined(packed.body)) == joined(plain.body)
    texts = (review(str(number), text="x" * 10_000) for number in range(105))
    large = since(reviewsd.application_of(Settings(data=write_files(tmp_path, a_file(*texts)))), "gzip")
    assert size_of(large.body) > 1024 * 1024
    assert "Content-Encoding" not in dict(large.headers)


@pytest.mark.slow
def test_the_tag_of_since_changes_with_reviews_day_and_coding_alone() -> None:
    def tags(reviews: bytes, day: str) -> list[str]:
        application = reviewsd.application_of(Settings(data=SAMPLE))
        dataset = replace(application.snapshot.dataset, reviews_digest=reviews)
        application.reloader.snapshot = application.snapshot._replace(dataset=dataset)
        return [dict(since(application, coding, day).headers)["ETag"] for coding in ("", "gzip")]

    three = [*tags(b"a", "2026-10-01"), *tags(b"a", "2026-10-02"), *tags(b"b", "2026-10-01")]
    assert len(set(three)) == 6
    assert tags(b"a", "2026-10-01") == three[:2]
