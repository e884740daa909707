"""What no schema can say of an EditorialFile is said with its place.

Sections: quotations - names and aliases - ids and quotations that are in no review.
"""

from typing import Any

import pytest
from hypothesis import given
from lab import small_files as small
from lab.counted_reviews import rated

from reviewslib.dataset.editorial_rules import (
    name_violations,
    stale_references,
    unquoted,
)
from reviewslib.dataset.vocabulary import ENTITY_KINDS

# ---- Quotations ----

QUOTATIONS = [
    pytest.param("Fresh bread.", "Fresh bread.", id="no marks"),
    pytest.param(' "Fresh bread." ', "Fresh bread.", id="straight marks"),
    pytest.param("“Fresh bread.”", "Fresh bread.", id="English"),
    pytest.param("„Frisches Brot.“", "Frisches Brot.", id="German"),
    pytest.param("»Frisches Brot.«", "Frisches Brot.", id="German books"),
    pytest.param("«\u00a0Du pain frais.\u00a0»", "Du pain frais.", id="French"),
    pytest.param("「焼きたてです。」", "焼きたてです。", id="Japanese"),
    pytest.param(
        "„Ofenfrisch“ stimmt hier wirklich.",
        "„Ofenfrisch“ stimmt hier wirklich.",
        id="a quoted word at the beginning",
    ),
    pytest.param('Bread is "fresh"', 'Bread is "fresh"', id="a quoted word at the end"),
    pytest.param('"Fresh" is "fresh"', '"Fresh" is "fresh"', id="one at each end"),
    pytest.param("“A “fresh” bread”", "“A “fresh” bread”", id="a quotation inside"),
    pytest.param('"', '"', id="one mark alone"),
    pytest.param("", "", id="nothing"),
]


@pytest.mark.parametrize(("written", "words"), QUOTATIONS)
def test_only_marks_around_the_whole_are_left_out(written: str, words: str) -> None:
    assert unquoted(written) == words


# ---- Names and aliases ----

FIRST = "entities/technicians/0"
SECOND = "entities/technicians/1"
PEOPLE = [{"id": "a", "label": "A"}, {"id": "b", "label": "B", "aliases": ["Hana"]}]
TWO = {"entities": {"technicians": PEOPLE}}
TAKEN = f" already belongs to /{FIRST}"
MISPLACED = f"aliases belong to entries of {', '.join(ENTITY_KINDS)} only"
# The value at a path of TWO, and the place and the reason of the fault.
FAULTS = [
    pytest.param(
        f"{FIRST}/aliases",
        ["x", " HANA\n"],
        f"{SECOND}/aliases/0",
        f'"Hana"{TAKEN}',
        id="an alias of two",
    ),
    pytest.param(f"{FIRST}/id", "b", f"{SECOND}/id", f'"b"{TAKEN}', id="an id of two"),
    pytest.param(
        f"{FIRST}/label", "B", f"{SECOND}/label", f'"B"{TAKEN}', id="a label of two"
    ),
    pytest.param(
        "aspects",
        [{"aliases": ["x"]}],
        "aspects/0/aliases",
        MISPLACED,
        id="aliases of an aspect",
    ),
    pytest.param(
        "entities/products",
        [{"aliases": []}],
        "entities/products/0/aliases",
        MISPLACED,
        id="aliases of an unknown kind",
    ),
    pytest.param(
        f"{FIRST}/own",
        {"aliases": ["x"]},
        f"{FIRST}/own/aliases",
        MISPLACED,
        id="aliases inside an entry",
    ),
    pytest.param("aliases", None, "aliases", MISPLACED, id="aliases of nothing"),
]


@pytest.mark.parametrize(("path", "value", "place", "reason"), FAULTS)
def test_a_name_of_two_entries_and_a_misplaced_alias_are_faults(
    path: str, value: Any, place: str, reason: str
) -> None:
    editorial = small.changed(TWO, small.steps(path), value)

    faults = list(name_violations(editorial))

    assert faults == [(tuple(small.steps(place)), reason)]


def test_different_names_are_no_fault() -> None:
    assert not list(name_violations(TWO))


def test_an_alias_may_be_listed_twice_by_one_entry() -> None:
    entry = {"id": "a", "label": "A", "aliases": ["x", "X"]}

    assert not list(name_violations({"entities": {"services": [entry]}}))


def test_a_name_may_be_of_two_kinds() -> None:
    entry = {"id": "a", "label": "A", "aliases": ["x"]}
    both = {"services": [entry], "problems": [entry]}

    assert not list(name_violations({"entities": both}))


@given(value=small.any_json)
@pytest.mark.parametrize(
    "path",
    ["entities", "entities/technicians", f"{FIRST}/aliases", f"{FIRST}/id"],
)
def test_any_json_can_stand_anywhere(path: str, value: Any) -> None:
    list(name_violations(small.changed(TWO, small.steps(path), value)))


@given(value=small.any_json)
def test_any_json_can_be_the_document(value: Any) -> None:
    list(name_violations(value))


# ---- Ids and quotations that are in no review ----

NO_REVIEW = 'no review with the id "y" is served'
NO_TEXT = '"bad" is in no review'
IDS = ["999", "y"]
STALE = [
    pytest.param(
        f"{FIRST}/example_review_ids",
        IDS,
        f"{FIRST}/example_review_ids/1",
        NO_REVIEW,
        id="an example",
    ),
    pytest.param(
        f"{FIRST}/top_phrases",
        ["very good", "bad"],
        f"{FIRST}/top_phrases/1",
        NO_TEXT,
        id="a phrase",
    ),
    pytest.param("pull_quote", "bad", "pull_quote", NO_TEXT, id="a quotation"),
    pytest.param(
        "proposed_pull_quote",
        "bad",
        "proposed_pull_quote",
        NO_TEXT,
        id="a proposed quotation",
    ),
    pytest.param(
        "faq",
        [{"question": "?", "review_ids": ["y"]}],
        "faq/0/review_ids/0",
        NO_REVIEW,
        id="the review of a question",
    ),
    pytest.param(
        "per_review",
        {"999": {}, "y": {"score": 1}},
        "per_review/y",
        NO_REVIEW,
        id="an annotated review",
    ),
    pytest.param(
        "summary_review_ids",
        IDS,
        "summary_review_ids/1",
        NO_REVIEW,
        id="the review of a summary",
    ),
    pytest.param(
        "proposed_summary_review_ids",
        IDS,
        "proposed_summary_review_ids/1",
        NO_REVIEW,
        id="the review of a proposed summary",
    ),
]
REVIEWS = rated(5, text="A \u201cnew\u201d door,\nvery  GOOD")


@pytest.mark.parametrize(("path", "value", "place", "reason"), STALE)
def test_unknown_ids_and_phrases_of_no_review_are_reported(
    path: str, value: Any, place: str, reason: str
) -> None:
    editorial = small.changed(TWO, small.steps(path), value)

    stale = list(stale_references(REVIEWS, editorial))

    assert stale == [(tuple(small.steps(place)), reason)]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("pull_quote", "\u201cVery good\u201d", id="a quotation in marks"),
        pytest.param("own", {"review_ids": [[1], None]}, id="ids that are no text"),
        pytest.param("entities", None, id="no entities"),
    ],
)
def test_what_reviews_have_and_what_names_none_is_not_reported(
    path: str, value: Any
) -> None:
    editorial = small.changed(TWO, small.steps(path), value)

    assert not list(stale_references(REVIEWS, editorial))
