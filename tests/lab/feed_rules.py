"""The rules of the two feeds, from their specifications, as checks that name faults.

JSON Feed 1.1 (https://jsonfeed.org/version/1.1) and Atom (RFC 4287), narrowed where
this service promises more: every id of the Atom feed is a `tag:` URI, absent values are
left out. Constant parts have no rule here; they are in the snapshots.

Sections: forms - JSON Feed - Atom.
"""

import re
import xml.etree.ElementTree as ET
from datetime import date
from fractions import Fraction
from itertools import chain
from typing import Any

Object = dict[str, Any]

# ---- Forms ----

# RFC 3339 with the capitals of RFC 4287 section 3.3.
DATE_CONSTRUCT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(\.[0-9]+)?"
    r"(Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
WEB_URL = re.compile(r"https?://[^/].*", re.IGNORECASE | re.DOTALL)
# Of RFC 3986, with the characters of a query.
PATH = r"([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})+"
TAG_URI = re.compile(rf"tag:[a-z0-9.-]+,[0-9]{{4}}(-[0-9]{{2}}){{0,2}}:{PATH}")


A_DAY = len("2025-06-01")


def instant(text: str) -> Fraction:
    """A date or date-time of RFC 3339 as exact seconds since a fixed day."""
    whole = f"{text}T00:00:00Z" if len(text) == A_DAY else text.upper()
    match = DATE_CONSTRUCT.fullmatch(whole)
    assert match
    day, hour, minute, second, fraction, _, sign, off_hours, off_minutes = (
        match.groups()
    )
    seconds = date.fromisoformat(day).toordinal() * 86400
    seconds += int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign == "+":
        seconds -= int(off_hours) * 3600 + int(off_minutes) * 60
    if sign == "-":
        seconds += int(off_hours) * 3600 + int(off_minutes) * 60
    return seconds + Fraction(f"0{fraction or '.0'}")


def violated(rules: dict[str, bool]) -> list[str]:
    return [rule for rule, holds in rules.items() if not holds]


# ---- JSON Feed ----


def json_feed_faults(feed: Object) -> list[str]:
    """The violated rules that the schema of the contract does not have."""
    items = feed["items"]
    authors = list(chain.from_iterable(item["authors"] for item in items))
    addresses = [feed["home_page_url"], feed["feed_url"]]
    addresses += [hub["url"] for hub in feed.get("hubs", [])]
    addresses += [item["url"] for item in items]
    addresses += [author["avatar"] for author in authors if "avatar" in author]
    dates = [item["date_published"] for item in items]
    dates += [item["date_modified"] for item in items]
    return violated(
        {
            "an address is absolute": all(map(WEB_URL.fullmatch, addresses)),
            "dates are those of RFC 3339": all(map(DATE_CONSTRUCT.fullmatch, dates)),
            "ids are unique": len({item["id"] for item in items}) == len(items),
            "an author has a name": all(author["name"] for author in authors),
            "what is absent is left out": not any(
                None in item.values() for item in items
            ),
        }
    )


# ---- Atom ----

ATOM = "{http://www.w3.org/2005/Atom}"


def texts_of(feed: ET.Element, name: str) -> list[str]:
    """The texts of all elements of a name."""
    return [element.text or "" for element in feed.iter(ATOM + name)]


def is_dated(holder: ET.Element) -> bool:
    return len(holder.findall(f"{ATOM}updated")) == 1


def atom_faults(feed: ET.Element) -> list[str]:
    """The violated rules of Atom."""
    ids = texts_of(feed, "id")
    dates = texts_of(feed, "updated") + texts_of(feed, "published")
    holders = [feed, *feed.iter(f"{ATOM}entry")]
    links = [link.get("href", "") for link in feed.iter(f"{ATOM}link")]
    return violated(
        {
            "ids are unique, within the feed and its entries": len(set(ids))
            == len(ids),
            "ids are tag URIs": all(map(TAG_URI.fullmatch, ids)),
            "dates are date constructs": all(map(DATE_CONSTRUCT.fullmatch, dates)),
            "feed and entries are dated": all(map(is_dated, holders)),
            "a link has an address": all(map(WEB_URL.fullmatch, links)),
        }
    )
