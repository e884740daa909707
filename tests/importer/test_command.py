"""The command: exports become served data; a wrong file, flag or disk changes nothing.

Sections: a Takeout becomes a data set - what the owner has written stays - dry runs -
insights - files of the data directory that stop a command - interruptions - usage -
output - drop folder - the unit's own command.
"""

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
from reviewslib.terminal import (
    EXIT_BAD_DATA,
    EXIT_FAILURE,
    EXIT_STOPPED,
    EXIT_SUCCESS,
)

PROGRAM = [sys.executable, "-m", "reviewslib.importer.command"]


@pytest.fixture
def one_review(shop: Shop) -> Shop:
    shop.take(shop.page(item(1)), "--name", "B")
    return shop


# ---- A Takeout becomes a data set ----

PLAIN = {
    "id": takeout_id(1),
    "author": "Ósk Nr1",
    "rating": 5,
    "date": "2025-01-02T12:15:00-08:00",
    "text": "Kom aftur, í 1. skipti",
    "source": "google",
    "updated": "2025-01-02T12:15:00-08:00",
    "owner_reply": None,
}
REPLY = {"comment": "¡Gracias!", "updateTime": moment(5)}
REAL = [
    pytest.param({}, {}, id="with words"),
    pytest.param(
        {"comment": None, "starRating": "TWO", "policyViolation": {"a": [1]}},
        {"rating": 2, "text": None},
        id="without words",
    ),
    pytest.param(
        {"reviewReply": REPLY},
        {"owner_reply": {"text": "¡Gracias!", "date": "2025-01-06T12:15:00-08:00"}},
        id="with a reply",
    ),
    pytest.param(
        {"updateTime": moment(40)},
        {"updated": "2025-02-13T12:15:00-08:00"},
        id="revised",
    ),
    pytest.param(
        {"reviewer": {"displayName": "Hidden", "isAnonymous": True}},
        {"author": "A Google user"},
        id="of somebody hidden",
    ),
    pytest.param(
        {"createTime": "2025-01-02T20:15:00", "updateTime": None},
        {},
        id="with a moment without a zone",
    ),
    pytest.param(
        # What the owner wrote is no review.
        {"comment": "Takk", "reviewReply": {"comment": "Takk"}},
        {"text": None, "owner_reply": {"text": "Takk", "date": None}},
        id="with the reply as its words",
    ),
]


@pytest.mark.parametrize(("changes", "stored"), REAL)
def test_a_review_of_a_takeout_is_stored_with_its_fields(
    shop: Shop, changes: dict[str, Any], stored: dict[str, Any]
) -> None:
    shop.take(shop.takeout(90, [item(1, **changes)]))

    assert shop.only() == PLAIN | stored


@pytest.fixture
def archive(shop: Shop) -> Path:
    """A Takeout of 63 reviews, which two accounts have both."""
    first = takeout_files([item(number) for number in range(63)])
    second = {name.replace("-1/", "-2/"): data for name, data in first.items()}
    return shop.zip(stamped(90), first | second)


def test_reviews_that_two_accounts_have_are_counted_once(
    shop: Shop, archive: Path
) -> None:
    assert "new: 63 (5 stars: 63)\n" in shop.told(archive)


SCHEMAS = shipped_contract().schemas["components"]["schemas"]
BLANK_BUSINESS: dict[str, Any] = dict.fromkeys(SCHEMAS["Business"]["properties"]) | {
    "address": dict.fromkeys(SCHEMAS["Address"]["properties"]),
    "geo": {"latitude": None, "longitude": None},
}


def test_the_business_is_blank_but_for_its_name(shop: Shop, archive: Path) -> None:
    shop.take(archive)

    assert shop.document["business"] == BLANK_BUSINESS | {"name": "Bó's Bakarí"}


def test_the_file_can_be_read_and_edited_by_people(shop: Shop, archive: Path) -> None:
    shop.take(archive)

    content = shop.files()["reviews.json"].decode()
    assert '\n },\n "reviews": [\n  {\n   "id": ' in content
    assert "Ósk" in content


def test_an_import_writes_the_reviews_and_its_state(shop: Shop, archive: Path) -> None:
    shop.take(archive)

    assert sorted(shop.files()) == ["import-state.json", "reviews.json"]


def test_a_second_import_changes_no_byte_and_says_so(shop: Shop, archive: Path) -> None:
    shop.take(archive)
    before = shop.files()

    told = shop.told(archive)

    assert shop.files() == before
    assert f"\n{shop.data}/reviews.json: unchanged, 63 reviews\n" in told


def test_a_folder_is_imported_like_an_archive_even_if_names_are_not_utf_8(
    shop: Shop,
) -> None:
    items = [item(number) for number in range(50)]
    unpacked = Path(os.fsdecode(os.fsencode(shop.root) + b"/x\xff"))
    for name, content in takeout_files(items).items():
        shop.file(f"{unpacked}/{os.fsdecode(bytes([254]))}/{name}", content)
    other = Shop(shop.root / "other")

    shop.take(unpacked)
    other.take(other.takeout(0, items, name="t.zip"))

    # Both have said that a name without a time removes nothing, each with its name.
    said = {"said": shop.state["said"]}
    assert shop.document == other.document
    assert shop.state == other.state | said


def test_paths_that_climb_out_of_an_archive_write_nothing(shop: Shop) -> None:
    climbing = {"../../../l/reviews.json": page([item(2)])}

    shop.take(shop.zip("c.zip", takeout_files([item(1)]) | climbing))

    assert [path for path in shop.root.iterdir() if path.is_dir()] == [shop.data]
    assert len(shop.reviews) == 2


def test_reviews_that_the_owner_wrote_are_skipped_and_named(shop: Shop) -> None:
    own = {"Maps/Reviews.json": OWN_REVIEWS}
    archive = shop.zip("c.zip", takeout_files([item(1)]) | own)

    told = shop.told(archive)

    skipped = f"skipped: {archive}:Maps/Reviews.json: reviews that you wrote yourself"
    assert skipped in told
    assert len(shop.reviews) == 1


# ---- What the owner has written stays ----


def test_members_of_a_business_that_are_blank_are_not_served(one_review: Shop) -> None:
    content = one_review.files()["reviews.json"]

    dataset = load(shipped_contract(), content, None, ServiceUrls())

    assert dataset.business == dict.fromkeys(BLANK_BUSINESS) | {"name": "B"}


def test_a_business_that_was_filled_in_survives_imports(one_review: Shop) -> None:
    document = one_review.document
    document["business"]["description"] = "Buns"
    one_review.file("data/reviews.json", json.dumps(document))

    one_review.take(one_review.page(item(2)))

    assert one_review.document["business"] == document["business"]


def test_a_rating_of_the_owners_own_is_kept_and_warned_of(one_review: Shop) -> None:
    rating = {"rating_value": 1, "review_count": 9}
    document = one_review.document | {"aggregate_rating": rating}
    one_review.file("data/reviews.json", json.dumps(document))

    told = one_review.told(one_review.page(item(2)))

    assert one_review.document["aggregate_rating"] == rating
    assert "\nwarning: reviews.json gives an aggregate_rating of its own: " in told


# ---- Dry runs ----


def test_a_dry_run_reports_and_writes_nothing(shop: Shop) -> None:
    told = shop.told(shop.page(item(1)), "--dry-run", "--name", "B")

    outcome = f"{shop.data}/reviews.json: changed, 1 review"
    dry = "A dry run: nothing was written."
    assert told == f"new: 1 (5 stars: 1)\n{outcome}\n{dry}\n"
    assert not shop.data.exists()


def test_a_dry_run_asks_what_an_import_asks(shop: Shop) -> None:
    told = shop.refused(shop.page(item(1)), "--dry-run")

    assert told.startswith("What is imported does not name the business:")
    assert not shop.data.exists()


# ---- Insights ----


def counted(shop: Shop, *words: str) -> str:
    """The report of a count that succeeds."""
    shop.output()
    assert shop.run("--count", *words) == EXIT_SUCCESS
    return str(shop.output().out)


def insights(shop: Shop) -> dict[str, Any]:
    return json.loads(shop.files()["insights.json"])  # type: ignore[no-any-return]


def test_an_import_makes_no_insights_that_nobody_has_asked_for(
    one_review: Shop,
) -> None:
    assert "insights.json" not in one_review.files()


def test_imports_count_again_once_insights_were_counted(one_review: Shop) -> None:
    counted(one_review)

    one_review.take(one_review.page(item(2)))

    assert insights(one_review)["version"] == 2
    assert insights(one_review)["review_count"] == 2


def test_an_erasure_does_not_warn_of_insights_that_it_counts_again(
    one_review: Shop,
) -> None:
    one_review.take(one_review.page(item(2)))
    counted(one_review)

    told = one_review.told("--forget", takeout_id(2))

    assert "warning" not in told


def test_an_import_that_was_killed_before_counting_is_counted_by_the_next(
    one_review: Shop,
) -> None:
    counted(one_review)
    one_review.run_until_killed(one_review.page(item(2)), name="insights.json")

    one_review.take(one_review.page(item(2)))

    assert insights(one_review)["review_count"] == 2


def name_of(id: str) -> dict[str, object]:
    """An entry of the editorial file that is found by its own name."""
    return {"id": id, "label": id, "aliases": [id]}


@pytest.fixture
def with_names(one_review: Shop) -> Shop:
    """A shop with names to find in its one review, “Kom aftur, í 1. skipti”."""
    entities = {
        "technicians": [name_of("skipti"), name_of("Bo")],
        "service_areas": [name_of("í"), {"id": "u", "label": "Ú"}],
    }
    one_review.file("data/editorial.json", json.dumps({"entities": entities}))
    return one_review


def test_a_count_lists_how_often_names_are_mentioned(with_names: Shop) -> None:
    told = counted(with_names)

    assert told.splitlines()[-4:] == [
        "technicians: skipti: 1",
        "technicians: Bo: 0",
        "service areas: í: 1",
        f"{with_names.data}/insights.json: changed, 1 review",
    ]


def test_a_count_names_the_entries_that_nothing_counts(with_names: Shop) -> None:
    told = counted(with_names)

    assert told.splitlines()[:2] == [
        'entries that nothing counts: 1 ("service_areas/u")',
        "write aliases or per_review for them, or run reviewsd-insights",
    ]


def test_a_second_count_changes_no_byte_and_says_so(with_names: Shop) -> None:
    counted(with_names)
    before = with_names.files()

    told = counted(with_names)

    assert with_names.files() == before
    assert f"{with_names.data}/insights.json: unchanged, 1 review\n" in told


@pytest.fixture
def by_hand(one_review: Shop) -> Shop:
    """A shop with insights that a person wrote."""
    document = {"version": 7, "model": "me", "review_count": 9, "summary": "Good"}
    one_review.file("data/insights.json", json.dumps(document | {"topics": []}))
    return one_review


def test_insights_by_hand_stay_as_they_are_until_somebody_counts(
    by_hand: Shop,
) -> None:
    before = insights(by_hand)

    by_hand.take(by_hand.page(item(2)))
    counted(by_hand, "--dry-run")

    assert insights(by_hand) == before


def test_insights_by_hand_become_the_editorial_file_when_counted(
    by_hand: Shop,
) -> None:
    told = counted(by_hand)

    moved = "insights.json becomes editorial.json, without what is counted: "
    assert told.startswith(f"{moved}version, model, review_count\n")
    assert insights(by_hand)["version"] == 8
    assert insights(by_hand)["summary"] == "Good"


def test_insights_that_were_edited_after_counting_are_not_overwritten(
    one_review: Shop,
) -> None:
    counted(one_review)
    edited = insights(one_review) | {"summary": "Mine"}
    one_review.file("data/insights.json", json.dumps(edited))
    one_review.file("data/editorial.json", "{}")

    told = one_review.refused("--count")

    reason = "edited after counting; move your changes into editorial.json and remove"
    assert told.startswith(f"insights.json: {reason} this file\n")


def test_insights_by_hand_beside_an_editorial_file_are_not_overwritten(
    one_review: Shop,
) -> None:
    one_review.file("data/insights.json", '{"summary": "Mine"}')
    one_review.file("data/editorial.json", "{}")

    told = one_review.refused("--count")

    reason = (
        "not counted, but editorial.json exists; move your entries there and remove"
    )
    assert told.startswith(f"insights.json: {reason} this file\n")


def test_reviews_are_imported_even_if_the_insights_cannot_be_counted(
    one_review: Shop,
) -> None:
    one_review.file("data/editorial.json", '{"summary": 5}')

    assert one_review.run(one_review.page(item(1), item(2))) == EXIT_BAD_DATA

    told = one_review.output().err
    assert told.startswith("editorial.json /summary: ")
    assert told.endswith("\nThe reviews were imported; insights.json stays as it is.\n")
    assert len(one_review.reviews) == 2


# ---- Files of the data directory that stop a command ----

OF_SAMPLE = (
    "a file of the sample, which no import changes; "
    "choose another directory: --data my-data"
)
COPIES = [
    pytest.param("reviews.json", "reviews.json", id="reviews"),
    pytest.param("insights.json", "insights.json", id="insights"),
    pytest.param("editorial.json", "insights.json", id="insights under another name"),
]


@pytest.mark.parametrize(("name", "copied"), COPIES)
def test_an_import_into_the_sample_is_refused(
    one_review: Shop, name: str, copied: str
) -> None:
    one_review.file(f"data/{name}", (SAMPLE / copied).read_bytes())

    told = one_review.refused(one_review.page(item(2)))

    assert told.startswith(f"{one_review.data}/{name}: {OF_SAMPLE}\n")


WRONG_CONTENTS = [
    pytest.param(
        "reviews.json",
        b'{"business": {"name": "B"}}',
        "'reviews' is a required property",
        id="reviews without reviews",
    ),
    pytest.param("suppressed.txt", b"\xff", "not UTF-8", id="lines in no encoding"),
]


@pytest.mark.parametrize(("name", "content", "fault"), WRONG_CONTENTS)
def test_a_file_that_the_daemon_would_not_read_stops_a_command(
    one_review: Shop, name: str, content: bytes, fault: str
) -> None:
    one_review.file(f"data/{name}", content)

    told = one_review.refused(one_review.page(item(2)))

    assert told.startswith(f"{name}: {fault}")


def test_insights_that_cannot_be_read_stop_a_first_import_too(shop: Shop) -> None:
    shop.file("data/insights.json", "[]")

    told = shop.refused(shop.page(item(1)), "--name", "B")

    assert told.startswith("insights.json: an array is not an object\n")
    assert "reviews.json" not in shop.files()


def test_a_folder_in_place_of_a_file_stops_a_command(one_review: Shop) -> None:
    (one_review.data / "insights.json").mkdir()

    told = one_review.refused(one_review.page(item(2)))

    fault = "cannot be read: it is not a regular file"
    assert told.startswith(f"{one_review.data}/insights.json: {fault}")


def test_more_reviews_than_can_be_served_are_refused_before_anything_is_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_REVIEWS", 2)

    reason = shop.refused(shop.page(item(1), item(2), item(3)), "--name", "B")

    assert "has 3 reviews; at most 2 can be served" in reason


# ---- Interruptions ----

# The state is put in its place after reviews.json; until then its draft counts.
KILLED = [
    pytest.param("import-state.draft.json", {1}, id="before the draft"),
    pytest.param("reviews.json", {1}, id="before the reviews"),
    pytest.param("import-state.json", {1, 2, 3}, id="before the state"),
]


@pytest.mark.parametrize(("name", "numbers"), KILLED)
def test_a_killed_import_leaves_all_before_or_all_after(
    one_review: Shop, name: str, numbers: set[int]
) -> None:
    words = [one_review.takeout(9, [1, 2, 3]), "--allow-removals"]
    one_review.run_until_killed(*words, name=name)

    told = one_review.told("--zone", ZONE)

    assert "was edited" not in told
    assert one_review.numbers() == numbers
    assert set(one_review.state["reviews"]) == set(one_review.reviews)
    assert ("covered" in one_review.state) is (len(numbers) > 1)


def test_an_error_while_writing_is_named_and_leaves_the_reviews(shop: Shop) -> None:
    (shop.data / ".reviews.json.draft").mkdir(parents=True)

    assert shop.run(shop.page(item(1)), "--name", "B") == EXIT_FAILURE

    assert shop.output().err == (
        f"{shop.data}/reviews.json: Is a directory\n"
        "No file is damaged. Put this right, and give the command again.\n"
    )
    assert "reviews.json" not in shop.files()


def test_the_first_import_into_a_directory_is_locked_too(shop: Shop) -> None:
    with files.locked(shop.data, is_dry=False):
        assert shop.run(shop.page(item(1)), "--name", "B") == EXIT_FAILURE

    assert (
        shop.output().err
        == f"{shop.data}: another command is writing to it; try again in a moment\n"
    )


class Interrupted(io.StringIO):
    """A terminal at which somebody presses Ctrl-C when the first words appear."""

    def write(self, _: str) -> int:
        raise KeyboardInterrupt


def test_an_interruption_has_its_own_status_and_a_way_on(one_review: Shop) -> None:
    with contextlib.redirect_stdout(Interrupted()):
        assert one_review.run(one_review.page(item(2))) == EXIT_STOPPED

    assert one_review.output().err == "stopped; run the same command again\n"


def test_exit_statuses_are_those_of_the_documentation() -> None:
    statuses = (EXIT_SUCCESS, EXIT_FAILURE, EXIT_BAD_DATA, EXIT_STOPPED)

    assert statuses == (0, 1, 78, 130)


# ---- Usage ----

ONE_TASK = (
    "give one of FILE, --drop, --google, --count, --forget, --forget-author "
    "and --redact"
)
NO_ZONE = "not a time zone such as Europe/Berlin; if none works, install tzdata"
NO_FIELD = f"expected FIELD=COLUMN, of {', '.join(options.FIELDS)}"
NO_SCALE = "expected a whole number from 2 to 100"
NO_SOURCE = "expected where reviews were published, such as facebook"
YOUR = "replace YOUR with your own words"
WRONG_USAGE = [
    pytest.param("", "the following arguments are required: --data", id="no words"),
    pytest.param("--data x", ONE_TASK, id="nothing to do"),
    pytest.param("--data x y.zip --forget y", ONE_TASK, id="import and forget"),
    pytest.param(
        "--data x --forget y --forget-author z", ONE_TASK, id="two ways to forget"
    ),
    pytest.param("--data x y.zip --redact y z", ONE_TASK, id="import and redact"),
    pytest.param(
        "y --data x --scale 101", f"argument --scale: 101: {NO_SCALE}", id="large scale"
    ),
    pytest.param(
        "y --data x --scale 1", f"argument --scale: 1: {NO_SCALE}", id="small scale"
    ),
    pytest.param(
        "y --data x --zone Mars/Base",
        f"argument --zone: Mars/Base: {NO_ZONE}",
        id="a zone elsewhere",
    ),
    pytest.param(
        "y --data x --zone Europe/Istambul",
        "argument --zone: Europe/Istambul: not a time zone; did you mean Europe/Istanbul?",
        id="a zone misspelt",
    ),
    pytest.param(
        "y --data x --zone ../x", f"argument --zone: ../x: {NO_ZONE}", id="a path"
    ),
    pytest.param(
        "y --data x --map foo=y", f"argument --map: foo=y: {NO_FIELD}", id="no field"
    ),
    pytest.param(
        "y --data x --map author=",
        f"argument --map: author=: {NO_FIELD}",
        id="no column",
    ),
    pytest.param(
        "y --data x --map author=YOUR", f"argument --map: {YOUR}", id="a question's map"
    ),
    pytest.param(
        "y --data x --zone YOUR/ZONE",
        f"argument --zone: {YOUR}",
        id="a question's zone",
    ),
    pytest.param(
        "y --data x --source -",
        f"argument --source: -: {NO_SOURCE}",
        id="no column as source",
    ),
    pytest.param(
        "y --data x --source 5",
        f"argument --source: 5: {NO_SOURCE}",
        id="a number as source",
    ),
    pytest.param(
        f"y --data x --source {81 * 'y'}",
        f"argument --source: {81 * 'y'}: {NO_SOURCE}",
        id="a text as source",
    ),
]


@pytest.mark.parametrize(("line", "fault"), WRONG_USAGE)
def test_wrong_usage_is_status_2_and_named(
    line: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        command.main(line.split())

    usage = "usage: reviewsd-import FILE… --data DIR [options]\n"
    told = capsys.readouterr().err
    assert told == f"{usage}reviewsd-import: error: {fault}\n"
    assert exit.value.code == 2


ABSENT = [
    pytest.param(("absent.zip",), id="a file"),
    pytest.param((300 * "a",), id="a name that no file can have"),
    pytest.param(("--drop", "absent"), id="a folder"),
]


@pytest.mark.parametrize("words", ABSENT)
def test_what_is_absent_is_refused(shop: Shop, words: tuple[str, ...]) -> None:
    told = shop.refused(*words, "--name", "B")

    assert told.startswith(f"{words[-1]}: cannot be read: ")


def test_a_count_without_reviews_names_the_missing_file(shop: Shop) -> None:
    told = shop.refused("--count")

    assert told.startswith(f"reviews.json: no such file in {shop.data}\n")


# ---- Output ----

ASCII = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}


def run_in_shell(shop: Shop, redirection: str) -> subprocess.CompletedProcess[bytes]:
    """An import with letters beyond ASCII, on a terminal that has ASCII alone."""
    path = shop.csv(["Ann", "5", "2024-01-01", "Bjørn"])
    words = [*PROGRAM, str(path), "--data", str(shop.data), "--name", "É"]
    line = f"{shlex.join([*words, '--source', 'ö'])} {redirection}"
    bash = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(bash, env=ASCII, capture_output=True, check=False)


@pytest.mark.parametrize(
    "redirection",
    [pytest.param(">&-", id="closed"), pytest.param("| cat", id="a pipe")],
)
def test_an_output_that_is_closed_or_in_ascii_is_no_fault(
    shop: Shop, redirection: str
) -> None:
    ran = run_in_shell(shop, redirection)

    assert ran.stderr == b""
    assert ran.returncode == EXIT_SUCCESS


def test_an_output_that_is_full_is_a_fault(shop: Shop) -> None:
    ran = run_in_shell(shop, "> /dev/full")

    assert ran.stderr.startswith(b"the output: No space left")
    assert ran.returncode == EXIT_FAILURE


def test_help_is_printed_in_ascii_too() -> None:
    ran = subprocess.run(
        [*PROGRAM, "--help"], env=ASCII, capture_output=True, check=True
    )

    assert b"\\u201cCamille R.\\u201d" in ran.stdout


# ---- Drop folder ----

GOOD = "author,rating,date,source\nAnn,5,2024-01-01,fb\n"
PART = "takeout-20260101T101112Z-002.zip.part"


@pytest.fixture
def drop(shop: Shop) -> Path:
    """A drop folder with a Takeout, a table, and things that cannot be imported."""
    shop.file("drop/holiday/photo.jpg", b"\xff\xd8")
    (shop.root / "drop/link").symlink_to(shop.file("shadow", "root:$6$salt"))
    shop.file("drop/desktop.ini", "[.ShellClassInfo]\nIconResource=x,1\n")
    shop.file("drop/.DS_Store", b"\0\1")
    shop.file(f"drop/{PART}", b"PK\x03\x04 cut")
    shop.file("drop/strange.csv", "Who,Mark,Note\nAnn,5,x\n")
    shop.file("drop/good.csv", GOOD + "Bo,x,2024-01-01,fb\n")
    shop.file("drop/good too.csv", GOOD + 2 * "Cy,x,2024-01-01,fb\n")
    shop.takeout(60, range(1, 21), name=f"drop/{stamped(60)}")
    return shop.root / "drop"


def test_the_exports_of_a_drop_folder_are_imported(shop: Shop, drop: Path) -> None:
    shop.take("--drop", drop)

    assert len(shop.reviews) == 21


def test_what_is_no_export_in_a_drop_folder_is_named(shop: Shop, drop: Path) -> None:
    told = shop.told("--drop", drop)

    skipped = re.findall(f"(?m)^skipped: {re.escape(str(drop))}/([^:]+): ", told)
    assert sorted(skipped) == sorted(
        [PART, "desktop.ini", "holiday", "link", "strange.csv"]
    )


REASONS = [
    pytest.param("link: a symlink; give the file itself", id="a symlink"),
    pytest.param(
        "strange.csv: the header is unknown; import it once by hand", id="a header"
    ),
    pytest.param(f"{PART}: its download is not finished", id="a download"),
]


@pytest.mark.parametrize("reason", REASONS)
def test_what_is_left_out_of_a_drop_folder_has_its_reason(
    shop: Shop, drop: Path, reason: str
) -> None:
    assert f"skipped: {drop}/{reason}\n" in shop.told("--drop", drop)


def test_faulty_rows_of_several_tables_do_not_add_up(shop: Shop, drop: Path) -> None:
    assert "faulty, not imported: 3: " in shop.told("--drop", drop)


def test_symlinks_in_a_folder_are_skipped_and_named(shop: Shop) -> None:
    folder = shop.file("reviews.json", page([item(1)])).parent
    (folder / "reviews-2.json").symlink_to(shop.page(item(2)))

    told = shop.told(folder, "--name=B")

    skipped = f"skipped: {folder}/reviews-2.json: a symlink; give the file itself\n"
    assert skipped in told


# ---- The unit's own command ----

HOUSE = "Who;Mark;Day\nAnn;9;05/13/24\n"
EXPLAINED = "author=who,rating=mark,date=day,text=-,reply=-,status=-"


@pytest.fixture
def unit(shop: Shop, drop: Path) -> list[str]:
    """The words of the shipped unit, for a shop that has explained its own table."""
    house = shop.file("drop/house.csv", HOUSE)
    shop.take(drop / stamped(60))
    shop.take(house, "--map", EXPLAINED, "--source", "book", "--scale", "10")
    text = (ROOT / "deploy/reviewsd-import.service").read_text(encoding="utf-8")
    line = re.search(r"reviewsd-import (--drop \S+) --data \S+ ", text)
    assert line
    return line[1].replace("/srv/reviews-drop", str(drop)).split()


def test_the_units_own_command_needs_no_flag_after_the_first_time(
    shop: Shop, unit: list[str]
) -> None:
    shop.file("drop/house.csv", f"{HOUSE}Bo;8;05/06/24\n")

    assert shop.run(*unit) == EXIT_SUCCESS

    in_house = [r for r in shop.reviews.values() if r["source"] == "book"]
    stored = {(review["rating"], review["date"]) for review in in_house}
    assert stored == {(4.5, "2024-05-13"), (4, "2024-05-06")}


def test_the_unit_run_again_changes_no_byte(shop: Shop, unit: list[str]) -> None:
    shop.run(*unit)
    before = shop.files()

    assert shop.run(*unit) == EXIT_SUCCESS

    assert shop.files() == before


def test_a_drop_folder_without_exports_is_a_fault(one_review: Shop) -> None:
    drop = one_review.file("drop/a.jpg", b"\xff\xd8").parent

    told = one_review.refused("--drop", drop)

    assert told.endswith("\nThere is nothing to import.\nNothing was written.\n")


def test_a_drop_folder_that_is_empty_is_no_fault(one_review: Shop) -> None:
    drop = one_review.root / "drop"
    drop.mkdir()

    one_review.take("--drop", drop)

    assert len(one_review.reviews) == 1
