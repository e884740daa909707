"""`reviewsd-import`: imports owners' exports into `reviews.json`, and counts insights.

This module reads and writes files. It knows no format (`exports.py`, `csv_reviews.py`) and no rule of merging
(`merging.py`), and fetches nothing. The daemon does not import it, but notices that a file has changed.

Sections: Reading - Data directory - Import - Insights - Command line
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    sys.exit("reviewsd-import runs on Linux, and for local use on macOS; on Windows it needs WSL")

import hashlib
import io
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TextIO

from reviewslib import files
from reviewslib.dataset import counting
from reviewslib.dataset.contract import BadData, Contract, printable, shipped_contract
from reviewslib.dataset.insights import ENTITY_KINDS
from reviewslib.dataset.reviews import INSIGHTS_FILE, REVIEWS_FILE, load
from reviewslib.dataset.strict_json import Json, decode
from reviewslib.importer import erasure
from reviewslib.importer.cells import utc_text
from reviewslib.importer.csv_reviews import read_csv
from reviewslib.importer.erasure import REDACTED_FILE, SUPPRESSED_FILE
from reviewslib.importer.exports import (
    WANTED,
    Export,
    NeedsDecision,
    complete_pages,
    kind_of,
    read_google,
    refused,
)
from reviewslib.importer.merging import Merged, Stored, entries_of, merge
from reviewslib.importer.options import Options, parse
from reviewslib.importer.state import DRAFT_FILE, STATE_FILE, State, encoded_state, read_state
from reviewslib.links import ServiceUrls

EXIT_SUCCESS, EXIT_FAILURE, EXIT_BAD_DATA, EXIT_STOPPED = 0, 1, 78, 130  # argparse exits with 2
Lines = list[str]  # of the report
TOLERANCE = timedelta(days=1)  # how far dates may be in the future

# ---- Reading: files, and the wanted members of folders and archives ----


def read_exports(options: Options, contract: Contract) -> tuple[list[Export], Lines]:
    """The exports of a command, and lines about skipped files. Raises BadData and NeedsDecision."""
    exports, skipped = list[Export](), Lines()
    for path in dict.fromkeys(paths_to_read(options)):
        try:
            export = _read_export(path, options)
            export.check(contract, options.latest)
            exports.append(export)
        except (BadData, NeedsDecision) as fault:
            if not options.drop:
                raise
            lines = fault.lines()
            if isinstance(fault, NeedsDecision):
                lines = [lines[0].rstrip(".:") + ("; import it once by hand" if fault.flag else "")]
            skipped += [f"skipped: {line}" for line in lines]
    if not exports and (options.files or options.drop):
        raise NeedsDecision([*skipped, "There is nothing to import."])
    if options.complete:
        complete_pages(exports)
    return exports, skipped


def paths_to_read(options: Options) -> Sequence[Path]:
    """The files of the command, or all in the drop folder except hidden ones."""
    if not options.drop:
        return options.files
    return [path for path in sorted(options.drop.iterdir()) if not path.name.startswith(".")]


def _read_export(path: Path, options: Options) -> Export:
    """The export in a file or a folder. Raises BadData and NeedsDecision."""
    with reading(path):
        if path.is_symlink():
            raise refused(str(path), SYMLINK)
        if path.is_dir():
            symlinks = list[Path]()
            export = read_google(files.in_folder(path, WANTED, symlinks), path, options)
            export.notes += [f"skipped: {symlink}: {SYMLINK}" for symlink in symlinks]
            return export
        with files.opened(path) as file:
            if files.is_archive(file):
                return read_google(files.in_archive(file, path, WANTED), path, options)
            changed = os.fstat(file.fileno()).st_mtime
            data = files.read_whole(file, path)
    content = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if content.startswith((b"{", b"[")):
        return read_google([files.Member(PurePosixPath(path), str(path), changed, data)], path, options)
    if kind := kind_of("first_bytes", lambda mark: content.startswith(mark.encode("latin-1"))):
        raise refused(str(path), kind)
    return read_csv(data, str(path), utc_text(datetime.fromtimestamp(changed, UTC)), options)


SYMLINK = "a symlink; give the file itself"


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an error of reading `path`, or a file in it, into BadData."""
    try:
        yield
    except OSError as error:
        raise refused(str(error.filename or path), f"cannot be read: {error.strerror}") from None


# ---- Data directory ----

SAMPLE = (b'"Larkspur Hollow Chiropractic"', b"01M7F1SV60XJ4PFV38D0FMZ6BZ")  # the business, an id of a review


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
    digest = file_digest(reviews)
    state = read_state(_content(directory / STATE_FILE), _content(directory / DRAFT_FILE), digest)
    suppressed = erasure.read_suppressed(_text(directory / SUPPRESSED_FILE))
    redactions = erasure.read_redacted(_text(directory / REDACTED_FILE))
    return Stored(document, digest, insights, state, suppressed, redactions)


def _content(path: Path) -> bytes | None:
    """The content of a file, None without the file. Raises BadData."""
    with reading(path):
        return files.read_unchanging(path)[0] if path.exists() else None


def _text(path: Path) -> str:
    """The text of a file, empty without the file. Raises BadData."""
    try:
        return (_content(path) or b"").decode("utf-8-sig")
    except UnicodeError:
        raise refused(path.name, "not UTF-8") from None


def file_digest(content: bytes | None) -> str:
    """SHA-256 of a file, empty without the file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def append_lines(path: Path, lines: Iterable[str]) -> None:
    """Append the lines that the file does not have yet."""
    before = _text(path).splitlines()
    present = {*map(str.strip, before)}
    if added := [line for line in dict.fromkeys(lines) if line not in present]:
        files.write(path, "".join(f"{line}\n" for line in (*before, *added)).encode())


def write_import(options: Options, stored: Stored, merged: Merged) -> None:
    """Write the files so that a kill leaves either the old reviews and state, or the new ones.

    suppressed.txt and redacted.txt come first, since they apply to both. A draft of the state has the digest
    of the new reviews.json, and is renamed after reviews.json has been replaced.
    """
    reviews, is_changed = counting.readable(merged.document), merged.document != stored.document
    digest, directory = file_digest(reviews) if is_changed else stored.reviews_digest, options.data
    append_lines(directory / SUPPRESSED_FILE, merged.suppressed)
    append_lines(directory / REDACTED_FILE, [redaction.line for redaction in stored.redactions])
    if merged.overwritten:
        files.write(directory / stored.edited_copy, (directory / REVIEWS_FILE).read_bytes())
    files.write(directory / DRAFT_FILE, encoded_state(replace(merged.state, reviews_digest=digest)))
    if is_changed:
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
        yield count(options, contract, stored.document)
        return
    if options.drop and not paths_to_read(options):
        yield [f"{options.drop} is empty"]
        return
    options = completed_options(options, stored.state)
    stored, lines = _erase(options, stored)
    exports, skipped = read_exports(options, contract)
    merged = merge(stored, exports, options, contract)
    exports.clear()  # their records would take memory beside the check below
    lines += [*merged.report, *skipped]
    if is_changed := merged.document != stored.document:
        warnings = load(contract, counting.readable(merged.document), stored.insights, ServiceUrls()).warnings
        lines += [f"warning: {warning}" for warning in warnings]
    if not options.dry_run:
        write_import(options, stored, merged)
    yield [*lines, _outcome(options, REVIEWS_FILE, len(merged.document["reviews"]), is_changed=is_changed)]
    if counting.is_wanted({name: _content(options.data / name) for name in counting.COUNTED_FILES}):
        yield count(options, contract, merged.document)


def _outcome(options: Options, file: str, number: int, *, is_changed: bool) -> str:
    """The last line of a report."""
    return f"{options.data / file}: {'changed' if is_changed else 'unchanged'}, {number} review(s)"


def completed_options(options: Options, state: State) -> Options:
    """The options, completed by remembered settings and the clock."""
    return replace(
        options,
        zone=options.zone or state.zone,
        short_names=state.short_names if options.short_names is None else options.short_names,
        avatars=(state.avatars or None) if options.avatars is None else options.avatars,
        latest=utc_text(datetime.now(UTC) + TOLERANCE),
        headers=state.headers,
    )


def _erase(options: Options, stored: Stored) -> tuple[Stored, Lines]:
    """The stored files with the lines that --forget and --redact add, and remarks."""
    reviews, entries = stored.reviews, entries_of(stored)
    if options.redact:
        redaction = erasure.redaction_of(reviews, entries, *options.redact)
        return stored._replace(redactions=[*stored.redactions, redaction]), []
    if options.forget:
        lines, remarks = erasure.forget_review(reviews, entries, options.forget)
    elif options.forget_author:
        lines, remarks = erasure.forget_author(reviews, entries, options.forget_author)
    else:
        return stored, []
    copies = sorted(options.data.glob(f"{REVIEWS_FILE}.edited-*"))
    remarks += [f"{copy} may still have the removed reviews; delete it if so" for copy in copies]
    return stored._replace(suppressed=[*stored.suppressed, *lines]), remarks


# ---- Insights ----


def count(options: Options, contract: Contract, document: dict[str, Json]) -> Lines:
    """Make insights.json from `document`, the content of reviews.json, and the other files."""
    contents = {name: _content(options.data / name) for name in counting.COUNTED_FILES}
    contents[REVIEWS_FILE] = counting.readable(document)
    new, insights, lines = counting.count(contract, contents, datetime.now(UTC))
    for name, content in new.items() if not options.dry_run else ():
        files.write(options.data / name, content)
    if options.count:
        for kind in ENTITY_KINDS:
            counts = [(entity["label"], entity.get("mention_count")) for entity in insights["entities"][kind]]
            title = kind.replace("_", " ")
            lines += [f"{title}: {label}: {number}" for label, number in counts if number is not None]
    number = insights["review_count"]
    return [*lines, _outcome(options, INSIGHTS_FILE, number, is_changed=INSIGHTS_FILE in new)]


# ---- Command line ----


def print_lines(lines: Iterable[str], stream: TextIO) -> None:
    """Print lines, with control characters escaped."""
    for line in lines:
        print(printable(line), file=stream, flush=True)


def command_to_copy(words: Lines, question: NeedsDecision, options: Options) -> str:
    """The command with the flag that answers a question; of the files, only the one in question is kept."""
    is_installed = Path(sys.argv[0]).name == "reviewsd-import"
    program = sys.argv[:1] if is_installed else [sys.executable, "-m", "reviewslib.importer.command"]
    name, answer = question.flag or ("", "")
    others = {str(path) for path in options.files} - {question.file} if question.file else set[str]()
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in others and name not in (before, word.partition("=")[0])
    ]
    return shlex.join([*(["sudo"] if "SUDO_USER" in os.environ else []), *program, *kept, name, answer])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a closed stream is None
            stream.reconfigure(errors="backslashreplace")
    options, outcome = parse(arguments), "Nothing was written."
    try:
        contract = shipped_contract()
        with files.locked(options.data, is_dry=options.dry_run):
            for lines in run(options, contract):
                print_lines(lines, sys.stdout)
                if not options.dry_run:
                    outcome = f"The reviews were imported; {INSIGHTS_FILE} stays as it is."
        if options.dry_run:
            print_lines(["A dry run: nothing was written."], sys.stdout)
        return EXIT_SUCCESS
    except (BadData, NeedsDecision) as fault:
        print_lines([*fault.lines(), outcome], sys.stderr)
        if isinstance(fault, NeedsDecision) and fault.flag:
            command = command_to_copy(list(sys.argv[1:] if arguments is None else arguments), fault, options)
            print_lines(["Copy this command, and replace YOUR with your own words:", command], sys.stderr)
        return EXIT_BAD_DATA
    except KeyboardInterrupt:
        print_lines(["stopped; run the same command again"], sys.stderr)
        return EXIT_STOPPED
    except OSError as error:
        print_lines([f"cannot write {error.filename or 'the output'}: {error.strerror}"], sys.stderr)
        return EXIT_FAILURE


if __name__ == "__main__":
    sys.exit(main())
