"""The dataset in memory: two JSON files become one immutable `Dataset`, which is searched.

Each review is encoded once, when it is loaded; results join the encoded reviews. This module opens no file
and no socket, starts no thread, reads no clock and knows nothing of HTTP.

Sections: Files - Served reviews - Dataset - Filters - Lists - Hints
"""

from __future__ import annotations

import math
import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, chain, repeat
from typing import Any, NamedTuple
from urllib.parse import unquote

from reviewslib.dataset.contract import (
    BadData,
    Contract,
    Fault,
    FileSchema,
    Violations,
    printable,
    quoted,
)
from reviewslib.dataset.insights import ENTITY_KINDS, compute_insights, mean
from reviewslib.dataset.provenance import sources_of
from reviewslib.dataset.query import (
    BadQuery,
    BadValue,
    Issue,
    Query,
    echo,
    known_names,
    read_day,
)
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode, encode
from reviewslib.dataset.text import (
    loose_value,
    loose_words,
    loosen,
    name_value_words,
    name_words,
)
from reviewslib.links import REVIEW_PATH, ServiceUrls

REVIEWS_FILE = "reviews.json"
INSIGHTS_FILE = "insights.json"
BLANK_KEYS = (
    "address",
    "geo",
)  # of the business; an import writes these objects with nulls to be replaced
NO_INSIGHTS = (
    f"{INSIGHTS_FILE} is absent: only stars and dates of the reviews are counted"
)
NEWEST_REVIEWS = 50  # in the feeds and on the page
LARGEST_REVIEW_BYTES = (
    64 * 1024
)  # of served JSON; this bounds the size of pages and search results
MAX_CONTAINERS = 2_000_000  # objects and arrays in a file; ten times as many need more than a gigabyte


# ---- Files: contents become completed documents, or faults ----


def read_file(
    file: str, data: bytes, schema: FileSchema, *rules: Callable[[Json], Violations]
) -> tuple[dict[str, Json], list[Fault]]:
    """The completed document, which is empty if there are faults, and every fault, in document order.

    A violation of `rules` is reported only where the schema holds.
    """
    if data.count(b"{") + data.count(b"[") > MAX_CONTAINERS:
        return {}, [
            Fault(file, (), f"has more than {MAX_CONTAINERS:,} objects and arrays")
        ]
    try:
        document = decode(data)
    except NotJson as error:
        return {}, [Fault(file, path, reason) for path, reason in error.faults]
    if isinstance(document, dict) and isinstance(
        business := document.get("business"), dict
    ):
        document["business"] = business | {
            key: None for key in BLANK_KEYS if _is_blank(business.get(key))
        }
    violations = list(schema.violations(document))
    wrong_paths = {path for path, _ in violations}
    broken_rules = chain.from_iterable(rule(document) for rule in rules)
    violations += [
        (path, reason) for path, reason in broken_rules if path not in wrong_paths
    ]
    violations.sort(
        key=lambda violation: [(isinstance(step, str), step) for step in violation[0]]
    )
    faults = [Fault(file, path, reason) for path, reason in violations]
    return {} if faults else schema.complete(document), faults


def _is_blank(value: Json) -> bool:
    """Whether `value` is an object whose members are all null, such as an address to be filled in."""
    return (
        isinstance(value, dict)
        and value != {}
        and all(member is None for member in value.values())
    )


def repeated_ids(document: Json) -> Violations:
    """Ids that an earlier review has, in a ReviewsFile; `document` may be any JSON."""
    reviews = document.get("reviews") if isinstance(document, dict) else None
    first_use: dict[str, int] = {}
    for index, review in enumerate(reviews if isinstance(reviews, list) else ()):
        id = review.get("id") if isinstance(review, dict) else None
        if isinstance(id, str) and (first := first_use.setdefault(id, index)) != index:
            yield (
                ("reviews", index, "id"),
                f"{quoted(id)} is already the id of /reviews/{first}",
            )


# ---- Served reviews: every key, null if absent; then unknown keys, unchanged; `page_url` last ----

WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MENTION_KINDS = ("technicians", "services")  # a review has a list of each
RATING_FIGURES = ("rating_value", "review_count", "distribution")


def calendar_day(review: Object) -> str:
    """The day of a review as written, YYYY-MM-DD, whatever its time zone."""
    return str(review["date"])[:10]


def serving_order(review: Object) -> tuple[str, str]:
    """The sort key of reviews, for descending order: the date as written, then the id."""
    return str(review["date"]), review["id"]


def served_reviews(
    reviews: Iterable[dict[str, Json]], annotations: Mapping[str, Object]
) -> list[dict[str, Json]]:
    """The completed `reviews` in serving order, without those that have `verified: false`.

    A review that lists no people or services gets those of its annotation.
    """
    served = [review for review in reviews if review["verified"] is not False]
    for review in served:
        for kind in MENTION_KINDS:
            if review[f"mentioned_{kind}"] is None:
                review[f"mentioned_{kind}"] = annotations.get(review["id"], {}).get(
                    kind, []
                )
    return sorted(served, key=serving_order, reverse=True)


def aggregate_rating(reviews: Sequence[Object], in_file: Object) -> dict[str, Json]:
    """The rating of all `reviews`. Figures `in_file` win, since they may include reviews that it lacks."""
    ratings = [review["rating"] for review in reviews]
    stars = Counter(map(math.floor, ratings))
    computed = {
        "rating_value": mean(ratings),
        "review_count": len(ratings),
        "best_rating": 5,
        "worst_rating": 1,
        "distribution": {str(star): stars[star] for star in range(1, 6)},
    }
    figures = {
        key: value
        for key, value in in_file.items()
        if value is not None or key not in computed
    }
    return computed | figures


# ---- Dataset: both files, loaded ----


@dataclass(frozen=True, slots=True)
class Review:
    """A served review: the values that filters compare, and its JSON."""

    id: str
    date: str  # as written
    day: str
    rating: float
    loose_text: str  # the loosened text; empty without text
    technicians: tuple[str, ...]  # names as written
    services: tuple[str, ...]  # ids as written
    loose_source: str  # the loosened source
    json: memoryview  # a part of `Dataset.reviews_json`
    end: int  # of that part, in bytes from the start
    changed_day: str  # of the review or of its reply, whichever is later


@dataclass(frozen=True, slots=True)
class Dataset:
    """The data that are served. Immutable; plain values only."""

    business: dict[str, Json]
    aggregate_rating: dict[str, Json]
    insights: dict[str, Json]  # without `per_review`, their largest part
    newest: tuple[Object, ...]  # the first NEWEST_REVIEWS of `reviews`, decoded
    reviews: tuple[Review, ...]  # newest first
    reviews_by_id: Mapping[str, Review]
    technicians: Mapping[str, frozenset[str]]  # `name_words` by name
    services: tuple[
        str, ...
    ]  # ids as written: those of the insights, then others that reviews mention
    sources: tuple[str, ...]  # as written, the most frequent first
    reviews_json: bytes  # the whole document
    reviews_digest: bytes  # SHA-256 of the encoded reviews alone
    insights_json: bytes
    unverified_count: int  # reviews that are left out
    notes: tuple[str, ...]  # for the operator; not warnings
    warnings: tuple[str, ...]  # for the operator


def load(
    contract: Contract,
    reviews_file: bytes,
    insights_file: bytes | None,
    urls: ServiceUrls,
) -> Dataset:
    """The dataset of the contents of two files. Raises BadData with every fault of both.

    `urls` gives the reviews their `page_url`. Without an insights file the insights are counted from the
    reviews.
    """
    document, faults = read_file(
        REVIEWS_FILE, reviews_file, contract.reviews_file, repeated_ids
    )
    data = b"{}" if insights_file is None else insights_file
    insights, insight_faults = read_file(INSIGHTS_FILE, data, contract.insights_file)
    if faults or insight_faults:
        raise BadData(faults + insight_faults)
    served = served_reviews(document["reviews"], insights["per_review"])
    for review in served:
        review["page_url"] = urls.review_page(
            review["id"]
        )  # replaces a value of the file
    if insights_file is None:
        insights |= compute_insights(served) | {
            "generated_at": served[0]["date"] if served else None
        }
    rating = aggregate_rating(served, document["aggregate_rating"] or {})
    frame = {key: value for key, value in document.items() if key != "reviews"} | {
        "aggregate_rating": rating
    }
    encoded = [encode(review) for review in served]
    if too_large := _size_faults(document, served, encoded):
        raise BadData(too_large)
    reviews_json = _joined(frame, encoded)
    first = len(_joined(frame, ())) - len("]}")
    starts = list(accumulate((len(json) + len(",") for json in encoded), initial=first))
    reviews = tuple(
        map(
            _review, served, repeat(memoryview(reviews_json)), starts, map(len, encoded)
        )
    )
    return Dataset(
        business=document["business"],
        aggregate_rating=rating,
        insights={key: value for key, value in insights.items() if key != "per_review"},
        newest=tuple(served[:NEWEST_REVIEWS]),
        reviews=reviews,
        reviews_by_id={review.id: review for review in reviews},
        technicians={
            name: name_words(name)
            for name in _names("technicians", "label", reviews, insights)
        },
        services=_names("services", "id", reviews, insights),
        sources=sources_of(review["source"] for review in served),
        reviews_json=reviews_json,
        reviews_digest=sha256(memoryview(reviews_json)[first:]).digest(),
        insights_json=encode(insights),
        unverified_count=len(document["reviews"]) - len(reviews),
        notes=(NO_INSIGHTS,) if insights_file is None else (),
        warnings=tuple(
            map(printable, _warnings(document["business"], insights, rating, served))
        ),
    )


def _size_faults(
    document: Object, served: Sequence[Object], encoded: Sequence[bytes]
) -> list[Fault]:
    """A fault for each review of `document`, in its order, whose served JSON is too large."""
    indexes = {review["id"]: index for index, review in enumerate(document["reviews"])}
    sizes = {
        indexes[review["id"]]: len(json)
        for review, json in zip(served, encoded, strict=True)
    }
    limit = f"bytes of JSON; a review has at most {LARGEST_REVIEW_BYTES:,}"
    large = sorted(
        index for index, size in sizes.items() if size > LARGEST_REVIEW_BYTES
    )
    return [
        Fault(REVIEWS_FILE, ("reviews", index), f"has {sizes[index]:,} {limit}")
        for index in large
    ]


def _review(review: Object, document: memoryview, start: int, size: int) -> Review:
    day = sys.intern(calendar_day(review))
    text = loosen(review["text"] or "")
    technicians, services = (
        tuple(map(sys.intern, review[f"mentioned_{kind}"])) for kind in MENTION_KINDS
    )
    changed_day = sys.intern(
        max(day, str((review["owner_reply"] or {}).get("date") or "")[:10])
    )
    end = start + size
    mentions = technicians, services, sys.intern(loosen(review["source"]))
    id = review["id"]
    date = sys.intern(review["date"])
    return Review(
        id,
        date,
        day,
        review["rating"],
        text,
        *mentions,
        document[start:end],
        end,
        changed_day,
    )


def _names(
    kind: str, key: str, reviews: Iterable[Review], insights: Object
) -> tuple[str, ...]:
    """The different names of a kind of MENTION_KINDS: `key` of its entries, then what reviews mention."""
    listed = (entry[key] for entry in insights["entities"][kind])
    return tuple(
        dict.fromkeys(chain(listed, *(getattr(review, kind) for review in reviews)))
    )


def _warnings(
    business: Object, insights: Object, rating: Object, reviews: Sequence[Object]
) -> Iterator[str]:
    ids = _ids_in_insights(insights)
    if unknown := sorted(ids.difference(review["id"] for review in reviews)):
        yield f"{INSIGHTS_FILE} names {len(unknown)} review(s) that are not served: {_first_three(unknown)}"
    if len(unknown) > len(ids) / 2:
        yield f"{INSIGHTS_FILE} seems to belong to other reviews: most ids in it are not served"
    computed = aggregate_rating(reviews, {})
    if differing := [key for key in RATING_FIGURES if rating[key] != computed[key]]:
        pairs = ", ".join(
            f"{key} {rating[key]} (the reviews: {computed[key]})" for key in differing
        )
        yield f"{REVIEWS_FILE} gives an aggregate_rating of its own: {pairs}"
    days = dict.fromkeys(
        chain.from_iterable(entry["days"] for entry in business.get("hours") or ())
    )
    if foreign := [quoted(day) for day in days if day not in WEEK]:
        ignored = _first_three(foreign)
        expected = f"{', '.join(WEEK[:-1])} or {WEEK[-1]}"
        yield f"{REVIEWS_FILE}: search engines ignore the opening hours of {ignored}; write {expected}"


def _first_three(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _ids_in_insights(insights: Object) -> set[str]:
    entities = (insights["entities"][kind] for kind in ENTITY_KINDS)
    entries = chain(insights["aspects"], insights["topics"], *entities)
    ids = set(insights["per_review"]).union(
        *(entry["example_review_ids"] for entry in entries)
    )
    return ids.union(*(entry["review_ids"] for entry in insights["faq"]))


def review_at(dataset: Dataset, id_or_url: str) -> Review | None:
    """The review with this id or `page_url`; of a URL only the last segment of its path counts."""
    id = unquote(re.split("[?#]", id_or_url.rpartition(REVIEW_PATH)[2])[0])
    return dataset.reviews_by_id.get(id_or_url) or dataset.reviews_by_id.get(id)


def service_labels(dataset: Dataset) -> dict[str, str]:
    """The labels of services by id; a service that the insights do not list has none."""
    return {
        entry["id"]: entry["label"]
        for entry in dataset.insights["entities"]["services"]
    }


# ---- Filters: one after the other, each over the reviews that passed the previous one ----


def technicians_named(dataset: Dataset, value: str) -> list[str]:
    """The names of technicians that have all the words of `value`, or whose id is `value`."""
    words_of_value = name_value_words(value)
    id = loose_value(value)
    entries = dataset.insights["entities"]
    with_id = {
        entry["label"] for entry in entries["technicians"] if loosen(entry["id"]) == id
    }
    return [
        name
        for name, words in dataset.technicians.items()
        if words_of_value <= words or name in with_id
    ]


def services_named(dataset: Dataset, value: str) -> set[str]:
    """The ids of services whose id or label is `value`."""
    name = loose_value(value)
    entries = dataset.insights["entities"]["services"]
    labelled = {entry["id"] for entry in entries if loosen(entry["label"]) == name}
    return labelled.union(id for id in dataset.services if loosen(id) == name)


def sources_named(dataset: Dataset, value: str) -> list[str]:
    """The source that is `value`, as written in the file; empty if there is none."""
    return [
        source for source in dataset.sources if loosen(source) == loose_value(value)
    ]


Reviews = Sequence[Review]


def _mentioning_technician(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    names = set(technicians_named(dataset, value))
    return [review for review in reviews if not names.isdisjoint(review.technicians)]


def _mentioning_service(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    ids = services_named(dataset, value)
    return [review for review in reviews if not ids.isdisjoint(review.services)]


def _published_at(dataset: Dataset, reviews: Reviews, value: str) -> Reviews:
    source = loose_value(value)
    return [review for review in reviews if review.loose_source == source]


def _with_all(reviews: Reviews, parts: Iterable[str]) -> Reviews:
    """The reviews whose text contains all `parts`, which are loosened."""
    for part in parts:
        reviews = [review for review in reviews if part in review.loose_text]
    return reviews


# By parameter. A filter takes and returns reviews, newest first. The most expensive filter comes last, when
# few reviews are left.
FILTERS: dict[str, Callable[[Dataset, Reviews, Any], Reviews]] = {
    "since": lambda dataset, reviews, day: reviews[: count_since(reviews, day)],
    "until": lambda dataset, reviews, day: reviews[
        bisect_left(reviews, True, key=lambda review: review.day <= day) :
    ],
    "rating": lambda dataset, reviews, stars: [
        review for review in reviews if review.rating == stars
    ],
    "min_rating": lambda dataset, reviews, stars: [
        review for review in reviews if review.rating >= stars
    ],
    "max_rating": lambda dataset, reviews, stars: [
        review for review in reviews if review.rating <= stars
    ],
    "mentions_technician": _mentioning_technician,
    "mentions_service": _mentioning_service,
    "source": _published_at,
    "query": lambda dataset, reviews, text: _with_all(reviews, [loose_value(text)]),
}


def matching(dataset: Dataset, query: Query, without: str = "") -> Reviews:
    """The reviews that pass every filter of `query`, except the filter `without`, newest first."""
    matches: Reviews = dataset.reviews
    for name, value in filters_of(query):
        if name != without:
            matches = FILTERS[name](dataset, matches, value)
    return matches


def filters_of(query: Query) -> list[tuple[str, Any]]:
    """The names and values of the filters of `query`, in the order of FILTERS."""
    return [
        (name, value) for name in FILTERS if (value := getattr(query, name)) is not None
    ]


def count_since(reviews: Reviews, day: str) -> int:
    """The number of `reviews`, which are newest first, of `day` or later."""
    return bisect_left(reviews, True, key=lambda review: review.day < day)


# ---- Lists: the results of search and since ----


@dataclass(frozen=True, slots=True)
class ReviewList:
    """A JSON object, not joined yet: the members of `frame`, then `reviews`."""

    frame: dict[str, Json]
    reviews: Reviews

    def encoded(self) -> bytes:
        """The JSON of the object."""
        return _joined(self.frame, [review.json for review in self.reviews])


def _joined(frame: Object, reviews: Iterable[bytes | memoryview]) -> bytes:
    """The JSON of `frame`, which is not empty, with the encoded `reviews` as its last member."""
    return b"".join((encode(frame)[:-1], b',"reviews":[', b",".join(reviews), b"]}"))


def search(dataset: Dataset, query: Query) -> ReviewList:
    """`{"matched", "returned", "reviews"}`: `limit` reviews after the first `offset` that match.

    Where nothing matches, `hints` stands before `reviews`.
    """
    matches = matching(dataset, query)
    page = _page(matches, query)
    return (
        page
        if matches
        else ReviewList(page.frame | {"hints": hints(dataset, query)}, ())
    )


def in_any_order(dataset: Dataset, query: Query) -> ReviewList:
    """The result of `search`, but each of the `loose_words` of `query` may be anywhere in the text."""
    candidates = matching(dataset, query, without="query")
    return _page(_with_all(candidates, loose_words(query.query or "")), query)


def _page(matches: Reviews, query: Query) -> ReviewList:
    """The `limit` reviews after the first `offset`."""
    page = matches[query.offset : query.offset + query.limit]
    return ReviewList({"matched": len(matches), "returned": len(page)}, page)


def neighbours(dataset: Dataset, review: Review) -> tuple[Review | None, Review | None]:
    """The next newer and the next older review."""
    reviews = dataset.reviews
    order = (review.date, review.id)
    at = bisect_left(reviews, True, key=lambda other: (other.date, other.id) <= order)
    return reviews[at - 1] if at else None, reviews[at + 1] if at + 1 < len(
        reviews
    ) else None


class SinceList(NamedTuple):
    """A JSON object in three pieces; `part`, the reviews, is a part of `Dataset.reviews_json`."""

    head: bytes
    part: memoryview
    tail: bytes

    def encoded(self) -> bytes:
        """The JSON of the object."""
        return b"".join(self)


def since(dataset: Dataset, day: str) -> SinceList:
    """`{"since", "returned", "reviews"}`: the reviews of `day` and later, newest first.

    Raises BadQuery if `day` is no calendar day.
    """
    try:
        read_day(day)
    except BadValue as bad:
        raise BadQuery([Issue("date", echo(day), str(bad))]) from None
    reviews = dataset.reviews
    count = count_since(dataset.reviews, day)
    empty = _joined({"since": day, "returned": count}, ())
    start, end = (
        (reviews[0].end - len(reviews[0].json), reviews[count - 1].end)
        if count
        else (0, 0)
    )
    return SinceList(
        empty[:-2], memoryview(dataset.reviews_json)[start:end], empty[-2:]
    )


# ---- Hints: what to search for after a search without matches ----

MAX_EXAMPLES = 5  # ids of reviews in a hint
MAX_COMPARED_LENGTH = 500  # characters of a value
MAX_COUNTED_WORDS = (
    4  # words of a query, the longest ones; counting a word searches all texts
)
RANGES = (("since", "after", "until"), ("min_rating", "above", "max_rating"))
PHRASE_ONLY = "query matches its words only as a phrase."


def hints(dataset: Dataset, query: Query) -> list[str]:
    """Sentences that say what would match; nothing matches `query`."""
    if not dataset.reviews:
        return ["There are no reviews yet."]
    matches = {
        name: matching(dataset, query, without=name) for name, _ in filters_of(query)
    }
    counts = ", ".join(f"{name} {len(reviews)}" for name, reviews in matches.items())
    left_out = (
        f"Reviews that match if one filter is left out: {counts}; without any filter: "
    )
    candidates = matches.get(
        "query"
    )  # if empty, the other filters are at fault, not the words
    words = _word_hint(dataset, query.query or "", candidates) if candidates else ()
    names = _unknown_names(dataset, query)
    return [
        *_empty_ranges(dataset, query),
        *names,
        *words,
        f"{left_out}{len(dataset.reviews)}.",
    ]


def _empty_ranges(dataset: Dataset, query: Query) -> Iterator[str]:
    for low, comparison, high in RANGES:
        least = getattr(query, low)
        most = getattr(query, high)
        if least is not None and most is not None and least > most:
            yield f"{low} is {comparison} {high}: swap the two values."
    newest = dataset.reviews[0].day
    oldest = dataset.reviews[-1].day
    if (query.since or "") > newest or (query.until or newest) < oldest:
        yield f"The reviews are from {oldest} to {newest}."


def _unknown_names(dataset: Dataset, query: Query) -> Iterator[str]:
    labels = service_labels(dataset)
    services = [
        f"{id} ({labels[id]})" if id in labels else id for id in dataset.services
    ]
    for parameter, noun, plural, lookup, names in (
        (
            "mentions_technician",
            "person",
            "people",
            technicians_named,
            dataset.technicians,
        ),
        ("mentions_service", "service", "services", services_named, services),
        ("source", "source", "sources", sources_named, dataset.sources),
    ):
        value = (getattr(query, parameter) or "")[:MAX_COMPARED_LENGTH]
        if value and not lookup(dataset, value):
            count = len(_with_all(dataset.reviews, [loose_value(value)]))
            in_texts = f"Reviews with it in their text: {count}" + (
                " (search with query)" if count else ""
            )
            yield f"No {noun} is called “{echo(value)}”. {known_names(plural, value, names)}. {in_texts}."


def _word_hint(dataset: Dataset, text: str, candidates: Reviews) -> Iterator[str]:
    """A sentence about the words of `text`; `candidates` are the reviews that pass all other filters."""
    words = loose_words(text[:MAX_COMPARED_LENGTH])
    longest = sorted(words, key=len)[-MAX_COUNTED_WORDS:]
    found = {word: _with_all(candidates, [word]) for word in longest}
    if matches := _with_all(min(found.values(), key=len, default=()), words):
        ids = ", ".join(review.id for review in matches[:MAX_EXAMPLES])
        is_all = set(loose_value(text).split()) == set(words)
        which = "all of them" if is_all else f"the first {len(words)} of them"
        yield f"{PHRASE_ONLY} Reviews with {which} in any order: {len(matches)} ({ids})."
    elif any(found.values()):
        listed = ", ".join(
            f"{echo(word)} {len(reviews)}" for word, reviews in found.items()
        )
        yield f"{PHRASE_ONLY} Reviews with one of them: {listed}."
    else:
        language = dataset.business.get("language")
        where = f" (their language: {language})" if language else ""
        yield f"Customers may use other words{where}: try a synonym, or a part of a word."
