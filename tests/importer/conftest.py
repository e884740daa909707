"""The fake of Google's API, for the tests of an import from it."""

from collections.abc import Iterator

import pytest
from lab.google_lab import FakeGoogle


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as fake:
        yield fake
