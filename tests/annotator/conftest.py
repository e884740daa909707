"""A model server for each test of the annotator."""

from collections.abc import Iterator

import pytest
from model_server import ModelServer, model_server


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server
