"""The language of the pages: what is said to people, its numbers, days and lists.

A message is a whole sentence or a label, in English, which is its key as well. It is
plain text, with `%(name)s` for values and `%%` for a percent sign. No noun is passed as
a value, and nothing is joined to a sentence: other languages bend and order words
otherwise. A plural has a whole number; ratings are not counted. This module must not
know templates; of reviews it knows what their titles say.

Sections: messages that are said by name - the language - the languages of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from reviewslib.dataset.provenance import (
    NAMELESS,
    NAMELESS_AT_GOOGLE,
    PublishedOn,
)
from reviewslib.dataset.reviews import WEEK
from reviewslib.dataset.strict_json import Object
from reviewslib.web.catalogue import NO_TRANSLATIONS, Catalogue, read_catalogue
from reviewslib.web.figures import capped, format_rating
from reviewslib.web.shown_text import one_line

# ---- Messages that are said by name: days of the week, and months ----


def message(text: str) -> str:
    """Marks a message for extraction where it is in a table; `say` translates it."""
    return text


MONTH_NAMES = (
    # TRANSLATORS: months as in a date ("5 January 2026"), in the case that it has there
    message("January"),
    message("February"),
    message("March"),
    message("April"),
    message("May"),
    message("June"),
    message("July"),
    message("August"),
    message("September"),
    message("October"),
    message("November"),
    message("December"),
)
DAY_NAMES = {
    # TRANSLATORS: days of the week in opening hours, standing alone
    "Monday": message("Monday"),
    "Tuesday": message("Tuesday"),
    "Wednesday": message("Wednesday"),
    "Thursday": message("Thursday"),
    "Friday": message("Friday"),
    "Saturday": message("Saturday"),
    "Sunday": message("Sunday"),
}
# A week may begin on any day.
TWO_WEEKS = (*WEEK, *WEEK)
# Days that are said as a span: two are as short by name.
MIN_SPAN_DAYS = 3

# ---- The language ----

# What a catalogue makes of the sample number: the signs of thousands and of decimals.
SAMPLE_NUMBER = re.compile(r"1(\D*)234(\D)5")


class Language:
    """What the service says in one language. Immutable."""

    def __init__(self, tag: str, catalogue: Catalogue):
        """The language of a catalogue; `tag` is what documents say of themselves."""
        self.tag = tag
        self.catalogue = catalogue
        # TRANSLATORS: not words: the direction of your script, "ltr" or "rtl"
        self.direction = catalogue.text(message("ltr"))
        # TRANSLATORS: this number as you write it: the signs are taken from it
        sample = SAMPLE_NUMBER.fullmatch(catalogue.text(message("1,234.5")))
        if sample is None:
            raise ValueError(f"{tag}: the sample number is none")
        self.thousands_sign = sample[1]
        self.decimal_sign = sample[2]

    # ---- Messages ----

    def say(self, message: str, **values: Any) -> str:
        """A message with its values."""
        return self.filled(self.catalogue.text(message), values)

    def counted(
        self, singular: str, plural: str, count: int | None, **values: Any
    ) -> str:
        """A message with a whole number, which it has as `%(n)s`; None counts as 0."""
        number = capped(count)
        text = self.catalogue.counted_text(singular, plural, number)
        values["n"] = self.number(number)
        return self.filled(text, values)

    def filled(self, translation: str, values: Mapping[str, Any]) -> str:
        """A translation in which values stand for its placeholders."""
        return translation % values

    # ---- Numbers ----

    def number(self, count: int | None) -> str:
        """A whole number: 1,204."""
        return f"{capped(count):,}".replace(",", self.thousands_sign)

    def rating(self, stars: float) -> str:
        """A rating with at most two decimals: 4.48, 4.5, 5."""
        return format_rating(stars).replace(".", self.decimal_sign)

    def decimal(self, value: float, places: int) -> str:
        """A number with so many decimals: 4.50."""
        return f"{value:.{places}f}".replace(".", self.decimal_sign)

    # ---- Days and lists ----

    def day(self, date: str) -> str:
        """A date or a date-time as a day: 5 January 2026."""
        # TRANSLATORS: a date, such as 5 January 2026; the months are messages
        return self.say(
            "%(day)s %(month)s %(year)s",
            day=int(date[8:10]),
            month=self.say(MONTH_NAMES[int(date[5:7]) - 1]),
            year=int(date[:4]),
        )

    def day_span(self, days: Sequence[str]) -> str:
        """Days of the week by their English names: "Monday to Thursday" if they follow.

        Otherwise they are listed.
        """
        if len(days) >= MIN_SPAN_DAYS and _follow_each_other(days):
            # TRANSLATORS: days of the week in opening hours: Monday to Thursday
            return self.say(
                "%(first)s to %(last)s",
                first=self._day_name(days[0]),
                last=self._day_name(days[-1]),
            )
        return self.listed([self._day_name(day) for day in days])

    def _day_name(self, day: str) -> str:
        """The name of a day; what is none is shown as it is written."""
        return self.say(DAY_NAMES[day]) if day in DAY_NAMES else day

    def listed(self, items: Sequence[str]) -> str:
        """A list with commas: A, B, C."""
        if not items:
            return ""
        listed = items[0]
        for item in items[1:]:
            # TRANSLATORS: a list of any length; %(before)s is all that stands before
            listed = self.say("%(before)s, %(next)s", before=listed, next=item)
        return listed

    def published_on(self, published: PublishedOn, names: Sequence[str] = ()) -> str:
        """Websites in a sentence: "Google, Yelp and elsewhere"; empty if none is known.

        `names` are their names if these are more than text.
        """
        names = names or published.names
        if not names:
            return ""
        if published.has_others:
            # TRANSLATORS: websites that published reviews: "Google, Yelp and elsewhere"
            return self.say("%(websites)s and elsewhere", websites=self.listed(names))
        if len(names) == 1:
            return names[0]
        # TRANSLATORS: a list that ends: "Google, Yelp and Facebook"
        return self.say(
            "%(before)s and %(last)s", before=self.listed(names[:-1]), last=names[-1]
        )

    def place(self, address: Object) -> str:
        """The line of an address that has the town, in the order of the language."""
        # TRANSLATORS: the line of an address with the town, in the order of your
        # country; a part may be empty
        line = self.say(
            "%(locality)s %(region)s %(postal_code)s",
            locality=address.get("locality") or "",
            region=address.get("region") or "",
            postal_code=address.get("postal_code") or "",
        )
        return " ".join(line.split())

    # ---- Reviews ----

    def author(self, review: Object) -> str:
        """The author of a review; words for a customer without a name."""
        author: str = review["author"]
        if author == NAMELESS_AT_GOOGLE:
            # TRANSLATORS: the author of a review on Google who has no name there
            return self.say("A Google user")
        if author == NAMELESS or not one_line(author):
            return self.say("Anonymous")
        return author

    def review_title(self, review: Object) -> str:
        """The title of a review: "5 stars from Ann B."."""
        rating = review["rating"]
        author = self.author(review)
        if rating == int(rating):
            # TRANSLATORS: the title of a review. Names cannot be bent: if yours are,
            # write "%(n)s ★ · %(author)s" or the like
            return self.counted(
                "%(n)s star from %(author)s",
                "%(n)s stars from %(author)s",
                int(rating),
                author=author,
            )
        # TRANSLATORS: the same for a rating such as 4.5
        return self.say(
            "%(rating)s stars from %(author)s",
            rating=self.rating(rating),
            author=author,
        )

    def review_content(self, review: Object) -> str:
        """The text of a review, or its rating in words."""
        rating = review["rating"]
        if review["text"]:
            return str(review["text"])
        if rating == int(rating):
            # TRANSLATORS: stands for the text of a review that has none
            return self.counted(
                "%(n)s star, without words.",
                "%(n)s stars, without words.",
                int(rating),
            )
        # TRANSLATORS: the same for a rating such as 4.5
        return self.say("%(rating)s stars, without words.", rating=self.rating(rating))


class HtmlLanguage(Language):
    """The same as HTML: translations are escaped, and values unless they are markup."""

    def __init__(self, tag: str, catalogue: Catalogue):
        # Pages say the same messages again and again.
        self._patterns: dict[str, str] = {}
        super().__init__(tag, catalogue)

    def filled(self, translation: str, values: Mapping[str, Any]) -> str:
        """Markup; the translation is escaped, so that none can be markup."""
        pattern = self._patterns.get(translation)
        if pattern is None:
            pattern = str(escape(translation))
            self._patterns[translation] = pattern
        # The same as `Markup(pattern) % values`, which takes several times as long.
        escaped = {name: escape(value) for name, value in values.items()}
        return Markup(pattern % escaped)  # noqa: S704 - both are escaped


def _follow_each_other(days: Sequence[str]) -> bool:
    """Whether these days of the week follow each other, wherever a week begins."""
    if days[0] not in WEEK:
        return False
    start = WEEK.index(days[0])
    return tuple(days) == TWO_WEEKS[start : start + len(days)]


ENGLISH_TAG = "en"
ENGLISH = Language(ENGLISH_TAG, NO_TRANSLATIONS)

# ---- The languages of the program ----

# Of a subtag that names a script (RFC 5646 section 2.2.3).
SCRIPT_LETTERS = 4


class Languages:
    """The shipped catalogues. They are read at start, and parsed when one is chosen."""

    def __init__(self, texts: Mapping[str, str]):
        """The .po files by language tag."""
        self._texts = {tag.lower(): text for tag, text in texts.items()}
        self._chosen: dict[str, Language] = {}
        self.tags = sorted([ENGLISH_TAG, *texts])

    def of(self, tag: str | None) -> Language:
        """The language for the tag of a business; English if there is no catalogue."""
        name = self.catalogue_name(tag)
        if name is None or tag in (None, ENGLISH_TAG):
            return ENGLISH
        if tag not in self._chosen:
            # A service speaks one language; another is chosen by a reload.
            self._chosen = {tag: Language(tag, self._catalogue(name))}
        return self._chosen[tag]

    def lack(self, tag: str | None) -> str:
        """A line about a language that pages cannot have; empty if they can."""
        if self.catalogue_name(tag) is not None:
            return ""
        tags = ", ".join(self.tags)
        return f'pages are English, since there is no catalogue for "{tag}": {tags}'

    def catalogue_name(self, tag: str | None) -> str | None:
        """Whose catalogue serves a tag (BCP 47): its own, or that of its language.

        None if there is neither.
        """
        for candidate in _lookups((tag or ENGLISH_TAG).lower()):
            if candidate == ENGLISH_TAG or candidate in self._texts:
                return candidate
        return None

    def _catalogue(self, name: str) -> Catalogue:
        if name == ENGLISH_TAG:
            return NO_TRANSLATIONS
        return read_catalogue(self._texts[name])


def _lookups(tag: str) -> Iterator[str]:
    """A tag and its beginnings, the longest first (RFC 4647 section 3.4).

    A script is not left out: who asks for zh-Hant cannot read what serves zh.
    """
    subtags = tag.split("-")
    while subtags:
        yield "-".join(subtags)
        left_out = subtags.pop()
        if len(left_out) == SCRIPT_LETTERS and left_out.isalpha():
            return


def read_languages(directory: Path) -> Languages:
    """The languages of a directory of `TAG.po`. Raises OSError."""
    texts = {}
    for path in sorted(directory.glob("*.po")):
        texts[path.stem] = path.read_text(encoding="utf-8")
    return Languages(texts)
