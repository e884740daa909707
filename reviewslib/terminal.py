"""What the commands that write data files have in common: output, exit statuses, the answers to errors.

This module knows no command line and no data file.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from reviewslib.dataset.contract import BadData, printable

# argparse exits with 2
EXIT_SUCCESS = 0
EXIT_FAILURE = 1
EXIT_STOPPED = 130
EXIT_BAD_DATA = 78  # EX_CONFIG of sysexits.h


class CommandFailed(Exception):
    """A command cannot continue; `lines` give the reason."""

    def __init__(self, *lines: str, status: int = EXIT_FAILURE):
        super().__init__(*lines)
        self.lines = lines
        self.status = status


def say(*lines: str, stream: TextIO | None = None) -> None:
    """Print lines to standard output or another stream, with control characters escaped."""
    for line in lines:
        print(printable(line), file=stream, flush=True)


def exit_status(command: Callable[[], None]) -> int:
    """Run a command, and print the reason if it fails. Returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a closed stream is None
            stream.reconfigure(errors="backslashreplace")
    reason: Sequence[str] = ()
    try:
        command()
        status = EXIT_SUCCESS
    except CommandFailed as failure:
        reason = failure.lines
        status = failure.status
    except BadData as fault:
        reason = fault.lines()
        status = EXIT_BAD_DATA
    except KeyboardInterrupt:
        reason = ["stopped; run the same command again"]
        status = EXIT_STOPPED
    except OSError as error:
        reason = [f"{error.filename or 'the output'}: {error.strerror}"]
        status = EXIT_FAILURE
    say(*reason, stream=sys.stderr)
    return status
