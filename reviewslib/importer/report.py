"""The report of an import: counts, then remarks that the owner may want to check.

This module is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reviewslib.dataset.reading import REVIEWS_FILE
from reviewslib.importer.exports import Export
from reviewslib.importer.ledger import Ledger, described, named


def report_lines(
    ledger: Ledger, exports: Sequence[Export], changed: Sequence[str]
) -> list[str]:
    """The report; `changed` are the ids of stored reviews that are not as before."""
    return [
        *_counts(ledger, changed),
        *_named_reviews(ledger, exports),
        *_lost_lines(ledger),
        *ledger.notes,
        *(note for export in exports for note in export.notes),
        *_untold_zone(ledger),
        *_overwritten(ledger, changed),
    ]


def _counts(ledger: Ledger, changed: Sequence[str]) -> Iterator[str]:
    reviews = ledger.reviews
    before = ledger.before.keys()
    hidden = [review for review in reviews.values() if review.get("verified") is False]
    counts = {
        "new": len(reviews.keys() - before),
        "changed": len(reviews.keys() & changed),
        "unchanged": len(before - changed),
        **ledger.left_out,
        "not verified or not published, so not served": len(hidden),
    }
    for what, number in counts.items():
        if number:
            yield f"{what}: {number}"


def _named_reviews(ledger: Ledger, exports: Sequence[Export]) -> Iterator[str]:
    without_stars = [name for export in exports for name in export.without_stars]
    failed = [str(fault) for export in exports for fault in export.failed]
    subjects = {
        "removed, since newer complete exports lack them "
        "or their location is not chosen": ledger.removed,
        "kept away by suppressed.txt": ledger.erased,
        "without stars, not imported": without_stars,
        "faulty, not imported": failed,
    }
    for subject, names in subjects.items():
        if names:
            yield f"{subject}: {len(names)}: {named(names, ledger.options)}"


def _lost_lines(ledger: Ledger) -> Iterator[str]:
    lost = ledger.stored.state.suppressed - len(ledger.stored.suppressed)
    if lost > 0:
        yield (
            f"suppressed.txt has lost {lost} lines since the last import: "
            "erased reviews may return"
        )


def _untold_zone(ledger: Ledger) -> Iterator[str]:
    has_times = any("T" in review["date"] for review in ledger.reviews.values())
    if has_times and not ledger.options.zone:
        yield (
            "times are in UTC; give the time zone of the business once, "
            "as --zone Europe/Berlin"
        )


def _overwritten(ledger: Ledger, changed: Sequence[str]) -> Iterator[str]:
    copy = ledger.stored.edited_copy
    if not copy or not changed:
        return
    shown = named([described(ledger.before[id]) for id in changed], ledger.options)
    yield (
        f"{REVIEWS_FILE} was edited; exports have overwritten fields of "
        f"{len(changed)} reviews: {shown}"
    )
    file = ledger.options.data / copy
    yield (
        f"  The edited file is kept as {file}. "
        "To change reviews for good, use --redact and --forget."
    )
