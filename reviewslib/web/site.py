"""A site: what every page of one state of the data is made of, as one value.

It is made once, when the data are loaded, with what all pages count of them. This
module must not know requests, and what a page says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from jinja2 import Environment

from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.strict_json import Json
from reviewslib.links import ServiceUrls
from reviewslib.web.fields import FormField
from reviewslib.web.figures import capped
from reviewslib.web.language import Language


class StarRow(NamedTuple):
    """A row of the bars of stars."""

    stars: int
    review_count: int
    # Parameters of the list that find these reviews; empty if there are none.
    filters: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Site:
    """The templates, the data that they show, and the links they have. Immutable."""

    templates: Environment
    dataset: Dataset
    # Absolute, for what leaves the page: texts to copy, metadata, what programs read.
    urls: ServiceUrls
    # For links from page to page.
    paths: ServiceUrls
    # Best first. They are counted here because that needs a pass over all reviews.
    star_rows: tuple[StarRow, ...]

    @property
    def language(self) -> Language:
        """The language of the templates."""
        return cast(Language, self.templates.globals["language"])

    @property
    def fields(self) -> Mapping[str, FormField]:
        """The fields of the search form by parameter, in this language."""
        return cast(Mapping[str, FormField], self.templates.globals["fields"])


def site_of(templates: Environment, dataset: Dataset, urls: ServiceUrls) -> Site:
    """The site of a dataset."""
    return Site(
        templates=templates,
        dataset=dataset,
        urls=urls,
        paths=urls.as_paths(),
        star_rows=star_rows(dataset),
    )


def star_rows(dataset: Dataset) -> tuple[StarRow, ...]:
    """The reviews by whole stars, best first; the counts are those of the rating."""
    counts = dataset.aggregate_rating["distribution"]
    ratings = {review.rating for review in dataset.reviews}
    rows = []
    for stars in (5, 4, 3, 2, 1):
        filters = _star_filters(stars, ratings)
        rows.append(StarRow(stars, capped(counts[str(stars)]), filters))
    return tuple(rows)


def _star_filters(stars: int, ratings: set[float]) -> dict[str, Json]:
    """The filters that find the reviews of `stars` and less than one more star."""
    in_row = [rating for rating in ratings if stars <= rating < stars + 1]
    if not in_row:
        return {}
    highest = max(in_row)
    if highest == stars:
        return {"rating": stars}
    return {"min_rating": stars, "max_rating": f"{highest:.15g}"}
