"""The templates of `templates/`: how they are loaded, and the variables that all of them have.

Their words and markup are theirs, the style is `page.css` there. This module must not know what a page says.
Text of the data becomes HTML only by Jinja's autoescape and by `marks`. Equal data give equal bytes.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from reviewslib.dataset import provenance
from reviewslib.dataset.reviews import service_labels
from reviewslib.dataset.strict_json import Json
from reviewslib.web import shown_text
from reviewslib.web.feeds import review_content, review_title
from reviewslib.web.figures import count_text, format_rating
from reviewslib.web.shown_text import (
    FORBIDDEN,
    day_span,
    mail_address,
    markdown,
    one_line,
    paragraphs,
    web_url,
)
from reviewslib.web.site import Site

FILTERS = (
    count_text,
    day_span,
    format_rating,
    mail_address,
    markdown,
    one_line,
    paragraphs,
    provenance.source_name,
    review_content,
    review_title,
    web_url,
)


def load_templates(directory: Path) -> Environment:
    """The templates of a directory, read now and compiled when they are first used.

    Raises OSError. Compiling all of them at the start would make it a tenth longer.
    """
    files = {}
    for path in directory.iterdir():
        files[path.name] = path.read_text(encoding="utf-8")
    environment = Environment(
        loader=FunctionLoader(lambda name: (files[name], str(directory / name), None)),
        autoescape=select_autoescape(["html", "svg"]),
        undefined=StrictUndefined,
        finalize=_allowed,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    # `tojson` writes the structured data.
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False,
        "separators": (",", ":"),
    }
    for function in FILTERS:
        environment.filters[function.__name__] = function
    environment.filters["shell"] = shlex.quote
    environment.globals |= {
        "style": files["page.css"],
        "embed_style": files["embed.css"],
        "fields": json.loads(files["fields.json"]),
        "MAX_NAME": shown_text.MAX_NAME,
        "MAX_LINE": shown_text.MAX_LINE,
        "MAX_TEXT": shown_text.MAX_TEXT,
        "MAX_URL": shown_text.MAX_URL,
    }
    return environment


def _allowed(value: Any) -> Any:
    """A value without the characters that HTML forbids; the result of a macro has none."""
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
        "lang": _lang_attribute(business.get("language")),
        "urls": site.urls,
        "paths": site.paths,
        "published_on": provenance.published_on(dataset.sources),
        "rating": dataset.aggregate_rating,
        "review_called": provenance.review_called(business),
        "review_policy": provenance.review_policy(business),
        "service_labels": service_labels(dataset),
        "sources": [name for name in sources if name != provenance.UNKNOWN_SOURCE],
        "star_rows": site.star_rows,
    }


def _lang_attribute(language: str | None) -> str:
    """The attribute of text by customers and the business, on pages that are English."""
    if language in (None, "", "en"):
        return ""
    return Markup(' lang="{}"').format(language)
