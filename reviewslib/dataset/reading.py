"""Reading of data files: their contents become completed documents, or faults.

Faults of form (not JSON, not as the schema says) and of sense (an id twice) are
reported together. This module opens no file; contents arrive as bytes.

Sections: one file - rules that no schema can say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from reviewslib.dataset.contract import FileSchema, Violations, quoted
from reviewslib.dataset.strict_json import Json, NotJson, decode
from reviewslib.faults import Fault, JsonPath

REVIEWS_FILE = "reviews.json"
INSIGHTS_FILE = "insights.json"
# What imports remember; the service reads when they last had an export.
IMPORT_STATE_FILE = "import-state.json"

# Of objects and arrays in a file: 200,000 reviews have some six each. Ten times as many
# need more than a gigabyte.
MAX_CONTAINERS = 2_000_000
# In a reviews file: 100,000 like those of the sample take 0.9 GB to load.
MAX_REVIEWS = 200_000
# Members of the business that an import writes with nulls, for the owner to fill in.
BLANK_KEYS = ("address", "geo")

Rule = Callable[[Json], Violations]

# ---- One file ----


def read_file(
    file: str, data: bytes, schema: FileSchema, *rules: Rule
) -> tuple[dict[str, Json], list[Fault]]:
    """The completed document and no fault; or an empty one, and every fault in order.

    A violation of `rules` is reported only where the schema holds.
    """
    try:
        document = _decoded(file, data)
    except NotJson as error:
        return {}, _faults(file, error.faults)
    _leave_out_blanks(document)
    violations = _violations(document, schema, rules)
    if violations:
        return {}, _faults(file, violations)
    return schema.complete(document), []


def _decoded(file: str, data: bytes) -> Json:
    """A document that is small enough to look at. Raises NotJson."""
    if data.count(b"{") + data.count(b"[") > MAX_CONTAINERS:
        raise NotJson(((), f"has more than {MAX_CONTAINERS:,} objects and arrays"))
    document = decode(data)
    # Before the schema, whose faults of so many reviews would take minutes.
    count = len(_reviews_of(document))
    if file == REVIEWS_FILE and count > MAX_REVIEWS:
        reason = f"has {count:,} reviews; at most {MAX_REVIEWS:,} can be served"
        raise NotJson((("reviews",), reason))
    return document


def _faults(file: str, violations: Iterable[tuple[JsonPath, str]]) -> list[Fault]:
    return [Fault(file, path, reason) for path, reason in violations]


def _violations(
    document: Json, schema: FileSchema, rules: tuple[Rule, ...]
) -> list[tuple[JsonPath, str]]:
    """How a document violates the schema and the rules, in the document's order."""
    violations = list(schema.violations(document))
    wrong_paths = {path for path, _ in violations}
    for path, reason in chain.from_iterable(rule(document) for rule in rules):
        if path not in wrong_paths:
            violations.append((path, reason))
    # Numbers, the indexes of lists, before names: the two do not compare.
    return sorted(
        violations,
        key=lambda violation: [(isinstance(step, str), step) for step in violation[0]],
    )


def _reviews_of(document: Json) -> list[Json]:
    """The reviews of a ReviewsFile; `document` may be any JSON."""
    reviews = document.get("reviews") if isinstance(document, dict) else None
    if isinstance(reviews, list):
        return reviews
    return []


def _leave_out_blanks(document: Json) -> None:
    """Replace what the owner has not filled in yet by null."""
    business = document.get("business") if isinstance(document, dict) else None
    if not isinstance(business, dict):
        return
    for key in BLANK_KEYS:
        if _is_blank(business.get(key)):
            business[key] = None


def _is_blank(value: Json) -> bool:
    """Whether `value` is an object whose members are all null."""
    if not isinstance(value, dict) or not value:
        return False
    return all(member is None for member in value.values())


# ---- Rules that no schema can say ----


def repeated_ids(document: Json) -> Violations:
    """Ids that an earlier review has, in a ReviewsFile; `document` may be any JSON."""
    first_use: dict[str, int] = {}
    for index, review in enumerate(_reviews_of(document)):
        id = review.get("id") if isinstance(review, dict) else None
        if not isinstance(id, str):
            continue
        first = first_use.setdefault(id, index)
        if first != index:
            reason = f"{quoted(id)} is already the id of /reviews/{first}"
            yield ("reviews", index, "id"), reason
