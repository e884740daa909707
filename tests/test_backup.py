"""The backup of docs/server.md, made under load, brings everything back on another machine."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A machine with data and a state directory."""
    machine = tmp_path / "old"
    (machine / "srv" / "reviews").mkdir(parents=True)
    (machine / "var" / "lib" / "reviewsd").mkdir(parents=True)
    write_files(machine / "srv" / "reviews", a_file(review("a"), review("b")))
    (machine / "srv" / "reviews" / "suppressed.txt").write_text("x\n")
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


def test_a_backup_under_load_brings_everything_back(tmp_path: Path, old: Path) -> None:
    subscribers = Subscribers(tmp_path)
    data = old / "srv" / "reviews"
    state = old / "var" / "lib" / "reviewsd"
    with daemon(*subscribers.flags, data=data, state=state) as address:
        port = address.port
        before = fetch(address, links.REVIEWS_PATH).body
        subscribers.subscribe(address, [SUBSCRIBER])
        with load(address, data):
            run(BACKUP, old, tmp_path)
    new = tmp_path / "new"
    (new / "srv").mkdir(parents=True)

    run(RESTORE, new, tmp_path)

    data = new / "srv" / "reviews"
    state = new / "var" / "lib" / "private" / "reviewsd"
    with daemon(*subscribers.flags, data=data, state=state, port=port) as address:
        assert fetch(address, links.REVIEWS_PATH).body == before
        assert (data / "suppressed.txt").read_text() == "x\n"
        # Both of an import, or neither.
        assert (data / "a.txt").read_bytes() == (data / "b.txt").read_bytes()
        assert json.loads(fetch(address, links.HEALTH_PATH).body)["subscriptions"]

        files.write(data / "reviews.json", json.dumps(a_file(review("new"))).encode())

        wait_for("delivery", lambda: b'"new"' in subscribers.newest["/steady/1"])
