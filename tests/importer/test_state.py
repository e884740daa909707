"""What imports remember: a state of any version is read, and dates in a wrong zone are put right."""

import json
from hashlib import sha256

import pytest
from export_lab import Shop, api_item, item, moment, page, takeout, takeout_id, written

from reviewslib.importer.command import EXIT_BAD_DATA, EXIT_SUCCESS
from reviewslib.importer.state import State, Stored, digest, match_key, row_digest

WRONG, RIGHT = "America/Los_Angeles", "Europe/Berlin"


def test_a_state_with_what_a_later_version_remembers_is_read_and_one_of_another_form_is_refused(
    shop: Shop,
) -> None:
    pages = written(shop.root / "p", page([item(1)]))
    shop.take(pages, "--name", "B")
    state = shop.state
    state["reviews"][takeout_id(1)]["has_zone"] = "yes"
    written(shop.data / "import-state.json", json.dumps(state | {"headers": {"a,b": {"source": "fb"}}}))
    shop.take(pages)
    for path, wrong in (("/reviews", []), ("/zone", {}), ("/exports/x", 5), ("/exports/x/ids", {"ids": [1]})):
        key, _, inner = path[1:].partition("/")
        document = state | {key: {"x": wrong} if inner else wrong}
        written(shop.data / "import-state.json", json.dumps(document))
        assert shop.run(pages) == EXIT_BAD_DATA
        told = f"import-state.json {path}: unexpected; delete the file to have it made anew\n"
        assert told in shop.output().err


EARLIER_NAMES = {
    "suppressed_aliases": "hidden",
    "multipart": "parted",
    "match_key": "join",
    "naive": "clocks",
}


def test_a_state_with_the_names_of_earlier_versions_is_read(shop: Shop) -> None:
    rows = shop.csv(["Ann", "5", "2024-03-05 10:00", "a"])
    shop.take(takeout(shop.root / "t-002.zip", [item(1), item(2)]), rows, "--name", "B", "--source", "fb")
    assert shop.run("--forget", takeout_id(1)) == EXIT_SUCCESS
    before = shop.files()
    text = before["import-state.json"].decode()
    for name, earlier in EARLIER_NAMES.items():
        assert f'"{name}"' in text
        text = text.replace(f'"{name}"', f'"{earlier}"')
    written(shop.data / "import-state.json", text)
    shop.take(rows, "--source", "fb")
    assert shop.files() == before


def test_a_wrong_zone_is_put_right_and_the_same_files_change_no_byte(shop: Shop) -> None:
    reply = {"comment": "Takk", "updateTime": moment(5)}
    google = takeout(shop.root / "t.zip", [item(1, reviewReply=reply)])
    clock = ["Ann", "5", "2024-03-05 10:00", "clock", "Thanks", "2024-03-06 11:00", "fb"]
    own_zone = ["Bo", "5", "2024-03-05T23:30:00Z", "own zone", "", "", "fb"]
    days = ["Cy Roe", "5", "2024-03-05", "day", "Thanks", "2024-03-07", "fb"]
    by_hand = ["Di", "5", "2024-03-05T23:30:00Z", "by hand", "Thanks", "2024-03-06T23:30:00Z", "fb"]
    rows = shop.csv(clock, own_zone, days, by_hand, header="author rating date text reply reply_date source")
    shop.take(google, rows, "--short-names")
    ids = {review["author"]: id for id, review in shop.reviews.items()}
    shop.edit(ids["Di"], text="mended", author="Diana")
    before = shop.files()
    assert shop.run("--rewrite-dates", "--zone", RIGHT, "--dry-run") == EXIT_SUCCESS
    assert "dates of 4 reviews would be written anew in Europe/Berlin" in shop.output().out
    assert shop.files() == before
    assert shop.run(rows, "--zone", RIGHT) == EXIT_BAD_DATA
    assert "--zone Europe/Berlin --rewrite-dates" in shop.output().err
    assert shop.run("--rewrite-dates", "--zone", RIGHT) == EXIT_SUCCESS
    after = shop.files()
    replies = {id: (review.get("owner_reply") or {}).get("date") for id, review in shop.reviews.items()}
    dates = {id: (review["date"], replies[id]) for id, review in shop.reviews.items()}
    assert dates == {
        takeout_id(1): ("2025-01-02T21:15:00+01:00", "2025-01-06T21:15:00+01:00"),
        ids["Ann"]: ("2024-03-05T10:00:00+01:00", "2024-03-06T11:00:00+01:00"),
        ids["Bo"]: ("2024-03-06T00:30:00+01:00", None),
        ids["Cy R."]: ("2024-03-05", "2024-03-07"),
        ids["Di"]: ("2024-03-06T00:30:00+01:00", "2024-03-07T00:30:00+01:00"),
    }
    for paths in ([rows], [google, rows], [google]):
        assert shop.run(*paths) == EXIT_SUCCESS
        assert shop.files() == after
    assert shop.run("--rewrite-dates", "--zone", WRONG) == EXIT_SUCCESS
    assert shop.files()["reviews.json"] != after["reviews.json"]
    assert {id: each["date"] for id, each in shop.reviews.items()} == {
        each["id"]: each["date"] for each in json.loads(before["reviews.json"])["reviews"]
    }
    assert shop.run(rows) == EXIT_SUCCESS
    assert set(shop.reviews) == set(dates)
    shop.output()
    assert shop.run(shop.page(item(9)), "--rewrite-dates", "--zone", RIGHT) == EXIT_SUCCESS
    assert "\ndates of 4 reviews were written anew in Europe/Berlin\n" in shop.output().out


def test_a_row_that_was_erased_stays_away_in_the_right_zone(shop: Shop) -> None:
    rows = shop.csv(["Bo", "5", "2024-03-05T23:30:00Z", "gone"], ["Cy", "5", "2024-03-05T23:30:00Z", "stays"])
    shop.take(rows, "--name", "B", "--source", "fb")
    (gone,) = (id for id, review in shop.reviews.items() if review["author"] == "Bo")
    assert shop.run("--forget", gone) == EXIT_SUCCESS
    assert shop.run("--rewrite-dates", "--zone", RIGHT) == EXIT_SUCCESS
    assert shop.run(rows, "--source", "fb") == EXIT_SUCCESS
    assert shop.only()["author"] == "Cy"
    other = shop.csv(["Bo", "5", "2024-03-06 03:00", "of this day in any zone"])
    assert shop.run(other, "--source", "fb") == EXIT_SUCCESS
    assert len(shop.reviews) == 2


def test_a_kill_amid_the_rewriting_of_dates_is_mended_by_the_same_command(shop: Shop) -> None:
    rows = shop.csv(["Bo", "5", "2024-03-05 23:30", "a"], ["Cy", "5", "2024-03-05T23:30:00Z", "b"])
    shop.take(rows, "--name", "B", "--source", "fb")
    shop.run_until_killed("--rewrite-dates", "--zone", RIGHT)
    assert shop.run("--rewrite-dates", "--zone", RIGHT) == EXIT_SUCCESS
    after = shop.files()
    dates = {each["date"] for each in shop.reviews.values()}
    assert dates == {"2024-03-05T23:30:00+01:00", "2024-03-06T00:30:00+01:00"}
    assert shop.run(rows, "--source", "fb") == EXIT_SUCCESS
    assert shop.files()["reviews.json"] == after["reviews.json"]


@pytest.mark.parametrize("lost", ["all", "what was written without a zone"])
def test_where_no_state_tells_it_tables_have_times_without_a_zone_and_google_has_none(
    shop: Shop, lost: str
) -> None:
    google = item(1, reviewReply={"comment": "Takk", "updateTime": moment(5)})
    row = ["Ann", "5", "2024-03-05 10:00", "Thanks", "2024-03-06 11:00"]
    rows = shop.csv(row, header="author rating date reply reply_date")
    shop.take(rows, shop.page(google), "--name", "B", "--source", "fb")
    state = {key: value for key, value in shop.state.items() if key != "headers"}
    for entry in state["reviews"].values():
        del entry["naive"]
    path = written(shop.data / "import-state.json", json.dumps(state))
    if lost == "all":
        path.unlink()
    assert shop.run("--rewrite-dates", "--zone", RIGHT) == EXIT_SUCCESS
    dates = {each["author"]: (each["date"], each["owner_reply"]["date"]) for each in shop.reviews.values()}
    assert dates == {
        "Ósk Nr1": ("2025-01-02T21:15:00+01:00", "2025-01-06T21:15:00+01:00"),
        "Ann": ("2024-03-05T10:00:00+01:00", "2024-03-06T11:00:00+01:00"),
    }
    assert shop.run("--forget-author", "ann") == EXIT_SUCCESS
    assert [*shop.reviews] == [takeout_id(1)]
    assert shop.files()["suppressed.txt"].decode() == f"author {digest('fb', 'ann')}\n"


def test_a_review_of_a_table_is_met_in_takeout_once_its_zone_is_right(shop: Shop) -> None:
    row = shop.csv(["7", "Ósk Nr1", "5", "2025-01-02 21:15", "google"], header="id author rating date source")
    shop.take(row, shop.page(item(2)), "--name", "B")
    shop.edit(takeout_id(2), author="Edda")
    assert shop.run("--rewrite-dates", "--zone", RIGHT) == EXIT_SUCCESS
    again = item(1, createTime="2025-01-02T20:15:00Z"), api_item(2)
    assert shop.run(shop.page(*again)) == EXIT_SUCCESS
    assert set(shop.reviews) == {"google-7", takeout_id(2)}


def test_a_review_without_a_source_is_of_an_unknown_one(shop: Shop) -> None:
    shop.data.mkdir()
    review = {"id": "1", "author": "Ann", "rating": 5, "date": "2024-01-01"}
    written(shop.data / "reviews.json", json.dumps({"business": {"name": "B"}, "reviews": [review]}))
    assert shop.run("--forget", "1") == EXIT_SUCCESS
    assert shop.files()["suppressed.txt"].decode() == f"{digest('unknown', '1')}\n"


def test_keys_tell_apart_what_they_are_made_of() -> None:
    one, other = ("google", "2024", "Ann Roe"), ("fb", "2025", "Bo")
    keys = {match_key(*one[:n], other[n], *one[n + 1 :]) for n in range(3)}
    assert match_key("google", "2024", "ANN Ray") == match_key(*one) not in keys
    assert match_key("google", "", "Ann Roe") == ""
    assert digest("fb", "ann") == sha256(b"fb\nann").hexdigest()
    assert len({row_digest("ann", "2024-01-01"), row_digest("bo", "2024-01-01"), row_digest("ann", "")}) == 3


def test_a_state_made_before_parts_were_known_guards_against_older_exports(shop: Shop) -> None:
    shop.take(takeout(shop.root / "newer.zip", [item(n) for n in (1, 2, 3, 5)]), "--name", "B")
    state = {key: value for key, value in shop.state.items() if key != "exports"}
    written(shop.data / "import-state.json", json.dumps(state))
    shop.take(takeout(shop.root / "older.zip", [item(1), item(3)]))
    assert set(shop.reviews) == {takeout_id(n) for n in (1, 2, 3, 5)}


def test_a_zone_that_was_never_told_is_no_wrong_one() -> None:
    for zone, wrong in (("", []), (RIGHT, []), (WRONG, [WRONG])):
        assert Stored({}, "", None, State(zone), []).in_zone(RIGHT).state.zones == wrong
