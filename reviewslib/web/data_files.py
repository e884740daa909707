"""The two data files of the operator: their contents, and how to see that they changed.

This module reads files; it must not know what is in them.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from reviewslib.dataset.reading import INSIGHTS_FILE, REVIEWS_FILE
from reviewslib.faults import BadData, Fault
from reviewslib.files import Stamp, last_change, read_unchanging, stamp

SERVED_FILES = (REVIEWS_FILE, INSIGHTS_FILE)


class DataFiles(NamedTuple):
    """The contents of the data files, and their last changes in epoch seconds."""

    reviews: bytes
    reviews_changed: float
    # None if the file is absent: insights are then counted from the reviews.
    insights: bytes | None
    # Without the file, the last change of the directory: a removal changes it.
    insights_changed: float

    @property
    def changed(self) -> float:
        """The later one of the last changes."""
        return max(self.reviews_changed, self.insights_changed)


def read_files(directory: Path) -> DataFiles:
    """Read the data files.

    Raises BadData if one cannot be read or `reviews.json` is missing.
    """
    faults = []
    found: dict[str, tuple[bytes, float]] = {}
    for name in SERVED_FILES:
        try:
            found[name] = read_unchanging(directory / name)
        except FileNotFoundError:
            if name == REVIEWS_FILE:
                reason = f"there is no such file in {directory}; see --data"
                faults.append(Fault(name, (), reason))
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            faults.append(Fault(name, (), reason))
    if faults:
        raise BadData(faults)
    reviews, reviews_changed = found[REVIEWS_FILE]
    insights, insights_changed = found.get(INSIGHTS_FILE, (None, None))
    if insights_changed is None:
        insights_changed = last_change(directory)
    return DataFiles(
        reviews=reviews,
        reviews_changed=reviews_changed,
        insights=insights,
        insights_changed=insights_changed,
    )


def file_stamps(directory: Path) -> dict[str, Stamp]:
    """The stamps of the data files that exist, by name."""
    stamps = {}
    for name in SERVED_FILES:
        with suppress(OSError):
            stamps[name] = stamp((directory / name).stat())
    return stamps
