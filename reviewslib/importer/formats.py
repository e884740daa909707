"""Data about formats: words and names of columns, as exports have them.

There is a file for each subject. Each file in `formats/` belongs to the module that
reads it. What a file says of the outside world is evidence, not opinion: a word stands
there once somebody has seen it.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from reviewslib.dataset.strict_json import decode


def format_data(subject: str) -> dict[str, Any]:
    """The content of `formats/SUBJECT.json`, an object."""
    file = resources.files(__package__) / "formats" / f"{subject}.json"
    content: dict[str, Any] = decode(file.read_bytes())
    return content
