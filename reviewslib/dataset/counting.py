"""`insights.json` is counted: from the contents of the data files to the content of the new one.

This module opens no file: contents come in and go out as bytes, by the names of the files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from reviewslib.dataset import insights
from reviewslib.dataset.contract import BadData, Contract, Fault
from reviewslib.dataset.reviews import (
    INSIGHTS_FILE,
    REVIEWS_FILE,
    editorial_violations,
    insight_violations,
    load,
    read_file,
    review_violations,
    served_reviews,
)
from reviewslib.dataset.strict_json import Json, Object, decode
from reviewslib.links import Links

EDITORIAL_FILE, ANNOTATIONS_FILE = "editorial.json", "annotations.json"
COUNTED_FILES = (REVIEWS_FILE, EDITORIAL_FILE, ANNOTATIONS_FILE, INSIGHTS_FILE)  # that counting reads
Contents = dict[str, bytes | None]  # of COUNTED_FILES, None for a file that is absent


class Sources(NamedTuple):
    """What insights are counted from. Nobody changes it."""

    reviews: Sequence[Object]  # as served
    editorial: dict[str, Json]  # as EditorialFile, as it was written
    annotations: dict[str, Json]  # as AnnotationsFile, as it was written


SOURCE_FILES = (REVIEWS_FILE, EDITORIAL_FILE, ANNOTATIONS_FILE)  # of the members of Sources


def read_source(contract: Contract, file: str, content: bytes | None) -> Json:
    """A member of Sources from the content of its file. Raises BadData."""
    if content is None and file == REVIEWS_FILE:
        raise BadData([Fault(file, (), "there is none")])
    form, violations = {
        REVIEWS_FILE: (contract.reviews_file, review_violations),
        EDITORIAL_FILE: (contract.editorial_file, editorial_violations),
        ANNOTATIONS_FILE: (contract.annotations_file, lambda document: iter(())),
    }[file]
    document, faults = read_file(file, content or b"{}", form, violations)
    if faults:
        raise BadData(faults)
    return served_reviews(document["reviews"], {}) if file == REVIEWS_FILE else decode(content or b"{}")


def is_wanted(contents: Contents) -> bool:
    """Whether an import counts anew: the owner lists something, or insights.json was counted before."""
    before = contents[INSIGHTS_FILE]
    return contents[EDITORIAL_FILE] is not None or (
        before is not None and insights.is_counted(decode(before))
    )


class Count(NamedTuple):
    """The result of counting."""

    contents: dict[str, bytes]  # of the files to write, in this order
    insights: Object
    lines: list[str]  # for the report


def count(contract: Contract, contents: Contents, now: datetime) -> Count:
    """Count the insights anew; `now` is UTC. Raises BadData.

    An insights.json that was not counted becomes editorial.json, without what is counted.
    """
    new, lines = dict[str, bytes](), list[str]()
    old = contents[INSIGHTS_FILE]
    _, faults = read_file(INSIGHTS_FILE, old or b"{}", contract.insights_file, insight_violations)
    if faults:
        raise BadData(faults)
    before: dict[str, Json] = decode(old or b"{}")
    if old is not None and not insights.is_counted(before):
        if contents[EDITORIAL_FILE] is not None:
            reason = f"not made from {EDITORIAL_FILE}, which is there, too; put all into that and remove this"
            raise BadData([Fault(INSIGHTS_FILE, (), reason)])
        own = {key: value for key, value in before.items() if key not in insights.COUNTED_KEYS}
        new[EDITORIAL_FILE] = readable(own)
        counted = ", ".join(key for key in before if key in insights.COUNTED_KEYS)
        lines.append(f"{INSIGHTS_FILE} becomes {EDITORIAL_FILE}, without what is counted: {counted}")
    elif old is not None and insights.is_edited(before):
        reason = f"changed by hand; put that into {EDITORIAL_FILE} and remove this file"
        raise BadData([Fault(INSIGHTS_FILE, (), reason)])
    sources = Sources(*(read_source(contract, file, (contents | new)[file]) for file in SOURCE_FILES))
    reviews, editorial, _ = sources
    doubtful = [
        *insights.misspelled_keys(editorial, contract.schemas),
        *insights.stale_references(reviews, editorial),
    ]
    lines += [f"warning: {Fault(EDITORIAL_FILE, path, reason)}" for path, reason in doubtful]
    lines += [f"warning: {sentence}" for sentence in insights.left_out(*sources)]
    after = insights.refresh_insights(before, insights.compute_insights(*sources), now)
    if after != before:
        new[INSIGHTS_FILE] = readable(after)
        load(contract, contents[REVIEWS_FILE] or b"", new[INSIGHTS_FILE], Links())
    return Count(new, after, lines)


def readable(document: Json) -> bytes:
    """A data file that people can read, keys in their order."""
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"
