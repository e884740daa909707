"""An owner's export becomes what is served; importing again changes only what has changed."""

import json
import os
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
from services import SAMPLE, daemon, fetch

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
    again = [each | {"name": each["name"].replace("/1/", "/2/")} for each in items]
    both = takeout_files(items) | takeout_files(again, "2")
    archive = export_lab.zipped(shop.root / stamped(90), both)
    shop.take(archive)
    assert "new: 63\n" in shop.output().out
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


def test_an_import_counts_what_the_owner_lists_and_only_when_it_changes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop.run("--count") == EXIT_BAD_DATA
    assert shop.output().err == f"reviews.json: there is none in {shop.data}\nNothing was written.\n"
    shop.take(written(shop.root / "z", page([item(0)])), "--name", "B")
    assert "insights.json" not in shop.files()
    assert shop.run("--count") == EXIT_SUCCESS
    shop.take(written(shop.root / "a", page([item(1)])))
    assert insights(shop)["review_count"] == 2
    written(shop.data / "editorial.json", json.dumps({"entities": ALIASES, "summary": "Good"}))
    shop.take(written(shop.root / "b", page([item(1), item(2)])))
    counted = insights(shop)
    assert (counted["version"], counted["review_count"], counted["summary"]) == (3, 3, "Good")
    before = shop.files()
    shop.take(shop.root / "b")
    shop.output()
    assert shop.run("--count", "--short-names") == EXIT_SUCCESS
    assert shop.output().out == f"technicians: Ósk: 3\n{shop.data}/insights.json: unchanged, 3 review(s)\n"
    assert shop.files() == before
    shop.run_until_killed(written(shop.root / "c", page([item(3)])), name="insights.json")
    assert shop.run("--count") == EXIT_SUCCESS
    assert (insights(shop)["version"], insights(shop)["review_count"]) == (4, 4)
    with monkeypatch.context() as patch:  # what the daemon would refuse is not written
        patch.setattr(command.counting.insights, "refresh_insights", lambda *_: {"version": "x"})
        assert shop.run("--count") == EXIT_BAD_DATA
    assert insights(shop)["version"] == 4


def test_insights_of_a_person_become_the_editorial_file(shop: Shop) -> None:
    shop.take(written(shop.root / "a", page([item(1)])), "--name", "B")
    by_hand = {"version": 7, "model": "me", "review_count": 9, "summary": "Good", "topics": []}
    written(shop.data / "insights.json", json.dumps(by_hand))
    shop.take(written(shop.root / "b", page([item(2)])))
    assert insights(shop) == by_hand
    before = shop.files()
    assert shop.run("--count", "--dry-run") == EXIT_SUCCESS
    assert shop.files() == before
    shop.output()
    assert shop.run("--count") == EXIT_SUCCESS
    told = "becomes editorial.json, without what is counted: version, model, review_count\n"
    assert shop.output().out.startswith(f"insights.json {told}")
    assert json.loads(shop.files()["editorial.json"]) == {"summary": "Good", "topics": []}
    counted = insights(shop)
    assert (counted["version"], counted["review_count"], counted["summary"]) == (8, 2, "Good")
    written(shop.data / "insights.json", json.dumps(counted | {"summary": "Best"}))
    assert shop.run("--count") == EXIT_BAD_DATA
    told = "changed by hand; put that into editorial.json and remove this file\n"
    assert shop.output().err.startswith(f"insights.json: {told}")
    (shop.data / "insights.json").unlink()
    assert shop.run("--count") == EXIT_SUCCESS


def test_a_review_changed_since_it_was_annotated_is_named_until_the_annotation_changes(shop: Shop) -> None:
    def told(score: float, *options: str) -> bool:
        written(shop.data / "editorial.json", json.dumps({"per_review": {takeout_id(1): {"score": score}}}))
        assert shop.run("--count", *options) == EXIT_SUCCESS
        warning = f"warning: {takeout_id(1)} has changed since its per_review was written\n"
        return bool(shop.output().out.startswith(warning))

    shop.take(written(shop.root / "a", page([item(1)])), "--name", "B")
    assert not told(0.5)
    shop.take(written(shop.root / "b", page([item(1, comment="No!", updateTime=moment(9))])))
    shop.output()
    assert told(0.5) and told(0.5)
    assert not told(-0.5)
    assert not told(-0.5)


def test_reviews_are_imported_even_if_the_insights_cannot_be_counted(shop: Shop) -> None:
    shop.take(written(shop.root / "a", page([item(1)])), "--name", "B")
    written(shop.data / "editorial.json", '{"summary": 5}')
    assert shop.run(written(shop.root / "b", page([item(1), item(2)]))) == EXIT_BAD_DATA
    told = shop.output().err
    assert told.startswith("editorial.json /summary: ")
    assert told.endswith("\nThe reviews were imported; insights.json stays as it is.\n")
    assert len(shop.reviews) == 2


def test_archives_do_no_harm(shop: Shop) -> None:
    good = takeout_files([item(1)])
    bomb = export_lab.zipped(shop.root / "bomb.zip", {"l/reviews.json": b" " * (LARGEST_FILE_BYTES + 1)})
    cut = written(shop.root / "cut.zip", takeout(shop.root / "t.zip", [item(1)]).read_bytes()[:-40])
    maps = export_lab.zipped(shop.root / "m.zip", {"Maps/Reviews.json": export_lab.OWN_REVIEWS})
    large = f"{bomb}:l/reviews.json: cannot be read: it is larger than 64 MiB"
    told = {bomb: large, cut: "damaged", maps: "you wrote yourself"}
    for path, words in told.items():
        assert shop.run(shop.page(item(1)), path, "--zone", ZONE) == EXIT_BAD_DATA == 78
        assert words in shop.output().err
    climbing = {"../../../l/reviews.json": page([item(2)]), "/l/reviews-x.json": page([item(3)])}
    both = {"Maps/Reviews.json": export_lab.OWN_REVIEWS}
    shop.take(export_lab.zipped(shop.root / "c.zip", {**good, **climbing, **both}))
    assert len(shop.reviews) == 3
    assert sorted(path.name for path in shop.root.iterdir() if path.is_dir()) == ["data"]


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
def test_no_file_of_the_sample_is_merged_with(shop: Shop, name: str) -> None:
    shop.take(written(shop.root / "p", page([item(1)])), "--name", "B")
    written(shop.data / name, (SAMPLE / name.replace("editorial", "insights")).read_bytes())
    before = shop.files()
    assert shop.run(written(shop.root / "q", page([item(2)]))) == EXIT_BAD_DATA
    fault = "a file of the sample, which is never changed; choose another directory: --data my-data"
    assert shop.output().err == f"{shop.data / name}: {fault}\nNothing was written.\n"
    assert shop.files() == before


ANEW = "not a state of this version; delete the file, and it is made anew"
BOTH = "not made from editorial.json, which is there, too; put all into that and remove this"
WRONG = [
    ("reviews.json", b'{"business": {"name": "B"}}', "reviews.json: 'reviews' is a required property"),
    ("import-state.json", b"[]", f"import-state.json: {ANEW}"),
    ("import-state.json", b'{"zone": "Mars/Base"}', "import-state.json: unknown time zone 'Mars/Base'"),
    ("insights.json", b'{"version": 1, "model": "me", "review_count": 1}', f"insights.json: {BOTH}"),
    ("insights.json", None, "{}/insights.json: cannot be read: it is not a regular file"),
    ("suppressed.txt", b"\xff", "suppressed.txt: not UTF-8"),
]


@pytest.mark.parametrize(("name", "content", "told"), WRONG)
def test_what_is_wrong_in_the_directory_stops_a_command_that_reads_it(
    shop: Shop, name: str, content: bytes | None, told: str
) -> None:
    shop.take(shop.page(item(1)), "--name", "B")
    written(shop.data / "editorial.json", "{}")
    (shop.data / name).mkdir() if content is None else written(shop.data / name, content)
    assert shop.run("--count" if BOTH in told else shop.page(item(2))) == EXIT_BAD_DATA
    assert shop.output().err.startswith(told.format(shop.data))


def test_counting_is_tried_on_a_copy_of_the_sample(shop: Shop) -> None:
    shop.data.mkdir()
    for name in ("reviews.json", "insights.json"):
        written(shop.data / name, (SAMPLE / name).read_bytes())
    assert shop.run("--count") == EXIT_SUCCESS
    assert insights(shop)["review_count"] == 160
    before = shop.files()
    assert shop.run("--count") == EXIT_SUCCESS
    assert shop.files() == before


SECRET = "root:$6$salt"


def test_links_among_exports_are_skipped_and_named(shop: Shop) -> None:
    secret = written(shop.root / "shadow", SECRET)
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
    for name in ("x/reviews-2.json", "x/up", "link", "elsewhere", "dangling"):
        assert f"\nskipped: {drop / name}: a symlink; give the file itself\n" in told.out
    assert "root:" not in told.out + told.err
    assert set(shop.reviews) == {takeout_id(1)}
    assert shop.run(drop / "link", "--zone", ZONE) == EXIT_BAD_DATA
    told = shop.output()
    assert "a symlink; give the file itself" in told.err and "root:" not in told.out + told.err


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
    f"{__file__} --data x --map author=x,foo=y": f"--map foo=y: {MAP_HINT}",
    f"{__file__} --data x --map id=x,id=y": f"--map id=y: {MAP_HINT}",
    f"{__file__} --data x --map author=": f"--map author=: {MAP_HINT}",
    f"--drop {__file__} --data x": f"--drop {__file__}: not a directory\n",
    f"{__file__} --data x --redact y z": ONE_TASK,
    f"{__file__} --data x --map author=YOUR": "--map: replace YOUR by your own words\n",
    "--template --data x": "--template takes neither FILE nor --data\n",
    f"{__file__} --data x --zone YOUR/ZONE": "--zone: replace YOUR by your own words\n",
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


def test_a_machine_that_knows_no_zone_needs_their_data(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "available_timezones", set)
    with pytest.raises(SystemExit):
        shop.run(__file__, "--zone", ZONE)
    hint = "unknown time zone; install tzdata"
    assert shop.output().err.endswith(f"error: --zone {ZONE}: {hint}\n")


def test_what_cannot_be_written_is_status_1(shop: Shop) -> None:
    pages = written(shop.root / "p", page([item(1)]))
    (shop.data / ".reviews.json.draft").mkdir(parents=True)
    assert shop.run(pages, "--name", "B", "--zone", ZONE) == EXIT_FAILURE == 1
    assert shop.output().err == f"cannot write {shop.data}/reviews.json: Is a directory\n"
    assert "reviews.json" not in shop.files()
    assert command.main([str(pages), "--data", str(pages), "--name", "B"]) == EXIT_FAILURE


ENDS = [
    (OSError(28, "full"), 1, "cannot write {}/import-state.draft.json: full\n"),
    (MemoryError(), 1, "too little memory for these files; nothing was lost\n"),
    (KeyboardInterrupt(), 130, "stopped; run the same command again\n"),
]


@pytest.mark.parametrize(("cause", "status", "told"), ENDS)
def test_a_full_disk_or_memory_or_an_interruption_changes_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, cause: BaseException, status: int, told: str
) -> None:
    shop.take(written(shop.root / "p", page([item(1)])), "--name", "B")
    before = shop.files()
    monkeypatch.setattr(os, "fsync", Mock(side_effect=cause))
    assert shop.run(written(shop.root / "q", page([item(2)]))) == status
    assert shop.output().err == told.format(shop.data)
    assert shop.files() == before


def test_an_output_that_is_full_is_status_1(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Mock(**{"flush.side_effect": OSError(28, "full")}))
    assert command.main(["--template"]) == EXIT_FAILURE
    assert shop.output().err == "cannot write the output: full\n"


@pytest.mark.parametrize("stdout", [">&-", "| cat"])
def test_a_terminal_with_few_letters_or_none_is_no_fault(shop: Shop, stdout: str) -> None:
    path = shop.csv(["Ann", "5", "2024-01-01", "BjÃ¸rn"])
    program = f"{sys.executable} -m reviewslib.importer.command"
    line = f"{program} {path} --data {shop.data} --name É --source ö {stdout}"
    few = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    shell = ["bash", "-o", "pipefail", "-c", line]
    ran = subprocess.run(shell, env=few, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (EXIT_SUCCESS, b"")


def test_from_a_takeout_to_a_subscriber(shop: Shop) -> None:
    shop.take(takeout(shop.root / "a.zip", [item(1)]))
    with open_lab(shop.root) as lab:
        settings = ["--hub-allow-private", "--hub-ca-file", str(lab.ca_file), "--reload-interval", "0.05"]
        with daemon(*settings, data=shop.data) as service:
            url = f"https://127.0.0.1:{lab.port}/cb"
            form = {"hub.mode": "subscribe", "hub.topic": service.base_url + JSON_FEED, "hub.callback": url}
            body = urlencode(form).encode()
            assert fetch(service, "/api/websub/hub", "POST", body, content_type=FORM).status == 202
            lab.wait(lab.gets)
            news = item(2, comment="Splunkunýtt")
            shop.take(takeout(shop.root / "b.zip", [item(1), news]))
            lab.wait(lab.posts)
            assert "Splunkunýtt" in json.loads(lab.posts()[0].body)["items"][0]["content_text"]
            found = fetch(service, "/api/reviews/search?query=splunku")
            assert json.loads(found.body)["matched"] == 1


def test_a_drop_folder_with_stray_files_imports_the_rest_and_names_them(shop: Shop) -> None:
    shop.take(takeout(shop.root / "first.zip", [item(n) for n in range(20)]))
    drop = shop.root / "drop"
    (drop / "holiday").mkdir(parents=True)
    written(drop / "holiday" / "photo.jpg", b"\xff\xd8")
    written(drop / "desktop.ini", "[.ShellClassInfo]\nIconResource=x,1\n")
    written(drop / ".DS_Store", b"\0\1")
    written(drop / "takeout-20260101T101112Z-002.zip.part", b"PK\x03\x04 cut")
    written(drop / "strange.csv", "Who,Mark,Note\nAnn,5,x\n")
    written(drop / "too faulty.csv", "author,rating,date,source\n" + 3 * "Ann,x,2024-01-01,fb\n")
    written(drop / "good.csv", "author,rating,date,source\nAnn,5,2024-01-01,fb\n")
    takeout(drop / stamped(60), [item(n) for n in range(1, 21)])
    shop.output()
    assert shop.run("--drop", drop) == EXIT_SUCCESS
    told = shop.output().out
    for name in (
        "desktop.ini",
        "holiday",
        "takeout-20260101T101112Z-002.zip.part",
        "strange.csv",
        "too faulty.csv: 3 of 3",
    ):
        assert any(line.startswith("skipped: ") and str(drop / name) in line for line in told.splitlines())
    assert f"skipped: {drop}/strange.csv: the header is unknown; import it once by hand\n" in told
    assert "DS_Store" not in told
    two_faulty = "author,rating,date,source\nAnn,5,2024-01-01,fb\n" + 2 * "Bo,x,2024-01-01,fb\n"
    for name in ("1.csv", "2.csv"):  # each is a small file of its own
        written(drop / name, two_faulty)
    assert shop.run("--drop", drop) == EXIT_SUCCESS
    (drop / "1.csv").unlink()
    (drop / "2.csv").unlink()
    assert len(shop.reviews) == 21  # the newest export no longer has the first one
    before = shop.files()
    assert shop.run("--drop", drop) == EXIT_SUCCESS
    assert shop.files() == before
    for path in (drop / "good.csv", drop / stamped(60)):
        path.unlink()
    assert shop.run("--drop", drop) == EXIT_BAD_DATA
    assert shop.output().err.endswith("\nThere is nothing to import.\nNothing was written.\n")
    empty = shop.root / "empty"
    empty.mkdir()
    assert shop.run("--drop", empty) == Shop(shop.root / "new").run("--drop", empty) == EXIT_SUCCESS
    assert shop.output().out == 2 * f"{empty} is empty\n"
    assert shop.run(drop / "desktop.ini") == EXIT_BAD_DATA  # named by somebody, it is a fault as before
    assert shop.files() == before


def test_a_location_that_appears_in_a_drop_folder_is_named_and_not_imported(shop: Shop) -> None:
    shop.take(takeout(shop.root / "first.zip", [item(1)]))
    both = takeout_files([item(1), item(2)]) | takeout_files([item(3, place="22")], place="22")
    (shop.root / "drop").mkdir()
    archive = export_lab.zipped(shop.root / "drop" / "a.zip", both)
    assert shop.run(archive) == EXIT_BAD_DATA
    assert shop.run("--drop", archive.parent) == EXIT_SUCCESS
    assert 'not imported: 1 reviews of location 22 "Bó\'s Bakarí", not chosen\n' in shop.output().out
    assert set(shop.reviews) == {takeout_id(1), takeout_id(2)}


def test_a_dry_run_reports_and_leaves_no_trace(shop: Shop) -> None:
    pages = written(shop.root / "p", page([item(1)]))
    assert shop.run(pages, "--dry-run", "--zone", ZONE) == EXIT_BAD_DATA
    assert shop.run(pages, "--dry-run", "--zone", ZONE, "--name", "B") == EXIT_SUCCESS
    assert not shop.data.exists()
    told = shop.output().out
    assert "reviews.json: changed, 1 review(s)\n" in told
    assert told.endswith("\nA dry run: nothing was written.\n")
    shop.take(pages, "--name", "B")
    assert shop.run(pages, "--dry-run") == EXIT_SUCCESS
    assert "reviews.json: unchanged, 1 review(s)" in shop.output().out
    assert shop.run("--count", "--dry-run") == EXIT_SUCCESS
    assert "insights.json: changed, 1 review(s)" in shop.output().out


def test_the_command_to_copy_works_where_the_program_is_installed(shop: Shop) -> None:
    program = Path(sys.executable).with_name("reviewsd-import")
    table = shop.csv(["Ann", "5", "2024-01-01", ""])
    arguments = [program, table, "--data", shop.data, "--zone", ZONE, "--name", "B"]
    told = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=shop.root).stderr
    words = shlex.split(told.splitlines()[-1])
    assert words == [*map(str, arguments), "--source", "YOUR"]


def test_a_count_lists_names_with_their_mentions_and_warns_of_keys_that_are_nearly_right(shop: Shop) -> None:
    shop.take(written(shop.root / "a", page([item(1), item(2)])), "--name", "B")
    names = [*ALIASES["technicians"], {"id": "bo", "label": "Bo Roe", "aliases": ["Bo"]}]
    entities = {
        "technicians": names,
        "service_areas": [{"id": "i", "label": "Í", "aliases": ["í"]}, {"id": "u", "label": "Ú"}],
    }
    written(shop.data / "editorial.json", json.dumps({"entities": entities, "sumary": "Good"}))
    shop.output()
    assert shop.run("--count") == EXIT_SUCCESS
    warning = 'warning: editorial.json /sumary: an unknown key, which nothing reads; is "summary" meant?'
    counted = "technicians: Ósk: 2\ntechnicians: Bo Roe: 0\nservice areas: Í: 2"
    outcome = f"{shop.data}/insights.json: changed, 2 review(s)"
    assert shop.output().out == f"{warning}\n{counted}\n{outcome}\n"


def test_the_first_import_into_a_directory_is_locked_too(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = written(shop.root / "a", page([item(1)]))
    merge = command.merge

    def merged(*arguments: Any) -> Any:
        assert shop.run(pages, "--name", "C", "--zone", ZONE) == EXIT_FAILURE
        return merge(*arguments)

    monkeypatch.setattr(command, "merge", merged)
    shop.take(pages, "--name", "B")
    assert shop.output().err == f"cannot write {shop.data}: another import is under way\n"
    assert shop.document["business"]["name"] == "B"


def test_the_skeleton_of_the_business_is_served_as_if_absent_and_survives_when_filled_in(shop: Shop) -> None:
    pages = written(shop.root / "a", page([item(1)]))
    shop.take(pages, "--name", "B")
    content = (shop.data / "reviews.json").read_bytes()
    dataset = load(shipped_contract(), content, None, ServiceUrls())
    assert dataset.business == dict.fromkeys(BLANK_BUSINESS) | {"name": "B"}
    document = shop.document
    address = BLANK_BUSINESS["address"] | {"locality": "Vík"}
    document["business"] |= {"description": "Buns", "address": address}
    rating = {"aggregate_rating": {"rating_value": 1, "review_count": 9}}
    written(shop.data / "reviews.json", json.dumps(rating | document))
    shop.output()
    shop.take(written(shop.root / "b", page([item(2)])))
    told = shop.output().out
    assert "\nwarning: reviews.json gives an aggregate_rating of its own: " in told
    assert shop.document["business"] == document["business"]
