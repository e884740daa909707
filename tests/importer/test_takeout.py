"""Google's exports are told by their content; what is none is named with its kind.

Sections: the words of a review - when a Takeout was made - what is no export - records
that are faulty - any bytes.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lab.export_lab import (
    FOLDER,
    OWN_REVIEWS,
    PLACE,
    ZONE,
    Shop,
    item,
    moment,
    page,
    stamped,
)

from reviewslib.importer.takeout import stamp_of
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_SUCCESS

# ---- The words of a review ----

COMMENTS = [
    pytest.param(
        "(Translated by Google) Nice\n\n(Original)\nFint (Original)",
        "Fint (Original)",
        id="a translation first",
    ),
    pytest.param("Fint\n\n(Translated by Google)\nNice", "Fint", id="and last"),
    pytest.param(
        "Muito bom\n\n(Traduzido pelo Google)\nVery good",
        "Muito bom",
        id="of an account in Portuguese",
    ),
    pytest.param(
        "(Translated by Google) without an original",
        "(Translated by Google) without an original",
        id="a translation alone",
    ),
    pytest.param(
        "I read (Translated by Google) everywhere",
        "I read (Translated by Google) everywhere",
        id="a marker in a sentence",
    ),
    pytest.param("a\r\nb\r\x00\u00a0c\ud800 ", "a\nb\n c\ufffd", id="signs"),
    pytest.param("e\u0301", "é", id="a letter and its mark"),
    pytest.param("🧡 مرحبا", "🧡 مرحبا", id="emoji and Arabic"),
    pytest.param("", None, id="empty"),
    pytest.param(None, None, id="absent"),
]


@pytest.mark.parametrize(("comment", "kept"), COMMENTS)
def test_a_comment_is_kept_as_its_customer_wrote_it(
    shop: Shop, comment: str | None, kept: str | None
) -> None:
    shop.take(shop.page(item(1, comment=comment)), "--name", "B")

    assert shop.only()["text"] == kept


@pytest.mark.parametrize(("comment", "kept"), COMMENTS)
def test_a_reply_is_kept_as_the_owner_wrote_it(
    shop: Shop, comment: str | None, kept: str | None
) -> None:
    reply = {"comment": comment, "updateTime": moment(3)}

    shop.take(shop.page(item(1, reviewReply=reply)), "--name", "B")

    expected = {"text": kept, "date": "2025-01-04T12:15:00-08:00"} if kept else None
    assert shop.only()["owner_reply"] == expected


# ---- When a Takeout was made ----

STAMPS = [
    pytest.param(
        "takeout-20260101T101112Z-001.zip", "2026-01-01T10:11:12Z", id="a part"
    ),
    pytest.param(
        "takeout-20260101T101112Z-2-001 (1).zip",
        "2026-01-01T10:11:12Z",
        id="loaded twice",
    ),
    pytest.param(
        "takeout-20260101T101112Z/Takeout/reviews.json",
        "2026-01-01T10:11:12Z",
        id="a file in its folder",
    ),
    pytest.param(
        "takeout-20260101T101112Z/takeout-20260202T101112Z-001",
        "2026-02-02T10:11:12Z",
        id="the inner of two",
    ),
    pytest.param("takeout-20261301T101112Z-001.zip", "", id="a thirteenth month"),
    pytest.param("reviews.zip", "", id="renamed"),
]


@pytest.mark.parametrize(("name", "time"), STAMPS)
def test_the_name_of_a_takeout_or_of_its_folder_says_when_it_was_made(
    name: str, time: str
) -> None:
    assert stamp_of(Path("/home") / name) == time


# ---- What is no export ----

AS_CSV = "if another tool made it, save it as “CSV UTF-8”"
NO_EXPORTS = [
    pytest.param(OWN_REVIEWS, "you wrote yourself", id="reviews by the owner"),
    pytest.param(
        b'{"reviews": [{"name": "places/x", "authorAttribution": {}}]}',
        "Places API, whose terms forbid keeping reviews",
        id="Places, new",
    ),
    pytest.param(
        b'{"result": {"reviews": [{"author_name": "Ann", "rating": 5}]}}',
        "Places API, whose terms forbid keeping reviews",
        id="Places, old",
    ),
    pytest.param(
        b'{"reviews": [{"id": "x", "time_created": "2026"}]}',
        "Yelp's API, whose terms forbid keeping reviews",
        id="Yelp",
    ),
    pytest.param(b'[{"a": 1}]', AS_CSV, id="a list of another tool"),
    pytest.param(
        b'{"data": [{"reviewer": "Ann", "stars": 5}]}', AS_CSV, id="an object of one"
    ),
    pytest.param(
        b'{"reviews": [{"reviewer_name": "Ann", "review_text": "Good"}]}',
        AS_CSV,
        id="reviews of another tool",
    ),
    pytest.param(b'{"reviews": [', "not JSON", id="half a page"),
    pytest.param(b"", "it is empty", id="nothing"),
    pytest.param(b"\x1f\x8b\x08", "a .tgz archive", id="a .tgz"),
    pytest.param(b"PK\x03\x04 cut", "damaged", id="half an archive"),
    pytest.param(
        b"<!DOCTYPE html>",
        "a web page; at takeout.google.com choose JSON",
        id="a web page",
    ),
]


@pytest.mark.parametrize(("content", "kind"), NO_EXPORTS)
def test_a_file_that_is_no_export_is_named_with_its_kind(
    shop: Shop, content: bytes, kind: str
) -> None:
    told = shop.refused(shop.file("file", content), "--zone", ZONE, "--name", "B")

    assert kind in told


def test_a_refused_file_makes_no_data_directory(shop: Shop) -> None:
    shop.refused(shop.file("file", b""), "--zone", ZONE, "--name", "B")

    assert not shop.data.exists()


MEMBERS = [
    pytest.param(
        "xl/workbook.xml", "a spreadsheet; save it as “CSV UTF-8”", id="a spreadsheet"
    ),
    pytest.param(
        "Index/Document.iwa",
        "a document of Numbers or Pages; export it as CSV",
        id="a document of Apple",
    ),
    pytest.param(
        "in/takeout-20260101T101112Z-001.zip",
        "a ZIP of ZIPs; unpack it and give the ZIPs that are inside",
        id="archives",
    ),
    pytest.param(
        "Takeout/G/account-1/location-2/reviews.html",
        "reviews as HTML; at takeout.google.com choose JSON",
        id="reviews as HTML",
    ),
    pytest.param(
        "Takeout/Drive/a.txt",
        "a Takeout without reviews of a business; at takeout.google.com choose",
        id="another Takeout",
    ),
    pytest.param("holiday/photo.JPG", "photographs without reviews", id="photographs"),
    pytest.param(
        "a.txt",
        "it has no reviews of a business; at takeout.google.com choose",
        id="a text",
    ),
    pytest.param(
        "Maps/Reviews.json", "reviews that you wrote yourself, in Maps", id="Maps"
    ),
]


@pytest.mark.parametrize(("name", "kind"), MEMBERS)
def test_a_folder_that_is_no_export_is_named_with_its_kind(
    shop: Shop, name: str, kind: str
) -> None:
    shop.file(f"folder/{name}", OWN_REVIEWS)

    told = shop.refused(shop.root / "folder", "--name", "B")

    assert told.startswith(str(shop.root / "folder"))
    assert f": {kind}" in told


@pytest.mark.parametrize(("name", "kind"), MEMBERS)
def test_an_archive_that_is_no_export_is_named_with_its_kind(
    shop: Shop, name: str, kind: str
) -> None:
    archive = shop.zip("x", {name: OWN_REVIEWS})

    told = shop.refused(archive, "--name", "B")

    assert told.startswith(str(archive))
    assert f": {kind}" in told


def test_a_part_with_photographs_alone_is_no_fault(shop: Shop) -> None:
    base = f"{FOLDER}/account-1/location-{PLACE}"
    title = b'{"title": "Rosa"}'
    photographs = {f"{base}/media-1.jpg": b"\xff\xd8", f"{base}/data.json": title}
    first = shop.zip(stamped(9, 1), photographs)
    second = shop.zip(stamped(9, 2), {f"{base}/reviews.json": page([item(1)])})

    told = shop.told(first, second)

    part = "a part of a Takeout without reviews; other parts may have some"
    assert f"{first}: {part}\n" in told
    assert shop.document["business"]["name"] == "Rosa"
    assert len(shop.reviews) == 1


EMPTY_PAGES = [
    pytest.param(b"\xef\xbb\xbf{}", id="an empty object"),
    pytest.param(
        page([], averageRating=0, totalReviewCount=0, nextPageToken=""),
        id="a page of the API without reviews",
    ),
]


@pytest.mark.parametrize("content", EMPTY_PAGES)
def test_an_empty_page_is_no_fault(shop: Shop, content: bytes) -> None:
    shop.take(shop.page(item(1)), shop.file("empty", content), "--name", "B")

    assert len(shop.reviews) == 1


# ---- Records that are faulty ----

NAMELESS = "it has no name of the form accounts/…/locations/…/reviews/…"


def faulty(**changes: Any) -> bytes:
    return page([item(1, **changes)])


FAULTY = [
    pytest.param(
        page([5, *3 * ["x"], item(1)]),
        '/reviews/1: it is "x" and not an object\n',
        id="a text as review",
    ),
    pytest.param(
        faulty(reviewer=[1]),
        "/reviews/0: reviewer is an array and not an object\n",
        id="a list as reviewer",
    ),
    pytest.param(
        faulty(comment=5), "/reviews/0: comment is 5 and not text\n", id="a number"
    ),
    pytest.param(
        faulty(createTime="2025-01-02"),
        'createTime is "2025-01-02" and not a moment\n',
        id="a day as moment",
    ),
    pytest.param(
        faulty(createTime="2131-01-01T00:00:00Z", updateTime=None),
        "in the future",
        id="a moment of the future",
    ),
    pytest.param(
        page(50 * [{"starRating": "ONE"}]),
        f"/reviews/49: {NAMELESS}\nCorrect the file, or",
        id="fifty, which are all named",
    ),
    pytest.param(
        page(52 * [{"starRating": "ONE"}]),
        f"/reviews/49: {NAMELESS}\n  and 2 more\nCorrect the file",
        id="more than fifty",
    ),
]


@pytest.mark.parametrize(("content", "fault"), FAULTY)
def test_faulty_records_are_named_with_their_place(
    shop: Shop, content: bytes, fault: str
) -> None:
    told = shop.refused(shop.file("file", content), "--zone", ZONE, "--name", "B")

    assert fault in told


# ---- Any bytes ----

JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.sampled_from([*item(1)]), part, max_size=4)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from([*item(1), "reviewReply", "reviewId"])
CHANGES = st.dictionaries(KEYS, JSON_LIKE, max_size=4)
PAGES = CHANGES.map(lambda changes: page([item(1) | changes]))
CSV_LIKE = st.text('",;\n=ABéid0123456789/ratingdutho', max_size=80).map(str.encode)
BYTES = st.binary(max_size=60) | CSV_LIKE
CONTENTS = (
    PAGES
    | BYTES
    | BYTES.map(b"author,rating,date\n".__add__)
    | BYTES.map(b"PK\x03\x04".__add__)
)


@pytest.mark.slow
@given(content=CONTENTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=240)
def test_no_content_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    shop = Shop(tmp_path_factory.mktemp("bytes"))
    path = shop.file("p", content)

    status = shop.run(path, "--zone", ZONE, "--name", "B", "--source", "x")

    assert status in {EXIT_SUCCESS, EXIT_BAD_DATA}
