"""The vocabulary: what reviews can mention, by kind, as an owner lists it.

The entries of an EditorialFile are the vocabulary. This module knows neither reviews nor
figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from reviewslib.dataset.strict_json import Object

ENTITY_KINDS = ("technicians", "services", "problems", "service_areas")
KINDS = ("aspects", *ENTITY_KINDS, "topics")
# By kind: the key of an entry by which `per_review` names it. People have names there.
NAME_KEYS = dict.fromkeys(KINDS, "id") | {"technicians": "label"}
# How an aspect is judged in a review.
SENTIMENTS = ("positive", "neutral", "negative")
# Of keys of an EditorialFile that wait for the owner and are not published.
PROPOSED = "proposed_"


def vocabulary_of(editorial: Object) -> dict[str, Sequence[Object]]:
    """The entries of every kind in an EditorialFile."""
    entities = editorial.get("entities") or {}
    vocabulary = {}
    for kind in KINDS:
        place = entities if kind in ENTITY_KINDS else editorial
        vocabulary[kind] = place.get(kind) or ()
    return vocabulary


def entry_keys(editorial: Object) -> list[str]:
    """All entries of an EditorialFile as "kind/id", sorted."""
    keys = []
    for kind, entries in vocabulary_of(editorial).items():
        keys += [f"{kind}/{entry['id']}" for entry in entries]
    return sorted(keys)
