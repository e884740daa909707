"""The sample in `data/` is believable and agrees with itself.

Everything that `insights.json` counts is recomputed here from `per_review` and `reviews.json` with the plain
definition, using nothing but `json`: a count is a sum over all verified reviews, an average a mean.
Figures are rounded once, at the end, with `round`: averages and scores to 2 decimals, percentages to 1.

Loading - Reviews - Ids - Prose - Insights: what they point at - Insights: figures
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

Object = dict[str, Any]

# ---- Loading ----

DATA = Path(__file__).resolve().parent.parent / "data"
FILES = ["reviews.json", "insights.json"]
SAMPLE: Object = json.loads((DATA / "reviews.json").read_text(encoding="utf-8"))
INSIGHTS: Object = json.loads((DATA / "insights.json").read_text(encoding="utf-8"))
ALL_REVIEWS: list[Object] = SAMPLE["reviews"]
VERIFIED: dict[str, Object] = {review["id"]: review for review in ALL_REVIEWS if review["verified"]}
PER_REVIEW: dict[str, Object] = INSIGHTS["per_review"]
ENTITIES: dict[str, list[Object]] = INSIGHTS["entities"]
KINDS = ["technicians", "services", "problems", "service_areas"]

TAKING_SIDES = 0.25  # a score this far from 0 makes a review positive or negative
VALUE = {"positive": 1, "neutral": 0, "negative": -1}
TREND_STEP = 0.05  # how much the last year must differ from the one before it to be a trend


def mean(numbers: Iterable[float]) -> float:
    """The plain average, rounded to 2 decimals."""
    values = list(numbers)
    return round(sum(values) / len(values), 2)


def percentage(part: int, whole: int) -> float:
    return round(100 * part / whole, 1)


def day_of(review: Object) -> str:
    """The calendar day as written."""
    return str(review["date"])[:10]


def text_of(review_id: str) -> str:
    """The words of a verified review, none for a rating without words."""
    return VERIFIED[review_id]["text"] or ""


def written_texts() -> list[str]:
    """The words of every review that has any, the unverified included."""
    return [review["text"] for review in ALL_REVIEWS if review["text"] is not None]


def replies() -> Iterator[tuple[Object, Object]]:
    """Every review that was answered, with its answer."""
    return ((review, review["owner_reply"]) for review in ALL_REVIEWS if review["owner_reply"])


def reviews_named(kind: str, entity: Object) -> list[str]:
    """The ids of the reviews that mention this person, service, problem or place."""
    name = entity["label"] if kind == "technicians" else entity["id"]
    return [review_id for review_id, note in PER_REVIEW.items() if name in note[kind]]


def reviews_about_topic(topic: Object) -> list[str]:
    return [review_id for review_id, note in PER_REVIEW.items() if topic["id"] in note["topics"]]


def sentiments_about(aspect_id: str) -> dict[str, str]:
    """For each review that speaks of the aspect, how it does."""
    return {
        review_id: mention["sentiment"]
        for review_id, note in PER_REVIEW.items()
        for mention in note["aspects"]
        if mention["id"] == aspect_id
    }


def subjects() -> Iterator[tuple[Object, list[str]]]:
    """Every aspect, entity and topic with the reviews that mention it."""
    yield from ((aspect, list(sentiments_about(aspect["id"]))) for aspect in INSIGHTS["aspects"])
    yield from ((entity, reviews_named(kind, entity)) for kind in KINDS for entity in ENTITIES[kind])
    yield from ((topic, reviews_about_topic(topic)) for topic in INSIGHTS["topics"])


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_plain_utf8_that_people_can_read(name: str) -> None:
    content = (DATA / name).read_text(encoding="utf-8")
    assert content.endswith("}\n") and not content.startswith("\ufeff")
    assert content.count("\n") > 1000
    assert not re.search(r"\\u[0-9a-f]{4}", content)


# ---- Reviews ----


def test_there_are_enough_reviews_for_the_fifty_newest_to_be_a_selection() -> None:
    assert len(VERIFIED) >= 140
    assert len(ALL_REVIEWS) > len(VERIFIED)


def test_every_star_value_occurs_and_most_are_five() -> None:
    stars = Counter(review["rating"] for review in VERIFIED.values())
    assert {1, 2, 3, 4, 5, 4.5} == set(stars)
    assert 0.6 < stars[5] / len(VERIFIED) < 0.8


def test_some_ratings_have_no_words() -> None:
    assert 10 <= sum(review["text"] is None for review in VERIFIED.values()) <= 25


def test_the_reviews_span_four_years_and_grow_in_number() -> None:
    by_year = Counter(day_of(review)[:4] for review in ALL_REVIEWS)
    counts = [by_year[str(year)] for year in range(2022, 2027)]
    assert counts == sorted(counts) and counts[0] > 0


def test_dates_are_real_days_or_moments_with_an_offset_and_none_is_in_the_future() -> None:
    moments = [review["date"] for review in ALL_REVIEWS if len(review["date"]) > 10]
    assert all(datetime.fromisoformat(moment).tzinfo for moment in moments)
    assert any(moment.endswith("Z") for moment in moments) and any("-0" in moment[19:] for moment in moments)
    assert all(date.fromisoformat(day_of(review)) <= date(2026, 11, 15) for review in ALL_REVIEWS)


def test_some_days_hold_two_reviews_and_some_three() -> None:
    reviews_a_day = Counter(day_of(review) for review in VERIFIED.values())
    assert {1, 2, 3} == set(reviews_a_day.values())


def test_owner_replies_never_come_before_their_review() -> None:
    dated = [(review, reply) for review, reply in replies() if reply["date"]]
    assert all(reply["date"][:10] >= day_of(review) for review, reply in dated)


def test_many_reviews_are_answered_and_a_few_answers_lack_a_date() -> None:
    assert sum(1 for _ in replies()) >= 40
    assert any(reply["date"] is None for _, reply in replies())
    assert any(reply["date"] is not None for _, reply in replies())


def test_customers_have_names_from_many_places_and_write_in_many_scripts() -> None:
    assert sum(not review["author"].isascii() for review in VERIFIED.values()) >= 15
    letters = {letter for review in VERIFIED.values() for letter in review["text"] or "" if letter.isalpha()}
    scripts = {unicodedata.name(letter).split()[0] for letter in letters}
    assert {"LATIN", "CYRILLIC", "ARABIC", "HEBREW", "HIRAGANA", "CJK", "HANGUL"} <= scripts


def test_some_texts_hold_emoji() -> None:
    assert sum(any(sign >= "\U0001f300" for sign in text_of(review_id)) for review_id in VERIFIED) >= 8


def test_every_url_is_on_a_host_that_cannot_exist() -> None:
    content = "".join((DATA / name).read_text(encoding="utf-8") for name in FILES)
    hosts = {urlsplit(url).hostname for url in re.findall(r"https?://[^\s\"]+", content)}
    assert hosts and all(host and host.endswith(".example") for host in hosts)


def test_source_urls_and_pictures_are_there_for_some_and_missing_for_others() -> None:
    for key in ("source_url", "author_avatar_url"):
        assert {True, False} == {review[key] is None for review in ALL_REVIEWS}
    sources = {review["source"] for review in ALL_REVIEWS}
    assert sources == {"google", "facebook", "yelp", "healthgrades", "website"}


def test_mentions_given_in_the_file_agree_with_the_insights() -> None:
    given = [review for review in ALL_REVIEWS if "mentioned_technicians" in review]
    assert len(given) == 3
    for review in given:
        assert review["mentioned_technicians"] == PER_REVIEW[review["id"]]["technicians"]
        assert review["mentioned_services"] == PER_REVIEW[review["id"]]["services"]


def test_reviews_lie_newest_first_by_calendar_day_then_id() -> None:
    order = [(day_of(review), review["id"]) for review in ALL_REVIEWS]
    assert order == sorted(order, reverse=True)


def test_the_business_fills_every_optional_field_and_leaves_the_rating_to_be_computed() -> None:
    assert set(SAMPLE["business"]) == {
        "name",
        "description",
        "category",
        "url",
        "telephone",
        "email",
        "address",
        "geo",
        "hours",
        "service_areas",
        "price_range",
        "image_url",
    }
    assert set(SAMPLE) == {"business", "reviews"}
    assert re.fullmatch(r"\+1-503-555-01\d\d", SAMPLE["business"]["telephone"])


# ---- Ids ----


def ulid_moment(ulid: str) -> datetime:
    """The moment that the first ten characters of a ULID encode."""
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    milliseconds = 0
    for character in ulid[:10]:
        milliseconds = milliseconds * 32 + digits.index(character)
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def test_ids_are_ulids_and_unique() -> None:
    ids = [review["id"] for review in ALL_REVIEWS]
    assert all(re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", review_id) for review_id in ids)
    assert len(set(ids)) == len(ids)


def test_the_time_in_an_id_is_that_of_its_review() -> None:
    for review in ALL_REVIEWS:
        moment = ulid_moment(review["id"])
        if len(review["date"]) > 10:
            assert moment == datetime.fromisoformat(review["date"]), review["id"]
        else:
            assert moment.date().isoformat() == review["date"], review["id"]


# ---- Prose ----


def sentences(text: str) -> set[str]:
    """The sentences of five words or more, folded and without punctuation."""
    pieces = re.split(r"[.!?…。\n]+", text.casefold())
    words = [re.findall(r"\w+(?:['’]\w+)?", piece) for piece in pieces]
    return {" ".join(piece) for piece in words if len(piece) >= 5}


def test_no_sentence_of_five_words_occurs_in_two_reviews() -> None:
    counts = Counter(sentence for text in written_texts() for sentence in sentences(text))
    assert [sentence for sentence, count in counts.items() if count > 1] == []


def test_no_sentence_of_five_words_occurs_in_two_replies() -> None:
    counts = Counter(sentence for _, reply in replies() for sentence in sentences(reply["text"]))
    assert [sentence for sentence, count in counts.items() if count > 1] == []


def test_no_two_reviews_open_with_the_same_four_words() -> None:
    openings = Counter(" ".join(text.casefold().split()[:4]) for text in written_texts())
    assert [opening for opening, count in openings.items() if count > 1] == []


def test_texts_are_short_and_long() -> None:
    lengths = [len(text.split()) for text in written_texts()]
    assert min(lengths) <= 3 and max(lengths) >= 200


# ---- Insights: what they point at ----


def test_every_verified_review_is_annotated_and_no_other() -> None:
    assert list(PER_REVIEW) == list(VERIFIED)


def test_insights_speak_of_verified_reviews_only() -> None:
    content = (DATA / "insights.json").read_text(encoding="utf-8")
    unverified = [review["id"] for review in ALL_REVIEWS if not review["verified"]]
    assert [review_id for review_id in unverified if review_id in content] == []
    faq_ids = {review_id for entry in INSIGHTS["faq"] for review_id in entry["review_ids"]}
    assert faq_ids <= set(VERIFIED) and all(entry["review_ids"] for entry in INSIGHTS["faq"])


def test_annotations_use_known_aspects_people_services_and_topics_each_once() -> None:
    known = {
        "aspects": {aspect["id"] for aspect in INSIGHTS["aspects"]},
        "topics": {topic["id"] for topic in INSIGHTS["topics"]},
        "technicians": {person["label"] for person in ENTITIES["technicians"]},
        **{kind: {entity["id"] for entity in ENTITIES[kind]} for kind in KINDS[1:]},
    }
    for review_id, note in PER_REVIEW.items():
        used = {**note, "aspects": [mention["id"] for mention in note["aspects"]]}
        for kind, names in known.items():
            assert set(used[kind]) <= names and len(set(used[kind])) == len(used[kind]), review_id


def test_a_rating_without_words_is_scored_by_its_stars_and_mentions_nothing() -> None:
    wordless = [review for review in VERIFIED.values() if review["text"] is None]
    for review in wordless:
        note = PER_REVIEW[review["id"]]
        assert note["score"] == (review["rating"] - 3) / 2
        assert not any(note[kind] for kind in ["aspects", "topics", *KINDS])


def test_scores_lie_between_minus_one_and_one_and_follow_the_stars() -> None:
    for review_id, note in PER_REVIEW.items():
        assert -1 <= note["score"] <= 1
        assert abs(note["score"] - (VERIFIED[review_id]["rating"] - 3) / 2) <= 0.5, review_id


def test_example_reviews_are_two_to_four_that_do_mention_the_subject() -> None:
    for subject, mentioning in subjects():
        examples = subject["example_review_ids"]
        assert 2 <= len(examples) <= 4 and len(set(examples)) == len(examples), subject["id"]
        assert set(examples) <= set(mentioning), subject["id"]


def test_top_phrases_are_words_of_the_example_reviews() -> None:
    for subject in [*INSIGHTS["aspects"], *(entity for kind in KINDS for entity in ENTITIES[kind])]:
        texts = [text_of(review_id).casefold() for review_id in subject["example_review_ids"]]
        phrases = [phrase.casefold() for phrase in subject["top_phrases"]]
        assert 3 <= len(phrases) <= 5, subject["id"]
        assert all(any(phrase in text for text in texts) for phrase in phrases), subject["id"]
        assert all(any(phrase in text for phrase in phrases) for text in texts), subject["id"]


def test_the_pull_quote_is_an_exact_quotation() -> None:
    assert any(INSIGHTS["pull_quote"] in text_of(review_id) for review_id in VERIFIED)


# ---- Insights: figures ----


def test_the_insights_cover_all_verified_reviews_between_their_first_and_last_day() -> None:
    days = [day_of(review) for review in VERIFIED.values()]
    assert INSIGHTS["review_count"] == len(VERIFIED)
    assert INSIGHTS["date_range"] == {"earliest": min(days), "latest": max(days)}
    assert max(days) <= INSIGHTS["generated_at"][:10] <= "2026-11-30"


def test_overall_sentiment_is_the_mean_score_and_its_shares_fill_a_hundred() -> None:
    scores = [note["score"] for note in PER_REVIEW.values()]
    positive = percentage(sum(score >= TAKING_SIDES for score in scores), len(scores))
    negative = percentage(sum(score <= -TAKING_SIDES for score in scores), len(scores))
    assert INSIGHTS["overall_sentiment"] == {
        "score": mean(scores),
        "positive_pct": positive,
        "neutral_pct": round(100 - positive - negative, 1),
        "negative_pct": negative,
    }


@pytest.mark.parametrize("aspect", INSIGHTS["aspects"], ids=lambda aspect: aspect["id"])
def test_an_aspect_counts_the_reviews_that_speak_of_it(aspect: Object) -> None:
    sentiments = list(sentiments_about(aspect["id"]).values())
    for sentiment in VALUE:
        assert aspect[f"{sentiment}_count"] == sentiments.count(sentiment)
    assert aspect["mention_count"] == len(sentiments)
    assert aspect["positive_pct"] == percentage(sentiments.count("positive"), len(sentiments))
    assert aspect["score"] == mean(VALUE[sentiment] for sentiment in sentiments)


@pytest.mark.parametrize("kind", KINDS)
def test_an_entity_averages_the_reviews_that_mention_it(kind: str) -> None:
    for entity in ENTITIES[kind]:
        mentioning = reviews_named(kind, entity)
        assert entity["mention_count"] == len(mentioning), entity["id"]
        assert entity["average_rating"] == mean(VERIFIED[review_id]["rating"] for review_id in mentioning)
        assert entity["score"] == mean(PER_REVIEW[review_id]["score"] for review_id in mentioning)


def test_a_topic_averages_the_reviews_that_raise_it() -> None:
    for topic in INSIGHTS["topics"]:
        raising = reviews_about_topic(topic)
        assert topic["mention_count"] == len(raising), topic["id"]
        assert topic["score"] == mean(PER_REVIEW[review_id]["score"] for review_id in raising), topic["id"]


def test_lists_are_ordered_by_mentions_then_id() -> None:
    for items in (INSIGHTS["aspects"], INSIGHTS["topics"], *ENTITIES.values()):
        assert items == sorted(items, key=lambda item: (-item["mention_count"], item["id"]))


def test_every_month_with_reviews_has_its_figures_oldest_first() -> None:
    months = sorted({day_of(review)[:7] for review in VERIFIED.values()})
    assert [figures["month"] for figures in INSIGHTS["temporal"]["monthly"]] == months
    for figures in INSIGHTS["temporal"]["monthly"]:
        ids = [review_id for review_id, review in VERIFIED.items() if day_of(review)[:7] == figures["month"]]
        assert figures == {
            "month": figures["month"],
            "review_count": len(ids),
            "average_rating": mean(VERIFIED[review_id]["rating"] for review_id in ids),
            "score": mean(PER_REVIEW[review_id]["score"] for review_id in ids),
        }


def test_the_trend_compares_the_last_twelve_months_with_the_twelve_before() -> None:
    months = [figures["month"] for figures in INSIGHTS["temporal"]["monthly"]]
    earlier, latest = (
        [note["score"] for review_id, note in PER_REVIEW.items() if day_of(VERIFIED[review_id])[:7] in year]
        for year in (months[-24:-12], months[-12:])
    )
    change = sum(latest) / len(latest) - sum(earlier) / len(earlier)
    trend = "improving" if change >= TREND_STEP else "declining" if change <= -TREND_STEP else "stable"
    assert INSIGHTS["temporal"]["trend"] == trend


def test_the_questions_are_eight_to_ten_and_the_topics_seven_to_nine() -> None:
    assert 8 <= len(INSIGHTS["faq"]) <= 10
    assert 7 <= len(INSIGHTS["topics"]) <= 9
