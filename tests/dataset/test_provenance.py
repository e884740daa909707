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
        ("", ""),
        ("unknown", ""),
        ("GOOGLE", "Google"),
        ("yelp healthgrades", "Yelp and Healthgrades"),
        ("facebook trustpilot tripadvisor", "Facebook, Trustpilot and TripAdvisor"),
        ("google My-Shop unknown", "Google, My-Shop and elsewhere"),
        (f"yelp {'x' * 80} {'y' * 81}", f"Yelp, {'x' * 80} and elsewhere"),
        ("a b c d e f g h i j", "a, b, c, d, e, f, g, h and elsewhere"),
    ],
)
def test_a_list_that_leaves_sources_out_says_elsewhere(
    sources: str, words: str
) -> None:
    assert published_on(sources.split()) == words


@pytest.mark.parametrize(
    ("policy", "words"), [(None, ""), (" \n", ""), ("We ask.", "verified ")]
)
def test_reviews_are_called_verified_only_with_a_review_policy(
    policy: str | None, words: str
) -> None:
    assert review_called({"review_policy": policy}) == f"{words}customer review"
