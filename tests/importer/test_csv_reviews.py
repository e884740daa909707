"""The header of a CSV is the template's, a known tool's, or explained once; titles are kept."""

import os
import shlex
import sys
from typing import Any

import pytest
from export_lab import ZONE, Shop, table, written

from reviewslib.dataset.contract import BadData, Fault
from reviewslib.importer import command
from reviewslib.importer.cells import TABLES
from reviewslib.importer.command import EXIT_BAD_DATA
from reviewslib.importer.csv_reviews import read_csv
from reviewslib.importer.exports import Exports, NeedsDecision, Record
from reviewslib.importer.options import FIELDS, CsvSettings, Options


def read(text: str | bytes, **said: Any) -> Exports:
    exports = Exports(Options(zone="UTC", csv=CsvSettings(**said)))
    read_csv(text.encode() if isinstance(text, str) else text, "a.csv", exports)
    return exports


# The header of each tool and a row; what is served of it.
TOOLS = {
    "Trustpilot": (
        "Review Id,Review Username,Review Stars,Review Created (UTC),Review Title,Review Content,"
        "Company Response",
        "t1,Ann,4,2026-01-02 10:00:00,Fast,On time,Thanks",
        ("trustpilot-t1", "Ann", 4, "2026-01-02T02:00:00-08:00", "Fast\n\nOn time", "trustpilot", "Thanks"),
    ),
    "Outscraper": (
        "author_title,author_id,review_id,review_rating,review_datetime_utc,review_text,review_link,owner_answer",
        "Ann,9,ChZ1,5,08/02/2025 16:50:44,Good,https://g.example/1,",
        ("google-ChZ1", "Ann", 5, "2025-08-02T09:50:44-07:00", "Good", "google", None),
    ),
    "Birdeye": (
        "Review ID;Reviewer Name;Rating;Review Date;Review;Review URL;Source",
        "b1;Ann;5;01/25/2026 09:12 AM;Good;https://b.example/1;Healthgrades",
        ("healthgrades-b1", "Ann", 5, "2026-01-25T09:12:00-08:00", "Good", "healthgrades", None),
    ),
    "Podium": (
        "Review Id,Site,Customer Name,Stars,Comment,Date Posted,Link",
        "p1,Google,Ann,5,Good,Jan 5 2026,https://p.example/1",
        ("google-p1", "Ann", 5, "2026-01-05", "Good", "google", None),
    ),
    "Yotpo": (
        "Review ID,Reviewer Display Name,Reviewer Email,Review Score,Review Creation Date,Review Title,"
        "Review Content",
        "7,Ann,a@b.example,3,2026-01-05,Nice,Nice soap",
        ("yotpo-7", "Ann", 3, "2026-01-05", "Nice soap", "yotpo", None),
    ),
    "Judge.me": (
        "title,body,rating,review_date,reviewer_name,reviewer_email,curated,reply,reply_date",
        "Nice,,5,2025-03-02 10:12:00 UTC,Ann,a@b.example,ok,Thanks,",
        (None, "Ann", 5, "2025-03-02T02:12:00-08:00", "Nice", "judge.me", "Thanks"),
    ),
    "Loox": (
        "id,nickname,full_name,rating,date,review,status,verified_purchase",
        "7,Ann,Ann Roe,5,2026-01-05,Good,Active,true",
        ("loox-7", "Ann", 5, "2026-01-05", "Good", "loox", None),
    ),
    "Facebook": (
        "created_time,reviewer.name,rating,review_text,open_graph_story.id",
        "2018-07-07T04:35:18+0000,Ann,5,Good,12",
        ("facebook-12", "Ann", 5, "2018-07-06T21:35:18-07:00", "Good", "facebook", None),
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_known_header_needs_no_flag(shop: Shop, tool: str) -> None:
    header, row, (id, *said) = TOOLS[tool]
    shop.take(written(shop.root / "a.csv", f"{header}\n{row}\n"), "--name", "B")
    review = shop.only()
    reply = review.get("owner_reply") or {"text": None}
    keys = ("author", "rating", "date", "text", "source")
    assert [*(review[key] for key in keys), reply["text"]] == said
    assert id in (None, review["id"]) and review.get("verified", True)
    assert b"b.example" not in shop.files()["reviews.json"] or "https" in row


@pytest.mark.parametrize("url", ["Source URL", "source-url", "source_url"])
@pytest.mark.parametrize(("sign", "first"), [(",", ""), (";", ""), ("|", "sep=|\n"), (",", '"SEP=,"\r\n')])
def test_the_template_is_known_in_any_case_and_below_excels_line(url: str, sign: str, first: str) -> None:
    text = f"Author;RATING;date;{url};source;\nAnn;5;2024-01-02;https://a.example/1;fb;\n".replace(";", sign)
    (record,) = read(first + text).records
    assert record.review["source_url"] == "https://a.example/1"


FAULTY = {
    "Bo;positive;2024-01-02;": '"positive" names no number of stars, and stars are never invented',
    "Bo;5": "the row has 2 cells and the header 4",
    ";5;2024-01-02;": "no author",
    "Bo;5;NaN;": "no date",
    "Bo;5;2024-01-02;so": f'verified is "so"; known are {", ".join(TABLES["truths"])}',
}


def test_a_faulty_row_has_the_number_of_its_line_also_below_the_line_of_excel() -> None:
    columns = {each: each for each in ("author", "rating", "date", "verified")}
    lines = ["sep=;", ";".join(columns), "Ann  Roe;5;2024-01-02;Hidden", *FAULTY]
    found = read("\n".join(lines), source="fb", map=columns)
    assert [str(each) for each in found.failed] == [
        f"a.csv line {line}: {reason}" for line, reason in enumerate(FAULTY.values(), 4)
    ]
    review = {"author": "Ann Roe", "rating": 5, "date": "2024-01-02", "source": "fb", "verified": False}
    assert found.records == [Record(Fault("a.csv line 3", (), ""), "csv", "", review, "", naive=[])]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_delimiter_is_that_of_the_header_whatever_ends_its_lines(end: str) -> None:
    for sign, text in ((";", "a,b,c,d,e,f,g,h"), ("\t", "a;b;c;d;e;f;g;h")):
        rows = table("author rating date text", ["Ann\r\nRoe", "5", "2024-01-02", text], delimiter=sign)
        (record,) = read(f"\r\n{rows}".replace("\r\n", end), source="fb").records
        assert (record.review["author"], record.review["text"]) == ("Ann Roe", text)


QUOTE = ' line {}: a quote opens here and takes {} into one cell; close it, or write "" for a quote'
DAMAGED = ": not UTF-8, and its letters look damaged (“{}”); save it as “CSV UTF-8”"
SPOILT = ' line 2: a spreadsheet has spoilt the id "1e+9"; export it anew'
REFUSED = {
    b"\n": ": it is empty",
    b"Dear Ann,\nhello": ': no export that is known, and no table; it begins with "Dear Ann"',
    b"id,author,rating,date\n1e+9,A,5,1.1.24": SPOILT,
    b'author,rating,"date\nAnn,5,2024-01-02\n': QUOTE.format(1, "1 more line"),
    b'author,rating,date\nAnn,5,"2024-01-02\nBo\nCy\n': QUOTE.format(2, "2 more lines"),
    b"a\x81": DAMAGED.format("a\ufffd"),
    b"abcdefghijklm\x81nopqrstuvwxyz": DAMAGED.format("defghijklm\ufffdnopqrstuv"),
}


@pytest.mark.parametrize("content", REFUSED)
def test_what_is_no_table_or_would_put_something_false_is_refused_as_a_whole(content: bytes) -> None:
    with pytest.raises(BadData) as refused:
        read(content)
    assert refused.value.lines() == [f"a.csv{REFUSED[content]}"]


def test_one_letter_in_twenty_may_be_improbable_and_a_text_may_have_fifty_line_ends() -> None:
    text = 19 * "é " + "\x81" + 50 * "\n" + "end"
    found = read(f'author,rating,date,text\nAnn,5,2024-01-02,"{text}"\n'.encode("latin-1"), source="fb")
    assert found.records[0].review["text"] == text.replace("\x81", "\ufffd")
    assert found.warnings == ["a.csv: not UTF-8; read as cp1252. If letters are wrong, save it as CSV UTF-8"]


MAPS = [
    ["--map", "author=customer, rating=STARS,  date=Posted_On"],
    ["--map", "author=customer,", "rating=STARS,", "date=posted=on"],  # blanks that the shell has split at
    ["--map=author=customer,rating=STARS", "--map= date = posted, on ="],
]


@pytest.mark.parametrize("flags", MAPS)
def test_a_map_may_have_blanks_and_any_case(shop: Shop, flags: list[str]) -> None:
    path = written(shop.root / "a.csv", "Customer,Stars,Posted On\nAnn,5,2024-01-02\n")
    shop.take(path, *flags, "--name", "B", "--source", "fb")
    assert shop.only()["author"] == "Ann"


def test_what_was_said_of_a_header_is_remembered_for_it_alone(shop: Shop) -> None:
    flags = "--map author=Who,rating=Mark,date=On --source fb --scale 10 --date-order mdy"
    own = shop.csv(["Eve", "5", "2024-01-05", ""])
    shop.take(own, "--name", "B", "--source", "yelp")
    first = written(shop.root / "1.csv", table("Who Mark On", ["Ann", "9", "05/03/2024"]))
    shop.take(first, *flags.split())
    shop.output()
    before = shop.files()
    assert shop.run(first) == 0
    assert shop.files() == before
    out = shop.output().out
    settings = "date order mdy, map author=Who,date=On,rating=Mark, scale 10, source fb"
    assert out.startswith(f"as said earlier: zone America/Los_Angeles; {first}: {settings}\n")
    later = written(shop.root / "2.csv", table("WHO mark on", ["Bo", "8", "06/04/2024"]))
    assert shop.run(later) == 0
    assert {each["source"] for each in shop.reviews.values()} == {"fb", "yelp"}
    assert [each["date"] for each in shop.reviews.values() if each["author"] == "Bo"] == ["2024-06-04"]
    assert shop.run(own) == EXIT_BAD_DATA  # the template's header says nothing of the source
    dates = [f"{day}/04/2024" for day in range(20, 26)]
    rows = (["Cy", "8", date] for date in dates)
    assert shop.run(written(later, table("Who Mark On", *rows))) == EXIT_BAD_DATA
    listed = "\n  ".join(["are not mdy, as those of earlier files with this header:", *dates[:5]])
    assert f"{listed}\nMend the file" in shop.output().err
    assert shop.run(first, "--source", "other") == 0  # a flag wins, and replaces what was remembered
    assert shop.state["headers"]["who,mark,on"]["source"] == "other"
    assert shop.run(shop.csv(["Eve", "5", "2024-01-05", ""]), "--source", "yelp", "--forget-settings") == 0
    assert shop.run(first) == EXIT_BAD_DATA
    assert shop.run(own, "--source", "yelp") == 0


def test_all_that_is_missing_is_asked_once_and_settled(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.path.realpath
    zone = {"/etc/localtime": "/usr/share/zoneinfo/Europe/Oslo"}
    monkeypatch.setattr(os.path, "realpath", lambda path, **how: zone.get(path) or real(path, **how))
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setenv("SUDO_USER", "ann")
    rows = table("Customer Stars When What Mail", ["Ann", "5", "2024-01-02 10:00", "Good", "a@b"])
    other = written(shop.root / "b.csv", table("author rating date", ["Bo", "4", "2024-01-02 10:00"]))
    path = written(shop.root / "a.csv", rows)
    monkeypatch.setattr(sys, "argv", ["import", str(path), str(other), "--data", str(shop.data)])
    assert command.main() == EXIT_BAD_DATA
    told = shop.output().err
    asked = "a.csv: it is not known which|what the business is called|a.csv: nothing says|b.csv: nothing says"
    assert all(each in told for each in asked.split("|"))
    assert "This machine is in Europe/Oslo" in told
    assert "--zone Europe/Oslo" in told.splitlines()[-1] and "--name 'YOUR BUSINESS'" in told.splitlines()[-1]
    copy, first, second = told.splitlines()[-3:]
    assert copy == "Copy this, and put your own words where it says YOUR:"
    assert "--map author=Customer,rating=Stars,date=When,text=What" in first and str(other) not in first
    assert "--map" not in second and first.startswith(f"sudo {sys.executable} -m ")
    words = {"YOUR BUSINESS": "B", "YOUR-SOURCE": "fb"}
    arguments = [words.get(word, word) for word in shlex.split(first)[4:]]
    assert command.main(arguments) == 0
    assert shop.only()["date"] == "2024-01-02T10:00:00+01:00"


MACHINES = {"UTC": "UTC", ":Etc/GMT-1": "Etc/GMT-1", "Mars/Base": "no zone that has a name"}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_in_no_place_is_no_hint(shop: Shop, monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setenv("TZ", machine)
    rows = shop.csv(["Ann", "5", "2024-01-02 10:00", ""])
    assert shop.run(rows, "--name", "B", "--source", "fb") == EXIT_BAD_DATA
    told = shop.output().err
    assert f"This machine is in {MACHINES[machine]}.\n" in told and told.endswith("--zone YOUR/ZONE\n")
    assert told.splitlines()[-1].startswith(f"{sys.executable} -m ")


FAILURES = [(1, 0, False), (1, 2, True), (2, 2, True), (3, 2, False), (3, 27, True), (4, 27, False)]


@pytest.mark.parametrize(("faulty", "valid", "is_imported"), FAILURES)
def test_more_than_a_tenth_of_faulty_rows_stop_an_import_if_they_are_three_or_all(
    shop: Shop, faulty: int, valid: int, is_imported: bool
) -> None:
    rows = [["Bo", "no", "2024-01-02", ""]] * faulty
    rows += [["Ann", "5", f"2024-01-{n + 1:02}", ""] for n in range(valid)]
    status = shop.run(shop.csv(*rows), "--name", "B", "--source", "fb", "--zone", ZONE)
    assert (status == 0) is is_imported


def test_doubled_rows_are_counted(shop: Shop) -> None:
    row = ["Ann", "5", "2024-01-02", "Good"]
    other = shop.file("b.csv", table("author rating date text", row, row))
    path = shop.csv(row, row, ["Ann", "5", "2024-01-02", "Bad"], row)
    shop.take(path, other, "--name", "B", "--source", "fb")
    assert "the same as another row of its file: 3\n" in shop.output().out
    assert len(shop.reviews) == 2


def test_a_map_is_for_the_files_that_it_fits(shop: Shop) -> None:
    header, row, _ = TOOLS["Loox"]
    paths = [
        written(shop.root / "a.csv", "Customer,Stars,Posted\nAnn,5,2024-01-02\n"),
        written(shop.root / "b.csv", f"{header}\n{row}\n"),
        written(shop.root / "c.csv", "author,rating,date\nBo,5,2024-01-02\n"),
    ]
    shop.take(*paths, "--map", "author=Customer,rating=Stars,date=Posted", "--name", "B", "--source", "fb")
    assert len(shop.reviews) == 3
    new = shop.file("d.csv", "Who,Mark,On\nCy,5,2024-01-02\n")
    shop.take(*paths, new, "--map", "author=Who,rating=Mark,date=On", "--source", "fb")
    assert len(shop.reviews) == 4


def test_a_reply_keeps_its_lines_and_has_a_date_only_from_a_column_of_its_own() -> None:
    header = "author,rating,date,source,reply"
    (plain,) = read(f'{header}\nAnn,5,2024-01-02,fb,"Thanks\nall"\n').records
    assert plain.review["owner_reply"] == {"text": "Thanks\nall"}
    row = "Ann,5,2024-01-02 09:00,fb,Thanks,2024-01-03 10:00,Thanks"
    (dated,) = read(f"{header},reply_date,text\n{row}\n").records
    assert (dated.replied, dated.naive) == ("2024-01-03T10:00:00Z", ["date", "owner_reply"])
    assert dated.review["text"] is None  # some tools write the reply there, too


UNKNOWN = {
    "Customer,When,Else": ["author=Customer,rating=YOUR-COLUMN,date=When"],
    "Who,Review Score,When": ["author=Who,rating=Review Score,date=When"],  # and not again as the text
    "My Date,Date,Who,Mark,Platform": ["author=Who,rating=Mark,date=Date,source=Platform"],
    # Loox but for the status, and Podium but for the text.
    "Nickname,Rating,Date,Review": ["author=Nickname,rating=Rating,date=Date,text=Review"],
    "Customer Name,Stars,Date Posted": ["author=Customer Name,rating=Stars,date=Date Posted"],
    '"Customer, and who",Stars,When': ["author=Customer, and who", "rating=Stars", "date=When"],
}


@pytest.mark.parametrize("header", UNKNOWN)
def test_the_likely_map_of_an_unknown_header_names_each_column_once(header: str) -> None:
    with pytest.raises(NeedsDecision, match='there is none for "author", "rating", "date"') as asked:
        read(f"{header}\n1,2,3\n")
    assert asked.value.questions[0].flags == [("--map", each) for each in UNKNOWN[header]]
    assert len(asked.value.questions) == (1 if "Platform" in header else 2)


WHICH = "it is not known which column is which; there is"
OPEN = {  # what is asked of a table
    "author,rating,date\nAnn,8,2024-01-02": ['the scale of the rating "8" is not known.'],
    "author,rating,date\n" + "".join(f"Ann,5,{day}/13/24\nAnn,5,13/{day}/24\n" for day in (1, 2, 3)): [
        "is the day or the month first in these dates?",
        *("  1/13/24", "  13/1/24", "  2/13/24", "  13/2/24", "  3/13/24"),
    ],
    "Who,Who,Mark,On": [f'{WHICH} not just one "Who". They are "Who", "Who", "Mark", "On".'],
    "Who,Mark,When": [f'{WHICH} none for "date". They are "Who", "Mark", "When".'],
}


@pytest.mark.parametrize("text", OPEN)
def test_what_is_open_is_asked_with_what_was_seen(text: str) -> None:
    known = {"author": "Who", "rating": "Mark", "date": "On"}
    columns = {field: name for field, name in known.items() if name in text}
    with pytest.raises(NeedsDecision) as asked:
        read(text, source="fb", map=columns)
    ((seen, *more, advice), *_) = asked.value.questions[0]
    assert [seen.removeprefix("a.csv: "), *more] == OPEN[text]
    assert not columns or advice.endswith(f"Fields are {', '.join(FIELDS)}.")
    assert len(asked.value.questions) == 1


def test_a_header_of_two_tools_is_that_of_the_one_with_more_columns() -> None:
    (record,) = read(
        "reviewer name,rating,review date,review,body,curated\nA,5,2024-01-02,no,Good,ok"
    ).records
    assert (record.review["source"], record.review["text"]) == ("judge.me", "Good")


def test_the_source_of_a_template_is_remembered_only_with_a_map_an_order_if_dates_show_it() -> None:
    columns = {each: each for each in ("author", "rating", "date")}
    for said, source in (({}, ""), ({"map": columns}, "fb")):
        found = read("author,rating,date\nAnn,5,2024-01-02\n", source="fb", **said)
        assert found.csv_settings == {"author,rating,date": CsvSettings(source, **said)}
        assert found.effective_flags == {"source", *said}
    assert not read("author,rating,date,source\nAnn,5,2024-01-02,fb\n", source="x").effective_flags
    shown = read("author,rating,date\nAnn,5,25/3/24\nBo,5,6/4/24\n", source="fb").csv_settings
    assert shown == {"author,rating,date": CsvSettings(date_order="dmy")}
