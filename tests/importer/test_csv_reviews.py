"""The header of a CSV is the template's, a known tool's, or explained once; titles are kept."""

import shlex

import pytest
from export_lab import ZONE, Shop, table, written

from reviewslib.importer import command
from reviewslib.importer.command import EXIT_BAD_DATA

# The header of each tool and a row; what is served of it.
TOOLS = {
    "Trustpilot": (
        "Review Id,Review Username,Review Stars,Review Created (UTC),Review Title,Review Content,"
        "Company Response",
        "t1,Ann,4,2026-01-02 10:00:00,Fast,Came on time.,Thanks",
        (
            "trustpilot-t1",
            "Ann",
            4,
            "2026-01-02T02:00:00-08:00",
            "Fast\n\nCame on time.",
            "trustpilot",
            "Thanks",
        ),
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


def test_a_recommendation_of_facebook_is_refused_with_the_reason(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "created_time,reviewer.name,recommendation_type,review_text\n2019-07-07,Ann,positive,Good\n"
    assert shop.run(written(shop.root / "a.csv", rows), "--name", "B") == EXIT_BAD_DATA
    assert '"positive" names no number of stars, and stars are never invented' in capsys.readouterr().err


def test_what_a_tool_hides_is_not_served(shop: Shop) -> None:
    header, row, _ = TOOLS["Loox"]
    shop.take(written(shop.root / "a.csv", f"{header}\n{row.replace('Active', 'Hidden')}\n"), "--name", "B")
    assert shop.only()["verified"] is False


HEADERS = [
    "Author,RATING,Date,Source URL,source",
    "author;rating;date;source-url;source",
    "author,rating,date,source_url,source",
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("first", ["", "sep=;\n", '"sep=,"\r\n'])
def test_the_template_is_known_in_any_case_and_below_the_line_of_excel(
    shop: Shop, header: str, first: str
) -> None:
    sign = ";" if "=;" in first or (";" in header and not first) else ","
    text = first + f"{header}\nAnn;5;2024-01-02;https://a.example/1;fb\n".replace(";", sign).replace(
        ",", sign
    )
    shop.take(written(shop.root / "a.csv", first + text[len(first) :]), "--name", "B")
    assert shop.only()["source_url"] == "https://a.example/1"


def test_a_fault_below_the_line_of_excel_has_the_number_of_its_line(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "sep=;\nauthor;rating;date;source\nAnn;5;2024-01-02;fb\nBo;x;2024-01-02;fb\n"
    shop.take(written(shop.root / "a.csv", rows), "--name", "B")
    assert "a.csv line 4: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags",
    [
        ["--map", "author=customer, rating=STARS,  date=Posted_On"],
        [
            "--map",
            "author=customer,",
            "rating=STARS,",
            "date=posted-on",
        ],  # blanks that the shell has split at
        ["--map=author=customer", "--map=rating=STARS", "--map= date = posted on "],
    ],
)
def test_a_map_may_have_blanks_and_any_case(shop: Shop, flags: list[str]) -> None:
    path = written(shop.root / "a.csv", "Customer,Stars,Posted On\nAnn,5,2024-01-02\n")
    shop.take(path, *flags, "--name", "B", "--source", "fb")
    assert shop.only()["author"] == "Ann"


def test_what_was_said_of_a_header_is_remembered_for_it_alone(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [
        "--map",
        "author=Who,rating=Mark,date=On",
        "--source",
        "fb",
        "--scale",
        "10",
        "--date-order",
        "mdy",
    ]
    own = shop.csv(["Eve", "5", "2024-01-05", ""])
    shop.take(own, "--name", "B", "--source", "yelp")
    first = written(shop.root / "1.csv", table("Who Mark On", ["Ann", "9", "05/03/2024"]))
    shop.take(first, *told)
    capsys.readouterr()
    before = shop.files()
    assert shop.run(first) == 0
    assert shop.files() == before
    out = capsys.readouterr().out
    for each in (
        "zone America/Los_Angeles",
        "source fb",
        "map author=Who,date=On,rating=Mark",
        "scale 10",
        "date order mdy",
    ):
        assert each in out
    later = written(shop.root / "2.csv", table("WHO mark on", ["Bo", "8", "06/04/2024"]))
    assert shop.run(later) == 0
    assert {each["source"] for each in shop.reviews.values()} == {"fb", "yelp"}
    assert [each["date"] for each in shop.reviews.values() if each["author"] == "Bo"] == ["2024-06-04"]
    assert shop.run(own) == EXIT_BAD_DATA  # the template's header says nothing of the source
    assert shop.run(written(later, table("Who Mark On", ["Cy", "8", "25/04/2024"]))) == EXIT_BAD_DATA
    assert "are not mdy, as those of earlier files" in capsys.readouterr().err
    assert shop.run(first, "--source", "other") == 0  # a flag wins, and replaces what was remembered
    assert shop.state["headers"]["who,mark,on"]["source"] == "other"
    assert shop.run(shop.csv(["Eve", "5", "2024-01-05", ""]), "--source", "yelp", "--forget-settings") == 0
    assert shop.run(first) == EXIT_BAD_DATA
    assert shop.run(own, "--source", "yelp") == 0


def test_an_order_that_dates_have_shown_is_remembered(shop: Shop) -> None:
    rows = [["Ann", "5", "25/03/2024", ""], ["Bo", "5", "06/04/2024", ""]]
    shop.take(shop.csv(*rows), "--name", "B", "--source", "fb")
    shop.take(shop.csv(rows[1]), "--source", "fb")
    assert len(shop.reviews) == 2


def test_all_that_is_missing_is_asked_at_once_and_the_command_settles_it(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Oslo")
    rows = table("Customer Stars When What Mail", ["Ann", "5", "2024-01-02 10:00", "Good", "a@b"])
    other = written(shop.root / "b.csv", table("author rating date", ["Bo", "4", "2024-01-02 10:00"]))
    path = written(shop.root / "a.csv", rows)
    assert shop.run(path, other) == EXIT_BAD_DATA
    told = capsys.readouterr().err
    for each in (
        "a.csv: it is not known which column",
        "what the business is called",
        "a.csv: nothing says where",
        "b.csv: nothing says",
    ):
        assert each in told
    assert "This machine is in Europe/Oslo" in told
    assert "--zone Europe/Oslo" in told.splitlines()[-1] and "--name 'YOUR BUSINESS'" in told.splitlines()[-1]
    first = told.splitlines()[-2]
    assert "--map author=Customer,rating=Stars,date=When,text=What" in first and str(other) not in first
    words = {"YOUR BUSINESS": "B", "YOUR-SOURCE": "fb"}
    arguments = [words.get(word, word) for word in shlex.split(first)[3:]]
    assert command.main(arguments) == 0
    assert shop.only()["date"] == "2024-01-02T10:00:00+01:00"


def test_words_to_be_replaced_are_not_imported(shop: Shop) -> None:
    path = shop.csv(["Ann", "5", "2024-01-02", ""])
    for flags in (["--source", "YOUR-SOURCE"], ["--name", "YOUR BUSINESS"], ["--zone", "YOUR/ZONE"]):
        with pytest.raises(SystemExit):
            shop.run(path, *flags)


@pytest.mark.parametrize(("faulty", "is_imported"), [(1, True), (2, True), (3, False)])
def test_three_faulty_rows_stop_a_small_file_and_fewer_are_skipped(
    shop: Shop, faulty: int, is_imported: bool
) -> None:
    rows = [["Bo", "no", "2024-01-02", ""]] * faulty + [["Ann", "5", "2024-01-02", ""]] * 2
    status = shop.run(shop.csv(*rows), "--name", "B", "--source", "fb", "--zone", ZONE)
    assert (status == 0) is is_imported


def test_doubled_rows_are_counted(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    row = ["Ann", "5", "2024-01-02", "Good"]
    shop.take(shop.csv(row, row, ["Ann", "5", "2024-01-02", "Bad"], row), "--name", "B", "--source", "fb")
    assert "the same as another row of its file: 2\n" in capsys.readouterr().out
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
