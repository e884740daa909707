"""Files as owners really have them: each folder of `field/` gives what it should."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lab.export_lab import Shop

from reviewslib.terminal import EXIT_SUCCESS

FIELD = Path(__file__).with_name("field")
COMMON = ("--name", "Shop", "--zone", "Europe/Berlin")


def mapped(columns: str, source: str, *more: str) -> tuple[str, ...]:
    return ("--source", source, "--map", columns, *more)


@dataclass
class Case:
    """A file, the words of the command, and what is then stored."""

    file: str
    reviews: list[dict[str, Any]]  # some fields of each, oldest first
    words: tuple[str, ...] = ()
    told: list[str] = field(default_factory=list)  # parts of the report


TRIPADVISOR = "author=user,rating=rating,date=date,text=text,reply=-,status=-"
CASES = {
    "api-batch-page": Case("page.json", [{"text": "Good bread"}]),
    "backslash-quotes": Case(
        "mysql.csv",
        [
            {"text": 'She said "great bread" twice'},
            {"text": 'Fine, "really" fine'},
            {"text": "Fine"},
        ],
    ),
    "column-in-gmt": Case(
        "woo.csv",
        [{"date": "2024-01-06T00:30:00+01:00"}, {"date": "2024-07-01T14:00:00+02:00"}],
        mapped(
            "author=name,rating=rating,date=date_gmt,text=content,reply=-,"
            "status=is_approved",
            "woocommerce",
        ),
    ),
    "damaged-beside-emoji": Case(
        "facebook.csv", [{}, {}], told=["letters look damaged", "in 2 reviews"]
    ),
    "dates-with-weekday": Case(
        "kudobuzz.csv",
        [
            {"date": "2015-08-10T16:16:38+02:00"},
            {"date": "2024-01-05"},
            {"date": "2024-01-05"},
            {"date": "2024-01-06", "verified": False},
        ],
        mapped(
            "author=Reviewer Name,rating=Review Score,date=Created_at,"
            "title=Review Title,text=Review Message,reply=-,status=Published",
            "shop",
        ),
        ["shown: TRUE (3); not shown: FALSE (1)"],
    ),
    "first-line-sep": Case("excel.csv", [{"text": "Good bread"}]),
    "google-text-in-a-table": Case(
        "outscraper.csv",
        [
            {"text": "Gutes Brot.", "owner_reply": {"text": "Danke!"}},
            {"text": "Schön"},
        ],
    ),
    "html-in-a-table": Case(
        "reviews.csv",
        [
            {"text": "It's good\nBread & butter"},
            {"text": "1 < 2 stays"},
            {"text": "I <3 this & that"},
        ],
        mapped(
            "author=Customer,rating=Stars,date=Day,text=Words,reply=-,status=-",
            "shop",
            "--html",
        ),
    ),
    "no-author": Case(
        "healthgrades.csv",
        [
            {"author": "Anonymous", "text": "Listens well"},
            {"author": "Bo Riis"},
            {"author": "Anonymous", "text": "Kind"},
        ],
        told=["without a name, published as Anonymous: 2"],
    ),
    "numbers-became-decimals": Case(
        "first.csv", [{"id": "shop-37"}, {"id": "shop-38"}]
    ),
    "same-row-twice": Case(
        "scraped.csv",
        [
            {"author": "Ines Lund"},
            {"author": "Bo Riis", "rating": 4},
            {"author": "Bo Riis", "rating": 2},
        ],
        told=["doubled rows, left out: 2"],
    ),
    "scale-of-fifty": Case(
        "tripadvisor.csv",
        [{"rating": 5}, {"rating": 3}, {"rating": 4.5}],
        mapped(TRIPADVISOR, "tripadvisor", "--scale", "50"),
    ),
    "stars-in-words": Case(
        "stars.csv",
        [{"rating": 5}, {"rating": 4}, {"rating": 3}, {"rating": 5}],
        mapped(
            "author=Who,rating=Stars,date=Day,text=Words,reply=-,status=-",
            "tripadvisor",
        ),
    ),
    "status-words": Case(
        "reviews.csv",
        [{"author": "Ines Lund", "verified": True}, {"verified": False}],
        mapped(
            "author=Name,rating=Sterne,date=Datum,text=Text,reply=-,"
            "status=!Ausgeblendet",
            "shop",
        ),
        ["shown: FALSE (1); not shown: TRUE (1)"],
    ),
    "translated-marker-language": Case(
        "reviews.json",
        [
            {
                "text": "Great bread, friendly staff.",
                "owner_reply": {"text": "Thank you!"},
            },
            {"text": "Great bread."},
            {"text": "Gutes Brot."},
            {
                "text": "Good cake, says my phone (Übersetzt von Google), "
                "and it is true."
            },
        ],
    ),
    "woocommerce-comments": Case(
        "product_reviews.csv",
        [
            {
                "author": "Ines Lund",
                "text": "Good & fresh bread\ntwice",
                "verified": True,
                "owner_reply": {"text": "Thank you, Ines"},
            },
            {"author": "Bo Riis", "verified": False},
            {"author": "Ada Holm", "text": "I’d wait", "verified": False},
        ],
        ("--replies-by", "The Shop"),
    ),
}


def is_part(part: Any, whole: Any) -> bool:
    """Whether an object has these members, and their members likewise."""
    if not isinstance(part, dict):
        return bool(part == whole)
    return all(is_part(value, whole.get(key)) for key, value in part.items())


@pytest.mark.parametrize("name", CASES)
def test_a_file_from_the_field_is_stored_as_the_customers_wrote_it(
    shop: Shop, name: str
) -> None:
    case = CASES[name]

    assert shop.run(FIELD / name / case.file, *COMMON, *case.words) == EXIT_SUCCESS

    report = shop.output().out
    stored = list(reversed(shop.document["reviews"]))
    assert len(stored) == len(case.reviews)
    for expected in case.reviews:
        assert any(is_part(expected, review) for review in stored), expected
    for part in case.told:
        assert part in report


def test_every_folder_of_the_field_is_tried() -> None:
    assert {path.name for path in FIELD.iterdir()} == CASES.keys()


def test_ids_that_became_decimals_are_the_same_ids(shop: Shop) -> None:
    folder = FIELD / "numbers-became-decimals"
    shop.run(folder / "first.csv", *COMMON)

    shop.run(folder / "second.csv", *COMMON)

    assert "unchanged: 2\n" in shop.output().out
    assert set(shop.reviews) == {"shop-37", "shop-38"}


def test_a_nameless_review_is_not_doubled_by_the_next_import(shop: Shop) -> None:
    file = FIELD / "no-author" / "healthgrades.csv"
    shop.run(file, *COMMON)

    shop.run(file, *COMMON)

    assert len(shop.reviews) == 3


HIDDEN = "author=Name,rating=Sterne,date=Datum,text=Text,reply=-,status={}"


@pytest.mark.parametrize("status", ["Ausgeblendet", "-"])
def test_an_answer_that_publishes_what_is_hidden_is_refused_with_the_right_one(
    shop: Shop, status: str
) -> None:
    file = FIELD / "status-words" / "reviews.csv"

    told = shop.refused(file, *COMMON, *mapped(HIDDEN.format(status), "shop"))

    assert f"  --map '{HIDDEN.format('!Ausgeblendet')}'\n" in told


def test_a_scale_of_which_no_rating_is_above_the_half_is_doubted(shop: Shop) -> None:
    file = FIELD / "scale-of-fifty" / "tripadvisor.csv"
    words = mapped(TRIPADVISOR, "tripadvisor", "--scale", "100")

    shop.run(file, *COMMON, *words)

    assert "no rating is above 50 of 100" in shop.output().out


def test_the_question_for_a_scale_names_the_highest_rating(shop: Shop) -> None:
    file = FIELD / "scale-of-fifty" / "tripadvisor.csv"

    told = shop.refused(file, *COMMON, *mapped(TRIPADVISOR, "tripadvisor"))

    assert "The highest rating is 50." in told


def test_html_that_nobody_has_told_of_is_named(shop: Shop) -> None:
    file = FIELD / "html-in-a-table" / "reviews.csv"
    columns = "author=Customer,rating=Stars,date=Day,text=Words,reply=-,status=-"

    shop.run(file, *COMMON, *mapped(columns, "shop"))

    assert "texts look like HTML; say --html" in shop.output().out


def test_who_answers_for_the_shop_is_a_question(shop: Shop) -> None:
    file = FIELD / "woocommerce-comments" / "product_reviews.csv"

    told = shop.refused(file, *COMMON)

    assert "  The Shop: 1\n" in told
    assert "  --replies-by 'YOUR NAME'\n" in told


def test_no_e_mail_address_is_stored(shop: Shop) -> None:
    file = FIELD / "woocommerce-comments" / "product_reviews.csv"

    shop.run(file, *COMMON, "--replies-by", "The Shop")

    for content in shop.files().values():
        assert b"example.org" not in content
