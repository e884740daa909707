"""Exports are recognized by their content and become records; open questions stop the import."""

from pathlib import Path

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


@pytest.mark.parametrize(("comment", "kept"), COMMENTS.items())
def test_a_comment_is_kept_as_it_was_written(
    shop: Shop, comment: str | None, kept: str | None
) -> None:
    shop.take(shop.page(item(1, comment=comment)), "--name", "B")
    assert shop.only()["text"] == kept
    reply = {"comment": comment, "updateTime": moment(3)}
    shop.take(shop.page(item(1, comment="else", reviewReply=reply)))
    assert shop.only()["owner_reply"] == (
        kept and {"text": kept, "date": "2025-01-04T12:15:00-08:00"}
    )


STAMPS = {
    "takeout-20260101T101112Z-001.zip": "2026-01-01T10:11:12Z",
    "takeout-20260101T101112Z-2-001 (1).zip": "2026-01-01T10:11:12Z",
    "takeout-20260101T101112Z/Takeout/reviews.json": "2026-01-01T10:11:12Z",
    "takeout-20260101T101112Z/takeout-20260202T101112Z-001": "2026-02-02T10:11:12Z",
    "takeout-20261301T101112Z-001.zip": "",
    "reviews.zip": "",
}


def test_the_name_of_a_takeout_or_of_its_folder_says_when_it_was_made() -> None:
    assert {name: stamp_of(Path("/home") / name) for name in STAMPS} == STAMPS


NAMELESS = "it has no name of the form accounts/…/locations/…/reviews/…\n"
REFUSED = {
    "maps": (OWN_REVIEWS, "you wrote yourself"),
    "places": (
        b'{"reviews": [{"name": "places/x", "authorAttribution": {}}]}',
        "Places",
    ),
    "yelp": (b'{"reviews": [{"id": "x", "time_created": "2026"}]}', "Yelp"),
    "json": (b'[{"a": 1}]', "JSON, but not a known export"),
    "no json": (b'{"reviews": [', "not JSON"),
    "empty": (b"", "it is empty"),
    "gzip": (b"\x1f\x8b\x08", "a .tgz archive"),
    "zip": (b"PK\x03\x04 cut", "damaged"),
    "page": (b"<!DOCTYPE html>", "a web page; at takeout.google.com choose JSON"),
    "text": (
        page([5, *3 * ["x"], item(1)]),
        '/reviews/1: it is "x" and not an object\n',
    ),
    "reviewer": (
        page([item(1, reviewer=[1])]),
        "/reviews/0: reviewer is an array and not an object\n",
    ),
    "comment": (page([item(1, comment=5)]), "/reviews/0: comment is 5 and not text\n"),
    "day": (
        page([item(1, createTime="2025-01-02")]),
        'createTime is "2025-01-02" and not a moment\n',
    ),
    "fifty": (
        page(50 * [{"starRating": "ONE"}]),
        f"/reviews/49: {NAMELESS}Correct the file, or",
    ),
    "more": (
        page(52 * [{"starRating": "ONE"}]),
        f"/reviews/49: {NAMELESS}  and 2 more\nCorrect the file",
    ),
    "future": (
        page([item(1, createTime="2131-01-01T00:00:00Z", updateTime=None)]),
        "in the future",
    ),
}


@pytest.mark.parametrize(("content", "told"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_no_export_is_named_with_its_kind(
    shop: Shop, content: bytes, told: str
) -> None:
    assert told in shop.refused(
        shop.file("file", content), "--zone", ZONE, "--name", "B"
    )
    assert not shop.data.exists()


MEMBERS = {
    "xl/workbook.xml": "a spreadsheet; save it as “CSV UTF-8”",
    "Index/Document.iwa": "a document of Numbers or Pages; export it as CSV",
    "in/takeout-20260101T101112Z-001.zip": "a ZIP of ZIPs; unpack it and give the ZIPs that are inside",
    "Takeout/G/account-1/location-2/reviews.html": "reviews as HTML; at takeout.google.com choose JSON",
    "Takeout/Drive/a.txt": "a Takeout without reviews of a business; at takeout.google.com choose",
    "holiday/photo.JPG": "photographs without reviews",
    "a.txt": "it has no reviews of a business; at takeout.google.com choose",
    "Maps/Reviews.json": "reviews that you wrote yourself, in Maps",
}


@pytest.mark.parametrize(("name", "kind"), MEMBERS.items())
def test_an_archive_or_folder_is_named_with_its_kind(
    shop: Shop, name: str, kind: str
) -> None:
    shop.file(f"folder/{name}", OWN_REVIEWS)
    for path in (shop.root / "folder", shop.zip("x", {name: OWN_REVIEWS})):
        told = shop.refused(path, "--name", "B")
        assert told.startswith(str(path)) and f": {kind}" in told


def test_a_part_with_photographs_alone_is_no_fault(shop: Shop) -> None:
    base = f"{FOLDER}/account-1/location-{PLACE}"
    photograph = {
        f"{base}/media-1.jpg": b"\xff\xd8",
        f"{base}/data.json": b'{"title": "Rosa"}',
    }
    first = shop.zip(stamped(9, 1), photograph)
    second = shop.zip(stamped(9, 2), {f"{base}/reviews.json": page([item(1)])})
    told = f"{first}: a part of a Takeout without reviews; other parts may have some\n"
    assert told in shop.told(first, second)
    assert (len(shop.reviews), shop.document["business"]["name"]) == (1, "Rosa")


def test_an_empty_page_is_no_fault(shop: Shop) -> None:
    empty = page([], averageRating=0, totalReviewCount=0, nextPageToken="")
    for n, content in enumerate((b"\xef\xbb\xbf{}", empty)):
        shop.take(shop.page(item(n)), shop.file("empty", content), "--name", "B")
    assert len(shop.reviews) == 2


def test_damaged_letters_are_reported(shop: Shop) -> None:
    authors = ["BjÃ¸rn", "BjÃ¸rn", "Bjørn", "Bo", "Привет"]
    rows = shop.csv(
        *([author, "5", f"2024-01-0{n}", "x"] for n, author in enumerate(authors, 1))
    )
    told = f"{rows}: letters look damaged (“BjÃ¸rn”) in 2 reviews; export them anew\n"
    assert told in shop.told(rows, "--name=B", "--source=fb")


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.sampled_from([*item(1)]), part, max_size=4)
    ),
    max_leaves=8,
)


CHANGES = st.dictionaries(
    st.sampled_from([*item(1), "reviewReply", "reviewId"]), JSON_LIKE, max_size=4
)
PAGES = CHANGES.map(lambda change: page([item(1) | change]))
BYTES = st.binary(max_size=60) | st.text(
    '",;\n=ABéid0123456789/ratingdutho', max_size=80
).map(str.encode)


@pytest.mark.slow
@given(json_like=PAGES, data=BYTES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_content_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, json_like: bytes, data: bytes
) -> None:
    shop = Shop(tmp_path_factory.mktemp("bytes"))
    for content in (
        json_like,
        data,
        b"author,rating,date\n" + data,
        b"PK\x03\x04" + data,
    ):
        path = shop.file("p", content)
        assert shop.run(path, "--zone", ZONE, "--name", "B", "--source", "x") in (
            EXIT_SUCCESS,
            EXIT_BAD_DATA,
        )
