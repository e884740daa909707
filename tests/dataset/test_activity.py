"""How many reviews are answered, and the last 90 days beside the 90 before.

Sections: plain definition - bounds - where it is said.
"""

import json
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.data_sets import URLS
from lab.page_samples import TEMPLATES
from lab.small_files import CONTRACT, a_file, loaded, review, served

from reviewslib.dataset.figures import activity_of
from reviewslib.dataset.reviews import Dataset
from reviewslib.mcp_tools import toolbox_of
from reviewslib.web.home_page import html_page, llms_text
from reviewslib.web.site import site_of

Object = dict[str, Any]
TODAY = date(2026, 3, 1)


def dated(days_ago: int, stars: int = 5, is_answered: bool = False) -> Object:
    """A served review of some days before TODAY."""
    return {
        "date": (TODAY - timedelta(days_ago)).isoformat(),
        "rating": stars,
        "owner_reply": {"text": "Thanks.", "date": None} if is_answered else None,
    }


# ---- Plain definition ----

CASES = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 5), st.booleans()), min_size=1
)


def plain_period(cases: list[Any], first_day: int) -> tuple[int, float | None]:
    """The number and the average stars of reviews in the 90 days from `first_day` back."""
    days = range(first_day, first_day + 90)
    stars = [stars for days_ago, stars, _ in cases if days_ago in days]
    if not stars:
        return 0, None
    return len(stars), round(sum(stars) / len(stars), 2)


def plain_periods(cases: list[Any]) -> list[tuple[int, float | None]]:
    """The last period and the one before; none if either has fewer than five reviews."""
    newest = min(days_ago for days_ago, _, _ in cases)
    last = plain_period(cases, newest)
    before = plain_period(cases, newest + 90)
    if min(last[0], before[0]) < 5:
        return []
    return [last, before]


def activity_in(cases: list[Any]) -> Any:
    cases.sort()
    return activity_of([dated(*case) for case in cases])


@given(cases=CASES)
def test_the_share_of_answers_equals_its_plain_definition(cases: list[Any]) -> None:
    activity = activity_in(cases)

    answered = [is_answered for _, _, is_answered in cases].count(True)
    assert activity["unanswered_count"] == len(cases) - answered
    assert activity["answered_pct"] == round(100 * answered / len(cases), 1)


@given(cases=CASES)
def test_the_last_two_periods_equal_their_plain_definition(cases: list[Any]) -> None:
    lately = activity_in(cases)["lately"] or {}

    periods = list[tuple[int, float | None]]()
    for period in lately.values():
        periods.append((period["review_count"], period["average_rating"]))
    assert periods == plain_periods(cases)


# ---- Bounds ----


def test_without_reviews_nothing_is_said() -> None:
    assert activity_of([]) == {
        "answered_pct": None,
        "unanswered_count": 0,
        "lately": None,
    }


def test_periods_name_the_days_that_they_are_of() -> None:
    reviews = [dated(0)] * 5 + [dated(90)] * 5

    lately = activity_of(reviews)["lately"]

    assert lately == {
        "last_90_days": {
            "since": "2025-12-02",
            "until": "2026-03-01",
            "review_count": 5,
            "average_rating": 5,
        },
        "previous_90_days": {
            "since": "2025-09-03",
            "until": "2025-12-01",
            "review_count": 5,
            "average_rating": 5,
        },
    }


@pytest.mark.parametrize(
    ("days_ago", "is_said"),
    [
        pytest.param([0] * 5 + [90] * 5, True, id="five in both"),
        pytest.param([0] * 5 + [179] * 5, True, id="the first day of the earlier"),
        pytest.param([0] * 5 + [180] * 5, False, id="the day before that"),
        pytest.param([0] + [89] * 4 + [90] * 5, True, id="the first day of the later"),
        pytest.param([0] * 4 + [90] * 9, False, id="four in the later"),
        pytest.param([0] * 9 + [90] * 4, False, id="four in the earlier"),
    ],
)
def test_periods_are_compared_with_five_reviews_in_each(
    days_ago: list[int], is_said: bool
) -> None:
    activity = activity_of([dated(days) for days in days_ago])

    assert (activity["lately"] is not None) is is_said


def test_a_period_begins_at_the_earliest_with_the_calendar() -> None:
    days = ["0001-04-10"] * 5 + ["0001-01-01"] * 5

    lately = activity_of([dated(0) | {"date": day} for day in days])["lately"]

    assert lately["previous_90_days"] == {
        "since": "0001-01-01",
        "until": "0001-01-10",
        "review_count": 5,
        "average_rating": 5,
    }


def test_before_the_calendar_there_are_no_reviews() -> None:
    reviews = [dated(0) | {"date": "0001-01-05"}] * 9

    assert activity_of(reviews)["lately"] is None


def test_the_day_of_a_moment_is_the_one_that_is_written() -> None:
    late = dated(0) | {"date": "2026-03-01T23:59:59-11:00"}
    reviews = [late] * 5 + [dated(90)] * 5

    lately = activity_of(reviews)["lately"]

    assert lately is not None
    assert lately["last_90_days"]["until"] == "2026-03-01"


# ---- Where it is said ----


def dataset_of(*answers: bool) -> Dataset:
    """Reviews of TODAY that are answered or not, and as many of 90 days before."""
    reviews = []
    for number, is_answered in enumerate(answers):
        for days_ago in (0, 90):
            said = dated(days_ago, is_answered=is_answered)
            reviews.append(review(f"{days_ago}-{number}", **said))
    return loaded(a_file(*reviews))


HALF_ANSWERED = dataset_of(*[True, False] * 3)


def test_the_business_says_what_its_reviews_say() -> None:
    toolbox = toolbox_of(CONTRACT, HALF_ANSWERED)

    told = toolbox.call("get_business", {})["structuredContent"]
    said = json.loads(told.structured)

    expected = activity_of(served(HALF_ANSWERED))
    assert {key: said[key] for key in expected} == expected
    assert said["answered_pct"] == 50


def test_counted_insights_say_the_same() -> None:
    temporal = json.loads(HALF_ANSWERED.insights_json)["temporal"]

    expected = activity_of(served(HALF_ANSWERED))
    assert {key: temporal[key] for key in expected} == expected


def shown(dataset: Dataset) -> str:
    return html_page(site_of(TEMPLATES, dataset, URLS)).decode()


@pytest.mark.parametrize(
    "words",
    [
        '<a href="/reviews?since=2025-12-02&amp;until=2026-03-01#results">90 days to',
        '<a href="/reviews?replied=true#results">Answered</a></b> 50%',
        '<a href="/reviews?replied=false#results">Not answered</a></b> <small>6 ',
    ],
)
def test_the_home_page_has_answers_and_the_last_days(words: str) -> None:
    assert words in shown(HALF_ANSWERED)


def test_without_any_answer_the_page_says_nothing_of_answers() -> None:
    assert "Answered" not in shown(dataset_of(*[False] * 5))


def test_where_all_is_answered_nothing_is_left() -> None:
    page = shown(dataset_of(*[True] * 5))

    assert "Answered</a></b> 100%" in page
    assert "Not answered" not in page


def test_llms_txt_has_answers_and_the_last_days() -> None:
    text = llms_text(site_of(TEMPLATES, HALF_ANSWERED, URLS)).decode()

    assert "- 90 days to 2026-03-01: 6, 5.0\n" in text
    assert "- Answered: 6; not answered: 6\n" in text
