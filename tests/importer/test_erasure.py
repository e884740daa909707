"""Erased reviews and redacted words stay away, whatever later exports have: examples of rules 1 and 8."""

import re

import pytest
from lab.export_lab import ZONE, Shop, api_item, item, moment, takeout_id

ROSE = {"displayName": "Rosé van Hill"}
GUEST = ["Anonymous", "5", "2025-01-02"]


@pytest.fixture
def rose(shop: Shop) -> Shop:
    """A shop with four reviews of Google, one of them by Rosé van Hill."""
    shop.take(shop.takeout(9, [item(1, reviewer=ROSE), 2, 3, 4]))
    return shop


def test_a_forgotten_review_stays_away_under_another_id_and_name(rose: Shop) -> None:
    assert "kept away by suppressed.txt: 1: Rosé van Hill, 2025-01-02 (" in rose.told(
        "--forget", takeout_id(1)
    )
    assert "ChZDSUhNMG9n0001EAE" not in (rose.data / "import-state.json").read_text()
    rose.lose("import-state.json", "reviews.json")
    other = {"displayName": "R. H."}
    renamed = rose.takeout(12, [item(1, name=item(9)["name"], reviewer=other), 2])
    for path in (renamed, rose.page(api_item(1, reviewer=other), api_item(2))):
        rose.take(path, "--name", "B")
        assert set(rose.reviews) == {takeout_id(2)}


TABLES = [  # what is forgotten, a row of another tool, and whether it stays away by short name and day
    ("--forget", "Rosé van Hill;2025-01-02", True),
    ("--forget", "ROSÉ H.;2025-01-03", True),
    ("--forget", "Rosé van Hill;2025-01-04", False),
    ("--forget", "Rosa Hill;2025-01-02", False),
    ("--forget-author", "Rosé H.;2025-01-03", True),
    ("--forget-author", "Rosé H.;2025-01-05", False),
]


@pytest.mark.parametrize(("flag", "row", "is_same"), TABLES)
def test_a_forgotten_review_stays_away_in_tables(
    rose: Shop, flag: str, row: str, is_same: bool
) -> None:
    url = f"http://127.0.0.1:8080/reviews/{takeout_id(1)}?x#y"
    rose.take(flag, url if flag == "--forget" else "Rosé van Hill")
    rose.lose("import-state.json", "reviews.json")
    author, day = row.split(";")
    table = rose.csv([author, "5", day, "Hi"], ["Bo", "5", "2024-01-01", ""])
    rose.take(table, "--source", "google maps", "--name", "B")
    assert len(rose.reviews) == (1 if is_same else 2)


ROWS = [  # two rows of a table, and whether many customers are called like the first, which is forgotten
    ([["Ann Roe", *GUEST[1:], "a"], ["Bo", *GUEST[1:], "b"]], False),
    ([[*GUEST, "a"], [*GUEST, "b"]], True),
]


@pytest.mark.parametrize(("rows", "is_shared"), ROWS)
def test_a_forgotten_row_stays_away_without_the_other(
    shop: Shop, rows: list[list[str]], is_shared: bool
) -> None:
    words = [shop.csv(*rows), "--source", "fb", "--name", "B"]
    shop.take(*words)
    told = shop.told(
        "--forget",
        next(id for id, review in shop.reviews.items() if review["text"] == "a"),
    )
    remark = f"many customers are called {rows[0][0]}: tables are not searched for"
    assert (remark in told) is is_shared
    shop.lose()
    shop.take(*words)
    assert shop.texts() == {"b"}
    shop.take(shop.page(item(1, reviewer={"displayName": "Ann Roe"})))
    assert len(shop.reviews) == 1 + is_shared, (
        "the row's name and day keep Google's review away, too"
    )


@pytest.mark.parametrize("words", [("--forget", "mine"), ("--forget-author", "eve")])
def test_a_review_with_an_id_of_the_owners_own_is_forgotten(
    rose: Shop, words: tuple[str, str]
) -> None:
    rose.edit("mine", author="Eve", rating=4, date="1985-05-05")
    rose.take(*words)
    assert "mine" not in rose.reviews


def test_an_erased_review_gets_lines_for_its_other_ids(rose: Shop) -> None:
    rose.take("--forget-author", "rose VAN hill")
    before = (rose.data / "suppressed.txt").read_text()
    rose.take(rose.page(api_item(1, reviewer=ROSE), api_item(9, reviewer=ROSE)))
    after = (rose.data / "suppressed.txt").read_text()
    assert after.startswith(before) and after.count("\n") > before.count("\n")
    rose.lose()
    rose.take(rose.page(api_item(9, createTime=moment(8)), api_item(2)))
    assert len(rose.reviews) == 3
    assert "Rosé" not in after and "author " in after


def test_lost_lines_are_reported_once(rose: Shop) -> None:
    assert "has lost" not in rose.told("--forget", takeout_id(1))
    rose.file("data/suppressed.txt", "# all gone\n")
    again = rose.takeout(9, (1, 2, 3, 4))
    assert re.search(
        "suppressed.txt has lost [45] lines since the last import", rose.told(again)
    )
    assert takeout_id(1) in rose.reviews
    assert "has lost" not in rose.told(again)


TURKISH = ["İBRAHİM ŞAHİN", "ibrahim şahin", "Ibrahim Sahin", "IBRAHIM SAHIN"]


@pytest.mark.parametrize("typed", TURKISH)
@pytest.mark.parametrize("flag", ["--no-short-names", "--short-names"])
def test_an_author_is_found_as_a_caller_would_type_the_name(
    shop: Shop, typed: str, flag: str
) -> None:
    shop.take(
        shop.page(item(1, reviewer={"displayName": "İBRAHİM ŞAHİN"}), item(2)),
        "--name",
        "B",
        flag,
    )
    is_found = (
        flag == "--no-short-names" or typed in TURKISH[:2]
    )  # by a digest that keeps accents
    if not is_found:
        assert "The nearest names are:\n  İBRAHİM Ş.\n" in shop.refused(
            "--forget-author", typed
        )
    told = shop.told("--forget-author", typed, "--anyway")
    assert len(shop.reviews) == (1 if is_found else 2)
    assert (
        f"no review of {typed} is stored; future ones are kept away\n" in told
    ) is not is_found
    if is_found:
        shop.take(
            shop.page(item(7, reviewer={"displayName": "İbrahim Şahin"}), item(2))
        )
        assert set(shop.reviews) == {takeout_id(2)}


def test_similar_authors_are_a_question_that_the_exact_name_answers(shop: Shop) -> None:
    names = ("Jörg Groß", "Jorg GROSS", "JÖRG Groß")
    shop.take(
        shop.page(
            *(item(n, reviewer={"displayName": name}) for n, name in enumerate(names))
        ),
        "--name=B",
    )
    told = shop.refused("--forget-author", "jorg groß")
    assert all(f"{name} ({takeout_id(n)})" in told for n, name in enumerate(names))
    shop.take("--forget-author", "Jörg Groß")
    assert [review["author"] for review in shop.reviews.values()] == ["Jorg GROSS"]
    assert "is not the name of a single author" in shop.refused(
        "--forget-author", "A Google user"
    )


def test_copies_of_edited_files_are_deleted_when_something_is_erased(
    rose: Shop,
) -> None:
    rose.edit(takeout_id(1), author="Rose Mary")
    rose.take("--short-names")
    (copy,) = rose.data.glob("*.edited-*")
    told = rose.told("--forget", takeout_id(1))
    assert f"deleted: {copy}\n" in told
    assert not copy.exists()


# ---- Redaction ----


def test_a_redaction_lasts_through_edits_returns_and_a_lost_state(shop: Shop) -> None:
    text = "Call  Dr. Roe at 555-0142!"
    reply = {"comment": "dr. roe says thanks"}
    items = [item(1, comment=text, reviewReply=reply), *(item(n) for n in range(2, 30))]
    shop.take(shop.takeout(9, items))
    shop.take("--redact", takeout_id(1), "Dr.  Roe")
    review = shop.reviews[takeout_id(1)]
    assert (review["text"], review["owner_reply"]["text"]) == (
        "Call  […] at 555-0142!",
        "[…] says thanks",
    )
    shop.take(shop.takeout(12, items[1:]))
    assert takeout_id(1) not in shop.reviews
    shop.lose()
    edited = api_item(1, comment=f"{text} Edited: DR. ROE", updateTime=moment(15))
    shop.take(shop.page(edited, api_item(2)))
    assert "Call  […] at 555-0142! Edited: […]" in shop.texts()


@pytest.mark.parametrize("id", ["mine", "#1"])
def test_a_redaction_of_an_own_review_is_one_line_and_lasts(
    rose: Shop, id: str
) -> None:
    rose.edit(id, author="Eve", rating=4, date="2024-05-05", text="Call 555")
    rose.take("--redact", id, "555")
    rose.edit(id, text="Call 555 now")
    for _ in range(2):
        rose.take("--short-names")
    assert rose.reviews[id]["text"] == "Call […] now"
    assert re.fullmatch(
        f"{id}\t555\t[0-9a-f]{{64}}\n", rose.files()["redacted.txt"].decode()
    )


def test_words_are_redacted_in_the_reply_to_a_review_without_words(shop: Shop) -> None:
    shop.take(
        shop.page(item(1, comment=None, reviewReply={"comment": "Hi Eve"})),
        "--name",
        "B",
    )
    shop.take("--redact", takeout_id(1), "Eve")
    assert (shop.only()["text"], shop.only()["owner_reply"]["text"]) == (None, "Hi […]")


NO_ID = 'No review has the id "x".\nGive its id, or the address of its page.\n'
REFUSED = [
    *(
        (("--redact", takeout_id(2), words), "does not have the words")
        for words in ("Nobody", " ", "")
    ),
    (("--forget", "x"), NO_ID),
]


@pytest.mark.parametrize(("words", "told"), REFUSED)
def test_what_is_not_stored_is_not_erased(
    rose: Shop, words: tuple[str, ...], told: str
) -> None:
    assert told in rose.refused(*words)


EXPECTED = "expected 64 lower-case hexadecimal digits, alone or after “author ”"
WRONG = [
    ("suppressed.txt", "# who asked\n\nAnn\n", f"suppressed.txt line 3: {EXPECTED}\n"),
    (
        "redacted.txt",
        "# mine\nx words\n",
        "redacted.txt line 2: expected an id, a tab and words\n",
    ),
]


@pytest.mark.parametrize(("name", "content", "told"), WRONG)
def test_a_line_that_cannot_be_read_stops_the_import(
    rose: Shop, name: str, content: str, told: str
) -> None:
    rose.file(f"data/{name}", content)
    assert rose.refused("--zone", ZONE).startswith(told)


def test_a_name_that_nobody_has_is_a_question_with_the_nearest(rose: Shop) -> None:
    rose.edit("mine", author="Camille Roux", rating=4, date="2024-05-05")

    told = rose.refused("--forget-author", "Camile Roux")

    assert "The nearest names are:\n  Camille Roux\n" in told
    assert "say --anyway as well" in told


def test_a_name_that_nobody_has_is_kept_away_when_told_to(rose: Shop) -> None:
    rose.take("--forget-author", "Nobody Yet", "--anyway")

    newcomer = item(40, reviewer={"displayName": "Nobody Yet"})
    rose.take(rose.page(newcomer))

    assert takeout_id(40) not in rose.reviews
