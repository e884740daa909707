"""`reviewsd-import`: owners' exports become `reviews.json`, again and again, and insights are counted.

Here files are read and written; what an export looks like is the subject of `exports.py`, what follows from
it of `merging.py`. Nothing is fetched. The daemon does not import this module: it sees that a file changed.

Sections: Exports - Data directory - Import - Insights - Command line
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import sys
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TextIO
from zoneinfo import available_timezones

from contract import BadData, Contract, Fault, printable, read_contract
from exports import (
    FIELDS,
    MEMBER,
    SPREADSHEET,
    TEMPLATE,
    Exports,
    Member,
    Undecided,
    one_line,
    read_single,
    read_takeout,
    refused,
)
from insights import COUNTED_KEYS, MODEL, counted, outdated
from links import Links
from merging import STATE_FILE, State, Stored, compare_annotations, digest, entry_of, merge, read_state
from reviews import INSIGHTS_FILE, REVIEWS_FILE, editorial_complaints, load, read_file, served_reviews
from snapshot import read_unchanging, shipped
from strict_json import Json, NotJson, decode

EXIT_SUCCESS, EXIT_FAILURE, EXIT_USAGE, EXIT_BAD_DATA = 0, 1, 2, 78
EDITORIAL_FILE, SUPPRESSED_FILE = "editorial.json", "suppressed.txt"
Lines = list[str]  # of the report

# ---- Exports: files, folders and archives, of which only what is needed is read ----

MOST_BYTES = 64 * 1024 * 1024  # of a file, or of a member of an archive
PART = re.compile(r"(.+)-([0-9]{3})")  # of an archive that Google has split
QUIET_SECONDS = 2.0


def read_exports(options: argparse.Namespace) -> Exports:
    """What the files say, in the order in which they are named. Raises BadData and Undecided."""
    exports, started = Exports(), time.monotonic()
    wholes = defaultdict[str, list[Path]](list)  # parts by the name of the whole
    for path in dict.fromkeys(options.files):
        part = PART.fullmatch(path.stem) if path.is_dir() or _is_archive(path) else None
        wholes[str(path.with_name(f"{part[1]}-*") if part else path)].append(path)
    for name, parts in wholes.items():
        if sys.stderr.isatty() and time.monotonic() > started + QUIET_SECONDS:
            say([f"reading {name} …"], sys.stderr)
        if parts[0].is_dir() or _is_archive(parts[0]):
            numbers = sorted(int(part[2]) for path in parts if (part := PART.fullmatch(path.stem)))
            members = (member for path in parts for member in _members(path))
            is_whole = numbers == list(range(1, len(numbers) + 1))
            read_takeout(members, name, options, exports, is_whole=is_whole)
        else:
            read_single(_read(parts[0]), name, options, exports)
    return exports


def _is_archive(path: Path) -> bool:
    try:
        if not path.is_file():
            raise refused(str(path), "neither a file nor a folder")
        with open(path, "rb") as file:
            return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")  # the latter is one without members
    except OSError as error:
        raise refused(str(path), f"cannot be read: {error.strerror}") from None


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size <= MOST_BYTES:
            return read_unchanging(path)[0]
    except OSError as error:
        raise refused(str(path), f"cannot be read: {error.strerror or error}") from None
    raise refused(str(path), TOO_LARGE)


TOO_LARGE = f"larger than {MOST_BYTES // 2**20} MiB; no file of reviews is"


def _members(path: Path) -> Iterator[Member]:
    """The files of a folder or an archive that may hold reviews. Raises BadData."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if MEMBER.fullmatch(file.name) and not file.is_symlink():
                yield Member(PurePosixPath(file.relative_to(path)), str(file), _read(file))
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                inside, name = PurePosixPath(info.filename), f"{path}:{info.filename}"
                if info.filename in ("xl/workbook.xml", "content.xml"):
                    raise refused(str(path), SPREADSHEET)
                if MEMBER.fullmatch(inside.name):
                    with archive.open(info) as member:
                        if len(data := member.read(MOST_BYTES + 1)) > MOST_BYTES:
                            raise refused(name, TOO_LARGE)
                    yield Member(inside, name, data)
    except BadData:
        raise
    except Exception as error:  # a damaged archive makes zipfile and its decoders raise a dozen kinds
        reason = f"a damaged or encrypted archive ({error or type(error).__name__}); download it again"
        raise refused(str(path), reason) from None


# ---- Data directory: what is there, and how it is replaced ----

SUPPRESSED_LINE = re.compile("(?:author )?[0-9a-f]{64}")
SAMPLE_NAME, SAMPLE_ID = "Larkspur Hollow Chiropractic", "01M7F1SV60XJ4PFV38D0FMZ6BZ"  # of the data shipped


def read_stored(directory: Path, contract: Contract) -> Stored:
    """Everything in the directory. Raises BadData, also for the sample, which is never merged with."""
    reviews, insights = _content(directory / REVIEWS_FILE), _content(directory / INSIGHTS_FILE)
    document: dict[str, Json] = {}
    if reviews is not None:
        load(contract, reviews, insights, Links())
        document = decode(reviews)
        ids = {review["id"] for review in document["reviews"]}
        if document["business"]["name"] == SAMPLE_NAME or SAMPLE_ID in ids:
            reason = "the sample, which is never merged with; name another directory, such as --data my-data"
            raise refused(str(directory), reason)
    state, reviews_digest = _content(directory / STATE_FILE), file_digest(reviews)
    try:
        known = read_state(None if state is None else decode(state), reviews_digest)
    except NotJson as error:
        raise refused(STATE_FILE, f"{error}; delete the file to have it made anew") from None
    return Stored(document, reviews_digest, insights, known, _suppressed(directory))


def _content(path: Path) -> bytes | None:
    return _read(path) if path.exists() else None


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


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """One import at a time. Raises OSError while there is another."""
    if not directory.exists():
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise OSError(None, "another import is under way", str(directory)) from None
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes, *, is_dry: bool) -> None:
    """Replace a file as a whole, unless it has this content, or see whether it may be. Raises OSError."""
    path = Path(os.path.realpath(path))  # also of links that go in circles, unlike `resolve`
    if path.exists() and path.read_bytes() == content:
        return
    if is_dry:
        directory = next(each for each in path.parents if each.exists())
        if not os.access(directory, os.W_OK | os.X_OK):
            raise OSError(None, "it is not yours to change", str(directory))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    try:
        with open(draft, "wb") as file:
            if path.exists():
                shutil.copymode(path, draft)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:  # a full disk has no name
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        draft.unlink(missing_ok=True)


def encoded(document: Json) -> bytes:
    """A data file that people can read."""
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"


# ---- Import ----


class NotCounted(BadData):
    """The reviews were imported, but the insights could not be counted."""


def run(options: argparse.Namespace, contract: Contract) -> Lines:
    """Import the files, or forget a review; write what has changed after the daemon's own check, and count.

    The state is written first: after a failure of power between the files nothing looks changed by hand.
    Returns the report. Raises BadData, Undecided and OSError.
    """
    stored = read_stored(options.data, contract)
    if options.count:
        if not stored.document:
            raise refused(REVIEWS_FILE, f"there is none in {options.data}")
        return count(options, contract, stored.document, stored.state)
    remember(options, stored.state)
    forgotten = suppress(options, stored) if options.forget else []
    stored = stored._replace(suppressed={*stored.suppressed, *forgotten})
    document, state, lines = merge(stored, read_exports(options), options, contract)
    lines = [*(f"{SUPPRESSED_FILE}: {line}" for line in forgotten), *lines]
    path, reviews = options.data / REVIEWS_FILE, encoded(document)
    if is_changed := document != stored.document:
        state["replaced"] = stored.reviews_digest
        served = load(contract, reviews, stored.insights, Links())
        lines += [f"warning: {warning}" for warning in served.warnings if stored.insights is not None]
    write(options.data / STATE_FILE, encoded(state), is_dry=options.dry_run)
    if is_changed:
        write(path, reviews, is_dry=options.dry_run)
    done = "is written" if is_changed else "stays as it is"
    lines.append(f"{path} {done}: {len(document['reviews'])} reviews.")
    if is_changed:
        lines.append(f"A running service shows them soon; else start it: reviewsd --data {options.data}")
    try:
        if (options.data / EDITORIAL_FILE).exists() or (stored.insights and state["insights"]):
            lines += count(options, contract, document, state)
    except BadData as bad:
        say(lines, sys.stdout)
        raise NotCounted(bad.faults) from None
    return lines


def remember(options: argparse.Namespace, state: State) -> None:
    """Complete the flags by what earlier commands said. Raises Undecided for another zone."""
    if options.zone and state["zone"] not in ("", options.zone):
        question = f"The dates here were written in the zone {state['zone']}, not in {options.zone}."
        raise Undecided(question, "Leave --zone out, or import everything anew into an empty directory.")
    options.zone = options.zone or state["zone"]
    if options.zone and options.zone not in available_timezones():
        raise refused(STATE_FILE, f"{options.zone!r} is not a time zone that this machine knows")
    if options.short_names is None:
        options.short_names = state["names"] == "short"


def suppress(options: argparse.Namespace, stored: Stored) -> Lines:
    """Add a review to suppressed.txt; its lines there. Raises BadData and OSError."""
    reviews = {review["id"]: review for review in stored.document.get("reviews", ())}
    if options.forget not in reviews:
        raise refused(REVIEWS_FILE, f"no review has the id {options.forget!r}")
    entry = stored.state["reviews"].get(options.forget) or entry_of(reviews[options.forget])
    native_ids = entry["native"].values() or [options.forget]
    lines = [digest(entry["source"], native_id) for native_id in native_ids]
    path = options.data / SUPPRESSED_FILE
    before = (_content(path) or b"").decode("utf-8-sig").splitlines()
    added = [line for line in lines if line not in stored.suppressed]
    write(path, "".join(f"{line}\n" for line in (*before, *added)).encode(), is_dry=options.dry_run)
    return lines


# ---- Insights ----


def count(options: argparse.Namespace, contract: Contract, document: dict[str, Json], state: State) -> Lines:
    """Make insights.json of `document`, which has the form of reviews.json, and of editorial.json.

    An insights.json that is not ours becomes editorial.json before.
    """
    paths = [options.data / name for name in (EDITORIAL_FILE, STATE_FILE, INSIGHTS_FILE)]
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
    elif state["insights"] and file_digest(old) not in ("", *state["insights"].split()):
        raise refused(INSIGHTS_FILE, f"changed by hand; put that into {EDITORIAL_FILE} and remove this file")
    _, faults = read_file(EDITORIAL_FILE, editorial or b"{}", contract.editorial_file, editorial_complaints)
    if faults:
        raise BadData(faults)
    by_hand: dict[str, Json] = decode(editorial or b"{}")
    reviews = served_reviews(contract.reviews_file.complete(document)["reviews"], {})
    lines += [
        f"warning: {Fault(EDITORIAL_FILE, path, reason)}" for path, reason in outdated(reviews, by_hand)
    ]
    annotated, changed = compare_annotations(reviews, by_hand.get("per_review") or {}, state["annotated"])
    lines += [f"warning: {id} has changed since its per_review was written" for id in changed]
    insights, passing = counted(reviews, by_hand), ("version", "generated_at")
    new, now = old or b"", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if is_changed := insights != {key: value for key, value in before.items() if key not in passing}:
        new = encoded({"version": (before.get("version") or 0) + 1, "generated_at": now} | insights)
        load(contract, encoded(document), new, Links())
    known = state["insights"] if not is_changed else f"{file_digest(new)} {file_digest(old)}"
    contents = editorial, encoded(state | {"annotated": annotated, "insights": known}), new
    for path, content in zip(paths, contents, strict=True):
        if content is not None:
            write(path, content, is_dry=options.dry_run)
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
            say([",".join(TEMPLATE)], sys.stdout)
            return EXIT_SUCCESS
        contract = read_contract(decode(shipped("data/openapi.json").read_bytes()))
        with locked(options.data):
            say(run(options, contract), sys.stdout)
        if options.dry_run:
            say(["A dry run: nothing was written."], sys.stdout)
        return EXIT_SUCCESS
    except (BadData, Undecided) as fault:
        if isinstance(fault, NotCounted) and not options.dry_run:
            reason = f"The reviews were imported; {INSIGHTS_FILE} stays as it is."
        say([*fault.lines(), reason], sys.stderr)
        return EXIT_BAD_DATA
    except OSError as error:
        say([f"cannot write {error.filename or 'the output'}: {error.strerror}"], sys.stderr)
        return EXIT_FAILURE
    except MemoryError:
        say(["too little memory for these files; nothing is lost"], sys.stderr)
        return EXIT_FAILURE


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The flags; exits with EXIT_USAGE where they are wrong."""
    about = "Bring reviews from owners' exports into the data directory of reviewsd."
    parser = argparse.ArgumentParser("reviewsd-import", description=about)
    add = parser.add_argument
    exports = "Google Takeout (ZIP, folder or file), saved pages of the Business Profile API, CSV"
    add("files", nargs="*", type=Path, metavar="FILE", help=exports)
    add("--data", type=Path, metavar="DIR", help="directory of reviews.json; a new one is made")
    add("--name", type=one_line, default="", help="what the business is called, where no export says it")
    add("--source", type=one_line, default="", help="where the reviews of a CSV were published: facebook")
    add("--zone", default="", help="time zone of the business, as America/Los_Angeles; remembered")
    add("--location", default="", help="which location, when an export has several: number or title")
    columns = "columns of a CSV whose header is not the one that --template prints"
    add("--map", action="append", default=[], metavar="FIELD=HEADER,…", help=columns)
    add("--date-order", choices=("dmy", "mdy"), help="what 05/03/2024 means in a CSV")
    add("--scale", type=int, choices=(5, 10, 100), help="the best rating in a CSV; default 5")
    short = "“Camille R.” instead of “Camille Roux”; remembered"
    add("--short-names", action=argparse.BooleanOptionalAction, help=short)
    add("--avatars", action="store_true", help="take the addresses of pictures of customers, too")
    add("--allow-removals", action="store_true", help="remove even more than a tenth of the reviews")
    add("--count", action="store_true", help="make insights.json of reviews.json and editorial.json")
    add("--forget", metavar="ID", help="remove a review for good")
    add("--template", action="store_true", help="print the header of a CSV that needs no --map")
    add("--dry-run", action="store_true", help="say what would be done, and write nothing")
    options = parser.parse_args(arguments)
    options.map = _map(options.map, parser)
    if options.template and (options.files or options.data):
        parser.error("--template takes neither FILE nor --data")
    if not options.template and options.data is None:
        parser.error("--data is missing: the directory of reviews.json")
    if bool(options.files) + options.count + bool(options.forget) + options.template != 1:
        parser.error("one of FILE, --count, --forget ID and --template is needed")
    for path in options.files:
        if not os.path.exists(path):  # False for any path that the system does not take
            parser.error(f"there is no file {str(path)!r}")
    if options.zone and options.zone not in available_timezones():
        hint = "expected for example Europe/Berlin" if available_timezones() else "install tzdata"
        parser.error(f"--zone {options.zone}: no time zone that this machine knows; {hint}")
    return options


def _map(values: Sequence[str], parser: argparse.ArgumentParser) -> dict[str, str]:
    """Header by field. A flag that is repeated holds one pair each, whose header may have commas."""
    columns: dict[str, str] = {}
    known = "|".join(FIELDS) if len(values) > 1 else r"\w+"
    for pair in (pair for value in values for pair in re.split(rf",(?=(?:{known})=)", value)):
        name, _, header = pair.partition("=")
        if name not in FIELDS or not header or name in columns:
            parser.error(f"--map {pair}: expected FIELD=HEADER, each field once, of {', '.join(FIELDS)}")
        columns[name] = one_line(header)
    return columns


if __name__ == "__main__":
    sys.exit(main())
