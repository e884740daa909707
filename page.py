"""The page for people: one dataset becomes one HTML document, with its style, its icon and its headers.

This module turns values into bytes. It must not know files, sockets, the clock, the HTTP server or the
routes: where things are arrives as `Links`. The same data give the same bytes. Text of the data becomes HTML
only by way of `markup`. In print the house speaks in a sans serif and its customers in a serif: the class
`said` marks what a customer wrote.

Sections: Window - Insights - Reviews - Developers - Page - Icon - Style - Headers
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from string import Template
from typing import LiteralString

from links import Links
from markup import (
    MOST_LINE,
    NOTHING,
    QUOTATION_MARKS,
    STAR,
    STARS,
    WEEK,
    Markup,
    bar,
    count_of,
    counted,
    day,
    escape,
    figure,
    fill,
    joined,
    line,
    link,
    name,
    paragraph,
    percent,
    phrases,
    stars,
    web_url,
    wrapped,
)
from reviews import Dataset, calendar_day
from strict_json import Json
from words import (
    MENTIONED,
    MOST_ASPECTS,
    MOST_ENTITIES,
    MOST_QUESTIONS,
    MOST_TOPICS,
    SHOWN_REVIEWS,
    Call,
    by_mentions,
    calls,
    mentioned,
    page_title,
    structured_data,
)

# ---- Window: whose it is, how good, where ----


def window(dataset: Dataset, navigation: Markup) -> Markup:
    """The first screen."""
    business, insights = dataset.business, dataset.insights
    quote = line(insights.get("pull_quote"), MOST_LINE).strip(QUOTATION_MARKS)
    voice = fill('<blockquote class="voice said" dir="auto"><p>{}</p></blockquote>', quote)
    return fill(
        '<header class="window">\n<div class="sign">{}<h1 dir="auto">{}</h1>{}{}</div>\n'
        '<div class="lamp">{}{}</div>\n<div class="glass">{}{}</div>\n</header>\n',
        navigation,
        line(business["name"]),
        _trade(business),
        paragraph(business.get("description"), "about"),
        _rating(dataset),
        _visit(business),
        voice if quote else NOTHING,
        paragraph(insights.get("summary"), "summary"),
    )


def _trade(business: Mapping[str, Json]) -> Markup:
    address = business.get("address") or {}
    town = joined(filter(None, (name(address.get(key)) for key in ("locality", "region"))), ", ")
    trade = joined(filter(None, (name(business.get("category")), town)), " in ")
    known = filter(None, (trade, name(business.get("price_range"))))
    return wrapped('<p class="trade">{}</p>', [joined(known, " · ")])


def _rating(dataset: Dataset) -> Markup:
    rating = dataset.aggregate_rating
    value, count = rating["rating_value"], counted(rating["review_count"])
    if value is None:
        return Markup('<section><h2 class="aside">Rating</h2><p class="count">No reviews yet.</p></section>')
    spoken_for = count_of(count, "verified review")
    if count != dataset.count:  # a file may speak for more reviews than it holds
        spoken_for = f"{count_of(count, 'review')}, {dataset.count:,} of them here"
    return fill(
        '<section><h2 class="aside">Rating</h2><p class="score"><b>{}</b> <span>out of 5</span></p>{}'
        '<p class="count">{}</p>{}</section>',
        figure(value),
        stars(value),
        spoken_for,
        _distribution(rating["distribution"]),
    )


def _distribution(distribution: Mapping[str, int]) -> Markup:
    counts = {star: counted(distribution[str(star)]) for star in (5, 4, 3, 2, 1)}
    total = sum(counts.values()) or 1
    rows = [
        fill(
            '<li><span>{}<span class="aside"> {}: </span></span>{}<span>{}</span></li>',
            star,
            "star" if star == 1 else "stars",
            bar([("full", 0, count / total)]),
            f"{count:,}",
        )
        for star, count in counts.items()
    ]
    return wrapped('<ul class="given" role="list">{}</ul>', rows)


def _visit(business: Mapping[str, Json]) -> Markup:
    """How to reach the business: each fact that is known."""
    facts = (
        ("Where", _address(business)),
        ("Open", _hours(business.get("hours") or ())),
        ("Talk to us", _contact(business)),
        ("Serving", joined((name(area) for area in (business.get("service_areas") or ())[:12]), ", ")),
    )
    known = [fill("<div><dt>{}</dt><dd>{}</dd></div>", term, fact) for term, fact in facts if fact]
    return wrapped('<section><h2 class="aside">Visit</h2><dl class="facts">{}</dl></section>', known)


def _address(business: Mapping[str, Json]) -> Markup:
    address, geo = business.get("address") or {}, business.get("geo")
    town = " ".join(filter(None, (line(address.get(key)) for key in ("locality", "region", "postal_code"))))
    place = ", ".join(filter(None, (town, line(address.get("country")))))
    lines = [name(text, MOST_LINE) for text in (address.get("street"), place) if text]
    if geo:
        at = f"mlat={geo['latitude']:.6f}&mlon={geo['longitude']:.6f}"
        lines.append(link(f"https://www.openstreetmap.org/?{at}#map=17", "Map"))
    return joined(lines, "<br>")


def _hours(hours: Sequence[Mapping[str, Json]]) -> Markup:
    rows = [
        fill("{} <span>{} – {}</span>", name(_days(entry["days"])), entry["opens"], entry["closes"])
        for entry in hours[:14]
    ]
    return joined(rows, "<br>")


def _days(days: Sequence[str]) -> str:
    """Monday to Thursday for days in a row, else a list."""
    in_a_row = len(days) > 2 and days[0] in WEEK and list(days) == WEEK[WEEK.index(days[0]) :][: len(days)]
    return f"{days[0]} to {days[-1]}" if in_a_row else ", ".join(days)


def _contact(business: Mapping[str, Json]) -> Markup:
    email, telephone = (line(business.get(key), MOST_LINE) for key in ("email", "telephone"))
    shown = str(business.get("url") or "").partition("//")[2].rstrip("/")
    ways = [link(business["url"], name(shown))] if shown else []
    if dialled := re.sub(r"[^0-9+]", "", telephone):
        ways.append(fill('<a href="tel:{}">{}</a>', dialled, name(telephone)))
    if re.fullmatch(r"[\w.+-]+@[\w.-]+", email):
        parts = joined(map(escape, email.split("@")), "<wbr>@")
        ways.append(fill('<a href="mailto:{}">{}</a>', email, parts))
    return joined(ways, "<br>")


# ---- Insights: aspects, topics, trend, people and services, questions ----

MOST_MONTHS = 60
TREND_FROM = 3  # months; fewer are no trend
AVERAGED_MONTHS = 12


def aspects(dataset: Dataset) -> Markup:
    """Praise to the right of an axis, fault to its left, all on one scale."""
    entries = by_mentions(dataset.insights["aspects"], MOST_ASPECTS)
    counts = [tuple(counted(entry[f"{kind}_count"]) for kind in ASPECT_KINDS) for entry in entries]
    left = max((negative for *_, negative in counts), default=0)
    scale = left + max((positive + neutral for positive, neutral, _ in counts), default=0) or 1
    rows = [_aspect(entry, count, left, scale) for entry, count in zip(entries, counts, strict=True)]
    listed = fill('{}<ul class="aspects" role="list">{}</ul>', ASPECT_KEY, joined(rows))
    return joined([_overall(dataset), listed]) if rows else NOTHING


ASPECT_KINDS = ("positive", "neutral", "negative")
ASPECT_KEY = Markup(
    '<p class="key" aria-hidden="true"><i class="bad"></i> fault <i class="full"></i> praise'
    " <i></i> neither</p>"
)


def _overall(dataset: Dataset) -> Markup:
    shares = [dataset.insights["overall_sentiment"][f"{kind}_pct"] for kind in ASPECT_KINDS]
    if not any(shares):
        return NOTHING
    sentence = "<p>{}% of the reviews are positive, {}% neutral and {}% negative.</p>"
    return fill(sentence, *(f"{share:.0f}" for share in shares))


def _aspect(entry: Mapping[str, Json], counts: tuple[int, ...], left: int, scale: int) -> Markup:
    positive, neutral, negative = counts
    parts: list[tuple[LiteralString, float, float]] = [
        ("bad", (left - negative) / scale, negative / scale),
        ("full", left / scale, positive / scale),
        ("dim", (left + positive) / scale, neutral / scale),
    ]
    known = any(counts)
    said = f"{positive:,} praise, {negative:,} find fault" if known else mentioned(entry, "mention")
    drawn = bar(parts) if known else NOTHING
    title, quoted = name(entry["label"]), phrases(entry["top_phrases"])
    return fill("<li><h3>{}</h3>{}<p>{}</p>{}</li>", title, drawn, said, quoted)


def topics(dataset: Dataset) -> Markup:
    """What customers come back to, told in a few sentences each."""
    told = [
        fill(
            "<div><h3>{}</h3><p>{}</p>{}</div>",
            name(entry["label"]),
            mentioned(entry),
            paragraph(entry["summary"], "answer"),
        )
        for entry in by_mentions(dataset.insights["topics"], MOST_TOPICS)
    ]
    return wrapped('<div class="pairs topics">{}</div>', told)


@dataclass(frozen=True, slots=True)
class Month:
    """One month with reviews; `number` counts months since the year 0."""

    number: int
    count: int
    average: float


def trend(dataset: Dataset) -> Markup:
    """A dot for each month, a line through the average of twelve, and the same by year in words."""
    temporal = dataset.insights["temporal"]
    months = _months(temporal["monthly"])
    if len(months) < TREND_FROM:
        return NOTHING
    years = sorted({month.number // 12 for month in months})
    rows = [_year(year, [month for month in months if month.number // 12 == year]) for year in years]
    return fill(
        "<figure>{}<figcaption>Each dot is a month, larger with more reviews; the line is the average of"
        ' twelve months. Trend: {}.</figcaption></figure><ul class="years" role="list">{}</ul>',
        _chart(months),
        temporal["trend"],
        joined(rows),
    )


def _months(monthly: Iterable[Mapping[str, Json]]) -> list[Month]:
    found = []
    for entry in monthly:
        number = int(entry["month"][:4]) * 12 + int(entry["month"][5:]) - 1
        if entry["average_rating"] is not None:
            found.append(Month(number, counted(entry["review_count"]) or 1, entry["average_rating"]))
    found.sort(key=lambda month: month.number)
    return [month for month in found if month.number > found[-1].number - MOST_MONTHS][-MOST_MONTHS:]


def _average(months: Sequence[Month]) -> float:
    return math.fsum(month.count * month.average for month in months) / sum(month.count for month in months)


def _year(year: int, months: Sequence[Month]) -> Markup:
    count = count_of(sum(month.count for month in months), "review")
    return fill("<li><b>{}</b> {} stars <small>{}</small></li>", year, f"{_average(months):.1f}", count)


def _chart(months: Sequence[Month]) -> Markup:
    first, last = months[0].number, months[-1].number
    low = min(4, math.floor(min(month.average for month in months)))
    most = max(month.count for month in months)

    def across(number: float) -> str:
        return percent((number - first) / max(1, last - first))

    def up(average: float) -> str:
        return percent((5 - average) / (5 - low))

    levels = [
        fill(
            '<line x2="100%" y1="{0}%" y2="{0}%"/><text x="-18" y="{0}%" dy=".35em">{1}</text>',
            up(star),
            star,
        )
        for star in range(low, 6)
    ]
    years = [
        fill('<text x="{}%" y="100%" dy="2.2em">{}</text>', across(number), number // 12)
        for number in range(first, last + 1)
        if number % 12 == 0
    ]
    dots = [
        fill(
            '<circle cx="{}%" cy="{}%" r="{}"/>',
            across(month.number),
            up(month.average),
            f"{2 + 3 * math.sqrt(month.count / most):.3g}",
        )
        for month in months
    ]
    points = [f"{across(month.number)},{up(_average(_year_before(month, months)))}" for month in months]
    return fill(
        '<svg class="chart" role="img" aria-label="Average stars by month; the figures by year follow.">'
        '{}{}{}<svg viewBox="0 0 100 100" preserveAspectRatio="none" overflow="visible">'
        '<polyline points="{}" vector-effect="non-scaling-stroke"/></svg></svg>',
        joined(levels),
        joined(years),
        joined(dots),
        " ".join(points),
    )


def _year_before(month: Month, months: Iterable[Month]) -> list[Month]:
    return [near for near in months if 0 <= month.number - near.number < AVERAGED_MONTHS]


def mentions(dataset: Dataset) -> Markup:
    """People and services in two tables."""
    tables = [(title, _entity_rows(dataset, kind)) for kind, title in MENTIONED]
    return wrapped('<div class="tables">{}</div>', [_table(title, rows) for title, rows in tables if rows])


def _entity_rows(dataset: Dataset, kind: str) -> list[Markup]:
    return [
        fill(
            '<tr><th scope="row">{}{}</th><td>{}</td><td>{}</td></tr>',
            name(entry["label"]),
            phrases(entry["top_phrases"], 1),
            "–" if entry["average_rating"] is None else f"{entry['average_rating']:.2f}",
            f"{counted(entry['mention_count']):,}",
        )
        for entry in by_mentions(dataset.insights["entities"][kind], MOST_ENTITIES)
    ]


def _table(title: LiteralString, rows: Iterable[Markup]) -> Markup:
    head = '<th scope="col">{}</th><th scope="col">Stars</th><th scope="col">Reviews</th>'
    return fill("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", fill(head, title), joined(rows))


def questions(dataset: Dataset) -> Markup:
    """What people ask, answered from reviews."""
    pairs = [
        fill(
            '<div><h3 dir="auto">{}</h3>{}</div>',
            line(entry["question"], MOST_LINE),
            paragraph(entry["answer"], "answer"),
        )
        for entry in dataset.insights["faq"][:MOST_QUESTIONS]
    ]
    return wrapped('<div class="pairs">{}</div>', pairs)


# ---- Reviews: the newest, with replies ----


def newest(dataset: Dataset, links: Links) -> Markup:
    """The newest reviews, and the way to the others."""
    labels = {entry["id"]: entry["label"] for entry in dataset.insights["entities"]["services"]}
    entries = [_review(review, dataset.business["name"], labels) for review in dataset.newest[:SHOWN_REVIEWS]]
    listed = wrapped('<div class="reviews">{}</div>', entries)
    return joined([listed, _more(dataset.count - len(entries), links)])


def _review(review: Mapping[str, Json], business: str, labels: Mapping[str, str]) -> Markup:
    services = [labels.get(each, each) for each in review["mentioned_services"]]
    spoken_of = [fill("<li>{}</li>", name(each)) for each in (review["mentioned_technicians"] + services)[:6]]
    return fill(
        "<article><header>{}<h3>{}</h3><p>{}{}</p></header><div>{}{}</div>{}</article>",
        stars(review["rating"]),
        name(review["author"]) or "Somebody",
        day(calendar_day(review)),
        _source(review),
        paragraph(review["text"], "said") or Markup('<p class="silent">A rating without words.</p>'),
        _reply(review["owner_reply"], business) if review["owner_reply"] else NOTHING,
        wrapped('<ul class="spoken-of" role="list" aria-label="Speaks of">{}</ul>', spoken_of),
    )


def _source(review: Mapping[str, Json]) -> Markup:
    if review["source"] == "unknown" and not review["source_url"]:
        return NOTHING
    return fill(
        " <span>on {}</span>", link(review["source_url"], name(review["source"]), "noopener nofollow ugc")
    )


def _reply(reply: Mapping[str, Json], business: str) -> Markup:
    return fill(
        '<div class="reply"><p>Reply from {}{}</p>{}</div>',
        name(business),
        fill(", {}", day(reply["date"])) if reply["date"] else NOTHING,
        paragraph(reply["text"], "replied"),
    )


def _more(rest: int, links: Links) -> Markup:
    ways = (
        (links.reviews, "all as JSON"),
        (links.atom_feed, "the newest as a feed"),
        (links.search, "search"),
    )
    linked = joined((link(url, text) for url, text in ways), ", ")
    return fill('<p class="more">{} more: {}.</p>', f"{rest:,}", linked) if rest else NOTHING


# ---- Developers: the same for programs ----


# A client, and what it takes: a command, or a file and what belongs into it. $url and $name are filled in.
CLIENTS = (
    ("Claude Code", "", "claude mcp add --transport http $name $shell_url"),
    ("Codex", "", "codex mcp add $name --url $shell_url"),
    ("Gemini CLI", "", "gemini mcp add --transport http $name $shell_url"),
    ("Claude, ChatGPT", "as a custom connector; it has to be a public https address", "$url"),
    ("Cursor", "in .cursor/mcp.json", '{"mcpServers": {"$name": {"url": "$url"}}}'),
    ("VS Code", "in .vscode/mcp.json", '{"servers": {"$name": {"type": "http", "url": "$url"}}}'),
)


def developers(dataset: Dataset, links: Links) -> Markup:
    """Every endpoint with a line for the shell, the MCP address, and how to be told of news."""
    rows = [_call(call, links) for call in calls(dataset, links)]
    return fill(
        "<p>All of this is also there for programs: public, read-only, without a key.</p>"
        '<dl class="endpoints">{}</dl>{}{}',
        joined(rows),
        _mcp(dataset, links.mcp) if links.mcp else NOTHING,
        _news(links),
    )


def _call(call: Call, links: Links) -> Markup:
    path = links.path(call.url) + call.rest
    shown = link(call.url, path) if call.method == "GET" and not call.rest else escape(path)
    return fill(
        "<div><dt><b>{}</b> {}</dt><dd>{}{}</dd></div>", call.method, shown, call.answers, code(call.curl)
    )


def code(text: str) -> Markup:
    """A text to be copied."""
    return fill("<pre><code>{}</code></pre>", text)


def _mcp(dataset: Dataset, url: str) -> Markup:
    values = {"url": url, "shell_url": shlex.quote(url), "name": slug(dataset.business["name"])}
    cards = [
        fill(
            "<div><h4>{}</h4> <span>{}</span>{}</div>",
            client,
            where,
            code(Template(snippet).substitute(values)),
        )
        for client, where, snippet in CLIENTS
    ]
    return fill('<h3 id="mcp">Ask an assistant</h3><div class="clients">{}</div>', joined(cards))


def slug(text: str) -> str:
    """A name that every client takes and no shell minds."""
    return "-".join([*re.findall("[a-z0-9]+", text.lower())[:2], "reviews"])[-40:].strip("-")


def _news(links: Links) -> Markup:
    topics = (links.atom_feed, "Atom"), (links.json_feed, "JSON Feed"), (links.reviews, "all reviews")
    feeds = joined((link(url, title) for url, title in topics[:2]), " or ")
    hub = fill(
        "<p>To be told at once, subscribe with WebSub: post <code>hub.mode=subscribe</code>, your"
        " <code>hub.callback</code> and one of {} as <code>hub.topic</code> to <code>{}</code>. The callback"
        " is asked to confirm, then gets every change.</p>",
        joined((link(url, title) for url, title in topics), ", "),
        links.hub,
    )
    return fill(
        '<h3 id="news">Hear of new reviews</h3><p>Follow the newest in a feed reader: {}.</p>{}',
        feeds,
        hub if links.hub else NOTHING,
    )


# ---- Page: the document around the sections ----


def html_page(dataset: Dataset, links: Links) -> bytes:
    """The page, `text/html; charset=utf-8`. A section that has nothing to say disappears."""
    sections = [
        (id, heading, body)
        for id, heading, body in (
            ("aspects", "Praise and fault", aspects(dataset)),
            ("topics", "What they come back to", topics(dataset)),
            ("trend", "Over time", trend(dataset)),
            ("mentions", "Who and what they name", mentions(dataset)),
            ("reviews", "Newest reviews", newest(dataset, links)),
            ("questions", "Asked and answered", questions(dataset)),
            ("developers", "For developers", developers(dataset, links)),
        )
        if body
    ]
    listed = [
        fill('<a href="#{}">{}</a> ', id, IN_NAVIGATION[id]) for id, *_ in sections if id in IN_NAVIGATION
    ]
    navigation = wrapped('<nav aria-label="On this page">{}</nav>', listed)
    bands = [
        fill(
            '<section id="{0}" class="band" aria-labelledby="{0}-h"><h2 id="{0}-h">{1}</h2>'
            "<div>{2}</div></section>\n",
            *section,
        )
        for section in sections
    ]
    document = fill(
        '<!doctype html>\n<html lang="en">\n{}\n<body>\n<a class="skip" href="#content">Skip to content</a>'
        '\n{}\n{}<main id="content">\n{}</main>\n{}\n</body>\n</html>\n',
        _head(dataset, links),
        STARS,
        window(dataset, navigation),
        joined(bands),
        _foot(dataset, links),
    )
    return document.encode()


IN_NAVIGATION = {
    "aspects": "Praise and fault",
    "reviews": "Reviews",
    "questions": "Questions",
    "developers": "For developers",
}


def _head(dataset: Dataset, links: Links) -> Markup:
    business, title = dataset.business, page_title(dataset)
    about = line(business.get("description") or dataset.insights.get("pull_quote"), 110)
    image = web_url(business.get("image_url"))
    push = fill('<link rel="hub" href="{}">\n', links.hub) if links.hub else NOTHING
    return fill(
        """<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<meta name="description" content="{description}">
<meta name="color-scheme" content="light dark">
<meta name="theme-color" content="#ffffff" media="(prefers-color-scheme: light)">
<meta name="theme-color" content="#14111b" media="(prefers-color-scheme: dark)">
<link rel="canonical" href="{home}">
<link rel="icon" type="image/svg+xml" href="{icon}">
<link rel="alternate" type="application/atom+xml" title="Atom" href="{atom_feed}">
<link rel="alternate" type="application/feed+json" title="JSON Feed" href="{json_feed}">
<link rel="alternate" type="text/plain" title="This page in plain text" href="{llms}">
<link rel="service-desc" type="application/json" href="{contract}">
{push}<meta property="og:type" content="website">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{description}">
<meta property="og:url" content="{home}">
<meta property="og:site_name" content="{business}">
{image}<meta name="twitter:card" content="summary">
<style>{style}</style>
<script type="application/ld+json">{data}</script>
</head>""",
        title=title,
        description=f"{title}. {about}".strip(),
        push=push,
        **asdict(links),
        business=line(business["name"]),
        image=fill('<meta property="og:image" content="{}">\n', image) if image else NOTHING,
        style=STYLE,
        data=in_script(structured_data(dataset, links)),
    )


IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def in_script(value: Json) -> Markup:
    """`value` as JSON inside a script element, which nothing in it can end."""
    return Markup(json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(IN_SCRIPT))


def _foot(dataset: Dataset, links: Links) -> Markup:
    insights = dataset.insights
    drawn = NOTHING
    if insights["review_count"]:
        drawn = fill(
            " What they add up to was drawn from {}{}{}.",
            count_of(counted(insights["review_count"]), "review"),
            fill(" on {}", day(insights["generated_at"])) if insights["generated_at"] else NOTHING,
            fill(" ({})", name(insights["model"])) if insights["model"] else NOTHING,
        )
    return fill(
        "<footer><p>Only verified reviews are shown, as their customers wrote them.{}</p></footer>", drawn
    )


# ---- Icon: a star on a lit window ----


def favicon() -> tuple[bytes, str]:
    """The icon and its type."""
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 32 32" width="32" height="32">'
        f'<path fill="#ffbf3c" d="M-4-4h32v32H-4z"/><path fill="#1d1829" d="{STAR}"/></svg>\n'
    )
    return picture.encode(), "image/svg+xml"


# ---- Style: ink on paper, and one lamp ----

STYLE = Markup(
    """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1d1829; --soft: #574f65; --line: #dcd7e4; --dim: #8d859d;
  --lamp: #ffbf3c; --on-lamp: #1d1829; --glow: #b06500;
  --night: #1d1829; --night-wash: #2a243a; --night-ink: #f1eef7; --night-soft: #b6aec6;
  --sans: "Avenir Next", Avenir, "Segoe UI", "Open Sans", "Noto Sans", Roboto, sans-serif;
  --serif: "Iowan Old Style", "Palatino Linotype", "URW Palladio L", P052, Palatino, Georgia, serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --edge: max(clamp(1.25rem, 5vw, 4.5rem), calc(50vw - 37rem));
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14111b; --ink: #efecf5; --soft: #aea6bd; --line: #373147; --dim: #7d758f;
    --glow: #ffbf3c; --night: #0b0910; --night-wash: #1b1725; --lamp: #f8b42f;
  }
}
* { box-sizing: border-box; margin: 0; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-padding-top: 1rem; }
body { background: var(--paper); color: var(--ink); font: 1.0625rem/1.6 var(--sans);
  overflow-wrap: anywhere; }
a { color: inherit; text-decoration: underline from-font var(--glow); text-underline-offset: .2em; }
a:hover { text-decoration-thickness: .14em; }
:focus-visible { outline: .18rem solid currentColor; outline-offset: .18rem; border-radius: .1rem; }
ul { list-style: none; padding: 0; }
.said { font-family: var(--serif); }
.aside { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
.defs { position: absolute; }
.skip { position: absolute; inset: 0 auto auto 0; padding: .75rem 1.25rem; background: var(--ink);
  color: var(--paper); }
.skip:not(:focus) { transform: translateY(-110%); }

/* The window: a shop front with one lit pane */
.sign, .glass, .lamp { padding-inline: var(--edge); }
.sign { padding-block: 1.25rem 2rem; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; font-size: .9rem; }
nav { margin-bottom: clamp(2rem, 6vw, 4rem); }
nav a { color: var(--soft); padding-block: .25rem; text-decoration-color: transparent; }
nav a:hover { color: var(--ink); text-decoration-color: var(--glow); }
h1 { font-size: clamp(1.7rem, 1.2rem + 2vw, 2.5rem); line-height: 1.12; letter-spacing: -.02em; }
h1 { text-wrap: balance; }
.trade { color: var(--soft); margin-top: .35rem; }
.about { max-width: 34rem; margin-top: 1rem; }
.lamp { background: var(--lamp); color: var(--on-lamp); padding-block: 2rem 2.25rem; --glow: currentColor; }
.lamp .stars { color: var(--on-lamp); height: 1.6rem; }
.score { line-height: 1; display: flex; align-items: baseline; gap: .6rem; margin-bottom: .9rem; }
.score b { font-size: clamp(4rem, 3rem + 5vw, 7.5rem); letter-spacing: -.05em; line-height: .85; }
.count { font-weight: 600; margin-top: .45rem; }
.given { margin-top: 1.1rem; font-variant-numeric: tabular-nums; }
.given li { display: grid; grid-template-columns: 1ch 1fr minmax(4ch, max-content); gap: .8rem; }
.given li { align-items: center; line-height: 1.7; }
.given .bar { background: rgb(29 24 41 / .14); height: .65rem; }
.given li > :last-child { text-align: end; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(13.5rem, 100%), 1fr)); }
.facts { gap: 1.25rem 1.25rem; font-size: .92rem; line-height: 1.5; }
.facts dt { font-weight: 600; }
.facts span { white-space: nowrap; }
.lamp > * + * { margin-top: 2rem; padding-top: 1.75rem; border-top: 1px solid rgb(29 24 41 / .3); }
.glass { padding-block: 2.5rem 1rem; }
.voice { font-size: clamp(1.9rem, 1.25rem + 2.9vw, 3.5rem); line-height: 1.16; letter-spacing: -.01em; }
.voice { text-wrap: balance; }
.voice p::before { content: "\\201c"; } .voice p::after { content: "\\201d"; }
.summary { max-width: 40rem; margin-top: 1.75rem; white-space: pre-line; }
@media (min-width: 58rem) {
  .window { display: grid; grid-template: auto 1fr / minmax(0, 1fr) minmax(24rem, 34vw); }
  .window:has(.score) { min-height: min(100svh, 56rem); }
  .sign, .glass { padding-inline-end: clamp(2rem, 5vw, 5rem); }
  .glass { padding-block: 1rem 3rem; align-self: end; }
  .lamp { grid-area: 1 / 2 / 3 / 3; padding: 3rem clamp(2rem, 3.5vw, 4rem); }
  .lamp { display: flex; flex-direction: column; justify-content: space-between; }
}

/* Drawings */
.stars { height: 1.05em; aspect-ratio: 5; display: block; color: var(--glow); }
.stars > use { fill: currentColor; opacity: .22; }
.stars svg use { fill: currentColor; }
.bar { display: block; width: 100%; height: .8rem; fill: currentColor; }
.bar .bad { fill: var(--ink); } .aspects .full { fill: var(--glow); } .bar .dim { fill: var(--line); }

/* Bands */
.band { padding: clamp(2.5rem, 5vw, 4.5rem) var(--edge); }
.band > h2 { font-size: 1.35rem; line-height: 1.25; letter-spacing: -.01em; margin-bottom: 1.5rem;
  text-wrap: balance; }
.band + .band { padding-top: clamp(1rem, 2.5vw, 2rem); }
h3, h4 { font-size: 1.0625rem; line-height: 1.35; }
@media (min-width: 58rem) {
  .band { display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: 3rem; }
  .band > h2 { position: sticky; top: 1.5rem; align-self: start; }
}
.key { color: var(--soft); font-size: .9rem; margin: .35rem 0 1.75rem; }
.key i { display: inline-block; width: .8em; height: .8em; margin-inline-start: 1em; }
.key i { background: var(--line); }
.key i:first-child { margin: 0; }
.key .bad { background: var(--ink); }
.key .full { background: var(--glow); }
.aspects { display: grid; gap: 1.35rem; }
.aspects p { color: var(--soft); font-size: .9rem; font-variant-numeric: tabular-nums; }
.aspects .phrases { color: var(--ink); font-size: 1.02rem; }
.phrases { display: flex; flex-wrap: wrap; gap: 0 1em; font-weight: 400; font-style: italic;
  line-height: 1.45; }
.aspects .bar { margin-block: .35rem .3rem; }
@media (min-width: 44rem) {
  .aspects li { display: grid; grid-template-columns: 12rem 1fr 11.5rem; column-gap: 1.5rem;
    align-items: center; }
  .aspects p:nth-of-type(1) { text-align: end; }
  .aspects .phrases { grid-column: 2 / 4; }
}

.chart { display: block; width: 100%; height: 15rem; padding: .75rem .5rem 2.25rem 1.5rem;
  overflow: visible; }
.chart line { stroke: var(--line); } .chart text { fill: var(--soft); font-size: .85rem; }
.chart circle { fill: var(--dim); opacity: .6; }
.chart polyline { fill: none; stroke: var(--glow); stroke-width: 3; stroke-linejoin: round; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 44rem; }
.years { display: flex; flex-wrap: wrap; gap: .75rem 2.25rem; margin-top: 1.25rem;
  font-variant-numeric: tabular-nums; }
.years b, .years small { display: block; }
.years small { color: var(--soft); }

.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr)); }
.tables { gap: 2rem 4rem; align-items: start; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: start; padding: .5rem 0; vertical-align: top; border-top: 1px solid var(--line); }
thead th { border: 0; color: var(--soft); font-size: .9rem; font-weight: 400; }
td, th:not(:first-child) { text-align: end; padding-inline-start: 1.25rem; white-space: nowrap; }
tbody th { font-weight: 600; line-height: 1.4; }

.reviews { display: grid; }
article { display: grid; gap: .75rem; padding-block: 1.75rem; border-top: 1px solid var(--line);
  overflow: clip; overflow-clip-margin: .5rem; }
article:first-child { border: 0; padding-top: 0; }
article header p, .spoken-of, .silent { color: var(--soft); font-size: .9rem; }
article header span { display: inline-block; }
article h3 { margin-top: .45rem; }
article .said { font-size: 1.2rem; line-height: 1.55; white-space: pre-line; max-width: 38rem; }
.reply { margin-top: 1.1rem; padding-inline-start: 1.1rem;
  border-inline-start: .2rem solid var(--lamp); max-width: 38rem; font-size: .98rem; }
.reply > :first-child { font-weight: 600; }
.replied { white-space: pre-line; }
.spoken-of { display: flex; flex-wrap: wrap; gap: .15rem 1rem; }
@media (min-width: 50rem) {
  article { grid-template-columns: 11rem minmax(0, 1fr); column-gap: 2rem; }
  .spoken-of { grid-column: 2; }
}
@media (min-width: 76rem) {
  article { grid-template-columns: 11rem minmax(0, 1fr) 11rem; }
  .spoken-of { grid-column: 3; display: block; }
}
.more { padding-top: 1.25rem; border-top: 1px solid var(--line); }
.pairs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); }
.pairs { gap: 2rem 3.5rem; }
.topics h3 + p { color: var(--soft); font-size: .9rem; }
.answer { margin-top: .35rem; color: var(--soft); white-space: pre-line; }

/* The workshop behind the shop */
#developers { background: var(--night); color: var(--night-ink); margin-top: 2rem;
  padding-block: clamp(2.5rem, 5vw, 4.5rem); --glow: var(--lamp); }
#developers h3 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
.endpoints { margin-top: 1.75rem; display: grid; gap: 1.5rem 2rem; }
.endpoints { grid-template-columns: repeat(auto-fit, minmax(min(25rem, 100%), 1fr)); }
.endpoints dt, pre, code { font-family: var(--mono); font-size: .87rem; }
pre code { font-size: 1em; }
.endpoints b { color: var(--lamp); font-weight: 600; }
.endpoints dd, .clients span { color: var(--night-soft); }
pre { background: var(--night-wash); color: var(--night-ink); padding: .7rem .9rem; margin-top: .4rem;
  white-space: pre-wrap; user-select: all; line-height: 1.5; }
.clients { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr));
  gap: 1.25rem 2rem; }
.clients span { font-size: .9rem; }
.clients h4 { display: inline-block; margin-inline-end: .4rem; }
#developers p + p { margin-top: .75rem; }
footer { background: var(--night); color: var(--night-soft); padding: 0 var(--edge) 3rem;
  font-size: .9rem; --glow: var(--lamp); }

@media (forced-colors: active) {
  .bar { border: 1px solid; }
}

/* Paper */
@media print {
  :root { color-scheme: light; font-size: 70%; }
  :root { --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --lamp: #fff; --on-lamp: #000;
    --glow: #a9752b; --edge: 0; }
  .key i { print-color-adjust: exact; }
  nav, .skip, #developers, .more { display: none; }
  .window:has(.sign) { display: block; min-height: 0; }
  .band { display: block; }
  .band > h2 { position: static; }
  .lamp { padding-block: 1rem; }
  .score b { font-size: 3rem; }
  .voice { font-size: 1.6rem; }
  .given { max-width: 20rem; }
  .pairs, .tables, .reviews, .aspects { display: block; }
  .pairs > div, .tables > table, .aspects li { margin-bottom: 1.25rem; }
  article, .aspects li, .pairs > div, tr, figure { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  footer { background: none; color: #444; }
}
"""
)


# ---- Headers: what a browser may do with the page ----

_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
# No script runs at all; `connect-src` is for auditing tools, which fetch robots.txt from within the page.
PAGE_HEADERS = (
    (
        "Content-Security-Policy",
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("X-Content-Type-Options", "nosniff"),
)
