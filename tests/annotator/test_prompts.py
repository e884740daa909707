"""Prompts contain the texts of reviews alone and fit; proposals rest on what reviews say.

Sections: requests - answers - reviews of an author stay together - the vocabulary -
what an annotations file may hold - the summary.
"""

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.model_server import LABELS, Object, completion, texts_of
from lab.small_files import CONTRACT

from reviewslib.annotator import prompts
from reviewslib.annotator.prompts import Prompt
from reviewslib.dataset.counting import readable

HANA = {"id": "hana", "label": "Hana I.", "aliases": ["Ms Ishikawa"]}
PRICE = {"id": "price", "label": "Price"}
EDITORIAL = {"aspects": [PRICE], "topics": [], "entities": {"technicians": [HANA]}}
of_each_prompt = pytest.mark.parametrize(
    "name", ["annotations", "vocabulary", "summary"]
)


def prompt_of(name: str) -> Prompt:
    fixed = {"vocabulary": prompts.VOCABULARY, "summary": prompts.SUMMARY}
    return fixed.get(name) or prompts.annotation_prompt(EDITORIAL)


def reviews(*texts: str | None) -> list[Object]:
    return [
        {"id": f"r{n}", "author": f"Ann {n}", "text": text}
        for n, text in enumerate(texts)
    ]


def answered(name: str, batch: list[Object], answer: Object) -> Any:
    """The parsed answer to a prompt."""
    return prompt_of(name).answer(batch, b"".join(completion(answer)[2]))


# ---- Requests ----


@of_each_prompt
def test_a_request_is_the_one_that_was_reviewed(
    assert_reviewed: Callable[[Path, str], None], name: str
) -> None:
    request = prompt_of(name).request(reviews("Fine", "石"), "m")

    reviewed = Path(__file__).parent / "requests" / f"{name}.json"
    assert_reviewed(reviewed, readable(request).decode())


short_text = st.text(max_size=20)
# Characters that take more room in JSON.
long_text = st.text('"\\\n石', min_size=600, max_size=3000)
# Of a context of 4,096 tokens, with the answer.
LONGEST_REQUEST = 6_000
LONGEST_ANSWER_TOKENS = 2_400


@of_each_prompt
@given(texts=st.lists(short_text | long_text, max_size=30))
def test_every_text_is_sent_once_and_alone_in_requests_that_fit(
    name: str, texts: list[str]
) -> None:
    prompt = prompt_of(name)

    batches = prompt.batches(reviews(*texts), "m")
    requests = [prompt.request(batch, "m") for batch in batches]

    sent: list[str] = []
    for request in requests:
        numbered = list(texts_of(request).items())
        items = [{"n": number, "text": text} for number, text in numbered]
        assert [number for number, _ in numbered] == list(range(1, 1 + len(numbered)))
        assert json.loads(request["messages"][1]["content"]) == items
        sent += [text for _, text in numbered]
    assert sent == texts


@of_each_prompt
@given(texts=st.lists(short_text | long_text, max_size=30))
def test_a_request_for_more_than_one_text_fits(name: str, texts: list[str]) -> None:
    prompt = prompt_of(name)

    batches = prompt.batches(reviews(*texts), "m")

    for batch in batches:
        if len(batch) > 1:
            request = prompt.request(batch, "m")
            encoded = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
            assert len(encoded) <= LONGEST_REQUEST
            assert request["max_tokens"] <= LONGEST_ANSWER_TOKENS


# ---- Answers ----


def test_an_answer_in_another_order_is_that_of_its_numbers() -> None:
    of_the_first = {"aspects": [], "technicians": ["hana"]}
    of_the_second: Object = {"aspects": [], "technicians": []}
    answer = {"reviews": [{"n": 2.0} | of_the_second, {"n": 1} | of_the_first]}

    parsed = answered("annotations", reviews("Hana", "Good"), answer)

    assert parsed == {"r0": of_the_first, "r1": of_the_second}


# ---- Reviews of an author stay together ----


def by_authors(*authors: str, text: str = "Fine.") -> list[Object]:
    """A review with the same text by each of these authors."""
    return [
        {"id": f"r{n}", "author": author, "text": f"{text} {n}"}
        for n, author in enumerate(authors)
    ]


def authors_in(batch: Any) -> set[str]:
    return {review["author"] for review in batch}


@given(
    authors=st.lists(st.sampled_from("abcdefgh"), max_size=40),
    length=st.sampled_from([10, 500, 3000]),
)
def test_all_that_is_read_of_an_author_is_in_one_request(
    authors: list[str], length: int
) -> None:
    reviews_by_them = by_authors(*authors, text="x" * length)

    batches = prompts.VOCABULARY.batches(reviews_by_them, "m")

    named = list(chain.from_iterable(map(authors_in, batches)))
    assert sorted(named) == sorted(set(authors))


@given(
    authors=st.lists(st.sampled_from("abcdefgh"), max_size=40),
    length=st.sampled_from([10, 500, 3000]),
)
def test_a_half_of_a_request_has_all_that_it_asks_of_an_author(
    authors: list[str], length: int
) -> None:
    batches = prompts.VOCABULARY.batches(by_authors(*authors, text="x" * length), "m")

    halves = chain.from_iterable(map(prompts.VOCABULARY.halves, batches))

    named = list(chain.from_iterable(map(authors_in, halves)))
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("authors", "sizes"),
    [
        pytest.param(["Ann", "Bo"], [1, 1], id="two authors"),
        pytest.param(["Ann", "Bo", "Cy"], [1, 2], id="three authors"),
        pytest.param(["Ann", "ANN ", "Bo"], [2, 1], id="a name in other letters"),
        pytest.param(["Ann", "Ann"], [2], id="one author"),
        pytest.param([], [], id="nobody"),
    ],
)
def test_a_vocabulary_is_read_in_two_requests_at_least(
    authors: list[str], sizes: list[int]
) -> None:
    batches = prompts.VOCABULARY.batches(by_authors(*authors), "m")

    assert [len(batch) for batch in batches] == sizes


def test_a_batch_of_one_author_is_not_halved() -> None:
    assert prompts.VOCABULARY.halves(by_authors("Ann", "Ann", "Ann")) == []


def test_of_an_author_of_many_reviews_as_many_are_read_as_fit() -> None:
    reviews = by_authors(*["Ann"] * 9, "Bo", text="x" * 1000)

    batches = prompts.VOCABULARY.batches(reviews, "m")

    first, second = batches
    assert [review["id"] for review in first] == ["r0", "r1", "r2", "r3"]
    assert [review["id"] for review in second] == ["r9"]


# ---- The vocabulary ----


def proposals_of(*answers: list[str]) -> Any:
    """What is proposed after answers with these labels of aspects."""
    empty: Object = {kind: [] for kind in LABELS}
    proposals = prompts.proposed_vocabulary(
        [empty | {"aspects": labels} for labels in answers]
    )
    assert not list(CONTRACT.editorial_file.violations(proposals))
    return proposals


def entry(id: str, label: str) -> Object:
    return {"id": id, "label": label, "proposed": True}


def test_a_label_of_two_answers_is_an_entry_and_one_of_a_single_answer_is_not() -> None:
    proposals = proposals_of(["Price", "Wait"], ["Wait", "Say: closed"])

    assert proposals == {
        "aspects": [entry("wait", "Wait")],
        "proposed_aspects": [
            entry("price", "Price"),
            entry("say-closed", "Say: closed"),
        ],
    }


def test_a_label_that_one_answer_has_twice_has_one_answer() -> None:
    proposals = proposals_of(["Closed", "closed", " CLOSED"], [])

    assert proposals == {"proposed_aspects": [entry("closed", "Closed")]}


def test_labels_of_more_answers_come_first() -> None:
    proposals = proposals_of(["a", "b"], ["b", "a"], ["b"])

    assert proposals["aspects"] == [entry("b", "b"), entry("a", "a")]


@pytest.mark.parametrize(
    ("label", "entries"),
    [
        pytest.param(" A\nB ", [entry("a-b", "A B")], id="blanks"),
        pytest.param("Dr. Albrecht", [entry("dr-albrecht", "Dr. Albrecht")], id="dots"),
        pytest.param("Größe/Maß", [entry("grösse-mass", "Größe/Maß")], id="letters"),
        pytest.param("x" * 60, [entry("x" * 60, "x" * 60)], id="the longest"),
        pytest.param("x" * 61, [], id="a sentence"),
        pytest.param("!?", [], id="no word"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_an_id_is_words_and_hyphens(label: str, entries: list[Object]) -> None:
    proposals = proposals_of(["Price", label], ["Price", label])

    assert proposals["aspects"] == [entry("price", "Price"), *entries]


@pytest.mark.parametrize(
    ("spellings", "chosen"),
    [
        pytest.param(["Dr. Albrecht", "Dr Albrecht"], "Dr Albrecht", id="the shortest"),
        pytest.param(["A-B", "A-B", "A B!"], "A-B", id="that of most answers"),
        pytest.param(["🖕 Price", "Price"], "Price", id="without signs of one answer"),
        pytest.param(["price", "Price"], "Price", id="the same in any order"),
        pytest.param(["Price", "price"], "Price", id="the same in another order"),
    ],
)
def test_labels_with_the_same_words_are_one_entry(
    spellings: list[str], chosen: str
) -> None:
    proposals = proposals_of(*([spelling] for spelling in spellings))

    (entry,) = proposals["aspects"]
    assert entry["label"] == chosen
    assert list(proposals) == ["aspects"]


def test_people_and_services_are_proposed_whatever_the_answers_have() -> None:
    answer = LABELS | {"technicians": ["Hana"], "services": ["Massage"]}

    proposals = prompts.proposed_vocabulary([answer, answer])

    assert proposals["proposed_entities"] == {
        "technicians": [entry("hana", "Hana")],
        "services": [entry("massage", "Massage")],
    }
    assert "entities" not in proposals


@pytest.mark.parametrize(
    ("answers", "places"),
    [
        pytest.param(1, ["proposed_aspects", "proposed_topics"], id="one answer"),
        pytest.param(2, ["aspects", "topics"], id="two answers"),
    ],
)
def test_no_list_is_longer_than_people_read(answers: int, places: list[str]) -> None:
    many = {kind: [f"word {n}" for n in range(99)] for kind in LABELS}

    proposals = prompts.proposed_vocabulary([many] * answers)

    assert [len(proposals[place]) for place in places] == [10, 10]
    entities = proposals["proposed_entities"].values()
    assert [len(entries) for entries in entities] == [30, 30]


def test_without_any_aspect_nothing_is_proposed() -> None:
    answer = LABELS | {"aspects": []}

    assert prompts.proposed_vocabulary([answer, answer]) == {}


# ---- What an annotations file may hold ----


def annotated(*mentions: Object, technicians: Any = ()) -> Any:
    """The parsed answer about one review with these mentions of aspects."""
    said = {"n": 1, "aspects": list(mentions), "technicians": list(technicians)}
    return answered("annotations", reviews("Dear."), {"reviews": [said]})["r0"]


def mention(sentiment: str, phrase: str | None = None) -> Object:
    return {"id": "price", "sentiment": sentiment, "phrase": phrase}


def test_ids_that_a_model_repeats_are_one() -> None:
    said = annotated(technicians=["hana"] * 999)

    assert said["technicians"] == ["hana"]


def test_an_aspect_stands_once_with_each_sentiment() -> None:
    repeated = [mention("positive", "a"), mention("negative"), mention("positive", "b")]

    said = annotated(*repeated * 99)

    assert said["aspects"] == [mention("positive", "a"), mention("negative")]


@pytest.mark.parametrize(
    ("length", "is_kept"),
    [pytest.param(200, True, id="kept"), pytest.param(201, False, id="dropped")],
)
def test_a_long_text_is_no_phrase(length: int, is_kept: bool) -> None:
    phrase = "x" * length

    (said,) = annotated(mention("positive", phrase))["aspects"]

    assert said["phrase"] == (phrase if is_kept else None)


# ---- The summary ----


FAQ: Object = {"question": "Dear?", "answer": "Yes.", "review_ids": ["r1"]}
PROPOSED = {
    "proposed_summary": "Fine",
    "proposed_summary_review_ids": ["r1"],
    "proposed_faq": [FAQ] * 8,
}


@pytest.mark.parametrize(
    ("quote", "numbers", "proposals"),
    [
        pytest.param(
            " Too dear ",
            [2, 2, 0, 3],
            PROPOSED | {"proposed_pull_quote": "Too dear"},
            id="with a quotation",
        ),
        pytest.param("too dear", [2], PROPOSED, id="in other letters"),
        pytest.param("", [0, 3, -1], {}, id="of no review that is there"),
    ],
)
def test_a_summary_rests_on_reviews_and_a_quotation_is_verbatim(
    quote: str, numbers: list[int], proposals: Object
) -> None:
    # given an answer that rests on these numbers of two reviews
    answer = {
        "summary": " Fine",
        "review_ids": numbers,
        "pull_quote": quote,
        "faq": [FAQ | {"review_ids": numbers}] * 9,
    }

    # when it is read
    parsed = answered("summary", reviews("It helped.", "Too dear."), answer)

    # then it becomes proposals that may stand in the owner's file
    assert parsed == proposals
    assert list(CONTRACT.editorial_file.violations(parsed)) == []


@pytest.fixture
def spread() -> list[int]:
    """The numbers of the reviews that are read for a summary, of a thousand with words."""
    with_words = [str(number) for number in range(1000)]
    chosen = prompts.spread(reviews(*with_words, None, " ", ""))
    return [int(review["text"]) for review in chosen]


def test_a_summary_is_of_200_reviews_with_words(spread: list[int]) -> None:
    assert len(spread) == 200
    assert len(set(spread)) == 200


def test_each_part_of_them_has_old_reviews_and_new_ones(spread: list[int]) -> None:
    a_part = spread[:40]

    old = [number for number in a_part if number < 500]

    assert 10 < len(old) < 30
