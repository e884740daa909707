"""Five data sets of owners for the snapshots: the sample, eight bare reviews, one review, none, and 3,000.

A data set is the content of `reviews.json` and, for the sample, of `insights.json`, the same in every
run. Three of them are files in `data_sets/`. The largest is made of parts in such a file, which repeat.
"""

import json
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from lab.page_samples import SAMPLE

Files = tuple[Any, ...]
DIRECTORY = Path(__file__).with_suffix("")


def stored(*paths: Path) -> Files:
    return tuple(json.loads(path.read_bytes()) for path in paths)


(PARTS,) = stored(DIRECTORY / "german_parts.json")


@cache
def german_file() -> Any:
    """3,000 reviews in German over fifteen years, oldest first."""
    return {
        "business": PARTS["business"],
        "reviews": [_german_review(number) for number in range(3000)],
    }


def part(kind: str, number: int) -> Any:
    return PARTS[kind][number % len(PARTS[kind])]


def _german_review(number: int) -> Any:
    day = (date(2011, 11, 28) + timedelta(number * 5475 // 2999)).isoformat()
    sentences = (
        part("openings", number),
        part("middles", number * 5),
        part("endings", number * 3),
    )
    text = " ".join(sentences[: 1 + number % 3]) * (9 if number % 211 == 0 else 1)
    rating = part("ratings", number * 7)
    reply = {"text": "Vielen Dank für Ihre Mühe!", "date": day}
    return {
        "id": f"g{number:04}",
        "author": f"{part('first_names', number)} {part('family_names', number * 4)}",
        "rating": rating,
        "date": f"{day}T{number % 24:02}:15:00+0{1 + number % 2}:00"
        if number % 3
        else day,
        "text": None if number % 6 == 5 else text,
        "source": part("sources", number),
        "owner_reply": reply if rating < 3 or number % 17 == 0 else None,
        "mentioned_technicians": [
            name for name in ("Frau Yıldız", "Herr Groß") if name in text
        ],
        "mentioned_services": ["hochzeitstorten"] if "Hochzeitstorte" in text else [],
    }


DATA_SETS: dict[str, Callable[[], Files]] = {
    "sample": lambda: stored(SAMPLE / "reviews.json", SAMPLE / "insights.json"),
    "bare": lambda: stored(
        DIRECTORY / "bare.json"
    ),  # eight reviews with required fields, some with a text
    "one": lambda: stored(DIRECTORY / "one.json"),  # a review with every field
    "none": lambda: stored(DIRECTORY / "none.json"),
    "german": lambda: (german_file(),),
}
