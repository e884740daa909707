"""Data sets of any size for the bench: reviews.json and insights.json, the same bytes for the same size.

Sizes follow the sample in data/: a text has 40 words on average, one in twelve reviews has none, one in four
has a reply. Words are drawn as in real prose: the word of rank r about in proportion to 1 / r, the first
ranks being real English, the rest pronounceable inventions; one word in 200 has a slip of the finger, so
that the vocabulary keeps growing with the number of reviews. Everything is written as compact JSON.

Run as `python bench/make_data.py 500 DIRECTORY`.

Sections: Words - Reviews - Insights - Files
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

Json = dict[str, Any]

SEED = 20261121
FIRST_DAY = date(2022, 11, 16)
DAYS = 1461  # four years: the newest review is of FIRST_DAY + DAYS - 1

# ---- Words ----


def _words(text: str) -> list[str]:
    return text.split()


COMMON_WORDS = _words(
    "the and to i a my of was in for it is he she with that they me so had have after on but not at this "
    "very were you as are been we all his her be from when would time back pain more about what who there "
    "can an if just them also first any which out staff office always never feel felt great week weeks "
    "appointment visit care treatment neck shoulder hip knee massage adjustment recommend professional "
    "friendly listened explained everything years months better without doctor helped work went like one "
    "really only because over again before could did their than will up even two days now how every other "
    "much long front desk waiting minutes parking insurance bill price worth relief exercises stretches "
    "walked sleep night morning session patient hands gentle thorough honest caring amazing best town"
)
ONSETS = _words("b br c ch cl d dr f fl g gr h j k l m n p pl pr r s sh sl sp st t th tr v w")
VOWELS = _words("a a e e i i o o u ai ea ou")
CODAS = ("", "", "", "", "l", "m", "n", "nd", "r", "s", "t", "ck")
ENDINGS = ("", "", "", "", "ed", "ing", "s", "er", "ly")
VOCABULARY_SIZE = 30_000
RANK_SHIFT = 2.7  # Mandelbrot's: without it the first word would be a tenth of all prose
SLIPS_PER_WORD = 0.005


def vocabulary() -> list[str]:
    """All words that are spelled right, the most frequent first."""
    chance = random.Random(SEED)
    words = dict.fromkeys(COMMON_WORDS)
    while len(words) < VOCABULARY_SIZE:
        syllables = chance.choice((1, 2, 2, 2))
        parts = (
            chance.choice(ONSETS) + chance.choice(VOWELS) + chance.choice(CODAS) for _ in range(syllables)
        )
        words["".join(parts) + chance.choice(ENDINGS)] = None
    return list(words)


class Prose:
    """A source of sentences."""

    def __init__(self, chance: random.Random):
        self._chance = chance
        self._words = vocabulary()
        weights = (1 / (rank + RANK_SHIFT) for rank in range(1, VOCABULARY_SIZE + 1))
        self._cumulative = list(itertools.accumulate(weights))

    def text(self, mean_words: float) -> str:
        """Some sentences, of `mean_words` words on average; most texts are shorter and a few much longer."""
        left = 3 + int(self._chance.gammavariate(1.8, (mean_words - 3) / 1.8))
        sentences = []
        while left > 0:
            length = min(left, self._chance.randint(4, 16))
            sentences.append(self._sentence(length))
            left -= length
        return " ".join(sentences)

    def _sentence(self, length: int) -> str:
        words = self._chance.choices(self._words, cum_weights=self._cumulative, k=length)
        if self._chance.random() < length * SLIPS_PER_WORD:
            place = self._chance.randrange(length)
            words[place] = self._slip(words[place])
        if length > 8:
            words[length // 2] += ","
        return (
            " ".join(words).capitalize()
            + self._chance.choices((".", "!", "?", " 😊", "…"), (80, 14, 3, 1, 2))[0]
        )

    def _slip(self, word: str) -> str:
        place = self._chance.randrange(len(word))
        return word[:place] + self._chance.choice("abcdefghiklmnoprstuy") + word[place:]


# ---- Reviews ----

FIRST_NAMES = _words(
    "Ann Ben Chloé Dmitri Élodie Femi Grace Hiro Ingrid José Kwame Lena Marek Nadia Ömer Priya"
)
LAST_NAMES = _words(
    "Abara Bianchi Castillo Dupré Ekström Farouk Gruber Haddad Ivanova Jørgensen Kim Lindqvist"
)
TECHNICIANS = {
    "tobias-okafor": "Dr. Tobias Okafor",
    "maren-brandt": "Dr. Maren Brandt",
    "ines-vidal": "Dr. Inês Vidal-Lam",
    "wes-holloway": "Wes Holloway",
    "june-park": "June Park",
}
SERVICES = {
    "spinal-adjustment": "Spinal adjustment",
    "massage-therapy": "Massage therapy",
    "posture-assessment": "Posture assessment",
    "rehab-exercise": "Rehab exercise",
    "prenatal-care": "Prenatal care",
    "sports-injury": "Sports injury care",
}
PROBLEMS = {
    name: name.replace("-", " ").capitalize() for name in ("back-pain", "neck-pain", "headache", "hip-pain")
}
AREAS = {name.lower(): name for name in ("Ellery", "Millrace", "Saltbrook", "Cordwood")}
ASPECTS = {
    "pain_relief": "Pain relief",
    "communication": "Listening and explaining",
    "expertise": "Expertise",
    "staff_friendliness": "Friendliness",
    "wait_time": "Waiting",
    "pricing_billing": "Prices and bills",
}
SOURCES = {"google": 70, "yelp": 15, "facebook": 10, "website": 5}
STARS = {5: 68, 4: 16, 3: 6, 2: 4, 1: 6}
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BUSINESS = {
    "name": "Bench Hollow Chiropractic",
    "description": "A practice that exists only to be measured.",
    "category": "Chiropractor",
    "url": "https://bench-hollow.example/",
    "telephone": "+1-503-555-0199",
    "address": {"street": "1 Bench Street", "locality": "Port Ellery", "region": "OR", "country": "US"},
    "price_range": "$$",
}


def make_reviews(size: int) -> list[Json]:
    """`size` reviews, the newest first."""
    chance = random.Random(SEED + size)
    prose = Prose(chance)
    days = sorted((chance.randrange(DAYS) for _ in range(size)), reverse=True)
    return [_review(chance, prose, FIRST_DAY + timedelta(days=day)) for day in days]


def _review(chance: random.Random, prose: Prose, day: date) -> Json:
    source = _weighted(chance, SOURCES)
    token = f"{chance.getrandbits(60):015x}"
    reply = {"text": prose.text(22), "date": (day + timedelta(days=2)).isoformat()}
    return {
        "id": _ulid(chance, day),
        "author": f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}",
        "author_avatar_url": f"https://avatars.example/u/{token}.jpg" if chance.random() < 0.5 else None,
        "rating": _weighted(chance, STARS),
        "date": day.isoformat(),
        "text": prose.text(40) if chance.random() < 11 / 12 else None,
        "source": source,
        "source_url": f"https://{source}-reviews.example/bench-hollow/{token}",
        "owner_reply": reply if chance.random() < 0.25 else None,
        "verified": True,
    }


def _weighted(chance: random.Random, weights: dict[Any, int]) -> Any:
    return chance.choices(list(weights), list(weights.values()))[0]


def _ulid(chance: random.Random, day: date) -> str:
    milliseconds = (day - date(1970, 1, 1)).days * 86_400_000 + chance.randrange(86_400_000)
    value = milliseconds << 80 | chance.getrandbits(80)
    return "".join(CROCKFORD[value >> shift & 31] for shift in range(125, -1, -5))


# ---- Insights ----


def make_insights(reviews: Sequence[Json]) -> Json:
    """Insights whose counts agree with their `per_review` and with the reviews."""
    chance = random.Random(SEED)
    per_review = {review["id"]: _annotation(chance, review["rating"]) for review in reviews}
    scores = [annotation["score"] for annotation in per_review.values()]
    shares = Counter((score > 0.2) - (score < -0.2) for score in scores)
    dates = [review["date"] for review in reviews]
    return {
        "version": 1,
        "generated_at": "2026-11-20T06:00:00Z",
        "model": "generated for the bench",
        "review_count": len(reviews),
        "date_range": {"earliest": min(dates), "latest": max(dates)},
        "overall_sentiment": {
            "score": _mean(scores),
            "positive_pct": round(100 * shares[1] / len(scores), 1),
            "neutral_pct": round(100 * shares[0] / len(scores), 1),
            "negative_pct": round(100 * shares[-1] / len(scores), 1),
        },
        "aspects": [_aspect(name, label, per_review) for name, label in ASPECTS.items()],
        "entities": {
            "technicians": _entities(TECHNICIANS, "technicians", reviews, per_review),
            "services": _entities(SERVICES, "services", reviews, per_review),
            "problems": _entities(PROBLEMS, "problems", reviews, per_review),
            "service_areas": _entities(AREAS, "service_areas", reviews, per_review),
        },
        "topics": [],
        "temporal": {"monthly": _monthly(reviews, per_review), "trend": "stable"},
        "faq": [],
        "summary": "Generated reviews have nothing to say, at length.",
        "per_review": per_review,
    }


def _annotation(chance: random.Random, rating: int) -> Json:
    """What was found in one review; technicians by label, everything else by id, as the format has it."""
    sentiment = "positive" if rating > 3 else "neutral" if rating == 3 else "negative"
    return {
        "score": round((rating - 3) / 2 * chance.uniform(0.7, 1), 2),
        "aspects": [{"id": name, "sentiment": sentiment} for name in _some(chance, list(ASPECTS), 3)],
        "technicians": _some(chance, list(TECHNICIANS.values()), 1),
        "services": _some(chance, list(SERVICES), 2),
        "problems": _some(chance, list(PROBLEMS), 1),
        "service_areas": _some(chance, list(AREAS), 1) if chance.random() < 0.2 else [],
    }


def _some(chance: random.Random, names: list[str], most: int) -> list[str]:
    return chance.sample(names, chance.randint(0, most))


def _mean(scores: Sequence[float]) -> float | None:
    return round(sum(scores) / len(scores), 2) if scores else None


def _aspect(name: str, label: str, per_review: dict[str, Json]) -> Json:
    found = [
        (review_id, aspect["sentiment"])
        for review_id, annotation in per_review.items()
        for aspect in annotation["aspects"]
        if aspect["id"] == name
    ]
    counts = Counter(sentiment for _, sentiment in found)
    return {
        "id": name,
        "label": label,
        "mention_count": len(found),
        "positive_count": counts["positive"],
        "neutral_count": counts["neutral"],
        "negative_count": counts["negative"],
        "positive_pct": round(100 * counts["positive"] / len(found), 1) if found else 0,
        "score": _mean([per_review[review_id]["score"] for review_id, _ in found]),
        "top_phrases": [],
        "example_review_ids": [review_id for review_id, _ in found[:4]],
    }


def _entities(
    labels: dict[str, str], kind: str, reviews: Sequence[Json], per_review: dict[str, Json]
) -> list[Json]:
    mentions: dict[str, list[Json]] = defaultdict(list)
    for review in reviews:
        for name in per_review[review["id"]][kind]:
            mentions[name].append(review)
    by_label = kind == "technicians"
    return [
        _entity(name, label, mentions[label if by_label else name], per_review)
        for name, label in labels.items()
    ]


def _entity(name: str, label: str, mentions: Sequence[Json], per_review: dict[str, Json]) -> Json:
    return {
        "id": name,
        "label": label,
        "mention_count": len(mentions),
        "average_rating": _mean([review["rating"] for review in mentions]),
        "score": _mean([per_review[review["id"]]["score"] for review in mentions]),
        "top_phrases": [],
        "example_review_ids": [review["id"] for review in mentions[:4]],
    }


def _monthly(reviews: Sequence[Json], per_review: dict[str, Json]) -> list[Json]:
    months: dict[str, list[Json]] = defaultdict(list)
    for review in reviews:
        months[review["date"][:7]].append(review)
    return [
        {
            "month": month,
            "review_count": len(members),
            "average_rating": _mean([review["rating"] for review in members]),
            "score": _mean([per_review[review["id"]]["score"] for review in members]),
        }
        for month, members in sorted(months.items())
    ]


# ---- Files ----


def write(size: int, directory: Path) -> None:
    """Write both files of `size` reviews, at least one, into `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    reviews = make_reviews(size)
    _write(directory / "reviews.json", {"business": BUSINESS, "reviews": reviews})
    _write(directory / "insights.json", make_insights(reviews))


def _write(path: Path, document: Json) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write reviews.json and insights.json of generated reviews.")
    parser.add_argument("size", type=int, help="number of reviews, at least 1")
    parser.add_argument("directory", type=Path, help="where to write them; made when absent")
    options = parser.parse_args()
    write(options.size, options.directory)
