"""`reviewsd-import`: imports owners' exports into `reviews.json`, and counts insights.

This module puts the steps together, and prints their reports. It knows no format and no
rule of merging, and fetches nothing. The daemon does not import it, but notices that a
file has changed. Its sections: import, erasure, counting, the command line.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    sys.exit(
        "reviewsd-import runs on Linux, and for local use on macOS; on Windows it needs WSL"
    )

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reviewslib import files
from reviewslib.dataset import counting
from reviewslib.dataset.contract import BadData, Contract, shipped_contract
from reviewslib.dataset.moments import utc_text
from reviewslib.dataset.reading import INSIGHTS_FILE, REVIEWS_FILE
from reviewslib.dataset.reviews import load
from reviewslib.dataset.vocabulary import ENTITY_KINDS
from reviewslib.importer import erasure
from reviewslib.importer.data_directory import (
    check_size,
    content_of,
    copies_in,
    delete_copies,
    read_stored,
    write_import,
)
from reviewslib.importer.merging import Merged, is_erasure, merge
from reviewslib.importer.options import Options, parse, remembered
from reviewslib.importer.questions import NeedsDecision, refused
from reviewslib.importer.reading import Settling, read_exports
from reviewslib.importer.recognition import entries_of
from reviewslib.importer.stored import Stored
from reviewslib.links import ServiceUrls
from reviewslib.terminal import EXIT_BAD_DATA, CommandFailed, exit_status, say

Lines = list[str]  # of the report

# How far dates may be in the future: a customer's zone may be a day ahead.
TOLERANCE = timedelta(days=1)

# ---- Import ----


class FilesRefused(ValueError):
    """Some files of a drop folder were refused; the others are imported."""


def run(
    options: Options, contract: Contract, settling: Settling | None = None
) -> Iterator[Lines]:
    """Carry out a command: import or erase, write what the daemon accepts, and count.

    Yields the report of the import once its files are written, then the report of the
    count. Raises BadData, NeedsDecision and OSError; FilesRefused after both.
    """
    stored = read_stored(options.data, contract, is_import=not options.count)
    if options.count:
        if not stored.document:
            raise refused(REVIEWS_FILE, f"no such file in {options.data}")
        yield count(options, contract, counted_contents(options))
        return
    options = _with_memory(options, stored)
    stored, lines = _erase(options, stored)
    found = read_exports(options, contract, settling or Settling())
    may_remove = not found.refused
    merged = merge(stored, found.exports, options, contract, may_remove=may_remove)
    found.exports.clear()  # their records would take memory beside the check below
    reviews = counting.readable(merged.document)
    lines += [*merged.report, *found.lines()]
    lines += _write_what_changed(options, stored, merged, reviews, contract)
    yield lines
    # In a dry run, the file has the old reviews.
    contents = counted_contents(options) | {REVIEWS_FILE: reviews}
    if counting.is_wanted(contents):
        yield count(options, contract, contents)
    if found.refused:
        raise FilesRefused(
            f"{len(found.refused)} file(s) were refused, and nothing was removed."
        )


def _write_what_changed(
    options: Options,
    stored: Stored,
    merged: Merged,
    reviews: bytes,
    contract: Contract,
) -> Lines:
    """Write an import that the daemon accepts; warnings, and the outcome.

    `reviews` is the content for reviews.json. Raises BadData and OSError.
    """
    lines = Lines()
    is_changed = merged.document != stored.document
    if is_changed:
        check_size(REVIEWS_FILE, reviews)
        warnings = load(contract, reviews, stored.insights, ServiceUrls()).warnings
        lines += [f"warning: {warning}" for warning in warnings]
    if not options.dry_run:
        write_import(options.data, stored, merged, reviews if is_changed else None)
        if is_erasure(options):
            delete_copies(options.data)
    number = len(merged.document["reviews"])
    return [*lines, _outcome(options, REVIEWS_FILE, number, is_changed=is_changed)]


def _with_memory(options: Options, stored: Stored) -> Options:
    """The options, completed by those that earlier commands gave."""
    given = stored.state.settings | remembered(options)
    latest = utc_text(datetime.now(UTC) + TOLERANCE)
    return replace(options, **given, latest=latest, headers=stored.state.headers)


def _outcome(options: Options, file: str, number: int, *, is_changed: bool) -> str:
    """The last line of a report."""
    change = "changed" if is_changed else "unchanged"
    return f"{options.data / file}: {change}, {number} review(s)"


# ---- Erasure ----


def _erase(options: Options, stored: Stored) -> tuple[Stored, Lines]:
    """The stored files with the lines that --forget and --redact add, and remarks."""
    if not is_erasure(options):
        return stored, []
    reviews = stored.reviews
    entries = entries_of(reviews, stored.entries())
    deleted = [f"deleted: {copy}" for copy in copies_in(options.data)]
    if options.redact:
        redaction = erasure.redaction_of(reviews, entries, *options.redact)
        redactions = [*stored.redactions, redaction]
        return stored._replace(redactions=redactions), deleted
    if options.forget:
        lines, remarks = erasure.forget_review(reviews, entries, options.forget)
    else:
        lines, remarks = erasure.forget_author(
            reviews, entries, options.forget_author, anyway=options.anyway
        )
    suppressed = [*stored.suppressed, *lines]
    return stored._replace(suppressed=suppressed), [*remarks, *deleted]


# ---- Counting ----


def counted_contents(options: Options) -> dict[str, bytes | None]:
    """The contents of the files from which insights are counted. Raises BadData."""
    return {name: content_of(options.data / name) for name in counting.COUNTED_FILES}


def count(options: Options, contract: Contract, contents: counting.Contents) -> Lines:
    """Make insights.json from the contents of the data files. Raises BadData."""
    new, insights, lines = counting.count(contract, contents, datetime.now(UTC))
    for name, content in new.items():
        check_size(name, content)
    if not options.dry_run:
        for name, content in new.items():
            files.write(options.data / name, content)
    if options.count:
        for kind in ENTITY_KINDS:
            for entity in insights["entities"][kind]:
                number = entity.get("mention_count")
                if number is not None:
                    subject = kind.replace("_", " ")
                    lines.append(f"{subject}: {entity['label']}: {number}")
    number = insights["review_count"]
    is_changed = INSIGHTS_FILE in new
    return [*lines, _outcome(options, INSIGHTS_FILE, number, is_changed=is_changed)]


# ---- Command line ----


def main(
    arguments: Sequence[str] | None = None, settling: Settling | None = None
) -> int:
    """Run the command line; the exit status."""
    return exit_status(lambda: carry_out(parse(arguments), settling))


def carry_out(options: Options, settling: Settling | None = None) -> None:
    """Run a command and print its reports. Raises CommandFailed and OSError."""
    outcome = "Nothing was written."
    try:
        with files.locked(options.data, is_dry=options.dry_run):
            for lines in run(options, shipped_contract(), settling):
                say(*lines)
                if not options.dry_run:
                    outcome = (
                        f"The reviews were imported; {INSIGHTS_FILE} stays as it is."
                    )
    except FilesRefused as refusal:
        raise CommandFailed(str(refusal), status=EXIT_BAD_DATA) from None
    except (BadData, NeedsDecision) as fault:
        raise CommandFailed(*fault.lines(), outcome, status=EXIT_BAD_DATA) from None
    if options.dry_run:
        say("A dry run: nothing was written.")


if __name__ == "__main__":
    sys.exit(main())
