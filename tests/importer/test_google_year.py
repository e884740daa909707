"""A random year of two locations that Takeouts, Google's API and tables bring.

Lists lack reviews, repeat them, and change while they are read; questions get no answer;
Takeouts are older and newer; the moments of the two are a second apart; reviews are
revised, deleted, brought back and erased; states are lost, and runs are killed. Our clock
is more than a year ahead of Google's. A plain definition tells what must be stored: after
every command nothing that exists is lost, nothing is doubled, nothing erased is there;
after a run in which all was well, there is nothing else, either.
"""

import random
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
from lab.google_lab import AUTHOR, ORDERS, OTHER_PLACE, GoogleShop, error

PLACES = (PLACE, OTHER_PLACE)
WEEKS = 36
DAYS_OF_WEEK = 9  # so that the weeks fill a year
# What is asked of the owner is answered, and many removals are allowed.
ANSWERS = ("--name", "Bó", "--zone", ZONE, "--allow-removals")
CHOICE = ("--location", PLACE, "--location", OTHER_PLACE)
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

    def created(self, *, is_late: bool = False) -> str:
        """When it was written, perhaps a second later, which may be the next day."""
        if self.number % 10:
            return moment(self.written, self.second + is_late)
        day = moment(self.written + is_late)[:10]
        return f"{day}T00:00:00Z" if is_late else f"{day}T23:59:59Z"

    def as_takeout(self) -> Item:
        return item(
            self.number,
            place=self.place,
            reviewer={"displayName": self.author},
            comment=self.text,
            createTime=self.created(),
            updateTime=moment(self.updated, self.second),
        )

    def as_api(self) -> Item:
        native_id = native_id_of(self.number)
        return api_item(
            self.number,
            name=f"accounts/9/locations/{self.place}/reviews/{native_id}",
            reviewer={"displayName": self.author},
            comment=self.text,
            createTime=self.created(is_late=self.is_a_second_late),
            updateTime=moment(self.updated, self.second + self.is_a_second_late),
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
        self.removed = set[int]()
        self.current = set[str]()  # texts that were stored as they were at Google
        self.has_moments = False  # whether the state has those of all that is stored
        self.is_known_to_the_api = False  # whether all that is stored has its ids
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
            if self.chance(0.1):
                self.there[number] = self.hidden.pop(number)
        self.publish()

    def write(self) -> Review:
        self.number += 1
        review = Review(
            number=self.number,
            place=self.random.choice(PLACES),
            written=self.day,
            updated=self.day,
            is_a_second_late=self.chance(0.5),
        )
        self.there[self.number] = review
        return review

    def publish(self) -> None:
        """Let the fake have what is there now, and no trouble."""
        self.google.now = f"{moment(self.day)[:10]}T23:30:00+00:00"
        for place in PLACES:
            reviews = self.in_place(place)
            self.google.has([review.as_api() for review in reviews], place)
        self.google.answers.clear()
        self.google.appearing.clear()
        self.google.hidden = set()
        self.google.hidden_in = ORDERS
        self.google.overlap = 0
        self.google.totals.clear()

    def in_place(self, place: str) -> list[Review]:
        return [review for review in self.there.values() if review.place == place]

    # ---- Three ways to the copy ----

    def make_takeout(self) -> None:
        self.takeouts.append((self.day, [*self.there.values()]))

    def give_takeout(self, day: int, reviews: list[Review]) -> None:
        self.is_known_to_the_api = False
        files = dict[str, bytes]()
        for place in PLACES:
            items = [each.as_takeout() for each in reviews if each.place == place]
            files |= takeout_files(items, place=place, title=f"Bó {place}")
        self.shop.take(self.shop.zip(stamped(day), files), *CHOICE, *ANSWERS)
        is_of_today = day == self.day
        # An older one is older than what is stored only if the state knows how old that
        # is; of tables and after a loss it does not.
        self.check(
            has_all=is_of_today,
            has_no_other=is_of_today,
            keeps=is_of_today or self.has_moments,
        )

    def give_table(self) -> None:
        self.is_known_to_the_api = False
        rows = [review.as_row() for review in self.there.values()]
        table = self.shop.csv(*rows, header="author rating date text source")
        dated(table, f"{moment(self.day)[:10]}T23:00:00+00:00")
        self.shop.take(table, *ANSWERS)
        self.check()

    def ask(self) -> None:
        """A run in which all is well."""
        self.shop.ask(*CHOICE, *ANSWERS)
        self.check(has_all=True, has_no_other=True)
        self.is_known_to_the_api = True
        self.has_moments = True

    def ask_in_trouble(self) -> None:
        """A run in which Google's lists are not as they should be."""
        ids = [native_id_of(number) for number in self.there]
        self.google.hidden = set(self.random.sample(ids, len(ids) // 4))
        self.google.overlap = self.random.randrange(3)
        is_answered = self.chance(0.7)
        if not is_answered:
            self.google.answers["/reviews/"] = lambda: error(503, "UNAVAILABLE")
        # One order has what the other lacks, unless the list changes, or says of itself
        # that it is whole.
        has_all = self.chance(0.5)
        if has_all:
            self.google.hidden_in = (self.random.choice(ORDERS),)
        else:
            self.change_while_read()
            for place in PLACES:
                if self.chance(0.5):
                    self.google.totals[place] = self.wrong_total(place)
        self.shop.ask(*CHOICE, *ANSWERS)
        # A 404 counts, whatever the list is.
        has_no_other = is_answered and self.is_known_to_the_api
        self.check(has_all=has_all, has_no_other=has_no_other)
        self.publish()

    def change_while_read(self) -> None:
        review = self.write()
        if review.place == PLACE:
            self.google.appearing.append(review.as_api())

    def wrong_total(self, place: str) -> int:
        """A number that is too large, or one that agrees with a list that lacks some.

        The latter only if the API can be asked for all that is stored: nothing else
        tells that such a list is not whole.
        """
        ids = [native_id_of(each.number) for each in self.in_place(place)]
        if self.is_known_to_the_api and self.chance(0.5):
            return len(set(ids) - self.google.hidden)
        return len(ids) + 5

    # ---- What goes wrong here ----

    def erase(self) -> None:
        # Of new ones, often one way alone has brought an id.
        number = self.random.choice(sorted(self.stored)[-12:])
        self.shop.take("--forget", self.first_ids[number])
        self.erased.add(number)
        self.check()

    def lose_the_state(self) -> None:
        self.shop.lose()
        self.is_known_to_the_api = False
        # Of what is removed, nothing is known any more.
        self.has_moments = False
        self.removed.clear()
        self.current.clear()
        self.first_ids = {number: self.first_ids[number] for number in self.stored}

    def kill(self) -> None:
        words = ("--google", self.shop.key, *CHOICE, *ANSWERS)
        # A run that writes nothing comes to its end.
        with suppress(pytest.fail.Exception):
            self.shop.run_until_killed(*words, name=self.random.choice(FILES))
        self.check()

    # ---- What must be stored ----

    def check(
        self, *, has_all: bool = False, has_no_other: bool = False, keeps: bool = True
    ) -> None:
        """Compare what is stored with what exists, after a command.

        One that keeps loses nothing that was stored and exists, and brings back nothing
        that was removed, and no words that were replaced.
        """
        texts = [review["text"] for review in self.shop.reviews.values()]
        numbers = [number_in(text) for text in texts]
        existing = self.there.keys() - self.erased
        assert len(numbers) == len(set(numbers)), "doubled"
        assert not self.erased & set(numbers), "erased, and back"
        current = {self.there[number].text for number in existing}
        if keeps:
            assert not (self.stored & existing) - set(numbers), "lost"
            assert not self.removed & set(numbers) - existing, "brought back"
            assert not (self.current & current) - set(texts), "old words"
        if has_all:
            assert not current - set(texts), "lacking"
        if has_no_other:
            assert not set(numbers) - existing, "extra"
        self.current = current & set(texts)
        self.removed = (self.removed | self.stored) - set(numbers)
        self.stored = set(numbers)
        for id, review in self.shop.reviews.items():
            assert self.first_ids.setdefault(number_in(review["text"]), id) == id

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability


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
        if week % 3 == 0:
            year.make_takeout()
        if year.takeouts and year.chance(0.5):
            day, reviews = year.random.choice(year.takeouts[-3:])
            year.give_takeout(day, reviews)
        if year.chance(0.5):
            year.ask_in_trouble()
        if year.stored and year.chance(0.3):
            year.erase()
        if year.stored and year.chance(0.1):
            year.lose_the_state()
        if year.stored and year.chance(0.3):
            year.kill()
        if week < WEEKS - 1 and year.chance(0.2):
            # What the killed run has written meets the next week.
            continue
        year.ask()
    assert len(year.stored) > 30
