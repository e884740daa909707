"""A random year of two locations that Takeouts, Google's API and tables bring.

Lists lack reviews, repeat them, and change while they are read; questions get no answer;
Takeouts are older and newer; the moments of the two are a second apart; reviews are
revised, deleted, brought back and erased; states are lost, and runs are killed. Our clock
is more than a year ahead of Google's. A plain definition tells what must be stored: after
every command nothing that exists is lost, nothing is doubled, nothing erased is there;
after a run in which all was well, there is nothing else, either.
"""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from lab.export_lab import (
    PLACE,
    ZONE,
    Item,
    api_item,
    dated,
    item,
    moment,
    stamped,
    takeout_files,
)
from lab.google_lab import AUTHOR, OTHER_PLACE, FakeGoogle, GoogleShop, error

PLACES = (PLACE, OTHER_PLACE)
WEEKS = 36
DAYS_OF_WEEK = 9  # so that the weeks fill a year
# What is asked of the owner is answered, and many removals are allowed.
ANSWERS = ("--name", "Bó", "--zone", ZONE, "--allow-removals")
CHOICE = [word for place in PLACES for word in ("--location", place)]
FILES = ("import-state.draft.json", "reviews.json", "import-state.json")


@dataclass(frozen=True)
class Review:
    """A review as it is at Google now; days count from the start of the year."""

    number: int
    place: str
    written: int
    updated: int
    word: str = "Gott"
    is_a_second_late: bool = False  # in the API, as against a Takeout

    @property
    def text(self) -> str:
        return f"{self.word} í {self.number}. skipti"

    @property
    def author(self) -> str:
        """A name that nobody else has when it is short, either."""
        return f"{AUTHOR}{self.number} Jónsdóttir"

    @property
    def second(self) -> int:
        # Of a minute: two for each review of a week.
        return 2 * (self.number % 30)

    def as_takeout(self) -> Item:
        return item(
            self.number,
            place=self.place,
            reviewer={"displayName": self.author},
            comment=self.text,
            createTime=moment(self.written, self.second),
            updateTime=moment(self.updated, self.second),
        )

    def as_api(self) -> Item:
        native_id = native_id_of(self.number)
        second = self.second + self.is_a_second_late
        return api_item(
            self.number,
            name=f"accounts/9/locations/{self.place}/reviews/{native_id}",
            reviewer={"displayName": self.author},
            comment=self.text,
            createTime=moment(self.written, second),
            updateTime=moment(self.updated, second),
        )

    def as_row(self) -> list[str]:
        day = moment(self.written)[:10]
        return [self.author, "5", day, self.text, "google"]


def native_id_of(number: int) -> str:
    """The id that the API gives."""
    return f"AbFvOq{number:04}"


def number_in(text: str) -> int:
    return int(text.split()[-2].rstrip("."))


class Year:
    """What happens at Google and to its copy; `random` decides."""

    def __init__(self, shop: GoogleShop, seed: int):
        self.shop = shop
        self.google = shop.google
        self.google.largest_page = 10
        self.google.locations = [
            {"name": f"locations/{place}", "title": f"Bó {place}"} for place in PLACES
        ]
        self.random = random.Random(seed)
        self.there = dict[int, Review]()  # at Google, by number
        self.hidden = dict[int, Review]()  # that come back
        self.erased = set[int]()
        self.takeouts = list[tuple[int, list[Review]]]()  # days and reviews
        self.first_ids = dict[int, str]()  # by number
        self.stored = set[int]()
        self.number = 0
        self.day = 0

    # ---- At Google ----

    def live(self, day: int) -> None:
        """What customers, and those who moderate, do in a week."""
        self.day = day
        for _ in range(self.random.randint(0, 8)):
            self.write()
        for review in list(self.there.values()):
            fate = self.random.random()
            if fate < 0.03:
                del self.there[review.number]
            elif fate < 0.05:
                self.hidden[review.number] = self.there.pop(review.number)
            elif fate < 0.08:
                word = self.random.choice(["Verra", "Betra"])
                self.there[review.number] = replace(review, word=word, updated=day)
        for number in list(self.hidden):
            if self.random.random() < 0.1:
                self.there[number] = self.hidden.pop(number)
        self.publish()

    def write(self) -> Review:
        self.number += 1
        review = Review(
            number=self.number,
            place=self.random.choice(PLACES),
            written=self.day,
            updated=self.day,
            is_a_second_late=self.random.random() < 0.5,
        )
        self.there[self.number] = review
        return review

    def publish(self) -> None:
        """Let the fake have what is there now, and no trouble."""
        self.google.now = f"{moment(self.day)[:10]}T23:30:00+00:00"
        for place in PLACES:
            reviews = [each for each in self.there.values() if each.place == place]
            self.google.has([review.as_api() for review in reviews], place)
        self.google.answers.clear()
        self.google.appearing.clear()
        self.google.hidden = set()
        self.google.total = None

    # ---- Three ways to the copy ----

    def make_takeout(self) -> None:
        self.takeouts.append((self.day, [*self.there.values()]))

    def give_takeout(self, day: int, reviews: list[Review]) -> None:
        files = dict[str, bytes]()
        for place in PLACES:
            items = [each.as_takeout() for each in reviews if each.place == place]
            files |= takeout_files(items, place=place, title=f"Bó {place}")
        self.shop.take(self.shop.zip(stamped(day), files), *CHOICE, *ANSWERS)

    def give_table(self) -> None:
        rows = [review.as_row() for review in self.there.values()]
        table = self.shop.csv(*rows, header="author rating date text source")
        dated(table, f"{moment(self.day)[:10]}T23:00:00+00:00")
        self.shop.take(table, *ANSWERS)

    def ask(self) -> None:
        """A run in which all is well."""
        self.shop.ask(*CHOICE, *ANSWERS)

    def ask_in_trouble(self) -> None:
        """A list that lacks reviews, or to which one comes while it is read."""
        ids = [native_id_of(number) for number in self.there]
        self.google.hidden = set(self.random.sample(ids, len(ids) // 4))
        if self.random.random() < 0.5:
            review = self.write()
            if review.place == PLACE:
                self.google.appearing.append(review.as_api())
        if self.random.random() < 0.3:
            self.google.total = len(ids) + 5
        if self.random.random() < 0.3:
            self.google.answers["/reviews/"] = lambda: error(503, "UNAVAILABLE")
        self.ask()
        self.publish()

    # ---- What goes wrong here ----

    def erase(self) -> None:
        number = self.random.choice(sorted(self.stored))
        self.shop.take("--forget", self.first_ids[number])
        self.erased.add(number)

    def lose_the_state(self) -> None:
        self.shop.lose()
        # Of what is removed, nothing is known any more.
        self.first_ids = {number: self.first_ids[number] for number in self.stored}

    def kill(self) -> None:
        words = ("--google", self.shop.key, *CHOICE, *ANSWERS)
        # A run that writes nothing comes to its end.
        with suppress(pytest.fail.Exception):
            self.shop.run_until_killed(*words, name=self.random.choice(FILES))

    # ---- What must be stored ----

    def check(self, *, is_settled: bool) -> None:
        """Compare what is stored with what exists, after a command."""
        texts = [review["text"] for review in self.shop.reviews.values()]
        numbers = [number_in(text) for text in texts]
        assert len(numbers) == len(set(numbers)), "doubled"
        assert not self.erased & set(numbers), "erased, and back"
        lost = (self.stored & self.there.keys()) - self.erased - set(numbers)
        assert not lost
        if is_settled:
            existing = self.there.values()
            expected = [
                each.text for each in existing if each.number not in self.erased
            ]
            assert sorted(texts) == sorted(expected)
        self.stored = set(numbers)
        for id, review in self.shop.reviews.items():
            assert self.first_ids.setdefault(number_in(review["text"]), id) == id

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as fake:
        yield fake


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_extra_or_doubled_at_the_run_after(
    tmp_path, capsys, google, seed: int
) -> None:
    # given
    year = Year(GoogleShop(tmp_path, capsys.readouterr, google), seed)
    for week in range(WEEKS):
        year.live(DAYS_OF_WEEK * week + 1)
        # when, then
        if year.chance(0.3) and year.there:
            year.give_table()
            year.check(is_settled=False)
        if week % 3 == 0:
            year.make_takeout()
        if year.takeouts and year.chance(0.5):
            day, reviews = year.random.choice(year.takeouts[-3:])
            year.give_takeout(day, reviews)
            year.check(is_settled=day == year.day)
        if year.chance(0.5):
            year.ask_in_trouble()
            year.check(is_settled=False)
        if year.stored and year.chance(0.1):
            year.erase()
            year.check(is_settled=False)
        if year.stored and year.chance(0.1):
            year.lose_the_state()
        if year.stored and year.chance(0.2):
            year.kill()
            year.check(is_settled=False)
        year.ask()
        year.check(is_settled=True)
    assert len(year.stored) > 30
