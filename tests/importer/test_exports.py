"""An export names what may be wrong with it, whatever its format."""

from collections.abc import Sequence

from reviewslib.dataset.contract import shipped_contract
from reviewslib.faults import Fault
from reviewslib.importer.exports import Export, Record
from reviewslib.importer.options import Options


def export_of(reviews: Sequence[tuple[str, str]], source: str = "fb") -> Export:
    """An export with reviews of these authors and texts."""
    export = Export("a.csv", Options(), shipped_contract())
    for number, (author, text) in enumerate(reviews):
        position = Fault("a.csv", (), "")
        record = Record(position, "2025-01-01T00:00:00Z", "table", source, f"{number}")
        record.review = {"author": author, "rating": 5, "text": text}
        record.created = "2024-01-02"
        export.add(record, lambda author=author: author)
    return export.finish()


def test_damaged_letters_are_counted_by_review() -> None:
    authors = ["BjÃ¸rn", "BjÃ¸rn", "Bjørn", "Bo", "Привет"]

    export = export_of([(author, "x") for author in authors])

    damage = "letters look damaged (“BjÃ¸rn”) in 2 reviews; export them anew"
    assert export.urgent_notes == [f"a.csv: {damage}"]


UNKNOWN_MARKER = "Gott.\n\n(Oversat af Google)\nGood."


def test_markers_of_an_unknown_language_are_named_with_their_count() -> None:
    texts = [UNKNOWN_MARKER, UNKNOWN_MARKER, "Fine"]

    export = export_of([("Ann", text) for text in texts], source="google")

    (note,) = export.urgent_notes
    assert note.endswith("published as it is: “(Oversat af Google)” (2)")


def test_what_looks_like_a_marker_at_another_source_is_the_customers() -> None:
    assert export_of([("Ann", UNKNOWN_MARKER)]).urgent_notes == []
