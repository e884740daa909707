"""The meaning of a column is known, or explained once, and never guessed."""

import pytest
from lab.export_lab import Shop

from reviewslib.importer.headers import NOT, column_index, is_shown

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


# ---- Status ----


@pytest.mark.parametrize("word", ["TRUE", "WAHR", "yes", "1", "approved"])
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


# ---- Names of customers ----


@pytest.mark.parametrize(
    ("cell", "author"),
    [("Null", "Null"), ("NULL", "Anonymous"), ("nan", "Anonymous"), ("", "Anonymous")],
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
