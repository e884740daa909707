"""Contents of data files become the contents to write; what a person wrote is never lost.

Sections: What is counted - What is written - Faults - Whether an import counts
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from lab.small_files import CONTRACT, Object, a_file, file_bytes, review

from reviewslib.dataset import counting
from reviewslib.dataset.counting import COUNTED_FILES, Contents, Count
from reviewslib.faults import BadData

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 3, 3, 4, 5, tzinfo=UTC)
REVIEWS = a_file(review("a", text="Hana helped."), review("b", text="Too dear."))
HANA = {"id": "hana", "label": "Hana I.", "aliases": ["Hana"]}
EDITORIAL: Object = {"entities": {"technicians": [HANA]}}


def contents_of(**documents: Any) -> dict[str, bytes | None]:
    """Contents of COUNTED_FILES; a file that is not given is absent."""
    given = {f"{name}.json": file_bytes(value) for name, value in documents.items()}
    return {file: given.get(file) for file in COUNTED_FILES}


def count(contents: Contents, now: datetime = NOW) -> Count:
    return counting.count(CONTRACT, contents, now)


def written(counted: Count, file: str) -> Any:
    return json.loads(counted.contents[file])


def after(contents: Contents, counted: Count) -> Mapping[str, bytes | None]:
    """The contents when those of a count were written."""
    return {**contents, **counted.contents}


# ---- What is counted ----


def test_names_in_texts_are_counted_as_mentions() -> None:
    counted = count(contents_of(reviews=REVIEWS, editorial=EDITORIAL))

    (hana,) = written(counted, "insights.json")["entities"]["technicians"]
    assert hana["label"] == "Hana I."
    assert hana["mention_count"] == 1


def test_reviews_that_are_not_served_are_not_counted() -> None:
    hidden = review("c", text="Hana again.", verified=False)
    reviews = a_file(*REVIEWS["reviews"], hidden)

    counted = count(contents_of(reviews=reviews, editorial=EDITORIAL))

    assert written(counted, "insights.json")["review_count"] == 2


def test_a_count_says_when_it_was_made() -> None:
    counted = count(contents_of(reviews=REVIEWS))

    assert written(counted, "insights.json")["generated_at"] == "2026-01-02T03:04:05Z"


# ---- What is written ----


def test_a_second_count_of_the_same_files_writes_nothing() -> None:
    contents = contents_of(reviews=REVIEWS, editorial=EDITORIAL)
    first = count(contents)

    second = count(after(contents, first), LATER)

    assert second.contents == {}
    assert second.insights == first.insights


def test_a_count_of_other_reviews_is_another_version() -> None:
    contents = contents_of(reviews=REVIEWS, editorial=EDITORIAL)
    first = count(contents)
    fewer = {"reviews.json": file_bytes(a_file(review("a")))}

    second = count({**after(contents, first), **fewer}, LATER)

    version = written(first, "insights.json")["version"]
    assert written(second, "insights.json")["version"] == version + 1


def test_insights_of_a_person_become_the_editorial_file() -> None:
    own = {"summary": "Mine", "review_count": 7}

    counted = count(contents_of(reviews=REVIEWS, insights=own))

    assert list(counted.contents) == ["editorial.json", "insights.json"]
    assert written(counted, "editorial.json") == {"summary": "Mine"}
    assert written(counted, "insights.json")["summary"] == "Mine"
    assert counted.lines[0] == (
        "insights.json becomes editorial.json, without what is counted: review_count"
    )


def test_annotations_of_removed_reviews_are_deleted() -> None:
    annotation = {"text_digest": "x", "vocabulary": "x", "model": "m"}
    annotations = {"reviews": {"gone": annotation}}

    counted = count(
        contents_of(reviews=REVIEWS, editorial=EDITORIAL, annotations=annotations)
    )

    assert written(counted, "annotations.json")["reviews"] == {}


def test_entries_that_name_no_review_are_reported() -> None:
    editorial = EDITORIAL | {"per_review": {"gone": {"score": 1}}}

    counted = count(contents_of(reviews=REVIEWS, editorial=editorial))

    (line,) = [line for line in counted.lines if "gone" in line]
    assert line.startswith("warning: editorial.json /per_review/gone")


def test_data_files_are_laid_out_for_people() -> None:
    assert counting.readable({"a": ["é"]}) == '{\n "a": [\n  "é"\n ]\n}\n'.encode()


# ---- Faults ----


def faults_of(contents: Contents) -> str:
    """The faults for which a count is refused."""
    with pytest.raises(BadData) as caught:
        count(contents)
    return str(caught.value)


def test_a_count_without_reviews_is_refused() -> None:
    assert faults_of(contents_of(editorial=EDITORIAL)) == (
        "reviews.json: the file is missing"
    )


def test_the_faults_of_all_files_are_reported_together() -> None:
    contents = contents_of(
        reviews=a_file(review("a"), review("a")), editorial={"aspects": 5}
    )

    reviews_line, editorial_line = faults_of(contents).splitlines()

    assert reviews_line.startswith("reviews.json /reviews/1/id: ")
    assert editorial_line == "editorial.json /aspects: 5 is not an array or null"


def test_counted_insights_that_were_edited_are_not_overwritten() -> None:
    contents = contents_of(reviews=REVIEWS)
    edited = count(contents).insights | {"summary": "Mine"}

    faults = faults_of({**contents, "insights.json": file_bytes(edited)})

    assert faults == (
        "insights.json: edited after counting;"
        " move your changes into editorial.json and remove this file"
    )


def test_insights_of_a_person_are_not_lost_beside_an_editorial_file() -> None:
    contents = contents_of(
        reviews=REVIEWS, editorial=EDITORIAL, insights={"summary": "Mine"}
    )

    assert faults_of(contents) == (
        "insights.json: not counted, but editorial.json exists;"
        " move your entries there and remove this file"
    )


# ---- Whether an import counts ----

COUNTED: Object = dict(count(contents_of(reviews=REVIEWS)).insights)


@pytest.mark.parametrize(
    ("documents", "is_wanted"),
    [
        pytest.param({}, False, id="reviews alone"),
        pytest.param({"insights": {"summary": "Mine"}}, False, id="a person's own"),
        pytest.param({"insights": COUNTED}, True, id="counted before"),
        pytest.param({"editorial": {}}, True, id="an editorial file"),
        pytest.param({"annotations": {}}, True, id="annotations to delete from"),
    ],
)
def test_an_import_counts_where_counting_was_asked_for(
    documents: Object, is_wanted: bool
) -> None:
    contents = contents_of(reviews=REVIEWS, **documents)

    assert counting.is_wanted(contents) is is_wanted
