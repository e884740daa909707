"""Sources of reviews are named as in the file, and reviews are called verified only with a policy."""

import pytest

from reviewslib.dataset.provenance import published_on, review_called, sources_of


def test_sources_are_told_apart_in_any_case_the_most_frequent_first() -> None:
    assert sources_of(["yelp", "Google", "GOOGLE", "fb", "google"]) == (
        "Google",
        "yelp",
        "fb",
    )


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        pytest.param("", "", id="none"),
        pytest.param("unknown", "", id="unknown alone"),
        pytest.param("GOOGLE", "Google", id="its own spelling"),
        pytest.param("yelp healthgrades", "Yelp and Healthgrades", id="two"),
        pytest.param(
            "facebook trustpilot tripadvisor",
            "Facebook, Trustpilot and TripAdvisor",
            id="three",
        ),
        pytest.param(
            "google My-Shop unknown", "Google, My-Shop and elsewhere", id="some unknown"
        ),
        pytest.param(
            f"yelp {'x' * 80} {'y' * 81}",
            f"Yelp, {'x' * 80} and elsewhere",
            id="one too long",
        ),
        pytest.param(
            "a b c d e f g h i j", "a, b, c, d, e, f, g, h and elsewhere", id="too many"
        ),
    ],
)
def test_a_list_that_leaves_sources_out_says_elsewhere(
    sources: str, words: str
) -> None:
    assert published_on(sources.split()) == words


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        pytest.param(None, "", id="none"),
        pytest.param(" \n", "", id="blank"),
        pytest.param("We ask.", "verified ", id="a policy"),
    ],
)
def test_reviews_are_called_verified_only_with_a_review_policy(
    policy: str | None, words: str
) -> None:
    assert review_called({"review_policy": policy}) == f"{words}customer review"
