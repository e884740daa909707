"""The soak test: load and disturbances for ten minutes, then checks of the service at rest.

    python tests/soak.py >> bench/RESULTS.md   ten minutes
    python tests/soak.py --seconds 4           a short one, as the tests run it

Clients call without a pause; other clients request large responses and read nothing, or
leave at once. Meanwhile good and bad data files replace the current ones, the daemon is
stopped or killed and started again, and the subscribers lose their network for a while.
The exit status is 1 if a response was not as expected, memory or descriptors have
grown, or a living subscriber does not have the newest content.

Needs root and `ip`: everything runs in a network of its own, from which addresses can
be removed.

Sections: numbers - calls - the soak - disturbances - rest - the command line.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from lab.attack_lab import CALL_TEXT, WHOLE_CALL, WHOLE_GET, connections
from lab.proxy_lab import JSON_TYPE
from lab.services import SAMPLE, Service, daemon_command, fetch, free_port
from lab.subscribers import Subscribers
from lab.tools import own_network
from lab.watching import LabError, memory_mb, wait_for

# ---- Numbers ----

TOPICS = ("/feed.xml", "/api/feed.json", "/reviews.json")
# For documentation (RFC 5737).
OWN_NETWORK = "198.51.100."
# Longer than all attempts of the hub to reach a subscriber that is down.
LOST_SECONDS = 3
HUB_FLAGS = ("--hub-retry-delays=0.5,1", "--hub-timeout=5")
BAD_FILES = (b" ", b"{", b'{"reviews": [{"rating": 9}]}', b"\xff\xfe")
# What happens in a phase, in any order, again and again.
CALM = ("good file", "good file", "bad file", "SIGHUP")
WILD = ("good file", "bad file", "SIGHUP", "SIGKILL", "SIGTERM", "lost network")
# Of the time, for one of the two phases with CALM disturbances.
CALM_SHARE = 0.3
CALLERS = 8
# Few enough that the service refuses no request.
NON_READERS = [WHOLE_GET, WHOLE_CALL] * 40
# Between two looks at rest.
MOST_MORE_MB = 16
MOST_MORE_DESCRIPTORS = 8


def living() -> list[tuple[str, int, str]]:
    """Subscribers that answer sooner or later: kind, number, topic."""
    callbacks = []
    for kind in ("steady", "slow", "flaky"):
        for number in range(6):
            callbacks.append((kind, number, TOPICS[number % 3]))
    return callbacks


LIVING = living()

# ---- Calls ----

WORDS = ("back", "pain", "neck", "great", "massage", "wait", "the", "Tobias", "zzz")
WORDS += ("é", "")
DOCUMENTS = ("/insights.json", "/", "/reviews", "/sitemap.xml", "/llms.txt")
SEARCH = "/api/reviews/search"


class Call(NamedTuple):
    """A request: its kind, the expected status, and the arguments of `fetch`."""

    kind: str
    status: int
    arguments: dict[str, Any]


def random_call() -> Call:
    return random.choice((_random_read, _random_search, _random_refusal))()


def _random_read() -> Call:
    path = random.choice((*TOPICS, *DOCUMENTS))
    coding = random.choice(("gzip", "identity"))
    day = f"202{random.randint(2, 6)}-01-31"
    return random.choice(
        (
            Call("read", 200, {"path": path, "accept_encoding": coding}),
            Call("conditional read", 304, {"path": path, "if_none_match": "*"}),
            Call("since", 200, {"path": f"/api/reviews/since/{day}"}),
        )
    )


def _random_filters() -> dict[str, Any]:
    return {"query": random.choice(WORDS), "limit": random.randint(1, 100)}


def _random_search() -> Call:
    filters = _random_filters()
    body = (CALL_TEXT % json.dumps(filters)).encode()
    words = urlencode({"query": filters["query"]})
    return random.choice(
        (
            Call("search", 200, {"path": f"{SEARCH}?{urlencode(filters)}"}),
            Call("page of reviews", 200, {"path": f"/reviews?{words}"}),
            Call(
                "tool call",
                200,
                {"path": "/mcp", "method": "POST", "body": body, **JSON_TYPE},
            ),
        )
    )


def _random_refusal() -> Call:
    search = f"{SEARCH}?{urlencode(_random_filters())}"
    method = random.choice(("GET", "PUT", "DELETE"))
    return random.choice(
        (
            Call("refused search", 400, {"path": f"{search}&rating=9&x=y"}),
            Call("stray", 404, {"path": f"/{random.random()}", "method": method}),
        )
    )


# ---- The soak ----


class Look(NamedTuple):
    """The daemon without load."""

    memory_mb: int
    descriptors: int

    def has_grown_since(self, before: "Look") -> bool:
        if self.memory_mb > before.memory_mb + MOST_MORE_MB:
            return True
        return self.descriptors > before.descriptors + MOST_MORE_DESCRIPTORS


class Soak:
    """The daemon on one port, its callers, and the disturbances."""

    def __init__(self, scratch: Path):
        # By kinds of calls.
        self.expected: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self.events: Counter[str] = Counter()
        self.subscribers = Subscribers(scratch, OWN_NETWORK)
        self._scratch = scratch
        self._port = free_port()
        self._data = Path(shutil.copytree(SAMPLE, scratch / "data"))
        self._content = (self._data / "reviews.json").read_bytes()
        # How often the daemon was ended.
        self._ends = 0
        self._up = threading.Event()
        self._start()

    def _start(self) -> None:
        flags = [f"--port={self._port}", f"--data={self._data}"]
        flags += [f"--state-dir={self._scratch / 'state'}", "--reload-interval=0.2"]
        flags += [*HUB_FLAGS, *self.subscribers.flags]
        self.server = Service(daemon_command(*flags), self._port)
        self._up.set()

    def run(self, seconds: float, disturbances: tuple[str, ...]) -> None:
        """Run all callers while disturbances follow one another."""
        deadline = time.monotonic() + seconds
        with self._callers():
            while time.monotonic() < deadline:
                for disturbance in random.sample(disturbances, len(disturbances)):
                    self.disturb(disturbance)
                    time.sleep(random.random())

    @contextmanager
    def _callers(self) -> Iterator[None]:
        """All callers call while the block runs."""
        ended = threading.Event()
        actions = [*[self._call] * CALLERS, self._burden]
        threads = [threading.Thread(target=act, args=(ended,)) for act in actions]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _burden(self, ended: threading.Event) -> None:
        """Request large responses, read nothing, and disconnect at once or later."""
        while not ended.is_set():
            for kind, seconds in (("non-readers", 1), ("abandoned requests", 0)):
                self._up.wait(60)
                with suppress(OSError), connections(self._port, NON_READERS):
                    self.events[kind] += len(NON_READERS)
                    time.sleep(seconds)

    def _call(self, ended: threading.Event) -> None:
        """Send calls without a pause.

        Failures of calls during which the daemon ended do not count.
        """
        while not ended.is_set():
            call = random_call()
            self._up.wait(60)
            ends = self._ends
            problem = self._problem_of(call)
            if not problem:
                self.expected[call.kind] += 1
            elif ends == self._ends:
                self.unexpected.append(f"{call.kind}: {problem}")

    def _problem_of(self, call: Call) -> str:
        """What is wrong with the answer to a call; "" if nothing is."""
        try:
            answer = fetch(self.server, **call.arguments)
        except (OSError, HTTPException) as error:
            return repr(error)
        if answer.status == call.status:
            return ""
        return f"{answer.status} {answer.body[:200]!r}"

    # ---- Disturbances ----

    def disturb(self, disturbance: str) -> None:
        """Do what a disturbance is called. Raises LabError if the daemon has ended."""
        self.server.check()
        self.events[disturbance] += 1
        if disturbance == "SIGHUP":
            self.server.process.send_signal(signal.SIGHUP)
            return
        if disturbance == "bad file":
            self._serve_bad_file()
        if disturbance == "lost network":
            address("del")
        self._serve_new_content()
        self._change_subscription()
        if disturbance == "lost network":
            time.sleep(LOST_SECONDS)
            address("add")
        if disturbance in ("SIGKILL", "SIGTERM"):
            self._restart(disturbance)

    def _serve_bad_file(self) -> None:
        self._replace(random.choice(BAD_FILES))
        wait_for(
            "notice of a bad file",
            lambda: b'"stale"' in fetch(self.server, "/healthz").body,
        )

    def _serve_new_content(self) -> None:
        name = b'"name": "%x ' % random.getrandbits(64)
        self._replace(self._content.replace(b'"name": "', name, 1))

    def _replace(self, content: bytes) -> None:
        draft = self._data / "draft"
        draft.write_bytes(content)
        draft.rename(self._data / "reviews.json")

    def _change_subscription(self) -> None:
        mode = random.choice(("subscribe", "unsubscribe"))
        form = self.subscribers.request(mode, self._port, "steady", 48, TOPICS[0])
        answer = fetch(self.server, **form)
        self.events[f"{mode}: {answer.status}"] += 1

    def _restart(self, disturbance: str) -> None:
        # Deliveries have begun.
        time.sleep(random.random() / 2)
        self._ends += 1
        self._up.clear()
        if disturbance == "SIGKILL":
            self.server.kill()
        else:
            self.server.stop()
        self._start()

    # ---- Rest ----

    def rest(self) -> Look:
        """A look at the daemon once every living subscriber has the newest content."""
        self.disturb("good file")
        # The file is served.
        time.sleep(2)
        wait_for("newest content for everyone", self._is_nobody_behind)
        descriptors = os.listdir(f"/proc/{self.server.pid}/fd")
        return Look(round(memory_mb(self.server.pid)), len(descriptors))

    def _is_nobody_behind(self) -> bool:
        """Raises LabError if a living subscriber was removed."""
        health = json.loads(fetch(self.server, "/healthz").body)
        left = health["subscriptions"]["active"]
        if left < len(LIVING):
            raise LabError(f"{left} of {len(LIVING)} living subscribers are left")
        content = {topic: fetch(self.server, topic).body for topic in TOPICS}
        received = self.subscribers.newest
        return all(
            received[f"/{kind}/{number}"] == content[topic]
            for kind, number, topic in LIVING
        )


def address(verb: str) -> None:
    """Add the subscribers' addresses to this machine ("add"), or remove them ("del")."""
    command = ["ip", "address", verb, f"{OWN_NETWORK}1/24", "dev", "lo"]
    subprocess.run(command, check=True)


# ---- The command line ----


def main() -> int:
    """Run the command line. Returns the exit status.

    Raises LabError or OSError if it cannot continue.
    """
    parser = argparse.ArgumentParser(description="Try to wear reviewsd out.")
    how_long = "how long; default %(default)s"
    parser.add_argument("--seconds", type=float, default=600, help=how_long)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="reviewsd-soak-") as scratch, own_network():
        address("add")
        soak = Soak(Path(scratch))
        try:
            lines = list(report(soak, *phases(soak, seconds)))
        finally:
            soak.server.kill()
    print(f"## Soak\n\nBy `python tests/soak.py` on {date.today()}: {seconds:.0f} s.\n")
    print("\n".join(lines))
    return 1 if soak.unexpected else 0


def phases(soak: Soak, seconds: float) -> tuple[Look, Look, float]:
    """Run everything, one phase after the other.

    Returns two looks at rest, and the seconds of the stop.
    """
    soak.subscribers.subscribe(soak.server, [*LIVING, ("dead", 0, TOPICS[0])])
    soak.run(seconds * (1 - 2 * CALM_SHARE), WILD)
    # So that the daemon has all the memory that it needs.
    soak.run(seconds * CALM_SHARE, CALM)
    before = soak.rest()
    soak.run(seconds * CALM_SHARE, CALM)
    after = soak.rest()
    return before, after, soak.server.stop()


def report(soak: Soak, before: Look, after: Look, stop_seconds: float) -> Iterator[str]:
    """Lines about what happened; what was not expected is added to the soak's."""
    events = soak.events + soak.subscribers.events
    missing = {*WILD, "non-readers", "abandoned requests", "denials"} - events.keys()
    soak.unexpected += [f"{event} never happened" for event in missing]
    if after.has_grown_since(before):
        soak.unexpected.append("memory or descriptors have grown")
    yield f"- Answered as expected: {dict(soak.expected)}."
    yield f"- Meanwhile: {dict(events)}."
    yield f"- Without load: {_look_text(before)}; at the end {_look_text(after)}."
    yield f"- All {len(LIVING)} living subscribers have the newest content."
    yield f"- Stop: {stop_seconds:.1f} s."
    yield f"- Unexpected: {'; '.join(soak.unexpected[:20]) or 'nothing'}."


def _look_text(look: Look) -> str:
    return f"{look.memory_mb} MB, {look.descriptors} descriptors"


if __name__ == "__main__":
    sys.exit(main())
