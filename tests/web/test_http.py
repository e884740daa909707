"""HTTP: the same requests over a socket to the daemon, and to the WSGI application.

What the contract says of responses is in `test_http_contract.py`.

Sections: reads - every read - copies of a read - what changes no document - methods -
redirects - errors - hosts - MCP.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import pytest
from lab.contract_checks import CONTRACT, validator
from lab.services import Response

Ask = Callable[..., Response]

BASE_URL = "http://reviews.example"
HTML = "text/html; charset=utf-8"
JSON = "application/json"
MARKDOWN = "text/markdown; charset=utf-8"
SEARCH = "/api/reviews/search"
SINCE = "/api/reviews/since/2026-01-01"
MCP = "/mcp"
HUB = "/api/websub/hub"
NEWEST_REVIEW = "/reviews/01M7F1SV60XJ4PFV38D0FMZ6BZ"
TOPICS = ("/reviews.json", "/api/feed.json", "/feed.xml")

# ---- Reads ----


@dataclass(frozen=True)
class Read:
    """A request for data, and the media type of its answer."""

    path: str
    kind: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def by(self, ask: Ask, method: str = "GET", **headers: str) -> Response:
        return ask(self.path, method, **self.headers, **headers)


def accepting(types: str) -> dict[str, str]:
    return {"accept": types}


BROWSER = "text/html, */*;q=0.1"
READS = [
    Read("/reviews.json", JSON),
    Read("/insights.json", JSON),
    Read("/api/feed.json", JSON),
    Read(SEARCH, JSON),
    Read(f"{SEARCH}?query=back&min_rating=4", JSON),
    Read(SINCE, JSON),
    Read("/.well-known/openapi.json", JSON),
    Read("/reviews", HTML),
    Read("/reviews?query=back&page=2", HTML),
    Read("/", HTML),
    Read("/", HTML, accepting(BROWSER)),
    Read("/", JSON, accepting(f"{JSON};q=0.5, text/markdown")),
    Read("/", MARKDOWN, accepting("text/markdown, text/html")),
    Read(NEWEST_REVIEW, HTML),
    Read(NEWEST_REVIEW, HTML, accepting(BROWSER)),
    Read("/feed.xml", "application/atom+xml"),
    Read("/sitemap.xml", "application/xml"),
    Read("/embed", HTML),
    Read("/badge.svg", "image/svg+xml"),
]


def name_of(read: Read) -> str:
    return " ".join([read.path, *read.headers.values()])


every_read = pytest.mark.parametrize("read", READS, ids=name_of)


# ---- Every read ----


@every_read
def test_a_read_has_its_media_type(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    assert answer.status == 200
    assert answer.headers["content-type"] == read.kind


@every_read
def test_a_read_says_its_length(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    assert answer.headers["content-length"] == str(len(answer.body))


# The tag of `since` is made without its bytes: `test_app.py` has what it promises.
TAGGED_BY_BYTES = [read for read in READS if read.path != SINCE]


@pytest.mark.parametrize("read", TAGGED_BY_BYTES, ids=name_of)
def test_the_tag_of_a_read_is_the_digest_of_its_bytes(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    assert answer.headers["etag"] == f'"{hashlib.sha256(answer.body).hexdigest()}"'


@every_read
def test_a_read_says_when_it_changed(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    assert parsedate_to_datetime(answer.headers["last-modified"])


@every_read
def test_a_read_may_be_kept_for_a_minute(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    assert answer.headers["cache-control"] == "public, max-age=60"


@every_read
def test_caches_are_told_by_what_a_read_differs(ask: Ask, read: Read) -> None:
    is_by_type = read.path in ("/", NEWEST_REVIEW)

    answer = read.by(ask)

    expected = "Accept, Accept-Encoding" if is_by_type else "Accept-Encoding"
    assert answer.headers["vary"] == expected


@every_read
def test_pages_of_any_origin_may_use_a_read(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    exposed = "ETag, Last-Modified, Link, Retry-After"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-expose-headers"] == exposed


@every_read
def test_browsers_do_not_guess_the_type_of_a_read(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    assert answer.headers["x-content-type-options"] == "nosniff"


@every_read
def test_what_a_page_may_load_is_limited(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    is_limited = "content-security-policy" in answer.headers
    assert is_limited == (read.kind == HTML)


@every_read
def test_topics_alone_link_to_the_hub_and_to_themselves(ask: Ask, read: Read) -> None:
    answer = read.by(ask)

    expected = None
    if read.path in TOPICS:
        hub = f'<{BASE_URL}{HUB}>; rel="hub"'
        expected = f'{hub}, <{BASE_URL}{read.path}>; rel="self"'
    assert answer.headers.get("link") == expected


# ---- Copies of a read: packed, without a body, not modified ----


@every_read
def test_packed_a_read_of_a_kilobyte_is_the_same(ask: Ask, read: Read) -> None:
    plain = read.by(ask)

    packed = read.by(ask, accept_encoding="br, gzip;q=0.8")

    if len(plain.body) < 1024:
        assert packed.body == plain.body
    else:
        assert gzip.decompress(packed.body) == plain.body


@every_read
def test_packed_a_read_of_a_kilobyte_has_another_tag(ask: Ask, read: Read) -> None:
    plain = read.by(ask)

    packed = read.by(ask, accept_encoding="br, gzip;q=0.8")

    is_large = len(plain.body) >= 1024
    assert (packed.headers["etag"] != plain.headers["etag"]) == is_large


@every_read
def test_head_is_the_read_without_its_body(ask: Ask, read: Read) -> None:
    get = read.by(ask)

    head = read.by(ask, "HEAD")

    assert head.status == 200
    assert head.body == b""
    # A second may begin between the two.
    assert {**head.headers, "date": ""} == {**get.headers, "date": ""}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@every_read
def test_who_has_a_read_gets_304_without_a_body(
    ask: Ask, read: Read, method: str
) -> None:
    tag = read.by(ask).headers["etag"]

    answer = read.by(ask, method, if_none_match=tag)

    assert answer.status == 304
    assert answer.body == b""


# RFC 9110 section 15.4.5
REPEATED = ("etag", "last-modified", "cache-control", "vary", "link")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@every_read
def test_304_repeats_what_caches_need_and_no_more(
    ask: Ask, read: Read, method: str
) -> None:
    get = read.by(ask)

    answer = read.by(ask, method, if_none_match=get.headers["etag"])

    repeated = {name: answer.headers.get(name) for name in REPEATED}
    assert repeated == {name: get.headers.get(name) for name in REPEATED}
    assert not {"content-type", "content-length"} & answer.headers.keys()


# ---- What changes no document ----

DOCUMENTS = [*TOPICS, SEARCH, "/", "/reviews?page=2"]
ELSEWHERE = {
    "host": "evil.example",
    "x_forwarded_host": "evil.example",
    "forwarded": "host=evil.example",
}


@pytest.mark.parametrize("path", DOCUMENTS)
def test_the_host_of_a_request_changes_no_document(ask: Ask, path: str) -> None:
    usual = ask(path)

    answer = ask(path, **ELSEWHERE)

    assert answer.status == 200
    assert answer.body == usual.body


@pytest.mark.parametrize("path", DOCUMENTS)
def test_credentials_change_no_document(ask: Ask, path: str) -> None:
    usual = ask(path)

    answer = ask(path, authorization="Bearer nonsense")

    assert answer.status == 200
    assert answer.body == usual.body


@pytest.mark.parametrize(
    ("path", "odd"),
    [
        pytest.param("/reviews.json", "/reviews.json?utm_source=x&%ff", id="data"),
        pytest.param("/api/feed.json", "/api/feed.json?utm_source=x&%ff", id="feed"),
        pytest.param("/feed.xml", "/feed.xml?utm_source=x&%ff", id="Atom"),
        pytest.param("/", "/?utm_source=x&%ff", id="home page"),
        pytest.param(
            "/reviews?page=2", "/reviews?page=2&utm_source=x&%ff", id="list of reviews"
        ),
    ],
)
def test_odd_parameters_change_no_document(ask: Ask, path: str, odd: str) -> None:
    usual = ask(path)

    answer = ask(odd)

    assert answer.status == 200
    assert answer.body == usual.body


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("query=lower+back", id="plus"),
        pytest.param("%71uery=lower%20%62ack", id="percent"),
        pytest.param("&&query=lower+back&", id="empty pairs"),
    ],
)
def test_queries_are_decoded_as_forms_are(ask: Ask, query: str) -> None:
    usual = ask(f"{SEARCH}?query=lower%20back")

    answer = ask(f"{SEARCH}?{query}")

    assert answer.body == usual.body


def test_the_urls_that_the_root_lists_are_answered(ask: Ask) -> None:
    listed = json.loads(ask("/", accept=JSON).body)

    statuses = {}
    for name, url in listed.items():
        path = url.removeprefix(BASE_URL).replace("{date}", "2026-01-01")
        path = path.replace("/reviews/{id}", NEWEST_REVIEW)
        assert re.fullmatch("/[!-~]*", path)
        statuses[name] = ask(path).status

    to_be_posted = {"mcp": 405, "hub": 405}
    assert statuses == dict.fromkeys(listed, 200) | to_be_posted


# ---- Methods and CORS ----

ALLOWED = "GET, HEAD, OPTIONS"
every_route_of_reads = pytest.mark.parametrize(
    "path",
    [
        "/",
        "/reviews.json",
        SEARCH,
        SINCE,
        "/reviews",
        NEWEST_REVIEW,
        "/embed",
        "/healthz",
    ],
)
CROSS_ORIGIN = {
    "origin": "https://site.example",
    "access_control_request_method": "GET",
}


@every_route_of_reads
def test_a_preflight_allows_reads_to_any_origin(ask: Ask, path: str) -> None:
    answer = ask(path, "OPTIONS", **CROSS_ORIGIN)

    assert answer.status == 204
    assert answer.headers["allow"] == ALLOWED
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == ALLOWED
    assert answer.headers["access-control-max-age"] == "86400"


@every_route_of_reads
def test_a_preflight_allows_whatever_a_library_adds(ask: Ask, path: str) -> None:
    answer = ask(path, "OPTIONS", **CROSS_ORIGIN)

    # `*` does not mean Authorization (Fetch standard).
    assert answer.headers["access-control-allow-headers"] == "*, Authorization"


@every_route_of_reads
def test_a_preflight_has_no_body_and_no_length(ask: Ask, path: str) -> None:
    answer = ask(path, "OPTIONS", **CROSS_ORIGIN)

    assert answer.body == b""
    assert "content-length" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "BREW"])
@every_route_of_reads
def test_another_method_is_405_and_told_which_are_allowed(
    ask: Ask, path: str, method: str
) -> None:
    answer = ask(path, method)

    assert answer.status == 405
    assert answer.headers["allow"] == ALLOWED


# ---- Redirects ----


@pytest.mark.parametrize("query", ["", "?query=back"])
def test_the_list_with_a_slash_leads_to_the_list(ask: Ask, query: str) -> None:
    answer = ask(f"/reviews/{query}")

    assert answer.status == 308
    assert answer.headers["location"] == f"/reviews{query}"
    assert answer.body == b""


# ---- Errors ----


def detail_of(answer: Response) -> str:
    return str(json.loads(answer.body)["detail"])


UNKNOWN_PATHS = [
    pytest.param("/nothing", id="no route"),
    pytest.param("/reviews.json/", id="slash"),
    pytest.param("/API/feed.json", id="other case"),
    pytest.param("/api/reviews/since", id="no date"),
    pytest.param("/..%2f..%2fetc/passwd", id="folders above"),
    pytest.param("/%00", id="NUL"),
    pytest.param("/.well-known/oauth-protected-resource", id="OAuth"),
    pytest.param("/%ff", id="not UTF-8"),
    pytest.param("/" + "a" * 5000, id="long"),
]
every_unknown_path = pytest.mark.parametrize("path", UNKNOWN_PATHS)


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@every_unknown_path
def test_an_unknown_path_is_404_for_every_method(
    ask: Ask, path: str, method: str
) -> None:
    answer = ask(path, method)

    assert answer.status == 404
    assert detail_of(answer).startswith("There is nothing at /")


ERRORS = [
    pytest.param("/nothing", {}, 404, id="unknown path"),
    pytest.param("/reviews/x", {"accept": JSON}, 404, id="unknown review"),
    pytest.param(f"{SEARCH}?limit=x", {}, 400, id="wrong parameter"),
    pytest.param("/reviews.json", {"host": "a/b"}, 400, id="wrong host"),
    pytest.param("/reviews.json", {"method": "PUT"}, 405, id="other method"),
]
every_error = pytest.mark.parametrize(("path", "fields", "status"), ERRORS)


@every_error
def test_an_error_is_an_object_of_the_contract(
    ask: Ask, path: str, fields: dict[str, str], status: int
) -> None:
    answer = ask(path, **fields)

    document = json.loads(answer.body)
    assert answer.headers["content-type"] == JSON
    validator(CONTRACT["components"]["schemas"]["Error"]).validate(document)
    assert document["status"] == answer.status == status


@every_error
def test_an_error_is_kept_by_no_cache(
    ask: Ask, path: str, fields: dict[str, str], status: int
) -> None:
    answer = ask(path, **fields)

    assert answer.headers["cache-control"] == "no-store"


@every_error
def test_pages_of_any_origin_may_read_an_error(
    ask: Ask, path: str, fields: dict[str, str], status: int
) -> None:
    answer = ask(path, **fields)

    assert answer.headers["access-control-allow-origin"] == "*"


# ---- Hosts: RFC 9112 section 3.2 ----


def issue_of_host(ask: Ask, host: str) -> dict[str, object]:
    """The only issue of a request with this host and a wrong parameter."""
    answer = ask(f"{SEARCH}?limit=x", host=host)
    assert answer.status == 400
    (issue,) = json.loads(answer.body)["issues"]
    return dict(issue)


def test_an_absent_host_is_one_issue(ask: Ask) -> None:
    issue = issue_of_host(ask, "")

    message = "The request has no Host header."
    assert issue == {"parameter": None, "value": "", "message": message}


@pytest.mark.parametrize(
    "host",
    [
        "a/b",
        "a?b",
        "a#b",
        "a b",
        "a\tb",
        "user@a",
        "a:x",
        "a:80:80",
        ":80",
        "a,b",
        "a, a",
        "a\\b",
        "%",
        "%4",
        "<a>",
        "\xe9",
        "::1",
        "[::1",
        "::1]",
        "[::1]x",
        "[::1]:x",
        "[1.2.3.4]",
        "[1:2]",
        "[::%1]",
        "[]",
        "[v1]",
        "[v.a]",
    ],
)
def test_a_bad_host_is_one_issue(ask: Ask, host: str) -> None:
    issue = issue_of_host(ask, host)

    message = "The Host header is repeated or not a host."
    assert issue == {"parameter": None, "value": host, "message": message}


@pytest.mark.parametrize(
    "host",
    [
        "a",
        "A.EXAMPLE.",
        "a:",
        "a:80",
        "127.0.0.1:8080",
        "[::1]",
        "[::FFFF:1.2.3.4]:443",
        "[v1.a:b]",
        "a_b",
        "%4a~!$&'()*+;=-",
    ],
)
def test_every_valid_form_of_a_host_is_served(ask: Ask, host: str) -> None:
    answer = ask("/healthz", host=host)

    assert answer.status == 200


# ---- MCP: what HTTP adds to the endpoint, whose own tests need no server ----

LOCAL_PAGE = "http://localhost:6274"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = '{"jsonrpc":"2.0","id":1,"result":{}}'
TOO_LARGE = b" " * (64 * 1024 + 1)
MESSAGES = [
    pytest.param(PING, {}, 200, PONG, id="ping"),
    pytest.param(PING, {"host": "a/b"}, 400, '"code":-32600', id="bad host"),
    pytest.param(
        TOO_LARGE, {}, 413, "The body is larger than 65536 bytes.", id="too large"
    ),
]
every_message = pytest.mark.parametrize(("sent", "fields", "status", "said"), MESSAGES)


@pytest.mark.parametrize("path", [MCP, f"{MCP}/"])
@every_message
def test_mcp_answers_in_its_own_format(
    ask: Ask, path: str, sent: bytes, fields: dict[str, str], status: int, said: str
) -> None:
    answer = ask(path, "POST", sent, content_type=JSON, **fields)

    document = json.loads(answer.body)
    assert answer.status == status
    assert document["jsonrpc"] == "2.0"
    assert said in answer.body.decode()


@every_message
def test_no_cache_keeps_an_answer_of_mcp(
    ask: Ask, sent: bytes, fields: dict[str, str], status: int, said: str
) -> None:
    answer = ask(MCP, "POST", sent, content_type=JSON, **fields)

    assert answer.headers["cache-control"] == "no-store"


@every_message
def test_a_page_on_this_machine_may_use_mcp(
    ask: Ask, sent: bytes, fields: dict[str, str], status: int, said: str
) -> None:
    answer = ask(MCP, "POST", sent, content_type=JSON, origin=LOCAL_PAGE, **fields)

    assert answer.headers["access-control-allow-origin"] == LOCAL_PAGE
