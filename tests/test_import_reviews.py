"""An owner's export becomes what is served; importing again changes only what has changed."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest
from export_lab import (
    PLACE,
    ZONE,
    Shop,
    api_item,
    item,
    moment,
    page,
    table,
    takeout,
    takeout_files,
    written,
    zipped,
)
from hub_lab import FORM, JSON_FEED, open_lab
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from services import SAMPLE, daemon, fetch

import import_reviews
from import_reviews import EXIT_BAD_DATA, EXIT_FAILURE, EXIT_SUCCESS, EXIT_USAGE
from merging import digest


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def takeout_id(number: int) -> str:
    return f"google-ChZDSUhNMG9n{number:04}EAE"


# ---- Google ----


# What one real export or another has, by number: the changes of the item, and what is served.
REAL: dict[int, tuple[dict[str, object], dict[str, object]]] = {
    1: ({"comment": None, "starRating": "TWO"}, {"rating": 2, "text": None}),
    2: (
        {"comment": "(Translated by Google) Nice\n\n(Original)\nFínt", "policyViolation": {"a": [1]}},
        {"text": "Fínt"},
    ),
    3: (
        {
            "comment": "Muy bien\n\n(Translated by Google)\nVery good",
            "updateTime": moment(40),
            "reviewReply": {
                "comment": "¡Gracias!\n\n(Translated by Google)\nThanks!",
                "updateTime": moment(5),
            },
        },
        {"text": "Muy bien", "owner_reply": {"text": "¡Gracias!", "date": "2025-01-06T12:15:00-08:00"}},
    ),
    4: (
        {"reviewer": {"displayName": "أمل 🧡"}, "comment": "رائع 😀"},
        {"author": "أمل 🧡", "text": "رائع 😀"},
    ),
    5: ({"reviewer": {"displayName": "Hidden", "isAnonymous": True}}, {"author": "A Google user"}),
    6: ({"createTime": "2025-01-07T20:15:00Z", "updateTime": None}, {"date": "2025-01-07T12:15:00-08:00"}),
}


def test_a_takeout_becomes_a_data_set_and_a_second_import_changes_no_byte(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [item(number, **REAL.get(number, ({}, {}))[0]) for number in range(63)]
    both = takeout_files(items) | takeout_files(
        [i | {"name": i["name"].replace("/1/", "/2/")} for i in items], "2"
    )
    archive = zipped(shop.root / "takeout-20261101T101112Z-001.zip", both)
    shop.take(archive)
    assert "new: 63\n" in capsys.readouterr().out
    assert shop.document["business"] == {"name": "Bó's Bakarí"}
    for number, (_, served) in REAL.items():
        plain = {
            "id": takeout_id(number),
            "author": f"Ósk Nr{number}",
            "rating": 5,
            "date": f"2025-01-{number + 1:02}T12:15:00-08:00",
            "text": f"Kom aftur, í {number}. skipti",
            "source": "google",
            "owner_reply": None,
        }
        assert shop.reviews[takeout_id(number)] == plain | served
    before = shop.files()
    assert shop.run(archive) == EXIT_SUCCESS
    assert shop.files() == before
    assert sorted(before) == ["import-state.json", "reviews.json"]


COMMENTS = {
    "(Translated by Google) Nice\n\n(Original)\nFint": "Fint",
    "Fint\n\n(Translated by Google)\nNice": "Fint",
    "Muito bom\n\n(Traduzido pelo Google)\nVery good": "Muito bom",
    "(Translated by Google) without an original": "(Translated by Google) without an original",
    "I read (Translated by Google) everywhere": "I read (Translated by Google) everywhere",
    "a\r\nb\x00\u00a0c\ud800 ": "a\nb c\ufffd",
    "e\u0301": "é",
    "🧡 مرحبا": "🧡 مرحبا",
    "": None,
    None: None,
}


@pytest.mark.parametrize("comment", COMMENTS)
def test_comments_and_replies_are_kept_as_they_were_written(shop: Shop, comment: str | None) -> None:
    reply = {"comment": comment, "updateTime": moment(3)}
    shop.take(written(shop.root / "a", page([item(1, comment=comment)])), "--name", "B")
    assert shop.only()["text"] == COMMENTS[comment]
    shop.take(written(shop.root / "b", page([item(1, comment="else", reviewReply=reply)])))
    expected = COMMENTS[comment] and {"text": COMMENTS[comment], "date": "2025-01-04T12:15:00-08:00"}
    assert shop.only()["owner_reply"] == expected


def test_a_newer_version_replaces_an_older_one_in_either_order(shop: Shop) -> None:
    reply = {"comment": "Takk", "updateTime": moment(5)}
    old = takeout(shop.root / "old.zip", [item(n) for n in range(9)])
    edited = item(1, starRating="TWO", comment="worse", updateTime=moment(40), reviewReply=reply)
    renamed = item(0, reviewer={"displayName": "Ósk Önnur"})  # for which Google has no time
    new = takeout(shop.root / "new.zip", [renamed, edited, *(item(n) for n in range(3, 10))])
    ends = []
    for number, files in enumerate([[old, new], [new, old]]):
        one, by_one = Shop(shop.root / f"{number}"), Shop(shop.root / f"{number}a")
        for each in (one, by_one):
            each.root.mkdir()
        one.take(*files)
        for file in files:
            by_one.take(file)
        ends += [one.files()["reviews.json"], by_one.files()["reviews.json"]]
    assert all(end == ends[0] for end in ends)
    shop.take(old)
    shop.take(new, old)
    assert takeout_id(2) not in shop.reviews
    changed = shop.reviews[takeout_id(1)]
    assert (changed["rating"], changed["text"], changed["date"][:10]) == (2, "worse", "2025-01-02")
    assert changed["owner_reply"]["text"] == "Takk"


def test_of_two_versions_of_one_time_the_same_is_taken_in_either_order(shop: Shop) -> None:
    files = [written(shop.root / text, page([item(1, comment=text)])) for text in ("a", "b")]
    shop.take(*files, "--name", "B")
    before = shop.files()
    shop.take(*reversed(files))
    assert shop.files() == before


def test_a_review_has_one_id_in_takeout_and_in_the_api(shop: Shop) -> None:
    archive = takeout(shop.root / "t.zip", [item(n) for n in range(5)])
    pages = written(shop.root / "p.json", page([api_item(n) for n in range(3, 8)]))
    ids = {takeout_id(n) for n in range(5)} | {f"google-AbFvOq{n:04}" for n in range(5, 8)}
    shop.take(pages, archive)
    assert set(shop.reviews) == ids
    other = Shop(shop.root / "other")
    other.root.mkdir()
    other.take(archive)
    other.take(pages, "--short-names")
    assert set(other.reviews) == ids
    assert other.reviews[takeout_id(3)]["author"] == "Ósk N."
    api_first = Shop(shop.root / "api")
    api_first.root.mkdir()
    api_first.take(pages, "--name", "B")
    api_first.take(archive)
    assert set(api_first.reviews) == {takeout_id(n) for n in range(3)} | {
        f"google-AbFvOq{n:04}" for n in range(3, 8)
    }


def test_ids_that_cannot_be_joined_stop_the_import(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.take(takeout(shop.root / "t.zip", [item(n) for n in range(5)]))
    later = [api_item(n, createTime=moment(n, 9)) for n in range(3, 8)]
    before = shop.files()
    assert shop.run(written(shop.root / "p.json", page(later))) == EXIT_BAD_DATA
    assert "2 of 5 new reviews have author and day of a stored one" in capsys.readouterr().err
    assert shop.files() == before


def test_a_part_removes_nothing_and_a_whole_has_a_brake(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [item(number) for number in range(20)]
    shop.take(takeout(shop.root / "a.zip", items))
    left = items[4:]
    shop.take(written(shop.root / "page.json", page(left)))
    shop.take(takeout(shop.root / "t-002.zip", left))
    assert len(shop.reviews) == 20
    more = [item(number) for number in range(20, 40)]  # of which nothing is stored yet
    assert shop.run(takeout(shop.root / "b.zip", left + more)) == EXIT_BAD_DATA
    assert "4 of 20 reviews" in capsys.readouterr().err
    assert shop.run(takeout(shop.root / "b.zip", left)) == EXIT_BAD_DATA
    assert "--allow-removals" in capsys.readouterr().err
    shop.take(takeout(shop.root / "c.zip", items[3:]))
    assert len(shop.reviews) == 17
    shop.take(shop.root / "b.zip", "--allow-removals")
    assert len(shop.reviews) == 16
    shop.take(shop.root / "a.zip")  # of the same time: they have returned
    assert len(shop.reviews) == 20


def test_a_missing_reply_clears_only_one_that_is_older_than_the_export(shop: Shop) -> None:
    reply = {"comment": "Takk", "updateTime": moment(30)}
    shop.take(written(shop.root / "a", page([item(1, reviewReply=reply)])), "--name", "B")
    shop.take(written(shop.root / "b", page([item(1), item(2)])))
    assert shop.reviews[takeout_id(1)]["owner_reply"]
    shop.take(written(shop.root / "c", page([item(1), item(50)])))
    assert shop.reviews[takeout_id(1)]["owner_reply"] is None
    shop.take(shop.root / "a")
    assert shop.reviews[takeout_id(1)]["owner_reply"] is None


def test_what_was_changed_by_hand_stays(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.take(written(shop.root / "a", page([item(1), item(2)])), "--name", "B")
    shop.edit(takeout_id(1), text="mended", mine=[1], mentioned_services=["cake"])
    shop.take(
        written(shop.root / "b", page([item(1, comment="new", starRating="ONE", updateTime=moment(9))]))
    )
    review = shop.reviews[takeout_id(1)]
    assert (review["text"], review["rating"]) == ("mended", 1)
    assert (review["mine"], review["mentioned_services"]) == ([1], ["cake"])
    assert f"changed by hand and kept: text of {takeout_id(1)}" in capsys.readouterr().out


def test_short_names_are_remembered(shop: Shop) -> None:
    shop.take(written(shop.root / "a", page([item(1)])), "--name", "B", "--short-names")
    shop.take(written(shop.root / "b", page([item(1), item(2)])))
    assert {review["author"] for review in shop.reviews.values()} == {"Ósk N."}
    shop.take(shop.root / "b", "--no-short-names")
    assert {review["author"] for review in shop.reviews.values()} == {"Ósk Nr1", "Ósk Nr2"}


def test_a_kill_between_the_two_files_makes_nothing_look_changed_by_hand(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(5)]))
    newer = [item(1, comment="new", updateTime=moment(9)), *(item(n) for n in range(2, 7))]
    archive = takeout(shop.root / "b.zip", newer)
    write = import_reviews.write

    def killed(path: Path, content: bytes, **how: bool) -> None:
        if path.name == "reviews.json":
            raise KeyboardInterrupt
        return write(path, content, **how)

    with monkeypatch.context() as patch:
        patch.setattr(import_reviews, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            shop.run(archive)
    shop.take(archive)
    straight = Shop(shop.root / "straight")
    straight.root.mkdir()
    straight.take(shop.root / "a.zip")
    straight.take(archive)
    assert shop.files() == straight.files()


def test_without_the_state_ids_stay_and_nothing_is_removed_in_that_run(shop: Shop) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(5)]))
    (shop.data / "import-state.json").unlink()
    assert shop.run("--count") == EXIT_SUCCESS  # which makes a state, too
    later = takeout(shop.root / "b.zip", [item(n) for n in range(1, 6)])
    shop.take(later)
    assert set(shop.reviews) == {takeout_id(n) for n in range(6)}
    shop.take(later)
    assert set(shop.reviews) == {takeout_id(n) for n in range(1, 6)}


def test_only_what_comes_from_the_location_is_removed(shop: Shop) -> None:
    shop.take(csv_of(shop, ["Ann", "5", "2024-01-02", ""]), "--name", "B", "--source", "fb")
    two = takeout_files([item(n, place="22") for n in range(9)], place="22")
    two |= takeout_files([item(n) for n in range(20, 29)])
    archive = zipped(shop.root / "a.zip", two)
    for place in ("22", PLACE):
        shop.take(archive, "--location", place)
    (shop.data / "import-state.json").unlink()
    for _ in range(2):
        shop.take(archive, "--location", PLACE)
    nameless = takeout_files([api_item(n, name=None) for n in range(29, 32)])
    shop.take(zipped(shop.root / "b.zip", nameless))
    assert len(shop.reviews) == 1 + 9 + 9 + 3


def test_several_locations_are_never_mixed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    files = takeout_files([item(1)]) | takeout_files([item(2, place="22")], place="22", title="Twó")
    archive = zipped(shop.root / "a.zip", files)
    assert shop.run(archive, "--zone", ZONE) == EXIT_BAD_DATA
    told = capsys.readouterr().err
    assert "22 'Twó'" in told and PLACE in told
    shop.take(archive, "--location", "twó")
    assert list(shop.reviews) == [takeout_id(2)]
    assert shop.document["business"]["name"] == "Twó"
    assert shop.run(written(shop.root / "b", page([item(1)]))) == EXIT_BAD_DATA
    shop.take(archive, "--location", PLACE)
    assert len(shop.reviews) == 2


# ---- CSV ----

HEADER = "id author rating date text source source_url reply reply_date"


def csv_of(shop: Shop, *rows: object, header: str = "author rating date text", **how: str) -> Path:
    return written(shop.root / "a.csv", table(header, *rows, **how))  # type: ignore[arg-type]


DATES = {
    "2024-03-05": "2024-03-05",
    "2024-03-05 10:00": "2024-03-05T10:00:00-08:00",
    "2024-03-05 10:00:00 UTC": "2024-03-05T02:00:00-08:00",
    "2024-03-05T10:00:00.123456789+0000": "2024-03-05T02:00:00-08:00",
    "25/03/2024": "2024-03-25",
    "03/25/2024 09:12 PM": "2024-03-25T21:12:00-07:00",
    "5.3.2024": "2024-03-05",
    "Jan 5, 2026": "2026-01-05",
    "1709632800": "2024-03-05T02:00:00-08:00",
    "1709632800000": "2024-03-05T02:00:00-08:00",
    "05/05/2024": "2024-05-05",
}


@pytest.mark.parametrize("written_as", DATES)
def test_dates_are_read_in_each_known_form(shop: Shop, written_as: str) -> None:
    shop.take(csv_of(shop, ["Ann", "5", written_as, ""]), "--name", "B", "--source", "fb")
    assert shop.only()["date"] == DATES[written_as]


@pytest.mark.parametrize(
    "cell",
    ["31/02/2024", "2 months ago", "2024-13-01", "2024-01-01 25:00", "1850-01-01", "99999999999", "05/03/24"],
)
def test_what_is_no_date_is_a_failed_row(shop: Shop, cell: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["Ann", "5", f"2024-01-{n:02}", ""] for n in range(1, 20)]
    shop.take(csv_of(shop, *rows, ["Bo", "5", cell, ""]), "--name", "B", "--source", "fb")
    assert "a.csv line 21: " in capsys.readouterr().out
    assert len(shop.reviews) == 19


STARS = [("5", None, 5), ("4,6", None, 4.6), ("FOUR", None, 4), ("4/5", None, 4), ("★★★★☆", None, 4)]
STARS += [("3 stars", None, 3), ("9", "10", 4.5), ("80%", "100", 4), ("1", "100", 1), ("5", "10", 2.5)]


@pytest.mark.parametrize(("cell", "scale", "stars"), STARS)
def test_stars_are_read_on_each_scale(shop: Shop, cell: str, scale: str | None, stars: float) -> None:
    options = ["--scale", scale] if scale else []
    shop.take(csv_of(shop, ["Ann", cell, "2024-01-01", ""]), "--name", "B", "--source", "fb", *options)
    assert shop.only()["rating"] == stars


TEMPLATE_ROW = ["7", "Ann", "5", "2024-01-02", "Good", "fb", "https://fb.example/7", "Thanks", "2024-01-03"]
UNDECIDED = {
    "--date-order": (["author rating date source", ["Ann", "5", "05/03/2024", "fb"]]),
    "--scale": (["author rating date source", ["Ann", "8", "2024-01-01", "fb"]]),
    "--map": (["Customer Stars When", ["Ann", "5", "2024-01-01"]]),
    "--source": (["author rating date", ["Ann", "5", "2024-01-01"]]),
    "--zone": (["author rating date source", ["Ann", "5", "2024-01-01 10:00", "fb"]]),
    "--name": (["author rating date source", ["Ann", "5", "2024-01-01", "fb"]]),
}


@pytest.mark.parametrize("option", UNDECIDED)
def test_what_is_open_stops_the_import_and_names_the_option(
    shop: Shop, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    header, row = UNDECIDED[option]
    name = [] if option == "--name" else ["--name", "B"]
    assert shop.run(csv_of(shop, row, header=str(header)), *name) == EXIT_BAD_DATA
    assert option in capsys.readouterr().err
    assert not shop.data.exists()


def test_our_template_is_imported_as_it_is(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_reviews.main(["--template"]) == EXIT_SUCCESS
    header = capsys.readouterr().out
    assert header == HEADER.replace(" ", ",") + "\n"
    shop.take(csv_of(shop, TEMPLATE_ROW, header=HEADER), "--name", "B")
    assert shop.only() == {
        "id": "fb-7",
        "author": "Ann",
        "rating": 5,
        "date": "2024-01-02",
        "text": "Good",
        "source": "fb",
        "source_url": "https://fb.example/7",
        "owner_reply": {"text": "Thanks", "date": "2024-01-03"},
    }


def test_an_empty_cell_and_an_absent_column_differ(shop: Shop) -> None:
    shop.take(csv_of(shop, TEMPLATE_ROW, header=HEADER), "--name", "B")
    before = shop.only()
    shop.take(csv_of(shop, ["7", "Ann", "5", "2024-01-02", "fb"], header="id author rating date source"))
    assert shop.only() == before
    shop.take(csv_of(shop, [*TEMPLATE_ROW[:4], "nan", "fb", "", "", ""], header=HEADER))
    assert shop.only() == before | {"text": None, "source_url": None}


def test_any_header_is_explained_by_a_map(shop: Shop) -> None:
    rows = table(
        "Customer Stars When What Mail Bought",
        ["Ann", "5", "2024-01-02", "'=1+1", "a@b", "no"],
        delimiter=";",
    )
    path = written(shop.root / "a.csv", rows.encode("utf-8-sig").replace(b"What", b'"What, and why"'))
    maps = ["author=Customer", "rating=Stars", "date=When", "text=What, and why", "verified=Bought"]
    shop.take(path, *(f"--map={each}" for each in maps), "--name", "B", "--source", "Shop")
    review = shop.only()
    assert (review["text"], review["source"], review["verified"]) == ("=1+1", "shop", False)
    assert b"a@b" not in shop.files()["reviews.json"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_csv_is_read_in_each_encoding(shop: Shop, encoding: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = table("author rating date text source", ["Åse", "5", "2024-01-01", 'Très "bien"\nici', "fb"])
    shop.take(written(shop.root / "a.csv", text.encode(encoding)), "--name", "B")
    assert (shop.only()["author"], shop.only()["text"]) == ("Åse", 'Très "bien"\nici')
    assert ("cp1252" in capsys.readouterr().out) == (encoding == "cp1252")


def test_rows_without_ids_keep_theirs_when_they_are_edited(shop: Shop) -> None:
    def bring(*texts: str) -> None:
        shop.take(
            csv_of(shop, *(["Ann", "5", "2024-01-01", text] for text in texts)),
            "--name",
            "B",
            "--source",
            "fb",
        )

    bring("one")
    (first,) = shop.reviews
    bring("two", "one", "one")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {first: "one", f"{first}-2": "two"}
    bring("two", "edited")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {
        first: "edited",
        f"{first}-2": "two",
    }
    assert shop.run("--forget", first) == EXIT_SUCCESS
    bring("edited", "two", "or this is the one")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {f"{first}-2": "two"}
    bring("edited")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {f"{first}-2": "two"}


def test_a_text_at_two_sources_is_named(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    long = "The best cinnamon buns of the whole island, says Ann."
    shop.take(written(shop.root / "g", page([item(1, comment=long), item(2, comment=long)])), "--name", "B")
    assert "the same text" not in capsys.readouterr().out
    shop.take(csv_of(shop, ["Ann", "5", "2024-01-01", long.upper()]), "--source", "fb")
    assert "the same text at several sources: fb-" in capsys.readouterr().out


# ---- Erasure ----


def test_a_forgotten_review_stays_away_in_both_forms(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    archive = takeout(shop.root / "t.zip", [item(n) for n in range(5)])
    pages = written(shop.root / "p.json", page([api_item(n) for n in range(8)]))
    shop.take(archive)
    assert shop.run("--forget", takeout_id(3), "--dry-run") == EXIT_SUCCESS
    assert takeout_id(3) in shop.reviews and "suppressed.txt" not in shop.files()
    assert shop.run("--forget", takeout_id(3)) == EXIT_SUCCESS
    line = digest("google", takeout_id(3).removeprefix("google-"))
    assert shop.files()["suppressed.txt"].decode() == f"{line}\n"
    assert line in capsys.readouterr().out
    assert takeout_id(3) not in shop.files()["import-state.json"].decode()
    shop.take(archive, pages)
    assert "Ósk Nr3" not in shop.files()["reviews.json"].decode()
    assert len(shop.reviews) == 7
    state = shop.files()["import-state.json"].decode()
    assert "Nr" not in state and list(json.loads(state)["hidden"]) == sorted(json.loads(state)["hidden"])
    assert shop.run("--forget", "nobody") == EXIT_BAD_DATA


def test_an_author_is_suppressed_by_name_whatever_is_shown(shop: Shop) -> None:
    pages = written(shop.root / "p.json", page([item(n) for n in range(5)]))
    shop.take(pages, "--name", "B", "--short-names")
    text = f"# who asked for it\n\nauthor {digest('google', 'ósk nr3')}\n"
    written(shop.data / "suppressed.txt", text)
    shop.take(written(shop.root / "q.json", page([item(9)])))
    assert takeout_id(3) not in shop.reviews
    shop.take(written(shop.root / "q.json", page([item(3, reviewer={"displayName": "Ósk Önnur"})])))
    assert takeout_id(3) not in shop.reviews
    written(shop.data / "suppressed.txt", "Ósk Nr4\n")
    assert shop.run(pages) == EXIT_BAD_DATA


# ---- Insights ----

ALIASES = {"technicians": [{"id": "osk", "label": "Ósk", "aliases": ["skipti"]}]}


def insights(shop: Shop) -> dict[str, object]:
    return json.loads(shop.files()["insights.json"])  # type: ignore[no-any-return]


def test_an_import_counts_what_the_owner_lists_and_only_when_it_changes(shop: Shop) -> None:
    shop.take(written(shop.root / "z", page([item(0)])), "--name", "B")
    assert "insights.json" not in shop.files()
    assert shop.run("--count") == EXIT_SUCCESS
    shop.take(written(shop.root / "a", page([item(1)])))
    assert insights(shop)["review_count"] == 2
    written(shop.data / "editorial.json", json.dumps({"entities": ALIASES, "summary": "Good"}))
    shop.take(written(shop.root / "b", page([item(1), item(2)])))
    counted = insights(shop)
    assert (counted["version"], counted["review_count"], counted["summary"]) == (3, 3, "Good")
    before = shop.files()
    shop.take(shop.root / "b")
    assert shop.run("--count", "--short-names") == EXIT_SUCCESS
    assert shop.files() == before
    shop.take(written(shop.root / "c", page([item(3)])))
    assert (insights(shop)["version"], insights(shop)["review_count"]) == (4, 4)


def test_insights_of_a_person_become_the_editorial_file(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.take(written(shop.root / "a", page([item(1)])), "--name", "B")
    by_hand = {"version": 7, "model": "me", "review_count": 9, "summary": "Good", "topics": []}
    written(shop.data / "insights.json", json.dumps(by_hand))
    before = shop.files()
    assert shop.run("--count", "--dry-run") == EXIT_SUCCESS
    assert shop.files() == before
    assert shop.run("--count") == EXIT_SUCCESS
    assert "version, model, review_count" in capsys.readouterr().out
    assert json.loads(shop.files()["editorial.json"]) == {"summary": "Good", "topics": []}
    counted = insights(shop)
    assert (counted["version"], counted["review_count"], counted["summary"]) == (8, 1, "Good")
    written(shop.data / "insights.json", json.dumps(counted | {"summary": "Best"}))
    assert shop.run("--count") == EXIT_BAD_DATA
    assert "changed by hand" in capsys.readouterr().err


def test_a_review_that_changed_after_a_person_annotated_it_is_named_until_the_annotation_changes(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(score: float, *options: str) -> bool:
        written(shop.data / "editorial.json", json.dumps({"per_review": {takeout_id(1): {"score": score}}}))
        assert shop.run("--count", *options) == EXIT_SUCCESS
        return f"{takeout_id(1)} has changed since" in capsys.readouterr().out

    shop.take(written(shop.root / "a", page([item(1)])), "--name", "B")
    assert not told(0.5)
    shop.take(written(shop.root / "b", page([item(1, comment="No!", updateTime=moment(9))])))
    assert told(0.5) and told(0.5)
    assert not told(-0.5)
    assert not told(-0.5)


def test_reviews_are_imported_even_if_the_insights_cannot_be_counted(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.take(written(shop.root / "a", page([item(1)])), "--name", "B")
    written(shop.data / "editorial.json", '{"summary": 5}')
    assert shop.run(written(shop.root / "b", page([item(1), item(2)]))) == EXIT_BAD_DATA
    told = capsys.readouterr().err
    assert "editorial.json /summary" in told and "were imported" in told
    assert len(shop.reviews) == 2


# ---- Refusals ----

REFUSED = {
    "maps": (b'{"type": "FeatureCollection", "features": [{"properties": {}}]}', "you wrote yourself"),
    "places": (b'{"reviews": [{"name": "places/x", "authorAttribution": {}}]}', "Places"),
    "old places": (b'{"result": {"reviews": [{"author_name": "x"}]}}', "Places"),
    "yelp": (b'{"reviews": [{"id": "x", "time_created": "2026"}]}', "Yelp"),
    "json": (b'[{"a": 1}]', "not an export that is known"),
    "no json": (b'{"reviews": [', "not JSON"),
    "empty": (b"", "empty"),
    "gzip": (b"\x1f\x8b\x08", "tgz"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1", "CSV UTF-8"),
    "zip": (b"PK\x03\x04 cut", "damaged"),
    "spoilt": (b"id,author,rating,date,source\n1.17E+17,A,5,2024-01-01,fb\n", "spreadsheet"),
    "tenth": (page([item(1), {"name": 5}]), "more than a tenth"),
    "text": (page([item(1), item(2)["name"]]), "and not an object"),
    "verified": (b"author,rating,date,source,verified\nA,5,2024-01-01,fb,no\n", "--map"),
    "PK": (b"PK,author,rating,date,source\n7,A,5,2024-01-01,fb\n", "--map"),
    "page": (b"<!DOCTYPE html>", "DOCTYPE"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_imported_is_refused_in_a_sentence(
    shop: Shop, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content, words = REFUSED[kind]
    assert shop.run(written(shop.root / "file", content), "--zone", ZONE, "--name", "B") == EXIT_BAD_DATA
    assert words in capsys.readouterr().err
    assert not shop.data.exists()


def test_archives_do_no_harm(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    good = takeout_files([item(1)])
    bomb = zipped(shop.root / "bomb.zip", {"l/reviews.json": b" " * (import_reviews.MOST_BYTES + 1)})
    cut = written(shop.root / "cut.zip", takeout(shop.root / "t.zip", [item(1)]).read_bytes()[:-40])
    sheet = zipped(shop.root / "s.xlsx", {"xl/workbook.xml": b"", **good})
    maps = zipped(shop.root / "m.zip", {"Maps/Reviews.json": REFUSED["maps"][0]})  # type: ignore[dict-item]
    for path, words in ((bomb, "MiB"), (cut, "damaged"), (sheet, "CSV UTF-8"), (maps, "you wrote yourself")):
        assert shop.run(path, "--zone", ZONE) == EXIT_BAD_DATA
        assert words in capsys.readouterr().err
    climbing = {"../../../l/reviews.json": page([item(2)]), "/l/reviews-x.json": page([item(3)])}
    both = {"Maps/Reviews.json": REFUSED["maps"][0]}
    shop.take(zipped(shop.root / "c.zip", {**good, **climbing, **both}))  # type: ignore[dict-item]
    assert len(shop.reviews) == 3
    assert sorted(path.name for path in shop.root.iterdir() if path.is_dir()) == ["data"]


def test_a_file_named_as_parts_are_is_not_one_of_them(shop: Shop) -> None:
    part = takeout(shop.root / "t-001.zip", [item(1)])
    shop.take(written(shop.root / "t", page([item(2)])), part)
    assert set(shop.reviews) == {takeout_id(1), takeout_id(2)}


def test_a_folder_and_parts_are_taken_like_one_archive(shop: Shop) -> None:
    files = takeout_files([item(n) for n in range(50)])
    for name, content in files.items():
        path = shop.root / "x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    shop.take(shop.root / "x")
    whole = shop.files()
    half = list(files.items())
    parts = [zipped(shop.root / f"t-00{n + 1}.zip", dict(half[n::2])) for n in range(2)]
    other = Shop(shop.root / "o")
    other.root.mkdir()
    other.take(*reversed(parts))
    assert other.files() == whole


def test_a_long_import_says_on_a_terminal_what_it_reads(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_reviews, "QUIET_SECONDS", -1)
    pages = written(shop.root / "p", page([item(1)]))
    shop.take(pages, "--name", "B")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shop.take(pages)
    assert capsys.readouterr().err == f"reading {pages} …\n"


def test_the_sample_is_never_merged_with(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(written(shop.root / "p", page([item(1)]))), "--zone", ZONE, "--data", str(SAMPLE)]
    assert import_reviews.main(arguments) == EXIT_BAD_DATA
    assert "--data my-data" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--data", "x"],
        ["absent.zip", "--data", "x"],
        [300 * "a", "--data", "x"],
        [__file__],
        [__file__, "--data", "x", "--zone", "Mars/Base"],
        [__file__, "--data", "x", "--zone", "../x"],
        [__file__, "--data", "x", "--map", "name=x"],
        [__file__, "--data", "x", "--map", "author=x,foo=y"],
        [__file__, "--data", "x", "--scale", "7"],
        [__file__, "--data", "x", "--forget", "y"],
        ["--template", "--data", "x"],
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        import_reviews.main(arguments)
    assert exit.value.code == EXIT_USAGE


def test_the_zone_is_remembered_and_never_another(shop: Shop) -> None:
    pages = written(shop.root / "p", page([item(1)]))
    shop.take(pages, "--name", "B")
    assert shop.run(pages) == EXIT_SUCCESS
    assert shop.run(pages, "--zone", "Europe/Oslo") == EXIT_BAD_DATA


def test_a_dry_run_leaves_no_trace_and_ends_alike(shop: Shop) -> None:
    pages = written(shop.root / "p", page([item(1)]))
    assert shop.run(pages, "--dry-run", "--zone", ZONE) == EXIT_BAD_DATA
    assert shop.run(pages, "--dry-run", "--zone", ZONE, "--name", "B") == EXIT_SUCCESS
    assert not shop.data.exists()


def test_a_file_keeps_its_mode_and_a_new_one_gets_that_of_the_umask(shop: Shop) -> None:
    before = os.umask(0o027)
    try:
        shop.take(written(shop.root / "p", page([item(1)])), "--name", "B")
    finally:
        os.umask(before)
    path = shop.data / "reviews.json"
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    shop.take(written(shop.root / "p", page([item(2)])))
    assert path.stat().st_mode & 0o777 == 0o604


def test_what_cannot_be_written_is_status_1(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = written(shop.root / "p", page([item(1)]))
    (shop.data / ".reviews.json.draft").mkdir(parents=True)
    assert shop.run(pages, "--name", "B", "--zone", ZONE) == EXIT_FAILURE
    assert "cannot write" in capsys.readouterr().err
    assert "reviews.json" not in shop.files()
    for option in ([], ["--dry-run"]):
        arguments = [str(pages), "--data", str(pages), "--name", "B", "--zone", ZONE, *option]
        assert import_reviews.main(arguments) == EXIT_FAILURE
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert shop.run(pages, "--name", "B", "--zone", ZONE, "--dry-run") == EXIT_FAILURE


@pytest.mark.parametrize("stdout", [">&-", "| cat"])
def test_a_terminal_with_few_letters_or_none_is_no_fault(shop: Shop, stdout: str) -> None:
    path = csv_of(shop, ["Ann", "5", "2024-01-01", "BjÃ¸rn"])
    command = f"{sys.executable} -m import_reviews {path} --data {shop.data} --name É --source ö {stdout}"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (EXIT_SUCCESS, b"")


# ---- Properties ----


@given(
    numbers=st.lists(st.integers(0, 12), min_size=1, max_size=20),
    edits=st.lists(st.tuples(st.integers(0, 12), st.integers(30, 60)), max_size=6),
    seed=st.randoms(use_true_random=False),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_the_order_of_files_and_of_reviews_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: list[int],
    edits: list[tuple[int, int]],
    seed: random.Random,
) -> None:
    root = tmp_path_factory.mktemp("order")
    items = [item(n) for n in numbers]
    items += [item(n, comment=f"edit {day}", updateTime=moment(day)) for n, day in edits]
    items += [api_item(n) for n in numbers[::2]]
    ends = []
    for turn in range(2):
        seed.shuffle(items)
        cut = seed.randint(0, len(items))
        files = [
            written(root / f"{turn}{n}", page(part))
            for n, part in enumerate((items[:cut], items[cut:]))
            if part
        ]
        shop = Shop(root / f"d{turn}")
        shop.take(*files, "--name", "B")
        once = shop.files()
        shop.take(*reversed(files))
        assert shop.files() == once
        ends.append(once["reviews.json"])
    assert ends[0] == ends[1]


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(list(item(1))), part, max_size=4)
    ),
    max_leaves=8,
)


@given(change=st.dictionaries(st.sampled_from([*item(1), "reviewReply", "reviewId"]), JSON_LIKE, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_json_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, change: dict[str, object]
) -> None:
    shop = Shop(tmp_path_factory.mktemp("json"))
    path = written(shop.root / "p", json.dumps({"reviews": [item(1) | change]}))
    assert shop.run(path, "--zone", ZONE, "--name", "B") in (EXIT_SUCCESS, EXIT_BAD_DATA)


@given(
    data=st.binary(max_size=60) | st.text('",;\n=ABéid0123456789/ratingdutho', max_size=80).map(str.encode)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_bytes_end_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    shop = Shop(tmp_path_factory.mktemp("bytes"))
    for content in (data, b"author,rating,date\n" + data, b"PK\x03\x04" + data):
        path = written(shop.root / "p", content)
        assert shop.run(path, "--zone", ZONE, "--name", "B", "--source", "x") in (EXIT_SUCCESS, EXIT_BAD_DATA)


# ---- The whole way ----


def test_from_a_takeout_to_a_subscriber(shop: Shop) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(1)]))
    with open_lab(shop.root) as lab:
        settings = ["--hub-allow-private", "--hub-ca-file", str(lab.ca_file), "--reload-interval", "0.05"]
        with daemon(*settings, data=shop.data) as service:
            url = f"https://127.0.0.1:{lab.port}/cb"
            form = {"hub.mode": "subscribe", "hub.topic": service.base_url + JSON_FEED, "hub.callback": url}
            assert (
                fetch(service, "/api/websub/hub", "POST", urlencode(form).encode(), content_type=FORM).status
                == 202
            )
            lab.wait(lab.gets)
            news = item(2, comment="Splunkunýtt")
            shop.take(takeout(shop.root / "b.zip", [item(1), news]))
            lab.wait(lab.posts)
            assert "Splunkunýtt" in json.loads(lab.posts()[0].body)["items"][0]["content_text"]
            found = fetch(service, "/api/reviews/search?query=splunku")
            assert json.loads(found.body)["matched"] == 1
