"""The feeds: the newest reviews as JSON Feed and as Atom.

Neither holds the time of its rendering: the same data give the same bytes. This module turns a dataset into
bytes; it knows no file, no clock and no HTTP.

Sections: JSON Feed - Atom - Words - Date-times
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import quote, urlsplit

from links import Links
from reviews import NEWEST_REVIEWS, Dataset
from strict_json import Json, encode

# ---- JSON Feed ----


def json_feed(dataset: Dataset, links: Links) -> bytes:
    """JSON Feed 1.1 (https://jsonfeed.org/version/1.1) of the newest reviews, encoded."""
    name = dataset.business["name"]
    labels = _service_labels(dataset.insights)
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"Reviews of {name}",
        "home_page_url": dataset.business.get("url") or links.home,
        "feed_url": links.json_feed,
        "description": f"The {NEWEST_REVIEWS} newest verified customer reviews of {name}.",
    }
    if links.hub:
        feed["hubs"] = [{"type": "WebSub", "url": links.hub}]
    return encode(feed | {"items": [_json_feed_item(review, labels) for review in dataset.newest]})


def _json_feed_item(review: Mapping[str, Json], service_labels: Mapping[str, str]) -> dict[str, Json]:
    author = {"name": review["author"]}
    if review["author_avatar_url"]:
        author["avatar"] = review["author_avatar_url"]
    item = {"id": review["id"]}
    if review["source_url"]:
        item["url"] = review["source_url"]
    return item | {
        "title": _title(review),
        "content_text": _content(review),
        "date_published": _date_time(review["date"]),
        "date_modified": _modified(review),
        "authors": [author],
        "tags": _tags(review, service_labels),
        "_review": {key: review[key] for key in ("rating", "verified", "source", "owner_reply")},
    }


# ---- Atom ----


def atom_feed(dataset: Dataset, links: Links, updated_when_empty: datetime) -> bytes:
    """Atom (RFC 4287) of the newest reviews, encoded; `updated_when_empty` is aware and UTC."""
    name = dataset.business["name"]
    authority = _tag_authority(dataset.business.get("url") or links.home)
    labels = _service_labels(dataset.insights)
    modified = [_modified(review) for review in dataset.newest]
    updated = max(modified, key=_instant) if modified else f"{updated_when_empty:%Y-%m-%dT%H:%M:%SZ}"
    feed = ET.Element("feed", {"xmlns": "http://www.w3.org/2005/Atom"})
    _text_element(feed, "id", f"tag:{authority},{TAG_YEAR}:reviews")
    _text_element(feed, "title", f"Reviews of {name}")
    _text_element(feed, "subtitle", f"The {NEWEST_REVIEWS} newest verified customer reviews of {name}.")
    _text_element(feed, "updated", updated)
    ET.SubElement(feed, "link", {"rel": "self", "type": "application/atom+xml", "href": links.atom_feed})
    if links.hub:
        ET.SubElement(feed, "link", {"rel": "hub", "href": links.hub})
    ET.SubElement(feed, "link", {"rel": "alternate", "href": _xml(dataset.business.get("url") or links.home)})
    for review in dataset.newest:
        _atom_entry(feed, review, f"tag:{authority},{TAG_YEAR}:review/{quote(review['id'], safe='')}", labels)
    body = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return bytes(body)


def _atom_entry(feed: ET.Element, review: Mapping[str, Json], tag: str, labels: Mapping[str, str]) -> None:
    entry = ET.SubElement(feed, "entry")
    _text_element(entry, "id", tag)
    _text_element(entry, "title", _title(review))
    _text_element(entry, "published", _date_time(review["date"]))
    _text_element(entry, "updated", _modified(review))
    _text_element(ET.SubElement(entry, "author"), "name", review["author"])
    if review["source_url"]:
        ET.SubElement(entry, "link", {"rel": "alternate", "href": _xml(review["source_url"])})
    for term in _tags(review, labels):
        ET.SubElement(entry, "category", {"term": _xml(term)})
    reply = review["owner_reply"]
    answered = f"\n\nReply from the owner: {reply['text']}" if reply else ""
    _text_element(entry, "content", _content(review) + answered).set("type", "text")


TAG_YEAR = "2026"  # RFC 4151 wants a date at which the authority held its name; a constant keeps ids stable
DOMAIN_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
# What XML 1.0 section 2.2 leaves out, but for halves of surrogate pairs, which no data hold. An expression
# for it would take 5 ms to compile at each start.
NO_XML = dict.fromkeys([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0xFFFE, 0xFFFF])


def _tag_authority(url: str) -> str:
    """The authority of `tag:` ids (RFC 4151 section 2.1): the host, which outlives ports and paths."""
    host = urlsplit(url).hostname or ""
    return host if DOMAIN_NAME.fullmatch(host) else "localhost"


def _text_element(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, name)
    element.text = _xml(text)
    return element


def _xml(text: str) -> str:
    """`text` without the characters that XML forbids, its line ends as a parser would make them."""
    return text.translate(NO_XML).replace("\r\n", "\n").replace("\r", "\n")


# ---- Words: what both feeds say of a review ----


def _title(review: Mapping[str, Json]) -> str:
    return f"{_stars(review)} from {review['author']}"


def _stars(review: Mapping[str, Json]) -> str:
    return "1 star" if review["rating"] == 1 else f"{review['rating']:g} stars"


def _content(review: Mapping[str, Json]) -> str:
    return review["text"] or f"{_stars(review)}, without words."


def _tags(review: Mapping[str, Json], service_labels: Mapping[str, str]) -> list[str]:
    services = [service_labels.get(service, service) for service in review["mentioned_services"]]
    return list(dict.fromkeys(services + review["mentioned_technicians"]))


def _service_labels(insights: Mapping[str, Json]) -> dict[str, str]:
    return {entry["id"]: entry["label"] for entry in insights["entities"]["services"]}


# ---- Date-times ----


def _date_time(written: str) -> str:
    """A date as an RFC 3339 date-time with the capitals that Atom demands (RFC 4287 section 3.3)."""
    return written.upper() if len(written) > len("YYYY-MM-DD") else f"{written}T00:00:00Z"


def _modified(review: Mapping[str, Json]) -> str:
    """The later of the review's date and its reply's, as a date-time."""
    reply_date = (review["owner_reply"] or {}).get("date")
    dates = [_date_time(review["date"])] + ([_date_time(reply_date)] if reply_date else [])
    return max(dates, key=_instant)


def _instant(date_time: str) -> tuple[timedelta, str]:
    """What orders date-times: the time to the second, then the digits of its fraction, however many.

    A leap second counts as the second before it.
    """
    second = "59" if date_time[17:19] == "60" else date_time[17:19]
    fraction = re.match(r"\.[0-9]+", date_time[19:])
    digits = fraction[0] if fraction else ""
    moment = datetime.fromisoformat(date_time[:17] + second + date_time[19 + len(digits) :])
    # Not timestamp(): in the years 1 and 9999 an offset would leave the calendar.
    whole = moment.replace(tzinfo=None) - datetime.min - (moment.utcoffset() or timedelta())
    return whole, digits.rstrip("0")
