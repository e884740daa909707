"""The fields of the search form: labels, kinds, places and choices, in a language."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from reviewslib.web.language import Language

NO_LABELS: Mapping[str, str] = MappingProxyType({})


class FormField(NamedTuple):
    """A field of the form."""

    label: str
    # How it is shown: as a "choice", as an input of this type, or not at all ("none").
    input: str
    # Its place: "first", among "more" fields, there only "if used", or "nowhere".
    stands: str
    # What it is called where "more" fields are folded away.
    summary: str = ""
    # The choice that filters nothing.
    nothing: str = ""
    # Labels by value, where they are not in the data.
    choices: Mapping[str, str] = NO_LABELS
    # Of choices that are in the data: the labels of their kinds.
    groups: Mapping[str, str] = NO_LABELS


def fields_in(language: Language) -> Mapping[str, FormField]:
    """The fields by parameter, in the order of the form."""
    say = language.say
    return {
        "query": FormField(label=say("Words"), input="search", stands="first"),
        "rating": FormField(
            label=say("Stars"),
            input="choice",
            stands="first",
            nothing=say("Any stars"),
            choices={str(stars): stars_text(language, stars) for stars in BEST_FIRST},
        ),
        "min_rating": FormField(
            label=say("Stars, at least"),
            input="text",
            stands="if used",
        ),
        "max_rating": FormField(
            label=say("Stars, at most"),
            input="text",
            stands="if used",
        ),
        "mentions": FormField(
            # TRANSLATORS: the label of a field: which subject a review is about
            label=say("About"),
            input="choice",
            stands="more",
            # TRANSLATORS: one of several fields that "More: …" names
            summary=say("subject"),
            # TRANSLATORS: the choice of the field "About" that filters nothing
            nothing=say("Anything"),
            groups={
                "aspects": say("Praise and criticism"),
                "topics": say("Topics"),
                "technicians": say("People"),
                "services": say("Services"),
                "problems": say("Problems"),
                "service_areas": say("Places"),
            },
        ),
        "sentiment": FormField(
            # TRANSLATORS: the label of a field: whether a review praises its subject
            label=say("Judged"),
            input="choice",
            stands="if used",
            # TRANSLATORS: the choice of "Judged" and "Answered" that filters nothing
            nothing=say("Either way"),
            choices={
                "positive": say("Praise"),
                "negative": say("Criticism"),
                "neutral": say("Neutral"),
            },
        ),
        "replied": FormField(
            # TRANSLATORS: the label of a field: whether the owner answered a review
            label=say("Answered"),
            input="choice",
            stands="more",
            # TRANSLATORS: one of several fields that "More: …" names
            summary=say("answer"),
            nothing=say("Either way"),
            choices={"true": say("Yes"), "false": say("No")},
        ),
        "mentions_technician": FormField(
            # TRANSLATORS: the label of a field: somebody who works there
            label=say("Person"),
            input="text",
            stands="if used",
        ),
        "mentions_service": FormField(
            label=say("Service"),
            input="text",
            stands="if used",
        ),
        "source": FormField(
            # TRANSLATORS: the label of a field: a website such as Google
            label=say("Published on"),
            input="choice",
            stands="more",
            # TRANSLATORS: one of several fields that "More: …" names
            summary=say("source"),
            # TRANSLATORS: the choice of "Published on" that filters nothing
            nothing=say("Anywhere"),
        ),
        "since": FormField(
            # TRANSLATORS: the label of a field: the first day
            label=say("From"),
            input="date",
            stands="more",
            # TRANSLATORS: one of several fields that "More: …" names
            summary=say("days"),
        ),
        "until": FormField(
            # TRANSLATORS: the label of a field: the last day
            label=say("Until"),
            input="date",
            stands="more",
            summary=say("days"),
        ),
        "page": FormField(
            # TRANSLATORS: the number of a page of the list
            label=say("Page"),
            input="none",
            stands="nowhere",
        ),
    }


BEST_FIRST = (5, 4, 3, 2, 1)


def stars_text(language: Language, stars: int) -> str:
    """Whole stars in words: 1 star, 5 stars."""
    return language.counted("%(n)s star", "%(n)s stars", stars)
