"""`reviewsd-import`: owners' exports become `reviews.json`, again and again, and insights are counted.

Here files are read and written; what an export looks like is the subject of `exports.py`, what follows from
it of `merging.py`. Nothing is fetched. The daemon does not import this module: it sees that a file changed.

Sections: Exports - Data directory - Import - Insights - Command line
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    sys.exit("reviewsd-import runs on Linux, and for local use on macOS; on Windows it needs WSL")

import hashlib
import io
import json
import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any, TextIO
from zoneinfo import available_timezones

from reviewslib import files
from reviewslib.dataset import counting
from reviewslib.dataset.contract import BadData, Contract, Fault, printable, shipped_contract
from reviewslib.dataset.counting import EDITORIAL_FILE
from reviewslib.dataset.insights import ENTITY_KINDS, compare_annotations
from reviewslib.dataset.reviews import INSIGHTS_FILE, REVIEWS_FILE, load
from reviewslib.dataset.reviews import served_reviews as served
from reviewslib.dataset.strict_json import Json, NotJson, decode
from reviewslib.importer import exports as formats
from reviewslib.importer.cells import TABLES
from reviewslib.importer.csv_reviews import TEMPLATE, read_csv
from reviewslib.importer.exports import Exports, NeedsDecision, Question, question, refused
from reviewslib.importer.merging import author_suppression_lines, merge, refuse_failures, suppression_lines
from reviewslib.importer.options import Options, parse
from reviewslib.importer.state import STATE_FILE, State, Stored, read_state
from reviewslib.links import Links

EXIT_SUCCESS, EXIT_FAILURE, EXIT_BAD_DATA, EXIT_STOPPED = 0, 1, 78, 130  # argparse exits with 2
SUPPRESSED_FILE = "suppressed.txt"
Lines = list[str]  # of the report
TOLERANCE = timedelta(days=1)  # for dates in the future

# ---- Exports: files, folders and archives, of which only what is needed is read ----

QUIET_SECONDS = 2.0


def read_exports(options: Options) -> Exports:
    """What the files say, or all exports in a drop folder; what is none there is skipped, as are links.

    Raises BadData, and NeedsDecision where nothing can be imported; other questions are noted.
    """
    exports, start = Exports(options), time.monotonic()
    paths = given_files(options)
    for path in dict.fromkeys(paths):
        if sys.stderr.isatty() and time.monotonic() > start + QUIET_SECONDS:
            print_lines([f"reading {path} …"], sys.stderr)
        before = exports.copy() if options.drop else exports
        try:
            _read_export(path, exports)
            if options.drop:
                records = len(exports.records) - len(before.records)
                refuse_failures(exports.failed[len(before.failed) :], records)
        except (BadData, NeedsDecision) as fault:
            if options.drop:
                exports = before
                exports.damaged_exports.add(formats.part_of(path.name.partition(".zip")[0])[0])
                exports.skipped += _skipped(path, fault, options.data)
            elif isinstance(fault, NeedsDecision):
                exports.questions += fault.questions
            else:
                raise
    formats.finish(exports)
    if paths and not (exports.questions or exports.with_reviews or exports.csv_settings):
        raise NeedsDecision(Question([*exports.skipped, "There is nothing to import."]))
    moments = list(filter(None, (each.created or each.replied for each in exports.records)))
    if moments and not options.zone:
        machine = machine_zone()
        flag = "--zone", machine if "/" in machine and not machine.startswith("Etc/") else "YOUR/ZONE"
        seen = {"moment": moments[0], "machine": machine or "no zone that has a name"}
        exports.questions.append(question("zone", (), [flag], **seen))
    return exports


def given_files(options: Options) -> Sequence[Path]:
    """The files of the command, or all in the drop folder but hidden ones."""
    if not options.drop:
        return options.files
    return [path for path in sorted(options.drop.iterdir()) if not path.name.startswith(".")]


def _skipped(path: Path, fault: BadData | NeedsDecision, data: Path) -> Lines:
    """What is wrong with a file in a drop folder, or what is open and the command that answers it."""
    if isinstance(fault, BadData):
        return [f"skipped: {line}" for line in fault.lines()]
    asked = "; ".join(each.lines[0].removeprefix(f"{path}: ").rstrip(".:") for each in fault.questions)
    commands = commands_to_copy([str(path), "--data", str(data)], fault.questions)
    return [f"skipped: {path}: {asked}", *(f"  Explain it once: {each}" for each in commands)]


def _read_export(path: Path, exports: Exports) -> None:
    """Add what a file or a folder says. Raises BadData and NeedsDecision."""
    links = [path] if path.is_symlink() else []
    try:
        if path.is_dir() and not links:
            members = files.in_folder(path, formats.IN_FOLDER, links)
            formats.read_google(members, *_part(path, path.name, exports), exports)
        elif not links:
            with files.opened(path) as file:
                if files.is_archive(file):
                    members = files.in_archive(file, path, formats.IN_ARCHIVE)
                    formats.read_google(members, *_part(path, path.stem, exports), exports)
                else:
                    _read_single(files.read_whole(file, path), str(path), exports)
    except OSError as error:
        raise refused(str(error.filename or path), f"cannot be read: {error.strerror}") from None
    exports.skipped += [f"skipped: {link} is a link; give the file itself" for link in links]


def _read_single(data: bytes, file: str, exports: Exports) -> None:
    """Add the reviews of a single file, whose format its content tells."""
    for first, reason in TABLES["refused_by_first_bytes"].items():
        if data.startswith(bytes.fromhex(first)):
            raise refused(file, reason.format_map(TABLES))
    if data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        formats.read_google([files.Member(PurePosixPath(), file, data)], file, "", exports)
    else:
        read_csv(data, file, exports)


def _part(path: Path, name: str, exports: Exports) -> tuple[str, str]:
    """The key of the export of which a folder or an archive is a part, and the number of the part."""
    export, number = formats.part_of(name)
    is_there = export in exports.known and number in exports.known[export].parts  # from another folder
    is_other = is_there and not export.startswith("takeout-")
    return export if number and not is_other else str(path), number


# ---- Data directory: what is there, and how it is replaced ----

SUPPRESSED_LINE = re.compile("(?:author )?[0-9a-f]{64}")
SAMPLE = (b'"Larkspur Hollow Chiropractic"', b"01M7F1SV60XJ4PFV38D0FMZ6BZ")  # its name, and an id of it


def read_stored(directory: Path, contract: Contract, *, is_merged: bool) -> Stored:
    """Everything in the directory. Raises BadData, also for files of the sample, if they are to be merged."""
    names = (REVIEWS_FILE, INSIGHTS_FILE, EDITORIAL_FILE, STATE_FILE)
    reviews, insights, _, state = contents = [_content(directory / name) for name in names]
    for name, content in zip(names, contents, strict=True):
        if is_merged and content and any(mark in content for mark in SAMPLE):
            reason = "of the sample, which is never merged with; name another directory: --data my-data"
            raise refused(str(directory / name), reason)
    document: dict[str, Json] = {}
    if reviews is not None:
        load(contract, reviews, insights, Links())
        document = decode(reviews)
    reviews_digest = file_digest(reviews)
    try:
        known = read_state(None if state is None else decode(state), reviews_digest)
    except NotJson as error:
        _, reason = error.faults[0]
        raise refused(STATE_FILE, f"{reason}; delete the file to have it made anew") from None
    return Stored(document, reviews_digest, insights, known, _suppressed(directory))


def _content(path: Path) -> bytes | None:
    if not path.exists():
        return None
    try:
        return files.read_unchanging(path)[0]
    except OSError as error:
        raise refused(str(path), f"cannot be read: {error.strerror}") from None


def file_digest(content: bytes | None) -> str:
    """SHA-256 of a file, empty without one."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _suppressed(directory: Path) -> Lines:
    """The lines of suppressed.txt without comments. Raises BadData."""
    try:
        text = (_content(directory / SUPPRESSED_FILE) or b"").decode("utf-8-sig")
    except UnicodeError:
        raise refused(SUPPRESSED_FILE, "not UTF-8") from None
    numbered = enumerate(map(str.strip, text.splitlines()), 1)
    lines = {number: line for number, line in numbered if line and not line.startswith("#")}
    reason = "expected 64 lower-case hexadecimal digits, or these after “author ”"
    wrong = [number for number, line in lines.items() if not SUPPRESSED_LINE.fullmatch(line)]
    if wrong:
        raise BadData([Fault(f"{SUPPRESSED_FILE} line {number}", (), reason) for number in wrong])
    return list(lines.values())


def encoded(document: Json) -> bytes:
    """A data file that people can read; the state's keys are sorted, those of others stand as they stood."""
    is_state = isinstance(document, State)

    def members(value: Any) -> dict[str, Json]:
        return {each.name: getattr(value, each.name) for each in fields(value)}

    text = json.dumps(document, ensure_ascii=False, indent=1, default=members, sort_keys=is_state)
    return text.encode() + b"\n"


# ---- Import ----


def run(options: Options, contract: Contract) -> Iterator[Lines]:
    """Import the files, or forget a review; write what has changed after the daemon's own check, and count.

    The state is written first: after a failure of power between the files nothing looks changed by hand.
    Yields the reports of the import and of the count. Raises BadData, NeedsDecision and OSError.
    """
    stored = read_stored(options.data, contract, is_merged=not options.count)
    if options.count:
        if not stored.document:
            raise refused(REVIEWS_FILE, f"there is none in {options.data}")
        yield count(options, contract, stored.document, stored.state)
        return
    if options.drop and not given_files(options):
        yield [f"{options.drop} is empty"]
        return
    if options.forget_settings:
        state = replace(stored.state, names="", avatars="", locations=[], headers={})
        stored = stored._replace(state=state)
    completed, suppression = completed_options(options, stored.state), suppress(options, stored)
    stored = stored._replace(suppressed={*stored.suppressed, *suppression})
    exports = read_exports(completed)
    document, state, report = merge(stored, exports, contract)
    lines = [f"{SUPPRESSED_FILE}: {line}" for line in suppression]
    lines += [*_effects_of_memory(options, stored, exports), *report]
    if options.rewrite_dates:
        dates = {id: review["date"] for id, review in stored.reviews.items()}
        changed = [
            each for each in document["reviews"] if each["date"] != dates.get(each["id"], each["date"])
        ]
        are = "would be" if options.dry_run else "were"
        lines.append(f"dates of {_reviews(changed)} {are} written anew in {completed.zone}")
    path, reviews = options.data / REVIEWS_FILE, encoded(document)
    if is_changed := document != stored.document:
        state.replaced = stored.reviews_digest
        warnings = load(contract, reviews, stored.insights, Links()).warnings
        lines += [f"warning: {warning}" for warning in warnings]
    files.write(options.data / STATE_FILE, encoded(state), is_dry=options.dry_run)
    done = _done(options, "be written" if is_changed else "stay as it is")
    lines.append(f"{path} {done}: {_reviews(document['reviews'])}.")
    if is_changed:
        files.write(path, reviews, is_dry=options.dry_run)
    if is_changed and not (options.dry_run or options.drop):
        start = command_line("reviewsd", "--data", options.data)
        lines.append(f"A running service shows them soon. To start one: {start}")
    yield lines
    if counting.is_wanted({name: _content(options.data / name) for name in counting.COUNTED_FILES}):
        yield count(options, contract, document, state)


def _reviews(reviews: Sequence[Json]) -> str:
    return f"{len(reviews)} review{'s' if len(reviews) != 1 else ''}"


def _done(options: Options, what: str) -> str:
    """What is done, or would be in a dry run: “be written”, “stay as it is”."""
    if options.dry_run:
        return f"would {what}"
    verb, _, rest = what.partition(" ")
    return f"{'is' if verb == 'be' else f'{verb}s'} {rest}"


def completed_options(options: Options, state: State) -> Options:
    """The options with what earlier commands said. Raises BadData, and NeedsDecision for another zone."""
    if not options.rewrite_dates and options.zone and state.zone not in ("", options.zone):
        raise NeedsDecision(question("other zone", known=state.zone, zone=options.zone))
    zone = options.zone or state.zone
    if zone and zone not in available_timezones():
        raise refused(STATE_FILE, f"{zone!r} is not a time zone that this machine knows")
    return replace(
        options,
        zone=zone,
        short_names=state.names == "short" if options.short_names is None else options.short_names,
        avatars=state.avatars == "yes" if options.avatars is None else options.avatars,
        latest_day=(datetime.now(UTC) + TOLERANCE).date().isoformat(),
        saved_csv=state.headers,
    )


def _effects_of_memory(options: Options, stored: Stored, exports: Exports) -> Iterator[str]:
    """What was taken from memory, and which flags had no effect."""
    if not (options.files or options.drop):
        return
    state, business = stored.state, stored.document.get("business", {}).get("name")
    has_location = any(record.location for record in exports.records)
    known = {
        f"zone {state.zone}": state.zone and not options.zone,
        "short names": state.names == "short" and options.short_names is None,
        "pictures of customers": state.avatars and options.avatars is None,
        f"location {', '.join(state.locations)}": state.locations and has_location and not options.location,
    }
    if taken := [*(what for what, is_taken in known.items() if is_taken), *exports.from_memory]:
        yield f"as said earlier: {'; '.join(taken)}"
    if options.name and business is not None:
        yield f"--name has no effect: the business is called {business!r}; change it in {REVIEWS_FILE}"
    if options.location and not has_location:
        yield "--location has no effect: these files name no location"
    for name in sorted(options.csv.given().keys() - exports.effective_flags):
        yield f"--{name.replace('_', '-')} has no effect: no row of these files needs it"


def suppress(options: Options, stored: Stored) -> Lines:
    """The lines that keep away what is to be forgotten, added to suppressed.txt. Raises NeedsDecision."""
    lines, path = list[str](), options.data / SUPPRESSED_FILE
    if options.forget:
        lines = suppression_lines(stored, options.forget)
    elif options.forget_author:
        lines = author_suppression_lines(stored, options.forget_author, options.csv.source)
    if added := [line for line in lines if line not in stored.suppressed]:
        before = (_content(path) or b"").decode("utf-8-sig").splitlines()
        files.write(path, "".join(f"{line}\n" for line in (*before, *added)).encode(), is_dry=options.dry_run)
    return lines


# ---- Insights ----


def count(options: Options, contract: Contract, document: dict[str, Json], state: State) -> Lines:
    """Make insights.json of `document`, which has the form of reviews.json, and of what is said of reviews.

    An insights.json that is not ours becomes editorial.json before.
    """
    contents = {name: _content(options.data / name) for name in counting.COUNTED_FILES}
    contents[REVIEWS_FILE] = encoded(document)
    result = counting.count(contract, contents, datetime.now(UTC))
    new, insights, lines = result
    by_hand: dict[str, Json] = decode(new.get(EDITORIAL_FILE) or contents[EDITORIAL_FILE] or b"{}")
    reviews = served(contract.reviews_file.complete(document)["reviews"], {})
    annotated, changed = compare_annotations(reviews, by_hand.get("per_review") or {}, state.annotated)
    lines += [f"warning: {id} has changed since its per_review was written" for id in changed]
    new[STATE_FILE] = encoded(replace(state, annotated=annotated))
    for name, content in new.items():
        files.write(options.data / name, content, is_dry=options.dry_run)
    is_changed = INSIGHTS_FILE in new
    if options.count:
        for kind in ENTITY_KINDS:
            named = (each for each in insights["entities"][kind] if each.get("mention_count") is not None)
            lines += [f"{kind.replace('_', ' ')}: {each['label']}: {each['mention_count']}" for each in named]
    done = _done(options, f"be counted from {_reviews(reviews)}" if is_changed else "stay as it is")
    return [*lines, f"{INSIGHTS_FILE} {done}."]


# ---- Command line ----


def print_lines(lines: Iterable[str], stream: TextIO) -> None:
    """Print lines, in which characters that a terminal may obey are escaped."""
    for line in lines:
        print(printable(line), file=stream, flush=True)


MODULES = {"reviewsd-import": "reviewslib.importer.command", "reviewsd": "reviewsd"}


def command_line(program: str, *words: object) -> str:
    """A command line that works where this one was typed."""
    path = Path(sys.argv[0]).with_name(program)
    is_installed = Path(sys.argv[0]).name in MODULES and path.is_file()
    start = [str(path)] if is_installed else [sys.executable, "-m", MODULES[program]]
    return shlex.join([*(["sudo"] if "SUDO_USER" in os.environ else []), *start, *map(str, words)])


def commands_to_copy(words: Lines, questions: Sequence[Question]) -> Iterator[str]:
    """The command of these words with flags that answer the questions; one for each file that has some."""
    own = list(dict.fromkeys(each.file for each in questions if each.file)) or [""]
    for file in own:
        flags = dict.fromkeys(flag for each in questions if each.file in ("", file) for flag in each.flags)
        answered = {name for name, _ in flags}
        given = zip(["", *words], words, strict=False)
        kept = [word for name, word in given if not {name, word.partition("=")[0]} & answered]
        if flags:
            others = [each for each in own if each != file]
            answers = [word for flag in flags for word in flag]
            yield command_line("reviewsd-import", *(word for word in kept if word not in others), *answers)


def machine_zone() -> str:
    """The name of this machine's zone, empty if it has none."""
    linked = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    zone = os.environ.get("TZ", "").lstrip(":") or linked
    return zone if zone in available_timezones() else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # and not None, since it is closed
            stream.reconfigure(errors="backslashreplace")
    options, reason = parse(arguments), "Nothing was written."
    try:
        if options.template:
            print_lines([",".join(TEMPLATE)], sys.stdout)
            return EXIT_SUCCESS
        contract = shipped_contract()
        with files.locked(options.data, is_dry=options.dry_run):
            for lines in run(options, contract):
                print_lines(lines, sys.stdout)
                if not options.dry_run:
                    reason = f"The reviews were imported; {INSIGHTS_FILE} stays as it is."
        if options.dry_run:
            print_lines(["A dry run: nothing was written."], sys.stdout)
        return EXIT_SUCCESS
    except (BadData, NeedsDecision) as fault:
        print_lines([*fault.lines(), reason], sys.stderr)
        words = list(sys.argv[1:] if arguments is None else arguments)
        questions = fault.questions if isinstance(fault, NeedsDecision) else ()
        if commands := list(commands_to_copy(words, questions)):
            print_lines(["Copy this, and put your own words where it says YOUR:", *commands], sys.stderr)
        return EXIT_BAD_DATA
    except KeyboardInterrupt:
        print_lines(["stopped; give the same command again"], sys.stderr)
        return EXIT_STOPPED
    except OSError as error:
        print_lines([f"cannot write {error.filename or 'the output'}: {error.strerror}"], sys.stderr)
        return EXIT_FAILURE
    except MemoryError:
        print_lines(["too little memory for these files; nothing is lost"], sys.stderr)
        return EXIT_FAILURE


if __name__ == "__main__":
    sys.exit(main())
