"""Sections of RESULTS.md that programs of their own write: each replaces its own and keeps the others."""

from __future__ import annotations

import re
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
SOAK, LIGHTHOUSE = "## Soak", "## Lighthouse"
FOREIGN = (LIGHTHOUSE, SOAK)  # to run.py, which writes all other sections


def section_of(text: str, heading: str) -> str:
    """The section that begins with the line `heading`; "" where there is none."""
    found = re.search(_pattern(heading), text)
    return found[0].rstrip() + "\n" if found else ""


def with_section(text: str, section: str) -> str:
    """`text` with the section of the same heading replaced, or added at its end."""
    heading = section.splitlines()[0]
    kept = re.sub(_pattern(heading), "", text).rstrip()
    return f"{kept}\n\n{section}" if kept else section


def put(section: str) -> None:
    """Replace or add a section of RESULTS.md."""
    before = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    RESULTS.write_text(with_section(before, section), encoding="utf-8")


def _pattern(heading: str) -> str:
    return rf"(?ms)^{re.escape(heading)}\n.*?(?=^## |\Z)"
