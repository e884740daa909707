"""Figures of the home page lead to their reviews; lists and feeds say what they are of.

That each linked figure equals what its link finds is in `test_pages.py`.

Sections: home page - how the figures were made - lists - the form.
"""

import copy
import html
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from lab.annotated_data import EDITORIAL, annotated_insights
from lab.data_sets import DATA_SETS, URLS, dataset_of
from lab.feed_rules import ATOM
from lab.page_samples import TEMPLATES
from lab.small_files import CONTRACT, WHEN_EMPTY

from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.searching import in_any_order, search
from reviewslib.web.feeds import search_feed
from reviewslib.web.home_page import html_page, llms_text
from reviewslib.web.list_page import PAGE_SIZE, list_page
from reviewslib.web.site import site_of

REVIEWS_FILE, INSIGHTS_FILE = DATA_SETS["sample"]()
SAMPLE = dataset_of(REVIEWS_FILE, INSIGHTS_FILE)


def sample_with(**members: Any) -> Dataset:
    """The sample with other members of its insights."""
    return dataset_of(REVIEWS_FILE, INSIGHTS_FILE | members)


def home(dataset: Dataset) -> str:
    return html_page(site_of(TEMPLATES, dataset, URLS)).decode()


def listed(dataset: Dataset, **filters: Any) -> str:
    """A page of the reviews that these filters find."""
    query = Query(limit=PAGE_SIZE, **filters)
    matches = in_any_order(dataset, query)
    return list_page(site_of(TEMPLATES, dataset, URLS), query, matches).decode()


def followed(dataset: Dataset, **filters: Any) -> ET.Element:
    """The feed of the reviews that these filters find."""
    site = site_of(TEMPLATES, dataset, URLS)
    found = search(dataset, Query(**filters))
    return ET.fromstring(search_feed(site, filters, found, WHEN_EMPTY))


def heading(page: str) -> str:
    """The heading of a list, as a reader sees it."""
    (content,) = re.findall('<h2 id="results-h">(.*?)</h2>', page, re.DOTALL)
    return " ".join(re.sub("<[^>]*>", "", content).split())


# ---- Home page ----


def test_praise_and_criticism_lead_to_their_reviews() -> None:
    page = home(SAMPLE)

    link = "/reviews?mentions=aspects%2Fpain_relief&amp;sentiment="
    assert f'<a href="{link}positive#results">84 positive</a>' in page
    assert f'<a href="{link}negative#results">2 negative</a>' in page


def test_a_figure_of_nothing_is_no_link() -> None:
    aspect = INSIGHTS_FILE["aspects"][0] | {"id": "unknown"}

    page = home(sample_with(aspects=[aspect]))

    assert "84 positive, 2 negative" in page
    assert "aspects%2Funknown" not in page


def test_a_figure_without_annotations_leads_to_its_examples_alone() -> None:
    page = home(sample_with(per_review={}))

    link = "/reviews?mentions=aspects%2Fpain_relief#results"
    examples = f'<span class="examples"><a href="{link}">4 examples</a>'
    assert f"84 positive, 2 negative {examples}" in page
    assert "sentiment=" not in page


SAID = r'<li>(\w+): <a href="/reviews/(\w+)"><q class="customer-words"><bdi>(.*?)</bdi>'


def test_beside_an_aspect_stand_words_of_reviews_that_judge_it_so() -> None:
    said = re.findall(SAID, html.unescape(home(SAMPLE)))

    assert {kind for kind, _, _ in said} == {"Praise", "Criticism"}
    judged = {"Praise": "positive", "Criticism": "negative"}
    for kind, id, phrase in said:
        annotation = INSIGHTS_FILE["per_review"][id]
        sentiments = {one["sentiment"] for one in annotation["aspects"]}
        assert judged[kind] in sentiments
        assert phrase.casefold() in SAMPLE.reviews_by_id[id].loose_text


def uncounted(**members: Any) -> dict[str, Any]:
    """A topic that nobody has counted."""
    topic = copy.deepcopy(INSIGHTS_FILE["topics"][0])
    topic["example_review_ids"] = []
    return topic | {"label": "Treatment", "mention_count": None, **members}


@pytest.mark.parametrize("document", [html_page, llms_text], ids=["page", "llms.txt"])
def test_an_entry_that_nobody_has_counted_is_absent(document: Any) -> None:
    dataset = sample_with(topics=[uncounted(summary="")])

    shown = document(site_of(TEMPLATES, dataset, URLS)).decode()

    assert "Treatment" not in shown


@pytest.mark.parametrize("document", [html_page, llms_text], ids=["page", "llms.txt"])
def test_an_entry_with_words_of_the_owner_stands_without_a_figure(
    document: Any,
) -> None:
    dataset = sample_with(topics=[uncounted(summary="Words of the owner.")])

    shown = document(site_of(TEMPLATES, dataset, URLS)).decode()

    part = shown.partition("Treatment")[2].partition("Words of the owner.")[0]
    assert part
    assert not re.search("[0-9]", part.replace("</h3>", ""))


# ---- How the figures were made ----


def annotated(limit: int, **members: Any) -> Dataset:
    """The sample of which a model has read the newest `limit` reviews."""
    counted = annotated_insights(REVIEWS_FILE, EDITORIAL | members, limit)
    return dataset_of(REVIEWS_FILE, counted)


def llms(dataset: Dataset) -> str:
    return llms_text(site_of(TEMPLATES, dataset, URLS)).decode()


def footer(dataset: Dataset) -> str:
    """The first paragraph of the footer, as a reader sees it."""
    content = home(dataset).partition("<footer><p>")[2].partition("</p>")[0]
    return " ".join(re.sub("<[^>]*>", "", content).split())


PART_READ = "A language model (m) has read 60 of the 142 reviews with words."
ALL_READ = "A language model (m) has read every review with words."
FROM_NAMES = "They were counted from star ratings and from names in the texts."


@pytest.mark.parametrize("document", [footer, llms])
@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        pytest.param(60, f"{FROM_NAMES} {PART_READ}", id="half read"),
        pytest.param(1000, f"{FROM_NAMES} {ALL_READ}", id="wholly read"),
    ],
)
def test_the_insights_say_once_who_has_read_how_much(
    document: Any, limit: int, sentence: str
) -> None:
    said = document(annotated(limit))

    assert f"The insights are based on 160 reviews. {sentence}" in said or (
        f"Insights: based on 160 reviews. {sentence}" in said
    )
    assert said.count("language model") == 1


def test_names_are_named_only_where_names_are_known() -> None:
    dataset = annotated(1000, entities={})

    assert "They were counted from star ratings. A language" in footer(dataset)
    assert "names in the texts" not in llms(dataset)


def test_insights_that_a_person_made_say_how_they_were_made() -> None:
    assert footer(SAMPLE).endswith("Origin: hand-annotated sample.")


def test_what_a_person_has_read_in_part_says_so() -> None:
    said = footer(sample_with(read_count=3))

    assert said.endswith("Somebody has read 3 of the 142 reviews with words.")


SO_FAR = "Somebody has read 60 of the 142 reviews with words so far"


def test_figures_of_a_part_say_so_beside_them() -> None:
    page = home(annotated(60))

    aspects = page.partition('<section id="aspects"')[2].partition("</section>")[0]
    topics = page.partition('<section id="topics"')[2].partition("</section>")[0]
    assert SO_FAR in aspects
    assert SO_FAR in topics


def test_figures_of_all_reviews_say_nothing_of_a_part() -> None:
    assert "so far" not in home(annotated(1000))


FOUND_BY_READING = [
    pytest.param({"mentions": "aspects/pain"}, True, id="a subject"),
    pytest.param({"sentiment": "negative"}, True, id="a judgement"),
    pytest.param({"mentions": "zzz"}, True, id="no match"),
    pytest.param({"rating": 5}, False, id="stars"),
    pytest.param({}, False, id="all reviews"),
]


@pytest.mark.parametrize(("filters", "is_said"), FOUND_BY_READING)
def test_a_list_found_by_reading_says_how_much_was_read(
    filters: Any, is_said: bool
) -> None:
    page = listed(annotated(60), **filters)

    assert (SO_FAR in page) is is_said


@pytest.mark.parametrize(("filters", "is_said"), FOUND_BY_READING)
def test_a_feed_found_by_reading_says_how_much_was_read(
    filters: Any, is_said: bool
) -> None:
    feed = followed(annotated(60), **filters)

    subtitle = feed.findtext(f"{ATOM}subtitle", "")
    assert (SO_FAR in subtitle) is is_said


# ---- Lists ----


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        pytest.param(
            {"mentions": "aspects/pain_relief", "sentiment": "negative"},
            "2 reviews · Pain relief: Criticism",
            id="an aspect and how it is judged",
        ),
        pytest.param(
            {"mentions": "topics/listened-to-and-told-straight"},
            "51 reviews · About: Listened to and told straight",
            id="a topic",
        ),
        pytest.param({"rating": 1}, "8 reviews · Stars: 1 star", id="stars"),
        pytest.param(
            {"query": "zzz"}, "No matching reviews · Words: zzz", id="no match"
        ),
    ],
)
def test_a_list_says_its_number_and_selection(filters: Any, said: str) -> None:
    assert heading(listed(SAMPLE, **filters)) == said


def test_a_list_without_reply_is_one_by_a_value_that_is_false() -> None:
    page = listed(SAMPLE, replied=False)

    assert heading(page).endswith(" · Answered: No")


def test_the_parts_of_an_aspect_are_links_but_for_the_shown_one() -> None:
    page = listed(SAMPLE, mentions="aspects/pain_relief", sentiment="positive")

    parts = page.partition('<ul class="parts"')[2].partition("</ul>")[0]
    linked = re.findall('<a href="([^"]*)#results">(?:<bdi>)?([^<]*)', parts)
    link = "/reviews?mentions=aspects%2Fpain_relief"
    assert linked == [
        (link, "All"),
        (f"{link}&amp;sentiment=negative", "Criticism"),
        (f"{link}&amp;sentiment=neutral", "Neutral"),
    ]
    assert re.findall("<small>([0-9]+)</small>", parts) == ["95", "84", "2", "9"]


def test_words_that_mean_several_subjects_name_each() -> None:
    page = listed(SAMPLE, mentions="pain")

    parts = page.partition('<ul class="parts"')[2].partition("</ul>")[0]
    assert "mentions=aspects%2Fpain_relief#results" in parts
    assert "mentions=problems%2Flow-back-pain#results" in parts


def test_a_list_of_examples_says_of_how_many() -> None:
    page = listed(sample_with(per_review={}), mentions="aspects/pain_relief")

    assert heading(page) == "4 examples of 95 · About: Pain relief"


def test_one_link_leads_back_to_all_reviews() -> None:
    page = listed(SAMPLE, rating=1, query="back")

    results = page.partition('<section id="results"')[2]
    assert results.count('<a href="/reviews#results">All 160 reviews</a>') == 1


# ---- The form ----


def test_every_parameter_of_the_list_is_a_row_with_a_label() -> None:
    fields = TEMPLATES.globals["fields"]

    assert fields.keys() == CONTRACT.list_parameters.keys()
    assert all(field.label for field in fields.values())


def test_a_sentiment_of_the_contract_has_a_label() -> None:
    field = TEMPLATES.globals["fields"]["sentiment"]

    assert set(field.choices) == set(CONTRACT.list_parameters["sentiment"].choices)


def test_the_field_about_has_a_group_for_each_kind() -> None:
    page = listed(SAMPLE)

    groups = re.findall('<optgroup label="([^"]*)">', page)
    assert groups == [
        "Praise and criticism",
        "Topics",
        "People",
        "Services",
        "Problems",
        "Places",
    ]


def test_the_chosen_subject_is_selected_in_the_form() -> None:
    page = listed(SAMPLE, mentions="aspects/pain_relief")

    assert '<option value="aspects/pain_relief" selected>Pain relief' in page


def test_a_filter_does_not_open_the_folded_fields() -> None:
    page = listed(SAMPLE, mentions="aspects/pain_relief")

    assert "<details>" in page
