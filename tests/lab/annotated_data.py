"""The sample as an owner has it whose model has read some of the reviews, or all.

The figures are counted by the program; what the model said is made here, by a rule that
reads as a model might: a review mentions what it names.
"""

from typing import Any

from lab.small_files import CONTRACT
from reviewslib.dataset import mentions, vocabulary
from reviewslib.dataset.insights import compute_insights
from reviewslib.dataset.reviews import served_reviews

Object = dict[str, Any]

# The ids are words of the texts.
EDITORIAL: Object = {
    "aspects": [
        {"id": "pain", "label": "Pain relief"},
        {"id": "desk", "label": "Front desk"},
        {"id": "price", "label": "Price"},
    ],
    "topics": [
        {"id": "parking", "label": "Parking"},
        {"id": "exercises", "label": "Exercises at home", "summary": "They help."},
    ],
    "entities": {
        "technicians": [
            {"id": "okafor", "label": "Dr. Tobias Okafor", "aliases": ["Okafor"]},
        ],
        "services": [{"id": "massage", "label": "Massage"}],
    },
}
# A text with one of these words criticizes what it names, else it praises that.
CRITICISM = ("not", "late", "but")


def annotated_insights(document: Object, editorial: Object, limit: int) -> Object:
    """Insights of a ReviewsFile of which a model has read the newest `limit` reviews."""
    complete = CONTRACT.reviews_file.complete(document)
    reviews = served_reviews(complete["reviews"], {})
    unread = mentions.unread_reviews(reviews, editorial, {})[:limit]
    annotations: Object = {}
    if unread:
        annotations = mentions.extended_annotations(
            annotations,
            unread,
            {review["id"]: _lists(review["text"], editorial) for review in unread},
            vocabulary.entry_keys(editorial),
            "m",
        )
    return compute_insights(reviews, editorial, annotations)


def _lists(text: str, editorial: Object) -> Object:
    """What the model says of a text."""
    words = text.casefold()
    sentiment = "positive"
    if any(word in words for word in CRITICISM):
        sentiment = "negative"
    lists: Object = {}
    for kind, entries in vocabulary.vocabulary_of(editorial).items():
        lists[kind] = [entry["id"] for entry in entries if entry["id"] in words]
    lists["aspects"] = [
        {"id": id, "sentiment": sentiment, "phrase": None} for id in lists["aspects"]
    ]
    return lists
