"""An owner's export becomes served data; a second import changes only what has changed in the export."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlencode

import export_lab
import pytest
from export_lab import ZONE, Shop, item, moment, page, stamped, takeout, takeout_files, takeout_id, written
from hub_lab import FORM, JSON_FEED, open_lab
from services import ROOT, SAMPLE, daemon, fetch

from reviewslib import files
from reviewslib.dataset.contract import shipped_contract
from reviewslib.dataset.reviews import load
from reviewslib.files import LARGEST_FILE_BYTES
from reviewslib.importer import command, options
from reviewslib.importer.command import EXIT_BAD_DATA, EXIT_FAILURE, EXIT_SUCCESS
from reviewslib.links import ServiceUrls

# What one real export or another has, by number: the changes of the item, and what is served.
REAL: dict[int, tuple[dict[str, object], dict[str, object]]] = {
    1: ({"comment": None, "starRating": "TWO", "policyViolation": {"a": [1]}}, {"rating": 2, "text": None}),
    2: (
        {"updateTime": moment(40), "reviewReply": {"comment": "¡Gracias!", "updateTime": moment(5)}},
        {"owner_reply": {"text": "¡Gracias!", "date": "2025-01-06T12:15:00-08:00"}},
    ),
    3: ({"reviewer": {"displayName": "Hidden", "isAnonymous": True}}, {"author": "A Google user"}),
    4: ({"createTime": "2025-01-07T20:15:00Z", "updateTime": None}, {"date": "2025-01-07T12:15:00-08:00"}),
    5: ({"createTime": "2025-01-08T20:15:00", "updateTime": None}, {"date": "2025-01-08T12:15:00-08:00"}),
    6: (
        {"comment": "Takk", "reviewReply": {"comment": "Takk"}},  # what the owner wrote is no review
        {"text": None, "owner_reply": {"text": "Takk", "date": None}},
    ),
}


SCHEMAS = shipped_contract().schemas["components"]["schemas"]
BLANK_BUSINESS: dict[str, Any] = dict.fromkeys(SCHEMAS["Business"]["properties"]) | {
    "address": dict.fromkeys(SCHEMAS["Address"]["properties"]),
    "geo": {"latitude": None, "longitude": None},
}


def test_a_takeout_becomes_a_data_set_and_a_second_import_changes_no_byte(shop: Shop) -> None:
    items = [item(number, **REAL.get(number, ({}, {}))[0]) for number in range(63)]
    again = [entry | {"name": entry["name"].replace("/1/", "/2/")} for entry in items]
    both = takeout_files(items) | takeout_files(again, "2")
    archive = shop.zip(stamped(90), both)
    assert "new: 63\n" in shop.told(archive)
    assert shop.document["business"] == BLANK_BUSINESS | {"name": "Bó's Bakarí"}
    for number, (_, served) in REAL.items():
        plain = {
            "id": takeout_id(number),
            "author": f"Ósk Nr{number}",
            "rating": 5,
            "date": f"2025-01-{number + 1:02}T12:15:00-08:00",
            "text": f"Kom aftur, í {number}. skipti",
            "source": "google",
            "owner_reply": None,
        }
        assert shop.reviews[takeout_id(number)] == plain | served
    before = shop.files()
    assert '\n },\n "reviews": [\n  {\n   "id": ' in before["reviews.json"].decode()
    assert "Ósk" in before["reviews.json"].decode()
    assert shop.run(archive) == EXIT_SUCCESS
    assert f"\n{shop.data}/reviews.json: unchanged, 63 review(s)\n" in shop.output().out
    assert shop.files() == before
    assert sorted(before) == ["import-state.json", "reviews.json"]


ALIASES = {"technicians": [{"id": "osk", "label": "Ósk", "aliases": ["skipti"]}]}


def insights(shop: Shop) -> dict[str, object]:
    return json.loads(shop.files()["insights.json"])  # type: ignore[no-any-return]


def editorial(shop: Shop, **content: object) -> None:
    written(shop.data / "editorial.json", json.dumps(content))


def counted(shop: Shop, *words: str) -> str:
    """The report of a count that succeeds."""
    shop.output()
    assert shop.run("--count", *words) == EXIT_SUCCESS
    return str(shop.output().out)


@pytest.fixture
def one_review(shop: Shop) -> Shop:
    shop.take(shop.page(item(1)), "--name", "B")
    return shop


def counts(shop: Shop) -> tuple[object, ...]:
    """The version, the number of reviews and the summary of insights.json."""
    return tuple(insights(shop)[name] for name in ("version", "review_count", "summary"))


def test_there_is_nothing_to_count_without_reviews(shop: Shop) -> None:
    assert shop.refused("--count") == f"reviews.json: no such file in {shop.data}\nNothing was written.\n"


def test_imports_count_again_once_insights_were_counted(one_review: Shop) -> None:
    assert "insights.json" not in one_review.files(), "nobody has asked for them"
    counted(one_review)
    one_review.take(one_review.page(item(2)))
    assert insights(one_review)["review_count"] == 2


def test_imports_count_what_the_owner_lists(one_review: Shop) -> None:
    editorial(one_review, entities=ALIASES, summary="Good")
    one_review.take(one_review.page(item(2)))
    assert counts(one_review) == (1, 2, "Good")


def test_a_second_count_changes_no_byte(one_review: Shop) -> None:
    editorial(one_review, entities=ALIASES)
    counted(one_review)
    before = one_review.files()
    told = f"technicians: Ósk: 1\n{one_review.data}/insights.json: unchanged, 1 review(s)\n"
    assert counted(one_review, "--short-names") == told
    assert one_review.files() == before


def test_a_count_repairs_what_a_killed_import_left(one_review: Shop) -> None:
    counted(one_review)
    one_review.run_until_killed(one_review.page(item(2)), name="insights.json")
    counted(one_review)
    assert (insights(one_review)["version"], insights(one_review)["review_count"]) == (2, 2)


BY_HAND = {"version": 7, "model": "me", "review_count": 9, "summary": "Good", "topics": []}


@pytest.fixture
def by_hand(one_review: Shop) -> Shop:
    """A shop with insights of a person."""
    one_review.file("data/insights.json", json.dumps(BY_HAND))
    return one_review


def test_an_import_leaves_insights_of_a_person_alone(by_hand: Shop) -> None:
    by_hand.take(by_hand.page(item(2)))
    assert insights(by_hand) == BY_HAND


def test_a_count_without_writing_leaves_insights_of_a_person_alone(by_hand: Shop) -> None:
    before = by_hand.files()
    counted(by_hand, "--dry-run")
    assert by_hand.files() == before


def test_insights_of_a_person_become_the_editorial_file(by_hand: Shop) -> None:
    told = "becomes editorial.json, without what is counted: version, model, review_count\n"
    assert counted(by_hand).startswith(f"insights.json {told}")
    assert json.loads(by_hand.files()["editorial.json"]) == {"summary": "Good", "topics": []}
    assert counts(by_hand) == (8, 1, "Good")


def test_counted_insights_that_were_edited_are_refused(one_review: Shop) -> None:
    editorial(one_review, summary="Good")
    counted(one_review)
    one_review.file("data/insights.json", json.dumps(insights(one_review) | {"summary": "Best"}))
    told = "edited after counting; move your changes into editorial.json and remove this file\n"
    assert one_review.refused("--count").startswith(f"insights.json: {told}")


def test_reviews_are_imported_even_if_the_insights_cannot_be_counted(one_review: Shop) -> None:
    editorial(one_review, summary=5)
    assert one_review.run(one_review.page(item(1), item(2))) == EXIT_BAD_DATA
    told = one_review.output().err
    assert told.startswith("editorial.json /summary: ")
    assert told.endswith("\nThe reviews were imported; insights.json stays as it is.\n")
    assert len(one_review.reviews) == 2


@pytest.mark.slow
def test_a_member_of_an_archive_that_is_too_large_is_refused(shop: Shop) -> None:
    bomb = shop.zip("bomb.zip", {"l/reviews.json": b" " * (LARGEST_FILE_BYTES + 1)})
    told = f"{bomb}:l/reviews.json: cannot be read: it is larger than 64 MiB"
    assert told in shop.refused(shop.page(item(1)), bomb, "--zone", ZONE)


def test_an_archive_that_is_cut_off_is_refused(shop: Shop) -> None:
    cut = written(shop.root / "cut.zip", takeout(shop.root / "t.zip", [item(1)]).read_bytes()[:-40])
    assert "damaged" in shop.refused(shop.page(item(1)), cut, "--zone", ZONE)


def test_members_with_climbing_paths_write_nothing_beside_the_data(shop: Shop) -> None:
    climbing = {"../../../l/reviews.json": page([item(2)]), "/l/reviews-x.json": page([item(3)])}
    shop.take(shop.zip("c.zip", takeout_files([item(1)]) | climbing))
    assert len(shop.reviews) == 3
    assert sorted(path.name for path in shop.root.iterdir() if path.is_dir()) == ["data"]


def test_reviews_that_the_owner_wrote_are_skipped_beside_an_export(shop: Shop) -> None:
    both = takeout_files([item(1)]) | {"Maps/Reviews.json": export_lab.OWN_REVIEWS}
    archive = shop.zip("c.zip", both)
    assert f"skipped: {archive}:Maps/Reviews.json: reviews that you wrote yourself" in shop.told(archive)


def test_a_folder_is_taken_like_an_archive_also_if_its_names_are_no_text(shop: Shop) -> None:
    items = [item(n) for n in range(50)]
    folder = Path(os.fsdecode(os.fsencode(shop.root) + b"/x\xff"))
    for name, content in takeout_files(items).items():
        path = folder / os.fsdecode(b"\xfe") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    shop.take(folder)
    before, other = shop.files(), Shop(shop.root / "other")
    shop.take(folder)
    assert shop.files() == before
    other.take(takeout(shop.root / "t.zip", items))
    assert other.files()["reviews.json"] == before["reviews.json"]
    assert other.state == shop.state


@pytest.mark.parametrize("name", ["reviews.json", "insights.json", "editorial.json"])
def test_no_file_of_the_sample_is_merged_with(one_review: Shop, name: str) -> None:
    sample = (SAMPLE / name.replace("editorial", "insights")).read_bytes()
    path = written(one_review.data / name, sample)
    fault = "a file of the sample, which no import changes; choose another directory: --data my-data"
    assert one_review.refused(one_review.page(item(2))) == f"{path}: {fault}\nNothing was written.\n"


ANEW = "not a state of this version; delete the file, and it is made anew"
BOTH = "not counted, but editorial.json exists; move your entries there and remove this file"
WRONG = [
    ("reviews.json", b'{"business": {"name": "B"}}', "reviews.json: 'reviews' is a required property"),
    ("import-state.json", b"[]", f"import-state.json: {ANEW}"),
    ("import-state.json", b'{"zone": "Mars/Base"}', "import-state.json: unknown time zone 'Mars/Base'"),
    ("insights.json", b'{"version": 1, "model": "me", "review_count": 1}', f"insights.json: {BOTH}"),
    ("insights.json", None, "{}/insights.json: cannot be read: it is not a regular file"),
    ("suppressed.txt", b"\xff", "suppressed.txt: not UTF-8"),
]


@pytest.mark.parametrize(("name", "content", "told"), WRONG)
def test_a_wrong_file_stops_a_command(one_review: Shop, name: str, content: bytes | None, told: str) -> None:
    editorial(one_review)
    path = one_review.data / name
    path.mkdir() if content is None else written(path, content)
    fault = one_review.refused("--count" if BOTH in told else one_review.page(item(2)))
    assert fault.startswith(told.format(one_review.data))


def test_counting_is_tried_on_a_copy_of_the_sample(shop: Shop) -> None:
    shop.data.mkdir()
    for name in ("reviews.json", "insights.json"):
        written(shop.data / name, (SAMPLE / name).read_bytes())
    counted(shop)
    assert insights(shop)["review_count"] == 160


def test_links_among_exports_are_skipped_and_named(shop: Shop) -> None:
    secret = shop.file("shadow", "root:$6$salt")
    drop = shop.root / "drop"
    folder = drop / "x"
    folder.mkdir(parents=True)
    written(folder / "reviews.json", page([item(1)]))
    (folder / "reviews-2.json").symlink_to(secret)
    (drop / "link").symlink_to(secret)
    (drop / "elsewhere").symlink_to(shop.root)
    (drop / "dangling").symlink_to("nowhere")
    (folder / "up").symlink_to(shop.root)
    shop.take("--drop", drop, "--name", "B")
    told = shop.output()
    names = ("x/reviews-2.json", "x/up", "link", "elsewhere", "dangling")
    lines = [f"skipped: {drop / name}: a symlink; give the file itself" for name in names]
    assert {*lines} <= {*told.out.splitlines()} and "root:" not in told.out + told.err
    assert set(shop.reviews) == {takeout_id(1)}


def test_a_link_is_no_export(shop: Shop) -> None:
    (shop.root / "link").symlink_to(shop.file("shadow", "root:$6$salt"))
    told = shop.refused(shop.root / "link", "--zone", ZONE)
    assert "a symlink; give the file itself" in told and "root:" not in told


USAGE = "usage: reviewsd-import FILE… --data DIR [options]\n"
ONE_TASK = "give one of FILE, --drop, --count, --forget, --forget-author, --redact and --template\n"
ZONE_HINT = "unknown time zone; expected one such as Europe/Berlin\n"
MAP_HINT = f"expected FIELD=COLUMN, each field once, of {', '.join(options.FIELDS)}\n"
NO_DATA = "--data is missing: the directory of reviews.json\n"
WRONG_USAGE = {  # and what is told of it
    "": NO_DATA,
    __file__: NO_DATA,
    "--data x": ONE_TASK,
    f"{__file__} --data x --forget y": ONE_TASK,
    "--data x --forget y --forget-author z": ONE_TASK,
    "absent.zip none.zip --data x": "there is no file 'absent.zip', 'none.zip'\n",
    f"{300 * 'a'} --data x": f"there is no file '{300 * 'a'}'\n",
    **{f"{__file__} --data x --zone {zone}": f"--zone {zone}: {ZONE_HINT}" for zone in ("Mars/Base", "../x")},
    f"{__file__} --data x --scale 7": "argument --scale: invalid choice: '7'",
    f"{__file__} --data x --map foo=y": f"--map foo=y: {MAP_HINT}",
    f"{__file__} --data x --map id=x,id=y": f"--map id=y: {MAP_HINT}",
    f"{__file__} --data x --map author=": f"--map author=: {MAP_HINT}",
    f"--drop {__file__} --data x": f"--drop {__file__}: not a directory\n",
    f"{__file__} --data x --redact y z": ONE_TASK,
    f"{__file__} --data x --map author=YOUR": "--map: replace YOUR with your own words\n",
    "--template --data x": "--template takes neither FILE nor --data\n",
    f"{__file__} --data x --zone YOUR/ZONE": "--zone: replace YOUR with your own words\n",
}


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage_is_status_2_and_named(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        command.main(line.split())
    assert exit.value.code == 2
    assert capsys.readouterr().err.startswith(f"{USAGE}reviewsd-import: error: {WRONG_USAGE[line]}")


def test_help_begins_with_what_the_program_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    about = "Import reviews from exports into the data directory of reviewsd."
    assert capsys.readouterr().out.startswith(f"{USAGE}\n{about}\n\n")


def test_a_machine_without_zones_needs_their_data(shop: Shop) -> None:
    without_data = "import sys, zoneinfo; sys.modules['tzdata'] = None; zoneinfo.reset_tzpath(to=())"
    program = f"{without_data}; from reviewslib.importer import command; command.main()"
    words = [sys.executable, "-c", program, __file__, "--data", shop.data, "--zone", ZONE]
    told = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    assert told.endswith(f"error: --zone {ZONE}: unknown time zone; install tzdata\n")


def test_an_error_while_writing_is_status_1(shop: Shop) -> None:
    pages = shop.page(item(1))
    (shop.data / ".reviews.json.draft").mkdir(parents=True)
    assert shop.run(pages, "--name", "B", "--zone", ZONE) == EXIT_FAILURE == 1
    assert shop.output().err == f"cannot write {shop.data}/reviews.json: Is a directory\n"
    assert "reviews.json" not in shop.files()
    assert command.main([str(pages), "--data", str(pages), "--name", "B"]) == EXIT_FAILURE


ENDS = [
    (OSError(28, "full"), 1, "cannot write {}/import-state.draft.json: full\n"),
    (KeyboardInterrupt(), 130, "stopped; run the same command again\n"),
]


@pytest.mark.parametrize(("cause", "status", "told"), ENDS)
def test_a_full_disk_or_an_interruption_changes_nothing(
    one_review: Shop, monkeypatch: pytest.MonkeyPatch, cause: BaseException, status: int, told: str
) -> None:
    before = one_review.files()
    monkeypatch.setattr(os, "fsync", Mock(side_effect=cause))
    assert one_review.run(one_review.page(item(2))) == status
    assert one_review.output().err == told.format(one_review.data)
    assert one_review.files() == before


def test_an_output_that_is_full_is_status_1() -> None:
    words = [sys.executable, "-m", "reviewslib.importer.command", "--template"]
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ran.returncode == EXIT_FAILURE
    assert ran.stderr == b"cannot write the output: No space left on device\n"


@pytest.mark.parametrize("stdout", [">&-", "| cat"])
def test_a_terminal_with_few_letters_or_none_is_no_fault(shop: Shop, stdout: str) -> None:
    path = shop.csv(["Ann", "5", "2024-01-01", "BjÃ¸rn"])
    program = f"{sys.executable} -m reviewslib.importer.command"
    line = f"{program} {path} --data {shop.data} --name É --source ö {stdout}"
    few = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    shell = ["bash", "-o", "pipefail", "-c", line]
    ran = subprocess.run(shell, env=few, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (EXIT_SUCCESS, b"")


@pytest.mark.slow
def test_from_a_takeout_to_a_subscriber(shop: Shop) -> None:
    shop.take(shop.takeout(9, [1]))
    with open_lab(shop.root) as lab:
        settings = ["--hub-allow-private", "--hub-ca-file", str(lab.ca_file), "--reload-interval", "0.05"]
        with daemon(*settings, data=shop.data) as service:
            url = f"https://127.0.0.1:{lab.port}/cb"
            form = {"hub.mode": "subscribe", "hub.topic": service.base_url + JSON_FEED, "hub.callback": url}
            body = urlencode(form).encode()
            assert fetch(service, "/api/websub/hub", "POST", body, content_type=FORM).status == 202
            lab.wait(lab.gets)
            shop.take(shop.takeout(12, [1, item(2, comment="Splunkunýtt")]))
            lab.wait(lab.posts)
            assert "Splunkunýtt" in json.loads(lab.posts()[0].body)["items"][0]["content_text"]
            result = fetch(service, "/api/reviews/search?query=splunku")
            assert json.loads(result.body)["matched"] == 1


@pytest.fixture
def drop(shop: Shop) -> Path:
    """A drop folder with a Takeout, a table, and six things that cannot be imported."""
    folder = shop.root / "drop"
    (folder / "holiday").mkdir(parents=True)
    written(folder / "holiday" / "photo.jpg", b"\xff\xd8")
    written(folder / "desktop.ini", "[.ShellClassInfo]\nIconResource=x,1\n")
    written(folder / ".DS_Store", b"\0\1")
    written(folder / "takeout-20260101T101112Z-002.zip.part", b"PK\x03\x04 cut")
    written(folder / "strange.csv", "Who,Mark,Note\nAnn,5,x\n")
    written(folder / "too faulty.csv", "author,rating,date,source\n" + 3 * "Ann,x,2024-01-01,fb\n")
    written(folder / "good.csv", "author,rating,date,source\nAnn,5,2024-01-01,fb\n")
    takeout(folder / stamped(60), [item(n) for n in range(1, 21)])
    return folder


def test_a_drop_folder_is_imported_and_what_is_no_export_is_named(shop: Shop, drop: Path) -> None:
    skipped = [line for line in shop.told("--drop", drop).splitlines() if line.startswith("skipped: ")]
    assert len(shop.reviews) == 21
    part = "takeout-20260101T101112Z-002.zip.part"
    names = ["desktop.ini", "holiday", "strange.csv", part, "too faulty.csv"]
    assert [line.removeprefix(f"skipped: {drop}/").partition(":")[0] for line in skipped] == names
    assert f"skipped: {drop}/strange.csv: the header is unknown; import it once by hand" in skipped


UNIT = (ROOT / "deploy/reviewsd-import.service").read_text(encoding="utf-8")
EXPLAINED = "author=who,rating=mark,date=day,text=-,reply=-,status=-"


def test_the_units_own_command_needs_no_flag_after_the_first_time(shop: Shop, drop: Path) -> None:
    house = written(drop / "house.csv", "Who;Mark;Day\nAnn;9;05/13/24\n")
    shop.take(drop / stamped(60))
    shop.take(house, "--map", EXPLAINED, "--source", "book", "--scale", "10")
    takeout(drop / stamped(66), [item(n) for n in range(2, 22)])
    written(house, "Who;Mark;Day\nAnn;9;05/13/24\nBo;8;05/06/24\n")
    match = re.search(r"reviewsd-import (--drop \S+ --data \S+) ", UNIT)
    assert match
    line = match[1].replace("/srv/reviews-drop", str(drop)).replace("/srv/reviews", str(shop.data))
    assert command.main(line.split()) == EXIT_SUCCESS
    assert {takeout_id(n) for n in range(2, 22)} == {id for id in shop.reviews if id.startswith("google-")}
    house_reviews = [review for review in shop.reviews.values() if review["source"] == "book"]
    assert {(review["rating"], review["date"]) for review in house_reviews} == {
        (4.5, "2024-05-13"),
        (4, "2024-05-06"),
    }
    before = shop.files()
    assert command.main(line.split()) == EXIT_SUCCESS
    assert shop.files() == before


def test_few_faults_in_one_file_of_a_drop_folder_do_not_add_up(shop: Shop, drop: Path) -> None:
    for name in ("1.csv", "2.csv"):
        table = "author,rating,date,source\nAnn,5,2024-01-01,fb\n" + 2 * "Bo,x,2024-01-01,fb\n"
        written(drop / name, table)
    assert "faulty, not imported: 4: " in shop.told("--drop", drop)


def test_a_drop_folder_without_an_export_is_a_fault(shop: Shop, drop: Path) -> None:
    for path in (drop / "good.csv", drop / stamped(60)):
        path.unlink()
    assert shop.refused("--drop", drop).endswith("\nThere is nothing to import.\nNothing was written.\n")


def test_an_empty_drop_folder_is_no_fault(shop: Shop) -> None:
    (shop.root / "empty").mkdir()
    assert shop.run("--drop", shop.root / "empty") == EXIT_SUCCESS
    assert shop.output().out == f"{shop.root}/empty is empty\n"


def test_a_new_location_in_a_drop_folder_is_named_and_not_imported(shop: Shop) -> None:
    shop.take(takeout(shop.root / "first.zip", [item(1)]))
    both = takeout_files([item(1), item(2)]) | takeout_files([item(3, place="22")], place="22")
    (shop.root / "drop").mkdir()
    archive = shop.zip("drop/a.zip", both)
    shop.refused(archive)
    told = shop.told("--drop", archive.parent)
    assert 'not imported: 1 reviews of location 22 "Bó\'s Bakarí", not chosen\n' in told
    assert set(shop.reviews) == {takeout_id(1), takeout_id(2)}


def test_a_dry_run_reports_and_leaves_no_trace(shop: Shop) -> None:
    assert shop.run(shop.page(item(1)), "--dry-run", "--zone", ZONE, "--name", "B") == EXIT_SUCCESS
    assert not shop.data.exists()
    outcome = f"{shop.data}/reviews.json: changed, 1 review(s)"
    assert shop.output().out == f"new: 1\n{outcome}\nA dry run: nothing was written.\n"


def test_a_question_in_a_dry_run_leaves_no_trace(shop: Shop) -> None:
    shop.refused(shop.page(item(1)), "--dry-run", "--zone", ZONE)
    assert not shop.data.exists()


@pytest.mark.slow
def test_the_command_to_copy_works_where_the_program_is_installed(shop: Shop) -> None:
    program = Path(sys.executable).with_name("reviewsd-import")
    table = shop.csv(["Ann", "5", "2024-01-01", ""])
    arguments = [program, table, "--data", shop.data, "--zone", ZONE, "--name", "B"]
    told = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=shop.root).stderr
    words = shlex.split(told.splitlines()[-1])
    assert words == [*map(str, arguments), "--source", "YOUR"]


def test_a_count_lists_mentions(shop: Shop) -> None:
    shop.take(shop.page(item(1), item(2)), "--name", "B")
    names = [*ALIASES["technicians"], {"id": "bo", "label": "Bo Roe", "aliases": ["Bo"]}]
    areas = [{"id": "i", "label": "Í", "aliases": ["í"]}, {"id": "u", "label": "Ú"}]
    editorial(shop, entities={"technicians": names, "service_areas": areas})
    assert counted(shop).splitlines() == [
        *("technicians: Ósk: 2", "technicians: Bo Roe: 0", "service areas: Í: 2"),
        f"{shop.data}/insights.json: changed, 2 review(s)",
    ]


def test_the_first_import_into_a_directory_is_locked_too(shop: Shop) -> None:
    with files.locked(shop.data, is_dry=False):
        assert shop.run(shop.page(item(1)), "--name", "B", "--zone", ZONE) == EXIT_FAILURE
    assert shop.output().err == f"cannot write {shop.data}: another import is under way\n"
    assert "reviews.json" not in shop.files()


def test_an_empty_business_is_served_as_if_absent(one_review: Shop) -> None:
    dataset = load(shipped_contract(), one_review.files()["reviews.json"], None, ServiceUrls())
    assert dataset.business == dict.fromkeys(BLANK_BUSINESS) | {"name": "B"}


def test_a_business_that_was_filled_in_survives_imports(one_review: Shop) -> None:
    document = one_review.document
    address = BLANK_BUSINESS["address"] | {"locality": "Vík"}
    document["business"] |= {"description": "Buns", "address": address}
    document["aggregate_rating"] = {"rating_value": 1, "review_count": 9}
    one_review.file("data/reviews.json", json.dumps(document))
    told = one_review.told(one_review.page(item(2)))
    assert "\nwarning: reviews.json gives an aggregate_rating of its own: " in told
    assert one_review.document["business"] == document["business"]
