"""Counted steps: how much a function does, without a clock.

A test that grows with the square of its input does so in steps, too, and on every
machine.
"""

import sys
from collections.abc import Callable
from types import FrameType


def steps_of(function: Callable[[], object]) -> int:
    """The lines that Python runs in a call, those of all that it calls included."""
    lines = 0

    def count(frame: FrameType, event: str, _: object) -> Callable[..., object]:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines
