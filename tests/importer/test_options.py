"""Words of a command line become values, and what cannot be right is refused."""

import json

import pytest
from lab.export_lab import HEADER
from lab.small_files import CONTRACT, DOCUMENT

from reviewslib.dataset.reviews import load
from reviewslib.importer.options import Options, parse, remembered
from reviewslib.links import ServiceUrls


def parsed(*words: str) -> Options:
    return parse(["a.csv", "--data", "d", *words])


def test_repeated_flags_of_map_are_joined() -> None:
    options = parsed("--map", "author=Who,rating=Stars", "--map", "text=a, b")

    assert options.table.map == {"author": "Who", "rating": "Stars", "text": "a, b"}


@pytest.mark.parametrize(
    ("words", "html"),
    [
        pytest.param((), "", id="open"),
        pytest.param(("--html",), "yes", id="HTML"),
        pytest.param(("--no-html",), "no", id="no HTML"),
    ],
)
def test_whether_texts_are_html_is_said_or_open(
    words: tuple[str, ...], html: str
) -> None:
    assert parsed(*words).table.html == html


def test_names_that_answer_may_be_repeated() -> None:
    options = parsed("--replies-by", "The Shop", "--replies-by", "Eva")

    assert options.table.replies_by == ["The Shop", "Eva"]


@pytest.mark.parametrize("scale", ["1", "101", "five", "-5", "5.5", ""])
def test_a_scale_that_no_tool_has_is_refused(
    scale: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed("--scale", scale)

    assert "argument --scale" in capsys.readouterr().err


def test_only_what_was_said_is_remembered() -> None:
    options = parsed("--zone", "Europe/Berlin", "--no-avatars", "--location", "5")

    assert remembered(options) == {"zone": "Europe/Berlin", "avatars": False}


def template(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        parse(["--template", *words])
    assert not ended.value.code
    return capsys.readouterr().out


def test_the_template_of_a_table_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = template(capsys)

    assert printed == f"{HEADER.replace(' ', ',')}\n"
    assert template(capsys, "table") == printed


def test_the_template_of_a_business_has_an_example_of_every_field(
    capsys: pytest.CaptureFixture[str],
) -> None:
    business = json.loads(template(capsys, "business"))["business"]

    schemas = DOCUMENT["components"]["schemas"]
    assert business.keys() == schemas["Business"]["properties"].keys()
    assert business["address"].keys() == schemas["Address"]["properties"].keys()


def test_the_template_of_a_business_is_served_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    template_file = template(capsys, "business")
    document = json.loads(template_file) | {"reviews": []}

    dataset = load(CONTRACT, json.dumps(document).encode(), b"{}", ServiceUrls())

    assert dataset.business == document["business"]
    assert dataset.notes == dataset.warnings == ()
