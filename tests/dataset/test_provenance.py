"""Sources of reviews are named as in the file, and reviews are called verified only with a policy."""

import pytest

from reviewslib.dataset import provenance


def test_a_known_source_is_written_in_its_own_spelling() -> None:
    names = ["Google", "Yelp", "Healthgrades", "Facebook", "Trustpilot", "TripAdvisor"]
    assert [provenance.source_name(name.upper()) for name in names] == names
    assert provenance.source_name("My own Shop") == "My own Shop"


def test_sources_are_told_apart_in_any_case_the_most_frequent_first() -> None:
    assert provenance.sources_of(["yelp", "Google", "GOOGLE", "fb", "google"]) == ("Google", "yelp", "fb")


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ([], ""),
        (["unknown"], ""),
        (["google"], "Google"),
        (["google", "yelp", "fb"], "Google, Yelp and fb"),
        (["google", "unknown"], "Google and elsewhere"),
        (["yelp", "x" * 80, "y" * 81], f"Yelp, {'x' * 80} and elsewhere"),
        (list("abcdefghij"), "a, b, c, d, e, f, g, h and elsewhere"),
    ],
)
def test_a_list_that_leaves_sources_out_says_elsewhere(sources: list[str], words: str) -> None:
    assert provenance.published_on(sources) == words


@pytest.mark.parametrize(("policy", "words"), [(None, ""), (" \n", ""), ("We ask.", "verified ")])
def test_reviews_are_called_verified_only_with_a_review_policy(policy: str | None, words: str) -> None:
    assert provenance.review_called({"review_policy": policy}) == f"{words}customer review"
