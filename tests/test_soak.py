"""The soak of `bench/soak.py`, for half a minute."""

import subprocess
import sys
from pathlib import Path

from tools import program

SOAK = Path(__file__).resolve().parent.parent / "bench" / "soak.py"
SECONDS = 30


def test_nothing_unexpected_happens_and_nothing_grows() -> None:
    program("openssl")
    command = [sys.executable, str(SOAK), "--seconds", str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
