"""Counting of `insights.json`: the contents of data files become the contents of the files to write.

This module opens no file: it takes and returns contents as bytes, by file name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from reviewslib.dataset import insights
from reviewslib.dataset.contract import BadData, Contract, Fault
from reviewslib.dataset.reading import (
    INSIGHTS_FILE,
    REVIEWS_FILE,
    read_file,
    repeated_ids,
)
from reviewslib.dataset.reviews import load, served_reviews
from reviewslib.dataset.strict_json import Json, Object, decode, encode
from reviewslib.links import ServiceUrls

EDITORIAL_FILE = "editorial.json"
ANNOTATIONS_FILE = "annotations.json"
COUNTED_FILES = (
    REVIEWS_FILE,
    EDITORIAL_FILE,
    ANNOTATIONS_FILE,
    INSIGHTS_FILE,
)  # what `count` reads
Contents = Mapping[str, bytes | None]  # of COUNTED_FILES; None for an absent file


class Sources(NamedTuple):
    """What insights are counted from; callers must not modify the documents."""

    reviews: Sequence[Object]  # as served
    editorial: dict[str, Json]  # an EditorialFile as written
    annotations: dict[str, Json]  # an AnnotationsFile as written


def read_sources(contract: Contract, contents: Contents) -> Sources:
    """What insights are counted from. Raises BadData with the faults of all files."""
    if contents[REVIEWS_FILE] is None:
        raise BadData([Fault(REVIEWS_FILE, (), "the file is missing")])
    checks: dict[str, Any] = {
        REVIEWS_FILE: (contract.reviews_file, repeated_ids),
        EDITORIAL_FILE: (contract.editorial_file, insights.name_violations),
        ANNOTATIONS_FILE: (contract.annotations_file,),
    }
    read = {
        file: read_file(file, contents[file] or b"{}", *checks[file]) for file in checks
    }
    if faults := [fault for _, faults in read.values() for fault in faults]:
        raise BadData(faults)
    written = (
        decode(contents[file] or b"{}") for file in (EDITORIAL_FILE, ANNOTATIONS_FILE)
    )
    return Sources(served_reviews(read[REVIEWS_FILE][0]["reviews"], {}), *written)


def is_wanted(contents: Contents) -> bool:
    """Whether an import counts insights: mentions are listed, or insights.json was counted before.

    Counting also deletes the annotations of removed reviews, so annotations.json alone is reason enough.
    """
    has_mentions = (
        contents[EDITORIAL_FILE] is not None or contents[ANNOTATIONS_FILE] is not None
    )
    return has_mentions or insights.is_counted(decode(contents[INSIGHTS_FILE] or b"{}"))


class Count(NamedTuple):
    """The result of counting."""

    contents: dict[str, bytes]  # of the files to write, in order
    insights: Object
    lines: list[str]  # for the report


def count(contract: Contract, contents: Contents, now: datetime) -> Count:
    """Count the insights; `now` is UTC. Raises BadData.

    Annotations of removed texts are deleted. An insights.json that was not counted becomes editorial.json.
    """
    before = _insights_before(contract, contents)
    new = dict[str, bytes]()
    lines = list[str]()
    if before and not insights.is_counted(before):
        own = {
            key: value
            for key, value in before.items()
            if key not in insights.COUNTED_KEYS
        }
        new[EDITORIAL_FILE] = readable(own)
        counted = ", ".join(key for key in before if key not in own)
        lines.append(
            f"{INSIGHTS_FILE} becomes {EDITORIAL_FILE}, without what is counted: {counted}"
        )
    reviews, editorial, annotations = sources = read_sources(
        contract, {**contents, **new}
    )
    stale = insights.stale_references(reviews, editorial)
    lines += [
        f"warning: {Fault(EDITORIAL_FILE, path, reason)}" for path, reason in stale
    ]
    lines += [f"warning: {sentence}" for sentence in insights.left_out(*sources)]
    if contents[ANNOTATIONS_FILE] is not None:
        current = insights.current_annotations(reviews, annotations)
        new |= {ANNOTATIONS_FILE: encode(current)} if current != annotations else {}
        failed = [
            f"{id}: {said['failed']}"
            for id, said in current["reviews"].items()
            if said.get("failed")
        ]
        if failed:
            lines.append(
                f"reviews without a usable answer: {len(failed)}, such as {failed[0]}"
            )
            lines.append("reviewsd-insights --again asks for these again")
        if unread := insights.unread_reviews(*sources):
            lines.append(
                f"reviews that the model has not read: {len(unread)}; run reviewsd-insights"
            )
    document = insights.refresh_insights(
        before, insights.compute_insights(*sources), now
    )
    if document != before:
        new[INSIGHTS_FILE] = readable(document)
        load(contract, contents[REVIEWS_FILE] or b"", new[INSIGHTS_FILE], ServiceUrls())
    return Count(new, document, lines)


def _insights_before(contract: Contract, contents: Contents) -> dict[str, Json]:
    """The present insights.json, empty if absent. Raises BadData if it must not be replaced."""
    content = contents[INSIGHTS_FILE] or b"{}"
    _, faults = read_file(INSIGHTS_FILE, content, contract.insights_file)
    before: dict[str, Json] = {} if faults else decode(content)
    is_counted = insights.is_counted(before)
    is_edited = insights.is_edited(before)
    if is_counted and is_edited:
        reason = f"edited after counting; move your changes into {EDITORIAL_FILE} and remove this file"
        faults.append(Fault(INSIGHTS_FILE, (), reason))
    if before and not is_counted and contents[EDITORIAL_FILE] is not None:
        reason = f"not counted, but {EDITORIAL_FILE} exists; move your entries there and remove this file"
        faults.append(Fault(INSIGHTS_FILE, (), reason))
    if faults:
        raise BadData(faults)
    return before


def readable(document: Json) -> bytes:
    """The content of a data file, indented for people; keys keep their order."""
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"
