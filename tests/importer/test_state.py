"""The state file holds settings and times of exports, and no text or name of a customer."""

import pytest
from lab.export_lab import Shop, item, moment

from reviewslib.dataset.contract import BadData
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


def test_a_state_is_written_without_what_is_empty_and_read_again() -> None:
    content = encoded_state(STATE)
    assert read_state(content, None, "any") == STATE
    assert b'"reviews":{"google-0":{"source":"google"},"google-1":' in content


OTHER_FORMS = [
    b"{",
    b"[]",
    b'{"a": 1}',
    b'{"reviews": {"x": {"y": 1}}}',
    b'{"reviews": 5}',
]


@pytest.mark.parametrize("content", OTHER_FORMS)
@pytest.mark.parametrize("name", [STATE_FILE, DRAFT_FILE])
def test_a_state_of_another_form_is_refused(content: bytes, name: str) -> None:
    files = (content, None) if name == STATE_FILE else (None, content)
    with pytest.raises(BadData) as refused:
        read_state(*files, "any")
    reason = "not a state of this version; delete the file, and it is made anew"
    assert refused.value.lines() == [f"{name}: {reason}"]


def test_the_state_holds_moments_and_digests_and_no_text_or_name(shop: Shop) -> None:
    reply = {"comment": "Takk", "updateTime": moment(3)}
    shop.take(shop.takeout(9, [item(1, reviewReply=reply)]))
    content = (shop.data / STATE_FILE).read_text()
    assert "sk Nr1" not in content and "aftur" not in content and "Takk" not in content
