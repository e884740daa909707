"""`reviewsd-import`: imports owners' exports into `reviews.json`, and counts insights.

This module reads and writes files. It knows no format (`exports.py`, `csv_reviews.py`) and no rule of merging
(`merging.py`), and fetches nothing. The daemon does not import it, but notices that a file has changed.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    sys.exit(
        "reviewsd-import runs on Linux, and for local use on macOS; on Windows it needs WSL"
    )

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from reviewslib import files
from reviewslib.dataset import counting
from reviewslib.dataset.contract import BadData, Contract, shipped_contract
from reviewslib.dataset.reading import INSIGHTS_FILE, REVIEWS_FILE
from reviewslib.dataset.reviews import load
from reviewslib.dataset.strict_json import Json, decode
from reviewslib.dataset.vocabulary import ENTITY_KINDS
from reviewslib.importer import erasure
from reviewslib.importer.cells import utc_text
from reviewslib.importer.csv_reviews import read_csv
from reviewslib.importer.erasure import REDACTED_FILE, SUPPRESSED_FILE
from reviewslib.importer.exports import Export, complete_pages
from reviewslib.importer.merging import Merged, merge
from reviewslib.importer.options import Options, parse, remembered
from reviewslib.importer.questions import NeedsDecision, refused
from reviewslib.importer.recognition import entries_of
from reviewslib.importer.state import DRAFT_FILE, STATE_FILE, encoded_state, read_state
from reviewslib.importer.stored import Stored
from reviewslib.importer.takeout import WANTED, kind_of_first_bytes, read_google
from reviewslib.links import ServiceUrls
from reviewslib.terminal import EXIT_BAD_DATA, CommandFailed, exit_status, say

Lines = list[str]  # of the report
TOLERANCE = timedelta(days=1)  # how far dates may be in the future
SYMLINK = "a symlink; give the file itself"


def read_exports(options: Options, contract: Contract) -> tuple[list[Export], Lines]:
    """The exports of a command, and lines about skipped files. Raises BadData and NeedsDecision."""
    exports = list[Export]()
    skipped = Lines()
    with reading(options.drop or Path()):
        in_folder = sorted(options.drop.iterdir()) if options.drop else ()
    for path in (
        *options.files,
        *(path for path in in_folder if not path.name.startswith(".")),
    ):
        try:
            exports.append(_read_export(path, options, contract))
        except (BadData, NeedsDecision) as fault:
            if not options.drop:
                raise
            advice = (
                "; import it once by hand"
                if isinstance(fault, NeedsDecision) and fault.flag
                else ""
            )
            skipped.append(f"skipped: {fault.lines()[0].rstrip('.:')}{advice}")
    if skipped and not exports:
        raise NeedsDecision([*skipped, "There is nothing to import."])
    if options.complete:
        complete_pages(exports)
    return exports, skipped


def _read_export(path: Path, options: Options, contract: Contract) -> Export:
    """The export in a file or a folder. Raises BadData and NeedsDecision."""
    with reading(path):
        if path.is_symlink():
            raise refused(str(path), SYMLINK)
        if path.is_dir():
            symlinks = list[Path]()
            export = read_google(
                files.in_folder(path, WANTED, symlinks), path, options, contract
            )
            export.notes += [f"skipped: {symlink}: {SYMLINK}" for symlink in symlinks]
            return export
        with files.opened(path) as file:
            if files.is_archive(file):
                return read_google(
                    files.in_archive(file, path, WANTED), path, options, contract
                )
            changed = os.fstat(file.fileno()).st_mtime
            data = files.read_whole(file, path)
    content = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if content.startswith((b"{", b"[")):
        member = files.Member(PurePosixPath(path), str(path), changed, data)
        return read_google([member], path, options, contract)
    kind = kind_of_first_bytes(content)
    if kind:
        raise refused(str(path), kind)
    return read_csv(
        data,
        str(path),
        utc_text(datetime.fromtimestamp(changed, UTC)),
        options,
        contract,
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an error of reading `path`, or a file in it, into BadData."""
    try:
        yield
    except OSError as error:
        raise refused(
            str(error.filename or path), f"cannot be read: {error.strerror}"
        ) from None


# ---- Data directory ----

SAMPLE = (
    b'"Larkspur Hollow Chiropractic"',
    b"01M7F1SV60XJ4PFV38D0FMZ6BZ",
)  # the business, an id of a review


def read_stored(directory: Path, contract: Contract, *, is_import: bool) -> Stored:
    """The content of a data directory. Raises BadData, also if an import would change the sample."""
    names = (REVIEWS_FILE, INSIGHTS_FILE, counting.EDITORIAL_FILE)
    reviews, insights, _ = contents = [_content(directory / name) for name in names]
    for name, content in zip(names, contents, strict=True):
        if is_import and content and any(mark in content for mark in SAMPLE):
            reason = "a file of the sample, which no import changes; choose another directory: --data my-data"
            raise refused(str(directory / name), reason)
    document: dict[str, Json] = {}
    if reviews is not None:
        load(contract, reviews, insights, ServiceUrls())
        document = decode(reviews)
    digest = hashlib.sha256(reviews or b"").hexdigest()
    state = read_state(
        _content(directory / STATE_FILE), _content(directory / DRAFT_FILE), digest
    )
    lines = [
        erasure.read_lines(name, _text(directory / name))
        for name in (SUPPRESSED_FILE, REDACTED_FILE)
    ]
    return Stored(document, digest, insights, state, *lines)


def _content(path: Path) -> bytes | None:
    """The content of a file, None without the file. Raises BadData."""
    with reading(path):
        return files.content_of(path)


def _text(path: Path) -> str:
    """The text of a file, empty without the file. Raises BadData."""
    try:
        return (_content(path) or b"").decode("utf-8-sig")
    except UnicodeError:
        raise refused(path.name, "not UTF-8") from None


def append_lines(path: Path, lines: Iterable[str]) -> None:
    """Append the lines that the file does not have yet."""
    before = _text(path).splitlines()
    present = {*map(str.strip, before)}
    if added := [line for line in dict.fromkeys(lines) if line not in present]:
        files.write(path, "".join(f"{line}\n" for line in (*before, *added)).encode())


def write_import(
    directory: Path, stored: Stored, merged: Merged, reviews: bytes | None
) -> None:
    """Write the files so that a kill leaves either the old reviews and state, or the new ones.

    `reviews` is the new content of reviews.json, None if it stays.
    suppressed.txt and redacted.txt come first, since they apply to both. A draft of the state has the digest
    of the new reviews.json, and is renamed after reviews.json has been replaced.
    """
    digest = hashlib.sha256(reviews).hexdigest() if reviews else stored.reviews_digest
    append_lines(directory / SUPPRESSED_FILE, merged.suppressed)
    append_lines(directory / REDACTED_FILE, stored.redactions)
    if merged.is_overwritten:
        files.write(
            directory / stored.edited_copy, (directory / REVIEWS_FILE).read_bytes()
        )
    files.write(
        directory / DRAFT_FILE,
        encoded_state(replace(merged.state, reviews_digest=digest)),
    )
    if reviews:
        files.write(directory / REVIEWS_FILE, reviews)
    files.rename(directory / DRAFT_FILE, directory / STATE_FILE)


# ---- Import ----


def run(options: Options, contract: Contract) -> Iterator[Lines]:
    """Carry out a command: import or erase, write files that the daemon accepts, and count insights.

    Yields the report of the import once its files are written, then the report of the count. Raises BadData,
    NeedsDecision and OSError.
    """
    stored = read_stored(options.data, contract, is_import=not options.count)
    if options.count:
        if not stored.document:
            raise refused(REVIEWS_FILE, f"no such file in {options.data}")
        yield count(options, contract, counted_contents(options))
        return
    given = stored.state.settings | remembered(options)
    latest = utc_text(datetime.now(UTC) + TOLERANCE)
    options = replace(options, **given, latest=latest, headers=stored.state.headers)
    stored, lines = _erase(options, stored)
    exports, skipped = read_exports(options, contract)
    merged = merge(stored, exports, options, contract)
    exports.clear()  # their records would take memory beside the check below
    reviews = counting.readable(merged.document)
    lines += [*merged.report, *skipped]
    if is_changed := merged.document != stored.document:
        warnings = load(contract, reviews, stored.insights, ServiceUrls()).warnings
        lines += [f"warning: {warning}" for warning in warnings]
    if not options.dry_run:
        write_import(options.data, stored, merged, reviews if is_changed else None)
    yield [
        *lines,
        _outcome(
            options,
            REVIEWS_FILE,
            len(merged.document["reviews"]),
            is_changed=is_changed,
        ),
    ]
    contents = counted_contents(options) | {
        REVIEWS_FILE: reviews
    }  # in a dry run, the file has the old ones
    if counting.is_wanted(contents):
        yield count(options, contract, contents)


def _outcome(options: Options, file: str, number: int, *, is_changed: bool) -> str:
    """The last line of a report."""
    return f"{options.data / file}: {'changed' if is_changed else 'unchanged'}, {number} review(s)"


def _erase(options: Options, stored: Stored) -> tuple[Stored, Lines]:
    """The stored files with the lines that --forget and --redact add, and remarks."""
    reviews = stored.reviews
    remarks = Lines()
    name = options.forget or options.forget_author
    entries = entries_of(reviews, stored.entries()) if name or options.redact else {}
    if options.redact:
        redaction = erasure.redaction_of(reviews, entries, *options.redact)
        return stored._replace(redactions=[*stored.redactions, redaction]), remarks
    if name:
        forget = erasure.forget_review if options.forget else erasure.forget_author
        lines, remarks = forget(reviews, entries, name)
        copies = sorted(options.data.glob(f"{REVIEWS_FILE}.edited-*"))
        remarks += [
            f"{copy} may still have the removed reviews; delete it if so"
            for copy in copies
        ]
        stored = stored._replace(suppressed=[*stored.suppressed, *lines])
    return stored, remarks


def counted_contents(options: Options) -> dict[str, bytes | None]:
    """The contents of the files from which insights are counted. Raises BadData."""
    return {name: _content(options.data / name) for name in counting.COUNTED_FILES}


def count(options: Options, contract: Contract, contents: counting.Contents) -> Lines:
    """Make insights.json from the contents of the data files."""
    new, insights, lines = counting.count(contract, contents, datetime.now(UTC))
    for name, content in new.items() if not options.dry_run else ():
        files.write(options.data / name, content)
    for kind in ENTITY_KINDS if options.count else ():
        for entity in insights["entities"][kind]:
            if (number := entity.get("mention_count")) is not None:
                lines.append(f"{kind.replace('_', ' ')}: {entity['label']}: {number}")
    is_changed = INSIGHTS_FILE in new
    return [
        *lines,
        _outcome(
            options, INSIGHTS_FILE, insights["review_count"], is_changed=is_changed
        ),
    ]


# ---- Command line ----


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    return exit_status(lambda: carry_out(parse(arguments)))


def carry_out(options: Options) -> None:
    """Run a command and print its reports. Raises CommandFailed and OSError."""
    outcome = "Nothing was written."
    try:
        with files.locked(options.data, is_dry=options.dry_run):
            for lines in run(options, shipped_contract()):
                say(*lines)
                if not options.dry_run:
                    outcome = (
                        f"The reviews were imported; {INSIGHTS_FILE} stays as it is."
                    )
    except (BadData, NeedsDecision) as fault:
        raise CommandFailed(*fault.lines(), outcome, status=EXIT_BAD_DATA) from None
    if options.dry_run:
        say("A dry run: nothing was written.")


if __name__ == "__main__":
    sys.exit(main())
