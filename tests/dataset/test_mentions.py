"""What a model said counts while its text is the same, and is asked for once.

Sections: which annotations are current - further annotations - what is still to be read
- what is left out.
"""

from typing import Any

import pytest
from lab.counted_reviews import VOCABULARY, annotated, praise, rated
from lab.small_files import Object

from reviewslib.dataset import mentions, vocabulary
from reviewslib.dataset.insights import compute_insights
from reviewslib.dataset.mentions import value_digest

KEYS = vocabulary.entry_keys(VOCABULARY)

# ---- Which annotations are current ----

REVIEWS = rated(5, 4, text="Cheap")
ANNOTATIONS = annotated(
    REVIEWS, *[{"aspects": [praise()], "technicians": ["hana"], "score": -1}] * 2
)
ANNOTATIONS["vocabularies"]["w"] = ["aspects/wait"]
ANNOTATIONS["reviews"]["gone"] = ANNOTATIONS["reviews"]["999"] | {"vocabulary": "w"}
# Of the first review the text has changed since the model read it.
EDITED = [REVIEWS[0] | {"text": "Cheap!"}, REVIEWS[1]]
CURRENT = ANNOTATIONS["reviews"]["998"]


def test_the_annotation_of_a_changed_or_removed_text_goes() -> None:
    document = mentions.current_annotations(EDITED, ANNOTATIONS)

    assert document["reviews"] == {"998": CURRENT}


def test_a_vocabulary_that_no_annotation_names_goes() -> None:
    document = mentions.current_annotations(EDITED, ANNOTATIONS)

    assert document["vocabularies"] == {"v": KEYS}


def test_without_reviews_no_annotation_is_left() -> None:
    document = mentions.current_annotations([], ANNOTATIONS)

    assert document == {"vocabularies": {}, "reviews": {}}


# ---- Further annotations ----

SOURCE = {
    "text_digest": CURRENT["text_digest"],
    "vocabulary": value_digest(KEYS),
    "model": "n",
}
CUT_OFF = {"failed": "cut off"}


def extended(said: Object) -> Object:
    """ANNOTATIONS after the model n said the same of both reviews of EDITED."""
    lists = dict.fromkeys(["998", "999"], said)
    return mentions.extended_annotations(ANNOTATIONS, EDITED, lists, KEYS, "n")


def test_a_new_annotation_replaces_the_earlier_lists() -> None:
    document = extended({"topics": ["desk"]})

    assert document["reviews"]["998"] == SOURCE | {"topics": ["desk"]}


def test_a_failed_annotation_keeps_the_earlier_lists_of_the_same_text() -> None:
    document = extended(CUT_OFF)

    assert document["reviews"]["998"] == CURRENT | SOURCE | CUT_OFF


def test_a_failed_annotation_keeps_no_lists_of_another_text() -> None:
    document = extended(CUT_OFF)

    assert "aspects" not in document["reviews"]["999"]


def test_further_annotations_leave_those_of_other_reviews() -> None:
    document = extended(CUT_OFF)

    assert document["reviews"]["gone"] == ANNOTATIONS["reviews"]["gone"]


def test_further_annotations_add_the_vocabulary_that_was_asked_about() -> None:
    document = extended(CUT_OFF)

    added = {value_digest(KEYS): KEYS}
    assert document["vocabularies"] == ANNOTATIONS["vocabularies"] | added


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"topics": ["desk"]}, id="an answer"),
        pytest.param(CUT_OFF, id="a failure"),
    ],
)
def test_what_was_asked_about_is_not_asked_again(said: Object) -> None:
    document = extended(said)

    assert not mentions.unread_reviews(EDITED, VOCABULARY, document)


# ---- What is still to be read ----

READ: Object = {}
BY_HAND: Object = {"aspects": [], "topics": []}
# What the model said of the text "Cheap", the keys it was asked about, and whether the
# review is to be read when its text is this.
READINGS = [
    pytest.param(None, KEYS, "Cheap", True, id="never read"),
    pytest.param(READ, KEYS, "Cheap", False, id="read"),
    pytest.param(READ, KEYS, "New", True, id="another text"),
    pytest.param(READ, [*KEYS, "topics/gone"], "Cheap", False, id="an entry less"),
    pytest.param(READ, KEYS[1:], "Cheap", True, id="a new entry"),
    pytest.param(CUT_OFF, KEYS, "Cheap", False, id="failed"),
    pytest.param(None, KEYS, " ", False, id="blank"),
    pytest.param(None, KEYS, None, False, id="no words"),
]


def annotations_of_cheap(said: Object | None, keys: list[str]) -> Object:
    """What a model said of a review with the text "Cheap", if it said anything."""
    if said is None:
        return {}
    return annotated(rated(5, text="Cheap"), said, keys=keys)


@pytest.mark.parametrize(("said", "keys", "text", "is_unread"), READINGS)
def test_a_review_with_words_is_unread_until_it_was_read_with_every_entry(
    said: Object | None, keys: list[str], text: str | None, is_unread: bool
) -> None:
    reviews = rated(5, text=text)
    annotations = annotations_of_cheap(said, keys)

    unread = mentions.unread_reviews(reviews, VOCABULARY, annotations)

    assert bool(unread) is is_unread


@pytest.mark.parametrize(
    ("said", "is_unread"),
    [
        pytest.param(CUT_OFF, True, id="failed"),
        pytest.param(READ, False, id="read"),
    ],
)
def test_only_what_failed_is_read_again(said: Object, is_unread: bool) -> None:
    reviews = rated(5, text="Cheap")
    annotations = annotations_of_cheap(said, KEYS)

    unread = mentions.unread_reviews(reviews, VOCABULARY, annotations, again=True)

    assert bool(unread) is is_unread


@pytest.mark.parametrize(
    ("lists", "is_unread"),
    [
        pytest.param(BY_HAND | {"technicians": []}, False, id="all kinds"),
        pytest.param(BY_HAND | {"services": []}, True, id="not all kinds"),
        pytest.param(None, True, id="null"),
    ],
)
def test_a_review_whose_lists_the_owner_wrote_is_not_read(
    lists: Object | None, is_unread: bool
) -> None:
    reviews = rated(5, text="Cheap")
    editorial = VOCABULARY | {"per_review": {"999": lists}}

    unread = mentions.unread_reviews(reviews, editorial, {})

    assert bool(unread) is is_unread


# ---- What is left out ----

WORDED = rated(5, 4, text="Cheap, and fast")
SAID = {
    "aspects": [praise(phrase="Cheap"), praise(phrase="cheap"), praise("?")],
    "topics": ["?"],
}
WITH_UNKNOWN = annotated(WORDED, SAID, SAID)
WITH_BO = VOCABULARY | {"per_review": {"999": {"technicians": ["Bo"]}}}


def counted() -> Any:
    return compute_insights(WORDED, WITH_BO, WITH_UNKNOWN)


def test_a_phrase_that_its_review_does_not_have_is_not_shown() -> None:
    assert counted()["aspects"][0]["top_phrases"] == ["Cheap"]


def test_a_mention_stays_without_its_wrong_phrase() -> None:
    aspects = counted()["per_review"]["998"]["aspects"]

    assert aspects == [
        praise(phrase="Cheap"),
        {"id": "price", "sentiment": "positive"},
    ]


def test_a_name_without_an_entry_is_in_no_list() -> None:
    topics = [lists.get("topics") for lists in counted()["per_review"].values()]

    assert topics == [[], []]


def test_unknown_names_and_phrases_are_named_once() -> None:
    assert list(mentions.left_out(WORDED, WITH_BO, WITH_UNKNOWN)) == [
        'aspects: "?" has no entry and is not counted; reviews: 2',
        'technicians: "Bo" has no entry and is not counted; reviews: 1',
        'topics: "?" has no entry and is not counted; reviews: 2',
        'phrases that are not in their review: 2, such as "cheap"',
    ]


def test_where_all_names_are_known_nothing_is_left_out() -> None:
    annotations = annotated(WORDED, {}, {})

    assert not list(mentions.left_out(WORDED, VOCABULARY, annotations))
