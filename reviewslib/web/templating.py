"""The templates of `templates/`: how they are loaded, and variables that all have.

Their messages and markup are theirs, the style is `page.css` there. This module must
not know what a page says. Text of the data becomes HTML only by Jinja's autoescape and
by `marks`. Equal data give equal bytes.

Pages speak the language of the environment. Texts for programs, such as `llms.txt`, are
English: they use the filters alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from markupsafe import Markup

from reviewslib.dataset import provenance
from reviewslib.dataset.reviews import service_labels
from reviewslib.dataset.strict_json import Json
from reviewslib.web import shown_text
from reviewslib.web.compiled_templates import CompiledTemplates
from reviewslib.web.fields import fields_in
from reviewslib.web.figures import count_text, format_rating
from reviewslib.web.language import ENGLISH, HtmlLanguage, Language
from reviewslib.web.shown_text import (
    FORBIDDEN,
    mail_address,
    markdown,
    one_line,
    paragraphs,
    web_url,
)
from reviewslib.web.site import Site

TEMPLATE_FILTERS = (
    count_text,
    format_rating,
    mail_address,
    markdown,
    one_line,
    paragraphs,
    provenance.source_name,
    web_url,
)


def load_templates(
    directory: Path, compiled: CompiledTemplates | None = None
) -> Environment:
    """The templates of a directory, read now and compiled when they are first used.

    Raises OSError. Compiling all of them at the start would make it a tenth longer.
    Those in `compiled` are not compiled again.
    """
    files = {}
    for path in directory.iterdir():
        # The only folder has compiled templates.
        if path.is_file():
            files[path.name] = path.read_text(encoding="utf-8")
    environment = Environment(
        loader=FunctionLoader(lambda name: (files[name], str(directory / name), None)),
        extensions=["jinja2.ext.do", MessageFilters],
        autoescape=select_autoescape(["html", "svg"]),
        undefined=StrictUndefined,
        finalize=_allowed,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=compiled,
        # Compiling is a third of the start, and the optimizer an eighth of that; what
        # is put out is folded without it.
        optimized=False,
    )
    # `tojson` writes the structured data.
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False,
        "separators": (",", ":"),
    }
    for function in TEMPLATE_FILTERS:
        environment.filters[function.__name__] = function
    environment.filters["shell"] = shlex.quote
    # Texts for programs are English, whatever the language.
    environment.filters["day_span"] = ENGLISH.day_span
    environment.filters["review_title"] = ENGLISH.review_title
    environment.globals |= {
        "style": files["page.css"],
        "embed_style": files["embed.css"],
        "MAX_NAME": shown_text.MAX_NAME,
        "MAX_LINE": shown_text.MAX_LINE,
        "MAX_TEXT": shown_text.MAX_TEXT,
        "MAX_URL": shown_text.MAX_URL,
    }
    _speak(environment, ENGLISH)
    return environment


# Functions of templates whose first argument is a message.
MESSAGE_FUNCTIONS = ("say", "counted")


class MessageFilters(Extension):
    """Reads `say("…", name=value)` as `"…"|say(name=value)`, and `counted` the same.

    Calls are what Babel extracts. Filters of constants are evaluated when a template is
    compiled, so that a message without values costs nothing when a page is made.
    Nothing else in a template may have these names: an attribute or a macro would be
    taken for a message.
    """

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """The tokens of a template, with the filters."""
        for token in stream:
            if token.type != "name" or token.value not in MESSAGE_FUNCTIONS:
                yield token
                continue
            parenthesis = next(stream)
            message = next(stream)
            following = next(stream)
            yield message
            yield Token(token.lineno, "pipe", "|")
            yield token
            # Without further arguments the parenthesis is closed.
            if following.type == "comma":
                yield parenthesis


@lru_cache(maxsize=2)
def templates_in(templates: Environment, language: Language) -> Environment:
    """The templates in a language; the last ones are kept, since they are compiled."""
    if language is ENGLISH:
        return templates
    spoken = templates.overlay()
    # The overlay would share them.
    spoken.globals = dict(templates.globals)
    spoken.filters = dict(templates.filters)
    _speak(spoken, language)
    return spoken


# Of the days that lists show: two years and more of a business that has a review a day.
KEPT_DAYS = 1000


def _speak(environment: Environment, language: Language) -> None:
    """Give templates what they say: `say`, `counted` for messages, `listed` for markup.

    The results of these are markup, and so are values of theirs that are the result of
    a macro. What `language` itself returns is text.
    """
    in_html = HtmlLanguage(language.tag, language.catalogue)
    environment.filters |= {
        "say": in_html.say,
        "counted": in_html.counted,
        # A list shows the same days as the one before it.
        "day": lru_cache(KEPT_DAYS)(language.day),
        "rating": language.rating,
    }
    environment.globals |= {
        "language": language,
        "listed": in_html.listed,
        "published_in_words": in_html.published_on,
        "fields": fields_in(language),
    }


def _allowed(value: Any) -> Any:
    """A value without characters that HTML forbids; a macro's result has none."""
    if isinstance(value, Markup):
        return value
    return FORBIDDEN.sub("", str(value))


def rendered(site: Site, name: str, **shown: Json) -> bytes:
    """A template with the variables of all templates and with `shown`, its own."""
    variables = common_variables(site)
    return site.templates.get_template(name).render(variables, **shown).encode()


def common_variables(site: Site) -> dict[str, Any]:
    """The variables of all templates."""
    dataset = site.dataset
    business = dataset.business
    sources = provenance.shown_sources(dataset.sources)
    return {
        "business": business,
        "count": len(dataset.reviews),
        "lang": _lang_attribute(business.get("language"), site.language.tag),
        "urls": site.urls,
        "paths": site.paths,
        "is_verified": provenance.is_verified(business),
        "published": provenance.publishers(dataset.sources),
        "rating": dataset.aggregate_rating,
        "review_policy": provenance.review_policy(business),
        "service_labels": service_labels(dataset),
        "sources": [name for name in sources if name != provenance.UNKNOWN_SOURCE],
        "star_rows": site.star_rows,
    }


def _lang_attribute(language: str | None, page_language: str) -> str:
    """The attribute of customers' and owner's text on pages in other languages."""
    if not language or language == page_language:
        return ""
    return Markup(' lang="{}"').format(language)
