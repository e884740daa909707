"""A random year in which Takeouts and Google's API bring the same reviews.

Lists lack some, come twice, and change while they are read; Takeouts are older and newer;
moments are a second apart; states are lost. After each run with a list that can be read
whole, the stored reviews are those that exist: none is lost, extra or doubled, and each
keeps its first id.
"""

import random

import pytest
from lab.export_lab import PLACE, Item, api_item, item, moment
from lab.google_lab import FakeGoogle, GoogleShop

ANSWERS = ("--location", PLACE, "--name", "Bó", "--allow-removals")


class GoogleYear:
    """A year of a shop; `random` decides what happens."""

    def __init__(self, shop: GoogleShop, seed: int):
        self.shop = shop
        self.google = shop.google
        self.random = random.Random(seed)
        self.texts = dict[
            int, tuple[str, str]
        ]()  # text and moment of update, by number
        self.takeouts = list[tuple[int, list[Item]]]()  # days and reviews
        self.ids = dict[int, str]()  # by number
        self.number = 0

    def live(self, day: int) -> None:
        """What customers do in a week."""
        for _ in range(self.random.randint(0, 8)):
            self.number += 1
            self.write(self.number, "Gott", day)
        for number in list(self.texts):
            fate = self.random.random()
            if fate < 0.03:
                del self.texts[number]
            elif fate < 0.06:
                self.write(number, "Verra", day)
        self.google.now = f"{moment(day)[:10]}T23:30:00+00:00"
        self.google.has([self.as_api(number) for number in self.texts])
        self.google.hidden = set()
        self.google.total = None

    def write(self, number: int, word: str, day: int) -> None:
        self.texts[number] = (f"{word} í {number}. skipti", moment(day))

    def fields(self, number: int) -> Item:
        text, updated = self.texts[number]
        return {"comment": text, "updateTime": updated}

    def as_api(self, number: int) -> Item:
        # A number is a day of creation, too, so that nobody shares a moment.
        created = moment(number % 300, 1)
        return api_item(number, **self.fields(number) | {"createTime": created})

    def as_takeout(self, number: int) -> Item:
        created = moment(number % 300)
        return item(number, **self.fields(number) | {"createTime": created})

    def export(self, day: int) -> None:
        self.takeouts.append((day, [*map(self.as_takeout, self.texts)]))

    def give_takeout(self) -> None:
        """One of the newest Takeouts, which may be older than what is stored."""
        day, reviews = self.random.choice(self.takeouts[-3:])
        if reviews:
            self.shop.take(self.shop.takeout(day, reviews), *ANSWERS)
            # What it was the first to bring has its ids for good.
            self.renamed()

    def ask_with_trouble(self, day: int) -> None:
        """A list that lacks reviews, or to which one comes while it is read."""
        ids = [f"AbFvOq{number:04}" for number in self.texts]
        self.google.hidden = set(self.random.sample(ids, len(ids) // 5))
        if self.random.random() < 0.5:
            self.number += 1
            self.write(self.number, "Gott", day)
            self.google.appearing = [self.as_api(self.number)]
        if self.random.random() < 0.3:
            self.google.total = len(ids) + 5
        self.shop.ask(*ANSWERS)
        self.google.appearing = []
        self.google.has([self.as_api(number) for number in self.texts])
        self.google.hidden = set()
        self.google.total = None

    def renamed(self) -> set[int]:
        """The numbers of reviews that no longer have the id that they were given first."""
        changed = set[int]()
        for id, review in self.shop.reviews.items():
            number = int(review["text"].split()[-2].rstrip("."))
            if self.ids.setdefault(number, id) != id:
                changed.add(number)
        return changed

    def settle(self) -> None:
        """A run in which all is well."""
        self.shop.ask(*ANSWERS)


@pytest.fixture
def google():
    with FakeGoogle() as fake:
        yield fake


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_each_whole_list_the_reviews_are_those_that_exist(
    tmp_path, capsys, google, seed: int
) -> None:
    # given
    year = GoogleYear(GoogleShop(tmp_path, capsys.readouterr, google), seed)
    for week in range(35):
        day = 9 * week + 1
        year.live(day)
        # when
        if week % 3 == 0:
            year.export(day)
        if year.random.random() < 0.5:
            year.give_takeout()
        if year.random.random() < 0.5:
            year.ask_with_trouble(day)
        if week and year.random.random() < 0.1:
            year.shop.lose()
        year.settle()
        # then
        stored = sorted(review["text"] for review in year.shop.reviews.values())
        assert stored == sorted(text for text, _ in year.texts.values())
        assert year.renamed() == set()
