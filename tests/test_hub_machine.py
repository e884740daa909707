"""After any events in any order, all subscribers get the newest content, and removed ones get nothing.

A stateful property of transitions and store, with a clock and callbacks of the test, against a model of
what a subscriber may expect, which knows nothing of digests, rows or lanes.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from lab import hub_lab as lab

from reviewslib.websub.callbacks import CallbackRequest, CallbackResponse

ANN, WWW_ANN, BOB = CALLBACKS = [
    "https://ann.example/",
    "https://www.ann.example/",
    "https://bob.example/",
]
NETWORKS = {
    "ann.example": "192.0.2.1",
    "www.ann.example": "192.0.2.1",
    "bob.example": "192.0.2.2",
}
SHARE = 2  # of the places, for a domain and for a network
Key = tuple[str, str]  # (path, callback)
KEYS = st.sampled_from(
    [(lab.FEED, ANN), (lab.FEED, BOB), (lab.JSON_FEED, ANN), (lab.JSON_FEED, WWW_ANN)]
)
MODES = st.sampled_from(["subscribe", "unsubscribe"])
TEXTS = st.sampled_from("0123")
ANSWERS = st.sampled_from(
    [*map(lab.status, (204, 204, 500, 302, 410)), lab.SILENCE, lab.OUTAGE]
)


def topic_path(request: CallbackRequest) -> str:
    """The topic of a delivery."""
    return lab.FEED if "feed.xml" in request.headers["Link"] else lab.JSON_FEED


def network(key: Key) -> str:
    """Where the callback is."""
    return NETWORKS[key[1].split("/")[2]]


class Killed(BaseException):
    """The process ends here."""


class BrokenPromise(BaseException):
    """An assertion failed in a callback. The hub survives every `Exception`, so this is none."""


@dataclass
class Expectation:
    """What a subscriber that the hub has verified may expect."""

    ends_at: float
    has: str | None  # the content, None if the hub cannot know
    failures: int = 0


class HubMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(dir=lab.IN_MEMORY)
        self.bench = lab.Bench(Path(self.directory.name))
        self.bench.networks = NETWORKS
        self.bench.on_get = self.exchanged(self.on_get)
        self.bench.on_post = self.exchanged(self.on_post)
        self.texts = {lab.FEED: "0", lab.JSON_FEED: "0"}
        self.says: dict[str, Literal["yes", "no", "nothing"]] = dict.fromkeys(
            CALLBACKS, "yes"
        )
        self.answers: dict[str, lab.Answer] = dict.fromkeys(CALLBACKS, lab.status(204))
        self.expectations: dict[Key, Expectation] = {}
        self.requested_with: dict[
            Key, str | None
        ] = {}  # what the callback had when its request was accepted
        self.asking: set[Key] = set()  # whose request to subscribe nobody has answered
        self.unanswered: dict[
            tuple[Key, str], list[float]
        ] = {}  # when it was asked in vain, by mode
        self.owed_notices: set[Key] = set()
        self.possible_notices: set[Key] = set()  # a new request was under way
        self.meanwhile: tuple[Key, str] | None = (
            None  # a request that comes during the next verification
        )
        self.kill_at: str | None = None
        self.bench.restart(max_subscriptions=10 * SHARE)
        self.change(lab.FEED, "0")

    @property
    def now(self) -> float:
        return self.bench.clock.now

    # The callbacks, and what the model makes of each exchange

    def exchanged(self, answer: lab.Answer) -> lab.Answer:
        """A callback that answers, unless the hub is killed meanwhile."""

        def exchange(request: CallbackRequest) -> CallbackResponse:
            try:
                if request.method == "POST":
                    self.forget_content((topic_path(request), request.url))
                self.perhaps_killed("before the exchange")
                response = answer(request)
            except AssertionError as broken:
                raise BrokenPromise(broken) from broken
            self.perhaps_killed("before the record")
            self.note()
            return response

        return exchange

    def perhaps_killed(self, when: str) -> None:
        if self.kill_at == when:
            self.kill_at = None
            self.unanswered.clear()  # the hub may not know of the last attempt
            raise Killed

    def on_get(self, request: CallbackRequest) -> CallbackResponse:
        asked = lab.query(request.url)
        callback = request.url.partition("?")[0]
        key = asked["hub.topic"].removeprefix(lab.BASE_URL), callback
        if asked["hub.mode"] == "denied":
            assert key in self.owed_notices | self.possible_notices, (
                "nobody is told without a reason"
            )
            self.note = lambda: self.forget_notices(key)
            return lab.echo(request)
        had = self.requested_with.get(key)
        if self.meanwhile:
            (path, other), mode = self.meanwhile
            self.meanwhile = None
            self.ask((path, other), mode)
        if self.says[callback] == "nothing":
            tries = self.unanswered.setdefault((key, asked["hub.mode"]), [])
            tries.append(self.now)
            assert len(tries) <= 3, "nobody is asked more often"
            assert key in self.living() or tries[-1] < tries[0] + 120, (
                "no newcomer is asked for longer"
            )
            self.note = lambda: None
            return lab.SILENCE(request)
        self.unanswered.pop((key, asked["hub.mode"]), None)
        self.asking -= {key} if asked["hub.mode"] == "subscribe" else set()
        if self.says[callback] == "no":
            self.note = lambda: None
            return lab.status(404)(request)
        self.note = lambda: self.confirmed(key, asked, had)
        return lab.echo(request)

    def forget_content(self, key: Key) -> None:
        """It is unknown what the callback has, until the hub has stored that it took the content."""
        assert key in self.living(), "the removed, the ended and strangers hear nothing"
        assert self.texts[key[0]] != self.expectations[key].has, (
            "nobody is sent what the hub knows they have"
        )
        self.expectations[key].has = self.requested_with[key] = None

    def forget_notices(self, key: Key) -> None:
        self.owed_notices.discard(key)
        self.possible_notices.discard(key)

    def confirmed(self, key: Key, asked: dict[str, str], had: str | None) -> None:
        if asked["hub.mode"] == "unsubscribe":
            self.expectations.pop(key, None)
            self.asking.discard(key)
            return
        old = self.living().get(key)
        self.forget_notices(key)
        if not old and self.is_full(key):
            self.owed_notices.add(key)
            return
        ends_at = self.now + float(asked["hub.lease_seconds"])
        has, failures = (old.has, old.failures) if old else (had, 0)
        self.expectations[key] = Expectation(ends_at, has, failures)

    def is_full(self, key: Key) -> bool:
        """Whether others have the share of this subscriber's domain, which here is that of its network."""
        return [network(other) for other in self.living()].count(network(key)) >= SHARE

    def on_post(self, request: CallbackRequest) -> CallbackResponse:
        key = (topic_path(request), request.url)
        text = (request.body or b"").decode()
        assert text == self.texts[key[0]], "what is sent is the newest"
        answer = self.answers[request.url](request)
        self.note = lambda: (
            None if answer.own_fault else self.tried(key, text, answer.status)
        )
        return answer

    def tried(self, key: Key, text: str, code: int | None) -> None:
        expectation = self.expectations[key]
        if code == 204:
            expectation.has = text
            expectation.failures = 0
            return
        expectation.failures += 1
        if code == 410 or expectation.failures == 3:
            del self.expectations[key]
        if code != 410 and expectation.failures == 3:
            (self.possible_notices if key in self.asking else self.owed_notices).add(
                key
            )

    def living(self) -> dict[Key, Expectation]:
        return {
            key: what
            for key, what in self.expectations.items()
            if what.ends_at > self.now
        }

    # What may happen

    @rule(
        key=KEYS,
        lease=st.sampled_from(["3600", "864000", "864000"]),
        at_once=st.booleans(),
    )
    def subscribe(self, key: Key, lease: str, at_once: bool) -> None:
        self.ask(key, "subscribe", lease)
        if at_once:
            self.time_passes(0)

    @rule(key=KEYS)
    def unsubscribe(self, key: Key) -> None:
        self.ask(key, "unsubscribe")

    @rule(key=KEYS, mode=MODES)
    def ask_during_the_next_verification(self, key: Key, mode: str) -> None:
        self.meanwhile = key, mode

    def ask(self, key: Key, mode: str, lease: str = "864000") -> None:
        path, callback = key
        answer = self.bench.post(lab.form(mode, callback, path, lease_seconds=lease))
        if old := self.living().get(key):
            assert answer.status == 202, "no limit concerns who is subscribed"
        elif mode == "unsubscribe":
            assert answer.status == 404
        else:
            is_repeated = key in self.asking  # an equal request may wait
            assert answer.status in (
                (429,) if self.is_full(key) and not is_repeated else (202, 429)
            )
        if answer.status == 202:
            self.unanswered.pop((key, mode), None)
            if mode == "subscribe":
                self.asking.add(key)
                self.requested_with[key] = old.has if old else self.texts[path]

    @rule(path=st.sampled_from([lab.FEED, lab.JSON_FEED]), text=TEXTS)
    def change(self, path: str, text: str) -> None:
        self.texts[path] = text
        self.bench.publish(
            "", feed=self.texts[lab.FEED], json=self.texts[lab.JSON_FEED]
        )

    @rule(
        callback=st.sampled_from(CALLBACKS),
        says=st.sampled_from(["yes", "no", "nothing"]),
    )
    def make_up_its_mind(
        self, callback: str, says: Literal["yes", "no", "nothing"]
    ) -> None:
        self.says[callback] = says

    @rule(callback=st.sampled_from(CALLBACKS), answer=ANSWERS)
    def break_or_mend(self, callback: str, answer: lab.Answer) -> None:
        self.answers[callback] = answer
        self.time_passes(0)

    @rule(
        key=KEYS, times=st.integers(1, 3), text=TEXTS, code=st.sampled_from([204, 500])
    )
    def fail_in_a_row(self, key: Key, times: int, text: str, code: int) -> None:
        path, callback = key
        self.answers[callback] = lab.status(500)
        self.change(path, text)
        for _ in range(times):
            self.time_passes(4320)
        self.answers[callback] = lab.status(code)

    @rule(seconds=st.sampled_from([0, 0, 30, 59, 72, 3600, 4320, 86400]))
    def time_passes(self, seconds: int) -> None:
        try:
            self.bench.wait(seconds)
        except Killed:
            self.restart()

    @rule()
    def restart(self) -> None:
        self.bench.restart()

    @precondition(lambda self: self.kill_at is None)
    @rule(when=st.sampled_from(["before the exchange", "before the record"]))
    def be_killed_next_time(self, when: str) -> None:
        self.kill_at = when

    @invariant()
    def the_hub_knows_whom_it_serves_and_how_often_they_failed(self) -> None:
        rows = self.bench.rows()
        stored = {(row.path, row.callback): row.failures for row in rows}
        assert stored == {
            key: expectation.failures for key, expectation in self.living().items()
        }

    @invariant()
    def nobody_has_more_than_a_share(self) -> None:
        assert max(Counter(map(network, self.living())).values(), default=0) <= SHARE

    def teardown(self) -> None:
        self.kill_at = self.meanwhile = None
        self.answers = dict.fromkeys(CALLBACKS, lab.status(204))
        for _ in range(3):
            self.time_passes(4320)
        behind = {
            key for key, what in self.living().items() if what.has != self.texts[key[0]]
        }
        assert not behind, (
            "an active subscription with a living callback has the newest content"
        )
        assert not self.owed_notices, (
            "whoever was removed has been told, or asked about a new request"
        )
        self.the_hub_knows_whom_it_serves_and_how_often_they_failed()
        self.bench.hub.stop(1)
        self.directory.cleanup()


TestHub = pytest.mark.slow(HubMachine.TestCase)
TestHub.settings = hypothesis_settings(
    max_examples=40, stateful_step_count=30, deadline=None
)


# ---- Promises that chance may miss ----

KEY = lab.FEED, ANN


@pytest.fixture
def machine() -> Iterator[HubMachine]:
    """A hub with a subscriber."""
    made = HubMachine()
    made.subscribe(KEY, "864000", at_once=True)
    yield made
    made.teardown()


UNKNOWN = [(lab.SILENCE, None), (lab.OUTAGE, None), (lab.status(500), None)]
UNKNOWN += [
    (lab.status(204), when) for when in ("before the exchange", "before the record")
]


@pytest.mark.parametrize(("answer", "kill_at"), UNKNOWN)
def test_content_is_sent_again_after_an_unknown_outcome(
    machine: HubMachine, answer: lab.Answer, kill_at: str | None
) -> None:
    machine.kill_at = kill_at
    machine.change(lab.FEED, "1")
    machine.break_or_mend(ANN, answer)  # which may have come too late, or was lost
    machine.change(lab.FEED, "0")
    machine.break_or_mend(ANN, lab.status(204))
    machine.time_passes(4320)
    assert machine.bench.contents == ["1", "0"]


def test_requests_of_both_modes_are_kept_and_the_newer_wins(
    machine: HubMachine,
) -> None:
    machine.unsubscribe(KEY)
    machine.subscribe(KEY, "864000", at_once=False)
    assert sorted(state for state, _ in machine.bench.states()) == [
        "active",
        "subscribe",
        "unsubscribe",
    ]
    machine.time_passes(0)
    assert machine.bench.states() == [("active", 0)]
    machine.subscribe(KEY, "864000", at_once=False)
    machine.unsubscribe(KEY)
    machine.time_passes(0)
    assert machine.bench.states() == []
