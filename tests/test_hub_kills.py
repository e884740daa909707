"""A hub that is killed at any instruction that matters, or whose disk is full, loses nothing.

The process is `lab.hub_process`; what happens to its callbacks stands in its diary.
"""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import NamedTuple

import pytest
from lab.services import ROOT
from lab.tools import needs, on_a_small_disk

pytestmark = pytest.mark.slow


def hub_process(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lab.hub_process", *arguments]


def run(command: list[str]) -> int:
    """The status of a process of a hub with its callbacks."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}"}
    return subprocess.run(command, env=environment, stderr=PIPE).returncode


class Rest(NamedTuple):
    """The hub has nothing to do: the topic's content, and what the callback has."""

    content: str
    received: str


def rests(diary: Path) -> list[Rest]:
    """Each time that the hub was at rest."""
    found = []
    # What the callback has read before it subscribed.
    received = "one"
    for line in diary.read_text().splitlines():
        if line.startswith("got "):
            received = line.removeprefix("got ")
        if line.startswith("at rest with "):
            found.append(Rest(line.removeprefix("at rest with "), received))
    return found


# What the process says when there is no such moment left.
ENDED_BY_ITSELF = 0
# Of a life in which content changes twice.
FEWEST_MOMENTS = 15


def test_a_kill_at_any_instruction_that_matters_loses_nothing(tmp_path: Path) -> None:
    moments = 0
    for kill_at in itertools.count(1):
        # given a hub that is killed before or after a change, a commit or an exchange
        directory = tmp_path / str(kill_at)
        directory.mkdir()
        state = str(directory / "state")
        status = run(hub_process("live", state, str(kill_at)))
        if status != -signal.SIGKILL:
            break
        moments += 1

        # when it starts again, with the content that was the first
        assert run(hub_process("live", state, "0")) == 0

        # then what it has accepted is confirmed, and the callback has what there is
        found = rests(directory / "diary")
        assert len(found) >= 3
        assert [rest for rest in found if rest.received != rest.content] == []
    assert status == ENDED_BY_ITSELF
    assert moments > FEWEST_MOMENTS


def test_a_full_disk_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    needs("a file system of its own")

    # given a hub whose disk fills in the middle of a delivery
    state = tmp_path / "state"
    state.mkdir()

    # when it is full for seconds, and the content is then what it was at first
    assert run(on_a_small_disk(state, hub_process("fill", str(state)))) == 0

    # then forms are refused meanwhile, and each content was sent once
    assert (tmp_path / "diary").read_text().splitlines() == [
        "accepted subscribe",
        "asked subscribe",
        "got two",
        "full 503",
        "in trouble True",
        "got one",
        "at rest with one",
    ]
