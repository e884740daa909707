"""The page and the texts for models: all they say comes from the data, nothing from the data is markup."""

import base64
import hashlib
import html
import json
import re
import shlex
import xml.etree.ElementTree as ET
from dataclasses import asdict, replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import jinja2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from page_samples import (
    ATTACKS,
    CONTRACT,
    LINKS,
    ROOT,
    SMALLEST,
    attacking_files,
    dataset_of,
    files_saying,
    sample_dataset,
)

from reviewslib.dataset.query import BadQuery, Query, query_of_page
from reviewslib.dataset.reviews import Dataset, search
from reviewslib.links import Links, links_below
from reviewslib.web import embed, feeds, pages

TEMPLATES = pages.load_templates(ROOT / "reviewslib" / "web" / "templates")
SAMPLE = sample_dataset()
REVIEWS_FILE = json.loads((ROOT / "data" / "reviews.json").read_text(encoding="utf-8"))
INSIGHTS_FILE = json.loads((ROOT / "data" / "insights.json").read_text(encoding="utf-8"))


class Read(HTMLParser):
    """What a strict reader finds in a page; every element has to be closed where it belongs."""

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
        self.sections = [each["id"] for each in self.all("section") if "id" in each]
        self.data = json.loads(self.raw("script") or "null")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), tag
        self.opened.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "link", "br", "wbr", "input", "img", "base"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_decl(self, decl: str) -> None:
        assert (decl, self.opened) == ("doctype html", [])

    def handle_data(self, data: str) -> None:
        self.texts.append((self.inside[-1] if self.inside else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for opened, attributes in self.opened if opened == tag]

    def raw(self, tag: str) -> str:
        return "".join(text for inside, text in self.texts if inside == tag)


def html_page(dataset: Dataset, links: Links = LINKS) -> str:
    return pages.html_page(TEMPLATES, dataset, links).decode()


def read(dataset: Dataset, links: Links = LINKS) -> Read:
    return Read(html_page(dataset, links))


def llms(dataset: Dataset, links: Links = LINKS) -> str:
    return pages.llms_text(TEMPLATES, dataset, links).decode()


def list_page(dataset: Dataset, number: int = 1, links: Links = LINKS, **filters: Any) -> str:
    """A page of the reviews that pass these filters."""
    query = Query(limit=pages.PAGE_SIZE, offset=(number - 1) * pages.PAGE_SIZE, **filters)
    return pages.list_page(TEMPLATES, dataset, links, query, search(dataset, query)).decode()


def wrong_list_page(dataset: Dataset, **given: str) -> str:
    """The form, filled in with these values, which are wrong."""
    with pytest.raises(BadQuery) as refusal:
        query_of_page(CONTRACT.list_parameters, list(given.items()), pages.PAGE_SIZE)
    return pages.wrong_list_page(TEMPLATES, dataset, LINKS, list(given.items()), refusal.value).decode()


def review_page(dataset: Dataset, at: int = 0) -> str:
    return pages.review_page(TEMPLATES, dataset, LINKS, dataset.reviews[at]).decode()


def frame(dataset: Dataset) -> str:
    """The frame for the owner's website, with as many reviews as it may have."""
    subjects = {"mentions_service": None, "mentions_technician": None}
    return embed.frame(TEMPLATES, dataset, LINKS, limit=10, theme="auto", **subjects).decode()


def pages_of_reviews(dataset: Dataset, text: str) -> list[str]:
    """Every kind of page but the first, the form filled in with `text`."""
    listed = list_page(dataset, query=text, mentions_technician=text, mentions_service=text)
    wrong = wrong_list_page(dataset, rating="x" + text, query=text, until=text + "x", min_rating="y" + text)
    return [list_page(dataset), listed, wrong, review_page(dataset), frame(dataset)]


def changed(reviews: dict[str, Any] | None = None, insights: dict[str, Any] | None = None) -> Dataset:
    """The sample with other top-level values."""
    return dataset_of(REVIEWS_FILE | (reviews or {}), INSIGHTS_FILE | (insights or {}))


def of_business(**known: Any) -> Dataset:
    """The sample with a business of which only this is known."""
    return changed({"business": {"name": "Ann's", **known}})


def rated(stars: float, **given: Any) -> dict[str, Any]:
    return {"id": f"r{stars}", "author": "Ann", "rating": stars, "date": "2026-01-01"} | given


def curl_lines(text: str) -> list[str]:
    """The commands in llms.txt."""
    return re.findall("`(curl .*)`$", text, re.MULTILINE)


# ---- Text of the data ----

TAME = [SAMPLE, *(dataset_of(*files_saying(text)) for text in ("word", "ann@word.example", "555"))]
HARMLESS = set().union(*(read(dataset).shapes for dataset in TAME))
hostile_text = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(st.sampled_from("<>&\"'`/=!-{}%#$\\]; \n\u202e\u2066\ufffeabon"), max_size=60),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
).map(lambda text: "n" + text)


@given(hostile_text)
@example("n" + ATTACKS[1] + ATTACKS[4] + ATTACKS[11])
def test_no_text_becomes_markup_and_every_text_is_shown_as_it_was_written(text: str) -> None:
    document = html_page(dataset_of(*files_saying(text)))
    found = Read(document)
    assert found.shapes <= HARMLESS
    assert len(found.all("script")) == len(found.all("style")) == 1
    assert not set("<>&") & set(found.raw("script"))
    assert (found.data["name"], found.data["description"]) == (pages.one_line(text), pages.paragraphs(text))
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", found.data["name"])  # it would turn a sentence
    (shown,) = re.findall('<p class="customer-words" dir="auto">([^<]*)</p>', document)
    assert html.unescape(shown) == pages.FORBIDDEN.sub("", pages.paragraphs(text))
    assert not pages.FORBIDDEN.search(re.sub("<script.*?</script>", "", document))


HARMLESS_PAGES = [
    set().union(
        *(Read(pages_of_reviews(dataset, text)[at]).shapes for dataset in TAME for text in ("word", "zzz"))
    )
    for at in range(5)
]


@given(hostile_text)
@example("n" + ATTACKS[1] + ATTACKS[4] + ATTACKS[11])
def test_no_text_becomes_markup_on_the_pages_of_reviews_or_in_their_form(text: str) -> None:
    for document, harmless in zip(
        pages_of_reviews(dataset_of(*files_saying(text)), text), HARMLESS_PAGES, strict=True
    ):
        found = Read(document)
        assert found.shapes <= harmless
        assert len(found.all("style")) == 1
        assert not found.all("script")
        assert not pages.FORBIDDEN.search(document)
        assert all(each["href"].startswith(("#", LINKS.base_url)) for each in found.all("a"))


@given(hostile_text)
@example("n" + ATTACKS[1] + ATTACKS[4] + ATTACKS[11])
def test_no_text_breaks_out_of_its_line_for_models_or_is_in_a_line_for_the_shell(text: str) -> None:
    told, tame = llms(dataset_of(*files_saying(text))), llms(TAME[1])
    assert re.findall("(?m)^(?:[#>-].)?", told) == re.findall("(?m)^(?:[#>-].)?", tame)
    assert curl_lines(told) == curl_lines(tame)
    assert re.fullmatch("[a-z0-9-]+", pages.slug(text))


@given(st.text(max_size=80) | st.text(max_size=20).map("https://".__add__))
def test_only_web_addresses_are_linked(text: str) -> None:
    linked = pages.web_url(text)
    assert linked == "" or (linked == text and re.match("https?://.", text, re.IGNORECASE))


def test_addresses_of_the_hostile_data_stay_in_their_attribute() -> None:
    found = read(dataset_of(*attacking_files()))
    assert found.shapes <= HARMLESS
    assert {urlsplit(each["href"]).scheme for each in found.all("a")} == {"", "https", "tel"}


def test_text_is_one_line_or_lines_of_a_length_without_what_html_forbids_or_turns_around() -> None:
    text = " a\0\u202eb\r\nc\rd\n "
    assert (pages.one_line(text), pages.paragraphs(text)) == ("a b c d", "a\0\u202eb\nc\nd")
    assert pages.one_line(None) == pages.paragraphs(None) == ""
    assert [pages.one_line("x" * length) for length in (80, 81)] == ["x" * 80, "x" * 79 + "…"]
    assert [pages.paragraphs("x" * length) for length in (1000, 1001)] == ["x" * 1000, "x" * 999 + "…"]
    assert pages.one_line("ab cd", 4) == "ab…"


def test_slugs_figures_and_addresses_are_plain_and_of_sensible_length() -> None:
    assert pages.markdown("\\`*_[]<>#|a") == r"\\\`\*\_\[\]\<\>\#\|a"
    assert pages.slug("ab " + "C" * 31 + " d") == "c" * 31 + "-reviews"
    assert pages.slug("É!") == "reviews"
    assert [pages.format_rating(rating) for rating in (4.486, 4.5, 5.0)] == ["4.49", "4.5", "5"]
    counted = [pages.count_text(count, "review") for count in (None, 1, 1204, 10**10)]
    assert counted == ["0 reviews", "1 review", "1,204 reviews", "1,000,000,000 reviews"]
    assert [pages.mail_address(text) for text in ("a.b+c-d@e-f.g", "a@b@c")] == ["a.b+c-d@e-f.g", ""]
    others = ("javascript:alert(1)", "data:text/html,x", "//other.example", "https://a b", None, 7)
    assert not any(map(pages.web_url, [*others, "https://a/".ljust(501, "x")]))
    assert pages.web_url("https://a/".ljust(500, "x"))
    assert pages.mail_address("a@" + "b" * 198) and not pages.mail_address("a@" + "b" * 199)


def test_a_name_that_a_template_does_not_know_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        TEMPLATES.from_string("{{ unknown }}").render()


def test_templates_are_read_and_compiled_at_load_and_never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = pages.load_templates(ROOT / "reviewslib" / "web" / "templates")
    monkeypatch.setattr(loaded.loader, "get_source", None)
    for file in (ROOT / "reviewslib" / "web" / "templates").iterdir():
        if file.suffix != ".css":
            loaded.get_template(file.name)


# ---- The page ----


def test_pages_stay_small_whatever_the_files_hold() -> None:
    huge = "x" * 4000
    names = [f"{huge}{number}" for number in range(70)]
    review = rated(5, author=huge, text=huge, mentioned_services=names)
    review["mentioned_technicians"] = [f"P{number}" for number in range(70)]
    reviews = [review | {"id": f"{number}"} for number in range(30)]
    business = {"name": huge, "description": huge, "service_areas": ["Upton"] * 500}
    business["hours"] = [{"days": ["Monday"], "opens": "08:00", "closes": "18:00"}] * 20
    entities = {kind: entries * 30 for kind, entries in INSIGHTS_FILE["entities"].items()}
    insights = INSIGHTS_FILE | {kind: INSIGHTS_FILE[kind] * 30 for kind in ("aspects", "topics")}
    insights |= {"faq": [{"question": huge, "answer": huge, "review_ids": []}] * 100, "entities": entities}
    dataset = dataset_of({"business": business, "reviews": reviews}, insights)
    document = html_page(dataset)
    listed = list_page(dataset)
    assert max(map(len, (document, listed, html_page(SAMPLE)))) < 110_000
    people = listed.partition('id="mentions_technician"')[2].partition("</select>")[0]
    assert people.count("<option") == 1 + 60
    limits = {"08:00": 14, "Upton": 12, " praise, ": 10, '"details"': 16, 'scope="row"': 32, "<article": 12}
    shown = document.partition("<body>")[2]
    assert {each: shown.count(each) for each in limits} == limits
    data = Read(document).data
    assert (len(data["areaServed"]), len(data["openingHoursSpecification"])) == (12, 14)


def test_every_figure_comes_from_the_data() -> None:
    text, insights, rating = read(SAMPLE).text, SAMPLE.insights, SAMPLE.aggregate_rating
    expected = [f"{rating['rating_value']} out of 5", f"{len(SAMPLE.reviews)} verified customer reviews"]
    expected += [f"{count:,}" for count in rating["distribution"].values()]
    for aspect in insights["aspects"]:
        expected.append(f"{aspect['positive_count']} praise, {aspect['negative_count']} find fault")
    for entity in insights["entities"]["technicians"] + insights["entities"]["services"]:
        expected.append(f"{entity['average_rating']:.2f} {entity['mention_count']}")
    topics = sorted(insights["topics"], key=lambda topic: -topic["mention_count"])
    expected += [topic["summary"] for topic in topics[: pages.MOST_TOPICS]]
    expected += [entry[key] for entry in insights["faq"] for key in ("question", "answer")]
    expected += [insights["summary"], insights["pull_quote"].strip('"“”'), insights["temporal"]["trend"]]
    by_year: dict[str, list[float]] = {}
    for review in json.loads(SAMPLE.reviews_json)["reviews"]:
        by_year.setdefault(review["date"][:4], []).append(review["rating"])
    for year, ratings in by_year.items():
        expected.append(f"{year} {sum(ratings) / len(ratings):.1f} stars {len(ratings)} reviews")
    assert [each for each in expected if " ".join(each.split()) not in text] == []


def test_a_figure_that_changes_in_the_data_changes_on_the_page() -> None:
    assert "2.5 out of 5" in read(changed({"reviews": [rated(2), rated(3)]})).text
    more = {"rating_value": 4.6, "review_count": 1204}
    assert "1,204 reviews, 160 of them here" in read(changed({"aggregate_rating": more})).text
    absurd = {"id": "a", "label": "Absurd", "positive_count": 10**15, "negative_count": 17}
    text = read(changed(insights={"aspects": [absurd, {"id": "b", "label": "Absent"}]})).text
    assert "Absurd 1,000,000,000 praise, 17 find fault Absent 0 mentions" in text


def test_what_is_mentioned_most_comes_first_and_bars_of_aspects_share_one_axis() -> None:
    given = [("a", None), ("b", 0), ("c", 5), ("d", 10**10), ("e", 5)]
    entries = [{"id": id, "mention_count": count} for id, count in given]
    assert [entry["id"] for entry in pages.by_mentions(entries, 5)] == ["d", "c", "e", "a"]
    assert [entry["id"] for entry in pages.by_mentions(entries, 2)] == ["d", "c"]
    kinds = ("positive_count", "neutral_count", "negative_count")
    entries = [entries[2] | dict(zip(kinds, each, strict=True)) for each in ((2, 1, 4), (9, 2, 1))]
    assert pages.aspects(entries) == [
        entries[0] | {"bar": [("fault", 0, 4), ("praise", 4, 2), ("neutral", 6, 1)], "width": 15},
        entries[1] | {"bar": [("fault", 3, 1), ("praise", 4, 9), ("neutral", 13, 2)], "width": 15},
    ]
    assert pages.aspects([entries[0] | dict.fromkeys(kinds, 0)])[0]["width"] == 1
    assert pages.aspects([]) == []


def test_half_stars_count_in_the_bar_below_them() -> None:
    dataset = dataset_of(SMALLEST | {"reviews": [rated(stars) for stars in (5, 4.5, 4, 1.5)]})
    bars = [(5, 1, 1, 0), (4, 2, 1, 1), (3, 0, 0, 0), (2, 0, 0, 0), (1, 1, 0, 1)]
    assert pages.distribution(dataset) == bars


def test_the_chart_has_a_dot_for_each_month_a_line_of_averages_and_figures_by_year() -> None:
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


def test_the_chart_spans_sixty_months_and_what_was_before_fifteen_years_is_told_together() -> None:
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
    for shown, is_told in ((given, True), (given[-60:], False)):
        text = read(changed(insights={"temporal": {"trend": "stable", "monthly": shown}})).text
        assert "2022 2023 2024 2025 2026 Each dot" in text
        assert ("of the last five years" in text) is ("Before 2012" in text) is is_told


def test_the_newest_reviews_are_shown_with_their_replies() -> None:
    reply = {"text": "Thank you, Ann.", "date": "2026-01-05"}
    text = read(changed({"reviews": [rated(4, text="Fine.", owner_reply=reply), rated(1)]})).text
    assert "Fine. Reply from Larkspur Hollow Chiropractic, 5 January 2026 Thank you, Ann." in text
    assert "A rating without words." in text
    hrefs = {each["href"] for each in read(SAMPLE).all("a")}
    newest = {review["page_url"] for review in SAMPLE.newest}
    assert {review["page_url"] for review in SAMPLE.newest[:12]} == newest & hrefs
    assert LINKS.review_list in hrefs


def test_a_review_names_people_then_services_by_their_labels() -> None:
    services = {entry["id"]: entry["label"] for entry in INSIGHTS_FILE["entities"]["services"]}
    person = next(iter(services))  # no label, for it is a name here
    review = rated(4, mentioned_technicians=["Ann", person], mentioned_services=[*services])
    text = read(changed({"reviews": [review]})).text
    assert " ".join(["Ann", person, *list(services.values())[:4], "Asked"]) in text


@pytest.mark.parametrize("document, sections", [(SMALLEST, []), (REVIEWS_FILE, ["trend", "reviews"])])
def test_what_is_not_known_is_left_out(document: Any, sections: list[str]) -> None:
    found = read(dataset_of(document))
    assert document["business"]["name"] in found.text
    assert found.sections == [*sections, "developers"]
    assert ("drawn from 160 reviews on 15 November 2026 (counted" in found.text) is bool(sections)
    assert ("Trend: stable." in found.text) is bool(sections)
    assert ("No reviews yet." in found.text) is (document is SMALLEST)


def selections(found: Read) -> set[str]:
    """The query strings of the links to lists of reviews."""
    return {urlsplit(each["href"]).query for each in found.all("a") if "/reviews?" in each["href"]}


def test_everything_that_names_a_selection_leads_to_it() -> None:
    found = read(SAMPLE)
    stars = {f"rating={stars}" for stars in range(1, 6)}
    years = {f"since={year}-01-01&until={year}-12-31" for year in range(2022, 2027)}
    sources = {f"source={source}" for source in SAMPLE.sources}
    entities = SAMPLE.insights["entities"]
    people = {urlencode({"mentions_technician": each["label"]}) for each in entities["technicians"]}
    services = {f"mentions_service={each['id']}" for each in entities["services"]}
    assert selections(found) >= stars | years | sources | people | services
    for kind in ("problems", "service_areas"):  # no search selects by these
        assert all(each["label"] in found.text for each in entities[kind][:3])
        ids = [each["id"] for each in entities[kind]]
        assert not any(id in query for id in ids for query in selections(found) - services)
    mentions = {"mentioned_technicians": ["Ann & Bo"], "mentioned_services": ["massage-therapy", "x" * 500]}
    review = rated(4, source="yelp", **mentions)
    for document in (list_page(changed({"reviews": [review]})), review_page(changed({"reviews": [review]}))):
        own = {"mentions_technician=Ann+%26+Bo", "mentions_service=massage-therapy", "source=yelp"}
        assert own <= selections(Read(document)) and "x" * 500 not in document
    assert "source=unknown" not in html_page(changed({"reviews": [review, rated(5)]}))


@pytest.mark.parametrize("known", [{}, {"pull_quote": ' "“'}, {"summary": "Well."}, {"pull_quote": "Good!"}])
def test_without_a_quotation_the_first_screen_has_the_newest_review_in_words_and_the_search(
    known: dict[str, str],
) -> None:
    newest = [rated(1, id="b", text="Says something here.", date="2026-03-03"),
              rated(5, id="c", text="Says nothing there."), rated(4, id="d", date="2026-04-04")]  # fmt: skip
    for others in (0, 30):
        older = [rated(5, id=f"a{number:02}", date="2025-01-01") for number in range(others)]
        dataset = dataset_of({"business": {"name": "Ann's"}, "reviews": newest + older}, known)
        document, text = html_page(dataset), read(dataset).text
        is_quoted = known.get("pull_quote") == "Good!"
        assert document.count(newest[0]["text"]) == 1, "the list has the others"
        assert ("The newest review in words" in text) is not is_quoted
        assert ("Search all 33 reviews" in text) is (others > 0 and not is_quoted)
    if "summary" in known:
        assert text.index("Ann's") < text.index("Well.") < text.index("out of 5")


def test_the_first_screen_has_limits_of_length() -> None:
    for length in (19, 20, 280, 281):
        said = rated(5, text="w" * length)
        text = read(dataset_of({"business": {"name": "B"}, "reviews": [said]})).text
        assert ("The newest review in words" in text) == (length >= 20)
        assert ("w" * length in text) == (length <= 280)
    for length, size in ((48, "short"), (49, "long")):
        named = of_business(name="n" * length)
        assert f'class="{size}">' in html_page(named) and f'class="{size}">' in list_page(named)
    for length in (200, 201):
        assert ("q" * length in html_page(changed(insights={"pull_quote": "q" * length}))) == (length == 200)


SPANS = {
    "Monday, Tuesday, Wednesday": "Monday to Wednesday",
    "Friday, Saturday": "Friday, Saturday",
    "Monday, Wednesday, Friday": "Monday, Wednesday, Friday",
    "Sunday, Monday, Tuesday": "Sunday, Monday, Tuesday",
    "Sunday": "Sunday",
}


@pytest.mark.parametrize("days, span", SPANS.items())
def test_days_in_a_row_are_a_span(days: str, span: str) -> None:
    found = read(of_business(hours=[{"days": days.split(", "), "opens": "08:00", "closes": "18:00"}]))
    assert f"{span} 08:00 – 18:00" in found.text
    in_order = sorted(days.split(", "), key=pages.WEEK.index)
    assert found.data["openingHoursSpecification"][0]["dayOfWeek"] == in_order


def test_every_way_to_reach_the_business_is_a_link() -> None:
    ways = {"url": "https://ann.example/", "telephone": "+1 (360) 555-0142", "email": "ann@ann.example"}
    found = read(of_business(**ways, geo={"latitude": 1.5, "longitude": -2}))
    assert "ann.example+1 (360) 555-0142ann@ann.example" in found.text
    place = "https://www.openstreetmap.org/?mlat=1.500000&mlon=-2.000000#map=17"
    targets = {place, "https://ann.example/", "tel:+13605550142", "mailto:ann@ann.example"}
    assert targets <= {each["href"] for each in found.all("a")}


def test_structured_data_names_the_kind_of_business() -> None:
    kinds = {"Chiropractor": "MedicalBusiness", "Eye clinic": "MedicalClinic", "Family dentist": "Dentist"}
    kinds |= {"Veterinary": "VeterinaryCare", "Restaurant": "Restaurant", "Bakery": "Bakery"}
    kinds |= {"Hair": "HairSalon", "Plumbing": "Plumber", "Electrician": "Electrician"}
    kinds |= {"": "LocalBusiness", "Rehair": "LocalBusiness"}
    for category, kind in kinds.items():
        assert pages.structured_data({"name": "x", "category": category}, LINKS)["@type"] == kind


def test_structured_data_are_those_of_the_business_alone() -> None:
    least = {"@context": "https://schema.org", "@id": LINKS.home + "#business", "@type": "LocalBusiness"}
    assert read(dataset_of(SMALLEST)).data == least | {"name": "Ann's Bakery", "url": LINKS.home}
    known, hours = SAMPLE.business, {"@type": "OpeningHoursSpecification"}
    assert read(SAMPLE).data == least | {
        **{key: known[key] for key in ("name", "description", "url", "telephone", "email")},
        "@type": "MedicalBusiness",
        "image": known["image_url"],
        "priceRange": "$$",
        "address": {
            "@type": "PostalAddress",
            "streetAddress": "418 Tidegate Street, Suite 2",
            "addressLocality": "Port Ellery",
            "addressRegion": "OR",
            "postalCode": "97000",
            "addressCountry": "US",
        },
        "geo": {"@type": "GeoCoordinates", **known["geo"]},
        "areaServed": known["service_areas"],
        "openingHoursSpecification": [
            hours | {"dayOfWeek": each["days"], "opens": each["opens"], "closes": each["closes"]}
            for each in known["hours"]
        ],
    }


def test_programs_find_the_feeds_the_contract_the_hub_and_what_to_show_of_a_shared_link() -> None:
    found = read(SAMPLE)
    alternates = {("alternate", url) for url in (LINKS.atom_feed, LINKS.json_feed, LINKS.llms)}
    own = {("canonical", LINKS.home), ("icon", LINKS.icon)}
    others = {("service-desc", LINKS.contract), ("hub", LINKS.hub)}
    assert {(each["rel"], each["href"]) for each in found.all("link")} == alternates | own | others
    properties = {each.get("property"): each.get("content", "") for each in found.all("meta")}
    assert properties["og:title"] == "Larkspur Hollow Chiropractic: 4.42 of 5 stars from 160 reviews"
    assert properties["og:description"].startswith(properties["og:title"])
    assert properties["og:url"] == LINKS.home
    assert properties["og:image"] == REVIEWS_FILE["business"]["image_url"]


def test_what_is_turned_off_is_not_spoken_of() -> None:
    quiet = replace(LINKS, hub="")
    for text in (html_page(SAMPLE, quiet), llms(SAMPLE, quiet), pages.robots_text(quiet).decode()):
        assert not re.search(r"websub|hub\.", text)


def test_the_policy_allows_the_style_of_the_page_which_asks_nothing_of_others_and_no_script() -> None:
    found = read(SAMPLE)
    digest = base64.b64encode(hashlib.sha256(found.raw("style").encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    assert dict(pages.page_headers(TEMPLATES)) == {
        "Content-Security-Policy": policy,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "strict-origin-when-cross-origin",
    }
    assert [each["type"] for each in found.all("script")] == ["application/ld+json"]
    assert not re.search(r"url\(|@import|@font-face|transition|animation", found.raw("style"))


UNPROVEN = changed({"business": {"name": "Ann's"}})
POLICY, WRITE_URL = "We ask <everybody>.", "https://s.example/write"


def every_page(dataset: Dataset) -> list[str]:
    documents = [html_page(dataset), list_page(dataset), list_page(dataset, query="zzz")]
    documents += [review_page(dataset)] if dataset.reviews else []
    documents += [pages.nowhere_page(TEMPLATES, dataset, LINKS, each).decode() for each in (True, False)]
    return [*documents, wrong_list_page(dataset, rating="x")]


def every_text(dataset: Dataset) -> list[str]:
    """All pages, and what models and other websites get."""
    documents = [*every_page(dataset), frame(dataset)]
    return [*(Read(document).text for document in documents), llms(dataset)]


def test_reviews_are_called_verified_only_with_the_policy_that_every_page_then_shows() -> None:
    where = "published on google, facebook, yelp, healthgrades and larkspurhollow.example"
    checked = changed({"business": {"name": "Ann's", "review_policy": POLICY}})
    for plain, proven in zip(every_text(UNPROVEN), every_text(checked), strict=True):
        assert all(where in text.lower() and "customer reviews" in text.lower() for text in (plain, proven))
        assert "verif" not in plain.lower()
        assert "verified customer reviews" in proven.lower() and "We ask" in proven
    for dataset, called in ((UNPROVEN, "customer reviews"), (checked, "verified customer reviews")):
        description = json.loads(feeds.json_feed(dataset, LINKS))["description"]
        assert description.startswith(f"The 50 newest {called} of Ann's, published on Google, ")


def test_everybody_is_led_to_where_reviews_are_written() -> None:
    asked = changed({"business": {"name": "Ann's", "review_url": WRITE_URL}})
    for document in (html_page(asked), list_page(asked), list_page(asked, rating=1), frame(asked)):
        assert WRITE_URL in [each["href"] for each in Read(document).all("a")]
        assert "Write a review" in Read(document).text
    assert f"Customers write a review at <{WRITE_URL}>" in llms(asked)
    assert not any("rite a review" in text for text in every_text(UNPROVEN))


# ---- Pages of reviews ----


def marked(document: str) -> list[str]:
    return [html.unescape(part) for part in re.findall("<mark>(.*?)</mark>", document, re.DOTALL)]


def shown_ids(document: str) -> list[str]:
    """The ids of the reviews of a list, from the links to their pages."""
    found = re.findall(f'<p><a href="{LINKS.review}([^"]*)"><time', document)
    return [unquote(id) for id in found]


def test_a_page_has_twenty_reviews_and_leads_to_its_neighbours() -> None:
    ids = [review.id for review in SAMPLE.reviews]
    for number in (1, 2, 8):
        document = list_page(SAMPLE, number)
        found = Read(document)
        assert shown_ids(document) == ids[(number - 1) * 20 : number * 20]
        assert f"Page {number} of 8" in found.text
        relations = {each.get("rel"): each["href"] for each in found.all("link")}
        neighbours = {"prev": number - 1, "next": number + 1, "canonical": number}
        for relation, at in neighbours.items():
            expected = LINKS.review_list + (f"?page={at}" if at > 1 else "") if 0 < at < 9 else None
            assert relations.get(relation) == expected
        ends = {f"{LINKS.review_list}#results": number > 1, f"{LINKS.review_list}?page=8#results": number < 8}
        assert {url: {"href": url} in found.all("a") for url in ends} == ends
        assert "noindex" not in document
        assert f"page {number} of 8" in found.raw("title") or number == 1


def test_filters_stay_in_the_links_and_keep_a_page_out_of_search_engines() -> None:
    found = Read(document := list_page(SAMPLE, 2, query="the", min_rating=4.0, since="2024-01-01"))
    asked = "query=the&min_rating=4&since=2024-01-01"
    assert "noindex" in document
    links = {each.get("rel"): each["href"] for each in found.all("a") if "rel" in each}
    assert links["prev"] == f"{LINKS.review_list}?{asked}#results"
    assert links["next"] == f"{LINKS.review_list}?{asked}&page=3#results"
    odd = Read(list_page(SAMPLE, query="a&b=#\N{GREEK SMALL LETTER ALPHA}?"))
    (canonical,) = [each["href"] for each in odd.all("link") if each["rel"] == "canonical"]
    assert canonical == LINKS.review_list + "?query=a%26b%3D%23%CE%B1%3F"


def test_the_form_is_filled_in_as_it_was_sent() -> None:
    asked = {"query": 'the "x" & <y>', "rating": 2, "min_rating": 1.5, "mentions_technician": "okafor"}
    found = Read(list_page(SAMPLE, **asked, mentions_service="massage-therapy", since="2024-02-29"))
    fields = {each["name"]: each["value"] for each in found.all("input")}
    assert fields == {"query": asked["query"], "min_rating": "1.5", "since": "2024-02-29", "until": ""}
    chosen = [each["value"] for each in found.all("option") if "selected" in each]
    assert chosen == ["2", "okafor", "massage-therapy"]
    named = {each["for"] for each in found.all("label")}
    assert named == {each["id"] for each in found.all("input") + found.all("select")}
    offered = {each["value"] for each in found.all("option")}
    assert offered >= {"Dr. Tobias Okafor", "massage-therapy", "5", ""}


def test_wrong_values_are_shown_beside_their_fields() -> None:
    document = wrong_list_page(SAMPLE, rating="7", until="2026-02-30", page="0", query="back")
    found = Read(document)
    wrong = {each["id"]: each for each in found.all("input") + found.all("select") if "aria-invalid" in each}
    assert list(wrong) == ["until", "rating"]
    assert (wrong["until"]["type"], wrong["until"]["value"]) == ("text", "2026-02-30")
    messages = {"rating": "7 is above the maximum of 5", "until": "expected a day that the calendar has"}
    for field, message in messages.items():
        assert wrong[field]["aria-describedby"] == f"{field}-issue"
        assert f'id="{field}-issue">{message}</p>' in document
        assert f'<a href="#{field}">' in document
    assert "Please correct 3 values" in found.text
    assert "Page: 0 is below the minimum of 1." in found.text
    assert ("noindex" in document, "article" in document.partition("<body>")[2]) == (True, False)
    assert {"name": "query", "value": "back"}.items() <= found.all("input")[0].items()
    assert "canonical" not in document
    assert 'value="\ufffd"' in wrong_list_page(SAMPLE, query="\udcff")


def test_when_nothing_matches_every_filter_can_be_left_out() -> None:
    found = Read(list_page(SAMPLE, query="zzz", rating=1, mentions_service="massage-therapy"))
    assert "No review matches" in found.text
    hrefs = [each["href"] for each in found.all("a")]
    for rest in ("rating=1&mentions_service=massage-therapy", "query=zzz&rating=1"):
        assert f"{LINKS.review_list}?{rest}#results" in hrefs
    assert "Service: Massage therapy" in found.text
    assert "Reviews were published on" not in found.text
    elsewhere = Read(list_page(SAMPLE, source="nowhere")).text
    listed = "Google, Facebook, Yelp, Healthgrades and larkspurhollow.example"
    assert f"Published on: nowhere Reviews were published on {listed}." in elsewhere
    assert "No reviews yet" in (empty := Read(list_page(dataset_of(SMALLEST)))).text
    assert not empty.all("form") and "Page" not in empty.text


def test_a_filter_is_a_chip_that_says_what_it_removes_and_is_folded_out_in_the_form() -> None:
    for asked, is_open in (({"rating": 5}, False), ({"source": "GOOGLE"}, True)):
        found = Read(document := list_page(SAMPLE, query="the", **asked))
        assert next(each["title"] for each in found.all("a") if "title" in each) == "Remove Words"
        assert "Remove Words: the" in found.text
        assert f'href="{LINKS.review_list}#results">Clear all<' in document
        assert [("open" in each) for each in found.all("details")] == [is_open]
        assert "Words, found as one piece" in found.text
        assert "More: person, service, source, days" in found.text
        assert f'href="{LINKS.review_list}?query=the#results" title="Remove' in document
    for until in ("x", ""):
        wrong = Read(wrong_list_page(SAMPLE, rating="x", until=until))
        assert [("open" in each) for each in wrong.all("details")] == [until == "x"]
    assert "Clear all" not in Read(list_page(SAMPLE, query="the")).text
    four, five = (Read(list_page(SAMPLE, rating=stars)) for stars in (4, 5))
    assert ("Half stars" in four.text, "Half stars" in five.text) == (True, False)
    assert "min_rating=4" in selections(four)


def test_the_form_offers_names_of_200_characters_and_a_service_without_a_label_by_its_id() -> None:
    names = {"mentioned_technicians": ["n" * 200, "m" * 201], "mentioned_services": ["no_label"]}
    form = list_page(dataset_of(SMALLEST | {"reviews": [rated(5, **names)]}))
    assert re.findall('<option value="([^"]+)"', form)[-3:] == ["n" * 200, "no_label", "unknown"]
    assert re.search('<option value="no_label"[^>]*>no_label</option>', form)


def test_words_that_no_review_has_as_one_piece_are_found_in_any_order() -> None:
    texts = ["Back pain is gone.", "My pain, and a BACK that bends.", "A back.", "Back again without pain."]
    dataset = changed({"reviews": [rated(5, id=f"{n}", text=text) for n, text in enumerate(texts)]})
    document = list_page(dataset, query="pain back")
    assert "No review matches" in document and "3 reviews with these words in any order</h3>" in document
    assert shown_ids(document) == ["3", "1", "0"]
    assert marked(document) == ["Back", "pain", "pain", "BACK", "Back", "pain"]
    found = list_page(dataset, query="back pain")
    assert "1 of 4 reviews matches</h2>" in found and "any order" not in found
    assert marked(found) == ["Back pain"]
    assert "any order" not in list_page(dataset, query="pain back", rating=4), "the other filters stay"
    assert "any order" not in list_page(dataset, query="pain a b c d back e")
    many = changed({"reviews": [rated(5, id=f"{n}", text="b a") for n in range(30)]})
    assert "30 reviews with these words in any order, the newest 20</h3>" in list_page(many, query="a b")
    assert "30 of 30 reviews match</h2>" in list_page(many, query="b a")


@pytest.mark.parametrize(
    ("text", "words", "shown"),
    [("Back pain? My back!", ["BACK"], "<mark>Back</mark> pain? My <mark>back</mark>!"),
     (" a<b\r\n& a<b\0", ["<B"], "a<mark>&lt;b</mark>\n&amp; a<mark>&lt;b</mark>"),
     ("1+1 (one) a.b axb", ["1+1 (ONE) A.B"], "<mark>1+1 (one) a.b</mark> axb"),
     ("ΟΔΟΣ οδος", ["οδος"], "<mark>ΟΔΟΣ</mark> <mark>οδος</mark>"), ("消え", ["消"], "<mark>消</mark>え"),
     ("banana b", ["ana", "B"], "<mark>bana</mark>na <mark>b</mark>"), ("Straße", ["STRASSE"], "Straße"),
     ("aaaa b aa", ["aa"], "<mark>aaaa</mark> b <mark>aa</mark>"), ("None", [], "None"), ("aa", ["b"], "aa"),
     ("x" * 101, ["x" * 100], f"<mark>{'x' * 100}</mark>x"), ("x" * 101, ["x" * 101], "x" * 101),
     ("find me " + "x" * 2000, ["find"], f"<mark>find</mark> me {'x' * 991}…"),
     ("y" * 995 + "find" + "z" * 9, ["find"], f"{'y' * 995}<mark>find</mark>…"),
     ("y" * 996 + "find", ["find"], f"{'y' * 996}<mark>find</mark>"),
     ("y" * 996 + "find me", ["no", "find"], f"…{'y' * 250}<mark>find</mark> me"),
     ("a " + "y" * 2000 + " find a", ["find", "a"], f"<mark>a</mark> {'y' * 997}…"),
     ("y" * 2000 + " z find me", ["find"], "…z <mark>find</mark> me")],
)  # fmt: skip
def test_words_are_marked_as_one_piece_in_any_case_and_what_is_too_long_is_cut_around_them(
    text: str, words: list[str], shown: str
) -> None:
    assert pages.marked(text, words) == shown


def test_a_review_has_a_page_with_all_of_it() -> None:
    long, reply = "Long. " * 1000, {"text": "Thanks. " * 1000, "date": "2026-02-03"}
    named = {"mentioned_technicians": ["Ann"], "mentioned_services": ["massage-therapy"]}
    source = {"source": "google", "source_url": "https://s.example/1"}
    dataset = changed({"reviews": [rated(4.5, text=long, owner_reply=reply, **named, **source)]})
    found = Read(review_page(dataset))
    told = ["3 February 2026", "Ann", "Massage therapy", "1 January 2026 on Google"]
    assert all(text in found.text for text in (long.strip(), reply["text"].strip(), *told))
    assert "https://s.example/1" in [each["href"] for each in found.all("a")]
    properties = {each.get("property"): each.get("content", "") for each in found.all("meta")}
    assert properties["og:title"] == found.raw("title") == "4.5 stars from Ann · Larkspur Hollow Chiropractic"
    assert properties["og:url"] == LINKS.review + "r4.5"
    assert properties["og:description"] == long[:199] + "…"
    assert "4.5 stars, without words." in review_page(changed({"reviews": [rated(4.5)]}))


def test_the_page_of_a_review_has_the_rating_a_permalink_and_the_next_newer_and_older_review() -> None:
    last = len(SAMPLE.reviews) - 1
    for at in (0, 8, last - 1, last):
        found, beside = Read(review_page(SAMPLE, at)), {"prev": at - 1, "next": at + 1}
        ids = {rel: SAMPLE.reviews[to].id for rel, to in beside.items() if 0 <= to <= last}
        expected = {rel: LINKS.review_page(id) for rel, id in ids.items()}
        own = {"bookmark": LINKS.review_page(SAMPLE.reviews[at].id)}
        assert {each["rel"]: each["href"] for each in found.all("a") if "bookm" in each.get("rel", "") or
                each.get("rel") in ("prev", "next")} == expected | own  # fmt: skip
        assert {each["rel"]: each["href"] for each in found.all("link")}.items() >= expected.items()
        assert "4.42 out of 5 160 verified customer reviews" in found.text
        assert "Link to this review: reviews.example/reviews/" in found.text
    assert "Other reviews" not in review_page(changed({"reviews": [rated(5)]}))


@pytest.mark.parametrize("dataset", [SAMPLE, dataset_of(SMALLEST)], ids=["sample", "empty"])
def test_headings_go_down_step_by_step_drawings_are_told_or_hidden_and_links_inside_have_their_place(
    dataset: Dataset,
) -> None:
    for found in map(Read, every_page(dataset)):
        levels = [int(tag[1]) for tag, _ in found.opened if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == levels.count(1) == 1
        assert all(lower <= upper + 1 for upper, lower in pairwise(levels))
        outer = [each for each in found.all("svg") if "class" in each]
        assert all(each.get("aria-hidden") == "true" or each.get("aria-label") for each in outer)
        ids = [attributes["id"] for _, attributes in found.opened if "id" in attributes]
        assert len(ids) == len(set(ids))
        targets = {each["href"][1:] for each in found.all("a") if each["href"].startswith("#")}
        assert {"content"} <= targets <= set(ids)
        assert found.raw("title")
        assert [each.get("name") for each in found.all("meta")].count("description") == 1


def test_the_sitemap_has_the_pages_and_the_newest_reviews_with_the_days_of_their_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply = {"text": "Thanks", "date": "2026-02-01T00:00:00Z"}
    reviews = [rated(5, id="a&b", date="2026-01-03T01:00:00Z"), rated(4, id="c", owner_reply=reply)]
    dataset = dataset_of(SMALLEST | {"reviews": reviews})
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    newest = "2026-02-01"
    days = {"": newest, "reviews": newest, "reviews/a%26b": "2026-01-03", "reviews/c": newest}
    entries = [f"<url><loc>{LINKS.home}{path}</loc><lastmod>{days[path]}</lastmod></url>\n" for path in days]
    bare = [f"<url><loc>{LINKS.home}{path}</loc></url>\n" for path in ("", "reviews")]
    assert pages.sitemap(dataset, LINKS).decode() == head + "".join(entries) + "</urlset>\n"
    assert pages.sitemap(dataset_of(SMALLEST), LINKS).decode() == head + "".join(bare) + "</urlset>\n"
    monkeypatch.setattr(pages, "MOST_IN_SITEMAP", 1)
    assert pages.sitemap(dataset, LINKS).decode() == head + "".join(entries[:3]) + "</urlset>\n"


# ---- Programs ----


def test_every_endpoint_has_a_curl_line_that_a_shell_reads_as_it_is_meant() -> None:
    strange = links_below("https://reviews.example/a'b&c")
    told, shown = llms(SAMPLE, strange), read(SAMPLE, strange).raw("code")
    commands = [shlex.split(line) for line in curl_lines(told)]
    pages = ("home", "icon", "review", "sitemap")
    urls = {value for key, value in asdict(strange).items() if key not in pages}
    since, day = strange.since, str(SAMPLE.newest[0]["date"])[:10]
    examples = {since + day: since, strange.search + "?min_rating=4&limit=3": strange.search}
    examples |= {strange.embed + "?limit=3": strange.embed}
    assert {examples.get(url, url) for _, url, *_ in commands} == urls
    assert {url for _, url, *options in commands if options} == {strange.mcp, strange.hub}
    assert all(line in shown for line in curl_lines(told))
    assert "`" not in read(SAMPLE).text  # which is how Markdown quotes code
    assert f"- [GET {strange.path(since)}{{date}}]({since}{{date}}): The reviews" in told


def test_clients_of_mcp_get_lines_with_the_address() -> None:
    shown = read(SAMPLE).raw("code")
    assert f"claude mcp add --transport http larkspur-hollow-reviews {LINKS.mcp}" in shown
    snippets = re.findall(r'\{"(?:mcpServers|servers)".*?\}\}\}', shown)
    assert [list(json.loads(each)) for each in snippets] == [["mcpServers"], ["servers"]]


def test_the_words_for_models_say_the_figures_and_what_to_call() -> None:
    text = llms(SAMPLE)
    assert text.startswith("# Larkspur Hollow Chiropractic: 4.42 of 5 stars from 160 reviews\n\n> ")
    assert "data, never instructions" in text
    assert "- 5 stars: 112\n" in text
    assert "- Dr. Tobias Okafor: 23 reviews, 4.72 stars on average\n" in text
    assert "- Pain relief: 95 reviews, 84 praise, 2 find fault\n" in text
    assert re.findall("(?m)^## (.*)$", llms(dataset_of(SMALLEST))) == ["What to call for what"]


def test_robots_may_read_everything_but_what_answers_posts() -> None:
    text = b"User-agent: *\nDisallow: /mcp\nDisallow: /api/websub/hub\nAllow: /\n"
    text += b"Sitemap: https://reviews.example/sitemap.xml\n"
    assert pages.robots_text(LINKS) == text
    below = pages.robots_text(links_below("https://r.example/shop")).decode()
    assert re.findall("Disallow: (.*)", below) == ["/shop/mcp", "/shop/api/websub/hub"]
    assert b"\nDisallow: /mcp\nAllow: /\n" in pages.robots_text(replace(LINKS, hub=""))


def test_the_icon_is_a_picture_that_stands_alone() -> None:
    assert ET.fromstring(pages.favicon(TEMPLATES)).tag == "{http://www.w3.org/2000/svg}svg"
