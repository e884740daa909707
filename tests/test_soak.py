"""The soak of `soak.py`, for half a minute."""

import subprocess
import sys
from pathlib import Path

import pytest
from tools import needs, program

SOAK = Path(__file__).resolve().parent / "soak.py"
SECONDS = 30
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report() -> str:
    for name in ("unshare", "ip"):
        program(name)
    command = [sys.executable, str(SOAK), "--seconds", str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_soak_finds_nothing_unexpected_and_no_growth(report: str) -> None:
    assert "- Unexpected: nothing." in report


@pytest.mark.parametrize(
    "event", ["non-readers", "abandoned requests", "SIGTERM", "SIGKILL", "bad file", "lost network"]
)
def test_every_disturbance_happens_during_the_soak(report: str, event: str) -> None:
    if event == "lost network":
        needs("a network namespace")
    assert f"'{event}': " in report
