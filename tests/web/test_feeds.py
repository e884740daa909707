"""Both feeds have the newest reviews as JSON Feed 1.1 and RFC 4287 require, whatever customers wrote.

`feed_rules.py` has the demands of the two specifications, one by one; whole feeds are in `test_snapshots.py`.

Content - Any text - Ids and addresses - Dates - Readers
"""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date

import feedparser
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lab.feed_rules import ATOM, instant
from lab.small_files import (
    OKAFOR,
    URLS,
    WHEN_EMPTY,
    Object,
    a_file,
    check_served,
    loaded,
    review,
    served,
)

from reviewslib.dataset.reviews import Dataset
from reviewslib.links import ServiceUrls, service_urls
from reviewslib.web import feeds


def json_feed(dataset: Dataset, urls: ServiceUrls = URLS) -> Object:
    return json.loads(feeds.json_feed(dataset, urls))


def atom_root(dataset: Dataset, urls: ServiceUrls = URLS) -> ET.Element:
    return ET.fromstring(feeds.atom_feed(dataset, urls, WHEN_EMPTY))


def entry_texts(dataset: Dataset, name: str) -> list[str]:
    """The texts of the children of this name in all entries."""
    return [
        entry.findtext(f"{ATOM}{name}", "")
        for entry in atom_root(dataset).iter(f"{ATOM}entry")
    ]


# ---- Content ----


@pytest.mark.parametrize(
    ("count", "said"), [(49, "All"), (50, "The 50 newest"), (120, "The 50 newest")]
)
def test_feeds_hold_the_fifty_newest_and_say_so(count: int, said: str) -> None:
    days = [date.fromordinal(730000 + (n * 37) % 120).isoformat() for n in range(count)]
    dataset = loaded(a_file(*(review(f"r{n}", date=day) for n, day in enumerate(days))))
    newest = [one["id"] for one in served(dataset)[:50]]
    feed = json_feed(dataset)
    assert [item["id"] for item in feed["items"]] == newest
    assert entry_texts(dataset, "id") == [
        f"tag:r.example,2026:review/{identifier}" for identifier in newest
    ]
    assert feed["description"] == f"{said} customer reviews of Larkspur."


@pytest.mark.parametrize(
    ("rating", "stars"), [(1.0, "1 star"), (1.5, "1.5 stars"), (5.0, "5 stars")]
)
def test_a_title_counts_stars_as_people_do(rating: float, stars: str) -> None:
    dataset = loaded(a_file(review(rating=rating)))
    (item,) = json_feed(dataset)["items"]
    assert item["title"] == f"{stars} from Ann B." == entry_texts(dataset, "title")[0]
    assert item["content_text"] == f"{stars}, without words."


# ---- Any text ----

HOSTILE = [
    *(
        "]]>",
        "<script>alert(1)</script>",
        "&amp;",
        "&#0;",
        "&nbsp;",
        "<!--",
        "<![CDATA[x]]>",
        "<?php",
        "'\"",
    ),
    *(
        "line\nline",
        "a\r\nb\rc",
        "\ttab",
        "  blanks  ",
        "\u2028\u0085\x7f",
        "😀\u200d𝄞",
        "\u202eabc",
    ),
]
FORBIDDEN = [
    *map(chr, range(9)),
    "\x0b",
    "\x0c",
    *map(chr, range(0x0E, 0x20)),
    "\ufffe",
    "\uffff",
]


def in_xml(text: str) -> str:
    """`text` as a reader of XML gets it (XML 1.0, sections 2.2 and 2.11)."""
    return (
        "".join(one for one in text if one not in FORBIDDEN)
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )


@pytest.mark.slow
@settings(max_examples=200)
@given(st.text(max_size=20))
@example("".join(HOSTILE))
@example("".join(FORBIDDEN) + "\r\x00\n")
def test_any_text_is_carried_by_both_feeds(text: str) -> None:
    author = f"x{text}"
    content = f"{text}x"
    one = review(
        author=author,
        text=content,
        owner_reply={"text": text},
        mentioned_technicians=[text, text],
    )
    dataset = loaded(a_file(one, business={"name": author}))
    check_served(dataset)
    (item,), root = json_feed(dataset)["items"], atom_root(dataset)
    assert (item["content_text"], item["authors"], item["tags"]) == (
        content,
        [{"name": author}],
        [text],
    )
    assert root.findtext(f"{ATOM}title") == in_xml(f"Reviews of {author}")
    assert root.findtext(f".//{ATOM}name") == in_xml(author)
    assert root.findtext(f".//{ATOM}content") == in_xml(
        f"{content}\n\nReply from the owner: {text}"
    )
    assert [one.get("term") for one in root.iter(f"{ATOM}category")] == [in_xml(text)]


# ---- Ids and addresses ----


def test_ids_with_blanks_slashes_and_letters_of_all_alphabets_become_tags() -> None:
    dataset = loaded(a_file(review("a b/c?é#%41~")))
    assert entry_texts(dataset, "id") == [
        "tag:r.example,2026:review/a%20b%2Fc%3F%C3%A9%23%2541~"
    ]


@pytest.mark.parametrize(
    ("base_url", "authority"),
    [
        ("https://R.Example:8443/path", "r.example"),
        ("http://127.0.0.1:8080", "127.0.0.1"),
        ("http://[2001:db8::1]:8080", "localhost"),
        ("https://größe.example", "localhost"),
    ],
)
def test_ids_name_the_host_of_the_service_not_of_the_business(
    base_url: str, authority: str
) -> None:
    business = {"name": "x", "url": "https://larkspur.example"}
    root = atom_root(loaded(a_file(business=business)), service_urls(base_url))
    assert root.findtext(f"{ATOM}id") == f"tag:{authority},2026:reviews"
    assert root.find(f"{ATOM}link[@rel='alternate']").get("href") == business["url"]


def test_feeds_name_no_hub_that_is_turned_off() -> None:
    dataset = loaded(a_file())
    without_hub = replace(URLS, hub="")
    assert "hubs" not in json_feed(dataset, without_hub)
    relations = [
        link.get("rel")
        for link in atom_root(dataset, without_hub).findall(f"{ATOM}link")
    ]
    assert relations == ["self", "alternate"]


# ---- Dates ----

SAME_DAY_OR_NEAR = [  # the earlier one first
    ("2025-03-01", "2025-03-01T00:00:00.5Z"),
    ("2025-03-01T23:00:00+02:00", "2025-03-01T22:00:00Z"),
    ("2025-03-01T00:00:00Z", "2025-02-28T23:00:00-02:00"),
    ("2016-12-31T23:59:60Z", "2017-01-01T00:00:01Z"),
    ("2016-12-31t23:59:58z", "2016-12-31t23:59:60.50z"),
    ("2025-03-01T00:00:00.5Z", "2025-03-01T00:00:00.5000001Z"),
    ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:58"),
    ("9999-12-31T23:59:59-23:58", "9999-12-31T23:59:59-23:59"),
]


@pytest.mark.parametrize(
    ("date", "reply_date"),
    SAME_DAY_OR_NEAR + [(later, earlier) for earlier, later in SAME_DAY_OR_NEAR],
)
def test_updated_is_the_later_instant_of_review_and_reply(
    date: str, reply_date: str
) -> None:
    dataset = loaded(
        a_file(review(date=date, owner_reply={"text": "x", "date": reply_date}))
    )
    check_served(dataset)
    (item,), root = json_feed(dataset)["items"], atom_root(dataset)
    published, replied = (
        (day if len(day) > 10 else f"{day}T00:00:00Z").upper()
        for day in (date, reply_date)
    )
    assert item["date_published"] == published == root.findtext(f".//{ATOM}published")
    assert item["date_modified"] == max(published, replied, key=instant)
    assert {item["date_modified"]} == {
        updated.text for updated in root.iter(f"{ATOM}updated")
    }


def test_the_feed_is_as_new_as_its_newest_entry() -> None:
    days = ("2025-06-03", "2025-06-04T23:00:00Z", "2025-06-05T00:30:00+02:00")
    dataset = loaded(
        a_file(*(review(day, owner_reply={"text": "x", "date": day}) for day in days))
    )
    assert atom_root(dataset).findtext(f"{ATOM}updated") == "2025-06-04T23:00:00Z"


# ---- Readers ----


def test_feedparser_reads_the_atom_feed() -> None:
    dataset = loaded(
        a_file(
            *(
                review(text, text=text, mentioned_technicians=[OKAFOR])
                for text in HOSTILE[:9]
            )
        )
    )
    feed = feedparser.parse(
        feeds.atom_feed(dataset, URLS, WHEN_EMPTY), sanitize_html=False
    )
    assert (feed.bozo, feed.version, feed.feed.title) == (
        False,
        "atom10",
        "Reviews of Larkspur",
    )
    assert {link.rel: link.href for link in feed.feed.links}["hub"] == URLS.hub
    for entry, item in zip(feed.entries, json_feed(dataset)["items"], strict=True):
        assert (entry.title, entry.link, entry.author) == (
            item["title"],
            item["url"],
            "Ann B.",
        )
        assert (entry.published, entry.updated) == (
            item["date_published"],
            item["date_modified"],
        )
        assert (entry.content[0].value, entry.content[0].type) == (
            item["content_text"],
            "text/plain",
        )
        assert [tag.term for tag in entry.tags] == item["tags"] == [OKAFOR]
