"""The soak test: load and disturbances for ten minutes, then checks of the service at rest.

    python tests/soak.py >> bench/RESULTS.md   ten minutes
    python tests/soak.py --seconds 4           a short one, as the tests run it

Clients call without a pause; other clients request large responses and read nothing, or leave at once.
Meanwhile good and bad data files replace the current ones, the daemon is stopped or killed and started again,
and the subscribers lose their network for a while. The exit status is 1 if a response was not as expected,
memory or descriptors have grown, or a living subscriber does not have the newest content.

Needs root and `ip`: everything runs in a network of its own, from which addresses can be removed.
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
from contextlib import suppress
from datetime import date
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from lab.attack_lab import CALL_TEXT, WHOLE_CALL, WHOLE_GET, connections
from lab.proxy_lab import JSON_TYPE
from lab.services import SAMPLE, Service, daemon_command, fetch, free_port
from lab.subscribers import Subscribers
from lab.tools import own_network
from lab.watching import LabError, memory_mb, wait_for

TOPICS = ("/feed.xml", "/api/feed.json", "/reviews.json")
LIVING = [
    (kind, number, TOPICS[number % 3])
    for kind in ("steady", "slow", "flaky")
    for number in range(6)
]
BAD_FILES = (b" ", b"{", b'{"reviews": [{"rating": 9}]}', b"\xff\xfe")
CALM = ("good file", "good file", "bad file", "SIGHUP")
WILD = ("good file", "bad file", "SIGHUP", "SIGKILL", "SIGTERM", "lost network")
CALM_SHARE = (
    0.3  # the share of the time for one of the two phases with CALM disturbances
)
NON_READERS = [
    WHOLE_GET,
    WHOLE_CALL,
] * 40  # few enough that the service refuses no request
OWN_NETWORK = "198.51.100."  # for documentation (RFC 5737)
LOST_SECONDS = (
    3  # longer than all attempts of the hub to reach a subscriber that is down
)
HUB_FLAGS = ("--hub-retry-delays=0.5,1", "--hub-timeout=5")
WORDS = (
    "back",
    "pain",
    "neck",
    "great",
    "massage",
    "wait",
    "the",
    "Tobias",
    "zzz",
    "é",
    "",
)


def random_call() -> tuple[str, int, dict[str, Any]]:
    """A random call: its kind, the expected status, and the arguments of `services.fetch`."""
    path = random.choice(
        (*TOPICS, "/insights.json", "/", "/reviews", "/sitemap.xml", "/llms.txt")
    )
    filters = {"query": random.choice(WORDS), "limit": random.randint(1, 100)}
    search = (
        f"/api/reviews/search?{urlencode(filters)}&min_rating={random.randint(1, 5)}"
    )
    body = (CALL_TEXT % json.dumps(filters)).encode()
    calls: list[tuple[str, int, dict[str, Any]]] = [
        (
            "read",
            200,
            {"path": path, "accept_encoding": random.choice(("gzip", "identity"))},
        ),
        ("conditional read", 304, {"path": path, "if_none_match": "*"}),
        ("search", 200, {"path": search}),
        (
            "page of reviews",
            200,
            {"path": f"/reviews?{urlencode({'query': random.choice(WORDS)})}"},
        ),
        ("refused search", 400, {"path": f"{search}&rating=9&x=y"}),
        ("since", 200, {"path": f"/api/reviews/since/202{random.randint(2, 6)}-01-31"}),
        (
            "stray",
            404,
            {
                "path": f"/{random.random()}",
                "method": random.choice(("GET", "PUT", "DELETE")),
            },
        ),
        (
            "tool call",
            200,
            {"path": "/mcp", "method": "POST", "body": body, **JSON_TYPE},
        ),
    ]
    return random.choice(calls)


class Soak:
    """The daemon on one port, its callers, and the disturbances."""

    def __init__(self, scratch: Path):
        self.expected: Counter[str] = Counter()  # kinds of calls
        self.unexpected: list[str] = []
        self.events: Counter[str] = Counter()
        self.subscribers = Subscribers(scratch, OWN_NETWORK)
        self._scratch = scratch
        self._port = free_port()
        self._ends = 0
        self._data = Path(shutil.copytree(SAMPLE, scratch / "data"))
        self._content = (self._data / "reviews.json").read_bytes()
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
        ended = threading.Event()
        deadline = time.monotonic() + seconds
        threads = [
            threading.Thread(target=act, args=(ended,))
            for act in (*[self._call] * 8, self._burden)
        ]
        for thread in threads:
            thread.start()
        try:
            while time.monotonic() < deadline:
                for disturbance in random.sample(disturbances, len(disturbances)):
                    self.disturb(disturbance)
                    time.sleep(random.random())
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _burden(self, ended: threading.Event) -> None:
        """Request large responses, read nothing, and disconnect at once or after a while."""
        while not ended.is_set():
            for kind, seconds in (("non-readers", 1), ("abandoned requests", 0)):
                self._up.wait(60)
                with suppress(OSError), connections(self._port, NON_READERS):
                    self.events[kind] += len(NON_READERS)
                    time.sleep(seconds)

    def _call(self, ended: threading.Event) -> None:
        """Send calls without a pause. Failures of calls during which the daemon ended do not count."""
        while not ended.is_set():
            kind, expected, arguments = random_call()
            self._up.wait(60)
            ends = self._ends
            try:
                answer = fetch(self.server, **arguments)
                problem = (
                    ""
                    if answer.status == expected
                    else f"{answer.status} {answer.body[:200]!r}"
                )
            except (OSError, HTTPException) as error:
                problem = repr(error)
            self.expected[kind] += not problem
            if problem and ends == self._ends:
                self.unexpected.append(f"{kind}: {problem}")

    def disturb(self, disturbance: str) -> None:
        """Replace the file, after most disturbances, and change a subscription. Raises LabError."""
        self.server.check()
        self.events[disturbance] += 1
        if disturbance == "SIGHUP":
            self.server.process.send_signal(signal.SIGHUP)
            return
        if disturbance == "bad file":
            self._replace(random.choice(BAD_FILES))
            wait_for(
                "notice of a bad file",
                lambda: b'"stale"' in fetch(self.server, "/healthz").body,
            )
        if disturbance == "lost network":
            address("del")
        self._replace(
            self._content.replace(
                b'"name": "', b'"name": "%x ' % random.getrandbits(64), 1
            )
        )
        mode = random.choice(("subscribe", "unsubscribe"))
        answer = fetch(
            self.server,
            **self.subscribers.request(mode, self._port, "steady", 48, TOPICS[0]),
        )
        self.events[f"{mode}: {answer.status}"] += 1
        if disturbance == "lost network":
            time.sleep(LOST_SECONDS)
            address("add")
        if disturbance in ("SIGKILL", "SIGTERM"):
            time.sleep(random.random() / 2)
            self._ends += 1
            self._up.clear()
            if disturbance == "SIGKILL":
                self.server.kill()
            else:
                self.server.stop()
            self._start()

    def _replace(self, content: bytes) -> None:
        (self._data / "draft").write_bytes(content)
        (self._data / "draft").rename(self._data / "reviews.json")

    def rest(self) -> tuple[int, int]:
        """Memory in MB and descriptors without load, once every living subscriber has the newest content."""
        self.disturb("good file")
        time.sleep(2)

        def nobody_is_behind() -> bool:
            left = json.loads(fetch(self.server, "/healthz").body)["subscriptions"][
                "active"
            ]
            if left < len(LIVING):
                raise LabError(f"{left} of {len(LIVING)} living subscribers are left")
            content = {topic: fetch(self.server, topic).body for topic in TOPICS}
            received = self.subscribers.newest
            return all(
                received[f"/{kind}/{number}"] == content[topic]
                for kind, number, topic in LIVING
            )

        wait_for("newest content for everyone", nobody_is_behind)
        return round(memory_mb(self.server.pid)), len(
            os.listdir(f"/proc/{self.server.pid}/fd")
        )


def address(verb: str) -> None:
    """Add the subscribers' addresses to this machine ("add"), or remove them ("del")."""
    subprocess.run(
        ["ip", "address", verb, f"{OWN_NETWORK}1/24", "dev", "lo"], check=True
    )


def main() -> int:
    """Run the command line. Returns the exit status. Raises LabError or OSError if it cannot continue."""
    parser = argparse.ArgumentParser(description="Try to wear reviewsd out.")
    parser.add_argument(
        "--seconds", type=float, default=600, help="how long; default %(default)s"
    )
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="reviewsd-soak-") as scratch, own_network():
        address("add")
        soak = Soak(Path(scratch))
        try:
            soak.subscribers.subscribe(soak.server, [*LIVING, ("dead", 0, TOPICS[0])])
            soak.run(seconds * (1 - 2 * CALM_SHARE), WILD)
            soak.run(
                seconds * CALM_SHARE, CALM
            )  # so that the daemon has all the memory that it needs
            before = soak.rest()
            soak.run(seconds * CALM_SHARE, CALM)
            after = soak.rest()
            stop_seconds = soak.server.stop()
        finally:
            soak.server.kill()
    events = soak.events + soak.subscribers.events
    missing = {*WILD, "non-readers", "abandoned requests", "denials"} - events.keys()
    soak.unexpected += [f"{event} never happened" for event in missing]
    if after[0] > before[0] + 16 or after[1] > before[1] + 8:
        soak.unexpected.append("memory or descriptors have grown")
    print(
        f"## Soak\n\nBy `python tests/soak.py` on {date.today()}: {seconds:.0f} seconds.\n"
    )
    print(
        f"- Answered as expected: {dict(soak.expected)}.\n- Meanwhile: {dict(events)}."
    )
    print(
        f"- Memory in MB and descriptors without load: {before}, and {after} at the end."
    )
    print(
        f"- All {len(LIVING)} living subscribers have the newest content. Stop: {stop_seconds:.1f} s."
    )
    print(f"- Unexpected: {'; '.join(soak.unexpected[:20]) or 'nothing'}.")
    return 1 if soak.unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
