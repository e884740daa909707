"""In CI a test is skipped for a listed right and for nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
LACKING = "tools.RIGHTS['a right'] = tools.Right(lambda: False, next(iter(tools.RIGHTS.values())).reason)"
SKIPS = {
    "right": f"def test_it():\n    {LACKING}\n    tools.needs('a right')",
    "program": "def test_it():\n    tools.program('reviewsd-no-such-program')",
    "call": "def test_it():\n    pytest.skip('no time')",
    "mark": "@pytest.mark.skipif(True, reason='no time')\ndef test_it():\n    pass",
    "fixture": "@pytest.fixture\ndef it():\n    pytest.skip('no time')\ndef test_it(it):\n    pass",
    "expected_failure": "@pytest.mark.xfail\ndef test_it():\n    assert False",
    "file": "pytest.skip('no time', allow_module_level=True)",
    "import": "pytest.importorskip('no_such_module')",
}


@pytest.mark.slow
def test_in_ci_only_a_missing_right_skips_a_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    for why, content in SKIPS.items():
        (tmp_path / f"test_{why}.py").write_text(f"import pytest, tools\n{content}\n")
    environment = os.environ | {"CI": "true", "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    failed = set(re.findall(r"(?m)^NOT ALLOWED .*test_(\w+)\.py", done.stdout))
    assert (failed, done.returncode) == (SKIPS.keys() - {"right"}, 1), done.stdout
