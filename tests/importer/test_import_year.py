"""A year of an owner: after each command the reviews are those of a plain definition of the ten rules.

Two locations on Google, a tool's table with ids and a table that the owner keeps. Parts of exports in any
order, pages of the API, edits, removals, returns, renames, replies, erasures, redactions, lost state files,
kills. The definition knows who wrote what and which files were given. It knows no digest, no file of the data
directory and no code of the importer.

Sections: World - Rules - Year
"""

import json
import random
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from export_lab import PLACE, ZONE, Item, Shop, dated, moment, page, takeout_files, written, zipped

from reviewslib.importer.command import EXIT_SUCCESS

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


# ---- Rules: which reviews are there after the files that were given ----


@dataclass
class Known:
    """What is known of a review."""

    shown: Review
    seen: str  # the newest T that had it
    text_of: tuple[str, str]  # when the text was updated, and the T that said so
    location: str  # empty after a loss, until an export has it


@dataclass
class Rules:
    known: dict[Key, Known] = field(default_factory=dict)
    spoken: dict[str, str] = field(default_factory=dict)  # the newest T by location or source
    held: dict[str, str] = field(default_factory=dict)
    erased: set[Key] = field(default_factory=set)
    erased_authors: set[str] = field(default_factory=set)
    redacted: dict[Key, str] = field(default_factory=dict)

    def take(self, given: Mapping[Key, Review], time: str, speaks: Iterable[str], *, allowed: bool) -> None:
        """An export of this T, or a part of it, that speaks for these."""
        for key, new in given.items():
            updated = new.updated if key[0] in PLACES else ""
            known = self.known.get(key)
            if not known or not self.is_there(key):
                seen = max(known.seen, time) if known else time
                self.known[key] = Known(new, seen, (updated, time), key[0])
                continue
            if time >= known.seen:
                known.location = key[0]
                known.shown = replace(known.shown, author=new.author, reply=new.reply, replied=new.replied)
            if (updated, time) >= known.text_of:
                known.text_of = updated, time
                known.shown = replace(known.shown, stars=new.stars, text=new.text)
            known.seen = max(known.seen, time)
        self.erase(key for key, known in self.known.items() if known.shown.author in self.erased_authors)
        again = {speaker for speaker, held in self.held.items() if allowed or held == time}
        for speaker in sorted(again & ({key[0] for key in given} | (self.held.keys() if allowed else set()))):
            self.speak(speaker, self.held[speaker], allowed=allowed)
        for speaker in sorted(speaks):
            self.speak(speaker, time, allowed=allowed)
        if self.spoken.keys() >= {*PLACES}:  # for those whose location nobody knows
            self.speak("google", min(self.spoken[place] for place in PLACES), allowed=allowed)

    def speak(self, speaker: str, time: str, *, allowed: bool) -> None:
        """Whatever no export of this T or later has had is gone, unless the brake holds it back."""
        if time <= self.spoken.get(speaker, ""):
            return
        there = [key for key in self.known if self.is_there(key) and self.speaker(key) == speaker]
        gone = [key for key in there if self.known[key].seen < time]
        if not allowed and ((len(gone) > 3 and len(gone) * 10 > len(there)) or 0 < len(gone) == len(there)):
            self.held[speaker] = max(time, self.held.get(speaker, ""))
            return
        self.spoken[speaker] = time
        if self.held.get(speaker, "") <= time:
            self.held.pop(speaker, None)

    def speaker(self, key: Key) -> str:
        return self.known[key].location or "google"

    def is_there(self, key: Key) -> bool:
        is_seen = self.known[key].seen >= self.spoken.get(self.speaker(key), "")
        return is_seen and key not in self.erased

    def erase(self, keys: Iterable[Key]) -> None:
        self.erased |= {*keys}

    def lose(self) -> None:
        """The state is lost: what is there was there when it was written, and nothing has spoken."""
        self.known = {key: known for key, known in self.known.items() if self.is_there(key)}
        for key, known in self.known.items():
            written = max(known.shown.created, known.shown.replied)
            seen = f"{written[:10]}T23:59:59Z" if key[0] in TABLES else written
            self.known[key] = Known(known.shown, seen, ("", seen), "" if key[0] in PLACES else key[0])
        self.spoken, self.held = {}, {}

    def listed(self) -> dict[Key, tuple[str, int, str, str]]:
        return {
            key: (
                known.shown.author,
                known.shown.stars,
                known.shown.text.replace(self.redacted.get(key, "\0"), "[…]"),
                known.shown.reply,
            )
            for key, known in self.known.items()
            if self.is_there(key)
        }


# ---- Year ----


@dataclass
class Takeout:
    """An export of Google's in parts."""

    time: str
    paths: list[Path]
    reviews: list[dict[Key, Review]]  # by part
    first_pages: list[set[str]]  # locations by part


class Year:
    """An owner's year; `random` decides what happens."""

    def __init__(self, shop: Shop, seed: int):
        self.shop, self.random, self.rules = shop, random.Random(seed), Rules()
        self.world: dict[Key, Review] = {}
        self.moderated: dict[Key, Review] = {}  # gone for some weeks
        self.ids: dict[int, str] = {}
        self.number, self.is_said = 0, False
        self.where = ["--zone", ZONE, *(word for place in PLACES for word in ("--location", place))]
        self.takeouts: list[Takeout] = []

    def live(self, day: int) -> None:
        """What customers, Google and the owner do in a week."""
        now = moment(day, fraction="")
        for place in (*PLACES, *TABLES):
            for _ in range(self.random.randint(0, 3)):
                self.number += 1
                created = moment(day, self.number % 60, "")
                name = f"Nr{self.number} Kári"
                self.world[place, self.number] = Review(name, 5, f"Gott {self.number}", created, created)
        for key, review in list(self.world.items()):
            chance = self.random.random()
            if chance < 0.03:
                text, updated = f"{review.text}!", max(now, review.updated)
                stars = self.random.randint(1, 5)
                self.world[key] = replace(review, stars=stars, text=text, updated=updated)
            elif chance < 0.05 and key[0] in PLACES:
                self.world[key] = replace(review, reply=f"Takk {day}", replied=now)
            elif chance < 0.06 and key[0] in PLACES:
                self.world[key] = replace(review, reply="", replied="")
            elif chance < 0.07 and key[0] != "guestbook":
                self.world[key] = replace(review, author=f"Nr{key[1]} of {day}")
            elif chance < 0.09:
                self.moderated[key] = self.world.pop(key)
        for key in [key for key in self.moderated if self.random.random() < 0.1]:
            self.world[key] = self.moderated.pop(key)

    def check(self) -> None:
        reviews = self.shop.reviews if self.shop.data.exists() else {}
        shown = {}
        for id, review in reviews.items():
            number = int(re.findall("[0-9]+", review["text"])[0])
            reply = (review.get("owner_reply") or {}).get("text", "")
            shown[number] = (review["author"], review["rating"], review["text"], reply)
            assert self.ids.setdefault(number, id) == id
        assert len(shown) == len(reviews)
        assert shown == {key[1]: said for key, said in self.rules.listed().items()}

    def command(self, *words: object) -> None:
        assert self.shop.run(*words, *self.where) == EXIT_SUCCESS

    def give(self, *words: object) -> None:
        """An import, sometimes after one that was killed before it had replaced reviews.json."""
        if self.random.random() < 0.1 and self.shop.data.exists():
            with suppress(pytest.fail.Exception):  # it had nothing to replace
                self.shop.run_until_killed(*words, *self.where)
        self.command(*words, "--name", "B")

    def export(self, day: int) -> None:
        """A Takeout, in parts that are given now, later, again or never."""
        time, count = f"{moment(day)[:10]}T23:00:00Z", self.random.choice((1, 1, 2, 3))
        name = f"takeout-{re.sub('[-:]', '', time)}"
        newest_first = sorted(self.world.items(), key=lambda pair: pair[1].updated, reverse=True)
        files: dict[str, bytes] = {}
        for place in PLACES:
            items = [as_google(key, review) for key, review in newest_first if key[0] == place]
            files |= takeout_files(items, place=place)
        pages = list(files.items())
        cuts = [n * len(pages) // count for n in range(count)] + [len(pages)]
        export = Takeout(time, [], [], [])
        for n in range(count):
            inside = dict(pages[cuts[n] : cuts[n + 1]])
            export.paths.append(zipped(self.shop.root / f"{name}-{n + 1:03}.zip", inside))
            items = [each["name"] for data in inside.values() for each in json.loads(data).get("reviews", [])]
            export.reviews.append(
                {key: each for key, each in newest_first if as_google(key, each)["name"] in items}
            )
            firsts = {place for place in PLACES for path in inside if path.endswith(f"{place}/reviews.json")}
            export.first_pages.append(firsts)
        self.takeouts = [*self.takeouts[-2:], export]

    def give_parts(self) -> None:
        """Some parts of one of the newest exports, in one command."""
        export = self.random.choice(self.takeouts)
        chosen = self.random.sample(range(len(export.paths)), self.random.randint(1, len(export.paths)))
        given = {key: review for n in chosen for key, review in export.reviews[n].items()}
        allowed = self.random.random() < 0.1
        self.give(*(export.paths[n] for n in chosen), *["--allow-removals"] * allowed)
        speaks = set[str]().union(*(export.first_pages[n] for n in chosen))
        self.rules.take(given, export.time, speaks, allowed=allowed)
        self.check()

    def give_pages(self, day: int) -> None:
        """Pages of the API of one place, complete or not."""
        place, time = self.random.choice(PLACES), f"{moment(day)[:10]}T23:30:00Z"
        given = {key: review for key, review in self.world.items() if key[0] == place}
        items = [as_google(key, review, api=True) for key, review in given.items()]
        half, is_whole = len(items) // 2, self.random.random() < 0.6
        paths = [written(self.shop.root / "p1", page(items[:half], totalReviewCount=len(items)))]
        paths += [written(self.shop.root / "p2", page(items[half:], totalReviewCount=len(items)))]
        if half:
            given = given if is_whole else dict(list(given.items())[:half])
            files = [dated(path, time) for path in (paths if is_whole else paths[:1])]
            self.give(*files, "--complete")
            self.rules.take(given, time, {place} if is_whole else (), allowed=False)
            self.check()

    def give_table(self, day: int) -> None:
        """Some rows of Facebook, which have ids, or the owner's guestbook, which has none and is complete."""
        source = self.random.choice(TABLES)
        is_part = source == "facebook"
        given = {key: each for key, each in self.world.items() if key[0] == source}
        given = {key: each for key, each in given.items() if not is_part or self.random.random() < 0.8}
        rows = [
            [f"f{key[1]}"] * is_part + [each.author, str(each.stars), each.created[:10], each.text]
            for key, each in self.random.sample(list(given.items()), len(given))
        ]
        time = f"{moment(day)[:10]}T23:40:00Z"
        if rows:
            path = self.shop.csv(*rows, header="id author rating date text"[0 if is_part else 3 :])
            said = [] if is_part or self.is_said else ["--complete"]
            self.is_said = self.is_said or not is_part
            self.give(dated(path, time), "--source", source, *said)
            self.rules.take(given, time, () if is_part else {source}, allowed=False)
            self.check()

    def by_hand(self) -> None:
        """The owner erases, redacts, edits or loses something."""
        listed = self.rules.listed()
        if not listed:
            return
        key = self.random.choice(sorted(listed))
        id, (author, _, text, _) = self.ids[key[1]], listed[key]
        match self.random.choice(("forget", "forget author", "redact", "edit", "lose")):
            case "forget":
                self.command("--forget", id)
                self.rules.erase([key])
            case "forget author":
                self.command("--forget-author", author.upper())
                self.rules.erased_authors.add(author)
                self.rules.erase(
                    each for each in self.rules.known if self.rules.known[each].shown.author == author
                )
            case "redact" if "Gott" in text:
                self.command("--redact", id, "Gott")
                self.rules.redacted[key] = "Gott"
            case "edit":
                self.shop.edit(id, text=f"mended {key[1]}")
                known = self.rules.known[key]
                known.shown = replace(known.shown, text=f"mended {key[1]}")
            case "lose":
                (self.shop.data / "import-state.json").unlink()
                self.rules.lose()
                self.is_said = False
                self.ids.clear()
        self.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_each_command_of_a_year_the_reviews_follow_the_rules(shop: Shop, seed: int) -> None:
    year = Year(shop, seed)
    for week in range(52):
        day = 6 * week
        year.live(day)
        if week % 3 == 0:
            year.export(day)
        year.give_parts()
        if week % 4 == 1:
            year.give_pages(day)
        if week % 3 == 2:
            year.give_table(day)
        if week % 5 == 3:
            year.by_hand()
    assert len(year.rules.listed()) > 50 and year.rules.erased
