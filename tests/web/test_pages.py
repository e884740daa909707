"""Pages and texts for models: no text becomes markup, every figure is from the data.

Whole documents are in `test_snapshots.py`, their look in `test_browser.py`; here is
what holds for any data.

Sections: pages as strings, and their tags - text of the data - values - figures - what
depends on the data - links - texts for programs.
"""

import html
import itertools
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
    """Every kind of page, the home page first, with `text` in the form."""
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
    """The tags of a page with the names of their attributes.

    Each element is closed in the right place.
    """

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
    tame = [SAMPLE]
    for text in TAME_TEXTS:
        tame.append(dataset_of(*files_saying(text)))
    tags: list[set[tuple[str, ...]]] = []
    for dataset, text in itertools.product(tame, ("word", "zzz", "a b")):
        pages = every_page(dataset, text)
        tags = tags or [set() for _ in pages]
        for kind, page in zip(tags, pages, strict=True):
            kind.update(Shapes(page).found)
    return tags


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
def test_no_text_becomes_markup(text: str) -> None:
    documents = every_page(dataset_of(*files_saying(text)), text)

    for document, harmless in zip(documents, harmless_tags(), strict=True):
        found = Shapes(document).found
        assert set(found) <= harmless
        assert found.count(("style",)) == 1
        visible = re.sub("<script.*?</script>", "", document)
        assert not shown_text.FORBIDDEN.search(visible)


def test_the_home_page_alone_has_data_for_search_engines() -> None:
    _, *others = every_page(SAMPLE, "zzz")

    assert [page for page in others if "<script" in page] == []


@given(hostile_text)
@example(ALL_AT_ONCE)
def test_data_for_search_engines_say_any_text_and_end_nowhere(text: str) -> None:
    page = home_page(dataset_of(*files_saying(text)))

    assert page.count("<script") == 1
    script = raw(page, "script")
    assert not set("<>&") & set(script)
    data = json.loads(script)
    assert data["name"] == shown_text.one_line(text)
    assert data["description"] == shown_text.paragraphs(text)


@given(hostile_text)
def test_no_name_reverses_the_sentence_around_it(text: str) -> None:
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown_text.one_line(text))


@pytest.mark.parametrize("name", ["customer-words", "description"])
@given(hostile_text)
@example(ALL_AT_ONCE)
def test_any_text_is_shown_as_written(name: str, text: str) -> None:
    page = home_page(dataset_of(*files_saying(text)))

    (shown,) = re.findall(f'<p class="{name}" dir="auto">([^<]*)</p>', page)

    allowed = shown_text.FORBIDDEN.sub("", shown_text.paragraphs(text))
    assert html.unescape(shown) == allowed


def curl_lines(text: str) -> list[str]:
    """The commands in llms.txt."""
    return re.findall("`(curl .*)`$", text, re.MULTILINE)


@given(hostile_text)
@example(ALL_AT_ONCE)
def test_no_text_breaks_out_of_its_line_in_llms_txt(text: str) -> None:
    beginnings = "(?m)^(?:## [A-Z][a-z ]*|[#>-].)?"
    tame = llms(dataset_of(*files_saying("word")))

    hostile = llms(dataset_of(*files_saying(text)))

    assert set(re.findall(beginnings, hostile)) == set(re.findall(beginnings, tame))
    assert curl_lines(hostile) == curl_lines(tame)


@given(hostile_text)
def test_a_name_in_a_configuration_needs_no_quoting(text: str) -> None:
    assert re.fullmatch("[a-z0-9-]+", shown_text.slug(text))


# ---- Values ----


ODD_LINES = " a\0\u202eb\r\nc\rd\n "


@pytest.mark.parametrize(
    ("value", "length", "shown"),
    [
        pytest.param(ODD_LINES, 80, "a b c d", id="line ends and controls"),
        pytest.param(None, 80, "", id="nothing"),
        pytest.param("x" * 80, 80, "x" * 80, id="as long as may be"),
        pytest.param("x" * 81, 80, "x" * 79 + "…", id="one letter too long"),
        pytest.param("one two three", 8, "one two…", id="cut between words"),
        pytest.param("one two", 6, "one…", id="cut before a word"),
        pytest.param("one " + "x" * 40, 36, f"one {'x' * 31}…", id="cut in a word"),
        pytest.param("one " + "x" * 40, 35, "one…", id="too little of a long word"),
    ],
)
def test_a_line_is_cut_where_it_reads_best(
    value: str | None, length: int, shown: str
) -> None:
    assert shown_text.one_line(value, length) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(ODD_LINES, "a\0\u202eb\nc\nd", id="line ends"),
        pytest.param("x" * 1000, "x" * 1000, id="as long as may be"),
        pytest.param("x" * 1001, "x" * 999 + "…", id="one letter too long"),
    ],
)
def test_paragraphs_keep_their_lines(value: str, shown: str) -> None:
    assert shown_text.paragraphs(value) == shown


def test_markdown_is_escaped() -> None:
    assert shown_text.markdown("\\`*_[]<>#|a") == r"\\\`\*\_\[\]\<\>\#\|a"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        pytest.param("ab " + "C" * 31 + " d", "c" * 31 + "-reviews", id="cut"),
        pytest.param("!", "reviews", id="no letters"),
        pytest.param("Bäckerei Süßmilch", "backerei-sussmilch-reviews", id="umlauts"),
    ],
)
def test_a_name_in_a_configuration_is_short(name: str, slug: str) -> None:
    assert shown_text.slug(name) == slug


@pytest.mark.parametrize(
    ("address", "linked"),
    [
        pytest.param("a.b+c-d@e-f.g", "a.b+c-d@e-f.g", id="plain"),
        pytest.param("a@b@c", "", id="two signs"),
        pytest.param("a@" + "b" * 198, "a@" + "b" * 198, id="as long as may be"),
        pytest.param("a@" + "b" * 199, "", id="too long"),
    ],
)
def test_a_plain_mail_address_is_a_link(address: str, linked: str) -> None:
    assert shown_text.mail_address(address) == linked


LONGEST_URL = "https://a/".ljust(500, "x")


@pytest.mark.parametrize(
    ("value", "linked"),
    [
        pytest.param(LONGEST_URL, LONGEST_URL, id="as long as may be"),
        pytest.param(f"{LONGEST_URL}x", "", id="too long"),
        pytest.param("javascript:alert(1)", "", id="a script"),
        pytest.param(None, "", id="nothing"),
        pytest.param(7, "", id="a number"),
    ],
)
def test_a_web_address_alone_is_a_link(value: Any, linked: str) -> None:
    assert shown_text.web_url(value) == linked


def test_a_rating_has_two_decimals_at_most() -> None:
    assert figures.format_rating(4.486) == "4.49"
    assert figures.format_rating(5.0) == "5"


def test_a_count_has_its_noun_and_a_width() -> None:
    assert figures.count_text(None, "review") == "0 reviews"
    assert figures.count_text(10**10) == "1,000,000,000"


def test_templates_are_read_at_load(tmp_path: Path) -> None:
    copy = shutil.copytree(TEMPLATES_DIRECTORY, tmp_path / "templates")
    loaded = load_templates(copy)

    shutil.rmtree(copy)

    assert html_page(site_of(loaded, SAMPLE, URLS)).decode() == home_page(SAMPLE)


def test_a_template_knows_all_its_names() -> None:
    template = TEMPLATES.from_string("{{ unknown }}")

    with pytest.raises(jinja2.UndefinedError):
        template.render()


# ---- Figures ----


HUGE = "x" * 4000


@cache
def huge_dataset() -> Dataset:
    """More and longer entries of every kind than a page has room for."""
    opening = {"days": ["Monday"], "opens": "08:00", "closes": "18:00"}
    question = {"question": HUGE, "answer": HUGE, "review_ids": []}
    entities = {}
    for kind, found in INSIGHTS_FILE["entities"].items():
        entities[kind] = found * 30
    document = a_file(
        *(huge_review(f"{number}") for number in range(30)),
        business={
            "name": HUGE,
            "description": HUGE,
            "service_areas": ["Upton"] * 500,
            "hours": [opening] * 20,
        },
    )
    insights = INSIGHTS_FILE | {
        "aspects": INSIGHTS_FILE["aspects"] * 30,
        "topics": INSIGHTS_FILE["topics"] * 30,
        "entities": entities,
        "faq": [question] * 100,
    }
    return dataset_of(document, insights)


def huge_review(id: str) -> dict[str, Any]:
    return review(
        id,
        author=HUGE,
        text=HUGE,
        mentioned_services=[f"{HUGE[:800]}{number}" for number in range(70)],
        mentioned_technicians=[f"P{number}" for number in range(70)],
    )


@pytest.mark.parametrize(
    ("page", "dataset"),
    [
        pytest.param(home_page, huge_dataset(), id="a huge home page"),
        pytest.param(list_page, huge_dataset(), id="a huge list"),
        pytest.param(home_page, SAMPLE, id="the home page of the sample"),
    ],
)
def test_pages_stay_small_whatever_the_files_hold(
    page: Callable[[Dataset], str], dataset: Dataset
) -> None:
    assert len(page(dataset)) < 110_000


def test_what_models_read_is_small() -> None:
    assert len(llms(SAMPLE).encode()) <= 12 * 1024


def test_the_form_offers_twenty_subjects_of_a_kind() -> None:
    listed = list_page(huge_dataset())

    subjects = listed.partition('id="mentions"')[2].partition("</select>")[0]
    assert subjects.count('value="technicians/') == 20


@pytest.mark.parametrize(
    ("mark", "number"),
    [
        pytest.param("08:00", 14, id="opening hours"),
        pytest.param("Upton", 12, id="service areas"),
        pytest.param(" positive, ", 11, id="aspects, and the sentence above them"),
        pytest.param('"details"', 16, id="topics and questions"),
        pytest.param('scope="row"', 32, id="people and things, eight of a kind"),
        pytest.param("<article", 12, id="reviews"),
    ],
)
def test_the_home_page_has_so_many_of_each(mark: str, number: int) -> None:
    shown = home_page(huge_dataset()).partition("<body>")[2]

    assert shown.count(mark) == number


def test_data_for_search_engines_have_as_many_as_the_page() -> None:
    data = json.loads(raw(home_page(huge_dataset()), "script"))

    assert len(data["areaServed"]) == 12
    assert len(data["openingHoursSpecification"]) == 14


def count_at(dataset: Dataset, query_string: str) -> Any:
    """The number of reviews in the list with this query string."""
    pairs = parse_qsl(html.unescape(query_string))
    query = query_of_page(CONTRACT.list_parameters, pairs, lists.PAGE_SIZE)
    return in_any_order(dataset, query).frame["matched"]


# A figure that is a link, or stands beside one: "12 reviews", a bar of stars, a year, a
# row of people or services. The query string of the link, then the figure.
LINKED_COUNT = re.compile(
    r"""<a\ href="[^"]*/reviews\?([^"#]*)\#results">
    (?:
      ([\d,]+)\ (?:reviews?|mentions?|positive|negative)</a>
    |
      (?:(?!<a\ ).)*?
      (?:
        <span>([\d,]+)</span></a>
      |
        <small>([\d,]+)\ reviews?</small>
      |
        </th>\s*<td>[\d.–]+</td>\s*<td>([\d,]+)</td>
      )
    )""",
    re.DOTALL | re.VERBOSE,
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
    page = list_page(dataset, **unmatched) if unmatched else home_page(dataset)

    links = LINKED_COUNT.findall(page)

    assert len(links) == number
    for query_string, *counts in links:
        count = int("".join(counts).replace(",", ""))
        assert count_at(dataset, query_string) == count, query_string


def test_what_is_mentioned_most_comes_first() -> None:
    counts = {"a": None, "b": 0, "c": 5, "d": 10**10, "e": 5}
    entries = [{"id": id, "mention_count": count} for id, count in counts.items()]

    shown = figures.by_mentions(entries, 3)

    assert [entry["id"] for entry in shown] == ["d", "c", "e"]


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

    chart = trend(monthly)

    assert chart is not None
    assert asdict(chart) == {
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
    [
        pytest.param(FOUR_MONTHS[1:], id="nine reviews"),
        pytest.param(TWO_MONTHS, id="two months"),
        pytest.param([], id="none"),
    ],
)
def test_less_than_three_months_or_ten_reviews_make_no_chart(monthly: Any) -> None:
    assert trend(monthly) is None


def test_equal_ratings_and_a_repeated_month_make_a_chart() -> None:
    chart = trend(TWO_MONTHS[:1] + TWO_MONTHS)

    assert chart is not None
    assert [stars for stars, _ in chart.levels] == [4, 5]


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
QUOTING = dataset_of(
    REVIEWS_FILE, INSIGHTS_FILE | {"pull_quote": "„Fresh“ is what it is."}
)
CLINIC = dataset_of(a_file(business={"name": "x", "schema_type": "MedicalClinic"}))
ODD_LINK = "reviews?query=a%26b%3D%23%CE%B1%3F&amp;min_rating=4"
EIGHT = "a b c d e f g h"
ONLY_EIGHT = "Only the first 8 words were searched for."


@pytest.mark.parametrize(
    ("page", "dataset", "values", "text", "is_shown"),
    [
        pytest.param(
            list_page,
            ONE_OF_TWO,
            {"query": "1"},
            "1 review · Words: 1<",
            True,
            id="one match",
        ),
        pytest.param(
            list_page,
            ONE_OF_TWO,
            {"query": "good"},
            "2 reviews · Words: good<",
            True,
            id="several matches",
        ),
        pytest.param(
            list_page,
            many(21),
            {"offset": 20},
            '<link rel="prev"',
            True,
            id="a later page leads back",
        ),
        pytest.param(
            list_page,
            many(21),
            {},
            '<link rel="prev"',
            False,
            id="the first page leads nowhere back",
        ),
        pytest.param(
            list_page,
            SAMPLE,
            {"query": "a&b=#\N{GREEK SMALL LETTER ALPHA}?", "min_rating": 4.0},
            ODD_LINK,
            True,
            id="odd letters in links",
        ),
        pytest.param(
            list_page,
            SAMPLE,
            {"query": "zzz yyy", "source": "nowhere"},
            "Similar searches",
            False,
            id="no other search where two filters fail",
        ),
        pytest.param(
            list_page, SAMPLE, {"query": EIGHT}, ONLY_EIGHT, False, id="eight words"
        ),
        pytest.param(
            list_page,
            SAMPLE,
            {"query": f"{EIGHT} i"},
            ONLY_EIGHT,
            True,
            id="a ninth word",
        ),
        pytest.param(
            list_page,
            NAMED,
            {},
            f'<option value="technicians/{LONG_NAME}"',
            True,
            id="the longest name offered",
        ),
        pytest.param(
            list_page,
            NAMED,
            {},
            '<option value="technicians/mm',
            False,
            id="a longer name is not offered",
        ),
        pytest.param(
            list_page,
            NAMED,
            {},
            '<option value="services/no_label">no_label</option>',
            True,
            id="a service without a label",
        ),
        pytest.param(
            invalid_list_page,
            SAMPLE,
            {"query": "\udcff"},
            'value="\N{REPLACEMENT CHARACTER}"',
            True,
            id="half a pair of surrogates",
        ),
        pytest.param(
            review_page, ONE_OF_TWO, {}, "Other reviews", True, id="other reviews"
        ),
        pytest.param(
            review_page, many(1), {}, "Other reviews", False, id="the only review"
        ),
        pytest.param(review_page, WHOLE, {}, "Long. " * 999, True, id="a whole text"),
        pytest.param(review_page, WHOLE, {}, "LONG. " * 999, True, id="a whole reply"),
        pytest.param(
            home_page,
            many(13),
            {},
            ">All 13 reviews<",
            True,
            id="more reviews than shown",
        ),
        pytest.param(
            home_page, many(12), {}, ">All 12 ", False, id="as many reviews as shown"
        ),
        pytest.param(
            home_page,
            reviews_of("w" * 19),
            {},
            LEAD,
            False,
            id="a text too short to lead",
        ),
        pytest.param(
            home_page,
            reviews_of("w" * 20),
            {},
            LEAD,
            True,
            id="a text long enough to lead",
        ),
        pytest.param(
            home_page,
            reviews_of("w" * 280),
            {},
            f"<p>{'w' * 280}</p>",
            True,
            id="a lead as long as may be",
        ),
        pytest.param(
            home_page,
            reviews_of("w" * 281),
            {},
            f"<p>{'w' * 279}…</p>",
            True,
            id="a longer lead is cut",
        ),
        pytest.param(home_page, UNRATED, {}, "<td>–</td>", True, id="no rating"),
        pytest.param(llms, UNRATED, {}, r"- A\*b: 3", True, id="no rating in llms.txt"),
        pytest.param(
            home_page, ELSEWHERE, {}, ", elsewhere", True, id="another website"
        ),
        pytest.param(
            home_page, many(1), {}, ", elsewhere", False, id="no other website"
        ),
        pytest.param(
            home_page,
            SAMPLE,
            {},
            'class="pull-quote customer-words"',
            True,
            id="a quotation gets marks",
        ),
        pytest.param(
            home_page,
            QUOTING,
            {},
            'class="pull-quote unmarked customer-words"',
            True,
            id="a quotation that begins with a mark gets none",
        ),
        pytest.param(
            home_page, CLINIC, {}, '"@type":"MedicalClinic"', True, id="a narrower type"
        ),
    ],
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
    reply = {"text": "x", "date": "2026-02-01T00:00:00Z"}
    replied = review("c", date="2026-01-03", owner_reply=reply)
    dataset = dataset_of(a_file(review("a&b"), replied))

    text = crawlers.sitemap(site(dataset), limit=1).decode()

    found = re.findall("<loc>(.*?)</loc><lastmod>(.*?)</lastmod>", text)
    assert found == [
        (URLS.home, "2026-02-01"),
        (f"{URLS.home}reviews", "2026-02-01"),
        (f"{URLS.home}reviews/c", "2026-02-01"),
    ]


STRANGE = service_urls("https://reviews.example/a'b&c")


def commands_of_the_page() -> list[str]:
    """The curl lines of the home page of a service with a strange address."""
    code = html.unescape(raw(html_page(site(SAMPLE, STRANGE)).decode(), "code"))
    return re.findall(r"curl .*?(?=curl |claude )", code)


def test_a_shell_reads_every_curl_line_as_it_is_meant() -> None:
    commands = [shlex.split(line) for line in commands_of_the_page()]

    assert all(url.startswith(STRANGE.home) for _, url, *_ in commands)
    posted = [url for _, url, *options in commands if options]
    assert posted == [STRANGE.mcp, STRANGE.hub]


def test_models_read_the_curl_lines_of_the_page() -> None:
    shown = "".join(commands_of_the_page())

    lines = curl_lines(llms_text(site(SAMPLE, STRANGE)).decode())

    assert lines
    assert [line for line in lines if line not in shown] == []


def test_no_example_for_a_terminal_prints_the_pages_of_the_list() -> None:
    commands = curl_lines(llms_text(site(SAMPLE)).decode())

    assert commands
    assert [line for line in commands if line.endswith(URLS.review_list)] == []


def test_no_document_mentions_a_hub_that_is_turned_off() -> None:
    quiet = replace(URLS, hub="")

    texts = [
        html_page(site(SAMPLE, quiet)),
        llms_text(site(SAMPLE, quiet)),
        crawlers.robots_text(quiet),
    ]

    assert [text for text in texts if re.search(rb"websub|hub\.", text)] == []
