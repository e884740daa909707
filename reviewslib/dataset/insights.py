"""Insights: figures counted from the stars, dates and annotations of reviews.

The entries of `editorial.json` are the vocabulary; its other keys are copied. This
module is pure: it knows no file and no clock, and of a review only `id`, `rating`,
`date`, `text` and `owner_reply`.

Sections: the document - what was looked for - versions - entries - aspects - phrases
and examples.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from reviewslib.dataset.figures import (
    ReviewObjects,
    activity_of,
    by_month,
    first_day,
    joint_sentiment,
    mean,
    month_text,
    percent,
    sentiment_of,
    trend_of,
)
from reviewslib.dataset.mentions import (
    PerReview,
    by_hand,
    current_annotations,
    has_words,
    joined_annotations,
    phrase_of,
    value_digest,
)
from reviewslib.dataset.moments import utc_text
from reviewslib.dataset.strict_json import Json, Object
from reviewslib.dataset.text import folded_words
from reviewslib.dataset.vocabulary import (
    ENTITY_KINDS,
    KINDS,
    NAME_KEYS,
    PROPOSED,
    SENTIMENTS,
    aliases_of,
    vocabulary_of,
)

# ---- The document ----

# How counted insights were made, the member `model`: these three, in this order, as far
# as they are so.
COUNTED = "counted from star ratings"
FROM_NAMES = " and from names in the texts"
READ_BY = "; reviews read by "
# Keys that `refresh_insights` sets.
STAMPS = ("version", "generated_at", "counted_digest")
# The values of these keys in an EditorialFile are ignored.
COUNTED_KEYS = (
    *STAMPS,
    "model",
    "review_count",
    "worded_count",
    "read_count",
    "date_range",
    "overall_sentiment",
    "temporal",
)


# By review id: the kinds that the owner, and the `entry_keys` that a model, looked for.
# Aliases are looked for in every text, so they are not among them.
LookedFor = Mapping[str, frozenset[str]]


def compute_insights(
    reviews: ReviewObjects,
    editorial: Object | None = None,
    annotations: Object | None = None,
) -> dict[str, Json]:
    """The insights of `reviews` in the form of InsightsFile, without STAMPS.

    `editorial` is an EditorialFile without `name_violations`, `annotations` an
    AnnotationsFile. The same arguments give the same document.
    """
    owned = editorial or {}
    material = _material(reviews, owned, annotations or {})
    entries = {kind: _entries(kind, material) for kind in KINDS}
    document = {
        "model": _model_text(material),
        **_review_counts(material),
        "date_range": _date_range(reviews),
        "overall_sentiment": _overall_sentiment(reviews, material.per_review),
        "entities": _entities(owned, entries),
        "temporal": _temporal(reviews, material.per_review),
        "per_review": material.per_review,
    }
    for kind in ("aspects", "topics"):
        if owned.get(kind) is not None:
            document[kind] = entries[kind]
    return document | _kept(owned, document)


class _Material(NamedTuple):
    """What insights are counted from."""

    reviews: ReviewObjects
    vocabulary: Mapping[str, Sequence[Object]]  # entries by kind
    readings: Mapping[str, Object]  # by review id: usable answers of a model
    looked_for: LookedFor
    per_review: dict[str, Json]


def _material(reviews: ReviewObjects, owned: Object, annotations: Object) -> _Material:
    current = current_annotations(reviews, annotations)
    vocabulary = vocabulary_of(owned)
    by_owner = by_hand(reviews, owned)
    readings = {
        id: said for id, said in current["reviews"].items() if not said.get("failed")
    }
    return _Material(
        reviews=reviews,
        vocabulary=vocabulary,
        readings=readings,
        looked_for=_looked_for(by_owner, readings, current["vocabularies"]),
        per_review=joined_annotations(
            reviews, vocabulary, current["reviews"], by_owner
        ),
    )


def _model_text(material: _Material) -> str:
    """How the insights were made."""
    text = COUNTED
    entities = chain.from_iterable(material.vocabulary[kind] for kind in ENTITY_KINDS)
    if any(map(aliases_of, entities)):
        text += FROM_NAMES
    models = {said["model"] for said in material.readings.values()}
    if models:
        text += READ_BY + ", ".join(sorted(models))
    return text


def _date_range(reviews: ReviewObjects) -> dict[str, Json]:
    return {"earliest": first_day(reviews[-1:]), "latest": first_day(reviews)}


def _entities(
    owned: Object, entries: Mapping[str, Sequence[Object]]
) -> dict[str, Json]:
    """The counted entities, beside kinds of the owner that nobody counts."""
    entities = dict(owned.get("entities") or {})
    for kind in ENTITY_KINDS:
        entities[kind] = entries[kind]
    return entities


def _kept(owned: Object, document: Object) -> dict[str, Json]:
    """What of the owner's is published as it is written."""
    kept = {}
    for key, value in owned.items():
        is_published = key not in COUNTED_KEYS and not key.startswith(PROPOSED)
        if is_published and key not in document:
            kept[key] = value
    return kept


def _review_counts(material: _Material) -> dict[str, Json]:
    """How many reviews there are, have words, and were read."""
    worded = [review for review in material.reviews if has_words(review)]
    looked_for = [material.looked_for[review["id"]] for review in worded]
    keys = _sought_keys(material)
    return {
        "review_count": len(material.reviews),
        "worded_count": len(worded),
        "read_count": _read_count(looked_for, keys) if keys else None,
    }


def _overall_sentiment(
    reviews: ReviewObjects, per_review: PerReview
) -> dict[str, Json]:
    stars = Counter(sentiment_of(review["rating"]) for review in reviews)
    overall: dict[str, Json] = {
        "score": mean([annotation["score"] for annotation in per_review.values()])
    }
    for sentiment in SENTIMENTS:
        overall[f"{sentiment}_pct"] = percent(stars[sentiment], len(reviews))
    return overall


def _temporal(reviews: ReviewObjects, per_review: PerReview) -> dict[str, Json]:
    """The figures of every month, oldest first, the trend, and what came lately."""
    monthly = [
        {"month": month_text(month), **_figures("review_count", group, per_review)}
        for month, group in by_month(reviews).items()
    ]
    return {"monthly": monthly, "trend": trend_of(reviews), **activity_of(reviews)}


def _figures(
    count_key: str, reviews: ReviewObjects, per_review: PerReview
) -> dict[str, Json]:
    return {
        count_key: len(reviews),
        "average_rating": mean([review["rating"] for review in reviews]),
        "score": mean([per_review[review["id"]]["score"] for review in reviews]),
    }


# ---- What was looked for ----


def _looked_for(
    by_owner: PerReview, readings: PerReview, vocabularies: Mapping[str, Sequence[str]]
) -> LookedFor:
    # One set for all reviews that were read with the same vocabulary.
    keys = {digest: frozenset(listed) for digest, listed in vocabularies.items()}
    nothing = frozenset[str]()
    looked_for = {}
    for id, lists in by_owner.items():
        kinds = frozenset(kind for kind in KINDS if lists.get(kind) is not None)
        said = readings.get(id)
        by_model = keys.get(said["vocabulary"], nothing) if said else nothing
        looked_for[id] = by_model | kinds if kinds else by_model
    return looked_for


def _anywhere(looked_for: LookedFor) -> frozenset[str]:
    """What was looked for in at least one review."""
    return frozenset[str]().union(*looked_for.values())


def _is_among(key: str, looked_for: Collection[str]) -> bool:
    """Whether the entry with this key, or its whole kind, was looked for."""
    return key in looked_for or key.partition("/")[0] in looked_for


def _sought_keys(material: _Material) -> list[str]:
    """The entries as "kind/id" that are counted by reading.

    Stars, dates and aliases need no reader.
    """
    covered = _anywhere(material.looked_for)
    keys = []
    for kind, entries in material.vocabulary.items():
        for entry in entries:
            key = f"{kind}/{entry['id']}"
            if not entry.get("aliases") and _is_among(key, covered):
                keys.append(key)
    return keys


def _read_count(looked_for: Iterable[frozenset[str]], keys: Sequence[str]) -> int:
    """In how many reviews all `keys` were looked for."""
    # There are few different sets, and each is judged once.
    counts = Counter(looked_for)
    read = 0
    for found, count in counts.items():
        if all(_is_among(key, found) for key in keys):
            read += count
    return read


def unread(insights: Object) -> dict[str, Json]:
    """`read_count` and `worded_count` of an InsightsFile while something is unread.

    Empty where all reviews with words were read, or the insights do not say.
    """
    read = insights.get("read_count")
    worded = insights.get("worded_count")
    if read is None or worded is None or read >= worded:
        return {}
    return {"read_count": read, "worded_count": worded}


def uncounted_keys(insights: Object) -> list[str]:
    """Of counted insights, the entries as "kind/id" that nothing counts."""
    keys = []
    for kind, entries in vocabulary_of(insights).items():
        for entry in entries:
            if entry.get("mention_count") is None:
                keys.append(f"{kind}/{entry['id']}")
    return keys


# ---- Versions: whether insights are new, counted, edited, read by a model ----


def refresh_insights(
    before: Object, document: dict[str, Json], now: datetime
) -> Object:
    """`before` (an InsightsFile or empty) if only STAMPS differ; else its next version.

    `now` is UTC.
    """
    if document == {key: value for key, value in before.items() if key not in STAMPS}:
        return before
    stamped: dict[str, Json] = {
        "version": (before.get("version") or 0) + 1,
        "generated_at": utc_text(now),
        **document,
    }
    return {**stamped, "counted_digest": value_digest(stamped)}


def is_counted(insights: Object) -> bool:
    """Whether an InsightsFile comes from `refresh_insights`."""
    return (insights.get("model") or "").startswith(COUNTED)


def is_edited(insights: Object) -> bool:
    """Whether somebody edited an InsightsFile that was counted."""
    content = {key: value for key, value in insights.items() if key != "counted_digest"}
    return insights.get("counted_digest") != value_digest(content)


def counts_names(insights: Object) -> bool:
    """Whether counted insights rest on names in the texts, too."""
    return (insights.get("model") or "").startswith(COUNTED + FROM_NAMES)


def language_models(insights: Object) -> str:
    """The names of the language models that read the reviews; empty if none did."""
    if not is_counted(insights):
        return ""
    return (insights.get("model") or "").partition(READ_BY)[2]


# ---- Entries: figures of what reviews mention ----

COUNTS = [f"{sentiment}_count" for sentiment in SENTIMENTS]
FIGURES = ("mention_count", "average_rating", "score", "positive_pct", *COUNTS)


class Mention(NamedTuple):
    """That a review mentions an entry; `item` is what its annotation lists."""

    review: Object
    item: Json


Mentions = Sequence[Mention]


class CountedEntry(NamedTuple):
    """The figures of an entry, and samples for the keys that the owner leaves out."""

    figures: dict[str, Json]
    samples: dict[str, Json]


def _entries(kind: str, material: _Material) -> list[dict[str, Json]]:
    """The entries of a kind without their aliases, the most mentioned first.

    Figures by the owner are kept.
    """
    mentions = _mentions_by_name(kind, material.reviews, material.per_review)
    covered = _anywhere(material.looked_for)
    published = []
    for entry in material.vocabulary[kind]:
        named = mentions[entry[NAME_KEYS[kind]]]
        is_owned = any(entry.get(key) is not None for key in FIGURES)
        shown = {key: value for key, value in entry.items() if key != "aliases"}
        if not is_owned and _is_counted(kind, entry, named, covered):
            shown = _completed(shown, _counted(kind, named, material.per_review))
        published.append(shown)
    return sorted(published, key=_most_mentioned_first)


def _completed(entry: Object, counted: CountedEntry) -> dict[str, Json]:
    """An entry with its figures, and with samples for the keys that have no value."""
    completed = {**entry, **counted.figures}
    for key, value in counted.samples.items():
        if entry.get(key) is None:
            completed[key] = value
    return completed


def _mentions_by_name(
    kind: str, reviews: ReviewObjects, per_review: PerReview
) -> Mapping[str, list[Mention]]:
    """The mentions of a kind by name in `per_review`, those of new reviews first."""
    mentions = defaultdict[str, list[Mention]](list)
    for review in reviews:
        for item in per_review[review["id"]].get(kind) or ():
            name = item["id"] if kind == "aspects" else item
            mentions[name].append(Mention(review, item))
    return mentions


def _is_counted(
    kind: str, entry: Object, mentions: Mentions, covered: Collection[str]
) -> bool:
    """Whether somebody has looked for an entry: what nobody looked for is not zero.

    That its label, which customers may never write, is in no text says nothing.
    """
    if mentions or entry.get("aliases"):
        return True
    return _is_among(f"{kind}/{entry['id']}", covered)


def _most_mentioned_first(entry: Object) -> tuple[int, str, str]:
    return -(entry.get("mention_count") or 0), entry["label"], entry["id"]


def _counted(kind: str, mentions: Mentions, per_review: PerReview) -> CountedEntry:
    if kind == "aspects":
        return _counted_aspect(mentions)
    reviews = _mentioning(mentions)
    figures = _figures("mention_count", reviews, per_review)
    if kind == "topics":
        del figures["average_rating"]
    sentiments = [sentiment_of(review["rating"]) for review in reviews]
    return CountedEntry(figures, {"example_review_ids": _examples(reviews, sentiments)})


def _mentioning(mentions: Mentions) -> list[Object]:
    """The reviews of mentions, each once."""
    return list({mention.review["id"]: mention.review for mention in mentions}.values())


# ---- Aspects: the only kind whose mentions are judged ----

# What one review contributes to the score of an aspect.
SCORES = {"positive": 1, "neutral": 0, "negative": -1}


def _counted_aspect(mentions: Mentions) -> CountedEntry:
    """Each review counts once, with the joint sentiment of its mentions."""
    sentiments = _joint_sentiments(mentions)
    figures: dict[str, Json] = {"mention_count": len(sentiments)}
    for sentiment in SENTIMENTS:
        figures[f"{sentiment}_count"] = sentiments.count(sentiment)
    figures["positive_pct"] = percent(figures["positive_count"], len(sentiments))
    figures["score"] = mean([SCORES[sentiment] for sentiment in sentiments])
    samples: dict[str, Json] = {
        "top_phrases": _top_phrases(mentions, sentiments),
        "example_review_ids": _examples(_mentioning(mentions), sentiments),
    }
    return CountedEntry(figures, samples)


def _joint_sentiments(mentions: Mentions) -> list[str]:
    """How each review of the mentions judges, in their order."""
    said = defaultdict[str, set[str]](set)
    for mention in mentions:
        said[mention.review["id"]].add(mention.item["sentiment"])
    return [joint_sentiment(different) for different in said.values()]


# ---- Phrases and examples ----

# As many as stand in two lines on a phone.
MAX_PHRASES = 4
MAX_EXAMPLES = 4
# Characters of a review that says something about what it mentions.
SHORTEST_EXAMPLE = 40


def _top_phrases(mentions: Mentions, sentiments: Sequence[str]) -> list[str]:
    """Phrases of mentions of an aspect, spelled and judged as in the newest review.

    `sentiments` has one sentiment for each review. Phrases of the majority come first,
    then neutral ones, the more frequent first. If the minority has a phrase, the last
    phrase is the minority's: a page that shows praise alone is not believed.
    """
    is_liked = sentiments.count("positive") >= sentiments.count("negative")
    order = SENTIMENTS if is_liked else SENTIMENTS[::-1]
    ranked = sorted(
        _phrases(mentions),
        key=lambda group: (order.index(group[0]["sentiment"]), -len(group)),
    )
    chosen = ranked[:MAX_PHRASES]
    least = [group for group in ranked if group[0]["sentiment"] == order[-1]]
    if least and least[0] not in chosen:
        chosen[-1] = least[0]
    return [group[0]["phrase"] for group in chosen]


def _phrases(mentions: Mentions) -> Iterable[list[Object]]:
    """The mentions that have a phrase, those with the same one together."""
    groups = defaultdict[str, list[Object]](list)
    for review, mention in mentions:
        phrase = phrase_of(mention, review)
        if phrase:
            groups[folded_words(phrase)].append(mention)
    return groups.values()


def _examples(reviews: ReviewObjects, sentiments: Iterable[str]) -> list[str]:
    """Ids of the newest reviews that are not short, a negative one if there is any."""
    telling = [
        review for review in reviews if len(review["text"] or "") >= SHORTEST_EXAMPLE
    ]
    chosen = telling[:MAX_EXAMPLES]
    pairs = zip(reviews, sentiments, strict=True)
    negative = [review for review, sentiment in pairs if sentiment == "negative"]
    if negative and not any(review in chosen for review in negative):
        chosen = [*chosen[: MAX_EXAMPLES - 1], negative[0]]
    return [review["id"] for review in chosen]
