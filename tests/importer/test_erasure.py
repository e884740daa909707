"""Erased reviews and redacted words stay away, whatever later exports have (rule 8).

Sections: a review of Google - the same review in tables of other tools - a row of a
table - reviews of the owner's own - suppressed.txt - authors - copies of edited files -
redaction - what is refused.
"""

import re

import pytest
from lab.export_lab import ZONE, Shop, api_item, item, moment, takeout_id

ROSE = {"displayName": "Rosé van Hill"}


@pytest.fixture
def rose(shop: Shop) -> Shop:
    """A shop with four reviews of Google, one of them by Rosé van Hill."""
    shop.take(shop.takeout(9, [item(1, reviewer=ROSE), 2, 3, 4]))
    return shop


def lines_of(shop: Shop) -> str:
    return (shop.data / "suppressed.txt").read_text()


def by(name: str, number: int = 1) -> dict[str, object]:
    """A review by somebody of this name."""
    return item(number, reviewer={"displayName": name})


# ---- A review of Google ----


def test_a_forgotten_review_goes_and_is_named(rose: Shop) -> None:
    told = rose.told("--forget", takeout_id(1))

    assert "removed for good: 1: Rosé van Hill, 2025-01-02 (" in told
    assert takeout_id(1) not in rose.reviews


def test_no_file_of_ours_keeps_the_id_or_the_name_of_a_forgotten_review(
    rose: Shop,
) -> None:
    rose.take("--forget", takeout_id(1))

    for content in rose.files().values():
        assert b"ChZDSUhNMG9n0001EAE" not in content
        assert "Rosé".encode() not in content


def test_the_address_of_its_page_names_a_review_as_well_as_its_id(rose: Shop) -> None:
    rose.take("--forget", f"http://127.0.0.1:8080/reviews/{takeout_id(1)}?x#y")

    assert takeout_id(1) not in rose.reviews


@pytest.fixture
def only_the_lines(rose: Shop) -> Shop:
    """A shop that has forgotten a review and lost all files but suppressed.txt."""
    rose.take("--forget", takeout_id(1))
    rose.lose("import-state.json", "reviews.json")
    return rose


def test_a_forgotten_review_stays_away_under_another_id_and_name(
    only_the_lines: Shop,
) -> None:
    renamed = item(1, name=item(9)["name"], reviewer={"displayName": "R. H."})

    only_the_lines.take(only_the_lines.takeout(12, [renamed, 2]), "--name", "B")

    assert set(only_the_lines.reviews) == {takeout_id(2)}


def test_a_forgotten_review_stays_away_in_the_api(only_the_lines: Shop) -> None:
    renamed = api_item(1, reviewer={"displayName": "R. H."})

    only_the_lines.take(only_the_lines.page(renamed, api_item(2)), "--name", "B")

    assert len(only_the_lines.reviews) == 1


@pytest.mark.parametrize(
    "name", ["suppressed.txt", "import-state.draft.json", "reviews.json"]
)
def test_a_killed_erasure_is_not_undone_by_the_next_import(
    rose: Shop, name: str
) -> None:
    # given an erasure that is killed before this file has its place
    before = rose.files()
    rose.run_until_killed("--forget", takeout_id(1), name=name)
    is_begun = rose.files() != before

    # when the next export still has the review
    rose.take(rose.takeout(12, [item(1, reviewer=ROSE), 2, 3, 4]))

    # then either nothing was erased, or it stays away
    assert (takeout_id(1) not in rose.reviews) is is_begun


# ---- The same review in tables of other tools ----

IN_TABLES = [
    pytest.param("Rosé van Hill", "2025-01-02", True, id="the same name and day"),
    pytest.param("ROSÉ H.", "2025-01-03", True, id="a short name, a day later"),
    pytest.param("Rosé van Hill", "2025-01-04", False, id="two days later"),
    pytest.param("Rosa Hill", "2025-01-02", False, id="another first name"),
]


def table_with(shop: Shop, author: str, day: str) -> list[object]:
    """The words that import a row by this author, and one by somebody else."""
    table = shop.csv([author, "5", day, "Hi"], ["Bo", "5", "2024-01-01", ""])
    return [table, "--source", "google maps", "--name", "B"]


@pytest.mark.parametrize(("author", "day", "is_same"), IN_TABLES)
def test_a_forgotten_review_stays_away_in_tables_by_short_name_and_day(
    only_the_lines: Shop, author: str, day: str, is_same: bool
) -> None:
    only_the_lines.take(*table_with(only_the_lines, author, day))

    assert ("Hi" not in only_the_lines.texts()) is is_same


@pytest.mark.parametrize(
    ("day", "is_same"),
    [
        pytest.param("2025-01-03", True, id="a day later"),
        pytest.param("2025-01-05", False, id="three days later"),
    ],
)
def test_a_review_of_a_forgotten_author_stays_away_in_tables_too(
    rose: Shop, day: str, is_same: bool
) -> None:
    rose.take("--forget-author", "Rosé van Hill")
    rose.lose("import-state.json", "reviews.json")

    rose.take(*table_with(rose, "Rosé H.", day))

    assert ("Hi" not in rose.texts()) is is_same


# ---- A row of a table ----

FB = ("--source", "fb", "--name", "B")
ONE_DAY = ("5", "2025-01-02")


def forget_first(shop: Shop, *rows: list[str]) -> str:
    """Import a table, forget the review with the text "a", and lose the state.

    Returns what was told.
    """
    shop.take(shop.csv(*rows), *FB)
    ids = {review["text"]: id for id, review in shop.reviews.items()}
    told = shop.told("--forget", ids["a"])
    shop.lose()
    return told


TWO_ROWS = [
    pytest.param([["Ann Roe", *ONE_DAY, "a"], ["Bo", *ONE_DAY, "b"]], id="of a name"),
    pytest.param(
        [["Anonymous", *ONE_DAY, "a"], ["Anonymous", *ONE_DAY, "b"]],
        id="of a name that many have",
    ),
]


@pytest.mark.parametrize("rows", TWO_ROWS)
def test_a_forgotten_row_stays_away_without_the_other(
    shop: Shop, rows: list[list[str]]
) -> None:
    forget_first(shop, *rows)

    shop.take(shop.csv(*rows), *FB)

    assert shop.texts() == {"b"}


def test_the_name_and_day_of_a_forgotten_row_keep_googles_review_away_too(
    shop: Shop,
) -> None:
    forget_first(shop, ["Ann Roe", *ONE_DAY, "a"], ["Bo", *ONE_DAY, "b"])

    shop.take(shop.page(by("Ann Roe")))

    assert shop.texts() == {"b"}


def test_a_name_that_many_have_keeps_nobody_elses_review_away(shop: Shop) -> None:
    rows = [["Anonymous", *ONE_DAY, "a"], ["Anonymous", *ONE_DAY, "b"]]

    told = forget_first(shop, *rows)
    shop.take(shop.page(by("Anonymous")))

    assert "many customers are called Anonymous: tables are not searched for" in told
    assert len(shop.reviews) == 2


# ---- Reviews of the owner's own ----


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--forget", "mine"), id="by its id"),
        pytest.param(("--forget-author", "eve"), id="by its author"),
    ],
)
def test_a_review_with_an_id_of_the_owners_own_is_forgotten(
    rose: Shop, words: tuple[str, str]
) -> None:
    rose.edit("mine", author="Eve", rating=4, date="1985-05-05")

    rose.take(*words)

    assert "mine" not in rose.reviews


# ---- suppressed.txt ----


@pytest.fixture
def kept_away(rose: Shop) -> Shop:
    """A shop to which the forgotten author has come again with two other ids."""
    rose.take("--forget-author", "rose VAN hill")
    rose.take(rose.page(api_item(1, reviewer=ROSE), api_item(9, reviewer=ROSE)))
    return rose


def test_what_a_line_keeps_away_gets_lines_for_its_own_ids(rose: Shop) -> None:
    rose.take("--forget-author", "rose VAN hill")
    before = lines_of(rose)

    rose.take(rose.page(api_item(1, reviewer=ROSE), api_item(9, reviewer=ROSE)))

    assert lines_of(rose).startswith(before)
    assert len(lines_of(rose)) > len(before)


def test_the_added_lines_keep_a_review_away_under_another_name(
    kept_away: Shop,
) -> None:
    kept_away.lose()

    kept_away.take(kept_away.page(api_item(9, createTime=moment(8)), api_item(2)))

    assert len(kept_away.reviews) == 3


def test_the_lines_name_nobody(kept_away: Shop) -> None:
    lines = lines_of(kept_away)

    assert "Rosé" not in lines
    assert re.fullmatch("(?:(?:author )?[0-9a-f]{64}\n)+", lines)


def test_nothing_is_called_lost_while_all_lines_are_there(rose: Shop) -> None:
    assert "has lost" not in rose.told("--forget", takeout_id(1))


@pytest.fixture
def lost_lines(rose: Shop) -> Shop:
    """A shop whose suppressed.txt somebody has emptied."""
    rose.take("--forget", takeout_id(1))
    rose.file("data/suppressed.txt", "# all gone\n")
    return rose


def test_lost_lines_are_reported_with_their_number(lost_lines: Shop) -> None:
    told = lost_lines.told(lost_lines.takeout(9, (1, 2, 3, 4)))

    lost = "suppressed.txt has lost [45] lines since the last import: erased reviews"
    assert re.search(lost, told)


def test_lost_lines_are_reported_once(lost_lines: Shop) -> None:
    archive = lost_lines.takeout(9, (1, 2, 3, 4))
    lost_lines.take(archive)

    assert "has lost" not in lost_lines.told(archive)


def test_without_its_lines_an_erased_review_returns(lost_lines: Shop) -> None:
    lost_lines.take(lost_lines.takeout(9, (1, 2, 3, 4)))

    assert takeout_id(1) in lost_lines.reviews


# ---- Authors ----

IBRAHIM = "İBRAHİM ŞAHİN"
TYPED = [
    pytest.param("İBRAHİM ŞAHİN", id="as it is"),
    pytest.param("ibrahim şahin", id="in small letters"),
    pytest.param("Ibrahim Sahin", id="without marks"),
    pytest.param("IBRAHIM SAHIN", id="in capitals without marks"),
]


@pytest.mark.parametrize("typed", TYPED)
def test_an_author_is_found_as_somebody_would_type_the_name(
    shop: Shop, typed: str
) -> None:
    shop.take(shop.page(by(IBRAHIM), item(2)), "--name", "B")

    shop.take("--forget-author", typed)

    assert set(shop.reviews) == {takeout_id(2)}


def test_a_forgotten_author_stays_away_in_other_letters(shop: Shop) -> None:
    shop.take(shop.page(by(IBRAHIM), item(2)), "--name", "B")
    shop.take("--forget-author", "ibrahim sahin")

    shop.take(shop.page(by("İbrahim Şahin", 7), item(2)))

    assert set(shop.reviews) == {takeout_id(2)}


@pytest.fixture
def short_names(shop: Shop) -> Shop:
    """A shop that shows short names, so that whole ones are known by digests alone."""
    shop.take(shop.page(by(IBRAHIM), item(2)), "--name", "B", "--short-names")
    return shop


@pytest.mark.parametrize("typed", TYPED[:2])
def test_beside_short_names_the_whole_name_is_found_with_its_marks(
    short_names: Shop, typed: str
) -> None:
    short_names.take("--forget-author", typed)

    assert set(short_names.reviews) == {takeout_id(2)}


@pytest.mark.parametrize("typed", TYPED[2:])
def test_beside_short_names_a_name_without_its_marks_is_a_question(
    short_names: Shop, typed: str
) -> None:
    told = short_names.refused("--forget-author", typed)

    assert "The nearest names are:\n  İBRAHİM Ş.\n" in told


def test_a_name_that_nobody_has_is_a_question_with_the_nearest(rose: Shop) -> None:
    rose.edit("mine", author="Camille Roux", rating=4, date="2024-05-05")

    told = rose.refused("--forget-author", "Camile Roux")

    assert "The nearest names are:\n  Camille Roux\n" in told
    assert "say --anyway as well" in told


def test_the_five_nearest_names_are_offered(shop: Shop) -> None:
    reviews = [by(f"Camille Rou{letter}", n) for n, letter in enumerate("abcdefg")]
    shop.take(shop.page(*reviews), "--name", "B")

    told = shop.refused("--forget-author", "Camille Roux")

    assert told.count("\n  Camille Rou") == 5


def test_a_name_that_nobody_has_is_kept_away_when_told_to(rose: Shop) -> None:
    told = rose.told("--forget-author", "Nobody Yet", "--anyway")
    rose.take(rose.page(by("Nobody Yet", 40)))

    assert "no review of Nobody Yet is stored; future ones are kept away\n" in told
    assert takeout_id(40) not in rose.reviews


SIMILAR = ("Jörg Groß", "Jorg GROSS", "JÖRG Groß")


@pytest.fixture
def similar(shop: Shop) -> Shop:
    """A shop with reviews of three similar names."""
    reviews = [by(name, number) for number, name in enumerate(SIMILAR)]
    shop.take(shop.page(*reviews), "--name", "B")
    return shop


def test_similar_authors_are_a_question_that_lists_them(similar: Shop) -> None:
    told = similar.refused("--forget-author", "jorg groß")

    for number, name in enumerate(SIMILAR):
        assert f"  {name} ({takeout_id(number)})\n" in told


def test_the_exact_name_answers_which_author_is_meant(similar: Shop) -> None:
    """Capitals are no other name: two of the three are one author."""
    similar.take("--forget-author", "Jörg Groß")

    (review,) = similar.reviews.values()
    assert review["author"] == "Jorg GROSS"


@pytest.mark.parametrize(
    "name", ["A Google user", "Użytkownik Google", "Bir Google kullanıcısı", "匿名"]
)
def test_a_name_that_many_have_is_nobodys(similar: Shop, name: str) -> None:
    told = similar.refused("--forget-author", name)

    assert f"{name} is not the name of a single author." in told


# ---- Copies of edited files ----


def test_an_erasure_deletes_the_copies_of_edited_files_and_names_them(
    rose: Shop,
) -> None:
    rose.edit(takeout_id(1), author="Rose Mary")
    rose.take("--short-names")
    (copy,) = rose.data.glob("*.edited-*")

    told = rose.told("--forget", takeout_id(1))

    assert f"deleted: {copy}\n" in told
    assert not copy.exists()


# ---- Redaction ----

CALL = "Call  Dr. Roe at 555-0142!"
WITH_NAME = item(1, comment=CALL, reviewReply={"comment": "dr. roe says thanks"})


@pytest.fixture
def redacted(shop: Shop) -> Shop:
    """A shop that has redacted a name in a review and its reply."""
    shop.take(shop.takeout(9, [WITH_NAME, *range(2, 30)]))
    shop.take("--redact", takeout_id(1), "Dr.  Roe")
    return shop


def test_words_are_redacted_in_any_case_with_any_white_space(redacted: Shop) -> None:
    assert redacted.reviews[takeout_id(1)]["text"] == "Call  […] at 555-0142!"


def test_words_are_redacted_in_the_reply_too(redacted: Shop) -> None:
    reply = redacted.reviews[takeout_id(1)]["owner_reply"]

    assert reply["text"] == "[…] says thanks"


def test_a_redaction_lasts_through_a_removal_a_lost_state_and_an_edit(
    redacted: Shop,
) -> None:
    redacted.take(redacted.takeout(12, range(2, 30)))
    assert takeout_id(1) not in redacted.reviews
    redacted.lose()

    edited = f"{CALL} Edited: DR. ROE"
    again = api_item(1, comment=edited, updateTime=moment(15))
    redacted.take(redacted.page(again, api_item(2)))

    assert "Call  […] at 555-0142! Edited: […]" in redacted.texts()


@pytest.mark.parametrize(
    "id", [pytest.param("mine", id="a word"), pytest.param("#1", id="like a comment")]
)
def test_a_redaction_of_a_review_of_the_owners_own_lasts(rose: Shop, id: str) -> None:
    rose.edit(id, author="Eve", rating=4, date="2024-05-05", text="Call 555")
    rose.take("--redact", id, "555")
    rose.edit(id, text="Call 555 now")

    rose.take("--short-names")
    rose.take("--short-names")

    assert rose.reviews[id]["text"] == "Call […] now"


def test_a_redaction_is_one_line_of_an_id_words_and_digests(rose: Shop) -> None:
    rose.edit("mine", author="Eve", rating=4, date="2024-05-05", text="Call 555")

    rose.take("--redact", "mine", "555")

    line = rose.files()["redacted.txt"].decode()
    assert re.fullmatch("mine\t555\t[0-9a-f]{64}\n", line)


def test_words_are_redacted_in_the_reply_to_a_review_without_words(shop: Shop) -> None:
    reply = {"comment": "Hi Eve"}
    shop.take(shop.page(item(1, comment=None, reviewReply=reply)), "--name", "B")

    shop.take("--redact", takeout_id(1), "Eve")

    assert shop.only()["text"] is None
    assert shop.only()["owner_reply"]["text"] == "Hi […]"


# ---- What is refused ----

NO_WORDS = "does not have the words"
NO_ID = 'No review has the id "x".\nGive its id, or the address of its page.\n'
NOT_STORED = [
    pytest.param(("--redact", takeout_id(2), "Nobody"), NO_WORDS, id="other words"),
    pytest.param(("--redact", takeout_id(2), " "), NO_WORDS, id="a space"),
    pytest.param(("--redact", takeout_id(2), ""), NO_WORDS, id="no words"),
    pytest.param(("--forget", "x"), NO_ID, id="another id"),
]


@pytest.mark.parametrize(("words", "told"), NOT_STORED)
def test_what_is_not_stored_is_not_erased(
    rose: Shop, words: tuple[str, ...], told: str
) -> None:
    assert told in rose.refused(*words)


DIGITS = "expected 64 lower-case hexadecimal digits, alone or after “author ”"
UNREADABLE = [
    pytest.param(
        "suppressed.txt", "# who asked\n\nAnn\n", f"line 3: {DIGITS}", id="a name"
    ),
    pytest.param(
        "redacted.txt",
        "# mine\nx words\n",
        "line 2: expected an id, a tab and words",
        id="no tab",
    ),
]


@pytest.mark.parametrize(("name", "content", "fault"), UNREADABLE)
def test_a_line_that_cannot_be_read_stops_the_import(
    rose: Shop, name: str, content: str, fault: str
) -> None:
    rose.file(f"data/{name}", content)

    assert rose.refused("--zone", ZONE).startswith(f"{name} {fault}\n")
