"""Searches that cost much: the time of one request, as one client sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count

from answers import Parameters, search_path
from load import BenchError, Client
from peers import OURS, Server
from plan import Plan

WORST_REPETITIONS = 15
# Asked for in between, so that we forget the words of the query; with fewer reviews they cost us nothing.
OTHER_WORDS, COSTLY_WORDS_REVIEWS = 200, 50_000
BAD_QUERIES: dict[str, Parameters] = {
    "no filter": {},
    "one letter, in nearly every text": {"query": "e"},
    "one letter, rare": {"query": "q"},
    "two letters": {"query": "th"},
    "two letters, in no text": {"query": "qz"},
    "the most common word": {"query": "the"},
    "a common phrase": {"query": "and the"},
    "a blank": {"query": " "},
    "two blanks": {"query": "  "},
    "the most common word and a blank": {"query": "the "},
    "a blank and the most common word": {"query": " the"},
    "parts of two common words": {"query": "e the"},
    "longer parts of two common words": {"query": "ing th"},
    "a word of one letter after a common one": {"query": "s a "},
    "letters that seldom meet": {"query": "f r"},
    "parts of words that seldom meet": {"query": "rer t"},
    "a common ending and one letter": {"query": "ting t"},
    "a phrase in no text": {"query": "the back and the neck and the hip"},
    "nearly a match, again and again": {"query": "the the the the q"},
    "a letter beyond Latin-1": {"query": "ω"},
    "200 characters": {"query": "back pain " * 20},
    "a doctor": {"mentions_technician": "Dr."},
    "all filters": {
        "query": "e",
        "min_rating": 1,
        "rating": 5,
        "since": "2022-11-17",
        "until": "2026-11-14",
        "mentions_technician": "Dr.",
        "mentions_service": "massage therapy",
    },
}

_numbers = count()


@dataclass(frozen=True, slots=True)
class Worst:
    """The seconds of one bad query, by server, one a repetition."""

    title: str
    size: int
    seconds: dict[str, list[float]]


def measure_worst(plan: Plan, size: int, servers: dict[str, Server]) -> Iterator[Worst]:
    """Every bad query, many times, `servers` in turns, for 100 reviews compressed with gzip."""
    plan.say(f"{size} reviews, bad queries")
    with ExitStack() as stack:
        clients = {name: stack.enter_context(Client(servers[name].port)) for name in servers}
        for title, parameters in (BAD_QUERIES | {"a deep offset": {"offset": max(0, size - 200)}}).items():
            seconds: dict[str, list[float]] = {name: [] for name in servers}
            for repetition in range(WORST_REPETITIONS):
                # One review further each time: as much work, and no answer that is remembered.
                offset = int(parameters.get("offset", 0)) + repetition
                path = search_path({**parameters, "limit": 100, "offset": offset})
                if size >= COSTLY_WORDS_REVIEWS:
                    _ask_other_words(clients[OURS])
                for name, client in clients.items():
                    reply = client.get(path, {"Accept-Encoding": "gzip"})
                    if reply.status != 200:
                        raise BenchError(f"{name} answers {reply.status} to {path}")
                    seconds[name].append(reply.seconds)
            yield Worst(title, size, seconds)


def _ask_other_words(client: Client) -> None:
    """Search for words that no text holds, each of them once."""
    for _ in range(OTHER_WORDS):
        client.get(search_path({"query": f"zq{next(_numbers)}"}))
