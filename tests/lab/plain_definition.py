"""The required results of the service, defined as plainly as possible.

Loops over lists, and no index. Tests compare the service with this module, which
follows the design and shares no line with the program. Reviews and insights are values
as `json.loads` returns them.

Sections: served form and order - comparison - subjects - filters - answers.
"""

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

Object = Mapping[str, Any]
Reviews = Sequence[Object]

# ---- Served form and order ----

# Every key is served; null means absent.
NULLABLE = ("author_avatar_url", "text", "source_url", "updated", "verified")


def served_review(review: Object, insights: Object) -> dict[str, Any]:
    """A review of the file as it must be served."""
    served = {**dict.fromkeys(NULLABLE), **review}
    served["page_url"] = "https://r.example/reviews/" + quote(review["id"], safe="")
    served["source"] = review.get("source") or "unknown"
    annotation = annotation_of(review, insights)
    for key in ("technicians", "services"):
        if served.get(f"mentioned_{key}") is None:
            served[f"mentioned_{key}"] = annotation.get(key) or []
    served["owner_reply"] = review.get("owner_reply")
    if served["owner_reply"] is not None:
        served["owner_reply"] = {"date": None, **review["owner_reply"]}
    return served


def annotation_of(review: Object, insights: Object) -> Object:
    """What the insights say of a review; nothing where they have no word of it."""
    return (insights.get("per_review") or {}).get(review["id"]) or {}


def day(review: Object) -> str:
    return str(review["date"])[:10]


def served_reviews(reviews: Reviews, insights: Object) -> list[dict[str, Any]]:
    """All that are served: newest first by day, by date as written, by id."""
    served = [served_review(review, insights) for review in reviews]
    shown = [review for review in served if review["verified"] in (True, None)]
    return sorted(shown, key=order, reverse=True)


def order(review: Object) -> tuple[str, str, str]:
    return day(review), review["date"], review["id"]


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
    usual = "".join(map(of_usual_width, text))
    composed = unicodedata.normalize("NFC", usual)
    unpointed = "".join(filter(is_no_point, composed))
    unmarked = without_marks(unicodedata.normalize("NFC", unpointed))
    loose = folded(unmarked.translate(str.maketrans("ŁØĐłøđ", "LODlod")))
    return loose.replace("œ", "oe").replace("æ", "ae")


def of_usual_width(character: str) -> str:
    if "\uff01" <= character <= "\uffef":
        return unicodedata.normalize("NFKC", character)
    return character


def is_no_point(character: str) -> bool:
    """Whether a character is no point of Hebrew or Arabic; a maqaf is none."""
    if character == "\u05be":
        return True
    is_hebrew = "\u0591" <= character <= "\u05c7"
    is_arabic = "\u064b" <= character <= "\u0652"
    return not (is_hebrew or is_arabic)


def without_marks(text: str) -> str:
    """Composed text without the marks of letters that lose theirs."""
    kept = ""
    loses_marks = True
    for character in text:
        if "\u0300" <= character <= "\u036f":
            if not loses_marks:
                kept += character
            continue
        base = unicodedata.normalize("NFD", character)[0]
        is_western = unicodedata.name(base, "").startswith(("LATIN", "GREEK"))
        loses_marks = is_western or character in "Ёё"
        kept += base if loses_marks else character
    return kept


def words(name: str) -> list[str]:
    """The words of a name, compared loosely; dots, commas and hyphens end words."""
    spaced = loosen(name)
    for separator in ".,-‐‑‒–":
        spaced = spaced.replace(separator, " ")
    return spaced.split()


def has_words(name: str, value: str) -> bool:
    return all(word in words(name) for word in words(value))


# ---- Subjects: what reviews speak of ----

SENTIMENTS = ("positive", "neutral", "negative")
KINDS = ("aspects", "technicians", "services", "problems", "service_areas", "topics")


class Data(NamedTuple):
    """Reviews in served form and order, and what the insights say of them."""

    reviews: Reviews
    insights: Object


def entries_of(kind: str, insights: Object) -> list[Object]:
    """The entries of a kind in the insights."""
    entities = insights.get("entities") or {}
    return [*(insights.get(kind) or []), *(entities.get(kind) or [])]


def name_key(kind: str) -> str:
    """The key of an entry that reviews name it by."""
    return "label" if kind == "technicians" else "id"


def names_in(kind: str, review: Object, insights: Object) -> list[str]:
    """What a review speaks of, by the names that annotations use."""
    if kind in ("technicians", "services"):
        names: list[str] = review[f"mentioned_{kind}"]
        return names
    items = annotation_of(review, insights).get(kind) or []
    if kind == "aspects":
        return [item["id"] for item in items]
    return list(items)


def judgement(aspect: str, review: Object, insights: Object) -> str | None:
    """How a review judges an aspect: neutral if it does both; None if not at all."""
    judged = annotation_of(review, insights).get("aspects") or []
    said = [item["sentiment"] for item in judged if item["id"] == aspect]
    if not said:
        return None
    is_praised = "positive" in said
    is_criticized = "negative" in said
    if is_praised == is_criticized:
        return "neutral"
    return "positive" if is_praised else "negative"


def subjects(data: Data) -> list[dict[str, Any]]:
    """All subjects: kind, id, label and `ids`, the ids of reviews that speak of each.

    The entries of the insights come first, then people and services that only reviews
    name; of several with the same kind and id the first counts.
    """
    found: list[dict[str, Any]] = []
    for entries_in in (listed, unlisted):
        for kind in KINDS:
            for entry in entries_in(kind, data):
                is_new = (kind, entry["id"]) not in [key_of(it) for it in found]
                if is_new:
                    found.append(subject_of(kind, entry, data))
    return found


def key_of(subject: Object) -> tuple[str, str]:
    return subject["kind"], subject["id"]


def listed(kind: str, data: Data) -> list[Object]:
    """The entries of a kind in the insights of the data."""
    return entries_of(kind, data.insights)


def unlisted(kind: str, data: Data) -> list[Object]:
    """Entries for the people or services that reviews name and no entry has."""
    if kind not in ("technicians", "services"):
        return []
    names = [entry[name_key(kind)] for entry in listed(kind, data)]
    found: list[Object] = []
    for review in data.reviews:
        for name in names_in(kind, review, data.insights):
            if name not in names:
                found.append({"id": name, "label": name})
    return found


def subject_of(kind: str, entry: Object, data: Data) -> dict[str, Any]:
    """An entry as a subject; its examples, where no review is known to name its kind."""
    subject = {"kind": kind, "id": entry["id"], "label": entry["label"]}
    named = [
        (review["id"], names_in(kind, review, data.insights)) for review in data.reviews
    ]
    examples = entry.get("example_review_ids") or []
    if examples and not any(names for _, names in named):
        subject["ids"] = [id for id, _ in named if id in examples]
        subject["examples_of"] = entry.get("mention_count")
        return subject
    name = entry[name_key(kind)]
    subject["ids"] = [id for id, names in named if name in names]
    return subject


def is_called(subject: Object, value: str) -> bool:
    """Whether `value` is exactly the id or label of a subject."""
    return loosen(value) in (loosen(subject["id"]), loosen(subject["label"]))


def label_words(text: str) -> list[str]:
    """The words of a label or value: letters, digits and underscores."""
    spaced = ""
    for letter in loosen(text):
        is_of_word = letter.isalnum() or letter == "_"
        spaced += letter if is_of_word else " "
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


def has_words_like(label: str, value_words: Sequence[str]) -> bool:
    """Whether a label has words like all of these, of which there is one at least."""
    labels = label_words(label)
    for word in value_words:
        if not any(are_alike(word, other) for other in labels):
            return False
    return bool(value_words)


def meant(value: str, data: Data) -> list[dict[str, Any]]:
    """The subjects that a value of `mentions` means."""
    every = subjects(data)
    value_words = list(dict.fromkeys(label_words(value)))[:8]
    keyed = [it for it in every if loosen("/".join(key_of(it))) == loosen(value)]
    called = [it for it in every if is_called(it, value)]
    worded = [it for it in every if has_words_like(it["label"], value_words)]
    return keyed or called or worded


# ---- Filters: whether one, written as in a query string, holds for a review ----


def has_phrase(asked: Object, review: Object, data: Data) -> bool:
    if review["text"] is None:
        return False
    return loosen(asked["query"]) in loosen(review["text"])


def has_rating(asked: Object, review: Object, data: Data) -> bool:
    return bool(review["rating"] == float(asked["rating"]))


def is_rated_at_least(asked: Object, review: Object, data: Data) -> bool:
    return bool(review["rating"] >= float(asked["min_rating"]))


def is_rated_at_most(asked: Object, review: Object, data: Data) -> bool:
    return bool(review["rating"] <= float(asked["max_rating"]))


def is_since(asked: Object, review: Object, data: Data) -> bool:
    return bool(day(review) >= asked["since"])


def is_until(asked: Object, review: Object, data: Data) -> bool:
    return bool(day(review) <= asked["until"])


def mentions(asked: Object, review: Object, data: Data) -> bool:
    return any(review["id"] in it["ids"] for it in meant(asked["mentions"], data))


def is_judged(asked: Object, review: Object, data: Data) -> bool:
    """By the aspects in `mentions`; by any aspect if there is none."""
    found = []
    if "mentions" in asked:
        found = meant(asked["mentions"], data)
    aspects = [it["id"] for it in found if it["kind"] == "aspects"]
    if not aspects:
        aspects = names_in("aspects", review, data.insights)
    judgements = [judgement(aspect, review, data.insights) for aspect in aspects]
    return asked["sentiment"] in judgements


def is_replied(asked: Object, review: Object, data: Data) -> bool:
    has_reply = review["owner_reply"] is not None
    return has_reply == (asked["replied"] == "true")


def mentions_technician(asked: Object, review: Object, data: Data) -> bool:
    """Exactly the name or id of a person; if nobody has it, the words of a name."""
    value = asked["mentions_technician"]
    people = [it for it in subjects(data) if it["kind"] == "technicians"]
    named = [it["label"] for it in people if is_called(it, value)]
    if not named:
        named = [it["label"] for it in people if has_words(it["label"], value)]
    return any(name in named for name in review["mentioned_technicians"])


def mentions_service(asked: Object, review: Object, data: Data) -> bool:
    """Exactly the id or the label of a service."""
    value = asked["mentions_service"]
    services = [it for it in subjects(data) if it["kind"] == "services"]
    named = [it["id"] for it in services if is_called(it, value)]
    return any(id in named for id in review["mentioned_services"])


def is_of_source(asked: Object, review: Object, data: Data) -> bool:
    return loosen(asked["source"]) == loosen(review["source"])


HOLDS: dict[str, Callable[[Object, Object, Data], bool]] = {
    "query": has_phrase,
    "rating": has_rating,
    "min_rating": is_rated_at_least,
    "max_rating": is_rated_at_most,
    "since": is_since,
    "until": is_until,
    "mentions": mentions,
    "sentiment": is_judged,
    "replied": is_replied,
    "mentions_technician": mentions_technician,
    "mentions_service": mentions_service,
    "source": is_of_source,
}


# ---- Answers, over reviews in served form and order ----


def search(reviews: Reviews, insights: Object, asked: Mapping[str, str]) -> Object:
    """The result of a search with the parameters `asked`, without `hints`."""
    data = Data(reviews, insights)
    filters = {name: value for name, value in asked.items() if value and name in HOLDS}
    matched = list(reviews)
    for name in filters:
        matched = [it for it in matched if HOLDS[name](filters, it, data)]
    limit = int(float(asked.get("limit") or 20))
    offset = int(float(asked.get("offset") or 0))
    page = matched[offset : offset + limit]
    return {
        "matched": len(matched),
        "returned": len(page),
        **figures(matched),
        **said_with(filters, matched, data),
        "reviews": page,
    }


def said_with(filters: Object, matched: Reviews, data: Data) -> Object:
    """The members that a result has only with a filter."""
    said: dict[str, Any] = {}
    if filters:
        said["people"] = people_in(matched, data)
    if "mentions" in filters:
        said["meant"] = list(map(said_of, meant(filters["mentions"], data)[:20]))
    if "mentions" in filters or "sentiment" in filters:
        said |= unread(data.insights)
    return said


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
    average = None
    if stars:
        average = round(math.fsum(stars) / len(stars), 2)
    return {"average_rating": average, "distribution": distribution}


def people_in(matched: Reviews, data: Data) -> list[Object]:
    """The five people whom most mention; of equals, who is first in the newest review."""
    names: list[str] = []
    for review in matched:
        names += review["mentioned_technicians"]
    keys = {}
    for it in subjects(data):
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


def since(reviews: Reviews, first_day: str) -> Object:
    matches = [review for review in reviews if day(review) >= first_day]
    return {"since": first_day, "returned": len(matches), "reviews": matches}
