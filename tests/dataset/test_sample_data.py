"""The sample in `data/` is a realistic selection of reviews, and its insights are consistent with them.

`test_insights.py` checks the figures, ids and names in `insights.json`, which the program counts.
"""

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

Object = dict[str, Any]
DATA = Path(__file__).resolve().parents[2] / "data"
TEXTS = {
    name: (DATA / name).read_text(encoding="utf-8")
    for name in ("reviews.json", "insights.json")
}
SAMPLE, INSIGHTS = map(json.loads, TEXTS.values())
SERVED: dict[str, Object] = {
    it["id"]: it for it in SAMPLE["reviews"] if it["verified"] is not False
}
WRITTEN: dict[str, str] = {
    id: review["text"] for id, review in SERVED.items() if review["text"]
}
PER_REVIEW: dict[str, Object] = INSIGHTS["per_review"]
SUBJECTS: Object = INSIGHTS["entities"] | {
    kind: INSIGHTS[kind] for kind in ("aspects", "topics")
}


def test_the_reviews_are_as_varied_as_those_of_a_real_business() -> None:
    stars = Counter(review["rating"] for review in SERVED.values())
    assert ({1, 2, 3, 4, 5, 4.5}, 0.6 < stars[5] / len(SERVED) < 0.8) == (
        set(stars),
        True,
    )
    assert 140 <= len(SERVED) < len(SAMPLE["reviews"]), "some are not verified"
    lengths = [len(text.split()) for text in WRITTEN.values()]
    assert (
        min(lengths) <= 3 and max(lengths) >= 200 and len(SERVED) - len(WRITTEN) >= 10
    )
    assert (
        sum(any(sign >= "\U0001f300" for sign in text) for text in WRITTEN.values())
        >= 8
    ), "emoji"
    letters = {
        letter for text in WRITTEN.values() for letter in text if letter.isalpha()
    }
    scripts = {unicodedata.name(letter).split()[0] for letter in letters}
    assert {
        "LATIN",
        "CYRILLIC",
        "ARABIC",
        "HEBREW",
        "HIRAGANA",
        "CJK",
        "HANGUL",
    } <= scripts
    assert {review["date"][:4] for review in SERVED.values()} == {
        "2022",
        "2023",
        "2024",
        "2025",
        "2026",
    }


def test_every_address_is_on_a_host_that_cannot_exist() -> None:
    urls = [
        url for text in TEXTS.values() for url in re.findall(r"https?://[^\s\"]+", text)
    ]
    hosts = [urlsplit(url).hostname or "" for url in urls]
    assert hosts and all(host.endswith(".example") for host in hosts)
    assert re.fullmatch(r"\+1-503-555-01\d\d", SAMPLE["business"]["telephone"])


def test_scores_follow_the_stars_and_ratings_without_words_mention_nothing() -> None:
    for id, note in PER_REVIEW.items():
        assert abs(note["score"] - (SERVED[id]["rating"] - 3) / 2) <= (
            0.5 if id in WRITTEN else 0
        ), id
        assert id in WRITTEN or not any(note[kind] for kind in SUBJECTS), id


@pytest.mark.parametrize("kind", SUBJECTS)
def test_examples_mention_their_subject_and_hold_its_phrases(kind: str) -> None:
    for subject in SUBJECTS[kind]:
        name = subject["label" if kind == "technicians" else "id"]
        examples = subject["example_review_ids"]
        assert 2 <= len(set(examples)) <= 4, name
        for note in (PER_REVIEW[id] for id in examples):
            assert name in (
                [mention["id"] for mention in note[kind]]
                if kind == "aspects"
                else note[kind]
            )
        texts = " ".join(WRITTEN[id].casefold() for id in examples)
        assert all(
            phrase.casefold() in texts for phrase in subject.get("top_phrases", ())
        ), name
