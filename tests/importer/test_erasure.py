"""Erased reviews and redacted words stay away, whatever later exports have: examples of rules 1 and 8."""

import re
from pathlib import Path

import pytest
from export_lab import ZONE, Shop, api_item, item, moment, takeout_id

from reviewslib.importer.command import EXIT_SUCCESS
from reviewslib.importer.state import STATE_FILE

ROSE = {"displayName": "Rosé van Hill"}


def start(shop: Shop) -> None:
    shop.take(shop.takeout(9, [item(1, reviewer=ROSE), 2, 3, 4]))


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_forgotten_review_stays_away_under_another_id_and_name(shop: Shop, is_lost: bool) -> None:
    start(shop)
    assert shop.run("--forget", takeout_id(1)) == EXIT_SUCCESS
    assert "kept away by suppressed.txt: 1: Rosé van Hill, 2025-01-02 (" in shop.output().out
    assert "ChZDSUhNMG9n0001EAE" not in (shop.data / STATE_FILE).read_text()
    if is_lost:
        shop.lose(STATE_FILE, "reviews.json")
    other = {"displayName": "R. H."}
    renamed = shop.takeout(12, [item(1, name=item(9)["name"], reviewer=other), 2])
    for path in (renamed, shop.page(api_item(1, reviewer=other), api_item(2))):
        shop.take(path, "--name", "B")
        assert takeout_id(2) in shop.reviews
        assert not any(review["date"][:10] == "2025-01-02" for review in shop.reviews.values())


TABLES = {  # by row of another tool: whether it is the erased review
    "Rosé van Hill;2025-01-02": True,
    "ROSÉ H.;2025-01-03": True,
    "Rosé van Hill;2025-01-04": False,
    "Rosa Hill;2025-01-02": False,
}


@pytest.mark.parametrize(("row", "is_same"), TABLES.items())
def test_a_forgotten_review_stays_away_in_tables_by_name_and_day(shop: Shop, row: str, is_same: bool) -> None:
    start(shop)
    shop.take("--forget", f"http://127.0.0.1:8080/reviews/{takeout_id(1)}?x#y")
    shop.lose(STATE_FILE, "reviews.json")
    author, day = row.split(";")
    table = shop.csv([author, "5", day, "Hi"], ["Bo", "5", "2024-01-01", ""])
    shop.take(table, "--source", "google maps", "--name", "B")
    assert len(shop.reviews) == (1 if is_same else 2)


def forget_row(shop: Shop, text: str, *rows: list[str]) -> set[str]:
    """The remaining texts after the row with this text is forgotten, the state lost and the rows imported."""
    words = [shop.csv(*rows), "--source", "fb", "--name", "B"]
    shop.take(*words)
    shop.take("--forget", next(id for id, review in shop.reviews.items() if review["text"] == text))
    shop.lose(STATE_FILE)
    shop.take(*words)
    return {review["text"] for review in shop.reviews.values()}


def test_a_forgotten_row_stays_away_in_tables_and_at_google(shop: Shop) -> None:
    rows = [["Ann Roe", "5", "2025-01-02", "Hi"], ["Bo", "5", "2025-01-02", "Ho"]]
    assert forget_row(shop, "Hi", *rows) == {"Ho"}
    assert "many customers" not in shop.output().out
    shop.take(shop.page(item(1, reviewer={"displayName": "Ann Roe"})))
    assert {review["text"] for review in shop.reviews.values()} == {"Ho"}


def test_a_forgotten_row_of_a_name_that_many_share_spares_the_others(shop: Shop) -> None:
    rows = [["Anonymous", "5", "2025-01-02", text] for text in "ab"]
    assert forget_row(shop, "a", *rows) == {"b"}
    assert "many customers are called Anonymous: tables are not searched for" in shop.output().out


def test_a_forgotten_author_stays_away_in_tables_by_short_name_and_day(shop: Shop) -> None:
    start(shop)
    shop.take("--forget-author", "Rosé van Hill")
    table = shop.csv(["Rosé H.", "5", "2025-01-03", "Hi"], ["Rosé H.", "5", "2025-01-05", "Ho"])
    shop.take(table, "--source", "fb")
    assert [review["text"] for review in shop.reviews.values() if review["source"] == "fb"] == ["Ho"]


@pytest.mark.parametrize("words", [("--forget", "mine"), ("--forget-author", "eve")])
def test_a_review_with_an_id_of_the_owners_own_is_forgotten(shop: Shop, words: tuple[str, str]) -> None:
    start(shop)
    shop.add_own(id="mine", author="Eve", rating=4, date="1985-05-05")
    shop.take(*words)
    assert "mine" not in shop.reviews


def test_an_erased_review_gets_lines_for_its_other_ids(shop: Shop) -> None:
    start(shop)
    shop.take("--forget-author", "rose VAN hill")
    before = (shop.data / "suppressed.txt").read_text()
    shop.take(shop.page(api_item(1, reviewer=ROSE), api_item(9, reviewer=ROSE)))
    after = (shop.data / "suppressed.txt").read_text()
    assert after.startswith(before) and after.count("\n") > before.count("\n")
    shop.lose(STATE_FILE)
    shop.take(shop.page(api_item(9, createTime=moment(8)), api_item(2)))
    assert len(shop.reviews) == 3
    assert "Rosé" not in after and "author " in after


def test_lost_lines_are_reported_once(shop: Shop) -> None:
    start(shop)
    assert "has lost" not in shop.told("--forget", takeout_id(1))
    (shop.data / "suppressed.txt").write_text("# all gone\n")
    again = shop.takeout(9, (1, 2, 3, 4))
    assert re.search("suppressed.txt has lost [45] lines since the last import", shop.told(again))
    assert takeout_id(1) in shop.reviews
    assert "has lost" not in shop.told(again)


TURKISH = ["İBRAHİM ŞAHİN", "ibrahim şahin", "Ibrahim Sahin", "IBRAHIM SAHIN"]


@pytest.mark.parametrize("typed", TURKISH)
@pytest.mark.parametrize("flag", ["--no-short-names", "--short-names"])
def test_an_author_is_found_as_a_caller_would_type_the_name(shop: Shop, typed: str, flag: str) -> None:
    pages = shop.page(item(1, reviewer={"displayName": "İBRAHİM ŞAHİN"}), item(2))
    shop.take(pages, "--name", "B", flag)
    is_found = flag == "--no-short-names" or typed in TURKISH[:2]  # by a digest that keeps accents
    told = shop.told("--forget-author", typed)
    assert len(shop.reviews) == (1 if is_found else 2)
    assert (f"no review of {typed} is stored; future ones are kept away\n" in told) is not is_found
    if is_found:
        shop.take(shop.page(item(7, reviewer={"displayName": "İbrahim Şahin"}), item(2)))
        assert set(shop.reviews) == {takeout_id(2)}


def test_similar_authors_are_a_question_that_the_exact_name_answers(shop: Shop) -> None:
    names = ("Jörg Groß", "Jorg GROSS", "JÖRG Groß")
    pages = shop.page(*(item(n, reviewer={"displayName": name}) for n, name in enumerate(names)))
    shop.take(pages, "--name", "B")
    told = shop.refused("--forget-author", "jorg groß")
    assert all(f"{name} ({takeout_id(n)})" in told for n, name in enumerate(names))
    shop.take("--forget-author", "Jörg Groß")
    assert [review["author"] for review in shop.reviews.values()] == ["Jorg GROSS"]
    assert "is not the name of a single author" in shop.refused("--forget-author", "A Google user")


def test_an_unknown_review_is_a_question(shop: Shop) -> None:
    start(shop)
    told = 'No review has the id "x".\nGive its id, or the address of its page.\n'
    assert shop.refused("--forget", "x").startswith(told)


def test_a_copy_of_an_edited_file_is_named_when_something_is_erased(shop: Shop) -> None:
    start(shop)
    shop.edit(takeout_id(1), text="mine")
    start(shop)
    told = shop.told("--forget", takeout_id(1))
    (copy,) = shop.data.glob("*.edited-*")
    assert f"{copy} may still have the removed reviews; delete it if so\n" in told


# ---- Redaction ----


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_redaction_lasts_through_edits_returns_and_a_lost_state(shop: Shop, is_lost: bool) -> None:
    text, reply = "Call  Dr. Roe at 555-0142!", {"comment": "dr. roe says thanks"}
    items = [item(1, comment=text, reviewReply=reply), *(item(n) for n in range(2, 30))]
    shop.take(shop.takeout(9, items))
    shop.take("--redact", takeout_id(1), "Dr.  Roe")
    review = shop.reviews[takeout_id(1)]
    assert (review["text"], review["owner_reply"]["text"]) == ("Call  […] at 555-0142!", "[…] says thanks")
    shop.take(shop.takeout(12, items[1:]))
    assert takeout_id(1) not in shop.reviews
    if is_lost:
        shop.lose(STATE_FILE)
    edited = api_item(1, comment=f"{text} Edited: DR. ROE", updateTime=moment(15))
    shop.take(shop.page(edited, api_item(2)))
    assert "Call  […] at 555-0142! Edited: […]" in {review["text"] for review in shop.reviews.values()}


@pytest.mark.parametrize("id", ["mine", "#1"])
def test_a_redaction_of_an_own_review_is_one_line_and_lasts(shop: Shop, id: str) -> None:
    start(shop)
    shop.add_own(id=id, author="Eve", rating=4, date="2024-05-05", text="Call 555")
    shop.take("--redact", id, "555")
    shop.edit(id, text="Call 555 now")
    for _ in range(2):
        start(shop)
    assert shop.reviews[id]["text"] == "Call […] now"
    assert re.fullmatch(f"{id}\t555\t[0-9a-f]{{64}}\n", shop.files()["redacted.txt"].decode())


def test_words_are_redacted_in_the_reply_to_a_review_without_words(shop: Shop) -> None:
    shop.take(shop.page(item(1, comment=None, reviewReply={"comment": "Hi Eve"})), "--name", "B")
    shop.take("--redact", takeout_id(1), "Eve")
    assert (shop.only()["text"], shop.only()["owner_reply"]["text"]) == (None, "Hi […]")


@pytest.mark.parametrize("words", ["Nobody", " ", ""])
def test_words_that_do_not_stand_in_the_review_are_not_redacted(shop: Shop, words: str) -> None:
    start(shop)
    assert "does not have the words" in shop.refused("--redact", takeout_id(2), words)


EXPECTED = "expected 64 lower-case hexadecimal digits, alone or after “author ”"
WRONG = [
    ("suppressed.txt", "# who asked\n\nAnn\n", f"suppressed.txt line 3: {EXPECTED}\n"),
    ("redacted.txt", "# mine\nx words\n", "redacted.txt line 2: expected an id, a tab and words\n"),
]


@pytest.mark.parametrize(("name", "content", "told"), WRONG)
def test_a_line_that_cannot_be_read_stops_the_import(shop: Shop, name: str, content: str, told: str) -> None:
    start(shop)
    Path(shop.data / name).write_text(content)
    assert shop.refused("--zone", ZONE).startswith(told)
