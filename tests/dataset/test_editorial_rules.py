"""Quotations lose the marks around them, and no others."""

import pytest

from reviewslib.dataset.editorial_rules import unquoted

QUOTATIONS = [
    pytest.param("Fresh bread.", "Fresh bread.", id="no marks"),
    pytest.param(' "Fresh bread." ', "Fresh bread.", id="straight marks"),
    pytest.param("“Fresh bread.”", "Fresh bread.", id="English"),
    pytest.param("„Frisches Brot.“", "Frisches Brot.", id="German"),
    pytest.param("»Frisches Brot.«", "Frisches Brot.", id="German books"),
    pytest.param("«\u00a0Du pain frais.\u00a0»", "Du pain frais.", id="French"),
    pytest.param("「焼きたてです。」", "焼きたてです。", id="Japanese"),
    pytest.param(
        "„Ofenfrisch“ stimmt hier wirklich.",
        "„Ofenfrisch“ stimmt hier wirklich.",
        id="a quoted word at the beginning",
    ),
    pytest.param('Bread is "fresh"', 'Bread is "fresh"', id="a quoted word at the end"),
    pytest.param('"Fresh" is "fresh"', '"Fresh" is "fresh"', id="one at each end"),
    pytest.param("“A “fresh” bread”", "“A “fresh” bread”", id="a quotation inside"),
    pytest.param('"', '"', id="one mark alone"),
    pytest.param("", "", id="nothing"),
]


@pytest.mark.parametrize(("written", "words"), QUOTATIONS)
def test_only_marks_around_the_whole_are_left_out(written: str, words: str) -> None:
    assert unquoted(written) == words
