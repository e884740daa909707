"""The sample in `data/` is a realistic selection of reviews, and its insights are consistent with them.

What the program counts, every figure and every id or name that `insights.json` has, is judged in
`test_insights.py`.

Loading - Reviews - Insights
"""

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Object = dict[str, Any]

# ---- Loading ----

DATA = Path(__file__).resolve().parents[2] / "data"
TEXTS = {name: (DATA / name).read_text(encoding="utf-8") for name in ("reviews.json", "insights.json")}
SAMPLE: Object = json.loads(TEXTS["reviews.json"])
INSIGHTS: Object = json.loads(TEXTS["insights.json"])
ALL_REVIEWS: list[Object] = SAMPLE["reviews"]
VERIFIED: dict[str, Object] = {
    review["id"]: review for review in ALL_REVIEWS if review["verified"] is not False
}
WRITTEN: dict[str, str] = {id: review["text"] for id, review in VERIFIED.items() if review["text"]}
PER_REVIEW: dict[str, Object] = INSIGHTS["per_review"]
ENTITIES: dict[str, list[Object]] = INSIGHTS["entities"]
SUBJECTS: dict[str, list[Object]] = ENTITIES | {kind: INSIGHTS[kind] for kind in ("aspects", "topics")}
KINDS = ["technicians", "services", "problems", "service_areas"]


def day_of(review: Object) -> str:
    """The calendar day as written."""
    return str(review["date"])[:10]


def names_in(note: Object, kind: str) -> list[str]:
    """The names of the aspects, people, services, problems, places or topics that a review mentions."""
    return [each["id"] for each in note[kind]] if kind == "aspects" else note[kind]


# ---- Reviews ----


def test_every_star_value_occurs_and_most_are_five() -> None:
    stars = Counter(review["rating"] for review in VERIFIED.values())
    assert {1, 2, 3, 4, 5, 4.5} == set(stars)
    assert len(VERIFIED) < len(ALL_REVIEWS), "some are not verified"
    assert 0.6 < stars[5] / len(VERIFIED) < 0.8


def test_texts_are_short_long_or_missing_and_hold_emoji_and_many_alphabets() -> None:
    lengths = [len(text.split()) for text in WRITTEN.values()]
    assert min(lengths) <= 3 and max(lengths) >= 200
    assert len(VERIFIED) - len(WRITTEN) >= 10
    assert sum(any(sign >= "\U0001f300" for sign in text) for text in WRITTEN.values()) >= 8
    assert sum(not review["author"].isascii() for review in VERIFIED.values()) >= 15
    letters = {letter for text in WRITTEN.values() for letter in text if letter.isalpha()}
    scripts = {unicodedata.name(letter).split()[0] for letter in letters}
    assert {"LATIN", "CYRILLIC", "ARABIC", "HEBREW", "HIRAGANA", "CJK", "HANGUL"} <= scripts


def test_the_reviews_span_four_years_newest_first_and_grow_in_number() -> None:
    order = [(day_of(review), review["id"]) for review in ALL_REVIEWS]
    assert order == sorted(order, reverse=True)
    assert len(set(order)) == len({identifier for _, identifier in order}) == len(order)
    by_year = Counter(day[:4] for day, _ in order)
    assert list(by_year) == ["2026", "2025", "2024", "2023", "2022"]
    assert list(by_year.values()) == sorted(by_year.values(), reverse=True)


def test_every_address_is_on_a_host_that_cannot_exist() -> None:
    urls = [url for text in TEXTS.values() for url in re.findall(r"https?://[^\s\"]+", text)]
    hosts = [urlsplit(url).hostname or "" for url in urls]
    assert hosts and all(host.endswith(".example") for host in hosts)
    assert re.fullmatch(r"\+1-503-555-01\d\d", SAMPLE["business"]["telephone"])
    for key in ("source_url", "author_avatar_url"):
        assert {True, False} == {review[key] is None for review in ALL_REVIEWS}


def test_mentions_given_in_the_file_agree_with_the_insights() -> None:
    given = [review for review in ALL_REVIEWS if "mentioned_technicians" in review]
    assert given
    for review in given:
        assert review["mentioned_technicians"] == PER_REVIEW[review["id"]]["technicians"]
        assert review["mentioned_services"] == PER_REVIEW[review["id"]]["services"]


# ---- Insights ----


def test_scores_follow_the_stars_and_ratings_without_words_mention_nothing() -> None:
    for review_id, note in PER_REVIEW.items():
        of_stars = (VERIFIED[review_id]["rating"] - 3) / 2
        assert -1 <= note["score"] <= 1
        assert abs(note["score"] - of_stars) <= 0.5, review_id
        if review_id not in WRITTEN:
            assert note["score"] == of_stars
            assert not any(note[kind] for kind in ["aspects", "topics", *KINDS]), review_id


def test_examples_mention_their_subject_and_hold_its_phrases() -> None:
    for kind, subject in ((kind, subject) for kind, subjects in SUBJECTS.items() for subject in subjects):
        name, examples = subject["label" if kind == "technicians" else "id"], subject["example_review_ids"]
        assert 2 <= len(examples) == len(set(examples)) <= 4, name
        assert all(name in names_in(PER_REVIEW[id], kind) for id in examples), name
        texts = " ".join(WRITTEN[id].casefold() for id in examples)
        assert all(phrase.casefold() in texts for phrase in subject.get("top_phrases", ())), name
    assert all(entry["review_ids"] for entry in INSIGHTS["faq"])
