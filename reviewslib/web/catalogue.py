"""Catalogues: the translations of one language, from the text of a .po file.

The format is that of GNU gettext, as far as `pybabel` and its editors write it here: no
contexts, a blank line between entries. A fuzzy or empty translation counts as missing.
The plural rule of a header is compiled by the standard library. This module must not
know a message, a page or a file.

Sections: the translations - the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from gettext import c2py
from typing import NamedTuple

# ---- The translations ----


class Catalogue(NamedTuple):
    """The translations of one language."""

    # By English message, or by the singular of one: the translation, or its forms.
    translations: Mapping[str, Sequence[str]]
    # Which of the forms a whole number takes.
    form_of: Callable[[int], int]

    def text(self, message: str) -> str:
        """The translation of a message; the message itself if there is none."""
        forms = self.translations.get(message)
        return forms[0] if forms else message

    def counted_text(self, singular: str, plural: str, count: int) -> str:
        """The translation of a message with a number; in English if there is none."""
        forms = self.translations.get(singular)
        if forms:
            return forms[self.form_of(count)]
        return singular if count == 1 else plural


def english_form(count: int) -> int:
    """The form of a number in English."""
    return int(count != 1)


# English needs no file: its translations are the messages.
NO_TRANSLATIONS = Catalogue({}, english_form)

# ---- The format ----

BETWEEN_ENTRIES = re.compile(r"\n\s*\n")
# A keyword with a string, or a string that continues the one before it.
STRING = re.compile(r'^(?:(msg\w+(?:\[\d\])?) )?(".*")$', re.MULTILINE)
FUZZY = re.compile(r"^#,.*\bfuzzy\b", re.MULTILINE)
# In the header, which is the translation of the empty message.
PLURAL_FORMS = re.compile(
    r"^Plural-Forms: *nplurals=(\d); *plural=(.*?);?$", re.MULTILINE
)


def read_catalogue(text: str) -> Catalogue:
    """The catalogue in the text of a .po file.

    Raises ValueError if its header has no plural forms, or a string is damaged.
    """
    entries = BETWEEN_ENTRIES.split(text.replace("\r\n", "\n"))
    header = _strings(entries[0])
    rule = PLURAL_FORMS.search(header.get("msgstr", ""))
    if rule is None:
        raise ValueError("the header has no Plural-Forms")
    translations: dict[str, Sequence[str]] = {}
    for entry in entries[1:]:
        if FUZZY.search(entry):
            continue
        strings = _strings(entry)
        forms = list(_forms(strings))
        if forms and all(forms):
            translations[strings["msgid"]] = forms
    return Catalogue(translations, c2py(rule[2]))


def _strings(entry: str) -> dict[str, str]:
    """An entry's strings by keyword: `msgid`, `msgid_plural`, `msgstr`, `msgstr[0]`."""
    strings: dict[str, str] = {}
    keyword = ""
    for found in STRING.finditer(entry):
        keyword = found[1] or keyword
        # The escapes of C that the format has are those of JSON.
        strings[keyword] = strings.get(keyword, "") + json.loads(found[2])
    return strings


def _forms(strings: Mapping[str, str]) -> Iterator[str]:
    """The translation of an entry, or its forms in order."""
    for keyword, text in strings.items():
        if keyword.startswith("msgstr"):
            yield text
