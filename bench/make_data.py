"""Data sets of any size, generated from the sample: equal sizes give equal bytes.

A generated review is a copy of one of the sample with its words in another order, a new
id and a new day: lengths, words, stars and mentions are as frequent as in the sample.
It keeps the annotation of its original, and the insights list the subjects of the
sample.

Sections: the sample - reviews - insights - files.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

Object = dict[str, Any]

# ---- The sample ----

SAMPLE = Path(__file__).resolve().parent.parent / "data"
REVIEWS = json.loads((SAMPLE / "reviews.json").read_bytes())["reviews"]
INSIGHTS = json.loads((SAMPLE / "insights.json").read_bytes())


def _frequent_words() -> list[str]:
    words = Counter[str]()
    for review in REVIEWS:
        words.update((review["text"] or "").split())
    # In a URL they stand as they are.
    plain = (word for word, _ in words.most_common() if word.isalpha())
    return [word for word in plain if word.isascii()]


# Words of the reviews, the most frequent first.
WORDS = _frequent_words()

# ---- Reviews ----

# The day of the newest review of the sample.
LAST_DAY = date(2026, 11, 15)
# As many as wrk.lua asks for: four years.
DAYS = 1461


def _review_ids(size: int) -> Iterator[str]:
    """Ids as long as the ULIDs of the sample, so that answers are as large."""
    for number in range(size):
        yield f"01BENCH{number:019}"


def _review(original: Object, id: str, chance: random.Random) -> Object:
    words = (original["text"] or "").split()
    chance.shuffle(words)
    day = LAST_DAY - timedelta(days=chance.randrange(DAYS))
    return original | {
        "id": id,
        "text": " ".join(words) or None,
        "date": day.isoformat(),
        # All are served: `size` is what the rows say.
        "verified": True,
    }


# ---- Insights ----

# Of an entry: what makes it a subject. Its figures and examples are of the sample.
SUBJECT_KEYS = ("id", "label")


def _subject(entry: Object) -> Object:
    return {key: entry[key] for key in SUBJECT_KEYS}


def _subjects(entries: list[Object]) -> list[Object]:
    return list(map(_subject, entries))


# What reviews speak of, by kind, as in an InsightsFile.
ENTITIES = {kind: _subjects(some) for kind, some in INSIGHTS["entities"].items()}
SUBJECTS = {kind: _subjects(INSIGHTS[kind]) for kind in ("aspects", "topics")}


def subject_keys() -> list[str]:
    """The values of the filter `mentions`, such as `aspects/wait_time`."""
    keys = []
    for kind, entries in (SUBJECTS | ENTITIES).items():
        keys += [f"{kind}/{entry['id']}" for entry in entries]
    return keys


def people() -> list[str]:
    """The ids of the people, for the filter `mentions_technician`."""
    return [entry["id"] for entry in ENTITIES["technicians"]]


# ---- Files ----


def write(size: int, directory: Path) -> None:
    """Write both files of `size` reviews into a new directory."""
    directory.mkdir()
    # Equal sizes give equal bytes.
    chance = random.Random(size)
    reviews = []
    annotations = {}
    for id in _review_ids(size):
        original = chance.choice(REVIEWS)
        reviews.append(_review(original, id, chance))
        if original["id"] in INSIGHTS["per_review"]:
            annotations[id] = INSIGHTS["per_review"][original["id"]]
    insights = {**SUBJECTS, "entities": ENTITIES, "per_review": annotations}
    business = {"name": "Bench", "language": "en"}
    _write(directory / "reviews.json", {"business": business, "reviews": reviews})
    _write(directory / "insights.json", insights)


def _write(path: Path, document: Object) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
