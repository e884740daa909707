"""A year of an owner: after each command the reviews are those of a plain definition of the ten rules.

The owner has two locations on Google, a tool's table with ids, and a hand-kept table. Parts of exports come
in any order; there are pages of the API, edits, removals, returns, renames, replies, erasures, redactions,
lost state files and kills. The definition uses the written reviews and the imported files. It uses no digest,
no file of the data directory and no code of the importer.
"""

import random
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import pytest
from lab.export_lab import (
    PLACE,
    ZONE,
    Item,
    Shop,
    dated,
    moment,
    stamped,
    takeout_files,
)

from reviewslib.terminal import EXIT_SUCCESS

# ---- World: what customers and the owner have written, and how it is exported ----

PLACES = (PLACE, "22")
TABLES = ("facebook", "guestbook")
Key = tuple[str, int]  # location or source, and number


@dataclass(frozen=True)
class Review:
    """A version of a review; moments are UTC, that of a reply is empty without one."""

    author: str
    stars: int
    text: str
    created: str
    updated: str
    reply: str = ""
    replied: str = ""


Reviews = Mapping[Key, Review]
WORDS = ("", "ONE", "TWO", "THREE", "FOUR", "FIVE")


def as_google(key: Key, review: Review, *, api: bool = False) -> Item:
    place, number = key
    native = f"AbF{number}" if api else f"ChZ{number}"
    item: Item = {
        "name": f"accounts/1/locations/{place}/reviews/{native}",
        "reviewer": {"displayName": review.author},
        "starRating": WORDS[review.stars],
        "comment": review.text,
        "createTime": review.created,
        "updateTime": review.updated,
    }
    if review.reply:
        item["reviewReply"] = {"comment": review.reply, "updateTime": review.replied}
    return item | ({"reviewId": native} if api else {})


# ---- Rules: which reviews are stored after the imported files ----


@dataclass
class Stored:
    """A review as it is stored, and when exports had it."""

    shown: Review
    seen: str  # time of the newest export that had it
    text_of: tuple[str, str]  # times of the text's update and of the export that had it
    location: str  # empty after a loss, until an export has it


@dataclass
class Rules:
    stored: dict[Key, Stored] = field(default_factory=dict)
    there: set[Key] = field(
        default_factory=set
    )  # of `stored`, those that are published
    covered: dict[str, str] = field(
        default_factory=dict
    )  # times of the newest complete exports, by scope
    erased: set[Key] = field(default_factory=set)
    erased_authors: set[str] = field(default_factory=set)
    redacted: dict[Key, str] = field(default_factory=dict)

    def take(
        self, exported: Reviews, time: str, covers: Iterable[str], *, allowed: bool
    ) -> None:
        """Import an export of this time, or a part of it, that has every review of these scopes."""
        before = {*self.there}
        for key in exported.keys() - self.erased:
            new = exported[key]
            updated = new.updated if key[0] in PLACES else ""
            if key not in self.there:
                seen = max(self.stored[key].seen, time) if key in self.stored else time
                self.stored[key] = Stored(new, seen, (updated, time), key[0])
                self.there.add(key)
                continue
            stored = self.stored[key]
            stored.location = key[0]
            if time >= stored.seen:
                stored.shown = replace(
                    stored.shown,
                    author=new.author,
                    reply=new.reply,
                    replied=new.replied,
                )
            if (updated, time) >= stored.text_of:
                stored.text_of = updated, time
                stored.shown = replace(stored.shown, stars=new.stars, text=new.text)
            stored.seen = max(stored.seen, time)
        for scope in covers:
            self.covered[scope] = max(time, self.covered.get(scope, ""))
        self.erase(
            key
            for key, stored in self.stored.items()
            if stored.shown.author in self.erased_authors
        )
        for scope in (*PLACES, *TABLES, ""):
            self.remove(scope, before, allowed=allowed)

    def remove(self, scope: str, before: set[Key], *, allowed: bool) -> None:
        """Remove what no export has had since the newest complete one, unless these are too many."""
        scopes = [scope] if scope else PLACES  # a location that was lost may be any
        covered = min(self.covered.get(scope, "") for scope in scopes)
        ours = {key for key in self.there if self.stored[key].location == scope}
        gone = {key for key in ours if self.stored[key].seen < covered}
        self.there -= gone - before
        gone &= before & self.there
        is_much = len(gone) > 3 and len(gone) * 10 > len(ours & self.there)
        if allowed or not (is_much or gone == ours & self.there):
            self.there -= gone

    def erase(self, keys: Iterable[Key]) -> None:
        keys = {*keys}
        self.erased |= keys
        self.there -= keys

    def lose(self) -> None:
        """Lose the state: a review existed when it was written, and no export was complete."""
        self.stored = {key: self.stored[key] for key in self.there}
        for key, stored in self.stored.items():
            written = max(stored.shown.created, stored.shown.replied)
            seen = f"{written[:10]}T23:59:59Z" if key[0] in TABLES else written
            self.stored[key] = Stored(
                stored.shown, seen, ("", seen), "" if key[0] in PLACES else key[0]
            )
        self.covered = {}

    def listed(self) -> dict[Key, tuple[str, int, str, str]]:
        shown = {key: self.stored[key].shown for key in self.there}
        texts = {
            key: review.text.replace(self.redacted.get(key, "\0"), "[…]")
            for key, review in shown.items()
        }
        return {
            key: (review.author, review.stars, texts[key], review.reply)
            for key, review in shown.items()
        }


# ---- Year ----

PAGE_SIZE = 6  # reviews; Google has 20 a page, and a test has fewer reviews


class Part(NamedTuple):
    """A part of a Takeout."""

    path: Path
    time: str
    keys: set[Key]
    first_pages: set[str]  # locations


class Year:
    """An owner's year; `random` decides what happens."""

    def __init__(self, shop: Shop, seed: int):
        self.known = set[str]()  # locations that an export has had
        self.shop = shop
        self.random = random.Random(seed)
        self.rules = Rules()
        self.world: dict[Key, Review] = {}
        self.moderated: dict[Key, Review] = {}  # gone for some weeks
        self.ids: dict[int, str] = {}
        self.number = 0
        self.is_said = False
        self.takeouts: list[
            tuple[dict[Key, Review], list[Part]]
        ] = []  # the world then, and the parts

    def live(self, day: int) -> None:
        """What customers and Google do in a week."""
        now = moment(day, fraction="")
        for place in self.random.choices(
            (*PLACES, *TABLES), k=self.random.randint(0, 6)
        ):
            self.number += 1
            created = moment(day, self.number % 60, "")
            self.world[place, self.number] = Review(
                f"Nr{self.number} Kári", 5, f"Gott {self.number}", created, created
            )
        for key, review in list(self.world.items()):
            is_google = key[0] in PLACES
            match self.random.randrange(40):
                case 0 | 1:
                    stars = self.random.randint(1, 5)
                    updated = max(now, review.updated)
                    self.world[key] = replace(
                        review, stars=stars, text=f"{review.text}!", updated=updated
                    )
                case 2 if is_google:
                    self.world[key] = replace(review, reply=f"Takk {day}", replied=now)
                case 3 if is_google and review.reply:
                    self.world[key] = replace(review, reply="", replied="")
                case 4 if key[0] != "guestbook":
                    self.world[key] = replace(review, author=f"Nr{key[1]} of {day}")
                case 5:
                    self.moderated[key] = self.world.pop(key)
        for key in [key for key in self.moderated if self.random.random() < 0.1]:
            self.world[key] = self.moderated.pop(key)

    def give(
        self,
        exported: Reviews,
        time: str,
        covers: Iterable[str],
        *words: object,
        allowed: bool = False,
    ) -> None:
        """An import, sometimes after one that was killed before it had replaced reviews.json."""
        self.known |= {*covers, *(place for place, _ in exported)} & {*PLACES}
        locations = (word for place in self.known for word in ("--location", place))
        words = (
            *words,
            "--name",
            "B",
            "--zone",
            ZONE,
            *locations,
            *["--allow-removals"] * allowed,
        )
        if self.random.random() < 0.1 and self.shop.data.exists():
            with suppress(pytest.fail.Exception):  # it had nothing to replace
                self.shop.run_until_killed(*words)
        assert self.shop.run(*words) == EXIT_SUCCESS
        self.rules.take(exported, time, covers, allowed=allowed)
        shown = {}
        for id, review in self.shop.reviews.items():
            number = int(re.findall("[0-9]+", review["text"])[0])
            reply = (review.get("owner_reply") or {}).get("text", "")
            shown[number] = (review["author"], review["rating"], review["text"], reply)
            assert self.ids.setdefault(number, id) == id
        assert len(shown) == len(self.shop.reviews)
        assert shown == {key[1]: said for key, said in self.rules.listed().items()}

    def export(self, day: int) -> None:
        """Make a Takeout; `give_parts` imports some of its parts."""
        newest_first = sorted(
            self.world, key=lambda key: self.world[key].updated, reverse=True
        )
        pages = list[tuple[str, bytes, list[Key], set[str]]]()
        for place in PLACES:
            keys = [key for key in newest_first if key[0] == place]
            items = [as_google(key, self.world[key]) for key in keys]
            files = takeout_files(items, place=place, size=PAGE_SIZE)
            for number, (name, data) in enumerate(
                files.items(), -1
            ):  # the title comes before the pages
                on_page = keys[PAGE_SIZE * number :][:PAGE_SIZE] if number >= 0 else []
                pages.append((name, data, on_page, {place} if number == 0 else set()))
        time = f"{moment(day)[:10]}T23:00:00Z"
        count = self.random.choice((1, 1, 2, 3))
        parts = list[Part]()
        for n in range(count):
            inside = pages[n * len(pages) // count : (n + 1) * len(pages) // count]
            path = self.shop.zip(
                stamped(day, n + 1), {name: data for name, data, *_ in inside}
            )
            keys = {key for _, _, keys, _ in inside for key in keys}
            first = (page[3] for page in inside)
            parts.append(Part(path, time, keys, set().union(*first)))
        self.takeouts = [*self.takeouts[-2:], ({**self.world}, parts)]

    def give_parts(self) -> None:
        """Some parts of one of the newest Takeouts, in one command."""
        world, parts = self.random.choice(self.takeouts)
        chosen = self.random.sample(parts, self.random.randint(1, len(parts)))
        exported = {key: world[key] for part in chosen for key in part.keys}
        covers = set[str]().union(*(part.first_pages for part in chosen))
        allowed = self.random.random() < 0.1
        self.give(
            exported,
            parts[0].time,
            covers,
            *(part.path for part in chosen),
            allowed=allowed,
        )

    def give_pages(self, day: int) -> None:
        """Pages of the API of one place, complete or not."""
        place = self.random.choice(PLACES)
        time = f"{moment(day)[:10]}T23:30:00Z"
        keys = [key for key in self.world if key[0] == place]
        half = len(keys) // 2
        is_whole = self.random.random() < 0.6
        files = []
        for n, on_page in enumerate(
            (keys[:half], keys[half:]) if is_whole else (keys[:half],)
        ):
            items = [as_google(key, self.world[key], api=True) for key in on_page]
            files.append(
                dated(
                    self.shop.page(*items, name=f"p{n}", totalReviewCount=len(keys)),
                    time,
                )
            )
        exported = {key: self.world[key] for key in (keys if is_whole else keys[:half])}
        if half:
            self.give(exported, time, {place} if is_whole else (), *files, "--complete")

    def give_table(self, day: int) -> None:
        """Some rows of Facebook, which have ids, or the owner's guestbook, which has none and is complete."""
        source = self.random.choice(TABLES)
        time = f"{moment(day)[:10]}T23:40:00Z"
        has_ids = source == "facebook"
        keys = [
            key
            for key in self.world
            if key[0] == source and (not has_ids or self.random.random() < 0.8)
        ]
        exported = {key: self.world[key] for key in self.random.sample(keys, len(keys))}
        rows = [
            [
                f"f{key[1]}",
                review.author,
                str(review.stars),
                review.created[:10],
                review.text,
            ]
            for key, review in exported.items()
        ]
        header = "id author rating date text" if has_ids else "author rating date text"
        path = dated(
            self.shop.csv(*(row[not has_ids :] for row in rows), header=header), time
        )
        said = [] if has_ids or self.is_said else ["--complete"]
        if rows:
            self.is_said = self.is_said or not has_ids
            self.give(
                exported,
                time,
                () if has_ids else {source},
                path,
                "--source",
                source,
                *said,
            )

    def by_hand(self) -> None:
        """The owner erases, redacts, edits or loses something."""
        listed = self.rules.listed()
        key = self.random.choice(sorted(listed))
        id = self.ids[key[1]]
        (author, _, text, _) = listed[key]
        match self.random.choice(("forget", "forget author", "redact", "edit", "lose")):
            case "forget":
                self.rules.erase([key])
                self.give({}, "", (), "--forget", id)
            case "forget author":
                self.rules.erased_authors.add(author)
                self.give({}, "", (), "--forget-author", author.upper())
            case "redact" if "Gott" in text:
                self.rules.redacted[key] = "Gott"
                self.give({}, "", (), "--redact", id, "Gott")
            case "edit":
                self.shop.edit(id, text=f"mended {key[1]}")
                edited = self.rules.stored[key]
                edited.shown = replace(edited.shown, text=f"mended {key[1]}")
            case "lose":
                self.shop.lose()
                self.rules.lose()
                self.is_said = False
                self.ids.clear()
                if not {place for place, _ in self.rules.stored} & {*PLACES}:
                    self.known.clear()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_each_command_of_a_year_the_reviews_follow_the_rules(
    shop: Shop, seed: int
) -> None:
    year = Year(shop, seed)
    for week in range(36):  # of nine days
        day = 9 * week
        year.live(day)
        if week % 3 == 0:
            year.export(day)
        year.give_parts()
        if week % 4 == 1:
            year.give_pages(day)
        if week % 3 == 2:
            year.give_table(day)
        if week % 3 == 1 and year.rules.there:
            year.by_hand()
    assert len(year.rules.listed()) > 30 and year.rules.erased
