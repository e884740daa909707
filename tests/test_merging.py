"""Records of exports become part of the stored reviews: ids for ever, nothing lost, nothing back."""

import json
import random

import pytest
from export_lab import (
    HEADER,
    PLACE,
    ROW,
    ZONE,
    Shop,
    api_item,
    item,
    moment,
    page,
    takeout,
    takeout_files,
    takeout_id,
    written,
    zipped,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exports import clean
from import_reviews import EXIT_BAD_DATA, EXIT_SUCCESS
from merging import digest


def test_a_newer_version_replaces_an_older_one_in_either_order(shop: Shop) -> None:
    reply = {"comment": "Takk", "updateTime": moment(5)}
    old = takeout(shop.root / "old.zip", [item(n) for n in range(9)])
    edited = item(1, starRating="TWO", comment="worse", updateTime=moment(40), reviewReply=reply)
    renamed = item(0, reviewer={"displayName": "Ósk Önnur"})  # for which Google has no time
    new = takeout(shop.root / "new.zip", [renamed, edited, *(item(n) for n in range(3, 10))])
    ends = []
    for number, files in enumerate([[old, new], [new, old]]):
        one, by_one = Shop(shop.root / f"{number}"), Shop(shop.root / f"{number}a")
        for each in (one, by_one):
            each.root.mkdir()
        one.take(*files)
        for file in files:
            by_one.take(file)
        ends += [one.files()["reviews.json"], by_one.files()["reviews.json"]]
    assert all(end == ends[0] for end in ends)
    shop.take(old)
    shop.take(new, old)
    assert takeout_id(2) not in shop.reviews
    changed = shop.reviews[takeout_id(1)]
    assert (changed["rating"], changed["text"], changed["date"][:10]) == (2, "worse", "2025-01-02")
    assert changed["owner_reply"]["text"] == "Takk"


def test_of_two_versions_of_one_time_the_same_is_taken_in_either_order(shop: Shop) -> None:
    files = [written(shop.root / text, page([item(1, comment=text)])) for text in ("a", "b")]
    shop.take(*files, "--name", "B")
    before = shop.files()
    shop.take(*reversed(files))
    assert shop.files() == before


def test_a_review_has_one_id_in_takeout_and_in_the_api(shop: Shop) -> None:
    archive = takeout(shop.root / "t.zip", [item(n) for n in range(5)])
    pages = written(shop.root / "p.json", page([api_item(n) for n in range(3, 8)]))
    ids = {takeout_id(n) for n in range(5)} | {f"google-AbFvOq{n:04}" for n in range(5, 8)}
    shop.take(pages, archive)
    assert set(shop.reviews) == ids
    other = Shop(shop.root / "other")
    other.root.mkdir()
    other.take(archive)
    other.take(pages, "--short-names")
    assert set(other.reviews) == ids
    assert other.reviews[takeout_id(3)]["author"] == "Ósk N."
    api_first = Shop(shop.root / "api")
    api_first.root.mkdir()
    api_first.take(pages, "--name", "B")
    api_first.take(archive)
    assert set(api_first.reviews) == {takeout_id(n) for n in range(3)} | {
        f"google-AbFvOq{n:04}" for n in range(3, 8)
    }


def test_ids_that_cannot_be_joined_stop_the_import(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.take(takeout(shop.root / "t.zip", [item(n) for n in range(5)]))
    later = [api_item(n, createTime=moment(n, 9)) for n in range(3, 8)]
    before = shop.files()
    assert shop.run(written(shop.root / "p.json", page(later))) == EXIT_BAD_DATA
    assert "2 of 5 new reviews have author and day of a stored one" in capsys.readouterr().err
    assert shop.files() == before


def test_a_part_removes_nothing_and_a_whole_has_a_brake(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [item(number) for number in range(20)]
    shop.take(takeout(shop.root / "a.zip", items))
    left = items[4:]
    shop.take(written(shop.root / "page.json", page(left)))
    shop.take(takeout(shop.root / "t-002.zip", left))
    assert len(shop.reviews) == 20
    more = [item(number) for number in range(20, 40)]  # of which nothing is stored yet
    assert shop.run(takeout(shop.root / "b.zip", left + more)) == EXIT_BAD_DATA
    assert "4 of 20 reviews" in capsys.readouterr().err
    assert shop.run(takeout(shop.root / "b.zip", left)) == EXIT_BAD_DATA
    assert "--allow-removals" in capsys.readouterr().err
    shop.take(takeout(shop.root / "c.zip", items[3:]))
    assert len(shop.reviews) == 17
    shop.take(shop.root / "b.zip", "--allow-removals")
    assert len(shop.reviews) == 16
    shop.take(shop.root / "a.zip")  # of the same time: they have returned
    assert len(shop.reviews) == 20


def test_a_missing_reply_clears_only_one_that_is_older_than_the_export(shop: Shop) -> None:
    reply = {"comment": "Takk", "updateTime": moment(30)}
    shop.take(written(shop.root / "a", page([item(1, reviewReply=reply)])), "--name", "B")
    shop.take(written(shop.root / "b", page([item(1), item(2)])))
    assert shop.reviews[takeout_id(1)]["owner_reply"]
    shop.take(written(shop.root / "c", page([item(1), item(50)])))
    assert shop.reviews[takeout_id(1)]["owner_reply"] is None
    shop.take(shop.root / "a")
    assert shop.reviews[takeout_id(1)]["owner_reply"] is None


def test_what_was_changed_by_hand_stays(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.take(written(shop.root / "a", page([item(1), item(2)])), "--name", "B")
    shop.edit(takeout_id(1), text="mended", mine=[1], mentioned_services=["cake"])
    shop.take(
        written(shop.root / "b", page([item(1, comment="new", starRating="ONE", updateTime=moment(9))]))
    )
    review = shop.reviews[takeout_id(1)]
    assert (review["text"], review["rating"]) == ("mended", 1)
    assert (review["mine"], review["mentioned_services"]) == ([1], ["cake"])
    assert f"changed by hand and kept: text of {takeout_id(1)}" in capsys.readouterr().out


def test_short_names_are_remembered(shop: Shop) -> None:
    shop.take(written(shop.root / "a", page([item(1)])), "--name", "B", "--short-names")
    shop.take(written(shop.root / "b", page([item(1), item(2)])))
    assert {review["author"] for review in shop.reviews.values()} == {"Ósk N."}
    shop.take(shop.root / "b", "--no-short-names")
    assert {review["author"] for review in shop.reviews.values()} == {"Ósk Nr1", "Ósk Nr2"}


def test_without_the_state_ids_stay_and_nothing_is_removed_in_that_run(shop: Shop) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(n) for n in range(5)]))
    (shop.data / "import-state.json").unlink()
    assert shop.run("--count") == EXIT_SUCCESS  # which makes a state, too
    later = takeout(shop.root / "b.zip", [item(n) for n in range(1, 6)])
    shop.take(later)
    assert set(shop.reviews) == {takeout_id(n) for n in range(6)}
    shop.take(later)
    assert set(shop.reviews) == {takeout_id(n) for n in range(1, 6)}


def test_only_what_comes_from_the_location_is_removed(shop: Shop) -> None:
    shop.take(shop.csv(["Ann", "5", "2024-01-02", ""]), "--name", "B", "--source", "fb")
    two = takeout_files([item(n, place="22") for n in range(9)], place="22")
    two |= takeout_files([item(n) for n in range(20, 29)])
    archive = zipped(shop.root / "a.zip", two)
    shop.take(archive, "--location", "22")
    shop.take(archive, "--location", PLACE, "--location", "22")
    (shop.data / "import-state.json").unlink()
    for _ in range(2):
        shop.take(archive, "--location", PLACE)
    nameless = takeout_files([api_item(n, name=None) for n in range(29, 32)])
    shop.take(zipped(shop.root / "b.zip", nameless))
    assert len(shop.reviews) == 1 + 9 + 9 + 3


def test_several_locations_are_never_mixed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    files = takeout_files([item(1)]) | takeout_files([item(2, place="22")], place="22", title="Twó")
    archive = zipped(shop.root / "a.zip", files)
    assert shop.run(archive, "--zone", ZONE) == EXIT_BAD_DATA
    told = capsys.readouterr().err
    assert "22 'Twó'" in told and PLACE in told
    shop.take(archive, "--location", "twó")
    assert list(shop.reviews) == [takeout_id(2)]
    assert shop.document["business"]["name"] == "Twó"
    assert shop.run(written(shop.root / "b", page([item(1)]))) == EXIT_BAD_DATA
    before = shop.files()
    assert shop.run(archive, "--location", PLACE) == EXIT_BAD_DATA
    told = capsys.readouterr().err
    assert f'{PLACE} "Bó\'s Bakarí": 1 reviews here, 0 stored' in told
    assert "22 'Twó': 1 reviews here, 1 stored" in told
    assert shop.files() == before
    shop.take(archive, "--location", PLACE, "--location", "22")
    assert len(shop.reviews) == 2
    shop.take(archive)  # both are known from now on


def test_an_empty_cell_and_an_absent_column_differ(shop: Shop) -> None:
    shop.take(shop.csv(ROW, header=HEADER), "--name", "B")
    before = shop.only()
    shop.take(shop.csv(["7", "Ann", "5", "2024-01-02", "fb"], header="id author rating date source"))
    assert shop.only() == before
    shop.take(shop.csv([*ROW[:4], "nan", "fb", "", "", ""], header=HEADER))
    assert shop.only() == before | {"text": None, "source_url": None}


def test_rows_without_ids_keep_theirs_when_they_are_edited(shop: Shop) -> None:
    def bring(*texts: str) -> None:
        shop.take(
            shop.csv(*(["Ann", "5", "2024-01-01", text] for text in texts)),
            "--name",
            "B",
            "--source",
            "fb",
        )

    bring("one")
    (first,) = shop.reviews
    bring("two", "one", "one")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {first: "one", f"{first}-2": "two"}
    bring("two", "edited")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {
        first: "edited",
        f"{first}-2": "two",
    }
    assert shop.run("--forget", first) == EXIT_SUCCESS
    bring("edited", "two", "or this is the one")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {f"{first}-2": "two"}
    bring("edited")
    assert {id: review["text"] for id, review in shop.reviews.items()} == {f"{first}-2": "two"}


def test_a_text_at_two_sources_is_named(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    long = "The best cinnamon buns of the whole island, says Ann."
    shop.take(written(shop.root / "g", page([item(1, comment=long), item(2, comment=long)])), "--name", "B")
    assert "the same text" not in capsys.readouterr().out
    shop.take(shop.csv(["Ann", "5", "2024-01-01", long.upper()]), "--source", "fb")
    assert "the same text at several sources: fb-" in capsys.readouterr().out


def test_a_forgotten_review_stays_away_in_both_forms(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    archive = takeout(shop.root / "t.zip", [item(n) for n in range(5)])
    pages = written(shop.root / "p.json", page([api_item(n) for n in range(8)]))
    shop.take(archive)
    assert shop.run("--forget", takeout_id(3), "--dry-run") == EXIT_SUCCESS
    assert takeout_id(3) in shop.reviews and "suppressed.txt" not in shop.files()
    assert shop.run("--forget", takeout_id(3)) == EXIT_SUCCESS
    line = digest("google", takeout_id(3).removeprefix("google-"))
    assert shop.files()["suppressed.txt"].decode() == f"{line}\n"
    assert line in capsys.readouterr().out
    assert takeout_id(3) not in shop.files()["import-state.json"].decode()
    shop.take(archive, pages)
    assert "Ósk Nr3" not in shop.files()["reviews.json"].decode()
    assert len(shop.reviews) == 7
    state = shop.files()["import-state.json"].decode()
    assert "Nr" not in state and list(json.loads(state)["hidden"]) == sorted(json.loads(state)["hidden"])
    assert shop.run("--forget", "nobody") == EXIT_BAD_DATA


def test_an_author_is_suppressed_by_name_whatever_is_shown(shop: Shop) -> None:
    pages = written(shop.root / "p.json", page([item(n) for n in range(5)]))
    shop.take(pages, "--name", "B", "--short-names")
    text = f"# who asked for it\n\nauthor {digest('google', 'ósk nr3')}\n"
    written(shop.data / "suppressed.txt", text)
    shop.take(written(shop.root / "q.json", page([item(9)])))
    assert takeout_id(3) not in shop.reviews
    shop.take(written(shop.root / "q.json", page([item(3, reviewer={"displayName": "Ósk Önnur"})])))
    assert takeout_id(3) not in shop.reviews
    written(shop.data / "suppressed.txt", "Ósk Nr4\n")
    assert shop.run(pages) == EXIT_BAD_DATA


@given(
    numbers=st.lists(st.integers(0, 12), min_size=1, max_size=20),
    edits=st.lists(st.tuples(st.integers(0, 12), st.integers(30, 60)), max_size=6),
    seed=st.randoms(use_true_random=False),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_the_order_of_files_and_of_reviews_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: list[int],
    edits: list[tuple[int, int]],
    seed: random.Random,
) -> None:
    root = tmp_path_factory.mktemp("order")
    items = [item(n) for n in numbers]
    items += [item(n, comment=f"edit {day}", updateTime=moment(day)) for n, day in edits]
    items += [api_item(n) for n in numbers[::2]]
    ends = []
    for turn in range(2):
        seed.shuffle(items)
        cut = seed.randint(0, len(items))
        files = [
            written(root / f"{turn}{n}", page(part))
            for n, part in enumerate((items[:cut], items[cut:]))
            if part
        ]
        shop = Shop(root / f"d{turn}")
        shop.take(*files, "--name", "B")
        once = shop.files()
        shop.take(*reversed(files))
        assert shop.files() == once
        ends.append(once["reviews.json"])
    assert ends[0] == ends[1]


IDS, AUTHORS, STARS = (st.sampled_from(values) for values in (["1", "2", ""], ["Ann Lee", "Bo"], "45"))
TEXTS = st.text("ab é\n\"';,", max_size=4)


@given(
    rows=st.lists(st.tuples(IDS, AUTHORS, STARS, TEXTS), min_size=1, max_size=8),
    seed=st.randoms(use_true_random=False),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_the_order_of_rows_does_not_matter_and_nothing_is_made_up(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str, str]], seed: random.Random
) -> None:
    shop, other = Shop(tmp_path_factory.mktemp("rows")), Shop(tmp_path_factory.mktemp("rows"))
    table = [[id, author, stars, "2024-01-01", clean(text)] for id, author, stars, text in rows]
    shuffled = seed.sample(table, len(table))
    for each, order in ((shop, table), (other, shuffled)):
        path = each.csv(*order, header="id author rating date text")
        each.take(path, "--name", "B", "--source", "fb")
        once = each.files()
        each.take(path, "--source", "fb")
        assert each.files() == once
    assert shop.files() == other.files()
    said = {(author, int(stars), text or None) for _, author, stars, _, text in table}
    assert said >= {(each["author"], each["rating"], each["text"]) for each in shop.reviews.values()}
    assert len(shop.reviews) == len({row[0] or tuple(row) for row in table})
