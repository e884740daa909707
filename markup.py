"""Text and figures as HTML that is safe, short and readable: the words and strokes that the page is made of.

Whatever comes from the data is text. It becomes HTML only through `fill`, which escapes every value that is
not `Markup`, and it is cut to a length, so that a page stays small whatever the files hold. This module must
not know what a page says or how it looks.

Sections: Markup - Words - Drawings
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import LiteralString

from reviews import WEB_URL
from strict_json import Json

# ---- Markup: the one way from text to HTML ----


class Markup(str):
    """Text that is HTML already. What is made of it by `+` or a method is plain text again."""

    __slots__ = ()


NOTHING = Markup()
NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")  # what HTML does not allow


def fill(template: LiteralString, /, *values: object, **named: object) -> Markup:
    """`template`, which has its attributes in double quotes, with `{}` and `{names}` filled in, escaped."""
    escaped = {key: escape(value) for key, value in named.items()}
    return Markup(template.format(*map(escape, values), **escaped))


def escape(value: object) -> Markup:
    """`value` as HTML that shows it, in an element or in a double-quoted attribute."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(NOT_TEXT.sub("", str(value)), quote=False).replace('"', "&quot;"))


def joined(parts: Iterable[Markup], separator: LiteralString = "") -> Markup:
    """Several pieces of HTML as one."""
    return Markup(separator.join(parts))


def wrapped(template: LiteralString, parts: Iterable[Markup]) -> Markup:
    """`template` around the parts, nothing around nothing."""
    inside = joined(parts)
    return fill(template, inside) if inside else NOTHING


# ---- Words: values as people read them ----

MOST_NAME = 80  # characters of a name or a label
MOST_LINE = 200  # of a phrase, a question or a line of an address
MOST_TEXT = 1000  # of a review, a reply, an answer or a summary
MOST_URL = 500  # a longer address is not linked
MOST_COUNTED = 10**9

# Explicit directions can reach beyond an inline element; blocks end them anyway (UAX 9, section 3.3.2).
DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
QUOTATION_MARKS = ' \t\n"“”„«»'
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def line(value: Json, most: int = MOST_NAME) -> str:
    """Any value as one short line of text; None becomes ""."""
    return shortened(DIRECTIONS.sub("", " ".join(NOT_TEXT.sub(" ", str(value or "")).split())), most)


def prose(value: Json) -> str:
    """Any value as text of several lines, for a block of its own."""
    return shortened(str(value or "").replace("\r\n", "\n").replace("\r", "\n").strip(), MOST_TEXT)


def shortened(text: str, most: int) -> str:
    """`text` in at most so many characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def name(value: Json, most: int = MOST_NAME) -> Markup:
    """A name from the data inside a sentence of ours: its direction is its own."""
    return fill("<bdi>{}</bdi>", text) if (text := line(value, most)) else NOTHING


def paragraph(value: Json, kind: LiteralString) -> Markup:
    """A text from the data as a block of its own; nothing for none."""
    return fill('<p class="{}" dir="auto">{}</p>', kind, text) if (text := prose(value)) else NOTHING


def phrases(values: Sequence[Json], most: int = 3) -> Markup:
    """Words of customers, quoted."""
    quoted = [fill('<q class="said">{}</q> ', name(value, 60)) for value in values[:most]]
    return wrapped('<p class="phrases">{}</p>', quoted)


def web_url(value: Json) -> str:
    """`value` when it is an http or https URL of sensible length, else ""."""
    usable = isinstance(value, str) and len(value) <= MOST_URL and WEB_URL.fullmatch(value)
    return value if usable else ""


def link(url: Json, text: object, kind: LiteralString = "noopener") -> Markup:
    """`text`, linked when `url` is one that a visitor may follow; `kind` is the link's `rel`."""
    address = web_url(url)
    return fill('<a href="{}" rel="{}">{}</a>', address, kind, text) if address else escape(text)


def counted(value: Json) -> int:
    """A count that may be absent or absurd."""
    return min(value or 0, MOST_COUNTED)


def count_of(number: int, noun: str) -> str:
    """A number and what it counts: 1 review, 1,204 reviews."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def figure(value: float) -> str:
    """A rating with at most two decimals: 4.48, 4.5, 5."""
    return f"{round(value, 2):g}"


def day(written: str) -> Markup:
    """A date or date-time, which has been validated, as a day."""
    when = date.fromisoformat(written[:10])
    text = f"{when.day} {MONTHS[when.month - 1]} {when.year}"
    return fill('<time datetime="{}">{}</time>', when.isoformat(), text)


# ---- Drawings: SVG without style attributes, which the Content-Security-Policy forbids ----

STAR = "M12 1.6l3 6.9 7.5.7-5.7 4.9 1.7 7.3L12 17.6l-6.5 3.8 1.7-7.3L1.5 9.2 9 8.5z"  # in a box of 24 x 24
# Five stars in a row, drawn once; `stars` shows them pale and clips a second, full copy.
STARS = Markup(
    f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs><path id="star" d="{STAR}"/>'
    + '<g id="stars">'
    + "".join(f'<use href="#star" x="{left}"/>' for left in range(0, 120, 24))
    + "</g></defs></svg>"
)


def stars(rating: float) -> Markup:
    """A rating as stars, the last one in part."""
    return fill(
        '<svg class="stars" viewBox="0 0 120 24" role="img" aria-label="{} out of 5 stars">'
        '<use href="#stars"/><svg width="{}"><use href="#stars"/></svg></svg>',
        figure(rating),
        f"{rating * 24:g}",
    )


def bar(parts: Iterable[tuple[LiteralString, float, float]]) -> Markup:
    """A horizontal bar: for each part its class, its beginning and its length, as shares of the width."""
    drawn = [
        fill('<rect class="{}" x="{}%" width="{}%" height="100%"/>', kind, percent(start), percent(length))
        for kind, start, length in parts
        if length > 0
    ]
    return fill('<svg class="bar" aria-hidden="true">{}</svg>', joined(drawn))


def percent(share: float) -> str:
    """A share as a number of hundredths."""
    return f"{share * 100:.4g}"
