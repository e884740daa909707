"""A list without reviews links to searches that find some, and shows answers."""

import re
from typing import Any

import pytest
from lab.data_sets import URLS, dataset_of, sample_dataset
from lab.page_samples import TEMPLATES
from lab.small_files import a_file, review

from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.searching import in_any_order
from reviewslib.web.list_page import list_page
from reviewslib.web.site import site_of

SAMPLE = sample_dataset()
CLARA = dataset_of(
    a_file(*(review(str(n), text="Ask for Clara") for n in range(3))),
    {"entities": {"technicians": [{"id": "clara", "label": "Clara"}]}},
)
# Of a similar search: its address, its count, and what it seeks.
SUGGESTION = re.compile(
    r'<li><a href="([^"]*)#results">([^<]*)</a>\s*(.*?)\s*</li>', re.DOTALL
)


def page_of(dataset: Dataset, **values: Any) -> str:
    query = Query(**values)
    matches = in_any_order(dataset, query)
    assert matches.frame["matched"] == 0
    page = list_page(site_of(TEMPLATES, dataset, URLS), query, matches)
    return page.decode()


LEADS = [
    pytest.param(
        SAMPLE,
        {"query": "nervous"},
        (
            "/reviews?mentions=topics%2Fgentle-with-the-nervous",
            "17 reviews",
            "About: <bdi>Gentle with the nervous</bdi>",
        ),
        id="an entry",
    ),
    pytest.param(
        SAMPLE,
        {"query": "painful", "rating": 5},
        ("/reviews?query=pain&amp;rating=5", "11 reviews", "with only <bdi>pain</bdi>"),
        id="a beginning of the word",
    ),
    pytest.param(
        CLARA,
        {"mentions": "clara"},
        ("/reviews?query=Clara", "3 reviews", "with only <bdi>Clara</bdi>"),
        id="a name that texts have",
    ),
]


@pytest.mark.parametrize(("dataset", "values", "lead"), LEADS)
def test_an_empty_list_leads_to_what_hints_name(
    dataset: Dataset, values: dict[str, Any], lead: tuple[str, str, str]
) -> None:
    suggestions = SUGGESTION.findall(page_of(dataset, **values))

    assert suggestions[0] == lead


def test_an_empty_list_shows_the_question_that_has_the_words() -> None:
    page = page_of(SAMPLE, query="costing")

    assert "What does a visit cost, and does insurance pay?</h3>" in page


def test_a_list_beyond_its_last_page_suggests_nothing() -> None:
    query = Query(query="back", offset=1000)
    matches = in_any_order(SAMPLE, query)

    page = list_page(site_of(TEMPLATES, SAMPLE, URLS), query, matches).decode()

    assert "Similar searches" not in page
