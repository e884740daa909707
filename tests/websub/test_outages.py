"""Silence of three is an outage of our own side, until anybody answers."""

from __future__ import annotations

from reviewslib.websub.outages import Silences


def silences(*ids: int, at: float = 0.0) -> Silences:
    """Subscriptions that have been silent once."""
    made = Silences()
    for id in ids:
        made.outage_seconds(id, at)
    return made


def test_three_that_stay_silent_are_an_outage_as_long_as_the_silence() -> None:
    # given three silent subscriptions
    silent = silences(1, 2, 3, at=100.0)

    # when one is silent again
    seconds = silent.outage_seconds(2, 160.0)

    # then it is an outage since the first time
    assert seconds == 60.0


def test_the_first_silence_of_a_subscription_is_its_own() -> None:
    # given three silent subscriptions
    silent = silences(1, 2, 3)

    # when a fourth one is silent
    seconds = silent.outage_seconds(4, 60.0)

    # then that counts: a dead platform looks like this
    assert seconds is None


def test_two_silent_ones_are_no_outage() -> None:
    # given two silent subscriptions
    silent = silences(1, 2)

    # when one is silent again
    seconds = silent.outage_seconds(1, 60.0)

    # then that counts
    assert seconds is None


def test_any_answer_ends_an_outage() -> None:
    # given three silent subscriptions
    silent = silences(1, 2, 3)

    # when anybody answers
    silent.end()

    # then the next silence is a first one
    assert silent.outage_seconds(1, 60.0) is None


def test_who_is_gone_is_not_silent() -> None:
    # given three silent subscriptions, one of which is removed
    silent = silences(1, 2, 3)
    silent.forget(3)

    # when another one is silent again
    seconds = silent.outage_seconds(1, 60.0)

    # then two are too few for an outage
    assert seconds is None
