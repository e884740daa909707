"""The order in which due rows get a thread.

Pure: a row that is due is a value with what the order needs. This module must not know
why a row is due, nor how many threads there are. Nothing here depends on a callback, a
host or an address: whoever can name somebody else could use such a key against them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# An exchange of two seconds or more is slow. A callback that is slower than that keeps
# a thread for up to the whole timeout.
SLOW_SECONDS = 2.0
# Where a subscription starts: behind the proven ones, before the slow ones.
UNPROVEN_SECONDS = 1.0


class DueRow(NamedTuple):
    """A row that is due, as it was when the store was read."""

    id: int
    due_at: float
    took: float  # seconds of its last exchange
    is_subscription: bool
    is_of_subscriber: bool  # a request of a pair that has a subscription

    @property
    def is_slow(self) -> bool:
        return self.took >= SLOW_SECONDS


def in_order(rows: Iterable[DueRow]) -> list[DueRow]:
    return sorted(rows, key=turn)


def turn(row: DueRow) -> tuple[float, float, float]:
    """The sort key: rows with smaller keys come first.

    Quick rows come before less quick ones, by whole seconds.
    """
    if row.is_slow:
        # Slow rows take turns. The oldest first would starve the younger ones.
        return (SLOW_SECONDS, row.due_at, row.id)
    seconds = int(row.took)
    if row.is_subscription:
        return (seconds, 0, row.id)
    # The newest request first: whoever repeats requests pushes back only their own.
    return (seconds, 0 if row.is_of_subscriber else 1, -row.id)
