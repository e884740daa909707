"""What the model is asked holds texts alone and fits; what it says is used only where it is verbatim."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from model_server import Object, completion, texts_of
from small_files import CONTRACT

from reviewslib.annotator.prompts import (
    MOST_ANNOTATED,
    MOST_CHARACTERS,
    annotation_prompt,
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
    """What an answer means."""
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
            assert length <= MOST_CHARACTERS or len(batch) == 1
            assert list(texts_of(request).values()) == [review["text"] for review in batch]
            assert len(batch) <= MOST_ANNOTATED or prompt.name != "annotations"


def closed_objects(schema: Any) -> bool:
    """Whether every object is closed and needs all its keys, and no enum is empty."""
    if isinstance(schema, list):
        return all(map(closed_objects, schema))
    if not isinstance(schema, dict):
        return True
    keys = [*schema["properties"]] if schema.get("type") == "object" else []
    is_closed = schema.get("additionalProperties") is False and schema["required"] == keys
    return (is_closed or not keys) and schema.get("enum") != [] and all(map(closed_objects, schema.values()))


def test_a_request_is_what_strict_servers_take_and_has_nothing_but_texts() -> None:
    for prompt in (annotation_prompt(EDITORIAL), vocabulary_prompt({}), summary_prompt()):
        request = prompt._replace(reviews=reviews("Fine", "Good")).request("m")
        assert set(request) == {"model", "messages", "response_format", "stream", "max_tokens"}
        form = request["response_format"]
        assert (request["stream"], form["type"], form["json_schema"]["strict"]) == (
            False,
            "json_schema",
            True,
        )
        schema = form["json_schema"]["schema"]
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object" and closed_objects(schema)
        assert json.loads(request["messages"][1]["content"]) == [
            {"n": 1, "text": "Fine"},
            {"n": 2, "text": "Good"},
        ]
    said = annotation_prompt(EDITORIAL).request("m")
    items = said["response_format"]["json_schema"]["schema"]["properties"]["reviews"]["items"]
    assert set(items["properties"]) == {"n", "aspects", "technicians"}
    assert "\n- hana: Hana I., Ms Ishikawa" in said["messages"][0]["content"]


def test_phrases_that_stand_in_another_review_or_nowhere_are_dropped() -> None:
    prompt = annotation_prompt(EDITORIAL)._replace(reviews=reviews("Good price", "<b>buy</b> " + "x" * 200))
    phrases = [(1, " Good "), (1, "good"), (1, "<b>buy</b>"), (1, None), (2, "<b>buy</b>"), (2, "x" * 101)]
    said = [{"n": n, "aspects": [], "technicians": ["hana"]} for n in (2, 1)]
    for n, phrase in phrases:
        said[2 - n]["aspects"].append({"id": "price", "sentiment": "positive", "phrase": phrase})
    lists = answered(prompt, {"reviews": said})
    kept = {id: [mention["phrase"] for mention in lists[id]["aspects"]] for id in lists}
    assert kept == {"r0": ["Good", None, None, None], "r1": ["<b>buy</b>", None]}
    assert lists["r0"]["technicians"] == ["hana"]


def test_labels_are_those_that_most_slices_have_cleaned_and_bounded() -> None:
    def said(*aspects: str) -> Object:
        return {"aspects": list(aspects), "topics": [], "technicians": ["Hana"], "services": ["Massage"]}

    labels = merged_labels(
        [said("Price", " A\nB "), said("price", "Wait", "", "x" * 61, "\x1b"), said("wait")]
    )
    assert labels["aspects"] == ["Price", "Wait", "A B"]
    assert len(merged_labels([said(*map(str, range(99)))])["aspects"]) == 10
    proposals = proposed_vocabulary(EDITORIAL | {"aspects": []}, labels | {"topics": ["待ち", "?!", "Ä–b"]})
    assert [entry["id"] for entry in proposals["aspects"]] == ["price", "wait", "a-b"]
    assert [entry["id"] for entry in proposals["topics"]] == ["待ち", "?!", "ä-b"]
    assert proposals["proposed_entities"] == {
        "technicians": [{"id": "hana", "label": "Hana"}],
        "services": [{"id": "massage", "label": "Massage"}],
    }
    own = proposed_vocabulary(EDITORIAL, labels | {"technicians": ["ms  ishikawa"], "services": []})
    assert own == {"topics": []}
    assert not list(CONTRACT.editorial_file.violations(proposals))
    for earlier in ("Price", "待ち"):
        assert earlier in vocabulary_prompt(labels | {"topics": ["待ち"]}).instructions


def test_a_summary_rests_on_reviews_and_a_quotation_is_verbatim() -> None:
    prompt = summary_prompt()._replace(reviews=reviews("It helped.", "Too dear."))

    def proposals(text: str, numbers: list[int]) -> Any:
        part = {"text": text, "reviews": numbers}
        faq = [{"question": "Dear?", "answer": "Yes.", "reviews": numbers}] * 9
        return answered(prompt, {"summary": part, "quotation": part, "questions": faq})

    entry = {"question": "Dear?", "answer": "Yes.", "review_ids": ["r1"]}
    summary = {
        "proposed_summary": "Too dear",
        "proposed_summary_review_ids": ["r1"],
        "proposed_faq": [entry] * 8,
    }
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
