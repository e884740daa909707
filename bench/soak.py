"""The soak: everything at once for ten minutes, then a look at what is left of the service.

    python bench/soak.py                ten minutes; puts its section into bench/RESULTS.md
    python bench/soak.py --seconds 30   a short one, as the tests run it; writes nothing

Callers and subscribers work without a pause while data files are replaced, by good ones and by bad ones, and
the daemon is killed and started again. Afterwards nothing unexpected may have been answered, memory and
descriptors may not have grown, and every living subscriber must have the newest content; else the exit status
is 1. Needs Linux, openssl, and a Python with the service's dependencies.
"""

import argparse
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.parse import urlencode

from servers import BENCH, MCP_HEADERS, PROJECT, BenchError, Lab, Server, ask, free_port, wait_for
from subscribers import Subscribers

RESULTS = BENCH / "RESULTS.md"
HEADING = "\n## Soak\n"
CALLERS = 7
TOPICS = ("/feed.xml", "/api/feed.json", "/reviews.json")
LIVING = [(kind, number) for kind in ("steady", "slow", "flaky") for number in range(6)]
BAD_FILES = (b" ", b"{", b'{"reviews": [{"rating": 9}]}', b"\xff\xfe")
CALM, WILD = ("good file", "good file", "bad file", "SIGHUP"), ("good file", "bad file", "SIGHUP", "SIGKILL")
CALM_SHARE = 0.3  # of the time, twice: without kills
MOST_GROWTH_MB, MOST_GROWTH_DESCRIPTORS = 16, 8
WORDS = ("back", "pain", "neck", "great", "massage", "wait", "the", "Tobias", "zzz", "é", "")
TOOLS = {"search_reviews": {"query": "back"}, "get_business": {}, "get_technician": {"name": "nobody"}}

Call = tuple[str, tuple[int, ...], dict[str, Any]]  # a kind, the right statuses, arguments of `servers.ask`


def random_call() -> Call:
    """What a caller does."""
    fixed = {"path": random.choice((*TOPICS, "/insights.json", "/", "/llms.txt"))}
    limits = {"min_rating": random.randint(1, 5), "limit": random.randint(1, 100)}
    search = f"/api/reviews/search?{urlencode({'query': random.choice(WORDS), **limits})}"
    name, arguments = random.choice(list(TOOLS.items()))
    tool = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    calls: list[Call] = [
        ("read", (200,), fixed),
        ("read", (200,), {**fixed, "headers": {"Accept-Encoding": "gzip"}}),
        ("conditional read", (304,), {**fixed, "headers": {"If-None-Match": "*"}}),
        ("search", (200,), {"path": search}),
        ("refused search", (400,), {"path": f"{search}&rating=9&x=y"}),
        ("since", (200,), {"path": f"/api/reviews/since/202{random.randint(2, 6)}-01-31"}),
        ("stray", (404,), {"path": f"/{random.random()}", "method": random.choice(("GET", "PUT", "DELETE"))}),
        ("tool call", (200,), {"path": "/mcp", "body": json.dumps(tool).encode(), "headers": MCP_HEADERS}),
    ]
    return random.choice(calls)


class Soak:
    """The daemon on one port, which may be killed, and everything that happens to it."""

    def __init__(self, scratch: Path, subscribers: Subscribers):
        self.answers: list[tuple[str, float]] = []  # kind and seconds of each that was right
        self.unexpected: list[str] = []
        self.events: Counter[str] = Counter()
        self._subscribers, self.port, self._kills = subscribers, free_port(), 0
        self._lab = Lab(PROJECT, sys.executable, scratch, scratch)
        self._data = self._lab.data(0)
        self._content = (self._data / "reviews.json").read_bytes()
        self._up = threading.Event()
        self.server = self._start()

    def _start(self) -> Server:
        flags = ["--reload-interval", "0.2", "--hub-retry-delays", "0.5,1", "--hub-timeout", "5"]
        server = self._lab.daemon(self._data, *flags, *self._subscribers.flags, port=self.port)
        self._up.set()
        return server

    def run(self, seconds: float, disturbances: tuple[str, ...]) -> None:
        """All callers at work while one disturbance follows the other."""
        ended, deadline = threading.Event(), time.monotonic() + seconds
        makers = [random_call] * CALLERS + [self._come_or_go]
        threads = [threading.Thread(target=self._call, args=(ended, make)) for make in makers]
        for thread in threads:
            thread.start()
        try:
            while time.monotonic() < deadline:
                self._disturb(random.choice(disturbances))
                time.sleep(random.random())
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _call(self, ended: threading.Event, make: Callable[[], Call]) -> None:
        """Call again and again. What a kill of the daemon breaks counts for nothing."""
        while not ended.is_set():
            kind, right, arguments = make()
            self._up.wait(60)
            kills, problem = self._kills, ""
            try:
                answer = ask(**{"port": self.port, **arguments})
                if answer.status in right:
                    self.answers.append((kind, answer.seconds))
                else:
                    problem = f"{answer.status} {answer.body[:200]!r}"
            except (OSError, http.client.HTTPException) as error:
                problem = repr(error)
            if problem and kills == self._kills:
                self.unexpected.append(f"{kind}: {problem}")

    def _come_or_go(self) -> Call:
        """A passing subscriber. 404: it has none; 429: too much of this host; 503: no store yet."""
        time.sleep(1.5)  # more often, and the hub would rightly refuse most
        mode = random.choice(("subscribe", "unsubscribe"))
        request = self._subscribers.request(self.port, "steady", 48, TOPICS[0], mode)
        return "hub request", (202, 404, 429, 503), request

    def _disturb(self, disturbance: str) -> None:
        if self.server.process.poll() is not None:
            raise self.server.fault("died")
        self.events[disturbance] += 1
        if disturbance == "SIGHUP":
            self.server.process.send_signal(signal.SIGHUP)
            return
        if disturbance == "bad file":
            self._replace(random.choice(BAD_FILES))
            wait_for("notice of a bad file", lambda: b'"stale"' in ask(self.port, "/healthz").body)
        self._replace(self._content.replace(b'"name": "', b'"name": "%x ' % random.getrandbits(64), 1))
        if disturbance == "bad file":
            wait_for("notice of a good file", lambda: b'"stale"' not in ask(self.port, "/healthz").body)
        if disturbance == "SIGKILL":
            time.sleep(random.random() / 2)
            self._kills += 1
            self._up.clear()
            self.server.kill()
            self._subscribers.hub_died()
            self.server = self._start()

    def _replace(self, content: bytes) -> None:
        (self._data / "draft").write_bytes(content)
        (self._data / "draft").rename(self._data / "reviews.json")

    def rest(self) -> tuple[float, int]:
        """Memory in MB and descriptors without load, once every living subscriber has the newest content."""
        self._disturb("good file")
        time.sleep(2)

        def nobody_is_behind() -> bool:
            newest, taken = [ask(self.port, topic).body for topic in TOPICS], self._subscribers.newest
            return all(taken[f"/{kind}/{number}"] == newest[number % 3] for kind, number in LIVING)

        wait_for("newest content for everyone", nobody_is_behind)
        return self.server.memory_mb(), len(os.listdir(f"/proc/{self.server.process.pid}/fd"))


def soak(seconds: float, scratch: Path) -> tuple[list[str], list[str]]:
    """What happened, in sentences, and what is wrong. Raises BenchError or OSError when it cannot go on."""
    with Subscribers(scratch) as subscribers:
        course = Soak(scratch, subscribers)
        try:
            wanted = [(kind, number, TOPICS[number % 3]) for kind, number in [*LIVING, ("dead", 0)]]
            subscribers.subscribe(course.port, wanted)
            course.run(seconds * (1 - 2 * CALM_SHARE), WILD)
            course.run(seconds * CALM_SHARE, CALM)  # until it has the memory that it needs
            before = course.rest()
            course.run(seconds * CALM_SHARE, CALM)
            after = course.rest()
            course.server.stop()
        finally:
            course.server.kill()
    wrong = list(course.unexpected)
    if after[0] - before[0] > MOST_GROWTH_MB or after[1] - before[1] > MOST_GROWTH_DESCRIPTORS:
        wrong.append("memory or descriptors have grown")
    if not subscribers.events["denials"]:
        wrong.append("the dead subscriber was never removed")
    cuts = quantiles([1000 * seconds for _, seconds in course.answers], n=100)
    events = [Counter(kind for kind, _ in course.answers), course.events + subscribers.events]
    happened, meanwhile = (", ".join(f"{n:,} x {what}" for what, n in each.most_common()) for each in events)
    return [
        f"Answered as expected: {happened}.",
        f"Meanwhile: {meanwhile}.",
        f"Latency on this crowded machine: {cuts[49]:.1f} ms at p50, {cuts[98]:.1f} ms at p99.",
        f"Memory without load: {before[0]:.1f} MB, and {after[0]:.1f} MB after the last part.",
        f"Descriptors without load: {before[1]}, and {after[1]} after the last part.",
        f"All {len(LIVING)} living subscribers have the newest content.",
    ], wrong


def main() -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description="Try to wear reviewsd out.")
    parser.add_argument("--seconds", type=float, default=600, help="how long; default %(default)s")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="reviewsd-soak-") as scratch:
        try:
            happened, wrong = soak(seconds, Path(scratch))
        except (BenchError, OSError, http.client.HTTPException) as error:
            happened, wrong = [], [repr(error)]
    happened.append(f"Unexpected: {'; '.join(wrong[:20]) or 'nothing'}.")
    title = f"By `python bench/soak.py` on {date.today()}: {seconds:.0f} seconds, 40% of them with kills.\n"
    text = "\n".join(["", title, *(f"- {sentence}" for sentence in happened), ""])
    print(text)
    if seconds >= 600:
        others = RESULTS.read_text(encoding="utf-8").partition(HEADING)[0]
        RESULTS.write_text(others + HEADING + text, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
