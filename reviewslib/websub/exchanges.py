"""An exchange with a callback in three steps: claim a due row, send, record the result.

Claim and record are a transaction each, and nothing is sent inside one. Between two
steps anything may happen to the row: other exchanges of its pair, forms, the operator,
the end of the process. Therefore each transaction looks at the rows as they then are,
and `transitions` decides.

This module must not know how rows change, in which order they are due, or in which
thread it runs.

Sections: the three steps - claims - results.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from reviewslib.websub.callback_messages import (
    CallbackRequest,
    CallbackResponse,
    denial_notice,
    notification,
    verification,
)
from reviewslib.websub.journal import log_bug, log_event
from reviewslib.websub.order import DueRow
from reviewslib.websub.outages import Silences
from reviewslib.websub.rows import (
    MAX_DELAY_SECONDS,
    RETRY_JITTER,
    HubSettings,
    Published,
    Row,
    Rows,
    Topic,
)
from reviewslib.websub.store import Store, StoreFault, Transaction
from reviewslib.websub.transitions import (
    Outcome,
    Result,
    Room,
    Transition,
    granted_lease,
    is_still_due,
    outcome_of_delivery,
    outcome_of_notice,
    outcome_of_verification,
    transition_of,
)

# How often a result is offered to a store that cannot be written.
STORE_RETRY_SECONDS = 1.0

# REC 8.2: a challenge cannot be guessed.
CHALLENGE_BYTES = 32

SendRequest = Callable[[CallbackRequest], CallbackResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A row that nobody else sends for now, and what its message is made of."""

    row: Row
    topic: Topic | None  # of a subscription, with the content to deliver
    sent_at: float
    lease_seconds: int  # that a challenge grants
    challenge: str


class Exchanges:
    """Makes the exchanges of a hub. Thread-safe."""

    def __init__(
        self,
        settings: HubSettings,
        store: Store,
        published: Published,
        send: SendRequest,
        *,
        clock: Callable[[], float],
        running_time: Callable[[], float],
        jitter: Callable[[], float],
    ):
        """`send` is the method of a `CallbackClient`; it raises nothing.

        `running_time` is never set back; `jitter` is a random share from 0 to 1.
        """
        self.silences = Silences()
        self._settings = settings
        self._store = store
        self._published = published
        self._send = send
        self._clock = clock
        self._running_time = running_time
        self._jitter = jitter
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Let no exchange wait for the store any longer."""
        self._stopping.set()

    def perform(self, due: DueRow) -> None:
        """Make the exchange of a row that was due, and wait until it is stored."""
        try:
            claim = self.claim(due)
        except StoreFault:
            # Nothing was sent, so the row stays due. The store has logged the fault.
            return
        if claim is None:
            return
        try:
            self._keep_recording(claim, self.send(claim))
        except Exception:
            # A bug, perhaps after the sending.
            log_bug(claim.row)
            self._keep_recording(claim, self._unexpected(claim))

    # ---- The three steps ----

    def claim(self, due: DueRow) -> Claim | None:
        """Take a row that was due; None if nothing is to be sent any more.

        What a callback has is unknown from here on until the result of a delivery is
        stored. So the current content is sent again after a kill, or when the result
        was lost, even if the content is by then what the callback had before. Raises
        StoreFault.
        """
        now = self._clock()
        with self._store.transaction() as transaction:
            row = transaction.row(due.id)
            topic = self._published.topics.get(row.path) if row else None
            digest = topic.digest if topic else None
            if row is None or not is_still_due(row, due.due_at, digest, now):
                return None
            if row.is_subscription:
                transaction.forget_content(row)
            lease_seconds = self._lease_seconds(transaction, row, now)
        return Claim(
            row=row,
            topic=topic if row.is_subscription else None,
            sent_at=now,
            lease_seconds=lease_seconds,
            challenge=secrets.token_urlsafe(CHALLENGE_BYTES),
        )

    def send(self, claim: Claim) -> Result:
        """Send what was claimed, and judge what comes back."""
        message = self._message(claim)
        began_at = self._running_time()
        response = self._send(message)
        ended_at = self._running_time()
        silent_seconds = self._silent_seconds(claim.row, response, ended_at)
        return Result(
            outcome=self._outcome(claim, response, silent_seconds is not None),
            words=response.outcome,
            sent_at=claim.sent_at,
            ended_at=self._clock(),
            took=ended_at - began_at,
            digest=claim.topic.digest if claim.topic else "",
            lease_seconds=claim.lease_seconds,
            retry_after=response.retry_after,
            pause_seconds=self._pause_seconds(silent_seconds),
            retry_delays=self._retry_delays(),
        )

    def record(self, claim: Claim, result: Result) -> None:
        """Store what follows from a result. Raises StoreFault."""
        with self._store.transaction() as transaction:
            before = transaction.rows_of(claim.row)
            transition = transition_of(
                before, claim.row.id, self._with_room(transaction, claim, result)
            )
            if transition.evicted:
                before = (*before, transition.evicted)
            transaction.save(before, transition.rows)
        lost = lost_subscriptions(before, transition.rows)
        for subscription in lost:
            self.silences.forget(subscription.id)
        is_lost = claim.row.id in {row.id for row in lost}
        self._tell(claim.row, transition, result, is_warning=is_lost)

    def _keep_recording(self, claim: Claim, result: Result) -> None:
        """Record a result as soon as the store can be written.

        If the hub stops meanwhile, the exchange is repeated after the next start.
        """
        while True:
            try:
                self.record(claim, result)
                return
            except StoreFault:
                if self._stopping.wait(STORE_RETRY_SECONDS):
                    return

    # ---- Claims ----

    def _lease_seconds(self, transaction: Transaction, row: Row, now: float) -> int:
        if not row.is_request:
            return row.lease_seconds
        older = transaction.older_subscriptions(row, now)
        return granted_lease(row, older, self._settings)

    def _message(self, claim: Claim) -> CallbackRequest:
        if claim.topic:
            return notification(claim.row, claim.topic, self._settings)
        if claim.row.is_request:
            return verification(
                claim.row, claim.lease_seconds, claim.challenge, self._settings
            )
        return denial_notice(claim.row, self._settings)

    # ---- Results ----

    def _outcome(
        self, claim: Claim, response: CallbackResponse, is_outage: bool
    ) -> Outcome:
        if claim.row.is_subscription:
            return outcome_of_delivery(response, is_outage=is_outage)
        if claim.row.is_request:
            return outcome_of_verification(response, claim.challenge)
        return outcome_of_notice(response)

    def _silent_seconds(
        self, row: Row, response: CallbackResponse, now: float
    ) -> float | None:
        """How long a subscription has been silent, if the outage is our own."""
        if response.is_sign_of_life:
            self.silences.end()
            return None
        if response.own_fault or not row.is_subscription:
            return None
        return self.silences.outage_seconds(row.id, now)

    def _pause_seconds(self, silent_seconds: float | None) -> float:
        """The delay after an attempt that does not count as a failure.

        In an outage it is as long as the outage has lasted, so that a long one costs
        few attempts, and the end of a short one is noticed soon.
        """
        pause_seconds = self._settings.pause_seconds
        if silent_seconds is None:
            return pause_seconds
        return min(max(pause_seconds, silent_seconds), MAX_DELAY_SECONDS)

    def _retry_delays(self) -> tuple[float, ...]:
        growth = 1 + RETRY_JITTER * self._jitter()
        return tuple(seconds * growth for seconds in self._settings.retry_delays)

    def _unexpected(self, claim: Claim) -> Result:
        """The result of an exchange in which this program failed."""
        return Result(
            outcome=Outcome.EXCUSED,
            words="unexpected error",
            sent_at=claim.sent_at,
            ended_at=self._clock(),
            took=claim.row.took,
            pause_seconds=self._settings.pause_seconds,
            retry_delays=self._settings.retry_delays,
        )

    def _with_room(
        self, transaction: Transaction, claim: Claim, result: Result
    ) -> Result:
        """The result of a confirmed subscription, with the places that are left."""
        is_confirmed = result.outcome is Outcome.CONFIRMED
        if not (is_confirmed and claim.row.mode == "subscribe"):
            return result
        now = result.ended_at
        count = transaction.count_subscriptions(now)
        if count < self._settings.max_subscriptions:
            return result
        failing = transaction.failing_subscription(self._settings.older_half, now)
        return replace(result, room=Room(is_full=True, failing=failing))

    def _tell(
        self, row: Row, transition: Transition, result: Result, *, is_warning: bool
    ) -> None:
        if transition.line:
            level = logging.WARNING if is_warning else logging.INFO
            log_event(row, f"{transition.line}: {result.words}", level)
        if transition.evicted:
            line = "removed: it was failing, and its place was needed"
            log_event(transition.evicted, line, logging.WARNING)


def lost_subscriptions(before: Rows, after: Rows) -> list[Row]:
    """The subscriptions that a transition has ended."""
    kept = {row.id for row in after}
    return [row for row in before if row.is_subscription and row.id not in kept]
