"""The command line of `reviewsd-import` as typed values.

Sections: templates - the command line - values of flags.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from reviewslib.dataset.provenance import LONGEST_SOURCE
from reviewslib.importer.formats import format_data
from reviewslib.importer.stars import GREATEST_SCALE, LEAST_SCALE
from reviewslib.importer.texts import clean_line

# The header of a table that needs no --map.
TABLE_TEMPLATE: tuple[str, ...] = tuple(format_data("tables")["template"])
# Of a table.
FIELDS = (*TABLE_TEMPLATE, "status", "title", "reply_status", "parent")


@dataclass(frozen=True)
class TableSettings:
    """Settings of tables with a certain header; empty if the owner has given none."""

    source: str = ""
    map: Mapping[str, str] = field(default_factory=dict)  # columns by field
    scale: str = ""  # the best rating
    date_order: str = ""  # "dmy" or "mdy"
    complete: Sequence[str] = ()  # sources of which these tables have all reviews
    html: str = ""  # "yes" if texts are HTML, "no" if the owner says that they are not
    replies_by: Sequence[str] = ()  # authors of rows that answer for the shop


def nonempty(value: Any) -> dict[str, Any]:
    """The members of a dataclass that are not empty, by name."""
    members = {key.name: getattr(value, key.name) for key in fields(value)}
    return {name: member for name, member in members.items() if member}


@dataclass(frozen=True)
class Options:
    """The flags of a command, empty if absent.

    The last two fields come from the clock and the state.
    """

    files: Sequence[Path] = ()
    data: Path = Path()
    drop: Path | None = None
    google: Path | None = None  # the key to Google's API
    google_login: Path | None = None  # a client's JSON, to write that key
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
    anyway: bool = False  # also if nobody has the name
    redact: Sequence[str] = ()  # the id or the address of a review, and words
    verbose: bool = False
    dry_run: bool = False
    # The latest possible time of an export and of a date, in UTC.
    latest: str = "9999-12-31T00:00:00Z"
    # Of earlier tables, by normalized header.
    headers: Mapping[str, TableSettings] = field(default_factory=dict)


# ---- Templates: what an owner fills in ----


def _table_template() -> str:
    return ",".join(TABLE_TEMPLATE)


def _business_template() -> str:
    """An example of every field of `business`, whose shapes nulls do not show."""
    example = resources.files(__package__) / "business.json"
    return example.read_text(encoding="utf-8").rstrip()


TEMPLATES = {"table": _table_template, "business": _business_template}


class _PrintTemplate(argparse.Action):
    """Print a template and exit."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        print(TEMPLATES[values]())
        parser.exit()


# ---- The command line ----


def remembered(options: Options) -> dict[str, Any]:
    """The flags that later commands remember, without absent ones."""
    values = {
        name: getattr(options, name) for name in ("zone", "short_names", "avatars")
    }
    return {name: value for name, value in values.items() if value not in ("", None)}


def command_line() -> argparse.ArgumentParser:
    """The parser of all flags."""
    parser = argparse.ArgumentParser(
        "reviewsd-import",
        "%(prog)s FILE… --data DIR [options]",
        "Import reviews from exports into the data directory of reviewsd.",
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    yes_or_no = argparse.BooleanOptionalAction
    add(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="Takeout (ZIP, folder, file), API pages, or CSV",
    )
    add(
        "--data",
        type=Path,
        metavar="DIR",
        help="directory of reviews.json; may be absent",
    )
    add(
        "--drop",
        type=Path,
        metavar="DIR",
        help="import all exports of a folder; report and skip the rest",
    )
    add(
        "--google",
        type=Path,
        metavar="KEY",
        help="import from Google's Business Profile API with this key (docs/google.md)",
    )
    add(
        "--google-login",
        type=Path,
        metavar="CLIENT",
        help="log in with a browser, and write the key that --google names",
    )
    add(
        "--zone",
        type=_zone,
        help="time zone of the business, such as Europe/Berlin; remembered",
    )
    add("--name", type=_answer, help="the name of the business, if no export has it")
    add(
        "--location",
        action="append",
        type=_answer,
        help="number of a location; repeatable; remembered",
    )
    add(
        "--complete",
        action="store_true",
        help="these tables or pages have every review; tables: remembered",
    )
    add(
        "--allow-removals",
        action="store_true",
        help="remove reviews that were held back, however many",
    )
    add(
        "--forget",
        metavar="ID",
        help="remove a review for good, by its id or the address of its page",
    )
    add(
        "--forget-author",
        type=clean_line,
        metavar="NAME",
        help="remove all reviews of an author for good",
    )
    add(
        "--anyway",
        action="store_true",
        help="with --forget-author: also if nobody has this name yet",
    )
    add(
        "--redact",
        nargs=2,
        metavar=("ID", "WORDS"),
        help="replace words with […] in a review for good",
    )
    add(
        "--short-names",
        action=yes_or_no,
        help="“Camille R.” instead of “Camille Roux”; remembered",
    )
    add(
        "--avatars",
        action=yes_or_no,
        help="import the addresses of customers' pictures; remembered",
    )
    add(
        "--source",
        type=_source,
        help="where the reviews of a table were published; remembered",
    )
    columns = "columns of a table by field, - for none; repeatable; remembered"
    add("--map", action="append", type=_columns, metavar="FIELD=COLUMN,…", help=columns)
    add(
        "--date-order",
        choices=["dmy", "mdy"],
        help="the order of 05/03/2024 in a table; remembered",
    )
    add(
        "--scale",
        type=_scale,
        metavar="N",
        help="the best rating in a table, 2 to 100; default 5; remembered",
    )
    add(
        "--html",
        action=yes_or_no,
        help="the texts of a table are HTML; remembered",
    )
    add(
        "--replies-by",
        action="append",
        type=_answer,
        metavar="NAME",
        help="whose answers in a table are the shop's; repeatable; remembered",
    )
    add(
        "--template",
        action=_PrintTemplate,
        nargs="?",
        choices=list(TEMPLATES),
        const="table",
        help="print a header for tables, or an example of each field of business",
    )
    add(
        "--count",
        action="store_true",
        help="make insights.json from reviews.json and editorial.json",
    )
    add("--verbose", action="store_true", help="list all that the report counts")
    add(
        "--dry-run",
        action="store_true",
        help="report what would change, and write nothing",
    )
    return parser


TASKS = ("files", "drop", "google", "count", "forget", "forget_author", "redact")
SETTINGS = {"zone", "location", "short_names", "avatars", "allow_removals"}


def parse(arguments: Sequence[str] | None) -> Options:
    """The options of a command line; exits with status 2 if they are wrong."""
    parser = command_line()
    flags = vars(parser.parse_intermixed_args(arguments))
    if "google_login" in flags:
        _check_login(flags, parser)
        return Options(**flags)
    _check_task(flags, parser)
    table = _table_settings(flags)
    others = {name: flag for name, flag in flags.items() if name not in OF_TABLES}
    return Options(table=table, **others)


def _check_login(flags: Mapping[str, Any], parser: argparse.ArgumentParser) -> None:
    """Exits with status 2 unless --google is the one flag beside --google-login."""
    others = flags.keys() - {"files", "google", "google_login"}
    if others or flags.get("files"):
        parser.error("--google-login takes --google alone beside it")
    if "google" not in flags:
        parser.error("--google-login needs --google, the file to write")


def _check_task(flags: Mapping[str, Any], parser: argparse.ArgumentParser) -> None:
    """Exits with status 2 unless a command has a directory and one thing to do."""
    if "data" not in flags:
        parser.error("the following arguments are required: --data")
    tasks = [name for name in TASKS if flags.get(name)]
    if "google" in tasks and "files" in tasks:
        # Both are exports of one command.
        tasks.remove("files")
    if len(tasks) > 1 or not (tasks or flags.keys() & SETTINGS):
        parser.error(
            "give one of FILE, --drop, --google, --count, --forget, --forget-author "
            "and --redact"
        )


# --complete is said of all tables and pages of a command.
OF_TABLES = {field.name for field in fields(TableSettings)} - {"complete"}


def _table_settings(flags: Mapping[str, Any]) -> TableSettings:
    """What the flags say of tables."""
    settings = {name: flag for name, flag in flags.items() if name in OF_TABLES}
    columns = dict[str, str]()
    for each in flags.get("map", ()):
        columns |= each
    settings["map"] = columns
    if "html" in flags:
        settings["html"] = "yes" if flags["html"] else "no"
    return TableSettings(**settings)


# ---- Values of flags: each function raises ArgumentTypeError for a wrong one ----


def _answer(text: str) -> str:
    """The owner's words, which replace the YOUR of a question."""
    if "YOUR" in re.split(r"\W", text):
        raise argparse.ArgumentTypeError("replace YOUR with your own words")
    return clean_line(text)


def _zone(text: str) -> str:
    """The name of a time zone that the machine knows."""
    # A list of all would take a twentieth of a second.
    with suppress(OSError, ValueError, KeyError):
        return ZoneInfo(_answer(text)).key
    similar = get_close_matches(text, available_timezones(), n=1)
    if similar:
        reason = f"not a time zone; did you mean {similar[0]}?"
    else:
        reason = "not a time zone such as Europe/Berlin; if none works, install tzdata"
    raise argparse.ArgumentTypeError(f"{text}: {reason}")


def _scale(text: str) -> str:
    """The best rating of a table."""
    if not text.isdecimal() or not LEAST_SCALE <= int(text[:9]) <= GREATEST_SCALE:
        reason = f"expected a whole number from {LEAST_SCALE} to {GREATEST_SCALE}"
        raise argparse.ArgumentTypeError(f"{text}: {reason}")
    return str(int(text))


def _source(text: str) -> str:
    """Where reviews were published: any word, since a guestbook is a source, too.

    A dash, which means no column in a map, is none, nor is a number, nor a text that no
    list of sources shows.
    """
    source = _answer(text)
    if len(source) > LONGEST_SOURCE or not any(map(str.isalpha, source)):
        reason = "expected where reviews were published, such as facebook"
        raise argparse.ArgumentTypeError(f"{text}: {reason}")
    return source


BETWEEN_PAIRS = re.compile(rf", *(?=(?:{'|'.join(FIELDS)}) *=)")


def _columns(text: str) -> dict[str, str]:
    """Columns by field.

    A column may have commas, but not before the name of a field and an equals sign.
    """
    columns = {}
    for pair in BETWEEN_PAIRS.split(_answer(text)):
        name, column = map(str.strip, pair.partition("=")[::2])
        if name not in FIELDS or not column:
            raise argparse.ArgumentTypeError(
                f"{pair}: expected FIELD=COLUMN, of {', '.join(FIELDS)}"
            )
        columns[name] = column
    return columns
