"""The backup of docs/server.md, made under load, brings everything back on another machine."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from lab.data_sets import write_files
from lab.services import ROOT, Service, daemon, fetch
from lab.small_files import a_file, review
from lab.subscribers import Subscribers
from lab.watching import wait_for

from reviewslib import files, links

pytestmark = pytest.mark.slow

SUBSCRIBER = ("steady", 1, links.REVIEWS_PATH)
SERVER_DOCS = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")


def commands_with(part: str) -> str:
    """The block of commands that has this part."""
    blocks = re.findall(r"```sh\n(.*?)```", SERVER_DOCS, re.DOTALL)
    (block,) = [block for block in blocks if part in block]
    return block


BACKUP = commands_with("tar -C /srv -czf")
RESTORE = commands_with("tar -C /srv -xzf")


def run(commands: str, machine: Path, carried: Path) -> None:
    """Commands of the document, with the directories of a machine, in the folder carried."""
    script = commands.replace("sudo ", "")
    script = script.replace("/opt/reviewsd/bin/python", "python3")
    for directory in ("/srv", "/var/lib"):
        script = script.replace(directory, f"{machine}{directory}")
    subprocess.run(["bash", "-ec", script], cwd=carried, check=True, timeout=60)


def old_machine(root: Path) -> Path:
    """A machine with data and a state directory."""
    machine = root / "old"
    data = machine / "srv" / "reviews"
    data.mkdir(parents=True)
    (machine / "var" / "lib" / "reviewsd").mkdir(parents=True)
    write_files(data, a_file(review("a"), review("b")))
    (data / "suppressed.txt").write_text("x\n")
    return machine


@contextmanager
def load(address: Service, data: Path) -> Iterator[None]:
    """Somebody reads without a pause, and imports replace a file under their lock."""
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            fetch(address, links.REVIEWS_PATH)

    def replace() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            with files.locked(data, is_dry=False, waits=True):
                files.write(data / "a.txt", b"%d" % number)
                files.write(data / "b.txt", b"%d" % number)

    threads = [threading.Thread(target=work) for work in (read, replace)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


class Restored(NamedTuple):
    """The service on a new machine, after a restore."""

    data: Path
    subscribers: Subscribers
    # What the old machine served, and then the new one.
    before: bytes
    after: bytes


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restored]:
    """A backup that was made under load, on another machine."""
    carried = tmp_path_factory.mktemp("carried")
    subscribers = Subscribers(carried)
    # The old machine.
    old = old_machine(carried)
    data = old / "srv" / "reviews"
    state = old / "var" / "lib" / "reviewsd"
    with daemon(*subscribers.flags, data=data, state=state) as service:
        port = service.port
        before = fetch(service, links.REVIEWS_PATH).body
        subscribers.subscribe(service, [SUBSCRIBER])
        with load(service, data):
            run(BACKUP, old, carried)
    # The new one.
    new = carried / "new"
    (new / "srv").mkdir(parents=True)
    run(RESTORE, new, carried)
    data = new / "srv" / "reviews"
    state = new / "var" / "lib" / "private" / "reviewsd"
    with daemon(*subscribers.flags, data=data, state=state, port=port) as service:
        after = fetch(service, links.REVIEWS_PATH).body
        yield Restored(data, subscribers, before, after)


def test_the_reviews_are_those_of_the_old_machine(restored: Restored) -> None:
    assert restored.after == restored.before


def test_what_was_removed_for_good_stays_removed(restored: Restored) -> None:
    assert (restored.data / "suppressed.txt").read_text() == "x\n"


def test_an_import_that_was_under_way_is_there_whole_or_not_at_all(
    restored: Restored,
) -> None:
    first = (restored.data / "a.txt").read_bytes()

    assert (restored.data / "b.txt").read_bytes() == first


def test_a_subscriber_hears_of_the_next_change(restored: Restored) -> None:
    content = json.dumps(a_file(review("new"))).encode()

    files.write(restored.data / "reviews.json", content)

    newest = restored.subscribers.newest
    wait_for("delivery", lambda: b'"new"' in newest["/steady/1"])
