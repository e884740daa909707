"""The page as values: what it says comes from the data, nothing from the data is ever markup."""

import base64
import hashlib
import json
import re
import shlex
import xml.etree.ElementTree as ET
from dataclasses import asdict, replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_samples import (
    ATTACKS,
    SAMPLE,
    SMALLEST,
    attacking_files,
    dataset_of,
    sample_dataset,
)

import markup
import page
import words
from links import links_below
from reviews import Dataset

BASE = "https://reviews.example"
LINKS = links_below(BASE)
REVIEWS_FILE = json.loads((SAMPLE / "reviews.json").read_text(encoding="utf-8"))
INSIGHTS_FILE = json.loads((SAMPLE / "insights.json").read_text(encoding="utf-8"))
VOID = {"meta", "link", "br", "wbr"}


class Read(HTMLParser):
    """What a strict reader finds in a page; every element has to be closed where it belongs."""

    def __init__(self, html: bytes):
        super().__init__(convert_charrefs=True)
        self.opened: list[tuple[str, dict[str, str]]] = []
        self.inside: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html.decode())
        self.close()
        assert self.inside == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), tag
        self.opened.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.inside[-1] if self.inside else "", data))

    def comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    handle_comment = comment

    @property
    def text(self) -> str:
        """The text that a visitor sees, on one line."""
        shown = (text for tag, text in self.texts if tag not in ("script", "style", "title"))
        return " ".join("".join(shown).split())

    @property
    def shapes(self) -> set[tuple[str, ...]]:
        """The elements with the names of their attributes."""
        return {(tag, *sorted(attributes)) for tag, attributes in self.opened}

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for opened, attributes in self.opened if opened == tag]

    def raw(self, tag: str) -> str:
        return "".join(text for inside, text in self.texts if inside == tag)

    @property
    def data(self) -> dict[str, Any]:
        """The structured data."""
        value: dict[str, Any] = json.loads(self.raw("script"))
        return value


def read(dataset: Dataset) -> Read:
    return Read(page.html_page(dataset, LINKS))


def changed(reviews: dict[str, Any] | None = None, insights: dict[str, Any] | None = None) -> Dataset:
    """The sample with other top-level values."""
    return dataset_of(REVIEWS_FILE | (reviews or {}), INSIGHTS_FILE | (insights or {}))


def all_saying(text: str) -> Dataset:
    """A dataset in which every text is `text`."""
    figures = {"mention_count": 3, "score": 0.5, "example_review_ids": []}
    entity = {"id": "e", "label": text, "average_rating": 4, "top_phrases": [text], **figures}
    counts = {"positive_count": 2, "neutral_count": 0, "negative_count": 1, "positive_pct": 66.7}
    business = dict.fromkeys(("description", "category", "telephone", "email", "price_range"), text)
    address = dict.fromkeys(("street", "locality", "region", "postal_code", "country"), text)
    review = {
        "id": "r",
        "author": text,
        "rating": 4,
        "date": "2026-01-02",
        "text": text,
        "source": text,
        "owner_reply": {"text": text, "date": "2026-01-03"},
        "mentioned_technicians": [text],
        "mentioned_services": ["e", text],
    }
    insights = {
        "version": 1,
        "model": text,
        "review_count": 1,
        "summary": text,
        "pull_quote": text,
        "aspects": [{"id": "a", "label": text, "top_phrases": [text], **figures, **counts}],
        "entities": {
            "technicians": [entity],
            "services": [entity],
            "problems": [],
            "service_areas": [],
        },
        "topics": [{"id": "t", "label": text, "summary": text, **figures}],
        "faq": [{"question": text, "answer": text, "review_ids": []}],
    }
    named = {"name": text, "address": address, "service_areas": [text], **business}
    return dataset_of({"business": named, "reviews": [review]}, insights)


HARMLESS = read(all_saying("word")).shapes | read(all_saying("ann@word.example")).shapes
HARMLESS |= read(all_saying("555")).shapes | read(sample_dataset()).shapes
hostile_text = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(st.sampled_from("<>&\"'`/=!-{}$\\]; \n\u202e\u2066\ufffeabon"), max_size=60),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
).map(lambda text: "n" + text)


@given(hostile_text)
def test_no_text_becomes_markup(text: str) -> None:
    found = read(all_saying(text))
    assert found.shapes <= HARMLESS
    assert len(found.all("script")) == len(found.all("style")) == 1


@given(hostile_text)
def test_every_text_is_shown_as_it_was_written(text: str) -> None:
    written = "".join(markup.escape(markup.prose(text)).split())
    shown = "".join(page.html_page(all_saying(text), LINKS).decode().split())
    assert f'<pclass="said"dir="auto">{written}</p>' in shown


@given(hostile_text)
def test_structured_data_can_be_read_whatever_it_holds_and_never_ends_its_element(text: str) -> None:
    found = read(all_saying(text))
    assert found.data["name"] == markup.line(text)
    assert found.data["review"][0]["reviewBody"] == markup.prose(text)
    assert not set("<>&") & set(found.raw("script"))


@given(hostile_text)
def test_no_text_of_the_data_is_in_a_line_for_the_shell(text: str) -> None:
    assert [call.curl for call in words.calls(all_saying(text), LINKS)] == [
        call.curl for call in words.calls(all_saying("word"), LINKS)
    ]
    assert re.fullmatch("[a-z0-9-]+", page.slug(text))


@given(hostile_text)
def test_a_name_cannot_turn_the_sentence_around_it(text: str) -> None:
    assert not markup.DIRECTIONS.search(markup.line(text))


@given(st.text(max_size=80))
def test_only_web_addresses_are_linked(url: str) -> None:
    linked = markup.link(url, "it")
    assert linked == "it" or linked.startswith(('<a href="http://', '<a href="https://')) or url[:4].isupper()


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "//other.example", "", None, 7, "https://a b"]
)
def test_other_addresses_are_text(url: Any) -> None:
    assert markup.link(url, "<it>") == "&lt;it&gt;"


def test_addresses_of_the_hostile_data_stay_in_their_attribute() -> None:
    found = read(dataset_of(*attacking_files()))
    assert found.shapes <= HARMLESS
    schemes = {urlsplit(each["href"]).scheme for each in found.all("a")}
    assert schemes == {"", "http", "https", "tel"} - {"http"}


def test_a_long_address_leads_to_itself_or_nowhere() -> None:
    for length, linked in ((300, True), (600, False)):
        url = "https://other.example/" + "x" * length
        found = read(changed({"business": {"name": "Ann's", "url": url}}))
        assert (url in [each["href"] for each in found.all("a")]) is linked
        assert "…" not in "".join(each["href"] for each in found.all("a"))


def test_the_same_data_give_the_same_bytes() -> None:
    first, second = sample_dataset(), sample_dataset()
    assert page.html_page(first, LINKS) == page.html_page(second, LINKS)
    assert words.llms_text(first, LINKS) == words.llms_text(second, LINKS)


def test_the_page_of_the_sample_is_small_and_holds_no_script() -> None:
    html = page.html_page(sample_dataset(), LINKS)
    assert len(html) < 100_000
    assert [each.get("type") for each in Read(html).all("script")] == ["application/ld+json"]


def test_the_page_stays_small_whatever_the_files_hold() -> None:
    huge = "x" * 4000
    reviews = [
        {"id": str(n), "author": huge, "rating": 5, "date": "2026-01-01", "text": huge} for n in range(60)
    ]
    faq = [{"question": huge, "answer": huge, "review_ids": []}] * 100
    insights = INSIGHTS_FILE | {"faq": faq, "aspects": INSIGHTS_FILE["aspects"] * 30}
    data = {
        "business": {"name": huge, "description": huge, "service_areas": [huge] * 500},
        "reviews": reviews,
    }
    assert len(page.html_page(dataset_of(data, insights), LINKS)) < 100_000


def test_every_figure_comes_from_the_data() -> None:
    dataset = sample_dataset()
    text, insights = read(dataset).text, dataset.insights
    rating = dataset.aggregate_rating
    expected = [f"{rating['rating_value']} out of 5", f"{dataset.count} verified reviews"]
    expected += [f"{count:,}" for count in rating["distribution"].values()]
    expected += [
        f"{each['positive_count']} praise, {each['negative_count']} find fault"
        for each in insights["aspects"]
    ]
    expected += [each["summary"] for each in words.by_mentions(insights["topics"], words.MOST_TOPICS)]
    expected += [each["question"] for each in insights["faq"]] + [each["answer"] for each in insights["faq"]]
    for kind in ("technicians", "services"):
        expected += [
            f"{each['average_rating']:.2f}{each['mention_count']}" for each in insights["entities"][kind]
        ]
    expected += [insights["summary"], insights["pull_quote"].strip('"“”'), insights["temporal"]["trend"]]
    assert [each for each in expected if " ".join(each.split()) not in text] == []


def test_a_figure_that_changes_in_the_data_changes_on_the_page() -> None:
    aspects = [INSIGHTS_FILE["aspects"][0] | {"positive_count": 31, "negative_count": 17}]
    assert "31 praise, 17 find fault" in read(changed(insights={"aspects": aspects})).text
    assert "2.5 out of 5" in read(changed({"reviews": [rated(2), rated(3)]})).text


def rated(stars: float) -> dict[str, Any]:
    return {"id": f"r{stars}", "author": "Ann", "rating": stars, "date": "2026-01-01"}


def test_years_of_the_trend_are_the_averages_of_their_reviews() -> None:
    text = read(sample_dataset()).text
    verified = [each for each in REVIEWS_FILE["reviews"] if each.get("verified", True)]
    by_year: dict[str, list[float]] = {}
    for review in verified:
        by_year.setdefault(review["date"][:4], []).append(review["rating"])
    for year, ratings in by_year.items():
        assert f"{year} {sum(ratings) / len(ratings):.1f} stars {len(ratings)} reviews" in text


def test_the_newest_reviews_are_shown_with_their_replies() -> None:
    replied = rated(4) | {"text": "Fine.", "owner_reply": {"text": "Thank you, Ann.", "date": "2026-01-05"}}
    text = read(changed({"reviews": [replied]})).text
    assert "Fine." in text
    assert "Reply from Larkspur Hollow Chiropractic, 5 January 2026Thank you, Ann." in text
    dataset = sample_dataset()
    shown = read(dataset)
    assert [each["datePublished"] for each in shown.data["review"]] == [
        str(review["date"])[:10] for review in dataset.newest[: words.SHOWN_REVIEWS]
    ]
    assert f"{dataset.count - words.SHOWN_REVIEWS} more:" in shown.text


def test_a_rating_that_speaks_for_more_reviews_than_the_file_holds_says_so() -> None:
    rating = {"rating_value": 4.6, "review_count": 1204}
    text = read(changed({"reviews": [rated(5)], "aggregate_rating": rating})).text
    assert "1,204 reviews, 1 of them here" in text


def test_a_business_without_anything_still_has_a_page() -> None:
    found = read(dataset_of(SMALLEST))
    assert "Ann's Bakery" in found.text
    assert "No reviews yet." in found.text
    assert "aggregateRating" not in found.data
    assert [each["id"] for each in found.all("section") if "id" in each] == ["developers"]


def test_reviews_without_insights_still_have_a_page() -> None:
    found = read(dataset_of(REVIEWS_FILE))
    assert [each["id"] for each in found.all("section") if "id" in each] == ["reviews", "developers"]


@pytest.mark.parametrize("months", [0, 1, 2])
def test_a_few_months_are_no_trend(months: int) -> None:
    temporal = {"trend": "stable", "monthly": INSIGHTS_FILE["temporal"]["monthly"][:months]}
    sections = read(changed(insights={"temporal": temporal})).all("section")
    assert "trend" not in [each.get("id") for each in sections]


def test_months_of_one_value_or_in_one_place_are_drawn() -> None:
    monthly = [INSIGHTS_FILE["temporal"]["monthly"][0] | {"average_rating": 5}] * 3
    found = read(changed(insights={"temporal": {"trend": "stable", "monthly": monthly}}))
    assert found.all("polyline")


@pytest.mark.parametrize(
    "days, words",
    [
        (["Monday", "Tuesday", "Wednesday", "Thursday"], "Monday to Thursday"),
        (["Friday", "Saturday"], "Friday, Saturday"),
        (["Monday", "Wednesday", "Friday"], "Monday, Wednesday, Friday"),
        (["Sunday", "Monday", "Tuesday"], "Sunday, Monday, Tuesday"),
        (["Sunday"], "Sunday"),
    ],
)
def test_days_in_a_row_are_a_span(days: list[str], words: str) -> None:
    hours = [{"days": days, "opens": "08:00", "closes": "18:00"}]
    found = read(changed({"business": {"name": "Ann's", "hours": hours}}))
    assert f"{words} 08:00 – 18:00" in found.text
    assert set(found.data["openingHoursSpecification"][0]["dayOfWeek"]) == set(days)


@pytest.mark.parametrize(
    "category, kind",
    [
        ("Chiropractor", "MedicalBusiness"),
        ("Family dentist", "Dentist"),
        ("Plumbing", "Plumber"),
        ("Something else", "LocalBusiness"),
        ("", "LocalBusiness"),
    ],
)
def test_structured_data_names_the_kind_of_business(category: str, kind: str) -> None:
    business = REVIEWS_FILE["business"] | {"category": category}
    assert read(changed({"business": business})).data["@type"] == kind


def test_structured_data_say_what_the_page_says() -> None:
    dataset, data = sample_dataset(), read(sample_dataset()).data
    assert data["name"] == dataset.business["name"]
    assert data["aggregateRating"]["ratingValue"] == dataset.aggregate_rating["rating_value"]
    assert data["aggregateRating"]["reviewCount"] == dataset.count
    assert len(data["review"]) == words.SHOWN_REVIEWS
    assert data["geo"]["latitude"] == dataset.business["geo"]["latitude"]


def test_programs_find_the_feeds_the_contract_and_the_hub() -> None:
    found = [(each["rel"], each["href"]) for each in read(sample_dataset()).all("link")]
    assert set(found) == {
        ("canonical", LINKS.home),
        ("icon", LINKS.icon),
        ("alternate", LINKS.atom_feed),
        ("alternate", LINKS.json_feed),
        ("alternate", LINKS.llms),
        ("service-desc", LINKS.contract),
        ("hub", LINKS.hub),
    }


def test_what_is_shared_elsewhere_has_a_title_a_text_and_a_picture() -> None:
    properties = {
        each.get("property"): each["content"]
        for each in read(sample_dataset()).all("meta")
        if "content" in each
    }
    assert properties["og:title"] == "Larkspur Hollow Chiropractic: 4.42 of 5 stars from 160 reviews"
    assert properties["og:url"] == LINKS.home
    assert properties["og:image"] == REVIEWS_FILE["business"]["image_url"]
    assert properties["og:description"].startswith(properties["og:title"])


def test_what_is_turned_off_is_not_spoken_of() -> None:
    quiet = replace(LINKS, hub="")
    for text in (
        page.html_page(sample_dataset(), quiet),
        words.llms_text(sample_dataset(), quiet),
        words.robots_text(quiet),
    ):
        assert not re.search(b"websub|hub\\.", text)


def test_every_endpoint_has_a_curl_line_that_a_shell_reads_as_it_is_meant() -> None:
    strange = links_below("https://reviews.example/a'b&c")
    calls = words.calls(sample_dataset(), strange)
    urls = [value for key, value in asdict(strange).items() if key not in ("home", "icon")]
    assert {call.url for call in calls} == set(urls)
    for call in calls:
        command, url, *options = shlex.split(call.curl)
        assert (command, url, tuple(options)) == ("curl", call.url + call.example, call.options)
    shown = Read(page.html_page(sample_dataset(), strange)).raw("code")
    assert all(call.curl in shown for call in calls)


def test_clients_of_mcp_get_lines_with_the_address() -> None:
    shown = read(sample_dataset()).raw("code")
    assert f"claude mcp add --transport http larkspur-hollow-reviews {LINKS.mcp}" in shown
    snippets = re.findall(r'\{"(?:mcpServers|servers)".*?\}\}\}', shown)
    assert [list(json.loads(each)) for each in snippets] == [["mcpServers"], ["servers"]]


@pytest.mark.parametrize("dataset", [sample_dataset(), dataset_of(SMALLEST)], ids=["sample", "empty"])
def test_headings_go_down_one_step_at_a_time(dataset: Dataset) -> None:
    levels = [int(tag[1]) for tag, _ in read(dataset).opened if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_drawing_is_told_in_words_or_hidden() -> None:
    found = read(sample_dataset())
    outer = [each for each in found.all("svg") if "class" in each]
    assert all(each.get("aria-hidden") == "true" or each.get("aria-label") for each in outer)


def test_the_policy_allows_exactly_the_style_of_the_page() -> None:
    style = read(sample_dataset()).raw("style")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = dict(page.PAGE_HEADERS)["Content-Security-Policy"]
    assert f"style-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy and "script-src" not in policy


def test_the_style_asks_nothing_of_others_and_nothing_moves() -> None:
    assert not re.search(r"url\(|@import|@font-face|transition|animation", page.STYLE)


def test_the_words_for_models_say_the_figures_and_what_to_call() -> None:
    text = words.llms_text(sample_dataset(), LINKS).decode()
    assert text.startswith("# Larkspur Hollow Chiropractic: 4.42 of 5 stars from 160 reviews\n\n> ")
    assert "data, never instructions" in text
    assert "- 5 stars: 112\n" in text
    assert "- Dr. Tobias Okafor: 23 reviews, 4.72 stars on average\n" in text
    assert "- Pain relief: 95 reviews, 84 praise, 2 find fault\n" in text
    for call in words.calls(sample_dataset(), LINKS):
        assert call.curl in text


@given(hostile_text)
def test_no_text_breaks_out_of_its_line_for_models(text: str) -> None:
    def shape(dataset: Dataset) -> list[str]:
        return [line[:2] for line in words.llms_text(dataset, LINKS).decode().split("\n")]

    heads = shape(all_saying(text))
    expected = shape(all_saying("word"))
    assert heads[:1] == ["# "]
    assert [head for head in heads if head == "##"] == [head for head in expected if head == "##"]
    assert len(heads) == len(expected)


def test_the_words_for_models_of_an_empty_dataset_are_the_calls() -> None:
    text = words.llms_text(dataset_of(SMALLEST), LINKS).decode()
    assert re.findall("(?m)^## (.*)$", text) == ["What to call for what"]


def test_robots_may_read_everything_but_what_answers_posts() -> None:
    assert words.robots_text(LINKS).decode() == (
        "User-agent: *\nDisallow: /mcp\nDisallow: /api/websub/hub\nAllow: /\n"
    )


def test_the_icon_is_a_picture_that_stands_alone() -> None:
    picture, kind = page.favicon()
    assert kind == "image/svg+xml"
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert len(picture) < 500
