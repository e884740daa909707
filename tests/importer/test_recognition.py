"""A record finds its stored review by ids, moments, and rows, in this order."""

from reviewslib.faults import Fault
from reviewslib.importer.exports import Record
from reviewslib.importer.recognition import Register, entry_of, is_own, shifted
from reviewslib.importer.state import Entry

NOWHERE = Fault("a.csv", (), "")


def row(author: str, text: str = "x", day: str = "2024-01-05", id: str = "") -> Record:
    """A row of a table."""
    record = Record(NOWHERE, "2024-02-01T00:00:00Z", "table", "fb", id)
    record.review = {"author": author, "text": text, "rating": 5}
    record.created = day
    return record


def ids(register: Register, *records: Record) -> list[str]:
    """The ids that the records of one table get, in their order."""
    found = {id(record): name for record, name in register.identify(records)}
    return [found[id(record)] for record in records]


def test_a_row_keeps_its_id_when_its_text_is_edited() -> None:
    register = Register({})
    (first,) = ids(register, row("Ann", "Good"))

    (second,) = ids(register, row("Ann", "Better"))

    assert second == first


def test_a_row_is_found_a_day_apart_by_its_text() -> None:
    register = Register({})
    (first,) = ids(register, row("Ann", "Good"))

    (second,) = ids(register, row("Ann", "Good", day="2024-01-06"))

    assert second == first


def test_among_equals_the_one_with_the_same_text_keeps_its_id() -> None:
    register = Register({})
    one, two = ids(register, row("Ann", "one"), row("Ann", "two"))

    again = ids(register, row("Ann", "two"), row("Ann", "one"))

    assert again == [two, one]


def test_a_native_id_decides_against_author_and_day() -> None:
    register = Register({})

    assert ids(register, row("Ann", id="7"), row("Ann", id="8")) == ["fb-7", "fb-8"]


def test_an_entry_is_made_from_a_review_when_the_state_is_lost() -> None:
    entry = entry_of(
        {"id": "fb-7", "author": "Ann", "date": "2024-01-05", "source": "fb"}
    )

    assert entry.native == {"": "7"}
    assert entry.seen == "2024-01-05T23:59:59Z"
    assert isinstance(entry, Entry)


def test_an_id_that_does_not_begin_with_its_source_is_the_owners_own() -> None:
    assert is_own({"id": "mine", "source": "fb"})
    assert not is_own({"id": "fb-7", "source": "fb"})


def test_a_day_is_shifted_over_the_end_of_a_month() -> None:
    assert shifted("2024-02-29T23:00:00Z", 1) == "2024-03-01"
