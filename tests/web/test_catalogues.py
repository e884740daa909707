"""Every shipped catalogue is whole, and writes as its language does.

A new `languages/TAG.po` is tested without a new test. CLDR, the repository of how
languages write numbers and days, is Babel's.

Sections: the template - messages - the language, as CLDR has it - the reader.
"""

import re
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from babel import Locale
from lab.catalogues import (
    COMMENT_TAG,
    DIRECTORY,
    TAGS,
    TEMPLATE,
    WEB,
    catalog_of,
    extracted,
    renewed,
    template,
    texts_of,
)
from lab.services import ROOT

from reviewslib.web.catalogue import read_catalogue
from reviewslib.web.language import MONTH_NAMES, Language, read_languages

PLACEHOLDER = re.compile(r"%\((\w+)\)s")
each_catalogue = pytest.mark.parametrize("tag", TAGS)


@pytest.fixture(scope="module")
def messages() -> set[str]:
    """The messages of the program, of plurals the singular."""
    return {english[0] for english, _ in texts_of(extracted())}


def language_of(tag: str) -> Language:
    return read_languages(DIRECTORY).of(tag)


# ---- The template ----


def test_the_template_has_the_messages_of_the_program(
    assert_reviewed: Callable[[Path, str], None],
) -> None:
    assert_reviewed(TEMPLATE, template())


def test_every_note_reaches_the_translators() -> None:
    """Extraction takes the notes that end right above a message."""
    told = " ".join(note for entry in extracted() for note in entry.auto_comments)

    written = list[str]()
    for file in [*WEB.glob("*.py"), *WEB.glob("templates/*.*")]:
        written += re.findall(f"{COMMENT_TAG} ([^\n#]*)", file.read_text("utf-8"))

    assert written
    assert [note for note in written if note.strip() not in told] == []


@each_catalogue
def test_a_catalogue_has_the_order_and_the_notes_of_the_template(
    assert_reviewed: Callable[[Path, str], None], tag: str
) -> None:
    assert_reviewed(DIRECTORY / f"{tag}.po", renewed(tag))


# ---- Messages ----


@each_catalogue
def test_a_catalogue_translates_every_message_and_no_other(
    messages: set[str], tag: str
) -> None:
    text = (DIRECTORY / f"{tag}.po").read_text(encoding="utf-8")

    translated = read_catalogue(text).translations.keys()

    assert messages - translated == set(), "not translated"
    assert translated - messages == set(), "not said any more"


@each_catalogue
def test_a_translation_keeps_the_placeholders_of_its_message(tag: str) -> None:
    wrong = []
    for english, translated in texts_of(catalog_of(tag)):
        # A singular may have the number as a word.
        kept = set(PLACEHOLDER.findall(english[-1]))
        optional = {"n"} if len(english) > 1 else set()
        for form in translated:
            found = set(PLACEHOLDER.findall(form))
            if not kept - optional <= found <= kept:
                wrong.append((english[0], form))

    assert wrong == []


@each_catalogue
def test_a_plural_keeps_its_number_where_it_stands_for_many(tag: str) -> None:
    wrong = []
    language = language_of(tag)
    for english, translated in texts_of(catalog_of(tag)):
        if len(english) == 1 or "%(n)s" not in english[1]:
            continue
        for count in (0, 2, 5, 11, 21, 100):
            form = translated[language.catalogue.form_of(count)]
            # Arabic has a form for exactly two, and one for none.
            is_named = count in (0, 2) and _is_for_one_number(language, count)
            if "%(n)s" not in form and not is_named:
                wrong.append((count, form))

    assert wrong == []


def _is_for_one_number(language: Language, count: int) -> bool:
    """Whether a form is that of no other number below 200."""
    form_of = language.catalogue.form_of
    return [form_of(n) for n in range(200)].count(form_of(count)) == 1


@each_catalogue
def test_a_translation_is_plain_text(tag: str) -> None:
    texts = list[str]()
    for _, forms in texts_of(catalog_of(tag)):
        texts += forms

    assert [text for text in texts if "<" in text or "&" in text] == [], "markup"
    stray = [
        text for text in texts if "%" in PLACEHOLDER.sub("", text).replace("%%", "")
    ]
    assert stray == [], "a percent sign is written %%"
    untidy = [text for text in texts if text != text.strip()]
    assert untidy == [], "spaces at an end"


@each_catalogue
def test_a_translation_ends_as_its_message_does(tag: str) -> None:
    """A full stop makes a sentence; labels have none."""
    stops = (".", "。", "।", "۔")
    wrong = []

    for english, translated in texts_of(catalog_of(tag)):
        is_sentence = english[-1].endswith(".")
        wrong += [form for form in translated if form.endswith(stops) != is_sentence]

    assert wrong == []


@each_catalogue
def test_every_plural_has_as_many_forms_as_the_header_says(tag: str) -> None:
    catalog = catalog_of(tag)

    numbers = {len(forms) for english, forms in texts_of(catalog) if len(english) > 1}

    assert numbers == {catalog.num_plurals}


@each_catalogue
def test_the_document_names_the_language(tag: str) -> None:
    text = (ROOT / "docs" / "translating.md").read_text(encoding="utf-8")

    assert str(Locale.parse(tag, sep="-").english_name) in text


# A message, one that says the opposite, and one that has words of the first. Other
# opposites are too short, or have no such third.
OPPOSITES = [
    ("Praise", "Criticism", "praise"),
    ("Answered", "Not answered", "answered"),
    ("Stars, at least", "Stars, at most", "at least %(value)s stars"),
    ("Last", "First", "Page %(page)s, the last one"),
]
# Where a language has other words in the third.
OTHER_WORDS = {("de", "Stars, at least")}


def likeness(one: str, other: str) -> float:
    """How much two texts have in common, whatever their case."""
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


@each_catalogue
@pytest.mark.parametrize(
    ("message", "opposite", "related"), OPPOSITES, ids=[pair[0] for pair in OPPOSITES]
)
def test_opposites_are_not_exchanged(
    tag: str, message: str, opposite: str, related: str
) -> None:
    translations = language_of(tag).catalogue.translations

    (said,), (opposite_said,), (related_said,) = (
        translations[english] for english in (message, opposite, related)
    )

    is_likelier = likeness(said, related_said) > likeness(opposite_said, related_said)
    assert is_likelier is ((tag, message) not in OTHER_WORDS)


# ---- The language, as CLDR has it ----


@each_catalogue
def test_numbers_have_the_signs_of_the_language(tag: str) -> None:
    signs = Locale.parse(tag, sep="-").number_symbols["latn"]

    language = language_of(tag)

    assert language.thousands_sign == signs["group"]
    assert language.decimal_sign == signs["decimal"]


@each_catalogue
def test_the_direction_is_that_of_the_script(tag: str) -> None:
    assert language_of(tag).direction == Locale.parse(tag, sep="-").text_direction


@each_catalogue
def test_months_are_those_of_a_date(tag: str) -> None:
    months = Locale.parse(tag, sep="-").months["format"]["wide"]
    language = language_of(tag)

    said = [language.say(month) for month in MONTH_NAMES]

    assert said == [months[number] for number in range(1, 13)]


@each_catalogue
def test_days_of_the_week_are_those_of_the_language(tag: str) -> None:
    days = Locale.parse(tag, sep="-").days["stand-alone"]["wide"]
    language = language_of(tag)
    english = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ]

    said = [language.day_span([day]).casefold() for day in english]

    assert said == [days[number].casefold() for number in range(7)]


@each_catalogue
def test_a_plural_rule_tells_apart_what_the_language_does(tag: str) -> None:
    rule = Locale.parse(tag, sep="-").plural_form
    form_of = language_of(tag).catalogue.form_of

    # Each form is one category, and each category one form.
    pairs = {(form_of(n), rule(n)) for n in range(1000)}

    forms = Counter(form for form, _ in pairs)
    categories = Counter(category for _, category in pairs)
    assert forms.keys() == set(range(catalog_of(tag).num_plurals))
    assert {*forms.values(), *categories.values()} == {1}


# ---- The reader ----


@each_catalogue
def test_the_reader_reads_what_gettext_reads(tag: str) -> None:
    text = (DIRECTORY / f"{tag}.po").read_text(encoding="utf-8")

    read = read_catalogue(text).translations

    by_babel = {english[0]: list(forms) for english, forms in texts_of(catalog_of(tag))}
    assert read == by_babel


HEADER = 'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
ENTRIES = [
    pytest.param('msgid "a"\nmsgstr "b"', {"a": ["b"]}, id="a message"),
    pytest.param('msgid "a"\nmsgstr ""', {}, id="empty is missing"),
    pytest.param('#, fuzzy\nmsgid "a"\nmsgstr "b"', {}, id="fuzzy is missing"),
    pytest.param(
        '#, python-format, fuzzy\nmsgid "a"\nmsgstr "b"', {}, id="fuzzy among others"
    ),
    pytest.param('#~ msgid "a"\n#~ msgstr "b"', {}, id="obsolete"),
    pytest.param('msgid ""\n"a "\n"b"\nmsgstr "c"', {"a b": ["c"]}, id="continued"),
    pytest.param('msgid "a"\nmsgstr "\\"b\\" \\\\"', {"a": ['"b" \\']}, id="escapes"),
    pytest.param(
        'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[1] "bs"',
        {"a": ["b", "bs"]},
        id="a plural",
    ),
    pytest.param(
        'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[1] ""',
        {},
        id="a form is missing",
    ),
]


@pytest.mark.parametrize(("entry", "translations"), ENTRIES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_an_entry_is_read(
    entry: str, translations: dict[str, list[str]], line_end: str
) -> None:
    text = f"{HEADER}\n{entry}\n".replace("\n", line_end)

    assert read_catalogue(text).translations == translations


def test_a_catalogue_without_plural_forms_is_refused() -> None:
    with pytest.raises(ValueError, match="Plural-Forms"):
        read_catalogue('msgid ""\nmsgstr ""\n')
