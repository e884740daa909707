"""Questions to the owner, and refusals of files: what stops an import.

Nothing is guessed. Where a file leaves something open the owner is asked, and where a
file cannot be right it is refused with a way on. This module is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reviewslib.faults import BadData, Fault

# A question is read on a terminal, where more lines would push the question itself
# away.
MAX_LISTED_CHOICES = 50


class NeedsDecision(ValueError):
    """A question that only the owner can answer.

    `flag`, if any, answers it, with YOUR in place of the owner's words.
    """

    def __init__(self, lines: Sequence[str], flag: str = ""):
        super().__init__(*lines)
        self.flag = flag

    def lines(self) -> list[str]:
        """The question, for a terminal."""
        lines = list(self.args)
        if self.flag:
            advice = "Run the command again with this flag"
            if "YOUR" in self.flag:
                advice += ", and replace YOUR with your own words"
            lines.append(f"{advice}:")
            lines.append(f"  {self.flag}")
        return lines


def listed(items: Iterable[object]) -> list[str]:
    """The items as indented lines, at most MAX_LISTED_CHOICES; then how many more."""
    lines = [f"  {item}" for item in items]
    rest = len(lines) - MAX_LISTED_CHOICES
    if rest <= 0:
        return lines
    return [*lines[:MAX_LISTED_CHOICES], f"  and {rest} more"]


class NoExport(BadData):
    """A file that is no export of reviews, and so no loss if it is left out."""


def no_export(file: str, reason: str) -> NoExport:
    """An error about a file that is none of ours, such as a photograph."""
    return NoExport([Fault(file, (), reason)])


def refused(file: str, reason: str) -> BadData:
    """An error about a file that should be an export, but is damaged or too large."""
    return BadData([Fault(file, (), reason)])
