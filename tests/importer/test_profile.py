"""Google's profile as members of `business`."""

import pytest

from reviewslib.importer.google_faults import GoogleFault
from reviewslib.importer.profile import hours_of, members_of


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
def test_hours(periods, expected):
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
