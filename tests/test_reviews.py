"""`reviews.py` answers as the design says, whatever it is asked and whatever its files hold.

Expected answers come from `plain_definition.py`, from small tables, and from the specifications of the two
feeds, written down rule by rule in `feed_rules.py`. Nothing here opens a socket, sleeps or reads the clock.

Builders - Search: examples - Search: the plain definition - Since - Queries - Broken files -
Accepted files - Any file at all - Rating - Feeds - Feeds: dates - Feeds: readers and renderings
"""

import copy
import hashlib
import json
import os
import re
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import feedparser
import plain_definition as plain
import pytest
from feed_rules import ATOM, atom_faults, instant, json_feed_faults
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import feeds
import query as query_module
import reviews
import strict_json
from contract import BadData, read_contract
from links import links_below
from query import BadQuery, Query
from reviews import Dataset

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(__file__).resolve().parent / "corpus"
DOCUMENT: Object = json.loads((ROOT / "data" / "openapi.json").read_text(encoding="utf-8"))
CONTRACT = read_contract(DOCUMENT)
PARAMETERS = CONTRACT.search_parameters
NAMES = list(PARAMETERS)
FILTERS = [name for name in NAMES if name not in ("limit", "offset")]


# ---- Builders: small files, and what becomes of them ----


def review(identifier: str = "a", **members: Any) -> Object:
    return {"id": identifier, "author": "Ann B.", "rating": 5, "date": "2025-06-01"} | members


def a_file(*given_reviews: Object, **members: Any) -> Object:
    return {"business": {"name": "Larkspur"}, "reviews": list(given_reviews)} | members


def dense(value: Any) -> bytes:
    """JSON as the service writes it: compact UTF-8, keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def written(value: Any) -> bytes:
    """JSON as an operator's program may write it, able to hold NaN and half surrogate pairs."""
    return json.dumps(value, indent=1).encode()


def loaded(document: Object, insights: Object | None = None) -> Dataset:
    return reviews.load(CONTRACT, written(document), None if insights is None else written(insights))


def served(dataset: Dataset) -> list[Object]:
    """The reviews of a dataset as its document holds them."""
    return json.loads(dataset.reviews_json)["reviews"]


def asked(parameters: Mapping[str, str]) -> Query:
    return query_module.query_from_pairs(PARAMETERS, list(parameters.items()))


def found(dataset: Dataset, parameters: Mapping[str, str]) -> list[str]:
    """The ids that a search finds, in their order."""
    return [one["id"] for one in json.loads(reviews.search(dataset, asked(parameters)))["reviews"]]


def lines_against(reviews_file: bytes, insights_file: bytes | None = None) -> list[str]:
    """What the operator is told about two bad files."""
    with pytest.raises(BadData) as refusal:
        reviews.load(CONTRACT, reviews_file, insights_file)
    return refusal.value.lines()


def steps(pointer: str) -> list[str | int]:
    """A JSON pointer as keys and indexes."""
    return [int(step) if step.isdecimal() else step for step in pointer.split("/")[1:]]


ABSENT = object()


def node_at(document: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        document = document[step]
    return document


def changed(document: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy of `document` with another value (or none: ABSENT) at `path`."""
    if not path:
        return value
    document = copy.deepcopy(document)
    *way, last = path
    holder = node_at(document, way)
    if value is ABSENT:
        del holder[last]
    else:
        holder[last] = value
    return document


# ---- Search: examples, as set algebra over four reviews ----

OKAFOR, BRANDT = "Dr. Tobias Okafor", "Dr. Anneke Brandt"
FOUR = a_file(
    review("ana", date="2025-03-01", text="Die Straße zum Café", mentioned_technicians=[OKAFOR]),
    review("bob", date="2025-03-01T23:30:00-08:00", rating=4.5, mentioned_services=["massage"]),
    review(
        "cy", date="2024-12-31T23:59:59+14:00", rating=1, text="ὈΔΥΣΣΕΎΣ, İzmir!", mentioned_services=["x"]
    ),
    review(
        "eve", date="2025-03-02T00:10:00Z", rating=4, text="", mentioned_technicians=[BRANDT, "Wes P., LMT"]
    ),
    review("dan", date="2025-03-02", text="Die Straße", mentioned_technicians=[OKAFOR], verified=False),
)
FOUR_INSIGHTS = {
    "entities": {
        "technicians": [{"id": "t1", "label": OKAFOR}, {"id": "t2", "label": "Dr. Nobody Mentioned"}],
        "services": [{"id": "massage", "label": "Massage & Größe"}, {"id": "gone", "label": "Gone"}],
    },
    "per_review": {
        "cy": {"technicians": ["José Ćalić"], "services": ["massage"]},
        "ana": {"services": ["gone"]},
    },
}
ALL = {"ana", "bob", "cy", "eve"}
SEARCHES: list[tuple[dict[str, str], set[str]]] = [
    ({}, ALL),
    ({"query": "strasse"}, {"ana"}),
    ({"query": "STRASSE"}, {"ana"}),
    ({"query": "STRAẞE"}, {"ana"}),
    ({"query": "cafe\u0301"}, {"ana"}),
    ({"query": "CAFÉ"}, {"ana"}),
    ({"query": "cafe"}, set()),
    ({"query": "e z"}, {"ana"}),
    ({"query": "ὀδυσσεύς"}, {"cy"}),
    ({"query": "ὀδυσσεύσ"}, {"cy"}),
    ({"query": "i\u0307zmir"}, {"cy"}),
    ({"query": "izmir"}, set()),
    ({"query": "without words"}, set()),
    ({"query": ""}, ALL),
    ({"rating": "5"}, {"ana"}),
    ({"rating": "5.0"}, {"ana"}),
    ({"rating": "4.5"}, {"bob"}),
    ({"rating": "4"}, {"eve"}),
    ({"rating": "2"}, set()),
    ({"min_rating": "4.5"}, {"ana", "bob"}),
    ({"min_rating": "4.25"}, {"ana", "bob"}),
    ({"min_rating": "1"}, ALL),
    ({"since": "2025-03-01"}, ALL - {"cy"}),
    ({"since": "2025-03-02"}, {"eve"}),
    ({"since": "2025-03-03"}, set()),
    ({"since": "9999-12-31"}, set()),
    ({"since": "0001-01-01"}, ALL),
    ({"until": "2025-03-01"}, ALL - {"eve"}),
    ({"until": "2024-12-31"}, {"cy"}),
    ({"until": "2024-12-30"}, set()),
    ({"since": "2025-03-01", "until": "2025-03-01"}, {"ana", "bob"}),
    ({"since": "2025-03-02", "until": "2025-03-01"}, set()),
    ({"mentions_technician": "Okafor"}, {"ana"}),
    ({"mentions_technician": "tobias okafor"}, {"ana"}),
    ({"mentions_technician": "Dr Okafor"}, {"ana"}),
    ({"mentions_technician": "Okafor, Tobias"}, {"ana"}),
    ({"mentions_technician": "okafor okafor"}, {"ana"}),
    ({"mentions_technician": "Dr."}, {"ana", "eve"}),
    ({"mentions_technician": "dr"}, {"ana", "eve"}),
    ({"mentions_technician": "wes lmt"}, {"eve"}),
    ({"mentions_technician": "Brandt Wes"}, set()),
    ({"mentions_technician": "Okaf"}, set()),
    ({"mentions_technician": "JOSE\u0301"}, {"cy"}),
    ({"mentions_technician": "c\u0301ALIC\u0301"}, {"cy"}),
    ({"mentions_technician": "Nobody"}, set()),
    ({"mentions_service": "MASSAGE"}, {"bob"}),
    ({"mentions_service": "massage & GRÖSSE"}, {"bob"}),
    ({"mentions_service": "massage & gro\u0308ße"}, {"bob"}),
    ({"mentions_service": "massag"}, set()),
    ({"mentions_service": "gone"}, {"ana"}),
    ({"mentions_service": "X"}, {"cy"}),
    ({"query": "i", "since": "2025-01-01"}, {"ana"}),
    ({"min_rating": "4", "mentions_technician": "dr", "until": "2025-03-01"}, {"ana"}),
    ({"rating": "5", "mentions_technician": "brandt"}, set()),
]


@pytest.mark.parametrize(("parameters", "wanted"), SEARCHES)
def test_a_search_finds_exactly_the_reviews_that_pass(parameters: dict[str, str], wanted: set[str]) -> None:
    ids = found(loaded(FOUR, FOUR_INSIGHTS), parameters)
    assert ids == [identifier for identifier in ("eve", "bob", "ana", "cy") if identifier in wanted]


def test_newest_comes_first_and_ids_break_ties_both_descending() -> None:
    ids = ["10", "9", "Z", "a", "é", "\ue000", "𝄞"]
    same_day = [review(identifier, date=f"2025-01-02T0{n}:00:00Z") for n, identifier in enumerate(ids)]
    dataset = loaded(
        a_file(*same_day, review("later", date="2025-01-03"), review("early", date="2025-01-01"))
    )
    assert found(dataset, {}) == ["later", *sorted(ids, reverse=True), "early"]


def test_limit_and_offset_walk_through_all_matches_once() -> None:
    dataset = loaded(a_file(*(review(f"{n:03}") for n in range(130)), review("none", text="x", rating=1)))
    pages = [
        found(dataset, {"rating": "5", "limit": "7", "offset": str(start)}) for start in range(0, 140, 7)
    ]
    assert [identifier for page in pages for identifier in page] == [f"{n:03}" for n in reversed(range(130))]
    assert [len(page) for page in pages] == [7] * 18 + [4, 0]


def test_matched_counts_before_limit_and_offset() -> None:
    answer = json.loads(reviews.search(loaded(FOUR), Query(limit=1, offset=2)))
    assert (answer["matched"], answer["returned"], len(answer["reviews"])) == (4, 1, 1)
    answer = json.loads(reviews.search(loaded(FOUR), Query(offset=10**9)))
    assert answer == {"matched": 4, "returned": 0, "reviews": []}


def test_technicians_are_known_from_the_insights_and_from_the_reviews() -> None:
    index = loaded(FOUR, FOUR_INSIGHTS)
    assert set(reviews.technicians_named(index, "DR")) == {OKAFOR, BRANDT, "Dr. Nobody Mentioned"}
    assert reviews.technicians_named(index, "josé") == ["José Ćalić"]
    assert reviews.technicians_named(index, "someone else") == []


# ---- Search: the plain definition. Values overlap on purpose, so that filters admit and refuse often ----

WORDS = [
    *("Straße", "STRASSE", "ẞ", "İzmir", "izmir", "Ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ", "σασ", "café", "cafe\u0301"),
    *("ﬁne", "fine", "\u212b", "å", "a\u0323\u0307", "ạ\u0307", "👍🏽", "ᾳ", '"\\', "</x>", "\r\n\x00", "0"),
]
WORDINGS: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.lower,
    str.swapcase,
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: unicodedata.normalize("NFC", text),
]
DATES = [
    *("2024-12-31", "2024-12-31T23:59:59+14:00", "2025-01-01T00:00:00-12:00", "2025-01-01", "2025-03-01"),
    *("2025-03-01T23:30:00.25-08:00", "2025-03-01t00:00:00z", "2025-03-02", "0001-01-01", "9999-12-31"),
]
TECHNICIANS = [
    OKAFOR,
    BRANDT,
    "Okafor, Ngozi",
    "DR. JOSÉ ĆALIĆ",
    "dr. jose\u0301 c\u0301alic\u0301",
    "Wes P., LMT",
]
SERVICES = ["massage", "Massage", "rehab", "straße", "STRASSE"]
LABELS = ["Massage therapy", "REHAB", "massage", "Größe", "gro\u0308sse"]
RATINGS = [1, 2, 3.5, 4, 4.0, 4.5, 5, 5.0]
IDS = ["a", "b", "B", "é", "e\u0301", "10", "9", "x y", "x/y", "𝄞", "\ue000", "~"]


def mostly(likely: st.SearchStrategy[Any], *rare: Any) -> st.SearchStrategy[Any]:
    """`likely` three times out of four, else one of `rare`."""
    return st.integers(0, 3).flatmap(lambda n: likely if n else st.sampled_from(rare))


texts = mostly(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), ABSENT, None, "")
some_technicians = st.lists(st.sampled_from(TECHNICIANS), min_size=1, max_size=2, unique=True)
some_services = st.lists(st.sampled_from(SERVICES), min_size=1, max_size=2, unique=True)
annotations = st.fixed_dictionaries({}, optional={"technicians": some_technicians, "services": some_services})


@st.composite
def reviews_in_file(draw: st.DrawFn, identifier: str) -> Object:
    members = {
        "text": draw(texts),
        "verified": draw(st.sampled_from([True, True, True, ABSENT, None, False])),
        "mentioned_technicians": draw(mostly(some_technicians, ABSENT, None, [])),
        "mentioned_services": draw(mostly(some_services, ABSENT, None, [])),
        "owner_reply": draw(st.sampled_from([ABSENT, None, {"text": "Thanks"}])),
        "x": draw(st.sampled_from([ABSENT, None, {"y": [1.5, None]}])),
    }
    rating, when = draw(st.sampled_from(RATINGS)), draw(st.sampled_from(DATES))
    given_members = {key: value for key, value in members.items() if value is not ABSENT}
    return review(identifier, rating=rating, date=when) | given_members


@st.composite
def file_pairs(draw: st.DrawFn) -> tuple[Object, Object]:
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=8, unique=True))
    document = a_file(*(draw(reviews_in_file(identifier)) for identifier in ids))
    services = st.builds(
        lambda service, label: {"id": service, "label": label},
        st.sampled_from(SERVICES),
        st.sampled_from(LABELS),
    )
    entities = {
        "technicians": [{"id": "t", "label": name} for name in draw(some_technicians)],
        "services": draw(st.lists(services, max_size=4)),
    }
    spoken_of = draw(st.dictionaries(st.sampled_from([*ids, "unknown"]), annotations, max_size=8))
    return document, {"entities": entities, "per_review": spoken_of}


@st.composite
def values_that_hold(draw: st.DrawFn, name: str, one: Object, insights: Object) -> str:
    """A value of filter `name` that the review `one` passes, if it can pass any ("" when it cannot)."""
    if name == "query":
        text = one["text"] or ""
        start = draw(st.integers(0, max(len(text) - 1, 0)))
        return text[start : start + draw(st.integers(1, 6))]
    if name in ("rating", "min_rating"):
        return str(one["rating"])
    if name in ("since", "until"):
        return one["date"][:10]
    if name == "mentions_technician":
        parts = draw(st.sampled_from(one["mentioned_technicians"] or [""])).split()
        return " ".join(draw(st.permutations(parts))[: draw(st.integers(1, 3))])
    service = draw(st.sampled_from(one["mentioned_services"] or [""]))
    return draw(st.sampled_from(plain.names_of_service(service, insights)))


ANY_VALUE = {
    "query": st.sampled_from([*WORDS, "e", " ", "ss", "\u0301"]),
    "rating": st.sampled_from(["1", "1.0", "2", "3.5", "4.5", "5", "5.00"]),
    "min_rating": st.sampled_from(["1", "3.49", "3.5", "4.5", "5"]),
    "since": st.sampled_from(DATES).map(lambda when: when[:10]),
    "until": st.sampled_from(DATES).map(lambda when: when[:10]),
    "mentions_technician": st.sampled_from([*TECHNICIANS, "dr", "Okafor", "Okaf", "LMT.", "wes p", ".", " "]),
    "mentions_service": st.sampled_from([*SERVICES, *LABELS, "GRÖSSE", "none"]),
    "limit": st.sampled_from(["1", "2", "3", "20", "100", "5.0"]),
    "offset": st.sampled_from(["0", "-0", "1", "2", "7", "1000000000"]),
}


@st.composite
def questions(draw: st.DrawFn, document: Object, insights: Object) -> dict[str, str]:
    """Parameters of which most hold for one of the reviews, so that even five together match something."""
    verified = plain.served_reviews(document["reviews"], insights) or document["reviews"][:1]
    one = plain.served_review(draw(st.sampled_from(verified)), insights)
    parameters = {}
    for name in draw(st.sets(st.sampled_from(FILTERS), max_size=5)):
        value = draw(values_that_hold(name, one, insights)) if draw(st.integers(0, 3)) else ""
        value = value or draw(ANY_VALUE[name])
        if name in ("query", "mentions_technician", "mentions_service"):
            value = draw(st.sampled_from(WORDINGS))(value)
        parameters[name] = value
    for name in draw(st.sets(st.sampled_from(["limit", "offset"]))):
        parameters[name] = draw(ANY_VALUE[name])
    return parameters


def test_search_is_every_review_that_satisfies_every_filter() -> None:
    seen: Counter[Any] = Counter()

    @settings(max_examples=250)
    @given(st.data())
    def claim(data: st.DataObject) -> None:
        document, insights = data.draw(file_pairs())
        dataset = loaded(document, insights)
        for _ in range(4):
            parameters = data.draw(questions(document, insights))
            expected = plain.search(served(dataset), insights, parameters)
            assert reviews.search(dataset, asked(parameters)) == dense(expected)
            seen["some" if expected["returned"] else "none"] += 1
            event(f"returned {min(expected['returned'], 3)}")
            for name in filter(parameters.get, parameters):
                seen[name, bool(expected["returned"])] += 1

    claim()
    total = seen["some"] + seen["none"]
    assert seen["some"] > total * 0.2, seen
    assert seen["none"] > total * 0.05, seen
    assert all(seen[name, outcome] > total * 0.003 for name in NAMES for outcome in (True, False)), seen


@settings(max_examples=150)
@given(file_pairs())
def test_the_served_reviews_are_the_verified_ones_with_every_key(files: tuple[Object, Object]) -> None:
    document, insights = files
    dataset = loaded(document, insights)
    expected = plain.served_reviews(document["reviews"], insights)
    assert served(dataset) == expected
    assert dataset.count == len(expected)
    assert dataset.unverified_count == len(document["reviews"]) - len(expected)
    assert [json.loads(each.json) for each in dataset.reviews] == expected
    assert {key: json.loads(each.json) for key, each in dataset.reviews_by_id.items()} == {
        each["id"]: each for each in expected
    }
    assert dense(json.loads(dataset.reviews_json)) == dataset.reviews_json
    assert dense(json.loads(dataset.insights_json)) == dataset.insights_json


@settings(max_examples=200)
@given(st.sampled_from(TECHNICIANS), st.text(alphabet="drokaftbis.,é\u0301 \t", max_size=8))
def test_a_name_is_meant_when_it_has_all_the_words(name: str, value: str) -> None:
    index = loaded(a_file(review(mentioned_technicians=[name])))
    assert reviews.technicians_named(index, value) == [name] * plain.has_words(name, value)


@settings(max_examples=300)
@given(st.text(max_size=12))
@example("\u01f0")  # casefold takes it apart; NFC puts it together again
@example("\u1fb3\u0301")
def test_folding_is_nfc_casefold_nfc(text: str) -> None:
    assert query_module.fold(text) == plain.folded(text)
    assert query_module.fold(unicodedata.normalize("NFD", text)) == query_module.fold(text)


# ---- Since ----


def test_since_is_every_review_of_that_day_and_later() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=150)
    @given(file_pairs(), ANY_VALUE["since"] | st.dates().map(date.isoformat))
    def claim(files: tuple[Object, Object], day: str) -> None:
        dataset = loaded(*files)
        expected = plain.since(served(dataset), day)
        answer = reviews.since(dataset, day)
        assert answer == dense(expected) == dense(json.loads(answer))
        seen["some" if expected["returned"] else "none"] += 1

    claim()
    assert min(seen["some"], seen["none"]) > 10, seen


def test_since_a_future_day_is_an_empty_list() -> None:
    assert reviews.since(loaded(FOUR), "9999-12-31") == b'{"since":"9999-12-31","returned":0,"reviews":[]}'
    assert (
        reviews.since(loaded(a_file()), "0001-01-01") == b'{"since":"0001-01-01","returned":0,"reviews":[]}'
    )


NOT_A_DAY = "expected a date written YYYY-MM-DD"
NO_SUCH_DAY = "expected a day that the calendar has"
WRONG_DAYS = {
    "2025-02-29": NO_SUCH_DAY,
    "2100-02-29": NO_SUCH_DAY,
    "2025-13-01": NO_SUCH_DAY,
    "2025-00-10": NO_SUCH_DAY,
    "2025-04-31": NO_SUCH_DAY,
    "0000-01-01": NO_SUCH_DAY,
    "20250101": NOT_A_DAY,
    "2025-W01-1": NOT_A_DAY,
    "2025-001": NOT_A_DAY,
    "2025-1-1": NOT_A_DAY,
    "25-01-01": NOT_A_DAY,
    "12025-01-01": NOT_A_DAY,
    "-2025-01-01": NOT_A_DAY,
    "2025-01-01\n": NOT_A_DAY,
    "2025-01-01 ": NOT_A_DAY,
    "2025-01-01T00:00:00Z": NOT_A_DAY,
    "２０２５-01-01": NOT_A_DAY,
    "٢٠٢٥-01-01": NOT_A_DAY,
    "2025–01–01": NOT_A_DAY,
    "yesterday": NOT_A_DAY,
    " ": NOT_A_DAY,
}


@pytest.mark.parametrize(("day", "message"), [*WRONG_DAYS.items(), ("", NOT_A_DAY), ("\ud800", NOT_A_DAY)])
def test_since_refuses_what_is_no_day(day: str, message: str) -> None:
    with pytest.raises(BadQuery) as refusal:
        reviews.since(loaded(FOUR), day)
    (issue,) = refusal.value.issues
    assert (issue.parameter, issue.message) == ("date", message)
    assert issue.value == day or day == "\ud800"
    assert encodable(issue)


@given(st.text(st.characters()) | st.from_regex(r"\d{4}-\d\d-\d\d", fullmatch=True))
def test_since_of_any_text_is_an_answer_or_one_issue(day: str) -> None:
    try:
        answer = json.loads(reviews.since(loaded(FOUR), day))
    except BadQuery as refusal:
        (issue,) = refusal.issues
        assert encodable(issue)
    else:
        assert answer["since"] == day == date.fromisoformat(day).isoformat()


# ---- Queries: what a caller writes becomes a Query, or a list of everything that is wrong with it ----


def issues_of(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    with pytest.raises(BadQuery) as refusal:
        query_module.query_from_pairs(PARAMETERS, pairs)
    return [(issue.parameter, issue.value, issue.message) for issue in refusal.value.issues]


def issues_of_arguments(arguments: Object) -> list[tuple[str, str, str]]:
    with pytest.raises(BadQuery) as refusal:
        query_module.query_from_arguments(PARAMETERS, arguments)
    return [(issue.parameter, issue.value, issue.message) for issue in refusal.value.issues]


def encodable(issue: query_module.Issue) -> bool:
    """Whether an issue can be put into an answer and says something, at no great length."""
    assert len(issue.parameter) <= 201
    assert len(issue.value) <= 201
    return bool("".join((issue.parameter, issue.value, issue.message)).encode() and issue.message)


RIGHT: list[tuple[dict[str, str], Query]] = [
    ({}, Query()),
    ({"limit": "1", "offset": "0"}, Query(limit=1)),
    ({"limit": "100", "offset": "1000000000"}, Query(limit=100, offset=10**9)),
    ({"limit": "5.0"}, Query(limit=5)),
    ({"limit": "005"}, Query(limit=5)),
    ({"offset": "-0"}, Query(offset=0)),
    ({"offset": "-0.0"}, Query(offset=0)),
    ({"rating": "4.5", "min_rating": "1.000"}, Query(rating=4.5, min_rating=1.0)),
    ({"since": "2024-02-29", "until": "9999-12-31"}, Query(since="2024-02-29", until="9999-12-31")),
    ({"since": "0001-01-01"}, Query(since="0001-01-01")),
    ({"query": " x\n\x00"}, Query(query=" x\n\x00")),
    ({"query": "é" * 200}, Query(query="é" * 200)),
    (
        {"mentions_technician": "Okafor", "mentions_service": "5"},
        Query(mentions_technician="Okafor", mentions_service="5"),
    ),
    (dict.fromkeys(NAMES, ""), Query()),
]


@pytest.mark.parametrize(("parameters", "query"), RIGHT)
def test_a_right_query_is_read(parameters: dict[str, str], query: Query) -> None:
    assert query_module.query_from_pairs(PARAMETERS, list(parameters.items())) == query
    assert query_module.query_from_arguments(PARAMETERS, parameters) == query


NUMBER = "expected a number such as 4 or 4.5"
WHOLE = "expected a whole number such as 20"
KNOWN = (
    "known are query, rating, min_rating, since, until, mentions_technician, mentions_service, limit, offset"
)
WRONG: list[tuple[str, str, str]] = [
    *(("since", day, message) for day, message in WRONG_DAYS.items()),
    *(("until", day, message) for day, message in WRONG_DAYS.items()),
    *(
        ("rating", value, NUMBER)
        for value in ("five", "1e0", "+5", " 5", "5 ", "５", "٣", "5\n", "4,5", "4.", ".5")
    ),
    *(
        ("min_rating", value, NUMBER)
        for value in ("NaN", "nan", "Infinity", "inf", "0x5", "1_0", "--1", "-", ".")
    ),
    *(
        ("limit", value, WHOLE)
        for value in ("ten", "1e3", "+5", " 5", "５", "٣", "5\n", "4.5", "4.", "²", "1_0", "\x00")
    ),
    *(("offset", value, WHOLE) for value in ("1e3", "+0", "0x0", "true", "null", "[]", "0.5", "-")),
    ("rating", "0", "0 is below the minimum of 1"),
    ("rating", "-0", "-0 is below the minimum of 1"),
    ("rating", "0.99", "0.99 is below the minimum of 1"),
    ("rating", "6", "6 is above the maximum of 5"),
    ("rating", "5.01", "5.01 is above the maximum of 5"),
    ("min_rating", "-4.5", "-4.5 is below the minimum of 1"),
    ("limit", "0", "0 is below the minimum of 1"),
    ("limit", "-0", "-0 is below the minimum of 1"),
    ("limit", "101", "101 is above the maximum of 100"),
    ("limit", "20.00000000000000000001", WHOLE),
    ("limit", "101.0", "101 is above the maximum of 100"),
    ("offset", "-1", "-1 is below the minimum of 0"),
    ("offset", "1000000001", "1000000001 is above the maximum of 1000000000"),
    ("query", "x" * 201, "201 characters are above the maximum of 200"),
    ("mentions_technician", "x" * 999, "999 characters are above the maximum of 200"),
    ("mentions_service", "x" * 201, "201 characters are above the maximum of 200"),
    ("limt", "5", "unknown parameter; did you mean limit?"),
    ("min-rating", "5", "unknown parameter; did you mean min_rating?"),
    ("Limit", "5", "unknown parameter; did you mean limit?"),
    ("technician", "5", "unknown parameter; did you mean mentions_technician?"),
    ("zzz", "", f"unknown parameter; {KNOWN}"),
    ("", "", f"unknown parameter; {KNOWN}"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_a_wrong_value_is_one_issue_that_says_why(name: str, value: str, message: str) -> None:
    echoed = value if len(value) <= 200 else value[:200] + "…"
    assert issues_of([(name, value)]) == [(name, echoed, message)]
    assert issues_of_arguments({name: value}) == [(name, echoed, message)]


def test_a_number_of_400_digits_is_too_large_or_too_small() -> None:
    digits = "9" * 400
    ((_, value, message),) = issues_of([("limit", digits)])
    assert (value, message.endswith("is above the maximum of 100")) == ("9" * 200 + "…", True)
    ((_, _, message),) = issues_of([("rating", f"-{digits}.5")])
    assert message.endswith("is below the minimum of 1")
    assert asked({"limit": "0" * 400 + "7"}).limit == 7


def test_bytes_that_are_not_utf_8_are_an_issue_that_can_be_written() -> None:
    not_text = b"caf\xe9".decode(errors="surrogateescape")
    ((name, value, message),) = issues_of([("query", not_text)])
    assert (name, value.encode().startswith(b"caf"), message) == ("query", True, "is not valid UTF-8")
    ((name, value, message),) = issues_of([(not_text, "1")])
    assert name.encode().startswith(b"caf")
    assert message.startswith("unknown parameter")
    for parameter in NAMES:
        ((_, value, _),) = issues_of([(parameter, "\udcff")])
        assert value.encode()


def test_all_issues_come_at_once_in_the_order_given() -> None:
    pairs = [("offset", "x"), ("limit", "5"), ("color", "red"), ("rating", "9"), ("since", "2025-02-30")]
    assert [name for name, _, _ in issues_of(pairs)] == ["offset", "color", "rating", "since"]
    assert [name for name, _, _ in issues_of(pairs[::-1])] == ["since", "rating", "color", "offset"]
    assert [name for name, _, _ in issues_of_arguments(dict(pairs))] == ["offset", "color", "rating", "since"]


def test_a_parameter_given_twice_is_one_issue_even_if_both_agree() -> None:
    assert issues_of([("limit", "5"), ("rating", "9"), ("limit", "5")]) == [
        ("limit", "5", "given 2 times, expected once"),
        ("rating", "9", "9 is above the maximum of 5"),
    ]
    assert issues_of([("limit", "")] * 3) == [("limit", "", "given 3 times, expected once")]
    assert len(issues_of([("x", "1"), ("x", "2")])) == 1


def test_a_flood_of_parameters_is_a_short_answer() -> None:
    issues = issues_of([(f"p{n}", "x") for n in range(5000)])
    assert len(issues) <= 51
    assert "5000" in issues[-1][2]


@given(st.sampled_from(NAMES), st.sampled_from([True, False, [], {}, [5], {"a": 1}, float("nan")]))
def test_an_argument_of_the_wrong_kind_is_an_issue(name: str, value: Any) -> None:
    ((parameter, _, message),) = issues_of_arguments({name: value})
    assert parameter == name
    assert message.startswith("expected ")


MEASURELESS: dict[str, float] = {
    "infinity": float("inf"),
    "-infinity": -float("inf"),
    "1e308": 1e308,
    "10**400": 10**400,
    "-10**400": -(10**400),
    "10**5000": 10**5000,  # more digits than the interpreter writes
}


@pytest.mark.parametrize("name", ["rating", "min_rating", "limit", "offset"])
@pytest.mark.parametrize("value", MEASURELESS.values(), ids=MEASURELESS)
def test_an_argument_without_measure_is_out_of_range(name: str, value: float) -> None:
    ((parameter, _, message),) = issues_of_arguments({name: value})
    assert parameter == name
    assert ("above the maximum" if value > 0 else "below the minimum") in message


def test_arguments_may_be_json_numbers_and_null_is_absent() -> None:
    numbers = {"rating": 4.5, "min_rating": 1, "limit": 7.0, "offset": 0, "query": None, "since": None}
    query = query_module.query_from_arguments(PARAMETERS, numbers)
    assert query == Query(rating=4.5, min_rating=1, limit=7)
    assert isinstance(query.limit, int)
    assert issues_of_arguments({"limit": 4.5}) == [("limit", "4.5", WHOLE)]
    assert issues_of_arguments({"limit": 5, "query": 5}) == [("query", "5", "expected text")]
    assert issues_of_arguments({"rating": 7}) == [("rating", "7", "7 is above the maximum of 5")]


@settings(max_examples=300)
@given(st.data())
def test_pairs_and_arguments_mean_the_same(data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(NAMES)))
    parameters = {
        name: data.draw(ANY_VALUE[name] | st.sampled_from(["", "7", "x"])) for name in sorted(names)
    }
    numeric = re.compile(r"(0|[1-9]\d*)(\.\d+)?", re.ASCII)
    arguments = {
        name: json.loads(value) if numeric.fullmatch(value) and NUMERIC[name] else value or None
        for name, value in parameters.items()
    }
    try:
        expected: Any = asked(parameters)
    except BadQuery as refusal:
        expected = [(issue.parameter, issue.message) for issue in refusal.issues]
        assert [(name, message) for name, _, message in issues_of_arguments(arguments)] == expected
    else:
        assert query_module.query_from_arguments(PARAMETERS, arguments) == expected


NUMERIC = {name: parameter.kind in ("number", "integer") for name, parameter in PARAMETERS.items()}

any_text = st.text(st.characters(), max_size=20)
any_name = st.sampled_from(NAMES) | st.sampled_from(["limt", "Rating", "q", ""]) | any_text
any_value = (
    any_text
    | st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{0,3})?", fullmatch=True)
    | st.from_regex(r"[0-9]{4}-[0-1][0-9]-[0-3][0-9]", fullmatch=True)
    | st.text(alphabet="x", min_size=190, max_size=210)
)


def check_outcome(read: Callable[[], Query], names: Sequence[str]) -> None:
    """A question has an answer that fits the contract, or issues in the order of `names`."""
    try:
        query = read()
    except BadQuery as refusal:
        event("refused")
        assert refusal.issues
        assert all(encodable(issue) for issue in refusal.issues)
        order = [query_module.echo(name) for name in dict.fromkeys(names)]
        assert [issue.parameter for issue in refusal.issues] == [
            name for name in order if name in {issue.parameter for issue in refusal.issues}
        ]
    else:
        event("answered")
        answer = json.loads(reviews.search(SOME_DATASET, query))
        assert not list(SERVED["SearchResult"].iter_errors(answer))


@settings(max_examples=300)
@given(st.lists(st.tuples(any_name, any_value), max_size=5))
def test_any_pairs_give_a_query_or_issues(pairs: list[tuple[str, str]]) -> None:
    check_outcome(lambda: query_module.query_from_pairs(PARAMETERS, pairs), [name for name, _ in pairs])


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.dictionaries(any_name, any_json | any_value | st.integers(0, 6), max_size=5))
def test_any_arguments_give_a_query_or_issues(arguments: Object) -> None:
    check_outcome(lambda: query_module.query_from_arguments(PARAMETERS, arguments), list(arguments))


# ---- Broken files: each is refused with a line of file, place and reason ----

GOOD_REVIEWS = a_file(
    review(
        "01A",
        author_avatar_url="https://a.example/1.png",
        text="Good",
        source="google",
        source_url="https://s.example/1",
        owner_reply={"text": "Thanks", "date": "2025-06-02T09:00:00+02:00"},
        verified=True,
        mentioned_technicians=[OKAFOR],
        mentioned_services=["massage"],
    ),
    review("01B", rating=4.5, date="2025-05-01T10:00:00Z", text=None),
    business={
        "name": "Larkspur",
        "category": "Chiropractor",
        "url": "https://larkspur.example/",
        "address": {"street": "1 Way", "country": "US"},
        "geo": {"latitude": 45.25, "longitude": -124},
        "hours": [{"days": ["Monday"], "opens": "08:00", "closes": "18:00"}],
        "service_areas": ["Millrace"],
        "image_url": "https://larkspur.example/door.jpg",
    },
    aggregate_rating={"rating_value": 4.75, "review_count": 2},
)
ENTRY: Object = {
    "id": "massage",
    "label": "Massage therapy",
    "mention_count": 1,
    "average_rating": 5,
    "score": 0.9,
    "top_phrases": ["so good"],
    "example_review_ids": ["01A"],
}
GOOD_INSIGHTS: Object = {
    "version": 1,
    "generated_at": "2025-06-03T00:00:00Z",
    "model": "m",
    "review_count": 2,
    "date_range": {"earliest": "2025-05-01", "latest": "2025-06-01"},
    "overall_sentiment": {"score": 0.5, "positive_pct": 50, "neutral_pct": 50, "negative_pct": 0},
    "aspects": [
        {
            "id": "relief",
            "label": "Relief",
            "mention_count": 1,
            "positive_count": 1,
            "example_review_ids": ["01A"],
        }
    ],
    "entities": {"technicians": [ENTRY | {"id": "t", "label": OKAFOR}], "services": [ENTRY]},
    "topics": [{"id": "desk", "label": "Desk work", "summary": "Many sit.", "example_review_ids": ["01B"]}],
    "temporal": {
        "monthly": [{"month": "2025-05", "review_count": 1, "average_rating": 4.5, "score": 0}],
        "trend": "improving",
    },
    "per_review": {
        "01B": {"score": 0.1, "aspects": [{"id": "relief", "sentiment": "neutral"}], "services": ["massage"]}
    },
    "faq": [{"question": "Do they?", "answer": "Yes.", "review_ids": ["01A"]}],
    "summary": "Good.",
}

# What the line says after "reviews.json: " or "reviews.json /"; one that ends in "..." is only how it begins.
BROKEN_BYTES: dict[str, list[str]] = {
    "array.json": [": an array is not an object"],
    "blank.json": [": not JSON at line 3 column 1: Expecting value"],
    "byte-order-mark-alone.json": [": not JSON at line 1 column 1: Expecting value"],
    "comment.json": [": not JSON at line 1 column 1: Expecting value"],
    "cut-utf-8.json": [": not UTF-8 at byte 26: unexpected end of data"],
    "empty.json": [": not JSON at line 1 column 1: Expecting value"],
    "gzip.json": [": not UTF-8 at byte 1: invalid start byte"],
    "half-a-pair-above-a-nan.json": [
        ": holds half a surrogate pair",
        " /\\udfff/x: nan is not a number that JSON has",
    ],
    "half-a-pair-in-a-key.json": [" /business: holds half a surrogate pair"],
    "half-a-pair-in-a-value.json": [
        " /business/name: holds half a surrogate pair",
        " /reviews/0/text: holds half a surrogate pair",
    ],
    "infinity.json": [
        " /business/geo/latitude: inf is not a number that JSON has",
        " /business/geo/longitude: -inf is not a number that JSON has",
    ],
    "latin-1-after-byte-order-mark.json": [": not UTF-8 at byte 29: invalid continuation byte"],
    "latin-1.json": [": not UTF-8 at byte 26: invalid continuation byte"],
    "leading-zero.json": [": not JSON at line 1 column 63: Expecting ',' delimiter"],
    "line-break-in-string.json": [": not JSON at line 1 column 28: Invalid control character at"],
    "long-integer-after-long-string.json": [": not usable: an integer of more than 4300 digits on line 3"],
    "long-integer.json": [": not usable: an integer of more than 4300 digits on line 3"],
    "nan.json": [" /business/geo/latitude: nan is not a number that JSON has"],
    "nested-arrays.json": [": not usable: arrays or objects are nested more than 64 levels deep"],
    "null.json": [": null is not an object"],
    "number.json": [": 5 is not an object"],
    "overflowing-float.json": [
        " /reviews/0/rating: inf is not a number that JSON has",
        " /reviews/1/rating: -inf is not a number that JSON has",
    ],
    "overlong-utf-8.json": [": not UTF-8 at byte 23: invalid start byte"],
    "python-literals.json": [": not JSON at line 1 column 23: Expecting value"],
    "single-quotes.json": [
        ": not JSON at line 1 column 2: Expecting property name enclosed in double quotes"
    ],
    "string.json": [': "reviews" is not an object'],
    "surrogate-as-utf-8.json": [": not UTF-8 at byte 23: invalid continuation byte"],
    "trailing-comma.json": [": not JSON at line ..."],
    "truncated.json": [": not JSON at line 2 column 14: Expecting value"],
    "two-byte-order-marks.json": [": not JSON at line 1 column 1: ..."],
    "two-documents.json": [": not JSON at line 2 column 1: Extra data"],
    "utf-16-big-endian-unmarked.json": [": not JSON at line 1 column 1: Expecting value"],
    "utf-16-little-endian-unmarked.json": [": not JSON at line 1 column 2: ..."],
    "utf-16.json": [": not UTF-8 at byte 0: invalid start byte"],
    "utf-32.json": [": not UTF-8 at byte 0: invalid start byte"],
    "web-page.json": [": not JSON at line 1 column 1: Expecting value"],
    "zero-bytes.json": [": not JSON at line 1 column 1: Expecting value"],
}


def test_the_corpus_holds_every_file_of_the_table_and_no_other() -> None:
    assert len(BROKEN_BYTES) > 30
    assert {path.name for path in CORPUS.iterdir()} == set(BROKEN_BYTES)


@pytest.mark.parametrize("name", BROKEN_BYTES)
def test_broken_bytes_are_refused_with_file_place_and_reason(name: str) -> None:
    for file, lines in (
        ("reviews.json", lines_against((CORPUS / name).read_bytes())),
        ("insights.json", lines_against(written(GOOD_REVIEWS), (CORPUS / name).read_bytes())),
    ):
        wanted = [file + line for line in BROKEN_BYTES[name]]
        assert len(lines) == len(wanted)
        for line, start in zip(lines, wanted, strict=True):
            assert line == start or (start.endswith("...") and line.startswith(start.removesuffix("...")))


A_URL = "is not an http or https URL"
A_DATE = "is not a date written YYYY-MM-DD or an RFC 3339 date-time"
NO_DAY = "expected a day that the calendar has or an RFC 3339 date-time"
NO_TIME = "expected a date written YYYY-MM-DD or an RFC 3339 date-time"
PLAIN_ID = "is not text without control characters"
IN_REVIEWS: list[tuple[str, Any, str]] = [
    ("/business", ABSENT, "'business' is a required property"),
    ("/reviews", ABSENT, "'reviews' is a required property"),
    ("/business", None, "null is not an object"),
    ("/business/name", ABSENT, "'name' is a required property"),
    ("/business/name", "", '"" is shorter than 1 character(s)'),
    ("/business/name", None, "null is not a string"),
    ("/business/url", "larkspur.example", f'"larkspur.example" {A_URL}'),
    ("/business/image_url", "data:image/png;base64,", f'"data:image/png;base64," {A_URL}'),
    ("/business/geo/latitude", 91, "91 is greater than the maximum of 90"),
    ("/business/geo/longitude", "1", '"1" is not a number'),
    ("/business/hours/0/opens", "25:00", '"25:00" is not a time of day, HH:MM'),
    ("/business/hours/0/closes", "18:00\n", '"18:00\\n" is longer than 5 characters'),
    ("/business/service_areas", "Millrace", '"Millrace" is not an array or null'),
    ("/aggregate_rating", [], "an array is not an object or null"),
    ("/aggregate_rating/rating_value", 5.5, "5.5 is greater than the maximum of 5"),
    ("/aggregate_rating/review_count", -1, "-1 is less than the minimum of 0"),
    ("/aggregate_rating/review_count", 1.5, "1.5 is not a whole number or null"),
    ("/reviews", {}, "an object is not an array"),
    ("/reviews", None, "null is not an array"),
    ("/reviews/1", "x", '"x" is not an object'),
    ("/reviews/1", None, "null is not an object"),
    ("/reviews/0/id", ABSENT, "'id' is a required property"),
    ("/reviews/0/author", ABSENT, "'author' is a required property"),
    ("/reviews/0/rating", ABSENT, "'rating' is a required property"),
    ("/reviews/1/date", ABSENT, "'date' is a required property"),
    ("/reviews/0/id", 17, "17 is not a string"),
    ("/reviews/0/id", "", '"" is shorter than 1 character(s)'),
    ("/reviews/0/id", "x" * 201, f'"{"x" * 79}… is longer than 200 characters'),
    ("/reviews/0/id", "a\nb", f'"a\\nb" {PLAIN_ID}'),
    ("/reviews/0/id", "ab\n", f'"ab\\n" {PLAIN_ID}'),
    ("/reviews/0/id", "\x00", f'"\\u0000" {PLAIN_ID}'),
    ("/reviews/0/id", "\x7f", f'"\\u007f" {PLAIN_ID}'),
    ("/reviews/0/id", "a\x85", f'"a\\u0085" {PLAIN_ID}'),
    ("/reviews/1/id", "01A", '"01A" is already the id of /reviews/0'),
    ("/reviews/0/author", "", '"" is shorter than 1 character(s)'),
    ("/reviews/0/author", None, "null is not a string"),
    ("/reviews/0/author", ["Ann"], "an array is not a string"),
    ("/reviews/0/rating", 7, "7 is greater than the maximum of 5"),
    ("/reviews/0/rating", 5.0000001, "5.0000001 is greater than the maximum of 5"),
    ("/reviews/0/rating", 0, "0 is less than the minimum of 1"),
    ("/reviews/0/rating", "5", '"5" is not a number'),
    ("/reviews/0/rating", True, "true is not a number"),
    ("/reviews/0/rating", None, "null is not a number"),
    ("/reviews/0/rating", 10**4000, f"1{'0' * 79}… is greater than the maximum of 5"),
    ("/reviews/0/date", None, "null is not a string"),
    ("/reviews/0/date", 20250601, "20250601 is not a string"),
    ("/reviews/0/date", "01.06.2025", f'"01.06.2025" {A_DATE}'),
    ("/reviews/0/date", "2025-06-01\n", f'"2025-06-01\\n" {A_DATE}'),
    ("/reviews/0/date", "2025-06-01 10:00:00Z", f'"2025-06-01 10:00:00Z" {A_DATE}'),
    ("/reviews/0/date", "2025-06-01T10:00:00", f'"2025-06-01T10:00:00" {A_DATE}'),
    ("/reviews/0/date", "2025-06-01T10:00:00Z\n", f'"2025-06-01T10:00:00Z\\n" {A_DATE}'),
    ("/reviews/0/date", "2025-06-01T10:00:00.Z", f'"2025-06-01T10:00:00.Z" {A_DATE}'),
    ("/reviews/0/date", "２０２５-06-01", f'"２０２５-06-01" {A_DATE}'),
    ("/reviews/0/date", "2025-02-29", f'"2025-02-29": {NO_DAY}'),
    ("/reviews/0/date", "0000-01-01", f'"0000-01-01": {NO_DAY}'),
    ("/reviews/0/date", "2025-02-30T10:00:00Z", f'"2025-02-30T10:00:00Z": {NO_DAY}'),
    ("/reviews/0/date", "2025-06-01T24:00:00Z", f'"2025-06-01T24:00:00Z": {NO_TIME}'),
    ("/reviews/0/date", "2025-06-01T10:60:00Z", f'"2025-06-01T10:60:00Z": {NO_TIME}'),
    ("/reviews/0/date", "2025-06-01T10:00:61Z", f'"2025-06-01T10:00:61Z": {NO_TIME}'),
    ("/reviews/0/date", "2025-06-01T10:00:00+24:00", f'"2025-06-01T10:00:00+24:00": {NO_TIME}'),
    ("/reviews/0/text", 5, "5 is not a string or null"),
    ("/reviews/0/source", [], "an array is not a string or null"),
    ("/reviews/0/source_url", "javascript:alert(1)", f'"javascript:alert(1)" {A_URL}'),
    ("/reviews/0/source_url", "ftp://s.example/1", f'"ftp://s.example/1" {A_URL}'),
    ("/reviews/0/source_url", "//s.example/1", f'"//s.example/1" {A_URL}'),
    ("/reviews/0/source_url", "https://", f'"https://" {A_URL}'),
    ("/reviews/0/source_url", "https:///x", f'"https:///x" {A_URL}'),
    ("/reviews/0/source_url", "https://s.example/a b", f'"https://s.example/a b" {A_URL}'),
    ("/reviews/0/source_url", " https://s.example/", f'" https://s.example/" {A_URL}'),
    ("/reviews/0/source_url", "https://s.example/\n", f'"https://s.example/\\n" {A_URL}'),
    ("/reviews/0/source_url", "https://s.example/\x7f", f'"https://s.example/\\u007f" {A_URL}'),
    ("/reviews/0/source_url", "https://s.example/\u2028", f'"https://s.example/\\u2028" {A_URL}'),
    ("/reviews/0/source_url", "", f'"" {A_URL}'),
    (
        "/reviews/0/source_url",
        "https://s.example/" + "x" * 2031,
        f'"https://s.example/{"x" * 61}… is longer than 2048 characters',
    ),
    ("/reviews/0/author_avatar_url", "javascript:alert(1)", f'"javascript:alert(1)" {A_URL}'),
    ("/reviews/0/author_avatar_url", 5, "5 is not a string or null"),
    ("/reviews/0/owner_reply", "Thanks", '"Thanks" is not an object or null'),
    ("/reviews/0/owner_reply/text", ABSENT, "'text' is a required property"),
    ("/reviews/0/owner_reply/text", None, "null is not a string"),
    ("/reviews/0/owner_reply/date", "2025-02-29", f'"2025-02-29": {NO_DAY}'),
    ("/reviews/0/owner_reply/date", "soon", f'"soon" {A_DATE}'),
    ("/reviews/0/verified", "yes", '"yes" is not true or false or null'),
    ("/reviews/0/verified", 1, "1 is not true or false or null"),
    ("/reviews/0/mentioned_technicians", OKAFOR, f'"{OKAFOR}" is not an array or null'),
    ("/reviews/0/mentioned_technicians/0", None, "null is not a string"),
    ("/reviews/0/mentioned_services/0", 5, "5 is not a string"),
]
IN_INSIGHTS: list[tuple[str, Any, str]] = [
    ("", [], "an array is not an object"),
    ("/version", "1", '"1" is not a whole number or null'),
    ("/version", 0, "0 is less than the minimum of 1"),
    ("/generated_at", "now", f'"now" {A_DATE}'),
    ("/generated_at", "2025-02-29", f'"2025-02-29": {NO_DAY}'),
    ("/generated_at", "2025-06-01T25:00:00Z", f'"2025-06-01T25:00:00Z": {NO_TIME}'),
    ("/date_range/latest", "2025-06-31", f'"2025-06-31": {NO_DAY}'),
    ("/review_count", -1, "-1 is less than the minimum of 0"),
    ("/overall_sentiment/score", 1.5, "1.5 is greater than the maximum of 1"),
    ("/overall_sentiment/positive_pct", 101, "101 is greater than the maximum of 100"),
    ("/aspects", {}, "an object is not an array or null"),
    ("/aspects/0", None, "null is not an object"),
    ("/aspects/0/id", ABSENT, "'id' is a required property"),
    ("/aspects/0/label", "", '"" is shorter than 1 character(s)'),
    ("/aspects/0/example_review_ids/0", "a\tb", f'"a\\tb" {PLAIN_ID}'),
    ("/entities/technicians/0/label", ABSENT, "'label' is a required property"),
    ("/entities/services/0/average_rating", 6, "6 is greater than the maximum of 5"),
    ("/topics/0/summary", 5, "5 is not a string or null"),
    ("/temporal/monthly/0/month", "2025-13", '"2025-13" is not a month, YYYY-MM'),
    ("/temporal/trend", "up", "\"up\" is none of ['improving', 'stable', 'declining', None]"),
    ("/per_review", [], "an array is not an object or null"),
    ("/per_review/01B", None, "null is not an object"),
    ("/per_review/01B/score", -2, "-2 is less than the minimum of -1"),
    ("/per_review/01B/aspects/0/sentiment", "meh", "\"meh\" is none of ['positive', 'neutral', 'negative']"),
    ("/per_review/01B/technicians", [5], "5 is not a string"),
    ("/faq/0/answer", ABSENT, "'answer' is a required property"),
    ("/pull_quote", {}, "an object is not a string or null"),
]


def line_for(file: str, pointer: str, value: Any, reason: str) -> str:
    if value is ABSENT:
        pointer = pointer.rpartition("/")[0]
    if value == [5]:
        pointer += "/0"
    return f"{file} {pointer}: {reason}" if pointer else f"{file}: {reason}"


@pytest.mark.parametrize(("pointer", "value", "reason"), IN_REVIEWS)
def test_a_wrong_value_in_the_reviews_is_one_line(pointer: str, value: Any, reason: str) -> None:
    file = written(changed(GOOD_REVIEWS, steps(pointer), value))
    assert lines_against(file, written(GOOD_INSIGHTS)) == [line_for("reviews.json", pointer, value, reason)]


@pytest.mark.parametrize(("pointer", "value", "reason"), IN_INSIGHTS)
def test_a_wrong_value_in_the_insights_is_one_line(pointer: str, value: Any, reason: str) -> None:
    file = written(changed(GOOD_INSIGHTS, [step if step != 1 else "01B" for step in steps(pointer)], value))
    assert lines_against(written(GOOD_REVIEWS), file) == [line_for("insights.json", pointer, value, reason)]


def test_the_example_of_the_design_is_printed_as_written_there() -> None:
    document = a_file(*(review(str(n), rating=7 if n == 17 else 5) for n in range(20)))
    assert lines_against(written(document)) == [
        "reviews.json /reviews/17/rating: 7 is greater than the maximum of 5"
    ]


def test_faults_of_form_and_of_sense_in_both_files_come_together_in_order() -> None:
    document = a_file(
        *(review(str(n)) for n in range(9)),
        review("3", rating=9, date="2025-02-30"),
        review("4", rating=True, author=5),
        business={"name": "", "url": "ftp://x"},
    )
    lines = lines_against(written(document), written({"version": 0, "faq": [{}], "generated_at": 5}))
    assert lines == [
        'reviews.json /business/name: "" is shorter than 1 character(s)',
        f'reviews.json /business/url: "ftp://x" {A_URL}',
        f'reviews.json /reviews/9/date: "2025-02-30": {NO_DAY}',
        'reviews.json /reviews/9/id: "3" is already the id of /reviews/3',
        "reviews.json /reviews/9/rating: 9 is greater than the maximum of 5",
        "reviews.json /reviews/10/author: 5 is not a string",
        'reviews.json /reviews/10/id: "4" is already the id of /reviews/4',
        "reviews.json /reviews/10/rating: true is not a number",
        "insights.json /faq/0: 'question' is a required property",
        "insights.json /faq/0: 'answer' is a required property",
        "insights.json /generated_at: 5 is not a string or null",
        "insights.json /version: 0 is less than the minimum of 1",
    ]
    assert lines_against(b"{", b"\xff") == [
        "reviews.json: not JSON at line 1 column 2: Expecting property name enclosed in double quotes",
        "insights.json: not UTF-8 at byte 0: invalid start byte",
    ]


def test_fifty_lines_are_shown_and_the_rest_is_counted() -> None:
    def lines(count: int) -> list[str]:
        return lines_against(written(a_file(*(review(str(n), rating=0) for n in range(count)))))

    assert len(lines(50)) == 50
    assert lines(50)[-1].startswith("reviews.json /reviews/49/rating: ")
    assert lines(51)[:50] == lines(50)
    assert lines(51)[50:] == ["and 1 more fault"]
    assert lines(300)[50:] == ["and 250 more faults"]


def test_a_pointer_escapes_the_names_in_it() -> None:
    lines = lines_against(written(a_file()), written({"per_review": {"a/b~c": {"score": 9}}}))
    assert lines == ["insights.json /per_review/a~1b~0c/score: 9 is greater than the maximum of 1"]


def test_a_fault_is_one_line_that_can_be_printed_whatever_the_keys_are() -> None:
    for key in ("a\nb", "\r", "\x1b[2J", "\ud800"):
        for line in lines_against(written(a_file()), written({"per_review": {key: {"score": float("nan")}}})):
            assert printable(line)
        for line in lines_against(written(a_file()), written({"per_review": {key: {"score": 9}}})):
            assert printable(line)


def printable(line: str) -> bool:
    """Whether a log can hold `line` as one line: UTF-8, no line ends, no terminal commands."""
    return bool(line.encode()) and not re.search(r"[\x00-\x1f]", line)


def test_nothing_is_changed_by_loading() -> None:
    before = copy.deepcopy(DOCUMENT)
    for _ in range(2):
        dataset = loaded(GOOD_REVIEWS, GOOD_INSIGHTS)
        assert dataset == loaded(GOOD_REVIEWS, GOOD_INSIGHTS)
        loaded(a_file(review()), {})
    assert before == DOCUMENT == CONTRACT.document


# ---- Accepted files ----


def test_the_good_files_of_this_module_load_without_a_warning() -> None:
    assert loaded(GOOD_REVIEWS, GOOD_INSIGHTS).warnings == ()


def test_a_byte_order_mark_is_no_content() -> None:
    mark = b"\xef\xbb\xbf"
    dataset = reviews.load(CONTRACT, mark + written(GOOD_REVIEWS), mark + written(GOOD_INSIGHTS))
    assert dataset == loaded(GOOD_REVIEWS, GOOD_INSIGHTS)


def test_an_empty_list_of_reviews_is_served() -> None:
    dataset = loaded(a_file())
    assert dataset.reviews_json == dense(
        {
            "business": {"name": "Larkspur"},
            "aggregate_rating": {
                "rating_value": None,
                "review_count": 0,
                "best_rating": 5,
                "worst_rating": 1,
                "distribution": {"1": 0, "2": 0, "3": 0, "4": 0, "5": 0},
            },
            "reviews": [],
        }
    )
    assert reviews.search(dataset, Query(query="x")) == b'{"matched":0,"returned":0,"reviews":[]}'


def test_only_four_keys_of_a_review_are_required_and_all_are_served_in_one_order() -> None:
    dataset = loaded(a_file({"date": "2025-06-01", "zebra": 1, "rating": 5, "author": "Ann", "id": "a"}))
    (one,) = served(dataset)
    assert one == {
        "id": "a",
        "author": "Ann",
        "author_avatar_url": None,
        "rating": 5,
        "date": "2025-06-01",
        "text": None,
        "source": "unknown",
        "source_url": None,
        "owner_reply": None,
        "verified": True,
        "mentioned_technicians": [],
        "mentioned_services": [],
        "zebra": 1,
    }
    assert list(one) == list(served(loaded(a_file(review(zebra=1, text="x"))))[0])


OPTIONAL = [
    *("author_avatar_url", "text", "source", "source_url", "owner_reply", "verified"),
    *("mentioned_technicians", "mentioned_services"),
]


def test_null_for_an_optional_key_is_the_same_as_leaving_it_out() -> None:
    nulls = dict.fromkeys(OPTIONAL)
    insights = {"per_review": {"a": {"technicians": [OKAFOR], "services": ["massage"]}}}
    assert loaded(a_file(review(**nulls)), insights) == loaded(a_file(review()), insights)
    keys = [*DOCUMENT["components"]["schemas"]["InsightsDocument"]["required"]]
    assert json.loads(loaded(a_file(), dict.fromkeys(keys)).insights_json) == json.loads(
        loaded(a_file(), {}).insights_json
    )
    assert loaded(a_file(aggregate_rating=None)) == loaded(a_file()) == loaded(a_file(aggregate_rating={}))
    half = loaded(a_file(review(owner_reply={"text": "Thanks"})))
    assert served(half)[0]["owner_reply"] == {"text": "Thanks", "date": None}


def test_mentions_come_from_the_review_and_else_from_the_insights() -> None:
    insights = {"per_review": {"a": {"technicians": [OKAFOR], "services": ["massage"]}}}
    (one,) = served(loaded(a_file(review(mentioned_technicians=[])), insights))
    assert (one["mentioned_technicians"], one["mentioned_services"]) == ([], ["massage"])


UNKNOWN: Object = {
    "nothing": None,
    "deep": [{"a": None, "b": [1.50, 1e-9, 2**70, -0.0]}],
    "é": "\u2028\x00",
    "z": True,
}


def test_unknown_keys_are_served_untouched_even_when_null() -> None:
    document = a_file(
        review(owner_reply={"text": "Thanks"} | UNKNOWN, **UNKNOWN),
        business={"name": "Larkspur", "address": UNKNOWN} | UNKNOWN,
        **UNKNOWN,
    )
    result = json.loads(loaded(document).reviews_json)
    for holder in (
        result,
        result["business"],
        result["business"]["address"],
        result["reviews"][0],
        result["reviews"][0]["owner_reply"],
    ):
        assert UNKNOWN.items() <= holder.items()


def test_unknown_keys_of_the_insights_are_served_untouched_even_when_null() -> None:
    insights = GOOD_INSIGHTS | UNKNOWN
    insights["aspects"] = [GOOD_INSIGHTS["aspects"][0] | UNKNOWN]
    insights["entities"] = GOOD_INSIGHTS["entities"] | UNKNOWN
    insights["date_range"] = UNKNOWN
    insights["per_review"] = {"01A": UNKNOWN}
    result = json.loads(loaded(GOOD_REVIEWS, insights).insights_json)
    for holder in (
        result,
        result["aspects"][0],
        result["entities"],
        result["date_range"],
        result["per_review"]["01A"],
    ):
        assert UNKNOWN.items() <= holder.items()


def test_unknown_keys_of_the_rating_are_served_untouched_even_when_null() -> None:
    result = json.loads(loaded(a_file(aggregate_rating=UNKNOWN)).reviews_json)
    assert UNKNOWN.items() <= result["aggregate_rating"].items()


def test_control_characters_in_text_are_legal() -> None:
    text = "".join(map(chr, range(0x20))) + "\x7f\x85\ufffe\uffff"
    dataset = loaded(a_file(review(text=text)))
    assert served(dataset)[0]["text"] == text
    assert found(dataset, {"query": "\x00\x01"}) == ["a"]


@pytest.mark.parametrize(
    "members",
    [
        {"rating": 4.5},
        {"rating": 1},
        {"rating": 5.0},
        {"id": "x" * 200},
        {"id": " /?#%2F é 𝄞 ~"},
        {"author": "\u202eAnn"},
        {"text": ""},
        {"date": "2024-02-29"},
        {"date": "0001-01-01T00:00:00+23:59"},
        {"date": "9999-12-31T23:59:60-23:59"},
        {"date": "2016-12-31T23:59:60Z"},
        {"date": "2025-06-01t10:00:00.123456789z"},
        {"date": "2025-06-01T10:00:00-00:00"},
        {"source_url": "http://s.example"},
        {"source_url": "https://s.example:8443/a?b=c&d=é#f"},
        {"source_url": "https://[2001:db8::1]/"},
        {"owner_reply": {"text": "", "date": None}},
        {"mentioned_technicians": ["", "  "]},
    ],
)
def test_unusual_reviews_are_served_as_they_are(members: Object) -> None:
    dataset = loaded(a_file(review(**members)))
    assert members.items() <= served(dataset)[0].items()
    assert check_served(dataset)


def test_absent_insights_are_a_warning_and_say_nothing() -> None:
    dataset = loaded(a_file(review()))
    assert dataset.warnings == ("insights.json is absent: the insights say nothing",)
    said = json.loads(dataset.insights_json)
    assert said["review_count"] == 0
    assert not list(SERVED["InsightsDocument"].iter_errors(said))
    assert loaded(a_file(review()), {}).warnings == ()


def test_insights_about_unknown_reviews_are_a_warning() -> None:
    insights = {
        "per_review": {"a": {}, "p": {}},
        "aspects": [{"id": "x", "label": "X", "example_review_ids": ["q"]}],
        "topics": [{"id": "x", "label": "X", "example_review_ids": ["r", "a"]}],
        "entities": {"problems": [{"id": "x", "label": "X", "example_review_ids": ["s"]}]},
        "faq": [{"question": "?", "answer": "!", "review_ids": ["t", "hidden"]}],
    }
    (warning,) = loaded(a_file(review("a"), review("hidden", verified=False)), insights).warnings
    assert warning == "insights.json speaks of 6 review(s) that are not served: hidden, p, q, …"


# ---- Any file at all: a dataset that keeps the contract, or faults; nothing else ----


def served_form(name: str) -> Draft202012Validator:
    components = {"components": {"schemas": DOCUMENT["components"]["schemas"]}}
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}"} | components)


SERVED = {
    name: served_form(name)
    for name in ("ReviewsDocument", "InsightsDocument", "SearchResult", "SinceResult", "JsonFeed")
}
LINKS = links_below("https://r.example")
WHEN_EMPTY = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SOME_DATASET = loaded(FOUR, FOUR_INSIGHTS)


def check_served(dataset: Dataset) -> bool:
    """Every representation of a dataset keeps the contract and the rules of the feeds."""
    answers = {
        "ReviewsDocument": dataset.reviews_json,
        "InsightsDocument": dataset.insights_json,
        "SearchResult": reviews.search(dataset, Query(limit=100)),
        "SinceResult": reviews.since(dataset, "0001-01-01"),
        "JsonFeed": feeds.json_feed(dataset, LINKS),
    }
    for name, body in answers.items():
        faults = [
            f"{error.json_path}: {error.message}" for error in SERVED[name].iter_errors(json.loads(body))
        ]
        assert not faults, (name, faults)
    assert not list(json_feed_faults(json.loads(answers["JsonFeed"])))
    assert not list(atom_faults(ET.fromstring(feeds.atom_feed(dataset, LINKS, WHEN_EMPTY))))
    return True


def outcome(reviews_file: bytes, insights_file: bytes | None) -> str:
    """What becomes of two files, after checking that it is well-formed."""
    try:
        dataset = reviews.load(CONTRACT, reviews_file, insights_file)
    except BadData as refusal:
        assert refusal.faults
        assert all(printable(line) for line in refusal.lines())
        return "refused"
    assert check_served(dataset)
    return "served"


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every node of a document."""
    yield path
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for step, member in members:
        yield from places(member, (*path, step))


ODD_VALUES = [
    ABSENT,
    ABSENT,
    None,
    "",
    " ",
    "x",
    "x\n",
    "\ud800",
    "\x00",
    "\ufffe",
    [],
    {},
    [None],
    [""],
    True,
]
ODD_NUMBERS = [0, -0.0, 1, 4.5, 5, 6, 10**30, 10**4300, float("nan"), float("-inf")]
ODD_DATES = ["2025-02-29", "2025-06-01", "2025-06-01T10:00:60z", "0001-01-01T00:00:00+23:59"]
ODD_URLS = [
    "https://x.example/",
    "http://[x",
    "http://x:y",
    "https://\u2100.example/",
    "http://@",
    "HTTP://X/?<>",
]
TRICKY = [*ODD_VALUES, *ODD_NUMBERS, *ODD_DATES, *ODD_URLS, "01A", "01B", "stable"]


@st.composite
def mutations(draw: st.DrawFn, document: Object) -> Any:
    """`document` with up to three of its nodes removed or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        nodes = [path for path in places(document) if path]
        if not nodes:
            break
        path = draw(st.sampled_from(nodes))
        alike = [odd for odd in TRICKY if isinstance(odd, type(node_at(document, path)))]
        value = draw(st.sampled_from(alike or TRICKY) | st.sampled_from(TRICKY) | any_json)
        document = changed(document, path, value)
        if draw(st.integers(0, 5)) == 0 and isinstance(document, dict):
            document = document | {draw(any_text): draw(any_json)}
    return document


def long_integers_too(value: Any) -> bytes:
    """`written`, also for integers of more digits than the interpreter converts by default."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return written(value)
    finally:
        sys.set_int_max_str_digits(limit)


def test_a_mutated_file_is_served_or_refused() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=400)
    @given(st.data())
    def claim(data: st.DataObject) -> None:
        document, insights = GOOD_REVIEWS, GOOD_INSIGHTS
        which = data.draw(st.sampled_from(["reviews", "insights", "both"]))
        if which != "insights":
            document = data.draw(mutations(document))
        if which != "reviews":
            insights = data.draw(mutations(insights))
        result = outcome(long_integers_too(document), long_integers_too(insights))
        seen[f"{which} {result}"] += 1
        event(f"{which} {result}")

    claim()
    assert all(seen[f"{which} served"] > 2 for which in ("reviews", "insights")), seen
    assert all(seen[f"{which} refused"] > 2 for which in ("reviews", "insights", "both")), seen


@settings(max_examples=200)
@given(any_json, any_json)
def test_any_json_is_served_or_refused(document: Any, insights: Any) -> None:
    outcome(written(document), written(insights))
    outcome(
        written({"business": {"name": "x"} | {"x": insights}, "reviews": document}), written({"x": insights})
    )


def cut(file: bytes) -> st.SearchStrategy[bytes]:
    return st.integers(0, len(file)).map(lambda end: file[:end])


def with_other_byte(file: bytes) -> st.SearchStrategy[bytes]:
    places_and_bytes = st.tuples(st.integers(0, len(file) - 1), st.integers(0, 255))
    return places_and_bytes.map(lambda one: file[: one[0]] + bytes([one[1]]) + file[one[0] + 1 :])


def damaged(document: Object) -> st.SearchStrategy[bytes]:
    file = dense(document)
    return st.one_of(st.binary(max_size=40), cut(file), with_other_byte(file))


@settings(max_examples=200)
@given(damaged(GOOD_REVIEWS), damaged(GOOD_INSIGHTS))
def test_any_bytes_are_served_or_refused(reviews_file: bytes, insights_file: bytes) -> None:
    outcome(reviews_file, written(GOOD_INSIGHTS))
    outcome(written(GOOD_REVIEWS), insights_file)


def fault_paths(file: bytes) -> set[Any]:
    try:
        reviews.load(CONTRACT, file, None)
    except BadData as bad:
        return {fault.path for fault in bad.faults}
    return set()


@settings(max_examples=150)
@given(mutations(GOOD_REVIEWS))
def test_every_complaint_of_the_schema_library_is_a_fault(document: Any) -> None:
    file = long_integers_too(document)
    try:
        value = strict_json.decode(file)
    except strict_json.NotJson:
        return
    complaints = {tuple(error.absolute_path) for error in served_form("ReviewsFile").iter_errors(value)}
    faults = fault_paths(file)
    assert complaints <= faults
    assert faults <= set(places(value))


NESTING_PLACES: list[tuple[str, str]] = [
    ('{"business":{"name":"x","x":%s},"reviews":[]}', "{}"),
    ('{"business":{"name":"x"},"reviews":[],"x":%s}', "{}"),
    (
        '{"business":{"name":"x"},"reviews":[{"id":"a","author":"A","rating":5,"date":"2025-01-01","x":%s}]}',
        "{}",
    ),
    (
        '{"business":{"name":"x"},"reviews":[{"id":"a","author":"A","rating":5,"date":"2025-01-01",'
        '"owner_reply":{"text":"x","x":%s}}]}',
        "{}",
    ),
    ('{"business":{"name":"x"},"reviews":[]}', '{"x":%s}'),
    (
        '{"business":{"name":"x"},"reviews":[]}',
        '{"per_review":{"a":{"aspects":[{"id":"a","sentiment":"neutral","x":%s}]}}}',
    ),
]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"":', "}")], ids=["arrays", "objects"])
@pytest.mark.parametrize("files", NESTING_PLACES)
def test_nesting_of_any_depth_is_served_or_refused(
    files: tuple[str, str], opening: str, closing: str
) -> None:
    def result(depth: int) -> str:
        nested = opening * depth + "1" + closing * depth
        document, insights = (file.replace("%s", nested).encode() for file in files)
        try:
            dataset = reviews.load(CONTRACT, document, insights)
        except BadData as refusal:
            (line,) = refusal.lines()
            assert line.endswith(": not usable: arrays or objects are nested more than 64 levels deep")
            return "refused"
        assert reviews.search(dataset, Query())
        assert feeds.json_feed(dataset, LINKS)
        assert feeds.atom_feed(dataset, LINKS, WHEN_EMPTY)
        return "served"

    shallow, deep = 1, 200_000
    assert (result(shallow), result(deep)) == ("served", "refused")
    while deep - shallow > 1:
        middle = (shallow + deep) // 2
        shallow, deep = (middle, deep) if result(middle) == "served" else (shallow, middle)
    for depth in range(max(1, deep - 20), deep + 5):
        result(depth)


@pytest.mark.parametrize("digits", [4299, 4300, 4301, 20000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_of_any_length_is_served_or_refused(digits: int, sign: str) -> None:
    file = b'{"business":{"name":"x"},"reviews":[],"x":%s}' % (sign + "9" * digits).encode()
    assert outcome(file, None) == ("served" if digits <= 4300 else "refused")
    assert outcome(written(a_file()), file) == ("served" if digits <= 4300 else "refused")


# ---- Rating ----


@settings(max_examples=200)
@given(st.lists(st.sampled_from(RATINGS) | st.floats(1, 5), max_size=12))
def test_the_rating_is_the_mean_of_the_served_reviews(ratings: list[float]) -> None:
    given_reviews = [review(str(n), rating=rating) for n, rating in enumerate(ratings)]
    dataset = loaded(a_file(*given_reviews, review("hidden", rating=1, verified=False)))
    rating = dataset.aggregate_rating
    mean = plain.mean_rating(given_reviews)
    if mean is None:
        assert rating["rating_value"] is None
    else:
        assert abs(Fraction(rating["rating_value"]) - mean) <= Fraction("0.005") + Fraction(1, 10**12)
        assert rating["rating_value"] == round(rating["rating_value"], 2)
    assert rating["review_count"] == len(ratings) == sum(rating["distribution"].values())
    assert rating["distribution"] == plain.distribution(given_reviews)
    assert (rating["best_rating"], rating["worst_rating"]) == (5, 1)
    assert json.loads(dataset.reviews_json)["aggregate_rating"] == rating
    assert not any("aggregate_rating" in warning for warning in dataset.warnings)


def test_half_a_star_counts_in_the_bin_below() -> None:
    assert loaded(FOUR).aggregate_rating["distribution"] == {"1": 1, "2": 0, "3": 0, "4": 2, "5": 1}


def test_a_rating_in_the_file_wins_and_the_operator_hears_that_it_differs() -> None:
    given_rating = {"rating_value": 4.8, "review_count": 312, "best_rating": None}
    dataset = loaded(FOUR | {"aggregate_rating": given_rating}, {})
    assert dataset.aggregate_rating == loaded(FOUR).aggregate_rating | {
        "rating_value": 4.8,
        "review_count": 312,
    }
    (warning,) = dataset.warnings
    assert all(number in warning for number in ("4.8", "312", "3.62", "4"))


def test_a_rating_in_the_file_that_agrees_is_no_warning() -> None:
    assert loaded(FOUR | {"aggregate_rating": loaded(FOUR).aggregate_rating}, {}).warnings == ()
    assert loaded(a_file(aggregate_rating={"review_count": 0}), {}).warnings == ()


def test_a_given_distribution_that_differs_is_a_warning() -> None:
    distribution = {"1": 0, "2": 0, "3": 0, "4": 0, "5": 4}
    dataset = loaded(FOUR | {"aggregate_rating": {"distribution": distribution}}, {})
    assert dataset.aggregate_rating["distribution"] == distribution
    assert len(dataset.warnings) == 1


# ---- Feeds ----


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<updated>2025-06-02T09:00:00+02:00</updated>", ""),
        ("T10:00:00Z</published>", "t10:00:00z</published>"),
        ("<name>Ann B.</name>", ""),
        ('rel="self"', 'rel="alternate"'),
        ("tag:larkspur", "larkspur"),
        (":review/01B", ":review/01A"),
        ("<entry>", "<entry><x/>"),
    ],
)
def test_the_atom_rules_notice_a_broken_feed(old: str, new: str) -> None:
    feed = atom(loaded(GOOD_REVIEWS, GOOD_INSIGHTS)).decode()
    assert not list(atom_faults(ET.fromstring(feed)))
    assert old in feed
    assert list(atom_faults(ET.fromstring(feed.replace(old, new))))


def atom(dataset: Dataset) -> bytes:
    return feeds.atom_feed(dataset, LINKS, WHEN_EMPTY)


def atom_root(dataset: Dataset) -> ET.Element:
    return ET.fromstring(atom(dataset))


def json_items(dataset: Dataset) -> list[Object]:
    return json.loads(feeds.json_feed(dataset, LINKS))["items"]


def entry_texts(dataset: Dataset, name: str) -> list[str]:
    """The text of one child of each entry."""
    return [entry.findtext(f"{ATOM}{name}", "") for entry in atom_root(dataset).iter(f"{ATOM}entry")]


def test_the_json_feed_of_two_reviews() -> None:
    assert json.loads(feeds.json_feed(loaded(GOOD_REVIEWS, GOOD_INSIGHTS), LINKS)) == {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "Reviews of Larkspur",
        "home_page_url": "https://larkspur.example/",
        "feed_url": "https://r.example/api/feed.json",
        "description": "The 50 newest verified customer reviews of Larkspur.",
        "hubs": [{"type": "WebSub", "url": "https://r.example/api/websub/hub"}],
        "items": [
            {
                "id": "01A",
                "url": "https://s.example/1",
                "title": "5 stars from Ann B.",
                "content_text": "Good",
                "date_published": "2025-06-01T00:00:00Z",
                "date_modified": "2025-06-02T09:00:00+02:00",
                "authors": [{"name": "Ann B.", "avatar": "https://a.example/1.png"}],
                "tags": ["Massage therapy", OKAFOR],
                "_review": {
                    "rating": 5,
                    "verified": True,
                    "source": "google",
                    "owner_reply": {"text": "Thanks", "date": "2025-06-02T09:00:00+02:00"},
                },
            },
            {
                "id": "01B",
                "title": "4.5 stars from Ann B.",
                "content_text": "4.5 stars, without words.",
                "date_published": "2025-05-01T10:00:00Z",
                "date_modified": "2025-05-01T10:00:00Z",
                "authors": [{"name": "Ann B."}],
                "tags": ["Massage therapy"],
                "_review": {"rating": 4.5, "verified": True, "source": "unknown", "owner_reply": None},
            },
        ],
    }


TWO_IN_ATOM = """\
<feed xmlns="http://www.w3.org/2005/Atom">
<id>tag:larkspur.example,2026:reviews</id>
<title>Reviews of Larkspur</title>
<subtitle>The 50 newest verified customer reviews of Larkspur.</subtitle>
<updated>2025-06-02T09:00:00+02:00</updated>
<link rel="self" type="application/atom+xml" href="https://r.example/feed.xml" />
<link rel="hub" href="https://r.example/api/websub/hub" />
<link rel="alternate" href="https://larkspur.example/" />
<entry>
<id>tag:larkspur.example,2026:review/01A</id>
<title>5 stars from Ann B.</title>
<published>2025-06-01T00:00:00Z</published>
<updated>2025-06-02T09:00:00+02:00</updated>
<author><name>Ann B.</name></author>
<link rel="alternate" href="https://s.example/1" />
<category term="Massage therapy" />
<category term="Dr. Tobias Okafor" />
<content type="text">Good

Reply from the owner: Thanks</content>
</entry>
<entry>
<id>tag:larkspur.example,2026:review/01B</id>
<title>4.5 stars from Ann B.</title>
<published>2025-05-01T10:00:00Z</published>
<updated>2025-05-01T10:00:00Z</updated>
<author><name>Ann B.</name></author>
<category term="Massage therapy" />
<content type="text">4.5 stars, without words.</content>
</entry>
</feed>
"""


def canonical(feed: bytes | str) -> list[tuple[str, dict[str, str], str]]:
    """Every element in order: name, attributes, text."""
    return [(one.tag, one.attrib, (one.text or "").strip("\n")) for one in ET.fromstring(feed).iter()]


def test_the_atom_feed_of_two_reviews() -> None:
    feed = atom(loaded(GOOD_REVIEWS, GOOD_INSIGHTS))
    assert feed.startswith(
        b"<?xml version='1.0' encoding='utf-8'?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">"
    )
    assert canonical(feed) == canonical(TWO_IN_ATOM)


def test_the_feeds_of_no_reviews_are_valid() -> None:
    dataset = loaded(a_file())
    assert check_served(dataset)
    assert atom_root(dataset).findtext(f"{ATOM}updated") == "2026-01-02T03:04:05Z"
    assert json_items(dataset) == []
    assert feedparser.parse(atom(dataset)).bozo is False


def test_feeds_hold_the_fifty_newest() -> None:
    days = [date.fromordinal(730000 + (n * 37) % 120).isoformat() for n in range(120)]
    dataset = loaded(a_file(*(review(f"r{n}", date=day) for n, day in enumerate(days))))
    newest = [one["id"] for one in served(dataset)[:50]]
    assert sorted(days)[-50:] == sorted(item["date_published"][:10] for item in json_items(dataset))
    assert [item["id"] for item in json_items(dataset)] == newest
    assert entry_texts(dataset, "id") == [f"tag:r.example,2026:review/{identifier}" for identifier in newest]


def test_a_tag_stands_once_however_often_it_is_mentioned() -> None:
    mentions = {"mentioned_services": ["b", "a", "b"], "mentioned_technicians": ["Ann", "b", "Ann"]}
    dataset = loaded(a_file(review(**mentions)))
    terms = [category.get("term") for category in atom_root(dataset).iter(f"{ATOM}category")]
    assert json_items(dataset)[0]["tags"] == ["b", "a", "Ann"] == terms


def test_without_a_hub_the_feeds_name_none() -> None:
    links = replace(LINKS, hub="")
    assert "hubs" not in json.loads(feeds.json_feed(SOME_DATASET, links))
    root = ET.fromstring(feeds.atom_feed(SOME_DATASET, links, WHEN_EMPTY))
    assert [link.get("rel") for link in root.findall(f"{ATOM}link")] == ["self", "alternate"]


def test_without_a_source_url_there_is_no_address() -> None:
    dataset = loaded(a_file(review("a"), review("b", source_url="https://s.example/b")))
    assert [item.get("url") for item in json_items(dataset)] == ["https://s.example/b", None]
    links = [entry.findall(f"{ATOM}link") for entry in atom_root(dataset).iter(f"{ATOM}entry")]
    assert [[link.get("href") for link in found] for found in links] == [["https://s.example/b"], []]


@pytest.mark.parametrize(
    ("rating", "stars"),
    [(1, "1 star"), (1.0, "1 star"), (1.5, "1.5 stars"), (5.0, "5 stars"), (4, "4 stars")],
)
def test_a_title_counts_stars_as_people_do(rating: float, stars: str) -> None:
    dataset = loaded(a_file(review(rating=rating)))
    assert json_items(dataset)[0]["title"] == f"{stars} from Ann B." == entry_texts(dataset, "title")[0]
    assert stars in json_items(dataset)[0]["content_text"]


MARKUP = [
    "]]>",
    "<script>alert(1)</script>",
    "&amp;",
    "&#0;",
    "&nbsp;",
    "<!--",
    "<![CDATA[x]]>",
    "<?php",
    "'\"",
]
WHITE = ["line\nline", "a\r\nb\rc", "\ttab", "  blanks  ", "\u2028\u0085\x7f"]
HOSTILE = [*MARKUP, *WHITE, "{{7*7}}", "😀\u200d𝄞", "\u202eabc", "<a href='javascript:1'>x</a>"]
FORBIDDEN = [*map(chr, range(9)), "\x0b", "\x0c", *map(chr, range(0x0E, 0x20)), "\ufffe", "\uffff"]


def as_xml_carries(text: str) -> str:
    """`text` without what XML 1.0 section 2.2 forbids, lines ended as section 2.11 reads them."""
    return "".join(one for one in text if one not in FORBIDDEN).replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize("text", [*HOSTILE, "".join(HOSTILE)])
def test_hostile_text_arrives_as_it_was_written(text: str) -> None:
    person = f"x{text}x"
    dataset = loaded(
        a_file(
            review(author=person, text=person, owner_reply={"text": person}, mentioned_technicians=[person]),
            business={"name": person},
        )
    )
    assert check_served(dataset)
    (item,) = json_items(dataset)
    assert (item["content_text"], item["authors"], item["tags"]) == (person, [{"name": person}], [person])
    root = atom_root(dataset)
    assert root.findtext(f"{ATOM}title") == f"Reviews of {as_xml_carries(person)}"
    assert root.findtext(f".//{ATOM}name") == as_xml_carries(person)
    assert root.findtext(f".//{ATOM}content") == as_xml_carries(f"{person}\n\nReply from the owner: {person}")
    assert [one.get("term") for one in root.iter(f"{ATOM}category")] == [as_xml_carries(person)]


def test_characters_that_xml_forbids_are_gone_from_atom_and_kept_in_json() -> None:
    everything = "a" + "".join(FORBIDDEN) + "\r" + "\x00" + "\nz"
    dataset = loaded(
        a_file(
            review(author=everything, text=everything, source_url="https://s.example/\ufffe"),
            business={"name": everything},
        )
    )
    assert json_items(dataset)[0]["content_text"] == everything
    assert entry_texts(dataset, "content") == ["a\nz"]
    assert not set(atom(dataset).decode()) & set(FORBIDDEN)


@settings(max_examples=200)
@given(st.text(max_size=20), st.text(min_size=1, max_size=10), st.text(max_size=10))
def test_any_text_is_carried_by_both_feeds(text: str, author: str, reply: str) -> None:
    dataset = loaded(a_file(review(text=text, author=author, owner_reply={"text": reply})))
    assert check_served(dataset)
    content = (text or "5 stars, without words.") + f"\n\nReply from the owner: {reply}"
    assert entry_texts(dataset, "content") == [as_xml_carries(content)]
    assert json_items(dataset)[0]["authors"] == [{"name": author}]


@settings(max_examples=150)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6),
        unique=True,
        max_size=6,
    )
)
def test_any_ids_are_unique_and_legal_in_both_feeds(ids: list[str]) -> None:
    dataset = loaded(a_file(*map(review, ids)))
    assert check_served(dataset)
    assert [item["id"] for item in json_items(dataset)] == sorted(ids, reverse=True)


def test_ids_with_blanks_slashes_and_letters_of_all_alphabets_become_tags() -> None:
    dataset = loaded(a_file(review("a b/c?é#%41~")))
    assert entry_texts(dataset, "id") == ["tag:r.example,2026:review/a%20b%2Fc%3F%C3%A9%23%2541~"]


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://Larkspur.Example:8443/path?x", "larkspur.example"),
        ("http://user:secret@larkspur.example", "larkspur.example"),
        (None, "r.example"),
        ("http://127.0.0.1/", "127.0.0.1"),
    ],
)
def test_ids_name_the_host_of_the_business_or_of_the_service(url: str | None, authority: str) -> None:
    dataset = loaded(a_file(business={"name": "x", "url": url}))
    assert atom_root(dataset).findtext(f"{ATOM}id") == f"tag:{authority},2026:reviews"


@pytest.mark.parametrize(
    "url", ["http://[x", "http://]", "https://\u2100.example/", "http://[::1", "http://x:y/", "http://@/"]
)
def test_an_odd_address_of_the_business_is_refused_or_served(url: str) -> None:
    outcome(written(a_file(business={"name": "x", "url": url})), None)
    outcome(written(a_file(review(source_url=url))), None)


# ---- Feeds: dates ----

offsets = st.sampled_from(["Z", "z", "+00:00", "-00:00", "+14:00", "-12:00", "+23:59", "-23:59", "+05:30"])
moments = st.builds(
    "{:%H:%M:%S}{}{}".format, st.times(), st.sampled_from(["", ".0", ".5", ".123456", ".999999999"]), offsets
)
near_days = st.dates(date(2025, 3, 1), date(2025, 3, 3)) | st.sampled_from([date.min, date.max])
written_dates = near_days.map(date.isoformat) | st.builds(
    "{}{}{}".format, near_days, st.sampled_from("Tt"), moments
)


@settings(max_examples=250)
@given(st.lists(st.tuples(written_dates, st.none() | written_dates), min_size=1, max_size=4))
def test_updated_is_the_later_of_review_and_reply(dates: list[tuple[str, str | None]]) -> None:
    dataset = loaded(
        a_file(
            *(
                review(str(n), date=one, owner_reply={"text": "x", "date": reply})
                for n, (one, reply) in enumerate(dates)
            )
        )
    )
    assert check_served(dataset)
    expected = {str(n): max(instant(one) for one in pair if one) for n, pair in enumerate(dates)}
    order = [item["id"] for item in json_items(dataset)]
    updated = [instant(text) for text in entry_texts(dataset, "updated")]
    assert updated == [instant(item["date_modified"]) for item in json_items(dataset)]
    assert updated == [expected[identifier] for identifier in order]
    assert instant(atom_root(dataset).findtext(f"{ATOM}updated", "")) == max(expected.values())
    published = [instant(dates[int(identifier)][0]) for identifier in order]
    assert [instant(text) for text in entry_texts(dataset, "published")] == published


LATER = [
    ("2025-03-01", "2025-03-01T00:00:00.5Z"),
    ("2025-03-01T23:00:00+02:00", "2025-03-01T22:00:00Z"),
    ("2025-03-02T00:30:00+02:00", "2025-03-01T23:00:00Z"),
    ("2025-03-01T00:00:00Z", "2025-02-28T23:00:00-02:00"),
    ("2016-12-31T23:59:60Z", "2017-01-01T00:00:01Z"),
    ("2016-12-31T23:59:58Z", "2016-12-31T23:59:60Z"),
    ("2025-03-01T00:00:00.1Z", "2025-03-01T00:00:00.10001Z"),
    ("2025-03-01T00:00:00.000001Z", "2025-03-01T00:00:00.000002Z"),
    ("2025-03-01T00:00:00.5Z", "2025-03-01T00:00:00.5000001Z"),
    ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:58"),
    ("9999-12-31T23:59:59-23:58", "9999-12-31T23:59:59-23:59"),
]


@pytest.mark.parametrize(("earlier", "later"), LATER)
def test_of_two_dates_the_later_instant_is_updated(earlier: str, later: str) -> None:
    for one, reply in ((earlier, later), (later, earlier)):
        dataset = loaded(a_file(review(date=one, owner_reply={"text": "x", "date": reply})))
        assert check_served(dataset)
        assert entry_texts(dataset, "updated") == [later] == [json_items(dataset)[0]["date_modified"]]


def test_dates_are_emitted_as_written_but_with_the_capitals_of_atom() -> None:
    dataset = loaded(a_file(review(date="2016-12-31t23:59:60.50z")))
    assert served(dataset)[0]["date"] == "2016-12-31t23:59:60.50z"
    assert entry_texts(dataset, "published") == ["2016-12-31T23:59:60.50Z"]
    assert json_items(dataset)[0]["date_published"] == "2016-12-31T23:59:60.50Z"


# ---- Feeds: readers and renderings ----

MANY = a_file(
    *(
        review(
            f"r {n}",
            text=HOSTILE[n % len(HOSTILE)] if n % 5 else None,
            rating=1 + n % 5,
            date=DATES[n % 8],
            source_url=f"https://s.example/{n}",
            mentioned_technicians=[TECHNICIANS[n % 6]],
        )
        for n in range(70)
    )
)


def test_feedparser_reads_the_atom_feed() -> None:
    dataset = loaded(MANY, GOOD_INSIGHTS)
    feed = feedparser.parse(atom(dataset), sanitize_html=False)
    assert feed.bozo is False
    assert feed.version == "atom10"
    assert (feed.feed.title, feed.feed.link) == ("Reviews of Larkspur", LINKS.home)
    assert {link.rel: link.href for link in feed.feed.links}["hub"] == LINKS.hub
    items = json_items(dataset)
    assert len(feed.entries) == len(items) == 50
    for entry, item in zip(feed.entries, items, strict=True):
        assert (entry.title, entry.link, entry.author) == (
            item["title"],
            item["url"],
            item["authors"][0]["name"],
        )
        assert entry.content[0].type == "text/plain"
        assert entry.content[0].value == as_xml_carries(item["content_text"]).strip()
        assert (entry.published, entry.updated) == (item["date_published"], item["date_modified"])
        assert [tag.term for tag in entry.tags] == item["tags"]


RENDER = """
import hashlib, json, sys
from datetime import datetime, timezone
import feeds
import query as query_module
import reviews
from contract import read_contract
from links import links_below

given = json.load(sys.stdin)
contract = read_contract(given["document"])
dataset = reviews.load(contract, *(json.dumps(file).encode() for file in given["files"]))
links = links_below(given["base_url"])
when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
bodies = [dataset.reviews_json, dataset.insights_json, feeds.json_feed(dataset, links)]
bodies += [feeds.atom_feed(dataset, links, when)]
bodies += [reviews.search(dataset, query_module.Query(mentions_technician="dr"))]
print(hashlib.sha256(b"|".join(bodies)).hexdigest())
"""


def renderings(dataset: Dataset) -> list[bytes]:
    bodies = [dataset.reviews_json, dataset.insights_json, feeds.json_feed(dataset, LINKS), atom(dataset)]
    return [*bodies, reviews.search(dataset, Query(mentions_technician="dr"))]


def test_the_same_data_gives_the_same_bytes_in_every_interpreter() -> None:
    insights = GOOD_INSIGHTS | {
        "entities": {"technicians": [ENTRY | {"label": name} for name in TECHNICIANS]}
    }
    first, second = loaded(MANY, insights), loaded(MANY, insights)
    assert renderings(first) == renderings(first) == renderings(second)
    digest = hashlib.sha256(b"|".join(renderings(first))).hexdigest()
    given_to_them = json.dumps(
        {"document": DOCUMENT, "files": [MANY, insights], "base_url": "https://r.example"}
    )
    for seed in ("0", "1", "4294967295"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", RENDER],
            input=given_to_them,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == digest
