"""Values of the data as they are shown: cut, and unable to disturb the text around.

Nothing here becomes markup; Jinja escapes what these functions return. This module must
not know reviews.

Sections: lengths - lines and paragraphs - addresses - words of this service.
"""

from __future__ import annotations

import re

from reviewslib.dataset.contract import is_web_url
from reviewslib.dataset.strict_json import Json
from reviewslib.dataset.text import loosen

# ---- Lengths: in characters; every page stays small, whatever the files hold ----

# A name or a label: longer ones fill a line of a phone three times.
MAX_NAME = 80
# A question, a quotation, a line of an address.
MAX_LINE = 200
# A review, a reply, an answer or a summary, where it is not alone on its page.
MAX_TEXT = 1000
# A longer URL is not linked: servers and proxies refuse long request lines.
MAX_URL = 500
# A longer word is cut anywhere; else a text without spaces would vanish whole.
LONGEST_WORD = 30

# Characters that HTML does not allow (control characters and noncharacters).
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
# Controls of direction. They can change how text after an inline element reads, but
# not text after a block (Unicode Standard Annex 9, section 3.3.2).
DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")

# ---- Lines and paragraphs ----


def one_line(value: Json, max_length: int = MAX_NAME) -> str:
    """`value` as one line of at most `max_length` characters; None becomes ""."""
    allowed = FORBIDDEN.sub(" ", str(value or ""))
    line = " ".join(allowed.split())
    return shortened(DIRECTIONS.sub("", line), max_length)


def paragraphs(value: Json, max_length: int | None = MAX_TEXT) -> str:
    """`value` as text of several lines, for block elements.

    It has at most `max_length` characters; None means that it is not cut.
    """
    text = str(value or "").replace("\r\n", "\n").replace("\r", "\n").strip()
    if max_length is None:
        return text
    return shortened(text, max_length)


def shortened(text: str, max_length: int) -> str:
    """At most `max_length` characters of `text`, with "…" for the rest.

    It is cut between words, or inside a word of more than LONGEST_WORD characters.
    """
    if len(text) <= max_length:
        return text
    kept = text[: max_length - 1]
    is_between_words = text[max_length - 1].isspace()
    *_, begun_word = re.split(r"\s", kept)
    if not is_between_words and len(begun_word) <= LONGEST_WORD:
        kept = kept.removesuffix(begun_word)
    return kept.rstrip() + "…"


def markdown(text: str) -> str:
    """One line of text, escaped for Markdown."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


# ---- Addresses: a value of the data is a link only if it is one of these ----

# Plain addresses alone: quoted local parts and comments would need escaping in a link.
MAIL_ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+")


def web_url(value: Json) -> str:
    """`value` if it is an http or https URL of at most MAX_URL characters, else ""."""
    if isinstance(value, str) and is_linked(value) and is_web_url(value):
        return value
    return ""


def is_linked(address: str) -> bool:
    """Whether an address is short enough to be linked."""
    return len(address) <= MAX_URL


def mail_address(value: Json) -> str:
    """`value` if it is a plain mail address, else ""."""
    text = one_line(value, MAX_LINE)
    return text if MAIL_ADDRESS.fullmatch(text) else ""


# ---- Words of this service ----

# Some MCP clients refuse a longer name of a server.
MAX_SLUG = 40


def slug(name: str) -> str:
    """The name of this service in the configuration of an MCP client.

    It is valid in every one of them and needs no quoting in a shell.
    """
    # The search knows which letter is meant: ä is a, ß is ss.
    words = re.findall("[a-z0-9]+", loosen(name))[:2]
    return "-".join([*words, "reviews"])[-MAX_SLUG:].strip("-")
