"""The required results of the service, defined as plainly as possible: loops over lists, and no index.

Tests compare the service with this module, which follows the design and shares no line
with the program. Reviews and insights are values as `json.loads` returns them.

Served form and order - Comparison - Subjects - Filters - Answers
"""

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

Object = Mapping[str, Any]

# ---- Served form: every key, null means absent; newest first by day, date as written and id ----

NULLABLE = ("author_avatar_url", "text", "source_url", "updated", "verified")


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


# ---- Comparison ----


def folded(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    for apostrophe in "’‘ʼ´":
        text = text.replace(apostrophe, "'")
    text = text.replace("İ", "i").replace("ı", "i").replace("ŉ", "'n")
    return unicodedata.normalize("NFC", text.casefold())


def loosen(text: str) -> str:
    """`text` folded, without marks after Latin and Greek letters and in ё; ł ø đ are l o d.

    Points of Hebrew and Arabic are left out, other widths are the usual one, œ is oe, æ
    ae.
    """
    usual = ""
    for character in text:
        is_of_other_width = "\uff01" <= character <= "\uffef"
        usual += (
            unicodedata.normalize("NFKC", character) if is_of_other_width else character
        )
    unpointed = "".join(
        character
        for character in unicodedata.normalize("NFC", usual)
        if character == "\u05be" or not _is_point(character)
    )
    kept = ""
    loses_marks = True
    for character in unicodedata.normalize("NFC", unpointed):
        base = unicodedata.normalize("NFD", character)[0]
        if not "\u0300" <= character <= "\u036f":
            loses_marks = (
                unicodedata.name(base, "").startswith(("LATIN", "GREEK"))
                or character in "Ёё"
            )
            kept += base if loses_marks else character
        elif not loses_marks:
            kept += character
    loose = folded(kept.translate(str.maketrans("ŁØĐłøđ", "LODlod")))
    return loose.replace("œ", "oe").replace("æ", "ae")


def _is_point(character: str) -> bool:
    return "\u0591" <= character <= "\u05c7" or "\u064b" <= character <= "\u0652"


def words(name: str) -> list[str]:
    """The words of a name, compared loosely; dots, commas and hyphens end words."""
    return "".join(
        " " if character in ".,-‐‑‒–" else character for character in loosen(name)
    ).split()


def has_words(name: str, value: str) -> bool:
    return all(word in words(name) for word in words(value))


# ---- Subjects: what reviews speak of ----

KINDS = ("aspects", "technicians", "services", "problems", "service_areas", "topics")
SENTIMENTS = ("positive", "neutral", "negative")


def entries_of(kind: str, insights: Object) -> list[Object]:
    """The entries of a kind in the insights."""
    places = (insights, insights.get("entities") or {})
    return [entry for place in places for entry in place.get(kind) or []]


def name_key(kind: str) -> str:
    """The key of an entry that reviews name it by."""
    return "label" if kind == "technicians" else "id"


def names_in(kind: str, review: Object, insights: Object) -> list[str]:
    """What a review speaks of, by the names that annotations use."""
    if kind in ("technicians", "services"):
        names: list[str] = review[f"mentioned_{kind}"]
        return names
    annotation = (insights.get("per_review") or {}).get(review["id"]) or {}
    items = annotation.get(kind) or []
    return [item["id"] if kind == "aspects" else item for item in items]


def judgement(aspect: str, review: Object, insights: Object) -> str | None:
    """How a review judges an aspect: neutral if it does both; None if not at all."""
    annotation = (insights.get("per_review") or {}).get(review["id"]) or {}
    said = [
        item["sentiment"]
        for item in annotation.get("aspects") or []
        if item["id"] == aspect
    ]
    if not said:
        return None
    is_praised = "positive" in said
    is_criticized = "negative" in said
    if is_praised == is_criticized:
        return "neutral"
    return "positive" if is_praised else "negative"


def subjects(reviews: Sequence[Object], insights: Object) -> list[dict[str, Any]]:
    """All subjects: kind, id, label and `ids`, the ids of reviews that speak of each.

    The entries of the insights come first, then people and services that only reviews
    name; of several with the same kind and id the first counts.
    """
    found: list[dict[str, Any]] = []
    for is_listed in (True, False):
        for kind in KINDS:
            entries = entries_of(kind, insights)
            if not is_listed:
                entries = unlisted(kind, reviews, insights)
            for entry in entries:
                found.append(subject_of(kind, entry, reviews, insights))
    keys = [(it["kind"], it["id"]) for it in found]
    return [it for at, it in enumerate(found) if keys.index(keys[at]) == at]


def unlisted(
    kind: str, reviews: Sequence[Object], insights: Object
) -> list[dict[str, Any]]:
    """Entries for the people or services that reviews name and no entry has."""
    if kind not in ("technicians", "services"):
        return []
    listed = [entry[name_key(kind)] for entry in entries_of(kind, insights)]
    named = [name for each in reviews for name in names_in(kind, each, insights)]
    return [{"id": name, "label": name} for name in named if name not in listed]


def subject_of(
    kind: str, entry: Object, reviews: Sequence[Object], insights: Object
) -> dict[str, Any]:
    """An entry as a subject; its examples, where no review is known to name its kind."""
    subject = {"kind": kind, "id": entry["id"], "label": entry["label"]}
    examples = entry.get("example_review_ids") or []
    is_named = any(names_in(kind, each, insights) for each in reviews)
    if examples and not is_named:
        subject["ids"] = [each["id"] for each in reviews if each["id"] in examples]
        subject["examples_of"] = entry.get("mention_count")
        return subject
    name = entry[name_key(kind)]
    subject["ids"] = [
        each["id"] for each in reviews if name in names_in(kind, each, insights)
    ]
    return subject


def is_called(subject: Object, value: str) -> bool:
    """Whether `value` is exactly the id or label of a subject."""
    return loosen(value) in (loosen(subject["id"]), loosen(subject["label"]))


def label_words(text: str) -> list[str]:
    """The words of a label or value: letters, digits and underscores."""
    spaced = "".join(
        letter if letter.isalnum() or letter == "_" else " " for letter in loosen(text)
    )
    return spaced.split()


def are_alike(first: str, second: str) -> bool:
    """Whether two words are equal, but for an ending of at most three letters."""
    if first == second:
        return True
    for length in range(4, min(len(first), len(second)) + 1):
        is_short = max(len(first), len(second)) - length <= 3
        if is_short and first[:length] == second[:length]:
            return True
    return False


def meant(
    value: str, reviews: Sequence[Object], insights: Object
) -> list[dict[str, Any]]:
    """The subjects that a value of `mentions` means."""
    every = subjects(reviews, insights)
    keyed = [it for it in every if loosen(f"{it['kind']}/{it['id']}") == loosen(value)]
    called = [it for it in every if is_called(it, value)]
    words_of_value = list(dict.fromkeys(label_words(value)))[:8]
    worded = []
    for it in every:
        labels = label_words(it["label"])
        if words_of_value and all(
            any(are_alike(word, other) for other in labels) for word in words_of_value
        ):
            worded.append(it)
    return keyed or called or worded


# ---- Filters: whether one, written as in a query string, holds for a review ----

Reviews = Sequence[Object]


def has_phrase(
    asked: Object, review: Object, reviews: Reviews, insights: Object
) -> bool:
    if review["text"] is None:
        return False
    return loosen(asked["query"]) in loosen(review["text"])


def mentions_technician(
    asked: Object, review: Object, reviews: Reviews, insights: Object
) -> bool:
    """Exactly the name or id of a person; if nobody has it, the words of a name."""
    value = asked["mentions_technician"]
    people = [it for it in subjects(reviews, insights) if it["kind"] == "technicians"]
    named = [it["label"] for it in people if is_called(it, value)]
    if not named:
        named = [it["label"] for it in people if has_words(it["label"], value)]
    return any(name in named for name in review["mentioned_technicians"])


def mentions_service(
    asked: Object, review: Object, reviews: Reviews, insights: Object
) -> bool:
    """Exactly the id or the label of a service."""
    value = asked["mentions_service"]
    services = [it for it in subjects(reviews, insights) if it["kind"] == "services"]
    named = [it["id"] for it in services if is_called(it, value)]
    return any(id in named for id in review["mentioned_services"])


def mentions(asked: Object, review: Object, reviews: Reviews, insights: Object) -> bool:
    found = meant(asked["mentions"], reviews, insights)
    return any(review["id"] in it["ids"] for it in found)


def is_judged(
    asked: Object, review: Object, reviews: Reviews, insights: Object
) -> bool:
    """By the aspects in `mentions`; by any aspect if there is none."""
    found = meant(asked["mentions"], reviews, insights) if "mentions" in asked else []
    aspects = [it["id"] for it in found if it["kind"] == "aspects"]
    if not aspects:
        aspects = names_in("aspects", review, insights)
    judgements = [judgement(aspect, review, insights) for aspect in aspects]
    return asked["sentiment"] in judgements


HOLDS: dict[str, Callable[[Object, Object, Reviews, Object], bool]] = {
    "query": has_phrase,
    "rating": lambda asked, it, *_: bool(it["rating"] == float(asked["rating"])),
    "min_rating": lambda asked, it, *_: bool(
        it["rating"] >= float(asked["min_rating"])
    ),
    "max_rating": lambda asked, it, *_: bool(
        it["rating"] <= float(asked["max_rating"])
    ),
    "since": lambda asked, it, *_: day(it) >= asked["since"],
    "until": lambda asked, it, *_: day(it) <= asked["until"],
    "mentions": mentions,
    "sentiment": is_judged,
    "replied": lambda asked, it, *_: (
        (it["owner_reply"] is not None) == (asked["replied"] == "true")
    ),
    "mentions_technician": mentions_technician,
    "mentions_service": mentions_service,
    "source": lambda asked, it, *_: loosen(asked["source"]) == loosen(it["source"]),
}


# ---- Answers, over reviews in served form and order ----


def search(reviews: Reviews, insights: Object, asked: Mapping[str, str]) -> Object:
    """The result of a search with the parameters `asked`, without `hints`."""
    filters = {
        name: value
        for name, value in asked.items()
        if value and name not in ("limit", "offset")
    }
    limit = int(float(asked.get("limit") or 20))
    offset = int(float(asked.get("offset") or 0))
    matched = list(reviews)
    for name in filters:
        matched = [it for it in matched if HOLDS[name](filters, it, reviews, insights)]
    page = matched[offset : offset + limit]
    result: dict[str, Any] = {"matched": len(matched), "returned": len(page)}
    result |= figures(matched)
    if filters:
        result["people"] = people_in(matched, reviews, insights)
    if "mentions" in filters:
        found = meant(filters["mentions"], reviews, insights)
        result["meant"] = [said_of(it) for it in found[:20]]
    if "mentions" in filters or "sentiment" in filters:
        result |= unread(insights)
    return {**result, "reviews": page}


def unread(insights: Object) -> Object:
    """In how many of the reviews with words was looked, while some are left."""
    read = insights.get("read_count")
    worded = insights.get("worded_count")
    if read is None or worded is None or read >= worded:
        return {}
    return {"read_count": read, "worded_count": worded}


def figures(matched: Reviews) -> Object:
    """The average and the number of reviews by whole stars."""
    stars = [it["rating"] for it in matched]
    distribution = {"1": 0, "2": 0, "3": 0, "4": 0, "5": 0}
    for rating in stars:
        distribution[str(int(rating))] += 1
    average = round(math.fsum(stars) / len(stars), 2) if stars else None
    return {"average_rating": average, "distribution": distribution}


def people_in(matched: Reviews, reviews: Reviews, insights: Object) -> list[Object]:
    """The five people whom most mention; of equals, who is first in the newest review."""
    names = [name for it in matched for name in it["mentioned_technicians"]]
    keys = {}
    for it in subjects(reviews, insights):
        if it["kind"] == "technicians":
            keys[it["label"]] = f"technicians/{it['id']}"
    # A name that is the id of somebody else has no subject.
    known = [name for name in dict.fromkeys(names) if name in keys]
    ranked = sorted(known, key=names.count, reverse=True)
    return [
        {"mentions": keys[name], "label": name, "count": names.count(name)}
        for name in ranked[:5]
    ]


def said_of(subject: Object) -> Object:
    """What a result says of a subject."""
    said = {
        "mentions": f"{subject['kind']}/{subject['id']}",
        "label": subject["label"],
        "count": len(set(subject["ids"])),
    }
    if subject.get("examples_of") is not None:
        said["examples_of"] = subject["examples_of"]
    return said


def since(reviews: Sequence[Object], first_day: str) -> Object:
    matches = [review for review in reviews if day(review) >= first_day]
    return {"since": first_day, "returned": len(matches), "reviews": matches}
