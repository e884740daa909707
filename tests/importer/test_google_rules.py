"""Merging what Google says: replies by state, one review of a person and a place, 404s."""

import json

import pytest
from lab.export_lab import (
    PLACE,
    Item,
    Shop,
    api_item,
    dated,
    item,
    moment,
    stamped,
    takeout_files,
    takeout_id,
)

from reviewslib.importer.google_listing import Listing

OTHER = "22"
BOTH = ("--location", PLACE, "--location", OTHER)
TITLES = ("--name", "Bó")
REPLY = {"comment": "Takk", "updateTime": moment(9)}


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


@pytest.mark.parametrize(
    "state, is_published",
    [
        pytest.param(None, True, id="without a state"),
        pytest.param("APPROVED", True, id="approved"),
        pytest.param("REJECTED", False, id="rejected"),
        pytest.param("PENDING", False, id="pending"),
        pytest.param("OF_THE_FUTURE", False, id="unknown state"),
    ],
)
def test_only_approved_replies_are_published(shop, state, is_published):
    # given
    reply = dict(REPLY)
    if state:
        reply["reviewReplyState"] = state
    # when
    shop.take(shop.page(api_item(1, reviewReply=reply)), "--name", "Bó")
    # then
    assert bool(shop.only().get("owner_reply")) is is_published


def test_a_rejection_removes_a_reply(shop):
    # given
    shop.take(shop.takeout(20, [item(1, reviewReply=REPLY)]))
    # when
    rejected = REPLY | {"reviewReplyState": "REJECTED"}
    shop.take(shop.takeout(21, [item(1, reviewReply=rejected)]))
    # then
    assert shop.only()["owner_reply"] is None


def test_a_pending_reply_leaves_the_stored_one(shop):
    # given
    shop.take(shop.takeout(20, [item(1, reviewReply=REPLY)]))
    # when
    pending = {
        "comment": "Takk!",
        "updateTime": moment(20),
        "reviewReplyState": "PENDING",
    }
    shop.take(shop.takeout(21, [item(1, reviewReply=pending)]))
    # then
    assert shop.only()["owner_reply"]["text"] == "Takk"


def batch_page(*items: Item) -> str:
    """A page of `locations:batchGetReviews`."""
    entries = [{"name": f"accounts/9/locations/{PLACE}", "review": it} for it in items]
    return json.dumps({"locationReviews": entries})


def test_a_page_of_many_locations_is_imported(shop):
    # when
    shop.take(shop.file("p.json", batch_page(api_item(1), api_item(2))), *TITLES)
    # then
    assert shop.numbers() == {1, 2}


@pytest.mark.parametrize("flags", [(), ("--complete",)], ids=["alone", "complete"])
@pytest.mark.parametrize(
    "name", ["p.json", "takeout-20260101T000000Z-001/reviews.json"]
)
def test_a_page_of_many_locations_speaks_for_nothing(shop, name, flags):
    # given
    shop.take(shop.takeout(20, [1, 2]))
    # when
    page = shop.file(name, batch_page(api_item(1)))
    shop.take(page.parent if "/" in name else page, "--allow-removals", *flags)
    # then
    assert shop.numbers() == {1, 2}


@pytest.mark.parametrize("second", [0, 1], ids=["equal moments", "a second apart"])
def test_takeout_and_api_have_one_review_of_a_person_and_a_place(shop, second):
    # given
    shop.take(shop.takeout(20, [1]))
    # when
    shop.take(shop.page(api_item(1, createTime=moment(1, second))))
    # then
    assert [*shop.reviews] == [takeout_id(1)]


def test_a_review_on_the_next_day_by_the_same_person_is_the_same(shop):
    # given
    shop.take(shop.takeout(20, [1]))
    # when
    shop.take(shop.page(api_item(1, createTime=moment(2))))
    # then
    assert len(shop.reviews) == 1


def test_names_that_many_share_join_nothing(shop):
    # given
    nameless = {"displayName": "A Google user"}
    shop.take(shop.takeout(20, [item(1, reviewer=nameless)]))
    # when
    shop.take(shop.page(api_item(1, reviewer=nameless, createTime=moment(1, 1))))
    # then
    assert len(shop.reviews) == 2


def test_an_erased_review_stays_away_a_second_apart(shop):
    # given
    shop.take(shop.takeout(20, [1, 2]))
    shop.take("--forget", takeout_id(1))
    # when
    shop.take(shop.page(api_item(1, createTime=moment(1, 1))))
    # then
    assert [*shop.reviews] == [takeout_id(2)]


def late(number: int, place: str = PLACE) -> Item:
    """A review as the API has it, a second later than a Takeout."""
    id = f"AbFvOq{number:04}"
    name = f"accounts/9/locations/{place}/reviews/{id}"
    return api_item(number, name=name, createTime=moment(number, 1))


@pytest.fixture
def two_places(shop):
    """A shop with a review of each of two locations, from Takeouts."""
    there = item(2, place=OTHER)
    files = takeout_files([item(1)]) | takeout_files([there], place=OTHER)
    shop.take(shop.zip(stamped(20), files), *BOTH, *TITLES)
    return shop


def test_after_a_lost_state_the_person_is_known_in_whatever_location(two_places):
    # given
    shop = two_places
    shop.lose()
    # when
    shop.take(shop.page(late(1), late(2, OTHER)), *BOTH)
    # then
    assert {*shop.reviews} == {takeout_id(1), takeout_id(2)}


def test_what_is_erased_after_a_lost_state_stays_away_a_second_apart(two_places):
    # given
    shop = two_places
    shop.lose()
    shop.take("--forget", takeout_id(1))
    # when
    shop.take(shop.page(late(1), late(2, OTHER)), *BOTH)
    # then
    assert {*shop.reviews} == {takeout_id(2)}


def test_after_a_lost_state_one_who_reviewed_two_locations_is_not_mixed_up(shop):
    # given
    there = item(2, place=OTHER, reviewer=item(1)["reviewer"], createTime=moment(1, 30))
    files = takeout_files([item(1)]) | takeout_files([there], place=OTHER)
    shop.take(shop.zip(stamped(20), files), *BOTH, *TITLES)
    shop.lose()
    # when
    again = late(2, OTHER) | {
        "reviewer": there["reviewer"],
        "createTime": moment(1, 31),
    }
    shop.take(shop.page(again), *BOTH)
    # then
    texts = {id: review["text"] for id, review in shop.reviews.items()}
    assert texts[takeout_id(1)] == item(1)["comment"]
    assert texts[takeout_id(2)] == there["comment"]


def test_a_row_that_returns_by_google_s_own_export_is_no_row_any_more(shop):
    # given
    row = ["Ósk Nr1", "5", moment(1)[:10], item(1)["comment"], "google"]
    header = "author rating date text source"
    table = dated(shop.csv(row, header=header), "2025-01-03T00:00:00Z")
    shop.take(table, *TITLES)
    shop.take(shop.takeout(20, [2]), "--allow-removals")
    # when
    shop.take(shop.takeout(21, [1, 2]))
    # then
    entries = shop.state["reviews"].values()
    assert len(shop.reviews) == 2
    assert not [entry for entry in entries if "row" in entry]


def test_a_review_says_when_its_writer_last_changed_it(shop):
    # given
    shop.take(shop.takeout(20, [1]))
    # when
    shop.take(shop.takeout(21, [item(1, updateTime=moment(15), comment="Nei")]))
    # then
    assert shop.only()["updated"] == "2025-01-16T12:15:00-08:00"


def test_a_table_says_nothing_of_changes(shop):
    # when
    shop.take(
        shop.csv(["Ann", "5", "2025-01-02", "Good"]), "--source", "fb", "--name", "Bó"
    )
    # then
    assert shop.only()["updated"] is None


def test_a_lost_state_leaves_what_is_known_of_changes(shop):
    # given
    shop.take(shop.takeout(20, [item(1, updateTime=moment(15))]), "--name", "Bó")
    shop.lose()
    # when
    shop.take(
        shop.csv(["Ann", "5", "2025-01-02", "Good"]), "--source", "fb", "--name", "Bó"
    )
    # then
    changes = [review["updated"] for review in shop.reviews.values()]
    assert changes == ["2025-01-16T12:15:00-08:00", None]


def test_the_largest_number_that_a_list_gives_says_whether_it_is_whole():
    # given pages that disagree, as while reviews are written or removed
    listing = Listing(PLACE, time="")
    listing.take_page({"reviews": [api_item(1)], "totalReviewCount": 3})
    # when
    listing.take_page({"reviews": [api_item(2)], "totalReviewCount": 2})
    # then
    assert not listing.is_whole
