"""Values of exports: text, days and moments, stars.

The words for months and stars are data (`formats.json`). This module is pure; it knows no file, no format and
no review, and raises BadRecord for a value that it cannot read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from importlib import resources
from typing import NamedTuple

from reviewslib.dataset.contract import quoted
from reviewslib.dataset.strict_json import SURROGATE, decode
from reviewslib.dataset.text import composed, fold

FORMATS = decode((resources.files(__package__) / "formats.json").read_bytes())


class BadRecord(ValueError):
    """A record cannot be imported; the text says why."""


# ---- Text ----

TRANSLATED = re.compile(r"\((?:Translated by|Traduzido pelo) Google\)")
TRANSLATED_LINE = re.compile(rf"^[ \t]*{TRANSLATED.pattern}[ \t]*$", re.MULTILINE)


def clean(text: str) -> str:
    """`text` in NFC, with LF as line ends, without control characters and half surrogate pairs."""
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    return composed(
        re.sub(r"[\x00-\x08\x0b-\x1f]", "", re.sub(r"\r\n?", "\n", text))
    ).strip()


def one_line(text: str) -> str:
    """`text`, clean, with single spaces between its words."""
    return " ".join(clean(text).split())


def original(text: str) -> str:
    """A text without Google's translation before or after it."""
    if TRANSLATED.match(text):
        return (text.partition("(Original)")[2] or text).strip()
    return TRANSLATED_LINE.split(text)[0].strip()


def looks_damaged(text: str) -> bool:
    """Whether `text` looks like UTF-8 that was read as cp1252, as in “BjÃ¸rn”."""
    with suppress(UnicodeError):
        return len(text.encode("cp1252").decode()) < len(text)
    return False


# ---- Dates: a day, a moment in UTC, or a time without a zone ----

UNIX_TIME = re.compile(r"[0-9]{10}([0-9]{3})?")  # seconds or milliseconds
CLOCK_TIME = re.compile(
    r"[ ,]*([0-9]{1,2}:[0-9]{2})(:[0-9]{2})?(?:[.,][0-9]+)? *([ap]m)? *(utc|gmt|z|[+-][0-9]{2}:?[0-9]{2})?\Z"
)
EARLIEST_DAY = "1990"
LONGEST_DATE = 60  # characters
MONTHS = {
    word: number
    for number, words in enumerate(FORMATS["months"], 1)
    for word in words.split()
}
BETWEEN = set(FORMATS["between_days_and_months"])


class DateFormat(NamedTuple):
    """How dates are written, and the latest possible day or moment."""

    latest: str = "9999-12-31"
    order: str = "dmy"  # "dmy" or "mdy": the order of day and month in 05/03/2024
    is_utc: bool = False  # whether times without a zone are in UTC


def read_date(text: str, format: DateFormat) -> str:
    """The date in `text`, in any known form; empty for an empty text. Raises BadRecord.

    A day becomes YYYY-MM-DD, a moment YYYY-MM-DDTHH:MM:SSZ, and a time without a zone the same without Z.
    """
    if not text:
        return ""
    try:
        moment = _moment(text, format.order)
    except (ValueError, OverflowError):
        raise BadRecord(
            f"{quoted(text)} is not a date in a known form, or does not exist"
        ) from None
    day = moment.date().isoformat()
    if not EARLIEST_DAY < day <= format.latest:
        reason = "in the future" if day > EARLIEST_DAY else f"older than {EARLIEST_DAY}"
        raise BadRecord(f"{quoted(text)} is {reason}")
    if ":" not in text and not UNIX_TIME.fullmatch(text):
        return day
    if moment.tzinfo or format.is_utc:
        return utc_text(moment.replace(tzinfo=moment.tzinfo or UTC))
    return moment.replace(microsecond=0).isoformat()


def utc_text(moment: datetime) -> str:
    """A moment, with a zone, as YYYY-MM-DDTHH:MM:SSZ."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_zone(date: str, zone: tzinfo) -> str:
    """A date of `read_date` in the form that is published; a time without a zone gets this zone."""
    if len(date) <= len("YYYY-MM-DD"):
        return date
    moment = datetime.fromisoformat(date)
    return (
        moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)
    ).isoformat()


def _moment(text: str, order: str) -> datetime:
    """The moment in `text`, without a zone if it has none. Raises ValueError and OverflowError."""
    if UNIX_TIME.fullmatch(text):
        return datetime.fromtimestamp(int(text[:10]), UTC)
    with suppress(ValueError):
        return datetime.fromisoformat(re.sub(" UTC$", "Z", text))
    folded = fold(text) if len(text) <= LONGEST_DATE else ""
    time = CLOCK_TIME.search(folded)
    day = datetime(*_year_month_day(folded[: time.start() if time else None], order))
    if not time:
        return day
    minutes, seconds, am_or_pm, zone = time.groups()
    if am_or_pm:
        minutes = f"{datetime.strptime(f'{minutes} {am_or_pm}', '%I:%M %p'):%H:%M}"
    zone = "+00:00" if zone in ("utc", "gmt", "z") else zone
    return datetime.fromisoformat(
        f"{day:%Y-%m-%d}T{minutes:0>5}{seconds or ''}{zone or ''}"
    )


def _year_month_day(folded: str, order: str) -> tuple[int, int, int]:
    """Year, month and day of a date such as 3-May-24, 1.6.2024 or 5/3/2024. Raises ValueError."""
    words = set(re.findall(r"[^\W\d_]+", folded)) - BETWEEN
    if re.search(r"[^\w./, -]", folded) or not words <= MONTHS.keys():
        raise ValueError
    (first, second, *rest), months = (
        re.findall(r"[0-9]+", folded),
        [str(MONTHS[word]) for word in words],
    )
    if months:
        second, rest = months[0], [second, *rest, *months[1:]]
    elif "." not in folded and order == "mdy" and len(first) < 4:
        first, second = second, first
    (third,) = rest
    if "-" in folded and not months and len(third) == 2:
        raise ValueError  # 24-05-03 may begin with a year
    year, day = (first, third) if len(first) == 4 else (third, first)
    return int(year) + (2000 if len(year) == 2 else 0), int(second), int(day)


NUMERIC = re.compile(
    r"([0-9]{1,2})[/ -]([0-9]{1,2})[/ -][0-9]{2}(?:[0-9]{2})?(?![0-9])"
)


def allowed_orders(texts: Iterable[str]) -> tuple[set[str], list[str]]:
    """The orders, "dmy" or "mdy", in which all dates exist, and the dates that are ambiguous."""
    pairs = {
        text: (int(date[1]), int(date[2]))
        for text in texts
        if (date := NUMERIC.match(text))
    }
    months = {
        "dmy": {second for _, second in pairs.values()},
        "mdy": {first for first, _ in pairs.values()},
    }
    orders = {order for order in months if max(months[order], default=0) <= 12}
    return orders, [text for text, (first, second) in pairs.items() if first != second]


# ---- Stars: 1 to 5 ----

NUMBER = re.compile(
    rf"([0-9]{{1,3}}(?:[.,][0-9]{{1,9}})?) *(%|(?:{FORMATS['star_bounds']}) *(5|10|100)\b)?"
    rf" *(?:{FORMATS['star_units']})?"
)
DRAWN = re.compile("(★{1,5})(☆*)")


def read_stars(text: str, scale: int) -> float | None:
    """The stars in `text`, rounded to half stars if the scale is not 5; None for no stars.

    `scale` is the best rating, 0 if unknown. Raises BadRecord and UnknownScale.
    """
    best = scale or 5
    folded = fold(text)
    if word := FORMATS["stars"].get(folded):
        return int(word)
    drawn = DRAWN.fullmatch(
        text.replace("\N{VARIATION SELECTOR-16}", "").replace("⭐", "★")
    )
    if drawn and (not drawn[2] or len(drawn[0]) == 5):
        return len(drawn[1])
    if not (number := NUMBER.fullmatch(folded or "0")):
        raise BadRecord(f"{quoted(text)} is not a number of stars")
    bound = "100" if number[2] == "%" else number[3]
    value = float(number[1].replace(",", "."))
    if value > best or int(bound or best) != best:
        raise (
            BadRecord(f"{quoted(text)} is not a rating of 1 to {best}")
            if scale
            else UnknownScale(text)
        )
    if best != 5 and value:
        value = max(1.0, math.floor(value * 10 / best + 0.5) / 2)
    if 0 < value < 1:
        raise BadRecord(f"{quoted(text)} is less than one star")
    return (int(value) if value.is_integer() else value) or None


class UnknownScale(ValueError):
    """A rating is above 5, and the best rating is unknown; the message is the rating."""
