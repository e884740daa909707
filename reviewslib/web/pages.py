"""The pages for people, and llms.txt, the sitemap, robots.txt, the icon and schema.org data for programs.

This module selects and limits the content of pages. Their words and markup are the templates in `templates/`,
their style is `page.css` there. The module must not know sockets, the clock, the HTTP server or the routes;
URLs arrive as `ServiceUrls`. Text of the data becomes HTML only by Jinja's autoescape and by `marked`. Equal
data give equal bytes.

Sections: Text - Figures - Structured data - Templates - Pages of reviews - Documents
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from reviewslib.dataset import provenance
from reviewslib.dataset.contract import is_web_url
from reviewslib.dataset.insights import ENTITY_KINDS, QUOTATION_MARKS, language_models
from reviewslib.dataset.query import BadQuery, Query
from reviewslib.dataset.reviews import (
    WEEK,
    Review,
    ReviewList,
    in_any_order,
    neighbours,
    service_labels,
)
from reviewslib.dataset.strict_json import SURROGATE, Json, Object, decode
from reviewslib.dataset.text import MAX_WORDS, loose_words, occurrences
from reviewslib.links import ServiceUrls
from reviewslib.web.feeds import review_content, review_title
from reviewslib.web.site import Site, capped

# ---- Text: values of the data, cut so that every page stays small ----

MAX_NAME = 80  # characters of a name or a label
MAX_LINE = 200  # of a question, a quotation or a line of an address
MAX_QUOTED = 280  # of a review on another website
MAX_TEXT = 1000  # of a review, a reply, an answer or a summary
MAX_URL = 500  # a longer URL is not linked
LONGEST_WORD = 30  # characters; a longer word is cut anywhere
MAX_MARKED = 100  # characters of a word to highlight; the time grows with word length times text length
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]"
)  # not allowed in HTML
# Bidirectional controls. They can affect text after an inline element, but not after a block (UAX 9, 3.3.2).
DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def one_line(value: Json, max_length: int = MAX_NAME) -> str:
    """`value` as one line of at most `max_length` characters; None becomes ""."""
    return _shortened(
        DIRECTIONS.sub("", " ".join(FORBIDDEN.sub(" ", str(value or "")).split())),
        max_length,
    )


def paragraphs(value: Json, max_length: int | None = MAX_TEXT) -> str:
    """`value` as text of several lines, for block elements, of at most `max_length` characters if given."""
    return _shortened(
        str(value or "").replace("\r\n", "\n").replace("\r", "\n").strip(), max_length
    )


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
    shown = _shortened(text[start:], MAX_TEXT)
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


def _shortened(text: str, max_length: int | None) -> str:
    """At most `max_length` characters of `text`, cut between words, or inside a word that is long."""
    if max_length is None or len(text) <= max_length:
        return text
    kept = text[: max_length - 1]
    *_, last = re.split(r"\s", kept)  # may be the beginning of a word
    if not text[max_length - 1].isspace() and len(last) <= LONGEST_WORD:
        kept = kept.removesuffix(last)
    return kept.rstrip() + "…"


def markdown(text: str) -> str:
    """One line of text, escaped for Markdown."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def web_url(value: Json) -> str:
    """`value` if it is an http or https URL of at most MAX_URL characters, else ""."""
    return (
        value
        if isinstance(value, str) and len(value) <= MAX_URL and is_web_url(value)
        else ""
    )


def mail_address(value: Json) -> str:
    """`value` if it is a plain mail address, else ""."""
    return (
        text
        if re.fullmatch(r"[\w.+-]+@[\w.-]+", text := one_line(value, MAX_LINE))
        else ""
    )


def day_span(days: Sequence[str]) -> str:
    """Days of the week: "Monday to Thursday" if three or more are consecutive, else a list."""
    listed = ", ".join(days)
    return (
        f"{days[0]} to {days[-1]}"
        if len(days) > 2 and listed in ", ".join(WEEK)
        else listed
    )


def slug(name: str) -> str:
    """A name for this service that is valid in every MCP client and needs no quoting in a shell."""
    return "-".join([*re.findall("[a-z0-9]+", name.lower())[:2], "reviews"])[
        -40:
    ].strip("-")


# ---- Figures: counts and ratings, the most mentioned entries, the trend ----

MAX_TOPICS = 6
MAX_QUESTIONS = 10
MAX_ENTITIES = 8
MAX_REVIEWS = 12
MIN_TREND_REVIEWS = 10  # a chart of fewer reviews would show chance
# characters of the review in the header of the home page
SHORTEST_LEAD = 20
MAX_LEAD = 280
# reviews in llms.txt, and characters of a review there
LLMS_REVIEWS = 10
LLMS_LENGTH = 100
LONG_NAME = 48  # characters; a longer name has a smaller font
MAX_MENTIONS = 6  # people and services beside a review
MAX_HOURS = 14
MAX_AREAS = 12
MAX_MONTHS = 60  # in the chart
MAX_YEARS = 15  # below the chart; one more entry sums up earlier years
MAX_CHOICES = 60  # of people or services in the form
MAX_SITEMAP_REVIEWS = 49_990  # reviews; a sitemap has at most 50,000 URLs
PAGE_SIZE = 20  # reviews in a page of the list
PAGING = ("limit", "offset")  # parameters of a query that are not filters


def count_text(count: int | None, noun: str = "") -> str:
    """A count in digits, followed by its noun if there is one: 1,204; 1 review; 1,204 reviews."""
    plural = "" if count == 1 else "s"
    return f"{capped(count):,} {noun}{plural}" if noun else f"{capped(count):,}"


def format_rating(rating: float) -> str:
    """A rating with at most two decimals: 4.48, 4.5, 5."""
    return f"{round(rating, 2):g}"


def by_mentions(entries: Iterable[Object], limit: int) -> list[Object]:
    """At most `limit` entries, those with the most mentions first; entries with 0 mentions are left out."""
    mentioned = (entry for entry in entries if entry["mention_count"] != 0)
    return sorted(mentioned, key=lambda entry: -capped(entry["mention_count"]))[:limit]


def aspects(entries: Iterable[Object]) -> list[dict[str, Json]]:
    """The ten most mentioned aspects with `bar`, its parts (class, start, length), and `width`, its scale.

    All bars have the same scale and axis: criticism to the left of it, praise and then neutral to the right.
    """
    shown = by_mentions(entries, 10)
    kinds = ("negative", "positive", "neutral")
    counts = [[capped(entry[f"{kind}_count"]) for kind in kinds] for entry in shown]
    axis = max((fault for fault, _, _ in counts), default=0)
    width = (
        axis + max((praise + neutral for _, praise, neutral in counts), default=0) or 1
    )
    aspects = []
    for entry, (fault, praise, neutral) in zip(shown, counts, strict=True):
        bar = [
            ("fault", axis - fault, fault),
            ("praise", axis, praise),
            ("neutral", axis + praise, neutral),
        ]
        aspects.append({**entry, "bar": bar, "width": width})
    return aspects


class Month(NamedTuple):
    """One month with reviews; `number` counts months since the year 0."""

    number: int
    reviews: int
    average: float


def trend(monthly: Iterable[Object]) -> dict[str, Json]:
    """The chart of ratings by month; empty with too few reviews or months. x and y are between 0 and 1.

    `levels`: (stars, y). `januaries`: (year, x). `dots`: (x, y, radius in pixels), one a month. `line`:
    (x, y), the average of twelve months. `years`: (year, average rating, reviews), newest last.
    `before`: (first of `years`, average rating, reviews) of all earlier years, or None.
    `is_whole`: the chart has all months.
    """
    every_month = _rated_months(monthly)
    months = [
        month
        for month in every_month
        if month.number > every_month[-1].number - MAX_MONTHS
    ]
    months = months[-MAX_MONTHS:]  # a file may have a month twice
    if len(months) < 3 or sum(month.reviews for month in months) < MIN_TREND_REVIEWS:
        return {}
    first = months[0].number
    last = months[-1].number
    highest = max(month.reviews for month in months)
    lowest = min(4, math.floor(min(month.average for month in months)))
    width = max(1, last - first)
    height = 5 - lowest
    x = [(month.number - first) / width for month in months]
    y = [(5 - month.average) / height for month in months]
    radius = [2 + 3 * math.sqrt(month.reviews / highest) for month in months]
    recent = [
        [near for near in every_month if 0 <= month.number - near.number < 12]
        for month in months
    ]
    by_year = groupby(every_month, lambda month: month.number // 12)
    years = [(year, *_figures(list(group))) for year, group in by_year][-MAX_YEARS:]
    before = [month for month in every_month if month.number // 12 < years[0][0]]
    return {
        "levels": [(stars, (5 - stars) / height) for stars in range(lowest, 6)],
        "januaries": [
            (at // 12, (at - first) / width)
            for at in range(first, last + 1)
            if at % 12 == 0
        ],
        "dots": list(zip(x, y, radius, strict=True)),
        "line": list(
            zip(x, [(5 - _average(group)) / height for group in recent], strict=True)
        ),
        "is_whole": len(months) == len(every_month),
        "years": years,
        "before": (years[0][0], *_figures(before)) if before else None,
    }


def _rated_months(monthly: Iterable[Object]) -> list[Month]:
    """The months with reviews, oldest first."""
    months = []
    for entry in sorted(monthly, key=lambda entry: entry["month"]):
        year, month = map(int, entry["month"].split("-"))
        if (average := entry["average_rating"]) is not None:
            months.append(
                Month(
                    year * 12 + month - 1, capped(entry["review_count"]) or 1, average
                )
            )
    return months


def _figures(months: Sequence[Month]) -> tuple[float, int]:
    """The average rating and the number of reviews of several months."""
    return _average(months), sum(month.reviews for month in months)


def _average(months: Sequence[Month]) -> float:
    return fmean(
        [month.average for month in months], weights=[month.reviews for month in months]
    )


# ---- Structured data: schema.org, for search engines ----

# The beginning of a word in `business.category`, and the schema.org type of the business.
TYPES_BY_WORD = {
    "chiropract": "MedicalBusiness",  # schema.org/Chiropractic is a system of medicine, not a business
    "clinic": "MedicalClinic",
    "dent": "Dentist",
    "veterinar": "VeterinaryCare",
    "restaurant": "Restaurant",
    "baker": "Bakery",
    "hair": "HairSalon",
    "plumb": "Plumber",
    "electrician": "Electrician",
}


def structured_data(business: Object, urls: ServiceUrls) -> dict[str, Json]:
    """The business without ratings and reviews: search engines ignore those on the business's own site."""
    address = business.get("address") or {}
    words = f" {one_line(business.get('category')).lower()}"
    schema_types = [
        schema_type
        for stem, schema_type in TYPES_BY_WORD.items()
        if f" {stem}" in words
    ]
    return {"@context": "https://schema.org", "@id": urls.home + "#business"} | _thing(
        schema_types[0] if schema_types else "LocalBusiness",
        name=one_line(business["name"]),
        description=paragraphs(business.get("description")),
        url=web_url(business.get("url")) or urls.home,
        image=web_url(business.get("image_url")),
        telephone=one_line(business.get("telephone")),
        email=one_line(business.get("email")),
        priceRange=one_line(business.get("price_range")),
        address=_thing(
            "PostalAddress",
            streetAddress=one_line(address.get("street")),
            addressLocality=one_line(address.get("locality")),
            addressRegion=one_line(address.get("region")),
            postalCode=one_line(address.get("postal_code")),
            addressCountry=one_line(address.get("country")),
        ),
        geo=_thing("GeoCoordinates", **(business.get("geo") or {})),
        areaServed=[
            one_line(area) for area in (business.get("service_areas") or ())[:MAX_AREAS]
        ],
        openingHoursSpecification=[
            _opening(entry) for entry in (business.get("hours") or ())[:MAX_HOURS]
        ],
    )


def _thing(schema_type: str, /, **properties: Json) -> dict[str, Json]:
    """The properties that have a value, with their type; empty if none has."""
    present = {
        name: value
        for name, value in properties.items()
        if value not in (None, "", [], {})
    }
    return {"@type": schema_type} | present if present else {}


def _opening(entry: Object) -> dict[str, Json]:
    days = [day for day in WEEK if day in entry["days"]]
    return _thing(
        "OpeningHoursSpecification",
        dayOfWeek=days,
        opens=entry["opens"],
        closes=entry["closes"],
    )


# ---- Templates ----


def load_templates(directory: Path) -> Environment:
    """The templates of a directory, read now and compiled when they are first used. Raises OSError.

    Compiling all of them at the start would make the start a tenth longer.
    """
    files = {
        path.name: path.read_text(encoding="utf-8") for path in directory.iterdir()
    }
    environment = Environment(
        loader=FunctionLoader(lambda name: (files[name], str(directory / name), None)),
        autoescape=select_autoescape(["html", "svg"]),
        undefined=StrictUndefined,
        # Remove characters that HTML does not allow; the result of a macro has none left.
        finalize=lambda value: (
            value if isinstance(value, Markup) else FORBIDDEN.sub("", str(value))
        ),
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False,
        "separators": (",", ":"),
    }
    values = (one_line, paragraphs, marked, markdown, web_url, mail_address, day_span)
    filters = (
        *values,
        count_text,
        format_rating,
        review_title,
        review_content,
        provenance.source_name,
    )
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["shell"] = shlex.quote
    limits = {
        name: limit for name, limit in globals().items() if isinstance(limit, int)
    }  # such as MAX_NAME
    environment.globals |= limits | {
        "style": files["page.css"],
        "embed_style": files["embed.css"],
    }
    return environment


# ---- Pages of reviews: the list with its search form, and the page of one review ----


def list_page(
    site: Site,
    query: Query,
    matches: ReviewList,
) -> bytes:
    """A page of `matches`, the result of `query`, with the form, `text/html; charset=utf-8`."""
    values = filter_values(query)
    shown = {
        "issues": {},
        "matched": matches.frame["matched"],
        "number": query.offset // PAGE_SIZE + 1,
        "last": last_page(matches),
        "page_url": partial(list_url, site.urls, values),
        "url_without": lambda name: list_url(
            site.urls, {key: values[key] for key in values if key != name}
        ),
        "reviews": decoded(matches.reviews),
        "words": loose_words(query.query or ""),
        "suggestions": [] if matches.reviews else _suggestions(site, query),
    }
    return _form_page(site, values=values, **shown)


def _suggestions(site: Site, query: Query) -> list[tuple[str, str | None, int, str]]:
    """Searches like `query` that find reviews: (filter, word, count, URL).

    The filter keeps only this word; if the word is None, the filter is left out.
    """
    words = [
        word for word in dict.fromkeys((query.query or "").split()) if loose_words(word)
    ][:MAX_WORDS]
    omissions: list[tuple[str, Any]] = [(name, None) for name in filter_values(query)]
    suggestions = []
    for name, word in [*omissions, *(("query", word) for word in words)]:
        wider = replace(query, **{name: word})
        if matched := in_any_order(site.dataset, wider).frame["matched"]:
            suggestions.append(
                (name, word, matched, list_url(site.urls, filter_values(wider)))
            )
    return suggestions


def decoded(reviews: Iterable[Review]) -> list[Object]:
    """Reviews as objects for templates."""
    return [decode(bytes(review.json)) for review in reviews]


def invalid_list_page(
    site: Site,
    parameters: Iterable[tuple[str, str]],
    bad: BadQuery,
) -> bytes:
    """The form with the submitted `parameters` and their errors, `text/html; charset=utf-8`."""
    values = {
        name: SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
        for name, value in parameters
        if value
    }
    issues = {issue.parameter: issue.message for issue in bad.issues}
    return _form_page(site, values=values, issues=issues, number=1, last=1)


def filter_values(query: Query) -> dict[str, str]:
    """The filters of a query by name, as the form submits them, in the order of the contract."""
    filters = {
        name: value
        for name, value in asdict(query).items()
        if value and name not in PAGING
    }
    return {
        name: value if isinstance(value, str) else f"{value:.15g}"
        for name, value in filters.items()
    }


def last_page(matches: ReviewList) -> int:
    """The number of the last page; 1 without matches."""
    matched: int = matches.frame["matched"]
    return max(1, math.ceil(matched / PAGE_SIZE))


def list_url(urls: ServiceUrls, values: Mapping[str, str], number: int = 1) -> str:
    """The URL of a page of the list with these filters."""
    return (
        urls.selection(**values, page=number)
        if number > 1
        else urls.selection(**values)
    )


def _form_page(site: Site, **shown: Json) -> bytes:
    """A page of the list; `choices` has the labels of the form's values by parameter."""
    dataset = site.dataset
    labels = service_labels(dataset)
    choices = {
        "mentions_technician": {name: name for name in _offered(dataset.technicians)},
        "mentions_service": {
            id: labels.get(id, id) for id in _offered(dataset.services)
        },
        "source": {
            source: provenance.source_name(source)
            for source in _offered(dataset.sources)
        },
    }
    return rendered(site, "list.html", choices=choices, **shown)


def _offered(names: Iterable[str]) -> Iterable[str]:
    return islice((name for name in names if len(name) <= MAX_LINE), MAX_CHOICES)


def review_page(site: Site, review: Review) -> bytes:
    """The page of one review, uncut, `text/html; charset=utf-8`."""
    newer, older = (
        other and decode(bytes(other.json))
        for other in neighbours(site.dataset, review)
    )
    shown = {"review": decode(bytes(review.json)), "newer": newer, "older": older}
    return rendered(site, "review.html", **shown)


class BeyondLastPage(LookupError):
    """`query` requests a page after the last one of its list, whose number is `last`."""

    def __init__(self, query: Query, last: int):
        self.query = query
        self.last = last


def not_found_page(site: Site, is_review: bool) -> bytes:
    """The page of a 404 response, about a review or about any other path, `text/html; charset=utf-8`."""
    return rendered(site, "not_found.html", is_review=is_review, last=0)


def beyond_page(site: Site, beyond: BeyondLastPage) -> bytes:
    """The page of a 404 response for a page after the last one of a list, `text/html; charset=utf-8`."""
    last_url = list_url(site.urls, filter_values(beyond.query), beyond.last)
    shown = {"is_review": False, "last": beyond.last, "last_url": last_url}
    return rendered(site, "not_found.html", **shown)


def rendered(site: Site, name: str, **shown: Json) -> bytes:
    """A template, rendered with the variables of all templates and with `shown`, its own."""
    dataset = site.dataset
    business = dataset.business
    sources = provenance.shown_sources(dataset.sources)
    language = business.get("language") or "en"
    common = {
        "business": business,
        "count": len(dataset.reviews),
        "lang": "" if language == "en" else Markup(' lang="{}"').format(language),
        "urls": site.urls,
        "star_rows": site.star_rows,
        "published_on": provenance.published_on(dataset.sources),
        "rating": dataset.aggregate_rating,
        "review_called": provenance.review_called(business),
        "review_policy": provenance.review_policy(business),
        "service_labels": service_labels(dataset),
        "sources": [
            source for source in sources if source != provenance.UNKNOWN_SOURCE
        ],
    }
    return site.templates.get_template(name).render(common, **shown).encode()


# ---- Documents that are made at load: the home page and the texts for programs ----


def html_page(site: Site) -> bytes:
    """The home page without its empty sections, `text/html; charset=utf-8`."""
    return rendered(site, "page.html", **_shown(site))


def llms_text(site: Site) -> bytes:
    """The home page in Markdown for language models (llmstxt.org), UTF-8."""
    return rendered(site, "llms.txt", **_shown(site))


def _shown(site: Site) -> dict[str, Json]:
    """The variables of the home page and llms.txt."""
    dataset = site.dataset
    business = dataset.business
    insights = dataset.insights
    entities = {
        kind: by_mentions(insights["entities"][kind], MAX_ENTITIES)
        for kind in ENTITY_KINDS
    }
    mentioned = {kind: insights[kind] for kind in ("aspects", "topics")} | insights[
        "entities"
    ]
    totals = {
        kind: sum(entry["mention_count"] != 0 for entry in mentioned[kind])
        for kind in mentioned
    }
    quote = one_line(insights.get("pull_quote"), MAX_LINE).strip(QUOTATION_MARKS)
    # Without a quotation, the header has the newest review with some text, whatever its rating.
    with_text = (
        review
        for review in dataset.newest
        if len(paragraphs(review["text"])) >= SHORTEST_LEAD
    )
    lead = None if quote else next(with_text, None)
    return {
        "hours": (business.get("hours") or ())[:MAX_HOURS],
        "areas": (business.get("service_areas") or ())[:MAX_AREAS],
        "insights": insights,
        "is_read_by_model": bool(language_models(insights)),
        "aspects": aspects(insights["aspects"]),
        "topics": by_mentions(insights["topics"], MAX_TOPICS),
        "trend": trend(insights["temporal"]["monthly"]),
        **entities,
        "totals": totals | {"questions": len(insights["faq"])},
        "quote": quote,
        "lead": lead,
        "reviews": [
            review for review in dataset.newest[:MAX_REVIEWS] if review is not lead
        ],
        "newest": dataset.newest[:LLMS_REVIEWS],
        "questions": insights["faq"][:MAX_QUESTIONS],
        "newest_day": dataset.reviews[0].day if dataset.reviews else "2026-01-01",
        "slug": slug(business["name"]),
        "structured_data": structured_data(business, site.urls),
    }


def sitemap(site: Site, limit: int = MAX_SITEMAP_REVIEWS) -> bytes:
    """The URLs of the pages with the days of their last changes (sitemaps.org), `application/xml`."""
    dataset = site.dataset
    urls = site.urls
    newest = max((review.changed_day for review in dataset.reviews), default="")
    pages = [
        (urls.review_page(review.id), review.changed_day)
        for review in dataset.reviews[:limit]
    ]
    entries = [(urls.home, newest), (urls.review_list, newest), *pages]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return "".join(
        [head, *(_sitemap_entry(*entry) for entry in entries), "</urlset>\n"]
    ).encode()


def _sitemap_entry(address: str, day: str) -> str:
    lastmod = f"<lastmod>{day}</lastmod>" if day else ""
    return f"<url><loc>{escape(address)}</loc>{lastmod}</url>\n"


def robots_text(urls: ServiceUrls) -> bytes:
    """robots.txt (RFC 9309), `text/plain`: everything is allowed but endpoints that accept only POST."""
    posted = [
        f"Disallow: {urlsplit(url).path}\n" for url in (urls.mcp, urls.hub) if url
    ]
    return "".join(
        ["User-agent: *\n", *posted, f"Allow: /\nSitemap: {urls.sitemap}\n"]
    ).encode()


def favicon(templates: Environment) -> bytes:
    """The icon, `image/svg+xml`."""
    return templates.get_template("favicon.svg").render().encode()


REFERRER_POLICY = ("Referrer-Policy", "strict-origin-when-cross-origin")


def content_policy(
    templates: Environment, style: str, form_action: str, frame_ancestors: str
) -> tuple[str, str]:
    """The Content-Security-Policy of a document with the style sheet in the template variable `style`.

    The document may use this style sheet and run no script.
    """
    digest = base64.b64encode(
        hashlib.sha256(str(templates.globals[style]).encode()).digest()
    ).decode()
    policy = (  # `connect-src` lets auditing tools fetch robots.txt from within the document
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'self'; connect-src 'self';"
        f" base-uri 'none'; form-action {form_action}; frame-ancestors {frame_ancestors};"
        " require-trusted-types-for 'script'"
    )
    return "Content-Security-Policy", policy


def page_headers(templates: Environment) -> tuple[tuple[str, str], ...]:
    """The policies of a page."""
    policy = content_policy(
        templates, "style", form_action="'self'", frame_ancestors="'none'"
    )
    return policy, ("Cross-Origin-Opener-Policy", "same-origin"), REFERRER_POLICY
