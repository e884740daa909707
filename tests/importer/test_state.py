"""The state file holds settings and times of exports, and no text or name of a customer."""

import pytest
from lab.export_lab import Shop, item, moment

from reviewslib.faults import BadData
from reviewslib.importer.options import TableSettings
from reviewslib.importer.state import (
    DRAFT_FILE,
    STATE_FILE,
    Entry,
    State,
    encoded_state,
    read_state,
)

STATE = State(
    settings={"zone": "Europe/Berlin"},
    chosen=["7"],
    headers={"a,b": TableSettings("fb", {"author": "a"}, complete=["fb"])},
    reviews={
        "google-1": Entry("google", {"api 7": "1"}, "7", "2026"),
        "google-0": Entry("google"),
    },
    reviews_digest="new",
)


def test_a_state_that_was_written_is_read_again() -> None:
    assert read_state(encoded_state(STATE), None, "any") == STATE


def test_entries_are_written_in_order_and_without_what_is_empty() -> None:
    content = encoded_state(STATE)

    assert b'"reviews":{"google-0":{"source":"google"},"google-1":' in content


OTHER_FORMS = [
    pytest.param(b"{", id="half an object"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b'{"a": 1}', id="an unknown member"),
    pytest.param(b'{"reviews": {"x": {"y": 1}}}', id="an unknown member of an entry"),
    pytest.param(b'{"reviews": 5}', id="a number as reviews"),
]
REASON = "not a state of this version; delete the file, and it is made anew"


@pytest.mark.parametrize("content", OTHER_FORMS)
def test_a_state_of_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(BadData) as refused:
        read_state(content, None, "any")

    assert refused.value.lines() == [f"{STATE_FILE}: {REASON}"]


@pytest.mark.parametrize("content", OTHER_FORMS)
def test_a_draft_of_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(BadData) as refused:
        read_state(None, content, "any")

    assert refused.value.lines() == [f"{DRAFT_FILE}: {REASON}"]


def test_a_draft_counts_beside_the_reviews_that_it_names() -> None:
    draft = encoded_state(STATE)

    assert read_state(None, draft, "new") == STATE
    assert read_state(None, draft, "old") == State()


@pytest.mark.parametrize("words", ["sk Nr1", "aftur", "Takk"])
def test_the_state_holds_no_name_and_no_words(shop: Shop, words: str) -> None:
    reply = {"comment": "Takk", "updateTime": moment(3)}

    shop.take(shop.takeout(9, [item(1, reviewReply=reply)]))

    assert words not in (shop.data / STATE_FILE).read_text()
