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
    Prompt,
    annotation_prompt,
    merged_vocabulary,
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


def answered(prompt: Any, batch: list[Object], answer: Object) -> Any:
    """The parsed answer."""
    _, _, pieces = completion(answer)
    return prompt.answer(batch, b"".join(pieces))


PROMPTS = [annotation_prompt(EDITORIAL), vocabulary_prompt(merged_vocabulary([])), summary_prompt()]


@given(texts=st.lists(st.text(max_size=20) | st.text('"\\\n石', min_size=600, max_size=3000), max_size=30))
def test_every_review_is_sent_once_in_order_in_requests_that_fit(texts: list[str]) -> None:
    for prompt in PROMPTS:
        batches = list(prompt.batches(reviews(*texts), "m"))
        assert [review["text"] for batch in batches for review in batch] == texts
        for batch in batches:
            request = prompt.request(batch, "m")
            length = len(json.dumps(request, ensure_ascii=False, separators=(",", ":")))
            fits = length <= 6_000 and request["max_tokens"] <= 2_400
            assert fits or len(batch) == 1
            assert list(texts_of(request).values()) == [review["text"] for review in batch]


def closed_objects(schema: Any) -> bool:
    """Whether every object is closed and needs all its keys, and no enum is empty."""
    if isinstance(schema, list):
        return all(map(closed_objects, schema))
    if not isinstance(schema, dict):
        return True
    keys = [*schema["properties"]] if schema.get("type") == "object" else []
    is_closed = schema.get("additionalProperties") is False and schema["required"] == keys
    return (is_closed or not keys) and schema.get("enum") != [] and all(map(closed_objects, schema.values()))


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_a_request_fits_strict_servers_and_has_only_texts(prompt: Prompt) -> None:
    request = prompt.request(reviews("Fine", "Good"), "m")
    assert set(request) == {"model", "messages", "response_format", "stream", "max_tokens"}
    form = request["response_format"]
    assert form["type"] == "json_schema" and form["json_schema"]["strict"] and not request["stream"]
    schema = form["json_schema"]["schema"]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object" and closed_objects(schema)
    assert json.loads(request["messages"][1]["content"]) == [
        {"n": 1, "text": "Fine"},
        {"n": 2, "text": "Good"},
    ]


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
    batch = reviews("Good " + "x" * 101, "<b>buy</b>")
    mention = {"id": "price", "sentiment": "positive"}
    lists = {"aspects": [mention | {"phrase": phrase}], "technicians": ["hana"]}
    other = {"n": 2, "aspects": [], "technicians": []}
    annotations = answered(annotation_prompt(EDITORIAL), batch, {"reviews": [other, {"n": 1} | lists]})
    assert annotations["r0"] == {"aspects": [mention | {"phrase": kept}], "technicians": ["hana"]}


def proposed(*aspects: str) -> Object:
    return {"aspects": list(aspects), "topics": [], "technicians": ["Hana"], "services": ["Massage"]}


def test_entries_are_the_most_frequent_labels_cleaned_and_bounded() -> None:
    answers = [proposed("Price", " A\nB "), proposed("price", "Wait", "", "x" * 61, "\x1b"), proposed("wait")]
    entries = [("price", "Price"), ("wait", "Wait"), ("a-b", "A B")]
    vocabulary = merged_vocabulary(answers)
    assert vocabulary["aspects"] == [{"id": id, "label": label} for id, label in entries]
    assert len(merged_vocabulary([proposed(*map(str, range(99)))])["aspects"]) == 10
    assert not list(CONTRACT.editorial_file.violations({"proposed_entities": vocabulary} | vocabulary))


def test_a_vocabulary_prompt_names_labels_of_earlier_answers() -> None:
    instructions = vocabulary_prompt(merged_vocabulary([proposed("Price", "待ち")])).instructions
    assert '{"aspects":["Price","待ち"],"topics":[]}' in instructions


ENTRY: Object = {"question": "Dear?", "answer": "Yes.", "review_ids": ["r1"]}
SUMMARY = {"proposed_summary": "Fine", "proposed_summary_review_ids": ["r1"], "proposed_faq": [ENTRY] * 8}


@pytest.mark.parametrize(("quotation", "numbers", "proposals"), [
    (" Too dear ", [2, 2, 0, 3], SUMMARY | {"proposed_pull_quote": "Too dear"}),
    ("too dear", [2], SUMMARY),
    ("", [0, 3, -1], {}),
])  # fmt: skip
def test_a_summary_rests_on_reviews_and_a_quotation_is_verbatim(
    quotation: str, numbers: list[int], proposals: Object
) -> None:
    questions = [{"question": "Dear?", "answer": "Yes.", "reviews": numbers}] * 9
    answer = {"summary": " Fine", "reviews": numbers, "quotation": quotation, "questions": questions}
    batch = reviews("It helped.", "Too dear.")
    assert answered(summary_prompt(), batch, answer) == proposals
    assert not list(CONTRACT.editorial_file.violations(proposals))


def test_a_spread_is_of_reviews_with_words_of_all_times() -> None:
    worded = reviews(*map(str, range(1000)))
    chosen = spread(worded)
    assert len(chosen) == len({review["id"] for review in chosen}) == 200
    of_first = [review for review in chosen[:40] if int(review["text"]) < 500]
    assert 10 < len(of_first) < 30, "any part of it has old reviews and new ones"
    assert len(spread(worded[:7])) == 7 and spread(reviews(None, " ", "")) == []
