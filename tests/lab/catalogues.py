"""The catalogues of the pages' languages: template, shipped files, a pseudo-language.

Babel extracts the messages and knows how the languages of the world write (CLDR).

Sections: the template - the shipped files - a pseudo-language.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from lab.services import ROOT
from reviewslib.web.catalogue import Catalogue, english_form
from reviewslib.web.language import Language

WEB = ROOT / "reviewslib" / "web"
DIRECTORY = WEB / "languages"
TEMPLATE = DIRECTORY / "reviewsd.pot"
TAGS = sorted(path.stem for path in DIRECTORY.glob("*.po"))

# ---- The template ----

HEADER = r"""# The messages of reviewsd's pages, badge, frame and feeds.
#
# A message is plain text: never write HTML. Keep every placeholder such as %(name)s as
# it is; it may stand anywhere in the sentence. A percent sign is %%. Names, places and
# websites are put in as they are and cannot be bent. If your language would bend or
# elide them, write a neutral form: "Reply: %(business)s" for "Reply from %(business)s",
# "%(n)s ★ · %(author)s" for "%(n)s stars from %(author)s", "%(trade)s · %(town)s" for
# "%(trade)s in %(town)s", "Reviews: %(name)s" for "Reviews of %(name)s". "verified"
# means checked; it must not become "genuine" or "authentic": that is a claim in law.
# Labels are those of the big review sites of your country, and readers are addressed
# politely.
#
# Made by extraction; see CONTRIBUTING.md.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"

"""
METHODS = [
    # It measures what embed.html says.
    ("frame_height.py", "ignore"),
    ("templates/*.html", "jinja2"),
    ("templates/*.svg", "jinja2"),
    ("*.py", "python"),
]
JINJA = {"extensions": "jinja2.ext.do", "silent": "false"}
KEYWORDS = {"say": None, "message": None, "counted": (1, 2)}
COMMENT_TAG = "TRANSLATORS:"


def extracted() -> Catalog:
    """All messages of templates and modules, with notes for translators."""
    catalog = Catalog()
    found = extract_from_dir(
        WEB,
        method_map=METHODS,
        options_map={"templates/*.html": JINJA, "templates/*.svg": JINJA},
        keywords=KEYWORDS,
        comment_tags=(COMMENT_TAG,),
        strip_comment_tags=True,
    )
    for file, line, message, comments, _ in sorted(found, key=lambda one: one[:2]):
        catalog.add(
            message,
            locations=[(Path(file).name, line)],
            auto_comments=[" ".join(" ".join(comments).split())] if comments else [],
        )
    return catalog


def template() -> str:
    """The text of the template, `reviewsd.pot`."""
    return HEADER + _entries(extracted())


def _entries(catalog: Catalog) -> str:
    """The text of all messages."""
    text = BytesIO()
    write_po(text, catalog, width=88, omit_header=True, include_lineno=False)
    return text.getvalue().decode()


# ---- The shipped files ----


def catalog_of(tag: str) -> Catalog:
    """A shipped catalogue, as Babel reads it."""
    with open(DIRECTORY / f"{tag}.po", "rb") as file:
        return read_po(file, locale=tag)


def renewed(tag: str) -> str:
    """The text of a shipped catalogue with the messages and notes of the template.

    The header stays; a message without a translation has an empty one.
    """
    old = catalog_of(tag)
    messages = extracted()
    # The number of plural forms is a header.
    messages.mime_headers = old.mime_headers
    for message in messages:
        known = old.get(message.id)
        if message.id and known and not known.fuzzy:
            message.string = known.string
    text = (DIRECTORY / f"{tag}.po").read_text(encoding="utf-8")
    header, _, _ = text.partition("\n\n")
    return f"{header}\n\n{_entries(messages)}"


# ---- A pseudo-language ----

# What is no sentence: signs, patterns, and what is made of other messages alone.
FORMATS = {"ltr", "1,234.5"}


def pseudo_language(tag: str = "qps") -> Language:
    """English in which every message stands in brackets: ⟦All reviews⟧."""
    translations = {}
    for message in extracted():
        if not message.id or message.id in FORMATS:
            continue
        forms = message.id if isinstance(message.id, tuple) else (message.id,)
        translations[forms[0]] = [f"⟦{form}⟧" for form in forms]
    return Language(tag, Catalogue(translations, english_form))


Forms = tuple[str, ...]


def texts_of(catalog: Catalog) -> Iterator[tuple[Forms, Forms]]:
    """Of every message of a catalogue: its forms in English, and those translated."""
    for message in catalog:
        if message.id:
            yield _as_forms(message.id), _as_forms(message.string or "")


def _as_forms(texts: str | Forms | list[str]) -> Forms:
    return (texts,) if isinstance(texts, str) else tuple(texts)
