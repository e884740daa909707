"""Whatever happens in whatever order: everybody has the newest content in the end, the removed hear nothing.

A stateful property over the transitions and the store, with a clock and callbacks of ours, against a model of
what a subscriber may expect: a dozen lines that know nothing of digests, rows or lanes.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import hub_lab as lab
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import hub
from callbacks import CallbackRequest, CallbackResponse, Enter
from hub_store import list_subscriptions

CALLBACKS = ["https://ann.example/", "https://bob.example/"]
Key = tuple[str, str]  # (path, callback)
KEYS = st.sampled_from([(lab.FEED, CALLBACKS[0]), (lab.FEED, CALLBACKS[1]), (lab.JSON_FEED, CALLBACKS[0])])


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Expectation:
    """What a subscriber that the hub has verified may expect."""

    ends_at: float
    has: str  # the content, as far as the hub knows
    failures: int = 0


class HubMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.clock = lab.Clock()
        self.texts = {lab.FEED: "0", lab.JSON_FEED: "0"}
        self.agrees = dict.fromkeys(CALLBACKS, True)
        self.answers = dict.fromkeys(CALLBACKS, 204)
        self.expectations: dict[Key, Expectation] = {}
        self.requested_with: dict[Key, str] = {}  # the content when the pending request was accepted
        self.owed_notices: set[Key] = set()
        self.kill_at: str | None = None
        self.start()

    # The hub

    def start(self) -> None:
        state_dir = Path(self.directory.name)
        self.hub = hub.Hub(lab.settings(state_dir), clock=self.clock, running_time=self.clock, send=self.send)
        self.hub.open_store()
        self.publish()

    def publish(self) -> None:
        self.hub.publish(lab.topics(feed=self.texts[lab.FEED], json=self.texts[lab.JSON_FEED]))

    def work(self) -> None:
        try:
            lab.work(self.hub)
        except Killed:
            self.restart()

    # The callbacks, and what the model makes of each exchange

    def send(self, request: CallbackRequest, enter: Enter) -> CallbackResponse:
        if self.kill_at == "before the exchange":
            self.kill_at = None
            raise Killed
        reply = self.on_get(request) if request.method == "GET" else self.on_post(request)
        if self.kill_at == "before the record":
            self.kill_at = None
            raise Killed
        self.note()
        return reply

    def on_get(self, request: CallbackRequest) -> CallbackResponse:
        asked = lab.query(request.url)
        callback = request.url.partition("?")[0]
        key = asked["hub.topic"].removeprefix(lab.BASE_URL), callback
        if asked["hub.mode"] == "denied":
            assert key in self.owed_notices, "nobody is told without a reason"
            self.note = lambda: self.owed_notices.remove(key)
            return CallbackResponse(200, "HTTP 200")
        self.owed_notices.discard(key)
        if not self.agrees[callback]:
            self.note = lambda: None
            return CallbackResponse(404, "HTTP 404")
        self.note = lambda: self.confirmed(key, asked)
        return lab.echo(request)

    def confirmed(self, key: Key, asked: dict[str, str]) -> None:
        if asked["hub.mode"] == "unsubscribe":
            self.expectations.pop(key, None)
            return
        old = self.living().get(key)
        ends_at = self.clock.now + float(asked["hub.lease_seconds"])
        has, failures = (old.has, old.failures) if old else (self.requested_with[key], 0)
        self.expectations[key] = Expectation(ends_at, has, failures)

    def on_post(self, request: CallbackRequest) -> CallbackResponse:
        path = lab.FEED if "feed.xml" in request.headers["Link"] else lab.JSON_FEED
        key, text = (path, request.url), (request.body or b"").decode()
        assert key in self.living(), "the removed, the ended and strangers hear nothing"
        assert text == self.texts[path], "what is sent is the newest"
        assert text != self.expectations[key].has, "nobody is sent again what the hub knows they have"
        code = self.answers[request.url]
        self.note = lambda: self.tried(key, text, code)
        return CallbackResponse(code, f"HTTP {code}")

    def tried(self, key: Key, text: str, code: int) -> None:
        expectation = self.expectations[key]
        if code == 204:
            expectation.has, expectation.failures = text, 0
            return
        expectation.failures += 1
        if code == 410 or expectation.failures == 3:
            del self.expectations[key]
        if code != 410 and expectation.failures == 3:
            self.owed_notices.add(key)

    def living(self) -> dict[Key, Expectation]:
        return {key: what for key, what in self.expectations.items() if what.ends_at > self.clock.now}

    # What may happen

    @rule(key=KEYS, lease=st.sampled_from(["3600", "864000", "864000"]), at_once=st.booleans())
    def subscribe(self, key: Key, lease: str, at_once: bool) -> None:
        path, callback = key
        answer = self.hub.answer(lab.FORM, lab.form(callback=callback, path=path, lease_seconds=lease))
        assert answer.status in (202, 429)
        if answer.status == 202:
            old = self.living().get(key)
            self.requested_with[key] = old.has if old else self.texts[path]
        if at_once:
            self.work()

    @rule(key=KEYS)
    def unsubscribe(self, key: Key) -> None:
        answer = self.hub.answer(lab.FORM, lab.form("unsubscribe", callback=key[1], path=key[0]))
        assert answer.status in ((202, 429) if key in self.living() else (404,))

    @rule(path=st.sampled_from([lab.FEED, lab.JSON_FEED]), text=st.sampled_from("0123"))
    def change(self, path: str, text: str) -> None:
        self.texts[path] = text
        self.publish()

    @rule(callback=st.sampled_from(CALLBACKS), agrees=st.booleans())
    def make_up_its_mind(self, callback: str, agrees: bool) -> None:
        self.agrees[callback] = agrees

    @rule(callback=st.sampled_from(CALLBACKS), code=st.sampled_from([204, 204, 500, 302, 410]))
    def break_or_mend(self, callback: str, code: int) -> None:
        self.answers[callback] = code
        self.work()

    @rule(key=KEYS, times=st.integers(1, 3), text=st.sampled_from("0123"), code=st.sampled_from([204, 500]))
    def fail_in_a_row(self, key: Key, times: int, text: str, code: int) -> None:
        path, callback = key
        self.answers[callback] = 500
        self.change(path, text)
        for _ in range(times):
            self.time_passes(4320)
        self.answers[callback] = code

    @rule(seconds=st.sampled_from([0, 0, 59, 72, 3600, 4320, 86400]))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds
        self.work()

    @rule()
    def restart(self) -> None:
        self.hub.stop(1)
        self.start()

    @precondition(lambda self: self.kill_at is None)
    @rule(when=st.sampled_from(["before the exchange", "before the record"]))
    def be_killed_next_time(self, when: str) -> None:
        self.kill_at = when

    @invariant()
    def the_hub_knows_whom_it_serves_and_how_often_they_failed(self) -> None:
        listed = list_subscriptions(Path(self.directory.name), clock=self.clock)
        stored = {(one.path, one.host): one.failures for one in listed if one.state in ("active", "failing")}
        expected = {
            (path, urlsplit(url).hostname): one.failures for (path, url), one in self.living().items()
        }
        assert stored == expected

    def teardown(self) -> None:
        self.kill_at = None
        self.answers = dict.fromkeys(CALLBACKS, 204)
        for _ in range(3):
            self.time_passes(4320)
        behind = {key for key, what in self.living().items() if what.has != self.texts[key[0]]}
        assert not behind, "an active subscription with a living callback has the newest content"
        assert not self.owed_notices, "whoever was removed has been told, or asked about a new request"
        self.the_hub_knows_whom_it_serves_and_how_often_they_failed()
        self.hub.stop(1)
        self.directory.cleanup()


TestHub = HubMachine.TestCase
TestHub.settings = hypothesis_settings(max_examples=150, stateful_step_count=30, deadline=None)
