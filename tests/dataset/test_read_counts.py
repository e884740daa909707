"""Counted insights say in how many reviews with words somebody looked for what is counted.

Sections: plain definition - cases - where it is said.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.annotated_data import EDITORIAL, annotated_insights
from lab.data_sets import DATA_SETS, dataset_of
from lab.small_files import CONTRACT, a_file, review

from reviewslib.dataset import insights, mentions, searching
from reviewslib.dataset.insights import compute_insights
from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset, served_reviews
from reviewslib.mcp_tools import toolbox_of

Object = dict[str, Any]
ASPECT = {"id": "price", "label": "Price"}
TOPIC = {"id": "desk", "label": "Desk"}
KEYS = ("aspects/price", "topics/desk")
VOCABULARY: Object = {"aspects": [ASPECT], "topics": [TOPIC]}


def served(*texts: str | None) -> list[Any]:
    """Reviews with these texts and the ids 0, 1 and so on."""
    document = a_file(*(review(f"{n}", text=text) for n, text in enumerate(texts)))
    return served_reviews(CONTRACT.reviews_file.complete(document)["reviews"], {})


def annotations_of(reviews: list[Any], said: dict[str, Object]) -> Object:
    """An AnnotationsFile: by the id of a review, the `keys` that it was read with."""
    digests = {one["id"]: mentions.text_digest(one) for one in reviews}
    annotations = {}
    vocabularies = {}
    for id, reading in said.items():
        vocabularies[id] = reading["keys"]
        annotations[id] = {
            "text_digest": digests[id],
            "vocabulary": id,
            "model": "m",
            "failed": reading.get("failed"),
        }
    return {"vocabularies": vocabularies, "reviews": annotations}


# ---- Plain definition: of reviews, what the owner and a model have looked for in each ----


def plain_read_count(cases: list[Object]) -> int | None:
    """The reviews with words in which all was looked for that was anywhere."""
    found = [looked_for(case) for case in cases]
    anywhere = [key for keys in found for key in keys]
    if not anywhere:
        return None
    read = 0
    for case, keys in zip(cases, found, strict=True):
        if case["text"] == "Good." and set(keys) == set(anywhere):
            read += 1
    return read


def looked_for(case: Object) -> list[str]:
    found = list(case["by_model"]["keys"])
    if case["by_model"]["failed"]:
        found = []
    for kind, key in zip(("aspects", "topics"), KEYS, strict=True):
        if case["by_hand"].get(kind) is not None:
            found.append(key)
    return found


CASES = st.fixed_dictionaries(
    {
        "text": st.sampled_from(["Good.", " ", None]),
        "by_hand": st.fixed_dictionaries(
            {}, optional={kind: st.sampled_from([None, []]) for kind in VOCABULARY}
        ),
        "by_model": st.fixed_dictionaries(
            {
                "keys": st.lists(st.sampled_from(KEYS), unique=True),
                "failed": st.sampled_from([None, "cut off"]),
            }
        ),
    }
)


@given(cases=st.lists(CASES, min_size=1, max_size=6))
def test_the_count_equals_its_plain_definition(cases: list[Object]) -> None:
    reviews = served(*(case["text"] for case in cases))
    by_hand = {f"{n}": case["by_hand"] for n, case in enumerate(cases)}
    by_model = {f"{n}": case["by_model"] for n, case in enumerate(cases)}

    document = compute_insights(
        reviews,
        {**VOCABULARY, "per_review": by_hand},
        annotations_of(reviews, by_model),
    )

    assert document["read_count"] == plain_read_count(cases)
    worded = [case for case in cases if case["text"] == "Good."]
    assert document["worded_count"] == len(worded)


# ---- Cases ----

NAMED = {"id": "hana", "label": "Hana", "aliases": ["Hana"]}


def test_a_new_entry_leaves_what_is_counted_read_until_somebody_looks_for_it() -> None:
    reviews = served("Good.", "Good.")
    said = annotations_of(reviews, {"0": {"keys": KEYS[:1]}, "1": {"keys": KEYS[:1]}})

    document = compute_insights(reviews, VOCABULARY, said)

    assert document["read_count"] == 2


def test_names_that_texts_are_searched_for_need_no_reader() -> None:
    editorial = {"entities": {"technicians": [NAMED]}}
    by_hand = {"0": {"technicians": []}}

    document = compute_insights(
        served("Hana.", "Hana."), {**editorial, "per_review": by_hand}
    )

    assert document["read_count"] is None


def test_what_an_owner_writes_as_count_is_not_published() -> None:
    document = compute_insights(served("Good."), {"read_count": 7, "worded_count": 9})

    assert document["read_count"] is None
    assert document["worded_count"] == 1


@pytest.mark.parametrize(
    ("read", "worded", "said"),
    [
        pytest.param(3, 4, {"read_count": 3, "worded_count": 4}, id="partly read"),
        pytest.param(0, 4, {"read_count": 0, "worded_count": 4}, id="nothing read"),
        pytest.param(4, 4, {}, id="all read"),
        pytest.param(None, 4, {}, id="nothing to read"),
        pytest.param(3, None, {}, id="unknown total"),
    ],
)
def test_a_part_is_said_while_something_is_unread(
    read: int | None, worded: int | None, said: Object
) -> None:
    assert insights.unread({"read_count": read, "worded_count": worded}) == said


# ---- Where it is said ----

(REVIEWS_FILE, _) = DATA_SETS["sample"]()


def annotated(limit: int) -> Dataset:
    """The sample of which a model has read the newest `limit` reviews."""
    counted = annotated_insights(REVIEWS_FILE, EDITORIAL, limit)
    return dataset_of(REVIEWS_FILE, counted)


HALF_READ = annotated(60)
WHOLLY_READ = annotated(1000)
HALF = {"read_count": 60, "worded_count": 142}


def said_in(result: Any) -> Object:
    """What a result says of reading."""
    return {key: result[key] for key in HALF if key in result}


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        pytest.param({"mentions": "price"}, HALF, id="mentions"),
        pytest.param({"sentiment": "negative"}, HALF, id="sentiment"),
        pytest.param({"mentions": "zzz"}, HALF, id="no match"),
        pytest.param({"rating": 5}, {}, id="stars"),
        pytest.param({}, {}, id="no filter"),
    ],
)
def test_a_result_found_by_reading_says_how_much_was_read(
    filters: Any, said: Object
) -> None:
    result = searching.search(HALF_READ, Query(**filters))

    assert said_in(result.frame) == said


def test_a_result_says_nothing_of_reading_where_all_was_read() -> None:
    result = searching.search(WHOLLY_READ, Query(mentions="price"))

    assert said_in(result.frame) == {}


@pytest.mark.parametrize(
    ("dataset", "read"),
    [
        pytest.param(HALF_READ, 60, id="half read"),
        pytest.param(WHOLLY_READ, 142, id="wholly read"),
    ],
)
def test_the_summary_for_assistants_says_how_much_was_read(
    dataset: Dataset, read: int
) -> None:
    toolbox = toolbox_of(CONTRACT, dataset)

    told = toolbox.call("get_insights_summary", {})["structuredContent"]

    figures = f'"worded_count":142,"read_count":{read},'
    assert figures.encode() in told.structured
