"""What the log says of a row: one line an event, with the host of the callback.

The rest of a callback's URL may be a secret, and is never written.
"""

from __future__ import annotations

import logging

from reviewslib.websub.rows import Row

log = logging.getLogger(__name__)


def log_event(row: Row, line: str, level: int = logging.INFO) -> None:
    log.log(level, "hub %s %s: %s", row.path, row.host, line)


def log_bug(row: Row) -> None:
    """Log the exception that is being handled."""
    log.exception("hub %s %s: unexpected error", row.path, row.host)
