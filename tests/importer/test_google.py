"""Imports from Google's API: against a fake of it, over real sockets.

Sections: a run, and the next - listings that are not whole - questions about single
reviews - the profile - order and kills.
"""

import json
import subprocess
import sys
from typing import Any

import pytest
from lab.export_lab import PLACE, ZONE, api_item, moment, takeout_id
from lab.google_lab import (
    NOT_FOUND,
    OTHER_PLACE,
    FakeGoogle,
    GoogleShop,
    error,
    location,
)

from reviewslib.importer import command
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_FAILURE, EXIT_SUCCESS

PROFILE = {
    "websiteUri": "https://bo.example/",
    "phoneNumbers": {"primaryPhone": "555 1234"},
    "metadata": {"newReviewUri": "https://g.page/r/bo/review"},
}


@pytest.fixture
def shop(tmp_path, capsys, google):
    return GoogleShop(tmp_path, capsys.readouterr, google)


def there(number: int) -> dict[str, Any]:
    """A review of the other location."""
    id = f"AbFvOq{number:04}"
    return api_item(number, name=f"accounts/9/locations/{OTHER_PLACE}/reviews/{id}")


def later(google: FakeGoogle, day: int) -> None:
    google.now = f"2025-06-{day:02}T10:00:00+00:00"


# ---- A run, and the next ----


def test_a_first_run_brings_reviews_profile_and_counted_insights(shop, google):
    # given
    google.locations = [location(**PROFILE), location(OTHER_PLACE, "Other")]
    google.has(range(1, 301))
    google.has([there(301)], OTHER_PLACE)
    # Without it, the service counts by itself.
    shop.file("data/editorial.json", "{}")
    # when
    shop.ask("--location", PLACE)
    # then
    assert shop.numbers() == set(range(1, 301))
    assert shop.document["business"]["name"] == "Bó's Bakarí"
    assert shop.document["business"]["url"] == PROFILE["websiteUri"]
    insights = json.loads(shop.files()["insights.json"])
    assert insights["review_count"] == 300


def test_a_second_run_writes_nothing_but_the_moment(shop, google):
    # given
    google.locations = [location(**PROFILE), location(OTHER_PLACE, "Other")]
    google.has(range(1, 301))
    shop.ask("--location", PLACE)
    state = shop.state
    files = shop.files()
    later(google, 2)
    # when
    report = shop.ask()
    # then
    assert report.count("\n") == 1
    assert shop.state == state | {"newest_export": "2025-06-02T10:00:00Z"}
    del files["import-state.json"]
    assert files.items() <= shop.files().items()


def test_the_location_is_asked_for_while_none_is_chosen(shop, google):
    # given
    google.locations = [location(), location(OTHER_PLACE, "Other")]
    # when
    status, errors = shop.failed()
    # then
    assert status == EXIT_BAD_DATA
    assert f"{OTHER_PLACE} 'Other'" in errors


def test_a_location_that_opens_later_is_left_out(shop, google):
    # given
    google.has([1])
    shop.ask()
    google.locations.append(location(OTHER_PLACE, "Other"))
    google.has([there(2)], OTHER_PLACE)
    # when
    shop.ask()
    # then
    assert shop.numbers() == {1}


def test_new_revised_and_answered_reviews_come(shop, google):
    # given
    google.has([1, 2])
    shop.ask()
    later(google, 2)
    answer = {"comment": "Takk", "updateTime": moment(40)}
    revised = api_item(1, comment="Verra, í 1. skipti", updateTime=moment(30))
    google.has([revised, api_item(2, reviewReply=answer), 3])
    # when
    shop.ask()
    # then
    assert shop.numbers() == {1, 2, 3}
    assert "Verra, í 1. skipti" in shop.texts()
    replies = [review["owner_reply"] for review in shop.reviews.values()]
    assert [reply["text"] for reply in replies if reply] == ["Takk"]


def test_a_deleted_review_goes(shop, google):
    # given
    google.has([1, 2, 3])
    shop.ask()
    later(google, 2)
    google.has([1, 3])
    # when
    shop.ask()
    # then
    assert shop.numbers() == {1, 3}


def test_a_takeout_keeps_its_ids(shop, google):
    # given
    shop.take(shop.takeout(20, [1, 2]))
    google.has([api_item(1, createTime=moment(1, 1)), 2])
    # when
    shop.ask()
    # then
    assert {*shop.reviews} == {takeout_id(1), takeout_id(2)}


def test_a_location_that_is_lost_keeps_its_reviews_and_is_named(shop, google):
    # given
    both = [location(), location(OTHER_PLACE, "Other")]
    google.locations = both
    google.has([1])
    google.has([there(2)], OTHER_PLACE)
    shop.ask("--location", PLACE, "--location", OTHER_PLACE, "--name", "Bó")
    google.locations = both[:1]
    google.has([1, 3])
    later(google, 2)
    # when
    report = shop.ask()
    # then
    assert shop.numbers() == {1, 2, 3}
    assert f"no longer has location {OTHER_PLACE} 'Other'; its reviews stay" in report


def test_a_location_in_a_group_is_asked_once(shop, google):
    # given
    google.accounts.append("accounts/8")
    google.has([1])
    # when
    shop.ask()
    # then
    asked = [request for request in google.requests if "/reviews" in request]
    assert len(asked) == 1


# ---- Listings that are not whole ----


def test_what_a_second_page_lacks_stays(shop, google):
    # given
    google.has(range(1, 80))
    shop.ask()
    later(google, 2)
    google.hidden = {"AbFvOq0001", "AbFvOq0002"}
    # when
    shop.ask()
    # then
    assert shop.numbers() == set(range(1, 80))


def test_a_short_listing_removes_what_google_says_is_gone(shop, google):
    # given
    google.has(range(1, 80))
    shop.ask()
    later(google, 2)
    google.has(range(2, 80))
    google.totals[PLACE] = 99
    # when
    shop.ask()
    # then
    assert shop.numbers() == set(range(2, 80))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(error(503, "UNAVAILABLE"), id="busy"),
        pytest.param(error(403, "PERMISSION_DENIED"), id="refused"),
        pytest.param((404, b"<html>"), id="a page of another server"),
    ],
)
def test_an_answer_that_is_neither_means_nothing(shop, google, answer):
    # given
    google.has([1, 2, 3])
    shop.ask()
    later(google, 2)
    google.has([1, 3])
    google.answers["/reviews/"] = lambda: answer
    # when
    report = shop.ask()
    # then
    assert shop.numbers() == {1, 2, 3}
    assert "(1 of the stored reviews" in report


def test_the_brake_holds_280_of_300(shop, google):
    # given
    google.has(range(1, 301))
    shop.ask()
    later(google, 2)
    google.has(range(1, 21))
    # when
    report = shop.ask()
    # then
    assert len(shop.reviews) == 300
    assert "--allow-removals" in report


# ---- Questions about single reviews ----


def questions(google: FakeGoogle) -> list[int]:
    """The numbers of the reviews that were asked for since the last call, in order."""
    asked = [request.partition("/reviews/AbFvOq")[2] for request in google.requests]
    google.requests.clear()
    return [int(number) for number in asked if number]


def test_a_run_asks_for_200_reviews_and_the_next_for_the_others(shop, google):
    # given
    google.has(range(1, 301))
    shop.ask()
    google.has(range(261, 301))
    later(google, 2)
    google.requests.clear()
    # when
    shop.ask()
    first = questions(google)
    later(google, 3)
    shop.ask()
    second = questions(google)
    # then
    assert len(first) == 200
    assert sorted(first + second) == [*range(1, 261)]


@pytest.mark.parametrize(
    ("number", "is_written"),
    [
        pytest.param(200, False, id="all asked for"),
        pytest.param(201, True, id="one too many"),
    ],
)
def test_answers_are_remembered_if_a_run_could_not_ask_for_all(
    shop, google, number: int, is_written: bool
):
    # given
    google.has(range(1, 251))
    shop.ask()
    google.unlisted = {f"AbFvOq{n:04}" for n in range(1, number + 1)}
    google.totals[PLACE] = 250
    before = shop.state["reviews"]
    later(google, 2)
    # when
    shop.ask()
    # then
    assert (shop.state["reviews"] != before) is is_written


def test_what_the_brake_holds_is_not_asked_for_again(shop, google):
    # given
    google.has(range(1, 301))
    shop.ask()
    google.has(range(261, 301))
    for day in (2, 3):
        later(google, day)
        shop.ask()
    google.requests.clear()
    # when
    later(google, 4)
    report = shop.ask()
    # then
    assert questions(google) == []
    assert "260 of 300 reviews stay" in report


def test_what_was_held_goes_when_the_owner_says_so(shop, google):
    # given
    google.has(range(1, 21))
    shop.ask()
    google.has([1, 2])
    later(google, 2)
    shop.ask()
    # when
    later(google, 3)
    shop.ask("--allow-removals")
    # then
    assert shop.numbers() == {1, 2}


def test_what_was_held_and_returned_is_asked_for_when_a_list_lacks_it(shop, google):
    # given
    google.has(range(1, 21))
    shop.ask()
    google.has([1, 2])
    later(google, 2)
    shop.ask()
    google.has(range(1, 21))
    later(google, 3)
    shop.ask()
    google.has(range(2, 21))
    google.requests.clear()
    # when
    later(google, 4)
    shop.ask()
    # then
    assert questions(google) == [1]
    assert shop.numbers() == set(range(2, 21))


def test_those_never_answered_are_asked_for_first(shop, google):
    # given
    google.has(range(1, 301))
    shop.ask()
    google.unlisted = {f"AbFvOq{number:04}" for number in range(1, 261)}
    later(google, 2)
    google.requests.clear()
    # when
    shop.ask()
    first = questions(google)
    later(google, 3)
    shop.ask()
    second = questions(google)
    # then
    assert set(second[:60]) == {*range(1, 261)} - {*first}
    assert len(second) == 200


def test_a_busy_google_is_not_asked_on(shop, google):
    # given
    google.has(range(1, 41))
    shop.ask()
    later(google, 2)
    google.has(range(31, 41))
    google.answers["/reviews/"] = lambda: error(429, "RESOURCE_EXHAUSTED")
    google.requests.clear()
    # when
    shop.ask()
    # then
    assert len(questions(google)) == 10
    assert len(shop.reviews) == 40


def test_an_answer_about_another_review_is_a_fault(shop, google):
    # given
    google.has([1, 2])
    shop.ask()
    later(google, 2)
    google.has([1])
    google.answers["/reviews/"] = lambda: (200, api_item(1))
    # when
    status, errors = shop.failed()
    # then
    assert status == EXIT_FAILURE
    assert "another review than asked for" in errors


def test_a_single_404_wins_over_an_older_takeout(shop, google):
    # given
    google.has([1, 2, 3])
    shop.ask()
    later(google, 2)
    google.has([1, 3])
    shop.ask()
    # when
    shop.take(shop.takeout(50, [1, 2, 3]))
    # then
    assert shop.numbers() == {1, 3}


# ---- The profile ----


def test_business_follows_the_profile(shop, google):
    # given
    google.has([1])
    google.locations = [location(**PROFILE)]
    shop.ask()
    google.locations = [location(**PROFILE | {"websiteUri": "https://new.example/"})]
    # when
    report = shop.ask()
    # then
    assert shop.document["business"]["url"] == "https://new.example/"
    assert "business, after Google's profile: url" in report


@pytest.mark.parametrize("value", ["https://mine.example/", None])
def test_what_the_owner_wrote_or_emptied_stays(shop, google, value):
    # given
    google.has([1])
    google.locations = [location(**PROFILE)]
    shop.ask()
    document = shop.document
    document["business"]["url"] = value
    shop.file("data/reviews.json", json.dumps(document))
    # when
    shop.ask()
    # then
    assert shop.document["business"]["url"] == value


def test_google_s_language_is_offered_once_and_never_set(shop, google):
    # given
    google.has([1])
    google.locations = [location(languageCode="is")]
    # when
    first = shop.ask()
    second = shop.ask()
    # then
    assert "language of the profile is is" in first
    assert "language of the profile" not in second
    assert shop.document["business"]["language"] is None


def test_what_the_contract_refuses_is_left_out(shop, google):
    # given
    google.has([1])
    google.locations = [location(websiteUri="javascript:alert(1)")]
    # when
    report = shop.ask()
    # then
    assert shop.document["business"]["url"] is None
    assert "Google's url of the business is left out" in report


# ---- Order and kills ----


def test_google_is_asked_before_the_lock_is_taken(shop, google, monkeypatch):
    # given
    google.has([1])
    asked = list[int]()
    locked = command.files.locked

    def noted(*arguments: Any, **more: Any) -> Any:
        asked.append(len(google.requests))
        return locked(*arguments, **more)

    monkeypatch.setattr(command.files, "locked", noted)
    # when
    shop.ask()
    # then
    assert asked == [len(google.requests)]


@pytest.mark.parametrize(
    "file, numbers",
    [
        pytest.param("import-state.draft.json", {1, 2}, id="before the draft"),
        pytest.param("reviews.json", {1, 2}, id="before the reviews"),
        pytest.param("import-state.json", {2, 3}, id="before the state"),
        pytest.param("insights.json", {2, 3}, id="before the count"),
    ],
)
def test_a_kill_while_writing_leaves_all_before_or_all_after(
    shop, google, file: str, numbers: set[int]
):
    # given
    shop.file("data/editorial.json", "{}")
    google.has([1, 2])
    shop.ask()
    later(google, 2)
    google.has([2, 3])
    # when
    shop.run_until_killed("--google", shop.key, name=file)
    # then
    assert shop.numbers() == numbers
    later(google, 3)
    shop.ask()
    assert shop.numbers() == {2, 3}


IMPORT = """
import sys
from reviewslib.importer import command
from reviewslib.importer.google_client import Connection
from reviewslib.importer.google_http import Endpoints

url, *words = sys.argv[1:]
endpoints = Endpoints(url, f"{url}/token", f"{url}/v1", f"{url}/v1", f"{url}/v4")
sys.exit(command.main(words, connection=Connection(endpoints)))
"""


def test_a_kill_while_google_is_asked_leaves_all_before(shop, google):
    # given
    google.has([1, 2])
    shop.ask()
    before = shop.files()
    later(google, 2)
    google.has([2, 3])
    words = ["--google", str(shop.key), "--data", str(shop.data)]
    program = [sys.executable, "-c", IMPORT, google.url, *words]
    # when
    with subprocess.Popen(program) as process:

        def kill():
            process.kill()
            process.wait()
            return NOT_FOUND

        google.answers["/AbFvOq0001"] = kill
    # then
    assert process.returncode == -9
    assert shop.files() == before
    google.answers.clear()
    shop.ask()
    assert shop.numbers() == {2, 3}


def test_a_dry_run_writes_nothing(shop, google):
    # given
    google.has([1])
    # when
    shop.ask("--dry-run")
    # then
    assert shop.files() == {}


def test_files_may_stand_in_the_same_command(shop, google):
    # given
    google.has([1, 2])
    # when
    status = shop.run(shop.takeout(20, [1]), "--google", shop.key, "--zone", ZONE)
    # then
    assert status == EXIT_SUCCESS
    assert takeout_id(1) in shop.reviews
    assert len(shop.reviews) == 2
