"""Lighthouse on the page, as it is served with the sample: four marks for a phone and for a desk.

    python bench/lighthouse.py    puts the marks into bench/RESULTS.md

Needs Node.js, Chromium and a network for npm, once; uses the Python that runs it for the daemon.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from sections import LIGHTHOUSE, put

PROJECT = Path(__file__).resolve().parent.parent
VERSION = "13.5.0"
MARKS = ("performance", "accessibility", "best-practices", "seo")
PRESETS = {"phone": (), "desk": ("--preset=desktop",)}
LONGEST_SECONDS = 300


@contextmanager
def daemon() -> Iterator[str]:
    """The base URL of a daemon with the sample."""
    with tempfile.TemporaryDirectory() as state:
        command = [sys.executable, str(PROJECT / "reviewsd.py"), "--port", "0", "--no-hub"]
        command += ["--data", str(PROJECT / "data"), "--state-dir", state]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr
            yield next(
                found[1] for line in process.stderr if (found := re.search(r"listens on (http://\S+)", line))
            )
        finally:
            process.terminate()
            process.communicate()


def marks(url: str, options: tuple[str, ...]) -> dict[str, int]:
    """The marks of one audit, 0 to 100."""
    command = ["npx", "--yes", f"lighthouse@{VERSION}", url, "--output=json", "--quiet", *options]
    command += ["--chrome-flags=--headless --no-sandbox", f"--only-categories={','.join(MARKS)}"]
    chromium = shutil.which("chromium") or ""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        env=os.environ | {"CHROME_PATH": chromium},
        check=True,
    )
    categories = json.loads(done.stdout)["categories"]
    return {name: round(100 * categories[name]["score"]) for name in MARKS}


def main() -> int:
    """Audit and write; the exit status."""
    with daemon() as url:
        rows = [(name, marks(f"{url}/", options)) for name, options in PRESETS.items()]
    lines = [
        f"{LIGHTHOUSE}\n",
        f"Written by `python bench/lighthouse.py` on {date.today().isoformat()}: Lighthouse {VERSION} on the",
        "page with the sample data, in headless Chromium on the machine of the service.\n",
        f"| seen from a | {' | '.join(MARKS)} |",
        f"| --- |{' ---: |' * len(MARKS)}",
        *(f"| {name} | {' | '.join(str(found[mark]) for mark in MARKS)} |" for name, found in rows),
    ]
    section = "\n".join(lines) + "\n"
    print(section)
    put(section)
    return 0


if __name__ == "__main__":
    sys.exit(main())
