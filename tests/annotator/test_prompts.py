"""Prompts contain the texts of reviews alone and fit; phrases and quotations are used only if verbatim."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from model_server import Object, completion, texts_of
from small_files import CONTRACT

from reviewslib.annotator.prompts import (
    MAX_ANNOTATED,
    MAX_CHARACTERS,
    annotation_prompt,
    largest_spread,
    merged_labels,
    proposed_vocabulary,
    spread,
    summary_prompt,
    vocabulary_prompt,
)

EDITORIAL: Object = {
    "aspects": [{"id": "price", "label": "Price"}],
    "entities": {"technicians": [{"id": "hana", "label": "Hana I.", "aliases": ["Ms Ishikawa"]}]},
}


def reviews(*texts: str | None) -> list[Object]:
    return [{"id": f"r{n}", "author": "Ann", "text": text} for n, text in enumerate(texts)]


def answered(prompt: Any, answer: Object) -> Any:
    """The parsed answer."""
    _, _, pieces = completion(answer)
    return prompt.answer(b"".join(pieces))


@given(texts=st.lists(st.text(max_size=20) | st.text('"\\\n石', min_size=600, max_size=3000), max_size=30))
def test_every_review_is_sent_once_in_order_in_requests_that_fit(texts: list[str]) -> None:
    for prompt in (annotation_prompt(EDITORIAL), vocabulary_prompt({}), summary_prompt()):
        batches = prompt.batches(reviews(*texts), "m")
        assert [review["text"] for batch in batches for review in batch] == texts
        for batch in batches:
            request = prompt._replace(reviews=batch).request("m")
            length = len(json.dumps(request, ensure_ascii=False, separators=(",", ":")))
            assert length <= MAX_CHARACTERS or len(batch) == 1
            assert list(texts_of(request).values()) == [review["text"] for review in batch]
            assert len(batch) <= MAX_ANNOTATED or prompt.name != "annotations"


def test_the_largest_spread_fits_one_request_and_reaches_the_oldest_review() -> None:
    texts = [f"{number} {'x' * 300}" for number in range(100)]
    prompt = summary_prompt()
    chosen = largest_spread(reviews(*texts), 60, prompt, "m")
    (whole,) = prompt.batches(chosen, "m")
    assert whole == chosen and len(chosen) > 10
    assert len(prompt.batches(spread(reviews(*texts), len(chosen) + 1), "m")) == 2
    assert int(chosen[-1]["text"].split()[0]) > 85, "the oldest tenth has a review"


def test_a_review_that_fits_no_request_is_a_spread_by_itself() -> None:
    assert len(largest_spread(reviews("x" * 9_000, "y" * 9_000), 60, summary_prompt(), "m")) == 1


def closed_objects(schema: Any) -> bool:
    """Whether every object is closed and needs all its keys, and no enum is empty."""
    if isinstance(schema, list):
        return all(map(closed_objects, schema))
    if not isinstance(schema, dict):
        return True
    keys = [*schema["properties"]] if schema.get("type") == "object" else []
    is_closed = schema.get("additionalProperties") is False and schema["required"] == keys
    return (is_closed or not keys) and schema.get("enum") != [] and all(map(closed_objects, schema.values()))


def test_a_request_fits_strict_servers_and_has_only_texts() -> None:
    for prompt in (annotation_prompt(EDITORIAL), vocabulary_prompt({}), summary_prompt()):
        request = prompt._replace(reviews=reviews("Fine", "Good")).request("m")
        assert set(request) == {"model", "messages", "response_format", "stream", "max_tokens"}
        form = request["response_format"]
        assert form["type"] == "json_schema" and form["json_schema"]["strict"] and not request["stream"]
        schema = form["json_schema"]["schema"]
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object" and closed_objects(schema)
        texts = [{"n": 1, "text": "Fine"}, {"n": 2, "text": "Good"}]
        assert json.loads(request["messages"][1]["content"]) == texts


def test_annotations_are_asked_for_kinds_with_entries_by_all_names() -> None:
    prompt = annotation_prompt(EDITORIAL)
    items = prompt.schema["properties"]["reviews"]["items"]
    assert set(items["properties"]) == {"n", "aspects", "technicians"}
    assert "\n- hana: Hana I., Ms Ishikawa" in prompt.instructions


@pytest.mark.parametrize(
    ("phrase", "kept"),
    [(" Good ", "Good"), ("good", None), ("<b>buy</b>", None), (None, None), ("x" * 101, None)],
)
def test_a_phrase_is_kept_only_if_its_review_contains_it(phrase: str | None, kept: str | None) -> None:
    prompt = annotation_prompt(EDITORIAL)._replace(reviews=reviews("Good " + "x" * 101, "<b>buy</b>"))
    mention = {"id": "price", "sentiment": "positive"}
    lists = {"aspects": [mention | {"phrase": phrase}], "technicians": ["hana"]}
    other = {"n": 2, "aspects": [], "technicians": []}
    annotations = answered(prompt, {"reviews": [other, {"n": 1} | lists]})
    assert annotations["r0"] == {"aspects": [mention | {"phrase": kept}], "technicians": ["hana"]}


def proposed(*aspects: str) -> Object:
    return {"aspects": list(aspects), "topics": [], "technicians": ["Hana"], "services": ["Massage"]}


def test_labels_are_the_most_frequent_ones_cleaned_and_bounded() -> None:
    answers = [proposed("Price", " A\nB "), proposed("price", "Wait", "", "x" * 61, "\x1b"), proposed("wait")]
    assert merged_labels(answers)["aspects"] == ["Price", "Wait", "A B"]
    assert len(merged_labels([proposed(*map(str, range(99)))])["aspects"]) == 10


def test_a_vocabulary_prompt_names_labels_of_earlier_answers() -> None:
    instructions = vocabulary_prompt({"aspects": ["Price"], "topics": ["待ち"]}).instructions
    assert '{"aspects":["Price"],"topics":["待ち"]}' in instructions


def test_labels_become_entries_unless_the_owner_lists_them() -> None:
    labels = proposed("Price", "Wait") | {"topics": ["待ち", "?!", "Ä–b"]}
    proposals = proposed_vocabulary(EDITORIAL | {"aspects": []}, labels)
    ids = {kind: [entry["id"] for entry in proposals[kind]] for kind in ("aspects", "topics")}
    assert ids == {"aspects": ["price", "wait"], "topics": ["待ち", "?!", "ä-b"]}
    people, services = [{"id": "hana", "label": "Hana"}], [{"id": "massage", "label": "Massage"}]
    assert proposals["proposed_entities"] == {"technicians": people, "services": services}
    assert not list(CONTRACT.editorial_file.violations(proposals))
    listed = proposed("Price") | {"technicians": ["ms  ishikawa"], "services": []}
    assert proposed_vocabulary(EDITORIAL, listed) == {"topics": []}


def test_a_summary_rests_on_reviews_and_a_quotation_is_verbatim() -> None:
    prompt = summary_prompt()._replace(reviews=reviews("It helped.", "Too dear."))

    def proposals(text: str, numbers: list[int]) -> Any:
        part = {"text": text, "reviews": numbers}
        faq = [{"question": "Dear?", "answer": "Yes.", "reviews": numbers}] * 9
        return answered(prompt, {"summary": part, "quotation": part, "questions": faq})

    entry = {"question": "Dear?", "answer": "Yes.", "review_ids": ["r1"]}
    basis = {"proposed_summary_review_ids": ["r1"], "proposed_faq": [entry] * 8}
    summary = {"proposed_summary": "Too dear"} | basis
    assert proposals(" Too dear ", [2, 2, 0, 3]) == summary | {"proposed_pull_quote": "Too dear"}
    assert proposals("too dear", [2]) == summary | {"proposed_summary": "too dear"}
    assert proposals("Too dear", [1]).get("proposed_pull_quote") is None  # it stands in another review
    assert proposals("Too dear", [0, 3, -1]) == {}
    assert not list(CONTRACT.editorial_file.violations(proposals("Too dear", [2])))


def test_a_spread_is_even_and_of_reviews_with_words() -> None:
    worded = reviews(*map(str, range(10)))
    assert [review["id"] for review in spread(worded, 4)] == ["r0", "r2", "r5", "r7"]
    assert spread(worded, 99) == worded
    assert spread(reviews(None, " ", ""), 4) == []
