"""What all commands have in common: output, exit statuses, the answers to errors.

This module must not know a command line, nor what a data file holds.

Sections: exit statuses - output - the end of a command.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from reviewslib.faults import BadData, printable

# ---- Exit statuses: argparse exits with 2 ----

EXIT_SUCCESS = 0
EXIT_FAILURE = 1
# EX_CONFIG of sysexits.h
EXIT_BAD_DATA = 78
# As shells have it: 128 and the number of SIGINT.
EXIT_STOPPED = 130


class CommandFailed(Exception):
    """A command cannot continue; `lines` give the reason."""

    def __init__(self, *lines: str, status: int = EXIT_FAILURE):
        super().__init__(*lines)
        self.lines = lines
        self.status = status


# ---- Output ----


def say(*lines: str, stream: TextIO | None = None) -> None:
    """Print lines to standard output or another stream, control characters escaped."""
    for line in lines:
        print(printable(line), file=stream, flush=True)


def number_of(noun: str, number: int) -> str:
    """A number of things, such as “1 review” and “2 reviews”."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_output(content: str | bytes) -> int:
    """Write a body or lines to standard output and return EXIT_SUCCESS.

    Exits with EXIT_FAILURE if they cannot be written.
    """
    if isinstance(content, str):
        # A closed stream is None.
        encoding = sys.stdout.encoding if sys.stdout else "ascii"
        content = f"{content}\n".encode(encoding, "backslashreplace")
    try:
        # Not through sys.stdout, which would fail a second time at exit.
        with open(1, "wb", closefd=False) as output:
            output.write(content)
    except OSError as error:
        sys.exit(f"cannot write to standard output: {error.strerror}")
    return EXIT_SUCCESS


# ---- The end of a command ----


def exit_status(command: Callable[[], None]) -> int:
    """Run a command, and print the reason if it fails. Returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # A closed stream is None.
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a letter must not end a command in a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        command()
    except CommandFailed as failure:
        return _failed(failure.status, *failure.lines)
    except BadData as fault:
        return _failed(EXIT_BAD_DATA, *fault.lines())
    except KeyboardInterrupt:
        return _failed(EXIT_STOPPED, "stopped; run the same command again")
    except OSError as error:
        if error.filename is None:
            _discard_output()
        where = error.filename or "the output"
        return _failed(EXIT_FAILURE, f"{where}: {error.strerror}")
    return EXIT_SUCCESS


def _discard_output() -> None:
    """What could not be written must not fail a second time at exit.

    The Python of Debian 12 would end with another status, and a traceback.
    """
    # A stream without a file, as in tests, has nothing to fail.
    with suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _failed(status: int, *lines: str) -> int:
    say(*lines, stream=sys.stderr)
    return status
