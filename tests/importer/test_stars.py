"""Stars are read on each scale as tools write them, and a scale is never guessed."""

import pytest

from reviewslib.importer.stars import UnknownScale, highest_value, read_stars
from reviewslib.importer.texts import BadRecord

STARS = {  # by scale, 0 where nobody said it
    (0, 5): "5|5 star rating|5 Sterne",
    (0, 4): "4 out of 5|4 von 5 Sternen|★★★★☆|FOUR|4/5",
    (0, 4.6): "4,6|4.6 out of 5 stars",
    (0, 3): "3 étoiles|⭐️⭐️⭐️|3 stars",
    (0, 2): "2 estrellas",
    (0, None): "0|",
    (10, 4.5): "9",
    (100, 4): "80%",
    (100, 1): "1",
}


@pytest.mark.parametrize(("scale", "stars"), STARS)
def test_stars_are_read_on_each_scale_as_tools_write_them(
    scale: int, stars: float | None
) -> None:
    for text in STARS[scale, stars].split("|"):
        assert repr(read_stars(text, scale)) == repr(stars)  # 4 and not 4.0


@pytest.mark.parametrize("text", ["6", "4 of 10", "4 de 10", "4%"])
def test_the_scale_of_a_rating_is_asked_for(text: str) -> None:
    with pytest.raises(UnknownScale, match=f"^{text}$"):
        read_stars(text, 0)


NO_STARS = [
    "positive",
    "doesn't recommend",
    "recommended",
    "negative",
    "great",
    "5 out of five",
]
REFUSED = [
    *((text, 0, "is not a number of stars") for text in NO_STARS),
    ("0.5", 0, "is less than one star"),
    *((text, 10, "is not a rating of 1 to 10") for text in ("11", "4/5")),
]


@pytest.mark.parametrize(("text", "scale", "reason"), REFUSED)
def test_text_that_is_not_a_rating_is_refused(
    text: str, scale: int, reason: str
) -> None:
    with pytest.raises(BadRecord, match=f'^"{text}" {reason}$'):
        read_stars(text, scale)


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
