"""Figures of reviews: means, shares, sentiments of stars, months, the trend, answers.

This module is pure. Of a review it knows `rating`, `date` and `owner_reply` only.

Sections: stars - means and shares - days and months - quarters - the trend -
answered, and lately.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from statistics import fmean, variance

from reviewslib.dataset.strict_json import Json, Object

# Verified and in served form, newest first.
ReviewObjects = Sequence[Object]

# ---- Stars ----


def sentiment_of(rating: float) -> str:
    """The sentiment of a star rating."""
    if rating >= 4:
        return "positive"
    if rating <= 2:
        return "negative"
    return "neutral"


def score_of(rating: float) -> float:
    """A star rating as a score from -1 to 1."""
    return round((rating - 3) / 2, 2)


def joint_sentiment(sentiments: set[str]) -> str:
    """The sentiment of several mentions in one review; neutral if they disagree."""
    different = sentiments - {"neutral"}
    if len(different) == 1:
        return different.pop()
    return "neutral"


# ---- Means and shares ----


def mean(figures: Sequence[float]) -> float | None:
    """The mean with two decimals, never -0.0; None without figures."""
    if not figures:
        return None
    return round(math.fsum(figures) / len(figures), 2) or 0.0


def average_and_distribution(stars: Iterable[float]) -> dict[str, Json]:
    """`average_rating`, with two decimals, and `distribution`: how many by whole stars.

    The average of no stars is None; 4.5 stars count as 4.
    """
    # There are few different numbers of stars, and each is handled once.
    counts = Counter(stars)
    total = counts.total()
    average = None
    if total:
        average = round(math.fsum(counts.elements()) / total, 2)
    distribution = dict.fromkeys("12345", 0)
    for rating, count in counts.items():
        distribution[str(math.floor(rating))] += count
    return {"average_rating": average, "distribution": distribution}


def percent(part: int, total: int) -> float | None:
    """The share of `part` in `total`, in percent with one decimal; None of nothing."""
    if not total:
        return None
    return round(100 * part / total, 1)


# ---- Days and months ----


def calendar_day(review: Object) -> str:
    """The day of a review as written, YYYY-MM-DD, whatever its time zone."""
    return str(review["date"])[:10]


def first_day(reviews: ReviewObjects) -> str | None:
    """The calendar day of the first of `reviews`."""
    return calendar_day(reviews[0]) if reviews else None


def month_of(review: Object) -> int:
    """The month of a review, as written, counted from January of the year 0."""
    return int(review["date"][:4]) * 12 + int(review["date"][5:7]) - 1


def month_text(month: int) -> str:
    """A month as YYYY-MM."""
    return f"{month // 12:04}-{month % 12 + 1:02}"


def by_month(reviews: ReviewObjects) -> dict[int, list[Object]]:
    """The reviews of every month from the oldest review to the newest, oldest first."""
    if not reviews:
        return {}
    groups = defaultdict[int, list[Object]](list)
    for review in reviews:
        groups[month_of(review)].append(review)
    months = range(month_of(reviews[-1]), month_of(reviews[0]) + 1)
    return {month: groups.get(month, []) for month in months}


# ---- Quarters ----


def by_quarter(monthly: Iterable[Object]) -> list[dict[str, Json]]:
    """The figures of quarters, from those of months: MonthlyFigures with `quarter`."""
    quarters = defaultdict[str, list[Object]](list)
    for month in monthly:
        quarters[quarter_text(month["month"])].append(month)
    return [_quarter(quarter, months) for quarter, months in quarters.items()]


def _quarter(quarter: str, months: Sequence[Object]) -> dict[str, Json]:
    return {
        "quarter": quarter,
        "review_count": sum(month["review_count"] or 0 for month in months),
        "average_rating": _weighted_mean(months, "average_rating"),
        "score": _weighted_mean(months, "score"),
    }


def quarter_text(month: str) -> str:
    """The quarter of a month YYYY-MM, as YYYY-Qn."""
    return f"{month[:4]}-Q{(int(month[5:7]) + 2) // 3}"


def _weighted_mean(months: Iterable[Object], key: str) -> float | None:
    """The mean of a figure of months by number of reviews; None without reviews."""
    # An owner may write any number of reviews, also one that no float holds.
    total = Fraction(0)
    reviews = 0
    for month in months:
        count = month["review_count"] or 0
        if month[key] is not None:
            total += Fraction(month[key]) * count
            reviews += count
    if not reviews:
        return None
    return round(float(total / reviews), 2) or 0.0


# ---- The trend ----

# Reviews in each of two years: of fewer, a change would show chance.
MIN_TREND_REVIEWS = 10
# Of the score: a fifth of a star. Readers see no smaller change.
MIN_CHANGE = 0.1


def trend_of(reviews: ReviewObjects) -> str | None:
    """The trend of the last twelve months against the twelve before.

    None with too few reviews. The months end with that of the newest review. Whole
    years cancel out the seasons. A change below two standard errors is "stable". Only
    stars count, since scores by the owner exist for some reviews only.
    """
    last, before = _scores_of_two_years(reviews)
    if min(len(last), len(before)) < MIN_TREND_REVIEWS:
        return None
    # Unrounded, 0.6 - 0.5 is less than MIN_CHANGE.
    change = round(fmean(last) - fmean(before), 9)
    error = math.sqrt(variance(last) / len(last) + variance(before) / len(before))
    if abs(change) < max(MIN_CHANGE, round(2 * error, 9)):
        return "stable"
    return "improving" if change > 0 else "declining"


def _scores_of_two_years(reviews: ReviewObjects) -> tuple[list[float], list[float]]:
    """The scores of the last twelve months, and of the twelve before."""
    last = list[float]()
    before = list[float]()
    for review in reviews:
        months_ago = month_of(reviews[0]) - month_of(review)
        if months_ago >= 24:
            break
        year = last if months_ago < 12 else before
        year.append(score_of(review["rating"]))
    return last, before


# ---- Answered, and lately ----

# A season, with enough reviews of a small business in it.
PERIOD_DAYS = 90
# Reviews in each of two periods: of fewer, the averages would show chance.
MIN_PERIOD_REVIEWS = 5


def activity_of(reviews: ReviewObjects) -> dict[str, Json]:
    """How many reviews the business has answered, and what came lately."""
    answered = sum(review["owner_reply"] is not None for review in reviews)
    return {
        "answered_pct": percent(answered, len(reviews)),
        "unanswered_count": len(reviews) - answered,
        "lately": lately_of(reviews),
    }


def lately_of(reviews: ReviewObjects) -> dict[str, Json] | None:
    """The last 90 days beside the 90 before; None with too few reviews in either.

    The last day is that of the newest review, so that the same reviews give the same
    figures on any day.
    """
    newest = first_day(reviews)
    if newest is None:
        return None
    today = date.fromisoformat(newest).toordinal()
    last = _period(reviews, today)
    before = _period(reviews, today - PERIOD_DAYS)
    if min(last["review_count"], before["review_count"]) < MIN_PERIOD_REVIEWS:
        return None
    return {"last_90_days": last, "previous_90_days": before}


def _period(reviews: ReviewObjects, last_day: int) -> dict[str, Json]:
    """The figures of PERIOD_DAYS that end with a day, an ordinal of the calendar."""
    since = _day_text(last_day - PERIOD_DAYS + 1)
    until = _day_text(last_day)
    stars = [
        review["rating"] for review in reviews if since <= calendar_day(review) <= until
    ]
    return {
        "since": since,
        "until": until,
        "review_count": len(stars),
        "average_rating": mean(stars),
    }


def _day_text(ordinal: int) -> str:
    """The day with this ordinal; the first day of the calendar for an earlier one."""
    return date.fromordinal(max(1, ordinal)).isoformat()
