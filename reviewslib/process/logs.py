"""Logging that never blocks: records are queued, and one thread writes them to standard error.

Standard error may be a pipe whose reader stalls or has gone. A record that does not fit into the queue is
dropped and counted, and the count is written as soon as there is room. In the journal of systemd each line
begins with its level. This module knows nothing of the service.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import traceback
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from typing import Any

MAX_QUEUED_BYTES = 2 * 1024 * 1024  # some 20,000 lines
FLUSH_SECONDS = 0.25  # for the last records of a process that ends

PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3}  # sd-daemon(3)


class BoundedQueueHandler(QueueHandler):
    """Queues records of up to MAX_QUEUED_BYTES. Any thread."""

    def __init__(self) -> None:
        super().__init__(SimpleQueue[Any]())
        self.setFormatter(logging.Formatter())  # of the message alone; lines are made by the writer
        self._counting = threading.RLock()  # reentrant, since a finalizer may log at any moment
        self._queued_bytes = self._dropped_count = 0
        self._idle = threading.Event()
        self._idle.set()

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue a prepared record, or count it as dropped."""
        with self._counting:
            if self._queued_bytes + len(record.msg) > MAX_QUEUED_BYTES:
                self._dropped_count += 1
                return
            self._queued_bytes += len(record.msg)
            self._idle.clear()
            self.queue.put_nowait(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - of logging.Handler
        """Log the fault of a record that cannot be formatted; standard error itself could block."""
        fault = logging.LogRecord(record.name, logging.ERROR, "", 0, traceback.format_exc(), None, None)
        self.enqueue(self.prepare(fault))

    def take_dropped(self) -> int:
        """The number of records dropped since the last call."""
        with self._counting:
            dropped_count, self._dropped_count = self._dropped_count, 0
            return dropped_count

    def settle(self, record_bytes: int, dropped_count: int) -> None:
        """Note that a record left the queue, and that records were dropped."""
        with self._counting:
            self._queued_bytes -= record_bytes
            self._dropped_count += dropped_count
            if not self._queued_bytes:
                self._idle.set()

    def flush(self, seconds: float | None = FLUSH_SECONDS) -> None:
        """Return once all is written, or when the time is over."""
        self._idle.wait(seconds)


class LineFormatter(logging.Formatter):
    """Time, level and message; in the journal the level of each line instead of the time."""

    def __init__(self, in_journal: bool):
        super().__init__(f"{'' if in_journal else '%(asctime)s '}%(levelname)s %(message)s")
        self._in_journal = in_journal

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"<{PRIORITIES.get(record.levelno, 3)}>" if self._in_journal else ""
        text = super().format(record).replace("\0", "\\x00")  # ends a line of the journal, too
        return "".join(f"{prefix}{line}\n" for line in text.split("\n"))


class DescriptorWriter(QueueListener):
    """Writes what a BoundedQueueHandler holds to a descriptor, on a thread of its own."""

    def __init__(self, handler: BoundedQueueHandler, descriptor: int, encoding: str, in_journal: bool):
        super().__init__(handler.queue)
        self._handler, self._descriptor, self._encoding = handler, descriptor, encoding
        self._formatter = LineFormatter(in_journal)

    def handle(self, record: logging.LogRecord) -> None:
        dropped_count = self._handler.take_dropped() + (not self._write(record))
        if dropped_count and self._write(dropped_notice(dropped_count)):
            dropped_count = 0
        self._handler.settle(len(record.msg), dropped_count)

    def _write(self, record: logging.LogRecord) -> bool:
        """Whether the record was written whole."""
        try:
            left = memoryview(self._formatter.format(record).encode(self._encoding, "backslashreplace"))
            while left:
                select.select((), (self._descriptor,), ())  # others may have made it non-blocking
                left = left[os.write(self._descriptor, left) :]
        except (OSError, MemoryError):  # no reader, a full disk
            return False
        return True


def dropped_notice(count: int) -> logging.LogRecord:
    return logging.LogRecord("logs", logging.WARNING, "", 0, f"{count} messages were dropped", None, None)


def start_log() -> BoundedQueueHandler:
    """Send what is logged to standard error, if that is open."""
    if sys.stderr:
        descriptor, encoding = sys.stderr.fileno(), sys.stderr.encoding
    else:  # a file that is opened later would have its number
        descriptor, encoding = os.open(os.devnull, os.O_WRONLY), "ascii"
    status = os.fstat(descriptor)  # a process whose output was redirected inherits the variable, too
    in_journal = os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"  # systemd.exec(5)
    handler = BoundedQueueHandler()
    DescriptorWriter(handler, descriptor, encoding, in_journal).start()
    logging.basicConfig(handlers=[handler], force=True)
    return handler
