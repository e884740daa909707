"""What the service has to answer, said as plainly as possible: loops over lists, no index and no cleverness.

Tests compare the real thing with this. It is written from the design, not from `reviews.py`, and shares no
line with it. Reviews and insights are values as `json.loads` returns them.

Served form - Order - Filters - Search - Since - Rating
"""

import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

Object = Mapping[str, Any]

# ---- Served form: every key present, null means absent, unknown keys untouched ----

DEFAULTS = {
    "author_avatar_url": None,
    "text": None,
    "source": "unknown",
    "source_url": None,
    "verified": True,
}


def served_review(review: Object, insights: Object) -> dict[str, Any]:
    """A review of the file as it must be served."""
    served = dict(review)
    for key, default in DEFAULTS.items():
        if served.get(key) is None:
            served[key] = default
    annotation = (insights.get("per_review") or {}).get(review["id"]) or {}
    for key in ("technicians", "services"):
        if served.get(f"mentioned_{key}") is None:
            served[f"mentioned_{key}"] = annotation.get(key) or []
    reply = served.get("owner_reply")
    served["owner_reply"] = None if reply is None else {"date": None, **reply}
    return served


def served_reviews(reviews: Sequence[Object], insights: Object) -> list[dict[str, Any]]:
    """All that are served, in their order."""
    served = [served_review(review, insights) for review in reviews]
    return newest_first([review for review in served if review["verified"]])


# ---- Order: calendar day as written, then id, both descending ----


def day(review: Object) -> str:
    return str(review["date"])[:10]


def newest_first(reviews: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(reviews, key=lambda review: (day(review), review["id"]), reverse=True)


# ---- Filters: whether one filter holds for one review ----


def folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def words(name: str) -> list[str]:
    """The words of a name, folded, without dots and commas at their ends."""
    return [word.strip(".,") for word in folded(name).split() if word.strip(".,")]


def has_words(name: str, value: str) -> bool:
    return all(word in words(name) for word in words(value))


def names_of_service(service: str, insights: Object) -> list[str]:
    """The id of a service and every label that the insights give it."""
    entries = (insights.get("entities") or {}).get("services") or []
    return [service] + [entry["label"] for entry in entries if entry["id"] == service]


def holds(name: str, value: str, review: Object, insights: Object) -> bool:
    """Whether `review`, in served form, passes the filter `name=value`, written as in a query string."""
    if name == "query":
        return review["text"] is not None and folded(value) in folded(review["text"])
    if name == "rating":
        return bool(review["rating"] == float(value))
    if name == "min_rating":
        return bool(review["rating"] >= float(value))
    if name == "since":
        return day(review) >= value
    if name == "until":
        return day(review) <= value
    if name == "mentions_technician":
        return any(has_words(technician, value) for technician in review["mentioned_technicians"])
    if name == "mentions_service":
        known = [alias for one in review["mentioned_services"] for alias in names_of_service(one, insights)]
        return any(folded(value) == folded(alias) for alias in known)
    raise KeyError(name)


# ---- Search ----


def matching(reviews: Sequence[dict[str, Any]], insights: Object, asked: Mapping[str, str]) -> list[Object]:
    """Every review that satisfies every filter of `asked`, newest first."""
    filters = {name: value for name, value in asked.items() if value and name not in ("limit", "offset")}
    return [
        review
        for review in newest_first(reviews)
        if all(holds(name, value, review, insights) for name, value in filters.items())
    ]


def search(reviews: Sequence[dict[str, Any]], insights: Object, asked: Mapping[str, str]) -> Object:
    """The answer to `asked` (`name: value` as in a query string) over `reviews` in served form."""
    limit, offset = int(float(asked.get("limit") or 20)), int(float(asked.get("offset") or 0))
    matched = matching(reviews, insights, asked)
    page = matched[offset : offset + limit]
    return {"matched": len(matched), "returned": len(page), "reviews": page}


# ---- Since ----


def since(reviews: Sequence[dict[str, Any]], first_day: str) -> Object:
    """The answer for `first_day` over `reviews` in served form."""
    wanted = [review for review in newest_first(reviews) if day(review) >= first_day]
    return {"since": first_day, "returned": len(wanted), "reviews": wanted}


# ---- Rating ----


def mean_rating(reviews: Sequence[Object]) -> Fraction | None:
    """The exact mean; None without reviews."""
    return (
        sum((Fraction(review["rating"]) for review in reviews), Fraction()) / len(reviews)
        if reviews
        else None
    )


def distribution(reviews: Sequence[Object]) -> dict[str, int]:
    """How many reviews gave at least this many stars and less than one more."""
    return {str(star): sum(star <= review["rating"] < star + 1 for review in reviews) for star in range(1, 6)}
