"""The report says what an owner wants to know, only what is true, and most of it once.

Sections: edited - counts - said once, and until it is settled - tables that are
probably whole.
"""

import json
from pathlib import Path

import pytest
from lab.export_lab import Shop, dated, item, moment, takeout_id

HEAD = "id author rating date text source"


def rows(*numbers: int) -> list[list[str]]:
    """Rows of a table with ids."""
    return [[f"{n}", f"Ann {n}", "5", "2024-01-02", f"Good {n}", "fb"] for n in numbers]


# ---- Edited ----


def test_a_business_that_was_filled_in_is_not_called_an_edited_review(
    shop: Shop,
) -> None:
    shop.take(shop.takeout(9, range(9)))
    document = shop.document
    document["business"]["telephone"] = "555"
    shop.file("data/reviews.json", json.dumps(document))

    told = shop.told(shop.takeout(12, [item(0, comment="Nýtt"), *range(1, 9)]))

    assert "was edited" not in told
    assert [*shop.data.glob("*.edited-*")] == []


def test_only_reviews_that_were_edited_and_are_overwritten_are_named(
    shop: Shop,
) -> None:
    shop.take(shop.takeout(9, range(9)))
    shop.edit(takeout_id(2), text="mine")

    told = shop.told(shop.takeout(12, [item(0, comment="Nýtt"), *range(1, 9)]))

    assert "exports have overwritten fields of 1 review: Ósk Nr2" in told


def test_an_erasure_makes_no_copy_of_the_words(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(9)))
    shop.edit(takeout_id(2), author="mine")

    shop.take("--forget", takeout_id(2))

    assert [*shop.data.glob("*.edited-*")] == []


# ---- Counts ----


def test_new_reviews_are_counted_by_stars_and_the_low_ones_named(shop: Shop) -> None:
    told = shop.told(shop.takeout(9, [item(1), item(2, starRating="TWO")]))

    assert "new: 2 (5 stars: 1, 2 stars: 1)\n" in told
    assert "new with 3 stars or fewer: 2 by Ósk Nr2, 2025-01-03 (" in told


def test_changes_are_replies_or_revisions(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(3)))
    reply = {"comment": "Takk", "updateTime": moment(10)}
    replied = item(0, reviewReply=reply)
    revised = item(1, comment="Nýtt", updateTime=moment(10))

    told = shop.told(shop.takeout(12, [replied, revised, item(2)]))

    assert "replies: 1, revised: 1\n" in told


STARS_OF_A_REVISION = [
    pytest.param("ONE", "now 3 stars or fewer: 1 by Ósk Nr1, 2025-01-02 (", id="few"),
    pytest.param("FOUR", "", id="many"),
]


@pytest.mark.parametrize(("stars", "line"), STARS_OF_A_REVISION)
def test_reviews_that_lose_stars_down_to_few_are_named(
    shop: Shop, stars: str, line: str
) -> None:
    shop.take(shop.takeout(9, range(3)))
    revised = item(1, starRating=stars, updateTime=moment(10))

    told = shop.told(shop.takeout(12, [item(0), revised, item(2)]))

    assert "revised: 1\n" in told
    assert line in told
    assert ("now 3 stars" in told) is bool(line)


@pytest.fixture
def weekly(shop: Shop) -> Shop:
    """A shop of sixty reviews, with the export of a later week to import."""
    shop.take(shop.takeout(9, range(60)))
    return shop


def later_week(shop: Shop, gone: int) -> Path:
    """An export without the first reviews; one is revised, answered, without stars."""
    revised = item(5, comment="Nýtt", starRating="ONE", updateTime=moment(12))
    replied = item(6, reviewReply={"comment": "Takk"})
    without_stars = item(7, starRating="STAR_RATING_UNSPECIFIED")
    changed = [revised, replied, without_stars]
    return shop.takeout(20, [*range(gone, 5), *changed, *range(8, 60)])


def test_what_did_not_change_is_counted(weekly: Shop) -> None:
    told = weekly.told(later_week(weekly, gone=3))

    assert "replies: 1, revised: 1\n" in told
    assert "unchanged: 55\n" in told


def test_reviews_without_stars_are_named(weekly: Shop) -> None:
    told = weekly.told(later_week(weekly, gone=3))

    assert "without stars, not imported: 1: Ósk Nr7\n" in told


@pytest.mark.parametrize(
    ("gone", "rest"),
    [
        pytest.param(3, "", id="three"),
        pytest.param(4, "; and 1 more", id="four"),
    ],
)
def test_three_names_stand_in_a_line(weekly: Shop, gone: int, rest: str) -> None:
    told = weekly.told(later_week(weekly, gone))

    assert f"no longer has them: {gone}: Ósk Nr0, 2025-01-01 (" in told
    assert f"({takeout_id(2)}){rest}\n" in told


def test_all_names_stand_in_a_verbose_report(weekly: Shop) -> None:
    told = weekly.told(later_week(weekly, gone=4), "--verbose", "--dry-run")

    (removed,) = [line for line in told.splitlines() if line.startswith("removed")]
    assert removed.count("(google-") == 4


# ---- Said once, and until it is settled ----


def test_columns_that_are_not_used_are_said_once_but_a_dry_run_does_not_count(
    shop: Shop,
) -> None:
    path = shop.csv(
        ["Ann", "5", "2024-01-02", "x", "y"], header="author rating date text b"
    )
    words = (path, "--name=B", "--source=fb", "--map")
    columns = "author=author,rating=rating,date=date,text=text,reply=-,status=-"

    dry = shop.told(*words, columns, "--dry-run")
    first = shop.told(*words, columns)
    second = shop.told(path)

    assert 'columns that are not used: "b"' in dry
    assert 'columns that are not used: "b"' in first
    assert "not used" not in second


def test_damaged_letters_are_said_until_they_are_mended(shop: Shop) -> None:
    path = shop.csv(["BjÃ¸rn", "5", "2024-01-02", "x"])

    first = shop.told(path, "--name=B", "--source=fb")
    second = shop.told(path, "--source=fb")

    assert "letters look damaged" in first
    assert "letters look damaged" in second


# ---- Tables that are probably whole ----


@pytest.mark.parametrize(
    ("number", "is_named"),
    [
        pytest.param(19, True, id="one of twenty"),
        pytest.param(18, True, id="a tenth"),
        pytest.param(17, False, id="more than a tenth"),
        pytest.param(20, False, id="none"),
    ],
)
def test_a_table_that_has_nearly_all_names_those_that_it_lacks(
    shop: Shop, number: int, is_named: bool
) -> None:
    old = shop.csv(*rows(*range(20)), header=HEAD)
    shop.take(dated(old, moment(5)), "--name=B")

    table = shop.csv(*rows(*range(number)), header=HEAD)
    told = shop.told(dated(table, moment(9)))

    assert ("has nearly all reviews of fb, but lacks" in told) is is_named
    assert len(shop.reviews) == 20


def test_a_table_that_is_complete_is_not_asked_about(shop: Shop) -> None:
    old = shop.csv(*rows(*range(20)), header=HEAD)
    shop.take(dated(old, moment(5)), "--name=B", "--complete")

    table = shop.csv(*rows(*range(19)), header=HEAD)
    told = shop.told(dated(table, moment(9)))

    assert "nearly all" not in told
    assert "removed, the export of 2025-01-10 no longer has them: 1: Ann 19" in told


def test_a_table_lacks_no_reviews_of_other_sources_and_none_of_the_owners_own(
    shop: Shop,
) -> None:
    old = shop.csv(*rows(*range(20)), header=HEAD)
    of_yelp = shop.csv(
        ["1", "Yes", "5", "2024-01-02", "x", "yelp"], header=HEAD, name="b.csv"
    )
    shop.take(dated(old, moment(5)), dated(of_yelp, moment(5)), "--name=B")
    shop.edit("mine", author="Eve", rating=4, date="1985-05-05", source="fb")

    table = shop.csv(*rows(*range(19)), header=HEAD)
    told = shop.told(dated(table, moment(9)))

    assert "has nearly all reviews of fb, but lacks 1: Ann 19, " in told
