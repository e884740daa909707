"""The command: an owner's export becomes served data, and a wrong file, flag or disk changes nothing."""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lab.export_lab import (
    OWN_REVIEWS,
    ZONE,
    Shop,
    item,
    moment,
    page,
    stamped,
    takeout_files,
    takeout_id,
)
from lab.services import ROOT, SAMPLE

from reviewslib import files
from reviewslib.dataset import reading
from reviewslib.dataset.contract import shipped_contract
from reviewslib.dataset.reviews import load
from reviewslib.importer import command, options
from reviewslib.links import ServiceUrls
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_FAILURE, EXIT_SUCCESS

PROGRAM = [sys.executable, "-m", "reviewslib.importer.command"]


@pytest.fixture
def one_review(shop: Shop) -> Shop:
    shop.take(shop.page(item(1)), "--name", "B")
    return shop


# ---- Imports ----

# Reviews as real exports have them, by number: the changes to `item`, and the stored fields.
REAL: dict[int, tuple[dict[str, object], dict[str, object]]] = {
    1: (
        {"comment": None, "starRating": "TWO", "policyViolation": {"a": [1]}},
        {"rating": 2, "text": None},
    ),
    2: (
        {
            "updateTime": moment(40),
            "reviewReply": {"comment": "¡Gracias!", "updateTime": moment(5)},
        },
        {"owner_reply": {"text": "¡Gracias!", "date": "2025-01-06T12:15:00-08:00"}},
    ),
    3: (
        {"reviewer": {"displayName": "Hidden", "isAnonymous": True}},
        {"author": "A Google user"},
    ),
    4: (
        {"createTime": "2025-01-07T20:15:00", "updateTime": None},
        {"date": "2025-01-07T12:15:00-08:00"},
    ),
    5: (
        {
            "comment": "Takk",
            "reviewReply": {"comment": "Takk"},
        },  # what the owner wrote is no review
        {"text": None, "owner_reply": {"text": "Takk", "date": None}},
    ),
}
SCHEMAS = shipped_contract().schemas["components"]["schemas"]
BLANK_BUSINESS: dict[str, Any] = dict.fromkeys(SCHEMAS["Business"]["properties"]) | {
    "address": dict.fromkeys(SCHEMAS["Address"]["properties"]),
    "geo": {"latitude": None, "longitude": None},
}


@pytest.fixture
def archive(shop: Shop) -> Path:
    """A Takeout of 63 reviews, each in two accounts."""
    items = [item(number, **REAL.get(number, ({}, {}))[0]) for number in range(63)]
    first = takeout_files(items)
    return shop.zip(
        stamped(90),
        first | {name.replace("-1/", "-2/"): data for name, data in first.items()},
    )


def test_a_takeout_becomes_a_data_set(shop: Shop, archive: Path) -> None:
    assert "new: 63 (5 stars: 62, 2 stars: 1)\n" in shop.told(archive)
    assert shop.document["business"] == BLANK_BUSINESS | {"name": "Bó's Bakarí"}
    for number, (_, served) in REAL.items():
        plain = {
            "id": takeout_id(number),
            "author": f"Ósk Nr{number}",
            "rating": 5,
            "source": "google",
        }
        plain |= {
            "date": f"2025-01-{number + 1:02}T12:15:00-08:00",
            "owner_reply": None,
        }
        plain |= {"text": f"Kom aftur, í {number}. skipti"}
        stored = shop.reviews[takeout_id(number)]
        assert (
            stored
            == plain
            | ({"date": stored["date"]} if number == 4 else {})
            | {"updated": stored["updated"]}
            | served
        )
    readable = shop.files()["reviews.json"].decode()
    assert '\n },\n "reviews": [\n  {\n   "id": ' in readable and "Ósk" in readable


def test_a_second_import_changes_no_byte(shop: Shop, archive: Path) -> None:
    shop.take(archive)
    before = shop.files()
    assert sorted(before) == ["import-state.json", "reviews.json"]
    assert shop.run(archive) == EXIT_SUCCESS
    assert f"\n{shop.data}/reviews.json: unchanged, 63 review(s)\n" in shop.output().out
    assert shop.files() == before


def test_a_folder_is_imported_like_an_archive_even_if_names_are_not_utf_8(
    shop: Shop,
) -> None:
    items = [item(n) for n in range(50)]
    folder = Path(os.fsdecode(os.fsencode(shop.root) + b"/x\xff"))
    other = Shop(shop.root / "other")
    for name, content in takeout_files(items).items():
        shop.file(f"{folder}/{os.fsdecode(bytes([254]))}/{name}", content)
    shop.take(folder)
    other.take(other.takeout(0, items, name="t.zip"))
    assert (shop.document, shop.state) == (other.document, other.state)


def test_climbing_paths_write_nothing_and_the_owners_reviews_are_skipped(
    shop: Shop,
) -> None:
    climbing = {
        "../../../l/reviews.json": page([item(2)]),
        "Maps/Reviews.json": OWN_REVIEWS,
    }
    archive = shop.zip("c.zip", takeout_files([item(1)]) | climbing)
    assert (
        f"skipped: {archive}:Maps/Reviews.json: reviews that you wrote yourself"
        in shop.told(archive)
    )
    assert len(shop.reviews) == 2
    assert sorted(path.name for path in shop.root.iterdir() if path.is_dir()) == [
        "data"
    ]


def test_a_business_that_was_filled_in_survives_imports(one_review: Shop) -> None:
    dataset = load(
        shipped_contract(), one_review.files()["reviews.json"], None, ServiceUrls()
    )
    assert dataset.business == dict.fromkeys(BLANK_BUSINESS) | {"name": "B"}, (
        "a blank one is not served"
    )
    document = one_review.document | {
        "aggregate_rating": {"rating_value": 1, "review_count": 9}
    }
    document["business"]["description"] = "Buns"
    one_review.file("data/reviews.json", json.dumps(document))
    told = one_review.told(one_review.page(item(2)))
    assert "\nwarning: reviews.json gives an aggregate_rating of its own: " in told
    assert one_review.document["business"] == document["business"]


def test_a_dry_run_reports_and_leaves_no_trace(shop: Shop) -> None:
    assert (
        shop.run(shop.page(item(1)), "--dry-run", "--zone", ZONE, "--name", "B")
        == EXIT_SUCCESS
    )
    outcome = f"{shop.data}/reviews.json: changed, 1 review(s)"
    assert (
        shop.output().out
        == f"new: 1 (5 stars: 1)\n{outcome}\nA dry run: nothing was written.\n"
    )
    shop.refused(shop.page(item(1)), "--dry-run")
    assert not shop.data.exists()


# ---- Insights ----


def counted(shop: Shop, *words: str) -> str:
    """The report of a count that succeeds."""
    shop.output()
    assert shop.run("--count", *words) == EXIT_SUCCESS
    return str(shop.output().out)


def insights(shop: Shop) -> tuple[object, ...]:
    """The version, the number of reviews and the summary of insights.json."""
    document = json.loads(shop.files()["insights.json"])
    return tuple(document.get(name) for name in ("version", "review_count", "summary"))


def test_imports_count_again_once_insights_were_counted(one_review: Shop) -> None:
    assert "insights.json" not in one_review.files(), "nobody has asked for them"
    counted(one_review)
    one_review.run_until_killed(one_review.page(item(2)), name="insights.json")
    one_review.take(one_review.page(item(2)))
    assert insights(one_review) == (2, 2, None)


def test_a_count_lists_mentions_and_a_second_one_changes_no_byte(
    one_review: Shop,
) -> None:
    names = [{"id": n, "label": n, "aliases": [n]} for n in ("skipti", "Bo")]
    areas = [{"id": "i", "label": "Í", "aliases": ["í"]}, {"id": "u", "label": "Ú"}]
    entities = {"technicians": names, "service_areas": areas}
    one_review.file("data/editorial.json", json.dumps({"entities": entities}))
    mentions = (
        'entries that nothing counts: 1 ("service_areas/u")\n'
        "write aliases or per_review for them, or run reviewsd-insights\n"
        "technicians: skipti: 1\ntechnicians: Bo: 0\nservice areas: Í: 1\n"
    )
    assert (
        counted(one_review)
        == f"{mentions}{one_review.data}/insights.json: changed, 1 review(s)\n"
    )
    before = one_review.files()
    assert (
        counted(one_review)
        == f"{mentions}{one_review.data}/insights.json: unchanged, 1 review(s)\n"
    )
    assert one_review.files() == before


def test_insights_by_hand_become_the_editorial_file_when_counted(
    one_review: Shop,
) -> None:
    by_hand = {
        "version": 7,
        "model": "me",
        "review_count": 9,
        "summary": "Good",
        "topics": [],
    }
    one_review.file("data/insights.json", json.dumps(by_hand))
    one_review.take(one_review.page(item(2)))
    counted(one_review, "--dry-run")
    assert json.loads(one_review.files()["insights.json"]) == by_hand
    told = "insights.json becomes editorial.json, without what is counted: version, model, review_count\n"
    assert counted(one_review).startswith(told)
    assert insights(one_review) == (8, 2, "Good")


EDITED = (
    "edited after counting; move your changes into editorial.json and remove this file"
)
BOTH = "not counted, but editorial.json exists; move your entries there and remove this file"


@pytest.mark.parametrize(("is_counted", "reason"), [(True, EDITED), (False, BOTH)])
def test_insights_that_a_person_wrote_are_not_overwritten(
    one_review: Shop, is_counted: bool, reason: str
) -> None:
    counted(one_review)
    document = json.loads(one_review.files()["insights.json"]) if is_counted else {}
    one_review.file("data/insights.json", json.dumps(document | {"summary": "Mine"}))
    one_review.file("data/editorial.json", "{}")
    assert one_review.refused("--count").startswith(f"insights.json: {reason}\n")


def test_reviews_are_imported_even_if_the_insights_cannot_be_counted(
    one_review: Shop,
) -> None:
    one_review.file("data/editorial.json", '{"summary": 5}')
    assert one_review.run(one_review.page(item(1), item(2))) == EXIT_BAD_DATA
    told = one_review.output().err
    assert told.startswith("editorial.json /summary: ")
    assert told.endswith("\nThe reviews were imported; insights.json stays as it is.\n")
    assert len(one_review.reviews) == 2


# ---- Files of the data directory ----

SAMPLE_FAULT = "{}/%s: a file of the sample, which no import changes; choose another directory: --data my-data"
SAMPLE_REVIEWS, SAMPLE_INSIGHTS = (
    (SAMPLE / f"{name}.json").read_bytes() for name in ("reviews", "insights")
)
WRONG: dict[str, tuple[str, bytes | None]] = {  # by fault: the file and its content
    SAMPLE_FAULT % "reviews.json": ("reviews.json", SAMPLE_REVIEWS),
    SAMPLE_FAULT % "insights.json": ("insights.json", SAMPLE_INSIGHTS),
    SAMPLE_FAULT % "editorial.json": ("editorial.json", SAMPLE_INSIGHTS),
    "reviews.json: 'reviews' is a required property": (
        "reviews.json",
        b'{"business": {"name": "B"}}',
    ),
    "suppressed.txt: not UTF-8": ("suppressed.txt", b"\xff"),
    "{}/insights.json: cannot be read: it is not a regular file": (
        "insights.json",
        None,
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_file_stops_a_command(one_review: Shop, fault: str) -> None:
    name, content = WRONG[fault]
    (one_review.data / name).mkdir() if content is None else one_review.file(
        f"data/{name}", content
    )
    assert one_review.refused(one_review.page(item(2))).startswith(
        fault.format(one_review.data)
    )


@pytest.mark.parametrize(
    "name", ["import-state.draft.json", "reviews.json", "import-state.json"]
)
def test_an_interrupted_import_leaves_all_before_or_all_after(
    one_review: Shop, name: str
) -> None:
    """The state is put in its place after reviews.json; until then its draft counts."""
    words = [one_review.takeout(9, [1, 2, 3]), "--allow-removals"]
    one_review.run_until_killed(*words, name=name)
    assert "was edited" not in one_review.told("--zone", ZONE)
    is_after = name == "import-state.json"
    assert set(one_review.state["reviews"]) == set(one_review.reviews)
    assert one_review.numbers() == ({1, 2, 3} if is_after else {1})
    assert ("covered" in one_review.state) is is_after


# ---- Usage ----

USAGE = "usage: reviewsd-import FILE… --data DIR [options]\n"
ONE_TASK = "give one of FILE, --drop, --google, --count, --forget, --forget-author and --redact\n"
ZONE_HINT = "not a time zone such as Europe/Berlin; if none works, install tzdata\n"
MAP_HINT = f"expected FIELD=COLUMN, of {', '.join(options.FIELDS)}\n"
WRONG_USAGE = {  # by words of a command, the error
    "": "the following arguments are required: --data\n",
    "--data x": ONE_TASK,
    "--data x y.zip --forget y": ONE_TASK,
    "--data x --forget y --forget-author z": ONE_TASK,
    "--data x y.zip --redact y z": ONE_TASK,
    "y.csv --data x --scale 101": "argument --scale: 101: expected a whole number from",
    "y.csv --data x --scale 1": "argument --scale: 1: expected a whole number from",
    **{
        f"y --data x --zone {zone}": f"argument --zone: {zone}: {ZONE_HINT}"
        for zone in ("Mars/Base", "../x")
    },
    **{
        f"y --data x --map {pair}": f"argument --map: {pair}: {MAP_HINT}"
        for pair in ("foo=y", "author=")
    },
    "y --data x --map author=YOUR": "argument --map: replace YOUR with your own words\n",
    "y --data x --zone YOUR/ZONE": "argument --zone: replace YOUR with your own words\n",
}


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage_is_status_2_and_named(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        command.main(line.split())
    assert exit.value.code == 2
    assert capsys.readouterr().err.startswith(
        f"{USAGE}reviewsd-import: error: {WRONG_USAGE[line]}"
    )


@pytest.mark.parametrize("words", [("absent.zip",), (300 * "a",), ("--drop", "absent")])
def test_what_is_absent_is_refused(shop: Shop, words: tuple[str, ...]) -> None:
    assert shop.refused(*words, "--name", "B").startswith(
        f"{words[-1]}: cannot be read: "
    )


def test_a_count_without_reviews_names_the_missing_file(shop: Shop) -> None:
    assert shop.refused("--count").startswith(
        f"reviews.json: no such file in {shop.data}\n"
    )


def test_more_reviews_than_can_be_served_are_refused_before_anything_is_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_REVIEWS", 2)

    reason = shop.refused(shop.page(item(1), item(2), item(3)), "--name", "B")

    assert "has 3 reviews; at most 2 can be served" in reason


# ---- Failures ----


def test_an_error_while_writing_is_status_1(shop: Shop) -> None:
    (shop.data / ".reviews.json.draft").mkdir(parents=True)
    assert shop.run(shop.page(item(1)), "--name", "B") == EXIT_FAILURE == 1
    assert shop.output().err == f"{shop.data}/reviews.json: Is a directory\n"
    assert "reviews.json" not in shop.files()


def test_the_first_import_into_a_directory_is_locked_too(shop: Shop) -> None:
    with files.locked(shop.data, is_dry=False):
        assert shop.run(shop.page(item(1)), "--name", "B") == EXIT_FAILURE
    assert shop.output().err == f"{shop.data}: another import is under way\n"


class Interrupted(io.StringIO):
    """A terminal at which somebody presses Ctrl-C when the first words appear."""

    def write(self, _: str) -> int:
        raise KeyboardInterrupt


def test_an_interruption_is_status_130(one_review: Shop) -> None:
    with contextlib.redirect_stdout(Interrupted()):
        assert one_review.run(one_review.page(item(2))) == 130
    assert one_review.output().err == "stopped; run the same command again\n"


OUTPUTS = {
    ">&-": (0, b""),
    "| cat": (0, b""),
    "> /dev/full": (1, b"the output: No space left"),
}
FEW_CHARACTERS = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}


@pytest.mark.parametrize("stdout", OUTPUTS)
def test_an_output_in_ascii_or_a_closed_one_is_no_fault_and_a_full_one_is(
    shop: Shop, stdout: str
) -> None:
    path = shop.csv(["Ann", "5", "2024-01-01", "Bjørn"])
    line = (
        f"{shlex.join(PROGRAM)} {path} --data {shop.data} --name É --source ö {stdout}"
    )
    command = ["bash", "-o", "pipefail", "-c", line]
    ran = subprocess.run(command, env=FEW_CHARACTERS, capture_output=True, check=False)
    status, told = OUTPUTS[stdout]
    assert (
        ran.returncode == status
        and ran.stderr.startswith(told)
        and (told or not ran.stderr)
    )


def test_help_is_printed_in_ascii_too() -> None:
    told = subprocess.run(
        [*PROGRAM, "--help"], env=FEW_CHARACTERS, capture_output=True, check=True
    ).stdout
    assert b"\\u201cCamille R.\\u201d" in told


# ---- Drop folder ----

GOOD = "author,rating,date,source\nAnn,5,2024-01-01,fb\n"


@pytest.fixture
def drop(shop: Shop) -> Path:
    """A drop folder with a Takeout, a table, and five things that cannot be imported."""
    shop.file("drop/holiday/photo.jpg", b"\xff\xd8")
    (shop.root / "drop/link").symlink_to(shop.file("shadow", "root:$6$salt"))
    shop.file("drop/desktop.ini", "[.ShellClassInfo]\nIconResource=x,1\n")
    shop.file("drop/.DS_Store", b"\0\1")
    shop.file("drop/takeout-20260101T101112Z-002.zip.part", b"PK\x03\x04 cut")
    shop.file("drop/strange.csv", "Who,Mark,Note\nAnn,5,x\n")
    shop.file("drop/good.csv", GOOD + "Bo,x,2024-01-01,fb\n")
    shop.file("drop/good too.csv", GOOD + 2 * "Cy,x,2024-01-01,fb\n")
    shop.takeout(60, range(1, 21), name=f"drop/{stamped(60)}")
    return shop.root / "drop"


def test_a_drop_folder_is_imported_and_what_is_no_export_is_named(
    shop: Shop, drop: Path
) -> None:
    lines = shop.told("--drop", drop).splitlines()
    assert len(shop.reviews) == 21
    assert any(line.startswith("faulty, not imported: 3: ") for line in lines), (
        "they do not add up"
    )
    skipped = [line for line in lines if line.startswith("skipped: ")]
    part = "takeout-20260101T101112Z-002.zip.part"
    names = ["desktop.ini", "holiday", "link", "strange.csv", part]
    assert [
        line.removeprefix(f"skipped: {drop}/").partition(":")[0] for line in skipped
    ] == [part, *names[:-1]]
    assert f"skipped: {drop}/link: a symlink; give the file itself" in skipped
    assert (
        f"skipped: {drop}/strange.csv: the header is unknown; import it once by hand"
        in skipped
    )


def test_symlinks_in_a_folder_are_skipped_and_named(shop: Shop) -> None:
    folder = shop.file("reviews.json", page([item(1)])).parent
    (folder / "reviews-2.json").symlink_to(shop.page(item(2)))
    told = f"skipped: {folder}/reviews-2.json: a symlink; give the file itself\n"
    assert told in shop.told(folder, "--name=B")


def test_the_units_own_command_needs_no_flag_after_the_first_time(
    shop: Shop, drop: Path
) -> None:
    unit = (ROOT / "deploy/reviewsd-import.service").read_text(encoding="utf-8")
    house = shop.file("drop/house.csv", "Who;Mark;Day\nAnn;9;05/13/24\n")
    explained = "author=who,rating=mark"
    shop.take(drop / stamped(60))
    words = [
        "--map",
        f"{explained},date=day,text=-,reply=-,status=-",
        "--source",
        "book",
        "--scale",
        "10",
    ]
    shop.take(house, *words)
    shop.file("drop/house.csv", "Who;Mark;Day\nAnn;9;05/13/24\nBo;8;05/06/24\n")
    match = re.search(r"reviewsd-import (--drop \S+ --data \S+) ", unit)
    assert match
    line = (
        match[1]
        .replace("/srv/reviews-drop", str(drop))
        .replace("/srv/reviews", str(shop.data))
    )
    assert shop.run(*line.split()[:2]) == EXIT_SUCCESS
    in_house = [
        review for review in shop.reviews.values() if review["source"] == "book"
    ]
    assert {(entry["rating"], entry["date"]) for entry in in_house} == {
        (4.5, "2024-05-13"),
        (4, "2024-05-06"),
    }
    before = shop.files()
    assert shop.run(*line.split()[:2]) == EXIT_SUCCESS
    assert shop.files() == before


def test_a_drop_folder_without_exports_is_a_fault_unless_it_is_empty(
    one_review: Shop,
) -> None:
    drop = one_review.file("drop/a.jpg", b"\xff\xd8").parent
    assert one_review.refused("--drop", drop).endswith(
        "\nThere is nothing to import.\nNothing was written.\n"
    )
    (drop / "a.jpg").unlink()
    one_review.take("--drop", drop)
