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


def record(text: str, level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord("test", level, "", 0, text, None, None)


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


LEVELS = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 3}


@pytest.mark.parametrize(("name", "priority"), LEVELS.items())
def test_in_the_journal_each_line_begins_with_its_priority(tmp_path: Path, name: str, priority: int) -> None:
    with (tmp_path / "log").open("wb") as file:
        status = os.fstat(file.fileno())
        queue = logs.MessageQueue(file.fileno(), "utf-8", f"{status.st_dev}:{status.st_ino}")
        queue.handle(record("Zoë\nsecond line", getattr(logging, name.upper())))
        queue.write("begun, ")
        queue.write("ended\n")
        queue.flush(None)
    lines = [f"<{priority}>{name.upper()} Zoë", f"<{priority}>second line", "<3>begun, ended"]
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == lines


def test_a_variable_that_was_inherited_is_not_the_journal_and_what_cannot_be_shown_is_escaped(
    tmp_path: Path,
) -> None:
    with (tmp_path / "log").open("wb") as file:
        queue = logs.MessageQueue(file.fileno(), "ascii", "1:2")
        queue.handle(record("Zoë \udcff", logging.ERROR))
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
