"""The report of an import: counts, then remarks that the owner may want to check.

A remark is said once, unless it has to be said until the owner has settled it: the
state keeps digests of what was said. This module is pure.

Sections: lines - counts - what is said once - what is said until it is settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reviewslib.dataset.reading import REVIEWS_FILE
from reviewslib.faults import printable
from reviewslib.importer.exports import Export, ReviewInFile
from reviewslib.importer.ledger import Ledger, described, named
from reviewslib.importer.recognition import TEXT_DIGITS, digest
from reviewslib.terminal import number_of

# ---- Lines ----

# The state keeps digests of so many lines; a drop folder repeats a few dozen.
MAX_SAID = 500


class Report(NamedTuple):
    """The lines to print, and the digests of those that are not to be said again."""

    lines: list[str]
    said: list[str]


def make_report(
    ledger: Ledger,
    exports: Sequence[Export],
    overwritten: Sequence[str],
) -> Report:
    """The report of an import.

    `overwritten` are the ids of changed reviews that somebody had edited.
    """
    before = ledger.stored.state.said
    lines = [*_counts(ledger), *_new_and_low(ledger), *_lowered(ledger)]
    said = list[str]()
    for line in _once(ledger, exports):
        # Names of files may have bytes that are no UTF-8.
        mark = digest("said", printable(line))[:TEXT_DIGITS]
        said.append(mark)
        if mark not in before:
            lines.append(line)
    lines += _named_reviews(ledger, exports)
    lines += _until_settled(ledger, exports)
    lines += _overwritten(ledger, overwritten)
    all_said = dict.fromkeys([*before, *said])
    return Report(lines, [*all_said][-MAX_SAID:])


# ---- Counts ----


def _counts(ledger: Ledger) -> Iterator[str]:
    reviews = ledger.reviews
    changed = ledger.changed()
    before = ledger.before
    new = [reviews[id] for id in reviews.keys() - before.keys()]
    if new:
        yield f"new: {len(new)} ({_by_stars(new)})"
    kinds = Counter(_change(before[id], reviews[id]) for id in changed if id in reviews)
    if kinds:
        shown = [f"{kind}: {kinds[kind]}" for kind in CHANGES if kinds[kind]]
        yield ", ".join(shown)
    unchanged = len(before) - len(changed)
    if unchanged:
        yield f"unchanged: {unchanged}"
    hidden = [review for review in reviews.values() if review.get("verified") is False]
    if hidden:
        yield f"not verified or not published, so not served: {len(hidden)}"


CHANGES = ("replies", "revised", "other changes")


def _change(before: ReviewInFile, after: ReviewInFile) -> str:
    """What the owner wants to know first of a changed review, one of CHANGES."""
    if (before["rating"], before.get("text")) != (after["rating"], after.get("text")):
        return "revised"
    if before.get("owner_reply") != after.get("owner_reply"):
        return "replies"
    return "other changes"


def _by_stars(reviews: Sequence[ReviewInFile]) -> str:
    numbers = Counter(review["rating"] for review in reviews)
    shown = list[str]()
    for rating in sorted(numbers, reverse=True):
        stars = "star" if rating == 1 else "stars"
        shown.append(f"{rating:g} {stars}: {numbers[rating]}")
    return ", ".join(shown)


# The reviews that an owner answers first.
FEW_STARS = 3


def _new_and_low(ledger: Ledger) -> Iterator[str]:
    new = ledger.reviews.keys() - ledger.before.keys()
    low = list[str]()
    for id in sorted(new):
        review = ledger.reviews[id]
        if review["rating"] <= FEW_STARS and review.get("verified") is not False:
            low.append(f"{review['rating']:g} by {described(review)}")
    if low:
        yield f"new with {FEW_STARS} stars or fewer: {named(low, ledger.options)}"


def _lowered(ledger: Ledger) -> Iterator[str]:
    """Reviews whose customers have taken stars back, down to few."""
    lowered = list[str]()
    for id in sorted(ledger.reviews.keys() & ledger.before.keys()):
        review = ledger.reviews[id]
        before = ledger.before[id]["rating"]
        if review["rating"] < before and review["rating"] <= FEW_STARS:
            lowered.append(f"{review['rating']:g} by {described(review)}")
    if lowered:
        yield f"now {FEW_STARS} stars or fewer: {named(lowered, ledger.options)}"


# ---- What is said once ----


def _once(ledger: Ledger, exports: Sequence[Export]) -> Iterator[str]:
    counts = ledger.left_out.copy()
    for export in exports:
        counts += export.counts
    for what, number in counts.items():
        yield f"{what}: {number}"
    for export in exports:
        yield from export.notes


def _named_reviews(ledger: Ledger, exports: Sequence[Export]) -> Iterator[str]:
    """What has happened in this run."""
    subjects = {f"removed, {reason}": names for reason, names in ledger.removed.items()}
    is_forgetting = ledger.options.forget or ledger.options.forget_author
    reason = "removed for good" if is_forgetting else "kept away by suppressed.txt"
    subjects[reason] = [*ledger.erased.values()]
    without_stars = list[str]()
    failed = list[str]()
    for export in exports:
        without_stars += export.without_stars
        failed += map(str, export.failed)
    subjects["without stars, not imported"] = without_stars
    subjects["faulty, not imported"] = failed
    for subject, names in subjects.items():
        if names:
            yield f"{subject}: {len(names)}: {named(names, ledger.options)}"


# ---- What is said until it is settled ----


def _until_settled(ledger: Ledger, exports: Sequence[Export]) -> Iterator[str]:
    yield from _lost_lines(ledger)
    yield from ledger.held
    yield from _tables_that_are_probably_whole(ledger, exports)
    for export in exports:
        yield from export.urgent_notes
    yield from _untold_zone(ledger)


def _lost_lines(ledger: Ledger) -> Iterator[str]:
    lost = ledger.stored.state.suppressed - len(ledger.stored.suppressed)
    if lost > 0:
        yield (
            f"suppressed.txt has lost {lost} lines since the last import: "
            "erased reviews may return"
        )


def _tables_that_are_probably_whole(
    ledger: Ledger, exports: Sequence[Export]
) -> Iterator[str]:
    for export in exports:
        for source in sorted(export.sources - export.covers.keys()):
            lacking = ledger.lacked_by(export, source)
            if lacking:
                names = [described(ledger.reviews[id]) for id in lacking]
                yield (
                    f"{export.file} has nearly all reviews of {source}, but lacks "
                    f"{len(lacking)}: {named(names, ledger.options)}"
                )
                yield (
                    "  If it has every review that still exists, say --complete: this "
                    "removes them, and is remembered for this header."
                )


def _untold_zone(ledger: Ledger) -> Iterator[str]:
    has_times = any("T" in review["date"] for review in ledger.reviews.values())
    if has_times and not ledger.options.zone:
        yield (
            "times are in UTC; give the time zone of the business once, "
            "as --zone Europe/Berlin"
        )


def _overwritten(ledger: Ledger, overwritten: Sequence[str]) -> Iterator[str]:
    if not overwritten:
        return
    shown = named([described(ledger.before[id]) for id in overwritten], ledger.options)
    yield (
        f"{REVIEWS_FILE} was edited; exports have overwritten fields of "
        f"{number_of('review', len(overwritten))}: {shown}"
    )
    file = ledger.options.data / ledger.stored.edited_copy
    yield (
        f"  The edited file is kept as {file}. "
        "To change reviews for good, use --redact and --forget."
    )
