"""The soak of `soak.py`, for some seconds."""

import subprocess
import sys
from pathlib import Path

import pytest
from lab.tools import needs

SECONDS = 4  # every disturbance happens at least once, however long that takes


@pytest.mark.slow
def test_the_soak_finds_nothing_unexpected_and_no_growth() -> None:
    needs("a network of its own")
    command = [
        sys.executable,
        str(Path(__file__).with_name("soak.py")),
        "--seconds",
        str(SECONDS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "- Unexpected: nothing." in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
