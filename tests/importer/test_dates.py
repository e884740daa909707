"""Dates are read in the forms that people and tools write, and are never guessed."""

import time
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

from reviewslib.dataset.contract import quoted
from reviewslib.importer.dates import DateFormat, allowed_orders, in_zone, read_date
from reviewslib.importer.texts import BadRecord

BERLIN = ZoneInfo("Europe/Berlin")
DMY = DateFormat()
DAYS = {
    "2024-06-01": [
        "1.6.24",
        "01.06.2024",
        "2024/06/01",
        "2024-06-01",
        "1. Juni 2024",
        "1er juin 2024",
    ],
    "2024-05-03": [
        "3 May 2024",
        "3-May-24",
        "May 3, 2024",
        "3. Mai 2024",
        "3 mai 2024",
        "3 de mayo de 2024",
    ],
    "2024-03-05": [
        "5. März 2024",
        "5 mars 2024",
        "5 de marzo de 2024",
        "Mar. 5th, 2024",
        "5-Mär-24",
    ],
    "2024-08-09": [
        "9. August 2024",
        "9 août 2024",
        f"9 agosto{48 * ' '}2024",
        "09/08/24",
        "9-8-2024",
    ],
    "2024-12-01": [
        "1. Dez. 2024",
        "1 déc. 2024",
        "1 dic 2024",
        "December 1 2024",
        "1 décembre 2024",
    ],
    "2024-05-03T21:12:00+02:00": [
        "May 3, 2024 at 09:12 pm",
        "3.5.24, 21:12",
        "2024/05/03 21:12",
    ],
    "2024-03-05T11:00:00+01:00": [
        *(
            "2024-03-05 10:00:00 UTC",
            "2024-03-05T10:00:00.123456789+0000",
            "1709632800",
            "1709632800000",
        )
    ],
    "2024-05-03T23:12:00+02:00": [
        f"3.5.2024 21:12:00 {zone}" for zone in ("+0000", "UTC", "GMT", "Z")
    ],
}


@pytest.mark.parametrize(
    ("text", "date"), [(text, date) for date, texts in DAYS.items() for text in texts]
)
def test_a_date_is_read_as_people_write_it(text: str, date: str) -> None:
    assert in_zone(read_date(text, DMY), BERLIN) == date


NO_DATES = "3 Brumaire 2024|May 2024|3 May|1.6|3 May June 2024|3 May 2024 ago|24-05-03|31/02/2024|13/13/24"
NO_DATES += (
    f"|2024-13-01|2024-01-01 25:00|99999999999|2 months ago|{'9' * 9**5}|1.1.{'9' * 20}"
)
NO_DATES += f"|3#5#2024|3 May 2024 10:20 ago|3 May{' ' * 82}2024"


@pytest.mark.parametrize("text", NO_DATES.split("|"))
def test_text_that_is_not_a_date_is_refused(text: str) -> None:
    with pytest.raises(BadRecord) as refused:
        read_date(text, DMY)
    assert (
        str(refused.value)
        == f"{quoted(text)} is not a date in a known form, or does not exist"
    )


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own zone is Tokyo."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


TIME = "2024-05-03T10:00:00"
MDY = DateFormat("2024-05-03", "mdy")
READ = [
    ("", DMY, ""),
    (TIME, DMY, TIME),
    (f"{TIME}.5", DMY, TIME),
    (f"{TIME}Z", DMY, f"{TIME}Z"),
    (f"{TIME}+02:00", DMY, "2024-05-03T08:00:00Z"),
    (TIME, DMY._replace(is_utc=True), f"{TIME}Z"),
    *((text, MDY, "2024-05-03") for text in ("5/3/24", "2024/05/03", "3.5.24")),
]


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize(("text", "how", "date"), READ)
def test_a_date_is_a_day_a_moment_or_a_time_without_a_zone(
    text: str, how: DateFormat, date: str
) -> None:
    assert read_date(text, how) == date


ZONED = {
    "": "",
    "2024-05-03": "2024-05-03",
    TIME: f"{TIME}+02:00",
    f"{TIME}Z": "2024-05-03T12:00:00+02:00",
}


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize("date", ZONED)
def test_a_moment_is_published_in_the_zone_of_the_business_on_any_machine(
    date: str,
) -> None:
    assert in_zone(date, BERLIN) == ZONED[date]


@pytest.mark.parametrize(
    "refused", ["2024-05-04 is in the future", "1989-12-31 is older than 1990"]
)
def test_a_day_out_of_bounds_is_refused_with_the_bound(refused: str) -> None:
    day, _, reason = refused.partition(" ")
    with pytest.raises(BadRecord, match=f'^"{day}" {reason}$'):
        read_date(day, MDY)


ORDERS = {
    "05/12/24": "dmy mdy",
    "12/05/2024": "dmy mdy",
    "13-05-24": "dmy",
    "05 13 2024": "mdy",
}


def test_dates_allow_the_orders_in_which_each_has_a_month() -> None:
    assert {
        text: " ".join(sorted(allowed_orders([text])[0])) for text in ORDERS
    } == ORDERS
    unclear = ["05/12/24", "13/5/24"]
    assert allowed_orders([*unclear, "5/5/24", "2024-05-03"]) == (
        {"dmy"},
        unclear,
    )


SPELLED = [
    pytest.param(
        "Mon Aug 10 2015 14:16:38 GMT+0000 (GMT)",
        "2015-08-10T14:16:38Z",
        id="JavaScript",
    ),
    pytest.param(
        "Fri Jan 05 2024 10:00:00 GMT+0530 (India Standard Time)",
        "2024-01-05T04:30:00Z",
        id="JavaScript in India",
    ),
    pytest.param("5 Jan 2024 10:00 GMT+2", "2024-01-05T08:00:00Z", id="hours alone"),
    pytest.param("5 Jan 2024 10:00 UTC-03:30", "2024-01-05T13:30:00Z", id="UTC-03:30"),
    pytest.param("2024-01-05 10:00:00 +0100 CET", "2024-01-05T09:00:00Z", id="Go"),
    pytest.param("Friday, January 5, 2024", "2024-01-05", id="English weekday"),
    pytest.param("vendredi 5 janvier 2024", "2024-01-05", id="French weekday"),
    pytest.param("Fr., 5. Januar 2024", "2024-01-05", id="German weekday"),
    pytest.param("mar. 5 mars 2024", "2024-03-05", id="mar is Tuesday, too"),
    pytest.param("venerdì 5 gennaio 2024", "2024-01-05", id="Italian"),
    pytest.param("vrijdag 5 januari 2024", "2024-01-05", id="Dutch"),
    pytest.param("sexta-feira, 5 de janeiro de 2024", "2024-01-05", id="Portuguese"),
    pytest.param("piątek, 5 stycznia 2024", "2024-01-05", id="Polish"),
    pytest.param("5 Ağustos 2024 Pazartesi", "2024-08-05", id="Turkish"),
    pytest.param("2024年1月5日", "2024-01-05", id="Japanese"),
    pytest.param(
        "2024年1月5日(金) 10:30", "2024-01-05T10:30:00", id="Japanese weekday"
    ),
    pytest.param("2024年01月05日 星期五", "2024-01-05", id="Chinese"),
    pytest.param("1717406400.0", "2024-06-03T09:20:00Z", id="seconds as a decimal"),
]


@pytest.mark.parametrize(("text", "date"), SPELLED)
def test_a_date_is_read_with_weekdays_offsets_and_months_of_many_languages(
    text: str, date: str
) -> None:
    assert read_date(text, DMY) == date


@pytest.mark.parametrize("zone", ["EST", "CST", "IST", "(EST)"])
def test_a_zone_that_is_only_a_name_is_refused(zone: str) -> None:
    with pytest.raises(BadRecord, match="is not a date in a known form"):
        read_date(f"5 Jan 2024 10:00 {zone}", DMY)


def test_an_unknown_form_offers_a_way_that_mends_all_rows() -> None:
    with pytest.raises(BadRecord) as refused:
        read_date("the other day", DMY)

    assert "changes all rows at once" in refused.value.advice
