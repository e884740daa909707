"""Pages and texts for models: text of the data never becomes markup, and every figure is from the data.

What they look like is in `test_snapshots.py` and `test_browser.py`; here is what holds for any data.

Reading - Text of the data - Figures - Structure - Pages of reviews - Texts for programs
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
from urllib.parse import parse_qsl, urlsplit

import jinja2
import pytest
from data_sets import DATA_SETS
from hypothesis import example, given
from hypothesis import strategies as st
from page_samples import ATTACKS, CONTRACT, ROOT, SMALLEST, URLS, attacking_files, dataset_of, files_saying

from reviewslib.dataset.query import BadQuery, Query, query_of_page
from reviewslib.dataset.reviews import Dataset, in_any_order
from reviewslib.dataset.text import loose_words
from reviewslib.links import service_urls
from reviewslib.web import embed, feeds, pages

TEMPLATES_DIRECTORY = ROOT / "reviewslib" / "web" / "templates"
TEMPLATES = pages.load_templates(TEMPLATES_DIRECTORY)
REVIEWS_FILE, INSIGHTS_FILE = DATA_SETS["sample"]()
SAMPLE = dataset_of(REVIEWS_FILE, INSIGHTS_FILE)

# ---- Reading: pages as strings, and what a strict reader finds in them ----


class Read(HTMLParser):
    """A page parsed strictly: each element must be closed in the right place."""

    def __init__(self, page: str):
        super().__init__()
        self.opened: list[tuple[str, dict[str, str]]] = []
        self.inside: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.inside == []
        shown = (text for tag, text in self.texts if tag not in ("script", "style", "title"))
        self.text = " ".join("".join(shown).split())  # what a visitor sees, on one line
        self.shapes = {(tag, *sorted(attributes)) for tag, attributes in self.opened}  # names of attributes

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), tag
        self.opened.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "link", "br", "wbr", "input", "img", "base"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.inside[-1] if self.inside else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for opened, attributes in self.opened if opened == tag]

    def raw(self, tag: str) -> str:
        return "".join(text for inside, text in self.texts if inside == tag)


def home_page(dataset: Dataset) -> str:
    return pages.html_page(TEMPLATES, dataset, URLS).decode()


def llms(dataset: Dataset) -> str:
    return pages.llms_text(TEMPLATES, dataset, URLS).decode()


def list_page(dataset: Dataset, number: int = 1, **filters: Any) -> str:
    """A page of the reviews that pass these filters."""
    query = Query(limit=pages.PAGE_SIZE, offset=(number - 1) * pages.PAGE_SIZE, **filters)
    return pages.list_page(TEMPLATES, dataset, URLS, query, in_any_order(dataset, query)).decode()


def matched(dataset: Dataset, parameters: str) -> Any:
    """The length of the list at an address whose query a page has."""
    pairs = parse_qsl(html.unescape(parameters))
    query = query_of_page(CONTRACT.list_parameters, pairs, pages.PAGE_SIZE)
    return in_any_order(dataset, query).frame["matched"]


def invalid_list_page(dataset: Dataset, **given: str) -> str:
    """The form, filled in with these values, which are wrong."""
    with pytest.raises(BadQuery) as refusal:
        query_of_page(CONTRACT.list_parameters, list(given.items()), pages.PAGE_SIZE)
    return pages.invalid_list_page(TEMPLATES, dataset, URLS, list(given.items()), refusal.value).decode()


def review_page(dataset: Dataset) -> str:
    return pages.review_page(TEMPLATES, dataset, URLS, dataset.reviews[0]).decode()


def frame(dataset: Dataset) -> str:
    """The frame for the owner's website, with as many reviews as it may have."""
    subjects = {"mentions_service": None, "mentions_technician": None}
    return embed.frame(TEMPLATES, dataset, URLS, limit=10, theme="auto", **subjects).decode()


def pages_of_reviews(dataset: Dataset, text: str) -> list[str]:
    """Every kind of page except the home page, with `text` in the form."""
    listed = list_page(dataset, query=text, mentions_technician=text, mentions_service=text)
    wrong = invalid_list_page(dataset, rating="x" + text, query=text, until=text + "x", min_rating="y" + text)
    beyond = pages.BeyondLastPage(Query(query=text, source=text), 2)
    nowhere = pages.beyond_page(TEMPLATES, dataset, URLS, beyond).decode()
    return [list_page(dataset), listed, wrong, review_page(dataset), frame(dataset), nowhere]


def sample_with(**members: Any) -> Dataset:
    """The sample with other members of its reviews file."""
    return dataset_of(REVIEWS_FILE | members, INSIGHTS_FILE)


def written(*reviews: dict[str, Any], **business: Any) -> Dataset:
    """These reviews of a business of which little is known."""
    return dataset_of({"business": SMALLEST["business"] | business, "reviews": reviews})


def rated(stars: float, **given: Any) -> dict[str, Any]:
    return {"id": f"r{stars}", "author": "Ann", "rating": stars, "date": "2026-01-01"} | given


# ---- Text of the data ----

TAME = [SAMPLE, *(dataset_of(*files_saying(text)) for text in ("word", "ann@word.example", "555"))]
HARMLESS = set().union(*(Read(home_page(dataset)).shapes for dataset in TAME))
TAME_PAGES = [pages_of_reviews(dataset, text) for dataset in TAME for text in ("word", "zzz", "a b")]
HARMLESS_PAGES = [
    set().union(*(Read(page).shapes for page in kind)) for kind in zip(*TAME_PAGES, strict=True)
]
hostile_text = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(st.sampled_from("<>&\"'`/=!-{}%#$\\]; \n\u202e\u2066\ufffeabon"), max_size=60),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
).map(lambda text: "n" + text)
ALL_AT_ONCE = "n" + ATTACKS[1] + ATTACKS[4] + ATTACKS[11]


@pytest.mark.slow
@given(hostile_text)
@example(ALL_AT_ONCE)
def test_no_text_becomes_markup_and_every_text_is_shown_as_it_was_written(text: str) -> None:
    document = home_page(dataset_of(*files_saying(text)))
    found = Read(document)
    assert found.shapes <= HARMLESS
    assert len(found.all("script")) == len(found.all("style")) == 1
    assert not set("<>&") & set(found.raw("script"))
    data = json.loads(found.raw("script"))
    assert (data["name"], data["description"]) == (pages.one_line(text), pages.paragraphs(text))
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", data["name"])  # it would turn a sentence
    (shown,) = re.findall('<p class="customer-words" dir="auto">([^<]*)</p>', document)
    assert html.unescape(shown) == pages.FORBIDDEN.sub("", pages.paragraphs(text))
    assert not pages.FORBIDDEN.search(re.sub("<script.*?</script>", "", document))


@pytest.mark.slow
@given(hostile_text)
@example(ALL_AT_ONCE)
def test_no_text_becomes_markup_on_the_pages_of_reviews_or_in_their_form(text: str) -> None:
    documents = pages_of_reviews(dataset_of(*files_saying(text)), text)
    for document, harmless in zip(documents, HARMLESS_PAGES, strict=True):
        found = Read(document)
        assert found.shapes <= harmless
        assert len(found.all("style")) == 1
        assert not found.all("script")
        assert not pages.FORBIDDEN.search(document)
        assert all(each["href"].startswith(("#", URLS.base_url)) for each in found.all("a"))


def curl_lines(text: str) -> list[str]:
    """The commands in llms.txt."""
    return re.findall("`(curl .*)`$", text, re.MULTILINE)


@given(hostile_text)
@example(ALL_AT_ONCE)
def test_no_text_breaks_out_of_its_line_in_llms_txt(text: str) -> None:
    told, tame = llms(dataset_of(*files_saying(text))), llms(TAME[1])
    beginnings = "(?m)^(?:## [A-Z][a-z ]*|[#>-].)?"
    absent = {"Email", "Telephone"}  # of a text that is no address, or has no words
    assert set(re.findall(beginnings, told)) | absent == set(re.findall(beginnings, tame)) | absent
    assert curl_lines(told) == curl_lines(tame)
    assert re.fullmatch("[a-z0-9-]+", pages.slug(text))


@given(st.text(max_size=80) | st.text(max_size=20).map("https://".__add__))
def test_only_web_addresses_are_linked(text: str) -> None:
    linked = pages.web_url(text)
    assert linked == "" or (linked == text and re.match("https?://.", text, re.IGNORECASE))


def test_addresses_of_the_hostile_data_stay_in_their_attribute() -> None:
    found = Read(home_page(dataset_of(*attacking_files())))
    assert found.shapes <= HARMLESS
    assert {urlsplit(each["href"]).scheme for each in found.all("a")} == {"", "https", "tel"}


@pytest.mark.parametrize(
    ("text", "most", "line"),
    [(" a\0\u202eb\r\nc\rd\n ", 80, "a b c d"), (None, 80, ""), ("x" * 80, 80, "x" * 80),
     ("x" * 81, 80, "x" * 79 + "…"), ("ab cd", 4, "ab…"), ("one two three", 10, "one two…"),
     ("one two three", 8, "one two…"), ("one two", 6, "one…"), ("one " + "x" * 40, 36, f"one {'x' * 31}…"),
     ("one " + "x" * 40, 35, "one…")],
)  # fmt: skip
def test_a_line_is_cut_at_a_word_unless_the_word_is_long(text: Any, most: int, line: str) -> None:
    assert pages.one_line(text, most) == line


def test_paragraphs_keep_their_lines_and_have_a_length() -> None:
    assert pages.paragraphs(" a\0\u202eb\r\nc\rd\n ") == "a\0\u202eb\nc\nd"
    assert [pages.paragraphs("x" * length) for length in (1000, 1001)] == ["x" * 1000, "x" * 999 + "…"]


def test_markdown_and_slugs_are_plain() -> None:
    assert pages.markdown("\\`*_[]<>#|a") == r"\\\`\*\_\[\]\<\>\#\|a"
    assert [pages.slug(text) for text in ("ab " + "C" * 31 + " d", "É!")] == [
        "c" * 31 + "-reviews",
        "reviews",
    ]


def test_figures_are_formatted_briefly() -> None:
    assert [pages.format_rating(rating) for rating in (4.486, 4.5, 5.0)] == ["4.49", "4.5", "5"]
    counted = [pages.count_text(count, "review") for count in (None, 1, 1204, 10**10)]
    assert counted == ["0 reviews", "1 review", "1,204 reviews", "1,000,000,000 reviews"]


def test_addresses_are_those_of_the_web_and_of_mail_and_of_sensible_length() -> None:
    good = ["a.b+c-d@e-f.g", "a@" + "b" * 198]
    assert [pages.mail_address(text) for text in (*good, "a@b@c", "a@" + "b" * 199)] == [*good, "", ""]
    others = ("javascript:alert(1)", "data:text/html,x", "//other.example", "https://a b", None, 7)
    assert not any(map(pages.web_url, [*others, "https://a/".ljust(501, "x")]))
    assert pages.web_url("https://a/".ljust(500, "x"))


def test_a_name_that_a_template_does_not_know_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        TEMPLATES.from_string("{{ unknown }}").render()


def test_templates_are_read_at_load_and_never_again(tmp_path: Path) -> None:
    copy = shutil.copytree(TEMPLATES_DIRECTORY, tmp_path / "templates")
    loaded = pages.load_templates(copy)
    shutil.rmtree(copy)
    assert pages.html_page(loaded, SAMPLE, URLS).decode() == home_page(SAMPLE)


# ---- Figures ----


def test_pages_stay_small_whatever_the_files_hold() -> None:
    huge = "x" * 4000
    names = [f"{huge[:800]}{number}" for number in range(70)]
    review = rated(5, author=huge, text=huge, mentioned_services=names)
    review["mentioned_technicians"] = [f"P{number}" for number in range(70)]
    reviews = [review | {"id": f"{number}"} for number in range(30)]
    business = {"name": huge, "description": huge, "service_areas": ["Upton"] * 500}
    business["hours"] = [{"days": ["Monday"], "opens": "08:00", "closes": "18:00"}] * 20
    entities = {kind: entries * 30 for kind, entries in INSIGHTS_FILE["entities"].items()}
    insights = INSIGHTS_FILE | {kind: INSIGHTS_FILE[kind] * 30 for kind in ("aspects", "topics")}
    insights |= {"faq": [{"question": huge, "answer": huge, "review_ids": []}] * 100, "entities": entities}
    dataset = dataset_of({"business": business, "reviews": reviews}, insights)
    document, listed = home_page(dataset), list_page(dataset)
    assert max(map(len, (document, listed, home_page(SAMPLE)))) < 110_000
    assert len(llms(SAMPLE).encode()) <= 12 * 1024
    people = listed.partition('id="mentions_technician"')[2].partition("</select>")[0]
    assert people.count("<option") == 1 + 60
    limits = {"08:00": 14, "Upton": 12, " positive, ": 11, '"details"': 16, 'scope="row"': 32, "<article": 12}
    shown = document.partition("<body>")[2]
    assert {each: shown.count(each) for each in limits} == limits
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
    counted = COUNTED.findall(home_page(dataset))
    assert len(counted) >= least
    for query, *counts in counted:
        assert matched(dataset, query) == int("".join(counts).replace(",", "")), query


def test_what_is_mentioned_most_comes_first() -> None:
    given = [("a", None), ("b", 0), ("c", 5), ("d", 10**10), ("e", 5)]
    entries = [{"id": id, "mention_count": count} for id, count in given]
    assert [entry["id"] for entry in pages.by_mentions(entries, 5)] == ["d", "c", "e", "a"]
    assert [entry["id"] for entry in pages.by_mentions(entries, 2)] == ["d", "c"]


def test_bars_of_aspects_share_one_axis() -> None:
    kinds = ("positive_count", "neutral_count", "negative_count")
    counts = ((2, 1, 4), (9, 2, 1), (0, 0, 0))
    entries = [{"mention_count": 5} | dict(zip(kinds, each, strict=True)) for each in counts]
    assert [(entry["bar"], entry["width"]) for entry in pages.aspects(entries[:2])] == [
        ([("fault", 0, 4), ("praise", 4, 2), ("neutral", 6, 1)], 15),
        ([("fault", 3, 1), ("praise", 4, 9), ("neutral", 13, 2)], 15),
    ]
    assert pages.aspects(entries[2:])[0]["width"] == 1
    assert pages.aspects([]) == []


def test_the_chart_has_a_dot_a_month_and_a_line_of_averages() -> None:
    rated_months = (("2025-03", 4, None), ("2024-11", 3, 4), ("2025-01", 5, 4), ("2025-02", 4, 1))
    given = [{"month": m, "average_rating": stars, "review_count": n} for m, stars, n in rated_months]
    unrated = {"month": "2026-01", "average_rating": None, "review_count": 9}
    sixty_months_ago = {"month": "2020-03", "average_rating": 1, "review_count": 1}
    assert pages.trend([*given, unrated, sixty_months_ago]) == {
        "levels": [(3, 1), (4, 0.5), (5, 0)],
        "januaries": [(2025, 0.5)],
        "dots": [(0, 1, 5), (0.5, 0, 5), (0.75, 0.5, 3.5), (1, 0.5, 3.5)],
        "line": [(0, 1), (0.5, 0.5), (0.75, 0.5), (1, 0.5)],
        "is_whole": False,
        "years": [(2020, 1, 1), (2024, 3, 4), (2025, 28 / 6, 6)],
        "before": None,
    }
    assert pages.trend(given[1:]) == {}, "nine reviews"
    alike = pages.trend([given[2], given[2], given[2] | {"month": "2025-02"}])
    assert (alike["levels"], alike["januaries"]) == ([(4, 1), (5, 0)], [(2025, 0)])
    assert alike["dots"] == [(0, 0, 5), (0, 0, 5), (1, 0, 5)]
    assert pages.trend([given[2] | {"review_count": 9}] * 2) == {}, "two months"


def test_the_chart_spans_sixty_months_and_its_list_fifteen_years() -> None:
    months = [(year, month) for year in range(2010, 2027) for month in range(1, 13)]
    given = [{"month": f"{y}-{m:02}", "review_count": 2, "average_rating": 1 + y % 5} for y, m in months]
    trend = pages.trend(given)
    assert trend["januaries"] == [(2022 + number, number * 12 / 59) for number in range(5)]
    assert [x for x, _, _ in trend["dots"]] == [x for x, _ in trend["line"]] == [at / 59 for at in range(60)]
    may = (7 * 1 + 5 * 2) / 12  # the average from June 2025 to May 2026
    assert trend["line"][52][1] == pytest.approx((5 - may) / 4)
    assert trend["years"] == [(year, 1 + year % 5, 24) for year in range(2012, 2027)]
    assert (trend["before"], trend["is_whole"]) == ((2012, 1.5, 48), False)
    assert pages.trend(given[24:])["before"] is None
    assert pages.trend(given[-60:])["is_whole"]


@pytest.mark.parametrize(
    ("days", "span"),
    [("Monday Tuesday Wednesday", "Monday to Wednesday"), ("Friday Saturday", "Friday, Saturday"),
     ("Monday Wednesday Friday", "Monday, Wednesday, Friday"), ("Sunday", "Sunday"),
     ("Sunday Monday Tuesday", "Sunday, Monday, Tuesday")],
)  # fmt: skip
def test_three_days_in_a_row_are_a_span(days: str, span: str) -> None:
    assert pages.day_span(days.split()) == span


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
    found = Read(home_page(written(rated(5, text="w" * length)))).text
    assert ("The newest written review" in found) is (length >= 20)
    assert ("w" * length in found) is (length <= 280)


# ---- Structure: what holds for every page ----

STORED = sorted(Path(__file__).with_name("snapshots").glob("*/*.html"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_page_has_headings_in_order_labels_and_link_targets(path: Path) -> None:
    found = Read(path.read_text(encoding="utf-8"))
    levels = [int(tag[1]) for tag, _ in found.opened if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == levels.count(1) == 1
    assert all(lower <= upper + 1 for upper, lower in pairwise(levels))
    outer = [each for each in found.all("svg") if "class" in each]
    assert all(each.get("aria-hidden") == "true" or each.get("aria-label") for each in outer)
    ids = [attributes["id"] for _, attributes in found.opened if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {each["href"][1:] for each in found.all("a") if each["href"].startswith("#")} <= set(ids)
    labelled = {each["for"] for each in found.all("label")}
    assert labelled == {each["id"] for each in found.all("input") + found.all("select")}
    assert found.raw("title")
    assert [each.get("name") for each in found.all("meta")].count("description") == 1


def test_the_policy_of_pages_allows_their_style_and_no_script() -> None:
    style = Read(home_page(SAMPLE)).raw("style")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    assert dict(pages.page_headers(TEMPLATES)) == {
        "Content-Security-Policy": policy,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "strict-origin-when-cross-origin",
    }
    assert not re.search(r"url\(|@import|@font-face|transition|animation", style)


def every_text(dataset: Dataset) -> list[str]:
    """All pages, and the texts for models and other websites."""
    documents = [home_page(dataset), *pages_of_reviews(dataset, "zzz")]
    documents += [pages.not_found_page(TEMPLATES, dataset, URLS, each).decode() for each in (True, False)]
    feed = json.loads(feeds.json_feed(dataset, URLS))["description"]
    return [*(Read(document).text for document in documents), llms(dataset), feed]


def test_reviews_are_called_verified_only_with_a_review_policy() -> None:
    where = "published on google, facebook, yelp, healthgrades and larkspurhollow.example"
    unproven = sample_with(business={"name": "Ann's"})
    checked = sample_with(business={"name": "Ann's", "review_policy": "We ask <everybody>."})
    for plain, proven in zip(every_text(unproven), every_text(checked), strict=True):
        assert all(where in text.lower() and "customer reviews" in text.lower() for text in (plain, proven))
        assert "verif" not in plain.lower()
        assert "verified customer reviews" in proven.lower()
    assert all("We ask" in text for text in every_text(checked)[:-1]), "the feed has no room for the policy"


# ---- Pages of reviews ----


def test_values_of_any_characters_stay_in_the_links_of_a_list() -> None:
    odd = Read(list_page(SAMPLE, query="a&b=#\N{GREEK SMALL LETTER ALPHA}?", min_rating=4.0))
    (canonical,) = [each["href"] for each in odd.all("link") if each["rel"] == "canonical"]
    assert canonical == URLS.review_list + "?query=a%26b%3D%23%CE%B1%3F&min_rating=4"
    assert 'value="\ufffd"' in invalid_list_page(SAMPLE, query="\udcff")


def test_the_form_offers_names_of_at_most_200_characters() -> None:
    names = {"mentioned_technicians": ["n" * 200, "m" * 201], "mentioned_services": ["no_label"]}
    form = list_page(written(rated(5, **names)))
    assert re.findall('<option value="([^"]+)"', form)[-3:] == ["n" * 200, "no_label", "unknown"]
    assert re.search('<option value="no_label"[^>]*>no_label</option>', form)


def test_every_suggestion_of_an_empty_list_finds_its_count() -> None:
    asked = {"query": "massage zzz neck neck \u0301", "min_rating": 4, "since": "2024-01-01"}
    document = list_page(SAMPLE, **asked)
    ways = re.findall(r'<li><a href="[^"]*\?([^"#]*)#results">(\d+) reviews?</a> (\w+)', document)
    assert [how for _, _, how in ways].count("with") == 2, "each word once, and no mark without a letter"
    assert all(matched(SAMPLE, query) == int(count) > 0 for query, count, _ in ways)
    assert "Similar searches" not in list_page(SAMPLE, query="zzz yyy", source="nowhere")


def test_a_page_says_that_only_eight_words_are_searched() -> None:
    eight = "a b c d e f g h"
    assert "first 8 words" not in list_page(SAMPLE, query=eight)
    assert "Only the first 8 words were searched for." in list_page(SAMPLE, query=f"{eight} zzz")


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


def test_the_page_of_a_review_has_all_of_it() -> None:
    reply = {"text": "Thanks. " * 1000}
    found = Read(review_page(written(rated(4.5, text="Long. " * 1000, owner_reply=reply))))
    assert "Long. " * 999 in found.text and "Thanks. " * 999 in found.text


# ---- Texts for programs ----


def test_the_sitemap_has_pages_and_reviews_with_the_days_of_changes() -> None:
    reply = {"text": "Thanks", "date": "2026-02-01T00:00:00Z"}
    silent = rated(5, id="a&b", date="2026-01-03T01:00:00Z")
    dataset = written(silent, rated(4, id="c", owner_reply=reply))
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    newest = "2026-02-01"
    days = {"": newest, "reviews": newest, "reviews/a%26b": "2026-01-03", "reviews/c": newest}
    entries = [f"<url><loc>{URLS.home}{path}</loc><lastmod>{days[path]}</lastmod></url>\n" for path in days]
    bare = [f"<url><loc>{URLS.home}{path}</loc></url>\n" for path in ("", "reviews")]
    assert pages.sitemap(dataset, URLS).decode() == head + "".join(entries) + "</urlset>\n"
    assert pages.sitemap(dataset, URLS, limit=1).decode() == head + "".join(entries[:3]) + "</urlset>\n"
    assert pages.sitemap(dataset_of(SMALLEST), URLS).decode() == head + "".join(bare) + "</urlset>\n"


def test_every_endpoint_has_a_curl_line_that_a_shell_reads_as_it_is_meant() -> None:
    strange = service_urls("https://reviews.example/a'b&c")
    shown = Read(pages.html_page(TEMPLATES, SAMPLE, strange).decode()).raw("code")
    told = pages.llms_text(TEMPLATES, SAMPLE, strange).decode()
    commands = [shlex.split(line) for line in re.findall(r"curl .*?(?=curl |claude )", shown)]
    without = ("home", "icon", "review", "sitemap")
    urls = {value for key, value in asdict(strange).items() if key not in without}
    since, day = strange.since, str(SAMPLE.newest[0]["date"])[:10]
    examples = {since + day: since, strange.search + "?min_rating=4&limit=3": strange.search}
    examples |= {strange.embed + "?limit=3": strange.embed}
    assert {examples.get(url, url) for _, url, *_ in commands} == urls
    assert {url for _, url, *options in commands if options} == {strange.mcp, strange.hub}
    assert all(line in shown for line in curl_lines(told)) and curl_lines(told)
    assert all(f"<{url}" in told for url in urls - {strange.llms})


def test_robots_may_read_everything_but_endpoints_for_post() -> None:
    text = b"User-agent: *\nDisallow: /mcp\nDisallow: /api/websub/hub\nAllow: /\n"
    text += b"Sitemap: https://reviews.example/sitemap.xml\n"
    assert pages.robots_text(URLS) == text
    below = pages.robots_text(service_urls("https://r.example/shop")).decode()
    assert re.findall("Disallow: (.*)", below) == ["/shop/mcp", "/shop/api/websub/hub"]


def test_pages_do_not_mention_a_hub_that_is_turned_off() -> None:
    quiet = replace(URLS, hub="")
    texts = (pages.html_page(TEMPLATES, SAMPLE, quiet), pages.llms_text(TEMPLATES, SAMPLE, quiet))
    assert not any(re.search(rb"websub|hub\.", text) for text in (*texts, pages.robots_text(quiet)))


def test_the_icon_is_a_picture_that_needs_no_other_file() -> None:
    assert ET.fromstring(pages.favicon(TEMPLATES)).tag == "{http://www.w3.org/2000/svg}svg"
