"""What people and models read: the pages, llms.txt, the sitemap, robots.txt, the icon, schema.org data.

This module computes what is shown and how much of it. The words and the markup around it are the files in
`templates/`, the style is `page.css` there. The module must not know sockets, the clock, the HTTP server or
the routes: addresses arrive as `ServiceUrls`. Text of the data becomes HTML only through Jinja's autoescape
and `marked`. The same data give the same bytes.

Sections: Text - Figures - Structured data - Templates - Pages of reviews - Documents
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, groupby, islice
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from reviewslib.dataset.insights import ENTITY_KINDS, QUOTATION_MARKS, language_models
from reviewslib.dataset.provenance import (
    UNKNOWN_SOURCE,
    published_on,
    review_called,
    review_policy,
    shown_sources,
    source_name,
)
from reviewslib.dataset.query import BadQuery, Query
from reviewslib.dataset.reviews import (
    WEB_URL,
    WEEK,
    Dataset,
    Review,
    ReviewList,
    calendar_day,
    in_any_order,
    neighbours,
    service_labels,
)
from reviewslib.dataset.strict_json import SURROGATE, Json, Object, decode
from reviewslib.dataset.text import MOST_WORDS, loose_words, occurrences
from reviewslib.links import ServiceUrls
from reviewslib.web.feeds import review_content, review_title

# ---- Text: values of the data, cut to a length so that a page stays small whatever the files hold ----

MOST_NAME = 80  # characters of a name or a label
MOST_LINE = 200  # of a question, a quotation or a line of an address
MOST_QUOTED = 280  # of a review on another website
MOST_TEXT = 1000  # of a review, a reply, an answer or a summary
MOST_URL = 500  # a longer address is not linked
LONGEST_WORD = 30  # characters; a longer one, or a text without spaces, is cut anywhere
MOST_MARKED = 100  # characters of a word that is marked: the time grows with its length and the text's
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")  # what HTML does not allow
# Explicit directions can reach beyond an inline element; blocks end them anyway (UAX 9, section 3.3.2).
DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def one_line(value: Json, most: int = MOST_NAME) -> str:
    """Any value as one line of at most so many characters; None becomes ""."""
    return _shortened(DIRECTIONS.sub("", " ".join(FORBIDDEN.sub(" ", str(value or "")).split())), most)


def paragraphs(value: Json, most: int | None = MOST_TEXT) -> str:
    """Any value as text of several lines, for a block of its own; the whole of it if `most` is None."""
    return _shortened(str(value or "").replace("\r\n", "\n").replace("\r", "\n").strip(), most)


def marked(value: Json, words: Sequence[str]) -> Markup:
    """Any value as text of several lines, in HTML, with a `mark` around each of `words`, which are loose.

    If they first occur beyond the length of `paragraphs`, the beginning is left out instead of the end.
    Words of more than MOST_MARKED characters are not marked.
    """
    text, start = FORBIDDEN.sub("", paragraphs(value, None)), 0
    spans = occurrences(text, [word for word in words if len(word) <= MOST_MARKED])
    begin, end = next(spans, (len(text), 0))
    if end >= MOST_TEXT < len(text):
        start = begin - MOST_TEXT // 4
        start = max(start, text.find(" ", start, begin) + 1)  # at a word
    shown = _shortened(text[start:], MOST_TEXT)
    whole = len(shown) - (len(text) - start > MOST_TEXT)  # without the ellipsis
    pieces, at = ["…" if start else ""], 0
    while begin < start + whole:
        mark = slice(begin - start, min(end - start, whole))
        pieces += [shown[at : mark.start], Markup("<mark>{}</mark>").format(shown[mark])]
        at, (begin, end) = mark.stop, next(spans, (len(text), 0))
    return Markup("").join([*pieces, shown[at:]])


def _shortened(text: str, most: int | None) -> str:
    """At most so many characters of a text; it ends at a word, unless that would leave out a long one."""
    if most is None or len(text) <= most:
        return text
    kept = text[: most - 1]
    *_, last = re.split(r"\s", kept)  # the beginning of a word
    if not text[most - 1].isspace() and len(last) <= LONGEST_WORD:
        kept = kept.removesuffix(last)
    return kept.rstrip() + "…"


def markdown(text: str) -> str:
    """One line of text that Markdown leaves alone."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def web_url(value: Json) -> str:
    """`value` when it is an http or https URL of sensible length, else ""."""
    return value if isinstance(value, str) and len(value) <= MOST_URL and WEB_URL.fullmatch(value) else ""


def mail_address(value: Json) -> str:
    """`value` when it is a plain mail address, else ""."""
    return text if re.fullmatch(r"[\w.+-]+@[\w.-]+", text := one_line(value, MOST_LINE)) else ""


def day_span(days: Sequence[str]) -> str:
    """Days of the week: "Monday to Thursday" for three or more in a row, else a list."""
    listed = ", ".join(days)
    return f"{days[0]} to {days[-1]}" if len(days) > 2 and listed in ", ".join(WEEK) else listed


def slug(name: str) -> str:
    """A name for this service that every MCP client takes and no shell interprets."""
    return "-".join([*re.findall("[a-z0-9]+", name.lower())[:2], "reviews"])[-40:].strip("-")


# ---- Figures: counts and ratings, the entries that are shown, and the trend ----

MOST_TOPICS = 6
MOST_ENTITIES = 8
MOST_REVIEWS = 12
LEAST_IN_TREND = 10  # reviews
SHORTEST_LEAD, MOST_LEAD = 20, 280  # characters of the review on the first screen
TOLD_REVIEWS, MOST_TOLD = 10, 100  # the newest reviews in llms.txt, and the characters of each
LONG_NAME = 48  # characters; a longer one is set smaller
MOST_NAMED = 6  # people and services of one review
MOST_HOURS = 14
MOST_AREAS = 12
MOST_MONTHS = 60  # in the chart
MOST_YEARS = 15  # in words, each whole; one more line has all years before
MOST_CHOICES = 60  # of people or services in the form
MOST_IN_SITEMAP = 49_990  # reviews; a sitemap has at most 50,000 addresses
PAGE_SIZE = 20  # reviews in a page of the list
PAGING = ("limit", "offset")  # parameters that are no filters


def capped(count: int | None) -> int:
    """A count that may be absent or absurd."""
    return min(count or 0, 10**9)


def count_text(count: int | None, noun: str = "") -> str:
    """A count in digits, with what it counts if a noun is given: 1,204; 1 review; 1,204 reviews."""
    plural = "" if count == 1 else "s"
    return f"{capped(count):,} {noun}{plural}" if noun else f"{capped(count):,}"


def format_rating(rating: float) -> str:
    """A rating with at most two decimals: 4.48, 4.5, 5."""
    return f"{round(rating, 2):g}"


def distribution(dataset: Dataset) -> list[tuple[int, int, dict[str, Json]]]:
    """Stars, the bar's count, and the filters that find what it counts, none for nothing; best first."""
    given, held = dataset.aggregate_rating["distribution"], {each.rating for each in dataset.reviews}

    def filters(star: int) -> dict[str, Json]:
        highest = max((rating for rating in held if star <= rating < star + 1), default=0)
        parts = {"min_rating": star, "max_rating": f"{highest:.15g}"}  # of a star
        return {"rating": star} if highest == star else parts if highest else {}

    return [(star, capped(given[str(star)]), filters(star)) for star in (5, 4, 3, 2, 1)]


def by_mentions(entries: Iterable[Object], most: int) -> list[Object]:
    """The entries mentioned most, most first; none that is known to be mentioned by nobody."""
    mentioned = (entry for entry in entries if entry["mention_count"] != 0)
    return sorted(mentioned, key=lambda entry: -capped(entry["mention_count"]))[:most]


def aspects(entries: Iterable[Object]) -> list[dict[str, Json]]:
    """The aspects mentioned most, each with a `bar`, its parts as (class, start, length), and its `width`.

    The bars have one scale and one axis: fault is to its left, praise to its right, neutral follows praise.
    """
    shown = by_mentions(entries, 10)
    kinds = ("negative", "positive", "neutral")
    counts = [[capped(entry[f"{kind}_count"]) for kind in kinds] for entry in shown]
    axis = max((fault for fault, _, _ in counts), default=0)
    width = axis + max((praise + neutral for _, praise, neutral in counts), default=0) or 1
    aspects = []
    for entry, (fault, praise, neutral) in zip(shown, counts, strict=True):
        bar = [("fault", axis - fault, fault), ("praise", axis, praise), ("neutral", axis + praise, neutral)]
        aspects.append({**entry, "bar": bar, "width": width})
    return aspects


class Month(NamedTuple):
    """One month with reviews; `number` counts months since the year 0."""

    number: int
    reviews: int
    average: float


def trend(monthly: Iterable[Object]) -> dict[str, Json]:
    """The chart of ratings by month, in shares of its width (x) and height (y); empty for too few months.

    `levels` are (stars, y), `januaries` (year, x), `dots` (x, y, radius in pixels), `line` the points (x, y)
    of the average of twelve months. Told in words are `years`, newest last, and the years `before` them
    together, None without any: (year or first year after, average rating, reviews). `is_whole`: no month is
    left out of the chart.
    """
    every_month = _rated_months(monthly)
    months = [each for each in every_month if each.number > every_month[-1].number - MOST_MONTHS][
        -MOST_MONTHS:
    ]
    if len(months) < 3 or sum(month.reviews for month in months) < LEAST_IN_TREND:
        return {}
    first, last, most = months[0].number, months[-1].number, max(month.reviews for month in months)
    lowest = min(4, math.floor(min(month.average for month in months)))
    width, height = max(1, last - first), 5 - lowest
    x = [(month.number - first) / width for month in months]
    y = [(5 - month.average) / height for month in months]
    radius = [2 + 3 * math.sqrt(month.reviews / most) for month in months]
    recent = [[near for near in every_month if 0 <= month.number - near.number < 12] for month in months]
    years = [(year, list(found)) for year, found in groupby(every_month, lambda month: month.number // 12)]
    earlier, years = list(chain.from_iterable(found for _, found in years[:-MOST_YEARS])), years[-MOST_YEARS:]
    return {
        "levels": [(stars, (5 - stars) / height) for stars in range(lowest, 6)],
        "januaries": [(at // 12, (at - first) / width) for at in range(first, last + 1) if at % 12 == 0],
        "dots": list(zip(x, y, radius, strict=True)),
        "line": list(zip(x, [(5 - _average(near)) / height for near in recent], strict=True)),
        "is_whole": len(months) == len(every_month),
        "years": [(year, *_figures(found)) for year, found in years],
        "before": (years[0][0], *_figures(earlier)) if earlier else None,
    }


def _rated_months(monthly: Iterable[Object]) -> list[Month]:
    """The months with reviews, oldest first."""
    months = []
    for entry in sorted(monthly, key=lambda entry: entry["month"]):
        year, month = map(int, entry["month"].split("-"))
        if (average := entry["average_rating"]) is not None:
            months.append(Month(year * 12 + month - 1, capped(entry["review_count"]) or 1, average))
    return months


def _figures(months: Sequence[Month]) -> tuple[float, int]:
    """The average rating and the number of reviews of several months."""
    return _average(months), sum(month.reviews for month in months)


def _average(months: Sequence[Month]) -> float:
    return fmean([month.average for month in months], weights=[month.reviews for month in months])


# ---- Structured data: schema.org, for search engines ----

# How a word of the category begins, and the schema.org type of such a business.
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
    """The business alone: search engines take ratings and reviews of a business from others only."""
    address = business.get("address") or {}
    words = f" {one_line(business.get('category')).lower()}"
    known_types = [kind for stem, kind in TYPES_BY_WORD.items() if f" {stem}" in words]
    return {"@context": "https://schema.org", "@id": urls.home + "#business"} | _thing(
        known_types[0] if known_types else "LocalBusiness",
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
        areaServed=[one_line(area) for area in (business.get("service_areas") or ())[:MOST_AREAS]],
        openingHoursSpecification=[_opening(entry) for entry in (business.get("hours") or ())[:MOST_HOURS]],
    )


def _thing(schema_type: str, /, **properties: Json) -> dict[str, Json]:
    """The properties that are known, with their type; empty when none is."""
    known = {name: value for name, value in properties.items() if value not in (None, "", [], {})}
    return {"@type": schema_type} | known if known else {}


def _opening(entry: Object) -> dict[str, Json]:
    days = [day for day in WEEK if day in entry["days"]]
    return _thing("OpeningHoursSpecification", dayOfWeek=days, opens=entry["opens"], closes=entry["closes"])


# ---- Templates ----


def load_templates(directory: Path) -> Environment:
    """The templates of a directory, compiled. Raises OSError."""
    environment = Environment(
        loader=FileSystemLoader(directory),
        autoescape=select_autoescape(["html", "svg"]),
        undefined=StrictUndefined,
        # What is printed loses the characters that HTML does not allow; a macro's result has lost them.
        finalize=lambda value: value if isinstance(value, Markup) else FORBIDDEN.sub("", str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    values = (one_line, paragraphs, marked, markdown, web_url, mail_address, day_span)
    filters = (*values, count_text, format_rating, review_title, source_name)
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["shell"] = shlex.quote
    environment.globals |= {"MOST_NAME": MOST_NAME, "MOST_LINE": MOST_LINE, "MOST_TEXT": MOST_TEXT}
    styles = {"style": "page.css", "embed_style": "embed.css"}
    for name, file in styles.items():
        environment.globals[name] = (directory / file).read_text(encoding="utf-8")
    most = {
        "MOST_NAMED": MOST_NAMED,
        "MOST_WORDS": MOST_WORDS,
        "MOST_QUOTED": MOST_QUOTED,
        "MOST_REVIEWS": MOST_REVIEWS,
    }
    environment.globals |= most | {"MOST_LEAD": MOST_LEAD, "LONG_NAME": LONG_NAME, "MOST_TOLD": MOST_TOLD}
    for name in environment.list_templates(extensions=("html", "svg", "txt")):
        environment.get_template(name)
    return environment


# ---- Pages of reviews: lists of them with a form, and one of them ----


def list_page(
    templates: Environment, dataset: Dataset, urls: ServiceUrls, query: Query, found: ReviewList
) -> bytes:
    """A page of the reviews that `query` found, with the form, `text/html; charset=utf-8`."""
    values = filter_values(query)
    number, last = query.offset // PAGE_SIZE + 1, last_page(found)
    return _form_page(
        templates,
        dataset,
        urls,
        values,
        issues={},
        matched=found.frame["matched"],
        reviews=decoded(found.reviews),
        words=loose_words(query.query or ""),
        number=number,
        last=last,
        first=list_url(urls, values),
        oldest=list_url(urls, values, last),
        url=list_url(urls, values, number),
        newer=list_url(urls, values, number - 1) if number > 1 else "",
        older=list_url(urls, values, number + 1) if number < last else "",
        looser={name: list_url(urls, {k: v for k, v in values.items() if k != name}) for name in values},
        ways_on=[] if found.reviews else _ways_on(dataset, urls, query),
    )


def _ways_on(dataset: Dataset, urls: ServiceUrls, query: Query) -> list[tuple[str, str, int, str]]:
    """What finds something where `query` does not: (filter to leave out, "", count, URL) or ("", word, …)."""
    left_out: list[dict[str, Any]] = [{name: None} for name in filter_values(query)]
    words = [word for word in dict.fromkeys((query.query or "").split()) if loose_words(word)][:MOST_WORDS]
    alone: list[dict[str, Any]] = [{"query": word} for word in words]
    ways = []
    for change in left_out + alone:
        ((name, word),) = change.items()
        fewer = replace(query, **change)
        if matched := in_any_order(dataset, fewer).frame["matched"]:
            ways.append(("" if word else name, word or "", matched, list_url(urls, filter_values(fewer))))
    return ways


def decoded(reviews: Iterable[Review]) -> list[Object]:
    """The reviews in served form, as templates take them."""
    return [decode(bytes(review.json)) for review in reviews]


def wrong_list_page(
    templates: Environment,
    dataset: Dataset,
    urls: ServiceUrls,
    given: Iterable[tuple[str, str]],
    bad: BadQuery,
) -> bytes:
    """The form as it was filled in with `given`, and what is wrong, `text/html; charset=utf-8`."""
    values = {name: SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value) for name, value in given if value}
    issues = {issue.parameter: issue.message for issue in bad.issues}
    return _form_page(templates, dataset, urls, values, issues=issues, url="")


def filter_values(query: Query) -> dict[str, str]:
    """The filters of a query as the form has them, by name in the order of the contract."""
    asked = [(each.name, getattr(query, each.name)) for each in fields(query) if each.name not in PAGING]
    return {name: value if isinstance(value, str) else f"{value:.15g}" for name, value in asked if value}


def last_page(found: ReviewList) -> int:
    """The number of the last page of what was found; the first if that is nothing."""
    matched: int = found.frame["matched"]
    return max(1, math.ceil(matched / PAGE_SIZE))


def list_url(urls: ServiceUrls, values: Mapping[str, str], number: int = 1) -> str:
    """Where a page of the reviews is that pass these filters."""
    return urls.selection(**values, page=number) if number > 1 else urls.selection(**values)


def _form_page(
    templates: Environment, dataset: Dataset, urls: ServiceUrls, values: Mapping[str, str], **shown: Json
) -> bytes:
    """The page of the list; the form offers `choices`, the labels of values by parameter."""
    labels, services = service_labels(dataset), chain.from_iterable(map(sorted, dataset.services.values()))
    choices = {
        "mentions_technician": {name: name for name in _offered(dataset.technicians)},
        "mentions_service": {id: labels.get(id, id) for id in _offered(services)},
        "source": {source: source_name(source) for source in _offered(dataset.sources)},
    }
    shown |= {"values": values, "choices": choices, "distribution": distribution(dataset)}
    return rendered(templates, "list.html", dataset, urls, **shown)


def _offered(names: Iterable[str]) -> Iterable[str]:
    return islice((name for name in names if len(name) <= MOST_LINE), MOST_CHOICES)


def review_page(templates: Environment, dataset: Dataset, urls: ServiceUrls, review: Review) -> bytes:
    """The page of one review, whole, `text/html; charset=utf-8`."""
    shown = decode(bytes(review.json))
    newer, older = (each and decode(bytes(each.json)) for each in neighbours(dataset, review))
    return rendered(
        templates,
        "review.html",
        dataset,
        urls,
        review=shown,
        newer=newer,
        older=older,
        distribution=distribution(dataset),
        title=review_title(shown),
        description=one_line(review_content(shown), MOST_LINE),
    )


class BeyondLastPage(LookupError):
    """The list that `query` asks for ends before the page that it asks for; `last` is its last one."""

    def __init__(self, query: Query, last: int):
        self.query, self.last = query, last


def nowhere_page(templates: Environment, dataset: Dataset, urls: ServiceUrls, is_review: bool) -> bytes:
    """What people read where there is no review, or nothing at all, `text/html; charset=utf-8`."""
    return rendered(templates, "nowhere.html", dataset, urls, is_review=is_review, last=0)


def beyond_page(templates: Environment, dataset: Dataset, urls: ServiceUrls, beyond: BeyondLastPage) -> bytes:
    """What people read beyond the last page of a list, `text/html; charset=utf-8`."""
    last_url = list_url(urls, filter_values(beyond.query), beyond.last)
    shown = {"is_review": False, "last": beyond.last, "last_url": last_url}
    return rendered(templates, "nowhere.html", dataset, urls, **shown)


def rendered(templates: Environment, name: str, dataset: Dataset, urls: ServiceUrls, **shown: Json) -> bytes:
    """A template with what all of them need, and what is `shown` by this one."""
    business = dataset.business
    language = business.get("language") or "en"
    common = {
        "business": business,
        "count": len(dataset.reviews),
        "lang": "" if language == "en" else Markup(' lang="{}"').format(language),
        "urls": urls,
        "published_on": published_on(dataset.sources),
        "rating": dataset.aggregate_rating,
        "review_called": review_called(business),
        "review_policy": review_policy(business),
        "service_labels": service_labels(dataset),
        "sources": [source for source in shown_sources(dataset.sources) if source != UNKNOWN_SOURCE],
    }
    return templates.get_template(name).render(common, **shown).encode()


# ---- Documents: the first page, and what is made at load for programs ----


def html_page(templates: Environment, dataset: Dataset, urls: ServiceUrls) -> bytes:
    """The page, `text/html; charset=utf-8`. A section that has nothing to say disappears."""
    return rendered(templates, "page.html", dataset, urls, **_shown(dataset, urls))


def llms_text(templates: Environment, dataset: Dataset, urls: ServiceUrls) -> bytes:
    """The page in Markdown for models (llmstxt.org), in UTF-8."""
    return rendered(templates, "llms.txt", dataset, urls, **_shown(dataset, urls))


def _shown(dataset: Dataset, urls: ServiceUrls) -> dict[str, Json]:
    """What the first page and llms.txt have in common."""
    business, insights = dataset.business, dataset.insights
    entities = {kind: by_mentions(insights["entities"][kind], MOST_ENTITIES) for kind in ENTITY_KINDS}
    quote = one_line(insights.get("pull_quote"), MOST_LINE).strip(QUOTATION_MARKS)
    lead = None if quote else lead_review(dataset)
    return {
        "hours": (business.get("hours") or ())[:MOST_HOURS],
        "areas": (business.get("service_areas") or ())[:MOST_AREAS],
        "distribution": distribution(dataset),
        "insights": insights,
        "is_read_by_model": bool(language_models(insights)),
        "aspects": aspects(insights["aspects"]),
        "topics": by_mentions(insights["topics"], MOST_TOPICS),
        "trend": trend(insights["temporal"]["monthly"]),
        **entities,
        "quote": quote,
        "lead": lead,
        "reviews": [review for review in dataset.newest[:MOST_REVIEWS] if review is not lead],
        "newest": dataset.newest[:TOLD_REVIEWS],
        "questions": insights["faq"][:10],
        "newest_day": calendar_day(dataset.newest[0]) if dataset.newest else "2026-01-01",
        "slug": slug(business["name"]),
        "structured_data": structured_data(business, urls),
    }


def lead_review(dataset: Dataset) -> Object | None:
    """The newest review that says something, whatever its stars; for the first screen without a quotation."""
    return next((each for each in dataset.newest if len(paragraphs(each["text"])) >= SHORTEST_LEAD), None)


def sitemap(dataset: Dataset, urls: ServiceUrls, most: int = MOST_IN_SITEMAP) -> bytes:
    """The pages for people with the days of their last changes (sitemaps.org), `application/xml`."""
    newest = max((review.changed_day for review in dataset.reviews), default="")
    listed = dataset.reviews[:most]
    pages = [(urls.review_page(review.id), review.changed_day) for review in listed]
    entries = [(urls.home, newest), (urls.review_list, newest), *pages]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return "".join([head, *(_sitemap_entry(*entry) for entry in entries), "</urlset>\n"]).encode()


def _sitemap_entry(address: str, day: str) -> str:
    lastmod = f"<lastmod>{day}</lastmod>" if day else ""
    return f"<url><loc>{escape(address)}</loc>{lastmod}</url>\n"


def robots_text(urls: ServiceUrls) -> bytes:
    """robots.txt (RFC 9309), `text/plain`: everything may be read but the endpoints that take POST only."""
    posted = [urlsplit(url).path for url in (urls.mcp, urls.hub) if url]
    return "".join(
        [
            "User-agent: *\n",
            *(f"Disallow: {path}\n" for path in posted),
            "Allow: /\n",
            f"Sitemap: {urls.sitemap}\n",
        ]
    ).encode()


def favicon(templates: Environment) -> bytes:
    """The icon, `image/svg+xml`."""
    return templates.get_template("favicon.svg").render().encode()


def style_source(templates: Environment, name: str) -> str:
    """How a Content-Security-Policy names the style sheet that templates know by this name."""
    digest = hashlib.sha256(str(templates.globals[name]).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def page_headers(templates: Environment) -> tuple[tuple[str, str], ...]:
    """What a browser may do with the page: apply its style, and run no script at all."""
    style = style_source(templates, "style")
    policy = (  # `connect-src` is for auditing tools, which fetch robots.txt from within the page
        f"default-src 'none'; style-src {style}; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    return (
        ("Content-Security-Policy", policy),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Referrer-Policy", "strict-origin-when-cross-origin"),
    )
