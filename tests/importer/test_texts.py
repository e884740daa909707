"""Texts are kept as customers wrote them: no markup, no damage unnoticed, no machine.

Sections: Google's translation - damage - HTML - numbers and names.
"""

import pytest

from reviewslib.importer.names import without_address
from reviewslib.importer.texts import (
    is_like_html,
    looks_damaged,
    original,
    unknown_marker,
    whole_number,
    without_html,
)

# ---- Google's translation ----

MARKERS = [
    pytest.param("Translated by Google", "Original", id="English"),
    pytest.param("Übersetzt von Google", "Original", id="German"),
    pytest.param("Traduit par Google", "Avis d'origine", id="French"),
    pytest.param("Traduit par Google", "Avis d’origine", id="French apostrophe"),
    pytest.param("Traducido por Google", "Original", id="Spanish"),
    pytest.param("Traduzido pelo Google", "Original", id="Portuguese"),
    pytest.param("Vertaald door Google", "Origineel", id="Dutch"),
    pytest.param("Przetłumaczone przez Google", "Oryginał", id="Polish"),
]


@pytest.mark.parametrize(("translated", "heading"), MARKERS)
def test_a_translation_before_the_original_is_cut(
    translated: str, heading: str
) -> None:
    text = f"({translated}) The machine's.\n\n({heading})\nThe customer's."

    assert original(text) == "The customer's."


@pytest.mark.parametrize(("translated", "heading"), MARKERS)
def test_a_translation_after_the_original_is_cut(translated: str, heading: str) -> None:
    text = f"The customer's.\n\n({translated})\nThe machine's."

    assert original(text) == "The customer's."


def test_the_wide_brackets_of_japanese_are_markers() -> None:
    text = "（Google による翻訳）おいしい\n\n（原文）\nTasty"

    assert original(text) == "Tasty"


def test_markers_are_found_in_lines_that_a_tool_has_joined() -> None:
    before = original("(Translated by Google) Nice  (Original) Schön")
    after = original("Schön  (Translated by Google) Nice")

    assert before == "Schön"
    assert after == "Schön"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "My phone says (Übersetzt von Google), and it is true.", id="inside"
        ),
        pytest.param("I read (Translated by Google) everywhere", id="between words"),
        pytest.param("(Original) is the name of the cake", id="the word alone"),
        pytest.param("(Found on Google) Good bread.", id="at the start"),
        pytest.param("(Found on Google) Good.\n\nBread!", id="before other lines"),
    ],
)
def test_a_marker_inside_a_sentence_is_the_customers(text: str) -> None:
    assert original(text) == text
    assert unknown_marker(text) == ""


UNKNOWN = [
    pytest.param("(Översatt av Google) Gott.\n\n(Original)\nGood.", id="first"),
    pytest.param("Gott.\n\n(Oversat af Google)\nGood.", id="alone in a line"),
    pytest.param("(Traduït per Google)\nBo.\n(Original)\nGood.", id="two lines"),
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_marker_of_an_unknown_language_is_named_and_not_cut(text: str) -> None:
    assert original(text) == text
    assert "Google" in unknown_marker(text)


# ---- Damage ----

DAMAGED = [
    pytest.param("BjÃ¸rn", id="one letter"),
    pytest.param("Godt brÃ¸d 😊", id="beside a sound emoji"),
    pytest.param("Que Ã³timo ð\x9f\x98¢", id="C1 controls of a download"),
    pytest.param("goÃ»t Привет", id="beside Cyrillic"),
    pytest.param("Itâ€™s", id="a typographic apostrophe"),
]


@pytest.mark.parametrize("text", DAMAGED)
def test_damage_is_seen_beside_sound_letters(text: str) -> None:
    assert looks_damaged(text)


SOUND = [
    pytest.param("Bjørn", id="Danish"),
    pytest.param("«CAFÉ»", id="a French quotation in capitals"),
    pytest.param("“MAÇÃ”", id="a Portuguese quotation in capitals"),
    pytest.param("20 °C für 5 £, ½ Preis", id="signs"),
    pytest.param("😊 Привет 原文", id="other scripts"),
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_letters_are_not_called_damaged(text: str) -> None:
    assert not looks_damaged(text)


# ---- HTML ----


def test_html_becomes_the_text_that_a_browser_shows() -> None:
    text = without_html("It&#39;s <b class='x'>good</b><br />Bread &amp; butter</p>Yes")

    assert text == "It's good\nBread & butter\nYes"


@pytest.mark.parametrize("text", ["I <3 this & that", "1 < 2 > 0"])
def test_signs_that_are_no_tags_stay(text: str) -> None:
    assert without_html(text) == text


def test_a_table_is_like_html_above_a_tenth_of_its_texts() -> None:
    plain = ["fine", ""] * 8

    assert is_like_html([*plain, "a<br>b"])
    assert not is_like_html([*plain, "fine", "a &amp; b"])


# ---- Numbers and names ----


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("37.0", "37", id="one zero"),
        pytest.param("37.00", "37", id="two zeros"),
        pytest.param("3.5", "3.5", id="a decimal"),
        pytest.param("v1.0", "v1.0", id="no number"),
    ],
)
def test_an_integer_that_became_a_decimal_is_an_integer_again(
    text: str, number: str
) -> None:
    assert whole_number(text) == number


def test_a_name_of_many_brackets_takes_no_longer_than_its_length() -> None:
    name = "(" * 55_000 + "@"

    assert without_address(name) == name
