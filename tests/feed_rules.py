"""The rules of the two feeds, written down from their specifications as checks that yield what is wrong.

JSON Feed 1.1 (https://jsonfeed.org/version/1.1) and Atom (RFC 4287), narrowed where this service promises
more: every id of the Atom feed is a `tag:` URI, content is plain text, absent is left out.

Dates and addresses - JSON Feed - Atom
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import Any

Object = dict[str, Any]

# ---- Dates and addresses ----

DATE_CONSTRUCT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(\.[0-9]+)?"
    r"(Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)  # RFC 3339 with the capitals of RFC 4287 section 3.3
PATH = r"([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})+"  # of RFC 3986, with query characters
TAG_URI = re.compile(rf"tag:[a-z0-9.-]+,[0-9]{{4}}(-[0-9]{{2}}){{0,2}}:{PATH}")


def is_date(text: Any) -> bool:
    match = DATE_CONSTRUCT.fullmatch(text)
    return match is not None and date.fromisoformat(match[1]).isoformat() == match[1]


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


# ---- JSON Feed: what a schema of the contract does not say ----

JSON_FEED_KEYS = {
    *("version", "title", "home_page_url", "feed_url", "description", "user_comment", "next_url", "icon"),
    *("favicon", "authors", "language", "expired", "hubs", "items"),
}
JSON_DATES = ("date_published", "date_modified")
JSON_ITEM_KEYS = {
    *("id", "url", "external_url", "title", "content_html", "content_text", "summary", "image"),
    *("banner_image", "date_published", "date_modified", "authors", "tags", "language", "attachments"),
}


def json_feed_faults(feed: Object) -> list[str]:
    items, hubs = feed["items"], feed.get("hubs", [])
    authors = [author for item in items for author in item["authors"]]
    addresses = [feed["home_page_url"], feed["feed_url"], *(hub["url"] for hub in hubs)]
    addresses += [item["url"] for item in items if "url" in item]
    addresses += [author["avatar"] for author in authors if "avatar" in author]
    unknown = feed.keys() - JSON_FEED_KEYS | {key for item in items for key in item.keys() - JSON_ITEM_KEYS}
    rules = {
        "an address is absolute": all(map(is_url, addresses)),
        "dates are those of RFC 3339": all(is_date(item[key]) for item in items for key in JSON_DATES),
        "ids are unique": len({item["id"] for item in items}) == len(items),
        "an item has one content": all(("content_text" in one) != ("content_html" in one) for one in items),
        "an author has a name": all(author["name"] for author in authors),
        "what is absent is left out": not any(None in item.values() for item in items),
        "an extension's name begins with an underscore": all(key.startswith("_") for key in unknown),
    }
    return [rule for rule, holds in rules.items() if not holds]


# ---- Atom ----

ATOM = "{http://www.w3.org/2005/Atom}"
# How often a child may stand in its parent (RFC 4287 sections 4.1.1, 4.1.2 and 3.2), and which attributes.
ONCE, OPTIONAL, ANY_NUMBER = (1, 1), (0, 1), (0, 999)
BOTH = {"id": ONCE, "title": ONCE, "updated": ONCE, "link": ANY_NUMBER}
CHILDREN = {
    "feed": BOTH | {"subtitle": OPTIONAL, "entry": (0, 50)},
    "entry": BOTH | {"published": OPTIONAL, "content": ONCE, "author": (1, 9), "category": ANY_NUMBER},
    "author": {"name": ONCE, "uri": OPTIONAL, "email": OPTIONAL},
}
ATTRIBUTES = {"link": {"rel", "href", "type"}, "category": {"term"}, "content": {"type"}}


def atom_faults(feed: ET.Element) -> list[str]:
    ids = [element.text or "" for element in feed.iter(f"{ATOM}id")]
    links = [Counter(link.get("rel") for link in holder.findall(f"{ATOM}link")) for holder in feed.iter()]
    rules = {
        "the root is a feed": feed.tag == f"{ATOM}feed",
        "ids are unique, within the feed and its entries": len(set(ids)) == len(ids),
        "ids are tag URIs": all(TAG_URI.fullmatch(identifier) for identifier in ids),
        "a link has an address": all(is_url(link.get("href")) for link in feed.iter(f"{ATOM}link")),
        "a feed has one self and one alternate": (links[0]["self"], links[0]["alternate"]) == (1, 1),
        "an entry has one alternate or nothing": all(found in ({}, {"alternate": 1}) for found in links[1:]),
    }
    faults = [rule for rule, holds in rules.items() if not holds]
    return faults + [fault for element in feed.iter() for fault in element_faults(element)]


def element_faults(element: ET.Element) -> Iterator[str]:
    name = element.tag.removeprefix(ATOM)
    allowed = CHILDREN.get(name, {})
    counted = Counter(child.tag.removeprefix(ATOM) for child in element)
    if counted.keys() - allowed.keys():
        yield f"{name} holds {sorted(counted.keys() - allowed.keys())}"
    if any(not least <= counted[child] <= most for child, (least, most) in allowed.items()):
        yield f"{name} holds too many or too few: {counted}"
    if element.attrib.keys() - ATTRIBUTES.get(name, set()):
        yield f"{name} has attributes {sorted(element.attrib)}"
    if name in ("updated", "published") and not is_date(element.text or ""):
        yield f"{name} is no date construct: {element.text}"
    if name == "category" and "term" not in element.attrib:
        yield "a category has a term"
    if name == "content" and element.get("type", "text") != "text":
        yield "content is plain text"
