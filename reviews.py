"""The datasets in memory: two JSON files become one immutable `Dataset` that answers questions.

This module turns bytes and values into bytes and values. It opens no file and no socket, starts no thread,
reads no clock and knows nothing of HTTP: times and addresses arrive as arguments.

A review's *position* is its place in serving order: newest calendar day first, then id, both descending.
A set of reviews is a set of positions as `texts` has it, so combining filters is `&`. The reviews are encoded
once; a result is made of slices of that encoding.

Sections: Parameters - Strict JSON - Form and sense - Served form - Index - Dataset - Search - Since - Feeds
"""

from __future__ import annotations

import difflib
import json
import math
import re
import sys
import unicodedata
import xml.etree.ElementTree as ET
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from contract import BadData, Contract, Fault, Json, JsonPath, Parameter, shown
from links import Links
from texts import Block, Texts, build_texts, first, holding, members, positions, union

REVIEWS_FILE = "reviews.json"
INSIGHTS_FILE = "insights.json"
FEED_LENGTH = 50  # reviews in a feed


# ---- Parameters: from what a caller wrote to a `Query`, every issue at once ----

MOST_PARAMETERS = 50  # more in one request is no question but an attack on the issue list
MOST_ECHOED = 200  # characters of a wrong value repeated in its issue

DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
WHOLE = re.compile(r"-?[0-9]+(\.0+)?")
SURROGATE = re.compile("[\ud800-\udfff]")  # alone in a string it cannot be written as UTF-8
CALENDAR_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with one parameter of a request."""

    parameter: str
    value: str
    message: str


class BadQuery(ValueError):
    """The caller must change the request; `issues` stand in the order of the parameters given."""

    def __init__(self, issues: Sequence[Issue]):
        super().__init__("; ".join(f"{issue.parameter}: {issue.message}" for issue in issues))
        self.issues = tuple(issues)


class Query(NamedTuple):
    """A search that has passed every check; names and defaults are the contract's, None is no such filter."""

    query: str | None = None
    rating: float | None = None
    min_rating: float | None = None
    since: str | None = None  # calendar days, YYYY-MM-DD, inclusive
    until: str | None = None
    mentions_technician: str | None = None
    mentions_service: str | None = None
    limit: int = 20
    offset: int = 0


class _Wrong(ValueError):
    """A value does not fit its parameter; the text says what would."""


def query_from_pairs(parameters: Mapping[str, Parameter], pairs: Sequence[tuple[str, str]]) -> Query:
    """The query that decoded `name=value` pairs ask for.

    Bytes that are not UTF-8 are expected as lone surrogates (`errors="surrogateescape"`) and become issues.
    Raises BadQuery with every issue.
    """
    given: dict[str, list[Json]] = defaultdict(list)
    for name, value in pairs:
        given[name].append(value)
    return _query(parameters, given)


def query_from_arguments(parameters: Mapping[str, Parameter], arguments: Mapping[str, Json]) -> Query:
    """The query that a JSON object asks for: the names, values and issues of `query_from_pairs`.

    Numbers may be JSON numbers or strings; null is the same as absent. Raises BadQuery with every issue.
    """
    return _query(parameters, {name: [value] for name, value in arguments.items()})


def read_day(text: str) -> str:
    """`text` when it is a real day written YYYY-MM-DD; else raises ValueError saying what is wrong."""
    if not CALENDAR_DAY.fullmatch(text):
        raise _Wrong("expected a date written YYYY-MM-DD")
    try:
        date.fromisoformat(text)
    except ValueError:
        raise _Wrong("expected a day that the calendar has") from None
    return text


def _query(known: Mapping[str, Parameter], given: Mapping[str, list[Json]]) -> Query:
    values: dict[str, Any] = {}
    issues = []
    for name, texts in islice(given.items(), MOST_PARAMETERS):
        try:
            if (value := _read_parameter(known, name, texts)) is not None:
                values[name] = value
        except _Wrong as wrong:
            issues.append(Issue(echo(name), echo(texts[-1]), str(wrong)))
    if len(given) > MOST_PARAMETERS:
        issues.append(Issue("", "", f"{len(given)} different parameters given, {len(known)} are known"))
    if issues:
        raise BadQuery(issues)
    return Query(**values)


def _read_parameter(known: Mapping[str, Parameter], name: str, texts: list[Json]) -> Json:
    if (parameter := known.get(name)) is None:
        raise _Wrong(f"unknown parameter{nearest(name, known)}")
    if len(texts) > 1:
        raise _Wrong(f"given {len(texts)} times, expected once")
    if texts[0] in (None, ""):
        return None
    return READERS[parameter.kind](parameter, texts[0])


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the known name that is meant, or all of them."""
    near = difflib.get_close_matches(name[:MOST_ECHOED], known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


def echo(value: Json) -> str:
    """A caller's value as it may stand in an answer: short, and encodable whatever it was."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except ValueError:  # the interpreter does not write integers of thousands of digits
        text = "a number of thousands of digits"
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= MOST_ECHOED else text[:MOST_ECHOED] + "…"


def _read_text(parameter: Parameter, value: Json) -> str:
    if not isinstance(value, str):
        raise _Wrong("expected text")
    if not value.isascii() and SURROGATE.search(value):
        raise _Wrong("is not valid UTF-8")
    if len(value) > parameter.max_length:
        raise _Wrong(f"{len(value)} characters are above the maximum of {parameter.max_length}")
    return value


def _read_date(parameter: Parameter, value: Json) -> str:
    return read_day(_read_text(parameter, value))


def _read_number(parameter: Parameter, value: Json) -> float:
    return _in_range(parameter, _number(value, DECIMAL, "expected a number such as 4 or 4.5"))


def _read_integer(parameter: Parameter, value: Json) -> int:
    wanted = "expected a whole number such as 20"
    number = _in_range(parameter, _number(value, WHOLE, wanted))
    if number != int(number):
        raise _Wrong(wanted)
    return int(number)


def _number(value: Json, grammar: re.Pattern[str], wanted: str) -> float:
    """The number that a JSON number or a string of `grammar` stands for (infinite when it is too large)."""
    if isinstance(value, str) and grammar.fullmatch(value):
        return float(value)
    # JSON's true and false are integers to Python, not to the caller.
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise _Wrong(wanted)


def _in_range(parameter: Parameter, number: float) -> float:
    if number < parameter.minimum:
        raise _Wrong(f"{_brief(number)} is below the minimum of {_brief(parameter.minimum)}")
    if number > parameter.maximum:
        raise _Wrong(f"{_brief(number)} is above the maximum of {_brief(parameter.maximum)}")
    if math.isnan(number):
        raise _Wrong("expected a number")
    return number


def _brief(number: float) -> str:
    """A number as a person writes it: 5 for 5.0; the size alone when it has no end."""
    try:
        return f"{number:.15g}"
    except OverflowError:  # an integer beyond every float
        return "the number"


READERS: dict[str, Callable[[Parameter, Json], Any]] = {
    "text": _read_text,
    "date": _read_date,
    "number": _read_number,
    "integer": _read_integer,
}


# ---- Strict JSON: bytes to values, refusing what JSON or UTF-8 does not have ----


TOO_DEEP = "not usable: arrays or objects are nested too deeply"


def parse(file: str, data: bytes) -> Json:
    """The value in `data`: UTF-8, with or without a byte order mark.

    Raises BadData for anything that could not be written out again as JSON: bytes that are not UTF-8,
    NaN and infinite numbers, lone surrogates, integers and nesting beyond the interpreter's limits.
    """
    suspicious = False

    def not_finite(token: str) -> float:
        nonlocal suspicious
        suspicious = True
        return float(token)

    def number(token: str) -> float:
        return value if math.isfinite(value := float(token)) else not_finite(token)

    try:
        text = data.decode().removeprefix("\ufeff")
        document = json.loads(text, parse_constant=not_finite, parse_float=number, object_hook=_take_a_breath)
    except UnicodeDecodeError as error:
        raise BadData([Fault(file, (), f"not UTF-8 at byte {error.start}: {error.reason}")]) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise BadData([Fault(file, (), f"not JSON at {place}: {error.msg}")]) from None
    except RecursionError:
        raise BadData([Fault(file, (), TOO_DEEP)]) from None
    except ValueError:  # int() refuses thousands of digits and does not say where
        raise BadData([Fault(file, (), _where_digits_run_on(text))]) from None
    # In the bytes, since one emoji makes the text four times as long to search.
    suspicious = suspicious or b"\\ud" in data or b"\\uD" in data
    if suspicious and (unwritable := list(_unwritable(document))):
        raise BadData([Fault(file, path, reason) for path, reason in unwritable])
    _check_depth(file, document)
    return document


def _take_a_breath(value: Json) -> Json:
    # The parser is one call into C, which at 100,000 reviews would keep every other thread waiting for a
    # second. Calling a function of Python, whatever it does, lets the interpreter turn to them.
    return value


def _where_digits_run_on(text: str) -> str:
    strings_and_runs = re.finditer(r'"(?:[^"\\]|\\.)*"|[0-9]{4301}', text)
    run = next((found for found in strings_and_runs if found[0][0] != '"'), None)
    line = text.count("\n", 0, run.start()) + 1 if run else 0
    return f"not usable: an integer of more than 4300 digits on line {line}"


def _check_depth(file: str, document: Json) -> None:
    """Refuse what could be read but not be written again inside an answer or a feed."""
    for part in _parts(document):
        for _ in range(50):
            part = [part]
        try:
            json.dumps(part)
        except RecursionError:
            raise BadData([Fault(file, (), TOO_DEEP)]) from None


# Values that are handled by one call into C, which lasts some milliseconds and cannot be interrupted.
PART = 500


def _parts(document: Json) -> Iterator[Json]:
    """The values of `document`, no more than `PART` at once, as deep in arrays as they are in it."""
    if not isinstance(document, dict):
        yield document
        return
    for value in document.values():
        values = list(value.values()) if isinstance(value, dict) else value
        if isinstance(values, list):
            yield from ([values[start : start + PART]] for start in range(0, len(values), PART))
        else:
            yield [value]


def _unwritable(document: Json) -> Iterator[tuple[JsonPath, str]]:
    """Every number and string below `document` that JSON in UTF-8 cannot hold."""
    waiting: list[tuple[JsonPath, Json]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, key), member) for key, member in reversed(value.items())]
            waiting += [(path, key) for key in value if SURROGATE.search(key)]
        elif isinstance(value, list):
            waiting += [((*path, index), value[index]) for index in reversed(range(len(value)))]
        elif isinstance(value, float) and not math.isfinite(value):
            yield path, f"{value} is not a number that JSON has"
        elif isinstance(value, str) and SURROGATE.search(value):
            writable = tuple(echo(step) if isinstance(step, str) else step for step in path)
            yield writable, "holds half a surrogate pair"


def encode(value: Json) -> bytes:
    """Compact JSON in UTF-8, keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def encode_in_parts(document: Mapping[str, Json]) -> bytes:
    """`encode(document)`, for one with members of which some are very large objects."""
    members = []
    for key, value in document.items():
        if isinstance(value, dict) and len(value) > PART:
            inner = list(value.items())
            parts = (encode(dict(inner[start : start + PART]))[1:-1] for start in range(0, len(inner), PART))
            members.append(encode(key) + b":{" + b",".join(parts) + b"}")
        else:
            members.append(encode({key: value})[1:-1])
    return b"{" + b",".join(members) + b"}"


# ---- Form and sense: every fault of a parsed file, by the contract's schemas and by rules of our own ----

DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)  # RFC 3339 section 5.6; 60 is a leap second
WEB_URL = re.compile(r"https?://[^\s/?#\x00-\x1f\x7f-\x9f]+([/?#][^\s\x00-\x1f\x7f-\x9f]*)?", re.IGNORECASE)
URL_KEYS = ("author_avatar_url", "source_url")
BUSINESS_URL_KEYS = ("url", "image_url")


def review_faults(contract: Contract, document: Json) -> list[Fault]:
    """Every fault of a parsed reviews file: of form first, of sense where the form is right."""
    return _faults(REVIEWS_FILE, contract.reviews_file.complaints(document), _nonsense(document))


def insight_faults(contract: Contract, document: Json) -> list[Fault]:
    """Every fault of a parsed insights file."""
    return _faults(INSIGHTS_FILE, contract.insights_file.complaints(document), _insight_nonsense(document))


Complaints = Iterable[tuple[JsonPath, str]]


def _faults(file: str, of_form: Complaints, of_sense: Complaints) -> list[Fault]:
    found: dict[JsonPath, list[str]] = {}
    for path, reason in of_form:
        found.setdefault(path, []).append(reason)
    for path, reason in of_sense:
        if path not in found:  # a value of the wrong form needs no second complaint
            found[path] = [reason]
    in_order = sorted(found, key=lambda path: [(isinstance(step, str), step) for step in path])
    return [Fault(file, path, reason) for path in in_order for reason in found[path]]


def _nonsense(document: Json) -> Iterator[tuple[JsonPath, str]]:
    """What the schema cannot say: dates that do not exist, ids used twice, addresses that lead nowhere."""
    if not isinstance(document, dict):
        return
    yield from _url_nonsense(document.get("business"), ("business",), BUSINESS_URL_KEYS)
    reviews = document.get("reviews")
    first_use: dict[str, int] = {}
    for index, review in enumerate(reviews if isinstance(reviews, list) else ()):
        if not isinstance(review, dict):
            continue
        path = ("reviews", index)
        if isinstance(identifier := review.get("id"), str):
            yield from _id_nonsense(identifier, (*path, "id"), first_use.setdefault(identifier, index))
        yield from _date_nonsense(review.get("date"), (*path, "date"))
        yield from _url_nonsense(review, path, URL_KEYS)
        if isinstance(reply := review.get("owner_reply"), dict):
            yield from _date_nonsense(reply.get("date"), (*path, "owner_reply", "date"))


def _insight_nonsense(document: Json) -> Iterator[tuple[JsonPath, str]]:
    if not isinstance(document, dict):
        return
    yield from _date_nonsense(document.get("generated_at"), ("generated_at",))
    if isinstance(dates := document.get("date_range"), dict):
        for key in ("earliest", "latest"):
            yield from _date_nonsense(dates.get(key), ("date_range", key))


def _id_nonsense(identifier: str, path: JsonPath, first_index: int) -> Iterator[tuple[JsonPath, str]]:
    if first_index != path[1]:
        yield path, f"{shown(identifier)} is already the id of /reviews/{first_index}"


def _date_nonsense(value: Json, path: JsonPath) -> Iterator[tuple[JsonPath, str]]:
    if isinstance(value, str):
        try:
            read_day(value[:10] if DATE_TIME.fullmatch(value) else value)
        except _Wrong as wrong:
            yield path, f"{shown(value)}: {wrong} or an RFC 3339 date-time"


def _url_nonsense(holder: Json, path: JsonPath, keys: Sequence[str]) -> Iterator[tuple[JsonPath, str]]:
    for key in keys if isinstance(holder, dict) else ():
        value = holder.get(key)
        if isinstance(value, str) and not _is_web_url(value):
            yield (*path, key), f"{shown(value)} is not an http or https URL"


def _is_web_url(text: str) -> bool:
    try:
        return bool(WEB_URL.fullmatch(text) and urlsplit(text).hostname)
    except ValueError:  # brackets that hold no address, or a host that Unicode would make another one
        return False


# ---- Served form: every key present, absence is null, unknown keys untouched and last ----

ENTITY_KINDS = ("technicians", "services", "problems", "service_areas")


def with_mentions(review: dict[str, Json], annotation: Mapping[str, Json]) -> dict[str, Json]:
    """`review`, completed; people and services that it does not name are those of its annotation."""
    for key, annotated in (("mentioned_technicians", "technicians"), ("mentioned_services", "services")):
        if review[key] is None:
            review[key] = annotation.get(annotated, [])
    return review


def calendar_day(review: Mapping[str, Json]) -> str:
    """The day of a review as written, YYYY-MM-DD; its time zone never matters."""
    return str(review["date"])[:10]


def serving_order(reviews: Iterable[dict[str, Json]]) -> list[dict[str, Json]]:
    """Newest calendar day first, then id, both descending."""
    by_day: dict[str, list[dict[str, Json]]] = defaultdict(list)
    for review in reviews:
        by_day[calendar_day(review)].append(review)
    # Day by day: one sort of everything would let no other thread run meanwhile.
    return [
        review
        for day in sorted(by_day, reverse=True)
        for review in sorted(by_day[day], key=itemgetter("id"), reverse=True)
    ]


RATING_FIGURES = ("rating_value", "review_count", "distribution")


def aggregate_rating(reviews: Sequence[Mapping[str, Json]], given: Mapping[str, Json]) -> dict[str, Json]:
    """The rating of all `reviews`; what the file itself gives wins, since it may speak for more reviews."""
    stars = Counter(math.floor(review["rating"]) for review in reviews)
    ratings = [review["rating"] for review in reviews]
    computed = {
        "rating_value": round(math.fsum(ratings) / len(ratings), 2) if ratings else None,
        "review_count": len(ratings),
        "best_rating": 5,
        "worst_rating": 1,
        "distribution": {str(star): stars[star] for star in range(1, 6)},
    }
    return computed | {key: value for key, value in given.items() if value is not None or key not in computed}


# ---- Index: what filters look up, by position ----


@dataclass(frozen=True, slots=True)
class Index:
    """Sets of reviews by what they hold."""

    count: int
    position_by_id: dict[str, int]
    days: tuple[str, ...]  # oldest first: the reverse of serving order
    texts: Texts
    by_rating: dict[float, int]
    by_technician: dict[str, int]  # by name as written, those without a mention included
    by_service: dict[str, int]  # by folded id and by folded label


def fold(text: str) -> str:
    """`text` for comparison without regard to case or to how accents are encoded."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def name_words(name: str) -> frozenset[str]:
    """The folded words of a person's name, without dots and commas at their ends."""
    return frozenset(filter(None, (word.strip(".,") for word in fold(name).split())))


def technicians_named(index: Index, value: str) -> list[str]:
    """Every technician whose name has all the words of `value`."""
    words = name_words(value)
    return [name for name in index.by_technician if words <= name_words(name)]


def build_index(reviews: Iterable[Mapping[str, Json]], count: int, insights: Mapping[str, Json]) -> Index:
    """The index over `count` reviews in serving order, which are read once."""
    position_by_id: dict[str, int] = {}
    days: list[str] = []
    folded_texts = Block()
    ratings: dict[float, list[int]] = defaultdict(list)
    technicians: dict[str, list[int]] = {entry["label"]: [] for entry in insights["entities"]["technicians"]}
    services: dict[str, list[int]] = defaultdict(list)
    for position, review in enumerate(reviews):
        position_by_id[review["id"]] = position
        days.append(sys.intern(calendar_day(review)))  # reviews are many, days are few
        folded_texts.append(fold(review["text"] or ""))
        ratings[review["rating"]].append(position)
        for name in review["mentioned_technicians"]:
            technicians.setdefault(name, []).append(position)
        for service in review["mentioned_services"]:
            services[service].append(position)
    by_service: dict[str, int] = defaultdict(int)
    labels = [(entry["label"], entry["id"]) for entry in insights["entities"]["services"]]
    for name, service in labels + [(service, service) for service in services]:
        by_service[fold(name)] |= members(services.get(service, []), count)
    return Index(
        count=count,
        position_by_id=position_by_id,
        days=tuple(reversed(days)),
        texts=build_texts(folded_texts),
        by_rating={rating: members(positions, count) for rating, positions in ratings.items()},
        by_technician={name: members(positions, count) for name, positions in technicians.items()},
        by_service=dict(by_service),
    )


# ---- Dataset: both files, loaded ----


@dataclass(frozen=True, slots=True)
class Dataset:
    """Everything that is served, encoded and indexed. Immutable; plain values only."""

    business: dict[str, Json]
    aggregate_rating: dict[str, Json]
    insights: dict[str, Json]  # without `per_review`, which is most of them
    newest: tuple[dict[str, Json], ...]  # the feeds' reviews, decoded
    reviews_json: bytes  # the whole document; review number p is reviews_json[starts[p] : starts[p + 1] - 1]
    insights_json: bytes
    starts: Sequence[int]
    index: Index
    unverified_count: int
    warnings: tuple[str, ...]

    @property
    def count(self) -> int:
        return self.index.count

    @property
    def position_by_id(self) -> Mapping[str, int]:
        """Where each review is, by its id."""
        return self.index.position_by_id

    def review_json(self, position: int) -> bytes:
        """One review, encoded."""
        return self.reviews_json[self.starts[position] : self.starts[position + 1] - 1]


def load(contract: Contract, reviews_file: bytes, insights_file: bytes | None) -> Dataset:
    """The dataset of the two files' contents. Raises BadData with every fault of both."""
    # The decoded files take several times their size and are gone when this returns. What stays is made
    # after that, of one review at a time: made between them, it would keep their memory from being returned.
    served = _served(contract, reviews_file, insights_file)
    starts, count = served.starts, len(served.starts) - 1
    encoded = (served.reviews_json[starts[at] : starts[at + 1] - 1] for at in range(count))
    newest = served.reviews_json[starts[0] : starts[min(count, FEED_LENGTH)] - (count > 0)]
    return Dataset(
        business=served.business,
        aggregate_rating=served.aggregate_rating,
        insights=served.insights,
        newest=tuple(json.loads(b"[" + newest + b"]")),
        reviews_json=served.reviews_json,
        insights_json=served.insights_json,
        starts=starts,
        index=build_index(map(json.loads, encoded), count, served.insights),
        unverified_count=served.unverified_count,
        warnings=served.warnings,
    )


@dataclass(frozen=True, slots=True)
class _Served:
    """What is made of the decoded files; see `Dataset`."""

    business: dict[str, Json]
    aggregate_rating: dict[str, Json]
    insights: dict[str, Json]
    reviews_json: bytes
    insights_json: bytes
    starts: Sequence[int]
    unverified_count: int
    warnings: tuple[str, ...]


def _served(contract: Contract, reviews_file: bytes, insights_file: bytes | None) -> _Served:
    document, insights = _checked(contract, reviews_file, insights_file)
    annotations = insights["per_review"]
    written = [with_mentions(review, annotations.get(review["id"], {})) for review in document["reviews"]]
    reviews = serving_order(review for review in written if review["verified"])
    rating = aggregate_rating(reviews, document["aggregate_rating"] or {})
    frame = document | {"aggregate_rating": rating}
    frame.pop("reviews")
    # One growing block: 100,000 pieces, joined in the end, would leave their room behind in pieces.
    reviews_json = bytearray(encode(frame)[:-1] + b',"reviews":[')
    starts = array("Q", [len(reviews_json)])
    for review in reviews:
        reviews_json += encode(review) + b","
        starts.append(len(reviews_json))
    reviews_json[len(reviews_json) - (len(reviews) > 0) :] = b"]}"
    return _Served(
        business=document["business"],
        aggregate_rating=rating,
        insights={key: value for key, value in insights.items() if key != "per_review"},
        reviews_json=bytes(reviews_json),
        insights_json=encode_in_parts(insights),
        starts=starts,
        unverified_count=len(written) - len(reviews),
        warnings=tuple(_warnings(insights, rating, reviews, insights_file is None)),
    )


def _checked(
    contract: Contract, reviews_file: bytes, insights_file: bytes | None
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Both files, decoded, with their defaults. Raises BadData with every fault of both."""
    faults: list[Fault] = []
    documents: list[Json] = []
    for file, data, check in (
        (REVIEWS_FILE, reviews_file, review_faults),
        (INSIGHTS_FILE, insights_file, insight_faults),
    ):
        try:
            document = parse(file, data) if data is not None else None
            faults += check(contract, document) if data is not None else []
            documents.append(document)
        except BadData as bad:
            faults += bad.faults
    if faults:
        raise BadData(faults)
    insights = contract.insights_file.complete(documents[1] or {})
    return contract.reviews_file.complete(documents[0]), insights


def _warnings(
    insights: Mapping[str, Json],
    rating: Mapping[str, Json],
    reviews: Sequence[Mapping[str, Json]],
    insights_absent: bool,
) -> Iterator[str]:
    if insights_absent:
        yield f"{INSIGHTS_FILE} is absent: the insights say nothing"
    if unknown := sorted(mentioned_ids(insights).difference(review["id"] for review in reviews)):
        some = ", ".join(unknown[:3]) + (", …" if len(unknown) > 3 else "")
        yield f"{INSIGHTS_FILE} speaks of {len(unknown)} review(s) that are not served: {some}"
    computed = aggregate_rating(reviews, {})
    if differing := [key for key in RATING_FIGURES if rating[key] != computed[key]]:
        pairs = ", ".join(f"{key} {rating[key]} (the reviews: {computed[key]})" for key in differing)
        yield f"{REVIEWS_FILE} gives an aggregate_rating of its own: {pairs}"


def mentioned_ids(insights: Mapping[str, Json]) -> set[str]:
    """Every review id that the insights speak of."""
    entries = [*insights["aspects"], *insights["topics"]]
    for kind in ENTITY_KINDS:
        entries += insights["entities"][kind]
    named: set[str] = set(insights["per_review"])
    named.update(name for entry in entries for name in entry["example_review_ids"])
    named.update(name for entry in insights["faq"] for name in entry["review_ids"])
    return named


# ---- Search: filters are sets, joined by "and" ----


def _rated_at_least(index: Index, rating: float) -> int:
    return union(reviews for stars, reviews in index.by_rating.items() if stars >= rating)


def _on_or_after(index: Index, day: str) -> int:
    return first(index.count - bisect_left(index.days, day))


def _on_or_before(index: Index, day: str) -> int:
    return first(index.count) ^ first(index.count - bisect_right(index.days, day))


def _naming(index: Index, value: str) -> int:
    return union(index.by_technician[name] for name in technicians_named(index, value))


FILTERS: dict[str, Callable[[Index, Any], int]] = {
    "rating": lambda index, rating: index.by_rating.get(rating, 0),
    "min_rating": _rated_at_least,
    "since": _on_or_after,
    "until": _on_or_before,
    "mentions_technician": _naming,
    "mentions_service": lambda index, service: index.by_service.get(fold(service), 0),
}


def matching(index: Index, query: Query) -> int:
    """The set of reviews that pass every filter of `query`."""
    matches = first(index.count)
    for name, select in FILTERS.items():
        if (value := getattr(query, name)) is not None:
            matches &= select(index, value)
    if query.query is not None:  # last: the fewer reviews are left, the fewer texts need a look
        matches = holding(index.texts, fold(query.query), matches)
    return matches


def search(dataset: Dataset, query: Query) -> bytes:
    """`{"matched", "returned", "reviews"}`, encoded: `limit` reviews after the first `offset` that match."""
    matches = matching(dataset.index, query)
    page = islice(positions(matches, query.offset), query.limit)
    chosen = [dataset.review_json(position) for position in page]
    head = b'{"matched":%d,"returned":%d,"reviews":[' % (matches.bit_count(), len(chosen))
    return head + b",".join(chosen) + b"]}"


# ---- Since: the beginning of the serving order ----


def since(dataset: Dataset, day: str) -> bytes:
    """`{"since", "returned", "reviews"}`, encoded: the reviews of `day` and later, newest first.

    Raises BadQuery when `day` is no calendar day.
    """
    try:
        read_day(day)
    except _Wrong as wrong:
        raise BadQuery([Issue("date", echo(day), str(wrong))]) from None
    returned = _on_or_after(dataset.index, day).bit_count()
    head = b'{"since":"%s","returned":%d,"reviews":[' % (day.encode(), returned)
    return head + dataset.reviews_json[dataset.starts[0] : dataset.starts[returned] - (returned > 0)] + b"]}"


# ---- Feeds: the newest reviews, without a word about the time of rendering ----


def json_feed(dataset: Dataset, links: Links) -> bytes:
    """JSON Feed 1.1 (https://jsonfeed.org/version/1.1) of the newest reviews, encoded."""
    name = dataset.business["name"]
    labels = _service_labels(dataset.insights)
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"Reviews of {name}",
        "home_page_url": dataset.business.get("url") or links.home,
        "feed_url": links.json_feed,
        "description": f"The {FEED_LENGTH} newest verified customer reviews of {name}.",
    }
    if links.hub:
        feed["hubs"] = [{"type": "WebSub", "url": links.hub}]
    return encode(feed | {"items": [_json_feed_item(review, labels) for review in dataset.newest]})


def _json_feed_item(review: Mapping[str, Json], service_labels: Mapping[str, str]) -> dict[str, Json]:
    author = {"name": review["author"]}
    if review["author_avatar_url"]:
        author["avatar"] = review["author_avatar_url"]
    item = {"id": review["id"]}
    if review["source_url"]:
        item["url"] = review["source_url"]
    return item | {
        "title": _title(review),
        "content_text": _content(review),
        "date_published": _date_time(review["date"]),
        "date_modified": _modified(review),
        "authors": [author],
        "tags": _tags(review, service_labels),
        "_review": {key: review[key] for key in ("rating", "verified", "source", "owner_reply")},
    }


def atom_feed(dataset: Dataset, links: Links, updated_when_empty: datetime) -> bytes:
    """Atom (RFC 4287) of the newest reviews, encoded; `updated_when_empty` is aware and UTC."""
    name = dataset.business["name"]
    authority = _tag_authority(dataset.business.get("url") or links.home)
    labels = _service_labels(dataset.insights)
    modified = [_modified(review) for review in dataset.newest]
    updated = max(modified, key=_instant) if modified else f"{updated_when_empty:%Y-%m-%dT%H:%M:%SZ}"
    feed = ET.Element("feed", {"xmlns": "http://www.w3.org/2005/Atom"})
    _text_element(feed, "id", f"tag:{authority},{TAG_YEAR}:reviews")
    _text_element(feed, "title", f"Reviews of {name}")
    _text_element(feed, "subtitle", f"The {FEED_LENGTH} newest verified customer reviews of {name}.")
    _text_element(feed, "updated", updated)
    ET.SubElement(feed, "link", {"rel": "self", "type": "application/atom+xml", "href": links.atom_feed})
    if links.hub:
        ET.SubElement(feed, "link", {"rel": "hub", "href": links.hub})
    ET.SubElement(feed, "link", {"rel": "alternate", "href": _xml(dataset.business.get("url") or links.home)})
    for review in dataset.newest:
        _atom_entry(feed, review, f"tag:{authority},{TAG_YEAR}:review/{quote(review['id'], safe='')}", labels)
    body = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return bytes(body)


def _atom_entry(feed: ET.Element, review: Mapping[str, Json], tag: str, labels: Mapping[str, str]) -> None:
    entry = ET.SubElement(feed, "entry")
    _text_element(entry, "id", tag)
    _text_element(entry, "title", _title(review))
    _text_element(entry, "published", _date_time(review["date"]))
    _text_element(entry, "updated", _modified(review))
    _text_element(ET.SubElement(entry, "author"), "name", review["author"])
    if review["source_url"]:
        ET.SubElement(entry, "link", {"rel": "alternate", "href": _xml(review["source_url"])})
    for term in _tags(review, labels):
        ET.SubElement(entry, "category", {"term": _xml(term)})
    reply = review["owner_reply"]
    answered = f"\n\nReply from the owner: {reply['text']}" if reply else ""
    _text_element(entry, "content", _content(review) + answered).set("type", "text")


TAG_YEAR = "2026"  # RFC 4151 wants a date at which the authority held its name; a constant keeps ids stable
DOMAIN_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
# What XML 1.0 section 2.2 leaves out, but for halves of surrogate pairs, which no data hold. An expression
# for it would take 5 ms to compile at each start.
NO_XML = dict.fromkeys([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0xFFFE, 0xFFFF])


def _tag_authority(url: str) -> str:
    """The authority of `tag:` ids (RFC 4151 section 2.1): the host, which outlives ports and paths."""
    host = urlsplit(url).hostname or ""
    return host if DOMAIN_NAME.fullmatch(host) else "localhost"


def _text_element(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, name)
    element.text = _xml(text)
    return element


def _xml(text: str) -> str:
    """`text` without the characters that XML forbids, its line ends as a parser would make them."""
    return text.translate(NO_XML).replace("\r\n", "\n").replace("\r", "\n")


def _title(review: Mapping[str, Json]) -> str:
    return f"{_stars(review)} from {review['author']}"


def _stars(review: Mapping[str, Json]) -> str:
    return "1 star" if review["rating"] == 1 else f"{review['rating']:g} stars"


def _content(review: Mapping[str, Json]) -> str:
    return review["text"] or f"{_stars(review)}, without words."


def _tags(review: Mapping[str, Json], service_labels: Mapping[str, str]) -> list[str]:
    services = [service_labels.get(service, service) for service in review["mentioned_services"]]
    return list(dict.fromkeys(services + review["mentioned_technicians"]))


def _service_labels(insights: Mapping[str, Json]) -> dict[str, str]:
    return {entry["id"]: entry["label"] for entry in insights["entities"]["services"]}


def _date_time(written: str) -> str:
    """A date as an RFC 3339 date-time with the capitals that Atom demands (RFC 4287 section 3.3)."""
    return written.upper() if len(written) > len("YYYY-MM-DD") else f"{written}T00:00:00Z"


def _modified(review: Mapping[str, Json]) -> str:
    """The later of the review's date and its reply's, as a date-time."""
    reply_date = (review["owner_reply"] or {}).get("date")
    dates = [_date_time(review["date"])] + ([_date_time(reply_date)] if reply_date else [])
    return max(dates, key=_instant)


def _instant(date_time: str) -> tuple[timedelta, str]:
    """What orders date-times: the time to the second, then the digits of its fraction, however many.

    A leap second counts as the second before it.
    """
    second = "59" if date_time[17:19] == "60" else date_time[17:19]
    fraction = re.match(r"\.[0-9]+", date_time[19:])
    digits = fraction[0] if fraction else ""
    moment = datetime.fromisoformat(date_time[:17] + second + date_time[19 + len(digits) :])
    # Not timestamp(): in the years 1 and 9999 an offset would leave the calendar.
    whole = moment.replace(tzinfo=None) - datetime.min - (moment.utcoffset() or timedelta())
    return whole, digits.rstrip("0")
