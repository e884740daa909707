"""A check says where figures of the insights are not what their links find."""

from typing import Any

import pytest
from lab.small_files import a_file, loaded, review

Object = dict[str, Any]

WAIT: Object = {"id": "wait", "label": "Waiting", "mention_count": 2}
SAID = {
    "a": {"aspects": [{"id": "wait", "sentiment": "negative"}]},
    "b": {"aspects": [{"id": "wait", "sentiment": "positive"}]},
}
ENGLISH = {"name": "X", "language": "en"}
REVIEWS = a_file(review("a"), review("b"), business=ENGLISH)
DIFFERING = "insights.json counts other reviews than mention its entries"

COUNTS = [
    pytest.param({}, [], id="equal"),
    pytest.param({"mention_count": None}, [], id="uncounted"),
    pytest.param(
        {"mention_count": 3},
        [f'{DIFFERING}, 1: "aspects/wait" 3 (the reviews: 2)'],
        id="another number",
    ),
    pytest.param(
        {"mention_count": 0, "negative_count": 2},
        [
            f'{DIFFERING}, 2: "aspects/wait" 0 (the reviews: 2),'
            ' "aspects/wait" negative 2 (the reviews: 1)'
        ],
        id="a sentiment",
    ),
]


@pytest.mark.parametrize(("members", "warnings"), COUNTS)
def test_a_figure_that_is_not_what_its_link_finds_is_a_warning(
    members: Object, warnings: list[str]
) -> None:
    dataset = loaded(REVIEWS, {"aspects": [WAIT | members], "per_review": SAID})

    assert list(dataset.warnings) == warnings


def test_three_differing_figures_are_named() -> None:
    topics = [{"id": id, "label": id, "mention_count": 9} for id in "abcd"]
    dataset = loaded(REVIEWS, {"topics": topics})

    (warning,) = dataset.warnings

    assert warning.startswith(f"{DIFFERING}, 4: ")
    assert warning.endswith('"topics/c" 9 (the reviews: 0), …')


def test_entries_that_lead_to_examples_are_a_note() -> None:
    topic = {"id": "t", "label": "T", "mention_count": 17}
    dataset = loaded(REVIEWS, {"topics": [topic | {"example_review_ids": ["a", "b"]}]})

    assert dataset.warnings == ()
    assert dataset.notes == (
        "insights.json: per_review lists no topics, which lead to examples:"
        ' "topics/t" 2 of 17',
    )
