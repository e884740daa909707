"""Which reviews an import stores, and their content: plain examples of rules 1 to 6 and 10.

`test_import_year.py` holds the newest time, the presence, the brake, and the ids of both Google's formats.
"""

import json
import re
import time
from pathlib import Path

import pytest
from lab.export_lab import (
    PLACE,
    Shop,
    api_item,
    dated,
    item,
    moment,
    page,
    takeout_files,
    takeout_id,
)

from reviewslib.terminal import EXIT_BAD_DATA, EXIT_SUCCESS

# ---- Rule 1: whose fields ----


def test_edited_fields_of_the_import_are_written_anew_and_the_file_kept(
    shop: Shop,
) -> None:
    archive = shop.takeout(9, range(5))
    shop.take(archive)
    shop.edit(takeout_id(2), text="not bad", rating=5, mine={"a": [1]})
    edited = shop.files()["reviews.json"]
    told = shop.told(archive)
    review = shop.reviews[takeout_id(2)]
    assert (review["text"], review["mine"]) == ("Kom aftur, í 2. skipti", {"a": [1]})
    (copy,) = [name for name in shop.files() if "edited" in name]
    assert shop.files()[copy] == edited
    assert (
        "reviews.json was edited; exports have overwritten fields of 1 reviews: Ósk Nr2"
        in told
    )
    assert f"The edited file is kept as {shop.data / copy}" in told
    assert "was edited" not in shop.told(archive)


def test_the_newest_export_has_the_name_and_the_newest_update_the_words(
    shop: Shop,
) -> None:
    newest = {"updateTime": moment(8), "comment": "Later", "starRating": "ONE"}
    shop.take(shop.takeout(9, [item(1, **newest)]))
    shop.take(shop.takeout(12, [item(1, reviewer={"displayName": "Married"})]))
    taken = {"author": "Married", "text": "Later", "rating": 1}
    assert shop.only().items() >= taken.items()


@pytest.mark.parametrize("is_lost", [False, True])
def test_reviews_with_ids_of_the_owners_own_stay(shop: Shop, is_lost: bool) -> None:
    shop.take(shop.takeout(9, range(5)))
    own = {
        "id": "mine",
        "author": "Eve",
        "rating": 4,
        "date": "1985-05-05",
        "source": "google",
    }
    shop.edit(**own)
    if is_lost:
        shop.lose()
    shop.take(shop.takeout(12, range(1, 6)))
    assert shop.reviews["mine"] == own


def test_short_names_and_pictures_are_as_the_owner_said_last(shop: Shop) -> None:
    reviewer = {
        "displayName": "Camille van Roux",
        "profilePhotoUrl": "https://p.example/1",
    }
    pages = shop.page(
        item(1, reviewer=reviewer), item(2, reviewer={"displayName": "a google user"})
    )
    shop.take(pages, "--name", "B", "--short-names", "--avatars")
    shop.take(pages)
    assert {review["author"] for review in shop.reviews.values()} == {
        "Camille R.",
        "a google user",
    }
    assert shop.reviews[takeout_id(1)]["author_avatar_url"] == "https://p.example/1"
    shop.take("--no-short-names", "--no-avatars", pages)
    assert shop.reviews[takeout_id(1)]["author"] == "Camille van Roux"
    assert "author_avatar_url" not in shop.reviews[takeout_id(1)]


NAMES = {"ann@example.com": "ann", "Ann <ann@example.com>": "Ann"}
NAMES |= {name: name for name in ("Ann@home", "@ann", "a@b@c.d")}


@pytest.mark.parametrize(("name", "taken"), NAMES.items())
def test_a_name_is_taken_without_its_e_mail_address(
    shop: Shop, name: str, taken: str
) -> None:
    shop.take(shop.page(item(1, reviewer={"displayName": name})), "--name", "B")
    assert shop.only()["author"] == taken


# ---- Rule 2: a review keeps its id ----


def test_two_reviews_of_one_second_are_two_with_ids_of_one_format(shop: Shop) -> None:
    same = {"createTime": moment(1), "updateTime": moment(1)}
    shop.take(shop.takeout(9, [item(n, **same) for n in (1, 2)]))
    shop.take(shop.page(*(api_item(n, **same) for n in (2, 1))))
    assert set(shop.reviews) == {takeout_id(1), takeout_id(2)}


SAME = [
    (PLACE, "Ósk Nr1", 1),
    (PLACE, "Ann", 1),
    ("22", "Ósk Nr1", 1),
    ("22", "Ann", 2),
]


@pytest.mark.parametrize(("place", "author", "number"), SAME)
def test_a_moment_is_one_review_in_a_location_and_of_an_author_in_two(
    shop: Shop, place: str, author: str, number: int
) -> None:
    shop.take(shop.page(item(1)), "--name", "B")
    name = f"accounts/9/locations/{place}/reviews/x"
    moved = api_item(
        7, name=name, createTime=moment(1), reviewer={"displayName": author}
    )
    locations = [f"--location={known}" for known in {PLACE, place}]
    shop.take(shop.page(moved), *locations)
    assert len(shop.reviews) == number


@pytest.mark.parametrize(("day", "number"), [(5, 19), (20, 20)])
def test_googles_own_exports_replace_rows_of_google_in_tables(
    shop: Shop, day: int, number: int
) -> None:
    rows = [["Ósk Nr1", "5", moment(1), "Hi"], ["Ósk Nr2", "5", moment(2)[:10], "Hi"]]
    table = dated(shop.csv(*rows, ["Ann", "1", "2025-01-01", "fake"]), moment(day))
    shop.take(table, "--name", "B", "--source", "google")
    ids = set(shop.reviews)
    shop.take(shop.takeout(9, range(1, 20)))
    assert len(shop.reviews) == number, (
        "the one that Google does not have stays only in a newer table"
    )
    assert "Hi" not in shop.texts() and len(ids & set(shop.reviews)) == number - 17
    shop.lose()
    assert "rows of google in tables, left out: 3\n" in shop.told(
        table, "--source", "google"
    )


def ids_of_rows(
    shop: Shop, *rows: list[str], header: str = "author rating date text"
) -> dict[str, str]:
    """The ids by text, after a table with these rows."""
    shop.take(shop.csv(*rows, header=header), "--name", "B", "--source", "fb")
    return {review["text"]: id for id, review in shop.reviews.items()}


@pytest.mark.parametrize("is_lost", [False, True])
def test_among_rows_of_one_author_and_day_a_text_keeps_its_id(
    shop: Shop, is_lost: bool
) -> None:
    def ids(*texts: str) -> dict[str, str]:
        return ids_of_rows(shop, *(["Ann", "5", "2024-01-02", text] for text in texts))

    before = ids("first", "second", "third")
    if is_lost:
        shop.lose()
    after = ids("third", "second", "edited")
    assert set(before.values()) == {
        before["first"] + number for number in ("", "-2", "-3")
    }
    assert after == {
        "edited": before["first"],
        "second": before["second"],
        "third": before["third"],
    }
    assert ids("third")["third"] == before["third"]


def test_rows_of_google_are_taken_until_an_export_of_google_comes(shop: Shop) -> None:
    for rows in (ROWS[:1], ROWS):
        shop.take(shop.csv(*rows), "--name", "B", "--source", "google")
    assert shop.texts() == {"Good", "Fine"}
    shop.take(shop.takeout(9, [1]))
    assert "rows of google in tables, left out: 2" in shop.told(
        shop.csv(*ROWS), "--source", "google"
    )


def test_the_days_of_two_tools_may_be_one_apart(shop: Shop) -> None:
    days = {
        "2024-01-05": 1,
        "2024-01-06T01:00:00Z": 1,
        "2024-01-05 ": 1,
        "2024-01-07": 2,
        "2024-01-03": 3,
    }
    for day, number in days.items():
        ids_of_rows(shop, ["Ann", "5", day, "Good"])
        assert len(shop.reviews) == number


WITH_IDS = "id author rating date text"
ROWS = [["Ann", "5", "2024-01-02", "Good"], ["Ann", "5", "2024-01-02", "Fine"]]


def test_a_row_with_an_id_and_one_without_are_two_reviews_of_one_table(
    shop: Shop,
) -> None:
    stars = []
    for _ in range(2):
        ids_of_rows(
            shop, ["7", *ROWS[0]], ["", "Ann", "4", *ROWS[0][2:]], header=WITH_IDS
        )
        stars.append({id: review["rating"] for id, review in shop.reviews.items()})
    assert sorted(stars[0].values()) == [4, 5] and stars[0] == stars[1]


def test_reviews_of_a_table_that_gains_or_loses_an_id_column_are_the_same(
    shop: Shop,
) -> None:
    with_ids = [[str(n), *row] for n, row in enumerate(ROWS, 7)]
    before = ids_of_rows(shop, *ROWS)
    for _ in range(2):
        assert (
            ids_of_rows(shop, *with_ids, header=WITH_IDS)
            == ids_of_rows(shop, *ROWS)
            == before
        )
    ids_of_rows(shop, *with_ids, ["9", *ROWS[0]], header=WITH_IDS)
    assert set(shop.reviews) == {*before.values(), "fb-9"}


@pytest.mark.slow
@pytest.mark.parametrize("days", [1, 2])
def test_rows_are_identified_in_time_that_grows_with_their_number(
    shop: Shop, days: int
) -> None:
    def seconds(number: int) -> float:
        texts = ("Good" if n % 2 else f"Good {n}" for n in range(number))
        rows = [
            ["Anonymous", "5", f"2024-01-0{n % days + 1}", text]
            for n, text in enumerate(texts)
        ]
        path = shop.csv(*rows)
        start = time.process_time()
        shop.take(path, "--name", "B", "--source", f"s{number}")
        return time.process_time() - start

    seconds(100)
    assert seconds(4000) < 30 * seconds(400)


def test_the_order_of_files_in_a_command_makes_no_difference(shop: Shop) -> None:
    tables = [
        dated(
            shop.csv(["Ann", stars, "2024-01-02", text], name=f"{text}.csv"),
            moment(day),
        )
        for day, stars, text in ((5, "5", "old"), (9, "4", "new"))
    ]
    exports = [
        shop.takeout(9, [item(1)]),
        dated(shop.page(api_item(1)), moment(12)),
        *tables,
    ]
    results = []
    for number, files in enumerate((exports, exports[::-1])):
        other = Shop(shop.root / f"{number}")
        other.take(*files, "--name", "B", "--source", "fb")
        results.append((other.document, other.state))
    assert results[0] == results[1]


# ---- Rule 3: the time of an export ----


def test_a_takeout_without_a_stamp_is_as_old_as_its_newest_moment(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(5)))
    shop.take(shop.takeout(0, range(1, 5), name="renamed.zip"))
    newer = shop.takeout(0, (1, 2, 3, 4, 20), name="renamed.zip")
    shop.take(newer)
    assert shop.numbers() == {0, 1, 2, 3, 4, 20}
    shop.take(newer, "--complete")
    assert shop.numbers() == {1, 2, 3, 4, 20}


def test_an_export_of_the_future_is_refused(shop: Shop) -> None:
    archive = shop.takeout(0, [1], name="takeout-21000101T000000Z-001.zip")
    pages = shop.page(api_item(1))
    table = shop.csv(["Ann", "5", "2024-01-02", ""])
    for path in (
        archive,
        *(dated(file, "2100-01-01T00:00:00Z") for file in (pages, table)),
    ):
        told = shop.refused(path, "--name", "B", "--source", "fb")
        assert "in the future; correct its date or the clock" in told


# ---- Rule 4: presence ----

REMOVALS = [
    (40, 4, True),
    (39, 4, False),
    (39, 3, True),
    (2, 1, True),
    (2, 2, False),
    (1, 1, False),
]


@pytest.mark.parametrize(("stored", "gone", "is_removed"), REMOVALS)
def test_more_than_three_and_a_tenth_or_all_are_not_removed(
    shop: Shop, stored: int, gone: int, is_removed: bool
) -> None:
    old = shop.takeout(9, range(stored))
    shop.take(old)
    told = shop.told(shop.takeout(16, range(gone, stored)))
    assert len(shop.reviews) == (stored - gone if is_removed else stored)
    removed = f"removed, the export of 2025-01-17 no longer has them: {gone}: Ósk Nr0, "
    assert (removed in told) is is_removed
    held = f"{gone} of {stored} reviews stay, although the export of 2025-01-17 does not have them (Bó's Bakarí)"
    assert (held in told and "--allow-removals" in told) is not is_removed
    before = shop.files()
    told = shop.told(old)
    left_out = "not in a newer complete export, so not taken from an older one"
    assert (f"{left_out}: {gone}\n" in told) is is_removed
    shop.told(old)
    assert shop.document == json.loads(before["reviews.json"])


def test_reviews_of_an_older_export_alone_do_not_count_as_stored(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(39)))
    older = shop.takeout(10, range(40, 50))
    newer = shop.takeout(16, range(4, 39))
    assert "4 of 39 reviews stay, although" in shop.told(older, newer)


@pytest.mark.parametrize(("total", "removed"), [(4, 1), (None, 1), (5, 0)])
def test_pages_of_the_api_remove_only_if_they_are_said_to_be_complete(
    shop: Shop, total: int | None, removed: int
) -> None:
    shop.take(shop.takeout(9, range(5)))
    members = {} if total is None else {"totalReviewCount": total}
    pages = [
        shop.page(api_item(n), api_item(n + 1), name=f"p{n}", **members) for n in (1, 3)
    ]
    shop.take(*(dated(path, moment(20)) for path in pages))
    assert len(shop.reviews) == 5
    told = f"the pages of location {PLACE} remove nothing: they have 4 of 5 reviews\n"
    assert (told in shop.told(*pages, "--complete")) is (total == 5)
    assert len(shop.reviews) == 5 - removed


def test_a_faulty_record_keeps_its_review(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(40)))
    told = shop.told(shop.takeout(16, [item(1, comment=70_000 * "x"), *range(2, 40)]))
    assert shop.numbers() == {*range(1, 40)}
    assert "faulty, not imported: 1: " in told
    assert "bytes, more than the 61,440 that a review can have" in told


@pytest.mark.parametrize("is_api", [False, True])
def test_a_faulty_record_without_a_name_keeps_all_reviews(
    shop: Shop, is_api: bool
) -> None:
    shop.take(shop.takeout(9, range(40)))
    pages = dated(
        shop.page(item(1, name="x"), *map(api_item, range(2, 40))), moment(16)
    )
    archive = shop.takeout(16, [item(1, name="x"), *range(2, 40)])
    told = shop.told(pages, "--complete") if is_api else shop.told(archive)
    assert len(shop.reviews) == 40
    assert re.search(
        "removes? nothing[:,] .*a faulty record may belong to any review", told
    )


LARGEST = [(197, 61_300, ""), (197, 61_500, "61,440 that a review can have\n")]
LARGEST += [
    (
        198,
        1,
        'line 2: id: "fb-' + 76 * "\N{SPARKLES}" + "… is longer than 200 characters\n",
    )
]


@pytest.mark.parametrize(("of_id", "of_text", "fault"), LARGEST)
def test_the_daemon_accepts_the_largest_review_with_the_longest_id(
    shop: Shop, of_id: int, of_text: int, fault: str
) -> None:
    path = shop.csv(
        [of_id * "\N{SPARKLES}", "Ann", "5", "2024-01-02", of_text * "x"],
        header=WITH_IDS,
    )
    status = shop.run(path, "--name", "B", "--source", "fb")
    assert status == (EXIT_BAD_DATA if fault else EXIT_SUCCESS)
    told = shop.output().err
    assert ("1 of 1 records are faulty" in told) is bool(fault) and fault in told


def test_an_empty_table_that_is_complete_is_held_back(shop: Shop) -> None:
    shop.take(
        dated(shop.csv(*ROWS), moment(5)),
        "--name",
        "B",
        "--source",
        "book",
        "--complete",
    )
    assert "2 of 2 reviews stay" in shop.told(
        dated(shop.csv(), moment(6)), "--source", "book"
    )


# ---- Rule 5: days ----


def test_dates_are_made_anew_in_the_zone_of_the_business_and_ids_stay(
    shop: Shop,
) -> None:
    pages = shop.page(item(1, reviewReply={"comment": "Takk", "updateTime": moment(3)}))
    table = shop.csv(
        ["Ann", "5", "2024-05-03 23:30", ""], ["Bo", "5", "2024-05-03", ""]
    )
    assert shop.run(pages, table, "--name", "B", "--source", "fb") == EXIT_SUCCESS
    assert (
        "times are in UTC; give the time zone of the business once, as --zone"
        in shop.output().out
    )
    ids = set(shop.reviews)
    assert shop.run("--zone", "Asia/Tokyo") == EXIT_SUCCESS
    assert set(shop.reviews) == ids
    dates = {review["author"]: review["date"] for review in shop.reviews.values()}
    here = {
        "Ósk Nr1": "2025-01-03T05:15:00+09:00",
        "Ann": "2024-05-03T23:30:00+09:00",
        "Bo": "2024-05-03",
    }
    assert dates == here
    assert (
        shop.reviews[takeout_id(1)]["owner_reply"]["date"]
        == "2025-01-05T05:15:00+09:00"
    )
    before = shop.files()
    assert shop.run(pages, table, "--source", "fb") == EXIT_SUCCESS
    assert shop.files() == before


def test_days_without_times_need_no_zone(shop: Shop) -> None:
    shop.run(shop.csv(["Ann", "5", "2024-05-03", ""]), "--name", "B", "--source", "fb")
    assert "--zone" not in shop.output().out


def test_a_lost_state_changes_no_review(shop: Shop) -> None:
    pages = shop.page(
        item(1, reviewReply={"comment": "Takk", "updateTime": moment(3)}), item(2)
    )
    rows = [["7", *ROWS[0], "Thanks", "2024-01-03"], ["", *ROWS[1], "", ""]]
    rows += [["", "Bo", "5", "2024-01-02 10:00", *3 * [""]]]
    table = shop.csv(*rows, header=f"{WITH_IDS} reply reply_date")
    shop.take(pages, table, "--name", "B", "--source", "fb")
    before = shop.document
    shop.lose()
    for words in ([], [pages, table, "--source", "fb"]):
        shop.take(*words)
        assert shop.document == before


# ---- Rule 6: locations ----


@pytest.fixture
def both(shop: Shop) -> Path:
    """A Takeout of two locations, with five and eight reviews."""
    files = takeout_files([item(n) for n in range(5)])
    second = [item(n, place="22") for n in range(50, 58)]
    return shop.zip(
        "takeout-20250110T230000Z-001.zip",
        files | takeout_files(second, "22", "Second shop"),
    )


def test_several_locations_are_a_question_with_names_and_counts(
    shop: Shop, both: Path
) -> None:
    told = shop.refused(both)
    assert f'\n  {PLACE} "Bó\'s Bakarí": 5 reviews here\n' in told
    assert "\n  22 'Second shop': 8 reviews here\n" in told
    assert "\n  --location YOUR\n" in told


def test_a_chosen_location_is_remembered_and_the_other_named(
    shop: Shop, both: Path
) -> None:
    told = shop.told(both, "--location", "22")
    assert (len(shop.reviews), shop.document["business"]["name"]) == (8, "Second shop")
    left_out = f'left out, of location {PLACE} "Bó\'s Bakarí", not chosen: 5\n'
    assert left_out in told
    assert "tables" not in told
    assert "left out" not in shop.told(both), "it was said once"
    assert len(shop.reviews) == 8


@pytest.mark.parametrize("is_lost", [False, True])
def test_an_unknown_location_is_a_question_and_left_out_of_a_drop_folder(
    shop: Shop, is_lost: bool
) -> None:
    shop.take(shop.takeout(9, range(5)))
    if is_lost:
        shop.lose()
    other = shop.file("drop/a.json", page([item(90, place="33")]))
    shop.refused(other)
    assert "left out, of location 33 '', not chosen: 1\n" in shop.told(
        "--drop", other.parent
    )
    assert len(shop.reviews) == 5
    assert shop.refused(other), "nobody has decided about it"


def test_many_reviews_of_a_location_no_longer_chosen_are_held_back(
    shop: Shop, both: Path
) -> None:
    shop.take(both, "--location", PLACE, "--location", "22", "--name", "B")
    told = "8 of 8 reviews stay, although location 22 'Second shop' is not chosen: "
    assert told in shop.told(both, "--location", PLACE)
    shop.take("--allow-removals")
    assert shop.numbers() == {*range(5)}


def test_the_name_of_the_business_is_a_question(shop: Shop) -> None:
    told = shop.refused(shop.takeout(9, [item(1)], title=""))
    assert told.startswith("The files do not name the business:\nGive its name once.\n")
    assert "\n  --name 'YOUR BUSINESS'\n" in told


# ---- Rule 10: report ----


@pytest.mark.parametrize(("gone", "rest"), [(3, ""), (4, "; and 1 more")])
def test_the_report_counts_reviews_and_names_three_unless_it_is_verbose(
    shop: Shop, gone: int, rest: str
) -> None:
    shop.take(shop.takeout(9, range(60)))
    edited = item(5, comment="Nýtt", starRating="ONE", updateTime=moment(12))
    without_stars = item(7, starRating="STAR_RATING_UNSPECIFIED")
    replied = item(6, reviewReply={"comment": "Takk"})
    archive = shop.takeout(
        20, [*range(gone, 5), edited, replied, without_stars, *range(8, 60)]
    )
    verbose = shop.told(archive, "--verbose", "--dry-run")
    assert "; and " not in verbose and verbose.count("(google-") == gone
    told = shop.told(archive)
    unchanged = f"unchanged: {58 - gone}"
    assert {
        "replies: 1, revised: 1",
        unchanged,
        "without stars, not imported: 1: Ósk Nr7",
    } <= {*told.splitlines()}
    assert f"no longer has them: {gone}: Ósk Nr0, 2025-01-01 (" in told
    assert f"({takeout_id(2)}){rest}\n" in told


@pytest.mark.parametrize("place", ["5", "Bakery", PLACE[:-1]])
def test_a_location_that_nothing_is_of_is_a_question_and_not_remembered(
    shop: Shop, place: str
) -> None:
    archive = shop.takeout(9, range(5))
    shop.take(archive)

    told = shop.refused(archive, "--location", place)

    assert f"No export and no stored review is of location {place}." in told
    assert f"  {PLACE} " in told
