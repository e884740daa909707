"""Programs that some tests need and that pip cannot install.

Without one a test is skipped with the reason; in CI, where `.ci/run` has installed them, it fails instead.
"""

import os
import shutil

import pytest


def program(name: str) -> str:
    """The path of a program; skips the test, or fails it in CI, when there is none."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        missing(f"{name} is not installed; on Debian `.ci/run` installs it")
    return found or ""


def missing(reason: str) -> None:
    """Skip the test for want of something; fail it in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
