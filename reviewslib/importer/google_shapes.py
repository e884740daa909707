"""Shapes of Google's answers: one check for all of them. This module is pure.

An absent member and null say the same: nothing. What has another shape than documented
is a fault that names the member and repeats nothing of its value, which may be a
customer's words.

Sections: members - names, and what else becomes a part of an address - reviews.
"""

from __future__ import annotations

from reviewslib.dataset.strict_json import Json, Object
from reviewslib.importer.google_faults import odd_answer

# ---- Members ----


def object_of(value: Json, what: str) -> Object:
    """`value`, which must be an object. Raises GoogleFault."""
    if not isinstance(value, dict):
        raise odd_answer(f"{what} is no object")
    return value


def object_in(holder: Object, key: str) -> Object:
    """The object at `key`, empty without it. Raises GoogleFault."""
    value = holder.get(key)
    if value is None:
        return {}
    return object_of(value, key)


def list_in(holder: Object, key: str) -> list[Json]:
    """The list at `key`, empty without it. Raises GoogleFault."""
    values = holder.get(key)
    if values is None:
        return []
    if not isinstance(values, list):
        raise odd_answer(f"{key} is no list")
    return values


def objects_in(holder: Object, key: str) -> list[Object]:
    """The objects of the list at `key`, none without it. Raises GoogleFault."""
    return [object_of(value, f"a part of {key}") for value in list_in(holder, key)]


def text_in(holder: Object, key: str) -> str:
    """The text at `key`, empty without it. Raises GoogleFault."""
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise odd_answer(f"{key} is no text")
    return value


# ---- Names, and what else becomes a part of an address ----

# Nothing in a name may lead elsewhere.
NAME_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/~="
)


def name_in(item: Object) -> str:
    """The `name` of a resource. Raises GoogleFault."""
    name = text_in(item, "name")
    if not name or not NAME_CHARACTERS.issuperset(name):
        raise odd_answer("name")
    return name


def page_token_in(page: Object) -> str:
    """What the next page's address has, empty on the last one. Raises GoogleFault."""
    token = text_in(page, "nextPageToken")
    # Half of a surrogate pair, which JSON can have, cannot stand in an address.
    if not token.isascii():
        raise odd_answer("nextPageToken")
    return token


# ---- Reviews ----

TEXTS_OF_REVIEW = ("starRating", "comment", "createTime", "updateTime")
TEXTS_OF_REVIEWER = ("displayName", "profilePhotoUrl")
TEXTS_OF_REPLY = ("comment", "updateTime", "reviewReplyState")


def check_review(item: Object) -> None:
    """Raises GoogleFault if a member that the importer reads has another shape.

    The reader of files would leave the review out, and repeat what it found instead.
    """
    for key in TEXTS_OF_REVIEW:
        text_in(item, key)
    reviewer = object_in(item, "reviewer")
    for key in TEXTS_OF_REVIEWER:
        text_in(reviewer, key)
    reply = object_in(item, "reviewReply")
    for key in TEXTS_OF_REPLY:
        text_in(reply, key)
