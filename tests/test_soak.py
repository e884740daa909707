"""Some seconds of everything at once wear the service out in no way (`soak.py`)."""

import subprocess
import sys
from pathlib import Path

import pytest
from lab.tools import needs

# Every disturbance happens at least once, however long that takes.
SECONDS = 4


@pytest.mark.slow
def test_the_soak_finds_nothing_unexpected_and_no_growth() -> None:
    # given
    needs("a network of its own")
    soak = Path(__file__).with_name("soak.py")
    command = [sys.executable, str(soak), "--seconds", str(SECONDS)]
    # when
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    # then
    assert "- Unexpected: nothing." in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
