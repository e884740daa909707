"""The home page, also in Markdown for language models: what it shows of the data.

This module selects and limits; words and markup are in `page.html` and `llms.txt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from reviewslib.dataset import provenance
from reviewslib.dataset.editorial_rules import QUOTATION_MARKS, unquoted
from reviewslib.dataset.insights import (
    counts_names,
    is_counted,
    language_models,
    unread,
)
from reviewslib.dataset.reviews import Dataset, Review
from reviewslib.dataset.strict_json import Json, Object
from reviewslib.dataset.text import loosen
from reviewslib.dataset.vocabulary import ENTITY_KINDS, KINDS, entries_of_kind
from reviewslib.web.chart import trend
from reviewslib.web.figures import aspects, by_mentions, is_listed
from reviewslib.web.frame_height import min_height
from reviewslib.web.language import Language
from reviewslib.web.shown_text import MAX_LINE, one_line, paragraphs, slug
from reviewslib.web.site import Site
from reviewslib.web.structured_data import MAX_AREAS, MAX_HOURS, structured_data
from reviewslib.web.templating import rendered

# Numbers of entries: what fits a screen or two; a section that leaves some out says so.
SHOWN_TOPICS = 6
SHOWN_QUESTIONS = 10
SHOWN_ENTITIES = 8
SHOWN_REVIEWS = 12
# The file for models is read whole, so it has fewer reviews, each in a line.
LLMS_REVIEWS = 10
# Characters of the review in the header; "Great!" says nothing beside a rating.
SHORTEST_LEAD = 20
OPENING_MARKS = tuple(opening for opening, _ in QUOTATION_MARKS)
# The day in the example of `/api/reviews/since/` where there is no review.
EXAMPLE_DAY = "2026-01-01"


def html_page(site: Site) -> bytes:
    """The home page without its empty sections, `text/html; charset=utf-8`."""
    shown = _shown(site)
    # Only here: at 10,000 reviews finding the words takes up to 40 ms.
    shown["aspects"] = _with_words(site.dataset, shown["aspects"])
    return rendered(site, "page.html", frame_min_height=min_height(site), **shown)


def llms_text(site: Site) -> bytes:
    """The home page in Markdown for language models (llmstxt.org), UTF-8."""
    dataset = site.dataset
    return rendered(
        site,
        "llms.txt",
        published_on=provenance.published_on(dataset.sources),
        review_called=provenance.review_called(dataset.business),
        **_shown(site),
    )


def _shown(site: Site) -> dict[str, Any]:
    """The variables of both templates; some are for one of them."""
    dataset = site.dataset
    insights = dataset.insights
    quote = unquoted(one_line(insights.get("pull_quote"), MAX_LINE))
    lead = None if quote else _newest_with_text(dataset.newest)
    newest = dataset.newest[:SHOWN_REVIEWS]
    return {
        **_business_facts(dataset.business, site.language),
        **_insights(insights),
        "aspects": aspects(insights["aspects"]),
        "subjects": dataset.subjects.by_key,
        "quote": quote,
        "begins_with_mark": quote.startswith(OPENING_MARKS),
        "lead": lead,
        "SHOWN_REVIEWS": SHOWN_REVIEWS,
        "reviews": [review for review in newest if review is not lead],
        "newest": dataset.newest[:LLMS_REVIEWS],
        "newest_day": _newest_day(dataset),
        "answers": _answers(dataset),
        "periods": _periods(dataset),
        "structured_data": structured_data(dataset.business, site.urls),
    }


def _business_facts(business: Object, language: Language) -> dict[str, Json]:
    """What is shown of the business beside its name."""
    address = business.get("address") or {}
    parts = {}
    for part in ("locality", "region", "postal_code", "country"):
        parts[part] = one_line(address.get(part))
    lines = [language.place(parts), parts["country"]]
    return {
        "street": one_line(address.get("street"), MAX_LINE),
        "place": language.listed([line for line in lines if line]),
        "hours": (business.get("hours") or ())[:MAX_HOURS],
        "areas": (business.get("service_areas") or ())[:MAX_AREAS],
        "slug": slug(business["name"]),
    }


def _insights(insights: Object) -> dict[str, Any]:
    """What is shown of the insights; `totals` counts the mentioned entries by kind."""
    shown: dict[str, Any] = {
        "insights": insights,
        "is_counted": is_counted(insights),
        "counts_names": counts_names(insights),
        "models": language_models(insights),
        "unread": unread(insights),
        "topics": by_mentions(insights["topics"], SHOWN_TOPICS),
        "trend": trend(insights["temporal"]["monthly"]),
        "questions": insights["faq"][:SHOWN_QUESTIONS],
        "totals": _totals(insights),
    }
    for kind in ENTITY_KINDS:
        shown[kind] = by_mentions(insights["entities"][kind], SHOWN_ENTITIES)
    return shown


def _totals(insights: Object) -> dict[str, int]:
    totals = {"questions": len(insights["faq"])}
    for kind in KINDS:
        totals[kind] = sum(map(is_listed, entries_of_kind(insights, kind)))
    return totals


class Said(NamedTuple):
    """Words of a customer that judge an aspect, and the review that has them."""

    sentiment: str
    phrase: str
    review_id: str


def _with_words(dataset: Dataset, entries: Sequence[Object]) -> list[Object]:
    """Aspects with `said`: one praise and one complaint, verbatim."""
    completed: list[Object] = []
    for entry in entries:
        completed.append({**entry, "said": _said(dataset, entry)})
    return completed


def _said(dataset: Dataset, entry: Object) -> list[Said]:
    subject = dataset.subjects.by_key.get(f"aspects/{entry['id']}")
    if subject is None:
        return []
    said = []
    for sentiment in ("positive", "negative"):
        ids = sorted(subject.judged[sentiment])
        reviews = [dataset.reviews_by_id[id] for id in ids]
        first = _first_said(entry, sentiment, reviews)
        if first:
            said.append(first)
    return said


def _first_said(
    entry: Object, sentiment: str, reviews: Sequence[Review]
) -> Said | None:
    """The first phrase of an aspect that stands in one of the reviews."""
    for phrase in entry.get("top_phrases") or ():
        words = loosen(phrase)
        for review in reviews:
            if words in review.loose_text:
                return Said(sentiment, phrase, review.id)
    return None


class Answered(NamedTuple):
    """How many reviews the business has answered."""

    percent: float
    answered: int
    unanswered: int


def _answers(dataset: Dataset) -> Answered | None:
    """None where no review has an answer: many exports leave answers out."""
    unanswered = dataset.activity["unanswered_count"]
    answered = len(dataset.reviews) - unanswered
    if not answered:
        return None
    return Answered(dataset.activity["answered_pct"], answered, unanswered)


def _periods(dataset: Dataset) -> list[Object]:
    """The last 90 days and the 90 before, if both have enough reviews."""
    return list((dataset.activity["lately"] or {}).values())


def _newest_with_text(reviews: Sequence[Object]) -> Object | None:
    """The newest review with some text, whatever its rating.

    The header has it where nobody chose a quotation.
    """
    for review in reviews:
        if len(paragraphs(review["text"])) >= SHORTEST_LEAD:
            return review
    return None


def _newest_day(dataset: Dataset) -> str:
    return dataset.reviews[0].day if dataset.reviews else EXAMPLE_DAY
