"""Dates are read in the forms that people and tools write, and are never guessed.

Sections: forms - days, moments, and times without a zone, on any machine - bounds, and
the order of day and month - as tools and languages write them.
"""

import time
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

from reviewslib.dataset.contract import quoted
from reviewslib.importer.dates import DateFormat, allowed_orders, in_zone, read_date
from reviewslib.importer.texts import BadRecord

BERLIN = ZoneInfo("Europe/Berlin")
DMY = DateFormat()

# ---- Forms ----

NUMERIC = ["1.6.24", "01.06.2024", "1.6.2024", "01/06/24", "1-6-2024", "01 06 2024"]
NUMERIC += ["2024/06/01", "2024-06-01"]


@pytest.mark.parametrize("text", NUMERIC)
def test_a_day_in_numbers_is_read(text: str) -> None:
    assert read_date(text, DMY) == "2024-06-01"


WITH_MONTHS = [
    pytest.param("3 May 2024", "2024-05-03", id="English"),
    pytest.param("May 3, 2024", "2024-05-03", id="American"),
    pytest.param("3-May-24", "2024-05-03", id="of a spreadsheet"),
    pytest.param("Mar. 5th, 2024", "2024-03-05", id="short, with an ending"),
    pytest.param("December 1 2024", "2024-12-01", id="without a comma"),
    pytest.param("3. Mai 2024", "2024-05-03", id="German"),
    pytest.param("5. März 2024", "2024-03-05", id="German with an umlaut"),
    pytest.param("5-Mär-24", "2024-03-05", id="of a German spreadsheet"),
    pytest.param("1. Dez. 2024", "2024-12-01", id="German, short"),
    pytest.param("9. August 2024", "2024-08-09", id="German as English"),
    pytest.param("1er juin 2024", "2024-06-01", id="French first"),
    pytest.param("3 mai 2024", "2024-05-03", id="French"),
    pytest.param("5 mars 2024", "2024-03-05", id="French March"),
    pytest.param("9 août 2024", "2024-08-09", id="French with an accent"),
    pytest.param("1 déc. 2024", "2024-12-01", id="French, short"),
    pytest.param("1 décembre 2024", "2024-12-01", id="French December"),
    pytest.param("3 de mayo de 2024", "2024-05-03", id="Spanish"),
    pytest.param("5 de marzo de 2024", "2024-03-05", id="Spanish March"),
    pytest.param("1 dic 2024", "2024-12-01", id="Spanish, short"),
    pytest.param(f"9 agosto{48 * ' '}2024", "2024-08-09", id="with much space"),
]


@pytest.mark.parametrize(("text", "day"), WITH_MONTHS)
def test_a_day_with_the_name_of_its_month_is_read(text: str, day: str) -> None:
    assert read_date(text, DMY) == day


WITHOUT_ZONE = ["May 3, 2024 at 09:12 pm", "3.5.24, 21:12", "2024/05/03 21:12"]


@pytest.mark.parametrize("text", WITHOUT_ZONE)
def test_a_time_without_a_zone_stays_without_one(text: str) -> None:
    assert read_date(text, DMY) == "2024-05-03T21:12:00"


MOMENTS = [
    pytest.param("2024-03-05 10:00:00 UTC", id="with UTC"),
    pytest.param("2024-03-05T10:00:00.123456789+0000", id="with nanoseconds"),
    pytest.param("1709632800", id="seconds since the epoch"),
    pytest.param("1709632800000", id="milliseconds since the epoch"),
    pytest.param("5.3.2024 10:00:00 +0000", id="with an offset"),
    pytest.param("5.3.2024 10:00:00 GMT", id="with GMT"),
    pytest.param("5.3.2024 10:00:00 Z", id="with Z"),
]


@pytest.mark.parametrize("text", MOMENTS)
def test_a_moment_is_read_in_utc(text: str) -> None:
    assert read_date(text, DMY) == "2024-03-05T10:00:00Z"


NO_DATES = [
    pytest.param("3 Brumaire 2024", id="an unknown month"),
    pytest.param("May 2024", id="no day"),
    pytest.param("3 May", id="no year"),
    pytest.param("1.6", id="two numbers"),
    pytest.param("3 May June 2024", id="two months"),
    pytest.param("3 May 2024 ago", id="an unknown word"),
    pytest.param("3 May 2024 10:20 ago", id="an unknown word after a time"),
    pytest.param("2 months ago", id="an age"),
    pytest.param("24-05-03", id="a year or a day first"),
    pytest.param("31/02/2024", id="a day that does not exist"),
    pytest.param("13/13/24", id="a month that does not exist"),
    pytest.param("2024-13-01", id="a month that does not exist, by ISO 8601"),
    pytest.param("2024-01-01 25:00", id="an hour that does not exist"),
    pytest.param("99999999999", id="eleven digits"),
    pytest.param("9" * 9**5, id="digits without an end"),
    pytest.param(f"1.1.{'9' * 20}", id="a year of twenty digits"),
    pytest.param("3#5#2024", id="other signs"),
    pytest.param(f"3 May{' ' * 82}2024", id="too much space"),
]


@pytest.mark.parametrize("text", NO_DATES)
def test_text_that_is_not_a_date_is_refused(text: str) -> None:
    with pytest.raises(BadRecord) as refused:
        read_date(text, DMY)

    reason = "is not a date in a known form, or does not exist"
    assert str(refused.value) == f"{quoted(text)} {reason}"


# ---- Days, moments, and times without a zone, on any machine ----


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own zone is Tokyo."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


TIME = "2024-05-03T10:00:00"
READ = [
    pytest.param("", "", id="nothing"),
    pytest.param("2024-05-03", "2024-05-03", id="a day"),
    pytest.param(TIME, TIME, id="a time without a zone"),
    pytest.param(f"{TIME}.5", TIME, id="half a second"),
    pytest.param(f"{TIME}Z", f"{TIME}Z", id="a moment in UTC"),
    pytest.param(f"{TIME}+02:00", "2024-05-03T08:00:00Z", id="another moment"),
]


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize(("text", "date"), READ)
def test_a_date_is_a_day_a_moment_or_a_time_without_a_zone(
    text: str, date: str
) -> None:
    assert read_date(text, DMY) == date


def test_a_column_in_utc_has_moments() -> None:
    assert read_date(TIME, DMY._replace(is_utc=True)) == f"{TIME}Z"


PUBLISHED = [
    pytest.param("", "", id="nothing"),
    pytest.param("2024-05-03", "2024-05-03", id="a day"),
    pytest.param(TIME, f"{TIME}+02:00", id="a time without a zone"),
    pytest.param(f"{TIME}Z", "2024-05-03T12:00:00+02:00", id="a moment in summer"),
    pytest.param(
        "2024-03-05T10:00:00Z", "2024-03-05T11:00:00+01:00", id="a moment in winter"
    ),
]


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize(("date", "published"), PUBLISHED)
def test_a_moment_is_published_in_the_zone_of_the_business_on_any_machine(
    date: str, published: str
) -> None:
    assert in_zone(date, BERLIN) == published


# ---- Bounds, and the order of day and month ----

MDY = DateFormat("2024-05-03", "mdy")


@pytest.mark.parametrize(
    ("day", "reason"),
    [
        pytest.param("2024-05-04", "is in the future", id="the day after"),
        pytest.param("1989-12-31", "is older than 1990", id="the day before"),
    ],
)
def test_a_day_out_of_bounds_is_refused_with_the_bound(day: str, reason: str) -> None:
    with pytest.raises(BadRecord, match=f'^"{day}" {reason}$'):
        read_date(day, MDY)


MONTH_FIRST = [
    pytest.param("5/3/24", id="slashes"),
    pytest.param("2024/05/03", id="the year first"),
    pytest.param("3.5.24", id="dots, which have the day first everywhere"),
]


@pytest.mark.parametrize("text", MONTH_FIRST)
def test_in_a_column_of_american_dates_the_month_is_first(text: str) -> None:
    assert read_date(text, MDY) == "2024-05-03"


ORDERS = [
    pytest.param("05/12/24", {"dmy", "mdy"}, id="either"),
    pytest.param("12/05/2024", {"dmy", "mdy"}, id="either, a long year"),
    pytest.param("13-05-24", {"dmy"}, id="no thirteenth month"),
    pytest.param("05 13 2024", {"mdy"}, id="no thirteenth month second"),
]


@pytest.mark.parametrize(("text", "orders"), ORDERS)
def test_a_date_allows_the_orders_in_which_it_has_a_month(
    text: str, orders: set[str]
) -> None:
    allowed, _ = allowed_orders([text])

    assert allowed == orders


def test_dates_of_a_column_that_differ_by_their_order_are_named() -> None:
    texts = ["05/12/24", "13/5/24", "5/5/24", "2024-05-03"]

    assert allowed_orders(texts) == ({"dmy"}, ["05/12/24", "13/5/24"])


# ---- As tools and languages write them ----

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
