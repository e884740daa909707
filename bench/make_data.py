"""Data sets of any size, generated from the sample: equal sizes give equal bytes.

A generated review is a copy of one of the sample, with the words of its text in another order, a new id and a
day within four years. It keeps the annotation of the insights.
"""

import json
import random
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

SAMPLE = Path(__file__).resolve().parent.parent / "data"
REVIEWS = json.loads((SAMPLE / "reviews.json").read_bytes())["reviews"]
ANNOTATIONS = json.loads((SAMPLE / "insights.json").read_bytes())["per_review"]
FREQUENCIES = Counter(word for one in REVIEWS for word in (one["text"] or "").split())
WORDS = [
    word for word, _ in FREQUENCIES.most_common() if word.isascii() and word.isalpha()
]


def write(size: int, directory: Path) -> None:
    """Write both files of `size` reviews into a new directory."""
    directory.mkdir()
    chance = random.Random(size)
    reviews = []
    annotations = {}
    for number in range(size):
        one = dict(chance.choice(REVIEWS))
        if one["id"] in ANNOTATIONS:
            annotations[f"01BENCH{number:019}"] = ANNOTATIONS[one["id"]]
        words = (one["text"] or "").split()
        one["text"] = " ".join(chance.sample(words, len(words))) or None
        one["date"] = (
            date(2026, 11, 15) - timedelta(days=chance.randrange(1461))
        ).isoformat()
        one["id"] = f"01BENCH{number:019}"
        reviews.append(one | {"verified": True})
    documents = {"reviews": {"business": {"name": "Bench"}, "reviews": reviews}}
    documents["insights"] = {"per_review": annotations}
    for name, document in documents.items():
        (directory / f"{name}.json").write_text(
            json.dumps(document, ensure_ascii=False), encoding="utf-8"
        )
