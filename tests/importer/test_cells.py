"""What a cell says is read in the forms that people and tools write, and is never guessed."""

import pytest

from reviewslib.importer.cells import BadRecord, DateForm, read_date, read_stars, rezoned

BERLIN = DateForm("Europe/Berlin")
DAYS = {
    "2024-06-01": ["1.6.24", "01.06.2024", "2024/06/01", "2024-06-01", "1. Juni 2024", "1er juin 2024"],
    "2024-05-03": ["3 May 2024", "3-May-24", "May 3, 2024", "3. Mai 2024", "3 mai 2024", "3 de mayo de 2024"],
    "2024-03-05": ["5. März 2024", "5 mars 2024", "5 de marzo de 2024", "Mar. 5th, 2024", "5-Mär-24"],
    "2024-08-09": ["9. August 2024", "9 août 2024", "9 agosto 2024", "09/08/24", "9-8-2024"],
    "2024-12-01": ["1. Dez. 2024", "1 déc. 2024", "1 dic 2024", "December 1 2024", "1 décembre 2024"],
    "2024-05-03T21:12:00+02:00": [
        "3 May 2024 9:12 PM",
        "May 3, 2024 at 09:12 pm",
        "3.5.24, 21:12",
        "2024/05/03 21:12",
    ],
    "2024-05-03T23:12:00+02:00": ["2024-05-03T21:12:00Z", "3 May 2024 21:12 UTC", "3.5.2024 21:12:00 +0000"],
}


@pytest.mark.parametrize(("text", "date"), [(text, date) for date, texts in DAYS.items() for text in texts])
def test_a_date_is_read_as_people_write_it(text: str, date: str) -> None:
    assert read_date(text, BERLIN).text == date


@pytest.mark.parametrize(
    "text",
    [
        "3 Brumaire 2024",
        "May 2024",
        "3 May",
        "1.6",
        "3 May June 2024",
        "9" * 9**5,
        "3 May 2024 ago",
        "24-05-03",
    ],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(BadRecord):
        read_date(text, BERLIN)


@pytest.mark.parametrize(
    ("text", "stars"),
    [
        ("4 out of 5", 4),
        ("4.5 out of 5 stars", 4.5),
        ("5 star rating", 5),
        ("5 Sterne", 5),
        ("4 von 5 Sternen", 4),
        ("3 étoiles", 3),
        ("2 estrellas", 2),
        ("★★★★☆", 4),
        ("⭐️⭐️⭐️", 3),
        ("0", None),
    ],
)
def test_stars_are_read_as_tools_write_them(text: str, stars: float | None) -> None:
    assert read_stars(text, 0) == stars


@pytest.mark.parametrize(
    "text", ["positive", "doesn't recommend", "recommended", "negative", "great", "5 out of five"]
)
def test_words_that_are_no_stars_are_refused_since_stars_are_never_invented(text: str) -> None:
    with pytest.raises(BadRecord, match="stars are never invented"):
        read_stars(text, 0)


@pytest.mark.parametrize(
    ("date", "is_clock", "expected"),
    [
        ("2024-05-03", True, "2024-05-03"),
        ("2024-05-03T10:00:00-07:00", True, "2024-05-03T10:00:00+02:00"),
        ("2024-05-03T20:00:00-07:00", False, "2024-05-04T05:00:00+02:00"),
        ("2024-05-03T23:59:60Z", False, "2024-05-03T23:59:60Z"),
    ],
)
def test_a_clock_time_keeps_its_clock_and_a_moment_its_moment(
    date: str, is_clock: bool, expected: str
) -> None:
    assert rezoned(date, "Europe/Berlin", is_clock=is_clock) == expected
