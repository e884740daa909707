"""The data files are read whole and dated; whatever cannot be read is a fault."""

import json
from pathlib import Path

import pytest

from reviewslib import files
from reviewslib.faults import BadData
from reviewslib.web import data_files
from reviewslib.web.data_files import DataFiles

MINIMAL = {"business": {"name": "X"}, "reviews": []}
ONE = MINIMAL | {
    "reviews": [{"id": "a", "author": "Ann", "rating": 5, "date": "2026-01-01"}]
}


def test_without_insights_the_directory_says_since_when(tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.json"
    reviews.write_text(json.dumps(ONE))

    read = data_files.read_files(tmp_path)

    assert read == DataFiles(
        reviews=reviews.read_bytes(),
        reviews_changed=files.last_change(reviews),
        insights=None,
        insights_changed=files.last_change(tmp_path),
    )


def test_insights_are_read_and_dated(tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.json"
    insights = tmp_path / "insights.json"
    reviews.write_text(json.dumps(ONE))
    insights.write_bytes(b"{}")

    read = data_files.read_files(tmp_path)

    assert read == DataFiles(
        reviews=reviews.read_bytes(),
        reviews_changed=files.last_change(reviews),
        insights=b"{}",
        insights_changed=files.last_change(insights),
    )


def test_only_files_that_exist_have_a_stamp(tmp_path: Path) -> None:
    reviews = tmp_path / "reviews.json"
    reviews.write_text(json.dumps(ONE))

    stamps = data_files.file_stamps(tmp_path)

    assert stamps == {"reviews.json": files.stamp(reviews.stat())}


def test_every_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "insights.json").mkdir()

    with pytest.raises(BadData) as caught:
        data_files.read_files(tmp_path)

    assert caught.value.lines() == [
        f"reviews.json: there is no such file in {tmp_path}; see --data",
        "insights.json: cannot be read: it is not a regular file",
    ]
