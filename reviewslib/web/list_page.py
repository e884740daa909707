"""The list of reviews, a page at a time, with its search form.

Labels and kinds of the form's fields are in `fields`; this module says which reviews,
which choices and which other searches a page has.

Sections: addresses of lists - pages - choices of the form - similar searches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from markupsafe import Markup

from reviewslib.dataset import provenance
from reviewslib.dataset.hinting import hints
from reviewslib.dataset.hints import (
    FittingEntry,
    FittingQuestion,
    Hint,
    Unmentioned,
    WordBeginning,
)
from reviewslib.dataset.query import BadQuery, Query
from reviewslib.dataset.reviews import Dataset, Review, service_labels
from reviewslib.dataset.searching import ReviewList, matching_in_any_order
from reviewslib.dataset.strict_json import SURROGATE, Object
from reviewslib.dataset.text import MAX_WORDS, loose_words
from reviewslib.links import ServiceUrls
from reviewslib.web.marks import marked
from reviewslib.web.shown_text import MAX_LINE
from reviewslib.web.site import Site
from reviewslib.web.templating import rendered

# Reviews on a page.
PAGE_SIZE = 20
# Parameters of a query that are no filters.
PAGING = ("limit", "offset")

# ---- Addresses of lists ----


def filter_values(query: Query) -> dict[str, str]:
    """The filters of a query by name, as the form submits them.

    Their order is that of the contract.
    """
    values = {}
    for name, value in asdict(query).items():
        # `False` is a value; an empty text is none.
        if name not in PAGING and value not in (None, ""):
            values[name] = _as_submitted(value)
    return values


def _as_submitted(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return f"{value:.15g}"


def list_url(urls: ServiceUrls, values: Mapping[str, str], number: int = 1) -> str:
    """The URL of a page of the list with these filters."""
    if number == 1:
        return urls.selection(**values)
    return urls.selection(**values, page=number)


def _feed_url(urls: ServiceUrls, values: Mapping[str, str]) -> str:
    """The URL of the feed of a selection, empty if it has none.

    This page finds several words in any order, and the search finds them as a phrase,
    so that the feed would be another selection.
    """
    words = loose_words(values.get("query", ""))
    if not values or not urls.search_feed or len(words) > 1:
        return ""
    return urls.feed_of(values)


def last_page(matches: ReviewList) -> int:
    """The number of the last page; 1 without matches."""
    matched: int = matches.frame["matched"]
    return max(1, math.ceil(matched / PAGE_SIZE))


# ---- Pages ----


def list_page(site: Site, query: Query, matches: ReviewList) -> bytes:
    """A page of `matches`, the result of `query`, with the form.

    The format is `text/html; charset=utf-8`.
    """
    return _form_page(
        site,
        values=filter_values(query),
        issues={},
        **_said_of_all(site, query, matches),
        **_reviews_of_page(query, matches),
        **_other_pages(site, query, matches),
        **_other_searches(site, query, matches),
    )


def _said_of_all(site: Site, query: Query, matches: ReviewList) -> dict[str, Any]:
    """How many match, of what they are a part, and in how many they were looked for."""
    return {
        "matched": matches.frame["matched"],
        "average": matches.frame["average_rating"],
        "parts": _parts(site, query),
        "examples_of": _examples_of(site, query),
        "meant": _meant(site, matches),
        "read_count": matches.frame.get("read_count"),
        "worded_count": matches.frame.get("worded_count"),
    }


def _reviews_of_page(query: Query, matches: ReviewList) -> dict[str, Any]:
    """The reviews, with the texts in which words are marked."""
    entries = [review.decoded() for review in matches.reviews]
    words = loose_words(query.query or "")
    return {
        "reviews": entries,
        "excerpts": _excerpts(matches.reviews, entries, words),
        "MAX_WORDS": MAX_WORDS,
    }


def _other_pages(site: Site, query: Query, matches: ReviewList) -> dict[str, Any]:
    """Which page it is, where the others are, and the feed of the list."""
    values = filter_values(query)
    number = query.offset // PAGE_SIZE + 1
    return {
        "number": number,
        "last": last_page(matches),
        "canonical_url": list_url(site.urls, values, number),
        "feed_url": _feed_url(site.paths, values),
        "page_url": partial(list_url, site.paths, values),
    }


def _other_searches(site: Site, query: Query, matches: ReviewList) -> dict[str, Any]:
    """Where a list without reviews leads on: to searches, and to answers."""
    if matches.frame["matched"]:
        return {"suggestions": [], "answers": []}
    found = hints(site.dataset, query)
    return {
        "suggestions": list(_suggestions(site, query, found)),
        "answers": [hint for hint in found if isinstance(hint, FittingQuestion)],
    }


def _excerpts(
    reviews: Sequence[Review], entries: Sequence[Object], words: Sequence[str]
) -> dict[str, Markup]:
    """The texts in which words are marked, by id; `entries` are the decoded reviews."""
    if not words:
        return {}
    excerpts = {}
    for review, entry in zip(reviews, entries, strict=True):
        excerpts[review.id] = marked(entry["text"] or "", review.loose_text, words)
    return excerpts


def invalid_list_page(
    site: Site, parameters: Iterable[tuple[str, str]], bad: BadQuery
) -> bytes:
    """The form with the submitted `parameters` and their errors.

    The format is `text/html; charset=utf-8`.
    """
    values = {}
    for name, value in parameters:
        if value:
            values[name] = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    return _form_page(
        site,
        values=values,
        issues={issue.parameter: issue.message for issue in bad.issues},
        feed_url="",
        number=1,
        last=1,
    )


class NearbyList(NamedTuple):
    """A list beside the shown one, with its number of reviews.

    The shown one stands among the parts of an aspect without its `url`.
    """

    label: str
    reviews: int
    url: str


def _parts(site: Site, query: Query) -> list[NearbyList]:
    """All reviews of the one aspect that is selected, and those that judge it some way.

    Empty if anything else is selected, since the counts would be others.
    """
    subject = site.dataset.subjects.by_key.get(query.mentions or "")
    if subject is None or subject.kind != "aspects" or not _is_alone(query):
        return []
    # TRANSLATORS: all reviews about a subject, beside those that praise it: "All 12"
    every = site.language.say("All")
    all_reviews = NearbyList(
        every, len(subject.review_ids), _part_url(site, query, None)
    )
    parts = [all_reviews]
    for sentiment, label in site.fields["sentiment"].choices.items():
        count = len(subject.judged[sentiment])
        parts.append(NearbyList(label, count, _part_url(site, query, sentiment)))
    return parts


def _examples_of(site: Site, query: Query) -> int | None:
    """The figure that the list has only examples of; None if it has them all."""
    subject = site.dataset.subjects.by_key.get(query.mentions or "")
    return subject.example_of if subject and _is_alone(query) else None


def _is_alone(query: Query) -> bool:
    """Whether a query has no other filters than `mentions` and `sentiment`."""
    return filter_values(query).keys() <= {"mentions", "sentiment"}


def _part_url(site: Site, query: Query, sentiment: str | None) -> str:
    """The list of the part; empty for the one that `query` asks for."""
    if sentiment == query.sentiment:
        return ""
    return list_url(site.paths, filter_values(replace(query, sentiment=sentiment)))


def _meant(site: Site, matches: ReviewList) -> list[NearbyList]:
    """What the words in `mentions` mean, if several subjects have them."""
    meant = matches.frame.get("meant", ())
    if len(meant) < 2:
        return []
    parts = []
    for said in meant:
        url = list_url(site.paths, {"mentions": said["mentions"]})
        parts.append(NearbyList(said["label"], said["count"], url))
    return parts


class Selected(NamedTuple):
    """A filter as a reader sees it: the label of its field and that of its value."""

    parameter: str
    label: str
    value: str


def _selection(site: Site, values: Mapping[str, str], labels: Labels) -> list[Selected]:
    """The filters in words, in the order of the form."""
    selection = []
    for parameter, field in site.fields.items():
        if parameter in values:
            value = values[parameter]
            label = labels[parameter].get(value, value)
            selection.append(Selected(parameter, field.label, label))
    return selection


def _said_together(selection: Sequence[Selected]) -> list[Selected]:
    """The selection for a heading.

    A subject and how it is judged are one: "Price: Praise".
    """
    by_parameter = {selected.parameter: selected for selected in selection}
    if not by_parameter.keys() >= {"mentions", "sentiment"}:
        return list(selection)
    subject = by_parameter["mentions"]
    judged = by_parameter["sentiment"]
    together = Selected("mentions", label=subject.value, value=judged.value)
    others = [one for one in selection if one not in (subject, judged)]
    return [together, *others]


def _form_page(site: Site, values: Mapping[str, str], **shown: Any) -> bytes:
    """A page with the form."""
    labels = _labels(site)
    selection = _selection(site, values, labels)
    offers = _offers(site, values, labels)
    return rendered(
        site,
        "list.html",
        values=values,
        offers=offers,
        selection=selection,
        heading_parts=_said_together(selection),
        more=_folded_away(site, offers),
        **shown,
    )


def _folded_away(site: Site, offers: Offers) -> list[str]:
    """What the fields that are folded away are called, each once."""
    summaries = []
    for parameter, field in site.fields.items():
        has_choice = offers.get(parameter, True)
        if field.stands == "more" and has_choice and field.summary not in summaries:
            summaries.append(field.summary)
    return summaries


def beyond_page(site: Site, query: Query, last: int) -> bytes:
    """The page of a 404 response for a page after the last one of a list, HTML."""
    last_url = list_url(site.paths, filter_values(query), last)
    return rendered(
        site, "not_found.html", is_review=False, last=last, last_url=last_url
    )


# ---- Choices of the form ----

# Sources. A longer list is slower to use than the field for words.
MAX_CHOICES = 60
# Subjects of a kind, of which there are six.
MAX_IN_GROUP = 20


# By parameter: labels by value.
Labels = Mapping[str, Mapping[str, str]]


def _labels(site: Site) -> Labels:
    """The labels of the values of each filter, of the form or of the data."""
    sources = _short(site.dataset.sources)
    of_form = {parameter: field.choices for parameter, field in site.fields.items()}
    return of_form | {
        "mentions": _subject_labels(site.dataset),
        "mentions_service": service_labels(site.dataset),
        "source": {source: provenance.source_name(source) for source in sources},
    }


def _subject_labels(dataset: Dataset) -> dict[str, str]:
    """By `kind/id`: the labels of what at least one review mentions."""
    labels = {}
    for key, subject in dataset.subjects.by_key.items():
        if subject.review_ids and len(subject.id) <= MAX_LINE:
            labels[key] = subject.label
    return labels


class Group(NamedTuple):
    """Choices of the same kind; those without a label stand alone."""

    label: str
    choices: Mapping[str, str]


# By parameter of a field with choices; without any the field is left out.
Offers = Mapping[str, list[Group]]


def _offers(site: Site, values: Mapping[str, str], labels: Labels) -> Offers:
    """What can be chosen: what is offered, and the submitted value in any case."""
    offers = {}
    for parameter, field in site.fields.items():
        if field.input != "choice":
            continue
        groups = _groups(site, parameter, labels[parameter])
        value = values.get(parameter)
        if value and not any(value in group.choices for group in groups):
            chosen = {value: labels[parameter].get(value, value)}
            groups.insert(0, Group("", chosen))
        offers[parameter] = groups
    return offers


def _groups(site: Site, parameter: str, labels: Mapping[str, str]) -> list[Group]:
    if parameter == "mentions":
        return _groups_of_subjects(site, labels)
    if not labels:
        return []
    return [Group("", labels)]


def _groups_of_subjects(site: Site, labels: Mapping[str, str]) -> list[Group]:
    """The choices of the field "About"; of each kind those most reviews mention."""
    subjects = site.dataset.subjects
    groups = []
    for kind, label in site.fields["mentions"].groups.items():
        mentioned = [one for one in subjects.of_kind(kind) if one.key in labels]
        mentioned.sort(key=lambda one: len(one.review_ids), reverse=True)
        choices = {one.key: one.label for one in mentioned[:MAX_IN_GROUP]}
        if choices:
            groups.append(Group(label, choices))
    return groups


def _short(names: Iterable[str]) -> Iterable[str]:
    """The first names that fit into a list of choices."""
    short = (name for name in names if len(name) <= MAX_LINE)
    return islice(short, MAX_CHOICES)


# ---- Similar searches ----


class Suggestion(NamedTuple):
    """A search that finds reviews: like another one without the filter `parameter`.

    If there is a `word`, the filter keeps only this word; if there is a `subject`, the
    search is for the reviews that speak of it.
    """

    parameter: str
    word: str
    subject: str
    matched: int
    url: str


def _suggestions(
    site: Site, query: Query, found: Sequence[Hint]
) -> Iterator[Suggestion]:
    """The searches that find reviews: of what hints name, or with one filter less."""
    for change in [*_hinted(found), *_with_less(query)]:
        wider = replace(query, **change.values)
        matched = len(matching_in_any_order(site.dataset, wider))
        if matched:
            url = list_url(site.paths, filter_values(wider))
            yield Suggestion(
                change.parameter, change.word, change.subject, matched, url
            )


class Change(NamedTuple):
    """Other values of filters, as a Suggestion says it."""

    values: dict[str, Any]
    parameter: str
    word: str = ""
    subject: str = ""


def _hinted(found: Iterable[Hint]) -> Iterator[Change]:
    """The searches that hints name."""
    for hint in found:
        match hint:
            case FittingEntry():
                values = {hint.parameter: None, "mentions": hint.mentions}
                yield Change(values, hint.parameter, subject=hint.label)
            case WordBeginning():
                yield Change({"query": hint.beginning}, "query", word=hint.beginning)
            case Unmentioned() if hint.texts:
                values = {hint.parameter: None, "query": hint.name}
                yield Change(values, hint.parameter, word=hint.name)


def _with_less(query: Query) -> Iterator[Change]:
    """The searches without one filter, and with one word alone."""
    for name in filter_values(query):
        yield Change({name: None}, name)
    words = dict.fromkeys((query.query or "").split())
    # A word of marks alone, such as an accent, is none that texts can have.
    sought = [word for word in words if loose_words(word)]
    for word in sought[:MAX_WORDS]:
        yield Change({"query": word}, "query", word=word)
