"""Insights: figures counted from the stars, dates and annotations of reviews.

The annotation of a review lists what the review mentions. It has three sources: `per_review` of the owner's
`editorial.json`, a language model (`annotations.json`), and the aliases that the owner lists. The entries of
`editorial.json` are the vocabulary; its other keys are copied. This module is pure: it knows no file and no
clock, and of a review only `id`, `rating`, `date` and `text`. It never searches replies.

Sections: Vocabulary - Document - Entries - Phrases and examples - Annotations - Annotations of a model -
Figures - Validation
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from statistics import fmean, variance

from reviewslib.dataset.contract import Violations, quoted
from reviewslib.dataset.strict_json import Json, JsonPath, Object, encode, members
from reviewslib.dataset.text import alias_of, folded_words

Reviews = Sequence[Object]  # verified and in served form, newest first
PerReview = Mapping[
    str, Object
]  # annotations by review id, as in `per_review` of InsightsFile

# ---- Vocabulary: what reviews can mention ----

ENTITY_KINDS = ("technicians", "services", "problems", "service_areas")
KINDS = ("aspects", *ENTITY_KINDS, "topics")
NAME_KEYS = dict.fromkeys(KINDS, "id") | {
    "technicians": "label"
}  # by which `per_review` names an entry


def vocabulary_of(editorial: Object) -> dict[str, Sequence[Object]]:
    """The entries of every kind in an EditorialFile."""
    entities = editorial.get("entities") or {}
    return {
        kind: (entities if kind in ENTITY_KINDS else editorial).get(kind) or ()
        for kind in KINDS
    }


def entry_keys(editorial: Object) -> list[str]:
    """All entries of an EditorialFile as "kind/id", sorted."""
    vocabulary = vocabulary_of(editorial).items()
    return sorted(
        f"{kind}/{entry['id']}" for kind, entries in vocabulary for entry in entries
    )


# ---- Document ----

MODEL = "counted from star ratings and from names in the texts"
READ_BY = "; reviews read by "  # follows MODEL if a language model read reviews
PROPOSED = "proposed_"  # prefix of keys of an EditorialFile that wait for the owner and are not published
STAMPS = (
    "version",
    "generated_at",
    "counted_digest",
)  # the keys that `refresh_insights` sets
# The values of these keys in an EditorialFile are ignored.
COUNTED_KEYS = (
    *STAMPS,
    "model",
    "review_count",
    "date_range",
    "overall_sentiment",
    "temporal",
)


def compute_insights(
    reviews: Reviews, editorial: Object | None = None, annotations: Object | None = None
) -> dict[str, Json]:
    """The insights of `reviews` in the form of InsightsFile, without STAMPS.

    `editorial` is an EditorialFile without `name_violations`, `annotations` an AnnotationsFile. The same
    arguments give the same document.
    """
    owned = editorial or {}
    current = current_annotations(reviews, annotations or {})
    vocabulary = vocabulary_of(owned)
    by_hand = _by_hand(reviews, owned)
    read = [said for said in current["reviews"].values() if not said.get("failed")]
    covered = {
        kind
        for said in by_hand.values()
        for kind in KINDS
        if said.get(kind) is not None
    }
    covered.update(
        *(current["vocabularies"].get(said["vocabulary"], ()) for said in read)
    )
    per_review = _per_review(reviews, vocabulary, current["reviews"], by_hand)
    counted = {
        kind: _entries(kind, vocabulary[kind], covered, reviews, per_review)
        for kind in KINDS
    }
    models = ", ".join(sorted({said["model"] for said in read}))
    stars = Counter(_sentiment(review["rating"]) for review in reviews)
    document = {
        "model": MODEL + (READ_BY + models if models else ""),
        "review_count": len(reviews),
        "date_range": {"earliest": _day(reviews[-1:]), "latest": _day(reviews)},
        "overall_sentiment": {
            "score": mean([annotation["score"] for annotation in per_review.values()]),
            **{
                f"{sentiment}_pct": _percent(stars[sentiment], len(reviews))
                for sentiment in SENTIMENTS
            },
        },
        "entities": {
            **(owned.get("entities") or {}),
            **{kind: counted[kind] for kind in ENTITY_KINDS},
        },
        "temporal": {
            "monthly": _monthly(reviews, per_review),
            "trend": _trend(reviews),
        },
        "per_review": per_review,
    }
    document |= {
        kind: counted[kind]
        for kind in ("aspects", "topics")
        if owned.get(kind) is not None
    }
    published = [
        key for key in owned if key not in COUNTED_KEYS and not key.startswith(PROPOSED)
    ]
    return document | {key: owned[key] for key in published if key not in document}


def refresh_insights(
    before: Object, document: dict[str, Json], now: datetime
) -> Object:
    """`before` (an InsightsFile or empty) if only STAMPS differ; else its next version. `now` is UTC."""
    if document == {key: value for key, value in before.items() if key not in STAMPS}:
        return before
    stamps = {
        "version": (before.get("version") or 0) + 1,
        "generated_at": f"{now:%Y-%m-%dT%H:%M:%SZ}",
    }
    stamped: dict[str, Json] = stamps | document
    return stamped | {"counted_digest": value_digest(stamped)}


def is_counted(insights: Object) -> bool:
    """Whether an InsightsFile comes from `refresh_insights`."""
    return (insights.get("model") or "").startswith(MODEL)


def is_edited(insights: Object) -> bool:
    """Whether somebody edited an InsightsFile that was counted."""
    content = {key: value for key, value in insights.items() if key != "counted_digest"}
    return insights.get("counted_digest") != value_digest(content)


def language_models(insights: Object) -> str:
    """The names of the language models that read the reviews; empty if none did."""
    return (insights.get("model") or "").partition(MODEL + READ_BY)[2]


# ---- Entries: figures of what reviews mention ----

SENTIMENTS = ("positive", "neutral", "negative")
COUNTS = [f"{sentiment}_count" for sentiment in SENTIMENTS]
FIGURES = ("mention_count", "average_rating", "score", "positive_pct", *COUNTS)
Mentions = Sequence[
    tuple[Object, Json]
]  # pairs of a review and an item of a list of its annotation


def _entries(
    kind: str,
    entries: Sequence[Object],
    covered: Collection[str],
    reviews: Reviews,
    per_review: PerReview,
) -> list[dict[str, Json]]:
    """The entries of a kind without their aliases, the most mentioned first.

    Figures by the owner are kept. `covered` has the kinds and the `entry_keys` that the owner or a model has
    looked for in reviews. An entry without aliases is counted only if it, or its kind, is among them.
    """
    mentions = defaultdict[str, list[tuple[Object, Json]]](
        list
    )  # by name, the newest first
    for review in reviews:
        for item in per_review[review["id"]].get(kind) or ():
            mentions[item["id"] if kind == "aspects" else item].append((review, item))
    published = []
    for entry in entries:
        shown = {key: value for key, value in entry.items() if key != "aliases"}
        is_covered = (
            kind in covered
            or f"{kind}/{entry['id']}" in covered
            or entry.get("aliases") is not None
        )
        if is_covered and all(entry.get(key) is None for key in FIGURES):
            figures, samples = _counted(
                kind, mentions[entry[NAME_KEYS[kind]]], per_review
            )
            shown |= figures | {
                key: value for key, value in samples.items() if entry.get(key) is None
            }
        published.append(shown)
    published.sort(
        key=lambda entry: (
            -(entry.get("mention_count") or 0),
            entry["label"],
            entry["id"],
        )
    )
    return published


def _counted(
    kind: str, mentions: Mentions, per_review: PerReview
) -> tuple[dict[str, Json], dict[str, Json]]:
    """The figures of an entry, and samples for the keys that the owner leaves out."""
    reviews = dict[str, Object]()
    said = defaultdict[str, set[str]](set)
    for review, item in mentions:
        reviews[review["id"]] = review
        said[review["id"]].add(
            item["sentiment"] if kind == "aspects" else _sentiment(review["rating"])
        )
    mentioning = [*reviews.values()]
    sentiments = [*map(_joint, said.values())]
    samples: dict[str, Json] = {"example_review_ids": _examples(mentioning, sentiments)}
    if kind != "aspects":
        figures = _figures("mention_count", mentioning, per_review)
        return {
            key: figures[key]
            for key in figures
            if (kind, key) != ("topics", "average_rating")
        }, samples
    counts = dict(zip(COUNTS, map(sentiments.count, SENTIMENTS), strict=True))
    score = mean(
        [
            {"positive": 1, "neutral": 0, "negative": -1}[sentiment]
            for sentiment in sentiments
        ]
    )
    positive_pct = _percent(counts["positive_count"], len(sentiments))
    figures = {
        "mention_count": len(sentiments),
        **counts,
        "positive_pct": positive_pct,
        "score": score,
    }
    return figures, {"top_phrases": _top_phrases(mentions, sentiments)} | samples


def _joint(sentiments: set[str]) -> str:
    """The sentiment of several mentions in one review; neutral if some are positive and some negative."""
    different = sentiments - {"neutral"}
    return different.pop() if len(different) == 1 else "neutral"


# ---- Phrases and examples ----

MAX_PHRASES = MAX_EXAMPLES = 4
SHORTEST_EXAMPLE = 40  # characters


def phrase_of(mention: Object, review: Object) -> str:
    """The phrase of a mention of an aspect; empty unless the review contains it verbatim."""
    phrase: str = mention.get("phrase") or ""
    return phrase if phrase in (review["text"] or "") else ""


def _top_phrases(mentions: Mentions, sentiments: Sequence[str]) -> list[str]:
    """Phrases of mentions of an aspect, in the spelling and with the sentiment of the newest review.

    `sentiments` has one sentiment for each review. Phrases of the majority come first, then neutral ones, the
    more frequent first. If the minority has a phrase, the last phrase is the minority's.
    """
    is_liked = sentiments.count("positive") >= sentiments.count("negative")
    order = SENTIMENTS if is_liked else SENTIMENTS[::-1]
    same = defaultdict[str, list[Object]](list)
    for review, mention in mentions:
        if phrase := phrase_of(mention, review):
            same[folded_words(phrase)].append(mention)
    ranked = sorted(
        same.values(),
        key=lambda group: (order.index(group[0]["sentiment"]), -len(group)),
    )
    chosen = ranked[:MAX_PHRASES]
    least = [group for group in ranked if group[0]["sentiment"] == order[-1]]
    if least and least[0] not in chosen:
        chosen[-1] = least[0]
    return [group[0]["phrase"] for group in chosen]


def _examples(reviews: Reviews, sentiments: Iterable[str]) -> list[str]:
    """Ids of the newest reviews that are not short, with a negative one if there is any."""
    chosen = [
        review for review in reviews if len(review["text"] or "") >= SHORTEST_EXAMPLE
    ][:MAX_EXAMPLES]
    pairs = zip(reviews, sentiments, strict=True)
    negative = [review for review, sentiment in pairs if sentiment == "negative"]
    if negative and not any(review in chosen for review in negative):
        chosen = [*chosen[: MAX_EXAMPLES - 1], negative[0]]
    return [review["id"] for review in chosen]


# ---- Annotations: of the owner, a model and aliases ----


def _by_hand(reviews: Reviews, editorial: Object) -> dict[str, Object]:
    """The owner's annotations of all reviews, by review id."""
    per_review = editorial.get("per_review") or {}
    return {review["id"]: per_review.get(review["id"]) or {} for review in reviews}


def _per_review(
    reviews: Reviews,
    vocabulary: Mapping[str, Sequence[Object]],
    by_model: PerReview,
    by_hand: PerReview,
) -> dict[str, Json]:
    """Complete annotations of all reviews; values by the owner replace those by a model or by aliases."""
    names = {
        kind: {entry["id"]: entry[NAME_KEYS[kind]] for entry in vocabulary[kind]}
        for kind in KINDS
    }
    aliases = [
        (kind, entry[NAME_KEYS[kind]], *alias_of(alias))
        for kind in ENTITY_KINDS
        for entry in vocabulary[kind]
        for alias in entry.get("aliases") or ()
    ]
    per_review = {}
    for review in reviews:
        said = by_model.get(review["id"], {})
        owned = by_hand[review["id"]]
        annotation: dict[str, Json] = {"score": _score(review["rating"])} | {
            kind: [] for kind in KINDS[:-1]
        }
        for kind in KINDS:
            if said.get(kind) is not None:
                annotation[kind] = _valid_items(kind, said[kind], names[kind], review)
        words = folded_words(review["text"] or "") if aliases else ""
        for (
            kind,
            name,
            alias,
            pattern,
        ) in aliases:  # `in` is faster than the pattern, and rarely true
            if (
                alias in words
                and name not in annotation[kind]
                and pattern.search(words)
            ):
                annotation[kind].append(name)
        annotation |= {
            key: owned[key]
            for key in owned
            if owned[key] is not None or key not in annotation
        }
        per_review[review["id"]] = annotation
    return per_review


def _valid_items(
    kind: str, items: Sequence[Json], names: Mapping[str, str], review: Object
) -> list[Json]:
    """A list of a model's annotation as in `per_review`, without what `left_out` reports."""
    if kind != "aspects":
        return [names[id] for id in dict.fromkeys(items) if id in names]
    return [
        {
            key: mention[key]
            for key in mention
            if key != "phrase" or phrase_of(mention, review)
        }
        for mention in items
        if mention["id"] in names
    ]


# ---- Annotations of a model: which are current, and which reviews have none ----


def text_digest(review: Object) -> str:
    """The digest that an annotation keeps of the text of its review."""
    return value_digest(review["text"])


def current_annotations(reviews: Reviews, annotations: Object) -> dict[str, Json]:
    """An AnnotationsFile with those annotations whose review is served with the text that was annotated.

    Only the vocabularies that these annotations name are kept.
    """
    by_id = annotations.get("reviews", {})
    vocabularies = annotations.get("vocabularies", {})
    digests = {
        review["id"]: text_digest(review) for review in reviews if review["id"] in by_id
    }
    current = {
        id: by_id[id] for id in digests if by_id[id]["text_digest"] == digests[id]
    }
    named = {said["vocabulary"] for said in current.values()}
    used = {digest: vocabularies[digest] for digest in vocabularies if digest in named}
    return {**annotations, "vocabularies": used, "reviews": current}


def extended_annotations(
    annotations: Object,
    batch: Reviews,
    lists: PerReview,
    entries: Sequence[str],
    model: str,
) -> dict[str, Json]:
    """An AnnotationsFile with what a model said of a batch of reviews: lists by id, or why it `failed`.

    `entries` are the `entry_keys` that the model was asked about. A failed annotation keeps the lists of the
    previous one.
    """
    previous = current_annotations(batch, annotations)["reviews"]
    source = {"vocabulary": value_digest(entries), "model": model}
    read = {**annotations.get("reviews", {})}
    for review in batch:
        said = lists[review["id"]]
        kept = previous.get(review["id"], {}) if "failed" in said else {}
        read[review["id"]] = {
            **kept,
            "text_digest": text_digest(review),
            **source,
            **said,
        }
    vocabularies = {
        **annotations.get("vocabularies", {}),
        source["vocabulary"]: entries,
    }
    return {**annotations, "vocabularies": vocabularies, "reviews": read}


def unread_reviews(
    reviews: Reviews, editorial: Object, annotations: Object, *, again: bool = False
) -> list[Object]:
    """The reviews with words whose annotation does not cover all entries of the vocabulary.

    Reviews for which the owner wrote all lists are left out. Failed annotations count as complete unless
    `again` is true.
    """
    by_hand = _by_hand(reviews, editorial)
    current = current_annotations(reviews, annotations)
    wanted = set(entry_keys(editorial))
    complete = {
        digest
        for digest, keys in current["vocabularies"].items()
        if wanted.issubset(keys)
    }
    kinds = {key.partition("/")[0] for key in wanted}

    def is_unread(review: Object) -> bool:
        said = current["reviews"].get(review["id"])
        owned = by_hand[review["id"]]
        is_read = (
            said
            and said["vocabulary"] in complete
            and not (again and said.get("failed"))
        )
        return not is_read and any(owned.get(kind) is None for kind in kinds)

    return [
        review
        for review in reviews
        if (review["text"] or "").strip() and is_unread(review)
    ]


def left_out(reviews: Reviews, editorial: Object, annotations: Object) -> Iterator[str]:
    """Sentences about names without an entry, and about phrases that their review does not contain."""
    by_hand = _by_hand(reviews, editorial)
    by_model = current_annotations(reviews, annotations)["reviews"]
    unknown = Counter[str]()
    misquoted = list[str]()
    for per_review, name_keys in (
        (by_hand, NAME_KEYS),
        (by_model, dict.fromkeys(KINDS, "id")),
    ):
        for kind, entries in vocabulary_of(editorial).items():
            names = {entry[name_keys[kind]] for entry in entries}
            for review in reviews:
                mentions = per_review.get(review["id"], {}).get(kind) or ()
                mentioned = {
                    mention["id"] if kind == "aspects" else mention
                    for mention in mentions
                }
                unknown.update(f"{kind}: {quoted(name)}" for name in mentioned - names)
                quoting = [
                    mention
                    for mention in mentions
                    if kind == "aspects" and mention.get("phrase")
                ]
                misquoted += [
                    mention["phrase"]
                    for mention in quoting
                    if not phrase_of(mention, review)
                ]
    for name, count in sorted(unknown.items()):
        yield f"{name} has no entry and is not counted, in {count} review(s)"
    if misquoted:
        yield f"phrases that are not in their review: {len(misquoted)}, such as {quoted(misquoted[0])}"


# ---- Figures: from ratings and scores ----


def _sentiment(rating: float) -> str:
    """The sentiment of a star rating."""
    return "positive" if rating >= 4 else "negative" if rating <= 2 else "neutral"


def _score(rating: float) -> float:
    """A star rating as a score from -1 to 1."""
    return round((rating - 3) / 2, 2)


def mean(figures: Sequence[float]) -> float | None:
    """The mean with two decimals, never -0.0; None without figures."""
    return (round(math.fsum(figures) / len(figures), 2) or 0.0) if figures else None


def _figures(
    count_key: str, reviews: Reviews, per_review: PerReview
) -> dict[str, Json]:
    return {
        count_key: len(reviews),
        "average_rating": mean([review["rating"] for review in reviews]),
        "score": mean([per_review[review["id"]]["score"] for review in reviews]),
    }


def _percent(part: int, total: int) -> float | None:
    return round(100 * part / total, 1) if total else None


def _day(reviews: Reviews) -> str | None:
    """The calendar day of the first of `reviews`, as written."""
    return reviews[0]["date"][:10] if reviews else None


def _month(review: Object) -> int:
    """The month of a review, as written, counted from January of the year 0."""
    return int(review["date"][:4]) * 12 + int(review["date"][5:7]) - 1


def _monthly(reviews: Reviews, per_review: PerReview) -> list[dict[str, Json]]:
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


MIN_TREND_REVIEWS = 10  # reviews in each of two years
MIN_CHANGE = 0.1  # of the score


def _trend(reviews: Reviews) -> str | None:
    """The trend of the last twelve months against the twelve before; None with too few reviews.

    The months end with that of the newest review. Whole years cancel out the seasons. A change below two
    standard errors is "stable". Only stars count, since scores by the owner exist for some reviews only.
    """
    years: tuple[list[float], list[float]] = ([], [])
    for review in reviews:
        if (months_ago := _month(reviews[0]) - _month(review)) >= 24:
            break
        years[months_ago // 12].append(_score(review["rating"]))
    if min(map(len, years)) < MIN_TREND_REVIEWS:
        return None
    change = round(
        fmean(years[0]) - fmean(years[1]), 9
    )  # unrounded, 0.6 - 0.5 is less than MIN_CHANGE
    error = math.sqrt(sum(variance(year) / len(year) for year in years))
    if abs(change) < max(MIN_CHANGE, round(2 * error, 9)):
        return "stable"
    return "improving" if change > 0 else "declining"


# ---- Validation: errors in an editorial document, and references that are no longer valid ----


def name_violations(editorial: Json) -> Violations:
    """Names and ids that two entries of a kind share, and misplaced aliases; `editorial` may be any JSON."""
    first_use: dict[tuple[str, str, str], int] = {}
    for path, value in _nodes(editorial):
        match path:
            case (
                "entities",
                str(kind),
                int(index),
                "aliases" | "id" | "label" as key,
                *_,
            ) if kind in ENTITY_KINDS:
                if isinstance(value, str) and key in ("aliases", "id", NAME_KEYS[kind]):
                    first = first_use.setdefault(
                        (kind, key, folded_words(value)), index
                    )
                    if first != index:
                        yield (
                            path,
                            f"{quoted(value)} already belongs to /entities/{kind}/{first}",
                        )
            case (*_, "aliases"):
                yield (
                    path,
                    f"aliases belong to entries of {', '.join(ENTITY_KINDS)} only",
                )


QUOTATION_MARKS = ' "“”„«»'


def stale_references(reviews: Reviews, editorial: Object) -> Violations:
    """Ids of reviews that are not served, and phrases that no review contains, in an EditorialFile."""
    ids = {review["id"] for review in reviews}
    texts = "\n".join(folded_words(review["text"] or "") for review in reviews)
    for path, value in _nodes(editorial):
        match path, value:
            case (
                (("per_review", str(id)), _)
                | (
                    (
                        *_,
                        "example_review_ids" | "review_ids" | "summary_review_ids",
                        int(),
                    ),
                    str(id),
                )
                | (("proposed_summary_review_ids", int()), str(id))
            ):
                if id not in ids:
                    yield path, f"no review with the id {quoted(id)} is served"
            case (
                ((*_, "top_phrases", int()) | ("pull_quote" | "proposed_pull_quote",)),
                str(phrase),
            ):
                if folded_words(phrase).strip(QUOTATION_MARKS) not in texts:
                    yield path, f"{quoted(phrase)} is in no review"


def value_digest(value: Json) -> str:
    """A short digest of a JSON value."""
    return hashlib.sha256(encode(value)).hexdigest()[:16]


def _nodes(value: Json, path: JsonPath = ()) -> Iterator[tuple[JsonPath, Json]]:
    """All values inside `value` with their paths, in document order."""
    for step, member in members(value):
        yield (*path, step), member
        yield from _nodes(member, (*path, step))
