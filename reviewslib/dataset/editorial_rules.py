"""Checks of an EditorialFile that no schema can say.

Two entries may not share a name, aliases belong to some kinds only, and what an owner
quotes or names should be in the reviews. This module is pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from reviewslib.dataset.contract import Violations, quoted
from reviewslib.dataset.figures import ReviewObjects
from reviewslib.dataset.strict_json import Json, Object, members
from reviewslib.dataset.text import folded_words
from reviewslib.dataset.vocabulary import ENTITY_KINDS, NAME_KEYS
from reviewslib.faults import JsonPath

# A quotation may stand in marks of its own, those of any language.
QUOTATION_MARKS = (
    ('"', '"'),
    ("“", "”"),
    ("„", "“"),
    ("„", "”"),
    ("”", "”"),
    ("«", "»"),
    ("»", "«"),
    ("‘", "’"),
    ("‚", "‘"),
    ("「", "」"),
    ("『", "』"),
)
# Keys whose values, or the members of whose lists, are ids of reviews; and quotations.
ID_KEYS = {
    "example_review_ids",
    "review_ids",
    "summary_review_ids",
    "proposed_summary_review_ids",
}
PHRASE_LISTS = {"top_phrases"}
QUOTATIONS = {"pull_quote", "proposed_pull_quote"}


def unquoted(text: str) -> str:
    """A quotation without the marks around it.

    A pair inside it stays, with all of its marks.
    """
    words = text.strip()
    for opening, closing in QUOTATION_MARKS:
        if len(words) < 2 or words[0] != opening or words[-1] != closing:
            continue
        inside = words[1:-1]
        # In „A“ and „B“ the marks do not enclose the whole.
        if opening in inside or closing in inside:
            continue
        return inside.strip()
    return words


def name_violations(editorial: Json) -> Violations:
    """Names and ids that two entries of a kind share, and misplaced aliases.

    `editorial` may be any JSON.
    """
    first_use: dict[tuple[str, str, str], int] = {}
    for path, value in _nodes(editorial):
        place = _place_of_name(path)
        if place is None:
            if path[-1] == "aliases":
                kinds = ", ".join(ENTITY_KINDS)
                yield path, f"aliases belong to entries of {kinds} only"
            continue
        kind, index, key = place
        if key not in ("aliases", "id", NAME_KEYS[kind]) or not isinstance(value, str):
            continue
        first = first_use.setdefault((kind, key, folded_words(value)), index)
        if first != index:
            other = f"/entities/{kind}/{first}"
            yield path, f"{quoted(value)} already belongs to {other}"


def _place_of_name(path: JsonPath) -> tuple[str, int, str] | None:
    """The kind, the index and the key under which an entity has a name."""
    if len(path) < 4 or path[0] != "entities":
        return None
    kind, index, key = path[1:4]
    if kind not in ENTITY_KINDS or not isinstance(index, int):
        return None
    if key not in ("aliases", "id", "label"):
        return None
    return str(kind), index, str(key)


def stale_references(reviews: ReviewObjects, editorial: Object) -> Violations:
    """Ids of reviews that are not served, and phrases that no review contains."""
    ids = {review["id"] for review in reviews}
    texts = "\n".join(folded_words(review["text"] or "") for review in reviews)
    for path, value in _nodes(editorial):
        named = _named_id(path, value)
        if named is not None and named not in ids:
            yield path, f"no review with the id {quoted(named)} is served"
        phrase = _quotation(path, value)
        if phrase is None:
            continue
        if folded_words(unquoted(phrase)) not in texts:
            yield path, f"{quoted(phrase)} is in no review"


def _named_id(path: JsonPath, value: Json) -> str | None:
    """The id of a review that a value is or stands under."""
    if len(path) == 2 and path[0] == "per_review":
        return str(path[1])
    if len(path) >= 2 and path[-2] in ID_KEYS and isinstance(value, str):
        return value
    return None


def _quotation(path: JsonPath, value: Json) -> str | None:
    """The words of customers that a value repeats."""
    if not isinstance(value, str):
        return None
    if len(path) == 1 and path[0] in QUOTATIONS:
        return value
    if len(path) >= 2 and path[-2] in PHRASE_LISTS:
        return value
    return None


def _nodes(value: Json, path: JsonPath = ()) -> Iterator[tuple[JsonPath, Json]]:
    """All values inside `value` with their paths, in document order."""
    for step, member in members(value):
        yield (*path, step), member
        yield from _nodes(member, (*path, step))
