"""Words of a command line become values, and what cannot be right is refused."""

import pytest

from reviewslib.importer.options import Options, parse, remembered


def parsed(*words: str) -> Options:
    return parse(["a.csv", "--data", "d", *words])


def test_maps_are_joined() -> None:
    options = parsed("--map", "author=Who,rating=Stars", "--map", "text=a, b")

    assert options.table.map == {"author": "Who", "rating": "Stars", "text": "a, b"}


@pytest.mark.parametrize(
    ("words", "html"),
    [((), ""), (("--html",), "yes"), (("--no-html",), "no")],
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
