"""The command line of `reviewsd-import` as typed values."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from reviewslib.importer.cells import FORMATS, one_line

TEMPLATE: tuple[str, ...] = tuple(FORMATS["template"])  # the header of a table that needs no --map
FIELDS = (*TEMPLATE, "status", "title", "reply_status")  # of a table


@dataclass(frozen=True)
class TableSettings:
    """Settings of tables with a certain header; empty if the owner has not given them."""

    source: str = ""
    map: Mapping[str, str] = field(default_factory=dict)  # columns by field
    scale: str = ""  # the best rating
    date_order: str = ""  # "dmy" or "mdy"
    complete: Sequence[str] = ()  # sources of which these tables have all reviews
    is_html: bool = False  # whether texts are HTML


def nonempty(value: Any) -> dict[str, Any]:
    """The members of a dataclass that are not empty, by name."""
    return {key.name: member for key in fields(value) if (member := getattr(value, key.name))}


@dataclass(frozen=True)
class Options:
    """The flags of a command, empty if absent; the last two fields come from the clock and the state."""

    files: Sequence[Path] = ()
    data: Path = Path()
    drop: Path | None = None
    name: str = ""
    zone: str = ""
    location: Sequence[str] = ()  # numbers
    table: TableSettings = TableSettings()
    complete: bool = False
    short_names: bool | None = None
    avatars: bool | None = None
    allow_removals: bool = False
    count: bool = False
    forget: str = ""  # the id or the address of a review
    forget_author: str = ""
    redact: Sequence[str] = ()  # the id or the address of a review, and words
    verbose: bool = False
    dry_run: bool = False
    latest: str = "9999-12-31T00:00:00Z"  # the latest possible time of an export and of a date, in UTC
    headers: Mapping[str, TableSettings] = field(default_factory=dict)  # of earlier tables


def command_line() -> argparse.ArgumentParser:
    """The parser of all flags."""
    parser = argparse.ArgumentParser(
        "reviewsd-import",
        "%(prog)s FILE… --data DIR [options]",
        "Import reviews from exports into the data directory of reviewsd.",
        argument_default=argparse.SUPPRESS,
        formatter_class=argparse.RawDescriptionHelpFormatter,  # prints the template in one line
    )
    add, yes_or_no = parser.add_argument, argparse.BooleanOptionalAction
    kinds = "Google Takeout (ZIP, folder or file), saved pages of the Business Profile API, CSV"
    add("files", nargs="*", type=Path, metavar="FILE", help=kinds)
    add("--data", type=Path, required=True, metavar="DIR", help="directory of reviews.json; may be absent")
    add("--drop", type=Path, metavar="DIR", help="import all exports of a folder; report and skip the rest")
    add("--zone", help="time zone of the business, such as Europe/Berlin; default UTC; remembered")
    add("--name", type=one_line, help="the name of the business, if no export has it")
    add("--location", action="append", help="the number of a location to import; repeatable; remembered")
    complete = "these tables or pages of the API have every review; remembered for tables"
    add("--complete", action="store_true", help=complete)
    add("--allow-removals", action="store_true", help="remove reviews that were held back, however many")
    add("--forget", metavar="ID", help="remove a review for good, by its id or the address of its page")
    add("--forget-author", type=one_line, metavar="NAME", help="remove all reviews of an author for good")
    add("--redact", nargs=2, metavar=("ID", "WORDS"), help="replace words with […] in a review for good")
    add("--short-names", action=yes_or_no, help="“Camille R.” instead of “Camille Roux”; remembered")
    add("--avatars", action=yes_or_no, help="import the addresses of customers' pictures; remembered")
    add("--source", type=one_line, help="where the reviews of a table were published; remembered")
    map_help = "columns of a table with an unknown header, - for no column; remembered"
    add("--map", action="append", metavar="FIELD=COLUMN,…", help=map_help)
    add("--date-order", choices=["dmy", "mdy"], help="the order of 05/03/2024 in a table; remembered")
    add("--scale", choices=["5", "10", "100"], help="the best rating in a table; default 5; remembered")
    template = "print the header of a table that needs no --map"
    add("--template", action="version", version=",".join(TEMPLATE), help=template)
    add("--count", action="store_true", help="make insights.json from reviews.json and editorial.json")
    add("--verbose", action="store_true", help="list all that the report counts")
    add("--dry-run", action="store_true", help="report what would change, and write nothing")
    return parser


def parse(arguments: Sequence[str] | None) -> Options:
    """The options of a command line; exits with status 2 if they are wrong."""
    parser = command_line()
    flags = vars(parser.parse_intermixed_args(arguments))
    for name in ("zone", "name", "location", "source", "map"):
        if "YOUR" in re.split(r"\W", str(flags.get(name, ""))):
            parser.error(f"--{name}: replace YOUR with your own words")
    try:
        flags["map"] = _map(flags.get("map", []))
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    of_tables = flags.keys() & {"source", "map", "scale", "date_order"}
    options = Options(table=TableSettings(**{name: flags.pop(name) for name in of_tables}), **flags)
    if fault := _fault(options):
        parser.error(fault)
    return options


TASKS = ("files", "drop", "count", "forget", "forget_author", "redact")
SETTINGS = ("zone", "location", "short_names", "avatars", "allow_removals")


def _fault(options: Options) -> str:
    """The error in a combination of flags, or in a path, a number or a zone; empty if there is none."""
    tasks = sum(bool(getattr(options, name)) for name in TASKS)
    is_setting = any(getattr(options, name) != getattr(Options, name) for name in SETTINGS)
    # `lexists` is False for a path that the system does not accept; `Path.exists` may raise OSError.
    absent = ", ".join(repr(str(path)) for path in options.files if not os.path.lexists(path))
    if tasks > 1 or not (tasks or is_setting):
        return "give one of FILE, --drop, --count, --forget, --forget-author and --redact"
    if absent:
        return f"there is no file {absent}"
    if options.drop and not options.drop.is_dir():
        return f"--drop {options.drop}: not a directory"
    if not all(map(str.isdigit, options.location)):
        return "--location: expected the number of a location"
    if options.zone and not _is_zone(options.zone):
        return f"--zone {options.zone}: not a time zone such as Europe/Berlin; if none works, install tzdata"
    return ""


def _is_zone(name: str) -> bool:
    """Whether the machine knows a time zone. A list of all zones would take a twentieth of a second."""
    with suppress(OSError, ValueError, KeyError):
        return bool(ZoneInfo(name))
    return False


def _map(values: Sequence[str]) -> dict[str, str]:
    """Columns by field. A column may have commas, but not before the name of a field and an equals sign."""
    columns: dict[str, str] = {}
    for pair in (pair for value in values if value for pair in BETWEEN_PAIRS.split(value)):
        name, column = map(str.strip, pair.partition("=")[::2])
        if name not in FIELDS or not column or name in columns:
            reason = f"expected FIELD=COLUMN, each field once, of {', '.join(FIELDS)}"
            raise argparse.ArgumentTypeError(f"--map {pair}: {reason}")
        columns[name] = one_line(column)
    return columns


BETWEEN_PAIRS = re.compile(rf", *(?=(?:{'|'.join(FIELDS)}) *=)")
