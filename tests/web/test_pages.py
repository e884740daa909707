"""Pages and texts for models: text of the data never becomes markup, and every figure is from the data.

Whole documents are in `test_snapshots.py`, their look in `test_browser.py`; here is what holds for any data.

Sections: pages as strings, and their tags - text of the data - values - figures - what
depends on the data - links - texts for programs.
"""

import html
import json
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jinja2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lab.annotated_data import EDITORIAL, annotated_insights
from lab.data_sets import DATA_SETS, URLS, dataset_of
from lab.page_samples import (
    ATTACKS,
    FIGURES,
    TEMPLATES,
    TEMPLATES_DIRECTORY,
    files_saying,
)
from lab.small_files import CONTRACT, a_file, review

from reviewslib.dataset.query import BadQuery, Query, query_of_page
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.searching import in_any_order
from reviewslib.links import ServiceUrls, service_urls
from reviewslib.web import crawlers, embed, figures, shown_text
from reviewslib.web import (
    list_page as lists,
)
from reviewslib.web import (
    review_page as reviews,
)
from reviewslib.web.chart import trend
from reviewslib.web.error_pages import not_found_page
from reviewslib.web.home_page import html_page, llms_text
from reviewslib.web.site import Site, site_of
from reviewslib.web.templating import load_templates

REVIEWS_FILE, INSIGHTS_FILE = DATA_SETS["sample"]()
SAMPLE = dataset_of(REVIEWS_FILE, INSIGHTS_FILE)

# ---- Pages as strings, and their tags ----


def site(dataset: Dataset, urls: ServiceUrls = URLS) -> Site:
    return site_of(TEMPLATES, dataset, urls)


def home_page(dataset: Dataset) -> str:
    return html_page(site(dataset)).decode()


def llms(dataset: Dataset) -> str:
    return llms_text(site(dataset)).decode()


def list_page(dataset: Dataset, urls: ServiceUrls = URLS, **values: Any) -> str:
    """A page of the reviews that a query with these values finds."""
    query = Query(**{"limit": lists.PAGE_SIZE} | values)
    matches = in_any_order(dataset, query)
    return lists.list_page(site(dataset, urls), query, matches).decode()


def invalid_list_page(dataset: Dataset, urls: ServiceUrls = URLS, **values: str) -> str:
    """The form, filled in with these values, which are wrong."""
    pairs = list(values.items())
    with pytest.raises(BadQuery) as refusal:
        query_of_page(CONTRACT.list_parameters, pairs, lists.PAGE_SIZE)
    return lists.invalid_list_page(site(dataset, urls), pairs, refusal.value).decode()


def review_page(dataset: Dataset) -> str:
    return reviews.review_page(site(dataset), dataset.reviews[0]).decode()


ANY_FRAME = {
    "limit": 10,
    "theme": "auto",
    "mentions_service": None,
    "mentions_technician": None,
}


def every_page(dataset: Dataset, text: str, urls: ServiceUrls = URLS) -> list[str]:
    """Every kind of page, the home page first and the frame last, with `text` in the form."""
    shown = site(dataset, urls)
    named = {"query": text, "mentions_technician": text, "mentions_service": text}
    wrong = {"rating": f"x{text}", "until": f"{text}x", "min_rating": f"y{text}"}
    beyond = Query(query=text, source=text)
    return [
        html_page(shown).decode(),
        list_page(dataset, urls),
        list_page(dataset, urls, **named),
        invalid_list_page(dataset, urls, query=text, **wrong),
        reviews.review_page(shown, dataset.reviews[0]).decode(),
        not_found_page(shown, is_review=True).decode(),
        lists.beyond_page(shown, beyond, last=2).decode(),
        embed.frame(shown, **ANY_FRAME).decode(),
    ]


class Shapes(HTMLParser):
    """The tags of a page with the names of their attributes; each element is closed in the right place."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.open_tags: list[str] = []
        self.feed(page)
        self.close()
        assert self.open_tags == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *sorted(name for name, _ in attrs)))
        if tag not in ("meta", "link", "br", "wbr", "input", "img", "base"):
            self.open_tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def raw(page: str, tag: str) -> str:
    """The content of all elements with this tag."""
    return "".join(re.findall(f"<{tag}(?: [^>]*)?>(.*?)</{tag}>", page, re.DOTALL))


# ---- Text of the data ----

TAME_TEXTS = ("word", "ann@word.example", "555")


@cache
def harmless_tags() -> list[set[tuple[str, ...]]]:
    """By kind of page: the tags of pages without a hostile text."""
    tame = [SAMPLE, *(dataset_of(*files_saying(text)) for text in TAME_TEXTS)]
    tame_pages = [
        every_page(dataset, text) for dataset in tame for text in ("word", "zzz", "a b")
    ]
    return [
        set().union(*(Shapes(page).found for page in kind))
        for kind in zip(*tame_pages, strict=True)
    ]


hostile_text = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(
        st.sampled_from("<>&\"'`/=!-{}%#$\\]; \n\u202e\u2066\ufffeabon"), max_size=60
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
).map(lambda text: "n" + text)
ALL_AT_ONCE = "n" + ATTACKS[1] + ATTACKS[4] + ATTACKS[11]


@pytest.mark.slow
@given(hostile_text)
@example(ALL_AT_ONCE)
def test_any_text_is_shown_as_written_and_becomes_no_markup(text: str) -> None:
    documents = every_page(dataset_of(*files_saying(text)), text)
    for document, harmless in zip(documents, harmless_tags(), strict=True):
        found = Shapes(document).found
        assert set(found) <= harmless
        scripts = [shape for shape in found if shape[0] == "script"]
        assert (found.count(("style",)), len(scripts)) == (1, document is documents[0])
        assert not shown_text.FORBIDDEN.search(
            re.sub("<script.*?</script>", "", document)
        )
    script = raw(documents[0], "script")
    assert not set("<>&") & set(script)
    data = json.loads(script)
    assert (data["name"], data["description"]) == (
        shown_text.one_line(text),
        shown_text.paragraphs(text),
    )
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", data["name"]), (
        "it would reverse a sentence"
    )
    for name in ("customer-words", "description"):
        (shown,) = re.findall(f'<p class="{name}" dir="auto">([^<]*)</p>', documents[0])
        assert html.unescape(shown) == shown_text.FORBIDDEN.sub(
            "", shown_text.paragraphs(text)
        )


def curl_lines(text: str) -> list[str]:
    """The commands in llms.txt."""
    return re.findall("`(curl .*)`$", text, re.MULTILINE)


@given(hostile_text)
@example(ALL_AT_ONCE)
def test_no_text_breaks_out_of_its_line_in_llms_txt(text: str) -> None:
    hostile = llms(dataset_of(*files_saying(text)))
    tame = llms(dataset_of(*files_saying("word")))
    beginnings = "(?m)^(?:## [A-Z][a-z ]*|[#>-].)?"
    assert set(re.findall(beginnings, hostile)) == set(re.findall(beginnings, tame))
    assert curl_lines(hostile) == curl_lines(tame)
    assert re.fullmatch("[a-z0-9-]+", shown_text.slug(text))


# ---- Values ----


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("one_line", (" a\0\u202eb\r\nc\rd\n ",), "a b c d"),
        ("one_line", (None,), ""),
        ("one_line", ("x" * 80,), "x" * 80),
        ("one_line", ("x" * 81,), "x" * 79 + "…"),
        ("one_line", ("one two three", 8), "one two…"),
        ("one_line", ("one two", 6), "one…"),
        ("one_line", ("one " + "x" * 40, 36), f"one {'x' * 31}…"),
        ("one_line", ("one " + "x" * 40, 35), "one…"),
        ("paragraphs", (" a\0\u202eb\r\nc\rd\n ",), "a\0\u202eb\nc\nd"),
        ("paragraphs", ("x" * 1000,), "x" * 1000),
        ("paragraphs", ("x" * 1001,), "x" * 999 + "…"),
        ("markdown", ("\\`*_[]<>#|a",), r"\\\`\*\_\[\]\<\>\#\|a"),
        ("slug", ("ab " + "C" * 31 + " d",), "c" * 31 + "-reviews"),
        ("slug", ("!",), "reviews"),
        ("slug", ("Bäckerei Süßmilch",), "backerei-sussmilch-reviews"),
        ("format_rating", (4.486,), "4.49"),
        ("format_rating", (5.0,), "5"),
        ("count_text", (None, "review"), "0 reviews"),
        ("count_text", (10**10,), "1,000,000,000"),
        ("mail_address", ("a.b+c-d@e-f.g",), "a.b+c-d@e-f.g"),
        ("mail_address", ("a@b@c",), ""),
        ("mail_address", ("a@" + "b" * 198,), "a@" + "b" * 198),
        ("mail_address", ("a@" + "b" * 199,), ""),
        ("web_url", ("https://a/".ljust(500, "x"),), "https://a/".ljust(500, "x")),
        ("web_url", ("https://a/".ljust(501, "x"),), ""),
        ("web_url", ("javascript:alert(1)",), ""),
        ("web_url", (None,), ""),
        ("web_url", (7,), ""),
    ],
)
def test_a_value_is_shown_briefly_and_without_harm(
    name: str, arguments: Any, shown: str
) -> None:
    assert (
        getattr(figures if hasattr(figures, name) else shown_text, name)(*arguments)
        == shown
    )


def test_templates_are_read_at_load_and_know_all_their_names(tmp_path: Path) -> None:
    copy = shutil.copytree(TEMPLATES_DIRECTORY, tmp_path / "templates")
    loaded = load_templates(copy)
    shutil.rmtree(copy)
    assert html_page(site_of(loaded, SAMPLE, URLS)).decode() == home_page(SAMPLE)
    with pytest.raises(jinja2.UndefinedError):
        loaded.from_string("{{ unknown }}").render()


# ---- Figures ----


def huge_dataset() -> Dataset:
    """More and longer entries of every kind than a page has room for."""
    huge = "x" * 4000
    names = {"mentioned_services": [f"{huge[:800]}{n}" for n in range(70)]}
    names["mentioned_technicians"] = [f"P{n}" for n in range(70)]
    reviews = [review(f"{n}", author=huge, text=huge, **names) for n in range(30)]
    business = {"name": huge, "description": huge, "service_areas": ["Upton"] * 500}
    business["hours"] = [{"days": ["Monday"], "opens": "08:00", "closes": "18:00"}] * 20
    insights = INSIGHTS_FILE | {
        kind: INSIGHTS_FILE[kind] * 30 for kind in ("aspects", "topics")
    }
    insights |= {
        "entities": {
            kind: found * 30 for kind, found in INSIGHTS_FILE["entities"].items()
        }
    }
    insights |= {"faq": [{"question": huge, "answer": huge, "review_ids": []}] * 100}
    return dataset_of(a_file(*reviews, business=business), insights)


def test_pages_stay_small_whatever_the_files_hold() -> None:
    document = home_page(huge_dataset())
    listed = list_page(huge_dataset())
    assert max(map(len, (document, listed, home_page(SAMPLE)))) < 110_000
    assert len(llms(SAMPLE).encode()) <= 12 * 1024
    subjects = listed.partition('id="mentions"')[2].partition("</select>")[0]
    assert subjects.count('value="technicians/') == 20
    limits = {
        "08:00": 14,
        "Upton": 12,
        " positive, ": 11,
        '"details"': 16,
        'scope="row"': 32,
        "<article": 12,
    }
    shown = document.partition("<body>")[2]
    assert {text: shown.count(text) for text in limits} == limits
    data = json.loads(raw(document, "script"))
    assert (len(data["areaServed"]), len(data["openingHoursSpecification"])) == (12, 14)


def count_at(dataset: Dataset, query_string: str) -> Any:
    """The number of reviews in the list at an address that a page has, by its query string."""
    pairs = parse_qsl(html.unescape(query_string))
    query = query_of_page(CONTRACT.list_parameters, pairs, lists.PAGE_SIZE)
    return in_any_order(dataset, query).frame["matched"]


LINKED_COUNT = re.compile(  # a bar of stars, a year, a row of people or services, a suggestion
    r'(?s)<a href="[^"]*/reviews\?([^"#]*)#results">(?:([\d,]+) (?:reviews?|mentions?|positive|negative)</a>|(?:(?!<a ).)*?'
    r"(?:<span>([\d,]+)</span></a>|<small>([\d,]+) reviews?</small>"
    r"|</th>\s*<td>[\d.–]+</td>\s*<td>([\d,]+)</td>))"
)
UNMATCHED = {
    "query": "massage zzz neck neck \u0301",
    "min_rating": 4,
    "since": "2024-01-01",
}


HALF_READ = dataset_of(REVIEWS_FILE, annotated_insights(REVIEWS_FILE, EDITORIAL, 60))
WHOLLY_READ = dataset_of(
    REVIEWS_FILE, annotated_insights(REVIEWS_FILE, EDITORIAL, 1000)
)


@pytest.mark.parametrize(
    ("dataset", "unmatched", "number"),
    [
        pytest.param(SAMPLE, {}, 65, id="the sample"),
        pytest.param(dataset_of(*DATA_SETS["many"]()), {}, 25, id="many"),
        pytest.param(dataset_of(*DATA_SETS["bare"]()), {}, 5, id="bare"),
        pytest.param(HALF_READ, {}, 22, id="half read by a model"),
        pytest.param(WHOLLY_READ, {}, 24, id="wholly read by a model"),
        pytest.param(SAMPLE, UNMATCHED, 9, id="similar searches"),
    ],
)
def test_every_count_links_to_a_list_of_so_many_reviews(
    dataset: Dataset, unmatched: Any, number: int
) -> None:
    links = LINKED_COUNT.findall(
        list_page(dataset, **unmatched) if unmatched else home_page(dataset)
    )
    assert len(links) == number
    for query_string, *counts in links:
        assert count_at(dataset, query_string) == int(
            "".join(counts).replace(",", "")
        ), query_string


def test_what_is_mentioned_most_comes_first() -> None:
    counts = {"a": None, "b": 0, "c": 5, "d": 10**10, "e": 5}
    entries = [{"id": id, "mention_count": count} for id, count in counts.items()]
    assert [entry["id"] for entry in figures.by_mentions(entries, 3)] == ["d", "c", "e"]


def test_aspects_that_nobody_judges_have_empty_bars_and_a_scale() -> None:
    counts = dict.fromkeys(
        ("mention_count", "positive_count", "neutral_count", "negative_count")
    )
    counts["top_phrases"] = ["words of the owner"]

    (aspect,) = figures.aspects([counts])

    assert [length for _, _, length in aspect["bar"]] == [0, 0, 0]
    assert aspect["width"] == 1


def months(*figures: tuple[str, float | None, int | None]) -> list[dict[str, Any]]:
    """The insights by month: the month, its average rating, its reviews."""
    return [
        {"month": month, "average_rating": rating, "review_count": n}
        for month, rating, n in figures
    ]


FOUR_MONTHS = months(
    ("2025-03", 4, None), ("2024-11", 3, 4), ("2025-01", 5, 4), ("2025-02", 4, 1)
)
TWO_MONTHS = months(("2025-01", 5, 4), ("2025-02", 5, 4))


def test_the_chart_has_a_dot_a_month_and_a_line_of_averages() -> None:
    monthly = [*FOUR_MONTHS, *months(("2026-01", None, 9), ("2020-03", 1, 1))]
    assert asdict(trend(monthly)) == {
        "levels": [(3, 1), (4, 0.5), (5, 0)],
        "januaries": [(2025, 0.5)],
        "dots": [(0, 1, 5), (0.5, 0, 5), (0.75, 0.5, 3.5), (1, 0.5, 3.5)],
        "line": [(0, 1), (0.5, 0.5), (0.75, 0.5), (1, 0.5)],
        "is_whole": False,
        "years": [(2020, 1, 1), (2024, 3, 4), (2025, 28 / 6, 6)],
        "before": None,
    }


@pytest.mark.parametrize(
    ("monthly", "levels"),
    [
        (FOUR_MONTHS[1:], None),
        (TWO_MONTHS, None),
        ([], None),
        (TWO_MONTHS[:1] + TWO_MONTHS, [4, 5]),
    ],
    ids=["nine reviews", "two months", "none", "equal ratings and a repeated month"],
)
def test_three_months_and_ten_reviews_make_a_chart(
    monthly: Any, levels: list[int] | None
) -> None:
    chart = trend(monthly)
    shown = [stars for stars, _ in chart.levels] if chart else None
    assert shown == levels


# ---- What depends on the data ----


def reviews_of(*texts: str, **members: Any) -> Dataset:
    """A review of each text, with these members."""
    return dataset_of(
        a_file(*(review(f"{n}", text=text, **members) for n, text in enumerate(texts)))
    )


def many(count: int) -> Dataset:
    return reviews_of(*["good"] * count)


ONE_OF_TWO = reviews_of("good 1", "good 2")
LONG_NAME = "n" * 200
LONG_TEXT = "Long. " * 1000
LEAD = "The newest written review"
NAMED = reviews_of(
    "", mentioned_technicians=[LONG_NAME, "m" * 201], mentioned_services=["no_label"]
)
WHOLE = reviews_of(LONG_TEXT, owner_reply={"text": LONG_TEXT.upper()})
RARE = FIGURES | {"id": "a", "label": "A*b", "average_rating": None}
UNRATED = dataset_of(a_file(review()), {"version": 1, "entities": {"services": [RARE]}})
ELSEWHERE = dataset_of(
    a_file(review(id="a", source="google"), review(id="b", source="unknown"))
)
CLINIC = dataset_of(a_file(business={"name": "x", "schema_type": "MedicalClinic"}))
ODD_LINK = "reviews?query=a%26b%3D%23%CE%B1%3F&amp;min_rating=4"
EIGHT = "a b c d e f g h"
ONLY_EIGHT = "Only the first 8 words were searched for."


def text_of_case(value: object) -> str:
    """The name of a case: the text that is looked for."""
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(
    ("page", "dataset", "values", "text", "is_shown"),
    [
        (list_page, ONE_OF_TWO, {"query": "1"}, "1 review · Words: 1<", True),
        (list_page, ONE_OF_TWO, {"query": "good"}, "2 reviews · Words: good<", True),
        (list_page, many(21), {"offset": 20}, '<link rel="prev"', True),
        (list_page, many(21), {}, '<link rel="prev"', False),
        (
            list_page,
            SAMPLE,
            {"query": "a&b=#\N{GREEK SMALL LETTER ALPHA}?", "min_rating": 4.0},
            ODD_LINK,
            True,
        ),
        (
            list_page,
            SAMPLE,
            {"query": "zzz yyy", "source": "nowhere"},
            "Similar searches",
            False,
        ),
        (list_page, SAMPLE, {"query": EIGHT}, ONLY_EIGHT, False),
        (list_page, SAMPLE, {"query": f"{EIGHT} i"}, ONLY_EIGHT, True),
        (list_page, NAMED, {}, f'<option value="technicians/{LONG_NAME}"', True),
        (list_page, NAMED, {}, '<option value="technicians/mm', False),
        (
            list_page,
            NAMED,
            {},
            '<option value="services/no_label">no_label</option>',
            True,
        ),
        (
            invalid_list_page,
            SAMPLE,
            {"query": "\udcff"},
            'value="\N{REPLACEMENT CHARACTER}"',
            True,
        ),
        (review_page, ONE_OF_TWO, {}, "Other reviews", True),
        (review_page, many(1), {}, "Other reviews", False),
        (review_page, WHOLE, {}, "Long. " * 999, True),
        (review_page, WHOLE, {}, "LONG. " * 999, True),
        (home_page, many(13), {}, ">All 13 reviews<", True),
        (home_page, many(12), {}, ">All 12 ", False),
        (home_page, reviews_of("w" * 19), {}, LEAD, False),
        (home_page, reviews_of("w" * 20), {}, LEAD, True),
        (home_page, reviews_of("w" * 280), {}, f"<p>{'w' * 280}</p>", True),
        (home_page, reviews_of("w" * 281), {}, f"<p>{'w' * 279}…</p>", True),
        (home_page, UNRATED, {}, "<td>–</td>", True),
        (llms, UNRATED, {}, r"- A\*b: 3", True),
        (home_page, ELSEWHERE, {}, ", elsewhere", True),
        (home_page, many(1), {}, ", elsewhere", False),
        (home_page, CLINIC, {}, '"@type":"MedicalClinic"', True),
    ],
    ids=text_of_case,
)
def test_a_text_is_shown_only_where_the_data_give_reason(
    page: Callable[..., str],
    dataset: Dataset,
    values: dict[str, Any],
    text: str,
    is_shown: bool,
) -> None:
    assert (text in page(dataset, **values)) is is_shown


# ---- Links ----


class Links(HTMLParser):
    """The addresses that a page leads to or loads, by the element and its relation."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        for name in ("href", "action", "src"):
            if name in values:
                kind = values.get("rel") if tag == "link" else tag
                self.found.append((kind or tag, values[name] or ""))


# What programs read outside the page.
LEAVING = ("canonical", "hub")
BASE_URLS = {
    "a host": ("https://reviews.example", "/"),
    "a path": ("https://shop.example/our/reviews", "/our/reviews/"),
    "a path like a host": ("https://shop.example//evil.example", "/.//evil.example/"),
}


@pytest.mark.parametrize("name", BASE_URLS)
def test_links_from_page_to_page_are_paths(name: str) -> None:
    base_url, beginning = BASE_URLS[name]
    urls = service_urls(base_url)

    for page in every_page(SAMPLE, "zzz", urls):
        links = [url for kind, url in Links(page).found if kind not in LEAVING]
        assert not [url for url in links if url.startswith(base_url)]
        paths = [url for url in links if url.startswith("/")]
        assert paths
        assert [path for path in paths if not path.startswith(beginning)] == []


def test_what_leaves_a_page_is_absolute() -> None:
    home = every_page(SAMPLE, "zzz", URLS)[0]

    leaving = [url for kind, url in Links(home).found if kind in LEAVING]

    assert leaving == [URLS.home, URLS.hub]


# ---- Texts for programs: others are in the snapshots ----


def test_a_sitemap_has_a_limit_and_the_days_of_changes() -> None:
    replied = review(
        "c",
        date="2026-01-03",
        owner_reply={"text": "x", "date": "2026-02-01T00:00:00Z"},
    )
    text = crawlers.sitemap(
        site_of(TEMPLATES, dataset_of(a_file(review("a&b"), replied)), URLS), limit=1
    ).decode()
    found = re.findall("<loc>(.*?)</loc><lastmod>(.*?)</lastmod>", text)
    assert found == [
        (URLS.home + path, "2026-02-01") for path in ("", "reviews", "reviews/c")
    ]


def test_a_shell_reads_every_curl_line_as_it_is_meant() -> None:
    strange = service_urls("https://reviews.example/a'b&c")
    shown = html.unescape(raw(html_page(site(SAMPLE, strange)).decode(), "code"))
    commands = [
        shlex.split(line) for line in re.findall(r"curl .*?(?=curl |claude )", shown)
    ]
    assert all(url.startswith(strange.home) for _, url, *_ in commands)
    assert [url for _, url, *options in commands if options] == [
        strange.mcp,
        strange.hub,
    ]
    lines = curl_lines(llms_text(site(SAMPLE, strange)).decode())
    assert lines
    assert all(line in shown for line in lines)


def test_no_example_for_a_terminal_prints_the_pages_of_the_list() -> None:
    commands = curl_lines(llms_text(site(SAMPLE)).decode())

    assert commands
    assert [line for line in commands if line.endswith(URLS.review_list)] == []


def test_no_document_mentions_a_hub_that_is_turned_off() -> None:
    quiet = replace(URLS, hub="")
    texts = (
        html_page(site(SAMPLE, quiet)),
        llms_text(site(SAMPLE, quiet)),
    )
    assert not any(
        re.search(rb"websub|hub\.", text)
        for text in (*texts, crawlers.robots_text(quiet))
    )
