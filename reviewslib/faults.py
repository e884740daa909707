"""Faults of files: which file, where in it, and why, as lines for a person.

Whoever reads a file of the operator raises them; a command, the log and the state of
the service show them. This module knows no file and no schema.

Sections: lines - faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Keys and indexes from the root; () is the whole document.
JsonPath = tuple[str | int, ...]

# A person mends the first ones, and looks again.
MAX_LINES = 50

# ---- Lines ----


def printable(line: str) -> str:
    """`line` with line ends, control characters and half surrogate pairs escaped."""
    return "".join(
        char if char.isprintable() else f"\\u{ord(char):04x}" for char in line
    )


def pointer_of(path: JsonPath) -> str:
    """A path as a JSON Pointer (RFC 6901); empty for the whole document."""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "".join(f"/{step}" for step in steps)


# ---- Faults ----


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in a data file: the file, the path in it, and the reason."""

    file: str
    path: JsonPath
    reason: str

    def __str__(self) -> str:
        place = f"{self.file} {pointer_of(self.path)}".rstrip()
        return printable(f"{place}: {self.reason}")


class BadData(ValueError):
    """The data files cannot be served.

    `faults` has the reasons, in the order of the documents.
    """

    def __init__(self, faults: Sequence[Fault]):
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, limit: int = MAX_LINES) -> list[str]:
        """One line a fault, at most `limit`, then one with the number of the others."""
        lines = [str(fault) for fault in self.faults[:limit]]
        rest = len(self.faults) - limit
        if rest == 1:
            lines.append("and 1 more fault")
        elif rest > 1:
            lines.append(f"and {rest} more faults")
        return lines
