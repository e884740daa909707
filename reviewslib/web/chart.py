"""The chart of ratings by month, and the figures by year below it.

The chart is places between 0 and 1; `page.html` draws them. This module must not know
reviews: it takes the counted months of the insights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from reviewslib.dataset.strict_json import Object
from reviewslib.web.figures import capped

# Fewer months or reviews would show chance.
MIN_MONTHS = 3
MIN_REVIEWS = 10
# Five years: more dots would touch each other on a phone.
MAX_MONTHS = 60
# Below the chart; one more entry sums up all earlier years, so that nothing is missing.
MAX_YEARS = 15
BEST = 5
# The scale begins here at the latest: from 4.8 to 5, a chart would show noise as a
# fall.
HIGHEST_LOWEST_LEVEL = 4
# The line is the average of so many months: a year, since trades have seasons.
MONTHS_IN_AVERAGE = 12
# Radius of a dot in pixels: of no reviews, and what the month with most reviews adds.
# The area, not the radius, grows with the reviews.
SMALLEST_RADIUS = 2
MORE_RADIUS = 3


class Month(NamedTuple):
    """One month with reviews; `number` counts months since the year 0."""

    number: int
    reviews: int
    average: float

    @property
    def year(self) -> int:
        """Its year."""
        return self.number // 12


class Years(NamedTuple):
    """A year, or all years before `year`: average rating and number of reviews."""

    year: int
    average: float
    reviews: int


@dataclass(frozen=True, slots=True)
class Trend:
    """What the home page draws; x and y are between 0 and 1, y grows downwards."""

    # (stars, y)
    levels: list[tuple[int, float]]
    # (year, x)
    januaries: list[tuple[int, float]]
    # (x, y, radius in pixels), one a month
    dots: list[tuple[float, float, float]]
    # (x, y): the average of the twelve months that end there
    line: list[tuple[float, float]]
    # whether the chart has all months
    is_whole: bool
    # newest last
    years: list[Years]
    # of all years before the first of `years`
    before: Years | None


@dataclass(frozen=True, slots=True)
class Chart:
    """The scales of a chart: its first and last month, the lowest level in stars."""

    first: int
    last: int
    lowest: int

    def x_of(self, month_number: int) -> float:
        """The place of a month from left to right."""
        return (month_number - self.first) / max(1, self.last - self.first)

    def y_of(self, stars: float) -> float:
        """The place of a rating from top to bottom."""
        return (BEST - stars) / (BEST - self.lowest)

    def levels(self) -> list[tuple[int, float]]:
        """The whole stars with their places."""
        return [(stars, self.y_of(stars)) for stars in range(self.lowest, BEST + 1)]

    def januaries(self) -> list[tuple[int, float]]:
        """The years that begin in the chart, with their places."""
        numbers = range(self.first, self.last + 1)
        return [(at // 12, self.x_of(at)) for at in numbers if at % 12 == 0]


def trend(monthly: Iterable[Object]) -> Trend | None:
    """The chart of the counted months; None with too few reviews or months."""
    every_month = _rated_months(monthly)
    months = _newest(every_month)
    if len(months) < MIN_MONTHS or _reviews(months) < MIN_REVIEWS:
        return None
    chart = _chart_of(months)
    years = _years(every_month)[-MAX_YEARS:]
    earlier = [month for month in every_month if month.year < years[0].year]
    return Trend(
        levels=chart.levels(),
        januaries=chart.januaries(),
        dots=_dots(chart, months),
        line=_line(chart, months, every_month),
        is_whole=len(months) == len(every_month),
        years=years,
        before=_summed_up(years[0].year, earlier) if earlier else None,
    )


def _chart_of(months: Sequence[Month]) -> Chart:
    return Chart(
        first=months[0].number,
        last=months[-1].number,
        lowest=min(HIGHEST_LOWEST_LEVEL, _lowest_level(months)),
    )


def _rated_months(monthly: Iterable[Object]) -> list[Month]:
    """The months with reviews, oldest first."""
    months = []
    for entry in sorted(monthly, key=lambda entry: entry["month"]):
        average = entry["average_rating"]
        if average is None:
            continue
        year, month = map(int, entry["month"].split("-"))
        number = year * 12 + month - 1
        # A month that has a rating has a review, even if the file does not count them.
        reviews = capped(entry["review_count"]) or 1
        months.append(Month(number, reviews, average))
    return months


def _newest(months: Sequence[Month]) -> list[Month]:
    """The months that the chart has."""
    if not months:
        return []
    after = months[-1].number - MAX_MONTHS
    # A file may list a month twice, hence the second bound.
    return [month for month in months if month.number > after][-MAX_MONTHS:]


def _lowest_level(months: Sequence[Month]) -> int:
    return math.floor(min(month.average for month in months))


def _dots(chart: Chart, months: Sequence[Month]) -> list[tuple[float, float, float]]:
    most = max(month.reviews for month in months)
    dots = []
    for month in months:
        radius = SMALLEST_RADIUS + MORE_RADIUS * math.sqrt(month.reviews / most)
        dots.append((chart.x_of(month.number), chart.y_of(month.average), radius))
    return dots


def _line(
    chart: Chart, months: Sequence[Month], every_month: Sequence[Month]
) -> list[tuple[float, float]]:
    points = []
    for month in months:
        after = month.number - MONTHS_IN_AVERAGE
        recent = [near for near in every_month if after < near.number <= month.number]
        points.append((chart.x_of(month.number), chart.y_of(_average(recent))))
    return points


def _years(months: Sequence[Month]) -> list[Years]:
    by_year = groupby(months, lambda month: month.year)
    return [_summed_up(year, list(group)) for year, group in by_year]


def _summed_up(year: int, months: Sequence[Month]) -> Years:
    return Years(year, _average(months), _reviews(months))


def _average(months: Sequence[Month]) -> float:
    ratings = [month.average for month in months]
    return fmean(ratings, weights=[month.reviews for month in months])


def _reviews(months: Sequence[Month]) -> int:
    return sum(month.reviews for month in months)
