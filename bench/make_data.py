"""Generated data sets of any size: valid by `data/openapi.json`, and the same bytes for the same size.

    python bench/make_data.py 500 DIRECTORY

A text has 50 words on average, one review in twelve has none, one in four has a reply. The word of rank r is
about in proportion to 1 / r, as in real prose. The insights are an annotation of every review.
"""

import argparse
import json
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

Json = dict[str, Any]

WORDS = """
the and to i a my of was in for it is he she with that they me so had have after on but not at this very were
you as are been we all his her be from when would time back pain more about what who there can an if just them
also first any which out staff office always never feel felt great week appointment visit care treatment neck
shoulder hip massage adjustment recommend professional friendly listened explained better doctor helped work
only because over again before could did than will up even two days now how every much long front desk waiting
parking insurance worth relief exercises sleep quiet knee zealous jogging naïve café Grüße 日本語 привет
""".split()  # noqa: SIM905
WEIGHTS = [1 / (rank + 2.7) for rank in range(1, len(WORDS) + 1)]
AUTHORS = ("Ann", "Chloé", "Dmitri", "Élodie", "Femi", "José", "Lena", "Ömer", "Priya", "花子")
LAST_DAY, DAYS = date(2026, 11, 15), 1461
TECHNICIANS = ("Dr. Tobias Okafor", "Dr. Inês Vidal-Lam", "June Park")
SERVICES = ("massage-therapy", "spinal-adjustment", "prenatal-care")
PROBLEMS, AREAS = ("back-pain", "neck-pain", "headache"), ("ellery", "millrace")
ASPECTS = ("pain_relief", "wait_time", "pricing")


def prose(chance: random.Random, mean_words: int) -> str:
    """Sentences of `mean_words` words on average in all; most texts are shorter and a few much longer."""
    count = 3 + int(chance.gammavariate(1.8, (mean_words - 3) / 1.8))
    words = chance.choices(WORDS, WEIGHTS, k=count)
    sentences = [" ".join(words[start : start + 11]).capitalize() for start in range(0, count, 11)]
    return " ".join(sentence + chance.choice((".", ".", ".", "!", " 😊", "…")) for sentence in sentences)


def make_review(chance: random.Random, number: int) -> Json:
    """One review; `number` makes its id."""
    return {
        "id": f"01BENCH{number:019}",
        "author": f"{chance.choice(AUTHORS)} {chr(65 + number % 26)}.",
        "author_avatar_url": f"https://avatars.example/{number}.jpg" if chance.random() < 0.5 else None,
        "rating": chance.choices((5, 4, 3, 2, 1), (68, 16, 6, 4, 6))[0],
        "date": (LAST_DAY - timedelta(days=chance.randrange(DAYS))).isoformat(),
        "text": prose(chance, 50) if chance.random() < 11 / 12 else None,
        "source": chance.choice(("google", "google", "yelp", "website")),
        "source_url": f"https://reviews.example/bench-hollow/{number}",
        "owner_reply": {"text": prose(chance, 34), "date": None} if chance.random() < 0.25 else None,
        "verified": True,
    }


def annotate(chance: random.Random, rating: int) -> Json:
    """The entry of one review in `per_review`."""
    sentiment = "positive" if rating > 3 else "neutral" if rating == 3 else "negative"
    return {
        "score": round((rating - 3) / 2 * chance.uniform(0.7, 1), 2),
        "aspects": [{"id": aspect, "sentiment": sentiment} for aspect in chance.sample(ASPECTS, 2)],
        "technicians": chance.sample(TECHNICIANS, chance.randint(0, 1)),
        "services": chance.sample(SERVICES, chance.randint(0, 2)),
        "problems": chance.sample(PROBLEMS, chance.randint(0, 2)),
        "service_areas": chance.sample(AREAS, chance.randint(0, 1)),
    }


def write(size: int, directory: Path) -> None:
    """Write both files of `size` reviews into `directory`, which is made when absent."""
    directory.mkdir(parents=True, exist_ok=True)
    chance = random.Random(size)
    reviews = [make_review(chance, number) for number in range(size)]
    documents = {
        "reviews": {"business": {"name": "Bench Hollow Chiropractic"}, "reviews": reviews},
        "insights": {"per_review": {review["id"]: annotate(chance, review["rating"]) for review in reviews}},
    }
    for name, document in documents.items():
        (directory / f"{name}.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write reviews.json and insights.json of generated reviews.")
    parser.add_argument("size", type=int, help="number of reviews")
    parser.add_argument("directory", type=Path, help="where to write them")
    write(**vars(parser.parse_args()))
