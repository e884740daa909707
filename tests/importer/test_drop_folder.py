"""The drop folder: after the first time the unit's own command needs no flag, whatever lies there."""

import re
from collections import Counter

from export_lab import PLACE, Shop, item, takeout_files, written, zipped
from services import ROOT

from reviewslib.importer import command

UNIT = (ROOT / "deploy/reviewsd-import.service").read_text(encoding="utf-8")
STRAY = {
    "bank.csv": b"Day,Payee,Amount,Note\n2025-01-01,Ann,5,x\n",
    "letter.docx": b"PK\x05\x06" + 18 * b"\0",
    "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "cut.json": b'{"reviews": [',
    "faulty.csv": b"author,rating,date,source\n" + 5 * b"Ann,great,2025-01-01,fb\n",
}
TABLES = {
    "trustpilot": (
        "Review Id,Review Username,Review Stars,Review Created (UTC),Review Title,Review Content",
        "t{0},Ósk Nr{0},4,2025-01-02 23:30:00,,Words {0}",
    ),
    "loox": ("id,nickname,rating,date,review,status", "{0},Ósk Nr{0},5,2025-01-03,Words {0},Active"),
    "house": ("Guest;Mark out of 10;Visit;Words", "Ósk Nr{0};8;1/25/25 9:30 PM;Words {0}"),
}


def test_the_units_own_command_needs_no_flag_after_the_first_time(shop: Shop) -> None:
    """Two of three locations, tables of three tools, one of them explained by hand, and stray files."""
    drop = shop.root / "drop"
    (drop / "holiday").mkdir(parents=True)

    def bring(week: int) -> None:
        """From each location a review is gone each week, and one is new; tables grow."""
        pages: dict[str, bytes] = {}
        for n, place in enumerate((PLACE, "22", "33")):  # the last one is another business
            items = [item(20 * n + each, place=place) for each in range(week, week + 12)]
            pages |= takeout_files(items, place=place, title=f"Shop {place}")
        zipped(drop / f"takeout-2025000{week}T101112Z-001.zip", pages)
        for tool, (header, row) in TABLES.items():
            written(drop / f"{tool}.csv", "\n".join([header, *map(row.format, range(week + 1)), ""]))

    bring(0)
    where = ["--location", PLACE, "--location", "22"]
    shop.take(drop / "takeout-20250000T101112Z-001.zip", "--name", "B", *where)
    explained = "author=guest,rating=mark out of 10,date=visit,text=words"
    said = ["--map", explained, "--source", "guestbook", "--scale", "10", "--date-order", "mdy"]
    shop.take(drop / "house.csv", *said)
    found = re.search(r"reviewsd-import (--drop \S+ --data \S+) ", UNIT)
    assert found
    line = found[1].replace("/srv/reviews-drop", str(drop)).replace("/srv/reviews", str(shop.data)).split()
    for name, content in STRAY.items():
        written(drop / name, content)
    for week in range(1, 4):
        bring(week)
        assert command.main(line) == command.EXIT_SUCCESS
        sources = Counter(each["source"] for each in shop.reviews.values())
        assert sources == {"google": 24, **dict.fromkeys(("trustpilot", "loox", "guestbook"), week + 1)}
    before = shop.files()
    assert command.main(line) == command.EXIT_SUCCESS
    assert shop.files() == before
