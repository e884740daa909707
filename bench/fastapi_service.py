"""A FastAPI service of the same routes: what a user would write instead, and the rival in the bench.

Written to be fair to FastAPI 0.130 and later. Answers are Pydantic models with declared return types, which
its documentation calls the fastest way (Pydantic writes the JSON in Rust). Handlers are `async def`, because
nothing in them waits and a thread for each request would cost more. Texts are folded and dates parsed once,
at load. The entity tag is the version of the data, known before any work is done, so a 304 renders nothing.
Search narrows a list, filter by filter. gzip is FastAPI's own middleware at level 6 (its default, 9, is
slower). Not here: feeds, CORS, and the remembering or compressing of answers beforehand.

Run as `REVIEWS_DATA=data uvicorn fastapi_service:app`.

Sections: Models - Store - Application
"""

import hashlib
import json
import os
import unicodedata
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Response
from fastapi.middleware.gzip import GZipMiddleware
from pydantic import BaseModel, ConfigDict, Field

# ---- Models ----


class OwnerReply(BaseModel):
    """The answer of the business."""

    text: str
    date: str | None = None


class Review(BaseModel):
    """One review, in the file and as served."""

    model_config = ConfigDict(extra="allow")

    id: str
    author: str
    author_avatar_url: str | None = None
    rating: float
    date: str
    text: str | None = None
    source: str = "unknown"
    source_url: str | None = None
    owner_reply: OwnerReply | None = None
    verified: bool = True
    mentioned_technicians: list[str] = []
    mentioned_services: list[str] = []


class ReviewsFile(BaseModel):
    """The contents of reviews.json."""

    business: dict[str, Any]
    reviews: list[Review]


class ReviewsDocument(ReviewsFile):
    """The answer of /reviews.json."""

    aggregate_rating: dict[str, Any]


class SearchParameters(BaseModel):
    """The nine parameters of a search."""

    model_config = ConfigDict(extra="forbid")

    query: str | None = Field(None, max_length=200)
    rating: float | None = Field(None, ge=1, le=5)
    min_rating: float | None = Field(None, ge=1, le=5)
    since: date | None = None
    until: date | None = None
    mentions_technician: str | None = Field(None, max_length=200)
    mentions_service: str | None = Field(None, max_length=200)
    limit: int = Field(20, ge=1, le=100)
    offset: int = Field(0, ge=0)


class SearchResult(BaseModel):
    """The answer of a search."""

    matched: int
    returned: int
    reviews: list[Review]


class SinceResult(BaseModel):
    """The answer of /api/reviews/since/{date}."""

    since: date
    returned: int
    reviews: list[Review]


# ---- Store: the data, with what filters compare prepared at load ----


def fold(text: str) -> str:
    """`text` for comparison without regard to case."""
    return unicodedata.normalize("NFC", text).casefold()


def name_words(name: str) -> frozenset[str]:
    """The words of a person's name, without dots and commas."""
    return frozenset(word.strip(".,") for word in fold(name).split())


@dataclass(slots=True)
class Entry:
    """A review and what filters compare."""

    review: Review
    rating: float
    day: date
    text: str
    technicians: list[frozenset[str]]
    services: set[str]


class Store:
    """Everything that is served."""

    def __init__(self, directory: Path):
        reviews_json = (directory / "reviews.json").read_bytes()
        insights_json = (directory / "insights.json").read_bytes()
        file = ReviewsFile.model_validate_json(reviews_json)
        self.insights: dict[str, Any] = json.loads(insights_json)
        self.etag = f'W/"{hashlib.sha256(reviews_json + insights_json).hexdigest()}"'
        reviews = [review for review in file.reviews if review.verified]
        reviews.sort(key=lambda review: (review.date[:10], review.id), reverse=True)
        labels = {entry["id"]: entry["label"] for entry in self.insights["entities"]["services"]}
        self.entries = [self._entry(review, labels) for review in reviews]
        self.document = ReviewsDocument(
            business=file.business, aggregate_rating=self._aggregate_rating(reviews), reviews=reviews
        )

    def _entry(self, review: Review, labels: dict[str, str]) -> Entry:
        annotation = self.insights["per_review"].get(review.id, {})
        review.mentioned_technicians = review.mentioned_technicians or annotation.get("technicians", [])
        review.mentioned_services = review.mentioned_services or annotation.get("services", [])
        services = review.mentioned_services
        return Entry(
            review=review,
            rating=review.rating,
            day=date.fromisoformat(review.date[:10]),
            text=fold(review.text or ""),
            technicians=[name_words(name) for name in review.mentioned_technicians],
            services={fold(name) for service in services for name in (service, labels.get(service, service))},
        )

    @staticmethod
    def _aggregate_rating(reviews: list[Review]) -> dict[str, Any]:
        stars = Counter(int(review.rating) for review in reviews)
        total = sum(review.rating for review in reviews)
        return {
            "rating_value": round(total / len(reviews), 2) if reviews else None,
            "review_count": len(reviews),
            "best_rating": 5,
            "worst_rating": 1,
            "distribution": {str(star): stars[star] for star in range(1, 6)},
        }

    def search(self, wanted: SearchParameters) -> list[Entry]:
        """The entries that pass every filter, newest first."""
        found = self.entries
        if wanted.rating is not None:
            found = [entry for entry in found if entry.rating == wanted.rating]
        if wanted.min_rating is not None:
            found = [entry for entry in found if entry.rating >= wanted.min_rating]
        if wanted.since is not None:
            found = [entry for entry in found if entry.day >= wanted.since]
        if wanted.until is not None:
            found = [entry for entry in found if entry.day <= wanted.until]
        if wanted.mentions_technician:
            words = name_words(wanted.mentions_technician)
            found = [entry for entry in found if any(words <= name for name in entry.technicians)]
        if wanted.mentions_service:
            service = fold(wanted.mentions_service)
            found = [entry for entry in found if service in entry.services]
        if wanted.query:
            needle = fold(wanted.query)
            found = [entry for entry in found if needle in entry.text]
        return found


# ---- Application ----

store = Store(Path(os.environ.get("REVIEWS_DATA", "data")))


async def conditional(response: Response, if_none_match: Annotated[str | None, Header()] = None) -> None:
    """Answer 304 to a client that holds the current data; else send the tag to validate with."""
    headers = {"ETag": store.etag, "Cache-Control": "public, max-age=60"}
    if if_none_match and store.etag in if_none_match:
        raise HTTPException(304, headers=headers)
    response.headers.update(headers)


app = FastAPI(title="Reviews", dependencies=[Depends(conditional)])
app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=6)


@app.get("/reviews.json")
async def reviews_document() -> ReviewsDocument:
    """The business and all its reviews."""
    return store.document


@app.get("/insights.json")
async def insights_document() -> dict[str, Any]:
    """What the reviews say."""
    return store.insights


@app.get("/api/reviews/search")
async def search(wanted: Annotated[SearchParameters, Query()]) -> SearchResult:
    """The reviews that pass every filter."""
    found = store.search(wanted)
    chosen = [entry.review for entry in found[wanted.offset : wanted.offset + wanted.limit]]
    return SearchResult(matched=len(found), returned=len(chosen), reviews=chosen)


@app.get("/api/reviews/since/{since}")
async def reviews_since(since: date) -> SinceResult:
    """The reviews of a day and later."""
    chosen = [entry.review for entry in store.entries if entry.day >= since]
    return SinceResult(since=since, returned=len(chosen), reviews=chosen)
