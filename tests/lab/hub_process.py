"""A hub in a process of its own, which may be killed anywhere, or whose disk may be full.

    python -m lab.hub_process live STATE KILL_AT
    python -m lab.hub_process fill STATE

The callbacks are in the process. What happens to them, and each accepted form, is a
line of the file "diary" beside STATE, so that it survives the process.

Sections, in order: The diary - Callbacks - Kills - Stories

Sections: the diary - callbacks - kills - stories.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hub import Hub
from lab.hub_values import BASE_URL, FORM, form, query, topics
from lab.watching import wait_for
from reviewslib.websub.callback_messages import CallbackRequest, CallbackResponse
from reviewslib.websub.rows import HubSettings

# ---- The diary -----------------------------------------------------------------------


class Diary:
    """Lines in a file, which another process reads after a kill."""

    def __init__(self, path: Path):
        self._path = path
        self._path.touch()

    def add(self, line: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{line}\n")

    def lines(self) -> list[str]:
        return self._path.read_text().splitlines()


# ---- Callbacks -----------------------------------------------------------------------


def answer_of(request: CallbackRequest) -> CallbackResponse:
    """A callback that confirms everything and takes everything."""
    challenge = query(request.url).get("hub.challenge", "")
    return CallbackResponse(200, "HTTP 200", challenge.encode())


def entry_of(request: CallbackRequest) -> str:
    """What the diary says of a request: what a GET is about, or the content of a POST."""
    if request.body is not None:
        return f"got {request.body.decode()}"
    return f"asked {query(request.url)['hub.mode']}"


def settings(state: Path) -> HubSettings:
    return HubSettings(
        base_url=BASE_URL,
        state_dir=state,
        user_agent="lab/1.0",
        lease_seconds=864_000,
        lease_min=3600,
        lease_max=2_592_000,
        retry_delays=(0.1, 0.1),
        timeout=5.0,
        workers=4,
        max_subscriptions=100,
        ca_file=None,
        allow_private=False,
    )


def ask(hub: Hub, mode: str, diary: Diary) -> None:
    """Send a form until it is accepted."""
    wait_for("acceptance", lambda: hub.answer(FORM, form(mode)).status == 202)
    diary.add(f"accepted {mode}")


def at_rest(hub: Hub, active: int) -> Callable[[], bool]:
    """Whether so many are subscribed, and there is nothing to do."""
    expected = {"active": active, "pending": 0, "failing": 0, "behind": 0}

    def holds() -> bool:
        with suppress(Exception):
            hub.scheduler.keep_up()
        return hub.counts() == expected

    return holds


# ---- Kills ---------------------------------------------------------------------------


class Kills:
    """Counts the moments at which the process may be killed; kills it at one of them."""

    def __init__(self, at: int):
        self._left = at
        self._lock = threading.Lock()

    def moment(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
                # The signal is delivered when the system likes.
                time.sleep(60)


def killing_connection(kills: Kills) -> type[sqlite3.Connection]:
    """A connection that may be killed before and after each change and each commit.

    What changes nothing may end anywhere.
    """

    class Connection(sqlite3.Connection):
        changes = 0

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            is_change = arguments[0].startswith(("INSERT", "UPDATE"))
            if is_change:
                kills.moment()
            cursor = super().execute(*arguments)
            if is_change:
                kills.moment()
            return cursor

        def __exit__(self, *exception: Any) -> Any:
            has_changed = self.total_changes > self.changes
            self.changes = self.total_changes
            if has_changed:
                kills.moment()
            result = super().__exit__(*exception)
            if has_changed:
                kills.moment()
            return result

    return Connection


# ---- Stories -------------------------------------------------------------------------


def live(state: Path, kill_at: int) -> None:
    """Subscribe, and get new content twice, the second time what there was at first."""
    diary = Diary(state.parent / "diary")
    kills = Kills(kill_at)
    connect = sqlite3.connect

    def connect_to_kill(*arguments: Any, **more: Any) -> sqlite3.Connection:
        return connect(*arguments, **more, factory=killing_connection(kills))

    sqlite3.connect = connect_to_kill  # type: ignore[assignment]

    def send(request: CallbackRequest) -> CallbackResponse:
        kills.moment()
        diary.add(entry_of(request))
        kills.moment()
        return answer_of(request)

    hub = Hub(settings(state), send)
    hub.publish(topics("one"))
    hub.start()
    # An accepted form is not sent again: the hub must not have lost it.
    if "accepted subscribe" not in diary.lines():
        ask(hub, "subscribe", diary)
    for text in ("one", "two", "one"):
        hub.publish(topics(text))
        wait_for("rest", at_rest(hub, active=1))
        diary.add(f"at rest with {text}")
    hub.stop(5)


def fill(state: Path) -> None:
    """Get new content while the disk fills during a delivery, and is freed later."""
    diary = Diary(state.parent / "diary")
    # In the state directory, which is a small file system.
    ballast = state / "ballast"
    sent = threading.Semaphore(0)

    def send(request: CallbackRequest) -> CallbackResponse:
        diary.add(entry_of(request))
        if request.body == b"two":
            fill_disk(ballast)
            sent.release()
        return answer_of(request)

    hub = Hub(settings(state), send)
    hub.publish(topics("one"))
    hub.start()
    ask(hub, "subscribe", diary)
    wait_for("rest", at_rest(hub, active=1))
    hub.publish(topics("two"))
    sent.acquire()
    # Longer than a result is offered to the store again.
    time.sleep(2.5)
    diary.add(f"full {hub.answer(FORM, form('unsubscribe')).status}")
    diary.add(f"in trouble {hub.trouble() is not None}")
    # What the callback had before, in the meantime.
    hub.publish(topics("one"))
    ballast.unlink()
    wait_for("rest", at_rest(hub, active=1))
    hub.stop(5)
    diary.add("at rest with one")


def fill_disk(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def main() -> None:
    story, state, *more = sys.argv[1:]
    if story == "live":
        live(Path(state), int(more[0]))
    else:
        fill(Path(state))


if __name__ == "__main__":
    main()
