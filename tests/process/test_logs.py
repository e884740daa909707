"""Logging: never waited for, dropped records counted, in the journal with their level."""

import fcntl
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from services import ROOT

from reviewslib.process import logs
from reviewslib.process.logs import BoundedQueueHandler, DescriptorWriter


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe of 4 KiB."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    yield reader, writer
    os.close(reader)


def handler_for(descriptor: int, encoding: str = "ascii", in_journal: bool = False) -> BoundedQueueHandler:
    handler = BoundedQueueHandler()
    DescriptorWriter(handler, descriptor, encoding, in_journal).start()
    return handler


def record(text: str, *arguments: object, level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord("test", level, "", 0, text, arguments, None)


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_stalled_reader_delays_nobody_and_learns_how_much_was_dropped(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, is_blocking: bool
) -> None:
    monkeypatch.setattr(logs, "MAX_QUEUED_BYTES", 10_000)
    sent = 5000  # of some 10 bytes, 40 when they are written
    reader, writer = pipe
    os.set_blocking(writer, is_blocking)
    handler = handler_for(writer)
    for number in range(sent):
        handler.handle(record(f"number {number}"))
    handler.flush(0.01)
    received = b""

    def read() -> None:
        nonlocal received
        while b"the last" not in received:
            received += os.read(reader, 65536)

    reading = threading.Thread(target=read)
    reading.start()
    handler.flush(None)
    handler.handle(record("the last"))
    reading.join()
    lines = received.decode().splitlines()
    numbers = [int(line.rpartition(" ")[2]) for line in lines if " INFO number " in line]
    dropped = [int(count) for count in re.findall("(?m)([0-9]+) messages were dropped$", received.decode())]
    assert numbers == sorted(numbers)
    assert sum(dropped) > 0
    assert len(numbers) + sum(dropped) == sent


def test_a_reader_that_has_gone_or_a_full_disk_is_survived_and_counted(tmp_path: Path) -> None:
    reader, gone = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    file = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    for descriptor in (gone, full):
        handler = handler_for(descriptor)
        handler.handle(record("one"))
        handler.handle(record("two"))
        handler.flush(None)
        os.dup2(file, descriptor)
        handler.handle(record("three"))
        handler.flush(None)
    said = re.findall("(?m)[A-Z]+ .*$", (tmp_path / "log").read_text())
    assert said == ["INFO three", "WARNING 2 messages were dropped"] * 2


def test_a_finalizer_may_log_while_its_thread_logs(tmp_path: Path) -> None:
    class Logging:
        def __str__(self) -> str:
            handler.handle(record("by a finalizer"))
            return "by its thread"

    with (tmp_path / "log").open("wb") as file:
        handler = handler_for(file.fileno())
        thread = threading.Thread(target=lambda: handler.handle(record("%s", Logging())), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        handler.flush(None)
    said = (tmp_path / "log").read_text().splitlines()
    assert [line.rpartition(" INFO ")[2] for line in said] == ["by a finalizer", "by its thread"]


def test_a_record_that_cannot_be_formatted_raises_nothing_and_is_told(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        handler = handler_for(file.fileno())
        handler.handle(record("%d", "no number"))
        handler.flush(None)
    assert "TypeError: %d format" in (tmp_path / "log").read_text()


def test_without_memory_records_are_dropped_and_the_next_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> str:
        raise MemoryError

    with (tmp_path / "log").open("wb") as file:
        handler = handler_for(file.fileno())
        with monkeypatch.context() as patch:
            patch.setattr(logs.LineFormatter, "format", no_memory)
            handler.handle(record("one"))
            handler.flush(None)
        handler.handle(record("two"))
        handler.flush(None)
    text = (tmp_path / "log").read_text()
    assert re.fullmatch(r".* INFO two\n.* WARNING 1 messages were dropped\n", text)


LEVELS = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 3}


@pytest.mark.parametrize(("name", "priority"), LEVELS.items())
def test_in_the_journal_each_line_begins_with_its_level(tmp_path: Path, name: str, priority: int) -> None:
    with (tmp_path / "log").open("wb") as file:
        handler = handler_for(file.fileno(), "utf-8", in_journal=True)
        handler.handle(record("Zoë\nsecond\0line", level=getattr(logging, name.upper())))
        handler.flush(None)
    lines = [f"<{priority}>{name.upper()} Zoë", f"<{priority}>second\\x00line"]
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == lines


def test_what_cannot_be_shown_is_escaped(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        handler = handler_for(file.fileno())
        handler.handle(record("Zoë \udcff", level=logging.ERROR))
        handler.flush(None)
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert re.fullmatch(r"[0-9-]+ [0-9:,]+ ERROR Zo\\xeb \\udcff", line)


LOGGING = """
import logging, sys
from reviewslib.process import logs
handler = logs.start_log()
with open(sys.argv[1], "w"):
    logging.error("a message")
    handler.flush(None)
"""


@pytest.mark.parametrize(("is_named", "begins"), [(True, "<3>ERROR a message"), (False, "20")])
def test_the_journal_is_known_by_its_device_and_inode(tmp_path: Path, is_named: bool, begins: str) -> None:
    with (tmp_path / "log").open("wb") as file:
        status = os.fstat(file.fileno())
        journal = f"{status.st_dev}:{status.st_ino}" if is_named else "1:2"  # inherited, output redirected
        environ = os.environ | {"JOURNAL_STREAM": journal}
        command = [sys.executable, "-c", LOGGING, str(tmp_path / "other")]
        subprocess.run(command, stderr=file, env=environ, cwd=ROOT, timeout=60, check=True)
    assert (tmp_path / "log").read_text().startswith(begins)


def test_where_standard_error_is_closed_no_other_file_gets_the_messages(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", LOGGING, tmp_path / "other"]
    subprocess.run(command, cwd=ROOT, timeout=60, check=True)
    assert (tmp_path / "other").read_text() == ""
