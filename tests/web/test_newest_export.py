"""The service says when reviews were last exported, whatever the importer left."""

from pathlib import Path

import pytest
from lab.export_lab import Shop

from reviewslib.web.newest_export import newest_export


def test_an_import_leaves_the_time_of_its_export(shop: Shop) -> None:
    shop.take(shop.takeout(9, range(3)))

    assert newest_export(shop.data) == "2025-01-10T23:00:00Z"


def test_the_newest_export_counts_and_not_the_last_one(shop: Shop) -> None:
    shop.take(shop.takeout(12, range(3)))
    shop.take(shop.takeout(9, range(3)))

    assert newest_export(shop.data) == "2025-01-13T23:00:00Z"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"", id="empty"),
        pytest.param(b'{"newest_export":"2025-01', id="cut"),
        pytest.param(b'{"newest_export":5}', id="no text"),
        pytest.param(b"\xff\xfe", id="damaged"),
    ],
)
def test_a_state_that_cannot_be_read_is_no_fault(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "import-state.json").write_bytes(content)

    assert newest_export(tmp_path) is None
