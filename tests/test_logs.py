"""Messages on standard error: never waited for, lost ones counted, in the journal with their priority."""

import fcntl
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from services import ROOT

import logs


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe of 4 KiB."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    yield reader, writer
    os.close(reader)


def record(text: str, *arguments: object, level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord("test", level, "", 0, text, arguments, None)


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_stalled_reader_delays_nobody_and_learns_how_much_was_lost(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, is_blocking: bool
) -> None:
    monkeypatch.setattr(logs, "MOST_WAITING_BYTES", 10_000)
    sent = 5000  # of some 40 bytes
    reader, writer = pipe
    os.set_blocking(writer, is_blocking)
    queue = logs.MessageQueue(writer, "ascii", "")
    for number in range(sent):
        queue.handle(record(f"number {number}"))
    queue.flush(0.01)
    received = b""

    def read() -> None:
        nonlocal received
        while b"the last" not in received:
            received += os.read(reader, 65536)

    reading = threading.Thread(target=read)
    reading.start()
    queue.flush(None)
    queue.write("the last\n")
    reading.join()
    lines = received.decode().splitlines()
    numbers = [int(line.rpartition(" ")[2]) for line in lines if " INFO number " in line]
    lost = [int(found[1]) for line in lines if (found := re.fullmatch("([0-9]+) messages were lost", line))]
    assert numbers == sorted(numbers)
    assert sum(lost) > 0
    assert len(numbers) + sum(lost) == sent


def test_a_reader_that_has_gone_or_a_full_disk_is_survived_and_counted(tmp_path: Path) -> None:
    reader, gone = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    file = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    for descriptor in (gone, full):
        queue = logs.MessageQueue(descriptor, "ascii", "")
        queue.write("one\ntwo\n")
        queue.flush(None)
        os.dup2(file, descriptor)
        queue.write("three\n")
        queue.flush(None)
    assert (tmp_path / "log").read_text() == "three\n2 messages were lost\n" * 2


def test_a_finalizer_that_logs_in_the_middle_of_a_write_waits_for_no_other_thread(tmp_path: Path) -> None:
    formatting = threading.Event()

    class Formatted:
        def __str__(self) -> str:
            formatting.set()
            return "by another thread"

    class WithFinalizer(str):
        def __radd__(self, begun: str) -> str:  # runs while `write` holds what it guards
            other.start()
            formatting.wait(0.2)
            queue.handle(record("by a finalizer"))
            return begun + str(self)

    with (tmp_path / "log").open("wb") as file:
        queue = logs.MessageQueue(file.fileno(), "ascii", "")
        other = threading.Thread(target=lambda: queue.handle(record("%s", Formatted())), daemon=True)
        writing = threading.Thread(target=queue.write, args=(WithFinalizer("written\n"),), daemon=True)
        writing.start()
        writing.join(10)
        assert not writing.is_alive()
        other.join()
        queue.flush(None)
    said = (tmp_path / "log").read_text().splitlines()
    assert [line.rpartition(" INFO ")[2] for line in said] == [
        "by a finalizer",
        "written",
        "by another thread",
    ]


def test_a_record_that_cannot_be_formatted_raises_nothing_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "log").open("wb") as file:
        queue = logs.MessageQueue(file.fileno(), "ascii", "")
        monkeypatch.setattr(sys, "stderr", queue)
        queue.handle(record("%d", "no number"))
        queue.flush(None)
    assert "TypeError: %d format" in (tmp_path / "log").read_text()


def test_without_memory_messages_are_lost_and_the_next_ones_are_not(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = logs.MessageQueue(pipe[1], "ascii", "")
    with monkeypatch.context() as patch:
        patch.setattr(logs.MessageQueue, "_write_whole", Mock(side_effect=MemoryError))
        queue.write("one\n")
        queue.flush(None)
    queue.write("two\n")
    queue.flush(None)
    assert os.read(pipe[0], 4096) == b"two\n1 messages were lost\n"


LEVELS = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 3}


@pytest.mark.parametrize(("name", "priority"), LEVELS.items())
def test_in_the_journal_each_line_begins_with_its_priority(tmp_path: Path, name: str, priority: int) -> None:
    with (tmp_path / "log").open("wb") as file:
        status = os.fstat(file.fileno())
        queue = logs.MessageQueue(file.fileno(), "utf-8", f"{status.st_dev}:{status.st_ino}")
        queue.handle(record("Zoë\nsecond\0line", level=getattr(logging, name.upper())))
        queue.write("begun, ")
        queue.write("ended\n")
        queue.flush(None)
    lines = [f"<{priority}>{name.upper()} Zoë", f"<{priority}>second\\x00line", "<3>begun, ended"]
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == lines


def test_a_variable_that_was_inherited_is_not_the_journal_and_what_cannot_be_shown_is_escaped(
    tmp_path: Path,
) -> None:
    with (tmp_path / "log").open("wb") as file:
        queue = logs.MessageQueue(file.fileno(), "ascii", "1:2")
        queue.handle(record("Zoë \udcff", level=logging.ERROR))
        queue.flush(None)
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert re.fullmatch(r"[0-9-]+ [0-9:,]+ ERROR Zo\\xeb \\udcff", line)


EVERYBODY = """
import threading, warnings, logs
logs.start_log()
class Faulty:
    def __del__(self): raise RuntimeError("not raisable")
Faulty()
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
warnings.warn("a warning")
raise SystemExit("the end")
"""


def test_whatever_python_prints_takes_the_same_way(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        status = os.fstat(file.fileno())
        environ = os.environ | {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        command = [sys.executable, "-c", EVERYBODY]
        done = subprocess.run(command, stderr=file, env=environ, cwd=ROOT, timeout=60)
    lines = (tmp_path / "log").read_text().splitlines()
    assert done.returncode == 1
    assert all(line.startswith("<3>") for line in lines)
    for part in ("not raisable", "ZeroDivisionError", "a warning", "the end"):
        assert any(part in line for line in lines), part


CLOSED = """
import logging, logs, sys
queue = logs.start_log()
with open(sys.argv[1], "w"):
    logging.error("a message")
    queue.flush(None)
"""


def test_where_standard_error_is_closed_no_other_file_gets_the_messages(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", CLOSED, tmp_path / "other"]
    subprocess.run(command, cwd=ROOT, timeout=60, check=True)
    assert (tmp_path / "other").read_text() == ""
