"""Each outcome has one consequence, where the model of `test_hub_machine.py` is too coarse.

Sections: the table - notices - requests - leases - claims - Retry-After.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lab.hub_lab import settings

from reviewslib.websub.forms import RequestRefused
from reviewslib.websub.rows import NOTICE, REQUEST_MODES, SUBSCRIPTION, Row, denial
from reviewslib.websub.transitions import (
    TRANSITIONS,
    Outcome,
    Result,
    granted_lease,
    is_still_due,
    retry_after_seconds,
    transition_of,
    with_request,
)

NOW = 1_800_000_000.0


def row(mode: str = SUBSCRIPTION, id: int = 1, **more: object) -> Row:
    usual = Row(
        path="/feed.xml",
        callback_key="https://s.example/",
        callback="https://s.example/",
        host="s.example",
        topic_url="https://reviews.example/feed.xml",
        mode=mode,
        secret=None,
        lease_seconds=864_000,
        since=NOW - 10,
        expires_at=NOW + 100,
        due_at=NOW - 10,
        digest="old",
        id=id,
    )
    return usual._replace(**more)


def nobody_is_asked(_: int) -> bool:
    return False


# ---- The table -----------------------------------------------------------------------

VERIFICATION = {
    Outcome.CONFIRMED,
    Outcome.DECLINED,
    Outcome.UNANSWERED,
    Outcome.EXCUSED,
}
OUTCOMES = dict.fromkeys(REQUEST_MODES, VERIFICATION)
OUTCOMES[NOTICE] = {Outcome.TOLD, Outcome.EXCUSED}
OUTCOMES[SUBSCRIPTION] = {
    Outcome.DELIVERED,
    Outcome.GONE,
    Outcome.FAILED,
    Outcome.EXCUSED,
}


@pytest.mark.parametrize("mode", OUTCOMES)
def test_the_table_says_what_follows_from_each_outcome_of_each_row(mode: str) -> None:
    assert {outcome for of, outcome in TRANSITIONS if of == mode} == OUTCOMES[mode]


@pytest.mark.parametrize("mode", OUTCOMES)
@pytest.mark.parametrize("outcome", Outcome)
def test_a_result_for_a_row_that_is_gone_changes_nothing(
    mode: str, outcome: Outcome
) -> None:
    # given the rows of a pair
    rows = (row(mode, id=1),)

    # when the result of another row of it comes late
    result = Result(
        outcome=outcome,
        words="HTTP 200",
        sent_at=NOW,
        ended_at=NOW + 1,
        took=1.0,
        pause_seconds=60.0,
        retry_delays=(60.0, 3600.0),
    )
    transition = transition_of(rows, 2, result)

    # then nothing changes, and nothing is said
    assert transition == (rows, "", None)


# ---- Notices -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("secret", None, id="a secret that nothing needs any more"),
        pytest.param("failures", 0, id="failures, for which it would go first"),
        pytest.param("took", 0.0, id="slowness, for which it would come last"),
        pytest.param("tried_at", None, id="the moment of a delivery"),
    ],
)
def test_a_notice_keeps_nothing_of_what_it_ends(field: str, value: object) -> None:
    # given a slow subscription that has failed
    failing = row(secret=b"secret", failures=2, took=5.0, tried_at=NOW - 10)

    # when it is denied
    notice = denial(failing, "a reason", NOW)

    # then its notice does not keep this
    assert getattr(notice, field) == value


# ---- Requests ------------------------------------------------------------------------

CHANGES = [
    pytest.param({"mode": "unsubscribe"}, id="mode"),
    pytest.param({"callback": "https://S.example/"}, id="callback as sent"),
    pytest.param({"topic_url": "https://REVIEWS.example/feed.xml"}, id="topic"),
    pytest.param({"secret": b"another"}, id="secret"),
    pytest.param({"lease_seconds": 3600}, id="lease"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_request_that_differs_in_anything_replaces_no_other(
    change: dict[str, object],
) -> None:
    # given a subscription, and a request that waits
    rows = (row(), row("subscribe", id=2))

    # when one is accepted that differs
    request = row("subscribe", id=0, since=NOW)._replace(**change)
    after = with_request(rows, request, nobody_is_asked)

    # then both wait
    assert after == (*rows, request)


@pytest.mark.parametrize(
    ("is_asked", "left"),
    [
        pytest.param(False, [1, 0], id="which waits"),
        pytest.param(True, [1, 2, 0], id="which is being asked"),
    ],
)
def test_an_equal_request_is_replaced_unless_it_is_being_asked(
    is_asked: bool, left: list[int]
) -> None:
    # given a subscription, and a request
    rows = (row(), row("subscribe", id=2))

    # when an equal one is accepted
    request = row("subscribe", id=0, since=NOW)
    after = with_request(rows, request, lambda id: is_asked and id == 2)

    # then a confirmation under way is not made void
    assert [each.id for each in after] == left


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param((), id="no row"),
        pytest.param((row("subscribe"),), id="a request"),
        pytest.param((row(expires_at=NOW),), id="a subscription that has ended"),
    ],
)
def test_nobody_can_unsubscribe_who_is_not_subscribed(rows: tuple[Row, ...]) -> None:
    with pytest.raises(RequestRefused):
        with_request(rows, row("unsubscribe", since=NOW), nobody_is_asked)


def test_a_request_of_a_subscriber_has_the_content_of_the_subscription() -> None:
    # given a subscription whose callback has old content
    rows = (row(digest="old"),)

    # when a request is accepted while there is new content
    after = with_request(rows, row("subscribe", id=0, digest="new"), nobody_is_asked)

    # then a subscription made of it would get the new content
    assert after[1].digest == "old"


# ---- Leases --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "lease_seconds"),
    [
        pytest.param(4, 864_000, id="in the older half"),
        pytest.param(5, 3600, id="in the younger half"),
    ],
)
def test_the_younger_half_of_the_places_has_the_shortest_lease(
    tmp_path: Path, older: int, lease_seconds: int
) -> None:
    # given ten places
    ten = settings(tmp_path, max_subscriptions=10)

    # when a request is asked that has so many older subscriptions before it
    granted = granted_lease(row("subscribe"), older, ten)

    # then it gets what it wants only in the older half
    assert granted == lease_seconds


def confirmed(request: Row, *others: Row) -> Row:
    """The subscription after a challenge that was sent at NOW and took five seconds."""
    result = Result(
        outcome=Outcome.CONFIRMED,
        words="HTTP 200",
        sent_at=NOW,
        ended_at=NOW + 5,
        took=5.0,
        lease_seconds=3600,
        pause_seconds=60.0,
        retry_delays=(60.0, 3600.0),
    )
    transition = transition_of((request, *others), request.id, result)
    (subscription,) = transition.rows
    return subscription


def test_a_new_lease_begins_when_its_challenge_is_sent() -> None:
    # given a request, when it is confirmed
    begun = confirmed(row("subscribe", id=2, since=NOW - 60))

    # then the subscription began when its callback was asked
    assert begun.since == NOW
    assert begun.expires_at == NOW + 3600


@pytest.mark.parametrize(
    "expires_at",
    [
        pytest.param(NOW + 100, id="still has some time"),
        pytest.param(NOW + 3, id="ends meanwhile"),
    ],
)
def test_a_renewal_continues_a_lease_from_the_moment_of_its_challenge(
    expires_at: float,
) -> None:
    # given a subscription and its renewal, when that is confirmed
    older = row(id=1, expires_at=expires_at)
    renewed = confirmed(row("subscribe", id=2), older)

    # then it is the same one, with a lease from when its callback was asked
    assert renewed == older._replace(expires_at=NOW + 3600, lease_seconds=3600)


def test_a_confirmation_settles_the_requests_before_it() -> None:
    # given an older request of the pair
    older = row("unsubscribe", id=1)

    # when the newer one is confirmed
    subscription = confirmed(row("subscribe", id=2), older)

    # then the older one is not asked any more
    assert subscription.mode == SUBSCRIPTION


# ---- Claims --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now_is", "topic_digest", "expected"),
    [
        pytest.param(row(), "new", True, id="other content"),
        pytest.param(row(), "old", False, id="the same content"),
        pytest.param(row(), None, False, id="no such topic now"),
        pytest.param(None, "new", False, id="it is gone"),
        pytest.param(row(due_at=NOW), "new", False, id="served meanwhile"),
        pytest.param(row(expires_at=NOW), "new", False, id="the lease has ended"),
        pytest.param(row("subscribe"), "old", True, id="a request"),
        pytest.param(row("denied"), None, True, id="a notice"),
    ],
)
def test_a_row_is_claimed_as_it_is_now(
    now_is: Row | None, topic_digest: str | None, expected: bool
) -> None:
    assert is_still_due(now_is, NOW - 10, topic_digest, NOW) == expected


# ---- Retry-After ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("120", 120, id="seconds"),
        pytest.param("9" * 4000, 3600, id="too many seconds"),
        pytest.param("9" * 400, 3600, id="more than a float holds"),
        pytest.param("Fri, 15 Jan 2027 08:10:00 GMT", 600, id="a date"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", 3600, id="a date far away"),
        pytest.param("soon", 0, id="neither"),
        pytest.param("-5", 0, id="negative"),
        pytest.param(
            f"Fri, 01 Jan {'9' * 30} 00:00:00 GMT", 0, id="a year beyond all dates"
        ),
        pytest.param("\u0663", 0, id="a digit of another script"),
        pytest.param("Mon, 99 Foo 2026", 0, id="no date"),
        pytest.param("", 0, id="nothing"),
    ],
)
def test_retry_after_asks_for_an_hour_at_most(value: str, seconds: float) -> None:
    assert retry_after_seconds(value, NOW) == seconds
