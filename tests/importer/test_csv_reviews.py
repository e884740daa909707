"""Rows of tables become reviews, or are left out and named with their line.

Sections: tables of known tools - cells - rows that are faulty - a scale that may be
another - rows that agree in every cell - the same table again - comments of WordPress -
reviews of Google Maps by Apify.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lab.export_lab import HEADER, ROW, Shop

from reviewslib.dataset.contract import shipped_contract
from reviewslib.dataset.counting import readable
from reviewslib.faults import BadData
from reviewslib.importer.csv_reviews import read_csv
from reviewslib.importer.exports import Export, ReviewInFile
from reviewslib.importer.headers import HEADER_SETS
from reviewslib.importer.options import Options, TableSettings
from reviewslib.importer.questions import NeedsDecision

TABLES = Path(__file__).with_name("tables")
T = "2025-01-01T00:00:00Z"


def read(text: str, encoding: str = "utf-8", **said: Any) -> Export:
    """The export in a table; `said` is what the owner says of it."""
    options = Options(table=TableSettings(**said))
    return read_csv(text.encode(encoding), "a.csv", T, options, shipped_contract())


def only(export: Export) -> ReviewInFile:
    """The one review of an export."""
    (record,) = export.records
    assert record.review
    return record.review


# ---- Tables of known tools ----


@dataclass(frozen=True)
class Tool:
    """A tool, and what its export leaves open."""

    name: str
    words: tuple[str, ...] = ()
    hidden: int = 0  # reviews of `tables/NAME.csv` that it does not show


TOOLS = (
    Tool("Apify Google Maps reviews"),
    Tool("Judge.me", hidden=3),
    Tool("Loox", hidden=1),
    Tool("Outscraper"),
    Tool("Shopify Product Reviews", hidden=1),
    # Their reviews come from the owner's website.
    Tool("Site Reviews", ("--source", "web")),
    Tool("WooCommerce", ("--source", "web")),
    # Its answers stand in rows of their own.
    Tool("WooCommerce comments", ("--replies-by", "The Shop"), hidden=2),
    Tool("Trustpilot"),
    Tool("Yotpo", hidden=2),
)


@pytest.mark.parametrize("tool", [pytest.param(tool, id=tool.name) for tool in TOOLS])
def test_the_export_of_a_known_tool_needs_no_map(
    shop: Shop, assert_reviewed: Callable[[Path, str], None], tool: Tool
) -> None:
    shop.take(TABLES / f"{tool.name}.csv", "--name", "B", *tool.words)

    stored = readable(shop.document["reviews"]).decode()
    assert_reviewed(TABLES / f"{tool.name}.json", stored)


@pytest.mark.parametrize("tool", [pytest.param(tool, id=tool.name) for tool in TOOLS])
def test_reviews_that_a_tool_hides_are_counted_and_not_served(
    shop: Shop, tool: Tool
) -> None:
    told = shop.told(TABLES / f"{tool.name}.csv", "--name", "B", *tool.words)

    count = f"not verified or not published, so not served: {tool.hidden}\n"
    assert (count in told) is (tool.hidden > 0)
    hidden = [r for r in shop.reviews.values() if r.get("verified") is False]
    assert len(hidden) == tool.hidden


def test_every_known_tool_is_tried_and_has_its_evidence() -> None:
    evidence = {name: tool["evidence"] for name, tool in HEADER_SETS.items()}

    assert evidence.keys() == {tool.name for tool in TOOLS}
    assert all(evidence.values())


def test_a_review_that_its_tool_hides_later_is_no_longer_served(shop: Shop) -> None:
    shown = (TABLES / "Loox.csv").read_text()
    shop.take(shop.file("a.csv", shown), "--name", "B")
    assert shop.reviews["loox-7"]["verified"] is True

    shop.take(shop.file("a.csv", shown.replace("Active", "Hidden")))

    assert shop.reviews["loox-7"]["verified"] is False


def test_a_table_with_the_templates_header_needs_no_map(shop: Shop) -> None:
    shop.take(shop.csv(ROW, header=HEADER), "--name", "B")

    assert shop.only() == {
        "id": "fb-7",
        "author": "Ann",
        "rating": 5,
        "date": "2024-01-02",
        "text": "Good",
        "source": "fb",
        "source_url": "https://fb.example/7",
        "owner_reply": {"text": "Thanks", "date": "2024-01-03"},
        "updated": None,
    }


# ---- Cells ----

HEAD = "author,rating,date,source,text"


def row_with_text(cell: str) -> str:
    return f"{HEAD}\nAnn,5,2024-01-02,fb,{cell}\n"


TEXTS = [
    pytest.param("'=1+1", "=1+1", id="a formula that a program made harmless"),
    pytest.param("'-5 stars", "-5 stars", id="a minus that a program made harmless"),
    pytest.param("'tis good", "'tis good", id="an apostrophe of the customer"),
    pytest.param("NULL", None, id="nothing, as a database writes it"),
    pytest.param("nan", None, id="nothing, as pandas writes it"),
    pytest.param("", None, id="nothing"),
    pytest.param('"So\nlong"', "So\nlong", id="two lines"),
]


@pytest.mark.parametrize(("cell", "text"), TEXTS)
def test_a_cell_is_read_as_its_program_meant_it(cell: str, text: str | None) -> None:
    assert only(read(row_with_text(cell)))["text"] == text


def test_a_name_of_two_lines_becomes_one_line() -> None:
    review = only(read(f'{HEAD}\n"Ann\nRoe",5,2024-01-02,fb,x\n'))

    assert review["author"] == "Ann Roe"


def test_a_reply_keeps_its_lines() -> None:
    text = f'{HEAD},reply\nAnn,5,2024-01-02,fb,Hi,"So\nlong"\n'

    assert only(read(text))["owner_reply"] == {"text": "So\nlong"}


def test_a_reply_that_stands_as_the_text_too_is_the_reply_alone() -> None:
    review = only(read(f"{HEAD},reply\nAnn,5,2024-01-02,fb,Hi,Hi\n"))

    assert review["owner_reply"] == {"text": "Hi"}
    assert review["text"] is None


def test_names_of_columns_may_have_capitals_signs_and_an_empty_one() -> None:
    head = "Author;RATING;date;Source-URL;source;"

    review = only(read(f"{head}\nAnn;5;2024-01-02;https://a.example;fb;\n"))

    assert review["source_url"] == "https://a.example"


def test_a_remark_on_the_encoding_is_said_of_the_table() -> None:
    export = read(f"{HEAD}\nÅse,5,2024-01-02,fb,Très bien\n", encoding="cp1252")

    assert only(export)["author"] == "Åse"
    assert export.notes[0].startswith("a.csv: not UTF-8; read as cp1252; ")


# ---- Rows that are faulty ----

FAULTY_ROWS = [
    pytest.param(
        "1;Bo;positive;2024-01-02",
        '"positive" is not a number of stars',
        id="a word as rating",
    ),
    pytest.param("1;Bo;5", "the row has 3 cells and the header 4", id="a cell too few"),
    pytest.param("1;Bo;5;NaN", "no date", id="no date"),
    pytest.param(
        "1e+9;Bo;5;2024-01-02",
        'a spreadsheet has damaged the id "1e+9"; export it anew',
        id="a rounded id",
    ),
]


@pytest.mark.parametrize(("row", "reason"), FAULTY_ROWS)
def test_a_faulty_row_is_named_with_its_line_and_the_others_are_read(
    row: str, reason: str
) -> None:
    good = [f"{number};Bo;5;2024-01-02" for number in range(9)]

    export = read("\n".join(["", "id;author;rating;date", row, *good]), source="fb")

    assert [str(fault) for fault in export.failed] == [f"a.csv line 3: {reason}"]
    assert len([record for record in export.records if record.review]) == 9


def test_a_row_whose_id_is_damaged_may_be_any_review() -> None:
    damaged = read(
        "id,author,rating,date\n1e+9,Bo,5,2024-01-02\n7,Bo,5,2024-01-02\n"
        "8,Bo,5,2024-01-02\n",
        source="fb",
    )

    assert damaged.has_unknown


def test_a_row_without_enough_cells_leaves_no_question_about_its_source() -> None:
    export = read(f"{HEAD}\nAnn,5,2024-01-02,fb,Hi\nBo,5\n")

    assert only(export)["author"] == "Ann"


def test_a_row_has_its_day_and_the_time_of_its_table() -> None:
    (record,) = read("author,rating,date\nAnn,5,2024-01-02\n", source="fb").records

    assert record.created == "2024-01-02"
    assert record.time == T


def table_of(faulty: int, valid: int) -> str:
    rows = faulty * "Bo,no,2024-01-02,fb\n" + valid * "Ann,5,2024-01-02,fb\n"
    return f"author,rating,date,source\n{rows}"


FEW_FAULTS = [
    pytest.param(1, 2, id="one of three"),
    pytest.param(2, 2, id="two of four"),
    pytest.param(3, 27, id="a tenth"),
]


@pytest.mark.parametrize(("faulty", "valid"), FEW_FAULTS)
def test_a_few_faulty_rows_are_left_out(faulty: int, valid: int) -> None:
    assert len(read(table_of(faulty, valid)).records) == valid


MANY_FAULTS = [
    pytest.param(1, 0, id="the only one"),
    pytest.param(3, 2, id="three of five"),
    pytest.param(4, 27, id="more than a tenth"),
]


@pytest.mark.parametrize(("faulty", "valid"), MANY_FAULTS)
def test_many_faulty_rows_stop_an_import(faulty: int, valid: int) -> None:
    with pytest.raises(NeedsDecision, match="more than a tenth"):
        read(table_of(faulty, valid))


def day_of(days: int) -> str:
    """A day so many days after today."""
    return f"{datetime.now(UTC).date() + timedelta(days)}"


def test_a_day_may_be_one_ahead_since_a_customers_zone_may_be(shop: Shop) -> None:
    rows = [["Bo", "5", day_of(days), "x"] for days in (0, 1)]

    shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")

    assert max(review["date"] for review in shop.reviews.values()) == day_of(1)


def test_dates_of_the_future_are_faulty_those_of_replies_too(shop: Shop) -> None:
    rows = [
        ["Bo", "5", "2024-01-01", "", ""],
        ["Bo", "5", day_of(3), "", ""],
        ["Cy", "5", "2024-01-01", "Thanks", "2131-01-01"],
    ]
    path = shop.csv(*rows, header="author rating date reply reply_date")

    told = shop.told(path, "--name", "B", "--source", "fb")

    assert f'a.csv line 3: "{day_of(3)}" is in the future' in told
    assert 'a.csv line 4: "2131-01-01" is in the future' in told


def test_a_file_that_is_no_table_is_named_by_how_it_begins() -> None:
    with pytest.raises(BadData) as refused:
        read("Dear Ann,\nhello")

    kind = 'not a known export, and not a table; it begins with "Dear Ann"'
    assert refused.value.lines() == [f"a.csv: {kind}"]


# ---- A scale that may be another ----


def remarks_on_scale(highest: str, scale: str) -> list[str]:
    """What is said of a table with this highest rating, of which this scale is told."""
    rows = f"Ann,1,2024-01-02\nBo,{highest},2024-01-02\n"
    return read(f"author,rating,date\n{rows}", source="fb", scale=scale).urgent_notes


DOUBTED = [
    pytest.param("5", "10", "5", id="five of ten"),
    pytest.param("4", "50", "5 or 10", id="four of fifty"),
    pytest.param("40", "100", "50", id="forty of a hundred"),
    pytest.param("2", "4", "N", id="two of four, and no tool has a lower scale"),
]


@pytest.mark.parametrize(("highest", "scale", "others"), DOUBTED)
def test_a_scale_of_which_no_rating_is_above_the_half_is_doubted(
    highest: str, scale: str, others: str
) -> None:
    (remark,) = remarks_on_scale(highest, scale)

    assert f"no rating is above {highest} of {scale}; " in remark
    assert remark.endswith(f"say --scale {others}")


SURE = [
    pytest.param("6", "10", id="above the half"),
    pytest.param("2", "5", id="the scale of stars"),
    pytest.param("2", "", id="no scale told"),
]


@pytest.mark.parametrize(("highest", "scale"), SURE)
def test_a_scale_that_is_used_or_usual_is_not_doubted(highest: str, scale: str) -> None:
    assert remarks_on_scale(highest, scale) == []


# ---- Rows that agree in every cell ----

DOUBLED = [
    pytest.param(
        "Customer;Stars;Day;Words;Product",
        "Ann;5;2024-01-02;Good bread;B1",
        {"author": "Customer", "text": "Words"},
        id="of a table that a scraper wrote twice",
    ),
    pytest.param(
        "Customer;Stars;Day;Title",
        "Ann;5;2024-01-02;Good",
        {"author": "Customer", "title": "Title", "text": "-"},
        id="with a title alone",
    ),
]


@pytest.mark.parametrize(("header", "row", "columns"), DOUBLED)
def test_rows_that_agree_in_every_cell_are_one(
    header: str, row: str, columns: dict[str, str]
) -> None:
    others = {"rating": "Stars", "date": "Day", "reply": "-", "status": "-"}

    export = read(f"{header}\n{row}\n{row}\n{row}\n", source="fb", map=columns | others)

    assert len(export.records) == 1
    assert export.counts["doubled rows, left out"] == 2


DIFFERENT = [
    pytest.param("Ann,5,2024-01-02,Good!,B1", id="another text"),
    pytest.param("Ann,4,2024-01-02,Good,B1", id="other stars"),
    pytest.param("Ann,5,2024-01-02,Good,B2", id="another product"),
]


@pytest.mark.parametrize("row", DIFFERENT)
def test_rows_of_which_one_cell_differs_are_two(row: str) -> None:
    columns = {name: name for name in ("author", "rating", "date", "text")}
    answers = columns | {"reply": "-", "status": "-"}

    text = f"author,rating,date,text,product\nAnn,5,2024-01-02,Good,B1\n{row}\n"

    assert len(read(text, source="fb", map=answers).records) == 2


WITHOUT_NAME_OR_WORDS = [
    pytest.param(",5,2024-01-02,fb,Good", id="without a name"),
    pytest.param("Ann,5,2024-01-02,fb,", id="without words"),
    pytest.param("Anonymous,5,2024-01-02,fb,Good", id="with a name of many"),
]


@pytest.mark.parametrize("row", WITHOUT_NAME_OR_WORDS)
def test_rows_that_two_customers_may_have_written_stay_and_are_counted(
    row: str,
) -> None:
    export = read(f"{HEAD}\n{row}\n{row}\n")

    assert len(export.records) == 2
    kept = "rows that agree in every cell, without name or words, all kept"
    assert export.counts[kept] == 1


def test_rows_with_ids_are_told_apart_by_them() -> None:
    rows = "7,Ann,5,2024-01-02,Good\n8,Ann,5,2024-01-02,Good\n"

    export = read(f"id,author,rating,date,text\n{rows}", source="fb")

    assert len(export.records) == 2


# ---- The same table again ----


FEW_COLUMNS = "id author rating date source"


def test_a_column_that_is_absent_changes_nothing(shop: Shop) -> None:
    shop.take(shop.csv(ROW, header=HEADER), "--name", "B")
    before = shop.only()

    few = shop.csv(["7", "Ann", "5", "2024-01-02", "fb"], header=FEW_COLUMNS)
    shop.take(few)

    assert shop.only() == before


def test_a_cell_that_is_empty_clears_its_field(shop: Shop) -> None:
    shop.take(shop.csv(ROW, header=HEADER), "--name", "B")
    before = shop.only()

    cleared = [*ROW[:4], "nan", "fb", "", "", ""]
    shop.take(shop.csv(cleared, header=HEADER))

    empty = {"text": None, "source_url": None, "owner_reply": None}
    assert shop.only() == before | empty


def test_columns_that_are_not_used_are_named_once(shop: Shop) -> None:
    path = TABLES / "Loox.csv"

    first = shop.told(path, "--name", "B")
    second = shop.told(path)

    unused = 'columns that are not used: "full_name", "verified_purchase"\n'
    assert f"{path}: {unused}" in first
    assert "not used" not in second


# ---- Comments of WordPress: answers are rows of their own ----

COMMENTS = [
    "comment_ID",
    "comment_author",
    "rating",
    "comment_date_gmt",
    "comment_content",
    "comment_approved",
    "comment_parent",
]


def comments(*rows: Mapping[str, str], columns: Sequence[str] = COMMENTS) -> str:
    """A table of comments; what a row does not say is as usual."""
    usual = {
        "comment_author": "Ines",
        "rating": "5",
        "comment_date_gmt": "2024-01-05 09:00:00",
        "comment_content": "Good",
        "comment_approved": "1",
        "comment_parent": "0",
    }
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore")
    writer.writeheader()
    for number, row in enumerate(rows, 1):
        writer.writerow({"comment_ID": str(number)} | usual | row)
    return out.getvalue()


def answer(author: str = "The Shop", parent: str = "1", **more: str) -> dict[str, str]:
    """An answer to the first comment."""
    row = {"comment_author": author, "comment_parent": parent, "rating": ""}
    return row | {"comment_content": "Thanks"} | more


def test_the_answer_of_the_shop_is_the_reply() -> None:
    export = read(comments({}, answer()), replies_by=["the shop"])

    assert only(export)["owner_reply"] == {"text": "Thanks"}
    assert export.records[0].replied == "2024-01-05T09:00:00Z"


def test_of_two_answers_of_the_shop_the_newer_counts() -> None:
    older = answer(comment_date_gmt="2024-01-06 09:00:00")
    newer = answer(comment_date_gmt="2024-01-07 09:00:00", comment_content="Again")

    export = read(comments({}, newer, older), replies_by=["The Shop"])

    assert only(export)["owner_reply"] == {"text": "Again"}


WITH_PARENTS = "id;who;stars;day;words;parent"
PARENT_COLUMNS = {
    "id": "id",
    "author": "who",
    "rating": "stars",
    "date": "day",
    "text": "words",
    "reply": "-",
    "status": "-",
    "parent": "parent",
}


def test_the_newer_answer_is_told_by_its_date_in_any_form() -> None:
    rows = [
        "1;Ann;5;05/03/2024;Good;",
        "2;Shop;;09/03/2024;Newer;1",
        "3;Shop;;10/02/2024;Older;1",
    ]
    said = {"map": PARENT_COLUMNS, "replies_by": ["Shop"], "date_order": "dmy"}

    export = read("\n".join([WITH_PARENTS, *rows, ""]), source="web", **said)

    assert only(export)["owner_reply"] == {"text": "Newer"}


def test_answers_in_a_table_without_names_are_left_out() -> None:
    rows = ["1;Ann;5;2024-03-05;Good;", "2;Shop;;2024-03-06;Thanks;1"]
    columns = PARENT_COLUMNS | {"author": "-"}

    export = read("\n".join([WITH_PARENTS, *rows, ""]), source="web", map=columns)

    assert export.counts["answers of others, left out"] == 1
    assert only(export)["text"] == "Good"


LEFT_OUT = [
    pytest.param(answer("Bo"), "answers of others, left out", id="of another customer"),
    pytest.param(
        answer(parent="99"),
        "answers to answers or to rows that are not there, left out",
        id="to nothing that is there",
    ),
    pytest.param(
        answer(comment_approved="hold"),
        "answers that are not approved, left out",
        id="not approved",
    ),
]


@pytest.mark.parametrize(("row", "reason"), LEFT_OUT)
def test_an_answer_that_is_not_the_shops_reply_is_counted(
    row: dict[str, str], reason: str
) -> None:
    export = read(comments({}, answer(), row), replies_by=["The Shop"])

    assert export.counts[reason] == 1
    assert only(export)["owner_reply"] == {"text": "Thanks"}


def test_a_parent_that_became_a_decimal_is_the_same_parent() -> None:
    """A column of whole numbers with an empty cell is written so by pandas."""
    review = {"comment_ID": "11.0", "comment_parent": ""}

    export = read(comments(review, answer(parent="11.0")), replies_by=["The Shop"])

    assert only(export)["owner_reply"] == {"text": "Thanks"}


def test_who_answers_is_asked_with_the_counts_of_answers() -> None:
    text = comments({}, answer("The Shop"), answer("The Shop"), answer("Bo"))

    with pytest.raises(NeedsDecision) as asked:
        read(text)

    assert asked.value.lines()[1:3] == ["  The Shop: 2", "  Bo: 1"]


def test_a_name_that_does_not_answer_is_refused() -> None:
    with pytest.raises(NeedsDecision, match="nobody who answers is called the baker"):
        read(comments({}, answer()), replies_by=["The Baker"])


def test_comments_of_the_database_itself_are_read_without_a_map() -> None:
    """`wp_comments`, joined with the rating, in its own order and with more columns."""
    columns = [*reversed(COMMENTS), "comment_agent", "comment_type"]

    export = read(comments({"comment_content": "Good &amp; fresh"}, columns=columns))

    assert only(export)["text"] == "Good & fresh"
    assert export.records[0].source == "woocommerce"


def test_a_time_of_the_website_is_used_where_there_is_no_gmt() -> None:
    columns = [name.removesuffix("_gmt") for name in COMMENTS]
    text = comments({"comment_date": "2024-01-05 10:00:00"}, columns=columns)

    (record,) = read(text).records

    assert record.created == "2024-01-05T10:00:00"


# ---- Reviews of Google Maps by Apify ----

APIFY = [
    "reviewId",
    "name",
    "stars",
    "publishedAtDate",
    "text",
    "reviewUrl",
    "responseFromOwnerText",
    "responseFromOwnerDate",
]


def test_columns_of_apify_may_stand_in_any_order_among_others() -> None:
    cells = {
        "reviewId": "Ch1",
        "name": "Ann Roe",
        "stars": "4",
        "publishedAtDate": "2026-01-05T10:20:30.000Z",
        "text": "Gott",
        "likesCount": "0",
        "isLocalGuide": "true",
    }
    columns = ["likesCount", *reversed(APIFY), "isLocalGuide"]
    row = ",".join(cells.get(name, "") for name in columns)

    (record,) = read(f"{','.join(columns)}\n{row}\n").records

    assert record.source == "google"
    assert record.native_id == "Ch1"
    assert record.created == "2026-01-05T10:20:30Z"


def test_a_translation_in_a_table_of_apify_is_cut_from_text_and_reply() -> None:
    text = "Gut\n\n(Translated by Google)\nGood"
    reply = "(Translated by Google) Thanks\n\n(Original)\nDanke"
    row = ["Ch1", "Ann", "5", "2026-01-05", text, "https://m.example", reply, ""]
    out = io.StringIO()
    csv.writer(out).writerows([APIFY, row])

    review = only(read(out.getvalue()))

    assert review["text"] == "Gut"
    assert review["owner_reply"] == {"text": "Danke"}
