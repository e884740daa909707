"""Files that cannot be served: each fault is a line of file, place and reason.

Sections: sizes - wrong values - order of faults - any change.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from lab import small_files as small
from lab.small_files import (
    GOOD_FILES,
    Object,
    a_file,
    compact,
    file_bytes,
    loaded,
    review,
    served,
)

from reviewslib.dataset import reading, reviews
from reviewslib.dataset.contract import quoted
from reviewslib.faults import BadData, Fault


def fault_lines(reviews_file: bytes, insights_file: bytes | None = None) -> list[str]:
    """The lines that the operator gets about bad files."""
    with pytest.raises(BadData) as refusal:
        reviews.load(small.CONTRACT, reviews_file, insights_file, small.URLS)
    return refusal.value.lines()


# ---- Sizes ---------------------------------------------------------------------------

MOST_CONTAINERS = 2_000_000


@pytest.mark.parametrize("container", [b"{}", b"[]"])
def test_a_file_of_millions_of_objects_is_refused_before_it_is_parsed(
    container: bytes,
) -> None:
    first, *_ = fault_lines(container * (MOST_CONTAINERS + 1))

    reason = "has more than 2,000,000 objects and arrays"
    assert first.startswith(f"reviews.json: {reason}")


@pytest.mark.parametrize("container", [b"{}", b"[]"])
def test_a_file_of_two_million_objects_is_parsed(container: bytes) -> None:
    first, *_ = fault_lines(container * MOST_CONTAINERS)

    assert first.startswith("reviews.json: not JSON at")


def test_a_file_of_more_than_200000_reviews_is_one_fault_whatever_is_in_them() -> None:
    many = file_bytes({"reviews": [{}] * 200_001})

    lines = fault_lines(many)

    reason = "has 200,001 reviews; at most 200,000 can be served"
    assert lines == [f"reviews.json /reviews: {reason}"]


def test_as_many_reviews_as_can_be_served_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "MAX_REVIEWS", 2)

    dataset = loaded(a_file(review("1"), review("2")))

    assert len(dataset.reviews) == 2


def size_without_text() -> int:
    """The bytes of the JSON of a review whose text is empty."""
    (made,) = served(loaded(a_file(review("1", text=""))))
    return len(compact(made))


# Of the JSON that is served for a review.
LARGEST_BYTES = 65_536
ROOM_BYTES = LARGEST_BYTES - size_without_text()


def test_a_review_of_64_kib_is_served() -> None:
    # A letter of two bytes.
    fits = review("1", text="é" * (ROOM_BYTES // 2))

    assert len(loaded(a_file(fits)).reviews) == 1


def test_each_review_above_64_kib_is_a_fault() -> None:
    fits = review("1", text="x")
    too_large = review("2", text="x" * (ROOM_BYTES + 1))

    lines = fault_lines(file_bytes(a_file(too_large, fits, too_large | {"id": "4"})))

    reason = "has 65,537 bytes of JSON; a review has at most 65,536"
    assert lines == [
        f"reviews.json /reviews/0: {reason}",
        f"reviews.json /reviews/2: {reason}",
    ]


def test_a_review_that_is_not_served_may_be_larger() -> None:
    hidden = review("3", text="x" * 70_000, verified=False)

    assert loaded(a_file(hidden)).unverified_count == 1


# ---- Wrong values --------------------------------------------------------------------

FIRST = "reviews/reviews/0"
AN_INSTANT = "an RFC 3339 date-time on such a day"
NO_DAY = f" is not a day that exists, written YYYY-MM-DD, or {AN_INSTANT}"
NO_URL = " is not an http or https URL"
NO_ID = " is not an id: text without control characters, not . or .."
NO_TREND = " is none of ['improving', 'stable', 'declining', None]"
NO_MONTH = " is not a month, YYYY-MM"
NO_LANGUAGE = " is not a language tag such as de or en-GB"
DAYS = ["1.6.2025", "2025-06-01\n", "２０２５-06-01", "2025-02-29", "0000-01-01"]
DAYS += ["2025-02-30T10:00:00Z"]
TIMES = ["", ":00:00", ":00:00Z\n", ":00:00.Z", ":60:00Z", ":00:61Z", ":00:00+24:00"]
MOMENTS = [f"2025-06-01T10{time}" for time in TIMES]
URLS = ["javascript:1", "ftp://x/", "", "https://", "https:///x", "http://@"]
URLS += ["http://[x", " http://x"]
# Characters that no URL has.
URLS += [f"https://s.example/{odd}" for odd in ("a b", "\n", "\x7f", "\u2028")]
UNPRINTABLE_IDS = ["a\nb", "ab\n", "\x00", "\x7f", "a\x85", ".", ".."]


OVER_FIVE = " is greater than the maximum of 5"
UNDER_ONE = " is less than the minimum of 1"


def wrong(place: str, reason: str, *values: Any) -> list[object]:
    """Cases: a place in a file, a value that is wrong there, and why."""
    return [
        pytest.param(place, value, reason, id=f"{place}={str(value)[:20]!a}")
        for value in values
    ]


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        *wrong("reviews", " is not an object", None, 5, [], "reviews"),
        *wrong("reviews/business/name", " is empty", ""),
        *wrong("reviews/business/language", NO_LANGUAGE, "deutsch!", "", "de\n"),
        *wrong(
            "reviews/business/hours/0/opens", " is not a time of day, HH:MM", "25:00"
        ),
        *wrong(
            "reviews/business/geo/latitude", " is greater than the maximum of 90", 91
        ),
        *wrong("reviews/aggregate_rating", " is not an object or null", [], 5),
        *wrong(
            "reviews/aggregate_rating/review_count",
            " is not a whole number or null",
            *(1.5, True, "1"),
        ),
        *wrong("reviews/aggregate_rating/rating_value", OVER_FIVE, 5.01),
        *wrong("reviews/aggregate_rating/rating_value", UNDER_ONE, 0.99),
        *wrong("reviews/aggregate_rating/best_rating", OVER_FIVE, 10),
        *wrong("reviews/aggregate_rating/worst_rating", UNDER_ONE, 0),
        *wrong("reviews/reviews", " is not an array", {}, None),
        *wrong(f"{FIRST}/author", " is empty", ""),
        *wrong(f"{FIRST}/id", " is longer than 200 characters", "x" * 201),
        *wrong(f"{FIRST}/id", NO_ID, *UNPRINTABLE_IDS),
        *wrong("reviews/reviews/1/id", " is already the id of /reviews/0", "01A"),
        *wrong(f"{FIRST}/rating", OVER_FIVE, 7, 5.0000001),
        *wrong(f"{FIRST}/rating", UNDER_ONE, 0, 0.99, -3),
        *wrong(f"{FIRST}/rating", " is not a number", "5", True, None),
        *wrong(f"{FIRST}/date", NO_DAY, *DAYS, *MOMENTS),
        *wrong(f"{FIRST}/source_url", NO_URL, *URLS),
        *wrong(f"{FIRST}/verified", " is not true or false or null", "yes", 1),
        *wrong("insights/temporal/trend", NO_TREND, "up"),
        *wrong("insights/temporal/monthly/0/month", NO_MONTH, "2025-13", "2025-00"),
        *wrong(
            "insights/entities/services/0/score",
            " is less than the minimum of -1",
            -1.01,
        ),
        *wrong("insights/temporal/monthly/0/average_rating", OVER_FIVE, 5.5),
        *wrong("insights/entities/services/0/average_rating", OVER_FIVE, 5.5),
        *wrong(
            "insights/entities/services/0/score",
            " is greater than the maximum of 1",
            *(1.01, 100),
        ),
        *wrong(
            "insights/aspects/0/positive_pct",
            " is greater than the maximum of 100",
            100.1,
        ),
    ],
)
def test_a_wrong_value_is_one_line(place: str, value: Any, reason: str) -> None:
    # given the good files with one wrong value
    file, *path = small.steps(place)
    files = small.changed(GOOD_FILES, [file, *path], value)

    # when they are loaded
    lines = fault_lines(*[file_bytes(content) for content in files.values()])

    # then the file and the place are named
    assert lines == [str(Fault(f"{file}.json", tuple(path), quoted(value) + reason))]


def test_a_distribution_without_a_star_is_one_line() -> None:
    four_stars = {"1": 0, "2": 0, "3": 0, "4": 0}
    place = "reviews/aggregate_rating/distribution"
    files = small.changed(GOOD_FILES, small.steps(place), four_stars)

    (line,) = fault_lines(*[file_bytes(content) for content in files.values()])

    assert line.startswith("reviews.json /aggregate_rating/distribution: '5' is ")


def test_a_number_of_thousands_of_digits_is_one_line() -> None:
    files = small.changed(GOOD_FILES, small.steps(f"{FIRST}/rating"), 10**4000)

    (line,) = fault_lines(*[file_bytes(content) for content in files.values()])

    assert line.endswith(" is greater than the maximum of 5")


# ---- The order of faults -------------------------------------------------------------


def test_faults_of_schemas_and_rules_in_both_files_come_in_order() -> None:
    # given wrong values of form and of sense, in both files
    good = [review(str(number)) for number in range(9)]
    two_wrong = review("3", rating=9, date="2025-02-30")
    three_wrong = review("4", rating=True, author=5)
    business = {"name": "", "url": "ftp://x"}
    document = a_file(*good, two_wrong, three_wrong, business=business)
    insights = {"version": 0, "faq": [{}], "generated_at": 5}

    # when they are loaded
    lines = fault_lines(file_bytes(document), file_bytes(insights))

    # then they come by file and place
    places = [line.partition(": ")[0] for line in lines]
    assert places == [
        "reviews.json /business/name",
        "reviews.json /business/url",
        "reviews.json /reviews/9/date",
        "reviews.json /reviews/9/id",
        "reviews.json /reviews/9/rating",
        "reviews.json /reviews/10/author",
        "reviews.json /reviews/10/id",
        "reviews.json /reviews/10/rating",
        "insights.json /faq/0",
        "insights.json /faq/0",
        "insights.json /generated_at",
        "insights.json /version",
    ]


def test_what_is_no_id_is_not_called_a_repeated_one_too() -> None:
    # given two reviews with the same id, which is none
    document = a_file(review(""), review(""))

    # when they are loaded
    lines = fault_lines(file_bytes(document))

    # then each has one fault
    places = [line.partition(": ")[0] for line in lines]
    assert places == ["reviews.json /reviews/0/id", "reviews.json /reviews/1/id"]


# ---- Any change ----------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=400)
@given(small.mutations())
def test_a_mutated_file_is_served_or_refused(files: Object) -> None:
    contents = [file_bytes(files.get(name)) for name in GOOD_FILES]
    try:
        dataset = reviews.load(small.CONTRACT, *contents, small.URLS)
    except BadData as refusal:
        lines = refusal.lines()
        assert lines
        assert [line for line in lines if not small.is_one_printable_line(line)] == []
    else:
        small.check_served(dataset)
