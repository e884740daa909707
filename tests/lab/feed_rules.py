"""The rules of the two feeds, from their specifications, as checks that yield violations.

JSON Feed 1.1 (https://jsonfeed.org/version/1.1) and Atom (RFC 4287), narrowed where this service promises
more: every id of the Atom feed is a `tag:` URI, absent values are left out. Constant parts have no rule here;
they are in the snapshots.
"""

import re
import xml.etree.ElementTree as ET
from datetime import date
from fractions import Fraction
from typing import Any

Object = dict[str, Any]

DATE_CONSTRUCT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(\.[0-9]+)?"
    r"(Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)  # RFC 3339 with the capitals of RFC 4287 section 3.3
WEB_URL = re.compile(r"https?://[^/].*", re.IGNORECASE | re.DOTALL)
PATH = r"([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})+"  # of RFC 3986, with query characters
TAG_URI = re.compile(rf"tag:[a-z0-9.-]+,[0-9]{{4}}(-[0-9]{{2}}){{0,2}}:{PATH}")


def instant(text: str) -> Fraction:
    """A date or date-time of RFC 3339 as exact seconds since a fixed day in the past."""
    match = DATE_CONSTRUCT.fullmatch(
        text.upper() if len(text) > 10 else f"{text}T00:00:00Z"
    )
    assert match
    day, hour, minute, second, fraction, _, sign, off_hours, off_minutes = (
        match.groups()
    )
    offset = (
        (int(off_hours) * 60 + int(off_minutes)) * (-60 if sign == "-" else 60)
        if sign
        else 0
    )
    seconds = (
        date.fromisoformat(day).toordinal() * 86400
        + int(hour) * 3600
        + int(minute) * 60
        + int(second)
    )
    return seconds - offset + Fraction(f"0{fraction or '.0'}")


def json_feed_faults(feed: Object) -> list[str]:
    """The violated rules that the schema of the contract does not have."""
    items = feed["items"]
    authors = [author for item in items for author in item["authors"]]
    addresses = [
        feed["home_page_url"],
        feed["feed_url"],
        *(hub["url"] for hub in feed.get("hubs", [])),
    ]
    addresses += [item["url"] for item in items]
    addresses += [author["avatar"] for author in authors if "avatar" in author]
    dates = [item[key] for item in items for key in ("date_published", "date_modified")]
    rules = {
        "an address is absolute": all(map(WEB_URL.fullmatch, addresses)),
        "dates are those of RFC 3339": all(map(DATE_CONSTRUCT.fullmatch, dates)),
        "ids are unique": len({item["id"] for item in items}) == len(items),
        "an author has a name": all(author["name"] for author in authors),
        "what is absent is left out": not any(None in item.values() for item in items),
    }
    return [rule for rule, holds in rules.items() if not holds]


ATOM = "{http://www.w3.org/2005/Atom}"


def atom_faults(feed: ET.Element) -> list[str]:
    """The violated rules of Atom."""
    ids = [element.text or "" for element in feed.iter(f"{ATOM}id")]
    dates = [
        element.text or ""
        for name in ("updated", "published")
        for element in feed.iter(ATOM + name)
    ]
    holders = [feed, *feed.iter(f"{ATOM}entry")]
    rules = {
        "ids are unique, within the feed and its entries": len(set(ids)) == len(ids),
        "ids are tag URIs": all(map(TAG_URI.fullmatch, ids)),
        "dates are date constructs": all(map(DATE_CONSTRUCT.fullmatch, dates)),
        "feed and entries are dated": all(
            len(one.findall(f"{ATOM}updated")) == 1 for one in holders
        ),
        "a link has an address": all(
            WEB_URL.fullmatch(link.get("href", "")) for link in feed.iter(f"{ATOM}link")
        ),
    }
    return [rule for rule, holds in rules.items() if not holds]
