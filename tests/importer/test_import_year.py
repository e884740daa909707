"""A year of an owner: after each command the reviews are those of a plain definition of the rules.

Two branches on Google and two other sources; parts of exports in any order, pages of the API, tables, edits,
deletions, replies, changes by hand, erasures. The definition knows who wrote what and which files were given.
It knows no digest, no state file and no code of the importer.

Sections: World - Rules - Year
"""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from export_lab import FOLDER, PLACE, ZONE, Item, Shop, moment, page, takeout_files, written, zipped

from reviewslib.importer.command import EXIT_BAD_DATA, EXIT_SUCCESS

# ---- World: what customers and the owner have written, and how Google exports it ----

PLACES = (PLACE, "22")
Key = tuple[str, int]  # source or location, and number


@dataclass(frozen=True)
class Review:
    """A version of a review; times are days of the year, and a reply's is 0 without one."""

    author: str
    stars: int
    text: str
    created: int
    updated: int
    reply: str = ""
    replied: int = 0


def at(day: int) -> str:
    return moment(day, fraction=".5")


WORDS = {1: "ONE", 2: "TWO", 3: "THREE", 4: "FOUR", 5: "FIVE"}


def as_google(key: Key, review: Review, *, api: bool) -> Item:
    place, number = key
    native = f"AbF{number}" if api else f"ChZ{number}"
    known: Item = {
        "name": f"accounts/1/locations/{place}/reviews/{native}",
        "reviewer": {"displayName": review.author},
        "starRating": WORDS[review.stars],
        "comment": review.text,
        "createTime": at(review.created),
        "updateTime": at(review.updated),
    }
    if review.reply:
        known["reviewReply"] = {"comment": review.reply, "updateTime": at(review.replied)}
    return known | ({"reviewId": native} if api else {})


# ---- Rules: what is stored after the files that were given ----


@dataclass
class Export:
    """What was given of an export."""

    parts: set[int] = field(default_factory=set)
    reviews: dict[Key, Review] = field(default_factory=dict)
    heads: set[str] = field(default_factory=set)  # paths of data.json and reviews.json
    is_allowed: bool = False
    is_whole: bool | None = None  # said by pages of the API themselves

    def time(self, place: str) -> int:
        return max(
            (max(r.updated, r.replied) for key, r in self.reviews.items() if key[0] == place), default=-1
        )

    def denies(self, place: str, parted: set[str]) -> bool:
        """Whether a review of the place that is not in it was deleted."""
        if self.is_whole is not None:
            return self.is_whole
        has_head = sum(f"/location-{place}/" in path for path in self.heads) == 2
        is_without_gap = self.parts == set(range(1, len(self.parts) + 1))
        return has_head and is_without_gap and (len(self.parts) > 1 or self.is_allowed or place not in parted)


class Asks(Exception):
    """The brake asks."""


@dataclass
class Rules:
    """What is stored, and all that was ever given."""

    stored: dict[Key, Review] = field(default_factory=dict)
    by_hand: dict[Key, str] = field(default_factory=dict)  # texts
    seen: dict[Key, int] = field(default_factory=dict)  # time of the newest export that had a review
    erased: set[str] = field(default_factory=set)  # authors
    exports: dict[str, Export] = field(default_factory=dict)
    parted: set[str] = field(default_factory=set)

    def after(self, name: str, parts: dict[int, dict[Key, Review]], heads: set[str], **said: Any) -> "Rules":
        """What is stored after these parts of an export of Google's. Raises Asks."""
        new = Rules(dict(self.stored), dict(self.by_hand), dict(self.seen), self.erased, dict(self.exports))
        new.parted = self.parted | {key[0] for n, part in parts.items() if n > 1 for key in part}
        before = self.exports.get(name, Export())
        given = {key: review for part in parts.values() for key, review in part.items()}
        export = replace(before, parts=before.parts | parts.keys(), reviews=before.reviews | given, **said)
        export.heads = before.heads | heads
        new.exports[name] = replace(export, is_allowed=export.is_allowed or before.is_allowed)
        newest = {
            place: max(
                (e.time(place) for e in new.exports.values() if e.denies(place, new.parted)), default=-1
            )
            for place in PLACES
        }
        for key, review in sorted(given.items(), key=lambda pair: pair[1].updated):
            new._take(key, review, export.time(key[0]), newest[key[0]])
        for key in export.reviews:
            new.seen[key] = max(new.seen.get(key, -1), export.time(key[0]))
        speaks_for = [
            place
            for place in PLACES
            if export.denies(place, new.parted) and export.time(place) == newest[place] and self.knows(place)
        ]
        gone = [
            key
            for key, review in new.stored.items()
            if key[0] in speaks_for and key not in export.reviews and review.updated < newest[key[0]]
        ]
        total = sum(key[0] in speaks_for for key in self.stored)
        if ((len(gone) > 3 and len(gone) * 10 > total) or len(gone) * 3 > total) and not export.is_allowed:
            raise Asks
        for key in gone:
            del new.stored[key]
            new.by_hand.pop(key, None)
        return new

    def knows(self, place: str) -> bool:
        return any(place in {key[0] for key in export.reviews} for export in self.exports.values())

    def _take(self, key: Key, review: Review, time: int, newest: int) -> None:
        if review.author in self.erased or (key not in self.stored and time < newest):
            return
        if key not in self.stored:
            self.seen[key] = -1
        known = self.stored.get(key, replace(review, updated=-1, reply="", replied=0))
        if review.updated >= known.updated:
            known = replace(known, stars=review.stars, text=review.text, updated=review.updated)
        # A reply that an export lacks was taken back before the export was made.
        if time >= self.seen.get(key, -1) and (review.reply or known.replied < time):
            known = replace(known, reply=review.reply, replied=review.replied)
        self.stored[key] = known
        self.seen[key] = max(self.seen.get(key, -1), time)

    def take_table(self, rows: Iterable[tuple[Key, Review]]) -> None:
        """The rows of a table: the last one given wins, and none removes another."""
        self.stored |= {key: review for key, review in rows if review.author not in self.erased}

    def erase(self, author: str) -> None:
        self.erased = self.erased | {author}
        self.stored = {key: review for key, review in self.stored.items() if review.author != author}

    def listed(self) -> set[tuple[str, int, str, str]]:
        return {
            (review.author, review.stars, self.by_hand.get(key, review.text), review.reply)
            for key, review in self.stored.items()
        }


# ---- Year ----


class Year:
    """An owner's year; `random` decides what happens."""

    def __init__(self, shop: Shop, seed: int):
        self.shop, self.random, self.rules = shop, random.Random(seed), Rules()
        self.world: dict[Key, Review] = {}
        self.ids: dict[str, str] = {}  # by author
        self.number = 0
        self.places = set[str]()
        self.kept: list[tuple[str, dict[int, Path], dict[int, dict[Key, Review]], dict[int, set[str]]]] = []

    def live(self, day: int) -> None:
        """What customers and the owner write in a week."""
        for place in (*PLACES, "facebook", "yelp"):
            for _ in range(self.random.randint(0, 3)):
                self.number += 1
                name = f"Nr{self.number} Kári"
                self.world[place, self.number] = Review(name, 5, f"Gott {self.number}", day, day)
        for key, review in list(self.world.items()):
            chance = self.random.random()
            if chance < 0.03:
                stars = self.random.randint(1, 5)
                self.world[key] = replace(review, stars=stars, text=f"{review.text}!", updated=day + 1)
            elif chance < 0.05 and key[0] in PLACES:
                self.world[key] = replace(review, reply=f"Takk {day}", replied=day + 2)
            elif chance < 0.06:
                self.world[key] = replace(review, reply="", replied=0)
            elif chance < 0.075:
                del self.world[key]

    def of(self, *places: str) -> dict[Key, Review]:
        return {key: review for key, review in self.world.items() if key[0] in places}

    def check(self) -> None:
        found = self.shop.reviews if self.shop.data.exists() else {}
        replies = ((review.get("owner_reply") or {}).get("text", "") for review in found.values())
        shown = {
            (review["author"], review["rating"], review["text"], reply)
            for review, reply in zip(found.values(), replies, strict=True)
        }
        assert shown == self.rules.listed()
        assert len(found) == len(shown)
        for id, review in found.items():
            assert self.ids.setdefault(review["author"], id) == id

    # Commands of the owner

    def give(
        self, name: str, paths: list[Path], parts: dict[int, dict[Key, Review]], heads: set[str], **said: Any
    ) -> None:
        """Import files, and allow removals now and then where the brake asks."""
        self.places |= {key[0] for part in parts.values() for key in part}
        where = [word for place in sorted(self.places) for word in ("--location", place)]
        for allowed in ([], ["--allow-removals"]):
            try:
                after = self.rules.after(name, parts, heads, **said, is_allowed=bool(allowed))
            except Asks:
                after = None
            status = self.shop.run(*paths, "--zone", ZONE, "--name", "B", *where, *allowed)
            assert status == (EXIT_SUCCESS if after else EXIT_BAD_DATA)
            self.rules = after or self.rules
            self.check()
            if after or self.random.random() < 0.5:
                return

    def export(self, day: int) -> None:
        """A Takeout, in parts that are given now, later, again or never."""
        name, count = f"takeout-2025{day:04}T101112Z", self.random.choice((1, 1, 2, 3))
        newest_first = sorted(self.of(*PLACES).items(), key=lambda pair: -pair[1].updated)
        files: dict[str, bytes] = {}
        for place in PLACES:
            found = [as_google(key, review, api=False) for key, review in newest_first if key[0] == place]
            files |= takeout_files(found, place=place)
        cut = list(files.items())
        starts = [n * len(cut) // count for n in range(count)] + [len(cut)]
        by_name = {as_google(key, review, api=False)["name"]: (key, review) for key, review in newest_first}
        paths, parts, heads = {}, {}, {}
        for n in range(count):
            inside = dict(cut[starts[n] : starts[n + 1]])
            paths[n + 1] = zipped(self.shop.root / f"{name}-{n + 1:03}.zip", inside)
            items = [each for data in inside.values() for each in json.loads(data).get("reviews", [])]
            parts[n + 1] = dict(by_name[each["name"]] for each in items)
            heads[n + 1] = {path for path in inside if path.endswith(("/data.json", "/reviews.json"))}
        assert all(path.startswith(FOLDER) for path in files)
        self.kept.append((name, paths, parts, heads))
        self.kept = self.kept[-3:]

    def give_parts(self) -> None:
        """Some parts of one of the newest exports, in one command."""
        name, paths, parts, heads = self.random.choice(self.kept)
        chosen = self.random.sample(sorted(paths), self.random.randint(1, len(paths)))
        if not any(parts[n] for n in chosen):
            return  # refused: there is no review in it
        inside = set[str]().union(*(heads[n] for n in chosen))
        self.give(name, [paths[n] for n in chosen], {n: parts[n] for n in chosen}, inside)

    def give_pages(self, day: int) -> None:
        """Pages of the API of one place, complete or not."""
        found = self.of(self.random.choice(PLACES))
        items = [as_google(key, review, api=True) for key, review in found.items()]
        if len(items) < 2:
            return
        stars = [review.stars for review in found.values()]
        totals = {"totalReviewCount": len(stars), "averageRating": round(sum(stars) / len(stars), 1)}
        half = len(items) // 2
        first = page(items[:half], **totals, nextPageToken="t")
        paths = [
            written(self.shop.root / "p1", first),
            written(self.shop.root / "p2", page(items[half:], **totals)),
        ]
        is_whole = self.random.random() < 0.6
        given = dict(list(found.items())[: None if is_whole else half])
        self.give(f"pages {day}", paths if is_whole else paths[:1], {1: given}, set(), is_whole=is_whole)

    def give_table(self) -> None:
        """Facebook's rows have ids, Yelp's have none."""
        for source, ids in (("facebook", ["id"]), ("yelp", [])):
            rows = [(key, review) for key, review in self.of(source).items() if self.random.random() < 0.8]
            header = " ".join([*ids, "author rating date text"])
            cells = [
                [f"f{key[1]}" for _ in ids] + [each.author, str(each.stars), at(each.created)[:10], each.text]
                for key, each in self.random.sample(rows, len(rows))
            ]
            if rows:
                self.rules.take_table((key, replace(each, reply="", replied=0)) for key, each in rows)
                file = self.shop.csv(*cells, header=header)
                assert self.shop.run(file, "--source", source, "--name", "B") == EXIT_SUCCESS
                self.check()

    def erase(self) -> None:
        if not self.rules.stored:
            return
        key, review = self.random.choice(sorted(self.rules.stored.items()))
        source = "google" if key[0] in PLACES else key[0]
        by_author = self.random.random() < 0.5
        flags = ["--forget-author", review.author.upper(), "--source", source]
        assert self.shop.run(*(flags if by_author else ["--forget", self.ids[review.author]])) == EXIT_SUCCESS
        self.rules.erase(review.author)
        self.check()

    def edit(self) -> None:
        if own := [pair for pair in sorted(self.rules.stored.items()) if pair[0][0] in PLACES]:
            key, review = self.random.choice(own)
            self.rules.by_hand[key] = f"mended {review.author}"
            self.shop.edit(self.ids[review.author], text=f"mended {review.author}")
            self.check()


@pytest.mark.parametrize("seed", range(3))
def test_after_each_command_of_a_year_the_reviews_are_those_of_the_plain_rules(shop: Shop, seed: int) -> None:
    year = Year(shop, seed)
    for week in range(52):
        day = 6 * week
        year.live(day)
        if week % 3 == 0:
            year.export(day)
        year.give_parts()
        if week % 4 == 1:
            year.give_pages(day)
        if week % 5 == 2:
            year.give_table()
        if week % 7 == 3:
            year.erase()
        if week % 9 == 4:
            year.edit()
    assert len(year.rules.stored) > 50 and len(year.rules.erased) > 3
