"""Google's profile as members of `business`."""

import pytest

from reviewslib.dataset.contract import shipped_contract
from reviewslib.importer.google_faults import GoogleFault
from reviewslib.importer.profile import Followed, follow, hours_of, members_of


def period(
    day: str, opens: dict[str, int], closes: dict[str, int]
) -> dict[str, object]:
    return {"openDay": day, "openTime": opens, "closeDay": day, "closeTime": closes}


NINE = {"hours": 9}
MONDAY = period("MONDAY", NINE, {"hours": 17, "minutes": 30})
TUESDAY = MONDAY | {"openDay": "TUESDAY", "closeDay": "TUESDAY"}
ALL_DAY = period("SUNDAY", {}, {"hours": 24})


@pytest.mark.parametrize(
    "periods, expected",
    [
        pytest.param([], None, id="none"),
        pytest.param(
            [TUESDAY, MONDAY],
            [{"days": ["Monday", "Tuesday"], "opens": "09:00", "closes": "17:30"}],
            id="equal days are joined",
        ),
        pytest.param(
            [ALL_DAY],
            [{"days": ["Sunday"], "opens": "00:00", "closes": "24:00"}],
            id="an absent zero, and 24:00",
        ),
    ],
)
def test_periods_of_google_become_hours_of_days(periods, expected):
    assert hours_of(periods) == expected


def test_an_address_has_its_lines_joined():
    # given
    address = {
        "addressLines": ["Hauptstr. 1", "Hof"],
        "locality": "Berlin",
        "postalCode": "10115",
        "regionCode": "DE",
    }
    # when
    business = members_of({"title": "Bó", "storefrontAddress": address})
    # then
    assert business["address"] == {
        "street": "Hauptstr. 1, Hof",
        "locality": "Berlin",
        "region": None,
        "postal_code": "10115",
        "country": "DE",
    }


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param({"title": 5}, id="title"),
        pytest.param({"regularHours": []}, id="hours"),
        pytest.param({"storefrontAddress": {"addressLines": "x"}}, id="address"),
        pytest.param({"serviceArea": {"places": {"placeInfos": [1]}}}, id="area"),
    ],
)
def test_another_shape_is_a_fault(profile):
    with pytest.raises(GoogleFault, match="another shape"):
        members_of(profile)


# ---- Following ----


def after(before: Followed, profile: dict[str, object]) -> Followed:
    return follow(before.business, profile, before.digests, shipped_contract())


NOTHING = Followed(business={"name": "Bó", "url": None}, digests={}, lines=[])
SITE = {"title": "Bó", "websiteUri": "https://bo.example/"}


def test_of_a_profile_that_is_as_before_nothing_is_said():
    # given
    filled = after(NOTHING, SITE)
    # when
    followed = after(filled, SITE)
    # then
    assert followed == filled._replace(lines=[])


def test_a_member_that_google_no_longer_has_is_null_again():
    # given
    filled = after(NOTHING, SITE)
    # when
    followed = after(filled, {"title": "Bó"})
    # then
    assert followed.business["url"] is None
    assert followed.lines == ["business, after Google's profile: url"]


def test_a_member_that_google_has_again_is_followed_again():
    # given
    emptied = after(after(NOTHING, SITE), {"title": "Bó"})
    # when
    followed = after(emptied, SITE)
    # then
    assert followed.business["url"] == "https://bo.example/"


def test_a_name_stays_though_google_has_none():
    # given
    named = after(NOTHING._replace(business={"name": None}), SITE)
    # when
    followed = after(named, {})
    # then
    assert followed.business["name"] == "Bó"


def test_what_the_owner_has_written_is_not_followed():
    # given
    mine = {"name": "Mine", "url": "https://mine.example/"}
    # when
    followed = after(NOTHING._replace(business=mine), SITE)
    # then
    assert followed.business == mine
    assert followed.lines == []


def test_an_address_of_nulls_is_one_that_was_never_filled():
    # given
    empty = {"name": "Bó", "address": {"street": None, "country": None}}
    # when
    followed = after(
        NOTHING._replace(business=empty),
        SITE | {"storefrontAddress": {"regionCode": "IS"}},
    )
    # then
    assert followed.business["address"]["country"] == "IS"
