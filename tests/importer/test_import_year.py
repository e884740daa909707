"""A year of an owner: after each command the reviews are those of `lab.import_rules`.

The owner has two locations on Google, a tool's table with ids, and a guestbook kept by
hand. Parts of exports come in any order; there are pages of the API, edits, removals,
returns, renames, replies, erasures, redactions, lost state files and kills.

Sections: how reviews are exported - the year.
"""

import random
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from lab.export_lab import (
    ZONE,
    Item,
    Shop,
    dated,
    moment,
    stamped,
    takeout_files,
)
from lab.import_rules import (
    FACEBOOK,
    GUESTBOOK,
    PLACES,
    TABLES,
    Brought,
    Key,
    Review,
    Rules,
    Shown,
)

from reviewslib.terminal import EXIT_SUCCESS

# Days of one turn; a quarter of a year has ten of them.
TURN = 9
TURNS = 36

# Google has twenty a page, and a test has fewer reviews.
PAGE_SIZE = 6

World = dict[Key, Review]

# ---- How reviews are exported ----

WORDS = ("", "ONE", "TWO", "THREE", "FOUR", "FIVE")


def as_google(key: Key, review: Review) -> Item:
    """A review as Takeout has it."""
    place, number = key
    item: Item = {
        "name": f"accounts/1/locations/{place}/reviews/ChZ{number}",
        "reviewer": {"displayName": review.author},
        "starRating": WORDS[review.stars],
        "comment": review.text,
        "createTime": review.created,
        "updateTime": review.updated,
    }
    if review.reply:
        item["reviewReply"] = {"comment": review.reply, "updateTime": review.replied}
    return item


def as_api(key: Key, review: Review) -> Item:
    """The same review as a page of the API has it, under another id."""
    place, number = key
    own = {
        "reviewId": f"AbF{number}",
        "name": f"accounts/1/locations/{place}/reviews/AbF{number}",
    }
    return as_google(key, review) | own


def as_row(key: Key, review: Review) -> list[str]:
    """A review as a table without ids has it."""
    return [review.author, str(review.stars), review.created[:10], review.text]


class Page(NamedTuple):
    """A file of a Takeout."""

    name: str
    data: bytes
    keys: list[Key]  # of its reviews
    first_of: set[str]  # the location of which it is the first page, if any


class Part(NamedTuple):
    """A part of a Takeout, with the world as it was when it was made."""

    path: Path
    brought: Brought


def pages_of(place: str, world: World) -> list[Page]:
    """The files of one location, the newest reviews first."""
    keys = [key for key in world if key[0] == place]
    keys.sort(key=lambda key: world[key].updated, reverse=True)
    items = [as_google(key, world[key]) for key in keys]
    title, *files = takeout_files(items, place=place, size=PAGE_SIZE).items()
    pages = [Page(*title, keys=[], first_of=set())]
    for number, (name, data) in enumerate(files):
        on_page = keys[PAGE_SIZE * number :][:PAGE_SIZE]
        pages.append(Page(name, data, on_page, set() if number else {place}))
    return pages


# ---- The year ----


class Year:
    """An owner's year; `random` decides what happens."""

    def __init__(self, shop: Shop, seed: int):
        self.shop = shop
        self.random = random.Random(seed)
        self.rules = Rules()
        self.world: World = {}
        self.moderated: World = {}  # gone for some turns
        self.ids: dict[int, str] = {}
        self.number = 0
        self.known = set[str]()  # locations that an export has had
        self.is_complete_said = False  # of the guestbook
        self.takeouts: list[list[Part]] = []

    # What customers and Google do

    def live(self, day: int) -> None:
        """What happens in a turn."""
        self._write_new_reviews(day)
        for key in list(self.world):
            self._change(key, day)
        for key in list(self.moderated):
            if self.random.random() < 0.1:
                self.world[key] = self.moderated.pop(key)

    def _write_new_reviews(self, day: int) -> None:
        number = self.random.randint(0, 6)
        for place in self.random.choices((*PLACES, *TABLES), k=number):
            self.number += 1
            created = moment(day, self.number % 60, "")
            author = f"Nr{self.number} Kári"
            text = f"Gott {self.number}"
            review = Review(author, 5, text, created, updated=created)
            self.world[place, self.number] = review

    def _change(self, key: Key, day: int) -> None:
        """Perhaps edit, answer, rename or hide a review, or take the answer back."""
        review = self.world[key]
        is_google = key[0] in PLACES
        now = moment(day, fraction="")
        match self.random.randrange(40):
            case 0 | 1:
                self.world[key] = replace(
                    review,
                    stars=self.random.randint(1, 5),
                    text=f"{review.text}!",
                    updated=max(now, review.updated),
                )
            case 2 if is_google:
                self.world[key] = replace(review, reply=f"Takk {day}", replied=now)
            case 3 if is_google and review.reply:
                self.world[key] = replace(review, reply="", replied="")
            case 4 if key[0] != GUESTBOOK:
                self.world[key] = replace(review, author=f"Nr{key[1]} of {day}")
            case 5:
                self.moderated[key] = self.world.pop(key)

    # What the owner imports

    def give(
        self, brought: Brought, *words: object, allows_removals: bool = False
    ) -> None:
        """An import, sometimes after one that was killed before it was done."""
        places = {place for place, _ in brought.reviews} | brought.covers
        self.known |= places & {*PLACES}
        locations = [f"--location={place}" for place in self.known]
        line = [*words, "--name", "B", "--zone", ZONE, *locations]
        if allows_removals:
            line.append("--allow-removals")
        if self.random.random() < 0.1 and self.shop.data.exists():
            # There may be nothing to replace.
            with suppress(pytest.fail.Exception):
                self.shop.run_until_killed(*line)

        assert self.shop.run(*line) == EXIT_SUCCESS

        self.rules.take(brought, may_remove=allows_removals)
        self._compare()

    def _compare(self) -> None:
        """What is stored follows the rules, and each review keeps its first id."""
        shown = dict[int, Shown]()
        for id, review in self.shop.reviews.items():
            number = int(re.findall("[0-9]+", review["text"])[0])
            reply = (review.get("owner_reply") or {}).get("text", "")
            shown[number] = (review["author"], review["rating"], review["text"], reply)
            assert self.ids.setdefault(number, id) == id
        assert len(shown) == len(self.shop.reviews)
        assert shown == {key[1]: said for key, said in self.rules.listed().items()}

    def export(self, day: int) -> None:
        """Make a Takeout of one to three parts, which begin anywhere."""
        pages = pages_of(PLACES[0], self.world) + pages_of(PLACES[1], self.world)
        count = self.random.choice((1, 1, 2, 3))
        parts = list[Part]()
        for number in range(count):
            start = number * len(pages) // count
            end = (number + 1) * len(pages) // count
            parts.append(self._part(day, number + 1, pages[start:end]))
        self.takeouts = [*self.takeouts[-2:], parts]

    def _part(self, day: int, number: int, pages: list[Page]) -> Part:
        files = {page.name: page.data for page in pages}
        path = self.shop.zip(stamped(day, number), files)
        reviews: World = {}
        covers = set[str]()
        for page in pages:
            reviews |= {key: self.world[key] for key in page.keys}
            covers |= page.first_of
        time = f"{moment(day)[:10]}T23:00:00Z"
        return Part(path, Brought(reviews, time, frozenset(covers)))

    def give_parts(self) -> None:
        """Import some parts of one of the newest Takeouts, in one command."""
        parts = self.random.choice(self.takeouts)
        chosen = self.random.sample(parts, self.random.randint(1, len(parts)))
        reviews: World = {}
        covers = frozenset[str]()
        for part in chosen:
            reviews |= part.brought.reviews
            covers |= part.brought.covers
        brought = Brought(reviews, parts[0].brought.time, covers)
        paths = [part.path for part in chosen]
        is_allowed = self.random.random() < 0.1
        self.give(brought, *paths, allows_removals=is_allowed)

    def give_pages(self, day: int) -> None:
        """Import pages of the API of one place, all of them or half."""
        place = self.random.choice(PLACES)
        keys = [key for key in self.world if key[0] == place]
        half = len(keys) // 2
        if not half:
            return
        time = f"{moment(day)[:10]}T23:30:00Z"
        given = [keys[:half]]
        covers = set[str]()
        if self.random.random() < 0.6:
            given.append(keys[half:])
            covers.add(place)
        files = list[Path]()
        reviews: World = {}
        for number, on_page in enumerate(given):
            reviews |= {key: self.world[key] for key in on_page}
            page = self._page(number, on_page, total=len(keys))
            files.append(dated(page, time))
        brought = Brought(reviews, time, frozenset(covers))
        self.give(brought, *files, "--complete")

    def _page(self, number: int, keys: list[Key], total: int) -> Path:
        """A saved page of the API, of a location with so many reviews in all."""
        items = [as_api(key, self.world[key]) for key in keys]
        return self.shop.page(*items, name=f"p{number}", totalReviewCount=total)

    def give_table(self, day: int) -> None:
        """Import some rows of Facebook, or the guestbook."""
        if self.random.choice(TABLES) == FACEBOOK:
            self._give_facebook(day)
        else:
            self._give_guestbook(day)

    def _give_facebook(self, day: int) -> None:
        """Some of the rows, which have ids."""
        reviews = self._shuffled(FACEBOOK, share=0.8)
        rows = [[f"f{key[1]}", *as_row(key, reviews[key])] for key in reviews]
        table = self.shop.csv(*rows, header="id author rating date text")
        self._give_rows(day, table, reviews, "--source", FACEBOOK)

    def _give_guestbook(self, day: int) -> None:
        """All rows, which have no ids; that they are all is said once."""
        reviews = self._shuffled(GUESTBOOK, share=1)
        table = self.shop.csv(*(as_row(key, reviews[key]) for key in reviews))
        words = ["--source", GUESTBOOK]
        if not self.is_complete_said:
            words.append("--complete")
        self.is_complete_said |= bool(reviews)
        self._give_rows(day, table, reviews, *words, covers=frozenset({GUESTBOOK}))

    def _shuffled(self, source: str, share: float) -> World:
        """A share of the reviews of a source, in any order."""
        keys = [key for key in self.world if key[0] == source]
        chosen = [key for key in keys if self.random.random() < share]
        self.random.shuffle(chosen)
        return {key: self.world[key] for key in chosen}

    def _give_rows(
        self,
        day: int,
        table: Path,
        reviews: World,
        *words: str,
        covers: frozenset[str] = frozenset(),
    ) -> None:
        if not reviews:
            return
        time = f"{moment(day)[:10]}T23:40:00Z"
        self.give(Brought(reviews, time, covers), dated(table, time), *words)

    # What the owner does by hand

    def by_hand(self) -> None:
        """The owner erases, redacts, edits or loses something."""
        listed = self.rules.listed()
        key = self.random.choice(sorted(listed))
        id = self.ids[key[1]]
        author, _, text, _ = listed[key]
        match self.random.choice(("forget", "forget author", "redact", "edit", "lose")):
            case "forget":
                self.rules.erase([key])
                self.give(Brought(), "--forget", id)
            case "forget author":
                self.rules.erased_authors.add(author)
                self.give(Brought(), "--forget-author", author.upper())
            case "redact" if "Gott" in text:
                self.rules.redacted[key] = "Gott"
                self.give(Brought(), "--redact", id, "Gott")
            case "edit":
                self._edit(key, id)
            case "lose":
                self._lose()

    def _edit(self, key: Key, id: str) -> None:
        """Change the words of a review in reviews.json, until an export has them."""
        mended = f"mended {key[1]}"
        self.shop.edit(id, text=mended)
        self.rules.edit(key, mended)

    def _lose(self) -> None:
        """Lose the state, and with it the first ids and what was said."""
        self.shop.lose()
        self.rules.lose()
        self.is_complete_said = False
        self.ids.clear()
        if not {place for place, _ in self.rules.stored} & {*PLACES}:
            self.known.clear()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_each_command_of_a_year_the_reviews_follow_the_rules(
    shop: Shop, seed: int
) -> None:
    year = Year(shop, seed)

    for turn in range(TURNS):
        day = TURN * turn
        year.live(day)
        if turn % 3 == 0:
            year.export(day)
        year.give_parts()
        if turn % 4 == 1:
            year.give_pages(day)
        if turn % 3 == 2:
            year.give_table(day)
        if turn % 3 == 1 and year.rules.there:
            year.by_hand()

    assert len(year.rules.listed()) > 30
    assert year.rules.erased
