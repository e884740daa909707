"""Logging blocks no thread and counts what it drops; the journal is told levels.

Sections: streams - no thread waits - the journal - any standard error.
"""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from lab.services import ROOT

from reviewslib.process.logs import BoundedQueueHandler, JournalFormatter, QueueWriter

# ---- Streams ----


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


MAX_RECORDS = 10


def handler_for(stream: StringIO) -> BoundedQueueHandler:
    handler = BoundedQueueHandler(MAX_RECORDS)
    QueueWriter(handler.queue, logging.StreamHandler(stream)).start()
    return handler


def record(
    text: str, *arguments: object, level: int = logging.INFO
) -> logging.LogRecord:
    return logging.LogRecord("test", level, "", 0, text, arguments, None)


# ---- No thread waits ----


@pytest.fixture
def stalled() -> Iterator[tuple[BoundedQueueHandler, Stalling]]:
    """A handler whose stream blocks: one record is being written, and ten wait."""
    stream = Stalling()
    handler = handler_for(stream)
    handler.handle(record("number %d", 0))
    assert stream.is_blocking.wait(30)
    for number in range(1, MAX_RECORDS + 1):
        handler.handle(record("number %d", number))
    yield handler, stream
    stream.go_on.set()


def written_after_all(handler: BoundedQueueHandler, stream: Stalling) -> list[str]:
    """The lines of a stream that goes on, and to which one more record is written."""
    stream.go_on.set()
    handler.flush()
    handler.handle(record("the last"))
    handler.flush()
    return stream.getvalue().splitlines()


def test_a_stalled_reader_delays_no_thread(
    stalled: tuple[BoundedQueueHandler, Stalling],
) -> None:
    handler, stream = stalled

    handler.handle(record("does not fit"))
    handler.flush()

    assert stream.getvalue() == ""


def test_what_fits_is_written_when_the_reader_goes_on(
    stalled: tuple[BoundedQueueHandler, Stalling],
) -> None:
    handler, stream = stalled

    *lines, last = written_after_all(handler, stream)

    assert lines == [f"number {number}" for number in range(MAX_RECORDS + 1)]
    assert last == "the last"


def test_the_reader_is_told_how_many_messages_are_missing(
    stalled: tuple[BoundedQueueHandler, Stalling],
) -> None:
    handler, stream = stalled
    for _ in range(39):
        handler.handle(record("does not fit"))

    lines = written_after_all(handler, stream)

    assert lines[-1] == "39 messages before this one were dropped"
    assert "does not fit" not in lines


def test_a_finalizer_may_log_while_its_thread_logs() -> None:
    class Logging:
        def __str__(self) -> str:
            handler.handle(record("by a finalizer"))
            return "by its thread"

    stream = StringIO()
    handler = handler_for(stream)

    thread = Thread(target=handler.handle, args=[record("%s", Logging())], daemon=True)
    thread.start()
    thread.join(10)

    assert not thread.is_alive()
    handler.flush()
    assert stream.getvalue() == "by a finalizer\nby its thread\n"


# ---- The journal ----


# sd-daemon(3)
@pytest.mark.parametrize(
    ("level", "priority"),
    [
        pytest.param(logging.DEBUG, 7, id="debug"),
        pytest.param(logging.INFO, 6, id="info"),
        pytest.param(logging.WARNING, 4, id="warning"),
        pytest.param(logging.ERROR, 3, id="error"),
        pytest.param(logging.CRITICAL, 3, id="critical"),
    ],
)
def test_in_the_journal_every_line_begins_with_its_level(
    level: int, priority: int
) -> None:
    formatter = JournalFormatter("%(message)s")

    text = formatter.format(record("Zoë\nsecond line", level=level))

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
os._exit(0)  # as the daemon ends: what is left in a buffer fails no more
"""


def log_to(stderr: Any, *prefix: str, **environ: str) -> None:
    """Have another process log an exception; it survives, whatever its standard error."""
    encoding = {"PYTHONIOENCODING": "ascii:backslashreplace"}
    done = subprocess.run(
        [*prefix, sys.executable, "-c", LOGGING],
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=os.environ | encoding | environ,
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stdout == b"alive"


def first_and_last_line(file: Path, journal: str) -> tuple[str, str]:
    """Of a log with an exception, whose writer is told what the journal is."""
    with file.open("ab") as opened:
        log_to(opened, JOURNAL_STREAM=journal)
    first, *_, last = file.read_text().splitlines()
    return first, last


ERROR = r"ERROR a message of Zo\\xeb"
CAUSE = "FileNotFoundError: [Errno 2] No such file or directory: '/no such file'"


def test_the_journal_is_recognized_by_its_device_and_inode(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.touch()
    status = file.stat()

    first, last = first_and_last_line(file, f"{status.st_dev}:{status.st_ino}")

    assert re.fullmatch(f"<3>{ERROR}", first)
    assert last == f"<3>{CAUSE}"


def test_output_that_is_redirected_is_no_journal(tmp_path: Path) -> None:
    first, last = first_and_last_line(tmp_path / "log", "1:2")

    assert re.fullmatch(f"[0-9-]+ [0-9:,]+ {ERROR}", first)
    assert last == CAUSE


# ---- Any standard error ----


@pytest.mark.parametrize(
    "redirection",
    [
        pytest.param("2>/dev/full", id="full"),
        pytest.param("2>&-", id="closed"),
        pytest.param("2> >(exit)", id="nobody reads"),
    ],
)
def test_logging_survives_any_standard_error(redirection: str) -> None:
    log_to(subprocess.DEVNULL, "bash", "-c", f'exec "$@" {redirection}', "bash")
