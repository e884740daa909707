"""Which reviews an import stores, and with which content: examples of the ten rules.

`test_import_year.py` holds them all together against a plain definition; what stands here
are single examples of rules 1 to 6. `test_report.py` has rule 10.

Sections: the first six rules, one after the other.
"""

from collections.abc import Iterable
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
    stamped,
    takeout_files,
    takeout_id,
)
from lab.steps import steps_of

from reviewslib.faults import Fault
from reviewslib.importer.exports import Record
from reviewslib.importer.recognition import Register
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_SUCCESS

FB = ("--name", "B", "--source", "fb")
GOOGLE = ("--name", "B", "--source", "google")


def ids_by_text(shop: Shop) -> dict[str, str]:
    return {review["text"]: id for id, review in shop.reviews.items()}


# ---- Rule 1: whose fields ----


@pytest.fixture
def edited(shop: Shop) -> Shop:
    """A shop in whose reviews.json somebody has changed a review."""
    shop.take(shop.takeout(9, range(5)))
    shop.edit(takeout_id(2), text="not bad", rating=5, mine={"a": [1]})
    return shop


def test_fields_of_the_import_that_were_edited_are_written_anew(edited: Shop) -> None:
    edited.take(edited.takeout(9, range(5)))

    assert edited.reviews[takeout_id(2)]["text"] == "Kom aftur, í 2. skipti"


def test_keys_of_the_owner_stay(edited: Shop) -> None:
    edited.take(edited.takeout(9, range(5)))

    assert edited.reviews[takeout_id(2)]["mine"] == {"a": [1]}


def test_the_edited_file_is_kept_as_it_was(edited: Shop) -> None:
    before = edited.files()["reviews.json"]

    edited.take(edited.takeout(9, range(5)))

    (copy,) = edited.data.glob("*.edited-*")
    assert copy.read_bytes() == before


def test_the_report_names_what_was_overwritten_and_the_copy(edited: Shop) -> None:
    told = edited.told(edited.takeout(9, range(5)))

    (copy,) = edited.data.glob("*.edited-*")
    named = "reviews.json was edited; exports have overwritten fields of 1 review: "
    assert f"{named}Ósk Nr2" in told
    assert f"The edited file is kept as {copy}" in told


def test_an_edit_that_was_overwritten_is_told_once(edited: Shop) -> None:
    archive = edited.takeout(9, range(5))
    edited.take(archive)

    assert "was edited" not in edited.told(archive)


def test_the_newest_update_has_the_words_and_the_newest_export_the_name(
    shop: Shop,
) -> None:
    later = item(1, updateTime=moment(8), comment="Later", starRating="ONE")
    renamed = item(1, reviewer={"displayName": "Married"})

    shop.take(shop.takeout(9, [later]))
    shop.take(shop.takeout(12, [renamed]))

    review = shop.only()
    assert review["author"] == "Married"
    assert review["text"] == "Later"
    assert review["rating"] == 1


@pytest.mark.parametrize(
    "is_lost", [pytest.param(False, id="state"), pytest.param(True, id="no state")]
)
def test_reviews_with_ids_of_the_owners_own_stay(shop: Shop, is_lost: bool) -> None:
    own = {"id": "mine", "author": "Eve", "rating": 4, "date": "1985-05-05"}
    own["source"] = "google"
    shop.take(shop.takeout(9, range(5)))
    shop.edit(**own)
    if is_lost:
        shop.lose()

    shop.take(shop.takeout(12, range(1, 6)))

    assert shop.reviews["mine"] == own


CAMILLE = {
    "displayName": "Camille van Roux",
    "profilePhotoUrl": "https://p.example/1",
}


@pytest.fixture
def pages(shop: Shop) -> Path:
    """A page with a review by a person, and one by nobody."""
    nobody = {"displayName": "a google user"}
    return shop.page(item(1, reviewer=CAMILLE), item(2, reviewer=nobody))


def test_short_names_are_remembered_and_nobodys_name_stays(
    shop: Shop, pages: Path
) -> None:
    shop.take(pages, "--name", "B", "--short-names")

    shop.take(pages)

    authors = {review["author"] for review in shop.reviews.values()}
    assert authors == {"Camille R.", "a google user"}


def test_whole_names_return_when_the_owner_wants_them(shop: Shop, pages: Path) -> None:
    shop.take(pages, "--name", "B", "--short-names")

    shop.take(pages, "--no-short-names")

    assert shop.reviews[takeout_id(1)]["author"] == "Camille van Roux"


def test_pictures_are_imported_only_when_asked_for(shop: Shop, pages: Path) -> None:
    shop.take(pages, "--name", "B")

    assert "author_avatar_url" not in shop.reviews[takeout_id(1)]


def test_pictures_once_asked_for_are_remembered(shop: Shop, pages: Path) -> None:
    shop.take(pages, "--name", "B", "--avatars")

    shop.take(pages)

    assert shop.reviews[takeout_id(1)]["author_avatar_url"] == "https://p.example/1"


def test_pictures_go_when_the_owner_wants_none(shop: Shop, pages: Path) -> None:
    shop.take(pages, "--name", "B", "--avatars")

    shop.take(pages, "--no-avatars")

    assert "author_avatar_url" not in shop.reviews[takeout_id(1)]


NAMES = [
    pytest.param("ann@example.com", "ann", id="an address alone"),
    pytest.param("Ann <ann@example.com>", "Ann", id="an address behind a name"),
    pytest.param("Ann@home", "Ann@home", id="no host"),
    pytest.param("@ann", "@ann", id="a handle"),
    pytest.param("a@b@c.d", "a@b@c.d", id="two signs"),
]


@pytest.mark.parametrize(("name", "taken"), NAMES)
def test_a_name_is_taken_without_its_e_mail_address(
    shop: Shop, name: str, taken: str
) -> None:
    shop.take(shop.page(item(1, reviewer={"displayName": name})), "--name", "B")

    assert shop.only()["author"] == taken


# ---- Rule 2: a review keeps its id ----


def test_two_reviews_of_one_second_are_two_in_takeout_and_in_the_api(
    shop: Shop,
) -> None:
    same = {"createTime": moment(1), "updateTime": moment(1)}
    shop.take(shop.takeout(9, [item(1, **same), item(2, **same)]))

    shop.take(shop.page(api_item(2, **same), api_item(1, **same)))

    assert set(shop.reviews) == {takeout_id(1), takeout_id(2)}


AT_ONE_MOMENT = [
    pytest.param(PLACE, "Ósk Nr1", 1, id="one location and author"),
    pytest.param(PLACE, "Ann", 1, id="one location, a new name"),
    pytest.param("22", "Ósk Nr1", 1, id="a location that moved"),
    pytest.param("22", "Ann", 2, id="another location and author"),
]


@pytest.mark.parametrize(("place", "author", "number"), AT_ONE_MOMENT)
def test_a_moment_is_one_review_in_a_location_and_of_an_author_in_two(
    shop: Shop, place: str, author: str, number: int
) -> None:
    shop.take(shop.page(item(1)), "--name", "B")
    again = api_item(
        7,
        name=f"accounts/9/locations/{place}/reviews/x",
        createTime=moment(1),
        reviewer={"displayName": author},
    )

    locations = [f"--location={known}" for known in {PLACE, place}]
    shop.take(shop.page(again), *locations)

    assert len(shop.reviews) == number


# Google's own export of day 9 has reviews 1 to 19; the table has two of these, and one
# that nobody has written at Google.
OF_GOOGLE = (
    ("Ósk Nr1", "5", moment(1), "Hi"),
    ("Ósk Nr2", "5", moment(2)[:10], "Hi"),
    ("Ann", "1", "2025-01-01", "fake"),
)


def test_rows_of_google_are_taken_until_an_export_of_google_comes(shop: Shop) -> None:
    shop.take(shop.csv(OF_GOOGLE[0]), *GOOGLE)
    shop.take(shop.csv(*OF_GOOGLE), *GOOGLE)

    assert len(shop.reviews) == 3


def test_an_export_of_google_replaces_the_rows_that_it_has_and_keeps_their_ids(
    shop: Shop,
) -> None:
    shop.take(dated(shop.csv(*OF_GOOGLE[:2]), moment(5)), *GOOGLE)
    ids = set(shop.reviews)

    shop.take(shop.takeout(9, range(1, 20)))

    assert ids < set(shop.reviews)
    assert "Hi" not in shop.texts()


@pytest.mark.parametrize(
    ("day", "stays"),
    [
        pytest.param(5, False, id="of an older table"),
        pytest.param(20, True, id="of a newer table"),
    ],
)
def test_a_row_that_google_does_not_have_stays_only_if_its_table_is_newer(
    shop: Shop, day: int, stays: bool
) -> None:
    shop.take(dated(shop.csv(*OF_GOOGLE), moment(day)), *GOOGLE)

    shop.take(shop.takeout(9, range(1, 20)))

    assert ("fake" in shop.texts()) is stays


@pytest.mark.parametrize(
    "is_lost", [pytest.param(False, id="state"), pytest.param(True, id="no state")]
)
def test_rows_of_google_are_left_out_once_google_has_spoken(
    shop: Shop, is_lost: bool
) -> None:
    table = dated(shop.csv(*OF_GOOGLE), moment(20))
    shop.take(shop.takeout(9, range(1, 20)))
    if is_lost:
        shop.lose()

    told = shop.told(table, *GOOGLE)

    assert "rows of google in tables, left out: 3\n" in told
    assert len(shop.reviews) == 19


def of_one_day(shop: Shop, *texts: str) -> Path:
    """A table of reviews by one author on one day."""
    return shop.csv(*(["Ann", "5", "2024-01-02", text] for text in texts))


def test_rows_of_one_author_and_day_have_the_same_id_with_a_number(
    shop: Shop,
) -> None:
    shop.take(of_one_day(shop, "first", "second", "third"), *FB)

    first = ids_by_text(shop)["first"]
    assert set(shop.reviews) == {first, f"{first}-2", f"{first}-3"}


@pytest.mark.parametrize(
    "is_lost", [pytest.param(False, id="state"), pytest.param(True, id="no state")]
)
def test_among_rows_of_one_author_and_day_a_text_keeps_its_id(
    shop: Shop, is_lost: bool
) -> None:
    shop.take(of_one_day(shop, "first", "second", "third"), *FB)
    before = ids_by_text(shop)
    if is_lost:
        shop.lose()

    shop.take(of_one_day(shop, "third", "second", "edited"), *FB)

    after = ids_by_text(shop)
    assert after["second"] == before["second"]
    assert after["third"] == before["third"]
    assert after["edited"] == before["first"]


def test_a_row_that_is_alone_in_its_table_keeps_its_id(shop: Shop) -> None:
    shop.take(of_one_day(shop, "first", "second", "third"), *FB)
    before = ids_by_text(shop)

    shop.take(of_one_day(shop, "third"), *FB)

    assert ids_by_text(shop)["third"] == before["third"]


OTHER_DAYS = [
    pytest.param("2024-01-05", 1, id="the day itself"),
    pytest.param("2024-01-06T01:00:00Z", 1, id="the day after"),
    pytest.param("2024-01-04", 1, id="the day before"),
    pytest.param("2024-01-07", 2, id="two days later"),
    pytest.param("2024-01-03", 2, id="two days earlier"),
]


@pytest.mark.parametrize(("day", "number"), OTHER_DAYS)
def test_the_days_of_two_tools_may_be_one_apart(
    shop: Shop, day: str, number: int
) -> None:
    shop.take(shop.csv(["Ann", "5", "2024-01-05", "Good"]), *FB)

    shop.take(shop.csv(["Ann", "5", day, "Good"]), *FB)

    assert len(shop.reviews) == number


WITH_IDS = "id author rating date text"
ROWS = [["Ann", "5", "2024-01-02", "Good"], ["Ann", "5", "2024-01-02", "Fine"]]
NUMBERED = [["7", *ROWS[0]], ["8", *ROWS[1]]]


def test_a_row_with_an_id_and_one_without_are_two_reviews_of_one_table(
    shop: Shop,
) -> None:
    without = ["", "Ann", "4", "2024-01-02", "Good"]
    table = shop.csv(["7", *ROWS[0]], without, header=WITH_IDS)

    shop.take(table, *FB)
    first = shop.document
    shop.take(table, *FB)

    assert sorted(review["rating"] for review in first["reviews"]) == [4, 5]
    assert shop.document == first


def test_reviews_of_a_table_that_gains_and_loses_an_id_column_are_the_same(
    shop: Shop,
) -> None:
    shop.take(shop.csv(*ROWS), *FB)
    before = ids_by_text(shop)

    shop.take(shop.csv(*NUMBERED, header=WITH_IDS), *FB)
    gained = ids_by_text(shop)
    shop.take(shop.csv(*ROWS), *FB)
    lost = ids_by_text(shop)

    assert gained == before
    assert lost == before


def test_a_new_id_in_a_table_that_gained_ids_is_a_new_review(shop: Shop) -> None:
    shop.take(shop.csv(*ROWS), *FB)
    before = set(shop.reviews)
    shop.take(shop.csv(*NUMBERED, header=WITH_IDS), *FB)

    shop.take(shop.csv(*NUMBERED, ["9", *ROWS[0]], header=WITH_IDS), *FB)

    assert set(shop.reviews) == {*before, "fb-9"}


def equal_rows(number: int, days: int) -> list[Record]:
    """Rows of customers without a name, on days in turn; every second text is the same."""
    records = list[Record]()
    for n in range(number):
        record = Record(Fault("a.csv", (), ""), moment(9), "table", "fb")
        text = "Good" if n % 2 else f"Good {n}"
        record.review = {"author": "Anonymous", "rating": 5, "text": text}
        record.created = f"2024-01-0{n % days + 1}"
        records.append(record)
    return records


# More than any growth that could pass; a quadratic one ends here.
MOST_STEPS = 50_000_000


@pytest.mark.parametrize(
    "days",
    [pytest.param(1, id="of one day"), pytest.param(2, id="of two days in turn")],
)
def test_equal_rows_are_identified_in_steps_that_grow_with_their_number(
    days: int,
) -> None:
    def identify_twice(number: int) -> None:
        register = Register({})
        register.identify(equal_rows(number, days))
        register.identify(equal_rows(number, days))

    few, _ = steps_of(lambda: identify_twice(100), at_most=MOST_STEPS)
    many, _ = steps_of(lambda: identify_twice(1000), at_most=MOST_STEPS)

    assert many < 11 * few


@pytest.fixture
def four_exports(shop: Shop) -> list[Path]:
    """A Takeout, a page, and two tables with an old and a new text of one review."""
    old = shop.csv(["Ann", "5", "2024-01-02", "old"], name="old.csv")
    new = shop.csv(["Ann", "4", "2024-01-02", "new"], name="new.csv")
    return [
        shop.takeout(9, [item(1)]),
        dated(shop.page(api_item(1)), moment(12)),
        dated(old, moment(5)),
        dated(new, moment(9)),
    ]


def test_the_order_of_files_in_a_command_makes_no_difference(
    shop: Shop, four_exports: list[Path]
) -> None:
    forwards = Shop(shop.root / "forwards")
    backwards = Shop(shop.root / "backwards")

    forwards.take(*four_exports, *FB)
    backwards.take(*reversed(four_exports), *FB)

    assert forwards.document == backwards.document
    assert forwards.state == backwards.state


# ---- Rule 3: the time of an export ----


def test_a_takeout_without_a_stamp_is_as_old_as_its_newest_moment(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(5)))

    shop.take(shop.takeout(0, range(1, 5), name="renamed.zip"))

    assert shop.numbers() == {0, 1, 2, 3, 4}


def test_a_takeout_without_a_stamp_removes_nothing_unless_it_is_said_to_be_complete(
    shop: Shop,
) -> None:
    shop.take(shop.takeout(9, range(5)))
    newer = shop.takeout(0, (1, 2, 3, 4, 20), name="renamed.zip")

    shop.take(newer)
    unsaid = shop.numbers()
    shop.take(newer, "--complete")

    assert unsaid == {0, 1, 2, 3, 4, 20}
    assert shop.numbers() == {1, 2, 3, 4, 20}


def test_a_takeout_without_a_stamp_is_said_to_remove_nothing(shop: Shop) -> None:
    told = shop.told(shop.takeout(0, [1, 2], name="renamed.zip"))

    assert "renamed.zip: its name does not say when it was made" in told


def unpacked(shop: Shop, folder: str, day: int, numbers: Iterable[int]) -> None:
    """A Takeout that was unpacked into a folder of its name, in this folder."""
    base = f"{folder}/{stamped(day).removesuffix('.zip')}"
    for name, content in takeout_files([item(number) for number in numbers]).items():
        shop.file(f"{base}/{name}", content)


def test_the_folder_that_an_unpacked_takeout_lies_in_has_its_time(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(5)))
    unpacked(shop, "Downloads", day=12, numbers=range(1, 5))

    shop.take(shop.root / "Downloads")

    assert shop.numbers() == {1, 2, 3, 4}


def test_a_folder_with_several_unpacked_takeouts_is_refused_with_the_way_on(
    shop: Shop,
) -> None:
    unpacked(shop, "Downloads", day=9, numbers=[1])
    unpacked(shop, "Downloads", day=12, numbers=[2])

    told = shop.refused(shop.root / "Downloads")

    assert "several Takeouts; give each one, or the folder with --drop" in told


def future_files(shop: Shop) -> dict[str, Path]:
    ahead = "2100-01-01T00:00:00Z"
    stamped = "takeout-21000101T000000Z-001.zip"
    table = shop.csv(["Ann", "5", "2024-01-02", ""])
    return {
        "takeout": shop.takeout(0, [1], name=stamped),
        "page": dated(shop.page(api_item(1)), ahead),
        "table": dated(table, ahead),
    }


@pytest.mark.parametrize("kind", ["takeout", "page", "table"])
def test_an_export_of_the_future_is_refused(shop: Shop, kind: str) -> None:
    told = shop.refused(future_files(shop)[kind], *FB)

    assert "in the future; correct its date or the clock" in told


# ---- Rule 4: presence ----

# Of so many stored reviews, so many are not in the newer export.
GONE = [
    pytest.param(40, 4, id="a tenth"),
    pytest.param(39, 3, id="three"),
    pytest.param(2, 1, id="one of two"),
]
HELD = [
    pytest.param(39, 4, id="more than three and a tenth"),
    pytest.param(2, 2, id="both"),
    pytest.param(1, 1, id="the only one"),
]
NO_LONGER = "removed, the export of 2025-01-17 no longer has them"


@pytest.mark.parametrize(("stored", "gone"), GONE)
def test_a_few_reviews_that_are_gone_are_removed_and_named(
    shop: Shop, stored: int, gone: int
) -> None:
    shop.take(shop.takeout(9, range(stored)))

    told = shop.told(shop.takeout(16, range(gone, stored)))

    assert len(shop.reviews) == stored - gone
    assert f"{NO_LONGER}: {gone}: Ósk Nr0, " in told


@pytest.mark.parametrize(("stored", "gone"), HELD)
def test_many_reviews_that_are_gone_or_all_are_held_back(
    shop: Shop, stored: int, gone: int
) -> None:
    shop.take(shop.takeout(9, range(stored)))

    told = shop.told(shop.takeout(16, range(gone, stored)))

    held = f"{gone} of {stored} reviews stay, although the export of 2025-01-17"
    assert f"{held} does not have them (Bó's Bakarí)" in told
    assert "run the import again with --allow-removals" in told
    assert len(shop.reviews) == stored


def test_what_was_held_back_goes_when_the_owner_allows_it(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(39)))
    shop.take(shop.takeout(16, range(4, 39)))

    shop.take("--allow-removals")

    assert shop.numbers() == {*range(4, 39)}


@pytest.mark.parametrize(("stored", "gone"), GONE)
def test_an_older_export_does_not_bring_back_what_is_gone(
    shop: Shop, stored: int, gone: int
) -> None:
    old = shop.takeout(9, range(stored))
    shop.take(old)
    shop.take(shop.takeout(16, range(gone, stored)))
    before = shop.document

    told = shop.told(old)

    left_out = "not in a newer complete export, so not taken from an older one"
    assert f"{left_out}: {gone}\n" in told
    assert shop.document == before


@pytest.mark.parametrize(("stored", "gone"), HELD)
def test_an_older_export_changes_nothing_of_what_is_held(
    shop: Shop, stored: int, gone: int
) -> None:
    old = shop.takeout(9, range(stored))
    shop.take(old)
    shop.take(shop.takeout(16, range(gone, stored)))
    before = shop.document

    told = shop.told(old)

    assert "not taken from an older one" not in told
    assert shop.document == before


def test_reviews_of_an_older_export_alone_do_not_count_as_stored(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(39)))
    older = shop.takeout(10, range(40, 50))
    newer = shop.takeout(16, range(4, 39))

    told = shop.told(older, newer)

    assert "4 of 39 reviews stay, although" in told


def two_pages(shop: Shop, **members: object) -> list[Path]:
    """Pages of day 20 with reviews 1 to 4 of the five that are stored."""
    first = shop.page(api_item(1), api_item(2), name="p1", **members)
    second = shop.page(api_item(3), api_item(4), name="p2", **members)
    return [dated(first, moment(20)), dated(second, moment(20))]


def test_pages_of_the_api_remove_nothing_by_themselves(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(5)))

    shop.take(*two_pages(shop, totalReviewCount=4))

    assert len(shop.reviews) == 5


WHOLE = [
    pytest.param({"totalReviewCount": 4}, id="with their number"),
    pytest.param({}, id="without a number"),
]


@pytest.mark.parametrize("members", WHOLE)
def test_pages_that_are_said_to_be_complete_remove_what_they_lack(
    shop: Shop, members: dict[str, int]
) -> None:
    shop.take(shop.takeout(9, range(5)))

    shop.take(*two_pages(shop, **members), "--complete")

    assert shop.numbers() == {1, 2, 3, 4}


def test_pages_that_lack_some_of_their_number_remove_nothing(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(5)))

    told = shop.told(*two_pages(shop, totalReviewCount=5), "--complete")

    reason = f"the pages of location {PLACE} remove nothing: they have 4 of 5 reviews"
    assert f"{reason}\n" in told
    assert len(shop.reviews) == 5


def test_a_faulty_record_keeps_its_review(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(40)))
    too_long = item(1, comment=70_000 * "x")

    told = shop.told(shop.takeout(16, [too_long, *range(2, 40)]))

    assert shop.numbers() == {*range(1, 40)}
    assert "faulty, not imported: 1: " in told


def test_a_faulty_record_without_a_name_in_a_takeout_keeps_all_reviews(
    shop: Shop,
) -> None:
    shop.take(shop.takeout(9, range(40)))

    told = shop.told(shop.takeout(16, [item(1, name="x"), *range(2, 40)]))

    assert len(shop.reviews) == 40
    assert "removes nothing, since a faulty record may belong to any review" in told


def test_a_faulty_record_without_a_name_in_a_page_keeps_all_reviews(
    shop: Shop,
) -> None:
    shop.take(shop.takeout(9, range(40)))
    others = [api_item(number) for number in range(2, 40)]
    pages = dated(shop.page(item(1, name="x"), *others), moment(16))

    told = shop.told(pages, "--complete")

    assert len(shop.reviews) == 40
    assert "remove nothing: a faulty record may belong to any review" in told


def row_of(id: str, text: str) -> list[str]:
    return [id, "Ann", "5", "2024-01-02", text]


# An id may have 200 characters, and "fb-" stands before it.
LONGEST_ID = 197 * "\N{SPARKLES}"


def test_the_daemon_accepts_the_largest_review_with_the_longest_id(shop: Shop) -> None:
    table = shop.csv(row_of(LONGEST_ID, 61_300 * "x"), header=WITH_IDS)

    assert shop.run(table, *FB) == EXIT_SUCCESS


TOO_LARGE = [
    pytest.param(
        LONGEST_ID, 61_500, "bytes, more than the 61,440 that a review", id="text"
    ),
    pytest.param(f"{LONGEST_ID}\N{SPARKLES}", 1, "longer than 200 characters", id="id"),
]


@pytest.mark.parametrize(("id", "length", "fault"), TOO_LARGE)
def test_a_review_that_the_daemon_would_not_serve_is_faulty(
    shop: Shop, id: str, length: int, fault: str
) -> None:
    table = shop.csv(row_of(id, length * "x"), header=WITH_IDS)

    assert shop.run(table, *FB) == EXIT_BAD_DATA

    assert fault in shop.output().err


def test_an_empty_table_that_is_complete_is_held_back(shop: Shop) -> None:
    words = ("--name", "B", "--source", "book")
    shop.take(dated(shop.csv(*ROWS), moment(5)), *words, "--complete")

    told = shop.told(dated(shop.csv(), moment(6)), *words)

    assert "2 of 2 reviews stay" in told


# ---- Rule 5: days ----

REPLIED = item(1, reviewReply={"comment": "Takk", "updateTime": moment(3)})


@pytest.fixture
def dates_in_utc(shop: Shop) -> Shop:
    """A moment, a time without a zone and a day, imported without a zone."""
    table = shop.csv(
        ["Ann", "5", "2024-05-03 23:30", ""], ["Bo", "5", "2024-05-03", ""]
    )
    assert shop.run(shop.page(REPLIED), table, *FB) == EXIT_SUCCESS
    return shop


def test_without_a_zone_the_report_asks_for_it(dates_in_utc: Shop) -> None:
    told = dates_in_utc.output().out

    hint = "times are in UTC; give the time zone of the business once, as --zone"
    assert hint in told


def test_days_without_times_need_no_zone(shop: Shop) -> None:
    shop.run(shop.csv(["Ann", "5", "2024-05-03", ""]), *FB)

    assert "--zone" not in shop.output().out


IN_TOKYO = [
    pytest.param("Ósk Nr1", "2025-01-03T05:15:00+09:00", id="a moment"),
    pytest.param("Ann", "2024-05-03T23:30:00+09:00", id="a time without a zone"),
    pytest.param("Bo", "2024-05-03", id="a day"),
]


@pytest.mark.parametrize(("author", "date"), IN_TOKYO)
def test_dates_are_made_anew_in_the_zone_of_the_business(
    dates_in_utc: Shop, author: str, date: str
) -> None:
    dates_in_utc.run("--zone", "Asia/Tokyo")

    dates = {r["author"]: r["date"] for r in dates_in_utc.reviews.values()}
    assert dates[author] == date


def test_a_zone_counts_for_replies_too_and_changes_no_id(dates_in_utc: Shop) -> None:
    ids = set(dates_in_utc.reviews)

    dates_in_utc.run("--zone", "Asia/Tokyo")

    reply = dates_in_utc.reviews[takeout_id(1)]["owner_reply"]
    assert reply["date"] == "2025-01-05T05:15:00+09:00"
    assert set(dates_in_utc.reviews) == ids


def test_a_zone_is_remembered(dates_in_utc: Shop) -> None:
    root = dates_in_utc.root
    dates_in_utc.run("--zone", "Asia/Tokyo")
    before = dates_in_utc.files()

    dates_in_utc.run(root / "p", root / "a.csv", "--source", "fb")

    assert dates_in_utc.files() == before


@pytest.fixture
def many_kinds(shop: Shop) -> tuple[Shop, list[object]]:
    """Reviews with and without ids, times and replies, and the words that import them."""
    rows = [
        ["7", *ROWS[0], "Thanks", "2024-01-03"],
        ["", *ROWS[1], "", ""],
        ["", "Bo", "5", "2024-01-02 10:00", "", "", ""],
    ]
    table = shop.csv(*rows, header=f"{WITH_IDS} reply reply_date")
    words = [shop.page(REPLIED, item(2)), table, *FB]
    shop.take(*words)
    return shop, words


def test_a_lost_state_changes_no_review(
    many_kinds: tuple[Shop, list[object]],
) -> None:
    shop, _ = many_kinds
    before = shop.document
    shop.lose()

    shop.take()

    assert shop.document == before


def test_after_a_loss_of_the_state_the_same_exports_change_no_review(
    many_kinds: tuple[Shop, list[object]],
) -> None:
    shop, words = many_kinds
    before = shop.document
    shop.lose()

    shop.take(*words)

    assert shop.document == before


# ---- Rule 6: locations ----


@pytest.fixture
def both(shop: Shop) -> Path:
    """A Takeout of two locations, with five and eight reviews."""
    first = [item(number) for number in range(5)]
    second = [item(number, place="22") for number in range(50, 58)]
    files = takeout_files(first) | takeout_files(second, "22", "Second shop")
    return shop.zip("takeout-20250110T230000Z-001.zip", files)


def test_several_locations_are_a_question_with_names_and_counts(
    shop: Shop, both: Path
) -> None:
    told = shop.refused(both)

    assert f'\n  {PLACE} "Bó\'s Bakarí": 5 reviews here\n' in told
    assert "\n  22 'Second shop': 8 reviews here\n" in told
    assert "\n  --location YOUR\n" in told


def test_a_chosen_location_is_imported_and_names_the_business(
    shop: Shop, both: Path
) -> None:
    shop.take(both, "--location", "22")

    assert len(shop.reviews) == 8
    assert shop.document["business"]["name"] == "Second shop"


def test_the_location_that_is_not_chosen_is_named_once(shop: Shop, both: Path) -> None:
    first = shop.told(both, "--location", "22")
    second = shop.told(both)

    left_out = f'left out, of location {PLACE} "Bó\'s Bakarí", not chosen: 5\n'
    assert left_out in first
    assert "left out" not in second


def test_a_chosen_location_is_remembered(shop: Shop, both: Path) -> None:
    shop.take(both, "--location", "22")

    shop.take(both)

    assert len(shop.reviews) == 8


@pytest.fixture(
    params=[pytest.param(False, id="state"), pytest.param(True, id="no state")]
)
def one_location(shop: Shop, request: pytest.FixtureRequest) -> Shop:
    """A shop of one location, with its state or without."""
    shop.take(shop.takeout(9, range(5)))
    if request.param:
        shop.lose()
    return shop


def test_an_unknown_location_is_a_question(one_location: Shop) -> None:
    other = one_location.file("a.json", page([item(90, place="33")]))

    told = one_location.refused(other)

    assert "\n  33 '': 1 reviews here\n" in told


def test_an_unknown_location_is_left_out_of_a_drop_folder(one_location: Shop) -> None:
    other = one_location.file("drop/a.json", page([item(90, place="33")]))

    told = one_location.told("--drop", other.parent)

    assert "left out, of location 33 '', not chosen: 1\n" in told
    assert len(one_location.reviews) == 5


def test_what_a_drop_folder_left_out_is_still_a_question(one_location: Shop) -> None:
    other = one_location.file("drop/a.json", page([item(90, place="33")]))
    one_location.take("--drop", other.parent)

    assert "\n  33 '': 1 reviews here\n" in one_location.refused(other)


def test_many_reviews_of_a_location_no_longer_chosen_are_held_back(
    shop: Shop, both: Path
) -> None:
    shop.take(both, "--location", PLACE, "--location", "22", "--name", "B")

    told = shop.told(both, "--location", PLACE)

    held = "8 of 8 reviews stay, although location 22 'Second shop' is not chosen: "
    assert held in told


def test_reviews_of_a_location_no_longer_chosen_go_when_the_owner_allows_it(
    shop: Shop, both: Path
) -> None:
    shop.take(both, "--location", PLACE, "--location", "22", "--name", "B")
    shop.take(both, "--location", PLACE)

    shop.take("--allow-removals")

    assert shop.numbers() == {*range(5)}


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("5", id="a number"),
        pytest.param("Bakery", id="a name"),
        pytest.param(PLACE[:-1], id="a digit less"),
    ],
)
def test_a_location_that_nothing_is_of_is_a_question_with_the_known_ones(
    shop: Shop, place: str
) -> None:
    archive = shop.takeout(9, range(5))
    shop.take(archive)

    told = shop.refused(archive, "--location", place)

    assert f"No export and no stored review is of location {place}." in told
    assert f"  {PLACE} " in told


def test_the_name_of_the_business_is_a_question(shop: Shop) -> None:
    told = shop.refused(shop.takeout(9, [item(1)], title=""))

    assert told.startswith(
        "What is imported does not name the business:\nGive its name once.\n"
    )
    assert "\n  --name 'YOUR BUSINESS'\n" in told
