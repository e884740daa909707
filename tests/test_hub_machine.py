"""After any events in any order, subscribers have what they may expect, and nobody else hears anything.

A stateful property of the hub against a model that knows nothing of digests, order or threads. Exchanges are
made step by step: a row is read as due, claimed, sent and recorded, and between two steps of one exchange
there may be steps of others, forms, changes, hours, or the end of the process.

Sections, in order: The model - What may happen - Promises - Interleavings of two exchanges

Sections: the model - promises that chance may miss - interleavings of two exchanges of
a pair.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from lab import hub_lab as lab
from lab.hub_values import FEED, JSON_FEED, form, query

from reviewslib.websub.callback_messages import CallbackRequest, CallbackResponse
from reviewslib.websub.exchanges import Claim
from reviewslib.websub.order import DueRow
from reviewslib.websub.rows import Row
from reviewslib.websub.transitions import Result

ANN = "https://ann.example/"
BOB = "https://bob.example/"
CALLBACKS = [ANN, BOB]
PLACES = 3
OLDER_HALF = 1
SHORTEST_LEASE = 3600
LONGEST_SILENCE = 3
DAY = 86_400.0

Key = tuple[str, str]  # (path, callback)
KEYS = [(FEED, ANN), (FEED, BOB), (JSON_FEED, ANN), (JSON_FEED, BOB)]
ANY_KEY = st.sampled_from(KEYS)
MODES = st.sampled_from(["subscribe", "unsubscribe"])
LEASES = st.sampled_from([SHORTEST_LEASE, 864_000])
TEXTS = st.sampled_from("0123")
REFUSED = lab.status(None, is_refused=True)
ANSWERS = st.sampled_from(
    [
        *map(lab.status, (204, 204, 500, 302, 410)),
        lab.SILENCE,
        lab.SILENCE,
        REFUSED,
        lab.OUTAGE,
    ]
)
Mind = Literal["yes", "no", "nothing"]
MINDS = st.sampled_from(["yes", "no", "nothing"])


# ---- The model -----------------------------------------------------------------------


@dataclass
class Subscription:
    """What a subscriber that the hub has verified may expect."""

    ends_at: float
    # The content, None if the hub cannot know.
    has: str | None
    failures: int = 0


@dataclass
class Request:
    """A request that the hub has accepted."""

    key: Key
    mode: str
    lease: int
    ends_at: float
    has: str | None
    unanswered: int = 0


@dataclass
class Exchange:
    """An exchange that has begun, as far as it has come."""

    due: DueRow
    row: Row
    claim: Claim | None = None
    result: Result | None = None
    # What the model knows of it.
    text: str = ""
    subscription: Subscription | None = None
    happened: str = ""
    steps: list[str] = field(default_factory=lambda: ["claim", "answer", "record"])

    @property
    def key(self) -> Key:
        return self.row.path, self.row.callback


class HubMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(dir=lab.IN_MEMORY)
        self.bench = lab.Bench(Path(self.directory.name))
        self.bench.on_get = self.asked
        self.bench.on_post = self.served
        self.texts = {FEED: "0", JSON_FEED: "0"}
        self.minds: dict[str, Mind] = dict.fromkeys(CALLBACKS, "yes")
        self.answers: dict[str, lab.Answer] = dict.fromkeys(CALLBACKS, lab.status(204))
        # In the order in which they began.
        self.subscriptions: dict[Key, Subscription] = {}
        self.requests: dict[int, Request] = {}
        # Until when the hub will try to tell a callback that it was removed.
        self.notices: dict[Key, float] = {}
        self.silent_since: list[tuple[Subscription, float]] = []
        self.exchanges: list[Exchange] = []
        self.bench.restart(max_subscriptions=PLACES)
        self.change(FEED, "0")

    @property
    def now(self) -> float:
        return self.bench.clock.now

    def living(self, at: float | None = None) -> dict[Key, Subscription]:
        moment = self.now if at is None else at
        return {
            key: one for key, one in self.subscriptions.items() if one.ends_at > moment
        }

    # The callbacks

    def asked(self, request: CallbackRequest) -> CallbackResponse:
        callback = request.url.partition("?")[0]
        mind = self.minds[callback]
        if mind == "nothing":
            return lab.SILENCE(request)
        return (lab.echo if mind == "yes" else lab.status(404))(request)

    def served(self, request: CallbackRequest) -> CallbackResponse:
        return self.answers[request.url](request)

    # The steps of an exchange, and what the model makes of each

    def begin(self, choose: Callable[[list[DueRow]], DueRow | None]) -> Exchange | None:
        """Begin an exchange of one of the rows that are due, and that nobody serves."""
        running = {one.due.id for one in self.exchanges}
        due = [one for one in self.bench.due() if one.id not in running]
        if not due:
            return None
        chosen = choose(due)
        if chosen is None:
            return None
        (row,) = [row for row in self.bench.all_rows() if row.id == chosen.id]
        begun = Exchange(chosen, row)
        self.exchanges.append(begun)
        self.tell_who_is_asked()
        return begun

    def step(self, exchange: Exchange) -> None:
        step = exchange.steps.pop(0)
        {"claim": self.claim, "answer": self.answer, "record": self.record}[step](
            exchange
        )
        if not exchange.steps:
            self.exchanges.remove(exchange)
            self.tell_who_is_asked()

    def tell_who_is_asked(self) -> None:
        running = self.bench.hub.verifications
        assert isinstance(running, lab.HandPool)
        running.begun = {one.due.id for one in self.exchanges}

    def claim(self, exchange: Exchange) -> None:
        claim = self.bench.hub.exchanges.claim(exchange.due)
        exchange.claim = claim
        if claim is None:
            exchange.steps.clear()
            return
        key = exchange.key
        if exchange.row.mode == "active":
            self.claimed_delivery(exchange, key, claim)
        elif exchange.row.mode == "denied":
            assert key in self.notices, "nobody is told without a reason"
        else:
            request = self.requests[exchange.due.id]
            assert request.ends_at > self.now, "nobody is asked after a day"
            self.is_asked_for_the_lease(request, claim)

    def claimed_delivery(self, exchange: Exchange, key: Key, claim: Claim) -> None:
        """It is unknown what the callback has, until the hub has stored what it took."""
        subscription = self.living().get(key)
        text = self.texts[key[0]]
        assert subscription, "the removed, the ended and strangers hear nothing"
        assert subscription.has != text, "nobody is sent what the hub knows they have"
        assert claim.topic
        assert claim.topic.body == text.encode(), "what is sent is the newest"
        exchange.subscription = subscription
        exchange.text = text
        subscription.has = None
        for request in self.requests.values():
            if request.key == key:
                request.has = None

    def is_asked_for_the_lease(self, request: Request, claim: Claim) -> None:
        living = list(self.living())
        is_subscriber = request.key in living
        place = living.index(request.key) if is_subscriber else len(living)
        lease = request.lease if place < OLDER_HALF else SHORTEST_LEASE
        assert claim.lease_seconds == lease, "the younger half has the shortest lease"

    def answer(self, exchange: Exchange) -> None:
        assert exchange.claim
        exchange.result = self.bench.hub.exchanges.send(exchange.claim)
        sent = self.bench.sent[-1]
        if exchange.row.mode == "active":
            exchange.happened = self.happened_to_delivery(exchange, sent)
            return
        if exchange.row.mode != "denied":
            told = query(sent.url)["hub.lease_seconds"]
            assert told == str(exchange.claim.lease_seconds)
        mind = self.minds[exchange.row.callback]
        if mind != "nothing":
            self.silent_since.clear()
        exchange.happened = mind

    def happened_to_delivery(self, exchange: Exchange, sent: CallbackRequest) -> str:
        response = self.answers[exchange.row.callback](sent)
        if response.own_fault:
            return "excused"
        if response.is_sign_of_life:
            self.silent_since.clear()
            return {204: "taken", 410: "gone"}.get(response.status or 0, "failed")
        assert exchange.subscription
        was_silent = any(one is exchange.subscription for one, _ in self.silent_since)
        if not was_silent:
            self.silent_since.append((exchange.subscription, self.now))
        is_outage = was_silent and len(self.silent_since) >= LONGEST_SILENCE
        return "excused" if is_outage else "failed"

    def record(self, exchange: Exchange) -> None:
        assert exchange.claim
        assert exchange.result
        self.bench.hub.exchanges.record(exchange.claim, exchange.result)
        if exchange.row.mode == "active":
            self.recorded_delivery(exchange)
        elif exchange.row.mode == "denied":
            # A notice of later may have taken its place.
            if self.told_at(exchange):
                self.notices.pop(exchange.key, None)
        else:
            self.recorded_verification(exchange)

    def told_at(self, exchange: Exchange) -> bool:
        return self.notices.get(exchange.key) == exchange.row.expires_at

    def recorded_delivery(self, exchange: Exchange) -> None:
        key = exchange.key
        subscription = exchange.subscription
        if subscription is None or self.subscriptions.get(key) is not subscription:
            return
        if exchange.happened == "taken":
            subscription.has = exchange.text
            subscription.failures = 0
        elif exchange.happened == "gone":
            self.lose(key)
        elif exchange.happened == "failed":
            subscription.failures += 1
            if subscription.failures == 3:
                self.lose(key)
                self.owe_notice(key, exchange)

    def owe_notice(self, key: Key, exchange: Exchange) -> None:
        assert exchange.result
        self.notices[key] = exchange.result.ended_at + DAY

    def lose(self, key: Key) -> None:
        lost = self.subscriptions.pop(key, None)
        self.silent_since = [one for one in self.silent_since if one[0] is not lost]

    def recorded_verification(self, exchange: Exchange) -> None:
        assert exchange.claim
        request = self.requests.get(exchange.due.id)
        if request is None or request.ends_at <= exchange.claim.sent_at:
            return
        if exchange.happened == "no":
            del self.requests[exchange.due.id]
        elif exchange.happened == "nothing":
            request.unanswered += 1
            if request.unanswered == 3:
                del self.requests[exchange.due.id]
        else:
            self.confirmed(exchange, request, exchange.claim)

    def confirmed(self, exchange: Exchange, request: Request, claim: Claim) -> None:
        key = request.key
        self.requests = {
            id: other
            for id, other in self.requests.items()
            if other.key != key or id > exchange.due.id
        }
        self.notices.pop(key, None)
        if request.mode == "unsubscribe":
            self.lose(key)
            return
        ends_at = claim.sent_at + claim.lease_seconds
        old = self.living(claim.sent_at).get(key)
        if old:
            old.ends_at = ends_at
            return
        self.lose(key)
        if self.has_a_place(exchange):
            self.subscriptions[key] = Subscription(ends_at, request.has)
        else:
            self.owe_notice(key, exchange)

    def has_a_place(self, exchange: Exchange) -> bool:
        """Whether one more has a place, if need be that of one that fails."""
        assert exchange.result
        living = self.living(exchange.result.ended_at)
        if len(living) < PLACES:
            return True
        younger = list(living.items())[OLDER_HALF:]
        failing = [(one.failures, place) for place, (_, one) in enumerate(younger)]
        failures, place = max(failing)
        if not failures:
            return False
        key = younger[place][0]
        self.lose(key)
        self.owe_notice(key, exchange)
        return True

    # ---- What may happen ----

    @rule(key=ANY_KEY, mode=MODES, lease=LEASES)
    def ask(self, key: Key, mode: str, lease: int) -> None:
        path, callback = key
        answer = self.bench.post(form(mode, callback, path, lease_seconds=str(lease)))
        subscription = self.living().get(key)
        if mode == "unsubscribe" and not subscription:
            assert answer.status == 404
            return
        assert answer.status == 202, "no request is refused"
        asked_now = {one.due.id for one in self.exchanges}
        lease = 864_000 if mode == "unsubscribe" else lease
        self.requests = {
            id: other
            for id, other in self.requests.items()
            if (other.key, other.mode, other.lease) != (key, mode, lease)
            or id in asked_now
        }
        newest = max(row.id for row in self.bench.all_rows())
        has = subscription.has if subscription else self.texts[path]
        self.requests[newest] = Request(key, mode, lease, self.now + DAY, has)

    @rule(path=st.sampled_from([FEED, JSON_FEED]), text=TEXTS)
    def change(self, path: str, text: str) -> None:
        self.texts[path] = text
        self.bench.publish("", feed=self.texts[FEED], json=self.texts[JSON_FEED])

    @rule(callback=st.sampled_from(CALLBACKS), mind=MINDS)
    def make_up_its_mind(self, callback: str, mind: Mind) -> None:
        self.minds[callback] = mind

    @rule(callback=st.sampled_from(CALLBACKS), answer=ANSWERS)
    def break_or_mend(self, callback: str, answer: lab.Answer) -> None:
        self.answers[callback] = answer

    @rule(data=st.data())
    def begin_an_exchange(self, data: st.DataObject) -> None:
        self.begin(lambda due: data.draw(st.sampled_from(due)))

    @rule(data=st.data(), steps=st.integers(1, 3))
    def go_on_with_an_exchange(self, data: st.DataObject, steps: int) -> None:
        if not self.exchanges:
            return
        exchange = data.draw(st.sampled_from(self.exchanges))
        for _ in range(min(steps, len(exchange.steps))):
            if exchange.steps:
                self.step(exchange)

    @rule(seconds=st.sampled_from([0, 60, 72, 3600, 4320, 86_400, -7200]))
    def work_after(self, seconds: int) -> None:
        """Time passes, and what is then due is done, as by one thread."""
        self.bench.clock.now += seconds
        self.bench.running_time.now += max(0, seconds)
        self.keep_up()
        for _ in range(100):
            begun = self.begin(lambda due: due[0])
            if begun is None:
                break
            while begun.steps:
                self.step(begun)

    def keep_up(self) -> None:
        self.bench.hub.scheduler.keep_up()
        for key, subscription in list(self.subscriptions.items()):
            if subscription.ends_at <= self.now:
                self.lose(key)
        self.requests = {
            id: one for id, one in self.requests.items() if one.ends_at > self.now
        }
        self.notices = {
            key: ends_at for key, ends_at in self.notices.items() if ends_at > self.now
        }

    @rule(
        key=ANY_KEY,
        times=st.integers(1, 3),
        text=TEXTS,
        answer=st.sampled_from([lab.status(500), lab.SILENCE]),
    )
    def fail_in_a_row(
        self, key: Key, times: int, text: str, answer: lab.Answer
    ) -> None:
        path, callback = key
        self.answers[callback] = answer
        self.change(path, text)
        for _ in range(times):
            self.work_after(4320)

    @rule()
    def be_killed(self) -> None:
        """Without a word: what was under way is lost."""
        self.exchanges.clear()
        self.silent_since.clear()
        self.bench.restart()
        self.keep_up()

    @invariant()
    def the_hub_serves_whom_it_should(self) -> None:
        stored = [(row.path, row.callback, row.failures) for row in self.bench.rows()]
        expected = [
            (*key, subscription.failures)
            for key, subscription in self.subscriptions.items()
        ]
        assert sorted(stored) == sorted(expected)

    @invariant()
    def the_hub_asks_whom_it_should(self) -> None:
        stored = {row.id for row in self.bench.all_rows() if row.is_request}
        assert stored == set(self.requests)

    @invariant()
    def the_hub_tells_whom_it_should(self) -> None:
        stored = [(row.path, row.callback) for row in self.bench.rows("denied")]
        assert sorted(stored) == sorted(self.notices)

    def teardown(self) -> None:
        self.come_to_rest()
        self.bench.hub.stop(1)
        self.directory.cleanup()

    def come_to_rest(self) -> None:
        """All callbacks answer: whoever is subscribed has the newest content in the end."""
        self.minds = dict.fromkeys(CALLBACKS, "yes")
        self.answers = dict.fromkeys(CALLBACKS, lab.status(204))
        for exchange in list(self.exchanges):
            while exchange.steps:
                self.step(exchange)
        for _ in range(3):
            self.work_after(4320)
        for key, subscription in self.living().items():
            assert subscription.has == self.texts[key[0]], "a change was lost"
        assert not self.requests, "whoever answers is not left waiting"
        assert not self.notices, "whoever was removed has been told"


TestHub = pytest.mark.slow(HubMachine.TestCase)
TestHub.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=40, deadline=None
)


# ---- Promises that chance may miss ---------------------------------------------------

KEY = FEED, ANN


def a_machine() -> HubMachine:
    """A hub with a subscriber."""
    made = HubMachine()
    made.ask(KEY, "subscribe", 864_000)
    made.work_after(0)
    return made


@pytest.fixture
def machine() -> Iterator[HubMachine]:
    made = a_machine()
    yield made
    made.teardown()


UNKNOWN = [
    pytest.param(lab.SILENCE, 4, id="no answer"),
    pytest.param(lab.OUTAGE, 4, id="our side failed"),
    pytest.param(lab.status(500), 4, id="the callback failed"),
    pytest.param(lab.status(204), 1, id="killed before the claim"),
    pytest.param(lab.status(204), 2, id="killed before the answer"),
    pytest.param(lab.status(204), 3, id="killed before the record"),
]


@pytest.mark.parametrize(("answer", "steps"), UNKNOWN)
def test_content_is_sent_again_after_an_unknown_outcome(
    machine: HubMachine, answer: lab.Answer, steps: int
) -> None:
    # given a delivery of new content that came as far as that
    machine.answers[ANN] = answer
    machine.change(FEED, "1")
    delivery = machine.begin(lambda due: due[0])
    assert delivery
    for _ in range(steps - 1):
        machine.step(delivery)

    # when the process ends, and the content is again what it was before
    machine.be_killed()
    machine.change(FEED, "0")
    machine.answers[ANN] = lab.status(204)
    machine.work_after(4320)

    # then it is sent, unless the callback cannot have got the other content
    sent = machine.bench.contents
    assert sent[-1:] == (["0"] if steps > 1 else [])


def test_requests_of_both_modes_are_kept_and_both_are_asked(
    machine: HubMachine,
) -> None:
    # given a subscriber

    # when a request to unsubscribe and then one to subscribe are accepted
    machine.ask(KEY, "unsubscribe", 864_000)
    machine.ask(KEY, "subscribe", 864_000)
    waiting = sorted(row.mode for row in machine.bench.all_rows())
    machine.work_after(0)

    # then the newest is asked first, and settles the earlier one
    assert waiting == ["active", "subscribe", "unsubscribe"]
    assert [asked["hub.mode"] for asked in machine.bench.gets[1:]] == ["subscribe"]


def test_a_change_is_not_lost_on_a_subscriber_that_leaves_and_comes_again(
    machine: HubMachine,
) -> None:
    # given a subscriber that has not taken a change, and asks to leave and to come again
    machine.answers[ANN] = lab.status(500)
    machine.change(FEED, "1")
    machine.work_after(0)
    machine.ask(KEY, "unsubscribe", 864_000)
    leaving = machine.begin(lambda due: due[0])
    machine.ask(KEY, "subscribe", 864_000)

    # when it confirms both, in this order
    assert leaving
    while leaving.steps:
        machine.step(leaving)
    machine.answers[ANN] = lab.status(204)
    machine.work_after(0)

    # then it gets the change
    assert machine.bench.contents == ["1", "1"]


def test_of_two_places_too_few_the_failing_one_of_the_younger_half_goes(
    machine: HubMachine,
) -> None:
    # given as many subscribers as there are places, of whom the last one fails
    for key in KEYS[1:3]:
        machine.ask(key, "subscribe", 864_000)
        machine.work_after(0)
    machine.answers[ANN] = lab.status(500)
    machine.change(JSON_FEED, "1")
    machine.work_after(0)

    # when one more is confirmed
    machine.ask(KEYS[3], "subscribe", 864_000)
    machine.work_after(0)

    # then it has the place of the one that fails
    assert list(machine.subscriptions) == [*KEYS[:2], KEYS[3]]


def test_a_newcomer_hears_that_there_is_no_place_when_nobody_fails(
    machine: HubMachine,
) -> None:
    # given as many subscribers as there are places
    for key in KEYS[1:3]:
        machine.ask(key, "subscribe", 864_000)
        machine.work_after(0)

    # when one more is confirmed
    machine.ask(KEYS[3], "subscribe", 864_000)
    machine.work_after(0)

    # then it is told, and those who answer stay
    assert machine.bench.gets[-1]["hub.reason"] == "there are too many subscriptions"
    assert list(machine.subscriptions) == KEYS[:3]


# ---- Interleavings of two exchanges of a pair ----------------------------------------

# Each is read as due, claimed, answered and recorded.
STEPS = 4
INTERLEAVINGS = [
    "".join("A" if number in of_first else "B" for number in range(2 * STEPS))
    for of_first in itertools.combinations(range(2 * STEPS), STEPS)
]


class Thread:
    """A thread that has one exchange to make, and makes it step by step."""

    def __init__(self, machine: HubMachine, id: int):
        self._machine = machine
        self._id = id
        self._exchange: Exchange | None = None

    def step(self) -> None:
        """The next step; nothing if the row is no longer due when it is read."""
        if self._exchange is None:
            self._exchange = self._machine.begin(self._chosen)
        elif self._exchange.steps:
            self._machine.step(self._exchange)

    def _chosen(self, due: list[DueRow]) -> DueRow | None:
        return next((one for one in due if one.id == self._id), None)


def two_threads(machine: HubMachine, *asked: tuple[str, int]) -> list[Thread]:
    """For the two rows that are due after these requests, one of which may be a subscription."""
    for mode, lease in asked:
        machine.ask(KEY, mode, lease)
    first, second = machine.bench.due()
    return [Thread(machine, first.id), Thread(machine, second.id)]


def delivery_and(mode: str) -> Callable[[HubMachine], list[Thread]]:
    def begin(machine: HubMachine) -> list[Thread]:
        machine.change(FEED, "1")
        return two_threads(machine, (mode, SHORTEST_LEASE))

    return begin


def requests(*asked: tuple[str, int]) -> Callable[[HubMachine], list[Thread]]:
    return lambda machine: two_threads(machine, *asked)


def notice_and_subscribe(machine: HubMachine) -> list[Thread]:
    machine.fail_in_a_row(KEY, 2, "1", lab.status(500))
    machine.bench.clock.now += 4320
    delivery = machine.begin(lambda due: due[0])
    assert delivery
    while delivery.steps:
        machine.step(delivery)
    return two_threads(machine, ("subscribe", SHORTEST_LEASE))


PAIRS = [
    pytest.param(delivery_and("subscribe"), id="a delivery and a renewal"),
    pytest.param(delivery_and("unsubscribe"), id="a delivery and an unsubscription"),
    pytest.param(
        requests(("subscribe", SHORTEST_LEASE), ("subscribe", 864_000)),
        id="two renewals",
    ),
    pytest.param(
        requests(("subscribe", SHORTEST_LEASE), ("unsubscribe", 864_000)),
        id="a renewal and a later unsubscription",
    ),
    pytest.param(
        requests(("unsubscribe", 864_000), ("subscribe", SHORTEST_LEASE)),
        id="an unsubscription and a later renewal",
    ),
    pytest.param(notice_and_subscribe, id="a notice and a new request"),
]


@pytest.mark.slow
@pytest.mark.parametrize("begin", PAIRS)
@pytest.mark.parametrize("mind", ["yes", "no"])
@pytest.mark.parametrize("code", [204, 500])
def test_two_exchanges_of_a_pair_may_overlap_in_any_way(
    begin: Callable[[HubMachine], list[Thread]], mind: Mind, code: int
) -> None:
    for order in INTERLEAVINGS:
        # given two exchanges of a pair that are due
        machine = a_machine()
        first, second = begin(machine)
        machine.minds[ANN] = mind
        machine.answers[ANN] = lab.status(code)

        # when their steps come in this order, and new content in the middle
        for number, name in enumerate(order):
            if number == STEPS:
                machine.change(FEED, "2")
            (first if name == "A" else second).step()

        # then the model agrees, and in the end nothing is lost
        machine.the_hub_serves_whom_it_should()
        machine.the_hub_asks_whom_it_should()
        machine.the_hub_tells_whom_it_should()
        machine.teardown()


@pytest.mark.slow
@pytest.mark.parametrize("begin", PAIRS)
def test_a_kill_between_any_two_steps_of_two_exchanges_loses_nothing(
    begin: Callable[[HubMachine], list[Thread]],
) -> None:
    for come_so_far in itertools.product(range(STEPS + 1), repeat=2):
        # given two exchanges of a pair that have come so far
        machine = a_machine()
        for thread, steps in zip(begin(machine), come_so_far, strict=True):
            for _ in range(steps):
                thread.step()

        # when the process is killed, and the content is as it was at first
        machine.be_killed()
        machine.change(FEED, "0")

        # then the model agrees, and in the end nothing is lost
        machine.the_hub_serves_whom_it_should()
        machine.teardown()


def test_a_row_that_was_read_before_its_result_is_not_sent_again(
    machine: HubMachine,
) -> None:
    # given new content, and a thread that has read it as due
    machine.change(FEED, "1")
    (late,) = machine.bench.due()

    # when another thread fails to deliver it, before the first one claims
    machine.answers[ANN] = lab.status(500)
    machine.work_after(0)
    claimed = machine.bench.hub.exchanges.claim(late)

    # then the first one has nothing to send
    assert claimed is None
