"""Counting of `insights.json`: contents of files become contents of files to write.

This module opens no file: it takes and returns contents as bytes, by file name.

Sections: sources - counting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from reviewslib.dataset import insights, mentions
from reviewslib.dataset.contract import Contract, quoted
from reviewslib.dataset.editorial_rules import name_violations, stale_references
from reviewslib.dataset.reading import (
    INSIGHTS_FILE,
    REVIEWS_FILE,
    read_file,
    repeated_ids,
)
from reviewslib.dataset.reviews import first_three, load, served_reviews
from reviewslib.dataset.strict_json import Json, Object, decode, encode
from reviewslib.faults import BadData, Fault
from reviewslib.links import ServiceUrls

EDITORIAL_FILE = "editorial.json"
ANNOTATIONS_FILE = "annotations.json"
# What `count` reads.
COUNTED_FILES = (REVIEWS_FILE, EDITORIAL_FILE, ANNOTATIONS_FILE, INSIGHTS_FILE)
# Of COUNTED_FILES; None for an absent file.
Contents = Mapping[str, bytes | None]
# What stands for an absent file.
EMPTY = b"{}"

# ---- Sources: what insights are counted from ----


class Sources(NamedTuple):
    """What insights are counted from; callers must not modify the documents."""

    reviews: Sequence[Object]  # as served
    editorial: dict[str, Json]  # an EditorialFile as written
    annotations: dict[str, Json]  # an AnnotationsFile as written


def read_sources(contract: Contract, contents: Contents) -> Sources:
    """What insights are counted from. Raises BadData with the faults of all files."""
    reviews = contents[REVIEWS_FILE]
    if reviews is None:
        raise BadData([Fault(REVIEWS_FILE, (), "the file is missing")])
    editorial = contents[EDITORIAL_FILE] or EMPTY
    annotations = contents[ANNOTATIONS_FILE] or EMPTY
    document, faults = read_file(
        REVIEWS_FILE, reviews, contract.reviews_file, repeated_ids
    )
    faults += read_file(
        EDITORIAL_FILE, editorial, contract.editorial_file, name_violations
    )[1]
    faults += read_file(ANNOTATIONS_FILE, annotations, contract.annotations_file)[1]
    if faults:
        raise BadData(faults)
    return Sources(
        reviews=served_reviews(document["reviews"], {}),
        editorial=decode(editorial),
        annotations=decode(annotations),
    )


# ---- Counting ----


class Count(NamedTuple):
    """The result of counting."""

    contents: dict[str, bytes]  # of the files to write, in order
    insights: Object
    lines: list[str]  # for the report


def is_wanted(contents: Contents) -> bool:
    """Whether an import counts insights.

    It does where mentions are listed, or insights.json was counted before. Counting
    also deletes the annotations of removed reviews, so annotations.json alone is reason
    enough. The insights.json has been checked.
    """
    for file in (EDITORIAL_FILE, ANNOTATIONS_FILE):
        if contents[file] is not None:
            return True
    return insights.is_counted(decode(contents[INSIGHTS_FILE] or EMPTY))


def count(contract: Contract, contents: Contents, now: datetime) -> Count:
    """Count the insights; `now` is UTC.

    Annotations of removed texts are deleted. An insights.json that was not counted
    becomes editorial.json. Raises BadData.
    """
    before = _insights_before(contract, contents)
    new = dict[str, bytes]()
    lines = list[str]()
    if before and not insights.is_counted(before):
        new[EDITORIAL_FILE] = readable(_owned(before))
        lines.append(_moved_text(before))
    sources = read_sources(contract, {**contents, **new})
    lines += _warnings(sources)
    if contents[ANNOTATIONS_FILE] is not None:
        new |= _current_annotations(sources)
        lines += _unread_texts(sources)
    counted = insights.compute_insights(*sources)
    lines += _uncounted_text(counted)
    document = insights.refresh_insights(before, counted, now)
    if document != before:
        new[INSIGHTS_FILE] = readable(document)
        # The daemon reads what is written: its rules have the last word.
        load(
            contract, contents[REVIEWS_FILE] or EMPTY, new[INSIGHTS_FILE], ServiceUrls()
        )
    return Count(new, document, lines)


def _current_annotations(sources: Sources) -> dict[str, bytes]:
    """The file of annotations less those of removed texts; nothing if it has none."""
    current = mentions.current_annotations(sources.reviews, sources.annotations)
    if current == sources.annotations:
        return {}
    return {ANNOTATIONS_FILE: encode(current)}


def _insights_before(contract: Contract, contents: Contents) -> dict[str, Json]:
    """The present insights.json, empty if absent.

    Raises BadData if it must not be replaced.
    """
    content = contents[INSIGHTS_FILE] or EMPTY
    _, faults = read_file(INSIGHTS_FILE, content, contract.insights_file)
    if faults:
        raise BadData(faults)
    before: dict[str, Json] = decode(content)
    reason = ""
    if insights.is_counted(before):
        if insights.is_edited(before):
            reason = (
                f"edited after counting; move your changes into {EDITORIAL_FILE}"
                " and remove this file"
            )
    elif before and contents[EDITORIAL_FILE] is not None:
        reason = (
            f"not counted, but {EDITORIAL_FILE} exists; move your entries there"
            " and remove this file"
        )
    if reason:
        raise BadData([Fault(INSIGHTS_FILE, (), reason)])
    return before


def _owned(before: Object) -> dict[str, Json]:
    """What of an insights.json is the owner's, and not counted."""
    return {
        key: value for key, value in before.items() if key not in insights.COUNTED_KEYS
    }


def _moved_text(before: Object) -> str:
    owned = _owned(before)
    counted = ", ".join(key for key in before if key not in owned)
    moved = f"{INSIGHTS_FILE} becomes {EDITORIAL_FILE}"
    return f"{moved}, without what is counted: {counted}"


def _warnings(sources: Sources) -> Iterator[str]:
    """What of the sources is not as the owner means it."""
    for path, reason in stale_references(sources.reviews, sources.editorial):
        yield f"warning: {Fault(EDITORIAL_FILE, path, reason)}"
    for sentence in mentions.left_out(*sources):
        yield f"warning: {sentence}"


def _unread_texts(sources: Sources) -> Iterator[str]:
    """How many reviews a model has not read, or not usefully."""
    current = mentions.current_annotations(sources.reviews, sources.annotations)
    failed = [
        f"{id}: {said['failed']}"
        for id, said in current["reviews"].items()
        if said.get("failed")
    ]
    if failed:
        yield f"reviews without a usable answer: {len(failed)}, such as {failed[0]}"
        yield "reviewsd-insights --again asks for these again"
    unread = mentions.unread_reviews(*sources)
    if unread:
        number = f"reviews that the model has not read: {len(unread)}"
        yield f"{number}; run reviewsd-insights"


def _uncounted_text(counted: Object) -> Iterator[str]:
    """Which entries nothing counts, and what would."""
    keys = insights.uncounted_keys(counted)
    if not keys:
        return
    named = first_three([quoted(key) for key in keys])
    yield f"entries that nothing counts: {len(keys)} ({named})"
    yield "write aliases or per_review for them, or run reviewsd-insights"


def readable(document: Json) -> bytes:
    """The content of a data file, indented for people; keys keep their order."""
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"
