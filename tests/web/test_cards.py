"""The cards by which assistants find the MCP endpoint, as a caller sees them.

`CARD_RULES` and `CATALOGUE_RULES` are written by hand from the two specifications.

Sections: callers - where they are - the server card - the catalogue.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from lab.data_sets import write_files
from lab.services import SAMPLE, Response, call

import mcp_rpc
import reviewsd
from reviewslib import links
from reviewslib.process.settings import Settings
from reviewslib.web.app import Application

BASE_URL = "https://reviews.example.com"
Object = dict[str, Any]

# ---- Callers ----


def application(base_url: str = BASE_URL, data: Path = SAMPLE) -> Application:
    return reviewsd.create_app(Settings(data=data, base_url=base_url))


def read(path: str, base_url: str = BASE_URL, data: Path = SAMPLE) -> Object:
    document: Object = json.loads(call(application(base_url, data), path).body)
    return document


@pytest.fixture(scope="module")
def sample() -> Application:
    return application()


@pytest.fixture
def data_of(tmp_path: Path) -> Callable[[Object, Object], Path]:
    """A data directory with this business and these insights, and no reviews."""

    def write(business: Object, insights: Object) -> Path:
        return write_files(tmp_path, {"business": business, "reviews": []}, insights)

    return write


# ---- Where they are ----

WITHOUT_NAME = [
    pytest.param("http://127.0.0.1:8080", id="an IPv4 address"),
    pytest.param("http://[::1]:8080", id="an IPv6 address"),
    pytest.param("http://0x7f.1", id="an address in other digits"),
    pytest.param("http://localhost:8080", id="a name without a domain"),
    pytest.param("https://my_shop.example", id="a name with another character"),
    pytest.param(f"https://{'a' * 63}.{'b' * 63}.{'c' * 63}.example", id="a long name"),
]


@pytest.mark.parametrize("path", links.CARD_PATHS)
def test_a_card_is_a_document_like_the_others(sample: Application, path: str) -> None:
    answer = call(sample, path)

    assert answer.status == 200
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("path", links.CARD_PATHS)
def test_who_has_a_card_gets_304(sample: Application, path: str) -> None:
    tag = call(sample, path).headers["etag"]

    answer = call(sample, path, if_none_match=tag)

    assert answer.status == 304


@pytest.mark.parametrize("path", links.CARD_PATHS)
@pytest.mark.parametrize("base_url", WITHOUT_NAME)
def test_without_a_name_of_the_host_there_is_no_card(base_url: str, path: str) -> None:
    assert call(application(base_url), path).status == 404


@pytest.mark.parametrize("base_url", WITHOUT_NAME)
@pytest.mark.parametrize("path", ["/", "/robots.txt"])
def test_without_a_name_nothing_leads_to_a_card(base_url: str, path: str) -> None:
    body = call(application(base_url), path, accept="text/html").body.decode()

    assert not re.search("agentmap|server-card|ard[.]json|rel=.ard", body.lower())


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/ai-catalog.json",
        "/.well-known/mcp.json",
        "/.well-known/mcp/server-card.json",
    ],
)
def test_addresses_that_the_specifications_gave_up_are_not_served(
    sample: Application, path: str
) -> None:
    assert call(sample, path).status == 404


def test_robots_lead_to_the_catalogue_and_let_the_card_be_read() -> None:
    robots = call(application(f"{BASE_URL}/shop"), "/robots.txt").body.decode()

    lines = robots.splitlines()

    assert "Allow: /shop/mcp/server-card" in lines
    assert f"Agentmap: {BASE_URL}/shop/.well-known/ard.json" in lines


def test_the_home_page_links_to_the_catalogue(sample: Application) -> None:
    page = call(sample, "/", accept="text/html").body.decode()

    (link,) = re.findall('<link rel="ard".*?>', page)

    assert 'href="/.well-known/ard.json"' in link


# ---- The server card ----

SHORT = {"type": "string", "minLength": 1, "maxLength": 100}
URL = {"type": "string", "pattern": "^https?://"}
CARD_RULES = {
    "type": "object",
    "required": ["$schema", "name", "version", "description"],
    "additionalProperties": False,
    "properties": {
        "$schema": {
            "const": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
        },
        "name": {
            "type": "string",
            "minLength": 3,
            "maxLength": 200,
            "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
        },
        "version": {"type": "string", "pattern": "^[0-9]+[.][0-9]+[.][0-9]+$"},
        "description": SHORT,
        "title": SHORT,
        "websiteUrl": URL,
        "remotes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "url", "supportedProtocolVersions"],
                "additionalProperties": False,
                "properties": {
                    "type": {"const": "streamable-http"},
                    "url": URL,
                    "supportedProtocolVersions": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                    },
                },
            },
        },
    },
}
LONG_NAME = {"name": "Ann's \u202ebakery\nand more " * 40}
BUSINESSES = [
    pytest.param({"name": "Ann's Bakery"}, id="a short name"),
    pytest.param(LONG_NAME, id="a long name with controls"),
]


@pytest.mark.parametrize("business", BUSINESSES)
def test_the_card_keeps_to_its_specification(
    data_of: Callable[[Object, Object], Path], business: Object
) -> None:
    card = read(links.SERVER_CARD_PATH, data=data_of(business, {}))

    Draft202012Validator(CARD_RULES).validate(card)


def test_the_card_has_the_media_type_of_its_specification(sample: Application) -> None:
    answer = call(sample, links.SERVER_CARD_PATH)

    assert answer.headers["content-type"] == "application/mcp-server-card+json"


def test_the_card_is_named_by_the_reversed_host() -> None:
    card = read(links.SERVER_CARD_PATH, "https://Reviews.Example.com:8443/shop")

    assert card["name"] == "com.example.reviews/reviewsd"


def discovered(service: Application) -> Object:
    """What `server/discover` answers."""
    meta = {
        mcp_rpc.VERSION_CLAIM: mcp_rpc.STATELESS_VERSIONS[0],
        mcp_rpc.CAPABILITIES_CLAIM: {},
    }
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "server/discover",
        "params": {"_meta": meta},
    }
    answer: Response = call(
        service,
        "/mcp",
        "POST",
        json.dumps(message).encode(),
        content_type="application/json",
        accept="application/json, text/event-stream",
        mcp_protocol_version=mcp_rpc.STATELESS_VERSIONS[0],
        mcp_method="server/discover",
    )
    result: Object = json.loads(answer.body)["result"]
    return result


def test_the_card_agrees_with_what_the_server_says_of_itself(
    sample: Application,
) -> None:
    card = json.loads(call(sample, links.SERVER_CARD_PATH).body)
    (remote,) = card["remotes"]

    result = discovered(sample)
    server = result["_meta"][mcp_rpc.SERVER_INFO]

    assert remote["supportedProtocolVersions"] == result["supportedVersions"]
    assert remote["url"] == f"{BASE_URL}/mcp"
    for key in ("title", "version", "websiteUrl"):
        assert card[key] == server[key]


# ---- The catalogue ----

CATALOGUE_RULES = {
    "type": "object",
    "required": ["specVersion", "entries"],
    "additionalProperties": False,
    "properties": {
        "specVersion": {"const": "1.0"},
        "host": {
            "type": "object",
            "required": ["displayName"],
            "additionalProperties": False,
            "properties": {
                "displayName": {"type": "string"},
                "documentationUrl": URL,
                "logoUrl": URL,
            },
        },
        "entries": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["identifier", "displayName", "type"],
                "oneOf": [{"required": ["url"]}, {"required": ["data"]}],
                "additionalProperties": False,
                "properties": {
                    "identifier": {
                        "type": "string",
                        "pattern": "^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$",
                    },
                    "displayName": {"type": "string"},
                    "type": {"type": "string"},
                    "url": URL,
                    "data": {},
                    "description": {"type": "string"},
                    "version": {"type": "string"},
                    "representativeQueries": {
                        "type": "array",
                        "minItems": 2,
                        "maxItems": 5,
                        "uniqueItems": True,
                        "items": {"type": "string", "minLength": 1},
                    },
                },
            },
        },
    },
}


@pytest.mark.parametrize("business", BUSINESSES)
def test_the_catalogue_keeps_to_its_specification(
    data_of: Callable[[Object, Object], Path], business: Object
) -> None:
    document = read(links.HOST_CATALOGUE_PATH, data=data_of(business, {}))

    Draft202012Validator(CATALOGUE_RULES).validate(document)


def test_the_catalogue_of_the_sample_keeps_to_its_specification(
    sample: Application,
) -> None:
    document = json.loads(call(sample, links.HOST_CATALOGUE_PATH).body)

    Draft202012Validator(CATALOGUE_RULES).validate(document)


def test_the_one_entry_of_the_catalogue_is_the_card(sample: Application) -> None:
    (entry,) = json.loads(call(sample, links.HOST_CATALOGUE_PATH).body)["entries"]

    card = call(sample, entry["url"].removeprefix(BASE_URL))

    assert entry["type"] == card.headers["content-type"]


def subjects(*labels: str) -> list[Object]:
    """Entries of the insights with these labels, the most mentioned first."""
    entries = []
    for count, label in enumerate(labels):
        entries.append({"id": label, "label": label, "mention_count": 100 - count})
    return entries


DataOf = Callable[[Object, Object], Path]


def entry_of(data_of: DataOf, aspects: list[str], services: list[str]) -> Object:
    """The entry of the catalogue, where this is what reviews speak of."""
    insights = {
        "aspects": subjects(*aspects),
        "entities": {"services": subjects(*services)},
    }
    data = data_of({"name": "Ann"}, insights)
    (entry,) = read(links.HOST_CATALOGUE_PATH, data=data)["entries"]
    return dict(entry)


@pytest.mark.parametrize(
    ("aspects", "services", "expected"),
    [
        pytest.param(["Parking"], ["Bread"], ["Parking", "Bread"], id="two"),
        pytest.param(
            ["a", "b", "c", "d"],
            ["x", "y", "z"],
            ["a", "b", "c", "x", "y"],
            id="more than five",
        ),
    ],
)
def test_queries_are_made_of_aspects_and_services(
    data_of: DataOf, aspects: list[str], services: list[str], expected: list[str]
) -> None:
    entry = entry_of(data_of, aspects, services)

    queries = [f"What do customers say about {subject}?" for subject in expected]
    assert entry["representativeQueries"] == queries


@pytest.mark.parametrize(
    ("aspects", "services"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(["Parking"], [], id="one subject"),
        pytest.param(["Parking"], ["Parking"], id="one subject twice"),
    ],
)
def test_fewer_than_two_queries_are_none(
    data_of: DataOf, aspects: list[str], services: list[str]
) -> None:
    entry = entry_of(data_of, aspects, services)

    assert "representativeQueries" not in entry


def people_in(application: Application) -> Iterator[str]:
    """Everybody whom the data of an application name."""
    insights = json.loads(call(application, "/insights.json").body)
    for entry in insights["entities"]["technicians"]:
        yield entry["label"]
    for review in json.loads(call(application, "/reviews.json").body)["reviews"]:
        yield review["author"]


@pytest.mark.parametrize("path", links.CARD_PATHS)
def test_a_card_names_no_customer_or_worker(sample: Application, path: str) -> None:
    said = call(sample, path).body.decode()

    assert [name for name in people_in(sample) if name in said] == []
