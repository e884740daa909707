"""Logging that never blocks: records are queued, and one thread writes them to standard error.

Records that do not fit into the queue are dropped and counted. The next record that fits states their number.
"""

import logging
import os
import sys
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from threading import Event

FLUSH_SECONDS = 0.25  # how long a process that ends waits for its last records
PRIORITIES = {
    logging.DEBUG: 7,
    logging.INFO: 6,
    logging.WARNING: 4,
}  # other levels are 3 (sd-daemon(3))


class BoundedQueueHandler(QueueHandler):
    """Queues records for a QueueWriter. Thread-safe; a finalizer may log while it interrupts logging."""

    def __init__(self, max_records: int = 10_000):
        super().__init__(
            records := SimpleQueue[object]()
        )  # Queue has a lock that is not reentrant
        self._records = records
        self._max_records = max_records
        self._dropped_count = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        if self._records.qsize() >= self._max_records:
            self._dropped_count += 1
            return
        if self._dropped_count:
            record.msg += (
                f"\n{self._dropped_count} messages before this one were dropped"
            )
            self._dropped_count = 0
        self._records.put(record)

    def flush(self) -> None:
        """Return when all records are written, or after FLUSH_SECONDS."""
        self._records.put(written := Event())
        written.wait(FLUSH_SECONDS)


class QueueWriter(QueueListener):
    def handle(self, record: logging.LogRecord | Event) -> None:
        record.set() if isinstance(record, Event) else super().handle(record)


class JournalFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).split("\n")
        return "\n".join(
            f"<{PRIORITIES.get(record.levelno, 3)}>{line}" for line in lines
        )


def start_log() -> BoundedQueueHandler:
    """Send log records to standard error, if it is open. Returns the handler, for `flush`."""
    status = os.fstat(sys.stderr.fileno()) if sys.stderr else None
    # A process whose output is redirected inherits the variable, too; only its value tells (systemd.exec(5)).
    in_journal = (
        status
        and os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
    )
    line = "%(levelname)s %(message)s"
    writer = logging.StreamHandler()
    handler = BoundedQueueHandler()
    writer.setFormatter(
        JournalFormatter(line)
        if in_journal
        else logging.Formatter(f"%(asctime)s {line}")
    )
    QueueWriter(handler.queue, writer).start()
    logging.basicConfig(handlers=[handler], format="%(message)s", force=True)
    return handler
