"""Dates of exports: a day, a moment in UTC, or a time without a zone.

Words for months and weekdays are data (`formats/dates.json`). This module is pure.

Sections: reading - forms of a day - the order of day and month in a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from reviewslib.dataset.contract import quoted
from reviewslib.dataset.moments import utc_text
from reviewslib.dataset.text import fold
from reviewslib.importer.formats import format_data
from reviewslib.importer.texts import BadRecord, whole_number

DATE_WORDS = format_data("dates")

# ---- Reading ----

# Seconds or milliseconds; ten digits are the years from 2001 to 2286.
UNIX_TIME = re.compile(r"[0-9]{10}([0-9]{3})?")
# A name after an offset, such as “+0100 (CET)”, says nothing that the offset does not.
# A name alone, such as EST, is no zone: it means several.
CLOCK_TIME = re.compile(
    r"[ ,]*(?P<minutes>[0-9]{1,2}:[0-9]{2})(?P<seconds>:[0-9]{2})?(?:[.,][0-9]+)?"
    r" *(?P<half>[ap]m)?"
    r" *(?:(?P<offset>(?:(?:utc|gmt) *)?[+-][0-9]{1,2}(?::?[0-9]{2})?)"
    r"(?: *\([^()]*\)| +[a-z]{1,5})?"
    r"|(?P<utc>utc|gmt|z)(?: *\([^()]*\))?)?\Z"
)
# Chinese and Japanese write year, month and day so, and a weekday in brackets or
# without.
CJK_DAY = re.compile(r"([0-9]{4}) *年 *([0-9]{1,2}) *月 *([0-9]{1,2}) *[日号號]?")
CJK_WEEKDAY = re.compile(
    r"[(（]?(?:[月火水木金土日]曜日?|星期.|[(（][月火水木金土日])[)）]?"
)
# No review on the web is older. An older day is rather a zero that a program took for a
# date, such as 1970-01-01 or 1899-12-30.
EARLIEST_DAY = "1990"
# Characters, as in “… GMT+0200 (Central European Summer Time)”.
LONGEST_DATE = 90
FORM_ADVICE = (
    "Give the column the format 2024-01-31 (YYYY-MM-DD) in a spreadsheet program, which "
    "changes all rows at once, and save it as “CSV UTF-8”; or map another column."
)


class DateFormat(NamedTuple):
    """How dates are written, and the latest possible day or moment."""

    latest: str = "9999-12-31"
    order: str = "dmy"  # "dmy" or "mdy": the order of day and month in 05/03/2024
    is_utc: bool = False  # whether times without a zone are in UTC


def read_date(text: str, format: DateFormat) -> str:
    """The date in `text`, in any known form; empty for an empty text. Raises BadRecord.

    A day becomes YYYY-MM-DD, a moment YYYY-MM-DDTHH:MM:SSZ, and a time without a zone
    the same without Z.
    """
    if not text:
        return ""
    text = whole_number(text)
    try:
        moment = _moment(text, format.order)
    except (ValueError, OverflowError):
        reason = f"{quoted(text)} is not a date in a known form, or does not exist"
        raise BadRecord(reason, FORM_ADVICE) from None
    day = moment.date().isoformat()
    if day <= EARLIEST_DAY:
        raise BadRecord(f"{quoted(text)} is older than {EARLIEST_DAY}")
    if day > format.latest:
        raise BadRecord(f"{quoted(text)} is in the future")
    if ":" not in text and not UNIX_TIME.fullmatch(text):
        return day
    if moment.tzinfo or format.is_utc:
        return utc_text(moment.replace(tzinfo=moment.tzinfo or UTC))
    return moment.replace(microsecond=0).isoformat()


def in_zone(date: str, zone: tzinfo) -> str:
    """A date of `read_date` in the form that is published.

    A time without a zone is a time in this zone.
    """
    if len(date) <= len("YYYY-MM-DD"):
        return date
    moment = datetime.fromisoformat(date)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=zone).isoformat()
    return moment.astimezone(zone).isoformat()


def _moment(text: str, order: str) -> datetime:
    """The moment in `text`, without a zone if it has none.

    Raises ValueError and OverflowError.
    """
    if UNIX_TIME.fullmatch(text):
        return datetime.fromtimestamp(int(text[:10]), UTC)
    with suppress(ValueError):
        return datetime.fromisoformat(re.sub(" UTC$", "Z", text))
    if len(text) > LONGEST_DATE:
        raise ValueError
    folded = fold(text)
    time = CLOCK_TIME.search(folded)
    if time is None:
        return datetime(*_year_month_day(folded, order))
    day = datetime(*_year_month_day(folded[: time.start()], order))
    return datetime.fromisoformat(f"{day:%Y-%m-%d}T{_iso_time(time)}")


def _iso_time(time: re.Match[str]) -> str:
    """A time of day with its offset, in the form of ISO 8601. Raises ValueError."""
    minutes = time["minutes"]
    if time["half"]:
        half_day = datetime.strptime(f"{minutes} {time['half']}", "%I:%M %p")
        minutes = f"{half_day:%H:%M}"
    return f"{minutes:0>5}{time['seconds'] or ''}{_iso_offset(time)}"


def _iso_offset(time: re.Match[str]) -> str:
    if time["utc"]:
        return "+00:00"
    if not time["offset"]:
        return ""
    offset = time["offset"].removeprefix("utc").removeprefix("gmt").strip()
    digits = offset[1:].replace(":", "")
    # “+2” and “+0200” are the same.
    hours = digits[:-2] if len(digits) > 2 else digits
    minutes = digits[-2:] if len(digits) > 2 else "00"
    return f"{offset[0]}{hours:0>2}:{minutes}"


# ---- Forms of a day ----

Day = tuple[int, int, int]  # year, month, day


def _numbers(lines: Iterable[str]) -> dict[str, int]:
    """The number of each word's line, from 1."""
    numbers = dict[str, int]()
    for number, line in enumerate(lines, 1):
        for word in line.split():
            numbers[fold(word)] = number
    return numbers


MONTHS = _numbers(DATE_WORDS["months"])
WEEKDAYS = _numbers(DATE_WORDS["weekdays"])
BETWEEN = set(DATE_WORDS["between_days_and_months"])


def _year_month_day(folded: str, order: str) -> Day:
    """Year, month and day of a date such as 3-May-24, 1.6.2024 or 5/3/2024.

    Raises ValueError.
    """
    cjk_day = CJK_DAY.match(folded)
    if cjk_day:
        rest = folded[cjk_day.end() :].strip()
        if rest and not CJK_WEEKDAY.fullmatch(rest):
            raise ValueError
        return int(cjk_day[1]), int(cjk_day[2]), int(cjk_day[3])
    if re.search(r"[^\w./, -]", folded):
        raise ValueError
    numbers = re.findall(r"[0-9]+", folded)
    months = _months_of(re.findall(r"[^\W\d_]+", folded))
    if months:
        return _with_month_name(numbers, months)
    if numbers and len(numbers[0]) == 4:
        return _year_first(numbers)
    return _day_or_month_first(numbers, folded, order)


def _months_of(words: Iterable[str]) -> set[int]:
    """The months that the words of a date name. Raises ValueError for other words."""
    others = set(words) - BETWEEN
    if not others <= MONTHS.keys() | WEEKDAYS.keys():
        raise ValueError
    names = others & MONTHS.keys()
    if len(names) > 1:
        # “mar. 5 janv.”: some words name a month in one language, and a weekday in
        # another.
        names -= WEEKDAYS.keys()
    return {MONTHS[name] for name in names}


def _with_month_name(numbers: Sequence[str], months: Iterable[int]) -> Day:
    (month,) = months
    first, second = numbers
    if len(first) == 4:
        return int(first), month, int(second)
    return _full_year(second), month, int(first)


def _year_first(numbers: Sequence[str]) -> Day:
    year, month, day = numbers
    return int(year), int(month), int(day)


def _day_or_month_first(numbers: Sequence[str], folded: str, order: str) -> Day:
    first, second, year = numbers
    if "-" in folded and len(year) == 2:
        # 24-05-03 may begin with a year.
        raise ValueError
    # A date with dots has the day first in every country.
    if order == "mdy" and "." not in folded:
        return _full_year(year), int(first), int(second)
    return _full_year(year), int(second), int(first)


def _full_year(digits: str) -> int:
    # One of the last century becomes a date of the future, which is named as faulty.
    return int(digits) + (2000 if len(digits) == 2 else 0)


# ---- The order of day and month in a column ----

NUMERIC = re.compile(
    r"([0-9]{1,2})[/ -]([0-9]{1,2})[/ -][0-9]{2}(?:[0-9]{2})?(?![0-9])"
)


def allowed_orders(texts: Iterable[str]) -> tuple[set[str], list[str]]:
    """The orders, "dmy" or "mdy", in which all dates exist, and the ambiguous dates."""
    allowed = {"dmy", "mdy"}
    ambiguous = dict[str, None]()
    for text in texts:
        numbers = NUMERIC.match(text)
        if numbers is None:
            continue
        first = int(numbers[1])
        second = int(numbers[2])
        if second > 12:
            allowed.discard("dmy")
        if first > 12:
            allowed.discard("mdy")
        if first != second:
            ambiguous[text] = None
    return allowed, [*ambiguous]
