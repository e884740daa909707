"""The sample in `data/` is a realistic selection of reviews, and its insights fit them.

`test_insights.py` checks the figures, ids and names in `insights.json`, which the program
counts.

Sections: the sample - reviews - addresses - what is said of a review - subjects.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from lab.services import SAMPLE

Object = dict[str, Any]

# ---- The sample ----

TEXTS = {
    name: (SAMPLE / name).read_text(encoding="utf-8")
    for name in ("reviews.json", "insights.json")
}
REVIEWS_FILE = json.loads(TEXTS["reviews.json"])
INSIGHTS = json.loads(TEXTS["insights.json"])
# By id.
SERVED: dict[str, Object] = {
    review["id"]: review
    for review in REVIEWS_FILE["reviews"]
    if review["verified"] is not False
}
WRITTEN: dict[str, str] = {
    id: review["text"] for id, review in SERVED.items() if review["text"]
}

# ---- Reviews: as varied as those of a real business ----


def test_enough_reviews_are_served_that_fifty_are_a_selection() -> None:
    assert len(SERVED) >= 140


def test_some_reviews_are_not_verified() -> None:
    assert len(SERVED) < len(REVIEWS_FILE["reviews"])


def test_every_number_of_stars_is_given_and_half_ones_too() -> None:
    assert {review["rating"] for review in SERVED.values()} == {1, 2, 3, 4, 4.5, 5}


def test_most_customers_are_content() -> None:
    stars = Counter(review["rating"] for review in SERVED.values())

    assert 0.6 < stars[5] / len(SERVED) < 0.8


def test_some_ratings_have_no_words() -> None:
    assert len(SERVED) - len(WRITTEN) >= 10


def test_texts_are_short_and_long() -> None:
    lengths = [len(text.split()) for text in WRITTEN.values()]

    assert min(lengths) <= 3
    assert max(lengths) >= 200


def has_emoji(text: str) -> bool:
    return any(sign >= "\U0001f300" for sign in text)


def test_customers_use_emoji() -> None:
    assert len(list(filter(has_emoji, WRITTEN.values()))) >= 8


def scripts_of(text: str) -> Iterator[str]:
    for letter in text:
        if letter.isalpha():
            yield unicodedata.name(letter).split()[0]


@pytest.mark.parametrize(
    "script", ["LATIN", "CYRILLIC", "ARABIC", "HEBREW", "HIRAGANA", "CJK", "HANGUL"]
)
def test_customers_write_in_many_alphabets(script: str) -> None:
    assert script in scripts_of("".join(WRITTEN.values()))


def test_the_reviews_are_of_five_years() -> None:
    years = {review["date"][:4] for review in SERVED.values()}

    assert years == {"2022", "2023", "2024", "2025", "2026"}


# ---- Addresses ----


@pytest.mark.parametrize("name", TEXTS)
def test_every_address_is_on_a_host_that_cannot_exist(name: str) -> None:
    urls = re.findall(r"https?://[^\s\"]+", TEXTS[name])

    real = [url for url in urls if not str(urlsplit(url).hostname).endswith(".example")]
    assert real == []


def test_the_telephone_number_is_one_that_is_given_to_nobody() -> None:
    # The range 555-01xx is for fiction (North American Numbering Plan).
    telephone = REVIEWS_FILE["business"]["telephone"]

    assert re.fullmatch(r"\+1-503-555-01\d\d", telephone)


# ---- What is said of a review ----

PER_REVIEW: dict[str, Object] = INSIGHTS["per_review"]
SUBJECTS: Object = INSIGHTS["entities"] | {
    "aspects": INSIGHTS["aspects"],
    "topics": INSIGHTS["topics"],
}


WITHOUT_WORDS = sorted(PER_REVIEW.keys() - WRITTEN.keys())


def score_of_stars(id: str) -> float:
    return (SERVED[id]["rating"] - 3) / 2


def test_a_score_is_near_that_of_the_stars() -> None:
    for id, said in PER_REVIEW.items():
        assert abs(said["score"] - score_of_stars(id)) <= 0.5, id


@pytest.mark.parametrize("id", WITHOUT_WORDS)
def test_without_words_the_score_is_that_of_the_stars(id: str) -> None:
    assert PER_REVIEW[id]["score"] == score_of_stars(id)


@pytest.mark.parametrize("id", WITHOUT_WORDS)
def test_without_words_nothing_is_mentioned(id: str) -> None:
    mentioned = [kind for kind in SUBJECTS if PER_REVIEW[id][kind]]

    assert mentioned == []


# ---- Subjects: by kind, and an entry of that kind ----


def entries() -> Iterator[Any]:
    for kind, subjects in SUBJECTS.items():
        for subject in subjects:
            yield pytest.param(kind, subject, id=f"{kind} {subject['id']}")


every_subject = pytest.mark.parametrize(("kind", "subject"), list(entries()))


@every_subject
def test_a_subject_has_two_to_four_examples(kind: str, subject: Object) -> None:
    examples = subject["example_review_ids"]

    assert len(set(examples)) == len(examples)
    assert 2 <= len(examples) <= 4


def mentioned_in(id: str, kind: str) -> list[str]:
    """The names of the subjects of a kind that a review mentions."""
    mentions = PER_REVIEW[id][kind]
    if kind == "aspects":
        return [mention["id"] for mention in mentions]
    return list(mentions)


@every_subject
def test_an_example_mentions_its_subject(kind: str, subject: Object) -> None:
    # People are mentioned by their names.
    name = subject["label"] if kind == "technicians" else subject["id"]

    for id in subject["example_review_ids"]:
        assert name in mentioned_in(id, kind)


@every_subject
def test_a_phrase_stands_in_an_example(kind: str, subject: Object) -> None:
    texts = [WRITTEN[id].casefold() for id in subject["example_review_ids"]]

    for phrase in subject.get("top_phrases", ()):
        assert phrase.casefold() in " ".join(texts)
