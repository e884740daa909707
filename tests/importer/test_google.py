"""Imports from Google's API: against a fake of it, over real sockets."""

import json
from dataclasses import replace
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
from reviewslib.importer.google import Connection
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_FAILURE, EXIT_SUCCESS


@pytest.fixture
def google():
    with FakeGoogle() as fake:
        yield fake


@pytest.fixture
def shop(tmp_path, capsys, google):
    return GoogleShop(tmp_path, capsys.readouterr, google)


def later(google: FakeGoogle, day: int) -> None:
    google.now = f"2025-06-{day:02}T10:00:00+00:00"


# ---- A run, and the next ----


def test_a_first_run_imports_one_of_two_locations(shop, google):
    # given
    google.locations = [location(), location(OTHER_PLACE, "Other")]
    google.has(range(1, 121))
    # when
    shop.ask("--location", PLACE)
    # then
    assert shop.numbers() == set(range(1, 121))


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
    google.has([api_item(2)], OTHER_PLACE)
    # when
    shop.ask()
    # then
    assert shop.numbers() == {1}


def test_nothing_new_writes_the_newest_export_alone(shop, google):
    # given
    google.has([1, 2])
    shop.ask()
    before = shop.state
    reviews = shop.files()["reviews.json"]
    later(google, 2)
    # when
    report = shop.ask()
    # then
    assert report.count("\n") == 1
    assert shop.files()["reviews.json"] == reviews
    assert shop.state == before | {"newest_export": "2025-06-02T10:00:00Z"}


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
    google.total = 99
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

PROFILE = {
    "websiteUri": "https://bo.example/",
    "phoneNumbers": {"primaryPhone": "555 1234"},
    "metadata": {"newReviewUri": "https://g.page/r/bo/review"},
}


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


def test_what_the_contract_refuses_is_left_out(shop, google):
    # given
    google.has([1])
    google.locations = [location(websiteUri="javascript:alert(1)")]
    # when
    report = shop.ask()
    # then
    assert shop.document["business"]["url"] is None
    assert "Google's url of the business is left out" in report


# ---- Faults ----

INVALID_GRANT = (400, {"error": "invalid_grant"})
NO_QUOTA = error(
    429, "RESOURCE_EXHAUSTED", details=[{"metadata": {"quota_limit_value": "0"}}]
)
NOT_ENABLED = error(403, "PERMISSION_DENIED", "Enable it at https://console.example/")
UNVERIFIED = location(metadata={"hasVoiceOfMerchant": False})
OTHER_REVIEW = api_item(1, name="accounts/9/locations/5/reviews/x")
FAULTS = [
    pytest.param("/token", INVALID_GRANT, EXIT_BAD_DATA, "log in again", id="revoked"),
    pytest.param("/accounts", NO_QUOTA, EXIT_BAD_DATA, "not approved", id="no quota"),
    pytest.param(
        "/token", error(500, "INTERNAL"), EXIT_FAILURE, "500", id="no token for now"
    ),
    pytest.param(
        "/token",
        (200, {"access_token": "two\nlines"}),
        EXIT_FAILURE,
        "(access_token)",
        id="token",
    ),
    pytest.param(
        "/accounts", NOT_ENABLED, EXIT_BAD_DATA, "https://console", id="not enabled"
    ),
    pytest.param("/accounts", (200, {}), EXIT_BAD_DATA, "no location", id="none"),
    pytest.param(
        "/locations",
        (200, {"locations": [UNVERIFIED]}),
        EXIT_BAD_DATA,
        "No location of the account is verified",
        id="none verified",
    ),
    pytest.param("/reviews", NOT_FOUND, EXIT_BAD_DATA, "not verified", id="gone"),
    pytest.param("/reviews", error(503, "UNAVAILABLE"), EXIT_FAILURE, "503", id="busy"),
    pytest.param(
        "/reviews", error(429, "X"), EXIT_FAILURE, "no more requests", id="too many"
    ),
    pytest.param("/reviews", (200, b"<html>"), EXIT_FAILURE, "not JSON", id="HTML"),
    pytest.param(
        "/reviews", (200, {"reviews": {}}), EXIT_FAILURE, "no list", id="no list"
    ),
    pytest.param(
        "/reviews", (200, {"reviews": [{}]}), EXIT_FAILURE, "(name)", id="no name"
    ),
    pytest.param(
        "/reviews",
        (200, {"reviews": [OTHER_REVIEW]}),
        EXIT_FAILURE,
        "name of a review",
        id="other location",
    ),
    pytest.param(
        "/reviews", (200, {"nextPageToken": "a"}), EXIT_FAILURE, "no end", id="endless"
    ),
    pytest.param(
        "/reviews", (200, b" " * 2**24 + b"{}"), EXIT_FAILURE, "16 MiB", id="too large"
    ),
    pytest.param("/accounts", (302, b""), EXIT_FAILURE, "302", id="redirect"),
    pytest.param(
        "/locations",
        (200, {"locations": [location(regularHours={"periods": [{"openDay": "X"}]})]}),
        EXIT_FAILURE,
        "openDay",
        id="unknown day",
    ),
]


@pytest.mark.parametrize("part, answer, status, sentence", FAULTS)
def test_a_fault_is_one_sentence(
    shop, google, part: str, answer: Any, status: int, sentence: str
):
    # given
    google.answers[part] = lambda: answer
    if part == "/locations":
        google.answers = {"/reviews": lambda: (200, {}), part: lambda: answer}
    # when
    outcome = shop.failed("--name", "Bó", "--zone", ZONE)
    # then
    assert outcome[0] == status
    assert sentence in outcome[1]


def test_pauses_end_within_two_minutes(shop, google):
    # given
    google.answers["/reviews"] = lambda: error(503, "UNAVAILABLE")
    # when
    shop.failed()
    # then
    assert 60 < sum(shop.slept) <= 120


def test_a_request_is_repeated_when_google_is_busy(shop, google):
    # given
    google.has([1])
    answers = [error(503, "UNAVAILABLE"), error(429, "RESOURCE_EXHAUSTED")]

    def busy():
        if len(answers) == 1:
            del google.answers["/accounts"]
        return answers.pop()

    google.answers["/accounts"] = busy
    # when
    shop.ask()
    # then
    assert shop.numbers() == {1}


def test_no_network_is_one_sentence(shop, google):
    # given
    google.endpoints_of_nobody = replace(google.endpoints, token="http://127.0.0.1:9/")
    key = json.loads(google.key) | {"token_uri": "http://127.0.0.1:9/"}
    shop.key.write_text(json.dumps(key))
    connection = Connection(endpoints=google.endpoints_of_nobody)
    words = ["--google", str(shop.key), "--data", str(shop.data)]
    # when
    status = command.main(words, connection=connection)
    # then
    assert status == EXIT_FAILURE
    assert "cannot be reached" in shop.output().err


def test_a_key_with_another_token_address_is_refused(shop, google):
    # given
    key = json.loads(google.key) | {"token_uri": "https://evil.example/token"}
    shop.key.write_text(json.dumps(key))
    # when
    status, errors = shop.failed()
    # then
    assert status == EXIT_BAD_DATA
    assert "token_uri" in errors
    assert google.requests == []


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


def test_a_kill_leaves_all_before_or_all_after(shop, google):
    # given
    google.has([1, 2])
    shop.ask()
    later(google, 2)
    google.has([2, 3])
    # when
    shop.run_until_killed("--google", shop.key)
    # then
    assert shop.numbers() == {1, 2}
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
