"""The datasets in memory: two JSON files become one immutable `Dataset` that answers questions.

Each review is encoded once, when it is loaded; every answer is made of these pieces. This module opens no
file and no socket, starts no thread, reads no clock and knows nothing of HTTP.

Sections: Rules - Served form - Dataset - Filters - Lists - Hints
"""

from __future__ import annotations

import math
import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate, chain, repeat
from operator import contains
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from reviewslib.dataset.contract import BadData, Contract, Fault, FileForm, Violations, printable, quoted
from reviewslib.dataset.insights import ENTITY_KINDS, compute_insights, mean, name_violations
from reviewslib.dataset.provenance import sources_of
from reviewslib.dataset.query import BadQuery, BadValue, Issue, Query, echo, known_names, read_day
from reviewslib.dataset.strict_json import Json, JsonPath, NotJson, Object, decode, encode
from reviewslib.dataset.text import loose_words, loosely, name_words
from reviewslib.links import REVIEW_PATH, ServiceUrls

REVIEWS_FILE = "reviews.json"
INSIGHTS_FILE = "insights.json"
FILLED_IN = ("address", "geo")  # objects of the business that an import leaves to the owner
NO_INSIGHTS = f"{INSIGHTS_FILE} is absent: only stars and dates of the reviews are counted"
NEWEST_REVIEWS = 50  # in the feeds and on the page
LARGEST_REVIEW_BYTES = 64 * 1024  # of JSON as it is served, so that a page and an answer of 100 have a bound
MOST_CONTAINERS = 2_000_000  # objects and arrays in a file; ten times as many need more than a gigabyte


# ---- Rules: what a schema cannot say ----

DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)  # RFC 3339 section 5.6; 60 is a leap second
WEB_URL = re.compile(r"https?://[^\s/?#\x00-\x1f\x7f-\x9f]+([/?#][^\s\x00-\x1f\x7f-\x9f]*)?", re.IGNORECASE)


def review_violations(document: Json) -> Violations:
    """Duplicate ids, dates that do not exist and URLs that are no web addresses; `document` has any form."""
    if not isinstance(document, dict):
        return
    yield from _url_violations(document.get("business"), ("business",), "url", "image_url", "review_url")
    reviews = document.get("reviews")
    first_use: dict[str, int] = {}
    for index, review in enumerate(reviews if isinstance(reviews, list) else ()):
        path = ("reviews", index)
        yield from _date_violations(review, path, "date")
        yield from _url_violations(review, path, "author_avatar_url", "source_url")
        if isinstance(review, dict):
            yield from _date_violations(review.get("owner_reply"), (*path, "owner_reply"), "date")
            id = review.get("id")
            if isinstance(id, str) and (first := first_use.setdefault(id, index)) != index:
                yield (*path, "id"), f"{quoted(id)} is already the id of /reviews/{first}"


def insight_violations(document: Json) -> Violations:
    """Dates that do not exist; `document` has any form."""
    yield from _date_violations(document, (), "generated_at")
    if isinstance(document, dict):
        yield from _date_violations(document.get("date_range"), ("date_range",), "earliest", "latest")


def editorial_violations(document: Json) -> Violations:
    """What a schema cannot say of the owner's editorial.json; `document` has any form."""
    yield from insight_violations(document)
    yield from name_violations(document)


def _date_violations(holder: Json, path: JsonPath, *keys: str) -> Violations:
    for key, text in _texts(holder, keys):
        try:
            read_day(text[:10] if DATE_TIME.fullmatch(text) else text)
        except BadValue as bad:
            yield (*path, key), f"{quoted(text)}: {bad} or an RFC 3339 date-time"


def _url_violations(holder: Json, path: JsonPath, *keys: str) -> Violations:
    for key, text in _texts(holder, keys):
        try:
            usable = WEB_URL.fullmatch(text) and urlsplit(text).hostname
        except ValueError:  # brackets without an IPv6 address, a host that normalization (NFKC) changes
            usable = None
        if not usable:
            yield (*path, key), f"{quoted(text)} is not an http or https URL"


def _texts(holder: Json, keys: Sequence[str]) -> list[tuple[str, str]]:
    """The strings among the members `keys` of `holder`, if that is an object."""
    members = [(key, holder.get(key)) for key in keys] if isinstance(holder, dict) else []
    return [(key, value) for key, value in members if isinstance(value, str)]


# ---- Served form: every key there, absence is null, unknown keys untouched after these, `page_url` last ----

WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
NAMED_KINDS = ("technicians", "services")  # that a review mentions
RATING_FIGURES = ("rating_value", "review_count", "distribution")


def calendar_day(review: Object) -> str:
    """The day of a review as written, YYYY-MM-DD; its time zone never matters."""
    return str(review["date"])[:10]


def serving_order(review: Object) -> tuple[str, str]:
    """What reviews are sorted by, descending: the date as written, which begins with the day, then the id."""
    return str(review["date"]), review["id"]


def served_reviews(
    reviews: Iterable[dict[str, Json]], annotations: Mapping[str, Object]
) -> list[dict[str, Json]]:
    """The completed `reviews` in serving order, without those of which the file says `verified: false`.

    People and services that a review does not name are those of its annotation.
    """
    served = [review for review in reviews if review["verified"] is not False]
    for review in served:
        for key in NAMED_KINDS:
            if review[f"mentioned_{key}"] is None:
                review[f"mentioned_{key}"] = annotations.get(review["id"], {}).get(key, [])
    return sorted(served, key=serving_order, reverse=True)


def aggregate_rating(reviews: Sequence[Object], given: Object) -> dict[str, Json]:
    """The rating of all `reviews`; what the file itself gives wins, since it may speak for more reviews."""
    ratings = [review["rating"] for review in reviews]
    stars = Counter(map(math.floor, ratings))
    computed = {
        "rating_value": mean(ratings),
        "review_count": len(ratings),
        "best_rating": 5,
        "worst_rating": 1,
        "distribution": {str(star): stars[star] for star in range(1, 6)},
    }
    return computed | {key: value for key, value in given.items() if value is not None or key not in computed}


# ---- Dataset: both files, loaded ----


@dataclass(frozen=True, slots=True)
class Review:
    """A served review: what filters compare, and its encoded form."""

    id: str
    date: str  # as written
    day: str
    rating: float
    loose_text: str  # as compared loosely, empty without text
    technicians: tuple[str, ...]  # names as written
    services: tuple[str, ...]  # ids as written
    source: str  # as compared loosely
    json: memoryview  # of its part of `Dataset.reviews_json`
    end: int  # of that part, in bytes from the start
    changed_day: str  # the later one of its day and its reply's


@dataclass(frozen=True, slots=True)
class Dataset:
    """Everything that is served. Immutable; plain values only."""

    business: dict[str, Json]
    aggregate_rating: dict[str, Json]
    insights: dict[str, Json]  # without `per_review`, their largest part
    newest: tuple[Object, ...]  # the first NEWEST_REVIEWS of `reviews`, decoded
    reviews: tuple[Review, ...]  # newest first
    reviews_by_id: Mapping[str, Review]
    technicians: Mapping[str, frozenset[str]]  # each known name, and its `name_words`
    technician_ids: Mapping[str, frozenset[str]]  # each known id, loosely, and the names that it stands for
    services: Mapping[str, frozenset[str]]  # each known id or label, loosely, and the ids that it stands for
    sources: tuple[str, ...]  # as written, the most used first
    reviews_json: bytes  # the whole document
    reviews_digest: bytes  # SHA-256 of the encoded reviews alone
    insights_json: bytes
    unverified_count: int
    notes: tuple[str, ...]  # nothing is wrong
    warnings: tuple[str, ...]


def load(contract: Contract, reviews_file: bytes, insights_file: bytes | None, urls: ServiceUrls) -> Dataset:
    """The dataset of the two files' contents. Raises BadData with every fault of both.

    `urls` is where the reviews have their pages. Without an insights file the insights are what can be
    counted from the reviews.
    """
    document, faults = read_file(REVIEWS_FILE, reviews_file, contract.reviews_file, review_violations)
    data = b"{}" if insights_file is None else insights_file
    insights, insight_faults = read_file(INSIGHTS_FILE, data, contract.insights_file, insight_violations)
    if faults or insight_faults:
        raise BadData(faults + insight_faults)
    served = served_reviews(document["reviews"], insights["per_review"])
    for review in served:
        review["page_url"] = urls.review_page(review["id"])  # whatever the file says
    if insights_file is None:
        insights |= compute_insights(served) | {"generated_at": served[0]["date"] if served else None}
    rating = aggregate_rating(served, document["aggregate_rating"] or {})
    frame = {key: value for key, value in document.items() if key != "reviews"} | {"aggregate_rating": rating}
    encoded = [encode(review) for review in served]
    if too_large := _size_faults(document["reviews"], served, encoded):
        raise BadData(too_large)
    reviews_json = _joined(frame, encoded)
    first = len(_joined(frame, ())) - len("]}")
    starts = list(accumulate((len(each) + len(",") for each in encoded), initial=first))
    reviews = tuple(map(_review, served, repeat(memoryview(reviews_json)), starts, map(len, encoded)))
    return Dataset(
        business=document["business"],
        aggregate_rating=rating,
        insights={key: value for key, value in insights.items() if key != "per_review"},
        newest=tuple(served[:NEWEST_REVIEWS]),
        reviews=reviews,
        reviews_by_id={review.id: review for review in reviews},
        technicians=_technicians(reviews, insights),
        technician_ids=_by_name((each["id"], each["label"]) for each in insights["entities"]["technicians"]),
        services=_services(reviews, insights),
        sources=sources_of(review["source"] for review in served),
        reviews_json=reviews_json,
        reviews_digest=sha256(memoryview(reviews_json)[first:]).digest(),
        insights_json=encode(insights),
        unverified_count=len(document["reviews"]) - len(reviews),
        notes=(NO_INSIGHTS,) if insights_file is None else (),
        warnings=tuple(map(printable, _warnings(document["business"], insights, rating, served))),
    )


def read_file(
    file: str, data: bytes, form: FileForm, violations: Callable[[Json], Violations]
) -> tuple[dict[str, Json], list[Fault]]:
    """The completed document, and every fault in document order; of sense only where the form is right."""
    if data.count(b"{") + data.count(b"[") > MOST_CONTAINERS:
        return {}, [Fault(file, (), f"has more than {MOST_CONTAINERS:,} objects and arrays")]
    try:
        document = decode(data)
    except NotJson as error:
        return {}, [Fault(file, path, reason) for path, reason in error.faults]
    if isinstance(document, dict) and isinstance(business := document.get("business"), dict):
        document["business"] = business | {key: None for key in FILLED_IN if _is_blank(business.get(key))}
    found = list(form.violations(document))
    paths_of_wrong_form = {path for path, _ in found}
    found += [(path, reason) for path, reason in violations(document) if path not in paths_of_wrong_form]
    found.sort(key=lambda violation: [(isinstance(step, str), step) for step in violation[0]])
    return {} if found else form.complete(document), [Fault(file, path, reason) for path, reason in found]


def _size_faults(
    reviews: Iterable[Object], served: Iterable[Object], encoded: Iterable[bytes]
) -> list[Fault]:
    """A fault for each of `reviews`, in document order, that is too large as it is served."""
    pairs = zip(served, encoded, strict=True)
    sizes = {review["id"]: len(json) for review, json in pairs if len(json) > LARGEST_REVIEW_BYTES}
    places = [(index, review["id"]) for index, review in enumerate(reviews) if review["id"] in sizes]
    limit = f"bytes of JSON; a review has at most {LARGEST_REVIEW_BYTES:,}"
    return [Fault(REVIEWS_FILE, ("reviews", index), f"has {sizes[id]:,} {limit}") for index, id in places]


def _is_blank(value: Json) -> bool:
    """Whether it is an object of nulls, such as an address that is not filled in."""
    return isinstance(value, dict) and value != {} and all(member is None for member in value.values())


def _review(review: Object, document: memoryview, start: int, size: int) -> Review:
    day, text = sys.intern(calendar_day(review)), loosely(review["text"] or "")
    technicians, services = (tuple(map(sys.intern, review[f"mentioned_{key}"])) for key in NAMED_KINDS)
    changed_day = sys.intern(max(day, str((review["owner_reply"] or {}).get("date") or "")[:10]))
    end = start + size
    named = technicians, services, sys.intern(loosely(review["source"]))
    order = review["id"], sys.intern(review["date"]), day
    return Review(*order, review["rating"], text, *named, document[start:end], end, changed_day)


def _technicians(reviews: Iterable[Review], insights: Object) -> dict[str, frozenset[str]]:
    listed = [entry["label"] for entry in insights["entities"]["technicians"]]
    mentioned = [name for review in reviews for name in review.technicians]
    return {name: name_words(name) for name in dict.fromkeys(listed + mentioned)}


def _services(reviews: Iterable[Review], insights: Object) -> dict[str, frozenset[str]]:
    labels = [(entry["label"], entry["id"]) for entry in insights["entities"]["services"]]
    mentioned = dict.fromkeys(service for review in reviews for service in review.services)
    return _by_name(labels + [(service, service) for service in mentioned])


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """What each name stands for, from pairs of them; names are compared loosely."""
    meanings: dict[str, frozenset[str]] = {}
    for name, meaning in pairs:
        meanings[loosely(name)] = meanings.get(loosely(name), frozenset()) | {meaning}
    return meanings


def _warnings(business: Object, insights: Object, rating: Object, reviews: Sequence[Object]) -> Iterator[str]:
    named = _ids_in_insights(insights)
    if unknown := sorted(named.difference(review["id"] for review in reviews)):
        some = ", ".join(unknown[:3]) + (", …" if len(unknown) > 3 else "")
        yield f"{INSIGHTS_FILE} speaks of {len(unknown)} review(s) that are not served: {some}"
    if len(unknown) > len(named) / 2:
        yield f"{INSIGHTS_FILE} seems to belong to other reviews: most ids in it are not served"
    computed = aggregate_rating(reviews, {})
    if differing := [key for key in RATING_FIGURES if rating[key] != computed[key]]:
        pairs = ", ".join(f"{key} {rating[key]} (the reviews: {computed[key]})" for key in differing)
        yield f"{REVIEWS_FILE} gives an aggregate_rating of its own: {pairs}"
    days = dict.fromkeys(chain.from_iterable(entry["days"] for entry in business.get("hours") or ()))
    if foreign := [quoted(day) for day in days if day not in WEEK]:
        some = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        wanted = f"{', '.join(WEEK[:-1])} or {WEEK[-1]}"
        yield f"{REVIEWS_FILE} has opening hours that search engines are not told of: {some}; write {wanted}"


def _ids_in_insights(insights: Object) -> set[str]:
    entities = (insights["entities"][kind] for kind in ENTITY_KINDS)
    entries = chain(insights["aspects"], insights["topics"], *entities)
    named = set(insights["per_review"]).union(*(entry["example_review_ids"] for entry in entries))
    return named.union(*(entry["review_ids"] for entry in insights["faq"]))


def review_named(dataset: Dataset, name: str) -> Review | None:
    """The review whose id or `page_url` is `name`; only the last part of an address is looked at."""
    id = unquote(re.split("[?#]", name.rpartition(REVIEW_PATH)[2])[0])
    return dataset.reviews_by_id.get(name) or dataset.reviews_by_id.get(id)


def service_labels(dataset: Dataset) -> dict[str, str]:
    """The labels of services by their ids, as far as the insights have them."""
    return {entry["id"]: entry["label"] for entry in dataset.insights["entities"]["services"]}


# ---- Filters: one after the other, each on what is left ----


def technicians_named(dataset: Dataset, value: str) -> list[str]:
    """Every technician whose name has all the words of `value`, or whose id it is."""
    wanted, of_id = name_words(value), dataset.technician_ids.get(loosely(value), ())
    return [name for name, words in dataset.technicians.items() if wanted <= words or name in of_id]


def services_named(dataset: Dataset, value: str) -> frozenset[str]:
    """The id of every service whose id or label is `value`."""
    return dataset.services.get(loosely(value), frozenset())


def sources_named(dataset: Dataset, value: str) -> list[str]:
    """The source that is `value`, as written, if any."""
    return [source for source in dataset.sources if loosely(source) == loosely(value)]


Reviews = Sequence[Review]


def _mentioning_technician(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    meant = set(technicians_named(dataset, value))
    return [review for review in reviews if not meant.isdisjoint(review.technicians)]


def _mentioning_service(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    meant = services_named(dataset, value)
    return [review for review in reviews if not meant.isdisjoint(review.services)]


def _published_at(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    source = loosely(value)
    return [review for review in reviews if review.source == source]


def _with_words(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    words = loosely(value)
    return [review for review in reviews if words in review.loose_text]


# By the name of the parameter, each for reviews that are newest first. The costliest comes last, when few
# reviews are left.
FILTERS: dict[str, Callable[[Dataset, Reviews, Any], Reviews]] = {
    "since": lambda dataset, reviews, day: reviews[: count_since(reviews, day)],
    "until": lambda dataset, reviews, day: reviews[
        bisect_left(reviews, True, key=lambda review: review.day <= day) :
    ],
    "rating": lambda dataset, reviews, rating: [each for each in reviews if each.rating == rating],
    "min_rating": lambda dataset, reviews, rating: [each for each in reviews if each.rating >= rating],
    "max_rating": lambda dataset, reviews, rating: [each for each in reviews if each.rating <= rating],
    "mentions_technician": _mentioning_technician,
    "mentions_service": _mentioning_service,
    "source": _published_at,
    "query": _with_words,
}


def matching(dataset: Dataset, query: Query) -> Reviews:
    """The reviews that pass every filter of `query`, newest first."""
    matches: Reviews = dataset.reviews
    for name, value in filters_of(query):
        matches = FILTERS[name](dataset, matches, value)
    return matches


def filters_of(query: Query) -> list[tuple[str, Any]]:
    """The filters of `query` with their values, in the order of FILTERS."""
    return [(name, value) for name in FILTERS if (value := getattr(query, name)) is not None]


def count_since(reviews: Reviews, day: str) -> int:
    """How many of `reviews`, newest first, are of `day` or later."""
    return bisect_left(reviews, True, key=lambda review: review.day < day)


# ---- Lists: the answers of search and since ----


@dataclass(frozen=True, slots=True)
class ReviewList:
    """An object whose last member is `reviews`, not joined yet; `frame` has the members before it."""

    frame: dict[str, Json]
    reviews: Reviews

    def encoded(self) -> bytes:
        """The object as JSON."""
        return _joined(self.frame, [review.json for review in self.reviews])


def _joined(frame: Object, reviews: Iterable[bytes | memoryview]) -> bytes:
    """The object `frame`, which has members, with one more: `reviews`, which are encoded already."""
    return encode(frame)[:-1] + b',"reviews":[' + b",".join(reviews) + b"]}"


def search(dataset: Dataset, query: Query) -> ReviewList:
    """`{"matched", "returned", "reviews"}`: `limit` reviews after the first `offset` that match.

    Where nothing matches, `hints` stands before `reviews`.
    """
    found = _part(matching(dataset, query), query)
    return found if found.frame["matched"] else ReviewList(found.frame | {"hints": hints(dataset, query)}, ())


def in_any_order(dataset: Dataset, query: Query) -> ReviewList:
    """What `search` finds if the `loose_words` of `query` may stand apart, each anywhere in the text."""
    others = matching(dataset, replace(query, query=None))
    return _part(_with_each(others, loose_words(query.query or "")), query)


def _with_each(reviews: Reviews, words: Iterable[str]) -> Reviews:
    """Those of `reviews` that have all of `words`, which are loose, anywhere in the text."""
    for word in words:
        reviews = [review for review in reviews if word in review.loose_text]
    return reviews


def _part(matches: Reviews, query: Query) -> ReviewList:
    chosen = matches[query.offset : query.offset + query.limit]
    return ReviewList({"matched": len(matches), "returned": len(chosen)}, chosen)


def neighbours(dataset: Dataset, review: Review) -> tuple[Review | None, Review | None]:
    """The next newer and the next older review."""
    reviews, order = dataset.reviews, (review.date, review.id)
    at = bisect_left(reviews, True, key=lambda other: (other.date, other.id) <= order)
    return reviews[at - 1] if at else None, reviews[at + 1] if at + 1 < len(reviews) else None


class SinceList(NamedTuple):
    """The pieces of an object whose last member is `reviews`; `part` is a part of `Dataset.reviews_json`."""

    head: bytes
    part: memoryview
    tail: bytes

    def encoded(self) -> bytes:
        """The object as JSON."""
        return b"".join(self)


def since(dataset: Dataset, day: str) -> SinceList:
    """`{"since", "returned", "reviews"}`: the reviews of `day` and later, newest first.

    Raises BadQuery when `day` is no calendar day.
    """
    try:
        read_day(day)
    except BadValue as bad:
        raise BadQuery([Issue("date", echo(day), str(bad))]) from None
    reviews, count = dataset.reviews, count_since(dataset.reviews, day)
    empty = _joined({"since": day, "returned": count}, ())
    start, end = (reviews[0].end - len(reviews[0].json), reviews[count - 1].end) if count else (0, 0)
    return SinceList(empty[:-2], memoryview(dataset.reviews_json)[start:end], empty[-2:])


# ---- Hints: where an empty answer leads on ----

MOST_EXAMPLES = 5  # ids of reviews
MOST_LOOKED_AT = 500  # characters of a value
MOST_COUNTED = 4  # words of a query, the longest, which tell most; each costs a look at all texts


def hints(dataset: Dataset, query: Query) -> list[str]:
    """What leads on where nothing matches `query`, in sentences."""
    if not dataset.reviews:
        return ["There are no reviews yet."]
    without_one = _matches_without_one(dataset, query)
    counts = ", ".join(f"{name} {len(matches)}" for name, matches in without_one.items())
    left_out = f"Reviews that match if one filter is left out: {counts}; if all are: {len(dataset.reviews)}."
    apart = _words_apart(dataset, query.query, without_one["query"]) if query.query else ()
    return [*_empty_ranges(dataset, query), *_unknown_names(dataset, query), *apart, left_out]


def _matches_without_one(dataset: Dataset, query: Query) -> dict[str, Reviews]:
    """By filter of `query`, which matches nothing: the reviews that fail this filter alone."""
    passing: Reviews = dataset.reviews
    failing: dict[str, Reviews] = {}
    filters = filters_of(query)
    for name, value in filters:
        failing = {other: FILTERS[name](dataset, matches, value) for other, matches in failing.items()}
        kept = FILTERS[name](dataset, passing, value) if name != filters[-1][0] else ()
        kept_ids = {review.id for review in kept}
        failing[name] = [review for review in passing if review.id not in kept_ids]
        passing = kept
    return failing


def _empty_ranges(dataset: Dataset, query: Query) -> Iterator[str]:
    for low, high in (("since", "until"), ("min_rating", "max_rating")):
        least, most = getattr(query, low), getattr(query, high)
        if least is not None and most is not None and least > most:
            yield f"{low} is beyond {high}: exchange them."
    newest, oldest = dataset.reviews[0].day, dataset.reviews[-1].day
    if (query.since or "") > newest or (query.until or newest) < oldest:
        yield f"The reviews are from {oldest} to {newest}."


def _unknown_names(dataset: Dataset, query: Query) -> Iterator[str]:
    labels, ids = service_labels(dataset), chain.from_iterable(map(sorted, dataset.services.values()))
    services = (f"{id} ({labels[id]})" if id in labels else id for id in dict.fromkeys(ids))
    for name, meant, known in (
        ("mentions_technician", technicians_named, dataset.technicians),
        ("mentions_service", services_named, services),
        ("source", sources_named, dataset.sources),
    ):
        value = (getattr(query, name) or "")[:MOST_LOOKED_AT]
        if value and not meant(dataset, value):
            count = len(_with_words(dataset, dataset.reviews, value))
            found = f"Reviews with it in their text, for query: {count}."
            yield f"{name} “{echo(value)}” is unknown; {known_names(value, known)}. {found}"


def _words_apart(dataset: Dataset, text: str, others: Reviews) -> Iterator[str]:
    """What the words of `text` find apart; `others` are the reviews that pass all other filters."""
    words = loose_words(text[:MOST_LOOKED_AT])
    if words and (together := _with_each(others, words)):
        ids = ", ".join(review.id for review in together[:MOST_EXAMPLES])
        yield f"query is found as one piece. Reviews with its words in any order: {len(together)} ({ids})."
    elif len(words) > 1:
        texts, longest = [review.loose_text for review in others], sorted(words, key=len)[-MOST_COUNTED:]
        found = ", ".join(f"{echo(word)} {sum(map(contains, texts, repeat(word)))}" for word in longest)
        yield f"query is found as one piece. Reviews with one of its words: {found}."
    else:
        language = f", in {dataset.business['language']}" if dataset.business.get("language") else ""
        yield f"Customers may have used other words{language}: try another word, or a part of one."
