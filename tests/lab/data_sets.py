"""Data sets: the sample as a dataset, and the files of eight owners for the snapshots.

The owners are those of the sample, of eight bare reviews, of one review, of none, of
3,000, and three who write German, Hebrew and Japanese. Their files are the same in
every run and stand in `data_sets/`; the largest is made of parts in such a file, which
repeat, and the insights of the three are counted from an `editorial.json`.

Sections: datasets - owners - the bakery with 3,000 reviews - directories.
"""

import json
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from lab.services import SAMPLE
from lab.small_files import CONTRACT, loaded
from reviewslib.dataset.insights import compute_insights
from reviewslib.dataset.reviews import Dataset, load, served_reviews
from reviewslib.links import service_urls

# Of `reviews.json`, and perhaps of `insights.json`.
Files = tuple[Any, ...]

# ---- Datasets ----

URLS = service_urls("https://reviews.example")
SMALLEST = {"business": {"name": "Ann's Bakery"}, "reviews": []}
dataset_of = partial(loaded, urls=URLS)


def sample_dataset() -> Dataset:
    """The sample as the repository ships it."""
    reviews = (SAMPLE / "reviews.json").read_bytes()
    insights = (SAMPLE / "insights.json").read_bytes()
    return load(CONTRACT, reviews, insights, URLS)


# ---- Owners ----

DIRECTORY = Path(__file__).with_suffix("")


def stored(*paths: Path) -> Files:
    return tuple(json.loads(path.read_bytes()) for path in paths)


def sample_files() -> Files:
    return stored(SAMPLE / "reviews.json", SAMPLE / "insights.json")


def bare_files() -> Files:
    """Eight reviews with required fields, some with a text."""
    return stored(DIRECTORY / "bare.json")


def one_review() -> Files:
    """A review with every field."""
    return stored(DIRECTORY / "one.json")


def no_reviews() -> Files:
    return stored(DIRECTORY / "none.json")


def many_reviews() -> Files:
    """3,000 reviews in German over fifteen years, oldest first."""
    return (_many_file(),)


def german_files() -> Files:
    """Sixty reviews of a bakery."""
    return _counted("german")


def hebrew_files() -> Files:
    """Fourteen reviews of a dentist, some in other languages."""
    return _counted("hebrew")


def japanese_files() -> Files:
    """Twelve reviews of an inn, some in half-width and full-width letters."""
    return _counted("japanese")


def _counted(name: str) -> Files:
    """The files of an owner with insights that are counted."""
    document, editorial = stored(
        DIRECTORY / f"{name}.json", DIRECTORY / f"{name}_editorial.json"
    )
    complete = CONTRACT.reviews_file.complete(document)
    reviews = served_reviews(complete["reviews"], {})
    return document, compute_insights(reviews, editorial, {})


DATA_SETS: dict[str, Callable[[], Files]] = {
    "sample": sample_files,
    "bare": bare_files,
    "one": one_review,
    "none": no_reviews,
    "many": many_reviews,
    "german": german_files,
    "hebrew": hebrew_files,
    "japanese": japanese_files,
}

# ---- The bakery with 3,000 reviews, made of parts ----

MANY = 3000
FIRST_DAY = date(2011, 11, 28)
LAST_DAY = date(2026, 11, 24)
(PARTS,) = stored(DIRECTORY / "many_parts.json")


@cache
def _many_file() -> Any:
    reviews = [_one_of_many(number) for number in range(MANY)]
    return {"business": PARTS["business"], "reviews": reviews}


def _one_of_many(number: int) -> Any:
    """Different parts, which repeat with different periods, so that few are alike."""
    day = _day_of(number)
    text = _text_of(number)
    rating = _part("ratings", number * 7)
    moment = f"{day}T{number % 24:02}:15:00+0{1 + number % 2}:00"
    reply = {"text": "Vielen Dank für Ihre Mühe!", "date": day}
    is_answered = rating < 3 or number % 17 == 0
    first_name = _part("first_names", number)
    family_name = _part("family_names", number * 4)
    people = ("Frau Yıldız", "Herr Groß")
    return {
        "id": f"g{number:04}",
        "author": f"{first_name} {family_name}",
        "rating": rating,
        # Every third has a day alone.
        "date": moment if number % 3 else day,
        # Every sixth is a rating without words.
        "text": None if number % 6 == 5 else text,
        "source": _part("sources", number),
        "owner_reply": reply if is_answered else None,
        "mentioned_technicians": [name for name in people if name in text],
        "mentioned_services": _services_of(text),
    }


def _part(kind: str, number: int) -> Any:
    return PARTS[kind][number % len(PARTS[kind])]


def _day_of(number: int) -> str:
    days = (LAST_DAY - FIRST_DAY).days * number // (MANY - 1)
    return (FIRST_DAY + timedelta(days)).isoformat()


def _text_of(number: int) -> str:
    """One to three sentences; a few texts are very long."""
    opening = _part("openings", number)
    middle = _part("middles", number * 5)
    ending = _part("endings", number * 3)
    text = " ".join([opening, middle, ending][: 1 + number % 3])
    if number % 211 == 0:
        return text * 9
    return text


def _services_of(text: str) -> list[str]:
    if "Hochzeitstorte" in text:
        return ["hochzeitstorten"]
    return []


# ---- Directories ----


def write_files(directory: Path, reviews_file: Any, insights_file: Any = None) -> Path:
    """A data directory with these files."""
    files = {"reviews.json": reviews_file, "insights.json": insights_file}
    for name, value in files.items():
        if value is not None:
            (directory / name).write_text(json.dumps(value), encoding="utf-8")
    return directory
