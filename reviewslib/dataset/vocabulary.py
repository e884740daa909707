"""The vocabulary: what reviews can mention, by kind, as an owner lists it.

The entries of an EditorialFile are the vocabulary; those of an InsightsFile are the
same with their figures. This module knows no review, and counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reviewslib.dataset.strict_json import Object

ENTITY_KINDS = ("technicians", "services", "problems", "service_areas")
KINDS = ("aspects", *ENTITY_KINDS, "topics")
# The same for readers: what most questions are about comes first.
LISTED_KINDS = ("aspects", "topics", *ENTITY_KINDS)
# By kind: the key of an entry by which `per_review` names it. People have names there.
NAME_KEYS = dict.fromkeys(KINDS, "id") | {"technicians": "label"}
# How an aspect is judged in a review.
SENTIMENTS = ("positive", "neutral", "negative")
# Of keys of an EditorialFile that wait for the owner and are not published.
PROPOSED = "proposed_"

# Of an entry that a model proposed; the owner removes it.
PROPOSED_KEY = "proposed"


def vocabulary_of(editorial: Object) -> dict[str, Sequence[Object]]:
    """The entries of every kind in an EditorialFile."""
    entities = editorial.get("entities") or {}
    vocabulary = {}
    for kind in KINDS:
        place = entities if kind in ENTITY_KINDS else editorial
        vocabulary[kind] = place.get(kind) or ()
    return vocabulary


def entries_of_kind(insights: Object, kind: str) -> Sequence[Object]:
    """The entries of one of KINDS in an InsightsFile."""
    place = insights["entities"] if kind in ENTITY_KINDS else insights
    entries: Sequence[Object] = place[kind]
    return entries


def entries_in(insights: Object) -> Iterator[tuple[str, Object]]:
    """The entries of an InsightsFile, with their kinds, in the order of KINDS."""
    for kind in KINDS:
        for entry in entries_of_kind(insights, kind):
            yield kind, entry


def entry_keys(editorial: Object) -> list[str]:
    """All entries of an EditorialFile as "kind/id", sorted."""
    keys = []
    for kind, entries in vocabulary_of(editorial).items():
        keys += [f"{kind}/{entry['id']}" for entry in entries]
    return sorted(keys)


def aliases_of(entry: Object) -> Sequence[str]:
    """The words by which texts are searched for an entity: its aliases, else its label.

    An empty list of aliases means that texts are not searched.
    """
    aliases: Sequence[str] | None = entry.get("aliases")
    if aliases is None:
        return [entry["label"]]
    return aliases


def says_something(entry: Object) -> bool:
    """Whether somebody has counted an entry, or the owner has words for it.

    What nobody has counted is not zero: such an entry is not shown, and one with words
    stands without a figure.
    """
    if entry.get("mention_count") is not None:
        return True
    return bool(entry.get("summary") or entry.get("top_phrases"))


def is_proposed(entry: Object) -> bool:
    """Whether a model proposed an entry, and the owner has not looked at it yet.

    Its label may be words of a customer, so it stands in no text that tells a model
    what to do.
    """
    return entry.get(PROPOSED_KEY) is True
