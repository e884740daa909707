"""Due rows get a thread in one order: the quick before the slow, subscribers before strangers."""

from __future__ import annotations

import itertools

import pytest

from reviewslib.websub.order import DueRow, in_order


def subscription(id: int, took: float = 0.1, due_at: float = 0.0) -> DueRow:
    return DueRow(
        id=id,
        due_at=due_at,
        took=took,
        is_subscription=True,
        is_of_subscriber=False,
    )


def request(
    id: int, took: float = 0.0, due_at: float = 0.0, *, of_subscriber: bool = False
) -> DueRow:
    return DueRow(
        id=id,
        due_at=due_at,
        took=took,
        is_subscription=False,
        is_of_subscriber=of_subscriber,
    )


# Each list is in the order that it should have.
ORDERS = [
    pytest.param(
        [subscription(9, took=0.99), subscription(1, took=1.0)],
        id="below a second before a second",
    ),
    pytest.param(
        [subscription(9, took=1.99), subscription(1, took=2.0)],
        id="below two seconds before slow ones",
    ),
    pytest.param(
        [subscription(1, took=0.9), subscription(2, took=0.1)],
        id="quick subscriptions: the oldest first, not the quickest",
    ),
    pytest.param(
        [subscription(9, took=8.0, due_at=1.0), subscription(1, took=3.0, due_at=2.0)],
        id="slow subscriptions: who waits longest, not the oldest",
    ),
    pytest.param(
        [request(9), request(1)],
        id="requests of strangers: the newest first",
    ),
    pytest.param(
        [
            request(2, of_subscriber=True),
            request(1, of_subscriber=True),
            request(9),
        ],
        id="requests of subscribers before those of strangers",
    ),
    pytest.param(
        [request(1), request(9, took=1.5, of_subscriber=True)],
        id="a quick stranger before a subscriber that takes a second",
    ),
    pytest.param(
        [
            request(1, took=5.0, due_at=1.0),
            request(2, took=5.0, due_at=2.0, of_subscriber=True),
        ],
        id="slow requests: who waits longest, whoever it is",
    ),
]


@pytest.mark.parametrize("expected", ORDERS)
def test_due_rows_have_one_order(expected: list[DueRow]) -> None:
    for given in itertools.permutations(expected):
        # given rows in any order

        # when they are put in order
        ordered = in_order(given)

        # then they are in the one of the rules
        assert ordered == expected


@pytest.mark.parametrize(
    ("took", "is_slow"),
    [
        pytest.param(1.99, False, id="below two seconds"),
        pytest.param(2.0, True, id="two seconds"),
    ],
)
def test_two_seconds_are_slow(took: float, is_slow: bool) -> None:
    assert subscription(1, took=took).is_slow == is_slow
