"""The soak of `bench/soak.py`, for half a minute."""

import subprocess
import sys

from services import ROOT
from tools import program

SECONDS = 30


def test_nothing_unexpected_happens_and_nothing_grows() -> None:
    program("openssl")
    command = [sys.executable, str(ROOT / "bench" / "soak.py"), "--seconds", str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
