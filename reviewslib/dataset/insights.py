"""Insights: figures counted from stars, dates, and what is said of each review.

What is said of a review has three sources: `per_review` of the owner's `editorial.json`, the annotations
of a language model (`annotations.json`), and the aliases that the owner lists. The entries of
`editorial.json` are the vocabulary; its other keys are kept as they are. This module is pure: it knows no
file and no clock, and of a review only `id`, `rating`, `date` and `text`. It never searches replies.

Sections: Vocabulary - Document - Entries - Phrases and examples - Per review - Annotations - Figures -
Judgement
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from statistics import fmean, variance

from reviewslib.dataset.contract import Violations, quoted, resolve
from reviewslib.dataset.strict_json import Json, JsonPath, Object, encode, members
from reviewslib.dataset.text import alias_of, folded_words

Reviews = Sequence[Object]  # verified and in served form, newest first
Said = Mapping[str, Object]  # what is said of each review, by its id, as `per_review` of InsightsFile

# ---- Vocabulary: what reviews can mention ----

ENTITY_KINDS = ("technicians", "services", "problems", "service_areas")
KINDS = ("aspects", *ENTITY_KINDS, "topics")
NAME_KEYS = dict.fromkeys(KINDS, "id") | {"technicians": "label"}  # how `per_review` names an entry


def vocabulary_of(editorial: Object) -> dict[str, Sequence[Object]]:
    """The entries of every kind in an EditorialFile."""
    entities = editorial.get("entities") or {}
    return {kind: (entities if kind in ENTITY_KINDS else editorial).get(kind) or () for kind in KINDS}


def entry_keys(editorial: Object) -> list[str]:
    """Every entry of an EditorialFile as "kind/id", sorted."""
    vocabulary = vocabulary_of(editorial).items()
    return sorted(f"{kind}/{entry['id']}" for kind, entries in vocabulary for entry in entries)


# ---- Document ----

MODEL = "counted from stars; names by alias"
READ_BY = "; reviews read by "  # follows MODEL where a language model read reviews
PROPOSED = "proposed_"  # begins the keys of an EditorialFile that wait for the owner and are never published
STAMPS = ("version", "generated_at", "counted_digest")  # set by `refresh_insights`
# What a person wrote under these keys is not kept.
COUNTED_KEYS = (*STAMPS, "model", "review_count", "date_range", "overall_sentiment", "temporal")


def compute_insights(
    reviews: Reviews, editorial: Object | None = None, annotations: Object | None = None
) -> dict[str, Json]:
    """The insights of `reviews` in the form of InsightsFile, without STAMPS.

    `editorial` has the form of EditorialFile and no `name_violations`, `annotations` that of AnnotationsFile.
    The same arguments give the same document.
    """
    by_hand, by_model = editorial or {}, current_annotations(reviews, annotations or {})
    vocabulary, written = vocabulary_of(by_hand), _written(reviews, by_hand)
    per_review = _per_review(reviews, vocabulary, by_model, written)
    covered = {kind for said in written.values() for kind in KINDS if said.get(kind) is not None}
    covered.update(*_used_vocabularies(annotations or {}, by_model).values())
    counted = {kind: _entries(kind, vocabulary[kind], covered, reviews, per_review) for kind in KINDS}
    models = sorted({annotation["model"] for annotation in by_model.values()})
    score = mean([said["score"] for said in per_review.values()])
    document = {
        "model": MODEL + (READ_BY + ", ".join(models) if models else ""),
        "review_count": len(reviews),
        "date_range": {"earliest": _day(reviews[-1:]), "latest": _day(reviews)},
        "overall_sentiment": {"score": score} | _shares(reviews),
        "entities": {**(by_hand.get("entities") or {}), **{kind: counted[kind] for kind in ENTITY_KINDS}},
        "temporal": {"monthly": _monthly(reviews, per_review), "trend": _trend(reviews)},
        "per_review": per_review,
    }
    document |= {kind: counted[kind] for kind in ("aspects", "topics") if by_hand.get(kind) is not None}
    own_keys = [key for key in by_hand if key not in COUNTED_KEYS and not key.startswith(PROPOSED)]
    return document | {key: by_hand[key] for key in own_keys if key not in document}


def refresh_insights(before: Object, document: dict[str, Json], now: datetime) -> Object:
    """`before`, an InsightsFile or empty, if only STAMPS differ; else the next version with `document`."""
    if document == {key: value for key, value in before.items() if key not in STAMPS}:
        return before
    generated_at = now.strftime("%Y-%m-%dT%H:%M:%SZ")  # `now` is UTC
    version = (before.get("version") or 0) + 1
    newer: dict[str, Json] = {"version": version, "generated_at": generated_at} | document
    return newer | {"counted_digest": value_digest(newer)}


def is_counted(insights: Object) -> bool:
    """Whether an InsightsFile comes from `refresh_insights`."""
    return (insights.get("model") or "").startswith(MODEL)


def is_edited(insights: Object) -> bool:
    """Whether an InsightsFile that was counted has been changed since."""
    content = {key: value for key, value in insights.items() if key != "counted_digest"}
    return insights.get("counted_digest") != value_digest(content)


def language_models(insights: Object) -> str:
    """The names of the language models that read the reviews; empty if none did."""
    return (insights.get("model") or "").partition(MODEL + READ_BY)[2]


# ---- Entries: the figures of what reviews mention ----

SENTIMENTS = ("positive", "neutral", "negative")
COUNTS = [f"{sentiment}_count" for sentiment in SENTIMENTS]
FIGURES = ("mention_count", "average_rating", "score", "positive_pct", *COUNTS)
Counted = tuple[dict[str, Json], dict[str, Json]]  # figures, and what to show where the owner says nothing


def _entries(
    kind: str, entries: Sequence[Object], covered: Collection[str], reviews: Reviews, per_review: Said
) -> list[dict[str, Json]]:
    """The entries of a kind without their aliases, the most mentioned first.

    An entry with figures of its own keeps them. One without aliases is counted if it is among `covered`,
    which holds kinds and `entry_keys`: otherwise nobody has looked for it.
    """
    count = _count_aspect if kind == "aspects" else _count_mentions
    listed = []
    for entry in entries:
        shown = {key: value for key, value in entry.items() if key != "aliases"}
        is_covered = kind in covered or f"{kind}/{entry['id']}" in covered or entry.get("aliases") is not None
        if is_covered and all(entry.get(key) is None for key in FIGURES):
            figures, samples = count(kind, entry[NAME_KEYS[kind]], reviews, per_review)
            shown |= figures | {key: value for key, value in samples.items() if entry.get(key) is None}
        listed.append(shown)
    return sorted(listed, key=lambda entry: (-(entry.get("mention_count") or 0), entry["label"], entry["id"]))


def _count_mentions(kind: str, name: str, reviews: Reviews, per_review: Said) -> Counted:
    """The figures and examples of a topic or an entity."""
    mentions = [review for review in reviews if name in (per_review[review["id"]].get(kind) or ())]
    figures = _figures("mention_count", mentions, per_review)
    if kind == "topics":
        del figures["average_rating"]
    negative = [review for review in mentions if _sentiment(review["rating"]) == "negative"]
    return figures, {"example_review_ids": _examples(mentions, negative)}


def _count_aspect(kind: str, id: str, reviews: Reviews, per_review: Said) -> Counted:
    """The figures, phrases and examples of an aspect."""
    mentioned, by_sentiment = list[Object](), {sentiment: list[Object]() for sentiment in SENTIMENTS}
    phrases = list[tuple[str, str]]()
    for review in reviews:
        mentions = [mention for mention in per_review[review["id"]][kind] if mention["id"] == id]
        if mentions:
            mentioned.append(review)
            by_sentiment[_joint(mention["sentiment"] for mention in mentions)].append(review)
        said = [(phrase_of(mention, review), mention["sentiment"]) for mention in mentions]
        phrases += [pair for pair in said if pair[0]]
    total, counts = len(mentioned), [len(by_sentiment[sentiment]) for sentiment in SENTIMENTS]
    figures = {"mention_count": total} | dict(zip(COUNTS, counts, strict=True))
    positive, _, negative = counts
    shares = {
        "positive_pct": round(100 * positive / total, 1) if total else None,
        "score": round((positive - negative) / total, 2) if total else None,
    }
    order = SENTIMENTS if positive >= negative else SENTIMENTS[::-1]
    samples = {"top_phrases": _top_phrases(phrases, order)}
    return figures | shares, samples | {"example_review_ids": _examples(mentioned, by_sentiment["negative"])}


def _joint(sentiments: Iterable[str]) -> str:
    """The sentiment of a review that mentions an aspect with these; praise with fault is neutral."""
    telling = set(sentiments) - {"neutral"}
    return telling.pop() if len(telling) == 1 else "neutral"


# ---- Phrases and examples ----

MOST_PHRASES = MOST_EXAMPLES = 4
SHORTEST_EXAMPLE = 40  # characters


def phrase_of(mention: Object, review: Object) -> str:
    """The phrase of a mention of an aspect; empty unless it stands in the review, letter by letter."""
    phrase: str = mention.get("phrase") or ""
    return phrase if phrase in (review["text"] or "") else ""


def _top_phrases(phrases: Sequence[tuple[str, str]], order: Sequence[str]) -> list[str]:
    """Phrases as the newest review writes them; `phrases` are pairs of phrase and sentiment, newest first.

    `order` begins with the sentiment of the majority and ends with that of the minority. Phrases come in this
    order, frequent ones first; if the minority has a phrase, the last one is the minority's.
    """
    times = Counter(folded_words(phrase) for phrase, _ in phrases)
    newest = {folded_words(phrase): (phrase, sentiment) for phrase, sentiment in reversed(phrases)}
    ranked = sorted(
        (newest[folded] for folded in times),
        key=lambda pair: (order.index(pair[1]), -times[folded_words(pair[0])]),
    )
    chosen = ranked[:MOST_PHRASES]
    minority = [pair for pair in ranked if pair[1] == order[-1]]
    if minority and minority[0] not in chosen:
        chosen[-1] = minority[0]
    return [phrase for phrase, _ in chosen]


def _examples(mentions: Reviews, negative: Reviews) -> list[str]:
    """Ids of the newest mentions of some length, one of `negative`, if there is any, among them."""
    chosen = [review for review in mentions if len(review["text"] or "") >= SHORTEST_EXAMPLE][:MOST_EXAMPLES]
    if negative and not any(review in chosen for review in negative):
        chosen = [*chosen[: MOST_EXAMPLES - 1], negative[0]]
    return [review["id"] for review in chosen]


# ---- Per review: what is said of each ----


def _written(reviews: Reviews, editorial: Object) -> dict[str, Object]:
    """What a person wrote of each review, by its id."""
    per_review = editorial.get("per_review") or {}
    return {review["id"]: per_review.get(review["id"]) or {} for review in reviews}


def _per_review(
    reviews: Reviews, vocabulary: Mapping[str, Sequence[Object]], by_model: Said, written: Said
) -> dict[str, Json]:
    """What is said of each review, by its id, every key there; a value that a person wrote replaces it."""
    names = {kind: {entry["id"]: entry[NAME_KEYS[kind]] for entry in vocabulary[kind]} for kind in KINDS}
    aliases_of_names = [
        (kind, entry[NAME_KEYS[kind]], [alias_of(alias) for alias in entry["aliases"]])
        for kind in ENTITY_KINDS
        for entry in vocabulary[kind]
        if entry.get("aliases")
    ]
    per_review = {}
    for review in reviews:
        said: dict[str, Json] = {"score": _score(review["rating"]), "aspects": []}
        said |= {kind: [] for kind in ENTITY_KINDS} | _named(review, by_model.get(review["id"], {}), names)
        words = folded_words(review["text"] or "") if aliases_of_names else ""
        for kind, name, aliases in aliases_of_names:  # `in` is faster than a search, and mostly False
            if any(alias in words and whole.search(words) for alias, whole in aliases):
                said[kind] += [name] if name not in said[kind] else []
        by_hand = written[review["id"]]
        said |= {key: by_hand[key] for key in by_hand if by_hand[key] is not None or key not in said}
        per_review[review["id"]] = said
    return per_review


def _named(review: Object, annotation: Object, names: Mapping[str, Mapping[str, str]]) -> dict[str, Json]:
    """The lists of an annotation as `per_review` has them; what `left_out` names is not there."""
    said: dict[str, Json] = {}
    for kind in (kind for kind in KINDS if annotation.get(kind) is not None):
        if kind != "aspects":
            said[kind] = [names[kind][id] for id in dict.fromkeys(annotation[kind]) if id in names[kind]]
            continue
        said[kind] = [
            {"id": mention["id"], "sentiment": mention["sentiment"]}
            | ({"phrase": mention["phrase"]} if phrase_of(mention, review) else {})
            for mention in annotation[kind]
            if mention["id"] in names[kind]
        ]
    return said


# ---- Annotations of a language model: which hold, what is missing ----


def text_digest(review: Object) -> str:
    """What tells whether an annotation is of the present text of a review."""
    return value_digest(review["text"])


def current_annotations(reviews: Reviews, annotations: Object) -> dict[str, Object]:
    """The annotations of reviews that are served with the text that was annotated, by id."""
    given = annotations.get("reviews") or {}
    served = [review for review in reviews if review["id"] in given]
    digests = {review["id"]: text_digest(review) for review in served}
    return {id: given[id] for id in digests if given[id]["text_digest"] == digests[id]}


def _used_vocabularies(annotations: Object, current: Said) -> dict[str, Sequence[str]]:
    """The `entry_keys` for which a model was asked, by the digests in `current` annotations."""
    vocabularies = annotations.get("vocabularies") or {}
    used = {annotation["vocabulary"] for annotation in current.values()}
    return {digest: vocabularies[digest] for digest in vocabularies if digest in used}


def merged_annotations(reviews: Reviews, annotations: Object, new: Object) -> dict[str, Json]:
    """An AnnotationsFile with those of `new`; what is not current goes, so that no erased text stays.

    A review that failed keeps what was said of it before.
    """
    old, later = current_annotations(reviews, annotations), current_annotations(reviews, new)
    kept = {id: old.get(id, {}) if later[id].get("failed") else {} for id in later}
    current = {**old, **{id: {**kept[id], **later[id]} for id in later}}
    vocabularies = [document.get("vocabularies") or {} for document in (annotations, new)]
    merged = {"vocabularies": vocabularies[0] | vocabularies[1]}
    return {**annotations, "vocabularies": _used_vocabularies(merged, current), "reviews": current}


def unread_reviews(
    reviews: Reviews, editorial: Object, annotations: Object, *, again: bool = False
) -> list[Object]:
    """The reviews with words that no model has read with every entry of the vocabulary in mind.

    Reviews of which a person wrote all lists are not among them; those that failed are, if `again`.
    """
    wanted, written = set(entry_keys(editorial)), _written(reviews, editorial)
    kinds = {key.partition("/")[0] for key in wanted}
    current = current_annotations(reviews, annotations)
    vocabularies = _used_vocabularies(annotations, current).items()
    complete = {digest for digest, keys in vocabularies if wanted.issubset(keys)}
    read = {id for id in current if current[id]["vocabulary"] in complete}
    if again:
        read -= {id for id in current if current[id].get("failed")}
    read |= {id for id in written if all(written[id].get(kind) is not None for kind in kinds)}
    return [review for review in reviews if (review["text"] or "").strip() and review["id"] not in read]


def left_out(reviews: Reviews, editorial: Object, annotations: Object) -> Iterator[str]:
    """Names that no entry has and phrases that do not stand in their review, a sentence each."""
    by_model, written = current_annotations(reviews, annotations), _written(reviews, editorial)
    unknown, misquoted = Counter[str](), Counter[str]()
    for said_of, name_keys in ((written, NAME_KEYS), (by_model, dict.fromkeys(KINDS, "id"))):
        for kind, entries in vocabulary_of(editorial).items():
            names = {entry[name_keys[kind]] for entry in entries}
            for review in reviews:
                mentions = said_of.get(review["id"], {}).get(kind) or ()
                mentioned = {mention["id"] if kind == "aspects" else mention for mention in mentions}
                unknown.update(f"{kind}: {quoted(name)}" for name in mentioned - names)
                with_phrase = [each for each in mentions if kind == "aspects" and each.get("phrase")]
                misquoted.update({each["phrase"] for each in with_phrase if not phrase_of(each, review)})
    for name, count in sorted(unknown.items()):
        yield f"{name} has no entry and is not counted, in {count} review(s)"
    for phrase, count in sorted(misquoted.items()):
        yield f"{quoted(phrase)} does not stand in its review and is not shown, in {count} review(s)"


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


def _figures(count_key: str, reviews: Reviews, per_review: Said) -> dict[str, Json]:
    return {
        count_key: len(reviews),
        "average_rating": mean([review["rating"] for review in reviews]),
        "score": mean([per_review[review["id"]]["score"] for review in reviews]),
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


def _monthly(reviews: Reviews, per_review: Said) -> list[dict[str, Json]]:
    """The figures of every month from the oldest review to the newest, oldest first."""
    by_month = defaultdict(list)
    for review in reviews:
        by_month[_month(review)].append(review)
    months = range(_month(reviews[-1]), _month(reviews[0]) + 1) if reviews else ()
    return [
        {"month": f"{month // 12:04}-{month % 12 + 1:02}"}
        | _figures("review_count", by_month.get(month, ()), per_review)
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
            case (
                (("per_review", str(id)), _)
                | ((*_, "example_review_ids" | "review_ids" | "summary_review_ids", int()), str(id))
                | (("proposed_summary_review_ids", int()), str(id))
            ):
                if id not in ids:
                    yield path, f"no review with the id {quoted(id)} is served"
            case (((*_, "top_phrases", int()) | ("pull_quote" | "proposed_pull_quote",)), str(phrase)):
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
    reviews: Reviews, per_review: Said, known: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Digests of annotation and review by id, and the ids of reviews that changed since their annotation.

    `known` are the digests of before.
    """
    annotated, changed = dict[str, str](), list[str]()
    for review in reviews:
        id = review["id"]
        if per_review.get(id):
            by_hand, said = value_digest(per_review[id]), value_digest([review["rating"], review["text"]])
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
