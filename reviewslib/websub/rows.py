"""The values of the hub: rows, topics and settings.

Everything here is pure. This module must not know how anything is stored, sent or
scheduled.

All moments (`now`, `..._at`, `since`) are seconds since the epoch, all durations
seconds. "REC" is the W3C Recommendation of WebSub of 2018-01-23.

Sections: rows - topics - settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

# ---- Rows ----

SUBSCRIPTION = "active"
REQUEST_MODES = ("subscribe", "unsubscribe")
NOTICE = "denied"

# The lifetime of a request, or of a notice, that could not be sent: machines that are
# away for longer have more to repair than a subscription.
MAX_WAIT_SECONDS = 86_400.0


class Row(NamedTuple):
    """A subscription, a request or a notice; `mode` tells which.

    A topic and a callback together are a *pair* (REC 5.1). A pair has at most one
    subscription, and any number of requests: anybody may send one.
    """

    path: str  # of the topic: "/feed.xml"
    callback_key: str  # the normalized URL
    callback: str  # as sent
    host: str  # of the callback; for the log and the operator only
    topic_url: str  # as sent, and as sent back in hub.topic (REC 5.3)
    mode: str  # "active"; "subscribe", "unsubscribe"; "denied"
    secret: bytes | None
    lease_seconds: int
    since: float
    expires_at: float
    due_at: float  # not before this moment
    digest: str  # of the content that the callback has; "" if that is unknown
    failures: int = 0  # in a row
    took: float = 0.0  # seconds of the last exchange of this row
    tried_at: float | None = None  # the last delivery
    outcome: str = ""  # of the last delivery; the reason of a notice
    id: int = 0  # assigned by the store, never reused; 0 before

    @property
    def is_subscription(self) -> bool:
        return self.mode == SUBSCRIPTION

    @property
    def is_request(self) -> bool:
        return self.mode in REQUEST_MODES

    def asks_the_same_as(self, other: Row) -> bool:
        """Whether two requests of a pair need only one verification."""
        return self._asked == other._asked

    @property
    def _asked(self) -> tuple[object, ...]:
        return (
            self.mode,
            self.callback,
            self.topic_url,
            self.secret,
            self.lease_seconds,
        )


Rows: TypeAlias = tuple[Row, ...]
"""The rows of a pair, in no order."""


def denial(row: Row, reason: str, now: float) -> Row:
    """The notice to a callback that the hub refuses, or has removed, its subscription.

    REC 5.2: this may happen at any time, and the callback must then be told.
    """
    return row._replace(
        id=0,
        mode=NOTICE,
        secret=None,
        since=now,
        expires_at=now + MAX_WAIT_SECONDS,
        due_at=now,
        failures=0,
        took=0.0,
        tried_at=None,
        outcome=reason,
    )


# ---- Topics ----


@dataclass(frozen=True, slots=True)
class Topic:
    """The current representation of a topic, as GET serves it (identity coding)."""

    path: str  # "/feed.xml"
    content_type: str
    body: bytes
    digest: str  # hex SHA-256 of body


class Published:
    """The topics as they were published last, replaced as a whole. Thread-safe."""

    def __init__(self) -> None:
        self.topics: Mapping[str, Topic] = {}  # by path

    def digests(self) -> dict[str, str]:
        return {path: topic.digest for path, topic in self.topics.items()}


# ---- Settings ----

# A callback may ask for a later retry, but not for one that never comes.
MAX_DELAY_SECONDS = 3600.0
# The pause after what was not the callback's fault, and between attempts to verify.
PAUSE_SECONDS = 60.0
# A delay grows by up to this share, so that callbacks that failed together spread out.
RETRY_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class HubSettings:
    """The operator's settings of the hub. All numbers are positive."""

    base_url: str  # without a slash at the end; base_url + path is a topic's URL
    state_dir: Path
    user_agent: str
    lease_seconds: int  # the default lease
    lease_min: int
    lease_max: int
    retry_delays: tuple[float, ...]  # before the second and the third attempt
    timeout: float  # of a delivery, from connecting to the end of the answer's head
    workers: int  # threads that verify, and as many that deliver
    max_subscriptions: int
    ca_file: Path | None  # PEM, trusted besides the system's certificates; for tests
    allow_private: bool  # callbacks may have any address and port; for tests

    @property
    def older_half(self) -> int:
        """The number of places in which a subscription has the lease that it asks for.

        The other places are held for the shortest lease, so that one client, at the
        rate that the proxy lets it ask, can never hold all of them.
        """
        return self.max_subscriptions // 2

    @property
    def pause_seconds(self) -> float:
        """The delay after an attempt that does not count as a failure."""
        return min(PAUSE_SECONDS, *self.retry_delays)

    @property
    def longest_delay_seconds(self) -> float:
        """What is due later than this was written before the clock was set back."""
        return max(MAX_DELAY_SECONDS, max(self.retry_delays) * (1 + RETRY_JITTER))
