"""The feeds: the newest reviews as JSON Feed and as Atom.

The feeds do not contain the time of rendering, so equal data give equal bytes. This module must not know
files, the clock or HTTP.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import quote, urlsplit

from reviewslib.dataset.provenance import published_on, review_called
from reviewslib.dataset.reviews import NEWEST_REVIEWS, Dataset, service_labels
from reviewslib.dataset.strict_json import Json, encode
from reviewslib.links import ServiceUrls

# ---- JSON Feed ----


def json_feed(dataset: Dataset, urls: ServiceUrls) -> bytes:
    """JSON Feed 1.1 (https://jsonfeed.org/version/1.1) of the newest reviews, encoded."""
    name = dataset.business["name"]
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": f"Reviews of {name}",
        "home_page_url": dataset.business.get("url") or urls.home,
        "feed_url": urls.json_feed,
        "description": _description(dataset),
    }
    if language := dataset.business.get("language"):
        feed["language"] = language
    if urls.hub:
        feed["hubs"] = [{"type": "WebSub", "url": urls.hub}]
    return encode(
        feed
        | {"items": [_json_feed_item(review, dataset) for review in dataset.newest]}
    )


def _json_feed_item(review: Mapping[str, Json], dataset: Dataset) -> dict[str, Json]:
    author = {"name": review["author"]}
    if review["author_avatar_url"]:
        author["avatar"] = review["author_avatar_url"]
    return {
        "id": review["id"],
        "url": review["source_url"] or review["page_url"],
        "title": review_title(review),
        "content_text": review_content(review),
        "date_published": _date_time(review["date"]),
        "date_modified": _modified(review),
        "authors": [author],
        "tags": _tags(review, dataset),
        "_review": {
            key: review[key] for key in ("rating", "verified", "source", "owner_reply")
        },
    }


# ---- Atom ----

# Ids are `tag:` URIs (RFC 4151 section 2.1) and must not change. Therefore their date is a constant, and
# their authority is the host alone; ports and paths change more often.
TAG_YEAR = "2026"
DOMAIN_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
# XML 1.0 section 2.2. Surrogates are forbidden too; the loader refuses files that have them.
NOT_IN_XML = dict.fromkeys(
    [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0xFFFE, 0xFFFF]
)


def atom_feed(
    dataset: Dataset, urls: ServiceUrls, updated_when_empty: datetime
) -> bytes:
    """Atom (RFC 4287) of the newest reviews, encoded; `updated_when_empty` is aware and UTC."""
    name = dataset.business["name"]
    home = dataset.business.get("url") or urls.home
    host = (
        urlsplit(urls.home).hostname or ""
    )  # not `business.url`: adding it later would change all ids
    tag = f"tag:{host if DOMAIN_NAME.fullmatch(host) else 'localhost'},{TAG_YEAR}"
    modified = [_modified(review) for review in dataset.newest]
    feed = ET.Element("feed", {"xmlns": "http://www.w3.org/2005/Atom"})
    if language := dataset.business.get("language"):
        feed.set("xml:lang", language)
    _element(feed, "id", f"{tag}:reviews")
    _element(feed, "title", f"Reviews of {name}")
    _element(feed, "subtitle", _description(dataset))
    _element(
        feed,
        "updated",
        max(modified, key=_instant, default=f"{updated_when_empty:%Y-%m-%dT%H:%M:%SZ}"),
    )
    _element(feed, "link", rel="self", type="application/atom+xml", href=urls.atom_feed)
    if urls.hub:
        _element(feed, "link", rel="hub", href=urls.hub)
    _element(feed, "link", rel="alternate", href=home)
    for review in dataset.newest:
        _add_entry(
            feed, f"{tag}:review/{quote(review['id'], safe='')}", review, dataset
        )
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True))


def _add_entry(
    feed: ET.Element, tag: str, review: Mapping[str, Json], dataset: Dataset
) -> None:
    entry = _element(feed, "entry")
    _element(entry, "id", tag)
    _element(entry, "title", review_title(review))
    _element(entry, "published", _date_time(review["date"]))
    _element(entry, "updated", _modified(review))
    _element(_element(entry, "author"), "name", review["author"])
    _element(
        entry, "link", rel="alternate", href=review["source_url"] or review["page_url"]
    )
    for term in _tags(review, dataset):
        _element(entry, "category", term=term)
    reply = review["owner_reply"]
    reply_text = f"\n\nReply from the owner: {reply['text']}" if reply else ""
    _element(entry, "content", review_content(review) + reply_text, type="text")


def _element(
    parent: ET.Element, name: str, text: str = "", **attributes: str
) -> ET.Element:
    element = ET.SubElement(
        parent, name, {key: _xml(value) for key, value in attributes.items()}
    )
    element.text = _xml(text)
    return element


def _xml(text: str) -> str:
    """`text` without the characters that XML forbids, its line ends normalized as a parser does."""
    return text.translate(NOT_IN_XML).replace("\r\n", "\n").replace("\r", "\n")


# ---- Titles, descriptions, dates ----


def _description(dataset: Dataset) -> str:
    newest = (
        "All"
        if len(dataset.newest) < NEWEST_REVIEWS
        else f"The {NEWEST_REVIEWS} newest"
    )
    sources = published_on(dataset.sources)
    where = f", published on {sources}" if sources else ""
    return f"{newest} {review_called(dataset.business)}s of {dataset.business['name']}{where}."


def review_title(review: Mapping[str, Json]) -> str:
    """The title of a review: "5 stars from Ann B."."""
    return f"{_stars(review)} from {review['author']}"


def _stars(review: Mapping[str, Json]) -> str:
    return "1 star" if review["rating"] == 1 else f"{review['rating']:g} stars"


def review_content(review: Mapping[str, Json]) -> str:
    """The text of a review, or its rating in words."""
    return review["text"] or f"{_stars(review)}, without words."


def _tags(review: Mapping[str, Json], dataset: Dataset) -> list[str]:
    labels = service_labels(dataset)
    services = [
        labels.get(service, service) for service in review["mentioned_services"]
    ]
    return list(dict.fromkeys(services + review["mentioned_technicians"]))


def _date_time(date: str) -> str:
    """A date as an RFC 3339 date-time with upper-case T and Z, which Atom requires (RFC 4287 section 3.3)."""
    return date.upper() if len(date) > len("YYYY-MM-DD") else f"{date}T00:00:00Z"


def _modified(review: Mapping[str, Json]) -> str:
    """The later date of review and reply, as a date-time."""
    reply_date = (review["owner_reply"] or {}).get("date")
    return max(
        map(_date_time, filter(None, (review["date"], reply_date))), key=_instant
    )


def _instant(date_time: str) -> tuple[timedelta, str]:
    """A sort key of date-times: the time in seconds, then the digits of the fraction, however many.

    A leap second is equal to the second before it.
    """
    second = date_time[17:19]
    rest = date_time[19:]
    offset = rest.lstrip(".0123456789")
    moment = datetime.fromisoformat(date_time[:17] + min(second, "59") + offset)
    # timestamp() would fail in the years 1 and 9999, where an offset can leave the calendar.
    to_the_second = (
        moment.replace(tzinfo=None) - datetime.min - (moment.utcoffset() or timedelta())
    )
    return to_the_second, rest.removesuffix(offset)
