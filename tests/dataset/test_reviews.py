"""Two files become a dataset that is searched as the design says, or faults with file, path and reason.

Expected answers stand in small tables, or come from `plain_definition.py`.

Search: examples - Hints - Search: the plain definition - Served form - Figures and warnings - Refused files
"""

import json
from datetime import date
from functools import partial
from random import Random
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import plain_definition as plain
from lab import small_files as small
from lab.small_files import (
    OKAFOR,
    Object,
    a_file,
    compact,
    file_bytes,
    loaded,
    review,
    served,
)

from reviewslib.dataset import hinting, reading, reviews, searching
from reviewslib.dataset.contract import BadData, Fault, quoted
from reviewslib.dataset.insights import compute_insights
from reviewslib.dataset.query import BadQuery, Issue, Query, query_from_pairs
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.text import loose_value


def answer_of(dataset: Dataset, parameters: dict[str, str]) -> Object:
    """The result of a search."""
    query = query_from_pairs(small.PARAMETERS, list(parameters.items()))
    answer: Object = json.loads(searching.search(dataset, query).encoded())
    return answer


def fault_lines(reviews_file: bytes, insights_file: bytes | None = None) -> list[str]:
    """The lines that the operator gets about bad files."""
    with pytest.raises(BadData) as refusal:
        reviews.load(small.CONTRACT, reviews_file, insights_file, small.URLS)
    return refusal.value.lines()


# ---- Search: examples over four reviews and one that is not verified ----

PEOPLE = ["Dr. Anneke Brandt", "Wes P., LMT"]
FOUR_REVIEWS = a_file(
    review(
        "ana",
        date="2025-03-01",
        text="Straße zum Café",
        mentioned_technicians=[OKAFOR],
        source="yelp",
    ),
    review(
        "bob",
        date="2025-03-01T23:30:00-08:00",
        rating=4.5,
        mentioned_services=["massage"],
        source="é",
    ),
    review("cy", date="2024-12-31T23:59:59+14:00", rating=1, text="ὈΔΥΣΣΕΎΣ, İzmir!"),
    review(
        "eve",
        date="2025-03-02T00:10:00Z",
        rating=4,
        mentioned_technicians=PEOPLE,
        source="Yelp",
    ),
    review(
        "dan",
        date="2025-03-02",
        text="Straße",
        mentioned_technicians=[OKAFOR],
        verified=False,
    ),
)
FOUR_INSIGHTS = {
    "entities": {
        "technicians": [
            {"id": "T1", "label": OKAFOR},
            {"id": "t2", "label": "Dr. Nobody Mentioned"},
        ],
        "services": [
            {"id": "massage", "label": "Massage & Größe"},
            {"id": "gone", "label": "Gone"},
        ],
    },
    "per_review": {
        "cy": {"technicians": ["José Ćalić"], "services": ["x"]},
        "ana": {"services": ["gone"]},
    },
}
FOUR = loaded(FOUR_REVIEWS, FOUR_INSIGHTS)
SEARCHES = [  # a parameter, values that mean the same, and the ids of the matches
    ("query", "", "eve bob ana cy"),
    ("query", "strasse|STRAẞE|cafe\u0301|CAFÉ|e z", "ana"),
    ("query", "οδυσσευς|izmir", "cy"),
    (
        "mentions_technician",
        "Okafor|tobias okafor|Dr Okafor|Okafor, Tobias, Dr.|t1|T1",
        "ana",
    ),
    ("mentions_technician", "Dr.|dr", "eve ana"),
    ("mentions_technician", "Brandt Wes|Okaf|Nobody", ""),
    ("mentions_service", "MASSAGE|massage & GRÖSSE|massage & grosse", "bob"),
    ("mentions", "t1|technicians/T1|Dr Tobias|tobias okafor", "ana"),
    ("mentions", "services/massage|MASSAGE & GROSSE|massages", "bob"),
    ("mentions", "dr", "eve ana"),
    ("mentions", "WES P., LMT|technicians/Wes P., LMT|wes", "eve"),
    ("mentions", "gone|services/gone", "ana"),
    ("mentions", "t2|nobody at all|mas|!|okafor brandt", ""),
    ("sentiment", "negative", ""),
    ("replied", "true", ""),
    ("replied", "false", "eve bob ana cy"),
    ("source", "YELP|Yelp", "eve ana"),
    ("source", "yel|other", ""),
]


@pytest.mark.parametrize(("name", "values", "ids"), SEARCHES)
def test_a_search_finds_exactly_the_reviews_that_pass_newest_first(
    name: str, values: str, ids: str
) -> None:
    for value in values.split("|"):
        found = [review["id"] for review in answer_of(FOUR, {name: value})["reviews"]]
        assert found == ids.split(), value


def test_reviews_are_sorted_by_date_as_written_then_by_id() -> None:
    written = "2025-03-01T23:30:00-08:00 2025-03-01T09:00:00Z 2025-03-01 2025-03-01 2025-02-28T23:59:59+14:00"
    in_order = [
        review(id, date=date) for id, date in zip("acebd", written.split(), strict=True)
    ]
    dataset = loaded(a_file(*sorted(in_order, key=lambda review: review["id"])))
    assert "".join(review.id for review in dataset.reviews) == "acebd"
    padded = [None, *dataset.reviews, None]
    for newer, review_between, older in zip(
        padded, dataset.reviews, padded[2:], strict=False
    ):
        assert searching.neighbours(dataset, review_between) == (newer, older)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("b", "ba"),
        ("c BO", "a"),
        ("c x", ""),
        ("  ", "cba"),
        ("i h g f e d c b x", "a"),
        ("c c c c c c c c x", ""),
    ],
)
def test_the_first_eight_words_are_found_in_any_order(words: str, ids: str) -> None:
    dataset = loaded(
        a_file(review("a", text="Bö c d e f g h i"), review("b", text="b"), review("c"))
    )
    assert (
        "".join(
            review.id
            for review in searching.in_any_order(dataset, Query(words)).reviews
        )
        == ids
    )


# ---- Hints: what an empty answer says, over the same four reviews ----

PHRASE = "query matches its words only as a phrase. Reviews with "
TOGETHER = PHRASE + "{} of them in any order: 1 (ana)."
ONE_OF_THEM = PHRASE + "one of them: {}, strasse 1."
OTHER_WORDS = "Customers may use other words: try a synonym, or a part of a word."
DAYS = "The reviews are from 2024-12-31 to 2025-03-02."
PERSONS = "Dr. Tobias Okafor; Dr. Anneke Brandt; Wes P., LMT; José Ćalić"
UNKNOWN = "No {} is called “{}”. Known {}: {}. Reviews with it in their text: {}."
SERVICES = ("services", "massage (Massage & Größe); gone (Gone); x")
LEFT_OUT = "Reviews that match if one filter is left out: {}; without any filter: 4."
HINTS: list[
    tuple[dict[str, str], str]
] = [  # a search that matches nothing, and its first hint
    (
        {"since": "2025-03-02", "until": "2025-03-01"},
        "since is after until: swap the two values.",
    ),
    (
        {"min_rating": "4.5", "max_rating": "4"},
        "min_rating is above max_rating: swap the two values.",
    ),
    ({"since": "2025-03-03"}, DAYS),
    ({"until": "2024-12-30"}, DAYS),
    (
        {"mentions_technician": "Tobi Okafer"},
        UNKNOWN.format("person", "Tobi Okafer", "people", PERSONS, 0),
    ),
    ({"mentions_service": "masage"}, UNKNOWN.format("service", "masage", *SERVICES, 0)),
    (
        {"mentions_service": "cafe"},
        UNKNOWN.format("service", "cafe", *SERVICES, "1 (search with query)"),
    ),
    (
        {"source": "yelp.com", "query": "straße"},
        UNKNOWN.format("source", "yelp.com", "sources", "Yelp; é; unknown", 0),
    ),
    ({"query": "cafe straße"}, TOGETHER.format("all")),
    ({"query": " straße "}, TOGETHER.format("all")),
    ({"query": "cafe straße zum a c e f s parking"}, TOGETHER.format("the first 8")),
    (
        {"query": "a straße to the izmir cafe", "rating": "5"},
        ONE_OF_THEM.format("the 0, cafe 1, izmir 0"),
    ),
    ({"query": "cafe straße xq zum asse"}, ONE_OF_THEM.format("zum 1, cafe 1, asse 1")),
    ({"query": "     "}, OTHER_WORDS),
    ({"query": "parking izmir", "rating": "5"}, OTHER_WORDS),
    ({"rating": "5", "source": "é"}, LEFT_OUT.format("rating 1, source 1")),
    (
        {"since": "2025-01-15", "until": "2025-01-15"},
        LEFT_OUT.format("since 1, until 3"),
    ),
]


@pytest.mark.parametrize(("parameters", "first"), HINTS)
def test_the_first_hint_of_an_empty_answer_helps(
    parameters: dict[str, str], first: str
) -> None:
    answer = answer_of(FOUR, parameters)
    assert answer["matched"] == 0
    assert answer["hints"][0] == first
    assert len(answer["hints"]) <= 3


GERMAN = a_file(review(text="gut"), business={"name": "x", "language": "de"})
MANY = a_file(*(review(str(number), text="a b c") for number in range(25)))


@pytest.mark.parametrize(
    ("file", "query", "part"),
    [
        (a_file(), Query(), "There are no reviews yet."),
        (
            GERMAN,
            Query("good"),
            "Customers may use other words (their language: de): try",
        ),
        (GERMAN, Query(mentions_service="good"), "No services are known."),
        (MANY, Query("c a b"), " in any order: 25 (9, 8, 7, 6, 5)."),
    ],
)
def test_a_hint_names_the_language_and_the_newest_five_matches(
    file: Object, query: Query, part: str
) -> None:
    assert part in str(hinting.hints(loaded(file), query)[0])


def test_a_search_and_its_hints_fold_a_value_once() -> None:
    value = "x\u0301" * 100
    loose_value.cache_clear()
    searching.search(
        FOUR, Query(value, rating=5, min_rating=1, mentions_service=value, source=value)
    )
    assert loose_value.cache_info().misses == 1


# ---- Search: the plain definition. Values overlap on purpose, so that filters admit and refuse often ----

WORDS = [
    *(
        "Straße",
        "STRASSE",
        "ẞ",
        "İzmir",
        "izmir",
        "Ὀδυσσεύς",
        "ὈΔΥΣΣΕΎΣ",
        "σασ",
        "café",
        "cafe\u0301",
    ),
    *(
        "ﬁne",
        "fine",
        "\u212b",
        "å",
        "a\u0323\u0307",
        "ạ\u0307",
        "👍🏽",
        "ᾳ",
        '"\\',
        "</x>",
        "\r\n\x00",
        "0",
    ),
]
DATES = [
    *(
        "2024-12-31",
        "2024-12-31T23:59:59+14:00",
        "2025-01-01T00:00:00-12:00",
        "2025-01-01",
        "2025-03-01",
    ),
    *(
        "2025-03-01T23:30:00.25-08:00",
        "2025-03-01t00:00:00z",
        "2025-03-02",
        "0001-01-01",
        "9999-12-31",
    ),
]
TECHNICIANS = [
    OKAFOR,
    *PEOPLE,
    "Okafor, Ngozi",
    "DR. JOSÉ ĆALIĆ",
    "dr. jose\u0301 c\u0301alic\u0301",
    # The id of a person in the insights.
    "t",
]
SERVICE_IDS = ["massage", "Massage", "rehab", "straße", "STRASSE"]
LABELS = ["Massage therapy", "REHAB", "massage", "Größe", "gro\u0308sse"]
ASPECTS = ["wait", "prices", "rehab"]
SUBJECTS = [
    *("wait", "waits", "Waiting", "long wait", "aspects/wait", "topics/waits"),
    *("technicians/t", "problems/WAIT", "price", "massages", "none", "Größen"),
]
SOURCES = ["google", "Google", "e\u0301", "É"]
IDS = ["a", "b", "B", "é", "e\u0301", "10", "9", "x y", "x/y", "𝄞", "\ue000", "~"]
MEMBERS: dict[str, list[Any]] = {
    "rating": [1, 2, 3.5, 4, 4.0, 4.5, 5, 5.0],
    "date": DATES,
    "text": [None, "", *(" ".join(WORDS[at : at + 5]) for at in range(len(WORDS)))],
    "mentioned_technicians": [
        None,
        [],
        *([name] for name in TECHNICIANS),
        TECHNICIANS[2:4],
    ],
    "mentioned_services": [None, [], *([id] for id in SERVICE_IDS), SERVICE_IDS[1:3]],
    "verified": [small.ABSENT, True, True, None, False],
    "owner_reply": [small.ABSENT, None, {"text": "Thanks"}],
    "source": [small.ABSENT, None, *SOURCES],
    "x": [small.ABSENT, None, {"y": [1.5, None]}],
    "page_url": [small.ABSENT, None, "https://another.example/"],  # of another service
}


def varied_files(seed: int) -> tuple[Object, Object]:
    """Files of two to eleven reviews, and of insights about half of them and an unknown one."""
    chosen = Random(seed)
    ids = chosen.sample(IDS, 2 + seed % 10)
    members = [
        {name: chosen.choice(values) for name, values in MEMBERS.items()} for _ in ids
    ]
    written = [
        {name: it[name] for name in it if it[name] is not small.ABSENT}
        for it in members
    ]
    notes = {
        id: {"technicians": [chosen.choice(TECHNICIANS)], "services": SERVICE_IDS[:2]}
        for id in ids[::2]
    }
    for annotation in notes.values():
        annotation["aspects"] = [
            {"id": chosen.choice(ASPECTS), "sentiment": chosen.choice(plain.SENTIMENTS)}
            for _ in range(3)
        ]
        annotation["problems"] = [chosen.choice(["wait", "Prices"])]
    aspects = [
        {"id": id, "label": label} for id, label in zip(ASPECTS, LABELS, strict=False)
    ]
    problems = [{"id": "wait", "label": "Long waiting"}]
    topics = [
        {
            "id": "waits",
            "label": "Waiting, in the Größe",
            "mention_count": 7,
            "example_review_ids": ids[:2],
        }
    ]
    people = [{"id": "t", "label": chosen.choice(TECHNICIANS)}]
    services = [
        {"id": chosen.choice(SERVICE_IDS), "label": chosen.choice(LABELS)}
        for _ in range(3)
    ]
    insights = {
        "aspects": aspects,
        "topics": topics,
        "entities": {
            "technicians": people,
            "services": services,
            "problems": problems,
        },
        "per_review": notes | {"unknown": {}},
    }
    return a_file(
        *(review(id) | it for id, it in zip(ids, written, strict=True))
    ), insights


MANY_FILES = [varied_files(seed) for seed in range(100)]
DATASETS = [loaded(*files) for files in MANY_FILES]
PLACES = st.integers(0, len(MANY_FILES) - 1)


def in_other_words(values: list[str]) -> st.SearchStrategy[str]:
    """One of `values`, in any case, with composed or decomposed accents."""
    forms = (
        str,
        str.upper,
        str.lower,
        str.swapcase,
        partial(normalize, "NFC"),
        partial(normalize, "NFD"),
    )
    return st.sampled_from([form(value) for value in values for form in forms])


DAYS_OF_DATES = st.sampled_from([when[:10] for when in DATES])
VALUES = {
    "query": in_other_words(
        [*WORDS, *"aefimnorstzσ0 ", "ss", "cafe", "izmir", "\u0301e", "e s"]
    ),
    "rating": st.sampled_from(["1", "1.0", "2", "5", "5.00"]),
    **dict.fromkeys(
        ["min_rating", "max_rating"], st.sampled_from(["1", "3.49", "3.5", "4.5", "5"])
    ),
    **dict.fromkeys(["since", "until"], DAYS_OF_DATES),
    "mentions": in_other_words([*SUBJECTS, *LABELS, *TECHNICIANS, "dr"]),
    "sentiment": st.sampled_from(plain.SENTIMENTS),
    "replied": st.sampled_from(["true", "false"]),
    "mentions_technician": in_other_words(
        [*TECHNICIANS, "dr", "Okafor", "Okaf", "LMT.", "wes p", "t"]
    ),
    "mentions_service": in_other_words([*SERVICE_IDS, *LABELS, "GRÖSSE", "none"]),
    "source": in_other_words([*SOURCES, "unknown", "goog"]),
    "limit": st.sampled_from(["1", "2", "3", "20", "100", "5.0"]),
    "offset": st.sampled_from(["0", "-0", "1", "2", "7", "1000000000"]),
}
# At most three parameters: with more, hardly any search would find a review.
QUESTIONS = st.sets(st.sampled_from(list(VALUES)), max_size=3).flatmap(
    lambda names: st.fixed_dictionaries({name: VALUES[name] for name in sorted(names)})
)


@pytest.mark.slow
@settings(max_examples=800)
@given(PLACES, QUESTIONS)
def test_a_search_returns_every_review_that_passes_every_filter(
    place: int, asked: dict[str, str]
) -> None:
    dataset = DATASETS[place]
    (_, insights) = MANY_FILES[place]
    expected = plain.search(served(dataset), insights, asked)
    answer = answer_of(dataset, asked)
    assert (answer.pop("hints", None) is None) == (expected["matched"] > 0)
    assert compact(answer) == compact(expected)


@given(PLACES, DAYS_OF_DATES | st.dates().map(date.isoformat))
def test_documents_and_since_hold_what_the_plain_definition_says(
    place: int, day: str
) -> None:
    dataset = DATASETS[place]
    (file, insights) = MANY_FILES[place]
    expected = plain.served_reviews(file["reviews"], insights)
    assert (
        served(dataset)
        == expected
        == [json.loads(bytes(review.json)) for review in dataset.reviews]
    )
    assert searching.since(dataset, day).encoded() == compact(
        plain.since(served(dataset), day)
    )
    assert dataset.unverified_count == len(file["reviews"]) - len(expected)
    assert dataset.reviews_by_id == {review.id: review for review in dataset.reviews}
    assert "per_review" not in dataset.insights
    for document in (dataset.reviews_json, dataset.insights_json):
        assert compact(json.loads(document)) == document


@pytest.mark.parametrize(
    ("day", "wanted"),
    [("\ud800", "a date written YYYY-MM-DD"), ("2025-02-29", "a day that exists")],
)
def test_since_refuses_a_value_that_is_no_day(day: str, wanted: str) -> None:
    with pytest.raises(BadQuery) as refusal:
        searching.since(FOUR, day)
    assert refusal.value.issues == (
        Issue("date", day.replace("\ud800", "\ufffd"), f"expected {wanted}"),
    )


# ---- Served form ----


def test_a_review_with_four_keys_is_served_with_every_key_in_order() -> None:
    dataset = loaded(
        a_file(
            {"date": "2025-06-01", "zebra": 1, "rating": 5, "author": "Ann", "id": "a"}
        )
    )
    assert dataset.reviews_json == (
        b'{"business":{"name":"Larkspur"},"aggregate_rating":{"rating_value":5.0,"review_count":1,'
        b'"best_rating":5,"worst_rating":1,"distribution":{"1":0,"2":0,"3":0,"4":0,"5":1}},"reviews":['
        b'{"id":"a","author":"Ann","author_avatar_url":null,"rating":5,"date":"2025-06-01","text":null,'
        b'"source":"unknown","source_url":null,"updated":null,"owner_reply":null,"verified":null,'
        b'"mentioned_technicians":[],"mentioned_services":[],"zebra":1,"page_url":"https://r.example/reviews/a"}]}'
    )


@pytest.mark.parametrize(
    ("replied", "changed"),
    [
        (None, "2025-06-01"),
        ("2025-05-01", "2025-06-01"),
        ("2025-06-03T10:00:00Z", "2025-06-03"),
    ],
)
def test_a_review_changes_with_a_later_reply(replied: str | None, changed: str) -> None:
    dataset = loaded(a_file(review(owner_reply={"text": "Thanks", "date": replied})))
    assert dataset.reviews[0].changed_day == changed


def test_a_review_changes_with_its_last_version() -> None:
    # when
    dataset = loaded(a_file(review(updated="2025-06-04T08:00:00Z")))
    # then
    assert dataset.reviews[0].changed_day == "2025-06-04"


@pytest.mark.parametrize(
    "address", [{"street": None, "own": 0}, {}, {"street": None, "own": None}]
)
def test_an_address_of_nulls_is_served_as_null(address: Object) -> None:
    served_address = None if list(address.values()) == [None, None] else address
    business = {"name": "X", "address": address, "geo": {"latitude": None}}
    assert loaded(a_file(business=business)).business == business | {
        "address": served_address,
        "geo": None,
    }


UNUSUAL: Object = {
    "nothing": None,
    "deep": [{"a": None, "b": [1.50, 1e-9, 2**70, -0.0]}],
    "é": "\u2028\x00",
}


@pytest.mark.parametrize("place", small.OBJECTS)
def test_unknown_keys_are_served_untouched_even_when_null(place: str) -> None:
    path = small.steps(place)
    files = small.changed(
        small.GOOD_FILES, path, small.node_at(small.GOOD_FILES, path) | UNUSUAL
    )
    dataset = loaded(*files.values())
    documents = {
        "reviews": json.loads(dataset.reviews_json),
        "insights": json.loads(dataset.insights_json),
    }
    assert UNUSUAL.items() <= small.node_at(documents, path).items()


# ---- Figures and warnings ----


def test_absent_insights_are_a_note_and_are_counted_from_the_reviews() -> None:
    document = a_file(
        review("a", date="2025-06-01T08:00:00Z"),
        review("b", rating=2, date="2025-04-30"),
    )
    dataset = loaded(document)
    empty = json.loads(loaded(document, {}).insights_json)
    assert dataset.notes[0] == (
        "insights.json is absent: only stars and dates of the reviews are counted"
    )
    said = json.loads(dataset.insights_json)
    assert said == empty | compute_insights(served(dataset)) | {
        "generated_at": "2025-06-01T08:00:00Z"
    }
    assert (list(said), said["version"], said["review_count"]) == (list(empty), 1, 2)
    assert said | {"per_review": None} == dataset.insights | {"per_review": None}
    small.check_served(loaded(a_file()))


def test_good_files_give_neither_notes_nor_warnings() -> None:
    english = a_file(review(), business={"name": "X", "language": "en"})
    for dataset in (loaded(*small.GOOD_FILES.values()), loaded(english, {})):
        assert dataset.notes == dataset.warnings == ()
    assert loaded(a_file(review())).warnings == ()


def test_a_business_without_a_language_is_a_note_that_says_what_it_costs() -> None:
    dataset = loaded(a_file(business={"name": "X"}), {})

    assert dataset.notes == (
        'reviews.json: no "language" in business: browsers and screen readers take '
        'the reviews for English; write its tag, for example "de" or "en-GB"',
    )


ENTRY = {"id": "x", "label": "X", "example_review_ids": ["q"]}
EVERY_LIST = {
    "aspects": [ENTRY],
    "topics": [ENTRY | {"example_review_ids": ["r"]}],
    "entities": {"problems": [ENTRY | {"example_review_ids": ["s"]}]},
    "faq": [{"question": "?", "answer": "!", "review_ids": ["d", "t", "hidden"]}],
}
NOT_SERVED = "insights.json names {} review(s) that are not served: {}"
OF_OTHERS = (
    "insights.json seems to belong to other reviews: most ids in it are not served"
)


@pytest.mark.parametrize(
    ("ids", "others", "warnings"),
    [
        ("abcp", EVERY_LIST, [NOT_SERVED.format(6, "hidden, p, q, …"), OF_OTHERS]),
        ("abpqr", {}, [NOT_SERVED.format(3, "p, q, r"), OF_OTHERS]),
        ("abcpqr", {}, [NOT_SERVED.format(3, "p, q, r")]),  # half of the ids
        ("abc", {}, []),
    ],
)
def test_insights_about_unknown_reviews_are_a_warning(
    ids: str, others: Object, warnings: list[str]
) -> None:
    document = a_file(*map(review, "abcd"), review("hidden", verified=False))
    assert (
        list(loaded(document, others | {"per_review": {id: {} for id in ids}}).warnings)
        == warnings
    )


def test_the_rating_is_the_mean_of_served_reviews_and_counts_whole_stars() -> None:
    ratings = [1, 1.99, 2.5, 3, 3.999, 4, 4.5, 5]
    rated = [review(str(n), rating=rating) for n, rating in enumerate(ratings)]
    dataset = loaded(a_file(*rated, review("hidden", rating=1, verified=False)))
    figures = {
        "rating_value": 3.25,
        "review_count": 8,
        "best_rating": 5,
        "worst_rating": 1,
    }
    assert dataset.aggregate_rating == figures | {
        "distribution": {"1": 2, "2": 1, "3": 2, "4": 2, "5": 1}
    }


STARS = {"1": 0, "2": 0, "3": 0, "4": 0, "5": 4}
DIFFERING = "rating_value 4.8 (the reviews: 3.62), distribution {} (the reviews: {})"


@pytest.mark.parametrize(
    ("in_file", "differing"),
    [
        ({"review_count": 4, "rating_value": None, "best_rating": None}, None),
        (
            {"rating_value": 4.8, "distribution": STARS},
            DIFFERING.format(STARS, STARS | {"1": 1, "4": 2, "5": 1}),
        ),
    ],
)
def test_a_rating_in_the_file_wins_and_a_difference_is_a_warning(
    in_file: Object, differing: str | None
) -> None:
    dataset = loaded(FOUR_REVIEWS | {"aggregate_rating": in_file}, {})
    figures = {key: value for key, value in in_file.items() if value is not None}
    assert dataset.aggregate_rating == FOUR.aggregate_rating | figures
    warning = f"reviews.json gives an aggregate_rating of its own: {differing}"
    assert dataset.warnings == ((warning,) if differing else ())


def test_opening_hours_without_english_day_names_are_a_warning() -> None:
    days = ["Mo", "Monday", "Dienstag", "Mo", "monday", "x", "Sunday"]
    hours = [{"days": [day], "opens": "08:00", "closes": "18:00"} for day in days]
    (warning,) = loaded(a_file(business={"name": "X", "hours": hours}), {}).warnings
    expected = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday or Sunday"
    assert warning.endswith(
        f'ignore the opening hours of "Mo", "Dienstag", "monday", …; write {expected}'
    )


# ---- Refused files: each fault is a line of file, place and reason ----


@pytest.mark.parametrize("container", [b"{}", b"[]"])
def test_a_file_of_millions_of_objects_is_refused_before_it_is_parsed(
    container: bytes,
) -> None:
    most = reading.MAX_CONTAINERS
    for count, reason in (
        (most + 1, "has more than 2,000,000 objects and arrays"),
        (most, "not JSON at"),
    ):
        assert fault_lines(container * count)[0].startswith(f"reviews.json: {reason}")


def test_a_file_of_more_than_200000_reviews_is_one_fault_whatever_is_in_them() -> None:
    many = file_bytes({"reviews": [{}] * 200_001})

    lines = fault_lines(many)

    reason = "has 200,001 reviews; at most 200,000 can be served"
    assert lines == [f"reviews.json /reviews: {reason}"]


def test_as_many_reviews_as_can_be_served_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "MAX_REVIEWS", 2)

    dataset = loaded(a_file(review("1"), review("2")))

    assert len(dataset.reviews) == 2


def test_a_review_that_is_served_has_at_most_64_kib_of_json() -> None:
    room = 65_536 - len(compact(served(loaded(a_file(review("1", text=""))))[0]))
    fits = review("1", text="é" * (room // 2))
    too_large = review("2", text="x" * (room + 1))
    hidden = review("3", text="x" * 70_000, verified=False)
    assert len(loaded(a_file(fits, hidden)).reviews) == 1
    lines = fault_lines(file_bytes(a_file(too_large, fits, too_large | {"id": "4"})))
    limit = "65,537 bytes of JSON; a review has at most 65,536"
    assert lines == [f"reviews.json /reviews/{index}: has {limit}" for index in (0, 2)]


A_URL = " is not an http or https URL"
A_DATE = " is not a day that exists, written YYYY-MM-DD, or an RFC 3339 date-time on such a day"
PLAIN_ID = " is not an id: text without control characters, not . or .."
TRENDS = " is none of ['improving', 'stable', 'declining', None]"
NO_DAYS = [
    "1.6.2025",
    "2025-06-01\n",
    "２０２５-06-01",
    "2025-02-29",
    "0000-01-01",
    "2025-02-30T10:00:00Z",
]
NO_TIMES = ["", ":00:00", ":00:00Z\n", ":00:00.Z", ":60:00Z", ":00:61Z", ":00:00+24:00"]
NO_URLS = [
    "javascript:1",
    "ftp://x/",
    "",
    "https://",
    "https:///x",
    "http://@",
    "http://[x",
    " http://x",
]
NO_PATHS = [f"https://s.example/{odd}" for odd in ("a b", "\n", "\x7f", "\u2028")]
FIRST = "reviews/reviews/0"
# File and place, wrong values, and what the line says after the value.
FAULTS: list[tuple[str, list[Any], str]] = [
    ("reviews", [None, 5, [], "reviews"], " is not an object"),
    ("reviews/business/name", [""], " is shorter than 1 character(s)"),
    (
        "reviews/business/language",
        ["deutsch!", "", "de\n"],
        " is not a language tag such as de or en-GB",
    ),
    ("reviews/business/hours/0/opens", ["25:00"], " is not a time of day, HH:MM"),
    ("reviews/aggregate_rating", [[], 5], " is not an object or null"),
    (
        "reviews/aggregate_rating/review_count",
        [1.5, True, "1"],
        " is not a whole number or null",
    ),
    ("reviews/reviews", [{}, None], " is not an array"),
    (f"{FIRST}/id", ["x" * 201], " is longer than 200 characters"),
    (f"{FIRST}/id", ["a\nb", "ab\n", "\x00", "\x7f", "a\x85", ".", ".."], PLAIN_ID),
    ("reviews/reviews/1/id", ["01A"], " is already the id of /reviews/0"),
    (f"{FIRST}/rating", [7, 5.0000001, 10**4000], " is greater than the maximum of 5"),
    (f"{FIRST}/rating", [0, 0.99, -3], " is less than the minimum of 1"),
    (f"{FIRST}/rating", ["5", True, None], " is not a number"),
    (
        f"{FIRST}/date",
        [*NO_DAYS, *(f"2025-06-01T10{time}" for time in NO_TIMES)],
        A_DATE,
    ),
    (f"{FIRST}/source_url", [*NO_URLS, *NO_PATHS], A_URL),
    (f"{FIRST}/verified", ["yes", 1], " is not true or false or null"),
    ("insights/temporal/trend", ["up"], TRENDS),
]


@pytest.mark.parametrize(("place", "values", "reason"), FAULTS)
def test_a_wrong_value_is_one_line(place: str, values: list[Any], reason: str) -> None:
    file, *path = small.steps(place)
    for value in values:
        files = small.changed(small.GOOD_FILES, [file, *path], value)
        fault = Fault(f"{file}.json", tuple(path), f"{quoted(value)}{reason}")
        assert fault_lines(*map(file_bytes, files.values())) == [str(fault)]


def test_faults_of_schemas_and_rules_in_both_files_come_in_order() -> None:
    wrong = [
        review("3", rating=9, date="2025-02-30"),
        review("4", rating=True, author=5),
    ]
    document = a_file(
        *(review(str(n)) for n in range(9)),
        *wrong,
        business={"name": "", "url": "ftp://x"},
    )
    insights = {"version": 0, "faq": [{}], "generated_at": 5}
    places = [
        line.partition(": ")[0]
        for line in fault_lines(file_bytes(document), file_bytes(insights))
    ]
    in_reviews = "business/name business/url reviews/9/date reviews/9/id reviews/9/rating reviews/10/author"
    expected = [
        f"reviews.json /{place}"
        for place in f"{in_reviews} reviews/10/id reviews/10/rating".split()
    ]
    expected += [
        f"insights.json /{place}"
        for place in ("faq/0", "faq/0", "generated_at", "version")
    ]
    assert places == expected


@pytest.mark.slow
@settings(max_examples=400)
@given(small.mutations())
def test_a_mutated_file_is_served_or_refused(files: Object) -> None:
    contents = [file_bytes(files.get(name)) for name in small.GOOD_FILES]
    try:
        dataset = reviews.load(small.CONTRACT, *contents, small.URLS)
    except BadData as refusal:
        assert refusal.faults and all(map(small.is_one_printable_line, refusal.lines()))
    else:
        small.check_served(dataset)
