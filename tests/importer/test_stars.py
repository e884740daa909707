"""Stars are read on each scale as tools write them, and a scale is never guessed."""

import pytest

from reviewslib.importer.stars import UnknownScale, highest_value, read_stars
from reviewslib.importer.texts import BadRecord

WITHOUT_SCALE = [
    pytest.param("5", 5, id="a number"),
    pytest.param("5 star rating", 5, id="an English label"),
    pytest.param("5 Sterne", 5, id="German stars"),
    pytest.param("4 out of 5", 4, id="an English bound"),
    pytest.param("4 von 5 Sternen", 4, id="a German bound"),
    pytest.param("4/5", 4, id="a fraction"),
    pytest.param("★★★★☆", 4, id="drawn, one hollow"),
    pytest.param("⭐️⭐️⭐️", 3, id="emoji"),
    pytest.param("FOUR", 4, id="Google's word"),
    pytest.param("4,6", 4.6, id="a comma"),
    pytest.param("4.6 out of 5 stars", 4.6, id="a decimal with a bound"),
    pytest.param("3 étoiles", 3, id="French"),
    pytest.param("3 stars", 3, id="English"),
    pytest.param("2 estrellas", 2, id="Spanish"),
    pytest.param("4,5 gwiazdki", 4.5, id="Polish stars"),
    pytest.param("4 z 5 gwiazdek", 4, id="a Polish bound"),
    pytest.param("5 yıldız", 5, id="Turkish stars"),
    pytest.param("Puan: 3,5", 3.5, id="a Turkish label"),
    pytest.param("0", None, id="no stars"),
    pytest.param("", None, id="nothing"),
]


@pytest.mark.parametrize(("text", "stars"), WITHOUT_SCALE)
def test_stars_of_five_are_read_as_tools_write_them(
    text: str, stars: float | None
) -> None:
    assert read_stars(text, 0) == stars


ON_SCALES = [
    pytest.param("9", 10, 4.5, id="nine of ten"),
    pytest.param("80%", 100, 4, id="a percentage"),
    pytest.param("1", 100, 1, id="less than one star"),
]


@pytest.mark.parametrize(("text", "scale", "stars"), ON_SCALES)
def test_stars_are_read_on_a_scale_that_is_told(
    text: str, scale: int, stars: float
) -> None:
    assert read_stars(text, scale) == stars


def test_whole_stars_are_integers_in_json() -> None:
    assert repr(read_stars("80%", 100)) == "4"


@pytest.mark.parametrize("text", ["6", "4 of 10", "4 de 10", "4%"])
def test_the_scale_of_a_rating_is_asked_for(text: str) -> None:
    with pytest.raises(UnknownScale, match=f"^{text}$"):
        read_stars(text, 0)


NO_STARS = ["positive", "doesn't recommend", "recommended", "negative", "great"]


@pytest.mark.parametrize("text", [*NO_STARS, "5 out of five"])
def test_words_that_are_no_stars_are_refused(text: str) -> None:
    with pytest.raises(BadRecord, match=f'^"{text}" is not a number of stars$'):
        read_stars(text, 0)


def test_a_rating_below_one_star_is_refused() -> None:
    with pytest.raises(BadRecord, match=r'^"0\.5" is less than one star$'):
        read_stars("0.5", 0)


@pytest.mark.parametrize("text", ["11", "4/5"])
def test_a_rating_beyond_its_scale_is_refused(text: str) -> None:
    with pytest.raises(BadRecord, match=f'^"{text}" is not a rating of 1 to 10$'):
        read_stars(text, 10)


IN_WORDS = [
    pytest.param("Rated 5 out of 5", 5, id="WooCommerce's label"),
    pytest.param("Rating: 4 stars", 4, id="label with a colon"),
    pytest.param("Bewertet mit 4 von 5", 4, id="German label"),
    pytest.param("4.0/5.0", 4, id="decimal bound"),
    pytest.param("4,5/5,0", 4.5, id="decimal bound with commas"),
    pytest.param("3 of 5 bubbles", 3, id="bubbles"),
    pytest.param("5⭐", 5, id="number and star"),
    pytest.param("4 ★", 4, id="number and drawn star"),
    pytest.param("4 stars out of 5", 4, id="unit before the bound"),
]


@pytest.mark.parametrize(("text", "stars"), IN_WORDS)
def test_stars_are_read_among_words(text: str, stars: float) -> None:
    assert read_stars(text, 0) == stars


OTHER_SCALES = [
    pytest.param("45", 50, 4.5, id="bubbles times ten"),
    pytest.param("50", 50, 5, id="the best of fifty"),
    pytest.param("3", 4, 4, id="three of four"),
    pytest.param("2", 2, 5, id="thumbs"),
    pytest.param("14/20", 20, 3.5, id="a French school mark"),
]


@pytest.mark.parametrize(("text", "scale", "stars"), OTHER_SCALES)
def test_a_scale_that_the_owner_gives_is_turned_into_half_stars(
    text: str, scale: int, stars: float
) -> None:
    assert read_stars(text, scale) == stars


def test_the_highest_rating_of_a_table_is_known_on_an_unknown_scale() -> None:
    assert highest_value(["30", "", "45/50", "none", "5"]) == 45
