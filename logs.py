"""Standard error: whoever writes to it queues messages, and one thread writes them.

Standard error may be a pipe whose reader stalls or has gone. Nobody waits for it: a message that does not fit
into the queue is counted, and the count is written once there is room. In the journal of systemd each line
begins with its priority. This module knows nothing of the service.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading

MOST_WAITING_BYTES = 2 * 1024 * 1024  # some 20,000 lines; as many again may be in the hands of the thread
FLUSH_SECONDS = 0.25  # for the last messages of a process that leaves

PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3}  # sd-daemon(3)


class MessageQueue(logging.Handler):
    """Queues what is logged, and as a text stream what is written. Its methods belong to any thread.

    `journal_stream` is $JOURNAL_STREAM: device and inode of the journal's end (systemd.exec(5)).
    """

    def __init__(self, descriptor: int, encoding: str, journal_stream: str):
        super().__init__()
        self._descriptor, self._encoding = descriptor, encoding
        status = os.fstat(descriptor)  # a process whose output was redirected inherits the variable, too
        self._in_journal = journal_stream == f"{status.st_dev}:{status.st_ino}"
        timestamp = "" if self._in_journal else "%(asctime)s "  # the journal has its own
        self.setFormatter(logging.Formatter(timestamp + "%(levelname)s %(message)s"))
        # The handler's own lock, since a finalizer may log while its thread queues or writes.
        self._changed = threading.Condition(self.lock)  # guards what follows
        self._begun_line = ""
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._lost_count = 0
        self._is_writing = False
        threading.Thread(target=self._write_for_ever, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record; one that cannot be formatted is told as a fault, and never raised."""
        try:
            self._put(self.format(record), record.levelno)
        except Exception:
            self.handleError(record)

    def write(self, text: str) -> None:
        """Queue the lines of `text`, without time and level; one that is not complete waits for its rest."""
        with self._changed:
            *lines, self._begun_line = (self._begun_line + text).split("\n")
            for line in lines:
                self._put(line, logging.ERROR)

    def flush(self, seconds: float | None = FLUSH_SECONDS) -> None:
        """Return once all is written, or when the time is over; None waits for as long as it takes."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._is_writing), seconds)

    def _put(self, text: str, level: int) -> None:
        message = self._encoded(text, level)
        with self._changed:
            if self._waiting_bytes + len(message) > MOST_WAITING_BYTES:
                self._lost_count += 1
                return
            self._waiting.append(message)
            self._waiting_bytes += len(message)
            self._changed.notify_all()

    def _encoded(self, text: str, level: int) -> bytes:
        prefix = f"<{PRIORITIES.get(level, 3)}>" if self._in_journal else ""
        text = text.replace("\0", "\\x00")  # ends a line of the journal, too
        lines = "".join(f"{prefix}{line}\n" for line in text.split("\n"))
        return lines.encode(self._encoding, "backslashreplace")

    def _write_for_ever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                messages, self._waiting, self._waiting_bytes = self._waiting, [], 0
                lost_count, self._lost_count, self._is_writing = self._lost_count, 0, True
            notice = self._encoded(f"{lost_count} messages were lost", logging.WARNING) if lost_count else b""
            try:
                self._write_whole(b"".join(messages) + notice)
                lost_count = 0
            except (OSError, MemoryError):  # no reader, a full disk
                lost_count += len(messages)
            with self._changed:
                self._lost_count += lost_count
                self._is_writing = False
                self._changed.notify_all()

    def _write_whole(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            select.select((), (self._descriptor,), ())  # others may have made it non-blocking
            left = left[os.write(self._descriptor, left) :]


def start_log() -> MessageQueue:
    """Send to a queue what is logged, and what Python itself would print to standard error."""
    if sys.stderr:
        descriptor, encoding = sys.stderr.fileno(), sys.stderr.encoding
    else:  # it is closed, and a file that was opened later would have its number
        descriptor, encoding = os.open(os.devnull, os.O_WRONLY), "ascii"
    queue = MessageQueue(descriptor, encoding, os.environ.get("JOURNAL_STREAM", ""))
    logging.basicConfig(handlers=[queue], force=True)
    sys.stderr = queue
    return queue
