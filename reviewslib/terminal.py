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


class CommandFailed(Exception):
    """A command cannot continue; `lines` give the reason."""

    def __init__(self, *lines: str, status: int = EXIT_FAILURE):
        super().__init__(*lines)
        self.lines, self.status = lines, status


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
        reason, status = failure.lines, failure.status
    except BadData as fault:
        reason, status = fault.lines(), EXIT_BAD_DATA
    except KeyboardInterrupt:
        reason, status = ["stopped; run the same command again"], EXIT_STOPPED
    except OSError as error:
        reason, status = [f"{error.filename or 'the output'}: {error.strerror}"], EXIT_FAILURE
    say(*reason, stream=sys.stderr)
    return status
