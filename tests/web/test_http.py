"""HTTP over real sockets, with both servers that run the application.

Documents - Conditional requests - Methods and CORS - Errors - MCP - The contract - The root
"""

import gzip
import hashlib
import http.client
import json
import re
import socket
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from jsonschema import Draft202012Validator
from services import ROOT, Address, Response, daemon, fetch, under_waitress

BASE_URL = "http://reviews.example"
TOPICS = ["/reviews.json", "/api/feed.json", "/feed.xml"]
DOCUMENTS = [*TOPICS, "/insights.json", "/.well-known/openapi.json"]
SEARCH = "/api/reviews/search"
COMPUTED = [SEARCH, f"{SEARCH}?query=back&min_rating=4", "/api/reviews/since/2026-01-01"]
NEWEST_ID = "01M7F1SV60XJ4PFV38D0FMZ6BZ"
LISTS, PAGES_OR_JSON = ["/reviews", "/reviews?query=back&page=2"], [f"/reviews/{NEWEST_ID}", "/"]
READABLE = DOCUMENTS + COMPUTED + LISTS + PAGES_OR_JSON
HTML, JSON, MARKDOWN = "text/html; charset=utf-8", "application/json", "text/markdown; charset=utf-8"
LARGEST_CONTRACT_BYTES = 59_400
CONTRACT: dict[str, Any] = json.loads((ROOT / "reviewslib" / "openapi.json").read_text(encoding="utf-8"))


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """The validator of a schema that may refer to components of the contract."""
    return Draft202012Validator(schema | {"components": CONTRACT["components"]})


@pytest.fixture(scope="module", params=["daemon", "waitress"])
def service(request: pytest.FixtureRequest) -> Iterator[Address]:
    start = daemon if request.param == "daemon" else under_waitress
    with start(base_url=BASE_URL) as address:
        yield address


# ---- Documents ----


@pytest.mark.parametrize("path", READABLE)
def test_every_read_is_dated_tagged_typed_cacheable_and_packed(service: Address, path: str) -> None:
    get, head = fetch(service, path), fetch(service, path, "HEAD")
    is_page = path in LISTS + PAGES_OR_JSON
    computed = get.headers["etag"] if "/since/" in path else f'"{hashlib.sha256(get.body).hexdigest()}"'
    expected = {
        "etag": computed,
        "content-type": "application/atom+xml" if path == "/feed.xml" else HTML if is_page else JSON,
        "content-length": str(len(get.body)),
        "cache-control": "public, max-age=60",
        "vary": "Accept, Accept-Encoding" if path in PAGES_OR_JSON else "Accept-Encoding",
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "ETag, Last-Modified, Link, Retry-After",
        "x-content-type-options": "nosniff",
    }
    if path in TOPICS:
        expected["link"] = f'<{BASE_URL}/api/websub/hub>; rel="hub", <{BASE_URL}{path}>; rel="self"'
    packed = fetch(service, path, Accept_Encoding="br, gzip;q=0.8")
    assert get.status == head.status == 200
    assert {name: get.headers.get(name) for name in expected | {"link": ""}} == {"link": None} | expected
    assert ("content-security-policy" in get.headers) is is_page
    assert parsedate_to_datetime(get.headers["last-modified"]) <= parsedate_to_datetime(get.headers["date"])
    assert head.body == b""
    assert {**head.headers, "date": ""} == {**get.headers, "date": ""}
    assert (packed.headers["content-encoding"], gzip.decompress(packed.body)) == ("gzip", get.body)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("robots.txt", "text/plain; charset=utf-8"), ("sitemap.xml", "application/xml"),
     ("favicon.ico", "image/svg+xml")],
)  # fmt: skip
def test_what_robots_and_browsers_fetch_has_its_media_type(service: Address, path: str, kind: str) -> None:
    answer = fetch(service, f"/{path}")
    assert (answer.status, answer.headers["content-type"]) == (200, kind)


def test_the_contract_names_this_service_and_its_business(service: Address) -> None:
    served = json.loads(body := fetch(service, "/.well-known/openapi.json").body)
    assert len(body) <= LARGEST_CONTRACT_BYTES, "language models read it whole"
    business = json.loads(fetch(service, "/reviews.json").body)["business"]
    assert served["servers"][0]["url"] == BASE_URL
    assert served["info"]["contact"] == {key: business[key] for key in ("name", "url", "email")}
    assert {**served, "servers": None, "info": None} == {**CONTRACT, "servers": None, "info": None}


def test_absolute_urls_never_come_from_the_request(service: Address) -> None:
    evil = {"Host": "evil.example", "X_Forwarded_Host": "evil.example", "Forwarded": "host=evil.example"}
    for path in (*DOCUMENTS, "/"):
        assert "evil.example" not in repr(fetch(service, path, **evil))


def test_authorization_and_parameters_of_documents_are_ignored(service: Address) -> None:
    odd = fetch(service, "/reviews.json?utm_source=x&%ff", Authorization="Bearer nonsense")
    assert (odd.status, odd.body) == (200, fetch(service, "/reviews.json").body)


# ---- Conditional requests: RFC 9110 section 13 ----


@pytest.mark.parametrize("path", READABLE)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_known_tag_gives_304_with_the_headers_that_matter(service: Address, path: str, method: str) -> None:
    full = fetch(service, path)
    answer = fetch(service, path, method, If_None_Match=full.headers["etag"])
    assert (answer.status, answer.body) == (304, b"")
    for name in ("etag", "last-modified", "cache-control", "vary", "link"):
        assert answer.headers.get(name) == full.headers.get(name)
    assert "content-type" not in answer.headers


# ---- Methods and CORS ----


@pytest.mark.parametrize("path", [*READABLE, "/healthz"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"])
def test_other_methods_are_405_and_say_which_are_allowed(service: Address, path: str, method: str) -> None:
    answer = fetch(service, path, method)
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    assert_error(answer, 405)


@pytest.mark.parametrize("path", READABLE)
def test_options_answers_programs_and_browsers(service: Address, path: str) -> None:
    asked = {"Origin": "https://site.example", "Access_Control_Request_Method": "GET"}
    answer = fetch(service, path, "OPTIONS", **asked)
    expected = {
        "allow": "GET, HEAD, OPTIONS",
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "GET, HEAD, OPTIONS",
        "access-control-allow-headers": "If-None-Match, If-Modified-Since, Authorization, Content-Type",
        "access-control-max-age": "86400",
    }
    assert (answer.status, answer.body) == (204, b"")
    assert {name: answer.headers[name] for name in expected} == expected


# ---- Errors ----


def exchange(service: Address, head: str) -> Response:
    """The response to a request without a body, whose head is written out, but for the empty line."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(f"{head}\r\n".encode("latin-1"))
        with http.client.HTTPResponse(connection) as answer:
            answer.begin()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Response(answer.status, headers, answer.read())


def assert_error(answer: Response, status: int) -> dict[str, Any]:
    """The body of an error response; checks its schema, and headers that forbid caches to store it."""
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["access-control-allow-origin"] == "*"
    document: dict[str, Any] = json.loads(answer.body)
    validator({"$ref": "#/components/schemas/Error"}).validate(document)
    assert document["status"] == status
    return document


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/reviews.json/", "/API/feed.json", "/api/reviews", "/api/reviews/since",
     "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server",
     "/.well-known/openid-configuration", "/..%2f..%2fetc/passwd", "/%00", "/%ff", "/" + "a" * 5000],
)  # fmt: skip
def test_unknown_paths_are_404_in_json_for_every_method(service: Address, path: str) -> None:
    for method in ("GET", "POST", "OPTIONS", "DELETE"):
        assert "There is nothing at" in assert_error(fetch(service, path, method), 404)["detail"]


def assert_host_is_the_issue(answer: Response, host: str) -> None:
    wrong = "The Host header is repeated or not a host." if host else "The request has no Host header."
    assert assert_error(answer, 400)["issues"] == [{"parameter": None, "value": host, "message": wrong}]


@pytest.mark.parametrize(
    "host",
    ["a/b", "a?b", "a#b", "a b", "a\tb", "user@a", "a:x", "a:80:80", ":80", "a,b", "a, a", "a\\b", "%", "%4",
     "<a>", "\xe9", "::1", "[::1", "::1]", "[::1]x", "[::1]:x", "[1.2.3.4]", "[1:2]", "[::%1]", "[]", "[v1]",
     "[v.a]"],
)  # fmt: skip
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_invalid_host_is_one_issue_on_every_path(service: Address, host: str, version: str) -> None:
    for path in (f"{SEARCH}?limit=x", "/api/reviews/since/x", "/", "/nothing"):
        assert_host_is_the_issue(exchange(service, f"GET {path} HTTP/{version}\r\nHost: {host}\r\n"), host)


@pytest.mark.parametrize(
    ("fields", "value"),
    [("", ""), ("Host:\r\n", ""), ("Host: a\r\nHost: a\r\n", "a, a"), ("Host: a\r\nHost:\r\n", "a, ")],
)
def test_a_missing_or_repeated_host_is_one_issue(service: Address, fields: str, value: str) -> None:
    assert_host_is_the_issue(exchange(service, f"GET {SEARCH} HTTP/1.1\r\n{fields}"), value)


@pytest.mark.parametrize(
    "host",
    ["a", "A.EXAMPLE.", "a:", "a:80", "127.0.0.1:8080", "[::1]", "[::FFFF:1.2.3.4]:443", "[v1.a:b]", "a_b",
     "%4a~!$&'()*+;=-"],
)  # fmt: skip
def test_every_form_of_a_host_is_served(service: Address, host: str) -> None:
    assert fetch(service, "/healthz", Host=host).status == 200


def test_the_list_with_a_slash_leads_to_the_list(service: Address) -> None:
    for method in ("GET", "HEAD"):
        answer = fetch(service, "/reviews/?query=back", method)
        assert (answer.status, answer.headers["location"]) == (308, f"{BASE_URL}/reviews?query=back")
    assert fetch(service, "/reviews/").headers["location"] == f"{BASE_URL}/reviews"
    assert fetch(service, "/reviews/", "POST").status == 405


def test_too_many_parameters_are_one_issue(service: Address) -> None:
    query = "&".join(f"p{number}=x" for number in range(60))
    error = assert_error(fetch(service, f"{SEARCH}?{query}"), 400)
    assert error["issues"] == [
        {"parameter": None, "value": "60", "message": "more than 50 different parameters"}
    ]


def test_options_of_the_whole_server_lists_its_methods() -> None:
    with daemon() as service:
        answer = exchange(service, "OPTIONS * HTTP/1.1\r\nHost: a\r\n")
        assert (answer.status, answer.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")
        assert exchange(service, "GET * HTTP/1.1\r\nHost: a\r\n").status in (400, 405)


def test_a_request_of_http_1_0_needs_no_host(service: Address) -> None:
    assert exchange(service, "GET /healthz HTTP/1.0\r\n").status == 200


def test_queries_are_decoded_as_forms_are(service: Address) -> None:
    spellings = ["query=lower+back", "query=lower%20back", "%71uery=lower%20%62ack", "&&query=lower+back&"]
    assert len({fetch(service, f"{SEARCH}?{spelling}").body for spelling in spellings}) == 1


# ---- MCP: what HTTP adds to the endpoint, whose own tests need no server ----

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def post_mcp(service: Address, body: bytes = PING, path: str = "/mcp", **headers: str) -> Response:
    return fetch(service, path, "POST", body, **({"content_type": "application/json"} | headers))


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_mcp_answers_with_and_without_a_slash_and_judges_origins_itself(service: Address, path: str) -> None:
    answer = post_mcp(service, path=path, mcp_protocol_version=" 2025-06-18\t")  # servers remove the blanks
    assert (answer.status, answer.body) == (200, b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == (JSON, "no-store")
    assert answer.headers["access-control-allow-origin"] == BASE_URL
    origin = "http://localhost:6274"
    large = post_mcp(service, b" " * 65537, path, origin=origin)
    for answer in (large, fetch(service, path, "OPTIONS", origin=origin)):
        assert answer.headers["access-control-allow-origin"] == origin
    assert post_mcp(service, path=path, origin="https://evil.example").status == 403
    assert json.loads(post_mcp(service, path=path, host="a/b").body)["error"]["code"] == -32600
    notified = post_mcp(service, b'{"jsonrpc":"2.0","method":"notifications/initialized"}', path)
    assert (notified.status, notified.body) == (202, b"")
    assert "content-type" not in notified.headers


# ---- The contract: what is served is what it says ----

READ_OPERATIONS = {
    template: operations["get"] for template, operations in CONTRACT["paths"].items() if "get" in operations
}


def resolved(value: Any) -> Any:
    """`value`, or the component that it refers to."""
    if "$ref" not in value:
        return value
    _, _, kind, name = value["$ref"].split("/")
    return CONTRACT["components"][kind][name]


def declared_response(operation: dict[str, Any], status: int) -> Any:
    """What an operation declares for a status: that one, those of its hundred, or every other."""
    responses = operation["responses"]
    declared = responses.get(str(status)) or responses.get(f"{status // 100}XX") or responses["default"]
    return resolved(declared)


def declared_schema(declared: Any, answer: Response) -> Draft202012Validator:
    """The schema of the body of an answer, by its media type."""
    return validator(declared["content"][answer.headers["content-type"]]["schema"])


@pytest.mark.parametrize("template", [each for each in READ_OPERATIONS if each != "/embed"])
def test_a_400_fits_its_declared_schema_which_requires_issues(service: Address, template: str) -> None:
    answer = fetch(service, template, Host="a/b")
    document = json.loads(answer.body)
    schema = declared_schema(declared_response(READ_OPERATIONS[template], 400), answer)
    schema.validate(document)
    assert not schema.is_valid({key: value for key, value in document.items() if key != "issues"})


def is_part(part: Any, whole: Any) -> bool:
    """Whether `whole` is `part` with more members and items; `…` in `part` stands for any further text."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        return all(any(is_part(member, candidate) for candidate in whole) for member in part)
    if isinstance(part, str) and isinstance(whole, str) and "…" in part:
        return re.match(".*?".join(map(re.escape, part.split("…"))), whole, re.DOTALL) is not None
    return bool(part == whole)


def local(value: Any) -> Any:
    """An example of the contract as a service at BASE_URL would give it."""
    public, here = CONTRACT["servers"][0]["url"], BASE_URL
    hosts = [f"tag:{urlsplit(url).hostname}" for url in (public, here)]
    return json.loads(json.dumps(value).replace(public, here).replace(*hosts))


EXAMPLES = {
    template: (media, example)
    for template, operation in READ_OPERATIONS.items()
    for media, body in resolved(operation["responses"]["200"])["content"].items()
    for example in body.get("examples", {}).values()
}


def test_every_representation_of_data_has_an_example() -> None:
    data = {template for template, operation in READ_OPERATIONS.items() if operation["tags"] != ["Pages"]}
    assert set(EXAMPLES) == data - {"/.well-known/openapi.json"}  # which is its own


@pytest.mark.parametrize("template", EXAMPLES)
def test_an_example_is_what_its_path_answers_or_a_part_of_it(service: Address, template: str) -> None:
    media, example = EXAMPLES[template]
    answer = fetch(service, example["summary"])
    assert re.fullmatch(re.sub("{.*}", "[^/]+", template), example["summary"].partition("?")[0])
    assert (answer.status, answer.headers["content-type"]) == (200, media)
    body = json.loads(answer.body) if media == "application/json" else answer.body.decode()
    assert is_part(local(example["value"]), body)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "status"), [("/mcp", 200), ("/api/websub/hub", 202)])
def test_the_example_of_a_post_is_answered_as_the_contract_says(path: str, status: int) -> None:
    operation = CONTRACT["paths"][path]["post"]
    ((media, request),) = operation["requestBody"]["content"].items()
    sent = local(request["examples"]["sample"]["value"])
    body = json.dumps(sent) if media == "application/json" else urlencode(sent)
    with daemon(base_url=BASE_URL) as service:
        answer = fetch(service, path, "POST", body.encode(), Content_Type=media)
    assert answer.status == status
    declared = operation["responses"][str(status)]["content"][answer.headers["content-type"]]
    given = json.loads(answer.body) if media == "application/json" else answer.body.decode()
    assert given == local(declared["examples"]["sample"]["value"])


@pytest.mark.parametrize("template", READ_OPERATIONS)
def test_every_read_has_the_headers_and_the_type_it_declares(service: Address, template: str) -> None:
    path = template.replace("{date}", "2026-01-01").replace("{id}", NEWEST_ID)
    answer = fetch(service, path, Accept_Encoding="gzip")
    declared = resolved(READ_OPERATIONS[template]["responses"]["200"])
    assert_declared(declared, answer)
    assert next(iter(declared["content"])) == answer.headers["content-type"]
    for plain in (fetch(service, path, Accept="application/json"), fetch(service, path)):
        if plain.headers["content-type"] == "application/json":
            declared_schema(declared, plain).validate(json.loads(plain.body))


# Fields of HTTP itself, which no contract declares.
OF_THE_SERVER = {"server", "date", "connection", "content-length"}


def assert_declared(declared: Any, answer: Response) -> None:
    """Every header of the answer is declared, with this value, and every required one is there."""
    headers = {name.lower(): resolved(header) for name, header in declared["headers"].items()}
    assert set(answer.headers) - OF_THE_SERVER - {"content-type"} <= set(headers)
    assert {name for name, header in headers.items() if header.get("required")} <= set(answer.headers)
    for name in set(headers) & set(answer.headers):
        Draft202012Validator(headers[name]["schema"]).validate(answer.headers[name])


FORM = "application/x-www-form-urlencoded"
ERRORS: list[tuple[str, dict[str, Any]]] = [
    (f"get {SEARCH}", {"path": f"{SEARCH}?limit=x"}),
    ("get /reviews", {"path": "/reviews?page=x"}),
    ("get /reviews/{id}", {"path": "/reviews/%ff"}),
    ("get /reviews/{id}", {"path": "/reviews/x%20", "Accept": JSON}),
    ("get /reviews.json", {"method": "PUT"}),
    ("get /reviews.json", {"If_None_Match": "*"}),
    ("get /feed.xml", {"If_None_Match": "*", "Accept_Encoding": "gzip"}),
    ("get /", {"Accept": JSON}),
    ("post /mcp", {"body": b"{}"}),
    ("post /mcp", {"body": b'{"jsonrpc":"2.0","method":"x"}', "Content_Type": JSON}),
    ("post /mcp", {"body": PING, "Content_Type": JSON}),
    ("post /mcp", {"body": b"{", "Content_Type": JSON}),
    ("post /mcp", {"body": b"{}", "Origin": "https://evil.example"}),
    ("post /mcp", {"body": b"{}", "Content_Type": JSON, "Accept": "image/png"}),
    ("post /mcp", {"body": b"x" * 70_000}),
    ("post /mcp", {"method": "GET"}),
    ("post /mcp", {"method": "DELETE"}),
    ("post /api/websub/hub", {"body": b"x"}),
    ("post /api/websub/hub", {"body": b"hub.mode=x", "Content_Type": FORM}),
    ("post /api/websub/hub", {"body": b"x" * 70_000}),
    ("post /api/websub/hub", {"method": "PUT"}),
]


@pytest.mark.parametrize(("operation", "sent"), ERRORS)
def test_every_header_of_an_answer_is_in_the_contract(
    service: Address, operation: str, sent: dict[str, Any]
) -> None:
    method, _, template = operation.partition(" ")
    answer = fetch(service, **({"path": template, "method": method.upper()} | sent))
    declared = declared_response(CONTRACT["paths"][template][method], answer.status)
    assert_declared(declared, answer)
    if answer.headers.get("content-type") == JSON:
        declared_schema(declared, answer).validate(json.loads(answer.body))
    assert not answer.body or answer.headers["content-type"] in declared["content"]


# ---- The root ----


@pytest.mark.parametrize(
    ("accept", "kind"),
    [("text/html, */*;q=0.1", HTML), ("text/markdown;q=0.9, text/html", HTML), (JSON, JSON),
     ("text/markdown, text/html", MARKDOWN), ("application/json;q=0.5, text/markdown", JSON)],
)  # fmt: skip
def test_the_root_is_a_page_unless_json_or_markdown_is_preferred(
    service: Address, accept: str, kind: str
) -> None:
    answer = fetch(service, "/", Accept=accept)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert fetch(service, "/", Accept=accept, If_None_Match=answer.headers["etag"]).status == 304
    assert ("content-security-policy" in answer.headers) == kind.startswith("text/html")
    assert kind != MARKDOWN or answer.body == fetch(service, "/llms.txt").body


def test_the_root_lists_the_urls_of_all_endpoints(service: Address) -> None:
    links = json.loads(fetch(service, "/", Accept="application/json").body)
    for url in links.values():
        assert url.startswith(BASE_URL)
        path = url.removeprefix(BASE_URL).replace("{date}", "2026-01-01").replace("{id}", NEWEST_ID)
        assert fetch(service, path).status == (405 if path in ("/mcp", "/api/websub/hub") else 200)
        assert re.fullmatch("[!-~]+", url)
