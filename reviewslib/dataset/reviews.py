"""The dataset in memory: two JSON files become one immutable `Dataset`.

Each review is encoded once, when it is loaded. This module opens no file and no socket,
starts no thread, reads no clock and knows nothing of HTTP.

Sections: served reviews - the rating - the dataset - loading - notes - warnings -
names.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote

from reviewslib.dataset.contract import Contract, quoted
from reviewslib.dataset.figures import (
    activity_of,
    average_and_distribution,
    calendar_day,
    mean,
)
from reviewslib.dataset.insights import compute_insights
from reviewslib.dataset.provenance import sources_of
from reviewslib.dataset.reading import (
    INSIGHTS_FILE,
    REVIEWS_FILE,
    read_file,
    repeated_ids,
)
from reviewslib.dataset.strict_json import Json, Object, decode, encode
from reviewslib.dataset.subjects import (
    MENTIONED_KEYS,
    Subjects,
    most_mentioned,
    subjects_of,
)
from reviewslib.dataset.text import loosen, name_words
from reviewslib.dataset.vocabulary import NAME_KEYS, entries_in, entries_of_kind
from reviewslib.dataset.word_index import HintIndex, hint_index_of
from reviewslib.faults import BadData, Fault, printable
from reviewslib.links import REVIEW_PATH, ServiceUrls

# In the feeds and on the page.
NEWEST_REVIEWS = 50
# Of served JSON. It bounds pages and search results: `limit=100` is at most 6.4 MB.
LARGEST_REVIEW_BYTES = 64 * 1024

# ---- Served reviews: each key, null if absent; then unknown keys; `page_url` last ----


def serving_order(review: Object) -> tuple[str, str]:
    """The sort key of reviews, for descending order: date as written, then id."""
    return str(review["date"]), review["id"]


def served_reviews(
    reviews: Iterable[dict[str, Json]], annotations: Mapping[str, Object]
) -> list[dict[str, Json]]:
    """The completed `reviews` in serving order, without those with `verified: false`.

    A review that lists no people or services gets those of its annotation.
    """
    served = [review for review in reviews if review["verified"] is not False]
    for review in served:
        annotation = annotations.get(review["id"], {})
        for kind, key in MENTIONED_KEYS.items():
            if review[key] is None:
                review[key] = annotation.get(kind, [])
    return sorted(served, key=serving_order, reverse=True)


# ---- The rating ----

# What a file may say otherwise than its reviews.
RATING_FIGURES = ("rating_value", "review_count", "distribution")


def aggregate_rating(reviews: Sequence[Object], in_file: Object) -> dict[str, Json]:
    """The rating of all `reviews`.

    Figures `in_file` win, since they may include reviews that the file lacks.
    """
    ratings = [review["rating"] for review in reviews]
    stars = Counter(map(math.floor, ratings))
    rating: dict[str, Json] = {
        "rating_value": mean(ratings),
        "review_count": len(ratings),
        "best_rating": 5,
        "worst_rating": 1,
        "distribution": {str(star): stars[star] for star in range(1, 6)},
    }
    for key, value in in_file.items():
        if value is not None or key not in rating:
            rating[key] = value
    return rating


# ---- The dataset: both files, loaded ----


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
    changed_day: str  # of the review, its last version or its reply: the latest
    has_reply: bool

    def decoded(self) -> Object:
        """The review as an object; decoding one takes longer than finding it."""
        entry: Object = decode(bytes(self.json))
        return entry


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
    # Ids as written: those of the insights, then others that reviews mention.
    services: tuple[str, ...]
    sources: tuple[str, ...]  # as written, the most frequent first
    subjects: Subjects
    hint_index: HintIndex
    figures: Object  # `figures_of` all reviews, whatever the file says
    activity: Object  # `activity_of` the reviews, whatever the insights say
    reviews_json: bytes  # the whole document
    reviews_digest: bytes  # SHA-256 of the encoded reviews alone
    insights_json: bytes
    unverified_count: int  # reviews that are left out
    notes: tuple[str, ...]  # for the operator; not warnings
    warnings: tuple[str, ...]  # for the operator


def figures_of(reviews: Iterable[Review], subjects: Subjects) -> dict[str, Json]:
    """What a result says of all its matches.

    Those are `average_rating`, `distribution` and `people`: whom most of them mention.
    """
    ratings = []
    names = list[str]()
    for review in reviews:
        ratings.append(review.rating)
        names += review.technicians
    figures = average_and_distribution(ratings)
    return {**figures, "people": most_mentioned(subjects, names)}


# ---- Loading ----


def load(
    contract: Contract,
    reviews_file: bytes,
    insights_file: bytes | None,
    urls: ServiceUrls,
) -> Dataset:
    """The dataset of the contents of two files.

    `urls` gives the reviews their `page_url`. Without an insights file the insights are
    counted from the reviews. Raises BadData with every fault of both.
    """
    document, insights = _read_files(contract, reviews_file, insights_file)
    served = served_reviews(document["reviews"], insights["per_review"])
    for review in served:
        # It replaces a value of the file.
        review["page_url"] = urls.review_page(review["id"])
    if insights_file is None:
        insights |= compute_insights(served)
        insights["generated_at"] = served[0]["date"] if served else None
    rating = aggregate_rating(served, document["aggregate_rating"] or {})
    encoded = _encoded(document, served, rating)
    reviews = encoded.reviews
    people = _names("technicians", "label", reviews, insights)
    subjects = subjects_of(insights, served)
    warnings = _warnings(document["business"], insights, rating, served, subjects)
    return Dataset(
        business=document["business"],
        aggregate_rating=rating,
        insights={key: value for key, value in insights.items() if key != "per_review"},
        newest=tuple(served[:NEWEST_REVIEWS]),
        reviews=reviews,
        reviews_by_id={review.id: review for review in reviews},
        technicians={name: name_words(name) for name in people},
        services=_names("services", "id", reviews, insights),
        sources=sources_of(review["source"] for review in served),
        subjects=subjects,
        hint_index=hint_index_of(
            subjects, insights, (review.loose_text for review in reviews)
        ),
        figures=figures_of(reviews, subjects),
        activity=activity_of(served),
        reviews_json=encoded.json,
        reviews_digest=sha256(memoryview(encoded.json)[encoded.start :]).digest(),
        insights_json=encode(insights),
        unverified_count=len(document["reviews"]) - len(reviews),
        notes=tuple(_notes(document["business"], insights_file, subjects)),
        warnings=tuple(map(printable, warnings)),
    )


def _read_files(
    contract: Contract, reviews_file: bytes, insights_file: bytes | None
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Both documents. Raises BadData."""
    document, faults = read_file(
        REVIEWS_FILE, reviews_file, contract.reviews_file, repeated_ids
    )
    insights, more_faults = read_file(
        INSIGHTS_FILE, insights_file or b"{}", contract.insights_file
    )
    if faults or more_faults:
        raise BadData(faults + more_faults)
    return document, insights


class _Encoded(NamedTuple):
    """The document as it is served."""

    json: bytes
    start: int  # of its first review, in bytes
    reviews: tuple[Review, ...]


def _encoded(
    document: Object, served: Sequence[Object], rating: dict[str, Json]
) -> _Encoded:
    """Raises BadData if a review is too large."""
    parts = [encode(review) for review in served]
    too_large = _size_faults(document, served, parts)
    if too_large:
        raise BadData(too_large)
    frame = {key: value for key, value in document.items() if key != "reviews"}
    frame["aggregate_rating"] = rating
    whole = document_of(frame, parts)
    start = len(document_of(frame, ())) - len("]}")
    reviews = _loaded_reviews(served, parts, memoryview(whole), start)
    return _Encoded(whole, start, reviews)


def document_of(frame: Object, reviews: Iterable[bytes | memoryview]) -> bytes:
    """The JSON of `frame`, which is not empty, with encoded `reviews` at its end."""
    return b"".join((encode(frame)[:-1], b',"reviews":[', b",".join(reviews), b"]}"))


def _size_faults(
    document: Object, served: Sequence[Object], encoded: Sequence[bytes]
) -> list[Fault]:
    """A fault for each review whose served JSON is too large, in the file's order."""
    sizes = {
        review["id"]: len(json)
        for review, json in zip(served, encoded, strict=True)
        if len(json) > LARGEST_REVIEW_BYTES
    }
    if not sizes:
        return []
    limit = f"bytes of JSON; a review has at most {LARGEST_REVIEW_BYTES:,}"
    return [
        Fault(REVIEWS_FILE, ("reviews", index), f"has {sizes[review['id']]:,} {limit}")
        for index, review in enumerate(document["reviews"])
        if review["id"] in sizes
    ]


def _loaded_reviews(
    served: Sequence[Object],
    encoded: Sequence[bytes],
    document: memoryview,
    start: int,
) -> tuple[Review, ...]:
    """The reviews; their JSON is in `document` from `start`, commas between them."""
    reviews = []
    for review, json in zip(served, encoded, strict=True):
        end = start + len(json)
        reviews.append(_loaded_review(review, document[start:end], end))
        start = end + len(",")
    return tuple(reviews)


def _loaded_review(review: Object, json: memoryview, end: int) -> Review:
    # Many reviews share a name, a source or a day: each is held once.
    reply = review["owner_reply"] or {}
    day = calendar_day(review)
    updated_day = str(review["updated"] or "")[:10]
    reply_day = str(reply.get("date") or "")[:10]
    return Review(
        id=review["id"],
        date=sys.intern(review["date"]),
        day=sys.intern(day),
        rating=review["rating"],
        loose_text=loosen(review["text"] or ""),
        technicians=tuple(map(sys.intern, review["mentioned_technicians"])),
        services=tuple(map(sys.intern, review["mentioned_services"])),
        loose_source=sys.intern(loosen(review["source"])),
        json=json,
        end=end,
        changed_day=sys.intern(max(day, updated_day, reply_day)),
        has_reply=review["owner_reply"] is not None,
    )


def _names(
    kind: str, key: str, reviews: Iterable[Review], insights: Object
) -> tuple[str, ...]:
    """The different names of a kind of MENTIONED_KEYS.

    First `key` of its entries in the insights, then what reviews mention besides.
    """
    names = dict.fromkeys(entry[key] for entry in insights["entities"][kind])
    for review in reviews:
        names.update(dict.fromkeys(getattr(review, kind)))
    return tuple(names)


# ---- Notes: what the operator may not know is missing ----


def _notes(
    business: Object, insights_file: bytes | None, subjects: Subjects
) -> Iterator[str]:
    if insights_file is None:
        counted = "only stars and dates of the reviews are counted"
        yield f"{INSIGHTS_FILE} is absent: {counted}"
    if business.get("language") is None:
        cost = "browsers and screen readers take the reviews for English"
        remedy = 'write its tag, for example "de" or "en-GB"'
        absent = f'{REVIEWS_FILE}: no "language" in business'
        yield f"{absent}: {cost}; {remedy}"
    yield from map(printable, _examples_alone(subjects))


def _examples_alone(subjects: Subjects) -> Iterator[str]:
    """Kinds of which no review is known to speak: their figures lead to examples."""
    by_kind = defaultdict[str, list[str]](list)
    for key, subject in subjects.by_key.items():
        if subject.example_of is not None:
            count = f"{len(subject.review_ids)} of {subject.example_of}"
            by_kind[subject.kind].append(f"{quoted(key)} {count}")
    for kind, entries in by_kind.items():
        unlisted = f"{INSIGHTS_FILE}: per_review lists no {kind}"
        yield f"{unlisted}, which lead to examples: {first_three(entries)}"


# ---- Warnings: what the operator may want to put right ----

WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def _warnings(
    business: Object,
    insights: Object,
    rating: Object,
    reviews: Sequence[Object],
    subjects: Subjects,
) -> Iterator[str]:
    yield from _unknown_ids(insights, reviews)
    yield from _differing_figures(rating, reviews)
    yield from _differing_counts(insights, subjects)
    yield from _misnamed(insights, reviews)
    yield from _foreign_days(business)


def _unknown_ids(insights: Object, reviews: Sequence[Object]) -> Iterator[str]:
    ids = _ids_in_insights(insights)
    unknown = sorted(ids.difference(review["id"] for review in reviews))
    if unknown:
        named = f"{INSIGHTS_FILE} names reviews that are not served, {len(unknown)}"
        yield f"{named}: {first_three(unknown)}"
    if len(unknown) > len(ids) / 2:
        reason = "most ids in it are not served"
        yield f"{INSIGHTS_FILE} seems to belong to other reviews: {reason}"


def _differing_figures(rating: Object, reviews: Sequence[Object]) -> Iterator[str]:
    computed = aggregate_rating(reviews, {})
    pairs = [
        f"{key} {rating[key]} (the reviews: {computed[key]})"
        for key in RATING_FIGURES
        if rating[key] != computed[key]
    ]
    if pairs:
        own = f"{REVIEWS_FILE} gives an aggregate_rating of its own"
        yield f"{own}: {', '.join(pairs)}"


def _differing_counts(insights: Object, subjects: Subjects) -> Iterator[str]:
    """Figures of entries that are not the number of reviews that their links find."""
    differing = []
    for name, count, found in _counts(insights, subjects):
        # What nobody has counted differs from nothing.
        if count not in (None, found):
            differing.append(f"{name} {count} (the reviews: {found})")
    if differing:
        others = f"{INSIGHTS_FILE} counts other reviews than mention its entries"
        yield f"{others}, {len(differing)}: {first_three(differing)}"


def _counts(
    insights: Object, subjects: Subjects
) -> Iterator[tuple[str, int | None, int]]:
    """Each figure of an entry: its name, the figure, and how many reviews are known."""
    for kind, entry in entries_in(insights):
        subject = subjects.by_key[f"{kind}/{entry['id']}"]
        name = quoted(subject.key)
        # Examples are no count.
        if subject.example_of is not None:
            continue
        yield name, entry["mention_count"], len(subject.review_ids)
        for sentiment, ids in subject.judged.items():
            yield f"{name} {sentiment}", entry[f"{sentiment}_count"], len(ids)


def _misnamed(insights: Object, reviews: Sequence[Object]) -> Iterator[str]:
    """People whom reviews name by the id of an entry, and services by its label.

    They count as others than the entries mean.
    """
    for kind, key in MENTIONED_KEYS.items():
        right = NAME_KEYS[kind]
        wrong = "label" if right == "id" else "id"
        entries = entries_of_kind(insights, kind)
        names = {entry[wrong]: entry[right] for entry in entries}
        mentioned = set(chain.from_iterable(review[key] for review in reviews))
        misnamed = names.keys() & mentioned - {entry[right] for entry in entries}
        if misnamed:
            pairs = [
                f"{quoted(name)} is {quoted(names[name])}" for name in sorted(misnamed)
            ]
            means = f"names entries by {wrong}; write the {right}"
            yield f"{REVIEWS_FILE}: {key} {means}: {first_three(pairs)}"


def _foreign_days(business: Object) -> Iterator[str]:
    hours = business.get("hours") or ()
    days = dict.fromkeys(chain.from_iterable(entry["days"] for entry in hours))
    foreign = [quoted(day) for day in days if day not in WEEK]
    if foreign:
        expected = f"{', '.join(WEEK[:-1])} or {WEEK[-1]}"
        ignored = f"search engines ignore the opening hours of {first_three(foreign)}"
        yield f"{REVIEWS_FILE}: {ignored}; write {expected}"


def first_three(names: Sequence[str]) -> str:
    """Names in a line for the operator, and whether there are more."""
    listed = ", ".join(names[:3])
    return f"{listed}, …" if len(names) > 3 else listed


def _ids_in_insights(insights: Object) -> set[str]:
    """Every id of a review that insights name."""
    ids = set(insights["per_review"])
    for _, entry in entries_in(insights):
        ids.update(entry["example_review_ids"])
    for entry in insights["faq"]:
        ids.update(entry["review_ids"])
    return ids


# ---- Names: what a caller or a page calls something ----


def review_at(dataset: Dataset, id_or_url: str) -> Review | None:
    """The review with this id or `page_url`.

    Of a URL only the last segment of its path counts.
    """
    review = dataset.reviews_by_id.get(id_or_url)
    if review:
        return review
    segment = re.split("[?#]", id_or_url.rpartition(REVIEW_PATH)[2])[0]
    return dataset.reviews_by_id.get(unquote(segment))


def service_labels(dataset: Dataset) -> dict[str, str]:
    """The labels of services by id; one that the insights do not list has none."""
    entries = dataset.insights["entities"]["services"]
    return {entry["id"]: entry["label"] for entry in entries}
