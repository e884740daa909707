"""Two files become a dataset: what is served of them, what is counted, and warnings.

Sections: served form - unknown keys - without insights - notes - warnings - the rating.
"""

import json
from typing import Any

import pytest
from lab import small_files as small
from lab.four_reviews import FOUR, FOUR_REVIEWS
from lab.small_files import GOOD_FILES, Object, a_file, loaded, review, served

from reviewslib.dataset.insights import compute_insights
from reviewslib.dataset.reviews import Dataset, review_at

# ---- Served form ---------------------------------------------------------------------


def test_a_review_with_four_keys_is_served_with_every_key_in_order() -> None:
    written = {"date": "2025-06-01", "zebra": 1, "rating": 5, "author": "A", "id": "a"}

    (made,) = served(loaded(a_file(written)))

    assert list(made.items()) == [
        ("id", "a"),
        ("author", "A"),
        ("author_avatar_url", None),
        ("rating", 5),
        ("date", "2025-06-01"),
        ("text", None),
        ("source", "unknown"),
        ("source_url", None),
        ("updated", None),
        ("owner_reply", None),
        ("verified", None),
        ("mentioned_technicians", []),
        ("mentioned_services", []),
        ("zebra", 1),
        ("page_url", "https://r.example/reviews/a"),
    ]


def test_the_document_has_the_business_the_rating_and_the_reviews() -> None:
    document = json.loads(loaded(a_file(review())).reviews_json)

    assert list(document) == ["business", "aggregate_rating", "reviews"]
    assert document["business"] == {"name": "Larkspur"}
    assert list(document["aggregate_rating"].items()) == [
        ("rating_value", 5.0),
        ("review_count", 1),
        ("best_rating", 5),
        ("worst_rating", 1),
        ("distribution", {"1": 0, "2": 0, "3": 0, "4": 0, "5": 1}),
    ]


@pytest.mark.parametrize(
    ("replied", "changed"),
    [
        pytest.param(None, "2025-06-01", id="without a date"),
        pytest.param("2025-05-01", "2025-06-01", id="before the review"),
        pytest.param("2025-06-03T10:00:00Z", "2025-06-03", id="after the review"),
    ],
)
def test_a_review_changes_with_a_later_reply(replied: str | None, changed: str) -> None:
    reply = {"text": "Thanks", "date": replied}

    dataset = loaded(a_file(review(date="2025-06-01", owner_reply=reply)))

    assert dataset.reviews[0].changed_day == changed


def test_a_review_changes_with_its_last_version() -> None:
    dataset = loaded(a_file(review(updated="2025-06-04T08:00:00Z")))

    assert dataset.reviews[0].changed_day == "2025-06-04"


NULLS = {"street": None, "own": None}


@pytest.mark.parametrize(
    ("address", "made"),
    [
        pytest.param(NULLS, None, id="nothing but nulls"),
        pytest.param(
            {"street": None, "own": 0}, {"street": None, "own": 0}, id="a key"
        ),
        pytest.param({}, {}, id="empty"),
    ],
)
def test_an_address_of_nulls_is_served_as_null(address: Object, made: Any) -> None:
    dataset = loaded(a_file(business={"name": "X", "address": address}))

    assert dataset.business["address"] == made


def test_a_place_of_nulls_is_served_as_null() -> None:
    dataset = loaded(a_file(business={"name": "X", "geo": {"latitude": None}}))

    assert dataset.business["geo"] is None


# ---- Unknown keys --------------------------------------------------------------------

UNUSUAL: Object = {
    "nothing": None,
    "deep": [{"a": None, "b": [1.50, 1e-9, 2**70, -0.0]}],
    "é": "\u2028\x00",
}


@pytest.mark.parametrize("place", small.OBJECTS)
def test_unknown_keys_are_served_untouched_even_when_null(place: str) -> None:
    # given the good files with keys of the owner's own in one of their objects
    path = small.steps(place)
    extended = small.node_at(GOOD_FILES, path) | UNUSUAL
    files = small.changed(GOOD_FILES, path, extended)

    # when they are served
    dataset = loaded(*files.values())
    documents = {
        "reviews": json.loads(dataset.reviews_json),
        "insights": json.loads(dataset.insights_json),
    }

    # then the same object has these keys
    assert UNUSUAL.items() <= small.node_at(documents, path).items()


@pytest.mark.parametrize("id", ["a b", "ä/ö", "50%", "a?b#c", "%41"])
def test_a_review_is_found_by_the_address_of_its_page(id: str) -> None:
    dataset = loaded(a_file(review(id)))
    (made,) = served(dataset)

    found = review_at(dataset, f"{made['page_url']}?lang=de#top")

    assert found is not None
    assert found.id == id


# ---- Without insights ----------------------------------------------------------------


@pytest.fixture
def counted() -> Dataset:
    """A dataset without a file of insights."""
    newer = review("a", date="2025-06-01T08:00:00Z")
    older = review("b", rating=2, date="2025-04-30")
    return loaded(a_file(newer, older))


def test_absent_insights_are_a_note(counted: Dataset) -> None:
    first, *_ = counted.notes

    assert first == (
        "insights.json is absent: only stars and dates of the reviews are counted"
    )


def test_absent_insights_are_counted_from_the_reviews(counted: Dataset) -> None:
    made = json.loads(counted.insights_json)

    for key, value in compute_insights(served(counted)).items():
        if key != "generated_at":
            assert made[key] == value


def test_counted_insights_are_as_old_as_the_newest_review(counted: Dataset) -> None:
    made = json.loads(counted.insights_json)

    assert made["generated_at"] == "2025-06-01T08:00:00Z"
    assert made["version"] == 1
    assert made["review_count"] == 2


def test_counted_insights_have_the_keys_of_those_in_a_file(counted: Dataset) -> None:
    made = json.loads(counted.insights_json)
    of_an_empty_file = json.loads(loaded(a_file(review()), {}).insights_json)

    assert list(made) == list(of_an_empty_file)


def test_what_is_kept_of_counted_insights_is_what_is_served(counted: Dataset) -> None:
    made = json.loads(counted.insights_json)

    # Of single reviews, only reviews keep what was said.
    del made["per_review"]
    assert made == {**counted.insights}


def test_nothing_at_all_is_served_by_all_rules() -> None:
    small.check_served(loaded(a_file()))


# ---- Notes ---------------------------------------------------------------------------

WITH_A_LANGUAGE = a_file(review(), business={"name": "X", "language": "en"})


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([*GOOD_FILES.values()], id="every key"),
        pytest.param([WITH_A_LANGUAGE, {}], id="almost none"),
    ],
)
def test_good_files_give_neither_notes_nor_warnings(files: list[Object]) -> None:
    dataset = loaded(*files)

    assert dataset.notes == ()
    assert dataset.warnings == ()


def test_a_business_without_a_language_is_a_note_that_says_what_it_costs() -> None:
    dataset = loaded(a_file(business={"name": "X"}), {})

    assert dataset.notes == (
        'reviews.json: no "language" in business: browsers and screen readers take '
        'the reviews for English; write its tag, for example "de" or "en-GB"',
    )


def test_a_note_is_one_line_without_commands_for_a_terminal() -> None:
    topic = {"id": "\x9b2J", "label": "T", "mention_count": 9}
    insights = {"topics": [topic | {"example_review_ids": ["a"]}]}
    business = {"name": "X", "language": "en"}

    (note,) = loaded(a_file(review(), business=business), insights).notes

    assert '"topics/\\u009b2J" 1 of 9' in note


# ---- Warnings ------------------------------------------------------------------------

OF_OTHERS = (
    "insights.json seems to belong to other reviews: most ids in it are not served"
)


def warnings_about(ids: str, **others: Any) -> list[str]:
    """Warnings for insights about these reviews; served are a to d."""
    four = [review(id) for id in "abcd"]
    hidden = review("hidden", verified=False)
    per_review: Object = {id: {} for id in ids}
    insights = others | {"per_review": per_review}
    return list(loaded(a_file(*four, hidden), insights).warnings)


def not_served(count: int, ids: str) -> str:
    return f"insights.json names reviews that are not served, {count}: {ids}"


def test_insights_about_served_reviews_are_no_warning() -> None:
    assert warnings_about("abc") == []


def test_insights_about_unknown_reviews_are_a_warning() -> None:
    # Half of the ids are served.
    assert warnings_about("abcpqr") == [not_served(3, "p, q, r")]


def test_insights_about_more_unknown_than_served_reviews_seem_anothers() -> None:
    assert warnings_about("abpqr") == [not_served(3, "p, q, r"), OF_OTHERS]


def test_a_warning_is_one_line_without_commands_for_a_terminal() -> None:
    assert warnings_about("abcd\u202e") == [not_served(1, "\\u202e")]


def test_every_list_of_the_insights_may_name_an_unknown_review() -> None:
    entry = {"id": "x", "label": "X"}
    answer = {"question": "?", "answer": "!", "review_ids": ["d", "t", "hidden"]}

    warnings = warnings_about(
        "abcp",
        aspects=[entry | {"example_review_ids": ["q"]}],
        topics=[entry | {"example_review_ids": ["r"]}],
        entities={"problems": [entry | {"example_review_ids": ["s"]}]},
        faq=[answer],
    )

    assert warnings == [not_served(6, "hidden, p, q, …"), OF_OTHERS]


OKAFOR = {"id": "okafor", "label": "Dr. Okafor"}
MASSAGE = {"id": "massage", "label": "Massage"}


def warnings_of_mentions(**mentions: Any) -> list[str]:
    """Warnings for a review with these mentions, beside two entries."""
    entities = {"technicians": [OKAFOR], "services": [MASSAGE]}
    return list(loaded(a_file(review(**mentions)), {"entities": entities}).warnings)


@pytest.mark.parametrize(
    ("key", "named", "warning"),
    [
        pytest.param(
            "mentioned_technicians",
            "okafor",
            "mentioned_technicians names entries by id; write the label: "
            '"okafor" is "Dr. Okafor"',
            id="a person by the id",
        ),
        pytest.param(
            "mentioned_services",
            "Massage",
            "mentioned_services names entries by label; write the id: "
            '"Massage" is "massage"',
            id="a service by the label",
        ),
    ],
)
def test_an_entry_by_its_wrong_name_is_a_warning(
    key: str, named: str, warning: str
) -> None:
    warnings = warnings_of_mentions(**{key: [named]})

    assert warnings == [f"reviews.json: {warning}"]


def test_entries_by_their_names_and_others_are_no_warning() -> None:
    warnings = warnings_of_mentions(
        mentioned_technicians=["Dr. Okafor", "Ana"],
        mentioned_services=["massage", "taping"],
    )

    assert warnings == []


def test_opening_hours_without_english_day_names_are_a_warning() -> None:
    days = ["Mo", "Monday", "Dienstag", "Mo", "monday", "x", "Sunday"]
    hours = [{"days": [day], "opens": "08:00", "closes": "18:00"} for day in days]

    (warning,) = loaded(a_file(business={"name": "X", "hours": hours}), {}).warnings

    expected = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday or Sunday"
    assert warning.endswith(
        f'ignore the opening hours of "Mo", "Dienstag", "monday", …; write {expected}'
    )


# ---- The rating ----------------------------------------------------------------------


@pytest.fixture
def rated() -> Dataset:
    ratings = [1, 1.99, 2.5, 3, 3.999, 4, 4.5, 5]
    reviews = [review(str(at), rating=rating) for at, rating in enumerate(ratings)]
    hidden = review("hidden", rating=1, verified=False)
    return loaded(a_file(*reviews, hidden))


def test_the_rating_is_the_mean_of_the_served_reviews(rated: Dataset) -> None:
    assert rated.aggregate_rating["rating_value"] == 3.25
    assert rated.aggregate_rating["review_count"] == 8


def test_the_distribution_counts_whole_stars(rated: Dataset) -> None:
    stars = {"1": 2, "2": 1, "3": 2, "4": 2, "5": 1}

    assert rated.aggregate_rating["distribution"] == stars


OWN = "reviews.json gives an aggregate_rating of its own: "
# Of the four reviews.
COUNTED_STARS = {"1": 1, "2": 0, "3": 0, "4": 2, "5": 1}
GIVEN_STARS = {"1": 0, "2": 0, "3": 0, "4": 0, "5": 4}


def test_a_rating_in_the_file_wins_and_a_difference_is_a_warning() -> None:
    given = {"rating_value": 4.8, "distribution": GIVEN_STARS}

    dataset = loaded(FOUR_REVIEWS | {"aggregate_rating": given}, {})

    assert dataset.aggregate_rating == FOUR.aggregate_rating | given
    assert dataset.warnings == (
        f"{OWN}rating_value 4.8 (the reviews: 3.62), "
        f"distribution {GIVEN_STARS} (the reviews: {COUNTED_STARS})",
    )


def test_a_rating_in_the_file_that_says_the_same_is_no_warning() -> None:
    given = {"review_count": 4, "rating_value": None, "best_rating": None}

    dataset = loaded(FOUR_REVIEWS | {"aggregate_rating": given}, {})

    assert dataset.aggregate_rating == FOUR.aggregate_rating
    assert dataset.warnings == ()
