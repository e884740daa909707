"""The required results of the service, defined as plainly as possible: loops over lists, and no index.

Tests compare the service with this module, which follows the design and shares no line with `reviews.py`.
Reviews and insights are values as `json.loads` returns them.

Served form and order - Filters - Answers
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

Object = Mapping[str, Any]

# ---- Served form: every key, null means absent; newest first by day, date as written and id ----

NULLABLE = ("author_avatar_url", "text", "source_url", "verified")


def served_review(review: Object, insights: Object) -> dict[str, Any]:
    """A review of the file as it must be served."""
    served = {
        **review,
        "page_url": "https://r.example/reviews/" + quote(review["id"], safe=""),
    }
    served = {
        **dict.fromkeys(NULLABLE),
        **served,
        "source": served.get("source") or "unknown",
    }
    annotation = (insights.get("per_review") or {}).get(review["id"]) or {}
    for key in ("technicians", "services"):
        if served.get(f"mentioned_{key}") is None:
            served[f"mentioned_{key}"] = annotation.get(key) or []
    reply = served.get("owner_reply")
    served["owner_reply"] = None if reply is None else {"date": None, **reply}
    return served


def day(review: Object) -> str:
    return str(review["date"])[:10]


def served_reviews(reviews: Sequence[Object], insights: Object) -> list[dict[str, Any]]:
    """All that are served, in their order."""
    served = [served_review(review, insights) for review in reviews]
    shown = [review for review in served if review["verified"] in (True, None)]
    return sorted(
        shown,
        key=lambda review: (day(review), review["date"], review["id"]),
        reverse=True,
    )


# ---- Filters: whether a filter, written as in a query string, holds for a review in served form ----


def folded(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    for apostrophe in "’‘ʼ´":
        text = text.replace(apostrophe, "'")
    text = text.replace("İ", "i").replace("ı", "i").replace("ŉ", "'n")
    return unicodedata.normalize("NFC", text.casefold())


def loosen(text: str) -> str:
    """`text` folded, without marks after Latin and Greek letters and in ё; ł ø đ are l o d."""
    kept = ""
    loses_marks = True
    for character in unicodedata.normalize("NFC", text):
        base = unicodedata.normalize("NFD", character)[0]
        if not "\u0300" <= character <= "\u036f":
            loses_marks = (
                unicodedata.name(base, "").startswith(("LATIN", "GREEK"))
                or character in "Ёё"
            )
            kept += base if loses_marks else character
        elif not loses_marks:
            kept += character
    return folded(kept.translate(str.maketrans("ŁØĐłøđ", "LODlod")))


def words(name: str) -> list[str]:
    """The words of a name, compared loosely; dots, commas and hyphens end words."""
    return "".join(
        " " if character in ".,-‐‑‒–" else character for character in loosen(name)
    ).split()


def has_words(name: str, value: str) -> bool:
    return all(word in words(name) for word in words(value))


def means_technician(value: str, name: str, insights: Object) -> bool:
    """Whether all words of `value` are in the name, or `value` is an id of this name in the insights."""
    entries = (insights.get("entities") or {}).get("technicians") or []
    ids = [loosen(entry["id"]) for entry in entries if entry["label"] == name]
    return has_words(name, value) or loosen(value) in ids


def means_service(value: str, service: str, insights: Object) -> bool:
    """Whether `value` is the id of a service, or its label in the insights."""
    entries = (insights.get("entities") or {}).get("services") or []
    names = [service] + [entry["label"] for entry in entries if entry["id"] == service]
    return loosen(value) in [loosen(name) for name in names]


HOLDS: dict[
    str, Callable[[str, Object, Object], bool]
] = {  # arguments: a value, a review, the insights
    "query": lambda value, review, _: (
        review["text"] is not None and loosen(value) in loosen(review["text"])
    ),
    "rating": lambda value, review, _: bool(review["rating"] == float(value)),
    "min_rating": lambda value, review, _: bool(review["rating"] >= float(value)),
    "max_rating": lambda value, review, _: bool(review["rating"] <= float(value)),
    "since": lambda value, review, _: day(review) >= value,
    "until": lambda value, review, _: day(review) <= value,
    "mentions_technician": lambda value, review, insights: any(
        means_technician(value, name, insights)
        for name in review["mentioned_technicians"]
    ),
    "mentions_service": lambda value, review, insights: any(
        means_service(value, service, insights)
        for service in review["mentioned_services"]
    ),
    "source": lambda value, review, _: loosen(value) == loosen(review["source"]),
}


# ---- Answers, over reviews in served form and order ----


def search(
    reviews: Sequence[Object], insights: Object, asked: Mapping[str, str]
) -> Object:
    """The result of a search with the parameters `asked`, without `hints`."""
    filters = {
        name: value
        for name, value in asked.items()
        if value and name not in ("limit", "offset")
    }
    limit = int(float(asked.get("limit") or 20))
    offset = int(float(asked.get("offset") or 0))
    matched = list(reviews)
    for name, value in filters.items():
        matched = [review for review in matched if HOLDS[name](value, review, insights)]
    page = matched[offset : offset + limit]
    return {"matched": len(matched), "returned": len(page), "reviews": page}


def since(reviews: Sequence[Object], first_day: str) -> Object:
    matches = [review for review in reviews if day(review) >= first_day]
    return {"since": first_day, "returned": len(matches), "reviews": matches}
