"""Exports are told by content and become records; what they leave open stops the import."""

from datetime import UTC, datetime, timedelta

import pytest
from export_lab import HEADER, OWN_REVIEWS, ROW, ZONE, Shop, api_item, item, moment, page, table, written
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reviewslib.importer import command
from reviewslib.importer.command import EXIT_BAD_DATA, EXIT_SUCCESS
from reviewslib.importer.exports import HEAD_FILES, Export, latest, part_of

COMMENTS = {
    "(Translated by Google) Nice\n\n(Original)\nFint (Original)": "Fint (Original)",
    "Fint\n\n(Translated by Google)\nNice": "Fint",
    "Muito bom\n\n(Traduzido pelo Google)\nVery good": "Muito bom",
    "(Translated by Google) without an original": "(Translated by Google) without an original",
    "I read (Translated by Google) everywhere": "I read (Translated by Google) everywhere",
    "a\r\nb\r\x00\u00a0c\ud800 ": "a\nb\n c\ufffd",
    "e\u0301": "é",
    "🧡 مرحبا": "🧡 مرحبا",
    "": None,
    None: None,
}


@pytest.mark.parametrize("comment", COMMENTS)
def test_comments_and_replies_are_kept_as_they_were_written(shop: Shop, comment: str | None) -> None:
    reply = {"comment": comment, "updateTime": moment(3)}
    shop.take(written(shop.root / "a", page([item(1, comment=comment)])), "--name", "B")
    assert shop.only()["text"] == COMMENTS[comment]
    shop.take(written(shop.root / "b", page([item(1, comment="else", reviewReply=reply)])))
    expected = COMMENTS[comment] and {"text": COMMENTS[comment], "date": "2025-01-04T12:15:00-08:00"}
    assert shop.only()["owner_reply"] == expected


STAMP = "takeout-20260101T101112Z"
ARCHIVES = {f"{STAMP}-001": (STAMP, "001"), f"{STAMP}-2-001 (1)": (STAMP, "2-001"), STAMP: (STAMP, "")}
ARCHIVES |= {f"{STAMP}-0001": (STAMP, ""), "mine-002": ("mine", "002"), "mine-02": ("mine-02", "")}


def test_the_name_of_an_archive_says_of_which_export_it_is_which_part() -> None:
    assert {name: part_of(name) for name in ARCHIVES} == ARCHIVES


@pytest.mark.parametrize(
    ("numbers", "is_first_alone", "has_gap"),
    [("001", True, False), ("1-001", True, False), ("002", False, True), ("2-001", False, True),
     ("001 002", False, False), ("001 003", False, True), ("1-001 2-001", False, False),
     ("1-001 1-002 2-001 2-003", False, True), ("1-001 3-001", False, True), ("1-002 2-001", False, True)],
)  # fmt: skip
def test_parts_tell_what_is_missing(numbers: str, is_first_alone: bool, has_gap: bool) -> None:
    inside = {"a": ["7", *HEAD_FILES], "b": ["8", "data.json"], "c": ["9", *HEAD_FILES]}
    export = Export(dict.fromkeys(numbers.split(), ""), {"7": "2026", "8": "2025"}, inside)
    assert (export.is_first_alone(), export.has_gap()) == (is_first_alone, has_gap)
    assert export.complete_times() == ({} if has_gap else {"7": "2026"})


def test_of_each_location_the_latest_moment_counts() -> None:
    assert latest({"7": "2025", "8": "2024"}, {"7": "2026"}, {"7": "2024"}) == {"7": "2026", "8": "2024"}


OPEN_QUESTIONS = {
    "--date-order": ["Ann", "5", "05/03/2024", "fb"],
    "--scale": ["Ann", "8", "2024-01-01", "fb"],
}


@pytest.mark.parametrize("option", OPEN_QUESTIONS)
def test_what_is_open_stops_the_import_and_names_the_option(shop: Shop, option: str) -> None:
    rows = shop.csv(OPEN_QUESTIONS[option], header="author rating date source")
    assert shop.run(rows, "--name", "B") == EXIT_BAD_DATA
    assert option in shop.output().err
    assert not shop.data.exists()


def test_our_template_is_imported_as_it_is(shop: Shop) -> None:
    assert command.main(["--template"]) == EXIT_SUCCESS
    header = shop.output().out
    assert header == HEADER.replace(" ", ",") + "\n"
    shop.take(shop.csv(ROW, header=HEADER), "--name", "B")
    plain = dict(zip(HEADER.split()[1:7], ROW[1:7], strict=True)) | {"rating": 5, "id": "fb-7"}
    assert shop.only() == plain | {"owner_reply": {"text": "Thanks", "date": "2024-01-03"}}


def test_an_empty_cell_and_an_absent_column_differ(shop: Shop) -> None:
    shop.take(shop.csv(ROW, header=HEADER), "--name", "B")
    before = shop.only()
    shop.take(shop.csv(["7", "Ann", "5", "2024-01-02", "fb"], header="id author rating date source"))
    assert shop.only() == before
    shop.take(shop.csv([*ROW[:4], "nan", "fb", "", "", ""], header=HEADER))
    assert shop.only() == before | {"text": None, "source_url": None}
    for reply in (before["owner_reply"], {"text": "Welcome", "date": None}):
        row = ["7", "Ann", "5", "2024-01-02", "fb", reply["text"]]  # of which the date is not in the table
        shop.take(shop.csv(row, header="id author rating date source reply"))
        assert shop.only()["owner_reply"] == reply


def test_any_header_is_explained_by_a_map(shop: Shop) -> None:
    cells = ["Ann", "5", "2024-01-02", "'=1+1", "a@b", "no"]
    rows = table("Customer Stars When What Mail Bought", cells, delimiter=";")
    path = written(shop.root / "a.csv", rows.encode("utf-8-sig").replace(b"What", b'"What, and why"'))
    maps = ["author=Customer", "rating=Stars", "date=When", "text=What, and why", "verified=Bought"]
    shop.take(path, *(f"--map={each}" for each in maps), "--name", "B", "--source", "Shop")
    review = shop.only()
    assert (review["text"], review["source"], review["verified"]) == ("=1+1", "shop", False)
    assert b"a@b" not in shop.files()["reviews.json"]
    assert "\nnot verified, so not served: 1\n" in shop.output().out


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_csv_is_read_in_each_encoding(shop: Shop, encoding: str) -> None:
    text = table("author rating date text source", ["Åse", "5", "2024-01-01", 'Très "bien"\nici', "fb"])
    shop.take(written(shop.root / "a.csv", text.encode(encoding)), "--name", "B")
    assert (shop.only()["author"], shop.only()["text"]) == ("Åse", 'Très "bien"\nici')
    assert ("cp1252" in shop.output().out) == (encoding == "cp1252")


ROWS = ["author,rating,date,text,source", *(f"A{n},5,2024-01-{n:02},Good,fb" for n in range(1, 21))]


def rows(changes: dict[int, str]) -> str:
    """A table of 20 rows, with these lines instead; the first row is on line 2."""
    return "".join(f"{changes.get(number, row)}\n" for number, row in enumerate(ROWS, 1))


NEW_LINE = "\n"
NEXT = 'Cy,5,2024-02-02,"Good, cheap",fb'
UNCLOSED = {
    "to the end": ({5: 'Bo,4,2024-02-01,"Fine,fb'}, 5, "16 more lines"),
    "to the next quote": ({3: 'Bo,4,2024-02-01,"Fine,fb', 9: NEXT}, 3, "6 more lines"),
    "behind a text of lines": ({3: 'Bo,4,2024-02-01,"Fine\nand\nfar","fb', 9: NEXT}, 5, "6 more lines"),
    "of all cells": ({3: '"Bo","4","2024-02-01","Fine', 4: '"Cy","5","x","y","fb"'}, 3, "1 more line"),
    "with more lines than a review has": ({3: f'Bo,4,2024-02-01,"{51 * NEW_LINE}",fb'}, 3, "51 more lines"),
    "over half a million characters": ({2: 'Bo,4,2024-02-01,"Fine,fb', 20: 500_000 * "x"}, 2, "more lines"),
}


@pytest.mark.parametrize("kind", UNCLOSED)
def test_a_quote_that_is_not_closed_never_puts_the_words_of_others_into_a_review(
    shop: Shop, kind: str
) -> None:
    changes, line, swallowed = UNCLOSED[kind]
    path = written(shop.root / "a.csv", rows(changes))
    assert shop.run(path, "--name", "B", "--zone", ZONE) == EXIT_BAD_DATA
    told = shop.output().err
    assert f"a.csv line {line}: a quote opens here" in told and swallowed in told
    assert not shop.data.exists()


def test_quotes_within_one_line_and_texts_of_many_lines_are_taken_as_they_are(shop: Shop) -> None:
    lines = {3: 'Bo,4,2024-02-01,"Wow" said I,fb', 4: 'Cy,5,2024-02-02,"' + "a\n" * 40 + 'b ""c""",fb'}
    shop.take(written(shop.root / "a.csv", rows(lines)), "--name", "B")
    texts = {review["text"] for review in shop.reviews.values()}
    assert texts == {"Good", "Wow said I", "a\n" * 40 + 'b "c"'}


def test_a_date_of_the_future_is_a_faulty_row_with_a_day_of_tolerance(shop: Shop) -> None:
    today = datetime.now(UTC).date()
    days = [today + timedelta(days) for days in (0, 1, 3)]
    header = "author rating date reply reply_date"
    future = [["Bo", "5", f"{day}", "", ""] for day in days]
    reply = ["Cy", "5", "2024-01-01", "Thanks", "2131-01-01"]
    shop.take(shop.csv(*future, reply, header=header), "--name", "B", "--source", "fb")
    told = shop.output().out
    assert "a.csv line 4: " in told and "a.csv line 5: " in told and "in the future" in told
    assert max(review["date"] for review in shop.reviews.values()) == f"{days[1]}"
    assert len(shop.reviews) == 2


DAMAGED = {"mac_roman": "Zoë Müller", "cp850": "Für José", "cp1251": "Привет", "cp1253": "Καλημέρα"}
DAMAGED["utf-8"] = "Bjørn"


@pytest.mark.parametrize("encoding", DAMAGED)
def test_letters_that_cp1252_damages_stop_the_import_and_the_mended_file_adds_no_second_review(
    shop: Shop, encoding: str
) -> None:
    lines = [f"{DAMAGED[encoding]},5,2024-01-01,Good,fb", *ROWS[1:8]]
    text = "\n".join([ROWS[0], *lines])
    cut = b"\xff" if encoding == "utf-8" else b""  # one byte that UTF-8 does not have
    path = written(shop.root / "a.csv", text.encode(encoding) + cut)
    assert shop.run(path, "--name", "B") == EXIT_BAD_DATA
    assert "save it as “CSV UTF-8”" in shop.output().err
    assert not shop.data.exists()
    shop.take(written(path, text), "--name", "B")
    assert len(shop.reviews) == 8


WESTERN = "Très bien, “çà et là” – 5 € l’été|Größe ändert Übliches … ’s ist so|¿Qué? ¡Años! 20 m²|Ærø Œuvre"


@pytest.mark.parametrize("text", WESTERN.split("|"))
def test_what_western_languages_write_in_cp1252_is_taken(shop: Shop, text: str) -> None:
    content = "\n".join([ROWS[0], f'Ann,5,2024-01-01,"{text}",fb']).encode("cp1252")
    shop.take(written(shop.root / "a.csv", content), "--name", "B")
    assert shop.only()["text"] == text


NAMELESS = "it has no name of the form accounts/…/locations/…/reviews/…\n"
REFUSED = {
    "maps": (OWN_REVIEWS, "you wrote yourself"),
    "places": (b'{"reviews": [{"name": "places/x", "authorAttribution": {}}]}', "Places"),
    "old places": (b'{"result": {"reviews": [{"author_name": "x"}]}}', "Places"),
    "yelp": (b'{"reviews": [{"id": "x", "time_created": "2026"}]}', "Yelp"),
    "json": (b'[{"a": 1}]', "not an export that is known"),
    "no json": (b'{"reviews": [', "not JSON"),
    "empty": (b"", "empty"),
    "gzip": (b"\x1f\x8b\x08", "tgz"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1", "CSV UTF-8"),
    "zip": (b"PK\x03\x04 cut", "damaged"),
    "spoilt": (b"id,author,rating,date,source\n1.17E+17,A,5,2024-01-01,fb\n", "spreadsheet"),
    "text": (page([5, *3 * ["x"], item(1)]), '/reviews/1: it is "x" and not an object\n'),
    "reviewer": (page([item(1, reviewer=[1])]), "/reviews/0: reviewer is an array and not an object\n"),
    "comment": (page([item(1, comment=5)]), "/reviews/0: comment is 5 and not text\n"),
    "day": (page([item(1, createTime="2025-01-02")]), 'createTime is "2025-01-02" and not a moment\n'),
    "fifty": (page(50 * [{"starRating": "ONE"}]), f"/reviews/49: {NAMELESS}Mend the file, or"),
    "more": (page(52 * [{"starRating": "ONE"}]), f"/reviews/49: {NAMELESS}  and 2 more\nMend the file, or"),
    "verified": (b"author,rating,date,source,verified\nA,5,2024-01-01,fb,no\n", "--map"),
    "future": (page([item(1, createTime="2131-01-01T00:00:00Z", updateTime=None)]), "in the future"),
    "PK": (b"PK,author,rating,date,source\n7,A,5,2024-01-01,fb\n", "--map"),
    "page": (b"<!DOCTYPE html>", "DOCTYPE"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_imported_is_refused_in_a_sentence(shop: Shop, kind: str) -> None:
    content, words = REFUSED[kind]
    assert shop.run(written(shop.root / "file", content), "--zone", ZONE, "--name", "B") == EXIT_BAD_DATA
    assert words in shop.output().err
    assert not shop.data.exists()


def test_an_empty_page_is_no_fault(shop: Shop) -> None:
    nameless = page([api_item(5, name=None)], averageRating=5, totalReviewCount=1)
    empty = page([], averageRating=0, totalReviewCount=0, nextPageToken="")
    for n, content in enumerate((b"{}", empty, nameless)):
        shop.take(shop.page(item(n)), shop.file("empty", content), "--name", "B")
    assert len(shop.reviews) == 4
    told = shop.output().out
    for totals in ("0 reviews of 0", "1 reviews of 5"):
        assert (
            f"\npages of the API with {totals} stars remove nothing: they do not name one location\n" in told
        )


def test_letters_that_look_damaged_are_told(shop: Shop) -> None:
    shop.take(shop.csv(*(["Ann", "5", f"2024-01-0{n}", "BjÃ¸rn"] for n in (1, 2))), "--name=B", "--source=fb")
    told = "\nletters of 2 reviews look damaged (“BjÃ¸rn”); export them anew\n"
    assert told in shop.output().out


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from([*item(1)]), part, max_size=4),
    max_leaves=8,
)


CHANGES = st.dictionaries(st.sampled_from([*item(1), "reviewReply", "reviewId"]), JSON_LIKE, max_size=4)
PAGES = CHANGES.map(lambda change: page([item(1) | change]))
BYTES = st.binary(max_size=60) | st.text('",;\n=ABéid0123456789/ratingdutho', max_size=80).map(str.encode)


@given(json_like=PAGES, data=BYTES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_content_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, json_like: bytes, data: bytes
) -> None:
    shop = Shop(tmp_path_factory.mktemp("bytes"))
    for content in (json_like, data, b"author,rating,date\n" + data, b"PK\x03\x04" + data):
        path = written(shop.root / "p", content)
        assert shop.run(path, "--zone", ZONE, "--name", "B", "--source", "x") in (EXIT_SUCCESS, EXIT_BAD_DATA)
