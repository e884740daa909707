"""The first hint of an empty answer, over the four reviews: ranges, names and phrases.

What hints find in entries, questions and beginnings of words has a file of its own
(test_hints.py).
"""

import json

import pytest
from lab.four_reviews import FOUR
from lab.small_files import PARAMETERS, Object, a_file, loaded, review

from reviewslib.dataset import hinting, searching
from reviewslib.dataset.query import Query, query_from_pairs

PHRASE = "query matches its words only as a phrase. Reviews with "
SWAPPED_DAYS = "since is after until: swap the two values."
SWAPPED_STARS = "min_rating is above max_rating: swap the two values."
DAYS = "The reviews are from 2024-12-31 to 2025-03-02."
PEOPLE = "Dr. Tobias Okafor; Dr. Anneke Brandt; Wes P., LMT; José Ćalić"
SERVICES = "massage (Massage & Größe); gone (Gone); x"
OTHER_WORDS = "Customers may use other words: try a synonym, or a part of a word."
LEFT_OUT = "Reviews that match if one filter is left out: "


@pytest.mark.parametrize(
    ("parameters", "first"),
    [
        pytest.param(
            {"since": "2025-03-02", "until": "2025-03-01"},
            SWAPPED_DAYS,
            id="days that are swapped",
        ),
        pytest.param(
            {"min_rating": "4.5", "max_rating": "4"},
            SWAPPED_STARS,
            id="stars that are swapped",
        ),
        pytest.param({"since": "2025-03-03"}, DAYS, id="after the last day"),
        pytest.param({"until": "2024-12-30"}, DAYS, id="before the first day"),
        pytest.param(
            {"mentions_technician": "Tobi Okafer"},
            "No person is called “Tobi Okafer”. "
            f"Known people: {PEOPLE}. Reviews with it in their text: 0.",
            id="a person who is misspelt",
        ),
        pytest.param(
            {"mentions_service": "masage"},
            "No service is called “masage”. "
            f"Known services: {SERVICES}. Reviews with it in their text: 0.",
            id="a service that is misspelt",
        ),
        pytest.param(
            {"mentions_service": "cafe"},
            "No service is called “cafe”. "
            f"Known services: {SERVICES}. "
            "Reviews with it in their text: 1 (search with query).",
            id="a service that texts have",
        ),
        pytest.param(
            {"source": "yelp.com", "query": "straße"},
            "No source is called “yelp.com”. "
            "Known sources: Yelp; é; unknown. Reviews with it in their text: 0.",
            id="an unknown source",
        ),
        pytest.param(
            {"query": "cafe straße"},
            f"{PHRASE}all of them in any order: 1 (ana).",
            id="words in another order",
        ),
        pytest.param(
            {"query": " straße "},
            f"{PHRASE}all of them in any order: 1 (ana).",
            id="blanks around a word",
        ),
        pytest.param(
            {"query": "cafe straße zum a c e f s parking"},
            f"{PHRASE}the first 8 of them in any order: 1 (ana).",
            id="more than eight words",
        ),
        pytest.param(
            {"query": "a straße to the izmir cafe", "rating": "5"},
            f"{PHRASE}one of them: the 0, cafe 1, izmir 0, strasse 1.",
            id="single words",
        ),
        pytest.param(
            {"query": "cafe straße xq zum asse"},
            f"{PHRASE}one of them: zum 1, cafe 1, asse 1, strasse 1.",
            id="single words, the longest four",
        ),
        pytest.param({"query": "     "}, OTHER_WORDS, id="blanks alone"),
        pytest.param(
            {"query": "parking izmir", "rating": "5"}, OTHER_WORDS, id="unknown words"
        ),
        pytest.param(
            {"rating": "5", "source": "é"},
            f"{LEFT_OUT}rating 1, source 1; without any filter: 4.",
            id="two filters that exclude each other",
        ),
        pytest.param(
            {"since": "2025-01-15", "until": "2025-01-15"},
            f"{LEFT_OUT}since 1, until 3; without any filter: 4.",
            id="a day without a review",
        ),
    ],
)
def test_the_first_hint_of_an_empty_answer_helps(
    parameters: dict[str, str], first: str
) -> None:
    query = query_from_pairs(PARAMETERS, list(parameters.items()))

    answer: Object = json.loads(searching.search(FOUR, query).encoded())

    assert answer["matched"] == 0
    assert answer["hints"][0] == first
    assert len(answer["hints"]) <= 3


GERMAN = a_file(review(text="gut"), business={"name": "x", "language": "de"})
TWENTY_FIVE = a_file(*(review(str(number), text="a b c") for number in range(25)))


@pytest.mark.parametrize(
    ("file", "query", "part"),
    [
        pytest.param(
            a_file(), Query(), "There are no reviews yet.", id="there are no reviews"
        ),
        pytest.param(
            GERMAN,
            Query("good"),
            "Customers may use other words (their language: de): try",
            id="the language",
        ),
        pytest.param(
            GERMAN,
            Query(mentions_service="good"),
            "No services are known.",
            id="nothing is known",
        ),
        pytest.param(
            TWENTY_FIVE,
            Query("c a b"),
            " in any order: 25 (9, 8, 7, 6, 5).",
            id="the newest five matches",
        ),
    ],
)
def test_a_hint_names_what_helps_with_this_file(
    file: Object, query: Query, part: str
) -> None:
    first, *_ = hinting.hints(loaded(file), query)

    assert part in str(first)
