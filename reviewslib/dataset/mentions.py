"""Mentions: what each review speaks of, by the owner, by a model and by aliases.

Three sources are joined: `per_review` of the owner's `editorial.json`, a language model
(`annotations.json`), and the aliases that the owner lists. This module is pure and
counts nothing. It never searches replies.

Sections: digests, and whether there are words - all sources joined - annotations of a
model - what is left out.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from reviewslib.dataset.contract import quoted
from reviewslib.dataset.figures import ReviewObjects, score_of
from reviewslib.dataset.strict_json import Json, Object, encode
from reviewslib.dataset.text import alias_of, folded_words
from reviewslib.dataset.vocabulary import (
    ENTITY_KINDS,
    KINDS,
    NAME_KEYS,
    aliases_of,
    entry_keys,
    vocabulary_of,
)

# Annotations by review id, as in `per_review` of InsightsFile.
PerReview = Mapping[str, Object]
Vocabulary = Mapping[str, Sequence[Object]]

# ---- Digests, and whether there are words ----

# Of a digest in hexadecimal digits: 64 bits, for some thousand values of one owner.
DIGEST_DIGITS = 16


def value_digest(value: Json) -> str:
    """A short digest of a JSON value."""
    return hashlib.sha256(encode(value)).hexdigest()[:DIGEST_DIGITS]


def text_digest(review: Object) -> str:
    """The digest that an annotation keeps of the text of its review."""
    return value_digest(review["text"])


def has_words(review: Object) -> bool:
    """Whether there is something to read in a review."""
    return bool((review["text"] or "").strip())


# ---- All sources joined ----


def by_hand(reviews: ReviewObjects, editorial: Object) -> dict[str, Object]:
    """The owner's annotations of all reviews, by review id."""
    per_review = editorial.get("per_review") or {}
    return {review["id"]: per_review.get(review["id"]) or {} for review in reviews}


def joined_annotations(
    reviews: ReviewObjects,
    vocabulary: Vocabulary,
    by_model: PerReview,
    by_owner: PerReview,
) -> dict[str, Json]:
    """Complete annotations of all reviews.

    Values by the owner replace those by a model or by aliases.
    """
    names = {kind: _names_by_id(kind, vocabulary[kind]) for kind in KINDS}
    aliases = list(_aliases_in(vocabulary))
    per_review = {}
    for review in reviews:
        annotation: dict[str, Json] = {"score": score_of(review["rating"])}
        # Topics are absent where nobody looked for them, unlike the other kinds.
        annotation |= {kind: [] for kind in KINDS if kind != "topics"}
        annotation |= _valid_lists(by_model.get(review["id"], {}), names, review)
        _add_aliases(annotation, aliases, review)
        for key, value in by_owner[review["id"]].items():
            if value is not None or key not in annotation:
                annotation[key] = value
        per_review[review["id"]] = annotation
    return per_review


def _valid_lists(
    said: Object, names: Mapping[str, Mapping[str, str]], review: Object
) -> dict[str, Json]:
    """The lists of a model's annotation as in `per_review`; `names` by kind and id."""
    lists = {}
    for kind in KINDS:
        if said.get(kind) is not None:
            lists[kind] = _valid_items(kind, said[kind], names[kind], review)
    return lists


def _names_by_id(kind: str, entries: Iterable[Object]) -> dict[str, str]:
    return {entry["id"]: entry[NAME_KEYS[kind]] for entry in entries}


class _Alias(NamedTuple):
    """Another name of an entry, and how it is found in the `folded_words` of a text."""

    kind: str
    name: str  # of the entry
    words: str
    pattern: re.Pattern[str]


def _aliases_in(vocabulary: Vocabulary) -> Iterator[_Alias]:
    for kind in ENTITY_KINDS:
        entries = vocabulary[kind]
        listed = chain.from_iterable(entry.get("aliases") or () for entry in entries)
        taken = set(map(folded_words, listed))
        # A blank label would be in every text.
        taken.add("")
        for entry in entries:
            is_listed = entry.get("aliases") is not None
            for alias in aliases_of(entry):
                # A label that the owner lists for another entry means that one.
                if is_listed or folded_words(alias) not in taken:
                    yield _Alias(kind, entry[NAME_KEYS[kind]], *alias_of(alias))


def _add_aliases(
    annotation: dict[str, Json], aliases: Sequence[_Alias], review: Object
) -> None:
    """Add the entries whose aliases stand in the text of a review."""
    if not aliases:
        return
    words = folded_words(review["text"] or "")
    for alias in aliases:
        mentioned = annotation[alias.kind]
        # `in` is faster than the pattern, and rarely true.
        if alias.words not in words or alias.name in mentioned:
            continue
        if alias.pattern.search(words):
            mentioned.append(alias.name)


def phrase_of(mention: Object, review: Object) -> str:
    """The phrase of a mention of an aspect; empty unless the review has it verbatim."""
    phrase: str = mention.get("phrase") or ""
    return phrase if phrase in (review["text"] or "") else ""


def _valid_items(
    kind: str, items: Sequence[Json], names: Mapping[str, str], review: Object
) -> list[Json]:
    """A list of a model's annotation, without what `left_out` names."""
    if kind != "aspects":
        return [names[id] for id in dict.fromkeys(items) if id in names]
    return [
        _without_misquotation(mention, review)
        for mention in items
        if mention["id"] in names
    ]


def _without_misquotation(mention: Object, review: Object) -> dict[str, Json]:
    """A mention of an aspect, without a phrase that the review does not have."""
    valid = dict(mention)
    if not phrase_of(mention, review):
        valid.pop("phrase", None)
    return valid


# ---- Annotations of a model: which are current, and which reviews have none ----


def current_annotations(reviews: ReviewObjects, annotations: Object) -> dict[str, Json]:
    """An AnnotationsFile with the annotations of served reviews whose text is the same.

    Only the vocabularies that these annotations name are kept.
    """
    by_id = annotations.get("reviews", {})
    current = {}
    for review in reviews:
        said = by_id.get(review["id"])
        if said and said["text_digest"] == text_digest(review):
            current[review["id"]] = said
    named = {said["vocabulary"] for said in current.values()}
    vocabularies = {
        digest: keys
        for digest, keys in annotations.get("vocabularies", {}).items()
        if digest in named
    }
    return {**annotations, "vocabularies": vocabularies, "reviews": current}


def extended_annotations(
    annotations: Object,
    batch: ReviewObjects,
    lists: PerReview,
    entries: Sequence[str],
    model: str,
) -> dict[str, Json]:
    """An AnnotationsFile with what a model said of a batch of reviews.

    `lists` has its lists by review id, or why it `failed`; `entries` are the
    `entry_keys` that it was asked about. A failed annotation keeps the lists of the
    previous one.
    """
    previous = current_annotations(batch, annotations)["reviews"]
    vocabulary = value_digest(entries)
    read = dict(annotations.get("reviews", {}))
    for review in batch:
        said = lists[review["id"]]
        kept: Object = {}
        if "failed" in said:
            kept = previous.get(review["id"], {})
        read[review["id"]] = {
            **kept,
            "text_digest": text_digest(review),
            "vocabulary": vocabulary,
            "model": model,
            **said,
        }
    vocabularies = {**annotations.get("vocabularies", {}), vocabulary: entries}
    return {**annotations, "vocabularies": vocabularies, "reviews": read}


def unread_reviews(
    reviews: ReviewObjects,
    editorial: Object,
    annotations: Object,
    *,
    again: bool = False,
) -> list[Object]:
    """The reviews with words whose annotation does not cover the whole vocabulary.

    Reviews for which the owner wrote all lists are left out. Failed annotations count
    as complete unless `again` is true.
    """
    by_owner = by_hand(reviews, editorial)
    current = current_annotations(reviews, annotations)
    wanted = set(entry_keys(editorial))
    kinds = {key.partition("/")[0] for key in wanted}
    complete = {
        digest
        for digest, keys in current["vocabularies"].items()
        if wanted.issubset(keys)
    }
    unread = []
    for review in reviews:
        said = current["reviews"].get(review["id"])
        owned = by_owner[review["id"]]
        is_owned = all(owned.get(kind) is not None for kind in kinds)
        is_done = is_owned or _is_read(said, complete, again)
        if has_words(review) and not is_done:
            unread.append(review)
    return unread


def _is_read(said: Object | None, complete: set[str], again: bool) -> bool:
    """Whether an annotation need not be made anew."""
    if not said or said["vocabulary"] not in complete:
        return False
    return not (again and said.get("failed"))


# ---- What is left out ----


def left_out(
    reviews: ReviewObjects, editorial: Object, annotations: Object
) -> Iterator[str]:
    """Sentences about names without an entry, and phrases that their review lacks."""
    vocabulary = vocabulary_of(editorial)
    by_owner = by_hand(reviews, editorial)
    by_model = current_annotations(reviews, annotations)["reviews"]
    # The owner names people by label, a model names all entries by id.
    unknown = _unknown_in(reviews, by_owner, vocabulary, NAME_KEYS)
    unknown += _unknown_in(reviews, by_model, vocabulary, dict.fromkeys(KINDS, "id"))
    for name, count in sorted(unknown.items()):
        yield f"{name} has no entry and is not counted; reviews: {count}"
    misquoted = list[str]()
    for per_review in (by_owner, by_model):
        for review in reviews:
            said = per_review.get(review["id"], {})
            misquoted += _misquotations(said.get("aspects") or (), review)
    if misquoted:
        number = f"phrases that are not in their review: {len(misquoted)}"
        yield f"{number}, such as {quoted(misquoted[0])}"


def _unknown_in(
    reviews: ReviewObjects,
    per_review: PerReview,
    vocabulary: Vocabulary,
    name_keys: Mapping[str, str],
) -> Counter[str]:
    """The names without an entry, with the number of reviews that have them."""
    unknown = Counter[str]()
    for kind, entries in vocabulary.items():
        names = {entry[name_keys[kind]] for entry in entries}
        for review in reviews:
            said = per_review.get(review["id"], {}).get(kind) or ()
            unknown.update(_unknown_names(kind, said, names))
    return unknown


def _unknown_names(kind: str, mentions: Iterable[Json], names: set[str]) -> set[str]:
    mentioned = {
        mention["id"] if kind == "aspects" else mention for mention in mentions
    }
    return {f"{kind}: {quoted(name)}" for name in mentioned - names}


def _misquotations(mentions: Iterable[Object], review: Object) -> list[str]:
    return [
        mention["phrase"]
        for mention in mentions
        if mention.get("phrase") and not phrase_of(mention, review)
    ]
