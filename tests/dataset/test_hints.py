"""Where nothing matches, hints look further than the words of the texts.

What hints say of ranges, names and phrases has a file of its own (test_hinting.py).

Sections: entries - questions - words - names - sentences - truth.
"""

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import plain_definition as plain
from lab.small_files import Object, a_file, loaded, review, served

from reviewslib.dataset.hinting import hints
from reviewslib.dataset.hints import (
    FittingEntry,
    FittingQuestion,
    Hint,
    NothingKnown,
    OneFilterLess,
    OtherWords,
    SingleWords,
    UnknownName,
    Unmentioned,
    WordBeginning,
)
from reviewslib.dataset.query import Query
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.searching import search

REVIEWS = [
    review("a", text="No pain at all, and a painless bill", rating=5),
    review("b", text="Pains are gone. Clara is kind", rating=2),
    review("c", text="Ask for Clara Meier", rating=4),
    review("d", rating=3),
]
INSIGHTS = {
    "aspects": [
        {"id": "wait", "label": "Waiting time"},
        {"id": "park", "label": "Parking"},
    ],
    "topics": [
        {
            "id": "gentle",
            "label": "Gentle with the nervous",
            "summary": "Children and patients who fear needles are taken time for.",
        },
        {"id": "silent", "label": "Nervous of noise"},
    ],
    "entities": {
        "technicians": [
            {"id": "clara", "label": "Clara Meier"},
            {"id": "bo", "label": "Bo Unheard"},
        ],
        "services": [{"id": "braces", "label": "Braces"}],
    },
    "faq": [
        {
            "question": "Where do I park?",
            "answer": "Behind the house.",
            "review_ids": [],
        },
        {
            "question": "Is it loud?",
            "answer": "The waiting is quiet.",
            "review_ids": [],
        },
        {"question": "Is there music?", "answer": "A quiet radio.", "review_ids": []},
        {"question": "Quiet hours?", "answer": "Mornings.", "review_ids": []},
    ],
    "per_review": {
        "a": {
            "topics": ["gentle"],
            "aspects": [{"id": "wait", "sentiment": "negative"}],
        },
        "c": {"topics": ["gentle"]},
    },
}
DATASET = loaded(a_file(*REVIEWS), INSIGHTS)


def hints_of(
    kind: type[Hint], dataset: Dataset = DATASET, **filters: Any
) -> list[Hint]:
    """The hints of one kind for a search without matches."""
    query = Query(**filters)
    assert json.loads(search(dataset, query).encoded())["matched"] == 0
    return [hint for hint in hints(dataset, query) if isinstance(hint, kind)]


# ---- Entries ----


GENTLE = ("topics/gentle", "Gentle with the nervous")
FOUND_BY = [
    pytest.param({"query": "nervous"}, ("query", *GENTLE, 2), id="label"),
    pytest.param({"query": "child fears needle"}, ("query", *GENTLE, 2), id="summary"),
    pytest.param({"mentions": "needles"}, ("mentions", *GENTLE, 2), id="unknown name"),
    pytest.param(
        {"mentions_service": "needles"}, ("mentions_service", *GENTLE, 2), id="service"
    ),
    pytest.param(
        {"query": "nervous", "min_rating": 5}, ("query", *GENTLE, 1), id="other filters"
    ),
    pytest.param(
        {"query": "waiting nowhere"},
        ("query", "aspects/wait", "Waiting time", 1),
        id="one of the words",
    ),
]


@pytest.mark.parametrize(("filters", "values"), FOUND_BY)
def test_the_words_of_a_value_lead_to_an_entry(
    filters: dict[str, Any], values: tuple[Any, ...]
) -> None:
    found = hints_of(FittingEntry, **filters)

    assert found == [FittingEntry(*values)]


NOT_FOUND = [
    pytest.param({"query": "braces"}, id="no review speaks of it"),
    pytest.param({"query": "nervous", "rating": 2}, id="not with the other filters"),
    pytest.param({"query": "nervous", "mentions": "wait"}, id="another subject"),
    pytest.param({"query": "the"}, id="a short word"),
    pytest.param({"source": "nervous"}, id="a source"),
]


@pytest.mark.parametrize("filters", NOT_FOUND)
def test_an_entry_that_would_find_nothing_is_not_named(filters: dict[str, Any]) -> None:
    assert hints_of(FittingEntry, **filters) == []


def test_at_most_four_entries_are_named_the_most_mentioned_first() -> None:
    topics = [{"id": str(n), "label": f"Nervous {n}"} for n in range(6)]
    said = {str(n): {"topics": [str(it) for it in range(n, 6)]} for n in range(6)}
    crowd = a_file(*(review(str(n)) for n in range(6)))
    dataset = loaded(crowd, {"topics": topics, "per_review": said})

    found = hints_of(FittingEntry, dataset, query="nervous")

    assert [asdict(hint)["mentions"] for hint in found] == [
        "topics/5",
        "topics/4",
        "topics/3",
        "topics/2",
    ]


def test_a_word_that_many_texts_have_leads_to_no_entry() -> None:
    texts = [review(str(n), text="so nervous here") for n in range(4)]
    said = {"0": {"topics": ["gentle"]}}
    dataset = loaded(a_file(*texts), INSIGHTS | {"per_review": said})

    assert hints_of(FittingEntry, dataset, query="nervous there") == []


def test_what_only_a_model_calls_so_is_in_no_hint() -> None:
    invented = [{"id": "x", "label": "Evil.example nervous", "proposed": True}]
    said = {"a": {"topics": ["x"]}}
    dataset = loaded(a_file(*REVIEWS), {"topics": invented, "per_review": said})

    result = json.loads(search(dataset, Query(mentions="unknown")).encoded())
    named = hints_of(FittingEntry, dataset, query="nervous")

    assert named == []
    assert "Evil" not in "".join(result["hints"])


# ---- Questions ----

ASKED = [
    pytest.param({"query": "parking"}, ["Where do I park?"], id="question"),
    pytest.param({"mentions": "houses"}, ["Where do I park?"], id="answer"),
    pytest.param({"query": "quiet"}, ["Is it loud?", "Is there music?"], id="two"),
    pytest.param({"query": "quiet radio"}, ["Is there music?"], id="with both words"),
    pytest.param({"query": "nervous"}, [], id="none"),
]


@pytest.mark.parametrize(("filters", "questions"), ASKED)
def test_the_words_of_a_value_lead_to_at_most_two_questions(
    filters: dict[str, Any], questions: list[str]
) -> None:
    found = hints_of(FittingQuestion, **filters)

    assert [asdict(hint)["question"] for hint in found] == questions


def test_a_question_with_words_of_two_values_is_named_once() -> None:
    found = hints_of(
        FittingQuestion, mentions_technician="radio", mentions_service="radio music"
    )

    assert [asdict(hint)["question"] for hint in found] == ["Is there music?"]


# ---- Words ----

PAIN = ["pains", "painless"]
# A word, its beginning, how many of four reviews have that, and longer words.
BEGINNINGS = [
    pytest.param("painful", "pain", 2, PAIN, id="ending"),
    pytest.param("clarinet", "clar", 2, ["clara"], id="four letters"),
    pytest.param("painfully?", "pain", 2, PAIN, id="punctuation"),
    pytest.param("gonelike", "gone", 1, [], id="a whole word"),
]


@pytest.mark.parametrize(("word", "beginning", "matched", "examples"), BEGINNINGS)
def test_a_word_that_no_text_has_leads_to_words_that_begin_like_it(
    word: str, beginning: str, matched: int, examples: list[str]
) -> None:
    found = hints_of(WordBeginning, query=word)

    assert found == [
        WordBeginning(
            word=word,
            beginning=beginning,
            matched=matched,
            searched=4,
            examples=examples,
        )
    ]


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("claire", id="a beginning of three letters"),
        pytest.param("zzz", id="nothing alike"),
    ],
)
def test_a_word_that_is_like_no_other_leads_to_none(word: str) -> None:
    assert hints_of(WordBeginning, query=word) == []


def test_of_many_words_with_a_beginning_the_three_shortest_are_named() -> None:
    text = "paintbrushes painted painters pains painting"
    dataset = loaded(a_file(review(text=text)))

    (found,) = [
        hint
        for hint in hints(dataset, Query(query="painful"))
        if isinstance(hint, WordBeginning)
    ]

    assert found.examples == ["pains", "painted", "painters"]


def test_a_beginning_is_counted_with_the_other_filters() -> None:
    (found,) = hints_of(WordBeginning, query="painful", max_rating=3)

    assert found == WordBeginning("painful", "pain", 1, 2, PAIN)


def test_another_word_is_asked_for_only_where_nothing_else_is_known() -> None:
    assert hints_of(OtherWords, query="zzz") == [OtherWords(None)]
    assert hints_of(OtherWords, query="painful") == []
    assert hints_of(OtherWords, query="nervous") == []


# ---- Names ----

UNMENTIONED = [
    pytest.param(
        {"mentions": "clara"},
        Unmentioned("mentions", "Clara Meier", "Clara Meier", 1),
        id="label",
    ),
    pytest.param(
        {"mentions_technician": "bo"},
        Unmentioned("mentions_technician", "Bo Unheard", "bo", 0),
        id="neither label nor value",
    ),
    pytest.param(
        {"mentions_service": "braces"},
        Unmentioned("mentions_service", "Braces", "braces", 0),
        id="service",
    ),
]


@pytest.mark.parametrize(("filters", "hint"), UNMENTIONED)
def test_what_is_known_and_not_mentioned_may_stand_in_texts(
    filters: dict[str, Any], hint: Unmentioned
) -> None:
    assert hints_of(Unmentioned, **filters) == [hint]


def test_where_no_text_has_a_label_its_value_is_counted() -> None:
    known = {"entities": {"technicians": [{"id": "c", "label": "Dr. Clara Nobody"}]}}
    dataset = loaded(a_file(*REVIEWS), known)

    found = hints_of(Unmentioned, dataset, mentions_technician="clara")

    assert found == [Unmentioned("mentions_technician", "Dr. Clara Nobody", "clara", 2)]


def test_what_is_mentioned_but_not_with_the_other_filters_is_not_unmentioned() -> None:
    assert hints_of(Unmentioned, mentions="gentle", rating=1) == []


def test_known_subjects_are_listed_with_aspects_then_topics_first() -> None:
    (hint,) = hints_of(UnknownName, mentions="unknown")

    assert hint.known == [
        "aspects/wait (Waiting time)",
        "topics/gentle (Gentle with the nervous)",
    ]


def test_at_most_forty_names_are_listed() -> None:
    names = [f"n{number}" for number in range(42)]

    sentence = str(UnknownName("mentions", "subject", "subjects", "x", names, 0))

    assert "; n39 and 2 more." in sentence


@pytest.mark.parametrize("parameter", ["mentions", "sentiment"])
def test_a_filter_without_entries_says_so(parameter: str) -> None:
    dataset = loaded(a_file(*REVIEWS), {})

    found = hints_of(NothingKnown, dataset, **{parameter: "negative"})

    assert found == [NothingKnown(parameter)]


# ---- Sentences ----

SENTENCES = [
    pytest.param(
        FittingEntry("query", "topics/x", "A\nb", 17),
        "A b: 17 reviews, mentions=topics/x instead of query.",
        id="entry",
    ),
    pytest.param(
        FittingEntry("mentions", "topics/x", "A", 1),
        "A: 1 review, mentions=topics/x.",
        id="entry instead of mentions",
    ),
    pytest.param(FittingQuestion("Q?", "A."), "Q? A.", id="question"),
    pytest.param(
        WordBeginning("painful", "pain", 12, 160, ["pains", "painless"]),
        "None of 160 reviews has “painful”; 12 have “pain”, as in pains, painless.",
        id="beginning",
    ),
    pytest.param(
        WordBeginning("wheels", "wheel", 1, 9, []),
        "None of 9 reviews has “wheels”; 1 has “wheel”.",
        id="beginning that is a word",
    ),
    pytest.param(
        Unmentioned("mentions", "Clara", "Clara", 32),
        "No review is known to mention Clara."
        " Reviews with “Clara” in their text: 32 (search with query).",
        id="unmentioned",
    ),
    pytest.param(
        NothingKnown("mentions"),
        "mentions finds nothing here: nobody has said what these reviews speak of."
        " Search with query.",
        id="no entries",
    ),
]


@pytest.mark.parametrize(("hint", "sentence"), SENTENCES)
def test_a_hint_is_one_sentence(hint: Hint, sentence: str) -> None:
    assert str(hint) == sentence


LONG = "x" * 500
CUT = "x" * 200 + "…"


@pytest.mark.parametrize(
    "hint",
    [
        pytest.param(WordBeginning(LONG, "pain", 1, 9, []), id="a word"),
        pytest.param(WordBeginning("pain", LONG, 1, 9, []), id="its beginning"),
        pytest.param(WordBeginning("pain", "pa", 1, 9, [LONG]), id="a longer word"),
        pytest.param(SingleWords({LONG: 1}), id="one of some words"),
        pytest.param(
            UnknownName("source", "source", "sources", LONG, [], 0), id="name"
        ),
        pytest.param(Unmentioned("mentions", LONG, "Clara", 0), id="label"),
    ],
)
def test_of_what_is_too_long_a_hint_repeats_the_beginning(hint: Hint) -> None:
    sentence = str(hint)

    assert CUT in sentence
    assert "x" * 201 not in sentence


# ---- Truth: counts are those of the search that a hint names ----

VALUES = ["nervous", "child", "needles", "waiting", "park", "clara", "pain", "music"]
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "query": st.sampled_from(VALUES),
        "mentions": st.sampled_from([*VALUES, "topics/gentle"]),
        "sentiment": st.sampled_from(plain.SENTIMENTS),
        "min_rating": st.sampled_from(["1", "4", "5"]),
    },
)


@given(FILTERS)
def test_each_count_is_that_of_the_search_that_the_hint_names(
    asked: dict[str, str],
) -> None:
    numbers: Object = asked | {"min_rating": float(asked.get("min_rating", 1))}

    for hint in hints(DATASET, Query(**numbers)):
        if isinstance(hint, FittingEntry):
            other = {**asked, hint.parameter: "", "mentions": hint.mentions}
            assert matched_plainly(other) == hint.matched
        if isinstance(hint, OneFilterLess):
            for name, matched in hint.matched.items():
                assert matched_plainly({**asked, name: ""}) == matched


def matched_plainly(asked: dict[str, str]) -> int:
    found: int = plain.search(served(DATASET), INSIGHTS, asked)["matched"]
    return found
