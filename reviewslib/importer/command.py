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
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any, TextIO
from zoneinfo import available_timezones

from reviewslib import files
from reviewslib.dataset import insights as counting
from reviewslib.dataset.contract import BadData, Contract, Fault, printable, shipped_contract
from reviewslib.dataset.reviews import INSIGHTS_FILE, REVIEWS_FILE, editorial_complaints, load, read_file
from reviewslib.dataset.reviews import served_reviews as served
from reviewslib.dataset.strict_json import Json, NotJson, decode
from reviewslib.importer import exports as formats
from reviewslib.importer.cells import TABLES, one_line
from reviewslib.importer.csv_reviews import FIELDS, TEMPLATE, read_csv
from reviewslib.importer.exports import Exports, Options, Question, Said, Undecided, question, refused
from reviewslib.importer.merging import author_lines, erasing_lines, merge, refuse_failures
from reviewslib.importer.state import STATE_FILE, State, Stored, read_state
from reviewslib.links import Links

EXIT_SUCCESS, EXIT_FAILURE, EXIT_USAGE, EXIT_BAD_DATA, EXIT_STOPPED = 0, 1, 2, 78, 130
EDITORIAL_FILE, SUPPRESSED_FILE = "editorial.json", "suppressed.txt"
Lines = list[str]  # of the report
TOLERANCE = timedelta(days=1)  # for dates in the future

# ---- Exports: files, folders and archives, of which only what is needed is read ----

QUIET_SECONDS = 2.0


def read_exports(command: argparse.Namespace, options: Options) -> Exports:
    """What the files say, or all exports in a drop folder; what is none there is skipped, as are links.

    Raises BadData, and Undecided where nothing can be imported; what is open is noted.
    """
    exports, started, parts = Exports(options), time.monotonic(), set[tuple[str, str]]()
    paths = given_files(command)
    for path in dict.fromkeys(paths):
        if sys.stderr.isatty() and time.monotonic() > started + QUIET_SECONDS:
            say([f"reading {path} …"], sys.stderr)
        before, first = deepcopy(exports.without_records()), len(exports.records)
        try:
            _read_export(path, parts, exports)
            if command.drop:
                failed = exports.failed[len(before["failed"]) :]
                refuse_failures(failed, len(exports.records) - first)
        except (BadData, Undecided) as fault:
            if command.drop:
                vars(exports).update(before)
                del exports.records[first:]
                export, _ = formats.part_of(path.name.partition(".zip")[0])
                exports.spoilt.add(export)  # a part of it is missing
                exports.skipped += _skipped(path, fault, command.data)
            elif isinstance(fault, Undecided):
                exports.asked += fault.questions
            else:
                raise
    formats.close(exports)
    if paths and not exports.asked and not (exports.records or exports.with_reviews or exports.said):
        links = [f"{each}: it is a link; give the file itself" for each in exports.links]
        raise Undecided(Question([*exports.skipped, *links, "There is nothing to import."]))
    moments = list(filter(None, (each.created or each.replied for each in exports.records)))
    if moments and not options.zone:
        here = machine_zone()
        flag = "--zone", here if "/" in here and not here.startswith("Etc/") else "YOUR/ZONE"
        told = {"moment": moments[0], "machine": here or "no zone that has a name"}
        exports.asked.append(question("zone", (), [flag], **told))
    return exports


def given_files(command: argparse.Namespace) -> list[Path]:
    """The files of the command, or all in the drop folder but hidden ones."""
    if not command.drop:
        return command.files  # type: ignore[no-any-return]
    return [path for path in sorted(command.drop.iterdir()) if not path.name.startswith(".")]


def _skipped(path: Path, fault: BadData | Undecided, data: Path) -> Lines:
    """What is told of a file in a drop folder that cannot be imported, and the command that explains it."""
    if isinstance(fault, BadData):
        return [f"skipped: {line}" for line in fault.lines()]
    told = "; ".join(each.lines[0].removeprefix(f"{path}: ").rstrip(".:") for each in fault.questions)
    pasted = to_paste([str(path), "--data", str(data)], fault.questions)
    return [f"skipped: {path}: {told}", *(f"  Explain it once: {each}" for each in pasted)]


def _read_export(path: Path, parts: set[tuple[str, str]], exports: Exports) -> None:
    """Add what a file or a folder says; `parts` are those that were read. Raises BadData and Undecided."""
    try:
        if path.is_symlink():
            exports.links.append(path)
        elif path.is_dir():
            members = files.in_folder(path, formats.IN_FOLDER, exports.links)
            formats.read_google(members, *_part(path, path.name, parts), exports)
        else:
            with files.opened(path) as file:
                if files.is_archive(file):
                    members = files.in_archive(file, path, formats.IN_ARCHIVE)
                    formats.read_google(members, *_part(path, path.stem, parts), exports)
                else:
                    _read_single(files.read_whole(file, path), str(path), exports)
    except OSError as error:
        raise refused(str(error.filename or path), f"cannot be read: {error.strerror}") from None


def _read_single(data: bytes, file: str, exports: Exports) -> None:
    """Add the reviews of a single file, whose format its content tells."""
    for first, reason in TABLES["refused_by_first_bytes"].items():
        if data.startswith(bytes.fromhex(first)):
            raise refused(file, reason.format_map(TABLES))
    if data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        formats.read_google([files.Member(PurePosixPath(), file, data)], file, "", exports)
    else:
        read_csv(data, file, exports)


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
        return files.read_unchanging(path)[0]
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
    if command.drop and not given_files(command):
        yield [f"{command.drop} is empty"]
        return
    if command.forget_settings:
        state = replace(stored.state, names="", avatars="", locations=[], headers={})
        stored = stored._replace(state=state)
    options, erasing = settled(command, stored.state), suppress(command, stored)
    stored = stored._replace(suppressed={*stored.suppressed, *erasing})
    exports = read_exports(command, options)
    document, state, lines = merge(stored, exports, contract)
    told = [f"{SUPPRESSED_FILE}: {line}" for line in erasing]
    lines = [*told, *_from_memory(command, stored, exports), *lines]
    if command.rewrite_dates:
        kept = {(id, review["date"]) for id, review in stored.reviews.items()}
        rewritten = [each for each in document["reviews"] if each["id"] in stored.reviews]
        changed = [each for each in rewritten if (each["id"], each["date"]) not in kept]
        are = "would be" if command.dry_run else "were"
        lines.append(f"dates of {_reviews(changed)} {are} written anew in {options.zone}")
    path, reviews = directory / REVIEWS_FILE, encoded(document)
    if is_changed := document != stored.document:
        state.replaced = stored.reviews_digest
        warnings = load(contract, reviews, stored.insights, Links()).warnings
        lines += [f"warning: {warning}" for warning in warnings]
    files.write(directory / STATE_FILE, encoded(state), is_dry=command.dry_run)
    done = _done(command, "be written" if is_changed else "stay as it is")
    lines.append(f"{path} {done}: {_reviews(document['reviews'])}.")
    if is_changed:
        files.write(path, reviews, is_dry=command.dry_run)
    if is_changed and not (command.dry_run or command.drop):
        start = typed("reviewsd", "--data", directory)
        lines.append(f"A running service shows them soon. To start one: {start}")
    yield lines
    if (directory / EDITORIAL_FILE).exists() or (stored.insights and state.insights):
        yield count(command, contract, document, state)


def _reviews(reviews: Sequence[Json]) -> str:
    return f"{len(reviews)} review{'s' if len(reviews) != 1 else ''}"


def _done(command: argparse.Namespace, what: str) -> str:
    """What is done, or would be in a dry run: “be written”, “stay as it is”."""
    if command.dry_run:
        return f"would {what}"
    verb, _, rest = what.partition(" ")
    return f"{'is' if verb == 'be' else f'{verb}s'} {rest}"


def settled(command: argparse.Namespace, state: State) -> Options:
    """The flags, completed by what earlier commands said. Raises BadData, and Undecided for another zone."""
    if not command.rewrite_dates and command.zone and state.zone not in ("", command.zone):
        raise Undecided(question("other zone", known=state.zone, zone=command.zone))
    zone = command.zone or state.zone
    if zone and zone not in available_timezones():
        raise refused(STATE_FILE, f"{zone!r} is not a time zone that this machine knows")
    completed = vars(command) | {
        "zone": zone,
        "short_names": state.names == "short" if command.short_names is None else command.short_names,
        "avatars": state.avatars == "yes" if command.avatars is None else command.avatars,
        "latest_day": (datetime.now(UTC) + TOLERANCE).date().isoformat(),
        "csv": Said(**{each.name: vars(command)[each.name] for each in fields(Said)}),
        "headers": state.headers,
    }
    return Options(**{each.name: completed[each.name] for each in fields(Options)})


def _from_memory(command: argparse.Namespace, stored: Stored, exports: Exports) -> Iterator[str]:
    """What was taken from memory, and which flags had no effect."""
    if not (command.files or command.drop):
        return
    state, business = stored.state, stored.document.get("business", {}).get("name")
    has_location = any(record.location for record in exports.records)
    known = {
        f"zone {state.zone}": state.zone and not command.zone,
        "short names": state.names == "short" and command.short_names is None,
        "pictures of customers": state.avatars and command.avatars is None,
        f"location {', '.join(state.locations)}": state.locations and has_location and not command.location,
    }
    if told := [*(what for what, is_taken in known.items() if is_taken), *exports.remembered]:
        yield f"as said earlier: {'; '.join(told)}"
    if command.name and business is not None:
        yield f"--name has no effect: the business is called {business!r}; change it in {REVIEWS_FILE}"
    if command.location and not has_location:
        yield "--location has no effect: these files name no location"
    for name in sorted(exports.options.csv.given().keys() - exports.used):
        yield f"--{name.replace('_', '-')} has no effect: no row of these files needs it"


def suppress(command: argparse.Namespace, stored: Stored) -> Lines:
    """The lines that keep away what is to be forgotten, added to suppressed.txt. Raises Undecided."""
    lines, path = list[str](), command.data / SUPPRESSED_FILE
    if command.forget:
        lines = erasing_lines(stored, command.forget)
    elif command.forget_author:
        lines = author_lines(stored, command.forget_author, command.source)
    if added := [line for line in lines if line not in stored.suppressed]:
        before = (_content(path) or b"").decode("utf-8-sig").splitlines()
        files.write(path, "".join(f"{line}\n" for line in (*before, *added)).encode(), is_dry=command.dry_run)
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
    if old is not None and before.get("model") != counting.MODEL:
        if editorial is not None:
            reason = f"not made from {EDITORIAL_FILE}, which is there, too; put all into that and remove this"
            raise refused(INSIGHTS_FILE, reason)
        editorial = encoded({key: value for key, value in before.items() if key not in counting.COUNTED_KEYS})
        left_out = ", ".join(key for key in before if key in counting.COUNTED_KEYS)
        done = _done(command, f"become {EDITORIAL_FILE}")
        lines.append(f"{INSIGHTS_FILE} {done}, without what is counted: {left_out}")
    elif state.insights and file_digest(old) not in ("", *state.insights.split()):
        raise refused(INSIGHTS_FILE, f"changed by hand; put that into {EDITORIAL_FILE} and remove this file")
    _, faults = read_file(EDITORIAL_FILE, editorial or b"{}", contract.editorial_file, editorial_complaints)
    if faults:
        raise BadData(faults)
    by_hand: dict[str, Json] = decode(editorial or b"{}")
    reviews = served(contract.reviews_file.complete(document)["reviews"], {})
    doubtful = [*counting.misspelt(by_hand, contract.schemas), *counting.outdated(reviews, by_hand)]
    lines += [f"warning: {Fault(EDITORIAL_FILE, path, reason)}" for path, reason in doubtful]
    written = by_hand.get("per_review") or {}
    annotated, changed = counting.compare_annotations(reviews, written, state.annotated)
    lines += [f"warning: {id} has changed since its per_review was written" for id in changed]
    insights, new = counting.renewed(before, reviews, by_hand, datetime.now(UTC)), old or b""
    if is_changed := insights != before:
        new = encoded(insights)
        load(contract, encoded(document), new, Links())
        state = replace(state, insights=f"{file_digest(new)} {file_digest(old)}")
    contents = editorial, encoded(replace(state, annotated=annotated)), new
    for path, content in zip(paths, contents, strict=True):
        if content is not None:
            files.write(path, content, is_dry=command.dry_run)
    if command.count:
        for kind in counting.ENTITY_KINDS:
            named = (each for each in insights["entities"][kind] if each.get("mention_count") is not None)
            lines += [f"{kind.replace('_', ' ')}: {each['label']}: {each['mention_count']}" for each in named]
    done = _done(command, f"be counted from {_reviews(reviews)}" if is_changed else "stay as it is")
    return [*lines, f"{INSIGHTS_FILE} {done}."]


# ---- Command line ----


def say(lines: Iterable[str], stream: TextIO) -> None:
    """Print lines, in which characters that a terminal may obey are escaped."""
    for line in lines:
        print(printable(line), file=stream, flush=True)


MODULES = {"reviewsd-import": "reviewslib.importer.command", "reviewsd": "reviewsd"}


def typed(program: str, *words: object) -> str:
    """A command line that works where this one was typed."""
    path = Path(sys.argv[0]).with_name(program)
    is_installed = Path(sys.argv[0]).name in MODULES and path.is_file()
    start = [str(path)] if is_installed else [sys.executable, "-m", MODULES[program]]
    return shlex.join([*(["sudo"] if "SUDO_USER" in os.environ else []), *start, *map(str, words)])


def to_paste(words: Lines, asked: Sequence[Question]) -> Iterator[str]:
    """The commands that settle what was asked of this one, one for each file of which something was asked."""
    own = list(dict.fromkeys(each.file for each in asked if each.file)) or [""]
    for file in own:
        flags = dict.fromkeys(flag for each in asked if each.file in ("", file) for flag in each.flags)
        settled = {name for name, _ in flags}
        given = zip(["", *words], words, strict=False)
        kept = [word for name, word in given if not {name, word.partition("=")[0]} & settled]
        if flags:
            others = [each for each in own if each != file]
            answers = [word for flag in flags for word in flag]
            yield typed("reviewsd-import", *(word for word in kept if word not in others), *answers)


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
            say([",".join(TEMPLATE)], sys.stdout)
            return EXIT_SUCCESS
        contract = shipped_contract()
        with files.locked(options.data, is_dry=options.dry_run):
            for lines in run(options, contract):
                say(lines, sys.stdout)
                if not options.dry_run:
                    reason = f"The reviews were imported; {INSIGHTS_FILE} stays as it is."
        if options.dry_run:
            say(["A dry run: nothing was written."], sys.stdout)
        return EXIT_SUCCESS
    except (BadData, Undecided) as fault:
        say([*fault.lines(), reason], sys.stderr)
        words = list(sys.argv[1:] if arguments is None else arguments)
        questions = fault.questions if isinstance(fault, Undecided) else ()
        if commands := list(to_paste(words, questions)):
            say(["Copy this, and put your own words where it says YOUR:", *commands], sys.stderr)
        return EXIT_BAD_DATA
    except KeyboardInterrupt:
        say(["stopped; give the same command again"], sys.stderr)
        return EXIT_STOPPED
    except OSError as error:
        say([f"cannot write {error.filename or 'the output'}: {error.strerror}"], sys.stderr)
        return EXIT_FAILURE
    except MemoryError:
        say(["too little memory for these files; nothing is lost"], sys.stderr)
        return EXIT_FAILURE


# What the table of flags cannot say by itself.
FLAG_KINDS = {"path": Path, "line": one_line, "yes or no": argparse.BooleanOptionalAction}


TASKS = ("files", "drop", "count", "forget", "forget_author", "template")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The flags; exits with EXIT_USAGE where they are wrong."""
    about = "Bring reviews from owners' exports into the data directory of reviewsd."
    usage = "%(prog)s FILE… --data DIR, and what else --help lists"
    parser = argparse.ArgumentParser("reviewsd-import", usage, about)
    for name, how in TABLES["flags"].items():
        kinds = {key: FLAG_KINDS[how[key]] for key in ("type", "action") if how.get(key) in FLAG_KINDS}
        parser.add_argument(name, **how | kinds)
    options = parser.parse_intermixed_args(arguments)
    blanks = [path for path in options.files if str(path).partition("=")[0] in FIELDS and not path.exists()]
    options.files = [path for path in options.files if path not in blanks]  # after commas in --map
    options.map = _map([*options.map[:-1], "".join([*options.map[-1:], *map(str, blanks)])], parser)
    for name, value in vars(options).items():
        if str(value).startswith("YOUR"):
            parser.error(f"--{name}: put your own words in the place of {value}")
    if options.template and (options.files or options.data):
        parser.error("--template takes neither FILE nor --data")
    if not options.template and options.data is None:
        parser.error("--data is missing: the directory of reviews.json")
    tasks = sum(bool(vars(options)[name]) for name in TASKS)
    if tasks != 1 and (tasks or not (options.rewrite_dates or options.forget_settings)):
        names = "FILE, --drop DIR, --count, --forget ID, --forget-author NAME and --template"
        parser.error(f"one of {names} is needed")
    for path in options.files:
        if not os.path.lexists(path):  # False for any path that the system does not take
            parser.error(f"there is no file {str(path)!r}")
    if options.drop and not options.drop.is_dir():
        parser.error(f"--drop {options.drop}: it is not a directory")
    if options.rewrite_dates and not options.zone:
        parser.error("--rewrite-dates needs --zone: the zone in which the dates are to be")
    if options.zone and options.zone not in available_timezones():
        hint = "expected for example Europe/Berlin" if available_timezones() else "install tzdata"
        parser.error(f"--zone {options.zone}: no time zone that this machine knows; {hint}")
    return options


def _map(values: Sequence[str], parser: argparse.ArgumentParser) -> dict[str, str]:
    """Header by field. A flag that is repeated holds one pair each, whose header may have commas."""
    columns: dict[str, str] = {}
    known = "|".join(FIELDS) if len(values) > 1 else r"\w+"
    for pair in (pair for value in values if value for pair in re.split(rf", *(?=(?:{known}) *=)", value)):
        name, header = map(str.strip, pair.partition("=")[::2])
        if name not in FIELDS or not header or name in columns:
            parser.error(f"--map {pair}: expected FIELD=HEADER, each field once, of {', '.join(FIELDS)}")
        columns[name] = one_line(header)
    return columns


if __name__ == "__main__":
    sys.exit(main())
