"""Logging blocks no thread, counts dropped records, and tells the journal the level of a record."""

import logging
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from lab.services import ROOT

from reviewslib.process.logs import BoundedQueueHandler, JournalFormatter, QueueWriter


class Stalling(StringIO):
    """A stream that blocks its writer until the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_blocking = Event()
        self.go_on = Event()

    def write(self, text: str) -> int:
        self.is_blocking.set()
        assert self.go_on.wait(30)
        return super().write(text)


def handler_for(stream: StringIO) -> BoundedQueueHandler:
    handler = BoundedQueueHandler(max_records=10)
    QueueWriter(handler.queue, logging.StreamHandler(stream)).start()
    return handler


def record(
    text: str, *arguments: object, level: int = logging.INFO
) -> logging.LogRecord:
    return logging.LogRecord("test", level, "", 0, text, arguments, None)


def test_a_stalled_reader_delays_no_thread_and_is_told_of_gaps() -> None:
    handler = handler_for(stream := Stalling())
    handler.handle(record("number %d", 0))
    assert stream.is_blocking.wait(30)
    for number in range(1, 50):
        handler.handle(record("number %d", number))
    handler.flush()
    stream.go_on.set()
    handler.flush()
    handler.handle(record("the last"))
    handler.flush()
    written = [
        f"number {number}" for number in range(11)
    ]  # one was being written, and ten waited
    notice = "39 messages before this one were dropped"
    assert stream.getvalue().splitlines() == [*written, "the last", notice]


def test_a_finalizer_may_log_while_its_thread_logs() -> None:
    class Logging:
        def __str__(self) -> str:
            handler.handle(record("by a finalizer"))
            return "by its thread"

    handler = handler_for(stream := StringIO())
    thread = Thread(target=lambda: handler.handle(record("%s", Logging())), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    handler.flush()
    assert stream.getvalue() == "by a finalizer\nby its thread\n"


@pytest.mark.parametrize(
    ("level", "priority"), [(10, 7), (20, 6), (30, 4), (40, 3), (50, 3)]
)
def test_in_the_journal_every_line_begins_with_its_level(
    level: int, priority: int
) -> None:
    text = JournalFormatter("%(message)s").format(
        record("Zoë\nsecond line", level=level)
    )
    assert text == f"<{priority}>Zoë\n<{priority}>second line"


LOGGING = """
import logging, os
from reviewslib.process import logs
handler = logs.start_log()
with open(os.devnull):
    try:
        os.stat("/no such file")
    except OSError:
        logging.exception("a message of Zo\\u00eb")
    handler.flush()
os.write(1, b"alive")
"""


def log_to(stderr: Any, *prefix: str, **environ: str) -> None:
    """Have another process log one exception; the process survives, whatever its standard error is."""
    environ = {**os.environ, "PYTHONIOENCODING": "ascii:backslashreplace", **environ}
    command = [*prefix, sys.executable, "-c", LOGGING]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environ,
        cwd=ROOT,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"alive")


@pytest.mark.parametrize(
    ("is_named", "time", "prefix"),
    [(True, "", "<3>"), (False, r"[0-9-]+ [0-9:,]+ ", "")],
)
def test_the_journal_is_recognized_by_its_device_and_inode(
    tmp_path: Path, is_named: bool, time: str, prefix: str
) -> None:
    with (tmp_path / "log").open("wb") as file:
        status = os.fstat(file.fileno())
        journal = (
            f"{status.st_dev}:{status.st_ino}" if is_named else "1:2"
        )  # inherited, output redirected
        log_to(file, JOURNAL_STREAM=journal)
    first, *_, last = (tmp_path / "log").read_text().splitlines()
    assert re.fullmatch(rf"{time}{prefix}ERROR a message of Zo\\xeb", first)
    assert (
        last
        == f"{prefix}FileNotFoundError: [Errno 2] No such file or directory: '/no such file'"
    )


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2> >(exit)"])
def test_logging_survives_any_standard_error(redirection: str) -> None:
    log_to(subprocess.DEVNULL, "bash", "-c", f'exec "$@" {redirection}', "bash")
