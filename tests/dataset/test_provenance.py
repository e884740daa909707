"""What is said of where reviews come from is what the file says, and no more."""

from typing import Any

import pytest

from reviewslib.dataset import provenance


def test_sources_are_written_as_they_write_themselves_and_others_as_the_file_has_them() -> None:
    names = ["Google", "Yelp", "Healthgrades", "Facebook", "Trustpilot", "TripAdvisor"]
    assert [provenance.source_name(name.upper()) for name in names] == names
    assert provenance.source_name("My own Shop") == "My own Shop"


def test_a_source_counts_once_whatever_its_case_and_the_most_used_comes_first() -> None:
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
def test_the_sources_in_words_leave_none_out_without_saying_so(sources: list[str], words: str) -> None:
    assert provenance.published_on(sources) == words


NO_POLICIES: list[dict[str, Any]] = [{}, {"review_policy": None}, {"review_policy": " \n"}]


def test_reviews_are_verified_only_where_the_owner_says_how() -> None:
    assert {provenance.review_called(business) for business in NO_POLICIES} == {"customer review"}
    assert provenance.review_called({"review_policy": "We ask."}) == "verified customer review"
