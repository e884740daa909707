"""The feeds: the newest reviews as JSON Feed and as Atom.

The feeds do not contain the time of rendering, so equal data give equal bytes. This
module must not know files, the clock or HTTP.

Sections: JSON Feed - Atom - selections in words - what both say of a review - dates.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from markupsafe import escape

from reviewslib.dataset.moments import utc_text
from reviewslib.dataset.provenance import is_verified, publishers, source_name
from reviewslib.dataset.reviews import NEWEST_REVIEWS, service_labels
from reviewslib.dataset.searching import ReviewList
from reviewslib.dataset.strict_json import Json, Object, encode
from reviewslib.links import ServiceUrls
from reviewslib.web.fields import stars_text
from reviewslib.web.language import Language, message
from reviewslib.web.site import Site

# ---- JSON Feed ----


def json_feed(site: Site) -> bytes:
    """JSON Feed 1.1 of the newest reviews, encoded.

    The format is that of https://jsonfeed.org/version/1.1.
    """
    business = site.dataset.business
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": _title(site),
        "home_page_url": business.get("url") or site.urls.home,
        "feed_url": site.urls.json_feed,
        "description": _description(site),
    }
    if business.get("language"):
        feed["language"] = business["language"]
    if site.urls.hub:
        feed["hubs"] = [{"type": "WebSub", "url": site.urls.hub}]
    feed["items"] = [_json_feed_item(site, review) for review in site.dataset.newest]
    return encode(feed)


def _json_feed_item(site: Site, review: Object) -> dict[str, Json]:
    author = {"name": site.language.author(review)}
    if review["author_avatar_url"]:
        author["avatar"] = review["author_avatar_url"]
    more = ("rating", "verified", "source", "owner_reply")
    return {
        "id": review["id"],
        "url": _entry_url(review),
        "title": site.language.review_title(review),
        "content_text": _entry_text(site.language, review),
        "date_published": _date_time(review["date"]),
        "date_modified": _modified(review),
        "authors": [author],
        "tags": _tags(site, review),
        "_review": {key: review[key] for key in more},
    }


# ---- Atom ----

# Ids are `tag:` URIs (RFC 4151 section 2.1) and must not change. Therefore their date
# is a constant, and their authority is the host alone: ports and paths change more
# often.
TAG_YEAR = "2026"
DOMAIN_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
# XML 1.0 section 2.2. Surrogates are forbidden too; the loader refuses files that have
# them.
NOT_IN_XML = dict.fromkeys(
    [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0xFFFE, 0xFFFF]
)


def atom_feed(site: Site, updated_when_empty: datetime) -> bytes:
    """Atom (RFC 4287) of the newest reviews, encoded.

    `updated_when_empty` is aware and UTC.
    """
    head = FeedHead(
        id=f"{_tag(site.urls)}:reviews",
        title=_title(site),
        subtitle=_description(site),
        url=site.urls.atom_feed,
        hub=site.urls.hub,
        page=site.dataset.business.get("url") or site.urls.home,
    )
    return _atom(site, head, site.dataset.newest, updated_when_empty)


def search_feed(
    site: Site,
    filters: Mapping[str, str],
    found: ReviewList,
    updated_when_empty: datetime,
) -> bytes:
    """Atom of the newest reviews that a search finds, encoded.

    `filters` are those of the search as text, in the order of the contract. A hub knows
    no topic for each of them.
    """
    head = FeedHead(
        id=f"{_tag(site.urls)}:reviews/search?{urlencode(filters)}",
        title=_title_of_search(site, filters),
        subtitle=_description_of_search(site, found),
        url=site.urls.feed_of(filters),
        hub="",
        page=site.urls.selection(**filters),
    )
    reviews = [review.decoded() for review in found.reviews]
    return _atom(site, head, reviews, updated_when_empty)


class FeedHead(NamedTuple):
    """What an Atom feed says of itself. The URLs are absolute; `hub` may be empty."""

    id: str
    title: str
    subtitle: str
    url: str
    hub: str
    # For people.
    page: str


def _atom(
    site: Site, head: FeedHead, reviews: Sequence[Object], updated_when_empty: datetime
) -> bytes:
    feed = ET.Element("feed", {"xmlns": "http://www.w3.org/2005/Atom"})
    text_language = site.dataset.business.get("language")
    if text_language:
        feed.set("xml:lang", text_language)
    _add_head(feed, head, _newest_change(reviews, updated_when_empty))
    for review in reviews:
        _add_entry(feed, site, review)
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True))


def _add_head(feed: ET.Element, head: FeedHead, updated: str) -> None:
    """What a feed says before its entries."""
    _element(feed, "id", head.id)
    _element(feed, "title", head.title)
    _element(feed, "subtitle", head.subtitle)
    _element(feed, "updated", updated)
    _element(feed, "link", rel="self", type="application/atom+xml", href=head.url)
    if head.hub:
        _element(feed, "link", rel="hub", href=head.hub)
    _element(feed, "link", rel="alternate", href=head.page)


def _tag(urls: ServiceUrls) -> str:
    """The beginning of all ids."""
    # Not the host of `business.url`: adding that later would change all ids.
    host = urlsplit(urls.home).hostname or ""
    authority = host if DOMAIN_NAME.fullmatch(host) else "localhost"
    return f"tag:{authority},{TAG_YEAR}"


def _newest_change(reviews: Sequence[Object], when_empty: datetime) -> str:
    if not reviews:
        return utc_text(when_empty)
    return max((_modified(review) for review in reviews), key=_instant)


def _add_entry(feed: ET.Element, site: Site, review: Object) -> None:
    entry = _element(feed, "entry")
    _element(entry, "id", f"{_tag(site.urls)}:review/{quote(review['id'], safe='')}")
    _element(entry, "title", site.language.review_title(review))
    _element(entry, "published", _date_time(review["date"]))
    _element(entry, "updated", _modified(review))
    author = _element(entry, "author")
    _element(author, "name", site.language.author(review))
    _element(entry, "link", rel="alternate", href=_entry_url(review))
    for term in _tags(site, review):
        _element(entry, "category", term=term)
    # Not type="text": newsboat and rss-parser read that as HTML, too, and lose the
    # words between "<3" and the next ">".
    _element(entry, "content", _entry_html(site.language, review), type="html")


def _element(
    parent: ET.Element, name: str, text: str = "", **attributes: str
) -> ET.Element:
    allowed = {key: _xml(value) for key, value in attributes.items()}
    element = ET.SubElement(parent, name, allowed)
    element.text = _xml(text)
    return element


def _xml(text: str) -> str:
    """`text` without characters that XML forbids, line ends as parsers have them."""
    return text.translate(NOT_IN_XML).replace("\r\n", "\n").replace("\r", "\n")


# ---- Selections in words ----

# By filter of a search whose values are shown: a message with `%(value)s`.
FILTER_MESSAGES = {
    # TRANSLATORS: in the title of a feed, after "Reviews of …: ", with commas between:
    # "at least 4 stars, about waiting time, on Google". %(value)s of "with" are words,
    # of "about" a name or a label, of "on" a website
    "query": message("with “%(value)s”"),
    "min_rating": message("at least %(value)s stars"),
    "max_rating": message("at most %(value)s stars"),
    "since": message("from %(value)s"),
    "until": message("until %(value)s"),
    "mentions": message("about %(value)s"),
    "mentions_technician": message("about %(value)s"),
    "mentions_service": message("about %(value)s"),
    "source": message("on %(value)s"),
}
# By filter whose values have a meaning: a message for each.
VALUE_MESSAGES = {
    "sentiment": {
        # TRANSLATORS: in the title of a feed, too
        "positive": message("praise"),
        "neutral": message("neutral"),
        "negative": message("criticism"),
    },
    "replied": {
        # TRANSLATORS: in the title of a feed, too: reviews that the owner answered
        "true": message("answered"),
        "false": message("unanswered"),
    },
}


def _title_of_search(site: Site, filters: Mapping[str, str]) -> str:
    words = list(_selection_words(site, filters))
    if not words:
        return _title(site)
    return site.language.say(
        "Reviews of %(name)s: %(selection)s",
        name=site.dataset.business["name"],
        selection=site.language.listed(words),
    )


def _description_of_search(site: Site, found: ReviewList) -> str:
    """Which reviews a feed has, and in how many they were looked for if not in all."""
    language = site.language
    newest = language.say(
        "The %(n)s newest reviews that a search finds.",
        n=language.number(NEWEST_REVIEWS),
    )
    if "read_count" not in found.frame:
        return newest
    read = language.counted(
        "Somebody has read %(read)s of the %(n)s review with words so far; "
        "others may belong here, too.",
        "Somebody has read %(read)s of the %(n)s reviews with words so far; "
        "others may belong here, too.",
        found.frame["worded_count"],
        read=language.number(found.frame["read_count"]),
    )
    return f"{newest} {read}"


def _selection_words(site: Site, filters: Mapping[str, str]) -> Iterator[str]:
    """The filters in words; sources and services by their names."""
    labels = service_labels(site.dataset)
    for name, value in filters.items():
        shown = value
        if name == "source":
            shown = source_name(value)
        if name == "mentions_service":
            shown = labels.get(value, value)
        yield filter_words(site.language, name, shown)


def filter_words(language: Language, name: str, value: str) -> str:
    """A filter in words, for the title of a feed: "at most 3 stars"."""
    if name == "rating":
        return stars_text(language, int(value))
    if name in VALUE_MESSAGES:
        return language.say(VALUE_MESSAGES[name][value])
    shown = value
    if name in ("min_rating", "max_rating"):
        shown = language.rating(float(value))
    if name in ("since", "until"):
        shown = language.day(value)
    return language.say(FILTER_MESSAGES[name], value=shown)


# ---- What both say of a review ----


def _title(site: Site) -> str:
    name = site.dataset.business["name"]
    return site.language.say("Reviews of %(name)s", name=name)


def _description(site: Site) -> str:
    """Which reviews a feed has, and where they were published."""
    dataset = site.dataset
    language = site.language
    name = dataset.business["name"]
    number = language.number(NEWEST_REVIEWS)
    is_whole = len(dataset.newest) < NEWEST_REVIEWS
    # TRANSLATORS: descriptions of the feeds
    if is_verified(dataset.business):
        every = language.say("All verified customer reviews of %(name)s.", name=name)
        newest = language.say(
            "The %(n)s newest verified customer reviews of %(name)s.",
            n=number,
            name=name,
        )
    else:
        every = language.say("All customer reviews of %(name)s.", name=name)
        newest = language.say(
            "The %(n)s newest customer reviews of %(name)s.", n=number, name=name
        )
    description = every if is_whole else newest
    websites = language.published_on(publishers(dataset.sources))
    if not websites:
        return description
    published = language.say("Published on %(websites)s.", websites=websites)
    return f"{description} {published}"


def _entry_text(language: Language, review: Object) -> str:
    """The text of a review with the owner's reply, as plain text."""
    text = language.review_content(review)
    reply = review["owner_reply"]
    if not reply:
        return text
    answer = language.say("Reply from the owner: %(text)s", text=reply["text"])
    return f"{text}\n\n{answer}"


def _entry_html(language: Language, review: Object) -> str:
    """The same as HTML, without any markup but line breaks."""
    lines = _xml(_entry_text(language, review)).split("\n")
    return "<br>".join(str(escape(line)) for line in lines)


def _entry_url(review: Object) -> str:
    """Where the review was published, else its page here."""
    url: str = review["source_url"] or review["page_url"]
    return url


def _tags(site: Site, review: Object) -> list[str]:
    """The services and people that the review mentions, each once."""
    labels = service_labels(site.dataset)
    services = [labels.get(id, id) for id in review["mentioned_services"]]
    return list(dict.fromkeys(services + review["mentioned_technicians"]))


# ---- Dates ----


def _date_time(date: str) -> str:
    """A date as an RFC 3339 date-time with the capitals that Atom requires.

    See RFC 4287 section 3.3.
    """
    if len(date) == len("YYYY-MM-DD"):
        return f"{date}T00:00:00Z"
    return date.upper()


def _modified(review: Object) -> str:
    """The latest of a review's dates, of change and reply included, as a date-time."""
    dates = [review["date"]]
    if review["updated"]:
        dates.append(review["updated"])
    reply = review["owner_reply"]
    if reply and reply.get("date"):
        dates.append(reply["date"])
    return max(map(_date_time, dates), key=_instant)


def _instant(date_time: str) -> tuple[timedelta, str]:
    """A sort key of date-times: the time in seconds, then the digits of the fraction.

    A leap second is equal to the second before it.
    """
    # RFC 3339 has leap seconds, and fractions of any number of digits; `datetime` has
    # microseconds and no leap second.
    second = date_time[17:19]
    rest = date_time[19:]
    offset = rest.lstrip(".0123456789")
    fraction = rest.removesuffix(offset)
    moment = datetime.fromisoformat(date_time[:17] + min(second, "59") + offset)
    # timestamp() would fail in the years 1 and 9999, where an offset can leave the
    # calendar.
    local_time = moment.replace(tzinfo=None) - datetime.min
    return local_time - (moment.utcoffset() or timedelta()), fraction
