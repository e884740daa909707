"""Small data files, changes of these files, and the documents made of them.

Sections: contract - files - datasets - good files - changes - rules.
"""

import copy
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from lab.feed_rules import atom_faults, json_feed_faults
from lab.page_samples import TEMPLATES
from lab.services import ROOT
from reviewslib.dataset import reviews, searching
from reviewslib.dataset.contract import FORMATS, read_contract
from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.strict_json import members
from reviewslib.links import ServiceUrls, service_urls
from reviewslib.web import feeds
from reviewslib.web.site import site_of

Object = dict[str, Any]

# ---- Contract ----

DOCUMENT: Object = json.loads((ROOT / "reviewslib" / "openapi.json").read_bytes())
FILE_SCHEMAS: Object = json.loads((ROOT / "reviewslib" / "files.json").read_bytes())
CONTRACT = read_contract(DOCUMENT, FILE_SCHEMAS)
PARAMETERS = CONTRACT.search_parameters
SERVED_SCHEMAS = Registry[Any]().with_resource(
    "openapi.json", DRAFT202012.create_resource(DOCUMENT)
)


@cache
def schema_validator(name: str) -> Draft202012Validator:
    """The validator of the schema library for a schema of the contract."""
    return Draft202012Validator(DOCUMENT | {"$ref": f"#/components/schemas/{name}"})


def file_validator(name: str) -> Draft202012Validator:
    """The validator of the schema library for a data file, with our formats.

    Both schema documents are as they are stored.
    """
    formats = FormatChecker(())
    for format_name, holds in FORMATS.items():
        formats.checks(format_name)(partial(holds_of_texts, holds))
    schema = FILE_SCHEMAS | {"$ref": f"#/$defs/{name}"}
    return Draft202012Validator(schema, registry=SERVED_SCHEMAS, format_checker=formats)


def holds_of_texts(holds: Callable[[str], bool], value: Any) -> bool:
    """Formats are of texts alone (JSON Schema Validation, section 7.1)."""
    return not isinstance(value, str) or holds(value)


# ---- Files ----

CORPUS = sorted((ROOT / "tests" / "corpus").iterdir())  # files that must be refused


def review(identifier: str = "a", **others: Any) -> Object:
    return {
        "id": identifier,
        "author": "Ann B.",
        "rating": 5,
        "date": "2025-06-01",
    } | others


def a_file(*given_reviews: Object, **others: Any) -> Object:
    return {"business": {"name": "Larkspur"}, "reviews": list(given_reviews)} | others


def file_bytes(value: Any) -> bytes:
    """JSON as programs write it, able to hold NaN and half surrogate pairs."""
    return json.dumps(value, indent=1).encode()


def compact(value: Any) -> bytes:
    """JSON as the service writes it: compact UTF-8, keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# ---- Datasets ----

URLS = service_urls("https://r.example")


def loaded(
    document: Object, insights: Object | None = None, urls: ServiceUrls = URLS
) -> Dataset:
    """The dataset of two values as JSON files would hold them."""
    insights_file = None if insights is None else file_bytes(insights)
    return reviews.load(CONTRACT, file_bytes(document), insights_file, urls)


def served(dataset: Dataset) -> list[Object]:
    """The reviews of a dataset as its document holds them."""
    return json.loads(dataset.reviews_json)["reviews"]


# ---- Good files: every key of a review, every list of the insights, no warning ----

GOOD_FILES: Object = json.loads(
    (ROOT / "tests" / "lab" / "good_files.json").read_bytes()
)
OKAFOR = "Dr. Tobias Okafor"
# The places of objects in the good files.
OBJECTS = [
    "reviews",
    "reviews/business",
    "reviews/business/address",
    "reviews/aggregate_rating",
    "reviews/reviews/0",
    "reviews/reviews/0/owner_reply",
    "insights",
    "insights/date_range",
    "insights/entities",
    "insights/aspects/0",
    "insights/per_review/01B",
    "insights/per_review/01B/aspects/0",
]

# ---- Changes ----

ABSENT = object()
# More often than others: to be absent.
ODD_VALUES: list[Any] = [ABSENT, ABSENT, None, True, [], {}, [None], [""]]
ODD_VALUES += ["", " ", "x", "x\n", "\ud800", "\x00", "\ufffe"]
ODD_VALUES += [0, -0.0, 1, 4.5, 5, 6, 10**30, 10**4299, float("nan"), float("-inf")]
# Ids and words of the good files.
ODD_VALUES += ["01A", "01B", "stable"]
ODD_VALUES += ["2025-02-29", "2025-06-01", "2025-06-01T10:00:60z"]
ODD_VALUES += ["0001-01-01T00:00:00+23:59"]
ODD_VALUES += ["https://x.example/", "http://[x", "http://x:y", "HTTP://X/?<>"]
ODD_VALUES += ["https://\u2100.example/", "http://@"]
any_text = st.text(st.characters(), max_size=20)
any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3)
    ),
    max_leaves=6,
)


def steps(place: str) -> list[str | int]:
    """A place such as "reviews/17/rating" as keys and indexes."""
    return [int(step) if step.isdecimal() else step for step in place.split("/")]


def node_at(document: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        document = document[step]
    return document


def paths_below(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """The path of every node in a document."""
    for step, member in members(value):
        yield (*path, step)
        yield from paths_below(member, (*path, step))


def changed(document: Object, path: Sequence[str | int], value: Any) -> Object:
    """A copy of `document` with another value (or none: ABSENT) at `path`."""
    document = copy.deepcopy(document)
    holder = node_at(document, path[:-1])
    if value is ABSENT:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return document


@st.composite
def mutations(draw: st.DrawFn, document: Object = GOOD_FILES) -> Object:
    """A document, else the good files, with up to three nodes removed or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        if paths := list(paths_below(document)):
            path = draw(st.sampled_from(paths))
            alike = [
                odd
                for odd in ODD_VALUES
                if isinstance(odd, type(node_at(document, path)))
            ]
            value = (
                st.sampled_from(alike or ODD_VALUES)
                | st.sampled_from(ODD_VALUES)
                | any_json
            )
            document = changed(document, path, draw(value))
    return document


# ---- Rules: of what a dataset becomes, and of a line of the log ----

WHEN_EMPTY = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def check_served(dataset: Dataset) -> None:
    """Every representation of the dataset obeys its schema or the rules of its feed."""
    site = site_of(TEMPLATES, dataset, URLS)
    json_feed = json.loads(feeds.json_feed(site))
    assert atom_faults(ET.fromstring(feeds.atom_feed(site, WHEN_EMPTY))) == []
    assert json_feed_faults(json_feed) == []
    documents = {
        "ReviewsDocument": json.loads(dataset.reviews_json),
        "InsightsDocument": json.loads(dataset.insights_json),
        "SearchResult": json.loads(
            searching.search(dataset, Query(limit=100)).encoded()
        ),
        "SinceResult": json.loads(searching.since(dataset, "0001-01-01").encoded()),
        "JsonFeed": json_feed,
    }
    for name, document in documents.items():
        schema_validator(name).validate(document)


def is_one_printable_line(text: str) -> bool:
    """Whether a log can hold `text` as one line: no line ends, no commands."""
    return bool(text.encode()) and not re.search(r"[\x00-\x1f]", text)
