"""Names of customers: what is no name, and how names are shown. This module is pure."""

from __future__ import annotations

from reviewslib.dataset.provenance import NAMELESS, NAMELESS_AT_GOOGLE
from reviewslib.dataset.text import fold
from reviewslib.importer.formats import format_data
from reviewslib.importer.texts import BadRecord

# No person's name is as long; what is longer is a text in the wrong column.
MAX_NAME_CHARACTERS = 200

SHARED_NAMES = frozenset(map(fold, format_data("names")["shared_names"]))


def nameless_author(source: str) -> str:
    """What stands for the name of a customer who has none, by folded source."""
    return NAMELESS_AT_GOOGLE if source == "google" else NAMELESS


def checked_name(name: str) -> str:
    """The name as it is. Raises BadRecord if it is too long for one."""
    if len(name) > MAX_NAME_CHARACTERS:
        raise BadRecord(f"the name has more than {MAX_NAME_CHARACTERS} characters")
    return name


def is_shared(author: str) -> bool:
    """Whether many customers have this name, such as “A Google user”."""
    return fold(author) in SHARED_NAMES


def short_name(author: str) -> str:
    """First name and initial, such as “Camille R.” for “Camille Roux”."""
    words = author.split()
    if len(words) < 2 or is_shared(author):
        return author
    return f"{words[0]} {words[-1][0]}."


def without_address(author: str) -> str:
    """The name without an e-mail address.

    If there is no other word, the part of the address before the @.
    """
    words = author.split()
    others = [word for word in words if not _is_address(word)]
    if others:
        return " ".join(others)
    return words[0].partition("@")[0].lstrip("<([")


def _is_address(word: str) -> bool:
    """Whether a word is like name@host.tld, perhaps in brackets."""
    name, at, host = word.partition("@")
    if not at or "@" in host or not name.lstrip("<(["):
        return False
    # A dot inside the host, not at its start or end.
    return "." in host[1:-1] and not host.startswith(".")
