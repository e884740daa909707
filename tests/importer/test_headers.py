"""The meaning of a column is known, or explained once, and never guessed.

Sections: names - unknown headers - what else a table leaves open - what is remembered -
status - names of customers.
"""

import json

import pytest
from lab.export_lab import HEADER, ROW, Shop

from reviewslib.dataset.contract import shipped_contract
from reviewslib.importer.csv_reviews import read_csv
from reviewslib.importer.headers import (
    NO_COLUMN,
    NOT,
    TO_ANSWER,
    column_index,
    is_shown,
)
from reviewslib.importer.options import Options, TableSettings
from reviewslib.importer.questions import NeedsDecision

# ---- Names ----


@pytest.mark.parametrize(
    ("name", "index"),
    [
        pytest.param("Date[1]", 0, id="the first"),
        pytest.param("date[2]", 2, id="the second"),
        pytest.param("Date", None, id="either"),
        pytest.param("Date[3]", None, id="a third that is not there"),
        pytest.param("WHO", 1, id="the only one"),
    ],
)
def test_columns_of_one_name_are_told_apart_by_number(
    name: str, index: int | None
) -> None:
    assert column_index(["date", "who", "date"], name) == index


def test_a_name_that_two_columns_have_is_a_question_with_the_way_on(shop: Shop) -> None:
    path = shop.file("a.csv", "Who,Stars,Date,Date\nAnn,5,2024-01-05,2024-02-05\n")
    columns = "author=Who,rating=Stars,date=Date,text=-,reply=-,status=-"

    told = shop.refused(path, "--name=B", "--source=fb", "--map", columns)

    assert "say Date[1] for the first, Date[2] for the second" in told


SECOND = [
    pytest.param("Datum;Name;Sterne;Datum", "Datum[2]", id="of a spreadsheet"),
    pytest.param("DATUM;Name;Sterne;datum", "datum[2]", id="in other letters"),
]


@pytest.mark.parametrize(("header", "column"), SECOND)
def test_the_second_column_of_a_name_is_read(
    shop: Shop, header: str, column: str
) -> None:
    path = shop.file("a.csv", f"{header}\n2024-01-05;Ann;5;2024-02-05\n")
    columns = f"author=Name,rating=Sterne,date={column},text=-,reply=-,status=-"

    shop.take(path, "--name=B", "--source=fb", "--map", columns)

    assert shop.only()["date"] == "2024-02-05"


# ---- Unknown headers ----


def test_an_unknown_header_is_a_question_with_the_first_value_of_each_column(
    shop: Shop,
) -> None:
    path = shop.file("b.csv", "Who,Stars,Notes\n,,\nAnn,,x\nBo,5,\n")

    lines = shop.refused(path, "--name", "B").splitlines()

    assert lines[:5] == [
        f"{path}: the header is unknown.",
        "Its columns are:",
        '  "Who", such as "Ann"',
        '  "Stars", such as "5"',
        '  "Notes", such as "x"',
    ]


def test_the_question_gives_the_flag_that_answers_it(shop: Shop) -> None:
    path = shop.file("b.csv", "Who,Stars,Day\nAnn,5,2024-01-02\n")

    told = shop.refused(path, "--name", "B")

    answers = ",".join(f"{field}=YOUR" for field in TO_ANSWER)
    assert f"  --map {answers}\n" in told


def test_the_question_names_the_fields_that_few_tables_have(shop: Shop) -> None:
    path = shop.file("b.csv", "Who,Stars,Day\nAnn,5,2024-01-02\n")

    told = shop.refused(path, "--name", "B")

    further = "id, source_url, reply_date, title, reply_status, parent"
    assert f"Further fields may have one: {further}.\n" in told


def test_a_table_that_is_not_explained_stops_the_others_of_a_command(
    shop: Shop,
) -> None:
    known = shop.csv(ROW, header=HEADER)
    unknown = shop.file("b.csv", "Who,Stars,Day\nAnn,5,2024-01-02\n")

    told = shop.refused(known, unknown, "--name", "B")

    assert told.startswith(f"{unknown}: the header is unknown.")


EXPLAINED = dict.fromkeys(TO_ANSWER, NO_COLUMN) | {
    "author": "who",
    "rating": "mark",
    "date": "day",
}


def fault_of(header: str, columns: dict[str, str]) -> str:
    """The first line of the question about a table with this header and --map."""
    options = Options(table=TableSettings(map=columns))
    text = f"{header}\nAnn,5,2024-01-02\n".encode()
    with pytest.raises(NeedsDecision) as asked:
        read_csv(text, "a.csv", "2025-01-01T00:00:00Z", options, shipped_contract())
    return asked.value.lines()[0]


UNKNOWN = [
    pytest.param("who,mark,day", id="of no tool"),
    pytest.param("id,text,source", id="of the template, but not enough of it"),
    pytest.param(
        "nickname,rating,date,review", id="of a tool, without what it may hide"
    ),
]


@pytest.mark.parametrize("header", UNKNOWN)
def test_a_header_is_unknown_without_what_a_review_needs(header: str) -> None:
    assert fault_of(header, {}) == "a.csv: the header is unknown."


@pytest.mark.parametrize("field", TO_ANSWER)
def test_a_map_answers_for_each_field(field: str) -> None:
    columns = {name: column for name, column in EXPLAINED.items() if name != field}

    fault = f"a.csv: --map does not name a column for {field}."
    assert fault_of("who,mark,day", columns) == fault


@pytest.mark.parametrize("field", ["rating", "date"])
def test_a_review_needs_a_column_of_stars_and_of_dates(field: str) -> None:
    columns = EXPLAINED | {field: NO_COLUMN}

    fault = f"a.csv: --map does not name a column for {field}."
    assert fault_of("who,mark,day", columns) == fault


def test_a_map_names_all_that_it_does_not_answer_for() -> None:
    fault = f"a.csv: --map does not name a column for {', '.join(TO_ANSWER[1:])}."

    assert fault_of("author,rating,date", {"author": "author"}) == fault


NOT_ONE = [
    pytest.param("who,mark,day,who", '"who"', id="two columns of the name"),
    pytest.param("who,mark,on", '"day"', id="no such column"),
    pytest.param("author,rating,date", '"who", "mark", "day"', id="another table"),
]


@pytest.mark.parametrize(("header", "names"), NOT_ONE)
def test_a_map_names_one_column_for_a_field(header: str, names: str) -> None:
    fault = f"a.csv: not exactly one column is called {names}; "

    assert fault_of(header, EXPLAINED) == f"{fault}--map applies to all tables."


def test_columns_may_be_given_one_by_one_and_with_commas_in_their_names(
    shop: Shop,
) -> None:
    path = shop.file("a.csv", '"Customer, and who",Stars,Posted On\nAnn,5,2024-01-02\n')
    pairs = ["author=customer, and who", "rating=STARS", "date=posted_on"]
    pairs += ["text=-", "reply=-", "status=-"]

    shop.take(path, "--name=B", "--source=fb", *(f"--map={pair}" for pair in pairs))

    assert shop.only()["author"] == "Ann"


# ---- What else a table leaves open ----

QUESTIONS = [
    pytest.param(
        "Ann,5,2024-01-02,",
        "it does not say where its reviews were published.",
        "--source YOUR",
        id="source",
    ),
    pytest.param(
        "Ann,8,2024-01-02,fb",
        'the scale of the rating "8" is not known.',
        "--scale YOUR",
        id="scale",
    ),
    pytest.param(
        "Ann,5,05/03/2024,fb",
        "is the day or the month first in these dates?",
        "--date-order YOUR",
        id="order of the date",
    ),
]


@pytest.mark.parametrize(("row", "question", "flag"), QUESTIONS)
def test_what_a_table_leaves_open_is_a_question_with_its_flag(
    shop: Shop, row: str, question: str, flag: str
) -> None:
    path = shop.file("a.csv", f"author,rating,date,source\n{row}\n")

    told = shop.refused(path, "--name", "B")

    assert told.startswith(f"{path}: {question}")
    assert f"\n  {flag}\n" in told


def test_dates_of_both_orders_are_a_question(shop: Shop) -> None:
    dates = ("13/02/2024", "02/13/2024")
    path = shop.csv(*(["Ann", "5", date, "x"] for date in dates))

    told = shop.refused(path, "--name", "B", "--source", "fb")

    assert "is the day or the month first in these dates?" in told


def test_the_answer_decides_and_dates_of_the_other_order_are_faulty(
    shop: Shop,
) -> None:
    dates = ("13/02/2024", "02/13/2024")
    path = shop.csv(*(["Ann", "5", date, "x"] for date in dates))

    shop.take(path, "--name", "B", "--source", "fb", "--date-order", "dmy")

    assert shop.only()["date"] == "2024-02-13"


# ---- What is remembered ----

MARKS = "Who Mark On By"
ALL = "author=Who,rating=Mark,date=On,text=-,reply=-,status=-"
ANSWERS = ("--map", ALL, "--scale", "10", "--source", "fb", "--date-order", "mdy")


@pytest.fixture
def explained(shop: Shop) -> Shop:
    """A shop that has explained the header of a table."""
    table = shop.csv(["Ann", "4", "05/03/2024", "Bo"], header=MARKS)
    shop.take(table, *ANSWERS, "--name", "B")
    return shop


def test_answers_about_a_header_are_remembered(explained: Shop) -> None:
    before = explained.document

    explained.take(explained.root / "a.csv")

    assert explained.document == before


SWAPPED = "author=By,rating=Mark,date=On,text=Who,reply=-,status=-"
CORRECTED = [
    pytest.param(("--source", "other"), {"source": "other"}, id="source"),
    pytest.param(("--scale", "5"), {"rating": 4}, id="scale"),
    pytest.param(("--date-order", "dmy"), {"date": "2024-03-05"}, id="date order"),
    pytest.param(("--map", SWAPPED), {"author": "Bo", "text": "Ann"}, id="map"),
]


@pytest.mark.parametrize(("option", "right"), CORRECTED)
def test_a_wrong_answer_is_corrected_once_its_reviews_are_deleted(
    explained: Shop, option: tuple[str, str], right: dict[str, object]
) -> None:
    wrong = explained.only()
    emptied = explained.document | {"reviews": []}
    explained.file("data/reviews.json", json.dumps(emptied))

    explained.take(explained.root / "a.csv", *option)
    explained.take(explained.root / "a.csv")

    review = explained.only()
    assert review == wrong | right | {"id": review["id"]}


def test_the_source_of_a_table_with_the_templates_header_is_not_remembered(
    shop: Shop,
) -> None:
    path = shop.csv(["Eve", "5", "2024-01-05", ""])
    shop.take(path, "--name", "B", "--source", "fb")

    told = shop.refused(path)

    assert "it does not say where its reviews were published" in told


# ---- Status ----


SHOWN_WORDS = ["TRUE", "WAHR", "yes", "1", "approved", "Freigegeben", "Opublikowana"]
TURKISH_SHOWN_WORDS = ["Yayında", "YAYINDA", "Onaylandı"]


@pytest.mark.parametrize("word", SHOWN_WORDS + TURKISH_SHOWN_WORDS)
def test_a_word_that_is_known_to_mean_it_shows_a_review(word: str) -> None:
    assert is_shown(word)
    assert not is_shown(word, is_inverted=True)


@pytest.mark.parametrize("word", ["FALSE", "FALSCH", "no", "0", ""])
def test_a_false_word_shows_a_review_only_in_a_column_of_what_is_hidden(
    word: str,
) -> None:
    assert not is_shown(word)
    assert is_shown(word, is_inverted=True)


@pytest.mark.parametrize("is_inverted", [False, True])
def test_an_unknown_word_shows_nothing(is_inverted: bool) -> None:
    assert not is_shown("2024-01-05", is_inverted=is_inverted)


def test_a_table_whose_status_words_are_all_unknown_says_what_to_do(
    shop: Shop,
) -> None:
    header = "author rating date state"
    path = shop.csv(["Ann", "5", "2024-01-05", "gut"], header=header)
    columns = "author=author,rating=rating,date=date,text=-,reply=-,status=state"

    told = shop.told(path, "--name=B", "--source=fb", "--map", columns)

    assert "not shown: gut (1)\n" in told
    assert "write “published” instead in the file, and import it again" in told


HIDING = [
    "Hidden",
    "is_spam",
    "Archived at",
    "Gelöscht",
    "Masqué",
    "Eliminado",
    "Gizli",
]


@pytest.mark.parametrize("name", HIDING)
def test_the_question_answers_a_column_that_hides_as_one(shop: Shop, name: str) -> None:
    path = shop.file("a.csv", f"Who,Stars,Day,{name}\nAnn,5,2024-01-05,0\n")

    assert f"status={NOT}{name}\n" in shop.refused(path, "--name=B")


def test_a_column_that_hides_may_have_a_sign_for_its_name(shop: Shop) -> None:
    rows = "Ann,5,2024-01-05,yes\nBo,5,2024-01-05,no\n"
    path = shop.file("a.csv", f"Who,Stars,Day,✗\n{rows}")
    columns = f"author=Who,rating=Stars,date=Day,text=-,reply=-,status={NOT}✗"

    shop.take(path, "--name=B", "--source=fb", "--map", columns)

    reviews = shop.reviews.values()
    shown = {review["author"]: review["verified"] for review in reviews}
    assert shown == {"Ann": False, "Bo": True}


def test_a_short_row_says_nothing_of_what_is_hidden(shop: Shop) -> None:
    rows = "Ann,5,2024-01-05,0\nBo,5,2024-01-05,0\nCy,5,2024-01-05\n"
    path = shop.file("a.csv", f"Who,Stars,Day,Hidden\n{rows}")
    columns = "author=Who,rating=Stars,date=Day,text=-,reply=-,status=-"

    shop.take(path, "--name=B", "--source=fb", "--map", columns)

    assert len(shop.reviews) == 2


# ---- Names of customers ----


@pytest.mark.parametrize(
    ("cell", "author"),
    [
        pytest.param("Null", "Null", id="a name"),
        pytest.param("NULL", "Anonymous", id="nothing, of a database"),
        pytest.param("nan", "Anonymous", id="nothing, of pandas"),
        pytest.param("", "Anonymous", id="nothing"),
    ],
)
def test_null_is_a_name_and_a_databases_null_is_none(
    shop: Shop, cell: str, author: str
) -> None:
    shop.take(shop.csv([cell, "5", "2024-01-05", "x"]), "--name=B", "--source=fb")

    assert shop.only()["author"] == author


def test_a_table_without_names_says_so_with_a_dash(shop: Shop) -> None:
    path = shop.file("a.csv", "Stars,Day,Words\n5,2024-01-05,x\n")
    columns = "author=-,rating=Stars,date=Day,text=Words,reply=-,status=-"

    shop.take(path, "--name=B", "--source=google", "--map", columns)

    assert shop.only()["author"] == "A Google user"


def test_rows_without_a_name_that_agree_are_two_customers(shop: Shop) -> None:
    row = ["", "5", "2024-01-05", "Good"]

    told = shop.told(shop.csv(row, row), "--name=B", "--source=fb")

    assert len(shop.reviews) == 2
    assert "without name or words, all kept: 1\n" in told
