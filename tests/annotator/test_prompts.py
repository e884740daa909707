"""Prompts contain the texts of reviews alone and fit; proposals rest on what reviews say."""

import json
from collections.abc import Callable
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
        {"id": f"r{n}", "author": "Ann", "text": text} for n, text in enumerate(texts)
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
    assert_reviewed(
        Path(__file__).parent / "requests" / f"{name}.json", readable(request).decode()
    )


@of_each_prompt
@given(
    texts=st.lists(
        st.text(max_size=20) | st.text('"\\\n石', min_size=600, max_size=3000),
        max_size=30,
    )
)
def test_every_text_is_sent_once_and_alone_in_requests_that_fit(
    name: str, texts: list[str]
) -> None:
    prompt = prompt_of(name)
    requests = [
        prompt.request(batch, "m") for batch in prompt.batches(reviews(*texts), "m")
    ]
    assert [
        text for request in requests for text in texts_of(request).values()
    ] == texts
    for request in requests:
        numbered = [
            {"n": n, "text": text}
            for n, text in enumerate(texts_of(request).values(), 1)
        ]
        assert json.loads(request["messages"][1]["content"]) == numbered
        length = len(json.dumps(request, ensure_ascii=False, separators=(",", ":")))
        assert (length <= 6_000 and request["max_tokens"] <= 2_400) or len(
            numbered
        ) == 1


# ---- Answers ----


def test_an_answer_in_another_order_is_that_of_its_numbers() -> None:
    lists = [
        {"aspects": [], "technicians": ["hana"]},
        {"aspects": [], "technicians": []},
    ]
    answer = {"reviews": [{"n": 2.0} | lists[1], {"n": 1} | lists[0]]}
    assert answered("annotations", reviews("Hana", "Good"), answer) == {
        "r0": lists[0],
        "r1": lists[1],
    }


def test_entries_are_the_most_frequent_labels_cleaned_and_bounded() -> None:
    labels = (
        ["Price", " A\nB "],
        ["price", "Wait", "", "x" * 61],
        ["wait", "x" * 60, "B"],
    )
    many = {kind: [*map(str, range(99)), "x" * 60] for kind in LABELS}
    proposals = prompts.proposed_vocabulary(
        [many | {"aspects": names} for names in labels]
    )
    entries = [
        ("price", "Price"),
        ("wait", "Wait"),
        ("a-b", "A B"),
        ("x" * 60, "x" * 60),
        ("b", "B"),
    ]
    assert proposals["aspects"] == [{"id": id, "label": label} for id, label in entries]
    assert not list(CONTRACT.editorial_file.violations(proposals))
    counts = {
        kind: len(entries)
        for kind, entries in (proposals | proposals["proposed_entities"]).items()
    }
    assert (counts["topics"], counts["technicians"], counts["services"]) == (10, 30, 30)


FAQ: Object = {"question": "Dear?", "answer": "Yes.", "review_ids": ["r1"]}
PROPOSED = {
    "proposed_summary": "Fine",
    "proposed_summary_review_ids": ["r1"],
    "proposed_faq": [FAQ] * 8,
}
PROPOSALS = [
    (" Too dear ", [2, 2, 0, 3], PROPOSED | {"proposed_pull_quote": "Too dear"}),
    ("too dear", [2], PROPOSED),
    ("", [0, 3, -1], {}),
]


@pytest.mark.parametrize(("quote", "numbers", "proposals"), PROPOSALS)
def test_a_summary_rests_on_reviews_and_a_quotation_is_verbatim(
    quote: str, numbers: list[int], proposals: Object
) -> None:
    rests_on = {"review_ids": numbers}
    answer = {
        "summary": " Fine",
        "pull_quote": quote,
        "faq": [FAQ | rests_on] * 9,
    } | rests_on
    assert answered("summary", reviews("It helped.", "Too dear."), answer) == proposals
    assert not list(CONTRACT.editorial_file.violations(proposals))


def test_a_spread_has_200_reviews_with_words_from_all_times() -> None:
    many = reviews(*map(str, range(1000)), None, " ", "")
    chosen = [int(review["text"]) for review in prompts.spread(many)]
    assert len(set(chosen)) == len(chosen) == 200
    assert 10 < sum(number < 500 for number in chosen[:40]) < 30, (
        "each part has old reviews and new ones"
    )
