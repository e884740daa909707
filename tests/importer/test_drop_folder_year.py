"""A year of the drop folder: after a first import by hand the unit's own command needs no flag.

The folder has two of three locations on Google, tables of three tools, one of them explained by hand, and
stray files. The world below says which reviews are right; it uses nothing of the importer.
"""

import random
import re

import pytest
from export_lab import PLACE, ZONE, Shop, item, moment, stamped, takeout_files, written, zipped
from services import ROOT

from reviewslib.importer import command

UNIT = (ROOT / "deploy/reviewsd-import.service").read_text(encoding="utf-8")
PLACES = (PLACE, "22", "33")  # the last one is another business
STRAY = {
    "desktop.ini": b"[.ShellClassInfo]\r\nIconResource=x,1\r\n",
    "takeout-20260101T000000Z-002.zip.part": b"PK\x03\x04 cut",
    "bank.csv": b"Day,Payee,Amount,Note\n2025-01-01,Ann,5,x\n",
    "letter.docx": b"PK\x05\x06" + 18 * b"\0",
    "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "cut.json": b'{"reviews": [',
    "faulty.csv": b"author,rating,date,source\n" + 5 * b"Ann,great,2025-01-01,fb\n",
}
HOUSE = "Guest;Mark out of 10;Visit;Words"
TABLES = {
    "trustpilot": "Review Id,Review Username,Review Stars,Review Created (UTC),Review Title,Review Content",
    "loox": "id,nickname,rating,date,review,status",
    "house": HOUSE,
}
Key = tuple[str, int]  # location or tool, and number


class Year:
    def __init__(self, shop: Shop):
        self.shop, self.drop, self.random = shop, shop.root / "drop", random.Random(5)
        self.drop.mkdir()
        self.world: dict[Key, tuple[int, str, int]] = {}  # stars, text, day
        self.right: dict[Key, tuple[int, str]] = {}

    def live(self, day: int) -> None:
        for place in (*PLACES, *TABLES):
            for _ in range(self.random.randint(1, 2)):
                number = len(self.world)
                self.world[place, number] = self.random.randint(1, 5), f"Words {number}", day
        for key, (stars, text, since) in list(self.world.items()):
            if since < day and key[0] in (*PLACES, "trustpilot") and self.random.random() < 0.01:
                self.world[key] = 6 - stars, f"{text}!", since

    def export(self, week: int) -> None:
        """A Takeout every third week, in which a review may have been removed; the tables every week."""
        if week % 3 == 0:
            if mine := [key for key in self.world if key[0] in PLACES[:2] and week > 9]:
                del self.world[self.random.choice(mine)]
            pages: dict[str, bytes] = {}
            for place in PLACES:
                items = [self.as_google(key, week) for key in self.world if key[0] == place]
                pages |= takeout_files(items, place=place, title=f"Shop {place}")
            zipped(self.drop / stamped(6 * week), pages)
            self.right = {key: said for key, said in self.right.items() if key[0] in TABLES}
            self.right |= {key: said[:2] for key, said in self.world.items() if key[0] in PLACES[:2]}
        for tool, header in TABLES.items():
            rows = [self.as_row(key) for key in self.world if key[0] == tool]
            written(self.drop / f"{tool}.csv", "\n".join([header, *rows, ""]))
            self.right |= {key: said[:2] for key, said in self.world.items() if key[0] == tool}

    def as_google(self, key: Key, week: int) -> dict[str, object]:
        (place, number), (stars, text, day) = key, self.world[key]
        words = ("ONE", "TWO", "THREE", "FOUR", "FIVE")
        edited = moment(6 * week + 1) if text.endswith("!") else moment(day)
        changes = {"starRating": words[stars - 1], "createTime": moment(day), "updateTime": edited}
        return item(number, place=place, comment=text, **changes)

    def as_row(self, key: Key) -> str:
        (tool, number), (stars, text, day) = key, self.world[key]
        date = moment(day)[:10]
        match tool:
            case "trustpilot":
                return f"t{number},Ósk Nr{number},{stars},{date} 23:30:00,,{text}"
            case "loox":
                return f"{number},Ósk Nr{number},{stars},{date},{text},Active"
        year, month, of_month = date.split("-")
        return f"Ósk Nr{number};{2 * stars};{int(month)}/{int(of_month)}/{year[2:]} 9:30 PM;{text}"

    def check(self) -> None:
        stored = {
            (review["author"], review["rating"], review["text"], review["source"])
            for review in self.shop.reviews.values()
        }
        source = dict.fromkeys(PLACES, "google") | {"house": "guestbook"}
        right = {
            (f"Ósk Nr{number}", *said, source.get(place, place))
            for (place, number), said in self.right.items()
        }
        assert stored == right
        assert len(self.shop.reviews) == len(right)


@pytest.mark.slow
def test_the_units_own_command_needs_no_flag_after_the_first_time(shop: Shop) -> None:
    year = Year(shop)
    match = re.search(r"reviewsd-import (--drop \S+ --data \S+) ", UNIT)
    assert match
    line = match[1].replace("/srv/reviews-drop", str(year.drop)).replace("/srv/reviews", str(shop.data))
    year.live(0)
    year.export(0)
    where = ["--location", PLACE, "--location", "22"]
    shop.take(next(year.drop.glob("*.zip")), "--name", "B", *where)
    explained = "author=guest,rating=mark out of 10,date=visit,text=words,reply=-,status=-"
    said = ["--map", explained, "--source", "guestbook", "--scale", "10", "--date-order", "mdy"]
    shop.take(year.drop / "house.csv", *said)
    for week in range(1, 53):
        year.live(6 * week)
        year.export(week)
        for name in year.random.sample(sorted(STRAY), 2):
            written(year.drop / name, STRAY[name])
        (year.drop / "holiday").mkdir(exist_ok=True)
        for old in sorted(year.drop.glob("takeout*.zip"))[: -year.random.randint(1, 3)]:
            old.unlink()  # the owner tidies up
        assert command.main(line.split()) == command.EXIT_SUCCESS
        year.check()
    before = shop.files()
    assert command.main(line.split()) == command.EXIT_SUCCESS
    assert shop.files() == before
    assert len(year.right) > 300 and ZONE in before["import-state.json"].decode()
