"""Texts of reviews as HTML in which the words of a search are marked."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from reviewslib.dataset.strict_json import Json
from reviewslib.dataset.text import occurrences
from reviewslib.web.shown_text import FORBIDDEN, MAX_TEXT, paragraphs, shortened

# Characters of a word: the time grows with the length of the word times that of the text.
MAX_MARKED = 100


def marked(value: Json, words: Sequence[str]) -> Markup:
    """`value` as HTML of several lines, with every occurrence of `words` in a `mark` element.

    `words` come from `loose_words`; those of more than MAX_MARKED characters are not marked. A text of more
    than MAX_TEXT characters is cut at its end. If that hides the first occurrence, its beginning is cut too.
    """
    text = FORBIDDEN.sub("", paragraphs(value, None))
    start = 0
    spans = occurrences(text, [word for word in words if len(word) <= MAX_MARKED])
    begin, end = next(spans, (len(text), 0))
    if end >= MAX_TEXT < len(text):
        start = begin - MAX_TEXT // 4
        start = max(start, text.find(" ", start, begin) + 1)  # at a word
    shown = shortened(text[start:], MAX_TEXT)
    whole = (
        len(shown) - 1 if len(text) - start > MAX_TEXT else len(shown)
    )  # without the ellipsis
    pieces = ["…" if start else ""]
    at = 0
    while begin < start + whole:
        mark = slice(begin - start, min(end - start, whole))
        pieces += [
            shown[at : mark.start],
            Markup("<mark>{}</mark>").format(shown[mark]),
        ]
        at = mark.stop
        (begin, end) = next(spans, (len(text), 0))
    return Markup("").join([*pieces, shown[at:]])
