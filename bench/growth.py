"""Growth: what a search, a start and the memory cost with more and more reviews."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from load import RATINGS, BenchError, Client, Request
from peers import OURS, Server, our_service
from plan import Plan, data_directory, search_days, search_words
from searches import Worst, measure_worst
from throughput import UNSEEN_SEARCH

SEARCHES = 500
DAYS_APART = 37  # of two searches: has no divisor in common with the number of days


@dataclass(frozen=True, slots=True)
class Growth:
    """What one number of reviews costs."""

    size: int
    search_seconds: list[float]  # of each unseen search, one client asking
    worst: list[Worst]  # of the bad queries
    start_seconds: list[float]  # from spawning the process to its first answer, one a start
    resident_bytes: int  # after all these searches

    @property
    def slowest(self) -> Worst:
        """The bad query with the highest median."""
        return max(self.worst, key=lambda one: median(one.seconds[OURS]))


def measure_growth(plan: Plan, size: int) -> Growth:
    """Start, search, and look at the memory."""
    plan.say(f"{size} reviews, growth")
    data = data_directory(plan, size)
    starts = []
    for _ in range(plan.rounds_with(size) - 1):
        with our_service(plan.environment, data, plan.scratch) as server:
            starts.append(server.start_seconds)
    with our_service(plan.environment, data, plan.scratch) as server:
        starts.append(server.start_seconds)
        searches = _unseen_searches(server)
        worst = list(measure_worst(plan, size, {OURS: server}))
        return Growth(size, searches, worst, starts, server.memory().resident_bytes)


def _unseen_searches(server: Server) -> list[float]:
    words, days = search_words(), search_days()
    seconds = []
    with Client(server.port) as client:
        for number in range(SEARCHES):
            day = days[number * DAYS_APART % len(days)]
            question = (words[number % len(words)], day, number % RATINGS + 1)
            reply = client.send(Request(UNSEEN_SEARCH, {}).asking(question))
            if reply.status != 200:
                raise BenchError(f"{server.name} answers {reply.status} to a search for {question}")
            seconds.append(reply.seconds)
    return seconds
