"""`reviewsd-import`: imports owners' exports into `reviews.json`, and counts insights.

This module puts the steps together, and prints their reports. It knows no format and no
rule of merging. The daemon does not import it, but notices that a file has changed.

Sections: import - erasure - counting - command line.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    sys.exit(
        "reviewsd-import runs on Linux, and for local use on macOS; on Windows it needs WSL"
    )

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reviewslib import files
from reviewslib.dataset import counting
from reviewslib.dataset.contract import Contract, shipped_contract
from reviewslib.dataset.moments import utc_text
from reviewslib.dataset.reading import INSIGHTS_FILE, REVIEWS_FILE
from reviewslib.dataset.reviews import load
from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.vocabulary import ENTITY_KINDS
from reviewslib.faults import BadData
from reviewslib.importer import erasure
from reviewslib.importer.data_directory import (
    check_stored_size,
    copies_in,
    delete_copies,
    read_stored,
    stored_content,
    write_import,
    write_newest_export,
)
from reviewslib.importer.google import Answers, ask_google
from reviewslib.importer.google_client import Connection
from reviewslib.importer.google_faults import GoogleFault
from reviewslib.importer.google_key import log_in
from reviewslib.importer.merging import Merged, is_erasure, merge
from reviewslib.importer.options import Options, parse, remembered
from reviewslib.importer.profile import follow
from reviewslib.importer.questions import NeedsDecision, refused
from reviewslib.importer.reading import Found, Settling, read_exports
from reviewslib.importer.recognition import entries_of
from reviewslib.importer.stored import Stored
from reviewslib.links import ServiceUrls
from reviewslib.terminal import (
    EXIT_BAD_DATA,
    EXIT_FAILURE,
    CommandFailed,
    exit_status,
    number_of,
    say,
)

Lines = list[str]  # of the report

# How far dates may be in the future: a customer's zone may be a day ahead.
TOLERANCE = timedelta(days=1)

# ---- Import ----


class FilesRefused(ValueError):
    """Some files of a drop folder were refused; the others are imported."""


def run(
    options: Options,
    contract: Contract,
    settling: Settling | None = None,
    answers: Answers | None = None,
) -> Iterator[Lines]:
    """Carry out a command: import or erase, write what the daemon accepts, and count.

    `answers` are Google's, asked for before the data directory was locked.
    Yields the report of the import once its files are written, then the report of the
    count. Raises BadData, NeedsDecision and OSError; FilesRefused after both.
    """
    stored = read_stored(options.data, contract, is_import=not options.count)
    if options.count:
        yield _count_alone(options, contract, stored)
    else:
        settling = settling or Settling()
        yield from _import(options, contract, stored, settling, answers)


def _import(
    options: Options,
    contract: Contract,
    stored: Stored,
    settling: Settling,
    answers: Answers | None,
) -> Iterator[Lines]:
    """Import or erase, then count. Raises what `run` raises."""
    options = _with_memory(options, stored)
    stored, remarks = _erase(options, stored)
    found = read_exports(options, contract, settling)
    # Merging changes the entries of the state.
    lasting = stored.state.lasting()
    merged = _merge(options, contract, stored, found, answers)
    # Which of many questions were answered is worth writing: the next run asks the
    # others.
    may_be_idle = answers is not None and not answers.is_cut
    if may_be_idle and _is_nothing_new(merged, stored, lasting):
        yield [*remarks, *_nothing_new(options, stored, merged)]
        return
    reviews = counting.readable(merged.document)
    lines = [*remarks, *merged.report, *found.lines()]
    yield lines + _write_what_changed(options, stored, merged, reviews, contract)
    yield from _count_again(options, contract, reviews)
    _check_that_no_file_was_refused(found)


def _merge(
    options: Options,
    contract: Contract,
    stored: Stored,
    found: Found,
    answers: Answers | None,
) -> Merged:
    """What was stored with the exports merged into it. Raises NeedsDecision."""
    exports = found.exports
    if answers:
        exports.extend(answers.exports)
        options = replace(options, location=answers.locations)
    may_remove = not found.refused
    merged = merge(stored, exports, options, contract, may_remove=may_remove)
    # Their records would take memory beside the check before writing.
    exports.clear()
    if answers:
        return _after_profile(merged, stored, answers, options, contract)
    return merged


def _check_that_no_file_was_refused(found: Found) -> None:
    """Raises FilesRefused."""
    number = len(found.refused)
    if number:
        raise FilesRefused(f"{number_of('file', number)} refused, and nothing removed.")


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
        check_stored_size(REVIEWS_FILE, reviews)
        # Insights that are counted again in a moment are not worth a warning.
        is_counted = counting.is_wanted(counted_contents(options))
        insights = None if is_counted else stored.insights
        warnings = load(contract, reviews, insights, ServiceUrls()).warnings
        lines += [f"warning: {warning}" for warning in warnings]
    if not options.dry_run:
        write_import(options.data, stored, merged, reviews if is_changed else None)
        if is_erasure(options):
            delete_copies(options.data)
    number = len(merged.document["reviews"])
    return [*lines, _outcome(options, REVIEWS_FILE, number, is_changed=is_changed)]


def _after_profile(
    merged: Merged,
    stored: Stored,
    answers: Answers,
    options: Options,
    contract: Contract,
) -> Merged:
    """What was merged, with a `business` that follows Google's profile."""
    if answers.profile is None:
        return merged
    made_up = list[str]()
    if not stored.document and not options.name:
        # The name of a new file was made up from a title.
        made_up.append("name")
    followed = follow(
        merged.document["business"],
        answers.profile,
        stored.state.profile,
        contract,
        made_up=made_up,
    )
    return merged._replace(
        document=merged.document | {"business": followed.business},
        state=replace(merged.state, profile=followed.digests),
        report=[*merged.report, *followed.lines],
    )


def _is_nothing_new(
    merged: Merged, stored: Stored, lasting: tuple[object, ...]
) -> bool:
    """Whether an import has brought nothing; `lasting` is of the state before it."""
    is_same = merged.document == stored.document
    return is_same and merged.state.lasting() == lasting


def _nothing_new(options: Options, stored: Stored, merged: Merged) -> Lines:
    """Write the moment of the newest export alone; what is still to be settled."""
    if not options.dry_run:
        write_newest_export(options.data, stored, merged.state.newest_export)
    settled = "unchanged: "
    lines = [line for line in merged.report if not line.startswith(settled)]
    reviews = number_of("review", len(merged.document["reviews"]))
    return [*lines, f"{options.data / REVIEWS_FILE}: nothing new, {reviews}"]


def _with_memory(options: Options, stored: Stored) -> Options:
    """The options, completed by those that earlier commands gave."""
    given = stored.state.settings | remembered(options)
    latest = utc_text(datetime.now(UTC) + TOLERANCE)
    return replace(options, **given, latest=latest, headers=stored.state.headers)


def _outcome(options: Options, file: str, number: int, *, is_changed: bool) -> str:
    """The last line of a report."""
    change = "changed" if is_changed else "unchanged"
    return f"{options.data / file}: {change}, {number_of('review', number)}"


# ---- Erasure ----


def _erase(options: Options, stored: Stored) -> tuple[Stored, Lines]:
    """The stored files with the lines that --forget and --redact add, and remarks."""
    if not is_erasure(options):
        return stored, []
    deleted = [f"deleted: {copy}" for copy in copies_in(options.data)]
    if options.redact:
        return _with_redaction(options, stored), deleted
    lines, remarks = _lines_to_forget(options, stored)
    suppressed = [*stored.suppressed, *lines]
    return stored._replace(suppressed=suppressed), [*remarks, *deleted]


def _with_redaction(options: Options, stored: Stored) -> Stored:
    """The stored files with the line of --redact. Raises NeedsDecision."""
    reviews = stored.reviews
    entries = entries_of(reviews, stored.entries())
    redaction = erasure.redaction_of(reviews, entries, *options.redact)
    return stored._replace(redactions=[*stored.redactions, redaction])


def _lines_to_forget(options: Options, stored: Stored) -> tuple[Lines, Lines]:
    """The lines for suppressed.txt, and remarks. Raises NeedsDecision."""
    reviews = stored.reviews
    entries = entries_of(reviews, stored.entries())
    if options.forget:
        return erasure.forget_review(reviews, entries, options.forget)
    return erasure.forget_author(
        reviews, entries, options.forget_author, anyway=options.anyway
    )


# ---- Counting ----


def counted_contents(options: Options) -> dict[str, bytes | None]:
    """The contents of the files from which insights are counted. Raises BadData."""
    return {
        name: stored_content(options.data / name) for name in counting.COUNTED_FILES
    }


def _count_alone(options: Options, contract: Contract, stored: Stored) -> Lines:
    """The report of a count without an import. Raises BadData."""
    if not stored.document:
        raise refused(REVIEWS_FILE, f"no such file in {options.data}")
    return count_insights(options, contract, counted_contents(options))


def _count_again(
    options: Options, contract: Contract, reviews: bytes
) -> Iterator[Lines]:
    """The report of a count after an import, if insights were counted before.

    `reviews` is the content of reviews.json: in a dry run, the file has the old one.
    Raises BadData.
    """
    contents = counted_contents(options) | {REVIEWS_FILE: reviews}
    if counting.is_wanted(contents):
        yield count_insights(options, contract, contents)


def count_insights(
    options: Options, contract: Contract, contents: counting.Contents
) -> Lines:
    """Make insights.json from the contents of the data files. Raises BadData."""
    new, insights, lines = counting.count(contract, contents, datetime.now(UTC))
    for name, content in new.items():
        check_stored_size(name, content)
    if not options.dry_run:
        for name, content in new.items():
            files.write(options.data / name, content)
    if options.count:
        lines += _counted_mentions(insights)
    number = insights["review_count"]
    is_changed = INSIGHTS_FILE in new
    return [*lines, _outcome(options, INSIGHTS_FILE, number, is_changed=is_changed)]


def _counted_mentions(insights: Object) -> Iterator[str]:
    """How often people, services and the like are mentioned, where this was counted."""
    for kind in ENTITY_KINDS:
        subject = kind.replace("_", " ")
        for entity in insights["entities"][kind]:
            number = entity.get("mention_count")
            if number is not None:
                yield f"{subject}: {entity['label']}: {number}"


# ---- Command line ----


def main(
    arguments: Sequence[str] | None = None,
    settling: Settling | None = None,
    connection: Connection | None = None,
) -> int:
    """Run the command line; the exit status. Tests give a `connection` to a fake."""
    return exit_status(lambda: carry_out(parse(arguments), settling, connection))


def carry_out(
    options: Options,
    settling: Settling | None = None,
    connection: Connection | None = None,
) -> None:
    """Run a command and print its reports. Raises CommandFailed and OSError."""
    connection = connection or Connection(progress=_say_on_terminal)
    if options.google_login and options.google:
        log_in(options.google_login, options.google, connection.endpoints, say)
        say(f"The key is in {options.google}; only its owner can read it.")
        return
    outcome = "Nothing was written."
    try:
        # Before the lock: a slow answer must not keep an erasure waiting.
        answers = _ask(options, connection)
        with files.locked(options.data, is_dry=options.dry_run), _writing():
            for lines in run(options, shipped_contract(), settling, answers):
                say(*lines)
                if not options.dry_run:
                    outcome = IMPORTED
    except (FilesRefused, GoogleFault, BadData, NeedsDecision) as fault:
        raise _failure(fault, outcome) from None
    if options.dry_run:
        say("A dry run: nothing was written.")


# After the first report, only counting can fail.
IMPORTED = f"The reviews were imported; {INSIGHTS_FILE} stays as it is."


def _failure(
    fault: FilesRefused | GoogleFault | BadData | NeedsDecision, outcome: str
) -> CommandFailed:
    """What a command ends with; `outcome` says what it has written until then."""
    if isinstance(fault, FilesRefused):
        return CommandFailed(str(fault), status=EXIT_BAD_DATA)
    if isinstance(fault, GoogleFault):
        return CommandFailed(*fault.lines, outcome, status=fault.status)
    return CommandFailed(*fault.lines(), outcome, status=EXIT_BAD_DATA)


@contextmanager
def _writing() -> Iterator[None]:
    """Say of a file that cannot be written, as on a full disk, what to do about it."""
    try:
        yield
    except OSError as error:
        # The output itself, which a command ends with by itself.
        if error.filename is None:
            raise
        raise CommandFailed(
            f"{error.filename}: {error.strerror}",
            "No file is damaged. Put this right, and give the command again.",
            status=EXIT_FAILURE,
        ) from None


def _ask(options: Options, connection: Connection) -> Answers | None:
    """Google's answers, if the command asks for any."""
    key_file = options.google
    if key_file is None:
        return None
    contract = shipped_contract()
    stored = read_stored(options.data, contract, is_import=True)
    options = _with_memory(options, stored)
    return ask_google(key_file, options, stored, contract, connection)


def _say_on_terminal(line: str) -> None:
    """Tell how far a long listing is, unless a timer or a pipe would keep the lines."""
    if sys.stderr and sys.stderr.isatty():
        say(line, stream=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
