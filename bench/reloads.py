"""Reloads: how long until changed data are served, and how long GETs take meanwhile.

Sections: Changing data - Reloads
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from load import Client, sample
from peers import SMALL_SEARCH, Server, our_service
from plan import Plan, data_directory

# ---- Changing data ----

OTHERWISE_NEVER = ("--reload-interval", "86400")  # seconds: only SIGHUP makes the service look


class ChangingData:
    """A copy of a data directory, whose newest review can be made to say something else."""

    def __init__(self, original: Path, copy: Path):
        shutil.copytree(original, copy)
        self.directory = copy
        self._file = copy / "reviews.json"
        self._document = json.loads(self._file.read_bytes())
        self._newest = max(self._document["reviews"], key=lambda review: (review["date"], review["id"]))
        self._changes = 0

    def prepare(self) -> Path:
        """Write the next change beside the file that it is to replace."""
        self._changes += 1
        self._newest["text"] = f"Changed for the {self._changes}. time."
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps(self._document, ensure_ascii=False), encoding="utf-8")
        return draft

    def change(self, draft: Path, server: Server) -> float:
        """Put the change in place and tell the server; the moment of that (time.monotonic)."""
        os.replace(draft, self._file)
        os.kill(server.pid, signal.SIGHUP)
        return time.monotonic()


# ---- Reloads ----

QUIET_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Reload:
    """The reloads of one data set: one figure of each list a reload."""

    size: int
    seconds: list[float] = field(default_factory=list)  # from SIGHUP to the first answer with the change
    latencies: list[list[float]] = field(default_factory=list)  # seconds of each GET meanwhile
    quiet: list[list[float]] = field(default_factory=list)  # and of each for a second before
    peak_bytes: list[int] = field(default_factory=list)  # of memory so far, after each


def measure_reloads(plan: Plan, size: int) -> Reload:
    """Change one review, again and again, while one client asks for it."""
    plan.say(f"{size} reviews, reloads")
    data = ChangingData(data_directory(plan, size), plan.scratch / f"changing-{size}")
    result = Reload(size)
    with our_service(plan.environment, data.directory, plan.scratch, *OTHERWISE_NEVER) as server:
        for _ in range(plan.rounds_with(size)):
            _reload_once(data, server, result)
    shutil.rmtree(data.directory)
    return result


def _reload_once(data: ChangingData, server: Server, result: Reload) -> None:
    draft = data.prepare()
    with Client(server.port) as client:
        before = client.send(SMALL_SEARCH).body
        quiet_until = time.monotonic() + QUIET_SECONDS
        result.quiet.append(sample(client, SMALL_SEARCH, lambda reply: time.monotonic() > quiet_until))
        started = data.change(draft, server)
        result.latencies.append(sample(client, SMALL_SEARCH, lambda reply: reply.body != before))
        result.seconds.append(time.monotonic() - started)
    result.peak_bytes.append(server.memory().peak_bytes)
