"""What can be counted: insights from stars, dates, and the names that the owner lists.

The owner's `editorial.json` is any part of the insights, written by a person. An entry of `entities` may list
`aliases` there, the words by which reviews mention it; its figures are then counted. What else a person wrote
is kept. This module is pure: it knows no file and no clock, and of a review only `id`, `rating`, `date` and
`text`. Replies of the owner are never searched.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from statistics import fmean, variance

from reviewslib.dataset.contract import Violations, quoted, resolve
from reviewslib.dataset.strict_json import Json, JsonPath, Object, encode, members
from reviewslib.dataset.text import alias_of, folded_words

Reviews = Sequence[Object]  # verified and in served form, newest first
Annotations = Mapping[str, Object]  # what was found in each review, by its id

# ---- Insights: the document ----

ENTITY_KINDS = ("technicians", "services", "problems", "service_areas")
NAME_KEYS = dict.fromkeys(ENTITY_KINDS, "id") | {"technicians": "label"}  # how annotations name an entry
MODEL = "counted from stars; names by alias"
# What a person wrote under these keys is not kept. Callers of `compute_insights` set the first two.
COUNTED_KEYS = frozenset(
    ("version", "generated_at", "model", "review_count", "date_range", "overall_sentiment", "temporal")
)


def compute_insights(reviews: Reviews, editorial: Object | None = None) -> dict[str, Json]:
    """The insights of `reviews` in the form of InsightsFile, without `version` and `generated_at`.

    `editorial` has the form of EditorialFile and no `name_violations`. The same arguments, the same document.
    """
    by_hand = editorial or {}
    entities = by_hand.get("entities") or {}
    annotations = _annotations(reviews, entities, by_hand.get("per_review") or {})
    scores = [annotation["score"] for annotation in annotations.values()]
    listed = {kind: _entries(kind, entities.get(kind) or (), reviews, annotations) for kind in ENTITY_KINDS}
    document = {
        "model": MODEL,
        "review_count": len(reviews),
        "date_range": {"earliest": _day(reviews[-1:]), "latest": _day(reviews)},
        "overall_sentiment": {"score": mean(scores)} | _shares(reviews),
        "entities": {**entities, **listed},
        "temporal": {"monthly": _monthly(reviews, annotations), "trend": _trend(reviews)},
        "per_review": annotations,
    }
    return document | {key: by_hand[key] for key in by_hand if key not in COUNTED_KEYS | document.keys()}


def refresh_insights(before: Object, reviews: Reviews, editorial: Object, now: datetime) -> Object:
    """`before`, an InsightsFile or empty, if nothing else would be counted today; else its next version."""
    document = compute_insights(reviews, editorial)
    if document == {key: value for key, value in before.items() if key not in ("version", "generated_at")}:
        return before
    generated_at = now.strftime("%Y-%m-%dT%H:%M:%SZ")  # `now` is UTC
    return {"version": (before.get("version") or 0) + 1, "generated_at": generated_at} | document


def _entries(
    kind: str, entries: Iterable[Object], reviews: Reviews, annotations: Annotations
) -> list[dict[str, Json]]:
    """The entries of a kind without their aliases, most mentioned first; those with aliases are counted."""
    listed = []
    for entry in entries:
        known = {key: value for key, value in entry.items() if key != "aliases"}
        if entry.get("aliases") is not None:
            name = entry[NAME_KEYS[kind]]
            mentions = [review for review in reviews if name in annotations[review["id"]][kind]]
            known |= _figures("mention_count", mentions, annotations)
            if known.get("example_review_ids") is None:
                known["example_review_ids"] = _examples(mentions)
        listed.append(known)
    return sorted(listed, key=lambda entry: (-(entry.get("mention_count") or 0), entry["label"], entry["id"]))


MOST_EXAMPLES = 4
SHORTEST_EXAMPLE = 40  # characters


def _examples(mentions: Reviews) -> list[str]:
    """Ids of the newest mentions of some length; if no negative one is among them, the newest is the last."""
    telling = [review for review in mentions if len(review["text"] or "") >= SHORTEST_EXAMPLE]
    chosen = telling[:MOST_EXAMPLES]
    negative = [review for review in mentions if _sentiment(review["rating"]) == "negative"]
    if negative and not any(review in chosen for review in negative):
        chosen = [*chosen[: MOST_EXAMPLES - 1], negative[0]]
    return [review["id"] for review in chosen]


# ---- Annotations: what was found in each review ----


def _annotations(reviews: Reviews, entities: Object, by_hand: Object) -> dict[str, Json]:
    """What is found in each review, by its id, every key there; a value that a person wrote replaces it."""
    counted_by_alias = [
        (kind, entry[NAME_KEYS[kind]], [alias_of(alias) for alias in entry["aliases"]])
        for kind in ENTITY_KINDS
        for entry in entities.get(kind) or ()
        if entry.get("aliases")
    ]
    annotations = {}
    for review in reviews:
        words = folded_words(review["text"] or "") if counted_by_alias else ""
        found: dict[str, Json] = {"score": _score(review["rating"]), "aspects": []}
        found |= {kind: [] for kind in ENTITY_KINDS}
        for kind, name, aliases in counted_by_alias:  # `in` is faster than a search, and mostly False
            if any(alias in words and whole.search(words) for alias, whole in aliases):
                found[kind].append(name)
        written = by_hand.get(review["id"]) or {}
        kept = {key: value for key, value in written.items() if value is not None or key not in found}
        annotations[review["id"]] = found | kept
    return annotations


# ---- Figures: all from the rating and the score of each review ----


def _sentiment(rating: float) -> str:
    """What so many stars say: "positive", "neutral" or "negative"."""
    return "positive" if rating >= 4 else "negative" if rating <= 2 else "neutral"


def _score(rating: float) -> float:
    """Stars as a score from -1 to 1."""
    return round((rating - 3) / 2, 2)


def mean(figures: Sequence[float]) -> float | None:
    """The mean with two decimals, never -0.0; None of nothing."""
    return (round(math.fsum(figures) / len(figures), 2) or 0.0) if figures else None


def _figures(count_key: str, reviews: Reviews, annotations: Annotations) -> dict[str, Json]:
    return {
        count_key: len(reviews),
        "average_rating": mean([review["rating"] for review in reviews]),
        "score": mean([annotations[review["id"]]["score"] for review in reviews]),
    }


def _shares(reviews: Reviews) -> dict[str, float | None]:
    """The share of each sentiment in percent; all are None without reviews."""
    counts, whole = Counter(_sentiment(review["rating"]) for review in reviews), len(reviews)
    kinds = ("positive", "neutral", "negative")
    return {f"{kind}_pct": round(100 * counts[kind] / whole, 1) if whole else None for kind in kinds}


def _day(reviews: Reviews) -> str | None:
    """The calendar day of the first of `reviews`, as written."""
    return reviews[0]["date"][:10] if reviews else None


def _month(review: Object) -> int:
    """The month of a review, as written, counted from January of the year 0."""
    return int(review["date"][:4]) * 12 + int(review["date"][5:7]) - 1


def _monthly(reviews: Reviews, annotations: Annotations) -> list[dict[str, Json]]:
    """The figures of every month from the oldest review to the newest, oldest first."""
    by_month = defaultdict(list)
    for review in reviews:
        by_month[_month(review)].append(review)
    months = range(_month(reviews[-1]), _month(reviews[0]) + 1) if reviews else ()
    return [
        {"month": f"{month // 12:04}-{month % 12 + 1:02}"}
        | _figures("review_count", by_month.get(month, ()), annotations)
        for month in months
    ]


LEAST_FOR_A_TREND = 10  # reviews in each of two years
LEAST_CHANGE = 0.1  # of the score


def _trend(reviews: Reviews) -> str | None:
    """Twelve months against the twelve before: "improving", "declining", "stable" within noise, or None.

    Whole years, so that seasons cancel, up to the month of the newest review. A change counts from two
    standard errors on. Stars alone decide: scores that a person wrote exist for some reviews only.
    """
    years: tuple[list[float], list[float]] = ([], [])
    for review in reviews:
        if (months_ago := _month(reviews[0]) - _month(review)) >= 24:
            break
        years[months_ago // 12].append(_score(review["rating"]))
    if min(map(len, years)) < LEAST_FOR_A_TREND:
        return None
    change = round(fmean(years[0]) - fmean(years[1]), 9)  # 0.6 - 0.5 is less than 0.1
    error = math.sqrt(sum(variance(year) / len(year) for year in years))
    if abs(change) < max(LEAST_CHANGE, round(2 * error, 9)):
        return "stable"
    return "improving" if change > 0 else "declining"


# ---- Judgement: what is wrong with an editorial document, and what no longer fits the reviews ----


def name_violations(editorial: Json) -> Violations:
    """What the schema EditorialFile cannot say; `editorial` has any form.

    Ids, names and aliases that stand for two entries of a kind, and aliases where nothing is counted by them.
    """
    first_use: dict[tuple[str, str, str], int] = {}
    for path, value in _nodes(editorial):
        match path:
            case ("entities", str(kind), int(index), "aliases" | "id" | "label" as key, *_) if (
                kind in ENTITY_KINDS
            ):
                if isinstance(value, str) and key in ("aliases", "id", NAME_KEYS[kind]):
                    first = first_use.setdefault((kind, key, folded_words(value)), index)
                    if first != index:
                        yield path, f"{quoted(value)} already stands for /entities/{kind}/{first}"
            case (*_, "aliases"):
                yield path, f"aliases belong to entries of {', '.join(ENTITY_KINDS)} only"


QUOTATION_MARKS = ' "“”„«»'


def stale_references(reviews: Reviews, editorial: Object) -> Violations:
    """Ids of reviews that are not served, and phrases that no review has; `editorial` is as above."""
    ids = {review["id"] for review in reviews}
    texts = "\n".join(folded_words(review["text"] or "") for review in reviews)
    for path, value in _nodes(editorial):
        match path, value:
            case (("per_review", str(id)), _) | ((*_, "example_review_ids" | "review_ids", int()), str(id)):
                if id not in ids:
                    yield path, f"no review with the id {quoted(id)} is served"
            case (((*_, "top_phrases", int()) | ("pull_quote",)), str(phrase)):
                if folded_words(phrase).strip(QUOTATION_MARKS) not in texts:
                    yield path, f"{quoted(phrase)} stands in no review"


def misspelled_keys(editorial: Object, schemas: dict[str, Json]) -> Violations:
    """Unknown keys of an EditorialFile that are nearly known ones of their place; `schemas`: Contract's."""
    return _misspelled_keys(editorial, [{"$ref": "#/$defs/EditorialFile"}], schemas, ())


def _misspelled_keys(
    value: Json, places: Iterable[Object], schemas: dict[str, Json], path: JsonPath
) -> Violations:
    parts = [part for place in places for part in _parts(place, schemas)]
    inside = defaultdict[str, list[Object]](list)
    for part in parts:
        for key, schema in part.get("properties", {}).items():
            inside[key].append(schema)
    items = [part["items"] for part in parts if "items" in part]
    others = [part["additionalProperties"] for part in parts if "additionalProperties" in part]
    for key, member in members(value):
        if isinstance(key, str) and key not in inside and (near := get_close_matches(key, inside)):
            yield (*path, key), f"an unknown key, which nothing reads; is {quoted(near[0])} meant?"
        known = items if isinstance(key, int) else inside.get(key, others)
        yield from _misspelled_keys(member, known, schemas, (*path, key))


def _parts(schema: Object, schemas: dict[str, Json]) -> Iterator[Object]:
    """A schema and those that it refers to."""
    yield schema
    if "$ref" in schema:
        yield from _parts(resolve(schemas, {"$ref": schema["$ref"]}), schemas)
    for part in schema.get("allOf", ()):
        yield from _parts(part, schemas)


def compare_annotations(
    reviews: Reviews, annotations: Annotations, known: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Digests of annotation and review by id, and the ids of reviews that changed since their annotation.

    `known` are the digests of before.
    """
    annotated, changed = dict[str, str](), list[str]()
    for review in reviews:
        id = review["id"]
        if annotations.get(id):
            by_hand, said = value_digest(annotations[id]), value_digest([review["rating"], review["text"]])
            before = known.get(id, "")
            is_outdated = before.startswith(by_hand) and not before.endswith(said)
            annotated[id] = before if is_outdated else f"{by_hand} {said}"
            changed += [id] if is_outdated else []
    return annotated, changed


def value_digest(value: Json) -> str:
    """What tells whether a value was changed."""
    return hashlib.sha256(encode(value)).hexdigest()[:16]


def _nodes(value: Json, path: JsonPath = ()) -> Iterator[tuple[JsonPath, Json]]:
    """Every value inside `value`, with its path, in document order."""
    for step, member in members(value):
        yield (*path, step), member
        yield from _nodes(member, (*path, step))
