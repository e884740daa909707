"""Damaged tables, pages and archives, and their import in one process.

`python tests/lab/damaged_files.py 20000` imports so many under a limit of 1 GB, and
names each that ends in another way than a report, a question or a refusal, or takes too
long.

Sections: files before the damage - damage - import.
"""

import io
import json
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reviewslib.dataset.contract import shipped_contract
from reviewslib.faults import BadData
from reviewslib.importer.merging import merge
from reviewslib.importer.options import Options, TableSettings
from reviewslib.importer.questions import NeedsDecision
from reviewslib.importer.reading import Settling, read_exports
from reviewslib.importer.state import State
from reviewslib.importer.stored import Stored

GIGABYTE = 2**30
LONGEST_SECONDS = 10
NOTHING = Stored({}, "", None, State(), (), ())

# ---- Files before the damage ----


def table(chance: random.Random) -> bytes:
    """A table of some header, delimiter and encoding."""
    delimiter = chance.choice(",;\t")
    header = chance.choice(
        (
            "author rating date text source",
            "id author rating date text source source_url reply reply_date",
            "reviewId name stars publishedAtDate text reviewUrl",
            "comment_ID comment_author rating comment_date_gmt comment_content "
            "comment_approved comment_parent",
        )
    ).split()
    lines = [delimiter.join(header)]
    for number in range(chance.randint(0, 30)):
        cells = [str(number), "Ann Ré", "5", "2024-01-05", '"So ""good"", yes"']
        cells += ["https://a.example/1", "Thanks", "5. Mai 2024", "1", "0"]
        chance.shuffle(cells)
        lines.append(delimiter.join(cells[: len(header)]))
    encoding = chance.choice(("utf-8", "utf-8-sig", "utf-16", "cp1252"))
    return "\n".join(lines).encode(encoding)


def page(chance: random.Random) -> bytes:
    """A page of reviews of Google's."""
    items = [
        {
            "name": f"accounts/1/locations/2/reviews/{number}",
            "reviewer": {"displayName": "Ósk Nr1"},
            "starRating": "FIVE",
            "comment": "(Translated by Google) Good\n\n(Original)\nGott",
            "createTime": "2025-01-02T20:15:00.709635Z",
            "updateTime": "2025-01-02T20:15:00.709635Z",
        }
        for number in range(chance.randint(1, 20))
    ]
    return json.dumps({"reviews": items}).encode()


def archive(chance: random.Random) -> bytes:
    """A Takeout with damaged and sound members."""
    out = io.BytesIO()
    method = chance.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
    )
    with zipfile.ZipFile(out, "w", method) as file:
        for number in range(chance.randint(1, 5)):
            content = page(chance)
            if chance.random() < 0.3:
                content = damaged(content, chance)
            place = f"Takeout/G/account-1/location-{number}"
            file.writestr(f"{place}/reviews.json", content)
            file.writestr(f"{place}/data.json", b'{"title": "B"}')
    return out.getvalue()


def flood(chance: random.Random) -> bytes:
    """A short piece many times: what is cheap to write and dear to read."""
    pieces = (b",", b"\n", b'"', b"[", b"{", b'{"reviews":[', b"(", b"a;", b"\\", b"\0")
    pieces += (b"author,rating,date\n", b"<a", b"&", b" ", "é".encode(), b"\xff", b"1.")
    heads = (b"", b"author,rating,date,text,source\n", b'{"reviews":[', b"sep=;\n")
    tails = (b"", b"\nAnn,5,2024-01-05,x,fb\n", b"]}")
    number = chance.choice((10, 1_000, 100_000, 1_000_000))
    return chance.choice(heads) + chance.choice(pieces) * number + chance.choice(tails)


MAKERS: tuple[Callable[[random.Random], bytes], ...] = (table, page, archive)

# ---- Damage ----

WORDS = (b'"', b'\\"', b",", b"\n", b"\r", b"\0", b"\xff", b"[", b"(", b"E+", b"####")
WORDS += (b"1e999", b"NaN", b"\xed\xa0\x80", b"(Translated by Google)", b"2024-13-01")


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with some bytes changed, cut, doubled, moved or put in."""
    for _ in range(chance.randint(1, 6)):
        start = chance.randint(0, len(content))
        end = min(len(content), start + chance.randint(0, 200))
        match chance.randrange(5):
            case 0:
                content = content[:start] + chance.choice(WORDS) + content[start:]
            case 1:
                content = content[:start] + content[end:]
            case 2:
                content = content[:end] + content[start:]
            case 3:
                content = content[:start]
            case 4:
                content = content[:start] + chance.randbytes(3) + content[start:]
    return content


def damaged_file(seed: int) -> bytes:
    """A damaged file; the same for the same seed."""
    chance = random.Random(seed)
    # Floods are dear, so there are few.
    if chance.random() < 0.01:
        return flood(chance)
    return damaged(chance.choice(MAKERS)(chance), chance)


# ---- Import ----


@dataclass
class Outcome:
    """How the import of a file ended."""

    seed: int
    seconds: float
    fault: str = ""  # a traceback, if it ended in one


def imported(seed: int, folder: Path) -> Outcome:
    """Import the file of a seed into nothing."""
    path = folder / "file"
    path.write_bytes(damaged_file(seed))
    contract = shipped_contract()
    options = Options(
        files=(path,), name="B", zone="UTC", table=TableSettings(source="fb")
    )
    start = time.perf_counter()
    fault = ""
    try:
        found = read_exports(options, contract, Settling())
        merge(NOTHING, found.exports, options, contract)
    except (BadData, NeedsDecision):
        pass
    except Exception:
        fault = traceback.format_exc()
    return Outcome(seed, time.perf_counter() - start, fault)


def main(number: int) -> int:
    """Import so many files; the number of those that ended badly."""
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))
    longest = 0.0
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(number):
            outcome = imported(seed, Path(folder))
            longest = max(longest, outcome.seconds)
            if outcome.fault or outcome.seconds > LONGEST_SECONDS:
                bad += 1
                print(f"seed {seed}: {outcome.seconds:.1f} s\n{outcome.fault}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{number} files, {bad} ended badly; longest {longest:.1f} s, {memory} MB")
    return bad


if __name__ == "__main__":
    os.nice(5)
    sys.exit(bool(main(int(sys.argv[1]))))
