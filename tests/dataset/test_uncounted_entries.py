"""What nobody has counted is not zero: it has no figure, and is not shown without words.

Sections: who counts - which entries have no figure - where they are not shown.
"""

from datetime import UTC, datetime
from typing import Any

import pytest
from lab.data_sets import URLS
from lab.page_samples import TEMPLATES
from lab.small_files import CONTRACT, a_file, file_bytes, loaded, review

from reviewslib.dataset import counting
from reviewslib.dataset.insights import compute_insights
from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import served_reviews
from reviewslib.dataset.searching import in_any_order, search
from reviewslib.web.home_page import html_page, llms_text
from reviewslib.web.list_page import list_page
from reviewslib.web.site import site_of

Object = dict[str, Any]


def person(*texts: str, **members: Any) -> Object:
    """The counted entry of Clara, with these members, in reviews with these texts."""
    document = a_file(*(review(f"{n}", text=text) for n, text in enumerate(texts)))
    reviews = served_reviews(CONTRACT.reviews_file.complete(document)["reviews"], {})
    entry = {"id": "clara", "label": "Clara", **members}
    insights = compute_insights(reviews, {"entities": {"technicians": [entry]}})
    (counted,) = insights["entities"]["technicians"]
    return counted


# ---- Who counts ----


@pytest.mark.parametrize(
    ("text", "members", "count"),
    [
        pytest.param("clara helped", {}, 1, id="without aliases the label is one"),
        pytest.param("clara helped", {"aliases": None}, 1, id="null is no list"),
        pytest.param("claras help", {}, None, id="a label is a whole word"),
        pytest.param("Ms C. helped", {}, None, id="a label that no text has"),
        pytest.param("clara helped", {"aliases": []}, None, id="an empty list"),
        pytest.param("Ms C. helped", {"aliases": ["Ms C."]}, 1, id="an alias"),
        pytest.param("clara helped", {"aliases": ["Ms C."]}, 0, id="other aliases"),
        pytest.param("clara helped", {"label": " "}, None, id="a blank label"),
    ],
)
def test_a_person_is_counted_by_aliases_else_by_the_label(
    text: str, members: Object, count: int | None
) -> None:
    counted = person(text, **members)

    assert counted.get("mention_count") == count
    assert "aliases" not in counted


def test_a_label_that_is_an_alias_of_somebody_else_means_that_one() -> None:
    people = [
        {"id": "clara", "label": "Clara"},
        {"id": "clara-b", "label": "Clara B.", "aliases": ["clara"]},
    ]
    reviews = served_reviews(
        CONTRACT.reviews_file.complete(a_file(review(text="Clara!")))["reviews"], {}
    )

    insights = compute_insights(reviews, {"entities": {"technicians": people}})

    counted = insights["entities"]["technicians"]
    counts = {entry["id"]: entry.get("mention_count") for entry in counted}
    assert counts == {"clara": None, "clara-b": 1}


# ---- Which entries have no figure ----


def count_lines(**editorial: Any) -> list[str]:
    """What a count of a review without names says."""
    contents = dict.fromkeys(counting.COUNTED_FILES) | {
        "reviews.json": file_bytes(a_file(review("a", text="Fine."))),
        "editorial.json": file_bytes(editorial),
    }
    return counting.count(CONTRACT, contents, datetime(2026, 1, 2, tzinfo=UTC)).lines


def entries(*ids: str) -> list[Object]:
    return [{"id": id, "label": id} for id in ids]


@pytest.mark.parametrize(
    ("ids", "named"),
    [
        pytest.param(["a"], '1 ("aspects/a")', id="one"),
        pytest.param(
            ["a", "b", "c"], '3 ("aspects/a", "aspects/b", "aspects/c")', id="three"
        ),
        pytest.param(
            ["a", "b", "c", "d"],
            '4 ("aspects/a", "aspects/b", "aspects/c", …)',
            id="more are not named",
        ),
    ],
)
def test_a_count_names_entries_that_nothing_counts(ids: list[str], named: str) -> None:
    lines = count_lines(aspects=entries(*ids))

    assert lines == [
        f"entries that nothing counts: {named}",
        "write aliases or per_review for them, or run reviewsd-insights",
    ]


def test_a_count_names_no_entry_where_all_are_counted() -> None:
    named = {"technicians": [{"id": "a", "label": "A", "aliases": ["A"]}]}

    assert count_lines(entities=named) == []


# ---- Where they are not shown ----

TREATMENT = {"id": "x", "label": "Treatment"}
INSIGHTS: Object = {
    "aspects": [TREATMENT],
    "topics": [TREATMENT],
    "entities": {"technicians": [TREATMENT], "services": [TREATMENT]},
}
DATASET = loaded(a_file(review()), INSIGHTS)
SITE = site_of(TEMPLATES, DATASET, URLS)


def listed(query: Query) -> bytes:
    return list_page(SITE, query, in_any_order(DATASET, query))


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(html_page(SITE), id="the home page"),
        pytest.param(llms_text(SITE), id="llms.txt"),
        pytest.param(listed(Query()), id="the form"),
    ],
)
def test_an_entry_without_figure_and_words_is_not_shown(document: bytes) -> None:
    assert b"Treatment" not in document


@pytest.mark.parametrize("parameter", ["mentions", "mentions_technician"])
def test_a_hint_does_not_name_an_entry_that_nobody_has_counted(parameter: str) -> None:
    query = Query(**{parameter: "zzz"})

    hints = search(DATASET, query).frame["hints"]

    assert "Treatment" not in "".join(hints)


def test_a_topic_without_summary_has_no_empty_sentence() -> None:
    topic = {"id": "x", "label": "Parking", "mention_count": 2, "summary": " "}
    site = site_of(TEMPLATES, loaded(a_file(review()), {"topics": [topic]}), URLS)

    (line,) = [it for it in llms_text(site).decode().splitlines() if "Parking" in it]

    assert line == "- Parking (2 reviews)."
