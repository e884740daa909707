"""Faults of imports from Google: one sentence each, and nothing that is nobody's business.

Sections: faults - what no output has.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from lab.export_lab import ZONE, api_item
from lab.google_lab import (
    AUTHOR,
    NOT_FOUND,
    REFRESH_TOKEN,
    TOKEN,
    GoogleShop,
    error,
    location,
)

from reviewslib.terminal import EXIT_BAD_DATA, EXIT_FAILURE, EXIT_SUCCESS


@pytest.fixture
def shop(tmp_path, capsys, google) -> GoogleShop:
    return GoogleShop(tmp_path, capsys.readouterr, google)


# ---- Faults ----

LOCATIONS = "/v1/accounts/9/locations"
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
        LOCATIONS,
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
    pytest.param(
        "/reviews", error(401, "X"), EXIT_BAD_DATA, "log in again", id="no token"
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
    pytest.param(
        "/accounts",
        error(403, "X", "No\n access\there"),
        EXIT_BAD_DATA,
        "says: No access here",
        id="a reason in lines",
    ),
    pytest.param("/accounts", (302, b""), EXIT_FAILURE, "302", id="redirect"),
    pytest.param(
        LOCATIONS,
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
    # when
    outcome, errors = shop.failed("--name", "Bó", "--zone", ZONE)
    # then
    assert outcome == status
    said, *rest = errors.splitlines()
    assert sentence in said
    assert rest == ["Nothing was written."]
    assert "Takeout" not in said


def test_pauses_end_within_two_minutes(shop, google):
    # given
    google.answers["/reviews"] = lambda: error(503, "UNAVAILABLE")
    # when
    shop.failed()
    # then
    assert 60 < sum(shop.slept) <= 120


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_request_is_repeated_when_google_is_busy(shop, google, status):
    # given
    google.has([1])
    answers = [error(status, "X"), error(status, "X")]

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
    shop.endpoints = replace(google.endpoints, token="http://127.0.0.1:9/")
    key = json.loads(google.key) | {"token_uri": shop.endpoints.token}
    shop.key.write_text(json.dumps(key))
    # when
    status, errors = shop.failed()
    # then
    assert status == EXIT_FAILURE
    assert "cannot be reached" in errors


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


def test_a_location_that_the_account_never_had_is_answered_with_those_it_has(
    shop, google
):
    # given
    google.has([1])
    # when
    status, errors = shop.failed("--location", "404")
    # then
    assert status == EXIT_BAD_DATA
    assert f"none of the chosen locations (404). It has {location_named()}" in errors


def location_named() -> str:
    """The location of the fake as a question names it."""
    entry = location()
    number = entry["name"].removeprefix("locations/")
    return f'{number} "{entry["title"]}"'


def test_a_profile_that_was_verified_once_is_asked_though_control_is_lost(shop, google):
    # given
    google.has([1])
    shop.ask()
    google.locations = [UNVERIFIED]
    google.has([1, 2])
    # when
    shop.ask()
    # then
    assert shop.numbers() == {1, 2}


def test_a_clock_that_is_behind_google_s_writes_nothing(shop, google):
    # given
    google.has([1])
    google.now = "2999-01-01T00:00:00+00:00"
    # when
    status, errors = shop.failed()
    # then
    assert status == EXIT_BAD_DATA
    assert "in the future" in errors


# ---- What no output has ----


@pytest.mark.parametrize("part", ["/token", "/accounts", LOCATIONS, "/reviews", "/AbF"])
@pytest.mark.parametrize("status", [400, 401, 404, 410, 429, 500])
def test_what_google_says_of_an_error_is_not_repeated(shop, google, part, status):
    # given
    google.has([1, 2])
    shop.ask()
    google.has([1])
    google.now = "2025-06-02T10:00:00+00:00"
    words = f"{TOKEN} {REFRESH_TOKEN} {google.url} {AUTHOR} Kom aftur, í 1. skipti"
    google.answers[part] = lambda: error(status, "INTERNAL", words)
    # when
    shop.run("--google", shop.key)
    # then
    printed = shop.output()
    assert words not in printed.out + printed.err


MESSAGE = "Enable it at https://console.example/"


@pytest.mark.parametrize("part", ["/accounts", LOCATIONS, "/reviews"])
def test_google_s_reason_for_a_refusal_has_the_address_to_enable_an_api(
    shop, google, part
):
    # given
    google.answers[part] = lambda: error(403, "PERMISSION_DENIED", MESSAGE)
    # when
    _, errors = shop.failed()
    # then
    assert MESSAGE in errors


def test_reviews_that_no_importer_can_read_are_google_s_affair(shop, google):
    # given
    google.has([api_item(number, createTime="yesterday") for number in (1, 2, 3)])
    # when
    status, errors = shop.failed()
    # then
    assert status == EXIT_BAD_DATA
    assert "This is how Google answers" in errors
    assert "export it anew" not in errors


def test_a_long_reason_is_cut(shop, google):
    # given
    google.answers["/accounts"] = lambda: error(403, "X", 501 * "x")
    # when
    _, errors = shop.failed()
    # then
    assert errors.count("x") == 500


# Values that no member of Google's answers has, beside those that mean nothing.
ODD_VALUES = (None, [], {}, [None], "\x00\ud800", -1, True, 10**40)


def with_odd_members(value: Any) -> Iterator[Any]:
    """`value` with each of its members in turn replaced by each odd value."""
    yield from ODD_VALUES
    members = list[tuple[Any, Any]]()
    if isinstance(value, dict):
        members = [*value.items()]
    elif isinstance(value, list):
        members = [*enumerate(value)]
    for key, member in members:
        for odd in with_odd_members(member):
            changed = value.copy()
            changed[key] = odd
            yield changed


PERIOD = {
    "openDay": "MONDAY",
    "openTime": {"hours": 9},
    "closeDay": "MONDAY",
    "closeTime": {"hours": 17, "minutes": 30},
}
REVIEW = api_item(
    1,
    reviewer={"displayName": f"{AUTHOR} Nr1", "profilePhotoUrl": "https://p.example/1"},
    reviewReply={"comment": "Takk fyrir komuna", "reviewReplyState": "APPROVED"},
)
ANSWERS = [
    pytest.param("/token", {"access_token": TOKEN}, id="token"),
    pytest.param("/accounts", {"accounts": [{"name": "accounts/9"}]}, id="accounts"),
    pytest.param(
        LOCATIONS,
        {
            "locations": [
                location(
                    storefrontAddress={"regionCode": "IS", "addressLines": ["1 Vegur"]},
                    regularHours={"periods": [PERIOD]},
                    categories={"primaryCategory": {"displayName": "Bakarí"}},
                    latlng={"latitude": 64.1, "longitude": -21.9},
                    serviceArea={"places": {"placeInfos": [{"placeName": "Vík"}]}},
                    metadata={"newReviewUri": "https://g.example/"},
                    languageCode="is",
                )
            ],
            "nextPageToken": "",
        },
        id="locations",
    ),
    pytest.param(
        "/reviews",
        {"reviews": [REVIEW], "totalReviewCount": 1, "nextPageToken": ""},
        id="reviews",
    ),
    pytest.param("/AbFvOq0001", REVIEW, id="one review"),
]


@pytest.mark.slow
@pytest.mark.parametrize("part, answer", ANSWERS)
def test_an_answer_of_another_shape_is_an_import_or_a_sentence(
    shop, google, part: str, answer: Any
):
    # given
    google.has([REVIEW, 2])
    shop.ask("--avatars")
    google.unlisted = {"AbFvOq0001"}
    statuses = set[int]()
    # when
    for changed in with_odd_members(answer):
        google.answers[part] = lambda content=changed: (200, content)
        statuses.add(shop.run("--google", shop.key, "--avatars", "--dry-run"))
        shop.output()
    # then
    assert statuses <= {EXIT_SUCCESS, EXIT_FAILURE, EXIT_BAD_DATA}
