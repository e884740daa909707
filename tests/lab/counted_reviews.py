"""Reviews of some stars and words, and what a model said of them, for counting.

The ids are 999, 998 and so on, the newest first.
"""

from typing import Any

from lab import small_files as small
from reviewslib.dataset import mentions, vocabulary
from reviewslib.dataset.reviews import served_reviews

Object = dict[str, Any]

VOCABULARY: Object = {
    "aspects": [{"id": "price", "label": "Price"}, {"id": "wait", "label": "Waiting"}],
    "topics": [{"id": "desk", "label": "Desk"}],
    "entities": {
        "technicians": [{"id": "hana", "label": "Hana I.", "aliases": ["Hana"]}]
    },
}


def verified(*reviews: Object) -> list[Any]:
    """Reviews as they are served."""
    document = small.CONTRACT.reviews_file.complete(small.a_file(*reviews))
    return served_reviews(document["reviews"], {})


def rated(*ratings: float, **members: Any) -> list[Any]:
    """Reviews of so many stars, newest first."""
    reviews = list[Object]()
    for n, stars in enumerate(ratings):
        reviews.append(small.review(f"{999 - n}", rating=stars, **members))
    return verified(*reviews)


def texted(*texts: str | None, stars: float = 5) -> list[Any]:
    """Reviews with these texts, newest first."""
    reviews = rated(*[stars] * len(texts))
    for review, text in zip(reviews, texts, strict=True):
        review["text"] = text
    return reviews


def praise(
    aspect: str = "price", sentiment: str = "positive", phrase: str | None = None
) -> Object:
    """That an aspect is judged so."""
    return {"id": aspect, "sentiment": sentiment, "phrase": phrase}


def annotated(reviews: list[Any], *lists: Object, keys: Any = None) -> Object:
    """An AnnotationsFile in which the model m read these reviews, with these lists.

    It was asked about `keys`, by default about all of VOCABULARY.
    """
    annotations = dict[str, Object]()
    for review, members in zip(reviews, lists, strict=True):
        stamp = {
            "text_digest": mentions.text_digest(review),
            "vocabulary": "v",
            "model": "m",
        }
        annotations[review["id"]] = stamp | members
    asked = vocabulary.entry_keys(VOCABULARY) if keys is None else keys
    return {"vocabularies": {"v": asked}, "reviews": annotations}
