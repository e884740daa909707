"""A hub in memory: a settable clock, callbacks that answer as they are told, no thread.

Sections: the clock - callbacks - the hub - commits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import hub
import reviewsd
from lab.hub_values import BASE_URL, FORM, form, query, topics
from reviewslib.process.settings import Settings
from reviewslib.websub.callback_messages import CallbackRequest, CallbackResponse
from reviewslib.websub.forms import HubAnswer
from reviewslib.websub.order import DueRow
from reviewslib.websub.pools import Pool
from reviewslib.websub.rows import HubSettings, Row
from reviewslib.websub.store import list_rows

# Where changes of a store cost nothing.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

# ---- The clock ----


class Clock:
    """A clock that the test sets, in seconds since the epoch."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def settings(state_dir: Path, **changes: Any) -> HubSettings:
    """The daemon's defaults, with changes."""
    usual = reviewsd.hub_settings(Settings(state_dir=state_dir), BASE_URL)
    return replace(usual, **changes)


# ---- Callbacks ----

Answer = Callable[[CallbackRequest], CallbackResponse]


def echoing(code: int, body: str) -> Answer:
    """A callback that always answers with this status and body.

    The challenge stands in place of {}.
    """

    def answer(request: CallbackRequest) -> CallbackResponse:
        challenge = query(request.url).get("hub.challenge", "")
        content = body.replace("{}", challenge).encode()
        return CallbackResponse(code, f"HTTP {code}", content)

    return answer


# Confirms every request and accepts every delivery.
echo = echoing(200, "{}")


def status(code: int | None, **more: Any) -> Answer:
    """A callback that always answers with this status, or never if it is None."""
    outcome = f"HTTP {code}" if code else "not reachable"
    response = CallbackResponse(code, outcome, **more)
    return lambda _: response


SILENCE = status(None)
OUTAGE = status(None, own_fault=True)


# ---- The hub ----


class HandPool(Pool[DueRow]):
    """A pool without threads: the test begins what the hub offers, when it likes."""

    def __init__(self, name: str, size: int, perform: Callable[[DueRow], None]):
        super().__init__(name, size, perform)
        self.offered: list[DueRow] = []
        self.begun: set[int] = set()

    def offer(self, jobs: Iterable[DueRow]) -> None:
        self.offered = list(jobs)

    def is_running(self, id: int) -> bool:
        return id in self.begun


class Bench:
    """A hub with a state directory and callbacks in memory; it can be restarted."""

    def __init__(self, state_dir: Path):
        self.settings = settings(state_dir)
        self.clock = Clock()
        self.running_time = Clock()
        # All that went to the callbacks, which answer as told here.
        self.sent: list[CallbackRequest] = []
        self.jitter = 1.0
        self.on_get: Answer = echo
        self.on_post: Answer = status(204)
        self.topics = topics()
        self.start()

    def start(self) -> None:
        self.hub = hub.Hub(
            self.settings,
            self.send,
            clock=self.clock,
            running_time=self.running_time,
            jitter=lambda: self.jitter,
            pool=HandPool,
        )
        self.hub.publish(self.topics)
        self.hub.scheduler.keep_up()

    def restart(self, **changes: object) -> None:
        """A new hub over the same store, perhaps with other settings."""
        self.hub.stop(1)
        self.settings = replace(self.settings, **changes)
        self.start()

    def send(self, request: CallbackRequest) -> CallbackResponse:
        self.sent.append(request)
        answer = self.on_get if request.method == "GET" else self.on_post
        return answer(request)

    def post(self, body: bytes, content_type: str | None = FORM) -> HubAnswer:
        return self.hub.answer(content_type, body)

    def subscribe(self, *names: str, **fields: str) -> None:
        """Subscriptions, each verified: of hosts below .example, else of s.example."""
        callbacks = [f"https://{name}.example/" for name in names]
        for callback in callbacks or ["https://s.example/cb"]:
            body = form(**{"callback": callback, **fields})
            assert self.post(body).status == 202
            self.work()

    def ask(self, *names: str, **fields: str) -> set[int]:
        """Requests of hosts below .example; the statuses of the answers."""
        return {
            self.post(form(callback=f"https://{name}.example/", **fields)).status
            for name in names
        }

    def change(self, text: str = "two", answer: Answer | None = None) -> None:
        """New content, delivered as far as the callbacks let it.

        Perhaps they answer otherwise from now on.
        """
        self.on_post = answer or self.on_post
        self.publish(text)
        self.work()

    def publish(self, text: str, **more: str) -> None:
        self.topics = topics(text, **more)
        self.hub.publish(self.topics)

    def due(self) -> list[DueRow]:
        """What is due, in its order: verifications, then deliveries."""
        self.hub.scheduler.offer_due()
        pools = self.hub.verifications, self.hub.deliveries
        return [due for pool in pools for due in offered(pool)]

    def perform(self, due: DueRow) -> None:
        """Make an exchange, as a thread of a pool does."""
        with self.begun(due):
            self.hub.exchanges.perform(due)

    @contextmanager
    def begun(self, due: DueRow) -> Iterator[None]:
        """An exchange that a thread has begun, and not ended."""
        running = self.hub.verifications
        assert isinstance(running, HandPool)
        running.begun.add(due.id)
        try:
            yield
        finally:
            running.begun.discard(due.id)

    def work(self) -> None:
        """Do all that is due now and what follows at once from it, without a thread."""
        for _ in range(1000):
            due = self.due()
            if not due:
                break
            for one in due:
                self.perform(one)
        self.hub.scheduler.keep_up()

    def wait(self, seconds: float) -> None:
        """Let time pass. The clock may be set back, and then only the clock."""
        self.clock.now += seconds
        self.running_time.now += max(0.0, seconds)
        self.work()

    @property
    def gets(self) -> list[dict[str, str]]:
        return [query(request.url) for request in self.sent if request.method == "GET"]

    @property
    def posts(self) -> list[CallbackRequest]:
        return [request for request in self.sent if request.method == "POST"]

    @property
    def contents(self) -> list[str]:
        return [(request.body or b"").decode() for request in self.posts]

    def rows(self, mode: str = "active") -> list[Row]:
        """The subscriptions, or the requests of a mode."""
        return [row for row in self.all_rows() if row.mode == mode]

    def all_rows(self) -> list[Row]:
        return list_rows(self.settings.state_dir)

    def states(self) -> list[tuple[str, int]]:
        """The mode of each row, and the failures of each subscription."""
        states = []
        for row in self.all_rows():
            failures = row.failures if row.mode == "active" else 0
            states.append((row.mode, failures))
        return states

    def hosts(self, mode: str = "active") -> list[str]:
        return [row.host for row in self.rows(mode)]

    def subscription(self) -> Row:
        """The only one."""
        (row,) = self.rows()
        return row


def offered(pool: Pool[DueRow]) -> list[DueRow]:
    assert isinstance(pool, HandPool)
    return pool.offered


# ---- Commits ----

# Of `PRAGMA synchronous`: a commit returns when the disk has it (sqlite.org/pragma.html).
FULL = 2


class WatchedConnection(sqlite3.Connection):
    """A connection that notes how long each commit of its changes waits."""

    commits: ClassVar[list[str]] = []
    changes = 0

    def __exit__(self, *exception: Any) -> Any:
        if self.total_changes > self.changes:
            (level,) = self.execute("PRAGMA synchronous").fetchone()
            self.commits.append("for the disk" if level >= FULL else "for the system")
        self.changes = self.total_changes
        return super().__exit__(*exception)
