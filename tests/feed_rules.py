"""The rules of the two feeds, written down from their specifications as checks that yield what is wrong.

JSON Feed 1.1 (https://jsonfeed.org/version/1.1) and Atom (RFC 4287), narrowed where this service promises
more: every id of the Atom feed is a `tag:` URI, content is plain text, absent is left out.

Dates - JSON Feed - Atom
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import Any

Object = dict[str, Any]

# ---- Dates ----

DATE_CONSTRUCT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(\.[0-9]+)?"
    r"(Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)  # RFC 3339 with the capitals of RFC 4287 section 3.3
TAG_URI = re.compile(
    r"tag:[a-z0-9.-]+,[0-9]{4}(-[0-9]{2}){0,2}:([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})+"
)


def is_date(text: Any) -> bool:
    if not isinstance(text, str) or not (match := DATE_CONSTRUCT.fullmatch(text)):
        return False
    return date.fromisoformat(match[1]).isoformat() == match[1]


def instant(text: str) -> Fraction:
    """Seconds since some day long ago, exactly, of a date or date-time as RFC 3339 writes it."""
    match = DATE_CONSTRUCT.fullmatch(text.upper() if len(text) > 10 else f"{text}T00:00:00Z")
    assert match
    day, hour, minute, second, fraction, _, sign, off_hours, off_minutes = match.groups()
    offset = (int(off_hours) * 60 + int(off_minutes)) * (-60 if sign == "-" else 60) if sign else 0
    seconds = date.fromisoformat(day).toordinal() * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second)
    return seconds - offset + Fraction(f"0{fraction or '.0'}")


def is_url(text: Any) -> bool:
    return isinstance(text, str) and re.match(r"https?://[^/]", text, re.IGNORECASE) is not None


# ---- JSON Feed ----

# Keys in the order of the specification; an extension's key begins with an underscore.
JSON_FEED_KEYS = {
    *("version", "title", "home_page_url", "feed_url", "description", "user_comment", "next_url", "icon"),
    *("favicon", "authors", "language", "expired", "hubs", "items"),
}
JSON_ITEM_KEYS = {
    *("id", "url", "external_url", "title", "content_html", "content_text", "summary", "image"),
    *("banner_image", "date_published", "date_modified", "authors", "tags", "language", "attachments"),
}


def json_feed_faults(feed: Object) -> Iterator[str]:
    if feed["version"] != "https://jsonfeed.org/version/1.1":
        yield "version"
    if not isinstance(feed["title"], str) or not isinstance(feed["description"], str):
        yield "title and description are text"
    if not is_url(feed["home_page_url"]) or not is_url(feed["feed_url"]):
        yield "addresses of the feed"
    if any(key not in JSON_FEED_KEYS and not key.startswith("_") for key in feed):
        yield "an extension's name begins with an underscore"
    if any(not hub["type"] or not is_url(hub["url"]) for hub in feed.get("hubs", [])):
        yield "a hub has type and url"
    if len({item["id"] for item in feed["items"]}) < len(feed["items"]):
        yield "ids are unique"
    for item in feed["items"]:
        yield from json_item_faults(item)


def json_item_faults(item: Object) -> Iterator[str]:
    if not isinstance(item["id"], str) or not item["id"]:
        yield "id is a string"
    if ("content_text" in item) + ("content_html" in item) != 1 or not isinstance(item["content_text"], str):
        yield "an item has content"
    if any(not is_date(item[key]) for key in ("date_published", "date_modified") if key in item):
        yield "dates are those of RFC 3339"
    if (
        any(not author.keys() & {"name", "url", "avatar"} for author in item["authors"])
        or not item["authors"]
    ):
        yield "an author has a name, a url or an avatar"
    if any(not is_url(author["avatar"]) for author in item["authors"] if "avatar" in author):
        yield "an avatar has an address"
    if not all(isinstance(tag, str) for tag in item.get("tags", [])):
        yield "tags are strings"
    if "url" in item and not is_url(item["url"]):
        yield "url is an address"
    if any(value is None for key, value in item.items() if key != "_review"):
        yield "what is absent is left out"
    if any(key not in JSON_ITEM_KEYS and not key.startswith("_") for key in item):
        yield "an extension's name begins with an underscore"


# ---- Atom ----

ATOM = "{http://www.w3.org/2005/Atom}"
# How often a child may stand in its parent (RFC 4287 sections 4.1.1, 4.1.2 and 3.2).
OCCURRENCES = {
    "feed": {
        "id": (1, 1),
        "title": (1, 1),
        "updated": (1, 1),
        "subtitle": (0, 1),
        "link": (1, 9),
        "entry": (0, 50),
    },
    "entry": {
        "id": (1, 1),
        "title": (1, 1),
        "updated": (1, 1),
        "published": (0, 1),
        "content": (1, 1),
        "author": (1, 9),
        "link": (0, 9),
        "category": (0, 999),
    },
    "author": {"name": (1, 1), "uri": (0, 1), "email": (0, 1)},
}
ATTRIBUTES = {"link": {"rel", "href", "type"}, "category": {"term"}, "content": {"type"}}


def atom_faults(feed: ET.Element) -> Iterator[str]:
    if feed.tag != f"{ATOM}feed":
        yield "the root is a feed"
    for element in feed.iter():
        yield from element_faults(element)
    for holder in (feed, *feed.iter(f"{ATOM}entry")):
        yield from link_faults(holder)
    ids = [element.text or "" for element in feed.iter(f"{ATOM}id")]
    if len(set(ids)) < len(ids):
        yield "ids are unique, within the feed and its entries"
    if not all(TAG_URI.fullmatch(identifier) for identifier in ids):
        yield "ids are tag URIs"


def element_faults(element: ET.Element) -> Iterator[str]:
    name = element.tag.removeprefix(ATOM)
    allowed = OCCURRENCES.get(name, {})
    counted = Counter(child.tag.removeprefix(ATOM) for child in element)
    if counted.keys() - allowed.keys():
        yield f"{name} holds {sorted(counted.keys() - allowed.keys())}"
    for child, (least, most) in allowed.items():
        if not least <= counted[child] <= most:
            yield f"{name} has {counted[child]} of {child}"
    if element.attrib.keys() - ATTRIBUTES.get(name, set()):
        yield f"{name} has attributes {sorted(element.attrib)}"
    if name in ("updated", "published") and not is_date(element.text):
        yield f"{name} is no date construct: {element.text}"
    if name == "category" and "term" not in element.attrib:
        yield "a category has a term"
    if name == "content" and element.get("type", "text") != "text":
        yield "content is plain text"


def link_faults(holder: ET.Element) -> Iterator[str]:
    links = holder.findall(f"{ATOM}link")
    relations = Counter(link.get("rel", "alternate") for link in links)
    if not all(is_url(link.get("href")) for link in links):
        yield "a link has an address"
    if relations["alternate"] > 1:
        yield "two alternates of one type and language"
    if holder.tag == f"{ATOM}feed" and (relations["self"], relations["alternate"]) != (1, 1):
        yield "a feed has one self and one alternate"
    if holder.tag == f"{ATOM}entry" and relations.keys() - {"alternate"}:
        yield "an entry has an alternate or nothing"
