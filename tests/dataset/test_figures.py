"""Figures of quarters are made of those of their months."""

from typing import Any

import pytest

from reviewslib.dataset.figures import by_quarter

Object = dict[str, Any]


def month(name: str, count: int | None, stars: float | None) -> Object:
    return {"month": name, "review_count": count, "average_rating": stars, "score": 0.5}


@pytest.mark.parametrize(
    ("name", "quarter"),
    [
        ("2025-01", "2025-Q1"),
        ("2025-03", "2025-Q1"),
        ("2025-04", "2025-Q2"),
        ("2025-09", "2025-Q3"),
        ("2025-10", "2025-Q4"),
        ("2025-12", "2025-Q4"),
    ],
)
def test_a_month_belongs_to_a_quarter(name: str, quarter: str) -> None:
    (figures,) = by_quarter([month(name, 1, 5)])

    assert figures["quarter"] == quarter


MEANS = [
    pytest.param([(1, 5.0), (3, 1.0)], 4, 2.0, id="weighted by reviews"),
    pytest.param([(1, 4.0), (0, None), (1, 5.0)], 2, 4.5, id="a month without reviews"),
    pytest.param([(2, None), (1, 5.0)], 3, 5.0, id="an unknown average"),
    pytest.param([(None, 3.0), (None, None)], 0, None, id="unknown numbers"),
    pytest.param([(10**400, 3.0), (1, 5.0)], 10**400 + 1, 3.0, id="more than a float"),
    pytest.param([(2, 4.0), (1, 5.0)], 3, 4.33, id="two decimals"),
]


@pytest.mark.parametrize(("months", "count", "average"), MEANS)
def test_a_quarter_has_the_reviews_of_its_months(
    months: list[tuple[int | None, float | None]], count: int, average: float | None
) -> None:
    named = [month(f"2025-0{n + 1}", *each) for n, each in enumerate(months)]

    (figures,) = by_quarter(named)

    assert figures["review_count"] == count
    assert figures["average_rating"] == average


def test_quarters_keep_the_order_of_months() -> None:
    months = [month("2024-12", 1, 5), month("2025-01", 2, 4), month("2025-02", 1, 1)]

    figures = by_quarter(months)

    assert [(one["quarter"], one["review_count"]) for one in figures] == [
        ("2024-Q4", 1),
        ("2025-Q1", 3),
    ]
