"""HTTP and the contract: the same requests go to the daemon over sockets and to the WSGI application.

Reads - Methods - Errors - MCP - The contract
"""

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from jsonschema import Draft202012Validator
from lab.services import ROOT, SAMPLE, Response, Service, call, daemon, fetch

import reviewsd
from reviewslib.process.settings import Settings

BASE_URL = "http://reviews.example"
HTML = "text/html; charset=utf-8"
JSON = "application/json"
MARKDOWN = "text/markdown; charset=utf-8"
SEARCH = "/api/reviews/search"
SINCE = "/api/reviews/since/2026-01-01"
MCP = "/mcp"
HUB = "/api/websub/hub"
REVIEW = "/reviews/01M7F1SV60XJ4PFV38D0FMZ6BZ"  # the newest one
TOPICS = ("/reviews.json", "/api/feed.json", "/feed.xml")
BY_TYPE = ("/", REVIEW)  # where `Accept` decides
READS: list[
    tuple[str, dict[str, str], str]
] = [  # paths, headers of requests, media types
    *[
        (path, {}, JSON)
        for path in ("/reviews.json", "/insights.json", "/api/feed.json", SEARCH, SINCE)
    ],
    *[
        (path, {}, JSON)
        for path in ("/.well-known/openapi.json", f"{SEARCH}?query=back&min_rating=4")
    ],
    *[
        (path, {}, HTML)
        for path in ("/reviews", "/reviews?query=back&page=2", *BY_TYPE)
    ],
    *[(path, {"accept": "text/html, */*;q=0.1"}, HTML) for path in BY_TYPE],
    ("/", {"accept": f"{JSON};q=0.5, text/markdown"}, JSON),
    ("/", {"accept": "text/markdown, text/html"}, MARKDOWN),
    ("/feed.xml", {}, "application/atom+xml"),
    ("/sitemap.xml", {}, "application/xml"),
    ("/embed", {}, HTML),
    ("/badge.svg", {}, "image/svg+xml"),
]
LARGEST_CONTRACT_BYTES = 61_440
CONTRACT: dict[str, Any] = json.loads(
    (ROOT / "reviewslib" / "openapi.json").read_text(encoding="utf-8")
)

Ask = Callable[..., Response]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with daemon(base_url=BASE_URL) as address:
        yield address


@pytest.fixture(scope="module", params=["HTTP", "WSGI"])
def ask(request: pytest.FixtureRequest, service: Service) -> Ask:
    """Make a request, with the arguments of `fetch`."""
    application = reviewsd.create_app(
        Settings(data=SAMPLE, base_url=BASE_URL, no_hub=True)
    )
    return (
        partial(fetch, service)
        if request.param == "HTTP"
        else partial(call, application)
    )


# ---- Reads ----


@pytest.mark.parametrize(("path", "headers", "kind"), READS)
def test_a_read_is_typed_dated_tagged_cacheable_and_packed(
    ask: Ask, path: str, headers: dict[str, str], kind: str
) -> None:
    get = ask(path, **headers)
    packed = ask(path, accept_encoding="br, gzip;q=0.8", **headers)
    expected = {
        "etag": get.headers["etag"]
        if path == SINCE
        else f'"{hashlib.sha256(get.body).hexdigest()}"',
        "content-type": kind,
        "content-length": str(len(get.body)),
        "cache-control": "public, max-age=60",
        "vary": "Accept, Accept-Encoding" if path in BY_TYPE else "Accept-Encoding",
        "link": f'<{BASE_URL}{HUB}>; rel="hub", <{BASE_URL}{path}>; rel="self"'
        if path in TOPICS
        else None,
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "ETag, Last-Modified, Link, Retry-After",
        "x-content-type-options": "nosniff",
    }
    assert (get.status, {name: get.headers.get(name) for name in expected}) == (
        200,
        expected,
    )
    assert ("content-security-policy" in get.headers) is (kind == HTML)
    assert parsedate_to_datetime(get.headers["last-modified"])
    if len(get.body) >= 1024:
        assert gzip.decompress(packed.body) == get.body
        assert (
            packed.headers["etag"] == get.headers["etag"][:-1] + '-gzip"'
            or path == SINCE
        )


@pytest.mark.parametrize(("path", "headers", "kind"), READS)
def test_head_and_304_are_the_read_without_its_body(
    ask: Ask, path: str, headers: dict[str, str], kind: str
) -> None:
    get = ask(path, **headers)
    head = ask(path, "HEAD", **headers)
    assert (head.status, head.body, {**head.headers, "date": ""}) == (
        200,
        b"",
        {**get.headers, "date": ""},
    )
    kept = ("etag", "last-modified", "cache-control", "vary", "link")
    for method in ("GET", "HEAD"):
        answer = ask(path, method, if_none_match=get.headers["etag"], **headers)
        assert (answer.status, answer.body) == (304, b"")
        assert [answer.headers.get(name) for name in kept] == [
            get.headers.get(name) for name in kept
        ]
        assert not {"content-type", "content-length"} & answer.headers.keys()


def test_the_contract_names_this_service_and_its_business(ask: Ask) -> None:
    served = json.loads(body := ask("/.well-known/openapi.json").body)
    assert len(body) <= LARGEST_CONTRACT_BYTES, "language models read it whole"
    business = json.loads(ask("/reviews.json").body)["business"]
    assert served["servers"][0]["url"] == BASE_URL
    assert served["info"]["contact"] == {
        key: business[key] for key in ("name", "url", "email")
    }
    assert {**served, "servers": None, "info": None} == {
        **CONTRACT,
        "servers": None,
        "info": None,
    }


@pytest.mark.parametrize("path", [*TOPICS, SEARCH, "/", "/reviews?page=2"])
def test_credentials_hosts_and_odd_parameters_change_no_document(
    ask: Ask, path: str
) -> None:
    odd = "" if path == SEARCH else ("&" if "?" in path else "?") + "utm_source=x&%ff"
    elsewhere = {
        "host": "evil.example",
        "x_forwarded_host": "evil.example",
        "forwarded": "host=evil.example",
    }
    answer = ask(path + odd, authorization="Bearer nonsense", **elsewhere)
    assert (answer.status, answer.body) == (200, ask(path).body)


def test_the_root_lists_the_urls_of_all_endpoints(ask: Ask) -> None:
    for url in json.loads(ask("/", accept=JSON).body).values():
        path = (
            url.removeprefix(BASE_URL)
            .replace("{date}", "2026-01-01")
            .replace("/reviews/{id}", REVIEW)
        )
        assert re.fullmatch("/[!-~]*", path)
        assert ask(path).status == (405 if path == MCP else 200) or path == HUB


@pytest.mark.parametrize(
    "query", ["query=lower+back", "%71uery=lower%20%62ack", "&&query=lower+back&"]
)
def test_queries_are_decoded_as_forms_are(ask: Ask, query: str) -> None:
    assert ask(f"{SEARCH}?{query}").body == ask(f"{SEARCH}?query=lower%20back").body


# ---- Methods and CORS ----

PATHS = ["/", "/reviews.json", SEARCH, SINCE, "/reviews", REVIEW, "/embed", "/healthz"]
ALLOWED = "GET, HEAD, OPTIONS"
PREFLIGHT = {
    "allow": ALLOWED,
    "access-control-allow-origin": "*",
    "access-control-allow-methods": ALLOWED,
    "access-control-allow-headers": "*, Authorization",
    "access-control-max-age": "86400",
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [
        ("OPTIONS", 204, PREFLIGHT),
        *[(method, 405, {"allow": ALLOWED}) for method in ("POST", "BREW")],
    ],
)
def test_other_methods_than_get_say_which_are_allowed(
    ask: Ask, path: str, method: str, status: int, headers: dict[str, str]
) -> None:
    answer = ask(
        path, method, origin="https://site.example", access_control_request_method="GET"
    )
    assert (answer.status, {name: answer.headers[name] for name in headers}) == (
        status,
        headers,
    )
    assert status == 405 or (answer.body, "content-length" in answer.headers) == (
        b"",
        False,
    )


@pytest.mark.parametrize("query", ["?query=back", ""])
def test_the_list_with_a_slash_leads_to_the_list(ask: Ask, query: str) -> None:
    answer = ask(f"/reviews/{query}")
    assert (answer.status, answer.body) == (308, b"")
    assert answer.headers["location"] == f"/reviews{query}"


# ---- Errors ----


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """The validator of a schema that may refer to components of the contract."""
    return Draft202012Validator(schema | {"components": CONTRACT["components"]})


def assert_error(answer: Response, status: int) -> dict[str, Any]:
    """The body of an error response; checks its schema, and headers that forbid caches to store it."""
    expected = {
        "content-type": JSON,
        "cache-control": "no-store",
        "access-control-allow-origin": "*",
    }
    assert (answer.status, {name: answer.headers[name] for name in expected}) == (
        status,
        expected,
    )
    document: dict[str, Any] = json.loads(answer.body)
    validator({"$ref": "#/components/schemas/Error"}).validate(document)
    assert document["status"] == status
    return document


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/reviews.json/",
        "/API/feed.json",
        "/api/reviews/since",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/.well-known/oauth-protected-resource",
        "/%ff",
        "/" + "a" * 5000,
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_an_unknown_path_is_404_in_json_for_every_method(
    ask: Ask, path: str, method: str
) -> None:
    assert assert_error(ask(path, method), 404)["detail"].startswith(
        "There is nothing at /"
    )


BAD_HOST = "The Host header is repeated or not a host."
NO_HOST = "The request has no Host header."


@pytest.mark.parametrize(
    "host",
    [
        "",
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
    issues = [
        {"parameter": None, "value": host, "message": BAD_HOST if host else NO_HOST}
    ]
    assert assert_error(ask(f"{SEARCH}?limit=x", host=host), 400)["issues"] == issues


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
    assert ask("/healthz", host=host).status == 200


# ---- MCP: what HTTP adds to the endpoint, whose own tests need no server ----

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize(
    ("sent", "headers", "status", "body"),
    [
        (PING, {}, 200, '{"jsonrpc":"2.0","id":1,"result":{}}'),
        (PING, {"host": "a/b"}, 400, '"code":-32600'),
        (b" " * 65_537, {}, 413, '"message":"The body is larger than 65536 bytes."'),
    ],
)
def test_mcp_answers_in_its_own_format(
    ask: Ask, path: str, sent: bytes, headers: dict[str, str], status: int, body: str
) -> None:
    answer = ask(
        path, "POST", sent, content_type=JSON, origin="http://localhost:6274", **headers
    )
    assert (answer.status, answer.headers["cache-control"]) == (status, "no-store")
    assert answer.headers["access-control-allow-origin"] == "http://localhost:6274"
    assert body in answer.body.decode()


# ---- The contract: responses are as it declares them ----

READ_OPERATIONS = {
    path: methods["get"]
    for path, methods in CONTRACT["paths"].items()
    if "get" in methods
}
# Fields of HTTP itself, which no contract declares.
OF_THE_SERVER = {"server", "date", "connection", "content-length", "content-type"}
# Fields that the contract says once, in its introduction, with what they may hold.
SAID_ONCE = {
    "cache-control": r"public, max-age=60|no-store",
    "vary": r"Accept-Encoding|Accept, Accept-Encoding|Origin",
    "content-encoding": r"gzip",
    "access-control-allow-origin": r"\*|http://\S+",
    "access-control-expose-headers": r"ETag, .*|Mcp-Session-Id, .*",
    "x-content-type-options": r"nosniff",
    "content-security-policy": r"default-src 'none'; .*",
    "cross-origin-opener-policy": r"same-origin",
    "cross-origin-resource-policy": r"cross-origin",
    "cross-origin-embedder-policy": r"require-corp",
    "referrer-policy": r"strict-origin-when-cross-origin",
}


def resolved(value: Any) -> Any:
    """`value`, or the component that it refers to."""
    if "$ref" not in value:
        return value
    _, _, kind, name = value["$ref"].split("/")
    return CONTRACT["components"][kind][name]


def assert_declared(operation: dict[str, Any], answer: Response) -> None:
    """The headers, the media type and a body in JSON are declared, and every required header is there."""
    responses = operation["responses"]
    names = (f"{answer.status}", "default")
    declared = resolved(next(responses[name] for name in names if name in responses))
    headers = {
        name.lower(): resolved(header)
        for name, header in declared.get("headers", {}).items()
    }
    required = {name for name, header in headers.items() if header.get("required")}
    assert required <= answer.headers.keys()
    for name in answer.headers.keys() - OF_THE_SERVER:
        if name in headers:
            validator(headers[name]["schema"]).validate(answer.headers[name])
        else:
            assert re.fullmatch(SAID_ONCE[name], answer.headers[name]), name
    if kind := answer.headers.get("content-type"):
        schema = declared["content"][kind]
        if kind == JSON and answer.body and "content-encoding" not in answer.headers:
            validator(schema["schema"]).validate(json.loads(answer.body))


FORM = "application/x-www-form-urlencoded"
SENT: list[tuple[str, dict[str, Any]]] = [
    *[
        (f"get {template}", headers)
        for template in READ_OPERATIONS
        for headers in (
            {},
            {"accept": JSON},
            {"accept_encoding": "gzip"},
            {"if_none_match": "*"},
        )
    ],
    *[
        (f"get {template}", {"host": "a/b"})
        for template in READ_OPERATIONS
        if template != "/embed"
    ],
    *[
        (f"get {path}", {"path": f"{path}?limit=x&page=x"})
        for path in (SEARCH, "/reviews")
    ],
    ("get /reviews/{id}", {"path": "/reviews/%ff"}),
    ("get /reviews/{id}", {"path": "/reviews/x%20", "accept": JSON}),
    *[
        ("post /mcp", {"body": body, "content_type": JSON})
        for body in (b'{"jsonrpc":"2.0","method":"x"}', PING, b"{", b"x" * 70_000)
    ],
    *[
        ("post /mcp", {"body": b"{}", "content_type": JSON} | headers)
        for headers in (
            {"content_type": "text/plain"},
            {"origin": "https://evil.example"},
            {"accept": "image/png"},
        )
    ],
    *[("post /mcp", {"method": method}) for method in ("GET", "DELETE")],
    *[
        (f"post {HUB}", {"body": body, "content_type": FORM})
        for body in (b"hub.mode=x", b"x" * 70_000)
    ],
    *[(f"post {HUB}", sent) for sent in ({"body": b"x"}, {"method": "PUT"})],
]


@pytest.mark.parametrize(("operation", "sent"), SENT)
def test_a_request_is_answered_as_declared(
    ask: Ask, operation: str, sent: dict[str, Any]
) -> None:
    method, _, template = operation.partition(" ")
    path = template.replace("{date}", "2026-01-01").replace("/reviews/{id}", REVIEW)
    answer = ask(**({"path": path, "method": method.upper()} | sent))
    assert_declared(CONTRACT["paths"][template][method], answer)


def is_part(part: Any, whole: Any) -> bool:
    """Whether `whole` is `part` with more members and items; `…` in `part` stands for any further text."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        return all(
            any(is_part(member, candidate) for candidate in whole) for member in part
        )
    if isinstance(part, str) and isinstance(whole, str) and "…" in part:
        return (
            re.match(".*?".join(map(re.escape, part.split("…"))), whole, re.DOTALL)
            is not None
        )
    return bool(part == whole)


def local(value: Any) -> Any:
    """An example of the contract as a service at BASE_URL would give it."""
    public = CONTRACT["servers"][0]["url"]
    here = BASE_URL
    hosts = [f"tag:{urlsplit(url).hostname}" for url in (public, here)]
    return json.loads(json.dumps(value).replace(public, here).replace(*hosts))


EXAMPLES = {
    template: (media, example)
    for template, operation in READ_OPERATIONS.items()
    for media, body in resolved(operation["responses"]["200"])["content"].items()
    for example in body.get("examples", {}).values()
}


# The description is its own example; the feed of a search is formed like `/feed.xml`.
WITHOUT_EXAMPLE = {"/.well-known/openapi.json", "/api/reviews/search.xml"}


def test_every_representation_of_data_has_an_example() -> None:
    data = {
        template
        for template, operation in READ_OPERATIONS.items()
        if operation["tags"] != ["Pages"]
    }
    assert EXAMPLES.keys() == data - WITHOUT_EXAMPLE


@pytest.mark.parametrize("template", EXAMPLES)
def test_an_example_is_a_part_of_what_its_path_answers(ask: Ask, template: str) -> None:
    media, example = EXAMPLES[template]
    answer = ask(example["summary"])
    assert re.fullmatch(
        re.sub("{.*}", "[^/]+", template), example["summary"].partition("?")[0]
    )
    assert (answer.status, answer.headers["content-type"]) == (200, media)
    given = json.loads(answer.body) if media == JSON else answer.body.decode()
    assert is_part(local(example["value"]), given)


@pytest.mark.parametrize(("path", "status"), [(MCP, 200), (HUB, 202)])
def test_the_example_of_a_post_is_answered_as_declared(
    service: Service, path: str, status: int
) -> None:
    operation = CONTRACT["paths"][path]["post"]
    ((media, request),) = operation["requestBody"]["content"].items()
    sent = local(request["examples"]["sample"]["value"])
    body = json.dumps(sent) if media == JSON else urlencode(sent)
    answer = fetch(service, path, "POST", body.encode(), content_type=media)
    declared = operation["responses"][str(status)]["content"][
        answer.headers["content-type"]
    ]
    given = json.loads(answer.body) if media == JSON else answer.body.decode()
    assert (answer.status, given) == (
        status,
        local(declared["examples"]["sample"]["value"]),
    )
