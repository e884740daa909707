"""The language of pages: how it is chosen, and that nothing stays English by accident.

That a catalogue is whole is in `test_catalogues.py`.

Sections: the choice - messages - numbers, days and lists - pages - the badge - reloads.
"""

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from lab.catalogues import DIRECTORY, TAGS, pseudo_language
from lab.data_sets import DATA_SETS, URLS, dataset_of
from lab.page_samples import TEMPLATES
from lab.small_files import CONTRACT, a_file, review
from markupsafe import Markup

import reviewsd
from reviewslib.dataset.provenance import PublishedOn
from reviewslib.dataset.query import BadQuery, Query, query_of_page
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.searching import in_any_order
from reviewslib.process.settings import Settings
from reviewslib.web import embed, error_pages, list_page, pictures, review_page
from reviewslib.web.catalogue import NO_TRANSLATIONS, Catalogue, english_form
from reviewslib.web.home_page import html_page
from reviewslib.web.language import (
    ENGLISH,
    HtmlLanguage,
    Language,
    Languages,
    read_languages,
)
from reviewslib.web.reload import Reloader
from reviewslib.web.site import Site, site_of
from reviewslib.web.templating import templates_in

SHIPPED = read_languages(DIRECTORY)

# ---- The choice ----

HEADER = 'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
SOME = Languages(dict.fromkeys(("de", "de-AT", "pt-BR", "zh"), HEADER))
CHOICES = [
    pytest.param("de", "de", id="its own"),
    pytest.param("DE", "de", id="in any case"),
    pytest.param("de-at", "de-at", id="of the region"),
    pytest.param("de-CH", "de", id="of the language"),
    pytest.param("de-CH-1996", "de", id="of the language, without two subtags"),
    pytest.param("pt", None, id="not that of another region"),
    pytest.param("zh-TW", "zh", id="a region"),
    pytest.param("zh-Hant", None, id="another script"),
    pytest.param("zh-Hant-TW", None, id="a region of another script"),
    pytest.param("den", None, id="another language with the same beginning"),
    pytest.param("en-GB", "en", id="English"),
    pytest.param(None, "en", id="unknown"),
]


@pytest.mark.parametrize(("tag", "catalogue"), CHOICES)
def test_a_tag_has_the_catalogue_of_its_language(
    tag: str | None, catalogue: str | None
) -> None:
    assert SOME.catalogue_name(tag) == catalogue


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        pytest.param("de-CH", "de-CH", id="with a catalogue"),
        pytest.param("en-GB", "en-GB", id="English"),
        pytest.param("sv", "en", id="without"),
        pytest.param(None, "en", id="unknown"),
    ],
)
def test_a_document_says_the_language_of_its_owner_if_it_has_it(
    tag: str | None, said: str
) -> None:
    assert SOME.of(tag).tag == said


def test_a_language_without_a_catalogue_is_named_with_those_there_are() -> None:
    assert SOME.lack("sv") == (
        'pages are English, since there is no catalogue for "sv": de, de-AT, en, pt-BR, zh'
    )
    assert SOME.lack("de-CH") == ""


# ---- Messages ----


def language_saying(**translations: Any) -> Language:
    forms = {english: [text] for english, text in translations.items()}
    return Language("xx", Catalogue(forms, english_form))


def test_a_message_without_a_translation_is_said_in_english() -> None:
    assert language_saying(Yes="Ja").say("No") == "No"


def test_a_percent_sign_is_written_twice() -> None:
    assert ENGLISH.say("%(n)s%% of it", n=5) == "5% of it"


def test_a_translation_cannot_be_markup() -> None:
    catalogue = Catalogue({"Hello %(name)s": ["<b>%(name)s</b>"]}, english_form)
    spoken = HtmlLanguage("xx", catalogue)

    said = spoken.say("Hello %(name)s", name="<i>")

    assert said == "&lt;b&gt;&lt;i&gt;&lt;/b&gt;"


def test_markup_comes_in_as_a_value() -> None:
    spoken = HtmlLanguage("xx", NO_TRANSLATIONS)

    said = spoken.listed([Markup("<b>A</b>"), "<c>"])

    assert said == "<b>A</b>, &lt;c&gt;"


# ---- Numbers, days and lists ----


@pytest.mark.parametrize(
    ("days", "said"),
    [
        pytest.param(["Friday", "Saturday"], "Friday, Saturday", id="two"),
        pytest.param(
            ["Monday", "Tuesday", "Wednesday"], "Monday to Wednesday", id="three"
        ),
        pytest.param(
            ["Sunday", "Monday", "Tuesday"], "Sunday to Tuesday", id="from Sunday"
        ),
        pytest.param(
            ["Saturday", "Sunday", "Monday"], "Saturday to Monday", id="over a weekend"
        ),
        pytest.param(
            ["Monday", "Wednesday", "Friday"],
            "Monday, Wednesday, Friday",
            id="with gaps",
        ),
        pytest.param(
            ["Friday", "Thursday", "Monday"], "Friday, Thursday, Monday", id="back"
        ),
        pytest.param(["Monday"] * 3, "Monday, Monday, Monday", id="repeated"),
        pytest.param(["Holidays", "Monday", "x"], "Holidays, Monday, x", id="no days"),
        pytest.param([], "", id="none"),
    ],
)
def test_days_that_follow_each_other_are_a_span(days: list[str], said: str) -> None:
    assert ENGLISH.day_span(days) == said


@pytest.mark.parametrize(
    ("names", "has_others", "said"),
    [
        ([], False, ""),
        ([], True, ""),
        (["Google"], False, "Google"),
        (["Google"], True, "Google and elsewhere"),
        (["Google", "Yelp"], False, "Google and Yelp"),
        (["A", "B", "C"], False, "A, B and C"),
        (["A", "B", "C"], True, "A, B, C and elsewhere"),
    ],
)
def test_websites_are_a_sentence(names: list[str], has_others: bool, said: str) -> None:
    assert ENGLISH.published_on(PublishedOn(names, has_others)) == said


@pytest.mark.parametrize(
    ("tag", "said"),
    [("en", "Portland OR 97201"), ("de", "97201 Portland OR")],
)
def test_an_address_has_the_order_of_its_language(tag: str, said: str) -> None:
    address = {"locality": "Portland", "region": "OR", "postal_code": "97201"}

    assert SHIPPED.of(tag).place(address) == said


AUTHORS = [
    pytest.param("A Google user", "Bir Google kullanıcısı", id="nameless on Google"),
    pytest.param("Anonymous", "Anonim", id="nameless elsewhere"),
    pytest.param(" ", "Anonim", id="without a letter"),
    pytest.param("Ann Anonymous", "Ann Anonymous", id="a name"),
]


@pytest.mark.parametrize(("author", "said"), AUTHORS)
def test_a_customer_without_a_name_is_called_so_in_the_language_of_the_page(
    author: str, said: str
) -> None:
    turkish = SHIPPED.of("tr")

    assert turkish.author(review("a", author=author)) == said


def test_an_address_has_no_gap_where_a_part_is_unknown() -> None:
    assert ENGLISH.place({"locality": "Portland", "region": None}) == "Portland"


# ---- Pages: nothing stays English by accident ----

PSEUDO = pseudo_language()
# In English in every language: endpoints, commands, and what programs are called.
ENGLISH_ON_PURPOSE = re.compile(
    r"\.cursor/mcp\.json|\.vscode/mcp\.json|Claude Code|Claude, ChatGPT|Codex|Gemini CLI"
    r"|Cursor|VS Code|JSON Feed|Atom|https?://\S*"
    # A service without a label is shown by its id.
    r"|\bcakes\b"
)
SHOWN_ATTRIBUTES = ("alt", "aria-label", "content", "placeholder", "title", "label")
SAID_OF_PAGE = {"description", "og:title", "og:description", "og:site_name"}
NOT_SHOWN = ("script", "style", "code")
BRACKETED = re.compile("⟦[^⟦⟧]*⟧")


class Words(HTMLParser):
    """What a page says: texts and attributes, without what is marked as English."""

    VOID = ("meta", "link", "br", "wbr", "input", "img", "base")

    def __init__(self, page: str):
        super().__init__()
        self.found: list[str] = []
        # Of every open element: whether it and what is inside is not looked at.
        self.hidden: list[bool] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        is_inside = bool(self.hidden) and self.hidden[-1]
        is_hidden = is_inside or tag in NOT_SHOWN or values.get("lang") == "en"
        if tag not in self.VOID:
            self.hidden.append(is_hidden)
        is_unseen = tag == "meta" and not SAID_OF_PAGE & {*values.values()}
        if is_hidden or is_unseen:
            return
        self.found += [
            values[name] or "" for name in SHOWN_ATTRIBUTES if name in values
        ]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        self.hidden.pop()

    def handle_data(self, data: str) -> None:
        if not self.hidden or not self.hidden[-1]:
            self.found.append(data)


# Of data files: what is text, not a name that programs give.
TEXT_KEYS = {
    "name",
    "description",
    "category",
    "telephone",
    "street",
    "locality",
    "region",
    "country",
    "postal_code",
    "price_range",
    "review_policy",
    "service_areas",
    "author",
    "text",
    "mentioned_technicians",
    "label",
    "summary",
    "pull_quote",
    "model",
    "question",
    "answer",
    "top_phrases",
    "source",
    "technicians",
}
CYRILLIC = {}
for number in range(26):
    CYRILLIC[ord("a") + number] = 0x430 + number
    CYRILLIC[ord("A") + number] = 0x410 + number


def in_cyrillic(value: Any, is_text: bool = False) -> Any:
    """Data without a Latin letter in their texts: what a page says besides is left."""
    if isinstance(value, dict):
        return {
            key: in_cyrillic(member, key in TEXT_KEYS) for key, member in value.items()
        }
    if isinstance(value, list):
        return [in_cyrillic(member, is_text) for member in value]
    if isinstance(value, str) and is_text:
        return value.translate(CYRILLIC)
    return value


@cache
def pseudo_site(name: str) -> Site:
    files = []
    for file in DATA_SETS[name]():
        file = in_cyrillic(file)
        # The business speaks the pseudo-language, so that its texts bear no language.
        if "business" in file:
            file["business"] |= {"language": PSEUDO.tag, "email": None, "url": None}
        files.append(file)
    templates = templates_in(TEMPLATES, PSEUDO)
    return site_of(templates, dataset_of(*files), URLS)


def listed(site: Site, **values: Any) -> bytes:
    query = Query(**{"limit": list_page.PAGE_SIZE} | values)
    return list_page.list_page(site, query, in_any_order(site.dataset, query))


def refused(site: Site) -> bytes:
    pairs = [("rating", "ξ"), ("until", "υ"), ("page", "ζ"), ("query", "α")]
    with pytest.raises(BadQuery) as refusal:
        query_of_page(CONTRACT.list_parameters, pairs, list_page.PAGE_SIZE)
    return list_page.invalid_list_page(site, pairs, refusal.value)


FRAME = {"limit": 10, "theme": "auto", "mentions_technician": None}


def every_page(site: Site) -> dict[str, bytes]:
    """Every kind of page by name, and selections of all kinds."""
    aspect = next(iter(site.dataset.subjects.by_key), "ω")
    service = next(iter(site.dataset.reviews), None)
    named = service.services[0] if service and service.services else "none"
    pages = {
        "home": html_page(site),
        "list": listed(site),
        "second page": listed(site, offset=20),
        "found": listed(site, query="α", min_rating=1, since="2001-01-01"),
        "half stars": listed(site, rating=4),
        "subject": listed(site, mentions=aspect, sentiment="positive", replied=True),
        "many words": listed(site, query="α β γ δ ε ζ η θ ι κ"),
        "not found": listed(site, query="ω ψ", rating=1, source="γ"),
        "refused": refused(site),
        "no page": error_pages.not_found_page(site, is_review=False),
        "no review": error_pages.not_found_page(site, is_review=True),
        "beyond": list_page.beyond_page(site, Query(query="α"), last=2),
        "frame": embed.frame(site, mentions_service=None, **FRAME),
        "frame of a service": embed.frame(site, mentions_service=named, **FRAME),
        "refused frame": embed.refused_frame(site),
        "badge": pictures.badge(site),
    }
    for number, one in enumerate(site.dataset.reviews[:3]):
        pages[f"review {number}"] = review_page.review_page(site, one)
    return pages


@pytest.mark.parametrize("name", ["sample", "one", "none"])
def test_a_page_says_nothing_in_english_by_accident(name: str) -> None:
    site = pseudo_site(name)

    stray = {}
    for kind, page in every_page(site).items():
        found = english_in(page.decode())
        if found:
            stray[kind] = found

    assert stray == {}


def english_in(page: str) -> list[str]:
    """The Latin words of a page that stand in no message, and are not meant to be."""
    said = "\n".join(Words(page).found)
    said = ENGLISH_ON_PURPOSE.sub("", said)
    # A value of a message may be a message.
    while BRACKETED.search(said):
        said = BRACKETED.sub("", said)
    return re.findall("[A-Za-z]+", said)


@pytest.mark.parametrize("name", ["sample", "one", "none"])
def test_data_in_the_language_of_the_page_bear_no_language(name: str) -> None:
    for page in every_page(pseudo_site(name)).values():
        assert set(re.findall(' lang="(.*?)"', page.decode())) <= {"en", PSEUDO.tag}


def swedish() -> Dataset:
    business = {"name": "Bageri", "language": "sv"}
    return dataset_of(a_file(review(text="Gott!"), business=business))


def test_a_page_without_a_catalogue_marks_the_language_of_the_data() -> None:
    page = html_page(site_of(TEMPLATES, swedish(), URLS)).decode()

    assert '<html lang="en">' in page
    assert '<p class="customer-words" dir="auto" lang="sv">Gott!</p>' in page


def test_what_is_english_on_a_page_says_so() -> None:
    business = {"name": "Bäckerei", "language": "de"}
    dataset = dataset_of(a_file(review(), business=business))
    spoken = templates_in(TEMPLATES, SHIPPED.of("de"))

    page = html_page(site_of(spoken, dataset, URLS)).decode()

    assert '<html lang="de">' in page
    assert '<dl class="endpoints" lang="en" dir="ltr">' in page


# ---- The badge ----


@pytest.mark.parametrize("count", [1, 3, 1204, 1_000_000])
@pytest.mark.parametrize("tag", ["en", *TAGS])
def test_the_words_of_a_badge_fit(tag: str, count: int) -> None:
    words = pictures.badge_words(SHIPPED.of(tag), 4.48, count)

    widest = pictures.TEXT_ROOM * pictures.MOST_PRESSED
    assert pictures.pixels(words.shown) <= widest


@pytest.mark.parametrize("count", [1, 3, 160, 1204])
@pytest.mark.parametrize("tag", ["en", *TAGS])
def test_a_badge_says_what_it_counts_in_every_language(tag: str, count: int) -> None:
    words = pictures.badge_words(SHIPPED.of(tag), 4.48, count)

    assert words.shown == words.title


@pytest.mark.parametrize("tag", ["en", *TAGS])
def test_the_words_of_a_badge_without_reviews_fit(tag: str) -> None:
    words = pictures.badge_words(SHIPPED.of(tag), None, None)

    assert pictures.pixels(words.shown) <= pictures.TEXT_ROOM * pictures.MOST_PRESSED


# ---- Reloads ----


def test_a_reload_may_change_the_language_alone(tmp_path: Path) -> None:
    def put(language: str) -> None:
        business = {"name": "Bäckerei", "language": language}
        text = json.dumps(a_file(review(), business=business))
        (tmp_path / "reviews.json").write_text(text, encoding="utf-8")

    put("de")
    application = reviewsd.application_of(Settings(data=tmp_path, no_hub=True))
    reloader: Reloader = application.reloader
    before = reloader.snapshot.fixed["/"].identity.body

    put("en")
    reloader.poll(forced=True)

    after = reloader.snapshot.fixed["/"].identity.body
    assert b'<html lang="de">' in before
    assert b"Alle Bewertungen" in before
    assert b'<html lang="en">' in after
    assert b"Alle Bewertungen" not in after
