"""Pages and texts for models: text of the data never becomes markup, and every figure is from the data.

What they look like is in `test_snapshots.py` and `test_browser.py`; here is what holds for any data.

Reading - Text of the data - Values - Figures - Structure - Pages of reviews - Texts for programs
"""

import base64
import hashlib
import html
import json
import re
import shlex
import shutil
import xml.etree.ElementTree as ET
from dataclasses import asdict, replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jinja2
import pytest
from data_sets import DATA_SETS
from hypothesis import example, given
from hypothesis import strategies as st
from page_samples import (
    ATTACKS,
    CONTRACT,
    FIGURES,
    TEMPLATES,
    TEMPLATES_DIRECTORY,
    URLS,
    dataset_of,
    files_saying,
)
from small_files import a_file, review

from reviewslib.dataset.query import BadQuery, Query, query_of_page
from reviewslib.dataset.reviews import Dataset, in_any_order
from reviewslib.dataset.text import loose_words
from reviewslib.links import service_urls
from reviewslib.web import embed, feeds, pages

REVIEWS_FILE, INSIGHTS_FILE = DATA_SETS["sample"]()
SAMPLE = dataset_of(REVIEWS_FILE, INSIGHTS_FILE)

# ---- Reading: pages as strings, and what a strict reader finds in them ----


class Read(HTMLParser):
    """A page parsed strictly: each element must be closed in the right place."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []  # tag and attributes
        self.open_tags: list[str] = []
        self.texts: list[tuple[str, str]] = []  # the tag around it, and a text
        self.feed(page)
        self.close()
        assert self.open_tags == []
        shown = (text for tag, text in self.texts if tag not in ("script", "style", "title"))
        self.text = " ".join("".join(shown).split())  # what a visitor sees, on one line
        self.shapes = {(tag, *sorted(attributes)) for tag, attributes in self.elements}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), tag
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "link", "br", "wbr", "input", "img", "base"):
            self.open_tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open_tags[-1] if self.open_tags else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, *tags: str) -> list[dict[str, str]]:
        """The attributes of every element with one of these tags."""
        return [attributes for tag, attributes in self.elements if tag in tags]

    def raw(self, tag: str) -> str:
        """The texts of all elements with this tag."""
        return "".join(text for around, text in self.texts if around == tag)


def home_page(dataset: Dataset) -> str:
    return pages.html_page(TEMPLATES, dataset, URLS).decode()


def llms(dataset: Dataset) -> str:
    return pages.llms_text(TEMPLATES, dataset, URLS).decode()


def list_page(dataset: Dataset, **filters: Any) -> str:
    """The first page of the reviews that pass these filters."""
    query = Query(limit=pages.PAGE_SIZE, **filters)
    return pages.list_page(TEMPLATES, dataset, URLS, query, in_any_order(dataset, query)).decode()


def invalid_list_page(dataset: Dataset, **values: str) -> str:
    """The form, filled in with these values, which are wrong."""
    with pytest.raises(BadQuery) as refusal:
        query_of_page(CONTRACT.list_parameters, list(values.items()), pages.PAGE_SIZE)
    return pages.invalid_list_page(TEMPLATES, dataset, URLS, list(values.items()), refusal.value).decode()


def review_page(dataset: Dataset) -> str:
    return pages.review_page(TEMPLATES, dataset, URLS, dataset.reviews[0]).decode()


def every_page(dataset: Dataset, text: str) -> list[str]:
    """Every kind of page, the home page first, with `text` in the form."""
    beyond = pages.BeyondLastPage(Query(query=text, source=text), 2)
    frame = {"limit": 10, "theme": "auto", "mentions_service": None, "mentions_technician": None}
    return [
        home_page(dataset),
        list_page(dataset),
        list_page(dataset, query=text, mentions_technician=text, mentions_service=text),
        invalid_list_page(dataset, rating="x" + text, query=text, until=text + "x", min_rating="y" + text),
        review_page(dataset),
        pages.beyond_page(TEMPLATES, dataset, URLS, beyond).decode(),
        embed.frame(TEMPLATES, dataset, URLS, **frame).decode(),
    ]


def count_at(dataset: Dataset, query_string: str) -> Any:
    """The number of reviews in the list at an address that a page has, by its query string."""
    pairs = parse_qsl(html.unescape(query_string))
    query = query_of_page(CONTRACT.list_parameters, pairs, pages.PAGE_SIZE)
    return in_any_order(dataset, query).frame["matched"]


# ---- Text of the data ----

TAME = [SAMPLE, *(dataset_of(*files_saying(text)) for text in ("word", "ann@word.example", "555"))]
TAME_PAGES = [every_page(dataset, text) for dataset in TAME for text in ("word", "zzz", "a b")]
HARMLESS = [set().union(*(Read(page).shapes for page in kind)) for kind in zip(*TAME_PAGES, strict=True)]
hostile_text = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(st.sampled_from("<>&\"'`/=!-{}%#$\\]; \n\u202e\u2066\ufffeabon"), max_size=60),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
).map(lambda text: "n" + text)
ALL_AT_ONCE = "n" + ATTACKS[1] + ATTACKS[4] + ATTACKS[11]


@pytest.mark.slow
@given(hostile_text)
@example(ALL_AT_ONCE)
def test_no_text_becomes_markup_on_any_page(text: str) -> None:
    documents = every_page(dataset_of(*files_saying(text)), text)
    for document, harmless in zip(documents, HARMLESS, strict=True):
        found = Read(document)
        assert found.shapes <= harmless
        assert (len(found.all("style")), len(found.all("script"))) == (1, document is documents[0])
        assert not pages.FORBIDDEN.search(re.sub("<script.*?</script>", "", document))


@pytest.mark.slow
@given(hostile_text)
@example(ALL_AT_ONCE)
def test_every_text_is_shown_as_it_was_written(text: str) -> None:
    document = home_page(dataset_of(*files_saying(text)))
    script = Read(document).raw("script")
    assert not set("<>&") & set(script)
    data = json.loads(script)
    assert (data["name"], data["description"]) == (pages.one_line(text), pages.paragraphs(text))
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", data["name"]), "it would reverse a sentence"
    for name in ("customer-words", "description"):
        (shown,) = re.findall(f'<p class="{name}" dir="auto">([^<]*)</p>', document)
        assert html.unescape(shown) == pages.FORBIDDEN.sub("", pages.paragraphs(text))


def curl_lines(text: str) -> list[str]:
    """The commands in llms.txt."""
    return re.findall("`(curl .*)`$", text, re.MULTILINE)


@given(hostile_text)
@example(ALL_AT_ONCE)
def test_no_text_breaks_out_of_its_line_in_llms_txt(text: str) -> None:
    hostile, tame = llms(dataset_of(*files_saying(text))), llms(TAME[1])
    beginnings = "(?m)^(?:## [A-Z][a-z ]*|[#>-].)?"
    assert set(re.findall(beginnings, hostile)) == set(re.findall(beginnings, tame))
    assert curl_lines(hostile) == curl_lines(tame)
    assert re.fullmatch("[a-z0-9-]+", pages.slug(text))


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [("Back pain? My back!", "BACK", "<mark>Back</mark> pain? My <mark>back</mark>!"),
     (" a<b\r\n& a<b\0", "<B", "a<mark>&lt;b</mark>\n&amp; a<mark>&lt;b</mark>"),
     ("1+1 (one) a.b axb", "(ONE) A.B", "1+1 <mark>(one)</mark> <mark>a.b</mark> axb"),
     ("ΟΔΟΣ όδός", "οδος", "<mark>ΟΔΟΣ</mark> <mark>όδός</mark>"), ("消え", "消", "<mark>消</mark>え"),
     ("banana b", "ana B", "<mark>banana</mark> <mark>b</mark>"), ("aß", "SS", "a<mark>ß</mark>"),
     ("İlk ılk", "ilk", "<mark>İlk</mark> <mark>ılk</mark>"),
     ("o\u0308 döner, do\u0308ner", "doner", "o\u0308 <mark>döner</mark>, <mark>do\u0308ner</mark>"),
     ("it’s it's", "it's", "<mark>it’s</mark> <mark>it&#39;s</mark>"),
     ("aaaa b aa", "aa", "<mark>aaaa</mark> b <mark>aa</mark>"), ("None", "", "None"), ("aa", "b", "aa"),
     ("x" * 101, "x" * 100, f"<mark>{'x' * 101}</mark>"), ("x" * 101, "x" * 101, "x" * 101),
     ("find me " + "x" * 2000, "find", f"<mark>find</mark> me {'x' * 991}…"),
     ("y" * 995 + "find" + "z" * 9, "find", f"{'y' * 995}<mark>find</mark>…"),
     ("y" * 996 + "find", "find", f"{'y' * 996}<mark>find</mark>"),
     ("y" * 997 + "find", "find", f"…{'y' * 250}<mark>find</mark>"),
     ("go " + "y" * 995 + "gogo", "go", f"<mark>go</mark> {'y' * 995}<mark>g</mark>…"),
     ("y" * 996 + "find me", "no find", f"…{'y' * 250}<mark>find</mark> me"),
     ("a " + "y" * 2000 + " find a", "find a", f"<mark>a</mark> {'y' * 997}…"),
     ("y" * 2000 + " z find me", "find", "…z <mark>find</mark> me")],
)  # fmt: skip
def test_words_are_marked_and_long_texts_are_cut_around_them(text: str, query: str, shown: str) -> None:
    assert pages.marked(text, loose_words(query)) == shown


# ---- Values ----


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [("one_line", (" a\0\u202eb\r\nc\rd\n ",), "a b c d"), ("one_line", (None,), ""),
     ("one_line", ("x" * 80,), "x" * 80), ("one_line", ("x" * 81,), "x" * 79 + "…"),
     ("one_line", ("ab cd", 4), "ab…"), ("one_line", ("one two three", 10), "one two…"),
     ("one_line", ("one two three", 8), "one two…"), ("one_line", ("one two", 6), "one…"),
     ("one_line", ("one " + "x" * 40, 36), f"one {'x' * 31}…"), ("one_line", ("one " + "x" * 40, 35), "one…"),
     ("paragraphs", (" a\0\u202eb\r\nc\rd\n ",), "a\0\u202eb\nc\nd"),
     ("paragraphs", ("x" * 1000,), "x" * 1000), ("paragraphs", ("x" * 1001,), "x" * 999 + "…"),
     ("markdown", ("\\`*_[]<>#|a",), r"\\\`\*\_\[\]\<\>\#\|a"),
     ("slug", ("ab " + "C" * 31 + " d",), "c" * 31 + "-reviews"), ("slug", ("É!",), "reviews"),
     ("format_rating", (4.486,), "4.49"), ("format_rating", (4.5,), "4.5"), ("format_rating", (5.0,), "5"),
     ("count_text", (1204,), "1,204"), ("count_text", (None, "review"), "0 reviews"),
     ("count_text", (1, "review"), "1 review"), ("count_text", (10**10, "review"), "1,000,000,000 reviews"),
     ("mail_address", ("a.b+c-d@e-f.g",), "a.b+c-d@e-f.g"), ("mail_address", ("a@b@c",), ""),
     ("mail_address", ("a@" + "b" * 198,), "a@" + "b" * 198), ("mail_address", ("a@" + "b" * 199,), ""),
     ("web_url", ("https://a/".ljust(500, "x"),), "https://a/".ljust(500, "x")),
     ("web_url", ("https://a/".ljust(501, "x"),), ""), ("web_url", ("javascript:alert(1)",), ""),
     ("web_url", ("//other.example",), ""), ("web_url", ("https://a b",), ""), ("web_url", (None,), ""),
     ("web_url", (7,), ""), ("day_span", (["Sunday"],), "Sunday"),
     ("day_span", (["Monday", "Tuesday", "Wednesday"],), "Monday to Wednesday"),
     ("day_span", (["Friday", "Saturday"],), "Friday, Saturday"),
     ("day_span", (["Monday", "Wednesday", "Friday"],), "Monday, Wednesday, Friday"),
     ("day_span", (["Sunday", "Monday", "Tuesday"],), "Sunday, Monday, Tuesday")],
)  # fmt: skip
def test_a_value_is_shown_briefly_and_without_harm(name: str, arguments: Any, shown: str) -> None:
    assert getattr(pages, name)(*arguments) == shown


def test_a_name_that_a_template_does_not_know_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        TEMPLATES.from_string("{{ unknown }}").render()


def test_templates_are_read_at_load_and_never_again(tmp_path: Path) -> None:
    copy = shutil.copytree(TEMPLATES_DIRECTORY, tmp_path / "templates")
    loaded = pages.load_templates(copy)
    shutil.rmtree(copy)
    assert pages.html_page(loaded, SAMPLE, URLS).decode() == home_page(SAMPLE)


# ---- Figures ----


def huge_dataset() -> Dataset:
    """More and longer entries of every kind than a page has room for."""
    huge = "x" * 4000
    names = {"mentioned_services": [f"{huge[:800]}{n}" for n in range(70)]}
    names["mentioned_technicians"] = [f"P{n}" for n in range(70)]
    reviews = [review(f"{n}", author=huge, text=huge, **names) for n in range(30)]
    business = {"name": huge, "description": huge, "service_areas": ["Upton"] * 500}
    business["hours"] = [{"days": ["Monday"], "opens": "08:00", "closes": "18:00"}] * 20
    insights = INSIGHTS_FILE | {kind: INSIGHTS_FILE[kind] * 30 for kind in ("aspects", "topics")}
    insights |= {"entities": {kind: found * 30 for kind, found in INSIGHTS_FILE["entities"].items()}}
    insights |= {"faq": [{"question": huge, "answer": huge, "review_ids": []}] * 100}
    return dataset_of(a_file(*reviews, business=business), insights)


def test_pages_stay_small_whatever_the_files_hold() -> None:
    document, listed = home_page(huge_dataset()), list_page(huge_dataset())
    assert max(map(len, (document, listed, home_page(SAMPLE)))) < 110_000
    assert len(llms(SAMPLE).encode()) <= 12 * 1024
    people = listed.partition('id="mentions_technician"')[2].partition("</select>")[0]
    assert people.count("<option") == 1 + 60
    limits = {"08:00": 14, "Upton": 12, " positive, ": 11, '"details"': 16, 'scope="row"': 32, "<article": 12}
    shown = document.partition("<body>")[2]
    assert {text: shown.count(text) for text in limits} == limits
    data = json.loads(Read(document).raw("script"))
    assert (len(data["areaServed"]), len(data["openingHoursSpecification"])) == (12, 14)


COUNTED = re.compile(  # a bar of stars, a year, a row of people or services: the address, and the count
    r'(?s)<a href="[^"]*/reviews\?([^"#]*)#results">(?:(?!<a ).)*?'
    r"(?:<span>([\d,]+)</span></a>|<small>([\d,]+) reviews?</small>"
    r"|</th>\s*<td>[\d.–]+</td>\s*<td>([\d,]+)</td>)"
)


@pytest.mark.parametrize(("name", "least"), [("sample", 23), ("german", 20), ("bare", 5)])
def test_every_count_links_to_a_list_of_so_many_reviews(name: str, least: int) -> None:
    dataset = dataset_of(*DATA_SETS[name]())
    links = COUNTED.findall(home_page(dataset))
    assert len(links) >= least
    for query_string, *counts in links:
        assert count_at(dataset, query_string) == int("".join(counts).replace(",", "")), query_string


@pytest.mark.parametrize(("limit", "ids"), [(5, "dcea"), (2, "dc")])
def test_what_is_mentioned_most_comes_first(limit: int, ids: str) -> None:
    counts = {"a": None, "b": 0, "c": 5, "d": 10**10, "e": 5}
    entries = [{"id": id, "mention_count": count} for id, count in counts.items()]
    assert "".join(entry["id"] for entry in pages.by_mentions(entries, limit)) == ids


def test_aspects_that_nobody_judges_have_empty_bars_and_a_scale() -> None:
    counts = dict.fromkeys(("mention_count", "positive_count", "neutral_count", "negative_count"))
    assert [(aspect["bar"], aspect["width"]) for aspect in pages.aspects([counts])] == [
        ([("fault", 0, 0), ("praise", 0, 0), ("neutral", 0, 0)], 1)
    ]
    assert pages.aspects([]) == []


def months(*figures: tuple[str, float | None, int | None]) -> list[dict[str, Any]]:
    """The insights by month: the month, its average rating, its reviews."""
    return [{"month": month, "average_rating": rating, "review_count": n} for month, rating, n in figures]


FOUR_MONTHS = months(("2025-03", 4, None), ("2024-11", 3, 4), ("2025-01", 5, 4), ("2025-02", 4, 1))


def test_the_chart_has_a_dot_a_month_and_a_line_of_averages() -> None:
    assert pages.trend([*FOUR_MONTHS, *months(("2026-01", None, 9), ("2020-03", 1, 1))]) == {
        "levels": [(3, 1), (4, 0.5), (5, 0)],
        "januaries": [(2025, 0.5)],
        "dots": [(0, 1, 5), (0.5, 0, 5), (0.75, 0.5, 3.5), (1, 0.5, 3.5)],
        "line": [(0, 1), (0.5, 0.5), (0.75, 0.5), (1, 0.5)],
        "is_whole": False,
        "years": [(2020, 1, 1), (2024, 3, 4), (2025, 28 / 6, 6)],
        "before": None,
    }


@pytest.mark.parametrize(
    "monthly",
    [FOUR_MONTHS[1:], months(("2025-01", 5, 9), ("2025-02", 5, 9)), []],
    ids=["nine", "two", "none"],
)
def test_nine_reviews_or_two_months_have_no_chart(monthly: Any) -> None:
    assert pages.trend(monthly) == {}


def test_equal_ratings_and_a_repeated_month_make_a_chart() -> None:
    chart = pages.trend(months(("2025-01", 5, 4), ("2025-01", 5, 4), ("2025-02", 5, 4)))
    assert (chart["levels"], chart["januaries"]) == ([(4, 1), (5, 0)], [(2025, 0)])
    assert chart["dots"] == [(0, 0, 5), (0, 0, 5), (1, 0, 5)]


@pytest.mark.parametrize(
    ("category", "kind"),
    [("Chiropractor", "MedicalBusiness"), ("Eye clinic", "MedicalClinic"), ("Family dentist", "Dentist"),
     ("Veterinary", "VeterinaryCare"), ("Restaurant", "Restaurant"), ("Bakery", "Bakery"),
     ("Hair", "HairSalon"), ("Plumbing", "Plumber"), ("Electrician", "Electrician"),
     ("", "LocalBusiness"), ("Rehair", "LocalBusiness")],
)  # fmt: skip
def test_structured_data_name_the_kind_of_business(category: str, kind: str) -> None:
    assert pages.structured_data({"name": "x", "category": category}, URLS)["@type"] == kind


@pytest.mark.parametrize("length", [19, 20, 280, 281])
def test_the_first_screen_has_the_beginning_of_a_written_review(length: int) -> None:
    text = Read(home_page(dataset_of(a_file(review(text="w" * length))))).text
    assert ("The newest written review" in text) is (length >= 20)
    assert ("w" * length in text) is (length <= 280)


# ---- Structure: what holds for every page ----

STORED = sorted(Path(__file__).with_name("snapshots").glob("*/*.html"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_page_has_headings_in_order_labels_and_link_targets(path: Path) -> None:
    found = Read(path.read_text(encoding="utf-8"))
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == levels.count(1) == 1
    assert all(lower <= upper + 1 for upper, lower in pairwise(levels))
    drawings = [svg for svg in found.all("svg") if "class" in svg]
    assert all(svg.get("aria-hidden") == "true" or svg.get("aria-label") for svg in drawings)
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link in found.all("a") if link["href"].startswith("#")} <= set(ids)
    assert {label["for"] for label in found.all("label")} == {
        field["id"] for field in found.all("input", "select")
    }
    assert found.raw("title")
    assert [meta.get("name") for meta in found.all("meta")].count("description") == 1


def style_hash(page: str) -> str:
    digest = hashlib.sha256(Read(page).raw("style").encode()).digest()
    return base64.b64encode(digest).decode()


REFERRER = {"Referrer-Policy": "strict-origin-when-cross-origin"}


@pytest.mark.parametrize(
    ("kind", "headers", "scope", "others"),
    [(0, pages.page_headers, "form-action 'self'; frame-ancestors 'none'",
      {"Cross-Origin-Opener-Policy": "same-origin"}),
     (-1, embed.frame_headers, "form-action 'none'; frame-ancestors *",
      {"Cross-Origin-Resource-Policy": "cross-origin"})],
    ids=["page", "frame"],
)  # fmt: skip
def test_a_policy_allows_the_style_of_its_page_and_no_script(
    kind: int, headers: Any, scope: str, others: dict[str, str]
) -> None:
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_hash(TAME_PAGES[0][kind])}'; img-src 'self';"
        f" connect-src 'self'; base-uri 'none'; {scope}; require-trusted-types-for 'script'"
    )
    assert dict(headers(TEMPLATES)) == {"Content-Security-Policy": policy} | REFERRER | others


@pytest.mark.parametrize("name", ["style", "embed_style"])
def test_a_style_sheet_loads_nothing_and_moves_nothing(name: str) -> None:
    assert not re.search(r"url\(|@import|@font-face|transition|animation", str(TEMPLATES.globals[name]))


def every_text(**business: str) -> list[str]:
    """The texts of all documents for people and models with another business in the sample."""
    dataset = dataset_of(REVIEWS_FILE | {"business": {"name": "Ann's"} | business}, INSIGHTS_FILE)
    missing = [
        pages.not_found_page(TEMPLATES, dataset, URLS, is_review).decode() for is_review in (True, False)
    ]
    feed = json.loads(feeds.json_feed(dataset, URLS))["description"]
    documents = [Read(document).text for document in [*every_page(dataset, "zzz"), *missing]]
    return [*documents, llms(dataset), feed]


def test_reviews_are_called_verified_only_with_a_review_policy() -> None:
    where = "published on google, facebook, yelp, healthgrades and larkspurhollow.example"
    for text in every_text():
        assert where in text.lower() and "customer reviews" in text.lower() and "verif" not in text.lower()
    *documents, feed = every_text(review_policy="We ask <everybody>.")  # a feed has no room for the policy
    for text in [*documents, feed]:
        assert where in text.lower() and "verified customer reviews" in text.lower()
    assert all("We ask" in text for text in documents)


# ---- Pages of reviews ----


def test_values_of_any_characters_stay_in_the_links_of_a_list() -> None:
    document = Read(list_page(SAMPLE, query="a&b=#\N{GREEK SMALL LETTER ALPHA}?", min_rating=4.0))
    (canonical,) = [link["href"] for link in document.all("link") if link["rel"] == "canonical"]
    assert canonical == URLS.review_list + "?query=a%26b%3D%23%CE%B1%3F&min_rating=4"


def test_bytes_that_are_not_utf_8_are_shown_as_replacements() -> None:
    assert 'value="\ufffd"' in invalid_list_page(SAMPLE, query="\udcff")


def test_the_form_offers_names_of_at_most_200_characters() -> None:
    names = {"mentioned_technicians": ["n" * 200, "m" * 201], "mentioned_services": ["no_label"]}
    form = list_page(dataset_of(a_file(review(**names))))
    assert re.findall('<option value="([^"]+)"', form)[-3:] == ["n" * 200, "no_label", "unknown"]
    assert re.search('<option value="no_label"[^>]*>no_label</option>', form)


def test_every_suggestion_of_an_empty_list_finds_its_count() -> None:
    document = list_page(SAMPLE, query="massage zzz neck neck \u0301", min_rating=4, since="2024-01-01")
    ways = re.findall(r'<li><a href="[^"]*\?([^"#]*)#results">(\d+) reviews?</a> (\w+)', document)
    assert [how for _, _, how in ways].count("with") == 2, (
        "a word is tried once, and a mark without a letter is no word"
    )
    assert all(count_at(SAMPLE, query_string) == int(count) > 0 for query_string, count, _ in ways)


def test_a_search_that_nothing_widens_has_no_suggestions() -> None:
    assert "Similar searches" not in list_page(SAMPLE, query="zzz yyy", source="nowhere")


@pytest.mark.parametrize(("query", "is_cut"), [("a b c d e f g h", False), ("a b c d e f g h zzz", True)])
def test_a_page_says_that_only_eight_words_are_searched(query: str, is_cut: bool) -> None:
    assert ("Only the first 8 words were searched for." in list_page(SAMPLE, query=query)) is is_cut


def test_the_page_of_a_review_has_all_of_it() -> None:
    long_review = review(text="Long. " * 1000, owner_reply={"text": "Thanks. " * 1000})
    text = Read(review_page(dataset_of(a_file(long_review)))).text
    assert "Long. " * 999 in text and "Thanks. " * 999 in text


def numbered(count: int) -> Dataset:
    """Reviews that say "good" and their number."""
    return dataset_of(a_file(*(review(id=f"{n}", text=f"good {n:02}") for n in range(count))))


def second_page(dataset: Dataset) -> str:
    query = Query(offset=pages.PAGE_SIZE, limit=pages.PAGE_SIZE)
    return pages.list_page(TEMPLATES, dataset, URLS, query, in_any_order(dataset, query)).decode()


RARE = FIGURES | {"id": "a", "label": "A*b", "average_rating": None}
UNRATED = dataset_of(a_file(review()), {"version": 1, "entities": {"services": [RARE]}})
ELSEWHERE = dataset_of(a_file(review(id="a", source="google"), review(id="b", source="unknown")))
MANY = pages.MAX_REVIEWS


@pytest.mark.parametrize(
    ("page", "text", "is_shown"),
    [
        (list_page(numbered(2), query="01"), "1 of 2 reviews matches", True),
        (list_page(numbered(2), query="good"), "2 of 2 reviews matches", False),
        (second_page(numbered(pages.PAGE_SIZE + 1)), '<link rel="prev"', True),
        (list_page(numbered(pages.PAGE_SIZE + 1)), '<link rel="prev"', False),
        (review_page(numbered(2)), "Other reviews", True),
        (review_page(numbered(1)), "Other reviews", False),
        (home_page(numbered(MANY + 1)), f">All {MANY + 1} reviews<", True),
        (home_page(numbered(MANY)), f">All {MANY} reviews<", False),
        (home_page(UNRATED), "<td>–</td>", True),
        (llms(UNRATED), r"- A\*b: 3", True),
        (home_page(ELSEWHERE), ", elsewhere", True),
        (home_page(numbered(1)), ", elsewhere", False),
    ],
)
def test_a_text_that_depends_on_a_number_agrees_with_it(page: str, text: str, is_shown: bool) -> None:
    assert (text in page) is is_shown


# ---- Texts for programs: others are in the snapshots ----


def test_a_sitemap_has_a_limit_and_the_days_of_changes() -> None:
    replied = review("c", date="2026-01-03", owner_reply={"text": "x", "date": "2026-02-01T00:00:00Z"})
    text = pages.sitemap(dataset_of(a_file(review("a&b"), replied)), URLS, limit=1).decode()
    found = re.findall("<loc>(.*?)</loc><lastmod>(.*?)</lastmod>", text)
    assert found == [(URLS.home + path, "2026-02-01") for path in ("", "reviews", "reviews/c")]


def test_every_endpoint_has_a_curl_line_that_a_shell_reads_as_it_is_meant() -> None:
    strange = service_urls("https://reviews.example/a'b&c")
    shown = Read(pages.html_page(TEMPLATES, SAMPLE, strange).decode()).raw("code")
    text = pages.llms_text(TEMPLATES, SAMPLE, strange).decode()
    commands = [shlex.split(line) for line in re.findall(r"curl .*?(?=curl |claude )", shown)]
    without = ("home", "icon", "review", "sitemap")
    urls = {value for key, value in asdict(strange).items() if key not in without}
    since = strange.since + str(SAMPLE.newest[0]["date"])[:10]
    examples = {since: strange.since, strange.search + "?min_rating=4&limit=3": strange.search}
    examples |= {strange.embed + "?limit=3": strange.embed}
    assert {examples.get(url, url) for _, url, *_ in commands} == urls
    assert {url for _, url, *options in commands if options} == {strange.mcp, strange.hub}
    assert all(line in shown for line in curl_lines(text)) and curl_lines(text)
    assert all(f"<{url}" in text for url in urls - {strange.llms})


def test_robots_may_not_read_endpoints_for_post_below_a_path() -> None:
    text = pages.robots_text(service_urls("https://r.example/shop")).decode()
    assert re.findall("Disallow: (.*)", text) == ["/shop/mcp", "/shop/api/websub/hub"]


def test_pages_do_not_mention_a_hub_that_is_turned_off() -> None:
    quiet = replace(URLS, hub="")
    texts = (pages.html_page(TEMPLATES, SAMPLE, quiet), pages.llms_text(TEMPLATES, SAMPLE, quiet))
    assert not any(re.search(rb"websub|hub\.", text) for text in (*texts, pages.robots_text(quiet)))


def test_the_icon_is_a_picture_that_needs_no_other_file() -> None:
    assert ET.fromstring(pages.favicon(TEMPLATES)).tag == "{http://www.w3.org/2000/svg}svg"
