"""Texts of exports: white space, HTML, damaged letters, and Google's translations.

This module is pure; it knows no format of files and no review. No function takes longer
than in proportion to its text.

Sections: white space, and numbers that a spreadsheet has changed - HTML - damaged
letters - Google's machine translation.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from reviewslib.dataset.strict_json import SURROGATE
from reviewslib.dataset.text import composed
from reviewslib.importer.formats import format_data

TEXT_FORMATS = format_data("texts")


class BadRecord(ValueError):
    """A record cannot be imported; the text says why, `advice` what to do."""

    def __init__(self, reason: str, advice: str = ""):
        super().__init__(reason)
        self.advice = advice


# ---- White space, and numbers that a spreadsheet has changed ----


def clean(text: str) -> str:
    """`text` in NFC with LF as line ends, without control characters around words.

    Halves of surrogate pairs become replacement characters.
    """
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    text = re.sub(r"\r\n?", "\n", text)
    text = re.sub(r"[\x00-\x08\x0b-\x1f]", "", text)
    return composed(text).strip()


def clean_line(text: str) -> str:
    """`text`, clean, with single spaces between its words."""
    return " ".join(clean(text).split())


INTEGER_AS_DECIMAL = re.compile(r"([0-9]+)\.0+")


def whole_number(text: str) -> str:
    """`37` for `37.0`; other text is unchanged.

    Spreadsheets and pandas write an integer so, if a cell of its column is empty.
    """
    match = INTEGER_AS_DECIMAL.fullmatch(text)
    return match[1] if match else text


# ---- HTML ----

LINE_BREAK = re.compile(r"(?i)<br ?/?>|</p>")
# No “<” inside: customers write “1 < 2” and “<3”, and a search must not look ahead from
# each of them to the end.
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
# As long as the longest names and numbers that HTML has.
ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});")

# Beyond this share of the texts, tags are rather the tool's than the customers'.
MAX_HTML_SHARE = 0.1


def without_html(text: str) -> str:
    """The text of HTML, without its tags."""
    return html.unescape(TAG.sub("", LINE_BREAK.sub("\n", text)))


def is_like_html(texts: Iterable[str]) -> bool:
    """Whether over a tenth of the texts, empty ones aside, have tags or entities."""
    number = 0
    marked = 0
    for text in texts:
        number += bool(text)
        marked += bool(TAG.search(text) or ENTITY.search(text))
    return marked > MAX_HTML_SHARE * number


# ---- Damaged letters: UTF-8 that was read as cp1252 or latin-1, as in “BjÃ¸rn” ----


def _byte_of(character: str) -> int:
    """The byte that cp1252 reads as this character, or latin-1 where it has none."""
    try:
        return character.encode("cp1252")[0]
    except UnicodeError:
        return ord(character)


# By byte: the characters that it may have been read as.
CHARACTERS = {byte: chr(byte) for byte in range(0x80, 0x100)}
CHARACTERS |= {
    byte: CHARACTERS[byte] + bytes([byte]).decode("cp1252", "ignore")
    for byte in range(0x80, 0xA0)
}
# The forms of a letter beyond ASCII in UTF-8 (RFC 3629, section 4).
CONTINUATION = "".join(CHARACTERS[byte] for byte in range(0x80, 0xC0))
SEQUENCE = re.compile(
    rf"[\xc2-\xdf][{CONTINUATION}]"
    rf"|[\xe0-\xef][{CONTINUATION}]{{2}}|[\xf0-\xf4][{CONTINUATION}]{{3}}"
)
# Their bytes in cp1252 continue a sequence of UTF-8.
CLOSING = "»”’"


def looks_damaged(text: str) -> bool:
    """Whether a part of `text` looks like UTF-8 that was read as cp1252 or latin-1.

    Every pair is looked at by itself, since a sound emoji may stand beside damage.
    """
    return any(_is_damage(text, match) for match in SEQUENCE.finditer(text))


def _is_damage(text: str, match: re.Match[str]) -> bool:
    try:
        decoded = bytes(map(_byte_of, match[0])).decode()
    except UnicodeError:
        return False
    if "\u0250" <= decoded <= "\u02ff":
        # Letters of phonetics: rather «CAFÉ».
        return False
    # The closing quotation mark after a word in capitals, as in “MAÇÔ.
    before = text[match.start() - 1 : match.start()]
    return not (before.isupper() and match[0][-1] in CLOSING)


# ---- Google's machine translation ----
# Google writes its marker in the language of the account that asks, before or after the
# customer's own words:
#
#     (Translated by Google) Good bread.        Gutes Brot.
#
#     (Original)                                (Translated by Google)
#     Gutes Brot.                               Good bread.


def _bracketed(words: Iterable[str]) -> re.Pattern[str]:
    alternatives = "|".join(map(re.escape, words)).replace("'", "['’]")
    return re.compile(rf"[(（](?:{alternatives})[)）]", re.IGNORECASE)


def _in_all_languages(kind: str) -> re.Pattern[str]:
    """The marker of this kind, as Google writes it in any language that we know."""
    words = list[str]()
    for language in TEXT_FORMATS["translated_by_google"].values():
        words += language[kind]
    return _bracketed(words)


TRANSLATED = _in_all_languages("translated")
ORIGINAL = _in_all_languages("original")


def original(text: str) -> str:
    """A text of Google's without the translation before or after it."""
    if TRANSLATED.match(text):
        heading = ORIGINAL.search(text)
        return (heading and text[heading.end() :].strip()) or text
    for marker in TRANSLATED.finditer(text):
        if _is_heading(text, marker):
            return text[: marker.start()].strip()
    return text


def _is_heading(text: str, marker: re.Match[str]) -> bool:
    """Whether a marker stands apart from the words before it, not inside a sentence.

    Google writes it on a line of its own after an empty line. Tools that join lines
    leave two spaces before it.
    """
    before = text[max(0, marker.start() - 2) : marker.start()]
    after = text[marker.end() : marker.end() + 1]
    if len(before) == 2 and before.isspace():
        return not after or after.isspace()
    return before.endswith("\n") and after in {"", "\n"}


# The longest known marker has 27 characters; a sentence in brackets that names Google
# may be much longer, and is the customer's.
BRACKETED_GOOGLE = re.compile(r"[(（][^()（）\n]{0,60}Google[^()（）\n]{0,60}[)）]")
# What stands between a translation and the original is in brackets, too.
BRACKETED_LINE = re.compile(r"[(（][^()（）\n]{1,60}[)）]")


def unknown_marker(text: str) -> str:
    """What looks like a marker of Google's in a text that was not cut, else empty.

    It is a marker in a language that we do not know, or a known one without an
    original. A marker stands alone in a line, or first, with another one below it; else
    it is the customer's.
    """
    if "Google" not in text:
        return ""
    lines = [line.strip() for line in text.split("\n")]
    for line in lines:
        if BRACKETED_GOOGLE.fullmatch(line):
            return line
    first = TRANSLATED.match(text)
    if first is None and any(map(BRACKETED_LINE.fullmatch, lines)):
        first = BRACKETED_GOOGLE.match(text)
    return first[0] if first else ""
