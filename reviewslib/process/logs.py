"""Logging that never blocks: records are queued, and one thread writes them to stderr.

Records that do not fit into the queue are dropped and counted. The next record that
fits states their number.
"""

from __future__ import annotations

import logging
import os
import sys
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from threading import Event

# A burst of a second at the highest rate; ten megabytes at most.
MAX_RECORDS = 10_000
# How long a process that ends waits for its last records: a stop takes at most five
# seconds, of which the server has four and a half.
FLUSH_SECONDS = 0.25
# Priorities of the journal by level (sd-daemon(3)).
PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4}
ERROR_PRIORITY = 3


class BoundedQueueHandler(QueueHandler):
    """Queues records for a QueueWriter.

    Thread-safe; a finalizer may log while it interrupts logging.
    """

    def __init__(self, max_records: int = MAX_RECORDS):
        # Queue, which has a bound, has a lock that is not reentrant: a finalizer would
        # wait for itself.
        self._records = SimpleQueue[object]()
        self._max_records = max_records
        self._dropped_count = 0
        super().__init__(self._records)

    def enqueue(self, record: logging.LogRecord) -> None:
        if self._records.qsize() >= self._max_records:
            self._dropped_count += 1
            return
        if self._dropped_count:
            count = self._dropped_count
            record.msg += f"\n{count} messages before this one were dropped"
            self._dropped_count = 0
        self._records.put(record)

    def flush(self) -> None:
        """Return when all records are written, or after FLUSH_SECONDS."""
        written = Event()
        self._records.put(written)
        written.wait(FLUSH_SECONDS)


class QueueWriter(QueueListener):
    """Writes the records of a BoundedQueueHandler, and answers its `flush`."""

    def handle(self, record: logging.LogRecord | Event) -> None:
        if isinstance(record, Event):
            record.set()
        else:
            super().handle(record)


class JournalFormatter(logging.Formatter):
    """Each line begins with its priority: the journal takes a line for a record."""

    def format(self, record: logging.LogRecord) -> str:
        priority = PRIORITIES.get(record.levelno, ERROR_PRIORITY)
        lines = super().format(record).split("\n")
        return "\n".join(f"<{priority}>{line}" for line in lines)


def start_log() -> BoundedQueueHandler:
    """Send log records to standard error, if it is open.

    Returns the handler, for `flush`.
    """
    line = "%(levelname)s %(message)s"
    writer = logging.StreamHandler()
    if _is_journal():
        writer.setFormatter(JournalFormatter(line))
    else:
        writer.setFormatter(logging.Formatter(f"%(asctime)s {line}"))
    handler = BoundedQueueHandler()
    QueueWriter(handler.queue, writer).start()
    logging.basicConfig(handlers=[handler], format="%(message)s", force=True)
    return handler


def _is_journal() -> bool:
    """Whether standard error leads to the journal, which adds the time itself."""
    # A closed stream is None.
    if not sys.stderr:
        return False
    status = os.fstat(sys.stderr.fileno())
    # A process whose output is redirected inherits the variable, too; only its value
    # tells (systemd.exec(5)).
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
