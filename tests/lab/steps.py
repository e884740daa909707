"""The steps of a call: lines of Python that run in its thread, those of libraries, too.

Unlike seconds they are the same on every machine. What a function of C does is one step;
its time is measured by `bench/`.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


class TooManySteps(BaseException):
    """No `except Exception` of the called program hides it."""


def steps_of(work: Callable[[], Result], at_most: int) -> tuple[int, Result]:
    """How many steps a call takes, and its result. Raises TooManySteps."""
    steps = 0

    def count(frame: FrameType, event: str, value: object) -> Any:
        nonlocal steps
        steps += 1
        if steps > at_most:
            raise TooManySteps(f"more than {at_most:,}, at {frame.f_code.co_name}")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        result = work()
    finally:
        sys.settrace(before)
    return steps, result
