"""`reviewsd-import`: owners' exports become `reviews.json`, again and again, and insights are counted.

Here files are read and written; what an export looks like is the subject of `exports.py`, what follows from
it of `merging.py`. Nothing is fetched. The daemon does not import this module: it sees that a file changed.

Sections: Exports - Data directory - Import - Insights - Command line
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    sys.exit("reviewsd-import runs on Linux, and for local use on macOS; on Windows it needs WSL")

import argparse
import hashlib
import io
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO
from zoneinfo import available_timezones

from reviewslib.dataset.contract import BadData, Contract, Fault, printable, shipped_contract
from reviewslib.dataset.insights import COUNTED_KEYS, MODEL, compare_annotations, misspelt, outdated, renewed
from reviewslib.dataset.reviews import (
    INSIGHTS_FILE,
    REVIEWS_FILE,
    editorial_complaints,
    load,
    read_file,
    served_reviews,
)
from reviewslib.dataset.strict_json import Json, NotJson, decode
from reviewslib.files import (
    in_archive,
    in_folder,
    is_archive,
    locked,
    opened,
    read_unchanging,
    read_whole,
    write,
)
from reviewslib.importer import exports as formats
from reviewslib.importer.exports import Exports, Options, Undecided, one_line, refused
from reviewslib.importer.merging import (
    STATE_FILE,
    State,
    Stored,
    author_lines,
    erasing_lines,
    merge,
    read_state,
)
from reviewslib.links import Links

EXIT_SUCCESS, EXIT_FAILURE, EXIT_USAGE, EXIT_BAD_DATA = 0, 1, 2, 78
EDITORIAL_FILE, SUPPRESSED_FILE = "editorial.json", "suppressed.txt"
Lines = list[str]  # of the report
TOLERANCE = timedelta(days=1)  # for dates in the future

# ---- Exports: files, folders and archives, of which only what is needed is read ----

QUIET_SECONDS = 2.0


def read_exports(paths: Iterable[Path], options: Options) -> Exports:
    """What the files say; links are skipped and named. Raises BadData and Undecided."""
    exports, started, parts = Exports(options), time.monotonic(), set[tuple[str, str]]()
    for path in dict.fromkeys(paths):
        if sys.stderr.isatty() and time.monotonic() > started + QUIET_SECONDS:
            say([f"reading {path} …"], sys.stderr)
        try:
            _read_export(path, parts, exports)
        except OSError as error:
            raise refused(str(error.filename or path), f"cannot be read: {error.strerror}") from None
    if exports.links and not exports.known and not exports.records:
        raise BadData([Fault(str(each), (), "it is a link; give the file itself") for each in exports.links])
    formats.close(exports)
    return exports


def _read_export(path: Path, parts: set[tuple[str, str]], exports: Exports) -> None:
    """Add what a file or a folder says; `parts` are those that have been read."""
    if path.is_symlink():
        exports.links.append(path)
    elif path.is_dir():
        members = in_folder(path, formats.IN_FOLDER, exports.links)
        formats.read_google(members, *_part(path, path.name, parts), exports)
    else:
        with opened(path) as file:
            if is_archive(file):
                members = in_archive(file, path, formats.IN_ARCHIVE)
                formats.read_google(members, *_part(path, path.stem, parts), exports)
            else:
                formats.read_single(read_whole(file, path), str(path), exports)


def _part(path: Path, name: str, parts: set[tuple[str, str]]) -> tuple[str, str]:
    """The key of the export of which a folder or an archive is a part, and the number of the part."""
    export, number = part = formats.part_of(name)
    is_other = part in parts and not export.startswith("takeout-")  # it is in another folder
    parts.add(part)
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
        raise refused(STATE_FILE, f"{error}; delete the file to have it made anew") from None
    return Stored(document, reviews_digest, insights, known, _suppressed(directory))


def _content(path: Path) -> bytes | None:
    if not path.exists():
        return None
    try:
        return read_unchanging(path)[0]
    except OSError as error:
        raise refused(str(path), f"cannot be read: {error.strerror or error}") from None


def file_digest(content: bytes | None) -> str:
    """SHA-256 of a file, empty without one."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _suppressed(directory: Path) -> Lines:
    """The lines of suppressed.txt without comments. Raises BadData."""
    try:
        text = (_content(directory / SUPPRESSED_FILE) or b"").decode("utf-8-sig")
    except UnicodeError:
        raise refused(SUPPRESSED_FILE, "not UTF-8") from None
    lines = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line and not line.startswith("#"):
            lines.append(line)
            if not SUPPRESSED_LINE.fullmatch(line):
                reason = "expected 64 lower-case hexadecimal digits, or these after “author ”"
                raise refused(f"{SUPPRESSED_FILE} line {number}", reason)
    return lines


def encoded(document: Json) -> bytes:
    """A data file that people can read; the state's keys are sorted, those of others stand as they stood."""
    is_state = isinstance(document, State)
    text = json.dumps(document, ensure_ascii=False, indent=1, default=_members, sort_keys=is_state)
    return text.encode() + b"\n"


def _members(value: Any) -> dict[str, Json]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


# ---- Import ----


def run(command: argparse.Namespace, contract: Contract) -> Iterator[Lines]:
    """Import the files, or forget a review; write what has changed after the daemon's own check, and count.

    The state is written first: after a failure of power between the files nothing looks changed by hand.
    Yields the reports of the import and of the count. Raises BadData, Undecided and OSError.
    """
    stored, directory = read_stored(command.data, contract, is_merged=not command.count), command.data
    if command.count:
        if not stored.document:
            raise refused(REVIEWS_FILE, f"there is none in {directory}")
        yield count(command, contract, stored.document, stored.state)
        return
    options, erasing = settled(command, stored.state), suppress(command, stored)
    stored = stored._replace(suppressed={*stored.suppressed, *erasing})
    document, state, lines = merge(stored, read_exports(command.files, options), contract)
    lines = [*(f"{SUPPRESSED_FILE}: {line}" for line in erasing), *lines]
    path, reviews = directory / REVIEWS_FILE, encoded(document)
    if is_changed := document != stored.document:
        state.replaced = stored.reviews_digest
        served = load(contract, reviews, stored.insights, Links())
        lines += [f"warning: {warning}" for warning in served.warnings if stored.insights is not None]
    write(directory / STATE_FILE, encoded(state), is_dry=command.dry_run)
    done = "is written" if is_changed else "stays as it is"
    lines.append(f"{path} {done}: {len(document['reviews'])} reviews.")
    if is_changed:
        write(path, reviews, is_dry=command.dry_run)
        lines.append(f"A running service shows them soon; else start it: reviewsd --data {directory}")
    yield lines
    if (directory / EDITORIAL_FILE).exists() or (stored.insights and state.insights):
        yield count(command, contract, document, state)


def settled(command: argparse.Namespace, state: State) -> Options:
    """The flags, completed by what earlier commands said. Raises BadData, and Undecided for another zone."""
    if command.zone and state.zone not in ("", command.zone):
        raise Undecided("other zone", known=state.zone, zone=command.zone)
    zone = command.zone or state.zone
    if zone and zone not in available_timezones():
        raise refused(STATE_FILE, f"{zone!r} is not a time zone that this machine knows")
    is_short = state.names == "short" if command.short_names is None else command.short_names
    latest_day = (datetime.now(UTC) + TOLERANCE).date().isoformat()
    completed = vars(command) | {"zone": zone, "short_names": is_short, "latest_day": latest_day}
    return Options(**{each.name: completed[each.name] for each in fields(Options)})


def suppress(command: argparse.Namespace, stored: Stored) -> Lines:
    """The lines that keep away what is to be forgotten, added to suppressed.txt. Raises Undecided."""
    lines, path = list[str](), command.data / SUPPRESSED_FILE
    if command.forget:
        lines = erasing_lines(stored, command.forget)
    elif command.forget_author:
        lines = author_lines(stored, command.forget_author, command.source)
    if added := [line for line in lines if line not in stored.suppressed]:
        before = (_content(path) or b"").decode("utf-8-sig").splitlines()
        write(path, "".join(f"{line}\n" for line in (*before, *added)).encode(), is_dry=command.dry_run)
    return lines


# ---- Insights ----


def count(command: argparse.Namespace, contract: Contract, document: dict[str, Json], state: State) -> Lines:
    """Make insights.json of `document`, which has the form of reviews.json, and of editorial.json.

    An insights.json that is not ours becomes editorial.json before.
    """
    paths = [command.data / name for name in (EDITORIAL_FILE, STATE_FILE, INSIGHTS_FILE)]
    editorial, _, old = map(_content, paths)
    before: dict[str, Json] = decode(old) if old is not None else {}
    lines = []
    if old is not None and before.get("model") != MODEL:
        if editorial is not None:
            reason = f"not made from {EDITORIAL_FILE}, which is there, too; put all into that and remove this"
            raise refused(INSIGHTS_FILE, reason)
        editorial = encoded({key: value for key, value in before.items() if key not in COUNTED_KEYS})
        left_out = ", ".join(key for key in before if key in COUNTED_KEYS)
        lines.append(f"{INSIGHTS_FILE} becomes {EDITORIAL_FILE}, without what is counted: {left_out}")
    elif state.insights and file_digest(old) not in ("", *state.insights.split()):
        raise refused(INSIGHTS_FILE, f"changed by hand; put that into {EDITORIAL_FILE} and remove this file")
    _, faults = read_file(EDITORIAL_FILE, editorial or b"{}", contract.editorial_file, editorial_complaints)
    if faults:
        raise BadData(faults)
    by_hand: dict[str, Json] = decode(editorial or b"{}")
    reviews = served_reviews(contract.reviews_file.complete(document)["reviews"], {})
    doubtful = [*misspelt(by_hand, contract.schemas), *outdated(reviews, by_hand)]
    lines += [f"warning: {Fault(EDITORIAL_FILE, path, reason)}" for path, reason in doubtful]
    annotated, changed = compare_annotations(reviews, by_hand.get("per_review") or {}, state.annotated)
    lines += [f"warning: {id} has changed since its per_review was written" for id in changed]
    insights, new = renewed(before, reviews, by_hand, datetime.now(UTC)), old or b""
    if is_changed := insights != before:
        new = encoded(insights)
        load(contract, encoded(document), new, Links())
        state = replace(state, insights=f"{file_digest(new)} {file_digest(old)}")
    contents = editorial, encoded(replace(state, annotated=annotated)), new
    for path, content in zip(paths, contents, strict=True):
        if content is not None:
            write(path, content, is_dry=command.dry_run)
    done = f"is counted from {len(reviews)} reviews" if is_changed else "stays as it is"
    return [*lines, f"{INSIGHTS_FILE} {done}."]


# ---- Command line ----


def say(lines: Iterable[str], stream: TextIO) -> None:
    """Print lines, in which characters that a terminal may obey are escaped."""
    for line in lines:
        print(printable(line), file=stream, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # and not None, since it is closed
            stream.reconfigure(errors="backslashreplace")
    options, reason = parse(arguments), "Nothing was written."
    try:
        if options.template:
            say([",".join(formats.TEMPLATE)], sys.stdout)
            return EXIT_SUCCESS
        contract = shipped_contract()
        with locked(options.data):
            for lines in run(options, contract):
                say(lines, sys.stdout)
                if not options.dry_run:
                    reason = f"The reviews were imported; {INSIGHTS_FILE} stays as it is."
        if options.dry_run:
            say(["A dry run: nothing was written."], sys.stdout)
        return EXIT_SUCCESS
    except (BadData, Undecided) as fault:
        say([*fault.lines(), reason], sys.stderr)
        return EXIT_BAD_DATA
    except OSError as error:
        say([f"cannot write {error.filename or 'the output'}: {error.strerror}"], sys.stderr)
        return EXIT_FAILURE
    except MemoryError:
        say(["too little memory for these files; nothing is lost"], sys.stderr)
        return EXIT_FAILURE


# What the table of flags cannot say by itself.
FLAG_KINDS = {"path": Path, "line": one_line, "int": int, "yes or no": argparse.BooleanOptionalAction}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The flags; exits with EXIT_USAGE where they are wrong."""
    about = "Bring reviews from owners' exports into the data directory of reviewsd."
    parser = argparse.ArgumentParser("reviewsd-import", description=about)
    for name, how in formats.TABLES["flags"].items():
        kinds = {key: FLAG_KINDS[how[key]] for key in ("type", "action") if how.get(key) in FLAG_KINDS}
        parser.add_argument(name, **how | kinds)
    options = parser.parse_args(arguments)
    options.map = _map(options.map, parser)
    if options.template and (options.files or options.data):
        parser.error("--template takes neither FILE nor --data")
    if not options.template and options.data is None:
        parser.error("--data is missing: the directory of reviews.json")
    tasks = options.files, options.count, options.forget, options.forget_author, options.template
    if sum(map(bool, tasks)) != 1:
        parser.error("one of FILE, --count, --forget ID, --forget-author NAME and --template is needed")
    for path in options.files:
        if not os.path.lexists(path):  # False for any path that the system does not take
            parser.error(f"there is no file {str(path)!r}")
    if options.zone and options.zone not in available_timezones():
        hint = "expected for example Europe/Berlin" if available_timezones() else "install tzdata"
        parser.error(f"--zone {options.zone}: no time zone that this machine knows; {hint}")
    return options


def _map(values: Sequence[str], parser: argparse.ArgumentParser) -> dict[str, str]:
    """Header by field. A flag that is repeated holds one pair each, whose header may have commas."""
    columns: dict[str, str] = {}
    known = "|".join(formats.FIELDS) if len(values) > 1 else r"\w+"
    for pair in (pair for value in values for pair in re.split(rf",(?=(?:{known})=)", value)):
        name, _, header = pair.partition("=")
        if name not in formats.FIELDS or not header or name in columns:
            parser.error(
                f"--map {pair}: expected FIELD=HEADER, each field once, of {', '.join(formats.FIELDS)}"
            )
        columns[name] = one_line(header)
    return columns


if __name__ == "__main__":
    sys.exit(main())
