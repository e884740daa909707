"""The data directory: what an import reads there, and the order in which it writes.

What is written can always be read again: nothing above the limit of the readers is
written. A kill between two writes leaves either all before or all after.

Sections: reading - writing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from reviewslib import files
from reviewslib.dataset import counting
from reviewslib.dataset.contract import Contract
from reviewslib.dataset.reading import INSIGHTS_FILE, REVIEWS_FILE, read_file
from reviewslib.dataset.reviews import load
from reviewslib.dataset.strict_json import Json, decode
from reviewslib.faults import BadData
from reviewslib.importer import erasure
from reviewslib.importer.erasure import REDACTED_FILE, SUPPRESSED_FILE
from reviewslib.importer.merging import Merged
from reviewslib.importer.questions import refused
from reviewslib.importer.reading import reading
from reviewslib.importer.state import DRAFT_FILE, STATE_FILE, encoded_state, read_state
from reviewslib.importer.stored import Stored
from reviewslib.links import ServiceUrls

# ---- Reading ----

# The name of the sample's business, and the id of one of its reviews. An import into
# the sample would publish invented reviews beside real ones.
SAMPLE = (b'"Larkspur Hollow Chiropractic"', b"01M7F1SV60XJ4PFV38D0FMZ6BZ")


# What a person may have written or copied there.
DATA_FILES = (REVIEWS_FILE, INSIGHTS_FILE, counting.EDITORIAL_FILE)


def read_stored(directory: Path, contract: Contract, *, is_import: bool) -> Stored:
    """The content of a data directory.

    Raises BadData, also if an import would change the sample.
    """
    contents = {name: stored_content(directory / name) for name in DATA_FILES}
    if is_import:
        for name, content in contents.items():
            _refuse_sample(directory / name, content)
    reviews = contents[REVIEWS_FILE]
    insights = contents[INSIGHTS_FILE]
    digest = hashlib.sha256(reviews or b"").hexdigest()
    state = stored_content(directory / STATE_FILE)
    draft = stored_content(directory / DRAFT_FILE)
    return Stored(
        document=_document(reviews, insights, contract),
        reviews_digest=digest,
        insights=insights,
        state=read_state(state, draft, digest),
        suppressed=_lines_of(directory / SUPPRESSED_FILE),
        redactions=_lines_of(directory / REDACTED_FILE),
    )


def _document(
    reviews: bytes | None, insights: bytes | None, contract: Contract
) -> dict[str, Json]:
    """The content of reviews.json, {} without it; both files are checked.

    Raises BadData.
    """
    if reviews is None:
        _check_insights(insights, contract)
        return {}
    load(contract, reviews, insights, ServiceUrls())
    document: dict[str, Json] = decode(reviews)
    return document


def _check_insights(insights: bytes | None, contract: Contract) -> None:
    """Check an insights.json beside which no reviews.json stands. Raises BadData."""
    if insights is None:
        return
    _, faults = read_file(INSIGHTS_FILE, insights, contract.insights_file)
    if faults:
        raise BadData(faults)


def _refuse_sample(path: Path, content: bytes | None) -> None:
    """Raises BadData for a file of the sample."""
    if content and any(mark in content for mark in SAMPLE):
        reason = (
            "a file of the sample, which no import changes; "
            "choose another directory: --data my-data"
        )
        raise refused(str(path), reason)


def stored_content(path: Path) -> bytes | None:
    """The content of a file, None without the file. Raises BadData."""
    with reading(path):
        return files.content_of(path)


def _lines_of(path: Path) -> list[str]:
    """The lines of suppressed.txt or redacted.txt. Raises BadData."""
    return erasure.read_lines(path.name, _text(path))


def _text(path: Path) -> str:
    """The text of a file, empty without the file. Raises BadData."""
    try:
        return (stored_content(path) or b"").decode("utf-8-sig")
    except UnicodeError:
        raise refused(path.name, "not UTF-8") from None


# ---- Writing ----


def write_import(
    directory: Path, stored: Stored, merged: Merged, reviews: bytes | None
) -> None:
    """Write the files so that a kill leaves the old reviews and state, or the new ones.

    `reviews` is the new content of reviews.json, None if it stays. Raises BadData
    before anything is written if a file would be too large.
    """
    digest = stored.reviews_digest
    if reviews:
        check_stored_size(REVIEWS_FILE, reviews)
        digest = hashlib.sha256(reviews).hexdigest()
    draft = encoded_state(replace(merged.state, reviews_digest=digest))
    check_stored_size(STATE_FILE, draft)
    # They come first, since they apply to the old reviews and to the new ones.
    _append_lines(directory / SUPPRESSED_FILE, merged.suppressed)
    _append_lines(directory / REDACTED_FILE, stored.redactions)
    if merged.is_overwritten:
        copy = directory / stored.edited_copy
        files.write(copy, (directory / REVIEWS_FILE).read_bytes())
    # The draft names the digest of the new reviews.json, and counts only beside it.
    files.write(directory / DRAFT_FILE, draft)
    if reviews:
        files.write(directory / REVIEWS_FILE, reviews)
    files.rename(directory / DRAFT_FILE, directory / STATE_FILE)


def write_newest_export(directory: Path, stored: Stored, time: str) -> None:
    """Write nothing but the moment of the newest export into the state."""
    state = stored_content(directory / STATE_FILE)
    draft = stored_content(directory / DRAFT_FILE)
    # Merging has moved the moments in `stored.state`.
    before = read_state(state, draft, stored.reviews_digest)
    content = encoded_state(replace(before, newest_export=time))
    files.write(directory / STATE_FILE, content)


def check_stored_size(name: str, content: bytes) -> None:
    """Raises BadData for content that no command could read again."""
    fault = files.size_fault(content)
    if fault:
        advice = "import fewer files or locations, or leave out the largest table"
        raise refused(name, f"{fault}; {advice}")


def delete_copies(directory: Path) -> None:
    """Delete the copies that imports made of edited files: they have erased words."""
    for copy in copies_in(directory):
        copy.unlink(missing_ok=True)


def copies_in(directory: Path) -> list[Path]:
    """The copies that imports made of edited files."""
    return sorted(directory.glob(f"{REVIEWS_FILE}.edited-*"))


def _append_lines(path: Path, lines: Iterable[str]) -> None:
    """Append the lines that the file does not have yet."""
    before = _text(path).splitlines()
    present = {line.strip() for line in before}
    added = [line for line in dict.fromkeys(lines) if line not in present]
    if added:
        files.write(path, "".join(f"{line}\n" for line in (*before, *added)).encode())
