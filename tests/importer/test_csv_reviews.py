"""Tables: headers are recognized or explained once; rows are imported or reported."""

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lab.export_lab import HEADER, ROW, Shop, table

from reviewslib.dataset.contract import BadData, shipped_contract
from reviewslib.dataset.counting import readable
from reviewslib.importer import command
from reviewslib.importer.csv_reviews import read_csv
from reviewslib.importer.exports import Export
from reviewslib.importer.headers import HEADER_SETS, NO_COLUMN, TO_ANSWER
from reviewslib.importer.options import Options, TableSettings
from reviewslib.importer.questions import NeedsDecision

T = "2025-01-01T00:00:00Z"
NO_NAME = "--map does not name a column for"


def read(text: str | bytes, **said: Any) -> Export:
    content = text.encode() if isinstance(text, str) else text
    return read_csv(
        content, "a.csv", T, Options(table=TableSettings(**said)), shipped_contract()
    )


def all_of(**columns: str) -> dict[str, str]:
    """A map that answers for every field."""
    return dict.fromkeys(TO_ANSWER, NO_COLUMN) | columns


TABLES = Path(__file__).with_name(
    "tables"
)  # an export of each tool, and the reviews that are stored
NO_SOURCE = (
    "Site Reviews",
    "WooCommerce",
)  # tools whose reviews come from the owner's website


WITH_ANSWERS = ("WooCommerce comments",)  # in rows of their own


@pytest.mark.parametrize("tool", HEADER_SETS)
def test_the_export_of_a_known_tool_needs_no_map(
    shop: Shop, assert_reviewed: Callable[[Path, str], None], tool: str
) -> None:
    source = ["--source", "web"] if tool in NO_SOURCE else []
    answers = ["--replies-by", "The Shop"] if tool in WITH_ANSWERS else []
    told = shop.told(TABLES / f"{tool}.csv", "--name", "B", *source, *answers)
    reviews = shop.document["reviews"]
    assert_reviewed(TABLES / f"{tool}.json", readable(reviews).decode())
    hidden = sum(not review.get("verified", True) for review in reviews)
    assert (
        f"not verified or not published, so not served: {hidden}\n" in told
    ) is bool(hidden)
    assert HEADER_SETS[tool]["evidence"]


def test_a_review_that_its_tool_hides_later_is_no_longer_served(shop: Shop) -> None:
    shown = (TABLES / "Loox.csv").read_text()
    for text, is_served in ((shown, True), (shown.replace("Active", "Hidden"), False)):
        shop.take(shop.file("a.csv", text), "--name", "B")
        assert shop.reviews["loox-7"]["verified"] is is_served


def test_the_template_is_imported_as_it_is(shop: Shop) -> None:
    with pytest.raises(SystemExit):
        command.main(["--template"])
    assert shop.output().out == HEADER.replace(" ", ",") + "\n"
    shop.take(shop.csv(ROW, header=HEADER), "--name", "B")
    plain = dict(zip(HEADER.split()[1:7], ROW[1:7], strict=True)) | {
        "rating": 5,
        "id": "fb-7",
    }
    assert shop.only() == plain | {
        "updated": None,
        "owner_reply": {"text": "Thanks", "date": "2024-01-03"},
    }


def test_columns_that_are_not_used_are_named_once(shop: Shop) -> None:
    path = shop.file("a.csv", re.sub("(?m)$", ",", (TABLES / "Loox.csv").read_text()))
    told = f'{path}: columns that are not used: "full_name", "verified_purchase"\n'
    assert told in shop.told(path, "--name", "B")
    assert "not used" not in shop.told(path)


# ---- Unknown headers ----

UNKNOWN = "Author name,Stars,Date,Text,Hidden,\n,,,,,\nAnn,5,2024-01-02,Good,,x\n"


def test_an_unknown_header_is_a_question(shop: Shop) -> None:
    other = shop.csv(ROW, header=HEADER)
    path = shop.file("b.csv", UNKNOWN)
    lines = shop.refused(other, path, "--name", "B").splitlines()
    assert lines[:2] == [f"{path}: the header is unknown.", "Its columns are:"]
    columns = zip(
        *(line.split(",") for line in UNKNOWN.split("\n,,,,,\n")), strict=True
    )
    assert lines[2:8] == [
        f'  "{name}", such as "{value.strip()}"' for name, value in columns
    ]
    answers = "author=YOUR,rating=YOUR,date=YOUR,text=YOUR,source=YOUR,reply=YOUR,status=!Hidden"
    assert lines[-2] == f"  --map {answers}"


NAMED = {"author": "who", "rating": "mark", "date": "day"}
NOT_ONE = "not exactly one column is called"
MAPPED = all_of(**NAMED)
OPEN = [  # a header, what --map says, the fault
    ("who,mark,day", {}, "the header is unknown"),
    ("id,text,source", {}, "the header is unknown"),
    (
        "nickname,rating,date,review",
        {},
        "the header is unknown",
    ),  # of Loox, but a status may be hidden
    (
        "author,rating,date",
        dict.fromkeys(["author"], "author"),
        f"{NO_NAME} {', '.join(TO_ANSWER[1:])}",
    ),
    ("who,mark,day,who", MAPPED, f'{NOT_ONE} "who"; --map applies to all tables'),
    ("who,mark,on", MAPPED, f'{NOT_ONE} "day"; --map applies to all tables'),
    (
        "author,rating,date",
        MAPPED,
        f'{NOT_ONE} "who", "mark", "day"; --map applies to all tables',
    ),
    *(
        ("who,mark,day", MAPPED | {field: NO_COLUMN}, f"{NO_NAME} {field}")
        for field in ("rating", "date")
    ),
    *(
        ("who,mark,day", MAPPED | {field: ""}, f"{NO_NAME} {field}")
        for field in TO_ANSWER
    ),
]


@pytest.mark.parametrize(("header", "columns", "fault"), OPEN)
def test_a_map_names_one_column_for_each_field(
    header: str, columns: dict[str, str], fault: str
) -> None:
    said = {"map": {field: column for field, column in columns.items() if column}}
    with pytest.raises(NeedsDecision) as asked:
        read(f"{header}\nAnn,5,2024-01-02\n", **said)
    assert asked.value.lines()[0] == f"a.csv: {fault}."


def test_a_column_with_commas_may_have_a_map_flag_of_its_own(shop: Shop) -> None:
    path = shop.file("a.csv", '"Customer, and who",Stars,Posted On\nAnn,5,2024-01-02\n')
    maps = [
        "author=customer, and who",
        "rating=STARS",
        "date=posted_on",
        "text=-",
        "reply=-",
        "status=-",
    ]
    shop.take(
        path, *(f"--map={pair}" for pair in maps), "--name", "B", "--source", "fb"
    )
    assert shop.only()["author"] == "Ann"


QUESTIONS = {  # by flag, a row and the question
    "--source": (
        "Ann,5,2024-01-02,",
        "it does not say where its reviews were published.",
    ),
    "--scale": ("Ann,8,2024-01-02,fb", 'the scale of the rating "8" is not known.'),
    "--date-order": (
        "Ann,5,05/03/2024,fb",
        "is the day or the month first in these dates?",
    ),
}


@pytest.mark.parametrize("flag", QUESTIONS)
def test_what_a_table_leaves_open_is_a_question(shop: Shop, flag: str) -> None:
    row, question = QUESTIONS[flag]
    path = shop.file("a.csv", f"author,rating,date,source\n{row}\n")
    told = shop.refused(path, "--name", "B")
    assert told.startswith(f"{path}: {question}") and f"\n  {flag} YOUR\n" in told


def test_the_source_of_a_table_with_the_templates_header_is_not_remembered(
    shop: Shop,
) -> None:
    path = shop.csv(["Eve", "5", "2024-01-05", ""])
    shop.take(path, "--name", "B", "--source", "fb")
    assert "it does not say where its reviews were published" in shop.refused(path)


MARKS = "Who Mark On By"
MARK_ROW = ["Ann", "4", "05/03/2024", "Bo"]
EXPLAINED = [
    "--map",
    "author=Who,rating=Mark,date=On,text=-,reply=-,status=-",
    "--scale",
    "10",
]
EXPLAINED += ["--source", "fb", "--date-order", "mdy", "--name", "B"]


@pytest.fixture
def explained(shop: Shop) -> Shop:
    """A shop that has explained the header of a table."""
    shop.take(shop.csv(MARK_ROW, header=MARKS), *EXPLAINED)
    return shop


CORRECTED = {  # by the right option: the review as it then is
    ("--source", "other"): {"source": "other"},
    ("--scale", "5"): {"rating": 4},
    ("--date-order", "dmy"): {"date": "2024-03-05"},
    ("--map", "author=By,rating=Mark,date=On,text=Who,reply=-,status=-"): {
        "author": "Bo",
        "text": "Ann",
    },
}


@pytest.mark.parametrize("option", CORRECTED)
def test_a_wrong_option_is_corrected_once_its_reviews_are_deleted(
    explained: Shop, option: tuple[str, str]
) -> None:
    wrong = explained.only()
    explained.file(
        "data/reviews.json", json.dumps(explained.document | {"reviews": []})
    )
    explained.take(explained.root / "a.csv", *option)
    explained.take(explained.root / "a.csv")
    assert explained.only() == wrong | CORRECTED[option] | {
        "id": explained.only()["id"]
    }


def test_dates_of_both_orders_are_a_question_that_an_answer_settles(shop: Shop) -> None:
    path = shop.csv(*(["Ann", "5", date, "x"] for date in ("13/02/2024", "02/13/2024")))
    options = ("--name", "B", "--source", "fb")
    assert "is the day or the month first in these dates?" in shop.refused(
        path, *options
    )
    shop.take(path, *options, "--date-order", "dmy")
    assert shop.only()["date"] == "2024-02-13"


# ---- Rows ----


HEAD = "author,rating,date,source,text"
LONG = "line\n" * 80 + "and so on"
READ: list[
    tuple[str, dict[str, object]]
] = [  # a table of one row, and fields of its review
    *(
        (f"{HEAD}\nAnn,5,2024-01-02,fb,{cell}\n", {"text": cell[1:]})
        for cell in ("'=1+1", "'-5 stars")
    ),
    (f"{HEAD}\nAnn,5,2024-01-02,fb,'tis good\n", {"text": "'tis good"}),
    *(
        (f"{HEAD}\nAnn,5,2024-01-02,fb,{cell}\n", {"text": None})
        for cell in ("NULL", "nan", "")
    ),
    (
        f'{HEAD}\n"Ann\nRoe",5,2024-01-02,fb,"{LONG} ""so"""\n',
        {"author": "Ann Roe", "text": f'{LONG} "so"'},
    ),
    (
        f"{HEAD},reply\nAnn,5,2024-01-02,fb,Hi,Hi\n",
        {"owner_reply": {"text": "Hi"}, "text": None},
    ),
    (
        f'{HEAD},reply\nAnn,5,2024-01-02,fb,,"So\nlong"\n',
        {"owner_reply": {"text": "So\nlong"}},
    ),
    (
        "Author;RATING;date;Source-URL;source;\nAnn;5;2024-01-02;https://a.example;fb;\n",
        {"rating": 5},
    ),
    (
        "\r\rauthor;rating;date;source;text\rAnn;5;2024-01-02;fb;a,b,c,d,e,f,g\r",
        {"text": "a,b,c,d,e,f,g"},
    ),
    (
        "\r\nauthor\trating\tdate\tsource\ttext\r\nAnn\t5\t2024-01-02\tfb\ta;b;c;d;e;f\r\n",
        {"author": "Ann"},
    ),
    (
        f"{HEAD}\nAnn,5,2024-01-02,fb,Hi\nBo,5\n",
        {"author": "Ann"},
    ),  # leaves no question about a source
]


@pytest.mark.parametrize(("text", "fields"), READ)
def test_a_row_is_read_as_its_tool_wrote_it(
    text: str, fields: dict[str, object]
) -> None:
    (record,) = read(text).records
    assert record.review and record.review | fields == record.review


FAULTY = {
    "1;Bo;positive;2024-01-02": '"positive" is not a number of stars',
    "1;Bo;5": "the row has 3 cells and the header 4",
    "1;Bo;5;NaN": "no date",
    "1e+9;Bo;5;2024-01-02": 'a spreadsheet has damaged the id "1e+9"; export it anew',
}


def test_a_faulty_row_is_named_with_the_number_of_its_line() -> None:
    valid = [f"{n};Bo;5;2024-01-02" for n in range(50)]
    lines = ["", "id;author;rating;date", ";Ann  Roe;5;2024-01-02", *FAULTY, *valid]
    export = read("\n".join(lines), source="fb")
    faults = [
        f"a.csv line {line}: {reason}" for line, reason in enumerate(FAULTY.values(), 4)
    ]
    assert list(map(str, export.failed)) == faults
    assert export.has_unknown, "a damaged id may be that of any review"
    record = export.records[0]
    assert record.review == {"author": "Ann Roe", "rating": 5}
    assert (record.created, record.time) == ("2024-01-02", T)


FAILURES = [
    (1, 0, False),
    (1, 2, True),
    (2, 2, True),
    (3, 2, False),
    (3, 27, True),
    (4, 27, False),
]


@pytest.mark.parametrize(("faulty", "valid", "is_imported"), FAILURES)
def test_more_than_a_tenth_and_three_faulty_rows_stop_an_import(
    faulty: int, valid: int, is_imported: bool
) -> None:
    rows = faulty * "Bo,no,2024-01-02,fb\n" + valid * "Ann,5,2024-01-02,fb\n"
    with nullcontext() if is_imported else pytest.raises(NeedsDecision):
        assert len(read(f"author,rating,date,source\n{rows}").records) == valid


def test_an_empty_cell_clears_a_field_and_an_absent_column_does_not(shop: Shop) -> None:
    shop.take(shop.csv(ROW, header=HEADER), "--name", "B")
    before = shop.only()
    shop.take(
        shop.csv(
            ["7", "Ann", "5", "2024-01-02", "fb"], header="id author rating date source"
        )
    )
    assert shop.only() == before
    shop.take(shop.csv([*ROW[:4], "nan", "fb", "", "", ""], header=HEADER))
    assert shop.only() == before | {
        "text": None,
        "source_url": None,
        "owner_reply": None,
    }


def test_a_date_of_the_future_is_a_faulty_row_with_a_day_of_tolerance(
    shop: Shop,
) -> None:
    days = [datetime.now(UTC).date() + timedelta(days) for days in (0, 1, 3)]
    rows = [["Bo", "5", f"{day}", "", ""] for day in days]
    rows += [["Cy", "5", "2024-01-01", "Thanks", "2131-01-01"]]
    path = shop.csv(*rows, header="author rating date reply reply_date")
    told = shop.told(path, "--name", "B", "--source", "fb")
    assert (
        "a.csv line 4: " in told
        and "a.csv line 5: " in told
        and "in the future" in told
    )
    assert max(review["date"] for review in shop.reviews.values()) == f"{days[1]}"


# ---- Encoding and quotes ----


WESTERN = 'Très "bien", “çà et là” – 5 € l’été|Größe ändert … ’s ist so|¿Qué? ¡Años! 20 m²|Ærø Œuvre\nici'
ENCODED = [
    (text, encoding)
    for text in WESTERN.split("|")
    for encoding in ("utf-8-sig", "utf-16", "cp1252")
]
ENCODED += [(18 * "é " + "\x81", "latin-1")]  # a byte that cp1252 does not have


@pytest.mark.parametrize(("text", "encoding"), ENCODED)
def test_csv_of_western_languages_is_read_in_each_encoding(
    text: str, encoding: str
) -> None:
    export = read(
        table("author rating date text", ["Åse", "5", "2024-01-01", text]).encode(
            encoding
        ),
        source="fb",
    )
    (record,) = export.records
    assert record.review and record.review["text"] == text.replace("\x81", "\ufffd")
    advice = (
        "a.csv: not UTF-8; read as cp1252; if letters are wrong, save it as “CSV UTF-8”"
    )
    assert export.notes == ([] if encoding.startswith("utf") else [advice])


QUOTE = " line {}: a quote in this row takes the {} line(s) below into its cell; "
QUOTE += 'close it, or write "" for a quote'
DAMAGED = ": not UTF-8, and its letters look damaged (“{}”); save it as “CSV UTF-8”"
START = b"author,rating,date,text\nAnn,5,2024-01-02,"
REFUSED = {
    b"\n": ": it is empty",
    b"Dear Ann,\nhello": ': not a known export, and not a table; it begins with "Dear Ann"',
    b'author,rating,"date\nAnn,5,2024-01-02\n': QUOTE.format(1, 1),
    START + b'"Good\nBo,4,2024-01-02,Fine\n': QUOTE.format(2, 1),
    START + b'"Good\nBo,4,2024-01-02,Fine\nCy,4,2024-01-02,"Fine"\n': QUOTE.format(
        2, 2
    ),
    START + b'"Good\nand far\nBo,4,2024-01-02,"Fine, so",x\n': QUOTE.format(2, 2),
    START + b'"Good\nBo,4,2024-01-02,Fine",x\n': QUOTE.format(2, 1),
    START + b'"Good\n' + 900 * b"Bo,4,2024-01-02,Fine\n": QUOTE.format(2, 900),
    START + b'"Wow" said I\n': (
        ' line 2: the quotes in this row do not match; write "" for a quote'
    ),
    b"a\x81": DAMAGED.format("a\ufffd"),
    b"abcdefghijklm\x81nopqrstuvwxyz": DAMAGED.format("defghijklm\ufffdnopqrstuv"),
    "author\nПривет".encode("cp1251"): DAMAGED.format("author Ïðèâåò"),
    "author\nZoë Müller".encode("mac_roman"): DAMAGED.format("uthor Zo‘ MŸller"),
}


@pytest.mark.parametrize(("content", "told"), REFUSED.items(), ids=REFUSED.values())
def test_a_file_that_is_no_table_or_is_damaged_is_refused(
    content: bytes, told: str
) -> None:
    with pytest.raises(BadData) as refused:
        read(content)
    assert refused.value.lines() == [f"a.csv{told}"]
