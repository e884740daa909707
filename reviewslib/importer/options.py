"""The command line of `reviewsd-import` as typed values. Its flags are data (`exports.json`)."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from reviewslib.importer.cells import TABLES, DateFormat, one_line

FIELDS = (*TABLES["template"], *TABLES["only_by_map"])  # of a CSV
TASKS = ("files", "drop", "count", "forget", "forget_author", "template")
TASK_NAMES = "FILE, --drop DIR, --count, --forget ID, --forget-author NAME and --template"
FLAG_KINDS = {"path": Path, "line": one_line, "yes or no": argparse.BooleanOptionalAction}


@dataclass(frozen=True)
class CsvSettings:
    """What the owner said of CSV files, or of those with one header; empty where nothing was said."""

    source: str = ""
    map: Mapping[str, str] = field(default_factory=dict)  # headers by field
    scale: str = ""  # the best rating
    date_order: str = ""  # "dmy" or "mdy"

    def given(self) -> dict[str, Any]:
        """The settings that are not empty, by name."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of a command, empty where nothing was said; the last two fields are not given by flags."""

    files: Sequence[Path] = ()
    data: Path = Path()
    drop: Path | None = None  # a folder, all exports in which are imported
    name: str = ""  # of the business
    zone: str = ""  # of the business
    location: Sequence[str] = ()  # numbers or titles
    csv: CsvSettings = CsvSettings()
    short_names: bool | None = None
    avatars: bool | None = None
    rewrite_dates: bool = False
    allow_removals: bool = False
    count: bool = False
    forget: str = ""  # an id
    forget_author: str = ""
    template: bool = False
    forget_settings: bool = False
    verbose: bool = False
    dry_run: bool = False
    latest_day: str = "9999-12-31"  # that a review can be of
    saved_csv: Mapping[str, CsvSettings] = field(default_factory=dict)  # by header

    def date_format(self, **how: Any) -> DateFormat:
        """How dates are written, and the zone in which they are stored."""
        return DateFormat(self.zone, self.latest_day, **how)


def parse(arguments: Sequence[str] | None) -> Options:
    """The options of a command line; exits with status 2 where they are wrong."""
    about = "Bring reviews from owners' exports into the data directory of reviewsd."
    usage = "%(prog)s FILE… --data DIR, and what else --help lists"
    parser = argparse.ArgumentParser("reviewsd-import", usage, about, argument_default=argparse.SUPPRESS)
    for name, how in TABLES["flags"].items():
        kinds = {key: FLAG_KINDS[how[key]] for key in ("type", "action") if how.get(key) in FLAG_KINDS}
        parser.add_argument(name, **how | kinds)
    flags = vars(parser.parse_intermixed_args(arguments))
    for name, value in flags.items():
        if str(value).startswith("YOUR"):
            parser.error(f"--{name}: put your own words in the place of {value}")
    # Words that the shell has split off --map at the blanks after its commas.
    paths, maps = flags.get("files", []), flags.get("map", [])
    split = [path for path in paths if str(path).partition("=")[0] in FIELDS and not path.exists()]
    flags["files"] = [path for path in paths if path not in split]
    try:
        flags["map"] = _map([*maps[:-1], "".join([*maps[-1:], *map(str, split)])])
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    of_csv = flags.keys() & {each.name for each in fields(CsvSettings)}
    options = Options(csv=CsvSettings(**{name: flags.pop(name) for name in of_csv}), **flags)
    if fault := _fault(options, has_data="data" in flags):
        parser.error(fault)
    return options


def _fault(options: Options, *, has_data: bool) -> str:
    """What is wrong with flags that are right one by one; empty if nothing is."""
    tasks = sum(bool(getattr(options, name)) for name in TASKS)
    is_task = tasks == 1 or (not tasks and (options.rewrite_dates or options.forget_settings))
    zones = available_timezones() if options.zone else set()
    hint = "expected for example Europe/Berlin" if zones else "install tzdata"
    # `lexists` is False for any path that the system does not take.
    absent = ", ".join(repr(str(path)) for path in options.files if not os.path.lexists(path))
    faults = {
        "--template takes neither FILE nor --data": options.template and (options.files or has_data),
        "--data is missing: the directory of reviews.json": not (options.template or has_data),
        f"one of {TASK_NAMES} is needed": not is_task,
        f"there is no file {absent}": absent,
        f"--drop {options.drop}: it is not a directory": options.drop and not options.drop.is_dir(),
        "--rewrite-dates needs --zone: the zone in which the dates are to be": (
            options.rewrite_dates and not options.zone
        ),
        f"--zone {options.zone}: no time zone that this machine knows; {hint}": (
            options.zone and options.zone not in zones
        ),
    }
    return next((fault for fault, is_there in faults.items() if is_there), "")


def _map(values: Sequence[str]) -> dict[str, str]:
    """Header by field. A flag that is repeated holds one pair each, whose header may have commas."""
    columns: dict[str, str] = {}
    known = "|".join(FIELDS) if len(values) > 1 else r"\w+"
    for pair in (pair for value in values if value for pair in re.split(rf", *(?=(?:{known}) *=)", value)):
        name, header = map(str.strip, pair.partition("=")[::2])
        if name not in FIELDS or not header or name in columns:
            reason = f"expected FIELD=HEADER, each field once, of {', '.join(FIELDS)}"
            raise argparse.ArgumentTypeError(f"--map {pair}: {reason}")
        columns[name] = one_line(header)
    return columns
