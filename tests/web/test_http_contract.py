"""The contract over HTTP: responses are as it declares them, and its examples are true.

Every request goes to the daemon and to the WSGI application.

Sections: the document - declared responses - examples.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest
from lab.contract_checks import (
    CONTRACT,
    EXAMPLES,
    READ_OPERATIONS,
    check_body,
    check_headers,
    declared_response,
    is_part,
    local,
)
from lab.services import Response, Service, fetch

Ask = Callable[..., Response]

BASE_URL = "http://reviews.example"
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
SEARCH = "/api/reviews/search"
MCP = "/mcp"
HUB = "/api/websub/hub"
NEWEST_REVIEW = "/reviews/01M7F1SV60XJ4PFV38D0FMZ6BZ"

# ---- The document ----


def served_contract(ask: Ask) -> Any:
    return json.loads(ask("/.well-known/openapi.json").body)


def test_the_contract_is_as_stored_but_for_where_and_whose_it_is(ask: Ask) -> None:
    served = served_contract(ask)

    changed = {"servers": None, "info": None}
    assert served | changed == CONTRACT | changed


def test_the_contract_names_this_service(ask: Ask) -> None:
    served = served_contract(ask)

    assert served["servers"][0]["url"] == BASE_URL


def test_the_contact_of_the_contract_is_the_business(ask: Ask) -> None:
    business = json.loads(ask("/reviews.json").body)["business"]

    contact = served_contract(ask)["info"]["contact"]

    assert contact == {key: business[key] for key in ("name", "url", "email")}


def test_language_models_can_read_the_whole_contract(ask: Ask) -> None:
    answer = ask("/.well-known/openapi.json")

    assert len(answer.body) <= 61_440


# ---- Declared responses ----


@dataclass(frozen=True)
class Sent:
    """A request for an operation of the contract."""

    template: str
    what: str = "plain"
    # The path; by default the template with a date and an id that exist.
    path: str = ""
    # The method of the operation, and the one that is sent.
    operation: str = "get"
    method: str = ""
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def by(self, ask: Ask) -> Response:
        path = self.template.replace("{date}", "2026-01-01")
        path = self.path or path.replace("/reviews/{id}", NEWEST_REVIEW)
        method = self.method or self.operation.upper()
        return ask(path, method, self.body, **self.headers)

    def declared(self, status: int) -> Any:
        operation = CONTRACT["paths"][self.template][self.operation]
        return declared_response(operation, status)


def reads() -> Iterator[Sent]:
    """Of every path that can be read."""
    for path in READ_OPERATIONS:
        yield Sent(path)
        yield Sent(path, "as JSON", headers={"accept": JSON})
        yield Sent(path, "packed", headers={"accept_encoding": "gzip"})
        yield Sent(path, "not modified", headers={"if_none_match": "*"})
        # Errors of the frame are frames.
        if path != "/embed":
            yield Sent(path, "of a bad host", headers={"host": "a/b"})


def posted(
    template: str, what: str, body: bytes, kind: str | None, **headers: str
) -> Sent:
    if kind:
        headers["content_type"] = kind
    return Sent(template, what, operation="post", body=body, headers=headers)


NOTIFICATION = b'{"jsonrpc":"2.0","method":"x"}'
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
TOO_LARGE = b"x" * 70_000
STRANGER = "https://evil.example"
SENT = [
    *reads(),
    Sent(SEARCH, "wrong parameters", path=f"{SEARCH}?limit=x&page=x"),
    Sent("/reviews", "wrong parameters", path="/reviews?limit=x&page=x"),
    Sent("/reviews/{id}", "no UTF-8", path="/reviews/%ff"),
    Sent("/reviews/{id}", "none", path="/reviews/x%20", headers={"accept": JSON}),
    posted(MCP, "a notification", NOTIFICATION, JSON),
    posted(MCP, "a ping", PING, JSON),
    posted(MCP, "no JSON", b"{", JSON),
    posted(MCP, "too large", TOO_LARGE, JSON),
    posted(MCP, "text", b"{}", "text/plain"),
    posted(MCP, "of a strange page", b"{}", JSON, origin=STRANGER),
    posted(MCP, "for a picture", b"{}", JSON, accept="image/png"),
    Sent(MCP, "GET", operation="post", method="GET"),
    Sent(MCP, "DELETE", operation="post", method="DELETE"),
    posted(HUB, "an incomplete form", b"hub.mode=x", FORM),
    posted(HUB, "too large", TOO_LARGE, FORM),
    posted(HUB, "no form", b"x", None),
    Sent(HUB, "PUT", operation="post", method="PUT"),
]


def name_of(sent: Sent) -> str:
    return f"{sent.operation} {sent.template} {sent.what}"


every_sent = pytest.mark.parametrize("sent", SENT, ids=name_of)


@every_sent
def test_the_headers_of_a_response_are_as_declared(ask: Ask, sent: Sent) -> None:
    answer = sent.by(ask)

    check_headers(sent.declared(answer.status), answer)


@every_sent
def test_the_body_of_a_response_is_as_declared(ask: Ask, sent: Sent) -> None:
    answer = sent.by(ask)

    check_body(sent.declared(answer.status), answer)


# ---- Examples ----

# The description is its own example; the feed of a search is formed like `/feed.xml`.
WITHOUT_EXAMPLE = {"/.well-known/openapi.json", "/api/reviews/search.xml"}


def test_every_representation_of_data_has_an_example() -> None:
    pages = {
        path
        for path, operation in READ_OPERATIONS.items()
        if operation["tags"] == ["Pages"]
    }

    assert EXAMPLES.keys() == READ_OPERATIONS.keys() - pages - WITHOUT_EXAMPLE


@pytest.mark.parametrize("template", EXAMPLES)
def test_the_summary_of_an_example_is_its_path(template: str) -> None:
    path = EXAMPLES[template].path.partition("?")[0]

    assert re.fullmatch(re.sub("{.*}", "[^/]+", template), path)


@pytest.mark.parametrize("template", EXAMPLES)
def test_an_example_is_a_part_of_what_its_path_answers(ask: Ask, template: str) -> None:
    example = EXAMPLES[template]

    answer = ask(example.path)

    assert answer.status == 200
    assert answer.headers["content-type"] == example.media_type
    assert is_part(local(example.value, BASE_URL), content_of(answer))


def content_of(answer: Response) -> Any:
    """The body as its media type says."""
    if answer.headers["content-type"] == JSON:
        return json.loads(answer.body)
    return answer.body.decode()


def bytes_of(value: Any, media_type: str) -> bytes:
    """A body of a media type."""
    if media_type == JSON:
        return json.dumps(value).encode()
    return urlencode(value).encode()


@pytest.mark.parametrize(
    ("path", "status"),
    [pytest.param(MCP, 200, id="mcp"), pytest.param(HUB, 202, id="hub")],
)
def test_the_example_of_a_post_is_answered_as_declared(
    running: Service, path: str, status: int
) -> None:
    operation = CONTRACT["paths"][path]["post"]
    ((media_type, request),) = operation["requestBody"]["content"].items()
    given = local(request["examples"]["sample"]["value"], BASE_URL)
    body = bytes_of(given, media_type)

    answer = fetch(running, path, "POST", body, content_type=media_type)

    declared = operation["responses"][str(status)]["content"]
    examples = declared[answer.headers["content-type"]]["examples"]
    assert answer.status == status
    assert content_of(answer) == local(examples["sample"]["value"], BASE_URL)
