"""When reviews were last exported, as the importer's state says.

So a monitor sees that imports have stopped. This module knows one member of that file,
which stands first in it, and nothing of imports.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from reviewslib.dataset.reading import IMPORT_STATE_FILE
from reviewslib.files import opened

# The state has a line for each review: to read all of it would take milliseconds.
FIRST_MEMBER = re.compile(rb'\{"newest_export":"([0-9T:Z-]{20})"')
FIRST_BYTES = 64


def newest_export(directory: Path) -> str | None:
    """The time of the newest export, RFC 3339 in UTC.

    None without imports, and if the file is damaged: that is no fault of the data.
    """
    with suppress(OSError):
        with opened(directory / IMPORT_STATE_FILE, follow=True) as file:
            match = FIRST_MEMBER.match(file.read(FIRST_BYTES))
        if match:
            return match[1].decode()
    return None
