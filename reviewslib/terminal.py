"""What the commands that write data files have in common: output, exit statuses, the answers to errors.

This module knows no command line and no data file.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from reviewslib.dataset.contract import BadData, printable

EXIT_SUCCESS, EXIT_FAILURE, EXIT_STOPPED = 0, 1, 130  # argparse exits with 2
EXIT_BAD_DATA = 78  # EX_CONFIG of sysexits.h
CLEARED_LINE = "\r\x1b[K"  # on a terminal


class CommandFailed(Exception):
    """A command cannot continue; `lines` give the reason."""

    def __init__(self, *lines: str, status: int = EXIT_FAILURE):
        super().__init__(*lines)
        self.lines, self.status = lines, status


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal; a closed stream is None."""
    return stream is not None and stream.isatty()


def say(*lines: str, end: str = "\n", stream: TextIO | None = None) -> None:
    """Print lines, with control characters escaped; on a terminal, they replace the present line."""
    stream = stream or sys.stdout
    start = CLEARED_LINE if is_terminal(stream) else ""
    for line in lines:
        print(f"{start}{printable(line)}", file=stream, end=end, flush=True)


def exit_status(command: Callable[[], None]) -> int:
    """Run a command, and print the reason if it fails. Returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    reason: Sequence[str] = ()
    try:
        command()
        status = EXIT_SUCCESS
    except CommandFailed as failure:
        reason, status = failure.lines, failure.status
    except BadData as fault:
        reason, status = fault.lines(), EXIT_BAD_DATA
    except KeyboardInterrupt:
        reason, status = ["stopped; run the same command again"], EXIT_STOPPED
    except OSError as error:
        reason, status = [f"{error.filename or 'the output'}: {error.strerror}"], EXIT_FAILURE
    say(*reason, stream=sys.stderr)
    return status
