"""What may happen to the rows of a pair: a table, and pure functions of values.

Time, random numbers and counts are arguments. This module must not know how rows are
stored, when they are due, or how anything is sent.

An accepted request changes nothing else until the callback has confirmed it (REC 5.1).
It leaves all other requests of its pair in place: anybody may have sent either.

Sections: outcomes - requests - claims - results - verifications and notices -
deliveries - the table.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import NamedTuple

from reviewslib.websub.callback_messages import CallbackResponse
from reviewslib.websub.forms import RequestRefused
from reviewslib.websub.order import UNPROVEN_SECONDS
from reviewslib.websub.rows import (
    MAX_DELAY_SECONDS,
    NOTICE,
    SUBSCRIPTION,
    HubSettings,
    Row,
    Rows,
    denial,
)

# In a row: failed deliveries then remove a subscription (specification 3), and attempts
# without an answer a request.
MAX_FAILURES = 3

# ---- Outcomes ----


class Outcome(Enum):
    """What an exchange came to."""

    CONFIRMED = auto()  # a verification: 2xx with the whole challenge
    DECLINED = auto()  # a verification: any other HTTP answer
    UNANSWERED = auto()  # a verification: no HTTP answer
    TOLD = auto()  # a notice, whatever came back
    DELIVERED = auto()  # 2xx
    GONE = auto()  # a delivery: 410
    FAILED = auto()  # a delivery: anything else
    EXCUSED = auto()  # our side is at fault, which counts for nobody


def outcome_of_verification(response: CallbackResponse, challenge: str) -> Outcome:
    if response.own_fault:
        return Outcome.EXCUSED
    if response.status is None:
        return Outcome.UNANSWERED
    # REC 5.3.1: the body must be equal to the challenge.
    if response.is_success and response.body == challenge.encode("ascii"):
        return Outcome.CONFIRMED
    return Outcome.DECLINED


def outcome_of_notice(response: CallbackResponse) -> Outcome:
    return Outcome.EXCUSED if response.own_fault else Outcome.TOLD


def outcome_of_delivery(response: CallbackResponse, *, is_outage: bool) -> Outcome:
    if response.own_fault or is_outage:
        return Outcome.EXCUSED
    if response.is_success:
        return Outcome.DELIVERED
    if response.status == 410:
        return Outcome.GONE
    return Outcome.FAILED


# ---- Requests ----


def with_request(rows: Rows, request: Row, is_asked: Callable[[int], bool]) -> Rows:
    """The rows of a pair after a form.

    `is_asked` tells of an id whether its verification runs. Raises RequestRefused if
    there is nothing to unsubscribe from.
    """
    living = living_rows(rows, request.since)
    subscription = subscription_of(living)
    if subscription is not None:
        request = request._replace(digest=subscription.digest)
    elif request.mode == "unsubscribe":
        raise RequestRefused(
            404, "hub.callback has no active subscription to hub.topic"
        )
    # An equal request is replaced, so that repetitions do not fill the table. Not one
    # that is being asked: a stranger's repetition would void its confirmation.
    kept = [
        row for row in living if not row.asks_the_same_as(request) or is_asked(row.id)
    ]
    return (*kept, request)


def living_rows(rows: Rows, now: float) -> Rows:
    return tuple(row for row in rows if row.expires_at > now)


def subscription_of(rows: Rows) -> Row | None:
    for row in rows:
        if row.is_subscription:
            return row
    return None


# ---- Claims ----


def is_still_due(
    row: Row | None, due_at: float, topic_digest: str | None, now: float
) -> bool:
    """Whether a row that was due at `due_at` may be sent, as it is now.

    Every result changes `due_at`, so that nothing is sent for a row that another thread
    has served since it was read. `topic_digest` is None for a topic that is gone.
    """
    if row is None or row.due_at != due_at or row.expires_at <= now:
        return False
    if row.is_subscription:
        return topic_digest is not None and row.digest != topic_digest
    return True


def granted_lease(request: Row, older: int, settings: HubSettings) -> int:
    """The lease for a request whose subscription has so many older ones before it."""
    if older >= settings.older_half:
        return settings.lease_min
    return request.lease_seconds


# ---- Results ----


class Room(NamedTuple):
    """Whether there is a place for one more subscription."""

    is_full: bool
    # A failing subscription of the younger half, whose place may be taken.
    failing: Row | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """An exchange that has ended."""

    outcome: Outcome
    words: str  # "HTTP 200", "connection refused"
    sent_at: float
    ended_at: float
    took: float
    digest: str = ""  # of the content that was sent
    lease_seconds: int = 0  # that the challenge granted
    retry_after: str = ""
    pause_seconds: float  # the delay after an attempt that does not count
    retry_delays: tuple[float, ...]  # after the first and the second failure
    room: Room = Room(is_full=False, failing=None)


class Transition(NamedTuple):
    """The new rows of a pair, and what happened, for the log; "" if nothing did."""

    rows: Rows
    line: str = ""
    # The subscription of another pair that gives up its place. Its notice is in `rows`.
    evicted: Row | None = None


def transition_of(rows: Rows, id: int, result: Result) -> Transition:
    """The rows of a pair after an exchange of the row with this id."""
    living = living_rows(rows, result.sent_at)
    for row in living:
        if row.id == id:
            return TRANSITIONS[row.mode, result.outcome](living, row, result)
    # It was removed, or confirmed by another request, while it was asked.
    return Transition(rows)


def without(rows: Rows, removed: Row) -> Rows:
    return tuple(row for row in rows if row.id != removed.id)


def with_changed(rows: Rows, changed: Row) -> Rows:
    return (*without(rows, changed), changed)


def postponed(rows: Rows, row: Row, result: Result) -> Transition:
    due_at = result.ended_at + result.pause_seconds
    attempted = row._replace(due_at=due_at, took=result.took)
    if row.is_subscription:
        attempted = tried(attempted, result)
    return Transition(with_changed(rows, attempted), f"{name_of(row)} postponed")


def name_of(row: Row) -> str:
    """What an exchange of a row is called in the log."""
    if row.is_subscription:
        return "delivery"
    if row.is_request:
        return row.mode
    return "denied notice"


# ---- Verifications and notices ----


def subscribe_confirmed(rows: Rows, request: Row, result: Result) -> Transition:
    """Renew the subscription, or begin one if there is a place."""
    remaining = after_confirmation(rows, request)
    subscription = subscription_of(remaining)
    if subscription is not None:
        renewal = renewed(subscription, request, result)
        return Transition(with_changed(remaining, renewal), "subscribe confirmed")
    begun = begun_subscription(request, result)
    if not result.room.is_full:
        return Transition((*remaining, begun), "subscribe confirmed")
    if result.room.failing is not None:
        return in_place_of(result.room.failing, remaining, begun, result)
    notice = denial(request, "there are too many subscriptions", result.ended_at)
    line = "subscribe confirmed and denied, too many subscriptions"
    return Transition((*remaining, notice), line)


def in_place_of(evicted: Row, rows: Rows, begun: Row, result: Result) -> Transition:
    """A subscription gets the place of one that was failing, which is told so."""
    reason = "deliveries failed and the place was needed; subscribe again to resume"
    notice = denial(evicted, reason, result.ended_at)
    return Transition((*rows, begun, notice), "subscribe confirmed", evicted)


def unsubscribe_confirmed(rows: Rows, request: Row, result: Result) -> Transition:
    remaining = after_confirmation(rows, request)
    requests = tuple(row for row in remaining if not row.is_subscription)
    return Transition(requests, "unsubscribe confirmed")


def after_confirmation(rows: Rows, request: Row) -> Rows:
    """The rows of a pair without what a confirmed request has settled.

    Later requests stay, and get a challenge of their own. A notice of an earlier
    removal would contradict the confirmation.
    """
    kept = []
    for row in rows:
        is_settled = row.is_request and row.id <= request.id
        is_notice = row.mode == NOTICE
        if not (is_settled or is_notice):
            kept.append(row)
    return tuple(kept)


def renewed(subscription: Row, request: Row, result: Result) -> Row:
    """A subscription with what the callback has agreed to.

    The digest stays, so that no content is repeated and no change is skipped. Failures,
    `due_at`, `took` and id stay, so that a bad callback cannot buy a place in front.
    """
    return subscription._replace(
        callback=request.callback,
        topic_url=request.topic_url,
        secret=request.secret,
        lease_seconds=result.lease_seconds,
        # REC 5.3: the lease begins when the verification is sent.
        expires_at=result.sent_at + result.lease_seconds,
    )


def begun_subscription(request: Row, result: Result) -> Row:
    return request._replace(
        id=0,
        mode=SUBSCRIPTION,
        lease_seconds=result.lease_seconds,
        since=result.sent_at,
        expires_at=result.sent_at + result.lease_seconds,
        due_at=result.ended_at,
        failures=0,
        took=UNPROVEN_SECONDS,
    )


def request_declined(rows: Rows, request: Row, result: Result) -> Transition:
    """The callback has answered without the challenge; that is final (REC 5.3.1)."""
    return Transition(without(rows, request), f"{request.mode} not confirmed")


def request_unanswered(rows: Rows, request: Row, result: Result) -> Transition:
    failures = request.failures + 1
    if failures == MAX_FAILURES:
        return Transition(without(rows, request), f"{request.mode} not confirmed")
    retried = request._replace(
        failures=failures,
        due_at=result.ended_at + result.pause_seconds,
        took=result.took,
    )
    line = f"{request.mode} unanswered, {failures} of {MAX_FAILURES}"
    return Transition(with_changed(rows, retried), line)


def notice_told(rows: Rows, notice: Row, result: Result) -> Transition:
    """A notice is sent once, whatever comes back."""
    return Transition(without(rows, notice), "denied notice")


# ---- Deliveries ----


def delivered(rows: Rows, subscription: Row, result: Result) -> Transition:
    served = tried(subscription, result)._replace(
        digest=result.digest, failures=0, due_at=result.ended_at, took=result.took
    )
    return Transition(with_changed(rows, served), f"{content_name(result)} delivered")


def callback_gone(rows: Rows, subscription: Row, result: Result) -> Transition:
    """410 ends the subscription (REC 7); it needs no notice."""
    line = f"{content_name(result)} refused, removed"
    return Transition(without(rows, subscription), line)


def delivery_failed(rows: Rows, subscription: Row, result: Result) -> Transition:
    """Try again, with whatever the content then is; remove after the third failure."""
    failures = subscription.failures + 1
    line = f"delivery failed, {failures} of {MAX_FAILURES}"
    if failures == MAX_FAILURES:
        # REC 7 keeps the subscription until its lease ends; the specification does not.
        # REC 5.2 permits denying it at any time.
        reason = f"{failures} deliveries in a row failed; subscribe again to resume"
        notice = denial(subscription, reason, result.ended_at)
        remaining = without(rows, subscription)
        return Transition((*remaining, notice), f"{line}, removed")
    delay_seconds = max(
        result.retry_delays[failures - 1],
        retry_after_seconds(result.retry_after, result.ended_at),
    )
    failing = tried(subscription, result)._replace(
        failures=failures, due_at=result.ended_at + delay_seconds, took=result.took
    )
    return Transition(with_changed(rows, failing), line)


def tried(subscription: Row, result: Result) -> Row:
    return subscription._replace(tried_at=result.ended_at, outcome=result.words)


def content_name(result: Result) -> str:
    return f"content {result.digest[:12]}"


def retry_after_seconds(value: str, now: float) -> float:
    """The delay that Retry-After asks for (RFC 9110 section 10.2.3), an hour at most.

    It is in seconds or a date. 0 if it is malformed.
    """
    with suppress(ValueError, OverflowError):
        if value.isascii() and value.isdecimal():
            seconds = float(value)
        else:
            seconds = parsedate_to_datetime(value).timestamp() - now
        return min(seconds, MAX_DELAY_SECONDS)
    return 0.0


# ---- The table ----

TRANSITIONS: dict[tuple[str, Outcome], Callable[[Rows, Row, Result], Transition]] = {
    ("subscribe", Outcome.CONFIRMED): subscribe_confirmed,
    ("subscribe", Outcome.DECLINED): request_declined,
    ("subscribe", Outcome.UNANSWERED): request_unanswered,
    ("subscribe", Outcome.EXCUSED): postponed,
    ("unsubscribe", Outcome.CONFIRMED): unsubscribe_confirmed,
    ("unsubscribe", Outcome.DECLINED): request_declined,
    ("unsubscribe", Outcome.UNANSWERED): request_unanswered,
    ("unsubscribe", Outcome.EXCUSED): postponed,
    (NOTICE, Outcome.TOLD): notice_told,
    (NOTICE, Outcome.EXCUSED): postponed,
    (SUBSCRIPTION, Outcome.DELIVERED): delivered,
    (SUBSCRIPTION, Outcome.GONE): callback_gone,
    (SUBSCRIPTION, Outcome.FAILED): delivery_failed,
    (SUBSCRIPTION, Outcome.EXCUSED): postponed,
}
