"""Records of exports become part of the stored reviews: ids for ever, nothing lost, nothing back."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from export_lab import (
    PLACE,
    ZONE,
    Item,
    Shop,
    api_item,
    item,
    moment,
    page,
    parts,
    takeout,
    takeout_files,
    takeout_id,
    written,
    zipped,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reviewslib.importer.cells import clean
from reviewslib.importer.command import EXIT_BAD_DATA, EXIT_SUCCESS
from reviewslib.importer.merging import Ledger
from reviewslib.importer.state import digest


def test_a_newer_version_replaces_an_older_one_in_either_order(shop: Shop) -> None:
    reply = {"comment": "Takk", "updateTime": moment(5)}
    old = takeout(shop.root / "old.zip", [item(n) for n in range(9)])
    edited = item(1, starRating="TWO", comment="worse", updateTime=moment(40), reviewReply=reply)
    renamed = item(0, reviewer={"displayName": "Ósk Önnur"})  # for which Google has no time
    new = takeout(shop.root / "new.zip", [renamed, edited, *(item(n) for n in range(3, 10))])
    ends = []
    for number, both in enumerate([[old, new], [new, old]]):
        one, by_one = Shop(shop.root / f"{number}"), Shop(shop.root / f"{number}a")
        one.take(*both)
        for file in both:
            by_one.take(file)
        ends += [one.files()["reviews.json"], by_one.files()["reviews.json"]]
    assert all(end == ends[0] for end in ends)
    shop.take(old)
    shop.take(new, old)
    shop.output()
    shop.take(shop.page(item(1), item(2)))
    told = shop.output().out
    shop.take(old)
    assert takeout_id(2) not in shop.reviews
    assert told.startswith("older than what is stored, left alone: 1\n") and "older export: 1\n" in told
    changed = shop.reviews[takeout_id(1)]
    assert (changed["rating"], changed["text"], changed["date"][:10]) == (2, "worse", "2025-01-02")
    assert changed["owner_reply"]["text"] == "Takk"


def test_of_two_versions_of_one_time_the_same_is_taken_in_either_order(shop: Shop) -> None:
    versions = [[item(1, comment=text), item(2, account, comment=text)] for text, account in ("a2", "b1")]
    pages = [written(shop.root / f"{n}", page(each)) for n, each in enumerate(versions)]
    shop.take(*pages, "--name", "B")
    before = shop.files()
    assert [each["text"] for each in shop.reviews.values()] == ["b", "a"]  # of account 1, and the first text
    shop.take(*reversed(pages))
    assert shop.files() == before


def test_a_review_has_one_id_in_takeout_and_in_the_api(shop: Shop) -> None:
    archive = takeout(shop.root / "t.zip", [item(n) for n in range(5)])
    pages = written(shop.root / "p.json", page([api_item(n) for n in range(3, 8)]))
    ids = {takeout_id(n) for n in range(5)} | {f"google-AbFvOq{n:04}" for n in range(5, 8)}
    shop.take(pages, archive)
    assert set(shop.reviews) == ids
    other = Shop(shop.root / "other")
    other.take(archive)
    other.take(pages, "--short-names")
    assert set(other.reviews) == ids
    assert other.reviews[takeout_id(3)]["author"] == "Ósk N."
    api_first = Shop(shop.root / "api")
    api_first.take(pages, "--name", "B")
    (api_first.data / "import-state.json").unlink()
    api_first.take(archive)
    ids = {takeout_id(n) for n in range(3)} | {f"google-AbFvOq{n:04}" for n in range(3, 8)}
    assert set(api_first.reviews) == ids
    row = [takeout_id(1).removeprefix("google-"), "Eva", "2", "2026-01-02", "of a table", "google"]
    api_first.take(api_first.csv(row, header="id author rating date text source"))
    assert set(api_first.reviews) == ids
    changed = api_first.reviews[takeout_id(1)]  # although a table has no times
    assert [changed[key] for key in ("author", "rating", "text")] == ["Eva", 2, "of a table"]
    assert changed["date"][:10] == "2025-01-02"  # as first imported
    api_first.take(api_first.page(item(1, comment="newer", updateTime=moment(40))))
    assert [api_first.reviews[takeout_id(1)][key] for key in ("author", "text")] == ["Ósk Nr1", "newer"]


def test_ids_that_cannot_be_joined_stop_the_import(shop: Shop) -> None:
    shop.take(takeout(shop.root / "t.zip", [item(n) for n in range(5)]))
    later = [api_item(n, createTime=moment(n, 9)) for n in range(4, 10)]
    alike = [api_item(1), api_item(2, createTime=moment(1)), api_item(40)]
    before = shop.files()
    for items, told in ((later[:5], "1 of 5"), (alike, "2 of 3")):
        assert shop.run(shop.page(*items)) == EXIT_BAD_DATA
        asked = f"{told} new reviews have author and day of a stored one with another id:\n  google-AbFvOq000"
        assert asked in shop.output().err
        assert shop.files() == before
    shop.take(shop.page(*later))
    assert len(shop.reviews) == 11
    shop.take(shop.page(item(50, createTime=moment(1))))  # an id of the same kind is another review's
    twins = [
        api_item(50 + n, name=None, createTime=moment(9, 9), comment="Kom aftur, í 9. skipti") for n in (1, 2)
    ]
    for twin in (twins[0], twins[1] | {"name": api_item(52)["name"]}):  # of which one says where it is
        shop.take(shop.page(twin))
    assert len(shop.reviews) == 14
    (shop.data / "reviews.json").unlink()  # rows are never joined by their moment
    rows = [[id, f"Ann {name}", "5", "2024-01-02 10:00"] for id, name in (("1", "Roe"), ("2", "Ray"))]
    shop.take(shop.csv(rows[0], header="id author rating date"), "--name", "B", "--source", "fb")
    (shop.data / "import-state.json").unlink()
    path = shop.csv(rows[1], header="id author rating date")
    assert shop.run(path, "--zone", ZONE, "--source", "fb") == EXIT_BAD_DATA
    assert "  fb-2 and fb-1\n" in shop.output().err


def test_a_page_removes_nothing_and_a_whole_has_a_brake(shop: Shop) -> None:
    items = [item(number) for number in range(20)]
    shop.take(takeout(shop.root / "a.zip", items))
    shop.take(shop.page(*items[4:]))
    assert len(shop.reviews) == 20
    more = [item(number) for number in range(20, 40)]  # of which nothing is stored yet
    assert shop.run(takeout(shop.root / "b.zip", items[4:] + more)) == EXIT_BAD_DATA
    told = shop.output().err
    assert told.startswith("4 of 20 reviews are not in this export") and "say --allow-removals" in told
    shop.take(takeout(shop.root / "c.zip", items[3:]))
    assert len(shop.reviews) == 17
    shop.take(takeout(shop.root / "b.zip", items[4:]), "--allow-removals")
    assert len(shop.reviews) == 16
    shop.take(shop.root / "a.zip")  # of the same time: they have returned
    new = item(50, createTime=moment(19), updateTime=moment(19))  # which is not removed
    shop.take(shop.page(new), shop.root / "a.zip")
    assert len(shop.reviews) == 21


NAMES = ["takeout-20250301T101112Z", "takeout-20250301T101112Z-1", "export"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_an_export_in_parts_brings_all_its_reviews_in_any_order_of_commands(
    shop: Shop, name: str, order: tuple[int, ...]
) -> None:
    unrated = item(100, starRating=None)  # which is in no state
    archives = parts(shop.root, [unrated, *(item(n) for n in reversed(range(100)))], 3, name)
    for part in order:
        shop.take(archives[part], "--name", "B")
        assert "deleted since" not in shop.output().out
    assert set(shop.reviews) == {takeout_id(n) for n in range(100)}
    before = shop.files()
    for archive in archives:
        shop.take(archive)
    assert shop.files() == before


def test_part_001_alone_removes_and_what_a_later_part_brings_returns_with_its_id(shop: Shop) -> None:
    pages = written(shop.root / "p.json", page([api_item(n) for n in range(80, 84)]))
    shop.take(pages, "--name", "B")  # whose ids are kept
    items = [item(n) for n in reversed(range(120))]
    shop.take(takeout(shop.root / "takeout-20250201T101112Z-001.zip", items))
    before = set(shop.reviews)
    newer = [item(119, updateTime=moment(130)), *items[1:112]]
    first, second = parts(shop.root, newer, 2, "takeout-20250301T101112Z")
    shop.take(first, "--allow-removals")
    assert set(shop.reviews) < before
    shop.output()
    shop.take(second)
    assert "deleted since" not in shop.output().out
    assert set(shop.reviews) == before - {takeout_id(n) for n in range(8)}
    third = parts(shop.root, [item(119, updateTime=moment(140)), *items[1:90]], 2, "takeout-20250401T101112Z")
    before = set(shop.reviews)
    shop.take(third[0])
    told = shop.output().out
    assert set(shop.reviews) == before
    hint = "import its other parts, too, or say --allow-removals if there are none"
    reason = f"since others came in more parts than one; {hint}"
    assert f"\ntakeout-20250401T101112Z removes nothing, {reason}\n" in told
    shop.take(shop.page(item(135)))  # nor does it deny what may be in another part
    assert takeout_id(135) in shop.reviews
    assert shop.run(third[1]) == EXIT_BAD_DATA
    told = shop.output().err
    assert "of 113 reviews" in told and "only part" not in told.lower()


def test_the_last_part_of_an_export_speaks_for_locations_that_are_in_other_parts(shop: Shop) -> None:
    there = [item(n) for n in range(12)], [item(n, place="22") for n in range(20, 32)]
    both = takeout_files(there[0]) | takeout_files(there[1], place="22")
    shop.take(zipped(shop.root / "a.zip", both), "--location", PLACE, "--location", "22", "--name", "B")
    left = takeout_files([item(n) for n in range(1, 13)]), takeout_files(there[1], place="22")
    paths = [shop.root / f"takeout-20250301T101112Z-00{number}.zip" for number in (2, 3, 1)]
    last = zipped(paths[1], {})
    shop.take(shop.root / "a.zip", zipped(paths[0], left[0]), last)  # the first location is in part 002
    assert [*shop.state["multipart"]] == [PLACE]
    shop.take(zipped(paths[2], left[1]))
    assert len(shop.reviews) == 24 and takeout_id(0) not in shop.reviews


def test_the_brake_names_the_possibility_of_other_parts_and_the_reviews(shop: Shop) -> None:
    shop.take(takeout(shop.root / "takeout-20250201T101112Z-001.zip", [item(n) for n in range(60)]))
    words = "one two three four five six seven eight nine"
    first, second = parts(shop.root, [item(n) for n in reversed(range(60))], 2, "takeout-20250301T101112Z")
    eight = item(6, comment=words[:-5], updateTime=moment(7))
    shop.take(shop.page(item(5, comment=words, updateTime=moment(6)), eight, item(7, comment=None)))
    shop.output()
    assert shop.run(first) == EXIT_BAD_DATA
    told = shop.output().err
    assert "Only part 001 of the export is here" in told and "--allow-removals" in told
    assert "Ósk Nr5, 2025-01-06, “one two three four five six seven eight …”" in told
    assert f"\n  Ósk Nr6, 2025-01-07, “{words[:-5]}” ({takeout_id(6)})\n" in told
    assert "Ósk Nr7, 2025-01-08, “5 stars without words”" in told
    shop.take(first, second)
    assert len(shop.reviews) == 60


LACKS = [(NAMES[0], numbers) for numbers in ("001, 003", "002", "2-001", "1-001, 2-002")] + [("x", "002")]


@pytest.mark.parametrize(("name", "numbers"), LACKS)
def test_an_export_with_a_gap_removes_nothing(shop: Shop, name: str, numbers: str) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(30)]))
    paths = [shop.root / f"{name}-{number}.zip" for number in numbers.split(", ")]
    shop.take(*(takeout(path, [item(n) for n in range(1, 31)]) for path in paths))
    assert len(shop.reviews) == 31
    assert f"\n{name} removes nothing, since of its parts only {numbers} came\n" in shop.output().out


@pytest.mark.parametrize(
    "names", [["-001", "-1-001", "-2-001"], ["-1-001", "-2-001", "-2-002"], ["-001 (1)"], [""]]
)
def test_what_follows_the_time_of_a_takeout_makes_no_other_export(shop: Shop, names: list[str]) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(30)]))
    left = [item(n) for n in range(1, 31)]
    for n, name in enumerate(names):
        cut = left[n :: len(names)]
        shop.take(takeout(shop.root / f"takeout-20250301T101112Z{name}.zip", cut), "--allow-removals")
    assert set(shop.reviews) == {takeout_id(n) for n in range(1, 31)}


OTHERS = [
    ("x-001.zip", ("", ""), 1),
    ("x-001.zip", ("a", "b"), 1),
    ("takeout-20250301T101112Z-001.zip", "ab", 0),
]


@pytest.mark.parametrize(("name", "folders", "left"), OTHERS)
def test_an_export_that_has_the_name_of_another_is_one_of_its_own_but_for_googles_names(
    shop: Shop, name: str, folders: Sequence[str], left: int
) -> None:
    paths = []
    for first, folder in enumerate(folders):
        (shop.root / folder).mkdir(exist_ok=True)
        items = [item(n) for n in range(first, first + 30)]
        paths.append(takeout(shop.root / folder / name, items))
        if not folder:
            shop.take(*paths)
    shop.take(*paths)
    assert set(shop.reviews) == {takeout_id(n) for n in range(left, 31)}


@pytest.mark.parametrize("change", [{"createTime": "?"}, {"name": f"locations/{PLACE}/reviews/{200 * 'x'}"}])
def test_a_part_with_a_faulty_record_removes_nothing(shop: Shop, change: dict[str, str]) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(30)]))
    shop.take(takeout(shop.root / "b-001.zip", [item(0, **change), *(item(n) for n in range(1, 31))]))
    assert len(shop.reviews) == 31
    reason = '"?" is not a date' if "createTime" in change else "id: "  # too long to be served
    assert f"/reviews/0: {reason}" in shop.output().out


def test_the_newest_exports_in_parts_are_remembered(shop: Shop) -> None:
    names = [f"takeout-2025020{9 - n}T101112Z" for n in range(6)]
    for n, name in enumerate(names):
        shop.take(takeout(shop.root / f"{name}-001.zip", [item(each) for each in range(n + 1)]))
    empty = zipped(shop.root / "takeout-20260201T101112Z-002.zip", {"l/reviews.json": b"{}"})
    shop.take(shop.page(item(9)), empty)
    assert [*shop.state["exports"]] == sorted(names[2:])


@pytest.mark.parametrize("name", ["n-001.zip", "n.zip"])
def test_what_was_given_of_a_location_that_was_not_chosen_denies_nothing(shop: Shop, name: str) -> None:
    """Reviews of an older export are taken, although a newer one was complete; it may be given again."""
    new = takeout_files([item(5), item(6)]) | takeout_files([item(7, place="22")], place="22")
    shop.take(zipped(shop.root / name, new), "--location", "22", "--name", "B")
    shop.take(takeout(shop.root / "o-001.zip", [item(4), item(5)]), "--location", PLACE, "--location", "22")
    assert set(shop.reviews) == {takeout_id(n) for n in (4, 5, 7)}


PAGES: list[tuple[list[Item], dict[str, int], str]] = [
    ([api_item(n) for n in range(1, 6)], {}, ""),
    ([item(n) for n in range(1, 6)], {"totalReviewCount": 9}, " with 9 reviews of null stars"),
]


@pytest.mark.parametrize(("items", "totals", "told"), PAGES)
def test_pages_of_the_api_in_an_archive_are_no_takeout(
    shop: Shop, items: list[Item], totals: dict[str, int], told: str
) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(5)]))
    files = takeout_files(items)
    files[[*files][1]] = page(items, **totals)
    for _ in range(2):
        shop.take(zipped(shop.root / "b.zip", files))
        assert len(shop.reviews) == 6
        assert f"\npages of the API{told} remove nothing: they do not say " in shop.output().out


BRAKES = [(1, 1, True), (2, 1, True), (3, 1, False), (3, 3, True), (9, 3, False), (9, 4, True)]
BRAKES += [(20, 3, False), (39, 4, True), (40, 4, False)]


@pytest.mark.parametrize(("stored", "gone", "asks"), BRAKES)
def test_the_brake_asks_for_many_and_for_more_than_a_third(
    shop: Shop, stored: int, gone: int, asks: bool
) -> None:
    rows = (["Ann", "5", f"2024-01-{n + 1:02}", ""] for n in range(28))
    shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(stored)]))
    left = takeout(shop.root / "b.zip", [item(n) for n in range(gone, stored + 9)])
    assert shop.run(left) == (EXIT_BAD_DATA if asks else EXIT_SUCCESS)
    assert len(shop.reviews) == 28 + (stored if asks else stored + 9 - gone)


def test_the_report_tells_what_becomes_of_each_review(shop: Shop) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(30)]))
    news = [{"starRating": "ONE"}, {"comment": "Betra"}, {"reviewReply": {"comment": "Takk"}}]
    changed = [item(n, **each, updateTime=moment(40)) for n, each in enumerate(news, 1)]
    unrated = item(31, starRating="STAR_RATING_UNSPECIFIED")
    newer = takeout(shop.root / "b.zip", [*changed, *(item(n) for n in range(4, 31)), unrated])
    line, never = digest("google", takeout_id(9).removeprefix("google-")), 64 * "0"
    written(shop.data / "suppressed.txt", f"{line}\n{never}\n")
    rows = [["Ann", "5", "2024-01-01", f"{n}"] for n in range(10)]
    table = shop.csv(*rows, rows[0], ["Bo", "x", "2024-01-01", ""])
    shop.output()
    shop.take(newer, table, shop.page(item(1), item(32)), "--source", "fb")
    report = f"""new: 11
stars changed: 1
text changed: 1
reply changed: 1
unchanged: 25
deleted since, not taken from an older export: 1
removed, since a complete export no longer has them: 1
kept away by suppressed.txt: 1
the same as another row of its file: 1
faulty, skipped: 1
removed: Ósk Nr0, 2025-01-01, “Kom aftur, í 0. skipti” ({takeout_id(0)})
kept away: Ósk Nr9, 2025-01-10, “Kom aftur, í 9. skipti” ({takeout_id(9)})
without stars, skipped: 1 (Ósk Nr31)
skipped: {table} line 13: "x" names no number of stars, and stars are never invented
this line of suppressed.txt matches nobody: {never}
{shop.data}/reviews.json is written: 39 reviews.
"""
    assert report in shop.output().out
    dates = [each["date"] for each in shop.reviews.values()]
    assert dates == sorted(dates, reverse=True)


def api_pages(
    shop: Shop, numbers: range, *, total: int, average: float, last: int = 1, other: float = 0
) -> list[Path]:
    """Two pages of the API, of which the last `last` have no token; the second may have another average."""
    items = [api_item(n, starRating="FOUR" if n % 3 == 0 else "FIVE") for n in numbers]
    half, found = len(items) // 2, []
    for n, (part, mean) in enumerate(((items[:half], average), (items[half:], other or average))):
        token = {"nextPageToken": "t"} if n < 2 - last else {}
        content = page(part, totalReviewCount=total, averageRating=mean, **token)
        found.append(shop.file(f"p{n}.json", content))
    return found


def test_pages_of_the_api_that_agree_remove_as_a_takeout_does(shop: Shop) -> None:
    shop.take(*api_pages(shop, range(30), total=30, average=4.7), "--name", "B")
    old = written(shop.root / "old.json", page([api_item(0)]))
    pages = api_pages(shop, range(2, 33), total=31, average=4.677419)
    shop.take(*pages)
    assert "removed, since a complete export no longer has them: 2\n" in shop.output().out
    assert len(shop.reviews) == 31
    before = shop.files()
    shop.take(*reversed(pages))
    shop.take(old)
    assert shop.files()["reviews.json"] == before["reviews.json"]
    assert shop.run(*api_pages(shop, range(20, 36), total=16, average=4.7)) == EXIT_BAD_DATA
    assert "18 of 31 reviews are not in this export" in shop.output().err


UNKNOWN = "they do not say how many reviews there are, and their average"
DISAGREEING: list[tuple[str, dict[str, Any]]] = [
    ("they have 31 reviews", {"total": 32}),
    *(("they have 31 reviews", {"total": total}) for total in (30, True, 10**400)),
    ("their mean is 4.677", {"average": 4.9}),
    ("0 of 1 have no nextPageToken", {"other": 4.6}),
    ("0 of 2 have no nextPageToken, and just one should", {"last": 0}),
    ("2 of 2 have no nextPageToken, and just one should", {"last": 2}),
    *((UNKNOWN, {"average": average}) for average in ("4.7", -1, 5.1, 10**400, {})),
    *((UNKNOWN, {"total": total}) for total in (None, "31", [1])),
]


@pytest.mark.parametrize(("lack", "said"), DISAGREEING)
def test_pages_of_the_api_that_disagree_remove_nothing_and_say_so(
    shop: Shop, lack: str, said: dict[str, Any]
) -> None:
    shop.take(*api_pages(shop, range(30), total=30, average=4.7), "--name", "B")
    shop.take(*api_pages(shop, range(2, 33), **{"total": 31, "average": 4.7} | said))
    assert len(shop.reviews) == 33
    assert f" stars remove nothing: {lack}" in shop.output().out


ROUNDED = {4.7: True, 4.6: True, 4.65: True, 4.6503: True, 4.8: False, 4.656: False}


@pytest.mark.parametrize("average", ROUNDED)
def test_the_average_of_pages_may_be_rounded_to_any_figure(shop: Shop, average: float) -> None:
    """Of 20 reviews 7 have four stars, so that the mean is 4.65."""
    shop.take(*api_pages(shop, range(20), total=20, average=average), "--name", "B")
    assert ("remove nothing: their mean is 4.650\n" in shop.output().out) is not ROUNDED[average]


def test_a_page_with_one_review_with_or_without_stars_is_complete(shop: Shop) -> None:
    for n, average, stars in ((1, 5, "FIVE"), (2, 0, "STAR_RATING_UNSPECIFIED")):
        content = page([api_item(n, starRating=stars)], totalReviewCount=1, averageRating=average)
        shop.take(shop.file("one", content), "--name", "B", "--allow-removals")
    assert not shop.reviews and "remove nothing" not in shop.output().out


def test_after_a_move_reviews_with_the_same_author_moment_and_text_are_the_stored_ones(shop: Shop) -> None:
    old = takeout(shop.root / "old.zip", [item(n) for n in range(9)])
    shop.take(old)
    moved = [item(n, place="22", name=f"accounts/1/locations/22/reviews/New{n}") for n in range(2, 12)]
    moved[0] |= {"comment": "another"}  # so that it is another one
    new = takeout(shop.root / "new.zip", moved, place="22")
    assert shop.run(new) == EXIT_BAD_DATA
    shop.take(new, "--location", "22", "--location", PLACE)
    ids = {takeout_id(n) for n in range(9)} | {"google-New2", "google-New9", "google-New10", "google-New11"}
    assert set(shop.reviews) == ids
    before = shop.files()
    shop.take(new)
    shop.take(old)
    assert set(shop.reviews) == ids
    entry = shop.state["reviews"][takeout_id(3)]
    assert (entry["location"], entry["seen"]) == ("22", moment(11, fraction=""))
    shop.take(new)
    assert shop.files()["reviews.json"] == before["reviews.json"]


def test_with_a_lost_state_another_location_is_asked_for_and_the_same_is_not(shop: Shop) -> None:
    archive = takeout(shop.root / "a.zip", [item(n) for n in range(5)])
    shop.take(archive)
    (shop.data / "import-state.json").unlink()
    other = takeout(shop.root / "b.zip", [item(n, place="22") for n in range(50, 55)], place="22")
    assert shop.run(other, shop.page(api_item(0, name=None)), "--zone", ZONE) == EXIT_BAD_DATA
    assert 'its own:\n  22 "Bó\'s Bakarí": 5 reviews here, 0 stored\nName' in shop.output().err
    renamed = item(0, reviewer={"displayName": "Eva"})  # whose id alone is known
    shop.take(written(shop.root / "q", page([renamed])))
    shop.take(archive)
    assert len(shop.reviews) == 5


def test_a_table_of_googles_reviews_says_nothing_of_locations(shop: Shop) -> None:
    shop.take(shop.csv(["Ann", "5", "2024-01-02", ""]), "--name", "B", "--source", "google")
    archives = [takeout(shop.root / f"{n}.zip", [item(each) for each in range(5 + n)]) for n in (0, 1)]
    shop.take(archives[0])
    assert len(shop.reviews) == 6
    other = Shop(shop.root / "other")
    for file in (archives[0], shop.csv(["Ann", "5", "2024-01-02", ""]), archives[1]):
        other.take(file, *(["--source", "google"] if file.suffix == ".csv" else []))
    assert len(other.reviews) == 7  # the row has no location, although one is known


EARLIER = Path(__file__).parent / "data_of_an_earlier_version"


def test_a_directory_of_an_earlier_version_is_taken_over_and_what_it_had_lost_returns(shop: Shop) -> None:
    """It was made of the parts of an export, one by one, pages, a table, an edit by hand and an erasure."""
    shutil.copytree(EARLIER, shop.data)
    before = shop.reviews
    first, second = parts(shop.root, [item(n) for n in reversed(range(30))], 2, "takeout-20250201T101112Z")
    pages = written(shop.root / "p.json", page([api_item(n) for n in range(27, 32)]))
    rows = [["Ann", "5", "2024-01-02", "Good"], ["bob@example.com", "4", "2024-01-03", "Fine"]]
    assert shop.run(shop.csv(*rows), pages, "--source", "fb") == EXIT_SUCCESS
    (bob,) = (id for id, review in before.items() if review["author"] == "bob@example.com")
    assert shop.reviews == before | {bob: before[bob] | {"author": "bob"}}
    for archive in (second, first, second):
        assert shop.run(archive) == EXIT_SUCCESS
    ids = {takeout_id(n) for n in range(30) if n != 26} | {"google-AbFvOq0030", "google-AbFvOq0031"}
    assert {id for id in shop.reviews if id.startswith("google")} == ids
    assert not {takeout_id(n) for n in range(10)} & before.keys()
    assert shop.reviews[takeout_id(25)]["text"] == "mended"
    after = shop.files()
    assert shop.run(first, second) == EXIT_SUCCESS
    assert shop.files() == after


def test_a_missing_reply_clears_only_one_that_is_older_than_the_export(shop: Shop) -> None:
    reply = {"comment": "Takk", "updateTime": moment(30)}
    shop.take(written(shop.root / "a", page([item(1, reviewReply=reply)])), "--name", "B")
    shop.take(written(shop.root / "b", page([item(1), item(30)])))
    assert shop.reviews[takeout_id(1)]["owner_reply"]
    shop.take(written(shop.root / "c", page([item(1), item(50)])))
    assert shop.reviews[takeout_id(1)]["owner_reply"] is None
    assert [*shop.state["earlier"]] == [takeout_id(1)]  # what a kill has to restore
    shop.take(shop.root / "a")
    assert shop.reviews[takeout_id(1)]["owner_reply"] is None


def test_what_was_changed_by_hand_stays(shop: Shop) -> None:
    replies = [{"comment": text, "updateTime": moment(day)} for text, day in (("Takk", 5), ("Bless", 9))]
    shop.take(shop.page(item(1, reviewReply=replies[0]), item(2), item(3)), "--name", "B")
    reply = shop.reviews[takeout_id(1)]["owner_reply"]
    by_hand = {"text": "mended", "author_avatar_url": "https://a.example/hand", "mine": [1]}
    shop.edit(takeout_id(1), **by_hand, owner_reply=reply | {"by": "Bo"})
    shop.edit(takeout_id(2), text=None)
    shop.edit(takeout_id(3), text="new")
    photo = {"displayName": "Ósk Nr1", "profilePhotoUrl": "https://a.example/1"}
    old = item(3, comment="old", updateTime=moment(4))
    new = [item(n, comment="new", starRating="ONE", updateTime=moment(9)) for n in (1, 2, 3)]
    new[0] |= {"reviewReply": replies[1], "reviewer": photo}
    shop.take(shop.page(old, name="old"), shop.page(*new), "--avatars")
    first, second, third = (shop.reviews[takeout_id(n)] for n in (1, 2, 3))
    assert {key: first[key] for key in by_hand} == by_hand and first["rating"] == 1
    assert first["owner_reply"] == {"text": "Bless", "date": "2025-01-10T12:15:00-08:00", "by": "Bo"}
    assert (second["text"], third["text"]) == (None, "new")
    line = digest("google", takeout_id(1).removeprefix("google-"))
    for fields in ([("author_avatar_url", 1), ("text", 1), ("text", 2)], [("text", 2)]):
        kept = [line for line in shop.output().out.splitlines() if "by hand" in line]
        assert kept == [f"changed by hand and kept: {key} of {takeout_id(n)}" for key, n in fields]
        written(shop.data / "suppressed.txt", line)
        shop.take(shop.page(*new))


def test_short_names_and_avatars_are_remembered_until_they_are_taken_back(shop: Shop) -> None:
    photo = "https://a.example/1"
    people = [item(n, reviewer={"displayName": f"Ósk Nr{n}", "profilePhotoUrl": photo}) for n in range(3)]
    shop.take(shop.page(people[0]), "--name", "B", "--short-names", "--avatars")
    shop.output()
    shop.take(shop.page(*people[:2]))
    assert shop.output().out.startswith("as said earlier: short names; pictures of customers\n")
    shown = {(each["author"], each["author_avatar_url"]) for each in shop.reviews.values()}
    assert shown == {("Ósk N.", photo)}
    shop.take(shop.page(*people), "--no-short-names", "--no-avatars")
    assert (shop.state["names"], shop.state["avatars"]) == ("full", "")
    assert {each["author"] for each in shop.reviews.values()} == {f"Ósk Nr{n}" for n in range(3)}
    assert "author_avatar_url" not in shop.reviews[takeout_id(2)]
    shop.take(shop.page(item(2, reviewer={"displayName": "Eva"})))  # for which Google has no time
    assert shop.reviews[takeout_id(2)]["author"] == "Eva"
    shop.take(shop.page(people[0]), "--short-names", "--avatars", "--location", PLACE)
    shop.output()
    shop.take(shop.page(people[0]), "--forget-settings")
    assert "earlier" not in shop.output().out
    assert [shop.state[key] for key in ("names", "avatars", "locations")] == ["full", "", []]


def test_without_the_state_ids_stay_and_nothing_is_removed_in_that_run(shop: Shop) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(5)]))
    (shop.data / "import-state.json").unlink()
    assert shop.run("--count") == EXIT_SUCCESS  # which makes a state, too
    answered = item(1, reviewReply={"comment": "Takk"})
    later = takeout(shop.root / "b.zip", [answered, *(item(n) for n in range(2, 6))])
    shop.take(later, shop.csv(["Ann", "5", "2024-01-02", ""]), "--source", "fb")
    assert len(shop.reviews) == 7 and shop.reviews[takeout_id(1)]["owner_reply"]["text"] == "Takk"
    shop.take(later)
    assert {takeout_id(n) for n in range(1, 6)} < set(shop.reviews) and len(shop.reviews) == 6


def test_only_what_comes_from_the_location_is_removed(shop: Shop) -> None:
    shop.take(shop.csv(["Ann", "5", "2024-01-02", ""]), "--name", "B", "--source", "fb")
    two = takeout_files([item(n, place="22") for n in range(9)], place="22")
    two |= takeout_files([item(n) for n in range(20, 29)])
    archive = zipped(shop.root / "a.zip", two)
    shop.take(archive, "--location", "22")
    shop.take(archive, "--location", PLACE, "--location", "22")
    (shop.data / "import-state.json").unlink()
    for _ in range(2):
        shop.take(archive, "--location", PLACE)
    nameless = takeout_files([api_item(n, name=None) for n in range(29, 32)])
    shop.take(zipped(shop.root / "b.zip", nameless))
    assert len(shop.reviews) == 1 + 9 + 9 + 3
    for files in (nameless, takeout_files([item(1)], title="")):  # neither says whose reviews they are
        new = zipped(shop.root / "c.zip", files)
        assert Shop(shop.root / "new").run(new, "--zone", ZONE) == EXIT_BAD_DATA
        assert shop.output().err.startswith("The files do not say what the business is called.")


def test_several_locations_are_never_mixed(shop: Shop) -> None:
    two = takeout_files([item(1), item(9)]) | takeout_files([item(2, place="22")], place="22", title="Twó")
    both, archive = ("--location", PLACE, "--location", "22"), zipped(shop.root / "a.zip", two)
    assert shop.run(archive, "--zone", ZONE) == EXIT_BAD_DATA
    told = shop.output().err
    assert told.startswith("Of which location") and "The files do not say" not in told
    for flags in (["--location", "no"], ["--location=no=where"]):
        assert shop.run(archive, *flags, "--zone", ZONE) == EXIT_BAD_DATA
        assert f" {archive} --zone {ZONE} --data {shop.data} --location YOUR-LOCATION\n" in shop.output().err
    assert shop.run(archive, "--zone", ZONE, *both) == EXIT_BAD_DATA
    named = "The files do not say what the business is called.\n  Bó's Bakarí\n  Twó\nSay it once.\n"
    assert shop.output().err.startswith(named)
    shop.take(archive, "--location", "twó")
    assert list(shop.reviews) == [takeout_id(2)]
    assert shop.document["business"]["name"] == "Twó"
    assert shop.run(written(shop.root / "b", page([item(1)]))) == EXIT_BAD_DATA
    before = shop.files()
    untitled = shop.page(item(3, place="33"))
    shop.output()
    assert shop.run(archive, untitled, "--location", PLACE) == EXIT_BAD_DATA
    assert shop.output().err.splitlines()[1:4] == [
        f'  {PLACE} "Bó\'s Bakarí": 2 reviews here, 0 stored',
        "  22 'Twó': 1 reviews here, 1 stored",
        "  33 '': 1 reviews here, 0 stored",
    ]
    assert shop.files() == before
    shop.take(archive, *both)
    assert len(shop.reviews) == 3
    shop.take(archive)  # both are known from now on
    shop.take(shop.page(item(4, place="22")), "--location", "twó", "--location", "bó's bakarí")


def test_rows_without_ids_keep_theirs_when_they_are_edited(shop: Shop) -> None:
    def bring(*texts: str) -> None:
        rows = (["Ann", "5", "2024-01-01", text] for text in texts)
        shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")

    bring("one")
    (first,) = shop.reviews
    bring("two", "one", "one")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {first: "one", f"{first}-2": "two"}
    bring("two", "edited")
    texts = {id: review["text"] for id, review in shop.reviews.items()}
    assert texts == {first: "edited", f"{first}-2": "two"}
    assert shop.run("--forget", first) == EXIT_SUCCESS
    bring("edited", "two", "or this is the one")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {f"{first}-2": "two"}
    bring("edited")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {f"{first}-2": "two"}


def test_a_row_of_which_only_the_stars_changed_keeps_its_id(shop: Shop) -> None:
    rows = [["Ann", "5", "2024-01-01", text] for text in "abc"]
    shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")
    before = {review["text"]: id for id, review in shop.reviews.items()}
    changed = [[*row[:1], "4", *row[2:]] for row in rows if before[row[3]] != min(before.values())]
    shop.take(shop.csv(*changed), "--source", "fb")
    assert {review["text"]: id for id, review in shop.reviews.items()} == before
    assert sorted(review["rating"] for review in shop.reviews.values()) == [4, 4, 5]


def test_without_the_state_rows_are_told_apart_by_what_is_stored(shop: Shop) -> None:
    rows = [["Ann", stars, "2024-01-01", ""] for stars in "345"]
    shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")
    before = {str(review["rating"]): id for id, review in shop.reviews.items()}
    (shop.data / "import-state.json").unlink()
    shop.take(shop.csv(*(row for row in rows if before[row[1]] != min(before.values()))), "--source", "fb")
    assert {str(review["rating"]): id for id, review in shop.reviews.items()} == before
    assert "by hand" not in shop.output().out


def test_a_row_with_an_id_never_takes_that_of_one_without(shop: Shop) -> None:
    rows = (["Ann", "5", "2024-01-01", *row] for row in (["", "good"], ["", "mended"], ["7", "good"]))
    first, *later = rows
    header = "author rating date id text"
    shop.take(shop.csv(first, header=header), "--name", "B", "--source", "fb")
    (id,) = shop.reviews
    shop.take(shop.csv(*later, header=header), "--source", "fb")
    assert {id: each["text"] for id, each in shop.reviews.items()} == {id: "mended", "fb-7": "good"}


def test_what_the_daemon_would_not_serve_is_skipped_and_told_once(shop: Shop) -> None:
    rows = (["Ann", "5", f"2024-01-0{n}", url] for n, url in enumerate(("x", "https://[", "https://x"), 1))
    shop.take(shop.csv(*rows, header="author rating date source_url"), "--name", "B", "--source", "fb")
    told = shop.output().out
    assert "\nfaulty, skipped: 2\n" in told and len(shop.reviews) == 1
    assert 'a.csv line 3: source_url: "https://[" is not an http or https URL\n' in told


def test_a_review_takes_its_location_from_an_older_export_if_it_has_none(shop: Shop) -> None:
    shop.take(shop.page(*(api_item(n, name=None) for n in (1, 9))), "--name", "B")
    shop.take(shop.page(api_item(1)))
    assert shop.state["reviews"]["google-AbFvOq0001"]["location"] == PLACE


def test_a_text_at_two_sources_is_named_once(shop: Shop) -> None:
    long = "The best cinnamon buns of all, says Ann!"  # 40 characters
    shop.take(shop.page(item(1, comment=long), item(2, comment=long)), "--name", "B")
    assert "the same text" not in shop.output().out
    rows = [["Ann", "5", "2024-01-01", text] for text in (long.upper(), long[:-1])]
    shop.take(shop.csv(rows[0]), "--source", "fb")
    (id,) = (id for id, each in shop.reviews.items() if each["text"] == long.upper())
    named = f"the same text at several sources: {id}, {takeout_id(1)}, {takeout_id(2)}"
    told = [line for line in shop.output().out.splitlines() if line.startswith("the same text")]
    assert told == [f"{named}; --forget ID removes one for good"]
    shop.take(shop.csv(rows[0]), "--source", "fb")
    shop.take(shop.csv(*rows), shop.page(item(3, comment=long[:-1])), "--source", "fb")  # 39 characters
    assert "the same text" not in shop.output().out


def test_a_forgotten_review_stays_away_in_both_forms(shop: Shop) -> None:
    archive = takeout(shop.root / "t-001.zip", [item(n) for n in range(5)])
    pages = written(shop.root / "p.json", page([api_item(n) for n in range(8)]))
    shop.take(archive)
    reviews = shop.files()["reviews.json"]
    assert shop.run("--forget", takeout_id(3), "--dry-run") == EXIT_SUCCESS
    assert takeout_id(3) in shop.reviews and "suppressed.txt" not in shop.files()
    assert shop.run("--forget", takeout_id(3)) == EXIT_SUCCESS
    line = digest("google", takeout_id(3).removeprefix("google-"))
    assert shop.files()["suppressed.txt"].decode() == f"{line}\n"
    assert f"\nsuppressed.txt: {line}\n" in shop.output().out
    assert takeout_id(3) not in shop.files()["import-state.json"].decode()
    for paths in ([pages], [archive, pages]):
        shop.take(*paths)
        assert "Ósk Nr3" not in shop.files()["reviews.json"].decode() + shop.output().out
    assert len(shop.reviews) == 7
    state = shop.files()["import-state.json"].decode()
    assert "Nr" not in state
    assert [*shop.state["suppressed_aliases"]] == sorted(shop.state["suppressed_aliases"])
    shop.output()
    assert shop.run("--forget", "nobody") == EXIT_BAD_DATA
    assert shop.output().err.startswith('No review has the id "nobody".\n')
    written(shop.data / "reviews.json", reviews)  # a copy from before
    (shop.data / "import-state.json").unlink()
    shop.take(shop.page(item(4)))
    assert set(shop.reviews) == {takeout_id(n) for n in (0, 1, 2, 4)}


def test_an_author_is_suppressed_by_name_whatever_is_shown(shop: Shop) -> None:
    items = [item(n) for n in range(5)]
    pages = shop.page(*items)
    shop.take(takeout(shop.root / "a.zip", items), "--short-names")
    shop.take(takeout(shop.root / "b.zip", [*items[1:], item(5)]))
    suppressed = shop.data / "suppressed.txt"
    lines = [f"author {digest('google', f'ósk nr{n}')}" for n in (0, 3)]  # of whom one has left already
    written(suppressed, "\n".join(["# who asked for it", "", *lines]))
    for other in (item(9), item(3, reviewer={"displayName": "Ósk Önnur"})):
        shop.take(shop.page(other))
        assert takeout_id(3) not in shop.reviews
    written(suppressed, "Ósk Nr4\n")
    assert shop.run(pages) == EXIT_BAD_DATA


@pytest.mark.parametrize("name", ["Groß", "GROSS", "  groß "])
def test_an_author_is_forgotten_by_name_in_any_case(shop: Shop, name: str) -> None:
    pages = shop.page(item(1), item(2, reviewer={"displayName": "Groß"}))
    shop.take(pages, "--name", "B")
    before = shop.files()
    for flags in (["--dry-run"], []):
        assert shop.files() == before
        assert shop.run("--forget-author", name, *flags) == EXIT_SUCCESS
        assert "kept away: Groß, 2025-01-03, “Kom aftur, í 2. skipti”" in shop.output().out
    assert shop.files()["suppressed.txt"].decode() == f"author {digest('google', 'gross')}\n"
    shop.take(pages)
    assert set(shop.reviews) == {takeout_id(1)}
    assert "matches nobody" not in shop.output().out


def test_an_author_at_several_sources_or_under_a_short_name_is_asked_for(shop: Shop) -> None:
    both = [
        item(n, reviewer={"displayName": f"Ann {name}"}) for n, name in ((1, "Roe"), (2, "Ray"), (3, "Lee"))
    ]
    shop.take(written(shop.root / "p", page(both)), "--name", "B", "--short-names")
    shop.take(shop.csv(["Ann Roe", "5", "2024-01-01", ""]), "--source", "fb")
    flags, asks = ["--source", "google"], 'At which source are the reviews of "{}" to be kept away?\n'
    sources, alike = asks.format("Ann R.") + "  fb\n  google\nName", '2 authors are shown as "Ann R.".\n'
    for name, more, told in (
        ("Ann R.", [], sources),
        ("Ann R.", flags, alike),
        ("Bo", [], asks.format("Bo")),
    ):
        assert shop.run("--forget-author", name, *more) == EXIT_BAD_DATA
        assert shop.output().err.startswith(told)
    assert shop.run("--forget-author", "ann lee") == EXIT_SUCCESS  # as exports have it
    assert shop.run("--forget-author", "ann roe", "--source", "FB") == EXIT_SUCCESS
    assert set(shop.reviews) == {takeout_id(1), takeout_id(2)}
    for _ in range(2):
        shop.output()
        assert shop.run("--forget-author", "Bo", "--source", "google") == EXIT_SUCCESS
    assert len(shop.files()["suppressed.txt"].splitlines()) == 3
    told = [line for line in shop.output().out.splitlines() if "matches nobody" in line]
    assert told == [f"this line of suppressed.txt matches nobody: author {digest('google', 'bo')}"]


def test_a_line_that_has_met_its_review_is_told_no_more(shop: Shop) -> None:
    rows = [[name, "5", "2024-01-01", name] for name in ("Ann", "Bo", "Cy")]
    shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")
    for author in ("Ann", "Cy"):
        id = next(id for id, review in shop.reviews.items() if review["author"] == author)
        assert shop.run("--forget", id) == EXIT_SUCCESS
    shop.take(shop.csv(*rows), "--source", "fb")
    assert shop.only()["author"] == "Bo" and "matches nobody" not in shop.output().out
    written(shop.data / "suppressed.txt", f"author {digest('fb', 'Bo')}\n")  # who is folded to bo
    shop.take(shop.csv(rows[1]), "--source", "fb")
    assert f"matches nobody: author {digest('fb', 'Bo')}" in shop.output().out


ADDRESSES = ["{}", "/reviews/{}", "https://x.example.com/reviews/{}", "http://[::1]:80/reviews/{}?utm=1#top"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_review_is_forgotten_by_its_address_as_the_browser_has_it(shop: Shop, address: str) -> None:
    row = ["ä/reviews/1 %41?b", "Ann", "5", "2024-01-02", "fb"]
    path = shop.csv(row, header="id author rating date source")
    encoded = "fb-%C3%A4%2Freviews%2F1%20%2541%3Fb"
    for written_as in ("fb-ä/reviews/1 %41?b", encoded, encoded.replace("%C3%A4", "ä")):
        shop.take(path, "--name", "B")
        assert set(shop.reviews) == {"fb-ä/reviews/1 %41?b"}
        if "?" in written_as and "#" in address:
            continue  # a browser encodes it
        assert shop.run("--forget", address.format(written_as)) == EXIT_SUCCESS
        assert not shop.reviews
        (shop.data / "suppressed.txt").unlink()


NAMES_SHOWN = {
    "bob@example.com": "bob",
    "Eve Roe <eve@example.com>": "Eve Roe",
    "(Xal@b.c) di@example.com": "Xal",
    **{
        name: name
        for name in ("eve at home", "@handle.example.com", "ann@home", "cy@home.", "a@b@example.com")
    },
}


def test_a_name_that_is_an_e_mail_address_is_what_stands_before_the_at(shop: Shop) -> None:
    rows = [[name, "5", f"2024-01-{n + 1:02}", ""] for n, name in enumerate(NAMES_SHOWN)]
    google = shop.page(item(1, reviewer={"displayName": "Joe.Q@mail.example.org"}))
    path = shop.csv(*rows)
    shop.take(path, google, "--name", "B", "--source", "fb")
    told = "\nauthors named by an e-mail address, of which what stands before the @ is taken: 4\n"
    assert told in shop.output().out
    assert {review["author"] for review in shop.reviews.values()} == {*NAMES_SHOWN.values(), "Joe.Q"}
    before = shop.files()
    shop.take(path, google, "--source", "fb")
    assert shop.files() == before
    assert shop.run("--forget-author", "bob@example.com", "--source", "fb") == EXIT_SUCCESS
    assert "bob" not in {review["author"] for review in shop.reviews.values()}


def test_rows_of_one_author_and_day_are_told_apart_in_time_that_grows_with_their_number(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stored row is looked at a few times, not once for each other row."""
    rows = [["Ann", "5", "2024-01-01", f"text {n}"] for n in range(300)]
    shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")
    edited = [[*row[:3], f"edited {row[3]}"] for row in rows[:290]] + rows[290:]
    looked, said_by = list[str](), Ledger._content_digests
    monkeypatch.setattr(Ledger, "_content_digests", lambda self, id: looked.append(id) or said_by(self, id))
    shop.take(shop.csv(*edited), "--source", "fb")
    assert len(shop.reviews) == 300
    assert len(looked) <= 4 * 300


IDS, AUTHORS, STARS = (st.sampled_from(values) for values in (["1", "2", ""], ["Ann Lee", "Bo"], "45"))
TEXTS = st.text("ab é\n\"';,", max_size=4)


@given(
    rows=st.lists(st.tuples(IDS, AUTHORS, STARS, TEXTS), min_size=1, max_size=8),
    seed=st.randoms(use_true_random=False),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_the_order_of_rows_does_not_matter_and_nothing_is_made_up(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str, str]], seed: Random
) -> None:
    shop, other = Shop(tmp_path_factory.mktemp("rows")), Shop(tmp_path_factory.mktemp("rows"))
    table = [[id, author, stars, "2024-01-01", clean(text)] for id, author, stars, text in rows]
    shuffled = seed.sample(table, len(table))
    for each, order in ((shop, table), (other, shuffled)):
        path = each.csv(*order, header="id author rating date text")
        each.take(path, "--name", "B", "--source", "fb")
        once = each.files()
        each.take(path, "--source", "fb")
        assert each.files() == once
    assert shop.files() == other.files()
    said = {(author, int(stars), text or None) for _, author, stars, _, text in table}
    assert said >= {(each["author"], each["rating"], each["text"]) for each in shop.reviews.values()}
    assert len(shop.reviews) == len({row[0] or tuple(row) for row in table})


def test_the_location_that_was_named_is_remembered_and_others_are_named(shop: Shop) -> None:
    both = takeout_files([item(1)]) | takeout_files([item(2, place="22")], place="22", title="Twó")
    shop.take(zipped(shop.root / "a.zip", both), "--location", "twó")
    assert "not imported" not in shop.output().out
    third = item(3, place="33", starRating=None), item(3, place="33")
    first, more = (both | takeout_files([each], place="33", title="Þrjú") for each in third)
    assert shop.run(zipped(shop.root / "b.zip", first)) == EXIT_SUCCESS
    told = shop.output().out
    assert (
        told.startswith(f"as said earlier: zone {ZONE}; location 22\n")
        and "\nnot imported, since --location has not named it: 33 'Þrjú': 1" in told
    )
    assert set(shop.reviews) == {takeout_id(2)}
    shop.take(shop.root / "b.zip", *(word for each in ("22", "33") for word in ("--location", each)))
    assert set(shop.reviews) == {takeout_id(2)}  # there are no stars yet
    shop.output()
    assert shop.run(zipped(shop.root / "c.zip", more)) == EXIT_SUCCESS
    assert shop.output().out.startswith(f"as said earlier: zone {ZONE}; location 22, 33\n")
    assert set(shop.reviews) == {takeout_id(2), takeout_id(3)}


def test_ratings_without_stars_are_one_line(shop: Shop) -> None:
    rows = [[f"Nr{n}", "0", "2024-01-02", ""] for n in range(5)]
    shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")
    assert shop.output().out.startswith("without stars, skipped: 5 (Nr0, Nr1, Nr2, …)\n")
    assert shop.state["reviews"] == {}
    shop.take(shop.csv(*rows), "--source", "fb", "--verbose")
    assert "without stars, skipped: 5 (Nr0, Nr1, Nr2, Nr3, Nr4)\n" in shop.output().out
