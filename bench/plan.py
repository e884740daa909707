"""What the command line chooses, and the data that every measurement works on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import make_data
from environment import Environment
from load import Questions

SMALL_SIZE = 3  # reviews: reviews.json is then about 2 KB
SHORTEST_WORD = 4
WORDS = 1009  # words, days and ratings of Questions must have no common divisor
LONG_LOAD_REVIEWS = 50_000  # so many take seconds to load
MOST_LONG_LOADS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure and how long."""

    environment: Environment
    cache: Path  # keeps generated data between runs
    scratch: Path  # logs and files of this run
    sizes: tuple[int, ...]
    growth_sizes: tuple[int, ...]
    subscribers: tuple[int, ...]
    connections: tuple[int, ...]
    rounds: int
    seconds: int  # of one round on one server, at least
    only: frozenset[str]
    say: Callable[[str], None]  # tells the person who waits

    def rounds_with(self, reviews: int) -> int:
        """Rounds of what loads the data each time."""
        return self.rounds if reviews < LONG_LOAD_REVIEWS else min(self.rounds, MOST_LONG_LOADS)


def data_directory(plan: Plan, size: int) -> Path:
    """The generated data of `size` reviews, made when this version of make_data has not made it yet."""
    version = sha256(Path(make_data.__file__).read_bytes()).hexdigest()[:12]
    directory = plan.cache / f"data-{version}" / str(size)
    if not directory.exists():
        plan.say(f"generating {size} reviews")
        unfinished = directory.with_name(f"{size}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        make_data.write(size, unfinished)
        unfinished.rename(directory)
    return directory


def file_bytes(data: Path) -> int:
    """The size of both data files."""
    return sum((data / name).stat().st_size for name in ("reviews.json", "insights.json"))


def new_questions(plan: Plan) -> Questions:
    """Searches that this run has not asked yet, when its servers are new."""
    return Questions(plan.scratch, search_words(), search_days())


def search_days() -> Sequence[str]:
    """Every day of the data."""
    return [(make_data.FIRST_DAY + timedelta(days=day)).isoformat() for day in range(make_data.DAYS)]


def search_words() -> Sequence[str]:
    """The most frequent words that somebody would search for."""
    return [word for word in make_data.vocabulary() if len(word) >= SHORTEST_WORD][:WORDS]
