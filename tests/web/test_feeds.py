"""Both feeds have the newest reviews as their specifications ask, whatever the text.

`feed_rules.py` has the demands of JSON Feed 1.1 and RFC 4287, one by one; whole feeds
are in `test_snapshots.py`.

Sections: content - any text - ids and addresses - dates - readers.
"""

import json
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import feedparser
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lab.feed_rules import ATOM, instant
from lab.page_samples import TEMPLATES
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
from lab.tools import program

from reviewslib.dataset.reviews import Dataset
from reviewslib.links import ServiceUrls, service_urls
from reviewslib.web import feeds
from reviewslib.web.site import site_of


def json_feed(dataset: Dataset, urls: ServiceUrls = URLS) -> Object:
    return json.loads(feeds.json_feed(site_of(TEMPLATES, dataset, urls)))


def atom_root(dataset: Dataset, urls: ServiceUrls = URLS) -> ET.Element:
    return ET.fromstring(atom_feed(dataset, urls))


def atom_feed(dataset: Dataset, urls: ServiceUrls = URLS) -> bytes:
    return feeds.atom_feed(site_of(TEMPLATES, dataset, urls), WHEN_EMPTY)


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
    allowed = "".join(one for one in text if one not in FORBIDDEN)
    return allowed.replace("\r\n", "\n").replace("\r", "\n")


class BreaksAndText(HTMLParser):
    """What a reader shows of HTML that has no markup but line breaks."""

    def __init__(self, content: str):
        super().__init__()
        self.shown = ""
        self.tags: set[str] = set()
        self.feed(content)
        self.close()

    def handle_data(self, data: str) -> None:
        self.shown += data

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.shown += "\n"

    def handle_comment(self, data: str) -> None:
        self.tags.add("!--")


def of_any_text(claim: Any) -> Any:
    """A claim that holds for every text of a customer."""
    claim = example("".join(HOSTILE))(claim)
    claim = example("".join(FORBIDDEN) + "\r\x00\n")(claim)
    claim = given(st.text(max_size=20))(claim)
    return pytest.mark.slow(settings(max_examples=200)(claim))


def dataset_saying(text: str) -> Dataset:
    """One review with the text in each of its fields."""
    one = review(
        author=f"x{text}",
        text=f"{text}x",
        owner_reply={"text": text},
        mentioned_technicians=[text, text],
    )
    return loaded(a_file(one, business={"name": f"x{text}"}))


@of_any_text
def test_both_feeds_are_valid_whatever_the_text(text: str) -> None:
    dataset = dataset_saying(text)

    check_served(dataset)


@of_any_text
def test_json_feed_carries_any_text_as_it_was_written(text: str) -> None:
    dataset = dataset_saying(text)

    (item,) = json_feed(dataset)["items"]

    assert item["content_text"] == f"{text}x\n\nReply from the owner: {text}"
    assert item["authors"] == [{"name": f"x{text}"}]
    assert item["tags"] == [text]


@of_any_text
def test_atom_carries_names_as_xml_allows(text: str) -> None:
    dataset = dataset_saying(text)

    root = atom_root(dataset)

    assert root.findtext(f"{ATOM}title") == in_xml(f"Reviews of x{text}")
    assert root.findtext(f".//{ATOM}name") == in_xml(f"x{text}")
    terms = [one.get("term") for one in root.iter(f"{ATOM}category")]
    assert terms == [in_xml(text)]


@of_any_text
def test_the_content_of_atom_is_html_that_shows_any_text_without_its_markup(
    text: str,
) -> None:
    dataset = dataset_saying(text)

    content = atom_root(dataset).find(f".//{ATOM}content")

    html = BreaksAndText(content.text)
    assert content.get("type") == "html"
    assert html.shown == in_xml(f"{text}x\n\nReply from the owner: {text}")
    assert html.tags == {"br"}


def test_a_review_without_a_reply_has_its_words_alone() -> None:
    dataset = loaded(a_file(review(text="good")))

    (item,) = json_feed(dataset)["items"]

    assert item["content_text"] == "good"
    assert entry_texts(dataset, "content") == ["good"]


# ---- Ids and addresses ----


def test_ids_with_blanks_slashes_and_letters_of_all_alphabets_become_tags() -> None:
    dataset = loaded(a_file(review("a b/c?é#%41~")))

    ids = entry_texts(dataset, "id")

    assert ids == ["tag:r.example,2026:review/a%20b%2Fc%3F%C3%A9%23%2541~"]


@pytest.mark.parametrize(
    ("base_url", "authority"),
    [
        pytest.param("https://R.Example:8443/path", "r.example", id="a name"),
        pytest.param("http://127.0.0.1:8080", "127.0.0.1", id="an address"),
        pytest.param("http://[2001:db8::1]:8080", "localhost", id="no authority"),
        pytest.param("https://größe.example", "localhost", id="letters of no tag"),
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

    links = atom_root(dataset, without_hub).findall(f"{ATOM}link")

    assert [link.get("rel") for link in links] == ["self", "alternate"]
    assert "hubs" not in json_feed(dataset, without_hub)


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
    reply = {"text": "x", "date": reply_date}
    dataset = loaded(a_file(review(date=date, owner_reply=reply)))
    published = in_feeds(date)
    latest = max(published, in_feeds(reply_date), key=instant)

    check_served(dataset)

    (item,) = json_feed(dataset)["items"]
    assert item["date_published"] == published
    assert item["date_modified"] == latest
    atom = atom_root(dataset)
    assert atom.findtext(f".//{ATOM}published") == published
    assert {updated.text for updated in atom.iter(f"{ATOM}updated")} == {latest}


def in_feeds(date: str) -> str:
    """A date or a date-time as RFC 4287 wants it."""
    if len(date) == len("YYYY-MM-DD"):
        return f"{date}T00:00:00Z"
    return date.upper()


def test_a_change_of_the_review_is_a_change_of_its_entry() -> None:
    changed = "2025-07-01T10:00:00Z"
    reply = {"text": "x", "date": "2025-06-04"}

    dataset = loaded(
        a_file(review(date="2025-06-03", updated=changed, owner_reply=reply))
    )

    (item,) = json_feed(dataset)["items"]
    assert item["date_modified"] == changed
    assert atom_root(dataset).findtext(f"{ATOM}updated") == changed


def test_the_feed_is_as_new_as_its_newest_entry() -> None:
    answered = []
    for day in ("2025-06-03", "2025-06-04T23:00:00Z", "2025-06-05T00:30:00+02:00"):
        answered.append(review(day, owner_reply={"text": "x", "date": day}))

    feed = atom_root(loaded(a_file(*answered)))

    assert feed.findtext(f"{ATOM}updated") == "2025-06-04T23:00:00Z"


# ---- Readers ----


# What two readers lost of `type="text"`: all words between "<3" and the next ">".
LOVED = "I <3 this place, and the staff > others"
READ = ["<b>bold</b> & <script>alert(1)</script> &amp; end", LOVED, *HOSTILE[:8]]


def dataset_of_texts(texts: list[str]) -> Dataset:
    """A review of each text."""
    entries = []
    for number, text in enumerate(texts):
        entries.append(review(f"{number}", text=text, mentioned_technicians=[OKAFOR]))
    return loaded(a_file(*entries))


def test_feedparser_finds_nothing_wrong_with_the_atom_feed() -> None:
    dataset = dataset_of_texts(READ)

    feed = feedparser.parse(atom_feed(dataset))

    assert not feed.bozo
    assert feed.version == "atom10"
    assert feed.feed.title == "Reviews of Larkspur"
    assert {link.rel: link.href for link in feed.feed.links}["hub"] == URLS.hub


def test_feedparser_reads_the_same_in_atom_as_json_feed_has() -> None:
    dataset = dataset_of_texts(READ)
    items = json_feed(dataset)["items"]

    entries = feedparser.parse(atom_feed(dataset)).entries

    for entry, item in zip(entries, items, strict=True):
        assert entry.title == item["title"]
        assert entry.link == item["url"]
        assert entry.author == "Ann B."
        assert entry.published == item["date_published"]
        assert entry.updated == item["date_modified"]
        assert [tag.term for tag in entry.tags] == item["tags"] == [OKAFOR]


def test_feedparser_which_removes_markup_loses_no_word() -> None:
    dataset = dataset_of_texts(READ)
    items = json_feed(dataset)["items"]

    entries = feedparser.parse(atom_feed(dataset)).entries

    contents = [entry.content[0] for entry in entries]
    assert {content.type for content in contents} == {"text/html"}
    shown = [BreaksAndText(content.value).shown for content in contents]
    assert shown == [item["content_text"] for item in items]


SAVING = 'run-on-startup open ; open ; save "{}" ; hard-quit'


@pytest.mark.slow
@pytest.mark.parametrize("text", [LOVED, READ[0]], ids=["love", "markup"])
def test_newsboat_shows_every_word(tmp_path: Path, text: str) -> None:
    dataset = dataset_of_texts([text])
    (tmp_path / "feed.xml").write_bytes(atom_feed(dataset))
    (tmp_path / "urls").write_text(f"file://{tmp_path}/feed.xml\n")
    (tmp_path / "config").write_text(SAVING.format(tmp_path / "article"))
    files = ["-u", tmp_path / "urls", "-c", tmp_path / "cache", "-C"]
    newsboat = [program("newsboat"), *map(str, files)]
    subprocess.run([*newsboat, "/dev/null", "-x", "reload"], check=True, timeout=60)

    # It saves what it shows, on a terminal of its own.
    command = " ".join([*newsboat, str(tmp_path / "config")])
    screen = [program("script"), "--quiet", "--command", command, "/dev/null"]
    subprocess.run(screen, check=True, timeout=60, capture_output=True, input=b"")

    assert text in (tmp_path / "article").read_text()
